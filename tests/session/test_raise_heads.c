/* tests/session/test_raise_heads.c: targets that are computed, heads and masks as vision transformers move
 * them, and the bodies of what is raised.
 */
#include "tests/session/raising.h"

TestSuite(raise_heads, .init = setup, .fini = teardown);

/* ---- Targets ------------------------------------------------------------------------------------------- */

Test(raise_heads, targets_that_are_computed_become_constants_where_they_say_the_same)
{
    static float before[MAX_COUNT], after[MAX_COUNT];
    ortc_edge *x = input("x", 3, batch, length, HEADS * SIZE, 0), *shape = one("Shape", x);
    ortc_edge *target = concat(3, two("Gather", shape, INTS(0)), two("Gather", shape, INTS(1)),
                               INTS(HEADS, SIZE), NULL);
    ortc_edge *split = two("Reshape", x, target);
    ortc_edge *flat = two("Reshape", one("Relu", split),
                          concat(2, two("Mul", two("Gather", shape, INTS(0)), two("Gather", shape, INTS(1))),
                                 INTS(HEADS * SIZE), NULL, NULL));
    ortc_graph_add_output(g, "y", flat);
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
    const int64_t count = run(g, "ref", before);
    cr_expect_eq(normalise("constant-targets"), 2);
    cr_expect_eq(g->n_nodes, 3);
    static const int64_t four[4] = {0, 0, HEADS, SIZE}, rows[2] = {-1, HEADS * SIZE};
    cr_expect_arr_eq(split->producer->in[1]->constant->data, four, sizeof four);
    cr_expect_arr_eq(flat->producer->in[1]->constant->data, rows, sizeof rows);
    cr_assert_eq(run(g, "ref", after), count);
    expect_close("targets", after, before, count);
    again();
    /* length and batch change places: neither is kept, and -1 can stand for one only */
    x = input("x", 3, batch, length, SIZE, 0), shape = one("Shape", x);
    expect_left("two that are open", "constant-targets",
                two("Reshape", x,
                    concat(3, two("Gather", shape, INTS(1)), two("Gather", shape, INTS(0)), INTS(SIZE),
                           NULL)));
    /* beside a dim that is kept, and may be 0, -1 means nothing */
    x = input("x", 3, batch, length, keys, 0), shape = one("Shape", x);
    expect_left("open beside one that is kept", "constant-targets",
                two("Reshape", x,
                    concat(2, two("Gather", shape, INTS(0)),
                           two("Mul", two("Gather", shape, INTS(1)), two("Gather", shape, INTS(2))), NULL,
                           NULL)));
}

/* ---- Heads and masks as vision transformers move them -------------------------------------------------- */

/* [3, batch, HEADS, length, SIZE] of [batch, length, 3 * HEADS * SIZE]; turned: the last but one change
 * places. */
static ortc_edge *moved_heads(ortc_edge *x, bool turned)
{
    const int64_t perm[5] = {2, 0, turned ? 1 : 3, turned ? 3 : 1, 4};
    const ortc_attr by = {.size = sizeof by, .kind = ORTC_ATTR_INTS, .count = 5, .u.ints = perm};
    ortc_edge *y = one("Transpose", two("Reshape", x, INTS(0, 0, 3, HEADS, SIZE)));
    ortc_node_set_attr(y->producer, "perm", &by);
    return y;
}

/* Part i of them; looks_like: 1 the axes go elsewhere, 2 a part is gathered as a dim. */
static ortc_edge *gathered(ortc_edge *x, int i, int looks_like)
{
    const int64_t at = i;
    ortc_edge *y = moved_heads(x, looks_like == 1);
    y = two("Gather", y, looks_like == 2 ? INTS(at) : constant(ORTC_I64, 0, 1, &at, sizeof at));
    return with_int(y, "axis", 0);
}

/* The same, by Slice and Squeeze; of `count` parts, along `axis` */
static ortc_edge *sliced(ortc_edge *moved, int64_t i, int64_t count, int64_t axis)
{
    ortc_edge *y = apply("Slice", 4, moved, INTS(i), INTS(i + count), INTS(axis));
    return two("Squeeze", y, INTS(axis));
}

