/* kernels/ml/cpu_trees.c: tree ensembles on the cpu provider.
 *
 * Nodes become records that all ask whether a feature is at most a number, and whose two children lie
 * beside each other: what else can be asked becomes such questions. Walks go together, without a branch on
 * answers (walks.h): a block of rows through all trees one by one; of few rows each through as many trees.
 * Scores are added in the order of trees, as on ref, in doubles. Trees that go in circles are left to ref,
 * which says so.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/common/counts.h"
#include "kernels/common/vector/convert.h"
#include "kernels/ml/trees.h"
#include "kernels/ml/walks.h"

ORTC_VEC_TABLE(ml_walks)

enum { WALKS = 64, FEW = 16, SCORES = 8192 /* of a block, about */ };

typedef struct leaf {
    int64_t first, n; /* weights */
    int64_t id;       /* where there is one: its output */
    double weight;
} leaf;

typedef struct trees {
    ml_forest *f;
    /* Records: the roots, then pairs. NULL: ref walks. Of leaves `value` has the number. */
    float *value;
    double *wide; /* for features that f32 does not hold */
    int32_t *feature, *next;
    int64_t *steps; /* of a tree at most */
    leaf *leaves;
    bool one_weight; /* a leaf */
} trees;

static void release(void *state)
{
    trees *t = state;
    ml_forest_release(t->f);
    free(t->value), free(t->wide), free(t->feature), free(t->next), free(t->steps), free(t->leaves);
    free(t);
}

/* ---- Records ------------------------------------------------------------------------------------------- */

static int is_inner(const ml_tree_node *n) { return n->mode != ML_LEAF; }

/* Questions that a node is: of equality two, of a member two for each. */
static int64_t questions(const ml_tree_node *n)
{
    return n->mode == ML_LEAF                      ? 0
           : n->mode == ML_EQ || n->mode == ML_NEQ ? 2
           : n->mode == ML_MEMBER                  ? 2 * n->n
                                                   : 1;
}

/* Nodes in the order in which roots reach them, each once, and steps from each to leaves; false: in
 * circles. */
static bool order_nodes(const ml_forest *f, int64_t *order, int64_t *count, int64_t *steps, uint8_t *state,
                        int64_t *stack)
{
    *count = 0;
    for (int64_t t = 0; t < f->n_roots; t++) { /* circles: a node that is asked on its own way */
        int64_t depth = 0;
        stack[depth++] = f->roots[t];
        while (depth > 0) {
            const int64_t i = stack[depth - 1];
            const ml_tree_node *n = &f->nodes[i];
            if (!is_inner(n)) state[i] = 3, steps[i] = 0;
            if (state[i] == 3 || ++state[i] == 3) { /* both children are behind it */
                if (is_inner(n)) steps[i] = max64(questions(n), 1) + max64(steps[n->yes], steps[n->no]);
                depth--;
                continue;
            }
            const int64_t next = state[i] == 1 ? n->yes : n->no;
            if (state[next] == 1 || state[next] == 2) return false;
            if (state[next] == 0) stack[depth++] = next;
        }
    }
    memset(state, 0, (size_t)f->n_nodes);
    for (int64_t t = 0, done = 0; t < f->n_roots; t++) {
        if (is_inner(&f->nodes[f->roots[t]]) && !state[f->roots[t]]++) order[(*count)++] = f->roots[t];
        for (; done < *count; done++) {
            const int64_t next[2] = {f->nodes[order[done]].yes, f->nodes[order[done]].no};
            for (int k = 0; k < 2; k++)
                if (is_inner(&f->nodes[next[k]]) && !state[next[k]]++) order[(*count)++] = next[k];
        }
    }
    return true;
}

