/* kernels/shape/cuda_move.c: what moves elements or only renames dims, on a GPU: views where the elements lie
 * together already, else strided copies (cuda_strided.h), one per part. Elements of whole bytes; ranks up to
 * 8.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/common/cuda.h"
#include "kernels/shape/cuda_strided.h"
#include "kernels/shape/shape_ops.h"

#define RANK 8

static ortc_status supports(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    (void)device;
    for (uint32_t i = 0; i < ortc_node_n_in(n) + ortc_node_n_out(n); i++) {
        const ortc_port p = i < ortc_node_n_in(n) ? ortc_node_in(n, i)
                                                  : ortc_node_out(n, i - ortc_node_n_in(n));
        if (p.type && (p.rank < 0 || p.rank > RANK))
            return ortc_no(why, "ranks must be known and at most %d", RANK);
    }
    return ORTC_OK;
}

static ortc_status moved(ortc_call *c, const ortc_cu_move *m)
{
    return ortc_cuda_done(c, ortc_cu_move_run(m, c->queue));
}

static int all_known(const ortc_view *v)
{
    for (int32_t d = 0; d < v->rank; d++)
        if (v->dims[d] < 0) return 0;
    return 1;
}

static void note_bytes(ortc_plan *p)
{
    if (all_known(&p->out[0]))
        ortc_plan_cost(p, 0,
                       2.0 * (double)ortc_view_count(&p->out[0]) * ortc_dtype_bits(p->out[0].dtype) / 8);
}

/* The whole output takes elements of input 0 by steps, from element `start` on. */
static ortc_status take(ortc_call *c, const int64_t *steps, int64_t start)
{
    const ortc_view *x = &c->in[0], *y = &c->out[0];
    ortc_cu_move m;
    m.bytes = ortc_dtype_bits(y->dtype) / 8;
    m.to = y->data;
    m.from = (const char *)x->data + start * (int64_t)m.bytes;
    m.rank = y->rank;
    ortc_copy_dims(m.dims, y->dims, y->rank);
    ortc_copy_dims(m.from_step, steps, y->rank);
    ortc_dense_strides(y->rank, y->dims, m.to_step);
    return ortc_view_count(y) ? moved(c, &m) : ORTC_OK;
}

static void view_if_dense(ortc_plan *p, const int64_t *steps, int64_t start)
{
    int64_t expected = 1;
    for (int32_t d = p->out[0].rank - 1; d >= 0; d--) {
        if (p->out[0].dims[d] == 0 || (p->out[0].dims[d] != 1 && steps[d] != expected)) return;
        expected *= p->out[0].dims[d];
    }
    ortc_plan_view(p, 0, 0, start * (int64_t)ortc_dtype_bits(p->out[0].dtype) / 8);
}

/* ---- Identity, Reshape, Flatten, Squeeze, Unsqueeze ---------------------------------------------------- */

static ortc_status rename_plan(const void *state, ortc_plan *p, void **pstate)
{
    (void)state, (void)pstate;
    ortc_plan_view(p, 0, 0, 0);
    return ORTC_OK;
}

static ortc_status rename_run(const void *state, const void *pstate, ortc_call *c)
{
    ortc_cu_move m;
    (void)state, (void)pstate;
    m.to = c->out[0].data;
    m.from = c->in[0].data;
    m.bytes = 1;
    m.rank = 1;
    m.dims[0] = (int64_t)ortc_bytes_of(ortc_dtype_bits(c->in[0].dtype), ortc_view_count(&c->in[0]));
    m.to_step[0] = m.from_step[0] = 1;
    return moved(c, &m);
}

/* ---- Transpose ----------------------------------------------------------------------------------------- */

typedef struct transpose {
    int reverse;
    int32_t perm[RANK];
} transpose;

static ortc_status transpose_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    size_t count;
    const int64_t *perm = ortc_node_ints(n, "perm", &count);
    transpose *s = calloc(1, sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    s->reverse = !perm;
    for (size_t i = 0; i < count && i < RANK; i++) s->perm[i] = (int32_t)perm[i];
    *out = s;
    return ORTC_OK;
}

static void transpose_steps(const transpose *s, const ortc_view *x, int64_t *steps)
{
    int64_t dense[RANK];
    ortc_dense_strides(x->rank, x->dims, dense);
    for (int32_t d = 0; d < x->rank; d++) steps[d] = dense[s->reverse ? x->rank - 1 - d : s->perm[d]];
}

static ortc_status transpose_plan(const void *state, ortc_plan *p, void **pstate)
{
    int64_t steps[RANK];
    (void)pstate;
    note_bytes(p);
    if (!all_known(&p->in[0])) return ORTC_OK;
    transpose_steps(state, &p->in[0], steps);
    view_if_dense(p, steps, 0);
    return ORTC_OK;
}

static ortc_status transpose_run(const void *state, const void *pstate, ortc_call *c)
{
    int64_t steps[RANK];
    (void)pstate;
    transpose_steps(state, &c->in[0], steps);
    return take(c, steps, 0);
}

