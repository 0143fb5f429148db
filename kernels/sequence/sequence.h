/* kernels/sequence/sequence.h: the family's kernels, for its table. */
#ifndef ORTC_KERNELS_SEQUENCE_H
#define ORTC_KERNELS_SEQUENCE_H

#include "kernels/common/shape.h"

extern const ortc_kernel ortc_ref_split_to_sequence, ortc_ref_concat_from_sequence; /* ref_join.c */
extern const ortc_kernel ortc_ref_sequence_map;                                     /* ref_map.c */

#endif
