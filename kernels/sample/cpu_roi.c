/* kernels/sample/cpu_roi.c: RoiAlign (means) and MaxRoiPool on the cpu provider, f32, f16 and bf16 computed
 * in f32. X is turned, some of its channels at a time, so that those of a pixel lie beside each other; a bin
 * is then a list of pixels and weights that a vector of channels goes over. Weights of RoiAlign are those of
 * ref, a pixel's added up: its points lie on a grid, so that rows and columns have weights of their own, and
 * a pixel of two or four points is read once. A task is a region. Where regions read less than X has, it is
 * read where it lies, a channel after the other.
 */
#include <stdlib.h>

#include "kernels/common/vector/convert.h"
#include "kernels/gemm/product_uk.h"
#include "kernels/sample/grid_lines.h"
#include "kernels/sample/roi.h"

ORTC_VEC_TABLE(ortc_grid_lines)

enum { LIST = 256, PIECE = 256 }; /* pixels of a list; that are turned at a time */
#define TURNED_BYTES (8 << 20)    /* of X at a time */

typedef struct roi_plan {
    int64_t channels, wide, pixels, bins; /* wide: channels at a time */
    bool turned;
} roi_plan;

typedef struct roi_job {
    const roi_plan *p;
    const ortc_grid_lines *lines;
    const ortc_convert *convert;
    const ortc_product_moves *moves;
    const ortc_call *call;
    const ortc_roi_state *align; /* NULL: MaxRoiPool */
    double scale;                /* of that */
    int64_t first, n;            /* of the channels */
    float *turned;               /* [image][pixel][n] */
} roi_job;

/* One dim of a bin: the pixels that its points see, each once, and their weights. */
typedef struct axis {
    int64_t n;
    int32_t *at;
    float *weight;
    int32_t *place; /* of each pixel in `at`, -1: not there; -1 between bins */
} axis;

/* A worker's. Behind it the axes' memory, the bins' results, [bin][channels], and the same turned. */
typedef struct work {
    axis dim[2];
    float *sums, *out;
    int64_t n;
    int32_t at[LIST];
    float weight[LIST];
} work;

static size_t axis_bytes(int64_t extent) { return (size_t)extent * (2 * sizeof(int32_t) + sizeof(float)); }

static size_t scratch_bytes(const roi_plan *p, const ortc_view *x)
{
    const size_t turning = (size_t)p->wide * PIECE * sizeof(float);
    const size_t region = sizeof(work) + axis_bytes(x->dims[2]) + axis_bytes(x->dims[3]) +
                          2 * (size_t)(p->bins * p->wide) * sizeof(float);
    return region > turning ? region : turning;
}

static work *lay_out(void *scratch, const roi_plan *p, const ortc_view *x)
{
    work *w = scratch;
    char *at = (char *)(w + 1);
    for (int d = 0; d < 2; d++) {
        const size_t n = (size_t)x->dims[d + 2];
        w->dim[d] = (axis){0, (int32_t *)(void *)at, (float *)(void *)at + n, (int32_t *)(void *)at + 2 * n};
        for (size_t i = 0; i < n; i++) w->dim[d].place[i] = -1;
        at += axis_bytes((int64_t)n);
    }
    w->sums = (float *)(void *)at;
    w->out = w->sums + p->bins * p->wide;
    return w;
}

/* ---- Bins ---------------------------------------------------------------------------------------------- */

static void see(axis *a, int64_t pixel, double weight)
{
    if (a->place[pixel] < 0) {
        a->place[pixel] = (int32_t)a->n;
        a->at[a->n] = (int32_t)pixel;
        a->weight[a->n++] = 0;
    }
    a->weight[a->place[pixel]] += (float)weight;
}

static void align_axis(axis *a, const ortc_roi *g, int k, int64_t bin, int64_t extent)
{
    for (double p = 0; p < g->points[k]; p++) {
        int64_t at[2];
        double part;
        const double v = g->start[k] + ((double)bin + (p + 0.5) / g->points[k]) * g->bin[k];
        if (!ortc_roi_point(v, extent, at, &part)) continue;
        if (part != 1) see(a, at[0], 1 - part);
        if (part != 0) see(a, at[1], part);
    }
}

static void pool_axis(const roi_job *j, axis *a, int64_t r, int k, int64_t bin, int64_t bins, int64_t extent)
{
    int64_t begin, end;
    ortc_roi_pool_bin(j->scale, &j->call->in[1], r, k, bin, bins, extent, &begin, &end);
    for (; begin < end; begin++) see(a, begin, 0);
}

static void forget(axis *a)
{
    for (int64_t i = 0; i < a->n; i++) a->place[a->at[i]] = -1;
    a->n = 0;
}

