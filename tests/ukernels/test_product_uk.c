/* Every line of product_lines.inc against sums in double: all sizes of a tile, every epilogue, packed and direct
 * B, unaligned and guarded buffers, NaN and infinity; and the packing and dot product that stand on the same
 * line. The bound on the error of a sum of K products is (K + 8) eps times the sum of the absolute values,
 * the textbook one.
 */
#include "tests.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guard.h"
#include "kernels/gemm/product_uk.h"

static float get(const void *base, size_t i)
{
    float v;
    memcpy(&v, (const char *)base + i * sizeof v, sizeof v);
    return v;
}

/* 1 if `got` is what `want` allows: same kind for NaN and infinity, else within `bound`. */
static int close_enough(float got, double want, double bound)
{
    if (isnan(want)) return isnan(got);
    if (isinf(want)) return isinf(got) && (got > 0) == (want > 0);
    return fabs((double)got - want) <= bound;
}

typedef struct tile_case {
    size_t mr, nr, k, ldb, ldc, ldr;
    uint32_t flags;
    int has_tail, special, at_end;
    ortc_uk_tail_f32 tail; /* pointers: only whether NULL */
} tile_case;

static double tail_value(const ortc_uk_tail_f32 *t, size_t i, size_t j, double v, double *mag)
{
    v *= t->alpha, *mag *= fabs(t->alpha);
    if (t->bias_col) v += get(t->bias_col, j), *mag += fabs(get(t->bias_col, j));
    if (t->bias_row) v += get(t->bias_row, i), *mag += fabs(get(t->bias_row, i));
    if (t->residual) {
        const double r = get(t->residual, i * t->residual_stride + j);
        v += t->beta * r, *mag += fabs(t->beta * r);
    }
    if (t->act == ORTC_UK_ACT_CLIP) {
        v = v < t->lo ? t->lo : v > t->hi ? t->hi : v;
    } else if (t->act == ORTC_UK_ACT_LEAKY) {
        v = v < 0 ? v * t->lo : v;
    }
    return v;
}

static int check_tile(const ortc_product_line *uk, const tile_case *tc, rng *r, const char *name)
{
    const size_t mr = tc->mr, nr = tc->nr, k = tc->k;
    const int e = tc->at_end;
    const size_t b_len = k ? (k - 1) * tc->ldb + (tc->flags & ORTC_UK_B_EXACT ? nr : tc->ldb) : 0;
    const size_t c_len = (mr - 1) * tc->ldc + nr, r_len = (mr - 1) * tc->ldr + nr;
    guard ga = guard_open(mr * k * 4, e), gb = guard_open(b_len * 4, e), gc = guard_open(c_len * 4, e);
    guard gr = guard_open(r_len * 4, e), gbc = guard_open(nr * 4, e), gbr = guard_open(mr * 4, e);
    float *a = (void *)ga.data, *b = (void *)gb.data, *c = (void *)gc.data;
    guard *all[] = {&ga, &gb, &gc, &gr, &gbc, &gbr};
    for (size_t i = 0; i < 6; i++) rng_fill(r, (void *)all[i]->data, all[i]->bytes / 4);
    if (tc->special && mr * k > 0) {
        const float bad[] = {NAN, INFINITY, -INFINITY};
        a[rng_next(r) % (mr * k)] = bad[rng_next(r) % 3];
        if (b_len) b[rng_next(r) % b_len] = bad[rng_next(r) % 3];
    }
    float *before = malloc(c_len * 4);
    memcpy(before, c, c_len * 4);
    ortc_uk_tail_f32 t = tc->tail;
    t.residual_stride = tc->ldr;
    if (t.residual) t.residual = (void *)gr.data;
    if (t.bias_col) t.bias_col = (void *)gbc.data;
    if (t.bias_row) t.bias_row = (void *)gbr.data;
    uk->tile(mr, nr, k, a, b, tc->ldb, c, tc->ldc, tc->flags, tc->has_tail ? &t : NULL);

    int bad = 0;
    for (size_t i = 0; i < mr; i++) {
        for (size_t j = 0; j < tc->ldc && i * tc->ldc + j < c_len; j++) {
            const float got = c[i * tc->ldc + j];
            if (j >= nr) {
                bad += memcmp(&got, &before[i * tc->ldc + j], 4) != 0;
                continue;
            }
            double v = 0, mag = 0;
            for (size_t kk = 0; kk < k; kk++) {
                const double x = (double)a[kk * mr + i] * b[kk * tc->ldb + j];
                v += x, mag += fabs(x);
            }
            if (tc->flags & ORTC_UK_ACCUMULATE)
                v += before[i * tc->ldc + j], mag += fabs(before[i * tc->ldc + j]);
            if (tc->has_tail) v = tail_value(&t, i, j, v, &mag);
            if (!close_enough(got, v, ((double)k + 8) * FLT_EPSILON * mag)) {
                if (!bad)
                    printf("  %s %zux%zu k %zu flags %u tail %d act %d: [%zu,%zu] is %g, expected %g\n", name,
                           mr, nr, k, (unsigned)tc->flags, tc->has_tail, (int)t.act, i, j, (double)got, v);
                bad++;
            }
        }
    }
    for (size_t i = 0; i < 6; i++) {
        if (!guard_intact(all[i])) bad++;
        guard_close(all[i]);
    }
    free(before);
    return bad;
}

