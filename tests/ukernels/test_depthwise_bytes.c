/* Depthwise windows of bytes over blocks of channels (kernels/conv/blocked_depthwise.h) against their
 * definition: random extents, strides, dilations, pads, zero points and signs, sums as they are; by f32's
 * windows of every instruction set and, where the machine has these, by words of four taps. Memory between
 * guard pages, tasks backwards.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/common/cpu_features.h"
#include "kernels/common/element.h"
#include "kernels/conv/blocked_depthwise.h"
#include "kernels/gemm/integer_tail.h"
#include "tests.h"

typedef struct depthwise {
    ortc_conv_geometry g;
    ortc_dtype x_type, w_type;
    int zero;
    guard x, w, y, packed, first;
} depthwise;

static int64_t blocks_of(int64_t channels) { return (channels + ORTC_BLOCK - 1) / ORTC_BLOCK; }

static int64_t at(int64_t n, int64_t c, int64_t s, int64_t channels, int64_t count)
{
    return ((n * blocks_of(channels) + c / ORTC_BLOCK) * count + s) * ORTC_BLOCK + c % ORTC_BLOCK;
}

static void make(depthwise *c, rng *r)
{
    static const ortc_dtype types[] = {ORTC_U8, ORTC_I8};
    ortc_conv_geometry *g = &c->g;
    memset(c, 0, sizeof *c);
    c->x_type = types[rng_next(r) % 2], c->w_type = types[rng_next(r) % 2];
    c->zero = (int)(c->x_type == ORTC_U8 ? rng_range(r, 0, 255) : rng_range(r, -128, 127));
    g->spatial = (int32_t)rng_range(r, 1, 3);
    g->images = rng_range(r, 1, 2), g->group = rng_range(r, 2, 50), g->channels = g->filters = 1;
    g->in_count = g->out_count = g->kernel_count = 1;
    for (int32_t i = 0; i < g->spatial; i++) {
        const int last = i == g->spatial - 1, free = rng_next(r) % 2 == 0;
        g->kernel[i] = rng_range(r, 1, last ? 9 : 4);
        g->stride[i] = free ? 1 : rng_range(r, 1, 3);
        g->dilation[i] = free || last ? 1 : rng_range(r, 1, 3);
        if (last && rng_next(r) % 8 == 0) g->dilation[i] = 2;
        g->pad[i] = rng_next(r) % 2 ? 0 : rng_range(r, 0, 4);
        const int64_t span = (g->kernel[i] - 1) * g->dilation[i] + 1,
                      end = rng_next(r) % 2 ? 0 : rng_range(r, 0, 4);
        g->in[i] = rng_range(r, 1, last ? 40 : 9);
        if (g->in[i] + g->pad[i] + end < span) g->in[i] = span;
        g->out[i] = (g->in[i] + g->pad[i] + end - span) / g->stride[i] + 1;
        g->in_count *= g->in[i], g->out_count *= g->out[i], g->kernel_count *= g->kernel[i];
    }
}

static void fill(depthwise *c, rng *r)
{
    const ortc_conv_geometry *g = &c->g;
    const int end = (int)(rng_next(r) % 2);
    const size_t padded = (size_t)(blocks_of(g->group) * ORTC_BLOCK);
    c->x = guard_open((size_t)(g->images * g->in_count) * padded, end);
    c->y = guard_open((size_t)(g->images * g->out_count) * padded * 4, end);
    c->w = guard_open((size_t)(g->group * g->kernel_count), end);
    c->first = guard_open(padded * 4, end);
    memset(c->x.data, 0, c->x.bytes), memset(c->first.data, 0, c->first.bytes);
    for (int64_t n = 0; n < g->images; n++)
        for (int64_t i = 0; i < g->group; i++)
            for (int64_t s = 0; s < g->in_count; s++)
                c->x.data[at(n, i, s, g->group, g->in_count)] = (unsigned char)rng_next(r);
    for (size_t i = 0; i < c->w.bytes; i++) c->w.data[i] = (unsigned char)rng_next(r);
}

/* The sum of element (n, i, s) by definition; W as s8. */
static int64_t sum_of(const depthwise *c, int64_t n, int64_t i, int64_t s)
{
    const ortc_conv_geometry *g = &c->g;
    int64_t sum = 0;
    for (int64_t t = 0; t < g->kernel_count; t++) {
        int64_t rest_s = s, rest_t = t, where = 0, step = 1;
        int inside = 1;
        for (int32_t d = g->spatial - 1; d >= 0; d--) {
            const int64_t p = rest_s % g->out[d] * g->stride[d] - g->pad[d] +
                              rest_t % g->kernel[d] * g->dilation[d];
            rest_s /= g->out[d], rest_t /= g->kernel[d];
            inside &= p >= 0 && p < g->in[d];
            where += p * step, step *= g->in[d];
        }
        if (inside)
            sum += (ortc_load_i64(c->x.data, c->x_type, at(n, i, where, g->group, g->in_count)) - c->zero) *
                   (ortc_load_i64(c->w.data, c->w_type, i * g->kernel_count + t) -
                    (c->w_type == ORTC_U8 ? 128 : 0));
    }
    return sum;
}

