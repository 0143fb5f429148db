/* kernels/index/cpu.c: Gather on the cpu provider, for elements of whole bytes: rows picked by indices; what
 * the family's kernels there share, and their table. */
#include "kernels/index/index.h"

typedef struct gather_job {
    const char *x;
    char *y;
    const ortc_view *at;
    int64_t extent, picks;
    size_t run;             /* bytes of a row */
    _Atomic int64_t *wrong; /* place of an index outside of the axis, the first one found; -1 */
    const int32_t *places;  /* of single elements: where they are, checked */
} gather_job;

static int64_t index_at(const gather_job *j, int64_t i)
{
    const int64_t index = j->at->dtype == ORTC_I32 ? ortc_load_i64(j->at->data, ORTC_I32, i)
                                                   : ortc_load_i64(j->at->data, ORTC_I64, i);
    return index < 0 ? index + j->extent : index;
}

/* Rows that follow each other in both are one copy: a window's, or all of an axis. */
static inline __attribute__((always_inline)) void pick(const gather_job *j, int64_t begin, int64_t end,
                                                       size_t bytes)
{
    const char *x = j->x + (size_t)(begin / j->picks * j->extent) * bytes;
    int64_t i = begin % j->picks;
    for (int64_t row = begin; row < end; x += (size_t)j->extent * bytes, i = 0)
        for (const int64_t stop = j->picks - i < end - row ? j->picks : i + end - row; i < stop;) {
            const int64_t first = index_at(j, i);
            int64_t n = 1;
            if (first < 0 || first >= j->extent) {
                *j->wrong = i;
                i++, row++;
                continue;
            }
            while (i + n < stop && first + n < j->extent && index_at(j, i + n) == first + n) n++;
            char *y = j->y + (size_t)row * bytes;
            if (n == 1)
                memcpy(y, x + (size_t)first * bytes, bytes);
            else
                memcpy(y, x + (size_t)first * bytes, (size_t)n * bytes);
            i += n, row += n;
        }
}

static void gather_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const gather_job *j = arg;
    (void)scratch;
    switch (j->run) {
    case 1: pick(j, begin, end, 1); break;
    case 2: pick(j, begin, end, 2); break;
    case 4: pick(j, begin, end, 4); break;
    case 8: pick(j, begin, end, 8); break;
    default: pick(j, begin, end, j->run);
    }
}

/* ---- Single elements, the same of every row ------------------------------------------------------------ */

enum { MOST_PLACES = 65536, LONG_RUN = 8 };

/* Where elements are, in `places`; how many runs of neighbours they are, 0: one is outside of the axis. */
static int64_t find_places(const gather_job *j, int32_t *places)
{
    int64_t runs = 0;
    for (int64_t i = 0; i < j->picks; i++) {
        const int64_t at = index_at(j, i);
        if (at < 0 || at >= j->extent) {
            *j->wrong = i;
            return 0;
        }
        places[i] = (int32_t)at;
        runs += i == 0 || places[i] != places[i - 1] + 1;
    }
    return runs;
}

/* Weights may lie anywhere in a file. */
#define ROWS(type) \
    for (int64_t row = begin; row < end; row++) { \
        typedef type any __attribute__((aligned(1), may_alias)); \
        const any *x = (const any *)j->x + row * j->extent; \
        any *y = (any *)j->y + row * j->picks; \
        for (int64_t k = 0; k < j->picks; k++) y[k] = x[j->places[k]]; \
    }
static void places_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const gather_job *j = arg;
    (void)scratch;
    switch (j->run) {
    case 1: ROWS(uint8_t) break;
    case 2: ROWS(uint16_t) break;
    case 4: ROWS(uint32_t) break;
    default: ROWS(uint64_t)
    }
}

