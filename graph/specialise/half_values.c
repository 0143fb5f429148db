/* graph/specialise/half_values.c: values of f32 between products whose device rounds their operands to bf16
 * (ORTC_KERNEL_ROUNDS) are kept as bf16 there, which halves what goes through caches and memory.
 *
 *   Conv -> Relu -> MaxPool -> Conv        Cast -> Conv -> Relu -> MaxPool -> Conv, Cast behind
 *
 * Between means: made from the result of a product with weights, and read, in the end, by another one, by
 * pointwise nodes and those of the operators below alone. So images, embeddings, positions and masks stay
 * what they are, and so do the results of the graph and what leads from the last product to them. Casts
 * stand where a value of one kind is read as the other. A node changes if its device takes it so; its
 * constants are rounded, the largest finite numbers not to infinity, which is what masks are made of;
 * weights that are packed as they are packed, so that nothing is kept beside the packed form.
 *
 * An operator other than a product changes where everything that it reads is bf16 by then; of pointwise
 * nodes and products of values (Attention) one value will do, the others being made from weights, too: a mask
 * is not. A last product, which stays f32 so, reads bf16 as it is where its kernels take a Cast behind it
 * along and write its sums.
 */
#include "graph/ir/pointwise.h"
#include "graph/ir/quantised.h"
#include "specialise.h"

#define LEAST_PACKED 1024 /* elements of weights; of fewer a copy is no matter */

typedef enum role { OTHER, PRODUCT, POINTWISE, MOVES, VIEWS } role; /* views lie on any device */

static const struct {
    const char *op;
    role role;
} operators[] = {
    {"Conv", PRODUCT},
    {"ConvTranspose", PRODUCT},
    {"MatMul", PRODUCT},
    {"Gemm", PRODUCT},
    {"MaxPool", MOVES},
    {"AveragePool", MOVES},
    {"GlobalMaxPool", MOVES},
    {"GlobalAveragePool", MOVES},
    {"ReduceMean", MOVES},
    {"ReduceMax", MOVES},
    {"BatchNormalization", MOVES},
    {"LayerNormalization", MOVES},
    {"RMSNormalization", MOVES},
    {"GroupNormalization", MOVES},
    {"InstanceNormalization", MOVES},
    {"Softmax", MOVES},
    {"Attention", PRODUCT},
    {"RotaryEmbedding", MOVES},
    {"Resize", MOVES},
    {"Concat", MOVES},
    {"Split", MOVES},
    {"Slice", MOVES},
    {"Gather", MOVES},
    {"Pad", MOVES},
    {"Reshape", VIEWS},
    {"Flatten", VIEWS},
    {"Squeeze", VIEWS},
    {"Unsqueeze", VIEWS},
    {"Transpose", MOVES},
    {"Expand", MOVES},
    {"Identity", VIEWS},
    {"Tile", MOVES},
    {"DepthToSpace", MOVES},
    {"SpaceToDepth", MOVES},
};

typedef struct edge_state {
    bool derived;     /* made from the result of a product with weights */
    bool wanted;      /* a product with weights is made from it */
    bool half;        /* bf16 now */
    ortc_edge *other; /* the same value as bf16, or as f32 where this is bf16; NULL: nobody asked yet */
} edge_state;

typedef struct pass {
    ortc_specialise *s;
    const ortc_node *first; /* product that rounds: whose device it is about */
    edge_state *edges;      /* by id, of those that were there at the beginning */
    size_t n_edges;
    uint8_t *roles; /* of nodes, by id */
    bool *changed;  /* nodes, by id */
    size_t n_nodes;
} pass;

static bool is_f32(const ortc_edge *e)
{
    return e && e->type && e->type->kind == ORTC_KIND_TENSOR && e->type->dtype == ORTC_F32;
}

/* Whether a program of one type keeps errors small: what it stores is no primitive that makes an absolute
 * error of a relative one, or more of it. */
