/* kernels/reduce/cases.c: cases for the reductions: axes as input and attribute, kept dims, no elements. */
#include "kernels/common/cases.h"

#define F "T=f32,f64,f16,bf16"
#define WIDE "T=f32,f64,f16,bf16,i32,i64,u32,u64"
/* clang-format off */
#define COMMON(op, types) \
    {op, "T[2,3,5] i64[1]={1}!", "", types}, {op, "T[2,3,5] i64[2]={-1,0}", "keepdims=0", types}, \
        {op, "T[2,3,5]", "", types}, {op, "T[2,3,5]", "keepdims=0", types}, \
        {op, "T[2,3,5]", "noop_with_empty_axes=1", types}, \
        {op, "f32[2,3] i64[0]", "noop_with_empty_axes=1"}, \
        {op, "f32[2,3] i64[0]", ""}, \
        {op, "T[]", "", types}, \
        {op, "f32[17,33]=0.5..1.5 i64[1]={0}!", "", .tolerance = 10}, \
        {op, "T[2,19,4,5]=0.5..1.5 i64[2]={2,-1}!", "", types, .tolerance = 10}, \
        {op, "f32[2,32,4,5]=0.5..1.5 i64[2]={3,2}!", "keepdims=0", .tolerance = 10}, \
        {op, "f32[3,20,6]=0.5..1.5 i64[1]={2}!", "keepdims=0", .tolerance = 10}, \
        {op, "f32[2,16,4,5]=0.5..1.5 i64[2]={1,3}!", "", .tolerance = 10}, \
        {op, "f32[2,2,2,2] i64[2]={0,2}!", ""}, {op, "T[3,0,2] i64[1]={0}!", "", "T=f32,i32"}, \
        {op, "T[7,4]~ i64[1]={0}!", "", F}, {op, "f32[2,3] i64[1]={2}!", "", .fails = ORTC_INVALID_MODEL}, \
        {op, "f32[2,3] i64[2]={0,-2}!", "", .fails = ORTC_INVALID_MODEL}, \
        {op "@11", "f32[2,3,4]", "axes=[-2]"}, \
        {op "@11", "f32[2,3,4]", "keepdims=0"}, \
        {op "@1", "T[2,3,4]", "axes=[0,2] keepdims=0", "T=f32,f64,f16,i32,u64"}
/* clang-format on */
#define SINCE_18(op) \
    {op "@18", "f32[2,3] i64[1]={1}", ""}, { op "@13", "f32[2,3]", "axes=[1]" }
#define EMPTY(op, types) \
    {op, "T[2,0,3] i64[1]={1}!", "", types}, { op, "T[0]", "keepdims=0", types }

