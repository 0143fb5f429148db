/* kernels/gemm/cuda_gemm.h: products of matrices on a GPU, for the families that are made of them (gemm,
 * attention).
 *
 *   Y = act(alpha A B + beta C + bias + residual)        A [M, K], B [K, N], Y [M, N], for every matrix of a
 *                                                        batch
 *
 * A, B and C lie anywhere: elements are reached by strides, of which one of A's and one of B's is 1. f16,
 * bf16 and f32, sums in f32; Y is of the operands' type, or f32. All sums are taken in an order that depends
 * on the extents and on the kernel, which ortc_cu_gemm_plan chooses, and on nothing else. Seen from C and
 * from .cu files.
 */
#ifndef ORTC_KERNELS_CUDA_GEMM_H
#define ORTC_KERNELS_CUDA_GEMM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ORTC_CU_GEMM_RANK \
    5 /* dims of a batch in one launch; what has more is launched once for every index of the rest */

/* kernels: how the result is cut into tiles, M x N */
enum {
    ORTC_CU_GEMM_NOTHING = 0, /* no element to compute */
    ORTC_CU_GEMM_MMA_128X128,
    ORTC_CU_GEMM_MMA_128X64,
    ORTC_CU_GEMM_MMA_64X64,
    ORTC_CU_GEMM_MMA_64X32,
    ORTC_CU_GEMM_MMA_ANY, /* 64x64, any strides and alignment */
    ORTC_CU_GEMM_FFMA_128X128,
    ORTC_CU_GEMM_FFMA_64X64,
    ORTC_CU_GEMM_VECTOR, /* M <= 8: B is streamed once */
    /* Hopper's instructions (gemm_wgmma.cuh), sm_90a */
    ORTC_CU_GEMM_WGMMA_128X256,
    ORTC_CU_GEMM_WGMMA_128X192,
    ORTC_CU_GEMM_WGMMA_128X128,
    ORTC_CU_GEMM_WGMMA_128X128_TURNS,
    ORTC_CU_GEMM_WGMMA_64X192,
    ORTC_CU_GEMM_WGMMA_64X128,
    ORTC_CU_GEMM_WGMMA_64X64,
    ORTC_CU_GEMM_WGMMA_128X128_PARTS, /* of K */
    ORTC_CU_GEMM_WGMMA_64X192_PARTS,
    ORTC_CU_GEMM_WGMMA_64X128_PARTS,
    ORTC_CU_GEMM_WGMMA_64X64_PARTS,
    ORTC_CU_GEMM_WGMMA_32X64_PARTS,
    ORTC_CU_GEMM_WGMMA_16X64_PARTS,
    ORTC_CU_GEMM_SPLIT_128X128, /* f32 (gemm_split.cu), parts of K too */
    ORTC_CU_GEMM_SPLIT_64X128,  /* likewise, few rows (gemm_split_few.cu) */
    ORTC_CU_GEMM_FEW_16X64,     /* likewise, by fused multiply-adds (gemm_few.cu) */
    /* a tile for each block, which are all there at once (gemm_once.cu), f16 and bf16 */
    ORTC_CU_GEMM_ONCE_64X64,
    ORTC_CU_GEMM_ONCE_64X128,
    ORTC_CU_GEMM_ONCE_64X192,
    ORTC_CU_GEMM_WGMMA_END
};

/* act: what the kernels know to do with a sum; alpha, beta: act_alpha, act_beta */
enum {
    ORTC_CU_ACT_NONE = 0,
    ORTC_CU_ACT_RELU,       /* max(x, 0), NaN stays NaN */
    ORTC_CU_ACT_CLIP,       /* min(max(x, alpha), beta) */
    ORTC_CU_ACT_LEAKY_RELU, /* x < 0 ? alpha x : x; from here on: what takes exponentials, or more */
    ORTC_CU_ACT_SIGMOID,
    ORTC_CU_ACT_TANH,
    ORTC_CU_ACT_GELU,      /* by erf */
    ORTC_CU_ACT_GELU_TANH, /* the tanh approximation */
    ORTC_CU_ACT_SILU,
    ORTC_CU_ACT_HARD_SWISH, /* x * min(max(x / 6 + 0.5, 0), 1) */
    ORTC_CU_ACT_END
};

