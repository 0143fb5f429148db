/* Sums of s32 to f32 or to 8 bits, a body for every instruction set (integer_tail.h). */
#include "integer_tail.h"

#include <math.h>

#include "kernels/common/vector/vec.h"

/* Columns of a narrow tile: a block of channels, where that is one register; rows from which on going down,
 * and columns from which on going along quickly, is worth its beginning. */
enum { NARROW = V_LANES < 16 ? 0 : 16, FEW_ROWS = 8, LONG = 8 * V_LANES };

/* A row's part of a vector: a register for all of it, or where its elements are. What is left out is a number
 * that changes nothing: 0 before, 1, and -0 behind, to which a sum of 0 keeps its sign. */
typedef struct row_of {
    const char *at; /* NULL: it is `all` */
    vf32 all;
} row_of;

VFN row_of row_at(const ortc_int_vector *v, size_t r, vf32 otherwise)
{
    const char *p = (const char *)v->data + 4 * r * v->row; /* of 4 bytes, which are bits here */
    int32_t bits;
    if (!v->data) return (row_of){NULL, otherwise};
    memcpy(&bits, p, sizeof bits);
    return (row_of){v->col ? p : NULL, v_f32_bits(v_set_i32(bits))};
}
VFN vf32 elements(const row_of *r, const int along, size_t i, size_t n)
{
    return along && r->at ? v_load_f32((const float *)(const void *)r->at + i, n) : r->all;
}

/* 8 bits of a scale, as a loop over registers wants them. Quotients are products with the reciprocal where
 * that cannot matter (`quotient`); reciprocal 0: it always may. */
typedef struct scaled {
    vf32 scale, reciprocal, opposite, low,
        high;  /* opposite: of the reciprocal; bounds less the zero point, */
    vi32 zero; /* which is added last, to integers */
    int quick;
} scaled;

VFN scaled scaled_of(const ortc_int_scaled *s)
{
    const float r = 1 / s->scale;
    const int is_signed = s->type == ORTC_I8;
    return (scaled){v_set_f32(s->scale),
                    v_set_f32(r),
                    v_set_f32(-r),
                    v_set_f32((is_signed ? -128 : 0) - s->zero),
                    v_set_f32((is_signed ? 127 : 255) - s->zero),
                    v_set_i32((int32_t)s->zero),
                    r > 0x1p-100f && r < 0x1p100f};
}

/* v / scale to the nearest integer, halves to even. A product with the reciprocal is off by less than 2^-11
 * while it is below 2^10, beyond which all ends in the same bound: only near halves that may matter. */
VFN vf32 quotient(vf32 v, const int quick, const scaled *s)
{
    if (quick) {
        const vf32 q = v_rint(v_mul(v, s->reciprocal)), off = v_abs(v_fma(v, s->opposite, q));
        if (__builtin_expect(!v_any(v_lt(v_set_f32(0.5f - 0x1p-11f), off)), 1)) return q;
    }
    return v_rint(v_div(v, s->scale));
}

/* Into the type, as integers that are numbers, less the zero point; of NaN, which `sure` rules out, 0. */
VFN vf32 quantised(vf32 v, const int quick, const int sure, const scaled *s)
{
    const vf32 q = v_min(s->high, v_max(s->low, quotient(v, quick, s)));
    return sure ? q : v_sel(v_is_nan(v), v_neg(v_f32_of_i32(s->zero)), q);
}

VFN vf32 residual_of(const ortc_int_pass *p, size_t at, size_t n, vi32 zero, vf32 scale)
{
    const int32_t type = p->steps->residual.type;
    if (type == ORTC_F32) return v_load_f32((const float *)p->residual + at, n);
    const vi32 x = type == ORTC_I8 ? v_load_i8((const int8_t *)p->residual + at, n)
                                   : v_load_u8((const uint8_t *)p->residual + at, n);
    return v_mul(v_f32_of_i32(v_sub(x, zero)), scale);
}

