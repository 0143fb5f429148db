/* tests/unit/test_export.c: graphs to files and back: subgraphs, attributes of every kind, constants,
 * versions, and that a failure leaves nothing behind. What whole models compute before and after is
 * tests/python/test_optimize.py's.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "graph/onnx/onnx.h"
#include "runtime/registry/registry.h"
#include "wire_writer.h"

static const ortc_op ops[] = {
    ORTC_OP("exp", "Add", 1, 1, "", "a:T b:T", "y:T", "", "T=f32,i64", NULL, NULL, 0),
    ORTC_OP("exp", "Branch", 1, 1, "", "c:bool", "y:all*~", "then_branch:g! else_branch:g!", "T=f32", NULL,
            NULL, ORTC_OP_CONTROL),
    ORTC_OP("exp", "Holder", 3, 2, "2 1", "x:all*~", "y:all*~",
            "i:i? f:f? s:s? t:t? p:p? is:is? fs:fs? ss:ss? ts:ts?", "T=f32", NULL, NULL, 0),
};

static char folder[64], path[128];

static void begin(void)
{
    ortc_error e = ORTC_ERROR_INIT;
    cr_assert(ortc_registry_init(&e) == ORTC_OK, "%s", e.text);
    for (size_t i = 0; i < ORTC_LENGTH(ops); i++)
        cr_assert(ortc_op_add(&ops[i], "test", true, &e) == ORTC_OK, "%s", e.text);
    snprintf(folder, sizeof folder, "/tmp/ortc-export-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/model.onnx", folder);
}

/* Removes the folder; how many files were in it. */
static int end(void)
{
    DIR *d = opendir(folder);
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.') {
            char name[400];
            snprintf(name, sizeof name, "%s/%s", folder, e->d_name);
            unlink(name);
            n++;
        }
    closedir(d);
    rmdir(folder);
    return n;
}

/* ---- Models -------------------------------------------------------------------------------------------- */

typedef struct loaded {
    ortc_graph *graph;
    ortc_model_info info;
    ortc_source *source;
} loaded;

static loaded load_bytes(const buffer *b)
{
    loaded m = {0};
    ortc_error e = ORTC_ERROR_INIT;
    cr_assert(ortc_source_open_memory(b->data, b->bytes, &m.source, &e) == ORTC_OK, "%s", e.text);
    cr_assert(ortc_onnx_import(m.source, NULL, &m.graph, &m.info, &e) == ORTC_OK, "%s", e.text);
    return m;
}

static loaded load_file(void)
{
    loaded m = {0};
    ortc_error e = ORTC_ERROR_INIT;
    cr_assert(ortc_source_open_file(path, false, &m.source, &e) == ORTC_OK, "%s", e.text);
    cr_assert(ortc_onnx_import(m.source, NULL, &m.graph, &m.info, &e) == ORTC_OK, "%s", e.text);
    cr_assert(ortc_graph_verify(m.graph, &e) == ORTC_OK, "%s", e.text);
    return m;
}

static void unload(loaded *m)
{
    ortc_graph_destroy(m->graph);
    ortc_source_close(m->source);
}

static ortc_status save(const loaded *m, const char *external, ortc_error *e)
{
    *e = (ortc_error)ORTC_ERROR_INIT;
    return ortc_onnx_export(m->graph, &m->info, path, external, 1, e);
}

static void put_io(buffer *g, int field, const char *name, int dtype, int rank, const int64_t *dims)
{
    buffer part = make_value_info(name, dtype, rank, dims);
    put_message(g, field, &part);
}

static void put_node(buffer *g, const char *op, const char *in, const char *out)
{
    buffer n = make_node(op, "exp", in, out);
    put_message(g, 1, &n);
}

static void put_name(buffer *g, const char *name)
{
    buffer o = {0};
    put_string(&o, 1, name);
    put_message(g, 12, &o);
}

