/* tests/providers/cases_main.c: every case of every family on every provider configuration.
 *
 * ref on one thread is the oracle. ref itself must give the same bits on four threads, into the caller's
 * memory, from unaligned addresses, with extents that are symbols while the model is loaded, between other
 * nodes, in place, and where a node has several outputs for each one and each two of them alone. cpu must
 * agree with ref within the tolerance of the type in all these ways, with channels in blocks where its
 * kernels take them, and by kernels that are chosen by name, on every instruction set that the machine has,
 * each in a process of its own; cases that it does not take are not counted. Every kernel must have been
 * reached.
 *
 * --provider ref is the first half of that, --provider cpu --level all the second. Else a provider runs the
 * cases once.
 * With a plugin its provider runs the cases, on the device as spelled; sim must give ref's bits.
 *
 *   cases [--plugin PATH] [--family NAME] [--op NAME] [--provider NAME [--device SPELLING | --level all]]
 *         [--needs WHAT] [--largest N] [--every N] [--dump DIR] [-v]
 *
 * --largest: cases with more than N elements in all inputs are skipped, for a GPU that is emulated.
 * --needs: an instruction set, or bf16 (products of it), without which there is nothing to do.
 * --every: each Nth case alone, for builds that are slow; a line of the table has many, one for each type.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "case_run.h"
#include "compare.h"
#include "coverage.h"
#include "dump.h"
#include "family_cases.h"
#include "kernels/common/cpu_features.h"
#include "kernels/common/vector/isas.h"
#include "runtime/registry/registry.h"

static const run_way oracle = {.name = "1 thread", .providers = "ref", .threads = 1};
static const run_way ways[] = {
    {"1 thread", .threads = 1},
    {"4 threads, placed, an element off", .threads = 4, .offset = -1, .placed = true},
    {"placed, a byte off", .threads = 4, .passes = true, .offset = 1, .placed = true},
    {"extents are symbols", .threads = 1, .model = MODEL_SYMBOLIC, .passes = true},
    {"between other nodes", .threads = 4, .model = MODEL_CHAINED, .passes = true, .placed = true},
    {"in blocks of 16 channels", .threads = 4, .passes = true, .choose = "*=@aBcd16b"}, /* who can */
    {"in blocks by multiply-adds", .threads = 4, .passes = true, .choose = "Conv=conv.blocked"},
    {"of pixels as rows", .threads = 4, .passes = true, .choose = "Conv=conv.depthwise_rows"},
    {"by Winograd's tiles of 2x2", .threads = 4, .passes = true, .choose = "Conv=conv.winograd_2x2"},
    {"by Winograd's tiles of 4x4", .threads = 4, .passes = true, .choose = "Conv=conv.winograd_4x4"},
    {"on tiles of pieces", .threads = 4, .passes = true, .choose = "Conv=conv.pieces"},
    {"by pairs of bf16", .threads = 4, .passes = true, .choose = "Conv=conv.pairs"},
    {"by pairs of f32 rounded", .threads = 4, .passes = true, .choose = "Conv=conv.rounded_pairs"},
    {"by Winograd's tiles of 2x2, rounded", .threads = 4, .passes = true,
     .choose = "Conv=conv.rounded_winograd"},
    {"places of transposed windows, rounded", .threads = 4, .passes = true,
     .choose = "ConvTranspose=conv_transpose.rounded"},
    {"with few filters", .threads = 4, .passes = true, .choose = "Conv=conv.few"},
    {"of bytes with few filters", .threads = 4, .passes = true, .choose = "ConvInteger=conv_integer.few"},
    {"on tiles of bytes", .threads = 4, .passes = true, .choose = "ConvInteger=conv_integer.tiled"},
};

typedef struct tally {
    size_t passed, failed, skipped;
} tally;

static struct {
    const char *family, *op, *provider, *device, *dump, *level;
    int64_t largest; /* elements; 0: any */
    size_t every;
    bool verbose;
} options = {.every = 1};

