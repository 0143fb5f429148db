/* Convolution over blocks of channels against its definition in double: random extents, groups, strides,
 * dilations, pads, tails and epilogues, f32, f16 and bf16, plain stems; every instruction set, memory between
 * guard pages, NaN in what only pads the output's last block before, one thread forwards and backwards and
 * three with the same bits. The bound: (K + 8) eps times the sum of absolute values, and one rounding of the
 * result in types of 16 bits; Winograd's transforms add up what is under a whole tile, so of theirs the sum
 * is of |W| alone, values of x being at most 1.
 */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/common/cpu_features.h"
#include "kernels/common/element.h"
#include "kernels/conv/blocked_depthwise.h"
#include "kernels/conv/tiled.h"
#include "kernels/conv/winograd.h"
#include "pool.h"
#include "programs.h"
#include "tests.h"

typedef struct conv {
    ortc_conv_geometry g;
    ortc_dtype type;
    int stem, depthwise, wide, residual, winograd; /* pixels a side of a tile, 0: not */
    int pairs;                                     /* of bf16, or of f32 rounded */
    int uneven;                                    /* groups are no whole blocks: nothing is read along y */
    int far;                                       /* as if images were large, where they are read in place */
    const ortc_tiled_uk *tiles;                    /* NULL: not on tiles */
    int kind;                                      /* ORTC_TILED_* */
    ortc_tail_spec tail;
    guard x, w, y, r, bias, channel, packed;
} conv;

static int64_t blocks_of(int64_t channels) { return (channels + ORTC_BLOCK - 1) / ORTC_BLOCK; }

/* Where channel c at position s of image n lies: in blocks, per group where there are several; wide: all of
 * them in each pixel. */
static int64_t at(int wide, int64_t n, int64_t c, int64_t s, int64_t channels, int64_t count)
{
    if (wide) return (n * count + s) * channels + c;
    return ((n * blocks_of(channels) + c / ORTC_BLOCK) * count + s) * ORTC_BLOCK + c % ORTC_BLOCK;
}

static double rounded(rng *r, ortc_dtype t)
{
    unsigned char one[8] = {0};
    ortc_store_f64(one, t, 0, (double)rng_float(r));
    return ortc_load_f64(one, t, 0);
}

/* A rest of an epilogue: x / 2 + channel[1] + full[2], or twice the channel's, not 0 at 0. */
static void add_rest(conv *c)
{
    ortc_pw_builder b = {.size = sizeof b, .n_in = 3};
    program_space space;
    const char *why;
    const int32_t x = ortc_pw_load(&b, 0, ORTC_F32);
    const int32_t half = ortc_pw_2(&b, ORTC_PW_MUL, x, ortc_pw_const(&b, x, 0.5));
    const int32_t sum = ortc_pw_2(&b, ORTC_PW_ADD, half, ortc_pw_load(&b, 1, ORTC_F32));
    program_finish(&b, ortc_pw_2(&b, ORTC_PW_ADD, sum, ortc_pw_load(&b, c->uneven ? 1 : 2, c->type)),
                   ORTC_F32, &space);
    c->tail.has_rest = ortc_pw_lower(&space.p, &c->tail.rest, &why) && ortc_pw_tile_can(&c->tail.rest);
    ortc_pw_step *steps = space.p.steps;
    steps[space.p.n - 1].type = c->type;
    c->tail.has_rest &= ortc_pw_lower(&space.p, &c->tail.stored, &why);
    c->tail.lies[1] = ORTC_PW_CHANNEL, c->tail.lies[2] = ORTC_PW_FULL;
}

