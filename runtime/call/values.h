/* runtime/call/values.h: the services of a running kernel over values that are not plain tensors (values.c).
 */
#ifndef ORTC_CALL_VALUES_H
#define ORTC_CALL_VALUES_H

#include "call.h"

/* What a view of this value holds: a tensor's data, another kind's value itself. */
void *ortc_value_content(const ortc_value *);
/* Whether a value may be this output of the step's node. */
ortc_status ortc_step_check_given(ortc_step_call *, uint32_t out, const ortc_value *);

/* Parts of ortc_call_api. */
ortc_status ortc_call_api_keep(ortc_call *, ortc_value *, ortc_value **out);
ortc_status ortc_call_api_strings(ortc_call *, int32_t rank, const int64_t *dims, ortc_value **out);
ortc_status ortc_call_api_append(ortc_call *, ortc_value *strings, const char *bytes, size_t n);
ortc_status ortc_call_api_sequence(ortc_call *, const ortc_type *element, int64_t n,
                                   ortc_value *const *elements, ortc_value **out);
ortc_status ortc_call_api_map(ortc_call *, ortc_value *keys, ortc_value *values, ortc_value **out);
ortc_status ortc_call_api_optional(ortc_call *, const ortc_type *element, ortc_value *element_or_null,
                                   ortc_value **out);
int64_t ortc_call_api_count(ortc_call *, const ortc_value *);
ortc_value *ortc_call_api_element(ortc_call *, const ortc_value *, int64_t i);
const ortc_type *ortc_call_api_type(ortc_call *, const ortc_value *);

#endif
