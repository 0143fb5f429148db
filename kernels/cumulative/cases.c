/* kernels/cumulative/cases.c: cases for CumSum and CumProd: every axis and direction. */
#include "kernels/common/cases.h"

#define WIDE "T=f32,f64,f16,bf16,i32,i64,u32,u64"
/* clang-format off */
#define CUMULATIVE(op) \
    {op, "T[3,5] I[]={1}", "", WIDE " I=i32,i64"}, {op, "T[3,5] i64[]={0}!", "exclusive=1", WIDE}, \
        {op, "T[2,7,3] i64[1]={-2}", "reverse=1", WIDE}, \
        {op, "T[4] i64[]={0}", "reverse=1 exclusive=1", WIDE}, \
        {op, "i64[5]={1,2,3,4,5}! i64[]={0}!", "exclusive=1"}, \
        {op, "i64[5]={1,2,3,4,5} i64[]={0}", "reverse=1"}, \
        {op, "T[3,5] I[]={1}!", "", WIDE " I=i32,i64"}, {op, "T[2,7,3] i64[1]={-2}!", "reverse=1", WIDE}, \
        {op, "f32[2,600]=-1.0..1.0 i64[]={1}!", ""}, \
        {op, "f32[2,300]=-1.0..1.0 i64[]={1}!", "exclusive=1 reverse=1"}, \
        {op, "T[2,40,300]=-0.5..0.5 i64[]={1}!", "exclusive=1", "T=f32,f64,f16,bf16", \
             .needs = "cpu:f32 cpu:f64 cpu:f16 cpu:bf16"}, \
        {op, "T[2,40,600] i64[]={1}!", "reverse=1", "T=i32,u64"}, \
        {op, "T[19,70]=-0.1..0.1 i64[]={1}!", "", "T=f32,f64,f16,bf16"}, \
        {op, "T[19,70] i64[]={1}!", "reverse=1 exclusive=1", "T=i32,u64"}, \
        {op, "T[3,900]=-0.1..0.1 i64[]={1}", "", "T=f32,f16"}, \
        {op, "f32[9]~ i64[]={0}", ""}, {op, "f32[3,0,2] i64[]={1}", ""}, \
        {op, "f32[3] i64[]={1}!", "", .fails = ORTC_INVALID_MODEL}, \
        {op, "f32[3] i64[]={-2}", "", .fails = ORTC_INVALID_ARGUMENT}, \
        {op, "f32[3] i64[2]={0,0}", "", .fails = ORTC_SHAPE_MISMATCH}
/* clang-format on */

const ortc_case ortc_cases_cumulative[] = {
    CUMULATIVE("CumSum"),
    {"CumSum@11", "f32[2,3] i32[]={1}", ""},
    CUMULATIVE("CumProd"),
    {0},
};
