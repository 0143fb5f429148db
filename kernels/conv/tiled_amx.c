/* The micro-kernels of tiled_uk.h for AMX: 32 pixels x 2 blocks of filters are four tile registers (0 to 3),
 * which two of pixels (4, 5) and two of weights (6, 7) feed. Tiles have a row for each pixel of a half, for a
 * product takes the longer the more there are; what lies behind the last pixel is read, multiplied and not
 * used. Sums begin as rows of the bias: a tile whose rows are 0 bytes apart. */
#include <math.h>

#include "tiled_uk.h"

#include "kernels/common/vector/vec.h"
#include "kernels/gemm/amx.h"
#include "kernels/gemm/amx_bf16.h"
#include "kernels/gemm/amx_pieces.h"
#include "kernels/gemm/amx_split.h"
#include "kernels/gemm/product_uk.h"

#ifndef TILED_UK /* a test has another name */
#define TILED_UK ortc_tiled_amx
#endif

enum { BLOCK = 16, PIECES = 3, TILE_BYTES = 1024, SPLIT_AHEAD = 2 * ORTC_TILED_PLAIN_BYTES };
#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 32")

static void begin(int half)
{
    amx_shape shape = {.palette = 1};
    for (int t = 0; t < 8; t++) shape.row_bytes[t] = AMX_ROW, shape.rows[t] = (uint8_t)(t < 6 ? half : 16);
    AMX_CONFIG(&shape);
}
static void end(void) { AMX_RELEASE(); }

/* ---- Products ------------------------------------------------------------------------------------------ */

/* A quarter of weights to come: they are longer than L1, and the first time further away than L2. */
INLINE void prefetch(const char *p)
{
    UNROLL for (size_t i = 0; i < 4; i++) __builtin_prefetch(p + ORTC_TILED_AHEAD + i * 64);
}

INLINE void start(const int two_a, const int two_b, const ortc_tiled_tile *t)
{
    const char *y = t->sums;
    const size_t second = t->half * AMX_ROW;
    if (t->more) {
        AMX_LOAD(0, y, AMX_ROW);
        if (two_a) AMX_LOAD(2, y + second, AMX_ROW);
        if (two_b) AMX_LOAD(1, y + t->block, AMX_ROW);
        if (two_a && two_b) AMX_LOAD(3, y + t->block + second, AMX_ROW);
        return;
    }
    const char *bias = t->bias;
    if (!bias) {
        AMX_ZERO(0);
        if (two_a) AMX_ZERO(2);
        if (two_b) AMX_ZERO(1);
        if (two_a && two_b) AMX_ZERO(3);
        return;
    }
    AMX_LOAD(0, bias, 0);
    if (two_a) AMX_LOAD(2, bias, 0);
    if (two_b) AMX_LOAD(1, bias + AMX_ROW, 0);
    if (two_a && two_b) AMX_LOAD(3, bias + AMX_ROW, 0);
}

INLINE void store(const int two_a, const int two_b, const ortc_tiled_tile *t)
{
    char *y = t->sums;
    const size_t second = t->half * AMX_ROW;
    AMX_STORE(0, y, AMX_ROW);
    if (two_a) AMX_STORE(2, y + second, AMX_ROW);
    if (two_b) AMX_STORE(1, y + t->block, AMX_ROW);
    if (two_a && two_b) AMX_STORE(3, y + t->block + second, AMX_ROW);
}

/* One product for each group and tap. `middle` and `late` ask for weights. */
#define ONE(name, op, middle, late) \
    INLINE void name(const int two_a, const int two_b, const ortc_tiled_tile *t) \
    { \
        const char *w = t->w, *v = w + t->w_block, *x = t->x, *next = t->next; \
        const size_t step = t->step; \
        start(two_a, two_b, t); \
        for (size_t g = 0; g < t->groups; g++, x += t->group) \
            for (size_t tap = 0; tap < t->taps; tap++, w += t->w_step, v += t->w_step) { \
                const char *a = x + t->offset[tap] * 4; \
                AMX_LOAD(4, a, step); \
                AMX_LOAD(6, w, AMX_ROW); \
                AMX_TDP(op, 0, 4, 6); \
                middle(0); \
                if (two_b) AMX_LOAD(7, v, AMX_ROW); \
                if (two_b) AMX_TDP(op, 1, 4, 7); \
                middle(1); \
                if (two_a) AMX_LOAD(5, a + t->half * step, step); \
                if (two_a) AMX_TDP(op, 2, 5, 6); \
                late(0); \
                if (two_a && two_b) AMX_TDP(op, 3, 5, 7); \
                late(1); \
            } \
        (void)next; \
        store(two_a, two_b, t); \
    }
