/* runtime/session/session.c: sessions: the stages place, specialise and bind, on a copy of the model's
 * graph. */
#include "create.h"
#include "graph/specialise/specialise.h"
#include "base/threads.h"
#include "runtime/execute/context.h"
#include "runtime/place/place.h"
#include "runtime/registry/registry.h"

#define DEFAULT_PLAN_CACHE_BYTES ((uint64_t)32 << 20)

/* ---- Devices ------------------------------------------------------------------------------------------- */

static ortc_status open_device(ortc_session *s, const char *name, ortc_error *error)
{
    ortc_open_device *open;
    ORTC_TRY(ortc_device_open(name, &open, error));
    for (uint32_t i = 0; i < s->n_devices; i++)
        if (s->devices[i].open == open ||
            (!open->memory.device && s->devices[i].provider == open->provider)) {
            ortc_device_release(open);
            return ORTC_OK;
        }
    if (s->n_devices == ORTC_MAX_DEVICES) {
        ortc_device_release(open);
        return ortc_fail(error, ORTC_LIMIT, "more than %d devices in one session", ORTC_MAX_DEVICES);
    }
    ortc_session_device *d = &s->devices[s->n_devices];
    *d = (ortc_session_device){open, open->provider, open->device, 0};
    if (open->memory.device) {
        s->device_of[s->n_spaces] = (uint8_t)s->n_devices;
        d->space = (uint8_t)s->n_spaces++;
    }
    s->n_devices++;
    return ORTC_OK;
}

static ortc_status open_devices(ortc_session *s, const char *list, ortc_error *error)
{
    while (*list) {
        const char *comma = strchr(list, ',');
        size_t n = comma ? (size_t)(comma - list) : strlen(list);
        char name[512];
        if (n >= sizeof name) return ortc_fail(error, ORTC_NOT_FOUND, "there is no provider '%.80s'", list);
        memcpy(name, list, n);
        name[n] = 0;
        if (n) ORTC_TRY(open_device(s, name, error));
        list += n + (comma != NULL);
    }
    s->n_named = s->n_devices;
    return open_device(s, "ref", error);
}

/* ---- Fixed symbols ------------------------------------------------------------------------------------- */

static ortc_status fix_symbols(ortc_session *s, const ortc_session_options *o, ortc_error *error)
{
    ortc_graph *g = s->graph;
    size_t n = g->dims->symbols.count;
    if (!o->n_dims) return ORTC_OK;
    int64_t *values = malloc((n + 1) * sizeof *values);
    if (!values) return ortc_no_memory(error, n * sizeof *values);
    ortc_status status = ORTC_OK;
    for (size_t i = 0; i < n; i++) values[i] = -1;
    for (size_t i = 0; i < o->n_dims && status == ORTC_OK; i++) {
        bool found = false;
        if (!o->dim_names || !o->dim_values || !o->dim_names[i]) {
            status = ortc_fail(error, ORTC_INVALID_ARGUMENT,
                               "dim_names, dim_values or name %zu of %zu is NULL", i, o->n_dims);
            break;
        }
        for (size_t k = 0; k < n; k++)
            if (g->dims->symbols.data[k] && !strcmp(g->dims->symbols.data[k], o->dim_names[i])) {
                values[k] = o->dim_values[i];
                found = true;
            }
        if (!found)
            status = ortc_fail(error, ORTC_NOT_FOUND, "the model has no symbolic dim '%s'", o->dim_names[i]);
        else if (o->dim_values[i] < 0)
            status = ortc_fail(error, ORTC_INVALID_ARGUMENT, "dim '%s' cannot be %lld", o->dim_names[i],
                               (long long)o->dim_values[i]);
    }
    for (uint32_t i = 0; i < g->n_inputs && status == ORTC_OK; i++) {
        ortc_edge *e = g->inputs[i].edge;
        ortc_dim dims[ORTC_MAX_RANK];
        for (int32_t k = 0; k < e->rank; k++) {
            ortc_dim d = ortc_dims_evaluate(g->dims, e->dims[k], values);
            dims[k] = d == ORTC_DIM_UNKNOWN ? e->dims[k] : d;
        }
        if (e->rank > 0 && !ortc_edge_set_shape(e, e->type, e->rank, dims)) status = ortc_no_memory(error, 0);
    }
    free(values);
    return status == ORTC_OK ? ortc_graph_infer(g, error) : status;
}

