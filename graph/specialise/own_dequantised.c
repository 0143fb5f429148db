/* graph/specialise/own_dequantised.c: numbers that several pointwise nodes read of the same integers of 8
 * bits.
 *
 *   x -> DequantizeLinear -> Add (a residual)          x -> DequantizeLinear -> Add
 *                         -> QuantizeLinear              -> DequantizeLinear -> QuantizeLinear
 *
 * Each reader has a DequantizeLinear of its own, which becomes part of what the reader becomes: its epilogue
 * or its program then reads bytes, where numbers of 32 bits were written once and read by all. Readers that
 * meet again (x * Sigmoid(x)) keep theirs: they become one, mostly a table. So do those of integers with a
 * scale for each channel, which takes longer to make than to read (ConViT's positions 0.9).
 */
#include "graph/ir/quantised.h"
#include "pointwise_nodes.h"
#include "specialise.h"

enum { LOOKED_AT = 256, MOST_READERS = 1024 }; /* uses on the way from a reader; more are not looked at */

static bool reads(const ortc_node *n, const ortc_edge *e)
{
    for (uint32_t i = 0; i < n->n_in; i++)
        if (n->in[i] == e) return true;
    return false;
}

/* Whether something that reads e is reached from n, a reader, by pointwise nodes, or may be. */
static bool meets_another(const ortc_node *n, const ortc_edge *e)
{
    ortc_node *seen[ORTC_POINTWISE_MOST];
    uint32_t count = 0, looked = 0;
    for (uint32_t k = 0; k <= count; k++) {
        const ortc_node *from = k ? seen[k - 1] : n;
        for (uint32_t o = 0; o < from->n_out; o++)
            for (const ortc_use *u = from->out[o] ? from->out[o]->uses : NULL; u; u = u->next) {
                if (++looked > LOOKED_AT) return true;
                if (!u->node || ortc_is_one_of(u->node, seen, count) || !ortc_pointwise_fits(u->node))
                    continue;
                if (reads(u->node, e) || count == ORTC_POINTWISE_MOST) return true;
                seen[count++] = u->node;
            }
    }
    return false;
}

/* Whether several nodes read e, and no pointwise one of them meets another. */
static bool are_apart(const ortc_edge *e)
{
    uint32_t readers = 0;
    for (const ortc_use *u = e->uses; u; u = u->next) {
        if (++readers > MOST_READERS) return false;
        if (u->node && ortc_pointwise_fits(u->node) && meets_another(u->node, e)) return false;
    }
    return readers > 1;
}

/* The first pointwise reader that is not `kept`; NULL: there is none. */
static ortc_node *next_reader(const ortc_edge *e, const ortc_node *kept)
{
    for (const ortc_use *u = e->uses; u; u = u->next)
        if (u->node && u->node != kept && ortc_pointwise_fits(u->node)) return u->node;
    return NULL;
}

ortc_status ortc_pass_own_dequantised(ortc_specialise *s)
{
    for (ortc_node *n = s->graph->first, *next; n; n = next) {
        ortc_quantised a;
        ortc_edge *numbers = n->n_out == 1 ? n->out[0] : NULL;
        next = n->next;
        if (!numbers || !ortc_read_dequantised(numbers, &a) || a.scale->count != 1 || !are_apart(numbers))
            continue;
        const ortc_node *kept = numbers->uses->node;
        for (ortc_node *reader; (reader = next_reader(numbers, kept));) {
            ortc_node *own = ortc_node_like(s->graph, reader, "DequantizeLinear", ORTC_F32, numbers, n->n_in,
                                            n->in);
            if (!own) return ortc_no_memory(s->error, 0);
            if (!s->accept(s->arg, own, own, reader)) {
                ortc_node_remove(own);
                break;
            }
            for (uint32_t i = 0; i < reader->n_in; i++)
                if (reader->in[i] == numbers && !ortc_node_set_in(reader, i, own->out[0]))
                    return ortc_no_memory(s->error, 0);
            s->edits++;
        }
    }
    return ORTC_OK;
}
