/* Conv on the cpu provider, f32, f16 and bf16, summed in f32, up to eight spatial dims, any groups, strides,
 * dilations and pads.
 *
 * Kernels of their own, of which the cheapest for the shapes at hand is chosen (ortc_kernel.choose):
 *   conv.depthwise   one input channel per group: directly (dwconv.h)
 *   conv.pointwise   a kernel of one element, no stride, no padding: the image is B of a product as it lies
 *   conv.turned      a product with pixels as rows, where W is constant
 *   conv.columns     any: a product whose B is made panel by panel (im2col.h)
 * In products A is W, [filters, channels * kernel], packed once where it is constant; an image
 * and group is one matrix of the batch. Where the output has few positions (7x7: 49 columns would fill two
 * panels of 32 by three quarters) the product is turned: pixels are A, W is B, and C is stored
 * transposed. What follows is the product's epilogue (kernels/gemm/epilogue.h). Where columns are
 * made of an image of 16 bits, it is widened into the workspace first: each element is read once for that,
 * and many times for the columns.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "cpu.h"
#include "dwconv.h"
#include "geometry.h"
#include "im2col.h"
#include "tiled.h"
#include "kernels/common/vector/convert.h"
#include "kernels/gemm/epilogue.h"
#include "kernels/gemm/product.h"
#include "kernels/gemm/product_packing.h"

enum { WAY_NOTHING, WAY_DEPTHWISE, WAY_POINTWISE, WAY_COLUMNS };

typedef struct conv_plan {
    int32_t way;
    ortc_conv_geometry geometry;
    ortc_dwconv_plan depthwise;
    ortc_product_plan product;
    ortc_im2col_way columns;
    const ortc_packed *packed; /* W; NULL: not constant */
    ortc_dtype type, result;
    int32_t turned;
    int64_t packed_step;             /* bytes of a group in it */
    int64_t wide_count;              /* elements of a widened image */
    size_t wide_offset, bias_offset; /* bytes in the workspace: of it, and of a widened bias behind it */
} conv_plan;

/* ---- Supports and prepare ------------------------------------------------------------------------------ */

/* B has the place of a bias. */
static int read_epilogue(const ortc_node *n, uint32_t may, ortc_tail_spec *tail, const char **why)
{
    if (ortc_node_in(n, 2).type) may &= ORTC_TAIL_RESIDUAL | ORTC_TAIL_ACT | ORTC_TAIL_WIDER;
    return ortc_tail_spec_init(n, 1, may, tail, why);
}
int32_t ortc_conv_bias_port(const ortc_tail_spec *t) { return t->bias >= 0 ? t->bias : 2; }

int ortc_conv_has_room(const ortc_node *n, const char **why)
{
    const ortc_port x = ortc_node_in(n, 0), w = ortc_node_in(n, 1);
    const int32_t rank = x.rank >= 0 ? x.rank : w.rank;
    size_t dims = 0; /* shapes that come are held against each of these */
    if (rank >= 2)
        dims = (size_t)rank - 2;
    else
        ortc_node_ints(n, "kernel_shape", &dims);
    *why = dims ? "it has more spatial dims than this kernel has room for"
                : "how many spatial dims it has is not known";
    return dims > 0 && dims <= ORTC_CONV_SPATIAL;
}

const char *ortc_conv_window_read(const ortc_node *n, ortc_conv_window *w, const char **attribute)
{
    ortc_window all;
    const char *wrong = ortc_window_read(n, -1, &all, attribute);
    if (wrong) return wrong;
    w->auto_pad = all.auto_pad;
    memcpy(w->stride, all.stride, sizeof w->stride);
    memcpy(w->dilation, all.dilation, sizeof w->dilation);
    memcpy(w->pad, all.pad_begin, sizeof w->pad);
    return NULL;
}

static ortc_status supports(const ortc_node *n, uint32_t may, ortc_why *why)
{
    const char *reason;
    ortc_tail_spec tail;
    return ortc_conv_has_room(n, &reason) && read_epilogue(n, may, &tail, &reason)
               ? ORTC_OK
               : ortc_no(why, "%s", reason);
}

ortc_status ortc_conv_supports(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    (void)device;
    return supports(n, ORTC_TAIL_ALL, why);
}

