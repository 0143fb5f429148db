/* graph/normalise/expand_batchnorm.c: a BatchNormalization with constant numbers that no Conv has taken, as
 * what it does to each element, which others take into their epilogues and programs, in any layout:
 *
 *   y = x * f + (shift - mean * f),  f = scale / sqrt(var + epsilon)      per channel
 *
 * f and shift are computed in double and rounded once. Of half precision x is widened first and the result
 * narrowed, as the operator does it: programs do so on registers. Comes last, when conv_batchnorm.c has had
 * its turn.
 */
#include "weights.h"

/* A number of type t for each channel of x. */
static ortc_edge *by_channel(ortc_normalise *p, const ortc_batchnorm *b, ortc_dtype t, const ortc_edge *x,
                             int64_t channels, bool factors)
{
    const size_t bytes = (size_t)channels * (ortc_dtype_bits(t) / 8);
    int64_t dims[ORTC_MAX_RANK] = {channels};
    void *data = ortc_data_alloc(bytes);
    if (!data) return NULL;
    for (int32_t i = 1; i < x->rank - 1; i++) dims[i] = 1;
    for (int64_t c = 0; c < channels; c++)
        ortc_weights_write(t, data, c, factors ? ortc_batchnorm_by(b, c) : ortc_batchnorm_of(b, c, 0));
    return ortc_graph_constant_take(p->graph, t, x->rank - 1, dims, data, bytes, p->error);
}

static ortc_edge *cast(ortc_normalise *p, ortc_node *before, ortc_edge *x, ortc_dtype t)
{
    ortc_edge *y = ortc_match_apply(p, before, "Cast", 1, &x, t, x->rank, x->dims);
    const ortc_attr to = {.size = sizeof to, .kind = ORTC_ATTR_INT, .i = t};
    return y && ortc_node_set_attr(y->producer, "to", &to) ? y : NULL;
}

static ortc_status expand(ortc_normalise *p, ortc_node *n)
{
    ortc_edge *x = n->in[0], *y = n->out[0];
    ortc_batchnorm b;
    if (!x || !y || x->rank < 2 || !x->type || x->type->kind != ORTC_KIND_TENSOR) return ORTC_OK;
    const ortc_dtype t = x->type->dtype;
    const ortc_edge *scale = ortc_node_in_edge(n, 1);
    const bool half = ortc_weights_half(t);
    const ortc_dtype in = half ? ORTC_F32 : t; /* what it is computed in */
    if ((!half && t != ORTC_F32 && t != ORTC_F64) || !scale || !ortc_edge_is_const(scale)) return ORTC_OK;
    const int64_t channels = scale->constant->count;
    if (channels == 0 || !ortc_weights_batchnorm(n, t, channels, &b)) return ORTC_OK;
    ortc_edge *by = by_channel(p, &b, in, x, channels, true),
              *shift = by_channel(p, &b, in, x, channels, false), *wide = half ? cast(p, n, x, in) : x;
    if (!by || !shift || !wide) return ortc_no_memory(p->error, 0);
    ortc_edge *scaled = ortc_match_apply(p, n, "Mul", 2, (ortc_edge *[]){wide, by}, in, x->rank, x->dims);
    ortc_node *last = ortc_node_create(p->graph, ortc_op_find("", half ? "Cast" : "Add"), n->name,
                                       half ? 1 : 2, 1);
    if (!scaled || !last) return ortc_no_memory(p->error, 0);
    if (half) {
        const ortc_attr to = {.size = sizeof to, .kind = ORTC_ATTR_INT, .i = t};
        ortc_edge *sum = ortc_match_apply(p, n, "Add", 2, (ortc_edge *[]){scaled, shift}, in, x->rank,
                                          x->dims);
        if (!sum || !ortc_node_set_in(last, 0, sum) || !ortc_node_set_attr(last, "to", &to))
            return ortc_no_memory(p->error, 0);
    } else if (!ortc_node_set_in(last, 0, scaled) || !ortc_node_set_in(last, 1, shift)) {
        return ortc_no_memory(p->error, 0);
    }
    return ortc_match_take_place(p, n, last);
}

ortc_status ortc_pass_expand_batchnorm(ortc_normalise *p)
{
    for (ortc_node *n = p->graph->first, *next; n; n = next) {
        next = n->next;
        if (ortc_match_is(n, "BatchNormalization")) ORTC_TRY(expand(p, n));
    }
    return ORTC_OK;
}
