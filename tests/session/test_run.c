/* tests/session/test_run.c: ortc_run through the public interface: names, shapes, placed results, deadlines,
 * errors. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>

#include "base/base.h"
#include "base/sanitize.h"
#include "runtime/session/session.h"
#include "runtime/execute/context.h"

static ortc_model *model;
static ortc_session *session;
static float pixels[3 * 64];

static void setup(void)
{
    ortc_error e = ORTC_ERROR_INIT;
    for (size_t i = 0; i < ORTC_LENGTH(pixels); i++) pixels[i] = (float)(i * 29 % 256);
    cr_assert_eq(ortc_model_load(getenv("ORTC_DIGITS"), NULL, &model, &e), ORTC_OK, "%s", e.text);
    cr_assert_eq(ortc_session_create(model, NULL, &session, &e), ORTC_OK, "%s", e.text);
}
static void teardown(void)
{
    ortc_session_release(session);
    ortc_model_release(model);
}
TestSuite(run, .init = setup, .fini = teardown);

static ortc_status run(const char *in_name, ortc_dtype t, int32_t rank, const int64_t *dims,
                       const char *out_name, ortc_value **out, ortc_run_args *more, ortc_error *e)
{
    ortc_in in = {in_name, ortc_wrap(pixels, t, rank, dims)};
    ortc_out o = {out_name, *out, 0, 0};
    ortc_run_args a = ORTC_RUN_ARGS_INIT;
    if (more) a = *more;
    a.in = &in;
    a.n_in = 1;
    a.out = &o;
    a.n_out = 1;
    ortc_status s = ortc_run(session, &a, e);
    ortc_value_release(in.value);
    *out = o.value;
    return s;
}

static const int64_t shape[4] = {3, 1, 8, 8}, result_shape[2] = {3, 10};

Test(run, result_is_placed_by_the_library_or_the_caller)
{
    ortc_error e = ORTC_ERROR_INIT;
    ortc_value *made = NULL, *given = NULL;
    float memory[3 * 10 + 2] = {0};
    memory[0] = memory[31] = 42;
    cr_assert_eq(run("image", ORTC_F32, 4, shape, "probabilities", &made, NULL, &e), ORTC_OK, "%s", e.text);
    cr_expect_eq(ortc_value_rank(made), 2);
    cr_expect_eq((uintptr_t)ortc_value_host(made) % ORTC_ALIGNMENT, 0);
    given = ortc_wrap(memory + 1, ORTC_F32, 2, result_shape);
    ortc_value *same = given;
    cr_assert_eq(run("image", ORTC_F32, 4, shape, "probabilities", &given, NULL, &e), ORTC_OK, "%s", e.text);
    cr_expect_eq(same, given);
    cr_expect_arr_eq(memory + 1, ortc_value_host(made), 30 * sizeof(float));
    cr_expect_eq(memory[0], 42);
    cr_expect_eq(memory[31], 42);
    ortc_value_release(made);
    ortc_value_release(given);
}

Test(run, an_unaligned_input_is_read_all_the_same)
{
    ortc_error e = ORTC_ERROR_INIT;
    ortc_value *plain = NULL, *odd = NULL;
    char *bytes = malloc(sizeof pixels + 1);
    memcpy(bytes + 1, pixels, sizeof pixels);
    ortc_in in = {"image", ortc_wrap(bytes + 1, ORTC_F32, 4, shape)};
    ortc_out out = {"probabilities", NULL, 0, 0};
    ortc_run_args a = ORTC_RUN_ARGS_INIT;
    a.in = &in, a.n_in = 1, a.out = &out, a.n_out = 1;
    cr_assert_eq(run("image", ORTC_F32, 4, shape, "probabilities", &plain, NULL, &e), ORTC_OK, "%s", e.text);
    cr_assert_eq(ortc_run(session, &a, &e), ORTC_OK, "%s", e.text);
    odd = out.value;
    cr_expect_arr_eq(ortc_value_host(odd), ortc_value_host(plain), 30 * sizeof(float));
    ortc_value_release(in.value);
    ortc_value_release(odd);
    ortc_value_release(plain);
    free(bytes);
}

Test(run, bad_use_says_what_was_expected_and_what_came)
{
    static const struct {
        const char *in, *out;
        ortc_dtype dtype;
        int32_t rank;
        int64_t dims[4];
        ortc_status status;
        const char *text;
    } cases[] = {
        {"picture",
         "probabilities",
         ORTC_F32,
         4,
         {3, 1, 8, 8},
         ORTC_INVALID_ARGUMENT,
         "no input 'picture'; it has 'image'"},
        {"image",
         "result",
         ORTC_F32,
         4,
         {3, 1, 8, 8},
         ORTC_INVALID_ARGUMENT,
         "no output 'result'; it has 'probabilities'"},
        {"image", "probabilities", ORTC_F64, 4, {1, 1, 8, 8}, ORTC_TYPE_MISMATCH, "got f64[1,1,8,8]"},
        {"image",
         "probabilities",
         ORTC_F32,
         4,
         {1, 3, 8, 8},
         ORTC_SHAPE_MISMATCH,
         "expected f32[N,1,8,8], got f32[1,3,8,8]"},
        {"image", "probabilities", ORTC_F32, 3, {1, 8, 8}, ORTC_SHAPE_MISMATCH, "got f32[1,8,8]"},
    };
    for (size_t i = 0; i < ORTC_LENGTH(cases); i++) {
        ortc_error e = ORTC_ERROR_INIT;
        ortc_value *out = NULL;
        cr_expect_eq(run(cases[i].in, cases[i].dtype, cases[i].rank, cases[i].dims, cases[i].out, &out, NULL,
                         &e),
                     cases[i].status, "case %zu: %s", i, e.text);
        cr_expect(strstr(e.text, cases[i].text), "case %zu: \"%s\" lacks \"%s\"", i, e.text, cases[i].text);
        cr_expect_null(out);
    }
    ortc_error e = ORTC_ERROR_INIT; /* and the session still works */
    ortc_value *out = NULL;
    cr_expect_eq(run("image", ORTC_F32, 4, shape, "probabilities", &out, NULL, &e), ORTC_OK);
    ortc_value_release(out);
}