int ortc_conv_may_widen(const ortc_node *n)
{
    return ortc_node_in(n, 0).dtype == ORTC_BF16 && ortc_tiled_uk_get(ORTC_TILED_BF16) &&
           ortc_node_int(n, "group", 1) == 1;
}

ortc_status ortc_conv_supports_wider(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    (void)device;
    return supports(n, ORTC_TAIL_ALL | (ortc_conv_may_widen(n) ? ORTC_TAIL_WIDER : 0), why);
}

ortc_status ortc_conv_keep(const void *state, size_t bytes, ortc_prep *prep, void **out)
{
    if (!(*out = malloc(bytes)))
        return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for the attributes");
    memcpy(*out, state, bytes);
    return ORTC_OK;
}

ortc_status ortc_conv_read_state(const ortc_node *n, uint32_t may, ortc_prep *prep, ortc_conv_state *out)
{
    const char *attribute, *wrong;
    out->group = ortc_node_int(n, "group", 1);
    if ((wrong = ortc_conv_window_read(n, &out->window, &attribute)))
        return ortc_prep_fail(prep, ORTC_INVALID_MODEL, "attribute %s %s", attribute, wrong);
    return read_epilogue(n, may, &out->tail, &wrong) ? ORTC_OK
                                                     : ortc_prep_fail(prep, ORTC_INTERNAL, "%s", wrong);
}

ortc_status ortc_conv_prepare(const ortc_node *n, uint32_t may, ortc_prep *prep, void **out)
{
    ortc_conv_state s;
    ORTC_TRY(ortc_conv_read_state(n, may, prep, &s));
    return ortc_conv_keep(&s, ortc_conv_state_bytes(&s), prep, out);
}

/* ---- Geometry ------------------------------------------------------------------------------------------ */

void ortc_conv_read_windows(const ortc_conv_window *window, int64_t group, const ortc_view *ins,
                            const ortc_view *y, ortc_conv_geometry *g)
{
    const ortc_view *x = &ins[0], *w = &ins[1];
    assert(x->rank - 2 <= ORTC_CONV_SPATIAL);
    g->spatial = x->rank - 2;
    g->images = x->dims[0];
    g->group = group;
    g->joined = 1;
    g->channels = w->dims[1];
    g->filters = w->dims[0] / group;
    uint64_t in = 1, out = 1, kernel = 1; /* may wrap where there are no elements */
    for (int32_t i = 0; i < g->spatial; i++) {
        g->kernel[i] = w->dims[i + 2];
        g->in[i] = x->dims[i + 2];
        g->out[i] = y->dims[i + 2];
        g->stride[i] = window->stride[i];
        g->dilation[i] = window->dilation[i];
        g->pad[i] = ortc_window_pad_of(window->auto_pad, window->pad[i], g->stride[i],
                                       (g->kernel[i] - 1) * g->dilation[i] + 1, g->in[i], g->out[i]);
        in *= (uint64_t)g->in[i], out *= (uint64_t)g->out[i], kernel *= (uint64_t)g->kernel[i];
    }
    g->in_count = (int64_t)in, g->out_count = (int64_t)out, g->kernel_count = (int64_t)kernel;
}

int ortc_conv_is_pointwise(const ortc_conv_geometry *g)
{
    int yes = 1;
    for (int32_t i = 0; i < g->spatial; i++)
        yes &= g->kernel[i] == 1 && g->stride[i] == 1 && g->pad[i] == 0 && g->in[i] == g->out[i];
    return yes;
}

/* ---- Costs, in clocks of one core: two vectors of multiplications each ------------------------------ */

/* As measured on Zen 4, moves on Zen 5 (tests/bench/bench_conv.c): tiles reach so much of that rate; an
 * element that is gathered costs so many clocks, more of them where it is not beside the one before; one that
 * is read or written once where it lies no more. */
#define TILES 0.95
#define MATRIX 200 /* a product of its own: packing it, its tasks */
#define GATHERED 0.3
#define GATHERED_RUN 8.0    /* a row of it, besides */
#define GATHERED_NARROW 1.2 /* where panels are narrow (AVX2): runs of rows are short, and have no masks */
#define GATHERED_APART 0.4
#define MOVED 0.3

