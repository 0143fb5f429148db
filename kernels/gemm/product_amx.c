/* Micro-kernels for AMX: a tile of 32 x 32 sums is four tile registers (0 to 3), which two registers of A (4,
 * 5) and two of B (6, 7) feed: bytes of any signs, exactly; bf16; f16 as two pieces of bf16 each, whose four
 * products are exact; and f32 as three pieces, whose six largest products are added up: nothing above 2^-21
 * of |ab| is left out. Sums of 32 products are added to a sum at a time, so the error is below that of fused
 * multiply-adds.
 *
 * Pieces of a constant B would be one and a half times its bytes (of f16 twice), which memory gives slowly:
 * it lies as it is, and the first block of rows over a panel makes pieces of it in L2 (amx_split.h) between
 * its products, where vectors have nothing else to do; blocks behind it find them.
 *
 * The unit flushes denormals, and infinity times a piece of the other sign is NaN. So a panel of A with an
 * element that pieces do not hold (product_uk.h) lies as f32, one of B is found when pieces are made of it,
 * and tiles that either is part of are multiplied by the instruction set's own tile of f32, from A's pieces
 * put together again where it has them.
 *
 * A thread's tiles are configured for the rows of a block when those differ from the last one's, from a
 * task's begin to its end, which releases them: otherwise every switch to another thread would save them.
 */
#include "product_uk.h"

#include <assert.h>

#include "amx.h"
#include "amx_bf16.h"
#include "amx_pieces.h"
#include "amx_split.h"
#include "kernels/common/vector/vec.h"

#ifndef AMX_NAME /* a test has names of its own, and another tile of f32 */
#define AMX_NAME(types) ortc_uk_product_##types##_32x32_amx
#define AMX_BEGIN ortc_amx_begin
#define AMX_END ortc_amx_end
#define AMX_F32_TILE ortc_uk_product_f32_f32_14x32_avx512
#define AMX_F32_MR 14
#define AMX_F32_NR 32
#endif

#define SIDE 32 /* rows and columns of a tile of sums */
#define HALF 16
#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 32")

/* ---- Tasks --------------------------------------------------------------------------------------------- */

static _Thread_local size_t configured; /* rows of a block; 0: nothing is */

void AMX_BEGIN(void);
void AMX_END(void);
void AMX_BEGIN(void) { configured = 0; }
void AMX_END(void)
{
    if (configured) AMX_RELEASE();
    configured = 0;
}

static void configure(size_t rows)
{
    const uint8_t low = (uint8_t)(rows < HALF ? rows : HALF), high = (uint8_t)(rows > HALF ? rows - HALF : 1);
    amx_shape shape = {.palette = 1, .rows = {low, low, high, high, low, high, HALF, HALF}};
    for (int t = 0; t < 8; t++) shape.row_bytes[t] = AMX_ROW;
    AMX_CONFIG(&shape);
    configured = rows;
}

/* ---- Products ------------------------------------------------------------------------------------------ */

/* Panels: A [group][plane][mr][64 bytes], B [group][plane][16][width][4 bytes]. */
typedef struct split split;
typedef void amx_sum(const int two_a, const int two_b, size_t mr, size_t groups, const char *a, const char *b,
                     size_t stride, split *, const ortc_uk_ahead *ahead);

/* What is asked for, some lines at each step. */
typedef struct ahead_state {
    const char *at;
    size_t left, each;
    int near;
} ahead_state;
INLINE ahead_state ahead_over(const ortc_uk_ahead *x, size_t steps)
{
    if (!x || !steps) return (ahead_state){NULL, 0, 0, 0};
    return (ahead_state){x->from, x->lines, (x->lines + steps - 1) / steps, x->near};
}
INLINE void ahead_step(ahead_state *s)
{
    for (size_t n = s->left < s->each ? s->left : s->each; n > 0; n--, s->left--, s->at += 64)
        __builtin_prefetch(s->at, 0, 2);
}

