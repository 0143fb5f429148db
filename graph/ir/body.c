/* graph/ir/body.c: bodies of nodes: made of a part of a graph, and put back into a graph (body.h). */
#include "body.h"

/* A copy of one node, without edges; attributes' data are borrowed, for all lives in one root graph. */
static ortc_node *copy_node(ortc_graph *g, const ortc_node *n)
{
    ortc_node *copy = ortc_node_create(g, n->op, n->name, n->n_in, n->n_out);
    if (!copy || !(copy->attrs = ortc_arena_array(&g->arena, n->n_attrs, sizeof *copy->attrs))) return NULL;
    if (n->n_attrs) memcpy(copy->attrs, n->attrs, n->n_attrs * sizeof *copy->attrs);
    copy->n_attrs = n->n_attrs;
    copy->version = n->version;
    copy->fused = n->fused;
    copy->epilogue = n->epilogue;
    if (n->body && !(copy->body = ortc_graph_clone_child(n->body, g, NULL))) return NULL;
    return copy;
}

/* An edge of `g` that is what `like` is elsewhere. Its name may stand in g already, on an edge that nothing
 * makes any more. */
static ortc_edge *copy_edge(ortc_graph *g, const ortc_edge *like)
{
    ortc_edge *e = ortc_edge_create(g, like->name);
    if (e) {
        e->origin = like->origin ? like->origin : like->name;
        e->type = like->type;
        e->rank = like->rank;
        e->dims = like->dims;
    }
    return e;
}

/* Copies `n` to the end of g, edges by `made` (by id), which gets what is new. */
static ortc_node *copy_into(ortc_graph *g, const ortc_node *n, ortc_edge **made)
{
    ortc_node *c = copy_node(g, n);
    for (uint32_t i = 0; c && i < n->n_in; i++) {
        const ortc_edge *e = n->in[i];
        if (!e) continue;
        if (!made[e->id] && ortc_edge_is_const(e))
            made[e->id] = ortc_graph_constant(g, e->name, ortc_constant_retain(e->constant));
        if (!made[e->id] || !ortc_node_set_in(c, i, made[e->id])) return NULL;
    }
    for (uint32_t i = 0; c && i < n->n_out; i++) {
        const ortc_edge *e = n->out[i];
        if (e &&
            ((!made[e->id] && !(made[e->id] = copy_edge(g, e))) || !ortc_node_set_out(c, i, made[e->id])))
            return NULL;
    }
    return c;
}

static ortc_graph *begin_body(ortc_graph *g, ortc_edge *const *inputs, uint32_t n_inputs)
{
    ortc_graph *body = ortc_graph_create(g);
    for (uint32_t i = 0; body && i < n_inputs; i++) {
        ortc_edge *e = inputs[i] ? copy_edge(body, inputs[i]) : ortc_edge_create(body, NULL);
        if (!e || !ortc_graph_add_input(body, e->name, e)) return NULL;
    }
    return body;
}

/* ---- Collecting ---------------------------------------------------------------------------------------- */

enum { WANTED = 1, GIVEN = 2 };

/* Marks backwards what y needs, down to what is given. False: something is needed that is neither made nor
 * given. */
static bool mark(const ortc_edge *y, uint8_t *marks, const ortc_node **out_first)
{
    size_t open = 1; /* wanted edges whose producers lie further up */
    marks[y->id] |= WANTED;
    for (const ortc_node *n = y->producer; n && open; n = n->prev) {
        bool taken = false;
        for (uint32_t i = 0; i < n->n_out; i++)
            if (n->out[i] && marks[n->out[i]->id] == WANTED) {
                taken = true;
                open--;
            }
        if (!taken) continue;
        if (!n->op || n->n_captures || (n->op->flags & (ORTC_OP_RANDOM | ORTC_OP_CONTROL | ORTC_OP_STATE)))
            return false;
        *out_first = n;
        for (uint32_t i = 0; i < n->n_in; i++) {
            const ortc_edge *e = n->in[i];
            if (!e || marks[e->id] || ortc_edge_is_const(e)) continue;
            if (!e->producer) return false;
            marks[e->id] = WANTED;
            open++;
        }
    }
    return open == 0;
}

static ortc_graph *collect(ortc_graph *g, ortc_edge *const *in, uint32_t n_in, ortc_edge *y,
                           const ortc_node *first, const uint8_t *marks, ortc_edge **made)
{
    ortc_graph *body = begin_body(g, in, n_in);
    for (uint32_t i = 0; body && i < n_in; i++)
        if (in[i]) made[in[i]->id] = body->inputs[i].edge;
    for (const ortc_node *n = first; body && n != y->producer->next; n = n->next) {
        bool taken = false;
        for (uint32_t i = 0; i < n->n_out && !taken; i++) taken = n->out[i] && marks[n->out[i]->id] == WANTED;
        if (taken && !copy_into(body, n, made)) return NULL;
    }
    return body && ortc_graph_add_output(body, y->name, made[y->id]) ? body : NULL;
}

ortc_status ortc_body_collect(ortc_graph *g, ortc_edge *const *in, uint32_t n_in, ortc_edge *y,
                              ortc_graph **out, ortc_error *error)
{
    const ortc_node *first = NULL;
    ortc_status status = ORTC_OK;
    uint8_t *marks = calloc(g->edges.count, 1);
    ortc_edge **made = calloc(g->edges.count, sizeof *made);

    *out = NULL;
    if (!marks || !made) {
        status = ortc_no_memory(error, g->edges.count * sizeof *made);
    } else {
        for (uint32_t i = 0; i < n_in; i++)
            if (in[i]) marks[in[i]->id] = GIVEN;
        if (y->producer && !marks[y->id] && mark(y, marks, &first) &&
            !(*out = collect(g, in, n_in, y, first, marks, made)))
            status = ortc_no_memory(error, 0);
    }
    free(marks);
    free(made);
    return status;
}

/* ---- Putting back -------------------------------------------------------------------------------------- */

ortc_status ortc_graph_inline(const ortc_graph *body, ortc_edge *const *in, uint32_t n_in,
                              ortc_edge *const *out, uint32_t n_out, ortc_node *before, ortc_node **out_first,
                              ortc_error *error)
{
    ortc_edge **made = calloc(body->edges.count + 1, sizeof *made);
    ortc_status status = made ? ORTC_OK : ortc_no_memory(error, 0);

    if (out_first) *out_first = NULL;
    for (uint32_t i = 0; made && i < body->n_inputs && i < n_in; i++) made[body->inputs[i].edge->id] = in[i];
    for (uint32_t i = 0; made && i < body->n_outputs && i < n_out; i++) {
        const ortc_edge *e = body->outputs[i].edge;
        if (out[i] && (!e->producer || made[e->id]))
            status = ortc_fail(error, ORTC_UNSUPPORTED,
                               "output %u of a subgraph is an input, a constant or another output", i);
        made[e->id] = e->producer ? out[i] : made[e->id];
    }
    for (const ortc_node *o = body->first; status == ORTC_OK && o; o = o->next) {
        ortc_node *c = copy_into(before->graph, o, made);
        if (!c) {
            status = ortc_no_memory(error, 0);
            break;
        }
        ortc_node_move_before(c, before);
        if (out_first && !*out_first) *out_first = c;
    }
    free(made);
    return status;
}

ortc_status ortc_node_expand(ortc_node *n, ortc_node **out_first, ortc_error *error)
{
    ORTC_TRY(ortc_graph_inline(n->body, n->in, n->n_in, n->out, n->n_out, n, out_first, error));
    ortc_node_remove(n);
    return ORTC_OK;
}
