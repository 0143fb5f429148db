/* tests/session/test_hooks.c: what a caller lends and sees: memory without copies, an allocator, an executor,
 * a profiler, values inside the model, limits that cover what they say.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "base/base.h"
#include "base/sanitize.h"
#include "runtime/session/session.h"
#include "runtime/execute/context.h"
#include "runtime/registry/registry.h"
#include "tests/unit/wire_writer.h"

/* ---- An operator that looks at its addresses, with a loop inside a loop -------------------------------- */

static const void *seen_in, *seen_out;
static atomic_int outer_chunks, inner_chunks;

static ortc_status infer_like(ortc_infer *c) { return ortc_infer_like(c, 0, 0); }

typedef struct look_job {
    ortc_call *call;
    const float *x;
    float *y;
} look_job;
static void inner(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const look_job *j = arg;
    for (int64_t i = begin; i < end; i++) *(int64_t *)scratch += i; /* the worker's own */
    atomic_fetch_add(&inner_chunks, 1);
    (void)j;
}
static void outer(void *arg, int64_t begin, int64_t end, void *scratch)
{
    look_job *j = arg;
    *(int64_t *)scratch = 0;
    ortc_parallel(j->call, 4, 1, inner, j);
    for (int64_t i = begin; i < end; i++) j->y[i] = j->x[i] + (float)*(int64_t *)scratch; /* 0 + 1 + 2 + 3 */
    atomic_fetch_add(&outer_chunks, 1);
}
static ortc_status plan_look(const void *state, ortc_plan *p, void **pstate)
{
    (void)state, (void)pstate;
    ortc_plan_workspace(p, 0, sizeof(int64_t));
    ortc_plan_cost(p, 123, 456);
    return ORTC_OK;
}
/* Operands behind whose last byte the kernel could go on. */
static int open_ends;
static void look_behind(const ortc_view *v)
{
#ifdef ORTC_SANITIZED
    open_ends += !__asan_address_is_poisoned((float *)v->data + ortc_view_count(v));
#endif
    (void)v;
}
static ortc_status run_look(const void *state, const void *plan, ortc_call *call)
{
    (void)state, (void)plan;
    look_behind(&call->in[0]);
    look_behind(&call->out[0]);
    seen_in = call->in[0].data;
    seen_out = call->out[0].data;
    look_job j = {call, call->in[0].data, call->out[0].data};
    ortc_call_mark(call, "first");
    ortc_status s = ortc_parallel(call, ortc_view_count(&call->in[0]), 3, outer, &j);
    ortc_call_mark(call, "second");
    return s;
}
static const ortc_kernel look = {.size = sizeof look, .name = "look", .plan = plan_look, .run = run_look};
static const ortc_op ops[] = {
    ORTC_OP("test", "Look", 1, 1, "", "x:T", "y:T", "", "T=f32", infer_like, NULL, 0)};
ORTC_KERNELS(ref, hooks_test, ORTC_KERNEL_IN("test", "Look", 1, 1, (ORTC_TYPE(ORTC_F32)), &look));
ORTC_FAMILY(hooks_test, ops, &ortc_kernels_ref_hooks_test);

static ortc_error e = ORTC_ERROR_INIT;
static ortc_model *model, *digits;
static buffer model_bytes; /* the model reads them */
static float x[16], y[16];

/* x -> Look -> mid -> Identity -> alias -> Relu -> y */
static void setup(void)
{
    buffer g = {0}, b;
    cr_assert_eq(ortc_registry_init(&e), ORTC_OK);
    cr_assert_eq(ortc_host_add_family(ortc_host_get(), &ortc_family_hooks_test), ORTC_OK);
    b = make_value_info("x", ORTC_F32, 1, (int64_t[]){-1}), put_message(&g, 11, &b);
    b = make_value_info("y", ORTC_F32, 1, (int64_t[]){-1}), put_message(&g, 12, &b);
    b = make_node("Look", "test", "x", "mid"), put_message(&g, 1, &b);
    b = make_node("Identity", "", "mid", "alias"), put_message(&g, 1, &b);
    b = make_node("Look", "test", "alias", "y"), put_message(&g, 1, &b);
    model_bytes = make_model(8, 18, &g);
    put_opset(&model_bytes, 8, "test", 1);
    cr_assert_eq(ortc_model_load_memory(model_bytes.data, model_bytes.bytes, NULL, &model, &e), ORTC_OK, "%s",
                 e.text);
    cr_assert_eq(ortc_model_load(getenv("ORTC_DIGITS"), NULL, &digits, &e), ORTC_OK, "%s", e.text);
    for (int i = 0; i < 16; i++) x[i] = (float)i;
}
static void teardown(void)
{
    ortc_model_release(model);
    ortc_model_release(digits);
    buffer_free(&model_bytes);
}
TestSuite(hooks, .init = setup, .fini = teardown);

