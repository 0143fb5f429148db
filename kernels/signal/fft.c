/* kernels/signal/fft.c: radix 2, and Bluestein's chirps over it (fft.h). */
#include "kernels/signal/fft.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct ortc_fft {
    int64_t n, m;   /* m: the power of two that is transformed; n where n is one */
    double *roots;  /* m / 2 of them: e^(-2 pi i k / m) */
    double *chirp;  /* n of them: e^(-pi i k^2 / n); not where n is a power of two */
    double *filter; /* the transform of the conjugate chirp, over m */
};

/* By an angle of at most pi / 4, so that the axes and diagonals are exact. */
void ortc_fft_root(int64_t k, int64_t n, double *out)
{
    const double pi = 3.14159265358979323846;
    const int64_t eighth = 8 * k / n; /* k and n are below 2^28 */
    int64_t r = k;
    double c, s, t;
    if (eighth & 1) {                          /* mirrored at the next axis */
        const int64_t axis = (eighth + 1) / 2; /* axis n / 4 - k, times 4 to stay whole */
        t = 2 * pi * (double)(axis * n - 4 * k) / (4 * (double)n);
        c = cos(t), s = -sin(t);
        r = axis;
    } else {
        const int64_t axis = eighth / 2;
        t = 2 * pi * (double)(4 * k - axis * n) / (4 * (double)n);
        c = cos(t), s = sin(t);
        r = axis;
    }
    switch (r & 3) { /* the angle from the axis, turned by quarters */
    case 0: out[0] = c, out[1] = -s; break;
    case 1: out[0] = -s, out[1] = -c; break;
    case 2: out[0] = -c, out[1] = s; break;
    default: out[0] = s, out[1] = c;
    }
}

static void swap_bits(double *x, int64_t m)
{
    for (int64_t i = 1, j = 0; i < m; i++) {
        int64_t bit = m >> 1;
        for (; j & bit; bit >>= 1) j ^= bit;
        j ^= bit;
        if (i >= j) continue;
        for (int k = 0; k < 2; k++) {
            const double t = x[2 * i + k];
            x[2 * i + k] = x[2 * j + k];
            x[2 * j + k] = t;
        }
    }
}

static void radix2(double *x, int64_t m, const double *roots)
{
    swap_bits(x, m);
    for (int64_t half = 1; half < m; half *= 2)
        for (int64_t start = 0; start < m; start += 2 * half)
            for (int64_t k = 0; k < half; k++) {
                double *a = x + 2 * (start + k), *b = a + 2 * half;
                const double *w = roots + 2 * (k * (m / (2 * half)));
                const double re = b[0] * w[0] - b[1] * w[1], im = b[0] * w[1] + b[1] * w[0];
                b[0] = a[0] - re, b[1] = a[1] - im;
                a[0] += re, a[1] += im;
            }
}

ortc_fft *ortc_fft_create(int64_t n)
{
    int64_t m = 1;
    while (m < n) m *= 2;
    const int chirps = m != n;
    if (chirps)
        while (m < 2 * n - 1) m *= 2;
    const size_t roots = (size_t)m, chirp = chirps ? 2 * (size_t)n : 0, filter = chirps ? 2 * (size_t)m : 0;
    ortc_fft *f = malloc(sizeof *f + (roots + chirp + filter) * sizeof(double));
    if (!f) return NULL;
    f->n = n, f->m = m;
    f->roots = (double *)(f + 1);
    f->chirp = f->roots + roots, f->filter = f->chirp + chirp;
    for (int64_t k = 0; k < m / 2; k++) ortc_fft_root(k, m, f->roots + 2 * k);
    if (!chirps) return f;
    memset(f->filter, 0, filter * sizeof *f->filter);
    for (int64_t k = 0, square = 0; k < n; square = (square + 2 * k + 1) % (2 * n), k++) {
        ortc_fft_root(square, 2 * n, f->chirp + 2 * k); /* square: k^2 modulo 2 n */
        for (int64_t at = k, i = 0; i < 2; i++, at = (m - k) % m) {
            f->filter[2 * at] = f->chirp[2 * k];
            f->filter[2 * at + 1] = -f->chirp[2 * k + 1];
        }
    }
    radix2(f->filter, m, f->roots);
    return f;
}

size_t ortc_fft_scratch_for(int64_t n) { return 8 * (size_t)n * sizeof(double); } /* m < 4 n */

static void conjugate(double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) x[2 * i + 1] = -x[2 * i + 1];
}

/* out = a * b; out may be a. */
static void multiply(double *out, const double *a, const double *b, int64_t n, double scale)
{
    for (int64_t i = 0; i < n; i++) {
        const double re = a[2 * i] * b[2 * i] - a[2 * i + 1] * b[2 * i + 1],
                     im = a[2 * i] * b[2 * i + 1] + a[2 * i + 1] * b[2 * i];
        out[2 * i] = re * scale, out[2 * i + 1] = im * scale;
    }
}

void ortc_fft_run(const ortc_fft *f, double *x, void *scratch, int inverse)
{
    if (inverse) conjugate(x, f->n);
    if (f->n == f->m) {
        radix2(x, f->m, f->roots);
    } else {
        double *y = scratch;
        multiply(y, x, f->chirp, f->n, 1);
        memset(y + 2 * f->n, 0, 2 * (size_t)(f->m - f->n) * sizeof *y);
        radix2(y, f->m, f->roots);
        multiply(y, y, f->filter, f->m, 1);
        conjugate(y, f->m);
        radix2(y, f->m, f->roots);
        conjugate(y, f->n);
        multiply(x, y, f->chirp, f->n, 1 / (double)f->m);
    }
    if (inverse) conjugate(x, f->n);
}