INLINE void prefetch(const char *p, size_t lines)
{
    UNROLL for (size_t i = 0; i < lines; i++) __builtin_prefetch(p + i * 64);
}

INLINE void ask(ahead_state *far, const char *next)
{
    if (!far->near) prefetch(next, 8);
    ahead_step(far);
}

/* One product a group. B's next group is asked for between them, where its panel is longer than L1. */
#define AMX_SUM(name, op) \
    INLINE void name(const int two_a, const int two_b, size_t mr, size_t groups, const char *a, \
                     const char *b, size_t stride, split *none, const ortc_uk_ahead *ahead) \
    { \
        (void)none; \
        ahead_state far = ahead_over(ahead, groups * 4); \
        for (size_t g = 0; g < groups; g++, a += mr * AMX_ROW, b += HALF * stride) { \
            AMX_LOAD(4, a, AMX_ROW); \
            AMX_LOAD(6, b, stride); \
            AMX_TDP(op, 0, 4, 6); \
            ask(&far, b + HALF * stride); \
            if (two_b) AMX_LOAD(7, b + AMX_ROW, stride); \
            if (two_b) AMX_TDP(op, 1, 4, 7); \
            ask(&far, b + HALF * stride + 512); \
            if (two_a) AMX_LOAD(5, a + HALF * AMX_ROW, AMX_ROW); \
            if (two_a) AMX_TDP(op, 2, 5, 6); \
            if (two_b) ask(&far, b + HALF * stride + 1024); \
            if (two_a && two_b) AMX_TDP(op, 3, 5, 7); \
            if (two_b) ask(&far, b + HALF * stride + 1536); \
        } \
    }
AMX_SUM(sum_bf16, bf16ps)
AMX_SUM(sum_ss, bssd)
AMX_SUM(sum_su, bsud)
AMX_SUM(sum_us, busd)
AMX_SUM(sum_uu, buud)

/* sums + words of two bf16 each times x, which is one, too: the second product first. */
VFN vf32 dot_pairs(vf32 sum, vi32 x, vi32 w)
{
#ifdef __AVX512F__
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(x), "v"(w)); /* every AMX comes with it */
    return sum;
#else
    const vi32 upper = v_set_i32((int32_t)0xffff0000);
    sum = v_fma((vf32)(w & upper), (vf32)(x & upper), sum);
    return v_fma((vf32)((vu32)w << 16), (vf32)((vu32)x << 16), sum);
#endif
}

/* One row under `n` registers' columns, `width` of a panel, panels so many bytes apart, goes by vectors: a
 * register of one row takes as long to load as one of 16, and where the unit is slow to load so is all
 * of that. Sums begin with those at `from`; NULL: with 0. */
INLINE void sum_row(const size_t n, size_t width, size_t groups, const char *a, const char *b, size_t panel,
                    const float *from, float *to)
{
    enum { PARTS = HALF / V_LANES };
    const size_t of_panel = width / HALF;
    vf32 sum[2 * ORTC_UK_ROW_PANELS][PARTS];
    UNROLL for (size_t i = 0; i < n; i++) UNROLL for (size_t j = 0; j < PARTS; j++)
        sum[i][j] = from ? v_load_f32(from + i * HALF + j * V_LANES, V_LANES) : v_set_f32(0);
    for (size_t k = 0; k < groups * HALF; k++, a += 4, b += width * 4) {
        int32_t word;
        memcpy(&word, a, sizeof word);
        const vi32 x = v_set_i32(word);
        UNROLL for (size_t i = 0; i < n; i++) UNROLL for (size_t j = 0; j < PARTS; j++)
        {
            const char *w = b + i / of_panel * panel + i % of_panel * AMX_ROW;
            sum[i][j] = dot_pairs(sum[i][j], x,
                                  v_load_i32((const int32_t *)(const void *)w + j * V_LANES, V_LANES));
        }
    }
    UNROLL for (size_t i = 0; i < n; i++) UNROLL for (size_t j = 0; j < PARTS; j++)
        v_store_f32(to + i * HALF + j * V_LANES, sum[i][j], V_LANES);
}

