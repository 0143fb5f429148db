/* f32 matrix products on the CPU: C = epilogue(A B), blocked, packed and threaded. The internal interface
 * that the gemm family and convolution share.
 *
 * A plan holds every decision: the micro-kernel, the chunks of K, the grid of tasks, what is packed where,
 * and how much memory a run needs. All of it follows from M, N, K, the batch, the flags and the instruction
 * set, never from the number of threads, and K is never split between threads: results are bit-equal for any
 * number of them. Nothing here allocates: a run works in the caller's workspace and in each worker's scratch,
 * both 64-byte aligned. Micro-kernels and the layout of packed blocks: product_uk.h. Leaves to others:
 * operators, shapes, broadcasting.
 *
 * Matrices are row-major with any row stride: A is [m][k] ([k][m] with TRANS_A), B [k][n] ([n][k] with
 * TRANS_B), C [m][n]. Vectors are contiguous: with n == 1, B, C and the residual have row stride 1, and with
 * m == 1 so has a transposed A.
 */
#ifndef ORTC_KERNELS_GEMM_PRODUCT_H
#define ORTC_KERNELS_GEMM_PRODUCT_H

#include <stddef.h>
#include <stdint.h>

#include "product_uk.h"

enum {
    ORTC_PRODUCT_TRANS_A = 1u,
    ORTC_PRODUCT_TRANS_B = 2u,
    ORTC_PRODUCT_PACKED_A = 4u, /* run gets what ortc_product_fill_a wrote */
    ORTC_PRODUCT_PACKED_B = 8u,
    ORTC_PRODUCT_CUSTOM_B = 16u, /* B exists only as ortc_product_args.pack: convolution's columns */
    ORTC_PRODUCT_CUSTOM_A = 32u, /* A' does; not together with CUSTOM_B */
    ORTC_PRODUCT_TRANS_C = 64u,  /* C and the residual are [n][m], dense; wants PACKED_B, for small m */
};

/* Where a task finds an operand. */
enum {
    ORTC_PRODUCT_PACKED, /* packed by the caller, once */
    ORTC_PRODUCT_SHARED, /* packed into the workspace by a first parallel loop */
    ORTC_PRODUCT_LOCAL,  /* packed by each task into its scratch */
    ORTC_PRODUCT_DIRECT, /* read where it lies */
};

typedef struct ortc_product_plan {
    const ortc_product_line *uk;
    int64_t m, n, k, batch;
    uint32_t flags;
    uint8_t how_a, how_b; /* ORTC_PRODUCT_PACKED ... */
    uint8_t dot;          /* m == 1 and rows of B are contiguous: dot products, nothing is packed */
    /* n == 1: run as the transposed product; m, n and flags above are those of that one */
    uint8_t swapped;
    /* matrices one after the other, each split over threads; else a task is within one */
    uint8_t batch_outside;
    int64_t kc, chunks;     /* length of a chunk of K (the last may be shorter), and how many: >= 1 */
    int64_t blocks, panels; /* of rows and of columns */
    int64_t task_blocks, task_panels, tasks_m, tasks_n;
    int64_t local_panels;      /* panels packed at a time by a task when how_b is LOCAL */
    size_t workspace, scratch; /* bytes: of the run, of each worker */
    double flops, bytes;       /* of one run, for cost models */
} ortc_product_plan;

/* Plans a product of the given extents (each >= 0, 0 is safe). `uk` NULL: the best for this machine.
 * Returns 0, or -1 when a size does not fit in memory's address space. Thread: any. */
int ortc_product_plan_init(ortc_product_plan *plan, const ortc_product_line *uk, int64_t m, int64_t n,
                           int64_t k, int64_t batch, uint32_t flags);

/* Loops of the caller, as ortc_parallel (op.h): body over 0..n in chunks of `grain`, `scratch` per worker. A
 * status other than 0 ends the run and is returned by it. */
typedef void ortc_product_body(void *arg, int64_t begin, int64_t end, void *scratch);
typedef struct ortc_product_threads {
    int32_t (*parallel)(void *context, int64_t n, int64_t grain, ortc_product_body *body, void *arg);
    void *context;
} ortc_product_threads;

/* One matrix of the batch. */
typedef struct ortc_product_item {
    const float *a, *b; /* plain or packed, as the plan's flags say; not read where CUSTOM_ */
    float *c;
    const float *bias_col; /* n elements or NULL */
    const float *bias_row; /* m elements or NULL */
    const float *residual; /* [m][n] or NULL; may be c itself when the plan has one chunk and no TRANS_C */
} ortc_product_item;

typedef struct ortc_product_args {
    ortc_product_item item; /* the matrices; with a batch, what `locate` starts from */
    int64_t lda, ldb, ldc;  /* row strides in elements; of packed operands not read */
    int64_t residual_stride;
    float alpha, beta; /* see ortc_uk_tail_f32 */
    int32_t act;       /* ORTC_UK_ACT_* */
    float lo, hi;
    /* Moves the pointers to matrix `index` of the batch; NULL only if the batch is 1. */
    void (*locate)(const void *arg, int64_t index, ortc_product_item *item);
    /* CUSTOM_B: writes rows k0.. of columns n0.. of B of matrix `index` as [kc][dw], nc <= dw columns, rest
     * zero. CUSTOM_A: the same of the transpose of A. */
    void (*pack)(const void *arg, int64_t index, int64_t k0, int64_t kc, int64_t n0, int64_t nc, float *dst,
                 size_t dw);
    /* Called on each finished tile, while it is in L1: activations that the micro-kernels do not have. May be
     * NULL. */
    void (*post)(const void *arg, float *c, size_t ldc, size_t rows, size_t cols);
    const void *arg; /* of the three functions */
    void *workspace;
} ortc_product_args;

/* Thread: any, each with its own workspace. Returns 0 or what `parallel` returned. */
int32_t ortc_product_run(const ortc_product_plan *plan, const ortc_product_args *args,
                         const ortc_product_threads *threads);

/* The packed form of a constant operand depends on its own extents, the micro-kernel and TRANS_*, not on the
 * other operand: a plan for any m packs the same B. Bytes: 0 if it does not fit. Fill: `dst` 64-byte aligned,
 * the source of any alignment. Thread: any. */
size_t ortc_product_packed_a_bytes(const ortc_product_line *uk, int64_t m, int64_t k);
size_t ortc_product_packed_b_bytes(const ortc_product_line *uk, int64_t n, int64_t k);
int32_t ortc_product_fill_a(const ortc_product_line *uk, int64_t m, int64_t k, uint32_t flags, const float *a,
                            int64_t lda, float *dst, const ortc_product_threads *threads);
int32_t ortc_product_fill_b(const ortc_product_line *uk, int64_t n, int64_t k, uint32_t flags, const float *b,
                            int64_t ldb, float *dst, const ortc_product_threads *threads);

#endif
