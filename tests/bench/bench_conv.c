/* Convolution of the cpu provider in f32 (or f16, bf16) against a peak loop of the same instruction set and
 * thread count, alternated within the same second: plain values and today's choice among their kernels, then
 * blocks of 16 channels, directly, by Winograd's tiles and on a unit of tiles. Shapes are layers of
 * ResNet-50, of a network like YOLOv8n, of MobileNetV2 and digits.
 *
 *   bench_conv [--threads 1,2] [--reps 20] [--f16|--bf16] [--error] [--way NAME] [FILTER]
 *
 * ORTC_CPU: the instruction set. --way: one of those that rows name. A row: GFLOP/s by the definition's count
 * of operations, the median ratio to the peak and its spread.
 * --error: instead, of dense windows in blocks, the error against sums in double, x and W being random in -1
 * .. 1: root of the mean square and largest, over the same mean of the results.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/common/cpu_features.h"
#include "kernels/common/element.h"
#include "kernels/conv/blocked_depthwise.h"
#include "kernels/conv/tiled.h"
#include "kernels/conv/winograd.h"
#include "tools/ortc/peak.h"
#include "tests/ukernels/mock.h"
#include "tests/ukernels/programs.h"
#include "tests/ukernels/pool.h"

extern const ortc_kernel_table ortc_kernels_cpu_conv;

typedef struct layer {
    const char *name;
    int64_t images, group, channels, filters, extent, kernel, stride, pad; /* channels, filters in all */
} layer;

