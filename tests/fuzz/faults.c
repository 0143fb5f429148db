/* tests/fuzz/faults.c: what is refused once. A model is loaded from a file and from a reader, made sessions
 * of, run at two sizes and saved, again and again; each time one allocation fails, or one read or write of a
 * file, or one start of a thread. The call in which it happens gives a status that says so, or does without;
 * the same call again succeeds, the bits of all results are those of before, and nothing is left allocated.
 *
 *   faults [--all] [--provider NAMES] MODEL...
 *
 * Of the allocations the first of every distinct call site (its callers within this program) fails; with
 * --all each of them does. The linker puts these hooks around libc's functions (--wrap).
 */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"

enum { MAX_ENDS = 16, FRAMES = 6, MAX_SITES = 1 << 16, EXTENT = 3, TIMES = 2, WORKERS = 4 };
enum { MEMORY, FILES, THREADS, N_KINDS };
static const char *const kinds[] = {"allocation", "read or write", "start of a thread"};

/* ---- Hooks --------------------------------------------------------------------------------------------- */

static atomic_long calls[N_KINDS]; /* since the scenario began */
static atomic_long live;           /* blocks that are allocated */
static int fault_kind;
static long fault_at; /* the call of that kind that fails, from 1; 0: none */

/* Of the calls that are recorded, the numbers of those from new sites. */
static struct {
    bool on, all;
    uint64_t seen[MAX_SITES * 2];
    long numbers[MAX_SITES];
    size_t count;
} sites;

static void record(long number)
{
    void *frames[FRAMES + 2];
    const int n = backtrace(frames, FRAMES + 2);
    uint64_t hash = 0;
    for (int i = 2; i < n; i++) hash = (hash ^ (uint64_t)(uintptr_t)frames[i]) * UINT64_C(0x9e3779b97f4a7c15);
    hash += !hash;
    size_t at = hash % ORTC_LENGTH(sites.seen);
    while (sites.seen[at] && sites.seen[at] != hash) at = (at + 1) % ORTC_LENGTH(sites.seen);
    if ((sites.seen[at] && !sites.all) || sites.count == MAX_SITES) return;
    sites.seen[at] = hash;
    sites.numbers[sites.count++] = number;
}

static bool fails(int kind)
{
    const long n = atomic_fetch_add(&calls[kind], 1) + 1;
    if (sites.on && kind == MEMORY) {
        sites.on = false; /* backtrace allocates */
        record(n);
        sites.on = true;
    }
    return fault_at == n && fault_kind == kind;
}

#define WRAP(type, name, parameters) \
    type __real_##name parameters; \
    type __wrap_##name parameters; \
    type __wrap_##name parameters
#define ALLOCATES(name, parameters, arguments) \
    WRAP(void *, name, parameters) \
    { \
        void *p = fails(MEMORY) ? NULL : __real_##name arguments; \
        live += p != NULL; \
        return p; \
    }
ALLOCATES(malloc, (size_t n), (n))
ALLOCATES(calloc, (size_t n, size_t m), (n, m))
ALLOCATES(aligned_alloc, (size_t a, size_t n), (a, n))
ALLOCATES(strdup, (const char *s), (s))
ALLOCATES(strndup, (const char *s, size_t n), (s, n))
WRAP(void *, realloc, (void *p, size_t n))
{
    if (fails(MEMORY)) return NULL;
    void *to = __real_realloc(p, n);
    live += to && !p;
    return to;
}
WRAP(int, posix_memalign, (void **p, size_t a, size_t n))
{
    const int code = fails(MEMORY) ? ENOMEM : __real_posix_memalign(p, a, n);
    live += code == 0;
    return code;
}
WRAP(void, free, (void *p))
{
    live -= p != NULL;
    __real_free(p);
}
#define TOUCHES(type, name, parameters, arguments, failed) \
    WRAP(type, name, parameters) \
    { \
        if (fails(FILES)) return errno = EIO, failed; \
        return __real_##name arguments; \
    }
TOUCHES(void *, mmap, (void *p, size_t n, int prot, int flags, int fd, off_t at), (p, n, prot, flags, fd, at),
        MAP_FAILED)
