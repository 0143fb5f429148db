/* tests/session/test_values.c: sequences, optionals and strings through ortc_run: whose memory results hold,
 * which types are taken, and that a value that is no tensor ends no segment.
 */
#include <criterion/criterion.h>
#include <stdio.h>

#include "base/value.h"
#include "tests/unit/wire_writer.h"
#include "ortc/ortc.h"

enum { MANY_RUNS = 3 };

/* "f32", "string[]" with any shape, "seq(f32)", "opt(f32)" as a TypeProto. */
static buffer type_of(const char *text)
{
    buffer type = {0}, inner = {0}, of = {0};
    if (!strncmp(text, "seq(", 4) || !strncmp(text, "opt(", 4)) {
        of = type_of(text + 4);
        put_message(&inner, 1, &of);
        put_message(&type, *text == 's' ? 4 : 9, &inner);
        return type;
    }
    put_int(&inner, 1,
            !strncmp(text, "f32", 3)   ? ORTC_F32
            : !strncmp(text, "i64", 3) ? ORTC_I64
                                       : ORTC_STRING);
    const size_t name = strcspn(text, "[) ");
    if (text[name] == '[') { /* one dim of that extent */
        buffer shape = {0}, dim = {0};
        put_int(&dim, 1, atoi(text + name + 1));
        put_message(&shape, 1, &dim);
        put_message(&inner, 2, &shape);
    }
    put_message(&type, 1, &inner);
    return type;
}

/* "x:f32[2] s:seq(f32)" into field 11 or 12 of a graph. */
static void put_infos(buffer *graph, int field, const char *infos)
{
    for (; *infos; infos += strcspn(infos, " "), infos += strspn(infos, " ")) {
        char name[32];
        buffer info = {0}, type;
        size_t n = strcspn(infos, ":");
        memcpy(name, infos, n);
        name[n] = 0;
        put_string(&info, 1, name);
        if (infos[n + 1] != '?') {
            type = type_of(infos + n + 1);
            put_message(&info, 2, &type);
        }
        put_message(graph, field, &info);
    }
}

typedef struct fixture {
    buffer bytes;
    ortc_model *model;
    ortc_session *session;
} fixture;

/* nodes: "Op in in>out; Op ...". axis: the attribute that every Concat gets. */
static fixture open_model(const char *inputs, const char *nodes, const char *outputs)
{
    fixture f = {0};
    buffer graph = {0};
    ortc_error e = ORTC_ERROR_INIT;
    char op[32], in[64], out[64];
    while (*nodes) {
        cr_assert_eq(sscanf(nodes, " %31s %63[^>]> %63[^;]", op, in, out), 3, "%s", nodes);
        buffer node = make_node(op, "", in, out);
        if (!strcmp(op, "Concat")) {
            buffer a = {0};
            put_string(&a, 1, "axis");
            put_int(&a, 20, 2);
            put_int(&a, 3, 0);
            put_message(&node, 5, &a);
        }
        put_message(&graph, 1, &node);
        nodes += strcspn(nodes, ";");
        nodes += *nodes == ';';
    }
    put_string(&graph, 2, "values");
    put_infos(&graph, 11, inputs);
    put_infos(&graph, 12, outputs);
    f.bytes = make_model(9, 18, &graph);
    cr_assert_eq(ortc_model_load_memory(f.bytes.data, f.bytes.bytes, NULL, &f.model, &e), ORTC_OK, "%s",
                 e.text);
    cr_assert_eq(ortc_session_create(f.model, NULL, &f.session, &e), ORTC_OK, "%s", e.text);
    return f;
}

static void close_model(fixture *f)
{
    ortc_session_release(f->session);
    ortc_model_release(f->model);
    buffer_free(&f->bytes);
}

static ortc_status run(const fixture *f, size_t n_in, ortc_in *in, size_t n_out, ortc_out *out, ortc_error *e)
{
    ortc_run_args a = ORTC_RUN_ARGS_INIT;
    *e = (ortc_error)ORTC_ERROR_INIT;
    a.in = in, a.n_in = n_in, a.out = out, a.n_out = n_out;
    return ortc_run(f->session, &a, e);
}

static ortc_value *floats(int64_t n, float first)
{
    ortc_value *v = NULL;
    cr_assert_eq(ortc_value_create(ORTC_F32, 1, &n, &v, NULL), ORTC_OK);
    for (int64_t i = 0; i < n; i++) ((float *)ortc_value_data(v))[i] = first + (float)i;
    return v;
}
static ortc_value *sequence_of(size_t n, ortc_value *const *elements, const ortc_type *type)
{
    ortc_value *v = NULL;
    cr_assert_eq(ortc_value_create_sequence(type, n, elements, &v, NULL), ORTC_OK);
    return v;
}
static float at(const ortc_value *v, int64_t i) { return ((const float *)ortc_value_host(v))[i]; }

