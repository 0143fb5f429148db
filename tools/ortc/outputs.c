/* tools/ortc/outputs.c: results as a person or a program wants to see them; see outputs.h. */
#include "outputs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "element.h"
#include "term.h"

enum { FIRST_VALUES = 6, JSON_FIRST_VALUES = 16, PRINTED_ROWS = 20 };

/* ---- Labels -------------------------------------------------------------------------------------------- */

int labels_read(const char *path, labels *out)
{
    blob file;
    ortc_error e = ORTC_ERROR_INIT;
    *out = (labels){0};
    if (file_read(path, 64 << 20, &file, &e) != ORTC_OK) {
        say_error("--labels: %s", e.text);
        return EXIT_USAGE;
    }
    for (size_t at = 0; at < file.size;) {
        const uint8_t *line = file.data + at, *end = memchr(line, '\n', file.size - at);
        size_t n = end ? (size_t)(end - line) : file.size - at;
        at += n + 1;
        while (n && (line[n - 1] == '\r' || line[n - 1] == ' ')) n--;
        out->items = mem_grow(out->items, out->count + 1, sizeof *out->items);
        out->items[out->count++] = mem_printf("%.*s", (int)n, (const char *)line);
    }
    free(file.data);
    return -1;
}

void labels_free(labels *l)
{
    for (size_t i = 0; i < l->count; i++) free(l->items[i]);
    free(l->items);
    *l = (labels){0};
}

/* ---- Statistics ---------------------------------------------------------------------------------------- */

typedef struct statistics {
    bool known; /* numbers, on the host, at least one */
    double min, max, mean;
    int64_t nans, infinities;
} statistics;

/* Over the finite elements; the mean in double from the first to the last, so that it does not depend on
 * anything. */
static statistics statistics_of(const ortc_value *v)
{
    statistics s = {.min = INFINITY, .max = -INFINITY};
    ortc_dtype t = ortc_value_dtype(v);
    const void *data = ortc_value_host(v);
    int64_t count = ortc_value_count(v), finite = 0;
    if (ortc_value_type(v)->kind != ORTC_KIND_TENSOR || !data || t == ORTC_STRING || dtype_is_complex(t))
        return s;
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        double x = element_get(t, data, i);
        if (isnan(x)) {
            s.nans++;
        } else if (isinf(x)) {
            s.infinities++;
        } else {
            finite++;
            sum += x;
            s.min = x < s.min ? x : s.min;
            s.max = x > s.max ? x : s.max;
        }
    }
    s.known = finite > 0;
    s.mean = finite ? sum / (double)finite : 0;
    return s;
}

/* ---- Best classes -------------------------------------------------------------------------------------- */

/* A tensor as rows of classes: the last dimension, or the second where only ones follow it ([N,C,1,1]). */
typedef struct rows {
    int64_t count, classes;
} rows;

static bool rows_of(const ortc_value *v, rows *out)
{
    int32_t rank = ortc_value_rank(v);
    const int64_t *dims = ortc_value_dims(v);
    if (ortc_value_type(v)->kind != ORTC_KIND_TENSOR || !dtype_is_float(ortc_value_dtype(v)) || rank < 1 ||
        !ortc_value_host(v))
        return false;
    while (rank > 2 && dims[rank - 1] == 1) rank--;
    out->classes = dims[rank - 1];
    out->count = out->classes ? ortc_value_count(v) / out->classes : 0;
    return out->classes > 1 && out->count > 0;
}

/* The k largest of a row, largest first, equal ones by position; NaN counts as smallest. */
static size_t best(const ortc_value *v, const rows *r, int64_t row, size_t k, int64_t *out)
{
    ortc_dtype t = ortc_value_dtype(v);
    const void *data = ortc_value_host(v);
    size_t n = 0;
    for (int64_t i = 0; i < r->classes; i++) {
        double x = element_get(t, data, row * r->classes + i);
        size_t at = n;
        while (at > 0) {
            double y = element_get(t, data, row * r->classes + out[at - 1]);
            if (!(x > y || (isnan(y) && !isnan(x)))) break;
            at--;
        }
        if (at >= k) continue;
        n = n < k ? n + 1 : k;
        memmove(out + at + 1, out + at, (n - at - 1) * sizeof *out);
        out[at] = i;
    }
    return n;
}

