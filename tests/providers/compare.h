/* tests/providers/compare.h: two results of one case. */
#ifndef ORTC_TESTS_COMPARE_H
#define ORTC_TESTS_COMPARE_H

#include <stdbool.h>
#include <stddef.h>

#include "ortc/ortc.h"

/* Type and shape must be equal. Floats may differ by tolerance * eps(type) * (1 + |expected|); tolerance 0:
 * every bit must be equal. NaN matches NaN, an infinity the one of its sign. false: the first difference is
 * in `why`. */
bool values_match(const ortc_value *got, const ortc_value *expected, double tolerance, char *why,
                  size_t why_bytes);

#endif
