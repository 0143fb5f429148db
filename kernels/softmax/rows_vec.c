/* Softmax of rows and of columns, a body for every instruction set. The largest is taken off, exponentials
 * are summed, in pieces that stay in L1; pieces are joined in order. A NaN is in the sum, and so in every
 * result of its row.
 */
#include "kernels/softmax/rows.h"

#include "kernels/common/vector/math.h"
#include "kernels/common/vector/reduce.h"

enum { PIECE = 1024 };

/* x^(v - t) of what is at p; the next row is asked for, which the pass for its largest would wait for. */
VFN vf32 power(const float *p, vf32 t, size_t length, size_t n)
{
    v_prefetch(p + length);
    return v_exp(v_sub(v_load_f32(p, n), t));
}
/* e, kept at p. */
VFN vf32 kept(vf32 e, float *p, size_t n)
{
    v_store_f32(p, e, n);
    return e;
}

static void rows(size_t rows, size_t length, const float *x, float *y, int log)
{
    for (; rows--; x += length, y += length) {
        V_REDUCE(top, v_max, -__builtin_inff(), length, i, n, v_load_f32(x + i, n));
        const vf32 t = v_set_f32(top);
        double sum = 0;
        for (size_t at = 0; at < length; at += PIECE) {
            const size_t count = length - at < PIECE ? length - at : PIECE;
            const float *from = x + at;
            float *e = y + at;
            float part;
            if (log) {
                V_REDUCE(r, v_sum, 0, count, i, n, power(from + i, t, length, n));
                part = r;
            } else {
                V_REDUCE(r, v_sum, 0, count, i, n, kept(power(from + i, t, length, n), e + i, n));
                part = r;
            }
            sum += (double)part;
        }
        if (log) {
            float s = (float)sum;
            v_store_f32(&s, v_log(v_set_f32(s)), 1);
            const vf32 l = v_set_f32(s);
            V_FOR(i, n, length, v_store_f32(y + i, v_sub(v_sub(v_load_f32(x + i, n), t), l), n););
        } else {
            const vf32 f = v_set_f32((float)(1 / sum));
            V_FOR(i, n, length, v_store_f32(y + i, v_mul(v_load_f32(y + i, n), f), n););
        }
    }
}

/* Four registers of columns at a time, so that sums stay in registers and do not wait for each other. */
#define EACH_4(M, ...) M(0, __VA_ARGS__) M(1, __VA_ARGS__) M(2, __VA_ARGS__) M(3, __VA_ARGS__)
#define LEFT(k) (n > (k)*v_lanes() ? n - (k)*v_lanes() : 0) /* columns in register k and behind it */
#define BEGIN(k, ...) vf32 t##k = v_set_f32(-__builtin_inff()), s##k = v_set_f32(0);
#define COPY(k, ...) \
    { \
        const vf32 v = v_load_f32(from + (k)*v_lanes(), LEFT(k)); \
        t##k = v_max(t##k, v); \
        v_store_f32(to + (k)*v_lanes(), v, LEFT(k)); \
    }
#define POWER(k, ...) \
    { \
        float *at = to + (k)*v_lanes(); \
        const vf32 d = v_sub(v_load_f32(at, LEFT(k)), t##k), e = v_exp(d); \
        s##k = v_add(s##k, e); \
        v_store_f32(at, log ? d : e, LEFT(k)); \
    }
#define TURN(k, ...) s##k = log ? v_log(s##k) : v_div(v_set_f32(1), s##k);
#define SCALE(k, ...) \
    { \
        const vf32 v = v_load_f32(from + (k)*v_lanes(), LEFT(k)); \
        v_store_f32(to + (k)*v_lanes(), log ? v_sub(v, s##k) : v_mul(v, s##k), LEFT(k)); \
    }

VFN void some_columns(size_t n, size_t length, const float *x, size_t x_step, float *tile, size_t width,
                      float *y, size_t y_step, int log)
{
    const float *from = x;
    float *to = tile;
    EACH_4(BEGIN, )
    for (size_t k = 0; k < length; k++, from += x_step, to += width) {
        EACH_4(COPY, )
    }
    to = tile;
    for (size_t k = 0; k < length; k++, to += width) {
        EACH_4(POWER, )
    }
    EACH_4(TURN, )
    from = tile, to = y;
    for (size_t k = 0; k < length; k++, from += width, to += y_step) {
        EACH_4(SCALE, )
    }
}

static void columns(size_t length, size_t width, const float *x, size_t x_step, float *tile, float *y,
                    size_t y_step, int log)
{
    const size_t step = 4 * v_lanes();
    size_t i = 0;
    for (; i + step <= width; i += step)
        some_columns(step, length, x + i, x_step, tile + i, width, y + i, y_step, log);
    if (i < width) some_columns(width - i, length, x + i, x_step, tile + i, width, y + i, y_step, log);
}

const ortc_softmax_rows V_NAME(ortc_softmax_rows) = {rows, columns};
