/* graph/onnx/export_types.c: types, shapes and tensors without their elements, as messages.
 *
 * A dim is written as a number or a symbol's name. Expressions and symbols without a name have no form in the
 * standard: such a dim is written without a value, and whoever loads the file infers it anew.
 */
#include "export.h"

enum {
    TYPE_TENSOR = 1,
    TYPE_SEQUENCE = 4,
    TYPE_MAP = 5,
    TYPE_OPTIONAL = 9, /* TypeProto */
    TENSOR_ELEMENT = 1,
    TENSOR_SHAPE = 2,
    SHAPE_DIM = 1,
    DIM_VALUE = 1,
    DIM_NAME = 2,
    CONTAINER_ELEMENT = 1,
    MAP_KEY = 1,
    MAP_VALUE = 2,
    INFO_NAME = 1,
    INFO_TYPE = 2,
    INFO_DOC = 3 /* ValueInfoProto */
};

static void export_shape(const ortc_edge *e, ortc_message *to)
{
    const ortc_dims *dims = e->graph->dims;
    ortc_message shape = {0};

    for (int32_t i = 0; i < e->rank; i++) {
        ortc_dim d = e->dims[i];
        ortc_message dim = {0};
        if (ortc_dim_is_number(d)) {
            ortc_message_int(&dim, DIM_VALUE, d);
        } else if (d != ORTC_DIM_UNKNOWN) {
            const ortc_dim_expr *x = &dims->exprs.data[ORTC_DIM_NUMBERS - 1 - d];
            if (x->what == 0) ortc_message_text(&dim, DIM_NAME, dims->symbols.data[x->symbol]);
        }
        ortc_message_take(&shape, SHAPE_DIM, &dim);
    }
    ortc_message_take(to, TENSOR_SHAPE, &shape);
}

/* Types nest to ORTC_WIRE_MAX_TYPE_DEPTH at most. */
void ortc_export_type(ortc_exporter *x, const ortc_type *t, const ortc_edge *shape, ortc_message *to)
{
    ortc_message inner = {0}, of = {0};

    if (t->kind == ORTC_KIND_TENSOR) {
        x->dtypes |= UINT64_C(1) << t->dtype;
        ortc_message_int(&inner, TENSOR_ELEMENT, t->dtype);
        if (shape && shape->rank >= 0) export_shape(shape, &inner);
        ortc_message_take(to, TYPE_TENSOR, &inner);
        return;
    }
    ortc_export_type(x, t->of, NULL, &of);
    if (t->kind == ORTC_KIND_MAP) ortc_message_int(&inner, MAP_KEY, t->dtype);
    ortc_message_take(&inner, t->kind == ORTC_KIND_MAP ? MAP_VALUE : CONTAINER_ELEMENT, &of);
    ortc_message_take(to,
                      t->kind == ORTC_KIND_MAP        ? TYPE_MAP
                      : t->kind == ORTC_KIND_SEQUENCE ? TYPE_SEQUENCE
                                                      : TYPE_OPTIONAL,
                      &inner);
}

void ortc_export_value_info(ortc_exporter *x, const char *name, const char *doc, const ortc_edge *e,
                            ortc_message *to)
{
    ortc_message type = {0};

    ortc_message_text(to, INFO_NAME, name);
    if (e->type) {
        ortc_export_type(x, e->type, e, &type);
        ortc_message_take(to, INFO_TYPE, &type);
    }
    ortc_message_text(to, INFO_DOC, doc);
}

void ortc_export_tensor(ortc_exporter *x, const char *name, ortc_dtype dtype, int32_t rank,
                        const int64_t *dims, const ortc_strings *strings, ortc_message *to)
{
    x->dtypes |= UINT64_C(1) << dtype;
    for (int32_t i = 0; i < rank; i++) ortc_message_int(to, ORTC_TENSOR_DIMS, dims[i]);
    ortc_message_int(to, ORTC_TENSOR_DTYPE, dtype);
    for (int64_t i = 0; dtype == ORTC_STRING && strings && i < strings->count; i++) {
        int64_t length;
        const char *s = ortc_string_at(strings, i, &length);
        ortc_message_bytes(to, ORTC_TENSOR_STRING, s, (size_t)length);
    }
    ortc_message_text(to, ORTC_TENSOR_NAME, name);
}
