/* ConvInteger on the cpu of values in blocks of 16 channels (blocked.h), where the machine multiplies bytes
 * by fours and W is constant and, as s8, without zero points: further candidates beside that of plain values
 * (cpu_integer.c):
 *   conv_integer.blocked   windows over blocks; groups of whole blocks, or several as one (joined.c)
 *   conv_integer.stem      a plain image of up to 4 channels becomes blocks
 * Sums begin with what x's zero point takes from them: minus it, times the sum of a filter.
 */
#include <stdlib.h>
#include <string.h>

#include "blocked.h"
#include "cpu.h"
#include "kernels/gemm/product_packing.h"
#include "kernels/common/element.h"

#define FORM(stem) ((uint64_t)0xb17e5 << 32 | (uint64_t)(stem))

/* ---- Choose and plan ----------------------------------------------------------------------------------- */

typedef struct blocks_plan {
    ortc_blocked_plan dense;
    const ortc_packed *packed, *tap_sums; /* NULL: no taps are left out */
    ortc_int_ends *ends;                  /* NULL: results go by the tail's passes */
} blocks_plan;

static double outputs(const ortc_blocked_plan *d)
{
    return (double)(d->images * d->group * d->outs * ORTC_BLOCK) * (double)d->out_count;
}

/* Clocks: tiles reach 0.93 of the multiplications' rate, over whole words of channels and whole blocks of
 * filters; 40 for what a tile begins and ends with; a word that is laid out takes an eighth, a result 0.4. */
static double clocks_of(const ortc_conv_geometry *g, const ortc_blocked_plan *d, ortc_dtype x, ortc_dtype w)
{
    const double words = (double)(d->stem ? 1 : (d->ins - 1) * d->step + d->depth) * 4;
    const double padded = words / (double)g->channels * (double)(d->outs * ORTC_BLOCK) / (double)g->filters;
    const int64_t row = d->flat ? d->rows * d->segment : d->segment, most = (int64_t)d->uk->most_pixels;
    const double tiles = outputs(d) / ORTC_BLOCK / (double)d->uk->most_blocks / (double)row *
                         (double)((row + most - 1) / most);
    const double tasks = (double)(d->images * d->group * d->e.out[0] * d->row_tasks * d->segments *
                                  d->block_tasks);
    const double laid_out = d->in_place ? 0 : tasks * (double)d->ins * (double)d->plane;
    const double wide = (double)(d->outs > 1 ? d->uk->most_blocks : 1),
                 sums = (double)(row < most ? row : most) * wide, enough = (double)most * wide < 8 ? 6 : 8;
    return ortc_conv_integer_least_clocks(g, x, w) * padded * ortc_blocked_seen(d) /
               (0.93 * d->bytes->pace * (sums < enough ? sums / enough : 1)) +
           40 * tiles + laid_out / 8 + 0.4 * outputs(d);
}

static ortc_status choose(int stem, const ortc_conv_integer_state *s, const ortc_question *q, ortc_offer *o,
                          ortc_why *why)
{
    ortc_conv_geometry g;
    ortc_blocked_plan d;
    const ortc_layout l = ortc_blocks();
    const ortc_dtype x = q->in[0].dtype, w = q->in[1].dtype;
    if (q->layout != ORTC_ANY_LAYOUT && q->layout != l) return ortc_no(why, "it is for blocks of channels");
    if (!ortc_blocked_bytes_get())
        return ortc_no(why, "the processor has no instruction for it, or a better one");
    if (!(q->in[1].flags & ORTC_VIEW_CONST)) return ortc_no(why, "W is not constant");
    if (!ortc_product_symmetric(q->in, q->n_in, w == ORTC_U8 ? -128 : 0))
        return ortc_no(why, "W has zero points");
    ortc_conv_read_windows(&s->window, s->group, q->in, q->out, &g);
    if (ortc_conv_is_empty(&g) || !ortc_conv_join_groups(&g) || !ortc_blocked_plan_init(&g, x, stem, 0, &d))
        return ortc_no(why,
                       stem ? "more than %d channels, or groups"
                            : "groups are not whole blocks, or too large",
                       ORTC_STEM_CHANNELS);
    ortc_conv_integer_along(s, q, o);
    o->clocks = clocks_of(&g, &d, x, w);
    o->form = FORM(stem);
    if (!stem) o->in[0] = l;
    o->out[0] = l;
    ortc_blocked_plan_deinit(&d);
    return ORTC_OK;
}

static size_t sums_bytes(const ortc_view *src, const void *param)
{
    const ortc_conv_geometry g = ortc_conv_pack_geometry(param);
    (void)src;
    return ortc_blocked_tap_sums_bytes(&g);
}

static ortc_status sums_fill(void *dst, const ortc_view *src, const void *param, ortc_call *call)
{
    const ortc_conv_geometry g = ortc_conv_pack_geometry(param);
    const ortc_product_threads threads = {ortc_call_parallel, call};
    return ortc_blocked_tap_sums(&g, src->dtype, src->data, dst, &threads);
}

