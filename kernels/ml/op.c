/* kernels/ml/op.c: the operators of ai.onnx.ml that pipelines of classical models are made of: schemas and
 * shapes. */
#include <stdlib.h>

#include "kernels/ml/ml.h"

extern const ortc_kernel_table ortc_kernels_ref_ml, ortc_kernels_cpu_ml;

static ortc_status infer_like(ortc_infer *c) { return ortc_infer_like(c, 0, 0); }
static ortc_status infer_f32_like(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0);
    return ortc_infer_out(c, 0, ORTC_F32, x.rank, x.dims);
}

/* ---- Labels -------------------------------------------------------------------------------------------- */

static ortc_status infer_label_encoder(ortc_infer *c)
{
    const ml_list values = ml_list_of(ortc_infer_node(c), "values_strings", "values_int64s", "values_floats",
                                      "values_tensor");
    const ortc_port x = ortc_infer_in(c, 0);
    if (!values.n) return ortc_infer_fail(c, ORTC_INVALID_MODEL, "no values are given");
    return ortc_infer_out(c, 0, values.dtype, x.rank, x.dims);
}

/* LabelEncoder-1: strings become their places in a list, integers the strings at those places. */
static ortc_status lift_label_encoder(ortc_lift *l)
{
    const ortc_node *n = ortc_lift_node(l);
    const ortc_attr classes = ortc_node_attr(n, "classes_strings");
    const bool from_strings = ortc_node_in(n, 0).dtype == ORTC_STRING;
    if (classes.kind != ORTC_ATTR_STRINGS || !classes.count)
        return ortc_lift_fail(l, ORTC_INVALID_MODEL, "attribute classes_strings is empty");
    if (!ortc_node_in(n, 0).dtype)
        return ortc_lift_fail(l, ORTC_UNSUPPORTED,
                              "in version 1 the type of the input must be known when the model is loaded");
    int64_t *places = malloc(classes.count * sizeof *places);
    if (!places) return ortc_lift_fail(l, ORTC_OUT_OF_MEMORY, "no memory for %zu labels", classes.count);
    for (size_t i = 0; i < classes.count; i++) places[i] = (int64_t)i;
    ortc_status s = ortc_lift_set_strings(l, from_strings ? "keys_strings" : "values_strings",
                                          classes.u.strings, classes.count);
    if (s == ORTC_OK)
        s = ortc_lift_set_ints(l, from_strings ? "values_int64s" : "keys_int64s", places, classes.count);
    free(places);
    ortc_lift_drop_attr(l, "classes_strings");
    return s;
}

static ortc_status infer_category_mapper(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0);
    return x.dtype ? ortc_infer_out(c, 0, x.dtype == ORTC_STRING ? ORTC_I64 : ORTC_STRING, x.rank, x.dims)
                   : ORTC_OK;
}

static ortc_status infer_one_hot(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0);
    const bool text = x.dtype == ORTC_STRING;
    const ml_list l = ml_list_of(ortc_infer_node(c), text ? "cats_strings" : NULL,
                                 text ? NULL : "cats_int64s", NULL, NULL);
    ortc_dim dims[ORTC_RANK_LIMIT + 1];
    if (x.rank < 0 || x.rank >= ORTC_RANK_LIMIT) return ortc_infer_out(c, 0, ORTC_F32, -1, NULL);
    for (int32_t d = 0; d < x.rank; d++) dims[d] = x.dims[d];
    dims[x.rank] = l.n;
    return ortc_infer_out(c, 0, ORTC_F32, x.rank + 1, dims);
}

static ortc_status infer_extract(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0), at = ortc_infer_in(c, 1);
    ortc_dim dims[ORTC_RANK_LIMIT] = {1};
    if (x.rank == 0) return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "a scalar has no features");
    if (x.rank < 0 || at.rank < 0) return ortc_infer_out(c, 0, x.dtype, -1, NULL);
    const int32_t rank = x.rank < 2 ? 2 : x.rank;
    for (int32_t d = 0; d < x.rank - 1; d++) dims[d] = x.dims[d];
    dims[rank - 1] = ortc_dims_product(c, at.dims, at.rank);
    return ortc_infer_out(c, 0, x.dtype, rank, dims);
}

/* ---- Maps ---------------------------------------------------------------------------------------------- */

