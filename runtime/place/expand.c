/* runtime/place/expand.c: raised nodes that only the last resort would run go back to their bodies, where a
 * provider of the caller's has kernels for a part of them: Attention on a provider that has MatMul and
 * Softmax keeps the work there.
 *
 * A body of which no provider but the last takes anything stays one node: ref computes LayerNormalization in
 * one loop. Claims have been made before; a provider that claims can look into bodies by itself.
 */
#include "graph/ir/body.h"
#include "place.h"

/* Does one of the caller's providers have a kernel? The last device is the last resort. */
static bool is_wanted(const ortc_placed *p, const ortc_node *n)
{
    for (uint32_t d = 0; d + 1 < p->targets->count; d++)
        if (ortc_place_can(&p->targets->list[d], n)) return true;
    return false;
}

static bool body_is_wanted(const ortc_placed *p, const ortc_graph *body)
{
    for (const ortc_node *n = body->first; n; n = n->next)
        if (is_wanted(p, n) || (ortc_node_is_raised(n) && body_is_wanted(p, n->body))) return true;
    return false;
}

ortc_status ortc_place_expand(ortc_placed *p, bool *any, ortc_error *error)
{
    *any = false;
    for (ortc_node *n = p->graph->first, *next; n; n = next) {
        next = n->next;
        if (!ortc_placed_cover(p)) return ortc_no_memory(error, 0);
        if (ortc_kernel_of(p, n) || !ortc_node_is_raised(n) || is_wanted(p, n) || !body_is_wanted(p, n->body))
            continue;
        ORTC_TRY(ortc_node_expand(n, &next, error)); /* what came of it may be raised nodes again */
        *any = true;
    }
    return *any ? ortc_graph_infer(p->graph, error) : ORTC_OK; /* symbols may have become numbers since */
}