static void put_branch(buffer *node, const char *name, buffer *graph)
{
    buffer a = {0};
    put_string(&a, 1, name);
    put_int(&a, 20, ORTC_ATTR_GRAPH);
    put_message(&a, 6, graph);
    put_message(node, 5, &a);
}

static buffer finish(buffer *g, int64_t opset, int64_t exp)
{
    buffer m = make_model(8, opset, g);
    put_opset(&m, 8, "exp", exp);
    return m;
}

static buffer start(void)
{
    buffer g = {0};
    put_string(&g, 2, "g");
    put_io(&g, 11, "x", ORTC_F32, 2, (int64_t[]){-1, 4});
    return g;
}

/* ---- Subgraphs ----------------------------------------------------------------------------------------- */

/* Every value that a file defines, in any of its graphs, has a name of its own. */
static void expect_unique(const ortc_graph *g, ortc_map *seen, uint32_t n_captures)
{
    for (uint32_t i = 0; i + n_captures < g->n_inputs; i++) {
        cr_expect_null(ortc_map_get(seen, g->inputs[i].name), "'%s' is there twice", g->inputs[i].name);
        ortc_map_set(seen, g->inputs[i].name, seen);
    }
    for (const ortc_node *n = g->first; n; n = n->next) {
        for (uint32_t i = 0; i < n->n_out; i++) {
            if (!n->out[i]) continue;
            cr_expect_null(ortc_map_get(seen, n->out[i]->name), "'%s' is there twice", n->out[i]->name);
            ortc_map_set(seen, n->out[i]->name, seen);
        }
        for (uint32_t i = 0; i < n->n_attrs; i++)
            for (size_t k = 0; n->attrs[i].value.kind == ORTC_ATTR_GRAPH && k < n->attrs[i].value.count; k++)
                expect_unique(n->attrs[i].value.u.graphs[k], seen, n->n_captures);
    }
}

Test(export, subgraphs_read_outer_values_by_name, .init = begin)
{
    buffer g = start(), then_ = {0}, else_ = {0}, inner = {0}, n;
    put_io(&g, 11, "c", ORTC_BOOL, 0, NULL);
    buffer w = make_tensor("w", ORTC_F32, 2, (int64_t[]){1, 4}, "0123456789abcdef", 16);
    put_message(&g, 5, &w);
    put_node(&g, "Add", "x w", "a");
    /* then: a branch in a branch; names that siblings use too; outputs that are a constant and an outer
     * value */
    put_node(&inner, "Add", "a t", "u");
    put_name(&inner, "u");
    put_node(&then_, "Add", "a w", "t");
    n = make_node("Branch", "exp", "c", "v");
    put_branch(&n, "then_branch", &inner);
    put_node(&inner, "Add", "x t", "u");
    put_name(&inner, "u");
    put_branch(&n, "else_branch", &inner);
    put_message(&then_, 1, &n);
    put_name(&then_, "v");
    put_name(&then_, "w");
    put_name(&then_, "a");
    put_node(&else_, "Add", "x a", "t");
    put_name(&else_, "t");
    put_name(&else_, "t");
    put_name(&else_, "x");
    n = make_node("Branch", "exp", "c", "y0 y1 y2");
    put_branch(&n, "then_branch", &then_);
    put_branch(&n, "else_branch", &else_);
    put_message(&g, 1, &n);
    put_name(&g, "y0");
    put_name(&g, "y2");
    buffer file = finish(&g, 13, 1);

    loaded before = load_bytes(&file);
    ortc_error e;
    cr_assert(save(&before, NULL, &e) == ORTC_OK, "%s", e.text);
    loaded after = load_file();
    ortc_map seen = {0};
    expect_unique(after.graph, &seen, 0);
    ortc_map_deinit(&seen);
    cr_expect(after.info.n_initializers == 1); /* the constant once, wherever it is read */
    const ortc_node *b = after.graph->last;
    /* a, c, x */
    cr_assert(after.graph->n_nodes == 2 && !strcmp(b->type, "Branch") && b->n_captures == 3 && b->n_out == 3);
    cr_expect(b->in[1] == after.graph->first->out[0]);
    const ortc_graph *t = ortc_node_attr(b, "then_branch").u.graphs[0],
                     *o = ortc_node_attr(b, "else_branch").u.graphs[0];
    cr_assert(t->n_outputs == 3 && o->n_outputs == 3);
    cr_expect(t->n_nodes == 4 && o->n_nodes == 3); /* with an Identity for each output that no node made */
    cr_expect_str_eq(t->outputs[1].edge->producer->type, "Identity");
    cr_expect(t->outputs[1].edge->producer->in[0]->constant == after.graph->first->in[1]->constant);
    cr_expect_str_eq(o->outputs[1].edge->producer->type, "Identity");
    cr_expect(o->outputs[1].edge->producer->in[0] == o->outputs[0].edge);
    const ortc_node *nested = t->outputs[0].edge->producer;
    cr_expect(!strcmp(nested->type, "Branch") && nested->n_captures == 3); /* a, t, x */
    unload(&after);
    unload(&before);
    buffer_free(&file);
    cr_expect(end() == 1);
}

