/* graph/specialise/propose_layout.c: layouts that a device wishes for its nodes (ortc_provider.wish), decided
 * by its kernels.
 *
 * A node that has its wish reads its first input and writes its result in that layout; Reorder nodes stand
 * before and behind it. A node behind a Reorder that does not care (its kernel says yes to the same layout)
 * takes it over, so that whole chains stay in it, and two Reorders that undo each other vanish. Graph inputs
 * and outputs, and everything on other devices, stay plain. Dims are the same in every layout.
 */
#include "specialise.h"

static bool is_reorder(const ortc_node *n)
{
    return n && !strcmp(n->domain, "ortc") && !strcmp(n->type, "Reorder");
}

static ortc_edge *laid(ortc_graph *g, const ortc_edge *like, uint16_t layout)
{
    ortc_edge *e = ortc_edge_create(g, NULL);
    if (!e) return NULL;
    e->origin = like->origin ? like->origin : like->name;
    e->type = like->type;
    e->rank = like->rank;
    e->dims = like->dims;
    e->layout = layout;
    return e;
}

/* Reorder from `from` to `to` on the device of `where`, before a node (NULL: last); NULL: the device cannot,
 * or (with an error) no memory. */
static ortc_node *reorder(ortc_specialise *p, ortc_edge *from, ortc_edge *to, const ortc_node *where,
                          ortc_node *before)
{
    ortc_node *r = ortc_node_create(p->graph, ortc_op_find("ortc", "Reorder"), NULL, 1, 1);
    if (!r || !ortc_node_set_in(r, 0, from)) return NULL;
    r->version = 1;
    r->out[0] = to;
    bool accepted = p->accept(p->arg, r, r, where);
    r->out[0] = NULL;
    if (!accepted || !ortc_node_set_out(r, 0, to)) {
        ortc_node_remove(r);
        return NULL;
    }
    ortc_node_move_before(r, before);
    return r;
}

/* The value in `layout`, if some Reorder has it on this side or makes it from here. */
static ortc_edge *existing(const ortc_specialise *p, const ortc_edge *e, uint16_t layout,
                           const ortc_node *where)
{
    if (is_reorder(e->producer) && e->producer->in[0]->layout == layout &&
        p->together(p->arg, e->producer, where))
        return e->producer->in[0];
    for (const ortc_use *u = e->uses; u; u = u->next)
        if (is_reorder(u->node) && u->node->out[0]->layout == layout && p->together(p->arg, u->node, where))
            return u->node->out[0];
    return NULL;
}

/* Asks the kernels of the node's device, with the inputs of `mask` and the first output in the layout;
 * settled: they are its kernels from now on. */
static bool agrees(ortc_specialise *p, const ortc_node *n, uint64_t mask, uint16_t layout, bool settled)
{
    ortc_node proposal = *n;
    ortc_edge *in[8], *out[1], copies[9];
    if (n->n_in > ORTC_LENGTH(in) || n->n_out != 1 || n->n_captures) return false;
    for (uint32_t i = 0; i < n->n_in; i++) {
        in[i] = n->in[i];
        if (mask >> i & 1) {
            copies[i] = *n->in[i];
            copies[i].layout = layout;
            in[i] = &copies[i];
        }
    }
    copies[8] = *n->out[0];
    copies[8].layout = layout;
    out[0] = &copies[8];
    proposal.in = in;
    proposal.out = out;
    return p->accept(p->arg, &proposal, settled ? n : NULL, n);
}

static ortc_status lay_out(ortc_specialise *p, ortc_node *n, uint64_t mask, uint16_t layout)
{
    ortc_graph *g = p->graph;
    ortc_edge *y = n->out[0], *made, *in[8] = {NULL};
    if (!agrees(p, n, mask, layout, false)) return ORTC_OK;
    for (uint32_t i = 0; i < n->n_in; i++) {
        if (!(mask >> i & 1) || (in[i] = existing(p, n->in[i], layout, n))) continue;
        if (!(in[i] = laid(g, n->in[i], layout))) return ortc_no_memory(p->error, 0);
        if (!reorder(p, n->in[i], in[i], n, n))
            return ORTC_OK; /* the device has no Reorder between the two: its wish is void */
    }
    if (!agrees(p, n, mask, layout, true)) return ortc_no_memory(p->error, 0);
    if (!(made = laid(g, y, layout)) || !ortc_node_set_out(n, 0, made)) return ortc_no_memory(p->error, 0);
    for (uint32_t i = 0; i < n->n_in; i++)
        if (in[i] && !ortc_node_set_in(n, i, in[i])) return ortc_no_memory(p->error, 0);
    if (!reorder(p, made, y, n, n->next))
        return ortc_fail(p->error, ORTC_INTERNAL, "node '%s': a layout that can be made but not unmade",
                         n->name);
    p->edits++;
    return ORTC_OK;
}

/* Inputs that come out of a Reorder on the node's own device, and from which layout: 0 when they differ or
 * there are none. */
static uint64_t behind_reorders(const ortc_specialise *p, const ortc_node *n, uint16_t *layout)
{
    uint64_t mask = 0;
    *layout = 0;
    for (uint32_t i = 0; i < n->n_in && i < 64; i++) {
        const ortc_node *r = n->in[i] ? n->in[i]->producer : NULL;
        if (!is_reorder(r) || !p->together(p->arg, r, n) || n->in[i]->layout ||
            n->in[i]->rank != n->out[0]->rank)
            continue;
        if (*layout && *layout != r->in[0]->layout) return 0;
        *layout = r->in[0]->layout;
        mask |= UINT64_C(1) << i;
    }
    return mask;
}

ortc_status ortc_pass_propose_layout(ortc_specialise *p)
{
    for (ortc_node *n = p->wish ? p->graph->first : NULL, *next; n; n = next) {
        uint16_t layout = p->wish(p->arg, n);
        uint64_t mask = 1;
        next = n->next;
        if (is_reorder(n) || n->n_out != 1 || !n->out[0] || n->out[0]->rank < 3 || !n->n_in || !n->in[0])
            continue;
        if (layout == ORTC_LAYOUT_PLAIN) mask = behind_reorders(p, n, &layout);
        if (layout != ORTC_LAYOUT_PLAIN && mask) ORTC_TRY(lay_out(p, n, mask, layout));
    }
    for (ortc_node *n = p->graph->last, *before; n; n = before) { /* what nobody reads any more */
        before = n->prev;
        if (is_reorder(n) && !n->out[0]->uses) ortc_node_remove(n);
    }
    return ORTC_OK;
}
