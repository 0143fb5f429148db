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
#include <stdio.h>

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

typedef struct proposal {
    ortc_specialise *pass;
    const ortc_node *where;
} proposal;

static ortc_status ask(void *arg, const ortc_graph *body)
{
    const proposal *p = arg;
    ortc_node n;
    ORTC_TRY(ortc_specialise_group_of(p->pass, body, &n));
    return p->pass->accept(p->pass->arg, &n, NULL, p->where) ? ORTC_OK : ORTC_UNSUPPORTED;
}

static ortc_status group(ortc_specialise *s, const ortc_node *const *nodes, uint32_t n, ortc_node **out)
{
    proposal p = {s, nodes[0]};
    char list[256], name[64];
    ortc_text text = ORTC_TEXT(list);
    list[0] = 0;
    snprintf(name, sizeof name, "products_%u", s->graph->next_node);
    for (uint32_t i = 0; i < n; i++)
        ortc_text_add(&text, "%s%s%s%s", i ? " " : "", nodes[i]->type, nodes[i]->fused ? " " : "",
                      nodes[i]->fused ? nodes[i]->fused : "");
    const ortc_status status = ortc_graph_group(s->graph, nodes, n, name, ask, &p, out, NULL);
    if (status == ORTC_UNSUPPORTED) return ORTC_OK;
    if (status != ORTC_OK) return ortc_no_memory(s->error, 0);
    if (!s->accept(s->arg, *out, *out, nodes[0])) return ortc_no_memory(s->error, 0);
    (*out)->fused = ortc_arena_string(&s->graph->arena, list, strlen(list));
    s->edits++;
    return (*out)->fused ? ORTC_OK : ortc_no_memory(s->error, 0);
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
        ORTC_TRY(group(s, nodes, count, &made));
        if (made) next = before ? before->next : s->graph->first; /* what was next may be inside */
    }
    return ORTC_OK;
}
