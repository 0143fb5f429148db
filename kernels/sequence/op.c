/* kernels/sequence/op.c: sequences of tensors: schemas, and what can be said of their elements.
 *
 * A sequence's port carries the shape that every element has, where that is provable; SequenceAt then has a
 * known shape, and does not end a segment. An unknown extent says nothing about a sequence (its elements may
 * differ), so it is all or none.
 */
#include "kernels/common/shape.h"

extern const ortc_kernel_table ortc_kernels_ref_sequence;

#define MAX_OUTPUTS 64 /* of SequenceMap, whose types are looked at */

/* Output `out` is a sequence of elements like `p`. */
static ortc_status out_sequence(ortc_infer *c, uint32_t out, const ortc_port *p, int with_shape)
{
    if (!p->type || p->type->kind != ORTC_KIND_TENSOR) return ORTC_OK;
    const ortc_type type = {ORTC_KIND_SEQUENCE, 0, 0, p->type};
    ORTC_TRY(ortc_infer_out_type(c, out, &type));
    for (int32_t d = 0; with_shape && d < p->rank; d++)
        if (p->dims[d] == ORTC_DIM_UNKNOWN) with_shape = 0;
    return with_shape && p->rank >= 0 ? ortc_infer_out(c, out, 0, p->rank, p->dims) : ORTC_OK;
}

static int same_shape(const ortc_port *a, const ortc_port *b)
{
    int same = a->rank >= 0 && a->rank == b->rank;
    for (int32_t d = 0; same && d < a->rank; d++)
        same = a->dims[d] == b->dims[d] && a->dims[d] != ORTC_DIM_UNKNOWN;
    return same;
}

/* The type of a sequence's elements; NULL: not known. */
static const ortc_type *element_of(const ortc_port *p)
{
    return p->type && p->type->kind == ORTC_KIND_SEQUENCE ? p->type->of : NULL;
}

static ortc_status infer_empty(ortc_infer *c)
{
    const int64_t t = ortc_node_int(ortc_infer_node(c), "dtype", ORTC_F32);
    if (t <= 0 || t >= ORTC_DTYPE_COUNT)
        return ortc_infer_fail(c, ORTC_INVALID_MODEL, "attribute dtype is %lld, which is no element type",
                               (long long)t);
    const ortc_type element = {ORTC_KIND_TENSOR, 0, (ortc_dtype)t, NULL};
    return out_sequence(c, 0, &(ortc_port){.type = &element, .rank = -1}, 0);
}

static ortc_status infer_construct(ortc_infer *c)
{
    const ortc_port first = ortc_infer_in(c, 0);
    int same = 1;
    for (uint32_t i = 1; i < ortc_node_n_in(ortc_infer_node(c)); i++) {
        const ortc_port p = ortc_infer_in(c, i);
        same &= same_shape(&first, &p);
    }
    return out_sequence(c, 0, &first, same);
}

static ortc_status infer_at(ortc_infer *c)
{
    const ortc_port s = ortc_infer_in(c, 0);
    const ortc_type *t = element_of(&s);
    return t && t->kind == ORTC_KIND_TENSOR ? ortc_infer_out(c, 0, t->dtype, s.rank, s.dims) : ORTC_OK;
}

static ortc_status infer_insert(ortc_infer *c)
{
    const ortc_port s = ortc_infer_in(c, 0), x = ortc_infer_in(c, 1);
    const ortc_type *t = element_of(&s);
    if (t && x.dtype && t->dtype != x.dtype)
        return ortc_infer_fail(c, ORTC_TYPE_MISMATCH, "the tensor is %s, the sequence holds %s",
                               ortc_dtype_name(x.dtype), ortc_dtype_name(t->dtype));
    if (t) ORTC_TRY(ortc_infer_out_type(c, 0, s.type));
    return t && same_shape(&s, &x) ? ortc_infer_out(c, 0, 0, s.rank, s.dims)
           : t                     ? ORTC_OK
                                   : out_sequence(c, 0, &x, 0);
}

static ortc_status infer_erase(ortc_infer *c) { return ortc_infer_like(c, 0, 0); }
static ortc_status infer_length(ortc_infer *c) { return ortc_infer_out(c, 0, ORTC_I64, 0, NULL); }

static ortc_status infer_split(ortc_infer *c)
{
    const ortc_node *n = ortc_infer_node(c);
    const ortc_port x = ortc_infer_in(c, 0), split = ortc_infer_in(c, 1);
    ortc_dim dims[ORTC_RANK_LIMIT];
    int32_t axis = 0, rank = 0;
    int64_t count = 0;
    if (x.rank < 0) return out_sequence(c, 0, &x, 0);
    ORTC_TRY(ortc_infer_axis(c, ortc_node_int(n, "axis", 0), x.rank, &axis));
    const ortc_dim *parts = split.type ? ortc_infer_vector(c, 1, &count) : NULL;
    const int keep = split.type || ortc_node_int(n, "keepdims", 1);
    int known = !split.type || (parts && count > 0);
    for (int64_t i = 1; known && i < count; i++) known = parts[i] == parts[0];
    if (known && split.type && split.rank == 0) /* pieces of that many, the last the rest */
        known = x.dims[axis] >= 0 && parts[0] > 0 && x.dims[axis] % parts[0] == 0;
    for (int32_t d = 0; d < x.rank; d++)
        if (d != axis || keep) dims[rank++] = d != axis ? x.dims[d] : split.type && known ? parts[0] : 1;
    ortc_port element = x;
    element.rank = rank;
    element.dims = dims;
    return out_sequence(c, 0, &element, known);
}

