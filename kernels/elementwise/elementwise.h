/* kernels/elementwise/elementwise.h: the family's kernels on ref, for its table (ref.c). */
#ifndef ORTC_KERNELS_ELEMENTWISE_H
#define ORTC_KERNELS_ELEMENTWISE_H

#include "ortc/op.h"

extern const ortc_kernel ortc_ref_binary;      /* ref_binary.c: Add ... Less, And */
extern const ortc_kernel ortc_ref_pow;         /* ref_binary.c */
extern const ortc_kernel ortc_ref_unary;       /* ref_unary.c: Neg ... Not */
extern const ortc_kernel ortc_ref_mod;         /* ref_mod.c */
extern const ortc_kernel ortc_ref_is;          /* ref_is.c: IsInf, IsNaN */
extern const ortc_kernel ortc_ref_variadic;    /* ref_variadic.c: Min, Max, Sum, Mean */
extern const ortc_kernel ortc_ref_where;       /* ref_where.c */
extern const ortc_kernel ortc_ref_cast;        /* ref_cast.c */
extern const ortc_kernel ortc_ref_cast_string; /* ref_cast_string.c */

#endif
