/* kernels/generate/ref.c: EyeLike and OneHot on ref, and the family's table. */
#include <stdlib.h>

#include "kernels/common/strings.h"
#include "kernels/generate/generate.h"

ortc_status ortc_generate_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    int64_t *state = malloc(sizeof *state);
    if (!state) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *state = !strcmp(ortc_node_op(n), "EyeLike") ? ortc_node_int(n, "k", 0) : ortc_node_int(n, "axis", -1);
    *out = state;
    return ORTC_OK;
}

/* ---- EyeLike: ones on a diagonal ----------------------------------------------------------------------- */

typedef struct eye_job {
    ortc_view *y;
    int64_t k;
} eye_job;

static void eye_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const eye_job *j = arg;
    const int64_t columns = j->y->dims[1];
    const size_t bytes = ortc_dtype_bits(j->y->dtype) / 8;
    memset((char *)j->y->data + (size_t)(begin * columns) * bytes, 0,
           (size_t)((end - begin) * columns) * bytes);
    for (int64_t row = begin; row < end; row++)
        if (j->k >= -row && j->k < columns - row)
            ortc_store_i64(j->y->data, j->y->dtype, row * columns + row + j->k, 1);
}

static ortc_status eye_run(const void *state, const void *pstate, ortc_call *c)
{
    eye_job j = {&c->out[0], *(const int64_t *)state};
    if (ortc_view_count(j.y) == 0) return ORTC_OK;
    return ortc_parallel(c, j.y->dims[0], ortc_grain((double)j.y->dims[1] / 4), eye_chunk, &j);
}

/* ---- OneHot -------------------------------------------------------------------------------------------- */

typedef struct one_hot_job {
    const ortc_view *x;
    ortc_view *y;
    const void *values; /* off, on */
    int64_t depth, inner;
} one_hot_job;

static void one_hot_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const one_hot_job *j = arg;
    for (int64_t i = begin; i < end; i++) {
        const int64_t class = i / j->inner % j->depth;
        int64_t index =
            ortc_class_of(j->x->dtype) == ORTC_CLASS_FLOAT
                ? ortc_int_of_double(ortc_load_f64(j->x->data, j->x->dtype,
                                                   i / j->inner / j->depth * j->inner + i % j->inner))
                : ortc_load_i64(j->x->data, j->x->dtype, i / j->inner / j->depth * j->inner + i % j->inner);
        if (index < 0 &&
            (ortc_class_of(j->x->dtype) != ORTC_CLASS_UINT)) /* an unsigned one is too large, not negative */
            index += j->depth;
        ortc_move_element(j->y->data, i, j->values, index == class, ortc_dtype_bits(j->y->dtype));
    }
}

ortc_status ortc_one_hot_resize(int64_t where, ortc_call *c, int64_t *out_depth, int64_t *out_inner)
{
    const ortc_view *x = &c->in[0], *d = &c->in[1];
    int64_t dims[ORTC_RANK_LIMIT + 1];
    int32_t axis = 0;
    if (ortc_view_count(d) != 1 || ortc_view_count(&c->in[2]) != 2)
        return ortc_call_fail(c, ORTC_SHAPE_MISMATCH, "depth must be one number and values two");
    const int64_t depth = ortc_class_of(d->dtype) == ORTC_CLASS_FLOAT
                              ? ortc_int_of_double(ortc_load_f64(d->data, d->dtype, 0))
                              : ortc_load_i64(d->data, d->dtype, 0);
    if (depth < 0) return ortc_call_fail(c, ORTC_INVALID_ARGUMENT, "depth is %lld", (long long)depth);
    if (!ortc_axis_of(where, x->rank + 1, &axis))
        return ortc_call_fail(c, ORTC_INVALID_ARGUMENT, "the axis is outside of the result's rank");
    for (int32_t k = 0; k <= x->rank; k++) dims[k] = k == axis ? depth : x->dims[k > axis ? k - 1 : k];
    *out_depth = depth;
    *out_inner = 1;
    for (int32_t k = axis; k < x->rank; k++) *out_inner *= x->dims[k];
    return ortc_call_resize(c, 0, x->rank + 1, dims);
}

static ortc_status one_hot_run(const void *state, const void *pstate, ortc_call *c)
{
    if (c->in[2].dtype == ORTC_STRING) return ortc_run_on_strings(one_hot_run, state, pstate, c);
    one_hot_job j = {.x = &c->in[0], .y = &c->out[0], .values = c->in[2].data};
    ORTC_TRY(ortc_one_hot_resize(*(const int64_t *)state, c, &j.depth, &j.inner));
    return ortc_parallel(c, ortc_view_count(j.y), ortc_grain(8), one_hot_chunk, &j);
}

static const ortc_kernel eye_ref = {.size = ORTC_SIZED(ortc_kernel),
                                    .name = "eye_like.ref",
                                    .prepare = ortc_generate_prepare,
                                    .run = eye_run};
static const ortc_kernel one_hot_ref = {.size = ORTC_SIZED(ortc_kernel),
                                        .flags = ORTC_KERNEL_LATE_OUT,
                                        .name = "one_hot.ref",
                                        .host_in = 2,
                                        .prepare = ortc_generate_prepare,
                                        .run = one_hot_run};

/* ---- The table ----------------------------------------------------------------------------------------- */

#define PLAIN (ORTC_TYPES_NUM | ORTC_TYPE(ORTC_BOOL))
#define COMPLEX (ORTC_TYPE(ORTC_C64) | ORTC_TYPE(ORTC_C128))
#define INDEX ((ORTC_TYPES_NUM) & ~ORTC_TYPE(ORTC_BF16))
ORTC_KERNELS(ref, generate,
             ORTC_KERNEL("Range", 27, ORTC_NEWEST,
                         (ORTC_TYPES_FLOAT | ORTC_TYPE(ORTC_I16) | ORTC_TYPE(ORTC_I32) | ORTC_TYPE(ORTC_I64)),
                         &ortc_ref_range),
             ORTC_KERNEL("EyeLike", 22, ORTC_NEWEST, (PLAIN, PLAIN), &eye_ref),
             ORTC_KERNEL("OneHot", 28, ORTC_NEWEST, (INDEX, INDEX, PLAIN | COMPLEX | ORTC_TYPE(ORTC_STRING)),
                         &one_hot_ref));
