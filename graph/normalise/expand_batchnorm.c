/* graph/normalise/expand_batchnorm.c: a BatchNormalization with constant numbers that no Conv has taken, as
 * what it does to each element, which others take into their epilogues and programs, in any layout:
 *
 *   y = x * f + (shift - mean * f),  f = scale / sqrt(var + epsilon)      per channel
 *
 * f32 and f64 only, computed in double and rounded once; of half precision f could leave its range. Comes
 * last, when conv_batchnorm.c has had its turn.
 */
#include "weights.h"

/* A number for each channel of x. */
static ortc_edge *by_channel(ortc_normalise *p, const ortc_batchnorm *b, const ortc_edge *x, int64_t channels,
                             bool factors)
{
    const size_t bytes = (size_t)channels * (ortc_dtype_bits(b->t) / 8);
    int64_t dims[ORTC_MAX_RANK] = {channels};
    void *data = ortc_data_alloc(bytes);
    if (!data) return NULL;
    for (int32_t i = 1; i < x->rank - 1; i++) dims[i] = 1;
    for (int64_t c = 0; c < channels; c++)
        ortc_weights_write(b->t, data, c, factors ? ortc_batchnorm_by(b, c) : ortc_batchnorm_of(b, c, 0));
    return ortc_graph_constant_take(p->graph, b->t, x->rank - 1, dims, data, bytes, p->error);
}

static ortc_status expand(ortc_normalise *p, ortc_node *n)
{
    ortc_edge *x = n->in[0], *y = n->out[0];
    ortc_batchnorm b;
    if (!x || !y || x->rank < 2 || !x->type || x->type->kind != ORTC_KIND_TENSOR) return ORTC_OK;
    const ortc_dtype t = x->type->dtype;
    const ortc_edge *scale = ortc_node_in_edge(n, 1);
    if ((t != ORTC_F32 && t != ORTC_F64) || !scale || !ortc_edge_is_const(scale)) return ORTC_OK;
    const int64_t channels = scale->constant->count;
    if (channels == 0 || !ortc_weights_batchnorm(n, t, channels, &b)) return ORTC_OK;
    ortc_edge *by = by_channel(p, &b, x, channels, true), *shift = by_channel(p, &b, x, channels, false);
    ortc_node *add = ortc_node_create(p->graph, ortc_op_find("", "Add"), n->name, 2, 1);
    if (!by || !shift || !add) return ortc_no_memory(p->error, 0);
    ortc_edge *scaled = ortc_match_apply(p, n, "Mul", 2, (ortc_edge *[]){x, by}, t, x->rank, x->dims);
    if (!scaled || !ortc_node_set_in(add, 0, scaled) || !ortc_node_set_in(add, 1, shift))
        return ortc_no_memory(p->error, 0);
    return ortc_match_take_place(p, n, add);
}

ortc_status ortc_pass_expand_batchnorm(ortc_normalise *p)
{
    for (ortc_node *n = p->graph->first, *next; n; n = next) {
        next = n->next;
        if (ortc_match_is(n, "BatchNormalization")) ORTC_TRY(expand(p, n));
    }
    return ORTC_OK;
}
