/* kernels/gemm/cuda.c: MatMul and Gemm on a GPU: f16, bf16 and f32, with a bias, a residual and an activation
 * fused.
 *
 * MatMul: A [.., M, K] times B [.., K, N], batch dims broadcast by steps of 0, vectors gain a dim of 1. Where
 * B is one matrix, the batch of A joins M. Gemm: alpha A' B' + beta C, transposed and stretched by strides.
 * All else is cuda_gemm.h's.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/activation/expand.h"
#include "kernels/common/cuda.h"
#include "kernels/gemm/cuda_gemm.h"
#include "kernels/gemm/tail.h"

#define RANK_LIMIT 64 /* of any tensor */

typedef struct gemm_state {
    int32_t is_matmul, trans_a, trans_b, b_constant, act, bias, residual; /* the last two: ports, -1 none */
    float alpha, beta, act_alpha, act_beta;
} gemm_state;

/* A batch of more dims than one launch takes: the outermost are `outer`, walked by the host. */
typedef struct gemm_plan {
    ortc_cu_gemm product;
    int32_t outer;
    int64_t launches;
    int64_t dims[RANK_LIMIT], a_step[RANK_LIMIT], b_step[RANK_LIMIT], y_step[RANK_LIMIT]; /* elements */
} gemm_plan;

/* ---- Supports and prepare ------------------------------------------------------------------------------ */

static int is_matmul(const ortc_node *n) { return !strcmp(ortc_node_op(n), "MatMul"); }

/* What the kernels call the activation that is left of an epilogue; ORTC_CU_ACT_END: nothing of theirs. */
static int32_t activation(const ortc_tail *t)
{
    static const struct {
        int32_t act, (*expand)(ortc_pw_builder *, int32_t);
    } known[] = {{ORTC_CU_ACT_SIGMOID, ortc_expand_sigmoid},
                 {ORTC_CU_ACT_TANH, ortc_expand_tanh},
                 {ORTC_CU_ACT_GELU, ortc_expand_gelu},
                 {ORTC_CU_ACT_GELU_TANH, ortc_expand_gelu_tanh},
                 {ORTC_CU_ACT_SILU, ortc_expand_silu},
                 {ORTC_CU_ACT_HARD_SWISH, ortc_expand_hard_swish}};
    const ortc_pointwise *p = &t->u.rest;
    if (t->has_rest && t->act) return ORTC_CU_ACT_END;
    for (size_t i = 0; t->has_rest && i < sizeof known / sizeof *known; i++)
        if (ortc_expands_to(p, p->steps[p->n - 1].a, t->at, known[i].expand)) return known[i].act;
    if (t->has_rest) return ORTC_CU_ACT_END;
    if (t->act == ORTC_UK_ACT_LEAKY) return ORTC_CU_ACT_LEAKY_RELU;
    if (t->act == ORTC_UK_ACT_NONE) return ORTC_CU_ACT_NONE;
    return t->lo == 0 && t->hi == INFINITY ? ORTC_CU_ACT_RELU : ORTC_CU_ACT_CLIP;
}

/* The epilogue as bias, residual and activation, which is what the kernels do. C is added before. The columns
 * are channels, which a product with a vector (or with what may be one) has none of. */
static int read_epilogue(const ortc_node *n, ortc_tail *t, const char **why)
{
    const int alone = is_matmul(n) || !ortc_node_in(n, 2).type;
    const uint32_t may = alone ? ORTC_TAIL_ALL : ORTC_TAIL_ALL & ~(uint32_t)ORTC_TAIL_SCALE;
    const int32_t last = ortc_node_out(n, 0).rank - 1, axis = ortc_node_in(n, 1).rank < 2 ? -1 : last;
    if (!ortc_tail_read(n, axis, may, t, why)) return 0;
    return activation(t) != ORTC_CU_ACT_END || (*why = "it is not a bias, a residual and an activation", 0);
}

static ortc_status supports(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    const char *reason;
    ortc_tail tail;
    (void)device;
    return read_epilogue(n, &tail, &reason) ? ORTC_OK : ortc_no(why, "%s", reason);
}

static ortc_status prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const char *why;
    ortc_tail tail;
    if (!read_epilogue(n, &tail, &why)) return ortc_prep_fail(prep, ORTC_INTERNAL, "%s", why);
    gemm_state *s = calloc(1, sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    s->is_matmul = is_matmul(n);
    s->b_constant = (ortc_node_in(n, 1).flags & ORTC_PORT_CONST) != 0;
    s->alpha = s->beta = 1;
    if (!s->is_matmul) {
        s->trans_a = ortc_node_int(n, "transA", 0) != 0;
        s->trans_b = ortc_node_int(n, "transB", 0) != 0;
        s->alpha = ortc_node_float(n, "alpha", 1);
        s->beta = ortc_node_float(n, "beta", 1);
    }
    s->alpha *= tail.scale;
    s->act = activation(&tail);
    s->act_alpha = tail.lo;
    s->act_beta = tail.hi;
    s->bias = tail.bias;
    s->residual = tail.residual;
    *out = s;
    return ORTC_OK;
}

