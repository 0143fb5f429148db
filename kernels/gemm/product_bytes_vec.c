/* The bodies of ortc_product_bytes (product_uk.h). A register's lane is a group of 4 bytes: four elements of
 * 8 bits, or two of 16. */
#include "product_uk.h"

#include "kernels/common/vector/interleave.h"
#include "kernels/common/vector/reduce.h"

/* Elements as they are stored, as numbers. */
VFN vi32 stored(const uint8_t *p, size_t n, int type, int to)
{
    if (to == ORTC_I16) return type == ORTC_I8 ? v_load_i8((const int8_t *)p, n) : v_load_u8(p, n);
    if (type == to) return to == ORTC_I8 ? v_load_i8((const int8_t *)p, n) : v_load_u8(p, n);
    /* moved by 128 */
    return to == ORTC_I8 ? v_load_u8(p, n) - v_set_i32(128)
                         : v_load_i8((const int8_t *)p, n) + v_set_i32(128);
}

#if V_LANES < 16
/* Columns 16 at a time; returns how many of them were. */
typedef int32_t v4s __attribute__((vector_size(16)));
static inline __attribute__((always_inline)) size_t wide_rows_of(const int type, const int to, size_t w,
                                                                 size_t more, const uint8_t *src, size_t ld,
                                                                 int32_t *dst, int32_t *sums)
{
    const uint8_t flip = type == to ? 0 : 0x80;
    size_t i = 0;
    for (; i + 16 <= w; i += 16) {
        ortc_v16 x[4] = {{0}};
        ortc_v4 words[4];
        for (size_t r = 0; r < 4; r++) {
            if (r >= more) continue;
            memcpy(&x[r], src + r * ld + i, sizeof x[r]);
            x[r] ^= flip;
        }
        ortc_quads_of(x[0], x[1], x[2], x[3], words);
        for (size_t q = 0; q < 4; q++) {
            memcpy(dst + i + q * 4, &words[q], sizeof words[q]);
            if (!sums) continue;
            v4s sum, all;
            memcpy(&sum, sums + i + q * 4, sizeof sum);
            if (to == ORTC_I8) {
                const v4s y = (v4s)words[q];
                all = (y >> 24) + ((v4s)(words[q] << 8) >> 24) + ((v4s)(words[q] << 16) >> 24) +
                      ((v4s)(words[q] << 24) >> 24);
            } else {
                const ortc_v4 y = words[q];
                all = (v4s)((y >> 24) + (y >> 16 & 0xff) + (y >> 8 & 0xff) + (y & 0xff));
            }
            sum += all;
            memcpy(sums + i + q * 4, &sum, sizeof sum);
        }
    }
    return i;
}
#else
#define wide_rows_of(...) 0
#endif

static inline __attribute__((always_inline)) void rows_of(const int type, const int to, size_t w, size_t k,
                                                          const uint8_t *src, size_t ld, int32_t *dst,
                                                          size_t dw, int32_t *sums)
{
    const size_t group = to == ORTC_I16 ? 2 : 4;
    const vi32 low = v_set_i32(to == ORTC_I16 ? 0xffff : 0xff);
    for (size_t k0 = 0; k0 < k; k0 += group, src += group * ld, dst += dw) {
        const size_t more = k - k0,
                     done = to == ORTC_I16 ? 0 : wide_rows_of(type, to, w, more, src, ld, dst, sums);
        V_FOR(at, n, w - done, {
            const size_t i = done + at;
            const vi32 zero = v_set_i32(0), x0 = stored(src + i, n, type, to),
                       x1 = more > 1 ? stored(src + ld + i, n, type, to) : zero;
            vi32 all = x0 + x1;
            if (to == ORTC_I16) {
                v_store_i32(dst + i, (x0 & low) | (vi32)((vu32)x1 << 16), n);
            } else {
                const vi32 x2 = more > 2 ? stored(src + 2 * ld + i, n, type, to) : zero,
                           x3 = more > 3 ? stored(src + 3 * ld + i, n, type, to) : zero;
                v_store_i32(dst + i,
                            (x0 & low) | (vi32)((vu32)(x1 & low) << 8) | (vi32)((vu32)(x2 & low) << 16) |
                                (vi32)((vu32)x3 << 24),
                            n);
                all += x2 + x3;
            }
            if (sums) v_store_i32(sums + i, v_load_i32(sums + i, n) + all, n);
        });
        for (size_t i = w; i < dw; i++) dst[i] = 0;
    }
}

/* A copy for each pair of types, so that loops have no choice in them. */
static void rows(size_t w, size_t k, const uint8_t *src, size_t ld, int type, int to, void *dst, size_t dw,
                 int32_t *sums)
{
    if (to == ORTC_I16)
        type == ORTC_I8 ? rows_of(ORTC_I8, ORTC_I16, w, k, src, ld, dst, dw, sums)
                        : rows_of(ORTC_U8, ORTC_I16, w, k, src, ld, dst, dw, sums);
    else if (type == to) /* the sums' sign apart, bytes are bytes */
        to == ORTC_I8 ? rows_of(ORTC_I8, ORTC_I8, w, k, src, ld, dst, dw, sums)
                      : rows_of(ORTC_U8, ORTC_U8, w, k, src, ld, dst, dw, sums);
    else
        to == ORTC_I8 ? rows_of(ORTC_U8, ORTC_I8, w, k, src, ld, dst, dw, sums)
                      : rows_of(ORTC_I8, ORTC_U8, w, k, src, ld, dst, dw, sums);
}

