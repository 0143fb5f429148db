/* kernels/shape/shape_ops.h: the family's parts, for its two tables: shape functions and liftings for op.c,
 * kernels for ref.c.
 */
#ifndef ORTC_KERNELS_SHAPE_OPS_H
#define ORTC_KERNELS_SHAPE_OPS_H

#include "kernels/common/shape.h"

/* op_rename.c: what changes dims and leaves elements where they are */
ortc_status ortc_infer_identity(ortc_infer *);
ortc_status ortc_infer_reshape(ortc_infer *);
ortc_status ortc_lift_reshape(ortc_lift *);
ortc_status ortc_infer_flatten(ortc_infer *);
ortc_status ortc_infer_squeeze(ortc_infer *);
ortc_status ortc_infer_unsqueeze(ortc_infer *);
ortc_status ortc_lift_axes(ortc_lift *); /* attribute axes becomes input 1 */
ortc_status ortc_infer_shape(ortc_infer *);
ortc_status ortc_infer_size(ortc_infer *);

/* op_move.c: what moves elements */
ortc_status ortc_infer_transpose(ortc_infer *);
ortc_status ortc_infer_concat(ortc_infer *);
ortc_status ortc_lift_concat(ortc_lift *);
ortc_status ortc_infer_split(ortc_infer *);
ortc_status ortc_lift_split(ortc_lift *);
ortc_status ortc_infer_expand(ortc_infer *);
ortc_status ortc_infer_constant_of_shape(ortc_infer *);

/* op_slice.c */
ortc_status ortc_infer_slice(ortc_infer *);
ortc_status ortc_lift_slice(ortc_lift *);
/* Elements that start, end and step take from a dim of `extent`, and the first of them. step is not 0. */
static inline int64_t ortc_slice_count(int64_t extent, int64_t start, int64_t end, int64_t step,
                                       int64_t *out_first)
{
    /* of a start; the standard's least is 0 for any step */
    const int64_t most = step > 0 ? extent : extent - 1;
    *out_first = 0;
    if (extent == 0) return 0;
    /* anything beyond is clamped anyway; sums below then fit */
    start = start < -extent ? -extent - 1 : start > extent ? extent : start;
    end = end < -extent ? -extent - 1 : end > extent ? extent : end;
    start += start < 0 ? extent : 0;
    end += end < 0 ? extent : 0;
    start = start < 0 ? 0 : start > most ? most : start;
    end = end < most - extent ? most - extent : end > most ? most : end;
    *out_first = start;
    if (step > 0) return start < end ? (end - start - 1) / step + 1 : 0;
    step = step == INT64_MIN ? INT64_MAX : -step;
    return end < start ? (start - end - 1) / step + 1 : 0;
}

/* What a slice takes of a dim: `count` elements, `step` apart, from the first on. */
typedef struct ortc_slice_range {
    int64_t first, count, step;
} ortc_slice_range;

/* Of each dim of in[0], by bounds on the host. false: they differ in number, an axis is outside of the rank
 * or given twice, or a step is 0. */
static inline bool ortc_slice_ranges(const ortc_view *in, uint32_t n_in, ortc_slice_range *ranges)
{
    const ortc_view *x = &in[0], *axes = n_in > 3 && in[3].dtype ? &in[3] : NULL,
                    *steps = n_in > 4 && in[4].dtype ? &in[4] : NULL;
    const int64_t n = ortc_view_count(&in[1]);
    bool seen[ORTC_RANK_LIMIT] = {false};
    for (uint32_t i = 2; i < n_in && i < 5; i++)
        if (in[i].dtype && ortc_view_count(&in[i]) != n) return false;
    for (int32_t d = 0; d < x->rank; d++) ranges[d] = (ortc_slice_range){0, x->dims[d], 1};
    for (int64_t i = 0; i < n; i++) {
        int32_t axis;
        const int64_t step = steps ? ortc_load_i64(steps->data, steps->dtype, i) : 1;
        if (!ortc_axis_of(axes ? ortc_load_i64(axes->data, axes->dtype, i) : i, x->rank, &axis) ||
            seen[axis] || step == 0)
            return false;
        ortc_slice_range *r = &ranges[axis];
        seen[axis] = true;
        r->step = step;
        r->count = ortc_slice_count(x->dims[axis], ortc_load_i64(in[1].data, in[1].dtype, i),
                                    ortc_load_i64(in[2].data, in[2].dtype, i), step, &r->first);
    }
    return true;
}

