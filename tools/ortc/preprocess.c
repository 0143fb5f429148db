/* tools/ortc/preprocess.c: pixels become a tensor: grey or colour, resized, scaled, laid out as the model
 * wants.
 *
 * All in double, one picture at a time: this is for feeding a model by hand, and right is worth more here
 * than fast.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "element.h"
#include "image.h"

/* Which dimension of the input is which; -1: it has none of that kind. */
typedef struct axes {
    int n, c, h, w;
} axes;

static bool is_channels(int64_t extent) { return extent == 1 || extent == 3; }

static bool find_axes(const ortc_io *io, const int64_t *dims, int layout, axes *out)
{
    bool last;
    switch (io->rank) {
    case 2: *out = (axes){-1, -1, 0, 1}; return true;
    case 3: /* C,H,W or H,W,C or, when neither end can be channels, N,H,W */
        if (layout == LAYOUT_NCHW || (layout == LAYOUT_GUESS && is_channels(dims[0])))
            *out = (axes){-1, 0, 1, 2};
        else if (layout == LAYOUT_NHWC || is_channels(dims[2]))
            *out = (axes){-1, 2, 0, 1};
        else
            *out = (axes){0, -1, 1, 2};
        return true;
    case 4:
        last = layout == LAYOUT_NHWC ||
               (layout == LAYOUT_GUESS && !is_channels(dims[1]) && is_channels(dims[3]));
        *out = last ? (axes){0, 3, 1, 2} : (axes){0, 1, 2, 3};
        return true;
    default: return false;
    }
}

/* Samples as doubles, `channels` of them a pixel: luma weights of Rec. 601 for grey, copies for colour. */
static double *to_planes(const image *im, uint32_t channels)
{
    size_t pixels = (size_t)im->width * im->height;
    double *planes = mem_grow(NULL, pixels * channels, sizeof *planes);
    for (size_t i = 0; i < pixels; i++) {
        const uint8_t *p = im->pixels + i * im->channels;
        if (channels == 1)
            planes[i] = im->channels == 1 ? p[0] : floor(0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2] + 0.5);
        else
            for (uint32_t c = 0; c < channels; c++) planes[c * pixels + i] = p[im->channels == 1 ? 0 : c];
    }
    return planes;
}

/* Bilinear along one axis: `lines` lines of `from` samples that lie `step` apart. When shrinking, the
 * triangle widens with the factor, so that every sample counts (what Pillow and torchvision's antialias
 * do). */
static void resize_axis(const double *in, double *out, size_t from, size_t to, size_t step, size_t lines,
                        size_t in_line, size_t out_line)
{
    double factor = (double)from / (double)to, reach = factor > 1 ? factor : 1;
    for (size_t i = 0; i < to; i++) {
        double center = ((double)i + 0.5) * factor;
        size_t low = center - reach > 0 ? (size_t)(center - reach + 0.5) : 0;
        size_t high = (size_t)(center + reach + 0.5);
        high = high > from ? from : high;
        double total = 0;
        for (size_t k = low; k < high; k++) total += fmax(0, 1 - fabs(((double)k + 0.5 - center) / reach));
        for (size_t line = 0; line < lines; line++) {
            double sum = 0;
            for (size_t k = low; k < high; k++)
                sum += in[line * in_line + k * step] * fmax(0, 1 - fabs(((double)k + 0.5 - center) / reach));
            out[line * out_line + i * step] = sum / total;
        }
    }
}

static double *resize(double *planes, uint32_t channels, size_t w, size_t h, size_t to_w, size_t to_h)
{
    double *wide = mem_grow(NULL, channels * h * to_w, sizeof *wide);
    resize_axis(planes, wide, w, to_w, 1, channels * h, w, to_w);
    free(planes);
    double *out = mem_grow(NULL, channels * to_h * to_w, sizeof *out);
    for (uint32_t c = 0; c < channels; c++)
        resize_axis(wide + c * h * to_w, out + c * to_h * to_w, h, to_h, to_w, to_w, 1, 1);
    free(wide);
    return out;
}

static ortc_status check_options(const image_options *o, bool is_float, uint32_t channels, ortc_dtype t,
                                 ortc_error *error)
{
    if (!is_float && (o->has_scale || o->n_mean || o->n_std))
        return fail(error, ORTC_INVALID_ARGUMENT,
                    "it takes %s, the samples as they are: --scale, --mean and --std are for float inputs",
                    ortc_dtype_name(t));
    size_t wrong = o->n_mean > 1 && o->n_mean != channels ? o->n_mean
                   : o->n_std > 1 && o->n_std != channels ? o->n_std
                                                          : 0;
    if (wrong)
        return fail(error, ORTC_INVALID_ARGUMENT,
                    "--mean and --std expect 1 or %u values here, one per channel, got %zu", channels, wrong);
    return ORTC_OK;
}

