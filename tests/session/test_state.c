/* tests/session/test_state.c: tied state: the same results as carrying outputs to inputs by hand, in place
 * where a kernel can, and unharmed by runs that fail.
 */
#include <criterion/criterion.h>
#include <math.h>

#include "runtime/session/session.h"
#include "runtime/execute/tied.h"
#include "runtime/registry/registry.h"
#include "tests/unit/wire_writer.h"

/* ---- Operators of the test: one that writes a cache in place, one that fails on demand ----------------- */

static int trip; /* Trip cancels its run after so many more calls; 0: never */
static ortc_cancel *tripped;
static const void *put_wrote[2], *put_read[2];
static int n_puts;

static ortc_status infer_like(ortc_infer *c) { return ortc_infer_like(c, 0, 0); }
/* As caches of com.microsoft's attention: as long as the longer one, which only numbers tell. */
static ortc_status infer_longer(ortc_infer *c)
{
    const ortc_port cache = ortc_infer_in(c, 0), update = ortc_infer_in(c, 1);
    ortc_dim dims[3] = {cache.dims[0], ORTC_DIM_UNKNOWN, cache.dims[2]};
    if (ortc_dim_is_number(cache.dims[1]) && ortc_dim_is_number(update.dims[1]))
        dims[1] = cache.dims[1] > update.dims[1] ? cache.dims[1] : update.dims[1];
    return ortc_infer_out(c, 0, cache.dtype, 3, dims);
}

/* cache [B, C, D], update [B, n, D], at [1]: update is written from position at[0] on. */
static ortc_status run_put(const void *state, const void *plan, ortc_call *call)
{
    (void)state, (void)plan;
    const ortc_view *cache = &call->in[0], *update = &call->in[1], *at = &call->in[2];
    float *out = call->out[0].data;
    int64_t c = cache->dims[1], d = cache->dims[2], n = update->dims[1], from = *(const int64_t *)at->data;
    if (from < 0 || from + n > c)
        return ortc_call_fail(call, ORTC_INVALID_ARGUMENT, "positions %lld to %lld of %lld", (long long)from,
                              (long long)(from + n), (long long)c);
    if (out != cache->data) memcpy(out, cache->data, (size_t)ortc_view_count(cache) * sizeof *out);
    for (int64_t b = 0; b < cache->dims[0]; b++)
        memcpy(out + (b * c + from) * d, (const float *)update->data + b * n * d,
               (size_t)(n * d) * sizeof *out);
    put_read[n_puts % 2] = cache->data;
    put_wrote[n_puts++ % 2] = out;
    return ORTC_OK;
}
static ortc_status plan_put(const void *state, ortc_plan *p, void **pstate)
{
    (void)state, (void)pstate;
    ortc_plan_may_reuse(p, 0, 0);
    return ORTC_OK;
}
static ortc_status run_trip(const void *state, const void *plan, ortc_call *call)
{
    (void)state, (void)plan;
    memcpy(call->out[0].data, call->in[0].data, (size_t)ortc_view_count(&call->in[0]) * sizeof(float));
    if (trip && !--trip) ortc_cancel_set(tripped);
    return ortc_poll(call);
}
static const ortc_kernel put = {
    .size = sizeof put, .flags = ORTC_KERNEL_STATE, .name = "put", .plan = plan_put, .run = run_put};
static const ortc_kernel trip_kernel = {.size = sizeof put, .name = "trip", .run = run_trip};
static const ortc_op ops[] = {
    ORTC_OP("test", "Put", 1, 1, "", "cache:T update:T at:i64", "present:T", "", "T=f32", infer_like, NULL,
            0),
    ORTC_OP("test", "PutLonger", 1, 1, "", "cache:T update:T at:i64", "present:T", "", "T=f32", infer_longer,
            NULL, 0),
    ORTC_OP("test", "Trip", 1, 1, "", "x:T", "y:T", "", "T=f32", infer_like, NULL, 0),
};
ORTC_KERNELS(ref, state_test, ORTC_KERNEL_IN("test", "Put", 1, 1, (ORTC_TYPE(ORTC_F32)), &put),
             ORTC_KERNEL_IN("test", "PutLonger", 1, 1, (ORTC_TYPE(ORTC_F32)), &put),
             ORTC_KERNEL_IN("test", "Trip", 1, 1, (ORTC_TYPE(ORTC_F32)), &trip_kernel));
ORTC_FAMILY(state_test, ops, &ortc_kernels_ref_state_test);

/* ---- Models -------------------------------------------------------------------------------------------- */

static buffer g, model_bytes; /* the model reads the latter */
static ortc_error e;
static ortc_model *model;
static ortc_session *session;
static const char *providers; /* of the next session */

static void end(int field, const char *name, int dtype, int rank, const int64_t *dims)
{
    buffer b = make_value_info(name, dtype, rank, dims);
    put_message(&g, field, &b);
}
enum { IN = 11, OUT = 12 };
static void node(const char *op, const char *domain, const char *in, const char *out)
{
    buffer b = make_node(op, domain, in, out);
    put_message(&g, 1, &b);
}
static void weights(void) /* W: f32[4,4] */
{
    float w[16];
    for (int i = 0; i < 16; i++) w[i] = (float)(i * 7 % 11 - 5) / 8;
    buffer b = make_tensor("W", ORTC_F32, 2, (int64_t[]){4, 4}, w, sizeof w);
    put_message(&g, 5, &b);
}