static void make(conv *c, rng *r, const ortc_tiled_uk *tiles, int pairs)
{
    ortc_conv_geometry *g = &c->g;
    static const ortc_dtype types[] = {ORTC_F32, ORTC_F32, ORTC_F16, ORTC_BF16};
    memset(c, 0, sizeof *c);
    c->type = types[rng_next(r) % 4];
    c->stem = rng_next(r) % 4 == 0;
    c->pairs = pairs;
    if (pairs) c->type = c->stem || rng_next(r) % 2 ? ORTC_BF16 : ORTC_F32;
    if (tiles) {
        static const int kinds[] = {ORTC_TILED_BF16,   ORTC_TILED_ROUNDED, ORTC_TILED_PIECES,
                                    ORTC_TILED_PIECES, ORTC_TILED_PLAIN,   ORTC_TILED_PLAIN};
        c->tiles = tiles, c->stem = 0, c->kind = kinds[rng_next(r) % 6];
        c->type = c->kind == ORTC_TILED_BF16 ? ORTC_BF16 : ORTC_F32;
    }
    g->spatial = (int32_t)rng_range(r, 1, 3);
    g->images = rng_range(r, 1, 2);
    g->group = !c->stem && rng_next(r) % 4 == 0 ? rng_range(r, 2, 3) : 1;
    g->channels = c->stem                           ? rng_range(r, 1, ORTC_STEM_CHANNELS)
                  : g->group > 1 || rng_next(r) % 2 ? 16 * rng_range(r, 1, 3)
                                                    : rng_range(r, 1, 70);
    if (!c->stem && rng_next(r) % 16 == 0) g->channels = 16 * rng_range(r, 11, 40); /* several chunks */
    g->filters = g->group > 1 || rng_next(r) % 2 ? 16 * rng_range(r, 1, 4) : rng_range(r, 1, 70);
    c->depthwise = !tiles && !pairs && !c->stem && rng_next(r) % 3 == 0;
    if (c->depthwise) g->group = rng_range(r, 2, 70), g->channels = g->filters = 1;
    if (c->depthwise && rng_next(r) % 2) c->wide = 1, g->group = ORTC_BLOCK * rng_range(r, 1, 5);
    const int64_t each = c->depthwise && !c->wide ? 1 << rng_range(r, 0, 3) : 1;
    if (each <= ortc_blocked_uk_get()->most_each && each > 1) /* of a group */
        g->channels = g->filters = each, g->group = rng_range(r, 2, 70 / each);
    const int may = !tiles || c->kind == ORTC_TILED_PIECES;
    c->winograd = may && !c->stem && g->group == 1 && rng_next(r) % 2 ? rng_next(r) % 2 ? 4 : 2 : 0;
    if (c->winograd) g->spatial = rng_next(r) % 3 ? 2 : 3;
    const int many = tiles && c->winograd && rng_next(r) % 16 == 0; /* weights that stay f32 */
    if (many) g->channels = rng_range(r, 190, 210), g->filters = rng_range(r, 110, 120);
    if (tiles && !c->winograd && rng_next(r) % 4 == 0)
        g->group = 1, g->channels = rng_range(r, 1, ORTC_STEM_CHANNELS);
    const int point = rng_next(r) % 3 == 0;
    const int by_filters = tiles && point && !c->winograd && g->group == 1; /* dealt to threads */
    if (by_filters) g->spatial = 1, g->images = 1, g->filters = rng_range(r, 75, 110);
    g->in_count = g->out_count = g->kernel_count = 1;
    for (int32_t i = 0; i < g->spatial; i++) {
        const int last = i == g->spatial - 1, free = rng_next(r) % 2 == 0;
        g->kernel[i] = point ? 1 : rng_range(r, 1, last ? 5 : 3);
        g->stride[i] = free ? 1 : rng_range(r, 1, 3);
        g->dilation[i] = free ? 1 : rng_range(r, 1, 3);
        g->pad[i] = rng_next(r) % 2 ? 0 : rng_range(r, 0, 3);
        if (c->winograd && i < g->spatial - 2) g->kernel[i] = rng_range(r, 1, 3); /* planes */
        if (c->winograd && i >= g->spatial - 2) g->kernel[i] = 3, g->stride[i] = 1;
        if (by_filters) g->stride[i] = 1, g->pad[i] = 0;
        const int64_t span = (g->kernel[i] - 1) * g->dilation[i] + 1,
                      end = by_filters || rng_next(r) % 2 ? 0 : rng_range(r, 0, 3);
        g->in[i] = rng_range(r, 1, !last || many ? 9 : g->spatial == 1 && rng_next(r) % 4 == 0 ? 700 : 40);
        if (by_filters) g->in[i] = rng_range(r, 33, 48);
        if (g->in[i] + g->pad[i] + end < span) g->in[i] = span;
        g->out[i] = (g->in[i] + g->pad[i] + end - span) / g->stride[i] + 1;
        g->in_count *= g->in[i], g->out_count *= g->out[i], g->kernel_count *= g->kernel[i];
    }
    if (tiles && !c->winograd) c->stem = ortc_tiled_is_stem(g, c->kind);
    c->uneven = g->group > 1 && !tiles && !pairs && !c->depthwise && c->type == ORTC_F32 && rng_next(r) % 2;
    if (c->uneven) g->channels = rng_range(r, 1, 70), g->filters = rng_range(r, 1, 70);
    c->residual = !c->uneven && rng_next(r) % 3 == 0, c->far = rng_next(r) % 2;
    c->tail = (ortc_tail_spec){
        .alpha = 1, .act = (int32_t)(rng_next(r) % 3), .lo = 0.125f, .hi = 0.5f, .bias = -1, .residual = -1};
    if (rng_next(r) % 4 == 0) add_rest(c);
}

