/* tools/ortc/compare_other.c: onnxruntime as a side of `ortc compare`: its Python package runs the model in
 * a process of its own; inputs and results pass as .npz files in a temporary folder. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compare_side.h"
#include "files.h"

extern char **environ;

/* What is inside a model becomes an output; then nothing is optimised, as that would take values away. */
static const char script[] =
    "import sys\n"
    "model, folder, keep, n = sys.argv[1], sys.argv[2], sys.argv[3] == '1', int(sys.argv[4])\n"
    "ins, outs = sys.argv[5:5 + n], sys.argv[5 + n:]\n"
    "try:\n"
    "    import numpy, onnxruntime\n"
    "    if keep: import onnx\n"
    "except ImportError as e:\n"
    "    print(e, file=sys.stderr); sys.exit(5)\n"
    "options = onnxruntime.SessionOptions()\n"
    "options.log_severity_level = 3\n"
    "if keep:\n"
    "    m = onnx.load(model)\n"
    "    have = {o.name for o in m.graph.output}\n"
    "    m.graph.output.extend(onnx.ValueInfoProto(name=x) for x in outs if x not in have)\n"
    "    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL\n"
    "    model = m.SerializeToString()\n"
    "session = onnxruntime.InferenceSession(model, options, providers=['CPUExecutionProvider'])\n"
    "given = numpy.load(folder + '/in.npz')\n"
    "got = session.run(outs, {x: given[f'i{i}'] for i, x in enumerate(ins)})\n"
    "numpy.savez(folder + '/out.npz', **{f'o{i}': x for i, x in enumerate(got)})\n";

static ortc_status write_inputs(const char *path, const ortc_in *in, size_t n, ortc_error *error)
{
    ortc_out *values = mem_alloc(n * sizeof *values);
    for (size_t i = 0; i < n; i++)
        values[i] = (ortc_out){.name = mem_printf("i%zu", i), .value = in[i].value};
    const ortc_status s = values_write(path, values, n, false, error);
    for (size_t i = 0; i < n; i++) free((char *)(uintptr_t)values[i].name);
    free(values);
    return s;
}

static ortc_status read_outputs(const char *path, ortc_out *out, size_t n, ortc_error *error)
{
    npz z;
    ortc_status s = npz_open(path, &z, error);
    for (size_t i = 0; i < n && s == ORTC_OK; i++) {
        char key[24];
        snprintf(key, sizeof key, "o%zu", i);
        const zip_member *m = npz_find(&z, key);
        s = m ? npz_read(&z, m, ORTC_ABSENT, &out[i].value, error)
              : fail(error, ORTC_NOT_FOUND, "output '%s' is no array", out[i].name);
    }
    npz_close(&z);
    return s;
}

/* The process's exit code, -1 when it could not be started. What it says goes to the file. */
static int spawn(char **words, const char *log)
{
    posix_spawn_file_actions_t files;
    pid_t child;
    int status = 0;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, log, O_WRONLY | O_CREAT, 0600);
    const int failed = posix_spawnp(&child, words[0], &files, NULL, words, environ);
    posix_spawn_file_actions_destroy(&files);
    if (failed) return -1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* The last line that is not empty. */
static char *last_line(const char *path)
{
    blob file;
    if (file_read(path, 1 << 20, &file, NULL) != ORTC_OK) return mem_copy("");
    size_t end = file.size;
    while (end && file.data[end - 1] <= ' ') end--;
    size_t start = end;
    while (start && file.data[start - 1] != '\n') start--;
    char *line = mem_printf("%.*s", (int)(end - start), (const char *)file.data + start);
    free(file.data);
    return line;
}

/* The arguments, NULL at the end; free() the first of the last two that are ours. */
static char **command_line(const char *python, const char *path, const char *folder, bool keep,
                           const ortc_in *in, size_t n_in, const char *const *names, size_t n, char *count)
{
    char **words = mem_alloc((n_in + n + 8) * sizeof *words);
    const char *first[] = {python, "-c", script, path, folder, keep ? "1" : "0", count};
    size_t at = 0;
    for (size_t i = 0; i < COUNT_OF(first); i++) words[at++] = (char *)(uintptr_t)first[i];
    for (size_t i = 0; i < n_in; i++) words[at++] = (char *)(uintptr_t)in[i].name;
    for (size_t i = 0; i < n; i++) words[at++] = (char *)(uintptr_t)names[i];
    return words;
}

int other_run(const char *path, const ortc_in *in, size_t n_in, const char *const *names, size_t n, bool keep,
              ortc_out *out)
{
    const char *python = getenv("ORTC_PYTHON"), *place = getenv("TMPDIR");
    char *folder = mem_printf("%s/ortc-XXXXXX", place && *place ? place : "/tmp"), count[24];
    if (!python || !*python) python = "python3";
    if (!mkdtemp(folder)) {
        say_error("onnxruntime: cannot make a folder for its files in '%s': %s", folder, strerror(errno));
        free(folder);
        return EXIT_RUN;
    }
    char *given = mem_printf("%s/in.npz", folder), *got = mem_printf("%s/out.npz", folder),
         *log = mem_printf("%s/log", folder);
    ortc_error e = ORTC_ERROR_INIT;
    ortc_status s = write_inputs(given, in, n_in, &e);
    int code = -1;
    if (s == ORTC_OK) {
        snprintf(count, sizeof count, "%zu", n_in);
        char **words = command_line(python, path, folder, keep, in, n_in, names, n, count);
        const int ended = spawn(words, log);
        free(words);
        char *why = ended ? last_line(log) : NULL;
        if (ended < 0)
            say_error("onnxruntime: cannot start '%s' ($ORTC_PYTHON says which Python)", python);
        else if (ended)
            say_error("onnxruntime: %s", why);
        free(why);
        if (ended) code = ended == 5 || ended < 0 ? EXIT_PROVIDER : EXIT_RUN;
        if (!ended) s = read_outputs(got, out, n, &e);
    }
    if (s != ORTC_OK) {
        say_error("onnxruntime: %s", e.text);
        code = EXIT_RUN;
    }
    unlink(given);
    unlink(got);
    unlink(log);
    rmdir(folder);
    free(given);
    free(got);
    free(log);
    free(folder);
    return code;
}
