/* kernels/resize/mix.c: rows of the result of linear and cubic Resize (mix.h): rows of X are resized along
 * the last axis, and added up along the others, from the last to the first.
 *
 * That is ref's order of sums: in double results are its bits. A row that is resized along the last axis is
 * used for several of the result, mostly right after each other: some are kept in scratch, each in the place
 * that its index along the other axes gives it. In f32, rows that become shorter are resized last.
 */
#include "kernels/resize/mix.h"

enum { KEPT = 64, GROUP = 8 /* rows added up together: all of them are kept at a time */ };

typedef struct scratch_map { /* of a worker */
    int64_t *keys;           /* which row of X is in a place; -1 */
    char *kept, *levels, *line;
    size_t row; /* bytes of a resized row */
} scratch_map;

static size_t rounded(size_t bytes) { return (bytes + 63) / 64 * 64; }

void ortc_resize_rows_init(ortc_resize_rows *r, int32_t rank, const ortc_resize_axis *axes, bool wide)
{
    *r = (ortc_resize_rows){.near = 1, .far = 1};
    for (int32_t d = 0; d < rank - 1; d++)
        if (!axes[d].same) r->mixed[r->n_mixed++] = d;
    if (r->n_mixed == 0) return;
    r->shrinks = !wide && axes[rank - 1].out < axes[rank - 1].in;
    const int64_t near = axes[r->mixed[r->n_mixed - 1]].n_taps;
    r->near = near < KEPT ? near : KEPT;
    for (int32_t m = 0; m < r->n_mixed - 1; m++) {
        const int64_t most = KEPT / r->near / r->far, taps = axes[r->mixed[m]].n_taps;
        r->far *= taps < most ? taps : most > 0 ? most : 1;
    }
}

void ortc_resize_rows_any(ortc_resize_rows *r, int32_t rank)
{
    *r = (ortc_resize_rows){.n_mixed = rank, .near = KEPT, .far = 1};
}

size_t ortc_resize_scratch(const ortc_resize_rows *r, int64_t in, int64_t out, bool wide)
{
    const size_t each = wide ? sizeof(double) : sizeof(float),
                 row = rounded((size_t)(in > out ? in : out) * each);
    return rounded((size_t)(r->near * r->far) * sizeof(int64_t)) +
           ((size_t)(r->near * r->far) + (size_t)r->n_mixed + 1) * row + rounded((size_t)in * each);
}

static scratch_map map_of(const ortc_resize_job *j, void *scratch)
{
    const ortc_resize_rows *r = &j->rows;
    const size_t places = (size_t)(r->near * r->far);
    scratch_map m = {.keys = scratch};
    const int64_t in = j->in[j->rank - 1], out = j->out[j->rank - 1];
    m.row = rounded((size_t)(in > out ? in : out) *
                    (ortc_resize_is_wide(j->dtype) ? sizeof(double) : sizeof(float)));
    m.kept = (char *)scratch + rounded(places * sizeof(int64_t));
    m.levels = m.kept + places * m.row;
    m.line = m.levels + ((size_t)r->n_mixed + 1) * m.row;
    return m;
}

void ortc_resize_mix_begin(const ortc_resize_job *j, void *scratch)
{
    const scratch_map m = map_of(j, scratch);
    for (int64_t i = 0; i < j->rows.near * j->rows.far; i++) m.keys[i] = -1;
}

/* ---- Types --------------------------------------------------------------------------------------------- */

static int wide_of(ortc_dtype t)
{
    switch (t) {
#define OF(name, type) \
    case ORTC_##name: return ORTC_RESIZE_##name;
        ORTC_RESIZE_WIDE(OF)
    default: return -1;
    }
}

/* Elements as sums are made of them. */
static void load(const ortc_resize_job *j, int64_t n, const void *x, void *to)
{
    const int wide = wide_of(j->dtype);
    if (!ortc_resize_is_wide(j->dtype))
        j->convert->widen[ortc_float_index(j->dtype)]((size_t)n, x, to);
    else if (wide >= 0)
        j->lines->widen[wide]((size_t)n, x, to);
    else
        for (int64_t i = 0; i < n; i++) ((double *)to)[i] = ortc_load_f64(x, j->dtype, i);
}

static void store(const ortc_resize_job *j, int64_t n, const void *sums, void *y)
{
    const int wide = wide_of(j->dtype);
    if (!ortc_resize_is_wide(j->dtype))
        j->convert->narrow[ortc_float_index(j->dtype)]((size_t)n, sums, y);
    else if (wide >= 0)
        j->lines->narrow[wide]((size_t)n, sums, y);
    else
        for (int64_t i = 0; i < n; i++) ortc_resize_store(y, j->dtype, i, ((const double *)sums)[i]);
}

