/* Weights of blocks, packed (blocked.h). */
#include <stdlib.h>
#include <string.h>

#include "blocked_weights.h"
#include "kernels/common/counts.h"
#include "kernels/gemm/product_uk.h"
#include "turned.h"

/* Words of a block of n filters: W, [filter][channel][tap] from w on, becomes [block of input][tap][word][16
 * filters][4 channels] of s8; end: of W; sums [16]: of filters. */
static void fill_block(const ortc_conv_geometry *g, int stem, ortc_dtype type, int64_t n, const char *w,
                       const char *end, int8_t *dst, int32_t *sums)
{
    const int64_t taps = g->kernel_count, c = g->channels, deep = stem ? ORTC_BLOCKED_WORD : ORTC_BLOCK;
    memset(sums, 0, ORTC_BLOCK * sizeof *sums);
    for (int64_t c0 = 0; c0 < c; c0 += deep, dst += taps * deep * ORTC_BLOCK)
        ortc_turn_bytes(type, w + c0 * taps, end, n, c * taps, min64(deep, c - c0), taps,
                        deep / ORTC_BLOCKED_WORD, dst, deep * ORTC_BLOCK, sums);
}

/* Bytes of W, and so its values, being bytes. */
static int64_t all_of(const ortc_conv_geometry *g)
{
    return g->group * g->filters * g->channels * g->kernel_count;
}

/* How many words of W, of so many filters at a time, have what is halved; all of them where memory is
 * short: as many as there may be. */
static size_t far_words(const ortc_conv_geometry *g, int stem, const ortc_blocked_bytes *bytes,
                        ortc_dtype type, const char *w)
{
    const char *end = w + all_of(g);
    const int64_t outs = ceil_div(g->filters, ORTC_BLOCK), size = bytes->splits * ORTC_BLOCKED_WORD,
                  all = (stem ? ORTC_BLOCKED_WORD : ceil_div(g->channels, ORTC_BLOCK) * ORTC_BLOCK) *
                        g->kernel_count * ORTC_BLOCK;
    int8_t *block = malloc((size_t)all);
    size_t n = block ? 0 : (size_t)(g->group * outs * all / size);
    for (int64_t b = 0; block && b < g->group * outs; b++) {
        const int64_t filters = min64(ORTC_BLOCK, g->filters - b % outs * ORTC_BLOCK);
        int32_t sums[ORTC_BLOCK];
        fill_block(g, stem, type, filters, w, end, block, sums);
        w += filters * g->channels * g->kernel_count;
        n += bytes->far((size_t)(all / size), block, (size_t)size);
    }
    free(block);
    return n;
}

/* 0: there are too many. */
static size_t more_bytes(const ortc_conv_geometry *g, ortc_dtype type, int stem,
                         const ortc_blocked_bytes *bytes, const void *w)
{
    const int lanes = bytes->splits;
    const int64_t parts = g->group * ceil_div(g->filters, ORTC_BLOCK) * (ORTC_BLOCK / lanes);
    const size_t n = far_words(g, stem, bytes, type, w);
    if (n > UINT32_MAX) return 0;
    return ortc_blocked_to_line((size_t)(parts + 1) * sizeof(uint32_t)) +
           ortc_blocked_to_line(n * sizeof(ortc_blocked_word)) + n * (size_t)lanes * ORTC_BLOCKED_WORD;
}

size_t ortc_blocked_weight_bytes(const ortc_conv_geometry *g, ortc_dtype type, int form, const void *w)
{
    const int bytes = ortc_blocked_type(type) == ORTC_BLOCKED_BYTES;
    const ortc_blocked_bytes *body = bytes ? ortc_blocked_bytes_get() : NULL;
    const int stem = form == ORTC_BLOCKED_STEM || form == ORTC_BLOCKED_STEM_PAIRS;
    const int64_t word = bytes ? ORTC_BLOCKED_WORD : form >= ORTC_BLOCKED_PAIRS ? ORTC_BLOCKED_PAIR : 1;
    const int64_t in = ceil_div(stem ? g->channels : ceil_div(g->channels, ORTC_BLOCK) * ORTC_BLOCK, word);
    const double filters = (double)g->group * (double)ceil_div(g->filters, ORTC_BLOCK) * ORTC_BLOCK;
    const double all = filters * (double)ortc_blocked_element_bytes(ortc_blocked_type(type), form) *
                       ((double)in * (double)g->kernel_count + (bytes ? 1 : 0));
    if (!(all < 1e15)) return 0;
    if (!w || !body || !body->split) return (size_t)all;
    const size_t more = more_bytes(g, type, stem, body, w);
    return more ? (size_t)all + more : 0;
}

