#!/bin/sh
# Products on a machine with AMX: tests of its micro-kernels, then their rates beside those of fused multiply-adds.
#   tests/bench/products_amx.sh BUILD [THREADS]     THREADS: "1,8" (1)
set -eu
build=$1 threads=${2:-1}
"$build/tests/ukernels/ukernels" test --seed 1 amx
"$build/tests/ukernels/ukernels" test --seed 1 'on cpu'
for line in f32_f32_14x32 bf16x3 bf16_bf16_32x32 u8_s8_32x32 u8_s8_14x32; do
  "$build/tests/bench/bench_gemm" --line "$line" --threads "$threads" --reps 10 --packed bert minilm vit 512x512x512 16x3072x768 64x3072x768
done
"$build/tests/bench/bench_gemm" --line 32x32 --threads 1 --reps 10 128x768x768
