/* kernels/shape/ref_join.c: Concat, Split and ConstantOfShape on ref: runs of elements moved as they are. */
#include <stdlib.h>

#include "kernels/common/strings.h"
#include "kernels/shape/shape_ops.h"

ortc_status ortc_axis_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    int64_t *axis = malloc(sizeof *axis);
    if (!axis) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *axis = ortc_node_int(n, "axis", 0);
    *out = axis;
    return ORTC_OK;
}

/* A tensor as [outer, dims[axis], inner]. */
void ortc_around(const ortc_view *v, int32_t axis, int64_t *outer, int64_t *inner)
{
    *outer = *inner = 1;
    for (int32_t d = 0; d < v->rank; d++) *(d < axis ? outer : inner) *= d == axis ? 1 : v->dims[d];
}

/* ---- Concat, Split: the parts of a whole along an axis ------------------------------------------------- */

typedef struct part_job {
    const ortc_view *part, *whole;
    /* elements of a part's row, of the whole's, and where the part begins in it */
    int64_t run, stride, first;
    bool join;
} part_job;

static void part_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const part_job *j = arg;
    const uint32_t bits = ortc_dtype_bits(j->whole->dtype);
    while (begin < end) { /* a chunk may begin and end within a row */
        const int64_t row = begin / j->run, within = begin % j->run, at = row * j->stride + j->first + within;
        const int64_t n = j->run - within < end - begin ? j->run - within : end - begin;
        if (j->join)
            ortc_move_elements(j->whole->data, at, j->part->data, begin, n, bits);
        else
            ortc_move_elements(j->part->data, begin, j->whole->data, at, n, bits);
        begin += n;
    }
}

static ortc_status parts_run(ortc_call *c, int32_t axis, bool join)
{
    const uint32_t n = join ? c->n_in : c->n_out;
    part_job j = {.whole = join ? &c->out[0] : &c->in[0], .join = join};
    int64_t outer, inner;
    ortc_around(j.whole, axis, &outer, &inner);
    const uint32_t bits = ortc_dtype_bits(j.whole->dtype);
    j.stride = j.whole->dims[axis] * inner;
    if (join) ortc_clear_tail(j.whole, ortc_view_count(j.whole));
    for (uint32_t i = 0; i < n; i++) {
        j.part = join ? &c->in[i] : &c->out[i];
        j.run = inner * (join ? j.part->rank > axis ? j.part->dims[axis] : 0
                              : ortc_split_part(c->in, c->n_in, c->out, c->n_out, axis, i));
        const int64_t count = outer * j.run;
        if (count > 0 && j.part->dtype) {
            if (!join) ortc_clear_tail(j.part, count);
            /* parts of packed types may begin within a byte: no threads then */
            ORTC_TRY(ortc_parallel(c, count, join && bits < 8 ? count : ortc_grain(1), part_chunk, &j));
        }
        j.first += j.run;
    }
    return ORTC_OK;
}

static ortc_status concat_run(const void *state, const void *pstate, ortc_call *c)
{
    if (c->in[0].dtype == ORTC_STRING) return ortc_run_on_strings(concat_run, state, pstate, c);
    int32_t axis;
    if (ortc_view_count(&c->out[0]) == 0 || !ortc_axis_of(*(const int64_t *)state, c->out[0].rank, &axis))
        return ORTC_OK;
    return parts_run(c, axis, true);
}

ortc_status ortc_concat_plan(const void *state, ortc_plan *p, void **pstate)
{
    if (p->n_in == 1) ortc_plan_view(p, 0, 0, 0);
    return ORTC_OK;
}

static ortc_status split_run(const void *state, const void *pstate, ortc_call *c)
{
    if (c->in[0].dtype == ORTC_STRING) return ortc_run_on_strings(split_run, state, pstate, c);
    int32_t axis;
    if (ortc_view_count(&c->in[0]) == 0 || !ortc_axis_of(*(const int64_t *)state, c->in[0].rank, &axis))
        return ORTC_OK;
    if (!ortc_split_fits(c->in, c->n_in, c->out, c->n_out, axis))
        return ortc_call_fail(c, ORTC_SHAPE_MISMATCH, "split does not add up to the %lld elements of axis %d",
                              (long long)c->in[0].dims[axis], axis);
    return parts_run(c, axis, false);
}

