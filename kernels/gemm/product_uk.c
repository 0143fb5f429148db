/* The table of f32 GEMM micro-kernels and the choice from it. Nothing here knows an instruction set: the
 * lines of product_lines.inc do. */
#include "product_uk.h"

#include "kernels/common/uk.h"

#define ORTC_PRODUCT_LINE(isa_bit, isa, mr, nr, step, kc) \
    {"product_f32_" #mr "x" #nr "_" #isa, \
     isa_bit, \
     mr, \
     nr, \
     step, \
     kc, \
     ortc_uk_product_f32_##mr##x##nr##_##isa, \
     ortc_uk_pack_rows_f32_##isa, \
     ortc_uk_pack_transpose_f32_##isa, \
     ortc_uk_dot_f32_##isa},
const ortc_product_line ortc_product_lines[] = {
#include "product_lines.inc"
};
#undef ORTC_PRODUCT_LINE

const size_t ortc_product_line_count = sizeof ortc_product_lines / sizeof ortc_product_lines[0];

const ortc_product_line *ortc_product_select(void)
{
    return ORTC_UK_SELECT(ortc_product_lines, ortc_product_line_count);
}
