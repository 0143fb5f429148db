/* graph/onnx/lift.h: what lift.c and compose.c share: one lifting of one node. */
#ifndef ORTC_ONNX_LIFT_H
#define ORTC_ONNX_LIFT_H

#include "import.h"

/* A value that a composition has named. */
typedef struct ortc_named_edge {
    const char *name;
    ortc_edge *edge;
} ortc_named_edge;

struct ortc_lift {
    const ortc_lift_api *api;
    ortc_scope *scope;
    ortc_node *node;
    ortc_node *before; /* what stood before the node, NULL: nothing: what is written comes between */
    ortc_edge *first_out;
    int32_t version;
    ortc_status status; /* the first that was not OK */
    ORTC_ARRAY(ortc_named_edge) names;
};

/* Remembers a status, and gives it. */
ortc_status ortc_lift_note(ortc_lift *, ortc_status);
ortc_status ortc_lift_no_memory(ortc_lift *);
/* A constant edge with a copy of the data; NULL after an error. */
ortc_edge *ortc_lift_constant(ortc_lift *, ortc_dtype, int32_t rank, const int64_t *dims, const void *data);

/* compose.c: the services behind ortc_lift_write, _look, _name and _recast */
ortc_status ortc_lift_compose(ortc_lift *, const char *fmt, va_list);
void ortc_lift_look_at(ortc_lift *, const char *name, ortc_port *out);
ortc_status ortc_lift_name_constant(ortc_lift *, const char *name, ortc_dtype, int32_t rank,
                                    const int64_t *dims, const void *data);
ortc_status ortc_lift_recast_constant(ortc_lift *, const char *name, const char *of, ortc_dtype, int32_t rank,
                                      const int64_t *dims);
/* The composed node goes, or, where it has a shape function, stays with what was written as its body.
 * INTERNAL where nothing makes one of its outputs. */
ortc_status ortc_lift_finish(ortc_lift *);

#endif