static int form_of(const conv *c)
{
    if (c->pairs) return c->stem ? ORTC_BLOCKED_STEM_PAIRS : ORTC_BLOCKED_PAIRS;
    return c->stem ? ORTC_BLOCKED_STEM : ORTC_BLOCKED_DENSE;
}

static int winograd_form(const conv *c)
{
    if (c->tiles) return ORTC_WINOGRAD_PIECES;
    return c->pairs && c->winograd == 2 && c->type == ORTC_BF16 ? ORTC_WINOGRAD_PAIRS : ORTC_WINOGRAD_FLOATS;
}

static void fill(conv *c, rng *r)
{
    const ortc_conv_geometry *g = &c->g;
    const int64_t ins = g->group * g->channels, outs = g->group * g->filters,
                  size = ortc_product_size(c->type);
    const int64_t n_x = g->images * (c->stem ? ins : blocks_of(ins) * ORTC_BLOCK) * g->in_count;
    const int64_t n_y = g->images * blocks_of(outs) * ORTC_BLOCK * g->out_count;
    const int64_t n_w = outs * g->channels * g->kernel_count;
    const int end = (int)(rng_next(r) % 2);
    c->x = guard_open((size_t)(n_x * size), end), c->w = guard_open((size_t)(n_w * size), end);
    c->y = guard_open((size_t)(n_y * size), end), c->r = guard_open((size_t)(n_y * size), end);
    c->channel = guard_open((size_t)outs * 4, end);
    c->bias = guard_open((size_t)((blocks_of(outs) + c->uneven) * ORTC_BLOCK) * 4, end);
    c->packed = guard_open(c->winograd    ? ortc_winograd_weight_bytes(g, c->winograd, winograd_form(c))
                           : c->depthwise ? ortc_blocked_depthwise_weight_bytes(g)
                           : c->tiles     ? ortc_tiled_weight_bytes(g, c->kind)
                                          : ortc_blocked_weight_bytes(g, c->type, form_of(c), NULL),
                           end);
    memset(c->x.data, 0, c->x.bytes), memset(c->r.data, 0, c->r.bytes),
        memset(c->bias.data, 0, c->bias.bytes);
    for (int64_t n = 0; n < g->images; n++) {
        for (int64_t i = 0; i < ins; i++)
            for (int64_t s = 0; s < g->in_count; s++)
                ortc_store_f64(c->x.data, c->type,
                               c->stem ? (n * ins + i) * g->in_count + s
                                       : at(c->wide, n, i, s, ins, g->in_count),
                               rounded(r, c->type));
        for (int64_t o = 0; o < outs; o++)
            for (int64_t s = 0; s < g->out_count; s++)
                ortc_store_f64(c->r.data, c->type, at(c->wide, n, o, s, outs, g->out_count),
                               rounded(r, c->type));
    }
    for (int64_t i = 0; i < n_w; i++) ortc_store_f64(c->w.data, c->type, i, rounded(r, c->type));
    for (int64_t o = 0; o < outs; o++) ((float *)(void *)c->bias.data)[o] = rng_float(r);
    rng_fill(r, (float *)(void *)c->channel.data, (size_t)outs);
    /* some that are not finite: only what they reach may be so */
    for (int64_t n = rng_next(r) % 4 ? 0 : rng_range(r, 1, 4); n > 0; n--) {
        const int64_t s = rng_range(r, 0, g->in_count - 1);
        ortc_store_f64(c->x.data, c->type, c->stem ? s : at(c->wide, 0, 0, s, ins, g->in_count),
                       rng_next(r) % 2 ? NAN : INFINITY);
    }
    /* what pieces do not hold: a small weight, a large one, a pixel of small values alone */
    if ((c->kind != ORTC_TILED_PIECES && c->kind != ORTC_TILED_PLAIN) || !c->tiles || rng_next(r) % 2) return;
    if (rng_next(r) % 2)
        ((float *)(void *)c->w.data)[rng_range(r, 0, n_w - 1)] = rng_next(r) % 2 ? 1e-36f : 1e18f;
    const int64_t s = rng_range(r, 0, g->in_count - 1);
    for (int64_t i = 0; i < ins; i++)
        ((float *)(void *)c->x.data)[at(c->wide, 0, i, s, ins, g->in_count)] = 1e-30f * rng_float(r);
}

