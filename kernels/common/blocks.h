/* kernels/common/blocks.h: values in blocks of channels, [image][block][..positions][16]: the layout that the
 * cpu's convolutions have, and what goes along with them. What pads the last block is 0, and whoever writes
 * such a value writes that, too. */
#ifndef ORTC_KERNELS_BLOCKS_H
#define ORTC_KERNELS_BLOCKS_H

#include <string.h>

#include "ortc/op.h"

#define ORTC_BLOCK 16 /* channels */

static inline ortc_layout ortc_blocks(void) { return ortc_layout_blocked(1, ORTC_BLOCK); }

/* For `choose` of kernels that go along: 1 where the question is of blocks, 0 where it is of the plain
 * layout, -1 else: say no. */
static inline int ortc_blocks_asked(const ortc_question *q)
{
    return q->layout == ortc_blocks() ? 1 : q->layout == ORTC_PLAIN ? 0 : -1;
}

static inline int64_t ortc_blocks_of(int64_t channels)
{
    return channels / ORTC_BLOCK + (channels % ORTC_BLOCK != 0);
}

/* Channels of block b (of all images) that exist, of so many in an image. */
static inline int64_t ortc_block_lanes(int64_t b, int64_t channels)
{
    const int64_t rest = channels - b % ortc_blocks_of(channels) * ORTC_BLOCK;
    return rest < ORTC_BLOCK ? rest : ORTC_BLOCK;
}

/* Some lanes of n positions, `bytes` of each, positions so many bytes apart; from NULL: they become 0. */
static inline void ortc_block_move(char *to, size_t to_step, const char *from, size_t from_step, int64_t n,
                                   size_t bytes)
{
#define ORTC_UNITS(size) \
    for (; bytes >= (size); to += (size), from += from ? (size) : 0, bytes -= (size)) \
        for (size_t i = 0; i < (size_t)n; i++) \
            if (from) \
                memcpy(to + i * to_step, from + i * from_step, size); \
            else \
                memset(to + i * to_step, 0, size);
    ORTC_UNITS(64)
    ORTC_UNITS(32)
    ORTC_UNITS(16)
    ORTC_UNITS(8)
    ORTC_UNITS(4)
    ORTC_UNITS(2)
    ORTC_UNITS(1)
#undef ORTC_UNITS
}

#endif
