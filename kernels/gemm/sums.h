/* kernels/gemm/sums.h: MatMul and Gemm as sums of products of matrices that are given by strides: what ref
 * has of every type (ref.c), and the cpu of f64 and of integers (cpu_sums.c). */
#ifndef ORTC_KERNELS_GEMM_SUMS_H
#define ORTC_KERNELS_GEMM_SUMS_H

#include "kernels/common/shape.h"
#include "kernels/common/uk.h"

typedef struct ortc_sums {
    const ortc_view *a, *b, *c; /* c: NULL, or what is added */
    ortc_view *y;
    int64_t m, n, k;
    int64_t a_row, a_col, b_row, b_col; /* strides in elements */
    int64_t c_row, c_col;
    double alpha, beta;
    ortc_walk batch; /* operands: elements where the matrices of A and B begin */
} ortc_sums;

/* Alpha and beta are 1: sums of integers are taken modulo their width. */
static inline bool ortc_sums_plain(const ortc_sums *j) { return j->alpha == 1 && (!j->c || j->beta == 1); }

ortc_status ortc_sums_prepare(const ortc_node *, ortc_prep *, void **out); /* of Gemm */

/* What a call asks for; false: of nothing. */
bool ortc_sums_of_matmul(ortc_call *, ortc_sums *);
bool ortc_sums_of_gemm(const void *state, ortc_call *, ortc_sums *);

ortc_status ortc_sums_go(ortc_call *, ortc_sums *); /* any type, one element after another */

/* Of k steps, rows[r][i * step] for r of ORTC_SUMS_ROWS times a panel's row of ORTC_SUMS_VECTORS registers:
 * the sums, as many registers for each row, to y. Integers wrap, so signed types need none of their own. */
enum { ORTC_SUMS_ROWS = 4, ORTC_SUMS_VECTORS = 3 };
typedef struct ortc_sums_body {
    size_t bytes; /* of a register */
    void (*f64)(size_t k, const void *const *rows, size_t step, const void *panel, void *y);
    void (*u32)(size_t k, const void *const *rows, size_t step, const void *panel, void *y);
} ortc_sums_body;
ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_sums_body)

extern const ortc_kernel ortc_cpu_matmul_sums, ortc_cpu_gemm_sums; /* cpu_sums.c */

#endif
