/* tests/plugin/packing.c: a stranger's packed forms, from op.h alone. Kept, Passing and Left add twice W to X
 * and tell whether they had the form, which is W doubled: their packings say nothing, ORTC_PACKING_PASSES,
 * and that with ORTC_PACKING_LEFT.
 */
#include <stdlib.h>
#include <string.h>

#include "ortc/op.h"

/* W lies where the model has it, at any alignment: to be packed, and where it would have been. */
static float element(const void *w, int64_t i)
{
    float x;
    memcpy(&x, (const char *)w + i * (int64_t)sizeof x, sizeof x);
    return x;
}

static size_t bytes(const ortc_view *w, const void *param)
{
    (void)param;
    return (size_t)ortc_view_count(w) * sizeof(float);
}

static ortc_status fill(void *to, const ortc_view *w, const void *param, ortc_call *c)
{
    (void)param, (void)c;
    for (int64_t i = 0, n = ortc_view_count(w); i < n; i++) ((float *)to)[i] = 2 * element(w->data, i);
    return ORTC_OK;
}

static const ortc_packing kept = {sizeof kept, "test.kept", bytes, fill, 0},
                          passing = {sizeof passing, "test.passing", bytes, fill, ORTC_PACKING_PASSES},
                          left = {sizeof left, "test.left", bytes, fill,
                                  ORTC_PACKING_PASSES | ORTC_PACKING_LEFT};

typedef struct form {
    const ortc_packed *w;
} form;

static ortc_status plan_by(ortc_plan *p, const ortc_packing *how, void **pstate)
{
    form *f = (form *)malloc(sizeof *f);
    if (!f) return ortc_plan_fail(p, ORTC_OUT_OF_MEMORY, "no memory");
    *pstate = f;
    return ortc_plan_pack(p, 1, how, NULL, 0, &f->w);
}
static ortc_status plan_kept(const void *s, ortc_plan *p, void **f) { return (void)s, plan_by(p, &kept, f); }
static ortc_status plan_passing(const void *s, ortc_plan *p, void **f)
{
    return (void)s, plan_by(p, &passing, f);
}
static ortc_status plan_left(const void *s, ortc_plan *p, void **f) { return (void)s, plan_by(p, &left, f); }

static ortc_status infer(ortc_infer *c)
{
    const int64_t one = 1;
    const ortc_status s = ortc_infer_like(c, 0, 0);
    return s == ORTC_OK ? ortc_infer_out(c, 1, ORTC_I64, 1, &one) : s;
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_packed *packed = ((const form *)pstate)->w;
    const float *x = (const float *)c->in[0].data, *twice = packed ? (const float *)packed->data : NULL;
    float *y = (float *)c->out[0].data;
    (void)state;
    for (int64_t i = 0, n = ortc_view_count(&c->in[0]); i < n; i++)
        y[i] = x[i] + (twice ? twice[i] : 2 * element(c->in[1].data, i));
    *(int64_t *)c->out[1].data = twice != NULL;
    return ORTC_OK;
}

static const ortc_kernel
    add_kept = {.size = sizeof(ortc_kernel), .name = "kept", .plan = plan_kept, .run = run},
    add_passing = {.size = sizeof(ortc_kernel), .name = "passing", .plan = plan_passing, .run = run},
    add_left = {.size = sizeof(ortc_kernel), .name = "left", .plan = plan_left, .run = run};
ORTC_KERNELS(cpu, packing, ORTC_KERNEL_IN("test.packing", "Kept", 1, 1, (ORTC_TYPE(ORTC_F32)), &add_kept),
             ORTC_KERNEL_IN("test.packing", "Passing", 1, 1, (ORTC_TYPE(ORTC_F32)), &add_passing),
             ORTC_KERNEL_IN("test.packing", "Left", 1, 1, (ORTC_TYPE(ORTC_F32)), &add_left));

static const ortc_op ops[] = {
    ORTC_OP("test.packing", "Kept", 1, 1, "", "X:T W:T", "Y:T form:I", "", "T=f32 I=i64", infer, NULL, 0),
    ORTC_OP("test.packing", "Passing", 1, 1, "", "X:T W:T", "Y:T form:I", "", "T=f32 I=i64", infer, NULL, 0),
    ORTC_OP("test.packing", "Left", 1, 1, "", "X:T W:T", "Y:T form:I", "", "T=f32 I=i64", infer, NULL, 0),
};
ORTC_FAMILY(packing, ops, &ortc_kernels_cpu_packing);

static ortc_status init(const ortc_host *host) { return ortc_host_add_family(host, &ortc_family_packing); }
ORTC_PLUGIN("packing", "1.0", init)