/* ---- Attributes ---------------------------------------------------------------------------------------- */

static void put_attr(buffer *node, const char *name, int kind, buffer *value)
{
    buffer a = {0};
    put_string(&a, 1, name);
    put_int(&a, 20, kind);
    put_bytes(&a, value->data, value->bytes);
    buffer_free(value);
    put_message(node, 5, &a);
}

Test(export, attributes_of_every_kind, .init = begin)
{
    buffer g = start(), n = make_node("Holder", "exp", "x - x -", "- y"), v = {0}, t, type = {0}, of = {0};
    put_int(&v, 3, -5), put_attr(&n, "i", ORTC_ATTR_INT, &v);
    put_float(&v, 2, 0.1f), put_attr(&n, "f", ORTC_ATTR_FLOAT, &v);
    put_string(&v, 4, "\xc3\xa4"), put_attr(&n, "s", ORTC_ATTR_STRING, &v);
    t = make_tensor("", ORTC_U4, 1, (int64_t[]){3}, "\x21\x03", 2);
    put_message(&v, 5, &t), put_attr(&n, "t", ORTC_ATTR_TENSOR, &v);
    put_int(&of, 1, ORTC_F16);
    put_message(&type, 1, &of), put_message(&of, 1, &type), put_message(&type, 4, &of); /* sequence(f16) */
    put_message(&v, 14, &type), put_attr(&n, "p", ORTC_ATTR_TYPE_PROTO, &v);
    put_int(&v, 8, 1), put_int(&v, 8, INT64_MIN), put_attr(&n, "is", ORTC_ATTR_INTS, &v);
    put_float(&v, 7, -1), put_float(&v, 7, 2), put_attr(&n, "fs", ORTC_ATTR_FLOATS, &v);
    put_string(&v, 9, "a"), put_string(&v, 9, ""), put_attr(&n, "ss", ORTC_ATTR_STRINGS, &v);
    t = make_tensor("", ORTC_STRING, 1, (int64_t[]){2}, NULL, 0);
    put_string(&t, 6, "one"), put_string(&t, 6, "");
    put_message(&v, 10, &t);
    t = make_tensor("", ORTC_I64, 0, NULL, "\1\0\0\0\0\0\0\0", 8);
    put_message(&v, 10, &t), put_attr(&n, "ts", ORTC_ATTR_TENSORS, &v);
    put_message(&g, 1, &n);
    put_name(&g, "y");
    buffer file = finish(&g, 13, 3);

    loaded before = load_bytes(&file);
    ortc_error e;
    cr_assert(save(&before, NULL, &e) == ORTC_OK, "%s", e.text);
    loaded after = load_file();
    const ortc_node *h = after.graph->first;
    cr_expect(h->n_in == 3 && !h->in[1] && h->in[2] == h->in[0] && h->n_out == 2 && !h->out[0]);
    cr_expect(ortc_node_int(h, "i", 0) == -5 && ortc_node_float(h, "f", 0) == 0.1f);
    cr_expect_str_eq(ortc_node_string(h, "s", ""), "\xc3\xa4");
    ortc_attr a = ortc_node_attr(h, "t");
    cr_assert(a.kind == ORTC_ATTR_TENSOR && a.u.tensors->dtype == ORTC_U4 && a.u.tensors->rank == 1);
    cr_expect(a.u.tensors->dims[0] == 3 && !memcmp(a.u.tensors->data, "\x21\x03", 2));
    a = ortc_node_attr(h, "p");
    cr_expect(a.kind == ORTC_ATTR_TYPE_PROTO && a.u.type->kind == ORTC_KIND_SEQUENCE &&
              a.u.type->of->dtype == ORTC_F16);
    a = ortc_node_attr(h, "is");
    cr_expect(a.count == 2 && a.u.ints[0] == 1 && a.u.ints[1] == INT64_MIN);
    a = ortc_node_attr(h, "fs");
    cr_expect(a.count == 2 && a.u.floats[0] == -1 && a.u.floats[1] == 2);
    a = ortc_node_attr(h, "ss");
    cr_expect(a.count == 2 && !strcmp(a.u.strings[0], "a") && !strcmp(a.u.strings[1], ""));
    a = ortc_node_attr(h, "ts");
    cr_assert(a.count == 2 && a.u.tensors[0].dtype == ORTC_STRING && a.u.tensors[1].rank == 0);
    int64_t length;
    cr_expect(!memcmp(ortc_string_at(a.u.tensors[0].data, 0, &length), "one", 3) && length == 3);
    cr_expect(*(const char *)a.u.tensors[1].data == 1);
    unload(&after);
    unload(&before);
    buffer_free(&file);
    end();
}

