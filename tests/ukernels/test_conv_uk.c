/* Every line of dwconv_uk.c against sums in double, and every line of columns_uk.inc against its definition,
 * around the length of a vector, in guarded buffers; NaN, all strides, unaligned sources.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/conv/columns_uk.h"
#include "kernels/conv/dwconv_uk.h"
#include "kernels/gemm/product_uk.h"
#include "tests.h"

static int depthwise(const ortc_dwconv_uk *uk, rng *r)
{
    int bad = 0;
    for (size_t n = 1; n <= 16 * 9 + 1; n++) {
        const size_t taps = (size_t)rng_range(r, 0, 9);
        int32_t offset[9], most = 0;
        for (size_t t = 0; t < taps; t++)
            offset[t] = (int32_t)rng_range(r, 0, 40), most = offset[t] > most ? offset[t] : most;
        guard gs = guard_open(((size_t)most + n) * 4, (int)(n % 2)), gd = guard_open(n * 4, (int)(n % 2));
        guard gw = guard_open(taps * 4, 1);
        float *src = (void *)gs.data, *dst = (void *)gd.data, *w = (void *)gw.data, bias = rng_float(r);
        rng_fill(r, src, (size_t)most + n);
        rng_fill(r, w, taps);
        if (n % 5 == 0) src[n / 2] = NAN;
        const int32_t act = (int32_t)(n % 3);
        uk->run(n, taps, src, offset, w, bias, act, 0.1f, 0.5f, dst);
        for (size_t j = 0; j < n; j++) {
            double v = bias, mag = fabs(bias);
            for (size_t t = 0; t < taps; t++) {
                const double p = (double)w[t] * src[(size_t)offset[t] + j];
                v += p, mag += fabs(p);
            }
            if (act == ORTC_UK_ACT_CLIP) v = v < 0.1f ? 0.1f : v > 0.5 ? 0.5 : v;
            if (act == ORTC_UK_ACT_LEAKY) v = v < 0 ? v * 0.1f : v;
            bad += isnan(v) ? !isnan(dst[j]) : !(fabs(dst[j] - v) <= 16 * FLT_EPSILON * mag);
        }
        bad += !guard_intact(&gs) + !guard_intact(&gd) + !guard_intact(&gw);
        guard_close(&gs), guard_close(&gd), guard_close(&gw);
    }
    return bad;
}

static int columns(const ortc_columns_uk *uk, rng *r)
{
    int bad = 0;
    for (int i = 0; i < 3000; i++) {
        const size_t rows = (size_t)rng_range(r, 0, 4), stride = (size_t)rng_range(r, 1, 10),
                     off = (size_t)rng_range(r, 0, 1);
        const size_t left = (size_t)(rng_next(r) % 3 ? 0 : rng_range(r, 1, 20)),
                     count = (size_t)rng_range(r, 0, 40);
        const size_t right = (size_t)(rng_next(r) % 3 ? 0 : rng_range(r, 1, 20)),
                     total = left + count + right;
        const size_t used = count ? (count - 1) * stride + 1 : 0,
                     src_step = used + (size_t)rng_range(r, 0, 3);
        const size_t dst_step = total + (size_t)rng_range(r, 0, 3), at_end = rng_next(r) % 2;
        const size_t n_src = rows && count ? (rows - 1) * src_step + used : 0,
                     n_dst = rows ? (rows - 1) * dst_step + total : 0;
        guard gs = guard_open(n_src * 4 + off, (int)at_end), gd = guard_open(n_dst * 4, (int)at_end);
        /* the guard stays right beside the elements */
        const unsigned char *src = gs.data + (at_end ? 0 : off);
        float *dst = (void *)gd.data;
        rng_fill(r, (float *)(void *)(gs.data + (at_end ? 0 : off)), n_src);
        memset(dst, 0xff, gd.bytes);
        uk->run(rows, dst, dst_step, (const float *)(const void *)src, src_step, stride, left, count, right);
        for (size_t row = 0; row < rows; row++)
            for (size_t j = 0; j < dst_step && row * dst_step + j < n_dst; j++) {
                float want = 0;
                if (j >= total)
                    memset(&want, 0xff, sizeof want); /* untouched */
                else if (j >= left && j < left + count)
                    memcpy(&want, src + (row * src_step + (j - left) * stride) * sizeof want, sizeof want);
                bad += memcmp(&want, &dst[row * dst_step + j], sizeof want) != 0;
            }
        bad += !guard_intact(&gs) + !guard_intact(&gd);
        guard_close(&gs), guard_close(&gd);
    }
    return bad;
}

static int phases(const ortc_columns_uk *uk, rng *r)
{
    int bad = 0;
    for (int i = 0; i < 1000 && uk->phases; i++) {
        const size_t which = rng_next(r) % 3, n = which == 2 ? (size_t)rng_range(r, 1, 40) : 2 + 2 * which,
                     stride = which == 2 ? (size_t)rng_range(r, 1, 40) : n,
                     count = (size_t)rng_range(r, 1, 70), step = count + (size_t)rng_range(r, 0, 3),
                     n_dst = (n - 1) * step + count, n_src = (count - 1) * stride + n;
        const int at_end = (int)(rng_next(r) % 2);
        guard gs = guard_open(n_src * 4, at_end), gd = guard_open(n_dst * 4, at_end);
        const float *src = (const void *)gs.data, none = 77;
        float *dst = (void *)gd.data;
        rng_fill(r, (void *)gs.data, n_src);
        for (size_t k = 0; k < n_dst; k++) dst[k] = none;
        uk->phases(count, n, stride, src, dst, step);
        for (size_t q = 0; q < n; q++)
            for (size_t k = 0; k < step && q * step + k < n_dst; k++)
                bad += dst[q * step + k] != (k < count ? src[k * stride + q] : none);
        bad += !guard_intact(&gs) + !guard_intact(&gd);
        guard_close(&gs), guard_close(&gd);
    }
    return bad;
}

void test_conv_uk(tally *t, uint32_t isa_bits)
{
    for (size_t u = 0; u < ortc_dwconv_uk_count; u++) {
        const ortc_dwconv_uk *uk = &ortc_dwconv_uks[u];
        rng r = {t->seed};
        if (tally_begins(t, uk->name, !(uk->isa & ~isa_bits))) tally_result(t, uk->name, depthwise(uk, &r));
    }
    for (size_t u = 0; u < ortc_columns_uk_count; u++) {
        const ortc_columns_uk *uk = &ortc_columns_uks[u];
        rng r = {t->seed};
        if (tally_begins(t, uk->name, !(uk->isa & ~isa_bits)))
            tally_result(t, uk->name, columns(uk, &r) + phases(uk, &r));
    }
}
