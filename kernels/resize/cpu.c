/* kernels/resize/cpu.c: Resize on the cpu provider: nearest for all elements of whole bytes, linear and cubic
 * for numbers, computed in f32 (f32, f16, bf16) or in double, as on ref. Also of values in blocks of 16
 * channels, whose pixels are vectors; without antialiasing and crops.
 *
 * A task is some rows of the result, along the last axis: picked from rows of X, or made of them (mix.h).
 * Taps of the axes are found by the plan, where it knows scales and regions, else by each run in its
 * workspace.
 */
#include <stdlib.h>

#include "kernels/common/blocks.h"
#include "kernels/resize/mix.h"

ORTC_VEC_TABLE(ortc_resize_lines)

enum { ROWS = 64 }; /* of X in one of the result, of blocks: 4 cubic taps along up to three axes */
#define MAX_TAPS (1 << 24)

typedef struct resize_plan {
    const ortc_resize_lines *lines;
    const ortc_convert *convert;
    ortc_resize_rows rows;
    bool known; /* tables are here */
    ortc_resize_tables tables;
} resize_plan;

static void pick(const ortc_resize_job *j, const char *row, char *y)
{
    const int64_t n = j->out[j->rank - 1], in = j->in[j->rank - 1];
    const int32_t *index = j->t->index;
    switch (j->pixel) {
    case 1:
    case 2:
    case 4: j->lines->pick[j->pixel / 2]((size_t)n, row, (size_t)in, index, y); break;
    case 8:
        for (int64_t i = 0; i < n; i++) memcpy(y + i * 8, row + (int64_t)index[i] * 8, 8);
        break;
    case 32: /* blocks of 16 channels: copies of known length */
        for (int64_t i = 0; i < n; i++) memcpy(y + i * 32, row + (int64_t)index[i] * 32, 32);
        break;
    case 64:
        for (int64_t i = 0; i < n; i++) memcpy(y + i * 64, row + (int64_t)index[i] * 64, 64);
        break;
    default:
        for (int64_t i = 0; i < n; i++)
            memcpy(y + (size_t)i * j->pixel, row + (size_t)index[i] * j->pixel, j->pixel);
    }
}

/* The rows of X that a row of blocks is made of, and their weights. */
static int32_t sources(const ortc_resize_job *j, const int64_t *at, const void **rows, float *weights)
{
    int64_t base[ROWS] = {0};
    double w[ROWS] = {1};
    int32_t n = 1;
    for (int32_t d = 0; d < j->rank - 1; d++) {
        const ortc_resize_axis *a = &j->t->axes[d];
        const int32_t before = n;
        int64_t old[ROWS];
        double old_w[ROWS];
        memcpy(old, base, sizeof old);
        memcpy(old_w, w, sizeof old_w);
        n = 0;
        for (int32_t i = 0; i < before; i++)
            for (int64_t k = 0; k < (a->same ? 1 : a->n_taps); k++) {
                const double weight = a->same ? 1 : a->weights[at[d] * a->n_taps + k];
                if (weight == 0) continue;
                base[n] = old[i] * j->in[d] +
                          (a->same ? at[d] : ortc_resize_clamped(a->first[at[d]] + k, a->in));
                w[n++] = old_w[i] * weight;
            }
    }
    for (int32_t i = 0; i < n; i++) {
        rows[i] = j->x + (size_t)(base[i] * j->in[j->rank - 1]) * j->pixel;
        weights[i] = (float)w[i];
    }
    return n;
}

static bool is_outside(const ortc_resize_axis *a, int64_t i) { return !a->same && a->first[i] == INT64_MIN; }

static void fill(const ortc_resize_job *j, char *y, bool all)
{
    const ortc_resize_axis *a = &j->t->axes[j->rank - 1];
    for (int64_t i = 0; i < a->out; i++)
        if (all || is_outside(a, i)) memcpy(y + (size_t)i * j->pixel, j->fill, j->pixel);
}

