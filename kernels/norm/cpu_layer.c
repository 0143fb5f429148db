/* kernels/norm/cpu_layer.c: normalisations of a sample on the cpu provider, in f32. Rows lie dense in X:
 * [rows, length]; a task is some rows. LayerNormalization's and RMSNormalization's scale and bias become
 * dense f32 rows once a run, or once a row where they differ between rows; those of InstanceNormalization and
 * GroupNormalization are one number a channel. What follows (kernels/gemm/epilogue.h) is done to some rows of
 * f32 in scratch, in which X of 8 bits (source.c) becomes numbers.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/common/counts.h"
#include "kernels/common/shape.h"
#include "kernels/common/vector/convert.h"
#include "kernels/gemm/epilogue.h"
#include "kernels/norm/cpu.h"
#include "kernels/norm/rows.h"

ORTC_VEC_TABLE(ortc_layer_rows)

typedef struct layer_state {
    double epsilon;
    int64_t axis,
        /* axis: of LayerNormalization and RMSNormalization; groups: 0 with it, -1 as many as channels */
        groups;
    bool centred;
    int32_t port[3]; /* of the node's inputs: X, scale and bias */
    ortc_dequantised x;
    ortc_tail_spec tail;
} layer_state;

enum { TOGETHER = 4 }; /* rows, of which one waits for its sums beside the others */
enum { ENDED = 4096 }; /* elements of short rows that are normalised before what follows */

typedef struct layer_plan {
    const ortc_layer_rows *body;
    const ortc_convert *convert;
    int64_t rows, length;
    int64_t channels,
        inner; /* by channels: in a row, and elements of one; channels 0: scale and bias are rows */
    bool biased, varying, by_unit; /* varying: between rows; by_unit: bf16 is rounded so */
    ortc_walk walk;                /* over X: the elements of scale and of bias */
    size_t numbers;                /* bytes in scratch: where X of 8 bits becomes numbers */
} layer_plan;

typedef struct layer_job {
    const layer_state *state;
    const layer_plan *p;
    const ortc_call *call;
    int x, y;               /* ORTC_FLOAT_* */
    const float *vector[2]; /* scale and bias as rows; NULL: none, or varying */
} layer_job;

/* X, scale or bias (k 0, 1, 2). */
static const ortc_view *input(const layer_job *j, int k) { return &j->call->in[j->state->port[k]]; }

/* Where X of 8 bits becomes numbers. */
static float *space_of(const layer_job *j, void *scratch)
{
    return j->state->x.type ? (float *)scratch + j->p->numbers / sizeof(float) : NULL;
}

/* Elements of X from `first` on as f32, in `to` or where they lie; X is of one of these types, or 16 bits. */
static const float *numbers(const layer_job *j, int64_t first, int64_t count, float *to)
{
    const ortc_dequantised *x = &j->state->x;
    const void *from = ortc_product_at(input(j, 0)->data, first, input(j, 0)->dtype);
    if (x->type)
        j->p->body->dequantise((size_t)count, from, x->type == ORTC_I8, x->zero, x->scale, to);
    else if (j->x != ORTC_FLOAT_F32)
        j->p->convert->widen[j->x]((size_t)count, from, to);
    else
        return from;
    return to;
}

/* Elements of scale or bias (k 0, 1) that belong to a row, as f32. */
static void expand(const layer_job *j, int k, int64_t row, float *to)
{
    const ortc_view *v = input(j, 1 + k);
    ortc_walk w = j->p->walk;
    ortc_walk_seek(&w, row * j->p->length);
    for (int64_t i = 0; i < j->p->length; i++, ortc_walk_next(&w))
        to[i] = (float)ortc_load_f64(v->data, v->dtype, w.at[k]);
}

