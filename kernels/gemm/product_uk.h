/* The f32 GEMM micro-kernels: their contract, and the table that lists them.
 *
 * A micro-kernel computes one tile, at most MR rows by NR columns, of C = epilogue(A B) over one chunk of K.
 * It has no state, allocates nothing, and trusts its arguments (it asserts them). Layout (M, N, K as in the
 * operator; "step" is the ISA's vector, in floats):
 *   A  packed block  [K][mr]     mr consecutive rows of A, mr <= MR exact, nothing padded
 *   B  packed panel  [K][w]      w = NR, or for the last panel its columns rounded up to `step`; padding is
 *      zero
 *   C  row-major, any row stride; columns beyond nr are neither read nor written
 * B may also be read where it lies (row stride ldb, B_EXACT): then nothing beyond nr columns is read.
 * The rows of a matrix are dealt evenly to ceil(M/MR) blocks, so there is no scalar tail in M; the tail in N
 * is a mask. The epilogue runs on registers before the only store; when K is cut in chunks, C holds the raw
 * sums between them, and the epilogue comes with the last chunk. Leaves to others: blocking, packing order,
 * threads (product.h).
 */
#ifndef ORTC_KERNELS_GEMM_PRODUCT_UK_H
#define ORTC_KERNELS_GEMM_PRODUCT_UK_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* One float at any byte address: constants lie in model files at any alignment. Compiles to a plain load. */
static inline float ortc_uk_load_f32(const float *p)
{
    float v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* Activations cheap enough for registers. Others go over the tile while it is in L1 (product.h, `post`). */
enum {
    ORTC_UK_ACT_NONE = 0,
    ORTC_UK_ACT_CLIP = 1,  /* min(max(x, lo), hi): Relu is lo 0, hi +inf; a NaN stays NaN */
    ORTC_UK_ACT_LEAKY = 2, /* x < 0 ? x * lo : x; PRelu with one slope */
};

/* What happens to a finished sum s of row i, column j, in this order:
 *   s*alpha + bias_col[j] + bias_row[i] + beta*residual[i*residual_stride + j], then the activation.
 * Pointers are to the tile's own first element; NULL: that term is left out. */
typedef struct ortc_uk_tail_f32 {
    float alpha, beta;
    const float *bias_col;
    const float *bias_row;
    const float *residual;
    size_t residual_stride; /* elements */
    int32_t act;
    float lo, hi;
} ortc_uk_tail_f32;

enum {
    ORTC_UK_ACCUMULATE = 1u, /* C holds the sums of earlier chunks */
    ORTC_UK_B_EXACT = 2u,    /* b has only nr readable columns: it is not a packed panel */
};

/* mr 1..MR; nr 1..NR; k >= 0; a [k][mr]; b [k][ldb]; tail NULL: store the raw sums, more chunks follow. */
typedef void ortc_uk_product_f32(size_t mr, size_t nr, size_t k, const float *a, const float *b, size_t ldb,
                                 float *c, size_t ldc, uint32_t flags, const ortc_uk_tail_f32 *tail);

/* Packing: w columns of k rows become dst [k][dw], dw >= w, columns w..dw-1 zero.
 * rows: src is [k][ld], a copy; transpose: src is [w][ld], k runs along its rows. */
typedef void ortc_uk_pack_f32(size_t w, size_t k, const float *src, size_t ld, float *dst, size_t dw);

/* y[j] = sum over i of x[i] * w[j*ldw + i], for nr rows of w, 1..8: matrix times vector where rows are
 * contiguous. */
typedef void ortc_uk_dot_f32(size_t nr, size_t k, const float *x, const float *w, size_t ldw, float *y);
#define ORTC_DOT_ROWS 8

/* One line of product_lines.inc. */
typedef struct ortc_product_line {
    const char *name;
    uint32_t isa;    /* bits of cpu_features.h, all needed */
    uint32_t mr, nr; /* the full tile */
    uint32_t step;   /* granularity of a last panel's width */
    uint32_t kc;     /* the longest chunk of K, and the length of chunks beyond it */
    ortc_uk_product_f32 *tile;
    ortc_uk_pack_f32 *pack_rows, *pack_transpose;
    ortc_uk_dot_f32 *dot;
} ortc_product_line;

#define ORTC_PRODUCT_LINE(isa_bit, isa, mr, nr, step, kc) \
    ortc_uk_product_f32 ortc_uk_product_f32_##mr##x##nr##_##isa; \
    ortc_uk_pack_f32 ortc_uk_pack_rows_f32_##isa, ortc_uk_pack_transpose_f32_##isa; \
    ortc_uk_dot_f32 ortc_uk_dot_f32_##isa;
#include "product_lines.inc"
#undef ORTC_PRODUCT_LINE

/* All of them, best first. Thread: any. */
extern const ortc_product_line ortc_product_lines[];
extern const size_t ortc_product_line_count;

/* The best that ortc_cpu_features() allows; never NULL. Thread: any. */
const ortc_product_line *ortc_product_select(void);

#endif
