/* Products of one A with several constants B on the cpu (graph/specialise/sibling_products.c: queries, keys
 * and values; gate and up): a group of MatMul and Gemm nodes, epilogues and all, for which A is packed once.
 * Every B stays what it is, so their packed forms are those that the nodes alone would have.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/common/cpu_device.h"
#include "kernels/gemm/cpu_gemm.h"
#include "kernels/gemm/siblings.h"

enum { MOST = 8 };

typedef struct sibling {
    ortc_gemm_state gemm;
    ortc_sibling at;
} sibling;

typedef struct siblings_state {
    uint32_t n;
    sibling node[MOST];
} siblings_state;

typedef struct siblings_plan {
    const ortc_product_form
        *a; /* packed once for all, in front of the workspace of the node at work; NULL: each
                                   reads it as it would alone */
    size_t a_bytes;
    ortc_gemm_plan node[MOST]; /* there are as many as the group has */
} siblings_plan;

/* All of the body's nodes. */
static int read_group(const ortc_node *n, siblings_state *s, const char **why)
{
    const ortc_graph *body = ortc_node_body(n);
    s->n = 0;
    if (!body) return *why = "it is no group of products", 0;
    for (const ortc_node *m = ortc_graph_next(body, NULL); m; m = ortc_graph_next(body, m)) {
        if (s->n == MOST) return *why = "there are too many products", 0;
        sibling *now = &s->node[s->n++];
        if (!ortc_sibling_read(body, m, &now->at, why) || !ortc_gemm_read(m, &now->gemm, why)) return 0;
        const sibling *first = s->node;
        if (now->at.port[0] < 0 || now->at.port[0] != first->at.port[0] ||
            now->gemm.trans_a != first->gemm.trans_a || now->gemm.is_matmul != first->gemm.is_matmul)
            return *why = "the products are of different A", 0;
    }
    return s->n > 1 ? 1 : (*why = "there is one product", 0);
}

static ortc_status supports(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    siblings_state *s = malloc(sizeof *s);
    const char *reason = "no memory for the group";
    (void)device;
    const int can = s && read_group(n, s, &reason);
    const ortc_dtype type = can ? ortc_node_in(n, (uint32_t)s->node->at.port[0]).dtype : 0;
    free(s);
    if (can && type != ORTC_F32 && type != ORTC_F16 && type != ORTC_BF16)
        return ortc_no(why, "products of this type have kernels of their own");
    return can ? ORTC_OK : ortc_no(why, "%s", reason);
}

static ortc_status prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const char *why = "";
    siblings_state *s = malloc(sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for the group");
    if (!read_group(n, s, &why)) {
        free(s);
        return ortc_prep_fail(prep, ORTC_INTERNAL, "%s", why);
    }
    *out = s;
    return ORTC_OK;
}

/* What all of them together are done best by. */
static const ortc_product_line *best_line(const siblings_state *s, const ortc_plan *p, ortc_dtype type)
{
    const ortc_product_line *best = NULL;
    double least = 0;
    for (int way = 0; way < ORTC_GEMM_WAYS; way++) {
        const ortc_product_line *line = ortc_gemm_line(way, type);
        const int rows = way == ORTC_GEMM_BF16 && type == ORTC_F32; /* of f32 may be with weights of bf16 */
        double clocks = 0;
        if (!line || (way == ORTC_GEMM_BF16 && type != ORTC_BF16 &&
                      !(type == ORTC_F32 && ortc_rounds_to_bf16(p->api->device(p)))))
            continue;
        for (uint32_t i = 0; i < s->n; i++) {
            ortc_view in[ORTC_SIBLING_PORTS];
            ortc_matmul_shape shape;
            ortc_sibling_views(&s->node[i].at, p->in, in);
            if (!ortc_gemm_shape(&s->node[i].gemm, in, &p->out[s->node[i].at.out], &shape)) return NULL;
            if (rows && shape.m == 1 && shape.batch == 1) line = ortc_product_line_for(ORTC_BF16);
            const int row = line->a.type == ORTC_F32;
            if (!row && (shape.m < 2 || shape.n < 2 || !shape.k)) clocks = INFINITY;
            clocks += ortc_gemm_clocks(line, &shape, 1);
        }
        if (!best || clocks < least) best = line, least = clocks;
    }
    return best;
}