#define OF_W(half) prefetch(w + (half)*512), prefetch(w + (half)*512 + 256)
#define OF_V(half) \
    if (two_b) prefetch(v + (half)*512), prefetch(v + (half)*512 + 256)
ONE(sum_bf16_alone, bf16ps, OF_W, OF_V)
/* Of bytes, whose products are quicker than weights come, those that the caller says. */
#define NOTHING(half) (void)0
INLINE void ask(const int two_b, const ortc_tiled_tile *t, const char *next)
{
    for (size_t i = 0; i < t->next_lines; i++, next += 64) {
        __builtin_prefetch(next);
        if (two_b) __builtin_prefetch(next + t->w_block);
    }
}
#define OF_NEXT(half) \
    if ((half) == 0) ask(two_b, t, next), next += t->next_lines * 64
ONE(sum_two_bytes, busd, NOTHING, OF_NEXT)
/* Of 16 bits, where others have read these weights already: into L2. */
#define OF_FAR(half) \
    for (size_t i = 0; (half) && i < t->next_lines; i++, next += 64) __builtin_prefetch(next, 0, 2)
ONE(sum_bf16_ahead, bf16ps, NOTHING, OF_FAR)
#undef OF_FAR
#undef OF_W
#undef OF_V
#undef NOTHING
#undef OF_NEXT
#undef ONE

/* Four halves of a block. */
static void sum_long_bytes(const ortc_tiled_tile *t)
{
    const char *w = t->w, *x = t->x, *next = t->next, *bias = t->bias;
    const size_t step = t->step;
    char *y = t->sums;
    if (bias) {
        AMX_LOAD(0, bias, 0);
        AMX_LOAD(1, bias, 0);
        AMX_LOAD(2, bias, 0);
        AMX_LOAD(3, bias, 0);
    } else {
        AMX_ZERO(0);
        AMX_ZERO(1);
        AMX_ZERO(2);
        AMX_ZERO(3);
    }
    for (size_t g = 0; g < t->groups; g++, x += t->group)
        for (size_t tap = 0; tap < t->taps; tap++, w += t->w_step, next += t->next_lines * 64) {
            const char *a = x + t->offset[tap] * 4;
            AMX_LOAD(6, w, AMX_ROW);
            AMX_LOAD(4, a, step);
            AMX_TDP(busd, 0, 4, 6);
            AMX_LOAD(5, a + 16 * step, step);
            AMX_TDP(busd, 1, 5, 6);
            AMX_LOAD(4, a + 32 * step, step);
            AMX_TDP(busd, 2, 4, 6);
            AMX_LOAD(5, a + 48 * step, step);
            AMX_TDP(busd, 3, 5, 6);
            ask(0, t, next);
        }
    AMX_STORE(0, y, AMX_ROW);
    AMX_STORE(1, y + TILE_BYTES, AMX_ROW);
    AMX_STORE(2, y + 2 * TILE_BYTES, AMX_ROW);
    AMX_STORE(3, y + 3 * TILE_BYTES, AMX_ROW);
}

VFN vf32 channels(const char *x, size_t i, size_t n)
{
    return v_load_f32((const float *)(const void *)x + i, n);
}

/* Weights of a block, group and tap, [32 channels][16 filters] of f32, as pieces: those of two channels are
 * words. */
INLINE void split(const char *w, char *to)
{
    vi32 most = v_set_i32(0); /* not asked: packing has looked */
    vi32 least = v_set_i32(0);
    for (size_t r = 0; r < BLOCK; r++, w += 2 * AMX_ROW, to += AMX_ROW) {
        __builtin_prefetch(w + SPLIT_AHEAD);
        __builtin_prefetch(w + SPLIT_AHEAD + AMX_ROW);
        V_FOR(j, left, BLOCK,
              amx_split(channels(w, j, left), channels(w + AMX_ROW, j, left), PIECES,
                        (int32_t *)(void *)to + j, TILE_BYTES / 4, &most, &least););
    }
}

/* Six products of pieces (gemm/amx_pieces.h). Weights are split a tap ahead of the products that read them:
 * so it goes on beside those before, and is in L1 by then. */
