/* kernels/norm/cpu_plain.c: LpNormalization, LRN and MeanVarianceNormalization on the cpu provider, in f32,
 * on the bodies of reductions and of layer normalisation. Squares of what is beyond 2^63 do not fit; ref, in
 * f64, has room for them.
 */
#include <math.h>
#include <stdlib.h>

#include "kernels/common/shape.h"
#include "kernels/common/vector/convert.h"
#include "kernels/norm/rows.h"
#include "kernels/norm/lrn.h"
#include "kernels/reduce/rows.h"

ORTC_VEC_TABLE(ortc_layer_rows)
ORTC_VEC_TABLE(ortc_lrn)
ORTC_VEC_TABLE(ortc_reduce_rows)

enum { TILE = 512, PIECE = 4096 };

typedef struct normalize_state {
    int64_t axis, p, size;
    float alpha, beta, bias;
    size_t n_axes;
    int64_t axes[ORTC_RANK_LIMIT]; /* of MeanVarianceNormalization */
} normalize_state;

typedef struct normalize_job {
    const normalize_state *s;
    const ortc_reduce_rows *fold;
    const ortc_layer_rows *layer;
    const ortc_lrn *lrn;
    const ortc_convert *convert;
    const char *x;
    char *y;
    int type;                     /* ORTC_FLOAT_* */
    int64_t length, inner, tiles; /* along the axis, behind it, tiles of that */
    int64_t each, width;          /* MeanVarianceNormalization: elements of a group, of its last dim */
    ortc_walk groups, within;     /* within: all but the last dim */
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
    s->alpha = ortc_node_float(n, "alpha", 1e-4F);
    s->beta = ortc_node_float(n, "beta", 0.75F);
    s->bias = ortc_node_float(n, "bias", 1);
    s->n_axes = axes ? count : 3;
    for (size_t i = 0; i < s->n_axes && i < ORTC_RANK_LIMIT; i++) s->axes[i] = axes ? axes[i] : standard[i];
    *out = s;
    return ORTC_OK;
}

static ortc_status normalize_plan(const void *state, ortc_plan *p, void **pstate)
{
    const ortc_view *x = &p->in[0];
    const double count = (double)ortc_view_count(x);
    (void)state, (void)pstate;
    ortc_plan_workspace(p, 0, 2 * PIECE * sizeof(float));
    ortc_plan_cost(p, 4 * count, 2 * count * ortc_dtype_bits(x->dtype) / 8);
    return ORTC_OK;
}

static normalize_job job_of(const normalize_state *s, const ortc_call *c)
{
    return (normalize_job){.s = s,
                           .fold = ortc_reduce_rows_select(),
                           .layer = ortc_layer_rows_select(),
                           .lrn = ortc_lrn_select(),
                           .convert = ortc_convert_get(),
                           .x = c->in[0].data,
                           .y = c->out[0].data,
                           .type = ortc_float_index(c->in[0].dtype),
                           .inner = 1};
}

static bool along(normalize_job *j, const ortc_call *c, int64_t axis)
{
    const ortc_view *x = &c->in[0];
    int32_t at;
    if (ortc_view_count(x) == 0 || !ortc_axis_of(axis, x->rank, &at)) return false;
    j->length = x->dims[at];
    for (int32_t d = at + 1; d < x->rank; d++) j->inner *= x->dims[d];
    j->tiles = (j->inner + TILE - 1) / TILE;
    return true;
}

/* n <= PIECE elements as f32: where they lie, or in the first half of the scratch; and where results go
 * before `put`: there, or in the second half. */
static const float *get(const normalize_job *j, int64_t at, int64_t n, float *scratch)
{
    if (j->type == ORTC_FLOAT_F32) return (const float *)(const void *)j->x + at;
    j->convert->widen[j->type]((size_t)n, j->x + 2 * at, scratch);
    return scratch;
}
static float *place(const normalize_job *j, int64_t at, float *scratch)
{
    return j->type == ORTC_FLOAT_F32 ? (float *)(void *)j->y + at : scratch + PIECE;
}
static void put(const normalize_job *j, int64_t at, int64_t n, const float *y)
{
    if (j->type != ORTC_FLOAT_F32) j->convert->narrow[j->type]((size_t)n, y, j->y + 2 * at);
}

/* ---- LpNormalization: a row of zeros stays zeros ------------------------------------------------------- */

static float inverse_norm(const normalize_state *s, double sum)
{
    const double norm = s->p == 1 ? sum : sqrt(sum);
    return norm == 0 ? 0 : (float)(1 / norm);
}

