/* kernels/control/ref.c: If and Loop on ref: they run their subgraphs through the call (ortc_call_body) and
 * hand values on. */
#include <stdlib.h>
#include <string.h>

#include "kernels/control/control.h"
#include "kernels/control/search.h"

static ortc_status run_if(const void *state, const void *plan, ortc_call *c)
{
    (void)state, (void)plan;
    if (ortc_view_count(&c->in[0]) != 1)
        return ortc_call_fail(c, ORTC_SHAPE_MISMATCH, "the condition has %lld elements, expected 1",
                              (long long)ortc_view_count(&c->in[0]));
    ortc_value **out = calloc(c->n_out + 1u, sizeof *out);
    if (!out) return ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for %u results", c->n_out);
    ortc_status s = ortc_call_body(c, *(const uint8_t *)c->in[0].data ? "then_branch" : "else_branch", 0,
                                   NULL, c->n_out, out);
    for (uint32_t i = 0; i < c->n_out; i++) {
        if (s == ORTC_OK)
            s = ortc_call_give(c, i, out[i]);
        else if (out[i])
            ortc_call_drop(c, out[i]);
    }
    free(out);
    return s;
}

/* ---- Loop ---------------------------------------------------------------------------------------------- */

typedef struct loop {
    ortc_call *call;
    uint32_t n_carried, n_scans;
    ortc_value **carried; /* owned but for the first round */
    bool owned;
    ortc_value **in;    /* iteration, condition, carried */
    ortc_value **out;   /* condition, carried, scans */
    ortc_value **scans; /* rounds x n_scans */
    size_t rounds, room;
} loop;

static ortc_status make_scalar(ortc_call *c, ortc_dtype t, const void *data, size_t bytes, ortc_value **out)
{
    ortc_view v;
    ORTC_TRY(ortc_call_make(c, t, 0, NULL, out));
    ORTC_TRY(ortc_call_look(c, *out, &v));
    memcpy(v.data, data, bytes);
    return ORTC_OK;
}

static ortc_status round_trip(loop *l, int64_t iteration, uint8_t *go_on)
{
    ortc_call *c = l->call;
    ortc_value *number = NULL, *condition = NULL;
    ortc_status s = make_scalar(c, ORTC_I64, &iteration, sizeof iteration, &number);
    if (s == ORTC_OK) s = make_scalar(c, ORTC_BOOL, go_on, 1, &condition);
    l->in[0] = number;
    l->in[1] = condition;
    memcpy(l->in + 2, l->carried, l->n_carried * sizeof *l->in);
    if (s == ORTC_OK)
        s = ortc_call_body(c, "body", 2 + l->n_carried, l->in, 1 + l->n_carried + l->n_scans, l->out);
    if (number) ortc_call_drop(c, number);
    if (condition) ortc_call_drop(c, condition);
    if (s != ORTC_OK) return s;
    for (uint32_t i = 0; i < l->n_carried; i++) {
        if (l->owned) ortc_call_drop(c, l->carried[i]);
        l->carried[i] = l->out[1 + i];
    }
    l->owned = true;
    memcpy(l->scans + l->rounds * l->n_scans, l->out + 1 + l->n_carried, l->n_scans * sizeof *l->scans);
    l->rounds++;
    ortc_view v;
    s = ortc_call_look(c, l->out[0], &v);
    if (s == ORTC_OK && (v.dtype != ORTC_BOOL || ortc_view_count(&v) != 1))
        s = ortc_call_fail(c, ORTC_TYPE_MISMATCH, "the body's condition is not one bool");
    if (s == ORTC_OK) *go_on = *(const uint8_t *)v.data != 0;
    ortc_call_drop(c, l->out[0]);
    return s;
}