static ortc_session *open_session(ortc_model *m, const ortc_session_options *o)
{
    ortc_session *s;
    cr_assert_eq(ortc_session_create(m, o, &s, &e), ORTC_OK, "%s", e.text);
    return s;
}

/* One run of f32 input to one output; the result is placed by the library unless `out` has a value. */
static ortc_status run(ortc_session *s, const char *in_name, void *data, int32_t rank, const int64_t *dims,
                       ortc_out *out, const ortc_profiler *profiler)
{
    ortc_in in = {in_name, ortc_wrap(data, ORTC_F32, rank, dims)};
    ortc_run_args a = ORTC_RUN_ARGS_INIT;
    a.in = &in, a.n_in = 1, a.out = out, a.n_out = 1, a.profiler = profiler;
    ortc_status status = ortc_run(s, &a, &e);
    ortc_value_release(in.value);
    return status;
}

static const int64_t sixteen[1] = {16};

Test(hooks, a_caller_s_memory_is_read_and_written_where_it_is)
{
    ortc_session *s = open_session(model, NULL);
    ortc_out out = {"y", ortc_wrap(y, ORTC_F32, 1, sixteen), 0, 0};
    ortc_value *given = out.value;
    cr_assert_eq(run(s, "x", x, 1, sixteen, &out, NULL), ORTC_OK, "%s", e.text);
    cr_expect_eq(seen_out, y);
    cr_expect_eq(out.value, given);
    cr_expect_eq(y[3], 15, "%g", (double)y[3]);
    ortc_value_release(given);
    /* The first Look reads x itself: keep its result, so that it is the only node. */
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    const char *keep[] = {"mid"};
    o.keep = keep, o.n_keep = 1;
    ortc_session *inner_session = open_session(model, &o);
    out = (ortc_out){"mid", ortc_wrap(y, ORTC_F32, 1, sixteen), 0, 0};
    cr_assert_eq(run(inner_session, "x", x, 1, sixteen, &out, NULL), ORTC_OK, "%s", e.text);
    cr_expect_eq(seen_in, x);
    cr_expect_eq(seen_out, y);
    cr_expect_eq(y[3], 9);
    ortc_value_release(out.value);
    ortc_session_release(s);
    ortc_session_release(inner_session);
}

Test(hooks, under_a_sanitizer_a_kernel_may_touch_its_operands_and_nothing_else)
{
    ortc_session *s = open_session(model, NULL);
    for (int i = 0; i < 2; i++) { /* the second time, too: what was forbidden is allowed again */
        ortc_out out = {"y", ortc_wrap(y, ORTC_F32, 1, sixteen), 0, 0};
        open_ends = 0;
        cr_assert_eq(run(s, "x", x, 1, sixteen, &out, NULL), ORTC_OK, "%s", e.text);
        cr_expect_eq(open_ends, 0, "%d of 4", open_ends);
        cr_expect_eq(y[3], 15);
        ortc_value_release(out.value);
    }
    ortc_session_release(s);
}

/* ---- Allocator ----------------------------------------------------------------------------------------- */

static int allocated, freed;
static size_t bytes_held;
static void *lend(void *arg, size_t bytes, size_t alignment)
{
    cr_expect_str_eq(arg, "arg");
    allocated++;
    bytes_held += bytes;
    return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}
static void take_back(void *arg, void *data, size_t bytes)
{
    (void)arg;
    freed++;
    bytes_held -= bytes;
    free(data);
}
static void *refuse(void *arg, size_t bytes, size_t alignment)
{
    return (void)arg, (void)bytes, (void)alignment, NULL;
}

