/* Products of bytes by halves (kernels/gemm/halved.h) against sums by definition: random extents, zero points
 * and types of both, weights of all sizes and mild ones, results as sums and through a callback; forwards on
 * three threads and backwards on one, everything between guards.
 */
#include <stdio.h>
#include <string.h>

#include "kernels/common/cpu_features.h"
#include "kernels/gemm/halved.h"
#include "mock.h"
#include "pool.h"
#include "tests.h"

static int32_t backwards(void *scratch, int64_t n, int64_t grain, ortc_product_body *body, void *arg)
{
    for (int64_t i = (n - 1) / grain; i >= 0 && n > 0; i--)
        body(arg, i * grain, (i + 1) * grain < n ? (i + 1) * grain : n, scratch);
    return 0;
}

/* Parts of C, each once. */
typedef struct collected {
    int32_t *c;
    int64_t n;
} collected;
static void collect(void *arg, int32_t *sums, size_t rows, size_t cols, size_t ld, int64_t row, int64_t col)
{
    const collected *to = arg;
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++) {
            int32_t *at = &to->c[(row + (int64_t)i) * to->n + col + (int64_t)j];
            *at = *at == -1 ? sums[i * ld + j] : 12345678;
        }
}

static int value(const uint8_t *data, ortc_dtype type, int64_t i)
{
    return type == ORTC_U8 ? data[i] : (int8_t)data[i];
}

static int run_one(const ortc_halved_body *body, rng *r)
{
    static const ortc_dtype types[] = {ORTC_U8, ORTC_I8};
    const int64_t m = rng_range(r, 1, rng_next(r) % 4 ? 20 : 130),
                  n = rng_range(r, 1, rng_next(r) % 4 ? 50 : 200),
                  k = rng_range(r, 1, rng_next(r) % 4 ? 70 : 700);
    const ortc_dtype ta = types[rng_next(r) % 2], tb = types[rng_next(r) % 2];
    const int mild = rng_next(r) % 2,
              zero = (int)(ta == ORTC_U8 ? rng_range(r, 0, 255) : rng_range(r, -128, 127)),
              end = rng_next(r) % 2, calls = rng_next(r) % 2;
    guard a = guard_open((size_t)(m * k), end), b = guard_open((size_t)(k * n), end),
          c = guard_open((size_t)(m * n) * 4, end);
    for (size_t i = 0; i < a.bytes; i++) a.data[i] = (unsigned char)rng_next(r);
    for (size_t i = 0; i < b.bytes; i++)
        b.data[i] = (unsigned char)(mild && rng_next(r) % 64 ? (int)(rng_next(r) % 100) - 50
                                                             : (int)rng_next(r)) ^
                    (tb == ORTC_U8 ? 0x80 : 0);
    int64_t dims[] = {k, n};
    const ortc_view view = {.data = b.data, .dtype = tb, .flags = ORTC_VIEW_CONST, .rank = 2, .dims = dims};
    mock_packing plan = mock_packing_of(&view);
    const ortc_packed *packed = NULL;
    int bad = ortc_halved_packed(&plan.base, 0, body, n, k, 0, &packed) != ORTC_OK;
    ortc_halved h;
    ortc_halved_init(body, m, n, k, ta, rng_next(r) % 4, &h);
    const size_t scratch_bytes = (h.scratch + 63) / 64 * 64;
    guard scratch = guard_open(scratch_bytes, 1), workspace = guard_open((h.workspace + 63) / 64 * 64, 1);
    pool *pl = pool_open(3, scratch_bytes);
    const ortc_product_threads ways[] = {{backwards, scratch.data}, pool_threads(pl)};
    collected to = {(int32_t *)(void *)c.data, n};
    const ortc_halved_args x = {.a = a.data,
                                .b = packed->data,
                                .zero = zero,
                                .sums = calls ? collect : NULL,
                                .arg = &to,
                                .c = to.c,
                                .workspace = workspace.data};
    for (int way = 0; way < 2; way++) {
        memset(c.data, 0xff, c.bytes);
        memset(scratch.data, 0x5a, scratch.bytes);
        bad += ortc_halved_run(&h, &x, &ways[way]) != 0;
        for (int64_t i = 0; i < m * n; i++) {
            int32_t sum = 0;
            for (int64_t q = 0; q < k; q++)
                sum += (value(a.data, ta, i / n * k + q) - zero) *
                       (value(b.data, tb, q * n + i % n) - (tb == ORTC_U8 ? 128 : 0));
            bad += to.c[i] != sum;
        }
    }
    pool_close(pl);
    guard *all[] = {&a, &b, &c, &scratch, &workspace, &plan.memory};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        bad += !guard_intact(all[i]);
        guard_close(all[i]);
    }
    if (bad)
        printf("  %lld x %lld x %lld, types %d %d, zero %d, mild %d, called back %d\n", (long long)m,
               (long long)n, (long long)k, (int)ta, (int)tb, zero, mild, calls);
    return bad;
}

void test_halved(tally *t, uint32_t isa_bits)
{
    static const struct {
        const char *name;
        uint32_t bits;
    } ways[] = {{"products of bytes by halves, avx512", ORTC_CPU_AVX2 | ORTC_CPU_AVX512},
                {"products of bytes by halves, avx2", ORTC_CPU_AVX2}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        int bad = 0;
        rng r = {t->seed};
        if (!tally_begins(t, ways[i].name, !(ways[i].bits & ~isa_bits))) continue;
        ortc_cpu_features_set_mask(ways[i].bits);
        const ortc_halved_body *body = ortc_halved_get();
        for (int n = 0; n < 300; n++) bad += !body || run_one(body, &r);
        ortc_cpu_features_set_mask(UINT32_MAX);
        tally_result(t, ways[i].name, bad);
    }
}
