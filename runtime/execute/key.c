/* runtime/execute/key.c: from what a run is given to the program for it: names to indices, checks, the key,
 * the caches (run.h). */
#include "run.h"

#include "tied.h"
#include "values.h"

static uint32_t find_name(const ortc_graph_input *list, uint32_t n, const char *name, size_t guess)
{
    if (guess < n && !strcmp(list[guess].name, name)) return (uint32_t)guess;
    for (uint32_t i = 0; i < n; i++)
        if (!strcmp(list[i].name, name)) return i;
    return UINT32_MAX;
}

static ortc_status unknown_name(const char *side, const char *name, const ortc_graph_input *list, uint32_t n,
                                ortc_error *error)
{
    char buffer[512];
    ortc_text t = ORTC_TEXT(buffer);
    buffer[0] = 0;
    for (uint32_t i = 0; i < n; i++) ortc_text_add(&t, "%s'%s'", i ? ", " : "", list[i].name);
    return ortc_fail(error, ORTC_INVALID_ARGUMENT, "the model has no %s '%s'; it has %s", side, name,
                     *buffer ? buffer : "none");
}

ortc_status ortc_run_match_inputs(ortc_context *c, const ortc_in *in, size_t n_in, ortc_error *error)
{
    const ortc_graph *g = c->unit->placed.graph;
    for (uint32_t i = 0; i < g->n_inputs; i++) c->inputs[i] = (ortc_planner_input){NULL, 0};
    for (size_t i = 0; i < n_in; i++) {
        if (!in[i].name || !in[i].value)
            return ortc_fail(error, ORTC_INVALID_ARGUMENT, "input %zu has no %s", i,
                             in[i].name ? "value" : "name");
        uint32_t at = find_name(g->inputs, g->n_inputs, in[i].name, i);
        if (at == UINT32_MAX) return unknown_name("input", in[i].name, g->inputs, g->n_inputs, error);
        if (c->inputs[at].value)
            return ortc_fail(error, ORTC_INVALID_ARGUMENT, "input '%s' is given twice", in[i].name);
        c->inputs[at].value = in[i].value;
        if (in[i].value->device &&
            c->unit->placed.decides[at]) { /* its values are wanted on the host: for the key, for shapes */
            ORTC_TRY(ortc_value_on_host(in[i].value, &c->aligned[at], error));
            c->inputs[at].value = c->aligned[at];
        }
    }
    ORTC_TRY(ortc_state_bind_inputs(c, error));
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        const ortc_edge *e = g->inputs[i].edge;
        if (ortc_value_wants_optional(e->type, c->inputs[i].value) && !e->constant) {
            ORTC_TRY(ortc_value_as_optional(e->type, c->inputs[i].value, &c->aligned[i], error));
            c->inputs[i].value = c->aligned[i];
        }
        if (!c->inputs[i].value && !e->constant)
            return ortc_fail(error, ORTC_INVALID_ARGUMENT,
                             "input '%s' is not given, and the model has no default for it",
                             g->inputs[i].name);
    }
    return ORTC_OK;
}

ortc_status ortc_run_match_outputs(ortc_context *c, const ortc_out *out, size_t n_out, ortc_error *error)
{
    const ortc_graph *g = c->unit->placed.graph;
    memset(c->wanted, 0, g->n_outputs * sizeof *c->wanted);
    memset(c->memory, 0, g->n_outputs * sizeof *c->memory);
    for (size_t i = 0; i < n_out; i++) {
        if (!out[i].name) return ortc_fail(error, ORTC_INVALID_ARGUMENT, "output %zu has no name", i);
        uint32_t at = find_name(g->outputs, g->n_outputs, out[i].name, i);
        if (at == UINT32_MAX) return unknown_name("output", out[i].name, g->outputs, g->n_outputs, error);
        if (c->wanted[at])
            return ortc_fail(error, ORTC_INVALID_ARGUMENT, "output '%s' is asked for twice", out[i].name);
        c->wanted[at] = true;
        c->memory[at] = out[i].value ? out[i].value->device : out[i].memory;
        c->output_of[i] = at;
    }
    ortc_state_want(c);
    return ORTC_OK;
}

