/* Conv and ConvInteger on the cpu of values in blocks of 16 channels where the machine has a unit of tiles
 * (tiled.h), or of plain ones of up to 4 channels, with constant W; of bytes, W as s8 has no zero points:
 *   conv.bf16            values of bf16
 *   conv.rounded         f32 rounded to bf16, where the device says so
 *   conv.pieces          f32 and f16 as three pieces of bf16
 *   conv_integer.tiled   bytes; sums begin with what x's zero point takes from them, as in
 *                        cpu_integer_blocks.c
 */
#include <stdlib.h>
#include <string.h>

#include "cpu.h"
#include "kernels/gemm/product_packing.h"
#include "kernels/common/cpu_device.h"
#include "kernels/common/shape.h"
#include "kernels/common/element.h"
#include "kernels/gemm/integer_tail.h"
#include "tiled.h"

#define FORM(kind) ((uint64_t)0x711ed << 32 | (uint64_t)(kind))

/* ---- Packed W ------------------------------------------------------------------------------------------ */

static size_t pack_bytes(const ortc_view *src, const void *param)
{
    const ortc_conv_pack_param *p = param;
    const ortc_conv_geometry g = ortc_conv_pack_geometry(p);
    (void)src;
    return ortc_tiled_weight_bytes(&g, (int)p->way);
}

static ortc_status pack_fill(void *dst, const ortc_view *src, const void *param, ortc_call *call)
{
    const ortc_conv_pack_param *p = param;
    const ortc_conv_geometry g = ortc_conv_pack_geometry(p);
    const ortc_product_threads threads = {ortc_call_parallel, call};
    void *joined = NULL;
    if (g.joined > 1) ORTC_TRY(ortc_conv_joined_weights(&g, src->dtype, src->data, &joined));
    const ortc_status status = ortc_tiled_weight_fill(&g, src->dtype, (int)p->way,
                                                      joined ? joined : src->data, dst, &threads);
    free(joined);
    return status;
}

/* A stem reads W itself where a number is not finite, and the plan of bytes the filters' sums (ends_of). */
static const ortc_packing packing = {ORTC_SIZED(ortc_packing), "cpu.conv.tiled", pack_bytes, pack_fill,
                                     ORTC_PACKING_PASSES},
                          packing_bytes = {ORTC_SIZED(ortc_packing), "cpu.conv.tiled", pack_bytes, pack_fill},
                          packing_bf16 = {ORTC_SIZED(ortc_packing), "cpu.conv.tiled", pack_bytes, pack_fill,
                                          ORTC_PACKING_ROUNDS | ORTC_PACKING_PASSES};

/* ---- Choose and plan ----------------------------------------------------------------------------------- */

typedef struct tiled_plan {
    ortc_tiled_plan tiled;
    ortc_dtype type;
    const ortc_packed *packed;
    ortc_int_ends *ends; /* of bytes; NULL: none */
    size_t sums;         /* of bytes: in front of the filters' sums in it */
    size_t first;        /* bytes of what sums begin with, in front of the workspace */
} tiled_plan;

static ortc_status choose(int kind, const ortc_conv_geometry *g, const ortc_question *q, ortc_offer *o,
                          ortc_why *why)
{
    ortc_tiled_plan p;
    const ortc_layout l = ortc_blocks();
    kind = ortc_tiled_kind(g, kind);
    if (q->layout != ORTC_ANY_LAYOUT && q->layout != l) return ortc_no(why, "it is for blocks of channels");
    if (!(q->in[1].flags & ORTC_VIEW_CONST)) return ortc_no(why, "W is not constant");
    if (ortc_conv_is_empty(g) ||
        !ortc_tiled_plan_init(ortc_tiled_uk_get(kind), g, q->in[0].dtype, kind, 0, &p))
        return ortc_no(why, "groups are not whole blocks, or too large");
    o->clocks = ortc_tiled_clocks(&p);
    o->form = FORM(kind);
    o->out[0] = l;
    if (!p.stem) o->in[0] = l;
    ortc_tiled_plan_deinit(&p);
    return ORTC_OK;
}

