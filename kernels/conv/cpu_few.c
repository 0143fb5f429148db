/* Conv and ConvInteger of few filters on the cpu provider: x in blocks of 16 channels, y plain (few.h),
 * further candidates beside those of cpu.c, cpu_blocks.c and cpu_integer.c:
 *   conv.few           f32, f16, bf16
 *   conv_integer.few   bytes, where the machine multiplies them by fours and W has no zero points
 */
#include <stdlib.h>
#include <string.h>

#include "cpu.h"
#include "few.h"
#include "kernels/gemm/product_packing.h"
#include "plane_end.h"

#define FORM ((uint64_t)0xfe3 << 32)

/* ---- What both do -------------------------------------------------------------------------------------- */

static ortc_status offer(const ortc_question *q, const ortc_conv_geometry *g, int integers, ortc_offer *o,
                         ortc_why *why)
{
    const ortc_dtype x = q->in[0].dtype, w = q->in[1].dtype;
    const ortc_layout l = ortc_blocks();
    ortc_conv_geometry t;
    ortc_few_plan p;
    if (q->layout != ORTC_ANY_LAYOUT && q->layout != l) return ortc_no(why, "it is for blocks of channels");
    if (!(q->in[1].flags & ORTC_VIEW_CONST)) return ortc_no(why, "W is not constant");
    if (!ortc_few_plan_init(g, x, &p))
        return ortc_no(why, "more than %d filters, groups, or strides along rows", ORTC_FEW_FILTERS);
    ortc_few_geometry(&p, g, &t);
    o->clocks = ortc_few_clocks(&p, integers ? ortc_conv_integer_least_clocks(&t, x, w)
                                             : ortc_conv_least_clocks(&t, x));
    o->form = FORM;
    o->in[0] = l;
    ortc_few_plan_deinit(&p);
    return ORTC_OK;
}

static ortc_status make_plan(ortc_plan *p, const ortc_conv_geometry *g, void **out)
{
    ortc_few_plan *f = calloc(1, sizeof *f);
    if (!f || !ortc_few_plan_init(g, p->in[0].dtype, f)) {
        free(f);
        return ortc_plan_fail(p, ORTC_OUT_OF_MEMORY, "no memory for a plan");
    }
    const ortc_status s = ortc_few_pack(p, f, g);
    if (s) {
        ortc_few_plan_deinit(f);
        free(f);
        return s;
    }
    ortc_plan_workspace(p, ortc_few_space(f), f->scratch);
    ortc_conv_plan_cost(p, g, p->in[0].dtype);
    *out = f;
    return ORTC_OK;
}

static void release_plan(const void *state, void *pstate)
{
    ortc_few_plan *f = pstate;
    (void)state;
    if (f) ortc_few_plan_deinit(f);
    free(f);
}

/* ---- Floats -------------------------------------------------------------------------------------------- */

static ortc_status choose(const void *state, const ortc_question *q, ortc_offer *o, ortc_why *why)
{
    ortc_conv_geometry g;
    ortc_conv_read(state, q->in, q->out, &g);
    return offer(q, &g, 0, o, why);
}

static ortc_status plan(const void *state, ortc_plan *p, void **out)
{
    ortc_conv_geometry g;
    ortc_conv_read(state, p->in, p->out, &g);
    return make_plan(p, &g, out);
}

static void end(const void *arg, int64_t channel, int64_t element, int64_t n, void *sums, float *space)
{
    ortc_plane_tail(arg, channel, element, n, sums, space);
    ortc_plane_store(arg, channel, element, n, sums);
}

static ortc_status run(const void *state, const void *pstate, ortc_call *call)
{
    const ortc_conv_state *s = state;
    const ortc_few_plan *f = pstate;
    const ortc_plane_end ends = {&s->tail,
                                 call->in,
                                 f->type,
                                 ortc_call_data(call, ortc_conv_bias_port(&s->tail)),
                                 ortc_call_data(call, s->tail.residual),
                                 call->out[0].data};
    return ortc_few_run(f, 0, call->workspace, call, end, &ends);
}

static ortc_status prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    return ortc_conv_prepare(n, ORTC_TAIL_ALL, prep, out);
}

const ortc_kernel ortc_conv_few = {.size = ORTC_SIZED(ortc_kernel),
                                   .flags = ORTC_KERNEL_EPILOGUE | ORTC_KERNEL_LAYOUTS,
                                   .name = "conv.few",
                                   .supports = ortc_conv_supports,
                                   .prepare = prepare,
                                   .plan = plan,
                                   .run = run,
                                   .release_plan = release_plan,
                                   .choose = choose};

/* ---- Bytes --------------------------------------------------------------------------------------------- */

static ortc_status choose_integer(const void *state, const ortc_question *q, ortc_offer *o, ortc_why *why)
{
    const ortc_conv_integer_state *s = state;
    ortc_conv_geometry g;
    if (!ortc_blocked_bytes_get())
        return ortc_no(why, "the processor has no instruction for it, or a better one");
    if (!ortc_product_symmetric(q->in, q->n_in, q->in[1].dtype == ORTC_U8 ? -128 : 0))
        return ortc_no(why, "W has zero points");
    ortc_conv_read_windows(&s->window, s->group, q->in, q->out, &g);
    return offer(q, &g, 1, o, why);
}

static ortc_status plan_integer(const void *state, ortc_plan *p, void **out)
{
    const ortc_conv_integer_state *s = state;
    ortc_conv_geometry g;
    ortc_conv_read_windows(&s->window, s->group, p->in, p->out, &g);
    return make_plan(p, &g, out);
}

typedef struct integer_end {
    const ortc_int_tail *tail;
    const ortc_call *call;
} integer_end;

static void end_integer(const void *arg, int64_t channel, int64_t element, int64_t n, void *sums,
                        float *space)
{
    const integer_end *e = arg;
    const ortc_tail_place at = {.channel = channel, .element = element, .col = 1};
    void *y = ortc_product_at(e->call->out[0].data, element, e->tail->type);
    const size_t count = (size_t)n;
    (void)space;
    if (e->tail->has_pass || e->tail->has_rest)
        ortc_int_tail_over(e->tail, e->call->in, &at, sums, count, y, count, 1, count);
    else
        memcpy(y, sums, count * sizeof(int32_t));
}

static ortc_status run_integer(const void *state, const void *pstate, ortc_call *call)
{
    const ortc_conv_integer_state *s = state;
    const ortc_few_plan *f = pstate;
    const integer_end ends = {&s->tail, call};
    int32_t zero;
    ORTC_TRY(ortc_conv_integer_zero(call, f->dense.flip, &zero));
    return ortc_few_run(f, zero, call->workspace, call, end_integer, &ends);
}

const ortc_kernel ortc_conv_integer_few = {.size = ORTC_SIZED(ortc_kernel),
                                           .flags = ORTC_KERNEL_EPILOGUE | ORTC_KERNEL_LAYOUTS,
                                           .name = "conv_integer.few",
                                           .supports = ortc_conv_integer_supports,
                                           .prepare = ortc_conv_integer_prepare,
                                           .plan = plan_integer,
                                           .run = run_integer,
                                           .release_plan = release_plan,
                                           .choose = choose_integer};
