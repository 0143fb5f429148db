/* kernels/sequence/ref_join.c: SplitToSequence and ConcatFromSequence on ref: pieces of a tensor along an
 * axis. */
#include <stdlib.h>

#include "kernels/common/strings.h"
#include "kernels/sequence/sequence.h"

typedef struct join_state {
    int64_t axis;
    bool flag; /* keepdims, new_axis */
} join_state;

static ortc_status prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    join_state *s = calloc(1, sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    s->axis = ortc_node_int(n, "axis", 0);
    s->flag = !strcmp(ortc_node_op(n), "SplitToSequence") ? ortc_node_int(n, "keepdims", 1) != 0
                                                          : ortc_node_int(n, "new_axis", 0) != 0;
    *out = s;
    return ORTC_OK;
}

/* A tensor as [outer, dims[axis], inner]. Without a sign: beside an extent of 0 the others may be of any
 * size. */
static void around(const ortc_view *v, int32_t axis, int64_t *outer, int64_t *inner)
{
    *outer = *inner = 1;
    for (int32_t d = 0; d < v->rank; d++)
        if (d != axis)
            *(d < axis ? outer
                       : inner) = (int64_t)((uint64_t) * (d < axis ? outer : inner) * (uint64_t)v->dims[d]);
}

/* ---- SplitToSequence ----------------------------------------------------------------------------------- */

/* `count` positions along the axis from `first` on, as a tensor of `rank` dims. */
static ortc_status piece(ortc_call *c, int32_t axis, int64_t first, int64_t count, int32_t rank,
                         const int64_t *dims, ortc_value **out)
{
    const ortc_view *x = &c->in[0];
    int64_t outer, inner;
    around(x, axis, &outer, &inner);
    const int64_t row = x->dims[axis] * inner, run = count * inner;
    if (x->dtype != ORTC_STRING) {
        ortc_view y;
        const uint32_t bits = ortc_dtype_bits(x->dtype);
        ORTC_TRY(ortc_call_make(c, x->dtype, rank, dims, out));
        ORTC_TRY(ortc_call_look(c, *out, &y));
        for (int64_t r = 0; r < outer; r++)
            ortc_move_elements(y.data, r * run, x->data, r * row + first * inner, run, bits);
        return ORTC_OK;
    }
    ORTC_TRY(ortc_call_strings(c, rank, dims, out));
    for (int64_t r = 0; r < outer; r++)
        for (int64_t i = 0; i < run; i++) {
            const ortc_span t = ortc_span_at(x, r * row + first * inner + i);
            ORTC_TRY(ortc_call_append(c, *out, t.text, t.length));
        }
    return ORTC_OK;
}

/* How many pieces there are, and how long the i-th is. */
typedef struct pieces {
    const ortc_view *split; /* NULL: of one each */
    int64_t n, each, extent;
} pieces;

static int64_t length_of(const pieces *p, int64_t i)
{
    if (p->split && p->split->rank > 0) return ortc_load_i64(p->split->data, p->split->dtype, i);
    return (i + 1) * p->each <= p->extent ? p->each : p->extent - i * p->each;
}

static ortc_status read_pieces(ortc_call *c, int64_t extent, pieces *p)
{
    *p = (pieces){.split = c->n_in > 1 && c->in[1].dtype ? &c->in[1] : NULL,
                  .n = extent,
                  .each = 1,
                  .extent = extent};
    if (!p->split) return ORTC_OK;
    if (p->split->rank == 0) {
        p->each = ortc_load_i64(p->split->data, p->split->dtype, 0);
        if (p->each < 1)
            return ortc_call_fail(c, ORTC_INVALID_ARGUMENT, "split is %lld, expected at least 1",
                                  (long long)p->each);
        p->n = extent / p->each + (extent % p->each != 0);
        return ORTC_OK;
    }
    int64_t sum = 0;
    p->n = ortc_view_count(p->split);
    for (int64_t i = 0; i < p->n; i++) {
        const int64_t length = length_of(p, i);
        if (length < 0 || length > extent - sum)
            return ortc_call_fail(c, ORTC_INVALID_ARGUMENT,
                                  "split[%lld] is %lld: the pieces do not add up to the %lld of the axis",
                                  (long long)i, (long long)length, (long long)extent);
        sum += length;
    }
    return sum == extent ? ORTC_OK
                         : ortc_call_fail(c, ORTC_INVALID_ARGUMENT,
                                          "the pieces of split add up to %lld, the axis has %lld",
                                          (long long)sum, (long long)extent);
}

