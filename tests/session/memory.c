/* tests/session/memory.c: how much memory a process takes, measured by the system, each in a process of its
 * own:
 *   a 600 MB model of MatMuls, weights in the file and beside it: peak resident at most 0.1 x the weights
 *   after its first run, which packs one after the other into the same memory, and 1.15 x after the second,
 *   which packs them for good (for the provider cpu, in f32 panels) and has the same result
 *   a model of 96 MB that a session packs at once, by its first run
 *   eight sessions of one model, each with two runs behind it: at most 1.1 x one; with different options (1
 *   to 8 threads): 1.2 x
 *   while they are idle the process takes less than half a percent of a core
 *   of a table of 16 MB beside a model, of which Gather reads 32 rows, less than half is resident, also where
 *   the system holds the file in huge pages
 * A plain program. Models are written into a temporary folder and removed. usage: memory
 */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ortc/ortc.h"
#include "tests/unit/wire_writer.h"

enum { K = 2048, ROWS = 32, MATRIX = K * K * 4 };
static char folder[256];

/* ---- Models: x [32,K] times n matrices in turn --------------------------------------------------------- */

static size_t varint_bytes(uint64_t v)
{
    size_t n = 1;
    for (; v > 0x7f; v >>= 7) n++;
    return n;
}

static void put_pair(buffer *t, const char *key, const char *value)
{
    buffer pair = {0};
    put_string(&pair, 1, key);
    put_string(&pair, 2, value);
    put_message(t, 13, &pair);
}

/* What stands before a matrix's bytes in the file; external: the whole tensor. */
static buffer head_of(int i, bool external)
{
    char name[16], offset[24];
    snprintf(name, sizeof name, "w%d", i);
    buffer t = make_tensor(name, ORTC_F32, 2, (int64_t[]){K, K}, NULL, 0);
    if (external) {
        snprintf(offset, sizeof offset, "%lld", (long long)i * MATRIX);
        put_pair(&t, "location", "weights.bin");
        put_pair(&t, "offset", offset);
        put_pair(&t, "length", "16777216");
        put_int(&t, 14, 1);
    } else {
        put_varint(&t, 9 << 3 | 2);
        put_varint(&t, MATRIX);
    }
    return t;
}

static bool write_model(const char *path, const char *weights_path, int n)
{
    static float matrix[K * K];
    buffer g = {0}, m = {0}, b;
    char in[32], out[16];
    for (int i = 0; i < n; i++) {
        snprintf(in, sizeof in, i ? "t%d w%d" : "x w%d", i ? i - 1 : i, i);
        snprintf(out, sizeof out, "t%d", i);
        b = make_node("MatMul", "", in, i + 1 < n ? out : "y"), put_message(&g, 1, &b);
    }
    b = make_value_info("x", ORTC_F32, 2, (int64_t[]){-1, K}), put_message(&g, 11, &b);
    b = make_value_info("y", ORTC_F32, 2, (int64_t[]){-1, K}), put_message(&g, 12, &b);
    uint64_t bytes = g.bytes;
    for (int i = 0; i < n; i++) {
        b = head_of(i, weights_path);
        uint64_t tensor = b.bytes + (weights_path ? 0 : MATRIX);
        bytes += 1 + varint_bytes(tensor) + tensor;
        buffer_free(&b);
    }
    put_int(&m, 1, 8);
    put_opset(&m, 8, "", 17);
    put_varint(&m, 7 << 3 | 2);
    put_varint(&m, bytes);
    put_bytes(&m, g.data, g.bytes);
    FILE *f = fopen(path, "wb"), *w = weights_path ? fopen(weights_path, "wb") : f;
    bool good = f && w && fwrite(m.data, 1, m.bytes, f) == m.bytes;
    uint32_t random = 1;
    for (size_t i = 0; i < K * K; i++) {
        random = random * 1664525 + 1013904223;
        matrix[i] = ((float)(random >> 8) / (1 << 24) - 0.5f) * 0.07f; /* a product keeps its size */
    }
    for (int i = 0; i < n && good; i++) {
        matrix[0] = (float)i; /* no two are equal */
        b = head_of(i, weights_path);
        buffer tag = {0};
        put_varint(&tag, 5 << 3 | 2);
        put_varint(&tag, b.bytes + (weights_path ? 0 : MATRIX));
        good = fwrite(tag.data, 1, tag.bytes, f) == tag.bytes && fwrite(b.data, 1, b.bytes, f) == b.bytes &&
               fwrite(matrix, 1, MATRIX, w) == MATRIX;
        buffer_free(&tag);
        buffer_free(&b);
    }
    good = f && fclose(f) == 0 && good;
    if (weights_path) good = w && fclose(w) == 0 && good;
    buffer_free(&g);
    buffer_free(&m);
    return good;
}