/* ---- Slice: the bounds are on the host ----------------------------------------------------------------- */

static ortc_status slice_plan(const void *state, ortc_plan *p, void **pstate)
{
    int64_t steps[RANK], start;
    (void)state, (void)pstate;
    note_bytes(p);
    for (uint32_t i = 0; i < p->n_in; i++)
        if (p->in[i].dtype && ((i && !p->in[i].data) || !all_known(&p->in[i]))) return ORTC_OK;
    if (all_known(&p->out[0]) && ortc_view_count(&p->out[0]) > 0 &&
        ortc_slice_strides(p->in, p->n_in, steps, &start))
        view_if_dense(p, steps, start);
    return ORTC_OK;
}

static ortc_status slice_run(const void *state, const void *pstate, ortc_call *c)
{
    int64_t steps[RANK], start;
    (void)state, (void)pstate;
    if (ortc_view_count(&c->out[0]) == 0) return ORTC_OK;
    if (!ortc_slice_strides(c->in, c->n_in, steps, &start))
        return ortc_call_fail(
            c, ORTC_INVALID_ARGUMENT,
            "its bounds differ in number, an axis is outside of the rank or given twice, or a step is 0");
    return take(c, steps, start);
}

/* ---- Expand -------------------------------------------------------------------------------------------- */

static ortc_status expand_plan(const void *state, ortc_plan *p, void **pstate)
{
    (void)state, (void)pstate;
    note_bytes(p);
    if (all_known(&p->in[0]) && all_known(&p->out[0]) &&
        ortc_view_count(&p->in[0]) == ortc_view_count(&p->out[0]))
        ortc_plan_view(p, 0, 0, 0);
    return ORTC_OK;
}

static ortc_status expand_run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_view *x = &c->in[0], *y = &c->out[0];
    int64_t dense[RANK], steps[RANK];
    (void)state, (void)pstate;
    ortc_dense_strides(x->rank, x->dims, dense);
    for (int32_t d = 0; d < y->rank; d++) {
        const int32_t i = d - (y->rank - x->rank);
        steps[d] = i >= 0 && x->dims[i] != 1 ? dense[i] : 0;
    }
    return take(c, steps, 0);
}

/* ---- Concat, Split: the parts of a whole along an axis, a copy for each -------------------------------- */

static ortc_status axis_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    int64_t *axis = malloc(sizeof *axis);
    if (!axis) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *axis = ortc_node_int(n, "axis", 0);
    *out = axis;
    return ORTC_OK;
}

static void around(const ortc_view *v, int32_t axis, int64_t *outer, int64_t *inner)
{
    *outer = *inner = 1;
    for (int32_t d = 0; d < v->rank; d++) *(d < axis ? outer : inner) *= d == axis ? 1 : v->dims[d];
}

static ortc_status parts_run(ortc_call *c, int64_t given, int join)
{
    const ortc_view *whole = join ? &c->out[0] : &c->in[0];
    int64_t outer, inner, first = 0;
    int32_t axis;
    if (!ortc_axis_of(given, whole->rank, &axis) || ortc_view_count(whole) == 0) return ORTC_OK;
    if (!join && !ortc_split_fits(c->in, c->n_in, c->out, c->n_out, axis))
        return ortc_call_fail(c, ORTC_SHAPE_MISMATCH, "split does not add up to the %lld elements of axis %d",
                              (long long)whole->dims[axis], axis);
    around(whole, axis, &outer, &inner);
    const int64_t bytes = ortc_dtype_bits(whole->dtype) / 8, row = whole->dims[axis] * inner;
    for (uint32_t i = 0; i < (join ? c->n_in : c->n_out); i++) {
        const ortc_view *part = join ? &c->in[i] : &c->out[i];
        const int64_t run = inner * (!join ? ortc_split_part(c->in, c->n_in, c->out, c->n_out, axis, i)
                                     : part->rank > axis ? part->dims[axis]
                                                         /* inputs without elements may have lost their
                                                          * rank */
                                                         : 0);
        char *at = (char *)whole->data + first * bytes;
        ortc_cu_move m = {.to = join ? at : part->data,
                          .from = join ? part->data : at,
                          .rank = 2,
                          .bytes = (uint32_t)bytes,
                          .dims = {outer, run},
                          .to_step = {join ? row : run, 1},
                          .from_step = {join ? run : row, 1}};
        if (part->dtype) ORTC_TRY(moved(c, &m));
        first += run;
    }
    return ORTC_OK;
}

static ortc_status concat_run(const void *state, const void *pstate, ortc_call *c)
{
    (void)pstate;
    return parts_run(c, *(const int64_t *)state, 1);
}
static ortc_status split_run(const void *state, const void *pstate, ortc_call *c)
{
    (void)pstate;
    return parts_run(c, *(const int64_t *)state, 0);
}