static void describe(const ortc_case *c, size_t which)
{
    printf("%s %s %s", c->op, c->in ? c->in : "", c->attrs ? c->attrs : "");
    if (c->types) printf(" (%s, number %zu)", c->types, which);
}

/* The reason that `except` gives for this configuration: "cpu: why", "cpu/avx2: why". NULL: none. */
static const char *known_failure(const ortc_case *c)
{
    const size_t n = strlen(options.provider);
    if (!c->except || strncmp(c->except, options.provider, n) != 0) return NULL;
    if (c->except[n] == ':') return c->except + n + 1;
    return options.level && c->except[n] == '/' &&
                   !strncmp(c->except + n + 1, options.level, strlen(options.level))
               ? c->except
               : NULL;
}

/* Whether `needs` names this provider, for this type of the first input. */
static bool is_needed(const ortc_case *c, const node_text *n)
{
    char word[64];
    for (const char *s = c->needs ? c->needs : ""; *s; s += strcspn(s, " "), s += strspn(s, " ")) {
        snprintf(word, sizeof word, "%.*s", (int)strcspn(s, " "), s);
        const size_t length = strcspn(word, ":");
        if (strncmp(word, options.provider, length) || options.provider[length]) continue;
        if (!word[length] || !strcmp(word + length + 1, ortc_dtype_name(n->in[0].dtype))) return true;
    }
    return false;
}

/* One way of running; false with the reason in `why`. `bits`: a result that must be met bit by bit, or
 * NULL. */
static bool matches(const run_result *got, uint32_t asked, const run_result *expected, const run_result *bits,
                    double tolerance, char *why, size_t n)
{
    if (got->status != ORTC_OK) {
        snprintf(why, n, "%s: %s", ortc_status_name(got->status), got->text);
        return false;
    }
    for (size_t i = 0; i < got->n_out; i++) {
        char text[256];
        if (asked && !(asked >> i & 1)) continue;
        if (!values_match(got->out[i], expected->out[i], tolerance, text, sizeof text) ||
            (bits && !values_match(got->out[i], bits->out[i], 0, text, sizeof text))) {
            snprintf(why, n, "output %zu: %s", i, text);
            return false;
        }
    }
    return true;
}

/* Whether a way is one for this case. */
static bool applies(const ortc_case *c, const node_text *n, const run_way *w, tally *t)
{
    const bool excused = ((w->model & MODEL_SYMBOLIC) && c->fixed) ||
                         ((w->model & MODEL_CHAINED) && c->alone);
    if (w->choose && (strcmp(options.provider, "cpu") || n->in[0].rank < 3)) return false;
    const size_t of = w->choose ? strcspn(w->choose, "=") : 0;
    if (of && w->choose[0] != '*' && (strncmp(w->choose, n->op, of) || n->op[of])) return false;
    t->skipped += excused;
    return !excused && (!(w->model & MODEL_CHAINED) || n->version >= 16); /* the other node is Where-16 */
}

/* What a kernel's error in f32 may be, times that of sums by definition: as measured
 * (docs/performance.md); where f32 is rounded to bf16, as a device is asked to, some hundredths. */
static double looser(const run_result *r)
{
    bool f32 = false;
    for (size_t i = 0; i < r->n_out && !f32; i++) f32 = r->out[i] && ortc_value_dtype(r->out[i]) == ORTC_F32;
    if (strstr(r->kernel, ".rounded")) return f32 ? 16000 : 20;
    return f32 && !strcmp(r->kernel, "conv.winograd_4x4") ? 3.5 : 1;
}