static inline __attribute__((always_inline)) int32_t line_of(const int type, const int to, size_t count,
                                                             const uint8_t *src, void *dst)
{
    vi32 all = v_set_i32(0);
    int32_t lanes[V_LANES], sum = 0;
    V_FOR(i, n, count, {
        const vi32 x = stored(src + i, n, type, to);
        all += v_keep_i32(x, n, 0);
        if (to == ORTC_I16)
            v_store_i16((int16_t *)dst + i, x, n);
        else
            v_store_i8((int8_t *)dst + i, x, n);
    });
    v_store_i32(lanes, all, V_LANES);
    for (size_t i = 0; i < V_LANES; i++) sum += lanes[i];
    return sum;
}

static int32_t line(size_t n, const uint8_t *src, int type, int to, void *dst)
{
    if (to == ORTC_I16)
        return type == ORTC_I8 ? line_of(ORTC_I8, ORTC_I16, n, src, dst)
                               : line_of(ORTC_U8, ORTC_I16, n, src, dst);
    if (type == to)
        return to == ORTC_I8 ? line_of(ORTC_I8, ORTC_I8, n, src, dst)
                             : line_of(ORTC_U8, ORTC_U8, n, src, dst);
    return to == ORTC_I8 ? line_of(ORTC_U8, ORTC_I8, n, src, dst) : line_of(ORTC_I8, ORTC_U8, n, src, dst);
}

/* zb * (ra - k * za) + za * cb */
static void correct_each(size_t n_rows, size_t cols, int32_t *sums, size_t ld, int32_t k, const int32_t *ra,
                         const int32_t *cb, const ortc_product_zeros *z)
{
    for (size_t r = 0; r < n_rows; r++, sums += ld) {
        const int32_t za = z->a[r * z->a_step] + z->a_moved;
        const vi32 row = v_set_i32((int32_t)((uint32_t)ra[r] - (uint32_t)k * (uint32_t)za)),
                   a = v_set_i32(za), b = v_set_i32(*z->b + z->b_moved), moved = v_set_i32(z->b_moved);
        V_FOR(i, n, cols, {
            const vi32 zb = z->b_step ? v_load_i32(z->b + i, n) + moved : b;
            v_store_i32(sums + i, v_load_i32(sums + i, n) - zb * row - a * v_load_i32(cb + i, n), n);
        });
    }
}

/* The same of one zero point each: what rows and columns make of them is multiplied once for some rows. */
static void correct(size_t n_rows, size_t cols, int32_t *sums, size_t ld, int32_t k, const int32_t *ra,
                    const int32_t *cb, const ortc_product_zeros *z)
{
    enum { ROWS = 16 };
    const int32_t za = *z->a + z->a_moved, zb = *z->b + z->b_moved;
    int32_t row[ROWS];
    if (z->a_step || z->b_step) {
        correct_each(n_rows, cols, sums, ld, k, ra, cb, z);
        return;
    }
    for (size_t some; n_rows > 0; n_rows -= some, ra += some, sums += some * ld) {
        some = n_rows < ROWS ? n_rows : ROWS;
        for (size_t r = 0; r < some; r++)
            row[r] = (int32_t)((uint32_t)zb * ((uint32_t)ra[r] - (uint32_t)k * (uint32_t)za));
        V_FOR(i, n, cols, {
            const vi32 column = v_set_i32(za) * v_load_i32(cb + i, n);
            for (size_t r = 0; r < some; r++) {
                int32_t *at = sums + r * ld + i;
                v_store_i32(at, v_load_i32(at, n) - (column + v_set_i32(row[r])), n);
            }
        });
    }
}

static void begin(size_t cols, int32_t za, const int32_t *cb, int32_t *first)
{
    const vi32 opposite = v_set_i32((int32_t)(0 - (uint32_t)za));
    V_FOR(i, n, cols, { v_store_i32(first + i, opposite * v_load_i32(cb + i, n), n); });
}

/* Four elements at a time, as u8: pairs of them as 16 bits, of which 128 words do not overflow. */
static void sums(size_t n_rows, size_t k, const uint8_t *src, size_t ld, int type, int32_t *out)
{
    const vi32 flip = v_set_i32(type == ORTC_I8 ? (int32_t)0x80808080u : 0), low = v_set_i32(0x00ff00ff);
    const size_t words = k / 4;
    for (size_t r = 0; r < n_rows; r++, src += ld) {
        uint32_t lanes[V_LANES], sum = 0;
        vi32 pairs = v_set_i32(0);
        size_t i = 0;
        for (size_t to; i < words; i = to) {
            to = words - i < 128 * V_LANES ? words : i + 128 * V_LANES;
            vi32 some = v_set_i32(0);
            V_FOR(at, n, to - i, {
                const vi32 x = v_keep_i32(v_load_i32((const int32_t *)(const void *)(src + (i + at) * 4), n) ^
                                              flip,
                                          n, 0);
                some += (x & low) + ((vi32)((vu32)x >> 8) & low);
            });
            pairs += (some & v_set_i32(0xffff)) + (vi32)((vu32)some >> 16);
        }
        memcpy(lanes, &pairs, sizeof lanes);
        for (size_t l = 0; l < V_LANES; l++) sum += lanes[l];
        for (i = words * 4; i < k; i++) sum += type == ORTC_I8 ? src[i] ^ 0x80u : src[i];
        out[r] = (int32_t)(sum - (type == ORTC_I8 ? 128 * (uint32_t)k : 0));
    }
}

const ortc_product_bytes V_NAME(ortc_product_bytes) = {rows, line, correct, begin, sums};
