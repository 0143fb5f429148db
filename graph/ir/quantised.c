/* graph/ir/quantised.c: operands and nodes of quantised networks (quantised.h). */
#include "quantised.h"

bool ortc_is_bytes(const ortc_edge *e)
{
    return e && e->type && e->type->kind == ORTC_KIND_TENSOR &&
           (e->type->dtype == ORTC_U8 || e->type->dtype == ORTC_I8);
}

/* One for each element of the scale. What a caller may give in any shape is the shape function's affair. */
static bool is_zero_of(const ortc_edge *zero, const ortc_constant *scale)
{
    if (!zero) return true;
    return zero->rank == 0 ? scale->count == 1 : zero->rank == 1 && zero->dims[0] == scale->count;
}

bool ortc_read_dequantised(const ortc_edge *e, ortc_quantised *q)
{
    const ortc_node *n = e ? e->producer : NULL;
    if (!ortc_is_op(n, "DequantizeLinear") || ortc_node_int(n, "block_size", 0) || !ortc_is_bytes(n->in[0]) ||
        !ortc_type_equal(e->type, ortc_tensor_type(ORTC_F32)))
        return false;
    const ortc_edge *scale = ortc_node_in_edge(n, 1);
    if (!scale || !ortc_edge_is_const(scale)) return false;
    *q = (ortc_quantised){n->in[0], ortc_node_in_edge(n, 2), scale->constant, ortc_node_int(n, "axis", 1)};
    return q->scale->dtype == ORTC_F32 && q->scale->rank <= 1 && q->scale->count > 0 &&
           is_zero_of(q->zero, q->scale);
}

float ortc_scale_at(const ortc_constant *scale, int64_t i)
{
    float v;
    memcpy(&v, (const char *)scale->data + (scale->count > 1 ? i : 0) * 4, sizeof v);
    return v;
}

ortc_node *ortc_node_like(ortc_graph *g, ortc_node *before, const char *op, ortc_dtype t,
                          const ortc_edge *like, uint32_t n_in, ortc_edge *const *in)
{
    return ortc_node_of_domain(g, before, "", op, t, like, n_in, in);
}

ortc_node *ortc_node_of_domain(ortc_graph *g, ortc_node *before, const char *domain, const char *op,
                               ortc_dtype t, const ortc_edge *like, uint32_t n_in, ortc_edge *const *in)
{
    ortc_node *n = ortc_node_create(g, ortc_op_find(domain, op), NULL, n_in, 1);
    ortc_edge *y = n ? ortc_edge_create(g, NULL) : NULL;
    if (!y || !ortc_edge_set_shape(y, ortc_tensor_type(t), like->rank, like->dims) ||
        !ortc_node_set_out(n, 0, y))
        return NULL;
    for (uint32_t i = 0; i < n_in; i++)
        if (in[i] && !ortc_node_set_in(n, i, in[i])) return NULL;
    ortc_node_move_before(n, before);
    return n;
}

bool ortc_scale_sums(ortc_graph *g, ortc_node *before, ortc_edge *sums, ortc_edge *scale, ortc_node **cast,
                     ortc_node **mul)
{
    const ortc_attr to = {.size = sizeof to, .kind = ORTC_ATTR_INT, .i = ORTC_F32};
    *cast = ortc_node_like(g, before, "Cast", ORTC_F32, sums, 1, &sums);
    if (!*cast || !ortc_node_set_attr(*cast, "to", &to)) return false;
    *mul = ortc_node_like(g, before, "Mul", ORTC_F32, sums, 2, (ortc_edge *[]){(*cast)->out[0], scale});
    return *mul != NULL;
}

ortc_edge *ortc_graph_along(ortc_graph *g, int32_t rank, int32_t axis, int64_t count,
                            float (*at)(const void *arg, int64_t i), const void *arg, ortc_error *error)
{
    int64_t dims[64];
    float *data = ortc_data_alloc((size_t)count * sizeof *data);
    if (!data || rank > 64) return ortc_data_free(data), NULL;
    for (int64_t i = 0; i < count; i++) data[i] = at(arg, i);
    rank = count == 1 ? 0 : rank - axis;
    for (int32_t d = 0; d < rank; d++) dims[d] = d == 0 ? count : 1;
    return ortc_graph_constant_take(g, ORTC_F32, rank, dims, data, (size_t)count * sizeof *data, error);
}
