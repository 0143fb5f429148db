/* kernels/conv/cpu_transpose.c: ConvTranspose on the cpu provider, in f32 (f16 and bf16 summed in f32, too):
 * of each piece of X's positions one product with W gives all that its elements spread, a row for each filter
 * and place of the window; the rows are then added to Y where they belong, a task for each filter, and, where
 * none of their lines meet, for some lines of it. A piece is some whole lines of X, so that what is spread
 * stays in the caches. W is packed once. An epilogue comes last, over all of Y.
 *
 * N images, C and M channels, G groups; K places of the window. Leaves to others: products (gemm/product.h).
 */
#include <stdlib.h>

#include "kernels/common/counts.h"
#include "kernels/common/vector/convert.h"
#include "kernels/common/vector/squares.h"
#include "kernels/conv/cpu.h"
#include "kernels/conv/cpu_transpose.h"
#include "kernels/conv/spread.h"
#include "kernels/gemm/cpu_gemm.h"
#include "kernels/gemm/product.h"

#define PIECE_BYTES (1024.0 * 1024) /* of what is spread at a time */
#define TILE 1024                   /* elements that an epilogue goes over at a time */
#define WIDE 64                     /* places that a window may reach beyond a line as long again */

ORTC_VEC_TABLE(ortc_squares)
ORTC_VEC_TABLE(ortc_spread)

typedef struct transpose_plan {
    ortc_transpose t; /* its kernel is W's */
    const ortc_convert *convert;
    int32_t spatial;
    int64_t images, groups, channels, filters, places; /* of a group: channels, filters; of the window */
    int64_t in[ORTC_SPATIAL_LIMIT], out[ORTC_SPATIAL_LIMIT], pad[ORTC_SPATIAL_LIMIT];
    int64_t in_count, out_count, lines, piece; /* lines: of X's last dim in a channel; of a piece */
    int64_t reach; /* elements of a line at every stride-th place of Y; 0: they are added one by one */
    ortc_product_plan product;
    size_t at_spread, at_packed, packed_bytes, at_sums; /* in the workspace */
    const ortc_packed *packed;
} transpose_plan;

/* Compared bytewise. */
typedef struct pack_param {
    int64_t m, k, groups;
    ortc_product_form form;
    ortc_dtype type;
} pack_param;
_Static_assert(sizeof(pack_param) == 3 * 8 + sizeof(ortc_product_form) + 4, "padding has no fixed bytes");

static size_t pack_bytes(const ortc_view *src, const void *param)
{
    const pack_param *p = param;
    const size_t one = ortc_product_packed_bytes(&p->form, p->m, p->k);
    (void)src;
    return one && one < SIZE_MAX / 2 / (size_t)p->groups ? (one + 63) / 64 * 64 * (size_t)p->groups : 0;
}

static ortc_status pack_fill(void *dst, const ortc_view *src, const void *param, ortc_call *call)
{
    const pack_param *p = param;
    const ortc_product_threads threads = {ortc_call_parallel, call};
    const size_t step = pack_bytes(src, param) / (size_t)p->groups;
    for (int64_t g = 0; g < p->groups; g++)
        ORTC_TRY(ortc_product_fill(ortc_product_moves_select(), &p->form, p->type, p->m, p->k, 0,
                                   ortc_product_at(src->data, g * p->m * p->k, p->type), p->m,
                                   (char *)dst + (size_t)g * step, &threads));
    return ORTC_OK;
}

static const ortc_packing packing = {ORTC_SIZED(ortc_packing), "cpu.conv_transpose", pack_bytes, pack_fill,
                                     ORTC_PACKING_PASSES};

static pack_param param_of(const transpose_plan *g)
{
    return (pack_param){g->filters * g->places, g->channels, g->groups, g->product.line->a,
                        g->product.types.a};
}

/* ---- Supports and prepare ------------------------------------------------------------------------------ */

