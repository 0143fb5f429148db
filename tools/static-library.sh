#!/bin/sh
# Joins archives into one relocatable object whose only global symbols are the exported ortc_* ones.
# usage: static-library.sh OUT.a CC... -- ARCHIVE...
set -eu
out=$1; shift
cc=''
while [ "$1" != -- ]; do cc="$cc $1"; shift; done
shift
object=${out%.a}.o
protobuf=$($cc -print-file-name=libprotobuf-c.a)
rm -f "$out"
# shellcheck disable=SC2086
ld -r -o "$object" --whole-archive "$@" --no-whole-archive "$protobuf"
objcopy --localize-hidden "$object"
objcopy --wildcard --keep-global-symbol='ortc_*' "$object"
ar rcs "$out" "$object"
rm -f "$object"
