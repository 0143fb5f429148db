/* graph/onnx/part.c: a part of a model graph: what makes some values, from some others. */
#include "graph/onnx/onnx.h"

/* By the file's name, or as an output of the model. */
static ortc_edge *find(const ortc_graph *g, const char *name)
{
    for (uint32_t i = 0; i < g->n_outputs; i++)
        if (!strcmp(g->outputs[i].name, name)) return g->outputs[i].edge;
    for (const ortc_node *n = g->first; n; n = n->next)
        for (uint32_t i = 0; i < n->n_out; i++)
            if (n->out[i] && n->out[i]->origin && !strcmp(n->out[i]->origin, name)) return n->out[i];
    return NULL;
}

static ortc_status find_all(const ortc_graph *g, const char *const *names, size_t n, ortc_edge **out,
                            ortc_error *error)
{
    for (size_t i = 0; i < n; i++) {
        if (!names || !names[i])
            return ortc_fail(error, ORTC_INVALID_ARGUMENT, "a name of a value of the part is NULL");
        out[i] = find(g, names[i]);
        if (!out[i])
            return ortc_fail(error, ORTC_NOT_FOUND, "the model has no value '%s' to cut at", names[i]);
    }
    return ORTC_OK;
}

/* Ends are lists of the graph's: an output is a use of its edge, an input is known by it. */
static void drop_ends(ortc_graph *g)
{
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        ortc_use **at = &g->outputs[i].edge->uses;
        while (*at && ((*at)->node || (*at)->port != i)) at = &(*at)->next;
        if (*at) *at = (*at)->next;
    }
    for (uint32_t i = 0; i < g->n_inputs; i++) g->inputs[i].edge->input = -1;
    g->n_outputs = g->n_inputs = 0;
}

static void drop_dead(ortc_graph *g)
{
    for (ortc_node *n = g->last, *before; n; n = before) { /* backwards: one sweep takes whole chains */
        bool used = false;
        before = n->prev;
        for (uint32_t i = 0; i < n->n_out && !used; i++) used = n->out[i] && n->out[i]->uses;
        if (!used) ortc_node_remove(n);
    }
}

static ortc_status cut(ortc_graph *g, const ortc_save_options *o, ortc_edge **ends, ortc_error *error)
{
    ortc_edge **from = ends, **to = ends + o->n_inputs;
    const ortc_graph_input *old = g->inputs;
    const uint32_t n_old = g->n_inputs;

    ORTC_TRY(find_all(g, o->inputs, o->n_inputs, from, error));
    ORTC_TRY(find_all(g, o->outputs, o->n_outputs, to, error));
    ortc_graph_input *own = ortc_arena_array(&g->arena, n_old, sizeof *own);
    if (n_old && !own) return ortc_no_memory(error, n_old * sizeof *own);
    if (n_old) memcpy(own, old, n_old * sizeof *own);
    drop_ends(g);
    for (size_t i = 0; i < o->n_inputs; i++)
        if (from[i]->producer && !ortc_node_set_out(from[i]->producer, from[i]->producer_port, NULL))
            return ortc_no_memory(error, 0);
    for (size_t i = 0; i < o->n_outputs; i++)
        if (!ortc_graph_add_output(g, o->outputs[i], to[i])) return ortc_no_memory(error, 0);
    drop_dead(g);
    for (size_t i = 0; i < o->n_inputs; i++)
        if (from[i]->uses && from[i]->input < 0 && !ortc_graph_add_input(g, o->inputs[i], from[i]))
            return ortc_no_memory(error, 0);
    for (uint32_t i = 0; i < n_old; i++)
        if (own[i].edge->uses && own[i].edge->input < 0 && !ortc_graph_add_input(g, own[i].name, own[i].edge))
            return ortc_no_memory(error, 0);
    return ORTC_OK;
}

ortc_status ortc_onnx_part(const ortc_graph *whole, const ortc_save_options *o, ortc_graph **out,
                           ortc_error *error)
{
    ortc_arena arena = {0};
    ortc_edge **ends = ortc_arena_array(&arena, o->n_inputs + o->n_outputs, sizeof *ends);
    ortc_status s = ends ? ortc_graph_clone(whole, out, error) : ortc_no_memory(error, 0);

    if (s == ORTC_OK) {
        s = cut(*out, o, ends, error);
        if (s != ORTC_OK) {
            ortc_graph_destroy(*out);
            *out = NULL;
        }
    }
    ortc_arena_deinit(&arena);
    return s;
}
