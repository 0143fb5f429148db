/* kernels/rearrange/ref_pad.c: Pad and CenterCropPad on ref: each element of the result is one of the
 * input's, or the filling.
 *
 * Negative pads cut elements off. Beyond the input reflect mirrors at the first and the last element without
 * repeating them, edge repeats them, wrap starts again; all for any distance.
 */
#include <stdlib.h>

#include "kernels/rearrange/rearrange.h"

typedef struct pad_job {
    int mode;
    const ortc_view *x;
    ortc_view *y;
    const void *fill;
    int64_t before[ORTC_RANK_LIMIT], strides[ORTC_RANK_LIMIT];
} pad_job;

/* Where position `at`, which may be outside of 0 .. n, is taken from; -1: from nowhere. */
int64_t ortc_pad_source(int mode, int64_t at, int64_t n)
{
    if (at >= 0 && at < n) return at;
    switch (mode) {
    case ORTC_PADDING_EDGE: return at < 0 ? 0 : n - 1;
    case ORTC_PADDING_WRAP: return (at % n + n) % n;
    case ORTC_PADDING_REFLECT: {
        const int64_t period = n > 1 ? 2 * (n - 1) : 1, k = (at % period + period) % period;
        return k < n ? k : period - k;
    }
    default: return -1;
    }
}

static void pad_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const pad_job *j = arg;
    const uint32_t bits = ortc_dtype_bits(j->y->dtype);
    for (int64_t i = begin; i < end; i++) {
        int64_t rest = i, from = 0;
        for (int32_t d = j->y->rank - 1; d >= 0 && from >= 0; d--) {
            const int64_t at = ortc_pad_source(j->mode, rest % j->y->dims[d] - j->before[d], j->x->dims[d]);
            from = at < 0 ? -1 : from + at * j->strides[d];
            rest /= j->y->dims[d];
        }
        ortc_move_element(j->y->data, i, from < 0 ? j->fill : j->x->data, from < 0 ? 0 : from, bits);
    }
}

static ortc_status pad_go(ortc_call *c, pad_job *j)
{
    const int64_t count = ortc_view_count(j->y);
    int64_t position;
    for (int32_t d = 0; d < j->y->rank; d++) /* of the first element and of the last, in the input */
        if (__builtin_sub_overflow((int64_t)0, j->before[d], &position) ||
            __builtin_sub_overflow(j->y->dims[d] - 1, j->before[d], &position))
            return ortc_call_fail(c, ORTC_INVALID_ARGUMENT,
                                  "pads begin %lld before axis %d, which no tensor can be long",
                                  (long long)j->before[d], d);
    ortc_dense_strides(j->x->rank, j->x->dims, j->strides);
    ortc_clear_tail(j->y, count);
    return ortc_parallel(c, count, ortc_grain(5.0 * (j->y->rank + 1)), pad_chunk, j);
}

static const uint64_t zero[2];

/* Elements before the first along each dim. */
ortc_status ortc_pad_before(ortc_call *c, int64_t *before)
{
    const ortc_view *pads = &c->in[1], *axes = c->n_in > 3 && c->in[3].dtype ? &c->in[3] : NULL;
    const int64_t count = ortc_view_count(pads) / 2;
    for (int64_t i = 0; i < count; i++) {
        int32_t axis;
        if (!ortc_axis_of(axes ? ortc_load_i64(axes->data, axes->dtype, i) : i, c->in[0].rank, &axis))
            return ortc_call_fail(c, ORTC_INVALID_ARGUMENT, "an axis is outside of the input's rank");
        before[axis] = ortc_load_i64(pads->data, ORTC_I64, i);
    }
    return ORTC_OK;
}

static ortc_status pad_run(const void *state, const void *pstate, ortc_call *c)
{
    if (c->in[0].dtype == ORTC_STRING) return ortc_run_on_strings(pad_run, state, pstate, c);
    const ortc_view *value = c->n_in > 2 && c->in[2].dtype ? &c->in[2] : NULL;
    pad_job j = {.mode = *(const int *)state, .x = &c->in[0], .y = &c->out[0], .fill = zero};
    if (ortc_view_count(j.y) == 0) return ORTC_OK;
    if (value && ortc_view_count(value) == 1) j.fill = value->data;
    ORTC_TRY(ortc_pad_before(c, j.before));
    return pad_go(c, &j);
}

ortc_status ortc_pad_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    static const char *const modes[] = {"constant", "reflect", "edge", "wrap"};
    const char *mode = ortc_node_string(n, "mode", "constant");
    int *state = malloc(sizeof *state);
    if (!state) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    for (*state = ORTC_PADDING_CONSTANT; *state < ORTC_PADDING_WRAP && strcmp(mode, modes[*state]) != 0;)
        ++*state; /* the shape function has refused others */
    *out = state;
    return ORTC_OK;
}

/* Half of what is missing comes before, half of what is too much goes; the odd one is behind. */
void ortc_center_before(const ortc_view *x, const ortc_view *y, int64_t *before)
{
    for (int32_t d = 0; d < x->rank; d++) /* towards zero: what is cut before is rounded down */
        before[d] = (y->dims[d] - x->dims[d]) / 2;
}

static ortc_status center_run(const void *state, const void *pstate, ortc_call *c)
{
    if (c->in[0].dtype == ORTC_STRING) return ortc_run_on_strings(center_run, state, pstate, c);
    pad_job j = {.mode = ORTC_PADDING_CONSTANT, .x = &c->in[0], .y = &c->out[0], .fill = zero};
    ortc_center_before(j.x, j.y, j.before);
    return pad_go(c, &j);
}

const ortc_kernel ortc_ref_pad = {.size = ORTC_SIZED(ortc_kernel),
                                  .name = "pad.ref",
                                  .host_in = 0xa,
                                  .prepare = ortc_pad_prepare,
                                  .run = pad_run};
const ortc_kernel ortc_ref_center = {.size = ORTC_SIZED(ortc_kernel),
                                     .name = "center_crop_pad.ref",
                                     .host_in = 2,
                                     .run = center_run};
