/* kernels/norm/cpu_batch.c: BatchNormalization with given statistics on the cpu provider, in f32. X is
 * [samples, channels, inner]; a task is some rows: of one channel's inner elements, or, where there are none,
 * of all channels of a sample. */
#include <math.h>
#include <stdlib.h>

#include "kernels/common/shape.h"
#include "kernels/common/vector/convert.h"
#include "kernels/norm/batch.h"

ORTC_VEC_TABLE(ortc_batch)

enum { PIECE = 4096 };

typedef struct batch_job {
    const ortc_batch *body;
    const ortc_convert *convert;
    const char *x;
    char *y;
    int type; /* ORTC_FLOAT_* */
    int64_t channels, inner;
    float *mean, *factor, *bias; /* per channel */
} batch_job;

static void rows_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const batch_job *j = arg;
    const int64_t width = j->inner > 1 ? j->inner : j->channels;
    for (int64_t row = begin; row < end; row++)
        for (int64_t at = 0; at < width; at += PIECE) {
            const size_t n = (size_t)(width - at < PIECE ? width - at : PIECE);
            const int64_t first = row * width + at, c = j->inner > 1 ? row % j->channels : at;
            const float *x = (const float *)(const void *)j->x + first;
            float *y = (float *)(void *)j->y + first;
            if (j->type != ORTC_FLOAT_F32) {
                x = y = scratch;
                j->convert->widen[j->type](n, j->x + 2 * first, scratch);
            }
            if (j->inner > 1)
                j->body->channel(n, x, j->mean[c], j->factor[c], j->bias[c], y);
            else
                j->body->line(n, x, j->mean + c, j->factor + c, j->bias + c, y);
            if (j->type != ORTC_FLOAT_F32) j->convert->narrow[j->type](n, y, j->y + 2 * first);
        }
}

static ortc_status batch_supports(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    (void)device;
    if (ortc_node_int(n, "training_mode", 0))
        return ortc_no(why, "statistics of the batch are not taken here");
    for (uint32_t i = 1; i < ortc_node_n_out(n); i++)
        if (ortc_node_out(n, i).type) return ortc_no(why, "the statistics are not written here");
    return ORTC_OK;
}

static ortc_status batch_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    double *epsilon = malloc(sizeof *epsilon);
    if (!epsilon) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *epsilon = ortc_node_float(n, "epsilon", 1e-5F);
    *out = epsilon;
    return ORTC_OK;
}

static int64_t channels_of(const ortc_view *x) { return x->rank > 1 ? x->dims[1] : 1; }

static ortc_status batch_plan(const void *state, ortc_plan *p, void **pstate)
{
    const ortc_view *x = &p->in[0];
    const double count = (double)ortc_view_count(x);
    (void)state, (void)pstate;
    if (count > 0) /* then there are no more channels than elements */
        ortc_plan_workspace(p, (size_t)channels_of(x) * 3 * sizeof(float),
                            x->dtype == ORTC_F32 ? 0 : PIECE * sizeof(float));
    ortc_plan_in_place(p, 0, 0);
    ortc_plan_cost(p, 3 * count, 2 * count * ortc_dtype_bits(x->dtype) / 8);
    return ORTC_OK;
}

static ortc_status batch_run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_view *in = c->in, *x = &c->in[0];
    const int64_t count = ortc_view_count(x);
    batch_job j = {ortc_batch_select(),
                   ortc_convert_get(),
                   x->data,
                   c->out[0].data,
                   ortc_float_index(x->dtype),
                   channels_of(x),
                   1,
                   c->workspace,
                   NULL,
                   NULL};
    (void)pstate;
    if (count == 0) return ORTC_OK;
    for (int32_t d = 2; d < x->rank; d++) j.inner *= x->dims[d];
    j.factor = j.mean + j.channels;
    j.bias = j.factor + j.channels;
    for (int64_t i = 0; i < j.channels; i++) {
        const double var = ortc_load_f64(in[4].data, in[4].dtype, i) + *(const double *)state;
        j.mean[i] = (float)ortc_load_f64(in[3].data, in[3].dtype, i);
        j.factor[i] = (float)(ortc_load_f64(in[1].data, in[1].dtype, i) / sqrt(var));
        j.bias[i] = (float)ortc_load_f64(in[2].data, in[2].dtype, i);
    }
    const int64_t width = j.inner > 1 ? j.inner : j.channels;
    return ortc_parallel(c, count / width, ortc_rows_grain(width), rows_chunk, &j);
}

static const ortc_kernel batch = {.size = ORTC_SIZED(ortc_kernel),
                                  .name = "batch_normalization.cpu",
                                  .supports = batch_supports,
                                  .prepare = batch_prepare,
                                  .plan = batch_plan,
                                  .run = batch_run};

#define F ORTC_TYPES_BY_F32
ORTC_KERNELS(cpu, norm_batch, ORTC_KERNEL("BatchNormalization", 15, ORTC_NEWEST, (F, F, F), &batch));