/* Element (n, o, s) by definition; *mag: the sum of absolute values. */
static double expected(const conv *c, int64_t n, int64_t o, int64_t s, double *mag)
{
    const ortc_conv_geometry *g = &c->g;
    const int64_t ins = g->group * g->channels, outs = g->group * g->filters,
                  first = o / g->filters * g->channels;
    double v = (double)((float *)(void *)c->bias.data)[o];
    *mag = fabs(v);
    for (int64_t t = 0; t < g->kernel_count; t++) {
        int64_t rest_s = s, rest_t = t, where = 0, step = 1;
        int inside = 1;
        for (int32_t d = g->spatial - 1; d >= 0; d--) {
            const int64_t i = rest_s % g->out[d] * g->stride[d] - g->pad[d] +
                              rest_t % g->kernel[d] * g->dilation[d];
            rest_s /= g->out[d], rest_t /= g->kernel[d];
            inside &= i >= 0 && i < g->in[d];
            where += i * step, step *= g->in[d];
        }
        for (int64_t i = 0; (inside || c->winograd) && i < g->channels; i++) {
            const double w = ortc_load_f64(c->w.data, c->type, (o * g->channels + i) * g->kernel_count + t);
            const int64_t x = c->stem ? (n * ins + first + i) * g->in_count + where
                                      : at(c->wide, n, first + i, where, ins, g->in_count);
            const double p = inside ? ortc_load_f64(c->x.data, c->type, x) * w : 0;
            v += p, *mag += c->winograd ? fabs(w) : fabs(p);
        }
    }
    if (c->residual) {
        const double p = ortc_load_f64(c->r.data, c->type, at(c->wide, n, o, s, outs, g->out_count));
        v += p, *mag += fabs(p);
    }
    if (c->tail.act == ORTC_UK_ACT_CLIP) v = v < 0.125 ? 0.125 : v > 0.5 ? 0.5 : v;
    if (c->tail.act == ORTC_UK_ACT_LEAKY) v = v < 0 ? v * 0.125 : v;
    if (!c->tail.has_rest) return v;
    const double channel = (double)((float *)(void *)c->channel.data)[o];
    const double full = c->uneven
                            ? channel
                            : ortc_load_f64(c->r.data, c->type, at(c->wide, n, o, s, outs, g->out_count));
    *mag += fabs(channel) + fabs(full);
    return v / 2 + channel + full;
}

static int check(const conv *c)
{
    const ortc_conv_geometry *g = &c->g;
    const int64_t outs = g->group * g->filters;
    const double unit = c->type == ORTC_F32 ? 0x1p-24 : c->type == ORTC_F16 ? 0x1p-11 : 0x1p-8;
    const int by_pairs = c->winograd && winograd_form(c) == ORTC_WINOGRAD_PAIRS;
    int bad = 0;
    for (int64_t n = 0; n < g->images; n++)
        for (int64_t o = 0; o < blocks_of(outs) * ORTC_BLOCK; o++)
            for (int64_t s = 0; s < g->out_count; s++) {
                double mag = 0;
                const double got = ortc_load_f64(c->y.data, c->type,
                                                 at(c->wide, n, o, s, outs, g->out_count));
                const double v = o < outs ? expected(c, n, o, s, &mag) : 0;
                const int rounds = c->tiles ? c->kind == ORTC_TILED_ROUNDED : c->pairs && c->type == ORTC_F32;
                const double given = by_pairs ? 0x1p-6 * mag : rounds && !c->winograd ? 0x1p-7 * mag : 0;
                const double bound = given + FLT_EPSILON * (double)(g->channels * g->kernel_count + 8) * mag +
                                     unit * fabs(v) + 0x1p-25;
                bad += o >= outs  ? got != 0
                       : isnan(v) ? !isnan(got)
                       : isinf(v) ? got != v
                                  : !(fabs(got - v) <= bound);
            }
    return bad;
}

