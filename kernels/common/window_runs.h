/* kernels/common/window_runs.h: sliding windows over values whose pixels are blocks of channels, cut into
 * runs of pixels that see the same part of their windows: for pools.
 *
 * A run lies along a row, or down a column: windows inside of the image are rows of one run each, the columns
 * at its sides are runs down the rows, what is left are corners. A tap says where it is read for the first
 * pixel of a run and how far it moves with each; taps in the padding read one block of `fill`, and do not
 * move. So the bodies know no border, nothing is copied, and the padding has whatever value it has to have.
 */
#ifndef ORTC_KERNELS_WINDOW_RUNS_H
#define ORTC_KERNELS_WINDOW_RUNS_H

#include <stddef.h>
#include <stdint.h>

typedef struct ortc_window_tap {
    const char *x;
    ptrdiff_t step; /* bytes */
} ortc_window_tap;

typedef struct ortc_window_extents { /* planes, rows, columns; missing ones are 1, their pads 0 */
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3], pad[3];
} ortc_window_extents;

typedef struct ortc_window_run {
    int64_t o[3];      /* the first pixel of the output: plane, row, column */
    int64_t n, y_step; /* pixels; from one to the next, in pixels of the output */
    int64_t taps;
    const ortc_window_tap *tap; /* [planes][rows][columns] of the window */
} ortc_window_run;

typedef void ortc_window_run_fn(void *arg, const ortc_window_run *run);

/* All runs of rows row0 .. row1-1 of a plane of the output. x: the image's block, `pixel` bytes for a pixel;
 * tap: space for all of a window. */
void ortc_window_runs(const ortc_window_extents *e, const char *x, ptrdiff_t pixel, const char *fill,
                      int64_t plane, int64_t row0, int64_t row1, ortc_window_tap *tap,
                      ortc_window_run_fn *run, void *arg);

#endif
