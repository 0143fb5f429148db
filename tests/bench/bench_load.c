/* tests/bench/bench_load.c: how long opening a model takes, and how much of the file becomes resident.
 *
 * usage: bench_load MODEL.onnx [LOADS]     (default: 9)
 *
 * Prints NAME=NUMBER tokens: load_ms is the median of ortc_model_load, first_ms the first one (both with the
 * file in the page cache), file_resident the part of the file that is resident through our mapping while the
 * model is loaded, resident the growth of the process over the size of the file; the same for protobuf-c
 * alone on the mapped bytes. Each side runs in a child of its own, so that neither counts the other's memory.
 */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "graph/onnx/proto.h"

static int64_t status_kilobytes(const char *field)
{
    char line[256];
    long long kilobytes = 0;
    FILE *f = fopen("/proc/self/status", "r");

    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, field, strlen(field)) == 0) sscanf(line + strlen(field), ": %lld", &kilobytes);
    if (f) fclose(f);
    return kilobytes;
}

/* Resident kilobytes of the mappings of a file. */
static int64_t mapped_kilobytes(const char *path)
{
    char line[4096];
    long long kilobytes, total = 0;
    bool ours = false;
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    FILE *f = fopen("/proc/self/smaps", "r");

    while (f && fgets(line, sizeof line, f)) {
        if (strchr(line, '-') && !strstr(line, " kB"))
            ours = strstr(line, name) != NULL;
        else if (ours && sscanf(line, "Rss: %lld kB", &kilobytes) == 1)
            total += kilobytes;
    }
    if (f) fclose(f);
    return total;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int bench_ortc(const char *path, size_t file_bytes, int n)
{
    double ms[101], share, first;
    ortc_error error = ORTC_ERROR_INIT;
    int64_t before, grown, mapped;
    ortc_model *m;

    ortc_model_release(NULL);
    before = status_kilobytes("VmRSS");
    for (int i = 0; i < n; i++) {
        int64_t begun = ortc_now_ns();
        if (ortc_model_load(path, NULL, &m, &error) != ORTC_OK) {
            fprintf(stderr, "bench_load: %s\n", error.text);
            return 1;
        }
        ms[i] = (double)(ortc_now_ns() - begun) / 1e6;
        if (i + 1 < n) ortc_model_release(m);
    }
    grown = status_kilobytes("VmRSS") - before;
    mapped = mapped_kilobytes(path);
    ortc_model_release(m);
    first = ms[0];
    qsort(ms, (size_t)n, sizeof *ms, by_value);
    share = (double)mapped * 1024 / (double)file_bytes;
    printf("ortc: load_ms=%.2f first_ms=%.2f file_resident=%.4f resident=%.4f resident_mb=%.1f\n", ms[n / 2],
           first, share, (double)grown * 1024 / (double)file_bytes, (double)grown / 1024);
    return 0;
}

static int bench_protobuf(const void *data, size_t bytes)
{
    int64_t before = status_kilobytes("VmRSS"), begun = ortc_now_ns(), grown;
    Onnx__ModelProto *m = onnx__model_proto__unpack(NULL, bytes, data);
    double ms = (double)(ortc_now_ns() - begun) / 1e6;

    if (!m) {
        fprintf(stderr, "bench_load: protobuf-c cannot read it\n");
        return 1;
    }
    grown = status_kilobytes("VmRSS") - before;
    printf("protobuf-c: protobuf_ms=%.1f protobuf_resident=%.4f protobuf_resident_mb=%.1f\n", ms,
           (double)grown * 1024 / (double)bytes, (double)grown / 1024);
    onnx__model_proto__free_unpacked(m, NULL);
    return 0;
}

/* Brings the file into the page cache without mapping it. */
static int warm_up(const char *path)
{
    static char buffer[1 << 20];
    FILE *f = fopen(path, "rb");

    if (!f) {
        perror(path);
        return 1;
    }
    while (fread(buffer, 1, sizeof buffer, f) > 0) continue;
    fclose(f);
    return 0;
}

int main(int argc, char **argv)
{
    int n = argc > 2 ? atoi(argv[2]) : 9, failed = 0, status;
    ortc_error error = ORTC_ERROR_INIT;
    ortc_mapping map;

    if (argc < 2 || n < 1 || n > 101) {
        fprintf(stderr, "usage: bench_load MODEL.onnx [LOADS, 1 to 101]\n");
        return 2;
    }
    if (warm_up(argv[1]) != 0) return 1;
    for (int side = 0; side < 2; side++) {
        pid_t child = fork();
        if (child == 0) {
            int code = 1;
            if (ortc_map_file(argv[1], &map, &error) != ORTC_OK) {
                fprintf(stderr, "bench_load: %s\n", error.text);
            } else if (side == 0) {
                size_t bytes = map.bytes;
                ortc_unmap_file(&map);
                code = bench_ortc(argv[1], bytes, n);
            } else {
                code = bench_protobuf(map.data, map.bytes);
            }
            fflush(stdout);
            _exit(code);
        }
        if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0) failed = 1;
    }
    return failed;
}
