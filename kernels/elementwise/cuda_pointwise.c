/* kernels/elementwise/cuda_pointwise.c: every pointwise program on a GPU, of single nodes and of groups, as
 * one launch (cuda_code.h).
 */
#include <stdlib.h>

#include "kernels/common/shape.h"
#include "kernels/elementwise/cuda_code.h"

static int is_one(const ortc_port *p)
{
    for (int32_t d = 0; d < p->rank; d++)
        if (p->dims[d] != 1) return 0;
    return p->rank >= 0;
}

static ortc_status supports(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    const ortc_pointwise *p = ortc_node_program(n);
    const char *reason = "it has no program for these types";
    ortc_cu_code code;
    (void)device;
    if (!p || !ortc_cu_lower(p, &code, &reason)) return ortc_no(why, "%s", reason);
    const ortc_port y = ortc_node_out(n, 0);
    if (y.rank < 0 || y.rank > ORTC_CU_RANK)
        return ortc_no(why, "the rank must be known and at most %d", ORTC_CU_RANK);
    for (uint32_t i = 0; i < code.n_in; i++) {
        const ortc_port x = ortc_node_in(n, code.ports[i]);
        if (x.rank < 0) return ortc_no(why, "the rank of input %u must be known", code.ports[i]);
        if (x.rank + code.behind[i] > y.rank && !is_one(&x))
            return ortc_no(why, "input %u has a higher rank than the result", code.ports[i]);
    }
    return ORTC_OK;
}

static ortc_status prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const ortc_pointwise *p = ortc_node_program(n);
    const char *why = "";
    ortc_cu_code *code = malloc(sizeof *code);
    if (!p || !code) { /* the program is made when it is asked for */
        free(code);
        return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for a program");
    }
    if (!ortc_cu_lower(p, code, &why)) {
        free(code);
        return ortc_prep_fail(prep, ORTC_INTERNAL, "%s", why);
    }
    *out = code;
    return ORTC_OK;
}

static double bytes_of(const ortc_view *v)
{
    return (double)ortc_view_count(v) * ortc_dtype_bits(v->dtype) / 8;
}

static ortc_status plan(const void *state, ortc_plan *p, void **pstate)
{
    const ortc_cu_code *code = state;
    const double count = (double)ortc_view_count(&p->out[0]);
    double bytes = bytes_of(&p->out[0]);
    (void)pstate;
    if (code->n_code == 1 && code->n_in == 1 && p->in[code->ports[0]].dtype == p->out[0].dtype &&
        ortc_view_count(&p->in[code->ports[0]]) == ortc_view_count(&p->out[0]))
        ortc_plan_view(p, 0, code->ports[0], 0); /* a cast to what it is */
    for (uint32_t i = 0; i < code->n_in; i++) {
        ortc_plan_in_place(p, 0, code->ports[i]);
        bytes += bytes_of(&p->in[code->ports[i]]);
    }
    ortc_plan_cost(p, count * code->n_code, bytes);
    return ORTC_OK;
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_cu_code *code = state;
    ortc_cu_program p;
    (void)pstate;
    ortc_cu_shape(code, c->in, &c->out[0], &p);
    return ortc_cuda_done(c, ortc_cu_launch(code->registers, &p, c->queue));
}

static const ortc_kernel pointwise = {.size = sizeof(ortc_kernel),
                                      .name = "pointwise.cuda",
                                      .supports = supports,
                                      .prepare = prepare,
                                      .plan = plan,
                                      .run = run};
ORTC_KERNELS(cuda, elementwise, ORTC_KERNEL_IN("ortc", "Group", 1, 1, (ORTC_TYPES_ANY), &pointwise));