/* A panel of f32 or f16 on its way into pieces, eight rows at a time. */
struct split {
    amx_seen seen;
    const char *from;
    int32_t *to;
    size_t ld, columns, width; /* of `from`, in elements; there are; of a row of pairs */
    size_t k, left;            /* rows of `from`; times eight rows, of whole groups */
    ptrdiff_t next;            /* from a group's pairs to those of the next, which take turns if */
    int alone;                 /* only the tile at work reads them: two groups stay in L1 */
};

#define GROUP 32
#define PAIRS (GROUP / 2)
#define ROWS 8 /* a quarter of a group: at so many steps of its products */

/* The next rows. */
INLINE void split_rows(split *s, const size_t planes)
{
    const size_t size = planes == 3 ? 4 : 2;
    _Alignas(64) char padded[ROWS][SIDE * 4];
    const char *from = s->from;
    size_t ld = s->ld * size;
    if (s->k < ROWS || s->columns < s->width) {
        memset(padded, 0, sizeof padded);
        for (size_t i = 0; i < ROWS && i < s->k; i++) memcpy(padded[i], from + i * ld, s->columns * size);
        from = padded[0], ld = sizeof *padded;
    }
    const size_t width = s->width, lanes = v_lanes();
    for (size_t i = 3 * ROWS; i < 4 * ROWS; i++) { /* to L1 from L2, but for a single block's */
        __builtin_prefetch(s->from + i * s->ld * size);
        if (planes == 3) __builtin_prefetch(s->from + i * s->ld * size + 64);
    }
    for (size_t j = 0; j < width; j += lanes) {
        vi32 most = v_load_i32(s->seen.most + j, lanes);
        vi32 least = v_load_i32(s->seen.least + j, lanes);
        const char *x = from + j * size;
        int32_t *to = s->to + j;
        UNROLL for (size_t i = 0; i < ROWS; i += 2, x += 2 * ld, to += width)
        {
            const void *y = x + ld;
            amx_split(planes == 3 ? v_load_f32((const void *)x, lanes) : v_load_f16((const void *)x, lanes),
                      planes == 3 ? v_load_f32(y, lanes) : v_load_f16(y, lanes), planes, to, PAIRS * width,
                      &most, &least);
        }
        v_store_i32(s->seen.most + j, most, lanes);
        v_store_i32(s->seen.least + j, least, lanes);
    }
    s->left--;
    s->to += ROWS / 2 * s->width;
    if (s->left % (GROUP / ROWS) == 0) {
        s->to += s->next - (ptrdiff_t)(PAIRS * s->width);
        if (s->alone) s->next = -s->next;
    }
    s->from += ROWS * s->ld * size;
    s->k -= s->k < ROWS ? s->k : ROWS;
}
static __attribute__((noinline)) void split_three(split *s) { split_rows(s, 3); }
static __attribute__((noinline)) void split_two(split *s) { split_rows(s, 2); }

/* Products of pieces (amx_pieces.h); of both operands the next group is asked for, or, where B's pieces are
 * yet to be made, made. */