static int bounds_something(const ortc_int_bounds *b) { return b->lo > -INFINITY || b->hi < INFINITY; }

/* Bytes of a result. */
static size_t size_of(const ortc_int_pass *p, int ends)
{
    return ends && !p->steps->again.type ? 1 : sizeof(float);
}

/* What is the same for all of a tile. */
typedef struct steady {
    vf32 lo, hi, last_lo, last_hi, zero, scale, r_scale, again_zero, again_scale;
    vi32 r_zero;
    int clips, last, moves, again, added; /* added: something is behind the first that is rounded */
    scaled to, end;
} steady;

VFN steady steady_of(const ortc_int_pass *p)
{
    const ortc_int_steps *s = p->steps;
    return (steady){.lo = v_set_f32(s->clip.lo),
                    .hi = v_set_f32(s->clip.hi),
                    .last_lo = v_set_f32(s->last.lo),
                    .last_hi = v_set_f32(s->last.hi),
                    .zero = v_set_f32(s->from.zero - s->to.zero),
                    .scale = v_set_f32(s->from.scale),
                    .r_scale = v_set_f32(s->residual.scale),
                    .again_zero = v_set_f32(s->again.zero),
                    .again_scale = v_set_f32(s->again.scale),
                    .r_zero = v_set_i32((int32_t)s->residual.zero),
                    .clips = bounds_something(&s->clip),
                    .last = bounds_something(&s->last),
                    .moves = s->from.zero != s->to.zero,
                    .again = s->again.type != 0,
                    .added = p->by.data || p->more.data,
                    .to = scaled_of(&s->to),
                    .end = scaled_of(&s->y)};
}

/* n integers that are numbers, of the result's type. */
VFN void end_of(const steady *k, vf32 q, void *y, size_t n)
{
    if (k->again) /* what rounds to -0 is the integer 0 */
        v_store_f32(y, v_mul(v_sub(v_add(q, v_set_f32(0)), k->again_zero), k->again_scale), n);
    else
        v_store_i8(y, v_i32_within(q), n);
}

/* n sums, whose residual is `at` elements into it, to y. Compiled for each combination, so that loops have
 * few choices in them. quick: reciprocals will do; sure: nothing is NaN. */
VFN void finish(const int back, const int adds, const int ends, const int quick, const int sure,
                const ortc_int_pass *p, const steady *k, vf32 v, vf32 by, vf32 more, size_t at, void *y,
                size_t n)
{
    if (k->clips) v = v_min(k->hi, v_max(k->lo, v));
    if (back) {
        v = quantised(v, quick, sure, &k->to);
        if (!ends) v = v_add(v, v_set_f32(0)); /* what rounds to -0 is the integer 0 */
        if (k->moves) v = v_sub(v, k->zero);
        v = v_mul(v, k->scale);
    }
    if (k->added) v = v_add(v_mul(v, by), more);
    if (adds) v = v_add(v, residual_of(p, at, n, k->r_zero, k->r_scale));
    if ((back || adds || k->added) && k->last) v = v_min(k->last_hi, v_max(k->last_lo, v));
    if (ends)
        end_of(k, v_add(quantised(v, quick, sure, &k->end), v_f32_of_i32(k->end.zero)), y, n);
    else
        v_store_f32(y, v, n);
}

/* To 8 bits with fewer operations: factors and biases in units of what is rounded to, each sum by one
 * operation, bounds and zero points as integers, for they may come last: rounding is monotonic. That is not
 * how the program rounds. Both make at most 8 roundings of numbers not above `most` in these units, for a
 * result within its bounds, of which none is above 512: so that they differ by less than most * 2^-21, and a
 * vector of which an element is nearer to a half is done again as the program does. */
