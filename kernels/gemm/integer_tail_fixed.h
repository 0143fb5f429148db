/* What the instruction sets share of epilogues in fixed point (integer_tail_fixed.c): ortc_int_blocks.init
 * and .block, and channels done again. */
#ifndef ORTC_KERNELS_GEMM_INTEGER_TAIL_FIXED_H
#define ORTC_KERNELS_GEMM_INTEGER_TAIL_FIXED_H

#include "integer_tail.h"

enum { ORTC_INT_BLOCK = 16, ORTC_INT_GROUP = 4 }; /* channels, pixels */

int ortc_int_fixed_init(const ortc_int_pass *, int adds, ortc_int_fixed *out);
int ortc_int_fixed_block(const ortc_int_fixed *, const ortc_int_pass *, ortc_int_block *out);

/* Channels of four pixels (those whose bit in `sure` is not set) as the program has them. */
void ortc_int_fixed_again(const ortc_int_fixed *, const ortc_int_block *, uint32_t sure, const int32_t *sums,
                          size_t ld, const uint8_t *residual, uint8_t *y, size_t y_ld);

#endif
