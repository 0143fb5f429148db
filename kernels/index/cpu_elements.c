/* kernels/index/cpu_elements.c: GatherElements and ScatterElements on the cpu provider, for elements of whole
 * bytes.
 *
 * Rows of indices lie along their last dim; a task of GatherElements is a piece of one, whose indices are
 * checked before they are followed. Those of ScatterElements are checked before anything is written. Updates
 * of one element must be made in order: along the last axis all of them are in one row, elsewhere in one
 * column; so a task of ScatterElements is a row, or a piece of all rows.
 */
#include "kernels/index/index.h"
#include "kernels/index/update.h"

typedef struct elements_job {
    const char *x; /* what is read by place, or by position (updates) */
    char *y;
    const ortc_view *at;
    int64_t extent, stride; /* of the axis */
    int64_t rows, width;    /* of the indices */
    int64_t piece, pieces;  /* of a row */
    bool last;              /* the axis is the last dim */
    int update;
    ortc_dtype type;
    ortc_walk walk; /* over rows; operand: the data, without the axis */
    const ortc_index_bodies *bodies;
    int32_t axis;
    _Atomic int64_t *wrong; /* place of an index outside of the axis, one of them; -1 */
} elements_job;

enum { PIECE = 4096 };

static ortc_status elements_init(const ortc_index_state *s, ortc_call *c, elements_job *j)
{
    int64_t strides[ORTC_RANK_LIMIT];
    const ortc_view *x = &c->in[0], *at = &c->in[1];
    int32_t axis = 0;
    *j = (elements_job){.at = at, .update = s->update, .type = x->dtype, .y = c->out[0].data};
    j->bodies = ortc_index_bodies_get();
    if (x->rank == 0 || !ortc_axis_of(s->axis, x->rank, &axis))
        return ortc_call_fail(c, ORTC_INVALID_ARGUMENT, "the axis is outside of the data's rank");
    ortc_dense_strides(x->rank, x->dims, strides);
    j->axis = axis;
    j->extent = x->dims[axis];
    j->stride = strides[axis];
    strides[axis] = 0;
    j->width = at->dims[at->rank - 1];
    j->last = axis == x->rank - 1;
    j->rows = j->width > 0 ? ortc_view_count(at) / j->width : 0;
    j->piece = j->width < PIECE ? j->width : PIECE;
    j->pieces = j->width > 0 ? (j->width - 1) / j->piece + 1 : 0;
    ortc_walk_init(&j->walk, at->rank - 1, at->dims);
    ortc_walk_strided(&j->walk, strides, 0);
    ortc_walk_merge(&j->walk);
    return ORTC_OK;
}

/* Along the last axis an index is the place in the row; else elements of the row lie beside each other. */
#define EACH(itype, ...) \
    { \
        const itype *at = (const itype *)j->at->data + from; \
        if (j->last) \
            for (int64_t k = 0; k < n; k++) { \
                const int64_t place = base + (int64_t)at[k] + (j->extent & ((int64_t)at[k] >> 63)); \
                __VA_ARGS__ \
            } \
        else \
            for (int64_t k = 0; k < n; k++) { \
                const int64_t place = base + first + k + \
                                      ((int64_t)at[k] + (j->extent & ((int64_t)at[k] >> 63))) * j->stride; \
                __VA_ARGS__ \
            } \
        break; \
    }
#define BOTH(type, ...) \
    if (j->at->dtype == ORTC_I32) \
        EACH(int32_t, __VA_ARGS__) \
    else \
        EACH(int64_t, __VA_ARGS__)

typedef struct wide {
    uint64_t part[2];
} wide;

/* Four loads before their stores, which might change what is loaded, for all that compilers know. */
#define AT(k) x[(k)*beside + (at[k] + (extent & ((int64_t)at[k] >> 63))) * stride]
#define PICK(itype, type) \
    static inline \
        __attribute__((always_inline)) void pick_##itype##_##type(int64_t n, const itype *at, \
                                                                  int64_t extent, int64_t beside, \
                                                                  int64_t stride, const type *x, type *y) \
    { \
        int64_t k = 0; \
        for (; k + 4 <= n; k += 4) { \
            const type a = AT(k), b = AT(k + 1), c = AT(k + 2), d = AT(k + 3); \
            y[k] = a, y[k + 1] = b, y[k + 2] = c, y[k + 3] = d; \
        } \
        for (; k < n; k++) y[k] = AT(k); \
    }
#define PICK_BOTH(type) \
    PICK(int32_t, type) \
    PICK(int64_t, type) \
    static void gather_##type(const elements_job *j, int64_t base, int64_t first, int64_t from, int64_t n) \
    { \
        const type *x = (const type *)(const void *)j->x + base + (j->last ? 0 : first); \
        type *y = (type *)(void *)j->y + from; \
        const int32_t *narrow = (const int32_t *)j->at->data + from; \
        const int64_t *wider = (const int64_t *)j->at->data + from; \
        if (j->at->dtype == ORTC_I32 && j->last) \
            pick_int32_t_##type(n, narrow, j->extent, 0, 1, x, y); \
        else if (j->at->dtype == ORTC_I32) \
            pick_int32_t_##type(n, narrow, j->extent, 1, j->stride, x, y); \
        else if (j->last) \
            pick_int64_t_##type(n, wider, j->extent, 0, 1, x, y); \
        else \
            pick_int64_t_##type(n, wider, j->extent, 1, j->stride, x, y); \
    }
