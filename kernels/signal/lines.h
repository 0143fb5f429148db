/* kernels/signal/lines.h: the passes of Fourier transforms of several lines at once, in f32: the bodies'
 * contract (lines_vec.c).
 *
 * An element of all lines is a row of real parts and one of imaginary parts, `im` floats behind it (or before
 * it: where parts change places a transform is the inverse one).
 */
#ifndef ORTC_KERNELS_SIGNAL_LINES_H
#define ORTC_KERNELS_SIGNAL_LINES_H

#include "kernels/common/uk.h"

#define ORTC_FFT_RADICES 8 /* 2, 3, 4, 5, 7, 8, 11, 13 */

/* One step of Stockham's algorithm, which needs no other order of elements before or behind it: of x, whose
 * element p + i * m is at (p + i * m) * block, to y, where element p * radix + q is
 * w[p][q] * sum over i of x[p + i * m] * e^(-2 pi i q / radix), w[p][0] being 1. What is called an element
 * here is `repeat` rows of `count` floats, `step` floats apart. */
typedef struct ortc_fft_pass {
    size_t radix, m;
    size_t block, repeat, step, count;
    ptrdiff_t im;
    const float *w; /* [m][radix - 1][2] */
} ortc_fft_pass;

/* Rows: `count` floats each, `step` floats apart from element to element. */
typedef struct ortc_fft_rows {
    size_t step, count;
    ptrdiff_t im;
} ortc_fft_rows;

typedef struct ortc_fft_lines {
    void (*pass)(const ortc_fft_pass *, const float *x, float *y);
    /* y = x * w, n elements; y may be x. */
    void (*multiply)(const ortc_fft_rows *, size_t n, const float *x, const float *w, float *y);
    /* Of a line of 2 h numbers, which as pairs are h complex ones with the transform x: its transform y, of
     * h + 1 elements. w: e^(-pi i k / h) / 2, k up to h. */
    void (*whole)(const ortc_fft_rows *, size_t h, const float *x, const float *w, float *y);
    /* Backwards, to what becomes such pairs by the inverse transform. The imaginary parts of the first and
     * the last element count as 0. */
    void (*halves)(const ortc_fft_rows *, size_t h, const float *x, const float *w, float *y);
    /* n floats, each times f; n pairs of floats apart, and together. */
    void (*scale)(size_t n, float *x, float f);
    void (*split)(size_t n, const float *x, float *re, float *im);
    void (*join)(size_t n, const float *re, const float *im, float *x);
} ortc_fft_lines;
ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_fft_lines)

#endif
