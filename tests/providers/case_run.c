/* tests/providers/case_run.c: model from the writer, inputs and outputs in memory that tells of stray writes,
 * one run. */
#include "case_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/common/element.h"

#define CANARY 64
#define CANARY_BYTE 0xa5

/* `bytes` bytes at an address that is `offset` off a multiple of 64, between canaries. */
static unsigned char *guarded(size_t bytes, size_t offset, void **memory)
{
    unsigned char *m = aligned_alloc(64, (CANARY + offset + bytes + CANARY + 63) / 64 * 64);
    if (!m) abort();
    memset(m, CANARY_BYTE, (CANARY + offset + bytes + CANARY + 63) / 64 * 64);
    *memory = m;
    return m + CANARY + offset;
}

static bool intact(const unsigned char *data, size_t bytes, const unsigned char *memory)
{
    for (const unsigned char *p = memory; p < data; p++)
        if (*p != CANARY_BYTE) return false;
    for (size_t i = 0; i < CANARY; i++)
        if (data[bytes + i] != CANARY_BYTE) return false;
    return true;
}

/* Outputs must be aligned to their elements, inputs need not be. */
static size_t offset_of(const run_way *w, ortc_dtype t, bool output)
{
    return w->offset == 0             ? 0
           : w->offset > 0 && !output ? (size_t)w->offset
                                      : ortc_bytes_of(ortc_dtype_bits(t), 1);
}

typedef struct inputs {
    ortc_in in[MAX_PORTS + 1];
    char names[MAX_PORTS][24];
    void *memory[MAX_PORTS];
    unsigned char *data[MAX_PORTS];
    unsigned char yes;
    size_t n;
} inputs;

static void make_inputs(const node_text *n, const run_way *w, inputs *to)
{
    memset(to, 0, sizeof *to);
    for (size_t i = 0; i < n->n_in; i++) {
        const tensor *t = &n->in[i];
        ortc_value *v = NULL;
        if (!t->dtype || t->constant) continue;
        snprintf(to->names[i], sizeof to->names[i], "x%zu", i);
        if (t->elements || t->dtype == ORTC_STRING) {
            v = case_value(t);
        } else {
            to->data[i] = guarded(t->bytes, offset_of(w, t->dtype, false), &to->memory[i]);
            if (t->bytes) memcpy(to->data[i], t->data, t->bytes);
            v = ortc_wrap(to->data[i], t->dtype, t->rank, t->dims);
        }
        to->in[to->n++] = (ortc_in){to->names[i], v};
    }
    if (w->model & MODEL_CHAINED) {
        to->yes = 1;
        to->in[to->n++] = (ortc_in){"yes", ortc_wrap(&to->yes, ORTC_BOOL, 0, NULL)};
    }
}

static bool inputs_intact(const node_text *n, const inputs *from)
{
    for (size_t i = 0; i < n->n_in; i++)
        if (from->memory[i] && (!intact(from->data[i], n->in[i].bytes, from->memory[i]) ||
                                (n->in[i].bytes && memcmp(from->data[i], n->in[i].data, n->in[i].bytes))))
            return false;
    return true;
}

static void inputs_deinit(inputs *from)
{
    for (size_t i = 0; i < from->n; i++) ortc_value_release(from->in[i].value);
    for (size_t i = 0; i < MAX_PORTS; i++) free(from->memory[i]);
}

static int note_placement(void *arg, const ortc_placement *p)
{
    void **both = arg;
    const node_text *n = both[0];
    run_result *r = both[1];
    if (strcmp(p->op, n->op) != 0 || (!strcmp(n->op, "Where") && strcmp(p->node, "node") != 0)) return 0;
    snprintf(r->provider, sizeof r->provider, "%s", p->provider);
    snprintf(r->kernel, sizeof r->kernel, "%s", p->kernel);
    return 0;
}

/* Of several candidates, the one that ran. */
static void note_step(void *arg, const ortc_profile_event *e)
{
    void **both = arg;
    const node_text *n = both[0];
    run_result *r = both[1];
    if (e->kind == ORTC_PROFILE_STEP && strchr(r->kernel, '|') && !strcmp(e->op, n->op))
        snprintf(r->kernel, sizeof r->kernel, "%s", e->kernel);
}