static double mac_rate(const ortc_product_line *line) { return 2.0 * line->b.step; }

static double matrices(const ortc_conv_geometry *g)
{
    return (double)g->images * (double)g->group * (double)g->channels * (double)g->kernel_count;
}
static double outputs(const ortc_conv_geometry *g)
{
    return (double)g->images * (double)g->group * (double)g->filters * (double)g->out_count;
}

/* Elements in and out of a product: pointwise reads them as they lie. */
static double moving(const ortc_conv_geometry *g, const ortc_product_line *line)
{
    const double each = ortc_conv_is_pointwise(g) ? MOVED
                        : line->b.step < 16       ? GATHERED_NARROW
                        : g->stride[g->spatial - 1] == 1
                            ? GATHERED + GATHERED_RUN / (double)g->out[g->spatial - 1]
                            : GATHERED_APART;
    return each * matrices(g) * (double)g->out_count + MOVED * outputs(g) +
           MATRIX * (double)g->images * (double)g->group;
}

/* Pixels as columns: the time of a panel that is not full is that of a full one, or a little over half of it
 * where half is enough. */
static double columns_cost(const ortc_conv_geometry *g, const ortc_product_line *line)
{
    const int64_t rest = g->out_count % line->b.width;
    const double tail = rest == 0 ? 0 : rest > line->b.step ? line->b.width : 1.12 * line->b.step;
    const double wide = (double)(g->out_count - rest) + tail;
    return matrices(g) * wide * (double)g->filters / mac_rate(line) / TILES + moving(g, line);
}

/* Pixels as rows: 1.05 for the stores, which are transposed, and 1.06, for it is to be clearly better. */
static double rows_cost(const ortc_conv_geometry *g, const ortc_product_line *line)
{
    const double wide = (double)((g->filters + line->b.step - 1) / line->b.step * line->b.step);
    return 1.06 * 1.05 * matrices(g) * (double)g->out_count * wide / mac_rate(line) / TILES + moving(g, line);
}

double ortc_conv_least_clocks(const ortc_conv_geometry *g, ortc_dtype type)
{
    return matrices(g) * (double)g->filters * (double)g->out_count / mac_rate(ortc_product_line_for(type));
}

/* Directly: a tap is a load for every multiplication; images are laid out by phases; planes have a beginning
 * and an end. */
static double depthwise_cost(const ortc_conv_geometry *g, ortc_dtype type)
{
    const double planes = (double)g->images * (double)g->group;
    return 2.5 * ortc_conv_least_clocks(g, type) + planes * (80 + GATHERED * (double)g->in_count);
}

/* ---- Choose -------------------------------------------------------------------------------------------- */

int ortc_conv_is_empty(const ortc_conv_geometry *g)
{
    return g->images == 0 || g->filters == 0 || g->out_count == 0;
}

static ortc_status choose_depthwise(const void *state, const ortc_question *q, ortc_offer *o, ortc_why *why)
{
    ortc_conv_geometry g;
    ortc_dwconv_plan direct;
    ortc_conv_read(state, q->in, q->out, &g);
    if (ortc_conv_is_empty(&g) || !ortc_dwconv_plan_init(&g, q->in[0].dtype, &direct))
        return ortc_no(why, "not one channel a group, or too large a window");
    o->clocks = depthwise_cost(&g, q->in[0].dtype);
    return ORTC_OK;
}

