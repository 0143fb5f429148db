/* tests/bench/mask_cpu.c: loaded in front of a program's own libraries (LD_PRELOAD), makes the processor look
 * as if it had less: CPU_MASK=avx2 leaves out AVX-512, AVX-VNNI and AMX, CPU_MASK=avx512 AMX alone. So
 * runtimes that have no switch for all of their kernels can be measured on less than this machine has.
 *
 * Linux can make the instruction CPUID fault (arch_prctl, ARCH_SET_CPUID; where /proc/cpuinfo says
 * cpuid_fault: Intel's processors since Ivy Bridge); the handler executes it and takes bits out of what it
 * says. Threads inherit that; programs that are started load this, too. glibc has looked before: its memcpy
 * stays as it was.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define BIT(n) (1u << (n))
#define ARCH_SET_CPUID 0x1012

/* Of leaf 7: F, DQ, IFMA, PF, ER, CD, BW, VL; VBMI, VBMI2, VNNI, BITALG, VPOPCNTDQ; 4VNNIW, 4FMAPS,
 * VP2INTERSECT, FP16. */
#define AVX512_B (BIT(16) | BIT(17) | BIT(21) | BIT(26) | BIT(27) | BIT(28) | BIT(30) | BIT(31))
#define AVX512_C (BIT(1) | BIT(6) | BIT(11) | BIT(12) | BIT(14))
#define AVX512_D (BIT(2) | BIT(3) | BIT(8) | BIT(23))
#define AMX_D (BIT(22) | BIT(24) | BIT(25))
/* Of its second part: AVX-VNNI, AVX512-BF16, AVX-IFMA; AVX-VNNI-INT8, AVX-NE-CONVERT, AVX-VNNI-INT16;
 * AMX-FP16, AMX-COMPLEX, AVX10. */
#define BEYOND_AVX2_1A (BIT(4) | BIT(5) | BIT(23))
#define BEYOND_AVX2_1D (BIT(4) | BIT(5) | BIT(10))
#define AMX_1A BIT(21)
#define AMX_1D (BIT(8) | BIT(19))

static int only_avx2;

static int faults(int yes) { return (int)syscall(SYS_arch_prctl, ARCH_SET_CPUID, !yes); }

static void answer(int number, siginfo_t *info, void *context)
{
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
    static const uint8_t cpuid[] = {0x0f, 0xa2};
    if (info->si_code != SI_KERNEL || memcmp((const void *)(uintptr_t)r[REG_RIP], cpuid, sizeof cpuid)) {
        signal(number, SIG_DFL); /* another's fault: it comes again, and ends the program */
        return;
    }
    const uint32_t leaf = (uint32_t)r[REG_RAX], part = (uint32_t)r[REG_RCX];
    uint32_t a, b, c, d;
    faults(0);
    __cpuid_count(leaf, part, a, b, c, d);
    faults(1);
    if (leaf == 7 && part == 0) {
        d &= ~AMX_D;
        if (only_avx2) b &= ~AVX512_B, c &= ~AVX512_C, d &= ~AVX512_D;
    } else if (leaf == 7 && part == 1) {
        a &= ~AMX_1A, d &= ~AMX_1D;
        if (only_avx2) a &= ~BEYOND_AVX2_1A, d &= ~BEYOND_AVX2_1D;
    }
    r[REG_RAX] = a, r[REG_RBX] = b, r[REG_RCX] = c, r[REG_RDX] = d;
    r[REG_RIP] += sizeof cpuid;
}

static const char *mask(const char *to)
{
    only_avx2 = !strcmp(to, "avx2");
    if (!only_avx2 && strcmp(to, "avx512")) return "is neither avx2 nor avx512";
    struct sigaction action = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO | SA_NODEFER};
    return sigaction(SIGSEGV, &action, NULL) || faults(1) ? "cannot be: this processor's CPUID does not fault"
                                                          : NULL;
}
#else
static const char *mask(const char *to) { return "cannot be: made for Linux on x86-64"; }
#endif

__attribute__((constructor)) static void begin(void)
{
    const char *to = getenv("CPU_MASK"), *wrong = to ? mask(to) : NULL;
    if (!wrong) return;
    fprintf(stderr, "CPU_MASK=%s %s\n", to, wrong);
    exit(1);
}