/* y of row x, both of type t, which is f32 where scale and bias are one number a channel. */
static void apply(const layer_job *j, int64_t row, int t, const void *x, double mean, double factor, void *y,
                  float *scratch)
{
    const layer_plan *p = j->p;
    const size_t length = (size_t)p->length;
    if (p->channels) {
        const ortc_view *by = input(j, 1), *bias = input(j, 2);
        const int64_t first = row * p->channels % input(j, 0)->dims[1];
        for (int64_t c = 0; c < p->channels; c++)
            p->body->apply_one((size_t)p->inner, (const float *)x + c * p->inner, (float)mean, (float)factor,
                               (float)ortc_load_f64(by->data, by->dtype, first + c),
                               (float)ortc_load_f64(bias->data, bias->dtype, first + c),
                               (float *)y + c * p->inner);
        return;
    }
    const float *scale = p->varying ? scratch + length : j->vector[0];
    const float *bias = p->varying ? scratch + 2 * length : j->vector[1];
    if (!p->biased) bias = NULL;
    for (int k = 0; p->varying && k < 1 + p->biased; k++)
        expand(j, k, row, scratch + (size_t)(1 + k) * length);
    (t == ORTC_FLOAT_BF16 && p->by_unit ? p->body->apply_amx : p->body->apply[t])(length, x, (float)mean,
                                                                                  (float)factor, scale, bias,
                                                                                  y);
}

/* What follows, over n rows of f32, dense: to y. */
static void finish(const layer_job *j, int64_t row, int64_t n, float *rows)
{
    const layer_plan *p = j->p;
    const ortc_tail_spec *t = &j->state->tail;
    const ortc_view *out = &j->call->out[0];
    const int by_channel = p->channels > 0;
    const int64_t count = by_channel ? p->channels : 1, cols = by_channel ? p->inner : p->length;
    for (int64_t c = 0; c < count; c++, rows += cols) {
        const int64_t element = row * p->length + c * cols;
        const ortc_tail_place place = {.channel = by_channel ? row * p->channels % input(j, 0)->dims[1] + c
                                                             : 0,
                                       .channel_col = !by_channel,
                                       .element = element,
                                       .row = (size_t)cols,
                                       .col = 1};
        void *y = ortc_product_at(out->data, element, out->dtype);
        if (out->dtype == ORTC_F32)
            ortc_tail_over(t, j->call->in, &place, rows, (size_t)cols, y, (size_t)cols, (size_t)n,
                           (size_t)cols);
        else
            ortc_tail_store(t, j->call->in, &place, rows, (size_t)cols, y, (size_t)cols, (size_t)n,
                            (size_t)cols);
    }
}

/* Rows begin .. end that are short, with what follows; false: they are not. */
static bool short_chunk(const layer_job *j, int64_t begin, int64_t end, float *scratch)
{
    const layer_plan *p = j->p;
    const ortc_view *out = j->call->out;
    const size_t length = (size_t)p->length;
    const bool follows = j->state->tail.has_rest, narrows = !follows && j->y != ORTC_FLOAT_F32,
               widens = j->x != ORTC_FLOAT_F32;
    const float *by = j->vector[0], *bias = p->biased ? j->vector[1] : NULL;
    if (!p->body->short_rows(0, length, NULL, j->state->centred, j->state->epsilon, by, bias, NULL))
        return false;
    for (int64_t n; begin < end; begin += n) {
        n = follows || narrows || widens || j->state->x.type ? min64(end - begin, ENDED / p->length)
                                                             : end - begin;
        if (n == 0) return false;
        const int64_t first = begin * p->length;
        const float *x = numbers(j, first, n * p->length, widens ? scratch : space_of(j, scratch));
        float *y = follows || narrows ? scratch : (float *)out[0].data + first;
        p->body->short_rows((size_t)n, length, x, j->state->centred, j->state->epsilon, by, bias, y);
        if (follows) finish(j, begin, n, scratch);
        if (narrows) p->convert->narrow[j->y]((size_t)n * length, scratch, (char *)out[0].data + 2 * first);
    }
    return true;
}