/* Rows first .. end of those that lie beside each other; at: their place. */
static void copy_rows(const ortc_resize_job *j, const int64_t *at, int64_t first, int64_t end, char *y)
{
    const int32_t last = j->rank - 1;
    const size_t bytes = (size_t)j->out[last] * j->pixel, from = (size_t)j->in[last] * j->pixel;
    const ortc_resize_axis *a = last > 0 ? &j->t->axes[last - 1] : NULL;
    int64_t base = 0, before = -1; /* the row that the one before is picked from */
    for (int32_t d = 0; d < last - 1; d++) {
        const ortc_resize_axis *o = &j->t->axes[d];
        base = base * j->in[d] + (o->same ? at[d] : ortc_resize_clamped(o->first[at[d]], o->in));
    }
    base *= a ? a->in : 1;
    for (int64_t i = first; i < end; i++, y += bytes) {
        const int64_t row = base + (!a || a->same ? i : ortc_resize_clamped(a->first[i], a->in));
        if (a && is_outside(a, i)) {
            fill(j, y, true);
            before = -1;
            continue;
        }
        if (row == before) {
            memcpy(y, y - bytes, bytes);
            continue;
        }
        before = row;
        if (j->t->doubles && j->pixel <= 4) {
            j->lines->twice[j->pixel / 2]((size_t)j->in[last], j->x + (size_t)row * from, y);
            continue;
        }
        pick(j, j->x + (size_t)row * from, y);
        if (j->t->ends_outside) fill(j, y, false);
    }
}

static void make_row(const ortc_resize_job *j, const int64_t *at, char *y, void *scratch)
{
    const ortc_resize_tables *t = j->t;
    const void *rows[ROWS];
    float weights[ROWS];
    if (j->blocked)
        j->lines->blocks[ortc_float_index(j->dtype)]((size_t)j->out[j->rank - 1],
                                                     (size_t)sources(j, at, rows, weights), rows, weights,
                                                     (size_t)t->taps, t->index, t->weight, y);
    else
        ortc_resize_mix_row(j, at, y, scratch);
    if (t->ends_outside) fill(j, y, false);
}

static void rows_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const ortc_resize_job *j = arg;
    const ortc_resize_tables *t = j->t;
    const int32_t last = j->rank - 1;
    const int64_t beside = last > 0 ? j->out[last - 1] : 1;
    const size_t bytes = (size_t)j->out[last] * j->pixel;
    if (!t->copies && !j->blocked) ortc_resize_mix_begin(j, scratch);
    for (int64_t row = begin, next; row < end; row = next) {
        int64_t at[ORTC_RANK_LIMIT], rest = row / beside;
        const int64_t first = row % beside;
        bool outside = false;
        next = row - first + beside < end ? row - first + beside : end;
        for (int32_t d = last - 2; d >= 0; d--) {
            at[d] = rest % j->out[d];
            rest /= j->out[d];
            outside |= is_outside(&t->axes[d], at[d]);
        }
        char *y = j->y + (size_t)row * bytes;
        if (t->copies && !outside) {
            copy_rows(j, at, first, first + next - row, y);
            continue;
        }
        for (int64_t i = first; i < first + next - row; i++, y += bytes) {
            if (last > 0) at[last - 1] = i;
            if (outside || (last > 0 && is_outside(&t->axes[last - 1], i)))
                fill(j, y, true);
            else
                make_row(j, at, y, scratch);
        }
    }
}

/* ---- Tables -------------------------------------------------------------------------------------------- */

static size_t rounded(size_t bytes) { return (bytes + 63) / 64 * 64; }

/* Bytes of the taps of an axis, and of those of the last one as bodies read them: a weight twice, and an
 * index. */
static double axis_bytes(int64_t out, int64_t taps) { return ((double)taps + 1) * (double)out * 8; }
static double tables_bytes(int32_t rank, const int64_t *out, const int64_t *taps)
{
    double bytes = 16 * (double)out[rank - 1] * (double)taps[rank - 1];
    for (int32_t d = 0; d < rank; d++) bytes += axis_bytes(out[d], taps[d]);
    return bytes;
}

