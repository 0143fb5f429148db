/* kernels/index/cases.c: cases for taking and putting by indices: every type, negative and equal indices, batches, reductions. */
#include "kernels/common/cases.h"

#define PLAIN "T=f32,f64,f16,bf16,i8,i16,i32,i64,u8,u16,u32,u64,bool,c64,c128"
#define NUM "T=f32,f64,f16,bf16,i8,i16,i32,i64,u8,u16,u32,u64"

const ortc_case ortc_cases_index[] = {
    {"GatherElements", "T[3,4] I[2,4]={0,1,2,-1,-3,0,0,1}", "", PLAIN " I=i32,i64"},
    {"GatherElements", "f32[2,3,4] i64[2,2,4]={0,1,2,0,1,0,2,2,0,1,1,-1,0,0,0,1}", "axis=1"},
    {"GatherElements", "f32[2,3] i64[1,5]={2,2,0,-1,-3}!", "axis=-1"},
    {"GatherElements", "f32[2,3] i64[0,3]", ""},
    {"GatherElements@11", "f32[3] i32[2]={1,1}", ""},
    {"GatherElements", "f32[2,3] i64[1,2]={2,3}", "axis=1", .fails = ORTC_INVALID_ARGUMENT},
    {"GatherElements", "f32[2,3] i64[3,2]={0}", "axis=1", .fails = ORTC_SHAPE_MISMATCH},
    {"GatherElements", "f32[2,3] i64[3]={0}", "axis=1", .fails = ORTC_SHAPE_MISMATCH},

    {"GatherND", "T[3,4] i64[2,2]={0,1,-1,3}", "", PLAIN},
    {"GatherND", "f32[3,4,2] i64[2,1]={2,-3}", ""},
    {"GatherND", "f32[2,3,4] i64[2,1]={2,0}", "batch_dims=1"},
    {"GatherND", "f32[2,3,4,5] i64[2,3,2,1]={0,1,2,3,-1,0,0,1,2,3,-1,0}", "batch_dims=2"},
    {"GatherND", "f32[2,3] i64[4,0]", ""},
    {"GatherND", "f32[2,3] i64[0,2]", ""},
    {"GatherND@11", "f32[2,3] i64[2]={1,2}", ""},
    {"GatherND", "f32[2,3] i64[1,2]={1,3}", "", .fails = ORTC_INVALID_ARGUMENT},
    {"GatherND", "f32[2,3] i64[1,3]={0}", "", .fails = ORTC_SHAPE_MISMATCH},
    {"GatherND", "f32[2,3] i64[1,1]={0}", "batch_dims=2", .fails = ORTC_INVALID_MODEL},
    {"GatherND", "f32[2,3] i64[1,1]={0}", "batch_dims=1", .fails = ORTC_SHAPE_MISMATCH},

    {"ScatterElements", "T[3,4] I[2,4]={0,1,2,-1,1,0,0,1} T[2,4]", "", PLAIN " I=i32,i64"},
    {"ScatterElements", "T[5] i64[4]={1,1,-1,1} T[4]", "reduction='add'", NUM ",c64,c128"},
    {"ScatterElements", "T[5] i64[4]={1,1,-1,1} T[4]", "reduction='mul'", NUM ",c64,c128"},
    {"ScatterElements", "T[5] i64[4]={1,1,-1,1} T[4]", "reduction='min'", NUM},
    {"ScatterElements", "T[5] i64[4]={1,1,-1,1} T[4]", "reduction='max'", NUM},
    {"ScatterElements", "f32[5]~ i64[5]={0,1,2,3,4} f32[5]~", "reduction='max'"},
    {"ScatterElements", "f32[2,5] i64[2,3]={1,4,0,0,0,3} f32[2,3]", "axis=-1"},
    {"ScatterElements", "f32[2,5] i64[0,3] f32[0,3]", "axis=1"},
    {"ScatterElements@11", "f32[3] i64[2]={1,1} f32[2]", ""},
    {"ScatterElements@16", "f32[3] i64[2]={1,1} f32[2]", "reduction='add'"},
    {"Scatter@9", "f32[2,5] i64[2,3]={1,4,0,0,0,3} f32[2,3]", "axis=1"},
    {"ScatterElements", "f32[3] i64[2]={1,3} f32[2]", "", .fails = ORTC_INVALID_ARGUMENT},
    {"ScatterElements", "f32[3] i64[2]={1,2} f32[3]", "", .fails = ORTC_SHAPE_MISMATCH},
    {"ScatterElements", "f32[3] i64[2]={1,2} f32[2]", "reduction='sum'", .fails = ORTC_INVALID_MODEL},
    {"ScatterElements", "c64[3] i64[2]={1,2} c64[2]", "reduction='max'", .fails = ORTC_UNSUPPORTED},

    {"ScatterND", "T[4,3] i64[2,1]={2,-4} T[2,3]", "", PLAIN},
    {"ScatterND", "T[4] i64[3,1]={2,2,0} T[3]", "reduction='add'", NUM ",c64,c128"},
    {"ScatterND", "T[4] i64[3,1]={2,2,0} T[3]", "reduction='mul'", NUM ",c64,c128"},
    {"ScatterND", "T[4] i64[3,1]={2,2,0} T[3]", "reduction='min'", NUM},
    {"ScatterND", "T[4] i64[3,1]={2,2,0} T[3]", "reduction='max'", NUM},
    {"ScatterND", "f32[4,3,2] i64[2,2,2]={0,0,1,1,3,2,-1,-1} f32[2,2,2]", ""},
    {"ScatterND", "f32[4,3] i64[0,1] f32[0,3]", ""},
    {"ScatterND", "f32[2,3] i64[1,0] f32[1,2,3]", ""},
    {"ScatterND@11", "f32[4] i64[2,1]={0,3} f32[2]", ""},
    {"ScatterND", "f32[4] i64[2,1]={0,4} f32[2]", "", .fails = ORTC_INVALID_ARGUMENT},
    {"ScatterND", "f32[4] i64[2,1]={0,3} f32[3]", "", .fails = ORTC_SHAPE_MISMATCH},
    {"ScatterND", "f32[4] i64[2,2]={0,3,0,1} f32[2]", "", .fails = ORTC_SHAPE_MISMATCH},
    {0},
};
