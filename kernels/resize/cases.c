/* kernels/resize/cases.c: cases for Resize: modes, ways to lay coordinates, sizes and scales from constants
 * and inputs. */
#include "kernels/common/cases.h"

#define PLAIN "T=f32,f64,f16,bf16,i8,i16,i32,i64,u8,u16,u32,u64,bool,c64,c128"
#define BY_F32 "T=f32,f16,bf16"
#define NEED "cpu:f32 cpu:f16 cpu:bf16"
#define WHOLE NEED " cpu:u8 cpu:i8 cpu:i32 cpu:f64 cpu:i64 cpu:bool"
#define REAL "T=f32,f64,f16,bf16,i8,i16,i32,i64,u8,u16,u32,u64,bool"
/* clang-format off */
#define EVERY_WAY(mode) \
    {"Resize", "f32[1,1,4,5] - f32[4]={1,1,1.6,0.7}!", mode}, \
        {"Resize", "f32[1,1,4,5] - f32[4]={1,1,1.6,0.7}!", \
             mode " coordinate_transformation_mode='half_pixel_symmetric'"}, \
        {"Resize", "f32[1,1,4,5] - f32[4]={1,1,1.6,0.3}!", \
             mode " coordinate_transformation_mode='pytorch_half_pixel'"}, \
        {"Resize", "f32[1,1,4,5] - f32[4]={1,1,1.6,0.7}!", \
             mode " coordinate_transformation_mode='align_corners'"}, \
        {"Resize", "f32[1,1,4,5] - f32[4]={1,1,1.6,0.7}!", \
             mode " coordinate_transformation_mode='asymmetric'"}, \
        {"Resize", "f32[2,1,4,5] f32[8]={0,0,0.1,0.6,1,1,0.9,1.3} - i64[4]={2,1,3,6}", \
         mode " coordinate_transformation_mode='tf_crop_and_resize' extrapolation_value=9.0"}, \
        {"Resize", "f32[1,1,4,5] - - i64[4]={1,1,9,2}!", mode}, \
        {"Resize", "f32[2,3,4] - - i64[2]={5,9}", mode " axes=[-1,0]"}, \
        {"Resize", "f32[7]~ - f32[1]={2}", mode}
/* clang-format on */

