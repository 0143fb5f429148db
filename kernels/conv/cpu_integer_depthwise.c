/* ConvInteger with a filter for each channel on the cpu, of values in blocks of 16 channels
 * (blocked_depthwise.h):
 *   conv_integer.depthwise   W is constant and, as s8, without zero points
 * Sums are made in f32, exactly, of bytes less x's zero point, which makes 0 of what is beside the image; or
 * by words of four taps, where the machine permutes and multiplies bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "blocked_depthwise.h"
#include "cpu.h"
#include "kernels/gemm/product_packing.h"
#include "kernels/common/element.h"

#define FORM ((uint64_t)0xd3b7 << 32)

typedef struct depthwise_plan {
    ortc_blocked_depthwise_plan d;
    const ortc_packed *packed;
    ortc_int_ends *ends; /* NULL: results go by the tail's passes */
} depthwise_plan;

/* Compared bytewise: the plan, as far as forms depend on it. */
typedef struct pack_param {
    int64_t channels, kernel[3], by_words;
} pack_param;

static pack_param param_of(const ortc_blocked_depthwise_plan *d)
{
    const int64_t *k = d->extents.kernel;
    return (pack_param){d->channels, {k[0], k[1], k[2]}, d->by_words != NULL};
}

/* What of a plan filling reads. */
static ortc_blocked_depthwise_plan plan_of(const pack_param *p)
{
    ortc_blocked_depthwise_plan d = {.channels = p->channels, .blocks = ortc_blocks_of(p->channels)};
    memcpy(d.extents.kernel, p->kernel, sizeof p->kernel);
    d.words = (p->kernel[2] + 3) / 4;
    return d;
}
static ortc_conv_geometry geometry_of(const pack_param *p)
{
    return (ortc_conv_geometry){.group = p->channels,
                                .channels = 1,
                                .filters = 1,
                                .kernel_count = p->kernel[0] * p->kernel[1] * p->kernel[2]};
}

static size_t pack_bytes(const ortc_view *src, const void *param)
{
    const pack_param *p = param;
    const ortc_conv_geometry g = geometry_of(p);
    const ortc_blocked_depthwise_plan d = plan_of(p);
    (void)src;
    return p->by_words ? ortc_blocked_depthwise_word_bytes(&d) : ortc_blocked_depthwise_weight_bytes(&g);
}

static ortc_status pack_fill(void *dst, const ortc_view *src, const void *param, ortc_call *call)
{
    const pack_param *p = param;
    const ortc_conv_geometry g = geometry_of(p);
    const ortc_blocked_depthwise_plan d = plan_of(p);
    (void)call;
    if (p->by_words)
        ortc_blocked_depthwise_word_fill(&d, src->dtype, src->data, dst);
    else
        ortc_blocked_depthwise_weight_fill(&g, src->dtype, src->data, dst);
    return ORTC_OK;
}

static const ortc_packing packing = {ORTC_SIZED(ortc_packing), "cpu.conv_integer_depthwise", pack_bytes,
                                     pack_fill, ORTC_PACKING_PASSES};

/* In f32's measure (cpu_blocks.c), and a quarter of a clock for each element that is widened, 0.4 for a
 * result. */
static double clocks_of(const ortc_blocked_depthwise_plan *d)
{
    const ortc_window_extents *e = &d->extents;
    const double blocks = (double)(d->images * d->blocks), vectors = blocks * (double)d->out_count;
    if (d->by_words) return vectors * (double)d->taps / 2 + ORTC_BLOCK * 0.4 * vectors;
    return vectors * (double)d->taps + 40 * blocks * (double)(e->out[0] * e->out[1]) +
           ORTC_BLOCK * (0.25 * blocks * (double)d->in_count + 0.4 * vectors);
}

