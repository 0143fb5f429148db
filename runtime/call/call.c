/* runtime/call/call.c: the services of a running kernel (ortc_call_api). */
#include "call.h"

#include "values.h"

static ortc_step_call *outer(ortc_call *c) { return (ortc_step_call *)(void *)c; }

/* Takes n chunks off what is left. Before they are done, so that what is too much costs nothing. */
static ortc_status charge(ortc_run_env *env, double chunks)
{
    ortc_budget *b = env->budget;
    const double operations = chunks * ORTC_CHUNK_OPERATIONS;
    if (!b) return ORTC_OK;
    if (operations > (double)b->left) {
        b->wanted = (double)b->done + operations;
        return ortc_fail(env->error, ORTC_LIMIT, "it takes more operations than the budget has left");
    }
    b->left -= (uint64_t)operations;
    b->done += (uint64_t)operations;
    return ORTC_OK;
}

static ortc_status poll_stop(const ortc_run_env *env)
{
    return ortc_stop_poll(&(ortc_stop){"the run", env->cancel, env->deadline_ns}, env->error);
}

ortc_status ortc_run_env_poll(ortc_run_env *env)
{
    ORTC_TRY(charge(env, 1));
    return poll_stop(env);
}

ortc_status ortc_run_env_create(const ortc_run_env *env, ortc_dtype t, int32_t rank, const int64_t *dims,
                                ortc_value **out, ortc_error *error)
{
    int64_t count;
    size_t bytes;
    if (env->max_bytes && ortc_count_elements(rank, dims, &count) && ortc_tensor_bytes(t, count, &bytes) &&
        bytes > env->max_bytes)
        return ortc_fail(error, ORTC_LIMIT,
                         "a tensor of %zu bytes is more than the session's limit of %llu (max_bytes)", bytes,
                         (unsigned long long)env->max_bytes);
    return env->allocator ? ortc_value_create_with(env->allocator, t, rank, dims, out, error)
                          : ortc_value_create_kept(env->kept, t, rank, dims, out, error);
}

/* Asked by any worker between chunks: it must not write the error, which the caller's thread does
 * afterwards. */
static ortc_status stop(void *arg)
{
    ortc_run_env silent = *(const ortc_run_env *)arg;
    silent.error = NULL;
    return poll_stop(&silent);
}

/* ---- Loops --------------------------------------------------------------------------------------------- */

#define EACH_NS 3000 /* a thread is worth asking for */
#define TWO_NS 2000  /* a second one is, which costs a quarter of that where processors share a cache */
#define GAIN 0.9     /* of its time on one thread a loop must take less than this on several */
#define JOIN_NS 500  /* that a loop on several threads takes besides its chunks */

uint32_t ortc_loop_threads(const ortc_loop_work *w, ortc_spread spread, uint32_t budget)
{
    if (spread == ORTC_SPREAD_NONE || budget < 2) return 1;
    if (spread == ORTC_SPREAD_GAIN && w->alone > 0 && w->shared > GAIN * w->alone) return 1;
    if (w->ns <= 0 || w->ns >= (double)budget * EACH_NS) return budget;
    return w->ns >= 2 * EACH_NS ? (uint32_t)(w->ns / EACH_NS) : w->ns < TWO_NS ? 1 : 2;
}

/* What is shorter is believed at once, what is longer by and by: it may have waited for a processor. */
static void believe(double *known, double ns) { *known = *known > 0 && ns > 2 * *known ? 2 * *known : ns; }

void ortc_loop_took(ortc_loop_work *w, double ns, uint32_t threads, double chunks, double mine)
{
    believe(threads > 1 ? &w->shared : &w->alone, ns);
    if (threads > 1) ns = (ns > JOIN_NS ? ns - JOIN_NS : 0) * chunks / (mine < 1 ? 1 : mine);
    believe(&w->ns, ns < 1 ? 1 : ns);
}

typedef struct loop {
    ortc_parallel_fn body;
    void *arg;
    char *scratch;
    size_t stride;
    int64_t mine; /* chunks that the caller's thread has done */
} loop;

static void chunk(void *arg, int64_t begin, int64_t end, uint32_t worker)
{
    loop *l = arg;
    l->body(l->arg, begin, end, l->scratch ? l->scratch + l->stride * worker : NULL);
    if (!worker) l->mine++;
}

