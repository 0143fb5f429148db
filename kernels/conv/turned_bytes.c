/* Weights of bytes with the filters of a block side by side (turned.h), sixteen bytes at a time: the words of
 * four channels by interleaving their lines twice, of four filters by a transpose of 4 x 4 words. */
#include "kernels/common/counts.h"
#include "kernels/common/vector/interleave.h"
#include "turned.h"

typedef ortc_v16 v16;
typedef ortc_v4 v4;
typedef int16_t v8s __attribute__((vector_size(16)));
typedef int32_t v4s __attribute__((vector_size(16)));

enum { LINE = 16, WORD = 4 /* channels, and filters at a time */, AHEAD = 256 /* bytes */ };

/* What there is of four filters. */
typedef struct source {
    const uint8_t *w, *end; /* what may be read ends there */
    int64_t step, filters;  /* up to WORD */
    int64_t bytes;          /* of a line, up to LINE */
    v16 kept, flip;         /* of those, 255; what makes them s8 */
} source;

static void set_line(source *s, int64_t bytes, ortc_dtype type)
{
    static const uint8_t all[2 * LINE] = {255, 255, 255, 255, 255, 255, 255, 255,
                                          255, 255, 255, 255, 255, 255, 255, 255};
    s->bytes = max64(0, min64(bytes, LINE));
    memcpy(&s->kept, all + LINE - s->bytes, LINE);
    s->flip = s->kept & (uint8_t)(type == ORTC_U8 ? 0x80 : 0);
}

/* A line of a filter, `at` bytes from its begin, as it is stored; 0 behind it. */
static inline __attribute__((always_inline)) v16 line_of(const source *s, int64_t filter, int64_t at)
{
    const uint8_t *p = s->w + filter * s->step + at;
    v16 v;
    __builtin_prefetch(p + AHEAD);
    if (s->end - p >= LINE) {
        memcpy(&v, p, LINE);
    } else {
        uint8_t last[LINE] = {0};
        memcpy(last, p, (size_t)s->bytes);
        memcpy(&v, last, LINE);
    }
    return (v & s->kept) ^ s->flip;
}

/* Four words along a line of each of four filters become [word][filter], words `step` bytes apart; sums of
 * filters. */
static inline __attribute__((always_inline)) v4 store(v4 w0, v4 w1, v4 w2, v4 w3, int64_t words, uint8_t *dst,
                                                      int64_t step)
{
    const v4 a = ORTC_LOW_WORDS(w0, w1), b = ORTC_LOW_WORDS(w2, w3), c = ORTC_HIGH_WORDS(w0, w1),
             d = ORTC_HIGH_WORDS(w2, w3);
    const v4 y0 = ORTC_LOW_HALVES(a, b), y1 = ORTC_HIGH_HALVES(a, b), y2 = ORTC_LOW_HALVES(c, d),
             y3 = ORTC_HIGH_HALVES(c, d);
    memcpy(dst, &y0, LINE);
    if (words > 1) memcpy(dst + step, &y1, LINE);
    if (words > 2) memcpy(dst + 2 * step, &y2, LINE);
    if (words > 3) memcpy(dst + 3 * step, &y3, LINE);
#define PAIRS(y) (((v8s)((ortc_v8)y << 8) >> 8) + ((v8s)y >> 8))
    const v8s pairs = PAIRS(y0) + PAIRS(y1) + PAIRS(y2) + PAIRS(y3);
    return (v4)((v4s)((v4)pairs << 16) >> 16) + (v4)((v4s)pairs >> 16);
}

/* One tap: a line is of channels. */
static v4 turn_channels(const source *s, int64_t c, int64_t quads, uint8_t *dst, v4 sum)
{
    const v4 none = {0};
    const v4 w0 = (v4)line_of(s, 0, c), w1 = s->filters > 1 ? (v4)line_of(s, 1, c) : none,
             w2 = s->filters > 2 ? (v4)line_of(s, 2, c) : none,
             w3 = s->filters > 3 ? (v4)line_of(s, 3, c) : none;
    return sum + store(w0, w1, w2, w3, quads, dst, ORTC_BLOCK * WORD);
}

/* A line is of taps, from `at` on those of the first of `some` channels, up to four. */
static v4 turn_taps(const source *s, int64_t at, int64_t some, int64_t taps, uint8_t *dst, int64_t tap_step,
                    v4 sum)
{
    v4 words[LINE / WORD][WORD];
    for (int64_t i = 0; i < WORD; i++) {
        const v16 none = {0};
        const v16 l0 = i < s->filters && some > 0 ? line_of(s, i, at) : none,
                  l1 = i < s->filters && some > 1 ? line_of(s, i, at + taps) : none,
                  l2 = i < s->filters && some > 2 ? line_of(s, i, at + 2 * taps) : none,
                  l3 = i < s->filters && some > 3 ? line_of(s, i, at + 3 * taps) : none;
        v4 quads[WORD];
        ortc_quads_of(l0, l1, l2, l3, quads);
        for (int64_t w = 0; w < WORD; w++) words[w][i] = quads[w];
    }
    for (int64_t i = 0; i < s->bytes; i += WORD, dst += WORD * tap_step) {
        const v4 *w = words[i / WORD];
        sum += store(w[0], w[1], w[2], w[3], s->bytes - i, dst, tap_step);
    }
    return sum;
}

void ortc_turn_bytes(ortc_dtype type, const void *w, const void *end, int64_t n, int64_t step,
                     int64_t channels, int64_t taps, int64_t quads, void *dst, int64_t tap_step,
                     int32_t *sums)
{
    const int64_t pitch = ORTC_BLOCK * WORD;
    for (int64_t o = 0; o < ORTC_BLOCK; o += WORD) {
        source s = {.w = (const uint8_t *)w + o * step,
                    .end = end,
                    .step = step,
                    .filters = min64(n - o, WORD)};
        uint8_t *to = (uint8_t *)dst + o * WORD;
        v4 sum;
        if (s.filters <= 0) {
            for (int64_t t = 0; t < taps; t++)
                for (int64_t q = 0; q < quads; q++) memset(to + t * tap_step + q * pitch, 0, LINE);
            continue;
        }
        memcpy(&sum, sums + o, sizeof sum);
        if (taps == 1) {
            for (int64_t q = 0; q < quads; q += LINE / WORD) {
                set_line(&s, channels - q * WORD, type);
                sum = turn_channels(&s, q * WORD, min64(quads - q, LINE / WORD), to + q * pitch, sum);
            }
        } else {
            for (int64_t t = 0; t < taps; t += LINE) {
                set_line(&s, taps - t, type);
                for (int64_t q = 0; q < quads; q++)
                    sum = turn_taps(&s, q * WORD * taps + t, channels - q * WORD, taps,
                                    to + q * pitch + t * tap_step, tap_step, sum);
            }
        }
        memcpy(sums + o, &sum, sizeof sum);
    }
}
