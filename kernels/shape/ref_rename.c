/* kernels/shape/ref_rename.c: Identity, Reshape, Flatten, Squeeze, Unsqueeze as views of their input; Shape
 * and Size. */
#include <stdlib.h>

#include "kernels/common/strings.h"
#include "kernels/shape/shape_ops.h"

static ortc_status rename_plan(const void *state, ortc_plan *p, void **pstate)
{
    ortc_plan_view(p, 0, 0, 0);
    return ORTC_OK;
}
static ortc_status rename_run(const void *state, const void *pstate, ortc_call *c)
{
    return c->in[0].dtype == ORTC_STRING ? ortc_run_on_strings(rename_run, state, pstate, c)
                                         : ortc_run_copy(c);
}

const ortc_kernel ortc_ref_rename = {.size = ORTC_SIZED(ortc_kernel),
                                     .name = "rename.ref",
                                     .plan = rename_plan,
                                     .run = rename_run};

/* Identity of a sequence, map or optional. */
static ortc_status same_run(const void *state, const void *pstate, ortc_call *c)
{
    ortc_value *v = ortc_call_value(c, 0);
    ORTC_TRY(ortc_call_keep(c, v, &v));
    return ortc_call_give(c, 0, v);
}
const ortc_kernel ortc_ref_same_value = {.size = ORTC_SIZED(ortc_kernel),
                                         .flags = ORTC_KERNEL_VALUES,
                                         .name = "same_value.ref",
                                         .run = same_run};

static ortc_status shape_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    int64_t *start = malloc(sizeof *start);
    if (!start) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *start = ortc_node_int(n, "start", 0);
    *out = start;
    return ORTC_OK;
}
static ortc_status shape_run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_view *x = &c->in[0];
    int64_t start = *(const int64_t *)state;
    start += start < 0 ? x->rank : 0;
    start = start < 0 ? 0 : start;
    for (int64_t i = 0; i < c->out[0].dims[0]; i++)
        ortc_store_i64(c->out[0].data, ORTC_I64, i, x->dims[start + i]);
    return ORTC_OK;
}
const ortc_kernel ortc_ref_shape = {.size = ORTC_SIZED(ortc_kernel),
                                    .name = "shape.ref",
                                    .prepare = shape_prepare,
                                    .run = shape_run};

static ortc_status size_run(const void *state, const void *pstate, ortc_call *c)
{
    ortc_store_i64(c->out[0].data, ORTC_I64, 0, ortc_view_count(&c->in[0]));
    return ORTC_OK;
}
const ortc_kernel ortc_ref_size = {.size = ORTC_SIZED(ortc_kernel), .name = "size.ref", .run = size_run};
