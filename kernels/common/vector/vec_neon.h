/* kernels/common/vector/vec_neon.h: AArch64's Advanced SIMD, which has FMA. */
#include <arm_neon.h>

#define V_LANES 4
V_TYPES(V_LANES)
V_LANE_MASKS

#define v_down(v, h) __builtin_shufflevector(v, v, (h)&3, ((h) + 1) & 3, ((h) + 2) & 3, ((h) + 3) & 3)
/* Every other lane of a, then of b. */
#define v_even(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6)

#define v_fma v_fma
VFN vf32 v_fma(vf32 a, vf32 b, vf32 c) { return vfmaq_f32(c, a, b); }
VFN vf64 v_fma_f64(vf64 a, vf64 b, vf64 c) { return vfmaq_f64(c, a, b); }
/* v_max and v_min are the generic ones: of two operands FMAX returns the NaN, FMAXNM the number. */
#define v_sqrt v_sqrt
VFN vf32 v_sqrt(vf32 a) { return vsqrtq_f32(a); }
#define v_rint v_rint
VFN vf32 v_rint(vf32 x) { return vrndnq_f32(x); }
VFN vf32 v_floor(vf32 x) { return vrndmq_f32(x); }
VFN vf32 v_ceil(vf32 x) { return vrndpq_f32(x); }
VFN vf32 v_trunc(vf32 x) { return vrndq_f32(x); }
#define v_pick_8 v_pick_8
VFN vf32 v_pick_8(const float table[8], vi32 i)
{
    const uint8x16x2_t bytes = vld1q_u8_x2((const uint8_t *)table);
    const uint32x4_t at = vmlaq_n_u32(vdupq_n_u32(0x03020100), vandq_u32((uint32x4_t)i, vdupq_n_u32(7)),
                                      0x04040404);
    return vreinterpretq_f32_u8(vqtbl2q_u8(bytes, vreinterpretq_u8_u32(at)));
}
#define v_dot_pairs v_dot_pairs
VFN vi32 v_dot_pairs(vi32 sum, vi32 a, vi32 x, vi32 b, vi32 y)
{
    const int8x16_t p = (int8x16_t)a, q = (int8x16_t)x, r = (int8x16_t)b, s = (int8x16_t)y;
    const int16x8_t low = vmlal_s8(vmull_s8(vget_low_s8(p), vget_low_s8(q)), vget_low_s8(r), vget_low_s8(s)),
                    high = vmlal_high_s8(vmull_high_s8(p, q), r, s);
    return (vi32)vpadalq_s16((int32x4_t)sum, vpaddq_s16(low, high));
}
#define v_i32_of_f32 v_i32_of_f32
VFN vi32 v_i32_of_f32(vf32 x) { return vcvtq_s32_f32(x); }
#define v_any v_any
VFN int v_any(vm32 m) { return vmaxvq_u32((uint32x4_t)m) != 0; }
#define v_h2f v_h2f
VFN vf32 v_h2f(v_mem_u16 h) { return vcvt_f32_f16((float16x4_t)h); }
VFN v_mem_u16 v_f2h(vf32 v) { return (v_mem_u16)vcvt_f16_f32(v); }