/* ---- Constants ----------------------------------------------------------------------------------------- */

static void constants(const char *external)
{
    static const char bytes[64] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde";
    static const struct {
        const char *name;
        int dtype, rank;
        int64_t dims[2];
        size_t bytes;
    } some[] = {{"c0", ORTC_F32, 2, {2, 3}, 24}, {"c1", ORTC_F32, 0, {0}, 4},
                {"c2", ORTC_F32, 2, {3, 0}, 0},  {"c3", ORTC_F4E2M1, 1, {3}, 2},
                {"c4", ORTC_F6E2M3, 1, {5}, 4},  {"c5", ORTC_C128, 1, {1}, 16}};
    buffer g = start(), t;
    for (size_t i = 0; i < ORTC_LENGTH(some); i++) {
        t = make_tensor(some[i].name, some[i].dtype, some[i].rank, some[i].dims,
                        some[i].bytes ? bytes + i : NULL, some[i].bytes);
        put_message(&g, 5, &t);
    }
    t = make_tensor("c6", ORTC_STRING, 1, (int64_t[]){2}, NULL, 0);
    put_string(&t, 6, ""), put_string(&t, 6, "word");
    put_message(&g, 5, &t);
    put_node(&g, "Holder", "c0 c1 c2 c3 c4 c5 c6 c0", "y");
    put_name(&g, "y");
    buffer file = finish(&g, 28, 3);

    loaded before = load_bytes(&file);
    ortc_error e;
    cr_assert(save(&before, external, &e) == ORTC_OK, "%s", e.text);
    loaded after = load_file();
    cr_expect(after.info.n_initializers == 7 && after.info.ir_version == 14);
    const ortc_node *a = before.graph->first, *b = after.graph->first;
    const char *first = NULL;
    cr_assert(a->n_in == 8 && b->n_in == 8 && b->in[7] == b->in[0]);
    for (int i = 0; i < 7; i++) {
        const ortc_constant *x = a->in[i]->constant, *y = b->in[i]->constant;
        cr_expect_str_eq(a->in[i]->name, b->in[i]->name);
        cr_expect(x->dtype == y->dtype && x->rank == y->rank && x->count == y->count && x->bytes == y->bytes);
        cr_expect(!x->rank || !memcmp(x->dims, y->dims, (size_t)x->rank * sizeof *x->dims));
        cr_expect(!x->bytes || !memcmp(x->data, y->data, x->bytes));
        if (!external || !y->bytes || y->dtype == ORTC_STRING) continue;
        if (!first) first = y->data; /* a small file is read, not mapped */
        cr_expect(((const char *)y->data - first) % 4096 == 0);
    }
    unload(&after);
    unload(&before);
    buffer_free(&file);
    cr_expect(end() == (external ? 2 : 1));
}

