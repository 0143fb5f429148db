/* runtime/plan/offsets.c: blocks with lifetimes to offsets in one range.
 *
 * First in one walk over time: best fit among the holes; a hole at the end grows the range. Blocks may take
 * over the place of one that ends in the step in which they begin (in place). O(n) holes per block, and holes
 * are few. Where that takes more than what is in use at one time, once more in the order of size, largest
 * first, each into the least gap between those that live at the same time (Pisarchyk and Lee, 2020,
 * arXiv:2001.03288), O(n) for each; then with workspaces behind values, and by size times life; each also
 * from both ends of the range. The shortest counts.
 */
#include "plan.h"

enum { MOST_BY_SIZE = 4096 };

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

/* In the order of time. Also how many bytes are in use at one time at most. Blocks that got no other's place
 * have no `reuse` any more; `taken`: theirs went to another. SIZE_MAX: no memory. */
static size_t by_time(ortc_block *b, uint32_t count, bool *taken, size_t *out_peak)
{
    holes h = {0};
    size_t end = 0, now = 0;
    live l = {malloc((size_t)count * sizeof(uint32_t) + 1), 0};
    bool ok = l.heap;
    *out_peak = 0;
    for (uint32_t i = 0; i < count && ok; i++) {
        while (l.count && b[l.heap[0]].to < b[i].from) {
            uint32_t ended = pop(&l, b);
            if (taken[ended]) continue;
            ok = ok && give(&h, b[ended].offset, b[ended].bytes);
            now -= b[ended].bytes;
        }
        int32_t r = b[i].reuse;
        if (r >= 0 && b[r].to == b[i].from && b[r].from < b[i].from && b[r].bytes == b[i].bytes &&
            !taken[r]) {
            b[i].offset = b[r].offset;
            taken[r] = true;
        } else {
            b[i].offset = take(&h, b[i].bytes, &end);
            now += b[i].bytes; /* below what the range has, so it does not overflow */
            b[i].reuse = -1;
        }
        if (now > *out_peak) *out_peak = now;
        ok = ok && b[i].offset != SIZE_MAX;
        push(&l, b, i);
    }
    free(l.heap);
    ortc_array_deinit(&h);
    return ok ? end : SIZE_MAX;
}

/* Blocks of one place, by those that took it over from each other. */
typedef struct place {
    size_t bytes, offset;
    uint32_t first, from, to; /* of them */
} place;

static int larger_first(const void *a, const void *b)
{
    const place *x = a, *y = b;
    return x->bytes != y->bytes ? (x->bytes < y->bytes) - (x->bytes > y->bytes)
                                : (x->first > y->first) - (x->first < y->first);
}

/* Values before workspaces, which differ in size and so would put values out of step. */
static int values_first(const void *a, const void *b)
{
    const place *x = a, *y = b;
    const int order = (x->from == x->to) - (y->from == y->to);
    return order ? order : larger_first(a, b);
}

/* By size times life. */
static int most_first(const void *a, const void *b)
{
    const place *x = a, *y = b;
    const double p = (double)x->bytes * (x->to - x->from + 1), q = (double)y->bytes * (y->to - y->from + 1);
    return p != q ? (p < q) - (p > q) : larger_first(a, b);
}

/* Puts p beside those that are placed, in ascending order of their offsets: into the least gap that is large
 * enough among those that live at the same time. limit: what does not lie at the bottom goes to the end of a
 * range of so many bytes where it can, so that long-lived ones leave the middle in one piece; 0: none. */
static void put(place *placed, uint32_t count, place p, size_t limit)
{
    size_t free_from = 0, best = SIZE_MAX;
    uint32_t at = count;
    for (uint32_t i = 0; i < count; i++) {
        const place *q = &placed[i];
        if (q->to < p.from || p.to < q->from) continue;
        if (q->offset >= free_from && q->offset - free_from >= p.bytes && q->offset - free_from < best) {
            best = q->offset - free_from;
            p.offset = free_from;
        }
        if (q->offset + q->bytes > free_from) free_from = q->offset + q->bytes;
    }
    if (free_from && free_from + p.bytes <= limit)
        p.offset = limit - p.bytes;
    else if (best == SIZE_MAX)
        p.offset = free_from;
    while (at && placed[at - 1].offset > p.offset) {
        placed[at] = placed[at - 1];
        at--;
    }
    placed[at] = p;
}

/* In an order of places. The shorter of this and `end`, to which the offsets are; SIZE_MAX: no memory. */
static size_t by_order(ortc_block *b, uint32_t count, int (*order)(const void *, const void *), size_t limit,
                       size_t end)
{
    place *places = malloc(2 * (size_t)count * sizeof *places);
    uint32_t *last = malloc((size_t)count * sizeof *last), n = 0;
    if (!places || !last) {
        free(places);
        free(last);
        return SIZE_MAX;
    }
    place *placed = places + count;
    for (uint32_t i = 0; i < count; i++) last[i] = i;
    for (uint32_t i = count; i-- > 0;) /* the last of each: who takes a place over comes later */
        if (b[i].reuse >= 0) last[b[i].reuse] = last[i];
    for (uint32_t i = 0; i < count; i++)
        if (b[i].reuse < 0 && b[i].bytes) places[n++] = (place){b[i].bytes, 0, i, b[i].from, b[last[i]].to};
    qsort(places, n, sizeof *places, order);
    size_t bytes = 0;
    for (uint32_t i = 0; i < n; i++) put(placed, i, places[i], limit);
    for (uint32_t i = 0; i < n; i++)
        if (placed[i].offset + placed[i].bytes > bytes) bytes = placed[i].offset + placed[i].bytes;
    if (bytes < end) {
        for (uint32_t i = 0; i < n; i++) b[placed[i].first].offset = placed[i].offset;
        for (uint32_t i = 0; i < count; i++)
            if (b[i].reuse >= 0 || !b[i].bytes) b[i].offset = b[i].bytes ? b[b[i].reuse].offset : 0;
    }
    free(places);
    free(last);
    return bytes < end ? bytes : end;
}

size_t ortc_lay_out(ortc_block *b, uint32_t count)
{
    static int (*const orders[])(const void *, const void *) = {larger_first, values_first, most_first};
    bool *taken = calloc((size_t)count + 1, sizeof *taken);
    size_t peak = 0, end = taken ? by_time(b, count, taken, &peak) : SIZE_MAX;
    for (size_t i = 0; i < 2 * ORTC_LENGTH(orders); i++)
        if (end != SIZE_MAX && end - peak > peak / 32 && count <= MOST_BY_SIZE)
            end = by_order(b, count, orders[i / 2], i % 2 ? peak : 0, end);
    free(taken);
    return end;
}
