/* kernels/sample/ref_roi.c: RoiAlign on ref: a region is cut into bins, each bin read at a grid of points
 * between four pixels, and their mean (or their largest weighted pixel, as the standard's evaluator has it)
 * is the result.
 */
#include <math.h>
#include <stdlib.h>

#include "kernels/common/shape.h"

#define MAX_POINTS (1 << 24) /* of a bin */

extern const ortc_kernel ortc_ref_roi_align;

typedef struct roi_state {
    bool half_pixel, max;
    int64_t ratio;
    double scale;
} roi_state;

typedef struct roi_job {
    const roi_state *s;
    const ortc_view *x, *rois, *batch;
    ortc_view *y;
} roi_job;

typedef struct region {
    double start[2], bin[2]; /* rows, columns */
    double points[2];        /* of a bin */
} region;

static region region_of(const roi_job *j, int64_t r)
{
    const double offset = j->s->half_pixel ? 0.5 : 0;
    region g;
    for (int k = 0; k < 2; k++) { /* x before y */
        const double start = ortc_load_f64(j->rois->data, j->rois->dtype, 4 * r + 1 - k) * j->s->scale -
                             offset;
        const double end = ortc_load_f64(j->rois->data, j->rois->dtype, 4 * r + 3 - k) * j->s->scale - offset;
        const double length = j->s->half_pixel ? end - start : fmax(end - start, 1);
        g.start[k] = start;
        g.bin[k] = length / (double)j->y->dims[k + 2];
        g.points[k] = j->s->ratio > 0 ? (double)j->s->ratio : fmax(ceil(g.bin[k]), 0);
    }
    return g;
}

/* The four pixels around a point, weighted; false: it is outside. */
static bool point(const roi_job *j, int64_t plane, double y, double x, double *out)
{
    const int64_t h = j->x->dims[2], w = j->x->dims[3];
    if (!(y >= -1 && y <= (double)h && x >= -1 && x <= (double)w)) return false;
    y = fmin(fmax(y, 0), (double)(h - 1));
    x = fmin(fmax(x, 0), (double)(w - 1));
    const int64_t top = (int64_t)y, left = (int64_t)x, below = top + (top < h - 1),
                  right = left + (left < w - 1);
    const double down = y - (double)top, across = x - (double)left,
                 weights[4] = {(1 - down) * (1 - across), (1 - down) * across, down * (1 - across),
                               down * across};
    const int64_t at[4] = {top * w + left, top * w + right, below * w + left, below * w + right};
    for (int k = 0; k < 4; k++)
        out[k] = weights[k] * ortc_load_f64(j->x->data, j->x->dtype, plane * h * w + at[k]);
    return true;
}

static void roi_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const roi_job *j = arg;
    const int64_t *out = j->y->dims;
    for (int64_t i = begin; i < end; i++) {
        const int64_t column = i % out[3], row = i / out[3] % out[2], channel = i / out[3] / out[2] % out[1],
                      r = i / out[3] / out[2] / out[1];
        const int64_t plane = ortc_load_i64(j->batch->data, ORTC_I64, r) * out[1] + channel;
        const region g = region_of(j, r);
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

static ortc_status roi_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const char *mode = ortc_node_string(n, "mode", "avg"),
               *coordinates = ortc_node_string(n, "coordinate_transformation_mode", "half_pixel");
    const bool half_pixel = !strcmp(coordinates, "half_pixel");
    if ((strcmp(mode, "avg") != 0 && strcmp(mode, "max") != 0) ||
        (!half_pixel && strcmp(coordinates, "output_half_pixel") != 0))
        return ortc_prep_fail(prep, ORTC_INVALID_MODEL,
                              "attributes mode '%s' and coordinate_transformation_mode '%s' are not such",
                              mode, coordinates);
    roi_state *s = malloc(sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *s = (roi_state){half_pixel, !strcmp(mode, "max"), ortc_node_int(n, "sampling_ratio", 0),
                     (double)ortc_node_float(n, "spatial_scale", 1)};
    *out = s;
    return ORTC_OK;
}

static ortc_status roi_run(const void *state, const void *pstate, ortc_call *c)
{
    roi_job j = {state, &c->in[0], &c->in[1], &c->in[2], &c->out[0]};
    const int64_t count = ortc_view_count(j.y), regions = j.y->dims[0];
    double points = 1;
    if (count == 0) return ORTC_OK;
    if (j.x->dims[2] == 0 || j.x->dims[3] == 0)
        return ortc_call_fail(c, ORTC_SHAPE_MISMATCH, "there is no pixel to sample");
    for (int64_t r = 0; r < regions; r++) {
        const int64_t image = ortc_load_i64(j.batch->data, ORTC_I64, r);
        const region g = region_of(&j, r);
        if (image < 0 || image >= j.x->dims[0])
            return ortc_call_fail(c, ORTC_INVALID_ARGUMENT,
                                  "batch_indices[%lld] is %lld, there are %lld images", (long long)r,
                                  (long long)image, (long long)j.x->dims[0]);
        if (!(g.points[0] * g.points[1] <= MAX_POINTS))
            return ortc_call_fail(c, ORTC_LIMIT, "region %lld would be read at %g points a bin", (long long)r,
                                  g.points[0] * g.points[1]);
        points = fmax(points, g.points[0] * g.points[1]);
    }
    return ortc_parallel(c, count, ortc_grain(20 + 30 * points), roi_chunk, &j);
}

const ortc_kernel ortc_ref_roi_align = {.size = ORTC_SIZED(ortc_kernel),
                                        .name = "roi_align.ref",
                                        .prepare = roi_prepare,
                                        .run = roi_run};
