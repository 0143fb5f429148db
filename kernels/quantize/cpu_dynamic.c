/* kernels/quantize/cpu_dynamic.c: DynamicQuantizeLinear on the cpu: the range of pieces, then of them all,
 * then the pieces quantised; the bits are ref's. */
#include <math.h>

#include "kernels/common/shape.h"
#include "kernels/quantize/cpu.h"

ORTC_VEC_TABLE(ortc_dynamic_body)

#define PIECE 16384 /* elements: from memory some microseconds */

typedef struct job {
    const ortc_dynamic_body *body;
    const float *x;
    uint8_t *y;
    int64_t count;
    float *low, *high; /* of pieces */
    float scale, zero;
} job;

static int64_t length(const job *j, int64_t piece)
{
    return j->count - piece * PIECE < PIECE ? j->count - piece * PIECE : PIECE;
}

static void find(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const job *j = arg;
    (void)scratch;
    for (int64_t i = begin; i < end; i++) {
        j->low[i] = j->high[i] = 0;
        j->body->range((size_t)length(j, i), j->x + i * PIECE, &j->low[i], &j->high[i]);
    }
}

static void quantise(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const job *j = arg;
    (void)scratch;
    for (int64_t i = begin; i < end; i++)
        j->body->quantise((size_t)length(j, i), j->x + i * PIECE, j->scale, j->zero, j->y + i * PIECE);
}

static int64_t pieces_of(int64_t count) { return (count + PIECE - 1) / PIECE; }

static ortc_status plan(const void *state, ortc_plan *p, void **out)
{
    const int64_t count = ortc_view_count(&p->in[0]);
    (void)state, (void)out;
    ortc_plan_workspace(p, (size_t)pieces_of(count) * 2 * sizeof(float), 0);
    ortc_plan_cost(p, 4.0 * (double)count, 9.0 * (double)count);
    return ORTC_OK;
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    job j = {.body = ortc_dynamic_body_select(),
             .x = c->in[0].data,
             .y = c->out[0].data,
             .count = ortc_view_count(&c->in[0]),
             .low = c->workspace};
    const int64_t pieces = pieces_of(j.count);
    float low = 0, high = 0;
    (void)state, (void)pstate;
    j.high = j.low + pieces;
    ORTC_TRY(ortc_parallel(c, pieces, 2, find, &j));
    for (int64_t i = 0; i < pieces; i++) {
        low = j.low[i] < low ? j.low[i] : low;
        high = j.high[i] > high ? j.high[i] : high;
    }
    j.scale = (high - low) / 255.0F;
    if (j.scale == 0) j.scale = 1; /* nothing but zeros */
    const float zero = nearbyintf((0 - low) / j.scale);
    j.zero = zero >= 0 ? zero <= 255 ? zero : 255 : 0;
    if (c->n_out > 1 && c->out[1].dtype) *(float *)c->out[1].data = j.scale;
    if (c->n_out > 2 && c->out[2].dtype) *(uint8_t *)c->out[2].data = (uint8_t)j.zero;
    return j.y ? ortc_parallel(c, pieces, 2, quantise, &j) : ORTC_OK;
}

const ortc_kernel ortc_cpu_dynamic_quantize = {.size = ORTC_SIZED(ortc_kernel),
                                               .name = "dynamic_quantize.vector",
                                               .plan = plan,
                                               .run = run};
