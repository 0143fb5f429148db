/* kernels/optional/cases.c: cases for optionals, with and without an element. */
#include "kernels/common/cases.h"

#define ALL \
    "T=f32,f64,f16,bf16,i8,i16,i32,i64,u8,u16,u32,u64,bool,string,c64,c128,f8e4m3fn,f8e4m3fnuz,f8e5m2," \
    "f8e5m2fnuz,u4,i4,f4e2m1," \
    "f8e8m0,u2,i2,f6e2m3,f6e3m2"

const ortc_case ortc_cases_optional[] = {
    {"Optional", "T[2,3]", "", ALL},
    {"Optional", "seq(T[2];T[3])", "", "T=f32,string"},
    {"Optional", "", "type=<T>", ALL},
    {"Optional", "", "type=<seq(:T)>", "T=f32,string"},
    {"Optional@15", "f32[0]!", ""},
    {"Optional", "", "", .fails = ORTC_INVALID_MODEL},

    {"OptionalGetElement", "opt(T[2,3])", "", ALL},
    {"OptionalGetElement", "T[2,3]", "", ALL},
    {"OptionalGetElement", "opt(seq(T[2];T[3]))", "", "T=f32,string"},
    {"OptionalGetElement", "seq(T[2])", "", "T=f32,string"},
    {"OptionalGetElement@18", "f32[2]!", ""},
    {"OptionalGetElement@15", "opt(f32[])", ""},
    {"OptionalGetElement", "opt(:f32)", "", .fails = ORTC_INVALID_ARGUMENT},

    {"OptionalHasElement", "opt(T[2,3])", "", ALL},
    {"OptionalHasElement", "opt(:T)", "", ALL},
    {"OptionalHasElement", "opt(:seq(:f32))", ""},
    {"OptionalHasElement", "T[2]", "", ALL},
    {"OptionalHasElement", "seq(:f32)", ""},
    {"OptionalHasElement", "-", ""},
    {"OptionalHasElement", "", ""},
    {"OptionalHasElement@18", "opt(seq(f32[2]))", ""},
    {"OptionalHasElement@15", "opt(f32[2])", ""},
    {0},
};
