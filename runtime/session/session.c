/* runtime/session/session.c: sessions: a unit over a copy of the model's graph, and the public interface to
 * it and to its contexts. */
#include "base/threads.h"
#include "build.h"
#include "create.h"
#include "graph/specialise/specialise.h"
#include "runtime/execute/context.h"

/* ---- Fixed symbols ------------------------------------------------------------------------------------- */

static ortc_status fix_symbols(ortc_graph *g, const ortc_session_options *o, ortc_error *error)
{
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
    ortc_dim *numbers = status == ORTC_OK ? ortc_dims_evaluate(g->dims, values) : NULL;
    if (status == ORTC_OK && !numbers) status = ortc_no_memory(error, 0);
    for (uint32_t i = 0; i < g->n_inputs && status == ORTC_OK; i++) {
        ortc_edge *e = g->inputs[i].edge;
        ortc_dim dims[ORTC_MAX_RANK];
        for (int32_t k = 0; k < e->rank; k++) {
            ortc_dim d = ortc_dims_number(numbers, e->dims[k]);
            dims[k] = d == ORTC_DIM_UNKNOWN ? e->dims[k] : d;
        }
        if (e->rank > 0 && !ortc_edge_set_shape(e, e->type, e->rank, dims)) status = ortc_no_memory(error, 0);
    }
    free(numbers);
    free(values);
    return status == ORTC_OK ? ortc_graph_infer(g, error) : status;
}

/* ---- Creating ------------------------------------------------------------------------------------------ */

static ortc_session *session_of(ortc_unit *u) { return (ortc_session *)(void *)u; }

static void unlist(ortc_session *s)
{
    if (!s->listed) return;
    pthread_mutex_lock(&s->model->lock);
    ortc_session **at = &s->model->sessions;
    while (*at != s) at = &(*at)->next;
    *at = s->next;
    pthread_mutex_unlock(&s->model->lock);
}

static void destroy(ortc_unit *u)
{
    ortc_session *s = session_of(u);
    unlist(s);
    ortc_graph *g = u->placed.graph;
    ortc_unit_deinit(u);
    ortc_targets_close(&s->targets);
    ortc_graph_destroy(g);
    ortc_model_release(s->model);
    free(s);
}

/* Devices "cpu", which is who knows it, with the precision that was asked for as their option. */
static ortc_status open_targets(ortc_session *s, const ortc_session_options *o, ortc_error *error)
{
    const char *names = o->providers ? o->providers : "cpu";
    char text[1024];
    ortc_text list = ORTC_TEXT(text);
    if (!o->precision) return ortc_targets_open(&s->targets, names, error);
    text[0] = 0;
    for (const char *at = names; *at;) {
        const int n = (int)strcspn(at, ","), is_cpu = !strncmp(at, "cpu", 3) && (n == 3 || at[3] == ':');
        ortc_text_add(&list, "%.*s%s%s%s", n, at, is_cpu ? ":precision=" : "", is_cpu ? o->precision : "",
                      at[n] ? "," : "");
        at += n + (at[n] == ',');
    }
    if (strlen(text) + 1 >= sizeof text) return ortc_fail(error, ORTC_LIMIT, "too many providers are named");
    return ortc_targets_open(&s->targets, text, error);
}

static ortc_status stages(ortc_session *s, const ortc_session_options *o, ortc_error *error)
{
    ortc_graph *g = s->unit.placed.graph;
    ORTC_TRY(open_targets(s, o, error));
    ORTC_TRY(fix_symbols(g, o, error));
    ORTC_TRY(ortc_session_take_choices(s, o, error));
    ORTC_TRY(ortc_unit_tie_all(&s->unit, o, error));
    s->pass_edits = ortc_arena_array(&g->arena, ortc_specialise_n_passes, sizeof *s->pass_edits);
    if (!s->pass_edits) return ortc_no_memory(error, 0);
    const ortc_stop stop = {"making the session", o->cancel, o->deadline_ns};
    return ortc_unit_build(&s->unit, g, &s->targets, o->require, o->flags, &stop, s->pass_edits, error);
}

/* A share of the weights: plans of a model that many shapes are given to are not to take more than a few
 * percent of what it takes anyway, and a plan is made again in less than a run takes. */
static uint64_t usual_plan_bytes(const ortc_model *m)
{
    const uint64_t share = m->info.weight_bytes / 16, least = (uint64_t)2 << 20, most = (uint64_t)32 << 20;
    return share < least ? least : share < most ? share : most;
}

