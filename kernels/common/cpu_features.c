/* Detection behind cpu_features.h: CPUID leaves 1 and 7 and XCR0, by themselves, because compiler built-ins
 * (__builtin_cpu_supports) differ between gcc and clang in what they know. Other architectures report none.
 * The result is computed on first use and kept in an atomic; two threads that race compute the same word.
 */
#include "cpu_features.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#if defined(__linux__)
#include <unistd.h>
#endif

#include "kernels/common/vector/isas.h"

#define KNOWN 0x80000000u /* "already computed": tells an empty set from no answer yet */

static _Atomic uint32_t detected;
static _Atomic uint32_t allowed;
static _Atomic uint32_t test_mask = UINT32_MAX;

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#endif
#if defined(__GLIBC__) && __has_include(<sys/platform/x86.h>) /* 2.33 */
#include <sys/platform/x86.h>
#define ORTC_LOADER_ASKED
#endif

/* Tiles are 8 KB of state that Linux saves for processes that ask (once; their threads and children have it
 * then). It refuses where a thread's alternate signal stack is too small for them. */
static int may_use_tiles(void)
{
#if defined(__linux__) && defined(SYS_arch_prctl)
    const long request = 0x1023, tile_data = 18; /* ARCH_REQ_XCOMP_PERM, XFEATURE_XTILE_DATA */
    return syscall(SYS_arch_prctl, request, tile_data) == 0;
#else
    return 0;
#endif
}

static uint64_t xcr0(void)
{
    uint32_t lo, hi;
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return (uint64_t)hi << 32 | lo;
}

/* EAX, EBX, ECX, EDX of leaves 1 and 7, with its parts 0 and 1. Each question goes to the host of a virtual
 * machine, which takes ten microseconds; glibc's loader has asked already. */
typedef struct leaves {
    uint32_t one[4], seven[4], more[4];
} leaves;

#ifdef ORTC_LOADER_ASKED
static void read_leaves(leaves *l)
{
    memcpy(l->one, __x86_get_cpuid_feature_leaf(CPUID_INDEX_1)->cpuid_array, sizeof l->one);
    memcpy(l->seven, __x86_get_cpuid_feature_leaf(CPUID_INDEX_7)->cpuid_array, sizeof l->seven);
    memcpy(l->more, __x86_get_cpuid_feature_leaf(CPUID_INDEX_7_ECX_1)->cpuid_array, sizeof l->more);
}
#else
static void read_leaves(leaves *l)
{
    uint32_t *v = l->one;
    memset(l, 0, sizeof *l);
    if (__get_cpuid_max(0, NULL) < 7) return;
    __cpuid(1, v[0], v[1], v[2], v[3]);
    v = l->seven;
    __cpuid_count(7, 0, v[0], v[1], v[2], v[3]);
    v = l->more;
    if (l->seven[0]) __cpuid_count(7, 1, v[0], v[1], v[2], v[3]);
}
#endif

static int is_intel(void)
{
    uint32_t vendor = 0;
    return __get_cpuid_max(0, &vendor) && vendor == 0x756e6547; /* "Genu" */
}

