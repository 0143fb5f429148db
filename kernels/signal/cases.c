/* kernels/signal/cases.c: cases for transforms (lengths that are powers of two, primes, odd and even
 * products, shorter and longer than the signal), windows, and mel weights. */
#include "kernels/common/cases.h"

#define F "T=f32,f64,f16,bf16"
#define FI F " I=i32,i64"
#define N "T=f32,f64,f16,bf16,i8,i16,i32,i64,u8,u16,u32,u64 I=i32,i64"

const ortc_case ortc_cases_signal[] = {
    {"DFT", "T[2,8,1] - -", "", F},
    {"DFT", "T[2,8,2] I[]={8} -", "inverse=1", FI},
    {"DFT", "T[3,10,2] I[]={7} i64[]={1}", "", FI},
    {"DFT", "f32[3,10,2] i64[]={13} i64[]={-2}", ""},
    {"DFT", "f32[10,3,1] - i64[]={0}", "onesided=1"},
    {"DFT", "f32[11,3,1] - i64[]={-3}!", "onesided=1"},
    {"DFT", "f32[2,6,2] - -", "onesided=1 inverse=1"},
    {"DFT", "f32[2,6,2] i64[]={9} -", "onesided=1 inverse=1"},
    {"DFT", "f32[2,6,1] i64[]={10} -", "onesided=1 inverse=1"},
    {"DFT", "f32[2,4,2] i64[]={12} -", "onesided=1 inverse=1"},
    {"DFT", "f32[1,400,1]", "onesided=1"},
    {"DFT", "f32[1,1,2]", ""},
    {"DFT", "f32[0,5,2]", ""},
    {"DFT", "f32[2,3,5,7,2] - i64[]={2}", "inverse=1"},
    {"DFT@17", "f32[2,9,1]", ""},
    {"DFT@17", "f32[2,3,9,2] i64[]={4}", "axis=2 inverse=1"},
    {"DFT@19", "f32[2,9,1]", "onesided=1"},
    {"DFT", "f32[2,3,3]", "", .fails = ORTC_SHAPE_MISMATCH},
    {"DFT", "f32[2,3,2] - i64[]={2}!", "", .fails = ORTC_INVALID_MODEL},
    {"DFT", "f32[2,3,2] - i64[]={3}!", "", .fails = ORTC_INVALID_MODEL},
    {"DFT", "f32[2,3,2] i64[]={0}!", "", .fails = ORTC_INVALID_MODEL},

    {"STFT", "T[2,40,1] I[]={5} T[16] I[]={16}", "", FI},
    {"STFT", "T[1,40,1] I[]={8} - I[]={11}", "onesided=0", FI},
    {"STFT", "f32[1,40,2] i64[]={7} f32[9] -", "onesided=0"},
    {"STFT", "f32[2,16,1] i64[]={3} - -", ""},
    {"STFT", "f32[0,16,1] i64[]={3} f32[4] -", ""},
    {"STFT", "f32[1,16,1] i64[]={3} f32[4] i64[]={5}", "", .fails = ORTC_SHAPE_MISMATCH},
    {"STFT", "f32[1,16,1] i64[]={3} - i64[]={17}", "", .fails = ORTC_SHAPE_MISMATCH},
    {"STFT", "f32[1,16,1] i64[]={0}! f32[4] -", "", .fails = ORTC_INVALID_MODEL},

    {"HannWindow", "I[]={10}", "output_datatype=T", N},
    {"HannWindow", "I[]={9}", "periodic=0 output_datatype=T", N},
    {"HammingWindow", "I[]={10}", "output_datatype=T", N},
    {"HammingWindow", "i64[]={9}", "periodic=0"},
    {"BlackmanWindow", "I[]={10}", "output_datatype=T", N},
    {"BlackmanWindow", "i64[]={9}", "periodic=0"},
    {"HannWindow", "i64[]={1}", "periodic=0"},
    {"HannWindow", "i64[]={0}", ""},
    {"HannWindow", "i64[]={-1}!", "", .fails = ORTC_INVALID_MODEL},
    {"HannWindow", "i64[]={4}", "output_datatype=99", .fails = ORTC_INVALID_MODEL},

    {"MelWeightMatrix", "I[]={8} I[]={16} I[]={8192} f32[]={0} f32[]={4096}", "output_datatype=T", N},
    {"MelWeightMatrix", "i64[]={40} i64[]={400} i64[]={16000} T[]={20} T[]={8000}", "", F},
    {"MelWeightMatrix", "i64[]={3} i64[]={20} i64[]={8000} f32[]={0} f32[]={8000}", ""},
    {"MelWeightMatrix", "i64[]={0} i64[]={20} i64[]={8000} f32[]={0} f32[]={4000}", ""},
    {"MelWeightMatrix", "i64[]={3} i64[]={20} i64[]={8000} f32[]={-701} f32[]={4000}", "",
     .fails = ORTC_INVALID_ARGUMENT},
    {0},
};
