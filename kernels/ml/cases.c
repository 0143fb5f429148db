/* kernels/ml/cases.c: cases for ai.onnx.ml. What the operators compute is compared with onnxruntime in
 * tests/python/test_values.py; here every type of every kernel, and what is refused.
 */
#include "kernels/common/cases.h"

#define ML "ai.onnx.ml:"
#define NUMBERS "T=f32,f64,i64,i32"
#define ROWS "T[5,3]"
/* x0 <= 0.5 ? (x2 > -1 ? node 3 : node 4) : node 2 */
#define NODES \
    "nodes_treeids=[0,0,0,0,0] nodes_nodeids=[0,1,2,3,4] nodes_featureids=[0,2,0,0,0] " \
    "nodes_values=[0.5,-1.0,0.0,0.0,0.0] " \
    "nodes_modes=['BRANCH_LEQ','BRANCH_GT','LEAF','LEAF','LEAF'] nodes_truenodeids=[1,3,0,0,0] " \
    "nodes_falsenodeids=[2,4,0,0,0] "
#define CLASSES "class_treeids=[0,0,0] class_nodeids=[2,3,4] "
#define TARGETS "target_treeids=[0,0,0] target_nodeids=[2,3,4] "
#define ENSEMBLE \
    "tree_roots=[0] nodes_featureids=[0,2] nodes_splits=T[2]={0.5,-1} nodes_modes=u8[2]={0,3} " \
    "nodes_truenodeids=[1,0] " \
    "nodes_falsenodeids=[2,1] nodes_trueleafs=[0,1] nodes_falseleafs=[1,1] leaf_targetids=[0,1,1] " \
    "leaf_weights=T[3]={1,2,-3} " \
    "n_targets=2 "