/* B has the place of a bias. Results do not lie where Y's elements do while an epilogue is at them. */
static int read_tail(const ortc_node *n, ortc_tail_spec *tail, const char **why)
{
    const uint32_t bias = ortc_node_in(n, 2).type ? 0 : ORTC_TAIL_BIAS,
                   wider = ortc_conv_may_widen(n) ? ORTC_TAIL_WIDER : 0;
    if (!ortc_tail_spec_init(n, 1, ORTC_TAIL_ACT | wider | bias, tail, why)) return 0;
    for (uint32_t i = 1; tail->has_rest && i < tail->rest.n_in; i++)
        if (tail->rest.in[i] && tail->lies[i] != ORTC_PW_ONE) {
            *why = "its epilogue reads more than single numbers";
            return 0;
        }
    return 1;
}

ortc_status ortc_conv_transpose_supports(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    const char *reason;
    ortc_tail_spec tail;
    (void)device;
    return read_tail(n, &tail, &reason) ? ORTC_OK : ortc_no(why, "%s", reason);
}

ortc_status ortc_conv_transpose_prepare_tail(const ortc_node *n, ortc_prep *prep, void **out)
{
    void *t;
    const char *why;
    ORTC_TRY(ortc_conv_transpose_prepare(n, prep, &t));
    ortc_conv_transpose_state *s = malloc(sizeof *s);
    if (s) s->t = *(const ortc_transpose *)t;
    free(t);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for a convolution's attributes");
    if (!read_tail(n, &s->tail, &why)) {
        free(s);
        return ortc_prep_fail(prep, ORTC_INTERNAL, "%s", why);
    }
    *out = s;
    return ORTC_OK;
}

/* ---- Plan ---------------------------------------------------------------------------------------------- */

static void shapes(const ortc_plan *p, transpose_plan *g)
{
    const ortc_view *x = &p->in[0], *w = &p->in[1], *y = &p->out[0];
    g->spatial = x->rank - 2;
    g->images = x->dims[0];
    g->groups = g->t.group;
    g->channels = x->dims[1] / g->groups;
    g->filters = w->dims[1];
    g->places = g->in_count = g->out_count = g->lines = 1;
    for (int32_t i = 0; i < g->spatial; i++) {
        g->t.window.kernel[i] = w->dims[i + 2];
        g->in[i] = x->dims[i + 2];
        g->out[i] = y->dims[i + 2];
        g->pad[i] = ortc_transpose_pad(&g->t, i, g->in[i], g->out[i]);
        g->places *= w->dims[i + 2];
        g->in_count *= g->in[i];
        g->out_count *= g->out[i];
        g->lines *= i < g->spatial - 1 ? g->in[i] : 1;
    }
}

/* Not where most of a line would be between what is spread. */
static int64_t reach_of(const transpose_plan *g)
{
    const int32_t last = g->spatial - 1;
    const ortc_window *w = &g->t.window;
    const int64_t span = (w->kernel[last] - 1) * w->dilation[last], stride = w->stride[last];
    return stride <= ORTC_FEW_ROWS && span < stride * (g->in[last] + WIDE) ? g->in[last] + span / stride : 0;
}

