/* Conv on the cpu provider, of values in blocks of 16 channels (kernels/common/blocks.h), in f32, f16 and
 * bf16: further candidates beside those of plain values (cpu.c):
 *   conv.blocked            windows over blocks, constant W; groups of whole blocks, of f32 any (blocked.h)
 *   conv.blocked_1x1        the same for windows of one element
 *   conv.blocked_depthwise  a filter for each channel, or groups of few (blocked_depthwise.h)
 *   conv.depthwise_rows     the same of pixels as rows of channels, which are neither plain nor in blocks
 *   conv.stem               a plain image of up to 4 channels becomes blocks; of bf16 by pairs, too
 *   conv.winograd_2x2       windows of 3x3 without strides: by tiles of so many pixels (winograd.h)
 *   conv.winograd_4x4
 *   conv.pairs              values of bf16, where an instruction multiplies them by pairs: windows and points
 *   conv.rounded_pairs      the same of f32 rounded to bf16, where the device says so
 *   conv.rounded_winograd   tiles of 2x2, transformed values of bf16 being rounded to it, where it says so
 * They take no plain values (a stem: give none), so they are offered where somebody asks for blocks, or for
 * whatever is liked best. Packed forms of W are numbered by FORM_*.
 */
#include <stdlib.h>
#include <string.h>

#include "blocked_depthwise.h"
#include "cpu.h"
#include "kernels/common/cpu_device.h"
#include "kernels/common/shape.h"
#include "winograd.h"

enum {
    WINDOW,
    POINT,
    DEPTHWISE,
    ROWS,
    STEM,
    WINOGRAD_2,
    WINOGRAD_4,
    PIECES_2,
    PIECES_4,
    PAIRS,
    STEM_PAIRS,
    PAIRS_2
};
static int pixels_of(int way)
{
    return way < WINOGRAD_2 || way == PAIRS || way == STEM_PAIRS ? 0 : (way - WINOGRAD_2) % 2 ? 4 : 2;
}
static int winograd_form(int way)
{
    return way == PAIRS_2    ? ORTC_WINOGRAD_PAIRS
           : way >= PIECES_2 ? ORTC_WINOGRAD_PIECES
                             : ORTC_WINOGRAD_FLOATS;
}
static int form_of(int way)
{
    return way == STEM         ? ORTC_BLOCKED_STEM
           : way == PAIRS      ? ORTC_BLOCKED_PAIRS
           : way == STEM_PAIRS ? ORTC_BLOCKED_STEM_PAIRS
                               : ORTC_BLOCKED_DENSE;
}
#define FORM(way) ((uint64_t)0xb10c << 32 | (uint64_t)((way) == POINT ? WINDOW : (way)))

/* ---- Packed W ------------------------------------------------------------------------------------------ */

ortc_conv_pack_param ortc_conv_pack_param_of(const ortc_conv_geometry *g, ortc_dtype type, int way)
{
    const int32_t last = g->spatial - 1;
    const ortc_blocked_bytes *bytes = ortc_blocked_bytes_get();
    return (ortc_conv_pack_param){.way = way,
                                  .type = (int64_t)type,
                                  .group = g->group,
                                  .channels = g->channels,
                                  .filters = g->filters,
                                  .joined = g->joined,
                                  .kernel_count = g->kernel_count,
                                  .width = last < 0 ? 1 : g->kernel[last],
                                  .dilation = last < 0 ? 1 : g->dilation[last],
                                  .splits = bytes ? bytes->splits : 0};
}

ortc_conv_geometry ortc_conv_pack_geometry(const ortc_conv_pack_param *p)
{
    return (ortc_conv_geometry){.spatial = 1,
                                .kernel = {p->width},
                                .dilation = {p->dilation},
                                .group = p->group,
                                .channels = p->channels,
                                .filters = p->filters,
                                .joined = p->joined,
                                .kernel_count = p->kernel_count};
}