static ortc_status plan(int kind, const ortc_conv_geometry *g, ortc_plan *p, const ortc_conv_at *at,
                        void **out)
{
    tiled_plan *t = calloc(1, sizeof *t);
    kind = ortc_tiled_kind(g, kind);
    if (!t ||
        !ortc_tiled_plan_init(ortc_tiled_uk_get(kind), g, at->in[0].dtype, kind, p->threads, &t->tiled)) {
        free(t);
        return ortc_plan_fail(p, ORTC_OUT_OF_MEMORY, "no memory for a plan");
    }
    t->type = at->in[0].dtype;
    const ortc_conv_pack_param param = ortc_conv_pack_param_of(g, at->in[1].dtype, kind);
    const ortc_packing *how = kind == ORTC_TILED_BYTES                    ? &packing_bytes
                              : kind == ORTC_TILED_BF16 && !t->tiled.stem ? &packing_bf16
                                                                          : &packing;
    const ortc_status status = ortc_plan_pack(p, at->w, how, &param, sizeof param, &t->packed);
    if (status) {
        ortc_tiled_plan_deinit(&t->tiled);
        free(t);
        return status;
    }
    t->first = (size_t)(g->group * t->tiled.outs * ORTC_BLOCK) * 4;
    t->sums = ortc_tiled_weight_bytes(g, kind) - t->first;
    ortc_plan_workspace(p, t->first + t->tiled.shared, t->tiled.scratch);
    *out = t;
    return ORTC_OK;
}

void ortc_conv_pieces_release(const void *state, void *pstate)
{
    tiled_plan *t = pstate;
    (void)state;
    if (t) {
        ortc_tiled_plan_deinit(&t->tiled);
        free(t->ends);
    }
    free(t);
}

/* ---- Floats -------------------------------------------------------------------------------------------- */

static ortc_status choose_floats(int kind, const void *state, const ortc_question *q, ortc_offer *o,
                                 ortc_why *why)
{
    const ortc_conv_state *s = state;
    ortc_conv_geometry g;
    ortc_conv_read(s, q->in, q->out, &g);
    ORTC_TRY(choose(kind, &g, q, o, why));
    for (uint32_t i = 1; s->tail.has_rest && i < s->tail.rest.n_in; i++)
        if (s->tail.rest.in[i] && s->tail.lies[i] == ORTC_PW_FULL) o->in[i] = ortc_blocks();
    if (s->tail.residual >= 0) o->in[s->tail.residual] = ortc_blocks();
    return ORTC_OK;
}

/* Every result is finished once, from sums in scratch, so that a residual may be where it goes. */
static ortc_status plan_floats(int kind, const void *state, ortc_plan *p, void **out)
{
    const ortc_conv_state *s = state;
    ortc_conv_geometry g;
    ortc_conv_read(s, p->in, p->out, &g);
    ORTC_TRY(plan(kind, &g, p, &(ortc_conv_at){p->in, p->out, p->n_in, 1, NULL, NULL}, out));
    ortc_conv_plan_cost(p, &g, p->in[0].dtype);
    if (s->tail.residual >= 0) ortc_plan_in_place(p, 0, (uint32_t)s->tail.residual);
    return ORTC_OK;
}

ortc_status ortc_conv_pieces_plan(const ortc_conv_state *s, ortc_plan *p, const ortc_conv_at *at, void **out)
{
    ortc_conv_geometry g;
    ortc_conv_read(s, at->in, at->y, &g);
    ortc_conv_plan_cost(p, &g, at->in[0].dtype);
    return plan(ORTC_TILED_PIECES, &g, p, at, out);
}

