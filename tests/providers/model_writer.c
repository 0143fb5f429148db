/* tests/providers/model_writer.c: the few messages of onnx.proto that a model of one node takes, written by
 * hand. */
#include "model_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/ir/graph.h"

static void put(writer *w, const void *data, size_t bytes)
{
    if (w->bytes + bytes > w->capacity) {
        w->capacity = (w->bytes + bytes) * 2 + 64;
        w->data = realloc(w->data, w->capacity);
        if (!w->data) abort();
    }
    if (bytes) memcpy(w->data + w->bytes, data, bytes);
    w->bytes += bytes;
}

static void varint(writer *w, uint64_t v)
{
    do {
        unsigned char byte = (unsigned char)((v & 127) | (v > 127 ? 128 : 0));
        put(w, &byte, 1);
        v >>= 7;
    } while (v);
}
static void field_int(writer *w, int field, int64_t v)
{
    varint(w, (uint64_t)field << 3);
    varint(w, (uint64_t)v);
}
static void field_float(writer *w, int field, float v)
{
    varint(w, (uint64_t)field << 3 | 5);
    put(w, &v, 4);
}
static void field_bytes(writer *w, int field, const void *data, size_t bytes)
{
    varint(w, (uint64_t)field << 3 | 2);
    varint(w, bytes);
    put(w, data, bytes);
}
static void field_text(writer *w, int field, const char *text) { field_bytes(w, field, text, strlen(text)); }
/* Takes the message in `inner` and empties it. */
static void field_message(writer *w, int field, writer *inner)
{
    field_bytes(w, field, inner->data, inner->bytes);
    writer_deinit(inner);
}

void writer_deinit(writer *w)
{
    free(w->data);
    *w = (writer){0};
}

static void tensor_proto(writer *w, const tensor *t, const char *name)
{
    for (int32_t d = 0; d < t->rank; d++) field_int(w, 1, t->dims[d]);
    field_int(w, 2, t->dtype);
    if (t->dtype == ORTC_STRING)
        for (int64_t i = 0; i < t->count; i++) field_text(w, 6, t->strings[i]);
    else
        field_bytes(w, 9, t->data, t->bytes);
    if (name) field_text(w, 8, name);
}

/* The type of what is not a tensor. */
static void type_proto(writer *type, const tensor *t)
{
    writer inner = {0}, of = {0};
    if (t->kind == ORTC_KIND_MAP) {
        type_proto(&of, &t->elements[1]);
        field_int(&inner, 1, t->elements[0].dtype);
        field_message(&inner, 2, &of);
    } else if (t->kind == ORTC_KIND_SEQUENCE || t->kind == ORTC_KIND_OPTIONAL) {
        type_proto(&of, &t->elements[0]);
        field_message(&inner, 1, &of);
    } else {
        field_int(&inner, 1, t->dtype);
    }
    field_message(type,
                  t->kind == ORTC_KIND_SEQUENCE   ? 4
                  : t->kind == ORTC_KIND_OPTIONAL ? 9
                  : t->kind == ORTC_KIND_MAP      ? 5
                                                  : 1,
                  &inner);
}

static void value_info(writer *graph, int field, const char *name, const tensor *t, bool symbolic)
{
    writer info = {0}, type = {0}, of_tensor = {0}, shape = {0};
    field_text(&info, 1, name);
    if (t && t->elements) {
        type_proto(&type, t);
        field_message(&info, 2, &type);
    } else if (t) {
        field_int(&of_tensor, 1, t->dtype);
        for (int32_t d = 0; d < t->rank; d++) {
            writer dim = {0};
            char symbol[96];
            snprintf(symbol, sizeof symbol, "%s_%d", name, d);
            if (symbolic)
                field_text(&dim, 2, symbol);
            else
                field_int(&dim, 1, t->dims[d]);
            field_message(&shape, 1, &dim);
        }
        field_message(&of_tensor, 2, &shape);
        field_message(&type, 1, &of_tensor);
        field_message(&info, 2, &type);
    }
    field_message(graph, field, &info);
}

