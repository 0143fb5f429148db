/* Convolutions of bytes over images laid out in groups of channels (kernels/conv/grouped.h) on every line of
 * products of bytes, those whose instructions are emulated included, against sums by definition: random
 * extents, pads, strides, dilations, groups, zero points, types. Everything lies between guards.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/conv/grouped.h"
#include "lines.h"
#include "mock.h"
#include "ortc/op.h"
#include "tests.h"

static int32_t at_once(void *scratch, int64_t n, int64_t grain, ortc_product_body *body, void *arg)
{
    (void)grain;
    if (n > 0) body(arg, 0, n, scratch);
    return 0;
}

typedef struct run_arg {
    const ortc_grouped *how;
    const ortc_conv_geometry *g;
    const void *laid;
    size_t packed_step;
} run_arg;

static void locate(const void *arg, int64_t index, ortc_product_item *it)
{
    const run_arg *r = arg;
    it->a = (const char *)it->a + (size_t)(index % r->g->group) * r->packed_step;
    it->c = (int32_t *)it->c + index * r->g->filters * r->g->out_count;
}
static void panel(const void *arg, int64_t index, int64_t k0, int64_t kc, int64_t n0, int64_t nc, void *dst,
                  size_t dw)
{
    const run_arg *r = arg;
    ortc_grouped_panel(r->how, r->laid, index, k0, kc, n0, nc, dst, dw);
}

static ortc_conv_geometry random_geometry(rng *r)
{
    ortc_conv_geometry g = {.spatial = 2,
                            .images = rng_range(r, 1, 2),
                            .group = rng_range(r, 1, 2),
                            .channels = rng_range(r, 3, rng_next(r) % 2 ? 12 : 150),
                            .filters = rng_range(r, 1, 40),
                            .in_count = 1,
                            .out_count = 1,
                            .kernel_count = 1};
    for (int i = 0; i < 2; i++) {
        g.kernel[i] = rng_range(r, 1, 3), g.stride[i] = rng_range(r, 1, 3);
        g.dilation[i] = rng_range(r, 1, 2), g.pad[i] = rng_range(r, 0, 2);
        const int64_t reach = (g.kernel[i] - 1) * g.dilation[i] + 1;
        g.in[i] = reach + rng_range(r, 0, 14);
        g.out[i] = (g.in[i] + 2 * g.pad[i] - reach) / g.stride[i] + 1;
        g.in_count *= g.in[i], g.out_count *= g.out[i], g.kernel_count *= g.kernel[i];
    }
    return g;
}

static int32_t byte_of(ortc_dtype t, const unsigned char *p, int64_t i)
{
    return t == ORTC_U8 ? p[i] : (int32_t)(int8_t)p[i];
}

/* A result by definition: what is in the padding is the zero point, which counts for nothing. */
static int32_t expected(const ortc_conv_geometry *g, const unsigned char *x, ortc_dtype tx, int32_t zero,
                        const unsigned char *w, ortc_dtype tw, int64_t image, int64_t filter, int64_t o)
{
    int32_t sum = 0;
    for (int64_t c = 0; c < g->channels; c++)
        for (int64_t tap = 0; tap < g->kernel_count; tap++) {
            const int64_t at[2] = {o / g->out[1] * g->stride[0] - g->pad[0] +
                                       tap / g->kernel[1] * g->dilation[0],
                                   o % g->out[1] * g->stride[1] - g->pad[1] +
                                       tap % g->kernel[1] * g->dilation[1]};
            if (at[0] < 0 || at[0] >= g->in[0] || at[1] < 0 || at[1] >= g->in[1]) continue;
            const int64_t from = (image * g->channels + c) * g->in_count + at[0] * g->in[1] + at[1];
            const int64_t of = ((image % g->group * g->filters + filter) * g->channels + c) * g->kernel_count;
            sum += (byte_of(tx, x, from) - zero) * byte_of(tw, w, of + tap);
        }
    return sum;
}

