/* tests/session/test_hostile.c: models and calls that are made to mislead: shapes that are declared and
 * false, offsets that a file or a run brings, ports that are left out, lists that are NULL. Each ends with a
 * status that says what is wrong, and touches no memory but its own: what these tests are for shows under
 * AddressSanitizer and UndefinedBehaviorSanitizer.
 */
#include <criterion/criterion.h>
#include <stdio.h>

#include "ortc/op.h"
#include "base/base.h"
#include "tests/unit/wire_writer.h"

TestSuite(hostile);

static ortc_error e = ORTC_ERROR_INIT;

/* Loads, makes a session of ref, runs once; takes the bytes. The first failure's status, with its text in
 * `e`. */
static ortc_status run(buffer *b, const ortc_in *in, size_t n_in, ortc_out *out, size_t n_out)
{
    ortc_model *model = NULL;
    ortc_session *session = NULL;
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    ortc_run_args a = ORTC_RUN_ARGS_INIT;
    o.providers = "ref";
    e = (ortc_error)ORTC_ERROR_INIT;
    ortc_status s = ortc_model_load_memory(b->data, b->bytes, NULL, &model, &e);
    if (s == ORTC_OK) s = ortc_session_create(model, &o, &session, &e);
    a.in = in, a.n_in = n_in, a.out = out, a.n_out = n_out;
    if (s == ORTC_OK) s = ortc_run(session, &a, &e);
    ortc_session_release(session);
    ortc_model_release(model);
    buffer_free(b);
    return s;
}

static void put_end(buffer *g, int field, const char *name, int dtype, int rank, const int64_t *dims)
{
    buffer b = make_value_info(name, dtype, rank, dims);
    put_message(g, field, &b);
}

static void put_constant(buffer *g, const char *name, int dtype, int rank, const int64_t *dims,
                         const void *data, size_t bytes)
{
    buffer b = make_tensor(name, dtype, rank, dims, data, bytes);
    put_message(g, 5, &b);
}

static void put_node(buffer *g, const char *op, const char *domain, const char *in, const char *out)
{
    buffer b = make_node(op, domain, in, out);
    put_message(g, 1, &b);
}

/* ---- Shapes that are declared -------------------------------------------------------------------------- */

/* y = F(x), F a local function that is Shape; the caller declares what y is. */
static buffer calling_shape(int dtype, int64_t declared)
{
    buffer g = {0}, f = {0};
    put_end(&g, 11, "x", ORTC_F32, 2, (int64_t[]){3, 4});
    put_node(&g, "F", "local", "x", "h");
    put_node(&g, "Identity", "", "h", "y");
    put_end(&g, 13, "h", dtype, 1, &declared);
    put_end(&g, 12, "y", dtype, -1, NULL);
    buffer m = make_model(8, 17, &g);
    put_opset(&m, 8, "local", 1);
    put_string(&f, 1, "F");
    put_string(&f, 10, "local");
    put_names(&f, 4, "p");
    put_names(&f, 5, "r");
    put_opset(&f, 9, "", 17);
    buffer n = make_node("Shape", "", "p", "r");
    put_message(&f, 7, &n);
    put_message(&m, 25, &f);
    return m;
}

Test(hostile, a_declared_shape_sizes_no_constant)
{
    static float x[12];
    ortc_in in = {"x", ortc_wrap(x, ORTC_F32, 2, (int64_t[]){3, 4})};
    ortc_out out = {.name = "y"};
    for (int64_t declared = 1; declared <= 1000; declared += 999) {
        buffer b = calling_shape(ORTC_I64, declared);
        out.value = NULL;
        cr_assert_eq(run(&b, &in, 1, &out, 1), ORTC_OK, "%s", e.text);
        cr_assert_eq(ortc_value_rank(out.value), 1);
        cr_assert_eq(ortc_value_dims(out.value)[0], 2, "%lld", (long long)ortc_value_dims(out.value)[0]);
        const int64_t *y = ortc_value_host(out.value);
        cr_expect(y[0] == 3 && y[1] == 4);
        ortc_value_release(out.value);
    }
    buffer b = calling_shape(ORTC_F32, 2);
    out.value = NULL;
    cr_expect_eq(run(&b, &in, 1, &out, 1), ORTC_TYPE_MISMATCH, "%s", e.text);
    ortc_value_release(in.value);
}

