/* kernels/sample/cpu_deform.c: DeformConv on the cpu provider, one to three spatial dims, f32, f16 and bf16
 * summed in f32: for each group a product of W, [filters][channels * elements of the window], with a B that
 * has a column for each position of the result and is made panel by panel (gemm/product.h): where each
 * element of the window reads, and how much each pixel there weighs, is found once for all channels of an
 * offset group, for a piece of the positions at a time. W is packed once where it is constant.
 */
#include <stdlib.h>

#include "kernels/common/counts.h"
#include "kernels/common/vector/convert.h"
#include "kernels/common/window.h"
#include "kernels/gemm/cpu_gemm.h"
#include "kernels/gemm/product.h"
#include "kernels/gemm/product_packing.h"
#include "kernels/sample/deform.h"
#include "kernels/sample/grid_lines.h"

ORTC_VEC_TABLE(ortc_grid_lines)

enum { DIMS = 3, PART = 128 }; /* PART: positions of an element of the window that are found by a task */
#define PIECE_BYTES (4 << 20)  /* of places and weights at a time */
#define WIDEN_GRAIN 65536      /* elements */

typedef struct deform_plan {
    int32_t spatial, taps;                            /* taps: pixels around a place */
    int64_t groups, offset_groups, channels, filters; /* of a group: channels, filters */
    int64_t in_count, out_count, elements;            /* elements: of the window */
    int64_t piece;                                    /* positions */
    ortc_dtype type;
    ortc_product_plan product;
    const ortc_packed *packed;                             /* W; NULL: not constant */
    int64_t packed_step;                                   /* bytes of a group in it */
    size_t at_place, at_weight, at_mask, at_wide, at_bias; /* in the workspace */
} deform_plan;

typedef struct deform_job {
    const deform_plan *p;
    const ortc_deform_state *s;
    const ortc_grid_lines *lines;
    const ortc_convert *convert;
    const ortc_call *call;
    bool has_mask;
    int64_t image, first; /* position that the piece begins with */
    const float *x;       /* the image */
    int32_t *place;       /* [offset group][element][tap][piece] */
    float *weight;        /* the same */
    float *mask;          /* [offset group][element][piece] */
} deform_job;

/* ---- Where elements read ------------------------------------------------------------------------------- */

/* Of the plane at `at`, as ref has it: taps that are outside, or weigh nothing, do not count. The last dim is
 * the lowest bit of a tap's number. */
static void around(const deform_job *j, const double *at, int32_t *place, float *weight)
{
    const deform_plan *p = j->p;
    const int64_t *in = j->call->in[0].dims + 2;
    int64_t index[1 << DIMS] = {0};
    double w[1 << DIMS] = {1};
    for (int32_t d = 0; d < p->spatial; d++) {
        const bool inside = at[d] > -1 && at[d] < (double)in[d];
        const int64_t low = inside ? (int64_t)(at[d] + 1) - 1 : 0; /* the floor of what is above -1 */
        const double part = at[d] - (double)low;
        for (int t = (1 << d) - 1; t >= 0; t--) {
            index[2 * t + 1] = index[t] * in[d] + low + 1;
            w[2 * t + 1] = inside && low + 1 < in[d] ? w[t] * part : 0;
            index[2 * t] = index[t] * in[d] + low;
            w[2 * t] = inside && low >= 0 ? w[t] * (1 - part) : 0;
        }
    }
    for (int t = 0; t < p->taps; t++) {
        place[t * p->piece] = w[t] == 0 ? 0 : (int32_t)index[t];
        weight[t * p->piece] = (float)w[t];
    }
}

/* Tasks: parts of the piece's positions, of all elements of all offset groups. */
static void place_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const deform_job *j = arg;
    const deform_plan *p = j->p;
    const ortc_view *offset = &j->call->in[2], *y = &j->call->out[0], *w = &j->call->in[1];
    const ortc_window *window = &j->s->window;
    const int64_t parts = ceil_div(p->piece, PART);
    (void)scratch;
    for (int64_t task = begin; task < end; task++) {
        const int64_t row = task / parts, from = task % parts * PART, to = min64(from + PART, p->piece);
        const int64_t of = j->image * p->offset_groups * p->elements + row;
        int32_t *place = j->place + row * p->taps * p->piece;
        float *weight = j->weight + row * p->taps * p->piece;
        int64_t k[DIMS], o[DIMS], rest = row % p->elements;
        for (int32_t d = p->spatial - 1; d >= 0; d--) {
            k[d] = rest % w->dims[d + 2] * window->dilation[d] - window->pad_begin[d];
            rest /= w->dims[d + 2];
        }
        rest = j->first + from;
        for (int32_t d = p->spatial - 1; d >= 0; d--) {
            o[d] = rest % y->dims[d + 2];
            rest /= y->dims[d + 2];
        }
        for (int64_t i = from; i < to; i++) {
            double at[DIMS];
            for (int32_t d = 0; d < p->spatial; d++)
                at[d] = (double)(o[d] * window->stride[d] + k[d]) +
                        ortc_load_f64(offset->data, offset->dtype,
                                      (of * p->spatial + d) * p->out_count + j->first + i);
            around(j, at, place + i, weight + i);
            for (int32_t d = p->spatial - 1; d >= 0 && ++o[d] == y->dims[d + 2]; d--) o[d] = 0;
        }
        if (j->has_mask)
            j->convert->widen[ortc_float_index(p->type)]((size_t)(to - from),
                                                         ortc_product_at(j->call->in[4].data,
                                                                         of * p->out_count + j->first + from,
                                                                         p->type),
                                                         j->mask + row * p->piece + from);
    }
}

