/* The bodies of lines.h.
 *
 * Along a row an addition waits for the one before: of some elements the totals from the first of them on are
 * made beside that, and then added to what was before them. Where doubles could overflow that way, of f64, it
 * is one by one. Below each other, sums of f32 and narrower are f32 over some lines, on top of a total that
 * is a double: an error does not grow with the number of lines.
 */
#include "kernels/cumulative/lines.h"

#include "kernels/common/vector/vec.h"

enum { TOGETHER = 8 }; /* elements of a row, lines */

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

/* ---- Lines of floats narrower than their totals: a register of them is two of totals ------------------- */

#define EACH_LINE \
    for (int64_t k = 0; k < length; k++) { \
        const int64_t at = (s->reverse ? length - 1 - k : k) * step; \
        const TYPE *in = (const TYPE *)x + at; \
        TYPE *out = (TYPE *)y + at;
#define SUM_LINE(T, total) \
    V_FOR(i, n, count, { \
        const vf32 old = v_load_f32(some + i, v_lanes()), now = v_add(old, v_load_##T(in + i, n)); \
        v_store_f32(some + i, now, v_lanes()); \
        v_store_##T(out + i, v_add(v_load_f32(before + i, v_lanes()), total), n); \
    });
#define PRODUCT_LINE(T, total) \
    V_FOR(i, n, count, { \
        const size_t half = v_lanes() / 2; \
        const vf32 v = v_load_##T(in + i, n); \
        const vf64 old_lo = v_load_wide_f64(totals + i, half), \
                   old_hi = v_load_wide_f64(totals + i + half, half); \
        const vf64 now_lo = v_mul(old_lo, v_f64_lo(v)), now_hi = v_mul(old_hi, v_f64_hi(v)); \
        v_store_wide_f64(totals + i, now_lo, half); \
        v_store_wide_f64(totals + i + half, now_hi, half); \
        v_store_##T(out + i, v_f32_of_f64(total##_lo, total##_hi), n); \
    });
#define DOWN_FLOAT(T) \
    static void down_##T(const ortc_cumulative_state *s, int64_t length, size_t count, int64_t step, \
                         const void *x, void *y) \
    { \
        const size_t all = count + ORTC_TOTAL_PAD; \
        double totals[ORTC_TOTAL_LINE + ORTC_TOTAL_PAD]; \
        float before[ORTC_TOTAL_LINE + ORTC_TOTAL_PAD], some[ORTC_TOTAL_LINE + ORTC_TOTAL_PAD]; \
        for (size_t i = 0; i < all; i++) totals[i] = s->product, before[i] = some[i] = 0; \
        EACH_LINE \
        if (s->product && s->exclusive) { \
            PRODUCT_LINE(T, old) \
            continue; \
        } \
        if (s->product) { \
            PRODUCT_LINE(T, now) \
            continue; \
        } \
        if (s->exclusive) \
            SUM_LINE(T, old) \
        else \
            SUM_LINE(T, now) \
        for (size_t i = 0; (k + 1) % TOGETHER == 0 && i < all; i++) { \
            totals[i] += (double)some[i]; \
            before[i] = (float)totals[i]; \
            some[i] = 0; \
        } \
    } \
    }
#define TYPE float
DOWN_FLOAT(f32)
#undef TYPE
#define TYPE uint16_t
DOWN_FLOAT(f16)
DOWN_FLOAT(bf16)
#undef TYPE

/* ---- Plain loops --------------------------------------------------------------------------------------- */

#define DOWN_LOOP(sign, op, which) \
    for (size_t i = 0; i < count; i++) { \
        const TOTAL old = sums[i], now = old sign(TOTAL) in[i]; \
        sums[i] = now; \
        out[i] = (TYPE)which; \
    }
#define DOWN(name) \
    static void down_##name(const ortc_cumulative_state *s, int64_t length, size_t count, int64_t step, \
                            const void *x, void *y) \
    { \
        TOTAL sums[ORTC_TOTAL_LINE]; \
        for (size_t i = 0; i < count; i++) sums[i] = s->product; \
        EACH_LINE \
        EACH_KIND(DOWN_LOOP) \
    } \
    }

/* Elements `from`, `from` + by, ..: GROUP of them, of which `part` are totals from the first on. */
#define ALONG_GROUP(sign, op, which) \
    for (; k + GROUP <= length; k += GROUP, from += GROUP * by) { \
        TOTAL part[GROUP]; \
        part[0] = (TOTAL)in[from]; \
        for (int i = 1; i < GROUP; i++) part[i] = part[i - 1] sign(TOTAL) in[from + i * by]; \
        for (int i = 0; i < GROUP; i++) { \
            const TOTAL old = i ? total sign part[i - 1] : total, now = total sign part[i]; \
            (void)old, (void)now; \
            out[from + i * by] = (TYPE)which; \
        } \
        total = total sign part[GROUP - 1]; \
    } \
    for (; k < length; k++, from += by) { \
        const TOTAL old = total, now = total sign(TOTAL) in[from]; \
        (void)old; \
        total = now; \
        out[from] = (TYPE)which; \
    }
#define BRACED(sign, op, which) \
    { \
        ALONG_GROUP(sign, op, which) \
    }
#define ALONG(name) \
    static void along_##name(const ortc_cumulative_state *s, int64_t length, const void *x, void *y) \
    { \
        const int64_t by = s->reverse ? -1 : 1; \
        const TYPE *in = x; \
        TYPE *out = y; \
        TOTAL total = s->product; \
        int64_t from = s->reverse ? length - 1 : 0, k = 0; \
        EACH_KIND(BRACED) \
    }

#define GROUP TOGETHER
#define TYPE float
#define TOTAL double
ALONG(f32)
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
#undef TYPE
#undef TOTAL
#undef GROUP
#define GROUP 1
#define TYPE double
#define TOTAL double
ALONG(f64)
DOWN(f64)

const ortc_cumulative_lines V_NAME(ortc_cumulative_lines) = {{down_f32, down_f16, down_bf16, down_f64,
                                                              down_32, down_64},
                                                             {along_f32, NULL, NULL, along_f64, along_32,
                                                              along_64}};