typedef struct fused {
    vf32 factor, bias;              /* of sums, to the first that is rounded; */
    vf32 lo, hi;                    /* its bounds; what is added unrounded has them, too */
    vf32 next, r_factor, last_bias; /* of that (where `back`) and of the residual, to the last */
    vf32 last_lo, last_hi;
    vf32 near, nearer; /* how far from an integer the last may be; how much less the first */
} fused;

enum { MOST = 1 << 14 };

VFN vf32 distance_of(vf32 most) { return v_sub(v_set_f32(0.5f), v_mul(most, v_set_f32(0x1p-21f))); }

/* 0: not for these numbers. */
VFN int fused_of(const int back, const int adds, const ortc_int_pass *p, const steady *k, vf32 factor,
                 vf32 bias, vf32 by, vf32 more, fused *u)
{
    const scaled *first = back ? &k->to : &k->end;
    const vf32 zero = v_f32_of_i32(k->end.zero), r = k->end.reciprocal;
    u->factor = v_mul(factor, first->reciprocal), u->bias = v_mul(bias, first->reciprocal);
    if (!back && k->added) u->factor = v_mul(u->factor, by), u->bias = v_mul(v_fma(bias, by, more), r);
    u->next = v_mul(v_mul(k->scale, by), r);
    u->r_factor = adds ? v_mul(k->r_scale, r) : v_set_f32(0);
    const vf32 r_zero = v_mul(v_f32_of_i32(k->r_zero), u->r_factor),
               next_zero = back ? v_mul(k->zero, u->next) : v_set_f32(0),
               between = back ? v_mul(more, r) : v_set_f32(0);
    u->last_bias = v_add(v_sub(v_sub(zero, r_zero), next_zero), between);
    u->lo = v_set_f32(-INFINITY), u->hi = v_set_f32(INFINITY);
    if (back)
        u->lo = quantised(k->lo, 0, 1, first), u->hi = quantised(k->hi, 0, 1, first);
    else if (adds)
        u->lo = v_mul(k->lo, r), u->hi = v_mul(k->hi, r);
    const int own = back || adds || k->added;
    u->last_lo = v_add(zero, quantised(own ? k->last_lo : k->lo, 0, 1, &k->end));
    u->last_hi = v_add(zero, quantised(own ? k->last_hi : k->hi, 0, 1, &k->end));
    const vf32 one = v_add(v_set_f32(512), v_abs(u->bias));
    vf32 most = v_add(v_add(v_set_f32(512), zero), v_add(v_abs(r_zero), v_abs(next_zero)));
    most = v_add(most, v_abs(between));
    most = v_fma(v_abs(u->r_factor), v_set_f32(255), back ? most : v_add(most, v_abs(u->bias)));
    u->near = distance_of(most);
    u->nearer = v_sub(u->near, distance_of(one));
    return p->steps->residual.type != ORTC_F32 &&
           !v_any(v_not(v_lt(v_max(v_max(one, most), v_abs(u->factor)), v_set_f32(MOST))));
}

/* The element as an integer that is a number; *off: how far from one it was. */
VFN vf32 fused_at(const int back, const int adds, const ortc_int_pass *p, const fused *u, vf32 sum, size_t at,
                  size_t n, vf32 *off)
{
    vf32 v = v_fma(sum, u->factor, u->bias);
    *off = v_set_f32(0);
    if (back) {
        const vf32 q = v_rint(v);
        *off = v_add(v_abs(v_sub(v, q)), u->nearer);
        v = v_fma(v_min(u->hi, v_max(u->lo, q)), u->next, u->last_bias);
    } else {
        if (adds) v = v_min(u->hi, v_max(u->lo, v));
        v = v_add(v, u->last_bias);
    }
    if (adds) {
        const void *r = (const char *)p->residual + at;
        v = v_fma(v_f32_of_i32(p->steps->residual.type == ORTC_I8 ? v_load_i8(r, n) : v_load_u8(r, n)),
                  u->r_factor, v);
    }
    const vf32 q = v_rint(v);
    *off = v_max(*off, v_abs(v_sub(v, q)));
    return v_min(u->last_hi, v_max(u->last_lo, q));
}