/* The list so far, for all channels. */
static void flush(const roi_job *j, work *w, const void *image, int first, float *y)
{
    const float *weight = j->align ? w->weight : NULL;
    if (j->p->turned) {
        j->lines->blend((size_t)j->n, (size_t)w->n, (size_t)j->n, image, w->at, weight, first, y);
    } else {
        for (int64_t c = 0; c < j->n; c++)
            j->lines->blend(1, (size_t)w->n, 1, (const float *)image + c * j->p->pixels, w->at, weight, first,
                            y + c);
    }
    w->n = 0;
}

static void bin(const roi_job *j, work *w, const void *image, double share, float *y)
{
    const axis *rows = &w->dim[0], *columns = &w->dim[1];
    const int64_t width = j->call->in[0].dims[3];
    int first = 1;
    for (int64_t r = 0; r < rows->n; r++)
        for (int64_t c = 0; c < columns->n; c++) {
            if (w->n == LIST) {
                flush(j, w, image, first, y);
                first = 0;
            }
            w->at[w->n] = (int32_t)(rows->at[r] * width + columns->at[c]);
            w->weight[w->n++] = (float)(share * (double)rows->weight[r] * (double)columns->weight[c]);
        }
    if (w->n || first) flush(j, w, image, first, y);
}

static void region(const roi_job *j, work *w, int64_t r)
{
    const ortc_view *x = &j->call->in[0], *y = &j->call->out[0];
    const roi_plan *p = j->p;
    const ortc_roi g = j->align ? ortc_roi_of(j->align, &j->call->in[1], y->dims + 2, r) : (ortc_roi){0};
    const int64_t image = j->align ? ortc_load_i64(j->call->in[2].data, ORTC_I64, r)
                                   : (int64_t)ortc_load_f64(j->call->in[1].data, j->call->in[1].dtype, 5 * r);
    const float *pixels = p->turned ? j->turned + image * p->pixels * j->n
                                    : (const float *)x->data + (image * p->channels + j->first) * p->pixels;
    const double count = g.points[0] * g.points[1], share = 1 / (count > 1 ? count : 1);
    for (int64_t row = 0; row < y->dims[2]; row++) {
        if (j->align)
            align_axis(&w->dim[0], &g, 0, row, x->dims[2]);
        else
            pool_axis(j, &w->dim[0], r, 0, row, y->dims[2], x->dims[2]);
        for (int64_t column = 0; column < y->dims[3]; column++) {
            if (j->align)
                align_axis(&w->dim[1], &g, 1, column, x->dims[3]);
            else
                pool_axis(j, &w->dim[1], r, 1, column, y->dims[3], x->dims[3]);
            bin(j, w, pixels, share, w->sums + (row * y->dims[3] + column) * j->n);
            forget(&w->dim[1]);
        }
        forget(&w->dim[0]);
    }
}

static void region_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const roi_job *j = arg;
    const ortc_view *y = &j->call->out[0];
    const int type = ortc_float_index(y->dtype);
    work *w = lay_out(scratch, j->p, &j->call->in[0]);
    w->n = 0;
    for (int64_t r = begin; r < end; r++) {
        const size_t n = (size_t)j->n, bins = (size_t)j->p->bins;
        char *to = (char *)y->data +
                   (size_t)((r * j->p->channels + j->first) * j->p->bins) * (ortc_dtype_bits(y->dtype) / 8);
        region(j, w, r);
        j->moves->transpose(bins, n, w->sums, n, w->out, bins);
        j->convert->narrow[type](n * bins, w->out, to);
    }
}

/* ---- X, turned ----------------------------------------------------------------------------------------- */

static void turn_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const roi_job *j = arg;
    const ortc_view *x = &j->call->in[0];
    const int64_t pieces = (j->p->pixels - 1) / PIECE + 1;
    const size_t size = ortc_dtype_bits(x->dtype) / 8;
    for (int64_t task = begin; task < end; task++) {
        const int64_t image = task / pieces, first = task % pieces * PIECE;
        const int64_t n = j->p->pixels - first < PIECE ? j->p->pixels - first : PIECE;
        const char *from = (const char *)x->data +
                           (size_t)((image * j->p->channels + j->first) * j->p->pixels + first) * size;
        const float *rows = (const float *)(const void *)from;
        int64_t ld = j->p->pixels;
        if (x->dtype != ORTC_F32) {
            for (int64_t c = 0; c < j->n; c++)
                j->convert->widen[ortc_float_index(x->dtype)]((size_t)n,
                                                              from + (size_t)(c * j->p->pixels) * size,
                                                              (float *)scratch + c * PIECE);
            rows = scratch;
            ld = PIECE;
        }
        j->moves->transpose((size_t)j->n, (size_t)n, rows, (size_t)ld,
                            j->turned + (image * j->p->pixels + first) * j->n, (size_t)j->n);
    }
}

