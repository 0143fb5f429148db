/* ConvInteger on the cpu: sums of s32, exact, with what follows in the tile (kernels/gemm/integer_tail.h).
 *
 * One channel a group, for a few filters, or few products for a result: directly (depthwise_bytes.h).
 * Otherwise a product of bytes whose A is W, packed once where it is constant, and whose B is the image as it
 * lies (a kernel of one element) or its columns, made panel by panel, with x's zero point in the padding:
 * from the image laid out in groups (grouped.h) where W is constant and its zero points take no sums of
 * columns, else as it lies (im2col.h). An image and group is a matrix of the batch. Where a window sees all
 * of the image, as a point does of one pixel, images are rows of one product by a constant W.
 */
#include <stdlib.h>

#include "cpu.h"
#include "depthwise_bytes.h"
#include "grouped.h"
#include "im2col.h"
#include "kernels/common/element.h"
#include "kernels/gemm/integer_tail.h"
#include "kernels/gemm/product_packing.h"

typedef ortc_conv_integer_state conv_state;

enum { MANY_FILTERS = 4 }; /* of one channel, which are a product */
enum { WAY_NOTHING, WAY_DEPTHWISE, WAY_POINTWISE, WAY_COLUMNS, WAY_GROUPED, WAY_WHOLE };

typedef struct conv_plan {
    int32_t way;
    ortc_conv_geometry geometry;
    ortc_depthwise_bytes depthwise;
    ortc_int_ends *ends; /* of these, along; NULL: none */
    ortc_grouped grouped;
    ortc_product_plan product;
    const ortc_packed *packed; /* W; NULL: not constant */
    int64_t packed_step;       /* bytes of a group in it */
    int64_t zeros;             /* W's zero points, where there are several */
    size_t zeros_offset;       /* bytes in the workspace: where they are as i32, */
    size_t laid_offset;        /* and where the image is, laid out in groups */
} conv_plan;

ortc_status ortc_conv_integer_supports(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    const char *reason;
    ortc_int_tail tail;
    (void)device;
    return ortc_conv_has_room(n, &reason) && ortc_int_tail_init(n, 1, &tail, &reason)
               ? ORTC_OK
               : ortc_no(why, "%s", reason);
}

ortc_status ortc_conv_integer_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const char *attribute, *wrong;
    conv_state s = {.group = ortc_node_int(n, "group", 1)};
    if ((wrong = ortc_conv_window_read(n, &s.window, &attribute)))
        return ortc_prep_fail(prep, ORTC_INVALID_MODEL, "attribute %s %s", attribute, wrong);
    if (!ortc_int_tail_init(n, 1, &s.tail, &wrong)) return ortc_prep_fail(prep, ORTC_INTERNAL, "%s", wrong);
    return ortc_conv_keep(&s, offsetof(conv_state, tail) + ortc_int_tail_bytes(&s.tail), prep, out);
}

/* ---- Choosing ------------------------------------------------------------------------------------------ */

double ortc_conv_integer_least_clocks(const ortc_conv_geometry *g, ortc_dtype x, ortc_dtype w)
{
    const ortc_product_line *line = ortc_product_integers(w, x, 1);
    const double macs = (double)g->images * (double)g->group * (double)g->filters * (double)g->channels *
                        (double)g->kernel_count * (double)g->out_count;
    return macs * line->clocks / (16.0 * line->a.width * line->b.width);
}

/* A product reaches 0.91 of that; a byte of a panel takes 0.4 clocks (Zen 5), or a twentieth as it lies, and
 * its epilogue, in tiles of short rows, one and a half for each result. */
static ortc_status choose(const void *state, const ortc_question *q, ortc_offer *o, ortc_why *why)
{
    const conv_state *s = state;
    ortc_conv_geometry g;
    (void)why;
    ortc_conv_read_windows(&s->window, s->group, q->in, q->out, &g);
    if (ortc_conv_is_empty(&g)) return ORTC_OK;
    const double images = (double)g.images * (double)g.group;
    o->clocks = ortc_conv_integer_least_clocks(&g, q->in[0].dtype, q->in[1].dtype) / 0.91 +
                images * (double)g.channels * (double)g.kernel_count * (double)g.out_count *
                    (ortc_conv_is_pointwise(&g) ? 0.05 : 0.4) +
                1.5 * images * (double)g.filters * (double)g.out_count + 2000;
    return ORTC_OK;
}