static ortc_status concat_plan(const void *state, ortc_plan *p, void **pstate)
{
    (void)state, (void)pstate;
    note_bytes(p);
    if (p->n_in == 1) ortc_plan_view(p, 0, 0, 0);
    return ORTC_OK;
}

/* ---- ConstantOfShape ----------------------------------------------------------------------------------- */

typedef struct filling {
    uint64_t value; /* the bits of one element */
} filling;

static ortc_status fill_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const ortc_attr value = ortc_node_attr(n, "value");
    filling *s = calloc(1, sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    if (value.kind == ORTC_ATTR_TENSOR && value.u.tensors[0].data)
        memcpy(&s->value, value.u.tensors[0].data, ortc_dtype_bits(value.u.tensors[0].dtype) / 8);
    *out = s;
    return ORTC_OK;
}

static ortc_status fill_supports(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    const ortc_attr value = ortc_node_attr(n, "value");
    (void)device;
    if (value.kind != ORTC_ATTR_TENSOR) return ORTC_OK;
    for (int32_t d = 0; d < value.u.tensors[0].rank; d++)
        if (value.u.tensors[0].dims[d] != 1) return ortc_no(why, "attribute value must have one element");
    return value.u.tensors[0].data ? ORTC_OK : ortc_no(why, "attribute value must have one element");
}

static ortc_status fill_run(const void *state, const void *pstate, ortc_call *c)
{
    (void)pstate;
    return ortc_cuda_done(c, ortc_cu_fill_with(c->out[0].data, ortc_view_count(&c->out[0]),
                                               ortc_dtype_bits(c->out[0].dtype) / 8,
                                               ((const filling *)state)->value, c->queue));
}

/* ---- The table ----------------------------------------------------------------------------------------- */

#define KERNEL(symbol, title, ...) \
    static const ortc_kernel symbol = {.size = sizeof(ortc_kernel), .name = title, __VA_ARGS__}
KERNEL(rename_kernel, "rename.cuda", .plan = rename_plan, .run = rename_run);
KERNEL(transpose_kernel, "transpose.cuda", .supports = supports, .prepare = transpose_prepare,
       .plan = transpose_plan, .run = transpose_run);
KERNEL(slice_kernel, "slice.cuda", .host_in = 0x1e, .supports = supports, .plan = slice_plan,
       .run = slice_run);
KERNEL(expand_kernel, "expand.cuda", .host_in = 2, .supports = supports, .plan = expand_plan,
       .run = expand_run);
KERNEL(concat_kernel, "concat.cuda", .prepare = axis_prepare, .plan = concat_plan, .run = concat_run);
KERNEL(split_kernel, "split.cuda", .host_in = 2, .prepare = axis_prepare, .run = split_run);
KERNEL(fill_kernel, "constant_of_shape.cuda", .host_in = 1, .supports = fill_supports,
       .prepare = fill_prepare, .run = fill_run);

#define F8 \
    (ORTC_TYPE(ORTC_F8E4M3FN) | ORTC_TYPE(ORTC_F8E4M3FNUZ) | ORTC_TYPE(ORTC_F8E5M2) | \
     ORTC_TYPE(ORTC_F8E5M2FNUZ) | ORTC_TYPE(ORTC_F8E8M0))
#define PACKED \
    (ORTC_TYPE(ORTC_U4) | ORTC_TYPE(ORTC_I4) | ORTC_TYPE(ORTC_F4E2M1) | ORTC_TYPE(ORTC_U2) | \
     ORTC_TYPE(ORTC_I2))
#define FILLED (ORTC_TYPES_NUM | ORTC_TYPE(ORTC_BOOL) | F8)
#define PLAIN (ORTC_TYPES_NUM | ORTC_TYPE(ORTC_BOOL) | ORTC_TYPE(ORTC_C64) | ORTC_TYPE(ORTC_C128))
#define INDEX (ORTC_TYPE(ORTC_I32) | ORTC_TYPE(ORTC_I64))
#define K(op, since, kernel, ...) ORTC_KERNEL(op, since, ORTC_NEWEST, (__VA_ARGS__), kernel)
ORTC_KERNELS(cuda, move, K("Identity", 25, &rename_kernel, PLAIN | F8 | PACKED),
             K("Reshape", 25, &rename_kernel, PLAIN | F8 | PACKED),
             K("Flatten", 25, &rename_kernel, PLAIN | F8 | PACKED),
             K("Squeeze", 25, &rename_kernel, PLAIN | F8 | PACKED),
             K("Unsqueeze", 25, &rename_kernel, PLAIN | F8 | PACKED),
             K("Transpose", 25, &transpose_kernel, PLAIN | F8), K("Slice", 13, &slice_kernel, PLAIN, INDEX),
             K("Expand", 13, &expand_kernel, PLAIN), K("Concat", 13, &concat_kernel, PLAIN),
             K("Split", 18, &split_kernel, PLAIN),
             K("ConstantOfShape", 25, &fill_kernel, ORTC_TYPE(ORTC_I64), FILLED));
