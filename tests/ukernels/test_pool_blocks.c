/* Pools over blocks of channels against their definition in double: random extents, windows, pads, dilations,
 * global forms, f32, f16 and bf16, NaN, between guard pages, on every instruction set. Sums of bytes, too. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/common/cpu_features.h"
#include "kernels/common/element.h"
#include "kernels/common/vector/convert.h"
#include "kernels/pool/blocks.h"
#include "kernels/pool/bytes.h"
#include "tests.h"

static int32_t one_by_one(void *scratch, int64_t n, int64_t grain, ortc_parallel_fn body, void *arg)
{
    for (int64_t i = (n - 1) / grain; i >= 0; i--)
        body(arg, i * grain, (i + 1) * grain < n ? (i + 1) * grain : n, scratch);
    return 0;
}

static int64_t place(const ortc_pool_blocks *p, int64_t n, int64_t c, int64_t s, int64_t count)
{
    return ((n * p->blocks + c / ORTC_BLOCK) * count + s) * ORTC_BLOCK + c % ORTC_BLOCK;
}

/* Channel c of image n under window o. */
static double expected(const ortc_pool_blocks *p, const void *x, ortc_dtype t, int64_t n, int64_t c,
                       const int64_t *o)
{
    const ortc_window_extents *e = &p->extents;
    double best = -INFINITY, sum = 0, count = 0;
    int64_t at[3], k[3];
    for (k[0] = 0; k[0] < (p->global ? e->in[0] : e->kernel[0]); k[0]++)
        for (k[1] = 0; k[1] < (p->global ? e->in[1] : e->kernel[1]); k[1]++)
            for (k[2] = 0; k[2] < (p->global ? e->in[2] : e->kernel[2]); k[2]++) {
                int inside = 1, counts = 1;
                for (int i = 0; i < 3; i++) {
                    at[i] = p->global ? k[i] : o[i] * e->stride[i] - e->pad[i] + k[i] * e->dilation[i];
                    inside &= at[i] >= 0 && at[i] < e->in[i];
                    counts &= p->before && at[i] < p->limit[i];
                }
                count += p->global || inside || counts;
                if (!inside) continue;
                const double v = ortc_load_f64(x, t,
                                               place(p, n, c, (at[0] * e->in[1] + at[1]) * e->in[2] + at[2],
                                                     p->in_count));
                sum += v;
                best = isnan(v) || v > best ? v : best;
                if (isnan(v)) return v;
            }
    return p->fold == ORTC_POOL_MAX ? best : sum / count;
}

static ortc_pool_blocks make(rng *r, ortc_dtype t)
{
    ortc_pool_blocks p = {.fold = (int)(rng_next(r) % 2),
                          .type = ortc_float_index(t),
                          .before = (int)(rng_next(r) % 2)};
    p.global = rng_next(r) % 4 == 0;
    p.images = rng_range(r, 1, 2), p.channels = rng_range(r, 1, 40);
    for (int i = 0; i < 3; i++) {
        ortc_window_extents *e = &p.extents;
        const int used = i == 2 || rng_next(r) % 3;
        e->in[i] = used ? rng_range(r, 1, i == 2 && p.global ? 300 : 12) : 1;
        e->kernel[i] = used ? rng_range(r, 1, 4) : 1;
        e->stride[i] = used ? rng_range(r, 1, 3) : 1, e->dilation[i] = used ? rng_range(r, 1, 2) : 1;
        e->pad[i] = used ? rng_range(r, 0, 3) : 0;
        const int64_t end = rng_range(r, 0, 3), span = (e->kernel[i] - 1) * e->dilation[i] + 1;
        if (used && e->in[i] + e->pad[i] + end < span) e->in[i] = span;
        /* sometimes as ceil_mode has it */
        e->out[i] = used ? (e->in[i] + e->pad[i] + end - span + (int64_t)(rng_next(r) % 2)) / e->stride[i] + 1
                         : 1;
        p.limit[i] = p.before ? e->in[i] + end : e->in[i];
    }
    ortc_pool_blocks_init(&p);
    return p;
}

