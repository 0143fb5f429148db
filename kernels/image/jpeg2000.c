/* kernels/image/jpeg2000.c: JPEG 2000 by OpenJPEG, in a .jp2 file or as a bare codestream: grey, RGB and
 * sYCC whose components have one size, of up to 16 bits, which are brought to 8. */
#include <stdlib.h>
#include <string.h>

#include <openjpeg.h>

#include "kernels/image/formats.h"

typedef struct source {
    const image_job *job;
    size_t at;
} source;

static OPJ_SIZE_T on_read(void *to, OPJ_SIZE_T bytes, void *arg)
{
    source *s = arg;
    const size_t left = s->job->bytes - s->at, n = bytes < left ? bytes : left;
    if (n == 0) return (OPJ_SIZE_T)-1;
    memcpy(to, s->job->data + s->at, n);
    s->at += n;
    return n;
}
static OPJ_OFF_T on_skip(OPJ_OFF_T bytes, void *arg)
{
    source *s = arg;
    if (bytes < 0 || (uint64_t)bytes > s->job->bytes - s->at) return -1;
    s->at += (size_t)bytes;
    return bytes;
}
static OPJ_BOOL on_seek(OPJ_OFF_T at, void *arg)
{
    source *s = arg;
    if (at < 0 || (uint64_t)at > s->job->bytes) return OPJ_FALSE;
    s->at = (size_t)at;
    return OPJ_TRUE;
}

static void on_error(const char *text, void *arg)
{
    image_fail(arg, "%.*s", (int)strcspn(text, "\r\n"), text);
}

static bool same_size(const opj_image_t *x, uint32_t channels)
{
    for (uint32_t c = 0; c < channels; c++) {
        const opj_image_comp_t *p = &x->comps[c];
        if (p->w != x->comps[0].w || p->h != x->comps[0].h || p->prec < 1 || p->prec > 16) return false;
    }
    return true;
}

static uint8_t sample(const opj_image_comp_t *p, size_t i)
{
    const int64_t most = ((int64_t)1 << p->prec) - 1,
                  v = (int64_t)p->data[i] + (p->sgnd ? (int64_t)1 << (p->prec - 1) : 0);
    return (uint8_t)(((v < 0 ? 0 : v > most ? most : v) * 255 + most / 2) / most);
}

static uint8_t clip(double v) { return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v + 0.5); }

static void of_ycc(uint8_t *p)
{
    const double y = p[0], b = p[1] - 128.0, r = p[2] - 128.0;
    p[0] = clip(y + 1.402 * r), p[1] = clip(y - 0.344136 * b - 0.714136 * r), p[2] = clip(y + 1.772 * b);
}

static bool take(image_job *j, const opj_image_t *x)
{
    const uint32_t channels = x->numcomps >= 3 ? 3 : 1;
    if (!same_size(x, channels))
        return image_fail(j, "its components differ in size, or have more than 16 bits");
    if (!image_begin(j, x->comps[0].w, x->comps[0].h, channels)) return false;
    const size_t count = (size_t)j->out->width * j->out->height;
    for (uint32_t c = 0; c < channels; c++) {
        if (!x->comps[c].data) return image_fail(j, "it is damaged");
        for (size_t i = 0; i < count; i++) j->out->pixels[i * channels + c] = sample(&x->comps[c], i);
    }
    for (size_t i = 0; channels == 3 && x->color_space == OPJ_CLRSPC_SYCC && i < count; i++)
        of_ycc(j->out->pixels + 3 * i);
    return true;
}

static bool decode(image_job *j, opj_codec_t *codec, opj_stream_t *stream, opj_image_t **x)
{
    opj_dparameters_t parameters;
    opj_set_default_decoder_parameters(&parameters);
    opj_set_error_handler(codec, on_error, j);
    if (!opj_setup_decoder(codec, &parameters) || !opj_read_header(stream, codec, x))
        return image_fail(j, "it is no JPEG 2000 picture, or is damaged");
    const opj_image_t *i = *x;
    const uint64_t width = i->x1 > i->x0 ? i->x1 - i->x0 : 0, height = i->y1 > i->y0 ? i->y1 - i->y0 : 0;
    if (i->numcomps < 1 || i->numcomps > 4 || width * height > j->max_pixels)
        return image_fail(j, "it has %u components of %llu x %llu pixels", i->numcomps,
                          (unsigned long long)width, (unsigned long long)height);
    return (opj_decode(codec, stream, *x) && opj_end_decompress(codec, stream)) ||
           image_fail(j, "it is damaged");
}

bool image_jpeg2000(image_job *j)
{
    source s = {j, 0};
    opj_codec_t *codec = opj_create_decompress(j->data[0] ? OPJ_CODEC_J2K : OPJ_CODEC_JP2);
    opj_stream_t *stream = opj_stream_default_create(OPJ_TRUE);
    opj_image_t *x = NULL;
    bool good = false;
    if (codec && stream) {
        opj_stream_set_user_data(stream, &s, NULL);
        opj_stream_set_user_data_length(stream, j->bytes);
        opj_stream_set_read_function(stream, on_read);
        opj_stream_set_skip_function(stream, on_skip);
        opj_stream_set_seek_function(stream, on_seek);
        good = decode(j, codec, stream, &x) && take(j, x);
    } else {
        image_fail(j, "out of memory");
    }
    if (x) opj_image_destroy(x);
    if (stream) opj_stream_destroy(stream);
    if (codec) opj_destroy_codec(codec);
    return good;
}