/* How many elements are not 0 is known when they have been looked at, whatever the file declares. */
Test(hostile, a_declared_extent_is_no_result)
{
    static float x[4] = {1, 0, 2, 0};
    const int64_t four = 4;
    for (int64_t declared = 1; declared <= 4; declared++) {
        buffer g = {0};
        put_end(&g, 11, "x", ORTC_F32, 1, &four);
        put_node(&g, "NonZero", "", "x", "h");
        put_node(&g, "Shape", "", "h", "y");
        put_end(&g, 13, "h", ORTC_I64, 2, (int64_t[]){1, declared});
        put_end(&g, 12, "y", ORTC_I64, 1, (int64_t[]){2});
        buffer b = make_model(8, 17, &g);
        ortc_in in = {"x", ortc_wrap(x, ORTC_F32, 1, &four)};
        ortc_out out = {.name = "y"};
        cr_assert_eq(run(&b, &in, 1, &out, 1), ORTC_OK, "%s", e.text);
        const int64_t *y = ortc_value_host(out.value);
        cr_expect(y[0] == 1 && y[1] == 2, "declared %lld: %lld, %lld", (long long)declared, (long long)y[0],
                  (long long)y[1]);
        ortc_value_release(out.value);
        ortc_value_release(in.value);
    }
}

/* ---- Offsets that come from values --------------------------------------------------------------------- */

/* Sums of the listed sizes wrap around to the 8 elements that there are. */
Test(hostile, the_sizes_of_split_are_added_up_with_care)
{
    static const int64_t lists[][3] = {{INT64_MAX - 3, 4, 4},
                                       {INT64_C(1) << 62, INT64_C(1) << 62, 8},
                                       {6, INT64_MAX, 4},
                                       {8, 1, 0}};
    static float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    const int64_t eight = 8, three = 3;
    for (size_t i = 0; i < ORTC_LENGTH(lists); i++)
        for (int constant = 0; constant < 2; constant++)
            for (int wanted = 0; wanted < 3; wanted++) {
                buffer g = {0};
                char name[16];
                put_end(&g, 11, "x", ORTC_F32, 1, &eight);
                if (constant)
                    put_constant(&g, "split", ORTC_I64, 1, &three, lists[i], sizeof lists[i]);
                else
                    put_end(&g, 11, "split", ORTC_I64, 1, &three);
                put_node(&g, "Split", "", "x split", "y0 y1 y2");
                snprintf(name, sizeof name, "y%d", wanted);
                put_end(&g, 12, name, ORTC_F32, 1, (int64_t[]){-1});
                ortc_in in[2] = {{"x", ortc_wrap(x, ORTC_F32, 1, &eight)},
                                 {"split", ortc_wrap((void *)(uintptr_t)lists[i], ORTC_I64, 1, &three)}};
                ortc_out out = {.name = name};
                buffer b = make_model(8, 17, &g);
                cr_expect_eq(run(&b, in, constant ? 1 : 2, &out, 1), ORTC_SHAPE_MISMATCH,
                             "%zu, output %d: %s", i, wanted, e.text);
                cr_expect_not_null(strstr(e.text, "Split"), "%s", e.text);
                ortc_value_release(out.value);
                ortc_value_release(in[0].value);
                ortc_value_release(in[1].value);
            }
}

