/* Products of f32, f16 and bf16 against a peak loop of f32 of the same instruction set and thread count, the
 * two alternated within the same second, because absolute times on shared machines mean little.
 *
 *   bench_gemm [--isa avx512|avx2|scalar|amx] [--line TEXT] [--threads 1,2] [--reps 20] [--pool runtime|own]
 *              [--packed] [--cold] [MxNxK[*COUNT] ... | bert | minilm | minilm8 | vit | gpt2]
 *
 * For each shape: plain (A and B packed in every run) and packed (B packed once, as constants are). A row
 * gives the median of the GFLOP/s, the median of the ratios and their spread (10th to 90th percentile), and
 * whether the bits equal those of one thread. --line: only lines whose names have the text; --packed: packed
 * only; --cold: B from memory, one of copies that are 256 MB together, and the bytes a second of all operands
 * beside those of a loop that reads. A network's name stands for its products; behind them is the share of
 * the peak of all together, each as often as the network has it. Lines of integers count multiplications and
 * additions, too. Exits with 1 if any bits differ. Threads are the runtime's pool (its size: ORTC_THREADS),
 * or the tests' own, which only spins.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/common/cpu_features.h"
#include "kernels/common/vector/convert.h"
#include "kernels/gemm/product.h"
#include "tools/ortc/peak.h"
#include "base/threads.h"
#include "tests/ukernels/pool.h"

typedef struct shape {
    int64_t m, n, k, count;
} shape;

static const struct {
    const char *name;
    shape shapes[6];
} networks[] = {
    {"bert", {{128, 768, 768, 48}, {128, 3072, 768, 12}, {128, 768, 3072, 12}}},
    {"minilm", {{32, 384, 384, 24}, {32, 1536, 384, 6}, {32, 384, 1536, 6}}},
    {"minilm8", {{1024, 384, 384, 24}, {1024, 1536, 384, 6}, {1024, 384, 1536, 6}}},
    {"vit", {{197, 768, 768, 48}, {197, 3072, 768, 12}, {197, 768, 3072, 12}}},
    {"gpt2",
     {{1, 2304, 768, 12}, {1, 768, 768, 12}, {1, 3072, 768, 12}, {1, 768, 3072, 12}, {1, 50257, 768, 1}}},
};

static const shape defaults[] = {{512, 512, 512, 1},   {1024, 1024, 1024, 1}, {128, 768, 768, 1},
                                 {128, 3072, 768, 1},  {128, 768, 3072, 1},   {1, 4096, 4096, 1},
                                 {8, 4096, 1024, 1},   {12544, 64, 147, 1},   {49, 512, 4608, 1},
                                 {2048, 2048, 2048, 1}};

static int reps = 20;
static int bad_bits, only_packed, is_cold;

#define COLD_BYTES ((size_t)256 << 20)
#define MOST_COPIES 512

/* Of all rows of one line and number of threads, B packed: what they would take in a network, and at the
 * peak. */
static double all_seconds, all_at_peak;

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
    const size_t each = (scratch + 255) / 256 * 256 + 8192; /* apart, as in runs */
    team t = {(uint32_t)threads, use_own ? pool_open(threads, each) : NULL, NULL, each, NULL, NULL};
    if (t.own) return t;
    t.scratch = pool_memory(each * (size_t)threads);
    return t;
}

static void team_close(team *t)
{
    if (t->own) pool_close(t->own);
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
    for (int64_t i = begin; i < end; i++) p->done[i] = peak_f32(p->isa, p->flops, &p->sink[i][0]);
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

/* Floats -1 .. 1; bytes of any value. */
static void *random_matrix(const ortc_product_line *line, ortc_dtype type, int64_t n)
{
    static uint32_t seed = 1;
    const int is_byte = type == ORTC_U8 || type == ORTC_I8;
    float *wide = pool_memory((size_t)n * 4);
    unsigned char *p = pool_memory((size_t)n * (size_t)ortc_product_size(type));
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        wide[i] = (float)(seed >> 8) / 8388608.0f - 1;
        if (is_byte) p[i] = (unsigned char)(seed >> 24);
    }
    if (!is_byte) line->moves->vec->store[ortc_float_index(type)](1, (size_t)n, wide, 0, p, 0);
    free(wide);
    return p;
}

/* What a line is for: bytes of its own types, f32 or f16 where it makes pieces of it. */
static ortc_product_types types_of(const ortc_product_line *line)
{
    ortc_product_types t = {line->b.type, line->b.type, line->b.type};
    if (line->a.planes > 1) t.a = t.c = line->b.type;
    if (line->sum == ORTC_I32) {
        t.a = line->a.type == ORTC_I16 ? ORTC_U8 : line->a.type;
        t.b = line->b.type == ORTC_I16 ? ORTC_I8 : line->b.type;
        t.c = ORTC_I32;
    }
    return t;
}

