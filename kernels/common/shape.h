/* kernels/common/shape.h: what shape functions of many operators share: axes, broadcasting, products of dims,
 * and small values that are passed along.
 *
 * Dims may be symbols: they are compared by ==, combined by ortc_dim_*, and only numbers are checked. An
 * extent that is a number is never below zero, so `d >= 0` asks whether it is known; values may be negative:
 * ortc_dim_is_number.
 */
#ifndef ORTC_KERNELS_SHAPE_H
#define ORTC_KERNELS_SHAPE_H

#include <stdbool.h>
#include <string.h>

#include "kernels/common/element.h"
#include "kernels/common/iterate.h"
#include "ortc/op.h"

#define ORTC_VALUES_LIMIT 64 /* elements of an integer tensor whose values are passed along */

/* An axis of a tensor of `rank` dims, negative ones counted from the end. false: there is none. */
static inline bool ortc_axis_of(int64_t axis, int64_t rank, int32_t *out)
{
    if (axis < -rank || axis >= rank) return false;
    *out = (int32_t)(axis < 0 ? axis + rank : axis);
    return true;
}
static inline ortc_status ortc_infer_axis(ortc_infer *c, int64_t axis, int64_t rank, int32_t *out)
{
    if (ortc_axis_of(axis, rank, out)) return ORTC_OK;
    return ortc_infer_fail(c, ORTC_INVALID_MODEL, "axis %lld is outside of rank %lld", (long long)axis,
                           (long long)rank);
}

/* The dims that numpy's rule makes of `count` inputs; *rank -1 when that of an input is not known. */
static inline ortc_status ortc_infer_broadcast(ortc_infer *c, uint32_t first, uint32_t count, int32_t *rank,
                                               ortc_dim *dims)
{
    *rank = 0;
    for (uint32_t i = first; i < first + count; i++) {
        ortc_port p = ortc_infer_in(c, i);
        if (p.rank < 0) {
            *rank = -1;
            return ORTC_OK;
        }
        *rank = p.rank > *rank ? p.rank : *rank;
    }
    for (int32_t d = 0; d < *rank; d++) dims[d] = 1;
    for (uint32_t i = first; i < first + count; i++) {
        ortc_port p = ortc_infer_in(c, i);
        for (int32_t d = 0; d < p.rank; d++) {
            ortc_dim *a = &dims[*rank - p.rank + d], b = p.dims[d];
            if (*a == b || b == 1) continue;
            if (*a == 1)
                *a = b;
            else if (*a >= 0 && b >= 0)
                return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH,
                                       "input %u has %lld in dim %d, where others have %lld", i, (long long)b,
                                       d, (long long)*a);
            else
                *a = ortc_dim_broadcast(c, *a, b);
        }
    }
    return ORTC_OK;
}

/* Output `out` gets type t and the broadcast shape of all inputs first .. first + count. */
static inline ortc_status ortc_infer_out_broadcast(ortc_infer *c, uint32_t out, ortc_dtype t, uint32_t first,
                                                   uint32_t count)
{
    int32_t rank;
    ortc_dim dims[ORTC_RANK_LIMIT];
    ORTC_TRY(ortc_infer_broadcast(c, first, count, &rank, dims));
    return ortc_infer_out(c, out, t, rank, dims);
}

/* dims of a tensor of rank 0 are NULL, which memcpy must not be given. */
static inline void ortc_copy_dims(int64_t *to, const int64_t *from, int32_t count)
{
    for (int32_t d = 0; d < count; d++) to[d] = from[d];
}

static inline ortc_dim ortc_dims_product(ortc_infer *c, const ortc_dim *dims, int32_t count)
{
    ortc_dim n = 1;
    for (int32_t d = 0; d < count; d++)
        if (dims[d] == 0) /* whatever the others are */
            return 0;
    for (int32_t d = 0; d < count; d++) n = ortc_dim_mul(c, n, dims[d]);
    return n;
}

