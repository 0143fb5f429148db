/* Packing whole operands: constants once (fill), and what tasks share (the first loop of a run uses the same
 * two functions). Work is split by blocks and panels; which ISA packs is the micro-kernel's line in the
 * table.
 */
#include "product_pack.h"

#include "product_packed.h"

void ortc_product_pack_block(const ortc_product_line *uk, uint32_t flags, const float *a, int64_t lda,
                             int64_t row, int64_t rows, int64_t k0, int64_t kc, float *dst)
{
    if (flags & ORTC_PRODUCT_TRANS_A)
        uk->pack_rows((size_t)rows, (size_t)kc, a + k0 * lda + row, (size_t)lda, dst, (size_t)rows);
    else
        uk->pack_transpose((size_t)rows, (size_t)kc, a + row * lda + k0, (size_t)lda, dst, (size_t)rows);
}

void ortc_product_pack_panel(const ortc_product_line *uk, uint32_t flags, const float *b, int64_t ldb,
                             int64_t n0, int64_t nc, int64_t k0, int64_t kc, float *dst, int64_t width)
{
    if (flags & ORTC_PRODUCT_TRANS_B)
        uk->pack_transpose((size_t)nc, (size_t)kc, b + n0 * ldb + k0, (size_t)ldb, dst, (size_t)width);
    else
        uk->pack_rows((size_t)nc, (size_t)kc, b + k0 * ldb + n0, (size_t)ldb, dst, (size_t)width);
}

/* A panel is a few cache lines of each row of B, and rows are often a power of two apart, where lines evict
 * each other; so a block of rows gives to all panels before the next. */
#define PANEL_ROWS 64

void ortc_product_pack_panels(const ortc_product_line *uk, uint32_t flags, const float *b, int64_t ldb,
                              int64_t n, int64_t q0, int64_t q1, int64_t k0, int64_t kc, float *dst)
{
    const int64_t all = ortc_product_packed_width(uk, n), nr = uk->nr;
    for (int64_t k = 0; k < kc; k += PANEL_ROWS) {
        const int64_t rows = kc - k < PANEL_ROWS ? kc - k : PANEL_ROWS;
        for (int64_t q = q0; q < q1; q++) {
            const int64_t n0 = q * nr, nc = n - n0 < nr ? n - n0 : nr,
                          width = ortc_product_panel_width(uk, n, n0);
            ortc_product_pack_panel(uk, flags, b, ldb, n0, nc, k0 + k, rows,
                                    dst + k0 * all + n0 * kc + k * width, width);
        }
    }
}

typedef struct fill_args {
    const ortc_product_line *uk;
    int64_t extent, k, ld; /* m or n */
    uint32_t flags;
    const float *src;
    float *dst;
} fill_args;

static void fill_a_body(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const fill_args *f = arg;
    const int64_t blocks = (f->extent - 1) / f->uk->mr + 1, chunk = ortc_product_chunk(f->uk, f->k);
    (void)scratch;
    for (int64_t i = begin; i < end; i++) {
        const int64_t row = ortc_product_row(f->extent, blocks, i),
                      rows = ortc_product_row(f->extent, blocks, i + 1) - row;
        for (int64_t k0 = 0; k0 < f->k; k0 += chunk) {
            const int64_t kc = f->k - k0 < chunk ? f->k - k0 : chunk;
            ortc_product_pack_block(f->uk, f->flags, f->src, f->ld, row, rows, k0, kc,
                                    f->dst + k0 * f->extent + row * kc);
        }
    }
}

static void fill_b_body(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const fill_args *f = arg;
    const int64_t chunk = ortc_product_chunk(f->uk, f->k);
    (void)scratch;
    for (int64_t k0 = 0; k0 < f->k; k0 += chunk)
        ortc_product_pack_panels(f->uk, f->flags, f->src, f->ld, f->extent, begin, end, k0,
                                 f->k - k0 < chunk ? f->k - k0 : chunk, f->dst);
}

int64_t ortc_product_pack_grain(const ortc_product_line *uk, int64_t k)
{
    const int64_t bytes = (int64_t)sizeof(float) * uk->nr * (k > 0 ? k : 1), target = 64 * 1024, least = 4;
    return bytes >= target / least ? least : target / bytes;
}

int32_t ortc_product_fill_a(const ortc_product_line *uk, int64_t m, int64_t k, uint32_t flags, const float *a,
                            int64_t lda, float *dst, const ortc_product_threads *threads)
{
    fill_args f = {uk, m, k, lda, flags, a, dst};
    if (m == 0 || k == 0) return 0;
    return threads->parallel(threads->context, (m - 1) / uk->mr + 1, ortc_product_pack_grain(uk, k),
                             fill_a_body, &f);
}

int32_t ortc_product_fill_b(const ortc_product_line *uk, int64_t n, int64_t k, uint32_t flags, const float *b,
                            int64_t ldb, float *dst, const ortc_product_threads *threads)
{
    fill_args f = {uk, n, k, ldb, flags, b, dst};
    if (n == 0 || k == 0) return 0;
    return threads->parallel(threads->context, (n - 1) / uk->nr + 1, ortc_product_pack_grain(uk, k),
                             fill_b_body, &f);
}

/* Never 0 for an empty operand: 0 means "does not fit". */
static size_t packed_bytes(int64_t extent, int64_t k)
{
    size_t v;
    if (__builtin_mul_overflow((size_t)extent, (size_t)k, &v) ||
        __builtin_mul_overflow(v, sizeof(float), &v) || v > SIZE_MAX / 2)
        return 0;
    return v ? v : sizeof(float);
}

size_t ortc_product_packed_a_bytes(const ortc_product_line *uk, int64_t m, int64_t k)
{
    (void)uk; /* blocks are exact */
    return packed_bytes(m, k);
}

size_t ortc_product_packed_b_bytes(const ortc_product_line *uk, int64_t n, int64_t k)
{
    return n > INT64_MAX - 64 ? 0 : packed_bytes(ortc_product_packed_width(uk, n), k);
}
