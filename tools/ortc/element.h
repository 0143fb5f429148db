/* tools/ortc/element.h: single elements of tensors as numbers and text, for every element type.
 *
 * The command line looks at values (statistics, comparison, filling, conversion), it does not compute with
 * them, so it has one slow and obvious accessor. 64-bit integers do not fit a double: what must be exact uses
 * element_text or compares bytes.
 */
#ifndef ELEMENT_H
#define ELEMENT_H

#include "cli.h"

bool dtype_is_float(ortc_dtype); /* the real floats, 4 to 64 bits */
bool dtype_is_integer(ortc_dtype);
bool dtype_is_complex(ortc_dtype);

/* Bytes of `count` elements packed as ortc has them; false on overflow and for strings. */
bool dtype_bytes(ortc_dtype, int64_t count, size_t *out);

/* Element i, its real part if complex. bool is 0 or 1. Not for strings. */
double element_get(ortc_dtype, const void *data, int64_t i);
double element_imaginary(ortc_dtype, const void *data, int64_t i); /* 0 if not complex */
/* Stores v rounded to nearest even; integers are clamped to their range, float types without infinity
 * saturate. False if the stored element is not exactly v (NaN is exact where the type has one). */
bool element_set(ortc_dtype, void *data, int64_t i, double v);

/* Element i in few digits that still tell it from its neighbours: for f32 "0.1". */
void element_text(const ortc_value *, int64_t i, buffer *out);

/* "f32[2,3]", "sequence(f32) of 3", and a type alone: "sequence(map(i64, f32))". */
void value_describe(const ortc_value *, buffer *out);
void type_describe(const ortc_type *, buffer *out);
bool type_equal(const ortc_type *, const ortc_type *);
/* A static tensor type. */
const ortc_type *type_tensor(ortc_dtype);
/* "[1,n,8]": what a model says of an input's shape. */
void io_shape_describe(const ortc_io *, buffer *out);

/* Elements of a shape; false when an extent is negative or the product overflows. */
bool count_elements(int32_t rank, const int64_t *dims, int64_t *out);

#endif