static ortc_status mismatch(const char *name, const ortc_edge *e, const ortc_value *v, ortc_status code,
                            ortc_error *error)
{
    char expected[320], got[320];
    ortc_text te = ORTC_TEXT(expected), tg = ORTC_TEXT(got);
    ortc_text_type(&te, e->type);
    if (e->rank >= 0) {
        ortc_text_add(&te, "[");
        for (int32_t i = 0; i < e->rank; i++) {
            ortc_text_add(&te, "%s", i ? "," : "");
            ortc_dims_text(e->graph->dims, e->dims[i], &te);
        }
        ortc_text_add(&te, "]");
    }
    ortc_text_type(&tg, v->type);
    if (v->type->kind == ORTC_KIND_TENSOR) ortc_text_dims(&tg, v->rank, v->dims);
    return ortc_fail(error, code, "input '%s': expected %s, got %s", name, expected, got);
}

/* Types and shapes against the model; one number per symbol over all inputs. Only for keys that are new. */
static ortc_status check_inputs(ortc_context *c, ortc_error *error)
{
    const ortc_graph *g = c->unit->placed.graph;
    size_t n_symbols = g->dims->symbols.count;
    int64_t *symbols = malloc((n_symbols + 1) * sizeof *symbols);
    if (!symbols) return ortc_no_memory(error, n_symbols * sizeof *symbols);
    for (size_t i = 0; i < n_symbols; i++) symbols[i] = -1;
    ortc_status s = ORTC_OK;
    for (uint32_t i = 0; i < g->n_inputs && s == ORTC_OK; i++) {
        const ortc_edge *e = g->inputs[i].edge;
        const ortc_value *v = c->inputs[i].value;
        if (!v) continue;
        if (e->type && !ortc_type_equal(e->type, v->type))
            s = mismatch(g->inputs[i].name, e, v, ORTC_TYPE_MISMATCH, error);
        else if (ortc_value_is_tensor(v) && e->rank >= 0 && e->rank != v->rank)
            s = mismatch(g->inputs[i].name, e, v, ORTC_SHAPE_MISMATCH, error);
        for (int32_t k = 0; k < e->rank && s == ORTC_OK && ortc_value_is_tensor(v); k++) {
            if (ortc_dim_is_number(e->dims[k])) {
                if (e->dims[k] != v->dims[k])
                    s = mismatch(g->inputs[i].name, e, v, ORTC_SHAPE_MISMATCH, error);
                continue;
            }
            const ortc_dim_expr *x = &g->dims->exprs.data[ORTC_DIM_NUMBERS - 1 - e->dims[k]];
            if (x->what) continue;
            if (symbols[x->symbol] < 0)
                symbols[x->symbol] = v->dims[k];
            else if (symbols[x->symbol] != v->dims[k])
                s = ortc_fail(error, ORTC_SHAPE_MISMATCH,
                              "input '%s': '%s' is %lld along axis %d, and %lld in an input before",
                              g->inputs[i].name,
                              g->dims->symbols.data[x->symbol] ? g->dims->symbols.data[x->symbol] : "?",
                              (long long)v->dims[k], k, (long long)symbols[x->symbol]);
        }
    }
    free(symbols);
    return s;
}

bool ortc_key_add(ortc_context *c, const void *data, size_t bytes)
{
    if (c->key_bytes + bytes > c->key_capacity) {
        size_t capacity = (c->key_bytes + bytes) * 2 + 256;
        uint8_t *grown = realloc(c->key, capacity);
        if (!grown) return false;
        c->key = grown;
        c->key_capacity = capacity;
    }
    if (bytes) memcpy(c->key + c->key_bytes, data, bytes);
    c->key_bytes += bytes;
    return true;
}

/* Kind, element type, rank, memory and extents; of what is not a tensor the whole type. */
bool ortc_key_add_value(ortc_context *c, const ortc_value *v)
{
    uint32_t head[3] = {v ? v->type->kind << 8 | (uint32_t)v->type->dtype : 0, v ? (uint32_t)v->rank : 0,
                        v ? v->device : 0};
    bool ok = ortc_key_add(c, head, sizeof head);
    for (const ortc_type *t = v ? v->type->of : NULL; t && ok; t = t->of)
        ok = ortc_key_add(c, (int32_t[]){t->kind << 8 | t->dtype}, sizeof(int32_t));
    return ok && (!v || ortc_key_add(c, v->dims, (size_t)v->rank * sizeof *v->dims));
}