/* Are a row's values probabilities? Then they are shown in percent. */
static bool is_distribution(const ortc_value *v, const rows *r, int64_t row)
{
    double sum = 0;
    for (int64_t i = 0; i < r->classes; i++) {
        double x = element_get(ortc_value_dtype(v), ortc_value_host(v), row * r->classes + i);
        if (!(x >= 0 && x <= 1.0001)) return false;
        sum += x;
    }
    return fabs(sum - 1) < 0.01;
}

/* The picture that a row belongs to, where the rows are the pictures of one input. */
static const char *row_name(const output_options *o, const rows *r, int64_t row)
{
    for (size_t i = 0; o->inputs && i < o->inputs->count; i++)
        if (o->inputs->items[i].n_files > 1 && (int64_t)o->inputs->items[i].n_files == r->count)
            return o->inputs->items[i].files[row];
    return NULL;
}

static void print_best(const ortc_out *out, const output_options *o)
{
    rows r;
    if (!rows_of(out->value, &r)) return;
    size_t k = (size_t)(o->topk < r.classes ? o->topk : r.classes);
    int64_t *classes = mem_alloc((k + 1) * sizeof *classes);
    for (int64_t row = 0; row < r.count; row++) {
        if (row == PRINTED_ROWS && !cli.verbose) {
            put("  ... %lld rows more (-v or --json shows all)\n", (long long)(r.count - row));
            break;
        }
        const char *name = row_name(o, &r, row);
        if (name)
            put("  %s\n", name);
        else if (r.count > 1)
            put("  row %lld\n", (long long)row);
        bool percent = is_distribution(out->value, &r, row);
        size_t n = best(out->value, &r, row, k, classes);
        table t;
        table_init(&t, o->labels ? "rrl" : "rr");
        for (size_t i = 0; i < n; i++) {
            double x = element_get(ortc_value_dtype(out->value), ortc_value_host(out->value),
                                   row * r.classes + classes[i]);
            table_format(&t, "%lld", (long long)classes[i]);
            table_format(&t, percent ? "%.2f %%" : "%g", percent ? 100 * x : x);
            if (o->labels)
                table_cell(&t, (size_t)classes[i] < o->labels->count ? o->labels->items[classes[i]] : "");
        }
        table_print(&t, r.count > 1 ? 4 : 2, false);
    }
    if (o->labels && (int64_t)o->labels->count != r.classes)
        say_note("output '%s' has %lld classes, the labels' file has %zu lines", out->name,
                 (long long)r.classes, o->labels->count);
    free(classes);
}

/* ---- Text ---------------------------------------------------------------------------------------------- */

static void print_values(const ortc_value *v, buffer *b)
{
    int64_t count = ortc_value_count(v), shown = count < FIRST_VALUES ? count : FIRST_VALUES;
    for (int64_t i = 0; i < shown; i++) {
        buffer_printf(b, i ? " " : "");
        element_text(v, i, b);
    }
    if (shown < count) buffer_printf(b, " ...");
}

static void print_value(const char *name, const ortc_value *v, int indent)
{
    buffer b = {0};
    value_describe(v, &b);
    put("%*s", indent, "");
    term_color(stdout, TERM_BOLD);
    put("%s", name);
    term_color(stdout, TERM_PLAIN);
    put("  %s", (const char *)b.data);
    b.size = 0;
    uint16_t kind = ortc_value_type(v)->kind;
    if (kind != ORTC_KIND_TENSOR) {
        put("\n");
        int64_t n = kind == ORTC_KIND_MAP ? 2 : ortc_value_count(v);
        for (int64_t i = 0; i < n && i < PRINTED_ROWS; i++) {
            char *inner = kind == ORTC_KIND_MAP ? mem_copy(i ? "values" : "keys")
                                                : mem_printf("%lld", (long long)i);
            print_value(inner, ortc_value_element(v, (size_t)i), indent + 2);
            free(inner);
        }
        if (n > PRINTED_ROWS) put("%*s  ... %lld more\n", indent, "", (long long)(n - PRINTED_ROWS));
        free(b.data);
        return;
    }
    statistics s = statistics_of(v);
    if (s.known) put("  min %.6g  max %.6g  mean %.6g", s.min, s.max, s.mean);
    if (s.nans || s.infinities) {
        term_color(stdout, TERM_RED);
        put("  %lld nan, %lld inf of %lld", (long long)s.nans, (long long)s.infinities,
            (long long)ortc_value_count(v));
        term_color(stdout, TERM_PLAIN);
    }
    print_values(v, &b);
    put("  [%s]\n", b.data ? (const char *)b.data : "");
    free(b.data);
}

