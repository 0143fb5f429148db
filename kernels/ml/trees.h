/* kernels/ml/trees.h: tree ensembles, as TreeEnsembleClassifier, TreeEnsembleRegressor and TreeEnsemble have
 * them: all three become one forest when they are prepared, an array of nodes, which name their children by
 * index, and an array of leaf weights.
 */
#ifndef ORTC_KERNELS_ML_TREES_H
#define ORTC_KERNELS_ML_TREES_H

#include "kernels/ml/ml.h"

enum { ML_LEQ, ML_LT, ML_GTE, ML_GT, ML_EQ, ML_NEQ, ML_MEMBER, ML_LEAF }; /* TreeEnsemble's numbers */
enum { ML_AVERAGE, ML_SUM, ML_MIN, ML_MAX };                              /* the same */

typedef struct ml_tree_node {
    int32_t mode;
    bool missing_is_true;
    bool is_child;
    int64_t feature;
    double value;
    int64_t yes, no;    /* nodes */
    int64_t weights, n; /* LEAF: its weights; MEMBER: its members */
} ml_tree_node;

typedef struct ml_leaf_weight {
    int64_t id; /* of the class or target */
    double weight;
} ml_leaf_weight;

typedef struct ml_forest {
    ml_tree_node *nodes;
    ml_leaf_weight *weights; /* by leaf */
    double *members;
    int64_t *roots;
    int64_t n_nodes, n_weights, n_members, n_roots, n_out, most_feature;
    ml_list base, labels;
    int post, aggregate;
    int64_t only_class; /* classifier of two labels whose weights are all for one; else -1 */
    bool all_positive;
} ml_forest;

/* *out: an ml_forest, of TreeEnsembleClassifier and TreeEnsembleRegressor, and of TreeEnsemble. */
ortc_status ml_forest_prepare(const ortc_node *, ortc_prep *, void **out);
ortc_status ml_ensemble_prepare(const ortc_node *, ortc_prep *, void **out);
void ml_forest_release(void *forest);

/* A row while it is scored. */
typedef struct ml_scores {
    double *scores; /* of each output; two of a classifier at least */
    bool *seen;     /* a leaf was for it */
} ml_scores;
void ml_scores_clear(const ml_forest *, const ml_scores *);
/* The n weights of a leaf, from `first` on. */
void ml_scores_add(const ml_forest *, int64_t first, int64_t n, const ml_scores *);
/* When all trees were asked: row `at` of the outputs. spans: where labels are strings, as many as rows. */
void ml_scores_put(const ml_forest *, ortc_call *, int64_t at, const ml_scores *, ortc_span *spans,
                   bool classes);

/* The extents of the input, and where labels go that are strings; _end writes these, and frees them. */
ortc_status ml_forest_begin(const ml_forest *, ortc_call *, int64_t *rows, int64_t *columns,
                            ortc_span **spans);
ortc_status ml_forest_end(ortc_call *, ortc_status, ortc_span *spans, bool classes);
/* All of it, as ref does it. */
ortc_status ml_forest_run(const ml_forest *, ortc_call *, bool classes);

#endif
