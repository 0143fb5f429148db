/* kernels/sequence/cases.c: cases for sequences of tensors. SequenceMap holds a graph: tests/python/test_values.py has its cases. */
#include "kernels/common/cases.h"

const ortc_case ortc_cases_sequence[] = {{0}};
