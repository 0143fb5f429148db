/* kernels/norm/cases.c: cases for BatchNormalization, with given statistics and with the batch's own. */
#include "kernels/common/cases.h"

#define F "T=f32,f64,f16,bf16"
#define VAR(t, c) t "[" c "] " t "[" c "] " t "[" c "] " t "[" c "]=0.1..2.0"

const ortc_case ortc_cases_norm[] = {
    {"BatchNormalization", "T[2,3,4,5] " VAR("T", "3"), "", F},
    {"BatchNormalization", "f32[1,17,3,3] f32[17]! f32[17]! f32[17]! f32[17]=0.1..2.0!", "epsilon=0.01"},
    {"BatchNormalization", "A[2,3,4] B[3] B[3] C[3] C[3]=0.1..2.0", "", "A=f32,f16,bf16,f64 B=f32,f16 C=f64,bf16"},
    {"BatchNormalization", "T[5,7] " VAR("T", "7"), "", F},
    {"BatchNormalization", "f32[5] " VAR("f32", "1"), ""},
    {"BatchNormalization", "f32[0,3,2] " VAR("f32", "3"), ""},
    {"BatchNormalization", "f32[2,0,2] " VAR("f32", "0"), ""},
    {"BatchNormalization", "T[2,3,33]~ " VAR("T", "3"), "", F},
    {"BatchNormalization", "f32[2,3,4] f32[3] f32[3] f32[3] f32[3]={0,-1,1}", ""},
    {"BatchNormalization", "T[2,3,4,5] " VAR("T", "3"), "training_mode=1", F, .outputs = 3},
    {"BatchNormalization", "f32[4,3,5] " VAR("f32", "3"), "training_mode=1 momentum=0.3 epsilon=0.1", .outputs = 3},
    {"BatchNormalization", "f16[4,3,5] f16[3] f16[3] f32[3] f32[3]=0.1..2.0", "training_mode=1", .outputs = 3},
    {"BatchNormalization", "f32[4,3] " VAR("f32", "3"), "training_mode=1"},
    {"BatchNormalization@14", "T[2,3,4,5] " VAR("T", "3"), "", F},
    {"BatchNormalization@14", "f32[2,3,4,5] " VAR("f32", "3"), "training_mode=1", .outputs = 3},
    {"BatchNormalization@9", "T[2,3,4,5] " VAR("T", "3"), "epsilon=0.1", "T=f32,f64,f16"},
    {"BatchNormalization@9", "f32[2,3,4,5] " VAR("f32", "3"), "", .outputs = 3},
    {"BatchNormalization@7", "f32[2,3,4,5] " VAR("f32", "3"), ""},
    {"BatchNormalization@7", "f32[2,3,4] " VAR("f32", "3,4"), "spatial=0", .fixed = "channels and their elements become one dim"},
    {"BatchNormalization@6", "f32[2,3,4,5] " VAR("f32", "3"), "is_test=1"},
    {"BatchNormalization@6", "f32[2,3,4,5] " VAR("f32", "3"), ""},
    {"BatchNormalization@1", "f32[2,3,4,5] " VAR("f32", "3"), "is_test=1 consumed_inputs=[0,0,0,0,0]"},
    {"BatchNormalization", "f32[2,3,4] " VAR("f32", "4"), "", .fails = ORTC_SHAPE_MISMATCH},
    {"BatchNormalization", "f32[2,3,4] " VAR("f32", "3,1"), "", .fails = ORTC_SHAPE_MISMATCH},
    {0},
};