/* Taps of axes that measure has filled in. */
static void fill_tables(const ortc_resize_state *s, int32_t rank, ortc_resize_tables *t, char *space)
{
    t->copies = true;
    t->ends_outside = false;
    t->doubles = false;
    t->taps = 1;
    if (rank == 0) return;
    for (int32_t d = 0; d < rank; d++) {
        ortc_resize_axis *a = &t->axes[d];
        if (a->same) continue;
        a->n_taps = ortc_resize_count_taps(s, a->scale);
        a->first = (int64_t *)(void *)space;
        a->weights = (double *)(void *)(space + (size_t)a->out * 8);
        space += (size_t)axis_bytes(a->out, a->n_taps);
        ortc_resize_taps(s, a);
        t->copies &= a->n_taps == 1;
    }
    const ortc_resize_axis *a = &t->axes[rank - 1];
    const int64_t n = a->out;
    t->taps = a->same ? 1 : a->n_taps;
    double *wide = (double *)(void *)space;
    float *weight = (float *)(void *)(wide + n * t->taps);
    int32_t *index = (int32_t *)(void *)(weight + n * t->taps);
    for (int64_t i = 0; i < n; i++) {
        const bool outside = is_outside(a, i);
        t->ends_outside |= outside;
        for (int64_t k = 0; k < t->taps; k++) {
            wide[k * n + i] = outside ? 0 : a->same ? 1 : a->weights[i * t->taps + k];
            weight[k * n + i] = (float)wide[k * n + i];
            index[k * n + i] = (int32_t)(outside   ? 0
                                         : a->same ? i
                                                   : ortc_resize_clamped(a->first[i] + k, a->in));
        }
    }
    t->doubles = t->copies && n == 2 * a->in && !t->ends_outside;
    for (int64_t i = 0; t->doubles && i < n; i++) t->doubles = index[i] == i / 2;
    t->wide = wide, t->weight = weight, t->index = index;
}

/* ---- Kernel -------------------------------------------------------------------------------------------- */

static ortc_status resize_supports(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    const ortc_port x = ortc_node_in(n, 0), roi = ortc_node_in(n, 1), scales = ortc_node_in(n, 2);
    const bool by_scales = scales.type && !(scales.rank == 1 && scales.dims[0] == 0);
    ortc_resize_state s;
    const char *wrong;
    (void)device;
    if (!ortc_resize_read(n, &s, &wrong)) return ortc_no(why, "attribute %s has no such value", wrong);
    if (by_scales && !scales.data) return ortc_no(why, "scales that only a run knows: so is the shape");
    if (by_scales && s.coordinate == ORTC_COORDINATE_CROP && !roi.data)
        return ortc_no(why, "a region that only a run knows: so is the shape");
    if (ortc_class_of(x.dtype) == ORTC_CLASS_NONE &&
        (s.mode != ORTC_RESIZE_NEAREST || s.coordinate == ORTC_COORDINATE_CROP))
        return ortc_no(why, "there is nothing between or outside of elements of type %s",
                       ortc_dtype_name(x.dtype));
    return ORTC_OK;
}

/* Whether images and channels stay as they are, as far as it can be told before a run. */
static bool keeps_channels(const ortc_resize_state *s, const ortc_question *q)
{
    const ortc_view *x = &q->in[0], *scales = q->n_in > 2 ? &q->in[2] : NULL;
    if (x->dims[0] != q->out[0].dims[0] || x->dims[1] != q->out[0].dims[1]) return false;
    if (!scales || !scales->dtype || !scales->data || ortc_view_count(scales) == 0)
        return s->aspect == ORTC_ASPECT_STRETCH; /* equal sizes */
    for (int64_t i = 0; i < ortc_view_count(scales); i++) {
        int32_t axis = 0;
        if (!ortc_axis_of(s->n_axes < 0 ? i : s->axes[i], x->rank, &axis)) return false;
        if (axis < 2 && ortc_load_f64(scales->data, scales->dtype, i) != 1) return false;
    }
    return true;
}

