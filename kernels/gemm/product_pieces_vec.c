/* The bodies of ortc_product_pieces (product_uk.h): f32 as bf16, or as a sum of several. */
#include "pieces_seen.h"

/* Rounded to bf16, which is the upper half; NaN stays one. */
VFN vi32 rounded(vf32 v)
{
    const vi32 x = v_bits_f32(v), upper = v_set_i32((int32_t)0xffff0000);
    const vi32 up = (vi32)((vu32)x + 0x7fff + (((vu32)x >> 16) & 1));
    return v_sel_i32(v_is_nan(v), x | v_set_i32(0x400000), up) & upper;
}

VFN vf32 magnitude(vf32 v) { return v_f32_bits(v_bits_f32(v) & v_set_i32(0x7fffffff)); }

/* Whether lanes of the largest magnitudes are too small, and not 0. */
static int is_tiny(vf32 largest)
{
    const vu32 bits = (vu32)v_bits_f32(largest) - 1; /* 0 comes last */
    return v_any(v_lt_u32(bits, v_set_u32(ORTC_PIECES_LARGEST - 1)));
}

static int has_tiny_row(size_t w, size_t k, const float *src, size_t ld)
{
    const vf32 enough = v_f32_bits(v_set_i32(ORTC_PIECES_LARGEST));
    for (size_t j = 0; j < w; j++, src += ld) {
        int tiny = 0, done = 0;
        for (size_t i = 0; i < k && !done; i += v_lanes()) {
            const vf32 v = magnitude(v_load_f32(src + i, k - i < v_lanes() ? k - i : v_lanes()));
            done = v_any(v_ge(v, enough));
            tiny |= is_tiny(v);
        }
        if (tiny && !done) return 1;
    }
    return 0;
}

static int odd(size_t w, size_t k, const float *src)
{
    int does = 0;
    V_FOR(j, n, w, {
        vi32 most = v_set_i32(0);
        vi32 least = v_set_i32(0x7fffffff); /* less 1, where 0 comes last */
        for (size_t i = 0; i < k; i++) {
            const vi32 m = v_bits_f32(v_load_f32(src + i * w + j, n)) & v_set_i32(0x7fffffff);
            most = v_max_i32(most, m);
            least = v_min_i32(least, (m - 1) & v_set_i32(0x7fffffff));
        }
        does |= v_any(v_lt_i32(v_set_i32(ORTC_PIECES_BEYOND - 1), most)) ||
                v_any(v_lt_i32(least, v_set_i32(ORTC_PIECES_LEAST - 1))) || is_tiny(v_f32_bits(most));
    });
    return does;
}

/* `group` values to each of `planes`, `step` apart, the largest piece first. Of several pieces all but the
 * last are cut off rather than rounded, which takes half as long: of a product 2^-23 is then left out at the
 * most, the other operand's pieces being rounded. What three pieces do not hold goes into what was seen. */
#define SPREAD(s, group, planes, d, step) \
    do { \
        const vi32 upper = v_set_i32((int32_t)0xffff0000); \
        for (size_t i = 0; i < (group); i += 2 * V_LANES) { \
            vf32 x = v_load_f32((s) + i, V_LANES); \
            vf32 y = v_load_f32((s) + i + V_LANES, V_LANES); \
            if ((planes) == 1) x = v_f32_bits(rounded(x)), y = v_f32_bits(rounded(y)); \
            for (size_t p = 0; p < (planes); p++) { \
                const vi32 high = v_upper_halves(x, y); \
                memcpy((d) + p * (step) + i, &high, sizeof high); \
                if ((planes) == 1) break; \
                if (p == 0) pieces_see(high, &most, &least); \
                x = v_sub(x, v_f32_bits(v_bits_f32(x) & upper)); \
                y = v_sub(y, v_f32_bits(v_bits_f32(y) & upper)); \
            } \
        } \
    } while (0)

VFN int runs_of(size_t w, size_t k, const float *src, size_t ld, const size_t planes, size_t group,
                uint16_t *dst, size_t dw)
{
    const size_t step = dw * group;
    vi32 most = PIECES_MOST;
    vi32 least = PIECES_LEAST;
    for (size_t k0 = 0; k0 < k; k0 += group, dst += planes * step) {
        for (size_t j = 0; j < w && k - k0 >= group; j++)
            SPREAD(src + j * ld + k0, group, planes, dst + j * group, step);
        for (size_t j = 0; j < w && k - k0 < group; j++) { /* filled up with zeros */
            float row[ORTC_FORM_GROUP] = {0};
            memcpy(row, src + j * ld + k0, (k - k0) * sizeof *row);
            SPREAD(row, group, planes, dst + j * group, step);
        }
    }
    return planes > 1 && (pieces_are_beyond(most, least) || has_tiny_row(w, k, src, ld));
}
static int runs(size_t w, size_t k, const float *src, size_t ld, size_t planes, size_t group, uint16_t *dst,
                size_t dw)
{
    if (planes == 1) return runs_of(w, k, src, ld, 1, group, dst, dw);
    return planes == 2 ? runs_of(w, k, src, ld, 2, group, dst, dw)
                       : runs_of(w, k, src, ld, 3, group, dst, dw);
}

static void pairs(size_t w, size_t k, const float *src, size_t planes, size_t group, void *dst)
{
    int32_t *d = dst;
    for (size_t k0 = 0; k0 < k; k0 += group, d += planes * w * group / 2)
        for (size_t kk = k0; kk < k0 + group; kk += 2)
            V_FOR(j, n, w, {
                vf32 x = kk < k ? v_load_f32(src + kk * w + j, n) : v_set_f32(0);
                vf32 y = kk + 1 < k ? v_load_f32(src + (kk + 1) * w + j, n) : v_set_f32(0);
                for (size_t p = 0; p < planes; p++) {
                    const vi32 first = rounded(x);
                    const vi32 second = rounded(y);
                    v_store_i32(d + (p * group / 2 + (kk - k0) / 2) * w + j,
                                (vi32)((vu32)first >> 16) | second, n);
                    x = v_sub(x, v_f32_bits(first)), y = v_sub(y, v_f32_bits(second));
                }
            });
}

const ortc_product_pieces V_NAME(ortc_product_pieces) = {runs, pairs, odd};
