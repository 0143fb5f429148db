/* tests/session/test_trees.c: forests at random on the cpu (kernels/ml/cpu_trees.c) give what ref gives, bit
 * by bit, for any number of rows and threads: all questions, missing numbers, thresholds that features equal,
 * and such as f32 does not hold; trees that share nodes, and such as go in circles.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/ir/graph.h"
#include "runtime/registry/registry.h"
#include "runtime/session/create.h"
#include "runtime/session/session.h"

enum { FEATURES = 5, ROWS = 200, MOST = 4096, OUTS = 3 };

static ortc_graph *g;
static ortc_model store;
static ortc_error e;
static ortc_dim rows;
static uint32_t seed;

static void setup(void)
{
    e = (ortc_error)ORTC_ERROR_INIT;
    cr_assert_eq(ortc_registry_init(&e), ORTC_OK, "%s", e.text);
    cr_assert_not_null(g = ortc_graph_create(NULL));
    cr_assert_eq(ortc_dims_symbol(g->dims, &g->arena, "rows", &rows), ORTC_OK);
    cr_assert(ortc_pack_store_init(&store.packed, 0));
}
static void teardown(void)
{
    ortc_graph_destroy(g);
    ortc_pack_store_deinit(&store.packed);
}
TestSuite(trees, .init = setup, .fini = teardown);

static uint32_t pick(uint32_t n) { return (seed = seed * 1664525 + 1013904223) / 65536 % n; }

/* What features and thresholds are: few numbers, so that they are often equal. */
static double number(void)
{
    static const double some[] = {0, -0.0, 0.5, 1, -1, 2, -3, 1e30};
    const uint32_t k = pick(20);
    return k < 8 ? some[k] : (double)pick(9) / 2 - 2;
}
static double feature(void)
{
    const uint32_t k = pick(30);
    return k == 0 ? (double)NAN : k == 1 ? (double)INFINITY : k == 2 ? -(double)INFINITY : number();
}
/* Some have neighbours in f32, or none that is equal. */
static double threshold(int exact)
{
    const uint32_t k = pick(24);
    if (k == 0) return (double)NAN;
    if (k == 1) return (double)INFINITY;
    if (k == 2) return -(double)INFINITY;
    return exact || k > 8 ? number() : number() + (k & 1 ? 1e-12 : -1e-12);
}

/* ---- Building ------------------------------------------------------------------------------------------ */

static ortc_node *ensemble(const char *op, uint32_t n_out, ortc_dtype type)
{
    const ortc_dim dims[2] = {rows, FEATURES};
    ortc_edge *x = ortc_edge_create(g, "x");
    ortc_edge_set_shape(x, ortc_tensor_type(type), 2, dims);
    ortc_graph_add_input(g, "x", x);
    ortc_node *n = ortc_node_create(g, ortc_op_find("ai.onnx.ml", op), NULL, 1, n_out);
    ortc_node_set_in(n, 0, x);
    for (uint32_t i = 0; i < n_out; i++) {
        ortc_node_set_out(n, i, ortc_edge_create(g, NULL));
        ortc_graph_add_output(g, i ? "y1" : "y0", n->out[i]);
    }
    return n;
}
static void set_ints(ortc_node *n, const char *name, const int64_t *v, size_t count)
{
    cr_assert(ortc_node_set_attr(n, name, &(ortc_attr){.kind = ORTC_ATTR_INTS, .count = count, .u.ints = v}));
}
static void set_int(ortc_node *n, const char *name, int64_t v)
{
    cr_assert(ortc_node_set_attr(n, name, &(ortc_attr){.kind = ORTC_ATTR_INT, .i = v}));
}
static void set_text(ortc_node *n, const char *name, const char *v)
{
    cr_assert(
        ortc_node_set_attr(n, name, &(ortc_attr){.kind = ORTC_ATTR_STRING, .count = strlen(v), .u.s = v}));
}
/* Its data stays the caller's. */
static void set_tensor(ortc_node *n, const char *name, ortc_dtype type, const void *data, int64_t count)
{
    ortc_dim *dims = ortc_arena_array(&g->arena, 1, sizeof *dims);
    dims[0] = count;
    const ortc_port t = {.size = sizeof t, .rank = 1, .dtype = type, .dims = dims, .data = data};
    cr_assert(
        ortc_node_set_attr(n, name, &(ortc_attr){.kind = ORTC_ATTR_TENSOR, .count = 1, .u.tensors = &t}));
}