/* ---- Planning ------------------------------------------------------------------------------------------ */

/* Whether a window sees all of the image, once, of one group. */
static int sees_whole(const ortc_conv_geometry *g)
{
    int yes = g->group == 1;
    for (int32_t i = 0; i < g->spatial; i++)
        yes &= g->out[i] == 1 && g->pad[i] == 0 && g->kernel[i] == g->in[i] &&
               (g->dilation[i] == 1 || g->kernel[i] == 1);
    return yes;
}

static ortc_status plan_whole(const conv_state *s, ortc_plan *p, conv_plan *c)
{
    const ortc_conv_geometry *g = &c->geometry;
    const int64_t k = g->channels * g->kernel_count;
    const ortc_dtype x = p->in[0].dtype, w = p->in[1].dtype;
    const ortc_product_line *line = ortc_product_integers(x, w, 0);
    const ortc_product_types types = {x, w, s->tail.type};
    const ortc_product_constant filters = {1, g->filters, k, 1, w};
    ORTC_TRY(ortc_product_packed(p, 1, &line->b, &filters, &c->packed));
    const uint32_t flags = ORTC_PRODUCT_PACKED_B |
                           (ortc_product_symmetric_as(p->in, p->n_in, &line->b) ? ORTC_PRODUCT_SYMMETRIC_B
                                                                                : 0);
    if (ortc_product_plan_init(&c->product, line, &types, g->images, g->filters, k, 1, flags, p->threads))
        return ortc_plan_fail(p, ORTC_LIMIT, "the convolution's operands do not fit in memory");
    return ORTC_OK;
}

static ortc_status plan_product(const conv_state *s, ortc_plan *p, conv_plan *c)
{
    const ortc_conv_geometry *g = &c->geometry;
    const ortc_dtype x = p->in[0].dtype, w = p->in[1].dtype;
    int64_t k = g->channels * g->kernel_count;
    const ortc_product_line *line = ortc_product_integers(w, x, 1);
    const int constant = (p->in[1].flags & ORTC_VIEW_CONST) && k > 0;
    if (c->way == WAY_COLUMNS && constant && ortc_product_symmetric_as(p->in, p->n_in, &line->a) &&
        ortc_grouped_init(g, x, &line->b, &c->grouped))
        c->way = WAY_GROUPED, k = c->grouped.k;
    const ortc_product_types types = {w, x, s->tail.type};
    uint32_t flags = c->way == WAY_COLUMNS   ? ORTC_PRODUCT_CUSTOM_B
                     : c->way == WAY_GROUPED ? ORTC_PRODUCT_CUSTOM_B | ORTC_PRODUCT_GROUPED_B
                                             : 0;
    if (constant) {
        const ortc_product_constant filters = {g->group, g->filters, k, 1, w};
        if (c->way == WAY_GROUPED)
            ORTC_TRY(ortc_grouped_pack(p, 1, &c->grouped, g, line, &c->packed));
        else
            ORTC_TRY(ortc_product_packed(p, 1, &line->a, &filters, &c->packed));
        c->packed_step = (int64_t)ortc_product_packed_bytes(&line->a, g->filters, k);
        flags |= ORTC_PRODUCT_PACKED_A;
    }
    if (ortc_product_plan_init(&c->product, line, &types, g->filters, g->out_count, k, g->images * g->group,
                               flags, p->threads))
        return ortc_plan_fail(p, ORTC_LIMIT, "the convolution's operands do not fit in memory");
    return ORTC_OK;
}

