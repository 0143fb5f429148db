/* MatMul and Gemm on the cpu provider, f32, f16 and bf16, summed in f32: shapes and broadcasting become
 * products of product.h.
 *
 * MatMul: A [.., M, K] times B [.., K, N], batch dims broadcast, vectors gain a dim of 1. When B is one
 * matrix, the batch of A joins M: one large product. A constant B is packed once and shared by
 * whoever multiplies with it. Gemm: alpha A' B' + beta C, where C is a matrix (then it is the product's
 * residual) or a vector or scalar (then a bias, scaled first where beta is not 1). Both fuse
 * what follows (epilogue.h). All else, blocking included, is product.h's.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/common/vector/convert.h"
#include "kernels/gemm/epilogue.h"
#include "kernels/gemm/matmul_shape.h"
#include "kernels/gemm/product.h"
#include "kernels/gemm/product_packing.h"
#include "ortc/op.h"

typedef struct gemm_state {
    int32_t trans_a, trans_b, is_matmul;
    float alpha, beta;
    ortc_tail_spec tail;
} gemm_state;

enum { C_NONE, C_MATRIX, C_ROW, C_COLUMN, C_SCALAR }; /* how Gemm's C is stretched: [M,N], [N], [M,1], [1] */

typedef struct gemm_plan {
    ortc_product_plan product;
    ortc_dtype type;
    ortc_matmul_shape shape;
    const ortc_packed *packed_b;
    int32_t c_kind;
    size_t
        c_offset; /* bytes: where in the workspace a stretched, scaled or widened C goes; behind it a bias */
    int64_t c_count;    /* its elements; 0: C is used as it is */
    int64_t bias_count; /* of a widened bias */
} gemm_plan;

/* ---- Supports and prepare ------------------------------------------------------------------------------ */

static int is_matmul(const ortc_node *n) { return !strcmp(ortc_node_op(n), "MatMul"); }

/* What is free on registers: Gemm's C has the place of a residual, or of a bias. */
static uint32_t free_places(const ortc_node *n)
{
    const ortc_port c = ortc_node_in(n, 2);
    if (is_matmul(n) || !c.type) return ORTC_TAIL_ALL;
    const int row = c.rank == 0 || c.rank == 1 || (c.rank == 2 && c.dims[0] == 1);
    return row ? ORTC_TAIL_RESIDUAL | ORTC_TAIL_ACT : ORTC_TAIL_ACT;
}

/* The columns are channels, which a product with a vector (or with what may be one) has none of. */
static int read_epilogue(const ortc_node *n, ortc_tail_spec *tail, const char **why)
{
    const int32_t last = ortc_node_out(n, 0).rank - 1, axis = ortc_node_in(n, 1).rank < 2 ? -1 : last;
    return ortc_tail_spec_init(n, axis, free_places(n), tail, why);
}

static ortc_status supports(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    const char *reason;
    ortc_tail_spec tail;
    (void)device;
    return read_epilogue(n, &tail, &reason) ? ORTC_OK : ortc_no(why, "%s", reason);
}

static ortc_status prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const char *why;
    gemm_state *s = calloc(1, sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for the attributes");
    s->is_matmul = is_matmul(n);
    s->alpha = s->beta = 1;
    if (!s->is_matmul) {
        s->trans_a = ortc_node_int(n, "transA", 0) != 0;
        s->trans_b = ortc_node_int(n, "transB", 0) != 0;
        s->alpha = ortc_node_float(n, "alpha", 1);
        s->beta = ortc_node_float(n, "beta", 1);
    }
    if (!read_epilogue(n, &s->tail, &why)) {
        free(s);
        return ortc_prep_fail(prep, ORTC_INTERNAL, "%s", why);
    }
    *out = s;
    return ORTC_OK;
}

/* ---- Plan ---------------------------------------------------------------------------------------------- */

