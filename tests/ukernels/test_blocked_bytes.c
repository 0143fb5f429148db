/* Convolution of bytes over blocks of channels (kernels/conv/blocked.h) against its definition: random
 * extents, groups, strides, dilations, pads, zero points, both signs of X and W, plain stems, with and
 * without the epilogue of a quantised network, of both signs; the same bits, forwards on three threads and
 * backwards on one, memory between guard pages. By each instruction of the machine that multiplies bytes by
 * fours; on tiles where it has these; ends in fixed point with AVX2 and AVX-512.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/common/cpu_features.h"
#include "kernels/common/element.h"
#include "kernels/conv/tiled.h"
#include "kernels/gemm/integer_tail.h"
#include "pool.h"
#include "tests.h"

typedef struct conv {
    ortc_conv_geometry g;
    ortc_dtype x_type, w_type;
    const ortc_tiled_uk *tiles; /* NULL: not on tiles */
    int stem, zero,
        quantised; /* quantised: to 8 bits, by a scale and a bias for each channel, and a residual */
    ortc_int_tail tail;
    guard x, w, y, r, scale, bias, first, packed, tap_sums;
} conv;

enum { SCALE_PORT = 4, BIAS_PORT, RESIDUAL_PORT, PORTS };

static int64_t blocks_of(int64_t channels) { return (channels + ORTC_BLOCK - 1) / ORTC_BLOCK; }

static int64_t at(int64_t n, int64_t c, int64_t s, int64_t channels, int64_t count)
{
    return ((n * blocks_of(channels) + c / ORTC_BLOCK) * count + s) * ORTC_BLOCK + c % ORTC_BLOCK;
}

static void make(conv *c, rng *r, const ortc_tiled_uk *tiles)
{
    static const ortc_dtype types[] = {ORTC_U8, ORTC_I8};
    ortc_conv_geometry *g = &c->g;
    memset(c, 0, sizeof *c);
    c->x_type = types[rng_next(r) % 2], c->w_type = types[rng_next(r) % 2];
    c->zero = (int)(c->x_type == ORTC_U8 ? rng_range(r, 0, 255) : rng_range(r, -128, 127));
    if (rng_next(r) % 4 == 0) c->zero = c->x_type == ORTC_U8 ? 0 : -128; /* as behind Relu */
    c->tiles = tiles, c->stem = !tiles && rng_next(r) % 4 == 0;
    g->spatial = (int32_t)rng_range(r, 1, 3);
    g->images = rng_range(r, 1, 2);
    g->group = !c->stem && rng_next(r) % 4 == 0 ? rng_range(r, 2, 3) : 1;
    g->channels = c->stem                           ? rng_range(r, 1, ORTC_STEM_CHANNELS)
                  : g->group > 1 || rng_next(r) % 2 ? 16 * rng_range(r, 1, 3)
                                                    : rng_range(r, 1, 70);
    if (!c->stem && rng_next(r) % 16 == 0) g->channels = 16 * rng_range(r, 60, 90); /* several chunks */
    g->filters = g->group > 1 || rng_next(r) % 2 ? 16 * rng_range(r, 1, 4) : rng_range(r, 1, 70);
    if (tiles && rng_next(r) % 4 == 0) g->group = 1, g->channels = rng_range(r, 1, ORTC_STEM_CHANNELS);
    const int point = rng_next(r) % 3 == 0;
    g->in_count = g->out_count = g->kernel_count = 1;
    for (int32_t i = 0; i < g->spatial; i++) {
        const int last = i == g->spatial - 1, free = rng_next(r) % 2 == 0;
        g->kernel[i] = point ? 1 : rng_range(r, 1, last ? 5 : 3);
        g->stride[i] = free ? 1 : rng_range(r, 1, 3);
        g->dilation[i] = free ? 1 : rng_range(r, 1, 3);
        g->pad[i] = rng_next(r) % 2 ? 0 : rng_range(r, 0, 3);
        const int64_t span = (g->kernel[i] - 1) * g->dilation[i] + 1,
                      end = rng_next(r) % 2 ? 0 : rng_range(r, 0, 3);
        g->in[i] = rng_range(r, 1, !last ? 9 : g->spatial == 1 && rng_next(r) % 4 == 0 ? 700 : 40);
        if (g->in[i] + g->pad[i] + end < span) g->in[i] = span;
        g->out[i] = (g->in[i] + g->pad[i] + end - span) / g->stride[i] + 1;
        g->in_count *= g->in[i], g->out_count *= g->out[i], g->kernel_count *= g->kernel[i];
    }
    if (tiles) c->stem = ortc_tiled_is_stem(g, ORTC_TILED_BYTES);
    c->quantised = rng_next(r) % 4 != 0;
    const ortc_dtype y_type = types[rng_next(r) % 2];
    c->tail = (ortc_int_tail){.type = c->quantised ? y_type : ORTC_F32, .has_pass = 1, .residual = -1};
    c->tail.steps.clip = c->tail.steps.last = (ortc_int_bounds){-INFINITY, INFINITY};
    if (!c->quantised) return;
    c->tail.scale = (ortc_int_source){.given = 1, .port = SCALE_PORT};
    c->tail.bias = (ortc_int_source){.given = 1, .port = BIAS_PORT};
    c->tail.lies[SCALE_PORT] = c->tail.lies[BIAS_PORT] = ORTC_PW_CHANNEL;
    c->tail.lies[RESIDUAL_PORT] = ORTC_PW_FULL;
    if (rng_next(r) % 2) { /* to 8 bits and back before it */
        c->tail.steps.to = (ortc_int_scaled){rng_next(r) % 2 ? ORTC_U8 : ORTC_I8, 0.013f, 12};
        c->tail.steps.from = (ortc_int_scaled){c->tail.steps.to.type, 0.013f, rng_next(r) % 2 ? 12 : 10};
    }
    if (rng_next(r) % 2) c->tail.steps.clip = (ortc_int_bounds){-0.3f, 1.1f};
    if (rng_next(r) % 4) c->tail.residual = RESIDUAL_PORT;
    c->tail.steps.residual = (ortc_int_scaled){c->tail.residual < 0 ? 0 : types[rng_next(r) % 2], 0.011f, 77};
    c->tail.steps.last.lo = rng_next(r) % 2 ? 0 : -INFINITY;
    c->tail.steps.y = (ortc_int_scaled){y_type, 0.017f, 99};
    if (rng_next(r) % 4) return;
    c->tail.steps.again = (ortc_int_scaled){y_type, 0.018f, 98};
    c->tail.type = ORTC_F32;
}

