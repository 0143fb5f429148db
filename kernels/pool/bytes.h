/* kernels/pool/bytes.h: MaxPool of integers of 8 bits on the cpu (bytes.c), means of channels of theirs
 * (means.c), the bodies of both (bytes_vec.c), and means of windows (averages.c). */
#ifndef ORTC_KERNELS_POOL_BYTES_H
#define ORTC_KERNELS_POOL_BYTES_H

#include "kernels/common/dequantised.h"
#include "kernels/common/uk.h"
#include "kernels/common/window_runs.h"
#include "kernels/pool/blocks.h"
#include "ortc/op.h"

typedef struct ortc_pool_bytes {
    /* line[i] = the larger of it and x[i] */
    void (*rows)(size_t n, const uint8_t *x, int is_signed, uint8_t *line);
    /* y[i] = the largest of line[i * stride + k * dilation], k < kernel */
    void (*across)(size_t n, size_t kernel, size_t dilation, size_t stride, const uint8_t *line,
                   int is_signed, uint8_t *y);
    /* n pixels of 16 channels: y, `y_step` bytes apart, the largest of all taps */
    void (*blocks)(size_t n, size_t taps, const ortc_window_tap *tap, int is_signed, uint8_t *y,
                   ptrdiff_t y_step);
    /* n pixels of 16 channels are added to sums */
    void (*sums)(size_t n, const uint8_t *x, int is_signed, int64_t sums[16]);
} ortc_pool_bytes;
ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_pool_bytes)

/* A group of DequantizeLinear, `mean`, and QuantizeLinear, both by one scale that is known, of at least one
 * spatial dim. 0: it is none. */
typedef struct ortc_pool_group {
    const ortc_node *mean;
    ortc_port y; /* its result, */
    ortc_port x; /* and what it reads */
    int32_t port;
    ortc_pool_between between;
} ortc_pool_group;
int ortc_pool_read_group(const ortc_node *, ortc_pool_group *out);
/* The byte of a sum of `count` numbers, which is exact, in units of x's scale; where nothing counts, 0. */
uint8_t ortc_pool_between_of(const ortc_pool_between *, int64_t sum, double count);

extern const ortc_kernel ortc_cpu_pool_bytes, ortc_cpu_pool_means, ortc_cpu_pool_averages;

#endif
