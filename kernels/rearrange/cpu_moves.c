/* kernels/rearrange/cpu_moves.c: Tile, DepthToSpace, SpaceToDepth and Trilu on the cpu provider, for elements
 * of whole bytes: moves by strides (kernels/common/vector/strided.h), where a repeat is a dim along which the
 * source stays; of a triangle's rows one part is a copy, the rest zeros. Where channels are in blocks, whole
 * ones of them go to depth and to space.
 */
#include "kernels/common/blocks.h"
#include "kernels/common/vector/strided.h"
#include "kernels/rearrange/rearrange.h"

static ortc_status moves_plan(const void *state, ortc_plan *p, void **pstate)
{
    const ortc_view *y = &p->out[0];
    (void)state, (void)pstate;
    ortc_plan_cost(p, 0, 2.0 * (double)ortc_view_count(y) * ortc_dtype_bits(y->dtype) / 8);
    return ORTC_OK;
}

static ortc_strided move_of(const ortc_call *c)
{
    return (ortc_strided){.to = c->out[0].data,
                          .from = c->in[0].data,
                          .bytes = ortc_dtype_bits(c->out[0].dtype) / 8};
}

static ortc_status tile_run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_view *x = &c->in[0], *y = &c->out[0];
    int64_t dense[ORTC_RANK_LIMIT];
    ortc_strided m = move_of(c);
    (void)state, (void)pstate;
    if (ortc_view_count(y) == 0) return ORTC_OK;
    ortc_dense_strides(x->rank, x->dims, dense);
    for (int32_t d = 0; d < x->rank; d++) { /* a result with elements has at most 62 dims that are not 1 */
        if (y->dims[d] != x->dims[d]) {
            m.dims[m.rank] = y->dims[d] / x->dims[d];
            m.from_step[m.rank++] = 0;
        }
        if (x->dims[d] != 1) {
            m.dims[m.rank] = x->dims[d];
            m.from_step[m.rank++] = dense[d];
        }
    }
    ortc_dense_strides(m.rank, m.dims, m.to_step);
    return ortc_strided_move(c, &m);
}

typedef void depth_fn(const void *state, const int64_t *x, ortc_depth_dims dims, ortc_depth_dims strides);

/* The channels of the shallow side are whole blocks, which lie together on the deep one where the block's
 * edge is outside of the channels. */
static ortc_status depth_choose(const void *state, const ortc_question *q, ortc_offer *o, ortc_why *why)
{
    const ortc_view *x = &q->in[0], *y = &q->out[0];
    const int blocked = ortc_blocks_asked(q);
    if (blocked < 0 || x->rank != 4 || y->rank != 4)
        return blocked ? ortc_no(why, "plain or in blocks of %d channels", ORTC_BLOCK) : ORTC_OK;
    const int64_t shallow = x->dims[1] < y->dims[1] ? x->dims[1] : y->dims[1];
    o->clocks = (blocked ? 0.12 : 0.25) * (double)ortc_view_count(y) * ortc_dtype_bits(y->dtype) / 8;
    if (!blocked) return ORTC_OK;
    if (ortc_depth_is_crd(state) || shallow % ORTC_BLOCK || ortc_view_count(y) == 0)
        return ortc_no(why, "channels are not whole blocks, or outside of the block's edge");
    o->in[0] = o->out[0] = ortc_blocks();
    return ORTC_OK;
}

static ortc_status depth_run(depth_fn *order, const void *state, ortc_call *c)
{
    const int64_t *x = c->in[0].dims, block = c->in[0].layout ? ORTC_BLOCK : 1;
    ortc_strided m = move_of(c);
    if (ortc_view_count(&c->out[0]) == 0) return ORTC_OK;
    m.rank = 6;
    order(state, (const int64_t[4]){x[0], x[1] / block, x[2], x[3]}, m.dims, m.from_step);
    if (block > 1) {
        for (int32_t d = 0; d < m.rank; d++) m.from_step[d] *= block;
        m.dims[m.rank] = block;
        m.from_step[m.rank++] = 1;
    }
    ortc_dense_strides(m.rank, m.dims, m.to_step);
    return ortc_strided_move(c, &m);
}

static ortc_status to_space_run(const void *state, const void *pstate, ortc_call *c)
{
    (void)pstate;
    return depth_run(ortc_depth_to_space, state, c);
}

static ortc_status to_depth_run(const void *state, const void *pstate, ortc_call *c)
{
    (void)pstate;
    return depth_run(ortc_space_to_depth, state, c);
}

typedef struct trilu_job {
    const char *x;
    char *y;
    int64_t rows, columns, k; /* of a matrix */
    size_t bytes;
    bool upper;
} trilu_job;

static void trilu_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const trilu_job *j = arg;
    const size_t all = (size_t)j->columns * j->bytes;
    (void)scratch;
    for (int64_t row = begin; row < end; row++) {
        /* where the upper part begins, and the lower ends; k may be any number */
        const int64_t within = row % j->rows + (j->upper ? 0 : 1);
        const int64_t least = -within, most = j->columns - within;
        const size_t at = (size_t)(within + (j->k < least ? least : j->k > most ? most : j->k)) * j->bytes;
        const size_t from = j->upper ? at : 0, n = j->upper ? all - at : at;
        const char *x = j->x + (size_t)row * all;
        char *y = j->y + (size_t)row * all;
        if (x != y) memcpy(y + from, x + from, n);
        memset(y + (j->upper ? 0 : n), 0, all - n);
    }
}

static ortc_status trilu_run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_view *x = &c->in[0];
    const int64_t count = ortc_view_count(x);
    (void)pstate;
    if (count == 0) return ORTC_OK;
    trilu_job j = {.x = x->data,
                   .y = c->out[0].data,
                   .rows = x->dims[x->rank - 2],
                   .columns = x->dims[x->rank - 1],
                   .k = ortc_trilu_diagonal(c),
                   .bytes = ortc_dtype_bits(x->dtype) / 8,
                   .upper = *(const bool *)state};
    const int64_t grain = 65536 / (j.columns * (int64_t)j.bytes + 32);
    return ortc_parallel(c, count / j.columns, grain > 0 ? grain : 1, trilu_chunk, &j);
}

const ortc_kernel ortc_cpu_tile = {
    .size = ORTC_SIZED(ortc_kernel), .name = "tile.cpu", .host_in = 2, .plan = moves_plan, .run = tile_run};
const ortc_kernel ortc_cpu_depth_to_space = {.size = ORTC_SIZED(ortc_kernel),
                                             .flags = ORTC_KERNEL_LAYOUTS,
                                             .name = "depth_to_space.cpu",
                                             .prepare = ortc_depth_prepare,
                                             .plan = moves_plan,
                                             .run = to_space_run,
                                             .choose = depth_choose};
const ortc_kernel ortc_cpu_space_to_depth = {.size = ORTC_SIZED(ortc_kernel),
                                             .flags = ORTC_KERNEL_LAYOUTS,
                                             .name = "space_to_depth.cpu",
                                             .prepare = ortc_depth_prepare,
                                             .plan = moves_plan,
                                             .run = to_depth_run,
                                             .choose = depth_choose};
const ortc_kernel ortc_cpu_trilu = {.size = ORTC_SIZED(ortc_kernel),
                                    .name = "trilu.cpu",
                                    .host_in = 2,
                                    .prepare = ortc_trilu_prepare,
                                    .plan = ortc_trilu_plan,
                                    .run = trilu_run};