INLINE void sum_pieces(const int two_a, const int two_b, const ortc_tiled_tile *t)
{
    const char *w = t->w, *v = w + t->w_block, *x = t->x, *plain = t->plain, *next = t->next;
    size_t left = plain ? t->groups * t->taps : 0;
    const size_t lines = t->next_lines, second = t->half * AMX_ROW;
    char *to = (char *)(uintptr_t)w;
    start(two_a, two_b, t);
#define SPLIT() \
    do { \
        split(plain, to); \
        if (two_b) split(plain + ORTC_TILED_PLAIN_BYTES, to + t->w_block); \
        plain += t->plain_step, to += t->w_step; \
    } while (0)
    if (left) SPLIT();
#define LOAD_A(r, p) AMX_LOAD(r, a + (p)*t->piece + ((r) == 5 ? second : 0), AMX_ROW)
#define LOAD_B(r, p) AMX_LOAD(r, ((r) == 7 ? v : w) + (p)*TILE_BYTES, AMX_ROW)
#define AHEAD(step) /* of 24 */ \
    do { \
        __builtin_prefetch(w + ORTC_TILED_AHEAD + (step)*128); \
        __builtin_prefetch(w + ORTC_TILED_AHEAD + (step)*128 + 64); \
        if (two_b) __builtin_prefetch(v + ORTC_TILED_AHEAD + (step)*128); \
        if (two_b) __builtin_prefetch(v + ORTC_TILED_AHEAD + (step)*128 + 64); \
        if ((step)*3 < lines) \
            for (size_t i = 0; i < 3; i++, next += 64) __builtin_prefetch(next, 0, 2); /* into L2 */ \
    } while (0)
    for (size_t g = 0; g < t->groups; g++, x += t->group)
        for (size_t tap = 0; tap < t->taps; tap++, w += t->w_step, v += t->w_step) {
            const char *a = x + t->offset[tap] * 4;
            if (left && --left) SPLIT();
            AMX_SIX_OF_PIECES();
        }
#undef SPLIT
#undef LOAD_A
#undef LOAD_B
#undef AHEAD
    store(two_a, two_b, t);
}

#define RUN(kind) \
    static void run_##kind(int halves, int blocks, const ortc_tiled_tile *t) \
    { \
        if (halves == 2 && blocks == 2) \
            sum_##kind(1, 1, t); \
        else if (halves == 2) \
            sum_##kind(1, 0, t); \
        else if (blocks == 2) \
            sum_##kind(0, 1, t); \
        else \
            sum_##kind(0, 0, t); \
    }
RUN(bf16_ahead)
RUN(bf16_alone)
static void run_bf16(int halves, int blocks, const ortc_tiled_tile *t)
{
    if (t->next_lines)
        run_bf16_ahead(halves, blocks, t);
    else
        run_bf16_alone(halves, blocks, t);
}
RUN(pieces)
RUN(two_bytes)
static void run_bytes(int halves, int blocks, const ortc_tiled_tile *t)
{
    if (halves == 4)
        sum_long_bytes(t);
    else
        run_two_bytes(halves, blocks, t);
}

/* ---- Laying out ---------------------------------------------------------------------------------------- */

#ifdef __AVX512F__
VFN vu32 v_max_u32(vu32 a, vu32 b) { return (vu32)_mm512_max_epu32((__m512i)a, (__m512i)b); }
VFN vu32 v_min_u32(vu32 a, vu32 b) { return (vu32)_mm512_min_epu32((__m512i)a, (__m512i)b); }
#else
VFN vu32 v_max_u32(vu32 a, vu32 b) { return (vu32)v_sel_i32(v_lt_u32(a, b), (vi32)b, (vi32)a); }
VFN vu32 v_min_u32(vu32 a, vu32 b) { return (vu32)v_sel_i32(v_lt_u32(a, b), (vi32)a, (vi32)b); }
#endif

#ifdef __AVX512F__
VFN __m512i both_bf16(vf32 low, vf32 high)
{
    __m512i both;
    __asm__("vcvtne2ps2bf16 %2, %1, %0" : "=v"(both) : "v"(high), "v"(low)); /* every AMX comes with it */
    return both;
}
#endif

