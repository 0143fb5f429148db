/* kernels/string/string.h: the family's kernels, for its table. */
#ifndef ORTC_KERNELS_STRING_H
#define ORTC_KERNELS_STRING_H

#include "kernels/common/shape.h"
#include "kernels/common/strings.h"

extern const ortc_kernel ortc_ref_string_normalizer; /* ref_normalizer.c */
extern const ortc_kernel ortc_ref_regex_full_match;  /* ref_regex.c */
extern const ortc_kernel ortc_ref_tfidf;             /* ref_tfidf.c */

#endif
