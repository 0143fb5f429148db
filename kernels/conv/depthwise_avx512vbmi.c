/* Depthwise windows of bytes by vpdpbusd (blocked_uk.h), for AVX-512 with VBMI and VNNI: 64 bytes of a row
 * are four neighbouring pixels of 16 channels, which one permutation makes words of four taps. Where windows
 * are a pixel apart and leave a byte of their last word, the next window reads the same words, with weights
 * that begin a byte later: half of the permutations.
 */
#include <immintrin.h>

#include "blocked_uk.h"

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 8")
enum { BLOCK = 16, FOUR = 4, EIGHT = 8 };

/* Words of 16 channels, out of four pixels. */
INLINE __m512i words_of(const uint8_t *x)
{
#define WORD(c) (c), (c) + 16, (c) + 32, (c) + 48
#define WORDS(c) WORD(c), WORD((c) + 1), WORD((c) + 2), WORD((c) + 3)
    static const uint8_t turned[64] = {WORDS(0), WORDS(4), WORDS(8), WORDS(12)};
    return _mm512_permutexvar_epi8(_mm512_loadu_si512(turned), _mm512_loadu_si512(x));
}

/* n pixels from i on, an even number of them if they share. */
INLINE void some(const size_t n, const int share, const ortc_blocked_words *t, const uint8_t *const *line,
                 int64_t i, int32_t *y)
{
    const __m512i first = _mm512_loadu_si512(t->first);
    const size_t from = (size_t)i * t->step;
    const int8_t *w = t->w;
    __m512i sum[EIGHT];
    UNROLL for (size_t p = 0; p < n; p++) sum[p] = first;
    for (size_t l = 0; l < t->lines; l++) {
        const uint8_t *x = line[l] + from;
        __m512i before = _mm512_setzero_si512();
        for (size_t k = 0; k < t->words; k++, x += FOUR * BLOCK, w += FOUR * BLOCK) {
            const __m512i v = _mm512_loadu_si512(w);
            if (share) {
                const __m512i next = _mm512_or_si512(_mm512_slli_epi32(v, 8), _mm512_srli_epi32(before, 24));
                UNROLL for (size_t p = 0; p < n; p += 2)
                {
                    const __m512i both = words_of(x + p * BLOCK);
                    sum[p] = _mm512_dpbusd_epi32(sum[p], both, v);
                    sum[p + 1] = _mm512_dpbusd_epi32(sum[p + 1], both, next);
                }
                before = v;
            } else {
                UNROLL for (size_t p = 0; p < n; p++)
                    sum[p] = _mm512_dpbusd_epi32(sum[p], words_of(x + p * t->step), v);
            }
        }
    }
    UNROLL for (size_t p = 0; p < n; p++) _mm512_storeu_si512(y + (i + (int64_t)p) * BLOCK, sum[p]);
}

/* The last of a row begin earlier where they are not as many. */
INLINE void rows_of(const int share, int64_t rows, int64_t pixels, const ortc_blocked_words *t)
{
    const uint8_t *const *line = t->line;
    int32_t *y = t->y;
    for (int64_t r = 0; r < rows; r++, line += t->lines, y += pixels * BLOCK) {
        if (pixels >= EIGHT)
            for (int64_t i = 0; i < pixels; i += EIGHT)
                some(EIGHT, share, t, line, i + EIGHT <= pixels ? i : pixels - EIGHT, y);
        else if (pixels >= FOUR)
            for (int64_t i = 0; i < pixels; i += FOUR)
                some(FOUR, share, t, line, i + FOUR <= pixels ? i : pixels - FOUR, y);
        else
            for (int64_t i = 0; i < pixels; i++) some(1, 0, t, line, i, y);
    }
}

void ortc_uk_depthwise_words_avx512vbmi(int64_t rows, int64_t pixels, const ortc_blocked_words *t)
{
    if (t->step == BLOCK && t->columns % FOUR != 0)
        rows_of(1, rows, pixels, t);
    else
        rows_of(0, rows, pixels, t);
}