static bool judge(const ortc_case *c, size_t which, const run_way *w, const run_result *r,
                  const run_result *expected, const run_result *bits, tally *t)
{
    const char *known = known_failure(c);
    char why[1400];
    const double tolerance = (c->tolerance ? c->tolerance : 1) * looser(r);
    if (matches(r, w->asked, expected, bits, tolerance, why, sizeof why)) {
        t->passed += !known;
        return true;
    }
    t->failed += !known;
    t->skipped += known != NULL;
    if (!known || options.verbose) {
        printf("%s ", known ? "known" : "FAILED");
        describe(c, which);
        printf(" on %s%s%s, %s", options.provider, options.level ? "/" : "",
               options.level ? options.level : "", w->name);
        for (uint32_t i = 0; i < MAX_PORTS; i++)
            if (w->asked >> i & 1) printf(", output %u", i);
        printf(": %s\n", why);
    }
    return false;
}

/* Every one and every two of several outputs, as the whole node gave them: the others are absent for planner
 * and kernel; once more where the node has no outputs behind the one. */
static size_t run_subsets(const ortc_case *c, size_t which, const node_text *n, run_way way,
                          const run_result *expected, const run_result *bits, tally *t)
{
    size_t failures = 0;
    for (size_t i = 0; i < n->n_out && n->n_out > 1; i++)
        for (size_t k = i; k < n->n_out; k++) {
            run_result r;
            way.asked = UINT32_C(1) << i | UINT32_C(1) << k;
            if ((n->n_out == 2 && k > i) || !expected->out[i] || !expected->out[k]) continue;
            for (int cut = 0; cut <= (i == k && !way.model); cut++) {
                run_way this = way;
                this.model |= cut ? MODEL_CUT : 0;
                run_case(n, &this, expected, &r);
                failures += !judge(c, which, &this, &r, expected, bits, t);
                run_result_deinit(&r);
            }
        }
    return failures;
}

static void run_ways(const ortc_case *c, size_t which, const node_text *n, const run_result *expected,
                     tally *t)
{
    const bool is_ref = !strcmp(options.provider, "ref"), is_sim = !strcmp(options.provider, "sim");
    /* passes may make one operator of a composition's parts: then it is another kernel's bits */
    const ortc_op *op = ortc_op_find(n->domain, n->op);
    const bool composed = op && op->flags & ORTC_OP_COMPOSED, exact = (is_ref || is_sim) && !composed;
    const char *known = known_failure(c);
    run_result first = {0};
    size_t failures = 0;
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        run_way way = ways[w];
        run_result r;
        way.providers = options.device ? options.device : options.provider;
        if (!applies(c, n, &way, t)) continue;
        run_case(n, &way, expected, &r);
        coverage_note(n, &r);
        if (w == 0 && !is_ref && !composed && r.status == ORTC_OK &&
            strcmp(r.provider, options.provider) != 0) {
            if (is_needed(c, n)) {
                printf("FAILED ");
                describe(c, which);
                printf(": %s does not take it\n", options.provider);
                t->failed++;
            }
            run_result_deinit(&r);
            return;
        }
        const run_result *bits = exact ? expected : w == 1 ? &first : NULL;
        failures += !judge(c, which, &way, &r, expected, bits, t);
        if (w == 0)
            first = r;
        else
            run_result_deinit(&r);
        /* other outputs make another plan, in which a kernel may go another way: only ref's bits must stay */
        failures += run_subsets(c, which, n, way, expected, exact ? expected : NULL, t);
    }
    if (known && !failures) {
        printf("FAILED ");
        describe(c, which);
        printf(" passes now; it was listed as: %s\n", known);
        t->failed++;
    }
    run_result_deinit(&first);
}

static int64_t elements_of(const node_text *n)
{
    int64_t count = 0;
    for (size_t i = 0; i < n->n_in; i++) count += n->in[i].count;
    return count;
}

