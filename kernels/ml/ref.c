/* kernels/ml/ref.c: the table of the family's kernels on ref. */
#include "kernels/ml/ml.h"

#define T(t) ORTC_TYPE(ORTC_##t)
#define NUMBERS (T(F32) | T(F64) | T(I64) | T(I32))
#define LABELS (T(STRING) | T(I64))
#define KEYS (T(STRING) | T(I64) | T(F32) | T(I32) | T(I16) | T(F64))
#define K(op, since, kernel, ...) ORTC_KERNEL_IN("ai.onnx.ml", op, since, ORTC_NEWEST, (__VA_ARGS__), &kernel)

ORTC_KERNELS(ref, ml, K("LabelEncoder", 4, ortc_ref_label_encoder, KEYS, KEYS),
             K("CategoryMapper", 1, ortc_ref_category_mapper, LABELS, LABELS),
             K("OneHotEncoder", 1, ortc_ref_one_hot_encoder, T(STRING) | NUMBERS),
             K("ArrayFeatureExtractor", 1, ortc_ref_array_feature_extractor, NUMBERS | T(STRING)),
             K("ZipMap", 1, ortc_ref_zip_map, T(F32)),
             K("DictVectorizer", 1, ortc_ref_dict_vectorizer, ORTC_TYPES_ANY,
               T(I64) | T(F32) | T(F64) | T(STRING)),
             K("CastMap", 1, ortc_ref_cast_map, ORTC_TYPES_ANY, T(STRING) | T(F32) | T(I64)),
             K("Scaler", 1, ortc_ref_scaler, NUMBERS), K("Normalizer", 1, ortc_ref_normalizer, NUMBERS),
             K("Imputer", 1, ortc_ref_imputer, NUMBERS), K("Binarizer", 1, ortc_ref_binarizer, NUMBERS),
             K("FeatureVectorizer", 1, ortc_ref_feature_vectorizer, NUMBERS),
             K("LinearClassifier", 1, ortc_ref_linear_classifier, NUMBERS, LABELS),
             K("LinearRegressor", 1, ortc_ref_linear_regressor, NUMBERS),
             K("SVMClassifier", 1, ortc_ref_svm_classifier, NUMBERS, LABELS),
             K("SVMRegressor", 1, ortc_ref_svm_regressor, NUMBERS),
             K("TreeEnsembleClassifier", 5, ortc_ref_tree_classifier, NUMBERS, LABELS),
             K("TreeEnsembleRegressor", 5, ortc_ref_tree_regressor, NUMBERS),
             K("TreeEnsemble", 5, ortc_ref_tree_ensemble, T(F32) | T(F64) | T(F16)));
