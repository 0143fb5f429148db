/* kernels/common/random.h: random numbers by counter, so that element i is the same on any number of threads
 * and devices.
 *
 * The i-th number of a stream is splitmix64's finalizer of key + (i + 1) * 2^64/phi, where the key is the
 * finalizer of the seed: streams of seeds that are neighbours have nothing in common. A kernel takes as many
 * numbers for an element as it needs, by multiplying i.
 */
#ifndef ORTC_KERNELS_RANDOM_H
#define ORTC_KERNELS_RANDOM_H

#include <math.h>

#include "ortc/op.h"

static inline uint64_t ortc_random_mix(uint64_t z)
{
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}
static inline uint64_t ortc_random_key(uint64_t seed)
{
    return ortc_random_mix(seed ^ UINT64_C(0x6a09e667f3bcc909));
}
static inline uint64_t ortc_random_bits(uint64_t key, uint64_t i)
{
    return ortc_random_mix(key + (i + 1) * UINT64_C(0x9e3779b97f4a7c15));
}
/* In [0, 1), 53 bits. */
static inline double ortc_random_uniform(uint64_t key, uint64_t i)
{
    return (double)(ortc_random_bits(key, i) >> 11) * 0x1p-53;
}
/* Of mean 0 and variance 1: Box and Muller's transform of two numbers, one result each. */
static inline double ortc_random_normal(uint64_t key, uint64_t i)
{
    /* u in (0, 1] */
    const double u = 1 - ortc_random_uniform(key, 2 * i), v = ortc_random_uniform(key, 2 * i + 1);
    return sqrt(-2 * log(u)) * cos(6.283185307179586476925287 * v);
}

/* The key of a node's stream: its attribute `seed`, a float, where there is one; else what the run gives
 * it. */
typedef struct ortc_random_seed {
    uint64_t bits;
    uint64_t given;
} ortc_random_seed;

static inline ortc_random_seed ortc_random_seed_of(const ortc_node *n)
{
    const ortc_attr a = ortc_node_attr(n, "seed");
    union {
        float f;
        uint32_t u;
    } bits = {.f = a.f};
    return (ortc_random_seed){a.kind == ORTC_ATTR_FLOAT ? bits.u : 0, a.kind == ORTC_ATTR_FLOAT};
}
static inline uint64_t ortc_random_key_of(const ortc_random_seed *s, ortc_call *c)
{
    return ortc_random_key(s->given ? s->bits : ortc_call_seed(c));
}

#endif
