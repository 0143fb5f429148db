/* tools/ortc/outputs.h: what `run` says about results: statistics, first values, best classes; as text or
 * JSON. */
#ifndef OUTPUTS_H
#define OUTPUTS_H

#include "cli.h"
#include "inputs.h"
#include "json.h"

typedef struct labels {
    size_t count;
    char **items;
} labels;
/* One class a line. Prints its error; -1: go on, else the exit code. */
int labels_read(const char *path, labels *out);
void labels_free(labels *);

typedef struct output_options {
    int64_t topk;         /* 0: none */
    const labels *labels; /* NULL: numbers only */
    const inputs *inputs; /* for the names of a batch's pictures */
} output_options;

/* Quiet: the best classes only. */
void outputs_print(const ortc_out *, size_t count, const output_options *);
void outputs_json(json *, const ortc_out *, size_t count, const output_options *);

#endif