static uint32_t detect(void)
{
    leaves l;
    read_leaves(&l);
    uint32_t bits = 0;
    const uint32_t fma = 1u << 12, osxsave = 1u << 27, avx = 1u << 28, f16c = 1u << 29;
    if ((l.one[2] & (fma | osxsave | avx | f16c)) != (fma | osxsave | avx | f16c)) return 0;
    const uint64_t state = xcr0();
    if ((state & 0x6) != 0x6) return 0; /* xmm and ymm are saved */
    const uint32_t b = l.seven[1], c = l.seven[2], d = l.seven[3], more = l.more[0];
    if (!(b & 1u << 5)) return 0;
    bits |= ORTC_CPU_AVX2;
    if (more & 1u << 4) bits |= ORTC_CPU_AVX_VNNI;
    const uint32_t f = 1u << 16, dq = 1u << 17, bw = 1u << 30, vl = 1u << 31, all = f | dq | bw | vl;
    if ((b & all) != all || (state & 0xe6) != 0xe6) return bits; /* opmask, upper zmm, zmm16-31 */
    bits |= ORTC_CPU_AVX512;
    if (c & 1u << 1) bits |= ORTC_CPU_AVX512_VBMI;
    if (c & 1u << 11) bits |= ORTC_CPU_AVX512_VNNI;
    const uint32_t amx = 1u << 22 | 1u << 24 | 1u << 25; /* BF16, TILE, INT8 */
    /* Intel's cores with AMX take 2 clocks for a vdpbf16ps, in which they do 4 fused multiply-adds. A virtual
     * machine may hide their tiles, yet not that they have AVX512-FP16. */
    const uint32_t fp16 = 1u << 23;
    if (more & 1u << 5 && !(d & fp16 && is_intel())) bits |= ORTC_CPU_AVX512_BF16;
    if ((d & amx) == amx && (state & 0x60000) == 0x60000 && may_use_tiles())
        bits |= ORTC_CPU_AMX | ORTC_CPU_AMX_F32;
    return bits;
}
#elif defined(__aarch64__)
static uint32_t detect(void) { return ORTC_CPU_NEON; }
#else
static uint32_t detect(void) { return 0; }
#endif

uint32_t ortc_cpu_features_detected(void)
{
    uint32_t v = atomic_load_explicit(&detected, memory_order_relaxed);
    if (v) return v & ~KNOWN;
    v = detect();
    atomic_store_explicit(&detected, v | KNOWN, memory_order_relaxed);
    return v;
}

uint32_t ortc_cpu_level_mask(const char *level, int *out_known)
{
#define LEVEL(isa, needs, unused) {#isa, needs},
    static const struct {
        const char *name;
        uint32_t bits;
    } levels[] = {ORTC_EACH_ISA(LEVEL, 0)};
#undef LEVEL
    const size_t count = sizeof levels / sizeof levels[0];
    uint32_t bits = 0;
    *out_known = 1;
    if (!strcmp(level, "amx")) return ~KNOWN;
    if (!strcmp(level, "amx-fma")) return ~(KNOWN | ORTC_CPU_AMX_F32);
    /* best first; the best has what is above it in this family of processors, tiles apart */
    if (!strcmp(level, levels[0].name)) return ~(KNOWN | ORTC_CPU_AMX | ORTC_CPU_AMX_F32);
    for (size_t i = count; i-- > 1;) {
        bits |= levels[i].bits;
        if (!strcmp(level, levels[i].name)) return bits;
    }
    *out_known = 0;
    return 0;
}

/* Many processors have their units of tiles slowed down together, and six products of bf16 take longer than
 * fused multiply-adds (docs/performance.md). The machine decides, and not the threads of a session, on which
 * bits do not depend. */
uint32_t ortc_cpu_features_usual(void)
{
    enum { MANY = 8 };
    const uint32_t has = ortc_cpu_features_detected();
#if defined(__linux__)
    if (has & ORTC_CPU_AMX_F32 && sysconf(_SC_NPROCESSORS_ONLN) > MANY)
        return has & ~(uint32_t)ORTC_CPU_AMX_F32;
#endif
    return has;
}

uint32_t ortc_cpu_features(void)
{
    uint32_t v = atomic_load_explicit(&allowed, memory_order_relaxed);
    if (!v) {
        const char *level = getenv("ORTC_CPU");
        int known = 0;
        const uint32_t mask = level ? ortc_cpu_level_mask(level, &known) : 0;
        v = (known ? ortc_cpu_features_detected() & mask : ortc_cpu_features_usual()) | KNOWN;
        atomic_store_explicit(&allowed, v, memory_order_relaxed);
    }
    return v & ~KNOWN & atomic_load_explicit(&test_mask, memory_order_relaxed);
}

void ortc_cpu_features_set_mask(uint32_t mask)
{
    atomic_store_explicit(&test_mask, mask, memory_order_relaxed);
}
