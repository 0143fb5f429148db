/* runtime/execute/tied.c: tied state in a run (tied.h). */
#include "tied.h"

void ortc_tied_set_extent(ortc_tied *t, int32_t axis, int64_t extent)
{
    t->value->dims[axis] = extent; /* at most the capacity, whose bytes were checked */
    t->value->count = ortc_view_count(&(ortc_view){.rank = t->value->rank, .dims = t->value->dims});
    ortc_tensor_bytes(t->value->type->dtype, t->value->count, &t->value->bytes);
}

ortc_status ortc_state_start(const ortc_unit *u, const ortc_unit_tie *tie, ortc_tied *t, ortc_error *error)
{
    const ortc_constant *otherwise = u->placed.graph->inputs[tie->input].edge->constant;
    ortc_status status = ORTC_OK;
    if (otherwise && otherwise->bytes) /* of the state's own shape: make() */
        status = ortc_device_transfer(t->device, t->memory[t->now], NULL, otherwise->data, otherwise->bytes,
                                      error);
    else if (!tie->grows && !t->device)
        memset(t->memory[t->now], 0, t->bytes);
    else if (!tie->grows) {
        void *zeros = calloc(1, t->bytes + 1);
        status = zeros ? ortc_device_transfer(t->device, t->memory[t->now], NULL, zeros, t->bytes, error)
                       : ortc_no_memory(error, t->bytes);
        free(zeros);
    }
    if (status != ORTC_OK) return status;
    t->length = 0;
    if (tie->grows)
        ortc_tied_set_extent(t, tie->axis, t->length = otherwise ? otherwise->dims[tie->axis] : 0);
    return ORTC_OK;
}

/* The device whose kernel reads the input, for which it need not be copied then. */
static ortc_open_device *reader_of(const ortc_unit *u, const ortc_unit_tie *tie)
{
    const ortc_placed *p = &u->placed;
    for (const ortc_use *use = p->graph->inputs[tie->input].edge->uses; use && !p->decides[tie->input];
         use = use->next) {
        if (!use->node) continue;
        const ortc_target *d = ortc_target_of(p, use->node);
        bool on_host = ortc_kernel_of(p, use->node)->host_in >> (use->port < 31 ? use->port : 31) & 1;
        return d->space && !on_host ? d->open : NULL;
    }
    return NULL;
}

/* ---- Memory -------------------------------------------------------------------------------------------- */

static ortc_status allocate(ortc_unit *u, ortc_tied *t, uint32_t which, const char *name, ortc_error *error)
{
    if (t->memory[which]) return ORTC_OK;
    if (!ortc_unit_reserve(u, t->bytes))
        return ortc_fail(
            error, ORTC_LIMIT,
            "the state of '%s' needs %zu bytes, more than is left under the session's limit of %llu", name,
            t->bytes, (unsigned long long)u->max_bytes);
    if ((t->memory[which] = t->device ? ortc_device_alloc(t->device, t->bytes)
                                      : ortc_alloc_with(u->allocator, t->bytes)))
        return ORTC_OK;
    ortc_unit_unreserve(u, t->bytes);
    return ortc_no_memory(error, t->bytes);
}

/* The number of every symbol that the inputs given so far settle; -1: not settled. */
static ortc_dim *settle_dims(const ortc_context *c)
{
    const ortc_graph *g = c->unit->placed.graph;
    size_t n = g->dims->symbols.count;
    int64_t *symbols = malloc((n + 1) * sizeof *symbols);
    for (size_t i = 0; symbols && i < n; i++) symbols[i] = -1;
    for (uint32_t i = 0; symbols && i < g->n_inputs; i++) {
        const ortc_edge *e = g->inputs[i].edge;
        const ortc_value *v = c->inputs[i].value;
        for (int32_t k = 0; v && v->rank == e->rank && k < e->rank; k++) {
            bool symbol = !ortc_dim_is_number(e->dims[k]) && e->dims[k] != ORTC_DIM_UNKNOWN;
            const ortc_dim_expr *x = symbol ? &g->dims->exprs.data[ORTC_DIM_NUMBERS - 1 - e->dims[k]] : NULL;
            if (x && !x->what) symbols[x->symbol] = v->dims[k];
        }
    }
    ortc_dim *numbers = symbols ? ortc_dims_evaluate(g->dims, symbols) : NULL;
    free(symbols);
    return numbers;
}