Test(values, a_sequence_shares_what_owns_its_memory_and_copies_the_rest)
{
    fixture f = open_model("s:seq(f32) x:f32[2]", "SequenceInsert s x>t; SequenceLength t>n",
                           "t:seq(f32) n:i64");
    float *mine = malloc(3 * sizeof *mine), x[2] = {8, 9};
    mine[0] = 1, mine[1] = 2, mine[2] = 3;
    ortc_error e;
    ortc_value *elements[2] = {floats(4, 10), ortc_wrap(mine, ORTC_F32, 1, (int64_t[]){3})};
    ortc_in in[2] = {{"s", sequence_of(2, elements, ortc_tensor_type(ORTC_F32))},
                     {"x", ortc_wrap(x, ORTC_F32, 1, (int64_t[]){2})}};
    ortc_out out[2] = {{.name = "t"}, {.name = "n"}};
    cr_assert_eq(run(&f, 2, in, 2, out, &e), ORTC_OK, "%s", e.text);
    cr_assert_eq(ortc_value_count(out[0].value), 3);
    cr_expect_eq(*(const int64_t *)ortc_value_host(out[1].value), 3);
    cr_expect_eq(ortc_value_element(out[0].value, 0), elements[0],
                 "an element that owns its memory is not copied");
    for (int i = 0; i < 2; i++) {
        ortc_value_release(elements[i]);
        ortc_value_release(in[i].value);
    }
    memset(mine, 0xff, 3 * sizeof *mine);
    free(mine);
    x[0] = x[1] = -1;
    cr_expect_eq(at(ortc_value_element(out[0].value, 0), 3), 13);
    cr_expect_eq(at(ortc_value_element(out[0].value, 1), 2), 3);
    cr_expect_eq(at(ortc_value_element(out[0].value, 2), 1), 9);
    ortc_value_release(out[0].value);
    ortc_value_release(out[1].value);
    close_model(&f);
}

Test(values, a_tensor_out_of_a_sequence_is_the_callers_to_write)
{
    fixture f = open_model("s:seq(f32) i:i64", "SequenceAt s i>x", "x:f32");
    ortc_error e;
    int64_t index = 0;
    ortc_value *element = floats(2, 5);
    ortc_in in[2] = {{"s", sequence_of(1, &element, ortc_tensor_type(ORTC_F32))},
                     {"i", ortc_wrap(&index, ORTC_I64, 0, NULL)}};
    for (int round = 0; round < MANY_RUNS; round++) {
        ortc_out out = {.name = "x"};
        cr_assert_eq(run(&f, 2, in, 1, &out, &e), ORTC_OK, "%s", e.text);
        cr_expect_eq(at(out.value, 1), 6);
        ((float *)ortc_value_data(out.value))[1] = -1;
        ortc_value_release(out.value);
        index = 1; /* outside: an error that says so, and the next run works */
        out.value = NULL;
        cr_expect_eq(run(&f, 2, in, 1, &out, &e), ORTC_INVALID_ARGUMENT);
        cr_expect(strstr(e.text, "position 1 is outside of a sequence of 1 elements"), "%s", e.text);
        cr_expect_null(out.value);
        index = -1;
    }
    cr_expect_eq(at(element, 1), 6);
    float memory[2];
    ortc_out given = {.name = "x", .value = ortc_wrap(memory, ORTC_F32, 1, (int64_t[]){2})};
    cr_expect_eq(run(&f, 2, in, 1, &given, &e), ORTC_OK, "%s", e.text);
    cr_expect_eq(memory[0], 5);
    ortc_value_release(given.value);
    ortc_value_release(in[0].value);
    ortc_value_release(in[1].value);
    ortc_value_release(element);
    close_model(&f);
}

Test(values, types_are_checked_whatever_ran_before)
{
    fixture f = open_model("s:seq(f32)", "SequenceLength s>n; Identity s>t", "n:i64 t:seq(f32)");
    ortc_error e;
    ortc_value *good = sequence_of(0, NULL, ortc_tensor_type(ORTC_F32)),
               *bad = sequence_of(0, NULL, ortc_tensor_type(ORTC_I64));
    ortc_value *tensor = floats(1, 0);
    const struct {
        ortc_value *value;
        ortc_status status;
        const char *text;
    } cases[] = {{good, ORTC_OK, ""},
                 {bad, ORTC_TYPE_MISMATCH, "input 's': expected sequence(f32), got sequence(i64)"},
                 {tensor, ORTC_TYPE_MISMATCH, "input 's': expected sequence(f32), got f32[1]"},
                 {good, ORTC_OK, ""}};
    for (size_t i = 0; i < ORTC_LENGTH(cases); i++) {
        ortc_in in = {"s", cases[i].value};
        ortc_out out[2] = {{.name = "n"}, {.name = "t"}};
        cr_expect_eq(run(&f, 1, &in, 2, out, &e), cases[i].status, "case %zu: %s", i, e.text);
        cr_expect(strstr(e.text, cases[i].text), "case %zu: %s", i, e.text);
        ortc_value_release(out[0].value);
        ortc_value_release(out[1].value);
    }
    ortc_in in = {"s", good};
    ortc_out out = {.name = "t", .value = tensor};
    cr_expect_eq(run(&f, 1, &in, 1, &out, &e), ORTC_TYPE_MISMATCH);
    cr_expect(
        strstr(e.text,
               "output 't' is sequence(f32), which cannot be written into a given value: leave it NULL"),
        "%s", e.text);
    ortc_value_release(good);
    ortc_value_release(bad);
    ortc_value_release(tensor);
    close_model(&f);
}

