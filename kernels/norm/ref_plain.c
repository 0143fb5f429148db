/* kernels/norm/ref_plain.c: normalisations without parameters on ref, sums in double. */
#include <math.h>
#include <stdlib.h>

#include "kernels/common/shape.h"

typedef struct normalize_state {
    int64_t axis, p, size;
    double alpha, beta, bias;
    size_t n_axes;
    int64_t axes[ORTC_RANK_LIMIT]; /* of MeanVarianceNormalization */
} normalize_state;

typedef struct normalize_job {
    const normalize_state *s;
    const ortc_view *x;
    ortc_view *y;
    int64_t length, inner; /* along the axis, behind it */
    int64_t each;          /* MeanVarianceNormalization: elements of a group */
    ortc_walk groups, within;
} normalize_job;

static ortc_status normalize_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    static const int64_t standard[] = {0, 2, 3};
    size_t count;
    const int64_t *axes = ortc_node_ints(n, "axes", &count);
    normalize_state *s = calloc(1, sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    s->axis = ortc_node_int(n, "axis", -1);
    s->p = ortc_node_int(n, "p", 2);
    s->size = ortc_node_int(n, "size", 1);
    s->alpha = (double)ortc_node_float(n, "alpha", 1e-4F);
    s->beta = (double)ortc_node_float(n, "beta", 0.75F);
    s->bias = (double)ortc_node_float(n, "bias", 1);
    s->n_axes = axes ? count : 3;
    for (size_t i = 0; i < s->n_axes && i < ORTC_RANK_LIMIT; i++) s->axes[i] = axes ? axes[i] : standard[i];
    *out = s;
    return ORTC_OK;
}

static bool along(normalize_job *j, ortc_call *c, const normalize_state *s, int64_t axis)
{
    int32_t at;
    *j = (normalize_job){.s = s, .x = &c->in[0], .y = &c->out[0], .inner = 1};
    if (ortc_view_count(j->x) == 0 || !ortc_axis_of(axis, j->x->rank, &at)) return false;
    j->length = j->x->dims[at];
    for (int32_t d = at + 1; d < j->x->rank; d++) j->inner *= j->x->dims[d];
    return true;
}

/* ---- LpNormalization: a row of zeros stays zeros ------------------------------------------------------- */

static void lp_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const normalize_job *j = arg;
    const ortc_dtype t = j->y->dtype;
    for (int64_t row = begin; row < end; row++) {
        const int64_t first = row / j->inner * j->length * j->inner + row % j->inner;
        double sum = 0;
        for (int64_t i = 0; i < j->length; i++) {
            const double v = ortc_load_f64(j->x->data, t, first + i * j->inner);
            sum += j->s->p == 1 ? fabs(v) : v * v;
        }
        const double norm = j->s->p == 1 ? sum : sqrt(sum);
        for (int64_t i = 0; i < j->length; i++)
            ortc_store_f64(j->y->data, t, first + i * j->inner,
                           norm == 0 ? 0 : ortc_load_f64(j->x->data, t, first + i * j->inner) / norm);
    }
}

static ortc_status lp_run(const void *state, const void *pstate, ortc_call *c)
{
    const normalize_state *s = state;
    normalize_job j;
    if (!along(&j, c, s, s->axis)) return ORTC_OK;
    return ortc_parallel(c, ortc_view_count(j.x) / j.length, ortc_grain(6.0 * (double)j.length), lp_chunk,
                         &j);
}

/* ---- LRN: by the squares of the channels around -------------------------------------------------------- */

static void lrn_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const normalize_job *j = arg;
    const normalize_state *s = j->s;
    const ortc_dtype t = j->y->dtype;
    const int64_t before = (s->size - 1) / 2, after = s->size - 1 - before;
    for (int64_t i = begin; i < end; i++) {
        const int64_t channel = i / j->inner % j->length, first = i - channel * j->inner;
        const int64_t from = channel > before ? channel - before : 0;
        const int64_t to = after < j->length - 1 - channel ? channel + after : j->length - 1;
        double sum = 0;
        for (int64_t k = from; k <= to; k++) {
            const double v = ortc_load_f64(j->x->data, t, first + k * j->inner);
            sum += v * v;
        }
        ortc_store_f64(j->y->data, t, i,
                       ortc_load_f64(j->x->data, t, i) /
                           pow(s->bias + s->alpha / (double)s->size * sum, s->beta));
    }
}

