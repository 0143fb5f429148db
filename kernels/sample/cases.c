/* kernels/sample/cases.c: cases for GridSample and RoiAlign: modes, paddings, one to three spatial dims,
 * regions outside. */
#include "kernels/common/cases.h"

#define F "T=f32,f64,f16,bf16"
#define PLAIN "T=f32,f64,f16,bf16,i8,i16,i32,i64,u8,u16,u32,u64,bool,c64,c128"
/* clang-format off */
#define GRID(mode) \
    {"GridSample", "f32[2,2,4,5] f32[2,3,2,2]", mode}, \
        {"GridSample", "f32[2,2,4,5] f32[2,3,2,2]", mode " align_corners=1"}, \
        {"GridSample", "f32[2,2,4,5] f32[2,3,2,2]", mode " padding_mode='border'"}, \
        {"GridSample", "f32[2,2,4,5] f32[2,3,2,2]", mode " padding_mode='reflection'"}, \
        {"GridSample", "f32[2,2,4,5] f32[2,3,2,2]", mode " padding_mode='reflection' align_corners=1"}, \
        {"GridSample", "f32[1,1,3] f32[1,6,1]={-1,-0.4,0,0.3,1,1.7}", mode}, \
        {"GridSample", "f32[1,2,2,3,4] f32[1,2,1,3,3]", mode}, \
        {"GridSample", "f32[1,1,3] f32[1,4,1]={nan,inf,-inf,0}", mode " padding_mode='border'"}
/* clang-format on */

