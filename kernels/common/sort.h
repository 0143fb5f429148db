/* kernels/common/sort.h: sorting positions by an order of the caller's: a heap, in place, n log n whatever
 * the data.
 *
 * The order is total (ties are broken by position), so that the result does not depend on how it is sorted.
 */
#ifndef ORTC_KERNELS_SORT_H
#define ORTC_KERNELS_SORT_H

#include <stdbool.h>
#include <stdint.h>

typedef bool (*ortc_before)(const void *context, int64_t a, int64_t b);

static inline void ortc_sift(int64_t *at, int64_t root, int64_t n, ortc_before before, const void *context)
{
    const int64_t moved = at[root];
    for (int64_t child; (child = 2 * root + 1) < n; root = child) {
        if (child + 1 < n && before(context, at[child], at[child + 1])) child++;
        if (!before(context, moved, at[child])) break;
        at[root] = at[child];
    }
    at[root] = moved;
}

static inline void ortc_sort(int64_t *at, int64_t n, ortc_before before, const void *context)
{
    for (int64_t i = n / 2; i-- > 0;) ortc_sift(at, i, n, before, context);
    for (int64_t i = n; i-- > 1;) {
        const int64_t last = at[0];
        at[0] = at[i];
        at[i] = last;
        ortc_sift(at, 0, i, before, context);
    }
}

/* The first k positions of 0 .. n by the order, sorted, in at[0 .. k]: a heap of the k best, its worst on
 * top. */
static inline void ortc_sort_first(int64_t *at, int64_t k, int64_t n, ortc_before before, const void *context)
{
    for (int64_t i = 0; i < k; i++) at[i] = i;
    for (int64_t i = k / 2; i-- > 0;) ortc_sift(at, i, k, before, context);
    for (int64_t i = k; i < n && k > 0; i++)
        if (before(context, i, at[0])) {
            at[0] = i;
            ortc_sift(at, 0, k, before, context);
        }
    ortc_sort(at, k, before, context);
}

#endif
