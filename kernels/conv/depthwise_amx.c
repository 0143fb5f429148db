/* Depthwise windows of bytes by vpdpbusd (blocked_uk.h): 64 bytes of a row are four neighbouring pixels of 16
 * channels, which one permutation makes words of four taps. On machines with AMX, all of which have AVX-512
 * with VBMI and VNNI.
 */
#include <immintrin.h>

#include "blocked_uk.h"

enum { BLOCK = 16, TOGETHER = 4 };

__attribute__((target("avx512vbmi,avx512vnni"))) void ortc_uk_depthwise_words_amx(int64_t rows,
                                                                                  int64_t pixels,
                                                                                  const ortc_blocked_words *t)
{
#define WORD(c) (c), (c) + 16, (c) + 32, (c) + 48
#define WORDS(c) WORD(c), WORD((c) + 1), WORD((c) + 2), WORD((c) + 3)
    static const uint8_t turned[64] = {WORDS(0), WORDS(4), WORDS(8), WORDS(12)};
    const __m512i turn = _mm512_loadu_si512(turned), first = _mm512_loadu_si512(t->first);
    const uint8_t *const *line = t->line;
    int32_t *y = t->y;
    for (int64_t r = 0; r < rows; r++, line += t->lines) {
        int64_t i = 0;
        for (; i + TOGETHER <= pixels; i += TOGETHER, y += TOGETHER * BLOCK) {
            __m512i a = first, b = first, c = first, d = first;
            const int8_t *w = t->w;
            for (size_t l = 0; l < t->lines; l++) {
                const uint8_t *x = line[l] + (size_t)i * t->step;
                for (size_t k = 0; k < t->words; k++, x += 64, w += 64) {
                    const __m512i v = _mm512_loadu_si512(w);
#define ADD(sum, n) \
    sum = _mm512_dpbusd_epi32(sum, _mm512_permutexvar_epi8(turn, _mm512_loadu_si512(x + (n)*t->step)), v)
                    ADD(a, 0);
                    ADD(b, 1);
                    ADD(c, 2);
                    ADD(d, 3);
                }
            }
            _mm512_storeu_si512(y, a);
            _mm512_storeu_si512(y + BLOCK, b);
            _mm512_storeu_si512(y + 2 * BLOCK, c);
            _mm512_storeu_si512(y + 3 * BLOCK, d);
        }
        for (; i < pixels; i++, y += BLOCK) {
            __m512i a = first;
            const int8_t *w = t->w;
            for (size_t l = 0; l < t->lines; l++) {
                const uint8_t *x = line[l] + (size_t)i * t->step;
                for (size_t k = 0; k < t->words; k++, x += 64, w += 64) {
                    const __m512i v = _mm512_loadu_si512(w);
                    ADD(a, 0);
                }
            }
            _mm512_storeu_si512(y, a);
        }
    }
}
