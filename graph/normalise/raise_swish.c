/* graph/normalise/raise_swish.c: Swish from x * Sigmoid(x) (SiLU) and x * Sigmoid(alpha * x) (as "quick" Gelu
 * with 1.702).
 *
 * The match starts at Sigmoid. Values in between must have no other readers.
 */
#include "match.h"

/* n is Sigmoid. The last node of the form, NULL: none. */
static ortc_node *match(const ortc_node *n, ortc_edge **out_x, double *alpha)
{
    ortc_node *mul = n->out[0] ? ortc_match_reader(n->out[0], 1) : NULL;
    ortc_edge *x = ortc_match_is(mul, "Mul") ? ortc_match_other(mul, n->out[0]) : NULL,
              *in = n->n_in ? n->in[0] : NULL;
    if (!x || !in || !mul->out[0] || ortc_edge_is_const(x)) return NULL;
    *out_x = x;
    *alpha = 1;
    if (in == x) return mul;
    const ortc_node *scaled = ortc_match_made(in, "Mul", 2);
    if (!scaled || ortc_match_reader(in, 1) != n) return NULL;
    for (int i = 0; i < 2; i++)
        if (scaled->in[i] == x && ortc_match_scalar(scaled->in[!i], x->rank, alpha) &&
            (double)(float)*alpha == *alpha)
            return mul;
    return NULL;
}

ortc_status ortc_pass_raise_swish(ortc_normalise *p)
{
    const ortc_op *swish = ortc_op_find("", "Swish");
    for (ortc_node *n = p->graph->first; n && swish; n = n->next) { /* Sigmoid stays until dead-nodes */
        ortc_edge *x = NULL;
        double alpha = 1;
        ortc_node *last = ortc_match_is(n, "Sigmoid") ? match(n, &x, &alpha) : NULL;
        if (!last) continue;
        const ortc_attr how = {.size = sizeof how, .kind = ORTC_ATTR_FLOAT, .f = (float)alpha};
        ortc_node *raised;
        ORTC_TRY(ortc_match_raise(p, swish, last, &x, 1, &raised));
        if (raised && !ortc_node_set_attr(raised, "alpha", &how)) return ortc_no_memory(p->error, 0);
    }
    return ORTC_OK;
}