static bool is_steady(const ortc_node *n)
{
    const ortc_schema *schema = ortc_op_schema(n->op);
    const ortc_formal *x = ortc_schema_in(schema, 0), *y = ortc_schema_out(schema, 0);
    const ortc_pointwise *p = x && y && x->constraint == y->constraint && n->n_in > 0 && is_f32(n->in[0])
                                  ? ortc_pointwise_of(n)
                                  : NULL;
    if (!p) return false;
    switch (p->steps[p->steps[p->n - 1].a].op) {
    case ORTC_PW_EXP:
    case ORTC_PW_LOG:
    case ORTC_PW_POW:
    case ORTC_PW_SIN:
    case ORTC_PW_COS:
    case ORTC_PW_TAN:
    case ORTC_PW_SINH:
    case ORTC_PW_COSH:
    case ORTC_PW_MOD:
    case ORTC_PW_REM:
    case ORTC_PW_FLOOR:
    case ORTC_PW_CEIL:
    case ORTC_PW_ROUND: return false;
    default: return true;
    }
}

static role find_role(const pass *p, const ortc_node *n)
{
    role r = OTHER;
    if (!n->op || *n->domain || n->epilogue || n->n_captures || n->n_out < 1 || !is_f32(n->out[0]))
        return OTHER;
    for (uint32_t i = 1; i < n->n_out; i++) /* Split has several results, others have some of another kind */
        if (n->out[i] && strcmp(n->type, "Split")) return OTHER;
    for (size_t i = 0; i < ORTC_LENGTH(operators) && r == OTHER; i++)
        if (!strcmp(n->type, operators[i].op)) r = operators[i].role;
    if (r == OTHER && is_steady(n)) r = POINTWISE;
    return r == VIEWS || (r != OTHER && p->s->together(p->s->arg, n, p->first)) ? r : OTHER;
}

static role role_of(const pass *p, const ortc_node *n)
{
    return n->id < p->n_nodes ? (role)p->roles[n->id] : OTHER;
}

static bool is_half(const pass *p, const ortc_edge *e)
{
    return e && e->id < p->n_edges && p->edges[e->id].half;
}

/* A product with weights, whose operands are rounded anyhow. */
static bool is_weighted(const pass *p, const ortc_node *n)
{
    return role_of(p, n) == PRODUCT && n->n_in > 1 && n->in[1] && ortc_edge_is_const(n->in[1]) &&
           p->s->rounds(p->s->arg, n);
}

/* Whether an input is to be of the type of the first output: of the first input's, or of Attention's V. */
static bool is_of_type(const ortc_node *n, uint32_t port)
{
    const ortc_schema *schema = ortc_op_schema(n->op);
    const ortc_formal *in = ortc_schema_in(schema, port), *y = ortc_schema_out(schema, 0),
                      *x = ortc_schema_in(schema, !strcmp(n->type, "Attention") ? 2 : 0);
    return in && in->constraint >= 0 &&
           (in->constraint == y->constraint || in->constraint == x->constraint) && n->in[port] &&
           n->in[port]->type && n->in[port]->type->kind == ORTC_KIND_TENSOR;
}

/* ---- What lies between products ------------------------------------------------------------------------ */

static void find_derived(pass *p)
{
    for (const ortc_node *n = p->s->graph->first; n; n = n->next) {
        bool derived = is_weighted(p, n);
        if (role_of(p, n) != OTHER)
            for (uint32_t i = 0; i < n->n_in; i++)
                derived |= n->in[i] && (p->edges[n->in[i]->id].derived ||
                                        (!strcmp(n->type, "Gather") && i == 0 && is_f32(n->in[0]) &&
                                         ortc_edge_is_const(n->in[0]))); /* an embedding */
        for (uint32_t i = 0; derived && i < n->n_out; i++)
            if (n->out[i]) p->edges[n->out[i]->id].derived = true;
    }
}

static void find_wanted(pass *p)
{
    for (const ortc_node *n = p->s->graph->last; n; n = n->prev) {
        bool wanted = is_weighted(p, n);
        if (role_of(p, n) != OTHER)
            for (uint32_t i = 0; i < n->n_out; i++) wanted |= n->out[i] && p->edges[n->out[i]->id].wanted;
        for (uint32_t i = 0; wanted && i < n->n_in; i++)
            if (n->in[i] && is_of_type(n, i)) p->edges[n->in[i]->id].wanted = true;
    }
}

/* ---- Edges of the other type --------------------------------------------------------------------------- */

/* Whether products alone read it, as weights, which they pack. */
static bool is_packed(const pass *p, const ortc_edge *e)
{
    bool all = e->constant->count >= LEAST_PACKED;
    for (const ortc_use *u = e->uses; u && all; u = u->next)
        all = u->node && u->port == 1 && is_weighted(p, u->node);
    return all;
}