INLINE void sum_pieces(const int planes, const int two_a, const int two_b, size_t mr, size_t groups,
                       const char *a, const char *b, size_t stride, split *s, const ortc_uk_ahead *ahead)
{
    ahead_state far = ahead_over(ahead, groups * (planes == 3 ? 6 : 4));
    const size_t plane_a = mr * AMX_ROW, plane_b = HALF * stride;
    const int alone = s->alone;
    ptrdiff_t next = (ptrdiff_t)(planes * plane_b);
#define LOAD_A(t, plane) AMX_LOAD(t, a + (plane)*plane_a + (t == 5 ? HALF * AMX_ROW : 0), AMX_ROW)
#define LOAD_B(t, plane) AMX_LOAD(t, b + (plane)*plane_b + (t == 7 ? AMX_ROW : 0), stride)
#define AHEAD(step) \
    do { \
        prefetch(a + planes * plane_a + (step)*256, 4); \
        if (!alone) prefetch(b + planes * plane_b + (step)*256, 4); \
        if ((step) % 4 == 0) ahead_step(&far); \
        if ((step) % (2 * planes) == 0 && s->left) (planes == 3 ? split_three : split_two)(s); \
    } while (0)
    for (size_t i = 0; s->left && i < GROUP / ROWS; i++) (planes == 3 ? split_three : split_two)(s);
    for (size_t g = 0; planes == 2 && g < groups; g++, a += 2 * plane_a, b += next) {
        AMX_FOUR_OF_PIECES();
        if (alone && g > 0) next = -next;
    }
    for (size_t g = 0; planes == 3 && g < groups; g++, a += 3 * plane_a, b += next) {
        AMX_SIX_OF_PIECES();
        if (alone && g > 0) next = -next;
    }
#undef LOAD_A
#undef LOAD_B
#undef AHEAD
}
#define PIECES_SUM(name, planes) \
    INLINE void name(const int two_a, const int two_b, size_t mr, size_t groups, const char *a, \
                     const char *b, size_t stride, split *s, const ortc_uk_ahead *ahead) \
    { \
        sum_pieces(planes, two_a, two_b, mr, groups, a, b, stride, s, ahead); \
    }
PIECES_SUM(sum_two, 2)
PIECES_SUM(sum_three, 3)

INLINE void start(size_t mr, size_t ldb, const char *c, size_t stride)
{
    if (c) {
        AMX_LOAD(0, c, stride);
        if (ldb > HALF) AMX_LOAD(1, c + AMX_ROW, stride);
        if (mr > HALF) AMX_LOAD(2, c + HALF * stride, stride);
        if (mr > HALF && ldb > HALF) AMX_LOAD(3, c + HALF * stride + AMX_ROW, stride);
    } else {
        AMX_ZERO(0);
        AMX_ZERO(1);
        AMX_ZERO(2);
        AMX_ZERO(3);
    }
}

/* The tile's sums to rows `stride` bytes apart, whole registers. They begin with those at `from`, rows
 * `from_stride` apart; NULL: with 0. */
INLINE void multiply(amx_sum *sum, size_t mr, size_t ldb, size_t groups, const void *a, const void *b,
                     split *s, const void *from, size_t from_stride, const ortc_uk_ahead *ahead, void *to,
                     size_t stride)
{
    const size_t b_stride = ldb * 4;
    char *c = to;
    if (configured != mr) configure(mr);
    start(mr, ldb, from, from_stride);
    if (mr > HALF && ldb > HALF)
        sum(1, 1, mr, groups, a, b, b_stride, s, ahead);
    else if (mr > HALF)
        sum(1, 0, mr, groups, a, b, b_stride, s, ahead);
    else if (ldb > HALF)
        sum(0, 1, mr, groups, a, b, b_stride, s, ahead);
    else
        sum(0, 0, mr, groups, a, b, b_stride, s, ahead);
    AMX_STORE(0, c, stride);
    if (ldb > HALF) AMX_STORE(1, c + AMX_ROW, stride);
    if (mr > HALF) AMX_STORE(2, c + HALF * stride, stride);
    if (mr > HALF && ldb > HALF) AMX_STORE(3, c + HALF * stride + AMX_ROW, stride);
}

/* ---- Results ------------------------------------------------------------------------------------------- */

/* Whether registers go straight to C. */
static int is_straight(size_t nr, uint32_t flags, const ortc_uk_tail_f32 *tail)
{
    return nr % HALF == 0 && !(flags & (ORTC_UK_ACCUMULATE | ORTC_UK_TO_BF16)) && !tail;
}

