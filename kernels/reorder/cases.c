/* kernels/reorder/cases.c: plain to plain, which a line of text can say; the layouts themselves are tested on
 * provider sim. */
#include "kernels/common/cases.h"

const ortc_case ortc_cases_reorder[] = {
    {"ortc:Reorder", "T[2,3,4,5]", "",
     "T=f32,f64,f16,bf16,i8,i16,i32,i64,u8,u16,u32,u64,bool,c64,c128,f8e4m3fn,f8e4m3fnuz,f8e5m2,f8e5m2fnuz,"
     "f8e8m0"},
    {"ortc:Reorder", "f32[0,3]", ""},
    {"ortc:Reorder", "f32[]", ""},
    {0},
};