/* Unifies two dims that must be equal: the number if one is, else the first. */
static inline ortc_status ortc_infer_same(ortc_infer *c, const char *what, ortc_dim a, ortc_dim b,
                                          ortc_dim *out)
{
    if (a >= 0 && b >= 0 && a != b)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "%s: %lld and %lld", what, (long long)a, (long long)b);
    *out = b >= 0 ? b : a;
    return ORTC_OK;
}

/* A vector or scalar of known integers (a target shape, axes, pads). NULL: not given or not known, or too
 * long. */
static inline const ortc_dim *ortc_infer_vector(ortc_infer *c, uint32_t in, int64_t *count)
{
    *count = 0;
    if (in >= ortc_node_n_in(ortc_infer_node(c)) || ortc_infer_in(c, in).rank > 1) return NULL;
    return ortc_infer_values(c, in, count);
}

enum { ORTC_AXES_LEFT_OUT = 0, ORTC_AXES_KNOWN = 1, ORTC_AXES_UNKNOWN = 2 };

/* Sets mask[d] for every axis listed in an optional input; *state says what the input was. Repeated axes and
 * axes outside of rank are errors. `count` may be NULL. */
static inline ortc_status ortc_infer_axes(ortc_infer *c, uint32_t in, int32_t rank, bool *mask, int *state,
                                          int64_t *count)
{
    int64_t n = 0;
    const ortc_port p = ortc_infer_in(c, in);
    memset(mask, 0, ORTC_RANK_LIMIT * sizeof *mask);
    *state = ORTC_AXES_LEFT_OUT;
    if (!p.type) return ORTC_OK;
    const ortc_dim *axes = ortc_infer_vector(c, in, &n);
    if (!axes && !(p.rank == 1 && p.dims[0] == 0)) {
        *state = ORTC_AXES_UNKNOWN;
        return ORTC_OK;
    }
    *state = ORTC_AXES_KNOWN;
    if (count) *count = n;
    for (int64_t i = 0; i < n; i++) {
        int32_t axis = 0;
        if (!ortc_dim_is_number(axes[i])) {
            *state = ORTC_AXES_UNKNOWN;
            return ORTC_OK;
        }
        ORTC_TRY(ortc_infer_axis(c, axes[i], rank, &axis));
        if (mask[axis]) return ortc_infer_fail(c, ORTC_INVALID_MODEL, "axis %d is given twice", axis);
        mask[axis] = true;
    }
    return ORTC_OK;
}

/* Bytes of a dense tensor's elements are copied as they are: for operators that only rename dims, where the
 * planner wanted a copy instead of a view. */
static inline ortc_status ortc_run_copy(ortc_call *c)
{
    const int64_t n = ortc_view_count(&c->in[0]);
    const size_t bytes = ortc_bytes_of(ortc_dtype_bits(c->in[0].dtype), n);
    if (bytes && c->out[0].dtype && c->out[0].data != c->in[0].data)
        memcpy(c->out[0].data, c->in[0].data, bytes);
    return ORTC_OK;
}

/* In place is possible where an output has the shape and the width of an input, and elements have bytes of
 * their own. */
static inline void ortc_plan_in_place(ortc_plan *p, uint32_t out, uint32_t in)
{
    const ortc_view *a = &p->in[in], *b = &p->out[out];
    if (a->rank != b->rank || ortc_dtype_bits(a->dtype) != ortc_dtype_bits(b->dtype) ||
        ortc_dtype_bits(a->dtype) < 8)
        return;
    for (int32_t d = 0; d < a->rank; d++)
        if (a->dims[d] < 0 || a->dims[d] != b->dims[d]) return;
    ortc_plan_may_reuse(p, out, in);
}

/* consumed_inputs was a hint of versions below 6 and means nothing. For operators that changed in nothing
 * else. */
static inline ortc_status ortc_lift_consumed(ortc_lift *l)
{
    ortc_lift_drop_attr(l, "consumed_inputs");
    return ORTC_OK;
}

#endif
