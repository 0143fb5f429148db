/* graph/specialise/between_bytes.c: what reads integers of 8 bits as numbers: means of channels and windows
 * that become such integers again, and normalisations.
 *
 *   QuantizeLinear(GlobalAveragePool(DequantizeLinear(x)))     or ReduceMean of all but images and channels
 *   QuantizeLinear(AveragePool(DequantizeLinear(x)))
 *   LayerNormalization(DequantizeLinear(x), scale, bias)       RMS-, Instance- and GroupNormalization, too
 *
 * become one node, a group of these, which reads bytes; what follows a normalisation is its epilogue later.
 * What else reads the numbers has a DequantizeLinear of its own, which goes where they are read, so that they
 * are never in memory. Where the provider has a kernel for it.
 */
#include "graph/ir/quantised.h"
#include "pointwise_nodes.h"
#include "specialise.h"

/* The QuantizeLinear to 8 bits, by one scale, that alone reads e; NULL: none. */
static ortc_node *quantises(const ortc_edge *e)
{
    ortc_node *q = e->uses ? e->uses->node : NULL;
    return q && ortc_read_inside(e, &q, 1) && ortc_is_op(q, "QuantizeLinear") && q->in[0] == e &&
                   q->n_out == 1 && ortc_is_bytes(q->out[0]) && ortc_edge_is_const(q->in[1]) &&
                   q->in[1]->constant->count == 1
               ? q
               : NULL;
}

static bool normalises(const ortc_node *n)
{
    static const char *const norms[] = {"LayerNormalization", "RMSNormalization", "InstanceNormalization",
                                        "GroupNormalization"};
    bool yes = false;
    for (size_t i = 0; i < ORTC_LENGTH(norms); i++) yes |= ortc_is_op(n, norms[i]);
    for (uint32_t i = 1; i < n->n_out; i++) yes &= !n->out[i];
    return yes;
}

/* Nodes of a group behind a DequantizeLinear; NULL behind it: it is the last. false: there is no such
 * group. */
static bool read_group(ortc_specialise *s, ortc_node *n, ortc_node **behind)
{
    *behind = NULL;
    if (normalises(n)) return true;
    if (n->n_in < 1 || !n->in[0] || n->epilogue) return false;
    if (!ortc_averages(n, n->in[0]) && !ortc_is_op(n, "AveragePool")) return false;
    *behind = quantises(n->out[0]);
    return *behind && s->together(s->arg, n, *behind);
}

ortc_status ortc_pass_between_bytes(ortc_specialise *s)
{
    for (ortc_node *n = s->graph->first, *next; n; n = next) {
        ortc_quantised a;
        ortc_node *behind, *made = NULL;
        next = n->next;
        ortc_edge *numbers = n->n_in ? n->in[0] : NULL;
        if (!numbers || !ortc_read_dequantised(numbers, &a) || a.scale->count != 1 ||
            !read_group(s, n, &behind))
            continue;
        ortc_node *shared = numbers->producer,
                  *own = ortc_node_like(s->graph, n, "DequantizeLinear", ORTC_F32, numbers, shared->n_in,
                                        shared->in);
        if (!own) return ortc_no_memory(s->error, 0);
        if (!s->accept(s->arg, own, own, n)) {
            ortc_node_remove(own);
            continue;
        }
        if (!ortc_node_set_in(n, 0, own->out[0])) return ortc_no_memory(s->error, 0);
        const ortc_node *const nodes[] = {own, n, behind};
        ORTC_TRY(ortc_specialise_join(s, nodes, behind ? 3 : 2, behind ? "mean" : "norm", &made));
        if (!made) {
            if (!ortc_node_set_in(n, 0, numbers)) return ortc_no_memory(s->error, 0);
            ortc_node_remove(own);
            continue;
        }
        next = made->next;
        if (!numbers->uses) ortc_node_remove(shared);
    }
    return ORTC_OK;
}
