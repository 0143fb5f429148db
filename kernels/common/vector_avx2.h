/* The AVX2 vector of f32 as macros, for the bodies of micro-kernels that are written once for all vector
 * lengths and included per instruction set (*_tile.inc). V_LOADM and V_STOREM touch only the lanes of their
 * mask; V_MAX and V_MIN return their second operand when one is NaN; V_MASK(n) is the first n lanes. One such
 * header a file.
 */
#ifndef ORTC_KERNELS_COMMON_VECTOR_H
#define ORTC_KERNELS_COMMON_VECTOR_H

#include <immintrin.h>

#define LANES 8
#define VEC __m256
#define MASK __m256i
#define V_ZERO() _mm256_setzero_ps()
#define V_SET1(x) _mm256_set1_ps(x)
#define V_LOAD(p) _mm256_loadu_ps(p)
#define V_LOADM(p, m) _mm256_maskload_ps(p, m)
#define V_STORE(p, v) _mm256_storeu_ps(p, v)
#define V_STOREM(p, m, v) _mm256_maskstore_ps(p, m, v)
#define V_FMA(x, y, z) _mm256_fmadd_ps(x, y, z)
#define V_ADD(x, y) _mm256_add_ps(x, y)
#define V_MUL(x, y) _mm256_mul_ps(x, y)
#define V_MAX(x, y) _mm256_max_ps(x, y)
#define V_MIN(x, y) _mm256_min_ps(x, y)
#define V_MASK(n) _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
/* x < 0 ? y : x, NaN stays */
#define V_NEG_SELECT(x, y) _mm256_blendv_ps(x, y, _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_LT_OQ))

#endif