/* Results begin as 0xff, so that what is not written shows. */
static void fill(conv *c, const ortc_blocked_plan *dense, rng *r)
{
    const ortc_conv_geometry *g = &c->g;
    const int64_t ins = g->group * g->channels, outs = g->group * g->filters;
    const int64_t n_x = g->images * (c->stem ? ins : blocks_of(ins) * ORTC_BLOCK) * g->in_count,
                  n_y = g->images * blocks_of(outs) * ORTC_BLOCK * g->out_count,
                  n_w = outs * g->channels * g->kernel_count;
    const int end = (int)(rng_next(r) % 2);
    c->x = guard_open((size_t)n_x, end), c->w = guard_open((size_t)n_w, end);
    c->y = guard_open((size_t)n_y * (c->tail.type == ORTC_F32 ? 4 : 1), end),
    c->r = guard_open((size_t)n_y, end);
    c->scale = guard_open((size_t)outs * 4, end), c->bias = guard_open((size_t)outs * 4, end);
    c->first = guard_open(c->tiles ? (size_t)(blocks_of(outs) * ORTC_BLOCK) * 4
                                   : ortc_blocked_first_bytes(dense),
                          end);
    memset(c->x.data, 0, c->x.bytes);
    for (int64_t n = 0; n < g->images; n++)
        for (int64_t i = 0; i < ins; i++)
            for (int64_t s = 0; s < g->in_count; s++)
                c->x.data[c->stem ? (n * ins + i) * g->in_count + s : at(n, i, s, ins, g->in_count)] =
                    (unsigned char)rng_next(r);
    const int mild = rng_next(r) % 2; /* few weights that are large */
    for (size_t i = 0; i < c->w.bytes; i++)
        c->w.data[i] = (unsigned char)(mild && rng_next(r) % 64 ? (int)(rng_next(r) % 100) - 50
                                                                : (int)rng_next(r)) ^
                       (c->w_type == ORTC_U8 ? 0x80 : 0);
    c->packed = guard_open(c->tiles ? ortc_tiled_weight_bytes(g, ORTC_TILED_BYTES)
                                    : ortc_blocked_weight_bytes(g, c->w_type, c->stem, c->w.data),
                           end);
    c->tap_sums = guard_open(c->tiles ? 0 : ortc_blocked_tap_sums_bytes(g), end);
    for (size_t i = 0; i < c->r.bytes; i++) c->r.data[i] = (unsigned char)rng_next(r);
    for (int64_t o = 0; o < outs; o++) {
        ((float *)(void *)c->scale.data)[o] = 1e-4f * (1.5f + rng_float(r));
        ((float *)(void *)c->bias.data)[o] = rng_float(r);
    }
}

