/* kernels/order/cpu_topk.c: TopK on the cpu provider, and ArgMax and ArgMin of integers, its K being 1: NaN
 * above all, the lower index first of equal elements, as on ref.
 *
 * Elements become integers of the same order (for the smallest, of the opposite one), some at a time
 * (keys.h). The best k so far are a heap whose worst is on top; most of a long row is passed over since the
 * largest of its block is not better. A key and its index are one number where keys have 32 bits, and indices
 * count down: no two are equal. A row is one thread's.
 */
#include <stdlib.h>

#include "kernels/order/keys.h"
#include "kernels/order/order.h"

ORTC_VEC_TABLE(ortc_order_keys)

enum { BLOCK = 256, PART = 32 };

typedef struct topk_job {
    const ortc_order_keys *keys;
    const ortc_view *x;
    char *values;     /* NULL: not wanted */
    int64_t *indices; /* the same */
    int64_t length, inner, k;
    size_t bytes; /* of an element */
    bool largest;
    int which; /* ORTC_KEY_* */
} topk_job;

typedef struct wide_entry {
    int64_t key, index;
} wide_entry;

static inline uint64_t narrow_of(int32_t key, int64_t i)
{
    return (uint64_t)((uint32_t)key ^ 0x80000000) << 32 | (uint32_t) ~(uint32_t)i;
}
static inline int32_t narrow_key(uint64_t e) { return (int32_t)((uint32_t)(e >> 32) ^ 0x80000000); }
static inline int64_t narrow_index(uint64_t e) { return (uint32_t) ~(uint32_t)e; }
static inline bool narrow_less(uint64_t a, uint64_t b) { return a < b; }
static inline wide_entry wide_of(int64_t key, int64_t i) { return (wide_entry){key, i}; }
static inline int64_t wide_key(wide_entry e) { return e.key; }
static inline int64_t wide_index(wide_entry e) { return e.index; }
static inline bool wide_less(wide_entry a, wide_entry b)
{
    return a.key < b.key || (a.key == b.key && a.index > b.index);
}

