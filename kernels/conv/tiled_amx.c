/* The micro-kernels of tiled_uk.h for AMX: 32 pixels x 2 blocks of filters are four tile registers (0 to 3), which
 * two of pixels (4, 5) and two of weights (6, 7) feed. All tiles have 16 rows: what lies behind the last pixel is
 * read and multiplied, and not used. Sums begin as rows of the bias: a tile whose rows are 0 bytes apart. */
#include "tiled_uk.h"

#include "kernels/common/vector/vec.h"
#include "kernels/gemm/amx.h"
#include "kernels/gemm/product_uk.h"

#ifndef TILED_UK /* a test has another name */
#define TILED_UK ortc_tiled_amx
#endif

enum { GROUP = 32, BLOCK = 16, PIECES = 3, TILE_BYTES = 1024 };
#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 32")

static void begin(void)
{
    amx_shape shape = {.palette = 1};
    for (int t = 0; t < 8; t++) shape.row_bytes[t] = AMX_ROW, shape.rows[t] = 16;
    AMX_CONFIG(&shape);
}
static void end(void) { AMX_RELEASE(); }

/* ---- Products ------------------------------------------------------------------------------------------ */

/* A quarter of the next weights: they are longer than L1. */
INLINE void prefetch(const char *p) { UNROLL for (size_t i = 0; i < 4; i++) __builtin_prefetch(p + i * 64); }

INLINE void start(const int two_a, const int two_b, const ortc_tiled_tile *t)
{
    const char *bias = t->bias;
    AMX_LOAD(0, bias, 0);
    if (two_a) AMX_LOAD(2, bias, 0);
    if (two_b) AMX_LOAD(1, bias + AMX_ROW, 0);
    if (two_a && two_b) AMX_LOAD(3, bias + AMX_ROW, 0);
}

INLINE void store(const int two_a, const int two_b, const ortc_tiled_tile *t)
{
    char *y = t->sums;
    AMX_STORE(0, y, AMX_ROW);
    if (two_a) AMX_STORE(2, y + TILE_BYTES, AMX_ROW);
    if (two_b) AMX_STORE(1, y + t->block, AMX_ROW);
    if (two_a && two_b) AMX_STORE(3, y + t->block + TILE_BYTES, AMX_ROW);
}

/* One product for each group and tap. */
#define ONE(name, op) \
    INLINE void name(const int two_a, const int two_b, const ortc_tiled_tile *t) \
    { \
        const char *w = t->w, *v = w + t->w_block, *x = t->x; \
        start(two_a, two_b, t); \
        for (size_t g = 0; g < t->groups; g++, x += t->group) \
            for (size_t tap = 0; tap < t->taps; tap++, w += TILE_BYTES, v += TILE_BYTES) { \
                const char *a = x + t->offset[tap] * 4; \
                AMX_LOAD(4, a, AMX_ROW); \
                AMX_LOAD(6, w, AMX_ROW); \
                AMX_TDP(op, 0, 4, 6); \
                prefetch(w + TILE_BYTES), prefetch(w + TILE_BYTES + 256); \
                if (two_b) AMX_LOAD(7, v, AMX_ROW); \
                if (two_b) AMX_TDP(op, 1, 4, 7); \
                prefetch(w + TILE_BYTES + 512), prefetch(w + TILE_BYTES + 768); \
                if (two_a) AMX_LOAD(5, a + TILE_BYTES, AMX_ROW); \
                if (two_a) AMX_TDP(op, 2, 5, 6); \
                if (two_b) prefetch(v + TILE_BYTES), prefetch(v + TILE_BYTES + 256); \
                if (two_a && two_b) AMX_TDP(op, 3, 5, 7); \
                if (two_b) prefetch(v + TILE_BYTES + 512), prefetch(v + TILE_BYTES + 768); \
            } \
        store(two_a, two_b, t); \
    }