PICK_BOTH(uint8_t)
PICK_BOTH(uint16_t)
PICK_BOTH(uint32_t)
PICK_BOTH(uint64_t)
PICK_BOTH(wide)

/* A row whose elements will be read in any order. */
static void ask_for(const elements_job *j, int64_t base)
{
    const size_t bytes = ortc_dtype_bits(j->type) / 8;
    for (size_t at = 0; at < (size_t)j->extent * bytes; at += 64)
        __builtin_prefetch(j->x + (size_t)base * bytes + at);
}

static void gather_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const elements_job *j = arg;
    ortc_walk w = j->walk;
    (void)scratch;
    ortc_walk_seek(&w, begin / j->pieces);
    for (int64_t task = begin; task < end; task++) {
        const int64_t row = task / j->pieces, first = task % j->pieces * j->piece;
        const int64_t n = j->width - first < j->piece ? j->width - first : j->piece;
        const int64_t from = row * j->width + first;
        if (j->last && j->extent <= n) ask_for(j, w.at[0]); /* while indices are checked */
        const int64_t wrong = ortc_index_first_wrong(j->bodies, j->at, from, from + n, j->extent);
        if (wrong >= 0) {
            *j->wrong = wrong;
            return;
        }
        switch (ortc_dtype_bits(j->type)) {
        case 8: gather_uint8_t(j, w.at[0], first, from, n); break;
        case 16: gather_uint16_t(j, w.at[0], first, from, n); break;
        case 32: gather_uint32_t(j, w.at[0], first, from, n); break;
        case 64: gather_uint64_t(j, w.at[0], first, from, n); break;
        default: gather_wide(j, w.at[0], first, from, n);
        }
        if ((task + 1) % j->pieces == 0) ortc_walk_next(&w);
    }
}

static ortc_status gather_run(const void *state, const void *pstate, ortc_call *c)
{
    elements_job j;
    _Atomic int64_t wrong = -1;
    (void)pstate;
    if (ortc_view_count(&c->out[0]) == 0) return ORTC_OK;
    ORTC_TRY(elements_init(state, c, &j));
    j.x = c->in[0].data;
    j.wrong = &wrong;
    ORTC_TRY(ortc_parallel(c, j.rows * j.pieces, 16384 / j.piece, gather_chunk, &j));
    return ortc_index_refuse(c, j.at, wrong, j.extent, j.axis);
}

#define SET(bytes, type) \
    case bytes: { \
        const type *u = (const type *)(const void *)j->x + from; \
        type *y = (type *)(void *)j->y; \
        BOTH(type, y[place] = u[k];) \
    }
#define UPDATE(kind, type, wider) \
    case kind: { \
        const type *u = (const type *)(const void *)j->x + from; \
        type *y = (type *)(void *)j->y; \
        BOTH(type, y[place] = ortc_update_##wider(j->update, y[place], u[k]);) \
    }
static void update_row(const elements_job *j, int64_t base, int64_t from, int64_t first, int64_t n)
{
    if (j->update == ORTC_UPDATE_SET) {
        switch (ortc_dtype_bits(j->type)) {
            SET(8, uint8_t)
            SET(16, uint16_t)
            SET(32, uint32_t)
            SET(64, uint64_t)
            SET(128, wide)
        default: break;
        }
        return;
    }
    switch (j->type) {
        UPDATE(ORTC_F32, float, f32)
        UPDATE(ORTC_F64, double, f64)
        UPDATE(ORTC_I32, int32_t, i32)
        UPDATE(ORTC_I64, int64_t, i64)
    default: BOTH(char, ortc_index_update(j->update, j->type, j->y, place, j->x, from + k, 1);)
    }
}

static void scatter_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const elements_job *j = arg;
    ortc_walk w = j->walk;
    (void)scratch;
    if (j->last) {
        ortc_walk_seek(&w, begin);
        for (int64_t row = begin; row < end; row++, ortc_walk_next(&w))
            update_row(j, w.at[0], row * j->width, 0, j->width);
        return;
    }
    for (int64_t row = 0; row < j->rows; row++, ortc_walk_next(&w)) /* of columns begin .. end */
        update_row(j, w.at[0], row * j->width + begin, begin, end - begin);
}

static ortc_status scatter_run(const void *state, const void *pstate, ortc_call *c)
{
    elements_job j;
    (void)pstate;
    if (ortc_view_count(&c->out[0]) == 0) return ORTC_OK;
    ORTC_TRY(elements_init(state, c, &j));
    ORTC_TRY(ortc_index_check(c, j.at, j.extent, j.axis));
    ORTC_TRY(ortc_index_copy(c));
    j.x = c->in[2].data;
    if (j.rows == 0) return ORTC_OK;
    const int64_t grain = 16384 / (j.last ? j.width : j.rows);
    return ortc_parallel(c, j.last ? j.rows : j.width,
                         grain < 16 ? j.last ? grain > 0 ? grain : 1 : 16 : grain, scatter_chunk, &j);
}

const ortc_kernel ortc_cpu_gather_elements = {.size = ORTC_SIZED(ortc_kernel),
                                              .name = "gather_elements.cpu",
                                              .prepare = ortc_index_prepare,
                                              .plan = ortc_index_gather_plan,
                                              .run = gather_run};
const ortc_kernel ortc_cpu_scatter_elements = {.size = ORTC_SIZED(ortc_kernel),
                                               .name = "scatter_elements.cpu",
                                               .supports = ortc_index_supports,
                                               .prepare = ortc_index_prepare,
                                               .plan = ortc_index_scatter_plan,
                                               .run = scatter_run};
