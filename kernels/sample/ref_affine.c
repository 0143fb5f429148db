/* kernels/sample/ref_affine.c: AffineGrid on ref: the positions of an image's elements, -1 .. 1 along every
 * dim, last dim first, moved by a matrix.
 */
#include <stdlib.h>

#include "kernels/common/shape.h"

extern const ortc_kernel ortc_ref_affine_grid;

typedef struct affine_job {
    const ortc_view *theta;
    ortc_view *y;
    bool corners; /* -1 and 1 are the centers of the outer elements, not their outer edges */
} affine_job;

static double position(int64_t i, int64_t n, bool corners)
{
    if (corners) return n > 1 ? 2 * (double)i / (double)(n - 1) - 1 : -1;
    return (2 * (double)i + 1) / (double)n - 1;
}

static void affine_rows(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const affine_job *j = arg;
    const int32_t k = j->y->rank - 2;
    const int64_t *dims = j->y->dims, width = dims[k];
    for (int64_t i = begin; i < end; i++) { /* positions that differ in the last dim, k coordinates each */
        double first[3], step[3];
        int64_t image = i;
        for (int32_t d = k - 1; d > 0; d--) image /= dims[d];
        for (int32_t r = 0; r < k; r++) {
            const int64_t row = (image * k + r) * (k + 1);
            first[r] = ortc_load_f64(j->theta->data, j->theta->dtype, row + k);
            step[r] = ortc_load_f64(j->theta->data, j->theta->dtype, row);
            int64_t rest = i;
            for (int32_t d = k - 1; d > 0; d--) {
                first[r] += position(rest % dims[d], dims[d], j->corners) *
                            ortc_load_f64(j->theta->data, j->theta->dtype, row + k - d);
                rest /= dims[d];
            }
        }
        for (int64_t x = 0; x < width; x++) {
            const double at = position(x, width, j->corners);
            for (int32_t r = 0; r < k; r++)
                ortc_store_f64(j->y->data, j->y->dtype, (i * width + x) * k + r, first[r] + at * step[r]);
        }
    }
}

static ortc_status affine_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    bool *corners = malloc(sizeof *corners);
    if (!corners) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *corners = ortc_node_int(n, "align_corners", 0) != 0;
    *out = corners;
    return ORTC_OK;
}

static ortc_status affine_run(const void *state, const void *pstate, ortc_call *c)
{
    affine_job j = {&c->in[0], &c->out[0], *(const bool *)state};
    const int64_t width = j.y->dims[j.y->rank - 2], count = ortc_view_count(j.y);
    return count ? ortc_parallel(c, count / (j.y->rank - 2) / width, ortc_grain(20 * (double)width),
                                 affine_rows, &j)
                 : ORTC_OK;
}

const ortc_kernel ortc_ref_affine_grid = {.size = ORTC_SIZED(ortc_kernel),
                                          .name = "affine_grid.ref",
                                          .prepare = affine_prepare,
                                          .run = affine_run};
