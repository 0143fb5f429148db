/* kernels/einsum/steps.h: an equation over operands of known extents as steps that the cpu provider has
 * kernels for: moves, products of matrices, products of elements. */
#ifndef ORTC_KERNELS_EINSUM_STEPS_H
#define ORTC_KERNELS_EINSUM_STEPS_H

#include "kernels/einsum/equation.h"
#include "kernels/gemm/product.h"
#include "ortc/op.h"

enum {
    ORTC_EINSUM_MOVE,     /* c = a */
    ORTC_EINSUM_SUM,      /* of each index of the first dims the sum over the others, see k and across */
    ORTC_EINSUM_PRODUCT,  /* of each index of the dims a product of matrices */
    ORTC_EINSUM_MULTIPLY, /* of each index the product of two elements; c lies as dims say */
    ORTC_EINSUM_DOT, /* of each index the sum of k products, elements of a and of b beside each other; so c */
};
enum { ORTC_EINSUM_IN_WORKSPACE = -1, ORTC_EINSUM_RESULT = -2 };

typedef struct ortc_einsum_place {
    int32_t input; /* or ORTC_EINSUM_IN_WORKSPACE, _RESULT */
    ortc_dtype type;
    size_t offset; /* bytes, in the workspace */
} ortc_einsum_place;

typedef struct ortc_einsum_step {
    int kind;
    ortc_einsum_place a, b, c;
    int32_t rank;
    int64_t dims[ORTC_RANK_LIMIT], a_step[ORTC_RANK_LIMIT], b_step[ORTC_RANK_LIMIT], c_step[ORTC_RANK_LIMIT];
    /* SUM: dims that are summed over, behind the others; elements of a, `step` apart, that lie innermost, and
     * whether they are summed up, too */
    int32_t summed;
    int64_t k, step;
    bool across;
    ortc_product_plan product;
    int64_t lda, ldb, ldc;
    const ortc_packed *packed; /* b, a constant; NULL: as it lies */
} ortc_einsum_step;

typedef struct ortc_einsum_steps {
    uint32_t count;
    bool zero; /* sums have no terms: there are no steps */
    ortc_einsum_step *step;
    size_t at_product; /* bytes: where products work in the workspace */
} ortc_einsum_steps;

/* Asks for workspace and scratch; scratch is for the products and besides for `scratch` bytes. On failure
 * nothing is kept. */
ortc_status ortc_einsum_plan(ortc_plan *, const char *equation, size_t scratch, ortc_einsum_steps *out);

#endif