/* ---- Which inputs' values decide shapes ---------------------------------------------------------------- */

/* Small values that dims alone make: Shape, and the arithmetic behind it. They are in the key by the dims of
 * its inputs. */
static bool follows_from_dims(const ortc_edge *e)
{
    for (int64_t i = 0; i < e->n_values && e->values; i++)
        if (e->values[i] == ORTC_DIM_UNKNOWN) return false;
    return e->values != NULL;
}

static ortc_status mark_deciding(ortc_session *s, ortc_error *error)
{
    ortc_graph *g = s->graph;
    bool *marked = s->deciding = ortc_arena_array(&g->arena, g->edges.count, sizeof *marked);
    s->decides = ortc_arena_array(&g->arena, g->n_inputs, sizeof *s->decides);
    if (!marked || !s->decides) return ortc_no_memory(error, g->edges.count);
    for (const ortc_node *n = g->last; n; n = n->prev) {
        const ortc_schema *schema = ortc_op_schema(n->op);
        bool all = false; /* what makes a deciding value is made of deciding values */
        for (uint32_t i = 0; i < n->n_out && !all; i++)
            all = n->out[i] && marked[n->out[i]->id] && !follows_from_dims(n->out[i]);
        for (uint32_t i = 0; i < n->n_in; i++) {
            const ortc_formal *f = ortc_schema_in(schema, i);
            if (n->in[i] && (all || (f && (f->flags & ORTC_FORMAL_DECIDES)))) marked[n->in[i]->id] = true;
        }
    }
    for (uint32_t i = 0; i < g->n_inputs; i++) s->decides[i] = marked[g->inputs[i].edge->id];
    return ORTC_OK;
}

/* ---- Creating ------------------------------------------------------------------------------------------ */

static ortc_status session_over(ortc_pack_store *, ortc_graph *, bool borrowed, const ortc_session_options *,
                                ortc_session **out, ortc_error *);

static bool accept(void *arg, ortc_node *proposal)
{
    ortc_session *s = arg;
    const ortc_kernel *k = ortc_place_find(&s->devices[proposal->device], proposal, NULL);
    if (k) proposal->kernel = k;
    return k != NULL;
}

static uint16_t wish(void *arg, const ortc_node *n)
{
    const ortc_session *s = arg;
    const ortc_session_device *d = &s->devices[n->device];
    uint16_t layout = ORTC_LAYOUT_PLAIN;
    ortc_dtype compute = 0; /* what it would compute in: not asked for yet */
    return d->provider->wish && d->provider->wish(d->device, n, &layout, &compute) == ORTC_OK
               ? layout
               : ORTC_LAYOUT_PLAIN;
}

/* Subgraphs become sessions of their own, on the same providers, over the child graphs of this one. */
static ortc_status make_children(ortc_session *s, const ortc_session_options *o, ortc_error *error)
{
    ortc_session_options child = *o;
    child.n_dims = 0; /* fixed symbols have been put into the graph */
    child.n_ties = 0;
    for (ortc_node *n = s->graph->first; n; n = n->next) {
        bool any = false;
        for (uint32_t i = 0; i < n->n_attrs; i++) any |= n->attrs[i].value.kind == ORTC_ATTR_GRAPH;
        if (!any) continue;
        if (!(n->children = ortc_arena_array(&s->graph->arena, n->n_attrs, sizeof *n->children)))
            return ortc_no_memory(error, 0);
        for (uint32_t i = 0; i < n->n_attrs; i++) {
            if (n->attrs[i].value.kind != ORTC_ATTR_GRAPH) continue;
            ortc_graph *g = (ortc_graph *)(uintptr_t)n->attrs[i].value.u.graphs[0];
            ORTC_TRY(session_over(s->packed, g, true, &child, &n->children[i], error));
        }
    }
    return ORTC_OK;
}

