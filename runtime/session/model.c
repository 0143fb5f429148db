/* runtime/session/model.c: models: a source of bytes, the normalised graph, and what describes both. */
#include "evaluate.h"
#include "graph/normalise/normalise.h"
#include "runtime/registry/registry.h"
#include "session.h"

/* ---- Inputs and outputs as callers see them ------------------------------------------------------------ */

static ortc_status describe(ortc_model *m, const ortc_graph_input *ends, uint32_t n, bool inputs,
                            ortc_io **out, ortc_error *error)
{
    ortc_graph *g = m->graph;
    ortc_io *list = ortc_arena_array(&g->arena, n + 1u, sizeof *list);
    if (!list) return ortc_no_memory(error, n * sizeof *list);
    for (uint32_t i = 0; i < n; i++) {
        const ortc_edge *e = ends[i].edge;
        ortc_io *io = &list[i];
        io->size = sizeof *io;
        io->flags = inputs && (e->constant || (e->type && e->type->kind == ORTC_KIND_OPTIONAL))
                        ? ORTC_IO_OPTIONAL
                        : 0;
        io->name = ends[i].name;
        io->doc = ends[i].doc;
        io->type = e->type;
        io->dtype = e->type && e->type->kind == ORTC_KIND_TENSOR ? e->type->dtype : 0;
        io->rank = e->rank;
        size_t rank = e->rank > 0 ? (size_t)e->rank : 0;
        int64_t *dims = ortc_arena_array(&g->arena, rank, sizeof *dims);
        const char **symbols = ortc_arena_array(&g->arena, rank, sizeof *symbols);
        if (!dims || !symbols) return ortc_no_memory(error, rank * sizeof *dims);
        for (size_t k = 0; k < rank; k++) {
            bool number = ortc_dim_is_number(e->dims[k]);
            dims[k] = number ? e->dims[k] : -1;
            if (number) continue;
            const ortc_dim_expr *x = e->dims[k] == ORTC_DIM_UNKNOWN
                                         ? NULL
                                         : &g->dims->exprs.data[ORTC_DIM_NUMBERS - 1 - e->dims[k]];
            if (x && x->what == 0)
                symbols[k] = g->dims->symbols.data[x->symbol];
            else if (x) { /* an expression: shown as it is written */
                char buffer[128];
                ortc_text t = ORTC_TEXT(buffer);
                ortc_dims_text(g->dims, e->dims[k], &t);
                symbols[k] = ortc_arena_string(&g->arena, buffer, t.length);
            }
        }
        io->dims = dims;
        io->symbols = symbols;
    }
    *out = list;
    return ORTC_OK;
}

/* ---- Loading ------------------------------------------------------------------------------------------- */

/* What folding may do for any file, and for what a file brings. */
#define FREE_OPERATIONS UINT64_C(500000000)
#define OPERATIONS_PER_BYTE 500

static uint64_t fold_operations(const ortc_model *m, const ortc_model_options *o)
{
    const uint64_t bytes = m->info.weight_bytes;
    if (o->fold_operations) return o->fold_operations;
    if (bytes > (UINT64_MAX - FREE_OPERATIONS) / OPERATIONS_PER_BYTE) return UINT64_MAX;
    return FREE_OPERATIONS + OPERATIONS_PER_BYTE * bytes;
}

