/* runtime/execute/shelf.c: arenas of idle contexts, which other sessions of the model may take (context.h).
 *
 * A context of a pool puts its arena on the shelf when it goes idle, and takes it back, with all that is
 * bound to it, when it runs again. Who needs an arena meanwhile takes it for good, before it asks for new
 * memory: so sessions that run one after the other have one arena together. Only memory of the host, of
 * contexts without devices, and without limits and allocators, which count what is whose. The shelf's lock
 * is the last that is taken.
 */
#include "context.h"

#define LEAST ((size_t)1 << 20) /* below, binding anew costs more than memory */

void ortc_shelf_offer(ortc_context *c)
{
    const ortc_unit *u = c->unit;
    if (!u->shelf || u->allocator || u->max_bytes || u->placed.targets->n_spaces > 1 ||
        c->arena_bytes[0] < LEAST)
        return;
    pthread_mutex_lock(&u->shelf->lock);
    c->offered = true;
    c->next_offered = u->shelf->first;
    u->shelf->first = c;
    pthread_mutex_unlock(&u->shelf->lock);
}

static void take_down(ortc_shelf *s, ortc_context *c)
{
    ortc_context **at = &s->first;
    while (*at != c) at = &(*at)->next_offered;
    *at = c->next_offered;
    c->offered = false;
}

bool ortc_shelf_reclaim(ortc_context *c)
{
    ortc_shelf *s = c->unit->shelf;
    if (!s) return true;
    pthread_mutex_lock(&s->lock);
    if (c->offered) take_down(s, c);
    const bool kept = !c->robbed;
    c->robbed = false;
    pthread_mutex_unlock(&s->lock);
    return kept;
}

void *ortc_shelf_take(ortc_unit *u, size_t *bytes)
{
    void *arena = NULL;
    ortc_context *best = NULL;
    if (!u->shelf || u->allocator || u->max_bytes || *bytes < LEAST) return NULL;
    pthread_mutex_lock(&u->shelf->lock);
    for (ortc_context *c = u->shelf->first; c; c = c->next_offered)
        if (c->arena_bytes[0] >= *bytes && (!best || c->arena_bytes[0] < best->arena_bytes[0])) best = c;
    if (best) {
        take_down(u->shelf, best);
        best->robbed = true;
        arena = best->arenas[0];
        *bytes = best->arena_bytes[0];
        best->arenas[0] = NULL;
        best->arena_bytes[0] = 0;
        ortc_unit_unreserve(best->unit, *bytes);
        ortc_unit_reserve(u, *bytes); /* without a limit: it is counted */
    }
    pthread_mutex_unlock(&u->shelf->lock);
    return arena;
}
