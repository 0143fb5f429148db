/* kernels/signal/fft.h: discrete Fourier transforms of any length in double, O(n log n).
 *
 * A length that is a power of two is done by radix 2; any other as a convolution with a chirp (Bluestein),
 * which is three transforms of a power of two, one of them made beforehand. Every root of unity is computed
 * by itself, so that errors grow with log n only. Const after ortc_fft_create, shared by threads.
 */
#ifndef ORTC_SIGNAL_FFT_H
#define ORTC_SIGNAL_FFT_H

#include <stddef.h>
#include <stdint.h>

#define ORTC_FFT_LIMIT (INT64_C(1) << 26) /* elements */

/* e^(-2 pi i k / n), 0 <= k < n, n below 2^28. */
void ortc_fft_root(int64_t k, int64_t n, double *out);

typedef struct ortc_fft ortc_fft;

/* n: 1 .. ORTC_FFT_LIMIT. Freed by free(). NULL: no memory. */
ortc_fft *ortc_fft_create(int64_t n);

/* Bytes of scratch that a run over up to n elements takes at most. */
size_t ortc_fft_scratch_for(int64_t n);

/* x: n pairs of real and imaginary part, in place. Inverse: with the other sign, not divided by n. */
void ortc_fft_run(const ortc_fft *, double *x, void *scratch, int inverse);

#endif
