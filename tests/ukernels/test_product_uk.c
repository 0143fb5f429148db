/* Every line of the table of products, and the lines of tests (lines.h), against sums in double: all sizes
 * of a tile, every epilogue of those that take one, packed and direct B, guarded buffers, NaN and infinity;
 * packing against the definition of a form, from every type and order; and what lines have from their
 * instruction set. The bound on the error of a sum of K products is (K + 8) eps times the sum of the
 * absolute values, the textbook one; s32 sums are exact.
 */
#include "tests.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guard.h"
#include "kernels/common/element.h"
#include "kernels/common/vector/convert.h"
#include "kernels/gemm/product_pack.h"
#include "kernels/gemm/product_packed.h"
#include "lines.h"

static float get(const void *base, size_t i)
{
    float v;
    memcpy(&v, (const char *)base + i * sizeof v, sizeof v);
    return v;
}
static double typed(ortc_dtype t, const void *p, size_t i)
{
    return t == ORTC_I32 || t == ORTC_U8 || t == ORTC_I8 || t == ORTC_I16
               ? (double)ortc_load_i64(p, t, (int64_t)i)
               : ortc_load_f64(p, t, (int64_t)i);
}

/* 1 if `got` is what `want` allows: same kind for NaN and infinity, else within `bound`. */
static int close_enough(double got, double want, double bound)
{
    if (isnan(want)) return isnan(got);
    if (isinf(want)) return isinf(got) && (got > 0) == (want > 0);
    return fabs(got - want) <= bound;
}