static ortc_status infer_zip_map(ortc_infer *c)
{
    const ml_list labels = ml_list_of(ortc_infer_node(c), "classlabels_strings", "classlabels_int64s", NULL,
                                      NULL);
    const ortc_type number = {ORTC_KIND_TENSOR, 0, ORTC_F32, NULL};
    const ortc_type map = {ORTC_KIND_MAP, 0, labels.dtype == ORTC_STRING ? ORTC_STRING : ORTC_I64, &number};
    const ortc_type type = {ORTC_KIND_SEQUENCE, 0, 0, &map};
    const ortc_port x = ortc_infer_in(c, 0);
    if (x.rank == 0 || x.rank > 2)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "the input has rank %d, expected [C] or [N,C]",
                               x.rank);
    return ortc_infer_out_type(c, 0, &type);
}

static ortc_status infer_dict_vectorizer(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0);
    const ml_list words = ml_list_of(ortc_infer_node(c), "string_vocabulary", "int64_vocabulary", NULL, NULL);
    if (!x.type || x.type->kind != ORTC_KIND_MAP || !x.type->of || x.type->of->kind != ORTC_KIND_TENSOR)
        return ORTC_OK;
    return ortc_infer_out(c, 0, x.type->of->dtype, 2, (const ortc_dim[]){1, words.n});
}

static ortc_status infer_cast_map(ortc_infer *c)
{
    const ortc_node *n = ortc_infer_node(c);
    const char *to = ortc_node_string(n, "cast_to", "TO_FLOAT");
    const bool sparse = !strcmp(ortc_node_string(n, "map_form", "DENSE"), "SPARSE");
    const ortc_dtype t = !strcmp(to, "TO_FLOAT")    ? ORTC_F32
                         : !strcmp(to, "TO_STRING") ? ORTC_STRING
                         : !strcmp(to, "TO_INT64")  ? ORTC_I64
                                                    : 0;
    if (!t)
        return ortc_infer_fail(c, ORTC_INVALID_MODEL,
                               "attribute cast_to is '%s', expected TO_FLOAT, TO_STRING or TO_INT64", to);
    return ortc_infer_out(c, 0, t, 2,
                          (const ortc_dim[]){1, sparse ? ortc_node_int(n, "max_map", 1) : ORTC_DIM_UNKNOWN});
}

/* ---- Features ------------------------------------------------------------------------------------------ */

static ortc_status infer_feature_vectorizer(ortc_infer *c)
{
    const ortc_node *n = ortc_infer_node(c);
    const ml_list widths = ml_list_of(n, NULL, "inputdimensions", NULL, NULL);
    ortc_dim dims[2] = {ORTC_DIM_UNKNOWN, 0};
    for (uint32_t i = 0; i < ortc_node_n_in(n); i++) {
        const ortc_port x = ortc_infer_in(c, i);
        const ortc_dim rows = ml_infer_rows(&x);
        if (x.rank == 0 || x.rank > 2)
            return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "input %u has rank %d, expected [C] or [N,C]", i,
                                   x.rank);
        if (rows >= 0 && dims[0] >= 0 && rows != dims[0])
            return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "input %u has %lld rows, others have %lld", i,
                                   (long long)rows, (long long)dims[0]);
        dims[0] = rows >= 0 || dims[0] == ORTC_DIM_UNKNOWN ? rows : dims[0];
        dims[1] = ortc_dim_add(c, dims[1],
                               (int64_t)i < widths.n ? ml_list_integer(&widths, i)
                               : x.rank < 1          ? ORTC_DIM_UNKNOWN
                                                     : x.dims[x.rank - 1]);
    }
    return ortc_infer_out(c, 0, ORTC_F32, 2, dims);
}

/* ---- Models -------------------------------------------------------------------------------------------- */

static ortc_status check_rows(ortc_infer *c, const ortc_port *x)
{
    return x->rank == 0 || x->rank > 2
               ? ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "the input has rank %d, expected [C] or [N,C]",
                                 x->rank)
               : ORTC_OK;
}

/* A label for every row, and the scores of all classes. */
static ortc_status infer_classifier(ortc_infer *c)
{
    const ortc_node *n = ortc_infer_node(c);
    const bool trees = !strcmp(ortc_node_op(n), "TreeEnsembleClassifier");
    const ml_list labels = ml_list_of(n, "classlabels_strings",
                                      trees ? "classlabels_int64s" : "classlabels_ints", NULL, NULL);
    const ortc_port x = ortc_infer_in(c, 0);
    ORTC_TRY(check_rows(c, &x));
    const ortc_dim dims[2] = {ml_infer_rows(&x), labels.n};
    ORTC_TRY(ortc_infer_out(c, 0, labels.dtype == ORTC_STRING ? ORTC_STRING : ORTC_I64, 1, dims));
    return ortc_infer_out(c, 1, ORTC_F32, 2, dims);
}

