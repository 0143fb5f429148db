/* graph/specialise/sibling_products.c: products of one matrix with several constants become one node, for
 * which the matrix is brought into the form of products once.
 *
 *   MatMul(x, Wq), MatMul(x, Wk) + bk, MatMul(x, Wv)        queries, keys and values; gate and up
 *   MatMulNBits(x, Wq), ...                                  the same, of weights of 4 or 8 bits
 *
 * One node of ortc.Group with the nodes as its body, epilogues and all: constants stay as they are, and every
 * result is a value of its own, so nothing is split. Only where the provider has a kernel that takes it. No
 * node may lie on a way from one of them to another (what reads a result comes behind all of them).
 */
#include "specialise.h"

enum {
    MOST = 8,
    NEAR = 256 /* nodes between the first and what may join it: a file's order is nearly that of its layers */
};

/* The matrix that it multiplies with a constant one. */
static const ortc_edge *multiplied(const ortc_node *n)
{
    const bool is_product = n->op && !*n->domain && (!strcmp(n->type, "MatMul") || !strcmp(n->type, "Gemm")),
               of_few_bits = n->op && !strcmp(n->domain, "com.microsoft") && !strcmp(n->type, "MatMulNBits");
    if (!is_product && !of_few_bits) return NULL;
    if (n->n_captures || n->n_in < 2 || n->n_out != 1 || !n->in[0] || !n->in[1]) return NULL;
    if (ortc_edge_is_const(n->in[0]) || !ortc_edge_is_const(n->in[1])) return NULL;
    return of_few_bits || n->in[1]->rank == 2 ? n->in[0] : NULL;
}

ortc_status ortc_pass_sibling_products(ortc_specialise *s)
{
    for (ortc_node *n = s->graph->first, *next; n; n = next) {
        const ortc_edge *x = multiplied(n);
        const ortc_node *nodes[MOST] = {n};
        ortc_node *made = NULL, *before = n->prev;
        uint32_t count = 1;
        next = n->next;
        if (!x || !x->uses->next) continue;
        int left = NEAR;
        for (const ortc_node *m = n->next; m && count < MOST && left > 0; m = m->next, left--)
            if (multiplied(m) == x && !strcmp(m->type, n->type) && s->together(s->arg, m, n))
                nodes[count++] = m;
        if (count < 2) continue;
        ORTC_TRY(ortc_specialise_join(s, nodes, count, "products", &made));
        if (made) next = before ? before->next : s->graph->first; /* what was next may be inside */
    }
    return ORTC_OK;
}