Test(hooks, an_allocator_serves_arenas_and_results_and_outlives_the_session)
{
    ortc_allocator a = {sizeof a, 0, "arg", lend, take_back};
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    static float pixels[64];
    const int64_t image[4] = {1, 1, 8, 8};
    o.allocator = &a;
    ortc_session *s = open_session(digits, &o);
    ortc_out out = {"probabilities", NULL, 0, 0};
    cr_assert_eq(run(s, "image", pixels, 4, image, &out, NULL), ORTC_OK, "%s", e.text);
    cr_expect_eq(allocated, 2, "an arena and a result, not %d", allocated);
    cr_expect_eq((uintptr_t)ortc_value_host(out.value) % ORTC_ALIGNMENT, 0);
    ortc_session_release(s);
    cr_expect_eq(freed, 1);
    cr_expect_eq(bytes_held, 40);
    float sum = 0;
    for (int i = 0; i < 10; i++) sum += ((const float *)ortc_value_host(out.value))[i];
    cr_expect(sum > 0.99f && sum < 1.01f);
    ortc_value_release(out.value);
    cr_expect_eq(freed, 2);
    cr_expect_eq(bytes_held, 0);
    a.alloc = refuse;
    s = open_session(digits, &o);
    out.value = NULL;
    cr_expect_eq(run(s, "image", pixels, 4, image, &out, NULL), ORTC_OUT_OF_MEMORY);
    cr_expect_null(out.value);
    ortc_session_release(s);
    a.free = NULL;
    cr_expect_eq(ortc_session_create(digits, &o, &s, &e), ORTC_INVALID_ARGUMENT);
    cr_expect_null(s);
}

/* ---- Executor ------------------------------------------------------------------------------------------ */

static atomic_int loops, tasks;
static void one_after_the_other(void *arg, uint32_t n, void (*task)(void *, uint32_t), void *task_arg)
{
    (void)arg;
    atomic_fetch_add(&loops, 1);
    for (uint32_t i = n; i-- > 0;) { /* backwards, too */
        task(task_arg, i);
        atomic_fetch_add(&tasks, 1);
    }
}

typedef struct thread_task {
    void (*task)(void *, uint32_t);
    void *arg;
    uint32_t i;
} thread_task;
static void *thread_main(void *arg)
{
    const thread_task *t = arg;
    t->task(t->arg, t->i);
    return NULL;
}
static void a_thread_each(void *arg, uint32_t n, void (*task)(void *, uint32_t), void *task_arg)
{
    pthread_t threads[8];
    thread_task list[8];
    (void)arg;
    atomic_fetch_add(&loops, 1);
    for (uint32_t i = 0; i < n; i++) {
        list[i] = (thread_task){task, task_arg, i};
        cr_assert_eq(pthread_create(&threads[i], NULL, thread_main, &list[i]), 0);
    }
    for (uint32_t i = 0; i < n; i++) pthread_join(threads[i], NULL);
}

Test(hooks, an_executor_runs_the_loops_and_changes_no_bit)
{
    static void (*const runs[])(void *, uint32_t, void (*)(void *, uint32_t), void *) = {one_after_the_other,
                                                                                         a_thread_each};
    static float pixels[8 * 64], expected[80];
    const int64_t images[4] = {8, 1, 8, 8}, results[2] = {8, 10};
    for (size_t i = 0; i < ORTC_LENGTH(pixels); i++) pixels[i] = (float)(i * 29 % 256);
    ortc_session *s = open_session(digits, NULL);
    ortc_out out = {"probabilities", ortc_wrap(expected, ORTC_F32, 2, results), 0, 0};
    cr_assert_eq(run(s, "image", pixels, 4, images, &out, NULL), ORTC_OK, "%s", e.text);
    ortc_value_release(out.value);
    ortc_session_release(s);
    for (size_t i = 0; i < ORTC_LENGTH(runs); i++) {
        ortc_executor executor = {sizeof executor, 4, NULL, runs[i]};
        ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
        o.executor = &executor;
        s = open_session(digits, &o);
        cr_expect_eq(s->unit.threads, 4);
        out = (ortc_out){"probabilities", NULL, 0, 0};
        cr_assert_eq(run(s, "image", pixels, 4, images, &out, NULL), ORTC_OK, "%s", e.text);
        cr_expect_arr_eq(ortc_value_host(out.value), expected, sizeof expected);
        cr_expect_gt(atomic_exchange(&loops, 0), 0);
        ortc_value_release(out.value);
        ortc_session_release(s);
        /* A loop inside a loop: with the scratch of the worker that it is in. */
        s = open_session(model, &o);
        out = (ortc_out){"y", ortc_wrap(y, ORTC_F32, 1, sixteen), 0, 0};
        atomic_store(&inner_chunks, 0);
        cr_assert_eq(run(s, "x", x, 1, sixteen, &out, NULL), ORTC_OK, "%s", e.text);
        cr_expect_eq(atomic_load(&loops), 2, "two nodes; the loops inside are not the executor's");
        cr_expect_eq(atomic_load(&inner_chunks), 2 * 6 * 4);
        for (int k = 0; k < 16; k++) cr_expect_eq(y[k], (float)(k + 12), "%d: %g", k, (double)y[k]);
        atomic_store(&loops, 0);
        ortc_value_release(out.value);
        ortc_session_release(s);
    }
    ortc_executor broken = {sizeof broken, 0, NULL, one_after_the_other};
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    o.executor = &broken;
    cr_expect_eq(ortc_session_create(digits, &o, &s, &e), ORTC_INVALID_ARGUMENT);
}

