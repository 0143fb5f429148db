/* kernels/resize/cpu.c: Resize on the cpu provider: nearest for all elements of whole bytes, linear and
 * cubic for floats, computed in f32; without antialiasing and crops, which are ref's. Also of values in
 * blocks of 16 channels, whose pixels are vectors.
 *
 * A row of the result, along the last axis, is made of some rows of X, those that the taps of the other axes
 * meet: they are added up, and the sum is resampled along the row. Taps are computed by each run, into its
 * workspace: they follow from values that only the run may know.
 */
#include <stdlib.h>

#include "kernels/common/blocks.h"
#include "kernels/common/vector/convert.h"
#include "kernels/resize/lines.h"
#include "kernels/resize/resize.h"

ORTC_VEC_TABLE(ortc_resize_lines)

enum { ROWS = 256 }; /* of X in one of the result: 4 cubic taps along four axes */

typedef struct resize_plan {
    const ortc_resize_lines *lines;
    const ortc_convert *convert;
} resize_plan;

typedef struct resize_job {
    const resize_plan *p;
    const char *x;
    char *y;
    int type;     /* ORTC_FLOAT_* */
    size_t pixel; /* bytes */
    int blocked;
    int32_t rank;
    int64_t in[ORTC_RANK_LIMIT], out[ORTC_RANK_LIMIT]; /* channels: in blocks, where they are */
    ortc_resize_axis axes[ORTC_RANK_LIMIT];
    bool copies;          /* elements are only moved */
    const int32_t *index; /* [taps][out] of the last axis */
    const float *weight;  /* likewise */
    int64_t taps;         /* of the last axis */
} resize_job;

static int64_t clamped(int64_t at, int64_t n) { return at < 0 ? 0 : at >= n ? n - 1 : at; }

/* The rows of X that a row of the result is made of, and their weights; at: its index. */
static int32_t find_rows(const resize_job *j, const int64_t *at, const void **rows, float *weights)
{
    int64_t base[ROWS] = {0};
    double w[ROWS] = {1};
    int32_t n = 1;
    for (int32_t d = 0; d < j->rank - 1; d++) {
        const ortc_resize_axis *a = &j->axes[d];
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
                base[n] = old[i] * j->in[d] + (a->same ? at[d] : clamped(a->first[at[d]] + k, a->in));
                w[n++] = old_w[i] * weight;
            }
    }
    for (int32_t i = 0; i < n; i++) {
        rows[i] = j->x + (size_t)(base[i] * j->in[j->rank - 1]) * j->pixel;
        weights[i] = (float)w[i];
    }
    return n;
}

static void pick(const resize_job *j, const void *row, char *y)
{
    const int64_t n = j->out[j->rank - 1];
#define PICK(type) \
    for (int64_t i = 0; i < n; i++) ((type *)(void *)y)[i] = ((const type *)row)[j->index[i]]
    switch (j->pixel) {
    case 1: PICK(uint8_t); break;
    case 2: PICK(uint16_t); break;
    case 4: PICK(uint32_t); break;
    case 8: PICK(uint64_t); break;
    case 32: /* blocks of 16 channels: copies of known length */
        for (int64_t i = 0; i < n; i++) memcpy(y + i * 32, (const char *)row + j->index[i] * 32, 32);
        break;
    case 64:
        for (int64_t i = 0; i < n; i++) memcpy(y + i * 64, (const char *)row + j->index[i] * 64, 64);
        break;
    default:
        for (int64_t i = 0; i < n; i++)
            memcpy(y + (size_t)i * j->pixel, (const char *)row + (size_t)j->index[i] * j->pixel, j->pixel);
    }
}