typedef struct tile_case {
    size_t mr, nr, k, ldb, lds, ldr;
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

/* ---- Tiles --------------------------------------------------------------------------------------------- */

enum { MOST_LANES = 16 };

/* Packs all of an operand that is one panel; the caller closes the guard. */
static guard pack_one(const ortc_product_form *f, const ortc_product_source *src, size_t have, size_t width,
                      size_t k, int at_end)
{
    const ortc_product_panel at = {0, (int64_t)have, (int64_t)width, 0, (int64_t)k};
    guard g = guard_open((size_t)(ortc_form_data(f, (int64_t)width, (int64_t)k) + ortc_form_sums(f)), at_end);
    if (k) ortc_product_pack(f, src, &at, 0, (int64_t)k, g.data);
    return g;
}

/* Room for the pieces of a panel, nothing made yet; the caller closes it. */
static guard pieces_of(const ortc_product_line *line, size_t k, int at_end)
{
    const size_t group = line->a.group, deep = (k + group - 1) / group * group;
    guard g = guard_open(ORTC_UK_PANEL_STATE + deep * line->b.width * line->a.planes * 2, at_end);
    memset(g.data, 0, ORTC_UK_PANEL_STATE);
    return g;
}

/* Rows of A where they lie, in whole groups, give the bits of `sums`: a is [k][mr], `before` what these
 * held. */
static int plain_differs(const ortc_product_line *line, const tile_case *tc, rng *r, const char *a,
                         const void *b, size_t ldb, const ortc_uk_tail_f32 *tail, const char *before,
                         const int32_t *begin, const int32_t *each, const char *sums, size_t s_len)
{
    const size_t mr = tc->mr, k = tc->k, lda = k + rng_next(r) % 9,
                 size = (size_t)ortc_product_size(line->a.type);
    guard rows = guard_open(((mr - 1) * lda + k) * size, tc->at_end), to = guard_open(s_len * 4, tc->at_end);
    for (size_t i = 0; i < mr; i++)
        for (size_t kk = 0; kk < k; kk++)
            memcpy(rows.data + (i * lda + kk) * size, a + (kk * mr + i) * size, size);
    memcpy(to.data, before, s_len * 4);
    const ortc_uk_plain plain = {rows.data, lda};
    const ortc_uk_ahead ahead = {.first = begin, .each = each};
    line->tile(mr, tc->nr, k / line->a.group, &plain, b, ldb, to.data, tc->lds, tc->flags | ORTC_UK_A_PLAIN,
               tail, begin ? &ahead : NULL);
    const int bad = memcmp(to.data, sums, s_len * 4) != 0 || !guard_intact(&rows) || !guard_intact(&to);
    guard_close(&rows), guard_close(&to);
    return bad;
}

static int check_tile(const ortc_product_line *line, const tile_case *tc, rng *r, const char *name)
{
    const size_t mr = tc->mr, nr = tc->nr, k = tc->k;
    const int e = tc->at_end, exact = tc->flags & ORTC_UK_B_EXACT;
    const ortc_dtype byte = rng_next(r) % 2 ? ORTC_U8 : ORTC_I8;
    const ortc_dtype ta = line->a.planes > 1         ? line->a.planes > 2 ? ORTC_F32 : ORTC_F16
                          : line->a.type == ORTC_I16 ? byte
                                                     : line->a.type,
                     tb = line->b.type == ORTC_I16 ? ORTC_U8 : line->b.type;
    const size_t b_len = k ? (k - 1) * tc->ldb + nr : 0, eb = (size_t)ortc_product_size(tb);
    const size_t s_len = (mr - 1) * tc->lds + nr, r_len = (mr - 1) * tc->ldr + nr;
    guard ga = guard_open(mr * k * (size_t)ortc_product_size(ta), e), gb = guard_open(b_len * eb, e);
    guard gs = guard_open(s_len * 4, e), gr = guard_open(r_len * 4, e), gbc = guard_open(nr * 4, e),
          gbr = guard_open(mr * 4, e);
    test_fill(r, ta, ga.data, mr * k);
    test_fill(r, tb, gb.data, b_len);
    guard *floats[] = {&gr, &gbc, &gbr};
    for (size_t i = 0; i < 3; i++) rng_fill(r, (void *)floats[i]->data, floats[i]->bytes / 4);
    for (size_t i = 0; i < s_len; i++) {
        const float f = rng_float(r);
        const int32_t v = (int32_t)rng_range(r, -1000, 1000);
        memcpy(gs.data + i * 4, line->sum == ORTC_I32 ? (const void *)&v : (const void *)&f, 4);
    }
    if (tc->special && mr * k > 0) {
        /* pieces do not hold the last four either */
        const double bad[] = {NAN, INFINITY, -INFINITY, 1e18, -2e17, 1.2345e-39, -6.789e-35};
        const uint32_t n = line->a.planes > 2 ? 7 : 3;
        if (rng_next(r) % 3)
            ortc_store_f64(ga.data, ta, (int64_t)(rng_next(r) % (mr * k)), bad[rng_next(r) % n]);
        if (b_len && rng_next(r) % 3)
            ortc_store_f64(gb.data, tb, (int64_t)(rng_next(r) % b_len), bad[rng_next(r) % n]);
    }
    const ortc_product_source a = {.moves = line->moves, .data = ga.data, .type = ta, .ld = (int64_t)mr};
    const ortc_product_source b = {.moves = line->moves, .data = gb.data, .type = tb, .ld = (int64_t)tc->ldb};
    const size_t width = (size_t)ortc_form_padded(&line->b, (int64_t)nr);
    guard pa = pack_one(&line->a, &a, mr, mr, k, e), pb = pack_one(&line->b, &b, nr, width, k, e);
    char *before = malloc(s_len * 4);
    memcpy(before, gs.data, s_len * 4);
    ortc_uk_tail_f32 t = tc->tail;
    t.residual_stride = tc->ldr;
    if (t.residual) t.residual = (void *)gr.data;
    if (t.bias_col) t.bias_col = (void *)gbc.data;
    if (t.bias_row) t.bias_row = (void *)gbr.data;
    const int widens = line->sum == ORTC_F32 && line->a.type == ORTC_F32 && line->b.type != ORTC_F32 &&
                       !exact;
    guard wide = guard_open(widens ? (k * width + MOST_LANES) * sizeof(float) : 0, e);
    const int begins = line->can & ORTC_LINE_FIRST && rng_next(r) % 2;
    guard begin = guard_open(begins ? width * 4 : 0, e);
    guard each = guard_open(begins && line->can & ORTC_LINE_EACH && rng_next(r) % 2 ? mr * 4 : 0, e);
    for (size_t i = 0; i < begin.bytes / 4; i++)
        ((int32_t *)(void *)begin.data)[i] = (int32_t)rng_range(r, -1000, 1000);
    for (size_t i = 0; i < each.bytes / 4; i++)
        ((int32_t *)(void *)each.data)[i] = (int32_t)rng_range(r, -1000, 1000);
    const ortc_uk_ahead ahead = {.from = (void *)ga.data, /* asks for what is there, and beyond */
                                 .lines = k % 3 * 100,
                                 .wide = widens ? (float *)(void *)wide.data : NULL,
                                 .first = begins ? (int32_t *)(void *)begin.data : NULL,
                                 .each = each.bytes ? (int32_t *)(void *)each.data : NULL};
    const int alone = rng_next(r) % 2;
    guard pieces = pieces_of(line, alone ? 2 * (size_t)line->a.group : k, 1);
    const ortc_uk_panel panel = {exact ? gb.data : pb.data, pieces.data, alone};
    char *first = malloc(s_len * 4); /* by the tile that makes pieces; then by one that finds them */
    if (line->begin) line->begin();
    const int twice = line->can & ORTC_LINE_SPLIT && rng_next(r) % 8 == 0;
    for (int again = 0; again < (twice ? 2 : 1); again++) {
        memcpy(first, gs.data, s_len * 4), memcpy(gs.data, before, s_len * 4);
        if (alone) memset(pieces.data, 0, ORTC_UK_PANEL_STATE);
        line->tile(mr, nr, (k + line->b.group - 1) / line->b.group, pa.data,
                   line->can & ORTC_LINE_SPLIT ? (const void *)&panel : panel.data, exact ? tc->ldb : width,
                   gs.data, tc->lds, tc->flags, tc->has_tail ? &t : NULL, &ahead);
    }
    if (line->end) line->end();

    int bad = twice && memcmp(first, gs.data, s_len * 4);
    free(first);
    if (line->can & ORTC_LINE_PLAIN && k % line->a.group == 0)
        bad += plain_differs(line, tc, r, (const void *)ga.data, panel.data, exact ? tc->ldb : width,
                             tc->has_tail ? &t : NULL, before, ahead.first, ahead.each, (const void *)gs.data,
                             s_len);
    for (size_t i = 0; i < mr; i++) {
        for (size_t j = 0; j < tc->lds && i * tc->lds + j < s_len; j++) {
            const size_t at = i * tc->lds + j;
            const double got = typed(line->sum, gs.data, at);
            if (j >= nr) {
                bad += memcmp(gs.data + at * 4, before + at * 4, 4) != 0;
                continue;
            }
            double v = 0, mag = 0;
            for (size_t kk = 0; kk < k; kk++) {
                const double x = typed(ta, ga.data, kk * mr + i) * typed(tb, gb.data, kk * tc->ldb + j);
                v += x, mag += fabs(x);
            }
            if (begins) v += ahead.first[j] + (ahead.each ? ahead.each[i] : 0);
            if (tc->flags & ORTC_UK_ACCUMULATE)
                v += typed(line->sum, before, at), mag += fabs(typed(line->sum, before, at));
            if (tc->has_tail) v = tail_value(&t, i, j, v, &mag);
            const double bound = line->sum == ORTC_I32 ? 0 : ((double)k + 8) * FLT_EPSILON * mag;
            if (!close_enough(got, v, bound)) {
                if (!bad)
                    printf("  %s %zux%zu k %zu flags %u tail %d act %d: [%zu,%zu] is %g, expected %g\n", name,
                           mr, nr, k, (unsigned)tc->flags, tc->has_tail, (int)t.act, i, j, got, v);
                bad++;
            }
        }
    }
    for (size_t i = 0; widens && i < k * width; i++) { /* a NaN is not always the same one */
        const double got = typed(ORTC_F32, wide.data, i), v = typed(tb, pb.data, i);
        bad += isnan(v) ? !isnan(got) : got != v;
    }
    guard *all[] = {&ga, &gb, &gs, &gr, &gbc, &gbr, &pa, &pb, &pieces, &wide, &begin, &each};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
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

/* The rest of a case, as far as the line can. */
static void place(tile_case *tc, const ortc_product_line *line, rng *r, int exact)
{
    tc->ldb = tc->nr + (size_t)rng_range(r, 0, 5);
    if (exact && line->can & ORTC_LINE_DIRECT) tc->flags |= ORTC_UK_B_EXACT;
    if (!(line->can & ORTC_LINE_TAIL)) tc->has_tail = 0;
    if (line->sum != ORTC_F32) tc->special = 0;
    tc->lds = tc->nr + (size_t)rng_range(r, 0, 3);
    tc->ldr = tc->nr + (size_t)rng_range(r, 0, 3);
    tc->at_end = (int)(rng_next(r) % 2);
}

/* Every size of tile at many lengths of k, with a few epilogues each. */
static int sizes(const ortc_product_line *line, rng *r)
{
    static const size_t ks[] = {0, 1, 2, 3, 5, 8, 17, 64, 129};
    const uint32_t share = line->begin ? 8 : 1; /* of sizes around registers of 16 x 16, some */
    int bad = 0;
    for (size_t mr = 1; mr <= line->a.width; mr++)
        for (size_t nr = 1; nr <= line->b.width; nr++)
            for (size_t i = 0; i < sizeof ks / sizeof ks[0]; i++)
                for (int exact = 0; exact < 2; exact++) {
                    if (mr % 16 > 1 && nr % 16 > 1 && rng_next(r) % share) continue;
                    tile_case tc = {.mr = mr, .nr = nr, .k = ks[i]};
                    set_epilogue(&tc, (int)rng_range(r, 0, EPILOGUES - 1));
                    tc.has_tail = rng_next(r) % 4 != 0;
                    place(&tc, line, r, exact);
                    bad += check_tile(line, &tc, r, line->name);
                }
    return bad;
}

static int epilogues(const ortc_product_line *line, rng *r, int special)
{
    const size_t mr = line->a.width, nr = line->b.width;
    const size_t sizes[][2] = {{mr, nr}, {mr - 1, nr - 1}, {1, 1}, {mr / 2, line->b.step + 1}};
    int bad = 0;
    for (int e = 0; e < EPILOGUES; e++)
        for (int s = 0; s < 4; s++) {
            tile_case tc = {.mr = sizes[s][0], .nr = sizes[s][1], .k = 11, .has_tail = 1, .special = special};
            set_epilogue(&tc, e);
            place(&tc, line, r, e % 2);
            bad += check_tile(line, &tc, r, line->name);
        }
    return bad;
}

/* Several blocks of rows at once give the bits of one after the other, packed or where they lie; also where
 * blocks end before a guard page. */
static int several_blocks(const ortc_product_line *line, rng *r)
{
    static const size_t ks[] = {0, 1, 7, 33, 129};
    const ortc_dtype type = line->a.type;
    const size_t size = (size_t)ortc_product_size(type);
    int bad = 0;
    for (int e = 0; e < EPILOGUES * 5; e++) {
        const size_t k = ks[e % 5] * line->b.group, groups = ks[e % 5];
        const size_t count = (size_t)rng_range(r, 2, 4);
        const int plain = line->can & ORTC_LINE_PLAIN && rng_next(r) % 2;
        tile_case tc = {.mr = (size_t)rng_range(r, 1, line->a.width),
                        .nr = (size_t)rng_range(r, 1, line->b.width)};
        tc.has_tail = e % 3 > 0;
        set_epilogue(&tc, e / 5);
        place(&tc, line, r, 0);
        const size_t skip = plain ? 0 : (size_t)ortc_form_sums(&line->a);
        const size_t mr = tc.mr, rows = mr * count, lda = plain ? k + rng_next(r) % 9 : k;
        const size_t width = (size_t)ortc_form_padded(&line->b, (int64_t)tc.nr);
        const size_t sums = (rows - 1) * tc.lds + tc.nr, under = (rows - 1) * tc.ldr + tc.nr;
        guard a = guard_open(((rows - 1) * lda + k) * size + (count - 1) * skip, tc.at_end),
              b = guard_open(k * width * (size_t)ortc_product_size(line->b.type), tc.at_end),
              to = guard_open(sums * 4, tc.at_end), residual = guard_open(under * 4, tc.at_end),
              col = guard_open(tc.nr * 4, tc.at_end), row = guard_open(rows * 4, tc.at_end);
        test_fill(r, type, a.data, a.bytes / size), test_fill(r, line->b.type, b.data, k * width);
        guard *floats[] = {&to, &residual, &col, &row};
        for (size_t i = 0; i < 4; i++) rng_fill(r, (void *)floats[i]->data, floats[i]->bytes / 4);
        const int begins = line->can & ORTC_LINE_FIRST && rng_next(r) % 2;
        int32_t first[ORTC_FORM_WIDTH];
        for (size_t i = 0; i < ORTC_FORM_WIDTH; i++) first[i] = (int32_t)rng_range(r, -1000, 1000);
        const ortc_uk_ahead once = {.first = begins ? first : NULL};
        char *one = malloc(sums * 4);
        memcpy(one, to.data, sums * 4);
        ortc_uk_tail_f32 t = tc.tail;
        t.residual_stride = tc.ldr;
        for (size_t i = 0; i < count; i++) {
            const void *at = a.data + i * (mr * lda * size + skip);
            const ortc_uk_plain lie = {at, lda};
            if (t.residual) t.residual = (const float *)(const void *)residual.data + i * mr * tc.ldr;
            if (t.bias_col) t.bias_col = (void *)col.data;
            if (t.bias_row) t.bias_row = (const float *)(const void *)row.data + i * mr;
            line->tile(mr, tc.nr, groups, plain ? (const void *)&lie : at, b.data, width,
                       one + i * mr * tc.lds * 4, tc.lds, tc.flags | (plain ? ORTC_UK_A_PLAIN : 0),
                       tc.has_tail ? &t : NULL, begins ? &once : NULL);
        }
        if (t.residual) t.residual = (void *)residual.data;
        if (t.bias_row) t.bias_row = (void *)row.data;
        const ortc_uk_plain lie = {a.data, lda};
        const ortc_uk_ahead ahead = {.from = (void *)a.data,
                                     .lines = k % 3 * 100,
                                     .first = once.first,
                                     .more = count - 1,
                                     .skip = skip};
        line->tile(mr, tc.nr, groups, plain ? (const void *)&lie : a.data, b.data, width, to.data, tc.lds,
                   tc.flags | (plain ? ORTC_UK_A_PLAIN : 0), tc.has_tail ? &t : NULL, &ahead);
        bad += memcmp(one, to.data, sums * 4) != 0;
        guard *all[] = {&a, &b, &to, &residual, &col, &row};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
            bad += !guard_intact(all[i]);
            guard_close(all[i]);
        }
        free(one);
    }
    return bad;
}

/* Elements from the beginning of a whole panel. */
static size_t place_in_panel(const ortc_product_form *f, size_t k, size_t j)
{
    return f->order == ORTC_ORDER_PAIRS ? (k / 2 * f->width + j) * 2 + k % 2 : k * f->width + j;
}

/* One row over several panels at once. */
static int rows_of_panels(const ortc_product_line *line, rng *r)
{
    static const size_t ks[] = {0, 1, 7, 64, 257};
    const size_t w = line->b.width, n = w * ORTC_UK_ROW_PANELS;
    const size_t size = (size_t)ortc_product_size(line->b.type), group = line->b.group;
    const ortc_dtype type = line->a.group == 1 ? ORTC_F32 : line->a.type;
    int bad = 0;
    for (int e = 0; e < EPILOGUES * 5; e++) {
        const size_t groups = (ks[e % 5] + group - 1) / group, k = groups * group;
        tile_case tc = {.mr = 1, .nr = n, .k = k, .has_tail = e % 3 > 0};
        set_epilogue(&tc, e / 5);
        guard a = guard_open(k * (size_t)ortc_product_size(type), e % 2), b = guard_open(k * n * size, e % 2),
              c = guard_open(n * 4, e % 2), more = guard_open(n * 4, e % 2);
        test_fill(r, type, a.data, k), test_fill(r, line->b.type, b.data, k * n);
        rng_fill(r, (void *)c.data, n), rng_fill(r, (void *)more.data, n);
        float before[4 * ORTC_FORM_WIDTH];
        memcpy(before, c.data, n * 4);
        ortc_uk_tail_f32 t = tc.tail;
        if (t.residual) t.residual = (void *)more.data;
        if (t.bias_col) t.bias_col = (void *)more.data;
        if (t.bias_row) t.bias_row = (void *)more.data;
        line->tile(1, n, groups, a.data, b.data, w, c.data, n, tc.flags, tc.has_tail ? &t : NULL, NULL);
        for (size_t j = 0; j < n; j++) {
            double v = 0, mag = 0;
            for (size_t kk = 0; kk < k; kk++) {
                const double x = typed(type, a.data, kk) *
                                 typed(line->b.type, b.data,
                                       j / w * k * w + place_in_panel(&line->b, kk, j % w));
                v += x, mag += fabs(x);
            }
            if (tc.flags & ORTC_UK_ACCUMULATE) v += before[j], mag += fabs(before[j]);
            if (tc.has_tail) v = tail_value(&t, 0, j, v, &mag);
            bad += !close_enough(get(c.data, j), v, ((double)k + 8) * FLT_EPSILON * mag);
        }
        guard *all[] = {&a, &b, &c, &more};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
            bad += !guard_intact(all[i]);
            guard_close(all[i]);
        }
    }
    if (bad) printf("  %s: %d of one row over several panels are wrong\n", line->name, bad);
    return bad;
}

