/* tools/ortc/cases.c: finds test cases and what belongs to them; see cases.h. */
#include "cases.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_DEPTH = 32 };

static bool is_file(const char *folder, const char *name)
{
    char *path = mem_printf("%s/%s", folder, name);
    struct stat st;
    bool yes = stat(path, &st) == 0 && S_ISREG(st.st_mode);
    free(path);
    return yes;
}

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static void add(cases *c, const char *name, const char *folder)
{
    if (c->count == c->capacity) {
        c->capacity = c->capacity ? 2 * c->capacity : 256;
        c->items = mem_grow(c->items, c->capacity, sizeof *c->items);
    }
    c->items[c->count++] = (test_case){mem_copy(name), mem_copy(folder), NULL};
}

/* Below a case no further cases are looked for: test_data_set_* are its own. */
static ortc_status search(const char *folder, const char *name, int depth, cases *c, ortc_error *error)
{
    if (is_file(folder, "model.onnx")) {
        add(c, name, folder);
        return ORTC_OK;
    }
    if (depth == MAX_DEPTH)
        return fail(error, ORTC_LIMIT, "'%s' is more than %d folders deep (a link to itself?)", folder,
                    MAX_DEPTH);
    DIR *d = opendir(folder);
    if (!d)
        return fail(error, errno == ENOENT ? ORTC_NOT_FOUND : ORTC_IO, "cannot open the folder '%s': %s",
                    folder, strerror(errno));
    ortc_status s = ORTC_OK;
    for (struct dirent *e; s == ORTC_OK && (e = readdir(d));) {
        if (e->d_name[0] == '.') continue;
        char *inner = mem_printf("%s/%s", folder, e->d_name);
        char *inner_name = mem_printf("%s%s%s", name, name[0] ? "/" : "", e->d_name);
        if (is_folder(inner)) s = search(inner, inner_name, depth + 1, c, error);
        free(inner);
        free(inner_name);
    }
    closedir(d);
    return s;
}

ortc_status cases_find(const char *folder, cases *c, ortc_error *error)
{
    char *trimmed = mem_copy(folder);
    size_t n = strlen(trimmed);
    while (n > 1 && trimmed[n - 1] == '/') trimmed[--n] = 0;
    const char *slash = strrchr(trimmed, '/');
    /* A folder that is a case itself is called by its own name. */
    ortc_status s = is_file(trimmed, "model.onnx") ? search(trimmed, slash ? slash + 1 : trimmed, 0, c, error)
                                                   : search(trimmed, "", 0, c, error);
    free(trimmed);
    return s;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const test_case *)a)->name, ((const test_case *)b)->name);
}

void cases_sort(cases *c)
{
    if (c->count) qsort(c->items, c->count, sizeof *c->items, by_name);
}

static void drop(test_case *t)
{
    free(t->name);
    free(t->folder);
}

void cases_filter(cases *c, const char *pattern)
{
    bool glob = strpbrk(pattern, "*?[") != NULL;
    size_t kept = 0;
    for (size_t i = 0; i < c->count; i++) {
        const char *name = c->items[i].name, *last = strrchr(name, '/');
        last = last ? last + 1 : name;
        if (glob ? fnmatch(pattern, name, 0) == 0 || fnmatch(pattern, last, 0) == 0
                 : strstr(name, pattern) != NULL)
            c->items[kept++] = c->items[i];
        else
            drop(&c->items[i]);
    }
    c->count = kept;
}

void cases_free(cases *c)
{
    for (size_t i = 0; i < c->count; i++) drop(&c->items[i]);
    free(c->items);
    *c = (cases){0};
}