/* Combination `bits` of what an epilogue can have: 2 x 2 x 2 x 3 x 3 x 2 x 2 of them. */
#define EPILOGUES (2 * 2 * 2 * 3 * 3 * 2 * 2)
static void set_epilogue(tile_case *tc, int bits)
{
    static const float there = 0;
    memset(&tc->tail, 0, sizeof tc->tail);
    tc->tail.alpha = bits % 2 ? 0.75f : 1.0f, bits /= 2;
    if (bits % 2) tc->tail.bias_col = &there;
    bits /= 2;
    if (bits % 2) tc->tail.bias_row = &there;
    bits /= 2;
    if (bits % 3) tc->tail.residual = &there;
    tc->tail.beta = bits % 3 == 2 ? -1.5f : 1.0f, bits /= 3;
    tc->tail.act = bits % 3;
    tc->tail.lo = tc->tail.act == ORTC_UK_ACT_LEAKY ? 0.125f : -0.25f, tc->tail.hi = 0.5f, bits /= 3;
    if (bits % 2) tc->tail.lo = 0, tc->tail.hi = INFINITY; /* Relu; a slope of 0 */
    bits /= 2;
    tc->flags = bits % 2 ? ORTC_UK_ACCUMULATE : 0;
}

static void place_b(tile_case *tc, const ortc_product_line *uk, rng *r, int exact)
{
    tc->ldb = (tc->nr + uk->step - 1) / uk->step * uk->step;
    if (exact) tc->flags |= ORTC_UK_B_EXACT, tc->ldb = tc->nr + (size_t)rng_range(r, 0, 5);
    tc->ldc = tc->nr + (size_t)rng_range(r, 0, 3);
    tc->ldr = tc->nr + (size_t)rng_range(r, 0, 3);
    tc->at_end = (int)(rng_next(r) % 2);
}

/* Every size of tile at many lengths of k, with a few epilogues each. */
static int sizes(const ortc_product_line *uk, rng *r)
{
    static const size_t ks[] = {0, 1, 2, 3, 5, 8, 17, 64, 129};
    int bad = 0;
    for (size_t mr = 1; mr <= uk->mr; mr++)
        for (size_t nr = 1; nr <= uk->nr; nr++)
            for (size_t i = 0; i < sizeof ks / sizeof ks[0]; i++)
                for (int exact = 0; exact < 2; exact++) {
                    tile_case tc = {.mr = mr, .nr = nr, .k = ks[i]};
                    set_epilogue(&tc, (int)rng_range(r, 0, EPILOGUES - 1));
                    tc.has_tail = rng_next(r) % 4 != 0;
                    place_b(&tc, uk, r, exact);
                    bad += check_tile(uk, &tc, r, uk->name);
                }
    return bad;
}

static int epilogues(const ortc_product_line *uk, rng *r, int special)
{
    const size_t sizes[][2] = {{uk->mr, uk->nr},
                               {uk->mr - 1, uk->nr - 1},
                               {1, 1},
                               {uk->mr / 2, uk->step + 1}};
    int bad = 0;
    for (int e = 0; e < EPILOGUES; e++)
        for (int s = 0; s < 4; s++) {
            tile_case tc = {.mr = sizes[s][0], .nr = sizes[s][1], .k = 11, .has_tail = 1, .special = special};
            set_epilogue(&tc, e);
            place_b(&tc, uk, r, e % 2);
            bad += check_tile(uk, &tc, r, uk->name);
        }
    return bad;
}

static int large(const ortc_product_line *uk, rng *r)
{
    int bad = 0;
    for (size_t mr = 1; mr <= uk->mr; mr++) {
        tile_case tc = {.mr = mr, .nr = uk->nr, .k = 4099, .has_tail = 1};
        set_epilogue(&tc, (int)mr);
        place_b(&tc, uk, r, 0);
        bad += check_tile(uk, &tc, r, uk->name);
    }
    return bad;
}