static void layer_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const layer_job *j = arg;
    const layer_plan *p = j->p;
    const ortc_view *out = j->call->out;
    const size_t x_row = (size_t)p->length * (j->x == ORTC_FLOAT_F32 ? 4 : 2),
                 y_row = (size_t)p->length * (ortc_dtype_bits(out[0].dtype) / 8);
    const bool follows = j->state->tail.has_rest;
    /* else by f32, in scratch where x or y is none */
    const bool same = !p->channels && (follows ? j->x == ORTC_FLOAT_F32 && !p->varying : j->x == j->y);
    const int t = same ? j->x : ORTC_FLOAT_F32;
    double mean[TOGETHER], factor[TOGETHER];
    const bool alone = out[0].dtype && !(j->call->n_out > 1 && out[1].dtype) &&
                       !(j->call->n_out > 2 && out[2].dtype);
    const bool by_unit = j->y == ORTC_FLOAT_BF16 && p->by_unit;
    if (!p->channels && alone && !p->varying && !by_unit && short_chunk(j, begin, end, scratch)) return;
    for (int64_t row = begin, n; row < end; row += n) {
        const void *x = ortc_product_at(input(j, 0)->data, row * p->length, input(j, 0)->dtype);
        char *to = out[0].dtype ? (char *)out[0].data + (size_t)row * y_row : NULL;
        n = same ? min64(end - row, TOGETHER) : 1;
        if (j->state->x.type && same)
            x = numbers(j, row * p->length, n * p->length, space_of(j, scratch));
        else if (j->state->x.type || j->x != t)
            x = numbers(j, row * p->length, p->length, scratch);
        p->body->measure[t]((size_t)n, (size_t)p->length, x, j->state->centred, mean, factor);
        for (int64_t r = 0; r < n; r++) factor[r] = 1 / sqrt(factor[r] + j->state->epsilon);
        for (int64_t r = 0; r < n; r++) {
            if (j->call->n_out > 1 && out[1].dtype)
                ortc_store_f64(out[1].data, out[1].dtype, row + r, mean[r]);
            if (j->call->n_out > 2 && out[2].dtype)
                ortc_store_f64(out[2].data, out[2].dtype, row + r, factor[r]);
            if (!to) continue;
            const size_t at = (size_t)r * x_row; /* 0 where y is of another size */
            void *const y = follows ? (char *)scratch + at : j->y == t ? to + at : scratch;
            apply(j, row + r, t, (const char *)x + at, mean[r], factor[r], y, scratch);
            if (!follows && j->y != t) p->convert->narrow[j->y]((size_t)p->length, scratch, to);
        }
        if (follows && to) finish(j, row, n, scratch);
    }
}

/* Vectors of what follows lie along channels, or along rows of the last dim. 0: not done, *why says what. */
static int read_tail(const ortc_node *n, const ortc_node *norm, ortc_tail_spec *tail, const char **why)
{
    const int32_t rank = ortc_node_out(n, 0).rank;
    const int64_t axis = ortc_node_int(norm, "axis", -1);
    const bool of_channels = ortc_norm_is_of_channels(norm);
    if (ortc_node_epilogue(n) && !of_channels && axis != -1 && axis != rank - 1)
        return *why = "its rows are of several dims", 0;
    return ortc_tail_spec_init(n, of_channels ? 1 : rank - 1, ORTC_TAIL_BYTES, tail, why);
}

static ortc_status supports(const ortc_node *n, bool of_channels, ortc_why *why)
{
    const char *reason;
    ortc_tail_spec tail;
    ortc_norm_source from;
    if (!ortc_norm_source_of(n, &from) || ortc_norm_is_of_channels(from.norm) != of_channels)
        return ortc_no(why, "it is no such normalisation");
    return read_tail(n, from.norm, &tail, &reason) ? ORTC_OK : ortc_no(why, "%s", reason);
}
static ortc_status layer_supports(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    (void)device;
    return supports(n, false, why);
}
static ortc_status instance_supports(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    (void)device;
    return supports(n, true, why);
}