/* ---- Kernels ------------------------------------------------------------------------------------------- */

static ortc_status align_supports(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    (void)device;
    return strcmp(ortc_node_string(n, "mode", "avg"), "max") ? ORTC_OK
                                                             : ortc_no(why, "mode 'max' is done by ref");
}

static ortc_status plan(const void *state, ortc_plan *p, void **out)
{
    const ortc_view *x = &p->in[0], *y = &p->out[0];
    (void)state;
    roi_plan *r = calloc(1, sizeof *r);
    if (!r) return ortc_plan_fail(p, ORTC_OUT_OF_MEMORY, "no memory for a plan");
    *out = r;
    if (ortc_view_count(y) == 0 || ortc_view_count(x) == 0) return ORTC_OK;
    r->channels = r->wide = x->dims[1];
    r->pixels = x->dims[2] * x->dims[3];
    r->bins = y->dims[2] * y->dims[3];
    const double all = (double)x->dims[0] * (double)r->pixels * sizeof(float);
    r->turned = x->dtype != ORTC_F32 || (double)y->dims[0] * (double)r->bins * sizeof(float) > all / 4;
    if (r->pixels > INT32_MAX) {
        *out = NULL;
        free(r);
        return ortc_plan_fail(p, ORTC_LIMIT, "a channel has more than %d pixels", INT32_MAX);
    }
    if (all * (double)r->wide > TURNED_BYTES) {
        const double fit = TURNED_BYTES / all;
        const int64_t blocks = fit < 32 ? 1 : (int64_t)(fit / 16);
        r->wide = r->wide < 16 * blocks ? r->wide : 16 * blocks;
    }
    ortc_plan_workspace(p, r->turned ? (size_t)(x->dims[0] * r->pixels * r->wide) * sizeof(float) : 0,
                        scratch_bytes(r, x));
    ortc_plan_cost(p, 32.0 * (double)ortc_view_count(y),
                   (double)ortc_bytes_of(ortc_dtype_bits(x->dtype), ortc_view_count(y) + ortc_view_count(x)));
    return ORTC_OK;
}

static ortc_status run(const roi_plan *p, roi_job *j, double points, ortc_call *c)
{
    const ortc_view *x = &c->in[0];
    j->p = p;
    j->lines = ortc_grid_lines_select();
    j->convert = ortc_convert_get();
    j->moves = ortc_product_moves_select();
    j->call = c;
    j->turned = c->workspace;
    for (j->first = 0; j->first < p->channels; j->first += j->n) {
        j->n = p->channels - j->first < p->wide ? p->channels - j->first : p->wide;
        if (p->turned)
            ORTC_TRY(ortc_parallel(c, x->dims[0] * ((p->pixels - 1) / PIECE + 1),
                                   ortc_rows_grain(j->n * PIECE), turn_chunk, j));
        const double each = (double)p->bins * (double)j->n * points / (p->turned ? 4 : 1);
        ORTC_TRY(ortc_parallel(c, c->out[0].dims[0], ortc_grain(each), region_chunk, j));
    }
    return ORTC_OK;
}

static ortc_status align_run(const void *state, const void *pstate, ortc_call *c)
{
    roi_job j = {.align = state};
    double points;
    if (ortc_view_count(&c->out[0]) == 0) return ORTC_OK;
    ORTC_TRY(ortc_roi_check(state, c, &points));
    return run(pstate, &j, points, c);
}

static ortc_status pool_run(const void *state, const void *pstate, ortc_call *c)
{
    roi_job j = {.scale = *(const double *)state};
    const roi_plan *p = pstate;
    if (ortc_view_count(&c->out[0]) == 0) return ORTC_OK;
    ORTC_TRY(ortc_roi_pool_check(c));
    if (p->pixels == 0) {
        memset(c->out[0].data, 0,
               (size_t)ortc_bytes_of(ortc_dtype_bits(c->out[0].dtype), ortc_view_count(&c->out[0])));
        return ORTC_OK;
    }
    return run(p, &j, (double)p->pixels / (double)p->bins, c);
}

const ortc_kernel ortc_cpu_roi_align = {.size = ORTC_SIZED(ortc_kernel),
                                        .name = "roi_align.cpu",
                                        .supports = align_supports,
                                        .prepare = ortc_roi_prepare,
                                        .plan = plan,
                                        .run = align_run};
const ortc_kernel ortc_cpu_max_roi_pool = {.size = ORTC_SIZED(ortc_kernel),
                                           .name = "max_roi_pool.cpu",
                                           .prepare = ortc_roi_pool_prepare,
                                           .plan = plan,
                                           .run = pool_run};
