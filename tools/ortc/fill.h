/* tools/ortc/fill.h: tensors made up: zeros, ones, random. */
#ifndef FILL_H
#define FILL_H

#include "cli.h"

typedef struct fill {
    enum { FILL_ZEROS, FILL_ONES, FILL_UNIFORM, FILL_NORMAL } kind;
    bool natural; /* `rand` alone: what suits the type */
    double a, b;  /* uniform: from, to; normal: mean, standard deviation */
} fill;

/* "zeros", "ones", "rand", "rand:uniform(a,b)", "rand:normal(mean,deviation)", arguments optional. 1: it is
 * one; 0: it is something else (a file's name); -1: it begins like one but is malformed. */
int fill_parse(const char *text, fill *out);

/* Errors: TYPE_MISMATCH (random strings), those of ortc_value_create. The same seed gives the same values. */
ortc_status fill_value(const fill *, ortc_dtype, int32_t rank, const int64_t *dims, uint64_t seed,
                       ortc_value **out, ortc_error *);

#endif
