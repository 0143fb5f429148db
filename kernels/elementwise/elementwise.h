/* kernels/elementwise/elementwise.h: the family's kernels on ref, for its table (ref.c), and what operators
 * of other families do to an element. */
#ifndef ORTC_KERNELS_ELEMENTWISE_H
#define ORTC_KERNELS_ELEMENTWISE_H

#include "ortc/program.h"

extern const ortc_kernel ortc_ref_binary;      /* ref_binary.c: Add ... Less, And */
extern const ortc_kernel ortc_ref_pow;         /* ref_binary.c */
extern const ortc_kernel ortc_ref_unary;       /* ref_unary.c: Neg ... Not */
extern const ortc_kernel ortc_ref_mod;         /* ref_mod.c */
extern const ortc_kernel ortc_ref_is;          /* ref_is.c: IsInf, IsNaN */
extern const ortc_kernel ortc_ref_variadic;    /* ref_variadic.c: Min, Max, Sum, Mean */
extern const ortc_kernel ortc_ref_where;       /* ref_where.c */
extern const ortc_kernel ortc_ref_cast;        /* ref_cast.c */
extern const ortc_kernel ortc_ref_cast_string; /* ref_cast_string.c */

/* op.c: of the operators on bits. A shift by a negative number, or by as many bits as there are or more,
 * shifts all bits out; to the right copies of the sign come in. */
int32_t ortc_expand_and(const ortc_node *, ortc_pw_builder *);
int32_t ortc_expand_or(const ortc_node *, ortc_pw_builder *);
int32_t ortc_expand_xor(const ortc_node *, ortc_pw_builder *);
int32_t ortc_expand_not(const ortc_node *, ortc_pw_builder *);
int32_t ortc_expand_shift(const ortc_node *, ortc_pw_builder *);

#endif