/* Rows, all of whose elements are picked one by one. */
static bool is_of_places(size_t run, int64_t outer, int64_t picks, int64_t extent)
{
    const bool whole = run == 1 || run == 2 || run == 4 || run == 8;
    return whole && outer > 1 && picks <= MOST_PLACES && extent <= INT32_MAX;
}

/* ---- Gather -------------------------------------------------------------------------------------------- */

ortc_status ortc_index_gather_plan(const void *state, ortc_plan *p, void **pstate)
{
    (void)state, (void)pstate;
    ortc_plan_cost(p, 0, 2.0 * (double)ortc_view_count(&p->out[0]) * ortc_dtype_bits(p->out[0].dtype) / 8);
    return ORTC_OK;
}

ortc_status ortc_index_scatter_plan(const void *state, ortc_plan *p, void **pstate)
{
    ortc_plan_in_place(p, 0, 0);
    return ortc_index_gather_plan(state, p, pstate);
}

/* Known indices that follow each other name a part of the data, if that is all of the axis, or nothing lies
 * before the axis. */
static ortc_status gather_plan(const void *state, ortc_plan *p, void **pstate)
{
    const ortc_view *x = &p->in[0], *at = &p->in[1];
    int32_t axis;
    if (at->data && !((x->flags | at->flags) & ORTC_VIEW_LATE) && ortc_view_count(at) > 0 &&
        ortc_view_count(x) > 0 && ortc_axis_of(((const ortc_index_state *)state)->axis, x->rank, &axis)) {
        const gather_job j = {.at = at, .extent = x->dims[axis], .picks = ortc_view_count(at)};
        const int64_t first = index_at(&j, 0);
        bool part = first >= 0 && j.picks <= j.extent - first;
        for (int32_t d = 0; d < axis; d++) part &= x->dims[d] == 1 || j.picks == j.extent;
        for (int64_t i = 1; part && i < j.picks; i++) part = index_at(&j, i) == first + i;
        int64_t inner = ortc_dtype_bits(x->dtype) / 8;
        for (int32_t d = axis + 1; d < x->rank; d++) inner *= x->dims[d];
        if (part) ortc_plan_view(p, 0, 0, first * inner);
    }
    /* room for places, where they are looked up first */
    if (!(at->flags & ORTC_VIEW_LATE) && ortc_view_count(&p->out[0]) > 0 &&
        ortc_view_count(at) <= MOST_PLACES)
        ortc_plan_workspace(p, (size_t)ortc_view_count(at) * sizeof(int32_t), 0);
    return ortc_index_gather_plan(state, p, pstate);
}

static ortc_status gather_run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_view *x = &c->in[0], *at = &c->in[1];
    _Atomic int64_t wrong = -1;
    int64_t outer = 1, inner = 1;
    int32_t axis;
    (void)pstate;
    if (ortc_view_count(&c->out[0]) == 0 ||
        !ortc_axis_of(((const ortc_index_state *)state)->axis, x->rank, &axis))
        return ORTC_OK;
    for (int32_t d = 0; d < x->rank; d++) {
        outer *= d < axis ? x->dims[d] : 1;
        inner *= d > axis ? x->dims[d] : 1;
    }
    gather_job j = {x->data,
                    c->out[0].data,
                    at,
                    x->dims[axis],
                    ortc_view_count(at),
                    (size_t)inner * ortc_dtype_bits(x->dtype) / 8,
                    &wrong,
                    NULL};
    const int64_t grain = 65536 / (int64_t)(j.run + 16);
    if (c->workspace && is_of_places(j.run, outer, j.picks, j.extent)) { /* none: extents came late */
        const int64_t runs = find_places(&j, c->workspace);
        j.places = runs * LONG_RUN > j.picks ? c->workspace : NULL;
    }
    if (j.places)
        ORTC_TRY(ortc_parallel(c, outer, 16384 / j.picks + 1, places_chunk, &j));
    else
        ORTC_TRY(ortc_parallel(c, outer * j.picks, grain > 0 ? grain : 1, gather_chunk, &j));
    if (wrong >= 0)
        return ortc_call_fail(c, ORTC_INVALID_ARGUMENT,
                              "index %lld (indices[%lld]) is outside of the %lld elements of axis %d",
                              (long long)ortc_load_i64(at->data, at->dtype, wrong), (long long)wrong,
                              (long long)j.extent, axis);
    return ORTC_OK;
}

