/* kernels/rearrange/rearrange.h: what the family's files share. */
#ifndef ORTC_KERNELS_REARRANGE_H
#define ORTC_KERNELS_REARRANGE_H

#include "kernels/common/move.h"
#include "kernels/common/shape.h"
#include "kernels/common/window.h"
#include "kernels/common/strings.h"

/* op_pad.c */
ortc_status ortc_infer_pad(ortc_infer *);
ortc_status ortc_lift_pad(ortc_lift *);
ortc_status ortc_infer_center(ortc_infer *);

/* ref_pad.c: what the cpu's Pad shares */
enum { ORTC_PADDING_CONSTANT, ORTC_PADDING_REFLECT, ORTC_PADDING_EDGE, ORTC_PADDING_WRAP };
int64_t ortc_pad_source(int mode, int64_t at, int64_t n);
ortc_status ortc_pad_before(ortc_call *, int64_t *before);
/* What CenterCropPad has before the input, of each dim; negative: cut off. */
void ortc_center_before(const ortc_view *x, const ortc_view *y, int64_t *before);
/* the state is an int, ORTC_PADDING_* */
ortc_status ortc_pad_prepare(const ortc_node *, ortc_prep *, void **out);

/* ref_depth.c: the result of either as six dims, by strides of elements of X, whose dims are given */
typedef int64_t ortc_depth_dims[6];
ortc_status ortc_depth_prepare(const ortc_node *, ortc_prep *, void **out);
bool ortc_depth_is_crd(const void *state);
void ortc_depth_to_space(const void *state, const int64_t *x, ortc_depth_dims dims, ortc_depth_dims strides);
void ortc_space_to_depth(const void *state, const int64_t *x, ortc_depth_dims dims, ortc_depth_dims strides);

/* ref.c: Trilu's state is a bool, whether it is the upper part; the input k */
ortc_status ortc_trilu_prepare(const ortc_node *, ortc_prep *, void **out);
ortc_status ortc_trilu_plan(const void *state, ortc_plan *, void **pstate);
int64_t ortc_trilu_diagonal(const ortc_call *);

extern const ortc_kernel ortc_cpu_tile, ortc_cpu_trilu;                    /* cpu_moves.c */
extern const ortc_kernel ortc_cpu_depth_to_space, ortc_cpu_space_to_depth; /* cpu_moves.c */
extern const ortc_kernel ortc_ref_pad, ortc_ref_center;                    /* ref_pad.c */
extern const ortc_kernel ortc_ref_depth_to_space, ortc_ref_space_to_depth; /* ref_depth.c */
extern const ortc_kernel ortc_ref_col2im;                                  /* ref_col2im.c */

/* Col2Im (ref_col2im.c): what a call asks for. */
typedef struct ortc_col_job {
    const ortc_window *w;
    const ortc_view *x;
    ortc_view *y;
    int32_t spatial;
    int64_t block[ORTC_SPATIAL_LIMIT], places[ORTC_SPATIAL_LIMIT], image_count, block_count, place_count;
} ortc_col_job;
ortc_status ortc_col_prepare(const ortc_node *, ortc_prep *, void **out);
ortc_status ortc_col_read(const void *state, ortc_call *, ortc_col_job *);
extern const ortc_kernel ortc_cpu_col2im; /* cpu_col2im.c */

#endif
