/* kernels/order/cases.c: cases for TopK, ArgMax, ArgMin: ties, NaN, every axis, k from constants and
 * inputs. */
#include "kernels/common/cases.h"

#define NUM "T=f32,f64,f16,bf16,i8,i16,i32,i64,u8,u16,u32,u64"
#define F "T=f32,f64,f16,bf16"
/* clang-format off */
#define ARG(op) \
    {op, "T[3,5]", "", NUM}, \
        {op, "T[2,9,4]", "axis=1 keepdims=0", NUM}, \
        {op, "T[2,9,4]", "axis=-2 select_last_index=1", NUM}, \
        {op, "T[6]={1,3,3,1,3,1}", "keepdims=0", NUM}, \
        {op, "T[6]={1,3,3,1,3,1}", "keepdims=0 select_last_index=1", NUM}, \
        {op, "T[7,4]~", "axis=0", F}, \
        {op, "T[5,700]=0.0..3.0", "axis=1", F}, \
        {op, "T[5,700]~", "axis=1 select_last_index=1", F}, \
        {op, "T[2,9,600]=0.0..3.0", "axis=1", F}, \
        {op, "T[2,9,600]~", "axis=1 select_last_index=1", F}, \
        {op, "f32[4]={1,nan,3,nan}", "select_last_index=1"}, \
        {op, "f32[3,0,2]", "axis=0"}, \
        {op "@1", "f32[3,4]", "axis=1"}, \
        {op "@11", "i32[3,4]", "axis=-1 keepdims=0"}, \
        {op "@12", "i8[3,4]", "axis=-1 select_last_index=1"}, \
        {op, "f32[3]", "axis=1", .fails = ORTC_INVALID_MODEL}, \
        {op, "f32[3,0,2]", "axis=1", .fails = ORTC_SHAPE_MISMATCH}
/* clang-format on */

const ortc_case ortc_cases_order[] = {
    {"TopK", "T[3,7] i64[1]={3}!", "", NUM, .outputs = 2},
    {"TopK", "T[2,7,3] i64[1]={4}", "axis=1 largest=0", NUM, .outputs = 2},
    {"TopK", "f32[7,5] i64[1]={7}!", "axis=-2 sorted=0", .outputs = 2},
    {"TopK", "T[9]={1,2,2,3,1,3,2,2,1} i64[1]={6}!", "", NUM, .outputs = 2},
    {"TopK", "T[11]~ i64[1]={11}!", "", F, .outputs = 2},
    {"TopK", "T[11]~ i64[1]={11}!", "largest=0", F, .outputs = 2},
    {"TopK", "f32[333,17] i64[1]={5}!", "axis=0"},
    {"TopK", "T[4,5000] i64[1]={9}!", "", NUM, .needs = "cpu", .outputs = 2},
    {"TopK", "T[3,2000]=0.0..30.0 i64[1]={700}!", "largest=0", NUM, .outputs = 2},
    {"TopK", "f64[7]={nan,-inf,-0.0,0,inf,1,-1} i64[1]={7}!", "largest=0", .outputs = 2},
    {"TopK", "i64[4]={9223372036854775807,-1,-9223372036854775808,5} i64[1]={3}!", "", .outputs = 2},
    {"TopK", "T[2,700,3]~ i64[1]={300}!", "axis=1 largest=0", F, .outputs = 2},
    {"TopK", "f32[3]={-0.0,0,-0.0} i64[1]={3}!", "", .outputs = 2},
    {"TopK", "f32[4] i64[1]={0}!", "", .outputs = 2},
    {"TopK", "f32[0,4] i64[1]={2}!", "", .outputs = 2},
    {"TopK@1", "f32[3,7]", "k=2 axis=1", .outputs = 2},
    {"TopK@10", "f32[3,7] i64[1]={2}", "", .outputs = 2},
    {"TopK@11", "i32[3,7] i64[1]={2}", "largest=0", .outputs = 2},
    {"TopK", "f32[3,7] i64[1]={8}!", "", .fails = ORTC_INVALID_ARGUMENT},
    {"TopK", "f32[3,7] i64[1]={-1}", "", .fails = ORTC_INVALID_ARGUMENT},
    {"TopK", "f32[3,7] i64[2]={1}!", "", .fails = ORTC_SHAPE_MISMATCH},
    {"TopK", "f32[3,7] i64[1]={1}!", "axis=2", .fails = ORTC_INVALID_MODEL},
    ARG("ArgMax"),
    ARG("ArgMin"),
    {0},
};
