/* kernels/conv/ref.c: Conv as its definition says: for each output element, the sum over its window in
 * double.
 *
 * Any number of spatial dims, groups, dilations, auto_pad.
 */
#include <stdlib.h>

#include "kernels/conv/ref_conv.h"
#include "kernels/conv/transpose.h"

typedef struct conv_job {
    const ortc_view *x, *w, *b, *y;
    const conv_state *state;
    const double *xs, *ws; /* of x and w */
    int64_t kernel_count;  /* positions of the window */
    int64_t out_count;     /* positions of the output, per channel */
    int64_t in_count;      /* positions of the input, per channel */
    int64_t pad[ORTC_SPATIAL_LIMIT];
} conv_job;

/* The input position under kernel position `k` (an index per dim) of the window at `o`, or -1 in the
 * padding. */
static int64_t input_position(const conv_job *j, const int64_t *o, const int64_t *k)
{
    const ortc_window *w = &j->state->window;
    int64_t at = 0;
    for (int32_t i = 0; i < j->x->rank - 2; i++) {
        const int64_t p = o[i] * w->stride[i] - j->pad[i] + k[i] * w->dilation[i];
        if (p < 0 || p >= j->x->dims[i + 2]) return -1;
        at = at * j->x->dims[i + 2] + p;
    }
    return at;
}

static void conv_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const conv_job *j = arg;
    const ortc_dtype t = j->y->dtype;
    const int32_t spatial = j->x->rank - 2;
    const int64_t filters = j->y->dims[1], per_group = filters / j->state->group, channels = j->w->dims[1];
    for (int64_t at = begin; at < end; at++) {
        int64_t o[ORTC_SPATIAL_LIMIT], k[ORTC_SPATIAL_LIMIT] = {0}, rest = at % j->out_count;
        const int64_t m = at / j->out_count % filters, n = at / j->out_count / filters;
        const double *x = j->xs + (n * j->x->dims[1] + m / per_group * channels) * j->in_count,
                     *w = j->ws + m * channels * j->kernel_count;
        double sum = j->b ? ortc_load_f64(j->b->data, t, m) : 0;
        for (int32_t i = spatial - 1; i >= 0; i--) {
            o[i] = rest % j->y->dims[i + 2];
            rest /= j->y->dims[i + 2];
        }
        for (int64_t q = 0; q < j->kernel_count; q++) {
            const int64_t p = input_position(j, o, k);
            for (int64_t c = 0; c < channels;
                 c++) /* the padding is zeros, which an infinite weight makes NaN */
                sum += (p < 0 ? 0 : x[c * j->in_count + p]) * w[c * j->kernel_count + q];
            for (int32_t i = spatial - 1; i >= 0 && ++k[i] == j->w->dims[i + 2]; i--) k[i] = 0;
        }
        ortc_store_f64(j->y->data, t, at, sum);
    }
}

ortc_status ortc_ref_conv_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const char *attribute, *wrong;
    conv_state *s = calloc(1, sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for a convolution's attributes");
    s->group = ortc_node_int(n, "group", 1);
    wrong = ortc_window_read(n, -1, &s->window, &attribute);
    if (wrong) {
        free(s);
        return ortc_prep_fail(prep, ORTC_INVALID_MODEL, "attribute %s %s", attribute, wrong);
    }
    *out = s;
    return ORTC_OK;
}

static ortc_status conv_run(const void *state, const void *pstate, ortc_call *c)
{
    const conv_state *s = state;
    conv_state own = *s; /* its kernel is W's */
    conv_job j = {.x = &c->in[0],
                  .w = &c->in[1],
                  .b = c->n_in > 2 && c->in[2].dtype ? &c->in[2] : NULL,
                  .y = &c->out[0],
                  .state = &own,
                  .kernel_count = 1,
                  .out_count = 1,
                  .in_count = 1};
    const int64_t count = ortc_view_count(j.y);
    if (count == 0) return ORTC_OK;
    for (int32_t i = 0; i < j.x->rank - 2; i++) {
        own.window.kernel[i] = j.w->dims[i + 2];
        j.pad[i] = ortc_window_pad(&own.window, i, j.x->dims[i + 2], j.y->dims[i + 2]);
        j.kernel_count *= j.w->dims[i + 2];
        j.out_count *= j.y->dims[i + 2];
        j.in_count *= j.x->dims[i + 2];
    }
    double *ws = ortc_ref_doubles(j.x, c->workspace);
    ortc_ref_doubles(j.w, ws);
    j.xs = c->workspace, j.ws = ws;
    return ortc_parallel(c, count, ortc_grain(2.0 * (double)j.kernel_count * (double)(j.w->dims[1] + 4)),
                         conv_chunk, &j);
}

static ortc_status conv_plan(const void *state, ortc_plan *p, void **out) { return ortc_ref_conv_room(p, 1); }

static const ortc_kernel conv_ref = {.size = ORTC_SIZED(ortc_kernel),
                                     .name = "conv.ref",
                                     .prepare = ortc_ref_conv_prepare,
                                     .plan = conv_plan,
                                     .run = conv_run};

extern const ortc_kernel ortc_ref_conv_integer, ortc_ref_qlinear_conv; /* ref_integer.c */

#define EIGHT (ORTC_TYPE(ORTC_I8) | ORTC_TYPE(ORTC_U8))
ORTC_KERNELS(ref, conv, ORTC_KERNEL("Conv", 22, ORTC_NEWEST, (ORTC_TYPES_FLOAT), &conv_ref),
             ORTC_KERNEL("ConvTranspose", 22, ORTC_NEWEST, (ORTC_TYPES_FLOAT), &ortc_ref_conv_transpose),
             ORTC_KERNEL("ConvInteger", 10, ORTC_NEWEST, (EIGHT, EIGHT, ORTC_TYPE(ORTC_I32)),
                         &ortc_ref_conv_integer),
             ORTC_KERNEL("QLinearConv", 10, ORTC_NEWEST, (EIGHT, EIGHT, EIGHT, ORTC_TYPE(ORTC_I32)),
                         &ortc_ref_qlinear_conv));