/* 0: some of them must be done as the program does. */
VFN int end_fused(const int back, const int adds, const ortc_int_pass *p, const steady *k, const fused *u,
                  vf32 sum, size_t at, void *y, size_t n)
{
    vf32 off;
    const vf32 q = fused_at(back, adds, p, u, sum, at, n, &off);
    if (__builtin_expect(v_any(v_lt(u->near, off)), 0)) return 0;
    end_of(k, q, y, n);
    return 1;
}

/* along: vectors may change along a row. */
VFN void pass(const int back, const int adds, const int ends, const int quick, const int sure,
              const int along, const ortc_int_pass *p, size_t rows, size_t cols, const int32_t *sums,
              size_t ld, void *y, size_t y_ld)
{
    const steady k = steady_of(p);
    const size_t size = size_of(p, ends);
    for (size_t r = 0; r < rows; r++, sums += ld) {
        char *line = (char *)y + r * y_ld * size;
        const row_of before = row_at(&p->before, r, v_set_f32(0)),
                     factor = row_at(&p->scale, r, v_set_f32(1)),
                     bias = row_at(&p->bias, r, v_set_f32(-0.0f)), by = row_at(&p->by, r, v_set_f32(1)),
                     more = row_at(&p->more, r, v_set_f32(-0.0f));
        fused u;
        const int fuses = !along && ends && quick && sure && cols >= LONG &&
                          fused_of(back, adds, p, &k, factor.all, bias.all, by.all, more.all, &u);
        V_FOR(i, n, cols, {
            const vf32 sum = v_f32_of_i32(v_load_i32(sums + i, n) +
                                          v_bits_f32(elements(&before, along, i, n)));
            const size_t at = r * p->residual_row + i;
            if (!(fuses && end_fused(back, adds, p, &k, &u, sum, at, line + i * size, n)))
                finish(back, adds, ends, quick, sure, p, &k,
                       v_add(v_mul(sum, elements(&factor, along, i, n)), elements(&bias, along, i, n)),
                       elements(&by, along, i, n), elements(&more, along, i, n), at, line + i * size, n);
        });
    }
}

/* Down narrow tiles, whose vectors are the same for every row. */
VFN void pass_down(const int back, const int adds, const int ends, const ortc_int_pass *p, size_t rows,
                   size_t cols, const int32_t *sums, size_t ld, void *y, size_t y_ld)
{
    const steady k = steady_of(p);
    const size_t size = size_of(p, ends);
    const row_of befores = row_at(&p->before, 0, v_set_f32(0)), factors = row_at(&p->scale, 0, v_set_f32(1)),
                 biases = row_at(&p->bias, 0, v_set_f32(-0.0f)), bys = row_at(&p->by, 0, v_set_f32(1)),
                 mores = row_at(&p->more, 0, v_set_f32(-0.0f));
    V_FOR(i, n, cols, {
        const vi32 before = v_bits_f32(elements(&befores, 1, i, n));
        const vf32 factor = elements(&factors, 1, i, n), bias = elements(&biases, 1, i, n),
                   by = elements(&bys, 1, i, n), more = elements(&mores, 1, i, n);
        fused u;
        const int fuses = ends && fused_of(back, adds, p, &k, factor, bias, by, more, &u);
        for (size_t r = 0; r < rows; r++) {
            const vf32 sum = v_f32_of_i32(v_load_i32(sums + r * ld + i, n) + before);
            const size_t at = r * p->residual_row + i;
            void *to = (char *)y + (r * y_ld + i) * size;
            if (!(fuses && end_fused(back, adds, p, &k, &u, sum, at, to, n)))
                finish(back, adds, ends, 1, 1, p, &k, v_add(v_mul(sum, factor), bias), by, more, at, to, n);
        }
    });
}

static int is_quick(const ortc_int_scaled *s)
{
    const scaled all = scaled_of(s);
    return !s->type || all.quick;
}

