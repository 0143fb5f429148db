/* tests/providers/case_text.c: reading a case (kernels/common/cases.h has the grammar) and filling its
 * tensors. */
#include "case_text.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/common/element.h"

typedef struct reader {
    const char *at;
    uint64_t random;
    char *error;
    size_t error_bytes;
} reader;

static bool wrong(reader *r, const char *what)
{
    if (r->error_bytes) snprintf(r->error, r->error_bytes, "%s at '%.24s'", what, r->at);
    return false;
}

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}
static double uniform(uint64_t *state, double low, double high)
{
    return low + (high - low) * (double)(next_random(state) >> 11) * 0x1p-53;
}

/* ---- Types in place of their letters ------------------------------------------------------------------- */

static ortc_dtype type_of(const char *s, size_t n)
{
    for (ortc_dtype t = 1; t < ORTC_DTYPE_COUNT; t++)
        if (strlen(ortc_dtype_name(t)) == n && !strncmp(ortc_dtype_name(t), s, n)) return t;
    return 0;
}

/* The word of `types` that gives name its types: "T=f32,f16". NULL: none. */
static const char *find_types(const char *types, const char *name, size_t n)
{
    for (const char *s = types ? types : ""; *s; s += strcspn(s, " "), s += strspn(s, " "))
        if (!strncmp(s, name, n) && s[n] == '=') return s + n + 1;
    return NULL;
}
static size_t count_list(const char *s)
{
    size_t n = 1;
    for (; *s && *s != ' '; s++) n += *s == ',';
    return n;
}
size_t case_combinations(const ortc_case *c)
{
    size_t n = 1;
    for (const char *s = c->types ? c->types : ""; *s; s += strcspn(s, " "), s += strspn(s, " "))
        n *= count_list(s);
    return n;
}
/* The type that `name` stands for in a combination, or the type of that name. */
static ortc_dtype resolve(const char *types, size_t which, const char *name, size_t n)
{
    const char *list = find_types(types, name, n);
    if (!list) return type_of(name, n);
    for (const char *s = types; s < list - n - 1; s += strcspn(s, " "), s += strspn(s, " "))
        which /= count_list(s);
    for (which %= count_list(list); which; which--) list += strcspn(list, ",") + 1;
    return type_of(list, strcspn(list, ", "));
}

/* ---- Tensors ------------------------------------------------------------------------------------------- */

static const double specials[] = {NAN, INFINITY, -INFINITY, -0.0};

static void fill_random(tensor *t, uint64_t *random, double low, double high, bool special)
{
    for (int64_t i = 0; i < t->count; i++) {
        double v = uniform(random, low, high);
        if (ortc_class_of(t->dtype) != ORTC_CLASS_FLOAT) v = floor(v);
        if (special && next_random(random) % 3 == 0) v = specials[next_random(random) % 4];
        if (t->dtype == ORTC_C64 || t->dtype == ORTC_C128) {
            const ortc_dtype part = t->dtype == ORTC_C64 ? ORTC_F32 : ORTC_F64;
            ortc_store_f64(t->data, part, 2 * i, v);
            ortc_store_f64(t->data, part, 2 * i + 1, uniform(random, low, high));
        } else {
            ortc_store_f64(t->data, t->dtype, i, v);
        }
    }
}

static double number(const char **s)
{
    char *end;
    const double v = strtod(*s, &end); /* nan, inf and -inf too */
    *s = end;
    return v;
}

