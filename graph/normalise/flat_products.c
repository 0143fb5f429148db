/* graph/normalise/flat_products.c: a product over rows that are flattened before it, and viewed as before
 * behind it, takes them as they are.
 *
 *   Reshape(Gemm(Reshape(x, [-1, K]), W [K, N], c), [.., N])  =  Add(MatMul(x, W), c)
 *
 * x has three dims or more, of which the result has all but the last; alpha and beta are 1, nothing is
 * transposed, and c, if there is one, is a row or a number. So PyTorch writes the linear layers of GPT-2;
 * MatMul may stand for Gemm. Without the views a residual, an activation and the heads of Attention stand
 * beside their product.
 */
#include "match.h"

/* Is n a MatMul, or a Gemm that is one and a bias? */
static bool is_product(const ortc_node *n)
{
    if (ortc_match_is(n, "MatMul")) return n->n_in == 2 && n->in[1] && n->in[1]->rank == 2;
    if (!ortc_match_is(n, "Gemm") || n->n_in < 2 || ortc_node_float(n, "alpha", 1) != 1 ||
        ortc_node_float(n, "beta", 1) != 1 || ortc_node_int(n, "transA", 0) || ortc_node_int(n, "transB", 0))
        return false;
    const ortc_edge *c = ortc_node_in_edge(n, 2);
    return !c || c->rank == 0 || c->rank == 1 || (c->rank == 2 && c->dims[0] == 1);
}

/* x [.., K], of which n's left operand is the rows, if y [.., N] is what n makes of them. */
static ortc_edge *rows_of(const ortc_node *n, const ortc_edge *y)
{
    const ortc_node *flat = ortc_match_made(n->in[0], "Reshape", 2);
    ortc_edge *x = flat ? flat->in[0] : NULL;
    const ortc_edge *a = n->in[0], *made = n->out[0];
    if (!x || !y->type || a->rank != 2 || made->rank != 2 || x->rank < 3 || y->rank != x->rank ||
        !ortc_match_same(x->dims[x->rank - 1], a->dims[1]) ||
        !ortc_match_same(y->dims[y->rank - 1], made->dims[1]))
        return NULL;
    for (int32_t i = 0; i + 1 < x->rank; i++)
        if (!ortc_match_same(x->dims[i], y->dims[i])) return NULL;
    return x;
}

ortc_status ortc_pass_flat_products(ortc_normalise *p)
{
    for (ortc_node *last = p->graph->first, *next; last; last = next) {
        next = last->next;
        ortc_edge *y = ortc_match_is(last, "Reshape") ? last->out[0] : NULL, *made = y ? last->in[0] : NULL;
        const ortc_node *n = made && ortc_match_reader(made, 1) ? made->producer : NULL;
        ortc_edge *x = n && is_product(n) ? rows_of(n, y) : NULL;
        if (!x) continue;
        const ortc_dtype t = y->type->dtype;
        ortc_edge *c = ortc_node_in_edge(n, 2), *in[] = {x, n->in[1]};
        ortc_edge *z = ortc_match_apply(p, last, "MatMul", 2, in, t, y->rank, y->dims);
        if (z) z->producer->name = n->name;
        if (z && c) z = ortc_match_apply(p, last, "Add", 2, (ortc_edge *[]){z, c}, t, y->rank, y->dims);
        if (!z) return ortc_no_memory(p->error, 0);
        ortc_node *as = z->producer;
        ortc_node_remove(last);
        if (!ortc_node_set_out(as, 0, y)) return ortc_no_memory(p->error, 0);
        p->edits++;
    }
    return ORTC_OK;
}
