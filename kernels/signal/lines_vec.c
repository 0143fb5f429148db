/* Passes of Fourier transforms (lines.h), a body for every instruction set. Butterflies are arrays of
 * registers. */
#include "kernels/signal/lines.h"

#include "kernels/common/vector/tile.h"

enum { MOST = 13 };

typedef struct pair {
    vf32 re, im;
} pair;

/* Sums over i of a[i] * e^(-2 pi i q / r), q = 0 .. r-1. */
VFN void two(const pair *a, pair *b)
{
    b[0] = (pair){v_add(a[0].re, a[1].re), v_add(a[0].im, a[1].im)};
    b[1] = (pair){v_sub(a[0].re, a[1].re), v_sub(a[0].im, a[1].im)};
}
VFN void four(const pair *a, pair *b)
{
    const pair even[2] = {a[0], a[2]}, odd[2] = {a[1], a[3]};
    pair e[2], o[2];
    two(even, e), two(odd, o);
    b[0] = (pair){v_add(e[0].re, o[0].re), v_add(e[0].im, o[0].im)};
    b[1] = (pair){v_add(e[1].re, o[1].im), v_sub(e[1].im, o[1].re)}; /* o[1] times -i */
    b[2] = (pair){v_sub(e[0].re, o[0].re), v_sub(e[0].im, o[0].im)};
    b[3] = (pair){v_sub(e[1].re, o[1].im), v_add(e[1].im, o[1].re)};
}

/* Of even and of odd elements, whose b[k] are turned by k eighths. */
VFN void eight(const pair *a, pair *b)
{
    const pair even[4] = {a[0], a[2], a[4], a[6]}, odd[4] = {a[1], a[3], a[5], a[7]};
    const vf32 diagonal = v_set_f32(0.707106781186547524F);
    pair e[4], o[4];
    four(even, e), four(odd, o);
    o[1] = (pair){v_mul(diagonal, v_add(o[1].re, o[1].im)), v_mul(diagonal, v_sub(o[1].im, o[1].re))};
    o[2] = (pair){o[2].im, v_sub(v_set_f32(0), o[2].re)};
    o[3] = (pair){v_mul(diagonal, v_sub(o[3].im, o[3].re)),
                  v_sub(v_set_f32(0), v_mul(diagonal, v_add(o[3].re, o[3].im)))};
    V_UNROLL for (int k = 0; k < 4; k++)
    {
        b[k] = (pair){v_add(e[k].re, o[k].re), v_add(e[k].im, o[k].im)};
        b[k + 4] = (pair){v_sub(e[k].re, o[k].re), v_sub(e[k].im, o[k].im)};
    }
}

/* cos and sin of 2 pi k / r, k up to r / 2. */
static const float cosines[MOST + 1][MOST / 2 + 1] = {
    [3] = {1, -0.5F},
    [5] = {1, 0.309016994374947424F, -0.809016994374947424F},
    [7] = {1, 0.623489801858733531F, -0.222520933956314404F, -0.900968867902419126F},
    [11] = {1, 0.841253532831181169F, 0.415415013001886425F, -0.142314838273285140F, -0.654860733945285064F,
            -0.959492973614497389F},
    [13] = {1, 0.885456025653209896F, 0.568064746731155803F, 0.120536680255323014F, -0.354604887042535626F,
            -0.748510748171101098F, -0.970941817426052027F}};
static const float sines[MOST + 1][MOST / 2 + 1] = {
    [3] = {0, 0.866025403784438647F},
    [5] = {0, 0.951056516295153572F, 0.587785252292473129F},
    [7] = {0, 0.781831482468029809F, 0.974927912181823607F, 0.433883739117558120F},
    [11] = {0, 0.540640817455597582F, 0.909631995354518371F, 0.989821441880932732F, 0.755749574354258284F,
            0.281732556841429697F},
    [13] = {0, 0.464723172043768545F, 0.822983865893656450F, 0.992708874098054028F, 0.935016242685414804F,
            0.663122658240795320F, 0.239315664287557686F}};

/* What lies about the middle has sums and differences in common. */
VFN void odd(const int r, const pair *a, pair *b)
{
    pair sum[MOST / 2 + 1], less[MOST / 2 + 1];
    b[0] = a[0];
    V_UNROLL for (int j = 1; j <= r / 2; j++)
    {
        sum[j] = (pair){v_add(a[j].re, a[r - j].re), v_add(a[j].im, a[r - j].im)};
        less[j] = (pair){v_sub(a[j].re, a[r - j].re), v_sub(a[j].im, a[r - j].im)};
        b[0] = (pair){v_add(b[0].re, sum[j].re), v_add(b[0].im, sum[j].im)};
    }
    V_UNROLL for (int q = 1; q <= r / 2; q++)
    {
        pair s = a[0], d = {v_set_f32(0), v_set_f32(0)};
        V_UNROLL for (int j = 1; j <= r / 2; j++)
        {
            const int k = j * q % r, near = k <= r / 2 ? k : r - k;
            const vf32 c = v_set_f32(cosines[r][near]),
                       e = v_set_f32(k <= r / 2 ? sines[r][near] : -sines[r][near]);
            s = (pair){v_fma(c, sum[j].re, s.re), v_fma(c, sum[j].im, s.im)};
            d = (pair){v_fma(e, less[j].re, d.re), v_fma(e, less[j].im, d.im)};
        }
        b[q] = (pair){v_add(s.re, d.im), v_sub(s.im, d.re)};
        b[r - q] = (pair){v_sub(s.re, d.im), v_add(s.im, d.re)};
    }
}