static int large(const ortc_product_line *line, rng *r)
{
    int bad = 0;
    for (size_t mr = 1; mr <= line->a.width; mr++) {
        tile_case tc = {.mr = mr, .nr = line->b.width, .k = 4099, .has_tail = 1};
        set_epilogue(&tc, (int)mr);
        place(&tc, line, r, 0);
        bad += check_tile(line, &tc, r, line->name);
    }
    return bad;
}

/* Sums over k in pieces are no worse than fused multiply-adds, one after the other: normal numbers, by the
 * largest error and by the mean of squares. */
static double normal(rng *r)
{
    const double u = ((double)(rng_next(r) % 16777216) + 1) / 16777217, v = (double)(rng_next(r) % 16777216);
    return sqrt(-2 * log(u)) * cos(v * 6.283185307179586 / 16777216);
}
static float piecewise(const ortc_product_line *line, double v) /* two pieces hold an f16 */
{
    uint16_t half[1];
    if (line->a.planes > 2) return (float)v;
    ortc_store_f64(half, ORTC_F16, 0, v);
    return (float)ortc_load_f64(half, ORTC_F16, 0);
}
static int accuracy(const ortc_product_line *line, rng *r)
{
    const size_t ks[] = {64, 257, 768, 1536}, m = line->a.width, n = line->b.width;
    int bad = 0;
    for (size_t q = 0; q < 4; q++) {
        const size_t k = ks[q];
        float *a = malloc(m * k * 4), *b = malloc(n * k * 4), *c = malloc(m * n * 4);
        for (size_t i = 0; i < m * k; i++) a[i] = piecewise(line, normal(r));
        for (size_t i = 0; i < n * k; i++) b[i] = piecewise(line, 0.05 * normal(r));
        const ortc_product_source sa = {.moves = line->moves, .data = a, .type = ORTC_F32, .ld = (int64_t)m};
        const ortc_product_source sb = {.moves = line->moves, .data = b, .type = ORTC_F32, .ld = (int64_t)n};
        guard pa = pack_one(&line->a, &sa, m, m, k, 0), pb = pack_one(&line->b, &sb, n, n, k, 0),
              pieces = pieces_of(line, k, 0);
        const ortc_uk_panel panel = {pb.data, pieces.data, 0};
        if (line->begin) line->begin();
        line->tile(m, n, k, pa.data, &panel, n, c, n, 0, NULL, NULL);
        if (line->end) line->end();
        double most[2] = {0, 0}, squares[2] = {0, 0};
        for (size_t i = 0; i < m; i++)
            for (size_t j = 0; j < n; j++) {
                double sum = 0;
                float fused = 0;
                for (size_t kk = 0; kk < k; kk++) {
                    sum += (double)a[kk * m + i] * b[kk * n + j];
                    fused = fmaf(a[kk * m + i], b[kk * n + j], fused);
                }
                const double off[2] = {fabs(c[i * n + j] - sum), fabs(fused - sum)};
                for (int w = 0; w < 2; w++) {
                    if (off[w] > most[w]) most[w] = off[w];
                    squares[w] += off[w] * off[w];
                }
            }
        if (!(most[0] <= most[1] && squares[0] <= squares[1])) {
            printf("  k %zu: off by %g at most, %g rms; fused multiply-adds %g, %g\n", k, most[0],
                   sqrt(squares[0] / (double)(m * n)), most[1], sqrt(squares[1] / (double)(m * n)));
            bad++;
        }
        guard_close(&pa), guard_close(&pb), guard_close(&pieces);
        free(a), free(b), free(c);
    }
    return bad;
}