TOUCHES(ssize_t, read, (int fd, void *to, size_t n), (fd, to, n), -1)
TOUCHES(ssize_t, write, (int fd, const void *from, size_t n), (fd, from, n), -1)
TOUCHES(int, fsync, (int fd), (fd), -1)
WRAP(int, pthread_create,
     (pthread_t * t, const pthread_attr_t *attributes, void *(*start)(void *), void *arg))
{
    return fails(THREADS) ? EAGAIN : __real_pthread_create(t, attributes, start, arg);
}

/* ---- The calls that are watched ------------------------------------------------------------------------ */

static int n_passed, n_failed;
static char complaint[512]; /* of the scenario under way; "": none */

static void complain(const char *what, const char *more)
{
    if (!complaint[0]) snprintf(complaint, sizeof complaint, "%s: %s", what, more);
}

/* Whether the call has to be made again, which then succeeds; complains of any other failure. */
static bool again(const char *what, ortc_status s, const ortc_error *e, bool *failed)
{
    const ortc_status allowed = fault_kind == MEMORY ? ORTC_OUT_OF_MEMORY : ORTC_IO;
    if (s == ORTC_OK) return false;
    if (*failed || !fault_at || s != allowed || !e->text[0]) {
        char text[400];
        snprintf(text, sizeof text, "%s%s: %.300s", *failed ? "a second time " : "", ortc_status_name(s),
                 e->text);
        complain(what, text);
        return false;
    }
    return *failed = true;
}

typedef struct bytes_read {
    uint8_t *data;
    uint64_t bytes;
} bytes_read;
static uint64_t reader_bytes(void *arg) { return ((bytes_read *)arg)->bytes; }
static ortc_status reader_read(void *arg, uint64_t offset, void *to, size_t bytes, ortc_error *e)
{
    if (fails(FILES)) {
        if (e) e->code = ORTC_IO, snprintf(e->text, sizeof e->text, "the reader fails");
        return ORTC_IO;
    }
    memcpy(to, ((bytes_read *)arg)->data + offset, bytes);
    return ORTC_OK;
}

/* ---- Values -------------------------------------------------------------------------------------------- */

/* Small numbers that may be indices, extents or counts of what has `extent` elements. */
static ortc_value *make_input(const ortc_io *io, int64_t extent)
{
    int64_t dims[8];
    ortc_value *v = NULL;
    if (io->rank < 0 || io->rank > 8) return NULL;
    for (int32_t k = 0; k < io->rank; k++) dims[k] = io->dims[k] >= 0 ? io->dims[k] : extent;
    if (io->dtype == ORTC_STRING) {
        const char *words[64];
        for (size_t i = 0; i < ORTC_LENGTH(words); i++) words[i] = i % 3 ? "long enough for a block" : "1";
        return ortc_value_create_strings(io->rank, dims, words, NULL, &v, NULL) == ORTC_OK ? v : NULL;
    }
    if (ortc_value_create(io->dtype, io->rank, dims, &v, NULL) != ORTC_OK) return NULL;
    uint8_t *data = ortc_value_data(v);
    memset(data, 0, ortc_value_bytes(v));
    for (int64_t i = 0; i < ortc_value_count(v); i++) switch (io->dtype) {
        case ORTC_F32: ((float *)(void *)data)[i] = (float)(i % 7) / 4; break;
        case ORTC_I64: ((int64_t *)(void *)data)[i] = io->rank ? 1 - i % 2 : EXTENT; break;
        case ORTC_BOOL: data[i] = 1; break;
        default: break;
        }
    return v;
}

typedef struct inputs {
    ortc_in in[TIMES][MAX_ENDS];
    size_t n;
} inputs;