/* ---- Reading, for what memory bounds ------------------------------------------------------------------- */

typedef struct read_args {
    const char *data;
    size_t each;
    uint64_t sums[64][8];
} read_args;

static void read_part(void *arg, int64_t begin, int64_t end, void *scratch)
{
    read_args *r = arg;
    (void)scratch;
    for (int64_t i = begin; i < end; i++) {
        const uint64_t *p = (const uint64_t *)(const void *)(r->data + (size_t)i * r->each);
        uint64_t sums[16] = {0}; /* two registers of AVX-512 */
        for (size_t k = 0; k < r->each / 8; k += 16)
            for (int j = 0; j < 16; j++) sums[j] += p[k + (size_t)j];
        for (int j = 0; j < 16; j++) r->sums[i % 64][0] += sums[j];
    }
}

static double read_rate(team *tm, const char *data, size_t bytes)
{
    static read_args r;
    const size_t parts = 4 * tm->threads;
    r.data = data, r.each = bytes / parts / 128 * 128;
    const double t = now();
    team_parallel(tm, (int64_t)parts, 1, read_part, &r);
    return (double)(r.each * parts) / (now() - t) / 1e9;
}

/* ---- Rows ---------------------------------------------------------------------------------------------- */

static void row(const ortc_product_line *line, int threads, shape s, int packed)
{
    ortc_product_plan p;
    const ortc_product_types types = types_of(line);
    if (ortc_product_plan_init(&p, line, &types, s.m, s.n, s.k, 1, packed ? ORTC_PRODUCT_PACKED_B : 0,
                               (uint32_t)threads))
        return;
    team tm = team_open(threads, p.scratch), one = team_open(1, p.scratch);
    const ortc_product_threads th = {team_parallel, &tm}, th1 = {team_parallel, &one};
    const size_t c_bytes = (size_t)(s.m * s.n) * (size_t)ortc_product_size(types.c);
    void *a = random_matrix(line, types.a, s.m * s.k), *b = random_matrix(line, types.b, s.k * s.n);
    void *c = pool_memory(c_bytes), *c1 = pool_memory(c_bytes), *ws = pool_memory(p.workspace);
    const size_t b_bytes = packed ? ortc_product_packed_bytes(&line->b, s.n, s.k)
                                  : (size_t)(s.k * s.n * ortc_product_size(types.b)),
                 b_step = (b_bytes + 63) / 64 * 64;
    size_t copies = is_cold ? COLD_BYTES / b_step + 1 : 1, at_copy = 0;
    if (copies > MOST_COPIES) copies = MOST_COPIES;
    char *all_b = pool_memory(b_step * copies);
    if (packed)
        ortc_product_fill(line->moves, &line->b, types.b, s.n, s.k, 0, b, s.n, all_b, &th);
    else
        memcpy(all_b, b, b_bytes);
    for (size_t i = 1; i < copies; i++) memcpy(all_b + i * b_step, all_b, b_bytes);
    ortc_product_args x = {.item = {.a = a, .b = all_b, .c = c},
                           .lda = s.k,
                           .ldb = s.n,
                           .ldc = s.n,
                           .alpha = 1,
                           .beta = 1,
                           .workspace = ws};

    double guess = peak(&tm, line->isa, 100.0 * threads, 0.01),
           *ratios = calloc((size_t)reps, sizeof(double)), reading = 0;
    double *rates = calloc((size_t)reps, sizeof(double)), *peaks = calloc((size_t)reps, sizeof(double));
    const double flops = p.flops;
    ortc_product_run(&p, &x, &th); /* warm */
    const double seconds = 0.02;
    const int per = flops / (guess * 1e9) < seconds ? (int)(seconds / (flops / (guess * 1e9))) + 1 : 1;
    for (int r = 0; r < reps; r++) {
        const double before = peak(&tm, line->isa, guess, seconds / 2);
        const int runs = is_cold && per > 64 ? 64 : per;
        const double t = now();
        for (int i = 0; i < runs; i++) {
            x.item.b = all_b + at_copy * b_step;
            at_copy = (at_copy + 1) % copies;
            ortc_product_run(&p, &x, &th);
        }
        rates[r] = flops * runs / (now() - t) / 1e9;
        const double after = peak(&tm, line->isa, guess, seconds / 2);
        peaks[r] = (before + after) / 2; /* around the product, so that a drift of the clock cancels */
        ratios[r] = rates[r] / peaks[r];
        if (is_cold) {
            const double rate = read_rate(&tm, all_b, b_step * copies);
            reading = rate > reading ? rate : reading;
        }
    }
    x.item.b = all_b;
    ortc_product_run(&p, &x, &th);
    x.item.c = c1;
    ortc_product_run(&p, &x, &th1);
    const int equal = !memcmp(c, c1, c_bytes);
    bad_bits |= !equal;
    qsort(ratios, (size_t)reps, sizeof(double), by_value);
    qsort(rates, (size_t)reps, sizeof(double), by_value);
    qsort(peaks, (size_t)reps, sizeof(double), by_value);
    const double rate = at(rates, reps, 0.5);
    if (packed) {
        all_seconds += flops * (double)s.count / rate;
        all_at_peak += flops * (double)s.count / rate * at(ratios, reps, 0.5);
    }
    char name[64];
    snprintf(name, sizeof name, "%lldx%lldx%lld", (long long)s.m, (long long)s.n, (long long)s.k);
    printf("%-36s %d  %-17s %-6s %8.1f of %6.1f GFLOP/s  ratio %.3f (%.3f .. %.3f)  bits %s", line->name,
           threads, name, packed ? "packed" : "plain", rate, at(peaks, reps, 0.5), at(ratios, reps, 0.5),
           at(ratios, reps, 0.1), at(ratios, reps, 0.9), equal ? "equal" : "DIFFER");
    if (is_cold) {
        const double bytes = (double)b_bytes + (double)(s.m * s.k * ortc_product_size(types.a)) +
                             (double)c_bytes;
        printf("  %.1f of %.1f GB/s", bytes / flops * rate, reading);
    }
    printf("\n");
    fflush(stdout);
    free(a), free(b), free(c), free(c1), free(all_b), free(ws), free(ratios), free(rates), free(peaks);
    team_close(&one);
    team_close(&tm);
}

