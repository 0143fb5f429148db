/* tools/ortc/files.h: values out of files and into them: .npy, .npz, .pb; conversion of element types. */
#ifndef FILES_H
#define FILES_H

#include "cli.h"
#include "zip.h"

/* A .npy or .pb file as a value. `expected`: the type that is wanted, which says what message a .pb holds and
 * what an untyped .npy means; the result may still be of another type. Errors: NOT_FOUND, IO, LIMIT,
 * INVALID_ARGUMENT or INVALID_MODEL (damaged), UNSUPPORTED; *out is NULL then. */
ortc_status value_read(const char *path, const ortc_type *expected, ortc_value **out, ortc_error *);

/* A tensor as another element type, rounded where it must be. *out_inexact: the first element that changed,
 * -1 if all came through exactly. Not for strings. */
ortc_status value_convert(const ortc_value *, ortc_dtype, ortc_value **out, int64_t *out_inexact,
                          ortc_error *);

/* An .npz archive in memory. */
typedef struct npz {
    blob file;
    zip_archive zip;
    uint64_t limit; /* bytes that a member may unpack to */
} npz;
ortc_status npz_open(const char *path, npz *out, ortc_error *);
void npz_close(npz *);
const zip_member *npz_find(const npz *, const char *key); /* "x" finds "x.npy"; NULL: not there */
ortc_status npz_read(const npz *, const zip_member *, ortc_dtype expected, ortc_value **out, ortc_error *);

/* Writes values by the file's ending: .npz any number, .npy and .pb one. Errors also when there are too
 * many. */
ortc_status values_write(const char *path, const ortc_out *values, size_t count, bool deflated, ortc_error *);

#endif