static ortc_status normalise(ortc_model *m, const ortc_model_options *o, const ortc_stop *stop,
                             ortc_error *error)
{
    ortc_graph *g = m->graph;
    uint64_t *edits = ortc_arena_array(&g->arena, ortc_normalise_n_passes, sizeof *edits);
    const char **names = ortc_arena_array(&g->arena, ortc_normalise_n_passes, sizeof *names);
    if (!edits || !names) return ortc_no_memory(error, 0);
    for (size_t i = 0; i < ortc_normalise_n_passes; i++) names[i] = ortc_normalise_passes[i].name;
    m->info.n_passes = ortc_normalise_n_passes;
    m->info.pass_names = names;
    m->info.pass_edits = edits;
    for (size_t i = 0; i < o->n_passes_off; i++) {
        bool known = false;
        if (!o->passes_off || !o->passes_off[i])
            return ortc_fail(error, ORTC_INVALID_ARGUMENT, "passes_off: name %zu of %zu is NULL", i,
                             o->n_passes_off);
        for (size_t k = 0; k < ortc_normalise_n_passes; k++) known |= !strcmp(o->passes_off[i], names[k]);
        if (!known)
            return ortc_fail(error, ORTC_NOT_FOUND, "there is no normalising pass '%s'", o->passes_off[i]);
    }
    if (o->flags & ORTC_MODEL_NO_PASSES) return ORTC_OK;
    ortc_evaluation by = {m, stop, fold_operations(m, o)};
    ortc_normalise n = {.graph = g,
                        .error = error,
                        .stop = stop,
                        .evaluate = ortc_evaluate_node,
                        .evaluate_arg = &by,
                        .weight_bytes = m->info.weight_bytes};
    ORTC_TRY(ortc_normalise_run(&n, o->passes_off, o->n_passes_off, edits));
    m->info.n_unfolded = n.unfolded;
    if (n.unfolded)
        ortc_log(ORTC_LOG_WARNING,
                 "%llu nodes over constants are left to the runs: they take more than fold_operations",
                 (unsigned long long)n.unfolded);
    return ORTC_OK;
}

/* Constants in memory of ours: decoded, folded, small. Those in a file's map or the caller's memory are
 * not. */
static uint64_t owned_bytes(const ortc_graph *g)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < g->edges.count; i++) {
        const ortc_constant *c = g->edges.data[i]->constant;
        bytes += c && c->release ? c->bytes : 0;
    }
    for (size_t i = 0; i < g->children.count; i++) bytes += owned_bytes(g->children.data[i]);
    return bytes;
}

static ortc_status limit_constants(ortc_model *m, ortc_error *error)
{
    m->packed.constants = ortc_source_owned(m->source) + owned_bytes(m->graph);
    if (m->packed.max_bytes && m->packed.constants > m->packed.max_bytes)
        return ortc_fail(
            error, ORTC_LIMIT,
            "the model's constants take %llu bytes of memory, more than the limit of %llu (max_bytes)",
            (unsigned long long)m->packed.constants, (unsigned long long)m->packed.max_bytes);
    return ORTC_OK;
}

/* ---- Tables: few rows of them are read (embeddings) ---- */
enum { LEAST_TABLE = 4 << 20 };

typedef struct table {
    const void *data;
    size_t bytes;
    void (*release)(void *); /* what released the constant before */
    void *release_arg;
} table;

static void end_table(void *arg)
{
    table *t = arg;
    ortc_mapping_again_end(t->data, t->bytes);
    if (t->release) t->release(t->release_arg);
    free(t);
}

/* Large ones in the model's files are read where huge pages do not take them in. Nobody has seen the graph
 * yet; where it is not to be had, they stay where they are. */
static void map_tables(const ortc_graph *g)
{
    for (const ortc_node *n = g->first; n; n = n->next) {
        if (!n->op || !(n->op->flags & ORTC_OP_PICKS) || !n->n_in || !n->in[0]) continue;
        ortc_constant *c = n->in[0]->constant;
        if (!c || !c->mapped || c->bytes < LEAST_TABLE || c->release == end_table) continue;
        table *t = malloc(sizeof *t);
        const void *again = t ? ortc_mapping_again(c->data, c->bytes) : NULL;
        if (!again) {
            free(t);
            continue;
        }
        *t = (table){again, c->bytes, c->release, c->release_arg};
        c->data = again;
        c->release = end_table;
        c->release_arg = t;
    }
    for (size_t i = 0; i < g->children.count; i++) map_tables(g->children.data[i]);
}

static ortc_status fill_model(ortc_model *m, const ortc_model_options *o, ortc_error *error)
{
    const bool look = o->flags & ORTC_MODEL_DESCRIBE;
    const ortc_stop stop = {"loading", o->cancel, o->deadline_ns};
    ORTC_TRY((look ? ortc_onnx_describe : ortc_onnx_import)(m->source, &stop, &m->graph, &m->info, error));
    ORTC_TRY(describe(m, m->graph->inputs, m->graph->n_inputs, true, &m->inputs, error));
    ORTC_TRY(describe(m, m->graph->outputs, m->graph->n_outputs, false, &m->outputs, error));
    if (look) return ORTC_OK;
    ORTC_TRY(normalise(m, o, &stop, error));
    ORTC_TRY(limit_constants(m, error));
    map_tables(m->graph);
    return ortc_graph_verify(m->graph, error);
}

