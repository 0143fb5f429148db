/* kernels/ml/trees.c: what tree ensembles are (trees.h), read from the lists of the standard, and their
 * kernels on ref: rows walk every tree from its root; a walk that takes more steps than there are nodes is
 * going in circles, and is an error.
 */
#include "kernels/ml/trees.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void ml_forest_release(void *state)
{
    ml_forest *f = state;
    free(f->nodes);
    free(f->weights);
    free(f->members);
    free(f->roots);
    free(f);
}

/* ---- Reading ------------------------------------------------------------------------------------------- */

#define BAD(...) ortc_prep_fail(prep, ORTC_INVALID_MODEL, __VA_ARGS__)

typedef struct node_key {
    int64_t tree, node, at;
} node_key;

static int compare_keys(const void *a, const void *b)
{
    const node_key *x = a, *y = b;
    return x->tree != y->tree ? (x->tree > y->tree) - (x->tree < y->tree)
                              : (x->node > y->node) - (x->node < y->node);
}

/* The index of a node of a tree; -1: there is none. */
static int64_t find_node(const node_key *keys, int64_t n, int64_t tree, int64_t node)
{
    const node_key wanted = {tree, node, 0},
                   *found = bsearch(&wanted, keys, (size_t)n, sizeof *keys, compare_keys);
    return found ? found->at : -1;
}

static bool allocate(ml_forest *f, int64_t n_nodes, int64_t n_weights, int64_t n_members)
{
    f->n_nodes = n_nodes;
    f->n_weights = n_weights;
    f->n_members = n_members;
    f->nodes = calloc((size_t)n_nodes + 1, sizeof *f->nodes);
    f->weights = calloc((size_t)n_weights + 1, sizeof *f->weights);
    f->members = calloc((size_t)n_members + 1, sizeof *f->members);
    f->roots = calloc((size_t)n_nodes + 1, sizeof *f->roots);
    return f->nodes && f->weights && f->members && f->roots;
}

static void find_features(ml_forest *f)
{
    for (int64_t i = 0; i < f->n_nodes; i++)
        if (f->nodes[i].mode != ML_LEAF && f->nodes[i].feature > f->most_feature)
            f->most_feature = f->nodes[i].feature;
}

/* The node lists that the older two operators share. */
typedef struct node_lists {
    ml_list trees, ids, features, modes, values, yes, no, missing;
} node_lists;

static ortc_status read_node(ml_forest *f, const node_lists *l, const node_key *keys, int64_t i,
                             ortc_prep *prep)
{
    static const char *const modes[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE", "BRANCH_GT",
                                        "BRANCH_EQ",  "BRANCH_NEQ", "",           "LEAF"};
    ml_tree_node *n = &f->nodes[i];
    const ortc_span mode = ml_list_text(&l->modes, i);
    const int64_t tree = ml_list_integer(&l->trees, i);
    while (n->mode <= ML_LEAF && !ortc_span_equal(mode, ortc_span_of(modes[n->mode]))) n->mode++;
    if (n->mode > ML_LEAF || n->mode == ML_MEMBER)
        return BAD("nodes_modes[%lld] is '%.*s'", (long long)i, (int)(mode.length < 40 ? mode.length : 40),
                   mode.text);
    if (n->mode == ML_LEAF) return ORTC_OK;
    n->feature = ml_list_integer(&l->features, i);
    n->value = ml_list_number(&l->values, i);
    n->missing_is_true = i < l->missing.n && ml_list_integer(&l->missing, i) != 0;
    n->yes = find_node(keys, f->n_nodes, tree, ml_list_integer(&l->yes, i));
    n->no = find_node(keys, f->n_nodes, tree, ml_list_integer(&l->no, i));
    if (n->yes < 0 || n->no < 0 || n->feature < 0)
        return BAD("node %lld of tree %lld: a child that is not there, or a negative feature",
                   (long long)ml_list_integer(&l->ids, i), (long long)tree);
    f->nodes[n->yes].is_child = f->nodes[n->no].is_child = true;
    return ORTC_OK;
}

