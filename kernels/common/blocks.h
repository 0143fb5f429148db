/* kernels/common/blocks.h: values in blocks of channels, [image][block][..positions][16]: the layout that the
 * cpu's convolutions have, and what goes along with them. What pads the last block is 0, and whoever writes
 * such a value writes that, too. */
#ifndef ORTC_KERNELS_BLOCKS_H
#define ORTC_KERNELS_BLOCKS_H

#include <stdint.h>

#define ORTC_BLOCK 16 /* channels */

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
