/* kernels/random/twister.h: the numbers that numpy's RandomState draws from a seed: MT19937, seeded by one
 * word, of whose outputs two make a double. What the standard's own cases of Dropout were made with. Number
 * i is known when those before it are, so nothing here is shared out to threads. */
#ifndef ORTC_KERNELS_RANDOM_TWISTER_H
#define ORTC_KERNELS_RANDOM_TWISTER_H

#include <stdint.h>

enum { ORTC_TWISTER_WORDS = 624 };

typedef struct ortc_twister {
    uint32_t words[ORTC_TWISTER_WORDS];
    int next;
} ortc_twister;

static inline void ortc_twister_seed(ortc_twister *t, uint32_t seed)
{
    for (uint32_t i = 0; i < ORTC_TWISTER_WORDS; i++) {
        t->words[i] = seed;
        seed = UINT32_C(1812433253) * (seed ^ seed >> 30) + i + 1;
    }
    t->next = ORTC_TWISTER_WORDS;
}

static inline uint32_t ortc_twister_bits(ortc_twister *t)
{
    enum { N = ORTC_TWISTER_WORDS, M = 397 };
    if (t->next == N) {
        for (int i = 0; i < N; i++) {
            const uint32_t y = (t->words[i] & UINT32_C(0x80000000)) |
                               (t->words[(i + 1) % N] & UINT32_C(0x7fffffff));
            t->words[i] = t->words[(i + M) % N] ^ y >> 1 ^ (y & 1 ? UINT32_C(0x9908b0df) : 0);
        }
        t->next = 0;
    }
    uint32_t y = t->words[t->next++];
    y ^= y >> 11;
    y ^= y << 7 & UINT32_C(0x9d2c5680);
    y ^= y << 15 & UINT32_C(0xefc60000);
    return y ^ y >> 18;
}

/* In [0, 1), 53 bits. */
static inline double ortc_twister_uniform(ortc_twister *t)
{
    const uint32_t high = ortc_twister_bits(t) >> 5, low = ortc_twister_bits(t) >> 6;
    return ((double)high * 0x1p26 + (double)low) * 0x1p-53;
}

#endif
