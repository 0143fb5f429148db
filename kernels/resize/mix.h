/* kernels/resize/mix.h: Resize on the cpu provider: what its two files share. */
#ifndef ORTC_KERNELS_RESIZE_MIX_H
#define ORTC_KERNELS_RESIZE_MIX_H

#include "kernels/common/vector/convert.h"
#include "kernels/resize/lines.h"
#include "kernels/resize/resize.h"

/* Taps of all axes, and those of the last as the bodies read them. Of a plan, where it knows the values that
 * they follow from, else of a run. */
typedef struct ortc_resize_tables {
    ortc_resize_axis axes[ORTC_RANK_LIMIT];
    bool copies;          /* elements are only moved */
    bool ends_outside;    /* of the last axis some are extrapolated */
    bool doubles;         /* along it each element comes twice */
    int64_t taps;         /* of the last axis */
    const int32_t *index; /* [taps][out] of it; 0 where it is outside */
    const float *weight;  /* likewise, and 0 there */
    const double *wide;   /* likewise */
} ortc_resize_tables;

/* How rows are made of rows: axes before the last one that are resized, and how many rows along the last one
 * of them, and of combinations of the others, are kept when they are resized along the last, or widened. */
typedef struct ortc_resize_rows {
    int32_t mixed[ORTC_RANK_LIMIT], n_mixed;
    int64_t near, far;
    bool shrinks; /* f32: rows become shorter, and are added up before that */
} ortc_resize_rows;

typedef struct ortc_resize_job {
    const ortc_resize_tables *t;
    const ortc_resize_lines *lines;
    const ortc_convert *convert;
    ortc_resize_rows rows;
    const char *x;
    char *y;
    ortc_dtype dtype;
    size_t pixel; /* bytes */
    int blocked;
    int32_t rank;
    int64_t in[ORTC_RANK_LIMIT], out[ORTC_RANK_LIMIT]; /* channels: in blocks, where they are */
    unsigned char fill[16];                            /* an element outside of a crop */
} ortc_resize_job;

void ortc_resize_rows_init(ortc_resize_rows *, int32_t rank, const ortc_resize_axis *axes, bool wide);
/* What needs the most scratch, whichever axes are resized. */
void ortc_resize_rows_any(ortc_resize_rows *, int32_t rank);
/* Bytes of scratch for rows of so many elements; wide: sums are doubles. */
size_t ortc_resize_scratch(const ortc_resize_rows *, int64_t in, int64_t out, bool wide);
static inline bool ortc_resize_is_wide(ortc_dtype t) { return !(ORTC_TYPES_BY_F32 >> t & 1); }

/* Rows of the result, the first of them with an empty scratch; at: index of the row. */
void ortc_resize_mix_begin(const ortc_resize_job *, void *scratch);
void ortc_resize_mix_row(const ortc_resize_job *, const int64_t *at, char *y, void *scratch);

#endif
