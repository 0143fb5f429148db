/* kernels/contrib/cases.c: cases for com.microsoft's operators: every type, every form of their inputs. What
 * onnxruntime makes of them is compared in tests/python/test_contrib.py. */
#include "kernels/common/cases.h"

#define M "com.microsoft:"
#define F "T=f32,f64,f16,bf16"
#define F3 "T=f32,f16,bf16"
#define F2 "T=f32,f16"

const ortc_case ortc_cases_contrib[] = {
    {M "FusedMatMul@1", "T[2,3,4] T[2,4,5]", "alpha=0.5", F},
    {0},
};
