/* The table of depthwise micro-kernels, the choice from it, and the plain C one. */
#include "dwconv_uk.h"

#include "kernels/common/cpu_features.h"
#include "kernels/gemm/sgemm_uk.h"

#define ORTC_DWCONV_UK(isa_bit, isa, lanes) {"dwconv_f32_" #isa, isa_bit, lanes, ortc_uk_dwconv_f32_##isa},
const ortc_dwconv_uk ortc_dwconv_uks[] = {
#include "dwconv_uk.inc"
};
#undef ORTC_DWCONV_UK

const size_t ortc_dwconv_uk_count = sizeof ortc_dwconv_uks / sizeof ortc_dwconv_uks[0];

const ortc_dwconv_uk *ortc_dwconv_uk_select(void)
{
    const uint32_t have = ortc_cpu_features();
    for (size_t i = 0; i < ortc_dwconv_uk_count; i++)
        if ((ortc_dwconv_uks[i].isa & ~have) == 0) return &ortc_dwconv_uks[i];
    return &ortc_dwconv_uks[ortc_dwconv_uk_count - 1]; /* the scalar line needs no bit */
}

#define BLOCK 16 /* elements summed together, so that taps are the outer loop and compilers see a vector */

void ortc_uk_dwconv_f32_scalar(size_t n, size_t taps, const float *src, const int32_t *offset,
                               const float *weight, float bias, int32_t act, float lo, float hi, float *dst)
{
    for (size_t j = 0; j < n; j += BLOCK) {
        const size_t m = n - j < BLOCK ? n - j : BLOCK;
        float acc[BLOCK] = {0};
        for (size_t t = 0; t < taps; t++) {
            const float w = ortc_uk_load_f32(weight + t), *s = src + offset[t] + j;
            for (size_t i = 0; i < m; i++) acc[i] += w * s[i];
        }
        for (size_t i = 0; i < m; i++) {
            float v = acc[i] + bias;
            if (act == ORTC_UK_ACT_CLIP) {
                v = v < lo ? lo : v; /* NaN stays */
                v = v > hi ? hi : v;
            } else if (act == ORTC_UK_ACT_LEAKY) {
                v = v < 0 ? v * lo : v;
            }
            dst[j + i] = v;
        }
    }
}