/* The sum of element (n, o, s) by definition; W as s8. */
static int64_t sum_of(const conv *c, int64_t n, int64_t o, int64_t s)
{
    const ortc_conv_geometry *g = &c->g;
    const int64_t ins = g->group * g->channels, first = o / g->filters * g->channels;
    int64_t sum = 0;
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
        for (int64_t i = 0; inside && i < g->channels; i++) {
            const int64_t x = c->stem ? (n * ins + first + i) * g->in_count + where
                                      : at(n, first + i, where, ins, g->in_count);
            sum += (ortc_load_i64(c->x.data, c->x_type, x) - c->zero) *
                   (ortc_load_i64(c->w.data, c->w_type, (o * g->channels + i) * g->kernel_count + t) -
                    (c->w_type == ORTC_U8 ? 128 : 0));
        }
    }
    return sum;
}

static float expected(const conv *c, int64_t n, int64_t o, int64_t s)
{
    const ortc_int_steps *k = &c->tail.steps;
    float v = (float)sum_of(c, n, o, s);
    if (!c->quantised) return v;
    const int64_t outs = c->g.group * c->g.filters;
    v = v * ((float *)(void *)c->scale.data)[o];
    v = v + ((float *)(void *)c->bias.data)[o];
    if (v < k->clip.lo) v = k->clip.lo;
    if (v > k->clip.hi) v = k->clip.hi;
    if (k->to.type) {
        const float low = k->to.type == ORTC_U8 ? 0 : -128;
        v = rintf(v / k->to.scale) + k->to.zero;
        v = v < low ? low : v > low + 255 ? low + 255 : v;
        v = (v - k->from.zero) * k->from.scale;
    }
    if (c->tail.residual >= 0) {
        const float x = (float)ortc_load_i64(c->r.data, k->residual.type, at(n, o, s, outs, c->g.out_count)) -
                        k->residual.zero,
                    add = x * k->residual.scale;
        v = v + add;
    }
    if ((k->to.type || c->tail.residual >= 0) && v < k->last.lo) v = k->last.lo;
    const float least = k->y.type == ORTC_U8 ? 0 : -128;
    v = rintf(v / k->y.scale) + k->y.zero;
    v = v < least ? least : v > least + 255 ? least + 255 : v;
    return k->again.type ? (v - k->again.zero) * k->again.scale : v;
}

static int check(const conv *c)
{
    const int64_t outs = c->g.group * c->g.filters;
    int bad = 0;
    for (int64_t n = 0; n < c->g.images; n++)
        for (int64_t o = 0; o < blocks_of(outs) * ORTC_BLOCK; o++)
            for (int64_t s = 0; s < c->g.out_count; s++)
                bad += ortc_load_f64(c->y.data, c->tail.type, at(n, o, s, outs, c->g.out_count)) !=
                       (o < outs ? (double)expected(c, n, o, s) : 0);
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
    printf("  types %d %d zero %d stem %d quantised %d images %lld groups %lld of %lld to %lld;",
           (int)c->x_type, (int)c->w_type, c->zero, c->stem, c->quantised, (long long)g->images,
           (long long)g->group, (long long)g->channels, (long long)g->filters);
    for (int32_t i = 0; i < g->spatial; i++)
        printf(" in %lld out %lld kernel %lld stride %lld dilation %lld pad %lld;", (long long)g->in[i],
               (long long)g->out[i], (long long)g->kernel[i], (long long)g->stride[i],
               (long long)g->dilation[i], (long long)g->pad[i]);
    printf("\n");
}

/* One of the two plans. */
typedef struct way {
    ortc_blocked_plan dense;
    ortc_tiled_plan tiled;
} way;