/* A node Split of three parts; *parts without their first dim. */
static void unbound(ortc_edge *moved, ortc_edge **parts)
{
    ortc_node *n = ortc_node_create(g, ortc_op_find("", "Split"), NULL, 2, 3);
    ortc_node_set_in(n, 0, moved), ortc_node_set_in(n, 1, INTS(1, 1, 1));
    for (uint32_t i = 0; i < 3; i++) {
        ortc_node_set_out(n, i, ortc_edge_create(g, NULL));
        parts[i] = two("Squeeze", n->out[i], INTS(0));
    }
}

Test(raise_heads, heads_of_one_product_are_split_before_they_are_moved)
{
    static float before[MAX_COUNT], after[MAX_COUNT];
    for (int form = 0; form < 3; form++) {
        ortc_edge *x = input("x", 3, batch, length, 3 * HEADS * SIZE, 0), *part[3];
        if (form == 0)
            part[0] = gathered(x, 0, 0), part[1] = gathered(x, 1, 0), part[2] = gathered(x, -1, 0);
        else if (form == 1) {
            ortc_edge *moved = moved_heads(x, false);
            for (int i = 0; i < 3; i++) part[i] = sliced(moved, i - 3 * (i == 1), 1, 0);
        } else
            unbound(moved_heads(x, false), part);
        ortc_graph_add_output(g, "y",
                              attention_with(0, part[0], transpose(part[1], 0, 1, 3, 2), part[2], NULL));
        cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
        const int64_t count = run(g, "ref", before);
        cr_expect_eq(normalise("split-heads"), 3, "form %d", form);
        const ortc_node *n = find(g, "Attention");
        cr_assert(n && find(g, "Split") && !find(g, "Gather") && !find(g, "Transpose"), "form %d", form);
        cr_expect(!find(g, "Slice") && !find(g, "Squeeze"), "form %d", form);
        cr_expect_eq(ortc_node_int(n, "q_num_heads", 0), HEADS);
        cr_assert_eq(run(g, "ref", after), count);
        expect_close("split", after, before, count);
        again();
    }
}

Test(raise_heads, what_is_not_parts_of_heads_for_products_stays)
{
    for (int like = 1; like < 3; like++) {
        ortc_edge *y = gathered(input("x", 3, batch, length, 3 * HEADS * SIZE, 0), 1, like);
        expect_left("what looks like it", "split-heads", two("MatMul", y, input("w", 2, SIZE, 3, 0, 0)));
    }
    ortc_edge *moved = moved_heads(input("x", 3, batch, length, 3 * HEADS * SIZE, 0), false);
    ortc_edge *y = apply("Slice", 4, moved, INTS(0), INTS(2), INTS(0));
    expect_left("two parts", "split-heads",
                two("MatMul", y, one("Relu", transpose(sliced(moved, 2, 1, 0), 0, 1, 3, 2))));
    y = sliced(moved_heads(input("x", 3, batch, length, 3 * HEADS * SIZE, 0), false), 1, 1, 2);
    expect_left("a head", "split-heads", two("MatMul", y, transpose(y, 0, 1, 3, 2)));
    y = sliced(moved_heads(input("x", 3, batch, length, 3 * HEADS * SIZE, 0), false), 1, 1, 0);
    expect_left("no product reads it", "split-heads", one("Relu", y));
    ortc_edge *both = one("Transpose", input("x", 3, batch, length, 3 * HEADS * SIZE, 0));
    expect_left("no heads", "split-heads", with_int(two("Gather", both, INTS(1)), "axis", 0));
}

/* x [6, HEADS, 5, 5] as [m, n, HEADS, 5, 5] and back, between which [c0, c1, 5, 5], or without the first,
 * is added. */
static ortc_edge *added_view(int64_t m, int64_t n, int32_t rank, int64_t c0, int64_t c1)
{
    ortc_edge *x = input("x", 4, 6, HEADS, 5, 5);
    ortc_edge *c = rank == 4 ? input("mask", 4, c0, c1, 5, 5) : input("mask", 3, c1, 5, 5, 0);
    ortc_edge *y = two("Add", two("Reshape", x, INTS(m, n, HEADS, 5, 5)), c);
    return two("Reshape", y, INTS(-1, HEADS, 5, 5));
}