static size_t pack_bytes(const ortc_view *src, const void *param)
{
    const ortc_conv_pack_param *p = param;
    const ortc_conv_geometry g = ortc_conv_pack_geometry(p);
    const int m = pixels_of((int)p->way);
    if (m) return ortc_winograd_weight_bytes(&g, m, winograd_form((int)p->way));
    if (p->way == DEPTHWISE) return ortc_blocked_depthwise_weight_bytes(&g);
    void *joined = NULL;
    if (g.joined > 1 && ortc_conv_joined_weights(&g, src->dtype, src->data, &joined)) return 0;
    const size_t bytes = ortc_blocked_weight_bytes(&g, (ortc_dtype)p->type, form_of((int)p->way),
                                                   joined ? joined : src->data);
    free(joined);
    return bytes;
}

static ortc_status pack_fill(void *dst, const ortc_view *src, const void *param, ortc_call *call)
{
    const ortc_conv_pack_param *p = param;
    const ortc_conv_geometry g = ortc_conv_pack_geometry(p);
    const ortc_product_threads threads = {ortc_call_parallel, call};
    const int m = pixels_of((int)p->way);
    if (m)
        return ortc_winograd_weight_fill(&g, (ortc_dtype)p->type, m, winograd_form((int)p->way), src->data, 0,
                                         ortc_blocks_of(p->filters), dst, &threads);
    if (p->way == DEPTHWISE) {
        ortc_blocked_depthwise_weight_fill(&g, (ortc_dtype)p->type, src->data, dst);
        return ORTC_OK;
    }
    void *joined = NULL;
    if (g.joined > 1) ORTC_TRY(ortc_conv_joined_weights(&g, src->dtype, src->data, &joined));
    /* of pairs what is rounded may be given as f32 */
    const ortc_status status = ortc_blocked_weight_fill(&g,
                                                        p->way >= PAIRS ? src->dtype : (ortc_dtype)p->type,
                                                        form_of((int)p->way), joined ? joined : src->data,
                                                        dst, &threads);
    free(joined);
    return status;
}

static const ortc_packing packing = {ORTC_SIZED(ortc_packing), "cpu.conv.blocks", pack_bytes, pack_fill,
                                     ORTC_PACKING_PASSES},
                          packing_bf16 = {ORTC_SIZED(ortc_packing), "cpu.conv.blocks", pack_bytes, pack_fill,
                                          ORTC_PACKING_ROUNDS | ORTC_PACKING_PASSES},
                          packing_chunks = {ORTC_SIZED(ortc_packing), "cpu.conv.blocks", pack_bytes,
                                            pack_fill, ORTC_PACKING_PASSES | ORTC_PACKING_LEFT};

/* left: a run can do without. */
static ortc_status pack(ortc_plan *p, uint32_t in, const ortc_conv_geometry *g, ortc_dtype type, int way,
                        int left, const ortc_packed **out)
{
    const ortc_conv_pack_param param = ortc_conv_pack_param_of(g, type, way == POINT ? WINDOW : way);
    const ortc_packing *how = left                                                   ? &packing_chunks
                              : !pixels_of(way) && way >= PAIRS && type == ORTC_BF16 ? &packing_bf16
                                                                                     : &packing;
    return ortc_plan_pack(p, in, how, &param, sizeof param, out);
}

ortc_status ortc_conv_pack_blocked(ortc_plan *p, const ortc_conv_geometry *g, ortc_dtype type, int stem,
                                   const ortc_packed **out)
{
    return pack(p, 1, g, type, stem ? STEM : WINDOW, 0, out);
}

#ifndef ORTC_CHUNK_BYTES           /* else of the tests */
#define ORTC_CHUNK_BYTES (2 << 20) /* of weights that are packed for one run */
#endif

enum { SCALED = 16384 }; /* weights for a task: some microseconds */

/* ---- Choose and plan ----------------------------------------------------------------------------------- */

typedef struct blocks_plan {
    int way;
    ortc_dtype type;
    int64_t channels; /* of Y, in all */
    ortc_blocked_plan dense;
    ortc_blocked_depthwise_plan depthwise;
    ortc_winograd_plan winograd;
    const ortc_packed *packed;
    int64_t weights; /* bytes of an image's own, of points with a factor */
} blocks_plan;

static double winograd_clocks(const ortc_conv_geometry *g, const blocks_plan *b);