static void load(const ortc_tie *ties, size_t n_ties)
{
    model_bytes = make_model(10, 18, &g);
    put_opset(&model_bytes, 8, "test", 1);
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    o.ties = ties;
    o.n_ties = n_ties;
    o.providers = providers;
    cr_assert_eq(ortc_model_load_memory(model_bytes.data, model_bytes.bytes, NULL, &model, &e), ORTC_OK, "%s",
                 e.text);
    ortc_session_create(model, &o, &session, &e);
}
static void setup(void)
{
    e = (ortc_error)ORTC_ERROR_INIT;
    cr_assert_eq(ortc_registry_init(&e), ORTC_OK);
    if (!ortc_op_find("test", "Put"))
        cr_assert_eq(ortc_host_add_family(ortc_host_get(), &ortc_family_state_test), ORTC_OK);
    cr_assert_eq(ortc_cancel_create(&tripped, &e), ORTC_OK);
}
static void teardown(void)
{
    ortc_cancel_release(tripped);
    ortc_session_release(session);
    ortc_model_release(model);
    buffer_free(&model_bytes);
}
TestSuite(state, .init = setup, .fini = teardown);

/* h' = tanh(trip(h W + x)), y = h' x; batch is a symbol. */
static void recurrent(const ortc_tie *ties, size_t n_ties)
{
    static const int64_t dims[2] = {-1, 4};
    end(IN, "x", ORTC_F32, 2, dims);
    end(IN, "h", ORTC_F32, 2, dims);
    end(OUT, "y", ORTC_F32, 2, dims);
    end(OUT, "next", ORTC_F32, 2, dims);
    weights();
    node("MatMul", "", "h W", "z");
    node("Add", "", "z x", "a");
    node("Trip", "test", "a", "t");
    node("Tanh", "", "t", "next");
    node("Mul", "", "next x", "y");
    load(ties, n_ties);
}
static const ortc_tie whole = {"h", "next", -1, 0, 0};

/* present = past and x along axis 2 of [s1, 2, n, 3]; y = sum over it. */
static void growing(const ortc_tie *ties, size_t n_ties)
{
    static const int64_t past[4] = {-1, 2, -2, 3}, now[4] = {-1, 2, -3, 3}, present[4] = {-1, 2, -4, 3},
                         sum[3] = {-1, 2, 3};
    end(IN, "x", ORTC_F32, 4, now);
    end(IN, "past", ORTC_F32, 4, past);
    end(OUT, "present", ORTC_F32, 4, present);
    end(OUT, "y", ORTC_F32, 3, sum);
    buffer axes = make_tensor("axes", ORTC_I64, 1, (int64_t[]){1}, (int64_t[]){2}, 8);
    put_message(&g, 5, &axes);
    buffer n = make_node("Concat", "", "past x", "present"), a = {0};
    put_string(&a, 1, "axis"), put_int(&a, 3, 2), put_int(&a, 20, 2);
    put_message(&n, 5, &a);
    put_message(&g, 1, &n);
    n = make_node("ReduceSum", "", "present axes", "y");
    put_string(&a, 1, "keepdims"), put_int(&a, 3, 0), put_int(&a, 20, 2);
    put_message(&n, 5, &a);
    put_message(&g, 1, &n);
    load(ties, n_ties);
}

/* present = put(cache, x, at); y = sum(present) over axis 1, z = trip(y). cache [s1, s2 or 6, 2]. */
static const char *put_op = "Put";
static void cached(bool symbol, bool old_is_read, const ortc_tie *ties, size_t n_ties)
{
    const int64_t cache[3] = {-1, symbol ? -2 : 6, 2}, x[3] = {-1, -3, 2}, sum[2] = {-1, 2};
    end(IN, "cache", ORTC_F32, 3, cache);
    end(IN, "x", ORTC_F32, 3, x);
    end(IN, "at", ORTC_I64, 1, (int64_t[]){1});
    end(OUT, "present", ORTC_F32, 3, strcmp(put_op, "Put") ? (int64_t[]){-1, -4, 2} : cache);
    end(OUT, "z", ORTC_F32, 2, sum);
    buffer axes = make_tensor("axes", ORTC_I64, 1, (int64_t[]){1}, (int64_t[]){1}, 8);
    put_message(&g, 5, &axes);
    node(put_op, "test", "cache x at", "present");
    if (old_is_read) node("Add", "", "present cache", "both");
    buffer n = make_node("ReduceSum", "", old_is_read ? "both axes" : "present axes", "y"), a = {0};
    put_string(&a, 1, "keepdims"), put_int(&a, 3, 0), put_int(&a, 20, 2);
    put_message(&n, 5, &a);
    put_message(&g, 1, &n);
    node("Trip", "test", "y", "z");
    load(ties, n_ties);
}

/* ---- Running ------------------------------------------------------------------------------------------- */

typedef struct bound {
    const char *name;
    ortc_dtype dtype;
    int32_t rank;
    int64_t dims[4];
    void *data; /* NULL: an output that the library places */
} bound;

/* Inputs and outputs end with a NULL name. Results that the library places go to `placed`. */
static ortc_value *placed[4];
static ortc_event **done; /* of the next runs; NULL: they return when finished */
static ortc_status run(ortc_state *st, const bound *ins, const bound *outs, int64_t advance)
{
    ortc_in in[4];
    ortc_out out[4];
    ortc_run_args a = ORTC_RUN_ARGS_INIT;
    a.in = in, a.out = out, a.state = st, a.cancel = tripped, a.advance = advance, a.done = done;
    for (; ins[a.n_in].name; a.n_in++)
        in[a.n_in] = (ortc_in){ins[a.n_in].name, ortc_wrap(ins[a.n_in].data, ins[a.n_in].dtype,
                                                           ins[a.n_in].rank, ins[a.n_in].dims)};
    for (; outs[a.n_out].name; a.n_out++) {
        const bound *o = &outs[a.n_out];
        out[a.n_out] = (ortc_out){o->name, o->data ? ortc_wrap(o->data, o->dtype, o->rank, o->dims) : NULL, 0,
                                  0};
    }
    ortc_status s = ortc_run(session, &a, &e);
    for (size_t i = 0; i < a.n_in; i++) ortc_value_release(in[i].value);
    for (size_t i = 0; i < a.n_out; i++)
        if (outs[i].data)
            ortc_value_release(out[i].value);
        else
            placed[i] = out[i].value;
    ortc_cancel_reset(tripped);
    return s;
}

