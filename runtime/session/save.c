/* runtime/session/save.c: models back to files: the options; graph/onnx does the rest. */
#include "session.h"

#define EXTERNAL_FROM 1024 /* below that a page-aligned place in another file costs more than it saves */

ortc_status ortc_model_save(const ortc_model *m, const char *path, const ortc_save_options *options,
                            ortc_error *error)
{
    ortc_save_options o = ORTC_SAVE_OPTIONS_INIT;
    ortc_arena arena = {0};
    ortc_graph *part = NULL, *lowered = NULL;
    ortc_status s = ORTC_OK;

    if (options) memcpy(&o, options, options->size < sizeof o ? options->size : sizeof o);
    if (!m || !path || !*path || path[strlen(path) - 1] == '/')
        return ortc_fail(error, ORTC_INVALID_ARGUMENT,
                         "saving a model expects the model and the path of a file");
    if (o.flags & ~(uint32_t)(ORTC_SAVE_EXTERNAL | ORTC_SAVE_RAISED))
        return ortc_fail(error, ORTC_INVALID_ARGUMENT, "ortc_save_options: unknown flags %#x",
                         (unsigned)o.flags);
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *external = NULL;
    if (o.flags & ORTC_SAVE_EXTERNAL) {
        external = o.external_file ? o.external_file : ortc_arena_printf(&arena, "%s.data", name);
        if (!external)
            s = ortc_no_memory(error, strlen(name));
        else if (!*external || strchr(external, '/') || !strcmp(external, ".") || !strcmp(external, "..") ||
                 !strcmp(external, name))
            s = ortc_fail(error, ORTC_INVALID_ARGUMENT,
                          "the external file '%s' is to be a name without a folder, and not the model's",
                          external);
    }
    if (s == ORTC_OK) s = ortc_onnx_missing(&m->info, error);
    if (s == ORTC_OK && o.n_outputs) s = ortc_onnx_part(m->graph, &o, &part, error);
    const ortc_graph *g = part ? part : m->graph;
    if (s == ORTC_OK && !(o.flags & ORTC_SAVE_RAISED)) s = ortc_onnx_lower(g, &m->info, &lowered, error);
    if (s == ORTC_OK)
        s = ortc_onnx_export(lowered ? lowered : g, &m->info, path, external,
                             o.external_from ? o.external_from : EXTERNAL_FROM, error);
    ortc_graph_destroy(part);
    ortc_graph_destroy(lowered);
    ortc_arena_deinit(&arena);
    return s;
}