static ortc_status pool_loop(ortc_step_call *c, int64_t n, int64_t grain, double chunks, loop *l)
{
    ortc_run_env *env = c->env;
    ortc_status (*const ask)(void *) = env->cancel || env->deadline_ns ? stop : NULL;
    if (env->threads <= 1 || chunks <= 1 || c->in_loop || c->n_loops == ORTC_LOOPS_KNOWN)
        return ortc_pool_for(env->threads, n, grain, chunk, l, ask, env);
    ortc_loop_work *w = &c->work[c->n_loops++];
    const uint32_t threads = ortc_loop_threads(w, env->spread, env->threads);
    if (env->spread == ORTC_SPREAD_NONE && !env->measured)
        return ortc_pool_for(1, n, grain, chunk, l, ask, env);
    const int64_t begun = ortc_now_ns();
    c->in_loop = true; /* a loop in a loop asks nobody */
    const ortc_status s = ortc_pool_for(threads, n, grain, chunk, l, ask, env);
    c->in_loop = false;
    ortc_loop_took(w, (double)(ortc_now_ns() - begun), threads, chunks, (double)l->mine);
    return s;
}

static ortc_status call_parallel(ortc_call *call, int64_t n, int64_t grain, ortc_parallel_fn body, void *arg)
{
    ortc_step_call *c = outer(call);
    ortc_run_env *env = c->env;
    loop l = {body, arg, c->scratch, c->scratch_stride, 0};
    bool can_stop = env->cancel || env->deadline_ns;
    if (grain < 1) grain = 1;
    const double chunks = n > 0 ? (double)n / (double)grain : 0;
    ORTC_TRY(charge(env, chunks));
    const uint32_t tasks = env->spread == ORTC_SPREAD_NONE ? 1 : env->threads;
    ortc_status s = env->executor ? ortc_executor_for(env->executor, &env->loop, tasks, n, grain, chunk, &l,
                                                      can_stop ? stop : NULL, env)
                                  : pool_loop(c, n, grain, chunks, &l);
    if (s == ORTC_CANCELLED || s == ORTC_DEADLINE)
        ortc_fail(env->error, s,
                  s == ORTC_CANCELLED ? "the run was cancelled" : "the run's deadline has passed");
    return s;
}

static ortc_status call_poll(ortc_call *c) { return ortc_run_env_poll(outer(c)->env); }

static ortc_status call_fail(ortc_call *c, ortc_status s, const char *fmt, va_list args)
{
    return ortc_vfail(outer(c)->env->error, s, fmt, args);
}

/* Puts a value where an output's readers find it; takes the reference. */
static ortc_status set_output(ortc_step_call *c, uint32_t out, ortc_value *v)
{
    ortc_value **slot = c->env->slots ? &c->env->slots[c->node->out[out]->id] : NULL;
    if (!slot) {
        ortc_value_release(v);
        return ortc_fail(c->env->error, ORTC_INTERNAL, "output %u was planned with a fixed shape", out);
    }
    ortc_value_release(*slot);
    *slot = v;
    ortc_view *view = &c->call.out[out];
    view->data = ortc_value_content(v);
    if (ortc_value_is_tensor(v)) {
        view->dtype = v->type->dtype;
        view->rank = v->rank;
        view->dims = v->dims;
    }
    return ORTC_OK;
}

static ortc_status call_resize(ortc_call *call, uint32_t out, int32_t rank, const int64_t *dims)
{
    ortc_step_call *c = outer(call);
    ortc_value *v;
    if (out >= call->n_out || !call->out[out].dtype) return ORTC_OK; /* not wanted */
    const ortc_view *view = &call->out[out];
    if (!(view->flags & ORTC_VIEW_LATE) && view->rank == rank &&
        (!rank || !memcmp(view->dims, dims, (size_t)rank * sizeof *dims)))
        return ORTC_OK; /* as planned */
    if (!(view->flags & ORTC_VIEW_LATE))
        return ortc_fail(c->env->error, ORTC_SHAPE_MISMATCH, "output %u is not of the shape that was planned",
                         out);
    ORTC_TRY(ortc_run_env_create(c->env, view->dtype, rank, dims, &v, c->env->error));
    return set_output(c, out, v);
}

static ortc_status call_give(ortc_call *call, uint32_t out, ortc_value *v)
{
    ortc_step_call *c = outer(call);
    ortc_status s = ORTC_OK;
    if (v && out < call->n_out && ortc_view_present(&call->out[out])) {
        const ortc_view *view = &call->out[out];
        s = ortc_step_check_given(c, out, v);
        if (s == ORTC_OK && (view->flags & (ORTC_VIEW_LATE | ORTC_VIEW_VALUE) || view->dtype == ORTC_STRING))
            return set_output(c, out, v);
        if (s == ORTC_OK && v->bytes) /* planned with a fixed shape: the bytes go where readers expect them */
            memcpy(view->data, v->data, v->bytes);
    }
    ortc_value_release(v);
    return s;
}

