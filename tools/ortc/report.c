/* tools/ortc/report.c: the results of `ortc test`; see report.h. */
#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "term.h"

static const char *const words[] = {"pass", "FAIL", "skip"}, *const json_words[] = {"passed", "failed",
                                                                                    "skipped"};

void report_begin(report *r, size_t expected)
{
    *r = (report){.lines = mem_alloc(expected * sizeof *r->lines)};
}

void report_case(report *r, const char *name, verdict v, const char *why, double seconds)
{
    static const int colors[] = {TERM_GREEN, TERM_RED, TERM_YELLOW};
    r->lines[r->count++] = (report_line){mem_copy(name), mem_copy(why), v, seconds};
    *(v == VERDICT_PASSED ? &r->passed : v == VERDICT_FAILED ? &r->failed : &r->skipped) += 1;
    r->seconds += seconds;
    if (cli.json || (v != VERDICT_FAILED && !cli.verbose)) return;
    term_progress_clear();
    term_color(stdout, colors[v]);
    put("%s", words[v]);
    term_color(stdout, TERM_PLAIN);
    put(" %s", name);
    if (why[0]) put(": %s", why);
    if (cli.verbose) put("  %.1f ms", 1e3 * seconds);
    put("\n");
    fflush(stdout);
}

static void xml_text(buffer *b, const char *text)
{
    for (const char *p = text; *p; p++) {
        const char *entity = *p == '&'   ? "&amp;"
                             : *p == '<' ? "&lt;"
                             : *p == '>' ? "&gt;"
                             : *p == '"' ? "&quot;"
                                         : NULL;
        if (entity)
            buffer_add(b, entity, strlen(entity));
        else
            buffer_add(b, (unsigned char)*p < 0x20 ? "?" : p, 1);
    }
}

ortc_status report_junit(const report *r, const char *path, ortc_error *error)
{
    buffer b = {0};
    buffer_printf(
        &b,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"ortc\" tests=\"%zu\" failures=\"%zu\" "
        "skipped=\"%zu\" time=\"%.3f\">\n",
        r->count, r->failed, r->skipped, r->seconds);
    for (size_t i = 0; i < r->count; i++) {
        const report_line *l = &r->lines[i];
        const char *slash = strrchr(l->name, '/');
        buffer_printf(&b, "  <testcase classname=\"");
        char *folder = slash ? mem_printf("%.*s", (int)(slash - l->name), l->name) : mem_copy("");
        xml_text(&b, folder);
        free(folder);
        buffer_printf(&b, "\" name=\"");
        xml_text(&b, slash ? slash + 1 : l->name);
        buffer_printf(&b, "\" time=\"%.6f\"", l->seconds);
        if (l->verdict == VERDICT_PASSED) {
            buffer_printf(&b, "/>\n");
            continue;
        }
        buffer_printf(&b, "><%s message=\"", l->verdict == VERDICT_FAILED ? "failure" : "skipped");
        xml_text(&b, l->why);
        buffer_printf(&b, "\"/></testcase>\n");
    }
    buffer_printf(&b, "</testsuite>\n");
    ortc_status s = file_write(path, b.data, b.size, error);
    free(b.data);
    return s;
}

static void print_json(const report *r)
{
    json j;
    json_begin(&j, "test");
    json_pair_unsigned(&j, "passed", r->passed);
    json_pair_unsigned(&j, "failed", r->failed);
    json_pair_unsigned(&j, "skipped", r->skipped);
    json_pair_number(&j, "seconds", r->seconds);
    json_key(&j, "cases");
    json_array(&j);
    for (size_t i = 0; i < r->count; i++) {
        json_object(&j);
        json_pair_text(&j, "name", r->lines[i].name);
        json_pair_text(&j, "result", json_words[r->lines[i].verdict]);
        if (r->lines[i].why[0]) json_pair_text(&j, "why", r->lines[i].why);
        json_pair_number(&j, "seconds", r->lines[i].seconds);
        json_object_end(&j);
    }
    json_array_end(&j);
    json_finish(&j);
}

void report_end(report *r)
{
    if (cli.json)
        print_json(r);
    else
        put("%zu passed, %zu failed, %zu skipped\n", r->passed, r->failed, r->skipped);
    for (size_t i = 0; i < r->count; i++) {
        free(r->lines[i].name);
        free(r->lines[i].why);
    }
    free(r->lines);
    *r = (report){0};
}