/* Weights in the order of their leaves: counted, then placed. */
static ortc_status read_weights(ml_forest *f, const node_key *keys, const ml_list *trees,
                                const ml_list *nodes, const ml_list *ids, const ml_list *weights,
                                ortc_prep *prep)
{
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t i = 0; i < weights->n; i++) {
            const int64_t at = find_node(keys, f->n_nodes, ml_list_integer(trees, i),
                                         ml_list_integer(nodes, i));
            const int64_t id = ml_list_integer(ids, i);
            if (at < 0 || id < 0 || id >= f->n_out)
                return BAD("weight %lld is for a node that is not there, or for output %lld of %lld",
                           (long long)i, (long long)id, (long long)f->n_out);
            ml_tree_node *n = &f->nodes[at];
            if (pass) f->weights[n->weights + n->n] = (ml_leaf_weight){id, ml_list_number(weights, i)};
            n->n++;
        }
        for (int64_t i = 0, first = 0; !pass && i < f->n_nodes; i++) {
            f->nodes[i].weights = first;
            first += f->nodes[i].n;
            f->nodes[i].n = 0;
        }
    }
    return ORTC_OK;
}

static ortc_status read_nodes(ml_forest *f, const ortc_node *node, const char *const names[4],
                              ortc_prep *prep)
{
    const node_lists l = {ml_list_of(node, NULL, "nodes_treeids", NULL, NULL),
                          ml_list_of(node, NULL, "nodes_nodeids", NULL, NULL),
                          ml_list_of(node, NULL, "nodes_featureids", NULL, NULL),
                          ml_list_of(node, "nodes_modes", NULL, NULL, NULL),
                          ml_list_of(node, NULL, NULL, "nodes_values", "nodes_values_as_tensor"),
                          ml_list_of(node, NULL, "nodes_truenodeids", NULL, NULL),
                          ml_list_of(node, NULL, "nodes_falsenodeids", NULL, NULL),
                          ml_list_of(node, NULL, "nodes_missing_value_tracks_true", NULL, NULL)};
    char tensor[48];
    snprintf(tensor, sizeof tensor, "%s_as_tensor", names[3]);
    const ml_list trees = ml_list_of(node, NULL, names[0], NULL, NULL),
                  nodes = ml_list_of(node, NULL, names[1], NULL, NULL);
    const ml_list ids = ml_list_of(node, NULL, names[2], NULL, NULL),
                  weights = ml_list_of(node, NULL, NULL, names[3], tensor);
    const int64_t n = l.ids.n;
    if (!n || l.trees.n != n || l.features.n != n || l.modes.n != n || l.values.n != n || l.yes.n != n ||
        l.no.n != n)
        return BAD("the lists of nodes are empty or not of one length");
    if (trees.n != weights.n || nodes.n != weights.n || ids.n != weights.n)
        return BAD("the lists of weights are not of one length");
    node_key *keys = malloc((size_t)n * sizeof *keys);
    if (!keys || !allocate(f, n, weights.n, 0)) {
        free(keys);
        return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for %lld nodes", (long long)n);
    }
    for (int64_t i = 0; i < n; i++)
        keys[i] = (node_key){ml_list_integer(&l.trees, i), ml_list_integer(&l.ids, i), i};
    qsort(keys, (size_t)n, sizeof *keys, compare_keys);
    ortc_status s = ORTC_OK;
    for (int64_t i = 1; i < n && s == ORTC_OK; i++)
        if (!compare_keys(&keys[i - 1], &keys[i]))
            s = BAD("node %lld of tree %lld is there twice", (long long)keys[i].node,
                    (long long)keys[i].tree);
    for (int64_t i = 0; i < n && s == ORTC_OK; i++) s = read_node(f, &l, keys, i, prep);
    if (s == ORTC_OK) s = read_weights(f, keys, &trees, &nodes, &ids, &weights, prep);
    free(keys);
    for (int64_t i = 0; i < n && s == ORTC_OK; i++)
        if (!f->nodes[i].is_child) f->roots[f->n_roots++] = i;
    find_features(f);
    return s;
}

static int aggregate_of(const char *name)
{
    static const char *const names[] = {"AVERAGE", "SUM", "MIN", "MAX"};
    for (int i = 0; i < 4; i++)
        if (!strcmp(name, names[i])) return i;
    return -1;
}

/* Two labels, and weights for one class only: a score that is compared with a threshold. */
static void find_binary(ml_forest *f)
{
    f->only_class = f->labels.n == 2 && f->n_weights ? f->weights[0].id : -1;
    f->all_positive = true;
    for (int64_t i = 0; i < f->n_weights; i++) {
        f->all_positive &= f->weights[i].weight >= 0;
        if (f->weights[i].id != f->only_class) f->only_class = -1;
    }
}