/* ---- Plan ---------------------------------------------------------------------------------------------- */

/* The batch dims of a MatMul whose result is not empty, from the outermost; neighbours that are one dim to
 * all three join. */
static void plan_batch(gemm_plan *p, const ortc_view *a, const ortc_view *b)
{
    const ortc_cu_gemm *g = &p->product;
    const int32_t ra = a->rank > 2 ? a->rank - 2 : 0, rb = b->rank > 2 ? b->rank - 2 : 0,
                  rank = ra > rb ? ra : rb;
    int64_t a_at = g->m * g->k, b_at = g->k * g->n, y_at = g->m * g->n, step[3], dim[RANK_LIMIT],
            steps[RANK_LIMIT][3];
    int32_t n = 0; /* dims found, the innermost first */
    for (int32_t d = rank - 1; d >= 0; d--) {
        const int64_t da = d - (rank - ra) >= 0 ? a->dims[d - (rank - ra)] : 1,
                      db = d - (rank - rb) >= 0 ? b->dims[d - (rank - rb)] : 1;
        const int64_t extent = da == 1 ? db : da;
        step[0] = da == 1 ? 0 : a_at, step[1] = db == 1 ? 0 : b_at, step[2] = y_at;
        a_at *= da, b_at *= db, y_at *= extent;
        if (extent == 1) continue;
        int joins = n > 0;
        for (int i = 0; joins && i < 3; i++) joins = step[i] == steps[n - 1][i] * dim[n - 1];
        if (joins) {
            dim[n - 1] *= extent;
            continue;
        }
        dim[n] = extent;
        memcpy(steps[n++], step, sizeof step);
    }
    p->launches = 1;
    p->outer = n;
    for (int32_t d = 0; d < n; d++) {
        p->dims[d] = dim[n - 1 - d];
        p->a_step[d] = steps[n - 1 - d][0];
        p->b_step[d] = steps[n - 1 - d][1];
        p->y_step[d] = steps[n - 1 - d][2];
    }
}

static void plan_matmul(gemm_plan *p, const ortc_view *a, const ortc_view *b, const ortc_view *y)
{
    ortc_cu_gemm *g = &p->product;
    g->k = a->dims[a->rank - 1];
    g->m = a->rank > 1 ? a->dims[a->rank - 2] : 1;
    g->n = b->rank > 1 ? b->dims[b->rank - 1] : 1;
    p->launches = 1;
    if (ortc_view_count(y) == 0)
        g->m = g->n = 0;
    else
        plan_batch(p, a, b);
    if (p->outer == 1 && p->b_step[0] == 0 &&
        p->a_step[0] != 0) { /* B is one matrix, and the rows of A follow each other */
        g->m *= p->dims[0];
        p->outer = 0;
    }
    g->a_row = g->k;
    g->a_col = g->b_col = 1;
    g->b_row = g->n;
    if (g->n == 1) { /* a vector has its K dense as well */
        g->b_row = 1;
        g->b_col = g->k;
    }
}

static void plan_gemm(const gemm_state *s, gemm_plan *p, const ortc_view *a, const ortc_view *b,
                      const ortc_view *c)
{
    ortc_cu_gemm *g = &p->product;
    g->m = a->dims[s->trans_a];
    g->k = a->dims[!s->trans_a];
    g->n = b->dims[!s->trans_b];
    g->a_row = s->trans_a ? 1 : g->k;
    g->a_col = s->trans_a ? g->m : 1;
    g->b_row = s->trans_b ? 1 : g->n;
    g->b_col = s->trans_b ? g->k : 1;
    p->launches = 1;
    if (c && c->rank > 0) {
        const int64_t cols = c->dims[c->rank - 1], rows = c->rank == 2 ? c->dims[0] : 1;
        g->c_col = cols != 1;
        g->c_row = rows != 1 ? cols : 0;
    }
}

/* Gemm's C; NULL: nothing is added. */
static const ortc_view *c_of(const gemm_state *s, const ortc_view *in, uint32_t n_in)
{
    return !s->is_matmul && n_in > 2 && in[2].dtype && s->beta != 0 ? &in[2] : NULL;
}