static int count_steps(void *arg, const ortc_step_info *step)
{
    if (!strcmp(step->kind, "kernel")) ++*(int *)arg;
    return 0;
}

Test(values, a_value_that_is_no_tensor_ends_no_segment)
{
    static const struct {
        const char *inputs, *nodes, *outputs;
        int steps; /* of the first segment */
    } cases[] = {
        {"x:f32[2] y:f32[2] i:i64", "SequenceConstruct x y>s; SequenceAt s i>t; Relu t>o; SequenceLength s>n",
         "o:? n:?", 4},
        {"x:f32[2] y:f32[3] i:i64", "SequenceConstruct x y>s; SequenceLength s>n; SequenceAt s i>t; Relu t>o",
         "o:? n:?", 3},
        {"x:string[2] y:string[2]", "Concat x y>s; Equal s s>t; Not t>o", "o:?", 3},
    };
    for (size_t i = 0; i < ORTC_LENGTH(cases); i++) {
        fixture f = open_model(cases[i].inputs, cases[i].nodes, cases[i].outputs);
        ortc_error e = ORTC_ERROR_INIT;
        int steps = 0;
        int64_t index = 1;
        ortc_value *text = NULL;
        ortc_value_create_strings(1, (int64_t[]){2}, (const char *[]){"a", "b"}, NULL, &text, NULL);
        ortc_value *x = floats(2, -1), *y = floats(i == 1 ? 3 : 2, -1);
        ortc_in in[3] = {{"x", i == 2 ? text : x},
                         {"y", i == 2 ? text : y},
                         {"i", ortc_wrap(&index, ORTC_I64, 0, NULL)}};
        ortc_out out[1] = {{.name = "o"}};
        const size_t n = i == 2 ? 2 : 3;
        cr_expect_eq(ortc_session_plan(f.session, in, n, NULL, count_steps, &steps, &e), ORTC_OK,
                     "case %zu: %s", i, e.text);
        cr_expect_eq(steps, cases[i].steps, "case %zu: %d steps in the first segment", i, steps);
        for (int round = 0; round < MANY_RUNS; round++) {
            out[0].value = NULL;
            cr_assert_eq(run(&f, n, in, 1, out, &e), ORTC_OK, "case %zu: %s", i, e.text);
            if (i < 2)
                cr_expect_eq(at(out[0].value, 1), 0);
            else
                cr_expect_eq(ortc_value_count(out[0].value), 4);
            ortc_value_release(out[0].value);
        }
        ortc_value_release(in[2].value);
        ortc_value_release(text);
        ortc_value_release(x);
        ortc_value_release(y);
        close_model(&f);
    }
}

Test(values, strings_are_made_and_passed_through)
{
    fixture f = open_model("x:string[2]", "Concat x x>y; Identity x>z", "y:string z:string");
    ortc_error e;
    for (int round = 0; round < MANY_RUNS; round++) {
        ortc_in in = {"x", NULL};
        ortc_value_create_strings(1, (int64_t[]){2}, (const char *[]){"zwei\0drei", ""}, (size_t[]){9, 0},
                                  &in.value, NULL);
        ortc_out out[2] = {{.name = "y"}, {.name = "z"}};
        size_t n;
        cr_assert_eq(run(&f, 1, &in, 2, out, &e), ORTC_OK, "%s", e.text);
        ortc_value_release(in.value);
        cr_assert_eq(ortc_value_count(out[0].value), 4);
        cr_expect(!memcmp(ortc_value_string(out[0].value, 2, &n), "zwei\0drei", 9) && n == 9);
        cr_expect(!memcmp(ortc_value_string(out[1].value, 0, &n), "zwei\0drei", 9) && n == 9);
        ortc_value_release(out[0].value);
        ortc_value_release(out[1].value);
    }
    close_model(&f);
}

Test(values, an_optional_without_an_element_goes_through)
{
    fixture f = open_model("x:opt(f32)", "Identity x>y", "y:opt(f32)");
    ortc_error e;
    ortc_value *element = floats(2, 3);
    cr_expect_eq(ortc_model_input(f.model, 0)->flags, ORTC_IO_OPTIONAL);
    for (int i = 0; i < 4; i++) { /* as an optional; left out, and as it is */
        const int with = i & 1;
        ortc_in in = {"x", NULL};
        ortc_out out = {.name = "y"};
        if (i < 2)
            ortc_value_create_optional(ortc_tensor_type(ORTC_F32), with ? element : NULL, &in.value, NULL);
        else if (with)
            in.value = ortc_value_retain(element);
        cr_assert_eq(run(&f, in.value != NULL, &in, 1, &out, &e), ORTC_OK, "%s", e.text);
        ortc_value_release(in.value);
        cr_expect_eq(ortc_value_count(out.value), with);
        if (with) cr_expect_eq(at(ortc_value_element(out.value, 0), 1), 4);
        ortc_value_release(out.value);
    }
    ortc_value_release(element);
    close_model(&f);
}
