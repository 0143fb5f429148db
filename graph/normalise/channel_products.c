/* graph/normalise/channel_products.c: a product over the channels of an image, which are brought to the end
 * for it and back, is a convolution of single pixels: so heads of attention are mixed ("talking heads").
 *
 *   Transpose(MatMul(Transpose(x, [0, 2, 3, 1]), W [C, M]) + b [M], [0, 3, 1, 2])
 *     = Conv(x [N, C, H, W], W transposed [M, C, 1, 1], b)
 *
 * W and b constant, b may be left out; one to three spatial dims. What others read, too, stays.
 */
#include "match.h"

enum { MAX_SPATIAL = 3 };

/* The second dim goes to the end, or comes back from there. */
static bool moves_channels(const ortc_node *n, bool back)
{
    const int32_t rank = n->in[0] ? n->in[0]->rank : -1;
    size_t count;
    const int64_t *perm = ortc_node_ints(n, "perm", &count);
    if (rank < 3 || rank > 2 + MAX_SPATIAL || !perm || count != (size_t)rank || perm[0] != 0) return false;
    for (int32_t i = 1; i < rank; i++)
        if (perm[i] != (back ? i == 1 ? rank - 1 : i - 1 : i + 1 < rank ? i + 1 : 1)) return false;
    return true;
}

/* A constant of so many dims and of type t. */
static ortc_edge *constant(ortc_edge *e, ortc_dtype t, int32_t rank)
{
    return e && ortc_edge_is_const(e) && e->constant->dtype == t && e->constant->rank == rank ? e : NULL;
}

/* What `last` brings back: a product, and what it adds. */
static ortc_node *product_behind(const ortc_node *last, ortc_dtype t, ortc_edge **bias)
{
    ortc_edge *e = last->in[0];
    *bias = NULL;
    const ortc_node *add = ortc_match_inner(e, "Add", 2, t);
    for (int i = 0; add && i < 2 && !*bias; i++)
        if ((*bias = constant(add->in[i], t, 1))) e = add->in[1 - i];
    ortc_node *product = ortc_match_inner(e, "MatMul", 2, t);
    const ortc_edge *w = product ? constant(product->in[1], t, 2) : NULL;
    if (!w || w->constant->count == 0 || (*bias && (*bias)->constant->count != w->constant->dims[1]))
        return NULL;
    return product;
}

static ortc_status replace(ortc_normalise *p, ortc_node *last)
{
    const ortc_edge *y = last->out[0];
    ortc_edge *bias, *in[3];
    if (!y || !y->type || y->type->kind != ORTC_KIND_TENSOR || !moves_channels(last, true)) return ORTC_OK;
    const ortc_dtype t = y->type->dtype;
    ortc_node *product = product_behind(last, t, &bias);
    const ortc_node *first = product ? ortc_match_inner(product->in[0], "Transpose", 1, t) : NULL;
    if (!first || !moves_channels(first, false) || first->in[0]->rank != y->rank ||
        !ortc_match_typed(first->in[0], t))
        return ORTC_OK;
    const int64_t *dims = product->in[1]->constant->dims;
    const ortc_dim turned[2] = {dims[1], dims[0]};
    int64_t window[2 + MAX_SPATIAL] = {dims[1], dims[0], 1, 1, 1};
    in[0] = first->in[0], in[2] = bias;
    ortc_edge *weights[2] = {ortc_match_apply(p, last, "Transpose", 1, &product->in[1], t, 2, turned),
                             ortc_match_integers(p, window, y->rank)};
    in[1] = ortc_match_apply(p, last, "Reshape", 2, weights, t, y->rank, window);
    ortc_node *conv = ortc_node_create(p->graph, ortc_op_find("", "Conv"), last->name, 3, 1);
    if (!conv || !in[1]) return ortc_no_memory(p->error, 0);
    for (uint32_t i = 0; i < 3; i++)
        if (in[i] && !ortc_node_set_in(conv, i, in[i])) return ortc_no_memory(p->error, 0);
    return ortc_match_take_place(p, last, conv);
}

ortc_status ortc_pass_channel_products(ortc_normalise *p)
{
    for (ortc_node *n = p->graph->first, *next; n; n = next) {
        next = n->next;
        if (ortc_match_is(n, "Transpose")) ORTC_TRY(replace(p, n));
    }
    return ORTC_OK;
}