static ortc_status unsettled(const ortc_unit *u, const ortc_unit_tie *tie, int32_t axis, ortc_error *error)
{
    char buffer[128];
    ortc_text t = ORTC_TEXT(buffer);
    const ortc_graph_input *in = &u->placed.graph->inputs[tie->input];
    ortc_dims_text(u->placed.graph->dims, in->edge->dims[axis], &t);
    return ortc_fail(error, ORTC_INVALID_ARGUMENT,
                     "the state of '%s': no other input says what '%s' (axis %d) is: fix it for the session "
                     "(dim_names), or give the input in the first run",
                     in->name, buffer, axis);
}

/* The default is where the state starts, also when it starts over: a given value must be of its shape, up to
 * what grows. */
static ortc_status fits_default(const ortc_unit *u, const ortc_unit_tie *tie, const ortc_value *given,
                                ortc_error *error)
{
    const ortc_graph_input *in = &u->placed.graph->inputs[tie->input];
    const ortc_constant *c = in->edge->constant;
    bool fits = given->rank == c->rank;
    for (int32_t i = 0; fits && i < c->rank; i++)
        fits = (tie->grows && i == tie->axis) || given->dims[i] == c->dims[i];
    if (fits) return ORTC_OK;
    char got[256], expected[256];
    ortc_text tg = ORTC_TEXT(got), te = ORTC_TEXT(expected);
    ortc_text_dims(&tg, given->rank, given->dims);
    ortc_text_dims(&te, c->rank, c->dims);
    return ortc_fail(error, ORTC_SHAPE_MISMATCH,
                     "input '%s' is %s; the state starts from its default, which is %s", in->name, got,
                     expected);
}

/* The first buffer and its value: of the shape of the value that the caller gave, else of the default, else
 * as the model and its other inputs say. */
static ortc_status make(ortc_context *c, uint32_t index, const ortc_dim *numbers, ortc_error *error)
{
    ortc_unit *u = c->unit;
    const ortc_unit_tie *tie = &u->ties[index];
    ortc_tied *t = &c->state->ties[index];
    const ortc_graph_input *in = &u->placed.graph->inputs[tie->input];
    const ortc_value *given = c->inputs[tie->input].value;
    const ortc_constant *otherwise = in->edge->constant;
    const int64_t *known = given ? given->dims : otherwise ? otherwise->dims : NULL;
    int32_t rank = given ? given->rank : otherwise ? otherwise->rank : in->edge->rank;
    int64_t dims[ORTC_MAX_RANK], count;
    if (rank != in->edge->rank)
        return ortc_fail(error, ORTC_SHAPE_MISMATCH, "input '%s': expected rank %d, got %d", in->name,
                         in->edge->rank, rank);
    if (given && otherwise) ORTC_TRY(fits_default(u, tie, given, error));
    for (int32_t i = 0; i < rank; i++) {
        dims[i] = i == tie->axis ? tie->capacity
                  : known        ? known[i]
                                 : ortc_dims_number(numbers, in->edge->dims[i]);
        if (dims[i] < 0) return unsettled(u, tie, i, error);
    }
    if (!ortc_count_elements(rank, dims, &count) ||
        !ortc_tensor_bytes(in->edge->type->dtype, count, &t->bytes) || t->bytes > SIZE_MAX / 4)
        return ortc_fail(error, ORTC_LIMIT, "the state of '%s' is too large for its capacity of %lld",
                         in->name, (long long)tie->capacity);
    t->device = reader_of(u, tie);
    ORTC_TRY(allocate(u, t, t->now, in->name, error));
    ORTC_TRY(
        ortc_value_wrap(t->memory[t->now], in->edge->type->dtype, rank, dims, NULL, NULL, &t->value, error));
    t->value->device = t->device ? t->device->memory.device : 0;
    ortc_status status = ortc_state_start(u, tie, t, error);
    if (status != ORTC_OK) {
        ortc_value_release(t->value);
        t->value = NULL;
    }
    return status;
}

/* ---- A run --------------------------------------------------------------------------------------------- */