/* W_best: the best k of a row, best first. What comes later must be better: equal ones are not. */
#define SELECT(W, entry, ktype) \
    static void W##_sift(entry *heap, int64_t n, int64_t root, entry moved) \
    { \
        for (int64_t child; (child = 2 * root + 1) < n; root = child) { \
            if (child + 1 < n && W##_less(heap[child + 1], heap[child])) child++; \
            if (!W##_less(heap[child], moved)) break; \
            heap[root] = heap[child]; \
        } \
        heap[root] = moved; \
    } \
    static void W##_best(const topk_job *j, const char *x, int64_t step, entry *heap) \
    { \
        ktype key[BLOCK]; \
        uint64_t beside[BLOCK]; /* elements of a row that lie apart */ \
        int64_t have = 0; \
        for (int64_t first = 0; first < j->length; first += BLOCK) { \
            const int64_t n = j->length - first < BLOCK ? j->length - first : BLOCK; \
            const char *from = x + first * step; \
            if (step != (int64_t)j->bytes) from = lay_beside(from, n, step, j->bytes, beside); \
            const ktype best = j->keys->W[j->which]((size_t)n, from, j->largest ? 0 : -1, key); \
            for (int64_t i = n; i % PART; i++) key[i] = 0; \
            int64_t i = 0; \
            for (; i < n && have < j->k; i++) heap[have++] = W##_of(key[i], first + i); \
            if (i > 0 && have == j->k) \
                for (int64_t root = have / 2; root-- > 0;) W##_sift(heap, have, root, heap[root]); \
            if (have < j->k || best <= W##_key(heap[0])) continue; \
            for (int64_t part = i / PART * PART; part < n; part += PART) { \
                uint32_t better = j->keys->W##_above(key + part, W##_key(heap[0])); \
                if (part < i) better &= ~(uint32_t)0 << (i - part); /* those in the heap already */ \
                if (n - part < PART) better &= ((uint32_t)1 << (n - part)) - 1; \
                for (; better; better &= better - 1) { \
                    const int64_t at = part + __builtin_ctz(better); \
                    if (key[at] > W##_key(heap[0])) W##_sift(heap, have, 0, W##_of(key[at], first + at)); \
                } \
            } \
        } \
        for (int64_t i = have; i-- > 1;) { /* the worst goes to the end */ \
            const entry last = heap[i]; \
            heap[i] = heap[0]; \
            W##_sift(heap, i, 0, last); \
        } \
    } \
    static void W##_chunk(void *arg, int64_t begin, int64_t end, void *scratch) \
    { \
        const topk_job *j = arg; \
        entry *heap = scratch; \
        for (int64_t row = begin; row < end; row++) { \
            const int64_t outer = row / j->inner, within = row % j->inner; \
            const char *x = (const char *)j->x->data + \
                            (size_t)(outer * j->length * j->inner + within) * j->bytes; \
            const int64_t step = j->inner * (int64_t)j->bytes; \
            W##_best(j, x, step, heap); \
            for (int64_t n = 0; n < j->k; n++) { \
                const int64_t to = (outer * j->k + n) * j->inner + within, at = W##_index(heap[n]); \
                if (j->values) memcpy(j->values + (size_t)to * j->bytes, x + at * step, j->bytes); \
                if (j->indices) j->indices[to] = at; \
            } \
        } \
    }

#define LAY(size) \
    case size: \
        for (int64_t i = 0; i < n; i++) memcpy((char *)to + i * (size), from + i * step, size); \
        break;
static const void *lay_beside(const char *from, int64_t n, int64_t step, size_t bytes, void *to)
{
    switch (bytes) {
        LAY(1)
        LAY(2)
        LAY(4)
        LAY(8)
    default: break;
    }
    return to;
}

SELECT(narrow, uint64_t, int32_t)
SELECT(wide, wide_entry, int64_t)

static int which_of(ortc_dtype t)
{
    switch (t) {
#define OF(name, type, key) \
    case ORTC_##name: return ORTC_KEY_##name;
        ORTC_NARROW_KEYS(OF)
        ORTC_WIDE_KEYS(OF)
    default: return 0;
    }
}

static ortc_status topk_plan(const void *state, ortc_plan *p, void **pstate)
{
    const ortc_order_state *s = state;
    const ortc_view *x = &p->in[0], *y = &p->out[p->out[0].dtype ? 0 : 1];
    int32_t axis;
    (void)pstate;
    if (!y->dtype || !ortc_axis_of(s->axis, y->rank, &axis) || ortc_view_count(y) == 0) return ORTC_OK;
    if (x->dims[axis] > INT32_MAX)
        return ortc_plan_fail(p, ORTC_LIMIT, "%lld elements along the axis", (long long)x->dims[axis]);
    ortc_plan_workspace(p, 0, (size_t)y->dims[axis] * sizeof(wide_entry));
    ortc_plan_cost(p, 2 * (double)ortc_view_count(x),
                   (double)ortc_bytes_of(ortc_dtype_bits(x->dtype), ortc_view_count(x)));
    return ORTC_OK;
}

/* The job says how many, which and where to. */
static ortc_status choose(ortc_call *c, int64_t where, topk_job j)
{
    int32_t axis = 0;
    int64_t rows = 1;
    j.keys = ortc_order_keys_select();
    j.x = &c->in[0];
    j.length = j.inner = 1;
    if (j.x->rank > 0 && !ortc_axis_of(where, j.x->rank, &axis)) return ORTC_OK;
    j.bytes = ortc_dtype_bits(j.x->dtype) / 8;
    j.which = which_of(j.x->dtype);
    for (int32_t d = 0; d < j.x->rank; d++) {
        if (d == axis)
            j.length = j.x->dims[d];
        else
            rows *= j.x->dims[d];
        if (d > axis) j.inner *= j.x->dims[d];
    }
    const int64_t grain = 20000 / (j.length + 8 * j.k);
    return ortc_parallel(c, rows, grain > 0 ? grain : 1, j.bytes == 8 ? wide_chunk : narrow_chunk, &j);
}

static ortc_status topk_run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_order_state *s = state;
    const ortc_view *y = &c->out[c->out[0].dtype ? 0 : 1];
    int32_t axis;
    (void)pstate;
    if (!y->dtype || ortc_view_count(y) == 0 || !ortc_axis_of(s->axis, y->rank, &axis)) return ORTC_OK;
    return choose(c, s->axis,
                  (topk_job){.largest = s->largest,
                             .values = c->out[0].dtype ? c->out[0].data : NULL,
                             .indices = c->n_out > 1 && c->out[1].dtype ? c->out[1].data : NULL,
                             .k = y->dims[axis]});
}

static ortc_status one_supports(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    (void)device;
    return ortc_node_int(n, "select_last_index", 0)
               ? ortc_no(why, "the first of equal integers is chosen here")
               : ORTC_OK;
}

static ortc_status one_plan(const void *state, ortc_plan *p, void **pstate)
{
    (void)state, (void)pstate;
    ortc_plan_workspace(p, 0, sizeof(wide_entry));
    return ORTC_OK;
}

static ortc_status one_run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_order_state *s = state;
    (void)pstate;
    return choose(c, s->axis, (topk_job){.largest = s->largest, .indices = c->out[0].data, .k = 1});
}

const ortc_kernel ortc_cpu_arg_integers = {.size = ORTC_SIZED(ortc_kernel),
                                           .name = "arg.integers",
                                           .supports = one_supports,
                                           .prepare = ortc_order_prepare,
                                           .plan = one_plan,
                                           .run = one_run};
const ortc_kernel ortc_cpu_topk = {.size = ORTC_SIZED(ortc_kernel),
                                   .name = "topk.cpu",
                                   .host_in = 2,
                                   .prepare = ortc_order_prepare,
                                   .plan = topk_plan,
                                   .run = topk_run};