/* The largest number of the type that is at most v, or below it; NaN: there is none. */
static double least(double v, bool below, bool wide)
{
    if (v != v || (below && v == -(double)INFINITY)) return (double)NAN;
    if (wide) return below ? nextafter(v, -(double)INFINITY) : v;
    const float f = (float)v;
    const bool beyond = below ? (double)f >= v : (double)f > v;
    return beyond ? (double)nextafterf(f, -INFINITY) : (double)f;
}

typedef struct packing {
    trees *t;
    int64_t *low;  /* of each node: where its children are */
    int64_t *leaf; /* its number */
} packing;

/* A question; f32 may not hold the number. otherwise: what is asked is the opposite. */
static void ask(const packing *p, int64_t at, const ml_tree_node *n, double v, bool below, bool otherwise,
                int64_t low, bool missing_is_low)
{
    trees *t = p->t;
    const bool never = otherwise && v != v; /* is anything more than NaN */
    t->value[at] = never ? INFINITY : (float)least(v, below, false);
    t->wide[at] = never ? (double)INFINITY : least(v, below, true);
    t->feature[at] = (int32_t)n->feature;
    t->next[at] = (int32_t)(low << ML_NEXT | ML_ASKS | (missing_is_low ? ML_MISSING_IS_LOW : 0));
}
static void put_leaf(const packing *p, int64_t at, int64_t n)
{
    const int32_t number = (int32_t)n;
    memcpy(&p->t->value[at], &number, sizeof number);
    p->t->wide[at] = 0;
    p->t->feature[at] = 0;
    p->t->next[at] = (int32_t)(at << ML_NEXT);
}

/* Record `at` becomes node i. */
static void place(const packing *p, int64_t at, int64_t i)
{
    const ml_tree_node *n = &p->t->f->nodes[i];
    const bool missing = n->missing_is_true;
    const int64_t low = p->low[i];
    switch (n->mode) {
    case ML_LEAF: put_leaf(p, at, p->leaf[i]); break;
    case ML_LEQ:
    case ML_LT: ask(p, at, n, n->value, n->mode == ML_LT, false, low, missing); break;
    case ML_GT:
    case ML_GTE: ask(p, at, n, n->value, n->mode == ML_GTE, true, low, !missing); break;
    case ML_EQ: ask(p, at, n, n->value, false, false, low, missing); break;
    case ML_NEQ: ask(p, at, n, n->value, false, false, low, false); break;
    default: {
        const bool none = n->n == 0;
        ask(p, at, n, none ? (double)NAN : p->t->f->members[n->weights], false, false, low, missing);
    }
    }
}

/* x == v, at `low`: what is at most v asks whether it is below it; both ways to what is said. */
static void place_equal(const packing *p, const ml_tree_node *n, double v, int64_t low, int64_t yes)
{
    ask(p, low, n, v, true, false, low + 2, false);
    place(p, low + 3, yes);
}

/* The children of node i. */
static void place_children(const packing *p, int64_t i)
{
    const ml_tree_node *n = &p->t->f->nodes[i];
    const int64_t low = p->low[i];
    const bool swapped = n->mode == ML_GT || n->mode == ML_GTE;
    if (n->mode == ML_EQ || n->mode == ML_NEQ) {
        const int64_t yes = n->mode == ML_EQ ? n->yes : n->no, no = n->mode == ML_EQ ? n->no : n->yes;
        place_equal(p, n, n->value, low, yes);
        place(p, low + 1, no), place(p, low + 2, no);
    } else if (n->mode == ML_MEMBER) {
        for (int64_t k = 0, at = low; k < n->n; k++, at += 4) {
            const double v = p->t->f->members[n->weights + k];
            place_equal(p, n, v, at, n->yes);
            for (int other = 1; other <= 2; other++) /* beside it: the next one, or no */
                if (k + 1 < n->n)
                    ask(p, at + other, n, p->t->f->members[n->weights + k + 1], false, false, at + 4, false);
                else
                    place(p, at + other, n->no);
        }
        if (n->n == 0) place(p, low, n->yes), place(p, low + 1, n->no);
    } else {
        place(p, low, swapped ? n->no : n->yes);
        place(p, low + 1, swapped ? n->yes : n->no);
    }
}

