/* Weights of tiles, packed (tiled.h). */
#include <string.h>

#include "kernels/gemm/product_uk.h"
#include "tiled_loops.h"
#include "turned.h"

#define BLOCK ORTC_BLOCK
#define FAR_BYTES 1e6  /* of a group's weights: not in L2, beside pixels, when they are needed */
#define FEW_PIXELS 256 /* more of them go over pieces in less time than it takes to split weights */

/* The width of the window with what dilation leaves out; in 64 bytes. */
static int64_t span_of(const ortc_conv_geometry *g)
{
    return (g->kernel[g->spatial - 1] - 1) * g->dilation[g->spatial - 1] + 1;
}
static int64_t stem_columns(const ortc_conv_geometry *g, int kind)
{
    return ceil_div(span_of(g) * ortc_tiled_stem_pixel(kind), ORTC_TILE_ROW);
}
int ortc_tiled_is_stem(const ortc_conv_geometry *g, int kind)
{
    return !ortc_tiled_in_pieces(kind) && g->group == 1 && g->channels <= ORTC_STEM_CHANNELS &&
           g->spatial > 0 && g->dilation[g->spatial - 1] <= 64 && g->kernel[g->spatial - 1] <= 64;
}
int64_t ortc_tiled_taps(const ortc_conv_geometry *g, int kind)
{
    return ortc_tiled_is_stem(g, kind) ? g->kernel_count / g->kernel[g->spatial - 1] * stem_columns(g, kind)
                                       : g->kernel_count;
}

int ortc_tiled_kind(const ortc_conv_geometry *g, int kind)
{
    const double weights = (double)g->channels * (double)g->filters * (double)g->kernel_count * 4,
                 pixels = (double)g->images * (double)g->out_count;
    return kind == ORTC_TILED_PIECES && weights > FAR_BYTES && pixels <= FEW_PIXELS ? ORTC_TILED_PLAIN : kind;
}

static int64_t block_bytes(const ortc_conv_geometry *g, int kind)
{
    return ceil_div(g->channels, ortc_tiled_blocks_of_group(kind) * BLOCK) * ortc_tiled_taps(g, kind) *
           ortc_tiled_weight_tile(kind);
}
static int64_t words_behind(int kind) /* of a block */
{
    return kind == ORTC_TILED_BYTES ? BLOCK : ortc_tiled_in_pieces(kind) ? 1 : 0;
}

size_t ortc_tiled_weight_bytes(const ortc_conv_geometry *g, int kind)
{
    const double each = (double)g->channels * (double)g->kernel_count;
    const int64_t blocks = g->group * ceil_div(g->filters, BLOCK);
    if (each * (double)g->group * (double)(g->filters + BLOCK) > 1e13) return 0;
    return (size_t)(blocks * (block_bytes(g, kind) + words_behind(kind) * 4));
}

int64_t ortc_tiled_block_at(int kind, int64_t k, int64_t outs, int64_t each, int64_t *step, int64_t *next)
{
    const int64_t tile = ortc_tiled_weight_tile(kind), pair = k / 2 * 2 + 1 < outs;
    *step = tile, *next = each;
    if (kind == ORTC_TILED_BYTES) return k * each;
    *step = (pair ? 2 : 1) * tile, *next = tile;
    return k / 2 * 2 * each + k % 2 * tile;
}

typedef struct fill_arg {
    const ortc_conv_geometry *g;
    ortc_dtype type;
    int kind;
    const char *w;
    char *dst;
    void (*widen)(size_t n, const void *x, float *y);
    const ortc_product_moves *moves;
} fill_arg;

/* Where in W, from a filter on, k of a tile of weights lies, the tile being of channels from c on and tap t;
 * -1: it is 0. Of pieces channels are those of two blocks in turn, as they are laid out; of a stem k is
 * [pixel][4 channels]. */
static int64_t place_of(const fill_arg *a, int64_t c, int64_t t, int64_t k)
{
    const ortc_conv_geometry *g = a->g;
    const int64_t taps = g->kernel_count;
    if (!ortc_tiled_is_stem(g, a->kind)) {
        c += ortc_tiled_in_pieces(a->kind) ? k % 2 * BLOCK + k / 2 : k;
        return c < g->channels ? c * taps + t : -1;
    }
    const int64_t columns = stem_columns(g, a->kind), width = g->kernel[g->spatial - 1],
                  dilation = g->dilation[g->spatial - 1],
                  pixel = t % columns * ORTC_TILE_ROW / ortc_tiled_stem_pixel(a->kind) +
                          k / ORTC_STEM_CHANNELS;
    c = k % ORTC_STEM_CHANNELS;
    if (c >= g->channels || pixel % dilation || pixel / dilation >= width) return -1;
    return c * taps + t / columns * width + pixel / dilation;
}

/* n filters: a tile of weights, or three, or f32. turned: from channel c on, [channel][tap]; NULL: not.
 * Returns whether pieces do not hold one. */