static int lay_rounded(size_t n, const char *x, size_t step, size_t block, size_t blocks, int flip, char *y,
                       size_t piece)
{
    (void)flip, (void)piece;
    for (size_t i = 0; i < n; i++, x += step, y += AMX_ROW) {
#ifdef __AVX512F__
        _mm512_storeu_si512(y, both_bf16(channels(x, 0, BLOCK),
                                         blocks > 1 ? channels(x + block, 0, BLOCK) : v_set_f32(0)));
#else
        uint16_t *h = (uint16_t *)(void *)y;
        memset(y, 0, AMX_ROW);
        for (size_t b = 0; b < blocks; b++)
            V_FOR(j, left, BLOCK, v_store_bf16(h + b * BLOCK + j, channels(x + b * block, j, left), left););
#endif
    }
    return 0;
}

/* The same times those of 16 factors; NULL: as they are. */
VFN vf32 scaled(const char *x, const float *factor, size_t i, size_t n)
{
    const vf32 v = channels(x, i, n);
    return factor ? v_mul(v, v_load_f32(factor + i, n)) : v;
}

/* Whether a pixel has numbers other than 0, and none that is large (ORTC_PIECES_LARGEST). */
static int lacks_large(size_t n, const char *x, size_t step, size_t block, size_t blocks, const float *factor)
{
    const vi32 sign = v_set_i32(INT32_MAX);
    for (size_t i = 0; i < n; i++, x += step) {
        vu32 most = v_set_u32(0);
        for (size_t b = 0; b < blocks; b++)
            V_FOR(j, left, BLOCK, {
                const float *f = factor ? factor + b * BLOCK : NULL;
                most = v_max_u32(most, (vu32)(v_bits_f32(scaled(x + b * block, f, j, left)) & sign));
            });
        if (v_any(v_lt_u32(v_set_u32(0), most)) && !v_any(v_lt_u32(v_set_u32(ORTC_PIECES_LARGEST - 1), most)))
            return 1;
    }
    return 0;
}

/* Channels of both blocks in turn, 0, 16, 1, 17, .. */
static int lay_scaled(size_t n, const char *x, size_t step, size_t block, size_t blocks, const float *factor,
                      char *y, size_t piece)
{
    vi32 most = PIECES_MOST;
    vi32 least = PIECES_LEAST;
    for (size_t i = 0; i < n; i++) {
        const char *from = x + i * step;
        char *to = y + i * AMX_ROW;
        V_FOR(j, left, BLOCK, {
            vf32 other = v_set_f32(0);
            if (blocks > 1) other = scaled(from + block, factor ? factor + BLOCK : NULL, j, left);
            amx_split(scaled(from, factor, j, left), other, PIECES, (int32_t *)(void *)to + j, piece / 4,
                      &most, &least);
        });
    }
    if (pieces_are_beyond(most, least)) return 1;
    return pieces_fall_below(least, ORTC_PIECES_LARGEST >> 16) &&
           lacks_large(n, x, step, block, blocks, factor);
}
static int lay_pieces(size_t n, const char *x, size_t step, size_t block, size_t blocks, int flip, char *y,
                      size_t piece)
{
    (void)flip;
    return lay_scaled(n, x, step, block, blocks, NULL, y, piece);
}

/* Only the largest number of all points counts: what the unit loses of others is far below their error. */
static int cut(size_t n, const float *x, const float *other, char *y, size_t step, size_t piece)
{
    vi32 most = PIECES_MOST;
    vi32 least = PIECES_LEAST;
    for (size_t i = 0; i < n; i++, x += BLOCK, other += BLOCK, y += step)
        V_FOR(j, left, BLOCK,
              amx_split(v_load_f32(x + j, left), v_load_f32(other + j, left), PIECES,
                        (int32_t *)(void *)y + j, piece / 4, &most, &least););
    return pieces_reach(most, ORTC_PIECES_BEYOND >> 16) ||
           (pieces_reach(most, 1) && !pieces_reach(most, ORTC_PIECES_LARGEST >> 16));
}

typedef uint32_t sixteen __attribute__((vector_size(16)));

/* A pixel's blocks of `bytes`, moved by `flip`. */
INLINE void lay_pixel(const size_t bytes, const char *x, size_t block, const size_t blocks, uint32_t flip,
                      char *y)
{
    for (size_t b = 0; b < blocks; b++) UNROLL for (size_t k = 0; k < bytes; k += sizeof(sixteen))
        {
            sixteen v;
            memcpy(&v, x + b * block + k, sizeof v);
            v ^= flip;
            memcpy(y + b * bytes + k, &v, sizeof v);
        }
}

