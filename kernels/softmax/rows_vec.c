/* Softmax of rows and of columns, a body for every instruction set. The largest is taken off, exponentials
 * are summed, in pieces that stay in L1; pieces are joined in order. A NaN is in the sum, and so in every
 * result of its row.
 */
#include "kernels/softmax/rows.h"

#include "kernels/common/vector/math.h"
#include "kernels/common/vector/reduce.h"

enum { PIECE = 1024, TOGETHER = 4096 };

/* x^(v - t) of what is at p; what lies `ahead` is asked for, which a pass for the largest would wait for. */
VFN vf32 power(const float *p, vf32 t, size_t ahead, size_t n)
{
    v_prefetch(p + ahead);
    return v_exp_normal_or_0(v_sub(v_load_f32(p, n), t));
}
/* e, kept at p. */
VFN vf32 kept(vf32 e, float *p, size_t n)
{
    v_store_f32(p, e, n);
    return e;
}

/* The sum of a row's exponentials, which are kept in y if that is not NULL. */
static double sum_of(size_t length, size_t ahead, const float *x, vf32 t, float *y)
{
    double sum = 0;
    for (size_t at = 0; at < length; at += PIECE) {
        const size_t count = length - at < PIECE ? length - at : PIECE;
        const float *from = x + at;
        float part;
        if (y) {
            V_REDUCE(r, v_sum, 0, count, i, n, kept(power(from + i, t, ahead, n), y + at + i, n));
            part = r;
        } else {
            V_REDUCE(r, v_sum, 0, count, i, n, power(from + i, t, ahead, n));
            part = r;
        }
        sum += (double)part;
    }
    return sum;
}

/* As many rows as a register has lanes, none longer than it: turned, so that a register is a place of all. */
static void turned(size_t length, const float *x, float *y, int log)
{
    vf32 r[V_LANES], top, sum = v_set_f32(0);
    V_UNROLL for (size_t k = 0; k < V_LANES; k++) r[k] = v_load_f32(x + k * length, length);
    v_turn(r);
    top = r[0];
    for (size_t i = 1; i < length; i++) top = v_max(top, r[i]);
    for (size_t i = 0; i < length; i++) {
        const vf32 less = v_sub(r[i], top), e = v_exp_normal_or_0(less);
        sum = v_add(sum, e);
        r[i] = log ? less : e;
    }
    const vf32 by = log ? v_log(sum) : v_div(v_set_f32(1), sum);
    for (size_t i = 0; i < length; i++) r[i] = log ? v_sub(r[i], by) : v_mul(r[i], by);
    v_turn(r);
    V_UNROLL for (size_t k = 0; k < V_LANES; k++) v_store_f32(y + k * length, r[k], length);
}

/* Rows by some, which stay in L1: one logarithm is of many, and no row waits for another's largest or sum. */
static void rows(size_t rows, size_t length, const float *x, float *y, int log)
{
    for (; length <= V_LANES && rows >= V_LANES;
         rows -= V_LANES, x += V_LANES * length, y += V_LANES * length)
        turned(length, x, y, log);
    const size_t fit = TOGETHER / length, together = fit > V_LANES ? V_LANES : fit ? fit : 1;
    for (size_t some; rows; rows -= some, x += some * length, y += some * length) {
        float top[V_LANES], by[V_LANES];
        some = rows < together ? rows : together;
        for (size_t k = 0; k < some; k++) {
            const float *from = x + k * length;
            V_REDUCE(most, v_max, -__builtin_inff(), length, i, n, v_load_f32(from + i, n));
            top[k] = most;
        }
        for (size_t k = 0; k < some; k++) {
            const double sum = sum_of(length, together * length, x + k * length, v_set_f32(top[k]),
                                      log ? NULL : y + k * length);
            by[k] = (float)(log ? sum : 1 / sum);
        }
        if (log) v_store_f32(by, v_log(v_load_f32(by, some)), some);
        for (size_t k = 0; k < some; k++) {
            const float *from = x + k * length;
            float *to = y + k * length;
            const vf32 t = v_set_f32(top[k]), f = v_set_f32(by[k]);
            if (log)
                V_FOR(i, n, length, v_store_f32(to + i, v_sub(v_sub(v_load_f32(from + i, n), t), f), n););
            else
                V_FOR(i, n, length, v_store_f32(to + i, v_mul(v_load_f32(to + i, n), f), n););
        }
    }
}

