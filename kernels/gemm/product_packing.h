/* Constant operands of products, packed once: what the cpu's kernels ask their plans for. */
#ifndef ORTC_KERNELS_GEMM_PRODUCT_PACKING_H
#define ORTC_KERNELS_GEMM_PRODUCT_PACKING_H

#include "kernels/gemm/product.h"
#include "ortc/op.h"

/* `groups` matrices one after the other: [extent][k] where `along`, else [k][extent]. */
typedef struct ortc_product_constant {
    int64_t groups, extent, k;
    int32_t along;
    ortc_dtype type; /* of the constant */
} ortc_product_constant;

/* The packed form of constant input `port`; every group is ortc_product_packed_bytes long. */
ortc_status ortc_product_packed(ortc_plan *p, uint32_t port, const ortc_product_form *form,
                                const ortc_product_constant *what, const ortc_packed **out);
/* The same of B of the line; but a run that would not keep it has none (*out NULL) where m is 1, or the form
 * large, and the product makes what it needs on the way: ORTC_PRODUCT_PASSING_B, the same bits. */
ortc_status ortc_product_packed_or_left(ortc_plan *p, uint32_t port, const ortc_product_line *line,
                                        const ortc_product_constant *what, int64_t m,
                                        const ortc_packed **out);

/* Whether the zero points of MatMulInteger's B or ConvInteger's W, input 3 of the node, are known to be 0
 * once it is moved by so much. */
int ortc_product_symmetric(const ortc_view *in, uint32_t n_in, int64_t moved);
/* The same of the second operand as it is packed in that form. */
int ortc_product_symmetric_as(const ortc_view *in, uint32_t n_in, const ortc_product_form *form);

#endif
