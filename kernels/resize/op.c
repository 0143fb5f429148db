/* kernels/resize/op.c: Resize: schema, shape, older forms. Upsample is Resize by its first name.
 *
 * Versions 10 and below have scales where roi is now, look from pixel to pixel without an offset (asymmetric)
 * and round nearest down, but up along an axis that becomes shorter (the standard's own case for version 10:
 * 1 2 3 4 by 0.6 is 1 3). The newest form has one rounding for all axes: constant scales choose it, those
 * that a run brings are taken to enlarge. An empty scales or sizes counts as left out, as version 11 asked
 * for.
 */
#include <math.h>

#include "kernels/resize/resize.h"

extern const ortc_kernel_table ortc_kernels_ref_resize, ortc_kernels_cpu_resize;

static const char *const modes[] = {"nearest", "linear", "cubic", NULL};
static const char *const coordinates[] = {"half_pixel",           "half_pixel_symmetric",
                                          "pytorch_half_pixel",   "align_corners",
                                          "asymmetric",           "tf_crop_and_resize",
                                          "tf_half_pixel_for_nn", /* until version 13 */ NULL};
static const char *const nearests[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil", NULL};
static const char *const aspects[] = {"stretch", "not_larger", "not_smaller", NULL};

static bool choice(const ortc_node *n, const char *name, const char *const *values, int *out,
                   const char **wrong)
{
    const char *given = ortc_node_string(n, name, values[0]);
    for (*out = 0; values[*out] && strcmp(given, values[*out]) != 0;) ++*out;
    if (!values[*out]) *wrong = name;
    return values[*out] != NULL;
}

bool ortc_resize_read(const ortc_node *n, ortc_resize_state *s, const char **wrong)
{
    size_t count;
    const int64_t *axes = ortc_node_ints(n, "axes", &count);
    *s = (ortc_resize_state){.antialias = ortc_node_int(n, "antialias", 0) != 0,
                             .exclude_outside = ortc_node_int(n, "exclude_outside", 0) != 0,
                             .cubic = (double)ortc_node_float(n, "cubic_coeff_a", -0.75F),
                             .extrapolation = (double)ortc_node_float(n, "extrapolation_value", 0),
                             .n_axes = axes ? (int32_t)count : -1};
    *wrong = "axes";
    if (axes && count > ORTC_RANK_LIMIT) return false;
    for (size_t i = 0; axes && i < count; i++) {
        if (axes[i] < -ORTC_RANK_LIMIT || axes[i] >= ORTC_RANK_LIMIT) return false;
        s->axes[i] = (int32_t)axes[i];
    }
    return choice(n, "mode", modes, &s->mode, wrong) &&
           choice(n, "coordinate_transformation_mode", coordinates, &s->coordinate, wrong) &&
           choice(n, "nearest_mode", nearests, &s->nearest, wrong) &&
           choice(n, "keep_aspect_ratio_policy", aspects, &s->aspect, wrong);
}

int64_t ortc_resize_extent(int64_t in, double scale, double start, double end)
{
    const double extent = floor((double)in * (end - start) * scale);
    return extent >= 0 && extent < 4e18 ? (int64_t)extent : -1;
}

double ortc_resize_common(int aspect, int64_t count, const int64_t *sizes, const int64_t *in)
{
    double common = aspect == ORTC_ASPECT_NOT_LARGER ? INFINITY : 0;
    for (int64_t i = 0; i < count; i++) {
        const double scale = in[i] ? (double)sizes[i] / (double)in[i] : 1;
        common = aspect == ORTC_ASPECT_NOT_LARGER ? fmin(common, scale) : fmax(common, scale);
    }
    return common;
}

/* ---- Shape --------------------------------------------------------------------------------------------- */

/* An optional input that is there and not empty. */
static bool is_given(const ortc_port *p) { return p->type && !(p->rank == 1 && p->dims[0] == 0); }

static ortc_dim scaled(ortc_infer *c, ortc_dim in, double scale, double start, double end)
{
    const double whole = 1 / scale;
    if (in >= 0) {
        const int64_t extent = ortc_resize_extent(in, scale, start, end);
        return extent >= 0 ? extent : ORTC_DIM_UNKNOWN;
    }
    if (start != 0 || end != 1) return ORTC_DIM_UNKNOWN;
    if (scale == floor(scale) && scale < 1e6) return ortc_dim_mul(c, in, (int64_t)scale);
    return whole == floor(whole) && whole < 1e6 ? ortc_dim_div(c, in, (int64_t)whole) : ORTC_DIM_UNKNOWN;
}

/* Element i of a constant input of floats. */
static double element(const ortc_port *p, int64_t i, double otherwise)
{
    return p->data ? ortc_load_f64(p->data, p->dtype, i) : otherwise;
}

static ortc_status infer_sizes(ortc_infer *c, const ortc_resize_state *s, const ortc_port *x,
                               const int32_t *axes, int64_t count, ortc_dim *dims)
{
    int64_t n, sizes[ORTC_RANK_LIMIT], in[ORTC_RANK_LIMIT];
    bool numbers = true;
    const ortc_dim *v = ortc_infer_vector(c, 3, &n);
    if (v && n != count)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "sizes has %lld elements for %lld axes", (long long)n,
                               (long long)count);
    for (int64_t i = 0; i < count; i++) {
        if (v && ortc_dim_is_number(v[i]) && v[i] < 0)
            return ortc_infer_fail(c, ORTC_INVALID_ARGUMENT, "sizes[%lld] is %lld", (long long)i,
                                   (long long)v[i]);
        dims[axes[i]] = v ? v[i] : ORTC_DIM_UNKNOWN;
        sizes[i] = v ? v[i] : -1;
        in[i] = x->dims[axes[i]];
        numbers &= sizes[i] >= 0 && in[i] >= 0;
    }
    for (int64_t i = 0; s->aspect != ORTC_ASPECT_STRETCH && i < count; i++)
        dims[axes[i]] = !numbers ? ORTC_DIM_UNKNOWN
                                 : (int64_t)floor(
                                       ortc_resize_common(s->aspect, count, sizes, in) * (double)in[i] + 0.5);
    return ORTC_OK;
}