/* The lists of TreeEnsembleRegressor and TreeEnsembleClassifier. */
typedef struct lists {
    int64_t tree[MOST], id[MOST], feature[MOST], yes[MOST], no[MOST], missing[MOST];
    double value[MOST];
    const char *mode[MOST];
    int64_t n;
    int64_t leaf_tree[MOST], leaf_node[MOST], leaf_id[MOST];
    double weight[MOST];
    int64_t n_leaves;
} lists;

/* A tree whose branches end at random. */
static int64_t grow(lists *l, int64_t tree, int64_t *next, int depth, int exact, int64_t outs)
{
    static const char *const modes[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                        "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
    const int64_t at = l->n++, id = (*next)++;
    cr_assert_lt(at, MOST - 1);
    l->tree[at] = tree, l->id[at] = id, l->yes[at] = l->no[at] = 0;
    l->feature[at] = pick(FEATURES), l->missing[at] = pick(2), l->value[at] = threshold(exact);
    l->mode[at] = modes[pick(6)];
    if (depth == 0 || pick(6) == 0) {
        const uint32_t weights = pick(8) ? 1 : pick(3);
        l->mode[at] = "LEAF";
        for (uint32_t k = 0; k < weights; k++) {
            l->leaf_tree[l->n_leaves] = tree, l->leaf_node[l->n_leaves] = id;
            l->leaf_id[l->n_leaves] = pick((uint32_t)outs);
            l->weight[l->n_leaves++] = (double)pick(1000) / 64 - 7;
        }
        return id;
    }
    l->yes[at] = grow(l, tree, next, depth - 1, exact, outs);
    l->no[at] = grow(l, tree, next, depth - 1, exact, outs);
    return id;
}

static void put_lists(ortc_node *n, lists *l, int trees, int exact, int classes)
{
    static float value[MOST], weight[MOST];
    const char *of = classes ? "class" : "target";
    char name[4][32];
    static const char *const ends[] = {"treeids", "nodeids", "ids", "weights"};
    l->n = l->n_leaves = 0;
    for (int t = 0; t < trees; t++) {
        int64_t next = 0;
        grow(l, t, &next, (int)pick(7), exact, classes ? 4 : OUTS);
    }
    for (int i = 0; i < 4; i++) snprintf(name[i], sizeof name[i], "%s_%s", of, ends[i]);
    const size_t count = (size_t)l->n, leaves = (size_t)l->n_leaves;
    set_ints(n, "nodes_treeids", l->tree, count), set_ints(n, "nodes_nodeids", l->id, count);
    set_ints(n, "nodes_featureids", l->feature, count), set_ints(n, "nodes_truenodeids", l->yes, count);
    set_ints(n, "nodes_falsenodeids", l->no, count);
    set_ints(n, "nodes_missing_value_tracks_true", l->missing, count);
    cr_assert(
        ortc_node_set_attr(n, "nodes_modes",
                           &(ortc_attr){.kind = ORTC_ATTR_STRINGS, .count = count, .u.strings = l->mode}));
    set_ints(n, name[0], l->leaf_tree, leaves), set_ints(n, name[1], l->leaf_node, leaves);
    set_ints(n, name[2], l->leaf_id, leaves);
    for (size_t i = 0; i < leaves; i++) weight[i] = (float)l->weight[i];
    cr_assert(
        ortc_node_set_attr(n, name[3],
                           &(ortc_attr){.kind = ORTC_ATTR_FLOATS, .count = leaves, .u.floats = weight}));
    if (!exact) {
        set_tensor(n, "nodes_values_as_tensor", ORTC_F64, l->value, l->n);
        return;
    }
    for (size_t i = 0; i < count; i++) value[i] = (float)l->value[i];
    cr_assert(ortc_node_set_attr(n, "nodes_values",
                                 &(ortc_attr){.kind = ORTC_ATTR_FLOATS, .count = count, .u.floats = value}));
}

/* ---- Running ------------------------------------------------------------------------------------------- */

/* Outputs one behind the other: bytes of them, 0 where it fails so. */
static size_t run(const char *providers, uint32_t threads, ortc_dtype type, int64_t n, const double *x,
                  char *y, ortc_status expected)
{
    static char values[ROWS * FEATURES * sizeof(double)];
    const int64_t dims[2] = {n, FEATURES};
    ortc_graph *copy;
    ortc_session *s;
    size_t bytes = 0;
    cr_assert_eq(ortc_graph_clone(g, &copy, &e), ORTC_OK, "%s", e.text);
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    o.providers = providers, o.threads = threads;
    cr_assert_eq(ortc_session_from_graph(&store, copy, &o, &s, &e), ORTC_OK, "%s", e.text);
    for (int64_t i = 0; i < n * FEATURES; i++)
        if (type == ORTC_F32)
            ((float *)(void *)values)[i] = (float)x[i];
        else if (type == ORTC_F64)
            ((double *)(void *)values)[i] = x[i];
        else
            ((int32_t *)(void *)values)[i] = isfinite(x[i]) && fabs(x[i]) < 100 ? (int32_t)x[i] : 7;
    ortc_in in = {"x", ortc_wrap(values, type, 2, dims)};
    ortc_out out[2] = {{"y0", NULL, 0, 0}, {"y1", NULL, 0, 0}};
    ortc_run_args a = ORTC_RUN_ARGS_INIT;
    a.in = &in, a.n_in = 1, a.out = out, a.n_out = g->n_outputs;
    cr_assert_eq(ortc_run(s, &a, &e), expected, "%s", e.text);
    for (uint32_t i = 0; i < g->n_outputs && !expected; i++) {
        const size_t some = ortc_value_bytes(out[i].value);
        memcpy(y + bytes, ortc_value_data(out[i].value), some);
        bytes += some;
        ortc_value_release(out[i].value);
    }
    ortc_value_release(in.value);
    ortc_session_release(s);
    return bytes;
}

static void compare(ortc_dtype type, ortc_status expected)
{
    static const int64_t counts[] = {1, 3, 15, 16, 17, 64, ROWS};
    static double x[ROWS * FEATURES];
    static char want[ROWS * 64], have[ROWS * 64];
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
    for (int i = 0; i < ROWS * FEATURES; i++) x[i] = feature();
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        const size_t bytes = run("ref", 1, type, counts[k], x, want, expected);
        for (uint32_t threads = 1; threads <= 4; threads *= 4) {
            cr_assert_eq(run("cpu", threads, type, counts[k], x, have, expected), bytes);
            cr_expect(!memcmp(want, have, bytes), "other bits: %lld rows, %u threads, type %d",
                      (long long)counts[k], threads, (int)type);
        }
    }
}

