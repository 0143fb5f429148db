/* MatMul and Gemm on the cpu provider, f32, f16 and bf16, summed in f32: shapes and broadcasting become
 * products of product.h.
 *
 * MatMul: A [.., M, K] times B [.., K, N], batch dims broadcast, vectors gain a dim of 1. When B is one
 * matrix, the batch of A joins M: one large product. A constant B, or several, is packed once and shared
 * by whoever multiplies with it, and so is a constant A (a graph's neighbours) of several rows. Gemm: alpha
 * A' B' + beta C, where C is a matrix (then it is the product's residual) or a vector or scalar (then a bias,
 * scaled first where beta is not 1). Both fuse what follows (epilogue.h). All else, blocking included, is
 * product.h's.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/common/cpu_device.h"
#include "kernels/common/vector/convert.h"
#include "kernels/gemm/sums.h"
#include "kernels/gemm/cpu_gemm.h"
#include "kernels/gemm/product_packing.h"

enum { C_NONE, C_MATRIX, C_ROW, C_COLUMN, C_SCALAR }; /* how Gemm's C is stretched: [M,N], [N], [M,1], [1] */

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

int ortc_gemm_read(const ortc_node *n, ortc_gemm_state *s, const char **why)
{
    memset(s, 0, sizeof *s);
    s->is_matmul = is_matmul(n);
    s->alpha = s->beta = 1;
    if (!s->is_matmul) {
        s->trans_a = ortc_node_int(n, "transA", 0) != 0;
        s->trans_b = ortc_node_int(n, "transB", 0) != 0;
        s->alpha = ortc_node_float(n, "alpha", 1);
        s->beta = ortc_node_float(n, "beta", 1);
    }
    return read_epilogue(n, &s->tail, why);
}

