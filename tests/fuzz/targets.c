/* tests/fuzz/targets.c: see targets.h. Aborts when something is not as it should be. */
#include "targets.h"

#include "graph/onnx/onnx.h"

void fuzz_model(const uint8_t *data, size_t bytes)
{
    ortc_error error = ORTC_ERROR_INIT;
    ortc_model *model;
    ortc_status status = ortc_model_load_memory(data, bytes, NULL, &model, &error);

    if (status == ORTC_INTERNAL || (status != ORTC_OK && error.text[0] == 0) || (status == ORTC_OK) != (model != NULL))
        abort();
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
        if (ortc_value_decode(data, bytes, &open_types[i], &v, NULL) != ORTC_OK)
            continue;
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
