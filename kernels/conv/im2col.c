/* Panels of columns, by runs: neighbouring columns lie in one row of the output, so what they read along the
 * last dim is a strided run of one row of the image, cut at the padding. A panel of 32 columns is one run or
 * a few.
 *
 * For one run and one position in the kernel all of that is the same in every channel, so it is worked out
 * once for a block of channels, and the micro-kernel (columns_uk.h) walks the channels. A block's part of the
 * panel stays in L1.
 */
#include "im2col.h"

#include <string.h>

#include "kernels/common/counts.h"

#define BLOCK_BYTES (24 * 1024)
#define NEIGHBOURS 8 /* of a window's row, which are turned rather than gathered */

/* Neighbouring columns that share all positions of the output but the last. */
typedef struct run {
    int64_t first, count; /* last position of the first column; columns */
    int64_t index;        /* flat index of the outer positions */
    int64_t dst;          /* place of the first column in the panel */
} run;

typedef struct panel {
    const ortc_conv_geometry *g;
    const ortc_im2col_way *way;
    const char *image;
    size_t size; /* of an element */
    size_t dw;
    int64_t kernel_outer; /* positions of the kernel in all dims but the last */
    int64_t columns, runs;
    run run[ORTC_IM2COL_COLUMNS];
} panel;

static int64_t steps(int64_t n, int64_t stride) { return stride == 1 ? n : ceil_div(n, stride); }

static void find_runs(panel *p, int64_t n0, int64_t nc)
{
    const int64_t width = p->g->out[p->g->spatial - 1];
    p->runs = 0;
    p->columns = nc;
    for (int64_t n = n0; n < n0 + nc;) {
        const int64_t column = n % width, count = min64(width - column, n0 + nc - n);
        p->run[p->runs++] = (run){column, count, n / width, n - n0};
        n += count;
    }
}

/* Offset in a channel of the row that the outer kernel position `outer` reads for the outer output position
 * `index`; -1 in the padding. */
static int64_t row_of(const ortc_conv_geometry *g, int64_t index, int64_t outer)
{
    int64_t offset = 0, step = g->in[g->spatial - 1];
    for (int32_t d = g->spatial - 2; d >= 0; d--) {
        const int64_t o = index % g->out[d], k = outer % g->kernel[d];
        const int64_t at = o * g->stride[d] - g->pad[d] + k * g->dilation[d];
        if (at < 0 || at >= g->in[d]) return -1;
        index /= g->out[d];
        outer /= g->kernel[d];
        offset += at * step;
        step *= g->in[d];
    }
    return offset;
}

/* One run under kernel position (row offset `row`, last position k), for `channels` channels from `channel`
 * on. `dst` is the panel's row of the first of them; the others follow kernel_count rows apart. */
static void fill_run(const panel *p, const run *r, int64_t row, int64_t k, int64_t channel, int64_t channels,
                     char *dst)
{
    const ortc_conv_geometry *g = p->g;
    const int32_t last = g->spatial - 1;
    const int64_t stride = g->stride[last], shift = k * g->dilation[last] - g->pad[last], width = g->in[last];
    /* Last positions o of the output with 0 <= o*stride + shift < width, within the run. */
    const int64_t lo = shift >= 0 ? 0 : steps(-shift, stride),
                  hi = width > shift ? steps(width - shift, stride) : 0;
    const int64_t end = r->first + r->count;
    int64_t a = min64(max64(lo, r->first), end), b = max64(min64(hi, end), a);
    if (row < 0) a = b = end;
    const int64_t from = a < b ? channel * g->in_count + row + a * stride + shift : 0;
    const size_t rows = (size_t)channels, step = (size_t)g->kernel_count * p->dw,
                 left = (size_t)(a - r->first), count = (size_t)(b - a), right = (size_t)(end - b);
    const void *src = p->image + (size_t)from * p->size;
    void *to = dst + (size_t)r->dst * p->size;
    if (p->way->bytes)
        p->way->bytes->run(rows, to, step, src, (size_t)g->in_count, (size_t)stride, left, count, right,
                           p->way->pad);
    else
        p->way->floats->run(rows, to, step, src, (size_t)g->in_count, (size_t)stride, left, count, right);
}