/* fixed: what can ends in fixed point. */
static void run_way(const conv *c, const way *w, int fixed, void *space, const ortc_product_threads *threads)
{
    ortc_view in[PORTS] = {{0}};
    in[SCALE_PORT].data = c->scale.data, in[BIAS_PORT].data = c->bias.data,
    in[RESIDUAL_PORT].data = c->r.data;
    const int moved = c->zero + (c->x_type == ORTC_I8 ? 128 : 0);
    const int64_t filters = blocks_of(c->g.group * c->g.filters) * ORTC_BLOCK;
    int32_t *first = (int32_t *)(void *)c->first.data;
    memset(first, 0xff, c->first.bytes);
    if (c->tiles) {
        memcpy(first, c->packed.data + c->packed.bytes - (size_t)filters * 4, (size_t)filters * 4);
        for (int64_t i = 0; i < filters; i++) first[i] *= -moved;
    }
    for (int i = 0; i < RESIDUAL_PORT; i++) in[i].flags = ORTC_VIEW_CONST;
    /* sums of tiles begin as 0 then, those of blocks with what ends know nothing of */
    int32_t *none = calloc((size_t)filters, sizeof *none);
    ortc_int_ends *ends = fixed ? ortc_int_ends_create(&c->tail, in, c->tiles ? first : none,
                                                       (size_t)(c->g.group * c->g.filters), 0)
                                : NULL;
    free(none);
    ortc_blocked_args a = {.x = c->x.data,
                           .w = c->packed.data,
                           .bias = (float *)(void *)first,
                           .y = c->y.data,
                           .in = in,
                           .int_tail = &c->tail,
                           .int_ends = ends,
                           .zero = (uint8_t)moved};
    memset(c->y.data, 0xff, c->y.bytes);
    if (c->tiles) {
        ortc_tiled_run(&w->tiled, &a, NULL, space, threads);
    } else {
        ortc_blocked_first(&w->dense, moved, (const int32_t *)(const void *)c->tap_sums.data, first, &a);
        ortc_blocked_run(&w->dense, &a, threads);
    }
    free(ends);
}

static int run_one(rng *r, const ortc_tiled_uk *tiles)
{
    conv c;
    way p;
    int bad = 0;
    make(&c, r, tiles);
    const uint32_t threads = (uint32_t)(rng_next(r) % 3);
    if (tiles ? !ortc_tiled_plan_init(tiles, &c.g, c.x_type, ORTC_TILED_BYTES, threads, &p.tiled)
              : !ortc_blocked_plan_init(&c.g, c.x_type, c.stem, threads, &p.dense))
        return 1;
    fill(&c, &p.dense, r);
    const size_t bytes = ((tiles ? p.tiled.scratch : p.dense.scratch) + 63) / 64 * 64;
    guard scratch = guard_open(bytes, 1), shared = guard_open(tiles ? p.tiled.shared : 0, 1);
    memset(shared.data, 0xff, shared.bytes);
    const ortc_product_threads one = {backwards, scratch.data};
    if (tiles) {
        ortc_tiled_weight_fill(&c.g, c.w_type, ORTC_TILED_BYTES, c.w.data, c.packed.data, &one);
    } else {
        ortc_blocked_weight_fill(&c.g, c.w_type, c.stem, c.w.data, c.packed.data, &one);
        ortc_blocked_tap_sums(&c.g, c.w_type, c.w.data, (int32_t *)(void *)c.tap_sums.data, &one);
    }
    memset(scratch.data, 0xff, scratch.bytes);
    run_way(&c, &p, 0, shared.data, &one);
    bad += check(&c);
    unsigned char *before = malloc(c.y.bytes + 1);
    memcpy(before, c.y.data, c.y.bytes);
    pool *pl = pool_open(3, bytes);
    const ortc_product_threads three = pool_threads(pl);
    run_way(&c, &p, 1, shared.data, &three);
    bad += memcmp(before, c.y.data, c.y.bytes) != 0;
    pool_close(pl);
    free(before);
    guard *all[] = {&c.x,     &c.w,      &c.y,        &c.r,     &c.scale, &c.bias,
                    &c.first, &c.packed, &c.tap_sums, &scratch, &shared};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        bad += !guard_intact(all[i]);
        guard_close(all[i]);
    }
    if (bad) describe(&c);
    if (tiles)
        ortc_tiled_plan_deinit(&p.tiled);
    else
        ortc_blocked_plan_deinit(&p.dense);
    return bad;
}