/* With products in pieces unless that is reckoned clearly longer, as of few tiles: of one thread, so that no
 * form depends on threads. Reckoned alike, pieces were quicker in YOLO-n (1.02). */
static int open_winograd(const ortc_conv_geometry *g, ortc_dtype type, uint32_t threads, blocks_plan *out)
{
    const int m = pixels_of(out->way),
              floats = ortc_winograd_plan_init(g, type, m, NULL, NULL, threads, &out->winograd);
    const ortc_tiled_uk *tiles = ortc_winograd_tiles(g);
    blocks_plan pieces = *out;
    pieces.way += PIECES_2 - WINOGRAD_2;
    if (!tiles || !ortc_winograd_plan_init(g, type, m, tiles, NULL, 1, &pieces.winograd)) return floats;
    if (floats && winograd_clocks(g, out) <= 0.8 * winograd_clocks(g, &pieces)) return 1;
    *out = pieces;
    return ortc_winograd_plan_init(g, type, m, tiles, NULL, threads, &out->winograd);
}

static int open_way(const ortc_conv_geometry *g, ortc_dtype type, int way, uint32_t threads, blocks_plan *out)
{
    if (way == STEM && type == ORTC_BF16 && ortc_blocked_pairs_get()) way = STEM_PAIRS;
    *out = (blocks_plan){.way = way, .type = type, .channels = g->group * g->filters};
    if (way == ROWS) {
        out->way = DEPTHWISE;
        return ortc_blocked_depthwise_plan_rows(g, type, threads, &out->depthwise);
    }
    if (way == PAIRS_2)
        return ortc_winograd_plan_init(g, type, 2, NULL, ortc_blocked_pairs_get(), threads, &out->winograd);
    return pixels_of(way)     ? open_winograd(g, type, threads, out)
           : way == DEPTHWISE ? ortc_blocked_depthwise_plan_init(g, type, threads, &out->depthwise)
                              : ortc_blocked_plan_init(g, type, form_of(way), threads, &out->dense);
}

static int is_dense(const blocks_plan *b) { return b->way != DEPTHWISE && !pixels_of(b->way); }

static void close_way(blocks_plan *b)
{
    if (is_dense(b)) ortc_blocked_plan_deinit(&b->dense);
}

/* Whether something of the result's shape is read where results end. */
static int reads_along(const ortc_conv_state *s)
{
    int yes = s->tail.residual >= 0;
    for (uint32_t i = 1; s->tail.has_rest && i < s->tail.rest.n_in; i++)
        yes |= s->tail.rest.in[i] && s->tail.lies[i] == ORTC_PW_FULL;
    return yes;
}

/* Floats of bias, with what lies behind it. */
static int64_t bias_count(const blocks_plan *b)
{
    return (ortc_blocks_of(b->channels) + (is_dense(b) && b->dense.uneven)) * ORTC_BLOCK;
}

/* The share of the rate of multiplications that register tiles of so many pixels reach: 0.95, if they have
 * the 8 sums that hide its latency. */
static double share_of_rate(const ortc_blocked_uk *uk, int64_t pixels, int64_t blocks)
{
    const int64_t most = (int64_t)uk->most_pixels, wide = blocks > 1 ? (int64_t)uk->most_blocks : 1;
    const double sums = (double)((pixels < most ? pixels : most) * wide * (uk->most_blocks > 1 ? 1 : 2));
    return 0.95 * (sums < 8 ? sums / 8 : 1);
}

/* Winograd's: a patch or tile of a block is transformed in so many clocks each; a product's register tile has
 * a beginning and an end; and what its weights are more than W comes from memory, for networks are larger
 * than caches. Every batch reads all weights, far ones where they are so many bytes. In pieces products reach
 * 0.65 of the unit's rate. */
