#include "kernels/common/cases.h"
const ortc_case ortc_cases_ml[] = {{0}};
