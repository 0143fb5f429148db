/* kernels/elementwise/cases.c: cases for arithmetic, comparison, logic, choice and conversion. */
#include "kernels/common/cases.h"

#define F "T=f32,f64,f16,bf16"
#define F_OLD "T=f32,f64,f16"
#define SIGNED "T=f32,f64,f16,bf16,i8,i16,i32,i64"
#define NUM "T=f32,f64,f16,bf16,i8,i16,i32,i64,u8,u16,u32,u64"
#define WHERE NUM_LIST ",bool,string,c64,c128"
#define NUM_LIST "f32,f64,f16,bf16,i8,i16,i32,i64,u8,u16,u32,u64"
#define CASTS NUM_LIST ",bool,f8e4m3fn,f8e4m3fnuz,f8e5m2,f8e5m2fnuz,u4,i4,f4e2m1,f8e8m0,u2,i2,f6e2m3,f6e3m2"
#define CASTS_25 NUM_LIST ",bool,f8e4m3fn,f8e4m3fnuz,f8e5m2,f8e5m2fnuz,u4,i4,f4e2m1,f8e8m0,u2,i2"

/* numpy's broadcasting, for operators of two inputs */
/* clang-format off */
#define BROADCASTS(op, types) \
    {op, "T[3,4] T[3,4]", "", types}, {op, "T[2,3,5] T[5]", "", types}, {op, "T[] T[2,3]", "", types}, \
        {op, "T[] T[]", "", types}, {op, "T[3,1,5] T[4,1]", "", types}, {op, "T[0,3] T[3]", "", types}, \
        {op, "T[1,3] T[0,3]", "", types}, \
        {op, "T[33] T[1]={3}!", "", types}, \
        {op, "T[17] T[17]", "", types}, \
        {op, "T[2,3] T[4]", "", types, .fails = ORTC_SHAPE_MISMATCH}
#define ARITHMETIC(op) \
    BROADCASTS(op, NUM), {op, "T[31]~ T[31]~", "", F}, {op "@13", "T[3] T[3]", "", "T=f32,i32"}, \
        {op "@7", "T[2,3] T[3]", "", "T=f32,u64"}, {op "@6", "T[2,3] T[2,3]", "", "T=f32,i32"}, \
        {op "@6", "f32[2,3,4,5] f32[5]", "broadcast=1"}, {op "@6", "f32[2,3,4,5] f32[]", "broadcast=1"}, \
        {op "@6", "f32[2,3,4,5] f32[3,4]", "broadcast=1 axis=1", .fixed = "the ranks must be known"}, \
        {op "@6", "f32[2,3,4,5] f32[2]", "broadcast=1 axis=-4", .fixed = "the ranks must be known"}, \
        {op "@1", "f32[2,3,4] f32[2,3,4]", "consumed_inputs=[0,0]"}, \
        {op "@6", "f32[2,3,4] f32[3,5]", "broadcast=1 axis=2", .fails = ORTC_INVALID_MODEL}
#define COMPARISON(op, types) \
    BROADCASTS(op, types), {op, "T[40]~ T[40]~", "", F}, \
        {op, "T[4]={0,1,nan,inf} T[4]={-0.0,1,nan,inf}", "", F}
#define FUNCTION(op) \
    {op, "T[2,3,17]", "", F}, {op, "T[33]~", "", F}, {op, "T[]", "", F}, {op, "T[3,0,2]", "", F}, \
        {op, "f32[64]=-100.0..100.0", ""}, {op, "f64[31]=0.0..1.0", ""}, {op, "f32[8]=1.0..50.0", ""}
/* clang-format on */
#define FUNCTION_6(op) \
    FUNCTION(op), {op "@6", "T[7]", "", F_OLD}, { op "@1", "T[7]", "consumed_inputs=[0]", F_OLD }
#define FUNCTION_SINCE(op, version) \
    FUNCTION(op), { op version, "T[7]", "", F_OLD }
