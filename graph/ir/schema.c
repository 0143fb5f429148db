/* graph/ir/schema.c: the short strings of an ortc_op to an ortc_schema, and nodes checked against it. */
#include "schema.h"

#include <stdio.h>

typedef struct parser {
    const ortc_op *op;
    ortc_parsed_schema *to;
    ortc_error *error;
} parser;

ORTC_PRINTF(2, 3) static ortc_status broken(const parser *p, const char *fmt, ...)
{
    char text[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return ortc_fail(p->error, ORTC_INVALID_ARGUMENT, "schema of operator '%s': %s", p->op->name, text);
}

/* The next word of *s, NULL at the end. */
static const char *next_word(const char **s, size_t *length)
{
    while (**s == ' ') (*s)++;
    const char *word = *s;
    while (**s && **s != ' ') (*s)++;
    *length = (size_t)(*s - word);
    return *length ? word : NULL;
}

static uint32_t count_words(const char *s)
{
    uint32_t n = 0;
    size_t length;
    while (next_word(&s, &length)) n++;
    return n;
}

/* ---- Types --------------------------------------------------------------------------------------------- */

static bool type_mask(const char *s, size_t length, uint64_t *mask)
{
    static const struct {
        const char *name;
        uint64_t mask;
    } groups[] = {
        {"float", ORTC_TYPES_FLOAT},
        {"int", ORTC_TYPES_INT},
        {"uint", ORTC_TYPES_UINT},
        {"num", ORTC_TYPES_NUM},
        {"f8", ORTC_TYPE(ORTC_F8E4M3FN) | ORTC_TYPE(ORTC_F8E4M3FNUZ) | ORTC_TYPE(ORTC_F8E5M2) |
                   ORTC_TYPE(ORTC_F8E5M2FNUZ)},
        {"all", ORTC_TYPES_ALL},
        {"seq", ORTC_MASK_SEQUENCE},
        {"map", ORTC_MASK_MAP},
        {"opt", ORTC_MASK_OPTIONAL},
    };
    for (size_t i = 0; i < ORTC_LENGTH(groups); i++) {
        size_t n = strlen(groups[i].name);
        if ((n == length || (length > n && s[n] == '(')) && !strncmp(s, groups[i].name, n)) {
            *mask |= groups[i].mask;
            return true;
        }
    }
    for (ortc_dtype t = 1; t < ORTC_DTYPE_COUNT; t++)
        if (strlen(ortc_dtype_name(t)) == length && !strncmp(s, ortc_dtype_name(t), length)) {
            *mask |= ORTC_TYPE(t);
            return true;
        }
    return false;
}

static bool types_mask(const char *s, size_t length, uint64_t *mask)
{
    *mask = 0;
    for (const char *end = s + length; s < end;) {
        const char *comma = memchr(s, ',', (size_t)(end - s));
        size_t n = (size_t)((comma ? comma : end) - s);
        if (!type_mask(s, n, mask)) return false;
        s += n + 1;
    }
    return *mask != 0;
}

static ortc_status parse_types(parser *p)
{
    ortc_schema *to = &p->to->schema;
    const char *s = p->op->types, *word;
    size_t length;
    uint32_t n = count_words(s);
    to->masks = ortc_arena_array(&p->to->arena, n, sizeof *to->masks);
    to->type_names = ortc_arena_array(&p->to->arena, n, sizeof *to->type_names);
    if (!to->masks || !to->type_names) return ortc_no_memory(p->error, 0);
    while ((word = next_word(&s, &length))) {
        const char *equals = memchr(word, '=', length);
        if (!equals) return broken(p, "'%.*s' is not NAME=TYPES", (int)length, word);
        size_t name = (size_t)(equals - word);
        if (!types_mask(equals + 1, length - name - 1, &to->masks[to->n_types]))
            return broken(p, "'%.*s' names no types", (int)length, word);
        if (!(to->type_names[to->n_types++] = ortc_arena_string(&p->to->arena, word, name)))
            return ortc_no_memory(p->error, 0);
    }
    return ORTC_OK;
}

/* ---- Inputs and outputs -------------------------------------------------------------------------------- */

static ortc_status parse_formals(parser *p, const char *s, ortc_formal **out, uint32_t *out_count)
{
    ortc_schema *to = &p->to->schema;
    uint32_t n = count_words(s);
    const char *word;
    size_t length;
    if (!(*out = ortc_arena_array(&p->to->arena, n, sizeof **out))) return ortc_no_memory(p->error, 0);
    while ((word = next_word(&s, &length))) {
        ortc_formal *f = &(*out)[(*out_count)++];
        const char *colon = memchr(word, ':', length);
        if (!colon) return broken(p, "'%.*s' is not NAME:TYPE", (int)length, word);
        if (!(f->name = ortc_arena_string(&p->to->arena, word, (size_t)(colon - word))))
            return ortc_no_memory(p->error, 0);
        const char *type = colon + 1, *end = word + length;
        for (; end > type && strchr("?*+~!", end[-1]); end--)
            f->flags |= end[-1] == '?'   ? ORTC_FORMAL_OPTIONAL
                        : end[-1] == '*' ? ORTC_FORMAL_VARIADIC
                        : end[-1] == '+' ? ORTC_FORMAL_VARIADIC | ORTC_FORMAL_AT_LEAST_ONE
                        : end[-1] == '~' ? ORTC_FORMAL_HETEROGENEOUS
                                         : ORTC_FORMAL_DECIDES;
        f->constraint = -1;
        for (uint32_t i = 0; i < to->n_types; i++)
            if (strlen(to->type_names[i]) == (size_t)(end - type) &&
                !strncmp(to->type_names[i], type, (size_t)(end - type))) {
                f->constraint = (int32_t)i;
                f->mask = to->masks[i];
            }
        if (f->constraint < 0 && !types_mask(type, (size_t)(end - type), &f->mask))
            return broken(p, "'%.*s' has no known type", (int)length, word);
        if ((f->flags & ORTC_FORMAL_VARIADIC) && *out_count < n)
            return broken(p, "only the last may be variadic, not '%s'", f->name);
    }
    return ORTC_OK;
}

/* ---- Attributes ---------------------------------------------------------------------------------------- */

static ortc_status parse_default(parser *p, ortc_attr_decl *d, const char *s, size_t length)
{
    char text[128];
    if (length >= sizeof text) return broken(p, "the default of '%s' is too long", d->name);
    memcpy(text, s, length);
    text[length] = 0;
    ortc_attr *a = &d->otherwise;
    a->kind = d->kind;
    switch (d->kind) {
    case ORTC_ATTR_INT: a->i = strtoll(text, NULL, 10); return ORTC_OK;
    case ORTC_ATTR_FLOAT: a->f = strtof(text, NULL); return ORTC_OK;
    case ORTC_ATTR_STRING:
        a->count = length;
        return (a->u.s = ortc_arena_string(&p->to->arena, text, length)) ? ORTC_OK
                                                                         : ortc_no_memory(p->error, length);
    case ORTC_ATTR_INTS:
    case ORTC_ATTR_FLOATS: {
        size_t n = 1;
        for (char *c = text; *c; c++) n += *c == ',';
        n = length ? n : 0;
        int64_t *ints = ortc_arena_array(&p->to->arena, n, sizeof *ints);
        float *floats = (float *)ints;
        if (!ints) return ortc_no_memory(p->error, n);
        char *at = text;
        for (size_t i = 0; i < n; i++, at += *at == ',') {
            if (d->kind == ORTC_ATTR_INTS)
                ints[i] = strtoll(at, &at, 10);
            else
                floats[i] = strtof(at, &at);
        }
        a->count = n;
        a->u.ints = ints;
        return ORTC_OK;
    }
    default: return broken(p, "attribute '%s' of this kind cannot have a default", d->name);
    }
}

static ortc_status parse_attributes(parser *p)
{
    static const struct {
        char letter;
        int32_t one, list;
    } kinds[] = {{'i', ORTC_ATTR_INT, ORTC_ATTR_INTS},
                 {'f', ORTC_ATTR_FLOAT, ORTC_ATTR_FLOATS},
                 {'s', ORTC_ATTR_STRING, ORTC_ATTR_STRINGS},
                 {'t', ORTC_ATTR_TENSOR, ORTC_ATTR_TENSORS},
                 {'g', ORTC_ATTR_GRAPH, ORTC_ATTR_GRAPHS},
                 {'p', ORTC_ATTR_TYPE_PROTO, ORTC_ATTR_TYPE_PROTOS}};
    ortc_schema *to = &p->to->schema;
    const char *s = p->op->attributes, *word;
    size_t length;
    if (!(to->attrs = ortc_arena_array(&p->to->arena, count_words(s), sizeof *to->attrs)))
        return ortc_no_memory(p->error, 0);
    while ((word = next_word(&s, &length))) {
        ortc_attr_decl *d = &to->attrs[to->n_attrs++];
        const char *colon = memchr(word, ':', length), *end = word + length;
        if (!colon || colon + 1 == end) return broken(p, "'%.*s' is not NAME:KIND", (int)length, word);
        if (!(d->name = ortc_arena_string(&p->to->arena, word, (size_t)(colon - word))))
            return ortc_no_memory(p->error, 0);
        d->otherwise.size = sizeof(ortc_attr);
        const char *at = colon + 1;
        for (size_t i = 0; i < ORTC_LENGTH(kinds); i++)
            if (kinds[i].letter == *at) d->kind = kinds[i].one;
        if (!d->kind) return broken(p, "'%.*s' is of no known kind", (int)length, word);
        at++;
        if (at < end && *at == 's') {
            for (size_t i = 0; i < ORTC_LENGTH(kinds); i++)
                if (kinds[i].one == d->kind) {
                    d->kind = kinds[i].list;
                    break;
                }
            at++;
        }
        if (at < end && *at == '=')
            ORTC_TRY(parse_default(p, d, at + 1, (size_t)(end - at - 1)));
        else if (at < end && *at == '!')
            d->required = true;
        else if (at < end && *at != '?')
            return broken(p, "'%.*s' ends in something else than ?, ! or =", (int)length, word);
    }
    return ORTC_OK;
}

ortc_status ortc_schema_parse(const ortc_op *op, ortc_parsed_schema *out, ortc_error *error)
{
    parser p = {op, out, error};
    ortc_status s = parse_types(&p);
    if (s == ORTC_OK) s = parse_formals(&p, op->inputs, &out->schema.in, &out->schema.n_in);
    if (s == ORTC_OK) s = parse_formals(&p, op->outputs, &out->schema.out, &out->schema.n_out);
    if (s == ORTC_OK) s = parse_attributes(&p);
    if (s != ORTC_OK) {
        ortc_arena_deinit(&out->arena);
        *out = (ortc_parsed_schema){0};
    }
    return s;
}

static const ortc_formal *formal_of(const ortc_formal *list, uint32_t n, uint32_t port)
{
    if (port < n) return &list[port];
    return n && (list[n - 1].flags & ORTC_FORMAL_VARIADIC) ? &list[n - 1] : NULL;
}
const ortc_formal *ortc_schema_in(const ortc_schema *s, uint32_t port)
{
    return formal_of(s->in, s->n_in, port);
}
const ortc_formal *ortc_schema_out(const ortc_schema *s, uint32_t port)
{
    return formal_of(s->out, s->n_out, port);
}

/* ---- Checking nodes ------------------------------------------------------------------------------------ */

static uint64_t mask_of(const ortc_type *t)
{
    switch (t->kind) {
    case ORTC_KIND_TENSOR: return ORTC_TYPE(t->dtype);
    case ORTC_KIND_SEQUENCE: return ORTC_MASK_SEQUENCE;
    case ORTC_KIND_MAP: return ORTC_MASK_MAP;
    case ORTC_KIND_OPTIONAL: return ORTC_MASK_OPTIONAL;
    default: return 0;
    }
}

/* "f32, f16 or a sequence" */
static void text_mask(ortc_text *t, uint64_t mask)
{
    static const char *const others[] = {"a sequence", "a map", "an optional"};
    for (int bit = 1; bit < 64 && mask; bit++) {
        if (!(mask >> bit & 1)) continue;
        mask &= ~(UINT64_C(1) << bit);
        ortc_text_add(t, "%s%s",
                      !t->length ? ""
                      : mask     ? ", "
                                 : " or ",
                      bit < ORTC_DTYPE_COUNT   ? ortc_dtype_name((ortc_dtype)bit)
                      : bit >= 40 && bit <= 42 ? others[bit - 40]
                                               : "?");
    }
}

static const char *attr_kind_name(int32_t kind)
{
    static const char *const names[] = {"nothing",        "a float", "an int", "a string",
                                        "a tensor",       "a graph", "floats", "ints",
                                        "strings",        "tensors", "graphs", "a sparse tensor",
                                        "sparse tensors", "a type",  "types"};
    return kind >= 0 && (size_t)kind < ORTC_LENGTH(names) ? names[kind] : "an unknown kind";
}

static ortc_status check_ports(const ortc_node *n, bool inputs, ortc_error *error)
{
    const ortc_schema *s = ortc_op_schema(n->op);
    ortc_edge *const *ports = inputs ? n->in : n->out;
    uint32_t count = inputs ? n->n_in - n->n_captures : n->n_out, n_formals = inputs ? s->n_in : s->n_out;
    const char *side = inputs ? "input" : "output";
    const ortc_type *bound[16] = {NULL};
    if (inputs && n->epilogue) /* the epilogue's ports follow the operator's own */
        count = count > n_formals ? n_formals : count;
    for (uint32_t i = 0; i < count || i < n_formals; i++) {
        const ortc_formal *f = inputs ? ortc_schema_in(s, i) : ortc_schema_out(s, i);
        const ortc_edge *e = i < count ? ports[i] : NULL;
        if (!inputs && n->epilogue) continue; /* of what type its program stores */
        if (!f)
            return ortc_fail(error, ORTC_INVALID_MODEL,
                             "node '%s' (%s): it has %u %ss, the operator takes at most %u", n->name, n->type,
                             count, side, n_formals);
        bool needed = !(f->flags & (ORTC_FORMAL_OPTIONAL | ORTC_FORMAL_VARIADIC)) ||
                      ((f->flags & ORTC_FORMAL_AT_LEAST_ONE) && i == n_formals - 1);
        if (!e && needed && inputs)
            return ortc_fail(error, ORTC_INVALID_MODEL, "node '%s' (%s): input %u ('%s') is missing", n->name,
                             n->type, i, f->name);
        if (!e || !e->type) continue;
        if (!(f->mask & mask_of(e->type))) {
            char buffer[128], allowed[256];
            ortc_text t = ORTC_TEXT(buffer), types = ORTC_TEXT(allowed);
            ortc_text_type(&t, e->type);
            text_mask(&types, f->mask);
            return ortc_fail(error, ORTC_TYPE_MISMATCH, "node '%s' (%s): %s %u ('%s') is %s, expected %s",
                             n->name, n->type, side, i, f->name, buffer, allowed);
        }
        if (f->constraint < 0 || f->constraint >= (int32_t)ORTC_LENGTH(bound) ||
            (f->flags & ORTC_FORMAL_HETEROGENEOUS))
            continue;
        const ortc_type **b = &bound[f->constraint];
        if (!*b)
            *b = e->type;
        else if (!ortc_type_equal(*b, e->type)) {
            char one[96], two[96];
            ortc_text t1 = ORTC_TEXT(one), t2 = ORTC_TEXT(two);
            ortc_text_type(&t1, *b);
            ortc_text_type(&t2, e->type);
            return ortc_fail(error, ORTC_TYPE_MISMATCH,
                             "node '%s' (%s): %s %u ('%s') is %s where the others of type %s are %s", n->name,
                             n->type, side, i, f->name, two, s->type_names[f->constraint], one);
        }
    }
    return ORTC_OK;
}

ortc_status ortc_node_check(const ortc_node *n, ortc_error *error)
{
    if (!n->op)
        return ortc_fail(error, ORTC_UNSUPPORTED, "node '%s': operator '%s' of domain '%s' is not known",
                         n->name, n->type, n->domain);
    const ortc_schema *s = ortc_op_schema(n->op);
    for (uint32_t i = 0; i < n->n_attrs; i++) {
        const ortc_attr_decl *d = NULL;
        for (uint32_t k = 0; k < s->n_attrs && !d; k++)
            if (!strcmp(s->attrs[k].name, n->attrs[i].name)) d = &s->attrs[k];
        if (!d)
            return ortc_fail(error, ORTC_INVALID_MODEL, "node '%s' (%s): the operator has no attribute '%s'",
                             n->name, n->type, n->attrs[i].name);
        if (d->kind != n->attrs[i].value.kind)
            return ortc_fail(error, ORTC_INVALID_MODEL,
                             "node '%s' (%s): attribute '%s' holds %s, expected %s", n->name, n->type,
                             d->name, attr_kind_name(n->attrs[i].value.kind), attr_kind_name(d->kind));
    }
    for (uint32_t k = 0; k < s->n_attrs; k++) {
        bool given = !s->attrs[k].required;
        for (uint32_t i = 0; i < n->n_attrs && !given; i++)
            given = !strcmp(s->attrs[k].name, n->attrs[i].name);
        if (!given)
            return ortc_fail(error, ORTC_INVALID_MODEL, "node '%s' (%s): attribute '%s' is required", n->name,
                             n->type, s->attrs[k].name);
    }
    ORTC_TRY(check_ports(n, true, error));
    return check_ports(n, false, error);
}
