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
                const int64_t place = base + (int64_t)at[k] + (at[k] < 0 ? j->extent : 0); \
                __VA_ARGS__ \
            } \
        else \
            for (int64_t k = 0; k < n; k++) { \
                const int64_t place = base + first + k + \
                                      ((int64_t)at[k] + (at[k] < 0 ? j->extent : 0)) * j->stride; \
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

static void gather_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const elements_job *j = arg;
    const int long_ones = j->at->dtype == ORTC_I64, size = __builtin_ctz(ortc_dtype_bits(j->type) / 8);
    (void)scratch;
    for (int64_t task = begin; task < end; task++) {
        const int64_t row = task / j->pieces, first = task % j->pieces * j->piece;
        const int64_t n = j->width - first < j->piece ? j->width - first : j->piece;
        const int64_t from = row * j->width + first;
        const int64_t wrong = ortc_index_first_wrong(j->bodies, j->at, from, from + n, j->extent);
        ortc_walk w = j->walk;
        if (wrong >= 0) {
            *j->wrong = wrong;
            return;
        }
        ortc_walk_seek(&w, row);
        const char *at = (const char *)j->at->data + ((size_t)from << (long_ones ? 3 : 2));
        const char *x = j->x + ((size_t)(w.at[0] + (j->last ? 0 : first)) << size);
        char *y = j->y + ((size_t)from << size);
        if (j->last)
            j->bodies->row[long_ones][size]((size_t)n, at, j->extent, x, y);
        else
            j->bodies->columns[long_ones][size]((size_t)n, at, j->extent, j->stride, x, y);
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