/* ---- Rows ---------------------------------------------------------------------------------------------- */

/* A row of sums, resized along the last axis. */
static void resize_sums(const ortc_resize_job *j, const void *x, void *to)
{
    const ortc_resize_tables *t = j->t;
    const size_t in = (size_t)j->in[j->rank - 1], out = (size_t)j->out[j->rank - 1];
    if (ortc_resize_is_wide(j->dtype))
        j->lines->across_wide(out, (size_t)t->taps, x, t->index, t->wide, to);
    else
        j->lines->across(out, (size_t)t->taps, x, in, t->index, t->weight, to);
}

/* Row `base` of X, resized unless rows are added up before. */
static void resize_row(const ortc_resize_job *j, const scratch_map *s, int64_t base, void *to)
{
    const int64_t in = j->in[j->rank - 1];
    const void *x = j->x + (size_t)(base * in) * j->pixel;
    if (j->t->axes[j->rank - 1].same || j->rows.shrinks) {
        load(j, in, x, to);
        return;
    }
    if (j->dtype != ORTC_F32) {
        load(j, in, x, s->line);
        x = s->line;
    }
    resize_sums(j, x, to);
}

static const void *kept_row(const ortc_resize_job *j, const scratch_map *s, int64_t base, int64_t place)
{
    char *to = s->kept + (size_t)place * s->row;
    if (j->dtype == ORTC_F32 && (j->t->axes[j->rank - 1].same || j->rows.shrinks))
        return j->x + (size_t)(base * j->in[j->rank - 1]) * j->pixel;
    if (s->keys[place] != base) resize_row(j, s, base, to);
    s->keys[place] = base;
    return to;
}

/* From an index over the axes before `from` to one over those before `to`, which stay in between. */
static int64_t pass(const ortc_resize_job *j, const int64_t *at, int32_t from, int32_t to, int64_t base)
{
    for (int32_t d = from; d < to; d++) base = base * j->in[d] + at[d];
    return base;
}

/* The sum over the taps of mixed axes from number m on; base: index over the axes before. */
static void add_up(const ortc_resize_job *j, const scratch_map *s, const int64_t *at, int32_t m, int64_t base,
                   int64_t place, void *to)
{
    const ortc_resize_rows *r = &j->rows;
    const bool deepest = m + 1 == r->n_mixed;
    const int32_t d = r->mixed[m], next = deepest ? j->rank - 1 : r->mixed[m + 1];
    const ortc_resize_axis *a = &j->t->axes[d];
    const size_t width = (size_t)(r->shrinks ? j->in : j->out)[j->rank - 1];
    const void *rows[GROUP];
    double weights[GROUP];
    size_t n = 0;
    int64_t begin = 0; /* of the group */
    bool first = true;
    for (int64_t k = 0; k < a->n_taps; k++) {
        const double weight = a->weights[at[d] * a->n_taps + k];
        if (weight != 0) {
            const int64_t i = ortc_resize_clamped(a->first[at[d]] + k, a->in);
            const int64_t under = pass(j, at, d + 1, next, base * a->in + i);
            if (deepest) {
                rows[n] = kept_row(j, s, under, place % r->far * r->near + i % r->near);
            } else {
                rows[n] = s->levels + (size_t)(m + 1) * s->row;
                add_up(j, s, at, m + 1, under, place * a->n_taps + i % a->n_taps, (void *)(uintptr_t)rows[n]);
            }
            weights[n++] = weight;
        }
        if (deepest && n < GROUP && k + 1 - begin < r->near && k + 1 < a->n_taps) continue;
        begin = k + 1;
        if (n == 0) continue;
        (ortc_resize_is_wide(j->dtype) ? j->lines->down_wide : j->lines->down)(width, n, rows, weights, first,
                                                                               to);
        first = false;
        n = 0;
    }
    if (first) memset(to, 0, width * (ortc_resize_is_wide(j->dtype) ? sizeof(double) : sizeof(float)));
}

void ortc_resize_mix_row(const ortc_resize_job *j, const int64_t *at, char *y, void *scratch)
{
    const ortc_resize_rows *r = &j->rows;
    const scratch_map s = map_of(j, scratch);
    void *sums = j->dtype == ORTC_F32 ? y : s.levels;
    const int64_t base = pass(j, at, 0, r->n_mixed ? r->mixed[0] : j->rank - 1, 0);
    if (!r->n_mixed) {
        resize_row(j, &s, base, sums);
    } else if (!r->shrinks) {
        add_up(j, &s, at, 0, base, 0, sums);
    } else {
        char *whole = s.levels + (size_t)r->n_mixed * s.row;
        add_up(j, &s, at, 0, base, 0, whole);
        resize_sums(j, whole, sums);
    }
    if (sums != y) store(j, j->out[j->rank - 1], sums, y);
}