/* Parts along the first dim that is not 1 are pieces of the input's memory. */
ortc_status ortc_split_plan(const void *state, ortc_plan *p, void **pstate)
{
    const ortc_view *x = &p->in[0];
    const int64_t bits = ortc_dtype_bits(x->dtype);
    int64_t outer, inner, offset = 0;
    int32_t axis;
    if (!ortc_axis_of(*(const int64_t *)state, x->rank, &axis)) return ORTC_OK;
    for (int32_t d = 0; d < x->rank; d++)
        if (x->dims[d] < 0) return ORTC_OK;
    if (ortc_view_count(x) == 0) return ORTC_OK;
    ortc_around(x, axis, &outer, &inner);
    if (outer != 1 || !ortc_split_fits(p->in, p->n_in, p->out, p->n_out, axis))
        return ORTC_OK;                       /* what does not fit, the run says */
    for (uint32_t i = 0; i < p->n_out; i++) { /* all or none: a step is made for what is left */
        if (ortc_split_part(p->in, p->n_in, p->out, p->n_out, axis, i) * inner * bits % 8) return ORTC_OK;
    }
    for (uint32_t i = 0; i < p->n_out; i++) {
        if (p->out[i].dtype) ortc_plan_view(p, i, 0, offset);
        offset += ortc_split_part(p->in, p->n_in, p->out, p->n_out, axis, i) * inner * bits / 8;
    }
    return ORTC_OK;
}

/* ---- ConstantOfShape ----------------------------------------------------------------------------------- */

typedef struct fill_job {
    const void *value;
    ortc_view *y;
} fill_job;

static ortc_status fill_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const ortc_attr value = ortc_node_attr(n, "value");
    void *state = calloc(1, 16); /* the widest element */
    if (!state) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    if (value.kind == ORTC_ATTR_TENSOR) {
        const ortc_port *t = &value.u.tensors[0];
        int64_t count = 1;
        for (int32_t d = 0; d < t->rank; d++) count = count == 1 && t->dims[d] == 1 ? 1 : 0;
        if (count != 1 || !t->data) {
            free(state);
            return ortc_prep_fail(prep, ORTC_INVALID_MODEL, "attribute value must have one element");
        }
        memcpy(state, t->data, ortc_bytes_of(ortc_dtype_bits(t->dtype), 1));
    }
    *out = state;
    return ORTC_OK;
}

static void fill_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    static const char zeros[16];
    const fill_job *j = arg;
    const uint32_t bits = ortc_dtype_bits(j->y->dtype);
    if (bits >= 8 && !memcmp(j->value, zeros, bits / 8)) { /* as most are */
        memset((char *)j->y->data + ortc_bytes_of(bits, begin), 0, ortc_bytes_of(bits, end - begin));
        return;
    }
    for (int64_t i = begin; i < end; i++) ortc_move_element(j->y->data, i, j->value, 0, bits);
}

static ortc_status fill_run(const void *state, const void *pstate, ortc_call *c)
{
    fill_job j = {state, &c->out[0]};
    ortc_clear_tail(j.y, ortc_view_count(j.y));
    return ortc_parallel(c, ortc_view_count(j.y), ortc_grain(1), fill_chunk, &j);
}

#define AXIS_KERNEL(symbol, title, ...) \
    const ortc_kernel symbol = {.size = ORTC_SIZED(ortc_kernel), \
                                .name = title, \
                                .prepare = ortc_axis_prepare, \
                                __VA_ARGS__}
AXIS_KERNEL(ortc_ref_concat, "concat.ref", .plan = ortc_concat_plan, .run = concat_run);
AXIS_KERNEL(ortc_ref_split, "split.ref", .host_in = 2, .plan = ortc_split_plan, .run = split_run);
const ortc_kernel ortc_ref_fill = {.size = ORTC_SIZED(ortc_kernel),
                                   .name = "constant_of_shape.ref",
                                   .host_in = 1,
                                   .prepare = fill_prepare,
                                   .run = fill_run};