static int fill_floats(const fill_arg *a, const char *w, int64_t n, int64_t c, int64_t t,
                       float (*turned)[BLOCK], char *dst)
{
    const int64_t size = ortc_product_size(a->type), taps = a->g->kernel_count,
                  filter = a->g->channels * taps;
    const ortc_product_pieces *pieces = a->moves->pieces;
    float rows[2 * BLOCK][BLOCK] = {{0}};
    for (int64_t k = 0; k < 2 * BLOCK; k++) {
        const int64_t at = place_of(a, c, t, k);
        if (turned && at >= 0) memcpy(rows[k], turned[at - c * taps], sizeof rows[k]);
        for (int64_t o = 0; o < n && at >= 0 && !turned; o++)
            a->widen(1, w + (o * filter + at) * size, &rows[k][o]);
    }
    if (a->kind == ORTC_TILED_PLAIN)
        memcpy(dst, rows, sizeof rows);
    else
        pieces->pairs(BLOCK, 2 * BLOCK, rows[0], (size_t)ortc_tiled_pieces(a->kind), 2 * BLOCK, dst);
    return ortc_tiled_in_pieces(a->kind) && pieces->odd(BLOCK, 2 * BLOCK, rows[0]);
}

static void fill_bytes(const fill_arg *a, const char *w, int64_t n, int64_t c, int64_t t, char *dst,
                       int32_t *sums)
{
    const char flip = a->type == ORTC_U8 ? (char)0x80 : 0;
    const int64_t filter = a->g->channels * a->g->kernel_count;
    memset(dst, 0, (size_t)ortc_tiled_weight_tile(a->kind));
    for (int64_t k = 0; k < 4 * BLOCK; k++) {
        const int64_t at = place_of(a, c, t, k);
        for (int64_t o = 0; o < n && at >= 0; o++) {
            const char v = (char)(w[o * filter + at] ^ flip);
            dst[(k / 4 * BLOCK + o) * 4 + k % 4] = v;
            sums[o] += (signed char)v;
        }
    }
}

enum { MOST_TAPS = 9, RUN = 2 * BLOCK * MOST_TAPS };

static void fill_blocks(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const fill_arg *a = arg;
    const ortc_conv_geometry *g = a->g;
    const int in_bytes = a->kind == ORTC_TILED_BYTES, stem = ortc_tiled_is_stem(g, a->kind);
    const int64_t outs = ceil_div(g->filters, BLOCK), deep = ortc_tiled_blocks_of_group(a->kind) * BLOCK,
                  taps = g->kernel_count, bytes = block_bytes(g, a->kind), words = words_behind(a->kind),
                  size = in_bytes ? 1 : ortc_product_size(a->type);
    const int run = !stem && !in_bytes && taps <= MOST_TAPS;
    const char *w_end = a->w + g->group * g->filters * g->channels * taps * size;
    float wide[BLOCK * RUN], turned[RUN][BLOCK];
    (void)scratch;
    for (int64_t b = begin; b < end; b++) {
        const int64_t first = b % outs * BLOCK, n = min64(BLOCK, g->filters - first);
        const char *w = a->w + (b / outs * g->filters + first) * g->channels * taps * size;
        int64_t step, next;
        char *dst = a->dst + b / outs * outs * bytes +
                    ortc_tiled_block_at(a->kind, b % outs, outs, bytes, &step, &next);
        int32_t behind[BLOCK] = {0};
        for (int64_t c = 0; c < g->channels; c += deep) {
            if (in_bytes && !stem) {
                ortc_turn_bytes(a->type, w + c * taps, w_end, n, g->channels * taps,
                                min64(deep, g->channels - c), taps, deep / 4, dst, step, behind);
                dst += taps * step;
                continue;
            }
            if (run)
                ortc_turn_weights(a->type, w + c * taps * size, n, g->channels * taps,
                                  min64(2 * BLOCK, g->channels - c) * taps, wide, turned);
            for (int64_t t = 0; t < ortc_tiled_taps(g, a->kind); t++, dst += step) {
                if (in_bytes)
                    fill_bytes(a, w, n, c, t, dst, behind);
                else
                    behind[0] |= fill_floats(a, w, n, c, t, run ? turned : NULL, dst);
            }
        }
        memcpy(a->dst + g->group * outs * bytes + b * words * 4, behind, (size_t)words * 4);
    }
}

int32_t ortc_tiled_weight_fill(const ortc_conv_geometry *g, ortc_dtype type, int kind, const void *w,
                               void *dst, const ortc_product_threads *threads)
{
    fill_arg a = {g, type, kind, w, dst};
    if (kind != ORTC_TILED_BYTES) a.widen = ortc_convert_get()->widen[ortc_float_index(type)];
    a.moves = ortc_product_moves_select();
    return threads->parallel(threads->context, g->group * ceil_div(g->filters, BLOCK), 1, fill_blocks, &a);
}
