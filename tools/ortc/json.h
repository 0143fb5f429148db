/* tools/ortc/json.h: writes JSON, checked for shape by the caller's own nesting: an object's members are a
 * key then a value, and commas and indentation come by themselves.
 *
 * Every object that a command prints has "schema": 1; members are only ever added within one schema number.
 * JSON has no NaN or infinity: they are the strings "NaN", "Infinity" and "-Infinity", which Python's float()
 * reads back. Bytes that are not UTF-8 become U+FFFD.
 */
#ifndef JSON_H
#define JSON_H

#include "cli.h"

typedef struct json {
    buffer out;
    int depth;
    int inline_depth; /* arrays on one line below this depth; 0: none */
    bool first, after_key;
} json;

void json_object(json *);
void json_object_end(json *);
void json_array(json *);
void json_array_inline(json *); /* on one line: shapes, numbers */
void json_array_end(json *);
void json_key(json *, const char *);
void json_text(json *, const char *);
void json_text_n(json *, const char *, size_t bytes);
void json_integer(json *, int64_t);
void json_unsigned(json *, uint64_t);
void json_number(json *, double);
void json_number32(json *, double); /* as few digits as a float needs */
void json_bool(json *, bool);
void json_null(json *);

/* Key and value in one call. */
void json_pair_text(json *, const char *key, const char *value);
void json_pair_integer(json *, const char *key, int64_t value);
void json_pair_unsigned(json *, const char *key, uint64_t value);
void json_pair_number(json *, const char *key, double value);
void json_pair_bool(json *, const char *key, bool value);

/* Opens the object that a command prints: schema and command. */
void json_begin(json *, const char *command);
/* Closes it, prints it on stdout or writes it to a file, and frees. */
void json_finish(json *);
ortc_status json_save(json *, const char *path, ortc_error *);

#endif