static void fill(float *x, size_t n, int seed)
{
    for (size_t i = 0; i < n; i++) x[i] = (float)((int)(i * 13 + (size_t)seed * 7) % 17 - 8) / 16;
}

#define F32_2(name, a, b, data) \
    { \
        name, ORTC_F32, 2, {a, b}, data \
    }
static ortc_status step(ortc_state *st, float *x, float *y)
{
    return run(st, (bound[]){F32_2("x", 2, 4, x), {0}}, (bound[]){F32_2("y", 2, 4, y), {0}}, 0);
}

Test(state, a_recurrent_state_equals_carrying_it_by_hand_with_one_plan)
{
    recurrent(&whole, 1);
    cr_assert_not_null(session, "%s", e.text);
    ortc_state *st;
    cr_assert_eq(ortc_state_create(session, &st, &e), ORTC_OK, "%s", e.text);
    float h[2][8] = {{0}}, x[8], expected[8], y[8];
    for (int i = 0; i < 6; i++) {
        fill(x, 8, i);
        cr_assert_eq(run(NULL, (bound[]){F32_2("x", 2, 4, x), F32_2("h", 2, 4, h[i % 2]), {0}},
                         (bound[]){F32_2("y", 2, 4, expected), F32_2("next", 2, 4, h[!(i % 2)]), {0}}, 0),
                     ORTC_OK, "%s", e.text);
        cr_assert_eq(step(st, x, y), ORTC_OK, "%s", e.text);
        cr_expect_arr_eq(y, expected, sizeof y, "step %d", i);
    }
    cr_expect_eq(atomic_load(&session->unit.plans.made), 1, "the one that serves runs without a state too");
    cr_expect_eq(ortc_state_length(st), 0);
    cr_expect_eq(ortc_state_truncate(st, 0, &e), ORTC_OK, "%s", e.text);
    fill(x, 8, 0);
    cr_assert_eq(step(st, x, y), ORTC_OK);
    memset(h, 0, sizeof h);
    run(NULL, (bound[]){F32_2("x", 2, 4, x), F32_2("h", 2, 4, h[0]), {0}},
        (bound[]){F32_2("y", 2, 4, expected), {0}}, 0);
    cr_expect_arr_eq(y, expected, sizeof y, "started over");
    ortc_state_release(st);
}

Test(state, a_cancelled_run_leaves_it_as_it_was)
{
    recurrent(&whole, 1);
    ortc_state *cancelled, *other;
    cr_assert_eq(ortc_state_create(session, &cancelled, &e) | ortc_state_create(session, &other, &e),
                 ORTC_OK);
    float x[8], y[8], expected[8];
    for (int i = 0; i < 4; i++) {
        fill(x, 8, 50 + i);
        trip = 1;
        cr_expect_eq(step(cancelled, x, y), ORTC_CANCELLED);
        fill(x, 8, i);
        cr_assert_eq(step(cancelled, x, y), ORTC_OK, "%s", e.text);
        cr_assert_eq(step(other, x, expected), ORTC_OK, "%s", e.text);
        cr_expect_arr_eq(y, expected, sizeof y, "step %d", i);
    }
    ortc_state_release(cancelled);
    ortc_state_release(other);
}

Test(state, states_do_not_mix_and_take_their_own_extents)
{
    recurrent(&whole, 1);
    ortc_state *st[2];
    cr_assert_eq(ortc_state_create(session, &st[0], &e) | ortc_state_create(session, &st[1], &e), ORTC_OK);
    float h[2][8] = {{0}}, x[8], y[8], expected[8];
    for (int i = 0; i < 6; i++) { /* two rows in one, a row in the other */
        int who = i % 2, rows = who ? 1 : 2;
        float next[8];
        fill(x, 8, i);
        cr_assert_eq(run(NULL, (bound[]){F32_2("x", rows, 4, x), F32_2("h", rows, 4, h[who]), {0}},
                         (bound[]){F32_2("y", rows, 4, expected), F32_2("next", rows, 4, next), {0}}, 0),
                     ORTC_OK, "%s", e.text);
        memcpy(h[who], next, sizeof next);
        cr_assert_eq(run(st[who], (bound[]){F32_2("x", rows, 4, x), {0}},
                         (bound[]){F32_2("y", rows, 4, y), {0}}, 0),
                     ORTC_OK, "%s", e.text);
        cr_expect_arr_eq(y, expected, (size_t)rows * 16, "step %d", i);
    }
    cr_expect_eq(step(st[1], x, y), ORTC_SHAPE_MISMATCH, "a state keeps its batch");
    cr_expect(strstr(e.text, "'s1' is 1 along axis 0, and 2 in an input before"), "%s", e.text);
    ortc_state_release(st[0]);
    ortc_state_release(st[1]);
}

