/* kernels/softmax/cases.c: cases for Softmax, LogSoftmax and Hardmax, along an axis and in the forms before
 * 13. */
#include "kernels/common/cases.h"

#define F "T=f32,f64,f16,bf16"
#define F_OLD "T=f32,f64,f16"
/* clang-format off */
#define LINES(op) \
    {op, "T[2,3,4]", "", F}, \
        {op, "T[2,3,4]", "axis=0", F}, \
        {op, "T[2,3,4]", "axis=1", F}, \
        {op, "T[2,3,4]", "axis=-3", F}, \
        {op, "f32[1]", ""}, \
        {op, "f32[7]", ""}, \
        {op, "f32[5,8]", ""}, \
        {op, "f32[3,15]", ""}, \
        {op, "f32[2,16]", ""}, \
        {op, "f32[2,17]", ""}, \
        {op, "f32[2,31]", ""}, \
        {op, "f32[33,33]", ""}, \
        {op, "f32[2,1000]", ""}, \
        {op, "f32[3,1]", ""}, \
        {op, "T[3,128]", "", F}, {op, "T[2,1032]", "", F}, {op, "T[2,4096]", "", F}, \
        {op, "f16[1,16384]", ""}, \
        {op, "f32[1,20000]", ""}, \
        {op, "T[2,9,40]", "axis=1", F}, \
        {op, "T[2,264]~", "", F}, \
        {op, "T[2,5,600]", "axis=1", F}, \
        {op, "T[600,5]", "axis=0", F}, \
        {op, "f32[2,300,701]", "axis=1"}, {op, "f32[300,1024]", "axis=0"}, /* parts of columns */ \
        {op, "f32[2,3000]", ""}, \
        {op, "f32[0,3]", ""}, \
        {op, "f32[3,0]", ""}, \
        {op, "f32[2,0,3]", "axis=1"}, \
        {op, "f32[]", ""}, \
        {op, "f32[2,5]=-1e4..1e4", ""}, {op, "f64[2,5]=700.0..800.0", ""}, {op, "T[9,4]~", "", F}, \
        {op, "f32[2,2]={-inf,-inf,1,-inf}", ""}, \
        {op, "f32[2,2]={inf,1,1,1}", ""}, \
        {op, "f32[65]=60000.0..65000.0", ""}, \
        {op "@11", "T[2,3]", "", F_OLD}, {op "@11", "T[2,3]", "axis=-1", F_OLD}, \
        {op "@11", "T[2,3,4]", "axis=1", F_OLD, \
             .fixed = "extents behind the axis are written into the model"}, \
        {op "@11", "f32[2,3,4]", "axis=0", .fixed = "extents behind the axis are written into the model"}, \
        {op "@11", "f32[2,3,4]", "axis=2"}, \
        {op "@1", "T[2,5,1,1]", "", F_OLD, .fixed = "extents behind the axis are written into the model"}, \
        {op "@1", "f32[4]", "axis=0"}, {op, "f32[2,3]", "axis=2", .fails = ORTC_INVALID_MODEL}, \
        {op, "f32[2,3]", "axis=-3", .fails = ORTC_INVALID_MODEL}
/* clang-format on */

const ortc_case ortc_cases_softmax[] = {
    LINES("Softmax"),
    LINES("LogSoftmax"),
    {"Softmax", "f16[2050,520]", ""},
    {"LogSoftmax", "bf16[2050,520]", ""},
    /* few columns, of which some lines are one, and some are left */
    {"Softmax", "T[3,133,8]", "axis=1", F},
    {"LogSoftmax", "T[2,259,5,3]~", "axis=1", F},
    {"Softmax", "T[67,3]~", "axis=0", F},
    {"LogSoftmax", "T[2,64,2]", "axis=1", F},
    {"Softmax", "T[2,40,48]~", "axis=1", F},
    /* rows that a register holds, some together */
    {"Softmax", "T[67,8]~", "", F},
    {"LogSoftmax", "T[70,3]~", "", F},
    {"Softmax", "f32[33,16]", ""},
    {"LogSoftmax", "f32[40,1]", ""},
    {"Softmax", "f16[2,4]={nan,1,2,3,1,2,3,4}", ""},
    {"Softmax", "f16[2,3]={-inf,-inf,-inf,-inf,0,-inf}", ""},
    {"Hardmax", "T[2,3,4]", "", F},
    {"Hardmax", "T[2,3,4]", "axis=1", F},
    {"Hardmax", "f32[3,4]={3,1,2,3,2,2,1,0,0,1,3,3}", ""},
    {"Hardmax", "f32[5,4]~", ""},
    {"Hardmax", "f32[0,4]", ""},
    {"Hardmax@11", "f32[2,3,4]", "axis=2"},
    {"Hardmax@1", "f32[2,5]", ""},
    {"Hardmax", "f32[2,3]", "axis=2", .fails = ORTC_INVALID_MODEL},
    {0},
};