/* The number of the form in which W is packed (plan_product): FNV-1a of what it is made by; 0: it is not. */
static uint64_t packed_form(const ortc_question *q, const ortc_conv_geometry *g, bool turned)
{
    const bool as_it_lies = turned || ortc_conv_is_pointwise(g);
    const ortc_product_line *line = ortc_product_line_for(as_it_lies ? q->in[0].dtype : ORTC_F32);
    const unsigned char *bytes = (const unsigned char *)(turned ? &line->b : &line->a);
    uint64_t hash = UINT64_C(0xcbf29ce484222325) + turned;
    if (!(q->in[1].flags & ORTC_VIEW_CONST) || g->channels * g->kernel_count == 0) return 0;
    for (size_t i = 0; i < sizeof(ortc_product_form); i++) hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static ortc_status choose_pointwise(const void *state, const ortc_question *q, ortc_offer *o, ortc_why *why)
{
    ortc_conv_geometry g;
    ortc_conv_read(state, q->in, q->out, &g);
    if (ortc_conv_is_empty(&g) || !ortc_conv_is_pointwise(&g))
        return ortc_no(why, "the window is not a point");
    o->clocks = columns_cost(&g, ortc_product_line_for(q->in[0].dtype));
    o->form = packed_form(q, &g, false);
    return ORTC_OK;
}

static ortc_status choose_turned(const void *state, const ortc_question *q, ortc_offer *o, ortc_why *why)
{
    const ortc_product_line *line = ortc_product_line_for(q->in[0].dtype);
    ortc_conv_geometry g;
    ortc_conv_read(state, q->in, q->out, &g);
    if (ortc_conv_is_empty(&g) || !(q->in[1].flags & ORTC_VIEW_CONST) || g.channels * g.kernel_count == 0)
        return ortc_no(why, "W is not constant, or empty");
    if (g.filters < line->b.width || g.out_count > 8 * (int64_t)line->b.width)
        return ortc_no(why, "few filters, or many pixels");
    o->clocks = rows_cost(&g, line);
    o->form = packed_form(q, &g, true);
    return ORTC_OK;
}

static ortc_status choose_columns(const void *state, const ortc_question *q, ortc_offer *o, ortc_why *why)
{
    ortc_conv_geometry g;
    (void)why;
    ortc_conv_read(state, q->in, q->out, &g);
    o->clocks = ortc_conv_is_empty(&g) ? 0 : columns_cost(&g, ortc_product_line_for(q->in[0].dtype));
    o->form = packed_form(q, &g, false);
    return ORTC_OK;
}

/* ---- Plan ---------------------------------------------------------------------------------------------- */

static ortc_status plan_product(ortc_plan *p, conv_plan *c)
{
    const ortc_conv_geometry *g = &c->geometry;
    const int64_t k = g->channels * g->kernel_count;
    const int constant = (p->in[1].flags & ORTC_VIEW_CONST) && k > 0, columns = c->way == WAY_COLUMNS;
    const ortc_product_line *line = ortc_product_line_for(c->type);
    uint32_t flags = 0;
    c->columns.floats = ortc_columns_uk_select();
    if (columns && !c->turned) line = ortc_product_line_for(ORTC_F32); /* of which columns are */
    if (constant) {
        const ortc_product_constant w = {g->group, g->filters, k, 1, c->type};
        const ortc_product_form *form = c->turned ? &line->b : &line->a;
        ORTC_TRY(ortc_product_packed(p, 1, form, &w, &c->packed));
        c->packed_step = (int64_t)ortc_product_packed_bytes(form, g->filters, k);
        flags = c->turned ? ORTC_PRODUCT_PACKED_B | ORTC_PRODUCT_TRANS_C : ORTC_PRODUCT_PACKED_A;
    }
    if (columns)
        flags |= c->turned ? ORTC_PRODUCT_CUSTOM_A : ORTC_PRODUCT_CUSTOM_B;
    else if (c->turned)
        flags |= ORTC_PRODUCT_TRANS_A; /* an image is [channels][pixels] */
    const ortc_dtype image = columns ? ORTC_F32 : c->type;
    const ortc_product_types types = {c->turned ? image : c->type, c->turned ? c->type : image, c->result};
    if (ortc_product_plan_init(&c->product, line, &types, c->turned ? g->out_count : g->filters,
                               c->turned ? g->filters : g->out_count, k, g->images * g->group, flags,
                               p->threads))
        return ortc_plan_fail(p, ORTC_LIMIT, "the convolution's operands do not fit in memory");
    c->wide_offset = c->product.workspace;
    if (columns && c->type != ORTC_F32) c->wide_count = g->images * g->group * g->channels * g->in_count;
    c->bias_offset = c->wide_offset + (size_t)c->wide_count * sizeof(float);
    ortc_plan_workspace(p,
                        c->bias_offset +
                            (c->type == ORTC_F32 ? 0 : (size_t)(g->group * g->filters) * sizeof(float)),
                        c->product.scratch);
    return ORTC_OK;
}

void ortc_conv_plan_cost(ortc_plan *p, const ortc_conv_geometry *g, ortc_dtype type)
{
    const double outputs = (double)g->images * (double)g->group * (double)g->filters * (double)g->out_count;
    ortc_plan_cost(
        p, 2.0 * outputs * (double)g->channels * (double)g->kernel_count,
        (double)ortc_product_size(type) *
            (outputs + (double)g->images * (double)g->group * (double)g->channels * (double)g->in_count +
             (double)g->group * (double)g->filters * (double)g->channels * (double)g->kernel_count));
}

static ortc_status plan_way(const ortc_conv_state *s, ortc_plan *p, int32_t way, int32_t turned, void **out)
{
    conv_plan *c = calloc(1, sizeof *c);
    ortc_status status = ORTC_OK;
    if (!c) return ortc_plan_fail(p, ORTC_OUT_OF_MEMORY, "no memory for a plan");
    ortc_conv_read(s, p->in, p->out, &c->geometry);
    c->type = p->in[0].dtype, c->result = p->out[0].dtype;
    const ortc_conv_geometry *g = &c->geometry;
    c->way = ortc_conv_is_empty(g) ? WAY_NOTHING : way;
    c->turned = turned;
    if (c->way == WAY_DEPTHWISE) {
        ortc_dwconv_plan_init(g, c->type, &c->depthwise);
        ortc_plan_workspace(p, 0, c->depthwise.scratch);
    } else if (c->way != WAY_NOTHING) {
        if (ortc_conv_is_pointwise(g)) c->way = WAY_POINTWISE;
        status = plan_product(p, c);
    }
    if (status) {
        free(c);
        return status;
    }
    ortc_conv_plan_cost(p, g, c->type);
    *out = c;
    return ORTC_OK;
}

static ortc_status plan_depthwise(const void *state, ortc_plan *p, void **out)
{
    return plan_way(state, p, WAY_DEPTHWISE, 0, out);
}
static ortc_status plan_pointwise(const void *state, ortc_plan *p, void **out)
{
    return plan_way(state, p, WAY_POINTWISE, 0, out);
}
static ortc_status plan_turned(const void *state, ortc_plan *p, void **out)
{
    return plan_way(state, p, WAY_COLUMNS, 1, out);
}
static ortc_status plan_columns(const void *state, ortc_plan *p, void **out)
{
    return plan_way(state, p, WAY_COLUMNS, 0, out);
}

static ortc_status prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    return ortc_conv_prepare(n, ORTC_TAIL_ALL | ORTC_TAIL_WIDER, prep, out);
}

