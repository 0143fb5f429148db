/* kernels/control/cases.c: If, Loop and Scan hold graphs, which a line of text cannot: their cases are those
 * of the standard's suite and tests/python/test_models.py. The table is here because a family without one
 * does not link. */
#include "kernels/common/cases.h"

const ortc_case ortc_cases_control[] = {{0}};
