/* tests/fuzz/mutants.c: executions of fuzz_plugin or fuzz_command (targets.h), each in a process of its own,
 * on bytes that a seed makes:
 *
 *   mutants plugin|command [--executions N] [--first SEED] [--seconds S] [--keep FOLDER]
 *   mutants plugin|command FILE...        such bytes again, in this process
 *
 * What ends by a signal, a sanitizer's report, a leak or the clock is a finding; it is printed, and its bytes
 * are kept. libFuzzer's twins, which know what code they reach, are fuzz_plugin.c and fuzz_command.c.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "command_files.h"
#include "runtime/registry/registry.h"
#include "targets.h"

enum { HANG_SECONDS = 30, MEMORY = 1 << 30, MOST_TOLD = 20 };

/* Where the sanitizer is there to answer. */
__attribute__((weak)) int __lsan_do_recoverable_leak_check(void);

typedef struct target {
    const char *name;
    void (*run)(const uint8_t *, size_t);
    uint8_t *(*make)(uint64_t seed, size_t *out_bytes);
} target;

/* Small numbers, for most bytes choose from lists. */
static uint8_t *make_plugin(uint64_t seed, size_t *out_bytes)
{
    uint64_t dice = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    uint8_t *b = malloc(1024);
    if (!b) exit(1);
    for (size_t i = 0; i < 1024; i++) {
        dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        b[i] = (uint8_t)(dice >> 33);
    }
    *out_bytes = 1024;
    return b;
}

static const target targets[] = {{"plugin", fuzz_plugin, make_plugin},
                                 {"command", fuzz_command, command_make}};

static void child(const target *t, const uint8_t *data, size_t bytes, int said)
{
    const int nothing = open("/dev/null", O_WRONLY);
    const struct rlimit memory = {MEMORY, MEMORY}, core = {0, 0};
    dup2(nothing, 1);
    dup2(said, 2);
    if (!__lsan_do_recoverable_leak_check) setrlimit(RLIMIT_AS, &memory);
    setrlimit(RLIMIT_CORE, &core);
    alarm(HANG_SECONDS);
    t->run(data, bytes);
    if (__lsan_do_recoverable_leak_check && __lsan_do_recoverable_leak_check()) abort();
    _exit(0);
}

/* Whether it came to a good end. */
static bool survives(const target *t, const uint8_t *data, size_t bytes, int said)
{
    int status = 0;
    if (ftruncate(said, 0) || lseek(said, 0, SEEK_SET)) exit(1);
    const pid_t p = fork();
    if (p < 0) exit(1);
    if (!p) child(t, data, bytes, said);
    if (waitpid(p, &status, 0) != p) exit(1);
    /* memory that there is not ends the command line, with a code of its own */
    return WIFEXITED(status) &&
           (WEXITSTATUS(status) == 0 || (t->run == fuzz_command && WEXITSTATUS(status) == 7));
}

static void tell(const target *t, uint64_t seed, const uint8_t *data, size_t bytes, int said,
                 const char *folder)
{
    char text[4000], path[4096];
    const ssize_t n = pread(said, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = 0;
    printf("FAIL %s %llu\n%s\n", t->name, (unsigned long long)seed, text);
    if (!folder) return;
    snprintf(path, sizeof path, "%s/%s-%llu", folder, t->name, (unsigned long long)seed);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, bytes, f) != bytes || fclose(f)) exit(1);
}

static void replay(const target *t, const char *path)
{
    static uint8_t data[1 << 20];
    FILE *f = fopen(path, "rb");
    if (!f) exit(1);
    const size_t bytes = fread(data, 1, sizeof data, f);
    fclose(f);
    t->run(data, bytes);
}

int main(int argc, char **argv)
{
    const target *t = NULL;
    unsigned long long executions = 1000, first = 0, done = 0, failed = 0;
    double seconds = 1e9;
    char folder[2048] = "";
    for (size_t i = 0; argc > 1 && i < ORTC_LENGTH(targets); i++)
        if (!strcmp(argv[1], targets[i].name)) t = &targets[i];
    if (!t) return fprintf(stderr, "mutants plugin|command ...\n"), 2;
    for (int i = 2; i < argc; i++) {
        const bool more = i + 1 < argc;
        if (more && !strcmp(argv[i], "--executions"))
            executions = strtoull(argv[++i], NULL, 10);
        else if (more && !strcmp(argv[i], "--first"))
            first = strtoull(argv[++i], NULL, 10);
        else if (more && !strcmp(argv[i], "--seconds"))
            seconds = strtod(argv[++i], NULL);
        else if (more && !strcmp(argv[i], "--keep")) {
            if (!realpath(argv[++i], folder)) return fprintf(stderr, "there is no folder '%s'\n", argv[i]), 2;
        } else {
            replay(t, argv[i]);
            executions = 0;
        }
    }
    FILE *said = tmpfile();
    if (!said || ortc_registry_init(NULL) != ORTC_OK) return 1;
    const int64_t begun = ortc_now_ns();
    if (executions && t->run == fuzz_command) command_enter();
    for (; done < executions && (double)(ortc_now_ns() - begun) / 1e9 < seconds; done++) {
        size_t bytes;
        uint8_t *data = t->make(first + done, &bytes);
        fflush(stdout);
        if (!survives(t, data, bytes, fileno(said))) {
            if (failed < MOST_TOLD) tell(t, first + done, data, bytes, fileno(said), *folder ? folder : NULL);
            failed++;
        }
        free(data);
    }
    fclose(said);
    if (done || failed)
        printf("%llu executions of %s, %llu findings, in %.0f s\n%llu passed, %llu failed, 0 skipped\n", done,
               t->name, failed, (double)(ortc_now_ns() - begun) / 1e9, done - failed, failed);
    return failed != 0;
}
