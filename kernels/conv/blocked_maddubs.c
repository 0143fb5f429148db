/* Convolution of bytes over blocks of channels (blocked_uk.h) for AVX2, and for AVX-512 without VNNI, by
 * weights that are halved (kernels/common/vector/halves.h). */
#include "blocked_uk.h"
#include "kernels/common/vector/halves.h"

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif
#define SPLITS V_LANES
#if defined(__AVX512F__)
#define PACE 1.3 /* not measured */
#else
#define PACE 1.6
#endif

VFN vi32 dot(vi32 sum, vi32 x, vi32 w) { return v_dot_halves(sum, x, w); }

#include "blocked_bytes.inc"

const ortc_blocked_bytes V_NAME(ortc_blocked_bytes) = {dense,          NULL,           stem, SPLITS,
                                                       v_count_halves, v_split_halves, PACE, move};
