/* Products whose elements are pieces of bf16, on a unit of tiles: sums in tiles 0 to 3, A in 4 and 5, B in 6
 * and 7. The smallest come first, so that each takes one new operand, which is loaded between products that
 * do not read it. Of three pieces six: (A, B) 02, 01, 11, 10, 20, 00; of two all four: 11, 01, 00, 10.
 *
 * Whoever uses it has two_a and two_b, whether there are two tiles of a side, LOAD_A(tile, piece),
 * LOAD_B(tile, piece), and AHEAD(step), which asks for what comes next: 24 steps for six products, 16 for
 * four. */
#ifndef ORTC_KERNELS_GEMM_AMX_PIECES_H
#define ORTC_KERNELS_GEMM_AMX_PIECES_H

#include "amx.h"

/* The four products of two pieces, by columns; by rows. */
#define AMX_BY_COLUMNS(at, then6, then7) \
    do { \
        AMX_TDP(bf16ps, 0, 4, 6); \
        AHEAD(at); \
        if (two_a) AMX_TDP(bf16ps, 2, 5, 6); \
        AHEAD(at + 1); \
        then6; \
        if (two_b) AMX_TDP(bf16ps, 1, 4, 7); \
        AHEAD(at + 2); \
        if (two_a && two_b) AMX_TDP(bf16ps, 3, 5, 7); \
        AHEAD(at + 3); \
        if (two_b) then7; \
    } while (0)
#define AMX_BY_ROWS(at, then4, then5) \
    do { \
        AMX_TDP(bf16ps, 0, 4, 6); \
        AHEAD(at); \
        if (two_b) AMX_TDP(bf16ps, 1, 4, 7); \
        AHEAD(at + 1); \
        then4; \
        if (two_a) AMX_TDP(bf16ps, 2, 5, 6); \
        AHEAD(at + 2); \
        if (two_a && two_b) AMX_TDP(bf16ps, 3, 5, 7); \
        AHEAD(at + 3); \
        if (two_a) then5; \
    } while (0)
#define AMX_FIRST(a, b) \
    do { \
        LOAD_A(4, a); \
        LOAD_B(6, b); \
        if (two_a) LOAD_A(5, a); \
        if (two_b) LOAD_B(7, b); \
    } while (0)

#define AMX_FOUR_OF_PIECES() \
    do { \
        AMX_FIRST(1, 1); \
        AMX_BY_ROWS(0, LOAD_A(4, 0), LOAD_A(5, 0));    /* 11 */ \
        AMX_BY_COLUMNS(4, LOAD_B(6, 0), LOAD_B(7, 0)); /* 01 */ \
        AMX_BY_ROWS(8, LOAD_A(4, 1), LOAD_A(5, 1));    /* 00 */ \
        AMX_BY_ROWS(12, (void)0, (void)0);             /* 10 */ \
    } while (0)
#define AMX_SIX_OF_PIECES() \
    do { \
        AMX_FIRST(0, 2); \
        AMX_BY_COLUMNS(0, LOAD_B(6, 1), LOAD_B(7, 1)); /* 02 */ \
        AMX_BY_ROWS(4, LOAD_A(4, 1), LOAD_A(5, 1));    /* 01 */ \
        AMX_BY_COLUMNS(8, LOAD_B(6, 0), LOAD_B(7, 0)); /* 11 */ \
        AMX_BY_ROWS(12, LOAD_A(4, 2), LOAD_A(5, 2));   /* 10 */ \
        AMX_BY_ROWS(16, LOAD_A(4, 0), LOAD_A(5, 0));   /* 20 */ \
        AMX_BY_ROWS(20, (void)0, (void)0);             /* 00 */ \
    } while (0)

#endif
