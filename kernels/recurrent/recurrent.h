/* kernels/recurrent/recurrent.h: what RNN, GRU and LSTM nodes say, activation functions by name among it, as
 * the attribute `activations` lists them. */
#ifndef ORTC_KERNELS_RECURRENT_H
#define ORTC_KERNELS_RECURRENT_H

#include "kernels/common/shape.h"

enum {
    ORTC_GATE_AFFINE,
    ORTC_GATE_RELU,
    ORTC_GATE_LEAKY_RELU,
    ORTC_GATE_THRESHOLDED_RELU,
    ORTC_GATE_TANH,
    ORTC_GATE_SCALED_TANH,
    ORTC_GATE_SIGMOID,
    ORTC_GATE_HARD_SIGMOID,
    ORTC_GATE_ELU,
    ORTC_GATE_SOFTSIGN,
    ORTC_GATE_SOFTPLUS,
    ORTC_GATE_COUNT
};

typedef struct ortc_gate_function {
    double (*fn)(double x, double alpha, double beta);
    double alpha, beta;
    int kind; /* ORTC_GATE_* */
} ortc_gate_function;

/* The functions of all gates of all directions: `count` of them for each direction, `standard` where none are
 * listed. NULL: fine, else what is wrong. */
const char *ortc_gate_functions(const ortc_node *, int32_t directions, int32_t count,
                                const char *const *standard, ortc_gate_function *out);

enum { ORTC_RNN, ORTC_GRU, ORTC_LSTM };
enum { ORTC_GATE_FUNCTIONS = 3 }; /* of a direction, at most */

/* What a node says. Rows of gates: LSTM input, output, forget, cell; GRU update, reset, hidden. */
typedef struct ortc_recurrent_state {
    int what;
    int32_t directions, gates, functions;                /* the last two: of a direction */
    bool reverse, batch_first, input_forget, reset_last; /* reset_last: linear_before_reset */
    double clip;                                         /* INFINITY: none */
    ortc_gate_function fn[2 * ORTC_GATE_FUNCTIONS];
} ortc_recurrent_state;

/* `prepare` of kernels for RNN, GRU and LSTM: a state as above. */
ortc_status ortc_recurrent_prepare(const ortc_node *, ortc_prep *, void **out);
/* Whether each length lies within the steps; else fails. */
ortc_status ortc_recurrent_lengths(ortc_call *c, const ortc_view *lengths, int64_t steps);

#endif