static void lp_rows(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const normalize_job *j = arg;
    const int how = j->s->p == 1 ? ORTC_FOLD_ABS : ORTC_FOLD_SQUARE;
    for (int64_t row = begin; row < end; row++) {
        const int64_t first = row * j->length;
        double sum = 0;
        for (int64_t at = 0; at < j->length; at += PIECE) {
            const int64_t n = j->length - at < PIECE ? j->length - at : PIECE;
            sum += (double)j->fold->row[how]((size_t)n, get(j, first + at, n, scratch), 0);
        }
        const float f = inverse_norm(j->s, sum);
        for (int64_t at = 0; at < j->length; at += PIECE) {
            const int64_t n = j->length - at < PIECE ? j->length - at : PIECE;
            float *y = place(j, first + at, scratch);
            j->layer->apply_one((size_t)n, get(j, first + at, n, scratch), 0, f, 1, 0, y);
            put(j, first + at, n, y);
        }
    }
}

static void lp_lines(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const normalize_job *j = arg;
    const int how = j->s->p == 1 ? ORTC_FOLD_ABS : ORTC_FOLD_SQUARE;
    float f[TILE];
    for (int64_t task = begin; task < end; task++) {
        const int64_t at = task % j->tiles * TILE, n = j->inner - at < TILE ? j->inner - at : TILE;
        const int64_t first = task / j->tiles * j->length * j->inner + at;
        memset(f, 0, sizeof f);
        for (int64_t k = 0; k < j->length; k++)
            j->fold->line[how]((size_t)n, 1, 0, get(j, first + k * j->inner, n, scratch), NULL, f);
        for (int64_t i = 0; i < n; i++) f[i] = inverse_norm(j->s, (double)f[i]);
        for (int64_t k = 0; k < j->length; k++) {
            float *y = place(j, first + k * j->inner, scratch);
            j->layer->apply[ORTC_FLOAT_F32]((size_t)n, get(j, first + k * j->inner, n, scratch), 0, 1, f,
                                            NULL, y);
            put(j, first + k * j->inner, n, y);
        }
    }
}

static ortc_status lp_run(const void *state, const void *pstate, ortc_call *c)
{
    normalize_job j = job_of(state, c);
    (void)pstate;
    if (!along(&j, c, j.s->axis)) return ORTC_OK;
    const int64_t outer = ortc_view_count(&c->in[0]) / j.length / j.inner;
    if (j.inner == 1) return ortc_parallel(c, outer, ortc_rows_grain(j.length), lp_rows, &j);
    return ortc_parallel(c, outer * j.tiles, ortc_rows_grain(j.length * (j.inner < TILE ? j.inner : TILE)),
                         lp_lines, &j);
}

/* ---- LRN: by the squares of the channels around -------------------------------------------------------- */

static void lrn_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const normalize_job *j = arg;
    const normalize_state *s = j->s;
    const int64_t before = (s->size - 1) / 2, after = s->size - 1 - before;
    float squares[TILE];
    for (int64_t task = begin; task < end; task++) {
        const int64_t at = task % j->tiles * TILE, n = j->inner - at < TILE ? j->inner - at : TILE;
        const int64_t line = task / j->tiles, channel = line % j->length, first = line * j->inner + at;
        const int64_t from = channel > before ? -before : -channel;
        const int64_t to = after < j->length - 1 - channel ? after : j->length - 1 - channel;
        memset(squares, 0, sizeof squares);
        for (int64_t k = from; k <= to; k++)
            j->fold->line[ORTC_FOLD_SQUARE]((size_t)n, 1, 0, get(j, first + k * j->inner, n, scratch), NULL,
                                            squares);
        float *y = place(j, first, scratch);
        j->lrn->line((size_t)n, get(j, first, n, scratch), squares,
                     (float)((double)s->alpha / (double)s->size), s->bias, s->beta, y);
        put(j, first, n, y);
    }
}

static ortc_status lrn_run(const void *state, const void *pstate, ortc_call *c)
{
    normalize_job j = job_of(state, c);
    (void)pstate;
    if (!along(&j, c, 1)) return ORTC_OK;
    const int64_t window = j.s->size < j.length ? j.s->size : j.length,
                  width = j.inner < TILE ? j.inner : TILE;
    return ortc_parallel(c, ortc_view_count(&c->in[0]) / j.inner * j.tiles,
                         ortc_rows_grain(width * (window + 4)), lrn_chunk, &j);
}

/* ---- MeanVarianceNormalization: over groups that differ in the axes that are not listed ---------------- */