void test_blocked_bytes(tally *t, uint32_t isa_bits)
{
    static const struct {
        const char *name;
        uint32_t bits;
    } ways[] = {
        {"convolution of bytes in blocks, avx512vnni",
         ORTC_CPU_AVX2 | ORTC_CPU_AVX512 | ORTC_CPU_AVX512_VNNI},
        {"convolution of bytes in blocks, avx512", ORTC_CPU_AVX2 | ORTC_CPU_AVX512},
        {"convolution of bytes in blocks, avxvnni", ORTC_CPU_AVX2 | ORTC_CPU_AVX_VNNI},
        {"convolution of bytes in blocks, avx2", ORTC_CPU_AVX2},
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        int bad = 0;
        rng r = {t->seed};
        if (!tally_begins(t, ways[i].name, !(ways[i].bits & ~isa_bits))) continue;
        ortc_cpu_features_set_mask(ways[i].bits);
        for (int n = tally_count(t, RANDOM_CONVS); n > 0; n--) bad += run_one(&r, NULL);
        ortc_cpu_features_set_mask(UINT32_MAX);
        tally_result(t, ways[i].name, bad);
    }
}

void test_tiled_bytes(tally *t, uint32_t isa_bits)
{
    const ortc_tiled_uk *units[] = {&tiled_emulated, NULL};
    static const char *const names[] = {"convolution of bytes on tiles, emulated",
                                        "convolution of bytes on tiles, amx"};
    ortc_cpu_features_set_mask(isa_bits);
    units[1] = ortc_tiled_uk_get(ORTC_TILED_BYTES);
    for (int i = 0; i < 2; i++) {
        int bad = 0;
        rng r = {t->seed};
        if (!tally_begins(t, names[i], units[i] != NULL)) continue;
        for (int n = tally_count(t, i ? RANDOM_CONVS : EMULATED_CONVS); n > 0; n--)
            bad += run_one(&r, units[i]);
        tally_result(t, names[i], bad);
    }
    ortc_cpu_features_set_mask(UINT32_MAX);
}

/* ---- Ends in fixed point (integer_tail.h) against the same step by step -------------------------------- */

static float between(rng *r, float lo, float hi) /* evenly in its logarithm */
{
    return lo * powf(hi / lo, 0.5f + 0.5f * rng_float(r));
}

static const ortc_dtype bytes[] = {ORTC_U8, ORTC_I8};

static ortc_int_scaled some_scale(rng *r, float scale)
{
    return (ortc_int_scaled){bytes[rng_next(r) % 2], scale, (float)rng_range(r, 0, 127)};
}

enum {
    BEFORE_PORT = 3,
    LINK_PORT = RESIDUAL_PORT + 1,
    LINK_PORTS = 3,
    END_PORTS = LINK_PORT + 2 * LINK_PORTS
};

/* A link behind 8 bits of a scale: by a table, or by a pass, or both; to about as many units. */
static void make_link(rng *r, const ortc_int_scaled *from, int32_t port, float vectors[2][ORTC_BLOCK],
                      ortc_int_link *out)
{
    const float unit = from->scale * between(r, 0.5f, 2);
    *out = (ortc_int_link){.has_table = rng_next(r) % 4 == 0, .residual = -1};
    for (int i = 0; i < 256; i++) out->table[i] = (uint8_t)rng_next(r);
    out->has_pass = !out->has_table || rng_next(r) % 2;
    out->moved = (ortc_int_source){.given = 1, .port = -1, .k.i = -(int32_t)from->zero};
    out->times = (ortc_int_source){.given = 1, .port = -1, .k.f = from->scale};
    out->by = (ortc_int_source){.given = (int)(rng_next(r) % 2), .port = port};
    out->bias = (ortc_int_source){.given = (int)(rng_next(r) % 2), .port = port + 1};
    if (rng_next(r) % 4 == 0) out->by = (ortc_int_source){.given = 1, .port = -1, .k.f = 0.75f};
    out->steps.clip = out->steps.last = (ortc_int_bounds){-INFINITY, INFINITY};
    out->steps.from = *from;
    out->steps.y = some_scale(r, unit);
    if (rng_next(r) % 2) {
        out->residual = RESIDUAL_PORT;
        out->steps.residual = some_scale(r, unit * between(r, 0.1f, 2));
    }
    if (rng_next(r) % 2)
        *(out->residual >= 0 || out->by.given ? &out->steps.last
                                              : &out->steps.clip) = (ortc_int_bounds){-3 * unit, 100 * unit};
    for (int i = 0; i < ORTC_BLOCK; i++)
        vectors[0][i] = 0.5f + 0.5f * fabsf(rng_float(r)), vectors[1][i] = 100 * unit * rng_float(r);
}

