/* runtime/session/state.c: the interface of tied state: checking ties, making, truncating and releasing
 * states. What happens in a run is in runtime/execute/tied.c.
 */
#include "runtime/execute/tied.h"

#include "create.h"

/* ---- Ties of a session --------------------------------------------------------------------------------- */

static uint32_t find(const ortc_graph_input *list, uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n; i++)
        if (name && !strcmp(list[i].name, name)) return i;
    return UINT32_MAX;
}

static ortc_status check_types(const ortc_edge *in, const ortc_edge *out, const ortc_tie *tie,
                               ortc_error *error)
{
    char a[96] = "not known", b[96];
    ortc_text ta = ORTC_TEXT(a), tb = ORTC_TEXT(b);
    if (!in->type || in->type->kind != ORTC_KIND_TENSOR || in->rank < 0 || in->type->dtype == ORTC_STRING) {
        if (in->type) ortc_text_type(&ta, in->type);
        return ortc_fail(
            error, ORTC_TYPE_MISMATCH,
            "tie of '%s': an input can be tied when it is a tensor of numbers and of known rank; "
            "its type is %s",
            tie->input, a);
    }
    if (out->type && !ortc_type_equal(in->type, out->type)) {
        ortc_text_type(&ta, in->type);
        ortc_text_type(&tb, out->type);
        return ortc_fail(error, ORTC_TYPE_MISMATCH, "tie of '%s' (%s) to '%s' (%s): they must have one type",
                         tie->input, a, tie->output, b);
    }
    if (out->rank >= 0 && in->rank != out->rank)
        return ortc_fail(error, ORTC_SHAPE_MISMATCH,
                         "tie of '%s' (rank %d) to '%s' (rank %d): they must have one rank", tie->input,
                         in->rank, tie->output, out->rank);
    if (tie->axis < -1 || tie->axis >= in->rank)
        return ortc_fail(error, ORTC_INVALID_ARGUMENT, "tie of '%s': axis %d: expected -1 (as a whole) to %d",
                         tie->input, tie->axis, in->rank - 1);
    return ORTC_OK;
}

/* Fixed or growing, and its capacity. */
static ortc_status check_axis(const ortc_edge *in, const ortc_edge *out, const ortc_tie *tie,
                              ortc_unit_tie *st, ortc_error *error)
{
    for (int32_t i = 0; i < in->rank && out->rank >= 0; i++)
        if (ortc_dim_is_number(in->dims[i]) && ortc_dim_is_number(out->dims[i]) &&
            in->dims[i] != out->dims[i])
            return ortc_fail(error, ORTC_SHAPE_MISMATCH,
                             "tie of '%s' to '%s': axis %d is %lld in the input and %lld in the output",
                             tie->input, tie->output, i, (long long)in->dims[i], (long long)out->dims[i]);
    if (tie->axis < 0)
        return tie->capacity ? ortc_fail(error, ORTC_INVALID_ARGUMENT,
                                         "tie of '%s': a capacity needs an axis", tie->input)
                             : ORTC_OK;
    ortc_dim extent = in->dims[tie->axis];
    if (ortc_dim_is_number(extent)) {
        if (tie->capacity && tie->capacity != extent)
            return ortc_fail(error, ORTC_INVALID_ARGUMENT,
                             "tie of '%s': the model fixes axis %d to %lld, the capacity is %lld", tie->input,
                             tie->axis, (long long)extent, (long long)tie->capacity);
        st->capacity = extent;
        return ORTC_OK;
    }
    if (tie->capacity < 1)
        return ortc_fail(error, ORTC_INVALID_ARGUMENT,
                         "tie of '%s': axis %d has no fixed extent: expected a capacity of at least 1",
                         tie->input, tie->axis);
    st->capacity = tie->capacity;
    st->grows = out->rank < 0 || out->dims[tie->axis] != extent;
    if (st->grows && ortc_dtype_bits(in->type->dtype) < 8)
        return ortc_fail(error, ORTC_UNSUPPORTED, "tie of '%s': values of less than a byte cannot grow",
                         tie->input);
    int64_t first = in->constant ? in->constant->dims[tie->axis] : -1;
    if (st->grows ? first > st->capacity : first >= 0 && first != st->capacity)
        return ortc_fail(error, ORTC_INVALID_ARGUMENT,
                         "tie of '%s': its default has %lld positions, the capacity is %lld", tie->input,
                         (long long)first, (long long)st->capacity);
    return ORTC_OK;
}

ortc_status ortc_unit_tie_all(ortc_unit *u, const ortc_session_options *o, ortc_error *error)
{
    const ortc_graph *g = u->placed.graph;
    if (!o->n_ties) return ORTC_OK;
    if (!o->ties)
        return ortc_fail(error, ORTC_INVALID_ARGUMENT, "%zu ties are given, and their list is NULL",
                         o->n_ties);
    if (!(u->ties = ortc_arena_array(&u->placed.graph->arena, o->n_ties, sizeof *u->ties)))
        return ortc_no_memory(error, o->n_ties * sizeof *u->ties);
    for (size_t i = 0; i < o->n_ties; i++) {
        const ortc_tie *tie = &o->ties[i];
        ortc_unit_tie *st = &u->ties[i];
        *st = (ortc_unit_tie){find(g->inputs, g->n_inputs, tie->input),
                              find(g->outputs, g->n_outputs, tie->output), tie->axis, false, 0};
        if (st->input == UINT32_MAX)
            return ortc_fail(error, ORTC_INVALID_ARGUMENT, "tie %zu: the model has no input '%s'", i,
                             tie->input ? tie->input : "(NULL)");
        if (st->output == UINT32_MAX)
            return ortc_fail(error, ORTC_INVALID_ARGUMENT, "tie %zu: the model has no output '%s'", i,
                             tie->output ? tie->output : "(NULL)");
        for (size_t k = 0; k < i; k++)
            if (u->ties[k].input == st->input || u->ties[k].output == st->output)
                return ortc_fail(error, ORTC_INVALID_ARGUMENT, "tie %zu: '%s' is tied already", i,
                                 u->ties[k].input == st->input ? tie->input : tie->output);
        const ortc_edge *in = g->inputs[st->input].edge, *out = g->outputs[st->output].edge;
        ORTC_TRY(check_types(in, out, tie, error));
        ORTC_TRY(check_axis(in, out, tie, st, error));
    }
    u->n_ties = (uint32_t)o->n_ties;
    return ORTC_OK;
}