Test(raise_heads, what_is_added_to_a_view_is_added_to_what_is_viewed)
{
    static float before[MAX_COUNT], after[MAX_COUNT];
    const struct {
        int64_t m, n;
        int32_t rank;
        int64_t c0, c1;
    } forms[] = {{1, 6, 4, 6, 1}, {1, 6, 4, 6, HEADS}, {2, 3, 4, 1, HEADS}, {2, 3, 3, 0, 1}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        ortc_graph_add_output(g, "y",
                              added_view(forms[i].m, forms[i].n, forms[i].rank, forms[i].c0, forms[i].c1));
        cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
        const int64_t count = run(g, "ref", before);
        cr_expect_eq(normalise("added-views"), 1, "form %d", (int)i);
        cr_assert_eq(run(g, "ref", after), count);
        cr_expect_arr_eq(after, before, (size_t)count * sizeof *after, "form %d", (int)i);
        again();
    }
    expect_left("for every second", "added-views", added_view(2, 3, 4, 3, 1));
}

/* ---- Products over flattened rows ---------------------------------------------------------------------- */

enum {
    PRODUCT_IS_GEMM = 1,
    HAS_ROW = 2,   /* c [1, WIDTH_OUT]; else [WIDTH_OUT] */
    IS_TURNED = 4, /* W^T */
    HAS_ALPHA = 8,
    HAS_MATRIX = 16,  /* c [BATCH * LENGTH, WIDTH_OUT] */
    IS_READ = 32,     /* rows of the product */
    IS_EXCHANGED = 64 /* [length, batch, ..] comes of it */
};
enum { WIDTH_OUT = 3 };

static ortc_edge *flat_product(int how)
{
    ortc_edge *x = input("x", 3, batch, length, SIZE, 0), *shape = one("Shape", x);
    ortc_edge *b = two("Gather", shape, INTS(0)), *n = two("Gather", shape, INTS(1));
    ortc_edge *w = how & IS_TURNED ? input("w", 2, WIDTH_OUT, SIZE, 0, 0)
                                   : input("w", 2, SIZE, WIDTH_OUT, 0, 0);
    ortc_edge *c = how & HAS_MATRIX ? input("c", 2, BATCH * LENGTH, WIDTH_OUT, 0, 0)
                   : how & HAS_ROW  ? input("c", 2, 1, WIDTH_OUT, 0, 0)
                                    : input("c", 1, WIDTH_OUT, 0, 0, 0);
    ortc_edge *rows = two("Reshape", x, INTS(-1, SIZE));
    ortc_edge *y = how & PRODUCT_IS_GEMM ? apply("Gemm", 3, rows, w, c, NULL) : two("MatMul", rows, w);
    if (how & IS_TURNED) with_int(y, "transB", 1);
    if (how & HAS_ALPHA) {
        const ortc_attr half = {.size = sizeof half, .kind = ORTC_ATTR_FLOAT, .f = 0.5F};
        ortc_node_set_attr(y->producer, "alpha", &half);
    }
    if (how & IS_READ) ortc_graph_add_output(g, "more", one("Relu", y));
    return two("Reshape", y,
               how & IS_EXCHANGED ? concat(3, n, b, INTS(WIDTH_OUT), NULL)
                                  : concat(3, b, n, INTS(WIDTH_OUT), NULL));
}

Test(raise_heads, products_of_flattened_rows_take_rows_as_they_are)
{
    static float before[MAX_COUNT], after[MAX_COUNT];
    const int forms[] = {0, PRODUCT_IS_GEMM, PRODUCT_IS_GEMM | HAS_ROW};
    for (size_t i = 0; i < ORTC_LENGTH(forms); i++) {
        ortc_graph_add_output(g, "y", one("Relu", flat_product(forms[i])));
        cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
        const int64_t count = run(g, "ref", before);
        cr_expect_eq(normalise("flat-products"), 1, "form %d", forms[i]);
        cr_expect_eq(g->n_nodes, forms[i] ? 3 : 2, "form %d", forms[i]);
        const ortc_node *n = find(g, "MatMul");
        cr_assert_not_null(n, "form %d", forms[i]);
        cr_expect_str_eq(n->in[0]->name, "x");
        cr_assert_eq(run(g, "ref", after), count);
        expect_close("rows", after, before, count);
        again();
    }
    expect_left("weights are turned", "flat-products", flat_product(PRODUCT_IS_GEMM | IS_TURNED));
    expect_left("with a factor", "flat-products", flat_product(PRODUCT_IS_GEMM | HAS_ALPHA));
    expect_left("a bias of each row", "flat-products", flat_product(PRODUCT_IS_GEMM | HAS_MATRIX));
    expect_left("rows are read", "flat-products", flat_product(PRODUCT_IS_GEMM | IS_READ));
    expect_left("dims change places", "flat-products", flat_product(PRODUCT_IS_GEMM | IS_EXCHANGED));
}