Test(run, a_given_output_of_another_shape_is_refused)
{
    ortc_error e = ORTC_ERROR_INIT;
    float memory[20];
    int64_t dims[2] = {2, 10};
    ortc_value *out = ortc_wrap(memory, ORTC_F32, 2, dims);
    cr_expect_eq(run("image", ORTC_F32, 4, shape, "probabilities", &out, NULL, &e), ORTC_SHAPE_MISMATCH);
    cr_expect(strstr(e.text, "the result is f32[3,10], the given tensor is f32[2,10]"), "%s", e.text);
    ortc_value_release(out);
}

Test(run, a_batch_of_zero_gives_an_empty_result)
{
    ortc_error e = ORTC_ERROR_INIT;
    int64_t dims[4] = {0, 1, 8, 8};
    ortc_value *out = NULL;
    cr_assert_eq(run("image", ORTC_F32, 4, dims, "probabilities", &out, NULL, &e), ORTC_OK, "%s", e.text);
    cr_expect_eq(ortc_value_count(out), 0);
    cr_expect_eq(ortc_value_dims(out)[0], 0);
    ortc_value_release(out);
}

Test(run, cancel_and_deadline_stop_a_run)
{
    ortc_error e = ORTC_ERROR_INIT;
    ortc_run_args a = ORTC_RUN_ARGS_INIT;
    ortc_value *out = NULL;
    ortc_cancel *cancel;
    cr_assert_eq(ortc_cancel_create(&cancel, &e), ORTC_OK);
    ortc_cancel_set(cancel);
    a.cancel = cancel;
    cr_expect_eq(run("image", ORTC_F32, 4, shape, "probabilities", &out, &a, &e), ORTC_CANCELLED);
    ortc_cancel_reset(cancel);
    cr_expect_eq(run("image", ORTC_F32, 4, shape, "probabilities", &out, &a, &e), ORTC_OK, "%s", e.text);
    ortc_value_release(out);
    out = NULL;
    a.cancel = NULL;
    a.deadline_ns = 1;
    cr_expect_eq(run("image", ORTC_F32, 4, shape, "probabilities", &out, &a, &e), ORTC_DEADLINE);
    cr_expect_null(out);
    ortc_cancel_release(cancel);
}

