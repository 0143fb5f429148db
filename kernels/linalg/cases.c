/* kernels/linalg/cases.c: cases for determinants: batches, matrices of 0 and 1 elements, singular ones. */
#include "kernels/common/cases.h"

#define F "T=f32,f64,f16,bf16"

const ortc_case ortc_cases_linalg[] = {
    {"Det", "T[2,2]", "", F},
    {"Det", "T[3,2,4,4]", "", F},
    {"Det", "f32[2,1,1]", ""},
    {"Det", "f32[2,0,0]", ""},
    {"Det", "f32[0,3,3]", ""},
    {"Det", "f32[3,3]={0,1,2,0,3,4,0,5,6}", ""},
    {"Det", "f32[3,3]={0,1,2,3,4,5,6,7,9}", ""},
    {"Det", "f32[40,40]", ""},
    {"Det", "f32[5,3,3]~", ""},
    {"Det@11", "T[3,3]", "", "T=f32,f64,f16"},
    {"Det", "f32[3,4]", "", .fails = ORTC_SHAPE_MISMATCH},
    {"Det", "f32[4]", "", .fails = ORTC_SHAPE_MISMATCH},
    {"com.microsoft:Inverse@1", "T[2,3,3]", "", "T=f32,f64,f16", .tolerance = 20},
    {"com.microsoft:Inverse@1", "f32[3,3]={0,2,1,1,0,0,3,0,1}", ""},
    {"com.microsoft:Inverse@1", "f32[2,0,0]", ""},
    {"com.microsoft:Inverse@1", "f32[0,2,2]", ""},
    {"com.microsoft:Inverse@1", "f32[2,3]", "", .fails = ORTC_SHAPE_MISMATCH},
    {0},
};
