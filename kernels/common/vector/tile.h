/* kernels/common/vector/tile.h: the names that register tiles use (kernels/gemm/sgemm_tile.inc), which unlike
 * bodies know their number of lanes and keep arrays of registers. */
#ifndef ORTC_KERNELS_VECTOR_TILE_H
#define ORTC_KERNELS_VECTOR_TILE_H

#include "kernels/common/vector/vec.h"

#define LANES V_LANES
#define VEC vf32
#define MASK vm32
#define V_ZERO() v_set_f32(0)
#define V_SET1(x) v_set_f32(x)
#define V_LOAD(p) v_load_f32(p, LANES)
#define V_LOADM(p, m) v_load_masked_f32(p, m)
#define V_STORE(p, v) v_store_f32(p, v, LANES)
#define V_STOREM(p, m, v) v_store_masked_f32(p, v, m)
#define V_FMA(x, y, z) v_fma(x, y, z)
#define V_ADD(x, y) v_add(x, y)
#define V_MUL(x, y) v_mul(x, y)
#define V_MAX(x, y) v_max(x, y)
#define V_MIN(x, y) v_min(x, y)
#define V_MASK(n) v_first((size_t)(n))
/* x < 0 ? y : x, NaN stays */
#define V_NEG_SELECT(x, y) v_sel(v_lt(x, v_set_f32(0)), y, x)

#endif
