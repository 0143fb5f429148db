/* graph/onnx/import_info.c: what describes a model, and the list of operators that are missing.
 */
#include "import.h"

#include <stdio.h>

void ortc_import_prefix(ortc_error *error, const Onnx__NodeProto *node)
{
    if (node->name && *node->name)
        ortc_error_prefix(error, "node '%s' (%s): ", node->name, ortc_proto_text(node->op_type));
    else
        ortc_error_prefix(error, "node of output '%s' (%s): ", node->n_output ? node->output[0] : "",
                          ortc_proto_text(node->op_type));
}

/* ---- Missing operators --------------------------------------------------------------------------------- */

ortc_status ortc_import_miss(ortc_scope *s, const Onnx__NodeProto *node, bool known)
{
    ortc_importer *in = s->in;
    const char *domain = ortc_proto_domain(node->domain), *op = ortc_proto_text(node->op_type);
    const char *key = ortc_arena_printf(&in->arena, "%s\n%s", op, domain);
    ortc_missing *m = key ? ortc_map_get(&in->missing, key) : NULL;

    if (!m) {
        m = ortc_arena_alloc(&in->arena, sizeof *m);
        if (!key || !m || !ortc_map_set(&in->missing, key, m) || !ortc_array_push(&in->missing_list, m))
            return ortc_no_memory(in->error, sizeof *m);
        *m = (ortc_missing){op, domain, ortc_scope_opset(s, domain), known, 0};
    }
    m->count++;
    return ORTC_OK;
}

static const char *describe_missing(ortc_importer *in, const ortc_missing *m)
{
    char buffer[240];
    ortc_text text = ORTC_TEXT(buffer);

    ortc_text_add(&text, "%.60s (", m->op);
    if (*m->domain) ortc_text_add(&text, "domain %.60s, ", m->domain);
    if (m->known) ortc_text_add(&text, "not in opset %lld, ", (long long)m->opset);
    ortc_text_add(&text, "%llu node%s)", (unsigned long long)m->count, m->count == 1 ? "" : "s");
    return ortc_arena_string(&in->root->arena, buffer, text.length);
}

/* "Foo (domain my.domain, 3 nodes), Bar (opset 7, 1 node)": as many as an error's text has room for. */
ortc_status ortc_onnx_missing(const ortc_model_info *info, ortc_error *error)
{
    char buffer[900];
    ortc_text text = ORTC_TEXT(buffer);
    size_t n = info->n_missing;

    if (n == 0) return ORTC_OK;
    for (size_t i = 0; i < n; i++) {
        if (text.length > sizeof buffer - 160) {
            ortc_text_add(&text, " and %zu more", n - i);
            break;
        }
        ortc_text_add(&text, "%s%s", i ? ", " : "", info->missing[i]);
    }
    return ortc_fail(error, ORTC_UNSUPPORTED, "%zu operator%s not supported: %s", n, n == 1 ? " is" : "s are",
                     buffer);
}

ortc_status ortc_import_report_missing(ortc_importer *in, ortc_model_info *out)
{
    size_t n = in->missing_list.count;
    const char **list = ortc_arena_array(&in->root->arena, n, sizeof *list);

    for (size_t i = 0; list && i < n; i++)
        if (!(list[i] = describe_missing(in, in->missing_list.data[i]))) return ortc_no_memory(in->error, 0);
    if (!list) return ortc_no_memory(in->error, n * sizeof *list);
    out->n_missing = n;
    out->missing = list;
    return in->describe ? ORTC_OK : ortc_onnx_missing(out, in->error);
}

/* ---- Counting operators -------------------------------------------------------------------------------- */

typedef struct op_count {
    const char *name;
    uint64_t count;
} op_count;

typedef struct census {
    ortc_importer *in;
    ortc_map by_name;
    ORTC_ARRAY(op_count *) list;
    uint64_t n_nodes;
} census;

static ortc_status count_node(census *c, const Onnx__NodeProto *node)
{
    const char *domain = ortc_proto_domain(node->domain), *op = ortc_proto_text(node->op_type);
    const char *name = *domain ? ortc_arena_printf(&c->in->arena, "%s.%s", domain, op) : op;
    op_count *o = name ? ortc_map_get(&c->by_name, name) : NULL;

    if (!o) {
        o = ortc_arena_alloc(&c->in->arena, sizeof *o);
        if (!name || !o || !ortc_map_set(&c->by_name, name, o) || !ortc_array_push(&c->list, o))
            return ortc_no_memory(c->in->error, sizeof *o);
        o->name = name;
    }
    o->count++;
    c->n_nodes++;
    return ORTC_OK;
}