typedef struct fill_arg {
    const ortc_conv_geometry *g;
    int type, stem;
    ortc_dtype dtype;                /* of bytes */
    const ortc_blocked_bytes *bytes; /* NULL: nothing is split */
    const char *w;
    char *dst;
} fill_arg;

/* n output channels, `step` elements apart in W, of `some` input channels: element (o, c, t) goes to
 * [t][c][o], `deep` being the channels of a tap. */
static void turn_4(int64_t n, int64_t step, int64_t some, int64_t taps, int64_t deep, const char *w,
                   char *dst)
{
    enum { MOST = 64 };
    const int64_t size = ORTC_BLOCK * (int64_t)sizeof(float);
    float turned[MOST][ORTC_BLOCK];
    for (int64_t at = 0, m; at < some * taps; at += m) {
        m = min64(MOST, some * taps - at);
        ortc_turn_weights(ORTC_F32, w + at * 4, n, step, m, NULL, turned);
        for (int64_t i = 0; i < m; i++)
            memcpy(dst + ((at + i) % taps * deep + (at + i) / taps) * size, turned[i], (size_t)size);
    }
}
static void turn_2(int64_t n, int64_t step, int64_t some, int64_t taps, int64_t deep, const char *w,
                   char *dst)
{
    for (int64_t o = 0; o < n; o++)
        for (int64_t c = 0; c < some; c++)
            for (int64_t t = 0; t < taps; t++)
                memcpy(dst + ((t * deep + c) * ORTC_BLOCK + o) * 2, w + (o * step + c * taps + t) * 2, 2);
}

/* Output blocks of all groups, a block of input after the other: both stay in L1. */
static void fill_blocks(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const fill_arg *a = arg;
    const ortc_conv_geometry *g = a->g;
    const int64_t outs = ceil_div(g->filters, ORTC_BLOCK), taps = g->kernel_count,
                  deep = a->stem ? 1 : ORTC_BLOCK;
    const int64_t step = g->channels * taps, ins = ceil_div(g->channels, deep),
                  part = taps * deep * ORTC_BLOCK;
    const int64_t size = a->type == ORTC_FLOAT_F32 ? 4 : 2;
    (void)scratch;
    for (int64_t b = begin; b < end; b++) {
        const int64_t first = b % outs * ORTC_BLOCK, n = min64(ORTC_BLOCK, g->filters - first);
        const char *w = a->w + (b / outs * g->filters + first) * step * size;
        char *dst = a->dst + b * ins * part * size;
        memset(dst, 0, (size_t)(ins * part * size));
        for (int64_t i = 0; i < ins; i++)
            (size == 4 ? turn_4 : turn_2)(n, step, min64(deep, g->channels - i * deep), taps, deep,
                                          w + i * deep * taps * size, dst + i * part * size);
    }
}

/* Words of bytes: of a block, of one of its parts' registers from one to the next, and in all. */
typedef struct words_of {
    int64_t blocks, ins, taps, step; /* step: words of a pixel in a block of input */
    int64_t words, pitch;
    size_t all; /* bytes */
} words_of;
static words_of words_get(const fill_arg *a)
{
    words_of w = {.blocks = a->g->group * ceil_div(a->g->filters, ORTC_BLOCK),
                  .ins = a->stem ? 1 : ceil_div(a->g->channels, ORTC_BLOCK),
                  .taps = a->g->kernel_count,
                  .step = a->stem ? 1 : ORTC_BLOCK / ORTC_BLOCKED_WORD,
                  .pitch = ORTC_BLOCK * ORTC_BLOCKED_WORD};
    w.words = w.ins * w.taps * w.step;
    w.all = ortc_blocked_word_bytes(w.blocks, w.ins, w.taps, w.step);
    return w;
}

/* The same of bytes; sums behind all of them. Of parts how many words are split, which is where the next one
 * begins once they are added up. */
static void fill_words(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const fill_arg *a = arg;
    const ortc_conv_geometry *g = a->g;
    const words_of words = words_get(a);
    const int64_t outs = ceil_div(g->filters, ORTC_BLOCK), all = words.words * words.pitch;
    int32_t *sums = (int32_t *)(void *)(a->dst + words.all);
    (void)scratch;
    for (int64_t b = begin; b < end; b++) {
        const int64_t first = b % outs * ORTC_BLOCK, n = min64(ORTC_BLOCK, g->filters - first);
        const char *w = a->w + (b / outs * g->filters + first) * g->channels * g->kernel_count;
        int8_t *dst = (int8_t *)a->dst + b * all;
        fill_block(g, a->stem, a->dtype, n, w, a->w + all_of(g), dst, sums + b * ORTC_BLOCK);
        if (!a->bytes) continue;
        const ortc_blocked_more_of more = ortc_blocked_more_at(a->dst, words.all, words.blocks,
                                                               a->bytes->splits);
        for (int64_t k = 0; k < more.each; k++)
            more.begin[b * more.each + k] = (uint32_t)a->bytes->far((size_t)words.words, dst + k * more.size,
                                                                    (size_t)words.pitch);
    }
}

