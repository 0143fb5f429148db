/* kernels/quantize/cpu_matmul.c: MatMulInteger, and GemmInteger, on the cpu: a product of bytes in s32
 * (kernels/gemm/product.h), exact, of whatever signs, with what follows it in its tiles
 * (kernels/gemm/integer_tail.h).
 *
 * A constant B is packed once; where the machine has no VNNI, B no zero points and A one for all its rows, as
 * halves (kernels/gemm/halved.h). Zero points are taken off through sums over k of rows and columns; one for
 * each row of A or column of B becomes a vector of i32 in the workspace.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/common/element.h"
#include "kernels/gemm/halved.h"
#include "kernels/gemm/integer_tail.h"
#include "kernels/gemm/matmul_shape.h"
#include "kernels/gemm/product_packing.h"
#include "kernels/quantize/cpu.h"

enum { LEAST_ROWS = 4 }; /* of a block in fixed point, together */

typedef struct matmul_state {
    ortc_int_tail tail;
    int turned; /* GemmInteger: B is [n][k] */
} matmul_state;

typedef struct matmul_plan {
    ortc_halved halved; /* its body NULL: not this way */
    ortc_product_plan product;
    ortc_matmul_shape shape;
    const ortc_packed *packed_b;
    ortc_int_ends *ends;      /* NULL: tiles go by the tail's passes */
    int64_t zeros_a, zeros_b; /* elements of the vectors; 0: one for all */
    size_t zeros_offset;      /* bytes in the workspace: of A's, and B's behind them */
} matmul_plan;

static int read_tail(const ortc_node *n, ortc_int_tail *tail, const char **why)
{
    const int32_t last = ortc_node_out(n, 0).rank - 1, axis = ortc_node_in(n, 1).rank < 2 ? -1 : last;
    return ortc_int_tail_init(n, axis, tail, why);
}

static ortc_status supports(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    const char *reason;
    ortc_int_tail tail;
    (void)device;
    return read_tail(n, &tail, &reason) ? ORTC_OK : ortc_no(why, "%s", reason);
}

static ortc_status prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const char *why;
    matmul_state *state = calloc(1, sizeof *state);
    if (!state) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for an epilogue");
    state->turned = !strcmp(ortc_node_op(n), "GemmInteger");
    if (!read_tail(n, &state->tail, &why)) {
        free(state);
        return ortc_prep_fail(prep, ORTC_INTERNAL, "%s", why);
    }
    *out = state;
    return ORTC_OK;
}

/* Ends in fixed point where each column is a channel of its own and sums stay below 2^30. */
static ortc_int_ends *ends_of(const ortc_int_tail *tail, const ortc_plan *p, const ortc_matmul_shape *s)
{
    if (p->in[1].rank < 2 || s->k >= (1 << 30) / (255 * 255) || s->m * s->batch < LEAST_ROWS) return NULL;
    int32_t *first = calloc((size_t)s->n + 1, sizeof *first);
    ortc_int_ends *ends = first ? ortc_int_ends_create(tail, p->in, first, (size_t)s->n, 0) : NULL;
    free(first);
    return ends;
}

static int64_t count_of(const ortc_view *v) { return v->dtype ? ortc_view_count(v) : 0; }

static ortc_status plan_halved(ortc_plan *p, const ortc_halved_body *body, int turned, matmul_plan *g)
{
    const ortc_matmul_shape *s = &g->shape;
    ORTC_TRY(ortc_halved_packed(p, 1, body, s->n, s->k, turned, &g->packed_b));
    ortc_halved_init(body, s->m, s->n, s->k, p->in[0].dtype, p->threads, &g->halved);
    ortc_plan_workspace(p, g->halved.workspace, g->halved.scratch);
    ortc_plan_cost(p, 2 * (double)s->m * (double)s->n * (double)s->k,
                   (double)(s->m * s->k) + (double)s->k * (double)s->n + 4 * (double)s->m * (double)s->n);
    return ORTC_OK;
}

static void release_plan(const void *state, void *pstate)
{
    matmul_plan *g = pstate;
    (void)state;
    if (g) free(g->ends);
    free(g);
}

