/* tools/ortc/json.c: the JSON writer of json.h. */
#include "json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void newline(json *j) { buffer_printf(&j->out, "\n%*s", 2 * j->depth, ""); }

/* What stands before a value or key: a comma, a new line. */
static void separate(json *j)
{
    if (j->after_key) {
        j->after_key = false;
        return;
    }
    bool one_line = j->inline_depth && j->depth >= j->inline_depth;
    if (!j->first) buffer_add(&j->out, one_line ? ", " : ",", one_line ? 2 : 1);
    if (!one_line && j->depth) newline(j);
    j->first = false;
}

static void begin(json *j, char bracket, bool one_line)
{
    separate(j);
    buffer_add(&j->out, &bracket, 1);
    j->depth++;
    j->first = true;
    if (one_line && !j->inline_depth) j->inline_depth = j->depth;
}

static void end(json *j, char bracket)
{
    bool one_line = j->inline_depth && j->depth >= j->inline_depth;
    if (j->inline_depth == j->depth) j->inline_depth = 0;
    j->depth--;
    if (!one_line && !j->first) newline(j);
    buffer_add(&j->out, &bracket, 1);
    j->first = false;
}

void json_object(json *j) { begin(j, '{', false); }
void json_object_end(json *j) { end(j, '}'); }
void json_array(json *j) { begin(j, '[', false); }
void json_array_inline(json *j) { begin(j, '[', true); }
void json_array_end(json *j) { end(j, ']'); }

/* Length of the valid UTF-8 sequence at s (1..4), 0 if it is none: overlong forms and surrogates are none. */
static size_t utf8_length(const unsigned char *s, size_t left)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = s[0] < 0x80 ? 1 : s[0] >> 5 == 6 ? 2 : s[0] >> 4 == 14 ? 3 : s[0] >> 3 == 30 ? 4 : 0;
    if (n <= 1) return n;
    if (n > left) return 0;
    uint32_t c = s[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80) return 0;
        c = c << 6 | (s[i] & 0x3f);
    }
    return c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? 0 : n;
}

static void quoted(json *j, const char *text, size_t bytes)
{
    const unsigned char *s = (const unsigned char *)text;
    buffer_add(&j->out, "\"", 1);
    for (size_t i = 0; i < bytes;) {
        size_t n = utf8_length(s + i, bytes - i);
        if (n == 0) {
            buffer_add(&j->out, "\\ufffd", 6);
            i++;
        } else if (s[i] == '"' || s[i] == '\\') {
            buffer_printf(&j->out, "\\%c", s[i++]);
        } else if (s[i] == '\n') {
            buffer_add(&j->out, "\\n", 2);
            i++;
        } else if (s[i] < 0x20 || s[i] == 0x7f) {
            buffer_printf(&j->out, "\\u%04x", s[i++]);
        } else {
            buffer_add(&j->out, s + i, n);
            i += n;
        }
    }
    buffer_add(&j->out, "\"", 1);
}

void json_key(json *j, const char *key)
{
    separate(j);
    quoted(j, key, strlen(key));
    buffer_add(&j->out, ": ", 2);
    j->after_key = true;
}

void json_text_n(json *j, const char *text, size_t bytes)
{
    separate(j);
    quoted(j, text, bytes);
}

void json_text(json *j, const char *text)
{
    if (text)
        json_text_n(j, text, strlen(text));
    else
        json_null(j);
}

void json_integer(json *j, int64_t v)
{
    separate(j);
    buffer_printf(&j->out, "%lld", (long long)v);
}

void json_unsigned(json *j, uint64_t v)
{
    separate(j);
    buffer_printf(&j->out, "%llu", (unsigned long long)v);
}

static bool special(json *j, double v)
{
    if (isfinite(v)) return false;
    json_text(j, isnan(v) ? "NaN" : v > 0 ? "Infinity" : "-Infinity");
    return true;
}

void json_number(json *j, double v)
{
    if (special(j, v)) return;
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, v);
        if (strtod(text, NULL) == v) break;
    }
    separate(j);
    buffer_add(&j->out, text, strlen(text));
}

void json_number32(json *j, double v)
{
    if (special(j, v)) return;
    char text[40];
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, v);
        if (strtof(text, NULL) == (float)v) break;
    }
    separate(j);
    buffer_add(&j->out, text, strlen(text));
}

void json_bool(json *j, bool v)
{
    separate(j);
    buffer_add(&j->out, v ? "true" : "false", v ? 4 : 5);
}

void json_null(json *j)
{
    separate(j);
    buffer_add(&j->out, "null", 4);
}

void json_pair_text(json *j, const char *key, const char *value)
{
    json_key(j, key);
    json_text(j, value);
}

void json_pair_integer(json *j, const char *key, int64_t value)
{
    json_key(j, key);
    json_integer(j, value);
}

void json_pair_unsigned(json *j, const char *key, uint64_t value)
{
    json_key(j, key);
    json_unsigned(j, value);
}

void json_pair_number(json *j, const char *key, double value)
{
    json_key(j, key);
    json_number(j, value);
}

void json_pair_bool(json *j, const char *key, bool value)
{
    json_key(j, key);
    json_bool(j, value);
}

void json_begin(json *j, const char *command)
{
    *j = (json){.first = true};
    json_object(j);
    json_pair_integer(j, "schema", 1);
    json_pair_text(j, "command", command);
}

void json_finish(json *j)
{
    json_object_end(j);
    buffer_add(&j->out, "\n", 1);
    fwrite(j->out.data, 1, j->out.size, stdout);
    free(j->out.data);
    *j = (json){0};
}

ortc_status json_save(json *j, const char *path, ortc_error *error)
{
    json_object_end(j);
    buffer_add(&j->out, "\n", 1);
    ortc_status s = file_write(path, j->out.data, j->out.size, error);
    free(j->out.data);
    *j = (json){0};
    return s;
}
