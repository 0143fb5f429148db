/* kernels/gemm/product_amx.c with the tile instructions in plain C: lines of tests (lines.c). */
#include "amx_emulated.h"

#define AMX_NAME(types) ortc_uk_product_##types##_32x32_emulated
#define AMX_BEGIN emulated_begin
#define AMX_END emulated_end
#define AMX_F32_TILE ortc_uk_product_f32_f32_4x8_scalar
#define AMX_F32_MR 4
#define AMX_F32_NR 8
#include "kernels/gemm/product_amx.c"