const ortc_case ortc_cases_sample[] = {
    GRID("mode='nearest'"),
    GRID("mode='linear'"),
    GRID("mode='cubic'"),
    {"GridSample", "T[1,1,3,3] G[1,2,2,2]", "mode='nearest'", PLAIN " G=f32,f64,f16,bf16"},
    {"GridSample", "f32[1,1,3,3] T[1,2,2,2]", "", F},
    {"GridSample", "f32[2,5,30,40] f32[2,17,33,2]=-1.2..1.2", "padding_mode='border'", .needs = "cpu"},
    {"GridSample", "f32[2,5,30,40]~ f32[2,17,33,2]=-1.2..1.2", "mode='cubic'"},
    {"GridSample", "T[2,5,30,40]~ G[2,17,33,2]=-1.2..1.2", "", "T=f32,f16,bf16 G=f32,f64,f16",
     .needs = "cpu:f32 cpu:f16 cpu:bf16"},
    {"GridSample", "T[2,5,30,40]~ f32[2,17,33,2]~", "", "T=f32,f16,bf16"},
    {"GridSample", "T[1,2,60,80]~ f32[1,3,5,2]=-1.2..1.2", "", "T=f32,f16,bf16"}, /* few places of many */
    {"GridSample", "T[2,5,30,40] f32[2,17,33,2]=-1.2..1.2", "mode='nearest'", "T=f32,f16,bf16"},
    {"GridSample", "f32[2,5,30,40] f32[2,17,33,2]=-1.2..1.2", "mode='nearest' padding_mode='border'"},
    {"GridSample", "f32[2,5,30,40] f32[2,17,33,2]~", "mode='nearest' padding_mode='border' align_corners=1"},
    {"GridSample", "T[2,5,30,40] f32[2,17,33,2]=-1.2..1.2", "align_corners=1", "T=f32,f16,bf16"},
    {"GridSample", "f32[2,5,6,7,8] f32[2,5,9,11,3]=-1.2..1.2", ""},
    {"GridSample", "f32[2,5,6,7,8] f32[2,5,9,11,3]=-1.2..1.2", "padding_mode='border' align_corners=1"},
    {"GridSample", "f32[2,5,90] f32[2,300,1]=-1.2..1.2", ""},
    {"GridSample", "string[1,1,3]={a,b,c} f32[1,3,1]={-1,0,3}", "mode='nearest'"},
    {"GridSample", "f32[1,1,1,1] f32[1,2,2,2]", "padding_mode='reflection' align_corners=1"},
    {"GridSample", "f32[0,1,3] f32[0,2,1]", ""},
    {"GridSample@16", "f32[1,1,3,3] f32[1,2,2,2]", "mode='bicubic'"},
    {"GridSample@16", "f32[1,1,3,3] f32[1,2,2,2]", ""},
    {"GridSample", "f32[1,1,0] f32[1,2,1]", "", .fails = ORTC_SHAPE_MISMATCH},
    {"GridSample", "f32[1,1,3,3] f32[1,2,2,3]", "", .fails = ORTC_SHAPE_MISMATCH},
    {"GridSample", "f32[1,1,3] f32[1,2,1]", "mode='bilinear'", .fails = ORTC_INVALID_MODEL},
    {"GridSample", "c64[1,1,3] f32[1,2,1]", "", .fails = ORTC_UNSUPPORTED},

    {"RoiAlign", "T[2,3,6,5] T[3,4]={0,0,4,4,1,2,3,5.5,-2,-2,9,9} i64[3]={0,1,1}",
     "output_height=2 output_width=3 sampling_ratio=2", F},
    {"RoiAlign", "f32[1,2,6,5] f32[2,4]={0,0,8,8,3,2,1,1} i64[2]={0,0}",
     "output_height=3 output_width=2 spatial_scale=0.5"},
    {"RoiAlign", "f32[1,2,6,5] f32[1,4]={0,0,8,8} i64[1]={0}",
     "mode='max' coordinate_transformation_mode='output_half_pixel'"},
    {"RoiAlign", "f32[2,21,40,30] T[90,4]=0.0..45.0 i64[90]={0}",
     "output_height=5 output_width=6 spatial_scale=0.8", "T=f32", .needs = "cpu"},
    {"RoiAlign", "T[2,21,40,30] T[9,4]=-5.0..45.0 i64[9]={0,1,1,0,1,0,0,1,1}",
     "output_height=7 output_width=7 sampling_ratio=3", "T=f32,f16,bf16",
     .needs = "cpu:f32 cpu:f16 cpu:bf16"},
    {"RoiAlign", "f32[1,34,260,250] f32[330,4]=0.0..250.0 i64[330]={0}",
     "output_height=7 output_width=7 sampling_ratio=1"},
    {"RoiAlign", "f32[1,2,40,30] f32[2,4]={0,0,39,39,3,5,28,9} i64[2]={0}", ""},
    {"RoiAlign", "f32[1,17,12,10]~ f32[30,4]=0.0..12.0 i64[30]={0}", "output_height=3 output_width=3"},
    {"RoiAlign@10", "f32[1,2,6,5] f32[1,4]={0,0,0.5,8} i64[1]={0}", "output_height=2"},
    {"RoiAlign", "f32[1,2,6,5] f32[0,4] i64[0]", ""},
    {"RoiAlign", "f32[1,2,6,5] f32[1,4]={0,0,8,8} i64[1]={1}", "", .fails = ORTC_INVALID_ARGUMENT},
    {"RoiAlign", "f32[1,2,6,5] f32[1,4]={0,0,1e30,8} i64[1]={0}", "", .fails = ORTC_LIMIT},
    {"RoiAlign", "f32[1,2,6,5] f32[1,4]={nan,0,8,8} i64[1]={0}", "sampling_ratio=1"},
    {"RoiAlign", "f32[1,2,6,5] f32[2,4]={0} i64[1]={0}", "", .fails = ORTC_SHAPE_MISMATCH},
    {"RoiAlign", "f32[1,2,6,5] f32[1,3]={0} i64[1]={0}", "", .fails = ORTC_SHAPE_MISMATCH},
    {"RoiAlign", "f32[1,2,6,5] f32[1,4]={0} i64[1]={0}", "mode='min'", .fails = ORTC_INVALID_MODEL},

    {"MaxRoiPool", "T[2,3,6,5] T[3,5]={0,0,0,4,4,1,1,2,3,5,1,-2,-2,9,9}", "pooled_shape=[2,3]", F},
    {"MaxRoiPool", "f32[1,2,6,5] f32[2,5]={0,0,0,8,8,0,3,2,1,1}", "pooled_shape=[3,2] spatial_scale=0.5"},
    {"MaxRoiPool", "f32[1,2,6,5] f32[1,5]={0,7,7,9,9}", "pooled_shape=[2,2]"},
    {"MaxRoiPool", "T[1,21,16,20] T[4,5]={0,3,4,19,12,0,10,2,15,18,0,9,9,9,9,0,1,2,3,45}",
     "pooled_shape=[5,6]", "T=f32,f16,bf16", .needs = "cpu:f32 cpu:f16 cpu:bf16"},
    {"MaxRoiPool", "f32[1,17,8,5]~ f32[4,5]={0,3,4,19,12,0,10,2,15,18,0,9,9,9,9,0,1,2,3,45}",
     "pooled_shape=[3,2]"},
    {"MaxRoiPool@1", "T[1,2,6,5] T[1,5]={0,1,1,3,4}", "pooled_shape=[1,1]", "T=f32,f64,f16"},
    {"MaxRoiPool", "f32[1,2,6,5]~ f32[1,5]={0,nan,0,1e30,inf}", "pooled_shape=[2,2]"},
    {"MaxRoiPool", "f32[1,2,6,5] f32[0,5]", "pooled_shape=[2,2]"},
    {"MaxRoiPool", "f32[1,2,6,5] f32[1,5]={1,0,0,1,1}", "pooled_shape=[2,2]", .fails = ORTC_INVALID_ARGUMENT},
    {"MaxRoiPool", "f32[1,2,6,5] f32[1,4]={0}", "pooled_shape=[2,2]", .fails = ORTC_SHAPE_MISMATCH},
    {"MaxRoiPool", "f32[1,2,6,5] f32[1,5]={0}", "pooled_shape=[2]", .fails = ORTC_INVALID_MODEL},

    {"AffineGrid", "T[2,2,3] i64[4]={2,1,3,4}", "", F},
    {"AffineGrid", "f32[2,2,3] i64[4]={2,1,3,1}", "align_corners=1"},
    {"AffineGrid", "T[2,3,4] i64[5]={2,1,3,4,2}!", "align_corners=1", F},
    {"AffineGrid", "f32[1,3,4] i64[5]={1,1,0,4,2}", ""},
    {"AffineGrid", "f32[2,2,3] i64[4]={1,1,3,4}", "", .fails = ORTC_SHAPE_MISMATCH},
    {"AffineGrid", "f32[2,2,3] i64[5]={2,1,3,4,5}", "", .fails = ORTC_SHAPE_MISMATCH},
    {"AffineGrid", "f32[2,2,2] i64[4]={2,1,3,4}", "", .fails = ORTC_SHAPE_MISMATCH},

    {"DeformConv", "T[1,2,5,4] T[3,2,2,3] T[1,12,4,2] T[3] T[1,6,4,2]", "", F},
    {"DeformConv", "f32[2,4,6,5] f32[4,2,3,3] f32[2,36,3,3]",
     "group=2 offset_group=2 strides=[2,2] pads=[1,1,1,1]"},
    {"DeformConv", "f32[1,2,7] f32[1,2,2] f32[1,2,5] - f32[1,2,5]", "dilations=[2] kernel_shape=[2]"},
    {"DeformConv", "f32[1,1,3,4,3] f32[2,1,2,2,2] f32[1,24,2,3,2]", ""},
    {"DeformConv", "f32[1,8,20,30] f32[4,8,7,7] f32[1,784,20,30]=-3.0..3.0 - f32[1,392,20,30]",
     "offset_group=8 pads=[3,3,3,3]", .needs = "cpu"},
    {"DeformConv", "T[2,12,11,13] T[10,6,3,3]! T[2,18,11,13]=-2.0..2.0 T[10]", "group=2 pads=[1,1,1,1]",
     "T=f32,f16,bf16", .needs = "cpu:f32 cpu:f16 cpu:bf16"},
    {"DeformConv", "f32[1,3,9,9]~ f32[2,3,3,3] f32[1,18,7,7]=-2.0..2.0 - f32[1,9,7,7]=0.0..1.0", ""},
    {"DeformConv", "f32[1,2,0,5] f32[3,2,3,3] f32[1,18,2,5] f32[3]", "pads=[2,1,2,1]"},
    {"DeformConv@19", "f32[1,1,3,3] f32[1,1,2,2] f32[1,8,2,2]", ""},
    {"DeformConv", "f32[0,1,3,3] f32[1,1,2,2] f32[0,8,2,2]", ""},
    {"DeformConv", "f32[1,1,3,3] f32[1,1,2,2] f32[1,8,2,2]~", ""},
    {"DeformConv", "f32[1,1,3,3] f32[1,1,2,2] f32[1,8,2,3]", "", .fails = ORTC_SHAPE_MISMATCH},
    {"DeformConv", "f32[1,1,3,3] f32[1,1,2,2] f32[1,6,2,2]", "", .fails = ORTC_SHAPE_MISMATCH},
    {"DeformConv", "f32[1,3,3,3] f32[1,3,2,2] f32[1,16,2,2]", "offset_group=2", .fails = ORTC_SHAPE_MISMATCH},
    {"DeformConv", "f32[1,1,3,3] f32[1,1,2,2] f32[1,8,2,2]", "group=0", .fails = ORTC_INVALID_MODEL},
    {0},
};