Test(export, constants_in_the_file, .init = begin) { constants(NULL); }
Test(export, constants_beside_it, .init = begin) { constants("weights"); }

/* ---- Versions ------------------------------------------------------------------------------------------ */

static void versions(int64_t opset, int64_t exp, int64_t want_opset, int64_t want_exp, int32_t want_ir)
{
    buffer g = start();
    put_node(&g, "Holder", "x", "y");
    put_name(&g, "y");
    buffer file = finish(&g, opset, exp);
    loaded before = load_bytes(&file);
    ortc_error e;
    cr_assert(save(&before, NULL, &e) == ORTC_OK, "%s", e.text);
    loaded after = load_file();
    cr_assert(after.info.n_opsets == 2);
    cr_expect(after.info.opset_versions[0] == want_opset && after.info.opset_versions[1] == want_exp);
    cr_expect(after.info.ir_version == want_ir);
    cr_expect_str_eq(after.info.opset_domains[1], "exp");
    unload(&after);
    unload(&before);
    buffer_free(&file);
}

Test(export, versions, .init = begin)
{
    versions(7, 2, 17, 2, 10); /* Holder's newest form holds from version 2 on */
    versions(18, 3, 18, 3, 10);
    versions(23, 9, 23, 9, 11);
    versions(24, 9, 24, 9, 12);
    versions(28, 9, 28, 9, 13);
    end();
}

/* ---- Failures ------------------------------------------------------------------------------------------ */

Test(export, failures_leave_nothing, .init = begin)
{
    buffer g = start();
    buffer w = {0}, zeros = {0};
    for (int i = 0; i < 1 << 15; i++) put_bytes(&zeros, "\0\0\0\0\0\0\0", 8);
    w = make_tensor("w", ORTC_F32, 1, (int64_t[]){1 << 16}, zeros.data, zeros.bytes);
    put_message(&g, 5, &w);
    put_node(&g, "Add", "x w", "y");
    put_name(&g, "y");
    buffer file = finish(&g, 17, 1);
    loaded m = load_bytes(&file);
    ortc_error e;
    signal(SIGXFSZ, SIG_IGN);
    cr_assert(setrlimit(RLIMIT_FSIZE, &(struct rlimit){100000, RLIM_INFINITY}) == 0);
    cr_expect(save(&m, NULL, &e) == ORTC_IO, "%s", e.text);
    cr_expect_not_null(strstr(e.text, "cannot write"));
    cr_expect(save(&m, "weights", &e) == ORTC_IO, "%s", e.text);
    char model[sizeof path];
    memcpy(model, path, sizeof path);
    snprintf(path, sizeof path, "/dev/null");
    cr_expect(save(&m, NULL, &e) == ORTC_IO);
    cr_expect_not_null(strstr(e.text, "not a regular file"));
    memcpy(path, model, sizeof path);
    cr_expect(end() == 0); /* and removes the folder */
    cr_expect(save(&m, NULL, &e) == ORTC_NOT_FOUND, "%s", e.text);
    unload(&m);
    buffer_free(&file);
    buffer_free(&zeros);
}
