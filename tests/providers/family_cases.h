/* tests/providers/family_cases.h: the cases of every family, as the build lists them. */
#ifndef ORTC_TESTS_FAMILY_CASES_H
#define ORTC_TESTS_FAMILY_CASES_H

#include "kernels/common/cases.h"

typedef struct family_cases {
    const char *family;
    const ortc_case *cases;
} family_cases;

extern const family_cases all_cases[]; /* family NULL behind the last */

#endif
