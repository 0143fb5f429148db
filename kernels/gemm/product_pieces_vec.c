/* The bodies of ortc_product_pieces (product_uk.h): f32 as bf16, or as a sum of several. */
#include "product_uk.h"

#include "kernels/common/vector/vec.h"

/* Rounded to bf16, which is the upper half; NaN stays one. */
VFN vi32 rounded(vf32 v)
{
    const vi32 x = v_bits_f32(v), upper = v_set_i32((int32_t)0xffff0000);
    const vi32 up = (vi32)((vu32)x + 0x7fff + (((vu32)x >> 16) & 1));
    return v_sel_i32(v_is_nan(v), x | v_set_i32(0x400000), up) & upper;
}

/* 1 in lanes of what three pieces do not hold, else what `bad` is. */
VFN vi32 mark(vf32 v, vi32 bad)
{
    const vu32 magnitude = (vu32)v_bits_f32(v) & 0x7fffffff;
    const vm32 held = v_lt_u32(magnitude - v_set_u32(ORTC_PIECES_LEAST),
                               v_set_u32(ORTC_PIECES_BEYOND - ORTC_PIECES_LEAST));
    const vi32 marked = v_sel_i32(held, bad, v_set_i32(1));
    return v_sel_i32(v_eq_i32((vi32)magnitude, v_set_i32(0)), bad, marked);
}

static int any(vi32 bad) { return v_any(v_not(v_eq_i32(bad, v_set_i32(0)))); }

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

static int has_tiny_column(size_t w, size_t k, const float *src)
{
    const vf32 enough = v_f32_bits(v_set_i32(ORTC_PIECES_LARGEST));
    int tiny = 0;
    V_FOR(j, n, w, {
        vf32 largest = v_set_f32(0);
        for (size_t i = 0; i < k && (!i || v_any(v_lt(largest, enough))); i++)
            largest = v_max(largest, magnitude(v_load_f32(src + i * w + j, n)));
        tiny |= is_tiny(largest);
    });
    return tiny;
}

static int runs(size_t w, size_t k, const float *src, size_t ld, size_t planes, size_t group, uint16_t *dst,
                size_t dw)
{
    vi32 bad = v_set_i32(0);
    for (size_t k0 = 0; k0 < k; k0 += group, dst += planes * dw * group)
        for (size_t j = 0; j < dw; j++) {
            const size_t have = j >= w ? 0 : k - k0 < group ? k - k0 : group;
            const float *s = have ? src + j * ld + k0 : src;
            uint16_t *d = dst + j * group;
            V_FOR(i, n, group, {
                const size_t left = i < have ? have - i : 0;
                vf32 v = v_set_f32(0);
                if (left) v = v_load_f32(s + i, left < n ? left : n);
                bad = mark(v, bad);
                for (size_t p = 0; p < planes; p++) {
                    const vi32 piece = rounded(v);
                    v_store_u16(d + p * dw * group + i, (vi32)((vu32)piece >> 16), n);
                    v = v_sub(v, v_f32_bits(piece));
                }
            });
        }
    return any(bad) || (planes > 1 && has_tiny_row(w, k, src, ld));
}

static int pairs(size_t w, size_t k, const float *src, size_t planes, size_t group, void *dst)
{
    vi32 bad = v_set_i32(0);
    int32_t *d = dst;
    for (size_t k0 = 0; k0 < k; k0 += group, d += planes * w * group / 2)
        for (size_t kk = k0; kk < k0 + group; kk += 2)
            V_FOR(j, n, w, {
                vf32 x = kk < k ? v_load_f32(src + kk * w + j, n) : v_set_f32(0);
                vf32 y = kk + 1 < k ? v_load_f32(src + (kk + 1) * w + j, n) : v_set_f32(0);
                bad = mark(y, mark(x, bad));
                for (size_t p = 0; p < planes; p++) {
                    const vi32 first = rounded(x);
                    const vi32 second = rounded(y);
                    v_store_i32(d + (p * group / 2 + (kk - k0) / 2) * w + j,
                                (vi32)((vu32)first >> 16) | second, n);
                    x = v_sub(x, v_f32_bits(first)), y = v_sub(y, v_f32_bits(second));
                }
            });
    return any(bad) || (planes > 1 && has_tiny_column(w, k, src));
}

const ortc_product_pieces V_NAME(ortc_product_pieces) = {runs, pairs};
