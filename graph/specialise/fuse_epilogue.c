/* graph/specialise/fuse_epilogue.c: pointwise nodes behind a node of any other operator become its epilogue,
 * a program over its result (ortc_node_epilogue), as far as its kernel agrees.
 *
 *   Conv -> Add(residual) -> Relu            MatMul -> x * Sigmoid(x) -> Add(residual)
 *
 * What goes in is a set of nodes through which everything that reads the result passes, and which has one
 * result of the same shape: a chain, or branches that meet again. The largest is proposed first, then
 * smaller ones. The other values that the nodes read become ports behind the operator's own, but for
 * constants of one element, which are in the program and in the body. On whichever device the nodes were:
 * they come to where the operator is. What only widens such a value (DequantizeLinear of a residual) comes
 * along, if the kernel agrees, so that the value is read as narrow as it was made.
 */
#include "graph/ir/pointwise.h"
#include "graph/ir/quantised.h"
#include "pointwise_nodes.h"
#include "specialise.h"

enum { PORTS = ORTC_PW_INPUTS };

/* Pointwise nodes that can be reached from a result, all of its shape. */
typedef struct reach {
    ortc_node *nodes[ORTC_POINTWISE_MOST];
    uint32_t n;
} reach;

static bool reached(const void *arg, const ortc_node *n)
{
    const reach *r = arg;
    return ortc_is_one_of(n, r->nodes, r->n);
}

/* Elements of one value, wider: what else it reads are constants. */
static bool widens(const ortc_node *n)
{
    const ortc_edge *x = n->n_in ? n->in[0] : NULL, *y = n->out[0];
    for (uint32_t i = 1; i < n->n_in; i++)
        if (n->in[i] && !ortc_edge_is_const(n->in[i])) return false;
    return x && x->type && !ortc_edge_is_const(x) && ortc_same_shape(x, y) &&
           ortc_dtype_bits(x->type->dtype) < ortc_dtype_bits(y->type->dtype) && ortc_pointwise_fits(n);
}
static bool reached_or_widens(const void *arg, const ortc_node *n) { return reached(arg, n) || widens(n); }

/* Whether a pointwise node reads nothing else but constants. */
static bool is_function_of(const ortc_node *n, const ortc_edge *e)
{
    for (uint32_t i = 0; i < n->n_in; i++)
        if (n->in[i] && n->in[i] != e && !ortc_edge_is_const(n->in[i])) return false;
    return true;
}

/* Whether it makes numbers of 8 bits for several pointwise nodes and nothing else, of which one is a function
 * of these: then it is theirs, which are mostly a table of all bytes together. */
static bool is_of_readers(const ortc_node *n)
{
    const ortc_edge *y = n->out[0];
    bool several = false, function = false;
    if (!widens(n) || !ortc_is_bytes(n->in[0])) return false;
    for (const ortc_use *u = y->uses; u; u = u->next) {
        if (!u->node || !ortc_pointwise_fits(u->node)) return false;
        several |= u->node != y->uses->node;
        function |= is_function_of(u->node, y);
    }
    return several && function;
}

static void follow(const ortc_edge *result, reach *r)
{
    r->n = 0;
    for (uint32_t k = 0; k <= r->n && k < ORTC_POINTWISE_MOST; k++)
        for (const ortc_use *u = k ? r->nodes[k - 1]->out[0]->uses : result->uses; u; u = u->next)
            if (u->node && r->n < ORTC_POINTWISE_MOST && !reached(r, u->node) &&
                ortc_pointwise_fits(u->node) && ortc_same_shape(u->node->out[0], result))
                r->nodes[r->n++] = u->node;
}

/* A set of nodes in order, and the ports that they need. */
typedef struct followers {
    ortc_node *nodes[ORTC_POINTWISE_MOST];
    uint32_t n, n_ports;
    ortc_edge *ports[PORTS]; /* the operator's own are NULL */
} followers;

/* What widens other values is first: it reads nothing that the others make. */
static void put_in_order(const ortc_node *n, const reach *r, followers *f)
{
    ortc_node *ordered[ORTC_POINTWISE_MOST];
    uint32_t found = 0;
    for (uint32_t i = 0; i < f->n; i++)
        if (!reached(r, f->nodes[i])) ordered[found++] = f->nodes[i];
    for (ortc_node *at = n->next; at && found < f->n; at = at->next)
        if (reached(r, at) && ortc_is_one_of(at, f->nodes, f->n)) ordered[found++] = at;
    memcpy(f->nodes, ordered, found * sizeof *ordered);
    f->n = found;
}

static bool is_in_program(const ortc_edge *e) { return ortc_edge_is_const(e) && e->constant->count == 1; }

static bool find_ports(const ortc_node *n, followers *f)
{
    const uint32_t own = ortc_op_schema(n->op)->n_in;
    f->n_ports = n->n_in > own ? n->n_in : own;
    if (f->n_ports == 0) f->n_ports = 1; /* 0 is the result */
    if (f->n_ports > PORTS) return false;
    memset(f->ports, 0, sizeof f->ports);
    for (uint32_t k = 0; k < f->n; k++)
        for (uint32_t i = 0; i < f->nodes[k]->n_in; i++) {
            ortc_edge *e = f->nodes[k]->in[i];
            bool known = !e || e == n->out[0] || is_in_program(e) ||
                         (e->producer && ortc_is_one_of(e->producer, f->nodes, f->n));
            for (uint32_t p = 0; p < f->n_ports && !known; p++) known = f->ports[p] == e;
            if (known) continue;
            if (f->n_ports == PORTS) return false;
            f->ports[f->n_ports++] = e;
        }
    return true;
}