Test(state, it_is_saved_and_loaded_through_the_tied_names)
{
    recurrent(&whole, 1);
    ortc_state *a, *b;
    cr_assert_eq(ortc_state_create(session, &a, &e) | ortc_state_create(session, &b, &e), ORTC_OK);
    float x[8], y[8], expected[8], saved[8], before[8];
    fill(x, 8, 1);
    const bound ins[] = {F32_2("x", 2, 4, x), F32_2("h", 2, 4, saved), {0}};
    cr_assert_eq(step(a, x, y), ORTC_OK);
    /* x is missing */
    cr_assert_eq(run(a, ins + 2, (bound[]){F32_2("y", 2, 4, y), {0}}, 0), ORTC_INVALID_ARGUMENT);
    cr_assert_eq(run(a, (bound[]){ins[0], {0}}, (bound[]){F32_2("next", 2, 4, saved), {0}}, 0), ORTC_OK, "%s",
                 e.text);
    memcpy(before, saved, sizeof saved);
    cr_assert_eq(run(b, ins, (bound[]){F32_2("y", 2, 4, y), {0}}, 0), ORTC_OK, "%s", e.text);
    cr_assert_eq(step(a, x, expected), ORTC_OK);
    cr_expect_arr_eq(y, expected, sizeof y);
    cr_expect_arr_eq(before, saved, sizeof saved, "the caller's value is only read");
    cr_assert_eq(step(a, x, expected), ORTC_OK);
    cr_assert_eq(step(b, x, y), ORTC_OK);
    cr_expect_arr_eq(y, expected, sizeof y, "and goes on from there");
    cr_assert_eq(run(a, (bound[]){ins[0], {0}}, (bound[]){{"next", 0, 0, {0}, NULL}, {0}}, 0), ORTC_OK);
    cr_expect_eq(ortc_value_count(placed[0]), 8);
    cr_expect_neq(ortc_value_host(placed[0]), a->ties[0].value->data, "what is handed out is a copy");
    ortc_value_release(placed[0]);
    ortc_state_release(a);
    ortc_state_release(b);
}

/* ---- Growing ------------------------------------------------------------------------------------------- */

static ortc_status grow(ortc_state *st, int batch, int n, float *x, float *y)
{
    return run(st, (bound[]){{"x", ORTC_F32, 4, {batch, 2, n, 3}, x}, {0}},
               (bound[]){{"y", ORTC_F32, 3, {batch, 2, 3}, y}, {0}}, 0);
}

Test(state, a_growing_value_equals_the_untied_one)
{
    const ortc_tie tie = {"past", "present", 2, 0, 7};
    growing(&tie, 1);
    cr_assert_not_null(session, "%s", e.text);
    ortc_state *st;
    cr_assert_eq(ortc_state_create(session, &st, &e), ORTC_OK);
    float x[2 * 2 * 3 * 3], past[2][2 * 2 * 8 * 3], y[12], expected[12];
    static const int steps[] = {3, 1, 1, 2};
    int length = 0;
    for (int i = 0; i < 4; i++) {
        fill(x, ORTC_LENGTH(x), i);
        cr_assert_eq(grow(st, 2, steps[i], x, y), ORTC_OK, "%s", e.text);
        cr_assert_eq(run(NULL,
                         (bound[]){{"x", ORTC_F32, 4, {2, 2, steps[i], 3}, x},
                                   {"past", ORTC_F32, 4, {2, 2, length, 3}, past[i % 2]},
                                   {0}},
                         (bound[]){{"present", ORTC_F32, 4, {2, 2, length + steps[i], 3}, past[!(i % 2)]},
                                   {"y", ORTC_F32, 3, {2, 2, 3}, expected},
                                   {0}},
                         0),
                     ORTC_OK, "%s", e.text);
        length += steps[i];
        cr_expect_arr_eq(y, expected, sizeof y, "step %d", i);
        cr_expect_eq(ortc_state_length(st), length);
    }
    cr_expect_eq(grow(st, 2, 1, x, y), ORTC_LIMIT);
    cr_expect(strstr(e.text,
                     "output 'present' would have 8 positions, the state of 'past' has a capacity of 7"),
              "%s", e.text);
    cr_expect_eq(ortc_state_length(st), 7);
    cr_expect_eq(ortc_state_truncate(st, 8, &e), ORTC_INVALID_ARGUMENT);
    cr_expect(strstr(e.text, "has 7 positions"), "%s", e.text);
    /* Back to four positions and on by another two: as if the others had never been. */
    cr_assert_eq(ortc_state_truncate(st, 4, &e), ORTC_OK, "%s", e.text);
    ortc_state *fresh;
    cr_assert_eq(ortc_state_create(session, &fresh, &e), ORTC_OK);
    for (int i = 0; i < 2; i++) {
        fill(x, ORTC_LENGTH(x), i);
        cr_assert_eq(grow(fresh, 2, steps[i], x, expected), ORTC_OK);
    }
    fill(x, ORTC_LENGTH(x), 99);
    cr_assert_eq(grow(st, 2, 2, x, y), ORTC_OK, "%s", e.text);
    cr_assert_eq(grow(fresh, 2, 2, x, expected), ORTC_OK);
    cr_expect_arr_eq(y, expected, sizeof y);
    cr_expect_arr_eq(st->ties[0].value->data, fresh->ties[0].value->data, 2 * 2 * 6 * 3 * sizeof(float));
    ortc_state_release(st);
    ortc_state_release(fresh);
}