/* ---- The product --------------------------------------------------------------------------------------- */

/* Rows of B: channels, and of each the elements of the window. */
static void columns(const void *arg, int64_t index, int64_t k0, int64_t kc, int64_t n0, int64_t nc, void *dst,
                    size_t dw)
{
    const deform_job *j = arg;
    const deform_plan *p = j->p;
    const int64_t per_offset = p->channels * p->groups / p->offset_groups;
    for (int64_t k = 0; k < kc; k++) {
        const int64_t channel = index * p->channels + (k0 + k) / p->elements,
                      row = channel / per_offset * p->elements + (k0 + k) % p->elements,
                      at = row * p->taps * p->piece + n0;
        float *to = (float *)dst + (size_t)k * dw;
        j->lines->sample((size_t)nc, (size_t)p->taps, (size_t)p->piece, j->x + channel * p->in_count,
                         j->place + at, j->weight + at, to);
        if (j->has_mask) {
            const float *mask = j->mask + row * p->piece + n0;
            for (int64_t i = 0; i < nc; i++) to[i] *= mask[i];
        }
        for (size_t i = (size_t)nc; i < dw; i++) to[i] = 0;
    }
}

static void locate(const void *arg, int64_t index, ortc_product_item *it)
{
    const deform_plan *p = ((const deform_job *)arg)->p;
    it->a = (const char *)it->a +
            index * (p->packed ? p->packed_step
                               : p->filters * p->channels * p->elements * ortc_product_size(p->type));
    it->c = ortc_product_at(it->c, index * p->filters * p->out_count, p->type);
    if (it->bias_row) it->bias_row += index * p->filters;
}

typedef struct widen_job {
    const ortc_convert *convert;
    ortc_dtype type;
    const void *from;
    float *to;
} widen_job;

static void widen_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const widen_job *j = arg;
    (void)scratch;
    j->convert->widen[ortc_float_index(j->type)]((size_t)(end - begin),
                                                 ortc_product_at(j->from, begin, j->type), j->to + begin);
}

static ortc_status run_image(deform_job *j, const float *bias, ortc_call *c)
{
    const deform_plan *p = j->p;
    const ortc_product_threads threads = {ortc_call_parallel, c};
    const int64_t count = p->groups * p->channels * p->in_count;
    const void *x = ortc_product_at(c->in[0].data, j->image * count, p->type);
    widen_job widen = {j->convert, p->type, x, (float *)(void *)((char *)c->workspace + p->at_wide)};
    j->x = x;
    if (p->type != ORTC_F32) {
        ORTC_TRY(ortc_parallel(c, count, WIDEN_GRAIN, widen_chunk, &widen));
        j->x = widen.to;
    }
    for (int64_t done = 0; done < p->out_count; done = j->first + p->piece) {
        /* the last piece begins earlier, if it must */
        j->first = min64(done, p->out_count - p->piece);
        ORTC_TRY(ortc_parallel(c, p->offset_groups * p->elements * ceil_div(p->piece, PART),
                               ortc_grain(PART * 10 * p->taps), place_chunk, j));
        const ortc_product_args args = {
            .item = {.a = p->packed ? p->packed->data : c->in[1].data,
                     .c = ortc_product_at(c->out[0].data,
                                          j->image * p->groups * p->filters * p->out_count + j->first,
                                          p->type),
                     .bias_row = bias},
            .lda = p->channels * p->elements,
            .ldc = p->out_count,
            .alpha = 1,
            .beta = 1,
            .locate = locate,
            .pack = columns,
            .arg = j,
            .workspace = c->workspace};
        ORTC_TRY(ortc_product_run(&p->product, &args, &threads));
    }
    return ORTC_OK;
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    const deform_plan *p = pstate;
    char *memory = c->workspace;
    deform_job j = {.p = p,
                    .s = state,
                    .lines = ortc_grid_lines_select(),
                    .convert = ortc_convert_get(),
                    .call = c,
                    .has_mask = c->n_in > 4 && c->in[4].dtype,
                    .place = (int32_t *)(void *)(memory + p->at_place),
                    .weight = (float *)(void *)(memory + p->at_weight),
                    .mask = (float *)(void *)(memory + p->at_mask)};
    const float *bias = NULL;
    if (ortc_view_count(&c->out[0]) == 0) return ORTC_OK;
    if (c->n_in > 3 && c->in[3].dtype)
        bias = ortc_product_floats(p->product.line, p->type, c->in[3].data, p->groups * p->filters,
                                   (float *)(void *)(memory + p->at_bias));
    for (; j.image < c->out[0].dims[0]; j.image++) ORTC_TRY(run_image(&j, bias, c));
    return ORTC_OK;
}

