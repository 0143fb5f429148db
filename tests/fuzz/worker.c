/* tests/fuzz/worker.c: runs models that somebody else makes: requests on standard input, answers on standard
 * output, so that one process serves thousands of graphs and its end by a signal is an answer, too.
 *
 *   worker [--plugin PATH]
 *
 * Numbers are little-endian u32, a block is its length and its bytes. A request:
 *   'R' model, n inputs {name, kind, TensorProto}, n outputs {name}, n configurations {providers, model
 *       flags, session flags}
 * answered, for each configuration, by {status, text, n outputs {kind, TensorProto}}; every configuration
 * runs the model twice, and a second result that is not the first is status SECOND.
 *   'H' model, seed: tries it as untrusted bytes (targets.c): {status of the loading, text}. Oracles abort.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "targets.h"
#include "base/base.h"
#include "ortc/ortc.h"

enum { MAX_ENDS = 256, SECOND = 1000, HANG_SECONDS = 100 };

typedef struct block {
    uint8_t *data;
    uint32_t bytes;
} block;

static void get(void *to, size_t bytes)
{
    if (bytes && fread(to, 1, bytes, stdin) != bytes) exit(0); /* whoever asked has gone */
}
static uint32_t get_number(void)
{
    uint32_t v;
    get(&v, sizeof v);
    return v;
}
static block get_block(void)
{
    block b = {NULL, get_number()};
    b.data = malloc((size_t)b.bytes + 1);
    if (!b.data) exit(1);
    get(b.data, b.bytes);
    b.data[b.bytes] = 0;
    return b;
}
static void put_number(uint32_t v) { fwrite(&v, sizeof v, 1, stdout); }
static void put_block(const void *data, size_t bytes)
{
    put_number((uint32_t)bytes);
    if (bytes) fwrite(data, 1, bytes, stdout);
}
static void put_failure(ortc_status status, const char *text)
{
    put_number((uint32_t)status);
    put_block(text, strlen(text));
}

/* ---- A graph on several configurations ----------------------------------------------------------------- */

typedef struct request {
    block model;
    uint32_t n_in, n_out;
    block in_names[MAX_ENDS], out_names[MAX_ENDS];
    ortc_in in[MAX_ENDS];
} request;

static void read_request(request *r)
{
    r->model = get_block();
    r->n_in = get_number();
    if (r->n_in > MAX_ENDS) exit(1);
    for (uint32_t i = 0; i < r->n_in; i++) {
        static const ortc_type tensor = {ORTC_KIND_TENSOR, 0, 0, NULL};
        ortc_error e = ORTC_ERROR_INIT;
        r->in_names[i] = get_block();
        block data = get_block();
        r->in[i].name = (const char *)r->in_names[i].data;
        if (ortc_value_decode(data.data, data.bytes, &tensor, &r->in[i].value, &e) != ORTC_OK) {
            fprintf(stderr, "input %s: %s\n", r->in[i].name, e.text);
            exit(1);
        }
        free(data.data);
    }
    r->n_out = get_number();
    if (r->n_out > MAX_ENDS) exit(1);
    for (uint32_t i = 0; i < r->n_out; i++) r->out_names[i] = get_block();
}

static void free_request(request *r)
{
    free(r->model.data);
    for (uint32_t i = 0; i < r->n_in; i++) free(r->in_names[i].data), ortc_value_release(r->in[i].value);
    for (uint32_t i = 0; i < r->n_out; i++) free(r->out_names[i].data);
}

static ortc_status run_once(ortc_session *s, const request *r, ortc_out *out, ortc_error *e)
{
    ortc_run_args a = ORTC_RUN_ARGS_INIT;
    for (uint32_t i = 0; i < r->n_out; i++)
        out[i] = (ortc_out){(const char *)r->out_names[i].data, NULL, 0, 0};
    a.in = r->in, a.n_in = r->n_in, a.out = out, a.n_out = r->n_out;
    a.deadline_ns = ortc_now_ns() + INT64_C(20000000000);
    return ortc_run(s, &a, e);
}

static bool equal_bits(const ortc_value *a, const ortc_value *b)
{
    if (ortc_value_bytes(a) != ortc_value_bytes(b) || ortc_value_count(a) != ortc_value_count(b))
        return false;
    return !ortc_value_host(a) || !memcmp(ortc_value_host(a), ortc_value_host(b), ortc_value_bytes(a));
}

static void put_results(const request *r, ortc_out *out)
{
    put_number(ORTC_OK);
    put_block("", 0);
    for (uint32_t i = 0; i < r->n_out; i++) {
        void *data = NULL;
        size_t bytes = 0;
        if (ortc_value_encode(out[i].value, NULL, &data, &bytes, NULL) != ORTC_OK) exit(1);
        put_block(data, bytes);
        free(data);
    }
}

static void run_configuration(const request *r, const char *providers, uint32_t model_flags,
                              uint32_t session_flags)
{
    ortc_error e = ORTC_ERROR_INIT;
    ortc_model *model = NULL;
    ortc_session *session = NULL;
    ortc_out out[MAX_ENDS], again[MAX_ENDS];
    ortc_model_options mo = ORTC_MODEL_OPTIONS_INIT;
    ortc_session_options so = ORTC_SESSION_OPTIONS_INIT;
    mo.flags = model_flags;
    so.flags = session_flags;
    so.providers = providers;
    ortc_status s = ortc_model_load_memory(r->model.data, r->model.bytes, &mo, &model, &e);
    if (s == ORTC_OK) s = ortc_session_create(model, &so, &session, &e);
    if (s == ORTC_OK) s = run_once(session, r, out, &e);
    if (s == ORTC_OK) {
        s = run_once(session, r, again, &e);
        bool same = s == ORTC_OK;
        for (uint32_t i = 0; i < r->n_out && s == ORTC_OK; i++) {
            same &= equal_bits(out[i].value, again[i].value);
            ortc_value_release(again[i].value);
        }
        if (same)
            put_results(r, out);
        else
            put_failure(s == ORTC_OK ? SECOND : s, s == ORTC_OK ? "the second run differs" : e.text);
        for (uint32_t i = 0; i < r->n_out; i++) ortc_value_release(out[i].value);
    } else
        put_failure(s, e.text);
    ortc_session_release(session);
    ortc_model_release(model);
}

static void run_graph(void)
{
    static request r;
    read_request(&r);
    for (uint32_t n = get_number(); n; n--) {
        block providers = get_block();
        uint32_t model_flags = get_number(), session_flags = get_number();
        run_configuration(&r, (const char *)providers.data, model_flags, session_flags);
        free(providers.data);
    }
    free_request(&r);
}

static void try_bytes(void)
{
    block model = get_block();
    uint32_t seed = get_number();
    char text[1024] = "";
    ortc_status s = fuzz_untrusted(model.data, model.bytes, seed, text, sizeof text);
    put_failure(s, text);
    free(model.data);
}

int main(int argc, char **argv)
{
    ortc_error e = ORTC_ERROR_INIT;
    if (argc == 3 && !strcmp(argv[1], "--plugin") && ortc_plugin_load(argv[2], &e) != ORTC_OK) {
        fprintf(stderr, "%s: %s\n", argv[2], e.text);
        return 2;
    }
    for (;;) {
        char what;
        get(&what, 1);
        alarm(HANG_SECONDS); /* what hangs ends by SIGALRM, and is found */
        if (what == 'R')
            run_graph();
        else
            try_bytes();
        fflush(stdout);
        alarm(0);
    }
}
