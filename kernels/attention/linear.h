/* kernels/attention/linear.h: LinearAttention and CausalConvWithState: what ref (ref_linear.c) and the cpu
 * (cpu_linear.c) read once, and the bodies' contract (linear_vec.c). */
#ifndef ORTC_KERNELS_LINEAR_H
#define ORTC_KERNELS_LINEAR_H

#include "kernels/attention/attention.h"
#include "kernels/common/uk.h"

/* S [D, Dv] per head of keys:
 *
 *   S = exp(decay) S                          gated rules
 *   v = beta (v - S' k)                       delta rules
 *   S = S + k v',  y = scale S' q
 */
typedef struct ortc_linear_state {
    int64_t q_heads, kv_heads;
    bool gated, delta;
    double scale; /* 0: 1 / sqrt(D) */
} ortc_linear_state;

ortc_status ortc_linear_prepare(const ortc_node *, ortc_prep *, void **out);
ortc_status ortc_causal_prepare(const ortc_node *, ortc_prep *, void **out); /* state: bool, whether silu */

typedef struct ortc_linear_vec {
    /* y [values] = scale * sum over the `size` rows d of S of k[d] S[d] */
    void (*read)(size_t size, size_t values, const float *S, const float *k, float scale, float *y);
    /* S[d] += k[d] v, and y as read has it of q */
    void (*step)(size_t size, size_t values, float *S, const float *k, const float *v, const float *q,
                 float scale, float *y);
    /* v = beta (v - known) */
    void (*correct)(size_t n, float beta, const float *known, float *v);
    void (*exp)(size_t n, const float *x, float *y);
    void (*scale)(size_t n, float by, float *x);
    /* y[i] = f(bias + sum over k of w[k] x[i + k]), i below n; f: SiLU or nothing */
    void (*convolve)(size_t n, size_t taps, const float *x, const float *w, float bias, int silu, float *y);
} ortc_linear_vec;
ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_linear_vec)

#endif
