/* Buffers for tests of micro-kernels: an inaccessible page lies directly before or behind each, so that one
 * element too many faults, and a pattern fills the rest of the pages, so that a smaller overrun on the other
 * side is seen.
 */
#ifndef ORTC_TESTS_GUARD_H
#define ORTC_TESTS_GUARD_H

#include <stddef.h>
#include <stdint.h>

typedef struct guard {
    unsigned char *data; /* bytes long */
    size_t bytes;
    unsigned char *map;
    size_t map_bytes;
} guard;

/* at_end: the last byte is followed by the inaccessible page (the start has the alignment that remains);
 * otherwise the first byte follows one. Contents are the pattern. */
guard guard_open(size_t bytes, int at_end);
/* 1 if the pattern around the buffer is intact. */
int guard_intact(const guard *);
void guard_close(guard *);

/* Random numbers with a printed seed: the same sequence everywhere. */
typedef struct rng {
    uint64_t s;
} rng;
uint32_t rng_next(rng *);
int64_t rng_range(rng *, int64_t lo, int64_t hi); /* both included */
float rng_float(rng *);                           /* -1 .. 1 */
void rng_fill(rng *, float *p, size_t n);

/* What a test program counts. */
typedef struct tally {
    int passed, failed, skipped;
    uint64_t seed;
    int every;          /* one random problem in so many, for builds that are slow */
    const char *filter; /* NULL: all */
} tally;
/* Whether a test is to run: not where the filter leaves it out, nor, counted as skipped, where the machine,
 * or ORTC_CPU, has not its instructions. */
int tally_begins(tally *, const char *name, int can);
/* How many of `of` random problems are tried: one at least. */
int tally_count(const tally *, int of);
void tally_result(tally *, const char *name, int failures);

#endif
