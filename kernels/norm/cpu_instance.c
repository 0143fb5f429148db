/* kernels/norm/cpu_instance.c: InstanceNormalization and GroupNormalization of f32 in blocks of channels
 * (kernels/common/blocks.h), as convolutions around them have it. An image's block is cut in pieces of so
 * many positions, whatever threads there are: their means and squared distances are found first, by parts in
 * L1, then put together in f64 (Chan, Golub and LeVeque, 1983), over a channel or a group of them, then
 * pieces are normalised, and what follows is done to them (kernels/gemm/epilogue.h) while they are in L1. X
 * of 8 bits (source.c) becomes numbers there, too, each time.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/common/blocks.h"
#include "kernels/common/counts.h"
#include "kernels/common/shape.h"
#include "kernels/gemm/epilogue.h"
#include "kernels/norm/cpu.h"
#include "kernels/norm/rows.h"

ORTC_VEC_TABLE(ortc_layer_rows)

enum { NEAR = 256, PIECE = 4096 }; /* positions: in L1, and of a task */
enum { JOINED = 1024 };            /* sums that a task puts together */

/* Of `count` positions of a block. */
typedef struct sums {
    double count, mean[ORTC_BLOCK], squares[ORTC_BLOCK]; /* squares: of distances from the mean */
} sums;

typedef struct instance_state {
    double epsilon;
    int64_t groups;  /* 0: each channel is one */
    int32_t port[3]; /* of the node's inputs: X, scale and bias */
    ortc_dequantised x;
    ortc_tail_spec tail;
} instance_state;

typedef struct instance_job {
    const ortc_call *call;
    const instance_state *state;
    const ortc_layer_rows *body;
    int64_t channels, groups, positions, pieces;
    sums *of;                    /* [image][block][piece] */
    float *mean, *factor, *bias; /* [image][block][16]: y = (x - mean) * factor + bias */
} instance_job;

static void add(sums *to, double count, double mean, double squares, int c)
{
    const double all = to->count + count, d = mean - to->mean[c];
    to->mean[c] += d * (count / all);
    to->squares[c] += squares + d * d * (to->count * count / all);
}

static int64_t positions_of(const instance_job *j, int64_t piece)
{
    return min64(PIECE, j->positions - piece * PIECE);
}

/* Where a piece begins, in floats. */
static int64_t place_of(const instance_job *j, int64_t task)
{
    return (task / j->pieces * j->positions + task % j->pieces * PIECE) * ORTC_BLOCK;
}

/* n positions of X from element `at` on as f32, in `to` or where they lie. */
static const float *numbers(const instance_job *j, int64_t at, int64_t n, float *to)
{
    const ortc_dequantised *x = &j->state->x;
    const ortc_view *v = &j->call->in[j->state->port[0]];
    if (!x->type) return (const float *)v->data + at;
    j->body->dequantise((size_t)(n * ORTC_BLOCK), (const char *)v->data + at, x->type == ORTC_I8, x->zero,
                        x->scale, to);
    return to;
}

static void measure(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const instance_job *j = arg;
    float mean[ORTC_BLOCK], squares[ORTC_BLOCK];
    for (int64_t task = begin; task < end; task++) {
        int64_t at = place_of(j, task), n;
        sums *s = &j->of[task];
        memset(s, 0, sizeof *s);
        for (int64_t left = positions_of(j, task % j->pieces); left > 0; left -= n, at += n * ORTC_BLOCK) {
            n = min64(left, NEAR);
            j->body->measure_blocks((size_t)n, numbers(j, at, n, scratch), mean, squares);
            for (int c = 0; c < ORTC_BLOCK; c++) add(s, (double)n, (double)mean[c], (double)squares[c], c);
            s->count += (double)n;
        }
    }
}

