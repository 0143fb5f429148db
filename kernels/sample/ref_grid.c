/* kernels/sample/ref_grid.c: GridSample on ref, and the family's table: for each dim the pixels around the
 * coordinate and their weights, then the sum over all combinations, in double.
 *
 * Coordinates are rounded to f32, which they are computed in elsewhere too, so that halves are halves. NaN
 * lies before the first pixel.
 */
#include <math.h>
#include <stdlib.h>

#include "kernels/common/strings.h"
#include "kernels/sample/grid.h"

extern const ortc_kernel ortc_ref_roi_align;    /* ref_roi.c */
extern const ortc_kernel ortc_ref_max_roi_pool; /* ref_roi_pool.c */
extern const ortc_kernel ortc_ref_affine_grid;  /* ref_affine.c */
extern const ortc_kernel ortc_ref_deform_conv;  /* ref_deform.c */

typedef struct grid_job {
    const ortc_grid_state *s;
    const ortc_view *x, *grid;
    ortc_view *y;
    int64_t out_count, in_count; /* positions of a channel */
} grid_job;

static double reflect(double x, double low, double high)
{
    const double range = high - low;
    if (!(range > 0)) return low;
    const double off = fmod(fabs(x - low), 2 * range);
    return low + (off > range ? 2 * range - off : off);
}

static int64_t pixel(const ortc_grid_state *s, double i, int64_t n, double low, double high)
{
    if (s->padding == ORTC_GRID_ZEROS) return i >= 0 && i < (double)n ? (int64_t)i : -1;
    if (s->padding == ORTC_GRID_REFLECTION && (i < 0 || i > (double)(n - 1)))
        i = trunc(reflect(i, low, high));
    return i < 0 ? 0 : i > (double)(n - 1) ? n - 1 : (int64_t)i;
}

ortc_grid_taps ortc_grid_around(const ortc_grid_state *s, double normalized, int64_t n)
{
    const double low = s->corners ? 0 : -0.5, high = (double)n - (s->corners ? 1 : 0.5);
    double x = s->corners ? (normalized + 1) / 2 * (double)(n - 1) : ((normalized + 1) * (double)n - 1) / 2;
    ortc_grid_taps t = {.n = ortc_grid_taps_of(s)};
    x = (double)(float)x;
    x = x > -1e15 ? x < 1e15 ? x : 1e15 : -1e15; /* also not a number */
    if (s->mode == ORTC_GRID_NEAREST) x = nearbyint(x);
    if (x < low || x > high)
        x = s->padding == ORTC_GRID_BORDER       ? fmin(fmax(x, 0), (double)(n - 1))
            : s->padding == ORTC_GRID_REFLECTION ? reflect(x, low, high)
                                                 : x;
    const double first = s->mode == ORTC_GRID_NEAREST ? trunc(x) : floor(x) - (s->mode == ORTC_GRID_CUBIC),
                 f = x - floor(x), a = -0.75;
    const double far = f + 1, other = 2 - f;
    const double cubic[4] = {((a * far - 5 * a) * far + 8 * a) * far - 4 * a,
                             ((a + 2) * f - (a + 3)) * f * f + 1,
                             ((a + 2) * (1 - f) - (a + 3)) * (1 - f) * (1 - f) + 1,
                             ((a * other - 5 * a) * other + 8 * a) * other - 4 * a};
    for (int k = 0; k < t.n; k++) {
        t.at[k] = pixel(s, first + k, n, low, high);
        t.weight[k] = s->mode == ORTC_GRID_NEAREST  ? 1
                      : s->mode == ORTC_GRID_LINEAR ? (k ? f : 1 - f)
                                                    : cubic[k];
    }
    return t;
}

/* The sum over the taps of dims d .. k; at: the pixel so far. */
static double mix(const grid_job *j, const ortc_grid_taps *t, int32_t d, int64_t at)
{
    if (d == j->x->rank - 2) return ortc_load_f64(j->x->data, j->x->dtype, at);
    double sum = 0;
    for (int k = 0; k < t[d].n; k++)
        if (t[d].at[k] >= 0 && t[d].weight[k] != 0)
            sum += t[d].weight[k] * mix(j, t, d + 1, at * j->x->dims[d + 2] + t[d].at[k]);
    return sum;
}