static ortc_status infer_scales(ortc_infer *c, const ortc_resize_state *s, const ortc_port *x,
                                const int32_t *axes, int64_t count, ortc_dim *dims)
{
    const ortc_port roi = ortc_infer_in(c, 1), scales = ortc_infer_in(c, 2);
    const bool crop = s->coordinate == ORTC_COORDINATE_CROP;
    if (scales.rank == 1 && scales.dims[0] >= 0 && scales.dims[0] != count)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "scales has %lld elements for %lld axes",
                               (long long)scales.dims[0], (long long)count);
    if (crop && roi.rank == 1 && roi.dims[0] >= 0 && roi.dims[0] != 2 * count)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "roi has %lld elements for %lld axes",
                               (long long)roi.dims[0], (long long)count);
    for (int64_t i = 0; i < count; i++) {
        const double scale = element(&scales, i, 1);
        if (!(scale > 0))
            return ortc_infer_fail(c, ORTC_INVALID_ARGUMENT, "scales[%lld] is %g", (long long)i, scale);
        if (!scales.data || (crop && !roi.data))
            dims[axes[i]] = ORTC_DIM_UNKNOWN;
        else
            dims[axes[i]] = scaled(c, x->dims[axes[i]], scale, crop ? element(&roi, i, 0) : 0,
                                   crop ? element(&roi, count + i, 1) : 1);
    }
    return ORTC_OK;
}

static ortc_status infer_resize(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0), roi = ortc_infer_in(c, 1), scales = ortc_infer_in(c, 2),
                    sizes = ortc_infer_in(c, 3);
    const ortc_node *n = ortc_infer_node(c);
    const char *wrong = NULL;
    ortc_resize_state s;
    ortc_dim dims[ORTC_RANK_LIMIT];
    int32_t axes[ORTC_RANK_LIMIT];
    bool seen[ORTC_RANK_LIMIT] = {false};
    if (!ortc_resize_read(n, &s, &wrong))
        return ortc_infer_fail(c, ORTC_INVALID_MODEL, "attribute %s is '%s', which it cannot be", wrong,
                               ortc_node_string(n, wrong, "a list"));
    if (s.coordinate == ORTC_COORDINATE_CROP && !is_given(&roi))
        return ortc_infer_fail(c, ORTC_INVALID_MODEL, "tf_crop_and_resize needs the input roi");
    if (is_given(&scales) == is_given(&sizes))
        return ortc_infer_fail(c, ORTC_INVALID_MODEL, "one of scales and sizes must be given, %s is",
                               is_given(&scales) ? "not both, as it" : "and neither");
    if ((is_given(&scales) && scales.rank >= 0 && scales.rank != 1) ||
        (is_given(&sizes) && sizes.rank >= 0 && sizes.rank != 1) ||
        (is_given(&roi) && roi.rank >= 0 && roi.rank != 1))
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "roi, scales and sizes must be vectors");
    if (x.rank < 0) return ortc_infer_out(c, 0, x.dtype, -1, NULL);
    const int64_t count = s.n_axes < 0 ? x.rank : s.n_axes;
    for (int64_t i = 0; i < count; i++) {
        axes[i] = 0;
        ORTC_TRY(ortc_infer_axis(c, s.n_axes < 0 ? i : s.axes[i], x.rank, &axes[i]));
        if (seen[axes[i]]) return ortc_infer_fail(c, ORTC_INVALID_MODEL, "axis %d is given twice", axes[i]);
        seen[axes[i]] = true;
    }
    ortc_copy_dims(dims, x.dims, x.rank);
    ORTC_TRY(is_given(&sizes) ? infer_sizes(c, &s, &x, axes, count, dims)
                              : infer_scales(c, &s, &x, axes, count, dims));
    for (int32_t d = 0; d < x.rank; d++)
        if (x.dims[d] == 0 && dims[d] > 0)
            return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "axis %d has no elements to make %lld of", d,
                                   (long long)dims[d]);
    return ortc_infer_out(c, 0, x.dtype, x.rank, dims);
}