/* All of one run under last positions k .. k_end-1 at once, where that is quicker: neighbours in the image
 * are turned. false: nothing was done. */
static bool fill_neighbours(const panel *p, const run *r, int64_t row, int64_t k, int64_t k_end,
                            int64_t channel, int64_t channels, char *dst)
{
    const ortc_conv_geometry *g = p->g;
    const int32_t last = g->spatial - 1;
    const int64_t stride = g->stride[last], n = k_end - k, from = r->first * stride + k - g->pad[last],
                  to = from + (r->count - 1) * stride + n;
    const bool quicker = stride > 1 && (n >= NEIGHBOURS || (n == stride && (n == 2 || n == 4)));
    if (!quicker || g->dilation[last] > 1 || p->way->bytes || !p->way->floats->phases || row < 0 ||
        from < 0 || to > g->in[last])
        return false;
    const float *src = (const float *)(const void *)p->image + channel * g->in_count + row + from;
    float *at = (float *)(void *)dst + r->dst;
    for (int64_t c = 0; c < channels; c++, src += g->in_count, at += (size_t)g->kernel_count * p->dw)
        p->way->floats->phases((size_t)r->count, (size_t)n, (size_t)stride, src, at, p->dw);
    return true;
}

/* Kernel positions q0 .. q1-1 of `channels` channels. dst: row of (channel, position 0). */
static void fill(const panel *p, int64_t channel, int64_t channels, int64_t q0, int64_t q1, char *dst)
{
    const size_t step = p->dw * p->size; /* bytes of a row of the panel */
    const int64_t kw = p->g->kernel[p->g->spatial - 1];
    for (int64_t i = 0; i < p->runs; i++) {
        const run *r = &p->run[i];
        for (int64_t q = q0; q < q1;) {
            const int64_t outer = q / kw, row = row_of(p->g, r->index, outer),
                          q_end = min64(q1, (outer + 1) * kw);
            if (fill_neighbours(p, r, row, q - outer * kw, q_end - outer * kw, channel, channels,
                                dst + (size_t)q * step))
                q = q_end;
            for (; q < q_end; q++)
                fill_run(p, r, row, q - outer * kw, channel, channels, dst + (size_t)q * step);
        }
    }
    if ((size_t)p->columns < p->dw)
        for (int64_t c = 0; c < channels; c++)
            for (int64_t q = q0; q < q1; q++)
                memset(dst + (size_t)(c * p->g->kernel_count + q) * step + (size_t)p->columns * p->size, 0,
                       step - (size_t)p->columns * p->size);
}

void ortc_im2col(const ortc_conv_geometry *g, const ortc_im2col_way *way, const void *image, int64_t k0,
                 int64_t kc, int64_t n0, int64_t nc, void *dst, size_t dw)
{
    panel p = {.g = g, .way = way, .image = image, .size = way->bytes ? 1 : sizeof(float), .dw = dw};
    find_runs(&p, n0, nc);
    const int64_t positions = g->kernel_count, end = k0 + kc, row_bytes = positions * (int64_t)(dw * p.size);
    const int64_t block = max64(1, BLOCK_BYTES / row_bytes);
    for (int64_t k = k0; k < end;) {
        const int64_t channel = k / positions, q = k % positions;
        /* Whole channels together; what a chunk of K cuts off at its ends alone. */
        const int64_t whole = q == 0 ? min64(block, (end - k) / positions) : 0;
        const int64_t q1 = whole ? positions : min64(positions, q + end - k);
        fill(&p, channel, whole ? whole : 1, q, q1, (char *)dst + (k - k0 - q) * (int64_t)(dw * p.size));
        k += whole ? whole * positions : q1 - q;
    }
}
