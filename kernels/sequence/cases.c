/* kernels/sequence/cases.c: cases for sequences of tensors. SequenceMap holds a graph:
 * tests/python/test_values.py has its cases. */
#include "kernels/common/cases.h"

#define T_PLAIN "T=f32,f64,f16,bf16,i8,i16,i32,i64,u8,u16,u32,u64,bool,string,c64,c128"

const ortc_case ortc_cases_sequence[] = {
    {"SequenceEmpty", "", ""},
    {"SequenceEmpty", "", "dtype=T", T_PLAIN},
    {"SequenceEmpty@11", "", "dtype=7"},
    {"SequenceEmpty", "", "dtype=77", .fails = ORTC_INVALID_MODEL},

    {"SequenceConstruct", "T[2,3] T[4] T[]", "", T_PLAIN},
    {"SequenceConstruct", "f32[0,3]", ""},
    {"SequenceConstruct@11", "i64[2] i64[2]!", ""},
    {"SequenceConstruct", "f32[2] i64[2]", "", .fails = ORTC_TYPE_MISMATCH},

    {"SequenceAt", "seq(T[2,3];T[4];T[]) I[]={1}", "", T_PLAIN " I=i32,i64"},
    {"SequenceAt", "seq(f32[2,3];f32[4]) i64[]={-2}", ""},
    {"SequenceAt@11", "seq(f32[0]) i64[1]={0}", ""},
    {"SequenceAt", "seq(f32[2];f32[4]) i64[]={2}", "", .fails = ORTC_INVALID_ARGUMENT},
    {"SequenceAt", "seq(f32[2];f32[4]) i64[]={-3}", "", .fails = ORTC_INVALID_ARGUMENT},
    {"SequenceAt", "seq(:f32) i64[]={0}", "", .fails = ORTC_INVALID_ARGUMENT},

    {"SequenceInsert", "seq(T[2,3];T[4]) T[2] I[]={1}", "", T_PLAIN " I=i32,i64"},
    {"SequenceInsert", "seq(f32[2];f32[4]) f32[3]", ""},
    {"SequenceInsert", "seq(f32[2];f32[4]) f32[3] i64[]={2}", ""},
    {"SequenceInsert", "seq(f32[2];f32[4]) f32[3] i64[]={-2}", ""},
    {"SequenceInsert@11", "seq(:string) string[3]!", ""},
    {"SequenceInsert", "seq(f32[2]) f32[3] i64[]={2}", "", .fails = ORTC_INVALID_ARGUMENT},
    {"SequenceInsert", "seq(f32[2]) i64[3]", "", .fails = ORTC_TYPE_MISMATCH},

    {"SequenceErase", "seq(T[2,3];T[4]) I[]={0}", "", T_PLAIN " I=i32,i64"},
    {"SequenceErase", "seq(f32[2];f32[4])", ""},
    {"SequenceErase@11", "seq(f32[2]) i64[]={-1}", ""},
    {"SequenceErase", "seq(f32[2]) i64[]={1}", "", .fails = ORTC_INVALID_ARGUMENT},
    {"SequenceErase", "seq(:f32)", "", .fails = ORTC_INVALID_ARGUMENT},

    {"SequenceLength", "seq(T[2,3];T[4])", "", T_PLAIN},
    {"SequenceLength@11", "seq(:f32)", ""},

    {"SplitToSequence", "T[6,2] I[3]={1,2,3}", "", T_PLAIN " I=i32,i64"},
    {"SplitToSequence", "T[2,7] i64[]={3}", "axis=1", T_PLAIN},
    {"SplitToSequence", "f32[2,6] i64[]={3}!", "axis=1"},
    {"SplitToSequence", "f32[2,6] i64[2]={3,3}!", "axis=-1 keepdims=0"},
    {"SplitToSequence", "f32[2,3]", ""},
    {"SplitToSequence", "T[2,3,4]", "axis=1 keepdims=0", T_PLAIN},
    {"SplitToSequence", "f32[0,3]", "keepdims=0"},
    {"SplitToSequence@11", "f32[4] i64[2]={0,4}", ""},
    {"SplitToSequence", "f32[4] i64[2]={1,4}", "", .fails = ORTC_INVALID_ARGUMENT},
    {"SplitToSequence", "f32[4] i64[]={0}", "", .fails = ORTC_INVALID_ARGUMENT},
    {"SplitToSequence", "f32[4]", "axis=1", .fails = ORTC_INVALID_MODEL},

    {"ConcatFromSequence", "seq(T[2,3];T[1,3])", "axis=0", T_PLAIN},
    {"ConcatFromSequence", "seq(T[2,3];T[2,3])", "axis=-1 new_axis=1", T_PLAIN},
    {"ConcatFromSequence", "seq(f32[2,3];f32[2,0];f32[2,1])", "axis=1"},
    {"ConcatFromSequence@11", "seq(f32[];f32[])", "axis=0 new_axis=1"},
    {"ConcatFromSequence", "seq(f32[2];f32[3])", "axis=0 new_axis=1", .fails = ORTC_SHAPE_MISMATCH},
    {"ConcatFromSequence", "seq(f32[2];f32[3])", "axis=1", .fails = ORTC_INVALID_ARGUMENT},
    {"ConcatFromSequence", "seq(:f32)", "axis=0", .fails = ORTC_INVALID_ARGUMENT},
    {0},
};
