/* kernels/sample/grid.h: where GridSample reads, for the kernels of all providers (ref_grid.c). */
#ifndef ORTC_KERNELS_SAMPLE_GRID_H
#define ORTC_KERNELS_SAMPLE_GRID_H

#include "kernels/common/shape.h"

enum { ORTC_GRID_NEAREST, ORTC_GRID_LINEAR, ORTC_GRID_CUBIC };
enum { ORTC_GRID_ZEROS, ORTC_GRID_BORDER, ORTC_GRID_REFLECTION };

typedef struct ortc_grid_state {
    int mode, padding;
    bool corners;
} ortc_grid_state;

/* Of one dim. */
typedef struct ortc_grid_taps {
    int n;
    int64_t at[4]; /* -1: a zero */
    double weight[4];
} ortc_grid_taps;

static inline int ortc_grid_taps_of(const ortc_grid_state *s)
{
    return s->mode == ORTC_GRID_NEAREST ? 1 : s->mode == ORTC_GRID_LINEAR ? 2 : 4;
}

/* The pixels around a normalized coordinate of a dim of n, n > 0. */
ortc_grid_taps ortc_grid_around(const ortc_grid_state *, double normalized, int64_t n);
ortc_status ortc_grid_prepare(const ortc_node *, ortc_prep *, void **out); /* an ortc_grid_state */

#endif