/* Every piece of a group: its place and length. */
#define EACH_PIECE(j, w, group, at, n) \
    for (int64_t row = 0; row < (j)->each / (j)->width; row++, ortc_walk_next(&w)) \
        for (int64_t piece = 0, at, n; \
             piece < (j)->width && (at = (group) + w.at[0] + piece, \
                                   n = (j)->width - piece < PIECE ? (j)->width - piece : PIECE, 1); \
             piece += PIECE)

static void mvn_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const normalize_job *j = arg;
    ortc_walk groups = j->groups, w = j->within; /* a full turn brings it back to its start */
    ortc_walk_seek(&groups, begin);
    for (int64_t g = begin; g < end; g++, ortc_walk_next(&groups)) {
        double sum = 0, squares = 0;
        EACH_PIECE(j, w, groups.at[0], at, n)
        sum += j->layer->distances((size_t)n, get(j, at, n, scratch), 0);
        /* Again from there, for nothing but 1e-9 keeps an error of the mean small where all elements are
         * equal. */
        const float near = (float)(sum / (double)j->each);
        sum = 0;
        EACH_PIECE(j, w, groups.at[0], at, n)
        sum += j->layer->distances((size_t)n, get(j, at, n, scratch), near);
        const float mean = (float)((double)near + sum / (double)j->each);
        EACH_PIECE(j, w, groups.at[0], at, n)
        squares += j->layer->squares((size_t)n, get(j, at, n, scratch), mean);
        const double deviation = sqrt(squares / (double)j->each) +
                                 1e-9; /* as the standard's function body has it */
        EACH_PIECE(j, w, groups.at[0], at, n)
        {
            float *y = place(j, at, scratch);
            j->layer->apply_one((size_t)n, get(j, at, n, scratch), mean, (float)(1 / deviation), 1, 0, y);
            put(j, at, n, y);
        }
    }
}

static ortc_status mvn_run(const void *state, const void *pstate, ortc_call *c)
{
    normalize_job j = job_of(state, c);
    const ortc_view *x = &c->in[0];
    int64_t strides[ORTC_RANK_LIMIT], dims[2][ORTC_RANK_LIMIT], steps[2][ORTC_RANK_LIMIT];
    bool listed[ORTC_RANK_LIMIT] = {false};
    int32_t rank[2] = {0, 0}; /* groups, within */
    const int64_t count = ortc_view_count(x);
    (void)pstate;
    if (count == 0) return ORTC_OK;
    for (size_t i = 0; i < j.s->n_axes && i < ORTC_RANK_LIMIT; i++) {
        int32_t axis;
        if (ortc_axis_of(j.s->axes[i], x->rank, &axis)) listed[axis] = true;
    }
    ortc_dense_strides(x->rank, x->dims, strides);
    j.each = j.width = 1;
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
    if (j.within.rank > 0 && j.within.step[0][j.within.rank - 1] == 1)
        j.width = j.within.dims[--j.within.rank];
    return ortc_parallel(c, count / j.each, ortc_rows_grain(j.each), mvn_chunk, &j);
}

static ortc_status mvn_supports(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    const int32_t rank = ortc_node_in(n, 0).rank;
    size_t count;
    const int64_t *axes = ortc_node_ints(n, "axes", &count);
    bool last = !axes && rank == 4;
    (void)device;
    for (size_t i = 0; axes && i < count; i++) last |= axes[i] == -1 || (rank > 0 && axes[i] == rank - 1);
    return last ? ORTC_OK : ortc_no(why, "the last axis is not normalised over, or may not be");
}

#define KERNEL(symbol, title, ...) \
    static const ortc_kernel symbol = {.size = ORTC_SIZED(ortc_kernel), \
                                       .name = title, \
                                       .prepare = normalize_prepare, \
                                       .plan = normalize_plan, \
                                       __VA_ARGS__}
KERNEL(lp, "lp_normalization.cpu", .run = lp_run);
KERNEL(lrn, "lrn.cpu", .run = lrn_run);
KERNEL(mvn, "mean_variance.cpu", .supports = mvn_supports, .run = mvn_run);

#define F ORTC_TYPES_BY_F32
ORTC_KERNELS(cpu, norm_plain, ORTC_KERNEL("LpNormalization", 22, ORTC_NEWEST, (F), &lp),
             ORTC_KERNEL("LRN", 13, ORTC_NEWEST, (F), &lrn),
             ORTC_KERNEL("MeanVarianceNormalization", 13, ORTC_NEWEST, (F), &mvn));
