/* kernels/select/cases.c: cases for operators whose result is as long as the data says. */
#include "kernels/common/cases.h"

#define ALL \
    "T=f32,f64,f16,bf16,i8,i16,i32,i64,u8,u16,u32,u64,bool,c64,c128,f8e4m3fn,f8e4m3fnuz,f8e5m2,f8e5m2fnuz," \
    "u4,i4,f4e2m1,f8e8m0,u2,i2,f6e2m3,f6e3m2"

#define PLAIN "T=f32,f64,f16,bf16,i8,i16,i32,i64,u8,u16,u32,u64,bool,c64,c128"
#define BOXES "f32[1,6,4]={0,0,1,1,0,0.1,1,1.1,0,-0.1,1,0.9,0,10,1,11,0,10.1,1,11.1,0,100,1,101}"
#define CENTRED "f32[1,6,4]={0.5,0.5,1,1,0.5,0.6,1,1,0.5,0.4,1,1,0.5,10.5,1,1,0.5,10.6,1,1,0.5,100.5,1,1}"
#define SCORES "f32[1,1,6]={0.9,0.75,0.6,0.95,0.5,0.3}"

const ortc_case ortc_cases_select[] = {
    {"NonZero", "T[3,5]", "", ALL},
    {"NonZero", "f32[2,3,4]={0,1,0,2,0,0,3,nan,-0.0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,4}", ""},
    {"NonZero", "f32[17]={0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}", ""},
    {"NonZero", "bool[2,0,3]", ""},
    {"NonZero", "i64[1,1,1,1]={5}", ""},
    {"NonZero", "T[3,70,300]=-1.0..1.0", "", "T=i8,i32,i64,f32,f16", .needs = "cpu"},
    {"NonZero", "T[]={2}", "", "T=f32,u8"},
    {"NonZero@9", "i32[2,2]={0,1,1,0}", ""},
    {"NonZero", "string[3]={a,,b}", ""},

    {"Compress", "T[3,4] bool[3]={0,1,1}", "axis=0", PLAIN},
    {"Compress", "f32[3,4] bool[2]={0,1}", "axis=-1"},
    {"Compress", "f32[2,9] bool[9]={1,1,0,1,0,0,1,1,1}", "axis=1"},
    {"Compress", "f32[3,4] bool[5]={0,1,0,0,1}", ""},
    {"Compress", "f32[2,3,4] bool[3]={1,0,1}!", "axis=1"},
    {"Compress", "f32[2,0,4] bool[2]={1,0}", "axis=2"},
    {"Compress", "f32[3] bool[3]={0,0,0}", ""},
    {"Compress", "string[3]={a,bc,d} bool[3]={1,0,1}", "axis=0"},
    {"Unique", "string[5]={b,,a,bc,b}", "", .outputs = 4},
    {"Unique", "string[3,2]={b,a,b,a,a,b}", "axis=0", .outputs = 4},
    {"Compress@9", "f32[3,2] bool[3]={0,1,0}", "axis=0"},
    {"Compress", "f32[3,2] bool[4]={0,1,0,1}", "axis=0", .fails = ORTC_INVALID_ARGUMENT},
    {"Compress", "f32[3,2] bool[4]={0,1,0,0}", "axis=0"},
    {"Compress", "f32[3,2] bool[2,1]={0,1}", "axis=0", .fails = ORTC_SHAPE_MISMATCH},
    {"Compress", "f32[3,2] bool[2]={0,1}", "axis=2", .fails = ORTC_INVALID_MODEL},

    {"Unique", "T[17]", "", PLAIN, .outputs = 4},
    {"Unique", "T[6]={2,1,1,3,4,3}", "sorted=0", PLAIN, .outputs = 4},
    {"Unique", "f32[9]={2,nan,1,-0.0,0,nan,inf,-inf,2}", "", .outputs = 4},
    {"Unique", "f32[3,3]={1,0,0,1,0,0,2,3,4}", "axis=0", .outputs = 4},
    {"Unique", "f32[2,4,2]={1,1,0,1,2,1,0,1,1,1,0,1,2,1,0,1}", "axis=1", .outputs = 4},
    {"Unique", "i64[2,4,2]={1,1,0,1,2,1,0,1,1,1,0,1,2,1,0,1}", "axis=-2 sorted=0", .outputs = 2},
    {"Unique", "f32[3,4]", "", .outputs = 1},
    {"Unique", "f32[0]", "", .outputs = 4},
    {"Unique", "f32[3,0]", "axis=0", .outputs = 4},
    {"Unique@11", "i8[5]", "", .outputs = 4},
    {"Unique", "i8[5]", "axis=1", .fails = ORTC_INVALID_MODEL},

    {"NonMaxSuppression", BOXES " " SCORES " i64[]={3} f32[]={0.5} f32[]={0.0}", ""},
    {"NonMaxSuppression", BOXES " " SCORES " i64[1]={2} f32[1]={0.5} f32[1]={0.4}", ""},
    {"NonMaxSuppression", CENTRED " " SCORES " i64[]={3}! f32[]={0.5}! f32[]={0.0}!", "center_point_box=1"},
    {"NonMaxSuppression", BOXES " " SCORES " i64[]={30}", ""},
    {"NonMaxSuppression", BOXES " " SCORES, ""},
    {"NonMaxSuppression", "f32[2,40,4] f32[2,3,40] i64[]={9} f32[]={0.2} f32[]={-0.5}", ""},
    {"NonMaxSuppression", "f32[1,7,4] f32[1,1,7]~ i64[]={9} f32[]={0.2}", ""},
    {"NonMaxSuppression", "f32[2,400,4]=0.0..9.0 f32[2,5,400] i64[]={50} f32[]={0.1} f32[]={-0.5}", "",
     .needs = "cpu"},
    {"NonMaxSuppression", "f32[1,400,4]=0.5..3.0 f32[1,2,400] i64[]={400} f32[]={0.6}", "center_point_box=1"},
    {"NonMaxSuppression", "f32[1,0,4] f32[1,2,0] i64[]={9}", ""},
    {"NonMaxSuppression@10", "f32[1,7,4] f32[1,1,7] i64[]={9} f32[]={0.2}", ""},
    {"NonMaxSuppression", "f32[1,7,3] f32[1,1,7] i64[]={9}", "", .fails = ORTC_SHAPE_MISMATCH},
    {"NonMaxSuppression", "f32[1,7,4] f32[1,1,8] i64[]={9}", "", .fails = ORTC_SHAPE_MISMATCH},
    {0},
};
