/* base/type.c: types of values: a chain of containers that ends in a tensor (or, for maps, goes on in `of`).
 */
#include "value.h"

const ortc_type *ortc_tensor_type(ortc_dtype dtype)
{
#define T(d) \
    { \
        ORTC_KIND_TENSOR, 0, d, NULL \
    }
    static const ortc_type types[ORTC_DTYPE_COUNT] = {T(0),  T(1),  T(2),  T(3),  T(4),  T(5),  T(6),  T(7),
                                                      T(8),  T(9),  T(10), T(11), T(12), T(13), T(14), T(15),
                                                      T(16), T(17), T(18), T(19), T(20), T(21), T(22), T(23),
                                                      T(24), T(25), T(26), T(27), T(28)};
#undef T
    return dtype > 0 && dtype < ORTC_DTYPE_COUNT ? &types[dtype] : &types[0];
}

bool ortc_type_equal(const ortc_type *a, const ortc_type *b)
{
    for (; a && b; a = a->of, b = b->of) {
        if (a == b) return true;
        if (a->kind != b->kind || a->dtype != b->dtype) return false;
    }
    return a == b;
}

const ortc_type *ortc_type_copy(ortc_arena *arena, const ortc_type *type)
{
    ortc_type *copy;

    if (type->kind == ORTC_KIND_TENSOR) return ortc_tensor_type(type->dtype);
    copy = ortc_arena_copy(arena, type, sizeof *type);
    if (copy && type->of && !(copy->of = ortc_type_copy(arena, type->of))) return NULL;
    return copy;
}

void ortc_text_type(ortc_text *text, const ortc_type *type)
{
    int depth = 0;

    for (; type && type->kind != ORTC_KIND_TENSOR && type->kind != ORTC_KIND_NONE; type = type->of, depth++)
        if (type->kind == ORTC_KIND_MAP)
            ortc_text_add(text, "map(%s,", ortc_dtype_name(type->dtype));
        else
            ortc_text_add(text, "%s(", type->kind == ORTC_KIND_SEQUENCE ? "sequence" : "optional");
    ortc_text_add(text, "%s", type && type->kind == ORTC_KIND_TENSOR ? ortc_dtype_name(type->dtype) : "?");
    while (depth-- > 0) ortc_text_add(text, ")");
}