static ortc_status plan(const void *state, ortc_plan *p, void **out)
{
    transpose_plan *g = calloc(1, sizeof *g);
    const ortc_dtype t = p->in[0].dtype;
    ortc_status status = ORTC_OK;
    if (!g) return ortc_plan_fail(p, ORTC_OUT_OF_MEMORY, "no memory for a plan");
    *out = g;
    g->t = ((const ortc_conv_transpose_state *)state)->t;
    g->convert = ortc_convert_get();
    if (ortc_view_count(&p->out[0]) == 0) return ORTC_OK;
    shapes(p, g);
    if (g->in_count == 0 || g->channels == 0) return ORTC_OK; /* Y is its bias */
    g->reach = reach_of(g);
    const int64_t width = g->in[g->spatial - 1], rows = g->filters * g->places;
    const double fit = PIECE_BYTES / ((double)rows * (double)width * sizeof(float));
    g->piece = fit < 1 ? 1 : fit < (double)g->lines ? (int64_t)fit : g->lines;
    const ortc_product_types types = {t, t, ORTC_F32};
    if (ortc_product_plan_init(&g->product,
                               ortc_gemm_quicker(t, t, rows, g->piece * width, g->channels, 1, 0), &types,
                               rows, g->piece * width, g->channels, 1,
                               ORTC_PRODUCT_TRANS_A | ORTC_PRODUCT_PACKED_A, p->threads)) {
        *out = NULL;
        free(g);
        return ortc_plan_fail(p, ORTC_LIMIT, "the product's operands do not fit in memory");
    }
    const pack_param param = param_of(g);
    g->at_spread = (g->product.workspace + 63) / 64 * 64;
    g->at_packed = g->at_spread + ((size_t)(rows * g->piece * width) * sizeof(float) + 63) / 64 * 64;
    g->at_sums = g->at_packed;
    if (p->in[1].flags & ORTC_VIEW_CONST)
        status = ortc_plan_pack(p, 1, &packing, &param, sizeof param, &g->packed);
    else
        g->at_sums += pack_bytes(NULL, &param);
    if (status) {
        *out = NULL;
        free(g);
        return status;
    }
    const size_t sums = t == ORTC_F32 ? 0 : (size_t)(g->filters * g->out_count) * sizeof(float);
    const size_t line = (size_t)(2 * g->t.window.stride[g->spatial - 1] * g->reach) * sizeof(float);
    ortc_plan_workspace(p, g->at_sums + sums, line > g->product.scratch ? line : g->product.scratch);
    ortc_plan_cost(p,
                   g->product.flops * (double)(g->images * g->groups) * (double)g->lines / (double)g->piece,
                   (double)ortc_bytes_of(ortc_dtype_bits(t), ortc_view_count(&p->out[0])));
    return ORTC_OK;
}

/* ---- What is spread is added to Y ---------------------------------------------------------------------- */

typedef struct add_job {
    const transpose_plan *p;
    const float *spread;         /* [filter][place][lines of the piece][width] */
    float *y;                    /* of the group's first filter */
    int64_t first, lines, parts; /* parts: tasks that lines of a filter are dealt to */
    const ortc_spread *body;
    const ortc_squares *squares;
} add_job;

/* Whether lines of X reach lines of Y of their own. */
static bool lines_are_apart(const transpose_plan *p)
{
    const ortc_window *w = &p->t.window;
    for (int32_t i = 0; i < p->spatial - 1; i++)
        if ((w->kernel[i] - 1) * w->dilation[i] >= w->stride[i]) return false;
    return true;
}

/* A line of X at one place: y[i * stride] += x[i] for those i that lie within. */
static void add_line(float *y, const float *x, int64_t n, int64_t stride, int64_t at, int64_t width)
{
    const int64_t from = at < 0 ? (-at + stride - 1) / stride : 0;
    int64_t to = at >= width ? 0 : (width - 1 - at) / stride + 1;
    to = to < n ? to : n;
    y += at;
    if (stride == 1)
        for (int64_t i = from; i < to; i++) y[i] += x[i];
    else if (stride == 2)
        for (int64_t i = from; i < to; i++) y[2 * i] += x[i];
    else
        for (int64_t i = from; i < to; i++) y[i * stride] += x[i];
}

/* A line of X at all places of a row of the window, `step` apart: those which meet at each place between two
 * strides are added up beside each other, then put between each other, and added to Y. */