static ortc_status stages(ortc_session *s, const ortc_session_options *o, ortc_error *error)
{
    ORTC_TRY(open_devices(s, o->providers ? o->providers : "cpu", error));
    ORTC_TRY(fix_symbols(s, o, error));
    ORTC_TRY(ortc_session_tie_all(s, o, error));
    ORTC_TRY(ortc_mark_shapes_only(s, error));
    ORTC_TRY(ortc_place(s, error));
    s->pass_edits = ortc_arena_array(&s->graph->arena, ortc_specialise_n_passes, sizeof *s->pass_edits);
    if (!s->pass_edits) return ortc_no_memory(error, 0);
    if (!(o->flags & ORTC_SESSION_NO_FUSION)) {
        ortc_specialise sp = {
            .graph = s->graph, .error = error, .accept = accept, .wish = wish, .accept_arg = s};
        ORTC_TRY(ortc_specialise_run(&sp, s->pass_edits));
    }
    if (o->require) /* after fusion: what a kernel has taken in is no node of its own any more */
        ORTC_TRY(ortc_place_require(s, o->require, error));
    ORTC_TRY(mark_deciding(s, error));
    ORTC_TRY(ortc_bind(s, error));
    return make_children(s, o, error);
}

static ortc_status session_over(ortc_pack_store *packed, ortc_graph *g, bool borrowed,
                                const ortc_session_options *o, ortc_session **out, ortc_error *error)
{
    *out = NULL;
    ortc_session *s = calloc(1, sizeof *s);
    if (!s) {
        if (!borrowed) ortc_graph_destroy(g);
        return ortc_no_memory(error, sizeof *s);
    }
    atomic_init(&s->references, 1);
    s->graph = g;
    s->graph_borrowed = borrowed;
    s->packed = packed;
    s->n_spaces = 1;
    s->max_contexts = o->max_contexts;
    s->max_bytes = o->max_bytes;
    ortc_status taken = ortc_session_take_hooks(s, o, error);
    s->threads = s->executor ? s->executor->threads : ortc_pool_threads();
    if (o->threads && o->threads < s->threads) s->threads = o->threads;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->returned, NULL);
    ortc_plan_cache_init(&s->plans, o->plan_cache_bytes ? o->plan_cache_bytes : DEFAULT_PLAN_CACHE_BYTES);
    ortc_fp_env fp = ortc_fp_enter();
    ortc_status status = taken == ORTC_OK ? stages(s, o, error) : taken;
    ortc_fp_leave(fp);
    if (status != ORTC_OK) {
        ortc_session_release(s);
        return status;
    }
    *out = s;
    return ORTC_OK;
}

ortc_status ortc_session_from_graph(ortc_model *m, ortc_graph *g, const ortc_session_options *o,
                                    ortc_session **out, ortc_error *error)
{
    return session_over(&m->packed, g, false, o, out, error);
}

ortc_status ortc_session_create(ortc_model *m, const ortc_session_options *options, ortc_session **out,
                                ortc_error *error)
{
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    ortc_graph *g;
    if (!m || !out)
        return ortc_fail(error, ORTC_INVALID_ARGUMENT,
                         "ortc_session_create: the model or the place for the session is NULL");
    *out = NULL;
    if (options) memcpy(&o, options, options->size < sizeof o ? options->size : sizeof o);
    if (o.flags & ~(uint32_t)ORTC_SESSION_NO_FUSION)
        return ortc_fail(error, ORTC_INVALID_ARGUMENT, "ortc_session_options: unknown flags %#x",
                         (unsigned)o.flags);
    ORTC_TRY(ortc_graph_clone(m->graph, &g, error));
    ortc_status kept = ortc_session_keep(g, &o, error);
    if (kept != ORTC_OK) {
        ortc_graph_destroy(g);
        return kept;
    }
    ORTC_TRY(ortc_session_from_graph(m, g, &o, out, error));
    (*out)->model = ortc_model_retain(m);
    return ORTC_OK;
}