/* y = the rows x of a matrix beside the model, whose row i is full of i. */
static bool write_table(const char *path, const char *weights_path)
{
    static float matrix[K * K];
    buffer g = {0}, b, m;
    for (int i = 0; i < K * K; i++) matrix[i] = (float)(i / K);
    b = make_node("Gather", "", "w0 x", "y"), put_message(&g, 1, &b);
    b = head_of(0, true), put_message(&g, 5, &b);
    b = make_value_info("x", ORTC_I64, 1, (int64_t[]){-1}), put_message(&g, 11, &b);
    b = make_value_info("y", ORTC_F32, 2, (int64_t[]){-1, K}), put_message(&g, 12, &b);
    m = make_model(8, 17, &g);
    FILE *f = fopen(path, "wb"), *w = fopen(weights_path, "wb");
    const bool good = f && w && fwrite(m.data, 1, m.bytes, f) == m.bytes &&
                      fwrite(matrix, 1, MATRIX, w) == MATRIX;
    const bool closed = f && !fclose(f), both = w && !fclose(w);
    buffer_free(&m);
    return good && closed && both;
}

/* ---- Measuring, in a process of its own ---------------------------------------------------------------- */

static double megabytes(const char *field)
{
    char line[256];
    double kilobytes = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, field, strlen(field))) kilobytes = atof(line + strlen(field) + 1);
    if (f) fclose(f);
    return kilobytes / 1024;
}

/* The result is held, too, if there is a place for it. */
static int run(ortc_session *s, ortc_value **y, ortc_error *e)
{
    static float x[ROWS * K];
    for (int i = 0; i < ROWS * K; i++) x[i] = (float)(i % 5 - 2);
    ortc_in in = {"x", ortc_wrap(x, ORTC_F32, 2, (int64_t[]){ROWS, K})};
    ortc_out out = {"y", NULL, 0, 0};
    ortc_run_args a = ORTC_RUN_ARGS_INIT;
    a.in = &in, a.n_in = 1, a.out = &out, a.n_out = 1;
    ortc_status status = ortc_run(s, &a, e);
    ortc_value_release(in.value);
    if (y)
        *y = out.value;
    else
        ortc_value_release(out.value);
    return status != ORTC_OK;
}

static int fail(const char *text)
{
    printf("FAILED: %s\n", text);
    return 1;
}

/* With ORTC_SESSION_PACK_AT_ONCE one run packs all for good. */
static int measure_at_once(const char *path, int n)
{
    ortc_error e = ORTC_ERROR_INIT;
    ortc_model *m;
    ortc_session *s;
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    const double weights = (double)n * MATRIX / (1 << 20);
    o.flags = ORTC_SESSION_PACK_AT_ONCE;
    if (ortc_model_load(path, NULL, &m, &e) || ortc_session_create(m, &o, &s, &e) || run(s, NULL, &e))
        return fail(e.text);
    const double peak = megabytes("VmHWM:");
    printf("at once: weights %.0f MiB, peak of one run %.0f MiB\n", weights, peak);
    return peak < weights ? fail("the weights were not packed by the first run") : 0;
}

static int measure_peak(const char *path, int n)
{
    ortc_error e = ORTC_ERROR_INIT;
    ortc_model *m;
    ortc_session *s;
    ortc_plan_info plan;
    static float x[ROWS * K];
    const double weights = (double)n * MATRIX / (1 << 20);
    ortc_in in = {"x", ortc_wrap(x, ORTC_F32, 2, (int64_t[]){ROWS, K})};
    ortc_value *y[2];
    if (ortc_model_load(path, NULL, &m, &e) || ortc_session_create(m, NULL, &s, &e) || run(s, &y[0], &e))
        return fail(e.text);
    const double first = megabytes("VmHWM:");
    if (run(s, &y[1], &e) || ortc_session_plan(s, &in, 1, &plan, NULL, NULL, &e)) return fail(e.text);
    double peak = megabytes("VmHWM:"), packed = (double)plan.packed_bytes / (1 << 20);
    printf(
        "%s: weights %.0f MiB, packed %.0f MiB, peak of one run %.0f MiB, of two %.0f MiB: %.3f and %.3f x\n",
        strrchr(path, '/') + 1, weights, packed, first, peak, first / weights, peak / weights);
    return packed < weights        ? fail("the weights were not packed")
           : first > 0.1 * weights ? fail("the peak of one run is too high")
           : peak > 1.15 * weights ? fail("the peak is too high")
           : memcmp(ortc_value_data(y[0]), ortc_value_data(y[1]), ortc_value_bytes(y[0]))
               ? fail("the second run has another result")
               : 0;
}

