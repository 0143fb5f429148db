/* Winograd's transforms (winograd_uk.h), a body for every instruction set. A transform of a square is one of
 * all its columns, in memory that stays in L1, then one of all its rows. Sums are written so that few
 * operations are needed; each is a fixed tree, the same bits on every instruction set with FMA.
 */
#include "winograd_uk.h"

#include "kernels/common/vector/tile.h"

#define VECTORS (ORTC_BLOCK / LANES) /* of a block */
#define SIDE ORTC_WINOGRAD_SIDE

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif

/* ---- One dimension ------------------------------------------------------------------------------------- */

VFN vf32 times(float c, vf32 x, vf32 y) { return v_fma(v_set_f32(c), x, y); } /* c x + y */

/* B' d */
VFN void input_2(const vf32 *d, vf32 *v)
{
    v[0] = v_sub(d[0], d[2]);
    v[1] = v_add(d[1], d[2]);
    v[2] = v_sub(d[2], d[1]);
    v[3] = v_sub(d[3], d[1]);
}

/* x (x - 1)(x + 1)(x - 1/2)(x + 2), less one factor for each point:
 *    1 -3/2  -2  3/2   1   .
 *    .  -1  1/2  5/2   1   .
 *    .   1 -5/2  1/2   1   .
 *    .  -2   -1    2   1   .
 *    . 1/2   -1 -1/2   1   .
 *    .   1 -3/2   -2 3/2   1 */
VFN void input_4(const vf32 *d, vf32 *v)
{
    const vf32 even = v_sub(d[4], d[2]), odd = v_sub(d[3], d[1]);
    v[0] = times(1.5f, odd, v_add(v_sub(d[0], d[2]), even));
    v[1] = v_sub(times(2.5f, d[3], times(0.5f, d[2], d[4])), d[1]);
    v[2] = v_add(times(-2.5f, d[2], times(0.5f, d[3], d[4])), d[1]);
    v[3] = times(2, odd, even);
    v[4] = times(-0.5f, odd, even);
    v[5] = times(1.5f, even, v_sub(v_sub(d[5], d[3]), odd));
}

/* A' s: powers of the points */
VFN void output_2(const vf32 *s, vf32 *y)
{
    y[0] = v_add(v_add(s[0], s[1]), s[2]);
    y[1] = v_add(v_sub(s[1], s[2]), s[3]);
}
VFN void output_4(const vf32 *s, vf32 *y)
{
    const vf32 sum = v_add(s[1], s[2]), difference = v_sub(s[1], s[2]);
    y[0] = v_add(v_add(s[0], sum), v_add(s[3], s[4]));
    y[1] = times(-2, s[4], times(0.5f, s[3], difference));
    y[2] = times(4, s[4], times(0.25f, s[3], sum));
    y[3] = v_add(times(-8, s[4], times(0.125f, s[3], difference)), s[5]);
}

/* G w, in double: powers of a point over what the other factors are there */
typedef double wide __attribute__((vector_size(LANES * sizeof(double))));
VFN void weights_2(const wide *w, wide *u)
{
    u[0] = w[0];
    u[1] = (w[0] + w[1] + w[2]) * 0.5;
    u[2] = (w[0] - w[1] + w[2]) * 0.5;
    u[3] = w[2];
}
VFN void weights_4(const wide *w, wide *u)
{
    u[0] = w[0];
    u[1] = (w[0] + w[1] + w[2]) * (1.0 / 3);
    u[2] = (w[0] - w[1] + w[2]) * (-1.0 / 3);
    u[3] = (4.0 * w[0] + 2.0 * w[1] + w[2]) * (-4.0 / 15);
    u[4] = (w[0] - 2.0 * w[1] + 4.0 * w[2]) * (1.0 / 15);
    u[5] = w[2];
}

/* ---- Squares ------------------------------------------------------------------------------------------- */

