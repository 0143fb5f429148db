/* kernels/control/ref_scan.c: Scan on ref: slices of the scan inputs go through the body one after the other,
 * the state from turn to turn, and what each turn gives is put together along an axis.
 */
#include <stdlib.h>

#include "kernels/common/strings.h"
#include "kernels/control/control.h"

typedef struct scan_state {
    int64_t n_scans; /* scan inputs */
    size_t n_in_axes, n_out_axes, n_in_directions, n_out_directions;
    const int64_t *in_axes, *out_axes, *in_directions, *out_directions; /* the node's; NULL: all 0 */
} scan_state;

static ortc_status scan_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    scan_state *s = calloc(1, sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    s->n_scans = ortc_node_int(n, "num_scan_inputs", 0);
    s->in_axes = ortc_node_ints(n, "scan_input_axes", &s->n_in_axes);
    s->out_axes = ortc_node_ints(n, "scan_output_axes", &s->n_out_axes);
    s->in_directions = ortc_node_ints(n, "scan_input_directions", &s->n_in_directions);
    s->out_directions = ortc_node_ints(n, "scan_output_directions", &s->n_out_directions);
    *out = s;
    return ORTC_OK;
}

static int64_t at_or_0(const int64_t *list, size_t n, uint32_t i) { return list && i < n ? list[i] : 0; }

typedef struct scan {
    ortc_call *call;
    const scan_state *state;
    uint32_t n_states, n_scans, n_outs; /* n_outs: scan outputs */
    int64_t length;
    ortc_value **states; /* owned but for the first turn */
    bool owned;
    ortc_value **in, **out;
    ortc_value **made; /* n_outs x length, owned */
} scan;

/* A tensor as [outer, extent, inner] around an axis. */
static void around(int32_t rank, const int64_t *dims, int32_t axis, int64_t *outer, int64_t *inner)
{
    *outer = *inner = 1;
    for (int32_t d = 0; d < rank; d++) *(d < axis ? outer : inner) *= d == axis ? 1 : dims[d];
}

static ortc_status slice(ortc_call *c, const ortc_view *x, int32_t axis, int64_t at, ortc_value **out)
{
    int64_t dims[ORTC_RANK_LIMIT], outer, inner;
    int32_t rank = 0;
    for (int32_t d = 0; d < x->rank; d++)
        if (d != axis) dims[rank++] = x->dims[d];
    around(x->rank, x->dims, axis, &outer, &inner);
    if (x->dtype == ORTC_STRING) {
        ORTC_TRY(ortc_call_strings(c, rank, dims, out));
        for (int64_t i = 0; i < outer * inner; i++) {
            const ortc_span t = ortc_span_at(x, (i / inner * x->dims[axis] + at) * inner + i % inner);
            ORTC_TRY(ortc_call_append(c, *out, t.text, t.length));
        }
        return ORTC_OK;
    }
    ortc_view y;
    ORTC_TRY(ortc_call_make(c, x->dtype, rank, dims, out));
    ORTC_TRY(ortc_call_look(c, *out, &y));
    ortc_clear_tail(&y, outer * inner);
    for (int64_t r = 0; r < outer; r++)
        ortc_move_elements(y.data, r * inner, x->data, (r * x->dims[axis] + at) * inner, inner,
                           ortc_dtype_bits(x->dtype));
    return ORTC_OK;
}

