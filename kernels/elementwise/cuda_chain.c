/* kernels/elementwise/cuda_chain.c: chains of elementwise nodes, which pass over memory once (cuda_chain.h).
 *
 * A group has one result; every other value in it has the result's shape and no reader outside of it. Inputs
 * are broadcast. Registers are f32: all values are f32, f16 or bf16, or conditions. What a MatMul, a Gemm or
 * a Conv would take as its epilogue is left to it.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/common/shape.h"
#include "kernels/common/cuda_chain.h"
#include "kernels/elementwise/cuda_maker.h"

#define MAX_GROUP 32

/* ---- What can be in a chain ---------------------------------------------------------------------------- */

static int is_float(ortc_dtype t) { return t == ORTC_F32 || t == ORTC_F16 || t == ORTC_BF16; }

static int is_one_of(const ortc_node *n, const char *names)
{
    const size_t length = strlen(ortc_node_op(n));
    for (const char *at = names; !*ortc_node_domain(n) && *at; at += strcspn(at, " "), at += strspn(at, " "))
        if (strcspn(at, " ") == length && !strncmp(at, ortc_node_op(n), length)) return 1;
    return 0;
}

/* Conditions are 0 and 1 in registers of f32 too; a Cast reads any type and makes a float. */
static int fits(const ortc_node *n)
{
    const ortc_port y = ortc_node_out(n, 0);
    const int registers = ortc_cuda_registers_of(n);
    if (registers < 0 || ortc_node_n_out(n) != 1 || y.rank < 0 || y.rank > ORTC_CU_RANK) return 0;
    for (uint32_t i = 0; i < ortc_node_n_in(n); i++) {
        const ortc_port p = ortc_node_in(n, i);
        if (p.type && (p.rank < 0 || p.rank > y.rank)) return 0;
    }
    if (is_one_of(n, "And Or Xor Not")) return 1;
    if (is_one_of(n, "Cast")) return is_float(y.dtype) && ortc_node_in(n, 0).dtype != ORTC_F64;
    return registers == ORTC_CU_F32 && (is_float(y.dtype) || y.dtype == ORTC_BOOL);
}

static int same_shape(const ortc_port *a, const ortc_port *b)
{
    if (a->rank < 0 || a->rank != b->rank) return 0;
    for (int32_t d = 0; d < a->rank; d++)
        if (a->dims[d] != b->dims[d]) return 0;
    return 1;
}

/* ---- The graph, for one claim -------------------------------------------------------------------------- */

typedef struct member {
    const ortc_node *node;
    uint32_t group; /* 0: in none */
    /* product: what carries an epilogue, with that many summands and an activation */
    uint8_t fits, product, adds, activated;
} member;
typedef struct edge {
    uint32_t maker; /* index of the node + 1; 0: an input or a constant */
    uint32_t readers;
} edge;
typedef struct scan {
    member *members;
    edge *edges;
    uint32_t n, n_edges;
} scan;

static ortc_port in_of(const member *m, uint32_t i) { return ortc_node_in(m->node, i); }

static int read_graph(const ortc_graph *g, scan *s)
{
    for (const ortc_node *n = ortc_graph_next(g, NULL); n; n = ortc_graph_next(g, n)) {
        s->n++;
        for (uint32_t k = 0; k < ortc_node_n_in(n) + ortc_node_n_out(n); k++) {
            const ortc_port p = k < ortc_node_n_in(n) ? ortc_node_in(n, k)
                                                      : ortc_node_out(n, k - ortc_node_n_in(n));
            s->n_edges = p.type && p.edge >= s->n_edges ? p.edge + 1 : s->n_edges;
        }
    }
    for (uint32_t i = 0; i < ortc_graph_n_out(g); i++)
        s->n_edges = ortc_graph_out(g, i).edge >= s->n_edges ? ortc_graph_out(g, i).edge + 1 : s->n_edges;
    s->members = calloc(s->n + 1, sizeof *s->members);
    s->edges = calloc((size_t)s->n_edges + 1, sizeof *s->edges);
    if (!s->members || !s->edges) return 0;
    uint32_t at = 0;
    for (const ortc_node *n = ortc_graph_next(g, NULL); n; n = ortc_graph_next(g, n), at++) {
        s->members[at].node = n;
        s->members[at].fits = (uint8_t)fits(n);
        for (uint32_t i = 0; i < ortc_node_n_in(n); i++)
            s->edges[ortc_node_in(n, i).edge].readers += ortc_node_in(n, i).type != NULL;
        for (uint32_t i = 0; i < ortc_node_n_out(n); i++)
            if (ortc_node_out(n, i).type) s->edges[ortc_node_out(n, i).edge].maker = at + 1;
    }
    for (uint32_t i = 0; i < ortc_graph_n_out(g); i++)
        s->edges[ortc_graph_out(g, i).edge].readers += 2; /* the caller's: never inside */
    return 1;
}

