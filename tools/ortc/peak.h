/* tools/ortc/peak.h: peak loops: fused multiply-adds on registers and nothing else, one per instruction set,
 * for ratios against what the machine gives in the same second. Benchmarks of kernels use them, too. */
#ifndef PEAK_H
#define PEAK_H

#include <stdint.h>

/* The first two bits of kernels/common/cpu_features.h, whose users pass theirs. */
enum { PEAK_AVX2 = 1, PEAK_AVX512 = 2 };

/* Runs about `flops` operations of the instruction set and returns how many it did. The result of the
 * arithmetic goes to *sink, so that it is not dropped. */
double peak_f32(uint32_t isas, double flops, float *sink);

/* What this machine has. */
uint32_t peak_isas(void);

#endif
