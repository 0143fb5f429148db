/* graph/ir/schema.h: schemas as they are stored beside their operators (opset.c, schema.c). */
#ifndef ORTC_SCHEMA_H
#define ORTC_SCHEMA_H

#include "graph.h"

typedef struct ortc_parsed_schema {
    ortc_schema schema;
    ortc_arena arena;
} ortc_parsed_schema;

/* `op` is first: a pointer to it is a pointer to its entry. */
typedef struct ortc_op_entry {
    ortc_op op;
    ortc_parsed_schema schema; /* where it is `ready` */
    const char *family;
    struct ortc_op_entry *next; /* of its bucket */
    _Atomic bool ready;
} ortc_op_entry;

/* Parses the strings of ortc_op (op.h describes their grammar) into `out`, which is empty then where it
 * fails. INVALID_ARGUMENT names the operator and the place. */
ortc_status ortc_schema_parse(const ortc_op *, ortc_parsed_schema *out, ortc_error *);

#endif
