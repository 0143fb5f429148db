/* kernels/conv/ref_transpose.c: ConvTranspose on ref, from its result: an element is the sum over the
 * window's positions that an element of X lies under, and over the channels of its group, in double.
 */
#include <stdlib.h>

#include "kernels/conv/transpose.h"

typedef struct transpose_job {
    const ortc_transpose *t;
    const ortc_view *x, *w, *b; /* b: NULL for none */
    ortc_view *y;
    int64_t kernel_count, out_count, in_count; /* positions of the window; of a channel of Y, of X */
    int64_t pad[ORTC_SPATIAL_LIMIT];
} transpose_job;

/* The position of X that kernel position q spreads to o; -1: none. */
static int64_t position(const transpose_job *j, const int64_t *o, int64_t q)
{
    const ortc_window *w = &j->t->window;
    int64_t at = 0, step = 1;
    for (int32_t i = j->x->rank - 3; i >= 0; i--) {
        const int64_t p = o[i] + j->pad[i] - q % j->w->dims[i + 2] * w->dilation[i];
        if (p < 0 || p % w->stride[i] || p / w->stride[i] >= j->x->dims[i + 2]) return -1;
        q /= j->w->dims[i + 2];
        at += p / w->stride[i] * step;
        step *= j->x->dims[i + 2];
    }
    return at;
}

static void transpose_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const transpose_job *j = arg;
    const ortc_dtype t = j->y->dtype;
    const int64_t filters = j->y->dims[1], per_group = j->w->dims[1], channels = j->w->dims[0] / j->t->group;
    for (int64_t at = begin; at < end; at++) {
        const int64_t m = at / j->out_count % filters, image = at / j->out_count / filters,
                      first = m / per_group * channels;
        int64_t o[ORTC_SPATIAL_LIMIT], rest = at % j->out_count;
        double sum = j->b ? ortc_load_f64(j->b->data, t, m) : 0;
        for (int32_t i = j->x->rank - 3; i >= 0; i--) {
            o[i] = rest % j->y->dims[i + 2];
            rest /= j->y->dims[i + 2];
        }
        for (int64_t q = 0; q < j->kernel_count; q++) {
            const int64_t p = position(j, o, q);
            for (int64_t c = first; c < first + channels && p >= 0; c++)
                sum += ortc_load_f64(j->x->data, t, (image * j->x->dims[1] + c) * j->in_count + p) *
                       ortc_load_f64(j->w->data, t, (c * per_group + m % per_group) * j->kernel_count + q);
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
    transpose_job j = {&own,       &c->in[0], &c->in[1], c->n_in > 2 && c->in[2].dtype ? &c->in[2] : NULL,
                       &c->out[0], 1,         1,         1,
                       {0}};
    const int64_t count = ortc_view_count(j.y);
    if (count == 0) return ORTC_OK;
    for (int32_t i = 0; i < j.x->rank - 2; i++) {
        own.window.kernel[i] = j.w->dims[i + 2];
        j.pad[i] = ortc_transpose_pad(&own, i, j.x->dims[i + 2], j.y->dims[i + 2]);
        j.kernel_count *= j.w->dims[i + 2];
        j.out_count *= j.y->dims[i + 2];
        j.in_count *= j.x->dims[i + 2];
    }
    return ortc_parallel(c, count,
                         ortc_grain(2.0 * (double)j.kernel_count * (double)(j.w->dims[0] / own.group + 4)),
                         transpose_chunk, &j);
}

const ortc_kernel ortc_ref_conv_transpose = {.size = ORTC_SIZED(ortc_kernel),
                                             .name = "conv_transpose.ref",
                                             .prepare = ortc_conv_transpose_prepare,
                                             .run = transpose_run};
