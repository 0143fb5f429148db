/* Which instruction sets kernels may use on this machine.
 *
 * Owns: detection (CPUID and the operating system's saved state), the levels that a person can ask for with
 * the environment variable ORTC_CPU, and the mask that tests set. A level is the highest allowed one, by its
 * name in the list of instruction sets (kernels/common/vector/meson.build: "scalar", "avx2", "avx512", which
 * has all but AMX; "neon"), "amx-fma" (AMX for all but f32) or "amx"; any other text is ignored, because a
 * library does not print. The variable is read once. Invariant: a bit is set only if the processor has the
 * instructions and the system saves their registers. Leaves to others: choosing a kernel. Tables of
 * micro-kernels list best first, and the first whose bits are all set wins.
 */
#ifndef ORTC_KERNELS_COMMON_CPU_FEATURES_H
#define ORTC_KERNELS_COMMON_CPU_FEATURES_H

#include <stdint.h>

enum {
    ORTC_CPU_SCALAR = 0,       /* always there */
    ORTC_CPU_AVX2 = 1u << 0,   /* AVX2, FMA and F16C: every core with the first has the others */
    ORTC_CPU_AVX512 = 1u << 1, /* F, BW, DQ and VL */
    ORTC_CPU_AVX512_VNNI = 1u << 2,
    ORTC_CPU_AVX512_BF16 = 1u << 3, /* where it is as fast as AVX-512's f32: not on Intel's that have AMX */
    ORTC_CPU_NEON = 1u << 4,        /* every AArch64 core; has FMA */
    ORTC_CPU_AVX_VNNI = 1u << 5,
    ORTC_CPU_AMX = 1u << 6, /* TILE, INT8 and BF16; the operating system lets this process use it */
    /* Tiles multiply f32, too, as pieces of bf16. Not at level "amx-fma", and unless the level is "amx" not
     * where processors are more than 8: such machines slow their tiles down in use until six of their
     * products take longer than fused multiply-adds. */
    ORTC_CPU_AMX_F32 = 1u << 7,
    ORTC_CPU_AVX512_VBMI = 1u << 8, /* permutations of bytes */
};

/* The instruction sets that kernels may use: what the machine has, under ORTC_CPU and the tests' mask.
 * Thread: any. */
uint32_t ortc_cpu_features(void);

/* What the machine has, whatever is masked: so that a test can say why it skips. Thread: any. */
uint32_t ortc_cpu_features_detected(void);

/* What kernels use where ORTC_CPU names no level. Thread: any. */
uint32_t ortc_cpu_features_usual(void);

/* All bits up to a level's name, or 0 with *out_known = 0 for an unknown name. Thread: any. */
uint32_t ortc_cpu_level_mask(const char *level, int *out_known);

/* Tests only: from now on only bits of `mask` count (UINT32_MAX: all of them again, ORTC_CPU included).
 * Plans made before keep what they chose. Thread: set-up only. */
void ortc_cpu_features_set_mask(uint32_t mask);

#endif