/* n elements of a residual that is C's type. */
INLINE vf32 load_residual(const int halves, const float *residual, size_t at, size_t n)
{
    return halves ? v_load_bf16((const uint16_t *)(const void *)residual + at, n)
                  : v_load_f32(residual + at, n);
}

/* Rows of a whole tile, two vectors at a time: a bias along them, and (`more`) a residual and bounds. */
INLINE void finish_rows(const int halves, const int more, size_t mr, float (*tile)[SIDE], float *c, size_t ld,
                        const ortc_uk_tail_f32 *t)
{
    const int clip = more && t->act == ORTC_UK_ACT_CLIP;
    const vf32 lo = v_set_f32(clip ? t->lo : -__builtin_inff()),
               hi = v_set_f32(clip ? t->hi : __builtin_inff()), beta = v_set_f32(t ? t->beta : 0);
    for (size_t j = 0; j < SIDE; j += 2 * V_LANES) {
        const float *residual = more ? t->residual : NULL;
        size_t at = j; /* in it */
        vf32 bias[2] = {v_set_f32(0), v_set_f32(0)};
        for (size_t k = 0; t && t->bias_col && k < 2; k++)
            bias[k] = v_load_f32(t->bias_col + j + k * V_LANES, V_LANES);
        for (size_t i = 0; i < mr; i++) {
            vf32 v[2];
            for (size_t k = 0; k < 2; k++) {
                v[k] = v_add(v_load_f32(tile[i] + j + k * V_LANES, V_LANES), bias[k]);
                if (residual)
                    v[k] = v_fma(beta, load_residual(halves, residual, at + k * V_LANES, V_LANES), v[k]);
                if (more) v[k] = v_min(hi, v_max(lo, v[k])); /* v second: NaN stays */
            }
            if (residual) at += t->residual_stride;
            if (halves) {
                amx_store_two_bf16((uint16_t *)(void *)c + i * ld + j, v[0], v[1]);
            } else {
                v_store_f32(c + i * ld + j, v[0], V_LANES);
                v_store_f32(c + i * ld + j + V_LANES, v[1], V_LANES);
            }
        }
    }
}

/* Lines of long rows that the next panel's tile stores to: of few groups they would take longer than the
 * products, one row's after the other's. */
enum { ASKS_ROW = 16 * 1024, ASKS_K = 256 };
INLINE void ask_for_next(size_t mr, size_t k, size_t size, const void *c, size_t ld)
{
    if (ld * size < ASKS_ROW || k > ASKS_K) return;
    for (size_t i = 0; i < mr; i++) {
        const char *next = (const char *)c + (i * ld + SIDE) * size + 63; /* whatever a row's alignment */
        __builtin_prefetch(next, 1);
        if (size == 4) __builtin_prefetch(next + 64, 1);
    }
}

