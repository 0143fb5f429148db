/* Folding rows and lines (rows.h), a body for every instruction set. A NaN makes a largest and a smallest
 * NaN. */
#include <string.h>

#include "kernels/reduce/rows.h"

#include "kernels/common/vector/math.h"
#include "kernels/common/vector/reduce.h"

VFN vf32 same(vf32 x) { return x; }
VFN vf32 square(vf32 x) { return v_mul(x, x); }

enum { SHORT = 32 };

/* As many rows as a register has lanes, turned: a register is an element of all of them. */
VFN void turn_rows(size_t width, const float *x, vf32 *element)
{
    for (size_t at = 0; at < width; at += V_LANES, element += V_LANES) {
        const size_t n = width - at < V_LANES ? width - at : V_LANES;
        V_UNROLL for (size_t k = 0; k < V_LANES; k++) element[k] = v_load_f32(x + k * width + at, n);
        v_turn(element);
    }
}

/* rows_..: the order is V_REDUCE's. */
#define FOLD(name, op, neutral, map) \
    static size_t rows_##name(size_t rows, size_t width, const float *x, double *r) \
    { \
        size_t done = 0; \
        for (; width && width <= SHORT && done + V_LANES <= rows; done += V_LANES, x += V_LANES * width) { \
            vf32 e[SHORT]; \
            float folded[V_LANES]; \
            turn_rows(width, x, e); \
            for (size_t i = 0; i < width; i++) e[i] = op(v_set_f32(neutral), map(e[i])); \
            for (size_t half = SHORT / 2; half; half /= 2) \
                for (size_t i = 0; i < half && i + half < width; i++) e[i] = op(e[i], e[i + half]); \
            v_store_f32(folded, e[0], V_LANES); \
            for (size_t k = 0; k < V_LANES; k++) r[done + k] = (double)folded[k]; \
        } \
        return done; \
    } \
    static double row_##name(size_t count, const float *x, float top) \
    { \
        (void)top; \
        V_REDUCE(r, op, neutral, count, i, n, map(v_load_f32(x + i, n))); \
        return (double)r; \
    } \
    static void line_##name(size_t count, size_t lines, size_t step, const float *x, const float *top, \
                            float *acc) \
    { \
        (void)top; \
        for (; lines >= 8; lines -= 8, x += 8 * step) \
            V_FOR(i, n, count, { \
                const vf32 a = LINES_4(op, map, v_load_f32(acc + i, n), x + i); \
                v_store_f32(acc + i, LINES_4(op, map, a, x + 4 * step + i), n); \
            }); \
        for (; lines >= 2; lines -= 2, x += 2 * step) \
            V_FOR(i, n, count, v_store_f32(acc + i, LINES_2(op, map, v_load_f32(acc + i, n), x + i), n);); \
        if (lines) \
            V_FOR(i, n, count, v_store_f32(acc + i, LINE(op, map, v_load_f32(acc + i, n), x + i), n);); \
    }
#define LINE(op, map, a, at) op(a, map(v_load_f32(at, n)))
#define LINES_2(op, map, a, at) LINE(op, map, LINE(op, map, a, at), (at) + step)
#define LINES_4(op, map, a, at) LINES_2(op, map, LINES_2(op, map, a, at), (at) + 2 * step)
FOLD(sum, v_sum, 0, same)
FOLD(abs, v_sum, 0, v_abs)
FOLD(square, v_sum, 0, square)
FOLD(max, v_max_nan, -__builtin_inff(), same)
FOLD(min, v_min_nan, __builtin_inff(), same)

/* As many products as do not wait for each other. */
static double row_product(size_t count, const float *x, float top)
{
    enum { BESIDE = 32 };
    double part[BESIDE], r = 1;
    size_t i = 0;
    (void)top;
    for (int k = 0; k < BESIDE; k++) part[k] = 1;
    for (; i + BESIDE <= count; i += BESIDE)
        for (int k = 0; k < BESIDE; k++) part[k] *= (double)x[i + (size_t)k];
    for (; i < count; i++) r *= (double)x[i];
    for (int k = 0; k < BESIDE; k++) r *= part[k];
    return r;
}
static size_t rows_product(size_t rows, size_t width, const float *x, double *r)
{
    size_t done = 0;
    for (; width && width < SHORT && done + V_LANES <= rows; done += V_LANES, x += V_LANES * width) {
        vf32 e[SHORT];
        float lanes[V_LANES];
        double product[V_LANES];
        turn_rows(width, x, e);
        for (size_t k = 0; k < V_LANES; k++) product[k] = 1;
        for (size_t i = 0; i < width; i++) {
            v_store_f32(lanes, e[i], V_LANES);
            for (size_t k = 0; k < V_LANES; k++) product[k] *= (double)lanes[k];
        }
        memcpy(r + done, product, sizeof product);
    }
    return done;
}
static void line_product(size_t count, size_t lines, size_t step, const float *x, const float *top,
                         float *acc)
{
    (void)top;
    for (; lines > 0; lines--, x += step)
        V_FOR(i, n, count, v_store_f32(acc + i, v_mul(v_load_f32(acc + i, n), v_load_f32(x + i, n)), n););
}

static double row_exp(size_t count, const float *x, float top)
{
    enum { PIECE = 1024 };
    float e[PIECE], sum = 0;
    const vf32 t = v_set_f32(top);
    for (size_t at = 0; at < count; at += PIECE) {
        const size_t some = count - at < PIECE ? count - at : PIECE;
        V_FOR(i, n, some, v_store_f32(e + i, v_exp(v_sub(v_load_f32(x + at + i, n), t)), n););
        V_REDUCE(part, v_sum, 0, some, i, n, v_load_f32(e + i, n));
        sum += part;
    }
    return (double)sum;
}
static void line_exp(size_t count, size_t lines, size_t step, const float *x, const float *top, float *acc)
{
    for (; lines > 0; lines--, x += step)
        V_FOR(i, n, count, {
            const vf32 e = v_exp(v_sub(v_load_f32(x + i, n), v_load_f32(top + i, n)));
            v_store_f32(acc + i, v_add(v_load_f32(acc + i, n), e), n);
        });
}

const ortc_reduce_rows V_NAME(ortc_reduce_rows) = {
    {row_sum, row_abs, row_square, row_max, row_min, row_product, row_exp},
    {rows_sum, rows_abs, rows_square, rows_max, rows_min, rows_product, NULL},
    {line_sum, line_abs, line_square, line_max, line_min, line_product, line_exp}};
