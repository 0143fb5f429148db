/* Normalisation of rows (rows.h), a body for every instruction set. Sums are of pieces in f32, joined in
 * order in f64. */
#include "kernels/norm/rows.h"

#include <math.h>

#include "kernels/common/blocks.h"
#include "kernels/common/vector/reduce.h"
#include "kernels/gemm/amx_bf16.h"

enum { PIECE = 4096 };

VFN vf32 square(vf32 d) { return v_mul(d, d); }
VFN vf32 itself(vf32 d) { return d; }

/* The sum of what `of` makes of distances from `mean`. */
#define SUM(name, type, load, of) \
    static double name(size_t length, const void *x, float mean) \
    { \
        const vf32 m = v_set_f32(mean); \
        double all = 0; \
        for (size_t at = 0; at < length; at += PIECE) { \
            const size_t count = length - at < PIECE ? length - at : PIECE; \
            const type *from = (const type *)x + at; \
            V_REDUCE(sum, v_sum, 0, count, i, n, of(v_sub(load(from + i, n), m))); \
            all += (double)sum; \
        } \
        return all; \
    }
#define ROWS(T, type) \
    SUM(distances_##T, type, v_load_##T, itself) \
    SUM(squares_##T, type, v_load_##T, square) \
    static void measure_##T(size_t rows, size_t length, const void *from, int centred, double *mean, \
                            double *variance) \
    { \
        const type *x = from; \
        for (size_t r = 0; r < rows; r++) \
            mean[r] = centred ? distances_##T(length, x + r * length, 0) / (double)length : 0; \
        for (size_t r = 0; r < rows; r++) \
            variance[r] = squares_##T(length, x + r * length, (float)mean[r]) / (double)length; \
    } \
    static void apply_##T(size_t length, const void *from, float mean, float factor, const float *scale, \
                          const float *bias, void *to) \
    { \
        const type *x = from; \
        type *y = to; \
        const vf32 m = v_set_f32(mean), f = v_set_f32(factor); \
        if (bias) \
            V_FOR(i, n, length, { \
                const vf32 d = v_mul(v_sub(v_load_##T(x + i, n), m), f); \
                v_store_##T(y + i, v_fma(d, v_load_f32(scale + i, n), v_load_f32(bias + i, n)), n); \
            }); \
        else \
            V_FOR(i, n, length, { \
                const vf32 d = v_mul(v_sub(v_load_##T(x + i, n), m), f); \
                v_store_##T(y + i, v_mul(d, v_load_f32(scale + i, n)), n); \
            }); \
    }
ROWS(f32, float)
ROWS(f16, uint16_t)
ROWS(bf16, uint16_t)

/* ---- Short rows of f32 --------------------------------------------------------------------------------- */

/* A row stays in registers, and does not wait for the one before; sums are those of V_REDUCE, bit for bit. */
#if V_LANES >= 8
enum { GROUP = 64 / V_LANES }; /* vectors whose lanes are summed apart */

/* The sum of all lanes of nv vectors. */
VFN float fold(const int nv, const vf32 *x)
{
    vf32 sum[GROUP];
    for (int k = 0; k < GROUP && k < nv; k++) sum[k] = k + GROUP < nv ? v_add(x[k], x[k + GROUP]) : x[k];
    for (int half = GROUP / 2; half > 0; half /= 2)
        for (int k = 0; k < half && k + half < nv; k++) sum[k] = v_add(sum[k], sum[k + half]);
    return V_ACROSS(v_sum, sum[0]);
}

VFN void short_rows_of(const int nv, size_t rows, size_t length, const float *x, int centred, double epsilon,
                       const float *scale, const float *bias, float *y)
{
    const size_t last = length - (size_t)(nv - 1) * V_LANES;
    const int whole = last == V_LANES;
#define PART(k) (k < nv - 1 || whole ? (size_t)V_LANES : last)
    for (; rows > 0; rows--, x += length, y += length) {
        vf32 v[2 * GROUP], square[2 * GROUP];
        for (int k = 0; k < nv; k++) v[k] = v_load_f32(x + k * V_LANES, PART(k));
        const double mean = centred ? (double)fold(nv, v) / (double)length : 0;
        const vf32 m = v_set_f32((float)mean);
        for (int k = 0; k < nv; k++) {
            v[k] = v_sub(v[k], m);
            if (k == nv - 1 && !whole) v[k] = v_keep(v[k], last, 0);
            square[k] = v_mul(v[k], v[k]);
        }
        const double variance = (double)fold(nv, square) / (double)length;
        const vf32 f = v_set_f32((float)(1 / sqrt(variance + epsilon)));
        for (int k = 0; k < nv; k++) {
            const vf32 d = v_mul(v[k], f), by = v_load_f32(scale + k * V_LANES, PART(k));
            v_store_f32(y + k * V_LANES,
                        bias ? v_fma(d, by, v_load_f32(bias + k * V_LANES, PART(k))) : v_mul(d, by), PART(k));
        }
    }
#undef PART
}

#define SHORT(nv) \
    static void short_rows_##nv(size_t rows, size_t length, const float *x, int centred, double epsilon, \
                                const float *scale, const float *bias, float *y) \
    { \
        short_rows_of(nv, rows, length, x, centred, epsilon, scale, bias, y); \
    }
#define ENTRY(nv) short_rows_##nv,
#define UP_TO_8(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)
#if V_LANES == 16
#define EACH(X) UP_TO_8(X)
#else
#define EACH(X) UP_TO_8(X) X(9) X(10) X(11) X(12) X(13) X(14) X(15) X(16)
#endif
EACH(SHORT)

static int short_rows(size_t rows, size_t length, const float *x, int centred, double epsilon,
                      const float *scale, const float *bias, float *y)
{
    static void (*const of[])(size_t, size_t, const float *, int, double, const float *, const float *,
                              float *) = {EACH(ENTRY)};
    if (length == 0 || length > 2 * GROUP * V_LANES) return 0;
    of[(length - 1) / V_LANES](rows, length, x, centred, epsilon, scale, bias, y);
    return 1;
}
#else
static int short_rows(size_t rows, size_t length, const float *x, int centred, double epsilon,
                      const float *scale, const float *bias, float *y)
{
    (void)rows, (void)length, (void)x, (void)centred, (void)epsilon, (void)scale, (void)bias, (void)y;
    return 0;
}
#endif

#ifdef __AVX512F__
/* As apply_bf16, rounded by AMX's own instruction. */
static void apply_amx(size_t length, const void *from, float mean, float factor, const float *scale,
                      const float *bias, void *to)
{
    enum { L = V_LANES };
    const uint16_t *x = from;
    uint16_t *y = to;
    const vf32 m = v_set_f32(mean), f = v_set_f32(factor), zero = v_set_f32(0);
    size_t i = 0;
    for (; i + 2 * L <= length; i += 2 * L) {
        const vf32 a = v_mul(v_sub(v_load_bf16(x + i, L), m), f),
                   b = v_mul(v_sub(v_load_bf16(x + i + L, L), m), f);
        amx_store_two_bf16(y + i, v_fma(a, v_load_f32(scale + i, L), bias ? v_load_f32(bias + i, L) : zero),
                           v_fma(b, v_load_f32(scale + i + L, L), bias ? v_load_f32(bias + i + L, L) : zero));
    }
    for (; i < length; i += L) {
        const size_t n = length - i;
        const vf32 d = v_mul(v_sub(v_load_bf16(x + i, n), m), f);
        amx_store_bf16(y + i, v_fma(d, v_load_f32(scale + i, n), bias ? v_load_f32(bias + i, n) : zero), n);
    }
}
#else
#define apply_amx NULL
#endif

static void apply_one(size_t length, const float *x, float mean, float factor, float scale, float bias,
                      float *y)
{
    const vf32 m = v_set_f32(mean), f = v_set_f32(factor), s = v_set_f32(scale), b = v_set_f32(bias);
    V_FOR(i, n, length, {
        const vf32 d = v_mul(v_sub(v_load_f32(x + i, n), m), f);
        v_store_f32(y + i, v_fma(d, s, b), n);
    });
}

/* Four positions in turn: none waits for the one before. */
enum { TURNS = 4 };

/* The sums of (x - from) * (x - from), or of x - from, of the channels `at` of n positions. */
VFN vf32 sum_channel(const int squared, size_t n, const float *x, vf32 from)
{
    vf32 sum[TURNS];
    for (int k = 0; k < TURNS; k++) sum[k] = v_set_f32(0);
    for (; n >= TURNS; n -= TURNS, x += TURNS * ORTC_BLOCK)
        for (int k = 0; k < TURNS; k++) {
            const vf32 d = v_sub(v_load_f32(x + k * ORTC_BLOCK, V_LANES), from);
            sum[k] = squared ? v_fma(d, d, sum[k]) : v_add(sum[k], d);
        }
    for (; n; n--, x += ORTC_BLOCK) {
        const vf32 d = v_sub(v_load_f32(x, V_LANES), from);
        sum[0] = squared ? v_fma(d, d, sum[0]) : v_add(sum[0], d);
    }
    return v_add(v_add(sum[0], sum[1]), v_add(sum[2], sum[3]));
}

static void measure_blocks(size_t n, const float *x, float *mean, float *squares)
{
    const vf32 each = v_set_f32(1 / (float)n);
    for (int c = 0; c < ORTC_BLOCK; c += V_LANES) {
        const vf32 m = v_mul(sum_channel(0, n, x + c, v_set_f32(0)), each);
        v_store_f32(mean + c, m, V_LANES);
        v_store_f32(squares + c, sum_channel(1, n, x + c, m), V_LANES);
    }
}

static void apply_blocks(size_t n, const float *x, const float *mean, const float *factor, const float *bias,
                         float *y)
{
    for (; n; n--, x += ORTC_BLOCK, y += ORTC_BLOCK)
        for (int c = 0; c < ORTC_BLOCK; c += V_LANES) {
            const vf32 d = v_sub(v_load_f32(x + c, V_LANES), v_load_f32(mean + c, V_LANES));
            v_store_f32(y + c, v_fma(d, v_load_f32(factor + c, V_LANES), v_load_f32(bias + c, V_LANES)),
                        V_LANES);
        }
}

static void dequantise(size_t count, const void *x, int is_signed, int32_t zero, float scale, float *y)
{
    const vi32 less = v_set_i32(zero);
    const vf32 s = v_set_f32(scale);
    V_FOR(i, n, count, {
        const vi32 v = is_signed ? v_load_i8((const int8_t *)x + i, n) : v_load_u8((const uint8_t *)x + i, n);
        v_store_f32(y + i, v_mul(v_f32_of_i32(v_sub(v, less)), s), n);
    });
}

const ortc_layer_rows V_NAME(ortc_layer_rows) = {{measure_f32, measure_f16, measure_bf16},
                                                 {apply_f32, apply_f16, apply_bf16},
                                                 apply_amx,
                                                 short_rows,
                                                 distances_f32,
                                                 squares_f32,
                                                 apply_one,
                                                 measure_blocks,
                                                 apply_blocks,
                                                 dequantise};
