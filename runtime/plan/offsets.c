/* runtime/plan/offsets.c: blocks with lifetimes to offsets in one range, in one walk over time.
 *
 * Best fit among the holes; a hole at the end grows the range. Blocks may take over the place of one that
 * ends in the step in which they begin (in place). O(n) holes per block, and holes are few.
 */
#include "plan.h"

typedef struct hole {
    size_t offset, bytes;
} hole;
typedef ORTC_ARRAY(hole) holes;

static bool give(holes *h, size_t offset, size_t bytes)
{
    size_t at = 0;
    if (!bytes) return true;
    while (at < h->count && h->data[at].offset < offset) at++;
    bool before = at > 0 && h->data[at - 1].offset + h->data[at - 1].bytes == offset;
    bool after = at < h->count && offset + bytes == h->data[at].offset;
    if (before) {
        h->data[at - 1].bytes += bytes + (after ? h->data[at].bytes : 0);
        if (after) memmove(&h->data[at], &h->data[at + 1], (--h->count - at) * sizeof(hole));
        return true;
    }
    if (after) {
        h->data[at] = (hole){offset, bytes + h->data[at].bytes};
        return true;
    }
    if (!ortc_array_reserve(h, h->count + 1)) return false;
    memmove(&h->data[at + 1], &h->data[at], (h->count++ - at) * sizeof(hole));
    h->data[at] = (hole){offset, bytes};
    return true;
}

static size_t take(holes *h, size_t bytes, size_t *end)
{
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < h->count; i++)
        if (h->data[i].bytes >= bytes && (best == SIZE_MAX || h->data[i].bytes < h->data[best].bytes))
            best = i;
    if (best != SIZE_MAX) {
        size_t offset = h->data[best].offset;
        h->data[best].offset += bytes;
        h->data[best].bytes -= bytes;
        if (!h->data[best].bytes)
            memmove(&h->data[best], &h->data[best + 1], (--h->count - best) * sizeof(hole));
        return offset;
    }
    size_t offset = *end;
    if (h->count &&
        h->data[h->count - 1].offset + h->data[h->count - 1].bytes == *end) /* grow the last hole */
        offset = h->data[--h->count].offset;
    if (bytes > SIZE_MAX / 2 - offset) return SIZE_MAX;
    *end = offset + bytes;
    return offset;
}

/* Live blocks as a heap by `to`: the next to end first. */
typedef struct live {
    uint32_t *heap, count;
} live;

static void push(live *l, const ortc_block *b, uint32_t id)
{
    uint32_t i = l->count++;
    for (; i && b[l->heap[(i - 1) / 2]].to > b[id].to; i = (i - 1) / 2) l->heap[i] = l->heap[(i - 1) / 2];
    l->heap[i] = id;
}

static uint32_t pop(live *l, const ortc_block *b)
{
    uint32_t top = l->heap[0], last = l->heap[--l->count], i = 0;
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= l->count) break;
        if (child + 1 < l->count && b[l->heap[child + 1]].to < b[l->heap[child]].to) child++;
        if (b[l->heap[child]].to >= b[last].to) break;
        l->heap[i] = l->heap[child];
        i = child;
    }
    l->heap[i] = last;
    return top;
}

size_t ortc_lay_out(ortc_block *b, uint32_t count)
{
    holes h = {0};
    size_t end = 0;
    live l = {malloc((size_t)count * sizeof(uint32_t) + 1), 0};
    bool *taken = calloc((size_t)count + 1, sizeof *taken); /* its place went to another block */
    bool ok = l.heap && taken;
    for (uint32_t i = 0; i < count && ok; i++) {
        while (l.count && b[l.heap[0]].to < b[i].from) {
            uint32_t ended = pop(&l, b);
            if (!taken[ended]) ok = ok && give(&h, b[ended].offset, b[ended].bytes);
        }
        int32_t r = b[i].reuse;
        if (r >= 0 && b[r].to == b[i].from && b[r].from < b[i].from && b[r].bytes == b[i].bytes &&
            !taken[r]) {
            b[i].offset = b[r].offset;
            taken[r] = true;
        } else
            b[i].offset = take(&h, b[i].bytes, &end);
        ok = ok && b[i].offset != SIZE_MAX;
        push(&l, b, i);
    }
    free(l.heap);
    free(taken);
    ortc_array_deinit(&h);
    return ok ? end : SIZE_MAX;
}
