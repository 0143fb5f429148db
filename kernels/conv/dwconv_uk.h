/* The depthwise convolution's f32 micro-kernels: their contract, and the table that lists them.
 *
 * One channel, whatever its kernel, stride and dilation, is one long correlation once its rows lie in a
 * padded buffer (dwconv.h): dst[j] = act(bias + sum over taps t of weight[t] * src[offset[t] + j]) for j in 0
 * .. n-1. Reads exactly those elements. No state, no allocation.
 */
#ifndef ORTC_KERNELS_CONV_DWCONV_UK_H
#define ORTC_KERNELS_CONV_DWCONV_UK_H

#include <stddef.h>
#include <stdint.h>

/* act: ORTC_UK_ACT_* of kernels/gemm/product_uk.h with its lo and hi. weight: any alignment. */
typedef void ortc_uk_dwconv_f32(size_t n, size_t taps, const float *src, const int32_t *offset,
                                const float *weight, float bias, int32_t act, float lo, float hi, float *dst);

typedef struct ortc_dwconv_uk {
    const char *name;
    uint32_t isa; /* bits of cpu_features.h, all needed */
    ortc_uk_dwconv_f32 *run;
} ortc_dwconv_uk;

/* All of them, best first. Thread: any. */
extern const ortc_dwconv_uk ortc_dwconv_uks[];
extern const size_t ortc_dwconv_uk_count;

/* The best that ortc_cpu_features() allows; never NULL. Thread: any. */
const ortc_dwconv_uk *ortc_dwconv_uk_select(void);

#endif
