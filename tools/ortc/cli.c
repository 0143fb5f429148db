/* tools/ortc/cli.c: messages, printing, memory and files for all commands; see cli.h. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "term.h"

struct cli_state cli = {.command = ""};

/* ---- Text ---------------------------------------------------------------------------------------------- */

/* Control characters become visible: C0 and DEL as \xNN, and C1 (U+0080..9F, two bytes in UTF-8), which some
 * terminals obey too. */
static void write_clean(FILE *to, const char *text, size_t bytes, bool one_line)
{
    for (size_t i = 0; i < bytes; i++) {
        unsigned char c = (unsigned char)text[i];
        bool control = c < 0x20 || c == 0x7f;
        if (control && !one_line && (c == '\n' || c == '\t')) control = false;
        if (c == 0xc2 && i + 1 < bytes && (unsigned char)text[i + 1] < 0xa0) {
            fprintf(to, "\\x%02x", (unsigned char)text[++i]);
            continue;
        }
        if (control)
            fprintf(to, "\\x%02x", c);
        else
            putc(c, to);
    }
}

static void say(const char *kind, int color, const char *fmt, va_list args)
{
    buffer text = {0};
    buffer_vprintf(&text, fmt, args);
    term_progress_clear();
    fprintf(stderr, "ortc%s%s: ", cli.command[0] ? " " : "", cli.command);
    if (kind[0]) {
        term_color(stderr, color);
        fprintf(stderr, "%s: ", kind);
        term_color(stderr, TERM_PLAIN);
    }
    write_clean(stderr, (const char *)text.data, text.size, true);
    putc('\n', stderr);
    free(text.data);
}

void say_error(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say("error", TERM_RED, fmt, args);
    va_end(args);
}

void say_note(const char *fmt, ...)
{
    if (cli.quiet) return;
    va_list args;
    va_start(args, fmt);
    say("note", TERM_BOLD, fmt, args);
    va_end(args);
}

static void on_log(void *arg, int32_t level, const char *text)
{
    static const char *const kinds[] = {"", "error", "warning", "info", "debug"};
    fprintf(stderr, "ortc: %s: ", level > 0 && level < (int32_t)COUNT_OF(kinds) ? kinds[level] : "log");
    write_clean(stderr, text, strlen(text), true);
    putc('\n', stderr);
}

void log_begin(void)
{
    static const char *const levels[] = {"", "error", "warning", "info", "debug"};
    const char *wanted = getenv("ORTC_LOG");
    int32_t level = cli.verbose ? ORTC_LOG_WARNING : 0;
    for (size_t i = 1; wanted && i < COUNT_OF(levels); i++)
        if (strcmp(wanted, levels[i]) == 0) level = (int32_t)i;
    if (level) ortc_log_set(on_log, NULL, level);
}

ortc_status fail(ortc_error *error, ortc_status code, const char *fmt, ...)
{
    if (error) {
        va_list args;
        va_start(args, fmt);
        error->code = code;
        vsnprintf(error->text, sizeof error->text, fmt, args);
        va_end(args);
    }
    return code;
}

void fail_prefix(ortc_error *error, const char *fmt, ...)
{
    if (!error) return;
    char old[sizeof error->text];
    memcpy(old, error->text, sizeof old);
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(error->text, sizeof error->text, fmt, args);
    va_end(args);
    if (n >= 0 && (size_t)n < sizeof error->text)
        snprintf(error->text + n, sizeof error->text - (size_t)n, "%s", old);
}

void put(const char *fmt, ...)
{
    buffer text = {0};
    va_list args;
    va_start(args, fmt);
    buffer_vprintf(&text, fmt, args);
    va_end(args);
    write_clean(stdout, (const char *)text.data, text.size, false);
    free(text.data);
}

int finish(int code)
{
    if (fflush(stdout) != 0 || ferror(stdout)) {
        say_error("results could not be written to stdout: %s", strerror(errno));
        return code == EXIT_GOOD ? EXIT_RUN : code;
    }
    return code;
}