Test(state, an_extent_that_nothing_settles_is_named)
{
    const ortc_tie tie = {"past", "present", 2, 0, 4};
    growing(&tie, 1);
    ortc_state *st;
    cr_assert_eq(ortc_state_create(session, &st, &e), ORTC_OK);
    float x[2 * 3];
    cr_expect_eq(run(st, (bound[]){{"past", ORTC_F32, 4, {1, 2, 1, 3}, x}, {0}},
                     (bound[]){{"y", 0, 0, {0}, NULL}, {0}}, 0),
                 ORTC_INVALID_ARGUMENT);
    cr_expect(strstr(e.text, "input 'x' is not given"), "%s", e.text);
    ortc_state_release(st);
    teardown();
    session = NULL, model = NULL, tripped = NULL;
    setup();
    /* h [s1, 4] alone: no other input has s1 */
    static const int64_t dims[2] = {-1, 4}, four[1] = {4};
    end(IN, "x", ORTC_F32, 1, four);
    end(IN, "h", ORTC_F32, 2, dims);
    end(OUT, "next", ORTC_F32, 2, dims);
    node("Add", "", "h x", "next");
    load(&whole, 1);
    cr_assert_eq(ortc_state_create(session, &st, &e), ORTC_OK);
    float four_x[4] = {1, 2, 3, 4};
    cr_expect_eq(run(st, (bound[]){{"x", ORTC_F32, 1, {4}, four_x}, {0}}, (bound[]){{0}}, 0),
                 ORTC_INVALID_ARGUMENT);
    cr_expect(strstr(e.text,
                     "the state of 'h': no other input says what 's1' (axis 0) is: fix it for the session"),
              "%s", e.text);
    ortc_state_release(st);
    ortc_session_release(session);
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    o.ties = &whole, o.n_ties = 1, o.n_dims = 1, o.dim_names = (const char *[]){"s1"},
    o.dim_values = (int64_t[]){3};
    cr_assert_eq(ortc_session_create(model, &o, &session, &e), ORTC_OK, "%s", e.text);
    cr_assert_eq(ortc_state_create(session, &st, &e), ORTC_OK);
    for (int i = 1; i < 3; i++) {
        cr_assert_eq(run(st, (bound[]){{"x", ORTC_F32, 1, {4}, four_x}, {0}},
                         (bound[]){{"next", 0, 0, {0}, NULL}, {0}}, 0),
                     ORTC_OK, "%s", e.text);
        cr_expect_eq(((const float *)ortc_value_host(placed[0]))[11], (float)(4 * i));
        ortc_value_release(placed[0]);
    }
    ortc_state_release(st);
}

/* Three, one, one, two positions, back to four, two more; what every step gave, one after the other. */
static void grow_and_shorten(float (*out)[12], void **memory)
{
    const ortc_tie tie = {"past", "present", 2, 0, 7};
    growing(&tie, 1);
    cr_assert_not_null(session, "%s", e.text);
    ortc_state *st;
    cr_assert_eq(ortc_state_create(session, &st, &e), ORTC_OK);
    float x[2 * 2 * 3 * 3];
    static const int steps[] = {3, 1, 1, 2, 2, 1};
    for (int i = 0; i < 6; i++) {
        fill(x, ORTC_LENGTH(x), i);
        if (i == 4) cr_assert_eq(ortc_state_truncate(st, 4, &e), ORTC_OK, "%s", e.text);
        cr_assert_eq(grow(st, 2, steps[i], x, out[i]), ORTC_OK, "%s", e.text);
        if (done) {
            cr_expect(ortc_event_done(*done), "runs with a state are finished on return");
            cr_expect_eq(ortc_event_wait(*done, &e), ORTC_OK, "%s", e.text);
            ortc_event_release(*done);
        }
    }
    cr_expect_eq(ortc_state_length(st), 7);
    *memory = st->ties[0].device;
    ortc_state_release(st);
    teardown();
    session = NULL, model = NULL, tripped = NULL;
    setup();
}

Test(state, it_grows_and_shrinks_in_the_memory_of_a_device)
{
    float host[6][12], device[6][12];
    void *memory;
    ortc_event *event;
    grow_and_shorten(host, &memory);
    cr_expect_null(memory);
    cr_assert_eq(ortc_plugin_load(getenv("ORTC_SIM"), &e), ORTC_OK, "%s", e.text);
    for (int i = 0; i < 2; i++) {
        providers = "sim";
        done = i ? &event : NULL;
        grow_and_shorten(device, &memory);
        cr_expect_not_null(memory);
        cr_expect_arr_eq(host, device, sizeof host);
    }
    done = NULL;
}

/* ---- In place ------------------------------------------------------------------------------------------ */

static ortc_status put_step(ortc_state *st, int n, int64_t at, float *x, float *z, int64_t advance)
{
    return run(st, (bound[]){{"x", ORTC_F32, 3, {2, n, 2}, x}, {"at", ORTC_I64, 1, {1}, &at}, {0}},
               (bound[]){F32_2("z", 2, 2, z), {0}}, advance);
}

