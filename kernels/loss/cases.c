/* kernels/loss/cases.c: cases for the losses: reductions, weights, classes that are ignored. */
#include "kernels/common/cases.h"

#define F "T=f32,f64,f16,bf16"
/* clang-format off */
#define LOSS(op) \
    {op, "T[3,5] I[3]={0,4,2}", "", F " I=i32,i64"}, \
        {op, "T[2,3,2,2] i64[2,2,2]={0,1,2,0,1,2,0,1} T[3]=0.2..2", "", F}, \
        {op, "f32[3,5] i64[3]={0,4,2}", "reduction='sum'"}, \
        {op, "f32[2,3,4] i64[2,4]={0,1,2,0,1,2,0,1}", "reduction='none'"}, \
        {op, "f32[3,5] i64[3]={0,-100,2}", "ignore_index=-100"}, \
        {op, "f32[3,5] i64[3]={0,4,2} f32[5]", "ignore_index=4"}, \
        {op, "f32[3,5] i64[3]={7,7,7}", "ignore_index=7"}, \
        {op, "f32[0,5] i64[0]", ""}, \
        {op, "f32[0,5] i64[0]", "reduction='none'"}, \
        {op "@12", "f32[3,5] i64[3]={0,4,2}", "reduction='none'"}, \
        {op, "f32[3,5] i64[3]={0,5,2}", "", .fails = ORTC_INVALID_ARGUMENT}, \
        {op, "f32[3,5] i64[4]={0}", "", .fails = ORTC_SHAPE_MISMATCH}, \
        {op, "f32[3,5] i64[3]={0} f32[4]", "", .fails = ORTC_SHAPE_MISMATCH}, \
        {op, "f32[3] i64[3]={0}", "", .fails = ORTC_SHAPE_MISMATCH}, \
        {op, "f32[3,5] i64[3]={0}", "reduction='max'", .fails = ORTC_INVALID_MODEL}
/* clang-format on */

const ortc_case ortc_cases_loss[] = {
    LOSS("NegativeLogLikelihoodLoss"),
    LOSS("SoftmaxCrossEntropyLoss"),
    {"SoftmaxCrossEntropyLoss", "T[3,5,2] i64[3,2]={0,4,2,1,1,0}", "", F, .outputs = 2},
    {"SoftmaxCrossEntropyLoss", "f32[2,3]={1000,0,-1000,-inf,0,1} i64[2]={2,0}", "reduction='none'",
     .outputs = 2},
    {0},
};