/* ---- Memory -------------------------------------------------------------------------------------------- */

static void no_memory(void)
{
    static const char text[] = "ortc: error: out of memory\n";
    ssize_t ignored = write(STDERR_FILENO, text, sizeof text - 1);
    (void)ignored;
    _exit(EXIT_MEMORY);
}

void *mem_alloc(size_t bytes)
{
    void *p = calloc(1, bytes ? bytes : 1);
    if (!p) no_memory();
    return p;
}

void *mem_keep(size_t bytes)
{
    static struct kept {
        struct kept *next;
        max_align_t data[];
    } * all; /* never freed, but never lost either: leak checkers see it */
    struct kept *k = mem_alloc(sizeof *k + bytes);
    k->next = all;
    all = k;
    return k->data;
}

void *mem_grow(void *old, size_t count, size_t item_bytes)
{
    void *p = reallocarray(old, count ? count : 1, item_bytes);
    if (!p) no_memory();
    return p;
}

char *mem_copy(const char *text)
{
    char *p = mem_alloc(strlen(text) + 1);
    strcpy(p, text);
    return p;
}

char *mem_printf(const char *fmt, ...)
{
    buffer text = {0};
    va_list args;
    va_start(args, fmt);
    buffer_vprintf(&text, fmt, args);
    va_end(args);
    return (char *)text.data;
}

static void reserve(buffer *b, size_t more)
{
    if (more > SIZE_MAX / 4 - b->size) no_memory();
    size_t need = b->size + more + 1;
    if (need <= b->capacity) return;
    b->capacity = need < 128 ? 128 : need + need / 2;
    b->data = mem_grow(b->data, b->capacity, 1);
}

void buffer_add(buffer *b, const void *data, size_t bytes)
{
    reserve(b, bytes);
    if (bytes) memcpy(b->data + b->size, data, bytes);
    b->size += bytes;
    b->data[b->size] = 0;
}

void buffer_vprintf(buffer *b, const char *fmt, va_list args)
{
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    reserve(b, n > 0 ? (size_t)n : 0);
    vsnprintf((char *)b->data + b->size, b->capacity - b->size, fmt, again);
    va_end(again);
    b->size += n > 0 ? (size_t)n : 0;
}

void buffer_printf(buffer *b, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    buffer_vprintf(b, fmt, args);
    va_end(args);
}

/* ---- Names and files ----------------------------------------------------------------------------------- */

/* Damerau-Levenshtein distance of short words (a swap of neighbours counts one). */
static size_t distance(const char *a, const char *b)
{
    enum { MAX = 32 };
    size_t n = strlen(a), m = strlen(b), d[MAX + 1][MAX + 1];
    if (n > MAX || m > MAX) return MAX;
    for (size_t i = 0; i <= n; i++)
        for (size_t j = 0; j <= m; j++) {
            if (!i || !j) {
                d[i][j] = i + j;
                continue;
            }
            size_t best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            if (d[i - 1][j] + 1 < best) best = d[i - 1][j] + 1;
            if (d[i][j - 1] + 1 < best) best = d[i][j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && d[i - 2][j - 2] + 1 < best)
                best = d[i - 2][j - 2] + 1;
            d[i][j] = best;
        }
    return d[n][m];
}

const char *nearest(const char *word, const char *const *candidates, size_t count)
{
    const char *found = NULL;
    size_t length = strlen(word),
           best = length <= 4 ? 2 : 3; /* exclusive: one slip in a short word, two in a long one */
    for (size_t i = 0; i < count; i++) {
        size_t d = distance(word, candidates[i]);
        if (length >= 3 && strncmp(word, candidates[i], length) == 0 && d > 1)
            d = 1; /* the start of a longer name */
        if (d < best) {
            best = d;
            found = candidates[i];
        }
    }
    return found;
}

