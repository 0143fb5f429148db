/* kernels/pool/means.c: means of channels of 8 bits on the cpu, from bytes to bytes: a group of
 * DequantizeLinear, GlobalAveragePool (or ReduceMean of all but images and channels) and QuantizeLinear
 * (graph/specialise/between_bytes.c). Sums are exact: where those of f32 are not, a mean that is next to a
 * half may become its other neighbour.
 */
#include <math.h>
#include <stdlib.h>

#include "kernels/common/blocks.h"
#include "kernels/common/layout.h"
#include "kernels/pool/bytes.h"

ORTC_VEC_TABLE(ortc_pool_bytes)

/* ---- The group ----------------------------------------------------------------------------------------- */

static int is_scale(float s) { return s > 0x1p-60f && s < 0x1p60f; }

int ortc_pool_read_group(const ortc_node *n, ortc_pool_group *out)
{
    const ortc_graph *body = ortc_node_epilogue(n) ? NULL : ortc_node_body(n);
    const ortc_node *dq = body ? ortc_graph_next(body, NULL) : NULL,
                    *mean = dq ? ortc_graph_next(body, dq) : NULL,
                    *q = mean ? ortc_graph_next(body, mean) : NULL;
    ortc_dequantised from;
    if (!q || ortc_graph_next(body, q) || ortc_graph_n_out(body) != 1 ||
        !ortc_read_dequantise(body, dq, &from) || !ortc_is_plain(q, "QuantizeLinear") ||
        !ortc_follows(mean, dq) || !ortc_follows(q, mean))
        return 0;
    const ortc_port y = ortc_node_out(q, 0), scale = ortc_node_in(q, 1), zero = ortc_node_in(q, 2);
    ortc_pool_between *b = &out->between;
    *out = (ortc_pool_group){.mean = mean,
                             .x = ortc_node_in(dq, 0),
                             .y = ortc_node_out(mean, 0),
                             .port = from.port,
                             .between = {.x_signed = from.type == ORTC_I8,
                                         .y_signed = y.dtype == ORTC_I8,
                                         .x_zero = from.zero,
                                         .x_scale = from.scale}};
    return ortc_is_byte(y.dtype) && out->x.rank > 2 && ortc_known_scale(&scale, &b->y_scale) &&
           ortc_known_zero(&zero, &b->y_zero) && is_scale(b->x_scale) && is_scale(b->y_scale) &&
           !ortc_node_int(q, "precision", 0);
}

/* Of all but images and channels. */
static int read_group(const ortc_node *n, ortc_pool_group *g)
{
    if (!ortc_pool_read_group(n, g) ||
        !(ortc_is_plain(g->mean, "GlobalAveragePool") || ortc_is_plain(g->mean, "ReduceMean")))
        return 0;
    const ortc_port x = g->x, m = g->y;
    int good = m.rank == x.rank && m.dims[0] == x.dims[0] && m.dims[1] == x.dims[1];
    for (int32_t i = 2; good && i < m.rank; i++) good = m.dims[i] == 1;
    return good;
}

static ortc_status supports(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    ortc_pool_group g;
    (void)device;
    return read_group(n, &g) ? ORTC_OK : ortc_no(why, "it is no mean of channels of 8 bits");
}

static ortc_status prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    ortc_pool_group *s = malloc(sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for the group");
    read_group(n, s);
    *out = s;
    return ORTC_OK;
}

/* Clocks: 32 bytes each. */
static ortc_status choose(const void *of, const ortc_question *q, ortc_offer *o, ortc_why *why)
{
    const ortc_pool_group *s = of;
    const ortc_view *x = &q->in[s->port];
    const int blocked = ortc_blocks_asked(q);
    if (blocked < 0) return ortc_no(why, "plain or in blocks of %d channels", ORTC_BLOCK);
    if (blocked && (x->rank > 5 || !ortc_view_count(x)))
        return ortc_no(why, "more than three spatial dims, or no elements");
    o->clocks = 0.03 * (double)ortc_view_count(x) + 20 * (double)ortc_view_count(&q->out[0]);
    if (blocked) o->in[s->port] = o->out[0] = ortc_blocks();
    return ORTC_OK;
}

/* ---- Means --------------------------------------------------------------------------------------------- */

typedef struct job {
    const ortc_pool_bytes *body;
    const ortc_pool_between *b;
    const uint8_t *x;
    uint8_t *y;
    int64_t count; /* elements of a channel */
} job;

uint8_t ortc_pool_between_of(const ortc_pool_between *b, int64_t sum, double count)
{
    const float mean = (float)((double)sum / count),
                v = rintf(mean * b->x_scale / b->y_scale) + (float)b->y_zero;
    if (isnan(v)) return 0; /* as of a cast */
    return b->y_signed ? (uint8_t)(int8_t)fminf(127, fmaxf(-128, v)) : (uint8_t)fminf(255, fmaxf(0, v));
}

static uint8_t result(const job *j, int64_t sum)
{
    return ortc_pool_between_of(j->b, sum - j->count * j->b->x_zero, (double)j->count);
}

static void blocks_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const job *j = arg;
    (void)scratch;
    for (int64_t b = begin; b < end; b++) {
        int64_t sums[ORTC_BLOCK] = {0};
        j->body->sums((size_t)j->count, j->x + b * j->count * ORTC_BLOCK, j->b->x_signed, sums);
        for (int i = 0; i < ORTC_BLOCK; i++) j->y[b * ORTC_BLOCK + i] = result(j, sums[i]);
    }
}

static void plain_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const job *j = arg;
    (void)scratch;
    for (int64_t c = begin; c < end; c++) {
        int64_t sums[ORTC_BLOCK] = {0}, sum = 0;
        const uint8_t *x = j->x + c * j->count;
        const int64_t whole = j->count / ORTC_BLOCK;
        j->body->sums((size_t)whole, x, j->b->x_signed, sums);
        for (int i = 0; i < ORTC_BLOCK; i++) sum += sums[i];
        for (int64_t i = whole * ORTC_BLOCK; i < j->count; i++) sum += j->b->x_signed ? (int8_t)x[i] : x[i];
        j->y[c] = result(j, sum);
    }
}

static ortc_status run(const void *of, const void *pstate, ortc_call *c)
{
    const ortc_pool_group *s = of;
    const ortc_view *x = &c->in[s->port], *y = &c->out[0];
    (void)pstate;
    if (!ortc_view_count(y)) return ORTC_OK;
    job j = {ortc_pool_bytes_select(), &s->between, x->data, y->data, 1};
    for (int32_t i = 2; i < x->rank; i++) j.count *= x->dims[i];
    const int64_t grain = 1 + 65536 / (1 + j.count * (x->layout ? ORTC_BLOCK : 1));
    if (!x->layout) return ortc_parallel(c, x->dims[0] * x->dims[1], grain, plain_chunk, &j);
    const ortc_status status = ortc_parallel(c, x->dims[0] * ortc_blocks_of(x->dims[1]), grain, blocks_chunk,
                                             &j);
    ortc_layout_zero_rest(&c->out[0]);
    return status;
}

const ortc_kernel ortc_cpu_pool_means = {.size = ORTC_SIZED(ortc_kernel),
                                         .flags = ORTC_KERNEL_LAYOUTS,
                                         .name = "pool.means",
                                         .supports = supports,
                                         .prepare = prepare,
                                         .run = run,
                                         .choose = choose};
