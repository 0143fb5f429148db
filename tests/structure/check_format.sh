#!/bin/sh
# Checks that C, C++ and CUDA sources look as .clang-format says and keep to .editorconfig's width.
# usage: check_format.sh ROOT [CLANG_FORMAT]; exits with 77 (skipped) where there is no clang-format 14, whose answer counts
cd "$1" || exit 1
format=${2:-clang-format}
list=$(git ls-files -- '*.c' '*.h' '*.cu' '*.cuh' '*.inc' '*.cc' '*.cpp' 2>/dev/null)
[ -n "$list" ] || { echo "not a git checkout"; exit 77; }
width=$(sed -n 's/^max_line_length *= *//p' .editorconfig)
wide=$(echo "$list" | xargs awk -v w="$width" 'length > w {print FILENAME ":" FNR ": " length " columns"}')
[ -z "$wide" ] || echo "$wide"
wide=$(printf '%s' "$wide" | grep -c .)
case $("$format" --version 2>/dev/null) in
*"version 14."*) ;;
*)
    echo "clang-format 14 is not here: only the width was checked"
    [ "$wide" = 0 ] && exit 77
    exit 1
    ;;
esac
wrong=$(echo "$list" | xargs -n 40 -P 2 "$format" --dry-run 2>&1 | grep -c 'warning: code should')
echo "$list" | xargs -n 40 -P 2 "$format" --dry-run 2>&1 | grep 'warning: code should' | cut -d: -f1-3 | head -20
files=$(echo "$list" | grep -c .)
[ "$wrong" = 0 ] || echo "mend it with: git ls-files '*.[ch]' '*.cu' '*.cuh' '*.inc' '*.cc' '*.cpp' | xargs clang-format -i"
echo "$files passed, $((wrong + wide)) failed"
[ $((wrong + wide)) = 0 ]
