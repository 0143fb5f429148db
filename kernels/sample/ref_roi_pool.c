/* kernels/sample/ref_roi_pool.c: MaxRoiPool on ref: a region, rounded to whole pixels, is cut into bins, and
 * the largest pixel of each is the result; a bin without pixels gives 0.
 */
#include <math.h>
#include <stdlib.h>

#include "kernels/sample/roi.h"

extern const ortc_kernel ortc_ref_max_roi_pool;

typedef struct roi_job {
    const ortc_view *x, *rois;
    ortc_view *y;
    double scale;
} roi_job;

static double clamp(double v, int64_t most) { return v > 0 ? v < (double)most ? v : (double)most : 0; }

void ortc_roi_pool_bin(double scale, const ortc_view *rois, int64_t r, int k, int64_t i, int64_t bins,
                       int64_t extent, int64_t *begin, int64_t *end)
{
    const double start = round(ortc_load_f64(rois->data, rois->dtype, 5 * r + 2 - k) * scale),
                 last = round(ortc_load_f64(rois->data, rois->dtype, 5 * r + 4 - k) * scale),
                 length = fmax(last - start + 1, 1) / (double)bins;
    *begin = (int64_t)clamp(start + floor((double)i * length), extent);
    *end = (int64_t)clamp(start + ceil((double)(i + 1) * length), extent);
}

static void roi_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const roi_job *j = arg;
    const int64_t *in = j->x->dims, *out = j->y->dims;
    for (int64_t i = begin; i < end; i++) {
        const int64_t r = i / out[3] / out[2] / out[1], channel = i / out[3] / out[2] % out[1],
                      image = (int64_t)ortc_load_f64(j->rois->data, j->rois->dtype, 5 * r),
                      plane = image * in[1] + channel;
        int64_t top, bottom, left, right;
        double most = 0;
        ortc_roi_pool_bin(j->scale, j->rois, r, 0, i / out[3] % out[2], out[2], in[2], &top, &bottom);
        ortc_roi_pool_bin(j->scale, j->rois, r, 1, i % out[3], out[3], in[3], &left, &right);
        for (int64_t y = top; y < bottom; y++)
            for (int64_t x = left; x < right; x++) {
                const double v = ortc_load_f64(j->x->data, j->x->dtype, (plane * in[2] + y) * in[3] + x);
                if ((y == top && x == left) || v > most) most = v;
            }
        ortc_store_f64(j->y->data, j->y->dtype, i, most);
    }
}

ortc_status ortc_roi_pool_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    double *scale = malloc(sizeof *scale);
    if (!scale) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *scale = (double)ortc_node_float(n, "spatial_scale", 1);
    *out = scale;
    return ORTC_OK;
}

ortc_status ortc_roi_pool_check(ortc_call *c)
{
    for (int64_t r = 0; r < c->out[0].dims[0]; r++) {
        const double image = ortc_load_f64(c->in[1].data, c->in[1].dtype, 5 * r);
        if (!(image >= 0 && image < (double)c->in[0].dims[0]))
            return ortc_call_fail(c, ORTC_INVALID_ARGUMENT, "region %lld is of image %g, there are %lld",
                                  (long long)r, image, (long long)c->in[0].dims[0]);
    }
    return ORTC_OK;
}

static ortc_status roi_run(const void *state, const void *pstate, ortc_call *c)
{
    roi_job j = {&c->in[0], &c->in[1], &c->out[0], *(const double *)state};
    if (ortc_view_count(j.y) == 0) return ORTC_OK;
    ORTC_TRY(ortc_roi_pool_check(c));
    const double pixels = (double)j.x->dims[2] * (double)j.x->dims[3] /
                          ((double)j.y->dims[2] * (double)j.y->dims[3]);
    return ortc_parallel(c, ortc_view_count(j.y), ortc_grain(60 + 5 * pixels), roi_chunk, &j);
}

const ortc_kernel ortc_ref_max_roi_pool = {.size = ORTC_SIZED(ortc_kernel),
                                           .name = "max_roi_pool.ref",
                                           .prepare = ortc_roi_pool_prepare,
                                           .run = roi_run};