#define FAR_WEIGHTS 8e6
static double winograd_clocks(const ortc_conv_geometry *g, const blocks_plan *b)
{
    const ortc_winograd_plan *w = &b->winograd;
    const double tiles = (double)w->count, in = (double)w->all, out = (double)w->outs,
                 points = (double)w->points;
    const double plain = 9 * in * out * ORTC_BLOCK * ORTC_BLOCK * sizeof(float), each = w->m == 4 ? 130 : 45;
    if (w->tiles) {
        const double weights = (double)ortc_winograd_weight_bytes(g, (int)w->m, ORTC_WINOGRAD_PIECES),
                     calls = (double)((w->count + 15) / 16) * points * (double)w->groups * out;
        return calls * 96 / 0.65 + tiles * (double)w->groups * (w->m == 4 ? 600 : 200) + tiles * out * each +
               (weights - plain) / 6 + weights * (double)(w->batches - 1) / 12 + 15e3;
    }
    const double bytes = (double)ortc_winograd_weight_bytes(g, (int)w->m, ORTC_WINOGRAD_FLOATS),
                 read_again = bytes > FAR_WEIGHTS ? bytes * (double)(w->batches - 1) / 12 : 0;
    const double macs = ortc_conv_least_clocks(g, b->type) / ((double)g->images * (double)g->out_count * 9) *
                        (out * ORTC_BLOCK / (double)g->filters);
    const double calls = points * tiles * out / (double)(w->uk->most_pixels * w->uk->most_blocks);
    if (w->pairs) /* patches and weights have half as many bytes, and W, too */
        return macs * points * tiles / 2 / share_of_rate(w->uk, w->batch, w->outs) + 30 * calls +
               tiles * (1.5 * in + out) * each + plain * (points - 9) / 9 / 12;
    return macs * points * tiles / share_of_rate(w->uk, w->batch, w->outs) + 30 * calls +
           tiles * (in + out) * each + plain * (points - 9) / 9 / 6 + read_again;
}

/* Of pairs: twice the rate, over whole words of channels; a tile begins and ends in so many clocks. */
static double pairs_clocks(const ortc_conv_geometry *g, const ortc_blocked_plan *d, double floats,
                           double tasks, double vectors)
{
    const double words = (double)(d->stem ? d->ins : (d->ins - 1) * d->step + d->depth) * 2 /
                         (double)g->channels;
    const int64_t row = d->flat ? d->rows * d->segment : d->segment, most = (int64_t)d->uk->most_pixels;
    const double tiles = vectors / (double)d->uk->most_blocks / (double)row *
                         (double)((row + most - 1) / most);
    const double laid_out = d->in_place ? 0
                                        : tasks * (double)d->ins * (double)d->plane /
                                              (double)(d->stem ? ORTC_BLOCK : d->step);
    return floats * words / 2 + 2 * laid_out + 40 * tiles + 0.8 * vectors;
}

/* Clocks, in the measure of cpu.c: channels are rounded up to blocks; a vector that is laid out is 2, one of
 * results 0.8, and 2 where it goes to its lanes. */
double ortc_conv_dense_clocks(const ortc_conv_geometry *g, ortc_dtype type, const ortc_blocked_plan *d)
{
    const int64_t row = d->flat ? d->rows * d->segment : d->segment;
    const double vectors = (double)(d->images * d->group * d->outs * d->out_count);
    const int64_t without = ortc_blocked_has_half(d) ? ORTC_BLOCK / 2 : 0;
    const double padded = (double)(d->outs * ORTC_BLOCK - without) / (double)g->filters;
    const double tasks = (double)(d->images * d->group * d->e.out[0] * d->row_tasks * d->segments *
                                  d->block_tasks);
    const double laid_out = d->widened    ? tasks * (double)(d->ins * d->in_count)
                            : d->in_place ? 0
                                          : tasks * (double)d->ins * (double)d->plane / ORTC_BLOCK;
    /* a single pixel waits for weights, however it goes */
    const double share = g->images * g->out_count > 1 ? share_of_rate(d->uk, row, d->outs) : 0.95,
                 least = ortc_conv_least_clocks(g, type);
    if (d->pairs) return pairs_clocks(g, d, least * padded / share, tasks, vectors);
    return least * ortc_blocked_seen(d) * padded / share + 2 * laid_out + (d->uneven ? 2 : 0.8) * vectors;
}

/* A tap of a depthwise window is two loads' time, a row of it 40; between far pixels a vector comes and goes
 * in 1. */
