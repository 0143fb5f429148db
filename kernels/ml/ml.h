/* kernels/ml/ml.h: what the operators of ai.onnx.ml share: lists of labels, rows of features, what is done to
 * scores.
 *
 * These operators keep their tables in attributes, in one of several lists by element type; an ml_list is
 * whichever is there.
 */
#ifndef ORTC_KERNELS_ML_H
#define ORTC_KERNELS_ML_H

#include "kernels/common/element.h"
#include "kernels/common/shape.h"
#include "kernels/common/strings.h"

/* ---- Lists --------------------------------------------------------------------------------------------- */

typedef struct ml_list {
    ortc_dtype dtype; /* 0: none is given */
    int64_t n;
    ortc_attr from; /* borrows from the node */
} ml_list;

/* The first of these attributes that holds something; names may be NULL. */
ml_list ml_list_of(const ortc_node *, const char *strings, const char *ints, const char *floats,
                   const char *tensor);
ortc_span ml_list_text(const ml_list *, int64_t i);
double ml_list_number(const ml_list *, int64_t i); /* of floats and integers */
int64_t ml_list_integer(const ml_list *, int64_t i);

/* A list's elements, for finding one: strings, integers, or numbers (NaN equals NaN). The first of equal ones
 * counts. */
typedef struct ml_index {
    ml_list list;
    int64_t *places; /* hashed, mask + 1 of them; ml_index_deinit frees them */
    uint64_t mask;
    int64_t
        low; /* of integers that lie close together a place each, from here on, `span` of them; 0: hashed */
    uint64_t span;
} ml_index;
ortc_status ml_index_init(ml_index *, const ml_list *, ortc_prep *);
void ml_index_deinit(ml_index *);
/* The position of element i of a tensor; -1: it is not there. */
int64_t ml_index_find(const ml_index *, const ortc_view *, int64_t i);
int64_t ml_index_find_text(const ml_index *, ortc_span);
int64_t ml_index_find_integer(const ml_index *, int64_t);

/* ---- Rows ---------------------------------------------------------------------------------------------- */

/* [N,C] as it is; [C] is one row. */
static inline void ml_rows(const ortc_view *x, int64_t *rows, int64_t *columns)
{
    *columns = x->rank ? x->dims[x->rank - 1] : 1;
    *rows = *columns ? ortc_view_count(x) / *columns : x->rank > 1 ? x->dims[0] : 1;
}
/* The number of rows while inferring. */
static inline ortc_dim ml_infer_rows(const ortc_port *x)
{
    return x->rank == 2 ? x->dims[0] : x->rank == 1 ? 1 : ORTC_DIM_UNKNOWN;
}

/* A row's features as doubles: `to` has room for them. */
static inline void ml_load_row(const ortc_view *x, int64_t row, int64_t columns, double *to)
{
    for (int64_t i = 0; i < columns; i++) to[i] = ortc_load_f64(x->data, x->dtype, row * columns + i);
}
/* The sum of products of a row and as many numbers, and of the squares of what they differ by: four sums at
 * once, which need not wait for each other. */
#define ML_SUM(name, type, term) \
    static inline double name(const type *x, const float *w, int64_t n) \
    { \
        double sum[4] = {0, 0, 0, 0}; \
        int64_t i = 0; \
        for (; i + 4 <= n; i += 4) \
            for (int64_t k = 0; k < 4; k++) sum[k] += term((double)x[i + k], (double)w[i + k]); \
        for (; i < n; i++) sum[0] += term((double)x[i], (double)w[i]); \
        return (sum[0] + sum[1]) + (sum[2] + sum[3]); \
    }
#define ML_TIMES(a, b) ((a) * (b))
#define ML_APART(a, b) (((a) - (b)) * ((a) - (b)))
ML_SUM(ml_product, double, ML_TIMES)
ML_SUM(ml_distance, double, ML_APART)
ML_SUM(ml_product_f32, float, ML_TIMES)

/* ---- Scores -------------------------------------------------------------------------------------------- */

enum { ML_NONE, ML_SOFTMAX, ML_LOGISTIC, ML_SOFTMAX_ZERO, ML_PROBIT }; /* TreeEnsemble's numbers */
/* The attribute post_transform; -1 with an error in prep: there is no such. */
int ml_post_of(const ortc_node *, ortc_prep *);
void ml_post(int transform, double *scores, int64_t n);
/* One score of two classes: the scores of both. even: they add up to 1 where nothing else is asked for. */
void ml_post_binary(int transform, double score, bool even, double *scores);

/* Writes label `at` of the list as element i of a label output: integers directly, strings into spans. */
void ml_store_label(const ml_list *, int64_t at, const ortc_view *y, ortc_span *spans, int64_t i);

extern const ortc_kernel ortc_ref_label_encoder, ortc_ref_category_mapper, ortc_ref_one_hot_encoder,
    ortc_ref_array_feature_extractor;
extern const ortc_kernel ortc_ref_zip_map, ortc_ref_dict_vectorizer, ortc_ref_cast_map;
extern const ortc_kernel ortc_ref_scaler, ortc_ref_normalizer, ortc_ref_imputer, ortc_ref_binarizer,
    ortc_ref_feature_vectorizer;
extern const ortc_kernel ortc_ref_linear_classifier, ortc_ref_linear_regressor, ortc_ref_svm_regressor,
    ortc_ref_svm_classifier;
extern const ortc_kernel ortc_ref_tree_classifier, ortc_ref_tree_regressor, ortc_ref_tree_ensemble;

#endif