static int check(const depthwise *c)
{
    const ortc_conv_geometry *g = &c->g;
    int bad = 0;
    for (int64_t n = 0; n < g->images; n++)
        for (int64_t i = 0; i < blocks_of(g->group) * ORTC_BLOCK; i++)
            for (int64_t s = 0; s < g->out_count; s++)
                bad += ortc_load_f64(c->y.data, ORTC_F32, at(n, i, s, g->group, g->out_count)) !=
                       (i < g->group ? (double)sum_of(c, n, i, s) : 0);
    return bad;
}

static int32_t backwards(void *scratch, int64_t n, int64_t grain, ortc_product_body *body, void *arg)
{
    for (int64_t i = (n - 1) / grain; i >= 0 && n > 0; i--)
        body(arg, i * grain, (i + 1) * grain < n ? (i + 1) * grain : n, scratch);
    return 0;
}

/* Whether it was by words in *by_words. */
static int run_one(rng *r, int *by_words)
{
    depthwise c;
    ortc_blocked_depthwise_plan p;
    make(&c, r);
    const uint32_t threads = (uint32_t)(rng_next(r) % 3);
    if (c.g.kernel_count > ORTC_DEPTHWISE_EXACT) return 0;
    if (!ortc_blocked_depthwise_plan_init(&c.g, c.x_type, threads, &p)) return 1;
    *by_words |= p.by_words != NULL;
    fill(&c, r);
    const size_t padded = (size_t)(p.blocks * ORTC_BLOCK);
    int zero = c.zero;
    if (p.by_words) {
        zero += p.is_signed ? 128 : 0;
        c.packed = guard_open(ortc_blocked_depthwise_word_bytes(&p), 1);
        ortc_blocked_depthwise_word_fill(&p, c.w_type, c.w.data, c.packed.data);
        memcpy(c.first.data, c.packed.data + c.packed.bytes - padded * 4, padded * 4);
        for (size_t i = 0; i < padded; i++) ((int32_t *)(void *)c.first.data)[i] *= -zero;
    } else {
        c.packed = guard_open(ortc_blocked_depthwise_weight_bytes(&c.g), 1);
        ortc_blocked_depthwise_weight_fill(&c.g, c.w_type, c.w.data, (float *)(void *)c.packed.data);
    }
    guard scratch = guard_open((p.scratch + 63) / 64 * 64, 1);
    const ortc_product_threads one = {backwards, scratch.data};
    const ortc_int_tail tail = {.type = ORTC_F32,
                                .has_pass = 1,
                                .residual = -1,
                                .steps = {.clip = {-INFINITY, INFINITY}, .last = {-INFINITY, INFINITY}}};
    const ortc_blocked_args a = {.x = c.x.data,
                                 .w = c.packed.data,
                                 .bias = (float *)(void *)c.first.data,
                                 .y = c.y.data,
                                 .int_tail = &tail,
                                 .zero = (uint8_t)zero};
    memset(scratch.data, 0xff, scratch.bytes), memset(c.y.data, 0xff, c.y.bytes);
    ortc_blocked_depthwise_run(&p, &a, &one);
    int bad = check(&c);
    guard *all[] = {&c.x, &c.w, &c.y, &c.first, &c.packed, &scratch};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        bad += !guard_intact(all[i]);
        guard_close(all[i]);
    }
    if (bad)
        printf("  types %d %d zero %d images %lld channels %lld, %d dims, last: in %lld out %lld kernel %lld "
               "stride %lld dilation %lld pad %lld\n",
               (int)c.x_type, (int)c.w_type, c.zero, (long long)c.g.images, (long long)c.g.group,
               (int)c.g.spatial, (long long)c.g.in[c.g.spatial - 1], (long long)c.g.out[c.g.spatial - 1],
               (long long)c.g.kernel[c.g.spatial - 1], (long long)c.g.stride[c.g.spatial - 1],
               (long long)c.g.dilation[c.g.spatial - 1], (long long)c.g.pad[c.g.spatial - 1]);
    return bad;
}

static void test_isa(tally *t, const char *isa, uint32_t needs, uint32_t mask, int words, uint32_t isa_bits)
{
    char name[64];
    int bad = 0, by_words = 0;
    rng r = {t->seed};
    snprintf(name, sizeof name, "depthwise windows of bytes, %s", isa);
    if (!tally_begins(t, name, !(needs & ~isa_bits))) return;
    ortc_cpu_features_set_mask(mask);
    for (int n = tally_count(t, RANDOM_CONVS); n > 0; n--) bad += run_one(&r, &by_words);
    ortc_cpu_features_set_mask(UINT32_MAX);
    tally_result(t, name, bad + (by_words != words));
}

void test_depthwise_bytes(tally *t, uint32_t isa_bits)
{
    int known;
#define ISA(isa, needs, unused) \
    test_isa(t, #isa, needs, ortc_cpu_level_mask(#isa, &known) & ~(uint32_t)ORTC_CPU_AVX512_VBMI, 0, \
             isa_bits);
    ORTC_EACH_ISA(ISA, 0)
#undef ISA
    const uint32_t words = ORTC_CPU_AVX512 | ORTC_CPU_AVX512_VNNI | ORTC_CPU_AVX512_VBMI;
    test_isa(t, "avx512vbmi", words, UINT32_MAX, 1, isa_bits);
}