static void run_line(const char *family, const ortc_case *c, size_t which, tally *t)
{
    node_text n;
    run_result expected = {0};
    char error[200] = "";
    if (!case_read(c, which, &n, error, sizeof error)) {
        printf("FAILED ");
        describe(c, which);
        printf(": the line cannot be read: %s\n", error);
        t->failed++;
    } else if (options.largest && elements_of(&n) > options.largest) {
        t->skipped++;
    } else {
        run_case(&n, &oracle, NULL, &expected);
        coverage_note(&n, &expected);
        if (expected.status != c->fails) {
            printf("FAILED ");
            describe(c, which);
            printf(" on ref: %s %s, expected %s\n", ortc_status_name(expected.status), expected.text,
                   ortc_status_name(c->fails));
            t->failed++;
        } else if (c->fails) {
            t->passed++;
        } else {
            if (options.dump) dump_case(options.dump, family, &n, &expected);
            run_ways(c, which, &n, &expected, t);
        }
    }
    run_result_deinit(&expected);
    node_deinit(&n);
}

static tally run_all(void)
{
    tally all = {0};
    size_t count = 0;
    for (const family_cases *f = all_cases; f->family; f++) {
        tally t = {0};
        if (options.family && strcmp(options.family, f->family) != 0) continue;
        for (const ortc_case *c = f->cases; c->op; c++) {
            const size_t length = options.op ? strlen(options.op) : 0;
            if (options.op && (strncmp(c->op, options.op, length) || (c->op[length] && c->op[length] != '@')))
                continue;
            for (size_t i = 0; i < case_combinations(c); i++)
                if (count++ % options.every == 0) run_line(f->family, c, i, &t);
        }
        printf("%s on %s%s%s: %zu passed, %zu failed, %zu skipped\n", f->family, options.provider,
               options.level ? "/" : "", options.level ? options.level : "", t.passed, t.failed, t.skipped);
        all.passed += t.passed;
        all.failed += t.failed;
        all.skipped += t.skipped;
    }
    /* sim has all of ref's entries, also those for strings, to which it then says no; options of a device may
     * leave kernels out */
    if (!options.op && !options.device && options.every == 1 && strcmp(options.provider, "sim") &&
        (!options.level || !strcmp(options.level, "best")))
        all.failed += coverage_missing(options.provider, options.family);
    return all;
}

/* Runs this program again for one instruction set; its last line is the result. */
static tally run_level(const char *self, const char *level)
{
    int fd[2], status;
    tally t = {0};
    fflush(stdout);
    if (pipe(fd)) return (tally){.failed = 1};
    const pid_t child = fork();
    if (child == 0) {
        dup2(fd[1], 1);
        close(fd[0]);
        /* the best: with tiles of f32 on machines with many processors, too, where nobody says otherwise */
        const bool best = !strcmp(level, "best");
        setenv("ORTC_CPU", best ? "amx" : level, !best);
        char every[24];
        snprintf(every, sizeof every, "%zu", options.every);
        const char *args[14] = {self, "--provider", "cpu", "--level", level, "--every", every};
        int n = 7;
        if (options.family) args[n++] = "--family", args[n++] = options.family;
        if (options.op) args[n++] = "--op", args[n++] = options.op;
        if (options.verbose) args[n++] = "-v";
        execv(self, (char *const *)args);
        _exit(127);
    }
    close(fd[1]);
    FILE *from = fdopen(fd[0], "r");
    char line[4096], last[4096] = "";
    while (from && fgets(line, sizeof line, from)) {
        fputs(last, stdout);
        memcpy(last, line, sizeof last);
    }
    fclose(from);
    if (child < 0 || waitpid(child, &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) > 1 ||
        sscanf(last, "%zu passed, %zu failed, %zu skipped", &t.passed, &t.failed, &t.skipped) != 3) {
        printf("%sFAILED cpu/%s ended early\n", last, level);
        t.failed++;
    }
    return t;
}

#define LEVEL(isa, needs, unused) {#isa, needs},
static const struct {
    const char *name;
    uint32_t needs;
} levels[] = {{"best", 0}, ORTC_EACH_ISA(LEVEL, 0)};