static ortc_status pack_sums(ortc_plan *p, const ortc_conv_geometry *g, const ortc_packed **out)
{
    static const ortc_packing packing = {ORTC_SIZED(ortc_packing), "cpu.conv.tap_sums", sums_bytes, sums_fill,
                                         ORTC_PACKING_PASSES};
    const ortc_conv_pack_param param = ortc_conv_pack_param_of(g, p->in[1].dtype, 0);
    return ortc_plan_pack(p, 1, &packing, &param, sizeof param, out);
}

static ortc_status plan(int stem, const ortc_conv_integer_state *s, ortc_plan *p, void **out)
{
    ortc_conv_geometry g;
    blocks_plan *b = calloc(1, sizeof *b);
    ortc_conv_read_windows(&s->window, s->group, p->in, p->out, &g);
    ortc_conv_plan_cost(p, &g, p->in[0].dtype);
    ortc_conv_join_groups(&g);
    if (!b || !ortc_blocked_plan_init(&g, p->in[0].dtype, stem, p->threads, &b->dense)) {
        free(b);
        return ortc_plan_fail(p, ORTC_OUT_OF_MEMORY, "no memory for a plan");
    }
    const ortc_dtype w = p->in[1].dtype;
    ortc_status status = ortc_conv_pack_blocked(p, &g, w, stem, &b->packed);
    if (!status && b->dense.leaves_out) status = pack_sums(p, &g, &b->tap_sums);
    if (status) {
        ortc_blocked_plan_deinit(&b->dense);
        free(b);
        return status;
    }
    b->ends = ortc_conv_integer_ends(s, p, &g, 0);
    ortc_plan_workspace(p, ortc_blocked_first_bytes(&b->dense), b->dense.scratch);
    *out = b;
    return ORTC_OK;
}

static void release_plan(const void *state, void *pstate)
{
    blocks_plan *b = pstate;
    (void)state;
    if (b) {
        ortc_blocked_plan_deinit(&b->dense);
        free(b->ends);
    }
    free(b);
}

ortc_status ortc_conv_integer_zero(ortc_call *call, int flip, int32_t *out)
{
    const ortc_view *zero = call->n_in > 2 && call->in[2].dtype ? &call->in[2] : NULL;
    if (zero && ortc_view_count(zero) != 1)
        return ortc_call_fail(call, ORTC_SHAPE_MISMATCH, "x_zero_point has %lld elements, expected 1",
                              (long long)ortc_view_count(zero));
    *out = (zero ? (int32_t)ortc_load_i64(zero->data, zero->dtype, 0) : 0) + (flip ? 128 : 0);
    return ORTC_OK;
}

ortc_int_ends *ortc_conv_integer_ends(const ortc_conv_integer_state *s, const ortc_plan *p,
                                      const ortc_conv_geometry *g, int along)
{
    const size_t channels = (size_t)(g->group * g->filters);
    if (g->channels * g->kernel_count >= ORTC_CONV_FIXED / (along ? 2 : 1))
        return NULL; /* W of 9 bits there */
    int32_t *first = calloc(channels + 1, sizeof *first);
    ortc_int_ends *ends = first ? ortc_int_ends_create(&s->tail, p->in, first, channels, along) : NULL;
    free(first);
    return ends;
}

void ortc_conv_integer_first(int32_t zero, const void *sums, size_t n, int32_t *out)
{
    for (size_t i = 0; i < n; i++) out[i] = -zero * ((const int32_t *)sums)[i];
}

static ortc_status run(const void *state, const void *pstate, ortc_call *call)
{
    const ortc_conv_integer_state *s = state;
    const blocks_plan *b = pstate;
    const ortc_product_threads threads = {ortc_call_parallel, call};
    int32_t zero;
    ORTC_TRY(ortc_conv_integer_zero(call, b->dense.flip, &zero));
    ortc_blocked_args args = {.x = call->in[0].data,
                              .w = b->packed->data,
                              .y = call->out[0].data,
                              .in = call->in,
                              .int_tail = &s->tail,
                              .int_ends = b->ends};
    ortc_blocked_first(&b->dense, zero, b->tap_sums ? b->tap_sums->data : NULL, call->workspace, &args);
    return ortc_blocked_run(&b->dense, &args, &threads);
}

#define CONV(stem, kernel, called) \
    static ortc_status choose_##stem(const void *state, const ortc_question *q, ortc_offer *o, \
                                     ortc_why *why) \
    { \
        return choose(stem, state, q, o, why); \
    } \
    static ortc_status plan_##stem(const void *state, ortc_plan *p, void **out) \
    { \
        return plan(stem, state, p, out); \
    } \
    const ortc_kernel kernel = {.size = ORTC_SIZED(ortc_kernel), \
                                .flags = ORTC_KERNEL_EPILOGUE | ORTC_KERNEL_LAYOUTS, \
                                .name = called, \
                                .supports = ortc_conv_integer_supports, \
                                .prepare = ortc_conv_integer_prepare, \
                                .plan = plan_##stem, \
                                .run = run, \
                                .release_plan = release_plan, \
                                .choose = choose_##stem};
CONV(0, ortc_conv_integer_blocked, "conv_integer.blocked")
CONV(1, ortc_conv_integer_stem, "conv_integer.stem")
