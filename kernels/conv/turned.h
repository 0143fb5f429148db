/* kernels/conv/turned.h: weights with the filters of a block side by side, which is how packed forms of
 * blocks begin. */
#ifndef ORTC_KERNELS_CONV_TURNED_H
#define ORTC_KERNELS_CONV_TURNED_H

#include "blocked_uk.h"
#include "kernels/common/vector/convert.h"
#include "kernels/gemm/product.h"
#include "kernels/gemm/product_uk.h"

/* Of n filters (1 .. ORTC_BLOCK), `step` elements apart, `count` weights from w on: turned
 * [count][ORTC_BLOCK], f32, 0 for filters from n on. wide: room for ORTC_BLOCK * count floats, if type is not
 * f32. */
static inline void ortc_turn_weights(ortc_dtype type, const char *w, int64_t n, int64_t step, int64_t count,
                                     float *wide, float (*turned)[ORTC_BLOCK])
{
    const float *from = type == ORTC_F32 ? (const float *)(const void *)w : wide;
    for (int64_t o = 0; o < n && type != ORTC_F32; o++)
        ortc_convert_get()->widen[ortc_float_index(type)]((size_t)count,
                                                          w + o * step * ortc_product_size(type),
                                                          wide + o * count);
    ortc_product_moves_select()->transpose((size_t)n, (size_t)count, from,
                                           (size_t)(type == ORTC_F32 ? step : count), turned[0], ORTC_BLOCK);
}

/* Of n filters (1 .. ORTC_BLOCK), `step` bytes apart, [channel][tap] of u8 or s8: taps `tap_step` bytes
 * apart, each [quad][ORTC_BLOCK filters][4 channels] of s8 (u8 less 128), 0 for filters from n on and where
 * channels end. end: where W does, of which a few bytes more are read; sums [ORTC_BLOCK], of what is stored,
 * are added to. */
void ortc_turn_bytes(ortc_dtype type, const void *w, const void *end, int64_t n, int64_t step,
                     int64_t channels, int64_t taps, int64_t quads, void *dst, int64_t tap_step,
                     int32_t *sums);

#endif
