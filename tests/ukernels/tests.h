/* The tests that ukernels.c runs. `isa_bits`: the instruction sets that may be used (cpu_features.h). */
#ifndef ORTC_TESTS_UKERNELS_TESTS_H
#define ORTC_TESTS_UKERNELS_TESTS_H

#include "guard.h"

enum { RANDOM_CONVS = 250, EMULATED_CONVS = 100 }; /* of each kind: tally_count */

void test_product_uk(tally *t, uint32_t isa_bits); /* micro-kernels, packing, dot products */
void test_product(tally *t, uint32_t isa_bits);    /* the driver: shapes, batches, packed operands, threads */
void test_conv_uk(tally *t, uint32_t isa_bits);    /* depthwise and gathering micro-kernels */
void test_blocked(tally *t, uint32_t isa_bits);    /* convolution over blocks of channels */
void test_blocked_bytes(tally *t, uint32_t isa_bits);
void test_depthwise_bytes(tally *t, uint32_t isa_bits);
void test_blocked_by_pairs(tally *t, uint32_t isa_bits);
void test_blocked_pairs(tally *t, uint32_t isa_bits);
void test_tiled(tally *t, uint32_t isa_bits); /* the same on AMX, and on a unit in plain C */
void test_tiled_bytes(tally *t, uint32_t isa_bits);
void test_byte_ends(tally *t, uint32_t isa_bits);
extern const struct ortc_tiled_uk tiled_emulated; /* tiled_emulated.c */
void test_halved(tally *t, uint32_t isa_bits);
void test_grouped(tally *t, uint32_t isa_bits); /* of bytes, over groups of channels */
void test_pool_blocks(tally *t, uint32_t isa_bits);
void test_cpu(tally *t, uint32_t isa_bits); /* Conv, MatMul and Gemm of the cpu provider against ref */

#endif