#define INPUT(M) \
    static void input_of_##M(const float *x, size_t row, float *v, size_t step) \
    { \
        enum { N = M + 2 }; \
        _Alignas(64) float between[N][N][LANES]; \
        for (size_t j = 0; j < VECTORS; j++, x += LANES, v += LANES) { \
            for (int c = 0; c < N; c++) { \
                vf32 d[N], t[N]; \
                UNROLL for (int r = 0; r < N; r++) d[r] = V_LOAD(x + (size_t)r * row + c * ORTC_BLOCK); \
                input_##M(d, t); \
                UNROLL for (int r = 0; r < N; r++) V_STORE(between[r][c], t[r]); \
            } \
            for (int r = 0; r < N; r++) { \
                vf32 d[N], t[N]; \
                UNROLL for (int c = 0; c < N; c++) d[c] = V_LOAD(between[r][c]); \
                input_##M(d, t); \
                UNROLL for (int c = 0; c < N; c++) V_STORE(v + (size_t)(r * N + c) * step, t[c]); \
            } \
        } \
    }
INPUT(2)
INPUT(4)

/* 0 * x is a NaN where x is not finite. A pixel of the patch that is not makes sums so at all points that it
 * has a part in, and the corners of the tile together read all points. */
#define OUTPUT(M) \
    static int output_of_##M(const float *s, size_t step, const ortc_winograd_end *e) \
    { \
        enum { N = M + 2 }; \
        _Alignas(64) float between[M][N][LANES]; \
        const vf32 lo = v_set_f32(e->lo), hi = v_set_f32(e->hi); \
        vf32 wrong = v_set_f32(0); \
        for (size_t j = 0; j < VECTORS; j++) { \
            for (int c = 0; c < N; c++) { \
                vf32 d[N], t[M]; \
                UNROLL for (int r = 0; r < N; r++) \
                    d[r] = V_LOAD(s + (size_t)(r * N + c) * step + j * LANES); \
                output_##M(d, t); \
                UNROLL for (int r = 0; r < M; r++) V_STORE(between[r][c], t[r]); \
            } \
            const vf32 bias = V_LOAD(e->bias + j * LANES); \
            for (int r = 0; r < M; r++) { \
                vf32 d[N], t[M]; \
                UNROLL for (int c = 0; c < N; c++) d[c] = V_LOAD(between[r][c]); \
                output_##M(d, t); \
                if (r == 0 || r == M - 1) wrong = times(0, t[0], times(0, t[M - 1], wrong)); \
                const size_t to = (size_t)r * e->pitch + j * LANES; \
                UNROLL for (size_t c = 0; c < M; c++) \
                { \
                    if ((size_t)r >= e->rows || c >= e->cols) break; \
                    vf32 v = v_add(t[c], bias); \
                    if (e->residual) v = v_add(v, V_LOAD(e->residual + to + c * ORTC_BLOCK)); \
                    if (e->clip) v = v_min(hi, v_max(lo, v)); /* v second: a NaN stays */ \
                    V_STORE(e->y + to + c * ORTC_BLOCK, v); \
                } \
            } \
        } \
        return v_any(v_is_nan(wrong)); \
    }
OUTPUT(2)
OUTPUT(4)

/* Points are apart by what is often a power of two, where lines evict each other: each is written at once. */
#define WEIGHTS(M) \
    static void weights_of_##M(const float *w, float *u, size_t step) \
    { \
        enum { N = M + 2 }; \
        wide between[N][VECTORS][3]; \
        for (size_t j = 0; j < VECTORS; j++, w += LANES) \
            for (int k = 0; k < 3; k++) { \
                wide d[3], t[N]; \
                UNROLL for (int r = 0; r < 3; r++) \
                    d[r] = __builtin_convertvector(V_LOAD(w + (r * 3 + k) * ORTC_BLOCK), wide); \
                weights_##M(d, t); \
                UNROLL for (int r = 0; r < N; r++) between[r][j][k] = t[r]; \
            } \
        for (int r = 0; r < N; r++) { \
            vf32 line[N][VECTORS]; \
            for (size_t j = 0; j < VECTORS; j++) { \
                wide t[N]; \
                weights_##M(between[r][j], t); \
                UNROLL for (int k = 0; k < N; k++) line[k][j] = __builtin_convertvector(t[k], vf32); \
            } \
            for (int k = 0; k < N; k++) \
                UNROLL for (size_t j = 0; j < VECTORS; j++) \
                    V_STORE(u + (size_t)(r * N + k) * step + j * LANES, line[k][j]); \
        } \
    }
WEIGHTS(2)
WEIGHTS(4)

const ortc_winograd_uk V_NAME(ortc_winograd_uk) = {
    {{input_of_2, output_of_2, weights_of_2}, {input_of_4, output_of_4, weights_of_4}}};