/* One that fits is a view where its first output is left out, too. */
Test(hostile, a_split_whose_first_part_nobody_wants)
{
    static float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    const int64_t eight = 8, two = 2, sizes[2] = {5, 3};
    for (int constant = 0; constant < 2; constant++) {
        buffer g = {0};
        put_end(&g, 11, "x", ORTC_F32, 1, &eight);
        if (constant)
            put_constant(&g, "split", ORTC_I64, 1, &two, sizes, sizeof sizes);
        else
            put_end(&g, 11, "split", ORTC_I64, 1, &two);
        put_node(&g, "Split", "", "x split", "- y");
        put_end(&g, 12, "y", ORTC_F32, 1, (int64_t[]){-1});
        ortc_in in[2] = {{"x", ortc_wrap(x, ORTC_F32, 1, &eight)},
                         {"split", ortc_wrap((void *)(uintptr_t)sizes, ORTC_I64, 1, &two)}};
        ortc_out out = {.name = "y"};
        buffer b = make_model(8, 17, &g);
        cr_assert_eq(run(&b, in, constant ? 1 : 2, &out, 1), ORTC_OK, "%s", e.text);
        cr_assert_eq(ortc_value_count(out.value), 3);
        cr_expect_arr_eq(ortc_value_host(out.value), x + 5, 3 * sizeof *x);
        ortc_value_release(out.value);
        ortc_value_release(in[0].value);
        ortc_value_release(in[1].value);
    }
}

/* ---- Ports that are left out --------------------------------------------------------------------------- */

Test(hostile, outputs_that_a_node_does_not_have_are_not_written)
{
    static float x[4] = {0, 1, 2, -3};
    const int64_t four = 4;
    static const struct {
        const char *op, *out;
        int dtype;
    } nodes[] = {{"DynamicQuantizeLinear", "y", ORTC_U8},
                 {"DynamicQuantizeLinear", "- y", ORTC_F32},
                 {"DynamicQuantizeLinear", "- - y", ORTC_U8},
                 {"DynamicQuantizeLinear", "y s", ORTC_U8},
                 {"Unique", "y", ORTC_F32},
                 {"Unique", "- y", ORTC_I64},
                 {"Unique", "- - y", ORTC_I64},
                 {"Unique", "- - - y", ORTC_I64},
                 {"Dropout", "y", ORTC_F32},
                 {"Dropout", "- y", ORTC_BOOL}};
    for (size_t i = 0; i < ORTC_LENGTH(nodes); i++) {
        buffer g = {0};
        put_end(&g, 11, "x", ORTC_F32, 1, &four);
        put_node(&g, nodes[i].op, "", "x", nodes[i].out);
        put_end(&g, 12, "y", nodes[i].dtype, -1, NULL);
        ortc_in in = {"x", ortc_wrap(x, ORTC_F32, 1, &four)};
        ortc_out out = {.name = "y"};
        buffer b = make_model(8, 17, &g);
        cr_expect_eq(run(&b, &in, 1, &out, 1), ORTC_OK, "%s to '%s': %s", nodes[i].op, nodes[i].out, e.text);
        ortc_value_release(out.value);
        ortc_value_release(in.value);
    }
}

/* ---- Vectors of the wrong rank ------------------------------------------------------------------------- */

