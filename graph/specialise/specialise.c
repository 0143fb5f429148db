/* graph/specialise/specialise.c: the table of specialising passes, and bodies for what they fuse. */
#include "specialise.h"

const ortc_specialise_pass ortc_specialise_passes[] = {
    {"fuse-epilogue", ortc_pass_fuse_epilogue},
};
const size_t ortc_specialise_n_passes = ORTC_LENGTH(ortc_specialise_passes);

ortc_status ortc_specialise_run(ortc_specialise *s, uint64_t *edits)
{
    for (size_t i = 0; i < ortc_specialise_n_passes; i++) {
        s->edits = 0;
        ORTC_TRY(ortc_specialise_passes[i].run(s));
        edits[i] = s->edits;
#ifndef NDEBUG
        ORTC_TRY(ortc_graph_verify(s->graph, s->error));
#endif
    }
    return ORTC_OK;
}

static ortc_node *copy_node(ortc_graph *body, const ortc_node *n)
{
    ortc_node *copy = ortc_node_create(body, n->op, n->name, n->n_in, n->n_out);
    if (!copy)
        return NULL;
    copy->version = n->version;
    copy->attrs = n->attrs; /* borrowed: the body lives in the same root graph */
    copy->n_attrs = n->n_attrs;
    return copy;
}

static ortc_edge *new_edge(ortc_graph *body, const ortc_edge *like)
{
    ortc_edge *e = ortc_edge_create(body, NULL);
    if (e) {
        e->origin = like->origin ? like->origin : like->name;
        e->type = like->type;
        e->rank = like->rank;
        e->dims = like->dims;
    }
    return e;
}

ortc_graph *ortc_body_append(ortc_node *n, const ortc_node *follower, ortc_edge *const *inputs, uint32_t n_inputs)
{
    ortc_graph *body = ortc_graph_create(n->graph);
    if (!body)
        return NULL;
    for (uint32_t i = 0; i < n_inputs; i++) {
        ortc_edge *e = ortc_edge_create(body, NULL);
        if (!e || !ortc_graph_add_input(body, inputs[i] ? inputs[i]->name : "", e))
            return NULL;
        if (inputs[i]) {
            e->type = inputs[i]->type;
            e->rank = inputs[i]->rank;
            e->dims = inputs[i]->dims;
        }
    }
    /* What n stood for: its earlier body, whose inputs are a prefix of the new ones, or n itself. */
    ortc_edge **made = NULL;
    ortc_edge *result = NULL;
    if (n->body) {
        const ortc_graph *old = n->body;
        made = ortc_arena_array(&body->arena, old->edges.count, sizeof *made);
        if (!made)
            return NULL;
        for (uint32_t i = 0; i < old->n_inputs; i++)
            made[old->inputs[i].edge->id] = body->inputs[i].edge;
        for (const ortc_node *o = old->first; o; o = o->next) {
            ortc_node *c = copy_node(body, o);
            if (!c)
                return NULL;
            for (uint32_t i = 0; i < o->n_in; i++)
                if (o->in[i] && !ortc_node_set_in(c, i, made[o->in[i]->id]))
                    return NULL;
            for (uint32_t i = 0; i < o->n_out; i++)
                if (o->out[i] && (!(made[o->out[i]->id] = new_edge(body, o->out[i])) ||
                                  !ortc_node_set_out(c, i, made[o->out[i]->id])))
                    return NULL;
        }
        result = made[old->outputs[0].edge->id];
    } else {
        ortc_node *c = copy_node(body, n);
        if (!c || !(result = new_edge(body, n->out[0])) || !ortc_node_set_out(c, 0, result))
            return NULL;
        for (uint32_t i = 0; i < n->n_in; i++)
            if (n->in[i] && !ortc_node_set_in(c, i, body->inputs[i].edge))
                return NULL;
    }
    ortc_node *last = copy_node(body, follower);
    ortc_edge *out = new_edge(body, follower->out[0]);
    if (!last || !out || !ortc_node_set_out(last, 0, out))
        return NULL;
    for (uint32_t i = 0; i < follower->n_in; i++) {
        const ortc_edge *e = follower->in[i];
        if (!e)
            continue;
        ortc_edge *from = e == n->out[0] ? result : NULL;
        for (uint32_t k = 0; k < n_inputs && !from; k++)
            if (inputs[k] == e)
                from = body->inputs[k].edge;
        if (!from || !ortc_node_set_in(last, i, from))
            return NULL;
    }
    return ortc_graph_add_output(body, follower->out[0]->name, out) ? body : NULL;
}