static ortc_status plan(const void *state, ortc_plan *p, void **out)
{
    const gemm_state *s = state;
    const ortc_cuda_device *device = ortc_cuda_device_of(p);
    gemm_plan *plan = calloc(1, sizeof *plan);
    if (!plan) return ortc_plan_fail(p, ORTC_OUT_OF_MEMORY, "no memory for a plan");
    ortc_cu_gemm *g = &plan->product;
    *g = (ortc_cu_gemm){.alpha = s->alpha,
                        .beta = s->beta,
                        .act = s->act,
                        .act_alpha = s->act_alpha,
                        .act_beta = s->act_beta,
                        .type = p->in[0].dtype,
                        .out_type = p->in[0].dtype,
                        .b_constant = s->b_constant};
    if (s->is_matmul)
        plan_matmul(plan, &p->in[0], &p->in[1], &p->out[0]);
    else
        plan_gemm(s, plan, &p->in[0], &p->in[1], c_of(s, p->in, p->n_in));
    g->y_row = g->n;
    g->rank = plan->outer < ORTC_CU_GEMM_RANK ? plan->outer : ORTC_CU_GEMM_RANK;
    plan->outer -= g->rank;
    for (int32_t d = 0; d < g->rank; d++) {
        g->dims[d] = plan->dims[plan->outer + d];
        g->a_step[d] = plan->a_step[plan->outer + d];
        g->b_step[d] = plan->b_step[plan->outer + d];
        g->y_step[d] = plan->y_step[plan->outer + d];
    }
    for (int32_t d = 0; d < plan->outer; d++) plan->launches *= plan->dims[d];
    ortc_cu_gemm_plan(g, device->processors, device->major * 10 + device->minor);
    if (s->residual >= 0) /* each element is read by the thread that stores it */
        ortc_plan_may_reuse(p, 0, (uint32_t)s->residual);
    double bytes = 0;
    for (uint32_t i = 0; i < p->n_in; i++) bytes += p->in[i].dtype ? (double)ortc_view_count(&p->in[i]) : 0;
    bytes += (double)ortc_view_count(&p->out[0]);
    ortc_plan_cost(p, 2.0 * (double)ortc_view_count(&p->out[0]) * (double)g->k,
                   bytes * ortc_dtype_bits(g->type) / 8);
    *out = plan;
    return ORTC_OK;
}

/* ---- Run ----------------------------------------------------------------------------------------------- */

static const void *port(const ortc_call *c, int32_t i)
{
    return i >= 0 && (uint32_t)i < c->n_in ? c->in[i].data : NULL;
}

/* NULL stays NULL: a residual may be left out. */
static void *moved(const void *p, int64_t elements, ortc_dtype t)
{
    return p ? (char *)(uintptr_t)p + elements * (int64_t)(ortc_dtype_bits(t) / 8) : NULL;
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    const gemm_state *s = state;
    const gemm_plan *p = pstate;
    const ortc_view *added = c_of(s, c->in, c->n_in);
    const void *residual = port(c, s->residual);
    for (int64_t i = 0; i < p->launches; i++) {
        ortc_cu_gemm g = p->product;
        int64_t rest = i, a = 0, b = 0, y = 0;
        for (int32_t d = p->outer - 1; d >= 0; d--) {
            const int64_t at = rest % p->dims[d];
            rest /= p->dims[d];
            a += at * p->a_step[d];
            b += at * p->b_step[d];
            y += at * p->y_step[d];
        }
        g.a = moved(c->in[0].data, a, g.type);
        g.b = moved(c->in[1].data, b, g.type);
        g.y = moved(c->out[0].data, y, g.type);
        g.c = added ? added->data : NULL;
        g.bias = port(c, s->bias);
        g.residual = moved(residual, y, g.type);
        const int error = ortc_cu_gemm_run(&g, c->queue);
        if (error) return ortc_cuda_done(c, error);
    }
    return ORTC_OK;
}

static const ortc_kernel kernel = {.size = sizeof kernel,
                                   .flags = ORTC_KERNEL_EPILOGUE,
                                   .name = "gemm.cuda",
                                   .supports = supports,
                                   .prepare = prepare,
                                   .plan = plan,
                                   .run = run};

#define TYPES (ORTC_TYPE(ORTC_F16) | ORTC_TYPE(ORTC_BF16) | ORTC_TYPE(ORTC_F32))
ORTC_KERNELS(cuda, gemm, ORTC_KERNEL("MatMul", 13, ORTC_NEWEST, (TYPES), &kernel),
             ORTC_KERNEL("Gemm", 13, ORTC_NEWEST, (TYPES), &kernel));
