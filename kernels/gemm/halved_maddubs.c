/* The tiles of halved.h. */
#include <assert.h>
#include <string.h>

#include "halved.h"
#include "kernels/common/vector/halves.h"

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif
enum { VECTORS = 2, PANEL = VECTORS * V_LANES };

VFN vi32 word_at(const uint8_t *a)
{
    int32_t word;
    memcpy(&word, a, sizeof word);
    return v_set_i32(word);
}
VFN vi32 weights_at(const int8_t *w) { return v_load_i32((const int32_t *)(const void *)w, V_LANES); }

VFN void tile_of(const int rows, size_t words, const uint8_t *a, size_t lda, const ortc_halved_panel *b,
                 int32_t *sums, size_t ld)
{
    vi32 sum[ORTC_HALVED_ROWS][VECTORS];
    UNROLL for (int j = 0; j < VECTORS; j++)
    {
        const vi32 first = v_load_i32(b->first + j * V_LANES, V_LANES);
        UNROLL for (int i = 0; i < rows; i++) sum[i][j] = first;
    }
    const int8_t *w = b->w;
    const uint8_t *x = a;
    size_t left = words;
    do {
        vi32 wv[VECTORS];
        UNROLL for (int j = 0; j < VECTORS; j++) wv[j] = weights_at(w + j * V_LANES * 4);
        UNROLL for (int i = 0; i < rows; i++)
        {
            const vi32 xv = word_at(x + (size_t)i * lda);
            UNROLL for (int j = 0; j < VECTORS; j++) sum[i][j] = v_dot_halves(sum[i][j], xv, wv[j]);
        }
        x += 4, w += PANEL * 4;
    } while (--left);
    UNROLL for (int j = 0; j < VECTORS; j++)
    {
        w = b->more_w[j];
        for (size_t k = 0; k < b->n_more[j]; k++, w += V_LANES * 4) {
            const vi32 wv = weights_at(w);
            x = a + (size_t)b->more[j][k] * 4;
            UNROLL for (int i = 0; i < rows; i++)
                sum[i][j] = v_dot_halves(sum[i][j], word_at(x + (size_t)i * lda), wv);
        }
    }
    UNROLL for (int i = 0; i < rows; i++)
    {
        UNROLL for (int j = 0; j < VECTORS; j++)
            v_store_i32(sums + (size_t)i * ld + j * V_LANES, sum[i][j], V_LANES);
    }
}

#define ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6)
#define TILE(n) \
    static void tile_##n(size_t words, const uint8_t *a, size_t lda, const ortc_halved_panel *b, \
                         int32_t *sums, size_t ld) \
    { \
        tile_of(n, words, a, lda, b, sums, ld); \
    }
ROWS(TILE)

static void tile(size_t rows, size_t words, const uint8_t *a, size_t lda, const ortc_halved_panel *b,
                 int32_t *sums, size_t ld)
{
#define ENTRY(n) tile_##n,
    static void (*const tiles[])(size_t, const uint8_t *, size_t, const ortc_halved_panel *, int32_t *,
                                 size_t) = {ROWS(ENTRY)};
    assert(rows >= 1 && rows <= ORTC_HALVED_ROWS && words >= 1);
    tiles[rows - 1](words, a, lda, b, sums, ld);
}

const ortc_halved_body V_NAME(ortc_halved_body) = {V_LANES, tile, v_count_halves, v_split_halves};