/* "{1,2,3}" or "0.5..9" behind '='. */
static bool read_elements(reader *r, tensor *t)
{
    if (*r->at != '{') {
        const double low = number(&r->at);
        if (strncmp(r->at, "..", 2)) return wrong(r, "expected LOW..HIGH");
        r->at += 2;
        fill_random(t, &r->random, low, number(&r->at), false);
        return true;
    }
    t->chosen = true;
    int64_t n = 0;
    for (r->at++; *r->at && *r->at != '}' && *r->at != '.'; n++) {
        if (n && n >= t->count) return wrong(r, "too many elements");
        if (t->dtype == ORTC_STRING) {
            const size_t length = strcspn(r->at, ",}");
            if (n < t->count) t->strings[n] = strndup(r->at, length);
            r->at += length;
        } else if (ortc_class_of(t->dtype) == ORTC_CLASS_UINT) {
            char *end;
            ortc_store_u64(t->data, t->dtype, n, strtoull(r->at, &end, 10));
            r->at = end;
        } else if (ortc_class_of(t->dtype) == ORTC_CLASS_INT) {
            char *end;
            ortc_store_i64(t->data, t->dtype, n, strtoll(r->at, &end, 10));
            r->at = end;
        } else {
            ortc_store_f64(t->data, t->dtype, n, number(&r->at));
        }
        r->at += *r->at == ',';
    }
    const bool again = n && (n == 1 || !strncmp(r->at, "..", 2));
    r->at += strspn(r->at, ".");
    if (*r->at++ != '}') return wrong(r, "expected }");
    if (t->dtype != ORTC_STRING)
        for (int64_t i = n; again && i < t->count; i++)
            ortc_move_element(t->data, i, t->data, i - n, ortc_dtype_bits(t->dtype));
    return n == t->count || again || wrong(r, "too few elements");
}

/* "T[2,3]={...}!" */
static bool read_tensor(reader *r, const char *types, size_t which, tensor *t)
{
    const size_t name = strcspn(r->at, "[");
    t->dtype = resolve(types, which, r->at, name);
    if (!t->dtype || r->at[name] != '[') return wrong(r, "expected TYPE[dims]");
    r->at += name + 1;
    t->count = 1;
    while (*r->at && *r->at != ']') {
        char *end;
        t->dims[t->rank] = strtoll(r->at, &end, 10);
        if (end == r->at || t->rank == MAX_DIMS - 1) return wrong(r, "expected an extent");
        /* no sign: beside an extent of 0 others may be of any size */
        t->count = (int64_t)((uint64_t)t->count * (uint64_t)t->dims[t->rank++]);
        r->at = end + (*end == ',');
    }
    if (*r->at++ != ']') return wrong(r, "expected ]");
    const ortc_class class = ortc_class_of(t->dtype);
    t->chosen = t->count == 0;
    t->bytes = t->dtype == ORTC_STRING ? 0 : ortc_bytes_of(ortc_dtype_bits(t->dtype), t->count);
    t->data = calloc(t->bytes + 1, 1);
    t->strings = t->dtype == ORTC_STRING ? calloc((size_t)t->count + 1, sizeof(char *)) : NULL;
    const bool special = *r->at == '~';
    r->at += special;
    if (*r->at == '=') {
        r->at++;
        if (!read_elements(r, t)) return false;
    } else if (t->dtype == ORTC_STRING) {
        for (int64_t i = 0; i < t->count; i++) t->strings[i] = strdup(i % 2 ? "two" : "one");
    } else {
        const double low = class == ORTC_CLASS_UINT ? 0 : class == ORTC_CLASS_INT ? -8 : -2;
        const double high = t->dtype == ORTC_BOOL || ortc_dtype_bits(t->dtype) == 2 ? 2
                            : class == ORTC_CLASS_UINT                              ? 16
                            : class == ORTC_CLASS_INT                               ? 8
                                                                                    : 2;
        fill_random(t, &r->random, ortc_dtype_bits(t->dtype) == 2 && class == ORTC_CLASS_INT ? -2 : low, high,
                    special);
    }
    if (*r->at == '!') {
        t->constant = true;
        r->at++;
    }
    return strchr(" ;)>", *r->at) || wrong(r, "expected the end of a word");
}

static bool read_value(reader *r, const char *types, size_t which, tensor *t);

