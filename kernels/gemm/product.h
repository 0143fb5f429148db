/* Matrix products on the CPU: C = epilogue(A B), blocked, packed and threaded, of any types that a line of
 * the table of micro-kernels (product_uk.h) and the conversions at its ends allow. The internal interface
 * that the gemm family and convolution share.
 *
 * Types: of A, B and C in memory, and of what the line wants packed and sums up; packing converts (once where
 * an operand is constant), and results are rounded once, when they are stored. Floats may go to any line of
 * f32 sums whose packed types hold them without loss. An s32 line takes its own types, and gives s32 or,
 * scaled by alpha, floats.
 *
 * A plan holds every decision: the micro-kernel, the chunks of K, the grid of tasks, what is packed where,
 * and how much memory a run needs. All of it follows from types, M, N, K, the batch, the flags and the line,
 * never from the number of threads, and K is never split between threads: results are bit-equal for any
 * number of them. Nothing here allocates: a run works in the caller's workspace and in each worker's scratch,
 * both 64-byte aligned. Leaves to others: operators, shapes, broadcasting.
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
    /* With CUSTOM_B: it is written as packed, all of a chunk's kc at once and filled up with zeros to whole
     * groups where pairs are bf16, [kc / 2][dw][2]; of s32 lines [groups][dw][4 bytes], without sums over k:
     * the zero points of A, as it is packed, are 0 */
    ORTC_PRODUCT_GROUPED_B = 128u,
    /* B is as it is, and tasks pack what they are at, with the bits of one that is packed: of a run that does
     * not keep it */
    ORTC_PRODUCT_PASSING_B = 256u,
    ORTC_PRODUCT_SYMMETRIC_B = 512u, /* of bytes: as it is packed its zero points are 0 */
    ORTC_PRODUCT_TRANS_C = 64u,      /* C and the residual are [n][m], dense; wants PACKED_B and f32 sums, for
                                   small m */
};

/* Where a task finds an operand. */
enum {
    ORTC_PRODUCT_PACKED, /* packed by the caller, once */
    ORTC_PRODUCT_SHARED, /* packed into the workspace by a first parallel loop */
    ORTC_PRODUCT_LOCAL,  /* packed by each task into its scratch */
    ORTC_PRODUCT_DIRECT, /* read where it lies */
};

/* ORTC_F32, F16, BF16, U8, I8; of C ORTC_I32 too. */
typedef struct ortc_product_types {
    ortc_dtype a, b, c; /* c: of the residual, too */
} ortc_product_types;

typedef struct ortc_product_plan {
    const ortc_product_line *line;
    ortc_product_types types;
    int64_t m, n, k, batch;
    uint32_t flags, threads;
    uint8_t how_a, how_b; /* ORTC_PRODUCT_PACKED ... */
    uint8_t alone;   /* a line that SPLITs B: every block makes pieces for itself, not for all of a task */
    uint8_t unasked; /* one row's B comes as fast when nothing asks for it */
    uint8_t dot;     /* m == 1 and rows of B are contiguous: dot products, nothing is packed */
    /* Packed B of 16 bits over many blocks of rows: a task widens each panel once, for this line of f32; else
     * NULL. The same bits. */
    const ortc_product_line *wide;
    /* n == 1: run as the transposed product; m, n and flags above are those of that one */
    uint8_t swapped;
    /* matrices one after the other, each split over threads; else a task is within one */
    uint8_t batch_outside;
    int64_t kc, chunks;     /* length of a chunk of K (the last may be shorter), and how many: >= 1 */
    int64_t packed_kc;      /* as they lie in a packed B: kc, or several */
    int64_t blocks, panels; /* of rows and of columns */
    int64_t task_blocks, task_panels, tasks_m, tasks_n;
    int64_t together; /* blocks of rows whose finished tiles of a panel get what a tail does not give them */
    int64_t local_panels; /* panels packed at a time by a task when how_b is LOCAL; that one row goes over */
    /* Raw sums between chunks lie in C; else, where there are chunks or TRANS_C, in scratch: all of a task's
     * */
    uint8_t sums_in_c;
    /* groups of K whose part of a panel of B stays in L1 while a task's blocks pass over it, their sums lying
     * at_near in between; 0: all of K at once */
    int64_t near;
    uint8_t sums_rows; /* rows of bytes lie unpacked, and a task sums them up */
    /* bytes in scratch */
    size_t at_row_sums, at_b, at_wide, at_pieces, at_sums, at_near, at_tile, at_residual;
    size_t workspace, scratch; /* bytes: of the run, of each worker */
    double flops, bytes;       /* of one run, for cost models */
} ortc_product_plan;

/* Plans a product of the given extents (each >= 0, 0 is safe) for runs of at most so many threads (0: not
 * known), on which results' bits do not depend. Returns 0, or -1 when a size does not fit in memory's address
 * space. Thread: any. */
int ortc_product_plan_init(ortc_product_plan *plan, const ortc_product_line *line,
                           const ortc_product_types *types, int64_t m, int64_t n, int64_t k, int64_t batch,
                           uint32_t flags, uint32_t threads);

/* Loops of the caller, as ortc_parallel (op.h): body over 0..n in chunks of `grain`, `scratch` per worker. A
 * status other than 0 ends the run and is returned by it. */
typedef void ortc_product_body(void *arg, int64_t begin, int64_t end, void *scratch);
typedef struct ortc_product_threads {
    int32_t (*parallel)(void *context, int64_t n, int64_t grain, ortc_product_body *body, void *arg);
    void *context;
} ortc_product_threads;