/* Whether forms may pass in the first run: where a second packing costs less than finding memory for all of
 * them, and nobody limits what is taken. */
static bool may_pass(const ortc_model *m, const ortc_session_options *o)
{
    return (int64_t)m->info.weight_bytes >= ORTC_PASSING_LEAST && !(o->flags & ORTC_SESSION_PACK_AT_ONCE) &&
           !o->max_bytes && !m->packed.max_bytes;
}

ortc_status ortc_session_from_graph(ortc_model *m, ortc_graph *g, const ortc_session_options *o,
                                    ortc_session **out, ortc_error *error)
{
    *out = NULL;
    ortc_session *s = calloc(1, sizeof *s);
    if (!s) {
        ortc_graph_destroy(g);
        return ortc_no_memory(error, sizeof *s);
    }
    ortc_unit *u = &s->unit;
    u->destroy = destroy;
    u->placed.graph = g;
    u->packed = &m->packed;
    u->shelf = &m->shelf;
    u->max_contexts = o->max_contexts;
    u->max_bytes = o->max_bytes;
    ortc_unit_init(u, o->plan_cache_bytes ? o->plan_cache_bytes : usual_plan_bytes(m));
    atomic_init(&u->fresh, may_pass(m, o));
    ortc_status status = ortc_session_take_hooks(s, o, error);
    /* what is kept is not counted: where there is a limit, nothing is */
    if (!u->allocator && !u->max_bytes) u->kept = ortc_kept_create();
    u->threads = u->executor ? u->executor->threads : ortc_pool_threads(o->threads);
    if (o->threads && o->threads < u->threads) u->threads = o->threads;
    ortc_fp_env fp = ortc_fp_enter();
    if (status == ORTC_OK) status = stages(s, o, error);
    ortc_fp_leave(fp);
    if (status != ORTC_OK) {
        ortc_session_release(s);
        return status;
    }
    *out = s;
    return ORTC_OK;
}

/* ---- Sharing -------------------------------------------------------------------------------------------
 *
 * A session is const but for its plans and contexts, which threads share anyway. So who asks for what a
 * session of the model was made with, and lends and limits nothing, is given that session: graphs, kernels'
 * states, plans and idle arenas are there once, however many ask. */

static bool may_be_shared(const ortc_session_options *o)
{
    return !o->max_bytes && !o->max_contexts && !o->n_dims && !o->n_ties && !o->allocator && !o->executor &&
           !o->n_keep && !o->n_choose;
}

static bool same_text(const char *a, const char *b) { return a && b ? !strcmp(a, b) : a == b; }

static bool same_options(const ortc_session_options *a, const ortc_session_options *b)
{
    return a->flags == b->flags && a->threads == b->threads && a->plan_cache_bytes == b->plan_cache_bytes &&
           same_text(a->providers, b->providers) && same_text(a->require, b->require) &&
           same_text(a->precision, b->precision);
}

/* A reference to a session that was made with these options; NULL: there is none. */
static ortc_session *find_alike(ortc_model *m, const ortc_session_options *o)
{
    pthread_mutex_lock(&m->lock);
    ortc_session *s = m->sessions;
    for (; s; s = s->next) {
        if (!same_options(s->asked, o)) continue;
        int n = atomic_load(&s->unit.references); /* 0: its last owner is about to take it off the list */
        while (n && !atomic_compare_exchange_weak(&s->unit.references, &n, n + 1))
            ;
        if (n) break;
    }
    pthread_mutex_unlock(&m->lock);
    return s;
}

static char *copy_text(ortc_arena *a, const char *text)
{
    return text ? ortc_arena_string(a, text, strlen(text)) : NULL;
}

