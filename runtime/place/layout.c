/* runtime/place/layout.c: layouts as texts: a letter for each axis in the order of memory, the blocked one
 * large, then the elements of a block: "acdb", "aBcd16b" (op.h). */
#include <stdio.h>

#include "placed.h"

#define LETTERS 8 /* axes that an order can name */

void ortc_text_layout(ortc_text *t, ortc_layout l, int32_t rank)
{
    const int64_t block = ortc_layout_block(l);
    const int32_t blocked = block ? ortc_layout_axis(l) : -1;
    for (int32_t i = 0; i < rank && i < LETTERS; i++) {
        const int32_t a = ortc_layout_axis_at(l, i);
        ortc_text_add(t, "%c", (a == blocked ? 'A' : 'a') + a);
    }
    if (block) ortc_text_add(t, "%lld%c", (long long)block, 'a' + blocked);
}

bool ortc_layout_parse(const char *text, ortc_layout *out)
{
    int32_t rank = 0, blocked = -1;
    uint32_t seen = 0;
    long block = 0;
    char last = 0, more = 0;
    *out = ORTC_PLAIN;
    for (; rank < LETTERS && *text && !(*text >= '0' && *text <= '9'); rank++, text++) {
        const bool large = *text >= 'A' && *text < 'A' + LETTERS;
        const int32_t axis = *text - (large ? 'A' : 'a');
        if (axis < 0 || axis >= LETTERS || (seen >> axis & 1) || (large && blocked >= 0)) return false;
        seen |= 1u << axis;
        if (large) blocked = axis;
        *out |= (ortc_layout)(axis ^ rank) << 4 * rank;
    }
    if (!rank || seen != (1u << rank) - 1) return false;
    if (blocked < 0) return !*text;
    if (sscanf(text, "%5ld%c%c", &block, &last, &more) != 2 || last != 'a' + blocked || block < 1 ||
        block > 65535)
        return false;
    *out |= ortc_layout_blocked(blocked, (int32_t)block);
    return true;
}