static double clocks_of(const ortc_conv_geometry *g, const blocks_plan *b)
{
    if (pixels_of(b->way)) return winograd_clocks(g, b);
    if (b->way == DEPTHWISE) {
        const ortc_window_extents *e = &b->depthwise.extents;
        const double blocks = (double)(b->depthwise.images * b->depthwise.blocks);
        const double far = b->depthwise.wide > 1 ? blocks * (double)(g->in_count + g->out_count) : 0;
        return far +
               (g->channels > 1 ? 1.5 : 2) * ortc_conv_least_clocks(g, b->type) *
                   (double)(b->depthwise.blocks * ORTC_BLOCK) / (double)b->depthwise.channels +
               40 * blocks * (double)(e->out[0] * e->out[1]);
    }
    return ortc_conv_dense_clocks(g, b->type, &b->dense);
}

static ortc_status choose(int way, const ortc_conv_state *s, const ortc_question *q, ortc_offer *o,
                          ortc_why *why)
{
    ortc_conv_geometry g;
    blocks_plan b;
    const ortc_layout l = way == ROWS ? ortc_layout_last(q->in[0].rank, 1) : ortc_blocks();
    if (q->layout != ORTC_ANY_LAYOUT && q->layout != l) return ortc_no(why, "it is for another layout");
    if (!(q->in[1].flags & ORTC_VIEW_CONST)) return ortc_no(why, "W is not constant");
    if (pixels_of(way) && q->flags & ORTC_ASK_NO_WINOGRAD) return ortc_no(why, "the session has no Winograd");
    ortc_conv_read(s, q->in, q->out, &g);
    if (way == PAIRS && q->in[0].dtype != q->in[1].dtype) return ortc_no(why, "W is of another type");
    if ((way == WINDOW || way == POINT) && (g.kernel_count == 1) != (way == POINT))
        return ortc_no(why, way == POINT ? "the window is not a point" : "the window is a point");
    if (ortc_conv_is_empty(&g) || !open_way(&g, q->in[0].dtype, way, 1, &b))
        return ortc_no(why,
                       way == STEM        ? "more than %d channels, or groups"
                       : way == DEPTHWISE ? "groups are not of one channel and filter, or of 2, 4 or 8"
                       : way == ROWS      ? "not one channel and filter a group, or not whole blocks of them"
                       : pixels_of(way)   ? "not a window of 3x3 without strides and groups"
                                          : "groups are of 16 bits and no whole blocks, or too large",
                       ORTC_STEM_CHANNELS);
    if (is_dense(&b) && b.dense.uneven && reads_along(s)) {
        close_way(&b);
        return ortc_no(why, "groups are not whole blocks, and results are joined with others");
    }
    for (uint32_t i = 1; s->tail.has_rest && i < s->tail.rest.n_in; i++)
        if (s->tail.rest.in[i] && s->tail.lies[i] == ORTC_PW_FULL) o->in[i] = l;
    o->clocks = clocks_of(&g, &b);
    o->form = FORM(b.way);
    if (way != STEM) o->in[0] = l;
    if (s->tail.residual >= 0) o->in[s->tail.residual] = l;
    o->out[0] = l;
    close_way(&b);
    return ORTC_OK;
}

static ortc_status plan_at(int way, const ortc_conv_state *s, ortc_plan *p, const ortc_conv_at *at,
                           void **out)
{
    ortc_conv_geometry g;
    blocks_plan *b = malloc(sizeof *b);
    ortc_conv_read(s, at->in, at->y, &g);
    if (!b || !open_way(&g, at->in[0].dtype, way, p->threads, b)) {
        free(b);
        return ortc_plan_fail(p, ORTC_OUT_OF_MEMORY, "no memory for a plan");
    }
    ortc_winograd_plan chunks = {0};
    if (pixels_of(way)) chunks = b->winograd;
    const int left = pixels_of(way) && ortc_winograd_plan_chunks(&chunks, p->threads, ORTC_CHUNK_BYTES);
    const ortc_status status = pack(p, at->w, &g, b->type, b->way, left, &b->packed);
    if (!status && !b->packed) b->winograd = chunks;
    if (status) {
        close_way(b);
        free(b);
        return status;
    }
    size_t bias = (size_t)bias_count(b) * sizeof(float);
    if (at->factor) { /* and factors */
        b->weights = (int64_t)b->packed->bytes * (b->type == ORTC_F32 ? 1 : 2);
        bias += (size_t)g.images * ((size_t)b->weights + (size_t)(b->dense.ins * ORTC_BLOCK) * sizeof(float));
    }
    if (at->mean) bias += (size_t)ortc_blocked_depthwise_sums(&b->depthwise) * sizeof(float);
    if (pixels_of(way))
        ortc_plan_workspace(p, bias + b->winograd.shared, b->winograd.scratch);
    else
        ortc_plan_workspace(p, bias, b->way == DEPTHWISE ? b->depthwise.scratch : b->dense.scratch);
    ortc_conv_plan_cost(p, &g, b->type);
    *out = b;
    return ORTC_OK;
}