static void add_row(const add_job *j, const float *x, int64_t step, float *y, float *scratch)
{
    const transpose_plan *p = j->p;
    const int32_t last = p->spatial - 1;
    const int64_t n = p->in[last], stride = p->t.window.stride[last], pad = p->pad[last], reach = p->reach;
    float *line = stride == 1 ? scratch : scratch + stride * reach;
    memset(scratch, 0, (size_t)(stride * reach) * sizeof *scratch);
    for (int64_t k = 0; k < p->t.window.kernel[last]; k++, x += step) {
        const int64_t at = k * p->t.window.dilation[last];
        j->body->add((size_t)n, x, scratch + at % stride * reach + at / stride);
    }
    if (stride > 1)
        j->squares->join((char *)line, (const char *)scratch, reach * (int64_t)sizeof *line, reach, stride,
                         sizeof *line);
    const int64_t begin = max64(-pad, 0), end = min64(p->out[last], stride * reach - pad);
    if (end > begin) j->body->add((size_t)(end - begin), line + begin + pad, y + begin);
}

static void add_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const add_job *j = arg;
    const transpose_plan *p = j->p;
    const ortc_window *w = &p->t.window;
    const int32_t last = p->spatial - 1;
    const int64_t width = p->in[last], row = p->piece * width, together = p->reach ? w->kernel[last] : 1;
    for (int64_t n = begin; n < end; n++)
        for (int64_t place = 0; place < p->places; place += together) {
            const int64_t m = n / j->parts, from = dealt(j->lines, j->parts, n % j->parts),
                          to = dealt(j->lines, j->parts, n % j->parts + 1);
            const float *x = j->spread + (m * p->places + place) * row + from * width;
            int64_t offset[ORTC_SPATIAL_LIMIT], rest = place;
            for (int32_t i = last; i >= 0; i--) { /* of the place, from a position times the stride */
                offset[i] = rest % w->kernel[i] * w->dilation[i] - p->pad[i];
                rest /= w->kernel[i];
            }
            for (int64_t line = from; line < to; line++, x += width) {
                int64_t at = 0, step = p->out[last];
                bool inside = true;
                rest = j->first + line;
                for (int32_t i = last - 1; i >= 0; i--) {
                    const int64_t o = rest % p->in[i] * w->stride[i] + offset[i];
                    rest /= p->in[i];
                    inside &= o >= 0 && o < p->out[i];
                    at += o * step;
                    step *= p->out[i];
                }
                float *y = j->y + m * p->out_count + at;
                if (inside && p->reach)
                    add_row(j, x, row, y, scratch);
                else if (inside)
                    add_line(y, x, width, w->stride[last], offset[last], p->out[last]);
            }
        }
}

/* ---- The run ------------------------------------------------------------------------------------------- */

typedef struct fill_job {
    const transpose_plan *p;
    float *sums;
    void *y; /* of the same filters, where sums are not Y */
    const void *bias;
    ortc_dtype type, result; /* of the bias; of Y */
    const ortc_tail_spec *tail;
    const ortc_view *in;
} fill_job;

/* Elements of all filters. */
static void bias_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const fill_job *j = arg;
    const int64_t n = j->p->out_count;
    (void)scratch;
    for (int64_t i = begin, m = begin / n; i < end; m++) {
        float b = 0;
        if (j->bias)
            j->p->convert->widen[ortc_float_index(j->type)](1, ortc_product_at(j->bias, m, j->type), &b);
        for (const int64_t to = min64(end, (m + 1) * n); i < to; i++) j->sums[i] = b;
    }
}

static void activate(const ortc_tail_spec *t, float *sums, size_t n)
{
    const ortc_uk_tail_f32 act = {.alpha = t->alpha, .beta = 1, .act = t->act, .lo = t->lo, .hi = t->hi};
    if (t->act != ORTC_UK_ACT_NONE) ortc_product_tail(&act, sums, n, 1, n);
}

void ortc_conv_transpose_end(const ortc_tail_spec *tail, const ortc_view *in, float *y, int64_t count)
{
    const ortc_tail_place none = {0};
    for (int64_t i = 0, n; i < count; i += n, y += n) {
        n = min64(count - i, TILE);
        activate(tail, y, (size_t)n);
        ortc_tail_over(tail, in, &none, y, (size_t)n, y, (size_t)n, 1, (size_t)n);
    }
}