ortc_status ortc_conv_pieces_run(const ortc_conv_state *s, const void *pstate, ortc_call *call,
                                 const ortc_conv_at *at)
{
    const tiled_plan *t = pstate;
    const ortc_product_threads threads = {ortc_call_parallel, call};
    const void *given = ortc_conv_data(at, ortc_conv_bias_port(&s->tail));
    memset(call->workspace, 0, t->first);
    if (given)
        ortc_convert_get()->widen[ortc_float_index(t->type)]((size_t)(t->tiled.group * t->tiled.filters),
                                                             given, call->workspace);
    const ortc_blocked_args args = {.x = at->in[0].data,
                                    .w = t->packed->data,
                                    .residual = ortc_conv_data(at, s->tail.residual),
                                    .bias = call->workspace,
                                    .y = at->y->data,
                                    .tail = &s->tail,
                                    .in = at->in,
                                    .factor = at->factor ? at->factor->data : NULL};
    return ortc_tiled_run(&t->tiled, &args, at->in[1].data, (char *)call->workspace + t->first, &threads);
}

static ortc_status run(const void *state, const void *pstate, ortc_call *call)
{
    return ortc_conv_pieces_run(state, pstate, call,
                                &(ortc_conv_at){call->in, call->out, call->n_in, 1, NULL, NULL});
}

/* A scale is a part of the program over finished rows. */
static ortc_status prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    return ortc_conv_prepare(n, (ORTC_TAIL_ALL | ORTC_TAIL_WIDER) & ~(uint32_t)ORTC_TAIL_SCALE, prep, out);
}

static ortc_status supports(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    if (!ortc_tiled_uk_get(ORTC_TILED_BF16)) return ortc_no(why, "there is no unit for products of bf16");
    return ortc_conv_supports_wider(n, device, why);
}

static ortc_status supports_pieces(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    if (!ortc_tiled_uk_get(ORTC_TILED_PIECES))
        return ortc_no(why, "there is no unit for products of bf16, or ORTC_CPU keeps f32 from it");
    return supports(n, device, why);
}

static ortc_status supports_rounded(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    if (!ortc_rounds_to_bf16(device)) return ortc_no(why, "f32 is not to be rounded to bf16");
    return supports(n, device, why);
}

#define CONV(title, kind, may, more) \
    static ortc_status choose_##title(const void *state, const ortc_question *q, ortc_offer *o, \
                                      ortc_why *why) \
    { \
        return choose_floats(kind, state, q, o, why); \
    } \
    static ortc_status plan_##title(const void *state, ortc_plan *p, void **out) \
    { \
        return plan_floats(kind, state, p, out); \
    } \
    const ortc_kernel ortc_conv_##title = {.size = ORTC_SIZED(ortc_kernel), \
                                           .flags = ORTC_KERNEL_EPILOGUE | ORTC_KERNEL_LAYOUTS | (more), \
                                           .name = "conv." #title, \
                                           .supports = may, \
                                           .prepare = prepare, \
                                           .plan = plan_##title, \
                                           .run = run, \
                                           .release_plan = ortc_conv_pieces_release, \
                                           .choose = choose_##title};
CONV(bf16, ORTC_TILED_BF16, supports, 0)
CONV(rounded, ORTC_TILED_ROUNDED, supports_rounded, ORTC_KERNEL_ROUNDS)
CONV(pieces, ORTC_TILED_PIECES, supports_pieces, 0)

/* ---- Bytes --------------------------------------------------------------------------------------------- */

static ortc_status choose_bytes(const void *state, const ortc_question *q, ortc_offer *o, ortc_why *why)
{
    const ortc_conv_integer_state *s = state;
    ortc_conv_geometry g;
    if (!ortc_product_symmetric(q->in, q->n_in, q->in[1].dtype == ORTC_U8 ? -128 : 0))
        return ortc_no(why, "W has zero points");
    ortc_conv_read_windows(&s->window, s->group, q->in, q->out, &g);
    if (!ortc_conv_join_groups(&g)) return ortc_no(why, "groups are not whole blocks");
    ORTC_TRY(choose(ORTC_TILED_BYTES, &g, q, o, why));
    ortc_conv_integer_along(s, q, o);
    return ORTC_OK;
}