const ortc_case ortc_cases_ml[] = {
    {ML "LabelEncoder", "string[2,2]={a,b,c,a}", "keys_strings=['a','b'] values_int64s=[7,8]"},
    {ML "LabelEncoder", "string[3]={a,b,c}", "keys_strings=['b','a','b'] values_strings=['x','y','z']"},
    {ML "LabelEncoder", "string[3]={a,b,c}", "keys_strings=['a'] values_floats=[0.5] default_float=2.5"},
    {ML "LabelEncoder", "T[4]={1,2,3,2}",
     "keys_tensor=T[2]={2,3} values_tensor=U[2]={5,6} default_tensor=U[1]={9}",
     "T=i64,f32,i32,i16,f64 U=i64,f32,i32,i16,f64"},
    {ML "LabelEncoder", "T[3]={1,2,3}",
     "keys_tensor=T[2]={2,3} values_strings=['two','three'] default_string='?'", "T=i64,i16"},
    {ML "LabelEncoder", "f32[3]={nan,1,2}", "keys_floats=[nan,1.0] values_int64s=[7,8]"},
    {ML "LabelEncoder@2", "i64[3]={1,2,3}", "keys_int64s=[1,2] values_strings=['a','b']"},
    {ML "LabelEncoder@1", "string[3]={a,b,c}", "classes_strings=['c','a'] default_int64=-7"},
    {ML "LabelEncoder@1", "i64[3]={0,1,2}", "classes_strings=['c','a']"},
    {ML "LabelEncoder", "i64[3]", "keys_int64s=[1,2] values_strings=['a']", .fails = ORTC_INVALID_MODEL},
    {ML "LabelEncoder", "i64[3]", "keys_strings=['a'] values_int64s=[2]", .fails = ORTC_TYPE_MISMATCH},
    {ML "LabelEncoder", "i64[3]", "", .fails = ORTC_INVALID_MODEL},

    {ML "CategoryMapper", "string[3]={a,b,c}", "cats_strings=['a','c'] cats_int64s=[4,5]"},
    {ML "CategoryMapper", "i64[3]={4,5,6}", "cats_strings=['a','c'] cats_int64s=[4,5] default_string='none'"},

    {ML "OneHotEncoder", "string[2,2]={a,b,c,a}", "cats_strings=['a','c']"},
    {ML "OneHotEncoder", "T[4]={1,2,3,2}", "cats_int64s=[2,3]", NUMBERS},
    {ML "OneHotEncoder", "i64[2]={2,3}", "cats_int64s=[2,3] zeros=0"},
    {ML "OneHotEncoder", "i64[2]={2,4}", "cats_int64s=[2,3] zeros=0", .fails = ORTC_INVALID_ARGUMENT},
    {ML "OneHotEncoder", "i64[2]={2,4}", "cats_strings=['a']", .fails = ORTC_INVALID_MODEL},

    {ML "ArrayFeatureExtractor", "T[2,4] i64[3]={3,0,0}", "", NUMBERS ",string"},
    {ML "ArrayFeatureExtractor", "f32[4] i64[1,2]={3,1}", ""},
    {ML "ArrayFeatureExtractor", "f32[2,2,3] i64[1]={2}!", ""},
    {ML "ArrayFeatureExtractor", "f32[2,4] i64[1]={4}", "", .fails = ORTC_INVALID_ARGUMENT},

    {ML "ZipMap", "f32[3,2]", "classlabels_strings=['a','b']"},
    {ML "ZipMap", "f32[3]", "classlabels_int64s=[4,5,6]"},
    {ML "ZipMap", "f32[0,2]", "classlabels_int64s=[4,5]"},
    {ML "ZipMap", "f32[3,2]", "classlabels_int64s=[4]", .fails = ORTC_SHAPE_MISMATCH},
    {ML "ZipMap", "f32[3,2]", "", .fails = ORTC_INVALID_MODEL},

    {ML "DictVectorizer", "map(string[3]={a,b,c};T[3])", "string_vocabulary=['c','x','a']", "T=f32,f64,i64"},
    {ML "DictVectorizer", "map(i64[3]={1,2,3};T[3])", "int64_vocabulary=[3,4,1]", "T=f32,f64,string"},
    {ML "DictVectorizer", "map(i64[1]={1};f32[1])", "string_vocabulary=['1']", .fails = ORTC_TYPE_MISMATCH},

    {ML "CastMap", "map(i64[3]={7,1,3};f32[3])", "cast_to='TO_FLOAT'"},
    {ML "CastMap", "map(i64[3]={7,1,3};f32[3]={1.5,2,-1})", "cast_to='TO_STRING'"},
    {ML "CastMap", "map(i64[3]={7,1,3};string[3]={1.5,2,-1})", "cast_to='TO_FLOAT'"},
    {ML "CastMap", "map(i64[3]={7,1,3};string[3]={1,2,-1})",
     "cast_to='TO_INT64' map_form='SPARSE' max_map=9"},
    {ML "CastMap", "map(i64[2]={2,1};string[2]={b,a})", "cast_to='TO_STRING' map_form='SPARSE' max_map=4"},
    {ML "CastMap", "map(i64[2]={2,9};f32[2])", "map_form='SPARSE' max_map=4", .fails = ORTC_INVALID_ARGUMENT},
    {ML "CastMap", "map(i64[2]={2,9};string[2]={x,y})", "cast_to='TO_FLOAT'", .fails = ORTC_INVALID_ARGUMENT},

    {ML "Scaler", ROWS, "offset=[1.0,2.0,3.0] scale=[0.5,2.0,-1.0]", NUMBERS},
    {ML "Scaler", "f32[5,3]~", "offset=[1.5] scale=[2.0]"},
    {ML "Scaler", "f32[3]", "scale=[2.0,3.0,4.0]"},
    {ML "Scaler", "f32[0,3]", ""},
    {ML "Scaler", "f32[5,3]", "scale=[2.0,3.0]", .fails = ORTC_SHAPE_MISMATCH},
    {ML "Normalizer", ROWS, "norm='MAX'", NUMBERS},
    {ML "Normalizer", "f32[5,3]", "norm='L1'"},
    {ML "Normalizer", "f32[2,3]={1,2,3,0,0,0}", "norm='L2'"},
    {ML "Normalizer", "f32[5,3]", "norm='L3'", .fails = ORTC_INVALID_MODEL},
    {ML "Imputer", "T[2,3]={1,2,3,4,2,2}", "imputed_value_floats=[7.0,8.0,9.0] replaced_value_float=2.0",
     "T=f32,f64"},
    {ML "Imputer", "f32[2,3]~", "imputed_value_floats=[7.0] replaced_value_float=nan"},
    {ML "Imputer", "T[2,3]={1,2,3,4,2,2}", "imputed_value_int64s=[7,8,9] replaced_value_int64=2",
     "T=i64,i32"},
    {ML "Imputer", "i64[2,3]", "imputed_value_floats=[7.0]", .fails = ORTC_INVALID_MODEL},
    {ML "Binarizer", ROWS, "threshold=0.5", NUMBERS},
    {ML "FeatureVectorizer", "T[5,3] T[5,1]", "inputdimensions=[3,1]", NUMBERS},
    {ML "FeatureVectorizer", "f32[5,2] f32[5,3]", "inputdimensions=[3,2]"},
    {ML "FeatureVectorizer", "f32[3]", "inputdimensions=[3]"},

    {ML "LinearClassifier", ROWS,
     "coefficients=[1.0,-2.0,0.5] intercepts=[0.25] classlabels_ints=[4,5] post_transform='LOGISTIC'",
     NUMBERS, .outputs = 2},
    {ML "LinearClassifier", "f32[5,2]",
     "coefficients=[1.0,-2.0,0.5,1,0,1] classlabels_strings=['a','b','c'] post_transform='SOFTMAX'",
     .outputs = 2},
    {ML "LinearClassifier", "f32[2]", "coefficients=[1.0,-2.0] classlabels_strings=['a','b']", .outputs = 2},
    {ML "LinearClassifier", "f32[5,3]", "coefficients=[1.0,-2.0] classlabels_ints=[4,5]", .outputs = 2,
     .fails = ORTC_SHAPE_MISMATCH},
    {ML "LinearClassifier", "f32[5,2]", "coefficients=[1.0,-2.0]", .outputs = 2, .fails = ORTC_INVALID_MODEL},
    {ML "LinearClassifier", "f32[5,1]", "coefficients=[1.0] classlabels_ints=[4,5] post_transform='X'",
     .outputs = 2, .fails = ORTC_INVALID_MODEL},
    {ML "LinearRegressor", ROWS, "coefficients=[1.0,-2.0,0.5,1,0,1] intercepts=[0.25,1.0] targets=2",
     NUMBERS},
    {ML "LinearRegressor", "f32[5,2]", "coefficients=[1.0,-2.0]"},

    {ML "SVMClassifier", ROWS,
     "kernel_type='RBF' kernel_params=[0.5,0.0,0.0] vectors_per_class=[1,1] "
     "support_vectors=[1.0,2.0,3.0,-1.0,0.0,1.0] coefficients=[0.5,-1.5] rho=[0.25] classlabels_ints=[4,5]",
     NUMBERS, .outputs = 2},
    {ML "SVMClassifier", "f32[5,2]",
     "coefficients=[0.5,-1.5,1.0,0.0] rho=[0.25] classlabels_strings=['a','b']", .outputs = 2},
    {ML "SVMClassifier", "f32[5,2]", "coefficients=[0.5,-1.5,1.0] rho=[0.25] classlabels_strings=['a','b']",
     .outputs = 2, .fails = ORTC_INVALID_MODEL},
    {ML "SVMClassifier", "f32[5,3]",
     "coefficients=[0.5,-1.5,1.0,0.0] rho=[0.25] classlabels_strings=['a','b']", .outputs = 2,
     .fails = ORTC_SHAPE_MISMATCH},
    {ML "SVMRegressor", ROWS,
     "kernel_type='RBF' kernel_params=[0.5,0.0,0.0] n_supports=2 support_vectors=[1.0,2.0,3.0,-1.0,0.0,1.0] "
     "coefficients=[0.5,-1.5] rho=[0.25]",
     NUMBERS},
    {ML "SVMRegressor", "f32[5,3]", "coefficients=[0.5,-1.5,1.0] rho=[0.25]"},
    {ML "SVMRegressor", "f32[5,2]", "coefficients=[0.5,-1.5,1.0] rho=[0.25]", .fails = ORTC_SHAPE_MISMATCH},
    {ML "SVMRegressor", "f32[5,2]", "kernel_type='X' coefficients=[0.5,-1.5] rho=[0.25]",
     .fails = ORTC_INVALID_MODEL},

    {ML "TreeEnsembleClassifier", ROWS,
     NODES CLASSES
     "class_ids=[0,1,2] class_weights=[1.0,2.0,3.0] classlabels_int64s=[4,5,6] base_values=[0.5,0.25,0.125]",
     NUMBERS, .outputs = 2},
    {ML "TreeEnsembleClassifier", "f32[5,3]~",
     NODES CLASSES "class_ids=[0,0,0] class_weights=[0.25,0.5,0.75] classlabels_strings=['no','yes']",
     .outputs = 2},
    {ML "TreeEnsembleClassifier@3", "f32[5,3]",
     NODES CLASSES "class_ids=[0,0,0] class_weights=[-0.25,0.5,0.75] classlabels_strings=['no','yes'] "
                   "post_transform='LOGISTIC'",
     .outputs = 2},
    {ML "TreeEnsembleClassifier@1", "f32[5,3]",
     NODES CLASSES "class_ids=[0,1,0] class_weights=[0.25,0.5,0.75] classlabels_strings=['no','yes'] "
                   "post_transform='SOFTMAX'",
     .outputs = 2},
    {ML "TreeEnsembleClassifier", "f32[5,2]",
     NODES CLASSES "class_ids=[0,0,0] class_weights=[0.25,0.5,0.75] classlabels_int64s=[4,5]", .outputs = 2,
     .fails = ORTC_SHAPE_MISMATCH},
    {ML "TreeEnsembleClassifier", "f32[5,3]",
     NODES CLASSES "class_ids=[0,0,9] class_weights=[0.25,0.5,0.75] classlabels_int64s=[4,5]", .outputs = 2,
     .fails = ORTC_INVALID_MODEL},
    {ML "TreeEnsembleRegressor", ROWS,
     NODES TARGETS "target_ids=[0,1,1] target_weights=[1.0,2.0,3.0] n_targets=2 base_values=[0.5,0.25]",
     NUMBERS},
    {ML "TreeEnsembleRegressor", "f32[5,3]",
     NODES TARGETS
     "target_ids=[0,0,0] target_weights=[1.0,2.0,3.0] n_targets=1 aggregate_function='AVERAGE'"},
    {ML "TreeEnsembleRegressor@3", "f32[5,3]",
     NODES TARGETS "target_ids=[0,0,0] target_weights=[1.0,2.0,3.0] n_targets=1 aggregate_function='MIN'"},
    {ML "TreeEnsembleRegressor@1", "f32[5,3]",
     NODES TARGETS "target_ids=[0,0,0] target_weights=[1.0,2.0,3.0] n_targets=1 aggregate_function='MAX'"},
    {ML "TreeEnsembleRegressor", "f32[5,3]",
     "nodes_treeids=[0,0,0] nodes_nodeids=[0,1,2] nodes_featureids=[0,0,0] nodes_values=[0.0,0.0,0.0] "
     "nodes_modes=['BRANCH_LEQ','BRANCH_LEQ','BRANCH_LEQ'] nodes_truenodeids=[1,2,1] "
     "nodes_falsenodeids=[1,2,1] n_targets=1 "
     "target_treeids=[0] target_nodeids=[1] target_ids=[0] target_weights=[1.0]",
     .fails = ORTC_INVALID_MODEL}, /* in circles */
    {ML "TreeEnsemble", ROWS, ENSEMBLE, "T=f32,f64,f16"},
    {ML "TreeEnsemble", "f32[5,1]={0,1,2,3,4}",
     "tree_roots=[0] nodes_featureids=[0] nodes_splits=f32[1]={0} nodes_modes=u8[1]={6} "
     "nodes_truenodeids=[0] nodes_falsenodeids=[1] "
     "nodes_trueleafs=[1] nodes_falseleafs=[1] leaf_targetids=[0,0] leaf_weights=f32[2]={1,2} n_targets=1 "
     "membership_values=f32[3]={1,3,nan}"},
    {ML "TreeEnsemble", "f32[5,1]",
     "tree_roots=[0] nodes_featureids=[0] nodes_splits=f32[1]={0} nodes_modes=u8[1]={0} "
     "nodes_truenodeids=[0] nodes_falsenodeids=[7] "
     "nodes_trueleafs=[1] nodes_falseleafs=[1] leaf_targetids=[0,0] leaf_weights=f32[2]={1,2} n_targets=1",
     .fails = ORTC_INVALID_MODEL},
    {0},
};
