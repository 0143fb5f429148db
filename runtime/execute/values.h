/* runtime/execute/values.h: values that are not plain tensors in a run (values.c), for the walk over
 * steps.
 */
#ifndef ORTC_EXECUTE_VALUES_H
#define ORTC_EXECUTE_VALUES_H

#include "context.h"
#include "runtime/call/values.h"

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
/* Whether a step that has run has given all values that were wanted of it. */
ortc_status ortc_step_check_made(ortc_context *, const ortc_step *);
/* Readies a result for the caller, who may write into it: a tensor that others hold too becomes a copy. Fails
 * where the caller gave a value to write into and the result is not a plain tensor. */
ortc_status ortc_slot_for_caller(const ortc_context *, ortc_value **slot, const ortc_out *, ortc_error *);

#endif