ortc_status ml_forest_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    static const char *const of_classes[4] = {"class_treeids", "class_nodeids", "class_ids", "class_weights"};
    static const char *const of_targets[4] = {"target_treeids", "target_nodeids", "target_ids",
                                              "target_weights"};
    const bool classifier = !strcmp(ortc_node_op(n), "TreeEnsembleClassifier");
    ml_forest *f = calloc(1, sizeof *f);
    if (!f) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    f->labels = ml_list_of(n, "classlabels_strings", "classlabels_int64s", NULL, NULL);
    f->base = ml_list_of(n, NULL, NULL, "base_values", "base_values_as_tensor");
    f->n_out = classifier ? f->labels.n : ortc_node_int(n, "n_targets", 0);
    f->aggregate = classifier ? ML_SUM : aggregate_of(ortc_node_string(n, "aggregate_function", "SUM"));
    f->post = ml_post_of(n, prep);
    ortc_status s = f->post < 0 ? ORTC_INVALID_MODEL : ORTC_OK;
    if (s == ORTC_OK && (f->n_out < 1 || f->aggregate < 0))
        s = BAD("%s", f->aggregate < 0 ? "attribute aggregate_function is none of SUM, AVERAGE, MIN and MAX"
                      : classifier     ? "no class labels are given"
                                       : "attribute n_targets is below 1");
    if (s == ORTC_OK) s = read_nodes(f, n, classifier ? of_classes : of_targets, prep);
    if (s == ORTC_OK && f->base.n > 1 && f->base.n != f->n_out)
        s = BAD("%lld base values for %lld outputs", (long long)f->base.n, (long long)f->n_out);
    if (s != ORTC_OK) {
        ml_forest_release(f);
        return s;
    }
    find_binary(f);
    *out = f;
    return ORTC_OK;
}

/* ---- TreeEnsemble-5: leaves stand in lists of their own, behind the nodes in our array ----------------- */

static ortc_status read_ensemble(ml_forest *f, const ortc_node *node, ortc_prep *prep)
{
    const ml_list splits = ml_list_of(node, NULL, NULL, NULL, "nodes_splits"),
                  modes = ml_list_of(node, NULL, NULL, NULL, "nodes_modes");
    const ml_list features = ml_list_of(node, NULL, "nodes_featureids", NULL, NULL);
    const ml_list yes = ml_list_of(node, NULL, "nodes_truenodeids", NULL, NULL),
                  no = ml_list_of(node, NULL, "nodes_falsenodeids", NULL, NULL);
    const ml_list yes_leaf = ml_list_of(node, NULL, "nodes_trueleafs", NULL, NULL),
                  no_leaf = ml_list_of(node, NULL, "nodes_falseleafs", NULL, NULL);
    const ml_list missing = ml_list_of(node, NULL, "nodes_missing_value_tracks_true", NULL, NULL);
    const ml_list ids = ml_list_of(node, NULL, "leaf_targetids", NULL, NULL),
                  weights = ml_list_of(node, NULL, NULL, NULL, "leaf_weights");
    const ml_list members = ml_list_of(node, NULL, NULL, NULL, "membership_values"),
                  roots = ml_list_of(node, NULL, "tree_roots", NULL, NULL);
    const int64_t n = splits.n, leaves = weights.n;
    if (!n || modes.n != n || features.n != n || yes.n != n || no.n != n || yes_leaf.n != n ||
        no_leaf.n != n || ids.n != leaves || !roots.n)
        return BAD("the lists of nodes or leaves are empty or not of one length");
    if (roots.n > n + leaves || !allocate(f, n + leaves, leaves, members.n))
        return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for %lld nodes", (long long)n);
    for (int64_t i = 0; i < members.n; i++) f->members[i] = ml_list_number(&members, i);
    for (int64_t i = 0, member = 0; i < n; i++) {
        ml_tree_node *t = &f->nodes[i];
        t->mode = (int32_t)ml_list_integer(&modes, i);
        t->value = ml_list_number(&splits, i);
        t->feature = ml_list_integer(&features, i);
        t->missing_is_true = i < missing.n && ml_list_integer(&missing, i) != 0;
        const bool leaf_yes = ml_list_integer(&yes_leaf, i) != 0, leaf_no = ml_list_integer(&no_leaf, i) != 0;
        t->yes = ml_list_integer(&yes, i);
        t->no = ml_list_integer(&no, i);
        if (t->mode < ML_LEQ || t->mode > ML_MEMBER || t->feature < 0 || t->yes < 0 ||
            t->yes >= (leaf_yes ? leaves : n) || t->no < 0 || t->no >= (leaf_no ? leaves : n))
            return BAD("node %lld: a mode that is none, a negative feature, or a child that is not there",
                       (long long)i);
        t->yes += leaf_yes ? n : 0;
        t->no += leaf_no ? n : 0;
        if (t->mode != ML_MEMBER) continue;
        t->weights = member;
        while (member < members.n && f->members[member] == f->members[member]) /* up to a NaN */
            member++;
        t->n = member - t->weights;
        if (member++ >= members.n)
            return BAD("node %lld: membership_values ends before its NaN", (long long)i);
    }
    for (int64_t i = 0; i < leaves; i++) {
        f->weights[i] = (ml_leaf_weight){ml_list_integer(&ids, i), ml_list_number(&weights, i)};
        f->nodes[n + i] = (ml_tree_node){.mode = ML_LEAF, .weights = i, .n = 1};
        if (f->weights[i].id < 0 || f->weights[i].id >= f->n_out)
            return BAD("leaf %lld is for target %lld of %lld", (long long)i, (long long)f->weights[i].id,
                       (long long)f->n_out);
    }
    for (int64_t i = 0; i < roots.n; i++) {
        const int64_t root = ml_list_integer(&roots, i);
        if (root < 0 || root >= n)
            return BAD("tree_roots[%lld] is %lld: there are %lld nodes", (long long)i, (long long)root,
                       (long long)n);
        f->roots[f->n_roots++] = root;
    }
    find_features(f);
    return ORTC_OK;
}

