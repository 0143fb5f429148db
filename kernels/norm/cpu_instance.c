/* kernels/norm/cpu_instance.c: InstanceNormalization of f32 in blocks of channels (kernels/common/blocks.h),
 * as convolutions around it have them. An image's block is cut in pieces of so many positions, whatever
 * threads there are: their means and squared distances are found first, by parts in L1, then put together in
 * f64 (Chan, Golub and LeVeque, 1983), then pieces are normalised.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/common/blocks.h"
#include "kernels/common/counts.h"
#include "kernels/common/shape.h"
#include "kernels/common/vector/convert.h"
#include "kernels/norm/cpu.h"
#include "kernels/norm/rows.h"

ORTC_VEC_TABLE(ortc_layer_rows)

enum { NEAR = 256, PIECE = 4096 }; /* positions: in L1, and of a task */

/* Of `count` positions of a block. */
typedef struct sums {
    double count, mean[ORTC_BLOCK], squares[ORTC_BLOCK]; /* squares: of distances from the mean */
} sums;

typedef struct instance_job {
    const ortc_call *call;
    const ortc_layer_rows *body;
    double epsilon;
    int64_t channels, positions, pieces;
    sums *of; /* [image][block][piece]; of the whole block, once joined, in place of its first piece's */
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

static void measure(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const instance_job *j = arg;
    float mean[ORTC_BLOCK], squares[ORTC_BLOCK];
    (void)scratch;
    for (int64_t task = begin; task < end; task++) {
        const float *x = (const float *)j->call->in[0].data + place_of(j, task);
        sums *s = &j->of[task];
        memset(s, 0, sizeof *s);
        for (int64_t left = positions_of(j, task % j->pieces), n; left > 0; left -= n, x += n * ORTC_BLOCK) {
            n = min64(left, NEAR);
            j->body->measure_blocks((size_t)n, x, mean, squares);
            for (int c = 0; c < ORTC_BLOCK; c++) add(s, (double)n, (double)mean[c], (double)squares[c], c);
            s->count += (double)n;
        }
    }
}

/* Tasks: blocks. */
static void join(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const instance_job *j = arg;
    (void)scratch;
    for (int64_t block = begin; block < end; block++) {
        sums *all = &j->of[block * j->pieces];
        for (const sums *s = all + 1; s < all + j->pieces; s++) {
            for (int c = 0; c < ORTC_BLOCK; c++) add(all, s->count, s->mean[c], s->squares[c], c);
            all->count += s->count;
        }
    }
}

static void normalise(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const instance_job *j = arg;
    const ortc_view *in = j->call->in;
    (void)scratch;
    for (int64_t task = begin; task < end; task++) {
        const int64_t block = task / j->pieces, at = place_of(j, task),
                      lanes = ortc_block_lanes(block, j->channels),
                      first = block % ortc_blocks_of(j->channels) * ORTC_BLOCK;
        const sums *all = &j->of[block * j->pieces];
        float mean[ORTC_BLOCK] = {0}, factor[ORTC_BLOCK] = {0}, bias[ORTC_BLOCK] = {0};
        for (int64_t c = 0; c < lanes; c++) {
            const double scale = (double)((const float *)in[1].data)[first + c];
            mean[c] = (float)all->mean[c];
            factor[c] = (float)(scale / sqrt(all->squares[c] / all->count + j->epsilon));
            bias[c] = ((const float *)in[2].data)[first + c];
        }
        j->body->apply_blocks((size_t)positions_of(j, task % j->pieces), (const float *)in[0].data + at, mean,
                              factor, bias, (float *)j->call->out[0].data + at);
    }
}

static ortc_status prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    double *epsilon = malloc(sizeof *epsilon);
    if (!epsilon) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *epsilon = (double)ortc_node_float(n, "epsilon", 1e-5F);
    *out = epsilon;
    return ORTC_OK;
}

static ortc_status choose(const void *state, const ortc_question *q, ortc_offer *o, ortc_why *why)
{
    (void)state;
    if ((q->layout != ORTC_ANY_LAYOUT && q->layout != ortc_blocks()) || ortc_view_count(&q->in[0]) == 0)
        return ortc_no(why, "it is for blocks of channels, and not empty");
    o->in[0] = o->out[0] = ortc_blocks();
    o->clocks = 0.7 * (double)(ortc_view_count(&q->in[0]) / q->in[0].dims[1] *
                               ortc_blocks_of(q->in[0].dims[1]) * ORTC_BLOCK);
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
    const double count = (double)ortc_view_count(&p->in[0]);
    int64_t positions, pieces;
    (void)state, (void)out;
    ortc_plan_workspace(p, (size_t)tasks_of(&p->in[0], &positions, &pieces) * sizeof(sums), 0);
    ortc_plan_in_place(p, 0, 0);
    ortc_plan_cost(p, 8 * count, 8 * count);
    return ORTC_OK;
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    instance_job j = {.call = c,
                      .body = ortc_layer_rows_select(),
                      .epsilon = *(const double *)state,
                      .channels = c->in[0].dims[1],
                      .of = c->workspace};
    const int64_t tasks = tasks_of(&c->in[0], &j.positions, &j.pieces),
                  grain = j.positions >= PIECE ? 1 : PIECE / j.positions;
    (void)pstate;
    ORTC_TRY(ortc_parallel(c, tasks, grain, measure, &j));
    if (j.pieces > 1) ORTC_TRY(ortc_parallel(c, tasks / j.pieces, 1, join, &j));
    return ortc_parallel(c, tasks, grain, normalise, &j);
}

const ortc_kernel ortc_instance_blocks = {.size = ORTC_SIZED(ortc_kernel),
                                          .flags = ORTC_KERNEL_LAYOUTS,
                                          .name = "instance_normalization.blocks",
                                          .prepare = prepare,
                                          .plan = plan,
                                          .run = run,
                                          .choose = choose};
