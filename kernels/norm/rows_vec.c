/* Normalisation of rows (rows.h), a body for every instruction set. Sums are of pieces in f32, joined in
 * order in f64. */
#include "kernels/norm/rows.h"

#include "kernels/common/vector/reduce.h"

enum { PIECE = 4096 };

static double distances(size_t length, const float *x, float mean)
{
    const vf32 m = v_set_f32(mean);
    double all = 0;
    for (size_t at = 0; at < length; at += PIECE) {
        const size_t count = length - at < PIECE ? length - at : PIECE;
        V_REDUCE(sum, v_sum, 0, count, i, n, v_sub(v_load_f32(x + at + i, n), m));
        all += (double)sum;
    }
    return all;
}

static double squares(size_t length, const float *x, float mean)
{
    const vf32 m = v_set_f32(mean);
    double all = 0;
    for (size_t at = 0; at < length; at += PIECE) {
        const size_t count = length - at < PIECE ? length - at : PIECE;
        V_REDUCE(sum, v_sum, 0, count, i, n,
                 v_mul(v_sub(v_load_f32(x + at + i, n), m), v_sub(v_load_f32(x + at + i, n), m)));
        all += (double)sum;
    }
    return all;
}

static void measure(size_t length, const float *x, int centred, double *mean, double *variance)
{
    *mean = centred ? distances(length, x, 0) / (double)length : 0;
    *variance = squares(length, x, (float)*mean) / (double)length;
}

static void apply(size_t length, const float *x, float mean, float factor, const float *scale,
                  const float *bias, float *y)
{
    const vf32 m = v_set_f32(mean), f = v_set_f32(factor);
    if (bias)
        V_FOR(i, n, length, {
            const vf32 d = v_mul(v_sub(v_load_f32(x + i, n), m), f);
            v_store_f32(y + i, v_fma(d, v_load_f32(scale + i, n), v_load_f32(bias + i, n)), n);
        });
    else
        V_FOR(i, n, length, {
            const vf32 d = v_mul(v_sub(v_load_f32(x + i, n), m), f);
            v_store_f32(y + i, v_mul(d, v_load_f32(scale + i, n)), n);
        });
}

static void apply_one(size_t length, const float *x, float mean, float factor, float scale, float bias,
                      float *y)
{
    const vf32 m = v_set_f32(mean), f = v_set_f32(factor), s = v_set_f32(scale), b = v_set_f32(bias);
    V_FOR(i, n, length, {
        const vf32 d = v_mul(v_sub(v_load_f32(x + i, n), m), f);
        v_store_f32(y + i, v_fma(d, s, b), n);
    });
}

const ortc_layer_rows V_NAME(ortc_layer_rows) = {distances, squares, measure, apply, apply_one};
