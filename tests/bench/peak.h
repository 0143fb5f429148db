/* Peak loops: fused multiply-adds on registers and nothing else, one per instruction set, for ratios against
 * what the machine gives in the same second. */
#ifndef ORTC_BENCH_PEAK_H
#define ORTC_BENCH_PEAK_H

#include <stdint.h>

/* Runs about `flops` operations of the instruction set (bits of cpu_features.h) and returns how many it did.
 * The result of the arithmetic goes to *sink, so that it is not dropped. */
double ortc_bench_peak_f32(uint32_t isa, double flops, float *sink);

#endif