/* The terms of a tail that are the same for all of a column, or of the tile, are set once. */
static void finish(size_t mr, size_t nr, float (*tile)[SIDE], float *c, size_t ld, uint32_t flags,
                   const ortc_uk_tail_f32 *t)
{
    const int clip = t && t->act == ORTC_UK_ACT_CLIP;
    if (nr == SIDE && !(flags & ORTC_UK_ACCUMULATE) &&
        (!t || (t->alpha == 1 && !t->bias_row && t->act != ORTC_UK_ACT_LEAKY))) {
        const int halves = flags & ORTC_UK_TO_BF16, more = clip || (t && t->residual);
        if (halves && more)
            finish_rows(1, 1, mr, tile, c, ld, t);
        else if (halves)
            finish_rows(1, 0, mr, tile, c, ld, t);
        else if (more)
            finish_rows(0, 1, mr, tile, c, ld, t);
        else
            finish_rows(0, 0, mr, tile, c, ld, t);
        return;
    }
    const vf32 alpha = v_set_f32(t ? t->alpha : 1), beta = v_set_f32(t ? t->beta : 0),
               lo = v_set_f32(clip ? t->lo : -__builtin_inff()),
               hi = v_set_f32(clip ? t->hi : __builtin_inff());
    V_FOR(j, n, nr, {
        vf32 bias = v_set_f32(0);
        if (t && t->bias_col) bias = v_load_f32(t->bias_col + j, n);
        for (size_t i = 0; i < mr; i++) {
            float *to = c + i * ld + j;
            vf32 v = v_load_f32(tile[i] + j, n);
            if (flags & ORTC_UK_ACCUMULATE) v = v_add(v_load_f32(to, n), v);
            if (t) {
                v = v_add(v_mul(v, alpha), bias);
                if (t->bias_row) v = v_add(v, v_set_f32(ortc_uk_load_f32(t->bias_row + i)));
                if (t->residual)
                    v = v_fma(beta,
                              load_residual(flags & ORTC_UK_TO_BF16, t->residual, i * t->residual_stride + j,
                                            n),
                              v);
                if (t->act == ORTC_UK_ACT_LEAKY)
                    v = v_sel(v_lt(v, v_set_f32(0)), v_mul(v, v_set_f32(t->lo)), v);
                else
                    v = v_min(hi, v_max(lo, v)); /* v second: NaN stays */
            }
            if (flags & ORTC_UK_TO_BF16)
                amx_store_bf16((uint16_t *)(void *)c + i * ld + j, v, n);
            else
                v_store_f32(to, v, n);
        }
    });
}

static void finish_s32(size_t mr, size_t nr, int32_t (*tile)[SIDE], int32_t *c, size_t ld, uint32_t flags)
{
    for (size_t i = 0; i < mr; i++, c += ld)
        V_FOR(j, n, nr, {
            vi32 v = v_load_i32(tile[i] + j, n);
            if (flags & ORTC_UK_ACCUMULATE) v = v_load_i32(c + j, n) + v;
            v_store_i32(c + j, v, n);
        });
}

/* ---- What pieces do not hold --------------------------------------------------------------------------- */

/* Behind a panel of pieces: not 0 where it is [k][width] of f32. */
static int is_f32(size_t planes, const void *panel, size_t width, size_t groups)
{
    int32_t word;
    memcpy(&word, (const char *)panel + groups * GROUP * planes * width * 2, sizeof word);
    return word != 0;
}

/* Rows `first` .. of a group of A, as [k][rows]. */
static void rows_of_a(size_t planes, const void *a, int f32, size_t mr, size_t g, size_t first, size_t rows,
                      float *out)
{
    if (f32) {
        const float *from = (const float *)a + g * GROUP * mr + first;
        for (size_t k = 0; k < GROUP; k++) memcpy(out + k * rows, from + k * mr, rows * sizeof *out);
        return;
    }
    for (size_t i = 0; i < rows; i++) {
        const uint16_t *from = (const uint16_t *)a + (g * planes * mr + first + i) * GROUP;
        float row[GROUP];
        V_FOR(k, n, GROUP, {
            vf32 x = v_load_bf16(from + k, n);
            for (size_t p = 1; p < planes; p++) x = v_add(x, v_load_bf16(from + p * mr * GROUP + k, n));
            v_store_f32(row + k, x, n);
        });
        for (size_t k = 0; k < GROUP; k++) out[k * rows + i] = row[k];
    }
}