/* x expanded to [batch, middle, 7], by a target that is asked where it equals `below`. */
static ortc_edge *asked(int64_t middle, int64_t below)
{
    ortc_edge *x = input("x", 3, batch, 1, 7, 0), *b = two("Gather", one("Shape", x), INTS(0));
    ortc_edge *target = concat(3, b, INTS(middle), INTS(7), NULL);
    ortc_edge *equal = two("Equal", target, INTS(below, below, below));
    return two("Expand", x, apply("Where", 3, equal, INTS(1, 1, 1), target, NULL));
}

/* y to the bit by one edit of a pass, after which no node is a `gone`. */
static void expect_without(const char *gone, const char *pass, ortc_edge *y)
{
    static float before[MAX_COUNT], after[MAX_COUNT];
    ortc_graph_add_output(g, "y", y);
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
    const int64_t count = run(g, "ref", before);
    cr_expect_eq(normalise(pass), 1);
    cr_expect_null(find(g, gone));
    cr_assert_eq(run(g, "ref", after), count);
    cr_expect_arr_eq(after, before, (size_t)count * sizeof *after);
    again();
}

Test(raise_heads, a_where_is_decided_where_no_extent_can_equal_what_is_asked)
{
    for (int64_t middle = -1; middle < 4; middle += 4) /* one element is replaced, none is */
        expect_without("Where", "decided-where", one("Relu", asked(middle, -1)));
    expect_left("batch may be 2", "decided-where", asked(3, 2));
}

/* A value with one of each row, which is expanded to its shape; the other way round. */
static ortc_edge *with_rows(const char *op, ortc_edge *other, bool turned)
{
    ortc_edge *rows = two("Expand", input("rows", 3, batch, 3, 1, 0), one("Shape", other));
    return turned ? two(op, rows, other) : two(op, other, rows);
}

Test(raise_heads, rows_are_not_expanded_for_what_broadcasts_them)
{
    for (int turned = 0; turned < 2; turned++)
        expect_without("Expand", "implied-expand", with_rows("Sub", input("x", 3, batch, 3, 7, 0), turned));
    expect_left("nobody has the shape", "implied-expand",
                two("Add", two("Expand", input("x", 3, batch, 1, 7, 0), INTS(1, 3, 7)),
                    input("z", 3, 1, 1, 7, 0)));
    expect_left("it does not broadcast", "implied-expand",
                two("MatMul", input("x", 3, batch, 7, 7, 0),
                    two("Expand", input("z", 3, batch, 7, 1, 0), INTS(1, 7, 7))));
}

/* ---- Bodies -------------------------------------------------------------------------------------------- */

static ortc_edge *byte(uint8_t v) { return constant(ORTC_U8, 0, 1, &v, 1); }

/* A product of quantised matrices, its result as f32. */
static ortc_edge *quantised_product(void)
{
    ortc_edge *in[8] = {apply("QuantizeLinear", 3, input("x", 2, batch, 8, 0, 0), scalar(0.05), byte(100),
                              NULL),
                        scalar(0.05),
                        byte(100),
                        constant(ORTC_U8, 1, 8, "\1\7\3\11\5\2\4\6", 8),
                        scalar(0.25),
                        byte(5),
                        scalar(0.5),
                        byte(128)};
    ortc_node *n = ortc_node_create(g, ortc_op_find("", "QLinearMatMul"), NULL, 8, 1);
    for (uint32_t i = 0; i < 8; i++) ortc_node_set_in(n, i, in[i]);
    ortc_node_set_out(n, 0, ortc_edge_create(g, NULL));
    return apply("DequantizeLinear", 3, n->out[0], in[6], in[7], NULL);
}