static ortc_status prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const char *why;
    ortc_gemm_state *s = calloc(1, sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for the attributes");
    if (!ortc_gemm_read(n, s, &why)) {
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
static void plan_c(const ortc_gemm_state *s, ortc_gemm_plan *g)
{
    const int as_is = s->beta == 1 && g->type == ORTC_F32;
    if (g->c_kind == C_SCALAR || (g->c_kind == C_ROW && !as_is)) g->c_count = g->shape.n;
    if (g->c_kind == C_COLUMN && !as_is) g->c_count = g->shape.m;
    if (s->tail.bias >= 0 && g->type != ORTC_F32) g->bias_count = g->shape.n;
}

int ortc_gemm_shape(const ortc_gemm_state *s, const ortc_view *in, const ortc_view *out,
                    ortc_matmul_shape *shape)
{
    if (s->is_matmul) return ortc_matmul_shape_init(&in[0], &in[1], out, shape);
    memset(shape, 0, sizeof *shape);
    shape->batch = 1;
    shape->m = in[0].dims[s->trans_a ? 1 : 0];
    shape->k = in[0].dims[s->trans_a ? 0 : 1];
    shape->n = in[1].dims[s->trans_b ? 0 : 1];
    return 1;
}

/* Whether it is a constant B, whose matrices are packed. */
static int is_packed(const ortc_view *b, const ortc_matmul_shape *s)
{
    return (b->flags & ORTC_VIEW_CONST) && s->n > 1 && s->k && s->batch;
}

ortc_status ortc_gemm_plan_on(const ortc_gemm_state *s, ortc_plan *p, const ortc_view *in, uint32_t n_in,
                              const ortc_view *out, uint32_t port_b, const ortc_product_line *line,
                              int packed_a, ortc_gemm_plan *g)
{
    const ortc_product_types types = {in[0].dtype, in[0].dtype, in[0].dtype};
    const ortc_matmul_shape *shape = &g->shape;
    int left = 0;
    g->type = types.a;
    if (!ortc_gemm_shape(s, in, out, &g->shape))
        return ortc_plan_fail(p, ORTC_UNSUPPORTED, "a rank is not possible here");
    if (!s->is_matmul && n_in > 2 && s->beta != 0) g->c_kind = kind_of_c(&in[2], shape->m, shape->n);
    if (is_packed(&in[1], shape) && shape->m) {
        const int64_t matrices = ortc_view_count(&in[1]) / (shape->n * shape->k);
        const ortc_product_constant b = {matrices, shape->n, shape->k, s->trans_b, g->type};
        g->packed_step = (int64_t)ortc_product_packed_bytes(&line->b, shape->n, shape->k);
        const ortc_status status = ortc_product_packed_or_left(p, port_b, line, &b, shape->m, &g->packed_b);
        left = !g->packed_b;
        if (status) return status; /* the text is set */
    }
    if (!packed_a && !g->packed_b && shape->batch == 1 && (in[0].flags & ORTC_VIEW_CONST) && shape->m > 1 &&
        shape->n > 1 && shape->k) {
        const ortc_product_constant a = {1, shape->m, shape->k, !s->trans_a, g->type};
        const ortc_status status = ortc_product_packed(p, 0, &line->a, &a, &g->packed_a);
        if (status) return status;
        packed_a = 1;
    }
    plan_c(s, g);
    uint32_t flags = s->trans_a && !packed_a ? ORTC_PRODUCT_TRANS_A : 0;
    flags |= packed_a ? ORTC_PRODUCT_PACKED_A : 0;
    flags |= s->trans_b ? ORTC_PRODUCT_TRANS_B : 0;
    flags |= g->packed_b ? ORTC_PRODUCT_PACKED_B : left ? ORTC_PRODUCT_PASSING_B : 0;
    if (ortc_product_plan_init(&g->product, line, &types, shape->m, shape->n, shape->k, shape->batch, flags,
                               p->threads))
        return ortc_plan_fail(p, ORTC_LIMIT, "the product's operands do not fit in memory");
    g->c_offset = g->product.workspace;
    g->workspace = g->c_offset + (size_t)(g->c_count + g->bias_count) * sizeof(float);
    return ORTC_OK;
}

static ortc_status plan_line(const ortc_gemm_state *s, ortc_plan *p, const ortc_product_line *line,
                             void **out)
{
    ortc_gemm_plan *g = calloc(1, sizeof *g);
    if (!g) return ortc_plan_fail(p, ORTC_OUT_OF_MEMORY, "no memory for a plan");
    const ortc_status status = ortc_gemm_plan_on(s, p, p->in, p->n_in, p->out, 1, line, 0, g);
    if (status) {
        free(g);
        return status;
    }
    ortc_plan_workspace(p, g->workspace, g->product.scratch);
    ortc_plan_cost(p, g->product.flops, g->product.bytes);
    *out = g;
    return ORTC_OK;
}

/* ---- Run ----------------------------------------------------------------------------------------------- */

static void locate(const void *arg, int64_t index, ortc_product_item *it)
{
    const ortc_gemm_plan *g = arg;
    int64_t a, b;
    ortc_matmul_at(&g->shape, index, &a, &b);
    it->a = ortc_product_at(it->a, a, g->type);
    it->b = g->packed_b ? (const char *)it->b + b / (g->shape.n * g->shape.k) * g->packed_step
                        : ortc_product_at(it->b, b, g->type);
    it->c = ortc_product_at(it->c, index * g->shape.m * g->shape.n, g->type);
    if (it->residual) it->residual = ortc_product_at(it->residual, index * g->shape.m * g->shape.n, g->type);
}

static const void *data_of(const ortc_view *in, uint32_t n_in, int32_t port)
{
    return port >= 0 && (uint32_t)port < n_in && in[port].dtype ? in[port].data : NULL;
}

/* Gemm's C: a pointer of the item, or a vector made in the workspace. */
static void place_c(const ortc_gemm_state *s, const ortc_gemm_plan *g, const void *src, float *made,
                    ortc_product_args *x)
{
    if (g->c_kind == C_NONE) return;
    if (g->c_kind == C_MATRIX) {
        x->item.residual = src, x->beta = s->beta;
        return;
    }
    const float *v = src;
    if (g->c_count) {
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

ortc_status ortc_gemm_run_on(const ortc_gemm_state *s, const ortc_gemm_plan *g, ortc_call *c,
                             const ortc_view *in, uint32_t n_in, void *out, const void *packed_a,
                             void *workspace)
{
    const ortc_product_threads threads = {ortc_call_parallel, c};
    ortc_tail_run tail = {&s->tail, in, g->shape.n, 0};
    float *made = workspace ? (float *)(void *)((char *)workspace + g->c_offset) : NULL; /* C, and a bias */
    float *bias = made ? made + g->c_count : NULL;
    const int64_t shares = g->product.threads ? g->product.threads : 1;
    ortc_product_args x = {.item = {.a = packed_a      ? packed_a
                                         : g->packed_a ? g->packed_a->data
                                                       : in[0].data,
                                    .b = g->packed_b ? g->packed_b->data : in[1].data,
                                    .c = out},
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
                           .backward = *c->slot && g->shape.m == 1 ? shares : 0,
                           .workspace = workspace};
    if (!s->is_matmul) place_c(s, g, data_of(in, n_in, 2), made, &x);
    if (s->tail.residual >= 0) x.item.residual = data_of(in, n_in, s->tail.residual);
    if (s->tail.bias >= 0)
        x.item.bias_col = ortc_product_floats(g->product.line, g->type, data_of(in, n_in, s->tail.bias),
                                              g->shape.n, bias);
    return ortc_product_run(&g->product, &x, &threads);
}

void ortc_gemm_turn(ortc_call *c)
{
    static char odd;
    *c->slot = *c->slot ? NULL : &odd;
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    ortc_gemm_turn(c);
    return ortc_gemm_run_on(state, pstate, c, c->in, c->n_in, c->out[0].data, NULL, c->workspace);
}

/* ---- Ways ---------------------------------------------------------------------------------------------- */

const ortc_product_line *ortc_gemm_line(int way, ortc_dtype type)
{
    return way == ORTC_GEMM_FUSED    ? ortc_product_line_for(type)
           : way == ORTC_GEMM_PIECES ? ortc_product_in_pieces(type)
                                     : ortc_product_select(ORTC_BF16, ORTC_BF16);
}

/* In clocks an element: packing A, and B where it is no constant, of f32 and of pieces; pieces of B made
 * between products; results, which AMX's registers give to memory first; and memory, which constants come
 * from. Processors with AMX do fused multiply-adds in so much of the clocks that the table of lines has.
 * Fitted to Swin-T's products; pieces to those of BERT and MiniLM, of 16 to 512 rows. */
#define PACK_FLOAT 0.25
#define PACK_PIECE 0.4
#define CUT_PIECE 0.075
#define RESULT_AMX 0.8
#define FUSED_BESIDE_AMX 0.6
#define BYTE (1 / 3.2)
#define BYTE_AMX (1 / 8.0)

double ortc_gemm_clocks(const ortc_product_line *line, const ortc_matmul_shape *s, int constant_b)
{
    const double m = (double)s->m, n = (double)s->n, k = (double)s->k;
    /* registers of 16 rows take as long for one */
    const double rows = line->begin ? (double)((s->m + 15) / 16 * 16) : m;
    const double columns = (double)((s->n + line->b.step - 1) / line->b.step * line->b.step);
    const double size = (double)ortc_product_size(line->b.type);
    const int amx = (ortc_cpu_features() & ORTC_CPU_AMX) != 0, unit = amx && line->begin;
    const int split = line->can & ORTC_LINE_SPLIT;
    const double pack_a = line->a.group == 1 ? PACK_FLOAT : PACK_FLOAT + PACK_PIECE * line->a.planes;
    const double pack_b = split ? PACK_FLOAT : pack_a;
    const double cut = split ? CUT_PIECE * line->a.planes * n * k : 0;
    const double clocks = line->clocks * (amx && !unit ? FUSED_BESIDE_AMX : 1);
    const double products = rows * columns * k * clocks / (16.0 * line->a.width * line->b.width) +
                            (unit ? RESULT_AMX * m * n : 0) + cut;
    const double bytes = constant_b ? (amx ? BYTE_AMX : BYTE) * size * n * k : 0;
    return (double)s->batch *
           ((products > bytes ? products : bytes) + pack_a * m * k + (constant_b ? 0 : pack_b * n * k));
}

const ortc_product_line *ortc_gemm_quicker(ortc_dtype a, ortc_dtype b, int64_t m, int64_t n, int64_t k,
                                           int64_t batch, int constant_b)
{
    const ortc_product_line *fused = ortc_product_line_for(b),
                            *pieces = a == b && m > 1 && n > 1 ? ortc_product_in_pieces(b) : NULL;
    const ortc_matmul_shape shape = {.m = m, .n = n, .k = k, .batch = batch};
    if (!pieces) return fused;
    return ortc_gemm_clocks(pieces, &shape, constant_b) < ortc_gemm_clocks(fused, &shape, constant_b) ? pieces
                                                                                                      : fused;
}

/* A row of f32 that is to be multiplied in bf16: with weights rounded to it, which are read from memory; the
 * row itself stays f32. */
static int is_row(int way, const ortc_view *in, const ortc_matmul_shape *s)
{
    return way == ORTC_GEMM_BF16 && in[0].dtype == ORTC_F32 && s->m == 1 && s->batch == 1 && s->n > 1 &&
           (in[1].flags & ORTC_VIEW_CONST);
}

static ortc_status choose_way(const void *state, const ortc_question *q, ortc_offer *o, ortc_why *why,
                              int way)
{
    const ortc_gemm_state *s = state;
    const ortc_product_line *line = ortc_gemm_line(way, q->in[0].dtype);
    ortc_matmul_shape shape;
    if (!ortc_gemm_shape(s, q->in, q->out, &shape)) return ortc_no(why, "a rank is not possible here");
    const int empty = !shape.m || !shape.n || !shape.k || !shape.batch, row = is_row(way, q->in, &shape);
    if (way != ORTC_GEMM_FUSED && (empty || (!row && (shape.m == 1 || shape.n == 1))))
        return ortc_no(why, "a vector, or empty");
    if (row) line = ortc_product_line_for(ORTC_BF16);
    const int constant = is_packed(&q->in[1], &shape);
    o->clocks = empty ? 0 : ortc_gemm_clocks(line, &shape, constant);
    /* the ways' lines may read the same panels */
    const ortc_product_line *fused = ortc_product_line_for(q->in[0].dtype);
    const int form = row                                            ? ORTC_GEMM_WAYS
                     : !memcmp(&line->b, &fused->b, sizeof line->b) ? ORTC_GEMM_FUSED
                                                                    : way;
    o->form = constant && !empty ? 1 + (uint64_t)form : 0;
    return ORTC_OK;
}

static ortc_status plan_way(const ortc_gemm_state *s, ortc_plan *p, int way, void **out)
{
    ortc_matmul_shape shape;
    const int row = ortc_gemm_shape(s, p->in, p->out, &shape) && is_row(way, p->in, &shape);
    return plan_line(s, p, row ? ortc_product_line_for(ORTC_BF16) : ortc_gemm_line(way, p->in[0].dtype), out);
}

static ortc_status supports_pieces(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    if (!ortc_product_in_pieces(ortc_node_in(n, 0).dtype))
        return ortc_no(why, "there is no unit for products of bf16, or ORTC_CPU keeps f32 from it");
    return supports(n, device, why);
}

static ortc_status supports_bf16(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    if (!ortc_product_select(ORTC_BF16, ORTC_BF16))
        return ortc_no(why, "there are no instructions for products of bf16");
    return supports(n, device, why);
}

static ortc_status supports_rounded(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    if (!ortc_rounds_to_bf16(device)) return ortc_no(why, "f32 is not to be rounded to bf16");
    return supports_bf16(n, device, why);
}

#define WAY(title, way, may, more) \
    static ortc_status choose_##title(const void *state, const ortc_question *q, ortc_offer *o, \
                                      ortc_why *why) \
    { \
        return choose_way(state, q, o, why, way); \
    } \
    static ortc_status plan_##title(const void *state, ortc_plan *p, void **out) \
    { \
        return plan_way(state, p, way, out); \
    } \
    static const ortc_kernel gemm_##title = {.size = ORTC_SIZED(ortc_kernel), \
                                             .flags = ORTC_KERNEL_EPILOGUE | (more), \
                                             .name = "gemm." #title, \
                                             .supports = may, \
                                             .prepare = prepare, \
                                             .choose = choose_##title, \
                                             .plan = plan_##title, \
                                             .run = run};
WAY(packed, ORTC_GEMM_FUSED, supports, 0)
WAY(pieces, ORTC_GEMM_PIECES, supports_pieces, 0)
WAY(bf16, ORTC_GEMM_BF16, supports_bf16, 0)
WAY(rounded, ORTC_GEMM_BF16, supports_rounded, ORTC_KERNEL_ROUNDS)

#define EACH_WAY(op, since) \
    ORTC_KERNEL(op, since, ORTC_NEWEST, (ORTC_TYPE(ORTC_F32)), &gemm_rounded), \
        ORTC_KERNEL(op, since, ORTC_NEWEST, (ORTC_TYPE(ORTC_F32) | ORTC_TYPE(ORTC_F16)), &gemm_pieces), \
        ORTC_KERNEL(op, since, ORTC_NEWEST, (ORTC_TYPE(ORTC_BF16)), &gemm_bf16), \
        ORTC_KERNEL(op, since, ORTC_NEWEST, (ORTC_TYPES_BY_F32), &gemm_packed)
#define SUMS (ORTC_TYPE(ORTC_F64) | ORTC_TYPE(ORTC_I32) | ORTC_TYPE(ORTC_U32))
ORTC_KERNELS(cpu, gemm, EACH_WAY("MatMul", 1), EACH_WAY("Gemm", 7),
             ORTC_KERNEL("MatMul", 13, ORTC_NEWEST, (SUMS), &ortc_cpu_matmul_sums),
             ORTC_KERNEL("Gemm", 13, ORTC_NEWEST, (SUMS), &ortc_cpu_gemm_sums));
