/* kernels/norm/ref_layer.c: normalisations of a sample on ref: y = (x - mean) / sqrt(var + epsilon) * scale +
 * bias.
 *
 * Every operator of the family normalises rows that lie dense in X: [rows, length]. They differ in where a
 * row ends and in which scale belongs to an element. All is computed in double, whatever stash_type asks for
 * at least, and rounded once. RMSNormalization takes no mean off: its "variance" is the mean of squares.
 */
#include <math.h>
#include <stdlib.h>

#include "kernels/common/shape.h"

typedef struct layer_state {
    double epsilon;
    /* axis: of LayerNormalization and RMSNormalization; groups: 0 with it, -1 as many as channels */
    int64_t axis, groups;
    bool centred;
} layer_state;

typedef struct layer_job {
    const layer_state *state;
    const ortc_call *call;
    int64_t length;
    ortc_walk walk; /* over X: the elements of scale and of bias */
    bool biased;
} layer_job;

ORTC_INLINE void layer_loop(ortc_dtype t, const layer_job *j, int64_t begin, int64_t end)
{
    const ortc_view *in = j->call->in, *out = j->call->out;
    const uint32_t n_out = j->call->n_out;
    ortc_walk w = j->walk;
    if (j->length > 0) ortc_walk_seek(&w, begin * j->length);
    for (int64_t row = begin; row < end; row++) {
        const int64_t first = row * j->length;
        double mean = 0, squares = 0;
        for (int64_t i = first; j->state->centred && i < first + j->length; i++)
            mean += ortc_load_f64(in[0].data, t, i);
        if (j->state->centred) mean /= (double)j->length;
        for (int64_t i = first; i < first + j->length; i++) {
            const double d = ortc_load_f64(in[0].data, t, i) - mean;
            squares += d * d;
        }
        const double deviation = sqrt(squares / (double)j->length + j->state->epsilon);
        if (n_out > 1 && out[1].dtype) ortc_store_f64(out[1].data, out[1].dtype, row, mean);
        if (n_out > 2 && out[2].dtype) ortc_store_f64(out[2].data, out[2].dtype, row, 1 / deviation);
        for (int64_t i = first; out[0].dtype && i < first + j->length; i++, ortc_walk_next(&w)) {
            double v = (ortc_load_f64(in[0].data, t, i) - mean) / deviation;
            v *= ortc_load_f64(in[1].data, in[1].dtype, w.at[0]);
            if (j->biased) v += ortc_load_f64(in[2].data, in[2].dtype, w.at[1]);
            ortc_store_f64(out[0].data, out[0].dtype, i, v);
        }
    }
}
static void layer_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const layer_job *j = arg;
    ORTC_SPECIALISE(j->call->in[0].dtype, layer_loop, j, begin, end);
}

static ortc_status layer_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const char *op = ortc_node_op(n);
    layer_state *s = malloc(sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *s = (layer_state){ortc_node_float(n, "epsilon", 1e-5F), ortc_node_int(n, "axis", -1), 0,
                       strcmp(op, "RMSNormalization") != 0};
    if (!strcmp(op, "InstanceNormalization"))
        s->groups = -1;
    else if (!strcmp(op, "GroupNormalization"))
        s->groups = ortc_node_int(n, "num_groups", 1);
    *out = s;
    return ORTC_OK;
}

static ortc_status layer_plan(const void *state, ortc_plan *p, void **pstate)
{
    ortc_plan_in_place(p, 0, 0);
    return ORTC_OK;
}

static ortc_status layer_run(const void *state, const void *pstate, ortc_call *c)
{
    const layer_state *s = state;
    const ortc_view *x = &c->in[0];
    layer_job j = {.state = s, .call = c, .length = 1, .biased = c->n_in > 2 && c->in[2].dtype};
    int64_t rows = 1, channel[ORTC_RANK_LIMIT] = {0, 1};
    int32_t axis = 2;
    if (s->groups == 0 && !ortc_axis_of(s->axis, x->rank, &axis))
        return ortc_call_fail(c, ORTC_INVALID_ARGUMENT, "the axis is outside of the input's rank");
    for (int32_t d = 0; d < x->rank; d++) *(d < axis ? &rows : &j.length) *= x->dims[d];
    if (s->groups > 0) {
        rows = x->dims[0] * s->groups;
        j.length *= x->dims[1] / s->groups;
    }
    ortc_walk_init(&j.walk, x->rank, x->dims);
    for (uint32_t i = 1; i < 2u + j.biased; i++)
        if (s->groups == 0)
            ortc_walk_view(&j.walk, &c->in[i]);
        else
            ortc_walk_strided(&j.walk, channel, 0);
    ortc_walk_merge(&j.walk);
    const int64_t grain = 20000 / (j.length + 1);
    return rows ? ortc_parallel(c, rows, grain > 0 ? grain : 1, layer_chunk, &j) : ORTC_OK;
}

static const ortc_kernel layer_ref = {.size = ORTC_SIZED(ortc_kernel),
                                      .name = "layer_normalization.ref",
                                      .prepare = layer_prepare,
                                      .plan = layer_plan,
                                      .run = layer_run};

ORTC_KERNELS(ref, norm_layer,
             ORTC_KERNEL("LayerNormalization", 17, ORTC_NEWEST, (ORTC_TYPES_FLOAT, ORTC_TYPES_ANY),
                         &layer_ref),
             ORTC_KERNEL("RMSNormalization", 23, ORTC_NEWEST, (ORTC_TYPES_FLOAT, ORTC_TYPES_FLOAT),
                         &layer_ref),
             ORTC_KERNEL("InstanceNormalization", 22, ORTC_NEWEST, (ORTC_TYPES_FLOAT), &layer_ref),
             ORTC_KERNEL("GroupNormalization", 21, ORTC_NEWEST, (ORTC_TYPES_FLOAT), &layer_ref));