/* Strides by which a slice takes elements, and where it begins. false: as above. */
static inline bool ortc_slice_strides(const ortc_view *in, uint32_t n_in, int64_t *strides, int64_t *start)
{
    ortc_slice_range ranges[ORTC_RANK_LIMIT];
    *start = 0;
    if (!ortc_slice_ranges(in, n_in, ranges)) return false;
    ortc_dense_strides(in[0].rank, in[0].dims, strides);
    for (int32_t d = 0; d < in[0].rank; d++) {
        const ortc_slice_range r = ranges[d];
        *start += r.count > 0 ? r.first * strides[d] : 0;
        strides[d] = r.step == 1 || r.count > 1 ? strides[d] * r.step : 0; /* past the only one: nothing */
    }
    return true;
}

/* ref_move.c, ref_join.c: what the cpu's kernels (cpu.c) share with ref's, which is how a node is read, not
 * how it is run. */
ortc_status ortc_transpose_prepare(const ortc_node *, ortc_prep *, void **out);
ortc_status ortc_transpose_plan(const void *state, ortc_plan *, void **pstate);
/* The input's axis that is the result's axis d. */
int32_t ortc_transpose_axis(const void *state, int32_t rank, int32_t d);
void ortc_transpose_strides(const void *state, const ortc_view *x, int64_t *strides);
ortc_status ortc_slice_plan(const void *state, ortc_plan *, void **pstate);
/* the state is an int64_t, the axis */
ortc_status ortc_axis_prepare(const ortc_node *, ortc_prep *, void **out);
ortc_status ortc_concat_plan(const void *state, ortc_plan *, void **pstate);
ortc_status ortc_split_plan(const void *state, ortc_plan *, void **pstate);
/* as [outer, dims[axis], inner] */
void ortc_around(const ortc_view *v, int32_t axis, int64_t *outer, int64_t *inner);

/* Elements along the axis of Split's part i: as planned, or for one that nobody wants as listed, or equal
 * with a smaller last one. -1: not known yet. */
static inline int64_t ortc_split_part(const ortc_view *in, uint32_t n_in, const ortc_view *out,
                                      uint32_t n_out, int32_t axis, uint32_t i)
{
    const int64_t all = in[0].dims[axis], each = all / n_out + (all % n_out != 0);
    if (out[i].dtype) return out[i].dims[axis];
    if (n_in > 1 && in[1].dtype)
        return in[1].data && ortc_view_count(&in[1]) == n_out ? ortc_load_i64(in[1].data, in[1].dtype, i)
                                                              : -1;
    return i + 1 < n_out ? each : all - each * (n_out - 1);
}

/* Whether the parts make up the axis: their offsets are sums of what a run may have brought. */
static inline bool ortc_split_fits(const ortc_view *in, uint32_t n_in, const ortc_view *out, uint32_t n_out,
                                   int32_t axis)
{
    int64_t left = in[0].dims[axis];
    for (uint32_t i = 0; i < n_out; i++) {
        const int64_t n = ortc_split_part(in, n_in, out, n_out, axis, i);
        if (n < 0 || n > left) return false;
        left -= n;
    }
    return left == 0;
}

extern const ortc_kernel ortc_ref_rename; /* ref_rename.c: Identity, Reshape, Flatten, Squeeze, Unsqueeze */
extern const ortc_kernel ortc_ref_same_value; /* ref_rename.c: Identity of what is not a tensor */
extern const ortc_kernel ortc_ref_shape;      /* ref_rename.c */
extern const ortc_kernel ortc_ref_size;       /* ref_rename.c */
extern const ortc_kernel ortc_ref_transpose, ortc_ref_slice, ortc_ref_expand; /* ref_move.c */
extern const ortc_kernel ortc_ref_concat, ortc_ref_split, ortc_ref_fill;      /* ref_join.c */

#endif