/* One matrix of the batch. */
typedef struct ortc_product_item {
    const void *a, *b; /* plain or packed, as the plan's flags say; not read where CUSTOM_ */
    void *c;
    const float *bias_col; /* n elements or NULL */
    const float *bias_row; /* m elements or NULL */
    const void *residual;  /* [m][n] or NULL; may be c itself when the plan has one chunk and no TRANS_C */
    /* s32 lines: zero points of the rows of A (m) and the columns of B (n); NULL: one for all (zero_a,
     * zero_b) */
    const int32_t *zeros_a, *zeros_b;
} ortc_product_item;

/* What happens to finished sums beyond a tail: once for each tile, in L1, f32, rows `ld` apart (all of it
 * contiguous but for tiles of a product whose K is cut), scaled, with biases, residual and the tail's
 * activation. (row0, col0) is the tile's place in C as it is stored, TRANS_C or not; the rows of a batch's
 * matrices count on: row0 is of [batch * rows][cols]. */
typedef void ortc_tile_fn(void *arg, float *tile, size_t rows, size_t cols, size_t ld, int64_t row0,
                          int64_t col0);

/* s32 lines: what happens to the sums of a finished tile, zero points taken off, and that they are stored:
 * nothing else is, of tails and of C. (row0, col0) as above. */
typedef void ortc_sums_fn(void *arg, int32_t *sums, size_t rows, size_t cols, size_t ld, int64_t row0,
                          int64_t col0);

typedef struct ortc_product_args {
    ortc_product_item item; /* the matrices; with a batch, what `locate` starts from */
    int64_t lda, ldb, ldc;  /* row strides in elements; of packed operands not read */
    int64_t residual_stride;
    float alpha, beta; /* see ortc_uk_tail_f32 */
    int32_t act;       /* ORTC_UK_ACT_* */
    float lo, hi;
    int64_t backward; /* so many shares of the tasks, each from its end: what of B the thread that has a share
                         read last in the run before is still in its cache. 0: all from the begin */
    int32_t zero_a, zero_b; /* s32 lines: subtracted from each element of A, of B */
    ortc_tile_fn *tile;     /* NULL: nothing */
    ortc_sums_fn *sums;     /* s32 lines; NULL: as `types.c` and the tail say */
    void *tile_arg;         /* of both */
    /* Moves the pointers to matrix `index` of the batch; NULL only if the batch is 1. */
    void (*locate)(const void *arg, int64_t index, ortc_product_item *item);
    /* CUSTOM_B: writes rows k0.. of columns n0.. of B of matrix `index`, in B's type, as [kc][dw], nc <= dw
     * columns, rest zero. CUSTOM_A: the same of the transpose of A. */
    void (*pack)(const void *arg, int64_t index, int64_t k0, int64_t kc, int64_t n0, int64_t nc, void *dst,
                 size_t dw);
    const void *arg; /* of locate and pack */
    void *workspace;
} ortc_product_args;

/* Thread: any, each with its own workspace. Returns 0 or what `parallel` returned. */
int32_t ortc_product_run(const ortc_product_plan *plan, const ortc_product_args *args,
                         const ortc_product_threads *threads);

/* A tail over rows of sums in memory, `ld` apart: what a micro-kernel does on registers. */
void ortc_product_tail(const ortc_uk_tail_f32 *, float *sums, size_t ld, size_t rows, size_t cols);

/* Bytes of an element of the types that occur here; an address so many elements on. */
static inline int64_t ortc_product_size(ortc_dtype t)
{
    return ortc_dtype_bits(t) / 8; /* of whole bytes: results of integers are of any such type */
}
static inline void *ortc_product_at(const void *p, int64_t elements, ortc_dtype t)
{
    return (char *)(uintptr_t)p + elements * ortc_product_size(t);
}

/* The line for operands of a type of float, whose products are summed up in f32. Thread: any. */
const ortc_product_line *ortc_product_line_for(ortc_dtype t);

/* n elements as f32: src itself, or widened into `space`. */
const float *ortc_product_floats(const ortc_product_line *line, ortc_dtype t, const void *src, int64_t n,
                                 float *space);

/* The packed form of a constant operand depends on its own type and extents, TRANS_* and the form, not on the
 * other operand: a plan for any m packs the same B. `extent`: m of A, n of B. Bytes: 0 if it does not fit.
 * Fill: `dst` 64-byte aligned, `src` of any alignment; `along`: k runs along its rows (A as it is, B with
 * TRANS_B). Thread: any. */
size_t ortc_product_packed_bytes(const ortc_product_form *form, int64_t extent, int64_t k);
int32_t ortc_product_fill(const ortc_product_moves *moves, const ortc_product_form *form, ortc_dtype type,
                          int64_t extent, int64_t k, int along, const void *src, int64_t ld, void *dst,
                          const ortc_product_threads *threads);
typedef void ortc_product_done(void *context, const void *src, size_t bytes);
/* The same for what is not multiplied soon: forms of a megabyte and more go past the caches, a part of the
 * source after the other, dense; `done` (NULL: nobody wants to know) hears of each. */
int32_t ortc_product_fill_far(const ortc_product_moves *moves, const ortc_product_form *form, ortc_dtype type,
                              int64_t extent, int64_t k, int along, const void *src, void *dst,
                              const ortc_product_threads *threads, ortc_product_done *done);

#endif
