/* tools/ortc/report.h: what `test` prints: a line per case that matters, the count at the end; JSON; JUnit
 * XML. */
#ifndef REPORT_H
#define REPORT_H

#include "cli.h"
#include "json.h"

typedef enum { VERDICT_PASSED, VERDICT_FAILED, VERDICT_SKIPPED } verdict;

typedef struct report_line {
    char *name, *why;
    verdict verdict;
    double seconds;
} report_line;

typedef struct report {
    size_t count, passed, failed, skipped;
    report_line *lines;
    double seconds;
} report;

void report_begin(report *, size_t expected);
/* Failures are printed at once, everything with --verbose; with --json nothing before the end. */
void report_case(report *, const char *name, verdict, const char *why, double seconds);
ortc_status report_junit(const report *, const char *path, ortc_error *);
/* Prints the last line, or the JSON object, and frees. */
void report_end(report *);

#endif