static void mix(const resize_job *j, int32_t n, const void *const *rows, const float *weights, char *y,
                float *line)
{
    const size_t in = (size_t)j->in[j->rank - 1], out = (size_t)j->out[j->rank - 1];
    float *wide = line + in, *result = j->type == ORTC_FLOAT_F32 ? (float *)(void *)y : wide + in;
    for (int32_t i = 0; i < n; i++) {
        const float *x = rows[i];
        if (j->type != ORTC_FLOAT_F32) {
            j->p->convert->widen[j->type](in, rows[i], wide);
            x = wide;
        }
        j->p->lines->add(in, x, weights[i], i == 0, line);
    }
    if (n == 0) memset(line, 0, in * sizeof *line);
    j->p->lines->across(out, (size_t)j->taps, line, j->index, j->weight, result);
    if (j->type != ORTC_FLOAT_F32) j->p->convert->narrow[j->type](out, result, y);
}

static void rows_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const resize_job *j = arg;
    const int32_t last = j->rank - 1;
    const size_t bytes = (size_t)j->out[last] * j->pixel;
    const void *rows[ROWS], *before = NULL;
    float weights[ROWS];
    for (int64_t row = begin; row < end; row++) {
        int64_t at[ORTC_RANK_LIMIT], rest = row;
        for (int32_t d = last - 1; d >= 0; d--) {
            at[d] = rest % j->out[d];
            rest /= j->out[d];
        }
        char *y = j->y + (size_t)row * bytes;
        const int32_t n = find_rows(j, at, rows, weights);
        if (!j->copies && j->blocked)
            j->p->lines->blocks[j->type]((size_t)j->out[last], (size_t)n, rows, weights, (size_t)j->taps,
                                         j->index, j->weight, y);
        else if (!j->copies)
            mix(j, n, rows, weights, y, scratch);
        else if (rows[0] == before)
            memcpy(y, y - bytes, bytes);
        else
            pick(j, rows[0], y);
        before = rows[0];
    }
}

/* ---- Kernel -------------------------------------------------------------------------------------------- */

static size_t rounded(double bytes) { return ((size_t)bytes + 63) / 64 * 64; }

/* Bytes of taps of an axis in the workspace: positions and weights; of the last one also what bodies read. */
static size_t tap_bytes(int64_t out, int64_t taps) { return rounded((double)out * 8 * (double)(taps + 1)); }

static ortc_status resize_supports(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    const ortc_port x = ortc_node_in(n, 0), scales = ortc_node_in(n, 2);
    ortc_resize_state s;
    const char *wrong;
    (void)device;
    if (!ortc_resize_read(n, &s, &wrong)) return ortc_no(why, "attribute %s has no such value", wrong);
    if (s.antialias && s.mode != ORTC_RESIZE_NEAREST) return ortc_no(why, "antialiasing is not done here");
    if (s.coordinate == ORTC_COORDINATE_CROP) return ortc_no(why, "crops are not done here");
    if (scales.type && !scales.data && !(scales.rank == 1 && scales.dims[0] == 0))
        return ortc_no(why, "scales that only a run knows: so is the shape");
    if (s.mode != ORTC_RESIZE_NEAREST && !(ORTC_TYPES_BY_F32 >> x.dtype & 1))
        return ortc_no(why, "only f32, f16 and bf16 are mixed here");
    if (s.mode != ORTC_RESIZE_NEAREST && (s.n_axes > 4 || (s.n_axes < 0 && (x.rank < 0 || x.rank > 5))))
        return ortc_no(why, "more than five axes are not done here");
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
    if (blocked && (x->rank < 3 || !(ORTC_TYPES_BY_F32 >> x->dtype & 1) || ortc_view_count(y) == 0 ||
                    !keeps_channels(s, q)))
        return ortc_no(why, "images and channels must stay as they are");
    const int64_t taps = ortc_resize_count_taps(s, 1);
    const double out = (double)ortc_view_count(y), in = (double)ortc_view_count(x);
    o->clocks = 0.125 * (in + out) + (s->mode == ORTC_RESIZE_NEAREST ? blocked ? 0.125 : 1
                                      : blocked                      ? 0.5
                                                                     : 2) *
                                         (double)taps * out;
    if (blocked) o->in[0] = o->out[0] = ortc_blocks();
    return ORTC_OK;
}