Test(state, a_cache_is_written_in_place_and_its_length_is_committed_last)
{
    const ortc_tie tie = {"cache", "present", 1, 0, 0};
    cached(false, false, &tie, 1);
    cr_assert_not_null(session, "%s", e.text);
    ortc_state *st;
    cr_assert_eq(ortc_state_create(session, &st, &e), ORTC_OK);
    float x[2 * 4 * 2], z[4], cache[2][24] = {{0}}, expected[4];
    const void *address = NULL;
    for (int i = 0; i < 6; i++) {
        int64_t at = ortc_state_length(st);
        cr_assert_eq(at, i);
        fill(x, ORTC_LENGTH(x), 30);
        trip = i == 3;
        if (trip) {
            cr_expect_eq(put_step(st, 1, at, x, z, 1), ORTC_CANCELLED); /* written, but not counted */
            cr_expect_eq(ortc_state_length(st), i);
        }
        fill(x, ORTC_LENGTH(x), i);
        cr_assert_eq(put_step(st, 1, at, x, z, 1), ORTC_OK, "%s", e.text);
        cr_expect_eq(put_wrote[(n_puts - 1) % 2], put_read[(n_puts - 1) % 2], "step %d: in place", i);
        cr_expect(!address || address == put_wrote[(n_puts - 1) % 2], "at a fixed address");
        address = put_wrote[(n_puts - 1) % 2];
        cr_assert_eq(run(NULL,
                         (bound[]){{"x", ORTC_F32, 3, {2, 1, 2}, x},
                                   {"at", ORTC_I64, 1, {1}, &at},
                                   {"cache", ORTC_F32, 3, {2, 6, 2}, cache[i % 2]},
                                   {0}},
                         (bound[]){F32_2("z", 2, 2, expected),
                                   {"present", ORTC_F32, 3, {2, 6, 2}, cache[!(i % 2)]},
                                   {0}},
                         0),
                     ORTC_OK, "%s", e.text);
        cr_expect_arr_eq(z, expected, sizeof z, "step %d", i);
    }
    cr_expect_eq(atomic_load(&session->unit.plans.made), 2);
    cr_expect_null(st->ties[0].memory[1], "no second buffer");
    cr_expect_eq(put_step(st, 1, 5, x, z, 1), ORTC_LIMIT);
    cr_expect(strstr(e.text, "the state of 'cache' has 6 positions; 1 more are over its capacity of 6"), "%s",
              e.text);
    cr_assert_eq(ortc_state_truncate(st, 2, &e), ORTC_OK, "%s", e.text);
    cr_expect_eq(ortc_state_length(st), 2);
    cr_expect_eq(put_step(st, 4, 2, x, z, 4), ORTC_OK, "%s", e.text);
    cr_expect_eq(ortc_state_length(st), 6);
    ortc_state_release(st);
}

Test(state, a_cache_that_need_not_grow_is_written_in_place_too)
{
    const ortc_tie tie = {"cache", "present", 1, 0, 6};
    put_op = "PutLonger";
    cached(true, false, &tie, 1);
    cr_assert_not_null(session, "%s", e.text);
    cr_assert(session->unit.ties[0].grows, "nothing at load says that the extents are the same");
    ortc_state *st;
    cr_assert_eq(ortc_state_create(session, &st, &e), ORTC_OK);
    float x[4] = {1, 2, 3, 4}, z[4], cache[24] = {0};
    int64_t at = 0;
    cr_assert_eq(run(st,
                     (bound[]){{"x", ORTC_F32, 3, {2, 1, 2}, x},
                               {"at", ORTC_I64, 1, {1}, &at},
                               {"cache", ORTC_F32, 3, {2, 6, 2}, cache},
                               {0}},
                     (bound[]){F32_2("z", 2, 2, z), {0}}, 0),
                 ORTC_OK, "%s", e.text);
    cr_expect_eq(cache[0], 0, "the caller's is not written over");
    for (int i = 1; i < 6; i++) {
        cr_assert_eq(put_step(st, 1, i, x, z, 0), ORTC_OK, "%s", e.text);
        cr_expect_eq(put_wrote[(n_puts - 1) % 2], put_read[(n_puts - 1) % 2], "step %d: in place", i);
        cr_expect_eq(z[3], (float)(4 * (i + 1)), "step %d: %g", i, (double)z[3]);
    }
    cr_expect_eq(ortc_state_length(st), 6);
    ortc_state_release(st);
}

Test(state, who_reads_the_old_value_gets_it)
{
    const ortc_tie tie = {"cache", "present", 1, 0, 6};
    cached(true, true, &tie, 1);
    cr_assert_not_null(session, "%s", e.text);
    ortc_state *st;
    cr_assert_eq(ortc_state_create(session, &st, &e), ORTC_OK);
    float x[4] = {1, 2, 3, 4}, z[4];
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(put_step(st, 1, i, x, z, 1), ORTC_OK, "%s", e.text);
        cr_expect_neq(put_wrote[(n_puts - 1) % 2], put_read[(n_puts - 1) % 2]);
        /* i + 1 in the new one, i in the old one */
        cr_expect_eq(z[3], (float)(4 * (2 * i + 1)), "step %d: %g", i, (double)z[3]);
    }
    ortc_state_release(st);
}

Test(state, a_caller_s_cache_is_never_written_over)
{
    const ortc_tie tie = {"cache", "present", 1, 0, 0};
    cached(false, false, &tie, 1);
    ortc_state *st;
    cr_assert_eq(ortc_state_create(session, &st, &e), ORTC_OK);
    float x[4] = {1, 2, 3, 4}, z[4], cache[24] = {0};
    int64_t at = 2;
    cr_assert_eq(run(st,
                     (bound[]){{"x", ORTC_F32, 3, {2, 1, 2}, x},
                               {"at", ORTC_I64, 1, {1}, &at},
                               {"cache", ORTC_F32, 3, {2, 6, 2}, cache},
                               {0}},
                     (bound[]){F32_2("z", 2, 2, z), {0}}, 3),
                 ORTC_OK, "%s", e.text);
    for (int i = 0; i < 24; i++) cr_expect_eq(cache[i], 0);
    cr_expect_eq(z[3], 4);
    cr_expect_eq(put_step(st, 1, 3, x, z, 1), ORTC_OK);
    cr_expect_eq(z[3], 8);
    ortc_state_release(st);
}

/* ---- Odd models ---------------------------------------------------------------------------------------- */

