/* kernels/sample/ref_deform.c: DeformConv on ref: a convolution whose window reads each element at a place of
 * its own, between pixels, and weighs it by a mask.
 *
 * X [N, C, D1 .. Dk], W [M, C / group, K1 .. Kk], offset [N, G * K1 .. Kk * k, O1 .. Ok] (for each element of
 * the window how far it is moved along every dim, first dim first), mask [N, G * K1 .. Kk, O1 .. Ok]. Pixels
 * outside of X are 0.
 */
#include <math.h>
#include <stdlib.h>

#include "kernels/sample/deform.h"

extern const ortc_kernel ortc_ref_deform_conv;

typedef struct deform_job {
    const ortc_deform_state *s;
    const ortc_view *x, *w, *offset, *bias, *mask; /* bias, mask: NULL where left out */
    ortc_view *y;
    int32_t spatial;
    int64_t in_count, out_count, kernel_count;
    int64_t pad[ORTC_SPATIAL_LIMIT];
} deform_job;

/* The plane between its pixels. */
static double between(const deform_job *j, int64_t plane, const double *at, int32_t d, int64_t index)
{
    if (d == j->spatial) return ortc_load_f64(j->x->data, j->x->dtype, plane * j->in_count + index);
    const int64_t extent = j->x->dims[d + 2];
    if (!(at[d] > -1 && at[d] < (double)extent)) return 0;
    const double low = floor(at[d]), part = at[d] - low;
    double v = 0;
    for (int k = 0; k < 2; k++) {
        const int64_t p = (int64_t)low + k;
        const double weight = k ? part : 1 - part;
        if (p >= 0 && p < extent && weight != 0)
            v += weight * between(j, plane, at, d + 1, index * extent + p);
    }
    return v;
}

static double element(const deform_job *j, int64_t n, int64_t m, const int64_t *o, int64_t out)
{
    const int64_t per_group = j->w->dims[1], channels = j->x->dims[1],
                  first = m / (j->w->dims[0] / j->s->group) * per_group,
                  per_offset = channels / j->s->offset_group;
    double total = j->bias ? ortc_load_f64(j->bias->data, j->bias->dtype, m) : 0;
    for (int64_t i = 0; i < per_group; i++) {
        const int64_t channel = first + i, g = n * j->s->offset_group + channel / per_offset;
        int64_t k[ORTC_SPATIAL_LIMIT] = {0};
        for (int64_t q = 0; q < j->kernel_count; q++) {
            double at[ORTC_SPATIAL_LIMIT], v;
            for (int32_t d = 0; d < j->spatial; d++)
                at[d] = (double)(o[d] * j->s->window.stride[d] - j->pad[d] +
                                 k[d] * j->s->window.dilation[d]) +
                        ortc_load_f64(j->offset->data, j->offset->dtype,
                                      ((g * j->kernel_count + q) * j->spatial + d) * j->out_count + out);
            v = between(j, n * channels + channel, at, 0, 0) *
                ortc_load_f64(j->w->data, j->w->dtype, (m * per_group + i) * j->kernel_count + q);
            if (j->mask)
                v *= ortc_load_f64(j->mask->data, j->mask->dtype,
                                   (g * j->kernel_count + q) * j->out_count + out);
            total += v;
            for (int32_t d = j->spatial - 1; d >= 0 && ++k[d] == j->w->dims[d + 2]; d--) k[d] = 0;
        }
    }
    return total;
}

static void deform_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const deform_job *j = arg;
    for (int64_t i = begin; i < end; i++) {
        const int64_t out = i % j->out_count, plane = i / j->out_count, m = j->y->dims[1];
        int64_t o[ORTC_SPATIAL_LIMIT], rest = out;
        for (int32_t d = j->spatial - 1; d >= 0; d--) {
            o[d] = rest % j->y->dims[d + 2];
            rest /= j->y->dims[d + 2];
        }
        ortc_store_f64(j->y->data, j->y->dtype, i, element(j, plane / m, plane % m, o, out));
    }
}

ortc_status ortc_deform_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const char *attribute, *wrong;
    ortc_deform_state *s = malloc(sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    s->group = ortc_node_int(n, "group", 1);
    s->offset_group = ortc_node_int(n, "offset_group", 1);
    wrong = ortc_window_read(n, -1, &s->window, &attribute);
    if (wrong) {
        free(s);
        return ortc_prep_fail(prep, ORTC_INVALID_MODEL, "attribute %s %s", attribute, wrong);
    }
    *out = s;
    return ORTC_OK;
}

static ortc_status deform_run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_deform_state *s = state;
    deform_job j = {.s = s, .x = &c->in[0], .w = &c->in[1], .offset = &c->in[2], .y = &c->out[0]};
    if (ortc_view_count(j.y) == 0) return ORTC_OK;
    j.bias = c->n_in > 3 && c->in[3].dtype ? &c->in[3] : NULL;
    j.mask = c->n_in > 4 && c->in[4].dtype ? &c->in[4] : NULL;
    j.spatial = j.x->rank - 2;
    j.in_count = j.out_count = j.kernel_count = 1;
    for (int32_t d = 0; d < j.spatial; d++) {
        j.pad[d] = s->window.pad_begin[d];
        j.out_count *= j.y->dims[d + 2]; /* of a tensor that has elements; the others may have none */
        if (__builtin_mul_overflow(j.in_count, j.x->dims[d + 2], &j.in_count) ||
            __builtin_mul_overflow(j.kernel_count, j.w->dims[d + 2], &j.kernel_count))
            return ortc_call_fail(c, ORTC_LIMIT, "X or W has too many elements");
    }
    const double terms = (double)j.kernel_count * (double)j.w->dims[1];
    return ortc_parallel(c, ortc_view_count(j.y), ortc_grain(50 * (terms + 1)), deform_chunk, &j);
}

const ortc_kernel ortc_ref_deform_conv = {.size = ORTC_SIZED(ortc_kernel),
                                          .name = "deform_conv.ref",
                                          .prepare = ortc_deform_prepare,
                                          .run = deform_run};
