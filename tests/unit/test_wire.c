/* tests/unit/test_wire.c: the walk over serialised messages: what it cuts, what it keeps, what it refuses. */
#include <criterion/criterion.h>
#include <pthread.h>

#include "graph/onnx/proto.h"
#include "wire_writer.h"

static buffer small_model(void)
{
    buffer graph = {0}, part;
    part = make_value_info("x", ORTC_F32, 2, (int64_t[]){-1, 4});
    put_message(&graph, 11, &part);
    part = make_value_info("y", ORTC_F32, -1, NULL);
    put_message(&graph, 12, &part);
    part = make_tensor("w", ORTC_F32, 1, (int64_t[]){4}, "0123456789abcdef", 16);
    put_message(&graph, 5, &part);
    part = make_node("Add", "", "x w", "y");
    put_message(&graph, 1, &part);
    return make_model(8, 13, &graph);
}

static ortc_status compact(const buffer *b, int32_t root, uint8_t **out, size_t *bytes, ortc_error *e)
{
    return ortc_wire_compact(b->data, b->bytes, root, out, bytes, e);
}

/* Walks and forgets. */
static ortc_status walk(buffer *b, ortc_error *e)
{
    uint8_t *out;
    size_t bytes;
    ortc_status s = compact(b, 0, &out, &bytes, e);
    free(out);
    buffer_free(b);
    return s;
}

Test(wire, weights_become_places)
{
    ortc_error e = ORTC_ERROR_INIT;
    buffer model = small_model();
    uint8_t *out;
    size_t bytes;
    uint64_t place[2];
    cr_assert(compact(&model, 0, &out, &bytes, &e) == ORTC_OK, "%s", e.text);
    Onnx__ModelProto *m = onnx__model_proto__unpack(NULL, bytes, out);
    cr_assert_not_null(m);
    cr_expect(m->ir_version == 8 && m->graph->n_node == 1 && m->graph->n_initializer == 1);
    cr_expect_str_eq(m->graph->node[0]->input[1], "w");
    cr_expect_str_eq(m->graph->input[0]->type->tensor_type->shape->dim[0]->dim_param, "s1");
    cr_assert(m->graph->initializer[0]->raw_data.len == 16);
    memcpy(place, m->graph->initializer[0]->raw_data.data, 16);
    cr_expect(place[1] == 16 && memcmp(model.data + place[0], "0123456789abcdef", 16) == 0);
    onnx__model_proto__free_unpacked(m, NULL);
    free(out);
    buffer_free(&model);
}

Test(wire, unknown_fields_stay_and_large_known_ones_go)
{
    ortc_error e = ORTC_ERROR_INIT;
    buffer model = small_model(), training = {0};
    uint8_t *out;
    size_t bytes;
    put_string(&training, 1, "a training graph");
    put_message(&model, 20, &training);
    put_string(&model, 1000, "from the future");
    put_int(&model, 1001, 5);
    put_float(&model, 1002, 5);
    cr_assert(compact(&model, 0, &out, &bytes, &e) == ORTC_OK, "%s", e.text);
    Onnx__ModelProto *m = onnx__model_proto__unpack(NULL, bytes, out);
    cr_assert_not_null(m);
    cr_expect(m->base.n_unknown_fields == 3);
    onnx__model_proto__free_unpacked(m, NULL);
    free(out);
    buffer_free(&model);
}

Test(wire, an_empty_message_is_valid)
{
    uint8_t *out;
    size_t bytes = 1;
    cr_expect(ortc_wire_compact(NULL, 0, 0, &out, &bytes, NULL) == ORTC_OK && bytes == 0);
    free(out);
    cr_expect(ortc_wire_compact(NULL, 0, 99, &out, &bytes, NULL) == ORTC_INVALID_ARGUMENT);
}