ortc_uk_product AMX_F32_TILE;
/* B: [k][ldb] of f32, or of f16 where A has two pieces. */
static void multiply_f32(size_t planes, size_t mr, size_t nr, size_t k, const void *a, int a_f32,
                         const void *b, size_t ldb, float (*tile)[SIDE])
{
    float panel_b[GROUP * SIDE], panel_a[GROUP * AMX_F32_MR];
    for (size_t g = 0; g * GROUP < k; g++) {
        const size_t steps = k - g * GROUP < GROUP ? k - g * GROUP : GROUP;
        const float *from = (const float *)b + g * GROUP * ldb;
        size_t ld = ldb;
        if (planes == 2) {
            const uint16_t *halves = (const uint16_t *)b + g * GROUP * ldb;
            for (size_t i = 0; i < steps; i++)
                V_FOR(j, n, nr,
                      { v_store_f32(panel_b + i * SIDE + j, v_load_f16(halves + i * ldb + j, n), n); });
            from = panel_b, ld = SIDE;
        }
        for (size_t i = 0; i < mr; i += AMX_F32_MR) {
            const size_t rows = mr - i < AMX_F32_MR ? mr - i : AMX_F32_MR;
            rows_of_a(planes, a, a_f32, mr, g, i, rows, panel_a);
            for (size_t j = 0; j < nr; j += AMX_F32_NR)
                AMX_F32_TILE(rows, nr - j < AMX_F32_NR ? nr - j : AMX_F32_NR, steps, panel_a, from + j, ld,
                             tile[i] + j, SIDE, ORTC_UK_B_EXACT | (g ? ORTC_UK_ACCUMULATE : 0), NULL, NULL);
        }
    }
}

/* ---- The lines ----------------------------------------------------------------------------------------- */

enum { PANEL_NEW, PANEL_PIECES, PANEL_F32 };

static void begin_split(split *s, size_t planes, const ortc_uk_panel *panel, size_t ld, size_t columns,
                        size_t width, size_t k, void *to)
{
    *s = (split){.from = panel->data, .to = to, .ld = ld, .columns = columns, .width = width, .k = k};
    s->left = (k + GROUP - 1) / GROUP * (GROUP / ROWS);
    s->next = (ptrdiff_t)(planes * PAIRS * width), s->alone = panel->alone;
    memset(s->seen.least, -1, sizeof s->seen.least);
}

#define CHECK() \
    assert(mr >= 1 && mr <= SIDE && nr >= 1 && nr <= ldb && ldb <= SIDE && !(flags & ORTC_UK_B_EXACT))

/* A row over a panel, or ORTC_UK_ROW_PANELS of them; `from`: sums so far, NULL: none. */
static void one_row(size_t nr, size_t width, size_t groups, const void *a, const void *b, const float *from,
                    void *sums, size_t ld, uint32_t flags, const ortc_uk_tail_f32 *tail)
{
    _Alignas(64) float row[ORTC_UK_ROW_PANELS][SIDE];
    const size_t panel = groups * GROUP * SIDE * 2;
    if (nr > SIDE)
        sum_row(2 * ORTC_UK_ROW_PANELS, SIDE, groups, a, b, panel, from, row[0]);
    else if (width > HALF)
        sum_row(2, SIDE, groups, a, b, 0, from, row[0]);
    else
        sum_row(1, HALF, groups, a, b, 0, from, row[0]);
    finish(1, nr, row, sums, ld, flags, tail);
}