static ortc_status choose(const void *state, const ortc_question *q, ortc_offer *o, ortc_why *why)
{
    const ortc_conv_integer_state *s = state;
    const ortc_layout l = ortc_blocks();
    ortc_conv_geometry g;
    ortc_blocked_depthwise_plan d;
    if (q->layout != ORTC_ANY_LAYOUT && q->layout != l) return ortc_no(why, "it is for blocks of channels");
    if (!(q->in[1].flags & ORTC_VIEW_CONST)) return ortc_no(why, "W is not constant");
    if (!ortc_product_symmetric(q->in, q->n_in, q->in[1].dtype == ORTC_U8 ? -128 : 0))
        return ortc_no(why, "W has zero points");
    ortc_conv_read_windows(&s->window, s->group, q->in, q->out, &g);
    if (ortc_conv_is_empty(&g) || !ortc_blocked_depthwise_plan_init(&g, q->in[0].dtype, 0, &d))
        return ortc_no(why, "not a filter for each channel, or too large");
    ortc_conv_integer_along(s, q, o);
    o->clocks = clocks_of(&d);
    o->form = FORM;
    o->in[0] = o->out[0] = l;
    return ORTC_OK;
}

static void release_plan(const void *state, void *pstate)
{
    depthwise_plan *p = pstate;
    (void)state;
    if (p) free(p->ends);
    free(p);
}

static ortc_status plan(const void *state, ortc_plan *p, void **out)
{
    const ortc_conv_integer_state *s = state;
    ortc_conv_geometry g;
    ortc_conv_read_windows(&s->window, s->group, p->in, p->out, &g);
    depthwise_plan *d = calloc(1, sizeof *d);
    const size_t padded = (size_t)(ortc_blocks_of(g.group) * ORTC_BLOCK);
    ortc_status status = ORTC_OK;
    if (!d || !ortc_blocked_depthwise_plan_init(&g, p->in[0].dtype, p->threads, &d->d))
        status = ortc_plan_fail(p, ORTC_OUT_OF_MEMORY, "no memory for a plan");
    const pack_param param = status ? (pack_param){0} : param_of(&d->d);
    if (!status) status = ortc_plan_pack(p, 1, &packing, &param, sizeof param, &d->packed);
    if (!status) {
        d->ends = ortc_conv_integer_ends(s, p, &g, 0);
        ortc_plan_workspace(p, padded * sizeof(float), d->d.scratch);
        ortc_conv_plan_cost(p, &g, p->in[0].dtype);
        *out = d;
    } else {
        free(d);
    }
    return status;
}

static ortc_status run(const void *state, const void *pstate, ortc_call *call)
{
    const ortc_conv_integer_state *s = state;
    const depthwise_plan *d = pstate;
    const ortc_product_threads threads = {ortc_call_parallel, call};
    int32_t zero;
    const size_t padded = (size_t)(d->d.blocks * ORTC_BLOCK);
    ORTC_TRY(ortc_conv_integer_zero(call, d->d.by_words && d->d.is_signed, &zero));
    memset(call->workspace, 0, padded * sizeof(float));
    if (d->d.by_words)
        ortc_conv_integer_first(zero, (const char *)d->packed->data + d->packed->bytes - padded * 4, padded,
                                call->workspace);
    const ortc_blocked_args args = {.x = call->in[0].data,
                                    .w = d->packed->data,
                                    .bias = call->workspace,
                                    .y = call->out[0].data,
                                    .in = call->in,
                                    .int_tail = &s->tail,
                                    .int_ends = d->ends,
                                    .zero = (uint8_t)zero};
    return ortc_blocked_depthwise_run(&d->d, &args, &threads);
}

const ortc_kernel ortc_conv_integer_depthwise = {.size = ORTC_SIZED(ortc_kernel),
                                                 .flags = ORTC_KERNEL_EPILOGUE | ORTC_KERNEL_LAYOUTS,
                                                 .name = "conv_integer.depthwise",
                                                 .supports = ortc_conv_integer_supports,
                                                 .prepare = ortc_conv_integer_prepare,
                                                 .plan = plan,
                                                 .run = run,
                                                 .release_plan = release_plan,
                                                 .choose = choose};