/* ---- Supports and plan --------------------------------------------------------------------------------- */

static ortc_status supports(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    const int32_t rank = ortc_node_in(n, 0).rank;
    (void)device;
    return rank >= 3 && rank <= 2 + DIMS ? ORTC_OK : ortc_no(why, "one to three spatial dims are done here");
}

static void shapes(const ortc_deform_state *s, const ortc_plan *p, deform_plan *g)
{
    const ortc_view *x = &p->in[0], *w = &p->in[1], *y = &p->out[0];
    g->spatial = x->rank - 2;
    g->taps = 1 << g->spatial;
    g->groups = s->group;
    g->offset_groups = s->offset_group;
    g->channels = w->dims[1];
    g->filters = w->dims[0] / s->group;
    g->in_count = g->out_count = g->elements = 1;
    for (int32_t d = 2; d < x->rank; d++) {
        g->in_count *= x->dims[d];
        g->out_count *= y->dims[d];
        g->elements *= w->dims[d];
    }
    const double fit = PIECE_BYTES / ((double)g->offset_groups * (double)g->elements * (double)g->taps * 8);
    g->piece = fit < 4 * PART ? 4 * PART : fit < (double)g->out_count ? (int64_t)fit : g->out_count;
    g->piece = min64(g->piece, g->out_count);
}

static ortc_status plan_product(ortc_plan *p, deform_plan *g)
{
    const int64_t k = g->channels * g->elements;
    const bool constant = (p->in[1].flags & ORTC_VIEW_CONST) && k > 0;
    const ortc_product_line *line = ortc_product_line_for(ORTC_F32); /* of which columns are */
    const ortc_product_types types = {g->type, ORTC_F32, g->type};
    uint32_t flags = ORTC_PRODUCT_CUSTOM_B;
    if (constant) {
        const ortc_product_constant w = {g->groups, g->filters, k, 1, g->type};
        ORTC_TRY(ortc_product_packed(p, 1, &line->a, &w, &g->packed));
        g->packed_step = (int64_t)ortc_product_packed_bytes(&line->a, g->filters, k);
        flags |= ORTC_PRODUCT_PACKED_A;
    }
    if (ortc_product_plan_init(&g->product, line, &types, g->filters, g->piece, k, g->groups, flags,
                               p->threads))
        return ortc_plan_fail(p, ORTC_LIMIT, "the convolution's operands do not fit in memory");
    return ORTC_OK;
}

static size_t rounded(size_t bytes) { return (bytes + 63) / 64 * 64; }

static ortc_status plan(const void *state, ortc_plan *p, void **out)
{
    deform_plan *g = calloc(1, sizeof *g);
    if (!g) return ortc_plan_fail(p, ORTC_OUT_OF_MEMORY, "no memory for a plan");
    *out = g;
    if (ortc_view_count(&p->out[0]) == 0) return ORTC_OK;
    shapes(state, p, g);
    g->type = p->in[0].dtype;
    ortc_status status = g->in_count > INT32_MAX
                             ? ortc_plan_fail(p, ORTC_LIMIT, "a channel has more than %d pixels", INT32_MAX)
                             : plan_product(p, g);
    if (status) {
        *out = NULL;
        free(g);
        return status;
    }
    const size_t rows = (size_t)(g->offset_groups * g->elements * g->piece) * sizeof(float);
    g->at_place = rounded(g->product.workspace);
    g->at_weight = g->at_place + rounded(rows * (size_t)g->taps);
    g->at_mask = g->at_weight + rounded(rows * (size_t)g->taps);
    g->at_wide = g->at_mask + rounded(p->n_in > 4 && p->in[4].dtype ? rows : 0);
    g->at_bias = g->at_wide + rounded(g->type == ORTC_F32
                                          ? 0
                                          : (size_t)(g->groups * g->channels * g->in_count) * sizeof(float));
    ortc_plan_workspace(p,
                        g->at_bias +
                            (g->type == ORTC_F32 ? 0 : (size_t)(g->groups * g->filters) * sizeof(float)),
                        g->product.scratch);
    ortc_plan_cost(p, (double)p->out[0].dims[0] * g->product.flops * (double)g->out_count / (double)g->piece,
                   (double)ortc_product_size(g->type) *
                       (double)(ortc_view_count(&p->in[0]) + ortc_view_count(&p->in[2]) +
                                ortc_view_count(&p->out[0])));
    return ORTC_OK;
}

/* A place that weighs nothing reads a pixel all the same: there must be one. */
static ortc_status choose(const void *state, const ortc_question *q, ortc_offer *o, ortc_why *why)
{
    (void)state, (void)o;
    return ortc_view_count(&q->in[0]) > 0 ? ORTC_OK : ortc_no(why, "X has no elements");
}

const ortc_kernel ortc_cpu_deform_conv = {.size = ORTC_SIZED(ortc_kernel),
                                          .name = "deform_conv.cpu",
                                          .supports = supports,
                                          .prepare = ortc_deform_prepare,
                                          .plan = plan,
                                          .run = run,
                                          .choose = choose};
