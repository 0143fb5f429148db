/* The table of row gathering micro-kernels, the choice from it, and the plain C one. */
#include "columns_uk.h"

#include <string.h>

#include "kernels/common/uk.h"

#define ORTC_COLUMNS_UK(isa_bit, isa, phases) \
    {"columns_f32_" #isa, isa_bit, ortc_uk_columns_f32_##isa, phases},
const ortc_columns_uk ortc_columns_uks[] = {
#include "columns_uk.inc"
};
#undef ORTC_COLUMNS_UK

const size_t ortc_columns_uk_count = sizeof ortc_columns_uks / sizeof ortc_columns_uks[0];

const ortc_columns_uk *ortc_columns_uk_select(void)
{
    return ORTC_UK_SELECT(ortc_columns_uks, ortc_columns_uk_count);
}

void ortc_uk_columns_f32_scalar(size_t rows, float *dst, size_t dst_step, const float *src, size_t src_step,
                                size_t stride, size_t left, size_t count, size_t right)
{
    for (size_t r = 0; r < rows; r++, dst += dst_step, src += src_step) {
        for (size_t i = 0; i < left; i++) dst[i] = 0;
        if (stride == 1)
            memcpy(dst + left, src, count * sizeof *dst);
        else
            for (size_t i = 0; i < count; i++) memcpy(dst + left + i, src + i * stride, sizeof *dst);
        for (size_t i = 0; i < right; i++) dst[left + count + i] = 0;
    }
}

ORTC_VEC_TABLE(ortc_columns_bytes)
const ortc_columns_bytes *ortc_columns_bytes_best(void) { return ortc_columns_bytes_select(); }
