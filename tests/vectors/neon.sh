#!/bin/sh
# Compiles the vector layer and its tests for AArch64, runs them under qemu-user, and compares the bits of every function
# with those of this machine's program. usage: neon.sh VECTORS SOURCE_ROOT
# Skipped (77) where the compiler, the emulator or instructions with FMA are missing.
set -eu
vectors=$1 root=$2 cc=aarch64-linux-gnu-gcc
for tool in $cc qemu-aarch64; do
    command -v $tool >/dev/null || { echo "skipped: no $tool (packages gcc-aarch64-linux-gnu, qemu-user)"; exit 77; }
done
"$vectors" hash >/dev/null || { echo "skipped: this machine, or ORTC_CPU, has no FMA"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/kernels/common/vector"
# The list's lines for this architecture, as meson.build makes them into isas.h.
echo '#define ORTC_EACH_ISA(X, ...) X(neon, ORTC_CPU_NEON, __VA_ARGS__) X(scalar, ORTC_CPU_SCALAR, __VA_ARGS__)' \
    >"$work/kernels/common/vector/isas.h"
flags="-O2 -std=c11 -D_GNU_SOURCE -ffp-contract=off -fno-math-errno -fwrapv -Wall -Wno-psabi -I$root -I$root/include -I$work"
for isa in neon scalar; do
    $cc $flags -DORTC_ISA=$isa -DORTC_ISA_HEADER="\"kernels/common/vector/vec_$isa.h\"" \
        -c "$root/tests/vectors/functions.c" -o "$work/$isa.o"
done
$cc $flags -static "$root/tests/vectors/vectors.c" "$root/kernels/common/cpu_features.c" "$root/kernels/common/uk.c" \
    "$work/neon.o" "$work/scalar.o" -lm -o "$work/vectors"
qemu-aarch64 "$work/vectors" test
"$vectors" hash >"$work/here"
qemu-aarch64 "$work/vectors" hash >"$work/there"
diff "$work/here" "$work/there" || { echo "the bits above differ between this machine and AArch64"; exit 1; }
