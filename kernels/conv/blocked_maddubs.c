/* Convolution of bytes over blocks of channels (blocked_uk.h) for AVX2, and for AVX-512 without VNNI:
 * vpmaddubsw adds two products of u8 and s8 in 16 bits, vpmaddwd two such sums. Exact, for weights are halved
 * where 255 of each could be beyond that: three instructions for four products a lane, where those of bytes
 * widened to 16 bits take two for two (Zen 4, AVX2: 80 and 50 products a nanosecond; fused multiply-adds 45).
 */
#include "blocked_uk.h"
#include "kernels/common/vector/vec.h"

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif
#define SPLITS V_LANES
#if defined(__AVX512F__)
#define PACE 1.3
#else
#define PACE 1.6
#endif

/* In this order, and the ones from memory: all sums, two weights, a word and this are all registers, of which
 * compilers would take more. */
VFN vi32 dot(vi32 sum, vi32 x, vi32 w)
{
    static const int16_t ones[32] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                     1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    vi32 pairs;
    __asm__ volatile("vpmaddubsw %3, %2, %1\n\t"
                     "vpmaddwd %4, %1, %1\n\t"
                     "vpaddd %1, %0, %0"
                     : "+v"(sum), "=&v"(pairs)
                     : "v"(x), "v"(w), "m"(ones));
    return sum;
}

#include "blocked_bytes.inc"

const ortc_blocked_bytes V_NAME(ortc_blocked_bytes) = {dense, stem, SPLITS, PACE, move};
