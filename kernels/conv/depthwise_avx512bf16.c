/* Depthwise windows of bf16 (blocked_uk.h), where an instruction rounds to it: rows are read where they lie,
 * each of their vectors once for all the windows that it is part of, and widened by one permutation; sums are
 * f32, in the order of those of blocked_vec.c. */
#include <immintrin.h>

#include "blocked_uk.h"
#include "kernels/common/vector/vec.h"

#define UNROLL _Pragma("GCC unroll 32")
enum { BLOCK = ORTC_BLOCK, SLIDE = 14 };

/* A vector to f32: a number is the upper half of its word. */
VFN vf32 widened(const uint16_t *x, __m512i places)
{
    const __m512i v = _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)(const void *)x));
    return (vf32)_mm512_maskz_permutexvar_epi16(0xaaaaaaaa, places, v);
}

/* The first n sums, to pixel `at` of y and what follows it. */
VFN void end_strip(const ortc_blocked_windows *t, int64_t at, int64_t n, vf32 *sum)
{
    const vf32 lo = v_set_f32(t->lo);
    const vf32 hi = v_set_f32(t->hi);
    if (!t->half) {
        float *y = t->y + at * BLOCK;
        UNROLL for (int p = 0; p < SLIDE; p++)
        {
            if (p >= n) break;
            v_store_f32(y + p * BLOCK, v_min(hi, v_max(lo, sum[p])), V_LANES);
        }
        return;
    }
    uint16_t *y = (uint16_t *)(void *)t->y + at * BLOCK;
    const uint16_t *residual = (const uint16_t *)(const void *)t->residual;
    if (residual) {
        residual += at * BLOCK;
        UNROLL for (int p = 0; p < SLIDE; p++)
        {
            if (p >= n) break;
            sum[p] = v_add(sum[p], v_load_bf16(residual + p * BLOCK, V_LANES));
        }
    }
    UNROLL for (int p = 0; p < SLIDE; p += 2) /* sums second: a NaN stays */
    {
        if (p >= n) break;
        const __m512 a = (__m512)v_min(hi, v_max(lo, sum[p])), b = (__m512)v_min(hi, v_max(lo, sum[p + 1]));
        _mm512_mask_storeu_epi16(y + p * BLOCK, p + 1 < n ? 0xffffffff : 0xffff,
                                 (__m512i)_mm512_cvtne2ps_pbh(b, a));
    }
}

/* n pixels, up to SLIDE, whose windows have C columns side by side, S pixels from one to the next. x0: where
 * column 0 of the first lies in the row. Only C / 2 of it on either side may lie beside the image. */
VFN void slide(const int C, const int S, const ortc_blocked_windows *t, const char *const *line, int64_t y,
               int64_t n, int64_t x0)
{
    static const uint16_t pairs[2 * BLOCK] = {0, 0, 1, 1, 2,  2,  3,  3,  4,  4,  5,  5,  6,  6,  7,  7,
                                              8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15};
    const __m512i places = _mm512_loadu_si512(pairs);
    const int64_t inside = t->width - x0, needed = (n - 1) * S + C, end = inside < needed ? inside : needed;
    const float *w = t->w;
    vf32 sum[SLIDE];
    sum[0] = v_load_f32(t->bias, V_LANES);
    UNROLL for (int p = 1; p < SLIDE; p++) sum[p] = sum[0];
    for (size_t l = 0; l < t->lines; l++, w += C * BLOCK) {
        const uint16_t *x = (const uint16_t *)(const void *)line[l];
        vf32 wv[7];
        if (!x) continue;
        x += x0 * BLOCK;
        __asm__("" : "+r"(x)); /* one address, and not one for each pixel */
        UNROLL for (int c = 0; c < C; c++) wv[c] = v_load_f32(w + c * BLOCK, V_LANES);
        UNROLL for (int i = 0; i < (SLIDE - 1) * S + C; i++)
        {
            if (i >= end) break;
            if (i < C / 2 && x0 + i < 0) continue;
            const vf32 xv = widened(x + i * BLOCK, places);
            UNROLL for (int c = C - 1; c >= 0; c--)
            {
                if (i < c || (i - c) % S || (i - c) / S >= SLIDE) continue;
                sum[(i - c) / S] = v_fma(wv[c], xv, sum[(i - c) / S]);
            }
        }
    }
    end_strip(t, y, n, sum);
}

#define EACH_SLIDE(X) X(3, 1) X(3, 2) X(5, 1) X(5, 2) X(7, 1)
#define SLIDE_OF(C, S) \
    static void slide_##C##_##S(const ortc_blocked_windows *t, const char *const *line, int64_t y, \
                                int64_t n, int64_t x0) \
    { \
        slide(C, S, t, line, y, n, x0); \
    }
#define SLIDE_ENTRY(C, S) {C, S, slide_##C##_##S},
EACH_SLIDE(SLIDE_OF)

typedef struct slide_line {
    size_t columns;
    int64_t step;
    void (*run)(const ortc_blocked_windows *, const char *const *, int64_t y, int64_t n, int64_t x0);
} slide_line;
static const slide_line slides[] = {EACH_SLIDE(SLIDE_ENTRY){.run = NULL}};

static const slide_line *slide_for(size_t columns, int64_t step)
{
    const slide_line *s = slides;
    while (s->run && (s->columns != columns || s->step != step)) s++;
    return s;
}

static int takes(size_t columns, int64_t step) { return slide_for(columns, step)->run != NULL; }

/* Rows in strips of nearly the same length. */
static void run(int64_t rows, int64_t n, const ortc_blocked_windows *t)
{
    const int64_t pixel = BLOCK * 2, step = t->step / pixel, first = t->column[0].x / pixel,
                  strips = (n + SLIDE - 1) / SLIDE, each = n / strips, longer = n % strips;
    const slide_line *s = slide_for(t->columns, step);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t at = 0, i = 0, np; i < strips; at += np, i++) {
            np = each + (i < longer);
            s->run(t, t->line + (size_t)r * t->lines, r * n + at, np, first + at * step);
        }
}

const ortc_blocked_halves ortc_blocked_halves_avx512bf16 = {takes, run};