/* ---- Profiler ------------------------------------------------------------------------------------------ */

static ortc_profile_event events[32];
static int n_events;
static void record(void *arg, const ortc_profile_event *event)
{
    cr_expect_str_eq(arg, "arg");
    if (n_events < 32) events[n_events++] = *event;
}

Test(hooks, a_profiler_hears_of_plans_steps_and_phases)
{
    ortc_session *s = open_session(model, NULL);
    ortc_profiler p = {sizeof p, 0, "arg", record};
    ortc_out out = {"y", ortc_wrap(y, ORTC_F32, 1, sixteen), 0, 0};
    int64_t before = ortc_now_ns();
    cr_assert_eq(run(s, "x", x, 1, sixteen, &out, &p), ORTC_OK, "%s", e.text);
    int64_t after = ortc_now_ns();
    static const struct {
        uint32_t kind;
        const char *name;
    } expected[] = {{ORTC_PROFILE_PLAN, "plan"},    {ORTC_PROFILE_PHASE, "first"},
                    {ORTC_PROFILE_PHASE, "second"}, {ORTC_PROFILE_STEP, "Look_0"},
                    {ORTC_PROFILE_PHASE, "first"},  {ORTC_PROFILE_PHASE, "second"},
                    {ORTC_PROFILE_STEP, NULL}};
    cr_assert_eq(n_events, 7, "%d events", n_events);
    for (int i = 0; i < 7; i++) {
        const ortc_profile_event *ev = &events[i];
        cr_expect_eq(ev->kind, expected[i].kind, "%d", i);
        cr_expect(!expected[i].name || !strcmp(ev->name, expected[i].name), "%d: %s", i, ev->name);
        cr_expect(ev->start_ns >= before && ev->duration_ns >= 0 && ev->start_ns + ev->duration_ns <= after,
                  "%d", i);
        if (!i) continue;
        cr_expect_str_eq(ev->op, "Look");
        cr_expect_str_eq(ev->kernel, "look");
        cr_expect_str_eq(ev->provider, "ref");
        cr_expect_eq(ev->step, i > 3);
        cr_expect_eq(ev->flops, ev->kind == ORTC_PROFILE_STEP ? 123 : 0);
    }
    cr_expect(events[3].start_ns <= events[1].start_ns &&
              events[1].start_ns + events[1].duration_ns <= events[2].start_ns);
    n_events = 0;
    cr_assert_eq(run(s, "x", x, 1, sixteen, &out, &p), ORTC_OK);
    cr_expect_eq(n_events, 6, "planned once");
    ortc_value_release(out.value);
    ortc_session_release(s);
}

/* ---- Values inside ------------------------------------------------------------------------------------- */

