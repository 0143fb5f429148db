/* kernels/normalize/cases.c: cases for LpNormalization, LRN, MeanVarianceNormalization. */
#include "kernels/common/cases.h"

#define F "T=f32,f64,f16,bf16"

const ortc_case ortc_cases_normalize[] = {
    {"LpNormalization", "T[3,5]", "", F},
    {"LpNormalization", "T[2,5,3]", "axis=1 p=1", F},
    {"LpNormalization", "f32[2,3]={0,0,0,3,0,4}", ""},
    {"LpNormalization", "T[3,9000]", "", F},
    {"LpNormalization", "T[3,90,700]", "axis=1", F},
    {"LpNormalization", "f32[0,3]", "axis=0"},
    {"LpNormalization@1", "f32[2,3]", "axis=0"},
    {"LpNormalization", "f32[2,3]", "p=3", .fails = ORTC_INVALID_MODEL},
    {"LpNormalization", "f32[2,3]", "axis=2", .fails = ORTC_INVALID_MODEL},
    {"LRN", "T[2,5,3,2]", "size=3", F},
    {"LRN", "T[2,40,700]", "size=5", F},
    {"LRN", "f32[2,7,4]", "size=4 alpha=0.5 beta=0.5 bias=2.0"},
    {"LRN", "f32[1,3,2,2]", "size=9 alpha=1.0"},
    {"LRN", "f32[0,3,2,2]", "size=3"},
    {"LRN@1", "f32[1,3,2,2]", "size=3"},
    {"LRN", "f32[3]", "size=3", .fails = ORTC_SHAPE_MISMATCH},
    {"LRN", "f32[1,3,2]", "size=0", .fails = ORTC_INVALID_MODEL},
    {"MeanVarianceNormalization", "T[2,3,4,5]", "", F, .tolerance = 4},
    {"MeanVarianceNormalization", "f32[2,3,4]", "axes=[-1]", .tolerance = 4},
    {"MeanVarianceNormalization", "T[2,3,40,50]={0.1}", "", F, .tolerance = 4},
    {"MeanVarianceNormalization", "T[2,3,100,90]", "", F, .tolerance = 4},
    {"MeanVarianceNormalization", "f32[3,4]", "axes=[0,1]", .tolerance = 4},
    {"MeanVarianceNormalization", "f32[2,0,4,5]", ""},
    {"MeanVarianceNormalization@9", "f32[2,3,4,5]", "", .tolerance = 4},
    {"MeanVarianceNormalization", "f32[2,3]", "", .fails = ORTC_INVALID_MODEL},
    {0},
};
