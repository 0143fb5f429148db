/* kernels/generate/cases.c: cases for Range, EyeLike, OneHot: lengths from constants, inputs and types that
 * plans do not read. */
#include "kernels/common/cases.h"

#define NUM "T=f32,f64,f16,bf16,i8,i16,i32,i64,u8,u16,u32,u64"
#define PLAIN NUM ",bool"
#define INDEX "T=f32,f64,f16,i8,i16,i32,i64,u8,u16,u32,u64"

const ortc_case ortc_cases_generate[] = {
    {"Range", "T[]={3} T[]={40} T[]={4}", "", "T=f32,f64,f16,bf16,i16,i32,i64"},
    {"Range", "T[]={3}! T[]={40}! T[]={4}!", "", "T=f32,i16,i32,i64"},
    {"Range", "T[]={10} T[]={4} T[]={-2}", "", "T=f32,i16,i32,i64"},
    {"Range", "T[]={-5} T[]={65000} T[]={2}", "", "T=f32,f64,i32,i64", .needs = "cpu"},
    {"Range", "i64[]={4} i64[]={4} i64[]={1}", ""},
    {"Range", "i64[1]={0} i64[]={333} i64[]={1}", ""},
    {"Range", "f32[]={0.5} f32[]={2.25} f32[]={0.25}", ""},
    {"Range", "f32[]={5} f32[]={2} f32[]={0.25}", ""},
    {"Range@11", "i32[]={0} i32[]={7} i32[]={3}", ""},
    {"Range", "f32[]={0} f32[]={inf} f32[]={1}", "", .fails = ORTC_INVALID_ARGUMENT},
    {"Range", "f32[]={0} f32[]={1} f32[]={0}", "", .fails = ORTC_INVALID_ARGUMENT},
    {"Range", "i64[]={0}! i64[]={1}! i64[]={0}!", "", .fails = ORTC_INVALID_MODEL},
    {"Range", "i16[]={0} i16[]={1} i16[]={0}", "", .fails = ORTC_INVALID_ARGUMENT},
    {"Range", "i64[2]={0} i64[]={1} i64[]={1}", "", .fails = ORTC_SHAPE_MISMATCH},

    {"EyeLike", "T[3,5]", "", PLAIN},
    {"EyeLike", "f32[4,4]", "dtype=T k=-1", PLAIN},
    {"EyeLike", "i32[0,4]", "k=2"},
    {"EyeLike", "f32[3,4]", "k=-9223372036854775807"},
    {"EyeLike", "u8[300,257]", "k=-40"},
    {"EyeLike@9", "f64[2,5]", "k=9"},
    {"EyeLike", "f32[4]", "", .fails = ORTC_SHAPE_MISMATCH},

    {"OneHot", "T[2,3]={0,1,2,3,4,9} i64[]={5} f32[2]={2,7}", "", INDEX},
    {"OneHot", "i64[2,3]={0,1,-1,-5,4,-6} T[1]={5} f32[2]={2,7}", "axis=0", INDEX},
    {"OneHot", "i64[3]={0,1,2}! i64[]={4}! T[2]={1,0}", "axis=1", PLAIN ",c64,c128"},
    {"OneHot", "i32[2,3,2] i32[]={9} i8[2]={3,4}", "axis=-2"},
    {"OneHot", "T[4,70]=-9.0..9.0 i64[]={7}! f32[2]={2,7}", "", "T=i32,i64,f32", .needs = "cpu"},
    {"OneHot", "i32[3,9]=-900.0..900.0 i64[]={700}! T[2]={2,7}", "axis=1", "T=u8,f16,f32,f64,c128"},
    {"OneHot", "i64[2,5000]=-9.0..9.0 i64[]={9}! i8[2]={2,7}", "axis=1"},
    {"OneHot", "i64[3]={0,1,2} i64[]={4} string[2]={off,on}", ""},
    {"OneHot", "i32[] i32[]={9} i8[2]={3,4}", ""},
    {"OneHot", "u64[2]={18446744073709551615,1} i32[]={3} i8[2]={3,4}", ""},
    {"OneHot@9", "i64[0] i64[]={4} f32[2]={0,1}", ""},
    {"OneHot@11", "i64[2] i64[]={0} f32[2]={0,1}", ""},
    {"OneHot", "i64[2] i64[]={4} f32[3]={0,1,2}", "", .fails = ORTC_SHAPE_MISMATCH},
    {"OneHot", "i64[2] i64[]={-4} f32[2]={0,1}", "", .fails = ORTC_INVALID_MODEL},
    {"OneHot", "i64[2] f32[]={-4} f32[2]={0,1}", "", .fails = ORTC_INVALID_ARGUMENT},
    {"OneHot", "i64[2] i64[]={4} f32[2]={0,1}", "axis=3", .fails = ORTC_INVALID_MODEL},
    {0},
};