/* Scores of the classes; where they have no probabilities, of the pairs of classes (of two classes both signs
 * of the one). */
static ortc_status infer_svm_classifier(ortc_infer *c)
{
    const ortc_node *n = ortc_infer_node(c);
    const ml_list labels = ml_list_of(n, "classlabels_strings", "classlabels_ints", NULL, NULL);
    const ml_list vectors = ml_list_of(n, NULL, "vectors_per_class", NULL, NULL),
                  chances = ml_list_of(n, NULL, NULL, "prob_a", NULL);
    const ortc_port x = ortc_infer_in(c, 0);
    const bool pairs = vectors.n && !chances.n && labels.n > 2;
    ORTC_TRY(check_rows(c, &x));
    const ortc_dim dims[2] = {ml_infer_rows(&x), pairs ? labels.n * (labels.n - 1) / 2 : labels.n};
    ORTC_TRY(ortc_infer_out(c, 0, labels.dtype == ORTC_STRING ? ORTC_STRING : ORTC_I64, 1, dims));
    return ortc_infer_out(c, 1, ORTC_F32, 2, dims);
}

static ortc_status infer_targets(ortc_infer *c)
{
    const ortc_node *n = ortc_infer_node(c);
    const ortc_port x = ortc_infer_in(c, 0);
    const bool linear = !strcmp(ortc_node_op(n), "LinearRegressor"),
               svm = !strcmp(ortc_node_op(n), "SVMRegressor");
    ORTC_TRY(check_rows(c, &x));
    const ortc_dim dims[2] = {ml_infer_rows(&x),
                              ortc_node_int(n, linear ? "targets" : "n_targets", linear || svm)};
    return ortc_infer_out(c, 0, !strcmp(ortc_node_op(n), "TreeEnsemble") ? x.dtype : ORTC_F32, 2, dims);
}

#define ML "ai.onnx.ml"
#define NUMBERS "T=f32,f64,i64,i32"
#define NODES \
    "nodes_treeids:is? nodes_nodeids:is? nodes_featureids:is? nodes_values:fs? nodes_values_as_tensor:t? " \
    "nodes_hitrates:fs? " \
    "nodes_hitrates_as_tensor:t? nodes_modes:ss? nodes_truenodeids:is? nodes_falsenodeids:is? " \
    "nodes_missing_value_tracks_true:is? " \
    "base_values:fs? base_values_as_tensor:t? post_transform:s=NONE "