/* Clocks: an element is picked, or gathered tap by tap; a pixel of blocks is a vector of both. */
static ortc_status resize_choose(const void *state, const ortc_question *q, ortc_offer *o, ortc_why *why)
{
    const ortc_resize_state *s = state;
    const ortc_view *x = &q->in[0], *y = &q->out[0];
    const int blocked = ortc_blocks_asked(q);
    if (blocked < 0) return ortc_no(why, "plain or in blocks of %d channels", ORTC_BLOCK);
    if (blocked && (s->antialias || s->coordinate == ORTC_COORDINATE_CROP))
        return ortc_no(why, "antialiasing and crops are done of plain values");
    if (blocked && (x->rank < 3 || x->rank > 5 || !(ORTC_TYPES_BY_F32 >> x->dtype & 1) ||
                    ortc_view_count(y) == 0 || !keeps_channels(s, q)))
        return ortc_no(why, "images and channels must stay as they are");
    const int64_t taps = ortc_resize_count_taps(s, 1);
    const double out = (double)ortc_view_count(y), in = (double)ortc_view_count(x);
    o->clocks = 0.125 * (in + out) + (s->mode == ORTC_RESIZE_NEAREST ? 0.125 : 0.5) * (double)taps * out;
    if (blocked) o->in[0] = o->out[0] = ortc_blocks();
    return ORTC_OK;
}

/* Whether what the taps follow from is known before a run. */
static bool is_known(const ortc_resize_state *s, const ortc_plan *p)
{
    const bool by_sizes = p->n_in > 3 && p->in[3].dtype && ortc_view_count(&p->in[3]) > 0;
    if (s->coordinate == ORTC_COORDINATE_CROP && (p->n_in < 2 || !p->in[1].data)) return false;
    return by_sizes ? s->aspect == ORTC_ASPECT_STRETCH || p->in[3].data : p->n_in > 2 && p->in[2].data;
}

/* Bounds of the taps of all axes, or the taps themselves. */
static ortc_status bound_taps(const ortc_resize_state *s, ortc_plan *p, resize_plan *r, int64_t *taps)
{
    const ortc_view *x = &p->in[0], *y = &p->out[0];
    ortc_resize_text why;
    if (r->known) {
        const ortc_status status = ortc_resize_measure(s, p->n_in, p->in, y, r->tables.axes, why);
        if (status) return ortc_plan_fail(p, status, "%s", why);
    }
    for (int32_t d = 0; d < x->rank; d++) {
        /* a scale that is not known is at least so large, whatever the rounding of the extent */
        const double scale = r->known ? r->tables.axes[d].scale
                                      : ((double)y->dims[d] - 0.5) / (double)x->dims[d];
        taps[d] = r->known && r->tables.axes[d].same ? 1 : ortc_resize_count_taps(s, scale);
        if (taps[d] > MAX_TAPS)
            return ortc_plan_fail(p, ORTC_LIMIT, "an element would be made of %lld along axis %d",
                                  (long long)taps[d], d);
    }
    return ORTC_OK;
}

static ortc_status plan_taps(const ortc_resize_state *s, ortc_plan *p, resize_plan **made)
{
    resize_plan *r = *made;
    const ortc_view *x = &p->in[0], *y = &p->out[0];
    const int32_t last = x->rank - 1;
    int64_t taps[ORTC_RANK_LIMIT];
    if (x->dims[last] > INT32_MAX || y->dims[last] > INT32_MAX)
        return ortc_plan_fail(p, ORTC_LIMIT, "the last axis has more than %d elements", INT32_MAX);
    r->known = is_known(s, p);
    ORTC_TRY(bound_taps(s, p, r, taps));
    const double bytes = tables_bytes(y->rank, y->dims, taps);
    if (bytes > (double)(SIZE_MAX / 4))
        return ortc_plan_fail(p, ORTC_LIMIT, "%g bytes of weights do not fit in memory", bytes);
    ortc_resize_rows_any(&r->rows, x->rank);
    if (r->known) {
        resize_plan *larger = realloc(r, rounded(sizeof *r) + (size_t)bytes);
        if (!larger) return ortc_plan_fail(p, ORTC_OUT_OF_MEMORY, "no memory for %g bytes of weights", bytes);
        *made = r = larger;
        fill_tables(s, x->rank, &r->tables, (char *)r + rounded(sizeof *r));
        ortc_resize_rows_init(&r->rows, x->rank, r->tables.axes, ortc_resize_is_wide(x->dtype));
    }
    const size_t scratch = ortc_resize_scratch(&r->rows, x->dims[last], y->dims[last],
                                               ortc_resize_is_wide(x->dtype));
    ortc_plan_workspace(p, r->known ? 0 : (size_t)bytes, s->mode == ORTC_RESIZE_NEAREST ? 0 : scratch);
    return ORTC_OK;
}

