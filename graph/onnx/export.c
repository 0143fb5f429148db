/* graph/onnx/export.c: a model's graph to a file: versions, the model's message, initializers, external data.
 *
 * The opset that is written is the largest of three: the one that the file was loaded with, the oldest form
 * of every node (op->form: nodes are in their operator's newest form, which is valid from there on), and 17.
 * The first makes sure that attributes and element types which the file used stay allowed; the last covers
 * the nodes that liftings make (types that came to an operator between its form and 17). So the result is
 * valid, but not proven the smallest. One gap: a model-local function may import a newer opset than its
 * model, which is not known any more once it is inlined. Other domains keep the version that was imported.
 */
#include "export.h"

#include <stdio.h>

enum {
    EXTERNAL_ALIGNMENT = 4096, /* of elements in the external file: mapped pages can be used in place */
    PIECE_BYTES = 4 << 20      /* of weights that are resident while they are written */
};
#define MAX_MODEL_BYTES (UINT64_C(0x7fffffff)) /* of one protobuf message */

static bool is_external(const ortc_constant *c, const char *external, uint64_t from)
{
    return external && c->dtype != ORTC_STRING && c->bytes > 0 && c->bytes >= from;
}

/* ---- Versions ------------------------------------------------------------------------------------------ */

/* IR 10 is what the release of opset 21 and 22 wrote, and is read by everything of that age for older opsets
 * too. Newer opsets, and element types that came later, need more. */
static int64_t ir_version(const ortc_exporter *x)
{
    static const struct {
        ortc_dtype dtype;
        int64_t ir;
    } types[] = {{ORTC_F4E2M1, 11}, {ORTC_F8E8M0, 12}, {ORTC_U2, 13},
                 {ORTC_I2, 13},     {ORTC_F6E2M3, 14}, {ORTC_F6E3M2, 14}};
    int64_t opset = x->domains.data[0].version, ir = opset <= 22   ? 10
                                                     : opset == 23 ? 11
                                                     : opset == 24 ? 12
                                                                   : 13;

    for (size_t i = 0; i < ORTC_LENGTH(types); i++)
        if (x->dtypes >> types[i].dtype & 1 && ir < types[i].ir) ir = types[i].ir;
    return ir;
}

static bool begin_domains(ortc_exporter *x)
{
    int64_t opset = ORTC_EXPORT_LEAST_OPSET;

    for (size_t i = 0; i < x->info->n_opsets; i++)
        if (!*x->info->opset_domains[i] && x->info->opset_versions[i] > opset)
            opset = x->info->opset_versions[i];
    return ortc_array_push(&x->domains, (ortc_export_domain){"", opset});
}

/* ---- The model's own fields ---------------------------------------------------------------------------- */

static void export_pair(ortc_message *to, uint32_t field, const char *key, const char *value)
{
    ortc_message m = {0};
    ortc_message_bytes(&m, 1, key, strlen(key));
    ortc_message_bytes(&m, 2, value, strlen(value));
    ortc_message_take(to, field, &m);
}

static void export_model(const ortc_exporter *x, ortc_message *to)
{
    const ortc_model_info *info = x->info;

    ortc_message_int(to, ORTC_MODEL_IR_VERSION, ir_version(x));
    ortc_message_text(to, ORTC_MODEL_PRODUCER_NAME, "ortc");
    ortc_message_text(to, ORTC_MODEL_PRODUCER_VERSION, ortc_version());
    ortc_message_text(to, ORTC_MODEL_DOMAIN, info->domain);
    if (info->model_version) ortc_message_int(to, ORTC_MODEL_VERSION, info->model_version);
    ortc_message_text(to, ORTC_MODEL_DOC, info->doc);
    for (size_t i = 0; i < x->domains.count; i++) {
        ortc_message m = {0};
        ortc_message_bytes(&m, 1, x->domains.data[i].domain, strlen(x->domains.data[i].domain));
        ortc_message_int(&m, 2, x->domains.data[i].version);
        ortc_message_take(to, ORTC_MODEL_OPSET, &m);
    }
    for (size_t i = 0; i < info->n_metadata; i++)
        export_pair(to, ORTC_MODEL_METADATA, info->metadata_keys[i], info->metadata_values[i]);
}

