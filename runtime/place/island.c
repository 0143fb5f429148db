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

static double bytes_of(const ortc_edge *e)
{
    if (!e || !e->type || e->type->kind != ORTC_KIND_TENSOR) return 0;
    double bytes = ortc_dtype_bits(e->type->dtype) / 8.0;
    for (int32_t i = 0; i < e->rank; i++)
        bytes *= ortc_dim_is_number(e->dims[i]) ? (double)e->dims[i] : SYMBOL;
    return bytes;
}

/* A later named provider in host memory that has a kernel for the node; targets->count: none. */
static uint32_t home_for(const ortc_placed *p, const ortc_node *n)
{
    for (uint32_t d = ortc_site_of(p, n)->device + 1; d < p->targets->named; d++)
        if (!p->targets->list[d].space && ortc_place_can(&p->targets->list[d], n)) return d;
    return p->targets->count;
}

static uint32_t device_of(const ortc_placed *p, const ortc_node *n) { return ortc_site_of(p, n)->device; }

typedef struct island {
    ortc_node **nodes;
    uint32_t n;
    bool *inside; /* by node id */
} island;

static bool joins(const ortc_placed *p, const island *l, const ortc_node *from, const ortc_node *n)
{
    return n && device_of(p, n) == device_of(p, from) && !l->inside[n->id];
}

static void grow(const ortc_placed *p, island *l, ortc_node *seed)
{
    l->n = 0;
    l->nodes[l->n++] = seed;
    l->inside[seed->id] = true;
    for (uint32_t at = 0; at < l->n; at++) {
        ortc_node *n = l->nodes[at];
        for (uint32_t i = 0; i < n->n_in; i++)
            if (n->in[i] && joins(p, l, n, n->in[i]->producer)) {
                l->inside[n->in[i]->producer->id] = true;
                l->nodes[l->n++] = n->in[i]->producer;
            }
        for (uint32_t i = 0; i < n->n_out; i++)
            for (const ortc_use *u = n->out[i] ? n->out[i]->uses : NULL; u; u = u->next)
                if (joins(p, l, n, u->node)) {
                    l->inside[u->node->id] = true;
                    l->nodes[l->n++] = u->node;
                }
    }
}

/* Whether the way there and back costs more than the work saves, and every node has a place to go. */
static bool goes_back(const ortc_placed *p, const island *l)
{
    double work = 0, crossing = 0;
    uint32_t crossings = 0;
    for (uint32_t k = 0; k < l->n; k++) {
        const ortc_node *n = l->nodes[k];
        if ((n->op->flags & ORTC_OP_HEAVY) || n->op == &ortc_op_group || home_for(p, n) == p->targets->count)
            return false;
        for (uint32_t i = 0; i < n->n_in; i++) {
            const ortc_edge *e = n->in[i];
            work += bytes_of(e);
            if (e && !ortc_edge_is_const(e) &&
                !(e->producer && device_of(p, e->producer) == device_of(p, n))) {
                crossing += bytes_of(e);
                crossings++;
            }
        }
        for (uint32_t i = 0; i < n->n_out; i++) {
            bool outside = false;
            work += bytes_of(n->out[i]);
            for (const ortc_use *u = n->out[i] ? n->out[i]->uses : NULL; u; u = u->next)
                outside |= !u->node || device_of(p, u->node) != device_of(p, n);
            crossing += outside ? bytes_of(n->out[i]) : 0;
            crossings += outside;
        }
    }
    return crossing / BUS + crossings * LATENCY >= work / HOST;
}

static bool send_back(ortc_placed *p, const island *l)
{
    for (uint32_t k = 0; k < l->n; k++) {
        const ortc_node *n = l->nodes[k];
        if (!ortc_place_on(p, n, home_for(p, n), NULL)) return false;
        ortc_site_of(p, n)->reasons = "the copies there and back would cost more than the device saves";
    }
    return true;
}

ortc_status ortc_place_islands(ortc_placed *p, ortc_error *error)
{
    ortc_graph *g = p->graph;
    island l = {.n = 0};
    if (p->targets->n_spaces == 1) return ORTC_OK;
    l.nodes = malloc((g->n_nodes + 1u) * sizeof *l.nodes);
    l.inside = malloc(g->next_node + 1u);
    bool changed = l.nodes && l.inside;
    ortc_status status = changed ? ORTC_OK : ortc_no_memory(error, g->n_nodes * sizeof *l.nodes);
    for (int round = 0; round < ROUNDS && changed; round++) {
        changed = false;
        memset(l.inside, 0, g->next_node + 1u);
        for (ortc_node *n = g->first; n; n = n->next) {
            if (status != ORTC_OK || l.inside[n->id] || !ortc_target_of(p, n)->space) continue;
            grow(p, &l, n);
            if (goes_back(p, &l)) {
                if (!send_back(p, &l)) status = ortc_no_memory(error, 0);
                changed = status == ORTC_OK;
            }
        }
    }
    free(l.nodes);
    free(l.inside);
    return status;
}