static ortc_status plan(const void *state, ortc_plan *p, void **out)
{
    const conv_state *s = state;
    conv_plan *c = calloc(1, sizeof *c);
    ortc_status status = ORTC_OK;
    if (!c) return ortc_plan_fail(p, ORTC_OUT_OF_MEMORY, "no memory for a plan");
    const ortc_conv_geometry *g = &c->geometry;
    ortc_conv_read_windows(&s->window, s->group, p->in, p->out, &c->geometry);
    const int empty = ortc_conv_is_empty(g);
    const int few = !empty && (g->channels > 1 || g->filters < MANY_FILTERS) &&
                    ortc_depthwise_bytes_init(g, &c->depthwise);
    c->way = empty                                                 ? WAY_NOTHING
             : few                                                 ? WAY_DEPTHWISE
             : sees_whole(g) && (p->in[1].flags & ORTC_VIEW_CONST) ? WAY_WHOLE
             : ortc_conv_is_pointwise(g)                           ? WAY_POINTWISE
                                                                   : WAY_COLUMNS;
    if (c->way == WAY_POINTWISE || c->way == WAY_COLUMNS) status = plan_product(s, p, c);
    if (c->way == WAY_WHOLE) status = plan_whole(s, p, c);
    if (status) {
        free(c);
        return status;
    }
    if (few) c->ends = ortc_conv_integer_ends(s, p, g, 1);
    if (p->n_in > 3 && p->in[3].dtype && ortc_view_count(&p->in[3]) > 1) c->zeros = g->group * g->filters;
    c->zeros_offset = c->product.workspace;
    c->laid_offset = (c->zeros_offset + (size_t)c->zeros * sizeof(int32_t) + 63) / 64 * 64;
    ortc_plan_workspace(p, c->laid_offset + c->grouped.bytes * (c->way == WAY_GROUPED),
                        c->way == WAY_DEPTHWISE ? c->depthwise.scratch : c->product.scratch);
    ortc_conv_plan_cost(p, g, p->in[0].dtype);
    *out = c;
    return ORTC_OK;
}

static void release_plan(const void *state, void *pstate)
{
    conv_plan *c = pstate;
    (void)state;
    if (c) free(c->ends);
    free(c);
}

typedef struct run_arg {
    const conv_plan *c;
    const char *x; /* or the image laid out */
    ortc_im2col_way columns;
} run_arg;

/* Matrix `index` of the batch: group index % group of image index / group. */
static void locate(const void *arg, int64_t index, ortc_product_item *it)
{
    const run_arg *r = arg;
    const ortc_conv_geometry *g = &r->c->geometry;
    const int64_t group = index % g->group;
    it->a = (const char *)it->a +
            group * (r->c->packed ? r->c->packed_step : g->filters * g->channels * g->kernel_count);
    it->b = (const char *)it->b + index * g->channels * g->in_count;
    it->c = ortc_product_at(it->c, index * g->filters * g->out_count, r->c->product.types.c);
    if (it->zeros_a) it->zeros_a += group * g->filters;
}

static void columns(const void *arg, int64_t index, int64_t k0, int64_t kc, int64_t n0, int64_t nc, void *dst,
                    size_t dw)
{
    const run_arg *r = arg;
    const ortc_conv_geometry *g = &r->c->geometry;
    ortc_im2col(g, &r->columns, r->x + index * g->channels * g->in_count, k0, kc, n0, nc, dst, dw);
}

static void groups(const void *arg, int64_t index, int64_t k0, int64_t kc, int64_t n0, int64_t nc, void *dst,
                   size_t dw)
{
    const run_arg *r = arg;
    ortc_grouped_panel(&r->c->grouped, r->x, index, k0, kc, n0, nc, dst, dw);
}

/* The zero points of W: *one, and NULL; or the vector, where they differ. */
static const int32_t *w_zeros(const conv_plan *c, const ortc_call *call, int32_t *one)
{
    const ortc_view *v = call->n_in > 3 && call->in[3].dtype ? &call->in[3] : NULL;
    int32_t *all = (int32_t *)(void *)((char *)call->workspace + c->zeros_offset);
    int differ = 0;
    *one = v ? (int32_t)ortc_load_i64(v->data, v->dtype, 0) : 0;
    for (int64_t i = 0; i < c->zeros; i++) {
        all[i] = (int32_t)ortc_load_i64(v->data, v->dtype, i);
        differ |= all[i] != *one;
    }
    return differ ? all : NULL;
}