Test(wire, broken_messages_are_refused)
{
    ortc_error e = ORTC_ERROR_INIT;
    buffer b = {0}, part = {0};
    put_varint(&b, 5 << 3 | 3); /* a group */
    cr_expect(walk(&b, &e) == ORTC_INVALID_MODEL);
    put_varint(&b, 7 << 3 | 0); /* the graph as a number */
    put_varint(&b, 1);
    cr_expect(walk(&b, &e) == ORTC_INVALID_MODEL);
    cr_expect_str_eq(e.text, "ModelProto, byte 0: 'graph' has wire type 0, expected 2");
    put_varint(&b, 2 << 3 | 2);
    put_varint(&b, 100);
    cr_expect(walk(&b, &e) == ORTC_INVALID_MODEL);
    cr_expect_str_eq(e.text, "ModelProto, byte 0: field 2 should have 100 bytes, 0 are left");
    put_varint(&b, 2 << 3 | 2);
    put_varint(&b, UINT64_MAX); /* must not wrap */
    cr_expect(walk(&b, &e) == ORTC_INVALID_MODEL);
    put_varint(&b, 0 << 3 | 2); /* field 0 */
    put_varint(&b, 0);
    cr_expect(walk(&b, &e) == ORTC_INVALID_MODEL);
    for (int i = 0; i < 11; i++) put_bytes(&b, "\xff", 1); /* a varint without end */
    cr_expect(walk(&b, &e) == ORTC_INVALID_MODEL);
    put_block(&b, 2, "a\0b", 3); /* a zero byte in a name */
    cr_expect(walk(&b, &e) == ORTC_INVALID_MODEL);
    put_string(&part, 2, "g");
    put_message(&b, 7, &part);
    put_string(&part, 2, "g");
    put_message(&b, 7, &part); /* two graphs */
    cr_expect(walk(&b, &e) == ORTC_INVALID_MODEL);
    cr_expect_str_eq(e.text, "ModelProto, byte 7: field 'graph' stands there twice");
}

/* A model with `depth` graphs in each other. */
static buffer nest(int depth)
{
    buffer graph = {0}, attribute = {0}, node = {0}, model = {0};
    for (int i = 1; i < depth; i++) {
        put_message(&attribute, 6, &graph);
        put_message(&node, 5, &attribute);
        put_message(&graph, 1, &node);
    }
    put_message(&model, 7, &graph);
    return model;
}

/* A model whose input has a type of `depth` sequences. */
static buffer nest_types(int depth)
{
    buffer type = {0}, sequence = {0}, info = {0}, graph = {0}, model = {0};
    for (int i = 1; i < depth; i++) {
        put_message(&sequence, 1, &type);
        put_message(&type, 4, &sequence);
    }
    put_message(&info, 2, &type);
    put_message(&graph, 11, &info);
    put_message(&model, 7, &graph);
    return model;
}

Test(wire, depth_is_limited)
{
    ortc_error e = ORTC_ERROR_INIT;
    buffer b = nest(32);
    cr_expect(walk(&b, &e) == ORTC_OK, "%s", e.text);
    b = nest(33);
    cr_expect(walk(&b, &e) == ORTC_LIMIT);
    b = nest(60);
    cr_expect(walk(&b, &e) == ORTC_LIMIT);
    b = nest_types(8);
    cr_expect(walk(&b, &e) == ORTC_OK, "%s", e.text);
    b = nest_types(9);
    cr_expect(walk(&b, &e) == ORTC_LIMIT);
}

/* Whatever byte is damaged, the walk ends with a status, and what it accepts protobuf-c reads or refuses. */
Test(wire, every_byte_may_be_damaged)
{
    buffer model = small_model();
    static const uint8_t damage[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    for (size_t i = 0; i < model.bytes; i++)
        for (size_t k = 0; k < sizeof damage + 8; k++) {
            uint8_t *copy = malloc(model.bytes), *out;
            size_t bytes;
            memcpy(copy, model.data, model.bytes);
            copy[i] = k < sizeof damage ? damage[k] : copy[i] ^ (uint8_t)(1u << (k - sizeof damage));
            if (ortc_wire_compact(copy, model.bytes, 0, &out, &bytes, NULL) == ORTC_OK) {
                Onnx__ModelProto *m = onnx__model_proto__unpack(NULL, bytes, out);
                if (m) onnx__model_proto__free_unpacked(m, NULL);
            }
            free(out);
            free(copy);
        }
    for (size_t n = 0; n < model.bytes; n++) { /* cut off anywhere; the copy's end is malloc's, for ASan */
        uint8_t *copy = malloc(n ? n : 1), *out;
        size_t bytes;
        memcpy(copy, model.data, n);
        ortc_wire_compact(copy, n, 0, &out, &bytes, NULL);
        free(out);
        free(copy);
    }
    buffer_free(&model);
}