ONE(sum_bf16, bf16ps)
ONE(sum_bytes, busd)

/* Six, smallest first, of pieces (x, w) 02, 01, 11, 10, 20, 00: one new operand each, which is loaded between
 * products that do not read it. */
INLINE void sum_pieces(const int two_a, const int two_b, const ortc_tiled_tile *t)
{
    const char *w = t->w, *v = w + t->w_block, *x = t->x;
    start(two_a, two_b, t);
#define LOAD_A(r, p) AMX_LOAD(r, a + (p)*t->piece + ((r) == 5 ? TILE_BYTES : 0), AMX_ROW)
#define LOAD_B(r, p) AMX_LOAD(r, ((r) == 7 ? v : w) + (p)*TILE_BYTES, AMX_ROW)
#define AHEAD(step) \
    do { \
        prefetch(w + (PIECES + (step) / 4) * TILE_BYTES + (step) % 4 * 256); \
        if (two_b) prefetch(v + (PIECES + (step) / 4) * TILE_BYTES + (step) % 4 * 256); \
    } while (0)
/* the four products of two pieces, by columns; by rows */
#define BY_COLUMNS(at, then6, then7) \
    do { \
        AMX_TDP(bf16ps, 0, 4, 6); \
        AHEAD(at); \
        if (two_a) AMX_TDP(bf16ps, 2, 5, 6); \
        then6; \
        if (two_b) AMX_TDP(bf16ps, 1, 4, 7); \
        AHEAD(at + 1); \
        if (two_a && two_b) AMX_TDP(bf16ps, 3, 5, 7); \
        if (two_b) then7; \
    } while (0)
#define BY_ROWS(at, then4, then5) \
    do { \
        AMX_TDP(bf16ps, 0, 4, 6); \
        AHEAD(at); \
        if (two_b) AMX_TDP(bf16ps, 1, 4, 7); \
        then4; \
        if (two_a) AMX_TDP(bf16ps, 2, 5, 6); \
        AHEAD(at + 1); \
        if (two_a && two_b) AMX_TDP(bf16ps, 3, 5, 7); \
        if (two_a) then5; \
    } while (0)
    for (size_t g = 0; g < t->groups; g++, x += t->group)
        for (size_t tap = 0; tap < t->taps; tap++, w += PIECES * TILE_BYTES, v += PIECES * TILE_BYTES) {
            const char *a = x + t->offset[tap] * 4;
            LOAD_A(4, 0);
            LOAD_B(6, 2);
            if (two_a) LOAD_A(5, 0);
            if (two_b) LOAD_B(7, 2);
            BY_COLUMNS(0, LOAD_B(6, 1), LOAD_B(7, 1)); /* 02 */
            BY_ROWS(2, LOAD_A(4, 1), LOAD_A(5, 1));    /* 01 */
            BY_COLUMNS(4, LOAD_B(6, 0), LOAD_B(7, 0)); /* 11 */
            BY_ROWS(6, LOAD_A(4, 2), LOAD_A(5, 2));    /* 10 */
            BY_ROWS(8, LOAD_A(4, 0), LOAD_A(5, 0));    /* 20 */
            BY_ROWS(10, (void)0, (void)0);             /* 00 */
        }
#undef LOAD_A
#undef LOAD_B
#undef AHEAD
#undef BY_COLUMNS
#undef BY_ROWS
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
RUN(bf16)
RUN(bytes)
RUN(pieces)

/* ---- Laying out ---------------------------------------------------------------------------------------- */

/* Rounded to bf16, which is the upper half; NaN stays one. */
VFN vi32 rounded(vf32 v)
{
    const vi32 x = v_bits_f32(v), upper = v_set_i32((int32_t)0xffff0000);
    const vi32 up = (vi32)((vu32)x + 0x7fff + (((vu32)x >> 16) & 1));
    return v_sel_i32(v_is_nan(v), x | v_set_i32(0x400000), up) & upper;
}

/* Pieces of a block of each pixel, and whether something is none. */
VFN int lay_floats(const size_t planes, size_t n, const char *x, size_t step, size_t block, size_t blocks,
                   char *y, size_t piece)
{
    const vu32 least = v_set_u32(ORTC_PIECES_LEAST), span = v_set_u32(ORTC_PIECES_BEYOND - ORTC_PIECES_LEAST);
    const vi32 zero = v_set_i32(0);
    vi32 bad = zero;
    for (size_t i = 0; i < n; i++, x += step, y += AMX_ROW) {
        vi32 largest = zero;
        for (size_t b = 0; b < 2; b++)
            V_FOR(j, left, BLOCK, {
                vf32 v = v_set_f32(0);
                if (b < blocks) v = v_load_f32((const float *)(const void *)(x + b * block) + j, left);
                if (planes > 1) {
                    const vi32 magnitude = v_bits_f32(v) & v_set_i32(INT32_MAX);
                    const vm32 held = v_or(v_lt_u32((vu32)magnitude - least, span),
                                           v_eq_i32(magnitude, zero));
                    bad = v_sel_i32(held, bad, v_set_i32(1));
                    largest = v_max_i32(largest, magnitude);
                }
                for (size_t p = 0; p < planes; p++) {
                    const vi32 part = rounded(v);
                    v_store_u16((uint16_t *)(void *)(y + p * piece) + b * BLOCK + j, (vi32)((vu32)part >> 16),
                                left);
                    v = v_sub(v, v_f32_bits(part));
                }
            });
        if (planes > 1) { /* no lane is enough, and one is not 0 */
            const vm32 enough = v_lt_i32(v_set_i32(ORTC_PIECES_LARGEST - 1), largest);
            if (!v_any(enough) && v_any(v_lt_i32(zero, largest))) bad = v_set_i32(1);
        }
    }
    return v_any(v_lt_i32(zero, bad));
}

static int lay_rounded(size_t n, const char *x, size_t step, size_t block, size_t blocks, int flip, char *y,
                       size_t piece)
{
    (void)flip;
    return lay_floats(1, n, x, step, block, blocks, y, piece);
}
static int lay_pieces(size_t n, const char *x, size_t step, size_t block, size_t blocks, int flip, char *y,
                      size_t piece)
{
    (void)flip;
    return lay_floats(PIECES, n, x, step, block, blocks, y, piece);
}

/* Blocks of `bytes` as they are. */
VFN int lay_same(const size_t bytes, size_t n, const char *x, size_t step, size_t block, size_t blocks,
                 uint32_t flip, char *y)
{
    for (size_t i = 0; i < n; i++, x += step, y += AMX_ROW)
        for (size_t b = 0; b < AMX_ROW / bytes; b++) {
            uint32_t words[BLOCK] = {0};
            if (b < blocks) memcpy(words, x + b * block, bytes);
            for (size_t k = 0; flip && b < blocks && k < bytes / 4; k++) words[k] ^= flip;
            memcpy(y + b * bytes, words, bytes);
        }
    return 0;
}

static int lay_bf16(size_t n, const char *x, size_t step, size_t block, size_t blocks, int flip, char *y,
                    size_t piece)
{
    (void)flip, (void)piece;
    return lay_same(BLOCK * 2, n, x, step, block, blocks, 0, y);
}
static int lay_bytes(size_t n, const char *x, size_t step, size_t block, size_t blocks, int flip, char *y,
                     size_t piece)
{
    (void)piece;
    return lay_same(BLOCK, n, x, step, block, blocks, flip ? 0x80808080 : 0, y);
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

extern const ortc_tiled_uk TILED_UK;
const ortc_tiled_uk TILED_UK = {begin,
                                end,
                                {run_bf16, run_bf16, run_pieces, run_bytes},
                                {lay_bf16, lay_rounded, lay_pieces, lay_bytes},
                                clip};
