/* kernels/recurrent/recurrent.h: activation functions by name, as the attribute `activations` lists them. */
#ifndef ORTC_KERNELS_RECURRENT_H
#define ORTC_KERNELS_RECURRENT_H

#include "kernels/common/shape.h"

typedef struct ortc_gate_function {
    double (*fn)(double x, double alpha, double beta);
    double alpha, beta;
} ortc_gate_function;

/* The functions of all gates of all directions: `count` of them for each direction, `standard` where none are
 * listed. NULL: fine, else what is wrong. */
const char *ortc_gate_functions(const ortc_node *, int32_t directions, int32_t count,
                                const char *const *standard, ortc_gate_function *out);

#endif