static ortc_status infer_concat(ortc_infer *c)
{
    const ortc_node *n = ortc_infer_node(c);
    const ortc_port s = ortc_infer_in(c, 0);
    const ortc_type *t = element_of(&s);
    const int64_t added = ortc_node_int(n, "new_axis", 0) != 0, rank = s.rank + added;
    ortc_dim dims[ORTC_RANK_LIMIT + 1];
    int32_t axis = 0;
    if (!t) return ORTC_OK;
    if (s.rank < 0 || rank > ORTC_RANK_LIMIT) return ortc_infer_out(c, 0, t->dtype, -1, NULL);
    ORTC_TRY(ortc_infer_axis(c, ortc_node_int(n, "axis", 0), rank, &axis));
    for (int32_t d = 0, from = 0; d < rank; d++) {
        dims[d] = d == axis ? ORTC_DIM_UNKNOWN : s.dims[from];
        from += !(d == axis && added);
    }
    return ortc_infer_out(c, 0, t->dtype, (int32_t)rank, dims);
}

static ortc_status infer_map(ortc_infer *c)
{
    const ortc_node *n = ortc_infer_node(c);
    const ortc_attr body = ortc_node_attr(n, "body");
    const uint32_t n_in = ortc_node_n_in(n) < MAX_OUTPUTS ? ortc_node_n_in(n) : MAX_OUTPUTS;
    const uint32_t n_out = ortc_node_n_out(n) < MAX_OUTPUTS ? ortc_node_n_out(n) : MAX_OUTPUTS;
    ortc_port in[MAX_OUTPUTS] = {{0}}, out[MAX_OUTPUTS];
    if (body.kind != ORTC_ATTR_GRAPH) return ORTC_OK;
    for (uint32_t i = 0; i < n_in; i++) {
        in[i] = ortc_infer_in(c, i);
        const ortc_type *t = element_of(&in[i]);
        in[i].type = t ? t : in[i].type;
        in[i].dtype = t ? t->dtype : in[i].dtype;
    }
    ORTC_TRY(ortc_infer_body(c, body.u.graphs[0], n_in, in, n_out, out));
    for (uint32_t i = 0; i < n_out; i++) ORTC_TRY(out_sequence(c, i, &out[i], 0));
    return ORTC_OK;
}

#define PLAIN "num,bool,string,c64,c128"

static const ortc_op ops[] = {
    ORTC_OP("", "SequenceEmpty", 11, 11, "", "", "output:S", "dtype:i=1", "S=seq", infer_empty, NULL, 0),
    ORTC_OP("", "SequenceConstruct", 11, 11, "", "inputs:T+", "output_sequence:S", "", "T=" PLAIN " S=seq",
            infer_construct, NULL, 0),
    ORTC_OP("", "SequenceAt", 11, 11, "", "input_sequence:S position:I", "tensor:T", "",
            "S=seq T=" PLAIN " I=i32,i64", infer_at, NULL, 0),
    ORTC_OP("", "SequenceInsert", 11, 11, "", "input_sequence:S tensor:T position:I?", "output_sequence:S",
            "", "T=" PLAIN " S=seq I=i32,i64", infer_insert, NULL, 0),
    ORTC_OP("", "SequenceErase", 11, 11, "", "input_sequence:S position:I?", "output_sequence:S", "",
            "S=seq I=i32,i64", infer_erase, NULL, 0),
    ORTC_OP("", "SequenceLength", 11, 11, "", "input_sequence:S", "length:I", "", "S=seq I=i64", infer_length,
            NULL, 0),
    ORTC_OP("", "SplitToSequence", 24, 11, "11", "input:T split:I?", "output_sequence:S",
            "axis:i=0 keepdims:i=1", "T=" PLAIN " I=i32,i64 S=seq", infer_split, NULL, 0),
    ORTC_OP("", "ConcatFromSequence", 11, 11, "", "input_sequence:S", "concat_result:T",
            "axis:i! new_axis:i=0", "S=seq T=" PLAIN, infer_concat, NULL, 0),
    ORTC_OP("", "SequenceMap", 17, 17, "", "input_sequence:S additional_inputs:V*~", "out_sequence:S+~",
            "body:g!", "S=seq V=" PLAIN ",seq", infer_map, NULL, ORTC_OP_CONTROL),
};
ORTC_FAMILY(sequence, ops, &ortc_kernels_ref_sequence);