/* ---- States -------------------------------------------------------------------------------------------- */

ortc_status ortc_state_create(ortc_session *s, ortc_state **out, ortc_error *error)
{
    if (!s || !out) return ortc_fail(error, ORTC_INVALID_ARGUMENT, "ortc_state_create: an argument is NULL");
    *out = NULL;
    ortc_unit *u = &s->unit;
    if (!u->n_ties)
        return ortc_fail(error, ORTC_INVALID_ARGUMENT,
                         "the session has no ties: give them in ortc_session_options.ties");
    ortc_state *st = calloc(1, sizeof *st + u->n_ties * sizeof *st->ties);
    if (!st) return ortc_no_memory(error, sizeof *st + u->n_ties * sizeof *st->ties);
    st->unit = ortc_unit_retain(u);
    *out = st;
    return ORTC_OK;
}

int64_t ortc_state_length(const ortc_state *st)
{
    int64_t length = 0;
    for (uint32_t i = 0; st && i < st->unit->n_ties; i++)
        length = st->ties[i].length > length ? st->ties[i].length : length;
    return length;
}

/* A growing value keeps the first n positions of every slice outside its axis. */
static ortc_status shorten(ortc_tied *t, int32_t axis, int64_t n, ortc_error *error)
{
    const ortc_value *v = t->value;
    int64_t outer = 1, inner = ortc_dtype_bits(v->type->dtype) / 8;
    for (int32_t i = 0; i < v->rank; i++) *(i < axis ? &outer : &inner) *= i == axis ? 1 : v->dims[i];
    size_t from = (size_t)(v->dims[axis] * inner), to = (size_t)(n * inner);
    char *data = t->device ? malloc(v->bytes + 1) : v->data;
    ortc_status status = !data ? ortc_no_memory(error, v->bytes) : ORTC_OK;
    if (status == ORTC_OK && t->device)
        status = ortc_device_transfer(NULL, data, t->device, v->data, v->bytes, error);
    for (int64_t i = 1; i < outer && to && status == ORTC_OK; i++)
        memmove(data + (size_t)i * to, data + (size_t)i * from, to);
    if (status == ORTC_OK && t->device)
        status = ortc_device_transfer(t->device, v->data, NULL, data, (size_t)outer * to, error);
    if (t->device) free(data);
    if (status == ORTC_OK) {
        ortc_tied_set_extent(t, axis, n);
        t->length = n;
    }
    return status;
}

static ortc_status truncate_all(ortc_state *st, int64_t length, ortc_error *error)
{
    const ortc_unit *u = st->unit;
    int64_t now = ortc_state_length(st);
    if (length < 0 || length > now)
        return ortc_fail(error, ORTC_INVALID_ARGUMENT,
                         "the state has %lld positions: it cannot be truncated to %lld", (long long)now,
                         (long long)length);
    for (uint32_t i = 0; i < u->n_ties && length && length < now; i++)
        if (u->ties[i].axis < 0)
            return ortc_fail(
                error, ORTC_INVALID_STATE,
                "the state of '%s' has no axis: it cannot be rolled back to %lld, only started over (0)",
                u->placed.graph->inputs[u->ties[i].input].name, (long long)length);
    for (uint32_t i = 0; i < u->n_ties; i++) {
        ortc_tied *t = &st->ties[i];
        if (!t->value) continue;
        if (!length)
            ORTC_TRY(ortc_state_start(u, &u->ties[i], t, error));
        else if (length < t->length && u->ties[i].grows)
            ORTC_TRY(shorten(t, u->ties[i].axis, length, error));
        else if (length < t->length)
            t->length = length;
    }
    return ORTC_OK;
}

ortc_status ortc_state_truncate(ortc_state *st, int64_t length, ortc_error *error)
{
    if (!st) return ortc_fail(error, ORTC_INVALID_ARGUMENT, "ortc_state_truncate: the state is NULL");
    if (atomic_exchange(&st->busy, true))
        return ortc_fail(error, ORTC_INVALID_STATE, "the state is in use by a run");
    ortc_status status = truncate_all(st, length, error);
    ortc_state_return(st);
    return status;
}

void ortc_state_release(ortc_state *st)
{
    if (!st) return;
    ortc_unit *u = st->unit;
    for (uint32_t i = 0; i < u->n_ties; i++) {
        ortc_tied *t = &st->ties[i];
        ortc_value_release(t->value);
        for (int k = 0; k < 2; k++)
            if (t->memory[k]) {
                t->device ? ortc_device_free(t->device, t->memory[k], t->bytes)
                          : ortc_free_with(u->allocator, t->memory[k], t->bytes);
                ortc_unit_unreserve(u, t->bytes);
            }
    }
    free(st);
    ortc_unit_release(u);
}