/* The plainest instruction set first. */
static tally run_levels(const char *self)
{
    const uint32_t detected = ortc_cpu_features_detected();
    tally all = {0};
    for (size_t i = sizeof levels / sizeof *levels; i-- > 0;) {
        int known;
        if (levels[i].needs & ~detected) {
            printf("this machine has no %s\n", levels[i].name);
            all.skipped++;
            continue;
        }
        if (i > 0 && !(detected & ~ortc_cpu_level_mask(levels[i].name, &known))) {
            printf("%s is this machine's best\n", levels[i].name);
            continue;
        }
        const tally t = run_level(self, levels[i].name);
        all.passed += t.passed;
        all.failed += t.failed;
        all.skipped += t.skipped;
    }
    return all;
}

static bool machine_has(const char *what)
{
    const uint32_t has = ortc_cpu_features_detected();
    if (!strcmp(what, "bf16")) return has & (ORTC_CPU_AMX | ORTC_CPU_AVX512_BF16);
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        if (!strcmp(what, levels[i].name)) return !(levels[i].needs & ~has);
    return false;
}

static tally run_both(const char *self)
{
    options.provider = "ref";
    const tally ref = run_all(), cpu = run_levels(self);
    return (tally){ref.passed + cpu.passed, ref.failed + cpu.failed, ref.skipped + cpu.skipped};
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (!strcmp(argv[i], "--help")) {
            printf("cases [--plugin PATH] [--family NAME] [--op NAME] [--provider NAME [--device SPELLING | "
                   "--level all]] "
                   "[--needs WHAT] [--largest N] [--every N] [--dump DIR] [-v]\n");
            return 0;
        }
        if (!strcmp(argv[i], "-v"))
            options.verbose = true;
        else if (!value) {
            fprintf(stderr, "%s wants a value\n", argv[i]);
            return 2;
        } else if (!strcmp(argv[i], "--family"))
            options.family = argv[++i];
        else if (!strcmp(argv[i], "--op"))
            options.op = argv[++i];
        else if (!strcmp(argv[i], "--provider"))
            options.provider = argv[++i];
        else if (!strcmp(argv[i], "--device"))
            options.device = argv[++i];
        else if (!strcmp(argv[i], "--plugin")) {
            ortc_error error = ORTC_ERROR_INIT;
            if (ortc_plugin_load(argv[++i], &error) != ORTC_OK) {
                fprintf(stderr, "%s\n", error.text);
                return 2;
            }
        } else if (!strcmp(argv[i], "--largest"))
            options.largest = strtoll(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--every")) {
            options.every = strtoul(argv[++i], NULL, 10);
            options.every += !options.every;
        } else if (!strcmp(argv[i], "--dump"))
            options.dump = argv[++i];
        else if (!strcmp(argv[i], "--level"))
            options.level = argv[++i];
        else if (!strcmp(argv[i], "--needs")) {
            if (machine_has(argv[++i])) continue;
            printf("this machine has no %s\n0 passed, 0 failed, 1 skipped\n", argv[i]);
            return 0;
        } else {
            fprintf(stderr, "unknown option %s\n", argv[i]);
            return 2;
        }
    }
    bool known = !options.family;
    for (const family_cases *f = all_cases; f->family; f++)
        known |= options.family && !strcmp(f->family, options.family);
    if (!known || ortc_registry_init(NULL) != ORTC_OK ||
        (options.provider && !ortc_provider_find(options.provider))) {
        fprintf(stderr, "there is no %s '%s'\n", known ? "provider" : "family",
                known ? options.provider : options.family);
        return 2;
    }
    char self[4096];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n < 0 ? 0 : n] = 0;
    const bool every_level = options.level && !strcmp(options.level, "all");
    if (every_level && options.provider && strcmp(options.provider, "cpu")) {
        fprintf(stderr, "--level all is of cpu\n");
        return 2;
    }
    const tally t = !options.provider ? run_both(self) : every_level ? run_levels(self) : run_all();
    printf("%zu passed, %zu failed, %zu skipped\n", t.passed, t.failed, t.skipped);
    return t.failed != 0;
}
