/* graph/onnx/source.c: where a model's bytes come from: a mapped file, memory, or the application's reader;
 * and the external data beside it, each file opened once.
 *
 * A file's model finds its neighbours in the folder of the path that was given, and nowhere else. A reader
 * that can map is used in place; one that cannot is read into memory as a whole. Checksums of external files
 * are not verified: that would read every byte of what loading leaves on the disk.
 */
#include "source.h"

enum {
    MAX_FILES = 4096,
    LEAST_DROPPED = 1 << 20 /* bytes of a file; pages of a smaller one cost more to find again */
};

/* One opened thing. */
typedef struct content {
    ortc_source_bytes view;
    ortc_mapping mapping;
    ortc_reader reader; /* size 0: none */
    void *owned;
} content;

typedef struct neighbour {
    char *location;
    content content;
} neighbour;

struct ortc_source {
    content model;
    char *folder; /* NULL: not a file */
    bool follow_links;
    ORTC_ARRAY(neighbour *) files;
    ortc_map by_location; /* neighbour */
};

static void close_content(content *c)
{
    ortc_unmap_file(&c->mapping);
    free(c->owned);
    if (c->reader.size && c->reader.close) c->reader.close(c->reader.arg);
    *c = (content){0};
}

/* Fills a content from the reader in it. */
static ortc_status read_content(content *c, ortc_error *error)
{
    ortc_reader *r = &c->reader;
    uint64_t bytes;

    if (!r->bytes || (!r->read_at && !r->map))
        return ortc_fail(error, ORTC_INVALID_ARGUMENT, "a reader needs `bytes`, and `read_at` or `map`");
    bytes = r->bytes(r->arg);
    if (bytes > PTRDIFF_MAX)
        return ortc_fail(error, ORTC_LIMIT, "the reader has %llu bytes, more than can be addressed",
                         (unsigned long long)bytes);
    c->view.bytes = (size_t)bytes;
    c->view.data = r->map ? r->map(r->arg) : NULL;
    if (c->view.data || bytes == 0) return ORTC_OK;
    if (!r->read_at)
        return ortc_fail(error, ORTC_IO, "the reader could not map its bytes and has no `read_at`");
    c->owned = malloc((size_t)bytes);
    if (!c->owned) return ortc_no_memory(error, (size_t)bytes);
    c->view.data = c->owned;
    return r->read_at(r->arg, 0, c->owned, (size_t)bytes, error);
}

static ortc_reader copy_reader(const ortc_reader *from)
{
    ortc_reader r = {0};
    memcpy(&r, from, from->size < sizeof r ? from->size : sizeof r);
    r.size = sizeof r;
    return r;
}

static void use_mapping(content *c)
{
    c->view = (ortc_source_bytes){c->mapping.data, c->mapping.bytes, c->mapping.data && !c->mapping.read};
}

/* ---- Opening ------------------------------------------------------------------------------------------- */

ortc_status ortc_source_open_file(const char *path, bool follow_links, ortc_source **out, ortc_error *error)
{
    ortc_source *s = calloc(1, sizeof *s);
    const char *slash = strrchr(path, '/');
    ortc_status status;

    *out = NULL;
    if (!s) return ortc_no_memory(error, sizeof *s);
    s->follow_links = follow_links;
    s->folder = !slash ? strdup(".") : strndup(path, slash == path ? 1 : (size_t)(slash - path));
    status = s->folder ? ortc_map_file(path, &s->model.mapping, error) : ortc_no_memory(error, strlen(path));
    if (status != ORTC_OK) {
        ortc_source_close(s);
        return status;
    }
    use_mapping(&s->model);
    *out = s;
    return ORTC_OK;
}

ortc_status ortc_source_open_memory(const void *data, size_t bytes, ortc_source **out, ortc_error *error)
{
    ortc_source *s;

    *out = NULL;
    if (!data && bytes > 0)
        return ortc_fail(error, ORTC_INVALID_ARGUMENT, "data is NULL: expected %zu bytes", bytes);
    s = calloc(1, sizeof *s);
    if (!s) return ortc_no_memory(error, sizeof *s);
    s->model.view = (ortc_source_bytes){data, bytes, false};
    *out = s;
    return ORTC_OK;
}