static int32_t backwards(void *scratch, int64_t n, int64_t grain, ortc_product_body *body, void *arg)
{
    for (int64_t i = (n - 1) / grain; i >= 0 && n > 0; i--)
        body(arg, i * grain, (i + 1) * grain < n ? (i + 1) * grain : n, scratch);
    return 0;
}

static void describe(const conv *c)
{
    const ortc_conv_geometry *g = &c->g;
    printf("  type %d stem %d depthwise %d wide %d winograd %d tiles %d pairs %d images %lld groups %lld of "
           "%lld to "
           "%lld, "
           "residual %d "
           "act %d tile %d;",
           (int)c->type, c->stem, c->depthwise, c->wide, c->winograd, c->tiles ? c->kind : -1, c->pairs,
           (long long)g->images, (long long)g->group, (long long)g->channels, (long long)g->filters,
           c->residual, (int)c->tail.act, c->tail.has_rest);
    for (int32_t i = 0; i < g->spatial; i++)
        printf(" in %lld out %lld kernel %lld stride %lld dilation %lld pad %lld;", (long long)g->in[i],
               (long long)g->out[i], (long long)g->kernel[i], (long long)g->stride[i],
               (long long)g->dilation[i], (long long)g->pad[i]);
    printf("\n");
}

/* Plans and packs; 0: cannot. */
typedef struct way {
    ortc_blocked_plan dense;
    ortc_blocked_depthwise_plan depthwise;
    ortc_winograd_plan winograd;
    ortc_tiled_plan tiled;
    size_t scratch, shared;
} way;

static int open_way(conv *c, uint32_t threads, way *w)
{
    w->shared = 0;
    if (c->winograd) {
        const ortc_blocked_pairs *pairs = winograd_form(c) == ORTC_WINOGRAD_PAIRS ? ortc_blocked_pairs_get()
                                                                                  : NULL;
        if (!ortc_winograd_plan_init(&c->g, c->type, c->winograd, c->tiles, pairs, threads, &w->winograd))
            return 0;
        w->scratch = (w->winograd.scratch + 63) / 64 * 64, w->shared = w->winograd.shared;
        return 1;
    }
    if (c->tiles) {
        if (!ortc_tiled_plan_init(c->tiles, &c->g, c->type, c->kind, threads, &w->tiled)) return 0;
        w->scratch = (w->tiled.scratch + 63) / 64 * 64, w->shared = (w->tiled.shared + 63) / 64 * 64;
        return 1;
    }
    if (!(c->wide        ? ortc_blocked_depthwise_plan_rows(&c->g, c->type, threads, &w->depthwise)
          : c->depthwise ? ortc_blocked_depthwise_plan_init(&c->g, c->type, threads, &w->depthwise)
                         : ortc_blocked_plan_init(&c->g, c->type, form_of(c), threads, &w->dense)))
        return 0;
    ortc_blocked_plan *p = &w->dense;
    if (!c->depthwise && p->in_place && p->type == ORTC_FLOAT_F32 && !p->pairs &&
        p->taps <= ORTC_BLOCKED_SEEN)
        p->far = c->far;
    w->scratch = ((c->depthwise ? w->depthwise.scratch : w->dense.scratch) + 63) / 64 * 64;
    return 1;
}

/* packed: NULL, for Winograd, of which chunks are as they are needed. */
static void run_way(const conv *c, const way *w, const void *packed, float *space,
                    const ortc_product_threads *threads)
{
    const ortc_view in[3] = {{.data = c->x.data}, {.data = c->channel.data}, {.data = c->r.data}};
    const ortc_blocked_args a = {.x = c->x.data,
                                 .w = packed,
                                 .residual = c->residual ? c->r.data : NULL,
                                 .bias = (float *)(void *)c->bias.data,
                                 .y = c->y.data,
                                 .tail = &c->tail,
                                 .in = in,
                                 .wide = c->wide ? w->depthwise.wide : 0};
    memset(c->y.data, 0xff, c->y.bytes);
    if (c->winograd)
        ortc_winograd_run(&w->winograd, &a, c->w.data, space, threads);
    else if (c->tiles)
        ortc_tiled_run(&w->tiled, &a, c->w.data, space, threads);
    else if (c->depthwise)
        ortc_blocked_depthwise_run(&w->depthwise, &a, threads);
    else
        ortc_blocked_run(&w->dense, &a, threads);
}