static const ortc_op ops[] = {
    ORTC_OP(
        ML, "LabelEncoder", 4, 2, "2 1", "X:T1", "Y:T2",
        "keys_strings:ss? keys_int64s:is? keys_floats:fs? keys_tensor:t? values_strings:ss? "
        "values_int64s:is? values_floats:fs? "
        "values_tensor:t? default_string:s=_Unused default_int64:i=-1 default_float:f=-0.0 default_tensor:t?",
        "T1=string,i64,f32,i32,i16,f64 T2=string,i64,f32,i32,i16,f64", infer_label_encoder,
        lift_label_encoder, 0),
    ORTC_OP(ML, "CategoryMapper", 1, 1, "", "X:T1", "Y:T2",
            "cats_strings:ss? cats_int64s:is? default_string:s=_Unused default_int64:i=-1",
            "T1=string,i64 T2=string,i64", infer_category_mapper, NULL, 0),
    ORTC_OP(ML, "OneHotEncoder", 1, 1, "", "X:T", "Y:f32", "cats_strings:ss? cats_int64s:is? zeros:i=1",
            "T=string,i64,i32,f32,f64", infer_one_hot, NULL, 0),
    ORTC_OP(ML, "ArrayFeatureExtractor", 1, 1, "", "X:T Y:i64", "Z:T", "", "T=f32,f64,i64,i32,string",
            infer_extract, NULL, 0),
    ORTC_OP(ML, "ZipMap", 1, 1, "", "X:f32", "Z:T", "classlabels_strings:ss? classlabels_int64s:is?", "T=seq",
            infer_zip_map, NULL, 0),
    ORTC_OP(ML, "DictVectorizer", 1, 1, "", "X:T1", "Y:T2", "string_vocabulary:ss? int64_vocabulary:is?",
            "T1=map T2=i64,f32,f64,string", infer_dict_vectorizer, NULL, 0),
    ORTC_OP(ML, "CastMap", 1, 1, "", "X:T1", "Y:T2", "cast_to:s=TO_FLOAT map_form:s=DENSE max_map:i=1",
            "T1=map T2=string,f32,i64", infer_cast_map, NULL, 0),
    ORTC_OP(ML, "Scaler", 1, 1, "", "X:T", "Y:f32", "offset:fs? scale:fs?", NUMBERS, infer_f32_like, NULL, 0),
    ORTC_OP(ML, "Normalizer", 1, 1, "", "X:T", "Y:f32", "norm:s=MAX", NUMBERS, infer_f32_like, NULL, 0),
    ORTC_OP(
        ML, "Imputer", 1, 1, "", "X:T", "Y:T",
        "imputed_value_floats:fs? replaced_value_float:f=0 imputed_value_int64s:is? replaced_value_int64:i=0",
        NUMBERS, infer_like, NULL, 0),
    ORTC_OP(ML, "Binarizer", 1, 1, "", "X:T", "Y:T", "threshold:f=0", NUMBERS, infer_like, NULL, 0),
    ORTC_OP(ML, "FeatureVectorizer", 1, 1, "", "X:T+", "Y:f32", "inputdimensions:is?", "T=i32,i64,f32,f64",
            infer_feature_vectorizer, NULL, 0),
    ORTC_OP(ML, "LinearClassifier", 1, 1, "", "X:T1", "Y:T2 Z:f32",
            "coefficients:fs! intercepts:fs? classlabels_strings:ss? classlabels_ints:is? multi_class:i=0 "
            "post_transform:s=NONE",
            "T1=f32,f64,i64,i32 T2=string,i64", infer_classifier, NULL, 0),
    ORTC_OP(ML, "LinearRegressor", 1, 1, "", "X:T", "Y:f32",
            "coefficients:fs? intercepts:fs? targets:i=1 post_transform:s=NONE", NUMBERS, infer_targets, NULL,
            0),
    ORTC_OP(ML, "SVMClassifier", 1, 1, "", "X:T1", "Y:T2 Z:f32",
            "kernel_type:s=LINEAR kernel_params:fs? support_vectors:fs? vectors_per_class:is? "
            "coefficients:fs? rho:fs? prob_a:fs? prob_b:fs? "
            "classlabels_strings:ss? classlabels_ints:is? post_transform:s=NONE",
            "T1=f32,f64,i64,i32 T2=string,i64", infer_svm_classifier, NULL, 0),
    ORTC_OP(ML, "SVMRegressor", 1, 1, "", "X:T", "Y:f32",
            "kernel_type:s=LINEAR kernel_params:fs? support_vectors:fs? n_supports:i=0 coefficients:fs? "
            "rho:fs? one_class:i=0 "
            "post_transform:s=NONE",
            NUMBERS, infer_targets, NULL, 0),
    ORTC_OP(ML, "TreeEnsembleClassifier", 5, 1, "3 1", "X:T1", "Y:T2 Z:f32",
            NODES
            "class_treeids:is? class_nodeids:is? class_ids:is? class_weights:fs? class_weights_as_tensor:t? "
            "classlabels_strings:ss? classlabels_int64s:is?",
            "T1=f32,f64,i64,i32 T2=string,i64", infer_classifier, NULL, 0),
    ORTC_OP(
        ML, "TreeEnsembleRegressor", 5, 1, "3 1", "X:T", "Y:f32",
        NODES
        "target_treeids:is? target_nodeids:is? target_ids:is? target_weights:fs? target_weights_as_tensor:t? "
        "n_targets:i? aggregate_function:s=SUM",
        NUMBERS, infer_targets, NULL, 0),
    ORTC_OP(ML, "TreeEnsemble", 5, 5, "", "X:T", "Y:T",
            "tree_roots:is! nodes_featureids:is! nodes_splits:t! nodes_modes:t! nodes_truenodeids:is! "
            "nodes_falsenodeids:is! "
            "nodes_trueleafs:is! nodes_falseleafs:is! nodes_hitrates:t? nodes_missing_value_tracks_true:is? "
            "membership_values:t? "
            "leaf_targetids:is! leaf_weights:t! n_targets:i? aggregate_function:i=1 post_transform:i=0",
            "T=f32,f64,f16", infer_targets, NULL, 0),
};
ORTC_FAMILY(ml, ops, &ortc_kernels_ref_ml, &ortc_kernels_cpu_ml);