const ortc_case ortc_cases_reduce[] = {
    COMMON("ReduceSum", WIDE),
    EMPTY("ReduceSum", WIDE),
    COMMON("ReduceMean", WIDE),
    EMPTY("ReduceMean", F),
    SINCE_18("ReduceMean"),
    COMMON("ReduceMax", WIDE ",i8,u8,bool"),
    EMPTY("ReduceMax", WIDE ",i8,u8,bool"),
    SINCE_18("ReduceMax"),
    COMMON("ReduceMin", WIDE ",i8,u8,bool"),
    EMPTY("ReduceMin", WIDE ",i8,u8,bool"),
    SINCE_18("ReduceMin"),
    {"ReduceSum", "T[40000]", "", "T=f32,i64,u32"},
    {"ReduceSum", "f64[3,301] i64[1]={1}", "", .tolerance = 8},
    {"ReduceMean", "f64[301,3] i64[1]={0}", "", .tolerance = 8},
    {"ReduceMax", "T[3,301] i64[1]={1}", "", "T=f64,u8"},
    {"ReduceMin", "f64[2,70]={nan} i64[1]={1}", ""},
    {"ReduceMax", "f32[3,20000] i64[1]={1}", ""},
    /* many short rows */
    {"ReduceL2", "f32[70,3,10] i64[1]={-1}", ""},
    {"ReduceMax", "f32[70,17]~ i64[1]={-1}", ""},
    {"ReduceMin", "T[131,16]~ i64[1]={-1}", "keepdims=0", "T=f32,f16"},
    {"ReduceLogSumExp", "f32[70,5] i64[1]={1}", ""},
    {"ReduceMean", "f32[65,33] i64[1]={1}", ""},
    {"ReduceL1", "f32[7,3,10] i64[1]={1}", ""},
    {"ReduceSum", "f32[9,2,10,3] i64[2]={2,3}", "keepdims=0"},
    {"ReduceSum", "T[3,700] i64[1]={-1}", "", "T=f32,f16,i32"},
    {"ReduceMean", "T[5,37,70] i64[1]={1}", "keepdims=0", "T=f32,f16"},
    /* short rows, some together */
    {"ReduceSum", "T[67,30]~ i64[1]={1}", "", "T=f32,f16,bf16"},
    {"ReduceMax", "T[67,17]~ i64[1]={1}", "", "T=f32,f16,bf16"},
    {"ReduceMin", "T[67,8]~ i64[1]={1}", "", "T=f32,f16,bf16"},
    {"ReduceProd", "T[67,31] i64[1]={1}", "", "T=f32,f16,bf16"},
    {"ReduceL1", "T[67,32] i64[1]={1}", "", "T=f32,f16,bf16"},
    {"ReduceL2", "T[67,5] i64[1]={1}", "", "T=f32,f16,bf16"},
    {"ReduceMean", "T[67,1]~ i64[1]={1}", "", "T=f32,f16,bf16"},
    {"ReduceSum", "f32[20000,3] i64[1]={0}", ""},
    {"ReduceLogSumExp", "T[300,700] i64[1]={0}", "", "T=f32,f16"},
    {"ReduceMean", "f32[400,600]", ""},
    {"ReduceMin", "f32[3,2,40000]~ i64[2]={0,2}", ""},
    {"ReduceLogSumExp", "f32[100000]", ""},
    {"ReduceL1", "T[6,5,4,3,2] i64[3]={0,2,4}", "keepdims=0", "T=f32,bf16"},
    {"ReduceMax", "T[4,5,6,7] i64[2]={0,2}", "keepdims=0", "T=f32,i64"},
    {"ReduceMax@12", "T[2,3]", "axes=[1]", "T=f32,i8,u8"},
    {"ReduceMin@12", "T[2,3]", "axes=[1]", "T=f32,i8,u8"},
    COMMON("ReduceProd", WIDE),
    EMPTY("ReduceProd", WIDE),
    SINCE_18("ReduceProd"),
    /* f32 holds the whole product, and not that of the first two */
    {"ReduceProd", "f32[2,4]={1e30,1e30,1e-30,2e-30,3,1e38,1e9,1e-38} i64[]={1}!", ""},
    {"ReduceProd", "f32[4,2]={1e30,3,1e30,1e38,1e-30,1e9,2e-30,1e-38} i64[]={0}!", ""},
    COMMON("ReduceL1", WIDE),
    EMPTY("ReduceL1", WIDE),
    SINCE_18("ReduceL1"),
    COMMON("ReduceL2", WIDE),
    EMPTY("ReduceL2", WIDE),
    SINCE_18("ReduceL2"),
    COMMON("ReduceSumSquare", WIDE),
    EMPTY("ReduceSumSquare", WIDE),
    SINCE_18("ReduceSumSquare"),
    COMMON("ReduceLogSum", WIDE),
    EMPTY("ReduceLogSum", F),
    SINCE_18("ReduceLogSum"),
    COMMON("ReduceLogSumExp", WIDE),
    EMPTY("ReduceLogSumExp", F),
    SINCE_18("ReduceLogSumExp"),
    {0},
};