ortc_uk_product AMX_NAME(bf16x2_f16), AMX_NAME(bf16x3_f32), AMX_NAME(bf16_bf16);
#define PIECES_LINE(types, planes, sum) \
    void AMX_NAME(types)(size_t mr, size_t nr, size_t k, const void *a, const void *b, size_t ldb, \
                         void *sums, size_t ld, uint32_t flags, const ortc_uk_tail_f32 *tail, \
                         const ortc_uk_ahead *ahead) \
    { \
        _Alignas(64) float tile[SIDE][SIDE]; \
        const ortc_uk_panel *panel = b; \
        const size_t groups = (k + GROUP - 1) / GROUP, width = (nr + HALF - 1) / HALF * HALF; \
        const int a_f32 = groups && is_f32(planes, a, mr, groups); \
        const int straight = is_straight(nr, flags, tail); \
        int32_t *state = panel->pieces; \
        char *pieces = (char *)panel->pieces + ORTC_UK_PANEL_STATE; \
        assert(mr >= 1 && mr <= SIDE && nr >= 1 && nr <= SIDE); \
        if (!a_f32 && *state != PANEL_F32) { \
            split s; \
            s.left = 0, s.alone = 0; \
            if (*state == PANEL_NEW) begin_split(&s, planes, panel, ldb, nr, width, k, pieces); \
            multiply(sum, mr, width, groups, a, pieces, &s, NULL, 0, ahead, straight ? sums : tile, \
                     straight ? ld * 4 : sizeof *tile); \
            if (*state == PANEL_NEW) *state = amx_is_odd(&s.seen, width) ? PANEL_F32 : PANEL_PIECES; \
            if (straight && *state == PANEL_PIECES) return; \
        } \
        if (a_f32 || *state == PANEL_F32) multiply_f32(planes, mr, nr, k, a, a_f32, panel->data, ldb, tile); \
        finish(mr, nr, tile, sums, ld, flags, tail); \
    }
PIECES_LINE(bf16x2_f16, 2, sum_two)
PIECES_LINE(bf16x3_f32, 3, sum_three)

void AMX_NAME(bf16_bf16)(size_t mr, size_t nr, size_t groups, const void *a, const void *b, size_t ldb,
                         void *sums, size_t ld, uint32_t flags, const ortc_uk_tail_f32 *tail,
                         const ortc_uk_ahead *ahead)
{
    _Alignas(64) float tile[SIDE][SIDE];
    const int goes_on = nr % HALF == 0 && (flags & ORTC_UK_ACCUMULATE); /* in registers */
    const float *parts = ahead ? ahead->sums : NULL;
    if (goes_on) flags &= ~(uint32_t)ORTC_UK_ACCUMULATE;
    if (mr == 1) {
        assert((nr <= SIDE && nr <= ldb) || (nr == ORTC_UK_ROW_PANELS * SIDE && ldb == SIDE));
        one_row(nr, ldb, groups, a, b, parts ? parts : goes_on ? sums : NULL, sums, ld, flags, tail);
        return;
    }
    const int straight = is_straight(nr, flags, tail);
    CHECK();
    ask_for_next(mr, groups * GROUP, flags & ORTC_UK_TO_BF16 ? 2 : 4, sums, ld);
    multiply(sum_bf16, mr, ldb, groups, a, b, NULL,
             parts     ? parts
             : goes_on ? sums
                       : NULL,
             (parts ? ldb : ld) * 4, ahead, straight ? sums : tile, straight ? ld * 4 : sizeof *tile);
    if (!straight) finish(mr, nr, tile, sums, ld, flags, tail);
    AMX_WAKE();
}

#define BYTES_LINE(types, sum) \
    ortc_uk_product AMX_NAME(types); \
    void AMX_NAME(types)(size_t mr, size_t nr, size_t groups, const void *a, const void *b, size_t ldb, \
                         void *sums, size_t ld, uint32_t flags, const ortc_uk_tail_f32 *tail, \
                         const ortc_uk_ahead *ahead) \
    { \
        _Alignas(64) int32_t tile[SIDE][SIDE]; \
        const int straight = is_straight(nr, flags, tail); \
        CHECK(); \
        multiply(sum, mr, ldb, groups, a, b, NULL, ahead ? ahead->first : NULL, 0, ahead, \
                 straight ? sums : tile, straight ? ld * 4 : sizeof *tile); \
        if (!straight) finish_s32(mr, nr, tile, sums, ld, flags); \
    }
BYTES_LINE(s8_s8, sum_ss)
BYTES_LINE(s8_u8, sum_su)
BYTES_LINE(u8_s8, sum_us)
BYTES_LINE(u8_u8, sum_uu)
