/* runtime/execute/call.c: the services of a running kernel (ortc_call_api). */
#include "call.h"

static ortc_step_call *outer(ortc_call *c) { return (ortc_step_call *)(void *)c; }

ortc_status ortc_run_env_poll(ortc_run_env *env)
{
    if (env->cancel && atomic_load_explicit(&env->cancel->set, memory_order_relaxed))
        return ortc_fail(env->error, ORTC_CANCELLED, "the run was cancelled");
    if (env->deadline_ns && ortc_now_ns() >= env->deadline_ns)
        return ortc_fail(env->error, ORTC_DEADLINE, "the run's deadline has passed");
    return ORTC_OK;
}

/* Asked by any worker between chunks: it must not write the error, which the caller's thread does afterwards. */
static ortc_status stop(void *arg)
{
    ortc_run_env silent = *(const ortc_run_env *)arg;
    silent.error = NULL;
    return ortc_run_env_poll(&silent);
}

typedef struct loop {
    ortc_parallel_fn body;
    void *arg;
    char *scratch;
    size_t stride;
} loop;

static void chunk(void *arg, int64_t begin, int64_t end, uint32_t worker)
{
    const loop *l = arg;
    l->body(l->arg, begin, end, l->scratch ? l->scratch + l->stride * worker : NULL);
}

static ortc_status call_parallel(ortc_call *call, int64_t n, int64_t grain, ortc_parallel_fn body, void *arg)
{
    ortc_step_call *c = outer(call);
    ortc_run_env *env = c->env;
    loop l = {body, arg, c->scratch, c->scratch_stride};
    bool can_stop = env->cancel || env->deadline_ns;
    ortc_status s = ortc_pool_for(env->threads, n, grain < 1 ? 1 : grain, chunk, &l, can_stop ? stop : NULL, env);
    if (s == ORTC_CANCELLED || s == ORTC_DEADLINE)
        ortc_fail(env->error, s, s == ORTC_CANCELLED ? "the run was cancelled" : "the run's deadline has passed");
    return s;
}

static ortc_status call_poll(ortc_call *c) { return ortc_run_env_poll(outer(c)->env); }

static ortc_status call_fail(ortc_call *c, ortc_status s, const char *fmt, va_list args)
{
    return ortc_vfail(outer(c)->env->error, s, fmt, args);
}

static ortc_status call_resize(ortc_call *c, uint32_t out, int32_t rank, const int64_t *dims)
{
    (void)dims;
    return ortc_fail(outer(c)->env->error, ORTC_INTERNAL, "output %u (rank %d) was planned with a fixed shape", out, rank);
}

static ortc_value *call_value(ortc_call *c, int32_t port)
{
    (void)c, (void)port;
    return NULL;
}

static uint64_t call_seed(ortc_call *call)
{
    ortc_step_call *c = outer(call);
    uint64_t parts[2] = {c->env->seed, c->node ? c->node->id : 0};
    return ortc_hash(parts, sizeof parts, 0x6f727463);
}

static void call_mark(ortc_call *c, const char *phase) { (void)c, (void)phase; }

static const ortc_call_api api = {.size = sizeof api, .resize = call_resize, .parallel = call_parallel, .poll = call_poll,
                                  .fail = call_fail, .value = call_value, .seed = call_seed, .mark = call_mark};

void ortc_step_call_init(ortc_step_call *c, ortc_run_env *env, const ortc_node *node)
{
    *c = (ortc_step_call){.call = {.api = &api, .size = sizeof(ortc_call)}, .env = env, .node = node};
    c->call.slot = &c->slot;
}

ortc_status ortc_step_failed(const ortc_node *n, const ortc_kernel *k, ortc_status s, ortc_error *error)
{
    if (!error)
        return s;
    if (error->code != s || !error->text[0])
        ortc_fail(error, s, "kernel '%s' failed (%s)", k->name, ortc_status_name(s));
    if (s != ORTC_CANCELLED && s != ORTC_DEADLINE)
        ortc_error_prefix(error, "node '%s' (%s): ", n->name, n->type);
    return s;
}