/* Makes the records, or leaves them NULL. */
static bool pack(trees *t, const packing *p, int64_t *order, int64_t *steps, uint8_t *state, int64_t *stack)
{
    const ml_forest *f = t->f;
    int64_t count, at = f->n_roots, leaves = 0;
    if (f->n_nodes + f->n_members > 1 << 26 || f->most_feature > INT32_MAX) return true;
    if (!order_nodes(f, order, &count, steps, state, stack)) return true;
    for (int64_t k = 0; k < count; k++) {
        const int64_t i = order[k];
        p->low[i] = at;
        at += 2 * max64(questions(&f->nodes[i]), 1);
    }
    t->value = malloc((size_t)at * sizeof *t->value);
    t->wide = malloc((size_t)at * sizeof *t->wide);
    t->feature = malloc((size_t)at * sizeof *t->feature);
    t->next = malloc((size_t)at * sizeof *t->next);
    t->steps = malloc(((size_t)f->n_roots + 1) * sizeof *t->steps);
    t->leaves = malloc((size_t)f->n_nodes * sizeof *t->leaves);
    if (!t->value || !t->wide || !t->feature || !t->next || !t->steps || !t->leaves) return false;
    t->one_weight = f->aggregate == ML_SUM || f->aggregate == ML_AVERAGE;
    for (int64_t i = 0; i < f->n_nodes; i++) {
        const ml_tree_node *n = &f->nodes[i];
        if (is_inner(n)) continue;
        t->one_weight &= n->n == 1;
        t->leaves[p->leaf[i] = leaves++] = (leaf){n->weights, n->n, n->n ? f->weights[n->weights].id : 0,
                                                  n->n ? f->weights[n->weights].weight : 0};
    }
    for (int64_t r = 0; r < f->n_roots; r++) place(p, r, f->roots[r]), t->steps[r] = steps[f->roots[r]];
    for (int64_t k = 0; k < count; k++) place_children(p, order[k]);
    return true;
}

static ortc_status prepare(ortc_status (*read)(const ortc_node *, ortc_prep *, void **), const ortc_node *n,
                           ortc_prep *prep, void **out)
{
    trees *t = calloc(1, sizeof *t);
    void *f = NULL;
    if (!t) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for trees");
    const ortc_status status = read(n, prep, &f);
    if (status) {
        free(t);
        return status;
    }
    t->f = f;
    const size_t nodes = (size_t)t->f->n_nodes;
    int64_t *numbers = malloc(nodes * 5 * sizeof *numbers);
    uint8_t *state = calloc(nodes, 1);
    const packing p = {t, numbers, numbers + nodes};
    const bool good = numbers && state &&
                      pack(t, &p, numbers + 2 * nodes, numbers + 3 * nodes, state, numbers + 4 * nodes);
    free(numbers), free(state);
    if (!good) {
        release(t);
        return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for %zu nodes", nodes);
    }
    *out = t;
    return ORTC_OK;
}

/* ---- Walks --------------------------------------------------------------------------------------------- */

typedef struct job {
    const trees *t;
    const ml_walks *body;
    ortc_call *call;
    int64_t rows, columns, block;
    int type; /* ORTC_FLOAT_*, or WIDE: other types, as f64 */
    bool classes;
    ortc_span *spans;
} job;
enum { WIDE = 3 };

/* The same of features that f32 does not hold, one after the other. */
static void walk_wide(const trees *t, size_t n, const double *rows, const int32_t *row, int32_t *at)
{
    for (size_t i = 0; i < n; i++) {
        int32_t here = at[i], next;
        while ((next = t->next[here]) & ML_ASKS) {
            const double v = rows[row[i] + t->feature[here]];
            const int low = v == v ? v <= t->wide[here] : next >> 1 & 1;
            here = (next >> ML_NEXT) + !low;
        }
        at[i] = here;
    }
}