static ortc_status turn(scan *s, int64_t t)
{
    ortc_call *c = s->call;
    ortc_status status = ORTC_OK;
    for (uint32_t i = 0; i < s->n_states; i++) s->in[i] = s->states[i];
    for (uint32_t i = 0; i < s->n_scans; i++) s->in[s->n_states + i] = NULL;
    for (uint32_t i = 0; i < s->n_scans && status == ORTC_OK; i++) {
        const ortc_view *x = &c->in[s->n_states + i];
        const int64_t at = at_or_0(s->state->in_directions, s->state->n_in_directions, i) ? s->length - 1 - t
                                                                                          : t;
        int32_t axis = 0;
        ortc_axis_of(at_or_0(s->state->in_axes, s->state->n_in_axes, i), x->rank, &axis);
        status = slice(c, x, axis, at, &s->in[s->n_states + i]);
    }
    if (status == ORTC_OK)
        status = ortc_call_body(c, "body", s->n_states + s->n_scans, s->in, s->n_states + s->n_outs, s->out);
    for (uint32_t i = 0; i < s->n_scans; i++)
        if (s->in[s->n_states + i]) ortc_call_drop(c, s->in[s->n_states + i]);
    if (status != ORTC_OK) return status;
    for (uint32_t i = 0; i < s->n_states; i++) {
        if (s->owned) ortc_call_drop(c, s->states[i]);
        s->states[i] = s->out[i];
    }
    s->owned = true;
    for (uint32_t i = 0; i < s->n_outs; i++) s->made[i * s->length + t] = s->out[s->n_states + i];
    return ORTC_OK;
}

/* Element t of output `out` stands at position t of the axis, or at that from the end. */
static ortc_status stack(scan *s, uint32_t out, const ortc_view *parts)
{
    ortc_call *c = s->call;
    ortc_view *y = &c->out[s->n_states + out];
    const ortc_view *first = &parts[0];
    int64_t dims[ORTC_RANK_LIMIT + 1], outer, inner;
    int32_t rank = s->length ? first->rank + 1 : y->rank, axis = 0;
    if (rank > ORTC_RANK_LIMIT ||
        !ortc_axis_of(at_or_0(s->state->out_axes, s->state->n_out_axes, out), rank, &axis))
        return ortc_call_fail(c, ORTC_INVALID_MODEL, "scan output %u: its axis is outside of rank %d", out,
                              rank);
    for (int32_t d = 0, from = 0; d < rank; d++)
        dims[d] = d == axis ? s->length : s->length ? first->dims[from++] : y->dims[d] > 0 ? y->dims[d] : 0;
    around(rank, dims, axis, &outer, &inner);
    for (int64_t t = 1; t < s->length; t++)
        if (parts[t].dtype != first->dtype || parts[t].rank != first->rank ||
            memcmp(parts[t].dims, first->dims, (size_t)first->rank * sizeof *dims))
            return ortc_call_fail(c, ORTC_SHAPE_MISMATCH,
                                  "scan output %u: turn %lld has another shape or type than the first", out,
                                  (long long)t);
    ortc_span *spans = NULL;
    if (y->dtype != ORTC_STRING) {
        ORTC_TRY(ortc_call_resize(c, s->n_states + out, rank, dims));
        ortc_clear_tail(y, outer * s->length * inner);
    } else if (!(spans = malloc((size_t)(outer * s->length * inner) * sizeof *spans + 1)))
        return ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for strings");
    const bool backwards = at_or_0(s->state->out_directions, s->state->n_out_directions, out) != 0;
    for (int64_t t = 0; t < s->length; t++)
        for (int64_t r = 0; r < outer; r++) {
            const int64_t to = (r * s->length + (backwards ? s->length - 1 - t : t)) * inner;
            for (int64_t i = 0; spans && i < inner; i++)
                spans[to + i] = ortc_span_at(&parts[t], r * inner + i);
            if (!spans)
                ortc_move_elements(y->data, to, parts[t].data, r * inner, inner,
                                   ortc_dtype_bits(first->dtype));
        }
    const ortc_status status = spans ? ortc_give_spans(c, s->n_states + out, rank, dims, spans) : ORTC_OK;
    free(spans);
    return status;
}

