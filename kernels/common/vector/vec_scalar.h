/* kernels/common/vector/vec_scalar.h: the instruction set that is always there: what the compiler makes of
 * 16-byte vectors. On x86-64 that is SSE2, which has no FMA: see the rule in vec.h. */
#define V_LANES 4
V_TYPES(V_LANES)
V_LANE_MASKS

#define v_down(v, h) __builtin_shufflevector(v, v, (h)&3, ((h) + 1) & 3, ((h) + 2) & 3, ((h) + 3) & 3)
/* Every other lane of a, then of b. */
#define v_even(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6)

#if defined(__SSE2__)
#include <emmintrin.h>

#define v_max v_max
VFN vf32 v_max(vf32 a, vf32 b) { return _mm_max_ps(a, b); }
VFN vf32 v_min(vf32 a, vf32 b) { return _mm_min_ps(a, b); }
#define v_sqrt v_sqrt
VFN vf32 v_sqrt(vf32 a) { return _mm_sqrt_ps(a); }
#define v_any v_any
VFN int v_any(vm32 m) { return _mm_movemask_ps((__m128)m) != 0; }
#endif
