/* One packed block of A, one packed panel of B: what product_pack.c gives to the run in product.c. */
#ifndef ORTC_KERNELS_GEMM_PRODUCT_PACK_H
#define ORTC_KERNELS_GEMM_PRODUCT_PACK_H

#include "product.h"

/* Rows row.. of A, chunk k0..k0+kc, as [kc][rows]. */
void ortc_product_pack_block(const ortc_product_line *uk, uint32_t flags, const float *a, int64_t lda,
                             int64_t row, int64_t rows, int64_t k0, int64_t kc, float *dst);

/* Columns n0.. of B, chunk k0..k0+kc, as [kc][width], zero behind nc. */
void ortc_product_pack_panel(const ortc_product_line *uk, uint32_t flags, const float *b, int64_t ldb,
                             int64_t n0, int64_t nc, int64_t k0, int64_t kc, float *dst, int64_t width);

/* Panels q0 .. q1-1 of B [k][n], chunk k0..k0+kc, to their places behind `dst`, where the whole packed B
 * begins. */
void ortc_product_pack_panels(const ortc_product_line *uk, uint32_t flags, const float *b, int64_t ldb,
                              int64_t n, int64_t q0, int64_t q1, int64_t k0, int64_t kc, float *dst);

/* Blocks or panels that a thread packs at a time. */
int64_t ortc_product_pack_grain(const ortc_product_line *uk, int64_t k);

#endif