/* ---- Forests ------------------------------------------------------------------------------------------- */

Test(trees, regressors)
{
    static const char *const aggregates[] = {"SUM", "AVERAGE", "MIN", "MAX"};
    static const ortc_dtype types[] = {ORTC_F32, ORTC_F64, ORTC_I32};
    lists *l = malloc(sizeof *l);
    for (uint32_t i = 0; i < 24; i++) {
        if (i) teardown(), setup();
        seed = 7919 * i;
        ortc_node *n = ensemble("TreeEnsembleRegressor", 1, types[i % 3]);
        put_lists(n, l, i < 3 ? 1 : 1 + (int)pick(70), i & 1, 0);
        set_int(n, "n_targets", OUTS), set_text(n, "aggregate_function", aggregates[i / 3 % 4]);
        compare(types[i % 3], ORTC_OK);
    }
    free(l);
}

Test(trees, classifiers)
{
    static const int64_t labels[4] = {5, 6, 7, 8};
    lists *l = malloc(sizeof *l);
    for (uint32_t i = 0; i < 6; i++) {
        if (i) teardown(), setup();
        seed = 104729 * (i + 1);
        ortc_node *n = ensemble("TreeEnsembleClassifier", 2, ORTC_F32);
        put_lists(n, l, 20, i & 1, 1);
        set_ints(n, "classlabels_int64s", labels, 4);
        set_text(n, "post_transform", i & 2 ? "SOFTMAX" : "LOGISTIC");
        compare(ORTC_F32, ORTC_OK);
    }
    free(l);
}

