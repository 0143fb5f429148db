/* kernels/order/cpu_topk.c: TopK on the cpu provider, for types of up to 32 bits: NaN above all, the lower
 * index first of equal elements, as on ref.
 *
 * Elements become integers of the same order (for the smallest, of the opposite one), a row at a time. With
 * the index in the lower half they are numbers of which no two are equal, the best k of them in a heap whose
 * worst is on top; most of a long row is passed over by comparing a block of it with that. A row is one
 * thread's.
 */
#include <stdlib.h>

#include "kernels/order/order.h"

enum { BLOCK = 32 };

typedef struct topk_job {
    const ortc_view *x;
    char *values;     /* NULL: not wanted */
    int64_t *indices; /* the same */
    int64_t length, inner, k;
    bool largest;
} topk_job;

static inline int32_t key_of_f32(uint32_t bits)
{
    if ((bits & 0x7fffffff) > 0x7f800000) return INT32_MAX; /* NaN */
    if (bits == 0x80000000) return 0;
    return (int32_t)(bits & 0x80000000 ? bits ^ 0x7fffffff : bits);
}

/* key[i] for the elements of a row, `step` apart. */
#define KEYS(type, ...) \
    { \
        const type *x = (const type *)j->x->data + first; \
        for (int64_t i = 0; i < j->length; i++) { \
            const type v = x[i * j->inner]; \
            key[i] = (int32_t)(__VA_ARGS__); \
        } \
        break; \
    }
/* clang-format off */
static void keys(const topk_job *j, int64_t first, int32_t *key)
{
    switch (j->x->dtype) {
    case ORTC_F32: KEYS(uint32_t, key_of_f32(v))
    case ORTC_BF16: KEYS(uint16_t, key_of_f32((uint32_t)v << 16))
    case ORTC_F16: /* infinity is 0x7c00 */
        KEYS(uint16_t, (v & 0x7fff) > 0x7c00 ? INT32_MAX : v & 0x8000 ? -(int32_t)(v & 0x7fff) : v)
    case ORTC_I32: KEYS(int32_t, v)
    case ORTC_U32: KEYS(uint32_t, v ^ 0x80000000)
    case ORTC_I16: KEYS(int16_t, v)
    case ORTC_U16: KEYS(uint16_t, v)
    case ORTC_I8: KEYS(int8_t, v)
    default: KEYS(uint8_t, v)
    }
    for (int64_t i = 0; !j->largest && i < j->length; i++) key[i] = ~key[i];
}
/* clang-format on */

/* Larger is better: by the key, then by the lower index. */
static inline uint64_t ranked(int32_t key, int64_t i)
{
    return (uint64_t)((uint32_t)key ^ 0x80000000) << 32 | (uint32_t) ~(uint32_t)i;
}

static void sift(uint64_t *heap, int64_t n, int64_t root, uint64_t moved)
{
    for (int64_t child; (child = 2 * root + 1) < n; root = child) {
        if (child + 1 < n && heap[child + 1] < heap[child]) child++;
        if (heap[child] >= moved) break;
        heap[root] = heap[child];
    }
    heap[root] = moved;
}

static void best_of(const int32_t *key, int64_t n, uint64_t *heap, int64_t k)
{
    for (int64_t i = 0; i < k; i++) heap[i] = ranked(key[i], i);
    for (int64_t i = k / 2; i-- > 0;) sift(heap, k, i, heap[i]);
    for (int64_t i = k; i < n;) {
        const int32_t worst = (int32_t)((uint32_t)(heap[0] >> 32) ^ 0x80000000);
        if (n - i >= BLOCK) { /* later ones must be better, equal ones are not */
            int32_t any = 0;
            for (int64_t b = 0; b < BLOCK; b++) any |= -(key[i + b] > worst);
            if (!any) {
                i += BLOCK;
                continue;
            }
        }
        const int64_t end = n - i < BLOCK ? n : i + BLOCK;
        for (; i < end; i++) {
            const uint64_t r = ranked(key[i], i);
            if (r > heap[0]) sift(heap, k, 0, r);
        }
    }
    for (int64_t i = k; i-- > 1;) { /* the worst goes to the end */
        const uint64_t last = heap[i];
        heap[i] = heap[0];
        sift(heap, i, 0, last);
    }
}

static void topk_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const topk_job *j = arg;
    const size_t bytes = ortc_dtype_bits(j->x->dtype) / 8;
    uint64_t *heap = scratch;
    int32_t *key = (int32_t *)(void *)(heap + j->k);
    for (int64_t row = begin; row < end; row++) {
        const int64_t outer = row / j->inner, within = row % j->inner;
        const int64_t first = outer * j->length * j->inner + within;
        keys(j, first, key);
        best_of(key, j->length, heap, j->k);
        for (int64_t n = 0; n < j->k; n++) {
            const int64_t to = (outer * j->k + n) * j->inner + within, at = (uint32_t) ~(uint32_t)heap[n];
            if (j->values)
                memcpy(j->values + (size_t)to * bytes,
                       (const char *)j->x->data + (size_t)(first + at * j->inner) * bytes, bytes);
            if (j->indices) j->indices[to] = at;
        }
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
    ortc_plan_workspace(p, 0,
                        (size_t)y->dims[axis] * sizeof(uint64_t) + (size_t)x->dims[axis] * sizeof(int32_t));
    ortc_plan_cost(p, 2 * (double)ortc_view_count(x),
                   (double)ortc_bytes_of(ortc_dtype_bits(x->dtype), ortc_view_count(x)));
    return ORTC_OK;
}

static ortc_status topk_run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_order_state *s = state;
    const ortc_view *y = &c->out[c->out[0].dtype ? 0 : 1];
    const int64_t count = y->dtype ? ortc_view_count(y) : 0;
    topk_job j = {.x = &c->in[0], .largest = s->largest, .inner = 1};
    int32_t axis;
    (void)pstate;
    if (count == 0 || !ortc_axis_of(s->axis, j.x->rank, &axis)) return ORTC_OK;
    j.values = c->out[0].dtype ? c->out[0].data : NULL;
    j.indices = c->n_out > 1 && c->out[1].dtype ? c->out[1].data : NULL;
    j.length = j.x->dims[axis];
    j.k = y->dims[axis];
    for (int32_t d = axis + 1; d < j.x->rank; d++) j.inner *= j.x->dims[d];
    const int64_t grain = 20000 / (j.length + 8 * j.k);
    return ortc_parallel(c, count / j.k, grain > 0 ? grain : 1, topk_chunk, &j);
}

const ortc_kernel ortc_cpu_topk = {.size = ORTC_SIZED(ortc_kernel),
                                   .name = "topk.cpu",
                                   .host_in = 2,
                                   .prepare = ortc_order_prepare,
                                   .plan = topk_plan,
                                   .run = topk_run};