static ortc_status give_string_scan(loop *l, uint32_t scan, uint32_t out, int32_t rank, const int64_t *dims)
{
    ortc_call *c = l->call;
    ortc_value *all;
    ortc_view v;
    ORTC_TRY(ortc_call_strings(c, rank, dims, &all));
    ortc_status s = ORTC_OK;
    for (size_t r = 0; r < l->rounds && s == ORTC_OK; r++) {
        s = ortc_call_look(c, l->scans[r * l->n_scans + scan], &v);
        if (s == ORTC_OK && (v.dtype != ORTC_STRING || v.rank != rank - 1 ||
                             memcmp(v.dims, dims + 1, (size_t)v.rank * sizeof *dims)))
            s = ortc_call_fail(c, ORTC_SHAPE_MISMATCH,
                               "scan output %u: round %zu has another shape or type than the first", scan, r);
        for (int64_t i = 0; s == ORTC_OK && i < ortc_view_count(&v); i++) {
            int64_t n;
            const char *text = ortc_string_at(v.data, i, &n);
            s = ortc_call_append(c, all, text, (size_t)n);
        }
    }
    if (s == ORTC_OK) return ortc_call_give(c, out, all);
    ortc_call_drop(c, all);
    return s;
}

/* The rounds' results under each other, along a new first axis. */
static ortc_status give_scan(loop *l, uint32_t scan, uint32_t out)
{
    ortc_call *c = l->call;
    int64_t dims[ORTC_RANK_LIMIT + 1] = {(int64_t)l->rounds};
    ortc_view first = {.rank = 0}, v;
    size_t bytes = 0;
    if (l->rounds) {
        ORTC_TRY(ortc_call_look(c, l->scans[scan], &first));
        if (first.rank >= ORTC_RANK_LIMIT || (ortc_dtype_bits(first.dtype) < 8 && first.dtype != ORTC_STRING))
            return ortc_call_fail(c, ORTC_UNSUPPORTED, "scan output %u: %s of rank %d cannot be put together",
                                  scan, ortc_dtype_name(first.dtype), first.rank);
        ortc_copy_dims(dims + 1, first.dims, first.rank);
        bytes = (size_t)ortc_view_count(&first) * (ortc_dtype_bits(first.dtype) / 8);
    } else if (c->out[out].rank > 0) { /* no round: the extents that the body declares, 0 where it does not */
        first.rank = c->out[out].rank - 1;
        for (int32_t d = 1; d <= first.rank && d <= ORTC_RANK_LIMIT; d++)
            dims[d] = c->out[out].dims[d] > 0 ? c->out[out].dims[d] : 0;
    }
    if (c->out[out].dtype == ORTC_STRING) return give_string_scan(l, scan, out, first.rank + 1, dims);
    ORTC_TRY(ortc_call_resize(c, out, first.rank + 1, dims));
    if (!c->out[out].dtype) return ORTC_OK;
    for (size_t r = 0; r < l->rounds; r++) {
        ORTC_TRY(ortc_call_look(c, l->scans[r * l->n_scans + scan], &v));
        if (v.dtype != first.dtype || v.rank != first.rank ||
            memcmp(v.dims, first.dims, (size_t)v.rank * sizeof *dims))
            return ortc_call_fail(c, ORTC_SHAPE_MISMATCH,
                                  "scan output %u: round %zu has another shape or type than the first", scan,
                                  r);
        if (bytes) memcpy((char *)c->out[out].data + r * bytes, v.data, bytes);
    }
    return ORTC_OK;
}

static ortc_status give_carried(loop *l, uint32_t i)
{
    ortc_call *c = l->call;
    if (l->owned) {
        ortc_value *v = l->carried[i];
        l->carried[i] = NULL;
        return ortc_call_give(c, i, v);
    }
    ortc_value *v; /* no round at all: what came in goes out */
    ORTC_TRY(ortc_call_keep(c, l->carried[i], &v));
    return ortc_call_give(c, i, v);
}

