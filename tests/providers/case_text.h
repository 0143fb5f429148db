/* tests/providers/case_text.h: a line of a family's table of cases, read. */
#ifndef ORTC_TESTS_CASE_TEXT_H
#define ORTC_TESTS_CASE_TEXT_H

#include "kernels/common/cases.h"
#include "model_writer.h"
#include "ortc/ortc.h"

/* How many combinations of types a line stands for. */
size_t case_combinations(const ortc_case *);

/* Reads combination `which`; random elements follow from the text alone. false: the text is wrong, said in
 * `error`. Release with node_deinit either way. */
bool case_read(const ortc_case *, size_t which, node_text *, char *error, size_t error_bytes);
void node_deinit(node_text *);
/* An input as a value. A tensor's memory stays the case's. */
ortc_value *case_value(const tensor *);

#endif