/* ---- Run ----------------------------------------------------------------------------------------------- */

typedef struct run_arg {
    const conv_plan *c;
    const float *x; /* the image that columns are made of */
} run_arg;

/* Matrix `index` of the batch: group index % group of image index / group. */
static void locate(const void *arg, int64_t index, ortc_product_item *it)
{
    const run_arg *r = arg;
    const ortc_conv_geometry *g = &r->c->geometry;
    const int64_t group = index % g->group, y = index * g->filters * g->out_count;
    const int64_t w = r->c->packed ? group * r->c->packed_step
                                   : group * g->filters * g->channels * g->kernel_count *
                                         ortc_product_size(r->c->type);
    const int64_t x = index * g->channels * g->in_count * ortc_product_size(r->c->type);
    it->a = (const char *)it->a + (r->c->turned ? x : w);
    it->b = (const char *)it->b + (r->c->turned ? w : x);
    it->c = ortc_product_at(it->c, y, r->c->result);
    if (it->bias_row) it->bias_row += group * g->filters;
    if (it->bias_col) it->bias_col += group * g->filters;
    if (it->residual) it->residual = ortc_product_at(it->residual, y, r->c->type);
}

static void columns(const void *arg, int64_t index, int64_t k0, int64_t kc, int64_t n0, int64_t nc, void *dst,
                    size_t dw)
{
    const run_arg *r = arg;
    const ortc_conv_geometry *g = &r->c->geometry;
    ortc_im2col(g, &r->c->columns, r->x + index * g->channels * g->in_count, k0, kc, n0, nc, dst, dw);
}

