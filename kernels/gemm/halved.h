/* Products of u8 and constant s8 by weights that are halved (kernels/common/vector/halves.h). A is read where
 * it lies, in words of four bytes of a row.
 *
 * B is packed in panels of two registers of columns: words [panel][k / 4][column][4], the sums over k of its
 * columns, s32, and what is taken once more, each for a register of columns.
 */
#ifndef ORTC_KERNELS_GEMM_HALVED_H
#define ORTC_KERNELS_GEMM_HALVED_H

#include "kernels/common/uk.h"
#include "ortc/op.h"
#include "product.h"

enum { ORTC_HALVED_ROWS = 6 }; /* of a tile, at most */

/* What one tile reads of B. */
typedef struct ortc_halved_panel {
    const int8_t *w;         /* [word][2 lanes][4] */
    const uint32_t *more[2]; /* of each register: words that are taken once more, */
    const int8_t *more_w[2]; /* by these, [lanes][4] */
    size_t n_more[2];
    const int32_t *first; /* [2 lanes]: what sums begin with */
} ortc_halved_panel;

typedef struct ortc_halved_body {
    size_t lanes;
    /* Sums [rows][ld] of rows 1 .. ORTC_HALVED_ROWS, `lda` bytes apart, and a panel. */
    void (*tile)(size_t rows, size_t words, const uint8_t *a, size_t lda, const ortc_halved_panel *,
                 int32_t *sums, size_t ld);
    /* How many of n registers of weights, `step` bytes apart, have pairs that are too far from 0. */
    size_t (*far)(size_t n, const int8_t *w, size_t step);
    /* Whether weights of a register have some; if so they are halved, the other halves (0 of other pairs)
     * going to `more`. */
    int (*split)(int8_t *w, int8_t *more);
} ortc_halved_body;

/* NULL: the machine has none, or better ones. Thread: any. */
const ortc_halved_body *ortc_halved_get(void);

/* Input `port` of a plan, a constant B of u8 or s8, [k][n], or [n][k] where `along`, as it is packed for the
 * body. */
ortc_status ortc_halved_packed(ortc_plan *p, uint32_t port, const ortc_halved_body *, int64_t n, int64_t k,
                               int along, const ortc_packed **out);

/* A product: C's rows go to `sums` in parts (kernels/gemm/product.h), with (row, column) of the whole. */
typedef struct ortc_halved {
    const ortc_halved_body *body;
    int64_t m, n, k;
    int64_t rows, panels; /* of a task */
    size_t scratch;       /* bytes for each worker */
    size_t workspace;     /* bytes: what sums begin with, and A where it is not read as it lies */
    int copies, flip;     /* flip: A is s8 */
} ortc_halved;
void ortc_halved_init(const ortc_halved_body *, int64_t m, int64_t n, int64_t k, ortc_dtype a,
                      uint32_t threads, ortc_halved *);

typedef struct ortc_halved_args {
    const uint8_t *a;
    const void *b;      /* packed */
    int32_t zero;       /* of A, as it is stored */
    ortc_sums_fn *sums; /* NULL: they are C */
    void *arg;
    int32_t *c;
    void *workspace;
} ortc_halved_args;
int32_t ortc_halved_run(const ortc_halved *, const ortc_halved_args *, const ortc_product_threads *);

#endif