static ortc_status lrn_run(const void *state, const void *pstate, ortc_call *c)
{
    const normalize_state *s = state;
    normalize_job j;
    if (!along(&j, c, s, 1)) return ORTC_OK;
    const int64_t window = s->size < j.length ? s->size : j.length;
    return ortc_parallel(c, ortc_view_count(j.x), ortc_grain(40.0 + 4.0 * (double)window), lrn_chunk, &j);
}

/* ---- MeanVarianceNormalization: over groups that differ in the axes that are not listed ---------------- */

static void mvn_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const normalize_job *j = arg;
    const ortc_dtype t = j->y->dtype;
    ortc_walk groups = j->groups, w = j->within; /* a full turn brings it back to its start */
    ortc_walk_seek(&groups, begin);
    for (int64_t g = begin; g < end; g++, ortc_walk_next(&groups)) {
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < j->each; i++, ortc_walk_next(&w))
            mean += ortc_load_f64(j->x->data, t, groups.at[0] + w.at[0]);
        mean /= (double)j->each;
        for (int64_t i = 0; i < j->each; i++, ortc_walk_next(&w)) {
            const double v = ortc_load_f64(j->x->data, t, groups.at[0] + w.at[0]) - mean;
            variance += v * v;
        }
        /* as the standard's function body has it */
        const double deviation = sqrt(variance / (double)j->each) + 1e-9;
        for (int64_t i = 0; i < j->each; i++, ortc_walk_next(&w))
            ortc_store_f64(j->y->data, t, groups.at[0] + w.at[0],
                           (ortc_load_f64(j->x->data, t, groups.at[0] + w.at[0]) - mean) / deviation);
    }
}

static ortc_status mvn_run(const void *state, const void *pstate, ortc_call *c)
{
    const normalize_state *s = state;
    const ortc_view *x = &c->in[0];
    normalize_job j = {.s = s, .x = x, .y = &c->out[0], .each = 1};
    int64_t strides[ORTC_RANK_LIMIT], dims[2][ORTC_RANK_LIMIT], steps[2][ORTC_RANK_LIMIT];
    bool listed[ORTC_RANK_LIMIT] = {false};
    int32_t rank[2] = {0, 0}; /* groups, within */
    const int64_t count = ortc_view_count(x);
    if (count == 0) return ORTC_OK;
    for (size_t i = 0; i < s->n_axes && i < ORTC_RANK_LIMIT; i++) {
        int32_t axis;
        if (ortc_axis_of(s->axes[i], x->rank, &axis)) listed[axis] = true;
    }
    ortc_dense_strides(x->rank, x->dims, strides);
    for (int32_t d = 0; d < x->rank; d++) {
        dims[listed[d]][rank[listed[d]]] = x->dims[d];
        steps[listed[d]][rank[listed[d]]++] = strides[d];
        j.each *= listed[d] ? x->dims[d] : 1;
    }
    ortc_walk *const walks[2] = {&j.groups, &j.within};
    for (int k = 0; k < 2; k++) {
        ortc_walk_init(walks[k], rank[k], dims[k]);
        ortc_walk_strided(walks[k], steps[k], 0);
        ortc_walk_merge(walks[k]);
    }
    return ortc_parallel(c, count / j.each, ortc_grain(15.0 * (double)(j.each + 1)), mvn_chunk, &j);
}

#define KERNEL(symbol, title, go) \
    static const ortc_kernel symbol = {.size = ORTC_SIZED(ortc_kernel), \
                                       .name = title, \
                                       .prepare = normalize_prepare, \
                                       .run = go}
KERNEL(lp_ref, "lp_normalization.ref", lp_run);
KERNEL(lrn_ref, "lrn.ref", lrn_run);
KERNEL(mvn_ref, "mean_variance.ref", mvn_run);

ORTC_KERNELS(ref, norm_plain, ORTC_KERNEL("LpNormalization", 22, ORTC_NEWEST, (ORTC_TYPES_FLOAT), &lp_ref),
             ORTC_KERNEL("LRN", 13, ORTC_NEWEST, (ORTC_TYPES_FLOAT), &lrn_ref),
             ORTC_KERNEL("MeanVarianceNormalization", 13, ORTC_NEWEST, (ORTC_TYPES_FLOAT), &mvn_ref));
