/* runtime/place/expand.c: raised nodes that no provider has taken so far go back to their bodies, where those
 * before the next one have kernels for what is heavy in them: Attention on a provider that has MatMul keeps
 * the work there, whatever those can that the caller named later. And where nobody has a kernel for the node.
 *
 * A body in which nothing is heavy goes to pieces only where they take all of its arithmetic: a provider that
 * has Mul alone leaves LayerNormalization to ref, which computes it in one loop. Claims have been made
 * before; a provider that claims can look into bodies by itself.
 */
#include "graph/ir/body.h"
#include "place.h"

/* Does one of the first providers have a kernel? */
static bool is_wanted(const ortc_placed *p, uint32_t devices, const ortc_node *n)
{
    for (uint32_t d = 0; d < devices; d++)
        if (ortc_place_can(&p->targets->list[d], n)) return true;
    return false;
}

static bool body_is_wanted(const ortc_placed *p, uint32_t devices, const ortc_graph *body)
{
    bool any = false, parts = true, heavy = false, heavy_wanted = false;
    for (const ortc_node *n = body->first; n; n = n->next) {
        const bool wanted = is_wanted(p, devices, n) ||
                            (ortc_node_is_raised(n) && body_is_wanted(p, devices, n->body));
        any |= wanted;
        parts &= wanted || !n->op || !n->op->expand;
        if (!n->op || !(n->op->flags & ORTC_OP_HEAVY)) continue;
        heavy = true;
        heavy_wanted |= wanted;
    }
    return heavy ? heavy_wanted : any && parts;
}

ortc_status ortc_place_expand(ortc_placed *p, uint32_t devices, bool *any, ortc_error *error)
{
    *any = false;
    for (ortc_node *n = p->graph->first, *next; n; n = next) {
        next = n->next;
        if (!ortc_placed_cover(p)) return ortc_no_memory(error, 0);
        if (ortc_kernel_of(p, n) || !ortc_node_is_raised(n) || is_wanted(p, devices, n)) continue;
        if (!body_is_wanted(p, devices, n->body) && is_wanted(p, p->targets->count, n)) continue;
        ORTC_TRY(ortc_node_expand(n, &next, error)); /* what came of it may be raised nodes again */
        *any = true;
    }
    return *any ? ortc_graph_infer(p->graph, error) : ORTC_OK; /* symbols may have become numbers since */
}