Test(run, a_limit_is_kept_and_says_what_is_large)
{
    ortc_error e = ORTC_ERROR_INIT;
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    ortc_session *unlimited = session, *limited;
    o.flags = ORTC_SESSION_NO_WINOGRAD; /* whose workspace is larger than all that is in this model */
    /* enough for a batch of 1, not of 3; plans take more under a sanitizer */
    o.max_bytes = 32000;
    o.threads = 1; /* each has a workspace */
#ifdef ORTC_SANITIZED
    o.max_bytes += 8000;
#endif
    cr_assert_eq(ortc_session_create(model, &o, &limited, &e), ORTC_OK);
    session = limited;
    ortc_value *out = NULL;
    int64_t one[4] = {1, 1, 8, 8};
    cr_expect_eq(run("image", ORTC_F32, 4, shape, "probabilities", &out, NULL, &e), ORTC_LIMIT);
    cr_expect(strstr(e.text, "the largest: f32[3,32,8,8]"), "%s", e.text);
    ortc_session_trim(session); /* of that plan */
    cr_expect_eq(run("image", ORTC_F32, 4, one, "probabilities", &out, NULL, &e), ORTC_OK, "%s", e.text);
    ortc_value_release(out);
    session = unlimited;
    ortc_session_release(limited);
}

Test(run, one_plan_per_key)
{
    ortc_error e = ORTC_ERROR_INIT;
    for (int i = 0; i < 12; i++) {
        int64_t dims[4] = {1 + i % 3, 1, 8, 8};
        ortc_value *out = NULL;
        cr_assert_eq(run("image", ORTC_F32, 4, dims, "probabilities", &out, NULL, &e), ORTC_OK, "%s", e.text);
        ortc_value_release(out);
    }
    cr_expect_eq(atomic_load(&session->unit.plans.made), 3);
    cr_expect_gt(ortc_session_trim(session), 0);
    ortc_value *out = NULL;
    cr_expect_eq(run("image", ORTC_F32, 4, shape, "probabilities", &out, NULL, &e), ORTC_OK, "%s", e.text);
    ortc_value_release(out);
}

Test(run, forms_of_a_first_run_pass)
{
    ortc_error e = ORTC_ERROR_INIT;
    ortc_value *out[3] = {NULL};
    atomic_store(&session->unit.fresh, true);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(run("image", ORTC_F32, 4, shape, "probabilities", &out[i], NULL, &e), ORTC_OK, "%s",
                     e.text);
        cr_expect_eq(model->packed.bytes > 0, i > 0);
        cr_expect_eq(atomic_load(&session->unit.plans.made), i > 0);
        cr_expect_arr_eq(ortc_value_data(out[i]), ortc_value_data(out[0]), ortc_value_bytes(out[0]));
    }
    for (int i = 0; i < 3; i++) ortc_value_release(out[i]);
}

Test(run, packed_weights_are_shared_by_sessions)
{
    ortc_error e = ORTC_ERROR_INIT;
    ortc_value *out = NULL;
    atomic_store(&session->unit.fresh, false); /* a first run's forms would pass */
    cr_assert_eq(run("image", ORTC_F32, 4, shape, "probabilities", &out, NULL, &e), ORTC_OK);
    ortc_value_release(out);
    uint64_t one = model->packed.bytes;
    cr_expect_gt(one, 0);
    ortc_session *first = session, *second;
    cr_assert_eq(ortc_session_create(model, NULL, &second, &e), ORTC_OK);
    session = second;
    out = NULL;
    cr_expect_eq(run("image", ORTC_F32, 4, shape, "probabilities", &out, NULL, &e), ORTC_OK);
    ortc_value_release(out);
    cr_expect_eq(model->packed.bytes, one);
    session = first;
    ortc_session_release(second);
    ortc_session_trim(first);
    cr_expect_eq(model->packed.bytes, 0, "packed forms go with their last user");
}

