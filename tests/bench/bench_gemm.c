/* Products of f32, f16 and bf16 against a peak loop of f32 of the same instruction set and thread count, the
 * two alternated within the same second, because absolute times on shared machines mean little.
 *
 *   bench_gemm [--isa avx512|avx2|scalar] [--threads 1,2] [--reps 20] [--pool runtime|own] [MxNxK ...]
 *
 * For each shape: plain (A and B packed in every run) and packed (B packed once, as constants are). A row
 * gives the median of the GFLOP/s, the median of the ratios and their spread (10th to 90th percentile), and
 * whether the bits equal those of one thread. Exits with 1 if any bits differ. Threads are the runtime's pool
 * (its size: ORTC_THREADS), or the tests' own, which only spins.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/common/cpu_features.h"
#include "kernels/common/vector/convert.h"
#include "kernels/gemm/product.h"
#include "peak.h"
#include "base/threads.h"
#include "tests/ukernels/pool.h"

typedef struct shape {
    int64_t m, n, k;
} shape;

static const shape defaults[] = {{512, 512, 512},  {1024, 1024, 1024}, {128, 768, 768}, {128, 3072, 768},
                                 {128, 768, 3072}, {1, 4096, 4096},    {8, 4096, 1024}, {12544, 64, 147},
                                 {49, 512, 4608},  {2048, 2048, 2048}};

static int reps = 20;
static int bad_bits;

/* With one thread the thread's own processor time, which others on the machine do not touch; else the
 * wall's. */
static clockid_t clock_used = CLOCK_MONOTONIC;

