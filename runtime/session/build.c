/* runtime/session/build.c: graphs to units: the stages place, specialise and bind, for a graph and for the
 * subgraphs in it (build.h). */
#include "build.h"

#include "graph/specialise/specialise.h"
#include "runtime/place/place.h"
#include "runtime/plan/choose.h"

/* ---- Specialising: the kernels are asked --------------------------------------------------------------- */

static bool accept(void *arg, const ortc_node *proposal, const ortc_node *node, const ortc_node *where)
{
    return ortc_place_accepts(arg, proposal, node, where);
}

static bool groups(void *arg, const ortc_node *n) { return ortc_place_groups(arg, n); }

static bool rounds(void *arg, const ortc_node *n)
{
    const ortc_site *s = ortc_site_of(arg, n);
    for (uint32_t i = 0; i < s->n_candidates; i++)
        if (s->candidates[i].kernel->flags & ORTC_KERNEL_ROUNDS) return true;
    return false;
}

static bool together(void *arg, const ortc_node *a, const ortc_node *b)
{
    return ortc_site_of(arg, a)->device == ortc_site_of(arg, b)->device;
}

static ortc_status specialise(ortc_placed *p, uint64_t *edits, ortc_error *error)
{
    ortc_specialise s = {.graph = p->graph,
                         .error = error,
                         .stop = p->stop,
                         .accept = accept,
                         .groups = groups,
                         .together = together,
                         .rounds = rounds,
                         .arg = p};
    return ortc_specialise_run(&s, edits);
}

/* ---- Subgraphs ----------------------------------------------------------------------------------------- */

static void destroy_child(ortc_unit *u)
{
    ortc_unit_deinit(u); /* the graph is its parent's */
    free(u);
}

static ortc_status make_child(ortc_unit *u, const ortc_node *n, const ortc_attribute *a, const char *require,
                              uint32_t flags, ortc_error *error)
{
    ortc_unit *child = calloc(1, sizeof *child);
    ortc_unit_child *entry = ortc_arena_alloc(&u->placed.graph->arena, sizeof *entry);
    if (!child || !entry) {
        free(child);
        return ortc_no_memory(error, sizeof *child);
    }
    child->destroy = destroy_child;
    child->packed = u->packed;
    child->shelf = u->shelf;
    child->threads = u->threads;
    child->allocator = u->allocator;
    child->executor = u->executor;
    child->kept = ortc_kept_retain(u->kept);
    child->placed.forced = u->placed.forced;
    child->placed.n_forced = u->placed.n_forced;
    child->placed.ask = u->placed.ask;
    child->max_contexts = u->max_contexts;
    child->max_bytes = u->max_bytes;
    ortc_unit_init(child, u->plans.max_bytes);
    *entry = (ortc_unit_child){a->name, child, u->children[n->id]};
    u->children[n->id] = entry; /* released with the unit around it, also when it cannot be built */
    return ortc_unit_build(child, (ortc_graph *)(uintptr_t)a->value.u.graphs[0], u->placed.targets, require,
                           flags, u->placed.stop, NULL, error);
}

static ortc_status make_children(ortc_unit *u, const char *require, uint32_t flags, ortc_error *error)
{
    ortc_graph *g = u->placed.graph;
    for (const ortc_node *n = g->first; n; n = n->next)
        for (uint32_t i = 0; i < n->n_attrs; i++) {
            if (n->attrs[i].value.kind != ORTC_ATTR_GRAPH) continue;
            if (!u->children &&
                !(u->children = ortc_arena_array(&g->arena, g->next_node, sizeof(ortc_unit_child *))))
                return ortc_no_memory(error, g->next_node * sizeof(ortc_unit_child *));
            ORTC_TRY(make_child(u, n, &n->attrs[i], require, flags, error));
        }
    return ORTC_OK;
}

/* ---- The stages ---------------------------------------------------------------------------------------- */

static ortc_status build(ortc_unit *u, ortc_graph *g, const char *require, uint32_t flags, uint64_t *edits,
                         ortc_error *error)
{
    ORTC_TRY(ortc_place(&u->placed, error));
    if (!edits && !(edits = ortc_arena_array(&g->arena, ortc_specialise_n_passes, sizeof *edits)))
        return ortc_no_memory(error, 0);
    if (!(flags & ORTC_SESSION_NO_FUSION)) ORTC_TRY(specialise(&u->placed, edits, error));
    if (require) /* after fusion: what a kernel has taken in is no node of its own any more */
        ORTC_TRY(ortc_place_require(&u->placed, require, error));
    ORTC_TRY(ortc_bind(&u->placed, error));
    ORTC_TRY(ortc_settle(&u->placed, error));
    return make_children(u, require, flags, error);
}

ortc_status ortc_unit_build(ortc_unit *u, ortc_graph *g, const ortc_targets *targets, const char *require,
                            uint32_t flags, const ortc_stop *stop, uint64_t *edits, ortc_error *error)
{
    ORTC_TRY(ortc_placed_init(&u->placed, g, targets, error));
    u->placed.stop = stop;
    const ortc_status s = build(u, g, require, flags, edits, error);
    u->placed.stop = NULL; /* the caller's; there is nothing to stop any more */
    return s;
}
