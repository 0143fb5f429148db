/* graph/onnx/compose.c: nodes written as text in the place of a composed operator's (ortc_lift_write in op.h
 * has the grammar).
 *
 * A line is read from left to right into a node in front of the one that is replaced, and its shapes are
 * inferred at once, so that the lifting may look at them. A value is found by its newest name, then among the
 * inputs. Texts come from operators, not from files: what is wrong in one is INTERNAL.
 */
#include "lift.h"

#include <stdio.h>

#include "graph/ir/body.h"
#include "graph/ir/half.h"

enum { MAX_PORTS = 64, MAX_ELEMENTS = 64, MAX_NAME = 64 };

typedef struct reader {
    ortc_lift *l;
    const char *at; /* in a terminated text */
} reader;

static ortc_status wrong(reader *r, const char *what)
{
    return ortc_lift_note(r->l, ortc_fail(r->l->scope->in->error, ORTC_INTERNAL,
                                          "the composition of '%s' has %s at '%.40s'", r->l->node->type, what,
                                          r->at));
}

/* An input that was left out, or that nothing says the type of. */
static ortc_status untyped(reader *r, const char *name)
{
    return ortc_lift_note(r->l, ortc_fail(r->l->scope->in->error, ORTC_INVALID_MODEL,
                                          "%s needs the type of '%s', which is left out or not known",
                                          r->l->node->type, name));
}

/* ---- Words --------------------------------------------------------------------------------------------- */

static void skip_blanks(reader *r)
{
    while (*r->at == ' ') r->at++;
}

