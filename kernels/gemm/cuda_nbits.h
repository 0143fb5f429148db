/* kernels/gemm/cuda_nbits.h: products with weights of 4 or 8 bits on a GPU, between cuda_nbits.c and
 * nbits.cu.
 *
 *   y [m, n] = a [m, k] times the transpose of w [n, k], + bias
 *   w = (q - zero point) * scale, q unsigned, a scale and a zero point for each `block` elements of a row
 *
 * A row of q is `row_bytes` long, whole blocks, its first element in the lowest bits.
 */
#ifndef ORTC_KERNELS_CUDA_NBITS_H
#define ORTC_KERNELS_CUDA_NBITS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ORTC_CU_NBITS_MMA_ROWS = 32, ORTC_CU_NBITS_ROWS = 8, ORTC_CU_NBITS_ROW_K = 16384 };
enum { ORTC_CU_NBITS_RING_SHARED = 111232 }; /* of a block: half of what Hopper's multiprocessors have */

typedef struct ortc_cu_nbits {
    const void *a, *scales, *bias; /* of `type`; scales [n, blocks]; bias [n] or NULL */
    const uint8_t *b;
    const void *zeros; /* NULL: the middle; `real`: [n, blocks] of `type`; else packed like b, a row is
                          zero_bytes */
    void *y;
    int64_t m, n, k, blocks, row_bytes, zero_bytes;
    int32_t block, bits, type, real;
    int32_t processors; /* of the device */
    int32_t constant;   /* b, scales and zeros were there before anything was queued */
} ortc_cu_nbits;

/* Up to ORTC_CU_NBITS_MMA_ROWS rows of f16 or bf16, by tensor cores: weights are rounded to the type; rows of
 * weights and of a begin at multiples of 16 bytes. */
int ortc_cu_nbits_mma(const ortc_cu_nbits *, void *queue);
/* One row of f16 or bf16 and 4 bits in blocks of 32 to 1024, no `real` zero points, K of up to
 * ORTC_CU_NBITS_ROW_K; aligned likewise. Weights are not rounded. */
int ortc_cu_nbits_row(const ortc_cu_nbits *, void *queue);
/* The same by Hopper's copy engine, of what ortc_cu_nbits_ring_fits. Where weights are many, ends and
 * beginnings of kernels count less than how evenly tiles fall (28672 x 8192 42 us, 37.7 so; 8192 x 8192 10.9,
 * 11.9). */
int ortc_cu_nbits_ring(const ortc_cu_nbits *, void *queue);
static inline int ortc_cu_nbits_ring_fits(const ortc_cu_nbits *g)
{
    return !g->zeros && g->k >= 2048 && g->block >= 32 && g->block <= 256 && g->blocks % 8 == 0 &&
           g->n * g->row_bytes <= 48 << 20 &&
           ((uint64_t)(uintptr_t)g->b | (uint64_t)(uintptr_t)g->scales) % 16 == 0;
}
/* Up to ORTC_CU_NBITS_ROWS rows of any type; weights are not rounded. */
int ortc_cu_nbits_rows(const ortc_cu_nbits *, void *queue);
/* Rows `first` to first + count of w, rounded to the type, to [count, pitch]; zeros behind k. */
int ortc_cu_nbits_unpack(const ortc_cu_nbits *, int64_t first, int64_t count, void *to, int64_t pitch,
                         void *queue);

#ifdef __cplusplus
}
#endif
#endif