typedef struct ortc_cu_gemm {
    const void *a, *b;
    void *y;
    const void *c, *bias, *residual; /* of the operands' type; NULL: none */
    int64_t m, n, k;
    /* elements from one row or column to the next; Y's columns are dense */
    int64_t a_row, a_col, b_row, b_col, y_row;
    int64_t c_row, c_col; /* 0 where C is stretched */
    float alpha, beta;
    int32_t act; /* ORTC_CU_ACT_* */
    float act_alpha, act_beta;
    /* ORTC_F16, ORTC_BF16, ORTC_F32; of Y: the same, or ORTC_F32 */
    int32_t type, out_type;
    int32_t kernel; /* ORTC_CU_GEMM_* */
    /* WGMMA: blocks that share a tile, each a part of K; at most 8 */
    int32_t parts;
    int32_t processors; /* of the device */
    int32_t b_constant; /* B was there before anything was queued */
    int32_t rank;       /* of the batch, 0 to ORTC_CU_GEMM_RANK */
    /* elements; 0: broadcast */
    int64_t dims[ORTC_CU_GEMM_RANK], a_step[ORTC_CU_GEMM_RANK], b_step[ORTC_CU_GEMM_RANK];
    int64_t y_step[ORTC_CU_GEMM_RANK]; /* the residual's, too */
} ortc_cu_gemm;

/* Chooses the kernel for what everything but the addresses says. processors: of the device; capability: 10
 * times its major number and its minor one. */
void ortc_cu_gemm_plan(ortc_cu_gemm *, int processors, int capability);
/* Queues the product; a kernel whose vectors the addresses do not allow gives way to one that takes any
 * (which may add in another order). The cudaError_t of the launch. */
int ortc_cu_gemm_run(const ortc_cu_gemm *, void *queue);

/* Products of one A, which go side by side in one launch where that is done sooner: f16 and bf16 on Hopper,
 * without a batch, C or residual, with B of one layout, one alpha and one activation. Given are those that
 * ortc_cu_gemm_plan planned; gives the kernel of all, ORTC_CU_GEMM_NOTHING where each has to go alone. */
#define ORTC_CU_GEMM_TOGETHER 4
int32_t ortc_cu_gemm_plan_together(const ortc_cu_gemm *, int count, int capability);
/* kernel: as planned. Addresses that it cannot take have each go alone. */
int ortc_cu_gemm_run_together(const ortc_cu_gemm *, int count, int32_t kernel, void *queue);

/* Whether the module has kernels of Hopper's own instructions, and the device is one. */
int ortc_cu_has_wgmma(int capability);

/* The launchers behind it, each for its kernels. */
int ortc_cu_gemm_f16_nn(const ortc_cu_gemm *, void *queue); /* B's columns are dense */
int ortc_cu_gemm_f16_nt(const ortc_cu_gemm *, void *queue); /* B's rows are */
int ortc_cu_gemm_bf16_nn(const ortc_cu_gemm *, void *queue);
int ortc_cu_gemm_bf16_nt(const ortc_cu_gemm *, void *queue);
int ortc_cu_gemm_f32(const ortc_cu_gemm *, void *queue);
int ortc_cu_gemm_vector(const ortc_cu_gemm *, void *queue);
int ortc_cu_gemm_few(const ortc_cu_gemm *, void *queue);
int ortc_cu_gemm_split_few(const ortc_cu_gemm *, void *queue);
int ortc_cu_gemm_wgmma(const ortc_cu_gemm *, int count, void *queue);

#ifdef __cplusplus
}
#endif
#endif