/* ---- Older forms --------------------------------------------------------------------------------------- */

static ortc_status scales_in(ortc_lift *l, const float *scales, int64_t count)
{
    return ortc_lift_const_in(l, 2, ORTC_F32, 1, &count, scales);
}

/* Nearest rounded up along axes that shrink, and down along others. Where it is both, or where scales come
 * with the run, the two are a Resize each. */
static ortc_status as_it_was(ortc_lift *l)
{
    if (!strcmp(ortc_node_string(ortc_lift_node(l), "mode", "nearest"), "bilinear"))
        ORTC_TRY(ortc_lift_set_string(l, "mode", "linear"));
    ORTC_TRY(ortc_lift_set_string(l, "coordinate_transformation_mode", "asymmetric"));
    const ortc_port scales = ortc_node_in(ortc_lift_node(l), 2);
    bool shorter = false, longer = false;
    for (int64_t i = 0; scales.data && scales.rank == 1 && i < scales.dims[0]; i++) {
        const double scale = ortc_load_f64(scales.data, scales.dtype, i);
        shorter |= scale < 1;
        longer |= scale > 1;
    }
    const bool unknown = !scales.data && ortc_lift_version(l) == 10; /* Upsample never shrinks */
    if (((shorter && longer) || unknown) &&
        !strcmp(ortc_node_string(ortc_lift_node(l), "mode", "nearest"), "nearest"))
        return ortc_lift_write(l, "longer = Max(scales, 1:f32)\n"
                                  "shorter = Min(scales, 1:f32)\n"
                                  "x = Resize(X, _, longer) coordinate_transformation_mode='asymmetric' "
                                  "nearest_mode='floor'\n"
                                  "Y = Resize(x, _, shorter) coordinate_transformation_mode='asymmetric' "
                                  "nearest_mode='ceil'");
    return ortc_lift_set_string(l, "nearest_mode", shorter ? "ceil" : "floor");
}

static ortc_status lift_resize(ortc_lift *l)
{
    ORTC_TRY(ortc_lift_move_in(l, 1, 2));
    return as_it_was(l);
}

/* Upsample-9 has scales as an input, 7 as a list, 1 a factor for the height and one for the width. */
static ortc_status lift_upsample(ortc_lift *l)
{
    const ortc_node *n = ortc_lift_node(l);
    size_t count;
    const float *scales = ortc_node_floats(n, "scales", &count);
    const float four[4] = {1, 1, ortc_node_float(n, "height_scale", 1), ortc_node_float(n, "width_scale", 1)};
    if (ortc_lift_version(l) == 9)
        ORTC_TRY(ortc_lift_move_in(l, 1, 2));
    else
        ORTC_TRY(scales ? scales_in(l, scales, (int64_t)count) : scales_in(l, four, 4));
    ortc_lift_drop_attr(l, "scales");
    ortc_lift_drop_attr(l, "height_scale");
    ortc_lift_drop_attr(l, "width_scale");
    ORTC_TRY(ortc_lift_rename(l, "Resize"));
    return as_it_was(l);
}

#define PLAIN "num,bool,string,c64,c128"
static const ortc_op ops[] = {
    ORTC_OP("", "Resize", 19, 11, "18 13 11 10", "X:T1 roi:T2? scales:f32?! sizes:i64?!", "Y:T1",
            "antialias:i=0 axes:is? coordinate_transformation_mode:s=half_pixel cubic_coeff_a:f=-0.75 "
            "exclude_outside:i=0 "
            "extrapolation_value:f=0 keep_aspect_ratio_policy:s=stretch mode:s=nearest "
            "nearest_mode:s=round_prefer_floor",
            "T1=" PLAIN " T2=f16,f32,f64", infer_resize, lift_resize, 0),
    ORTC_OP("", "Upsample", 10, 10, "9 7 1", "X:T scales:f32", "Y:T",
            "height_scale:f? mode:s=nearest scales:fs? width_scale:f?", "T=" PLAIN, infer_resize,
            lift_upsample, 0),
};
ORTC_FAMILY(resize, ops, &ortc_kernels_ref_resize, &ortc_kernels_cpu_resize);
