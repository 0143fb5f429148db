/* runtime/plan/cache.c: a unit's programs by key, least recently used out first, within a budget of bytes.
 *
 * With the last program that uses them packed constants go, which take far longer to make again than a
 * program: such a one stays for HELD more look-ups. A decoder has one for the prompt and one for each length
 * behind it; those of one text are often more than there is room for, and all would be made anew for the
 * next.
 */
#include "plan.h"

#include <malloc.h>

#define HELD 4096

bool ortc_plan_cache_init(ortc_plan_cache *c, uint64_t max_bytes)
{
    memset(c, 0, sizeof *c);
    c->max_bytes = max_bytes;
    return !pthread_mutex_init(&c->lock, NULL);
}

ortc_program *ortc_plan_cache_get(ortc_plan_cache *c, const void *key, size_t key_bytes)
{
    uint64_t hash = ortc_hash(key, key_bytes, 0);
    pthread_mutex_lock(&c->lock);
    ortc_program *p = c->buckets[hash % ORTC_LENGTH(c->buckets)];
    while (p && (p->hash != hash || p->key_bytes != key_bytes || memcmp(p->key, key, key_bytes))) p = p->next;
    if (p) {
        p->last_used = ++c->clock;
        p->held = false;
        ortc_program_retain(p);
    }
    pthread_mutex_unlock(&c->lock);
    return p;
}

static void drop(ortc_plan_cache *c, ortc_program *p)
{
    ortc_program **at = &c->buckets[p->hash % ORTC_LENGTH(c->buckets)];
    while (*at != p) at = &(*at)->next;
    *at = p->next;
    p->next = NULL;
    c->bytes -= p->bytes;
    ortc_program_release(p);
}

static ortc_program *oldest(ortc_plan_cache *c, const ortc_program *but)
{
    for (;;) {
        ortc_program *found = NULL;
        for (size_t b = 0; b < ORTC_LENGTH(c->buckets); b++)
            for (ortc_program *p = c->buckets[b]; p; p = p->next)
                if (p != but && (!found || p->last_used < found->last_used)) found = p;
        if (!found || found->held || !found->packs.count ||
            !ortc_pack_alone(found->store, found->packs.data, found->packs.count))
            return found;
        found->held = true;
        found->last_used += HELD;
    }
}

bool ortc_plan_cache_put(ortc_plan_cache *c, ortc_program *p, const void *key, size_t key_bytes)
{
    if (!(p->key = ortc_arena_copy(&p->arena, key, key_bytes))) return false;
    p->key_bytes = key_bytes;
    p->hash = ortc_hash(key, key_bytes, 0);
    p->bytes = p->arena.bytes + sizeof *p;
    for (uint32_t i = 0; i < p->n_steps; i++) { /* what is given back by free() says how large it is */
        const ortc_step *s = &p->steps[i];
        if (s->pstate && !s->kernel->release_plan) p->bytes += malloc_usable_size(s->pstate);
    }
    pthread_mutex_lock(&c->lock);
    p->last_used = ++c->clock;
    p->next = c->buckets[p->hash % ORTC_LENGTH(c->buckets)];
    c->buckets[p->hash % ORTC_LENGTH(c->buckets)] = ortc_program_retain(p);
    c->bytes += p->bytes;
    for (ortc_program *o; c->bytes > c->max_bytes && (o = oldest(c, p));) drop(c, o);
    pthread_mutex_unlock(&c->lock);
    atomic_fetch_add(&c->made, 1);
    return true;
}

uint64_t ortc_plan_cache_shrink(ortc_plan_cache *c, const ortc_program *but, uint64_t to)
{
    pthread_mutex_lock(&c->lock);
    for (ortc_program *o; c->bytes > to && (o = oldest(c, but));) drop(c, o);
    uint64_t left = c->bytes;
    pthread_mutex_unlock(&c->lock);
    return left;
}

uint64_t ortc_plan_cache_clear(ortc_plan_cache *c)
{
    pthread_mutex_lock(&c->lock);
    uint64_t freed = c->bytes;
    for (size_t b = 0; b < ORTC_LENGTH(c->buckets); b++)
        while (c->buckets[b]) drop(c, c->buckets[b]);
    pthread_mutex_unlock(&c->lock);
    return freed;
}

void ortc_plan_cache_deinit(ortc_plan_cache *c)
{
    ortc_plan_cache_clear(c);
    pthread_mutex_destroy(&c->lock);
}
