/* Pieces of packed operands, from whatever type and order: what product_pack.c gives to the run in
 * product.c. */
#ifndef ORTC_KERNELS_GEMM_PRODUCT_PACK_H
#define ORTC_KERNELS_GEMM_PRODUCT_PACK_H

#include "product.h"

/* An operand in memory: [extent][ld], k along its rows, or [k][ld]. Or one that exists only as a function,
 * which writes k0.. of columns first.. as [kc][dw] (ortc_product_args.pack). */
typedef struct ortc_product_source {
    const ortc_product_moves *moves;
    const void *data;
    ortc_dtype type;
    int64_t ld;
    int along;
    void (*custom)(const void *arg, int64_t index, int64_t k0, int64_t kc, int64_t n0, int64_t nc, void *dst,
                   size_t dw);
    const void *arg;
    int64_t index;
    int grouped; /* custom writes the form's groups */
} ortc_product_source;

/* A panel's place: `have` rows or columns of the source from `first` on, `width` wide when packed; the chunk
 * k0 .. k0+kc-1. */
typedef struct ortc_product_panel {
    int64_t first, have, width, k0, kc;
} ortc_product_panel;

/* Packs steps `from` .. `from + count - 1` of the panel's chunk; `from` a multiple of ORTC_FORM_GROUP, count
 * too unless it ends the chunk. dst: where the panel begins. Pieces of a panel are packed in order. */
void ortc_product_pack(const ortc_product_form *form, const ortc_product_source *src,
                       const ortc_product_panel *at, int64_t from, int64_t count, void *dst);

/* Panels q0 .. q1-1 of a chunk, of `panels` in all. dst: where the chunk begins. */
void ortc_product_pack_panels(const ortc_product_form *form, const ortc_product_source *src, int64_t extent,
                              int64_t panels, int64_t q0, int64_t q1, int64_t k0, int64_t kc, void *dst);

#endif