static int run_one(const ortc_product_line *line, rng *r)
{
    const ortc_conv_geometry g = random_geometry(r);
    /* W as the line has it, so that its zero point is 0 when packed; X may be moved. */
    const ortc_dtype tx = rng_next(r) % 2 ? ORTC_U8 : ORTC_I8,
                     tw = line->a.type == ORTC_I16 ? (rng_next(r) % 2 ? ORTC_U8 : ORTC_I8)
                                                   : (ortc_dtype)line->a.type;
    const int32_t zero = tx == ORTC_U8 ? (int32_t)rng_range(r, 0, 255) : (int32_t)rng_range(r, -128, 127);
    const int64_t nx = g.images * g.group * g.channels * g.in_count,
                  nw = g.group * g.filters * g.channels * g.kernel_count,
                  ny = g.images * g.group * g.filters * g.out_count;
    const int64_t dims[] = {g.group * g.filters, g.channels, g.kernel[0], g.kernel[1]};
    const ortc_product_threads threads[1] = {{at_once, NULL}};
    ortc_grouped how;
    if (!ortc_grouped_init(&g, tx, &line->b, &how)) return 1;
    guard x = guard_open((size_t)nx, 1), w = guard_open((size_t)nw, 1), y = guard_open((size_t)ny * 4, 1),
          laid = guard_open(how.bytes, 1);
    test_fill(r, tx, x.data, (size_t)nx);
    test_fill(r, tw, w.data, (size_t)nw);
    const ortc_view view = {.dtype = tw, .rank = 4, .dims = dims, .data = w.data, .flags = ORTC_VIEW_CONST};
    mock_packing plan = mock_packing_of(&view);
    const ortc_packed *packed = NULL;
    ortc_call call = mock_serial();
    int bad = ortc_grouped_pack(&plan.base, 0, &how, &g, line, &packed) != ORTC_OK;
    bad += ortc_grouped_lay(&how, x.data, (uint8_t)zero, laid.data, &call) != ORTC_OK;
    ortc_product_plan product;
    const ortc_product_types types = {tw, tx, ORTC_I32};
    bad += ortc_product_plan_init(&product, line, &types, g.filters, g.out_count, how.k, g.images * g.group,
                                  ORTC_PRODUCT_CUSTOM_B | ORTC_PRODUCT_GROUPED_B | ORTC_PRODUCT_PACKED_A,
                                  1) != 0;
    guard workspace = guard_open((product.workspace + 255) / 256 * 256, 1),
          scratch = guard_open((product.scratch + 255) / 256 * 256, 1);
    const run_arg arg = {&how, &g, laid.data, ortc_product_packed_bytes(&line->a, g.filters, how.k)};
    const ortc_product_args args = {.item = {.a = packed ? packed->data : NULL, .b = x.data, .c = y.data},
                                    .lda = how.k,
                                    .ldb = g.in_count,
                                    .ldc = g.out_count,
                                    .alpha = 1,
                                    .zero_b = zero,
                                    .locate = locate,
                                    .pack = panel,
                                    .arg = &arg,
                                    .workspace = workspace.data};
    const ortc_product_threads one = {threads->parallel, scratch.data};
    if (!bad) bad += ortc_product_run(&product, &args, &one) != 0;
    for (int64_t i = 0; !bad && i < ny; i++) {
        int32_t is;
        memcpy(&is, y.data + i * 4, 4);
        const int64_t o = i % g.out_count, f = i / g.out_count % g.filters, n = i / g.out_count / g.filters;
        const int32_t should = expected(&g, x.data, tx, zero, w.data, tw, n, f, o);
        if (is != should && ++bad)
            printf(
                "  %s: channels %d filters %d kernel %dx%d, image %d filter %d place %d: %d, expected %d\n",
                line->name, (int)g.channels, (int)g.filters, (int)g.kernel[0], (int)g.kernel[1], (int)n,
                (int)f, (int)o, is, should);
    }
    const guard *all[] = {&x, &w, &y, &laid, &workspace, &scratch, &plan.memory};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) bad += !guard_intact(all[i]);
    guard_close(&x), guard_close(&w), guard_close(&y), guard_close(&laid), guard_close(&workspace),
        guard_close(&scratch), guard_close(&plan.memory);
    return bad;
}

void test_grouped(tally *t, uint32_t isa_bits)
{
    const ortc_product_line *line;
    for (size_t i = 0; (line = test_line(i)); i++) {
        char name[128];
        int bad = 0;
        rng r = {t->seed};
        if (line->sum != ORTC_I32 || line->b.sums == 0) continue;
        if (line->b.order != ORTC_ORDER_QUADS && line->b.group * (line->b.type == ORTC_I16 ? 2 : 1) != 4)
            continue;
        snprintf(name, sizeof name, "convolutions of bytes in groups, %s", line->name);
        if (!tally_begins(t, name, !(line->isa & ~isa_bits))) continue;
        for (int n = 0; n < 60 && !bad; n++) bad += run_one(line, &r);
        tally_result(t, name, bad);
    }
}