Test(hostile, the_vectors_of_resize_have_one_dim)
{
    static const float ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    static float x[16];
    static const struct {
        int roi_rank, scales_rank;
        ortc_status status;
    } cases[] = {{1, 1, ORTC_OK},
                 {1, 0, ORTC_SHAPE_MISMATCH},
                 {1, 2, ORTC_SHAPE_MISMATCH},
                 {0, 1, ORTC_SHAPE_MISMATCH},
                 {2, 1, ORTC_SHAPE_MISMATCH}};
    for (size_t i = 0; i < ORTC_LENGTH(cases); i++) {
        buffer g = {0}, a = {0};
        const int64_t roi_dims[2] = {cases[i].roi_rank == 2 ? 1 : 8, 1},
                      scale_dims[2] = {cases[i].scales_rank == 2 ? 1 : 4, 1};
        put_end(&g, 11, "x", ORTC_F32, 4, (int64_t[]){1, 1, 4, 4});
        put_constant(&g, "roi", ORTC_F32, cases[i].roi_rank, roi_dims, ones, cases[i].roi_rank == 1 ? 32 : 4);
        put_constant(&g, "scales", ORTC_F32, cases[i].scales_rank, scale_dims, ones,
                     cases[i].scales_rank == 1 ? 16 : 4);
        buffer n = make_node("Resize", "", "x roi scales", "y");
        put_string(&a, 1, "coordinate_transformation_mode");
        put_string(&a, 4, "tf_crop_and_resize");
        put_int(&a, 20, 3);
        put_message(&n, 5, &a);
        put_message(&g, 1, &n);
        put_end(&g, 12, "y", ORTC_F32, -1, NULL);
        ortc_in in = {"x", ortc_wrap(x, ORTC_F32, 4, (int64_t[]){1, 1, 4, 4})};
        ortc_out out = {.name = "y"};
        buffer b = make_model(8, 17, &g);
        cr_expect_eq(run(&b, &in, 1, &out, 1), cases[i].status, "roi of rank %d, scales of rank %d: %s",
                     cases[i].roi_rank, cases[i].scales_rank, e.text);
        cr_expect(!cases[i].status || strstr(e.text, "vectors"), "%s",
                  e.text); /* said by the shape function, which reads them first */
        ortc_value_release(out.value);
        ortc_value_release(in.value);
    }
}

/* ---- Arithmetic ---------------------------------------------------------------------------------------- */

/* op on a float input, with a vector of integers as its second input where `ints` is not NULL. */
static ortc_status apply(const char *op, int rank, const int64_t *dims, float *x, const int64_t *ints,
                         int64_t n, ortc_value **y)
{
    buffer g = {0};
    put_end(&g, 11, "x", ORTC_F32, rank, dims);
    if (ints) put_constant(&g, "ints", ORTC_I64, 1, &n, ints, (size_t)n * sizeof *ints);
    put_node(&g, op, "",
             !strcmp(op, "Concat")  ? "x x"
             : !strcmp(op, "Slice") ? "x ints ints"
             : ints                 ? "x ints"
                                    : "x",
             "y");
    if (!strcmp(op, "Concat")) { /* its axis is a must */
        buffer_free(&g);
        put_end(&g, 11, "x", ORTC_F32, rank, dims);
        buffer node = make_node(op, "", "x x", "y"), a = {0};
        put_string(&a, 1, "axis");
        put_int(&a, 3, 0);
        put_int(&a, 20, 2);
        put_message(&node, 5, &a);
        put_message(&g, 1, &node);
    }
    put_end(&g, 12, "y", ORTC_F32, -1, NULL);
    ortc_in in = {"x", ortc_wrap(x, ORTC_F32, rank, dims)};
    ortc_out out = {.name = "y"};
    buffer b = make_model(8, 17, &g);
    ortc_status s = run(&b, &in, 1, &out, 1);
    ortc_value_release(in.value);
    *y = out.value;
    return s;
}

Test(hostile, tensors_of_rank_0)
{
    static const char *const ops[] = {"Slice",     "Pad",  "CenterCropPad", "Expand",
                                      "Transpose", "Relu", "Softmax"};
    for (size_t i = 0; i < ORTC_LENGTH(ops); i++) {
        float x = -5;
        ortc_value *y;
        const bool listed = i < 4;
        ortc_status s = apply(ops[i], 0, NULL, &x, listed ? (const int64_t[]){0} : NULL, 0, &y);
        cr_expect(s == ORTC_OK || s == ORTC_INVALID_MODEL || s == ORTC_UNSUPPORTED, "%s: %s: %s", ops[i],
                  ortc_status_name(s), e.text);
        ortc_value_release(y);
    }
}

/* The product of the extents beside 0 is more than any integer; Flatten would need it as an extent of its
 * result. */