static void attribute_proto(writer *node, const attribute *a)
{
    writer w = {0};
    field_text(&w, 1, a->name);
    field_int(&w, 20, a->kind);
    switch (a->kind) {
    case 1: field_float(&w, 2, (float)a->f); break;
    case 2: field_int(&w, 3, a->i); break;
    case 3: field_text(&w, 4, a->s); break;
    case 4: {
        writer t = {0};
        tensor_proto(&t, &a->t, NULL);
        field_message(&w, 5, &t);
        break;
    }
    case 13: {
        writer type = {0};
        type_proto(&type, &a->t);
        field_message(&w, 14, &type);
        break;
    }
    default:
        for (size_t i = 0; i < a->count; i++)
            if (a->kind == 6)
                field_float(&w, 7, a->floats[i]);
            else if (a->kind == 8)
                field_text(&w, 9, a->strings[i]);
            else
                field_int(&w, 8, a->ints[i]);
    }
    field_message(node, 5, &w);
}

static void node_proto(writer *graph, const char *op, const char *const *in, size_t n_in, const char *out)
{
    writer w = {0};
    for (size_t i = 0; i < n_in; i++) field_text(&w, 1, in[i]);
    field_text(&w, 2, out);
    field_text(&w, 4, op);
    field_message(graph, 1, &w);
}

/* Where moves elements of these types as they are; inputs whose elements were given may decide shapes and go
 * straight. */
static bool movable(ortc_dtype t) { return t > 0 && t <= ORTC_BF16 && t != ORTC_STRING; }
static bool chains(const node_text *n, size_t i)
{
    return !n->in[i].elements && !n->in[i].constant && !n->in[i].chosen && movable(n->in[i].dtype);
}

/* How many outputs the node has says what it does: Split, Loop, BatchNormalization below 14. */
static bool counts_outputs(const node_text *n)
{
    const ortc_op *op = ortc_op_find(n->domain, n->op);
    return !op || (!strcmp(n->op, "BatchNormalization") && n->version < 14) ||
           (ortc_schema_out(ortc_op_schema(op), 0)->flags & ORTC_FORMAL_VARIADIC);
}

void write_model(writer *w, const node_text *n, int flags, const ortc_dtype *out_types, size_t alone)
{
    const size_t first = alone ? alone - 1 : 0, n_out = alone ? alone : n->n_out,
                 n_named = counts_outputs(n) ? n->n_out : n_out;
    writer graph = {0}, node = {0}, opset = {0};
    char name[32], other[32];
    const bool chained = flags & MODEL_CHAINED;
    for (size_t i = 0; i < n->n_in; i++) {
        snprintf(name, sizeof name, "x%zu", i);
        snprintf(other, sizeof other, "m%zu", i);
        if (chained && chains(n, i))
            node_proto(&graph, "Where", (const char *[]){"yes", name, name}, 3, other);
        field_text(&node, 1, !n->in[i].dtype ? "" : chained && chains(n, i) ? other : name);
    }
    for (size_t i = 0; i < n_named; i++) {
        snprintf(name, sizeof name, chained && movable(out_types[i]) ? "r%zu" : "y%zu", i);
        field_text(&node, 2, name);
    }
    field_text(&node, 3, "node");
    field_text(&node, 4, n->op);
    for (size_t i = 0; i < n->n_attrs; i++) attribute_proto(&node, &n->attrs[i]);
    if (n->domain[0]) field_text(&node, 7, n->domain);
    field_message(&graph, 1, &node);
    for (size_t i = first; chained && i < n_out; i++) {
        if (!movable(out_types[i])) continue;
        snprintf(name, sizeof name, "r%zu", i);
        snprintf(other, sizeof other, "y%zu", i);
        node_proto(&graph, "Where", (const char *[]){"yes", name, name}, 3, other);
    }
    field_text(&graph, 2, "case");
    for (size_t i = 0; i < n->n_in; i++) {
        snprintf(name, sizeof name, "x%zu", i);
        if (n->in[i].constant) {
            writer t = {0};
            tensor_proto(&t, &n->in[i], name);
            field_message(&graph, 5, &t);
        } else if (n->in[i].dtype) {
            value_info(&graph, 11, name, &n->in[i], flags & MODEL_SYMBOLIC);
        }
    }
    if (chained) value_info(&graph, 11, "yes", &(tensor){.dtype = ORTC_BOOL}, false);
    for (size_t i = first; i < n_out; i++) {
        snprintf(name, sizeof name, "y%zu", i);
        value_info(&graph, 12, name, NULL, false);
    }
    field_int(w, 1, 13);
    field_message(w, 7, &graph);
    field_text(&opset, 1, n->domain);
    field_int(&opset, 2, n->version);
    field_message(w, 8, &opset);
    if (n->domain[0]) {
        field_int(&opset, 2, NEWEST_OPSET);
        field_message(w, 8, &opset);
    }
}
