/* kernels/contrib/lift.c: one copy, for all of this family's liftings, of what they call everywhere: the
 * functions of ortc/op.h are inline, and would be there once in every file. */
#include "kernels/contrib/contrib.h"

#undef ortc_lift_write
#undef ortc_lift_fail
#undef ortc_lift_look

bool ortc_given(ortc_lift *l, const char *name) { return ortc_lift_look(l, name).type != NULL; }

bool ortc_wanted(ortc_lift *l, uint32_t out)
{
    return ortc_node_out(ortc_lift_node(l), out).type != NULL || ortc_node_out(ortc_lift_node(l), out).edge;
}

int64_t ortc_lift_int(ortc_lift *l, const char *name, int64_t otherwise)
{
    return ortc_node_int(ortc_lift_node(l), name, otherwise);
}

ortc_port ortc_contrib_look(ortc_lift *l, const char *name) { return ortc_lift_look(l, name); }

ortc_status ortc_contrib_write(ortc_lift *l, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const ortc_status s = ORTC_API_OF(ortc_lift_api, l)->write(l, fmt, args);
    va_end(args);
    return s;
}

ortc_status ortc_contrib_fail(ortc_lift *l, ortc_status s, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    s = ORTC_API_OF(ortc_lift_api, l)->fail(l, s, fmt, args);
    va_end(args);
    return s;
}