ortc_status ortc_state_take(ortc_unit *u, const ortc_run_args *a, ortc_error *error)
{
    ortc_state *st = a->state;
    int64_t advance = a->advance;
    if (!st) return ORTC_OK;
    if (st->unit != u) return ortc_fail(error, ORTC_INVALID_ARGUMENT, "the state belongs to another session");
    if (advance < 0)
        return ortc_fail(error, ORTC_INVALID_ARGUMENT, "advance is %lld: expected at least 0",
                         (long long)advance);
    if (atomic_exchange(&st->busy, true))
        return ortc_fail(error, ORTC_INVALID_STATE, "the state is in use by another run");
    for (uint32_t i = 0; i < u->n_ties; i++) {
        const ortc_unit_tie *tie = &u->ties[i];
        if (tie->axis < 0 || tie->grows || advance <= tie->capacity - st->ties[i].length) continue;
        ortc_state_return(st);
        return ortc_fail(error, ORTC_LIMIT,
                         "the state of '%s' has %lld positions; %lld more are over its capacity of %lld",
                         u->placed.graph->inputs[tie->input].name, (long long)st->ties[i].length,
                         (long long)advance, (long long)tie->capacity);
    }
    return ORTC_OK;
}

void ortc_state_return(ortc_state *st)
{
    if (st) atomic_store(&st->busy, false);
}

/* ortc_planner_input.tied. What grows in the end may have the same extents in this run: the planner sees. */
static uint32_t may_be_reused(const ortc_unit_tie *tie) { return tie->axis >= 0 ? 1 + tie->output : 0; }

ortc_status ortc_state_bind_inputs(ortc_context *c, ortc_error *error)
{
    ortc_unit *u = c->unit;
    ortc_status status = ORTC_OK;
    bool missing = false;
    ortc_dim *numbers = NULL;
    for (uint32_t i = 0; c->state && i < u->n_ties; i++) {
        const ortc_unit_tie *tie = &u->ties[i];
        ortc_planner_input *in = &c->inputs[tie->input];
        missing |= !c->state->ties[i].value;
        if (!in->value && (in->value = c->state->ties[i].value)) in->tied = may_be_reused(tie);
    }
    if (!missing) return ORTC_OK;
    if (!(numbers = settle_dims(c))) return ortc_no_memory(error, 0);
    for (uint32_t i = 0; i < u->n_ties && status == ORTC_OK; i++) {
        const ortc_unit_tie *tie = &u->ties[i];
        ortc_planner_input *in = &c->inputs[tie->input];
        if (c->state->ties[i].value) continue;
        status = make(c, i, numbers, error);
        if (status == ORTC_OK && !in->value) {
            in->value = c->state->ties[i].value;
            in->tied = may_be_reused(tie);
        }
    }
    free(numbers);
    return status;
}

void ortc_state_want(ortc_context *c)
{
    for (uint32_t i = 0; c->state && i < c->unit->n_ties; i++) {
        c->wanted[c->unit->ties[i].output] = true;
        c->memory[c->unit->ties[i].output] = c->state->ties[i].value->device;
    }
}

/* Whether a result may become the state, and a buffer for it. */
static ortc_status admit(ortc_context *c, uint32_t index, ortc_dtype dtype, int32_t rank, const int64_t *dims,
                         bool in_place, ortc_error *error)
{
    const ortc_unit_tie *tie = &c->unit->ties[index];
    ortc_tied *t = &c->state->ties[index];
    const ortc_graph *g = c->unit->placed.graph;
    const char *output = g->outputs[tie->output].name, *input = g->inputs[tie->input].name;
    bool fits = dtype == t->value->type->dtype && rank == t->value->rank;
    for (int32_t i = 0; fits && i < rank; i++)
        fits = (tie->grows && i == tie->axis) || dims[i] == t->value->dims[i];
    if (!fits) {
        char got[256], expected[256];
        ortc_text tg = ORTC_TEXT(got), te = ORTC_TEXT(expected);
        ortc_text_tensor(&tg, dtype, rank, dims);
        ortc_text_tensor(&te, t->value->type->dtype, t->value->rank, t->value->dims);
        return ortc_fail(error, dtype == t->value->type->dtype ? ORTC_SHAPE_MISMATCH : ORTC_TYPE_MISMATCH,
                         "output '%s' is %s; it is tied to input '%s', whose state is %s", output, got, input,
                         expected);
    }
    if (tie->grows && dims[tie->axis] > tie->capacity)
        return ortc_fail(error, ORTC_LIMIT,
                         "output '%s' would have %lld positions, the state of '%s' has a capacity of %lld",
                         output, (long long)dims[tie->axis], input, (long long)tie->capacity);
    return in_place ? ORTC_OK : allocate(c->unit, t, !t->now, input, error);
}