Test(hooks, values_keep_the_names_of_the_file)
{
    const char *keep[] = {"alias", "mid", "y"};
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    o.keep = keep, o.n_keep = 3;
    ortc_session *s = open_session(model, &o); /* the pass that removes Identity has replaced alias by mid */
    for (int i = 0; i < 2; i++) {
        ortc_out out = {keep[i], NULL, 0, 0};
        cr_assert_eq(run(s, "x", x, 1, sixteen, &out, NULL), ORTC_OK, "%s", e.text);
        cr_expect_eq(((const float *)ortc_value_host(out.value))[2], 8);
        ortc_value_release(out.value);
    }
    cr_expect_eq(s->unit.placed.graph->n_outputs, 3);
    ortc_session_release(s);
    const char *none[] = {"nothing"};
    o.keep = none, o.n_keep = 1;
    cr_expect_eq(ortc_session_create(model, &o, &s, &e), ORTC_NOT_FOUND);
    cr_expect(strstr(e.text, "the model has no value 'nothing'"), "%s", e.text);
}

Test(hooks, what_would_be_fused_away_can_be_kept)
{
    /* In digits a Relu is fused into its Conv, and the BatchNormalization before it is folded into the Conv's
     * weights. */
    ortc_session *s = open_session(digits, NULL);
    const ortc_node *fused = s->unit.placed.graph->first;
    while (fused && !(fused->fused && !strcmp(fused->type, "Conv"))) fused = fused->next;
    cr_assert_not_null(fused);
    char relu[128], batch_norm[128] = "", conv[128] = "";
    snprintf(relu, sizeof relu, "%s", fused->out[0]->origin);
    const ortc_node *before = digits->graph->first; /* of the model, where Conv and Relu still are two */
    while (before &&
           !(before->out[0] && before->out[0]->uses && before->out[0]->uses->node &&
             before->out[0]->uses->node->out[0] && !strcmp(before->out[0]->uses->node->out[0]->name, relu)))
        before = before->next;
    cr_assert_not_null(before);
    snprintf(batch_norm, sizeof batch_norm, "%s", before->out[0]->origin);
    for (size_t i = 0; i < digits->graph->edges.count;
         i++) { /* what the Conv made in the file is made no more */
        const ortc_edge *edge = digits->graph->edges.data[i];
        if (edge->origin && !edge->producer && !edge->constant && edge->input < 0 && !edge->same)
            snprintf(conv, sizeof conv, "%s", edge->origin);
    }
    ortc_session_release(s);
    const char *keep[] = {relu, batch_norm};
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    o.keep = keep, o.n_keep = 2;
    s = open_session(digits, &o);
    static float pixels[64];
    for (int i = 0; i < 64; i++) pixels[i] = (float)(i * 29 % 256);
    ortc_out outs[2] = {{relu, NULL, 0, 0}, {batch_norm, NULL, 0, 0}};
    ortc_in in = {"image", ortc_wrap(pixels, ORTC_F32, 4, (int64_t[]){1, 1, 8, 8})};
    ortc_run_args a = ORTC_RUN_ARGS_INIT;
    a.in = &in, a.n_in = 1, a.out = outs, a.n_out = 2;
    cr_assert_eq(ortc_run(s, &a, &e), ORTC_OK, "%s", e.text);
    const float *r = ortc_value_host(outs[0].value), *b = ortc_value_host(outs[1].value);
    int below = 0;
    for (int64_t i = 0; i < ortc_value_count(outs[0].value); i++) {
        cr_expect_eq(r[i], b[i] > 0 ? b[i] : 0);
        below += b[i] < 0;
    }
    cr_expect_gt(below, 0, "the value before Relu");
    ortc_value_release(in.value), ortc_value_release(outs[0].value), ortc_value_release(outs[1].value);
    ortc_session_release(s);
    cr_assert(*conv);
    const char *lost[] = {conv};
    o.keep = lost, o.n_keep = 1;
    cr_expect_eq(ortc_session_create(digits, &o, &s, &e), ORTC_NOT_FOUND);
    cr_expect(strstr(e.text, "no longer computed") && strstr(e.text, "ORTC_MODEL_NO_PASSES"), "%s", e.text);
}

/* ---- Limits -------------------------------------------------------------------------------------------- */