/* ---- Widening an image --------------------------------------------------------------------------------- */

#define WIDEN_GRAIN 65536 /* elements */

typedef struct widen_arg {
    const ortc_product_line *line;
    ortc_dtype type;
    const void *src;
    float *dst;
} widen_arg;

static void widen(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const widen_arg *w = arg;
    (void)scratch;
    ortc_product_floats(w->line, w->type, ortc_product_at(w->src, begin, w->type), end - begin,
                        w->dst + begin);
}

/* The image as columns read it: *out. */
static ortc_status wide_image(const conv_plan *c, const void *x, ortc_call *call, const float **out)
{
    float *wide = (float *)(void *)((char *)call->workspace + c->wide_offset);
    widen_arg w = {c->product.line, c->type, x, wide};
    *out = c->wide_count ? wide : x;
    return c->wide_count ? ortc_parallel(call, c->wide_count, WIDEN_GRAIN, widen, &w) : ORTC_OK;
}

static ortc_status run(const void *state, const void *pstate, ortc_call *call)
{
    const ortc_conv_state *s = state;
    const conv_plan *c = pstate;
    const ortc_conv_geometry *g = &c->geometry;
    const void *x = call->in[0].data, *w = call->in[1].data,
               *bias_in = ortc_call_data(call, ortc_conv_bias_port(&s->tail));
    const void *residual = ortc_call_data(call, s->tail.residual);
    if (c->way == WAY_NOTHING) return ORTC_OK;
    if (c->way == WAY_DEPTHWISE)
        return ortc_dwconv_run(&c->depthwise, &s->tail, x, w, bias_in, residual, call);
    ortc_tail_run tail = {&s->tail, call->in, g->out_count, g->group * g->filters};
    const ortc_product_threads threads = {ortc_call_parallel, call};
    run_arg r = {c, NULL};
    ORTC_TRY(wide_image(c, x, call, &r.x));
    float *space = (float *)(void *)((char *)call->workspace + c->bias_offset);
    const float *bias = ortc_product_floats(c->product.line, c->type, bias_in, g->group * g->filters, space);
    const void *weights = c->packed ? c->packed->data : w;
    const ortc_product_args args = {.item = {.a = c->turned ? x : weights,
                                             .b = c->turned ? weights : x,
                                             .c = call->out[0].data,
                                             .bias_row = c->turned ? NULL : bias,
                                             .bias_col = c->turned ? bias : NULL,
                                             .residual = residual},
                                    .lda = c->turned ? g->in_count : g->channels * g->kernel_count,
                                    .ldb = g->in_count,
                                    .ldc = g->out_count,
                                    .residual_stride = g->out_count,
                                    .alpha = s->tail.alpha,
                                    .beta = 1,
                                    .act = s->tail.act,
                                    .lo = s->tail.lo,
                                    .hi = s->tail.hi,
                                    .tile = s->tail.has_rest ? ortc_tail_tile : NULL,
                                    .tile_arg = &tail,
                                    .locate = locate,
                                    .pack = columns,
                                    .arg = &r,
                                    .workspace = call->workspace};
    return ortc_product_run(&c->product, &args, &threads);
}

#define CONV(way, may) \
    static const ortc_kernel way##_kernel = {.size = ORTC_SIZED(ortc_kernel), \
                                             .flags = ORTC_KERNEL_EPILOGUE, \
                                             .name = "conv." #way, \
                                             .supports = may, \
                                             .prepare = prepare, \
                                             .plan = plan_##way, \
                                             .run = run, \
                                             .choose = choose_##way};
CONV(depthwise, ortc_conv_supports)
CONV(pointwise, ortc_conv_supports_wider)
CONV(turned, ortc_conv_supports_wider)
CONV(columns, ortc_conv_supports_wider)

