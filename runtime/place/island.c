/* runtime/place/island.c: what should not be on a device although it could be (place.h).
 *
 * Host-only: nodes whose results only decide shapes. They are integer arithmetic on a few numbers, and the
 * host waits for them. Islands: connected nodes on a device with memory of its own, with other providers all
 * around, whose bytes in and out cost more than the device saves. They go back to a later provider that the
 * caller named and that works in host memory; never to `ref` as the unnamed last resort. Rates are rough on
 * purpose: a bus carries BUS bytes a second and costs LATENCY each way, the host works through HOST bytes a
 * second; arithmetic that grows faster than its bytes (ORTC_OP_HEAVY) is always worth the way.
 */
#include "place.h"

#define BUS 20e9
#define HOST 10e9
#define LATENCY 10e-6
#define SYMBOL 128 /* what an extent that is not a number counts as */
#define ROUNDS 4   /* islands that went back may make new ones */

bool ortc_is_host_only(const ortc_session *s, const ortc_node *n)
{
    bool any = false;
    for (uint32_t i = 0; i < n->n_out; i++)
        if (n->out[i]) {
            if (n->out[i]->id >= s->n_marked || !s->shapes_only[n->out[i]->id]) return false;
            any = true;
        }
    return any;
}

ortc_status ortc_mark_shapes_only(ortc_session *s, ortc_error *error)
{
    ortc_graph *g = s->graph;
    bool *only = s->shapes_only = ortc_arena_array(&g->arena, g->edges.count, sizeof *only);
    if (!only) return ortc_no_memory(error, g->edges.count);
    s->n_marked = g->edges.count;
    for (const ortc_node *n = g->last; n; n = n->prev)
        for (uint32_t i = 0; i < n->n_out; i++) {
            const ortc_edge *e = n->out[i];
            bool all = e && e->uses;
            for (const ortc_use *u = e ? e->uses : NULL; u && all; u = u->next) {
                const ortc_formal *f = u->node ? ortc_schema_in(ortc_op_schema(u->node->op), u->port) : NULL;
                all = u->node && ((f && (f->flags & ORTC_FORMAL_DECIDES)) || ortc_is_host_only(s, u->node));
            }
            if (e) only[e->id] = all;
        }
    return ORTC_OK;
}

static double bytes_of(const ortc_edge *e)
{
    if (!e || !e->type || e->type->kind != ORTC_KIND_TENSOR) return 0;
    double bytes = ortc_dtype_bits(e->type->dtype) / 8.0;
    for (int32_t i = 0; i < e->rank; i++)
        bytes *= ortc_dim_is_number(e->dims[i]) ? (double)e->dims[i] : SYMBOL;
    return bytes;
}

/* A later named provider in host memory that has a kernel for the node; n_devices: none. */
static uint32_t home_for(const ortc_session *s, const ortc_node *n)
{
    for (uint32_t d = n->device + 1; d < s->n_named; d++)
        if (!s->devices[d].space && ortc_place_find(&s->devices[d], n, NULL)) return d;
    return s->n_devices;
}

typedef struct island {
    ortc_node **nodes;
    uint32_t n;
    bool *inside; /* by node id */
} island;

static bool joins(const island *l, const ortc_node *from, ortc_node *n)
{
    return n && n->device == from->device && !l->inside[n->id];
}

static void grow(const ortc_session *s, island *l, ortc_node *seed)
{
    l->n = 0;
    l->nodes[l->n++] = seed;
    l->inside[seed->id] = true;
    for (uint32_t at = 0; at < l->n; at++) {
        ortc_node *n = l->nodes[at];
        for (uint32_t i = 0; i < n->n_in; i++)
            if (n->in[i] && joins(l, n, n->in[i]->producer)) {
                l->inside[n->in[i]->producer->id] = true;
                l->nodes[l->n++] = n->in[i]->producer;
            }
        for (uint32_t i = 0; i < n->n_out; i++)
            for (const ortc_use *u = n->out[i] ? n->out[i]->uses : NULL; u; u = u->next)
                if (joins(l, n, u->node)) {
                    l->inside[u->node->id] = true;
                    l->nodes[l->n++] = u->node;
                }
    }
    (void)s;
}

/* Whether the way there and back costs more than the work saves, and every node has a place to go. */
static bool goes_back(const ortc_session *s, const island *l)
{
    double work = 0, crossing = 0;
    uint32_t crossings = 0;
    for (uint32_t k = 0; k < l->n; k++) {
        const ortc_node *n = l->nodes[k];
        if ((n->op->flags & ORTC_OP_HEAVY) || n->op == &ortc_op_group || home_for(s, n) == s->n_devices)
            return false;
        for (uint32_t i = 0; i < n->n_in; i++) {
            const ortc_edge *e = n->in[i];
            work += bytes_of(e);
            if (e && !ortc_edge_is_const(e) && !(e->producer && e->producer->device == n->device)) {
                crossing += bytes_of(e);
                crossings++;
            }
        }
        for (uint32_t i = 0; i < n->n_out; i++) {
            bool outside = false;
            work += bytes_of(n->out[i]);
            for (const ortc_use *u = n->out[i] ? n->out[i]->uses : NULL; u; u = u->next)
                outside |= !u->node || u->node->device != n->device;
            crossing += outside ? bytes_of(n->out[i]) : 0;
            crossings += outside;
        }
    }
    return crossing / BUS + crossings * LATENCY >= work / HOST;
}

static void send_back(const ortc_session *s, const island *l)
{
    for (uint32_t k = 0; k < l->n; k++) {
        ortc_node *n = l->nodes[k];
        uint32_t d = home_for(s, n);
        n->kernel = ortc_place_find(&s->devices[d], n, NULL);
        n->reasons = "the copies there and back would cost more than the device saves";
        n->device = d;
    }
}

ortc_status ortc_place_islands(ortc_session *s, ortc_error *error)
{
    ortc_graph *g = s->graph;
    island l = {.n = 0};
    if (s->n_spaces == 1) return ORTC_OK;
    l.nodes = malloc((g->n_nodes + 1u) * sizeof *l.nodes);
    l.inside = malloc(g->next_node + 1u);
    bool changed = l.nodes && l.inside;
    ortc_status status = changed ? ORTC_OK : ortc_no_memory(error, g->n_nodes * sizeof *l.nodes);
    for (int round = 0; round < ROUNDS && changed; round++) {
        changed = false;
        memset(l.inside, 0, g->next_node + 1u);
        for (ortc_node *n = g->first; n; n = n->next) {
            if (l.inside[n->id] || !s->devices[n->device].space) continue;
            grow(s, &l, n);
            if (goes_back(s, &l)) {
                send_back(s, &l);
                changed = true;
            }
        }
    }
    free(l.nodes);
    free(l.inside);
    return status;
}
