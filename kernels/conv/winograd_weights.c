/* W, transformed (winograd.h): [block of output][point][plane][block of input][16][16], of pairs [8][16][2];
 * for pieces [pair of blocks of output][point][plane][pair of blocks of input][block of output] of tiles
 * (tiled_uk.h), in pieces or in f32. */
#include <string.h>

#include "kernels/gemm/product_uk.h"
#include "turned.h"
#include "winograd_batch.h"

size_t ortc_winograd_weight_bytes(const ortc_conv_geometry *g, int m, int form)
{
    const int64_t outs = ceil_div(g->filters, BLOCK);
    if ((double)g->channels * (double)g->filters > 1e12) return 0;
    return (size_t)(outs * (weight_bytes(g, m, form) +
                            (form == ORTC_WINOGRAD_PIECES ? (int64_t)sizeof(int32_t) : 0)));
}

typedef struct fill_arg {
    const ortc_conv_geometry *g;
    ortc_dtype type;
    int m;
    const char *w;
    int64_t first, n; /* blocks of output */
    char *dst;
    const ortc_product_pieces *cut;
} fill_arg;

enum { TURNED = BLOCK * 9 * MOST_PLANES };

/* Of a block of output and one of input, f32: [channel][plane][9][filter]. */
static void turn(const fill_arg *a, int64_t out, int64_t in, float w[TURNED][BLOCK])
{
    const int64_t c = a->g->channels, some = max64(min64(BLOCK, c - in * BLOCK), 0),
                  taps = a->g->kernel_count;
    float wide[BLOCK * TURNED];
    if (some)
        ortc_turn_weights(a->type, a->w + (out * BLOCK * c + in * BLOCK) * taps * ortc_product_size(a->type),
                          min64(BLOCK, a->g->filters - out * BLOCK), c * taps, some * taps, wide, w);
    memset(w[some * taps], 0, (size_t)((BLOCK - some) * taps) * sizeof *w);
}

/* [block of output][block of input] */
static void fill_blocks(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const fill_arg *a = arg;
    const int64_t ins = ceil_div(a->g->channels, BLOCK), planes = planes_of(a->g),
                  each = weight_bytes(a->g, a->m, ORTC_WINOGRAD_FLOATS);
    float w[TURNED][BLOCK];
    (void)scratch;
    for (int64_t b = begin; b < end; b++) {
        float *dst = (float *)(void *)(a->dst + b / ins * each) + b % ins * BLOCK * BLOCK;
        turn(a, a->first + b / ins, b % ins, w);
        for (int64_t d = 0; d < planes; d++, dst += ins * BLOCK * BLOCK)
            for (int64_t c = 0; c < BLOCK; c++)
                ortc_winograd_side_of(a->m)->weights(w[(c * planes + d) * 9], dst + c * BLOCK,
                                                     (size_t)(planes * ins * BLOCK * BLOCK));
    }
}

/* The same of pairs. */
static void fill_pairs(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const fill_arg *a = arg;
    const int64_t ins = ceil_div(a->g->channels, BLOCK), planes = planes_of(a->g), part = BLOCK * BLOCK * 2,
                  each = weight_bytes(a->g, a->m, ORTC_WINOGRAD_PAIRS), points = (a->m + 2) * (a->m + 2);
    float w[TURNED][BLOCK], u[ORTC_WINOGRAD_SIDE * ORTC_WINOGRAD_SIDE][BLOCK][BLOCK];
    (void)scratch;
    for (int64_t b = begin; b < end; b++) {
        char *dst = a->dst + b / ins * each + b % ins * part;
        turn(a, a->first + b / ins, b % ins, w);
        for (int64_t d = 0; d < planes; d++, dst += ins * part) {
            for (int64_t c = 0; c < BLOCK; c++)
                ortc_winograd_side_of(a->m)->weights(w[(c * planes + d) * 9], u[0][c], BLOCK * BLOCK);
            for (int64_t q = 0; q < points; q++)
                a->cut->pairs(BLOCK, BLOCK, u[q][0], 1, BLOCK, dst + q * planes * ins * part);
        }
    }
}

/* [block of output]: f32, channels of two blocks in turn, then in place, where they are to be cut, pieces. */
static void fill_pieces(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const fill_arg *a = arg;
    const int64_t outs = a->n, planes = planes_of(a->g), groups = ceil_div(a->g->channels, 2 * BLOCK),
                  each = weight_bytes(a->g, a->m, ORTC_WINOGRAD_PIECES), points = (a->m + 2) * (a->m + 2),
                  tile = tile_bytes(a->g, a->m);
    float w[TURNED][BLOCK], whole[2 * BLOCK * BLOCK];
    (void)scratch;
    for (int64_t b = begin; b < end; b++) {
        const int64_t n = b / PAIR * PAIR + 1 < outs ? PAIR : 1, step = planes * groups * n * tile;
        char *first = a->dst + b / PAIR * PAIR * each + b % PAIR * tile;
        int32_t odd = 0;
        for (int64_t g = 0; g < groups; g++) {
            for (int64_t i = 0; i < 2; i++) {
                turn(a, a->first + b, g * 2 + i, w);
                for (int64_t k = 0; k < planes * BLOCK; k++) { /* [channel][plane] */
                    char *dst = first + (k % planes * groups + g) * n * tile;
                    ortc_winograd_side_of(a->m)->weights(w[k * 9],
                                                         (float *)(void *)dst + (k / planes * 2 + i) * BLOCK,
                                                         (size_t)step / sizeof(float));
                }
            }
            for (int64_t k = 0; k < planes * points; k++) {
                char *dst = first + (k % planes * groups + g) * n * tile + k / planes * step;
                memcpy(whole, dst, sizeof whole);
                odd |= a->cut->odd(BLOCK, 2 * BLOCK, whole);
                if (tile == WEIGHTS) a->cut->pairs(BLOCK, 2 * BLOCK, whole, PIECES, 2 * BLOCK, dst);
            }
        }
        memcpy(a->dst + outs * each + b * (int64_t)sizeof odd, &odd, sizeof odd);
    }
}

int32_t ortc_winograd_weight_fill(const ortc_conv_geometry *g, ortc_dtype type, int m, int form,
                                  const void *w, int64_t first, int64_t n, void *dst,
                                  const ortc_product_threads *threads)
{
    fill_arg a = {g, type, m, w, first, n, dst, ortc_product_moves_select()->pieces};
    return form == ORTC_WINOGRAD_PIECES
               ? threads->parallel(threads->context, n, 1, fill_pieces, &a)
               : threads->parallel(threads->context, ceil_div(g->channels, BLOCK) * n, 4,
                                   form == ORTC_WINOGRAD_PAIRS ? fill_pairs : fill_blocks, &a);
}