/* Bytes that are kept of a large result which the caller has released, twice. */
static int64_t kept_after_two_runs(ortc_session *s, bool same)
{
    enum { IMAGES = 2000 };
    static float images[IMAGES * 64];
    void *at[2] = {NULL, NULL};
    ortc_error e = ORTC_ERROR_INIT;
    for (int i = 0; i < 2; i++) {
        ortc_in in = {"image", ortc_wrap(images, ORTC_F32, 4, (int64_t[]){IMAGES, 1, 8, 8})};
        ortc_out out = {"probabilities", NULL, 0, 0};
        ortc_run_args a = ORTC_RUN_ARGS_INIT;
        a.in = &in, a.n_in = 1, a.out = &out, a.n_out = 1;
        cr_assert_eq(ortc_run(s, &a, &e), ORTC_OK, "%s", e.text);
        at[i] = ortc_value_data(out.value);
        ortc_value_release(out.value);
        ortc_value_release(in.value);
    }
    if (same) cr_expect_eq(at[0], at[1], "the second result is where the first was");
    return (int64_t)ortc_kept_trim(s->unit.kept);
}

Test(run, memory_of_a_released_result_is_the_next_one_s)
{
    ortc_error e = ORTC_ERROR_INIT;
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    ortc_session *limited;
    cr_expect_geq(kept_after_two_runs(session, true), 2000 * 10 * 4);
    o.max_bytes = 1 << 30;
    cr_assert_eq(ortc_session_create(model, &o, &limited, &e), ORTC_OK, "%s", e.text);
    cr_expect_eq(kept_after_two_runs(limited, false), 0, "nothing that a limit does not count");
    ortc_session_release(limited);
}

static void run_many(ortc_session *s, float *to)
{
    enum { IMAGES = 300 };
    static float images[IMAGES * 64];
    ortc_error e = ORTC_ERROR_INIT;
    for (int i = 0; i < IMAGES * 64; i++) images[i] = (float)(i * 29 % 256);
    ortc_in in = {"image", ortc_wrap(images, ORTC_F32, 4, (int64_t[]){IMAGES, 1, 8, 8})};
    ortc_out out = {"probabilities", ortc_wrap(to, ORTC_F32, 2, (int64_t[]){IMAGES, 10}), 0, 0};
    ortc_run_args a = ORTC_RUN_ARGS_INIT;
    a.in = &in, a.n_in = 1, a.out = &out, a.n_out = 1;
    cr_assert_eq(ortc_run(s, &a, &e), ORTC_OK, "%s", e.text);
    ortc_value_release(out.value);
    ortc_value_release(in.value);
}

Test(run, sessions_that_take_turns_have_one_arena)
{
    ortc_error e = ORTC_ERROR_INIT;
    ortc_session *other;
    static float first[3000], now[3000];
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    o.max_contexts = 3; /* one of its own */
    cr_assert_eq(ortc_session_create(model, &o, &other, &e), ORTC_OK, "%s", e.text);
    run_many(session, first);
    const uint64_t bytes = atomic_load(&session->unit.arena_bytes);
    cr_assert_geq(bytes, 1 << 20);
    for (int i = 0; i < 4; i++) {
        memset(now, 0, sizeof now);
        run_many(i % 2 ? session : other, now);
        cr_expect_arr_eq(now, first, sizeof now);
        cr_expect_eq(atomic_load(&session->unit.arena_bytes), i % 2 ? bytes : 0);
        cr_expect_eq(atomic_load(&other->unit.arena_bytes), i % 2 ? 0 : bytes);
    }
    cr_expect_geq(ortc_session_trim(session), bytes);
    run_many(other, now); /* new memory: nobody offers any */
    ortc_session_release(other);
    run_many(session, now);
    cr_expect_arr_eq(now, first, sizeof now);
}

/* ---- Packing ------------------------------------------------------------------------------------------- */

static ortc_pack_store store;
static ortc_constant *four;
static atomic_int n_fills;

static int32_t waiting_for_it(void)
{
    int32_t n = 0;
    pthread_mutex_lock(&store.lock);
    for (size_t b = 0; b < ORTC_LENGTH(store.buckets); b++)
        for (const ortc_pack_item *i = store.buckets[b]; i; i = i->next) n += (int32_t)i->references - 1;
    pthread_mutex_unlock(&store.lock);
    return n;
}

static size_t four_bytes(const ortc_view *src, const void *param)
{
    (void)src, (void)param;
    return 4;
}
/* The first is cancelled when another run waits for what it makes. */
static ortc_status fill_at_second_try(void *dst, const ortc_view *src, const void *param, ortc_call *call)
{
    (void)param, (void)call;
    if (atomic_fetch_add(&n_fills, 1) == 0) {
        while (!waiting_for_it()) sched_yield();
        return ORTC_CANCELLED;
    }
    memcpy(dst, src->data, 4);
    return ORTC_OK;
}

