/* kernels/optional/op.c: Optional, OptionalGetElement, OptionalHasElement. An optional's port carries the
 * shape of the tensor that is in it, where one is.
 */
#include "kernels/common/shape.h"

extern const ortc_kernel_table ortc_kernels_ref_optional;

static ortc_status infer_optional(ortc_infer *c)
{
    const ortc_port p = ortc_infer_in(c, 0);
    const ortc_attr given = ortc_node_attr(ortc_infer_node(c), "type");
    const ortc_type type = {ORTC_KIND_OPTIONAL, 0, 0,
                            p.type                               ? p.type
                            : given.kind == ORTC_ATTR_TYPE_PROTO ? given.u.type
                                                                 : NULL};
    if (!type.of)
        return ortc_node_n_in(ortc_infer_node(c))
                   ? ORTC_OK
                   : ortc_infer_fail(c, ORTC_INVALID_MODEL, "neither an input nor attribute type is given");
    ORTC_TRY(ortc_infer_out_type(c, 0, &type));
    return ortc_infer_out(c, 0, 0, p.type ? p.rank : -1, p.dims);
}

static ortc_status infer_get(ortc_infer *c)
{
    const ortc_port p = ortc_infer_in(c, 0);
    if (!p.type) return ORTC_OK;
    const ortc_type *of = p.type->kind == ORTC_KIND_OPTIONAL ? p.type->of : p.type;
    ORTC_TRY(ortc_infer_out_type(c, 0, of));
    return ortc_infer_out(c, 0, 0, p.rank, p.dims);
}

static ortc_status infer_has(ortc_infer *c) { return ortc_infer_out(c, 0, ORTC_BOOL, 0, NULL); }

static const ortc_op ops[] = {
    ORTC_OP("", "Optional", 28, 15, "15", "input:V?", "output:O", "type:p?", "V=all,seq O=opt",
            infer_optional, NULL, 0),
    ORTC_OP("", "OptionalGetElement", 28, 15, "18 15", "input:O", "output:V", "", "O=opt,all,seq V=all,seq",
            infer_get, NULL, 0),
    ORTC_OP("", "OptionalHasElement", 28, 15, "18 15", "input:O?", "output:B", "", "O=opt,all,seq B=bool",
            infer_has, NULL, 0),
};
ORTC_FAMILY(optional, ops, &ortc_kernels_ref_optional);
