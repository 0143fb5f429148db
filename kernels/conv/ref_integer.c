/* kernels/conv/ref_integer.c: ConvInteger and QLinearConv on ref: sums of (x - x's zero)(w - w's zero), exact
 * in double; the padding is x's zero, so it adds nothing. QLinearConv adds the bias, scales, rounds to even
 * and saturates.
 */
#include <math.h>

#include "kernels/conv/ref_conv.h"

extern const ortc_kernel ortc_ref_conv_integer, ortc_ref_qlinear_conv;

typedef struct conv_job {
    const conv_state *state;
    const ortc_view *x, *w, *y, *x_zero, *w_zero, *bias;   /* NULL: none */
    const ortc_view *x_scale, *w_scale, *y_scale, *y_zero; /* NULL: the sum is the result */
    double *xs, *ws;                                       /* of x and w, less their zeros */
    int64_t kernel_count, out_count, in_count; /* positions of the window; of a channel of Y, of X */
    int64_t pad[ORTC_SPATIAL_LIMIT];
} conv_job;

/* A number of all, or of filter m. */
static double number(const ortc_view *v, int64_t m, double otherwise)
{
    return v ? ortc_load_f64(v->data, v->dtype, ortc_view_count(v) > 1 ? m : 0) : otherwise;
}

/* The input position under kernel position q of the window at o; -1: in the padding. */
static int64_t position(const conv_job *j, const int64_t *o, int64_t q)
{
    const ortc_window *w = &j->state->window;
    int64_t at = 0, step = 1;
    for (int32_t i = j->x->rank - 3; i >= 0; i--) {
        const int64_t p = o[i] * w->stride[i] - j->pad[i] + q % j->w->dims[i + 2] * w->dilation[i];
        if (p < 0 || p >= j->x->dims[i + 2]) return -1;
        q /= j->w->dims[i + 2];
        at += p * step;
        step *= j->x->dims[i + 2];
    }
    return at;
}

static void conv_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const conv_job *j = arg;
    const int64_t filters = j->y->dims[1], channels = j->w->dims[1];
    for (int64_t at = begin; at < end; at++) {
        const int64_t m = at / j->out_count % filters, image = at / j->out_count / filters;
        const double *x = j->xs +
                          (image * j->x->dims[1] + m / (filters / j->state->group) * channels) * j->in_count,
                     *w = j->ws + m * channels * j->kernel_count;
        int64_t o[ORTC_SPATIAL_LIMIT], rest = at % j->out_count;
        double sum = j->bias ? ortc_load_f64(j->bias->data, ORTC_I32, m) : 0;
        for (int32_t i = j->x->rank - 3; i >= 0; i--) {
            o[i] = rest % j->y->dims[i + 2];
            rest /= j->y->dims[i + 2];
        }
        for (int64_t q = 0; q < j->kernel_count; q++) {
            const int64_t p = position(j, o, q);
            for (int64_t c = 0; c < channels && p >= 0; c++)
                sum += x[c * j->in_count + p] * w[c * j->kernel_count + q];
        }
        if (!j->y_scale) {
            ortc_store_i64(j->y->data, ORTC_I32, at, (int64_t)sum);
            continue;
        }
        const float factor = (float)(number(j->x_scale, 0, 1) * number(j->w_scale, m, 1)) /
                             (float)number(j->y_scale, 0, 1);
        const bool is_signed = j->y->dtype == ORTC_I8;
        const double v = nearbyint((double)(float)(sum * (double)factor)) + number(j->y_zero, 0, 0),
                     low = is_signed ? -128 : 0, high = low + 255;
        ortc_store_f64(j->y->data, j->y->dtype, at, v >= low ? v <= high ? v : high : low);
    }
}

static ortc_status conv_go(const conv_state *s, ortc_call *c, conv_job *j)
{
    conv_state own = *s; /* its kernel is W's */
    const int64_t count = ortc_view_count(j->y);
    if (count == 0) return ORTC_OK;
    j->state = &own;
    j->kernel_count = j->out_count = j->in_count = 1;
    for (int32_t i = 0; i < j->x->rank - 2; i++) {
        own.window.kernel[i] = j->w->dims[i + 2];
        j->pad[i] = ortc_window_pad(&own.window, i, j->x->dims[i + 2], j->y->dims[i + 2]);
        j->kernel_count *= j->w->dims[i + 2];
        j->out_count *= j->y->dims[i + 2];
        j->in_count *= j->x->dims[i + 2];
    }
    j->xs = c->workspace, j->ws = ortc_ref_doubles(j->x, c->workspace);
    double *end = ortc_ref_doubles(j->w, j->ws);
    const double zero = number(j->x_zero, 0, 0);
    const int64_t filter = j->w->dims[1] * j->kernel_count;
    for (double *v = j->xs; v < j->ws; v++) *v -= zero;
    for (double *v = j->ws; v < end; v++) *v -= number(j->w_zero, (v - j->ws) / filter, 0);
    return ortc_parallel(c, count, ortc_grain(4.0 * (double)j->kernel_count * (double)(j->w->dims[1] + 4)),
                         conv_chunk, j);
}

static const ortc_view *optional(const ortc_call *c, uint32_t i)
{
    return c->n_in > i && c->in[i].dtype ? &c->in[i] : NULL;
}

static ortc_status integer_run(const void *state, const void *pstate, ortc_call *c)
{
    conv_job j = {
        .x = &c->in[0], .w = &c->in[1], .y = &c->out[0], .x_zero = optional(c, 2), .w_zero = optional(c, 3)};
    if (j.x_zero && ortc_view_count(j.x_zero) != 1)
        return ortc_call_fail(c, ORTC_SHAPE_MISMATCH, "x_zero_point has %lld elements, expected 1",
                              (long long)ortc_view_count(j.x_zero));
    return conv_go(state, c, &j);
}

static ortc_status qlinear_run(const void *state, const void *pstate, ortc_call *c)
{
    conv_job j = {.x = &c->in[0],
                  .x_scale = &c->in[1],
                  .x_zero = &c->in[2],
                  .w = &c->in[3],
                  .w_scale = &c->in[4],
                  .w_zero = &c->in[5],
                  .y_scale = &c->in[6],
                  .y_zero = &c->in[7],
                  .bias = optional(c, 8),
                  .y = &c->out[0]};
    for (uint32_t i = 1; i < 8; i++)
        if (i != 3 && (i < 4 || i > 5 ? ortc_view_count(&c->in[i]) != 1 : ortc_view_count(&c->in[i]) < 1))
            return ortc_call_fail(c, ORTC_SHAPE_MISMATCH, "input %u has %lld elements, expected 1", i,
                                  (long long)ortc_view_count(&c->in[i]));
    return conv_go(state, c, &j);
}

static ortc_status integer_plan(const void *state, ortc_plan *p, void **out)
{
    return ortc_ref_conv_room(p, 1);
}
static ortc_status qlinear_plan(const void *state, ortc_plan *p, void **out)
{
    return ortc_ref_conv_room(p, 3);
}

const ortc_kernel ortc_ref_conv_integer = {.size = ORTC_SIZED(ortc_kernel),
                                           .name = "conv_integer.ref",
                                           .prepare = ortc_ref_conv_prepare,
                                           .plan = integer_plan,
                                           .run = integer_run};
const ortc_kernel ortc_ref_qlinear_conv = {.size = ORTC_SIZED(ortc_kernel),
                                           .name = "qlinear_conv.ref",
                                           .prepare = ortc_ref_conv_prepare,
                                           .plan = qlinear_plan,
                                           .run = qlinear_run};