ortc_status file_read(const char *path, uint64_t limit, blob *out, ortc_error *error)
{
    *out = (blob){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return fail(error, errno == ENOENT ? ORTC_NOT_FOUND : ORTC_IO, "cannot open '%s': %s", path,
                    strerror(errno));
    struct stat st;
    size_t capacity = 1 << 16;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        if ((uint64_t)st.st_size > limit) {
            close(fd);
            return fail(error, ORTC_LIMIT, "'%s' has %lld bytes, more than the %llu that are read", path,
                        (long long)st.st_size, (unsigned long long)limit);
        }
        capacity = (size_t)st.st_size + 1; /* so that the end is seen without growing */
    }
    uint8_t *data = mem_grow(NULL, capacity, 1);
    size_t size = 0;
    for (;;) {
        if (size == capacity) {
            capacity += capacity / 2 + 4096; /* files of /proc have no size */
            data = mem_grow(data, capacity, 1);
        }
        ssize_t n = read(fd, data + size, capacity - size);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0 || (uint64_t)size + (size_t)n > limit) {
            int e = errno;
            close(fd);
            if (n == 0) {
                *out = (blob){data, size};
                return ORTC_OK;
            }
            free(data);
            return n < 0 ? fail(error, ORTC_IO, "cannot read '%s': %s", path, strerror(e))
                         : fail(error, ORTC_LIMIT, "'%s' has more than the %llu bytes that are read", path,
                                (unsigned long long)limit);
        }
        size += (size_t)n;
    }
}

ortc_status file_write(const char *path, const void *data, size_t bytes, ortc_error *error)
{
    FILE *f = fopen(path, "wb");
    if (!f) return fail(error, ORTC_IO, "cannot write '%s': %s", path, strerror(errno));
    bool good = bytes == 0 || fwrite(data, 1, bytes, f) == bytes;
    good = fclose(f) == 0 && good;
    return good ? ORTC_OK : fail(error, ORTC_IO, "cannot write '%s': %s", path, strerror(errno));
}

int writable_check(const char *option, const char *path)
{
    if (!path) return -1;
    struct stat there;
    int refused = 0;
    if (stat(path, &there) == 0) {
        refused = S_ISDIR(there.st_mode) ? EISDIR : access(path, W_OK) != 0 ? errno : 0;
    } else {
        const char *slash = strrchr(path, '/');
        char *folder = !slash          ? mem_copy(".")
                       : slash == path ? mem_copy("/")
                                       : mem_printf("%.*s", (int)(slash - path), path);
        if (access(folder, W_OK | X_OK) != 0) refused = errno;
        free(folder);
    }
    if (!refused) return -1;
    say_error("%s: cannot write '%s': %s", option, path, strerror(refused));
    return EXIT_RUN;
}

bool has_suffix(const char *text, const char *suffix)
{
    size_t n = strlen(text), m = strlen(suffix);
    return n >= m && strcasecmp(text + n - m, suffix) == 0;
}

double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int exit_code(ortc_status status, stage at)
{
    switch (status) {
    case ORTC_OK: return EXIT_GOOD;
    case ORTC_OUT_OF_MEMORY: return EXIT_MEMORY;
    case ORTC_UNSUPPORTED: return EXIT_UNSUPPORTED;
    case ORTC_CANCELLED:
    case ORTC_DEADLINE: return EXIT_DEADLINE;
    case ORTC_NOT_FOUND: return at == STAGE_LOAD ? EXIT_MODEL : at == STAGE_CREATE ? EXIT_PROVIDER : EXIT_RUN;
    case ORTC_INCOMPATIBLE_PLUGIN: return EXIT_PROVIDER;
    case ORTC_INVALID_ARGUMENT:
        return at == STAGE_CREATE ? EXIT_USAGE : at == STAGE_LOAD ? EXIT_MODEL : EXIT_RUN;
    default: return at == STAGE_LOAD ? EXIT_MODEL : EXIT_RUN;
    }
}