static ortc_status resize_plan_make(const void *state, ortc_plan *p, void **out)
{
    const ortc_view *x = &p->in[0], *y = &p->out[0];
    resize_plan *r = calloc(1, sizeof *r);
    if (!r) return ortc_plan_fail(p, ORTC_OUT_OF_MEMORY, "no memory for a plan");
    r->lines = ortc_resize_lines_select();
    r->convert = ortc_convert_get();
    const ortc_status status = ortc_view_count(y) && x->rank ? plan_taps(state, p, &r) : ORTC_OK;
    if (status) {
        free(r);
        return status;
    }
    ortc_plan_cost(p, 0, (double)(ortc_view_count(x) + ortc_view_count(y)) * ortc_dtype_bits(x->dtype) / 8);
    *out = r;
    return ORTC_OK;
}

static ortc_status resize_run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_resize_state *s = state;
    const resize_plan *r = pstate;
    const ortc_view *x = &c->in[0], *y = &c->out[0];
    ortc_resize_tables made;
    ortc_resize_job j = {.t = &r->tables,
                         .lines = r->lines,
                         .convert = r->convert,
                         .rows = r->rows,
                         .x = x->data,
                         .y = y->data,
                         .dtype = x->dtype,
                         .rank = x->rank,
                         .pixel = ortc_dtype_bits(x->dtype) / 8};
    if (!r->known) { /* of nothing, too: what is asked may be wrong */
        ortc_resize_text why;
        const ortc_status status = ortc_resize_measure(s, c->n_in, c->in, y, made.axes, why);
        if (status) return ortc_call_fail(c, status, "%s", why);
    }
    if (ortc_view_count(y) == 0) return ORTC_OK;
    if (x->rank == 0) {
        memcpy(j.y, j.x, j.pixel);
        return ORTC_OK;
    }
    if (!r->known) {
        fill_tables(s, x->rank, &made, c->workspace);
        ortc_resize_rows_init(&j.rows, x->rank, made.axes, ortc_resize_is_wide(x->dtype));
        j.t = &made;
    }
    ortc_copy_dims(j.in, x->dims, x->rank);
    ortc_copy_dims(j.out, y->dims, y->rank);
    if (ortc_class_of(x->dtype) != ORTC_CLASS_NONE) ortc_resize_store(j.fill, x->dtype, 0, s->extrapolation);
    if (x->layout) { /* a pixel is a block */
        j.blocked = 1;
        j.in[1] = j.out[1] = ortc_blocks_of(x->dims[1]);
        j.pixel *= ORTC_BLOCK;
    }
    int64_t rows = 1;
    for (int32_t d = 0; d < j.rank - 1; d++) rows *= j.out[d];
    const int64_t row = (j.in[j.rank - 1] + j.out[j.rank - 1]) * (j.t->copies ? 1 : 4 * j.t->taps) *
                        (j.blocked ? ORTC_BLOCK / 4 : 1);
    return ortc_parallel(c, rows, ortc_rows_grain(row), rows_chunk, &j);
}

static const ortc_kernel resize = {.size = ORTC_SIZED(ortc_kernel),
                                   .flags = ORTC_KERNEL_LAYOUTS,
                                   .name = "resize.cpu",
                                   .host_in = 0xe,
                                   .supports = resize_supports,
                                   .prepare = ortc_resize_prepare,
                                   .plan = resize_plan_make,
                                   .run = resize_run,
                                   .choose = resize_choose};

#define PLAIN (ORTC_TYPES_NUM | ORTC_TYPE(ORTC_BOOL) | ORTC_TYPE(ORTC_C64) | ORTC_TYPE(ORTC_C128))
ORTC_KERNELS(cpu, resize,
             ORTC_KERNEL("Resize", 19, ORTC_NEWEST,
                         (PLAIN, ORTC_TYPE(ORTC_F16) | ORTC_TYPE(ORTC_F32) | ORTC_TYPE(ORTC_F64)), &resize));