static const char *names_of(ortc_node *n, const followers *f)
{
    char list[256];
    ortc_text text = ORTC_TEXT(list);
    list[0] = 0;
    for (uint32_t k = 0; k < f->n; k++) ortc_text_add(&text, "%s%s", k ? " " : "", f->nodes[k]->type);
    return ortc_arena_printf(&n->graph->arena, "%s%s%s", n->fused ? n->fused : "", n->fused ? " " : "", list);
}

/* The graph after a yes. */
static ortc_status take(ortc_specialise *p, ortc_node *n, const followers *f, const ortc_node *proposal)
{
    ortc_edge *y = proposal->out[0], *old = n->out[0];
    const char *fused = names_of(n, f);
    if (!fused) return ortc_no_memory(p->error, 0);
    for (uint32_t i = n->n_in; i < proposal->n_in; i++)
        if (!ortc_node_set_in(n, i, proposal->in[i])) return ortc_no_memory(p->error, 0);
    if (!p->accept(p->arg, proposal, n, n)) return ortc_no_memory(p->error, 0);
    n->epilogue = proposal->epilogue;
    n->body = proposal->body;
    n->fused = fused;
    ortc_node_move_before(n, f->nodes[f->n - 1]); /* a residual may be made in between */
    for (uint32_t k = f->n; k-- > 0;) ortc_node_remove(f->nodes[k]);
    if (!ortc_node_set_out(n, 0, y)) return ortc_no_memory(p->error, 0);
    old->producer = NULL;
    p->edits++;
    return ORTC_OK;
}

static ortc_status propose(ortc_specialise *p, ortc_node *n, const reach *r, followers *f, bool *fused)
{
    ortc_graph *g = p->graph;
    *fused = false;
    put_in_order(n, r, f);
    if (!find_ports(n, f)) return ORTC_OK;
    ortc_node proposal = *n;
    proposal.n_in = f->n_ports;
    proposal.in = ortc_arena_array(&g->arena, f->n_ports, sizeof *proposal.in);
    proposal.out = ortc_arena_copy(&g->arena, &f->nodes[f->n - 1]->out[0], sizeof *proposal.out);
    if (!proposal.in || !proposal.out) return ortc_no_memory(p->error, 0);
    for (uint32_t i = 0; i < f->n_ports; i++) proposal.in[i] = i < n->n_in ? n->in[i] : f->ports[i];
    proposal.epilogue = ortc_pointwise_behind(n->out[0], f->nodes, f->n, f->ports, f->n_ports);
    if (!proposal.epilogue || !p->accept(p->arg, &proposal, NULL, n)) return ORTC_OK;
    ORTC_TRY(ortc_body_collect(g, proposal.in, proposal.n_in, proposal.out[0], &proposal.body, p->error));
    if (!proposal.body) return ORTC_OK;
    *fused = true;
    return take(p, n, f, &proposal);
}

static bool all_reached(const reach *r, ortc_node *const *nodes, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!reached(r, nodes[i])) return false;
    return true;
}

/* A set that ends in one of the reached nodes and swallows all who read the result is a candidate; wide: one
 * that has a node which widens what another one reads. */
static ortc_status fuse(ortc_specialise *p, ortc_node *n, const reach *r, bool wide, bool *fused)
{
    bool (*const may)(const void *, const ortc_node *) = wide ? reached_or_widens : reached;
    uint32_t sizes[ORTC_POINTWISE_MOST];
    followers f;
    *fused = false;
    for (uint32_t k = 0; k < r->n; k++) {
        sizes[k] = ortc_pointwise_grow(r->nodes[k], may, r, f.nodes);
        if (!ortc_read_inside(n->out[0], f.nodes, sizes[k]) || is_of_readers(r->nodes[k]) ||
            (wide && all_reached(r, f.nodes, sizes[k])))
            sizes[k] = 0;
    }
    for (uint32_t size = ORTC_POINTWISE_MOST; size > 0 && !*fused; size--)
        for (uint32_t k = 0; k < r->n && !*fused; k++) {
            if (sizes[k] != size) continue;
            f.n = ortc_pointwise_grow(r->nodes[k], may, r, f.nodes);
            ORTC_TRY(propose(p, n, r, &f, fused));
        }
    return ORTC_OK;
}

ortc_status ortc_pass_fuse_epilogue(ortc_specialise *p)
{
    for (ortc_node *n = p->graph->last, *before; n; n = before) {
        const ortc_edge *y = n->n_out == 1 ? n->out[0] : NULL;
        reach r;
        for (before = n->prev; before && before->op && before->op->expand;)
            before = before->prev; /* may go */
        if (!y || y->rank < 0 || n->epilogue || n->n_captures || !n->op || n->op->expand) continue;
        follow(y, &r);
        if (!ortc_read_inside(y, r.nodes, r.n)) continue;
        bool fused;
        ORTC_TRY(fuse(p, n, &r, true, &fused));
        if (!fused) ORTC_TRY(fuse(p, n, &r, false, &fused));
    }
    return ORTC_OK;
}