Test(state, it_survives_extents_that_only_the_run_knows)
{
    /* next = h + x; where next is not 0: NonZero, behind which a segment begins that reads next once more. */
    static const int64_t four[1] = {4}, found[2] = {1, -1};
    end(IN, "x", ORTC_F32, 1, four);
    end(IN, "h", ORTC_F32, 1, four);
    end(OUT, "next", ORTC_F32, 1, four);
    end(OUT, "where", ORTC_I64, 2, found);
    end(OUT, "twice", ORTC_F32, 1, four);
    node("Add", "", "h x", "next");
    node("NonZero", "", "next", "where");
    node("Neg", "", "where", "minus");
    end(OUT, "minus", ORTC_I64, 2, found);
    node("Add", "", "next next", "twice");
    load(&whole, 1);
    cr_assert_not_null(session, "%s", e.text);
    ortc_state *st;
    cr_assert_eq(ortc_state_create(session, &st, &e), ORTC_OK);
    float x[3][4] = {{1, 0, 0, 0}, {0, 2, 0, 3}, {-1, 0, 0, 0}}, twice[4];
    static const int64_t counts[3] = {1, 3, 2};
    for (int i = 0; i < 3; i++) {
        bound xs = {"x", ORTC_F32, 1, {4}, x[i]};
        cr_assert_eq(run(st, (bound[]){xs, {0}},
                         (bound[]){{"where", 0, 0, {0}, NULL},
                                   {"next", 0, 0, {0}, NULL},
                                   {"twice", ORTC_F32, 1, {4}, twice},
                                   {0}},
                         0),
                     ORTC_OK, "%s", e.text);
        cr_expect_eq(ortc_value_count(placed[0]), counts[i], "step %d", i);
        const float *next = ortc_value_host(placed[1]);
        cr_expect_eq(next[3], i ? 3 : 0);
        cr_expect_eq(twice[3], 2 * next[3]);
        cr_expect_neq(next, st->ties[0].value->data);
        ortc_value_release(placed[0]), ortc_value_release(placed[1]);
    }
    ortc_state_release(st);
}

Test(state, it_starts_from_the_default_and_may_decide_shapes)
{
    /* n starts at 2 and grows by 1; y = n zeros; same: the old n, handed through. */
    static const int64_t one[1] = {1}, any[1] = {-1};
    end(IN, "n", ORTC_I64, 1, one);
    end(OUT, "next", ORTC_I64, 1, one);
    end(OUT, "y", ORTC_F32, 1, any);
    end(OUT, "same", ORTC_I64, 1, one);
    buffer b = make_tensor("n", ORTC_I64, 1, one, (int64_t[]){2}, 8);
    put_message(&g, 5, &b);
    b = make_tensor("one", ORTC_I64, 1, one, (int64_t[]){1}, 8);
    put_message(&g, 5, &b);
    node("Add", "", "n one", "next");
    node("ConstantOfShape", "", "n", "y");
    node("Identity", "", "n", "same");
    const ortc_tie tie = {"n", "next", -1, 0, 0};
    load(&tie, 1);
    cr_assert_not_null(session, "%s", e.text);
    ortc_state *st;
    cr_assert_eq(ortc_state_create(session, &st, &e), ORTC_OK);
    for (int i = 0; i < 7; i++) {
        if (i == 4) cr_assert_eq(ortc_state_truncate(st, 0, &e), ORTC_OK);
        int64_t same, expected = 2 + i % 4;
        cr_assert_eq(run(st, (bound[]){{0}},
                         (bound[]){{"y", 0, 0, {0}, NULL}, {"same", ORTC_I64, 1, {1}, &same}, {0}}, 0),
                     ORTC_OK, "%s", e.text);
        cr_expect_eq(ortc_value_count(placed[0]), expected, "step %d", i);
        cr_expect_eq(same, expected);
        ortc_value_release(placed[0]);
    }
    cr_expect_eq(atomic_load(&session->unit.plans.made), 4, "one for each n");
    ortc_state_release(st);
}

/* The default's bytes never go into a buffer of another shape: not of a given value's, not of the declared
 * one. */
Test(state, a_given_value_must_be_of_the_default_s_shape)
{
    static const int64_t any[2] = {-1, 4};
    enum { N = 64 };
    const float start[N][4] = {[N - 1] = {5, 6, 7, 8}}, one[4] = {9, 9, 9, 9};
    end(IN, "h", ORTC_F32, 2, any);
    end(OUT, "next", ORTC_F32, 2, any);
    buffer b = make_tensor("h", ORTC_F32, 2, (int64_t[]){N, 4}, start, sizeof start);
    put_message(&g, 5, &b);
    node("Tanh", "", "h", "next");
    load(&whole, 1);
    cr_assert_not_null(session, "%s", e.text);
    ortc_state *st;
    float got[N][4];
    cr_assert_eq(ortc_state_create(session, &st, &e), ORTC_OK);
    cr_expect_eq(run(st, (bound[]){{"h", ORTC_F32, 2, {1, 4}, (void *)(uintptr_t)one}, {0}}, (bound[]){{0}},
                     0),
                 ORTC_SHAPE_MISMATCH);
    cr_expect(strstr(e.text, "input 'h' is [1,4]") && strstr(e.text, "[64,4]"), "%s", e.text);
    for (int i = 0; i < 2;
         i++) { /* what is left starts from the default, and so does it when it starts over */
        cr_assert_eq(run(st, (bound[]){{0}}, (bound[]){{"next", ORTC_F32, 2, {N, 4}, got}, {0}}, 0), ORTC_OK,
                     "%s", e.text);
        cr_expect_float_eq(got[N - 1][3], tanhf(8), 1e-6F);
        cr_assert_eq(run(st, (bound[]){{"h", ORTC_F32, 2, {N, 4}, got}, {0}}, (bound[]){{0}}, 0), ORTC_OK,
                     "%s", e.text);
        cr_assert_eq(ortc_state_truncate(st, 0, &e), ORTC_OK);
    }
    ortc_state_release(st);
}

