/* The bodies of lines.h. Rows are gone along together, since each of the additions along one waits for the
 * one before. */
#include "kernels/cumulative/lines.h"

#include "kernels/common/vector/vec.h"

/* Four loops of a body, by what is done: `old` and `now` are totals without and with an element. */
#define EACH_KIND(LOOP) \
    if (s->product && s->exclusive) \
        LOOP(*, v_mul, old) \
    else if (s->product) \
        LOOP(*, v_mul, now) \
    else if (s->exclusive) \
        LOOP(+, v_add, old) \
    else \
        LOOP(+, v_add, now)

/* Floats narrower than their totals: a register of them is two of totals. */
#define DOWN_FLOAT(T, type) \
    static void down_##T(const ortc_cumulative_state *s, int64_t length, size_t count, int64_t step, \
                         const void *x, void *y) \
    { \
        const size_t lanes = v_lanes(), half = lanes / 2; \
        double sums[ORTC_TOTAL_LINE + 64]; \
        for (size_t i = 0; i < count + 64; i++) sums[i] = s->product; \
        for (int64_t k = 0; k < length; k++) { \
            const int64_t at = (s->reverse ? length - 1 - k : k) * step; \
            const type *in = (const type *)x + at; \
            type *out = (type *)y + at; \
            EACH_KIND(DOWN_##T) \
        } \
    }
#define DOWN_LINE(T, op, total) \
    V_FOR(i, n, count, { \
        const vf32 v = v_load_##T(in + i, n); \
        const vf64 old_lo = v_load_wide_f64(sums + i, half), \
                   old_hi = v_load_wide_f64(sums + i + half, half); \
        const vf64 now_lo = op(old_lo, v_f64_lo(v)), now_hi = op(old_hi, v_f64_hi(v)); \
        v_store_wide_f64(sums + i, now_lo, half); \
        v_store_wide_f64(sums + i + half, now_hi, half); \
        v_store_##T(out + i, v_f32_of_f64(total##_lo, total##_hi), n); \
    });
#define DOWN_f32(sign, op, total) DOWN_LINE(f32, op, total)
#define DOWN_f16(sign, op, total) DOWN_LINE(f16, op, total)
#define DOWN_bf16(sign, op, total) DOWN_LINE(bf16, op, total)
DOWN_FLOAT(f32, float)
DOWN_FLOAT(f16, uint16_t)
DOWN_FLOAT(bf16, uint16_t)

#define DOWN_LOOP(sign, op, which) \
    for (size_t i = 0; i < count; i++) { \
        const TOTAL old = sums[i], now = old sign(TOTAL) in[i]; \
        sums[i] = now; \
        out[i] = (TYPE)which; \
    }
#define ALONG_LOOP(sign, op, which) \
    for (size_t r = 0; r < ORTC_TOTAL_ROWS; r++) { \
        const TOTAL old = sums[r], now = old sign(TOTAL) in[(int64_t)r * step]; \
        sums[r] = now; \
        out[(int64_t)r * step] = (TYPE)which; \
    }
#define ALONG_ONE(sign, op, which) \
    { \
        const TOTAL old = sums[0], now = old sign(TOTAL) in[0]; \
        sums[0] = now; \
        out[0] = (TYPE)which; \
    }
#define ALONG_BODY(rows, LOOP) \
    { \
        TOTAL sums[rows]; \
        for (size_t r = 0; r < (rows); r++) sums[r] = s->product; \
        for (int64_t k = 0; k < length; k++) { \
            const int64_t at = (s->reverse ? length - 1 - k : k); \
            const TYPE *in = (const TYPE *)x + at; \
            TYPE *out = (TYPE *)y + at; \
            EACH_KIND(LOOP) \
        } \
    }
#define ALONG(name) \
    static void along_##name(const ortc_cumulative_state *s, int64_t length, size_t n, const void *x, \
                             void *y) \
    { \
        const int64_t step = length; \
        if (n == ORTC_TOTAL_ROWS) \
            ALONG_BODY(ORTC_TOTAL_ROWS, ALONG_LOOP) \
        else \
            for (size_t one = 0; one < n; one++, x = (const TYPE *)x + step, y = (TYPE *)y + step) \
                ALONG_BODY(1, ALONG_ONE) \
    }
#define DOWN(name) \
    static void down_##name(const ortc_cumulative_state *s, int64_t length, size_t count, int64_t step, \
                            const void *x, void *y) \
    { \
        TOTAL sums[ORTC_TOTAL_LINE]; \
        for (size_t i = 0; i < count; i++) sums[i] = s->product; \
        for (int64_t k = 0; k < length; k++) { \
            const int64_t at = (s->reverse ? length - 1 - k : k) * step; \
            const TYPE *in = (const TYPE *)x + at; \
            TYPE *out = (TYPE *)y + at; \
            EACH_KIND(DOWN_LOOP) \
        } \
    }

#define TYPE float
#define TOTAL double
ALONG(f32)
#undef TYPE
#define TYPE double
ALONG(f64)
DOWN(f64)
#undef TYPE
#undef TOTAL
#define TYPE uint32_t
#define TOTAL uint64_t
ALONG(32)
DOWN(32)
#undef TYPE
#define TYPE uint64_t
ALONG(64)
DOWN(64)

const ortc_cumulative_lines V_NAME(ortc_cumulative_lines) = {{down_f32, down_f16, down_bf16, down_f64,
                                                              down_32, down_64},
                                                             {along_f32, NULL, NULL, along_f64, along_32,
                                                              along_64}};