/* Whether all nodes read A packed: a matrix, for Bs that are packed. */
static int packs_a(const siblings_plan *g, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!g->node[i].packed_b || g->node[i].shape.m < 2) return 0;
    return 1;
}

static ortc_status plan_nodes(const siblings_state *s, ortc_plan *p, const ortc_product_line *line,
                              int packed_a, siblings_plan *g)
{
    ortc_status status = ORTC_OK;
    for (uint32_t i = 0; i < s->n && !status; i++) {
        const sibling *n = &s->node[i];
        ortc_view in[ORTC_SIBLING_PORTS];
        ortc_sibling_views(&n->at, p->in, in);
        memset(&g->node[i], 0, sizeof g->node[i]);
        status = ortc_gemm_plan_on(&n->gemm, p, in, n->at.n_in, &p->out[n->at.out], (uint32_t)n->at.port[1],
                                   line, packed_a, &g->node[i]);
    }
    return status;
}

static ortc_status plan(const void *state, ortc_plan *p, void **out)
{
    const siblings_state *s = state;
    const ortc_product_line *line = best_line(s, p, p->in[s->node->at.port[0]].dtype);
    siblings_plan *g = calloc(1, offsetof(siblings_plan, node) + s->n * sizeof *g->node);
    if (!g) return ortc_plan_fail(p, ORTC_OUT_OF_MEMORY, "no memory for a plan");
    ortc_status status = line ? plan_nodes(s, p, line, 0, g)
                              : ortc_plan_fail(p, ORTC_UNSUPPORTED, "a rank is not possible here");
    if (!status && packs_a(g, s->n)) {
        g->a = &line->a;
        g->a_bytes = (ortc_product_packed_bytes(g->a, g->node->shape.m, g->node->shape.k) + 63) / 64 * 64;
        status = plan_nodes(s, p, line, 1, g);
    }
    if (status) {
        free(g);
        return status;
    }
    size_t workspace = 0, scratch = 0;
    double flops = 0, bytes = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const ortc_gemm_plan *n = &g->node[i];
        workspace = n->workspace > workspace ? n->workspace : workspace;
        scratch = n->product.scratch > scratch ? n->product.scratch : scratch;
        flops += n->product.flops, bytes += n->product.bytes;
    }
    ortc_plan_workspace(p, g->a_bytes + workspace, scratch);
    ortc_plan_cost(p, flops, bytes);
    *out = g;
    return ORTC_OK;
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    const siblings_state *s = state;
    const siblings_plan *g = pstate;
    const ortc_product_threads threads = {ortc_call_parallel, c};
    const ortc_view *a = &c->in[s->node->at.port[0]];
    const ortc_matmul_shape *shape = &g->node->shape;
    char *space = c->workspace;
    ortc_status status = ORTC_OK;
    if (g->a) {
        const int along = !s->node->gemm.trans_a;
        status = ortc_product_fill(g->node->product.line->moves, g->a, a->dtype, shape->m, shape->k, along,
                                   a->data, along ? shape->k : shape->m, space, &threads);
    }
    ortc_gemm_turn(c);
    for (uint32_t i = 0; i < s->n && !status; i++) {
        const sibling *n = &s->node[i];
        ortc_view in[ORTC_SIBLING_PORTS];
        ortc_sibling_views(&n->at, c->in, in);
        if (!c->out[n->at.out].dtype) continue;
        status = ortc_gemm_run_on(&n->gemm, &g->node[i], c, in, n->at.n_in, c->out[n->at.out].data,
                                  g->a ? space : NULL, space + g->a_bytes);
    }
    return status;
}

static const ortc_kernel gemm_siblings = {.size = ORTC_SIZED(ortc_kernel),
                                          .name = "gemm.siblings",
                                          .supports = supports,
                                          .prepare = prepare,
                                          .plan = plan,
                                          .run = run};

ORTC_KERNELS(cpu, gemm_siblings, ORTC_KERNEL_IN("ortc", "Group", 1, 1, (ORTC_TYPES_ANY), &gemm_siblings));
