/* The table of depthwise micro-kernels and the choice from it. They are one body (dwconv_vec.c). */
#include "dwconv_uk.h"

#include "kernels/common/uk.h"

#define DECLARE(isa, needs, unused) ortc_uk_dwconv_f32 ortc_uk_dwconv_f32_##isa;
#define LINE(isa, needs, unused) {"dwconv_f32_" #isa, needs, ortc_uk_dwconv_f32_##isa},
ORTC_EACH_ISA(DECLARE, 0)
const ortc_dwconv_uk ortc_dwconv_uks[] = {ORTC_EACH_ISA(LINE, 0)};

const size_t ortc_dwconv_uk_count = sizeof ortc_dwconv_uks / sizeof ortc_dwconv_uks[0];

const ortc_dwconv_uk *ortc_dwconv_uk_select(void)
{
    return ORTC_UK_SELECT(ortc_dwconv_uks, ortc_dwconv_uk_count);
}
