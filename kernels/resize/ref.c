/* kernels/resize/ref.c: Resize on ref: the taps of each axis once (taps.c), then each element of the result
 * as the sum over all combinations of them, in double. Integers are rounded to the nearest and saturate.
 * Along axes that stay as they are nothing is mixed, and taps of weight 0 are not read, so that NaN stays
 * where it is.
 */
#include <math.h>
#include <stdlib.h>

#include "kernels/common/strings.h"
#include "kernels/resize/resize.h"

#define MAX_TAPS (1 << 24)

typedef struct resize_job {
    const ortc_resize_state *state;
    const ortc_view *x;
    ortc_view *y;
    ortc_resize_axis axes[ORTC_RANK_LIMIT];
    int64_t strides[ORTC_RANK_LIMIT];
    int32_t mixed[ORTC_RANK_LIMIT], n_mixed; /* axes with more than one tap */
} resize_job;

/* The sum over the taps of the mixed axes from number `which` on. */
static double mix(const resize_job *j, const int64_t *at, int32_t which, int64_t base)
{
    if (which == j->n_mixed) return ortc_load_f64(j->x->data, j->x->dtype, base);
    const ortc_resize_axis *a = &j->axes[j->mixed[which]];
    const int64_t i = at[j->mixed[which]], stride = j->strides[j->mixed[which]];
    double sum = 0;
    for (int64_t k = 0; k < a->n_taps; k++) {
        const double w = a->weights[i * a->n_taps + k];
        if (w != 0)
            sum += w * mix(j, at, which + 1, base + ortc_resize_clamped(a->first[i] + k, a->in) * stride);
    }
    return sum;
}

static void resize_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const resize_job *j = arg;
    const ortc_dtype t = j->y->dtype;
    int64_t at[ORTC_RANK_LIMIT];
    for (int64_t i = begin; i < end; i++) {
        int64_t rest = i, base = 0;
        bool outside = false;
        for (int32_t d = j->y->rank - 1; d >= 0; d--) {
            const ortc_resize_axis *a = &j->axes[d];
            at[d] = rest % j->y->dims[d];
            rest /= j->y->dims[d];
            outside |= !a->same && a->first[at[d]] == INT64_MIN;
            if (a->same)
                base += at[d] * j->strides[d];
            else if (a->n_taps == 1)
                base += ortc_resize_clamped(a->first[at[d]], a->in) * j->strides[d];
        }
        if (outside)
            ortc_resize_store(j->y->data, t, i, j->state->extrapolation);
        else if (j->n_mixed == 0)
            ortc_move_element(j->y->data, i, j->x->data, base, ortc_dtype_bits(t));
        else
            ortc_resize_store(j->y->data, t, i, mix(j, at, 0, base));
    }
}

static ortc_status resize_run(const void *state, const void *pstate, ortc_call *c)
{
    if (c->in[0].dtype == ORTC_STRING) return ortc_run_on_strings(resize_run, state, pstate, c);
    const ortc_resize_state *s = state;
    resize_job *j = calloc(1, sizeof *j); /* too large for a stack of unknown size */
    int64_t dims[ORTC_RANK_LIMIT];
    double cost = 10;
    if (!j) return ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for axes");
    j->state = s;
    j->x = &c->in[0];
    j->y = &c->out[0];
    ortc_resize_text why;
    ortc_status status = ortc_resize_measure(s, c->n_in, c->in, NULL, j->axes, why);
    for (int32_t d = 0; d < j->x->rank; d++) dims[d] = j->axes[d].out;
    status = status ? ortc_call_fail(c, status, "%s", why) : ortc_call_resize(c, 0, j->x->rank, dims);
    if (status != ORTC_OK || ortc_view_count(j->y) == 0) goto cleanup;
    ortc_dense_strides(j->x->rank, j->x->dims, j->strides);
    for (int32_t d = 0; d < j->x->rank; d++) {
        ortc_resize_axis *a = &j->axes[d];
        if (a->same) continue;
        a->n_taps = ortc_resize_count_taps(s, a->scale);
        const double bytes = (double)a->out * (double)(a->n_taps + 1) * 8;
        if (a->n_taps > MAX_TAPS) {
            status = ortc_call_fail(c, ORTC_LIMIT, "an element would be made of %lld along axis %d",
                                    (long long)a->n_taps, d);
            goto cleanup;
        }
        if (bytes > (double)(SIZE_MAX / 4) || !(a->first = malloc((size_t)a->out * 8)) ||
            !(a->weights = malloc((size_t)a->out * (size_t)a->n_taps * 8))) {
            status = ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for the %g bytes of weights of axis %d",
                                    bytes, d);
            goto cleanup;
        }
        ortc_resize_taps(s, a);
        if (a->n_taps > 1) j->mixed[j->n_mixed++] = d;
        cost *= (double)a->n_taps;
    }
    status = ortc_parallel(c, ortc_view_count(j->y), ortc_grain(cost), resize_chunk, j);
cleanup:
    for (int32_t d = 0; d < j->x->rank; d++) {
        free(j->axes[d].first);
        free(j->axes[d].weights);
    }
    free(j);
    return status;
}

static ortc_status resize_supports(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    const char *mode = ortc_node_string(n, "mode", "nearest");
    const ortc_dtype t = ortc_node_in(n, 0).dtype;
    if (strcmp(mode, "nearest") != 0 && ortc_class_of(t) == ORTC_CLASS_NONE)
        return ortc_no(why, "there is nothing between two elements of type %s; mode must be nearest",
                       ortc_dtype_name(t));
    if (ortc_class_of(t) == ORTC_CLASS_NONE &&
        !strcmp(ortc_node_string(n, "coordinate_transformation_mode", ""), "tf_crop_and_resize"))
        return ortc_no(why, "extrapolation_value is no element of type %s", ortc_dtype_name(t));
    return ORTC_OK;
}

static const ortc_kernel resize_ref = {.size = ORTC_SIZED(ortc_kernel),
                                       .flags = ORTC_KERNEL_LATE_OUT,
                                       .name = "resize.ref",
                                       .host_in = 0xe,
                                       .supports = resize_supports,
                                       .prepare = ortc_resize_prepare,
                                       .run = resize_run};

#define PLAIN \
    (ORTC_TYPES_NUM | ORTC_TYPE(ORTC_BOOL) | ORTC_TYPE(ORTC_STRING) | ORTC_TYPE(ORTC_C64) | \
     ORTC_TYPE(ORTC_C128))
ORTC_KERNELS(ref, resize,
             ORTC_KERNEL("Resize", 19, ORTC_NEWEST,
                         (PLAIN, ORTC_TYPE(ORTC_F16) | ORTC_TYPE(ORTC_F32) | ORTC_TYPE(ORTC_F64)),
                         &resize_ref));
