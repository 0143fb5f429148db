/* kernels/norm/cuda_norm.c: LayerNormalization, RMSNormalization, InstanceNormalization and
 * GroupNormalization on a GPU (norm.cu). All of one float type; scale and bias cover the last of the
 * normalised dims, or are one number.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/common/cuda.h"
#include "kernels/common/shape.h"
#include "kernels/norm/norm_cuda.h"

typedef struct norm {
    float epsilon;
    /* axis: of LayerNormalization and RMSNormalization; groups: 0 with it, -1 as many as channels */
    int64_t axis, groups;
    int centred;
} norm;

/* The values repeat along X's elements: they have its last dims, or are one. */
static int repeats(const ortc_port *p, const ortc_port *x, int32_t axis)
{
    int single = 1;
    for (int32_t d = 0; d < p->rank; d++) single &= p->dims[d] == 1;
    if (p->rank >= 0 && single) return 1;
    if (p->rank < 0 || p->rank > x->rank - axis) return 0;
    for (int32_t d = 0; d < p->rank; d++)
        if (p->dims[d] != x->dims[x->rank - p->rank + d]) return 0;
    return 1;
}

static ortc_status supports(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    const ortc_port x = ortc_node_in(n, 0), scale = ortc_node_in(n, 1), bias = ortc_node_in(n, 2);
    const int by_axis = !strcmp(ortc_node_op(n), "LayerNormalization") ||
                        !strcmp(ortc_node_op(n), "RMSNormalization");
    int32_t axis;
    (void)device;
    if (scale.dtype != x.dtype) return ortc_no(why, "X and scale differ in type");
    for (uint32_t i = 1; i < ortc_node_n_out(n); i++)
        if (ortc_node_out(n, i).type && ortc_node_out(n, i).dtype != ORTC_F32)
            return ortc_no(why, "statistics are given as f32 only");
    if (x.rank < 0) return ortc_no(why, "the rank must be known");
    if (!by_axis) return ORTC_OK;
    if (!ortc_axis_of(ortc_node_int(n, "axis", -1), x.rank, &axis))
        return ortc_no(why, "the axis is outside of the rank");
    if (!repeats(&scale, &x, axis) || (bias.type && !repeats(&bias, &x, axis)))
        return ortc_no(why, "scale or bias is stretched over the dims");
    return ORTC_OK;
}

static ortc_status prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const char *op = ortc_node_op(n);
    norm *s = calloc(1, sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    s->epsilon = ortc_node_float(n, "epsilon", 1e-5F);
    s->axis = ortc_node_int(n, "axis", -1);
    s->centred = strcmp(op, "RMSNormalization") != 0;
    s->groups = !strcmp(op, "InstanceNormalization") ? -1
                : !strcmp(op, "GroupNormalization")  ? ortc_node_int(n, "num_groups", 1)
                                                     : 0;
    *out = s;
    return ORTC_OK;
}

static ortc_status plan(const void *state, ortc_plan *p, void **pstate)
{
    (void)state, (void)pstate;
    ortc_plan_in_place(p, 0, 0);
    ortc_plan_cost(p, 8.0 * (double)ortc_view_count(&p->in[0]),
                   2.0 * (double)ortc_view_count(&p->in[0]) * ortc_dtype_bits(p->in[0].dtype) / 8);
    return ORTC_OK;
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    const norm *s = state;
    const ortc_view *x = &c->in[0], *bias = c->n_in > 2 && c->in[2].dtype ? &c->in[2] : NULL;
    ortc_cu_norm n = {.y = c->out[0].dtype ? c->out[0].data : NULL,
                      .x = x->data,
                      .scale = c->in[1].data,
                      .rows = 1,
                      .length = 1,
                      .groups = 1,
                      .each = 1,
                      .scale_count = ortc_view_count(&c->in[1]),
                      .epsilon = s->epsilon,
                      .dtype = x->dtype,
                      .centred = s->centred};
    int32_t axis = 2;
    (void)pstate;
    if (s->groups == 0 && !ortc_axis_of(s->axis, x->rank, &axis))
        return ortc_call_fail(c, ORTC_INVALID_ARGUMENT, "the axis is outside of the input's rank");
    for (int32_t d = 0; d < x->rank; d++) *(d < axis ? &n.rows : &n.length) *= x->dims[d];
    if (s->groups) {
        n.groups = s->groups > 0 ? s->groups : x->dims[1];
        n.each = n.length;
        n.rows = x->dims[0] * n.groups;
        n.length *= n.groups ? x->dims[1] / n.groups : 0;
    }
    if (bias) {
        n.bias = bias->data;
        n.bias_count = ortc_view_count(bias);
    }
    n.mean = c->n_out > 1 && c->out[1].dtype ? (float *)c->out[1].data : NULL;
    n.inverse = c->n_out > 2 && c->out[2].dtype ? (float *)c->out[2].data : NULL;
    if (n.rows == 0 || (n.length == 0 && !n.mean && !n.inverse)) return ORTC_OK;
    return ortc_cuda_done(c, ortc_cu_norm_run(&n, c->queue));
}

static const ortc_kernel kernel = {.size = sizeof kernel,
                                   .name = "normalization.cuda",
                                   .supports = supports,
                                   .prepare = prepare,
                                   .plan = plan,
                                   .run = run};

#define FLOATS (ORTC_TYPE(ORTC_F32) | ORTC_TYPE(ORTC_F16) | ORTC_TYPE(ORTC_BF16))
ORTC_KERNELS(cuda, norm,
             ORTC_KERNEL("LayerNormalization", 17, ORTC_NEWEST, (FLOATS, ORTC_TYPES_ANY), &kernel),
             ORTC_KERNEL("RMSNormalization", 23, ORTC_NEWEST, (FLOATS, FLOATS), &kernel),
             ORTC_KERNEL("InstanceNormalization", 22, ORTC_NEWEST, (FLOATS), &kernel),
             ORTC_KERNEL("GroupNormalization", 21, ORTC_NEWEST, (FLOATS), &kernel));