/* Rows as numbers of the type, of n of them. */
static const void *read_rows(const job *j, int64_t first, int64_t n, void *space)
{
    const ortc_view *x = &j->call->in[0];
    const int64_t at = first * j->columns, count = n * j->columns;
    if (x->dtype == ORTC_F32) return (const float *)x->data + at;
    if (x->dtype == ORTC_F64) return (const double *)x->data + at;
    if (j->type != WIDE)
        ortc_convert_get()->widen[j->type]((size_t)count, (const uint16_t *)x->data + at, space);
    else
        for (int64_t i = 0; i < count; i++) ((double *)space)[i] = ortc_load_f64(x->data, x->dtype, at + i);
    return space;
}

static void walk_all(const job *j, size_t n, int64_t steps, const void *rows, const int32_t *row, int32_t *at)
{
    const ml_records r = {j->t->value, j->t->feature, j->t->next};
    if (j->type == WIDE)
        walk_wide(j->t, n, rows, row, at);
    else
        j->body->walk(&r, n, steps, rows, row, at);
}

static void add(const job *j, int32_t at, const ml_scores *r)
{
    int32_t number;
    memcpy(&number, &j->t->value[at], sizeof number);
    const leaf *l = &j->t->leaves[number];
    if (j->t->one_weight)
        r->scores[l->id] += l->weight;
    else
        ml_scores_add(j->t->f, l->first, l->n, r);
}

static ml_scores scores_of(const job *j, void *scratch, int64_t row)
{
    const int64_t n = j->t->f->n_out + 2;
    double *scores = scratch;
    return (ml_scores){scores + row * n, (bool *)(scores + j->block * n) + row * n};
}

/* A block's rows, which are n: through a tree, or each through as many trees. */
static void ask_block(const job *j, const void *rows, int64_t n, void *scratch)
{
    const int64_t roots = j->t->f->n_roots, columns = j->columns;
    int32_t row[WALKS], at[WALKS];
    for (int64_t r = 0; r < n; r++) row[r] = (int32_t)(r * columns);
    for (int64_t t = 0; n >= FEW && t < roots; t++) {
        for (int64_t r = 0; r < n; r++) at[r] = (int32_t)t;
        walk_all(j, (size_t)n, j->t->steps[t], rows, row, at);
        for (int64_t r = 0; r < n; r++) {
            const ml_scores s = scores_of(j, scratch, r);
            add(j, at[r], &s);
        }
    }
    for (int64_t r = 0; n < FEW && r < n; r++) {
        const ml_scores s = scores_of(j, scratch, r);
        for (int64_t t = 0, some; t < roots; t += some) {
            int64_t steps = 0;
            some = min64(roots - t, WALKS);
            for (int64_t k = 0; k < some; k++) {
                row[k] = (int32_t)(r * columns), at[k] = (int32_t)(t + k);
                steps = max64(steps, j->t->steps[t + k]);
            }
            walk_all(j, (size_t)some, steps, rows, row, at);
            for (int64_t k = 0; k < some; k++) add(j, at[k], &s);
        }
    }
}

static size_t scores_bytes(const job *j)
{
    return ((size_t)(j->block * (j->t->f->n_out + 2)) * (sizeof(double) + sizeof(bool)) + 63) / 64 * 64;
}

static void chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const job *j = arg;
    void *space = (char *)scratch + scores_bytes(j);
    for (int64_t b = begin; b < end; b++) {
        const int64_t first = b * j->block, n = min64(j->block, j->rows - first);
        const void *rows = read_rows(j, first, n, space);
        for (int64_t r = 0; r < n; r++) {
            const ml_scores s = scores_of(j, scratch, r);
            ml_scores_clear(j->t->f, &s);
        }
        ask_block(j, rows, n, scratch);
        for (int64_t r = 0; r < n; r++) {
            const ml_scores s = scores_of(j, scratch, r);
            ml_scores_put(j->t->f, j->call, first + r, &s, j->spans, j->classes);
        }
    }
}