ortc_status cases_skip(cases *c, const char *path, char **text_out, size_t *out_unmatched, ortc_error *error)
{
    blob file;
    *text_out = NULL;
    *out_unmatched = 0;
    ortc_status s = file_read(path, 16 << 20, &file, error);
    if (s != ORTC_OK) return s;
    char *text = mem_printf("%.*s", (int)file.size, (const char *)file.data);
    free(file.data);
    size_t number = 0;
    for (char *line = text; line;) {
        char *next = strchr(line, '\n');
        if (next) *next++ = 0;
        number++;
        line[strcspn(line, "\r")] = 0;
        line += strspn(line, " \t");
        if (*line && *line != '#') {
            char *reason = line + strcspn(line, " \t");
            if (*reason) *reason++ = 0;
            reason += strspn(reason, " \t");
            if (!*reason) {
                s = fail(error, ORTC_INVALID_ARGUMENT, "'%s' line %zu: expected a reason behind '%s'", path,
                         number, line);
                free(text);
                return s;
            }
            size_t matched = 0;
            for (size_t i = 0; i < c->count; i++) {
                const char *name = c->items[i].name, *last = strrchr(name, '/');
                if (fnmatch(line, name, 0) == 0 || (last && fnmatch(line, last + 1, 0) == 0)) {
                    c->items[i].skip = reason;
                    matched++;
                }
            }
            *out_unmatched += matched == 0;
        }
        line = next;
    }
    *text_out = text;
    return ORTC_OK;
}

/* ---- tolerance.json: one flat object ------------------------------------------------------------------- */

static void blanks(const char **at) { *at += strspn(*at, " \t\r\n"); }

static bool take(const char **at, char c)
{
    blanks(at);
    if (**at != c) return false;
    ++*at;
    return true;
}

static bool take_text(const char **at, char *out, size_t size)
{
    if (!take(at, '"')) return false;
    size_t n = strcspn(*at, "\"\\");
    if ((*at)[n] != '"' || n >= size) return false;
    memcpy(out, *at, n);
    out[n] = 0;
    *at += n + 1;
    return true;
}

static bool parse_tolerance(const char *at, tolerance *out)
{
    if (!take(&at, '{')) return false;
    for (bool more = !take(&at, '}'); more;) {
        char key[16], text[16];
        if (!take_text(&at, key, sizeof key) || !take(&at, ':')) return false;
        blanks(&at);
        if (strcmp(key, "compare") == 0) {
            if (!take_text(&at, text, sizeof text) ||
                (strcmp(text, "values") != 0 && strcmp(text, "shape") != 0))
                return false;
            out->values = text[0] == 'v';
        } else {
            double *to = strcmp(key, "rtol") == 0 ? &out->rtol : strcmp(key, "atol") == 0 ? &out->atol : NULL;
            char *end;
            double v = strtod(at, &end);
            if (!to || end == at || !isfinite(v) || v < 0) return false;
            *to = v;
            at = end;
        }
        more = take(&at, ',');
        if (!more && !take(&at, '}')) return false;
    }
    blanks(&at);
    return *at == 0;
}

ortc_status tolerance_read(const char *folder, tolerance *out, ortc_error *error)
{
    *out = (tolerance){.rtol = 1e-3, .atol = 1e-7, .values = true};
    if (!is_file(folder, "tolerance.json")) return ORTC_OK;
    char *path = mem_printf("%s/tolerance.json", folder);
    blob file;
    ortc_status s = file_read(path, 1 << 16, &file, error);
    if (s == ORTC_OK) {
        char *text = mem_printf("%.*s", (int)file.size, (const char *)file.data);
        if (!parse_tolerance(text, out))
            s = fail(error, ORTC_INVALID_ARGUMENT,
                     "tolerance.json: expected {\"rtol\": number, \"atol\": number, \"compare\": \"values\" "
                     "or \"shape\"}");
        free(text);
        free(file.data);
    }
    free(path);
    return s;
}

static int by_number(const void *a, const void *b)
{
    long x = *(const long *)a, y = *(const long *)b;
    return (x > y) - (x < y);
}

size_t data_sets(const char *folder, long **out)
{
    static const char prefix[] = "test_data_set_";
    size_t n = 0;
    *out = NULL;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        char *end;
        if (strncmp(e->d_name, prefix, sizeof prefix - 1) != 0) continue;
        long number = strtol(e->d_name + sizeof prefix - 1, &end, 10);
        if (*end || end == e->d_name + sizeof prefix - 1 || number < 0) continue;
        *out = mem_grow(*out, n + 1, sizeof **out);
        (*out)[n++] = number;
    }
    if (d) closedir(d);
    if (n) qsort(*out, n, sizeof **out, by_number);
    return n;
}