/* "f32" or "seq(:f32)": a type alone. */
static bool read_type(reader *r, const char *types, size_t which, tensor *t)
{
    if (!strncmp(r->at, "seq(", 4) || !strncmp(r->at, "opt(", 4)) return read_value(r, types, which, t);
    const size_t name = strcspn(r->at, ";)>");
    t->dtype = resolve(types, which, r->at, name);
    t->dims[t->rank++] = 0; /* one without elements stands for its type */
    t->data = calloc(1, 1);
    t->strings = t->dtype == ORTC_STRING ? calloc(1, sizeof(char *)) : NULL;
    r->at += name;
    return t->dtype || wrong(r, "expected a type");
}

/* A tensor, or "seq(f32[2];f32[3])", "opt(:f32)", "map(i64[1]={7};f32[1])". */
static bool read_value(reader *r, const char *types, size_t which, tensor *t)
{
    t->kind = !strncmp(r->at, "seq(", 4)   ? ORTC_KIND_SEQUENCE
              : !strncmp(r->at, "map(", 4) ? ORTC_KIND_MAP
              : !strncmp(r->at, "opt(", 4) ? ORTC_KIND_OPTIONAL
                                           : 0;
    if (!t->kind) return read_tensor(r, types, which, t);
    t->chosen = true;
    t->elements = calloc(9, sizeof *t->elements);
    r->at += 4;
    if (*r->at == ':') {
        r->at++;
        if (!read_type(r, types, which, &t->elements[0])) return false;
    } else {
        do {
            if (t->n_elements == 8 || !read_value(r, types, which, &t->elements[t->n_elements++]))
                return wrong(r, "expected elements");
        } while (*r->at == ';' && r->at++);
    }
    t->dtype = t->elements[t->kind == ORTC_KIND_MAP].dtype;
    return *r->at == ')' ? r->at++, true : wrong(r, "expected )");
}

/* ---- Attributes ---------------------------------------------------------------------------------------- */

static bool read_attribute(reader *r, const char *types, size_t which, attribute *a)
{
    const size_t name = strcspn(r->at, "=");
    if (!r->at[name] || name >= sizeof a->name) return wrong(r, "expected NAME=");
    snprintf(a->name, sizeof a->name, "%.*s", (int)name, r->at);
    r->at += name + 1;
    const size_t word = strcspn(r->at, " ");
    if (*r->at == '<') {
        a->kind = 13;
        r->at++;
        if (!read_type(r, types, which, &a->t)) return false;
        r->at += *r->at == '>';
    } else if (*r->at == '[' && r->at[1] == '\'') {
        a->kind = 8;
        for (r->at++; *r->at == '\'' && a->count < 32; r->at += *r->at == ',') {
            const size_t length = strcspn(++r->at, "'");
            snprintf(a->strings[a->count++], sizeof a->strings[0], "%.*s", (int)length, r->at);
            r->at += length + (r->at[length] == '\'');
        }
        r->at += *r->at == ']';
    } else if (*r->at == '[' && memchr(r->at, '.', strcspn(r->at, "] "))) {
        a->kind = 6;
        for (r->at++; *r->at && *r->at != ']' && a->count < 63; r->at += *r->at == ',') {
            const char *before = r->at;
            a->floats[a->count++] = (float)number(&r->at);
            if (r->at == before) return wrong(r, "expected a number");
        }
        r->at += *r->at == ']';
    } else if (*r->at == '[') {
        a->kind = 7;
        for (r->at++; *r->at && *r->at != ']'; r->at += *r->at == ',') {
            char *end;
            a->ints[a->count++] = strtoll(r->at, &end, 10);
            if (end == r->at || a->count == 63) return wrong(r, "expected an integer");
            r->at = end;
        }
        r->at += *r->at == ']';
    } else if (*r->at == '\'') {
        a->kind = 3;
        const size_t length = strcspn(++r->at, "'");
        snprintf(a->s, sizeof a->s, "%.*s", (int)length, r->at);
        r->at += length + 1;
    } else if (memchr(r->at, '[', word)) {
        a->kind = 4;
        return read_tensor(r, types, which, &a->t);
    } else if (resolve(types, which, r->at, word)) {
        a->kind = 2;
        a->i = resolve(types, which, r->at, word);
        r->at += word;
    } else {
        char *end;
        const bool is_float = strcspn(r->at, ".en") < word; /* 0.5, 1e-3, inf, nan */
        a->kind = is_float ? 1 : 2;
        a->f = strtod(r->at, &end);
        if (!is_float) a->i = strtoll(r->at, &end, 10);
        if (end == r->at) return wrong(r, "expected a value");
        r->at = end;
    }
    return *r->at == 0 || *r->at == ' ' || wrong(r, "expected the end of a word");
}