/* Lines as they lie in memory, four at once, so that what is kept of the columns is seldom read; two where
 * they are pages apart and meet in the same sets of a cache. */
VFN int apart(size_t step) { return step * sizeof(float) % 4096 != 0; }

VFN void largest(size_t lines, size_t width, const float *x, size_t step, float *top)
{
    V_FOR(i, n, width, vf32 t = v_load_f32(top + i, n);
          for (size_t k = 0; k < lines; k++) t = v_max(t, v_load_f32(x + k * step + i, n));
          v_store_f32(top + i, t, n););
}
static void tops(size_t lines, size_t width, const float *x, size_t step, float *top)
{
    size_t k = 0;
    V_FOR(i, n, width, v_store_f32(top + i, v_set_f32(-__builtin_inff()), n););
    for (; k + 4 <= lines && apart(step); k += 4) largest(4, width, x + k * step, step, top);
    for (; k + 2 <= lines; k += 2) largest(2, width, x + k * step, step, top);
    for (; k < lines; k++) largest(1, width, x + k * step, step, top);
}

/* An exponential is long: one copy of it for each number of lines. */
#if defined(__clang__)
#define V_ROLLED _Pragma("clang loop unroll(disable)")
#else
#define V_ROLLED _Pragma("GCC unroll 1")
#endif
VFN void exponentials(size_t lines, size_t width, const float *x, size_t x_step, float *y, size_t y_step,
                      const float *top, float *sum, int log)
{
    V_FOR(
        i, n, width, vf32 s = v_load_f32(sum + i, n); const vf32 t = v_load_f32(top + i, n);
        V_ROLLED for (size_t k = 0; k < lines; k++) {
            const vf32 d = v_sub(v_load_f32(x + k * x_step + i, n), t), e = v_exp_normal_or_0(d);
            s = v_add(s, e);
            v_store_f32(y + k * y_step + i, log ? d : e, n);
        } v_store_f32(sum + i, s, n););
}
static void powers(size_t lines, size_t width, const float *x, size_t x_step, float *y, size_t y_step,
                   const float *top, float *sum, int log)
{
    size_t k = 0;
    V_FOR(i, n, width, v_store_f32(sum + i, v_set_f32(0), n););
    for (; k + 4 <= lines && apart(x_step); k += 4)
        exponentials(4, width, x + k * x_step, x_step, y + k * y_step, y_step, top, sum, log);
    for (; k + 2 <= lines; k += 2)
        exponentials(2, width, x + k * x_step, x_step, y + k * y_step, y_step, top, sum, log);
    for (; k < lines; k++)
        exponentials(1, width, x + k * x_step, x_step, y + k * y_step, y_step, top, sum, log);
}

static void divisors(size_t lines, size_t width, const float *sums, float *divisor, int log)
{
    V_FOR(i, n, width, vf32 s = v_load_f32(sums + i, n);
          for (size_t k = 1; k < lines; k++) s = v_add(s, v_load_f32(sums + k * width + i, n));
          v_store_f32(divisor + i, log ? v_log(s) : v_div(v_set_f32(1), s), n););
}

static void divide(size_t lines, size_t width, float *y, size_t step, const float *divisor, int log)
{
    for (; lines--; y += step)
        V_FOR(i, n, width, const vf32 v = v_load_f32(y + i, n), d = v_load_f32(divisor + i, n);
              v_store_f32(y + i, log ? v_sub(v, d) : v_mul(v, d), n););
}

const ortc_softmax_rows V_NAME(ortc_softmax_rows) = {rows, tops, powers, divisors, divide};