ortc_value *ortc_step_call_input(ortc_step_call *c, uint32_t port)
{
    ortc_value *v = NULL;
    const ortc_view *view = &c->call.in[port];
    const ortc_edge *e = c->node ? ortc_node_in_edge(c->node, port) : NULL;
    if (view->flags & ORTC_VIEW_VALUE) return view->data;
    if (!view->dtype) return NULL;
    if (e && c->env->slots && c->env->slots[e->id] && c->env->slots[e->id]->data == view->data)
        return c->env->slots[e->id];
    ortc_status s = view->dtype == ORTC_STRING
                        ? ortc_value_wrap_strings(view->data, view->rank, view->dims, &v, c->env->error)
                        : ortc_value_wrap(view->data, view->dtype, view->rank, view->dims, NULL, NULL, &v,
                                          c->env->error);
    if (s == ORTC_OK && ortc_array_push(&c->env->borrowed, v)) return v;
    ortc_value_release(v);
    c->env->short_of_memory = true;
    return NULL;
}

static ortc_value *call_value(ortc_call *call, int32_t port)
{
    return port >= 0 && (uint32_t)port < call->n_in ? ortc_step_call_input(outer(call), (uint32_t)port)
                                                    : NULL;
}

static ortc_status call_make(ortc_call *call, ortc_dtype t, int32_t rank, const int64_t *dims,
                             ortc_value **out)
{
    return ortc_run_env_create(outer(call)->env, t, rank, dims, out, outer(call)->env->error);
}
static ortc_status call_look(ortc_call *call, const ortc_value *v, ortc_view *out)
{
    if (!ortc_value_is_tensor(v) || v->pending)
        return ortc_fail(outer(call)->env->error, ORTC_TYPE_MISMATCH, "a value is %s",
                         v->pending ? "looked at before all its strings are there" : "not a tensor");
    *out = (ortc_view){
        .data = v->data, .dtype = v->type->dtype, .flags = ORTC_VIEW_HOST, .rank = v->rank, .dims = v->dims};
    return ORTC_OK;
}
static void call_drop(ortc_call *call, ortc_value *v)
{
    (void)call;
    ortc_value_release(v);
}

static ortc_status call_body(ortc_call *call, const char *name, uint32_t n_in, ortc_value *const *in,
                             uint32_t n_out, ortc_value **out)
{
    ortc_step_call *c = outer(call);
    return c->env->body ? c->env->body(c, name, n_in, in, n_out, out)
                        : ortc_fail(c->env->error, ORTC_INTERNAL, "there is no subgraph '%s'", name);
}

static uint64_t call_seed(ortc_call *call)
{
    ortc_step_call *c = outer(call);
    uint64_t parts[2] = {c->env->seed, c->node ? c->node->id : 0};
    return ortc_hash(parts, sizeof parts, 0x6f727463);
}

static void call_mark(ortc_call *call, const char *phase)
{
    ortc_step_call *c = outer(call);
    if (c->env->profiler && c->node) ortc_profile_phase(c->env->profiler, &c->phase, phase);
}

static void call_done_with(ortc_call *call, const void *data, size_t bytes)
{
    if (outer(call)->of_file) ortc_mapping_drop(data, bytes);
}

static const ortc_call_api api = {.size = sizeof api,
                                  .resize = call_resize,
                                  .parallel = call_parallel,
                                  .poll = call_poll,
                                  .fail = call_fail,
                                  .value = call_value,
                                  .seed = call_seed,
                                  .mark = call_mark,
                                  .give = call_give,
                                  .body = call_body,
                                  .make = call_make,
                                  .look = call_look,
                                  .drop = call_drop,
                                  .keep = ortc_call_api_keep,
                                  .strings = ortc_call_api_strings,
                                  .append = ortc_call_api_append,
                                  .sequence = ortc_call_api_sequence,
                                  .map = ortc_call_api_map,
                                  .optional = ortc_call_api_optional,
                                  .count = ortc_call_api_count,
                                  .element = ortc_call_api_element,
                                  .type = ortc_call_api_type,
                                  .done_with = call_done_with};

void ortc_step_call_init(ortc_step_call *c, ortc_run_env *env, const ortc_node *node)
{
    *c = (ortc_step_call){.call = {.api = &api, .size = sizeof(ortc_call)}, .env = env, .node = node};
    c->call.slot = &c->slot;
}

ortc_status ortc_step_failed(const ortc_node *n, const ortc_kernel *k, ortc_status s, ortc_error *error)
{
    if (!error) return s;
    if (error->code != s || !error->text[0])
        ortc_fail(error, s, "kernel '%s' failed (%s)", k->name, ortc_status_name(s));
    if (s != ORTC_CANCELLED && s != ORTC_DEADLINE)
        ortc_error_prefix(error, "node '%s' (%s): ", n->name, n->type);
    return s;
}