/* A network's products. */
static int add_network(const char *name, shape *shapes, int n)
{
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++)
        if (!strcmp(name, networks[i].name))
            for (const shape *s = networks[i].shapes; s < networks[i].shapes + 6 && s->m && n < 64; s++)
                shapes[n++] = *s;
    return n;
}

int main(int argc, char **argv)
{
    const char *isa = NULL, *threads = "1,2", *line_text = "";
    shape shapes[64];
    int n_shapes = 0;
    for (int i = 1; i < argc; i++) {
        long long m, n, k, count = 1;
        const int before = n_shapes;
        if (!strcmp(argv[i], "--isa") && i + 1 < argc) {
            isa = argv[++i];
        } else if (!strcmp(argv[i], "--threads") && i + 1 < argc) {
            threads = argv[++i];
        } else if (!strcmp(argv[i], "--pool") && i + 1 < argc) {
            use_own = !strcmp(argv[++i], "own");
        } else if (!strcmp(argv[i], "--reps") && i + 1 < argc) {
            reps = atoi(argv[++i]);
        } else if (!strcmp(argv[i], "--line") && i + 1 < argc) {
            line_text = argv[++i];
        } else if (!strcmp(argv[i], "--packed")) {
            only_packed = 1;
        } else if (!strcmp(argv[i], "--cold")) {
            is_cold = 1;
        } else if (n_shapes < 64 && sscanf(argv[i], "%lldx%lldx%lld*%lld", &m, &n, &k, &count) >= 3) {
            shapes[n_shapes++] = (shape){m, n, k, count};
        } else if ((n_shapes = add_network(argv[i], shapes, n_shapes)) == before) {
            fprintf(stderr, "usage: bench_gemm [--isa NAME] [--line TEXT] [--threads 1,2] [--reps N] "
                            "[--pool runtime|own] [--packed] [--cold] [MxNxK[*COUNT] ... | NETWORK ...]\n");
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
        if (!strstr(line->name, line_text)) continue;
        if (line->isa & ~ortc_cpu_features()) {
            printf("%s: skipped, this machine has not its instructions\n", line->name);
            continue;
        }
        for (const char *t = threads; *t; t += strcspn(t, ",") + (t[strcspn(t, ",")] == ',')) {
            const int count = atoi(t);
            if (count < 1 || count > 64) continue;
            clock_used = count == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
            all_seconds = all_at_peak = 0;
            for (int i = 0; i < n_shapes; i++)
                for (int packed = only_packed; packed < 2; packed++) row(line, count, shapes[i], packed);
            printf("%-36s %d  all, B packed, by time: %.3f of the peak\n", line->name, count,
                   all_at_peak / all_seconds);
        }
    }
    return bad_bits;
}
