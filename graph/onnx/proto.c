/* graph/onnx/proto.c: protobuf-c over an arena (proto.h). */
#include "proto.h"

const ProtobufCMessageDescriptor *ortc_proto_root(int32_t root)
{
    switch (root) {
    case 0: return &onnx__model_proto__descriptor;
    case ORTC_KIND_TENSOR: return &onnx__tensor_proto__descriptor;
    case ORTC_KIND_SEQUENCE: return &onnx__sequence_proto__descriptor;
    case ORTC_KIND_MAP: return &onnx__map_proto__descriptor;
    case ORTC_KIND_OPTIONAL: return &onnx__optional_proto__descriptor;
    default: return NULL;
    }
}

typedef struct arena_allocator {
    ProtobufCAllocator base;
    ortc_arena *arena;
    bool failed;
} arena_allocator;

static void *allocate(void *data, size_t bytes)
{
    arena_allocator *a = data;
    void *block = ortc_arena_alloc(a->arena, bytes);
    if (!block) a->failed = true;
    return block;
}

static void forget(void *data, void *block) { (void)data, (void)block; /* goes with the arena */ }

ortc_status ortc_proto_read(const void *data, size_t bytes, int32_t root, ortc_arena *arena, void **out,
                            ortc_error *error)
{
    arena_allocator a = {.base = {allocate, forget, NULL}, .arena = arena};
    const ProtobufCMessageDescriptor *message = ortc_proto_root(root);
    uint8_t *compact;
    size_t compact_bytes;

    *out = NULL;
    ORTC_TRY(ortc_wire_compact(data, bytes, root, &compact, &compact_bytes, error));
    a.base.allocator_data = &a;
    *out = protobuf_c_message_unpack(message, &a.base, compact_bytes, compact);
    free(compact);
    if (*out) return ORTC_OK;
    if (a.failed) return ortc_no_memory(error, compact_bytes);
    return ortc_fail(error, ORTC_INVALID_MODEL, "not a valid %s: a packed field is damaged",
                     message->short_name);
}
