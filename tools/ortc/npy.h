/* tools/ortc/npy.h: numpy's .npy arrays, and .npz archives of them.
 *
 * Read: versions 1 to 3, C and Fortran order, both byte orders; bool, integers, f16/f32/f64, complex, strings
 * ('S' and 'U'); '<V2' as bf16, which is how ml_dtypes writes it, and '|V1' as whatever 8-bit or smaller
 * float the caller expects. Not read: Python objects (they are pickles, programs in disguise), records,
 * dates, long double. Written: version 1, C order, little-endian; types below a byte one element a byte. A
 * file is trusted in nothing: its sizes must agree with the bytes that are there before any memory is asked
 * for.
 */
#ifndef NPY_H
#define NPY_H

#include "cli.h"

/* `expected`: the type that is wanted, to decide what '|V1' means; ORTC_ABSENT for none. Errors:
 * INVALID_ARGUMENT (not an npy file, or damaged), UNSUPPORTED (a dtype that is not read), OUT_OF_MEMORY; *out
 * is NULL then. */
ortc_status npy_decode(const void *data, size_t bytes, ortc_dtype expected, ortc_value **out, ortc_error *);

/* Errors: UNSUPPORTED (not a tensor on the host). Owner of out->data: the caller; free(). */
ortc_status npy_encode(const ortc_value *, buffer *out, ortc_error *);

#endif