/* Lists a session of host memory alone. Without memory for what it was made with it stays unlisted. */
static void list(ortc_session *s, const ortc_session_options *o)
{
    ortc_arena *a = &s->unit.placed.graph->arena;
    ortc_session_options *asked = ortc_arena_copy(a, o, sizeof *o);
    if (s->targets.n_spaces > 1 || !asked) return;
    asked->providers = copy_text(a, o->providers);
    asked->require = copy_text(a, o->require);
    asked->precision = copy_text(a, o->precision);
    if (!asked->providers != !o->providers || !asked->require != !o->require ||
        !asked->precision != !o->precision)
        return;
    s->asked = asked;
    s->listed = true;
    pthread_mutex_lock(&s->model->lock);
    s->next = s->model->sessions;
    s->model->sessions = s;
    pthread_mutex_unlock(&s->model->lock);
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
    if (o.flags & ~(uint32_t)(ORTC_SESSION_NO_FUSION | ORTC_SESSION_NO_WINOGRAD | ORTC_SESSION_PACK_AT_ONCE))
        return ortc_fail(error, ORTC_INVALID_ARGUMENT, "ortc_session_options: unknown flags %#x",
                         (unsigned)o.flags);
    ORTC_TRY(ortc_onnx_missing(&m->info, error));
    const bool shared = may_be_shared(&o);
    if (shared && (*out = find_alike(m, &o))) return ORTC_OK;
    ORTC_TRY(ortc_graph_clone(m->graph, &g, error));
    ortc_status kept = ortc_session_keep(g, &o, error);
    if (kept != ORTC_OK) {
        ortc_graph_destroy(g);
        return kept;
    }
    ORTC_TRY(ortc_session_from_graph(m, g, &o, out, error));
    (*out)->model = ortc_model_retain(m);
    if (shared) list(*out, &o);
    return ORTC_OK;
}

ortc_status ortc_session_memory(ortc_session *s, const char *device, uint32_t *out, ortc_error *error)
{
    if (!s || !device || !out)
        return ortc_fail(error, ORTC_INVALID_ARGUMENT, "ortc_session_memory: an argument is NULL");
    *out = 0;
    for (uint32_t i = 0; i < s->targets.count; i++)
        if (ortc_device_is(s->targets.list[i].open, device)) {
            *out = s->targets.list[i].open->memory.device;
            return ORTC_OK;
        }
    return ortc_fail(error, ORTC_NOT_FOUND, "the session has no device '%s'", device);
}

ortc_session *ortc_session_retain(ortc_session *s)
{
    if (s) ortc_unit_retain(&s->unit);
    return s;
}

void ortc_session_release(ortc_session *s)
{
    if (s) ortc_unit_release(&s->unit);
}

/* ---- Running ------------------------------------------------------------------------------------------- */

ortc_status ortc_run(ortc_session *s, ortc_run_args *args, ortc_error *error)
{
    /* kernels' texts are put together in it, also when the caller wants none */
    ortc_error local = ORTC_ERROR_INIT;
    ortc_run_args a = ORTC_RUN_ARGS_INIT;
    if (!error) error = &local;
    error->code = ORTC_OK;
    error->text[0] = 0;
    if (!s || !args || args->size < offsetof(ortc_run_args, done) || (args->n_in && !args->in) ||
        (args->n_out && !args->out))
        return ortc_fail(error, ORTC_INVALID_ARGUMENT,
                         "ortc_run: session, args or a list in args is NULL or too small");
    memcpy(&a, args, args->size < sizeof a ? args->size : sizeof a);
    if (a.flags)
        return ortc_fail(error, ORTC_INVALID_ARGUMENT, "ortc_run_args: unknown flags %#x", (unsigned)a.flags);
    if (a.n_out > s->unit.placed.graph->n_outputs)
        return ortc_fail(error, ORTC_INVALID_ARGUMENT, "%zu outputs are asked for, the model has %u", a.n_out,
                         s->unit.placed.graph->n_outputs);
    if (a.done) *a.done = NULL;
    ortc_kept_run(s->unit.kept);
    return ortc_unit_run(&s->unit, &a, error);
}

/* ---- Contexts, cancelling, trimming -------------------------------------------------------------------- */

ortc_status ortc_context_create(ortc_session *s, ortc_context **out, ortc_error *error)
{
    if (!s || !out)
        return ortc_fail(error, ORTC_INVALID_ARGUMENT, "ortc_context_create: an argument is NULL");
    ORTC_TRY(ortc_context_make(&s->unit, out, error));
    ortc_session_retain(s);
    return ORTC_OK;
}

void ortc_context_release(ortc_context *c)
{
    if (!c) return;
    ortc_unit *u = c->unit;
    ortc_context_free(c);
    ortc_unit_release(u);
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
    uint64_t freed = ortc_unit_trim(&s->unit);
    for (uint32_t i = 0; i < s->targets.count; i++)
        if (s->targets.list[i].open->pool)
            ortc_mempool_trim(
                s->targets.list[i].open->pool); /* blocks of the above, mostly: not counted twice */
    ortc_heap_trim();
    return freed;
}