VFN pair times(pair a, float re, float im)
{
    const vf32 c = v_set_f32(re), s = v_set_f32(im);
    return (pair){v_sub(v_mul(a.re, c), v_mul(a.im, s)), v_fma(a.re, s, v_mul(a.im, c))};
}

VFN void pass_of(const int r, const ortc_fft_pass *t, const float *x, float *y)
{
    const size_t m = t->m, block = t->block, step = t->step, repeat = t->repeat, count = t->count;
    const ptrdiff_t im = t->im;
    const float *w = t->w;
    for (size_t p = 0; p < m; p++, w += 2 * (r - 1)) {
        const float *from = x + p * block;
        float *to = y + p * (size_t)r * block;
        for (size_t k = 0; k < repeat; k++, from += step, to += step)
            V_FOR(at, n, count, {
                pair a[MOST], b[MOST];
                V_UNROLL for (int i = 0; i < r; i++)
                {
                    const float *v = from + (size_t)i * m * block + at;
                    a[i] = (pair){v_load_f32(v, n), v_load_f32(v + im, n)};
                }
                if (r == 2)
                    two(a, b);
                else if (r == 4)
                    four(a, b);
                else if (r == 8)
                    eight(a, b);
                else
                    odd(r, a, b);
                V_UNROLL for (int q = 0; q < r; q++)
                {
                    float *v = to + (size_t)q * block + at;
                    if (q > 0) b[q] = times(b[q], w[2 * q - 2], w[2 * q - 1]);
                    v_store_f32(v, b[q].re, n);
                    v_store_f32(v + im, b[q].im, n);
                }
            });
    }
}

#define EACH_RADIX(X) X(2) X(3) X(4) X(5) X(7) X(8) X(11) X(13)
#define PASS(r) \
    static void pass_##r(const ortc_fft_pass *t, const float *x, float *y) { pass_of(r, t, x, y); }
EACH_RADIX(PASS)
static void pass(const ortc_fft_pass *t, const float *x, float *y)
{
    switch (t->radix) {
#define RUN(r) \
    case r: pass_##r(t, x, y); break;
        EACH_RADIX(RUN)
    }
}

static void multiply(const ortc_fft_rows *r, size_t n, const float *x, const float *w, float *y)
{
    for (size_t i = 0; i < n; i++, x += r->step, y += r->step, w += 2)
        V_FOR(at, left, r->count, {
            const pair v = times((pair){v_load_f32(x + at, left), v_load_f32(x + r->im + at, left)}, w[0],
                                 w[1]);
            v_store_f32(y + at, v.re, left);
            v_store_f32(y + r->im + at, v.im, left);
        });
}

/* Elements k and h - k are the sums and differences of what even and odd numbers become. */
static void whole(const ortc_fft_rows *r, size_t h, const float *x, const float *w, float *y)
{
    const vf32 half = v_set_f32(0.5F);
    for (size_t k = 0; k <= h; k++, y += r->step, w += 2) {
        const float *z = x + k % h * r->step, *u = x + (h - k) % h * r->step;
        V_FOR(at, n, r->count, {
            const vf32 zr = v_load_f32(z + at, n), zi = v_load_f32(z + r->im + at, n);
            const vf32 ur = v_load_f32(u + at, n), ui = v_load_f32(u + r->im + at, n);
            const pair o = times((pair){v_add(zi, ui), v_sub(ur, zr)}, w[0], w[1]);
            v_store_f32(y + at, v_fma(v_add(zr, ur), half, o.re), n);
            v_store_f32(y + r->im + at, v_fma(v_sub(zi, ui), half, o.im), n);
        });
    }
}

static void halves(const ortc_fft_rows *r, size_t h, const float *x, const float *w, float *y)
{
    const vf32 half = v_set_f32(0.5F), none = v_set_f32(0);
    for (size_t k = 0; k < h; k++, y += r->step, w += 2) {
        const float *z = x + k * r->step, *u = x + (h - k) * r->step;
        V_FOR(at, n, r->count, {
            const vf32 zr = v_load_f32(z + at, n), ur = v_load_f32(u + at, n);
            const vf32 zi = k ? v_load_f32(z + r->im + at, n) : none;
            const vf32 ui = k ? v_load_f32(u + r->im + at, n) : none;
            const pair o = times((pair){v_sub(zr, ur), v_add(zi, ui)}, w[0], -w[1]);
            v_store_f32(y + at, v_sub(v_mul(v_add(zr, ur), half), o.im), n);
            v_store_f32(y + r->im + at, v_fma(v_sub(zi, ui), half, o.re), n);
        });
    }
}

static void scale(size_t n, float *x, float f)
{
    const vf32 by = v_set_f32(f);
    V_FOR(i, left, n, v_store_f32(x + i, v_mul(v_load_f32(x + i, left), by), left););
}

/* Loops that compilers make vectors of. */
static void split(size_t n, const float *restrict x, float *restrict re, float *restrict im)
{
    for (size_t i = 0; i < n; i++) re[i] = x[2 * i], im[i] = x[2 * i + 1];
}
static void join(size_t n, const float *restrict re, const float *restrict im, float *restrict x)
{
    for (size_t i = 0; i < n; i++) x[2 * i] = re[i], x[2 * i + 1] = im[i];
}

const ortc_fft_lines V_NAME(ortc_fft_lines) = {pass, multiply, whole, halves, scale, split, join};
