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
#include "kernels/gemm/cuda_product.h"
#include "kernels/gemm/tail.h"

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

int ortc_cuda_product_read(const ortc_node *n, ortc_cuda_product *s, const char **why)
{
    ortc_tail tail;
    if (!read_epilogue(n, &tail, why)) return 0;
    const int32_t act = activation(&tail);
    const int bounded = act == ORTC_CU_ACT_CLIP || act == ORTC_CU_ACT_LEAKY_RELU;
    *s = (ortc_cuda_product){.is_matmul = is_matmul(n),
                             .b_constant = (ortc_node_in(n, 1).flags & ORTC_PORT_CONST) != 0,
                             .alpha = 1,
                             .beta = 1,
                             .act = act,
                             .act_alpha = bounded ? tail.lo : 0,
                             .act_beta = bounded ? tail.hi : 0,
                             .bias = tail.bias,
                             .residual = tail.residual};
    if (!s->is_matmul) {
        s->trans_a = ortc_node_int(n, "transA", 0) != 0;
        s->trans_b = ortc_node_int(n, "transB", 0) != 0;
        s->alpha = ortc_node_float(n, "alpha", 1);
        s->beta = ortc_node_float(n, "beta", 1);
    }
    s->alpha *= tail.scale;
    return 1;
}

static ortc_status prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const char *why;
    ortc_cuda_product *s = malloc(sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    if (!ortc_cuda_product_read(n, s, &why)) {
        free(s);
        return ortc_prep_fail(prep, ORTC_INTERNAL, "%s", why);
    }
    *out = s;
    return ORTC_OK;
}

/* ---- Plan ---------------------------------------------------------------------------------------------- */

/* The batch dims of a MatMul whose result is not empty, from the outermost; neighbours that are one dim to
 * all three join. */
static void plan_batch(ortc_cuda_product_plan *p, const ortc_view *a, const ortc_view *b)
{
    const ortc_cu_gemm *g = &p->product;
    const int32_t ra = a->rank > 2 ? a->rank - 2 : 0, rb = b->rank > 2 ? b->rank - 2 : 0,
                  rank = ra > rb ? ra : rb;
    int64_t a_at = g->m * g->k, b_at = g->k * g->n, y_at = g->m * g->n, step[3], dim[ORTC_CUDA_RANK],
            steps[ORTC_CUDA_RANK][3];
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

static void plan_matmul(ortc_cuda_product_plan *p, const ortc_view *a, const ortc_view *b, const ortc_view *y)
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

static void plan_gemm(const ortc_cuda_product *s, ortc_cuda_product_plan *p, const ortc_view *a,
                      const ortc_view *b, const ortc_view *c)
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
static const ortc_view *c_of(const ortc_cuda_product *s, const ortc_view *in, uint32_t n_in)
{
    return !s->is_matmul && n_in > 2 && in[2].dtype && s->beta != 0 ? &in[2] : NULL;
}

void ortc_cuda_product_plan_of(const ortc_cuda_product *s, const ortc_cuda_device *device,
                               const ortc_view *in, uint32_t n_in, const ortc_view *out,
                               ortc_cuda_product_plan *plan)
{
    const ortc_view *c = c_of(s, in, n_in);
    ortc_cu_gemm *g = &plan->product;
    *plan = (ortc_cuda_product_plan){.product = {.alpha = s->alpha,
                                                 .beta = s->beta,
                                                 .act = s->act,
                                                 .act_alpha = s->act_alpha,
                                                 .act_beta = s->act_beta,
                                                 .type = in[0].dtype,
                                                 .out_type = in[0].dtype,
                                                 .b_constant = s->b_constant}};
    if (s->is_matmul)
        plan_matmul(plan, &in[0], &in[1], out);
    else
        plan_gemm(s, plan, &in[0], &in[1], c);
    plan->c_is_bias = c && g->c_row == 0 && g->c_col == 1 && s->beta == 1 && s->bias < 0;
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
}

static ortc_status plan(const void *state, ortc_plan *p, void **out)
{
    const ortc_cuda_product *s = state;
    ortc_cuda_product_plan *plan = malloc(sizeof *plan);
    if (!plan) return ortc_plan_fail(p, ORTC_OUT_OF_MEMORY, "no memory for a plan");
    ortc_cuda_product_plan_of(s, ortc_cuda_device_of(p), p->in, p->n_in, &p->out[0], plan);
    if (s->residual >= 0) /* each element is read by the thread that stores it */
        ortc_plan_may_reuse(p, 0, (uint32_t)s->residual);
    double bytes = 0;
    for (uint32_t i = 0; i < p->n_in; i++) bytes += p->in[i].dtype ? (double)ortc_view_count(&p->in[i]) : 0;
    bytes += (double)ortc_view_count(&p->out[0]);
    ortc_plan_cost(p, 2.0 * (double)ortc_view_count(&p->out[0]) * (double)plan->product.k,
                   bytes * ortc_dtype_bits(plan->product.type) / 8);
    *out = plan;
    return ORTC_OK;
}

/* ---- Run ----------------------------------------------------------------------------------------------- */

static const void *port(const ortc_view *in, uint32_t n_in, int32_t i)
{
    return i >= 0 && (uint32_t)i < n_in ? in[i].data : NULL;
}

ortc_cu_gemm ortc_cuda_product_bind(const ortc_cuda_product *s, const ortc_cuda_product_plan *p,
                                    const ortc_view *in, uint32_t n_in, const ortc_view *out)
{
    ortc_cu_gemm g = p->product;
    const ortc_view *added = c_of(s, in, n_in);
    g.a = in[0].data;
    g.b = in[1].data;
    g.y = out->data;
    g.c = added && !p->c_is_bias ? added->data : NULL;
    g.bias = p->c_is_bias ? added->data : port(in, n_in, s->bias);
    g.residual = port(in, n_in, s->residual);
    return g;
}

/* NULL stays NULL: a residual may be left out. */
static void *moved(const void *p, int64_t elements, ortc_dtype t)
{
    return p ? (char *)(uintptr_t)p + elements * (int64_t)(ortc_dtype_bits(t) / 8) : NULL;
}

int ortc_cuda_product_run(const ortc_cuda_product_plan *p, const ortc_cu_gemm *bound, void *queue)
{
    int error = 0;
    for (int64_t i = 0; i < p->launches && !error; i++) {
        ortc_cu_gemm g = *bound;
        int64_t rest = i, a = 0, b = 0, y = 0;
        for (int32_t d = p->outer - 1; d >= 0; d--) {
            const int64_t at = rest % p->dims[d];
            rest /= p->dims[d];
            a += at * p->a_step[d];
            b += at * p->b_step[d];
            y += at * p->y_step[d];
        }
        g.a = moved(g.a, a, g.type);
        g.b = moved(g.b, b, g.type);
        g.y = moved(g.y, y, g.type);
        g.residual = moved(g.residual, y, g.type);
        error = ortc_cu_gemm_run(&g, queue);
    }
    return error;
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_cu_gemm bound = ortc_cuda_product_bind(state, pstate, c->in, c->n_in, &c->out[0]);
    return ortc_cuda_done(c, ortc_cuda_product_run(pstate, &bound, c->queue));
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