/* Trees of TreeEnsemble, with members, which share branches; circle: the last node leads to the first. */
static void share(ortc_dtype type, int circle)
{
    enum { NODES = 40, LEAVES = 12 };
    static float split32[NODES], weight32[LEAVES], member32[MOST];
    static double split64[NODES], weight64[LEAVES], member64[MOST];
    static uint8_t modes[NODES];
    int64_t feature_at[NODES], yes[NODES], no[NODES], yes_leaf[NODES], no_leaf[NODES], missing[NODES],
        target[LEAVES], members = 0;
    const int64_t roots[4] = {0, 1, 2, 1};
    ortc_node *n = ensemble("TreeEnsemble", 1, type);
    for (uint32_t i = 0; i < NODES; i++) {
        const uint32_t behind = NODES - 1 - i;
        feature_at[i] = pick(FEATURES), missing[i] = pick(2), modes[i] = (uint8_t)pick(7);
        split64[i] = threshold(type != ORTC_F64), split32[i] = (float)split64[i];
        yes_leaf[i] = behind == 0 || pick(5) == 0, no_leaf[i] = behind == 0 || pick(5) == 0;
        yes[i] = yes_leaf[i] ? pick(LEAVES) : i + 1 + pick(behind < 6 ? behind : 6);
        no[i] = no_leaf[i] ? pick(LEAVES) : i + 1 + pick(behind < 6 ? behind : 6);
        for (uint32_t k = modes[i] == 6 ? pick(5) : 0; k > 0; k--) member64[members++] = number();
        if (modes[i] == 6) member64[members++] = (double)NAN;
    }
    if (circle) { /* whatever is asked there */
        yes_leaf[0] = no_leaf[0] = yes_leaf[1] = no_leaf[1] = 0;
        yes[0] = no[0] = 1, yes[1] = no[1] = 0;
    }
    for (int64_t i = 0; i < members; i++) member32[i] = (float)member64[i];
    for (uint32_t i = 0; i < LEAVES; i++)
        target[i] = pick(OUTS), weight64[i] = (double)pick(1000) / 64 - 7, weight32[i] = (float)weight64[i];
    const int wide = type == ORTC_F64;
    set_ints(n, "tree_roots", roots, 4), set_int(n, "n_targets", OUTS);
    set_ints(n, "nodes_featureids", feature_at, NODES);
    set_ints(n, "nodes_missing_value_tracks_true", missing, NODES);
    set_ints(n, "nodes_truenodeids", yes, NODES), set_ints(n, "nodes_falsenodeids", no, NODES);
    set_ints(n, "nodes_trueleafs", yes_leaf, NODES), set_ints(n, "nodes_falseleafs", no_leaf, NODES);
    set_ints(n, "leaf_targetids", target, LEAVES);
    set_tensor(n, "nodes_modes", ORTC_U8, modes, NODES);
    set_tensor(n, "nodes_splits", type, wide ? (void *)split64 : split32, NODES);
    set_tensor(n, "leaf_weights", type, wide ? (void *)weight64 : weight32, LEAVES);
    if (members) set_tensor(n, "membership_values", type, wide ? (void *)member64 : member32, members);
    compare(type, circle ? ORTC_INVALID_MODEL : ORTC_OK);
}

Test(trees, that_share_branches_and_ask_for_members)
{
    for (uint32_t i = 0; i < 12; i++) {
        if (i) teardown(), setup();
        seed = 15485863 * (i + 1);
        share(i % 2 ? ORTC_F64 : ORTC_F32, 0);
    }
}

Test(trees, in_circles)
{
    seed = 3;
    share(ORTC_F32, 1);
}
