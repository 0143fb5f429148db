/* tests/providers/coverage.h: which kernels the cases have reached, against which there are. */
#ifndef ORTC_TESTS_COVERAGE_H
#define ORTC_TESTS_COVERAGE_H

#include "case_run.h"

/* Notes that a case ran on a kernel. */
void coverage_note(const node_text *, const run_result *);
/* Prints every kernel entry of `provider`, and every element type of one, that no case has reached; their
 * number. */
size_t coverage_missing(const char *provider, const char *family);

#endif