/* Numbers of a layer: most results within their bounds; sums with every remainder; of some, which only pad a
 * block, nothing. Pixels of a block, or of one channel, whose last are no whole vector. */
static int end_one(rng *r)
{
    enum { MOST = 261 };
    const size_t pixels = rng_next(r) % 4   ? 61
                          : rng_next(r) % 4 ? 1 + rng_next(r) % 5
                                            : MOST,
                 N = pixels * ORTC_BLOCK, lanes = rng_next(r) % 4 ? ORTC_BLOCK : 1 + rng_next(r) % 15;
    const int along = rng_next(r) % 4 == 0;
    const size_t channel = rng_next(r) % lanes, n = along ? N - rng_next(r) % ORTC_BLOCK : N;
    static int32_t sums[MOST * ORTC_BLOCK];
    static uint8_t residual[MOST * ORTC_BLOCK], y[MOST * ORTC_BLOCK * 4], expected[MOST * ORTC_BLOCK * 4];
    float scale[ORTC_BLOCK], bias[ORTC_BLOCK], vectors[LINK_PORTS][2][ORTC_BLOCK];
    int32_t before[ORTC_BLOCK], first[ORTC_BLOCK];
    ortc_int_tail t = {.has_pass = 1, .residual = -1};
    ortc_int_steps *k = &t.steps;
    int32_t l = 0;
    ortc_view in[END_PORTS] = {{0}};
    k->clip = k->last = (ortc_int_bounds){-INFINITY, INFINITY};
    k->y = (ortc_int_scaled){bytes[rng_next(r) % 2], between(r, 1e-3f, 1), (float)rng_range(r, -128, 127)};
    if (k->y.type == ORTC_U8) k->y.zero += 128;
    if (rng_next(r) % 2) {
        const float wide = k->y.scale * between(r, 0.1f, 4);
        k->to = k->from = (ortc_int_scaled){bytes[rng_next(r) % 2], wide, (float)rng_range(r, 0, 127)};
        if (rng_next(r) % 4 == 0) k->from.scale *= 1.25f, k->from.zero += 3;
    }
    if (rng_next(r) % 2) {
        t.residual = RESIDUAL_PORT;
        k->residual = (ortc_int_scaled){bytes[rng_next(r) % 2], k->y.scale * between(r, 0.1f, 2),
                                        (float)rng_range(r, 0, 127)};
    }
    if (rng_next(r) % 2 && (k->to.type || t.residual < 0))
        k->clip = (ortc_int_bounds){-0.3f, 40 * k->y.scale};
    if (rng_next(r) % 2) k->last.lo = 0;
    t.type = k->y.type;
    ortc_int_steps *end = k;
    for (t.n_links = rng_next(r) % 2 ? (int32_t)(rng_next(r) % (ORTC_INT_LINKS + 1)) : 0; l < t.n_links;
         l++) {
        make_link(r, &end->y, LINK_PORT + 2 * l, vectors[l], &t.links[l]);
        if (!t.links[l].has_pass) t.links[l].steps.y = end->y;
        end = &t.links[l].steps;
    }
    if (rng_next(r) % 4 == 0 && (!t.n_links || t.links[t.n_links - 1].has_pass))
        end->again = end->y, t.type = ORTC_F32;
    t.before = (ortc_int_source){.given = (int)(rng_next(r) % 2), .port = BEFORE_PORT};
    t.scale = (ortc_int_source){.given = 1, .port = SCALE_PORT};
    t.bias = (ortc_int_source){.given = (int)(rng_next(r) % 2), .port = BIAS_PORT};
    for (int i = BEFORE_PORT; i < END_PORTS; i++) {
        t.lies[i] = ORTC_PW_CHANNEL;
        in[i].flags = ORTC_VIEW_CONST;
        if (i >= LINK_PORT) in[i].data = vectors[(i - LINK_PORT) / 2][(i - LINK_PORT) % 2];
    }
    t.lies[RESIDUAL_PORT] = ORTC_PW_FULL, in[RESIDUAL_PORT].flags = 0;
    in[BEFORE_PORT].data = before, in[SCALE_PORT].data = scale, in[BIAS_PORT].data = bias,
    in[RESIDUAL_PORT].data = residual;
    const int cancels = rng_next(r) % 4 == 0;
    const float size = between(r, 1e-6f, 0.5f), unit = k->to.type ? k->to.scale : k->y.scale;
    for (int i = 0; i < ORTC_BLOCK; i++) {
        scale[i] = unit * size * (1.5f + rng_float(r)), bias[i] = 300 * unit * rng_float(r);
        before[i] = (int32_t)(100 / size * rng_float(r));
        if (cancels && t.before.given && t.bias.given) { /* as zero points and biases may */
            before[i] = (int32_t)fmaxf(-0x1p29f, fminf(0x1p29f, (float)rng_range(r, -4000, 4000) / size));
            bias[i] = (float)-before[i] * scale[i] + 100 * unit * rng_float(r);
        }
        first[i] = (int32_t)(10 / size * rng_float(r));
    }
    for (size_t i = 0; i < N; i++) {
        sums[i] = (int32_t)(300 / size * rng_float(r));
        if (rng_next(r) % 64 == 0) sums[i] = (int32_t)(rng_next(r) % (1u << 31)) - (1 << 30);
        residual[i] = (uint8_t)rng_next(r);
    }
    /* elements that are halves as nearly as a sum can be */
    for (size_t i = 0; i < N && !k->to.type && t.residual < 0; i += 5) {
        const size_t c = along ? channel : i % ORTC_BLOCK;
        const double v = ((int)(rng_next(r) % 200) - 100 + 0.5) * unit - (t.bias.given ? bias[c] : 0);
        sums[i] = (int32_t)lrint(v / scale[c]) - first[c] - (t.before.given ? before[c] : 0);
    }
    ortc_int_ends *ends = ortc_int_ends_create(&t, in, first, lanes, along);
    const int has = ortc_int_ends_has(ends, along ? channel : 0);
    if (has && along)
        ortc_int_ends_along(ends, channel, sums, n, in, 0, y);
    else if (has)
        ortc_int_ends_run(ends, 0, sums, pixels, in, 0, y);
    free(ends);
    if (!has) return -1;
    const size_t size_of = t.type == ORTC_F32 ? sizeof(float) : 1;
    for (size_t i = 0; i < N; i++) sums[i] += first[along ? channel : i % ORTC_BLOCK];
    if (along) {
        const ortc_tail_place at = {.channel = (int64_t)channel, .channel_row = 1, .col = 1};
        ortc_int_tail_over(&t, in, &at, sums, n, expected, n, 1, n);
    } else {
        const ortc_tail_place at = {.channel_col = 1, .row = ORTC_BLOCK};
        ortc_int_tail_over(&t, in, &at, sums, ORTC_BLOCK, expected, ORTC_BLOCK, pixels, ORTC_BLOCK);
        for (size_t i = 0; i < pixels; i++)
            memset(expected + (i * ORTC_BLOCK + lanes) * size_of, 0, (ORTC_BLOCK - lanes) * size_of);
    }
    return memcmp(y, expected, n * size_of) != 0;
}

static void ends_on(tally *t, const char *name, uint32_t needed, uint32_t isa_bits)
{
    int bad = 0, done = 0;
    rng r = {t->seed};
    if (!tally_begins(t, name, !(needed & ~isa_bits))) return;
    ortc_cpu_features_set_mask(isa_bits);
    for (int n = 0; n < 20000; n++) {
        const int result = end_one(&r);
        bad += result > 0, done += result >= 0;
    }
    bad += done < 15000; /* and most of them are taken */
    tally_result(t, name, bad);
    ortc_cpu_features_set_mask(UINT32_MAX);
}

void test_byte_ends(tally *t, uint32_t isa_bits)
{
    ends_on(t, "ends of bytes in fixed point, avx512", ORTC_CPU_AVX512, isa_bits);
    ends_on(t, "ends of bytes in fixed point, avx2", ORTC_CPU_AVX2, isa_bits & ORTC_CPU_AVX2);
}
