/* kernels/rearrange/cuda_rearrange.c: Tile, Pad (constant) and Trilu on a GPU: strided copies and fillings of
 * kernels/shape. */
#include <stdlib.h>
#include <string.h>

#include "kernels/common/cuda.h"
#include "kernels/common/shape.h"
#include "kernels/shape/cuda_strided.h"

#define RANK 8

int ortc_cu_trilu(void *y, const void *x, int64_t count, int64_t rows, int64_t columns, const int64_t *k,
                  int upper, uint32_t bytes, void *queue);

static ortc_status supports(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    const ortc_port x = ortc_node_in(n, 0);
    (void)device;
    if (x.rank < 0 || x.rank > RANK) return ortc_no(why, "the rank must be known and at most %d", RANK);
    if (!strcmp(ortc_node_op(n), "Pad") && strcmp(ortc_node_string(n, "mode", "constant"), "constant") != 0)
        return ortc_no(why, "only constants are padded with");
    return ORTC_OK;
}

/* ---- Tile: each dim is two, the repeats before the elements -------------------------------------------- */

static ortc_status tile_run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_view *x = &c->in[0], *y = &c->out[0];
    int64_t from[RANK], to[RANK];
    ortc_cu_move m = {.to = y->data, .from = x->data, .bytes = ortc_dtype_bits(x->dtype) / 8};
    (void)state, (void)pstate;
    if (ortc_view_count(y) == 0) return ORTC_OK;
    ortc_dense_strides(x->rank, x->dims, from);
    ortc_dense_strides(y->rank, y->dims, to);
    for (int32_t d = 0; d < x->rank; d++) {
        m.dims[m.rank] = y->dims[d] / x->dims[d];
        m.from_step[m.rank] = 0;
        m.to_step[m.rank++] = to[d] * x->dims[d];
        m.dims[m.rank] = x->dims[d];
        m.from_step[m.rank] = from[d];
        m.to_step[m.rank++] = to[d];
    }
    return ortc_cuda_done(c, ortc_cu_move_run(&m, c->queue));
}

/* ---- Pad: everything is filled, then what is the input's is copied ------------------------------------- */

static ortc_status pad_run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_view *x = &c->in[0], *y = &c->out[0], *pads = &c->in[1],
                    *value = c->n_in > 2 && c->in[2].dtype ? &c->in[2] : NULL;
    const ortc_view *axes = c->n_in > 3 && c->in[3].dtype ? &c->in[3] : NULL;
    const int64_t count = ortc_view_count(pads) / 2;
    int64_t before[RANK] = {0};
    ortc_cu_move m = {.to = y->data,
                      .from = x->data,
                      .rank = x->rank,
                      .bytes = ortc_dtype_bits(x->dtype) / 8};
    (void)state, (void)pstate;
    if (ortc_view_count(y) == 0) return ORTC_OK;
    for (int64_t i = 0; i < count; i++) {
        int32_t axis;
        if (!ortc_axis_of(axes ? ortc_load_i64(axes->data, axes->dtype, i) : i, x->rank, &axis))
            return ortc_call_fail(c, ORTC_INVALID_ARGUMENT, "an axis is outside of the input's rank");
        before[axis] = ortc_load_i64(pads->data, ORTC_I64, i);
    }
    const void *fill = value && ortc_view_count(value) == 1 ? value->data : NULL;
    ortc_dense_strides(x->rank, x->dims, m.from_step);
    ortc_dense_strides(y->rank, y->dims, m.to_step);
    for (int32_t d = 0; d < x->rank; d++) { /* the part of x that is in y */
        const int64_t first = before[d] < 0 ? -before[d] : 0, at = before[d] > 0 ? before[d] : 0;
        const int64_t here = x->dims[d] - first, there = y->dims[d] - at, most = here < there ? here : there;
        m.dims[d] = most > 0 ? most : 0;
        if (m.dims[d]) {
            m.from = (const char *)m.from + first * m.from_step[d] * m.bytes;
            m.to = (char *)m.to + at * m.to_step[d] * m.bytes;
        }
    }
    const int error = ortc_cu_fill(y->data, ortc_view_count(y), m.bytes, fill, c->queue);
    return ortc_cuda_done(c, error ? error : ortc_cu_move_run(&m, c->queue));
}

/* ---- Trilu --------------------------------------------------------------------------------------------- */

static ortc_status trilu_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    int *upper = malloc(sizeof *upper);
    if (!upper) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *upper = ortc_node_int(n, "upper", 1) != 0;
    *out = upper;
    return ORTC_OK;
}

static ortc_status trilu_plan(const void *state, ortc_plan *p, void **pstate)
{
    (void)state, (void)pstate;
    ortc_plan_in_place(p, 0, 0);
    return ORTC_OK;
}

static ortc_status trilu_run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_view *x = &c->in[0],
                    *k = c->n_in > 1 && c->in[1].dtype && ortc_view_count(&c->in[1]) == 1 ? &c->in[1] : NULL;
    (void)pstate;
    return ortc_cuda_done(c, ortc_cu_trilu(c->out[0].data, x->data, ortc_view_count(x), x->dims[x->rank - 2],
                                           x->dims[x->rank - 1], k ? k->data : NULL, *(const int *)state,
                                           ortc_dtype_bits(x->dtype) / 8, c->queue));
}

static const ortc_kernel tile_kernel = {
    .size = sizeof(ortc_kernel), .name = "tile.cuda", .host_in = 2, .supports = supports, .run = tile_run};
static const ortc_kernel pad_kernel = {
    .size = sizeof(ortc_kernel), .name = "pad.cuda", .host_in = 0xa, .supports = supports, .run = pad_run};
static const ortc_kernel trilu_kernel = {.size = sizeof(ortc_kernel),
                                         .name = "trilu.cuda",
                                         .supports = supports,
                                         .prepare = trilu_prepare,
                                         .plan = trilu_plan,
                                         .run = trilu_run};

#define PLAIN (ORTC_TYPES_NUM | ORTC_TYPE(ORTC_BOOL) | ORTC_TYPE(ORTC_C64) | ORTC_TYPE(ORTC_C128))
#define INDEX (ORTC_TYPE(ORTC_I32) | ORTC_TYPE(ORTC_I64))
#define K(op, since, kernel, ...) ORTC_KERNEL(op, since, ORTC_NEWEST, (__VA_ARGS__), kernel)
ORTC_KERNELS(cuda, rearrange, K("Pad", 25, &pad_kernel, PLAIN, INDEX),
             K("Tile", 13, &tile_kernel, PLAIN, ORTC_TYPE(ORTC_I64)), K("Trilu", 14, &trilu_kernel, PLAIN));
