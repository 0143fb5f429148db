/* What first pieces, the upper halves of f32, were on the way: of each lane the largest magnitudes so far,
 * and the smallest less 1, where 0 comes last. Whether pieces hold them follows (ORTC_PIECES_*,
 * product_uk.h). */
#ifndef ORTC_KERNELS_GEMM_PIECES_SEEN_H
#define ORTC_KERNELS_GEMM_PIECES_SEEN_H

#include "kernels/common/vector/vec.h"
#include "product_uk.h"

/* Nothing was seen. */
#define PIECES_MOST v_set_i32(0)
#define PIECES_LEAST v_set_i32(-1)

/* Two first pieces a lane, their signs and all. */
VFN void pieces_see(vi32 pair, vi32 *most, vi32 *least)
{
    const vi32 magnitude = pair & v_set_i32(0x7fff7fff);
    *most = v_max_u16(*most, magnitude);
    *least = v_min_u16(*least, (vi32)((v_words)magnitude - 1));
}

/* Whether one was `limit`, the upper half of an f32, or more; whether one was less, and not 0. */
VFN int pieces_reach(vi32 most, uint32_t limit)
{
    const vi32 last = v_set_i32((int32_t)((limit - 1) * 0x10001));
    return v_any(v_not(v_eq_i32(v_max_u16(most, last), last)));
}
VFN int pieces_fall_below(vi32 least, uint32_t limit)
{
    const vi32 first = v_set_i32((int32_t)((limit - 1) * 0x10001));
    return v_any(v_not(v_eq_i32(v_min_u16(least, first), first)));
}

/* Whether one is too large, or too small, for three pieces. */
VFN int pieces_are_beyond(vi32 most, vi32 least)
{
    return pieces_reach(most, ORTC_PIECES_BEYOND >> 16) || pieces_fall_below(least, ORTC_PIECES_LEAST >> 16);
}

#endif
