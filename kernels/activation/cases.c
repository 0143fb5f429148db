/* kernels/activation/cases.c: cases for the activations: every type, odd sizes, no elements, what is not a
 * number. */
#include "kernels/common/cases.h"

#define F "T=f32,f64,f16,bf16"
#define F_OLD "T=f32,f64,f16"
#define I "T=i8,i16,i32,i64"
#define NUM "T=f32,f64,f16,bf16,i8,i16,i32,i64,u8,u16,u32,u64"
/* The lines that every function of one float has. */
/* clang-format off */
#define FUNCTION(op, attrs) \
    {op, "T[2,3,17]", attrs, F}, \
        {op, "T[33]~", attrs, F}, \
        {op, "T[]", attrs, F}, \
        {op, "T[3,0,2]", attrs, F}, \
        {op, "f32[64]=-100.0..100.0", attrs}, \
        {op, "f64[31]=-1e3..1e3", attrs}, \
        {op, "f32[1]", attrs}, \
        {op, "f32[4,8,16]", attrs}, \
        {op, "T[3,1040]", attrs, F}
/* clang-format on */

const ortc_case ortc_cases_activation[] = {
    FUNCTION("Relu", ""),
    {"Relu", "T[2,15]", "", I},
    {"Relu", "i64[2]={-9223372036854775808,9223372036854775807}", ""},
    {"Relu@13", "T[7]~", "", F},
    {"Relu@6", "T[7]~", "", F_OLD},
    {"Relu@1", "T[7]~", "consumed_inputs=[0]", F_OLD},

    FUNCTION("LeakyRelu", ""),
    FUNCTION("LeakyRelu", "alpha=0.3"),
    {"LeakyRelu@6", "T[7]", "alpha=0.3", F_OLD},
    {"LeakyRelu@1", "T[7]", "consumed_inputs=[0]", F_OLD},

    {"PRelu", "T[2,3,4] T[2,3,4]", "", "T=f32,f64,f16,bf16,i32,i64,u32,u64"},
    {"PRelu", "T[2,3,4] T[3,1]", "", "T=f32,i64"},
    {"PRelu", "f32[2,3,4]~ f32[]", ""},
    {"PRelu", "f32[2,0] f32[1]", ""},
    {"PRelu@9", "f32[2,3,4] f32[4]", ""},
    {"PRelu@6", "f32[2,3,4,5] f32[3]", "", .fixed = "the ranks must be known"},
    {"PRelu@1", "f32[2,3,4,5] f32[1]", "consumed_inputs=[0,0]"},
    {"PRelu", "f32[2,3] f32[2]", "", .fails = ORTC_SHAPE_MISMATCH},
    {"PRelu", "f32[3] f32[2,3]", "", .fails = ORTC_SHAPE_MISMATCH},

    {"Clip", "T[2,3] T[1]={-1} T[]={1}", "", "T=f32,i32"},
    {"Clip", "f32[2,3] f32[3]", "", .fails = ORTC_SHAPE_MISMATCH},
    {"Clip", "i64[2,3] i64[] i64[2,3]", "", .fails = ORTC_SHAPE_MISMATCH},
    {"Clip", "T[33] T[]={2}! T[]={5}!", "", NUM},
    {"Clip", "T[2,17] T[]={2} T[]={5}", "", NUM},
    {"Clip", "T[17] - T[]={3}", "", NUM},
    {"Clip", "T[17] T[]={3}", "", NUM},
    {"Clip", "T[17]", "", "T=f32,u64"},
    {"Clip", "T[17] T[]={5} T[]={2}", "", "T=f32,i32,u8"},
    {"Clip", "T[40]~ T[]={-1} T[]={1}", "", F},
    {"Clip", "f32[4] f32[]={nan} f32[]={1}", ""},
    {"Clip", "T[]={7} T[]={0} T[]={5}", "", NUM},
    {"Clip", "f32[0] f32[]={0} f32[]={5}", ""},
    {"Clip", "u64[3]={0,9223372036854775808,18446744073709551615} u64[]={1} u64[]={9223372036854775809}", ""},
    {"Clip@12", "T[9] T[]={2}! T[]={5}!", "", "T=f32,i8"},
    {"Clip@11", "T[9] T[]={0} T[]={1}", "", F_OLD},
    {"Clip@6", "T[33]", "min=-0.5 max=0.75", F_OLD},
    {"Clip@6", "T[40]~", "", "T=f32,f64"},
    {"Clip@6", "f32[9]", "max=0.5"},
    {"Clip@1", "f32[40]~", "min=-0.5 consumed_inputs=[0]"},

    FUNCTION("Sigmoid", ""),
    {"Sigmoid@6", "T[7]", "", F_OLD},
    {"Sigmoid@1", "T[7]", "consumed_inputs=[0]", F_OLD},
    FUNCTION("Tanh", ""),
    {"Tanh@6", "T[7]", "", F_OLD},
    {"Tanh@1", "T[7]", "consumed_inputs=[0]", F_OLD},
    FUNCTION("Gelu", ""),
    FUNCTION("Gelu", "approximate='tanh'"),
    {"Gelu", "f32[3]", "approximate='sine'", .fails = ORTC_INVALID_MODEL},
    FUNCTION("Erf", ""),
    {"Erf@9", "T[7]", "", F_OLD},
    FUNCTION("HardSwish", ""),
    {"HardSwish@14", "T[7]", "", F_OLD},
    FUNCTION("HardSigmoid", ""),
    FUNCTION("HardSigmoid", "alpha=0.5 beta=0.6"),
    {"HardSigmoid@6", "T[7]", "alpha=0.5", F_OLD},
    {"HardSigmoid@1", "T[7]", "beta=0.3", F_OLD},
    FUNCTION("Elu", ""),
    FUNCTION("Elu", "alpha=2.0"),
    {"Elu@6", "T[7]", "alpha=2.0", F_OLD},
    {"Elu@1", "T[7]", "alpha=2.0", F_OLD},
    FUNCTION("Selu", ""),
    FUNCTION("Selu", "alpha=2.0 gamma=3.0"),
    {"Selu@6", "T[7]", "", F_OLD},
    {"Selu@1", "T[7]", "", F_OLD},
    FUNCTION("Celu", ""),
    FUNCTION("Celu", "alpha=2.0"),
    {"Celu@12", "f32[7]", "alpha=2.0"},
    FUNCTION("Softplus", ""),
    {"Softplus@1", "T[7]", "", F_OLD},
    FUNCTION("Softsign", ""),
    {"Softsign@1", "T[7]", "", F_OLD},
    FUNCTION("Mish", ""),
    {"Mish@18", "T[7]", "", F_OLD},
    FUNCTION("Swish", ""),
    FUNCTION("Swish", "alpha=1.702"),
    FUNCTION("ThresholdedRelu", ""),
    FUNCTION("ThresholdedRelu", "alpha=0.5"),
    {"ThresholdedRelu@10", "T[7]", "alpha=0.5", F_OLD},
    {"Shrink", "T[33]", "", "T=f32,f64,f16,i8,i16,i32,i64,u8,u16,u32,u64"},
    {"Shrink", "T[33]", "lambd=1.5 bias=0.75", "T=f32,f64,f16,i8,i16,i32,i64,u8,u16,u32,u64"},
    {"Shrink", "i64[3]={9007199254740993,-9007199254740993,1}", "lambd=1.5 bias=2.0"},
    {"Shrink", "f32[17]~", "bias=1.0"},
    {"SwiGLU", "T[3,5] T[3,5]", "", F},
    {"SwiGLU", "f32[17]~ f32[17]", "alpha=1.702"},
    {"SwiGLU", "f32[3,5] f32[5]", "", .fails = ORTC_SHAPE_MISMATCH},
    {"SwiGLU", "T[2,3,17] T[2,3,17]", "", F},
    {"SwiGLU", "T[33]~ T[33]~", "alpha=1.702", F},
    {"SwiGLU", "f32[0,3] f32[0,3]", ""},
    {"SwiGLU", "f32[2,3] f32[3]", "", .fails = ORTC_SHAPE_MISMATCH},
    {"SwiGLU", "f32[2,3] f32[2,1]", "", .fails = ORTC_SHAPE_MISMATCH},
    {0},
};