static ortc_status layer_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const char *why;
    ortc_norm_source from;
    layer_state *s = calloc(1, sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    ortc_norm_source_of(n, &from);
    const char *op = ortc_node_op(from.norm);
    memcpy(s->port, from.port, sizeof s->port);
    s->x = from.x;
    s->epsilon = (double)ortc_node_float(from.norm, "epsilon", 1e-5F);
    s->axis = ortc_node_int(from.norm, "axis", -1);
    s->centred = strcmp(op, "RMSNormalization") != 0;
    if (!read_tail(n, from.norm, &s->tail, &why)) {
        free(s);
        return ortc_prep_fail(prep, ORTC_INTERNAL, "%s", why);
    }
    if (!strcmp(op, "InstanceNormalization"))
        s->groups = -1;
    else if (!strcmp(op, "GroupNormalization"))
        s->groups = ortc_node_int(from.norm, "num_groups", 1);
    *out = s;
    return ORTC_OK;
}

/* Whether scale (or bias) is another for another row: it has an extent in a dim before the axis. */
static bool varies(const ortc_view *v, const ortc_view *x, int32_t axis)
{
    for (int32_t d = 0; d < v->rank; d++)
        if (d + x->rank - v->rank < axis && v->dims[d] != 1) return true;
    return false;
}

static ortc_status layer_plan_rows(const layer_state *s, ortc_plan *p, layer_plan *g)
{
    const ortc_view *x = &p->in[s->port[0]];
    int32_t axis = 2;
    if (s->groups == 0 && !ortc_axis_of(s->axis, x->rank, &axis))
        return ortc_plan_fail(p, ORTC_INVALID_ARGUMENT, "the axis is outside of the input's rank");
    g->rows = g->length = 1;
    for (int32_t d = 0; d < x->rank; d++) *(d < axis ? &g->rows : &g->length) *= x->dims[d];
    if (s->groups) {
        g->channels = s->groups > 0 ? x->dims[1] / s->groups : 1;
        g->inner = g->length;
        g->length *= g->channels;
        g->rows = x->dims[0] * (s->groups > 0 ? s->groups : x->dims[1]);
        return ORTC_OK;
    }
    ortc_walk_init(&g->walk, x->rank, x->dims);
    for (uint32_t i = 1; i < 2u + g->biased; i++) {
        const ortc_view *v = &p->in[s->port[i]];
        ortc_walk_view(&g->walk, v);
        g->varying |= varies(v, x, axis);
    }
    ortc_walk_merge(&g->walk);
    return ORTC_OK;
}

static ortc_status layer_plan_make(const void *state, ortc_plan *p, void **out)
{
    const layer_state *s = state;
    const ortc_view *x = &p->in[s->port[0]];
    const double count = (double)ortc_view_count(x);
    layer_plan *g = calloc(1, sizeof *g);
    if (!g) return ortc_plan_fail(p, ORTC_OUT_OF_MEMORY, "no memory for a plan");
    g->body = ortc_layer_rows_select();
    g->convert = ortc_convert_get();
    g->by_unit = g->body->apply_amx && ortc_cpu_features() & ORTC_CPU_AMX;
    const bool follows = s->tail.has_rest;
    const int32_t bias = s->port[2];
    /* else what follows may read it */
    g->biased = s->centred && bias >= 0 && (uint32_t)bias < p->n_in && p->in[bias].dtype;
    const ortc_status status = layer_plan_rows(state, p, g);
    if (status) {
        free(g);
        return status;
    }
    *out = g;
    if (count > 0) {
        const size_t row = (size_t)g->length * sizeof(float);
        const bool scratch = x->dtype != ORTC_F32 || p->out[0].dtype != ORTC_F32 || g->varying || follows;
        const size_t some = TOGETHER * row + ENDED * sizeof(float), rows = follows || scratch ? some : row;
        g->numbers = scratch ? (g->varying ? 3 * row : rows) : 0;
        ortc_plan_workspace(p, g->channels ? 0 : 2 * row, g->numbers + (s->x.type ? some : 0));
    }
    if (!follows && !s->x.type) ortc_plan_in_place(p, 0, 0);
    ortc_plan_cost(p, 8 * count, 2 * count * ortc_dtype_bits(x->dtype) / 8);
    return ORTC_OK;
}

