/* kernels/gemm/uk_act.h: the activations that are cheap enough for registers, in one place for micro-kernels
 * and for those who read epilogues (tail.h). Others go over the tile while it is in L1 (product.h). */
#ifndef ORTC_KERNELS_GEMM_UK_ACT_H
#define ORTC_KERNELS_GEMM_UK_ACT_H

enum {
    ORTC_UK_ACT_NONE = 0,
    ORTC_UK_ACT_CLIP = 1,  /* min(max(x, lo), hi): Relu is lo 0, hi +inf; a NaN stays NaN */
    ORTC_UK_ACT_LEAKY = 2, /* x < 0 ? x * lo : x; PRelu with one slope */
};

#endif
