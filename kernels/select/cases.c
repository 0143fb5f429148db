/* kernels/select/cases.c: cases for NonZero. */
#include "kernels/common/cases.h"

#define ALL "T=f32,f64,f16,bf16,i8,i16,i32,i64,u8,u16,u32,u64,bool,c64,c128,f8e4m3fn,f8e4m3fnuz,f8e5m2,f8e5m2fnuz,u4,i4,f4e2m1,f8e8m0,u2,i2,f6e2m3,f6e3m2"

const ortc_case ortc_cases_select[] = {
    {"NonZero", "T[3,5]", "", ALL},
    {"NonZero", "f32[2,3,4]={0,1,0,2,0,0,3,nan,-0.0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,4}", ""},
    {"NonZero", "f32[17]={0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}", ""},
    {"NonZero", "bool[2,0,3]", ""},
    {"NonZero", "i64[1,1,1,1]={5}", ""},
    {"NonZero@9", "i32[2,2]={0,1,1,0}", ""},
    {"NonZero", "string[3]={a,,b}", ""},
    {0},
};
