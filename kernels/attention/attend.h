/* kernels/attention/attend.h: what the cpu's Attention does with rows of scores, a body for every instruction
 * set (attend_vec.c). Arrays of functions go by ORTC_FLOAT_*; sums are f32; memory of any alignment.
 */
#ifndef ORTC_KERNELS_ATTEND_H
#define ORTC_KERNELS_ATTEND_H

#include "kernels/common/vector/convert.h"

enum { ORTC_ATTEND_GROUP = 32 }; /* elements of k that lie together in tiles of bf16 */

/* What is added to a row of scores, by the type of its elements. */
enum {
    ORTC_MASK_F32 = ORTC_FLOAT_F32,
    ORTC_MASK_F16 = ORTC_FLOAT_F16,
    ORTC_MASK_BF16 = ORTC_FLOAT_BF16,
    ORTC_MASK_BOOL, /* 0 where it is true, else -infinity */
    ORTC_MASK_NONE
};

/* One row between blocks of keys: the sums so far are of 2^(score - most), scores being in units of log 2. */
typedef struct ortc_attend_row {
    double sum;
    float most; /* -infinity at first */
} ortc_attend_row;

/* A row of products: those from `begin` to `end`, times a factor, are the scores, others weigh 0. */
typedef struct ortc_attend_products {
    size_t begin, end;
    float *s;         /* overwritten */
    const void *mask; /* mask[j] is of s[j] */
    ortc_attend_row *row;
    uint16_t *to; /* weights of bf16 */
    float by;     /* what the row's results so far are to be multiplied by */
} ortc_attend_products;
#define ORTC_ATTEND_TOGETHER 4 /* rows at a time: one waits for its largest score beside the others */

typedef struct ortc_attend_vec {
    /* s[r][j] = the product of row r of q, dense, and row j of k; few rows: k is read once, q many times */
    void (*dots[3])(size_t rows, size_t keys, size_t d, const float *q, const void *k, size_t ldk, float *s,
                    size_t lds);
    /* o[r] += the sum over keys, in order, of p[r][j] v[j]; o is dense */
    void (*mix[3])(size_t rows, size_t keys, size_t d, const float *p, size_t ldp, const void *v, size_t ldv,
                   float *o);
    /* y = by * x, rounded once */
    void (*store[3])(size_t n, const float *x, float by, void *y);
    /* Products of up to ORTC_ATTEND_TOGETHER rows become weights, where they are: scores, capped by softcap *
     * tanh(s / softcap) where softcap > 0, the mask added, and 2^(s / log 2 - most) with the largest so far.
     * Each row begins at 0 here. The last vector is a whole one, of which what is behind becomes 0. */
    void (*weigh)(size_t rows, ortc_attend_products *, float factor, int kind, float softcap);
    /* As weigh, of n products each, whole groups of ORTC_ATTEND_GROUP, whose weights are rounded to bf16 and
     * go group by group, `step` elements apart, to where the rows say. For units of bf16, NULL where there is
     * none. */
    void (*halve)(size_t rows, ortc_attend_products *, size_t n, float factor, int kind, float softcap,
                  size_t step);
    void (*scale)(size_t n, float *x, float by);
} ortc_attend_vec;
ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_attend_vec)

#endif
