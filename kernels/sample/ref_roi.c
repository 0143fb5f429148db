/* kernels/sample/ref_roi.c: RoiAlign on ref: a region is cut into bins, each bin read at a grid of points
 * between four pixels, and their mean (or their largest weighted pixel, as the standard's evaluator has it)
 * is the result.
 */
#include <math.h>
#include <stdlib.h>

#include "kernels/sample/roi.h"

#define MAX_POINTS (1 << 24) /* of a bin */

extern const ortc_kernel ortc_ref_roi_align;

typedef struct roi_job {
    const ortc_roi_state *s;
    const ortc_view *x, *rois, *batch;
    ortc_view *y;
} roi_job;

ortc_roi ortc_roi_of(const ortc_roi_state *s, const ortc_view *rois, const int64_t bins[2], int64_t r)
{
    const double offset = s->half_pixel ? 0.5 : 0;
    ortc_roi g;
    for (int k = 0; k < 2; k++) { /* x before y */
        const double start = ortc_load_f64(rois->data, rois->dtype, 4 * r + 1 - k) * s->scale - offset;
        const double end = ortc_load_f64(rois->data, rois->dtype, 4 * r + 3 - k) * s->scale - offset;
        const double length = s->half_pixel ? end - start : fmax(end - start, 1);
        g.start[k] = start;
        g.bin[k] = length / (double)bins[k];
        g.points[k] = s->ratio > 0 ? (double)s->ratio : fmax(ceil(g.bin[k]), 0);
    }
    return g;
}

bool ortc_roi_point(double v, int64_t extent, int64_t at[2], double *part)
{
    if (!(v >= -1 && v <= (double)extent)) return false;
    v = fmin(fmax(v, 0), (double)(extent - 1));
    at[0] = (int64_t)v;
    at[1] = at[0] + (at[0] < extent - 1);
    *part = v - (double)at[0];
    return true;
}

/* The four pixels around a point, weighted; 0: it is outside. What weighs nothing does not count, infinite or
 * not. */
static void point(const roi_job *j, int64_t plane, double y, double x, double *out)
{
    const int64_t h = j->x->dims[2], w = j->x->dims[3];
    int64_t row[2], column[2];
    double down, across;
    if (!ortc_roi_point(y, h, row, &down) || !ortc_roi_point(x, w, column, &across)) return;
    const double weights[4] = {(1 - down) * (1 - across), (1 - down) * across, down * (1 - across),
                               down * across};
    for (int k = 0; k < 4; k++)
        if (weights[k] != 0)
            out[k] = weights[k] *
                     ortc_load_f64(j->x->data, j->x->dtype, (plane * h + row[k / 2]) * w + column[k % 2]);
}

static void roi_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const roi_job *j = arg;
    const int64_t *out = j->y->dims;
    for (int64_t i = begin; i < end; i++) {
        const int64_t column = i % out[3], row = i / out[3] % out[2], channel = i / out[3] / out[2] % out[1],
                      r = i / out[3] / out[2] / out[1];
        const int64_t plane = ortc_load_i64(j->batch->data, ORTC_I64, r) * out[1] + channel;
        const ortc_roi g = ortc_roi_of(j->s, j->rois, out + 2, r);
        double sum = 0, most = 0;
        bool any = false;
        for (double py = 0; py < g.points[0]; py++)
            for (double px = 0; px < g.points[1]; px++) {
                double v[4] = {0, 0, 0, 0};
                point(j, plane, g.start[0] + ((double)row + (py + 0.5) / g.points[0]) * g.bin[0],
                      g.start[1] + ((double)column + (px + 0.5) / g.points[1]) * g.bin[1], v);
                sum += v[0] + v[1] + v[2] + v[3];
                const double largest = fmax(fmax(v[0], v[1]), fmax(v[2], v[3]));
                most = any && most > largest ? most : largest;
                any = true;
            }
        ortc_store_f64(j->y->data, j->y->dtype, i,
                       j->s->max ? most : sum / fmax(g.points[0] * g.points[1], 1));
    }
}

ortc_status ortc_roi_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const char *mode = ortc_node_string(n, "mode", "avg"),
               *coordinates = ortc_node_string(n, "coordinate_transformation_mode", "half_pixel");
    const bool half_pixel = !strcmp(coordinates, "half_pixel");
    if ((strcmp(mode, "avg") != 0 && strcmp(mode, "max") != 0) ||
        (!half_pixel && strcmp(coordinates, "output_half_pixel") != 0))
        return ortc_prep_fail(prep, ORTC_INVALID_MODEL,
                              "attributes mode '%s' and coordinate_transformation_mode '%s' are not such",
                              mode, coordinates);
    ortc_roi_state *s = malloc(sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *s = (ortc_roi_state){half_pixel, !strcmp(mode, "max"), ortc_node_int(n, "sampling_ratio", 0),
                          (double)ortc_node_float(n, "spatial_scale", 1)};
    *out = s;
    return ORTC_OK;
}

ortc_status ortc_roi_check(const ortc_roi_state *s, ortc_call *c, double *points)
{
    const ortc_view *x = &c->in[0], *batch = &c->in[2];
    *points = 1;
    if (x->dims[2] == 0 || x->dims[3] == 0)
        return ortc_call_fail(c, ORTC_SHAPE_MISMATCH, "there is no pixel to sample");
    for (int64_t r = 0; r < c->out[0].dims[0]; r++) {
        const int64_t image = ortc_load_i64(batch->data, ORTC_I64, r);
        const ortc_roi g = ortc_roi_of(s, &c->in[1], c->out[0].dims + 2, r);
        if (image < 0 || image >= x->dims[0])
            return ortc_call_fail(c, ORTC_INVALID_ARGUMENT,
                                  "batch_indices[%lld] is %lld, there are %lld images", (long long)r,
                                  (long long)image, (long long)x->dims[0]);
        if (!(g.points[0] * g.points[1] <= MAX_POINTS))
            return ortc_call_fail(c, ORTC_LIMIT, "region %lld would be read at %g points a bin", (long long)r,
                                  g.points[0] * g.points[1]);
        *points = fmax(*points, g.points[0] * g.points[1]);
    }
    return ORTC_OK;
}

static ortc_status roi_run(const void *state, const void *pstate, ortc_call *c)
{
    roi_job j = {state, &c->in[0], &c->in[1], &c->in[2], &c->out[0]};
    const int64_t count = ortc_view_count(j.y);
    double points;
    if (count == 0) return ORTC_OK;
    ORTC_TRY(ortc_roi_check(state, c, &points));
    return ortc_parallel(c, count, ortc_grain(20 + 30 * points), roi_chunk, &j);
}

const ortc_kernel ortc_ref_roi_align = {.size = ORTC_SIZED(ortc_kernel),
                                        .name = "roi_align.ref",
                                        .prepare = ortc_roi_prepare,
                                        .run = roi_run};