static void close_way(const conv *c, way *w)
{
    if (c->tiles && !c->winograd) ortc_tiled_plan_deinit(&w->tiled);
    if (!c->depthwise && !c->winograd && !c->tiles) ortc_blocked_plan_deinit(&w->dense);
}

/* Planned for few threads, or many, or for weights that are packed where they are read (chunks: of about so
 * many bytes, 0: they are packed), the same bits. */
static int several_threads(conv *c, uint32_t threads, int64_t chunks)
{
    way w;
    if (!open_way(c, threads, &w)) return 1;
    if (chunks && !ortc_winograd_plan_chunks(&w.winograd, threads, chunks)) return 0;
    if (chunks) w.shared = w.winograd.shared;
    unsigned char *first = malloc(c->y.bytes + 1);
    memcpy(first, c->y.data, c->y.bytes);
    guard shared = guard_open(w.shared, 1);
    memset(shared.data, 0xff, shared.bytes);
    pool *pl = pool_open(3, w.scratch);
    const ortc_product_threads three = pool_threads(pl);
    run_way(c, &w, chunks ? NULL : c->packed.data, (float *)(void *)shared.data, &three);
    int bad = memcmp(first, c->y.data, c->y.bytes) != 0;
    pool_close(pl);
    bad += !guard_intact(&shared);
    guard_close(&shared);
    close_way(c, &w);
    free(first);
    return bad;
}

static int run_one(rng *r, const ortc_tiled_uk *tiles, int pairs)
{
    conv c;
    way w;
    int bad = 0;
    make(&c, r, tiles, pairs);
    if (!open_way(&c, 1, &w)) return 1;
    fill(&c, r);
    guard scratch = guard_open(w.scratch, 1);
    const ortc_product_threads one = {backwards, scratch.data};
    guard shared = guard_open(w.shared, 1);
    float *space = (float *)(void *)shared.data;
    memset(shared.data, 0xff, shared.bytes);
    if (c.winograd)
        ortc_winograd_weight_fill(&c.g, c.type, c.winograd, winograd_form(&c), c.w.data, 0,
                                  (c.g.filters + ORTC_BLOCK - 1) / ORTC_BLOCK, c.packed.data, &one);
    else if (c.tiles)
        ortc_tiled_weight_fill(&c.g, c.type, c.kind, c.w.data, c.packed.data, &one);
    else if (c.depthwise)
        ortc_blocked_depthwise_weight_fill(&c.g, c.type, c.w.data, (float *)(void *)c.packed.data);
    else
        ortc_blocked_weight_fill(&c.g, c.type, form_of(&c), c.w.data, c.packed.data, &one);
    memset(scratch.data, 0xff, scratch.bytes);
    run_way(&c, &w, c.packed.data, space, &one);
    bad += check(&c);
    bad += several_threads(&c, rng_next(r) % 2 ? 2 : (uint32_t)rng_range(r, 3, 16), 0);
    if (c.winograd) bad += several_threads(&c, (uint32_t)rng_range(r, 1, 3), 1 << rng_range(r, 0, 20));
    guard *all[] = {&c.x, &c.w, &c.y, &c.r, &c.bias, &c.channel, &c.packed, &scratch, &shared};
    for (int i = 0; i < 9; i++) {
        bad += !guard_intact(all[i]);
        guard_close(all[i]);
    }
    if (bad) describe(&c);
    close_way(&c, &w);
    return bad;
}

/* Depthwise rows of 16 bits are held in f32 with the zeros beside them, for each thread: not those of any
 * dilation. f32 is read where it lies. */
static int held_is_bounded(void)
{
    int bad = 0;
    for (int64_t dilation = 1; dilation <= 1 << 26; dilation *= 4) {
        const ortc_conv_geometry g = {.spatial = 2,
                                      .in = {7, 7},
                                      .out = {7, 7},
                                      .kernel = {3, 3},
                                      .stride = {1, 1},
                                      .dilation = {dilation, dilation},
                                      .pad = {dilation, dilation},
                                      .images = 1,
                                      .group = 32,
                                      .channels = 1,
                                      .filters = 1,
                                      .in_count = 49,
                                      .out_count = 49,
                                      .kernel_count = 9};
        ortc_blocked_depthwise_plan p;
        const int f32 = ortc_blocked_depthwise_plan_init(&g, ORTC_F32, 2, &p);
        bad += f32 != (dilation <= 1024) || (f32 && p.scratch > 64 * 1024);
        const int f16 = ortc_blocked_depthwise_plan_init(&g, ORTC_F16, 2, &p);
        bad += f16 != (dilation <= 256) || (f16 && p.scratch > 65 * 1024 * 1024);
    }
    return bad;
}