static int run_one(rng *r)
{
    static const ortc_dtype types[] = {ORTC_F32, ORTC_F16, ORTC_BF16};
    const ortc_dtype t = types[rng_next(r) % 3];
    const ortc_pool_blocks p = make(r, t);
    const int64_t images = p.images * p.blocks * ORTC_BLOCK;
    const size_t size = t == ORTC_F32 ? 4 : 2;
    guard x = guard_open((size_t)(images * p.in_count) * size, (int)(rng_next(r) % 2));
    guard y = guard_open((size_t)(images * p.out_count) * size, (int)(rng_next(r) % 2));
    guard scratch = guard_open((p.scratch + 63) / 64 * 64, 1);
    const int64_t *out = p.extents.out;
    int bad = 0;
    memset(x.data, 0, x.bytes);
    for (int64_t n = 0; n < p.images; n++)
        for (int64_t c = 0; c < p.channels; c++)
            for (int64_t s = 0; s < p.in_count; s++)
                ortc_store_f64(x.data, t, place(&p, n, c, s, p.in_count), (double)rng_float(r));
    if (rng_next(r) % 8 == 0) ortc_store_f64(x.data, t, place(&p, 0, 0, p.in_count / 2, p.in_count), NAN);
    for (int i = rng_next(r) % 4 ? 0 : 4; i > 0; i--) /* both, at times under one window */
        ortc_store_f64(x.data, t, place(&p, 0, 0, rng_range(r, 0, p.in_count - 1), p.in_count),
                       i % 2 ? INFINITY : -INFINITY);
    memset(y.data, 0xff, y.bytes);
    ortc_pool_blocks_run(&p, x.data, y.data, one_by_one, scratch.data);
    for (int64_t n = 0; n < p.images; n++)
        for (int64_t c = 0; c < p.blocks * ORTC_BLOCK; c++)
            for (int64_t s = 0; s < p.out_count; s++) {
                const int64_t o[3] = {s / out[2] / out[1], s / out[2] % out[1], s % out[2]};
                const double got = ortc_load_f64(y.data, t, place(&p, n, c, s, p.out_count));
                const double v = c < p.channels ? expected(&p, x.data, t, n, c, o) : 0;
                const double bound = p.fold == ORTC_POOL_MAX ? 0
                                                             : (t == ORTC_F32   ? 64 * FLT_EPSILON
                                                                : t == ORTC_F16 ? 0x1p-10
                                                                                : 0x1p-7);
                bad += isnan(v) ? !isnan(got) : isinf(v) ? got != v : !(fabs(got - v) <= bound);
            }
    bad += !guard_intact(&x) + !guard_intact(&y) + !guard_intact(&scratch);
    guard_close(&x), guard_close(&y), guard_close(&scratch);
    return bad;
}

ORTC_VEC_TABLE(ortc_pool_bytes)

/* Pixels of 16 channels, of all numbers or the farthest from 0 alone, added to what is there. */
static int sums_of_bytes(rng *r)
{
    const int is_signed = (int)(rng_next(r) % 2), farthest = (int)(rng_next(r) % 2);
    const size_t n = (size_t)rng_range(r, 0, rng_next(r) % 4 ? 40 : 3000);
    guard x = guard_open(n * 16, (int)(rng_next(r) % 2));
    uint8_t *bytes = x.data;
    int64_t want[16], have[16];
    int bad = 0;
    for (int c = 0; c < 16; c++) want[c] = have[c] = rng_range(r, -1000, 1000);
    for (size_t i = 0; i < n * 16; i++) {
        bytes[i] = farthest ? is_signed ? 0x80 : 0xff : (uint8_t)rng_next(r);
        want[i % 16] += is_signed ? (int8_t)bytes[i] : bytes[i];
    }
    ortc_pool_bytes_select()->sums(n, bytes, is_signed, have);
    for (int c = 0; c < 16; c++) bad += want[c] != have[c];
    bad += !guard_intact(&x);
    guard_close(&x);
    return bad;
}

void test_pool_blocks(tally *t, uint32_t isa_bits)
{
#define LINE(isa, needs, unused) {#isa, needs},
    static const struct {
        const char *name;
        uint32_t needs;
    } isas[] = {ORTC_EACH_ISA(LINE, 0)};
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++) {
        char name[64];
        int known, bad = 0;
        rng r = {t->seed};
        snprintf(name, sizeof name, "pools in blocks, %s", isas[i].name);
        if (!tally_begins(t, name, !(isas[i].needs & ~isa_bits))) continue;
        ortc_cpu_features_set_mask(ortc_cpu_level_mask(isas[i].name, &known));
        for (int n = 0; n < 500; n++) bad += run_one(&r) + sums_of_bytes(&r);
        ortc_cpu_features_set_mask(UINT32_MAX);
        tally_result(t, name, bad);
    }
}