static ortc_edge *rounded_constant(pass *p, const ortc_edge *e)
{
    ortc_constant *c = e->constant, *made;
    if (is_packed(p, e))
        return ortc_constant_rounded(c, &made, p->s->error) == ORTC_OK
                   ? ortc_graph_constant(p->s->graph, NULL, made)
                   : NULL;
    uint16_t *data = ortc_data_alloc((size_t)c->count * sizeof *data);
    if (data) ortc_constant_round(c, data);
    return ortc_graph_constant_take(p->s->graph, ORTC_BF16, c->rank, c->dims, data,
                                    (size_t)c->count * sizeof *data, p->s->error);
}

static ortc_edge *cast_of(pass *p, ortc_edge *e, ortc_node *before, ortc_dtype t)
{
    const ortc_attr to = {.size = sizeof to, .kind = ORTC_ATTR_INT, .i = t};
    ortc_node *cast = ortc_node_like(p->s->graph, before, "Cast", t, e, 1, &e);
    return cast && ortc_node_set_attr(cast, "to", &to) && p->s->accept(p->s->arg, cast, cast, p->first)
               ? cast->out[0]
               : NULL;
}

/* ---- Nodes --------------------------------------------------------------------------------------------- */

/* By what it reads and by who reads its results: the outermost values stay what they are. */
static bool may_change(const pass *p, const ortc_node *n)
{
    const role r = role_of(p, n);
    const bool weighted = is_weighted(p, n);
    bool any = weighted;
    if (r == OTHER) return false;
    for (uint32_t i = 0; i < n->n_out; i++) {
        if (!n->out[i]) continue;
        if (!p->edges[n->out[i]->id].wanted) return false;
        for (const ortc_use *u = n->out[i]->uses; u; u = u->next)
            if (!u->node) return false;
    }
    for (uint32_t i = 0; i < n->n_in && !weighted; i++) {
        if (!n->in[i] || ortc_edge_is_const(n->in[i]) || !is_of_type(n, i)) continue;
        const edge_state *e = &p->edges[n->in[i]->id];
        if (!e->half && ((r != POINTWISE && r != PRODUCT) || !e->derived)) return false;
        any |= e->half;
    }
    return any;
}

/* The node as it would be: edges of its own, with types. */
static bool propose(pass *p, const ortc_node *n, ortc_node *to)
{
    ortc_arena *a = &p->s->graph->arena;
    *to = *n;
    to->body = NULL;
    to->in = ortc_arena_copy(a, n->in, n->n_in * sizeof *to->in);
    to->out = ortc_arena_copy(a, n->out, n->n_out * sizeof *to->out);
    if (!to->in || !to->out) return false;
    for (uint32_t i = 0; i < n->n_in + n->n_out; i++) {
        ortc_edge **e = i < n->n_in ? &to->in[i] : &to->out[i - n->n_in];
        if (!*e || (i < n->n_in && (!is_f32(*e) || !is_of_type(n, i)))) continue;
        if (ortc_edge_is_const(*e)) {
            edge_state *s = &p->edges[(*e)->id];
            if (!s->other && !(s->other = rounded_constant(p, *e))) return false;
            *e = s->other;
        } else {
            if (!(*e = ortc_arena_copy(a, *e, sizeof **e))) return false;
            (*e)->type = ortc_tensor_type(ORTC_BF16);
        }
    }
    return true;
}

/* Reads its operands as bf16. */
static ortc_status read_half(pass *p, ortc_node *n)
{
    for (uint32_t i = 0; i < n->n_in; i++) {
        ortc_edge *e = n->in[i];
        if (!is_f32(e) || !is_of_type(n, i)) continue;
        edge_state *s = &p->edges[e->id];
        if (!s->other && !(s->other = cast_of(p, e, n, ORTC_BF16))) return ortc_no_memory(p->s->error, 0);
        if (!ortc_node_set_in(n, i, s->other)) return ortc_no_memory(p->s->error, 0);
    }
    n->body = NULL; /* the standard's operator says it all; what was raised was f32 */
    p->changed[n->id] = true;
    p->s->edits++;
    return ORTC_OK;
}