/* What is planned for one thread, by which a kernel is chosen, is for any number: of 3x3 with many filters,
 * whose sums are large. */
static int planned_for_all(void)
{
    static const struct {
        int64_t filters, channels, rows, columns, images;
    } large[] = {{4096, 64, 28, 224, 8},
                 {4096, 64, 224, 224, 1},
                 {8192, 64, 4, 224, 32},
                 {8192, 256, 28, 128, 8}};
    int bad = 0;
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
        const int64_t h = large[i].rows, w = large[i].columns;
        const ortc_conv_geometry g = {.spatial = 2,
                                      .in = {h, w},
                                      .out = {h, w},
                                      .kernel = {3, 3},
                                      .stride = {1, 1},
                                      .dilation = {1, 1},
                                      .pad = {1, 1},
                                      .images = large[i].images,
                                      .group = 1,
                                      .channels = large[i].channels,
                                      .filters = large[i].filters,
                                      .in_count = h * w,
                                      .out_count = h * w,
                                      .kernel_count = 9};
        for (uint32_t threads = 1; threads <= 64; threads++) {
            ortc_blocked_plan p;
            const int can = ortc_blocked_plan_init(&g, ORTC_F32, 0, threads, &p);
            bad += !can;
            if (can) ortc_blocked_plan_deinit(&p);
        }
    }
    return bad;
}

void test_blocked(tally *t, uint32_t isa_bits)
{
    static const char *const planned = "convolution in blocks, planned for all";
    if (tally_begins(t, planned, 1)) tally_result(t, planned, planned_for_all());
    static const char *const held = "convolution in blocks, rows held";
    if (tally_begins(t, held, 1)) tally_result(t, held, held_is_bounded());
#define LINE(isa, needs, unused) {#isa, needs},
    static const struct {
        const char *name;
        uint32_t needs;
    } isas[] = {ORTC_EACH_ISA(LINE, 0)};
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++) {
        char name[64];
        int known, bad = 0;
        rng r = {t->seed};
        snprintf(name, sizeof name, "convolution in blocks, %s", isas[i].name);
        if (!tally_begins(t, name, !(isas[i].needs & ~isa_bits))) continue;
        ortc_cpu_features_set_mask(ortc_cpu_level_mask(isas[i].name, &known));
        for (int n = tally_count(t, RANDOM_CONVS); n > 0; n--) bad += run_one(&r, NULL, 0);
        ortc_cpu_features_set_mask(UINT32_MAX);
        tally_result(t, name, bad);
    }
}

/* Of bf16, and of f32 rounded to it, by pairs. */
void test_blocked_by_pairs(tally *t, uint32_t isa_bits)
{
    const char *name = "convolution in blocks by pairs, avx512bf16";
    int bad = 0;
    rng r = {t->seed};
    ortc_cpu_features_set_mask(isa_bits);
    if (tally_begins(t, name, ortc_blocked_pairs_get() != NULL)) {
        for (int n = tally_count(t, RANDOM_CONVS); n > 0; n--) bad += run_one(&r, NULL, 1);
        tally_result(t, name, bad);
    }
    ortc_cpu_features_set_mask(UINT32_MAX);
}

void test_tiled(tally *t, uint32_t isa_bits)
{
    const ortc_tiled_uk *units[] = {&tiled_emulated, NULL};
    static const char *const names[] = {"convolution on tiles, emulated", "convolution on tiles, amx"};
    ortc_cpu_features_set_mask(isa_bits);
    units[1] = ortc_tiled_uk_get(ORTC_TILED_BF16);
    for (int i = 0; i < 2; i++) {
        int bad = 0;
        rng r = {t->seed};
        if (!tally_begins(t, names[i], units[i] != NULL)) continue;
        for (int n = tally_count(t, i ? RANDOM_CONVS : EMULATED_CONVS); n > 0; n--)
            bad += run_one(&r, units[i], 0);
        tally_result(t, names[i], bad);
    }
    ortc_cpu_features_set_mask(UINT32_MAX);
}