Test(hooks, a_session_s_limit_covers_its_plans)
{
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    ortc_session *s = open_session(model, NULL);
    ortc_out out = {"y", NULL, 0, 0};
    cr_assert_eq(run(s, "x", x, 1, sixteen, &out, NULL), ORTC_OK);
    ortc_value_release(out.value);
    uint64_t plan = s->unit.plans.bytes, arenas = atomic_load(&s->unit.arena_bytes);
    ortc_session_release(s);
    o.max_bytes = plan + arenas + plan / 2; /* room for one plan */
    s = open_session(model, &o);
    for (int64_t n = 16; n > 8; n--) {
        out.value = NULL;
        cr_assert_eq(run(s, "x", x, 1, &n, &out, NULL), ORTC_OK, "%s", e.text);
        ortc_value_release(out.value);
        cr_expect_leq(s->unit.plans.bytes + atomic_load(&s->unit.arena_bytes), o.max_bytes);
    }
    ortc_session_release(s);
    o.max_bytes = plan / 2;
    s = open_session(model, &o);
    out.value = NULL;
    cr_expect_eq(run(s, "x", x, 1, sixteen, &out, NULL), ORTC_LIMIT);
    cr_expect(strstr(e.text, "a plan of"), "%s", e.text);
    ortc_session_release(s);
}

static uint64_t reader_bytes(void *arg) { return ((const buffer *)arg)->bytes; }
static ortc_status read_at(void *arg, uint64_t offset, void *to, size_t bytes, ortc_error *error)
{
    (void)error;
    memcpy(to, ((const buffer *)arg)->data + offset, bytes);
    return ORTC_OK;
}

Test(hooks, a_model_s_limit_covers_constants_in_memory)
{
    /* A weight of 4 KB as floats of the message: decoded into memory. As raw bytes of the caller's memory it
     * costs nothing. */
    for (int raw = 0; raw < 2; raw++) {
        buffer g = {0}, b;
        static float w[1024];
        b = make_value_info("x", ORTC_F32, 1, (int64_t[]){1024}), put_message(&g, 11, &b);
        b = make_value_info("y", ORTC_F32, 1, (int64_t[]){1024}), put_message(&g, 12, &b);
        b = make_tensor("w", ORTC_F32, 1, (int64_t[]){1024}, raw ? w : NULL, sizeof w);
        for (int i = 0; i < 1024 && !raw; i++) put_float(&b, 4, 1);
        put_message(&g, 5, &b);
        b = make_node("Add", "", "x w", "y"), put_message(&g, 1, &b);
        buffer bytes = make_model(8, 18, &g);
        ortc_model_options o = ORTC_MODEL_OPTIONS_INIT;
        ortc_model *m;
        o.max_bytes = 4000;
        cr_expect_eq(ortc_model_load_memory(bytes.data, bytes.bytes, &o, &m, &e), raw ? ORTC_OK : ORTC_LIMIT,
                     "%s", e.text);
        cr_expect(raw || strstr(e.text, "the model's constants take 4096 bytes"), "%s", e.text);
        ortc_model_release(m);
        /* Through a reader without a map it is copied, whole. */
        ortc_reader r = {.size = sizeof r, .arg = &bytes, .bytes = reader_bytes, .read_at = read_at};
        cr_expect_eq(ortc_model_load_reader(&r, &o, &m, &e), ORTC_LIMIT);
        o.max_bytes = 16000;
        cr_expect_eq(ortc_model_load_reader(&r, &o, &m, &e), ORTC_OK, "%s", e.text);
        ortc_model_release(m);
        buffer_free(&bytes);
    }
}

/* ---- Parts, and models to look at ---------------------------------------------------------------------- */