/* The first of equals is taken: blocks before plain values. */
#define BYTES (ORTC_TYPE(ORTC_I8) | ORTC_TYPE(ORTC_U8))
ORTC_KERNELS(
    cpu, conv, ORTC_KERNEL("Conv", 1, ORTC_NEWEST, (ORTC_TYPE(ORTC_F32)), &ortc_conv_rounded),
    ORTC_KERNEL("Conv", 1, ORTC_NEWEST, (ORTC_TYPE(ORTC_F32) | ORTC_TYPE(ORTC_F16)), &ortc_conv_pieces),
    ORTC_KERNEL("Conv", 1, ORTC_NEWEST, (ORTC_TYPE(ORTC_BF16)), &ortc_conv_bf16),
    ORTC_KERNEL("Conv", 1, ORTC_NEWEST, (ORTC_TYPE(ORTC_F32)), &ortc_conv_rounded_pairs),
    ORTC_KERNEL("Conv", 1, ORTC_NEWEST, (ORTC_TYPE(ORTC_BF16)), &ortc_conv_pairs),
    ORTC_KERNEL("Conv", 1, ORTC_NEWEST, (ORTC_TYPE(ORTC_BF16)), &ortc_conv_rounded_winograd),
    ORTC_KERNEL("Conv", 1, ORTC_NEWEST, (ORTC_TYPES_BY_F32), &ortc_conv_stem),
    ORTC_KERNEL("Conv", 1, ORTC_NEWEST, (ORTC_TYPES_BY_F32), &ortc_conv_blocked_depthwise),
    ORTC_KERNEL("Conv", 1, ORTC_NEWEST, (ORTC_TYPES_BY_F32), &ortc_conv_depthwise_rows),
    ORTC_KERNEL("Conv", 1, ORTC_NEWEST, (ORTC_TYPES_BY_F32), &ortc_conv_blocked_1x1),
    ORTC_KERNEL("Conv", 1, ORTC_NEWEST, (ORTC_TYPES_BY_F32), &ortc_conv_blocked),
    ORTC_KERNEL("Conv", 1, ORTC_NEWEST, (ORTC_TYPES_BY_F32), &ortc_conv_winograd_2x2),
    ORTC_KERNEL("Conv", 1, ORTC_NEWEST, (ORTC_TYPES_BY_F32), &ortc_conv_winograd_4x4),
    ORTC_KERNEL("Conv", 1, ORTC_NEWEST, (ORTC_TYPES_BY_F32), &ortc_conv_few),
    ORTC_KERNEL("Conv", 1, ORTC_NEWEST, (ORTC_TYPES_BY_F32), &depthwise_kernel),
    ORTC_KERNEL("Conv", 1, ORTC_NEWEST, (ORTC_TYPES_BY_F32), &pointwise_kernel),
    ORTC_KERNEL("Conv", 1, ORTC_NEWEST, (ORTC_TYPES_BY_F32), &turned_kernel),
    ORTC_KERNEL("Conv", 1, ORTC_NEWEST, (ORTC_TYPES_BY_F32), &columns_kernel),
    ORTC_KERNEL_IN("ortc", "Group", 1, 1, (ORTC_TYPES_ANY), &ortc_conv_squeezed),
    ORTC_KERNEL_IN("ortc", "Group", 1, 1, (ORTC_TYPES_ANY), &ortc_conv_excited_pieces),
    ORTC_KERNEL_IN("ortc", "Group", 1, 1, (ORTC_TYPES_ANY), &ortc_conv_excited_1x1),
    /* its result is of any type where an epilogue is behind it */
    ORTC_KERNEL("ConvInteger", 10, ORTC_NEWEST, (BYTES, BYTES, ORTC_TYPES_ANY), &ortc_conv_integer_tiled),
    ORTC_KERNEL("ConvInteger", 10, ORTC_NEWEST, (BYTES, BYTES, ORTC_TYPES_ANY), &ortc_conv_integer_depthwise),
    ORTC_KERNEL("ConvInteger", 10, ORTC_NEWEST, (BYTES, BYTES, ORTC_TYPES_ANY), &ortc_conv_integer_stem),
    ORTC_KERNEL("ConvInteger", 10, ORTC_NEWEST, (BYTES, BYTES, ORTC_TYPES_ANY), &ortc_conv_integer_blocked),
    ORTC_KERNEL("ConvInteger", 10, ORTC_NEWEST, (BYTES, BYTES, ORTC_TYPES_ANY), &ortc_conv_integer_few),
    ORTC_KERNEL("ConvInteger", 10, ORTC_NEWEST, (BYTES, BYTES, ORTC_TYPES_ANY), &ortc_conv_integer));