static void grid_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    static const uint64_t zero[2];
    const grid_job *j = arg;
    const int32_t spatial = j->x->rank - 2;
    ortc_grid_taps t[ORTC_RANK_LIMIT];
    for (int64_t i = begin; i < end; i++) {
        const int64_t plane = i / j->out_count,
                      g0 = (plane / j->x->dims[1] * j->out_count + i % j->out_count) * spatial;
        int64_t at = plane;
        for (int32_t d = 0; d < spatial; d++) /* coordinates come last dim first */
            t[d] = ortc_grid_around(j->s, ortc_load_f64(j->grid->data, j->grid->dtype, g0 + spatial - 1 - d),
                                    j->x->dims[d + 2]);
        if (j->s->mode != ORTC_GRID_NEAREST) {
            ortc_store_f64(j->y->data, j->y->dtype, i, mix(j, t, 0, plane));
            continue;
        }
        for (int32_t d = 0; d < spatial && at >= 0; d++)
            at = t[d].at[0] < 0 ? -1 : at * j->x->dims[d + 2] + t[d].at[0];
        ortc_move_element(j->y->data, i, at < 0 ? zero : j->x->data, at < 0 ? 0 : at,
                          ortc_dtype_bits(j->y->dtype));
    }
}

ortc_status ortc_grid_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    static const char *const modes[] = {"nearest", "linear", "cubic"}, *const paddings[] = {"zeros", "border",
                                                                                            "reflection"};
    const char *mode = ortc_node_string(n, "mode", "linear"),
               *padding = ortc_node_string(n, "padding_mode", "zeros");
    ortc_grid_state s = {.corners = ortc_node_int(n, "align_corners", 0) != 0};
    while (s.mode < 3 && strcmp(mode, modes[s.mode]) != 0) s.mode++;
    while (s.padding < 3 && strcmp(padding, paddings[s.padding]) != 0) s.padding++;
    if (s.mode == 3 || s.padding == 3)
        return ortc_prep_fail(prep, ORTC_INVALID_MODEL,
                              "attributes mode '%s' and padding_mode '%s' are not such", mode, padding);
    ortc_grid_state *state = malloc(sizeof *state);
    if (!state) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *state = s;
    *out = state;
    return ORTC_OK;
}

static ortc_status grid_supports(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    const ortc_dtype t = ortc_node_in(n, 0).dtype;
    if (ortc_class_of(t) == ORTC_CLASS_NONE && strcmp(ortc_node_string(n, "mode", "linear"), "nearest") != 0)
        return ortc_no(why, "there is nothing between two elements of type %s; mode must be nearest",
                       ortc_dtype_name(t));
    return ORTC_OK;
}

static ortc_status grid_run(const void *state, const void *pstate, ortc_call *c)
{
    if (c->in[0].dtype == ORTC_STRING) return ortc_run_on_strings(grid_run, state, pstate, c);
    grid_job j = {state, &c->in[0], &c->in[1], &c->out[0], 1, 1};
    const int64_t count = ortc_view_count(j.y);
    if (count == 0) return ORTC_OK;
    for (int32_t d = 2; d < j.x->rank; d++) {
        j.out_count *= j.y->dims[d];
        j.in_count *= j.x->dims[d];
    }
    if (j.in_count == 0) return ortc_call_fail(c, ORTC_SHAPE_MISMATCH, "there is no pixel to sample");
    return ortc_parallel(c, count,
                         ortc_grain(pow(j.s->mode == ORTC_GRID_CUBIC ? 4 : 2, j.x->rank - 2) * 10 + 100),
                         grid_chunk, &j);
}

static const ortc_kernel grid_ref = {.size = ORTC_SIZED(ortc_kernel),
                                     .name = "grid_sample.ref",
                                     .supports = grid_supports,
                                     .prepare = ortc_grid_prepare,
                                     .run = grid_run};

#define PLAIN \
    (ORTC_TYPES_NUM | ORTC_TYPE(ORTC_BOOL) | ORTC_TYPE(ORTC_STRING) | ORTC_TYPE(ORTC_C64) | \
     ORTC_TYPE(ORTC_C128))
ORTC_KERNELS(ref, sample, ORTC_KERNEL("GridSample", 22, ORTC_NEWEST, (PLAIN, ORTC_TYPES_FLOAT), &grid_ref),
             ORTC_KERNEL("RoiAlign", 22, ORTC_NEWEST, (ORTC_TYPES_FLOAT, ORTC_TYPE(ORTC_I64)),
                         &ortc_ref_roi_align),
             ORTC_KERNEL("MaxRoiPool", 22, ORTC_NEWEST, (ORTC_TYPES_FLOAT), &ortc_ref_max_roi_pool),
             ORTC_KERNEL("AffineGrid", 20, ORTC_NEWEST, (ORTC_TYPES_FLOAT, ORTC_TYPE(ORTC_I64)),
                         &ortc_ref_affine_grid),
             ORTC_KERNEL("DeformConv", 22, ORTC_NEWEST, (ORTC_TYPES_FLOAT), &ortc_ref_deform_conv));
