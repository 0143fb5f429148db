/* tests/session/tied_models.h: what the tests of tied state share: models of their own, and runs
 * that carry values by hand. Each file of tests has its own.
 */
#ifndef ORTC_TESTS_TIED_MODELS_H
#define ORTC_TESTS_TIED_MODELS_H

#include <criterion/criterion.h>
#include <math.h>

#include "runtime/session/session.h"
#include "runtime/execute/tied.h"
#include "runtime/registry/registry.h"
#include "tests/unit/wire_writer.h"

extern int trip; /* Trip cancels its run after so many more calls; 0: never */
extern ortc_cancel *tripped;
extern const void *put_wrote[2], *put_read[2]; /* by the last calls of Put */
extern int n_puts;
extern const ortc_family ortc_family_state_test;

/* ---- Models -------------------------------------------------------------------------------------------- */

static buffer g, model_bytes; /* the model reads the latter */
static ortc_error e;
static ortc_model *model;
static ortc_session *session;
static const char *providers; /* of the next session */

static inline void end(int field, const char *name, int dtype, int rank, const int64_t *dims)
{
    buffer b = make_value_info(name, dtype, rank, dims);
    put_message(&g, field, &b);
}
enum { IN = 11, OUT = 12 };
static inline void node(const char *op, const char *domain, const char *in, const char *out)
{
    buffer b = make_node(op, domain, in, out);
    put_message(&g, 1, &b);
}
static inline void weights(void) /* W: f32[4,4] */
{
    float w[16];
    for (int i = 0; i < 16; i++) w[i] = (float)(i * 7 % 11 - 5) / 8;
    buffer b = make_tensor("W", ORTC_F32, 2, (int64_t[]){4, 4}, w, sizeof w);
    put_message(&g, 5, &b);
}

static inline void load(const ortc_tie *ties, size_t n_ties)
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
static inline void setup(void)
{
    e = (ortc_error)ORTC_ERROR_INIT;
    cr_assert_eq(ortc_registry_init(&e), ORTC_OK);
    if (!ortc_op_find("test", "Put"))
        cr_assert_eq(ortc_host_add_family(ortc_host_get(), &ortc_family_state_test), ORTC_OK);
    cr_assert_eq(ortc_cancel_create(&tripped, &e), ORTC_OK);
}
static inline void teardown(void)
{
    ortc_cancel_release(tripped);
    ortc_session_release(session);
    ortc_model_release(model);
    buffer_free(&model_bytes);
}

/* h' = tanh(trip(h W + x)), y = h' x; batch is a symbol. */
static inline void recurrent(const ortc_tie *ties, size_t n_ties)
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
static inline void growing(const ortc_tie *ties, size_t n_ties)
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
static inline void cached(bool symbol, bool old_is_read, const ortc_tie *ties, size_t n_ties)
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
static inline ortc_status run(ortc_state *st, const bound *ins, const bound *outs, int64_t advance)
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

static inline void fill(float *x, size_t n, int seed)
{
    for (size_t i = 0; i < n; i++) x[i] = (float)((int)(i * 13 + (size_t)seed * 7) % 17 - 8) / 16;
}

#define F32_2(name, a, b, data) \
    { \
        name, ORTC_F32, 2, {a, b}, data \
    }
static inline ortc_status step(ortc_state *st, float *x, float *y)
{
    return run(st, (bound[]){F32_2("x", 2, 4, x), {0}}, (bound[]){F32_2("y", 2, 4, y), {0}}, 0);
}

static inline ortc_status put_step(ortc_state *st, int n, int64_t at, float *x, float *z, int64_t advance)
{
    return run(st, (bound[]){{"x", ORTC_F32, 3, {2, n, 2}, x}, {"at", ORTC_I64, 1, {1}, &at}, {0}},
               (bound[]){F32_2("z", 2, 2, z), {0}}, advance);
}

#endif
