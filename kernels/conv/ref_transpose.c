/* kernels/conv/ref_transpose.c: ConvTranspose on ref, from its result: an element is the sum over the
 * window's positions that an element of X lies under, and over the channels of its group, in double.
 */
#include <stdlib.h>

#include "kernels/conv/ref_conv.h"
#include "kernels/conv/transpose.h"

typedef struct transpose_job {
    const ortc_transpose *t;
    const ortc_view *x, *w, *b; /* b: NULL for none */
    ortc_view *y;
    const double *xs, *ws;                     /* of x and w */
    int64_t kernel_count, out_count, in_count; /* positions of the window; of a channel of Y, of X */
    int64_t pad[ORTC_SPATIAL_LIMIT];
} transpose_job;

/* From k on the first position of the window in spatial dim i under which `o` of Y has an element of X, and
 * which that is; else the window's end. */
static int64_t seen(const transpose_job *j, int32_t i, int64_t o, int64_t k, int64_t *x)
{
    const ortc_window *w = &j->t->window;
    for (; k < w->kernel[i]; k++) {
        const int64_t at = o + j->pad[i] - k * w->dilation[i];
        *x = at / w->stride[i];
        if (at >= 0 && at % w->stride[i] == 0 && *x < j->x->dims[i + 2]) break;
    }
    return k;
}

static void transpose_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const transpose_job *j = arg;
    const ortc_dtype t = j->y->dtype;
    const int32_t spatial = j->x->rank - 2;
    const int64_t *kernel = j->t->window.kernel, filters = j->y->dims[1], per_group = j->w->dims[1],
                  channels = j->w->dims[0] / j->t->group;
    for (int64_t at = begin; at < end; at++) {
        const int64_t m = at / j->out_count % filters, image = at / j->out_count / filters,
                      first = m / per_group * channels;
        const double *xs = j->xs + (image * j->x->dims[1] + first) * j->in_count,
                     *ws = j->ws + (first * per_group + m % per_group) * j->kernel_count;
        int64_t o[ORTC_SPATIAL_LIMIT], k[ORTC_SPATIAL_LIMIT], x[ORTC_SPATIAL_LIMIT], rest = at % j->out_count;
        int more = 1; /* positions of the window that have an element of X in all dims */
        double sum = j->b ? ortc_load_f64(j->b->data, t, m) : 0;
        for (int32_t i = spatial - 1; i >= 0; i--) {
            o[i] = rest % j->y->dims[i + 2];
            rest /= j->y->dims[i + 2];
            k[i] = seen(j, i, o[i], 0, &x[i]);
            more &= k[i] < kernel[i];
        }
        while (more) {
            int64_t q = 0, p = 0;
            for (int32_t i = 0; i < spatial; i++) q = q * kernel[i] + k[i], p = p * j->x->dims[i + 2] + x[i];
            for (int64_t c = 0; c < channels; c++)
                sum += xs[c * j->in_count + p] * ws[c * per_group * j->kernel_count + q];
            more = 0;
            for (int32_t i = spatial - 1; i >= 0 && !more; i--) {
                k[i] = seen(j, i, o[i], k[i] + 1, &x[i]);
                more = k[i] < kernel[i];
                if (!more) k[i] = seen(j, i, o[i], 0, &x[i]);
            }
        }
        ortc_store_f64(j->y->data, t, at, sum);
    }
}

ortc_status ortc_conv_transpose_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const char *attribute, *wrong;
    ortc_transpose *t = malloc(sizeof *t);
    if (!t) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for a convolution's attributes");
    const int32_t rank = ortc_node_in(n, 0).rank >= 0 ? ortc_node_in(n, 0).rank : ortc_node_in(n, 1).rank;
    wrong = ortc_transpose_read(n, rank >= 3 ? rank - 2 : -1, t, &attribute);
    if (wrong) {
        free(t);
        return ortc_prep_fail(prep, ORTC_INVALID_MODEL, "attribute %s %s", attribute, wrong);
    }
    *out = t;
    return ORTC_OK;
}

static ortc_status transpose_run(const void *state, const void *pstate, ortc_call *c)
{
    ortc_transpose own = *(const ortc_transpose *)state; /* its kernel is W's */
    transpose_job j = {.t = &own,
                       .x = &c->in[0],
                       .w = &c->in[1],
                       .b = c->n_in > 2 && c->in[2].dtype ? &c->in[2] : NULL,
                       .y = &c->out[0],
                       .kernel_count = 1,
                       .out_count = 1,
                       .in_count = 1};
    const int64_t count = ortc_view_count(j.y);
    if (count == 0) return ORTC_OK;
    for (int32_t i = 0; i < j.x->rank - 2; i++) {
        own.window.kernel[i] = j.w->dims[i + 2];
        j.pad[i] = ortc_transpose_pad(&own, i, j.x->dims[i + 2], j.y->dims[i + 2]);
        j.kernel_count *= j.w->dims[i + 2];
        j.out_count *= j.y->dims[i + 2];
        j.in_count *= j.x->dims[i + 2];
    }
    double *ws = ortc_ref_doubles(j.x, c->workspace);
    ortc_ref_doubles(j.w, ws);
    j.xs = c->workspace, j.ws = ws;
    return ortc_parallel(c, count,
                         ortc_grain(2.0 * (double)j.kernel_count * (double)(j.w->dims[0] / own.group + 4)),
                         transpose_chunk, &j);
}

static ortc_status transpose_plan(const void *state, ortc_plan *p, void **out)
{
    return ortc_ref_conv_room(p, 1);
}

const ortc_kernel ortc_ref_conv_transpose = {.size = ORTC_SIZED(ortc_kernel),
                                             .name = "conv_transpose.ref",
                                             .prepare = ortc_conv_transpose_prepare,
                                             .plan = transpose_plan,
                                             .run = transpose_run};
