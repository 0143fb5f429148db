/* graph/onnx/import_types.c: TypeProto and ValueInfoProto to types, ranks and dims.
 *
 * A dim is a number, a symbol (one scope for the whole model), or neither: an input's becomes a symbol
 * without a name, elsewhere inference will say. A tensor type without a shape has no known rank; an empty
 * shape is a scalar's.
 */
#include "import.h"

static const ortc_type *no_memory(ortc_importer *in)
{
    ortc_no_memory(in->error, sizeof(ortc_type));
    return NULL;
}

/* A container's type over `of`. */
static const ortc_type *container(ortc_importer *in, uint16_t kind, ortc_dtype key, const ortc_type *of)
{
    ortc_type *t = ortc_arena_alloc(&in->root->arena, sizeof *t);
    if (!t) return no_memory(in);
    *t = (ortc_type){kind, 0, key, of};
    return t;
}

/* The wire walk limits how deep types nest. */
ortc_status ortc_import_type(ortc_importer *in, const Onnx__TypeProto *p, const ortc_type **out)
{
    const Onnx__TypeProto *element = NULL;
    const ortc_type *of = NULL;
    ortc_dtype key = 0;
    uint16_t kind;

    *out = NULL;
    if (!p) return ORTC_OK;
    if (p->tensor_type) {
        int32_t d = p->tensor_type->elem_type;
        if (d < 0 || d >= ORTC_DTYPE_COUNT)
            return ortc_fail(in->error, ORTC_INVALID_MODEL, "element type %d is not known", d);
        *out = d ? ortc_tensor_type(d) : NULL;
        return ORTC_OK;
    }
    if (p->sparse_tensor_type || p->opaque_type)
        return ortc_fail(in->error, ORTC_UNSUPPORTED, "values of type %s",
                         p->opaque_type ? "opaque" : "sparse_tensor");
    if (p->sequence_type) {
        kind = ORTC_KIND_SEQUENCE;
        element = p->sequence_type->elem_type;
    } else if (p->optional_type) {
        kind = ORTC_KIND_OPTIONAL;
        element = p->optional_type->elem_type;
    } else if (p->map_type) {
        kind = ORTC_KIND_MAP;
        key = p->map_type->key_type;
        element = p->map_type->value_type;
        if (key <= 0 || key >= ORTC_DTYPE_COUNT)
            return ortc_fail(in->error, ORTC_INVALID_MODEL, "key type %d of a map is not known", key);
    } else {
        return ORTC_OK;
    }
    ORTC_TRY(ortc_import_type(in, element, &of));
    if (!of)
        return ortc_fail(in->error, ORTC_INVALID_MODEL, "the type of a %s does not say of what",
                         kind == ORTC_KIND_SEQUENCE ? "sequence"
                         : kind == ORTC_KIND_MAP    ? "map"
                                                    : "optional");
    *out = container(in, kind, key, of);
    return *out ? ORTC_OK : ORTC_OUT_OF_MEMORY;
}

static ortc_status import_dim(ortc_importer *in, const Onnx__TensorShapeProto__Dimension *p, bool is_input,
                              ortc_dim *out)
{
    /* "?" is what Paddle's exporter calls every extent that it does not know: no two of them are the same */
    if (p->dim_param && *p->dim_param && strcmp(p->dim_param, "?")) {
        return ortc_dims_failed(in->error,
                                ortc_dims_symbol(in->root->dims, &in->root->arena, p->dim_param, out));
    } else if (p->has_dim_value && p->dim_value >= 0) {
        *out = p->dim_value;
        return ORTC_OK;
    } else if (is_input) {
        return ortc_dims_failed(in->error, ortc_dims_fresh(in->root->dims, out));
    } else {
        *out = ORTC_DIM_UNKNOWN;
    }
    return ORTC_OK;
}

static ortc_status import_shape(ortc_importer *in, const Onnx__ValueInfoProto *p, bool is_input, ortc_edge *e)
{
    const Onnx__TensorShapeProto *shape = p->type->tensor_type->shape;
    ortc_dim *dims;

    if (shape->n_dim > ORTC_MAX_RANK)
        return ortc_fail(in->error, ORTC_LIMIT, "%zu dims, at most %d are supported", shape->n_dim,
                         ORTC_MAX_RANK);
    dims = ortc_arena_array(&in->arena, shape->n_dim, sizeof *dims);
    if (!dims) return ortc_no_memory(in->error, shape->n_dim * sizeof *dims);
    for (size_t i = 0; i < shape->n_dim; i++) ORTC_TRY(import_dim(in, shape->dim[i], is_input, &dims[i]));
    if (!ortc_edge_set_shape(e, e->type, (int32_t)shape->n_dim, dims))
        return ortc_no_memory(in->error, shape->n_dim * sizeof *dims);
    return ORTC_OK;
}

ortc_status ortc_import_value_info(ortc_importer *in, const Onnx__ValueInfoProto *p, bool is_input,
                                   ortc_edge *e)
{
    ortc_status status = ortc_import_type(in, p->type, &e->type);

    if (status == ORTC_OK && e->type && p->type->tensor_type && p->type->tensor_type->shape)
        status = import_shape(in, p, is_input, e);
    if (status != ORTC_OK) ortc_error_prefix(in->error, "type of '%s': ", ortc_proto_text(p->name));
    return status;
}
