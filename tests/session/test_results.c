/* tests/session/test_results.c: results that are fixed by the standard's words, where ref, the oracle of all
 * other kernels, is asked itself.
 */
#include <criterion/criterion.h>

#include "base/base.h"
#include "tests/unit/wire_writer.h"

TestSuite(results);

static void put_text(buffer *node, const char *name, const char *text)
{
    buffer a = {0};
    put_string(&a, 1, name);
    put_string(&a, 4, text);
    put_int(&a, 20, 3);
    put_message(node, 5, &a);
}

/* y = node(x), x is 1 2 3 4 along the last of `rank` dims, on ref; the rest of the graph is in `g`. */
static void expect(int64_t opset, buffer *g, buffer *node, int rank, const float *y, size_t n)
{
    ortc_error e = ORTC_ERROR_INIT;
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    ortc_run_args a = ORTC_RUN_ARGS_INIT;
    ortc_model *model = NULL;
    ortc_session *session = NULL;
    static float x[4] = {1, 2, 3, 4};
    const int64_t dims[4] = {rank == 1 ? 4 : 1, 1, 1, 4};
    ortc_in in = {"x", ortc_wrap(x, ORTC_F32, rank, dims)};
    ortc_out out = {.name = "y"};
    buffer info = make_value_info("x", ORTC_F32, rank, dims);
    put_message(g, 11, &info);
    info = make_value_info("y", ORTC_F32, -1, NULL);
    put_message(g, 12, &info);
    put_message(g, 1, node);
    buffer b = make_model(8, opset, g);
    o.providers = "ref";
    a.in = &in, a.n_in = 1, a.out = &out, a.n_out = 1;
    cr_assert_eq(ortc_model_load_memory(b.data, b.bytes, NULL, &model, &e), ORTC_OK, "%s", e.text);
    cr_assert_eq(ortc_session_create(model, &o, &session, &e), ORTC_OK, "%s", e.text);
    cr_assert_eq(ortc_run(session, &a, &e), ORTC_OK, "%s", e.text);
    cr_assert_eq(ortc_value_count(out.value), (int64_t)n, "%lld elements",
                 (long long)ortc_value_count(out.value));
    for (size_t i = 0; i < n; i++)
        cr_expect_eq(((const float *)ortc_value_host(out.value))[i], y[i], "element %zu is %g", i,
                     (double)((const float *)ortc_value_host(out.value))[i]);
    ortc_value_release(out.value);
    ortc_value_release(in.value);
    ortc_session_release(session);
    ortc_model_release(model);
    buffer_free(&b);
}

/* Backwards a start is clamped to the first element, an end to before it. */
Test(results, slice_backwards_from_before_the_first)
{
    static const struct {
        int64_t v[4]; /* start, end, axis, step */
        size_t n;
        float y[4];
    } cases[] = {{{-10, -10, 0, -1}, 1, {1}},   {{-5, INT64_MIN, 0, -2}, 1, {1}},
                 {{-10, 0, 0, -1}, 0, {0}},     {{-10, 10, 0, 1}, 4, {1, 2, 3, 4}},
                 {{10, -10, 0, -3}, 2, {4, 1}}, {{2, -5, 0, -1}, 3, {3, 2, 1}}};
    for (size_t i = 0; i < ORTC_LENGTH(cases); i++) {
        static const char *const names[4] = {"start", "end", "axis", "step"};
        buffer g = {0}, node = make_node("Slice", "", "x start end axis step", "y");
        for (int k = 0; k < 4; k++) {
            buffer t = make_tensor(names[k], ORTC_I64, 1, (int64_t[]){1}, &cases[i].v[k], 8);
            put_message(&g, 5, &t);
        }
        expect(17, &g, &node, 1, cases[i].y, cases[i].n);
    }
}

static void put_scales(buffer *g, float last)
{
    const float v[4] = {1, 1, 1, last};
    buffer t = make_tensor("scales", ORTC_F32, 1, (int64_t[]){4}, v, sizeof v);
    put_message(g, 5, &t);
}

Test(results, resize_10_nearest_rounds_up_where_it_shrinks)
{
    buffer g = {0}, node = make_node("Resize", "", "x scales", "y");
    put_scales(&g, 0.6F);
    expect(10, &g, &node, 4, (float[]){1, 3}, 2);
    node = make_node("Resize", "", "x scales", "y");
    put_scales(&g, 1.5F);
    expect(10, &g, &node, 4, (float[]){1, 1, 2, 3, 3, 4}, 6);
}

Test(results, resize_11_knows_tf_half_pixel_for_nn)
{
    buffer g = {0}, node = make_node("Resize", "", "x scales scales", "y");
    put_text(&node, "coordinate_transformation_mode", "tf_half_pixel_for_nn");
    put_text(&node, "nearest_mode", "floor");
    put_scales(&g, 0.5F); /* 1 and 3 */
    expect(11, &g, &node, 4, (float[]){2, 4}, 2);
}