Test(hooks, a_part_of_a_model_is_written)
{
    buffer g = {0}, b;
    b = make_value_info("x", ORTC_F32, 1, (int64_t[]){2}), put_message(&g, 11, &b);
    b = make_value_info("z", ORTC_F32, 1, (int64_t[]){2}), put_message(&g, 11, &b);
    b = make_value_info("y", ORTC_F32, 1, (int64_t[]){2}), put_message(&g, 12, &b);
    b = make_node("Neg", "", "x", "a"), put_message(&g, 1, &b);
    b = make_node("Mul", "", "a z", "m"), put_message(&g, 1, &b);
    b = make_node("Add", "", "m a", "y"), put_message(&g, 1, &b);
    buffer bytes = make_model(8, 18, &g);
    ortc_model_options mo = ORTC_MODEL_OPTIONS_INIT;
    ortc_save_options so = ORTC_SAVE_OPTIONS_INIT;
    ortc_model *m, *part;
    char path[] = "/tmp/ortc-part-XXXXXX";
    close(mkstemp(path));
    mo.flags = ORTC_MODEL_NO_PASSES;
    cr_assert_eq(ortc_model_load_memory(bytes.data, bytes.bytes, &mo, &m, &e), ORTC_OK, "%s", e.text);
    const char *from[] = {"a"}, *to[] = {"m", "y"}, *none[] = {"no"}, *null[] = {NULL};
    so.inputs = from, so.n_inputs = 1, so.outputs = to, so.n_outputs = 1;
    for (size_t n = 1; n <= 2; n++) { /* what makes m; what makes m and y */
        so.n_outputs = n;
        cr_assert_eq(ortc_model_save(m, path, &so, &e), ORTC_OK, "%s", e.text);
        cr_assert_eq(ortc_model_load(path, &mo, &part, &e), ORTC_OK, "%s", e.text);
        cr_expect_eq(ortc_model_describe(part)->n_nodes, n);
        cr_expect_str_eq(ortc_model_input(part, 0)->name, "a");
        cr_expect_str_eq(ortc_model_input(part, 1)->name, "z");
        cr_expect_null(ortc_model_input(part, 2));
        cr_expect_str_eq(ortc_model_output(part, n - 1)->name, to[n - 1]);
        cr_expect_null(ortc_model_output(part, n));
        ortc_model_release(part);
    }
    so.outputs = from, so.n_outputs = 1, so.n_inputs = 0; /* the start of it: z is not needed */
    cr_assert_eq(ortc_model_save(m, path, &so, &e), ORTC_OK, "%s", e.text);
    cr_assert_eq(ortc_model_load(path, &mo, &part, &e), ORTC_OK, "%s", e.text);
    cr_expect_str_eq(ortc_model_input(part, 0)->name, "x");
    cr_expect_null(ortc_model_input(part, 1));
    ortc_model_release(part);
    so.outputs = none;
    cr_expect_eq(ortc_model_save(m, path, &so, &e), ORTC_NOT_FOUND);
    cr_expect(strstr(e.text, "'no'"), "%s", e.text);
    so.outputs = null;
    cr_expect_eq(ortc_model_save(m, path, &so, &e), ORTC_INVALID_ARGUMENT, "%s", e.text);
    unlink(path);
    ortc_model_release(m);
    buffer_free(&bytes);
}

Test(hooks, a_model_that_misses_operators_can_be_looked_at)
{
    buffer g = {0}, b;
    b = make_value_info("x", ORTC_F32, 1, (int64_t[]){2}), put_message(&g, 11, &b);
    b = make_value_info("y", ORTC_F32, 1, (int64_t[]){2}), put_message(&g, 12, &b);
    b = make_node("Nothing", "", "x", "a"), put_message(&g, 1, &b);
    b = make_node("Softmax", "", "a", "s"), put_message(&g, 1, &b); /* its lifting finds no rank */
    b = make_node("Nothing", "", "s", "y"), put_message(&g, 1, &b);
    buffer bytes = make_model(8, 11, &g);
    ortc_model_options mo = ORTC_MODEL_OPTIONS_INIT;
    ortc_model *m;
    ortc_session *s = NULL;
    cr_expect_eq(ortc_model_load_memory(bytes.data, bytes.bytes, &mo, &m, &e), ORTC_UNSUPPORTED);
    cr_expect(strstr(e.text, "1 operator is not supported: Nothing (2 nodes)"), "%s", e.text);
    mo.flags = ORTC_MODEL_DESCRIBE;
    cr_assert_eq(ortc_model_load_memory(bytes.data, bytes.bytes, &mo, &m, &e), ORTC_OK, "%s", e.text);
    const ortc_model_info *d = ortc_model_describe(m);
    cr_expect(d->n_nodes == 3 && d->n_missing == 1);
    cr_expect_str_eq(d->missing[0], "Nothing (2 nodes)");
    cr_expect_str_eq(ortc_model_output(m, 0)->name, "y");
    cr_expect_eq(ortc_session_create(m, NULL, &s, &e), ORTC_UNSUPPORTED);
    cr_expect(strstr(e.text, "Nothing (2 nodes)"), "%s", e.text);
    cr_expect_eq(ortc_model_save(m, "/tmp/never.onnx", NULL, &e), ORTC_UNSUPPORTED);
    ortc_model_release(m);
    buffer_free(&bytes);
}