/* Writes one picture's planes into the tensor. */
static bool store(ortc_value *value, const double *planes, const axes *a, uint32_t channels, int64_t n,
                  const image_options *o, bool is_float)
{
    const int64_t *dims = ortc_value_dims(value);
    int64_t stride[4] = {0}, at = 1, height = dims[a->h], width = dims[a->w];
    for (int32_t i = ortc_value_rank(value) - 1; i >= 0; i--) {
        stride[i] = at;
        at *= dims[i];
    }
    bool exact = true;
    for (int64_t c = 0; c < channels; c++)
        for (int64_t y = 0; y < height; y++)
            for (int64_t x = 0; x < width; x++) {
                double v = planes[(c * height + y) * width + x];
                if (is_float)
                    v = (v * o->scale - (o->n_mean ? o->mean[o->n_mean > 1 ? c : 0] : 0)) /
                        (o->n_std ? o->std[o->n_std > 1 ? c : 0] : 1);
                else
                    v = nearbyint(v);
                int64_t i = (a->n >= 0 ? n * stride[a->n] : 0) + (a->c >= 0 ? c * stride[a->c] : 0) +
                            y * stride[a->h] + x * stride[a->w];
                exact &= element_set(ortc_value_dtype(value), ortc_value_data(value), i, v);
            }
    return exact || is_float;
}

ortc_status image_tensor(const image *images, size_t count, const ortc_io *io, const int64_t *dims,
                         const image_options *o, ortc_value **out, ortc_error *error)
{
    *out = NULL;
    axes a;
    bool is_float = dtype_is_float(io->dtype);
    if (!find_axes(io, dims, o->layout, &a))
        return fail(error, ORTC_SHAPE_MISMATCH,
                    "a picture needs an input of rank 2 to 4, this one has rank %d", io->rank);
    if (!is_float && !dtype_is_integer(io->dtype))
        return fail(error, ORTC_TYPE_MISMATCH, "a picture cannot become %s", ortc_dtype_name(io->dtype));
    int64_t channels = a.c < 0 ? 1 : dims[a.c] >= 0 ? dims[a.c] : images[0].channels;
    if (!is_channels(channels))
        return fail(error, ORTC_SHAPE_MISMATCH,
                    "a picture has 1 or 3 channels, but dimension %d of the input is %lld (--layout nchw or "
                    "nhwc says "
                    "which dimension is channels)",
                    a.c, (long long)channels);
    ortc_status s = check_options(o, is_float, (uint32_t)channels, io->dtype, error);
    if (s != ORTC_OK) return s;
    int64_t height = dims[a.h] >= 0 ? dims[a.h] : images[0].height;
    int64_t width = dims[a.w] >= 0 ? dims[a.w] : images[0].width;
    for (size_t i = 0; i < count && o->resize == RESIZE_NONE; i++)
        if (images[i].height != height || images[i].width != width)
            return fail(error, ORTC_SHAPE_MISMATCH,
                        "the picture is %u x %u pixels, the input takes %lld x %lld: pass --resize bilinear",
                        images[i].width, images[i].height, (long long)width, (long long)height);
    if (height <= 0 || width <= 0 || height > 1 << 20 || width > 1 << 20 || height * width > 1 << 28)
        return fail(error, ORTC_SHAPE_MISMATCH, "pictures are not resized to %lld x %lld pixels",
                    (long long)width, (long long)height);
    int64_t batch = a.n < 0 ? 1 : dims[a.n] >= 0 ? dims[a.n] : (int64_t)count;
    if (batch != (int64_t)count)
        return fail(error, ORTC_SHAPE_MISMATCH, "the input takes %lld picture%s at once, %zu came",
                    (long long)batch, batch == 1 ? "" : "s", count);
    int64_t shape[4] = {0};
    shape[a.h] = height;
    shape[a.w] = width;
    if (a.n >= 0) shape[a.n] = batch;
    if (a.c >= 0) shape[a.c] = channels;
    s = ortc_value_create(io->dtype, io->rank, shape, out, error);
    if (s != ORTC_OK) return s;
    memset(ortc_value_data(*out), 0, ortc_value_bytes(*out));
    for (size_t i = 0; i < count && s == ORTC_OK; i++) {
        double *planes = to_planes(&images[i], (uint32_t)channels);
        if (images[i].height != height || images[i].width != width)
            planes = resize(planes, (uint32_t)channels, images[i].width, images[i].height, (size_t)width,
                            (size_t)height);
        if (!store(*out, planes, &a, (uint32_t)channels, (int64_t)i, o, is_float))
            s = fail(error, ORTC_TYPE_MISMATCH, "samples of 0 to 255 do not fit %s",
                     ortc_dtype_name(io->dtype));
        free(planes);
    }
    if (s != ORTC_OK) {
        ortc_value_release(*out);
        *out = NULL;
    }
    return s;
}