const ortc_case ortc_cases_resize[] = {
    EVERY_WAY("mode='nearest'"),
    EVERY_WAY("mode='nearest' nearest_mode='round_prefer_ceil'"),
    EVERY_WAY("mode='nearest' nearest_mode='floor'"),
    EVERY_WAY("mode='nearest' nearest_mode='ceil'"),
    EVERY_WAY("mode='linear'"),
    EVERY_WAY("mode='linear' antialias=1"),
    EVERY_WAY("mode='cubic'"),
    EVERY_WAY("mode='cubic' antialias=1 cubic_coeff_a=-0.5"),
    EVERY_WAY("mode='cubic' exclude_outside=1"),
    {"Resize", "T[2,3] R[0] f32[2]={2,1.5}", "", PLAIN " R=f16,f32,f64"},
    {"Resize", "T[2,3] - - i64[2]={5,2}", "mode='linear'", REAL, .needs = WHOLE},
    {"Resize", "T[2,3,9,30] - - i64[2]={14,71}!", "mode='cubic' axes=[2,3]", REAL, .needs = WHOLE},
    {"Resize", "T[2,2,40,70] - f32[4]={1,1,0.3,0.45}!", "mode='linear' antialias=1", REAL, .needs = WHOLE},
    {"Resize", "T[2,40,70]~ - - i64[2]={9,30}", "mode='cubic' antialias=1 axes=[1,2] exclude_outside=1",
     BY_F32, .needs = NEED},
    {"Resize", "T[1,2,7,9] f32[8]={0,0,0.1,0.6,1,1,0.9,1.3}! f32[4]={1,1,2,3}!",
     "mode='cubic' coordinate_transformation_mode='tf_crop_and_resize' extrapolation_value=-3.5", REAL,
     .needs = WHOLE},
    {"Resize", "T[1,2,7,30] f32[4]={0.9,-0.2,0.1,0.7} - i64[2]={12,50}",
     "axes=[2,3] coordinate_transformation_mode='tf_crop_and_resize' extrapolation_value=7.0", REAL,
     .needs = WHOLE},
    {"Resize", "T[1,2,7,30] f32[4]={0.9,-0.2,0.1,0.7} - i64[2]={3,50}",
     "mode='linear' antialias=1 axes=[2,3] coordinate_transformation_mode='tf_crop_and_resize'", REAL,
     .needs = WHOLE},
    {"Resize", "u8[2,3,33,57]=0.0..255.0 - - i64[2]={80,64}!", "mode='linear' axes=[2,3]", .needs = "cpu"},
    {"Resize", "T[2,33,57] - - i64[2]={80,300}!", "axes=[1,2]", PLAIN, .needs = WHOLE},
    {"Resize", "T[2,33,57] - - i64[2]={80,20}!", "axes=[1,2] nearest_mode='ceil'", PLAIN, .needs = WHOLE},
    {"Resize", "f32[2,5,4,6,40] - - i64[5]={2,9,3,6,33}!", "mode='linear' antialias=1"},
    {"Resize", "i32[2,5,4,6,5] - - i64[5]={3,9,3,6,7}", "mode='cubic'"},
    {"Resize", "f32[300,3] - - i64[2]={2,3}!", "mode='linear' antialias=1"},
    {"Resize", "f32[5,300] - - i64[2]={5,2}!", "mode='linear' antialias=1"},
    {"Resize", "T[2,3] R[0]! f32[2]={2,1.5}!", "", PLAIN " R=f16,f32,f64",
     .needs = "cpu:f32 cpu:u8 cpu:c128"},
    {"Resize", "T[2,3]~ - - i64[2]={5,2}!", "mode='linear'", BY_F32, .needs = NEED},
    {"Resize", "T[2,20,5,7] - f32[4]={1,1,2,3}!",
     "nearest_mode='floor' coordinate_transformation_mode='asymmetric'", BY_F32, .needs = NEED},
    {"Resize", "T[1,17,9,40]~ - f32[4]={1,1,2,2}!", "mode='linear'", BY_F32, .needs = NEED},
    {"Resize", "T[1,33,3,70] - - i64[4]={1,33,7,33}!",
     "mode='linear' coordinate_transformation_mode='align_corners'", BY_F32, .needs = NEED},
    {"Resize", "T[1,16,6,20] - f32[4]={1,1,2,1.5}!", "mode='cubic'", BY_F32, .needs = NEED},
    {"Resize", "T[1,2,3,4,5] - f32[5]={1,1,2,2,2}!", "mode='linear'", BY_F32, .needs = NEED},
    {"Resize", "T[2,2,4,3,4] - f32[5]={2,2,2,2,2}!", "mode='cubic'", "T=f32"},
    {"Resize", "T[2,3] R[2]={0.5,1} f32[1]={2}!",
     "mode='linear' axes=[1] coordinate_transformation_mode='tf_crop_and_resize'", "T=f32 R=f16,f32,f64"},
    {"Resize", "string[2]={a,b} - f32[1]={2}", ""},
    {"Resize", "f32[4,6] - - i64[2]={7,7}", "keep_aspect_ratio_policy='not_larger'"},
    {"Resize", "f32[4,6] - - i64[2]={1,0}", "keep_aspect_ratio_policy='not_larger'"},
    {"Resize", "f32[4,6] - - i64[2]={7,7}!", "keep_aspect_ratio_policy='not_smaller' mode='linear'"},
    {"Resize", "f32[3,4] - f32[2]={1,1}", "mode='cubic'"},
    {"Resize", "f32[3,0] - f32[2]={2,1}", ""},
    {"Resize", "f32[3,4] - - i64[2]={0,2}", ""},
    {"Resize", "f32[40] - f32[1]={0.05}!", "mode='linear' antialias=1"},
    {"Resize@10", "f32[1,1,2,3] f32[4]={1,1,2,1.5}", ""},
    {"Resize@10", "f32[1,1,2,3] f32[4]={1,1,2,1.5}!", "mode='linear'"},
    {"Resize@10", "T[1,1,5,3] f32[4]={1,1,0.6,1.5}!", "", "T=f32,u8"},
    {"Resize@10", "T[1,1,5,3] f32[4]={1,1,0.6,1.5}", "", "T=f32,f16"},
    {"Resize@10", "string[3]={a,b,c} f32[1]={0.7}", ""},
    {"Upsample@9", "f32[1,1,2,3] f32[4]={1,1,2,1.5}", ""},
    {"Resize@11", "f32[1,1,2,3] f32[0]! f32[0]! i64[4]={1,1,3,3}",
     "mode='linear' coordinate_transformation_mode='align_corners'"},
    {"Resize@18", "f32[2,3] - f32[1]={2}!", "axes=[0]"},
    {"Upsample@9", "f32[1,1,2,2] f32[4]={1,1,2,3}!", "mode='nearest'"},
    {"Upsample@7", "f32[1,1,2,2]", "mode='linear' scales=[1.0,1.0,2.0,3.0]"},
    {"Upsample@1", "f32[1,1,2,2]", "mode='bilinear' height_scale=2.0 width_scale=3.0"},
    {"Resize", "f32[2,3] - f32[2]={2,2} i64[2]={4,6}", "", .fails = ORTC_INVALID_MODEL},
    {"Resize", "f32[2,3]", "", .fails = ORTC_INVALID_MODEL},
    {"Resize", "f32[2,3] - f32[2]={2,2}", "mode='lanczos'", .fails = ORTC_INVALID_MODEL},
    {"Resize", "f32[2,3] - f32[2]={2,2}", "coordinate_transformation_mode='tf_crop_and_resize'",
     .fails = ORTC_INVALID_MODEL},
    {"Resize", "f32[2,3] - f32[2]={2,-2}", "", .fails = ORTC_INVALID_ARGUMENT},
    {"Resize", "f32[2,3] - f32[2]={2,0}!", "", .fails = ORTC_INVALID_ARGUMENT},
    {"Resize", "f32[2,3] - f32[1]={2}", "", .fails = ORTC_SHAPE_MISMATCH},
    {"Resize", "f32[0,3] - - i64[2]={2,2}", "", .fails = ORTC_SHAPE_MISMATCH},
    {"Resize", "f32[2,3] - f32[2]={2,2}", "axes=[0,0]", .fails = ORTC_INVALID_MODEL},
    {"Resize", "f32[2] f32[2]={0,1e30} f32[1]={1e-30}",
     "mode='linear' antialias=1 coordinate_transformation_mode='tf_crop_and_resize'", .fails = ORTC_LIMIT},
    {"Resize", "c64[2] - f32[1]={2}", "mode='linear'", .fails = ORTC_UNSUPPORTED},
    {0},
};