Test(hostile, extents_beside_0_may_be_of_any_size)
{
    static const char *const ops[] = {"Relu", "Concat",  "Transpose", "Identity", "Softmax",
                                      "Cast", "Flatten", "ReduceSum", "Split"};
    static const int64_t shapes[2][3] = {{INT64_C(1) << 40, INT64_C(1) << 40, 0},
                                         {0, INT64_C(1) << 40, INT64_C(1) << 40}};
    for (size_t i = 0; i < ORTC_LENGTH(ops); i++)
        for (int k = 0; k < 2; k++) {
            float x = 0;
            ortc_value *y;
            ortc_status s = apply(ops[i], 3, shapes[k], &x, NULL, 0, &y);
            cr_expect(s == ORTC_OK || s == ORTC_LIMIT || s == ORTC_INVALID_MODEL || s == ORTC_UNSUPPORTED ||
                          (s == ORTC_SHAPE_MISMATCH && k == 1 && !strcmp(ops[i], "Flatten")),
                      "%s: %s: %s", ops[i], ortc_status_name(s), e.text);
            ortc_value_release(y);
        }
}

Test(hostile, pads_that_no_tensor_can_be_long)
{
    static const int64_t pads[][2] = {{INT64_MIN, -ORTC_DIM_NUMBERS},
                                      {INT64_MIN, INT64_MAX},
                                      {INT64_MAX, ORTC_DIM_NUMBERS},
                                      {INT64_MIN, 0},
                                      {INT64_MAX, 0},
                                      {-4, 8}};
    for (size_t i = 0; i < ORTC_LENGTH(pads); i++) {
        float x[4] = {1, 2, 3, 4};
        ortc_value *y;
        ortc_status s = apply("Pad", 1, (int64_t[]){4}, x, pads[i], 2, &y);
        cr_expect(i + 1 == ORTC_LENGTH(pads) ? s == ORTC_OK : s != ORTC_OK && s != ORTC_INTERNAL,
                  "%zu: %s: %s", i, ortc_status_name(s), e.text);
        ortc_value_release(y);
    }
}

/* ---- Calls --------------------------------------------------------------------------------------------- */