/* clang-format off */
static const layer layers[] = {
    /* ResNet-50 */
    {"stem 7x7 s2", 1, 1, 3, 64, 224, 7, 2, 3},
    {"3x3 64@56", 1, 1, 64, 64, 56, 3, 1, 1},
    {"3x3 128@28", 1, 1, 128, 128, 28, 3, 1, 1},
    {"3x3 256@14", 1, 1, 256, 256, 14, 3, 1, 1},
    {"3x3 512@7", 1, 1, 512, 512, 7, 3, 1, 1},
    {"unet 32@256", 1, 1, 32, 32, 256, 3, 1, 1},
    {"unet 64-32@256", 1, 1, 64, 32, 256, 3, 1, 1},
    {"unet 64@128", 1, 1, 64, 64, 128, 3, 1, 1},
    {"unet 128@64", 1, 1, 128, 128, 64, 3, 1, 1},
    {"unet 256@32", 1, 1, 256, 256, 32, 3, 1, 1},
    {"unet 512@16", 1, 1, 512, 512, 16, 3, 1, 1},
    {"unet 1024-512@16", 1, 1, 1024, 512, 16, 3, 1, 1},
    {"unet 512-256@32", 1, 1, 512, 256, 32, 3, 1, 1},
    {"unet 256-128@64", 1, 1, 256, 128, 64, 3, 1, 1},
    {"unet 128-64@128", 1, 1, 128, 64, 128, 3, 1, 1},
    {"3x3 s2 128@56", 1, 1, 128, 128, 56, 3, 2, 1},
    {"3x3 s2 256@28", 1, 1, 256, 256, 28, 3, 2, 1},
    {"3x3 s2 512@14", 1, 1, 512, 512, 14, 3, 2, 1},
    {"1x1 64-64@56", 1, 1, 64, 64, 56, 1, 1, 0},
    {"1x1 256-64@56", 1, 1, 256, 64, 56, 1, 1, 0},
    {"1x1 64-256@56", 1, 1, 64, 256, 56, 1, 1, 0},
    {"1x1 128-512@28", 1, 1, 128, 512, 28, 1, 1, 0},
    {"1x1 512-128@28", 1, 1, 512, 128, 28, 1, 1, 0},
    {"1x1 256-1024@14", 1, 1, 256, 1024, 14, 1, 1, 0},
    {"1x1 1024-256@14", 1, 1, 1024, 256, 14, 1, 1, 0},
    {"1x1 512-2048@7", 1, 1, 512, 2048, 7, 1, 1, 0},
    {"1x1 2048-512@7", 1, 1, 2048, 512, 7, 1, 1, 0},
    {"1x1 s2 256-512@56", 1, 1, 256, 512, 56, 1, 2, 0},
    {"1x1 s2 1024-2048@14", 1, 1, 1024, 2048, 14, 1, 2, 0},
    /* a network like YOLOv8n at 640 */
    {"yolo stem 3x3 s2", 1, 1, 3, 16, 640, 3, 2, 1},
    {"yolo 3x3 s2 16-32@320", 1, 1, 16, 32, 320, 3, 2, 1},
    {"yolo 1x1 32@160", 1, 1, 32, 32, 160, 1, 1, 0},
    {"yolo 3x3 16@160", 1, 1, 16, 16, 160, 3, 1, 1},
    {"yolo 1x1 48-32@160", 1, 1, 48, 32, 160, 1, 1, 0},
    {"yolo 3x3 s2 32-64@160", 1, 1, 32, 64, 160, 3, 2, 1},
    {"yolo 3x3 32@80", 1, 1, 32, 32, 80, 3, 1, 1},
    {"yolo 3x3 64@40", 1, 1, 64, 64, 40, 3, 1, 1},
    {"yolo 3x3 128@20", 1, 1, 128, 128, 20, 3, 1, 1},
    {"yolo 1x1 384-256@20", 1, 1, 384, 256, 20, 1, 1, 0},
    {"yolo 3x3 64-80@80", 1, 1, 64, 80, 80, 3, 1, 1},
    {"yolo 1x1 80@80", 1, 1, 80, 80, 80, 1, 1, 0},
    /* MobileNetV2 and digits */
    {"1x1 32-16@112", 1, 1, 32, 16, 112, 1, 1, 0},
    {"1x1 16-96@112", 1, 1, 16, 96, 112, 1, 1, 0},
    {"1x1 96-24@56", 1, 1, 96, 24, 56, 1, 1, 0},
    {"1x1 24-144@56", 1, 1, 24, 144, 56, 1, 1, 0},
    {"1x1 144-24@56", 1, 1, 144, 24, 56, 1, 1, 0},
    {"1x1 32-192@28", 1, 1, 32, 192, 28, 1, 1, 0},
    {"1x1 192-32@28", 1, 1, 192, 32, 28, 1, 1, 0},
    {"1x1 64-384@14", 1, 1, 64, 384, 14, 1, 1, 0},
    {"1x1 384-64@14", 1, 1, 384, 64, 14, 1, 1, 0},
    {"1x1 576-96@14", 1, 1, 576, 96, 14, 1, 1, 0},
    {"1x1 160-960@7", 1, 1, 160, 960, 7, 1, 1, 0},
    {"1x1 960-160@7", 1, 1, 960, 160, 7, 1, 1, 0},
    {"dw 3x3 96@112 s2", 1, 96, 96, 96, 112, 3, 2, 1},
    {"dw 3x3 144@56", 1, 144, 144, 144, 56, 3, 1, 1},
    {"dw 3x3 384@14", 1, 384, 384, 384, 14, 3, 1, 1},
    {"dw 3x3 960@7", 1, 960, 960, 960, 7, 3, 1, 1},
    {"digits 3x3 1-16@8", 1, 1, 1, 16, 8, 3, 1, 1},
    {"digits 3x3 16-32@8", 1, 1, 16, 32, 8, 3, 1, 1}};
/* clang-format on */

static int reps = 20, errors;
static const char *only; /* the way to be measured, by its name; NULL: all */
static ortc_dtype type = ORTC_F32;

/* With one thread the thread's own processor time, which others on the machine do not touch; else the
 * wall's. */
static clockid_t clock_used = CLOCK_MONOTONIC;