/* Tasks: groups of all images. */
static void join(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const instance_job *j = arg;
    const ortc_view *by = &j->call->in[j->state->port[1]], *bias = &j->call->in[j->state->port[2]];
    const int64_t each = j->channels / j->groups, padded = ortc_blocks_of(j->channels) * ORTC_BLOCK;
    (void)scratch;
    for (int64_t task = begin; task < end; task++) {
        const int64_t image = task / j->groups, first = task % j->groups * each, end_channel = first + each;
        const sums *of = j->of + image * padded / ORTC_BLOCK * j->pieces;
        sums all = {.count = 0}; /* in its first lane */
        for (int64_t c = first; c < end_channel; c++) {
            const int lane = (int)(c % ORTC_BLOCK);
            for (const sums *s = of + c / ORTC_BLOCK * j->pieces, *last = s + j->pieces; s < last; s++) {
                add(&all, s->count, s->mean[lane], s->squares[lane], 0);
                all.count += s->count;
            }
        }
        const double root = sqrt(all.squares[0] / all.count + j->state->epsilon);
        for (int64_t c = first, at = image * padded + first; c < end_channel; c++, at++) {
            j->mean[at] = (float)all.mean[0];
            j->factor[at] = (float)((double)((const float *)by->data)[c] / root);
            j->bias[at] = ((const float *)bias->data)[c];
        }
        for (int64_t c = end_channel, at = image * padded + c; end_channel == j->channels && c < padded;
             c++, at++)
            j->mean[at] = j->factor[at] = j->bias[at] = 0;
    }
}

static void normalise(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const instance_job *j = arg;
    const ortc_tail_spec *t = &j->state->tail;
    const ortc_view *in = j->call->in;
    const int64_t size = ortc_dtype_bits(j->call->out[0].dtype) / 8;
    for (int64_t task = begin; task < end; task++) {
        const int64_t block = task / j->pieces, lanes = ortc_block_lanes(block, j->channels),
                      first = block % ortc_blocks_of(j->channels) * ORTC_BLOCK, of = block * ORTC_BLOCK;
        int64_t at = place_of(j, task), n;
        for (int64_t left = positions_of(j, task % j->pieces); left > 0; left -= n, at += n * ORTC_BLOCK) {
            char *y = (char *)j->call->out[0].data + at * size;
            float *tile = t->to_bytes ? (float *)scratch + NEAR * ORTC_BLOCK : (float *)(void *)y;
            n = t->has_rest || j->state->x.type ? min64(left, NEAR) : left;
            j->body->apply_blocks((size_t)n, numbers(j, at, n, scratch), j->mean + of, j->factor + of,
                                  j->bias + of, tile);
            const ortc_tail_place place = {
                .channel = first, .channel_col = 1, .element = at, .row = ORTC_BLOCK, .col = 1};
            if (!t->to_bytes) {
                ortc_tail_over(t, in, &place, tile, ORTC_BLOCK, tile, ORTC_BLOCK, (size_t)n, (size_t)lanes);
                continue;
            }
            ortc_tail_store(t, in, &place, tile, ORTC_BLOCK, y, ORTC_BLOCK, (size_t)n, (size_t)lanes);
            for (int64_t i = 0; lanes < ORTC_BLOCK && i < n; i++)
                memset(y + i * ORTC_BLOCK + lanes, 0, (size_t)(ORTC_BLOCK - lanes));
        }
    }
}

static ortc_status supports(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    const char *reason;
    ortc_tail_spec tail;
    ortc_norm_source from;
    (void)device;
    if (!ortc_norm_source_of(n, &from) || !ortc_norm_is_of_channels(from.norm))
        return ortc_no(why, "it is no such normalisation");
    return ortc_tail_spec_init(n, 1, ORTC_TAIL_BYTES, &tail, &reason) ? ORTC_OK : ortc_no(why, "%s", reason);
}

static ortc_status prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const char *why;
    ortc_norm_source from;
    instance_state *s = calloc(1, sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    ortc_norm_source_of(n, &from);
    memcpy(s->port, from.port, sizeof s->port);
    s->x = from.x;
    s->epsilon = (double)ortc_node_float(from.norm, "epsilon", 1e-5F);
    if (!strcmp(ortc_node_op(from.norm), "GroupNormalization"))
        s->groups = ortc_node_int(from.norm, "num_groups", 1);
    if (!ortc_tail_spec_init(n, 1, ORTC_TAIL_BYTES, &s->tail, &why)) {
        free(s);
        return ortc_prep_fail(prep, ORTC_INTERNAL, "%s", why);
    }
    *out = s;
    return ORTC_OK;
}

