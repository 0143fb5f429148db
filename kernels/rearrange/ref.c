/* kernels/rearrange/ref.c: Tile, Trilu and ReverseSequence on ref, and the family's table. */
#include <stdlib.h>

#include "kernels/rearrange/rearrange.h"

/* ---- Tile: each dim is two, the repeats before the elements -------------------------------------------- */

static ortc_status tile_run(const void *state, const void *pstate, ortc_call *c)
{
    if (c->in[0].dtype == ORTC_STRING) return ortc_run_on_strings(tile_run, state, pstate, c);
    const ortc_view *x = &c->in[0], *y = &c->out[0];
    int64_t dense[ORTC_RANK_LIMIT], dims[ORTC_RANK_LIMIT], strides[ORTC_RANK_LIMIT];
    int32_t rank = 0;
    if (ortc_view_count(y) == 0) return ORTC_OK;
    ortc_dense_strides(x->rank, x->dims, dense);
    for (int32_t d = 0; d < x->rank; d++) { /* a result with elements has at most 62 dims that are not 1 */
        if (y->dims[d] != x->dims[d]) {
            dims[rank] = y->dims[d] / x->dims[d];
            strides[rank++] = 0;
        }
        if (x->dims[d] != 1) {
            dims[rank] = x->dims[d];
            strides[rank++] = dense[d];
        }
    }
    return ortc_move_strided(c, rank, dims, strides, 0);
}

/* ---- Trilu --------------------------------------------------------------------------------------------- */

typedef struct trilu_job {
    const ortc_view *x;
    ortc_view *y;
    int64_t k;
    bool upper;
} trilu_job;

static void trilu_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    static const uint64_t zero[2];
    const trilu_job *j = arg;
    const int64_t rows = j->x->dims[j->x->rank - 2], columns = j->x->dims[j->x->rank - 1];
    const uint32_t bits = ortc_dtype_bits(j->y->dtype);
    for (int64_t i = begin; i < end; i++) {
        const int64_t off = i % columns - i / columns % rows; /* diagonals above the main one */
        const bool keep = j->upper ? off >= j->k : off <= j->k;
        ortc_move_element(j->y->data, i, keep ? j->x->data : zero, keep ? i : 0, bits);
    }
}

int64_t ortc_trilu_diagonal(const ortc_call *c)
{
    const bool given = c->n_in > 1 && c->in[1].dtype && ortc_view_count(&c->in[1]) == 1;
    return given ? ortc_load_i64(c->in[1].data, ORTC_I64, 0) : 0;
}

static ortc_status trilu_run(const void *state, const void *pstate, ortc_call *c)
{
    if (c->in[0].dtype == ORTC_STRING) return ortc_run_on_strings(trilu_run, state, pstate, c);
    trilu_job j = {&c->in[0], &c->out[0], ortc_trilu_diagonal(c), *(const bool *)state};
    return ortc_parallel(c, ortc_view_count(j.y), ortc_grain(8), trilu_chunk, &j);
}

ortc_status ortc_trilu_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const int64_t upper = ortc_node_int(n, "upper", 1);
    bool *state = malloc(sizeof *state);
    if (!state) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *state = upper != 0;
    *out = state;
    return ORTC_OK;
}

ortc_status ortc_trilu_plan(const void *state, ortc_plan *p, void **pstate)
{
    ortc_plan_in_place(p, 0, 0);
    return ORTC_OK;
}

/* ---- ReverseSequence ----------------------------------------------------------------------------------- */

typedef struct reverse_job {
    const ortc_view *x, *lengths;
    ortc_view *y;
    int64_t inner;   /* elements behind the first two dims */
    bool time_first; /* dims are time, batch; else batch, time */
} reverse_job;