ortc_status ml_ensemble_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    ml_forest *f = calloc(1, sizeof *f);
    if (!f) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    const int64_t post = ortc_node_int(n, "post_transform", 0),
                  aggregate = ortc_node_int(n, "aggregate_function", 1);
    f->n_out = ortc_node_int(n, "n_targets", 0);
    f->only_class = -1;
    ortc_status s = f->n_out < 1 || post < 0 || post > 4 || aggregate < 0 || aggregate > 3
                        ? BAD("n_targets %lld, post_transform %lld, aggregate_function %lld: expected at "
                              "least 1, 0 to 4, 0 to 3",
                              (long long)f->n_out, (long long)post, (long long)aggregate)
                        : ORTC_OK;
    f->post = (int)post;
    f->aggregate = (int)aggregate;
    if (s == ORTC_OK) s = read_ensemble(f, n, prep);
    if (s != ORTC_OK) {
        ml_forest_release(f);
        return s;
    }
    *out = f;
    return ORTC_OK;
}

/* ---- Running ------------------------------------------------------------------------------------------- */

static bool goes_yes(const ml_forest *f, const ml_tree_node *n, double x)
{
    if (x != x) return n->missing_is_true || n->mode == ML_NEQ;
    switch (n->mode) {
    case ML_LEQ: return x <= n->value;
    case ML_LT: return x < n->value;
    case ML_GTE: return x >= n->value;
    case ML_GT: return x > n->value;
    case ML_EQ: return x == n->value;
    case ML_NEQ: return x != n->value;
    default:
        for (int64_t i = 0; i < n->n; i++)
            if (f->members[n->weights + i] == x) return true;
        return false;
    }
}

void ml_scores_clear(const ml_forest *f, const ml_scores *r)
{
    for (int64_t k = 0; k < f->n_out; k++) {
        r->scores[k] = 0;
        r->seen[k] = false;
    }
}

void ml_scores_add(const ml_forest *f, int64_t first, int64_t n, const ml_scores *r)
{
    for (const ml_leaf_weight *w = f->weights + first; n > 0; n--, w++) {
        double *score = &r->scores[w->id];
        switch (r->seen[w->id] ? f->aggregate : ML_SUM) {
        case ML_MIN: *score = w->weight < *score ? w->weight : *score; break;
        case ML_MAX: *score = w->weight > *score ? w->weight : *score; break;
        default: *score += w->weight; break;
        }
        r->seen[w->id] = true;
    }
}

/* All trees' leaves for a row. */
static ortc_status ask_trees(const ml_forest *f, ortc_call *c, int64_t at, int64_t columns,
                             const ml_scores *r)
{
    const ortc_view *x = &c->in[0];
    for (int64_t t = 0; t < f->n_roots; t++) {
        const ml_tree_node *n = &f->nodes[f->roots[t]];
        for (int64_t steps = 0; n->mode != ML_LEAF; steps++) {
            if (steps > f->n_nodes)
                return ortc_call_fail(c, ORTC_INVALID_MODEL, "tree %lld goes in circles", (long long)t);
            const double v = ortc_load_f64(x->data, x->dtype, at * columns + n->feature);
            n = &f->nodes[goes_yes(f, n, v) ? n->yes : n->no];
        }
        ml_scores_add(f, n->weights, n->n, r);
    }
    return ORTC_OK;
}

