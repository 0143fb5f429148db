/* The bodies of ortc_nbits_vec (nbits.h).
 *
 * Words of eight numbers of 4 bits fill a register: number n of each lane is a shift by 4n away, and is
 * multiplied with every eighth element of x, which `spread` puts beside each other. So a weight costs a
 * shift, a conversion and an FMA, and scales go on once for a word.
 */
#include "kernels/gemm/nbits.h"

#include "kernels/common/vector/reduce.h"

enum { EIGHT = 8 };

static void spread(size_t groups, const float *x, float *to)
{
    const size_t lanes = v_lanes();
    const vi32 every = v_shl(v_iota(), 3);
    for (size_t g = 0; g < groups; g++, x += EIGHT * lanes)
        for (size_t n = 0; n < EIGHT; n++, to += lanes)
            v_store_f32(to, v_gather_f32(x + n, every, lanes), lanes);
}

/* Eight products of a word, two sums for the latency of an FMA. */
#define WORD(x) \
    v_add(v_fma(w6, v_load_f32((x) + 6 * lanes, lanes), \
                v_fma(w4, v_load_f32((x) + 4 * lanes, lanes), \
                      v_fma(w2, v_load_f32((x) + 2 * lanes, lanes), v_mul(w0, v_load_f32(x, lanes))))), \
          v_fma(w7, v_load_f32((x) + 7 * lanes, lanes), \
                v_fma(w5, v_load_f32((x) + 5 * lanes, lanes), \
                      v_fma(w3, v_load_f32((x) + 3 * lanes, lanes), \
                            v_mul(w1, v_load_f32((x) + lanes, lanes))))))

/* The words from `at` on, and their scales. */
#define UNPACK \
    const vi32 q = v_load_i32((const int32_t *)(const void *)w + at, n); \
    const vf32 s = v_repeat_f32(scale + (at >> shift), per, n); \
    const vf32 w0 = v_f32_of_low4(q), w1 = v_f32_of_low4(v_shr(q, 4)), w2 = v_f32_of_low4(v_shr(q, 8)), \
               w3 = v_f32_of_low4(v_shr(q, 12)), w4 = v_f32_of_low4(v_shr(q, 16)), \
               w5 = v_f32_of_low4(v_shr(q, 20)), w6 = v_f32_of_low4(v_shr(q, 24)), \
               w7 = v_f32_of_low4(v_shr(q, 28));

static void row4(size_t rows, size_t k, size_t block, const float *x, size_t ldx, const uint8_t *w,
                 const float *scale, float *sums)
{
    const size_t lanes = v_lanes(), words = k / EIGHT, per = block / EIGHT;
    const int shift = __builtin_ctzll(per);
    if (rows == 1) {
        vf32 sum = v_load_f32(sums, lanes);
        V_FOR(at, n, words, {
            v_prefetch((const void *)((uintptr_t)(w + 4 * at) + ORTC_NBITS_AHEAD));
            UNPACK
            sum = v_fma(WORD(x + EIGHT * at), s, sum);
        });
        v_store_f32(sums, sum, lanes);
        return;
    }
    V_FOR(at, n, words, {
        v_prefetch((const void *)((uintptr_t)(w + 4 * at) + ORTC_NBITS_AHEAD));
        UNPACK
        for (size_t r = 0; r < rows; r++) {
            const float *row = x + r * ldx + EIGHT * at;
            v_store_f32(sums + r * lanes, v_fma(WORD(row), s, v_load_f32(sums + r * lanes, lanes)), lanes);
        }
    });
}

static void round_blocks(size_t blocks, size_t block, const float *x, int8_t *to, float *scale)
{
    for (size_t b = 0; b < blocks; b++, x += block, to += block) {
        V_REDUCE(most, v_max, 0, block, i, n, v_abs(v_load_f32(x + i, n)));
        const vf32 by = v_set_f32(most > 0 ? 127 / most : 0), bound = v_set_f32(127);
        scale[b] = most / 127;
        V_FOR(i, n, block, {
            const vf32 q = v_min(bound, v_max(v_neg(bound), v_rint(v_mul(v_load_f32(x + i, n), by))));
            v_store_i8(to + i, v_i32_of_f32(q), n);
        });
    }
}