static ortc_status make_key(ortc_context *c, ortc_error *error)
{
    const ortc_graph *g = c->unit->placed.graph;
    bool ok = true;
    c->key_bytes = 0;
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        const ortc_value *v = c->inputs[i].value;
        ok = ok && ortc_key_add_value(c, v);
        if (c->unit->n_ties) ok = ok && ortc_key_add(c, &c->inputs[i].tied, sizeof c->inputs[i].tied);
        if (v && c->unit->placed.decides[i] && v->type->dtype != ORTC_STRING && v->count <= ORTC_MAX_VALUES)
            ok = ok && ortc_key_add(c, v->data, v->bytes);
    }
    ok = ok && ortc_key_add(c, c->wanted, g->n_outputs * sizeof *c->wanted);
    ok = ok && ortc_key_add(c, c->memory, g->n_outputs * sizeof *c->memory);
    return ok ? ORTC_OK : ortc_no_memory(error, c->key_bytes);
}

/* The program of the context's key, planned now. after, slots: as in ortc_plan_request. */
ortc_status ortc_run_make_program(ortc_context *c, const ortc_program *after, ortc_value *const *slots,
                                  bool once, ortc_program **out, ortc_error *error)
{
    ortc_profile_event e = {
        .kind = ORTC_PROFILE_PLAN, .name = "plan", .op = "", .provider = "", .kernel = ""};
    if (c->env.profiler) e.start_ns = ortc_now_ns();
    const ortc_plan_request request = {c->inputs, c->wanted, c->memory, after, after ? slots : NULL, once};
    ORTC_TRY(ortc_program_build(&c->unit->placed, c->unit->packed, &request, &c->env, out, error));
    ortc_status s = (*out)->once ? ORTC_OK
                    : ortc_plan_cache_put(&c->unit->plans, *out, c->key, c->key_bytes)
                        ? ortc_unit_admit_plan(c->unit, *out, error)
                        : ortc_no_memory(error, c->key_bytes);
    if (s != ORTC_OK) {
        ortc_program_release(*out);
        *out = NULL;
    } else if (c->env.profiler)
        ortc_profile_end(c->env.profiler, &e);
    return s;
}

/* The program of the context's key, from the cache or planned now, to be run or to be looked at. */
static ortc_status find_program(ortc_context *c, bool run, ortc_program **out, ortc_error *error)
{
    if ((*out = ortc_plan_cache_get(&c->unit->plans, c->key, c->key_bytes))) return ORTC_OK;
    ORTC_TRY(check_inputs(c, error));
    /* what a profile says of steps is to hold for later runs */
    const bool once = run && !c->env.profiler && c->unit->placed.targets->n_spaces == 1 &&
                      atomic_exchange(&c->unit->fresh, false);
    return ortc_run_make_program(c, NULL, NULL, once, out, error);
}

ortc_status ortc_run_find_frame(ortc_context *c, ortc_frame **out, ortc_error *error)
{
    ortc_program *p;
    ORTC_TRY(make_key(c, error));
    if ((*out = ortc_context_find(c, c->key, c->key_bytes))) return ORTC_OK;
    ORTC_TRY(find_program(c, true, &p, error));
    ortc_status s = ortc_context_frame(c, p, out, error);
    ortc_program_release(p);
    return s;
}

ortc_status ortc_context_program(ortc_context *c, const ortc_in *in, size_t n_in, ortc_program **out,
                                 ortc_error *error)
{
    ortc_status s = ortc_run_match_inputs(c, in, n_in, error);
    for (uint32_t i = 0; i < c->unit->placed.graph->n_outputs; i++) c->wanted[i] = true, c->memory[i] = 0;
    if (s == ORTC_OK && (s = make_key(c, error)) == ORTC_OK) s = find_program(c, false, out, error);
    ortc_context_clean(c);
    return s;
}
