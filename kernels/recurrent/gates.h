/* Gates of RNN, GRU and LSTM over rows of f32 on vectors: the bodies' contract (gates_vec.c). */
#ifndef ORTC_KERNELS_RECURRENT_GATES_H
#define ORTC_KERNELS_RECURRENT_GATES_H

#include "kernels/common/uk.h"
#include "kernels/recurrent/recurrent.h"

/* Results may lie over any operand. */
typedef struct ortc_gates {
    /* y = f(x within -clip .. clip), f by ORTC_GATE_* */
    void (*apply[ORTC_GATE_COUNT])(size_t n, const float *x, float clip, float alpha, float beta, float *y);
    void (*multiply)(size_t n, const float *a, const float *b, float *y);
    void (*add)(size_t n, const float *a, const float *b, float *y);
    void (*multiply_add)(size_t n, const float *a, const float *b, const float *c, float *y); /* a b + c */
    void (*mix)(size_t n, const float *z, const float *a, const float *b, float *y); /* (1 - z) a + z b */
} ortc_gates;
ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_gates)

#endif