/* Packing is exact; sources may lie at any byte. */
static int packing(const ortc_product_line *uk, rng *r, int transpose)
{
    static const size_t ks[] = {0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 40};
    int bad = 0;
    for (size_t w = 1; w <= uk->nr + 1; w++)
        for (size_t i = 0; i < sizeof ks / sizeof ks[0]; i++)
            for (int variant = 0; variant < 4; variant++) {
                const size_t k = ks[i], step = uk->step, off = variant == 3 ? 1 : 0;
                const size_t dw = variant % 2 ? w : (w + step - 1) / step * step;
                const size_t rows = transpose ? w : k, cols = transpose ? k : w;
                const size_t ld = cols + (size_t)rng_range(r, 0, 3);
                const size_t len = rows && cols ? (rows - 1) * ld + cols : 0;
                guard gs = guard_open(len * 4 + off, variant < 2), gd = guard_open(k * dw * 4, variant < 2);
                const void *src = gs.data + off;
                rng_fill(r, (float *)(void *)(gs.data + off), len);
                float *dst = (void *)gd.data;
                (transpose ? uk->pack_transpose : uk->pack_rows)(w, k, (const float *)src, ld, dst, dw);
                for (size_t kk = 0; kk < k; kk++)
                    for (size_t j = 0; j < dw; j++) {
                        const float want = j < w ? get(src, transpose ? j * ld + kk : kk * ld + j) : 0;
                        bad += memcmp(&want, &dst[kk * dw + j], 4) != 0;
                    }
                bad += !guard_intact(&gs) + !guard_intact(&gd);
                guard_close(&gs), guard_close(&gd);
            }
    return bad;
}

static int dots(const ortc_product_line *uk, rng *r)
{
    static const size_t ks[] = {0, 1, 2, 7, 8, 9, 15, 16, 17, 33, 1000};
    int bad = 0;
    for (size_t nr = 1; nr <= ORTC_DOT_ROWS; nr++)
        for (size_t i = 0; i < sizeof ks / sizeof ks[0]; i++)
            for (int at_end = 0; at_end < 2; at_end++) {
                const size_t k = ks[i], ld = k + (size_t)rng_range(r, 0, 3), len = (nr - 1) * ld + k;
                guard gx = guard_open(k * 4, at_end), gw = guard_open(len * 4, at_end),
                      gy = guard_open(nr * 4, at_end);
                const float *x = (void *)gx.data, *w = (void *)gw.data, *y = (void *)gy.data;
                rng_fill(r, (void *)gx.data, k);
                rng_fill(r, (void *)gw.data, len);
                uk->dot(nr, k, x, w, ld, (void *)gy.data);
                for (size_t j = 0; j < nr; j++) {
                    double v = 0, mag = 0;
                    for (size_t kk = 0; kk < k; kk++) {
                        const double p = (double)x[kk] * w[j * ld + kk];
                        v += p, mag += fabs(p);
                    }
                    bad += !close_enough(y[j], v, ((double)k + 8) * FLT_EPSILON * mag);
                }
                bad += !guard_intact(&gx) + !guard_intact(&gw) + !guard_intact(&gy);
                guard_close(&gx), guard_close(&gw), guard_close(&gy);
            }
    return bad;
}

void test_product_uk(tally *t, uint32_t isa_bits)
{
    static const char *const parts[] = {"tiles",     "epilogues",      "nan", "large k",
                                        "pack rows", "pack transpose", "dot"};
    for (size_t u = 0; u < ortc_product_line_count; u++) {
        const ortc_product_line *uk = &ortc_product_lines[u];
        for (int part = 0; part < 7; part++) {
            char name[96];
            snprintf(name, sizeof name, "%s: %s", uk->name, parts[part]);
            if (!tally_wants(t, name)) continue;
            if (uk->isa & ~isa_bits) {
                tally_skip(t, name, "this machine, or ORTC_CPU, has not its instructions");
                continue;
            }
            rng r = {t->seed + (uint64_t)part};
            int bad = 0;
            switch (part) {
            case 0: bad = sizes(uk, &r); break;
            case 1: bad = epilogues(uk, &r, 0); break;
            case 2: bad = epilogues(uk, &r, 1); break;
            case 3: bad = large(uk, &r); break;
            case 4: bad = packing(uk, &r, 0); break;
            case 5: bad = packing(uk, &r, 1); break;
            default: bad = dots(uk, &r); break;
            }
            tally_result(t, name, bad);
        }
    }
}