/* Takes the source over. */
static ortc_status load(ortc_source *source, const ortc_model_options *options, ortc_model **out,
                        ortc_error *error)
{
    ortc_model_options o = ORTC_MODEL_OPTIONS_INIT;
    if (options) memcpy(&o, options, options->size < sizeof o ? options->size : sizeof o);
    if (o.flags & ~(uint32_t)(ORTC_MODEL_NO_PASSES | ORTC_MODEL_FOLLOW_LINKS | ORTC_MODEL_DESCRIBE |
                              ORTC_MODEL_INTERLEAVE)) {
        ortc_source_close(source);
        return ortc_fail(error, ORTC_INVALID_ARGUMENT, "ortc_model_options: unknown flags %#x",
                         (unsigned)o.flags);
    }
    ortc_model *m = calloc(1, sizeof *m);
    if (!m || !ortc_pack_store_init(&m->packed, o.max_bytes)) {
        free(m);
        ortc_source_close(source);
        return ortc_no_memory(error, sizeof *m);
    }
    atomic_init(&m->references, 1);
    m->source = source;
    m->packed.interleaved = o.flags & ORTC_MODEL_INTERLEAVE;
    ortc_fp_env fp = ortc_fp_enter();
    ortc_status s = fill_model(m, &o, error);
    ortc_fp_leave(fp);
    if (s != ORTC_OK)
        ortc_model_release(m);
    else
        *out = m;
    return s;
}

static ortc_status check_load(ortc_model **out, ortc_error *error)
{
    if (!out) return ortc_fail(error, ORTC_INVALID_ARGUMENT, "no place for the model is given");
    *out = NULL;
    return ortc_registry_init(error);
}

ortc_status ortc_model_load(const char *path, const ortc_model_options *o, ortc_model **out,
                            ortc_error *error)
{
    ortc_source *source;
    ORTC_TRY(check_load(out, error));
    if (!path) return ortc_fail(error, ORTC_INVALID_ARGUMENT, "the path of the model is NULL");
    ORTC_TRY(ortc_source_open_file(path, o && (o->flags & ORTC_MODEL_FOLLOW_LINKS), &source, error));
    ortc_status s = load(source, o, out, error);
    if (s != ORTC_OK) ortc_error_prefix(error, "%s: ", path);
    return s;
}

ortc_status ortc_model_load_memory(const void *data, size_t bytes, const ortc_model_options *o,
                                   ortc_model **out, ortc_error *error)
{
    ortc_source *source;
    ORTC_TRY(check_load(out, error));
    ORTC_TRY(ortc_source_open_memory(data, bytes, &source, error));
    return load(source, o, out, error);
}

ortc_status ortc_model_load_reader(const ortc_reader *reader, const ortc_model_options *o, ortc_model **out,
                                   ortc_error *error)
{
    ortc_source *source;
    ortc_status s = check_load(out, error);
    if (s != ORTC_OK) { /* the reader is ours to close, whatever happens */
        if (reader && reader->close) reader->close(reader->arg);
        return s;
    }
    if (!reader) return ortc_fail(error, ORTC_INVALID_ARGUMENT, "the reader is NULL");
    ORTC_TRY(ortc_source_open_reader(reader, &source, error));
    return load(source, o, out, error);
}

ortc_model *ortc_model_retain(ortc_model *m)
{
    if (m) atomic_fetch_add_explicit(&m->references, 1, memory_order_relaxed);
    return m;
}

void ortc_model_release(ortc_model *m)
{
    if (!m || atomic_fetch_sub_explicit(&m->references, 1, memory_order_acq_rel) != 1) return;
    ortc_pack_store_deinit(&m->packed);
    ortc_graph_destroy(m->graph);
    ortc_source_close(m->source);
    free(m);
}

const ortc_io *ortc_model_input(const ortc_model *m, size_t i)
{
    return i < m->graph->n_inputs ? &m->inputs[i] : NULL;
}
const ortc_io *ortc_model_output(const ortc_model *m, size_t i)
{
    return i < m->graph->n_outputs ? &m->outputs[i] : NULL;
}
const ortc_model_info *ortc_model_describe(const ortc_model *m) { return &m->info; }
