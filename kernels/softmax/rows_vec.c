/* Softmax of rows and of columns, a body for every instruction set. The largest is taken off, exponentials
 * are summed, in pieces that stay in L1; pieces are joined in order. A NaN is in the sum, and so in every
 * result of its row.
 */
#include "kernels/softmax/rows.h"

#include "kernels/common/vector/math.h"
#include "kernels/common/vector/reduce.h"

enum { PIECE = 1024 };

static void rows(size_t rows, size_t length, const float *x, float *y, int log)
{
    float piece[PIECE];
    for (; rows--; x += length, y += length) {
        V_REDUCE(top, v_max, -__builtin_inff(), length, i, n, v_load_f32(x + i, n));
        const vf32 t = v_set_f32(top);
        double sum = 0;
        for (size_t at = 0; at < length; at += PIECE) {
            const size_t count = length - at < PIECE ? length - at : PIECE;
            float *e = log ? piece : y + at;
            V_FOR(i, n, count, v_store_f32(e + i, v_exp(v_sub(v_load_f32(x + at + i, n), t)), n););
            V_REDUCE(part, v_sum, 0, count, i, n, v_load_f32(e + i, n));
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

static void columns(size_t length, size_t width, size_t step, const float *x, float *y, float *top,
                    float *sum, int log)
{
    V_FOR(i, n, width, {
        vf32 t = v_set_f32(-__builtin_inff());
        for (size_t k = 0; k < length; k++) t = v_max(t, v_load_f32(x + k * step + i, n));
        v_store_f32(top + i, t, n);
        v_store_f32(sum + i, v_set_f32(0), n);
    });
    for (size_t k = 0; k < length; k++) {
        const float *from = x + k * step;
        float *to = y + k * step;
        V_FOR(i, n, width, {
            const vf32 e = v_exp(v_sub(v_load_f32(from + i, n), v_load_f32(top + i, n)));
            v_store_f32(sum + i, v_add(v_load_f32(sum + i, n), e), n);
            if (!log) v_store_f32(to + i, e, n);
        });
    }
    V_FOR(i, n, width, {
        const vf32 s = v_load_f32(sum + i, n);
        v_store_f32(sum + i, log ? v_log(s) : v_div(v_set_f32(1), s), n);
    });
    for (size_t k = 0; k < length; k++) {
        const float *from = x + k * step;
        float *to = y + k * step;
        V_FOR(i, n, width, {
            const vf32 s = v_load_f32(sum + i, n);
            v_store_f32(to + i,
                        log ? v_sub(v_sub(v_load_f32(from + i, n), v_load_f32(top + i, n)), s)
                            : v_mul(v_load_f32(to + i, n), s),
                        n);
        });
    }
}

const ortc_softmax_rows V_NAME(ortc_softmax_rows) = {rows, columns};
