/* kernels/optional/ref.c: optionals on ref: a reference is put in, taken out, or asked for. */
#include <stdlib.h>

#include "kernels/common/shape.h"

/* The element's type: the output's, for an optional that holds nothing. */
static ortc_status optional_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const ortc_type **element = malloc(sizeof *element);
    if (!element) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for a type");
    const ortc_port y = ortc_node_out(n, 0);
    *element = y.type ? y.type->of : NULL; /* lives as long as the node */
    *out = element;
    return ORTC_OK;
}

static ortc_status optional_run(const void *state, const void *pstate, ortc_call *c)
{
    ortc_value *v;
    ORTC_TRY(ortc_call_optional(c, *(const ortc_type *const *)state, ortc_call_value(c, 0), &v));
    return ortc_call_give(c, 0, v);
}

static ortc_status get_plan(const void *state, ortc_plan *p, void **pstate)
{
    if (p->in[0].dtype) /* a tensor: itself */
        ortc_plan_view(p, 0, 0, 0);
    return ORTC_OK;
}

static ortc_status get_run(const void *state, const void *pstate, ortc_call *c)
{
    ortc_value *v = ortc_call_value(c, 0);
    if (!v) return ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for a value");
    if (ortc_call_type(c, v)->kind == ORTC_KIND_OPTIONAL && !(v = ortc_call_element(c, v, 0)))
        return ortc_call_fail(c, ORTC_INVALID_ARGUMENT,
                              "the optional holds nothing: ask OptionalHasElement first");
    ORTC_TRY(ortc_call_keep(c, v, &v));
    return ortc_call_give(c, 0, v);
}

static ortc_status has_run(const void *state, const void *pstate, ortc_call *c)
{
    bool has = c->n_in > 0 && ortc_view_present(&c->in[0]);
    if (has && (c->in[0].flags & ORTC_VIEW_VALUE)) {
        const ortc_value *v = ortc_call_value(c, 0);
        has = ortc_call_type(c, v)->kind != ORTC_KIND_OPTIONAL || ortc_call_count(c, v) > 0;
    }
    *(uint8_t *)c->out[0].data = has;
    return ORTC_OK;
}

static const ortc_kernel optional_ref = {.size = ORTC_SIZED(ortc_kernel),
                                         .flags = ORTC_KERNEL_VALUES,
                                         .name = "optional.ref",
                                         .prepare = optional_prepare,
                                         .run = optional_run};
static const ortc_kernel get_ref = {.size = ORTC_SIZED(ortc_kernel),
                                    .flags = ORTC_KERNEL_VALUES | ORTC_KERNEL_LATE_OUT,
                                    .name = "optional_get_element.ref",
                                    .plan = get_plan,
                                    .run = get_run};
static const ortc_kernel has_ref = {.size = ORTC_SIZED(ortc_kernel),
                                    .flags = ORTC_KERNEL_VALUES,
                                    .name = "optional_has_element.ref",
                                    .host_out = 1,
                                    .run = has_run};
ORTC_KERNELS(ref, optional,
             ORTC_KERNEL("Optional", 28, ORTC_NEWEST, (ORTC_TYPES_ALL, ORTC_TYPES_ALL), &optional_ref),
             ORTC_KERNEL("OptionalGetElement", 28, ORTC_NEWEST, (ORTC_TYPES_ALL, ORTC_TYPES_ALL), &get_ref),
             ORTC_KERNEL("OptionalHasElement", 28, ORTC_NEWEST, (ORTC_TYPES_ALL, ORTC_TYPE(ORTC_BOOL)),
                         &has_ref));