/* ---- Kernels ------------------------------------------------------------------------------------------- */

#define MOST_OUTPUTS (1 << 24)

/* Whether records are walked; extents of what has no elements, and attributes, may be any. */
static bool describe(const trees *t, const ortc_view *x, job *j)
{
    memset(j, 0, sizeof *j);
    j->t = t;
    j->type = x->dtype == ORTC_F32 || x->dtype == ORTC_F16 ? ortc_float_index(x->dtype) : WIDE;
    ml_rows(x, &j->rows, &j->columns);
    if (!t->value || t->f->n_out > MOST_OUTPUTS || j->columns > INT32_MAX / WALKS) return false;
    j->block = max64(FEW, min64(WALKS, SCORES / (t->f->n_out + 2)));
    return true;
}

static ortc_status plan(const void *state, ortc_plan *p, void **pstate)
{
    const ortc_view *x = &p->in[0];
    job j;
    *pstate = NULL;
    if (!describe(state, x, &j)) return ORTC_OK;
    const size_t rows = x->dtype == ORTC_F32 || x->dtype == ORTC_F64
                            ? 0
                            : (size_t)(j.block * j.columns) * (j.type == WIDE ? 8 : 4);
    ortc_plan_workspace(p, 0, scores_bytes(&j) + rows);
    return ORTC_OK;
}

static ortc_status run(const trees *t, ortc_call *c, bool classes)
{
    job j;
    if (!describe(t, &c->in[0], &j)) return ml_forest_run(t->f, c, classes);
    j.body = ml_walks_select(), j.call = c, j.classes = classes;
    ORTC_TRY(ml_forest_begin(t->f, c, &j.rows, &j.columns, &j.spans));
    const int64_t each = max64(1, t->f->n_roots * j.block / 4); /* tens of clocks */
    const ortc_status s = ortc_parallel(c, ceil_div(j.rows, j.block), 1 + 10000 / each, chunk, &j);
    return ml_forest_end(c, s, j.spans, classes);
}

static ortc_status prepare_classic(const ortc_node *n, ortc_prep *prep, void **out)
{
    return prepare(ml_forest_prepare, n, prep, out);
}
static ortc_status prepare_ensemble(const ortc_node *n, ortc_prep *prep, void **out)
{
    return prepare(ml_ensemble_prepare, n, prep, out);
}
static ortc_status run_classes(const void *state, const void *pstate, ortc_call *c)
{
    (void)pstate;
    return run(state, c, true);
}
static ortc_status run_targets(const void *state, const void *pstate, ortc_call *c)
{
    (void)pstate;
    return run(state, c, false);
}

#define TREES(kernel, called, reads, runs) \
    static const ortc_kernel kernel = {.size = ORTC_SIZED(ortc_kernel), \
                                       .name = called, \
                                       .prepare = reads, \
                                       .plan = plan, \
                                       .run = runs, \
                                       .release = release}
TREES(classifier, "tree_ensemble_classifier.cpu", prepare_classic, run_classes);
TREES(regressor, "tree_ensemble_regressor.cpu", prepare_classic, run_targets);
TREES(ensemble, "tree_ensemble.cpu", prepare_ensemble, run_targets);

#define T(t) ORTC_TYPE(ORTC_##t)
#define NUMBERS (T(F32) | T(F64) | T(I64) | T(I32))
#define K(op, kernel, ...) ORTC_KERNEL_IN("ai.onnx.ml", op, 5, ORTC_NEWEST, (__VA_ARGS__), &kernel)
ORTC_KERNELS(cpu, ml, K("TreeEnsembleClassifier", classifier, NUMBERS, T(STRING) | T(I64)),
             K("TreeEnsembleRegressor", regressor, NUMBERS),
             K("TreeEnsemble", ensemble, T(F32) | T(F64) | T(F16)));