/* The epilogue, and what is stored. */
static void finish_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const fill_job *j = arg;
    const ortc_tail_place none = {0};
    (void)scratch;
    if (j->result == ORTC_F32) {
        ortc_conv_transpose_end(j->tail, j->in, j->sums + begin, end - begin);
        return;
    }
    for (int64_t i = begin, n; i < end; i += n) {
        float *sums = j->sums + i;
        void *y = ortc_product_at(j->y, i, j->result);
        n = min64(end - i, TILE);
        activate(j->tail, sums, (size_t)n);
        if (j->tail->has_rest)
            ortc_tail_store(j->tail, j->in, &none, sums, (size_t)n, y, (size_t)n, 1, (size_t)n);
        else
            j->p->convert->narrow[ortc_float_index(j->result)]((size_t)n, sums, y);
    }
}

static ortc_status run_group(ortc_call *c, const ortc_tail_spec *tail, const transpose_plan *p, int64_t image,
                             int64_t group, const char *packed)
{
    const ortc_dtype t = c->in[0].dtype, result = c->out[0].dtype;
    const ortc_product_threads threads = {ortc_call_parallel, c};
    const int64_t first = group * p->filters, width = p->in[p->spatial - 1];
    const int64_t grain = ortc_rows_grain(1), apart = lines_are_apart(p);
    char *memory = c->workspace;
    void *y = ortc_product_at(c->out[0].data, (image * p->groups * p->filters + first) * p->out_count,
                              result);
    const void *x = ortc_product_at(c->in[0].data, (image * p->groups + group) * p->channels * p->in_count,
                                    t);
    const void *given = ortc_call_data(c, ortc_conv_bias_port(tail)),
               *bias = given ? ortc_product_at(given, first, t) : NULL;
    fill_job fill = {.p = p,
                     .sums = result == ORTC_F32 ? y : (float *)(void *)(memory + p->at_sums),
                     .y = y,
                     .bias = bias,
                     .type = t,
                     .result = result,
                     .tail = tail,
                     .in = c->in};
    add_job add = {p,
                   (const float *)(void *)(memory + p->at_spread),
                   fill.sums,
                   0,
                   0,
                   1,
                   ortc_spread_select(),
                   ortc_squares_select()};
    ORTC_TRY(ortc_parallel(c, p->filters * p->out_count, grain, bias_chunk, &fill));
    for (; add.first < p->lines; add.first += add.lines) {
        /* the last piece begins earlier, if it must, and its first lines are left out */
        const int64_t start = add.first + p->piece > p->lines ? p->lines - p->piece : add.first;
        const ortc_product_args args = {.item = {.a = packed,
                                                 .b = ortc_product_at(x, start * width, t),
                                                 .c = memory + p->at_spread},
                                        .ldb = p->in_count,
                                        .ldc = p->piece * width,
                                        .alpha = 1,
                                        .beta = 1,
                                        .workspace = memory};
        ORTC_TRY(ortc_product_run(&p->product, &args, &threads));
        add.spread = (const float *)(void *)(memory + p->at_spread) + (add.first - start) * width;
        add.lines = start + p->piece - add.first;
        const int64_t each = ortc_rows_grain(p->places * width); /* lines of a task, where it may be some */
        if (apart) add.parts = ceil_div(add.lines, each);
        ORTC_TRY(ortc_parallel(c, p->filters * add.parts,
                               ortc_rows_grain(p->places * width * add.lines / add.parts), add_chunk, &add));
    }
    if (result == ORTC_F32 && !tail->has_rest && tail->act == ORTC_UK_ACT_NONE) return ORTC_OK;
    return ortc_parallel(c, p->filters * p->out_count, grain, finish_chunk, &fill);
}

