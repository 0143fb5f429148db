/* kernels/recurrent/attributes.c: what RNN, GRU and LSTM nodes say, for the kernels of every provider. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/recurrent/recurrent.h"

ortc_status ortc_recurrent_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    static const char *const standard[3][ORTC_GATE_FUNCTIONS] = {{"Tanh"},
                                                                 {"Sigmoid", "Tanh"},
                                                                 {"Sigmoid", "Tanh", "Tanh"}};
    const char *op = ortc_node_op(n), *direction = ortc_node_string(n, "direction", "forward");
    const ortc_attr clip = ortc_node_attr(n, "clip");
    ortc_recurrent_state *s = calloc(1, sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    s->what = op[0] == 'R' ? ORTC_RNN : op[0] == 'G' ? ORTC_GRU : ORTC_LSTM;
    s->gates = s->what == ORTC_RNN ? 1 : s->what == ORTC_GRU ? 3 : 4;
    s->functions = s->what + 1;
    s->directions = strcmp(direction, "bidirectional") ? 1 : 2;
    s->reverse = !strcmp(direction, "reverse");
    s->batch_first = ortc_node_int(n, "layout", 0) != 0;
    s->input_forget = ortc_node_int(n, "input_forget", 0) != 0;
    s->reset_last = ortc_node_int(n, "linear_before_reset", 0) != 0;
    s->clip = clip.kind == ORTC_ATTR_FLOAT && clip.f > 0 ? (double)clip.f : INFINITY;
    const char *wrong = ortc_gate_functions(n, s->directions, s->functions, standard[s->what], s->fn);
    if (wrong) {
        free(s);
        return ortc_prep_fail(prep, ORTC_INVALID_MODEL, "attribute %s", wrong);
    }
    *out = s;
    return ORTC_OK;
}

ortc_status ortc_recurrent_lengths(ortc_call *c, const ortc_view *lengths, int64_t steps)
{
    const int32_t *n = lengths->data;
    for (int64_t b = 0; b < lengths->dims[0]; b++)
        if (n[b] < 0 || n[b] > steps)
            return ortc_call_fail(c, ORTC_INVALID_ARGUMENT, "sequence_lens[%lld] is %d, there are %lld steps",
                                  (long long)b, n[b], (long long)steps);
    return ORTC_OK;
}
