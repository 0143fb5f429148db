/* graph/normalise/raise_softmax.c: Softmax from the nodes that exporters write for it.
 *
 *   e = Exp(x - ReduceMax(x)),  y = e / ReduceSum(e)        along one axis, kept as 1
 *
 * The match starts at Exp. Values in between must have no other readers. Without the maximum it is not the
 * same: the sum may leave the range of its type.
 */
#include "match.h"

/* What `type` reduces along one axis, which stays as 1. */
static ortc_edge *reduced(const ortc_edge *e, const char *type, int32_t *axis)
{
    const ortc_node *n = ortc_match_made(e, type, 2);
    const ortc_constant *c = n && ortc_edge_is_const(n->in[1]) ? n->in[1]->constant : NULL;
    int64_t a;
    if (!c || c->dtype != ORTC_I64 || c->count != 1 || !ortc_node_int(n, "keepdims", 1)) return NULL;
    memcpy(&a, c->data, sizeof a);
    a = a < 0 ? a + n->in[0]->rank : a;
    if (a < 0 || a >= n->in[0]->rank) return NULL;
    *axis = (int32_t)a;
    return n->in[0];
}

/* n is Exp. The last node of the form, NULL: none. */
static ortc_node *match(const ortc_node *n, ortc_dtype t, ortc_edge **out_x, int32_t *axis)
{
    ortc_edge *e = n->out[0];
    int32_t other = -1;
    const ortc_node *sub = n->n_in ? ortc_match_inner(n->in[0], "Sub", 2, t) : NULL;
    const ortc_node *max = e && sub ? ortc_match_inner(sub->in[1], "ReduceMax", 2, t) : NULL;
    ortc_edge *x = max ? reduced(max->out[0], "ReduceMax", axis) : NULL;
    if (!x || !ortc_match_equal(x, sub->in[0], t) || ortc_match_uses(e, t) != 2) return NULL;
    x = ortc_match_root(sub->in[0], t);
    ortc_node *div = NULL;
    for (ortc_node *at = n->next; at && x && !div; at = at->next) /* Exp's other reader is the sum */
        if (ortc_match_is(at, "Div") && at->n_in == 2 && ortc_match_equal(at->in[0], e, t)) div = at;
    const ortc_node *sum = div ? ortc_match_inner(div->in[1], "ReduceSum", 2, t) : NULL;
    if (!sum || !ortc_match_equal(reduced(sum->out[0], "ReduceSum", &other), e, t) || other != *axis)
        return NULL;
    *out_x = x;
    return ortc_match_end(div, t);
}

ortc_status ortc_pass_raise_softmax(ortc_normalise *p)
{
    const ortc_op *softmax = ortc_op_find("", "Softmax");
    for (ortc_node *n = p->graph->first; n && softmax; n = n->next) { /* Exp stays until dead-nodes */
        ortc_edge *x = NULL;
        int32_t axis = 0;
        ortc_node *last = NULL;
        for (size_t i = 0; i < ORTC_LENGTH(ortc_match_types) && !last; i++)
            if (ortc_match_is(n, "Exp")) last = match(n, ortc_match_types[i], &x, &axis);
        if (!last) continue;
        const ortc_attr along = {.size = sizeof along, .kind = ORTC_ATTR_INT, .i = axis};
        ortc_node *raised;
        ORTC_TRY(ortc_match_raise(p, softmax, last, &x, 1, &raised));
        if (raised && !ortc_node_set_attr(raised, "axis", &along)) return ortc_no_memory(p->error, 0);
    }
    return ORTC_OK;
}