/* The winner's label, and the scores of all classes. */
static void put_class(const ml_forest *f, ortc_call *c, int64_t at, const ml_scores *r, ortc_span *spans)
{
    int64_t best = 0;
    if (f->only_class >= 0) {
        double s = r->scores[f->only_class];
        if (f->base.n) s += ml_list_number(&f->base, f->base.n - 1);
        best = s > (f->all_positive ? 0.5 : 0);
        r->scores[1] = s;
        if (f->only_class == 0)
            ml_post_binary(f->post, s, f->all_positive, r->scores);
        else {
            r->scores[0] = 0;
            ml_post(f->post, r->scores, 2);
        }
    } else {
        for (int64_t k = 1; k < f->n_out; k++) best = r->scores[k] > r->scores[best] ? k : best;
        ml_post(f->post, r->scores, f->n_out);
    }
    if (c->out[0].dtype) ml_store_label(&f->labels, best, &c->out[0], spans, at);
}

void ml_scores_put(const ml_forest *f, ortc_call *c, int64_t at, const ml_scores *r, ortc_span *spans,
                   bool classes)
{
    const uint32_t port = classes ? 1 : 0;
    for (int64_t k = 0; k < f->n_out; k++) {
        r->scores[k] /= f->aggregate == ML_AVERAGE ? (double)f->n_roots : 1;
        if (f->only_class < 0)
            r->scores[k] += f->base.n ? ml_list_number(&f->base, f->base.n == 1 ? 0 : k) : 0;
    }
    if (classes)
        put_class(f, c, at, r, spans);
    else
        ml_post(f->post, r->scores, f->n_out);
    for (int64_t k = 0; port < c->n_out && c->out[port].dtype && k < f->n_out; k++)
        ortc_store_f64(c->out[port].data, c->out[port].dtype, at * f->n_out + k, r->scores[k]);
}

ortc_status ml_forest_begin(const ml_forest *f, ortc_call *c, int64_t *rows, int64_t *columns,
                            ortc_span **spans)
{
    ml_rows(&c->in[0], rows, columns);
    if (f->most_feature >= *columns)
        return ortc_call_fail(c, ORTC_SHAPE_MISMATCH, "the trees ask for feature %lld, the input has %lld",
                              (long long)f->most_feature, (long long)*columns);
    *spans = calloc((size_t)*rows + 1, sizeof **spans);
    return *spans ? ORTC_OK
                  : ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for %lld rows", (long long)*rows);
}

ortc_status ml_forest_end(ortc_call *c, ortc_status status, ortc_span *spans, bool classes)
{
    if (!status && classes && c->out[0].dtype == ORTC_STRING)
        status = ortc_give_spans(c, 0, c->out[0].rank, c->out[0].dims, spans);
    free(spans);
    return status;
}

ortc_status ml_forest_run(const ml_forest *f, ortc_call *c, bool classes)
{
    int64_t rows, columns;
    ortc_span *spans;
    ORTC_TRY(ml_forest_begin(f, c, &rows, &columns, &spans));
    const ml_scores r = {malloc(((size_t)f->n_out + 2) * sizeof(double)), malloc((size_t)f->n_out + 2)};
    ortc_status s = r.scores && r.seen ? ORTC_OK
                                       : ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for %lld scores",
                                                        (long long)f->n_out);
    for (int64_t i = 0; i < rows && !s; i++) {
        ml_scores_clear(f, &r);
        s = ortc_poll(c);
        if (!s) s = ask_trees(f, c, i, columns, &r);
        if (!s) ml_scores_put(f, c, i, &r, spans, classes);
    }
    free(r.scores);
    free(r.seen);
    return ml_forest_end(c, s, spans, classes);
}

static ortc_status classifier_run(const void *state, const void *pstate, ortc_call *c)
{
    return ml_forest_run(state, c, true);
}
static ortc_status targets_run(const void *state, const void *pstate, ortc_call *c)
{
    return ml_forest_run(state, c, false);
}

const ortc_kernel ortc_ref_tree_classifier = {.size = ORTC_SIZED(ortc_kernel),
                                              .name = "tree_ensemble_classifier.ref",
                                              .prepare = ml_forest_prepare,
                                              .run = classifier_run,
                                              .release = ml_forest_release};
const ortc_kernel ortc_ref_tree_regressor = {.size = ORTC_SIZED(ortc_kernel),
                                             .name = "tree_ensemble_regressor.ref",
                                             .prepare = ml_forest_prepare,
                                             .run = targets_run,
                                             .release = ml_forest_release};
const ortc_kernel ortc_ref_tree_ensemble = {.size = ORTC_SIZED(ortc_kernel),
                                            .name = "tree_ensemble.ref",
                                            .prepare = ml_ensemble_prepare,
                                            .run = targets_run,
                                            .release = ml_forest_release};
