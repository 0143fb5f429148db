/* The table of f32 GEMM micro-kernels and the choice from it. Nothing here knows an instruction set: the
 * lines of sgemm_uk.inc do. */
#include "sgemm_uk.h"

#include "../common/cpu_features.h"

#define ORTC_SGEMM_UK(isa_bit, isa, mr, nr, step, kc) \
    {"sgemm_f32_" #mr "x" #nr "_" #isa, \
     isa_bit, \
     mr, \
     nr, \
     step, \
     kc, \
     ortc_uk_sgemm_f32_##mr##x##nr##_##isa, \
     ortc_uk_pack_rows_f32_##isa, \
     ortc_uk_pack_transpose_f32_##isa, \
     ortc_uk_sdot_f32_##isa},
const ortc_sgemm_uk ortc_sgemm_uks[] = {
#include "sgemm_uk.inc"
};
#undef ORTC_SGEMM_UK

const size_t ortc_sgemm_uk_count = sizeof ortc_sgemm_uks / sizeof ortc_sgemm_uks[0];

const ortc_sgemm_uk *ortc_sgemm_uk_select(void)
{
    const uint32_t have = ortc_cpu_features();
    for (size_t i = 0; i < ortc_sgemm_uk_count; i++)
        if ((ortc_sgemm_uks[i].isa & ~have) == 0) return &ortc_sgemm_uks[i];
    return &ortc_sgemm_uks[ortc_sgemm_uk_count - 1]; /* the scalar line needs no bit */
}
