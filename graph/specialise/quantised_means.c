/* graph/specialise/quantised_means.c: means of channels between integers of 8 bits.
 *
 *   QuantizeLinear(GlobalAveragePool(DequantizeLinear(x)))     or ReduceMean of all but images and channels
 *
 * become one node, a group of the three, which reads bytes. What else reads the numbers has a
 * DequantizeLinear of its own, which goes where they are read, so that they are never in memory. Where the
 * provider has a kernel for it.
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

ortc_status ortc_pass_quantised_means(ortc_specialise *s)
{
    for (ortc_node *n = s->graph->first, *next; n; n = next) {
        ortc_quantised a;
        ortc_node *made = NULL;
        next = n->next;
        ortc_edge *numbers = n->n_in ? n->in[0] : NULL;
        if (!numbers || !ortc_averages(n, numbers) || n->epilogue || !ortc_read_dequantised(numbers, &a) ||
            a.scale->count != 1)
            continue;
        ortc_node *q = quantises(n->out[0]), *shared = numbers->producer;
        if (!q || !s->together(s->arg, n, q)) continue;
        ortc_node *own = ortc_node_like(s->graph, n, "DequantizeLinear", ORTC_F32, numbers, shared->n_in,
                                        shared->in);
        if (!own) return ortc_no_memory(s->error, 0);
        if (!s->accept(s->arg, own, own, n)) {
            ortc_node_remove(own);
            continue;
        }
        if (!ortc_node_set_in(n, 0, own->out[0])) return ortc_no_memory(s->error, 0);
        ORTC_TRY(ortc_specialise_join(s, (const ortc_node *const[]){own, n, q}, 3, "mean", &made));
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