ORTC_VEC_TABLE(ortc_index_bodies)
const ortc_index_bodies *ortc_index_bodies_get(void) { return ortc_index_bodies_select(); }

typedef struct check_job {
    const ortc_index_bodies *bodies;
    const ortc_view *at;
    int64_t extent;
    _Atomic int64_t *wrong; /* place of an index outside of the axis, one of them; -1 */
} check_job;

int64_t ortc_index_first_wrong(const ortc_index_bodies *bodies, const ortc_view *at, int64_t begin,
                               int64_t end, int64_t extent)
{
    const size_t bytes = ortc_dtype_bits(at->dtype) / 8;
    if (bodies->within[at->dtype == ORTC_I64]((size_t)(end - begin),
                                              (const char *)at->data + (size_t)begin * bytes, extent))
        return -1;
    for (;; begin++) {
        int64_t index = ortc_load_i64(at->data, at->dtype, begin);
        if (!ortc_index_wrap(&index, extent)) return begin;
    }
}

static void check_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const check_job *j = arg;
    (void)scratch;
    const int64_t wrong = ortc_index_first_wrong(j->bodies, j->at, begin, end, j->extent);
    if (wrong >= 0) *j->wrong = wrong;
}

ortc_status ortc_index_refuse(ortc_call *c, const ortc_view *at, int64_t wrong, int64_t extent, int32_t axis)
{
    if (wrong < 0) return ORTC_OK;
    return ortc_call_fail(c, ORTC_INVALID_ARGUMENT,
                          "index %lld (element %lld of indices) is outside of the %lld elements of axis %d",
                          (long long)ortc_load_i64(at->data, at->dtype, wrong), (long long)wrong,
                          (long long)extent, axis);
}

ortc_status ortc_index_check(ortc_call *c, const ortc_view *at, int64_t extent, int32_t axis)
{
    _Atomic int64_t wrong = -1;
    check_job j = {ortc_index_bodies_get(), at, extent, &wrong};
    ORTC_TRY(ortc_parallel(c, ortc_view_count(at), 65536, check_chunk, &j));
    return ortc_index_refuse(c, at, wrong, extent, axis);
}

static const ortc_kernel gather = {.size = ORTC_SIZED(ortc_kernel),
                                   .flags = ORTC_KERNEL_UNALIGNED, /* a table of words is large */
                                   .name = "gather.cpu",
                                   .prepare = ortc_index_prepare,
                                   .plan = gather_plan,
                                   .run = gather_run};

#define PLAIN (ORTC_TYPES_NUM | ORTC_TYPE(ORTC_BOOL) | ORTC_TYPE(ORTC_C64) | ORTC_TYPE(ORTC_C128))
#define INDEX (ORTC_TYPE(ORTC_I32) | ORTC_TYPE(ORTC_I64))
ORTC_KERNELS(cpu, index, ORTC_KERNEL("Gather", 13, ORTC_NEWEST, (PLAIN, INDEX), &gather),
             ORTC_KERNEL("GatherElements", 13, ORTC_NEWEST, (PLAIN, INDEX), &ortc_cpu_gather_elements),
             ORTC_KERNEL("GatherND", 13, ORTC_NEWEST, (PLAIN), &ortc_cpu_gather_nd),
             ORTC_KERNEL("ScatterElements", 18, ORTC_NEWEST, (PLAIN, INDEX), &ortc_cpu_scatter_elements),
             ORTC_KERNEL("ScatterND", 18, ORTC_NEWEST, (PLAIN), &ortc_cpu_scatter_nd));