ortc_status ortc_session_memory(ortc_session *s, const char *device, uint32_t *out, ortc_error *error)
{
    if (!s || !device || !out)
        return ortc_fail(error, ORTC_INVALID_ARGUMENT, "ortc_session_memory: an argument is NULL");
    *out = 0;
    for (uint32_t i = 0; i < s->n_devices; i++)
        if (!strcmp(s->devices[i].open->spelling, device) || !strcmp(s->devices[i].provider->name, device)) {
            *out = s->devices[i].open->memory.device;
            return ORTC_OK;
        }
    return ortc_fail(error, ORTC_NOT_FOUND, "the session has no device '%s'", device);
}

ortc_session *ortc_session_retain(ortc_session *s)
{
    if (s) atomic_fetch_add_explicit(&s->references, 1, memory_order_relaxed);
    return s;
}

void ortc_session_release(ortc_session *s)
{
    if (!s || atomic_fetch_sub_explicit(&s->references, 1, memory_order_acq_rel) != 1) return;
    for (ortc_context *c = s->idle, *next; c; c = next) {
        next = c->next;
        ortc_context_free(c);
    }
    ortc_plan_cache_deinit(&s->plans);
    ortc_unbind(s);
    for (ortc_node *n = s->graph->first; n; n = n->next)
        for (uint32_t i = 0; n->children && i < n->n_attrs; i++) ortc_session_release(n->children[i]);
    for (uint32_t i = 0; i < s->n_devices; i++) ortc_device_release(s->devices[i].open);
    if (!s->graph_borrowed) ortc_graph_destroy(s->graph);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->returned);
    ortc_model_release(s->model);
    free(s);
}

/* ---- Contexts, cancelling, trimming -------------------------------------------------------------------- */

ortc_status ortc_context_create(ortc_session *s, ortc_context **out, ortc_error *error)
{
    if (!s || !out)
        return ortc_fail(error, ORTC_INVALID_ARGUMENT, "ortc_context_create: an argument is NULL");
    ORTC_TRY(ortc_context_make(s, out, error));
    ortc_session_retain(s);
    return ORTC_OK;
}

void ortc_context_release(ortc_context *c)
{
    if (!c) return;
    ortc_session *s = c->session;
    ortc_context_free(c);
    ortc_session_release(s);
}

ortc_status ortc_cancel_create(ortc_cancel **out, ortc_error *error)
{
    if (!out)
        return ortc_fail(error, ORTC_INVALID_ARGUMENT,
                         "ortc_cancel_create: the place for the object is NULL");
    return (*out = calloc(1, sizeof **out)) ? ORTC_OK : ortc_no_memory(error, sizeof **out);
}
void ortc_cancel_set(ortc_cancel *c) { atomic_store(&c->set, true); }
void ortc_cancel_reset(ortc_cancel *c) { atomic_store(&c->set, false); }
void ortc_cancel_release(ortc_cancel *c) { free(c); }

uint64_t ortc_session_trim(ortc_session *s)
{
    uint64_t freed = ortc_context_trim_idle(s) + ortc_plan_cache_clear(&s->plans);
    for (uint32_t i = 0; i < s->n_devices; i++)
        if (s->devices[i].open->pool)
            ortc_mempool_trim(s->devices[i].open->pool); /* blocks of the above, mostly: not counted twice */
    return freed;
}
