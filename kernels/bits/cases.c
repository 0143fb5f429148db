/* kernels/bits/cases.c: cases for operators on bits: broadcasting, shifts past the ends, reinterpreting every
 * width. */
#include "kernels/common/cases.h"

#define WHOLE "T=i8,i16,i32,i64,u8,u16,u32,u64"
#define BITWISE(op) \
    {op, "T[3,5] T[3,5]", "", WHOLE}, {op, "T[2,1,5] T[3,1]", "", WHOLE}, { op, "i32[0,2] i32[]", "" }

const ortc_case ortc_cases_bits[] = {
    BITWISE("BitwiseAnd"),
    BITWISE("BitwiseOr"),
    BITWISE("BitwiseXor"),
    {"BitwiseNot", "T[3,5]", "", WHOLE},
    {"BitwiseNot", "u8[]", ""},
    {"BitShift", "T[3,5] T[5]={0,1,3,7,2}", "direction='LEFT'", WHOLE},
    {"BitShift", "T[3,5] T[5]={0,1,3,7,2}", "direction='RIGHT'", WHOLE},
    {"BitShift", "T[6]={-1,-1,-128,5,5,-5} T[6]={-1,8,7,64,-9,63}", "direction='RIGHT'", "T=i8,i16,i32,i64"},
    {"BitShift", "T[6]={-1,-1,-128,5,5,-5} T[6]={-1,8,7,64,-9,63}", "direction='LEFT'", "T=i8,i16,i32,i64"},
    {"BitShift", "T[3]={255,1,9} T[3]={8,64,200}", "direction='RIGHT'", "T=u8,u16,u32,u64"},
    {"BitShift@11", "u8[3] u8[3]", "direction='RIGHT'"},
    {"BitShift", "u8[3] u8[3]", "direction='UP'", .fails = ORTC_INVALID_MODEL},
    {"BitShift", "u8[3] u8[2]", "direction='LEFT'", .fails = ORTC_SHAPE_MISMATCH},
    {"BitCast", "T[3,4]", "to=3", "T=u8,i8,bool,f8e4m3fn,f8e4m3fnuz,f8e5m2,f8e5m2fnuz,f8e8m0"},
    {"BitCast", "i8[3,4]", "to=T", "T=u8,i8,bool,f8e4m3fn,f8e4m3fnuz,f8e5m2,f8e5m2fnuz,f8e8m0"},
    {"BitCast", "T[3,5]", "to=4", "T=u16,i16,f16,bf16"},
    {"BitCast", "u16[3,5]", "to=T", "T=u16,i16,f16,bf16"},
    {"BitCast", "T[7]", "to=1", "T=f32,i32,u32"},
    {"BitCast", "f32[7]", "to=T", "T=i32,u32"},
    {"BitCast", "T[7]", "to=7", "T=f64,i64,u64,c64"},
    {"BitCast", "i64[7]", "to=T", "T=f64,u64,c64"},
    {"BitCast", "c128[2]", "to=15"},
    {"BitCast", "T[3,5]", "to=22", "T=u4,i4,f4e2m1"},
    {"BitCast", "T[3,5]", "to=26", "T=u2,i2"},
    {"BitCast", "f32[3]", "to=7", .fails = ORTC_INVALID_MODEL},
    {0},
};
