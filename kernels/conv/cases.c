/* kernels/conv/cases.c: cases for Conv: ranks, groups, strides, dilations, pads, and sizes around tiles. */
#include "kernels/common/cases.h"

#define FLOATS "T=f32,f64,f16,bf16"
#define NEED "cpu:f32"

const ortc_case ortc_cases_conv[] = {
    /* two spatial dims */
    {"Conv", "T[1,3,5,5] T[4,3,3,3] T[4]", "pads=[1,1,1,1]", FLOATS, .needs = NEED},
    {"Conv", "T[2,3,7,5] T[4,3,3,3]", "", FLOATS, .needs = NEED},
    {"Conv", "f32[1,1,8,8] f32[8,1,3,3]! f32[8]!", "kernel_shape=[3,3] pads=[1,1,1,1]", .needs = NEED},
    {"Conv", "f32[2,16,8,8] f32[16,16,3,3]! f32[16]!", "pads=[1,1,1,1]", .needs = NEED},
    {"Conv", "f32[1,17,15,16] f32[33,17,3,3]! f32[33]!", "pads=[1,1,1,1]", .needs = NEED},
    {"Conv", "f32[1,31,7,17] f32[7,31,3,3]!", "pads=[1,0,2,1]", .needs = NEED},
    {"Conv", "f32[3,8,1,1] f32[15,8,1,1]! f32[15]!", "", .needs = NEED},
    {"Conv", "f32[1,8,9,9] f32[8,8,3,3]! f32[8]!", "strides=[2,2] pads=[1,1,1,1]", .needs = NEED},
    {"Conv", "f32[1,4,9,11] f32[8,4,3,3]!", "strides=[2,1] pads=[1,0,0,1]", .needs = NEED},
    {"Conv", "f32[1,4,12,12] f32[8,4,3,3]!", "dilations=[2,2] pads=[2,2,2,2]", .needs = NEED},
    {"Conv", "f32[1,4,12,13] f32[8,4,3,2]!", "dilations=[3,2] strides=[2,3]", .needs = NEED},
    {"Conv", "f32[1,3,20,20] f32[8,3,7,7]! f32[8]!", "strides=[2,2] pads=[3,3,3,3]", .needs = NEED},
    {"Conv", "f32[1,2,6,33] f32[3,2,1,5]!", "pads=[0,2,0,2]", .needs = NEED},
    {"Conv", "f32[1,2,3,3] f32[3,2,3,3]!", "", .needs = NEED},
    {"Conv", "f32[1,2,3,3] f32[3,2,5,5]!", "pads=[4,4,4,4]", .needs = NEED},
    /* one by one, which is a product of matrices */
    {"Conv", "T[2,5,4,3] T[6,5,1,1] T[6]", "", FLOATS, .needs = NEED},
    {"Conv", "f32[1,64,7,7] f32[33,64,1,1]! f32[33]!", "", .needs = NEED},
    {"Conv", "f32[1,16,9,9] f32[8,16,1,1]!", "strides=[2,2]", .needs = NEED},
    {"Conv", "f32[1,16,5,5] f32[8,16,1,1]!", "pads=[1,1,1,1]", .needs = NEED},
    /* groups; a group for each channel */
    {"Conv", "T[1,4,5,5] T[6,2,3,3] T[6]", "group=2", FLOATS},
    {"Conv", "f32[2,6,7,7] f32[9,2,3,3]!", "group=3 pads=[1,1,1,1]", .needs = NEED},
    {"Conv", "T[1,5,6,6] T[5,1,3,3] T[5]", "group=5 pads=[1,1,1,1]", FLOATS},
    {"Conv", "f32[1,32,9,17] f32[32,1,3,3]! f32[32]!", "group=32 pads=[1,1,1,1]", .needs = NEED},
    {"Conv", "f32[2,17,16,15] f32[17,1,3,3]! f32[17]!", "group=17 pads=[1,1,1,1] strides=[2,2]", .needs = NEED},
    {"Conv", "f32[1,8,12,12] f32[8,1,5,5]!", "group=8 pads=[2,2,2,2]", .needs = NEED},
    {"Conv", "f32[1,3,8,8] f32[6,1,3,3]!", "group=3", .needs = NEED},
    /* auto_pad */
    {"Conv", "T[1,2,5,6] T[3,2,3,3]", "auto_pad='SAME_UPPER' strides=[2,2]", FLOATS},
    {"Conv", "T[1,2,5,6] T[3,2,2,4]", "auto_pad='SAME_LOWER'", FLOATS},
    {"Conv", "f32[1,2,5,6] f32[3,2,3,3]", "auto_pad='VALID'"},
    {"Conv", "f32[1,2,7,7] f32[3,2,3,3]", "auto_pad='SAME_UPPER' dilations=[2,2]"},
    {"Conv", "f32[1,2,7,7] f32[3,2,1,1]", "auto_pad='SAME_LOWER' strides=[3,3]"},
    /* one, three and four spatial dims */
    {"Conv", "T[1,3,9] T[4,3,3] T[4]", "pads=[1,1]", FLOATS},
    {"Conv", "f32[2,4,33] f32[4,4,5]", "strides=[3] dilations=[2] pads=[2,1]"},
    {"Conv", "T[1,2,4,5,6] T[3,2,2,3,3] T[3]", "pads=[0,1,1,1,0,1]", FLOATS},
    {"Conv", "f32[1,2,3,3,3,3] f32[2,2,2,2,2,2]", ""},
    /* nothing, and what is not a number */
    {"Conv", "f32[0,3,5,5] f32[4,3,3,3]!", "", .needs = NEED},
    {"Conv", "f32[1,0,5,5] f32[4,0,3,3] f32[4]", "pads=[1,1,1,1]"},
    {"Conv", "f32[1,3,5,5] f32[0,3,3,3]", ""},
    {"Conv", "T[1,2,6,6]~ T[3,2,3,3]", "pads=[1,1,1,1]", "T=f32,f64"},
    {"Conv", "f32[1,2,6,6] f32[3,2,3,3]~", "pads=[1,1,1,1]"},
    {"Conv", "f32[1,4,6,6] f32[4,1,3,3]~", "pads=[1,1,1,1] group=4"},
    {"Conv", "f32[1,2,6,6]~ f32[2,1,3,3]!", "group=2 pads=[1,1,1,1]"},
    /* older versions mean the same */
    {"Conv@1", "T[1,3,5,5] T[4,3,3,3] T[4]", "pads=[1,1,1,1]", "T=f32,f64,f16"},
    {"Conv@11", "T[1,3,5,5] T[4,3,3,3] T[4]", "pads=[1,1,1,1]", "T=f32,f64,f16"},
    /* refused */
    {"Conv", "f32[1,3,5,5] f32[4,2,3,3]", "", .fails = ORTC_SHAPE_MISMATCH},
    {"Conv", "f32[1,4,5,5] f32[5,2,3,3]", "group=2", .fails = ORTC_SHAPE_MISMATCH},
    {"Conv", "f32[1,3,5,5] f32[4,3,3,3] f32[3]", "", .fails = ORTC_SHAPE_MISMATCH},
    {"Conv", "f32[1,3,5,5] f32[4,3,9,9]", "", .fails = ORTC_SHAPE_MISMATCH},
    {"Conv", "f32[1,3,5,5] f32[4,3,3,3]", "kernel_shape=[5,5]", .fails = ORTC_SHAPE_MISMATCH},
    {"Conv", "f32[1,3,5,5] f32[4,3,3,3]", "strides=[0,1]", .fails = ORTC_INVALID_MODEL},
    {"Conv", "f32[1,3,5,5] f32[4,3,3,3]", "pads=[1,1]", .fails = ORTC_INVALID_MODEL},
    {"Conv", "f32[1,3,5,5] f32[4,3,3,3]", "pads=[-1,0,0,0]", .fails = ORTC_INVALID_MODEL},
    {"Conv", "f32[1,3,5,5] f32[4,3,3,3]", "dilations=[9223372036854775807,1]", .fails = ORTC_INVALID_MODEL},
    {"Conv", "f32[1,3,5,5] f32[4,3,3,3]", "group=0", .fails = ORTC_INVALID_MODEL},
    {"Conv", "f32[3,5] f32[4,5]", "", .fails = ORTC_SHAPE_MISMATCH},
    {"ConvInteger", "A[1,2,5,4] B[3,2,3,2] A[]={2} B[]={1}", "pads=[1,0,1,1]", "A=i8,u8 B=i8,u8"},
    {"ConvInteger", "u8[2,4,7] i8[6,2,3] u8[] i8[6]", "group=2 strides=[2] dilations=[2]"},
    {"ConvInteger", "u8[1,1,4,4] u8[1,1,3,3]", "auto_pad='SAME_UPPER'"},
    {"ConvInteger", "u8[1,1,4,4] u8[2,1,3,3] - u8[3]", "", .fails = ORTC_SHAPE_MISMATCH},
    {"QLinearConv", "A[1,2,5,4] f32[]={0.5} A[]={2} B[3,2,3,2] f32[]={0.25} B[]={1} f32[]={0.75} C[]={3}", "pads=[1,0,1,1]",
     "A=i8,u8 B=i8,u8 C=i8,u8"},
    {"QLinearConv", "u8[2,2,7] f32[1]={0.5} u8[1]={9} i8[3,2,3] f32[3]=0.1..0.5 i8[3] f32[]={0.3} u8[]={128} i32[3]", "strides=[2]"},
    {"QLinearConv", "u8[0,2,7] f32[]={0.5} u8[]={9} i8[3,2,3] f32[]={1} i8[] f32[]={0.3} u8[]={128}", ""},
    {"QLinearConv", "u8[1,2,7] f32[]={0.5} u8[]={9} i8[3,2,3] f32[2]={1} i8[] f32[]={0.3} u8[]={128}", "", .fails = ORTC_SHAPE_MISMATCH},
    {"QLinearConv", "u8[1,2,7] f32[2]={0.5} u8[]={9} i8[3,2,3] f32[]={1} i8[] f32[]={0.3} u8[]={128}", "", .fails = ORTC_SHAPE_MISMATCH},
    {0},
};
