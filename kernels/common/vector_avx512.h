/* The AVX-512 vector of f32 as macros, for the bodies of micro-kernels that are written once for all vector
 * lengths and included per instruction set (*_tile.inc). V_LOADM and V_STOREM touch only the lanes of their
 * mask; V_MAX and V_MIN return their second operand when one is NaN; V_MASK(n) is the first n lanes. One such
 * header a file.
 */
#ifndef ORTC_KERNELS_COMMON_VECTOR_H
#define ORTC_KERNELS_COMMON_VECTOR_H

#include <immintrin.h>

#define LANES 16
#define VEC __m512
#define MASK __mmask16
#define V_ZERO() _mm512_setzero_ps()
#define V_SET1(x) _mm512_set1_ps(x)
#define V_LOAD(p) _mm512_loadu_ps(p)
#define V_LOADM(p, m) _mm512_maskz_loadu_ps(m, p)
#define V_STORE(p, v) _mm512_storeu_ps(p, v)
#define V_STOREM(p, m, v) _mm512_mask_storeu_ps(p, m, v)
#define V_FMA(x, y, z) _mm512_fmadd_ps(x, y, z)
#define V_ADD(x, y) _mm512_add_ps(x, y)
#define V_MUL(x, y) _mm512_mul_ps(x, y)
#define V_MAX(x, y) _mm512_max_ps(x, y)
#define V_MIN(x, y) _mm512_min_ps(x, y)
#define V_MASK(n) ((__mmask16)((1u << (n)) - 1u)) /* the first n lanes, 0 <= n <= 16 */
/* x < 0 ? y : x, NaN stays */
#define V_NEG_SELECT(x, y) _mm512_mask_mov_ps(x, _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ), y)

#endif
