/* kernels/attention/cuda_attention.h: the launchers of attention's own device code; products of matrices are
 * gemm's. */
#ifndef ORTC_KERNELS_CUDA_ATTENTION_H
#define ORTC_KERNELS_CUDA_ATTENTION_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What decides which keys a row of scores sees, and how: shared by all rows of a run. Names as in
 * attention.h. */
typedef struct ortc_cu_rows {
    int32_t type;         /* of Q: ORTC_F16, ORTC_BF16, ORTC_F32 */
    int32_t causal, mode; /* mode: of qk_matmul_output */
    int32_t mask_type;    /* 0: no mask */
    /* [B, Hq, L, mask_count], stretched by steps of 0; keys from mask_count on are masked */
    const void *mask;
    const int64_t *nonpad;                     /* keys of each sample, or NULL */
    void *scores;                              /* qk_matmul_output, or NULL */
    int64_t mask_step[3], mask_count;          /* elements from one sample, head, row to the next */
    int64_t batch, heads, length, past, total; /* B, Hq, L, P, T */
    int64_t left, right;                       /* windows, at most 2^61; -1: none */
    float softcap;                             /* 0: none */
} ortc_cu_rows;

/* Softmax of rows of scores [batches, heads, L, pitch], f32, which it overwrites, into `probabilities` of
 * type `type`, same shape: the samples from first_batch, the heads from first_head on. */
int ortc_cu_attention_softmax(const ortc_cu_rows *, float *scores, void *probabilities, int64_t pitch,
                              int64_t first_batch, int64_t batches, int64_t first_head, int64_t heads,
                              void *queue);

/* out [B, H, past + fresh, size] = past [B, H, past, size] and fresh, whose parts are `*_step` bytes apart;
 * size and steps in bytes. */
int ortc_cu_attention_append(void *out, const void *past, const void *fresh, int64_t batch, int64_t heads,
                             int64_t past_length, int64_t fresh_length, int64_t size, int64_t batch_step,
                             int64_t head_step, int64_t length_step, void *queue);

/* Attention in one pass, for f16 and bf16, heads of at most 256 elements (of more than 128 where a block may
 * have ORTC_CU_FLASH_LARGE bytes of shared memory), and fewer than 2^30 keys. Steps: elements from one
 * sample, head, position to the next; a head's elements are dense. */
#define ORTC_CU_FLASH_LARGE (160 << 10)
typedef struct ortc_cu_flash {
    ortc_cu_rows rows;
    const void *q, *k, *v;
    void *y;
    int64_t q_step[3], k_step[3], v_step[3], y_step[3];
    int64_t group; /* query heads of a key head */
    int32_t size, value_size;
    float scale;
    int32_t processors; /* multiprocessors; for ortc_cu_decode */
    int32_t warps;      /* of a block, 16 rows each: 4 or 8 */
    int32_t aligned;    /* the launcher's own: all is in pieces of 16 bytes */
    int32_t y_pairs;    /* likewise: two elements of Y at once */
} ortc_cu_flash;

int ortc_cu_flash_f16(const ortc_cu_flash *, void *queue);
int ortc_cu_flash_bf16(const ortc_cu_flash *, void *queue);
/* The same on Hopper (sm_90a), where all but Y begins at, and steps by, multiples of 16 bytes. */
int ortc_cu_flash_wgmma_f16(const ortc_cu_flash *, void *queue);
int ortc_cu_flash_wgmma_bf16(const ortc_cu_flash *, void *queue);

/* The same for f32 on Hopper, heads of at most 128 elements: products of pieces of bf16, at the accuracy of
 * f32 (flash_split.cu). Anything may begin and step anywhere. work: ortc_cu_flash_split_bytes bytes, at a
 * multiple of 256. */
int ortc_cu_flash_split(const ortc_cu_flash *, void *work, void *queue);
int64_t ortc_cu_flash_split_bytes(int64_t key_heads, int64_t keys, int64_t size, int64_t value_size);

/* Few queries: at most ORTC_CU_DECODE_ROWS of a key head, in `parts` parts of the keys, at most 8. All three
 * types; sm_90; where all but Y begins at, and steps by, multiples of 16 bytes, and sizes are whole pieces of
 * them. */
#define ORTC_CU_DECODE_ROWS 8
int ortc_cu_decode(const ortc_cu_flash *, int parts, void *queue);
/* Its part for 16 bits (decode_ring.cu). */
int ortc_cu_decode_ring(const ortc_cu_flash *, int parts, void *queue);

#ifdef __cplusplus
}
#endif
#endif