static bool inputs_init(inputs *v, const char *path)
{
    ortc_model *m = NULL;
    const ortc_io *io;
    *v = (inputs){.n = 0};
    if (ortc_model_load(path, NULL, &m, NULL) != ORTC_OK) return false;
    bool good = true;
    for (; (io = ortc_model_input(m, v->n)) && good && v->n < MAX_ENDS; v->n++)
        for (int t = 0; t < TIMES; t++) {
            char *name = malloc(strlen(io->name) + 1);
            memcpy(name, io->name, strlen(io->name) + 1);
            v->in[t][v->n] = (ortc_in){name, make_input(io, EXTENT - t)};
            good &= v->in[t][v->n].value != NULL;
        }
    ortc_model_release(m);
    return good;
}
static void inputs_deinit(inputs *v)
{
    for (size_t i = 0; i < v->n; i++)
        for (int t = 0; t < TIMES; t++) {
            ortc_value_release(v->in[t][i].value);
            free((void *)(uintptr_t)v->in[t][i].name);
        }
}

/* ---- A scenario ---------------------------------------------------------------------------------------- */

typedef struct scenario {
    const char *path, *providers, *saved;
    uint32_t threads;
    bool reader;
    bytes_read file;
    inputs inputs;
    uint64_t results; /* a hash of them all */
} scenario;

static uint64_t add_value(uint64_t hash, const ortc_value *v, bool *failed)
{
    ortc_error e = ORTC_ERROR_INIT;
    void *data = NULL;
    size_t bytes = 0;
    while (again("encode", ortc_value_encode(v, NULL, &data, &bytes, &e), &e, failed)) {}
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ ((uint8_t *)data)[i]) * UINT64_C(0x100000001b3);
    free(data);
    return hash;
}

static ortc_status load(const scenario *c, ortc_model **m, ortc_error *e)
{
    const ortc_reader r = {.size = sizeof r,
                           .arg = (void *)(uintptr_t)&c->file,
                           .bytes = reader_bytes,
                           .read_at = reader_read};
    return c->reader ? ortc_model_load_reader(&r, NULL, m, e) : ortc_model_load(c->path, NULL, m, e);
}

static ortc_status run(ortc_session *s, const ortc_model *m, const ortc_in *in, size_t n_in, ortc_out *out,
                       size_t *n_out, ortc_error *e)
{
    ortc_run_args a = ORTC_RUN_ARGS_INIT;
    const ortc_io *io;
    for (*n_out = 0; *n_out < MAX_ENDS && (io = ortc_model_output(m, *n_out)); ++*n_out)
        out[*n_out] = (ortc_out){io->name, NULL, 0, 0};
    a.in = in, a.n_in = n_in, a.out = out, a.n_out = *n_out;
    const ortc_status status = ortc_run(s, &a, e);
    for (size_t i = 0; i < *n_out; i++)
        if ((status == ORTC_OK) != (out[i].value != NULL)) complain("run", "status and results");
    return status;
}

/* Everything once, with what is refused refused. */
static void play(scenario *c, bool first)
{
    ortc_error e = ORTC_ERROR_INIT;
    ortc_model *m = NULL;
    ortc_session *s = NULL;
    ortc_session_options so = ORTC_SESSION_OPTIONS_INIT;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    bool failed = false;
    const long before = live;
    for (int k = 0; k < N_KINDS; k++) calls[k] = 0;
    so.providers = c->providers;
    so.threads = c->threads;
    while (again("load", load(c, &m, &e), &e, &failed))
        if (m) complain("load", "a failure that leaves a model");
    while (m && again("session", ortc_session_create(m, &so, &s, &e), &e, &failed))
        if (s) complain("session", "a failure that leaves a session");
    for (int t = 0; s && t < TIMES; t++) {
        ortc_out out[MAX_ENDS];
        size_t n_out = 0;
        while (again("run", run(s, m, c->inputs.in[t], c->inputs.n, out, &n_out, &e), &e, &failed)) {}
        for (size_t i = 0; i < n_out; i++) {
            if (out[i].value && !complaint[0]) hash = add_value(hash, out[i].value, &failed);
            ortc_value_release(out[i].value);
        }
    }
    while (m && again("save", ortc_model_save(m, c->saved, NULL, &e), &e, &failed)) {}
    ortc_session_release(s);
    ortc_model_release(m);
    if (first)
        c->results = hash;
    else if (hash != c->results)
        complain("results", "other bits");
    if (!first && live != before && fault_kind != THREADS) { /* the pool stays */
        char text[64];
        snprintf(text, sizeof text, "%ld blocks are left", (long)live - before);
        complain("the end", text);
    }
}