/* ---- Initializers -------------------------------------------------------------------------------------- */

/* The message but for raw_data's bytes, which follow it: head->bytes. */
static void initializer_head(ortc_exporter *x, const ortc_export_constant *i, ortc_message *head)
{
    const ortc_constant *c = i->constant;

    ortc_export_tensor(x, i->name, c->dtype, c->rank, c->dims, c->dtype == ORTC_STRING ? c->data : NULL,
                       head);
    if (c->dtype != ORTC_STRING && c->bytes) ortc_message_head(head, ORTC_TENSOR_RAW, c->bytes);
}

static void external_initializer(ortc_exporter *x, const ortc_export_constant *i, const char *file,
                                 uint64_t offset, ortc_message *to)
{
    const ortc_constant *c = i->constant;
    char number[24];

    ortc_export_tensor(x, i->name, c->dtype, c->rank, c->dims, NULL, to);
    export_pair(to, ORTC_TENSOR_EXTERNAL, "location", file);
    snprintf(number, sizeof number, "%llu", (unsigned long long)offset);
    export_pair(to, ORTC_TENSOR_EXTERNAL, "offset", number);
    snprintf(number, sizeof number, "%llu", (unsigned long long)c->bytes);
    export_pair(to, ORTC_TENSOR_EXTERNAL, "length", number);
    ortc_message_int(to, ORTC_TENSOR_LOCATION, 1);
}

/* ---- Files --------------------------------------------------------------------------------------------- */

/* What the two files are made from. */
typedef struct parts {
    ortc_message model; /* the model's fields, and the head of its graph */
    ortc_message nodes, ends;
    ortc_message *heads; /* of the initializers: field, length, and all but raw elements */
    uint64_t graph_bytes;
} parts;

/* Initializers' messages, and where in the external file their elements will lie. */
static ortc_status make_initializers(ortc_exporter *x, parts *p, const char *external, uint64_t from)
{
    uint64_t end = 0;

    p->heads = ortc_arena_array(&x->arena, x->initializers.count, sizeof *p->heads);
    if (!p->heads) return ortc_no_memory(x->error, 0);
    for (size_t i = 0; i < x->initializers.count; i++) {
        const ortc_export_constant *it = &x->initializers.data[i];
        const ortc_constant *c = it->constant;
        bool outside = is_external(c, external, from);
        uint64_t raw = outside || c->dtype == ORTC_STRING ? 0 : c->bytes;
        ortc_message body = {0};
        if (outside) {
            end = (end + EXTERNAL_ALIGNMENT - 1) / EXTERNAL_ALIGNMENT * EXTERNAL_ALIGNMENT;
            external_initializer(x, it, external, end, &body);
            end += c->bytes;
        } else {
            initializer_head(x, it, &body);
        }
        ortc_message *head = &p->heads[i];
        ortc_message_head(head, ORTC_GRAPH_INITIALIZER, body.bytes.count + raw);
        ortc_message_append(head, &body);
        p->graph_bytes += head->bytes.count + raw;
        if (head->failed) return ortc_no_memory(x->error, 0);
    }
    return ORTC_OK;
}

static ortc_status make_parts(ortc_exporter *x, const ortc_graph *g, const char *external, uint64_t from,
                              parts *p)
{
    if (!begin_domains(x)) return ortc_no_memory(x->error, 0);
    ORTC_TRY(ortc_export_graph(x, g, &p->nodes, &p->ends));
    if (p->nodes.failed || p->ends.failed) return ortc_no_memory(x->error, p->nodes.bytes.count);
    ORTC_TRY(make_initializers(x, p, external, from));
    p->graph_bytes += p->nodes.bytes.count + p->ends.bytes.count;
    export_model(x, &p->model);
    ortc_message_head(&p->model, ORTC_MODEL_GRAPH, p->graph_bytes);
    if (p->model.failed) return ortc_no_memory(x->error, 0);
    if (p->graph_bytes + p->model.bytes.count > MAX_MODEL_BYTES)
        return ortc_fail(x->error, ORTC_LIMIT,
                         "the model takes %llu bytes, one file holds at most 2 GiB: put the weights "
                         "into an external file",
                         (unsigned long long)(p->graph_bytes + p->model.bytes.count));
    return ORTC_OK;
}