ortc_status ortc_source_open_reader(const ortc_reader *reader, ortc_source **out, ortc_error *error)
{
    ortc_source *s = calloc(1, sizeof *s);
    ortc_reader copy = copy_reader(reader);
    ortc_status status;

    *out = NULL;
    if (!s) {
        if (copy.close) copy.close(copy.arg);
        return ortc_no_memory(error, sizeof *s);
    }
    s->model.reader = copy;
    status = read_content(&s->model, error);
    if (status != ORTC_OK) {
        ortc_source_close(s);
        return status;
    }
    *out = s;
    return ORTC_OK;
}

uint64_t ortc_source_owned(const ortc_source *s)
{
    uint64_t bytes = s->model.owned ? s->model.view.bytes : 0;
    for (size_t i = 0; i < s->files.count; i++)
        bytes += s->files.data[i]->content.owned ? s->files.data[i]->content.view.bytes : 0;
    return bytes;
}

void ortc_source_close(ortc_source *s)
{
    if (!s) return;
    for (size_t i = 0; i < s->files.count; i++) {
        close_content(&s->files.data[i]->content);
        free(s->files.data[i]->location);
        free(s->files.data[i]);
    }
    ortc_array_deinit(&s->files);
    ortc_map_deinit(&s->by_location);
    close_content(&s->model);
    free(s->folder);
    free(s);
}

ortc_source_bytes ortc_source_model(const ortc_source *s) { return s->model.view; }

static void drop(const ortc_mapping *m)
{
    if (!m->read && m->bytes >= LEAST_DROPPED) ortc_mapping_drop(m->data, m->bytes);
}

void ortc_source_drop(const ortc_source *s)
{
    drop(&s->model.mapping);
    for (size_t i = 0; i < s->files.count; i++) drop(&s->files.data[i]->content.mapping);
}

/* ---- Neighbours ---------------------------------------------------------------------------------------- */

static ortc_status open_neighbour(ortc_source *s, const char *location, content *out, ortc_error *error)
{
    ortc_reader opened = {.size = sizeof opened};

    if (s->folder) {
        ORTC_TRY(ortc_map_file_beneath(s->folder, location, s->follow_links, &out->mapping, error));
        use_mapping(out);
        return ORTC_OK;
    }
    if (!ortc_path_stays_beneath(location))
        return ortc_fail(error, ORTC_INVALID_MODEL,
                         "'%s' leads out of the model's folder: expected a relative path without '..'",
                         location);
    if (!s->model.reader.size || !s->model.reader.open)
        return ortc_fail(error, ORTC_NOT_FOUND,
                         "external data in '%s' cannot be reached: the model is not loaded from a file%s",
                         location, s->model.reader.size ? ", and its reader opens no others" : "");
    ORTC_TRY(s->model.reader.open(s->model.reader.arg, location, &opened, error));
    out->reader = copy_reader(&opened);
    return read_content(out, error);
}

ortc_status ortc_source_beside(ortc_source *s, const char *location, ortc_source_bytes *out,
                               ortc_error *error)
{
    neighbour *n = ortc_map_get(&s->by_location, location);
    ortc_status status;

    if (n) {
        *out = n->content.view;
        return ORTC_OK;
    }
    if (s->files.count == MAX_FILES)
        return ortc_fail(error, ORTC_LIMIT, "more than %d files of external data", MAX_FILES);
    n = calloc(1, sizeof *n);
    if (!n || !(n->location = strdup(location)) || !ortc_array_reserve(&s->files, s->files.count + 1)) {
        free(n ? n->location : NULL);
        free(n);
        return ortc_no_memory(error, sizeof *n);
    }
    status = open_neighbour(s, location, &n->content, error);
    if (status == ORTC_OK && !ortc_map_set(&s->by_location, n->location, n))
        status = ortc_no_memory(error, sizeof *n);
    if (status != ORTC_OK) {
        close_content(&n->content);
        free(n->location);
        free(n);
        return status;
    }
    s->files.data[s->files.count++] = n;
    *out = n->content.view;
    return ORTC_OK;
}
