/* Convolution over blocks of channels (blocked_uk.h), a body for every instruction set. Like all register
 * tiles it knows its lanes: a block is 16 / LANES vectors.
 *
 * Tiles are as large as the registers let them be, since each step reads one broadcast for every pixel and a
 * vector of weights for every sum that a pixel has: AVX-512 14 pixels x 2 blocks (28 sums, 2 + 1 others of
 * 32; a step is 28 FMAs for 16 loads; 28 x 1 gains nothing), AVX2 6 x 1 (12 sums and 2 + 1 others, of 16),
 * NEON 6 x 1 (24 of 32), plain vectors of 16 bytes 2 x 1 (8 of 16). A last block of 8 channels or less has
 * half of the vectors, so twice the pixels, where one vector is not a block. Every number of pixels gets its
 * own copy, which is what the compiler makes of one inline function with constant arguments.
 */
#include <assert.h>

#include "blocked_uk.h"
#include "kernels/common/vector/tile.h"
#include "kernels/gemm/product_uk.h"

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif

/* clang-format off */
#define UP_TO_2(X, ...) X(1, __VA_ARGS__) X(2, __VA_ARGS__)
#define UP_TO_4(X, ...) UP_TO_2(X, __VA_ARGS__) X(3, __VA_ARGS__) X(4, __VA_ARGS__)
#define UP_TO_6(X, ...) UP_TO_4(X, __VA_ARGS__) X(5, __VA_ARGS__) X(6, __VA_ARGS__)
#define UP_TO_8(X, ...) UP_TO_6(X, __VA_ARGS__) X(7, __VA_ARGS__) X(8, __VA_ARGS__)
#define UP_TO_12(X, ...) UP_TO_8(X, __VA_ARGS__) X(9, __VA_ARGS__) X(10, __VA_ARGS__) X(11, __VA_ARGS__) \
    X(12, __VA_ARGS__)
#define UP_TO_14(X, ...) UP_TO_12(X, __VA_ARGS__) X(13, __VA_ARGS__) X(14, __VA_ARGS__)
/* clang-format on */
/* Of a tile: pixels at most, blocks at most, channels at a time; of a depthwise strip: pixels, and of one
 * that slides (sums that are 8 at most wait for each other). */
#if defined(__AVX512F__)
#define PIXELS 14
#define EACH UP_TO_14
#define BLOCKS 2
#define STEPS 2
#define STRIP 8
#define SLIDE 14
#define EACH_SLIDE(X) X(3, 1) X(3, 2) X(5, 1) X(5, 2) X(7, 1)
#elif defined(__AVX2__) || defined(__ARM_NEON)
#define PIXELS 6
#define EACH UP_TO_6
#define BLOCKS 1
#define STEPS 4
#define HALF_PIXELS 12
#define EACH_HALF UP_TO_12
#define STRIP 4
#define SLIDE 4
#define EACH_SLIDE(X) X(3, 1) X(3, 2) X(5, 1)
#else
#define PIXELS 2
#define EACH UP_TO_2
#define BLOCKS 1
#define STEPS 2
#define STRIP 2
#define SLIDE 2
#define EACH_SLIDE(X)
#endif
#define VECTORS (ORTC_BLOCK / LANES) /* of a block */
#ifdef HALF_PIXELS
#define MOST_PIXELS HALF_PIXELS
#else
#define HALF_PIXELS 0
#define MOST_PIXELS PIXELS
#endif

enum { F32, F16, BF16 }; /* as ORTC_FLOAT_* of convert.h */

VFN vf32 load(const int type, const char *p)
{
    if (type == F16) return v_load_f16((const uint16_t *)(const void *)p, LANES);
    if (type == BF16) return v_load_bf16((const uint16_t *)(const void *)p, LANES);
    return v_load_f32((const float *)(const void *)p, LANES);
}

/* v second: max and min return their second operand when one is NaN. */
VFN vf32 activate(vf32 v, int32_t act, vf32 lo, vf32 hi)
{
    if (act == ORTC_UK_ACT_CLIP) return v_min(hi, v_max(lo, v));
    if (act == ORTC_UK_ACT_LEAKY) return v_sel(v_lt(v, v_set_f32(0)), v_mul(v, lo), v);
    return v;
}