static ortc_status count_graph(census *c, const Onnx__GraphProto *g)
{
    for (size_t i = 0; i < g->n_node; i++) {
        const Onnx__NodeProto *node = g->node[i];
        ORTC_TRY(count_node(c, node));
        for (size_t k = 0; k < node->n_attribute; k++) {
            const Onnx__AttributeProto *a = node->attribute[k];
            if (a->g) ORTC_TRY(count_graph(c, a->g));
            for (size_t j = 0; j < a->n_graphs; j++) ORTC_TRY(count_graph(c, a->graphs[j]));
        }
    }
    return ORTC_OK;
}

static int most_frequent_first(const void *a, const void *b)
{
    const op_count *x = *(op_count *const *)a, *y = *(op_count *const *)b;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    return strcmp(x->name, y->name);
}

static ortc_status describe_ops(ortc_importer *in, census *c, ortc_model_info *out)
{
    ortc_arena *arena = &in->root->arena;
    const char **names;
    uint64_t *counts;

    ORTC_TRY(count_graph(c, in->model->graph));
    names = ortc_arena_array(arena, c->list.count, sizeof *names);
    counts = ortc_arena_array(arena, c->list.count, sizeof *counts);
    if (!names || !counts) return ortc_no_memory(in->error, c->list.count * sizeof *names);
    if (c->list.count) qsort(c->list.data, c->list.count, sizeof *c->list.data, most_frequent_first);
    for (size_t i = 0; i < c->list.count; i++) {
        counts[i] = c->list.data[i]->count;
        names[i] = ortc_arena_string(arena, c->list.data[i]->name, strlen(c->list.data[i]->name));
        if (!names[i]) return ortc_no_memory(in->error, 0);
    }
    out->n_nodes = c->n_nodes;
    out->n_ops = c->list.count;
    out->op_names = names;
    out->op_counts = counts;
    return ORTC_OK;
}

/* ---- The rest ------------------------------------------------------------------------------------------ */

/* A copy in the graph's arena; false when memory is short. */
static bool keep(ortc_importer *in, const char *s, const char **out)
{
    s = ortc_proto_text(s);
    *out = ortc_arena_string(&in->root->arena, s, strlen(s));
    return *out != NULL;
}

static bool describe_lists(ortc_importer *in, ortc_model_info *out)
{
    const Onnx__ModelProto *m = in->model;
    ortc_arena *arena = &in->root->arena;
    const char **domains = ortc_arena_array(arena, m->n_opset_import, sizeof *domains);
    int64_t *versions = ortc_arena_array(arena, m->n_opset_import, sizeof *versions);
    const char **keys = ortc_arena_array(arena, m->n_metadata_props, sizeof *keys);
    const char **values = ortc_arena_array(arena, m->n_metadata_props, sizeof *values);

    if (!domains || !versions || !keys || !values) return false;
    for (size_t i = 0; i < m->n_opset_import; i++) {
        versions[i] = m->opset_import[i]->version;
        if (!keep(in, ortc_proto_domain(m->opset_import[i]->domain), &domains[i])) return false;
    }
    for (size_t i = 0; i < m->n_metadata_props; i++)
        if (!keep(in, m->metadata_props[i]->key, &keys[i]) ||
            !keep(in, m->metadata_props[i]->value, &values[i]))
            return false;
    out->n_opsets = m->n_opset_import;
    out->opset_domains = domains;
    out->opset_versions = versions;
    out->n_metadata = m->n_metadata_props;
    out->metadata_keys = keys;
    out->metadata_values = values;
    return true;
}

ortc_status ortc_import_describe(ortc_importer *in, ortc_model_info *out)
{
    const Onnx__ModelProto *m = in->model;
    census c = {.in = in};
    ortc_status status;

    *out = (ortc_model_info){.size = sizeof *out};
    out->ir_version = m->ir_version > INT32_MAX ? INT32_MAX : (int32_t)m->ir_version;
    out->model_version = m->model_version;
    out->n_initializers = in->n_initializers;
    out->n_parameters = in->n_parameters;
    out->weight_bytes = in->weight_bytes;
    if (!keep(in, m->producer_name, &out->producer) ||
        !keep(in, m->producer_version, &out->producer_version) || !keep(in, m->domain, &out->domain) ||
        !keep(in, m->graph->name, &out->graph_name) || !keep(in, m->doc_string, &out->doc) ||
        !describe_lists(in, out))
        return ortc_no_memory(in->error, 0);
    status = describe_ops(in, &c, out);
    ortc_map_deinit(&c.by_name);
    ortc_array_deinit(&c.list);
    return status;
}
