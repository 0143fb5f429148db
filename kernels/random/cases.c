/* kernels/random/cases.c: cases for random operators: seeded by attribute, so that every way of running draws
 * the same; the distributions are tested by tests/python/test_models.py.
 */
#include "kernels/common/cases.h"

#define F "T=f32,f64,f16,bf16"
#define ANY "T=f32,f64,f16,bf16,i8,i16,i32,i64,u8,u16,u32,u64,bool,c64,c128"
#define OWN "its seed is the run's and the node's"
#define SEED "a node's seed depends on its place"

const ortc_case ortc_cases_random[] = {
    {"RandomNormal", "", "shape=[3,5] dtype=T seed=7.0 mean=2.0 scale=0.5", F},
    {"RandomNormal", "", "shape=[0,5] seed=7.0"},
    {"RandomNormal", "", "shape=[17,333] seed=-1.5"},
    {"RandomNormal", "", "shape=[4]", .alone = OWN},
    {"RandomNormal@1", "", "shape=[3] seed=7.0"},
    {"RandomNormal", "", "shape=[3,-1]", .fails = ORTC_INVALID_MODEL},
    {"RandomUniform", "", "shape=[3,5] dtype=T seed=7.0 low=-1.0 high=3.0", F},
    {"RandomUniform", "", "shape=[3,5]", .alone = OWN},
    {"RandomNormalLike", "T[3,5]", "dtype=1 seed=0.5", ANY},
    {"RandomNormalLike", "T[3,5]", "seed=0.5", F},
    {"RandomNormalLike", "string[2]={a,b}", "dtype=11 seed=0.5"},
    {"RandomUniformLike", "T[3,5]", "dtype=1 seed=0.5", ANY},
    {"RandomUniformLike", "T[3,5]", "seed=0.5", F},
    {"RandomUniformLike", "string[2]={a,b}", "dtype=11 seed=0.5"},
    {"RandomUniformLike", "i32[3]", "seed=0.5", .fails = ORTC_TYPE_MISMATCH},
    {"Bernoulli", "S[4,33]=0.0..1 ", "seed=3.0 dtype=T",
     "S=f32 T=f32,f64,f16,bf16,i8,i16,i32,i64,u8,u16,u32,u64,bool"},
    {"Bernoulli", "T[4,33]=0.0..1", "seed=3.0", F},
    {"Bernoulli@15", "f32[2,3,4]={0.5}", "seed=3.0"},
    {"Multinomial", "T[3,5]", "sample_size=7 seed=1.0 dtype=I", F " I=i32,i64"},
    {"Multinomial@7", "f32[2,3]={0,-inf,-inf,1,2,3}", "sample_size=4 seed=1.0"},
    {"Multinomial", "f32[3]", "", .fails = ORTC_SHAPE_MISMATCH},
    {"Multinomial", "f32[0,5]", "sample_size=7 seed=1.0"},
    {"Dropout", "T[3,7]", "", "T=f32,f64,f16,bf16,f8e4m3fn,f8e4m3fnuz,f8e5m2,f8e5m2fnuz"},
    {"Dropout", "f32[3,7]~", "", .outputs = 2},
    {"Dropout", "f32[3,7] f32[]={0.3} bool[]={0}", "seed=1", .outputs = 2},
    {"Dropout", "f32[700] f32[]={0.3} bool[]={1}", "seed=1", .outputs = 2},
    {"Dropout", "f32[33] f32[]={0.3} bool[]={1}", "", .outputs = 2, .alone = SEED},
    {"Dropout", "f32[33] f16[]={0}! bool[]={1}!", "", .outputs = 2},
    {"Dropout", "f32[33] - bool[]={1}!", "", .alone = SEED},
    {"Dropout", "f32[3] f32[]={1.5}! bool[]={1}!", "", .fails = ORTC_INVALID_ARGUMENT},
    {"Dropout@13", "f32[3,7] f32[]={0.5}", ""},
    {"Dropout@12", "f32[3,7]", "seed=3"},
    {"Dropout@10", "f32[3,7]", "ratio=0.5", .outputs = 2},
    {"Dropout@7", "f32[3,7]", "ratio=0.1"},
    {"Dropout@7", "T[3,7]", "ratio=0.1", "T=f32,f16,f64", .outputs = 2},
    {"Dropout@6", "f32[3,7]", "is_test=1", .outputs = 2},
    {"Dropout@6", "f32[3,7]", "is_test=1"},
    {"Dropout@1", "f32[3,7]", "is_test=0 consumed_inputs=[0]"},
    {0},
};