static ortc_status choose(const void *state, const ortc_question *q, ortc_offer *o, ortc_why *why)
{
    const instance_state *s = state;
    const ortc_view *x = &q->in[s->port[0]];
    if ((q->layout != ORTC_ANY_LAYOUT && q->layout != ortc_blocks()) || ortc_view_count(x) == 0)
        return ortc_no(why, "it is for blocks of channels, and not empty");
    o->in[s->port[0]] = o->out[0] = ortc_blocks();
    for (uint32_t i = 1; s->tail.has_rest && i < s->tail.rest.n_in; i++)
        if (s->tail.rest.in[i] && s->tail.lies[i] == ORTC_PW_FULL) o->in[i] = ortc_blocks();
    o->clocks = 0.7 * (double)(ortc_view_count(x) / x->dims[1] * ortc_blocks_of(x->dims[1]) * ORTC_BLOCK);
    return ORTC_OK;
}

/* Tasks: pieces of all images' blocks. */
static int64_t tasks_of(const ortc_view *x, int64_t *positions, int64_t *pieces)
{
    const int64_t blocks = x->dims[0] * ortc_blocks_of(x->dims[1]);
    *positions = ortc_view_count(x) / (x->dims[0] * x->dims[1]);
    *pieces = ceil_div(*positions, PIECE);
    return blocks * *pieces;
}

static ortc_status plan(const void *state, ortc_plan *p, void **out)
{
    const instance_state *s = state;
    const ortc_view *x = &p->in[s->port[0]];
    const double count = (double)ortc_view_count(x);
    const int64_t channels = x->dims[0] * ortc_blocks_of(x->dims[1]) * ORTC_BLOCK;
    int64_t positions, pieces;
    (void)out;
    ortc_plan_workspace(p,
                        (size_t)tasks_of(x, &positions, &pieces) * sizeof(sums) +
                            3 * (size_t)channels * sizeof(float),
                        s->tail.to_bytes || s->x.type ? 2 * NEAR * ORTC_BLOCK * sizeof(float) : 0);
    if (!s->tail.to_bytes && !s->x.type) ortc_plan_in_place(p, 0, 0);
    ortc_plan_cost(p, 8 * count, 8 * count);
    return ORTC_OK;
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    const instance_state *s = state;
    const ortc_view *x = &c->in[s->port[0]];
    const int64_t channels = x->dims[0] * ortc_blocks_of(x->dims[1]) * ORTC_BLOCK;
    instance_job j = {.call = c,
                      .state = s,
                      .body = ortc_layer_rows_select(),
                      .channels = x->dims[1],
                      .groups = s->groups ? s->groups : x->dims[1],
                      .of = c->workspace};
    const int64_t tasks = tasks_of(x, &j.positions, &j.pieces),
                  grain = j.positions >= PIECE ? 1 : PIECE / j.positions;
    (void)pstate;
    j.mean = (float *)(void *)(j.of + tasks);
    j.factor = j.mean + channels, j.bias = j.factor + channels;
    ORTC_TRY(ortc_parallel(c, tasks, grain, measure, &j));
    ORTC_TRY(
        ortc_parallel(c, x->dims[0] * j.groups, 1 + JOINED * j.groups / (j.channels * j.pieces), join, &j));
    return ortc_parallel(c, tasks, grain, normalise, &j);
}

const ortc_kernel ortc_instance_blocks = {.size = ORTC_SIZED(ortc_kernel),
                                          .flags = ORTC_KERNEL_LAYOUTS | ORTC_KERNEL_EPILOGUE,
                                          .name = "instance_normalization.blocks",
                                          .supports = supports,
                                          .prepare = prepare,
                                          .plan = plan,
                                          .run = run,
                                          .choose = choose};