/* In pieces, each of which leaves our resident size once it is written: weights may be larger than memory. */
static ortc_status write_elements(const ortc_constant *c, ortc_file *f)
{
    for (size_t at = 0; at < c->bytes; at += PIECE_BYTES) {
        const char *piece = (const char *)c->data + at;
        size_t bytes = c->bytes - at < PIECE_BYTES ? c->bytes - at : PIECE_BYTES;
        ORTC_TRY(ortc_file_write(f, piece, bytes));
        if (c->mapped) ortc_mapping_drop(piece, bytes);
    }
    return ORTC_OK;
}

static ortc_status write_external(const ortc_exporter *x, const char *external, uint64_t from, ortc_file *f)
{
    for (size_t i = 0; i < x->initializers.count; i++) {
        const ortc_constant *c = x->initializers.data[i].constant;
        if (!is_external(c, external, from)) continue;
        ORTC_TRY(
            ortc_file_pad(f, (f->bytes + EXTERNAL_ALIGNMENT - 1) / EXTERNAL_ALIGNMENT * EXTERNAL_ALIGNMENT));
        ORTC_TRY(write_elements(c, f));
    }
    return ORTC_OK;
}

static ortc_status write_message(ortc_file *f, const ortc_message *m)
{
    return ortc_file_write(f, m->bytes.data, m->bytes.count);
}

static ortc_status write_model(const ortc_exporter *x, const parts *p, const char *external, uint64_t from,
                               ortc_file *f)
{
    ORTC_TRY(write_message(f, &p->model));
    ORTC_TRY(write_message(f, &p->nodes));
    for (size_t i = 0; i < x->initializers.count; i++) {
        const ortc_constant *c = x->initializers.data[i].constant;
        ORTC_TRY(write_message(f, &p->heads[i]));
        if (c->dtype == ORTC_STRING || is_external(c, external, from)) continue;
        ORTC_TRY(write_elements(c, f));
    }
    return write_message(f, &p->ends);
}

/* Both are written whole before either gets its name. */
static ortc_status write_files(const ortc_exporter *x, const parts *p, const char *path, const char *external,
                               uint64_t from)
{
    const char *slash = strrchr(path, '/'), *beside = NULL;
    ortc_file model = {.descriptor = -1}, data = {.descriptor = -1};
    ortc_arena names = {0};
    ortc_status status = ORTC_OK;

    if (external) {
        beside = ortc_arena_printf(&names, "%.*s%s", slash ? (int)(slash - path) + 1 : 0, path, external);
        status = beside ? ortc_file_create(&data, beside, x->error) : ortc_no_memory(x->error, 0);
        if (status == ORTC_OK) status = write_external(x, external, from, &data);
    }
    if (status == ORTC_OK) status = ortc_file_create(&model, path, x->error);
    if (status == ORTC_OK) status = write_model(x, p, external, from, &model);
    if (status == ORTC_OK && external) status = ortc_file_commit(&data);
    if (status == ORTC_OK) status = ortc_file_commit(&model);
    ortc_file_close(&model);
    ortc_file_close(&data);
    ortc_arena_deinit(&names);
    return status;
}

ortc_status ortc_onnx_export(const ortc_graph *g, const ortc_model_info *info, const char *path,
                             const char *external, uint64_t external_from, ortc_error *error)
{
    ortc_exporter x = {.info = info, .error = error};
    parts p = {0};
    ortc_status status = make_parts(&x, g, external, external_from, &p);

    if (status == ORTC_OK) status = write_files(&x, &p, path, external, external_from);
    ortc_message_deinit(&p.model);
    ortc_message_deinit(&p.nodes);
    ortc_message_deinit(&p.ends);
    for (size_t i = 0; p.heads && i < x.initializers.count; i++) ortc_message_deinit(&p.heads[i]);
    ortc_map_deinit(&x.names);
    ortc_map_deinit(&x.nodes);
    ortc_map_deinit(&x.constants);
    ortc_array_deinit(&x.initializers);
    ortc_array_deinit(&x.domains);
    ortc_arena_deinit(&x.arena);
    return status;
}