/* A vector of finite numbers that no sum of products makes infinite. */
static int is_small(const ortc_int_vector *v, size_t rows, size_t cols)
{
    const size_t n = !v->data ? 0 : v->row ? rows : v->col ? cols : 1;
    int small = 1;
    for (size_t i = 0; i < n; i++) {
        float f;
        memcpy(&f, (const char *)v->data + 4 * i, sizeof f);
        small &= f > -0x1p60f && f < 0x1p60f;
    }
    return small;
}

/* Nothing here makes a NaN. */
static int is_sure(const ortc_int_pass *p, size_t rows, size_t cols)
{
    const ortc_int_scaled *r = &p->steps->residual;
    return is_small(&p->scale, rows, cols) && is_small(&p->bias, rows, cols) &&
           is_small(&p->by, rows, cols) && is_small(&p->more, rows, cols) &&
           (!p->residual || (r->type != ORTC_F32 && r->scale < 0x1p60f));
}

/* The usual, compiled for each combination; the rest, which asks as it goes. */
#define PASS(back, ends) \
    static void pass_##back##ends(const ortc_int_pass *p, size_t rows, size_t cols, const int32_t *sums, \
                                  size_t ld, void *y, size_t y_ld) \
    { \
        pass(back, p->residual != NULL, ends, 1, 1, 0, p, rows, cols, sums, ld, y, y_ld); \
    } \
    static void along_##back##ends(const ortc_int_pass *p, size_t rows, size_t cols, const int32_t *sums, \
                                   size_t ld, void *y, size_t y_ld) \
    { \
        pass(back, p->residual != NULL, ends, 1, 0, 1, p, rows, cols, sums, ld, y, y_ld); \
    } \
    static void down_##back##ends(const ortc_int_pass *p, size_t rows, size_t cols, const int32_t *sums, \
                                  size_t ld, void *y, size_t y_ld) \
    { \
        if (p->residual) \
            pass_down(back, 1, ends, p, rows, cols, sums, ld, y, y_ld); \
        else \
            pass_down(back, 0, ends, p, rows, cols, sums, ld, y, y_ld); \
    }
PASS(0, 0)
PASS(0, 1)
PASS(1, 0)
PASS(1, 1)
typedef void passing(const ortc_int_pass *, size_t rows, size_t cols, const int32_t *sums, size_t ld, void *y,
                     size_t y_ld);
static void divided(const ortc_int_pass *p, size_t rows, size_t cols, const int32_t *sums, size_t ld, void *y,
                    size_t y_ld)
{
    pass(p->steps->to.type != 0, p->residual != NULL, p->ends, 0, 0, 1, p, rows, cols, sums, ld, y, y_ld);
}

static void run(const ortc_int_pass *p, size_t rows, size_t cols, const int32_t *sums, size_t ld, void *y,
                size_t y_ld)
{
    static passing *const passes[2][2] = {{pass_00, pass_01}, {pass_10, pass_11}};
    static passing *const alongs[2][2] = {{along_00, along_01}, {along_10, along_11}};
    static passing *const downs[2][2] = {{down_00, down_01}, {down_10, down_11}};
    const int back = p->steps->to.type != 0, ends = p->ends != 0,
              by_row = p->before.row || p->scale.row || p->bias.row || p->by.row || p->more.row,
              by_col = p->before.col || p->scale.col || p->bias.col || p->by.col || p->more.col,
              sure = is_sure(p, rows, cols);
    passing *f = sure && !by_row && (rows >= FEW_ROWS || cols <= NARROW) ? downs[back][ends]
                 : sure && !by_col                                       ? passes[back][ends]
                                                                         : alongs[back][ends];
    if (!is_quick(&p->steps->to) || !is_quick(&p->steps->y)) f = divided;
    f(p, rows, cols, sums, ld, y, y_ld);
}

const ortc_int_passes V_NAME(ortc_int_passes) = {run};