static int32_t kind_of_c(const ortc_view *c, int64_t m, int64_t n)
{
    if (!c || !c->dtype) return C_NONE;
    const int64_t rows = c->rank == 2 ? c->dims[0] : 1, columns = c->rank ? c->dims[c->rank - 1] : 1;
    if (columns == n) return rows == m && m != 1 ? C_MATRIX : C_ROW;
    return rows == m && m != 1 ? C_COLUMN : C_SCALAR;
}

/* C as the epilogue can take it: where it cannot as it is, a vector in the workspace is made of it in each
 * run. */
static void plan_c(const gemm_state *s, gemm_plan *g)
{
    const int as_is = s->beta == 1 && g->type == ORTC_F32;
    if (g->c_kind == C_SCALAR || (g->c_kind == C_ROW && !as_is)) g->c_count = g->shape.n;
    if (g->c_kind == C_COLUMN && !as_is) g->c_count = g->shape.m;
    if (s->tail.bias >= 0 && g->type != ORTC_F32) g->bias_count = g->shape.n;
}

static ortc_status plan_b(const gemm_state *s, ortc_plan *p, gemm_plan *g, const ortc_product_line *line)
{
    const ortc_matmul_shape *shape = &g->shape;
    const ortc_product_constant b = {1, shape->n, shape->k, s->trans_b, g->type};
    if (!(p->in[1].flags & ORTC_VIEW_CONST) || shape->n == 1 || shape->n == 0 || shape->k == 0 ||
        shape->m == 0)
        return ORTC_OK;
    return ortc_product_packed(p, 1, &line->b, &b, &g->packed_b);
}

static int plan_shapes(const gemm_state *s, const ortc_plan *p, gemm_plan *g)
{
    const ortc_view *a = &p->in[0], *b = &p->in[1];
    ortc_matmul_shape *shape = &g->shape;
    if (s->is_matmul) return ortc_matmul_shape_init(a, b, &p->out[0], shape);
    shape->batch = 1;
    shape->m = a->dims[s->trans_a ? 1 : 0];
    shape->k = a->dims[s->trans_a ? 0 : 1];
    shape->n = b->dims[s->trans_b ? 0 : 1];
    const int reads_c = p->n_in > 2 && s->beta != 0;
    g->c_kind = kind_of_c(reads_c ? &p->in[2] : NULL, shape->m, shape->n);
    return 1;
}

static ortc_status plan(const void *state, ortc_plan *p, void **out)
{
    const gemm_state *s = state;
    gemm_plan *g = calloc(1, sizeof *g);
    if (!g) return ortc_plan_fail(p, ORTC_OUT_OF_MEMORY, "no memory for a plan");
    const ortc_product_types types = {p->in[0].dtype, p->in[0].dtype, p->in[0].dtype};
    const ortc_product_line *line = ortc_product_line_for(types.b);
    g->type = types.a;
    const ortc_matmul_shape *shape = &g->shape;
    ortc_status status = ORTC_OK;
    if (!plan_shapes(s, p, g)) {
        free(g);
        return ortc_plan_fail(p, ORTC_UNSUPPORTED, "a rank is not possible here");
    }
    if (shape->batch == 1 && (status = plan_b(s, p, g, line))) { /* the text is set */
        free(g);
        return status;
    }
    plan_c(s, g);
    uint32_t flags = s->trans_a ? ORTC_PRODUCT_TRANS_A : 0;
    flags |= s->trans_b ? ORTC_PRODUCT_TRANS_B : 0;
    flags |= g->packed_b ? ORTC_PRODUCT_PACKED_B : 0;
    if (ortc_product_plan_init(&g->product, line, &types, shape->m, shape->n, shape->k, shape->batch,
                               flags)) {
        free(g);
        return ortc_plan_fail(p, ORTC_LIMIT, "the product's operands do not fit in memory");
    }
    g->c_offset = g->product.workspace;
    ortc_plan_workspace(p, g->c_offset + (size_t)(g->c_count + g->bias_count) * sizeof(float),
                        g->product.scratch);
    ortc_plan_cost(p, g->product.flops, g->product.bytes);
    *out = g;
    return ORTC_OK;
}