static double now(void)
{
    struct timespec t;
    clock_gettime(clock_used, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- Threads ------------------------------------------------------------------------------------------- */

typedef struct team {
    uint32_t threads;
    pool *own; /* NULL: the runtime's pool */
    char *scratch;
    size_t each;
    ortc_product_body *body;
    void *arg;
} team;

static int use_own;

static void team_body(void *arg, int64_t begin, int64_t end, uint32_t worker)
{
    const team *t = arg;
    t->body(t->arg, begin, end, t->scratch + worker * t->each);
}

static int32_t team_parallel(void *context, int64_t n, int64_t grain, ortc_product_body *body, void *arg)
{
    team *t = context;
    if (t->own) {
        const ortc_product_threads own = pool_threads(t->own);
        return own.parallel(own.context, n, grain, body, arg);
    }
    t->body = body, t->arg = arg;
    return ortc_pool_for(t->threads, n, grain, team_body, t, NULL, NULL);
}

static team team_open(int threads, size_t scratch)
{
    const size_t each = (scratch + 255) / 256 * 256;
    team t = {(uint32_t)threads, use_own ? pool_open(threads, scratch) : NULL, NULL, each, NULL, NULL};
    if (t.own) return t;
    t.scratch = pool_memory(each * (size_t)threads);
    ortc_pool_enter((uint32_t)threads);
    return t;
}

static void team_close(team *t)
{
    if (t->own)
        pool_close(t->own);
    else
        ortc_pool_leave();
    free(t->scratch);
}

/* ---- The peak ------------------------------------------------------------------------------------------ */

typedef struct peak_args {
    uint32_t isa;
    double flops, done[64];
    float sink[64][16]; /* a cache line each */
} peak_args;

static void peak_part(void *arg, int64_t begin, int64_t end, void *scratch)
{
    peak_args *p = arg;
    (void)scratch;
    for (int64_t i = begin; i < end; i++) p->done[i] = ortc_bench_peak_f32(p->isa, p->flops, &p->sink[i][0]);
}

/* GFLOP/s of all threads together over about `seconds`. */
static double peak(team *tm, uint32_t isa, double guess, double seconds)
{
    static peak_args p;
    p.isa = isa;
    p.flops = guess * 1e9 * seconds / tm->threads;
    const double t = now();
    team_parallel(tm, tm->threads, 1, peak_part, &p); /* one part each: they are far longer than taking one */
    double done = 0;
    const double dt = now() - t;
    for (uint32_t i = 0; i < tm->threads; i++) done += p.done[i];
    return done / dt / 1e9;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}
static double at(double *sorted, int n, double q) { return sorted[(int)(q * (n - 1) + 0.5)]; }

/* -1 .. 1 */
static void *random_matrix(const ortc_product_line *line, ortc_dtype type, int64_t n)
{
    static uint32_t seed = 1;
    float *wide = pool_memory((size_t)n * 4);
    void *p = pool_memory((size_t)n * (size_t)ortc_product_size(type));
    for (int64_t i = 0; i < n; i++)
        wide[i] = (float)((seed = seed * 1664525u + 1013904223u) >> 8) / 8388608.0f - 1;
    line->moves->vec->store[ortc_float_index(type)](1, (size_t)n, wide, 0, p, 0);
    free(wide);
    return p;
}

static void row(const ortc_product_line *line, int threads, shape s, int packed)
{
    ortc_product_plan p;
    const ortc_dtype type = line->b.type;
    const ortc_product_types types = {type, type, type};
    if (ortc_product_plan_init(&p, line, &types, s.m, s.n, s.k, 1, packed ? ORTC_PRODUCT_PACKED_B : 0))
        return;
    team tm = team_open(threads, p.scratch), one = team_open(1, p.scratch);
    const ortc_product_threads th = {team_parallel, &tm}, th1 = {team_parallel, &one};
    const size_t size = (size_t)ortc_product_size(type), c_bytes = (size_t)(s.m * s.n) * size;
    void *a = random_matrix(line, type, s.m * s.k), *b = random_matrix(line, type, s.k * s.n);
    void *c = pool_memory(c_bytes), *c1 = pool_memory(c_bytes), *ws = pool_memory(p.workspace);
    void *pb = pool_memory(ortc_product_packed_bytes(&line->b, s.n, s.k));
    ortc_product_fill(line->moves, &line->b, type, s.n, s.k, 0, b, s.n, pb, &th);
    ortc_product_args x = {.item = {.a = a, .b = packed ? pb : b, .c = c},
                           .lda = s.k,
                           .ldb = s.n,
                           .ldc = s.n,
                           .alpha = 1,
                           .beta = 1,
                           .workspace = ws};

    double guess = peak(&tm, line->isa, 100.0 * threads, 0.01),
           *ratios = calloc((size_t)reps, sizeof(double));
    double *rates = calloc((size_t)reps, sizeof(double)), *peaks = calloc((size_t)reps, sizeof(double));
    const double flops = p.flops;
    ortc_product_run(&p, &x, &th); /* warm */
    const double seconds = 0.02;
    const int per = flops / (guess * 1e9) < seconds ? (int)(seconds / (flops / (guess * 1e9))) + 1 : 1;
    for (int r = 0; r < reps; r++) {
        const double before = peak(&tm, line->isa, guess, seconds / 2);
        const double t = now();
        for (int i = 0; i < per; i++) ortc_product_run(&p, &x, &th);
        rates[r] = flops * per / (now() - t) / 1e9;
        const double after = peak(&tm, line->isa, guess, seconds / 2);
        peaks[r] = (before + after) / 2; /* around the product, so that a drift of the clock cancels */
        ratios[r] = rates[r] / peaks[r];
    }
    x.item.c = c1;
    ortc_product_run(&p, &x, &th1);
    const int equal = !memcmp(c, c1, c_bytes);
    bad_bits |= !equal;
    qsort(ratios, (size_t)reps, sizeof(double), by_value);
    qsort(rates, (size_t)reps, sizeof(double), by_value);
    qsort(peaks, (size_t)reps, sizeof(double), by_value);
    char name[64];
    snprintf(name, sizeof name, "%lldx%lldx%lld", (long long)s.m, (long long)s.n, (long long)s.k);
    printf("%-28s %d  %-17s %-6s %8.1f of %6.1f GFLOP/s  ratio %.3f (%.3f .. %.3f)  bits %s\n", line->name,
           threads, name, packed ? "packed" : "plain", at(rates, reps, 0.5), at(peaks, reps, 0.5),
           at(ratios, reps, 0.5), at(ratios, reps, 0.1), at(ratios, reps, 0.9), equal ? "equal" : "DIFFER");
    fflush(stdout);
    free(a), free(b), free(c), free(c1), free(pb), free(ws), free(ratios), free(rates), free(peaks);
    team_close(&one);
    team_close(&tm);
}

int main(int argc, char **argv)
{
    const char *isa = NULL, *threads = "1,2";
    shape shapes[64];
    int n_shapes = 0;
    for (int i = 1; i < argc; i++) {
        long long m, n, k;
        if (!strcmp(argv[i], "--isa") && i + 1 < argc) {
            isa = argv[++i];
        } else if (!strcmp(argv[i], "--threads") && i + 1 < argc) {
            threads = argv[++i];
        } else if (!strcmp(argv[i], "--pool") && i + 1 < argc) {
            use_own = !strcmp(argv[++i], "own");
        } else if (!strcmp(argv[i], "--reps") && i + 1 < argc) {
            reps = atoi(argv[++i]);
        } else if (n_shapes < 64 && sscanf(argv[i], "%lldx%lldx%lld", &m, &n, &k) == 3) {
            shapes[n_shapes++] = (shape){m, n, k};
        } else {
            fprintf(stderr, "usage: bench_gemm [--isa NAME] [--threads 1,2] [--reps N] [--pool runtime|own] "
                            "[MxNxK ...]\n");
            return 2;
        }
    }
    if (!n_shapes) {
        n_shapes = (int)(sizeof defaults / sizeof defaults[0]);
        memcpy(shapes, defaults, sizeof defaults);
    }
    if (reps < 1) reps = 1;
    for (size_t u = 0; u < ortc_product_line_count; u++) {
        const ortc_product_line *line = &ortc_product_lines[u];
        if (isa ? !strstr(line->name, isa) : line->isa == ORTC_CPU_SCALAR) continue;
        if (line->isa & ~ortc_cpu_features()) {
            printf("%s: skipped, this machine has not its instructions\n", line->name);
            continue;
        }
        for (const char *t = threads; *t; t += strcspn(t, ",") + (t[strcspn(t, ",")] == ',')) {
            const int count = atoi(t);
            if (count < 1 || count > 64) continue;
            clock_used = count == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
            for (int i = 0; i < n_shapes; i++)
                for (int packed = 0; packed < 2; packed++) row(line, count, shapes[i], packed);
        }
    }
    return bad_bits;
}