static ortc_status plan(const void *state, ortc_plan *p, void **out)
{
    const ortc_int_tail *tail = &((const matmul_state *)state)->tail;
    const int turned = ((const matmul_state *)state)->turned;
    const ortc_view *a = &p->in[0], *b = &p->in[1];
    ortc_view as_product = *b; /* for its extents */
    const int64_t dims[] = {b->rank > 1 ? b->dims[1] : 0, b->dims[0]};
    if (turned) as_product.dims = dims;
    matmul_plan *g = calloc(1, sizeof *g);
    ortc_status status = ORTC_OK;
    if (!g) return ortc_plan_fail(p, ORTC_OUT_OF_MEMORY, "no memory for a plan");
    if (!ortc_matmul_shape_init(a, &as_product, &p->out[0], &g->shape)) {
        free(g);
        return ortc_plan_fail(p, ORTC_UNSUPPORTED, "a rank is not possible here");
    }
    const ortc_matmul_shape *s = &g->shape;
    g->ends = ends_of(tail, p, s);
    const ortc_halved_body *body = ortc_halved_get();
    const int constant = s->batch == 1 && (b->flags & ORTC_VIEW_CONST) && s->m && s->n && s->k;
    if (body && constant && ortc_product_symmetric(p->in, p->n_in, b->dtype == ORTC_U8 ? -128 : 0) &&
        !(p->n_in > 2 && count_of(&p->in[2]) > 1)) {
        status = plan_halved(p, body, turned, g);
        if (status)
            release_plan(state, g);
        else
            *out = g;
        return status;
    }
    const ortc_product_types types = {a->dtype, b->dtype, tail->type};
    /* of two operands that no instruction multiplies as they are the one that is packed anyway is moved */
    const ortc_product_line *line = ortc_product_integers(a->dtype, b->dtype, !constant);
    if (constant)
        status = ortc_product_packed(p, 1, &line->b,
                                     &(ortc_product_constant){1, s->n, s->k, turned, b->dtype}, &g->packed_b);
    const uint32_t flags = (g->packed_b ? ORTC_PRODUCT_PACKED_B : 0) | (turned ? ORTC_PRODUCT_TRANS_B : 0) |
                           (ortc_product_symmetric_as(p->in, p->n_in, &line->b) ? ORTC_PRODUCT_SYMMETRIC_B
                                                                                : 0);
    if (!status &&
        ortc_product_plan_init(&g->product, line, &types, s->m, s->n, s->k, s->batch, flags, p->threads))
        status = ortc_plan_fail(p, ORTC_LIMIT, "the product's operands do not fit in memory");
    if (status) {
        release_plan(state, g);
        return status;
    }
    /* of a vector as many as the rows have, those of the batch that has joined them included */
    g->zeros_a = p->n_in > 2 && count_of(&p->in[2]) > 1 ? p->in[2].rank > 1 ? count_of(&p->in[2]) : s->m : 0;
    g->zeros_b = p->n_in > 3 && count_of(&p->in[3]) > 1 ? count_of(&p->in[3]) : 0;
    g->zeros_offset = g->product.workspace;
    ortc_plan_workspace(p, g->zeros_offset + (size_t)(g->zeros_a + g->zeros_b) * sizeof(int32_t),
                        g->product.scratch);
    ortc_plan_cost(p, g->product.flops, g->product.bytes);
    *out = g;
    return ORTC_OK;
}

static void locate(const void *arg, int64_t index, ortc_product_item *it)
{
    const matmul_plan *g = arg;
    const ortc_matmul_shape *s = &g->shape;
    int64_t a, b;
    ortc_matmul_at(s, index, &a, &b);
    it->a = (const char *)it->a + a;
    it->b = (const char *)it->b + b;
    it->c = ortc_product_at(it->c, index * s->m * s->n, g->product.types.c);
    if (it->zeros_a && g->zeros_a > s->m && s->k) it->zeros_a += a / s->k;
    if (it->zeros_b && g->zeros_b > s->n && s->k) it->zeros_b += b / s->k;
}

/* The zero points: *one, and NULL; or, where they differ, the vector of them. */
static const int32_t *zeros(const ortc_view *v, int64_t count, int32_t *space, int32_t *one)
{
    const int64_t have = count_of(v);
    int differ = 0;
    *one = have ? (int32_t)ortc_load_i64(v->data, v->dtype, 0) : 0;
    for (int64_t i = 0; i < count; i++) {
        space[i] = (int32_t)ortc_load_i64(v->data, v->dtype, i % have);
        differ |= space[i] != *one;
    }
    return differ ? space : NULL;
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    static const ortc_view none;
    const ortc_int_tail *tail = &((const matmul_state *)state)->tail;
    const int turned = ((const matmul_state *)state)->turned;
    const matmul_plan *g = pstate;
    const ortc_matmul_shape *s = &g->shape;
    const ortc_product_threads threads = {ortc_call_parallel, c};
    int32_t *space = (int32_t *)(void *)((char *)c->workspace + g->zeros_offset);
    ortc_int_run after = {tail, g->ends, c->in, c->out[0].data, s->n, 0};
    if (g->halved.body) {
        ortc_halved_args halves = {.a = c->in[0].data,
                                   .b = g->packed_b->data,
                                   .sums = tail->has_pass || tail->has_rest ? ortc_int_tail_tile : NULL,
                                   .arg = &after,
                                   .c = c->out[0].data,
                                   .workspace = c->workspace};
        zeros(c->n_in > 2 ? &c->in[2] : &none, 0, NULL, &halves.zero);
        return ortc_halved_run(&g->halved, &halves, &threads);
    }
    ortc_product_args x = {.item = {.a = c->in[0].data,
                                    .b = g->packed_b ? g->packed_b->data : c->in[1].data,
                                    .c = c->out[0].data},
                           .lda = s->k,
                           .ldb = turned ? s->k : s->n,
                           .ldc = s->n,
                           .sums = tail->has_pass || tail->has_rest ? ortc_int_tail_tile : NULL,
                           .tile_arg = &after,
                           .locate = s->rank ? locate : NULL,
                           .arg = g,
                           .workspace = c->workspace};
    x.item.zeros_a = zeros(c->n_in > 2 ? &c->in[2] : &none, g->zeros_a, space, &x.zero_a);
    x.item.zeros_b = zeros(c->n_in > 3 ? &c->in[3] : &none, g->zeros_b, space + g->zeros_a, &x.zero_b);
    return ortc_product_run(&g->product, &x, &threads);
}

const ortc_kernel ortc_cpu_matmul_integer = {.size = ORTC_SIZED(ortc_kernel),
                                             .flags = ORTC_KERNEL_EPILOGUE,
                                             .name = "matmul_integer.packed",
                                             .supports = supports,
                                             .prepare = prepare,
                                             .plan = plan,
                                             .run = run,
                                             .release_plan = release_plan};