static ortc_status give_all(scan *s)
{
    ortc_call *c = s->call;
    for (uint32_t i = 0; i < s->n_states; i++) {
        ortc_value *v;
        ORTC_TRY(ortc_call_keep(c, s->states[i], &v));
        ORTC_TRY(ortc_call_give(c, i, v));
    }
    ortc_view *parts = calloc((size_t)s->length + 1, sizeof *parts);
    ortc_status status = parts ? ORTC_OK
                               : ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for %lld turns",
                                                (long long)s->length);
    for (uint32_t i = 0; i < s->n_outs && status == ORTC_OK; i++) {
        if (!ortc_view_present(&c->out[s->n_states + i])) continue;
        for (int64_t t = 0; t < s->length && status == ORTC_OK; t++)
            status = ortc_call_look(c, s->made[i * s->length + t], &parts[t]);
        if (status == ORTC_OK) status = stack(s, i, parts);
    }
    free(parts);
    return status;
}

static ortc_status run_turns(scan *s)
{
    ortc_call *c = s->call;
    for (uint32_t i = 0; i < s->n_states; i++)
        if (!(s->states[i] = ortc_call_value(c, (int32_t)i)))
            return ortc_call_fail(c, ORTC_INVALID_MODEL, "the initial state %u is left out", i);
    for (int64_t t = 0; t < s->length; t++) {
        ORTC_TRY(ortc_poll(c));
        ORTC_TRY(turn(s, t));
    }
    return give_all(s);
}

/* Turns there are: the extent of every scan input along its axis. */
static ortc_status find_length(scan *s)
{
    ortc_call *c = s->call;
    for (uint32_t i = 0; i < s->n_scans; i++) {
        const ortc_view *x = &c->in[s->n_states + i];
        int32_t axis = 0;
        if (!x->dtype || !ortc_axis_of(at_or_0(s->state->in_axes, s->state->n_in_axes, i), x->rank, &axis))
            return ortc_call_fail(c, ORTC_INVALID_MODEL, "scan input %u: its axis is outside of rank %d", i,
                                  x->rank);
        if (i && x->dims[axis] != s->length)
            return ortc_call_fail(c, ORTC_SHAPE_MISMATCH,
                                  "scan input %u has %lld elements along its axis, the first has %lld", i,
                                  (long long)x->dims[axis], (long long)s->length);
        s->length = x->dims[axis];
    }
    return ORTC_OK;
}

static ortc_status run_scan(const void *state, const void *pstate, ortc_call *c)
{
    scan s = {.call = c, .state = state, .n_scans = (uint32_t)((const scan_state *)state)->n_scans};
    if (s.n_scans < 1 || s.n_scans > c->n_in || c->n_out < c->n_in - s.n_scans)
        return ortc_call_fail(c, ORTC_INVALID_MODEL, "%u of %u inputs are scanned, and there are %u outputs",
                              s.n_scans, c->n_in, c->n_out);
    s.n_states = c->n_in - s.n_scans;
    s.n_outs = c->n_out - s.n_states;
    ORTC_TRY(find_length(&s));
    s.states = calloc(c->n_in + 1u, sizeof *s.states);
    s.in = calloc(c->n_in + 1u, sizeof *s.in);
    s.out = calloc(c->n_out + 1u, sizeof *s.out);
    s.made = calloc((size_t)s.length * s.n_outs + 1, sizeof *s.made);
    ortc_status status = s.states && s.in && s.out && s.made
                             ? run_turns(&s)
                             : ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for %lld turns",
                                              (long long)s.length);
    for (uint32_t i = 0; s.states && s.owned && i < s.n_states; i++) ortc_call_drop(c, s.states[i]);
    for (int64_t i = 0; s.made && i < s.length * s.n_outs; i++)
        if (s.made[i]) ortc_call_drop(c, s.made[i]);
    free(s.states);
    free(s.in);
    free(s.out);
    free(s.made);
    return status;
}

const ortc_kernel ortc_ref_scan = {.size = ORTC_SIZED(ortc_kernel),
                                   .flags = ORTC_KERNEL_LATE_OUT | ORTC_KERNEL_NO_CAPTURE,
                                   .name = "scan.ref",
                                   .prepare = scan_prepare,
                                   .run = run_scan};
