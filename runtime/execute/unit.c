/* runtime/execute/unit.c: units: their ends, and what they may use (unit.h). */
#include "context.h"

void ortc_unit_init(ortc_unit *u, uint64_t max_plan_bytes)
{
    atomic_init(&u->references, 1);
    pthread_mutex_init(&u->lock, NULL);
    pthread_cond_init(&u->returned, NULL);
    ortc_plan_cache_init(&u->plans, max_plan_bytes);
}

void ortc_unit_deinit(ortc_unit *u)
{
    for (ortc_context *c = u->idle, *next; c; c = next) {
        next = c->next;
        ortc_context_free(c);
    }
    ortc_kept_release(u->kept);
    ortc_plan_cache_deinit(&u->plans);
    for (const ortc_node *n = u->children ? u->placed.graph->first : NULL; n; n = n->next)
        for (ortc_unit_child *c = u->children[n->id]; c; c = c->next) ortc_unit_release(c->unit);
    ortc_placed_deinit(&u->placed);
    pthread_mutex_destroy(&u->lock);
    pthread_cond_destroy(&u->returned);
}

ortc_unit *ortc_unit_retain(ortc_unit *u)
{
    if (u) atomic_fetch_add_explicit(&u->references, 1, memory_order_relaxed);
    return u;
}

void ortc_unit_release(ortc_unit *u)
{
    if (u && atomic_fetch_sub_explicit(&u->references, 1, memory_order_acq_rel) == 1) u->destroy(u);
}

uint64_t ortc_unit_trim(ortc_unit *u)
{
    return ortc_context_trim_idle(u) + ortc_kept_trim(u->kept) + ortc_plan_cache_clear(&u->plans);
}

/* ---- The limit ------------------------------------------------------------------------------- */

void ortc_unit_unreserve(ortc_unit *u, size_t bytes) { atomic_fetch_sub(&u->arena_bytes, bytes); }

bool ortc_unit_reserve(ortc_unit *u, size_t bytes)
{
    for (int attempt = 0; attempt < 2; attempt++) {
        uint64_t all = atomic_fetch_add(&u->arena_bytes, bytes) + bytes;
        if (!u->max_bytes || all + ortc_plan_cache_shrink(&u->plans, NULL, UINT64_MAX) <= u->max_bytes)
            return true;
        ortc_unit_unreserve(u, bytes);
        if (attempt == 0) {
            ortc_context_trim_idle(u);
            ortc_plan_cache_shrink(&u->plans, NULL, 0);
        }
    }
    return false;
}

ortc_status ortc_unit_admit_plan(ortc_unit *u, const ortc_program *p, ortc_error *error)
{
    for (int attempt = 0; u->max_bytes && attempt < 2; attempt++) {
        uint64_t arenas = atomic_load(&u->arena_bytes),
                 room = arenas < u->max_bytes ? u->max_bytes - arenas : 0;
        if (ortc_plan_cache_shrink(&u->plans, p, room) <= room) return ORTC_OK;
        ortc_context_trim_idle(u);
    }
    if (!u->max_bytes) return ORTC_OK;
    ortc_plan_cache_shrink(&u->plans, NULL, 0);
    return ortc_fail(error, ORTC_LIMIT,
                     "a plan of %zu bytes is more than is left under the session's limit of %llu", p->bytes,
                     (unsigned long long)u->max_bytes);
}