/* cpu has MatMulInteger and no QLinearMatMul: the work stays there. ref has the operator itself. */
Test(raise_heads, a_body_takes_the_place_of_a_node_that_no_listed_provider_has)
{
    static float before[MAX_COUNT], after[MAX_COUNT];
    ortc_session *s;
    ortc_graph *copy;
    ortc_graph_add_output(g, "y", quantised_product());
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
    cr_expect_eq(normalise("qlinear"), 1);
    const int64_t count = run(g, "ref", before);
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    for (int i = 0; i < 2; i++) {
        o.providers = i ? "cpu" : "ref";
        cr_assert_eq(ortc_graph_clone(g, &copy, &e), ORTC_OK);
        cr_assert_eq(ortc_session_from_graph(&store, copy, &o, &s, &e), ORTC_OK, "%s", e.text);
        const ortc_node *product = find(copy, "MatMulInteger");
        cr_expect_eq(find(copy, "QLinearMatMul") == NULL, i == 1);
        cr_expect_eq(product != NULL, i == 1);
        if (product) cr_expect_eq(ortc_site_of(&s->unit.placed, product)->device, 0);
        ortc_session_release(s);
    }
    cr_assert_eq(run(g, "cpu", after), count);
    expect_close("on cpu", after, before, count);
}

Test(raise_heads, what_is_raised_is_fused_and_leaves_its_body_in_that_of_the_node)
{
    static float before[MAX_COUNT], after[MAX_COUNT];
    for (int scaled = 0; scaled < 2; scaled++) { /* by alpha */
        ortc_session *s;
        ortc_graph *copy;
        ortc_edge *product = two("MatMul", input("x", 3, batch, length, 7, 0), input("w", 2, 7, 9, 0, 0));
        ortc_graph_add_output(g, "y",
                              two("Mul", product,
                                  one("Sigmoid", scaled ? two("Mul", product, scalar(1.5)) : product)));
        cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
        const int64_t count = run(g, "ref", before);
        cr_expect_eq(normalise("raise-swish"), 1);
        cr_assert_eq(ortc_graph_clone(g, &copy, &e), ORTC_OK);
        ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
        cr_assert_eq(ortc_session_from_graph(&store, copy, &o, &s, &e), ORTC_OK, "%s", e.text);
        cr_expect_eq(copy->n_nodes, 1u);
        cr_expect_str_eq(copy->first->fused, "Swish");
        cr_expect_eq(ortc_graph_verify(copy->first->body, &e), ORTC_OK, "%s", e.text);
        const ortc_node *swish = find(copy->first->body, "Swish");
        cr_expect(swish && ortc_node_is_raised(swish));
        ortc_session_release(s);
        cr_assert_eq(run(g, "cpu", after), count);
        expect_close("fused", after, before, count);
        again();
    }
}

Test(raise_heads, what_is_raised_is_written_as_its_body_where_the_opset_would_rise)
{
    ortc_graph *lowered;
    const char *domain = "";
    int64_t opset = 17;
    ortc_model_info info = {.size = sizeof info,
                            .n_opsets = 1,
                            .opset_domains = &domain,
                            .opset_versions = &opset};
    ortc_graph_add_output(g, "y", attention(MASK));
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
    cr_expect_eq(normalise("raise-attention"), 1);
    cr_assert_eq(ortc_onnx_lower(g, &info, &lowered, &e), ORTC_OK, "%s", e.text);
    cr_assert_not_null(lowered);
    cr_expect_null(find(lowered, "Attention"));
    cr_expect_not_null(find(lowered, "Softmax"));
    cr_expect_not_null(find(g, "Attention"), "the model's own graph stays");
    cr_expect_eq(ortc_graph_verify(lowered, &e), ORTC_OK, "%s", e.text);
    ortc_graph_destroy(lowered);
    opset = 23;
    cr_assert_eq(ortc_onnx_lower(g, &info, &lowered, &e), ORTC_OK, "%s", e.text);
    cr_expect_null(lowered, "Attention-23 is valid there");
}
