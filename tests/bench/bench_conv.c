/* f32 convolution of the cpu provider against a peak loop of the same instruction set and thread count,
 * alternated within the same second. Shapes are layers of ResNet-50, MobileNetV2 and digits.
 *
 *   bench_conv [--threads 1,2] [--reps 20] [FILTER]      ORTC_CPU chooses the instruction set
 *
 * A row: GFLOP/s by the definition's count of operations, the median ratio to the peak and its spread.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/common/cpu_features.h"
#include "peak.h"
#include "tests/ukernels/mock.h"
#include "tests/ukernels/programs.h"
#include "tests/ukernels/pool.h"

extern const ortc_kernel_table ortc_kernels_cpu_conv;

typedef struct layer {
    const char *name;
    int64_t images, group, channels, filters, extent, kernel, stride, pad; /* channels, filters in all */
} layer;

static const layer layers[] = {
    {"stem 7x7 s2", 1, 1, 3, 64, 224, 7, 2, 3},         {"3x3 64@56", 1, 1, 64, 64, 56, 3, 1, 1},
    {"3x3 128@28", 1, 1, 128, 128, 28, 3, 1, 1},        {"3x3 256@14", 1, 1, 256, 256, 14, 3, 1, 1},
    {"3x3 512@7", 1, 1, 512, 512, 7, 3, 1, 1},          {"3x3 s2 128@56", 1, 1, 128, 128, 56, 3, 2, 1},
    {"1x1 256-64@56", 1, 1, 256, 64, 56, 1, 1, 0},      {"1x1 64-256@56", 1, 1, 64, 256, 56, 1, 1, 0},
    {"1x1 1024-256@14", 1, 1, 1024, 256, 14, 1, 1, 0},  {"1x1 512-2048@7", 1, 1, 512, 2048, 7, 1, 1, 0},
    {"1x1 s2 256-512@56", 1, 1, 256, 512, 56, 1, 2, 0}, {"dw 3x3 96@112 s2", 1, 96, 96, 96, 112, 3, 2, 1},
    {"dw 3x3 144@56", 1, 144, 144, 144, 56, 3, 1, 1},   {"dw 3x3 384@14", 1, 384, 384, 384, 14, 3, 1, 1},
    {"dw 3x3 960@7", 1, 960, 960, 960, 7, 3, 1, 1},     {"digits 3x3 1-16@8", 1, 1, 1, 16, 8, 3, 1, 1},
    {"digits 3x3 16-32@8", 1, 1, 16, 32, 8, 3, 1, 1}};

static int reps = 20;

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
    p->done[thread] = ortc_bench_peak_f32(ortc_cpu_features(), p->flops, &p->sink[thread][0]);
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

static mock_tensor tensor(int32_t rank, int64_t d0, int64_t d1, int64_t d2, int is_const)
{
    mock_tensor t = {.rank = rank, .dims = {d0, d1, d2, d2}, .is_const = is_const};
    const int64_t n = mock_count(&t);
    t.data = pool_memory((size_t)n * sizeof(float));
    for (int64_t i = 0; i < n; i++) t.data[i] = (float)(i % 17 - 8) / 16.0f;
    return t;
}

static void row(const layer *l, int threads)
{
    const mock_attr attrs[] = {
        {.name = "group", .kind = ORTC_ATTR_INT, .i = l->group},
        {.name = "strides", .kind = ORTC_ATTR_INTS, .ints = {l->stride, l->stride}, .count = 2},
        {.name = "pads", .kind = ORTC_ATTR_INTS, .ints = {l->pad, l->pad, l->pad, l->pad}, .count = 4},
        {.name = NULL}};
    ortc_pw_builder b = {.size = sizeof b, .n_in = 3};
    const int32_t x = ortc_pw_load(&b, 0, ORTC_F32);
    program_space relu;
    program_finish(&b, ortc_pw_2(&b, ORTC_PW_MAX, x, ortc_pw_const(&b, x, 0)), ORTC_F32, &relu);
    const int64_t out = (l->extent + 2 * l->pad - l->kernel) / l->stride + 1;
    mock_node n = {.op = "Conv", .attrs = attrs, .epilogue = &relu.p, .n_in = 3};
    n.in[0] = tensor(4, l->images, l->channels, l->extent, 0);
    n.in[1] = tensor(4, l->filters, l->channels / l->group, l->kernel, 1);
    n.in[2] = tensor(1, l->filters, 0, 0, 1);
    n.out = tensor(4, l->images, l->filters, out, 0);
    const double flops = 2.0 * (double)(l->images * l->filters * out * out * (l->channels / l->group) *
                                        l->kernel * l->kernel);
    mock_session *m = mock_open(mock_choose(&ortc_kernels_cpu_conv, &n), &n, threads);
    if (!m) return;
    pool *pl = mock_pool(m);
    double *ratios = calloc((size_t)reps, sizeof(double)), *rates = calloc((size_t)reps, sizeof(double));
    mock_execute(m); /* warm */
    double t = now();
    mock_execute(m);
    const int per = (int)(0.01 / (now() - t + 1e-9)) + 1;
    for (int r = 0; r < reps; r++) {
        const double top = peak(pl, threads, peak(pl, threads, 1e7) * 1e9 * 0.005);
        t = now();
        for (int i = 0; i < per; i++) mock_execute(m);
        rates[r] = flops * per / (now() - t) / 1e9;
        ratios[r] = rates[r] / top;
    }
    qsort(ratios, (size_t)reps, sizeof(double), by_value);
    qsort(rates, (size_t)reps, sizeof(double), by_value);
    printf("%-20s %d threads %8.1f GFLOP/s %9.1f us  ratio %.3f (%.3f .. %.3f)\n", l->name, threads,
           rates[reps / 2], flops / rates[reps / 2] / 1e3, ratios[reps / 2], ratios[reps / 10],
           ratios[reps - 1 - reps / 10]);
    fflush(stdout);
    mock_close(m);
    for (int i = 0; i < 3; i++) free(n.in[i].data);
    free(n.out.data), free(ratios), free(rates);
}

int main(int argc, char **argv)
{
    const char *threads = "1,2", *filter = "";
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--threads") && i + 1 < argc)
            threads = argv[++i];
        else if (!strcmp(argv[i], "--reps") && i + 1 < argc)
            reps = atoi(argv[++i]) > 0 ? atoi(argv[i]) : 1;
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