/* Halves what must be, and lists it, part by part in order of its words. */
static void split_words(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const fill_arg *a = arg;
    const words_of words = words_get(a);
    const ortc_blocked_more_of more = ortc_blocked_more_at(a->dst, words.all, words.blocks, a->bytes->splits);
    (void)scratch;
    for (int64_t k = begin; k < end; k++) {
        int8_t *part = (int8_t *)a->dst + k / more.each * words.words * words.pitch +
                       k % more.each * more.size;
        ortc_blocked_word *word = more.word + more.begin[k];
        int8_t *w = (int8_t *)more.w + more.begin[k] * (size_t)more.size;
        for (int64_t i = 0; w < (int8_t *)more.w + more.begin[k + 1] * (size_t)more.size;
             i++, part += words.pitch) {
            if (!a->bytes->split(part, w)) continue;
            *word++ = (ortc_blocked_word){(uint32_t)(i / words.step / words.taps),
                                          (uint16_t)(i / words.step % words.taps),
                                          (uint16_t)(i % words.step)};
            w += more.size;
        }
    }
}

static int32_t fill_bytes(fill_arg *a, const ortc_product_threads *threads)
{
    const words_of words = words_get(a);
    const ortc_blocked_bytes *bytes = ortc_blocked_bytes_get();
    a->bytes = bytes->split ? bytes : NULL;
    const int64_t parts = a->bytes ? words.blocks * (ORTC_BLOCK / bytes->splits) : 0;
    uint32_t *begin = (uint32_t *)(void *)(a->dst + words.all + words.blocks * ORTC_BLOCK * 4), sum = 0;
    if (a->bytes) begin[parts] = 0; /* there are none yet */
    const int32_t status = threads->parallel(threads->context, words.blocks, 1, fill_words, a);
    if (status || !a->bytes) return status;
    for (int64_t k = 0; k <= parts; k++) {
        const uint32_t n = k < parts ? begin[k] : 0;
        begin[k] = sum;
        sum += n;
    }
    return threads->parallel(threads->context, parts, 1, split_words, a);
}

/* The same of pairs, from f32 or bf16: [block of input][tap][word][16 filters][2 channels], of a stem a word
 * for a block. */
static void fill_pairs(void *arg, int64_t begin, int64_t end, void *scratch)
{
    enum { MOST_TAPS = 9, MOST = ORTC_BLOCK * MOST_TAPS };
    const fill_arg *a = arg;
    const ortc_conv_geometry *g = a->g;
    const ortc_dtype type = a->type == ORTC_FLOAT_F32 ? ORTC_F32 : ORTC_BF16;
    const int64_t deep = a->stem ? ORTC_BLOCKED_PAIR : ORTC_BLOCK;
    const int64_t outs = ceil_div(g->filters, ORTC_BLOCK), taps = g->kernel_count, step = g->channels * taps,
                  size = a->type == ORTC_FLOAT_F32 ? 4 : 2, part = deep * ORTC_BLOCK * 2,
                  ins = ceil_div(g->channels, deep);
    const ortc_product_pieces *pieces = ortc_product_moves_select()->pieces;
    float wide[ORTC_BLOCK * MOST], turned[MOST][ORTC_BLOCK];
    (void)scratch;
    for (int64_t b = begin; b < end; b++) {
        const int64_t first = b % outs * ORTC_BLOCK, n = min64(ORTC_BLOCK, g->filters - first);
        const char *w = a->w + (b / outs * g->filters + first) * step * size;
        char *dst = a->dst + b * ins * taps * part;
        float rows[ORTC_BLOCK][ORTC_BLOCK] = {{0}};
        for (int64_t c = 0; c < g->channels; c += deep, w += deep * taps * size) {
            const int64_t some = min64(deep, g->channels - c);
            if (taps <= MOST_TAPS) ortc_turn_weights(type, w, n, step, some * taps, wide, turned);
            for (int64_t t = 0; t < taps; t++, dst += part) {
                for (int64_t i = 0; i < some; i++)
                    if (taps <= MOST_TAPS)
                        memcpy(rows[i], turned[i * taps + t], sizeof rows[i]);
                    else
                        for (int64_t o = 0; o < n; o++)
                            ortc_convert_get()->widen[a->type](1, w + (o * step + i * taps + t) * size,
                                                               &rows[i][o]);
                pieces->pairs(ORTC_BLOCK, (size_t)some, rows[0], 1, (size_t)deep, dst);
            }
        }
    }
}