/* ---- Run ----------------------------------------------------------------------------------------------- */

static void locate(const void *arg, int64_t index, ortc_product_item *it)
{
    const gemm_plan *g = arg;
    int64_t a, b;
    ortc_matmul_at(&g->shape, index, &a, &b);
    it->a = ortc_product_at(it->a, a, g->type);
    it->b = ortc_product_at(it->b, b, g->type);
    it->c = ortc_product_at(it->c, index * g->shape.m * g->shape.n, g->type);
    if (it->residual) it->residual = ortc_product_at(it->residual, index * g->shape.m * g->shape.n, g->type);
}

/* Gemm's C: a pointer of the item, or a vector made in the workspace. */
static void place_c(const gemm_state *s, const gemm_plan *g, const ortc_call *c, ortc_product_args *x)
{
    const void *src = ortc_call_data(c, 2);
    if (g->c_kind == C_NONE) return;
    if (g->c_kind == C_MATRIX) {
        x->item.residual = src, x->beta = s->beta;
        return;
    }
    const float *v = src;
    if (g->c_count) {
        float *made = (float *)(void *)((char *)c->workspace + g->c_offset);
        const int64_t have = g->c_kind == C_SCALAR ? 1 : g->c_count;
        v = ortc_product_floats(g->product.line, g->type, src, have, made);
        for (int64_t i = g->c_count; i-- > 0;)
            made[i] = s->beta * ortc_uk_load_f32(g->c_kind == C_SCALAR ? v : v + i);
        v = made;
    }
    if (g->c_kind == C_COLUMN)
        x->item.bias_row = v;
    else
        x->item.bias_col = v;
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    const gemm_state *s = state;
    const gemm_plan *g = pstate;
    const ortc_product_threads threads = {ortc_call_parallel, c};
    ortc_tail_run tail = {&s->tail, c->in, g->shape.n, 0};
    ortc_product_args x = {.item = {.a = c->in[0].data,
                                    .b = g->packed_b ? g->packed_b->data : c->in[1].data,
                                    .c = c->out[0].data},
                           .lda = s->trans_a ? g->shape.m : g->shape.k,
                           .ldb = s->trans_b ? g->shape.k : g->shape.n,
                           .ldc = g->shape.n,
                           .residual_stride = g->shape.n,
                           .alpha = s->alpha * s->tail.alpha,
                           .beta = 1,
                           .act = s->tail.act,
                           .lo = s->tail.lo,
                           .hi = s->tail.hi,
                           .tile = s->tail.has_rest ? ortc_tail_tile : NULL,
                           .tile_arg = &tail,
                           .locate = g->shape.rank ? locate : NULL,
                           .arg = g,
                           .workspace = c->workspace};
    if (!s->is_matmul) place_c(s, g, c, &x);
    if (s->tail.residual >= 0) x.item.residual = ortc_call_data(c, s->tail.residual);
    if (s->tail.bias >= 0) {
        float *space = (float *)(void *)((char *)c->workspace + g->c_offset) + g->c_count;
        const void *bias = ortc_call_data(c, s->tail.bias);
        x.item.bias_col = ortc_product_floats(g->product.line, g->type, bias, g->shape.n, space);
    }
    return ortc_product_run(&g->product, &x, &threads);
}

static const ortc_kernel gemm_packed = {.size = ORTC_SIZED(ortc_kernel),
                                        .flags = ORTC_KERNEL_EPILOGUE,
                                        .name = "gemm.packed",
                                        .supports = supports,
                                        .prepare = prepare,
                                        .plan = plan,
                                        .run = run};

ORTC_KERNELS(cpu, gemm, ORTC_KERNEL("MatMul", 1, ORTC_NEWEST, (ORTC_TYPES_BY_F32), &gemm_packed),
             ORTC_KERNEL("Gemm", 7, ORTC_NEWEST, (ORTC_TYPES_BY_F32), &gemm_packed));