Test(hostile, lists_that_are_null_and_flags_that_mean_nothing)
{
    buffer g = {0};
    put_end(&g, 11, "x", ORTC_F32, 1, (int64_t[]){-1});
    put_node(&g, "Relu", "", "x", "y");
    put_end(&g, 12, "y", ORTC_F32, 1, (int64_t[]){-1});
    buffer b = make_model(8, 17, &g);
    ortc_model *m = NULL, *none = NULL;
    ortc_session *s = NULL, *no_session = NULL;
    const char *null_name = NULL, *name = "s1";
    const int64_t four = 4;
    cr_expect_eq(ortc_model_load_reader(NULL, NULL, &none, &e), ORTC_INVALID_ARGUMENT);
    ortc_model_options mo = ORTC_MODEL_OPTIONS_INIT;
    mo.n_passes_off = 1;
    cr_expect_eq(ortc_model_load_memory(b.data, b.bytes, &mo, &none, &e), ORTC_INVALID_ARGUMENT, "%s",
                 e.text);
    mo.passes_off = &null_name;
    cr_expect_eq(ortc_model_load_memory(b.data, b.bytes, &mo, &none, &e), ORTC_INVALID_ARGUMENT, "%s",
                 e.text);
    mo = (ortc_model_options)ORTC_MODEL_OPTIONS_INIT;
    mo.flags = UINT32_C(1) << 31;
    cr_expect_eq(ortc_model_load_memory(b.data, b.bytes, &mo, &none, &e), ORTC_INVALID_ARGUMENT, "%s",
                 e.text);
    cr_expect_null(none);
    cr_assert_eq(ortc_model_load_memory(b.data, b.bytes, NULL, &m, &e), ORTC_OK, "%s", e.text);
    ortc_session_options so = ORTC_SESSION_OPTIONS_INIT;
    so.flags = UINT32_C(1) << 31;
    cr_expect_eq(ortc_session_create(m, &so, &no_session, &e), ORTC_INVALID_ARGUMENT, "%s", e.text);
    for (int i = 0; i < 3; i++) {
        so = (ortc_session_options)ORTC_SESSION_OPTIONS_INIT;
        so.n_dims = 1;
        so.dim_names = i == 0 ? NULL : i == 1 ? &null_name : &name;
        so.dim_values = i == 2 ? NULL : &four;
        cr_expect_eq(ortc_session_create(m, &so, &no_session, &e), ORTC_INVALID_ARGUMENT, "%d: %s", i,
                     e.text);
    }
    so = (ortc_session_options)ORTC_SESSION_OPTIONS_INIT;
    so.n_keep = 1;
    cr_expect_eq(ortc_session_create(m, &so, &no_session, &e), ORTC_INVALID_ARGUMENT, "%s", e.text);
    so.n_keep = 0;
    so.n_ties = 1;
    cr_expect_eq(ortc_session_create(m, &so, &no_session, &e), ORTC_INVALID_ARGUMENT, "%s", e.text);
    ortc_tie tie = {NULL, "y", -1, 0, 0};
    so.ties = &tie;
    cr_expect_eq(ortc_session_create(m, &so, &no_session, &e), ORTC_INVALID_ARGUMENT, "%s", e.text);
    cr_expect_null(no_session);
    cr_assert_eq(ortc_session_create(m, NULL, &s, &e), ORTC_OK, "%s", e.text);
    ortc_run_args a = ORTC_RUN_ARGS_INIT;
    a.flags = 1;
    cr_expect_eq(ortc_run(s, &a, &e), ORTC_INVALID_ARGUMENT, "%s", e.text);
    ortc_save_options save = ORTC_SAVE_OPTIONS_INIT;
    save.flags = 4;
    cr_expect_eq(ortc_model_save(m, "never.onnx", &save, &e), ORTC_INVALID_ARGUMENT, "%s", e.text);
    ortc_session_release(s);
    ortc_model_release(m);
    buffer_free(&b);
}

/* ---- What a model says and its kernel does not do ------------------------------------------------------ */

/* A sequence without an initial value would be collected round by round. */
Test(hostile, a_loop_collects_no_sequences)
{
    for (int64_t rounds = 0; rounds < 2; rounds++) {
        buffer g = {0}, body = {0}, a = {0};
        put_constant(&g, "n", ORTC_I64, 0, NULL, &rounds, 8);
        put_end(&g, 11, "x", ORTC_F32, 1, (int64_t[]){2});
        put_end(&body, 11, "i", ORTC_I64, 0, NULL);
        put_end(&body, 11, "go", ORTC_BOOL, 0, NULL);
        put_node(&body, "Identity", "", "go", "on");
        put_node(&body, "SequenceConstruct", "", "x", "s");
        put_end(&body, 12, "on", ORTC_BOOL, 0, NULL);
        buffer s = {0};
        put_string(&s, 1, "s");
        put_message(&body, 12, &s);
        put_string(&body, 2, "body");
        buffer n = make_node("Loop", "", "n", "all");
        put_string(&a, 1, "body");
        put_int(&a, 20, 5);
        put_message(&a, 6, &body);
        put_message(&n, 5, &a);
        put_message(&g, 1, &n);
        put_node(&g, "SequenceLength", "", "all", "y");
        put_end(&g, 12, "y", ORTC_I64, 0, NULL);
        float x[2] = {0};
        ortc_in in = {"x", ortc_wrap(x, ORTC_F32, 1, (int64_t[]){2})};
        ortc_out out = {.name = "y"};
        buffer b = make_model(8, 17, &g);
        cr_expect_eq(run(&b, &in, 1, &out, 1), ORTC_INVALID_MODEL, "%s: %s", ortc_status_name(e.code),
                     e.text);
        ortc_value_release(out.value);
        ortc_value_release(in.value);
    }
}
