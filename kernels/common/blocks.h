/* kernels/common/blocks.h: values in blocks of channels, [image][block][..positions][16]: the layout that the
 * cpu's convolutions have, and what goes along with them. What pads the last block is 0, and whoever writes
 * such a value writes that, too. */
#ifndef ORTC_KERNELS_BLOCKS_H
#define ORTC_KERNELS_BLOCKS_H

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

#endif