static ortc_status split_run(const void *state, const void *pstate, ortc_call *c)
{
    const join_state *s = state;
    const ortc_view *x = &c->in[0];
    const ortc_type element = {ORTC_KIND_TENSOR, 0, x->dtype, NULL};
    int64_t dims[ORTC_RANK_LIMIT], first = 0;
    int32_t axis, rank = 0;
    pieces p;
    if (!ortc_axis_of(s->axis, x->rank, &axis))
        return ortc_call_fail(c, ORTC_INVALID_MODEL, "axis %lld is outside of rank %d", (long long)s->axis,
                              x->rank);
    ORTC_TRY(read_pieces(c, x->dims[axis], &p));
    const bool keep = s->flag || p.split;
    const int32_t at = axis; /* where dims holds the piece's length */
    for (int32_t d = 0; d < x->rank; d++)
        if (d != axis || keep) dims[rank++] = x->dims[d];
    ortc_value **elements = calloc((size_t)p.n + 1, sizeof *elements), *sequence = NULL;
    ortc_status status = elements ? ORTC_OK
                                  : ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for %lld pieces",
                                                   (long long)p.n);
    for (int64_t i = 0; i < p.n && status == ORTC_OK; i++) {
        const int64_t length = length_of(&p, i);
        if (keep) dims[at] = length;
        status = piece(c, axis, first, length, rank, dims, &elements[i]);
        first += length;
        if (status == ORTC_OK && i % 1024 == 1023) status = ortc_poll(c);
    }
    if (status == ORTC_OK) status = ortc_call_sequence(c, &element, p.n, elements, &sequence);
    for (int64_t i = 0; elements && i < p.n && elements[i]; i++) ortc_call_drop(c, elements[i]);
    free(elements);
    return status == ORTC_OK ? ortc_call_give(c, 0, sequence) : status;
}

/* ---- ConcatFromSequence -------------------------------------------------------------------------------- */

/* The elements side by side; all agree but along the axis. */
static ortc_status put_together(ortc_call *c, const ortc_view *parts, int64_t n, int32_t axis, bool added,
                                int32_t rank, const int64_t *dims)
{
    const ortc_dtype t = parts[0].dtype;
    const ortc_view whole = {.rank = rank, .dims = dims};
    const int64_t count = ortc_view_count(&whole);
    int64_t outer, inner, at = 0;
    around(&whole, axis, &outer, &inner);
    ortc_span *spans = NULL;
    if (t != ORTC_STRING)
        ORTC_TRY(ortc_call_resize(c, 0, rank, dims));
    else if (!(spans = malloc((size_t)count * sizeof *spans + 1)))
        return ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for %lld strings", (long long)count);
    for (int64_t r = 0; r < outer; r++)
        for (int64_t i = 0; i < n; i++) {
            const int64_t run = inner * (added ? 1 : parts[i].dims[axis]);
            if (spans)
                for (int64_t k = 0; k < run; k++) spans[at + k] = ortc_span_at(&parts[i], r * run + k);
            else
                ortc_move_elements(c->out[0].data, at, parts[i].data, r * run, run, ortc_dtype_bits(t));
            at += run;
        }
    const ortc_status s = spans ? ortc_give_spans(c, 0, rank, dims, spans) : ORTC_OK;
    free(spans);
    return s;
}

static ortc_status concat_parts(ortc_call *c, const join_state *s, const ortc_view *parts, int64_t n)
{
    const ortc_view *first = &parts[0];
    const int32_t rank = first->rank + s->flag;
    int64_t dims[ORTC_RANK_LIMIT + 1], along = 0;
    int32_t axis;
    if (!ortc_axis_of(s->axis, rank, &axis) || rank > ORTC_RANK_LIMIT)
        return ortc_call_fail(c, ORTC_INVALID_ARGUMENT, "axis %lld is outside of rank %d", (long long)s->axis,
                              rank);
    for (int64_t i = 0; i < n; i++) {
        bool fits = parts[i].rank == first->rank;
        for (int32_t d = 0; fits && d < first->rank; d++)
            fits = parts[i].dims[d] == first->dims[d] || (d == axis && !s->flag);
        if (!fits)
            return ortc_call_fail(c, ORTC_SHAPE_MISMATCH, "element %lld has another shape than the first",
                                  (long long)i);
        if (__builtin_add_overflow(along, s->flag ? 1 : parts[i].dims[axis], &along))
            return ortc_call_fail(c, ORTC_LIMIT, "the elements together are too long along axis %d", axis);
    }
    for (int32_t d = 0, from = 0; d < rank; d++) {
        dims[d] = d == axis ? along : first->dims[from];
        from += !(d == axis && s->flag);
    }
    return put_together(c, parts, n, axis, s->flag, rank, dims);
}

static ortc_status concat_run(const void *state, const void *pstate, ortc_call *c)
{
    ortc_value *v = ortc_call_value(c, 0);
    const int64_t n = ortc_call_count(c, v);
    if (n == 0)
        return ortc_call_fail(c, ORTC_INVALID_ARGUMENT,
                              "the sequence is empty: there is nothing to put together");
    ortc_view *parts = calloc((size_t)n, sizeof *parts);
    ortc_status s = parts
                        ? ORTC_OK
                        : ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for %lld elements", (long long)n);
    for (int64_t i = 0; i < n && s == ORTC_OK; i++)
        s = ortc_call_look(c, ortc_call_element(c, v, i), &parts[i]);
    if (s == ORTC_OK) s = concat_parts(c, state, parts, n);
    free(parts);
    return s;
}

const ortc_kernel ortc_ref_split_to_sequence = {.size = ORTC_SIZED(ortc_kernel),
                                                .flags = ORTC_KERNEL_VALUES,
                                                .host_in = 2,
                                                .name = "split_to_sequence.ref",
                                                .prepare = prepare,
                                                .run = split_run};
const ortc_kernel ortc_ref_concat_from_sequence = {.size = ORTC_SIZED(ortc_kernel),
                                                   .flags = ORTC_KERNEL_VALUES | ORTC_KERNEL_LATE_OUT,
                                                   .name = "concat_from_sequence.ref",
                                                   .prepare = prepare,
                                                   .run = concat_run};
