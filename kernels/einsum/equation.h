/* kernels/einsum/equation.h: reading Einsum's equation: which label each dim of an operand and of the result
 * has.
 *
 * Labels are numbers: 0 .. 51 for A .. Z, a .. z, and from there on one for each dim under the ellipsis,
 * counted from the right, so that operands with fewer of them line up as numpy broadcasts.
 */
#ifndef ORTC_KERNELS_EINSUM_EQUATION_H
#define ORTC_KERNELS_EINSUM_EQUATION_H

#include "kernels/common/iterate.h"

enum { ORTC_EINSUM_LETTERS = 52, ORTC_EINSUM_LABELS = ORTC_EINSUM_LETTERS + ORTC_RANK_LIMIT };

typedef struct ortc_einsum_result {
    int32_t ellipsis;                  /* dims under the widest ellipsis so far */
    int32_t times[ORTC_EINSUM_LABELS]; /* how often a label has been used by operands */
    int32_t rank;
    uint8_t labels[ORTC_EINSUM_LABELS]; /* of the result's dims */
} ortc_einsum_result;

/* How many operands the equation has. */
uint32_t ortc_einsum_count(const char *equation);
/* The labels of operand `which`, of that rank; notes them in the result, which begins as zeros. NULL: fine,
 * else what is wrong. */
const char *ortc_einsum_operand(const char *equation, uint32_t which, int32_t rank, uint8_t *labels,
                                ortc_einsum_result *);
/* The labels of the result, after all operands. */
const char *ortc_einsum_output(const char *equation, ortc_einsum_result *);

#endif
