/* Pools over values in blocks of 16 channels, up to three spatial dims: what a window sees is folded a vector
 * of channels at a time, where it lies (kernels/common/window_runs.h). Channels that only pad the last block
 * become 0.
 */
#ifndef ORTC_KERNELS_POOL_BLOCKS_H
#define ORTC_KERNELS_POOL_BLOCKS_H

#include "kernels/common/blocks.h"
#include "kernels/common/uk.h"
#include "kernels/common/window_runs.h"
#include "ortc/op.h"

enum { ORTC_POOL_MAX, ORTC_POOL_MEAN };

/* Means of integers of 8 bits that are numbers, which become such integers again. Scales are finite and above
 * 0. */
typedef struct ortc_pool_between {
    int x_signed, y_signed;
    int32_t x_zero, y_zero;
    float x_scale, y_scale;
} ortc_pool_between;

/* One run of n pixels; x and y of one type, or bytes. */
typedef struct ortc_pool_window {
    size_t taps;
    const ortc_window_tap *tap; /* the padding's: -infinity, or 0; of bytes the zero point */
    float count;                /* of elements of a window that count; not for MAX */
    size_t lanes;               /* channels that exist: those behind become 0 */
    void *y;
    size_t y_step; /* elements from a pixel to the next */
    const ortc_pool_between *between;
} ortc_pool_window;

/* By ORTC_POOL_* and ORTC_FLOAT_* (convert.h). */
typedef struct ortc_pool_blocks_uk {
    void (*window[2][3])(size_t n, const ortc_pool_window *w);
    /* acc[16] = fold(acc, n pixels of x); up to some thousand, so that a sum's error stays small */
    void (*all[2][3])(size_t n, const void *x, float *acc);
    void (*between)(size_t n, const ortc_pool_window *w); /* up to 4096 taps */
} ortc_pool_blocks_uk;
ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_pool_blocks_uk)

typedef struct ortc_pool_blocks {
    const ortc_pool_blocks_uk *uk;
    int fold, type;                   /* ORTC_POOL_*, ORTC_FLOAT_* */
    int global;                       /* one window that is the image; of the extents only in counts */
    const ortc_pool_between *between; /* of bytes, a MEAN that is not global; else NULL */
    ortc_window_extents extents;
    int64_t limit[3]; /* places at and behind it do not count; places before 0 do where `before` is set */
    int before;       /* padding counts */
    int64_t images, channels, blocks;
    int64_t in_count, out_count;
    int64_t rows, row_tasks, grain;
    size_t scratch; /* bytes for each worker */
} ortc_pool_blocks;

/* From fold, type, global, extents, limit, before, images and channels the rest; all extents above 0. */
void ortc_pool_blocks_init(ortc_pool_blocks *p);
/* How many places of the window of result o (plane, row, column) count. */
double ortc_pool_counted(const ortc_pool_blocks *p, const int64_t *o);
/* parallel: as ortc_parallel (op.h). Returns 0 or what it returned. */
int32_t ortc_pool_blocks_run(const ortc_pool_blocks *p, const void *x, void *y,
                             int32_t (*parallel)(void *context, int64_t n, int64_t grain,
                                                 ortc_parallel_fn body, void *arg),
                             void *context);

#endif
