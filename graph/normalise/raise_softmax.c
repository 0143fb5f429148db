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
static ortc_node *match(const ortc_node *n, ortc_edge **out_x, int32_t *axis)
{
    const ortc_edge *e = n->out[0];
    int32_t other = -1;
    const ortc_node *sub = n->n_in ? ortc_match_made(n->in[0], "Sub", 2) : NULL;
    if (!e || !sub || ortc_match_reader(n->in[0], 1) != n || ortc_edge_n_uses(e) != 2) return NULL;
    ortc_edge *x = reduced(sub->in[1], "ReduceMax", axis);
    if (!x || x != sub->in[0] || ortc_match_reader(sub->in[1], 1) != sub) return NULL;
    for (const ortc_use *u = e->uses; u; u = u->next) {
        ortc_node *div = u->node;
        if (ortc_match_is(div, "Div") && div->in[0] == e && div->in[1] && div->out[0] &&
            reduced(div->in[1], "ReduceSum", &other) == e && other == *axis &&
            ortc_match_reader(div->in[1], 1) == div) {
            *out_x = x;
            return div;
        }
    }
    return NULL;
}

ortc_status ortc_pass_raise_softmax(ortc_normalise *p)
{
    const ortc_op *softmax = ortc_op_find("", "Softmax");
    for (ortc_node *n = p->graph->first; n && softmax; n = n->next) { /* Exp stays until dead-nodes */
        ortc_edge *x = NULL;
        int32_t axis = 0;
        ortc_node *last = ortc_match_is(n, "Exp") ? match(n, &x, &axis) : NULL;
        if (!last) continue;
        const ortc_attr along = {.size = sizeof along, .kind = ORTC_ATTR_INT, .i = axis};
        ortc_node *raised;
        ORTC_TRY(ortc_match_raise(p, softmax, last, &x, 1, &raised));
        if (raised && !ortc_node_set_attr(raised, "axis", &along)) return ortc_no_memory(p->error, 0);
    }
    return ORTC_OK;
}