/* Applies `op` to every sum; b, p, j (block, pixel, vector) and v (an lvalue) are in scope. */
#define EACH_SUM(...) \
    UNROLL for (int b = 0; b < nb; b++) \
    { \
        UNROLL for (int p = 0; p < np; p++) \
        { \
            UNROLL for (int j = 0; j < vectors; j++) \
            { \
                vf32 v = sum[b][p][j]; \
                __VA_ARGS__; \
                sum[b][p][j] = v; \
            } \
        } \
    }
#define AT(base, stride) ((base) + (size_t)b * (stride) + p * ORTC_BLOCK + j * LANES)

/* In place and in this order: gcc moves sums from register to register, and loads more at once than there are
 * registers for. */
#if defined(__AVX2__)
#define ADD(w, x, sum) __asm__ volatile("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(w), "v"(x))
#else
#define ADD(w, x, sum) ((sum) = v_fma(w, x, sum))
#endif

/* A channel of input, at s for pixel 0. wide: of weights of 16 bits, where they go as f32, or NULL. */
VFN void channel(const int type, const int vectors, const int np, const int nb, const size_t step,
                 const float *s, const char *w, size_t w_block, float *wide, size_t wide_block,
                 vf32 (*sum)[MOST_PIXELS][VECTORS])
{
    const size_t size = type == F32 ? 4 : 2;
    vf32 wv[BLOCKS][VECTORS];
    UNROLL for (int b = 0; b < nb; b++)
    {
        UNROLL for (int j = 0; j < vectors; j++)
            wv[b][j] = load(type, w + ((size_t)b * w_block + j * LANES) * size);
    }
    if (type != F32 && wide) UNROLL for (int b = 0; b < nb; b++)
        {
            UNROLL for (int j = 0; j < vectors; j++)
                v_store_f32(wide + (size_t)b * wide_block + j * LANES, wv[b][j], LANES);
        }
    UNROLL for (int p = 0; p < np; p++)
    {
        const vf32 xv = v_set_f32(ortc_uk_load_f32(s + p * step));
        UNROLL for (int b = 0; b < nb; b++)
        {
            UNROLL for (int j = 0; j < vectors; j++) ADD(wv[b][j], xv, sum[b][p][j]);
        }
    }
}

/* half: of the block's vectors. some: of the taps, which have jumps; only these may be far. All ask for
 * the next group's pixels, which L1 does not hold yet: a core looks some steps ahead. */
VFN void tile(const int type, const int stem, const int half, const int some, const int np, const int nb,
              const ortc_blocked_tile *t)
{
    const size_t size = type == F32 ? 4 : 2, step = stem ? 1 : ORTC_BLOCK;
    const int vectors = half ? VECTORS / 2 : VECTORS;
    vf32 sum[BLOCKS][MOST_PIXELS][VECTORS];
    if (t->bias)
        EACH_SUM(v = v_load_f32(t->bias + b * ORTC_BLOCK + j * LANES, LANES))
    else
        EACH_SUM(v = v_load_f32(AT(t->y, t->y_block), LANES))
    /* One loop over the taps of all groups: what begins and ends takes the place of products. There is at
     * least one: what a loop that may not run needs, compilers keep in memory. */
    const char *w = t->w, *next = t->next;
    const float *x = t->x;
    const int64_t *offset = t->offset, *jump = t->jump;
    const size_t taps = t->taps, lines = stem ? 0 : t->next_lines,
                 narrow = t->depth < ORTC_BLOCK ? taps : 0; /* of the last group */
    size_t tap = 0, left = t->groups * taps;
    const int far = t->far;
    float *wide = type == F32 ? NULL : t->wide;
    const size_t wide_block = t->wide_block, wide_step = wide ? ORTC_BLOCK : 0;
    do {
        const float *s = x + offset[tap];
        const char *behind = some ? w + jump[tap] : NULL;
        if (++tap == taps) tap = 0, x += t->plane;
        for (size_t i = 0; i < lines; i++, next += ORTC_BLOCKED_LINE)
            UNROLL for (int b = 0; b < nb; b++) __builtin_prefetch(next + (size_t)b * t->next_block, 0, 2);
        if (!stem && !half)
            UNROLL for (int p = 0; p < np; p++) __builtin_prefetch(s + t->plane + p * ORTC_BLOCK);
        if (some && far)
            UNROLL for (int p = 0; p < np; p++) __builtin_prefetch(s + (np + p) * ORTC_BLOCK, 0, 2);
        if (stem) {
            channel(type, vectors, np, nb, step, s, w, t->w_block, NULL, 0, sum);
            w += ORTC_BLOCK * size;
        } else if (left > narrow) {
            const float *end = s + ORTC_BLOCK;
            do {
                UNROLL for (int i = 0; i < STEPS; i++)
                    channel(type, vectors, np, nb, step, s + i, w + i * ORTC_BLOCK * size, t->w_block,
                            wide + i * wide_step, wide_block, sum);
                s += STEPS, w += STEPS * ORTC_BLOCK * size, wide += STEPS * wide_step;
            } while (s != end);
        } else {
            for (size_t i = 0; i < t->depth; i++)
                channel(type, vectors, np, nb, step, s + i, w + i * ORTC_BLOCK * size, t->w_block,
                        wide + i * wide_step, wide_block, sum);
            w += ORTC_BLOCK * ORTC_BLOCK * size, wide += ORTC_BLOCK * wide_step;
        }
        if (some) w = behind;
    } while (--left);
    if (t->residual) EACH_SUM(v = v_add(v, v_load_f32(AT(t->residual, t->y_block), LANES)))
    if (t->clip) {
        const vf32 lo = v_set_f32(t->lo), hi = v_set_f32(t->hi);
        EACH_SUM(v = v_min(hi, v_max(lo, v))) /* v second: a NaN stays */
    }
    float *y = t->y; /* once: stores could change it, as far as compilers know */
    const size_t y_block = t->y_block;
    EACH_SUM(v_store_f32(AT(y, y_block), v, LANES))
    UNROLL for (int p = 0; p < np && half; p++)
    {
        UNROLL for (int j = vectors; j < VECTORS; j++)
            v_store_f32(y + p * ORTC_BLOCK + j * LANES, v_set_f32(0), LANES);
    }
}

