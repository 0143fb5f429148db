/* The tile instructions of AMX, in assembler of our own: compilers' intrinsics declare too little of what
 * they read and write (gcc 12: tileloadd has no memory operand, ldtilecfg 8 of its 64 bytes), so that stores
 * before them may move or go. Numbers of tiles are literals. A test that includes product_amx.c defines these
 * names itself. */
#ifndef ORTC_KERNELS_GEMM_AMX_H
#define ORTC_KERNELS_GEMM_AMX_H

#include <stdint.h>

#define AMX_ROW 64 /* bytes of a tile's row; it has up to 16 */

/* What ldtilecfg reads. */
typedef struct amx_shape {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16]; /* of each tile */
    uint8_t rows[16];
} amx_shape;
_Static_assert(sizeof(amx_shape) == 64, "the instruction's operand");

#ifndef AMX_TDP
#define AMX_CONFIG(shape) __asm__ volatile("ldtilecfg %0" : : "m"(*(shape)) : "memory")
#define AMX_RELEASE() __asm__ volatile("tilerelease" : : : "memory")
#define AMX_ZERO(t) __asm__ volatile("tilezero %%tmm" #t : : :)
#define AMX_LOAD(t, from, stride) \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #t : : "r"(from), "r"((size_t)(stride)) : "memory")
#define AMX_STORE(t, to, stride) \
    __asm__ volatile("tilestored %%tmm" #t ", (%0,%1,1)" : : "r"(to), "r"((size_t)(stride)) : "memory")
/* c += a b; op: bf16ps, or b and the signs of a and of b: bssd, bsud, busd, buud */
#define AMX_TDP(op, c, a, b) __asm__ volatile("tdp" #op " %%tmm" #b ", %%tmm" #a ", %%tmm" #c : : :)
#endif

/* The unit falls asleep where it has nothing to do for some hundred clocks, and takes about as long to wake
 * up: a product of nothing behind what other units do in between lets it begin to. Tiles 0, 4 and 6 are to be
 * configured; 0 is lost. bf16, 3136 x 96 x 384 with Gelu: 1.3 ms without, 0.9 to 1.1 with it. */
#define AMX_WAKE() AMX_TDP(bf16ps, 0, 4, 6)

#endif
