/* tools/ortc/peak.c: the loops of peak.h. 12 independent sums: more than latency (4 clocks) times ports (2).
 * The instruction set is switched on per function, because a program holds all of them. */
#include "peak.h"

#define CHAINS 12

static double scalar(double flops, float *sink)
{
    /* Four lanes and separate multiply and add: what a compiler makes of the plain C kernel. */
    float x[CHAINS][4] = {{0}};
    const long n = (long)(flops / (CHAINS * 4 * 2)) + 1;
    for (long i = 0; i < n; i++)
        for (int c = 0; c < CHAINS; c++)
            for (int l = 0; l < 4; l++) x[c][l] = x[c][l] * 0.999f + 0.5f;
    for (int c = 0; c < CHAINS; c++) *sink += x[c][0];
    return (double)n * CHAINS * 4 * 2;
}

#if defined(__x86_64__)
#include <immintrin.h>

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif

__attribute__((target("avx2,fma"))) static double avx2(double flops, float *sink)
{
    __m256 x[CHAINS];
    const __m256 a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(0.5f);
    const long n = (long)(flops / (CHAINS * 8 * 2)) + 1;
    UNROLL for (int c = 0; c < CHAINS; c++) x[c] = _mm256_set1_ps((float)c);
    for (long i = 0; i < n; i++) {
        UNROLL for (int c = 0; c < CHAINS; c++) x[c] = _mm256_fmadd_ps(x[c], a, b);
    }
    UNROLL for (int c = 0; c < CHAINS; c++) *sink += _mm256_cvtss_f32(x[c]);
    return (double)n * CHAINS * 8 * 2;
}

__attribute__((target("avx512f"))) static double avx512(double flops, float *sink)
{
    __m512 x[CHAINS];
    const __m512 a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(0.5f);
    const long n = (long)(flops / (CHAINS * 16 * 2)) + 1;
    UNROLL for (int c = 0; c < CHAINS; c++) x[c] = _mm512_set1_ps((float)c);
    for (long i = 0; i < n; i++) {
        UNROLL for (int c = 0; c < CHAINS; c++) x[c] = _mm512_fmadd_ps(x[c], a, b);
    }
    UNROLL for (int c = 0; c < CHAINS; c++) *sink += _mm512_cvtss_f32(x[c]);
    return (double)n * CHAINS * 16 * 2;
}
#endif

double peak_f32(uint32_t isa, double flops, float *sink)
{
#if defined(__x86_64__)
    if (isa & PEAK_AVX512) return avx512(flops, sink);
    if (isa & PEAK_AVX2) return avx2(flops, sink);
#endif
    (void)isa;
    return scalar(flops, sink);
}

uint32_t peak_isas(void)
{
    uint32_t isas = 0;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) isas |= PEAK_AVX2;
    if (__builtin_cpu_supports("avx512f")) isas |= PEAK_AVX512;
#endif
    return isas;
}
