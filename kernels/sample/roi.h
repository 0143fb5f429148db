/* kernels/sample/roi.h: where regions of interest read: RoiAlign's grid of points, MaxRoiPool's whole pixels,
 * as ref (ref_roi.c, ref_roi_pool.c) and the cpu provider (cpu_roi.c) find it. Index 0 is rows, 1 columns. */
#ifndef ORTC_KERNELS_SAMPLE_ROI_H
#define ORTC_KERNELS_SAMPLE_ROI_H

#include "kernels/common/shape.h"

typedef struct ortc_roi_state {
    bool half_pixel, max;
    int64_t ratio;
    double scale;
} ortc_roi_state;

typedef struct ortc_roi {
    double start[2], bin[2];
    double points[2]; /* of a bin */
} ortc_roi;

ortc_status ortc_roi_prepare(const ortc_node *, ortc_prep *, void **out);

/* Region r of a call whose result has so many bins. */
ortc_roi ortc_roi_of(const ortc_roi_state *, const ortc_view *rois, const int64_t bins[2], int64_t r);

/* Whether a point lies at `v` of so many pixels, and if so the two pixels around it and the second one's
 * weight. */
bool ortc_roi_point(double v, int64_t extent, int64_t at[2], double *part);

/* That all regions are of images that there are, and how many points the largest of their bins has. */
ortc_status ortc_roi_check(const ortc_roi_state *, ortc_call *, double *points);

ortc_status ortc_roi_pool_prepare(const ortc_node *, ortc_prep *, void **out); /* state: double, the scale */

/* The pixels of bin `i` of MaxRoiPool's region r, of `bins`, along dim k of `extent` pixels. */
void ortc_roi_pool_bin(double scale, const ortc_view *rois, int64_t r, int k, int64_t i, int64_t bins,
                       int64_t extent, int64_t *begin, int64_t *end);

ortc_status ortc_roi_pool_check(ortc_call *);

extern const ortc_kernel ortc_cpu_roi_align, ortc_cpu_max_roi_pool; /* cpu_roi.c */

#endif