enum { STEM = 1, SOME }; /* of the taps; 0: all of them */
#define TILE(np, T, how, nb) \
    static void tile_##T##_##how##_##nb##_##np(const ortc_blocked_tile *t) \
    { \
        tile(T, (how) == STEM, 0, (how) == SOME, np, nb, t); \
    }
#define ENTRY(np, T, how, nb) tile_##T##_##how##_##nb##_##np,
#if BLOCKS == 2
#define EACH_OF_2(X, ...) EACH(X, __VA_ARGS__)
#define SECOND(T, how) \
    , { EACH(ENTRY, T, how, 2) }
#else
#define EACH_OF_2(X, ...)
#define SECOND(T, how)
#endif
#define TILES(name, T, how) \
    EACH(TILE, T, how, 1) \
    EACH_OF_2(TILE, T, how, 2) \
    static void name(size_t pixels, size_t blocks, const ortc_blocked_tile *t) \
    { \
        static void (*const tiles[BLOCKS][PIXELS])(const ortc_blocked_tile *) = { \
            {EACH(ENTRY, T, how, 1)} SECOND(T, how)}; \
        assert(pixels >= 1 && pixels <= PIXELS && blocks >= 1 && blocks <= BLOCKS); \
        tiles[blocks - 1][pixels - 1](t); \
    }
TILES(dense_f32, F32, 0)
TILES(dense_f16, F16, 0)
TILES(dense_bf16, BF16, 0)
TILES(stem_f32, F32, 1)
TILES(some_f32, F32, 2)
TILES(some_f16, F16, 2)
TILES(some_bf16, BF16, 2)
#if HALF_PIXELS
#define HALF_TILE(np, stem) \
    static void half_##stem##_##np(const ortc_blocked_tile *t) { tile(F32, stem, 1, 0, np, 1, t); }
#define HALF_ENTRY(np, stem) half_##stem##_##np,
#define HALF_TILES(name, stem) \
    EACH_HALF(HALF_TILE, stem) \
    static void name(size_t pixels, size_t blocks, const ortc_blocked_tile *t) \
    { \
        static void (*const tiles[HALF_PIXELS])(const ortc_blocked_tile *) = {EACH_HALF(HALF_ENTRY, stem)}; \
        assert(pixels >= 1 && pixels <= HALF_PIXELS && blocks == 1), (void)blocks; \
        tiles[pixels - 1](t); \
    }
HALF_TILES(half_dense, 0)
HALF_TILES(half_stem, 1)
#else
#define half_dense NULL
#define half_stem NULL
#endif

/* ---- Depthwise ----------------------------------------------------------------------------------------- */

