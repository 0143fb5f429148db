/* tests/providers/dump.c: writes a case's model, inputs and ref's outputs. */
#include "dump.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static void write_file(const char *path, const void *data, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, bytes, f) != bytes) fprintf(stderr, "cannot write %s\n", path);
    if (f) fclose(f);
}

static void write_value(const char *path, const ortc_value *v, const char *name)
{
    void *data = NULL;
    size_t bytes = 0;
    if (ortc_value_encode(v, name, &data, &bytes, NULL) == ORTC_OK) write_file(path, data, bytes);
    free(data);
}

void dump_case(const char *dir, const char *family, const node_text *n, const run_result *r)
{
    static unsigned number;
    char folder[512], path[768], name[24];
    writer model = {0};
    size_t given = 0;
    snprintf(folder, sizeof folder, "%s/%s_%04u_%s", dir, family, number++, n->op);
    mkdir(folder, 0777);
    write_model(&model, n, 0, NULL, 0);
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    write_file(path, model.data, model.bytes);
    writer_deinit(&model);
    snprintf(path, sizeof path, "%s/test_data_set_0", folder);
    mkdir(path, 0777);
    for (size_t i = 0; i < n->n_in; i++) {
        const tensor *t = &n->in[i];
        ortc_value *v = NULL;
        if (!t->dtype || t->constant) continue;
        v = case_value(t);
        snprintf(path, sizeof path, "%s/test_data_set_0/input_%zu.pb", folder, given++);
        snprintf(name, sizeof name, "x%zu", i);
        write_value(path, v, name);
        ortc_value_release(v);
    }
    for (size_t i = 0; i < r->n_out; i++) {
        snprintf(path, sizeof path, "%s/test_data_set_0/output_%zu.pb", folder, i);
        snprintf(name, sizeof name, "y%zu", i);
        write_value(path, r->out[i], name);
    }
}