static ortc_status run_rounds(loop *l)
{
    ortc_call *c = l->call;
    int64_t most = INT64_MAX;
    uint8_t go_on = 1;
    if (c->n_in > 0 && c->in[0].dtype && ortc_view_count(&c->in[0]) == 1)
        memcpy(&most, c->in[0].data, sizeof most);
    if (c->n_in > 1 && c->in[1].dtype && ortc_view_count(&c->in[1]) == 1)
        go_on = *(const uint8_t *)c->in[1].data != 0;
    for (uint32_t i = 0; i < l->n_carried; i++)
        if (!(l->carried[i] = ortc_call_value(c, (int32_t)i + 2)))
            return ortc_call_fail(c, ORTC_INVALID_MODEL, "the initial value %u is left out", i);
    for (int64_t i = 0; i < most && go_on; i++) {
        ORTC_TRY(ortc_poll(c));
        if (l->rounds == l->room) {
            size_t room = l->room ? l->room * 2 : 16;
            ortc_value **grown = realloc(l->scans, (room * l->n_scans + 1) * sizeof *grown);
            if (!grown)
                return ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for the results of %zu rounds", room);
            l->scans = grown;
            l->room = room;
        }
        ORTC_TRY(round_trip(l, i, &go_on));
    }
    for (uint32_t i = 0; i < l->n_carried; i++) ORTC_TRY(give_carried(l, i));
    for (uint32_t i = 0; i < l->n_scans; i++) ORTC_TRY(give_scan(l, i, l->n_carried + i));
    return ORTC_OK;
}

static ortc_status run_loop(const void *state, const void *plan, ortc_call *c)
{
    (void)state, (void)plan;
    loop l = {.call = c, .n_carried = c->n_in > 2 ? c->n_in - 2 : 0};
    if (c->n_out < l.n_carried)
        return ortc_call_fail(c, ORTC_INVALID_MODEL, "%u values go in, %u come out", l.n_carried, c->n_out);
    l.n_scans = c->n_out - l.n_carried;
    l.carried = calloc(l.n_carried + 1u, sizeof *l.carried);
    l.in = calloc(l.n_carried + 3u, sizeof *l.in);
    l.out = calloc(c->n_out + 2u, sizeof *l.out);
    ortc_status s = l.carried && l.in && l.out
                        ? run_rounds(&l)
                        : ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for %u values", l.n_carried);
    for (uint32_t i = 0; l.carried && l.owned && i < l.n_carried; i++)
        if (l.carried[i]) ortc_call_drop(c, l.carried[i]);
    for (size_t i = 0; i < l.rounds * l.n_scans; i++) ortc_call_drop(c, l.scans[i]);
    free(l.scans);
    free(l.carried);
    free(l.in);
    free(l.out);
    return s;
}

static const ortc_kernel kernel_if = {.size = sizeof(ortc_kernel),
                                      .flags = ORTC_KERNEL_LATE_OUT | ORTC_KERNEL_NO_CAPTURE |
                                               ORTC_KERNEL_VALUES,
                                      .name = "if.ref",
                                      .run = run_if};
static const ortc_kernel kernel_loop = {.size = sizeof(ortc_kernel),
                                        .flags = ORTC_KERNEL_LATE_OUT | ORTC_KERNEL_NO_CAPTURE |
                                                 ORTC_KERNEL_VALUES,
                                        .name = "loop.ref",
                                        .run = run_loop};
ORTC_KERNELS(ref, control, ORTC_KERNEL("If", 1, ORTC_NEWEST, (ORTC_TYPES_ANY), &kernel_if),
             ORTC_KERNEL("Loop", 1, ORTC_NEWEST, (ORTC_TYPES_ANY), &kernel_loop),
             ORTC_KERNEL("Scan", 9, ORTC_NEWEST, (ORTC_TYPES_ANY), &ortc_ref_scan),
             ORTC_KERNEL_IN("com.microsoft", "GreedySearch", 1, 1, (ORTC_TYPES_ANY), &ortc_ref_greedy_search),
             ORTC_KERNEL_IN("com.microsoft", "Sampling", 1, 1, (ORTC_TYPES_ANY), &ortc_ref_sampling),
             ORTC_KERNEL_IN("com.microsoft", "BeamSearch", 1, 1, (ORTC_TYPES_ANY), &ortc_ref_beam_search),
             ORTC_KERNEL_IN("com.microsoft", "WhisperBeamSearch", 1, 1, (ORTC_TYPES_ANY),
                            &ortc_ref_beam_search));
