/* runtime/session/hooks.c: what a caller lends to a session or wants to see of it: allocator, executor,
 * values to keep,
 * kernels to choose. */
#include "create.h"

ortc_status ortc_session_take_hooks(ortc_session *s, const ortc_session_options *o, ortc_error *error)
{
    if (o->allocator) {
        if (o->allocator->size < sizeof s->own_allocator || !o->allocator->alloc || !o->allocator->free)
            return ortc_fail(error, ORTC_INVALID_ARGUMENT,
                             "the allocator's size is not set, or a function of it is NULL");
        memcpy(&s->own_allocator, o->allocator, sizeof s->own_allocator);
        s->unit.allocator = &s->own_allocator;
    }
    if (o->executor) {
        if (o->executor->size < sizeof s->own_executor || !o->executor->run || o->executor->threads < 1 ||
            o->executor->threads > 256)
            return ortc_fail(error, ORTC_INVALID_ARGUMENT,
                             "the executor's size is not set, its function is NULL, or its threads are not "
                             "1 to 256");
        memcpy(&s->own_executor, o->executor, sizeof s->own_executor);
        s->unit.executor = &s->own_executor;
    }
    return ORTC_OK;
}

/* The edge that has the value which the file calls `name`; edges that a pass has replaced point to their
 * equals. */
static ortc_edge *find_value(ortc_graph *g, const char *name, bool *known)
{
    *known = false;
    for (size_t i = 0; i < g->edges.count; i++) {
        ortc_edge *e = g->edges.data[i];
        if (!e->origin || strcmp(e->origin, name)) continue;
        *known = true;
        for (size_t hops = 0; e->same && hops < g->edges.count; hops++) e = g->edges.data[e->same - 1];
        if (e->producer || e->input >= 0 || e->constant) return e;
    }
    return NULL;
}

ortc_status ortc_session_keep(ortc_graph *g, const ortc_session_options *o, ortc_error *error)
{
    for (size_t i = 0; i < o->n_keep; i++) {
        const char *name = o->keep ? o->keep[i] : NULL;
        bool known = false;
        if (!name) return ortc_fail(error, ORTC_INVALID_ARGUMENT, "a name of a value to keep is NULL");
        for (uint32_t k = 0; k < g->n_outputs && !known; k++) known = !strcmp(g->outputs[k].name, name);
        if (known) continue; /* an output as it is */
        ortc_edge *e = find_value(g, name, &known);
        if (!e && known)
            return ortc_fail(
                error, ORTC_NOT_FOUND,
                "the value '%s' is no longer computed: a pass has folded it into another when the model was "
                "loaded (ORTC_MODEL_NO_PASSES keeps all of them)",
                name);
        if (!e) return ortc_fail(error, ORTC_NOT_FOUND, "the model has no value '%s'", name);
        char *copy = ortc_arena_string(&g->arena, name, strlen(name));
        if (!copy || !ortc_graph_add_output(g, copy, e)) return ortc_no_memory(error, 0);
    }
    return ORTC_OK;
}

/* "NODE=KERNEL@LAYOUT": of KERNEL and @LAYOUT one may be left out. */
static ortc_status read_choice(ortc_arena *arena, const char *text, ortc_forced *out, ortc_error *error)
{
    const char *equals = text ? strrchr(text, '=') : NULL, *at = equals ? strchr(equals, '@') : NULL;
    if (!equals || equals == text || !equals[1])
        return ortc_fail(
            error, ORTC_INVALID_ARGUMENT,
            "choice '%s': expected NODE=KERNEL, OPERATOR=KERNEL or *=KERNEL, where KERNEL may be "
            "followed by @LAYOUT",
            text ? text : "(NULL)");
    const char *end = at ? at : equals + strlen(equals);
    out->laid_out = at != NULL;
    if (at && strcmp(at + 1, "plain") && !ortc_layout_parse(at + 1, &out->layout))
        return ortc_fail(
            error, ORTC_INVALID_ARGUMENT,
            "choice '%s': '%s' is no layout; a letter for each axis in the order of memory, and a "
            "blocked one large: acdb, aBcd16b, plain",
            text, at + 1);
    out->of = ortc_arena_string(arena, text, (size_t)(equals - text));
    out->kernel = ortc_arena_string(arena, equals + 1, (size_t)(end - equals - 1));
    return out->of && out->kernel ? ORTC_OK : ortc_no_memory(error, strlen(text));
}

ortc_status ortc_session_take_choices(ortc_session *s, const ortc_session_options *o, ortc_error *error)
{
    ortc_placed *p = &s->unit.placed;
    if (o->n_choose && !(s->forced = ortc_arena_array(&p->graph->arena, o->n_choose, sizeof *s->forced)))
        return ortc_no_memory(error, o->n_choose * sizeof *s->forced);
    for (size_t i = 0; i < o->n_choose; i++)
        ORTC_TRY(read_choice(&p->graph->arena, o->choose ? o->choose[i] : NULL, &s->forced[i], error));
    p->forced = s->forced;
    p->n_forced = o->n_choose;
    p->ask = o->flags & ORTC_SESSION_NO_WINOGRAD ? ORTC_ASK_NO_WINOGRAD : 0;
    return ORTC_OK;
}
