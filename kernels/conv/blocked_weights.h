/* How packed weights of blocked.h lie: for what fills them (blocked_weights.c) and reads them (blocked.c). */
#ifndef ORTC_KERNELS_CONV_BLOCKED_WEIGHTS_H
#define ORTC_KERNELS_CONV_BLOCKED_WEIGHTS_H

#include <string.h>

#include "blocked.h"

enum { ORTC_BLOCKED_WORD = 4, ORTC_BLOCKED_PAIR = 2 }; /* bytes, or bf16, that are multiplied together */

static inline int32_t ortc_blocked_type(ortc_dtype t)
{
    return t == ORTC_U8 || t == ORTC_I8 ? ORTC_BLOCKED_BYTES : ortc_float_index(t);
}
/* Of what the micro-kernels take as an element of W: of bytes and pairs a word. */
static inline int64_t ortc_blocked_element_bytes(int32_t type, int form)
{
    return form == ORTC_BLOCKED_DENSE && (type == ORTC_FLOAT_F16 || type == ORTC_FLOAT_BF16) ? 2 : 4;
}

/* Bytes of words of bytes, behind which there are sums of filters, and then what is taken once more:
 * uint32_t [parts + 1], where each part's begin, a part being as many filters as a register has,
 * ortc_blocked_word [n], weights [n][filter][4], each at a multiple of a cache line. */
static inline size_t ortc_blocked_word_bytes(int64_t blocks, int64_t ins, int64_t taps, int64_t step)
{
    return (size_t)(blocks * ins * taps * step * ORTC_BLOCK * ORTC_BLOCKED_WORD);
}

static inline size_t ortc_blocked_to_line(size_t bytes) { return (bytes + 63) / 64 * 64; }

/* A word of x that is taken once more. */
typedef struct ortc_blocked_word {
    uint32_t group;
    uint16_t tap, word;
} ortc_blocked_word;

/* What is taken once more, in a packed form. */
typedef struct ortc_blocked_more_of {
    uint32_t *begin;
    ortc_blocked_word *word; /* NULL: nothing */
    char *w;
    int64_t each, size; /* parts of a block, bytes of a part's weights */
} ortc_blocked_more_of;
static inline ortc_blocked_more_of ortc_blocked_more_at(char *packed, size_t words, int64_t blocks, int lanes)
{
    const int64_t each = ORTC_BLOCK / lanes;
    char *begin = packed + words + (size_t)blocks * ORTC_BLOCK * sizeof(int32_t);
    char *word = begin + ortc_blocked_to_line((size_t)(blocks * each + 1) * sizeof(uint32_t));
    uint32_t n;
    memcpy(&n, (uint32_t *)(void *)begin + blocks * each, sizeof n);
    return (ortc_blocked_more_of){(uint32_t *)(void *)begin, (ortc_blocked_word *)(void *)word,
                                  word + ortc_blocked_to_line(n * sizeof(ortc_blocked_word)), each,
                                  lanes * ORTC_BLOCKED_WORD};
}

#endif
