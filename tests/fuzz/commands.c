/* tests/fuzz/commands.c: the command line at work on files and options that bytes say (targets.h,
 * command_files.h): its own commands, called in this process, in a folder that is made for it. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command_files.h"
#include "targets.h"
#include "tools/ortc/args.h"
#include "tools/ortc/bench.h"
#include "tools/ortc/cli.h"
#include "tools/ortc/term.h"

/* What completion and manual pages are made of; no call here asks for them. */
const cli_command cli_commands[] = {{0}};
const char *const cli_conventions = "";

static int command_saved(int argc, char **argv)
{
    saved old;
    ortc_error e = ORTC_ERROR_INIT;
    (void)argc;
    return saved_read(argv[1], &old, &e) == ORTC_OK ? EXIT_GOOD : EXIT_USAGE;
}

static const struct {
    int (*command)(int, char **);
    int kind;
    const char *file, *words; /* where the file is put; the call, without what the bytes add */
} calls[] = {
    {command_run, FILE_NPY, "f.npy", "run m.onnx -i zeros -i x=f.npy"},
    {command_run, FILE_NPY, "f.npy", "run m.onnx -i zeros -i k=f.npy --cast"},
    {command_run, FILE_NPY, "f.npy", "run m.onnx -i zeros -i s=f.npy --json"},
    {command_run, FILE_NPZ, "f.npz", "run m.onnx -i zeros -i f.npz"},
    {command_run, FILE_NPZ, "f.npz", "run m.onnx -i zeros -i x=f.npz:k -o o.npz"},
    {command_run, FILE_NPY, "f.npy", "run w.onnx -i zeros -i a=f.npy -o o.npz"},
    {command_run, FILE_NPY, "f.npy", "run w.onnx -i zeros -i b=f.npy -i c=f.npy"},
    {command_run, FILE_PB, "f.pb", "run m.onnx -i zeros -i x=f.pb"},
    {command_run, FILE_SEQUENCE, "f.pb", "run q.onnx -i q=f.pb"},
    {command_run, FILE_NONE, "f", "run m.onnx -i rand -i s=zeros"},
    {command_run, FILE_NONE, "f", "run m.onnx"},
    {command_convert, FILE_NPZ, "f.npz", "convert f.npz o.npz"},
    {command_convert, FILE_NPY, "f.npy", "convert f.npy o.pb"},
    {command_convert, FILE_PB, "f.pb", "convert f.pb o.npy"},
    {command_test, FILE_TOLERANCE, "case/tolerance.json", "test case"},
    {command_test, FILE_PB, "case/test_data_set_0/input_0.pb", "test case"},
    {command_test, FILE_SKIPS, "f", "test case --skip-list f"},
    {command_saved, FILE_BENCH, "f", "bench f"},
    {command_run, FILE_LABELS, "f", "run m.onnx -i zeros --topk 2 --labels f"},
};

int command_file_kind(uint8_t call) { return calls[call % COUNT_OF(calls)].kind; }

static void save(const char *path, const void *data, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, bytes, f) != bytes || fclose(f)) exit(1);
}

static void save_model(char which)
{
    size_t bytes;
    uint8_t *data = command_model(which, &bytes);
    save((char[]){which, '.', 'o', 'n', 'n', 'x', 0}, data, bytes);
    free(data);
}

static char folder[64];
static pid_t owner;

static void empty(const char *path)
{
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));)
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..")) unlinkat(dirfd(d), e->d_name, 0);
    if (d) closedir(d);
}

static void leave(void)
{
    if (getpid() != owner || chdir(folder)) return;
    empty("case/test_data_set_0");
    rmdir("case/test_data_set_0");
    empty("case");
    rmdir("case");
    empty(".");
    if (rmdir(folder)) fprintf(stderr, "%s stays\n", folder);
}

void command_enter(void)
{
    if (folder[0]) return;
    snprintf(folder, sizeof folder, "%s/ortc-commands-XXXXXX",
             access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    if (!mkdtemp(folder) || chdir(folder)) exit(1);
    owner = getpid();
    atexit(leave);
    save_model('m');
    save_model('w');
    save_model('q');
    mkdir("case", 0700);
    mkdir("case/test_data_set_0", 0700);
}

/* A case that passes: Neg of a tensor that is in the file, but for what the bytes put there. */
static void save_case(void)
{
    size_t bytes;
    uint8_t *data = command_tensor(&bytes);
    save_model('m');
    if (rename("m.onnx", "case/model.onnx")) exit(1);
    save_model('m');
    save("case/test_data_set_0/input_0.pb", data, bytes);
    save("case/test_data_set_0/output_0.pb", data, bytes);
    free(data);
    unlink("case/tolerance.json");
}

void fuzz_command(const uint8_t *data, size_t bytes)
{
    if (bytes < 2) return;
    const size_t call = data[0] % COUNT_OF(calls), n_words = data[1] < bytes - 2 ? data[1] : bytes - 2;
    char words[512], *argv[300];
    int argc = 0;
    command_enter();
    if (calls[call].command == command_test) save_case();
    save(calls[call].file, data + 2 + n_words, bytes - 2 - n_words);
    size_t length = (size_t)snprintf(words, 200, "%s", calls[call].words) + 1;
    for (char *c = words; *c; c++) *c = *c == ' ' ? '\n' : *c;
    words[length - 1] = '\n';
    for (size_t i = 0; i < n_words; i++) /* nothing outside this folder */
        words[length++] = (char)(data[2 + i] == '/' || !data[2 + i] ? '_' : data[2 + i]);
    words[length] = 0;
    for (char *word = words, *end; *word && argc < (int)COUNT_OF(argv) - 1; word = end + 1) {
        end = strchr(word, '\n');
        if (!end) end = word + strlen(word);
        argv[argc++] = word;
        if (!*end) break;
        *end = 0;
    }
    argv[argc] = NULL;
    cli = (struct cli_state){.command = ""};
    args_help = false;
    args_color = TERM_AUTO;
    const int code = calls[call].command(argc, argv);
    fflush(stdout);
    if (code < EXIT_GOOD || code > EXIT_DEADLINE) {
        fprintf(stderr, "exit code %d\n", code);
        abort();
    }
}