/* What is loaded is used by several products: with AVX-512, where registers are enough, compilers are not to
 * load it anew for each. */
#if defined(__AVX512F__)
#define KEEP(v) __asm__("" : "+v"(v))
#else
#define KEEP(v) (void)0
#endif

/* A block of a row of the output: its windows' lines, and where pixel 0 would be in y, in pixels. */
typedef struct window_row {
    const ortc_blocked_windows *t;
    const char *const *line;
    int64_t y, channel;
    const float *w;
} window_row;

/* Floats of a pixel: of one block a number that compilers know. */
static inline int64_t pixel_of(const int wide, const ortc_blocked_windows *t)
{
    return wide ? (int64_t)t->blocks * ORTC_BLOCK : ORTC_BLOCK;
}

VFN void begin_strip(const int np, const window_row *row, vf32 (*sum)[VECTORS])
{
    const float *bias = row->t->bias + row->channel;
    UNROLL for (int p = 0; p < np; p++)
    {
        UNROLL for (int j = 0; j < VECTORS; j++) sum[p][j] = v_load_f32(bias + j * LANES, LANES);
    }
}

/* The first n of np sums, from pixel `at` on. */
VFN void end_strip(const int wide, const int np, const window_row *row, int64_t at, int64_t n,
                   vf32 (*sum)[VECTORS])
{
    const vf32 lo = v_set_f32(row->t->lo), hi = v_set_f32(row->t->hi);
    const int64_t pixel = pixel_of(wide, row->t), to = (row->y + at) * pixel + row->channel;
    const float *residual = row->t->residual;
    float *y = row->t->y;
    if (residual) {
        UNROLL for (int p = 0; p < np; p++)
        {
            if (p >= n) break;
            UNROLL for (int j = 0; j < VECTORS; j++)
                sum[p][j] = v_add(sum[p][j], v_load_f32(residual + to + p * pixel + j * LANES, LANES));
        }
    }
    UNROLL for (int p = 0; p < np; p++)
    {
        if (p >= n) break;
        UNROLL for (int j = 0; j < VECTORS; j++) /* sums second: a NaN stays */
            v_store_f32(y + to + p * pixel + j * LANES, v_min(hi, v_max(lo, sum[p][j])), LANES);
    }
}

/* Groups of 2, 4 or 8 channels: what channel e of each of them holds, for all channels of the group. */
#if defined(__AVX512F__)
#define MOST_EACH 8
#define QUARTERS(x, how) _mm512_permute_ps(x, how)
#define HALVES(x, how) _mm512_castpd_ps(_mm512_permutex_pd(_mm512_castps_pd(x), how))
#elif defined(__AVX2__)
#define MOST_EACH 8
#define QUARTERS(x, how) (vf32) _mm256_permute_ps((__m256)(x), how)
#define HALVES(x, how) (vf32) _mm256_permute4x64_pd((__m256d)(x), how)
#else
#define MOST_EACH 1
#endif
VFN vf32 channel_of(const int each, const int e, vf32 x)
{
#if MOST_EACH > 1
    if (each == 8) x = e < 4 ? HALVES(x, 0x44) : HALVES(x, 0xee); /* 128 bits, twice */
    if (each == 2) return e == 0 ? QUARTERS(x, 0xa0) : QUARTERS(x, 0xf5);
    if (each > 2) switch (e % 4) {
        case 0: return QUARTERS(x, 0x00);
        case 1: return QUARTERS(x, 0x55);
        case 2: return QUARTERS(x, 0xaa);
        default: return QUARTERS(x, 0xff);
        }
#endif
    (void)each, (void)e;
    return x;
}

/* A strip of np pixels from `at` on: each tap is a block of weights and a load for every sum, for each of the
 * channels of a group. whole: all of them see all columns. */
