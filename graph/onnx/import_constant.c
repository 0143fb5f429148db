/* graph/onnx/import_constant.c: Constant nodes, which become constants: a tensor, a sparse tensor, or numbers
 * and strings that stand in the attribute itself.
 */
#include "import.h"

/* A tensor made of one attribute's numbers; rank 0 or 1. */
static ortc_status from_numbers(ortc_importer *in, ortc_dtype dtype, int32_t rank, size_t n, const void *data,
                                ortc_constant **out)
{
    int64_t dim = (int64_t)n;
    ortc_tensor_data t = {.dtype = dtype, .rank = rank, .dims = &dim};
    size_t bytes = n * ortc_dtype_bits(dtype) / 8;

    t.bytes = bytes;
    t.data = t.owned = malloc(bytes ? bytes : 1);
    if (!t.owned) return ortc_no_memory(in->error, bytes);
    if (bytes) memcpy(t.owned, data, bytes);
    return ortc_import_constant(in, &t, out);
}

/* Strings, by way of a tensor message. */
static ortc_status from_strings(ortc_importer *in, int32_t rank, size_t n, ProtobufCBinaryData *strings,
                                ortc_constant **out)
{
    Onnx__TensorProto p = ONNX__TENSOR_PROTO__INIT;
    ortc_tensor_data t;
    int64_t dim = (int64_t)n;

    p.data_type = ORTC_STRING;
    p.n_dims = (size_t)rank;
    p.dims = &dim;
    p.n_string_data = n;
    p.string_data = strings;
    ORTC_TRY(ortc_tensor_read(&p, &in->base, &t, in->error));
    return ortc_import_constant(in, &t, out);
}

static ortc_status constant_value(ortc_importer *in, const char *name, const Onnx__AttributeProto *a,
                                  ortc_constant **out)
{
    ortc_tensor_data t;

    if (!strcmp(name, "value") && a->t) {
        ORTC_TRY(ortc_tensor_read(a->t, &in->base, &t, in->error));
        return ortc_import_constant(in, &t, out);
    }
    if (!strcmp(name, "sparse_value") && a->sparse_tensor) {
        ORTC_TRY(ortc_tensor_read_sparse(a->sparse_tensor, &in->base, &t, in->error));
        return ortc_import_constant(in, &t, out);
    }
    if (!strcmp(name, "value_float")) return from_numbers(in, ORTC_F32, 0, 1, &a->f, out);
    if (!strcmp(name, "value_floats")) return from_numbers(in, ORTC_F32, 1, a->n_floats, a->floats, out);
    if (!strcmp(name, "value_int")) return from_numbers(in, ORTC_I64, 0, 1, &a->i, out);
    if (!strcmp(name, "value_ints")) return from_numbers(in, ORTC_I64, 1, a->n_ints, a->ints, out);
    if (!strcmp(name, "value_string"))
        return from_strings(in, 0, 1, (ProtobufCBinaryData *)(uintptr_t)&a->s, out);
    if (!strcmp(name, "value_strings")) return from_strings(in, 1, a->n_strings, a->strings, out);
    return ortc_fail(in->error, ORTC_INVALID_MODEL, "attribute '%s' gives no constant", name);
}

ortc_status ortc_import_constant_node(ortc_scope *s, const Onnx__NodeProto *p)
{
    ortc_constant *c = NULL;
    ortc_edge *e;

    for (size_t i = 0; i < p->n_attribute; i++) {
        ortc_scope *where;
        const Onnx__AttributeProto *a = ortc_import_resolve(s, p->attribute[i], &where);
        if (!a) continue;
        if (c) {
            ortc_constant_release(c);
            return ortc_fail(s->in->error, ORTC_INVALID_MODEL, "a constant with more than one value");
        }
        ORTC_TRY(constant_value(s->in, ortc_proto_text(p->attribute[i]->name), a, &c));
    }
    if (!c || p->n_output != 1 || !*p->output[0]) {
        ortc_constant_release(c);
        return ortc_fail(s->in->error, ORTC_INVALID_MODEL, "a constant needs one value and one output");
    }
    ortc_status status = ortc_scope_define(s, p->output[0], &e);
    if (status != ORTC_OK) {
        ortc_constant_release(c);
        return status;
    }
    ortc_edge_set_constant(e, c);
    return ORTC_OK;
}