static bool take(reader *r, char c)
{
    skip_blanks(r);
    if (*r->at != c) return false;
    r->at++;
    return true;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

/* A name, with [k] behind it where it is one of several: "inputs[2]"; false: there is none. */
static bool word(reader *r, bool indexed, char *out)
{
    size_t n = 0;
    skip_blanks(r);
    while (is_word(*r->at) && n + 8 < MAX_NAME) out[n++] = *r->at++;
    if (indexed && n && *r->at == '[')
        while (n + 2 < MAX_NAME) {
            out[n++] = *r->at++;
            if (out[n - 1] == ']') break;
        }
    out[n] = 0;
    return n > 0;
}

/* ---- Values -------------------------------------------------------------------------------------------- */

/* The port that a name means among formals, variadic ones by their index; -1: none. */
static int32_t port_of(const ortc_formal *formals, uint32_t n, const char *name)
{
    const char *bracket = strchr(name, '[');
    const size_t length = bracket ? (size_t)(bracket - name) : strlen(name);
    for (uint32_t i = 0; i < n; i++)
        if (strlen(formals[i].name) == length && !memcmp(formals[i].name, name, length))
            return (int32_t)i + (bracket ? (int32_t)strtol(bracket + 1, NULL, 10) : 0);
    return -1;
}

/* False: there is no such value. *out NULL: an input that was left out. */
static bool find(const ortc_lift *l, const char *name, ortc_edge **out)
{
    for (size_t i = l->names.count; i-- > 0;)
        if (!strcmp(l->names.data[i].name, name)) {
            *out = l->names.data[i].edge;
            return true;
        }
    const ortc_schema *s = ortc_op_schema(l->node->op);
    const int32_t port = port_of(s->in, s->n_in, name);
    *out = port >= 0 && (uint32_t)port < l->node->n_in - l->node->n_captures ? l->node->in[port] : NULL;
    return port >= 0;
}

static ortc_status name_value(ortc_lift *l, const char *name, ortc_edge *e)
{
    const char *copy = ortc_arena_string(&l->scope->in->arena, name, strlen(name));
    return copy && ortc_array_push(&l->names, (ortc_named_edge){copy, e}) ? ORTC_OK : ortc_lift_no_memory(l);
}

static void put_element(void *data, ortc_dtype t, size_t i, const char *digits)
{
    const double f = strtod(digits, NULL);
    const int64_t n = strtoll(digits, NULL, 10);
    const float single = (float)f;
    const uint16_t half = ortc_half_encode(f, t == ORTC_BF16 ? t : ORTC_F16);
    const uint8_t byte = (uint8_t)n;
    const int32_t i32 = (int32_t)n;
    char *p = data;
    switch (t) {
    case ORTC_F32: memcpy(p + 4 * i, &single, 4); break;
    case ORTC_F64: memcpy(p + 8 * i, &f, 8); break;
    case ORTC_F16:
    case ORTC_BF16: memcpy(p + 2 * i, &half, 2); break;
    case ORTC_I32: memcpy(p + 4 * i, &i32, 4); break;
    case ORTC_I64: memcpy(p + 8 * i, &n, 8); break;
    default: memcpy(p + i, &byte, 1); /* i8, u8, bool */
    }
}

static bool can_put(ortc_dtype t)
{
    return t == ORTC_F32 || t == ORTC_F64 || t == ORTC_F16 || t == ORTC_BF16 || t == ORTC_I32 ||
           t == ORTC_I64 || t == ORTC_I8 || t == ORTC_U8 || t == ORTC_BOOL;
}

/* The type behind a constant's colon: its short name, or a value of that type. */
static ortc_status constant_type(reader *r, ortc_dtype *out)
{
    char name[MAX_NAME];
    ortc_edge *e = NULL;
    *out = ORTC_I64;
    if (!take(r, ':')) return ORTC_OK;
    if (!word(r, true, name)) return wrong(r, "no type");
    for (*out = ORTC_DTYPE_COUNT - 1; *out > 0 && strcmp(ortc_dtype_name(*out), name); --*out) {}
    if (*out == ORTC_ABSENT && find(r->l, name, &e)) {
        if (!e || !e->type) return untyped(r, name);
        *out = e->type->kind == ORTC_KIND_TENSOR ? e->type->dtype : ORTC_ABSENT;
    }
    return can_put(*out) ? ORTC_OK : wrong(r, "a type that constants cannot have");
}

static bool number(reader *r, char *digits)
{
    size_t n = 0;
    skip_blanks(r);
    while (n + 1 < MAX_NAME && (is_word(*r->at) || *r->at == '-' || *r->at == '+')) digits[n++] = *r->at++;
    digits[n] = 0;
    return n > 0;
}

/* 2  0.5:x  [1,-1]  [1.5,2]:f32  []: a scalar or vector, of int64 where nothing is said. */
static ortc_status constant(reader *r, ortc_edge **out)
{
    char digits[MAX_ELEMENTS][MAX_NAME], data[MAX_ELEMENTS * 8];
    const bool vector = take(r, '[');
    int64_t n = 0;
    ortc_dtype t;
    if (!vector && !number(r, digits[n++])) return wrong(r, "no number");
    while (vector && !take(r, ']')) {
        if (n == MAX_ELEMENTS || !number(r, digits[n++])) return wrong(r, "no vector");
        take(r, ',');
    }
    ORTC_TRY(constant_type(r, &t));
    for (int64_t i = 0; i < n; i++) put_element(data, t, (size_t)i, digits[i]);
    *out = ortc_lift_constant(r->l, t, vector, &n, data);
    return *out ? ORTC_OK : r->l->status;
}

/* inf:x and nan:x are constants, too: what an attribute of a file may say. */
static bool begins_constant(const char *at)
{
    return *at == '[' || *at == '-' || (*at >= '0' && *at <= '9') || !strncmp(at, "inf:", 4) ||
           !strncmp(at, "nan:", 4);
}

static ortc_status value(reader *r, ortc_edge **out)
{
    char name[MAX_NAME];
    skip_blanks(r);
    if (begins_constant(r->at)) return constant(r, out);
    *out = NULL;
    if (!word(r, true, name)) return wrong(r, "no value");
    return !strcmp(name, "_") || find(r->l, name, out) ? ORTC_OK : wrong(r, "an unknown value before it");
}

/* ---- Attributes ---------------------------------------------------------------------------------------- */

static const ortc_attr_decl *declared(const ortc_op *op, const char *name)
{
    const ortc_schema *s = ortc_op_schema(op);
    for (uint32_t i = 0; i < s->n_attrs; i++)
        if (!strcmp(s->attrs[i].name, name)) return &s->attrs[i];
    return NULL;
}

/* What the composed node's subgraphs capture, to the node that gets one. */
static ortc_status take_captures(reader *r, ortc_node *n)
{
    const ortc_node *from = r->l->node;
    for (uint32_t i = from->n_in - from->n_captures; i < from->n_in && !n->n_captures; i++)
        if (!ortc_node_set_in(n, n->n_in, from->in[i])) return ortc_lift_no_memory(r->l);
    n->n_captures = from->n_captures;
    return ORTC_OK;
}

/* name=1  name=0.5  name='text'  name=[1,2]  name=@x: the number of x's element type; &name: the composed
 * node's, if it has one. */
static ortc_status attribute(reader *r, ortc_node *n)
{
    char name[MAX_NAME], text[MAX_NAME];
    int64_t ints[MAX_ELEMENTS];
    float floats[MAX_ELEMENTS];
    size_t count = 0;
    if (take(r, '&')) {
        ortc_attr own;
        if (!word(r, false, name) || !declared(n->op, name)) return wrong(r, "no attribute of both");
        r->l->node->api->attr(r->l->node, name, &own);
        if (own.kind == ORTC_ATTR_GRAPH) ORTC_TRY(take_captures(r, n));
        return !own.kind || ortc_node_set_attr(n, declared(n->op, name)->name, &own)
                   ? ORTC_OK
                   : ortc_lift_no_memory(r->l);
    }
    if (!word(r, false, name) || !take(r, '=')) return wrong(r, "no attribute");
    const ortc_attr_decl *d = declared(n->op, name);
    if (!d) return wrong(r, "an attribute that the operator has not");
    ortc_attr a = {.size = sizeof a, .kind = d->kind};
    if (d->kind == ORTC_ATTR_STRING) {
        if (!take(r, '\'')) return wrong(r, "no text");
        while (*r->at && *r->at != '\'' && count + 1 < MAX_NAME) text[count++] = *r->at++;
        text[count] = 0;
        if (!take(r, '\'')) return wrong(r, "no end of a text");
        a.u.s = text;
        a.count = count;
    } else if (take(r, '@')) {
        ortc_edge *e = NULL;
        if (d->kind != ORTC_ATTR_INT || !word(r, true, name) || !find(r->l, name, &e))
            return wrong(r, "no value whose type is known");
        if (!e || !e->type || e->type->kind != ORTC_KIND_TENSOR) return untyped(r, name);
        a.i = e->type->dtype;
    } else {
        const bool list = take(r, '[');
        while (!(list && take(r, ']'))) {
            if (count == MAX_ELEMENTS || !number(r, text)) return wrong(r, "no number");
            ints[count] = strtoll(text, NULL, 10);
            floats[count++] = strtof(text, NULL);
            if (!list) break;
            take(r, ',');
        }
        if (list != (d->kind == ORTC_ATTR_INTS || d->kind == ORTC_ATTR_FLOATS) ||
            (!list && d->kind != ORTC_ATTR_INT && d->kind != ORTC_ATTR_FLOAT))
            return wrong(r, "an attribute of another kind");
        a.count = list ? count : 0;
        if (d->kind == ORTC_ATTR_INT) a.i = ints[0];
        if (d->kind == ORTC_ATTR_FLOAT) a.f = floats[0];
        if (d->kind == ORTC_ATTR_INTS) a.u.ints = ints;
        if (d->kind == ORTC_ATTR_FLOATS) a.u.floats = floats;
    }
    return ortc_node_set_attr(n, d->name, &a) ? ORTC_OK : ortc_lift_no_memory(r->l);
}

/* ---- Lines --------------------------------------------------------------------------------------------- */

/* The edge that a result will be: the composed node's own where it has this name and is wanted. */
static ortc_edge *result(ortc_lift *l, const char *name)
{
    const ortc_schema *s = ortc_op_schema(l->node->op);
    const int32_t port = port_of(s->out, s->n_out, name);
    ortc_edge *e = port >= 0 && (uint32_t)port < l->node->n_out ? l->node->out[port] : NULL;
    if (!e) return ortc_edge_create(l->node->graph, NULL);
    ortc_node_set_out(l->node, (uint32_t)port, NULL);
    return e;
}

/* A subgraph that the composed node has as an attribute, in the place of its call. */
static ortc_status inline_graph(reader *r, const char *name, ortc_edge *const *in, uint32_t n_in,
                                ortc_edge *const *out, uint32_t n_out)
{
    ortc_lift *l = r->l;
    ortc_attr a;
    l->node->api->attr(l->node, name, &a);
    if (a.kind != ORTC_ATTR_GRAPH) return wrong(r, "no subgraph");
    const ortc_graph *g = a.u.graphs[0];
    if (g->n_inputs != n_in + l->node->n_captures || g->n_outputs != n_out)
        return ortc_lift_note(l,
                              ortc_fail(l->scope->in->error, ORTC_INVALID_MODEL,
                                        "attribute '%s': the subgraph has %u inputs and %u outputs, expected "
                                        "%u and %u",
                                        name, g->n_inputs - l->node->n_captures, g->n_outputs, n_in, n_out));
    ortc_edge *all[MAX_PORTS];
    if (g->n_inputs > MAX_PORTS) return wrong(r, "too many captures");
    for (uint32_t i = 0; i < g->n_inputs; i++)
        all[i] = i < n_in ? in[i] : l->node->in[l->node->n_in - (g->n_inputs - i)];
    ortc_node *first = NULL;
    ORTC_TRY(ortc_lift_note(l, ortc_graph_inline(g, all, g->n_inputs, out, n_out, l->node, &first,
                                                 l->scope->in->error)));
    for (ortc_node *n = first; n && n != l->node; n = n->next)
        ORTC_TRY(ortc_lift_note(l, ortc_import_infer(l->scope->in, n)));
    return ORTC_OK;
}

static ortc_status plain_node(reader *r, const char *type, ortc_edge *const *in, uint32_t n_in,
                              ortc_edge *const *out, uint32_t n_out)
{
    ortc_lift *l = r->l;
    const ortc_op *op = ortc_op_find("", type);
    if (!op) return wrong(r, "an unknown operator before it");
    while (n_in && !in[n_in - 1]) n_in--;
    const char *name = ortc_arena_printf(&l->scope->in->arena, "%s/%s", l->node->name, type);
    ortc_node *n = name ? ortc_node_create(l->node->graph, op, name, n_in, n_out) : NULL;
    if (!n) return ortc_lift_no_memory(l);
    n->version = op->since;
    ortc_node_move_before(n, l->node);
    for (uint32_t i = 0; i < n_in; i++)
        if (in[i] && !ortc_node_set_in(n, i, in[i])) return ortc_lift_no_memory(l);
    for (uint32_t i = 0; i < n_out; i++)
        if (out[i] && !ortc_node_set_out(n, i, out[i])) return ortc_lift_no_memory(l);
    for (skip_blanks(r); *r->at && *r->at != '\n'; skip_blanks(r)) ORTC_TRY(attribute(r, n));
    return ortc_lift_note(l, ortc_import_infer(l->scope->in, n));
}

/* y, _, z = Operator(a, _, 0.5:a) attribute=1 */
static ortc_status line(reader *r)
{
    char names[MAX_PORTS][MAX_NAME], type[MAX_NAME];
    ortc_edge *in[MAX_PORTS], *out[MAX_PORTS];
    uint32_t n_in = 0, n_out = 0;
    do {
        if (n_out == MAX_PORTS || !word(r, true, names[n_out++])) return wrong(r, "no name");
    } while (take(r, ','));
    if (!take(r, '=')) return wrong(r, "no '='");
    const bool call = take(r, '$');
    if (!word(r, false, type) || !take(r, '(')) return wrong(r, "no operator");
    while (!take(r, ')')) {
        if (n_in == MAX_PORTS) return wrong(r, "too many inputs");
        ORTC_TRY(value(r, &in[n_in++]));
        take(r, ',');
    }
    for (uint32_t i = 0; i < n_out; i++) {
        out[i] = !call && !strcmp(names[i], "_") ? NULL : result(r->l, names[i]);
        if (!out[i] && strcmp(names[i], "_")) return ortc_lift_no_memory(r->l);
    }
    ORTC_TRY((call ? inline_graph : plain_node)(r, type, in, n_in, out, n_out));
    for (uint32_t i = 0; i < n_out; i++)
        if (out[i]) ORTC_TRY(name_value(r->l, names[i], out[i]));
    return ORTC_OK;
}

ortc_status ortc_lift_compose(ortc_lift *l, const char *fmt, va_list args)
{
    char text[4096];
    if (l->status != ORTC_OK) return l->status;
    reader r = {l, text};
    const int n = vsnprintf(text, sizeof text, fmt, args);
    if (n < 0 || (size_t)n >= sizeof text) return wrong(&(reader){l, fmt}, "more than 4095 characters");
    while (*r.at) {
        ORTC_TRY(line(&r));
        skip_blanks(&r);
        if (*r.at && *r.at++ != '\n') return wrong(&r, "something behind a line");
    }
    return ORTC_OK;
}

/* ---- The rest ------------------------------------------------------------------------------------------ */

void ortc_lift_look_at(ortc_lift *l, const char *name, ortc_port *out)
{
    ortc_edge *e = NULL;
    if (strcmp(name, "_") && !find(l, name, &e)) wrong(&(reader){l, name}, "an unknown value");
    ortc_edge_port(e, out);
}

ortc_status ortc_lift_name_constant(ortc_lift *l, const char *name, ortc_dtype t, int32_t rank,
                                    const int64_t *dims, const void *data)
{
    ortc_edge *e = ortc_lift_constant(l, t, rank, dims, data);
    return e ? name_value(l, name, e) : l->status;
}

ortc_status ortc_lift_recast_constant(ortc_lift *l, const char *name, const char *of, ortc_dtype t,
                                      int32_t rank, const int64_t *dims)
{
    ortc_edge *e = NULL;
    ortc_constant *c = NULL;
    int64_t count;
    size_t bytes;
    if (l->status != ORTC_OK) return l->status;
    if (!find(l, of, &e) || !e || !ortc_edge_is_const(e)) return wrong(&(reader){l, of}, "no constant");
    if (!ortc_count_elements(rank, dims, &count) || !ortc_tensor_bytes(t, count, &bytes) ||
        bytes != e->constant->bytes)
        return ortc_lift_note(l, ortc_fail(l->scope->in->error, ORTC_INVALID_MODEL,
                                           "input '%s' has %zu bytes, which do not fit its shape", of,
                                           e->constant->bytes));
    if (ortc_lift_note(l, ortc_constant_seen_as(e->constant, t, rank, dims, &c, l->scope->in->error)) !=
        ORTC_OK)
        return l->status;
    e = ortc_graph_constant(l->node->graph, NULL, c);
    return e ? name_value(l, name, e) : ortc_lift_no_memory(l);
}

/* What was written becomes the body of the node, which gets its result back. */
static ortc_status keep(ortc_lift *l)
{
    ortc_node *n = l->node;
    ORTC_TRY(ortc_body_collect(n->graph, n->in, n->n_in, l->first_out, &n->body, l->scope->in->error));
    if (!n->body)
        return ortc_fail(l->scope->in->error, ORTC_INTERNAL, "the composition of '%s' is no body", n->type);
    while (n->prev != l->before) ortc_node_remove(n->prev); /* readers first */
    return ortc_node_set_out(n, 0, l->first_out) ? ORTC_OK : ortc_lift_no_memory(l);
}

ortc_status ortc_lift_finish(ortc_lift *l)
{
    for (uint32_t i = 0; i < l->node->n_out; i++)
        if (l->node->out[i])
            return ortc_schema_out(ortc_op_schema(l->node->op), i)
                       ? ortc_fail(l->scope->in->error, ORTC_INTERNAL,
                                   "the composition of '%s' makes no output %u", l->node->type, i)
                       : ortc_fail(l->scope->in->error, ORTC_INVALID_MODEL,
                                   "it has %u outputs, the operator at most %u", l->node->n_out, i);
    if ((l->node->op->flags & ORTC_OP_COMPOSED) && l->node->op->infer) return keep(l);
    ortc_node_remove(l->node);
    return ORTC_OK;
}
