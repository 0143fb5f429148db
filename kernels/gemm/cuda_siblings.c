/* kernels/gemm/cuda_siblings.c: products of one A with several constants B on a GPU
 * (graph/specialise/sibling_products.c: queries, keys and values; gate and up), in one launch: their tiles
 * stand side by side, so that the device fills up and A is read once. What cannot go together goes one by
 * one. Taken is only what could go together: a group costs the planner its freedom to order them.
 */
#include <stdlib.h>

#include "kernels/gemm/cuda_product.h"
#include "kernels/gemm/siblings.h"

enum { MOST = ORTC_CU_GEMM_TOGETHER };

typedef struct sibling {
    ortc_cuda_product product;
    ortc_sibling at;
} sibling;

typedef struct siblings_state {
    uint32_t n;
    sibling node[MOST];
} siblings_state;

typedef struct siblings_plan {
    int32_t together; /* the kernel of all */
    ortc_cuda_product_plan node[MOST];
} siblings_plan;

static int read_sibling(const ortc_graph *body, const ortc_node *n, sibling *s, const char **why)
{
    if (!ortc_sibling_read(body, n, &s->at, why) || !ortc_cuda_product_read(n, &s->product, why)) return 0;
    return s->product.residual < 0 ? 1 : (*why = "a product has a residual", 0);
}

static int read_group(const ortc_node *n, siblings_state *s, const char **why)
{
    const ortc_graph *body = ortc_node_body(n);
    s->n = 0;
    if (!body) return *why = "it is no group of products", 0;
    for (const ortc_node *m = ortc_graph_next(body, NULL); m; m = ortc_graph_next(body, m)) {
        if (s->n == MOST) return *why = "there are too many products", 0;
        sibling *now = &s->node[s->n++];
        const ortc_cuda_product *p = &now->product, *first = &s->node->product;
        if (!read_sibling(body, m, now, why)) return 0;
        now->product.b_constant = (ortc_node_in(n, (uint32_t)now->at.port[1]).flags & ORTC_PORT_CONST) != 0;
        if (now->at.port[0] < 0 || now->at.port[0] != s->node->at.port[0] ||
            p->is_matmul != first->is_matmul || p->trans_a != first->trans_a ||
            p->trans_b != first->trans_b || p->alpha != first->alpha || p->act != first->act ||
            p->act_alpha != first->act_alpha || p->act_beta != first->act_beta)
            return *why = "the products are of different A, or differ in what they do with sums", 0;
    }
    return s->n > 1 ? 1 : (*why = "there is one product", 0);
}

static ortc_status supports(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    const ortc_cuda_device *d = (const ortc_cuda_device *)(const void *)device;
    siblings_state s;
    const char *reason = "";
    if (d && d->major != 9) /* none: could it be, on any */
        return ortc_no(why, "products go together by Hopper's instructions only");
    if (!read_group(n, &s, &reason)) return ortc_no(why, "%s", reason);
    const ortc_dtype type = ortc_node_in(n, (uint32_t)s.node->at.port[0]).dtype;
    if (type != ORTC_F16 && type != ORTC_BF16) return ortc_no(why, "products of this type go one by one");
    return ORTC_OK;
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

static ortc_status plan(const void *state, ortc_plan *p, void **out)
{
    const siblings_state *s = state;
    const ortc_cuda_device *device = ortc_cuda_device_of(p);
    siblings_plan *g = malloc(sizeof *g);
    ortc_cu_gemm products[MOST];
    int alone = 0; /* one has a C, or a batch, or nothing to compute */
    double flops = 0, bytes = 0;
    if (!g) return ortc_plan_fail(p, ORTC_OUT_OF_MEMORY, "no memory for a plan");
    for (uint32_t i = 0; i < s->n; i++) {
        const sibling *n = &s->node[i];
        ortc_cuda_product_plan *now = &g->node[i];
        ortc_view in[ORTC_SIBLING_PORTS];
        ortc_sibling_views(&n->at, p->in, in);
        ortc_cuda_product_plan_of(&n->product, device, in, n->at.n_in, &p->out[n->at.out], now);
        products[i] = now->product;
        alone |= now->launches != 1 || now->product.kernel == ORTC_CU_GEMM_NOTHING ||
                 (!n->product.is_matmul && n->at.n_in > 2 && in[2].dtype && !now->c_is_bias) ||
                 !p->out[n->at.out].dtype;
        flops += 2.0 * (double)now->product.m * (double)now->product.n * (double)now->product.k;
        bytes += (double)(now->product.m + now->product.k) * (double)now->product.n;
    }
    bytes += (double)ortc_view_count(&p->in[s->node->at.port[0]]);
    g->together = alone ? ORTC_CU_GEMM_NOTHING
                        : ortc_cu_gemm_plan_together(products, (int)s->n, device->major * 10 + device->minor);
    ortc_plan_cost(p, flops, bytes * ortc_dtype_bits(products->type) / 8);
    *out = g;
    return ORTC_OK;
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    const siblings_state *s = state;
    const siblings_plan *g = pstate;
    ortc_cu_gemm bound[MOST];
    int error = 0;
    for (uint32_t i = 0; i < s->n && !error; i++) {
        const sibling *n = &s->node[i];
        ortc_view in[ORTC_SIBLING_PORTS];
        if (!c->out[n->at.out].dtype) continue;
        ortc_sibling_views(&n->at, c->in, in);
        bound[i] = ortc_cuda_product_bind(&n->product, &g->node[i], in, n->at.n_in, &c->out[n->at.out]);
        if (g->together == ORTC_CU_GEMM_NOTHING)
            error = ortc_cuda_product_run(&g->node[i], &bound[i], c->queue);
    }
    if (g->together != ORTC_CU_GEMM_NOTHING)
        error = ortc_cu_gemm_run_together(bound, (int)s->n, g->together, c->queue);
    return ortc_cuda_done(c, error);
}

static const ortc_kernel gemm_siblings = {.size = ORTC_SIZED(ortc_kernel),
                                          .name = "gemm.siblings.cuda",
                                          .supports = supports,
                                          .prepare = prepare,
                                          .plan = plan,
                                          .run = run};

ORTC_KERNELS(cuda, gemm_siblings, ORTC_KERNEL_IN("ortc", "Group", 1, 1, (ORTC_TYPES_ANY), &gemm_siblings));