VFN void strip(const int whole, const int np, const int each, const window_row *row, int64_t at)
{
    const ortc_blocked_windows *t = row->t;
    const float *w = row->w;
    vf32 sum[STRIP][VECTORS];
    begin_strip(np, row, sum);
    for (size_t l = 0; l < t->lines; l++, w += t->columns * (size_t)each * ORTC_BLOCK) {
        const char *line = row->line[l];
        if (!line) continue;
        for (size_t c = 0; c < t->columns; c++) {
            const ortc_blocked_column *column = &t->column[c];
            const char *x = line + at * t->step + column->x + row->channel * (int64_t)sizeof(float);
            vf32 wv[MOST_EACH][VECTORS];
            if (!whole && (at < column->first || at >= column->end)) continue;
            UNROLL for (int k = 0; k < each * VECTORS; k++)
            {
                const float *of = w + c * (size_t)each * ORTC_BLOCK + k * LANES;
                wv[k / VECTORS][k % VECTORS] = v_load_f32(of, LANES);
            }
            UNROLL for (int p = 0; p < np; p++)
            {
                UNROLL for (int j = 0; j < VECTORS; j++)
                {
                    const vf32 xv = load(F32, x + p * t->step + (size_t)(j * LANES) * 4);
                    UNROLL for (int e = 0; e < each; e++)
                        sum[p][j] = v_fma(wv[e][j], channel_of(each, e, xv), sum[p][j]);
                }
            }
        }
    }
    end_strip(1, np, row, at, np, sum);
}
/* n pixels, up to np, whose windows have C columns side by side, S pixels from one to the next: what they
 * read is loaded once for all. x0: where tap 0 of the first lies in the row. Only C / 2 of it on either side
 * may lie beside the image. Sums are those of `strip`, in the same order. */
VFN void slide(const int C, const int S, const int wide, const int each, const int np, const window_row *row,
               int64_t at, int64_t n, int64_t x0)
{
    const ortc_blocked_windows *t = row->t;
    const int64_t inside = t->width - x0, needed = (n - 1) * S + C, end = inside < needed ? inside : needed;
    const int64_t pixel = pixel_of(wide, t);
    const float *w = row->w;
    vf32 sum[SLIDE][VECTORS];
    begin_strip(np, row, sum);
    for (size_t l = 0; l < t->lines; l++, w += C * each * ORTC_BLOCK) {
        const float *x = (const float *)(const void *)row->line[l];
        vf32 wv[7 * MOST_EACH][VECTORS];
        if (!x) continue;
        x += x0 * pixel + row->channel;
        __asm__("" : "+r"(x)); /* one address, and not one for each pixel */
        UNROLL for (int c = 0; c < C * each; c++)
        {
            UNROLL for (int j = 0; j < VECTORS; j++)
                wv[c][j] = v_load_f32(w + c * ORTC_BLOCK + j * LANES, LANES);
        }
        UNROLL for (int i = 0; i < (np - 1) * S + C; i++)
        {
            if (i >= end) break;
            if (i < C / 2 && x0 + i < 0) continue;
            vf32 xv[VECTORS];
            UNROLL for (int j = 0; j < VECTORS; j++)
            {
                xv[j] = v_load_f32(x + i * pixel + j * LANES, LANES);
                KEEP(xv[j]);
            }
            UNROLL for (int k = 0; k < each * C; k++)
            {
                const int e = k / C, c = C - 1 - k % C, q = (i - c) / S;
                if (i < c || (i - c) % S || q >= np) continue;
                UNROLL for (int j = 0; j < VECTORS; j++)
                    sum[q][j] = v_fma(wv[c * each + e][j], channel_of(each, e, xv[j]), sum[q][j]);
            }
        }
    }
    end_strip(wide, np, row, at, n, sum);
}
#define SLIDE_OF(C, S) \
    static void slide_##C##_##S(const window_row *row, int64_t at, int64_t n, int64_t x0) \
    { \
        slide(C, S, 0, 1, SLIDE, row, at, n, x0); \
    } \
    static void wide_##C##_##S(const window_row *row, int64_t at, int64_t n, int64_t x0) \
    { \
        slide(C, S, 1, 1, SLIDE, row, at, n, x0); \
    }
#define SLIDE_ENTRY(C, S) {1, C, S, {slide_##C##_##S, wide_##C##_##S}},
EACH_SLIDE(SLIDE_OF)

/* Windows of groups. */
#if MOST_EACH > 1
#define EACH_GROUP(X) X(2, 3, 1) X(2, 3, 2) X(4, 3, 1) X(4, 3, 2) X(8, 3, 1) X(8, 3, 2)
#else
#define EACH_GROUP(X)
#endif
#define GROUP_OF(E, C, S) \
    static void group_##E##_##C##_##S(const window_row *row, int64_t at, int64_t n, int64_t x0) \
    { \
        slide(C, S, 0, E, SLIDE, row, at, n, x0); \
    }
#define GROUP_ENTRY(E, C, S) {E, C, S, {group_##E##_##C##_##S, NULL}},
EACH_GROUP(GROUP_OF)