static int measure_table(const char *path)
{
    ortc_error e = ORTC_ERROR_INIT;
    ortc_model *m;
    ortc_session *s;
    int64_t rows[ROWS];
    for (int i = 0; i < ROWS; i++) rows[i] = K / ROWS * i + 7;
    ortc_in in = {"x", ortc_wrap(rows, ORTC_I64, 1, (int64_t[]){ROWS})};
    ortc_out out = {"y", NULL, 0, 0};
    ortc_run_args a = ORTC_RUN_ARGS_INIT;
    a.in = &in, a.n_in = 1, a.out = &out, a.n_out = 1;
    if (ortc_model_load(path, NULL, &m, &e) || ortc_session_create(m, NULL, &s, &e)) return fail(e.text);
    const double before = megabytes("RssFile:");
    if (ortc_run(s, &a, &e)) return fail(e.text);
    const double grown = megabytes("RssFile:") - before, table = (double)MATRIX / (1 << 20);
    const float *y = ortc_value_data(out.value);
    for (int i = 0; i < ROWS * K; i++)
        if (y[i] != (float)rows[i / K]) return fail("these are not the rows of the table");
    printf("table of %.0f MiB: %.1f MiB more are resident behind a run that reads %d rows\n", table, grown,
           ROWS);
    ortc_session_release(s);
    ortc_model_release(m);
    return grown > table / 2 ? fail("more of the table is resident than was read") : 0;
}

static double processor_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The share of a core that the process takes while nothing runs. */
static double idle_share(void)
{
    struct timespec nap = {.tv_nsec = 100000000};
    nanosleep(&nap, NULL);
    const double begun = processor_seconds();
    nap = (struct timespec){.tv_sec = 2};
    nanosleep(&nap, NULL);
    return (processor_seconds() - begun) / 2;
}

/* Eight sessions, with the same options or with 1 to 8 threads. */
static int measure_sessions(const char *path, bool alike)
{
    ortc_error e = ORTC_ERROR_INIT;
    ortc_model *m;
    ortc_session *s[8];
    double one = 0, eight, most = alike ? 1.1 : 1.2;
    if (ortc_model_load(path, NULL, &m, &e)) return fail(e.text);
    for (uint32_t i = 0; i < 8; i++) {
        ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
        o.threads = alike ? 0 : 1 + i;
        if (ortc_session_create(m, &o, &s[i], &e) || run(s[i], NULL, &e) || run(s[i], NULL, &e))
            return fail(e.text);
        one = i ? one : megabytes("VmRSS:");
    }
    eight = megabytes("VmRSS:");
    const double idle = idle_share();
    printf("sessions, %s: one %.1f MiB, eight %.1f MiB: %.3f x; idle %.3f %% of a core\n",
           alike ? "alike" : "of 1 to 8 threads", one, eight, eight / one, 100 * idle);
    return eight > most * one ? fail("sessions do not share")
           : idle > 0.005     ? fail("idle sessions take time")
                              : 0;
}

/* ---- All ----------------------------------------------------------------------------------------------- */

static int spawn(const char *self, const char *what, const char *path, int n)
{
    char count[16];
    int status = 1;
    snprintf(count, sizeof count, "%d", n);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        execl(self, self, what, path, count, (char *)NULL);
        _exit(127);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static const char *in_folder(const char *name)
{
    static char paths[2][320];
    static int next;
    char *to = paths[next++ % 2];
    snprintf(to, sizeof paths[0], "%s/%s", folder, name);
    return to;
}

int main(int argc, char **argv)
{
    if (argc == 4)
        return !strcmp(argv[1], "peak")    ? measure_peak(argv[2], atoi(argv[3]))
               : !strcmp(argv[1], "once")  ? measure_at_once(argv[2], atoi(argv[3]))
               : !strcmp(argv[1], "table") ? measure_table(argv[2])
                                           : measure_sessions(argv[2], !strcmp(argv[1], "alike"));
    enum { LARGE = 36, SMALL = 6, ALL = 6 }; /* 576 MiB: 604 MB */
    const char *temporary = getenv("TMPDIR");
    int passed = 0;
    snprintf(folder, sizeof folder, "%s/ortc-memory-XXXXXX", temporary && *temporary ? temporary : "/tmp");
    if (!mkdtemp(folder)) {
        printf("0 passed, 1 failed\n");
        return 1;
    }
    for (int external = 0; external < 2; external++) {
        const char *model = in_folder(external ? "external.onnx" : "one-file.onnx"),
                   *weights = external ? in_folder("weights.bin") : NULL;
        passed += write_model(model, weights, LARGE) && spawn(argv[0], "peak", model, LARGE);
        remove(model);
        if (weights) remove(weights);
    }
    const char *model = in_folder("sessions.onnx");
    if (write_model(model, NULL, SMALL))
        passed += spawn(argv[0], "alike", model, SMALL) + spawn(argv[0], "different", model, SMALL) +
                  spawn(argv[0], "once", model, SMALL);
    remove(model);
    const char *table = in_folder("table.onnx"), *weights = in_folder("weights.bin");
    passed += write_table(table, weights) && spawn(argv[0], "table", table, 1);
    remove(table);
    remove(weights);
    rmdir(folder);
    printf("%d passed, %d failed\n", passed, ALL - passed);
    return passed != ALL;
}
