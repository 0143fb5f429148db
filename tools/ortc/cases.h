/* tools/ortc/cases.h: test cases on disk, in the layout of ONNX's backend tests.
 *
 *   CASE/model.onnx
 *   CASE/test_data_set_0/input_0.pb, output_0.pb, ...   one folder per data set
 *   CASE/tolerance.json                                 optional: {"rtol": 1e-3, "atol": 1e-7, "compare":
 *                                                       "values"};
 *                                                       "compare": "shape" for operators whose values are
 *                                                       random
 */
#ifndef CASES_H
#define CASES_H

#include "cli.h"
#include "compare.h"

typedef struct test_case {
    char *name; /* the path below the folder that was searched: "node/test_abs" */
    char *folder;
    const char *skip; /* the reason it stands in the list of skips; NULL: it does not */
} test_case;

typedef struct cases {
    size_t count, capacity;
    test_case *items; /* sorted by name */
} cases;

/* Adds all cases below a folder. Errors: NOT_FOUND, IO, LIMIT (too deep). */
ortc_status cases_find(const char *folder, cases *, ortc_error *);
void cases_sort(cases *);
/* Keeps those whose name holds `pattern`, or matches it when it has *, ? or [. */
void cases_filter(cases *, const char *pattern);
void cases_free(cases *);

/* "name reason..." a line, # begins a comment. Sets `skip`; a name may be the case's last component, or a
 * glob. A line without a reason is an error. *text_out owns the reasons; free() it after the cases.
 * *out_unmatched: lines that match no case. */
ortc_status cases_skip(cases *, const char *path, char **text_out, size_t *out_unmatched, ortc_error *);

/* Defaults when the file is not there. */
ortc_status tolerance_read(const char *folder, tolerance *out, ortc_error *);

/* The numbers N of CASE/test_data_set_N, ascending. Owner: the caller; free(). */
size_t data_sets(const char *folder, long **out);

#endif
