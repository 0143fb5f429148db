/* graph/specialise/integer_moves.c: what only moves or picks values, between DequantizeLinear and
 * QuantizeLinear of one scale and zero point, on the integers.
 *
 *   QuantizeLinear(op(DequantizeLinear(x, s, z)), s, z) = op(x)       Reshape, Transpose, MaxPool, Concat ...
 *
 * exactly: numbers of 8 bits come back from a scale as they were, and it keeps their order, for it is
 * positive. The device's kernels must take the operator on integers. A chain of such operators is walked from
 * its end.
 */
#include "graph/ir/quantised.h"
#include "specialise.h"

static const char *const movers[] = {"Reshape",      "Flatten",      "Squeeze", "Unsqueeze",
                                     "Transpose",    "Slice",        "Expand",  "MaxPool",
                                     "SpaceToDepth", "DepthToSpace", "Concat",  "Tile"};

static bool is_mover(const ortc_node *n)
{
    for (size_t i = 0; i < ORTC_LENGTH(movers); i++)
        if (ortc_is_op(n, movers[i])) return !n->body && n->n_out >= 1 && n->out[0];
    return false;
}

static bool same_bytes(const ortc_constant *a, const ortc_constant *b)
{
    return a->dtype == b->dtype && a->count == 1 && b->count == 1 && !memcmp(a->data, b->data, a->bytes);
}
static const ortc_constant *zero_of(const ortc_edge *e)
{
    return e && ortc_edge_is_const(e) ? e->constant : NULL;
}

/* What e is of, if with the very scale and zero point that q quantises with. */
static ortc_edge *source(const ortc_node *q, const ortc_edge *e)
{
    ortc_quantised d;
    const ortc_edge *scale = q->in[1];
    if (!ortc_read_dequantised(e, &d) || !scale || !ortc_edge_is_const(scale) || d.scale->count != 1 ||
        !same_bytes(scale->constant, d.scale))
        return NULL;
    float s;
    memcpy(&s, d.scale->data, sizeof s);
    const ortc_constant *a = zero_of(ortc_node_in_edge(q, 2)), *b = zero_of(d.zero);
    if (!(s > 1e-30f && s < 1e30f) || !ortc_type_equal(d.x->type, q->out[0]->type)) return NULL;
    return (!ortc_node_in_edge(q, 2) && !d.zero) || (a && b && same_bytes(a, b)) ? d.x : NULL;
}

/* Inputs that are values: all of Concat's, the first of the others. */
static uint32_t values_of(const ortc_node *n) { return !strcmp(n->type, "Concat") ? n->n_in : 1; }

static ortc_status rewrite(ortc_specialise *s, ortc_node *q)
{
    ortc_edge *e = ortc_is_op(q, "QuantizeLinear") && q->n_out == 1 && q->out[0] ? q->in[0] : NULL;
    ortc_node *n = e ? e->producer : NULL;
    if (!is_mover(n) || ortc_edge_n_uses(e) != 1 || !e->uses->node || ortc_node_int(q, "block_size", 0) ||
        (n->n_out > 1 && n->out[1]))
        return ORTC_OK;
    ortc_edge **in = ortc_arena_copy(&s->graph->arena, n->in, n->n_in * sizeof *in), *was[64];
    if (!in) return ortc_no_memory(s->error, 0);
    if (n->n_in > ORTC_LENGTH(was)) return ORTC_OK;
    for (uint32_t i = 0; i < values_of(n); i++) {
        was[i] = n->in[i];
        if (!(in[i] = source(q, n->in[i]))) return ORTC_OK;
    }
    ortc_node proposal = *n;
    proposal.in = in;
    proposal.out = q->out;
    proposal.n_out = 1;
    if (!s->accept(s->arg, &proposal, NULL, n)) return ORTC_OK;
    ortc_edge *y = q->out[0];
    for (uint32_t i = 0; i < values_of(n); i++) {
        if (!ortc_node_set_in(n, i, in[i])) return ortc_no_memory(s->error, 0);
        if (was[i]->producer && !was[i]->uses) ortc_node_remove(was[i]->producer);
    }
    ortc_node_remove(q);
    e->producer = NULL;
    if (!ortc_node_set_out(n, 0, y) || !s->accept(s->arg, n, n, n)) return ortc_no_memory(s->error, 0);
    s->edits++;
    return ORTC_OK;
}

ortc_status ortc_pass_integer_moves(ortc_specialise *s)
{
    for (ortc_node *n = s->graph->first, *next; n; n = next) {
        next = n->next;
        ORTC_TRY(rewrite(s, n));
    }
    return ORTC_OK;
}
