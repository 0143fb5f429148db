/* runtime/execute/values.h: values that are not plain tensors in a run (values.c), for the walk over steps
 * and the kernels' services.
 */
#ifndef ORTC_EXECUTE_VALUES_H
#define ORTC_EXECUTE_VALUES_H

#include "context.h"

/* What a view of this value holds: a tensor's data, another kind's value itself. */
void *ortc_value_address(const ortc_value *);
/* An input of an optional type may be left out, and takes what would be in it as it is: whether that is so,
 * and the optional. */
bool ortc_value_wants_optional(const ortc_type *, const ortc_value *given_or_null);
ortc_status ortc_value_as_optional(const ortc_type *, const ortc_value *given_or_null, ortc_value **out,
                                   ortc_error *);
/* A tensor in host memory, or a container of nothing else. */
bool ortc_value_is_on_host(const ortc_value *);
/* Puts what is in the slots now into the views of a step that reads or makes values (ortc_step.values). */
void ortc_step_bind_values(ortc_context *, const ortc_step *, ortc_step_call *);
/* A copy step of a value: to a slot. */
ortc_status ortc_step_copy_value(ortc_context *, const ortc_step *, ortc_step_call *);
/* Whether a value may be this output of the step's node. */
ortc_status ortc_step_check_given(ortc_step_call *, uint32_t out, const ortc_value *);
/* Whether a step that has run has given all values that were wanted of it. */
ortc_status ortc_step_check_made(ortc_context *, const ortc_step *);
/* Readies a result for the caller, who may write into it: a tensor that others hold too becomes a copy. Fails
 * where the caller gave a value to write into and the result is not a plain tensor. */
ortc_status ortc_slot_for_caller(const ortc_context *, ortc_value **slot, const ortc_out *, ortc_error *);

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