/* What is missing in the last group is 0. */
INLINE int lay_same(const size_t bytes, size_t n, const char *x, size_t step, size_t block, size_t blocks,
                    uint32_t flip, char *y)
{
    const size_t all = AMX_ROW / bytes;
    if (blocks == all) {
        for (size_t i = 0; i < n; i++, x += step, y += AMX_ROW) lay_pixel(bytes, x, block, all, flip, y);
        return 0;
    }
    memset(y, 0, n * AMX_ROW);
    for (size_t i = 0; i < n; i++, x += step, y += AMX_ROW) lay_pixel(bytes, x, block, blocks, flip, y);
    return 0;
}

static int lay_bf16(size_t n, const char *x, size_t step, size_t block, size_t blocks, int flip, char *y,
                    size_t piece)
{
    (void)flip, (void)piece;
#ifdef __AVX512F__
    for (size_t i = 0; blocks == 1 && i < n; i++, x += step, y += AMX_ROW)
        _mm512_storeu_si512(y, _mm512_zextsi256_si512(_mm256_loadu_si256((const __m256i *)(const void *)x)));
    for (size_t i = 0; blocks > 1 && i < n; i++, x += step, y += AMX_ROW) {
        const __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)x),
                      high = _mm256_loadu_si256((const __m256i *)(const void *)(x + block));
        _mm512_storeu_si512(y, _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1));
    }
    return 0;
#else
    return lay_same(BLOCK * 2, n, x, step, block, blocks, 0, y);
#endif
}
static int lay_bytes(size_t n, const char *x, size_t step, size_t block, size_t blocks, int flip, char *y,
                     size_t piece)
{
    (void)piece;
    return lay_same(BLOCK, n, x, step, block, blocks, flip ? 0x80808080 : 0, y);
}

/* Channel c of pixels from i on, as the upper half of words; rounded or as it is. */
VFN vi32 stem_channel(const int type, const char *x, size_t plane, size_t channels, size_t c, size_t i,
                      size_t n)
{
    if (c >= channels) return v_set_i32(0);
    x += c * plane;
    if (type == ORTC_TILED_ROUNDED) {
        const vf32 v = v_load_f32((const float *)(const void *)x + i, n);
        const vi32 b = v_bits_f32(v);
        return v_sel_i32(v_is_nan(v), b | v_set_i32(0x400000),
                         (vi32)((vu32)b + 0x7fff + (((vu32)b >> 16) & 1))) &
               v_set_i32((int32_t)0xffff0000);
    }
    return (vi32)((vu32)v_load_u16((const uint16_t *)(const void *)x + i, n) << 16);
}

/* Words of both, in turn, to y: 2 n of them. */
VFN void store_in_turn(vi32 a, vi32 b, size_t n, char *y)
{
#ifdef __AVX512F__
    const __m512i first = _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0),
                  low = _mm512_permutex2var_epi32((__m512i)a, first, (__m512i)b),
                  high = _mm512_permutex2var_epi32((__m512i)a, _mm512_add_epi32(first, _mm512_set1_epi32(8)),
                                                   (__m512i)b);
    if (n >= BLOCK) {
        _mm512_storeu_si512(y, low);
        _mm512_storeu_si512(y + 64, high);
        return;
    }
    _mm512_mask_storeu_epi64(y, (__mmask8)((1u << n) - 1), low);
    _mm512_mask_storeu_epi64(y + 64, (__mmask8)(n > 8 ? (1u << (n - 8)) - 1 : 0), high);
#else
    int32_t words[2][BLOCK], both[2 * BLOCK];
    v_store_i32(words[0], a, v_lanes());
    v_store_i32(words[1], b, v_lanes());
    for (size_t k = 0; k < v_lanes(); k++) both[2 * k] = words[0][k], both[2 * k + 1] = words[1][k];
    memcpy(y, both, 8 * (n < v_lanes() ? n : v_lanes()));
#endif
}

VFN int lay_stem(const int type, size_t n, const char *x, size_t plane, size_t channels, char *y)
{
    vm32 odd = v_lt_i32(v_set_i32(0), v_set_i32(0));
    V_FOR(i, left, n, {
        vi32 word[2];
        for (size_t k = 0; k < 2; k++) {
            const vi32 a = stem_channel(type, x, plane, channels, 2 * k, i, left),
                       b = stem_channel(type, x, plane, channels, 2 * k + 1, i, left);
            const vi32 most = v_set_i32(0x7f800000);
            odd = v_or(odd, v_or(v_eq_i32(a & most, most), v_eq_i32(b & most, most)));
            word[k] = (vi32)((vu32)a >> 16) | b;
        }
        store_in_turn(word[0], word[1], left, y + 8 * i);
    });
    return v_any(odd);
}

