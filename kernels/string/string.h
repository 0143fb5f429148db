/* kernels/string/string.h: the family's kernels, for its table. */
#ifndef ORTC_KERNELS_STRING_H
#define ORTC_KERNELS_STRING_H

#include <regex.h>

#include "kernels/common/shape.h"
#include "kernels/common/strings.h"

extern const ortc_kernel ortc_ref_string_normalizer; /* ref_normalizer.c */
extern const ortc_kernel ortc_ref_regex_full_match;  /* ref_regex.c */
extern const ortc_kernel ortc_ref_tfidf;             /* ref_tfidf.c */
extern const ortc_kernel ortc_ref_murmur;            /* ref_hash.c */
extern const ortc_kernel ortc_ref_tokenizer;         /* ref_tokenizer.c */

/* An expression in RE2's syntax that matches a `whole` text, or finds a part of one. ref_regex.c */
ortc_status ortc_regex_compile(const char *pattern, size_t length, bool whole, regex_t *, ortc_prep *);

#endif