/* ---- Epilogues ----------------------------------------------------------------------------------------- */

#define ACTIVATIONS "Relu Clip LeakyRelu Sigmoid Tanh Gelu Swish HardSwish"

/* Whether the node goes on where the product `p` ends. */
static int continues(const scan *s, const member *p, const ortc_node *n, uint32_t port)
{
    if (p->activated) return 0;
    if (!is_one_of(n, "Add")) return port == 0 && is_one_of(n, ACTIVATIONS);
    const ortc_port y = ortc_node_out(p->node, 0), other = ortc_node_in(n, 1 - port);
    (void)s;
    return p->adds < 2 && other.edge != y.edge &&
           ((other.data && other.rank == 1 && y.rank > 0 && other.dims[0] == y.dims[y.rank - 1]) ||
            (!other.data && same_shape(&other, &y)));
}

static void leave_epilogues(scan *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        member *m = &s->members[i];
        m->product = (uint8_t)is_one_of(m->node, "MatMul Gemm Conv");
        for (uint32_t k = 0; k < ortc_node_n_in(m->node) && !m->product && m->fits; k++) {
            const edge *e = &s->edges[in_of(m, k).edge];
            const member *from = e->maker && e->readers == 1 ? &s->members[e->maker - 1] : NULL;
            if (!from || !from->product || !continues(s, from, m->node, k)) continue;
            m->product = 1;
            m->fits = 0;
            m->adds = (uint8_t)(from->adds + is_one_of(m->node, "Add"));
            m->activated = (uint8_t)!is_one_of(m->node, "Add");
        }
    }
}

/* ---- Growing ------------------------------------------------------------------------------------------- */

/* All who read the edge are in the group. */
static int is_inside(const scan *s, uint32_t e, const uint32_t *group, uint32_t count)
{
    uint32_t reads = 0;
    for (uint32_t g = 0; g < count; g++)
        for (uint32_t i = 0; i < ortc_node_n_in(s->members[group[g]].node); i++)
            reads += in_of(&s->members[group[g]], i).edge == e;
    return reads == s->edges[e].readers;
}

/* From the result backwards, until nothing more can come. */
static uint32_t grow(const scan *s, uint32_t sink, uint32_t *group)
{
    const ortc_port y = ortc_node_out(s->members[sink].node, 0);
    uint32_t count = 0;
    group[count++] = sink;
    for (uint32_t before = 0; before != count && count < MAX_GROUP;) {
        before = count;
        for (uint32_t g = 0; g < count; g++)
            for (uint32_t i = 0; i < ortc_node_n_in(s->members[group[g]].node) && count < MAX_GROUP; i++) {
                const ortc_port p = in_of(&s->members[group[g]], i);
                const uint32_t maker = p.type ? s->edges[p.edge].maker : 0;
                if (!maker || !s->members[maker - 1].fits || s->members[maker - 1].group ||
                    !same_shape(&p, &y) || !is_inside(s, p.edge, group, count))
                    continue;
                uint32_t k = 0;
                while (k < count && group[k] != maker - 1) k++;
                if (k == count) group[count++] = maker - 1;
            }
    }
    return count;
}

static int by_place(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* ---- Making -------------------------------------------------------------------------------------------- */

static int make(ortc_cuda_maker *m, const ortc_node *const *nodes, uint32_t n)
{
    ortc_cuda_maker_init(m, ORTC_CU_F32);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t uses = 0;
        for (uint32_t k = i + 1; k < n; k++)
            for (uint32_t in = 0; in < ortc_node_n_in(nodes[k]); in++)
                uses += ortc_node_in(nodes[k], in).edge == ortc_node_out(nodes[i], 0).edge;
        if (!ortc_cuda_make(m, nodes[i], uses)) return 0;
    }
    return n > 0;
}

/* The group as a program; what was too much for one goes, node by node from its beginning. */
static void claim_group(scan *s, uint32_t *group, uint32_t count,
                        ortc_status (*take)(void *, const ortc_claim *), void *arg)
{
    const ortc_node *nodes[MAX_GROUP];
    ortc_cuda_maker *m = malloc(sizeof *m);
    qsort(group, count, sizeof *group, by_place);
    while (m && count > 1) {
        for (uint32_t i = 0; i < count; i++) nodes[i] = s->members[group[i]].node;
        if (make(m, nodes, count)) break;
        group++;
        count--;
    }
    ortc_claim claim;
    claim.size = ORTC_SIZED(ortc_claim);
    claim.n = count;
    claim.flags = 0;
    claim.nodes = nodes;
    if (m && count > 1 && take(arg, &claim) == ORTC_OK) /* a no is fine: the nodes are placed singly then */
        for (uint32_t i = 0; i < count; i++) s->members[group[i]].group = 1;
    free(m);
}