void outputs_print(const ortc_out *out, size_t count, const output_options *o)
{
    for (size_t i = 0; i < count; i++) {
        if (!cli.quiet) print_value(out[i].name, out[i].value, 0);
        if (o->topk) print_best(&out[i], o);
    }
}

/* ---- JSON ---------------------------------------------------------------------------------------------- */

static void json_element(json *j, const ortc_value *v, int64_t i)
{
    ortc_dtype t = ortc_value_dtype(v);
    const uint8_t *data = ortc_value_host(v);
    int64_t whole = 0;
    if (t == ORTC_STRING) {
        size_t n;
        const char *text = ortc_value_string(v, i, &n);
        json_text_n(j, text, n);
    } else if (!data) {
        json_null(j);
    } else if (t == ORTC_I64 || t == ORTC_U64) {
        memcpy(&whole, data + 8 * i, 8);
        if (t == ORTC_I64)
            json_integer(j, whole);
        else
            json_unsigned(j, (uint64_t)whole);
    } else if (t == ORTC_BOOL) {
        json_bool(j, data[i]);
    } else if (dtype_is_complex(t)) {
        json_array_inline(j);
        json_number(j, element_get(t, data, i));
        json_number(j, element_imaginary(t, data, i));
        json_array_end(j);
    } else if (t == ORTC_F64) {
        json_number(j, element_get(t, data, i));
    } else {
        json_number32(j, element_get(t, data, i));
    }
}

static void json_best(json *j, const ortc_value *v, const output_options *o)
{
    rows r;
    if (!o->topk || !rows_of(v, &r)) return;
    size_t k = (size_t)(o->topk < r.classes ? o->topk : r.classes);
    int64_t *classes = mem_alloc((k + 1) * sizeof *classes);
    json_key(j, "topk");
    json_array(j);
    for (int64_t row = 0; row < r.count; row++) {
        const char *name = row_name(o, &r, row);
        json_object(j);
        json_pair_integer(j, "row", row);
        if (name) json_pair_text(j, "source", name);
        json_key(j, "best");
        json_array(j);
        size_t n = best(v, &r, row, k, classes);
        for (size_t i = 0; i < n; i++) {
            json_object(j);
            json_pair_integer(j, "class", classes[i]);
            if (o->labels && (size_t)classes[i] < o->labels->count)
                json_pair_text(j, "label", o->labels->items[classes[i]]);
            json_key(j, "value");
            json_element(j, v, row * r.classes + classes[i]);
            json_object_end(j);
        }
        json_array_end(j);
        json_object_end(j);
    }
    json_array_end(j);
    free(classes);
}

static void json_value(json *j, const char *name, const ortc_value *v, const output_options *o)
{
    buffer b = {0};
    type_describe(ortc_value_type(v), &b);
    json_object(j);
    json_pair_text(j, "name", name);
    json_pair_text(j, "type", (const char *)b.data);
    free(b.data);
    uint16_t kind = ortc_value_type(v)->kind;
    if (kind != ORTC_KIND_TENSOR) {
        json_key(j, "elements");
        json_array(j);
        int64_t n = kind == ORTC_KIND_MAP ? 2 : ortc_value_count(v);
        for (int64_t i = 0; i < n; i++) {
            char *inner = kind == ORTC_KIND_MAP ? mem_copy(i ? "values" : "keys")
                                                : mem_printf("%lld", (long long)i);
            json_value(j, inner, ortc_value_element(v, (size_t)i), o);
            free(inner);
        }
        json_array_end(j);
        json_object_end(j);
        return;
    }
    json_key(j, "shape");
    json_array_inline(j);
    for (int32_t i = 0; i < ortc_value_rank(v); i++) json_integer(j, ortc_value_dims(v)[i]);
    json_array_end(j);
    statistics s = statistics_of(v);
    if (s.known) {
        json_pair_number(j, "min", s.min);
        json_pair_number(j, "max", s.max);
        json_pair_number(j, "mean", s.mean);
    }
    json_pair_integer(j, "nan", s.nans);
    json_pair_integer(j, "inf", s.infinities);
    json_key(j, "first");
    json_array_inline(j);
    for (int64_t i = 0; i < ortc_value_count(v) && i < JSON_FIRST_VALUES; i++) json_element(j, v, i);
    json_array_end(j);
    json_best(j, v, o);
    json_object_end(j);
}

void outputs_json(json *j, const ortc_out *out, size_t count, const output_options *o)
{
    json_key(j, "outputs");
    json_array(j);
    for (size_t i = 0; i < count; i++) json_value(j, out[i].name, out[i].value, o);
    json_array_end(j);
}
