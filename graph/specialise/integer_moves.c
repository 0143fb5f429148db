/* graph/specialise/integer_moves.c: what only moves or picks values, between DequantizeLinear and
 * QuantizeLinear of one scale and zero point, on the integers.
 *
 *   QuantizeLinear(op(DequantizeLinear(x, s, z)), s, z) = op(x)       Reshape, Transpose, MaxPool, Concat ...
 *
 * exactly: numbers of 8 bits come back from a scale as they were, and it keeps their order, for it is
 * positive. The device's kernels must take the operator on integers. A chain of such operators is walked from
 * its end, where nothing is quantised between them, too. What a Concat puts beside each other is quantised
 * before it where some of it has other scales, for that is a table at the end of who makes it; Split is done
 * on the integers, and each result dequantised.
 */
#include "graph/ir/quantised.h"
#include "specialise.h"

static const char *const movers[] = {"Reshape", "Flatten",      "Squeeze",     "Unsqueeze", "Transpose",
                                     "Slice",   "Expand",       "MaxPool",     "Gather",    "Concat",
                                     "Tile",    "SpaceToDepth", "DepthToSpace"};

static bool is_mover(const ortc_node *n)
{
    for (size_t i = 0; i < ORTC_LENGTH(movers); i++)
        if (ortc_is_op(n, movers[i])) return !n->body && n->n_out >= 1 && n->out[0];
    return ortc_is_op(n, "Resize") && !n->body &&
           !strcmp(ortc_node_string(n, "mode", "nearest"), "nearest") &&
           strcmp(ortc_node_string(n, "coordinate_transformation_mode", "half_pixel"),
                  "tf_crop_and_resize") != 0;
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

enum { MOST = 64 };      /* inputs of a Concat */
enum { MOST_MOVES = 8 }; /* one behind the other */

/* Nodes that were made for one. */
typedef struct made {
    ortc_node *nodes[MOST];
    uint32_t n;
} made;

static void undo(made *m)
{
    while (m->n > 0) ortc_node_remove(m->nodes[--m->n]);
}

/* Whether some of what a Concat puts together is 8 bits, and the scale of q one that others can have, too. */
static bool may_quantise(const ortc_node *n, const ortc_node *q, ortc_edge *const *in)
{
    const ortc_edge *scale = q->in[1], *zero = ortc_node_in_edge(q, 2);
    ortc_quantised d;
    bool any = false;
    for (uint32_t i = 0; i < n->n_in; i++)
        any |= in[i] || (ortc_read_dequantised(n->in[i], &d) && d.scale->count == 1);
    return any && scale && ortc_edge_is_const(scale) && scale->constant->count == 1 && zero &&
           ortc_edge_is_const(zero) && zero->constant->count == 1 && ortc_is_bytes(q->out[0]);
}

/* Inputs of a Concat that are not 8 bits of q's scale are quantised; *may: the device does it. */
static ortc_status quantise(ortc_specialise *s, ortc_node *n, const ortc_node *q, ortc_edge **in, made *m,
                            bool *may)
{
    *may = may_quantise(n, q, in);
    for (uint32_t i = 0; *may && i < n->n_in; i++) {
        if (in[i]) continue;
        ortc_node *own = ortc_node_like(s->graph, n, "QuantizeLinear", q->out[0]->type->dtype, n->in[i], 3,
                                        (ortc_edge *[]){n->in[i], q->in[1], q->in[2]});
        if (!own) return ortc_no_memory(s->error, 0);
        m->nodes[m->n++] = own;
        in[i] = own->out[0];
        *may = s->accept(s->arg, own, NULL, q);
    }
    return ORTC_OK;
}

/* Whether a few other movers make e, each for the next alone, of what is quantised as q does. */
static bool is_moved(const ortc_node *q, const ortc_edge *e)
{
    const ortc_node *n = e->producer;
    for (int i = 0; i < MOST_MOVES && !source(q, e) && is_mover(n) && values_of(n) == 1 && n->n_out == 1 &&
                    ortc_edge_n_uses(e) == 1;
         i++)
        e = n->in[0], n = e->producer;
    return source(q, e) != NULL;
}

/* QuantizeLinear(op(e)) = op(QuantizeLinear(e)), which goes on from there. */
static ortc_status quantise_first(ortc_specialise *s, ortc_node *n, const ortc_node *q, ortc_edge **in,
                                  made *m, bool *may)
{
    ortc_node *own = ortc_node_like(s->graph, n, "QuantizeLinear", q->out[0]->type->dtype, n->in[0], 3,
                                    (ortc_edge *[]){n->in[0], q->in[1], ortc_node_in_edge(q, 2)});
    if (!own) return ortc_no_memory(s->error, 0);
    m->nodes[m->n++] = own;
    in[0] = own->out[0];
    *may = s->accept(s->arg, own, NULL, q);
    return ORTC_OK;
}

/* QuantizeLinear(DequantizeLinear(x, s, z), s, z) = x */
static ortc_status cancel(ortc_specialise *s, ortc_node *q, ortc_edge *e)
{
    ortc_edge *x = source(q, e), *y = q->out[0];
    if (!x || !x->producer) return ORTC_OK;
    if (!ortc_edge_replace(y, x)) return ortc_no_memory(s->error, 0);
    ortc_node_remove(q);
    if (!e->uses) ortc_node_remove(e->producer);
    s->edits++;
    return ORTC_OK;
}

static ortc_status rewrite(ortc_specialise *s, ortc_node *q)
{
    ortc_edge *e = ortc_is_op(q, "QuantizeLinear") && q->n_out == 1 && q->out[0] ? q->in[0] : NULL;
    ortc_node *n = e ? e->producer : NULL;
    if (!n || ortc_node_int(q, "block_size", 0)) return ORTC_OK;
    if (ortc_is_op(n, "DequantizeLinear")) return cancel(s, q, e);
    if (!is_mover(n) || ortc_edge_n_uses(e) != 1 || !e->uses->node || (n->n_out > 1 && n->out[1]))
        return ORTC_OK;
    ortc_edge **in = ortc_arena_copy(&s->graph->arena, n->in, n->n_in * sizeof *in), *was[MOST];
    bool all = true;
    made m = {.n = 0};
    if (!in) return ortc_no_memory(s->error, 0);
    if (n->n_in > ORTC_LENGTH(was)) return ORTC_OK;
    for (uint32_t i = 0; i < values_of(n); i++) {
        was[i] = n->in[i];
        in[i] = source(q, n->in[i]);
        all &= in[i] != NULL;
    }
    if (!all && !strcmp(n->type, "Concat")) ORTC_TRY(quantise(s, n, q, in, &m, &all));
    const bool goes_on = !all && values_of(n) == 1 && is_moved(q, n->in[0]);
    if (goes_on) ORTC_TRY(quantise_first(s, n, q, in, &m, &all));
    ortc_node proposal = *n;
    proposal.in = in;
    proposal.out = q->out;
    proposal.n_out = 1;
    if (!all || !s->accept(s->arg, &proposal, NULL, n)) {
        undo(&m);
        return ORTC_OK;
    }
    for (uint32_t i = 0; i < m.n; i++)
        if (!s->accept(s->arg, m.nodes[i], m.nodes[i], q)) return ortc_no_memory(s->error, 0);
    ortc_edge *y = q->out[0];
    for (uint32_t i = 0; i < values_of(n); i++) {
        if (!ortc_node_set_in(n, i, in[i])) return ortc_no_memory(s->error, 0);
        if (was[i]->producer && !was[i]->uses) ortc_node_remove(was[i]->producer);
    }
    ortc_node_remove(q);
    e->producer = NULL;
    if (!ortc_node_set_out(n, 0, y) || !s->accept(s->arg, n, n, n)) return ortc_no_memory(s->error, 0);
    s->edits++;
    return goes_on ? rewrite(s, m.nodes[0]) : ORTC_OK;
}

static bool is_quantised_again(const ortc_edge *e)
{
    for (const ortc_use *u = e ? e->uses : NULL; u; u = u->next)
        if (u->node && ortc_is_op(u->node, "QuantizeLinear")) return true;
    return false;
}

/* Split(DequantizeLinear(x)) = DequantizeLinear of each of Split(x), where one is quantised again. */
static ortc_status split(ortc_specialise *s, ortc_node *n)
{
    ortc_quantised d;
    bool again = false;
    if (!ortc_is_op(n, "Split") || n->body || !n->in[0] || !ortc_read_dequantised(n->in[0], &d) ||
        d.scale->count != 1)
        return ORTC_OK;
    for (uint32_t i = 0; i < n->n_out; i++) again |= is_quantised_again(n->out[i]);
    if (!again) return ORTC_OK;
    ortc_node *of = n->in[0]->producer, proposal = *n;
    proposal.in = ortc_arena_copy(&s->graph->arena, n->in, n->n_in * sizeof *n->in);
    proposal.out = ortc_arena_copy(&s->graph->arena, n->out, n->n_out * sizeof *n->out);
    if (!proposal.in || !proposal.out) return ortc_no_memory(s->error, 0);
    proposal.in[0] = d.x;
    for (uint32_t i = 0; i < n->n_out; i++) {
        const ortc_edge *y = n->out[i];
        if (!y) continue;
        proposal.out[i] = ortc_edge_create(s->graph, NULL);
        if (!proposal.out[i] || !ortc_edge_set_shape(proposal.out[i], d.x->type, y->rank, y->dims))
            return ortc_no_memory(s->error, 0);
    }
    if (!s->accept(s->arg, &proposal, NULL, n)) return ORTC_OK;
    for (uint32_t i = 0; i < n->n_out; i++) {
        ortc_node one = *of;
        ortc_edge *in[3] = {proposal.out[i], of->in[1], ortc_node_in_edge(of, 2)};
        one.in = in;
        one.out = &n->out[i];
        if (n->out[i] && !s->accept(s->arg, &one, NULL, of)) return ORTC_OK;
    }
    const ortc_op *op = of->op;
    for (uint32_t i = 0; i < n->n_out; i++) {
        ortc_edge *y = n->out[i];
        if (!y) continue;
        ortc_node *own = ortc_node_create(s->graph, op, NULL, of->n_in, 1);
        if (!own || !ortc_node_set_out(n, i, proposal.out[i])) return ortc_no_memory(s->error, 0);
        y->producer = NULL;
        for (uint32_t k = 0; k < of->n_in; k++)
            if (of->in[k] && !ortc_node_set_in(own, k, k ? of->in[k] : proposal.out[i]))
                return ortc_no_memory(s->error, 0);
        if (!ortc_node_set_out(own, 0, y)) return ortc_no_memory(s->error, 0);
        if (n->next != own) ortc_node_move_before(own, n->next);
        if (!s->accept(s->arg, own, own, of)) return ortc_no_memory(s->error, 0);
    }
    ortc_edge *wide = n->in[0];
    if (!ortc_node_set_in(n, 0, d.x) || !s->accept(s->arg, n, n, n)) return ortc_no_memory(s->error, 0);
    if (!wide->uses) ortc_node_remove(of);
    s->edits++;
    return ORTC_OK;
}

ortc_status ortc_pass_integer_moves(ortc_specialise *s)
{
    for (ortc_node *n = s->graph->first, *next; n; n = next) {
        ORTC_TRY(split(s, n));
        next = n->next;
        ORTC_TRY(rewrite(s, n));
    }
    return ORTC_OK;
}