ortc_status ortc_cuda_chain_claim(ortc_device *device, const ortc_graph *graph,
                                  ortc_status (*take)(void *, const ortc_claim *), void *arg)
{
    scan s;
    (void)device;
    memset(&s, 0, sizeof s);
    const int whole = read_graph(graph, &s);
    if (whole) leave_epilogues(&s);
    for (uint32_t i = s.n; whole && i-- > 0;) {
        uint32_t group[MAX_GROUP];
        if (!s.members[i].fits || s.members[i].group) continue;
        const uint32_t count = grow(&s, i, group);
        if (count > 1) claim_group(&s, group, count, take, arg);
    }
    free(s.members);
    free(s.edges);
    return whole ? ORTC_OK : ORTC_OUT_OF_MEMORY;
}

/* ---- The kernel of a group ----------------------------------------------------------------------------- */

typedef struct chain {
    ortc_cuda_maker program;
    uint32_t ports[ORTC_CU_INPUTS];
} chain;

static ortc_status chain_of(const ortc_graph *body, chain *c)
{
    const ortc_node *nodes[MAX_GROUP];
    uint32_t n = 0;
    for (const ortc_node *node = ortc_graph_next(body, NULL); node; node = ortc_graph_next(body, node)) {
        if (n == MAX_GROUP || !fits(node)) return ORTC_UNSUPPORTED;
        nodes[n++] = node;
    }
    if (ortc_graph_n_out(body) != 1 || !make(&c->program, nodes, n) ||
        ortc_graph_out(body, 0).edge != ortc_node_out(nodes[n - 1], 0).edge)
        return ORTC_UNSUPPORTED;
    for (uint32_t i = 0; i < c->program.n_in; i++) {
        uint32_t port = 0;
        while (port < ortc_graph_n_in(body) && ortc_graph_in(body, port).edge != c->program.edges[i]) port++;
        if (port == ortc_graph_n_in(body)) return ORTC_UNSUPPORTED;
        c->ports[i] = port;
    }
    return ORTC_OK;
}

static ortc_status prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    chain *c = calloc(1, sizeof *c);
    if (!c) return ORTC_OUT_OF_MEMORY;
    const ortc_status s = chain_of(ortc_node_body(n), c);
    if (s != ORTC_OK) {
        free(c);
        return ortc_prep_fail(prep, s, "the group has changed since it was compiled");
    }
    *out = c;
    return ORTC_OK;
}

static ortc_status plan(const void *state, ortc_plan *p, void **pstate)
{
    double bytes = (double)ortc_view_count(&p->out[0]) * ortc_dtype_bits(p->out[0].dtype) / 8;
    (void)pstate;
    for (uint32_t i = 0; i < p->n_in; i++) {
        if (!p->in[i].dtype) continue;
        ortc_plan_in_place(p, 0, i);
        bytes += (double)ortc_view_count(&p->in[i]) * ortc_dtype_bits(p->in[i].dtype) / 8;
    }
    ortc_plan_cost(p, (double)ortc_view_count(&p->out[0]) * ((const chain *)state)->program.n_code, bytes);
    return ORTC_OK;
}

static ortc_status run(const void *state, const void *pstate, ortc_call *call)
{
    const chain *c = state;
    ortc_cu_program p;
    (void)pstate;
    ortc_cuda_program_shape(&c->program, c->ports, call->in, &call->out[0], &p);
    return ortc_cuda_done(call, ortc_cuda_program_launch(c->program.registers, &p, call->queue));
}

ortc_status ortc_cuda_chain_compile(ortc_device *device, const ortc_graph *body, const ortc_cache *cache,
                                    const ortc_kernel **out, ortc_why *why)
{
    static const ortc_kernel kernel = {
        .size = sizeof kernel, .name = "chain.cuda", .prepare = prepare, .plan = plan, .run = run};
    chain *c = calloc(1, sizeof *c);
    (void)device, (void)cache;
    if (!c) return ORTC_OUT_OF_MEMORY;
    const ortc_status s = chain_of(body, c);
    free(c);
    *out = &kernel;
    return s == ORTC_OK ? s : ortc_no(why, "the group is no chain of elementwise operators with one result");
}
