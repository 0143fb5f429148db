/* tests/fuzz/targets.c: see targets.h. Aborts when something is not as it should be. */
#include "targets.h"

#include <stdio.h>

#include "graph/onnx/onnx.h"

/* What loads is run, too: on zeros, where the inputs are small enough, with limits. Any status will do, with
 * a text. */
ortc_status fuzz_run(ortc_model *model) { return fuzz_run_on(model, NULL); }

ortc_status fuzz_run_on(ortc_model *model, const char *providers)
{
    ortc_error error = ORTC_ERROR_INIT;
    ortc_session_options so = ORTC_SESSION_OPTIONS_INIT;
    ortc_session *session;
    ortc_in in[8];
    ortc_out out[8] = {{0}};
    ortc_run_args a = ORTC_RUN_ARGS_INIT;
    const ortc_io *io;
    bool small = true;
    so.max_bytes = 16 << 20;
    so.providers = providers;
    if (ortc_session_create(model, &so, &session, &error) != ORTC_OK) {
        if (error.code == ORTC_INTERNAL || !error.text[0]) {
            fprintf(stderr, "session: %s\n", error.text);
            abort();
        }
        return error.code;
    }
    for (size_t i = 0; (io = ortc_model_input(model, i)) && small; i++) {
        int64_t dims[8], count = 1;
        small = i < ORTC_LENGTH(in) && io->rank >= 0 && io->rank <= 8 && ortc_dtype_bits(io->dtype);
        for (int32_t k = 0; k < io->rank && small; k++) {
            dims[k] = io->dims[k] < 0 ? 2 : io->dims[k];
            small = dims[k] <= 4096 && (count *= dims[k]) <= 1 << 16;
        }
        ortc_value *v = NULL;
        if (small && (io->flags & ORTC_IO_OPTIONAL) == 0 &&
            ortc_value_create(io->dtype, io->rank, dims, &v, NULL) == ORTC_OK) {
            memset(ortc_value_data(v), 0, ortc_value_bytes(v));
            in[a.n_in++] = (ortc_in){io->name, v};
        }
    }
    for (size_t i = 0; (io = ortc_model_output(model, i)) && i < ORTC_LENGTH(out); i++)
        out[a.n_out++].name = io->name;
    a.in = in, a.out = out;
    a.deadline_ns = ortc_now_ns() + 50000000;
    ortc_status status = small ? ortc_run(session, &a, &error) : ORTC_LIMIT;
    if (status == ORTC_INTERNAL || (small && status != ORTC_OK && !error.text[0])) {
        fprintf(stderr, "run: %s\n", error.text);
        abort();
    }
    for (size_t i = 0; i < a.n_in; i++) ortc_value_release(in[i].value);
    for (size_t i = 0; i < a.n_out; i++) ortc_value_release(out[i].value);
    ortc_session_release(session);
    return status;
}

void fuzz_model(const uint8_t *data, size_t bytes)
{
    ortc_error error = ORTC_ERROR_INIT;
    ortc_model *model;
    ortc_status status = ortc_model_load_memory(data, bytes, NULL, &model, &error);

    if (status == ORTC_INTERNAL || (status != ORTC_OK && error.text[0] == 0) ||
        (status == ORTC_OK) != (model != NULL))
        abort();
    if (model) fuzz_run(model);
    ortc_model_release(model);
}

static const ortc_type open_types[] = {
    {ORTC_KIND_TENSOR, 0, 0, NULL},
    {ORTC_KIND_SEQUENCE, 0, 0, NULL},
    {ORTC_KIND_MAP, 0, 0, NULL},
    {ORTC_KIND_OPTIONAL, 0, 0, NULL},
};

void fuzz_value(const uint8_t *data, size_t bytes)
{
    for (size_t i = 0; i < ORTC_LENGTH(open_types); i++) {
        ortc_value *v, *again;
        void *encoded;
        size_t encoded_bytes;
        if (ortc_value_decode(data, bytes, &open_types[i], &v, NULL) != ORTC_OK) continue;
        if (ortc_value_encode(v, NULL, &encoded, &encoded_bytes, NULL) == ORTC_OK) {
            if (ortc_value_decode(encoded, encoded_bytes, ortc_value_type(v), &again, NULL) != ORTC_OK ||
                ortc_value_count(v) != ortc_value_count(again))
                abort();
            ortc_value_release(again);
        }
        free(encoded);
        ortc_value_release(v);
    }
}