static ortc_status layer_run(const void *state, const void *pstate, ortc_call *c)
{
    const layer_plan *p = pstate;
    const layer_state *s = state;
    layer_job j = {.state = state,
                   .p = p,
                   .call = c,
                   .x = s->x.type ? ORTC_FLOAT_F32 : ortc_float_index(c->in[0].dtype),
                   .y = s->tail.to_bytes ? ORTC_FLOAT_F32 : ortc_float_index(c->out[0].dtype)};
    if (p->rows == 0 || ((s->tail.has_rest || s->x.type) && p->length == 0)) return ORTC_OK;
    for (int k = 0; !p->channels && !p->varying && p->length && k < 1 + p->biased; k++) {
        const ortc_view *v = &c->in[s->port[1 + k]];
        float *to = (float *)c->workspace + k * p->length;
        if (ortc_view_count(v) != p->length)
            expand(&j, k, 0, to);
        else if (v->dtype != ORTC_F32)
            p->convert->widen[ortc_float_index(v->dtype)]((size_t)p->length, v->data, to);
        j.vector[k] = ortc_view_count(v) == p->length && v->dtype == ORTC_F32 ? v->data : to;
    }
    return ortc_parallel(c, p->rows, ortc_rows_grain(p->length), layer_chunk, &j);
}

static const ortc_kernel layer = {.size = ORTC_SIZED(ortc_kernel),
                                  .flags = ORTC_KERNEL_EPILOGUE,
                                  .name = "layer_normalization.cpu",
                                  .supports = layer_supports,
                                  .prepare = layer_prepare,
                                  .plan = layer_plan_make,
                                  .run = layer_run};

/* Beside the one in blocks. */
static ortc_status instance_choose(const void *state, const ortc_question *q, ortc_offer *o, ortc_why *why)
{
    const layer_state *s = state;
    (void)why;
    o->clocks = 0.6 * (double)ortc_view_count(&q->in[s->port[0]]);
    return ORTC_OK;
}
static const ortc_kernel instance = {.size = ORTC_SIZED(ortc_kernel),
                                     .flags = ORTC_KERNEL_EPILOGUE,
                                     .name = "layer_normalization.cpu",
                                     .supports = instance_supports,
                                     .prepare = layer_prepare,
                                     .plan = layer_plan_make,
                                     .run = layer_run,
                                     .choose = instance_choose};

#define F ORTC_TYPES_BY_F32
ORTC_KERNELS(cpu, norm_layer, ORTC_KERNEL("LayerNormalization", 17, ORTC_NEWEST, (F, ORTC_TYPES_ANY), &layer),
             ORTC_KERNEL("RMSNormalization", 23, ORTC_NEWEST, (F, F), &layer),
             ORTC_KERNEL("InstanceNormalization", 22, ORTC_NEWEST, (ORTC_TYPE(ORTC_F32)),
                         &ortc_instance_blocks),
             ORTC_KERNEL("InstanceNormalization", 22, ORTC_NEWEST, (F), &instance),
             ORTC_KERNEL("GroupNormalization", 21, ORTC_NEWEST, (ORTC_TYPE(ORTC_F32)), &ortc_instance_blocks),
             ORTC_KERNEL("GroupNormalization", 21, ORTC_NEWEST, (F), &instance),
             ORTC_KERNEL_IN("ortc", "Group", 1, 1, (ORTC_TYPES_ANY), &layer),
             ORTC_KERNEL_IN("ortc", "Group", 1, 1, (ORTC_TYPES_ANY), &ortc_instance_blocks),
             ORTC_KERNEL_IN("ortc", "Group", 1, 1, (ORTC_TYPES_ANY), &instance));