static double now(void)
{
    struct timespec t;
    clock_gettime(clock_used, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct peak_args {
    double flops, done[64];
    float sink[64][16]; /* a cache line each */
} peak_args;

static void peak_each(void *arg, int thread)
{
    peak_args *p = arg;
    p->done[thread] = peak_f32(ortc_cpu_features(), p->flops, &p->sink[thread][0]);
}

static double peak(pool *pl, int threads, double flops)
{
    static peak_args p;
    double done = 0;
    p.flops = flops / threads;
    const double t = now();
    pool_each(pl, peak_each, &p);
    for (int i = 0; i < threads; i++) done += p.done[i];
    return done / (now() - t) / 1e9;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void fill(void *data, int64_t n)
{
    for (int64_t i = 0; i < n; i++) ortc_store_f64(data, type, i, (double)(i % 17 - 8) / 16);
}

static mock_tensor tensor(int32_t rank, int64_t d0, int64_t d1, int64_t d2, int is_const)
{
    mock_tensor t = {.rank = rank, .dims = {d0, d1, d2, d2}, .is_const = is_const};
    const int64_t n = mock_count(&t);
    t.data = pool_memory((size_t)n * sizeof(float));
    fill(t.data, n);
    return t;
}

/* What is measured: today's choice of kernels on plain values, or values in blocks of 16 channels. */
typedef struct way {
    const char *name;
    mock_session *session; /* plain */
    ortc_blocked_plan plan;
    ortc_blocked_depthwise_plan depthwise; /* blocks */
    ortc_winograd_plan winograd;
    ortc_tiled_plan tiled;
    const void *w;
    float *space;
    ortc_blocked_args args;
    ortc_product_threads threads;
} way;

static void once(way *w)
{
    if (w->session)
        mock_execute(w->session);
    else if (w->tiled.uk)
        ortc_tiled_run(&w->tiled, &w->args, w->w, w->space, &w->threads);
    else if (w->winograd.m)
        ortc_winograd_run(&w->winograd, &w->args, w->w, w->space, &w->threads);
    else if (w->depthwise.blocks)
        ortc_blocked_depthwise_run(&w->depthwise, &w->args, &w->threads);
    else
        ortc_blocked_run(&w->plan, &w->args, &w->threads);
}

/* The median ratio of `reps` to the peak, each measured right before; prints the row. */
static void measure(const layer *l, way *w, pool *pl, int threads, double flops)
{
    if (only && strcmp(only, w->name)) return;
    double *ratios = calloc((size_t)reps, sizeof(double)), *rates = calloc((size_t)reps, sizeof(double));
    once(w); /* warm */
    double t = now();
    once(w);
    const int per = (int)(0.01 / (now() - t + 1e-9)) + 1;
    for (int r = 0; r < reps; r++) {
        const double top = peak(pl, threads, peak(pl, threads, 1e7) * 1e9 * 0.005);
        t = now();
        for (int i = 0; i < per; i++) once(w);
        rates[r] = flops * per / (now() - t) / 1e9;
        ratios[r] = rates[r] / top;
    }
    qsort(ratios, (size_t)reps, sizeof(double), by_value);
    qsort(rates, (size_t)reps, sizeof(double), by_value);
    printf("%-22s %-10s %d threads %8.1f GFLOP/s %9.1f us  ratio %.3f (%.3f .. %.3f)\n", l->name, w->name,
           threads, rates[reps / 2], flops / rates[reps / 2] / 1e3, ratios[reps / 2], ratios[reps / 10],
           ratios[reps - 1 - reps / 10]);
    fflush(stdout);
    free(ratios), free(rates);
}

static ortc_conv_geometry geometry(const layer *l, int64_t out)
{
    ortc_conv_geometry g = {.spatial = 2,
                            .images = l->images,
                            .group = l->group,
                            .channels = l->channels / l->group,
                            .filters = l->filters / l->group,
                            .in_count = l->extent * l->extent,
                            .out_count = out * out,
                            .kernel_count = l->kernel * l->kernel};
    for (int i = 0; i < 2; i++) {
        g.in[i] = l->extent, g.out[i] = out, g.kernel[i] = l->kernel;
        g.stride[i] = l->stride, g.dilation[i] = 1, g.pad[i] = l->pad;
    }
    return g;
}

/* One result by definition, in double. */
static double definition(const ortc_conv_geometry *g, const float *x, const float *w, int64_t filter,
                         int64_t row, int64_t column)
{
    double sum = 0;
    for (int64_t c = 0; c < g->channels; c++)
        for (int64_t t = 0; t < g->kernel_count; t++) {
            const int64_t r = row * g->stride[0] - g->pad[0] + t / g->kernel[1],
                          q = column * g->stride[1] - g->pad[1] + t % g->kernel[1];
            if (r < 0 || q < 0 || r >= g->in[0] || q >= g->in[1]) continue;
            sum += (double)x[((c / 16 * g->in[0] + r) * g->in[1] + q) * 16 + c % 16] *
                   (double)w[(filter * g->channels + c) * g->kernel_count + t];
        }
    return sum;
}

/* Of 20,000 results. */
static void measure_error(const layer *l, const way *w, const ortc_conv_geometry *g)
{
    double squares = 0, wrong = 0, most = 0;
    uint64_t at = 1;
    for (int i = 0; i < 20000; i++) {
        at = at * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        const int64_t n = (int64_t)(at >> 33) % (g->filters * g->out_count), f = n / g->out_count,
                      pixel = n % g->out_count;
        const double v = definition(g, w->args.x, w->w, f, pixel / g->out[1], pixel % g->out[1]);
        const float *y = w->args.y;
        const double e = fabs((double)y[(f / 16 * g->out_count + pixel) * 16 + f % 16] - v);
        squares += v * v, wrong += e * e;
        most = e > most ? e : most;
    }
    printf("%-22s %-10s error over results: %.2e, at most %.2e\n", l->name, w->name, sqrt(wrong / squares),
           most / sqrt(squares / 20000));
}

static void fill_random(float *data, int64_t n, uint64_t at)
{
    for (int64_t i = 0; i < n; i++) {
        at = at * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        data[i] = (float)(at >> 40) / 8388608 - 1;
    }
}

/* winograd: pixels a side of a tile; 0: directly; tiles: what its products go by in pieces, or NULL. */
static void in_blocks(const layer *l, const mock_node *n, int64_t out, int winograd,
                      const ortc_tiled_uk *tiles, int threads, double flops)
{
    const ortc_conv_geometry g = geometry(l, out);
    const int stem = l->channels <= ORTC_STEM_CHANNELS;
    const ortc_tail_spec relu = {.alpha = 1,
                                 .act = errors ? ORTC_UK_ACT_NONE : ORTC_UK_ACT_CLIP,
                                 .hi = INFINITY,
                                 .bias = -1,
                                 .residual = -1};
    const int64_t ins = stem ? l->channels : (l->channels + 15) / 16 * 16, outs = (l->filters + 15) / 16 * 16;
    static const char *const names[] = {"blocks",           NULL,         "F(2x2,3x3)",
                                        "F(2x2) in pieces", "F(4x4,3x3)", "F(4x4) in pieces"};
    way w = {.name = names[winograd + (tiles != NULL)], .w = n->in[1].data};
    const int depthwise = ortc_blocked_depthwise_plan_init(&g, type, (uint32_t)threads, &w.depthwise);
    if (winograd ? stem || !ortc_winograd_plan_init(&g, type, winograd, tiles, NULL, (uint32_t)threads,
                                                    &w.winograd)
                 : !depthwise && !ortc_blocked_plan_init(&g, type, stem, 0, &w.plan))
        return;
    if (errors && (stem || depthwise || l->kernel == 1)) return;
    pool *pl = pool_open(threads, winograd    ? w.winograd.scratch
                                  : depthwise ? w.depthwise.scratch
                                              : w.plan.scratch);
    w.threads = pool_threads(pl);
    w.space = pool_memory(w.winograd.shared + 64);
    void *packed = pool_memory(winograd    ? ortc_winograd_weight_bytes(&g, winograd, tiles != NULL)
                               : depthwise ? ortc_blocked_depthwise_weight_bytes(&g)
                                           : ortc_blocked_weight_bytes(&g, type, stem, NULL));
    float *x = pool_memory((size_t)(l->images * ins * g.in_count) * sizeof(float));
    float *y = pool_memory((size_t)(l->images * outs * g.out_count) * sizeof(float));
    float *bias = pool_memory((size_t)outs * sizeof(float));
    fill(x, l->images * ins * g.in_count);
    if (errors) {
        fill_random(x, ins * g.in_count, 1); /* channels fill their blocks */
        fill_random(n->in[1].data, l->filters * l->channels * g.kernel_count, 2);
    }
    if (winograd)
        ortc_winograd_weight_fill(&g, type, winograd, tiles != NULL, n->in[1].data, 0,
                                  (g.filters + ORTC_BLOCK - 1) / ORTC_BLOCK, packed, &w.threads);
    else if (depthwise)
        ortc_blocked_depthwise_weight_fill(&g, type, n->in[1].data, packed);
    else
        ortc_blocked_weight_fill(&g, type, stem, n->in[1].data, packed, &w.threads);
    w.args = (ortc_blocked_args){x, packed, NULL, bias, y, &relu, NULL};
    if (errors) {
        once(&w);
        measure_error(l, &w, &g);
    } else {
        measure(l, &w, pl, threads, flops);
    }
    ortc_blocked_plan_deinit(&w.plan);
    pool_close(pl);
    free(packed), free(x), free(y), free(bias), free(w.space);
}

/* On the machine's unit of tiles. */
static void on_tiles(const layer *l, const mock_node *n, int64_t out, int kind, int threads, double flops)
{
    static const char *const names[] = {"bf16", "rounded", "pieces", "plain"};
    const ortc_conv_geometry g = geometry(l, out);
    const ortc_tail_spec relu = {.alpha = 1,
                                 .act = errors ? ORTC_UK_ACT_NONE : ORTC_UK_ACT_CLIP,
                                 .hi = INFINITY,
                                 .bias = -1,
                                 .residual = -1};
    const int64_t ins = (l->channels + 15) / 16 * 16, outs = (l->filters + 15) / 16 * 16;
    way w = {.name = names[kind], .w = n->in[1].data};
    if (l->group > 1 || (errors && l->channels <= ORTC_STEM_CHANNELS) ||
        (kind == ORTC_TILED_BF16) != (type == ORTC_BF16) || type == ORTC_F16 ||
        !ortc_tiled_plan_init(ortc_tiled_uk_get(kind), &g, type, kind, (uint32_t)threads, &w.tiled))
        return;
    pool *pl = pool_open(threads, w.tiled.scratch);
    w.threads = pool_threads(pl);
    w.space = pool_memory(w.tiled.shared + 64);
    void *packed = pool_memory(ortc_tiled_weight_bytes(&g, kind));
    float *x = pool_memory((size_t)(l->images * ins * g.in_count) * sizeof(float));
    float *y = pool_memory((size_t)(l->images * outs * g.out_count) * sizeof(float));
    float *bias = pool_memory((size_t)outs * sizeof(float));
    fill(x, l->images * ins * g.in_count);
    if (errors) {
        fill_random(x, ins * g.in_count, 1);
        fill_random(n->in[1].data, l->filters * l->channels * g.kernel_count, 2);
    }
    ortc_tiled_weight_fill(&g, type, kind, n->in[1].data, packed, &w.threads);
    w.args = (ortc_blocked_args){x, packed, NULL, bias, y, &relu, NULL};
    if (errors) {
        once(&w);
        measure_error(l, &w, &g);
    } else {
        measure(l, &w, pl, threads, flops);
    }
    ortc_tiled_plan_deinit(&w.tiled);
    pool_close(pl);
    free(packed), free(x), free(y), free(bias), free(w.space);
}

static void row(const layer *l, int threads)
{
    const mock_attr attrs[] = {
        {.name = "group", .kind = ORTC_ATTR_INT, .i = l->group},
        {.name = "strides", .kind = ORTC_ATTR_INTS, .ints = {l->stride, l->stride}, .count = 2},
        {.name = "pads", .kind = ORTC_ATTR_INTS, .ints = {l->pad, l->pad, l->pad, l->pad}, .count = 4},
        {.name = NULL}};
    ortc_pw_builder b = {.size = sizeof b, .n_in = 3};
    const int32_t x = ortc_pw_load(&b, 0, ORTC_F32); /* the sums */
    program_space relu;
    program_finish(&b, ortc_pw_2(&b, ORTC_PW_MAX, x, ortc_pw_const(&b, x, 0)), type, &relu);
    const int64_t out = (l->extent + 2 * l->pad - l->kernel) / l->stride + 1;
    mock_node n = {.op = "Conv", .attrs = attrs, .epilogue = &relu.p, .n_in = 3, .dtype = type};
    n.in[0] = tensor(4, l->images, l->channels, l->extent, 0);
    n.in[1] = tensor(4, l->filters, l->channels / l->group, l->kernel, 1);
    n.in[2] = tensor(1, l->filters, 0, 0, 1);
    n.out = tensor(4, l->images, l->filters, out, 0);
    const double flops = 2.0 * (double)(l->images * l->filters * out * out * (l->channels / l->group) *
                                        l->kernel * l->kernel);
    way plain = {.name = "plain",
                 .session = errors ? NULL : mock_open(mock_choose(&ortc_kernels_cpu_conv, &n), &n, threads)};
    if (plain.session) {
        measure(l, &plain, mock_pool(plain.session), threads, flops);
        mock_close(plain.session);
    }
    for (int m = 0; m <= 4; m += 2) in_blocks(l, &n, out, m, NULL, threads, flops);
    for (int m = 2; m <= 4 && ortc_tiled_uk_get(ORTC_TILED_PIECES); m += 2)
        in_blocks(l, &n, out, m, ortc_tiled_uk_get(ORTC_TILED_PIECES), threads, flops);
    for (int k = ORTC_TILED_BF16; k <= ORTC_TILED_PLAIN; k++) on_tiles(l, &n, out, k, threads, flops);
    for (int i = 0; i < 3; i++) free(n.in[i].data);
    free(n.out.data);
}

int main(int argc, char **argv)
{
    const char *threads = "1,2", *filter = "";
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--threads") && i + 1 < argc)
            threads = argv[++i];
        else if (!strcmp(argv[i], "--reps") && i + 1 < argc)
            reps = atoi(argv[++i]) > 0 ? atoi(argv[i]) : 1;
        else if (!strcmp(argv[i], "--way") && i + 1 < argc)
            only = argv[++i];
        else if (!strcmp(argv[i], "--error"))
            errors = 1;
        else if (!strcmp(argv[i], "--f16"))
            type = ORTC_F16;
        else if (!strcmp(argv[i], "--bf16"))
            type = ORTC_BF16;
        else
            filter = argv[i];
    }
    for (const char *t = threads; *t; t += strcspn(t, ",") + (t[strcspn(t, ",")] == ',')) {
        const int count = atoi(t);
        if (count < 1 || count > 64) continue;
        clock_used = count == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
        for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++)
            if (strstr(layers[i].name, filter)) row(&layers[i], count);
    }
    return 0;
}