static ortc_status run_whole(const conv_state *s, const conv_plan *c, ortc_call *call, int32_t zero,
                             int32_t w_zero, const int32_t *w_zeros)
{
    const ortc_product_threads threads = {ortc_call_parallel, call};
    const int64_t filters = c->geometry.filters;
    ortc_int_run after = {&s->tail, NULL, call->in, call->out[0].data, filters, 0};
    const ortc_product_args args = {
        .item = {.a = call->in[0].data, .b = c->packed->data, .c = call->out[0].data, .zeros_b = w_zeros},
        .lda = c->geometry.channels * c->geometry.kernel_count,
        .ldb = filters,
        .ldc = filters,
        .zero_a = zero,
        .zero_b = w_zero,
        .sums = s->tail.has_pass || s->tail.has_rest ? ortc_int_tail_tile : NULL,
        .tile_arg = &after,
        .workspace = call->workspace};
    return ortc_product_run(&c->product, &args, &threads);
}

static ortc_status run(const void *state, const void *pstate, ortc_call *call)
{
    const conv_state *s = state;
    const conv_plan *c = pstate;
    const ortc_conv_geometry *g = &c->geometry;
    const ortc_view *x = &call->in[0], *x_zero = call->n_in > 2 && call->in[2].dtype ? &call->in[2] : NULL;
    if (x_zero && ortc_view_count(x_zero) != 1)
        return ortc_call_fail(call, ORTC_SHAPE_MISMATCH, "x_zero_point has %lld elements, expected 1",
                              (long long)ortc_view_count(x_zero));
    if (c->way == WAY_NOTHING) return ORTC_OK;
    int32_t one;
    const int32_t zero = x_zero ? (int32_t)ortc_load_i64(x_zero->data, x_zero->dtype, 0) : 0,
                  *zeros = w_zeros(c, call, &one);
    if (c->way == WAY_DEPTHWISE)
        return ortc_depthwise_bytes_run(&c->depthwise, &s->tail, c->ends, zero, one, zeros, call);
    if (c->way == WAY_WHOLE) return run_whole(s, c, call, zero, one, zeros);
    const ortc_product_threads threads = {ortc_call_parallel, call};
    ortc_int_run after = {&s->tail, NULL, call->in, call->out[0].data, g->out_count, g->group * g->filters};
    const char *image = x->data;
    if (c->way == WAY_GROUPED) {
        char *laid = (char *)call->workspace + c->laid_offset;
        ORTC_TRY(ortc_grouped_lay(&c->grouped, x->data, (uint8_t)zero, laid, call));
        image = laid;
    }
    const run_arg r = {c, image, {NULL, ortc_columns_bytes_best(), (uint8_t)zero}};
    const ortc_product_args args = {.item = {.a = c->packed ? c->packed->data : call->in[1].data,
                                             .b = x->data,
                                             .c = call->out[0].data,
                                             .zeros_a = zeros},
                                    .lda = g->channels * g->kernel_count,
                                    .ldb = g->in_count,
                                    .ldc = g->out_count,
                                    .zero_a = one,
                                    .zero_b = zero,
                                    .sums = s->tail.has_pass || s->tail.has_rest ? ortc_int_tail_tile : NULL,
                                    .tile_arg = &after,
                                    .locate = locate,
                                    .pack = c->way == WAY_GROUPED ? groups : columns,
                                    .arg = &r,
                                    .workspace = call->workspace};
    return ortc_product_run(&c->product, &args, &threads);
}

const ortc_kernel ortc_conv_integer = {.size = ORTC_SIZED(ortc_kernel),
                                       .flags = ORTC_KERNEL_EPILOGUE,
                                       .name = "conv_integer",
                                       .supports = ortc_conv_integer_supports,
                                       .prepare = ortc_conv_integer_prepare,
                                       .plan = plan,
                                       .release_plan = release_plan,
                                       .run = run,
                                       .choose = choose};
