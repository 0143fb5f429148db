/* kernels/training/cases.c: cases for optimisers: one tensor and two, of both types, the first step and a
 * later one. */
#include "kernels/common/cases.h"

#define D "ai.onnx.preview.training:"
#define RT "R[]={0.1} i64[]={2} "
#define R " R=f32,f64"

const ortc_case ortc_cases_training[] = {
    {D "Adagrad@1", RT "T[3] T[3] T[3]=0.5..2", "decay_factor=0.1 norm_coefficient=0.001", "T=f32,f64" R,
     .outputs = 2},
    {D "Adagrad@1", "f32[]={0.1} i64[]={0} f32[3] f64[2,2] f32[3] f64[2,2] f32[3]=0.5..2 f64[2,2]=0.5..2", "",
     .outputs = 4},
    {D "Adam@1", RT "T[3] T[3] T[3] T[3]=0.5..2", "norm_coefficient=0.001 norm_coefficient_post=0.1",
     "T=f32,f64" R, .outputs = 3},
    {D "Adam@1",
     "f32[]={0.1} i64[]={0} f32[3] f32[2] f32[3] f32[2] f32[3] f32[2] f32[3]=0.5..2 f32[2]=0.5..2", "",
     .outputs = 6},
    {D "Momentum@1", RT "T[3] T[3] T[3]", "alpha=0.9 beta=0.5 norm_coefficient=0.01 mode='standard'",
     "T=f32,f64" R, .outputs = 2},
    {D "Momentum@1", "f32[]={0.1} i64[]={0} f32[3] f32[2] f32[3] f32[2] f32[3] f32[2]",
     "alpha=0.9 beta=0.5 norm_coefficient=0.01 mode='nesterov'", .outputs = 4},
    {D "Momentum@1", RT "f32[3] f32[3] f32[3]", "alpha=0.9 beta=0.5 norm_coefficient=0.01 mode='other'",
     "R=f32", .fails = ORTC_INVALID_MODEL},
    {D "Adam@1", RT "f32[3] f32[3] f32[3]", "", "R=f32", .fails = ORTC_INVALID_MODEL},
    {0},
};
