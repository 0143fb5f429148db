/* tests/providers/dump.h: cases as folders in the layout of the standard's suite, for other runtimes to check
 * ref. */
#ifndef ORTC_TESTS_DUMP_H
#define ORTC_TESTS_DUMP_H

#include "case_run.h"

/* DIR/<family>_<number>_<op>/model.onnx and test_data_set_0/input_<i>.pb, output_<i>.pb. */
void dump_case(const char *dir, const char *family, const node_text *, const run_result *);

#endif