typedef void strip_fn(const window_row *row, int64_t at, int64_t n, int64_t x0);

typedef struct slide_line {
    size_t each, columns;
    int64_t step;     /* pixels */
    strip_fn *run[2]; /* of one block, of several */
} slide_line;

/* Pixels of a strip from `at` on that goes by its columns one by one. */
static int64_t one_strip(int64_t end, const ortc_blocked_windows *t, int64_t at)
{
    const int64_t whole = at < t->first ? 0 : (t->end < end ? t->end : end) - at; /* see all columns */
    return whole >= STRIP ? STRIP : whole >= STRIP / 2 ? STRIP / 2 : 1;
}
#define BY_COLUMNS(E) \
    static void by_columns_##E(const window_row *row, int64_t at, int64_t np, int64_t x0) \
    { \
        (void)x0; \
        if (np == STRIP) \
            strip(1, STRIP, E, row, at); \
        else if (np > 1) \
            strip(1, STRIP / 2, E, row, at); \
        else \
            strip(0, 1, E, row, at); \
    }
BY_COLUMNS(1)
#if MOST_EACH > 1
BY_COLUMNS(2)
BY_COLUMNS(4)
BY_COLUMNS(8)
static strip_fn *by_columns(size_t each)
{
    return each == 8 ? by_columns_8 : each == 4 ? by_columns_4 : each == 2 ? by_columns_2 : by_columns_1;
}
#else
static strip_fn *by_columns(size_t each)
{
    (void)each;
    return by_columns_1;
}
#endif

/* A strip of all blocks. */
static void each_block(strip_fn *run, window_row *row, int64_t at, int64_t n, int64_t x0)
{
    const ortc_blocked_windows *t = row->t;
    row->w = t->w, row->channel = 0;
    for (size_t left = t->blocks;;) {
        run(row, at, n, x0);
        if (!--left) break;
        row->w += t->lines * t->columns * ORTC_BLOCK, row->channel += ORTC_BLOCK;
    }
}

/* Rows in strips, of nearly the same length where they slide. */
static void depthwise(int64_t rows, int64_t n, const ortc_blocked_windows *t)
{
    static const slide_line slides[] = {EACH_SLIDE(SLIDE_ENTRY) EACH_GROUP(GROUP_ENTRY){.columns = 0}};
    strip_fn *const by_column = by_columns(t->each);
    const int64_t pixel = pixel_of(1, t) * (int64_t)sizeof(float), step = t->stride, end = t->from + n;
    const slide_line *slide = slides;
    const ortc_blocked_column *column = t->column;
    while (slide->columns && (slide->each != t->each || slide->columns != t->columns || slide->step != step))
        slide++;
    const int beside = slide->columns && column[1].x - column[0].x == pixel;
    const int64_t half = (int64_t)t->columns / 2, first = t->left;
    for (int64_t r = 0; r < rows; r++) {
        window_row row = {t, t->line + (size_t)r * t->lines, r * n - t->from, 0, NULL};
        uint32_t left = 0; /* strips; 0: to be counted */
        for (int64_t at = t->from, np; at < end; at += np) {
            if (!left && beside) left = ((uint32_t)(end - at) + SLIDE - 1) / SLIDE;
            np = left > 0 ? ((uint32_t)(end - at) + left - 1) / left : 1;
            const int64_t x0 = first + at * step;
            if (beside && x0 >= -half && x0 + (np - 1) * step + half < t->width) {
                each_block(slide->run[t->blocks > 1], &row, at, np, x0);
                left--;
            } else {
                np = one_strip(end, t, at);
                each_block(by_column, &row, at, np, x0);
                left = 0;
            }
        }
    }
}

/* ---- Before and after ---------------------------------------------------------------------------------- */

