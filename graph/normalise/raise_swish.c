/* graph/normalise/raise_swish.c: Swish from x * Sigmoid(x) (SiLU) and x * Sigmoid(alpha * x) (as "quick" Gelu
 * with 1.702).
 *
 * The match starts at Sigmoid. Values in between must have no other readers.
 */
#include "match.h"

/* n is Sigmoid. The last node of the form, NULL: none. */
static ortc_node *match(const ortc_node *n, ortc_dtype t, ortc_edge **out_x, double *alpha)
{
    ortc_node *mul = n->out[0] ? ortc_match_sink(n->out[0], 1, t) : NULL;
    ortc_edge *x = ortc_match_is(mul, "Mul") ? ortc_match_other(mul, n->out[0], t) : NULL,
              *in = n->n_in ? n->in[0] : NULL;
    x = ortc_match_root(x, t);
    mul = ortc_match_end(mul, t);
    if (!x || !in || !mul || ortc_edge_is_const(x)) return NULL;
    *out_x = x;
    *alpha = 1;
    if (ortc_match_equal(in, x, t)) return mul;
    const ortc_node *scaled = ortc_match_inner(in, "Mul", 2, t);
    for (int i = 0; scaled && i < 2; i++)
        if (ortc_match_equal(scaled->in[i], x, t) && ortc_match_scalar(scaled->in[!i], x->rank, alpha) &&
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
        ortc_node *last = NULL;
        for (size_t i = 0; i < ORTC_LENGTH(ortc_match_types) && !last; i++)
            if (ortc_match_is(n, "Sigmoid")) last = match(n, ortc_match_types[i], &x, &alpha);
        if (!last) continue;
        const ortc_attr how = {.size = sizeof how, .kind = ORTC_ATTR_FLOAT, .f = (float)alpha};
        ortc_node *raised;
        ORTC_TRY(ortc_match_raise(p, swish, last, &x, 1, &raised));
        if (raised && !ortc_node_set_attr(raised, "alpha", &how)) return ortc_no_memory(p->error, 0);
    }
    return ORTC_OK;
}
