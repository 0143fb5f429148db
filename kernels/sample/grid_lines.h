/* GridSample, DeformConv and regions: the bodies' contract (grid_lines_vec.c). Positions lie beside each
 * other; of a tap without a pixel place and weight are 0, and then no pixel counts, whatever it is. */
#ifndef ORTC_KERNELS_SAMPLE_GRID_LINES_H
#define ORTC_KERNELS_SAMPLE_GRID_LINES_H

#include "kernels/common/uk.h"

typedef struct ortc_grid_lines {
    /* Nearest and linear, without reflection, as ortc_grid_around (grid.h): the taps of a dim of `extent`
     * pixels, at[k * pitch + i] and weight[k * pitch + i], one or two of them. */
    void (*around)(size_t n, const float *normalized, int64_t extent, int linear, int border, int corners,
                   size_t pitch, int32_t *at, float *weight);
    /* Those of one more dim before: at = at + extent * of, weight = weight * by. */
    void (*combine)(size_t n, int32_t step, const int32_t *of, const float *by, const int32_t *at,
                    const float *weight, int32_t *to, float *to_weight);
    /* y[i] = sum over taps k of weight[k * pitch + i] * x[at[k * pitch + i]] */
    void (*sample)(size_t n, size_t taps, size_t pitch, const float *x, const int32_t *at,
                   const float *weight, float *y);
    /* y[i] (+)= weight[i] * x[i]; `first`: it is what comes out. */
    void (*add)(size_t n, const float *x, const float *weight, int first, float *y);
    /* Of pixels whose n channels lie beside each other, `pitch` apart: y[c] (+)= sum over k of weight[k] *
     * x[at[k] * pitch + c], or, without weights, the largest, as ref's MaxRoiPool has it of NaN. */
    void (*blend)(size_t n, size_t taps, size_t pitch, const float *x, const int32_t *at, const float *weight,
                  int first, float *y);
} ortc_grid_lines;
ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_grid_lines)

#endif
