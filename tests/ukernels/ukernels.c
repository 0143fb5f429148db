/* Tests and benchmarks of the micro-kernels and their drivers, in one plain program, because both walk the
 * same tables (product_lines.inc, ...): a new line there is tested and measured without a line here.
 *
 *   ukernels test [--seed N] [--every N] [FILTER]
 *       ends with "N passed, N failed, N skipped"; exits with 1 if any failed
 *   ukernels bench [FILTER]
 *       each micro-kernel in L1 and L2 against the peak loop of its instruction set
 *
 * Without --seed the clock gives one; it is printed. --every: one random problem in N, for builds that
 * are slow. ORTC_CPU masks instruction sets, what is masked is
 * skipped.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/common/cpu_features.h"
#include "kernels/gemm/product.h"
#include "pool.h"
#include "tests.h"
#include "tools/ortc/peak.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double peak(uint32_t isa)
{
    static float sink;
    const double t = now(), done = peak_f32(isa, 2e8, &sink);
    return done / (now() - t) / 1e9;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Median of 11 ratios, each against a peak measured right before. */
static void bench_tile(const ortc_product_line *line, size_t mr, size_t nr, size_t k)
{
    const size_t groups = (k + line->b.group - 1) / line->b.group;
    void *a = pool_memory(ortc_product_packed_bytes(&line->a, line->a.width, (int64_t)k) + 4096);
    void *b = pool_memory(ortc_product_packed_bytes(&line->b, line->b.width, (int64_t)k) + 4096);
    void *c = pool_memory(mr * nr * 4);
    const size_t pieces = ORTC_UK_PANEL_STATE + (k + 64) * line->b.width * line->a.planes * 2;
    const ortc_uk_panel panel = {b, pool_memory(pieces), 0};
    double ratios[11], rates[11];
    const double flops = 2.0 * (double)(mr * nr * k);
    const int n = (int)(1e8 / flops) + 1;
    if (line->begin) line->begin();
    for (int r = 0; r < 11; r++) {
        const double top = peak(line->isa), t = now();
        for (int i = 0; i < n; i++) {
            if (i % 4 == 0) memset(panel.pieces, 0, ORTC_UK_PANEL_STATE); /* so many blocks over a panel */
            line->tile(mr, nr, groups, a, line->can & ORTC_LINE_SPLIT ? (const void *)&panel : b,
                       (nr + line->b.step - 1) / line->b.step * line->b.step, c, nr, 0, NULL, NULL);
        }
        rates[r] = flops * n / (now() - t) / 1e9;
        ratios[r] = rates[r] / top;
    }
    if (line->end) line->end();
    qsort(ratios, 11, sizeof(double), by_value);
    qsort(rates, 11, sizeof(double), by_value);
    printf("%-34s %2zux%-2zu k %-5zu %7.1f GFLOP/s  %.3f of peak (%.3f .. %.3f)\n", line->name, mr, nr, k,
           rates[5], ratios[5], ratios[1], ratios[9]);
    free(a), free(b), free(c), free(panel.pieces);
}

static int bench(const char *filter)
{
    static const size_t ks[] = {64, 256, 1024};
    for (size_t u = 0; u < ortc_product_line_count; u++) {
        const ortc_product_line *line = &ortc_product_lines[u];
        if (filter && !strstr(line->name, filter)) continue;
        if (line->isa & ~ortc_cpu_features()) continue;
        for (int i = 0; i < 3; i++) bench_tile(line, line->a.width, line->b.width, ks[i]);
        for (size_t mr = 1; mr < line->a.width; mr++) bench_tile(line, mr, line->b.width, 256);
        bench_tile(line, line->a.width, line->b.step, 256);
    }
    return 0;
}

int main(int argc, char **argv)
{
    const char *verb = argc > 1 ? argv[1] : "";
    tally t = {.seed = (uint64_t)time(NULL), .every = 1};
    setenv("ORTC_CPU", "amx", 0); /* all that the machine has, where nobody says otherwise */
    for (int i = 2; i < argc; i++) {
        if (!strcmp(argv[i], "--seed") && i + 1 < argc)
            t.seed = strtoull(argv[++i], NULL, 0);
        else if (!strcmp(argv[i], "--every") && i + 1 < argc)
            t.every = atoi(argv[++i]), t.every += !t.every;
        else
            t.filter = argv[i];
    }
    if (!strcmp(verb, "bench")) return bench(t.filter);
    if (strcmp(verb, "test")) {
        fprintf(stderr, "usage: ukernels test [--seed N] [--every N] [FILTER] | ukernels bench [FILTER]\n");
        return 2;
    }
    printf("seed %llu\n", (unsigned long long)t.seed);
    test_product_uk(&t, ortc_cpu_features());
    test_product(&t, ortc_cpu_features());
    test_conv_uk(&t, ortc_cpu_features());
    test_blocked(&t, ortc_cpu_features());
    test_blocked_bytes(&t, ortc_cpu_features());
    test_depthwise_bytes(&t, ortc_cpu_features());
    test_blocked_by_pairs(&t, ortc_cpu_features());
    test_blocked_pairs(&t, ortc_cpu_features());
    test_tiled(&t, ortc_cpu_features());
    test_tiled_bytes(&t, ortc_cpu_features());
    test_byte_ends(&t, ortc_cpu_features());
    test_halved(&t, ortc_cpu_features());
    test_grouped(&t, ortc_cpu_features());
    test_pool_blocks(&t, ortc_cpu_features());
    test_cpu(&t, ortc_cpu_features());
    printf("%d passed, %d failed, %d skipped\n", t.passed, t.failed, t.skipped);
    return t.failed != 0;
}