/* ---- Forms --------------------------------------------------------------------------------------------- */

/* Whether a panel whose elements are pieces lies as f32, as the word behind it says. */
static int is_whole(const ortc_product_form *f, const unsigned char *panel, size_t width, size_t k)
{
    int32_t word = 0;
    if (f->planes > 1 && k) memcpy(&word, panel + ortc_form_data(f, (int64_t)width, (int64_t)k), sizeof word);
    return word != 0;
}

/* v with the upper half of its bits. */
static double cut_off(double v)
{
    float x = (float)v;
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= 0xffff0000;
    memcpy(&x, &bits, sizeof x);
    return (double)x;
}

/* Element (j, k) of a packed panel against its source, v; pieces add up to it. The first is v rounded, or, of
 * several along k, cut off. */
static int check_element(const ortc_product_form *f, const unsigned char *panel, size_t width, size_t j,
                         size_t k, double v)
{
    const size_t group = k / f->group, kk = k % f->group;
    const size_t run = f->order ? f->order : f->group; /* of k */
    const size_t in_plane = (kk / run * width + j) * run + kk % run;
    double sum = 0;
    unsigned char first[8] = {0};
    for (size_t p = 0; p < f->planes; p++) {
        const size_t at = (group * f->planes + p) * width * f->group + in_plane;
        sum += typed(f->type, panel, at);
        if (p) continue;
        if (ortc_class_of(f->type) == ORTC_CLASS_FLOAT)
            ortc_store_f64(first, f->type, 0, f->planes > 1 && !f->order ? cut_off(v) : v);
        else
            ortc_store_i64(first, f->type, 0, (int64_t)v);
        if (typed(f->type, first, 0) != typed(f->type, panel, at)) return 1;
    }
    return f->planes > 1 && sum != v;
}