static void run_session(const node_text *n, const run_way *w, const run_result *shapes, ortc_session *session,
                        run_result *r)
{
    ortc_error error = ORTC_ERROR_INIT;
    ortc_out out[MAX_PORTS];
    char names[MAX_PORTS][24];
    unsigned char *data[MAX_PORTS] = {0};
    size_t bytes[MAX_PORTS] = {0};
    inputs in;
    make_inputs(n, w, &in);
    size_t at[MAX_PORTS], n_asked = 0; /* in `out`, of those that are asked for */
    r->n_out = n->n_out;
    for (size_t k = 0; k < n->n_out; k++) {
        if (w->asked && !(w->asked >> k & 1)) continue;
        const size_t i = n_asked++;
        at[i] = k;
        snprintf(names[i], sizeof names[i], "y%zu", k);
        out[i] = (ortc_out){.name = names[i]};
        const ortc_value *like = w->placed ? shapes->out[k] : NULL;
        if (!like || ortc_value_dtype(like) == ORTC_STRING || !ortc_value_dtype(like)) continue;
        const ortc_dtype t = ortc_value_dtype(like);
        bytes[i] = ortc_bytes_of(ortc_dtype_bits(t), ortc_value_count(like));
        data[i] = guarded(bytes[i], offset_of(w, t, true), &r->memory[k]);
        out[i].value = ortc_wrap(data[i], t, ortc_value_rank(like), ortc_value_dims(like));
    }
    ortc_run_args args = ORTC_RUN_ARGS_INIT;
    args.in = in.in;
    args.n_in = in.n;
    args.out = out;
    args.n_out = n_asked;
    const ortc_profiler profiler = {sizeof profiler, 0, (void *[]){(void *)(uintptr_t)n, r}, note_step};
    args.profiler = strchr(r->kernel, '|') ? &profiler : NULL;
    r->status = ortc_run(session, &args, &error);
    snprintf(r->text, sizeof r->text, "%s", error.text);
    for (size_t i = 0; i < n_asked; i++) {
        r->out[at[i]] = out[i].value;
        if (data[i] && !intact(data[i], bytes[i], r->memory[at[i]])) {
            r->status = ORTC_INTERNAL;
            snprintf(r->text, sizeof r->text, "bytes around output %zu were written", at[i]);
        }
    }
    if (!inputs_intact(n, &in)) {
        r->status = ORTC_INTERNAL;
        snprintf(r->text, sizeof r->text, "an input, or bytes around one, were written");
    }
    inputs_deinit(&in);
}

void run_case(const node_text *n, const run_way *w, const run_result *shapes, run_result *r)
{
    ortc_error error = ORTC_ERROR_INIT;
    ortc_model_options model_options = ORTC_MODEL_OPTIONS_INIT;
    ortc_session_options options = ORTC_SESSION_OPTIONS_INIT;
    ortc_model *model = NULL;
    ortc_session *session = NULL;
    writer file = {0};
    ortc_dtype types[MAX_PORTS] = {0};
    memset(r, 0, sizeof *r);
    for (size_t i = 0; shapes && i < n->n_out; i++) types[i] = ortc_value_dtype(shapes->out[i]);
    size_t last = 0;
    while ((w->model & MODEL_CUT) && w->asked >> last) last++;
    write_model(&file, n, w->model, types, last);
    if (!w->passes) model_options.flags |= ORTC_MODEL_NO_PASSES;
    options.providers = w->providers;
    options.threads = w->threads;
    options.choose = &w->choose;
    options.n_choose = w->choose != NULL;
    r->status = ortc_model_load_memory(file.data, file.bytes, &model_options, &model, &error);
    if (r->status == ORTC_OK) r->status = ortc_session_create(model, &options, &session, &error);
    snprintf(r->text, sizeof r->text, "%s", error.text);
    if (r->status == ORTC_OK) {
        ortc_session_placement(session, note_placement, (void *[]){(void *)n, r});
        run_session(n, w, shapes, session, r);
    }
    ortc_session_release(session);
    ortc_model_release(model);
    writer_deinit(&file);
}

void run_result_deinit(run_result *r)
{
    for (size_t i = 0; i < MAX_PORTS; i++) {
        ortc_value_release(r->out[i]);
        free(r->memory[i]);
    }
    memset(r, 0, sizeof *r);
}