bool case_read(const ortc_case *c, size_t which, node_text *n, char *error, size_t error_bytes)
{
    reader r = {.at = c->op, .random = which, .error = error, .error_bytes = error_bytes};
    memset(n, 0, sizeof *n);
    for (const char *s = c->in; s && *s; s++) r.random = r.random * 31 + (unsigned char)*s;
    const char *colon = strchr(c->op, ':'), *at = strchr(c->op, '@');
    const char *op = colon ? colon + 1 : c->op;
    snprintf(n->domain, sizeof n->domain, "%.*s", colon ? (int)(colon - c->op) : 0, c->op);
    snprintf(n->op, sizeof n->op, "%.*s", (int)(at ? at - op : (ptrdiff_t)strlen(op)), op);
    n->version = at ? strtoll(at + 1, NULL, 10) : NEWEST_OPSET;
    n->n_out = c->outputs ? (size_t)c->outputs : 1;
    for (r.at = c->in ? c->in : ""; *r.at; r.at += strspn(r.at, " ")) {
        if (n->n_in == MAX_PORTS) return wrong(&r, "too many inputs");
        tensor *t = &n->in[n->n_in++];
        if (*r.at == '-')
            r.at++;
        else if (!read_value(&r, c->types, which, t))
            return false;
    }
    for (r.at = c->attrs ? c->attrs : ""; *r.at; r.at += strspn(r.at, " ")) {
        if (n->n_attrs == MAX_PORTS) return wrong(&r, "too many attributes");
        if (!read_attribute(&r, c->types, which, &n->attrs[n->n_attrs++])) return false;
    }
    return true;
}

static void tensor_deinit(tensor *t)
{
    for (size_t i = 0; t->elements && i < 9; i++) tensor_deinit(&t->elements[i]);
    free(t->elements);
    for (int64_t i = 0; t->strings && i < t->count; i++) free(t->strings[i]);
    free(t->strings);
    free(t->data);
}

void node_deinit(node_text *n)
{
    for (size_t i = 0; i < n->n_in; i++) tensor_deinit(&n->in[i]);
    for (size_t i = 0; i < n->n_attrs; i++) tensor_deinit(&n->attrs[i].t);
}

ortc_value *case_value(const tensor *t)
{
    ortc_value *v = NULL, *elements[9] = {NULL}, *prototype;
    if (!t->elements) {
        if (t->dtype == ORTC_STRING)
            ortc_value_create_strings(t->rank, t->dims, (const char *const *)t->strings, NULL, &v, NULL);
        else
            v = ortc_wrap(t->data, t->dtype, t->rank, t->dims);
        return v;
    }
    for (size_t i = 0; i < t->n_elements; i++) elements[i] = case_value(&t->elements[i]);
    prototype = t->n_elements ? NULL : case_value(&t->elements[0]); /* for its type */
    const ortc_type *type = ortc_value_type(prototype ? prototype : elements[0]);
    if (t->kind == ORTC_KIND_SEQUENCE)
        ortc_value_create_sequence(type, t->n_elements, elements, &v, NULL);
    else if (t->kind == ORTC_KIND_MAP)
        ortc_value_create_map(elements[0], elements[1], &v, NULL);
    else
        ortc_value_create_optional(type, elements[0], &v, NULL);
    for (size_t i = 0; i < t->n_elements; i++) ortc_value_release(elements[i]);
    ortc_value_release(prototype);
    return v;
}