int32_t ortc_blocked_weight_fill(const ortc_conv_geometry *g, ortc_dtype type, int form, const void *w,
                                 void *dst, const ortc_product_threads *threads)
{
    const int64_t blocks = g->group * ceil_div(g->filters, ORTC_BLOCK);
    const int stem = form == ORTC_BLOCKED_STEM || form == ORTC_BLOCKED_STEM_PAIRS;
    fill_arg a = {g, ortc_blocked_type(type), stem, type, NULL, w, dst};
    if (form >= ORTC_BLOCKED_PAIRS) return threads->parallel(threads->context, blocks, 1, fill_pairs, &a);
    if (a.type == ORTC_BLOCKED_BYTES) return fill_bytes(&a, threads);
    if (!stem || type == ORTC_F32) return threads->parallel(threads->context, blocks, 1, fill_blocks, &a);
    /* turned where they end, in the second half, and widened from there */
    const size_t n = ortc_blocked_weight_bytes(g, ORTC_F32, 1, NULL) / sizeof(float);
    a.dst += n * 2;
    const int32_t status = threads->parallel(threads->context, blocks, 1, fill_blocks, &a);
    for (size_t i = 0; i < n && !status; i++)
        ortc_convert_get()->widen[a.type](1, a.dst + i * 2, (float *)dst + i);
    return status;
}

/* ---- Sums at each tap ---------------------------------------------------------------------------------- */

size_t ortc_blocked_tap_sums_bytes(const ortc_conv_geometry *g)
{
    return (size_t)(g->group * ceil_div(g->filters, ORTC_BLOCK) * g->kernel_count * ORTC_BLOCK) *
           sizeof(int32_t);
}

typedef struct sums_arg {
    const ortc_conv_geometry *g;
    int is_signed;
    const uint8_t *w;
    int32_t *sums;
} sums_arg;

/* A filter, [channel][tap]: some channels are added to the next as they lie. */
static void filter_sums(const uint8_t *w, int is_signed, int64_t channels, int64_t taps, int32_t *to)
{
    enum { SOME = 16 };
    int32_t beside[SOME * ORTC_BLOCKED_SEEN] = {0};
    const int64_t all = channels * taps, part = SOME * taps;
    for (int64_t i = 0; i < all; i += part) {
        const int64_t n = min64(part, all - i);
        for (int64_t k = 0; k < n && is_signed; k++) beside[k] += (int8_t)w[i + k];
        for (int64_t k = 0; k < n && !is_signed; k++) beside[k] += w[i + k];
    }
    for (int64_t t = 0; t < taps; t++) {
        int32_t sum = is_signed ? 0 : -128 * (int32_t)channels;
        for (int64_t k = t; k < part; k += taps) sum += beside[k];
        to[t * ORTC_BLOCK] = sum;
    }
}

static void tap_sums(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const sums_arg *a = arg;
    const ortc_conv_geometry *g = a->g;
    const int64_t outs = ceil_div(g->filters, ORTC_BLOCK), taps = g->kernel_count,
                  channels = g->channels / max64(g->joined, 1);
    (void)scratch;
    for (int64_t b = begin; b < end; b++) {
        const int64_t first = b % outs * ORTC_BLOCK, n = min64(ORTC_BLOCK, g->filters - first);
        const uint8_t *w = a->w + (b / outs * g->filters + first) * channels * taps;
        int32_t *to = a->sums + b * taps * ORTC_BLOCK;
        memset(to, 0, (size_t)(taps * ORTC_BLOCK) * sizeof *to);
        for (int64_t o = 0; o < n; o++)
            filter_sums(w + o * channels * taps, a->is_signed, channels, taps, to + o);
    }
}

int32_t ortc_blocked_tap_sums(const ortc_conv_geometry *g, ortc_dtype type, const void *w, int32_t *sums,
                              const ortc_product_threads *threads)
{
    sums_arg a = {g, type == ORTC_I8, w, sums};
    return threads->parallel(threads->context, g->group * ceil_div(g->filters, ORTC_BLOCK), 1, tap_sums, &a);
}
