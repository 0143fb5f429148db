/* The lines of the table of products that tests walk: those of the library, then lines that only tests have:
 * one of odd extents in plain C, which shows that packers and drivers need nothing but a line's numbers, and
 * those of AMX with its instructions emulated. */
#ifndef ORTC_TESTS_UKERNELS_LINES_H
#define ORTC_TESTS_UKERNELS_LINES_H

#include "kernels/gemm/product.h"

/* NULL behind the last. */
const ortc_product_line *test_line(size_t index);

/* What a line's operands may come from, and its results go to, at random. */
#include "guard.h"
ortc_product_types test_types(const ortc_product_line *line, rng *r);

/* n elements of a type at random: floats -1 .. 1, integers all of their range. */
void test_fill(rng *r, ortc_dtype type, void *p, size_t n);

/* Half of the distance between neighbours at v: what rounding to a type may add; 0 for f32 and integers. */
double test_rounding(ortc_dtype type, double v);

#endif