/* x that is rounded. */
#define NBITS_NAME static const ortc_nbits_bytes bytes
#include "nbits_bytes.inc"

static void fold(size_t rows, const float *sums, float *y)
{
    const size_t lanes = v_lanes();
    for (size_t r = 0; r < rows; r++) y[r] = V_ACROSS(v_sum, v_load_f32(sums + r * lanes, lanes));
}

static float offset(size_t blocks, const float *scale, const float *zero, float middle, const float *sums)
{
    const vf32 less = v_set_f32(middle);
    V_REDUCE(sum, v_sum, 0, blocks, i, n,
             v_mul(v_mul(v_load_f32(scale + i, n), v_sub(v_load_f32(zero + i, n), less)),
                   v_load_f32(sums + i, n)));
    return sum;
}

static void row8(size_t rows, size_t k, size_t block, const float *x, size_t ldx, const uint8_t *w,
                 const float *scale, const float *zero, float *y)
{
    for (size_t r = 0; r < rows; r++, x += ldx) {
        vf32 sum = v_set_f32(0);
        for (size_t at = 0; at < k; at += block) {
            const vf32 z = v_set_f32(zero[at / block]), s = v_set_f32(scale[at / block]);
            vf32 part = v_set_f32(0);
            V_FOR(i, n, block, {
                const vf32 v = v_sub(v_f32_of_i32(v_load_u8(w + at + i, n)), z);
                part = v_fma(v, v_load_f32(x + at + i, n), part);
            });
            sum = v_fma(part, s, sum);
        }
        y[r] = V_ACROSS(v_sum, sum);
    }
}

/* Eight at a time: 32 bits are pulled apart to 64. */
static void halves(size_t count, const uint8_t *w, uint8_t *to)
{
    size_t i = 0;
    for (; i + EIGHT <= count; i += EIGHT) {
        uint32_t word;
        memcpy(&word, w + i / 2, sizeof word);
        uint64_t v = word;
        v = (v | v << 16) & UINT64_C(0x0000ffff0000ffff);
        v = (v | v << 8) & UINT64_C(0x00ff00ff00ff00ff);
        v = (v | v << 4) & UINT64_C(0x0f0f0f0f0f0f0f0f);
        memcpy(to + i, &v, sizeof v);
    }
    for (; i < count; i++) to[i] = w[i / 2] >> i % 2 * 4 & 15;
}

#define WORDS(name, bits, number) \
    static void name(size_t k, size_t columns, const uint32_t *w, size_t ldw, const float *scale, \
                     const float *less, float *to, size_t ld) \
    { \
        for (size_t at = 0; at < k; at += 32 / bits, w += ldw) \
            for (size_t c = 0; c < columns; c += v_lanes()) { \
                const size_t lanes = v_lanes(); \
                const vf32 s = v_load_f32(scale + c, lanes), l = v_load_f32(less + c, lanes); \
                vi32 q = v_load_i32((const int32_t *)(const void *)w + c, lanes); \
                for (size_t i = at; i < at + 32 / bits && i < k; i++, q = v_shr(q, bits)) \
                    v_store_f32(to + i * ld + c, v_mul(v_sub(number, l), s), lanes); \
            } \
    }
WORDS(words4, 4, v_f32_of_low4(q))
WORDS(words8, 8, v_f32_of_i32(v_sub(v_and(q, v_set_i32(255)), v_set_i32(128))))

static void unpack(size_t count, const uint8_t *w, float scale, float zero, float *to)
{
    const vf32 s = v_set_f32(scale), z = v_set_f32(zero);
    V_FOR(i, n, count, v_store_f32(to + i, v_mul(v_sub(v_f32_of_i32(v_load_u8(w + i, n)), z), s), n););
}

const ortc_nbits_vec V_NAME(ortc_nbits_vec) = {V_LANES * EIGHT, spread, row4,   round_blocks, &bytes, fold,
                                               offset,          row8,   halves, words4,       words8, unpack};