static ortc_status resize_plan_make(const void *state, ortc_plan *p, void **out)
{
    const ortc_resize_state *s = state;
    const ortc_view *x = &p->in[0], *y = &p->out[0];
    const int64_t taps = ortc_resize_count_taps(s, 1);
    if (x->rank && (x->dims[x->rank - 1] > INT32_MAX || y->dims[y->rank - 1] > INT32_MAX))
        return ortc_plan_fail(p, ORTC_LIMIT, "the last axis has more than %d elements", INT32_MAX);
    resize_plan *r = malloc(sizeof *r);
    if (!r) return ortc_plan_fail(p, ORTC_OUT_OF_MEMORY, "no memory for a plan");
    *r = (resize_plan){ortc_resize_lines_select(), ortc_convert_get()};
    *out = r;
    if (ortc_view_count(y) == 0) return ORTC_OK;
    size_t bytes = 0, line = 0;
    for (int32_t d = 0; d < y->rank; d++) bytes += tap_bytes(y->dims[d], taps);
    if (y->rank) {
        bytes += tap_bytes(y->dims[y->rank - 1], taps);
        line = (size_t)(2 * x->dims[x->rank - 1] + y->dims[y->rank - 1]) * sizeof(float);
    }
    ortc_plan_workspace(p, bytes, s->mode == ORTC_RESIZE_NEAREST ? 0 : line);
    ortc_plan_cost(p, 0, (double)(ortc_view_count(x) + ortc_view_count(y)) * ortc_dtype_bits(x->dtype) / 8);
    return ORTC_OK;
}

/* Taps of all axes, and those of the last as the bodies read them. */
static void find_taps(const ortc_resize_state *s, resize_job *j, char *space)
{
    const int32_t last = j->rank - 1;
    const int64_t n = j->out[last];
    j->copies = true;
    for (int32_t d = 0; d < j->rank; d++) {
        ortc_resize_axis *a = &j->axes[d];
        if (a->same) continue;
        a->n_taps = ortc_resize_count_taps(s, 1);
        a->first = (int64_t *)(void *)space;
        a->weights = (double *)(void *)(space + (size_t)a->out * 8);
        space += tap_bytes(a->out, a->n_taps);
        ortc_resize_taps(s, a);
        j->copies &= a->n_taps == 1;
    }
    const ortc_resize_axis *a = &j->axes[last];
    float *weight = (float *)(void *)space;
    j->taps = a->same ? 1 : a->n_taps;
    int32_t *index = (int32_t *)(void *)(weight + n * j->taps);
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < j->taps; k++) {
            weight[k * n + i] = a->same ? 1 : (float)a->weights[i * j->taps + k];
            index[k * n + i] = (int32_t)(a->same ? i : clamped(a->first[i] + k, a->in));
        }
    j->weight = weight, j->index = index;
}

static ortc_status resize_run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_view *x = &c->in[0], *y = &c->out[0];
    resize_job j = {
        .p = pstate, .x = x->data, .y = y->data, .type = ortc_float_index(x->dtype), .rank = x->rank};
    j.pixel = ortc_dtype_bits(x->dtype) / 8;
    const int64_t count = ortc_view_count(y);
    if (count == 0) return ORTC_OK;
    ORTC_TRY(ortc_resize_measure(state, c, j.axes));
    if (x->rank == 0) {
        memcpy(j.y, j.x, j.pixel);
        return ORTC_OK;
    }
    ortc_copy_dims(j.in, x->dims, x->rank);
    ortc_copy_dims(j.out, y->dims, y->rank);
    if (x->layout) { /* a pixel is a block */
        j.blocked = 1;
        j.in[1] = j.out[1] = ortc_blocks_of(x->dims[1]);
        j.pixel *= ORTC_BLOCK;
    }
    find_taps(state, &j, c->workspace);
    int64_t rows = 1;
    for (int32_t d = 0; d < j.rank - 1; d++) rows *= j.out[d];
    const int64_t row = (j.in[j.rank - 1] + j.out[j.rank - 1]) * (j.copies ? 1 : 4 * j.taps) *
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