static int lay_stem_bf16(size_t n, const char *x, size_t plane, size_t channels, int flip, char *y)
{
    (void)flip;
    return lay_stem(ORTC_TILED_BF16, n, x, plane, channels, y);
}
static int lay_stem_rounded(size_t n, const char *x, size_t plane, size_t channels, int flip, char *y)
{
    (void)flip;
    return lay_stem(ORTC_TILED_ROUNDED, n, x, plane, channels, y);
}
static int lay_stem_bytes(size_t n, const char *x, size_t plane, size_t channels, int flip, char *y)
{
    V_FOR(i, left, n, {
        vi32 word = v_set_i32(flip ? (int32_t)0x80808080 : 0);
        for (size_t c = 0; c < channels; c++)
            word = word ^ (vi32)((vu32)v_load_u8((const uint8_t *)x + c * plane + i, left) << (8 * c));
        v_store_i32((int32_t *)(void *)y + i, word, left);
    });
    return 0;
}

static void clip(size_t n, const float *sums, const float *residual, float lo, float hi, float *y)
{
    const vf32 low = v_set_f32(lo);
    const vf32 high = v_set_f32(hi);
    V_FOR(i, left, n, {
        vf32 v = v_load_f32(sums + i, left);
        if (residual) v = v_add(v, v_load_f32(residual + i, left));
        v_store_f32(y + i, v_min(high, v_max(low, v)), left); /* v second: a NaN stays */
    });
}

VFN void clip_bf16_at(const float *sums, const uint16_t *residual, vf32 low, vf32 high, uint16_t *y, size_t n)
{
    vf32 v = v_load_f32(sums, n);
    if (residual) v = v_add(v, v_load_bf16(residual, n));
    amx_store_bf16(y, v_min(high, v_max(low, v)), n);
}

/* Whole lines of cache, once one begins: what is behind L2 is written with half as many stores. Returns how
 * many numbers are done. above: `high` is less than infinity. */
INLINE size_t clip_lines(const int adds, const int above, size_t n, const float *sums, const uint16_t *r,
                         vf32 low, vf32 high, uint16_t *y)
{
    size_t done = 0;
#ifdef __AVX512F__
    if (n >= BLOCK && (uintptr_t)y % 64) {
        clip_bf16_at(sums, r, low, high, y, BLOCK);
        done = BLOCK;
    }
    for (; n - done >= 2 * BLOCK; done += 2 * BLOCK) {
        vf32 a = v_load_f32(sums + done, BLOCK);
        vf32 b = v_load_f32(sums + done + BLOCK, BLOCK);
        if (adds)
            a = v_add(a, v_load_bf16(r + done, BLOCK)), b = v_add(b, v_load_bf16(r + done + BLOCK, BLOCK));
        a = v_max(low, a), b = v_max(low, b);
        if (above) a = v_min(high, a), b = v_min(high, b);
        _mm512_storeu_si512(y + done, both_bf16(a, b));
    }
#endif
    return done;
}

static void clip_bf16(size_t n, const float *sums, const void *residual, float lo, float hi, void *y)
{
    const vf32 low = v_set_f32(lo);
    const vf32 high = v_set_f32(hi);
    const uint16_t *r = residual;
    uint16_t *to = y;
    const int above = hi < INFINITY;
    size_t done;
    if (r)
        done = above ? clip_lines(1, 1, n, sums, r, low, high, to)
                     : clip_lines(1, 0, n, sums, r, low, high, to);
    else
        done = above ? clip_lines(0, 1, n, sums, r, low, high, to)
                     : clip_lines(0, 0, n, sums, r, low, high, to);
    V_FOR(i, left, n - done,
          clip_bf16_at(sums + done + i, r ? r + done + i : NULL, low, high, to + done + i, left););
}

extern const ortc_tiled_uk TILED_UK;
const ortc_tiled_uk TILED_UK = {begin,
                                end,
                                {run_bf16, run_bf16, run_pieces, run_pieces, run_bytes},
                                {lay_bf16, lay_rounded, lay_pieces, lay_pieces, lay_bytes},
                                lay_scaled,
                                {lay_stem_bf16, lay_stem_rounded, NULL, NULL, lay_stem_bytes},
                                cut,
                                clip,
                                clip_bf16};