/* clang-format off */
#define VARIADIC(op, types) \
    {op, "T[3,4] T[3,4]", "", types}, \
        {op, "T[3,4]", "", types}, \
        {op, "T[2,3,4] T[4] T[3,1] T[]", "", types}, \
        {op, "T[31]~ T[31]~ T[31]", "", F}, {op, "T[0,3] T[3]", "", types}, {op, "f32[300] f32[3,300]", ""}, \
        {op "@8", "T[3] T[2,3]", "", F_OLD}, \
        {op "@6", "T[3] T[3]", "", F_OLD}, \
        {op "@1", "f32[3] f32[3]", "consumed_inputs=[0,0]"}
/* clang-format on */

const ortc_case ortc_cases_elementwise[] = {
    ARITHMETIC("Add"),
    ARITHMETIC("Sub"),
    ARITHMETIC("Mul"),
    ARITHMETIC("Div"),
    {"Add", "T[5,1032] T[5,1032]", "", "T=f32,f16,bf16"}, /* whole packs of many threads, and rows of them */
    {"Mul", "T[9,264] T[264]", "", "T=f32,f16,bf16"},
    {"Sub", "T[264] T[9,264]", "", "T=f32,f16"},
    {"Div", "T[3,2,264] T[3,1,264]", "", "T=f32,f16"},
    {"Add", "T[4,3,16] T[4,1,1]", "", "T=f32,f16,i64"},
    {"Mul", "T[3,1000] T[]={0.125}!", "", "T=f32,f16,bf16"},
    {"Sub", "T[]={1}! T[3,264]", "", "T=f32,f16,i64"},
    {"Div", "T[1]={2}! T[3,264]=0.5..2.0", "", "T=f32,f16"},
    {"Mul", "T[264] T[9,264]", "", "T=f32,f16,bf16"},
    {"Less", "T[]={1}! T[3,264]", "", "T=f32,f16"},
    {"Add", "T[1003] T[1003]", "", "T=f32,f16,i64,u8"},
    {"Add", "T[2,8,3,16] T[8,1,16]", "", "T=f32,f16,i32"},
    {"Mul", "T[3,67,16] T[16]", "",
     "T=f32,f16,i32,i64"}, /* goes round in a long row, which ends within a block */
    {"Mul", "T[2,32,7,9] T[2,32,1,1]", "", "T=f32,f16,bf16"},
    /* constants of each channel, whose last block is not full */
    {"Mul", "T[2,19,7,9] T[19,1,1]!", "", "T=f32,f16,bf16"},
    {"Add", "T[2,8,70] T[2,8,1]!", "", "T=f32,f16"},
    {"Div", "T[1,40,30,31] T[1,40,1,1]!", "", "T=f32"},
    {"Div", "T[3,150,30] T[3,150,1]", "", "T=f32,f16,bf16"}, /* many of them */
    {"Sub", "T[3,150,30] T[150,1]", "", "T=f16,u8,i64"},
    {"Mul", "T[9,37,1] T[37,16]", "", "T=f32,f64,f16,i64,u8"}, /* short rows of one element each */
    {"Add", "T[3,19,7,1] T[7,5]", "", "T=f32,f64,f16,i32"},
    {"Sub", "T[2,31,1,3] T[31,4,1]", "", "T=f32,i64,bf16"},
    {"Add", "T[3,1,16] T[3,700,16]", "", "T=f32,i32"},
    {"Div", "T[6]={7,-7,7,-7,1,0} T[6]={2,2,-2,-2,0,0}", "", SIGNED},
    {"Div", "i64[1]={-9223372036854775808} i64[1]={-1}", ""},
    {"Div", "i8[1]={-128} i8[1]={-1}", ""},
    {"Add", "T[2]={127,-128} T[2]={1,-1}", "", "T=i8"},
    {"Mul", "i64[2]={9223372036854775807,-9223372036854775808} i64[2]={3,-1}", ""},
    {"Sub", "u8[3]={0,5,255} u8[3]={1,7,255}", ""},
    {"Add", "f16[2]={60000,-60000} f16[2]={60000,-60000}", ""},

    {"Pow", "T[2,3]=0.5..3 U[3]={2,3,0}", "", "T=f32,f64,f16,bf16 U=" NUM_LIST},
    {"Pow", "T[2,3] U[3]={2,3,0}", "", "T=i32,i64 U=" NUM_LIST},
    {"Pow", "i32[6]={0,1,-1,2,-2,10} i32[6]={-1,-3,-3,-1,3,20}", ""},
    {"Pow", "f32[4,1] f32[3]", ""},
    {"Pow", "T[3,17]~ U[]={2}!", "", "T=f32,f64,f16,bf16 U=f32,i64"}, /* products */
    {"Pow", "T[3,17]~ f32[1,1]={3}!", "", "T=f32,f64,f16,bf16"},
    {"Pow", "T[17] i64[]={3}!", "", "T=i32,i64"},
    {"Pow", "T[16]~ T[16]~", "", F},
    {"Pow", "f32[0] f32[1]", ""},
    {"Pow@13", "f32[3] i64[3]={1,2,3}", ""},
    {"Pow@12", "i32[3] f32[3]={1,2,3}", ""},
    {"Pow@7", "T[3] T[3]={1,2,3}", "", F_OLD},
    {"Pow@1", "f32[2,3] f32[]={2}", "broadcast=1"},

    BROADCASTS("And", "T=bool"),
    BROADCASTS("Or", "T=bool"),
    BROADCASTS("Xor", "T=bool"),
    {"And@1", "bool[2,3] bool[3]", "broadcast=1"},
    {"Or@1", "bool[2,3] bool[2]", "broadcast=1 axis=0", .fixed = "the ranks must be known"},
    {"Xor@1", "bool[2,3] bool[2,3]", ""},
    COMPARISON("Equal", NUM ",bool"),
    COMPARISON("Greater", NUM),
    COMPARISON("Less", NUM),
    COMPARISON("GreaterOrEqual", NUM),
    COMPARISON("LessOrEqual", NUM),
    {"Equal", "string[3]={a,,bc} string[3]={a,,b}", ""},
    {"Equal", "string[2,2]={a,b,c,d} string[]={c}", ""},
    {"Equal", "T[3]={1,2,9223372036854775807} T[3]={1,3,9223372036854775806}", "", "T=i64,u64"},
    {"Greater", "u64[2]={18446744073709551615,1} u64[2]={1,18446744073709551615}", ""},
    {"Less", "i64[2]={9007199254740993,-1} i64[2]={9007199254740992,0}", ""},
    {"Equal@7", "T[3] T[3]", "", "T=bool,i32,i64"},
    {"Equal@1", "i32[2,3] i32[3]", "broadcast=1"},
    {"Greater@9", "T[3] T[3]", "", "T=f32,u8"},
    {"Greater@7", "T[3] T[3]", "", F_OLD},
    {"Less@1", "f32[2,3] f32[3]", "broadcast=1"},
    {"GreaterOrEqual@12", "f32[2,3] f32[3]", ""},
    {"LessOrEqual@12", "f32[2,3] f32[3]", ""},

    VARIADIC("Min", NUM),
    VARIADIC("Max", NUM),
    VARIADIC("Sum", F),
    VARIADIC("Mean", F),
    {"Min@12", "T[3] T[3]", "", "T=f32,i8,u64"},
    {"Max@12", "T[3] T[3]", "", "T=f32,i8,u64"},
    {"Max", "i64[2]={9223372036854775807,-9223372036854775808} i64[2]={9223372036854775806,0}", ""},
    {"Max", "u64[1]={18446744073709551615} u64[1]={1}", ""},
    {"Min", "f32[2,3] f32[4]", "", .fails = ORTC_SHAPE_MISMATCH},

    FUNCTION_6("Neg"),
    {"Neg", "T[17]", "", "T=i8,i16,i32,i64"},
    {"Neg", "i64[2]={-9223372036854775808,1}", ""},
    FUNCTION_6("Abs"),
    {"Abs", "T[17]", "", NUM},
    {"Abs", "i8[2]={-128,-3}", ""},
    FUNCTION_SINCE("Sign", "@9"),
    {"Sign", "T[17]", "", NUM},
    FUNCTION_6("Sqrt"),
    FUNCTION_6("Exp"),
    FUNCTION_6("Log"),
    FUNCTION_6("Reciprocal"),
    FUNCTION_6("Floor"),
    FUNCTION_6("Ceil"),
    FUNCTION_SINCE("Round", "@11"),
    {"Round", "T[9]={0.5,1.5,2.5,-0.5,-1.5,-2.5,0.49,-0.51,3}", "", F},
    FUNCTION_SINCE("Sin", "@7"),
    FUNCTION_SINCE("Cos", "@7"),
    FUNCTION_SINCE("Tan", "@7"),
    FUNCTION_SINCE("Asin", "@7"),
    FUNCTION_SINCE("Acos", "@7"),
    FUNCTION_SINCE("Atan", "@7"),
    FUNCTION_SINCE("Sinh", "@9"),
    FUNCTION_SINCE("Cosh", "@9"),
    FUNCTION_SINCE("Asinh", "@9"),
    FUNCTION_SINCE("Acosh", "@9"),
    FUNCTION_SINCE("Atanh", "@9"),
    /* flags that are many go by a table of four */
    {"And", "bool[3,1700] bool[3,1700]", ""},
    {"Or", "bool[70000] bool[70000]", ""},
    {"Xor", "bool[4097] bool[1]", ""},
    {"Equal", "bool[5000] bool[5000]", ""},
    {"Not", "bool[70,100]", ""},
    {"Not", "bool[2,3]", ""},
    {"Not", "bool[]", ""},
    {"Not", "bool[0]", ""},

    {"Where", "bool[2,3] T[2,3] T[2,3]", "", "T=" WHERE},
    {"Where", "bool[3,1] T[4] T[]", "", "T=" WHERE},
    {"Where", "bool[] f32[2,3]~ f32[3]", ""},
    {"Where", "bool[0,1] f32[3] f32[]", ""},
    {"Where@9", "bool[2,3] f32[2,3] f32[3]", ""},
    {"Where", "bool[2,3] f32[4] f32[]", "", .fails = ORTC_SHAPE_MISMATCH},

    {"Mod", "T[3,5] T[5]={3,-3,2,-7,5}", "", "T=i8,i16,i32,i64"},
    {"Mod", "T[3,5] T[5]={3,-3,2,-7,5}", "fmod=1", "T=f32,f64,f16,bf16,i8,i16,i32,i64"},
    {"Mod", "T[3,5] T[5]={3,0,2,7,5}", "", "T=u8,u16,u32,u64,f32,f64,f16,bf16"},
    {"Mod", "T[2,1,5] T[3,1]", "", "T=f32,i32"},
    {"Mod", "f32[11]~ f32[11]~", ""},
    {"Mod", "f32[11]~ f32[11]~", "fmod=1"},
    {"Mod", "i64[2]={-9223372036854775808,5} i64[2]={-1,0}", ""},
    {"Mod@10", "i32[4] i32[4]={3}", ""},
    {"IsInf", "T[17]~", "", "T=f32,f64,f16,bf16,f8e4m3fn,f8e4m3fnuz,f8e5m2,f8e5m2fnuz"},
    {"IsInf", "f32[17]~", "detect_negative=0"},
    {"IsInf@10", "f32[17]~", "detect_positive=0"},
    {"IsNaN", "T[17]~", "", "T=f32,f64,f16,bf16,f8e4m3fn,f8e4m3fnuz,f8e5m2,f8e5m2fnuz"},
    {"IsNaN@9", "f32[0,3]", ""},
    {"CastLike", "T[2,9] U[1]", "", "T=" CASTS_25 " U=f32,i32,i64,bool,f8e5m2"},
    {"CastLike", "f32[2,9] T[0]", "", "T=" CASTS_25},
    {"CastLike", "T[2,9] T[1]", "", "T=f64,u32,u64"},
    {"CastLike", "f32[12]=0.01..100.0 f8e8m0[]", "round_mode='down'"},
    {"CastLike@15", "i64[3] f32[]", ""},
    {"CastLike", "T[2,9] string[1]={a}", "", "T=" CASTS_25},
    {"CastLike", "string[4]={1,0,-3,100} T[1]", "", "T=" CASTS_25},
    {"CastLike", "string[2]={1,two} string[0]", ""},
    {"CastLike", "string[2]={1,two} f32[1]", "", .fails = ORTC_INVALID_ARGUMENT},
    {"Cast", "T[2,17]", "to=U", "T=" CASTS " U=" CASTS},
    {"Cast", "T[2,9]~", "to=U",
     "T=f32,f64,f16,bf16,f8e4m3fn,f8e5m2fnuz U=f32,f64,f16,bf16,f8e4m3fn,f8e4m3fnuz,f8e5m2,f8e5m2fnuz,"
     "f4e2m1,f6e2m3,f6e3m2,f8e8m0,bool"},
    {"Cast", "T[20]=-600.0..600.0", "to=U saturate=0", "T=f32,f16 U=f8e4m3fn,f8e4m3fnuz,f8e5m2,f8e5m2fnuz"},
    {"Cast", "T[20]=-600.0..600.0", "to=U", "T=f32,f16 U=f8e4m3fn,f8e4m3fnuz,f8e5m2,f8e5m2fnuz,f4e2m1"},
    {"Cast", "f32[20]=-8.0..8.0", "to=U", "U=f4e2m1,f6e2m3,f6e3m2,i4,u4,i2,u2"},
    {"Cast", "f32[12]=0.01..100.0", "to=f8e8m0 round_mode='up'"},
    {"Cast", "f32[12]=0.01..100.0", "to=f8e8m0 round_mode='down'"},
    {"Cast", "f32[12]=0.01..100.0", "to=f8e8m0 round_mode='nearest' saturate=0"},
    {"Cast", "i64[5]={16777217,9007199254740993,-9007199254740993,9223372036854775807,-9223372036854775808}",
     "to=U", "U=f32,f64,bf16,i32,u8,bool"},
    {"Cast", "f64[5]={1.5,-1.5,255.9,-0.9,70000}", "to=U", "U=i32,i64,bool,f16"},
    {"Cast", "T[]", "to=f64", "T=f32,i8"},
    {"Cast", "string[4]={1,0,-3,100}", "to=T", "T=" CASTS ",string"},
    {"Cast", "string[7]={1.5,-2.5e3,1E-3,nan,inf,-INF,+Inf}", "to=T", "T=f32,f64,f16,bf16,f8e5m2"},
    {"Cast", "string[3]={9223372036854775807,-9223372036854775808,2.9}", "to=7"},
    {"Cast", "string[2]={18446744073709551615,7}", "to=13"},
    {"Cast", "T[2,9]", "to=8", "T=" CASTS},
    {"Cast", "T[9]~", "to=8", "T=f32,f64,f16,bf16"},
    {"Cast", "f32[6]={0.1,16777216,1e20,3.14159274,-0.0,1e-45}", "to=8"},
    {"Cast", "string[0]", "to=1"},
    {"Cast@13", "string[2]={1,2}", "to=1"},
    {"Cast@9", "f32[2]", "to=8"},
    {"Cast", "string[2]={1,two}", "to=1", .fails = ORTC_INVALID_ARGUMENT},
    {"Cast", "string[2]={1,}", "to=7", .fails = ORTC_INVALID_ARGUMENT},
    {"Cast", "T[0,3]", "to=f64", "T=f32,u4"},
    {"Cast@24", "f32[3]", "to=f8e8m0"},
    {"Cast@19", "f32[3]", "to=f8e5m2 saturate=0"},
    {"Cast@13", "f32[3]", "to=bf16"},
    {"Cast@9", "f32[3]", "to=i32"},
    {"Cast@6", "f32[3]", "to=f64"},
    {"Cast@1", "f32[3]", "to='DOUBLE'"},
    {"Cast@1", "i32[3]", "to='BOOL'"},
    {"Cast", "f32[3]", "to=99", .fails = ORTC_INVALID_MODEL},
    {"Cast", "f32[3]", "to=f8e8m0 round_mode='sideways'", .fails = ORTC_INVALID_MODEL},
    {0},
};