static void *acquire(void *arg)
{
    static const ortc_packing packing = {sizeof packing, "test", four_bytes, fill_at_second_try};
    ortc_run_env env = {.threads = 1};
    ortc_pack_item *item = NULL;
    ortc_status *status = arg;
    *status = ortc_pack_acquire(&store, four, NULL, &packing, NULL, 0, &env, &item, NULL);
    ortc_pack_release(&store, item);
    return NULL;
}

Test(run, packing_that_one_run_cancels_is_done_by_those_that_wait)
{
    pthread_t threads[2];
    ortc_status status[2];
    ortc_error e = ORTC_ERROR_INIT;
    cr_assert(ortc_pack_store_init(&store, 0));
    cr_assert_eq(ortc_constant_create(ORTC_F32, 0, NULL, pixels, 4, NULL, NULL, &four, &e), ORTC_OK, "%s",
                 e.text);
    for (int i = 0; i < 2; i++) cr_assert_eq(pthread_create(&threads[i], NULL, acquire, &status[i]), 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    cr_expect(status[0] + status[1] == ORTC_CANCELLED && (!status[0] || !status[1]), "%s and %s",
              ortc_status_name(status[0]), ortc_status_name(status[1]));
    cr_expect_eq(atomic_load(&n_fills), 2);
    ortc_constant_release(four);
    ortc_pack_store_deinit(&store);
}

enum { FORM_BYTES = 1400 * 1024 + 4 };
static size_t many_bytes(const ortc_view *src, const void *param)
{
    (void)src, (void)param;
    return FORM_BYTES;
}
static ortc_status fill_with_param(void *dst, const ortc_view *src, const void *param, ortc_call *call)
{
    (void)src, (void)call;
    memset(dst, *(const unsigned char *)param, FORM_BYTES);
    return ORTC_OK;
}

Test(run, many_packed_forms_lie_together_and_go_one_by_one)
{
    enum { FORMS = 100 }; /* 137 MB: three of the heap's slabs */
    static const ortc_packing packing = {sizeof packing, "many", many_bytes, fill_with_param};
    static ortc_pack_item *items[FORMS];
    ortc_run_env env = {.threads = 1};
    ortc_error e = ORTC_ERROR_INIT;
    int side_by_side = 0;
    cr_assert(ortc_pack_store_init(&store, 0));
    cr_assert_eq(ortc_constant_create(ORTC_F32, 0, NULL, pixels, 4, NULL, NULL, &four, &e), ORTC_OK, "%s",
                 e.text);
    for (unsigned char i = 0; i < FORMS; i++) {
        cr_assert_eq(ortc_pack_acquire(&store, four, NULL, &packing, &i, 1, &env, &items[i], &e), ORTC_OK,
                     "%s", e.text);
        cr_expect_eq((uintptr_t)items[i]->packed.data % ORTC_ALIGNMENT, 0);
        const char *last = i ? items[i - 1]->packed.data : NULL, *data = items[i]->packed.data;
        side_by_side += data - last == (FORM_BYTES + ORTC_ALIGNMENT - 1) / ORTC_ALIGNMENT * ORTC_ALIGNMENT;
    }
    if (ortc_heap_least < FORM_BYTES) cr_expect_gt(side_by_side, FORMS / 2);
    cr_expect_eq(store.bytes, (uint64_t)FORMS * FORM_BYTES);
    /* pages are joined behind runs that packed nothing, a short one's share being too little for one, until
     * none are left or one is slow; what lies there stays */
    ortc_pack_join(&store, INT64_C(1000000000));
    ortc_pack_join(&store, 1000);
    cr_expect(atomic_load(&store.unjoined));
    for (int i = 0; i < 1000 && atomic_load(&store.unjoined); i++)
        ortc_pack_join(&store, INT64_C(1000000000));
    cr_expect(!atomic_load(&store.unjoined));
    for (int i = 0; i < FORMS; i++) { /* every third first */
        const int k = i * 3 % FORMS;
        const unsigned char *data = items[k]->packed.data;
        for (int at = 0; at < FORM_BYTES; at++)
            if (data[at] != k) cr_assert_fail("form %d at %d is %d", k, at, data[at]);
        ortc_pack_release(&store, items[k]);
    }
    cr_expect_eq(store.bytes, 0);
    ortc_constant_release(four);
    ortc_pack_store_deinit(&store);
}

/* ---- Sessions that are shared -------------------------------------------------------------------------- */

static ortc_session *made_with(const ortc_session_options *o)
{
    ortc_error e = ORTC_ERROR_INIT;
    ortc_session *s = NULL;
    cr_expect_eq(ortc_session_create(model, o, &s, &e), ORTC_OK, "%s", e.text);
    return s;
}

Test(run, equal_options_give_the_same_session)
{
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    char name[] = "cpu";
    cr_expect_eq(made_with(NULL), session);
    cr_expect_eq(made_with(&o), session);
    ortc_session_release(session);
    ortc_session_release(session);
    o.providers = name;
    o.threads = 1;
    ortc_session *one = made_with(&o);
    cr_expect_neq(one, session);
    o.providers = "cpu"; /* the text counts, which was copied */
    strcpy(name, "ref");
    cr_expect_eq(made_with(&o), one);
    ortc_session_release(one);
    o.providers = name;
    ortc_session *ref = made_with(&o);
    cr_expect(ref != one && ref != session);
    ortc_session_release(ref);
    ortc_session_release(one); /* the last of it: who asks now gets a new one */
    o.providers = "cpu";
    one = made_with(&o);
    ortc_error e = ORTC_ERROR_INIT;
    ortc_value *made = NULL;
    ortc_session *first = session;
    session = one;
    cr_expect_eq(run("image", ORTC_F32, 4, shape, "probabilities", &made, NULL, &e), ORTC_OK, "%s", e.text);
    ortc_value_release(made);
    session = first;
    o.max_bytes = 1 << 24; /* a limit counts what is one session's */
    ortc_session *limited = made_with(&o), *again = made_with(&o);
    cr_expect_neq(limited, again);
    ortc_session_release(one), ortc_session_release(limited), ortc_session_release(again);
}

static void *come_and_go(void *arg)
{
    ortc_error e = ORTC_ERROR_INIT;
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    o.threads = 1;
    for (int i = 0; i < 50; i++) {
        ortc_session *s = NULL;
        if (ortc_session_create(model, &o, &s, &e)) return arg;
        if (s->asked->threads != 1 || s->model != model) return arg;
        ortc_session_release(s);
    }
    return NULL;
}

Test(run, sessions_are_shared_and_given_back_by_threads_at_once)
{
    pthread_t threads[4];
    for (size_t i = 0; i < ORTC_LENGTH(threads); i++) pthread_create(&threads[i], NULL, come_and_go, &model);
    for (size_t i = 0; i < ORTC_LENGTH(threads); i++) {
        void *failed = NULL;
        pthread_join(threads[i], &failed);
        cr_expect_null(failed);
    }
}

/* A wish: on a machine of one node nothing changes, on others no bit does. */
Test(run, packed_forms_may_lie_over_all_nodes)
{
    ortc_error e = ORTC_ERROR_INIT;
    ortc_value *plain = NULL, *spread = NULL;
    ortc_model_options o = ORTC_MODEL_OPTIONS_INIT;
    ortc_model *other;
    ortc_session *first = session;
    cr_assert_eq(run("image", ORTC_F32, 4, shape, "probabilities", &plain, NULL, &e), ORTC_OK, "%s", e.text);
    o.flags = ORTC_MODEL_INTERLEAVE;
    cr_assert_eq(ortc_model_load(getenv("ORTC_DIGITS"), &o, &other, &e), ORTC_OK, "%s", e.text);
    cr_assert_eq(ortc_session_create(other, NULL, &session, &e), ORTC_OK, "%s", e.text);
    cr_expect(other->packed.interleaved && !model->packed.interleaved);
    cr_assert_eq(run("image", ORTC_F32, 4, shape, "probabilities", &spread, NULL, &e), ORTC_OK, "%s", e.text);
    cr_expect_arr_eq(ortc_value_host(plain), ortc_value_host(spread), 30 * sizeof(float));
    ortc_value_release(plain), ortc_value_release(spread);
    ortc_session_release(session);
    ortc_model_release(other);
    session = first;
}
