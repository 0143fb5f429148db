/* Tiles of pairs of bf16 (kernels/conv/blocked_uk.h) against sums in double: every number of pixels and of
 * blocks, depths of the last group, stems, groups, taps anywhere, sums that begin with a bias or go on,
 * results and residuals of both types, clipped or not; numbers that are not finite reach what they reach.
 * And what lays out and rounds. Memory between guard pages.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/common/cpu_features.h"
#include "kernels/common/element.h"
#include "kernels/conv/blocked.h"
#include "tests.h"

enum { WORDS = ORTC_BLOCK / 2, MOST_TAPS = 9 };

static guard random_bf16(rng *r, int64_t n, int end)
{
    const guard g = guard_open((size_t)n * 2, end);
    for (int64_t i = 0; i < n; i++) ortc_store_f64(g.data, ORTC_BF16, i, (double)rng_float(r));
    return g;
}
static guard random_f32(rng *r, int64_t n, int end)
{
    const guard g = guard_open((size_t)n * 4, end);
    rng_fill(r, (float *)(void *)g.data, (size_t)n);
    return g;
}
static double bf16_at(const guard *g, int64_t i) { return ortc_load_f64(g->data, ORTC_BF16, i); }

static int is_near(double got, double v, double bound)
{
    return isnan(v) ? isnan(got) : isinf(v) ? got == v : fabs(got - v) <= bound;
}

static int tile_one(rng *r, const ortc_blocked_pairs *uk, int64_t pixels, int64_t blocks)
{
    const int stem = rng_next(r) % 4 == 0;
    const int64_t step = stem ? 1 : WORDS;
    const int64_t groups = rng_range(r, 1, 3), taps = rng_range(r, 1, MOST_TAPS),
                  depth = rng_range(r, 1, step), reach = rng_range(r, 0, 5), part = taps * step;
    const int end = (int)(rng_next(r) % 2), half = (int)(rng_next(r) % 2), given = (int)(rng_next(r) % 2),
              residual = (int)(rng_next(r) % 2), clip = (int)(rng_next(r) % 2);
    const int64_t plane = (pixels + reach) * step, n_y = blocks * pixels * ORTC_BLOCK;
    const ortc_dtype type = half ? ORTC_BF16 : ORTC_F32;
    int64_t offset[MOST_TAPS];
    for (int64_t t = 0; t < taps; t++) offset[t] = rng_range(r, 0, reach) * step;
    guard x = random_bf16(r, groups * plane * 2, end), bias = random_f32(r, blocks * ORTC_BLOCK, end),
          w = random_bf16(r, blocks * groups * part * ORTC_BLOCK * 2, end), sums = random_f32(r, n_y, end),
          res = half ? random_bf16(r, n_y, end) : random_f32(r, n_y, end),
          y = guard_open((size_t)n_y * (half ? 2 : 4), end);
    if (rng_next(r) % 4 == 0)
        ortc_store_f64(x.data, ORTC_BF16, rng_range(r, 0, groups * plane * 2 - 1),
                       rng_next(r) % 2 ? NAN : INFINITY);
    const ortc_blocked_tile t = {.x = (const float *)(const void *)x.data,
                                 .offset = offset,
                                 .plane = plane,
                                 .groups = (size_t)groups,
                                 .taps = (size_t)taps,
                                 .depth = (size_t)depth,
                                 .w = w.data,
                                 .w_block = (size_t)(groups * part * ORTC_BLOCK),
                                 .y = (float *)(void *)y.data,
                                 .y_block = (size_t)(pixels * ORTC_BLOCK),
                                 .bias = given ? (const float *)(const void *)bias.data : NULL,
                                 .sums = (const float *)(const void *)sums.data,
                                 .sums_block = (size_t)(pixels * ORTC_BLOCK),
                                 .half = half,
                                 .residual = residual ? (const float *)(const void *)res.data : NULL,
                                 .clip = clip,
                                 .lo = -0.25f,
                                 .hi = 0.75f,
                                 .next = (const char *)w.data,
                                 .next_lines = rng_next(r) % 2};
    (stem ? uk->stem : uk->dense)((size_t)pixels, (size_t)blocks, &t);
    int bad = 0;
    for (int64_t i = 0; i < n_y; i++) {
        const int64_t b = i / (pixels * ORTC_BLOCK), p = i / ORTC_BLOCK % pixels, o = i % ORTC_BLOCK;
        double v = given ? (double)((float *)(void *)bias.data)[b * ORTC_BLOCK + o]
                         : (double)((float *)(void *)sums.data)[i];
        double mag = fabs(v);
        for (int64_t g = 0; g < groups; g++)
            for (int64_t k = 0; k < taps; k++)
                for (int64_t c = 0; c < 2 * (g + 1 < groups ? step : depth); c++) {
                    const int64_t word = ((b * groups + g) * taps + k) * step + c / 2;
                    const double m = bf16_at(&x, 2 * (g * plane + offset[k] + p * step) + c) *
                                     bf16_at(&w, (word * ORTC_BLOCK + o) * 2 + c % 2);
                    v += m, mag += fabs(m);
                }
        const double other = residual ? ortc_load_f64(res.data, type, i) : 0;
        v += other, mag += fabs(other);
        if (clip) v = v < -0.25 ? -0.25 : v > 0.75 ? 0.75 : v;
        const double bound = FLT_EPSILON * (double)(groups * part * 2 + 8) * mag +
                             (half ? 0x1p-8 * fabs(v) : 0) + 0x1p-25;
        bad += !is_near(ortc_load_f64(y.data, type, i), v, bound);
    }
    guard *all[] = {&x, &w, &y, &bias, &sums, &res};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        bad += !guard_intact(all[i]);
        guard_close(all[i]);
    }
    return bad;
}

/* Pixels laid out, and sums that are finished: rounded as ortc_store_f64 does. */
static int moves_one(rng *r, const ortc_blocked_pairs *uk)
{
    const int64_t n = rng_range(r, 1, 9), apart = rng_range(r, 1, 3), all = n * ORTC_BLOCK;
    const int end = (int)(rng_next(r) % 2);
    const int64_t span = ((n - 1) * apart + 1) * ORTC_BLOCK;
    guard f = random_f32(r, span, end), h = random_bf16(r, span, end), y = guard_open((size_t)all * 2, end),
          sums = random_f32(r, all, end), res = random_bf16(r, all, end);
    ((float *)(void *)f.data)[rng_range(r, 0, span - 1)] = rng_next(r) % 2 ? NAN : -INFINITY;
    ((float *)(void *)sums.data)[rng_range(r, 0, all - 1)] = NAN;
    int bad = 0;
    for (int way = 0; way < 4; way++) {
        const guard *from = way == 0 ? &f : way == 1 ? &h : &sums;
        if (way < 2)
            (way ? uk->lay_bf16 : uk->lay_f32)((size_t)n, from->data,
                                               (size_t)(apart * ORTC_BLOCK * (way ? 2 : 4)), y.data);
        else
            uk->clip_bf16((size_t)all, (const float *)(const void *)sums.data, way == 3 ? res.data : NULL,
                          -0.5f, way == 3 ? INFINITY : 0.25f, y.data);
        for (int64_t i = 0; i < all; i++) {
            const int64_t at = way < 2 ? i / ORTC_BLOCK * apart * ORTC_BLOCK + i % ORTC_BLOCK : i;
            unsigned char one[2];
            double v = ortc_load_f64(from->data, way == 1 ? ORTC_BF16 : ORTC_F32, at);
            if (way == 3) v = (double)((float)v + (float)bf16_at(&res, i));
            if (way > 1) v = v < -0.5 ? -0.5 : way == 2 && v > 0.25 ? 0.25 : v;
            ortc_store_f64(one, ORTC_BF16, 0, v);
            bad += !is_near(bf16_at(&y, i), ortc_load_f64(one, ORTC_BF16, 0), 0);
        }
    }
    guard words = guard_open((size_t)span * 4, end);
    uk->join((size_t)span, h.data, apart > 1 ? h.data : NULL, words.data);
    for (int64_t i = 0; i < span; i++) {
        bad += memcmp(words.data + 4 * i, h.data + 2 * i, 2) != 0;
        bad += apart > 1 ? memcmp(words.data + 4 * i + 2, h.data + 2 * i, 2) != 0
                         : words.data[4 * i + 2] || words.data[4 * i + 3];
    }
    guard *every[] = {&words, &f, &h, &y, &sums, &res};
    for (size_t i = 0; i < sizeof every / sizeof *every; i++) {
        bad += !guard_intact(every[i]);
        guard_close(every[i]);
    }
    return bad;
}

void test_blocked_pairs(tally *t, uint32_t isa_bits)
{
    const char *name = "tiles of pairs of bf16, avx512bf16";
    int bad = 0;
    rng r = {t->seed};
    ortc_cpu_features_set_mask(isa_bits);
    const ortc_blocked_pairs *uk = ortc_blocked_pairs_get();
    const ortc_blocked_uk *plain = ortc_blocked_uk_get();
    ortc_cpu_features_set_mask(UINT32_MAX);
    if (!tally_begins(t, name, uk != NULL)) return;
    for (int n = 0; n < 8; n++)
        for (int64_t b = 1; b <= (int64_t)plain->most_blocks; b++)
            for (int64_t p = 1; p <= (int64_t)plain->most_pixels; p++) bad += tile_one(&r, uk, p, b);
    for (int n = 0; n < 200; n++) bad += moves_one(&r, uk);
    tally_result(t, name, bad);
}
