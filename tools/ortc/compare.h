/* tools/ortc/compare.h: does a result equal what was expected? The rule of ONNX's own test runner. */
#ifndef COMPARE_H
#define COMPARE_H

#include "cli.h"

typedef struct tolerance {
    double rtol, atol;
    bool values; /* false: only type and shape count (operators whose results are random) */
} tolerance;

/* Type and shape exactly; strings, booleans and the elements of sequences one by one; numbers when
 * |got - expected| <= atol + rtol * |expected|, NaN equal to NaN, infinities of one sign equal; for bf16
 * rtol is 2^-6 at least, two of its steps. False: `why` says what differs, in how many places, and where
 * first. */
bool values_equal(const ortc_value *got, const ortc_value *expected, const tolerance *, buffer *why);

#endif