/* In fixed point where all is constant that sums begin with, and these are below 2^30. */
static ortc_int_ends *ends_of(const ortc_conv_integer_state *s, const ortc_conv_geometry *g,
                              const ortc_plan *p, const tiled_plan *t)
{
    const ortc_view *zero = p->n_in > 2 && p->in[2].dtype ? &p->in[2] : NULL;
    if (zero && (!(zero->flags & ORTC_VIEW_CONST) || !zero->data || ortc_view_count(zero) != 1)) return NULL;
    if (g->channels * g->kernel_count >= ORTC_CONV_FIXED) return NULL;
    int32_t *first = malloc(t->first);
    if (!first) return NULL;
    ortc_conv_integer_first((zero ? (int32_t)ortc_load_i64(zero->data, zero->dtype, 0) : 0) +
                                (t->tiled.flip ? 128 : 0),
                            (const char *)t->packed->data + t->sums, t->first / 4, first);
    ortc_int_ends *ends = ortc_int_ends_create(&s->tail, p->in, first, (size_t)(g->group * g->filters), 0);
    free(first);
    return ends;
}

static ortc_status plan_bytes(const void *state, ortc_plan *p, void **out)
{
    const ortc_conv_integer_state *s = state;
    ortc_conv_geometry g;
    ortc_conv_read_windows(&s->window, s->group, p->in, p->out, &g);
    ortc_conv_plan_cost(p, &g, p->in[0].dtype);
    ortc_conv_join_groups(&g);
    ORTC_TRY(plan(ORTC_TILED_BYTES, &g, p, &(ortc_conv_at){p->in, p->out, p->n_in, 1, NULL, NULL}, out));
    tiled_plan *t = *out;
    t->ends = ends_of(s, &g, p, t);
    return ORTC_OK;
}

static ortc_status run_bytes(const void *state, const void *pstate, ortc_call *call)
{
    const ortc_conv_integer_state *s = state;
    const tiled_plan *t = pstate;
    const ortc_product_threads threads = {ortc_call_parallel, call};
    const size_t n = t->first / 4;
    int32_t zero;
    ORTC_TRY(ortc_conv_integer_zero(call, t->tiled.flip, &zero));
    if (!t->ends || t->ends->taken * ORTC_BLOCK < n)
        ortc_conv_integer_first(zero, (const char *)t->packed->data + t->sums, n, call->workspace);
    const ortc_blocked_args args = {.x = call->in[0].data,
                                    .w = t->packed->data,
                                    .bias = call->workspace,
                                    .y = call->out[0].data,
                                    .in = call->in,
                                    .int_tail = &s->tail,
                                    .int_ends = t->ends,
                                    .zero = (uint8_t)zero};
    return ortc_tiled_run(&t->tiled, &args, NULL, (char *)call->workspace + t->first, &threads);
}

static ortc_status supports_bytes(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    if (!ortc_tiled_uk_get(ORTC_TILED_BYTES)) return ortc_no(why, "there is no unit for products of bytes");
    return ortc_conv_integer_supports(n, device, why);
}

const ortc_kernel ortc_conv_integer_tiled = {.size = ORTC_SIZED(ortc_kernel),
                                             .flags = ORTC_KERNEL_EPILOGUE | ORTC_KERNEL_LAYOUTS,
                                             .name = "conv_integer.tiled",
                                             .supports = supports_bytes,
                                             .prepare = ortc_conv_integer_prepare,
                                             .plan = plan_bytes,
                                             .run = run_bytes,
                                             .release_plan = ortc_conv_pieces_release,
                                             .choose = choose_bytes};