static void judge(const scenario *c, int kind, long at)
{
    if (complaint[0]) {
        n_failed++;
        printf("FAILED: %s on %s%s, %s %ld: %s\n", c->path, c->providers, c->reader ? " by a reader" : "",
               kinds[kind], at, complaint);
    } else
        n_passed++;
    complaint[0] = 0;
}

static void refuse(scenario *c, int kind, long at)
{
    fault_kind = kind;
    fault_at = at;
    play(c, false);
    if (!complaint[0] && calls[kind] < at) complain("the fault", "it did not come to that call");
    fault_at = 0;
    judge(c, kind, at);
}

/* In a process of its own each: the pool of threads is started once, when a loop is long enough. */
static long starts; /* that have failed */
static void refuse_threads(scenario *c)
{
    const int before = n_failed;
    for (long at = 1; at < WORKERS; at++) {
        fflush(stdout);
        const pid_t child = fork();
        if (child == 0) {
            fault_kind = THREADS;
            fault_at = at;
            c->threads = 0;
            play(c, false);
            judge(c, THREADS, at);
            fflush(stdout);
            _exit(n_failed > before ? 1 : calls[THREADS] < at ? 2 : 0);
        }
        int status = 1;
        const bool good = child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
                          WEXITSTATUS(status) != 1;
        n_passed += good;
        n_failed += !good;
        starts += good && WEXITSTATUS(status) == 0;
    }
}

static void try_all(scenario *c)
{
    memset(sites.seen, 0, sizeof sites.seen);
    play(c, true); /* what is made once in a process is made */
    play(c, false);
    sites.count = 0;
    sites.on = true;
    play(c, false);
    sites.on = false;
    const long memory = calls[MEMORY], files = calls[FILES];
    const size_t n = sites.count;
    judge(c, MEMORY, 0);
    for (size_t i = 0; i < n; i++) refuse(c, MEMORY, sites.numbers[i]);
    for (long i = 1; i <= files; i++) refuse(c, FILES, i);
    printf("%s on %s%s: %zu of %ld allocations, %ld reads and writes\n", c->path, c->providers,
           c->reader ? " by a reader" : "", n, memory, files);
}

static bool read_file(const char *path, bytes_read *to)
{
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END)) return false;
    to->bytes = (uint64_t)ftell(f);
    to->data = malloc(to->bytes + 1);
    rewind(f);
    const bool good = to->data && fread(to->data, 1, to->bytes, f) == to->bytes;
    fclose(f);
    return good;
}

int main(int argc, char **argv)
{
    static const char *const both[] = {"ref", "cpu"};
    const char *provider = NULL;
    void *warm[4];
    char saved[64];
    backtrace(warm, 4);         /* its first call loads a library */
    ortc_heap_least = SIZE_MAX; /* each block may fail, and is counted */
    setenv("ORTC_THREADS", "4", 1);
    snprintf(saved, sizeof saved, "%s/ortc-faults-%ld.onnx", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm",
             (long)getpid());
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--all"))
            sites.all = true;
        else if (!strcmp(argv[i], "--provider") && i + 1 < argc)
            provider = argv[++i];
        else
            for (int k = 0; k < (provider ? 1 : 2); k++) {
                scenario c = {.path = argv[i],
                              .providers = provider ? provider : both[k],
                              .saved = saved,
                              .threads = 1};
                if (!inputs_init(&c.inputs, argv[i]) || !read_file(argv[i], &c.file)) {
                    printf("FAILED: %s does not load, or has inputs that are not made here\n", argv[i]);
                    n_failed++;
                } else {
                    play(&c, true);
                    if (k) refuse_threads(&c);
                    try_all(&c);
                    c.reader = k == 0; /* without external data */
                    if (c.reader && !strstr(c.path, "external")) try_all(&c);
                }
                inputs_deinit(&c.inputs);
                free(c.file.data);
            }
    }
    unlink(saved);
    if (!starts) n_failed++, printf("FAILED: no pool was started\n");
    printf("%d passed, %d failed\n", n_passed, n_failed);
    return n_failed != 0;
}