Test(state, two_may_change_places)
{
    /* A pair of ties crosswise, and outputs that are inputs: next_a = b, next_b = a. */
    static const int64_t two[1] = {2};
    static const ortc_tie ties[2] = {{"a", "next_a", -1, 0, 0}, {"b", "next_b", -1, 0, 0}};
    end(IN, "a", ORTC_F32, 1, two);
    end(IN, "b", ORTC_F32, 1, two);
    end(OUT, "next_a", ORTC_F32, 1, two);
    end(OUT, "next_b", ORTC_F32, 1, two);
    node("Identity", "", "b", "next_a");
    node("Identity", "", "a", "next_b");
    load(ties, 2);
    ortc_state *st;
    cr_assert_eq(ortc_state_create(session, &st, &e), ORTC_OK, "%s", e.text);
    float a[2] = {1, 2}, b[2] = {3, 4}, got[2];
    cr_assert_eq(run(st, (bound[]){{"a", ORTC_F32, 1, {2}, a}, {"b", ORTC_F32, 1, {2}, b}, {0}},
                     (bound[]){{0}}, 0),
                 ORTC_OK, "%s", e.text);
    for (int i = 0; i < 4; i++) {
        cr_assert_eq(run(st, (bound[]){{0}}, (bound[]){{"next_a", ORTC_F32, 1, {2}, got}, {0}}, 0), ORTC_OK,
                     "%s", e.text);
        cr_expect_eq(got[1], i % 2 ? 4 : 2, "step %d", i);
    }
    ortc_state_release(st);
}

/* ---- Bad use ------------------------------------------------------------------------------------------- */

Test(state, ties_that_do_not_fit_are_refused)
{
    static const struct {
        ortc_tie tie;
        ortc_status status;
        const char *text;
    } cases[] = {
        {{"nothing", "present", 2, 0, 4}, ORTC_INVALID_ARGUMENT, "the model has no input 'nothing'"},
        {{"past", "nothing", 2, 0, 4}, ORTC_INVALID_ARGUMENT, "the model has no output 'nothing'"},
        {{"past", NULL, 2, 0, 4}, ORTC_INVALID_ARGUMENT, "no output '(NULL)'"},
        {{"past", "y", 2, 0, 4}, ORTC_SHAPE_MISMATCH, "tie of 'past' (rank 4) to 'y' (rank 3)"},
        {{"past", "present", 4, 0, 4}, ORTC_INVALID_ARGUMENT, "axis 4: expected -1 (as a whole) to 3"},
        {{"past", "present", 2, 0, 0},
         ORTC_INVALID_ARGUMENT,
         "axis 2 has no fixed extent: expected a capacity"},
        {{"past", "present", -1, 0, 3}, ORTC_INVALID_ARGUMENT, "a capacity needs an axis"},
        {{"past", "present", 3, 0, 4},
         ORTC_INVALID_ARGUMENT,
         "the model fixes axis 3 to 3, the capacity is 4"},
    };
    growing(NULL, 0);
    for (size_t i = 0; i < ORTC_LENGTH(cases); i++) {
        ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
        ortc_session *s;
        o.ties = &cases[i].tie, o.n_ties = 1;
        cr_expect_eq(ortc_session_create(model, &o, &s, &e), cases[i].status, "case %zu: %s", i, e.text);
        cr_expect(strstr(e.text, cases[i].text), "case %zu: %s", i, e.text);
        cr_expect_null(s);
    }
    ortc_state *st;
    cr_expect_eq(ortc_state_create(session, &st, &e), ORTC_INVALID_ARGUMENT);
    cr_expect(strstr(e.text, "no ties"), "%s", e.text);
}

Test(state, a_state_serves_one_run_of_its_own_session)
{
    recurrent(&whole, 1);
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    ortc_session *first = session, *second;
    o.ties = &whole, o.n_ties = 1;
    cr_assert_eq(ortc_session_create(model, &o, &second, &e), ORTC_OK);
    ortc_state *st;
    cr_assert_eq(ortc_state_create(session, &st, &e), ORTC_OK);
    float x[8] = {0}, y[8];
    session = second;
    cr_expect_eq(step(st, x, y), ORTC_INVALID_ARGUMENT);
    cr_expect(strstr(e.text, "the state belongs to another session"), "%s", e.text);
    session = first;
    atomic_store(&st->busy, true);
    cr_expect_eq(step(st, x, y), ORTC_INVALID_STATE);
    cr_expect_eq(ortc_state_truncate(st, 0, &e), ORTC_INVALID_STATE);
    atomic_store(&st->busy, false);
    cr_expect_eq(step(st, x, y), ORTC_OK, "%s", e.text);
    ortc_session_release(second);
    ortc_state_release(st);
}

Test(state, memory_of_states_counts_against_the_session_s_limit)
{
    const ortc_tie tie = {"cache", "present", 1, 0, 1 << 20};
    cached(true, false, &tie, 1);
    ortc_session *unlimited = session;
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    o.ties = &tie, o.n_ties = 1, o.max_bytes = 20 << 20; /* a state of two rows takes 16 MiB */
    cr_assert_eq(ortc_session_create(model, &o, &session, &e), ORTC_OK);
    ortc_state *a, *b;
    cr_assert_eq(ortc_state_create(session, &a, &e) | ortc_state_create(session, &b, &e), ORTC_OK);
    float x[4] = {1, 2, 3, 4}, z[4];
    cr_expect_eq(put_step(a, 1, 0, x, z, 1), ORTC_OK, "%s", e.text);
    cr_expect_eq(put_step(b, 1, 0, x, z, 1), ORTC_LIMIT);
    cr_expect(strstr(e.text, "the state of 'cache' needs 16777216 bytes"), "%s", e.text);
    ortc_state_release(a);
    cr_expect_eq(put_step(b, 1, 0, x, z, 1), ORTC_OK, "%s", e.text);
    ortc_state_release(b);
    ortc_session_release(session);
    session = unlimited;
}