/* Nothing is spread: Y is its bias. */
static void fill_with_bias(ortc_call *c, const ortc_tail_spec *tail, int64_t out_count)
{
    const ortc_view *y = &c->out[0];
    const int32_t port = ortc_conv_bias_port(tail);
    const void *bias = ortc_call_data(c, port);
    for (int64_t i = 0, count = ortc_view_count(y); i < count; i++) {
        float v = bias ? (float)ortc_load_f64(bias, c->in[port].dtype, i / out_count % y->dims[1]) : 0;
        ortc_conv_transpose_end(tail, c->in, &v, 1);
        ortc_store_f64(y->data, y->dtype, i, v);
    }
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    const transpose_plan *p = pstate;
    const ortc_tail_spec *tail = &((const ortc_conv_transpose_state *)state)->tail;
    if (ortc_view_count(&c->out[0]) == 0) return ORTC_OK;
    if (!p->product.line) {
        fill_with_bias(c, tail, p->out_count);
        return ORTC_OK;
    }
    const pack_param param = param_of(p);
    const size_t step = pack_bytes(NULL, &param) / (size_t)p->groups;
    const char *packed = p->packed ? p->packed->data : (char *)c->workspace + p->at_packed;
    if (!p->packed) ORTC_TRY(pack_fill((char *)c->workspace + p->at_packed, &c->in[1], &param, c));
    for (int64_t image = 0; image < p->images; image++)
        for (int64_t group = 0; group < p->groups; group++)
            ORTC_TRY(run_group(c, tail, p, image, group, packed + (size_t)group * step));
    return ORTC_OK;
}

/* Multiplications at 0.85 of the fused ones' rate, less where pieces are quicker, and 3 clocks for each
 * element that is spread. */
static ortc_status choose(const void *state, const ortc_question *q, ortc_offer *o, ortc_why *why)
{
    const ortc_transpose *t = &((const ortc_conv_transpose_state *)state)->t;
    const ortc_view *x = &q->in[0], *w = &q->in[1];
    (void)why;
    if (ortc_view_count(x) == 0 || ortc_view_count(w) == 0) return ORTC_OK;
    const double each = (double)ortc_view_count(w) / (double)w->dims[0], /* places of a group's filters */
        macs = (double)ortc_view_count(x) * each, spread = macs / (double)x->dims[1] * (double)t->group;
    const ortc_product_line *fused = ortc_product_line_for(x->dtype);
    const ortc_matmul_shape s = {.m = (int64_t)each,
                                 .k = w->dims[0] / t->group,
                                 .batch = 1,
                                 .n = ortc_view_count(x) / x->dims[0] / x->dims[1]};
    const ortc_product_line *line = ortc_gemm_quicker(x->dtype, x->dtype, s.m, s.n, s.k, 1, 0);
    const double less = ortc_gemm_clocks(line, &s, 0) / ortc_gemm_clocks(fused, &s, 0);
    o->clocks = less * macs / (2.0 * fused->b.step) / 0.85 + 3 * spread;
    o->form = ORTC_TRANSPOSE_FORM | 1;
    return ORTC_OK;
}

static const ortc_kernel conv_transpose = {.size = ORTC_SIZED(ortc_kernel),
                                           .flags = ORTC_KERNEL_EPILOGUE,
                                           .name = "conv_transpose.cpu",
                                           .supports = ortc_conv_transpose_supports,
                                           .prepare = ortc_conv_transpose_prepare_tail,
                                           .plan = plan,
                                           .run = run,
                                           .choose = choose};

ORTC_KERNELS(cpu, conv_transpose,
             ORTC_KERNEL("ConvTranspose", 22, ORTC_NEWEST, (ORTC_TYPE(ORTC_F32)),
                         &ortc_conv_transpose_rounded),
             ORTC_KERNEL("ConvTranspose", 22, ORTC_NEWEST, (ORTC_TYPES_BY_F32), &ortc_conv_transpose_blocked),
             ORTC_KERNEL("ConvTranspose", 22, ORTC_NEWEST, (ORTC_TYPES_BY_F32), &ortc_conv_transpose_lines),
             ORTC_KERNEL("ConvTranspose", 22, ORTC_NEWEST, (ORTC_TYPES_BY_F32), &conv_transpose));