ortc_status ortc_state_bind_outputs(ortc_context *c, const ortc_program *p, ortc_error *error)
{
    for (uint32_t i = 0; c->state && i < c->unit->n_ties; i++) {
        const ortc_tied *t = &c->state->ties[i];
        uint32_t output = c->unit->ties[i].output;
        const ortc_program_output *o = &p->outputs[output];
        ORTC_TRY(admit(c, i, o->dtype, o->rank, o->dims, o->in_place, error));
        c->out_data[output] = t->memory[o->in_place ? t->now : !t->now];
    }
    return ORTC_OK;
}

static const ortc_value *slot_of(const ortc_context *c, uint32_t output)
{
    return c->slots[c->unit->placed.graph->outputs[output].edge->id];
}

ortc_status ortc_state_take_slots(ortc_context *c, ortc_error *error)
{
    for (uint32_t i = 0; c->state && i < c->unit->n_ties; i++) {
        const ortc_tied *t = &c->state->ties[i];
        uint32_t output = c->unit->ties[i].output;
        const ortc_value *v = slot_of(c, output);
        if (!v || v->type->kind != ORTC_KIND_TENSOR)
            return ortc_fail(error, ORTC_TYPE_MISMATCH, "output '%s' is no tensor: it cannot be tied",
                             c->unit->placed.graph->outputs[output].name);
        ORTC_TRY(admit(c, i, v->type->dtype, v->rank, v->dims, false, error));
        ortc_open_device *from = v->device ? ortc_device_of_memory(v->device) : NULL;
        ortc_status status = ortc_device_transfer(t->device, t->memory[!t->now], from, v->data, v->bytes,
                                                  error);
        ortc_device_release(from);
        ORTC_TRY(status);
    }
    return ORTC_OK;
}

/* What the caller asked for of the tied output of a run: a copy of what becomes the state. */
static ortc_status copy_out(const ortc_context *c, uint32_t index, const void *from, size_t bytes,
                            const ortc_run_args *a, ortc_value *const *made, ortc_error *error)
{
    for (size_t k = 0; k < a->n_out; k++) {
        if (c->output_of[k] != c->unit->ties[index].output) continue;
        const ortc_value *to = made[k] ? made[k] : a->out[k].value;
        ortc_open_device *device = to->device ? ortc_device_of_memory(to->device) : NULL;
        ortc_status status = ortc_device_transfer(device, to->data, c->state->ties[index].device, from, bytes,
                                                  error);
        ortc_device_release(device);
        ORTC_TRY(status);
    }
    return ORTC_OK;
}

ortc_status ortc_state_commit(ortc_context *c, const ortc_program *p, ortc_run_args *a,
                              ortc_value *const *made, ortc_error *error)
{
    for (uint32_t i = 0; p && c->state && i < c->unit->n_ties; i++) {
        const ortc_program_output *o = &p->outputs[c->unit->ties[i].output];
        const ortc_tied *t = &c->state->ties[i];
        ORTC_TRY(copy_out(c, i, t->memory[o->in_place ? t->now : !t->now], o->bytes, a, made, error));
    }
    for (uint32_t i = 0; c->state && i < c->unit->n_ties; i++) { /* nothing fails from here on */
        const ortc_unit_tie *tie = &c->unit->ties[i];
        ortc_tied *t = &c->state->ties[i];
        if (!p || !p->outputs[tie->output].in_place) t->now = !t->now;
        t->value->data = t->memory[t->now];
        if (tie->grows)
            ortc_tied_set_extent(t, tie->axis,
                                 t->length = p ? p->outputs[tie->output].dims[tie->axis]
                                               : slot_of(c, tie->output)->dims[tie->axis]);
        else if (tie->axis >= 0)
            t->length += a->advance;
    }
    return ORTC_OK;
}