static ortc_status change(pass *p, ortc_node *n)
{
    ortc_node proposal;
    if (!propose(p, n, &proposal)) return ortc_no_memory(p->s->error, 0);
    if (!p->s->accept(p->s->arg, &proposal, NULL, n)) return ORTC_OK;
    ORTC_TRY(read_half(p, n));
    for (uint32_t i = 0; i < n->n_out; i++)
        if (n->out[i]) n->out[i]->type = ortc_tensor_type(ORTC_BF16), p->edges[n->out[i]->id].half = true;
    return p->s->accept(p->s->arg, n, n, n) ? ORTC_OK : ortc_no_memory(p->s->error, 0);
}

/* A last product of a value that is bf16 by now: a Cast behind it, which its kernels take along, leaves its
 * result the f32 that its sums are. */
static ortc_status change_last(pass *p, ortc_node *n)
{
    const ortc_attr to = {.size = sizeof to, .kind = ORTC_ATTR_INT, .i = ORTC_F32};
    ortc_edge *y = n->out[0], *ports[ORTC_PW_INPUTS] = {NULL};
    ortc_node proposal;
    if (!propose(p, n, &proposal)) return ortc_no_memory(p->s->error, 0);
    ortc_node *cast = ortc_node_like(p->s->graph, n, "Cast", ORTC_F32, y, 1, &y);
    if (!cast || !ortc_node_set_attr(cast, "to", &to)) return ortc_no_memory(p->s->error, 0);
    proposal.out[0] = y;
    proposal.epilogue = ortc_pointwise_behind(y, &cast, 1, ports, n->n_in);
    if (!proposal.epilogue || !p->s->accept(p->s->arg, &proposal, NULL, n)) {
        ortc_node_remove(cast);
        return ORTC_OK;
    }
    ortc_edge *sums = cast->out[0];
    sums->type = ortc_tensor_type(ORTC_BF16);
    if (!ortc_node_set_in(cast, 0, sums) || !ortc_node_set_out(cast, 0, y) || !ortc_node_set_out(n, 0, sums))
        return ortc_no_memory(p->s->error, 0);
    ortc_node_move_before(n, cast);
    ORTC_TRY(read_half(p, n));
    return p->s->accept(p->s->arg, n, n, n) && p->s->accept(p->s->arg, cast, cast, n)
               ? ORTC_OK
               : ortc_no_memory(p->s->error, 0);
}

/* Who has not changed reads f32. */
static ortc_status widen(pass *p, ortc_node *n)
{
    for (uint32_t i = 0; i < n->n_in; i++) {
        ortc_edge *e = n->in[i];
        if (!e || e->id >= p->n_edges || !p->edges[e->id].half) continue;
        if (p->changed[n->id] && is_of_type(n, i)) continue;
        edge_state *s = &p->edges[e->id];
        if (!s->other && !(s->other = cast_of(p, e, n, ORTC_F32))) return ortc_no_memory(p->s->error, 0);
        if (!ortc_node_set_in(n, i, s->other)) return ortc_no_memory(p->s->error, 0);
    }
    return ORTC_OK;
}

ortc_status ortc_pass_half_values(ortc_specialise *s)
{
    ortc_graph *g = s->graph;
    pass p = {.s = s, .n_edges = g->edges.count, .n_nodes = g->next_node};
    for (const ortc_node *n = g->first; s->rounds && n && !p.first; n = n->next)
        if (s->rounds(s->arg, n)) p.first = n;
    if (!p.first) return ORTC_OK;
    p.edges = ortc_arena_array(&g->arena, p.n_edges, sizeof *p.edges);
    p.changed = ortc_arena_array(&g->arena, p.n_nodes, sizeof *p.changed);
    p.roles = ortc_arena_array(&g->arena, p.n_nodes, sizeof *p.roles);
    if (!p.edges || !p.changed || !p.roles) return ortc_no_memory(s->error, 0);
    for (const ortc_node *n = g->first; n; n = n->next) p.roles[n->id] = (uint8_t)find_role(&p, n);
    find_derived(&p);
    find_wanted(&p);
    for (ortc_node *n = g->first; n; n = n->next)
        if (may_change(&p, n)) ORTC_TRY(change(&p, n));
    for (ortc_node *n = g->first; n; n = n->next)
        if (is_weighted(&p, n) && !p.changed[n->id] && is_half(&p, n->in[0]) && n->n_out == 1)
            ORTC_TRY(change_last(&p, n));
    for (ortc_node *n = g->first; n; n = n->next)
        if (n->id < p.n_nodes) ORTC_TRY(widen(&p, n));
    return ORTC_OK;
}