/* Whether all of a residual is read before results are written there: no sums are kept in y, and no tile is
 * computed again once registers have stored it. */
static int may_reuse_residual(const ortc_conv_state *s, const blocks_plan *b)
{
    const ortc_blocked_args args = {.tail = &s->tail};
    if (pixels_of(b->way)) return !ortc_blocked_end_of(NULL, ortc_float_index(b->type), &args).straight;
    return b->way == DEPTHWISE || b->dense.chunks == 1;
}

static ortc_status plan(int way, const void *state, ortc_plan *p, void **out)
{
    const ortc_conv_state *s = state;
    ORTC_TRY(plan_at(way, s, p, &(ortc_conv_at){p->in, p->out, p->n_in, 1, NULL, NULL}, out));
    if (s->tail.residual >= 0 && may_reuse_residual(s, *out))
        ortc_plan_in_place(p, 0, (uint32_t)s->tail.residual);
    return ORTC_OK;
}
ortc_status ortc_conv_blocks_plan(const ortc_conv_state *s, int depthwise, ortc_plan *p,
                                  const ortc_conv_at *at, void **out)
{
    return plan_at(depthwise ? DEPTHWISE : POINT, s, p, at, out);
}

void ortc_conv_blocks_release(const void *state, void *pstate)
{
    (void)state;
    if (!pstate) return;
    close_way(pstate);
    free(pstate);
}

/* Packed weights of points for each image, times the factors of its channels: by blocks of output. */
typedef struct scaling {
    const ortc_blocked_plan *d;
    const char *weights;
    const float *factor;
    float *to;
} scaling;

static void scale_blocks(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const scaling *s = arg;
    const int64_t channels = s->d->ins * ORTC_BLOCK, block = channels * ORTC_BLOCK,
                  size = s->d->type == ORTC_FLOAT_F32 ? 4 : 2;
    (void)scratch;
    for (int64_t i = begin; i < end; i++)
        s->d->uk->scale[s->d->type]((size_t)channels, s->weights + i % s->d->outs * block * size,
                                    s->factor + i / s->d->outs * channels, s->to + i * block);
}

/* `space` takes the factors as f32, then the weights, which are returned. */
static ortc_status scale_weights(const blocks_plan *b, const void *factor, float *space, const void **w,
                                 ortc_call *call)
{
    const ortc_blocked_plan *d = &b->dense;
    const int64_t factors = d->images * d->ins * ORTC_BLOCK;
    scaling s = {d, b->packed->data, space, space + factors};
    *w = s.to;
    ortc_convert_get()->widen[d->type]((size_t)factors, factor, space);
    return ortc_parallel(call, d->images * d->outs, SCALED / (d->ins * ORTC_BLOCK * ORTC_BLOCK) + 1,
                         scale_blocks, &s);
}