static int check_form(const ortc_product_form *f, const ortc_product_moves *moves, ortc_dtype type,
                      size_t have, size_t k, int along, rng *r)
{
    const size_t width = (size_t)ortc_form_padded(f, (int64_t)have), size = (size_t)ortc_product_size(type);
    const size_t rows = along ? have : k, cols = along ? k : have, ld = cols + (size_t)rng_range(r, 0, 3);
    const size_t off = rng_next(r) % 2, len = rows && cols ? (rows - 1) * ld + cols : 0;
    const int at_end = (int)(rng_next(r) % 2);
    guard gs = guard_open(len * size + off, at_end);
    unsigned char *src = gs.data + (at_end ? off : 0); /* at any byte, the guard beside it */
    unsigned char *values = malloc(len * size + 1);
    test_fill(r, type, values, len);
    int odd = f->planes > 1 && type != ORTC_F16 && have && k && rng_next(r) % 4 == 0;
    if (odd) { /* at an element that is packed, what pieces do not hold */
        const double all[] = {INFINITY, NAN, 1e18, -1e-32, 1e-40};
        const size_t j = rng_next(r) % have, kk = rng_next(r) % k;
        ortc_store_f64(values, type, (int64_t)(along ? j * ld + kk : kk * ld + j), all[rng_next(r) % 5]);
    }
    if (f->planes > 1 && type != ORTC_F16 && have && k && !odd && rng_next(r) % 4 == 0) {
        const size_t j = rng_next(r) % have; /* a row or column of small numbers alone */
        const double largest = rng_next(r) % 2 ? 0x1p-51 : 0x1p-50;
        for (size_t kk = 0; kk < k; kk++)
            ortc_store_f64(values, type, (int64_t)(along ? j * ld + kk : kk * ld + j), kk % 2 ? 0 : largest);
        odd = largest < 0x1p-50;
    }
    memcpy(src, values, len * size);
    const ortc_product_source s = {
        .moves = moves, .data = src, .type = type, .ld = (int64_t)ld, .along = along};
    guard gd = pack_one(f, &s, have, width, k, at_end);
    const int moved = f->type == ORTC_U8 && type == ORTC_I8   ? 128
                      : f->type == ORTC_I8 && type == ORTC_U8 ? -128
                                                              : 0;
    int bad = is_whole(f, gd.data, width, k) != odd;
    for (size_t j = 0; j < width; j++) {
        int64_t sum = 0;
        for (size_t kk = 0; kk < (k + f->group - 1) / f->group * f->group; kk++) {
            const double v = j < have && kk < k
                                 ? typed(type, values, along ? j * ld + kk : kk * ld + j) + moved
                                 : 0;
            if (odd)
                bad += !close_enough(get(gd.data, kk * width + j), v, 0);
            else
                bad += check_element(f, gd.data, width, j, kk, v);
            if (f->sums) sum += (int64_t)v;
        }
        if (f->sums && k) {
            int32_t got;
            memcpy(&got, gd.data + ortc_form_data(f, (int64_t)width, (int64_t)k) + 4 * j, 4);
            bad += got != sum;
        }
    }
    guard_close(&gs);
    bad += !guard_intact(&gd);
    guard_close(&gd);
    free(values);
    return bad;
}