static void reverse_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const reverse_job *j = arg;
    const uint32_t bits = ortc_dtype_bits(j->y->dtype);
    for (int64_t i = begin; i < end; i++) {
        const int64_t second = i % j->x->dims[1], first = i / j->x->dims[1];
        const int64_t time = j->time_first ? first : second,
                      length = ortc_load_i64(j->lengths->data, ORTC_I64, j->time_first ? second : first);
        const int64_t from = time < length ? length - 1 - time : time;
        const int64_t row = j->time_first ? from * j->x->dims[1] + second : first * j->x->dims[1] + from;
        ortc_move_elements(j->y->data, i * j->inner, j->x->data, row * j->inner, j->inner, bits);
    }
}

static ortc_status reverse_run(const void *state, const void *pstate, ortc_call *c)
{
    if (c->in[0].dtype == ORTC_STRING) return ortc_run_on_strings(reverse_run, state, pstate, c);
    reverse_job j = {.x = &c->in[0],
                     .lengths = &c->in[1],
                     .y = &c->out[0],
                     .inner = 1,
                     .time_first = *(const bool *)state};
    const int64_t count = ortc_view_count(j.y), batch = ortc_view_count(j.lengths),
                  steps = j.x->dims[!j.time_first];
    for (int64_t i = 0; i < batch; i++) {
        const int64_t length = ortc_load_i64(j.lengths->data, ORTC_I64, i);
        if (length < 0 || length > steps)
            return ortc_call_fail(c, ORTC_INVALID_ARGUMENT,
                                  "sequence_lens[%lld] is %lld, there are %lld steps", (long long)i,
                                  (long long)length, (long long)steps);
    }
    if (count == 0) return ORTC_OK;
    for (int32_t d = 2; d < j.x->rank; d++) j.inner *= j.x->dims[d];
    return ortc_parallel(c, count / j.inner, ortc_grain(10.0 + (double)j.inner), reverse_chunk, &j);
}

static ortc_status reverse_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const int64_t time_axis = ortc_node_int(n, "time_axis", 0);
    bool *state = malloc(sizeof *state);
    if (!state) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *state = time_axis == 0;
    *out = state;
    return ORTC_OK;
}

static const ortc_kernel tile_ref = {.size = ORTC_SIZED(ortc_kernel),
                                     .name = "tile.ref",
                                     .host_in = 2,
                                     .run = tile_run};
static const ortc_kernel trilu_ref = {.size = ORTC_SIZED(ortc_kernel),
                                      .name = "trilu.ref",
                                      .host_in = 2,
                                      .prepare = ortc_trilu_prepare,
                                      .plan = ortc_trilu_plan,
                                      .run = trilu_run};
static const ortc_kernel reverse_ref = {.size = ORTC_SIZED(ortc_kernel),
                                        .name = "reverse_sequence.ref",
                                        .prepare = reverse_prepare,
                                        .run = reverse_run};

/* ---- The table ----------------------------------------------------------------------------------------- */

#define PLAIN \
    (ORTC_TYPES_NUM | ORTC_TYPE(ORTC_BOOL) | ORTC_TYPE(ORTC_STRING) | ORTC_TYPE(ORTC_C64) | \
     ORTC_TYPE(ORTC_C128))
#define EVERY (ORTC_TYPES_ALL & ~(ORTC_TYPE(ORTC_F6E2M3) | ORTC_TYPE(ORTC_F6E3M2)))
#define INDEX (ORTC_TYPE(ORTC_I32) | ORTC_TYPE(ORTC_I64))
#define K(op, since, kernel, ...) ORTC_KERNEL(op, since, ORTC_NEWEST, (__VA_ARGS__), kernel)
ORTC_KERNELS(ref, rearrange, K("Pad", 25, &ortc_ref_pad, EVERY, INDEX),
             K("CenterCropPad", 18, &ortc_ref_center, PLAIN, INDEX),
             K("Tile", 13, &tile_ref, PLAIN, ORTC_TYPE(ORTC_I64)), K("Trilu", 14, &trilu_ref, PLAIN),
             K("ReverseSequence", 28, &reverse_ref, PLAIN),
             K("DepthToSpace", 28, &ortc_ref_depth_to_space, PLAIN),
             K("SpaceToDepth", 28, &ortc_ref_space_to_depth, PLAIN),
             K("Col2Im", 18, &ortc_ref_col2im, PLAIN));
