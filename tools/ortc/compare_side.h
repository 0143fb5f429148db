/* tools/ortc/compare_side.h: what the files of `ortc compare` share: its options, two values held against
 * each other, and the two sides that make them. */
#ifndef COMPARE_SIDE_H
#define COMPARE_SIDE_H

#include "inputs.h"
#include "session.h"

typedef struct compare_options {
    session_options session;
    input_options input;
    const char *against, *rtol_text, *atol_text, *shrink;
    double rtol, atol;
    bool nodes;
    int64_t top;
} compare_options;

enum { BINS = 34 }; /* equal, then 1, 2, 3..4, 5..8, ... ulp; the last: more, or NaN against a number */

typedef struct difference {
    const char *name, *node, *op;
    int64_t count, wrong;
    double max_abs, max_rel, worst; /* worst: of the error by what is allowed */
    uint64_t max_ulp, bins[BINS];
    char *why; /* type or shape differ, or what is no tensor of numbers does; NULL: numbers */
} difference;

/* Owner of `why`: the caller; free(). */
difference compare_values(const char *name, const ortc_value *a, const ortc_value *b,
                          const compare_options *);

/* A model by some providers, or by onnxruntime in Python. */
typedef struct side {
    const char *path;
    bool other; /* onnxruntime's, which reads the file itself */
    ortc_model *model;
    session_options options;
    ortc_session *session;
    ortc_out *out;
    size_t n_out;
} side;

/* Values that a model makes inside. */
typedef struct value_list {
    size_t count;
    const char **names, **nodes, **ops; /* borrowed from the model */
} value_list;
void value_list_of(ortc_model *, value_list *out);
void value_list_free(value_list *);

/* Runs a side: s->out has the named values then. keep: they are inside the model. -1: good. */
int side_run(side *, const ortc_in *in, size_t n_in, const char *const *names, size_t n, bool keep,
             uint64_t seed);
void side_end(side *); /* values and session; not the model */

/* compare_other.c: the same by onnxruntime, if $ORTC_PYTHON (python3) has it. */
int other_run(const char *path, const ortc_in *in, size_t n_in, const char *const *names, size_t n, bool keep,
              ortc_out *out);

/* shrink.c: writes the smallest part of the model found in which a value differs (`output` does), and beside
 * it, as .npz, the inputs with which it does. -1: good. */
int shrink_model(const char *path, const compare_options *, const side *a, const side *b, const inputs *,
                 const char *output);

#endif