/* Both forms of a line, from all types that it may be given. */
static int forms(const ortc_product_line *line, rng *r, int along)
{
    static const size_t ks[] = {0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 40, 63, 64, 65, 130};
    int bad = 0;
    for (int side = 0; side < 2; side++) {
        const ortc_product_form *f = side ? &line->b : &line->a;
        for (size_t w = 1; w <= f->width; w++)
            for (size_t i = 0; i < sizeof ks / sizeof ks[0]; i++) {
                const ortc_product_types t = test_types(line, r);
                bad += check_form(f, line->moves, side ? t.b : t.a, w, ks[i], along, r);
            }
    }
    return bad;
}

/* ---- Moves --------------------------------------------------------------------------------------------- */

/* Packing is exact; sources may lie at any byte. */
static int packing(const ortc_product_moves *moves, rng *r, int transpose)
{
    static const size_t ks[] = {0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 40};
    int bad = 0;
    for (size_t w = 1; w <= 33; w++)
        for (size_t i = 0; i < sizeof ks / sizeof ks[0]; i++)
            for (int variant = 0; variant < 4; variant++) {
                const size_t k = ks[i], step = (size_t)4 << rng_next(r) % 3, off = variant == 3 ? 1 : 0;
                const size_t dw = variant % 2 ? w : (w + step - 1) / step * step;
                const size_t rows = transpose ? w : k, cols = transpose ? k : w;
                const size_t ld = cols + (size_t)rng_range(r, 0, 3);
                const size_t len = rows && cols ? (rows - 1) * ld + cols : 0;
                guard gs = guard_open(len * 4 + off, variant < 2), gd = guard_open(k * dw * 4, variant < 2);
                const void *src = gs.data + off;
                rng_fill(r, (float *)(void *)(gs.data + off), len);
                float *dst = (void *)gd.data;
                (transpose ? moves->transpose : moves->rows)(w, k, (const float *)src, ld, dst, dw);
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

static const ortc_dtype floats[] = {ORTC_F32, ORTC_F16, ORTC_BF16};

static int dots(const ortc_product_moves *moves, rng *r)
{
    static const size_t ks[] = {0, 1, 2, 7, 8, 9, 15, 16, 17, 33, 1000};
    int bad = 0;
    for (size_t nr = 1; nr <= ORTC_DOT_ROWS; nr++)
        for (size_t i = 0; i < sizeof ks / sizeof ks[0]; i++)
            for (int variant = 0; variant < 6; variant++) {
                const ortc_dtype t = floats[variant / 2];
                const int at_end = variant % 2;
                const size_t k = ks[i], ld = k + (size_t)rng_range(r, 0, 3), len = (nr - 1) * ld + k;
                guard gx = guard_open(k * 4, at_end),
                      gw = guard_open(len * (size_t)ortc_product_size(t), at_end),
                      gy = guard_open(nr * 4, at_end);
                const float *x = (void *)gx.data, *y = (void *)gy.data;
                rng_fill(r, (void *)gx.data, k);
                test_fill(r, t, gw.data, len);
                moves->vec->dot[ortc_float_index(t)](nr, k, x, gw.data, ld, (void *)gy.data);
                for (size_t j = 0; j < nr; j++) {
                    double v = 0, mag = 0;
                    for (size_t kk = 0; kk < k; kk++) {
                        const double p = (double)x[kk] * typed(t, gw.data, j * ld + kk);
                        v += p, mag += fabs(p);
                    }
                    bad += !close_enough(y[j], v, ((double)k + 8) * FLT_EPSILON * mag);
                }
                bad += !guard_intact(&gx) + !guard_intact(&gw) + !guard_intact(&gy);
                guard_close(&gx), guard_close(&gw), guard_close(&gy);
            }
    return bad;
}

/* Rows to f32 and back: exactly, and rounded as any store does. */
static int conversions(const ortc_product_moves *moves, rng *r)
{
    int bad = 0;
    for (int i = 0; i < 600; i++) {
        const ortc_dtype t = floats[i % 3];
        const size_t rows = (size_t)rng_range(r, 0, 4), cols = (size_t)rng_range(r, 1, 40),
                     size = (size_t)ortc_product_size(t);
        const size_t ld = cols + (size_t)rng_range(r, 0, 3), wide_ld = cols + (size_t)rng_range(r, 0, 3);
        const size_t len = rows ? (rows - 1) * ld + cols : 0,
                     wide_len = rows ? (rows - 1) * wide_ld + cols : 0;
        guard gm = guard_open(len * size, i % 2), gw = guard_open(wide_len * 4, i % 2);
        test_fill(r, t, gm.data, len);
        moves->vec->load[ortc_float_index(t)](rows, cols, gm.data, ld, (float *)(void *)gw.data, wide_ld);
        for (size_t a = 0; a < rows; a++)
            for (size_t b = 0; b < cols; b++)
                bad += get(gw.data, a * wide_ld + b) != typed(t, gm.data, a * ld + b);
        rng_fill(r, (float *)(void *)gw.data, wide_len);
        moves->vec->store[ortc_float_index(t)](rows, cols, (float *)(void *)gw.data, wide_ld, gm.data, ld);
        for (size_t a = 0; a < rows; a++)
            for (size_t b = 0; b < cols; b++) {
                unsigned char want[8] = {0};
                ortc_store_f64(want, t, 0, get(gw.data, a * wide_ld + b));
                bad += memcmp(want, gm.data + (a * ld + b) * size, size) != 0;
            }
        bad += !guard_intact(&gm) + !guard_intact(&gw);
        guard_close(&gm), guard_close(&gw);
    }
    return bad;
}

/* ---- All ----------------------------------------------------------------------------------------------- */

void test_product_uk(tally *t, uint32_t isa_bits)
{
    static const char *const parts[] = {"tiles",    "epilogues", "nan",
                                        "large k",  "forms",     "forms, k along rows",
                                        "accuracy", "one row",   "several blocks"};
    static const char *const moved[] = {"pack rows", "pack transpose", "dot", "conversions"};
    char name[96];
    const ortc_product_line *line;
    for (size_t u = 0; (line = test_line(u)); u++)
        for (int part = 0; part < 9; part++) {
            if (part == 6 && line->a.planes == 1) continue;
            if (part == 7 && !(line->can & ORTC_LINE_ROW)) continue;
            if (part == 8 && !(line->can & ORTC_LINE_MORE)) continue;
            snprintf(name, sizeof name, "%s: %s", line->name, parts[part]);
            if (!tally_begins(t, name, !(line->isa & ~isa_bits))) continue;
            rng r = {t->seed + (uint64_t)part};
            int bad = 0;
            switch (part) {
            case 0: bad = sizes(line, &r); break;
            case 1: bad = epilogues(line, &r, 0); break;
            case 2: bad = epilogues(line, &r, 1); break;
            case 3: bad = large(line, &r); break;
            case 6: bad = accuracy(line, &r); break;
            case 7: bad = rows_of_panels(line, &r); break;
            case 8: bad = several_blocks(line, &r); break;
            default: bad = forms(line, &r, part == 5); break;
            }
            tally_result(t, name, bad);
        }
    for (size_t u = 0; u < ortc_product_moves_count; u++)
        for (int part = 0; part < 4; part++) {
            const ortc_product_moves *moves = &ortc_product_all_moves[u];
            snprintf(name, sizeof name, "%s: %s", moves->name, moved[part]);
            if (!tally_begins(t, name, !(moves->isa & ~isa_bits))) continue;
            rng r = {t->seed + (uint64_t)part};
            tally_result(t, name,
                         part < 2    ? packing(moves, &r, part)
                         : part == 2 ? dots(moves, &r)
                                     : conversions(moves, &r));
        }
}