#define MOVES(T, type) \
    static void widen_##T(size_t n, const void *from, size_t step, float *y) \
    { \
        const type *x = from; \
        for (size_t i = 0; i < n; i++, x += step, y += ORTC_BLOCK) \
            UNROLL for (int j = 0; j < VECTORS; j++) \
                v_store_f32(y + j * LANES, v_load_##T(x + j * LANES, LANES), LANES); \
    } \
    static void finish_##T(size_t n, const void *residual, int32_t act, float lo, float hi, float *y) \
    { \
        const type *r = residual; \
        const vf32 l = v_set_f32(lo), h = v_set_f32(hi); \
        V_FOR(i, left, n, { \
            vf32 v = v_load_f32(y + i, left); \
            if (r) v = v_add(v, v_load_##T(r + i, left)); \
            v_store_f32(y + i, activate(v, act, l, h), left); \
        }); \
    } \
    static void clip_##T(size_t n, const float *sums, const void *residual, float lo, float hi, void *to) \
    { \
        const type *r = residual; \
        type *y = to; \
        const vf32 l = v_set_f32(lo), h = v_set_f32(hi); \
        V_FOR(i, left, n, { \
            vf32 v = v_load_f32(sums + i, left); \
            if (r) v = v_add(v, v_load_##T(r + i, left)); \
            v_store_##T(y + i, v_min(h, v_max(l, v)), left); /* v second: a NaN stays */ \
        }); \
    } \
    static void narrow_##T(size_t n, const float *x, size_t lanes, void *to) \
    { \
        type *y = to; \
        for (size_t i = 0; i < n; i++, x += ORTC_BLOCK, y += ORTC_BLOCK) \
            UNROLL for (int j = 0; j < VECTORS; j++) \
            { \
                const size_t keep = lanes > (size_t)j * LANES ? lanes - (size_t)j * LANES : 0; \
                v_store_##T(y + j * LANES, v_keep(v_load_f32(x + j * LANES, LANES), keep, 0), LANES); \
            } \
    } \
    /* Two sums in turn: each waits for itself. */ \
    static void sum_##T(int64_t rows, int64_t n, const void *from, float *sums) \
    { \
        const type *x = from; \
        for (; rows > 0; rows--, x += n * ORTC_BLOCK, sums += ORTC_BLOCK) \
            for (int j = 0; j < ORTC_BLOCK; j += LANES) { \
                const type *at = x + j, *end = at + n * ORTC_BLOCK; \
                vf32 even = v_set_f32(0), odd = even; \
                if (n % 2) even = v_load_##T(at, LANES), at += ORTC_BLOCK; \
                for (; at < end; at += 2 * ORTC_BLOCK) { \
                    even = v_add(even, v_load_##T(at, LANES)); \
                    odd = v_add(odd, v_load_##T(at + ORTC_BLOCK, LANES)); \
                } \
                v_store_f32(sums + j, v_add(even, odd), LANES); \
            } \
    } \
    static void scale_##T(size_t rows, const void *from, const float *factor, float *y) \
    { \
        const type *x = from; \
        for (size_t i = 0; i < rows; i++, x += ORTC_BLOCK, y += ORTC_BLOCK) { \
            const vf32 f = v_set_f32(factor[i]); \
            V_FOR(k, n, ORTC_BLOCK, v_store_f32(y + k, v_mul(v_load_##T(x + k, n), f), n);); \
        } \
    }
MOVES(f32, float)
MOVES(f16, uint16_t)
MOVES(bf16, uint16_t)

static void widen_bytes(size_t count, const void *x, int is_signed, int32_t zero, float *y)
{
    const vi32 less = v_set_i32(zero);
    V_FOR(i, n, count, {
        const vi32 v = is_signed ? v_load_i8((const int8_t *)x + i, n) : v_load_u8((const uint8_t *)x + i, n);
        v_store_f32(y + i, v_f32_of_i32(v_sub(v, less)), n);
    });
}

static void to_integers(size_t count, float *sums)
{
    V_FOR(i, n, count,
          { v_store_i32((int32_t *)(void *)sums + i, v_i32_within(v_load_f32(sums + i, n)), n); });
}

const ortc_blocked_uk V_NAME(ortc_blocked_uk) = {PIXELS,
                                                 BLOCKS,
                                                 {dense_f32, dense_f16, dense_bf16},
                                                 {some_f32, some_f16, some_bf16},
                                                 stem_f32,
                                                 HALF_PIXELS,
                                                 half_dense,
                                                 half_stem,
                                                 depthwise,
                                                 MOST_EACH,
                                                 {widen_f32, widen_f16, widen_bf16},
                                                 widen_bytes,
                                                 to_integers,
                                                 {finish_f32, finish_f16, finish_bf16},
                                                 {clip_f32, clip_f16, clip_bf16},
                                                 {sum_f32, sum_f16, sum_bf16},
                                                 {scale_f32, scale_f16, scale_bf16},
                                                 {narrow_f32, narrow_f16, narrow_bf16}};
