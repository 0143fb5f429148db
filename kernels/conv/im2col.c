/* Panels of columns, by runs: neighbouring columns lie in one row of the output, so what they read along the last
 * dim is a strided run of one row of the image, cut at the padding. A panel of 32 columns is one run or a few.
 */
#include "im2col.h"

#include <string.h>

/* Stretches of columns that share all positions of the output but the last. */
typedef struct runs {
    int64_t count;
    int64_t first[ORTC_IM2COL_COLUMNS];  /* last position of the first column */
    int64_t length[ORTC_IM2COL_COLUMNS]; /* columns */
    int64_t index[ORTC_IM2COL_COLUMNS];  /* flat index over the outer dims of the output */
} runs;

static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t max64(int64_t a, int64_t b) { return a > b ? a : b; }

static void find_runs(const ortc_conv_geometry *g, int64_t n0, int64_t nc, runs *r)
{
    const int64_t width = g->out[g->spatial - 1];
    r->count = 0;
    for (int64_t n = n0; n < n0 + nc;) {
        const int64_t column = n % width, length = min64(width - column, n0 + nc - n);
        r->first[r->count] = column;
        r->length[r->count] = length;
        r->index[r->count++] = n / width;
        n += length;
    }
}

/* Offset of the image's row under outer kernel position `k` of the outer output position `index`; -1 in the padding. */
static int64_t row_of(const ortc_conv_geometry *g, int64_t index, const int64_t *k)
{
    int64_t offset = 0, step = g->in[g->spatial - 1];
    for (int32_t d = g->spatial - 2; d >= 0; d--) {
        const int64_t o = index % g->out[d], p = o * g->stride[d] - g->pad[d] + k[d] * g->dilation[d];
        if (p < 0 || p >= g->in[d]) return -1;
        index /= g->out[d];
        offset += p * step;
        step *= g->in[d];
    }
    return offset;
}

/* `count` floats from src with a stride, src may lie at any byte. */
static void copy(float *dst, const float *src, int64_t count, int64_t stride)
{
    if (stride == 1) {
        memcpy(dst, src, (size_t)count * sizeof *dst);
    } else {
        for (int64_t i = 0; i < count; i++) memcpy(dst + i, src + i * stride, sizeof *dst);
    }
}

/* One row of the panel: channel's plane, kernel position k (an index per dim). */
static void fill_row(const ortc_conv_geometry *g, const runs *r, const float *plane, const int64_t *k, float *dst)
{
    const int32_t last = g->spatial - 1;
    const int64_t stride = g->stride[last], shift = k[last] * g->dilation[last] - g->pad[last], width = g->in[last];
    /* Last positions o with 0 <= o*stride + shift < width. */
    const int64_t lo = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
    const int64_t hi = width - shift <= 0 ? 0 : (width - shift - 1) / stride + 1;
    for (int64_t i = 0; i < r->count; i++) {
        const int64_t first = r->first[i], end = first + r->length[i];
        const int64_t a = min64(max64(lo, first), end), b = max64(min64(hi, end), a);
        const int64_t row = a < b ? row_of(g, r->index[i], k) : -1;
        if (row < 0) {
            memset(dst, 0, (size_t)r->length[i] * sizeof *dst);
        } else {
            for (int64_t j = first; j < a; j++) dst[j - first] = 0;
            copy(dst + (a - first), plane + row + a * stride + shift, b - a, stride);
            for (int64_t j = b; j < end; j++) dst[j - first] = 0;
        }
        dst += r->length[i];
    }
}

void ortc_im2col_f32(const ortc_conv_geometry *g, const float *image, int64_t k0, int64_t kc, int64_t n0, int64_t nc,
                     float *dst, size_t dw)
{
    int64_t k[ORTC_SPATIAL_LIMIT], channel = k0 / g->kernel_count, rest = k0 % g->kernel_count;
    runs r;
    find_runs(g, n0, nc, &r);
    for (int32_t d = g->spatial - 1; d >= 0; d--) {
        k[d] = rest % g->kernel[d];
        rest /= g->kernel[d];
    }
    for (int64_t i = 0; i < kc; i++) {
        fill_row(g, &r, image + channel * g->in_count, k, dst);
        for (size_t j = (size_t)nc; j < dw; j++) dst[j] = 0;
        dst += dw;
        int32_t d = g->spatial - 1;
        while (d >= 0 && ++k[d] == g->kernel[d]) k[d--] = 0;
        if (d < 0) channel++;
    }
}