ortc_status ortc_conv_blocks_run(const ortc_conv_state *s, const void *pstate, ortc_call *call,
                                 const ortc_conv_at *at)
{
    const blocks_plan *b = pstate;
    const ortc_product_threads threads = {ortc_call_parallel, call};
    const void *given = ortc_conv_data(at, ortc_conv_bias_port(&s->tail));
    float *bias = call->workspace;
    const int64_t padded = bias_count(b);
    memset(bias, 0, (size_t)padded * sizeof *bias);
    if (given) ortc_convert_get()->widen[ortc_float_index(b->type)]((size_t)b->channels, given, bias);
    ortc_blocked_args args = {.x = at->in[0].data,
                              .w = b->packed ? b->packed->data : NULL,
                              .residual = ortc_conv_data(at, s->tail.residual),
                              .bias = bias,
                              .y = at->y->data,
                              .tail = &s->tail,
                              .in = at->in,
                              .w_image = b->weights,
                              .wide = b->depthwise.wide,
                              .sums = at->mean ? bias + padded : NULL};
    if (pixels_of(b->way))
        return ortc_winograd_run(&b->winograd, &args, at->in[1].data, bias + padded, &threads);
    if (at->factor) {
        ORTC_TRY(scale_weights(b, at->factor->data, bias + padded, &args.w, call));
        args.floats = 1;
    }
    if (b->way != DEPTHWISE) return ortc_blocked_run(&b->dense, &args, &threads);
    ORTC_TRY(ortc_blocked_depthwise_run(&b->depthwise, &args, &threads));
    if (at->mean) ortc_blocked_depthwise_mean(&b->depthwise, args.sums, at->mean->data);
    return ORTC_OK;
}

static ortc_status run(const void *state, const void *pstate, ortc_call *call)
{
    return ortc_conv_blocks_run(state, pstate, call,
                                &(ortc_conv_at){call->in, call->out, call->n_in, 1, NULL, NULL});
}

/* A scale is a part of the program over finished rows. */
static ortc_status prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    return ortc_conv_prepare(n, ORTC_TAIL_ALL & ~(uint32_t)ORTC_TAIL_SCALE, prep, out);
}

static ortc_status supports_pairs(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    if (!ortc_blocked_pairs_get())
        return ortc_no(why, "the processor has no instruction for pairs of bf16, or a better one");
    return ortc_conv_supports(n, device, why);
}
static ortc_status supports_rounded(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    if (!ortc_rounds_to_bf16(device)) return ortc_no(why, "f32 is not to be rounded to bf16");
    return supports_pairs(n, device, why);
}

#define CONV(way, kernel, called) CONV_THAT(way, way, kernel, called, ortc_conv_supports, 0)
#define CONV_THAT(way, id, kernel, called, may, more) \
    static ortc_status choose_##id(const void *state, const ortc_question *q, ortc_offer *o, ortc_why *why) \
    { \
        return choose(way, state, q, o, why); \
    } \
    static ortc_status plan_##id(const void *state, ortc_plan *p, void **out) \
    { \
        return plan(way, state, p, out); \
    } \
    const ortc_kernel kernel = {.size = ORTC_SIZED(ortc_kernel), \
                                .flags = ORTC_KERNEL_EPILOGUE | ORTC_KERNEL_LAYOUTS | (more), \
                                .name = called, \
                                .supports = may, \
                                .prepare = prepare, \
                                .plan = plan_##id, \
                                .run = run, \
                                .release_plan = ortc_conv_blocks_release, \
                                .choose = choose_##id};
CONV(WINDOW, ortc_conv_blocked, "conv.blocked")
CONV(POINT, ortc_conv_blocked_1x1, "conv.blocked_1x1")
CONV(DEPTHWISE, ortc_conv_blocked_depthwise, "conv.blocked_depthwise")
CONV(ROWS, ortc_conv_depthwise_rows, "conv.depthwise_rows")
CONV(STEM, ortc_conv_stem, "conv.stem")
CONV(WINOGRAD_2, ortc_conv_winograd_2x2, "conv.winograd_2x2")
CONV(WINOGRAD_4, ortc_conv_winograd_4x4, "conv.winograd_4x4")
CONV_THAT(PAIRS, PAIRS, ortc_conv_pairs, "conv.pairs", supports_pairs, 0)
CONV_THAT(PAIRS, ROUNDED, ortc_conv_rounded_pairs, "conv.rounded_pairs", supports_rounded, ORTC_KERNEL_ROUNDS)
CONV_THAT(PAIRS_2, PAIRS_2, ortc_conv_rounded_winograd, "conv.rounded_winograd", supports_rounded, 0)
