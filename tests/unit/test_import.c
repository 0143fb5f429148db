/* tests/unit/test_import.c: models to graphs: order, names, initializers, constants, functions, captures,
 * external data, and what the messages say when something is wrong. Operators of a domain of the test's own
 * stand in for the standard's.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "graph/onnx/onnx.h"
#include "runtime/registry/registry.h"
#include "wire_writer.h"

/* ---- Operators ----------------------------------------------------------------------------------------- */

static ortc_status like_first(ortc_infer *c) { return ortc_infer_like(c, 0, 0); }

/* Version 1 had an attribute `by`; since 2 it is an input, and the result is negated: Neg goes behind the old
 * form. */
static ortc_status lift_scale(ortc_lift *l)
{
    float by = ortc_node_float(ortc_lift_node(l), "by", 1);
    if (by == 0) return ortc_lift_fail(l, ORTC_UNSUPPORTED, "scaling by nothing");
    ortc_lift_drop_attr(l, "by");
    if (ortc_node_in(ortc_lift_node(l), 0).rank == 3)
        return ortc_lift_fail(l, ORTC_UNSUPPORTED, "rank 3 is seen while lifting");
    ortc_lift_const_in(l, 1, ORTC_F32, 0, NULL, &by);
    return ortc_lift_wrap_out(l, 0, "Neg", NULL, 0);
}

static const ortc_op ops[] = {
    ORTC_OP("test", "Add", 1, 1, "", "a:T b:T", "y:T", "", "T=f32,i64", like_first, NULL, 0),
    ORTC_OP("test", "Neg", 1, 1, "", "x:T", "y:T", "", "T=f32,i64", like_first, NULL, 0),
    ORTC_OP("test", "Scale", 2, 2, "1", "x:T by:T", "y:T", "", "T=f32", like_first, lift_scale, 0),
    ORTC_OP("test", "Power", 1, 1, "", "x:T", "y:T", "exponent:i=2 name:s?", "T=f32,i64", like_first, NULL,
            0),
    ORTC_OP("test", "Branch", 1, 1, "", "c:bool", "y:all*~", "then_branch:g! else_branch:g!", "T=f32", NULL,
            NULL, ORTC_OP_CONTROL),
};

static void register_ops(void)
{
    ortc_error e = ORTC_ERROR_INIT;
    for (size_t i = 0; i < ORTC_LENGTH(ops); i++)
        cr_assert(ortc_op_add(&ops[i], "test", true, &e) == ORTC_OK, "%s", e.text);
}

/* ---- Models -------------------------------------------------------------------------------------------- */

static ortc_graph *graph;
static ortc_model_info info;
static ortc_source *source;
static ortc_error error;

static ortc_status import_bytes(buffer *model)
{
    error = (ortc_error)ORTC_ERROR_INIT;
    cr_assert(ortc_source_open_memory(model->data, model->bytes, &source, &error) == ORTC_OK);
    ortc_status s = ortc_onnx_import(source, NULL, &graph, &info, &error);
    if (s == ORTC_OK) {
        ortc_error e = ORTC_ERROR_INIT;
        cr_expect(ortc_graph_verify(graph, &e) == ORTC_OK, "%s", e.text);
    }
    return s;
}

static void drop(buffer *model)
{
    ortc_graph_destroy(graph);
    ortc_source_close(source);
    buffer_free(model);
    graph = NULL;
}

static buffer start_graph(void)
{
    buffer g = {0}, part = make_value_info("x", ORTC_F32, 2, (int64_t[]){-1, 4});
    put_string(&g, 2, "g");
    put_message(&g, 11, &part);
    return g;
}

static void add_node(buffer *g, const char *op, const char *inputs, const char *outputs)
{
    buffer n = make_node(op, "test", inputs, outputs);
    put_string(&n, 3, op);
    put_message(g, 1, &n);
}

static void add_output(buffer *g, const char *name)
{
    buffer o = {0};
    put_string(&o, 1, name);
    put_message(g, 12, &o);
}

static void add_weight(buffer *g, const char *name)
{
    buffer t = make_tensor(name, ORTC_F32, 2, (int64_t[]){1, 4}, "0123456789abcdef", 16);
    put_message(g, 5, &t);
}

static buffer finish(buffer *g, int64_t ir)
{
    buffer m = make_model(ir, 13, g);
    put_opset(&m, 8, "test", 2);
    return m;
}

static const ortc_node *node_at(int i)
{
    const ortc_node *n = graph->first;
    while (n && i-- > 0) n = n->next;
    return n;
}

/* ---- Order and names ----------------------------------------------------------------------------------- */

Test(import, a_sorted_model, .init = register_ops)
{
    buffer g = start_graph(), m;
    add_weight(&g, "w");
    add_node(&g, "Add", "x w", "a");
    add_node(&g, "Neg", "a", "y");
    add_output(&g, "y");
    m = finish(&g, 8);
    cr_assert(import_bytes(&m) == ORTC_OK, "%s", error.text);
    cr_expect(graph->n_nodes == 2 && graph->n_inputs == 1 && graph->n_outputs == 1);
    cr_expect(info.ir_version == 8 && info.n_nodes == 2 && info.n_initializers == 1 &&
              info.n_parameters == 4);
    cr_expect(info.weight_bytes == 16 && info.n_opsets == 2 && info.n_ops == 2);
    cr_expect_str_eq(info.op_names[0], "test.Add");
    const ortc_node *add = node_at(0);
    cr_expect(ortc_edge_is_const(add->in[1]));
    cr_expect(add->in[1]->constant->data > (void *)m.data && !add->in[1]->constant->mapped);
    cr_expect(memcmp(add->in[1]->constant->data, "0123456789abcdef", 16) == 0);
    cr_expect(graph->outputs[0].edge->rank == 2 &&
              graph->outputs[0].edge->dims[0] == graph->inputs[0].edge->dims[0]);
    cr_expect_str_eq(graph->outputs[0].edge->origin, "y");
    drop(&m);
}

Test(import, unsorted_nodes_are_sorted, .init = register_ops)
{
    buffer g = start_graph(), m;
    add_node(&g, "Neg", "c", "y");
    add_node(&g, "Add", "a b", "c");
    add_node(&g, "Neg", "a", "b");
    add_node(&g, "Neg", "x", "a");
    add_output(&g, "y");
    m = finish(&g, 8);
    cr_assert(import_bytes(&m) == ORTC_OK, "%s", error.text);
    cr_expect_str_eq(node_at(0)->out[0]->name, "a");
    cr_expect_str_eq(node_at(1)->out[0]->name, "b");
    cr_expect_str_eq(node_at(2)->out[0]->name, "c");
    cr_expect_str_eq(node_at(3)->out[0]->name, "y");
    drop(&m);
}

/* The import fails with this code, and the message holds this text. */
static void refuse(buffer *m, ortc_status code, const char *text)
{
    ortc_status s = import_bytes(m);
    cr_expect(s == code, "%s: %s", ortc_status_name(s), error.text);
    cr_expect(strstr(error.text, text) != NULL, "\"%s\" is not in \"%s\"", text, error.text);
    cr_expect_null(graph);
    drop(m);
}

Test(import, wrong_graphs_are_refused, .init = register_ops)
{
    buffer g = start_graph(), m = {0};
    refuse(&m, ORTC_INVALID_MODEL, "it is empty");
    put_int(&m, 1, 8);
    refuse(&m, ORTC_INVALID_MODEL, "it has no graph");

    add_node(&g, "Add", "x b", "a");
    add_node(&g, "Neg", "a", "b");
    m = finish(&g, 8);
    refuse(&m, ORTC_INVALID_MODEL, "(Add): it depends on its own output: the graph has a cycle");

    g = start_graph();
    add_node(&g, "Neg", "nowhere", "a");
    m = finish(&g, 8);
    refuse(&m, ORTC_INVALID_MODEL, "node 'Neg' (Neg): input 0 ('nowhere') is not made by any node before it");

    g = start_graph();
    add_node(&g, "Neg", "x", "a");
    add_node(&g, "Neg", "x", "a");
    m = finish(&g, 8);
    refuse(&m, ORTC_INVALID_MODEL, "'a' is defined twice");

    g = start_graph();
    add_output(&g, "nothing");
    m = finish(&g, 8);
    refuse(&m, ORTC_INVALID_MODEL, "output 'nothing' of graph 'g' is not made by any node");

    g = start_graph();
    add_node(&g, "Neg", "x x", "a");
    m = finish(&g, 8);
    refuse(&m, ORTC_INVALID_MODEL, "takes at most 1");
}

Test(import, every_missing_operator_is_listed, .init = register_ops)
{
    buffer g = start_graph(), m, n;
    for (int i = 0; i < 3; i++) {
        n = make_node("Foo", "my.domain", "x", "");
        put_message(&g, 1, &n);
    }
    n = make_node("Nonesuch", "", "x", "b");
    put_message(&g, 1, &n);
    m = finish(&g, 8);
    refuse(&m, ORTC_UNSUPPORTED,
           "2 operators are not supported: Foo (domain my.domain, 3 nodes), Nonesuch (1 node)");
}

/* ---- Initializers and constants ------------------------------------------------------------------------ */

Test(import, initializers_and_inputs, .init = register_ops)
{
    for (int64_t ir = 3; ir <= 4; ir++) {
        buffer g = start_graph(), m, part = make_value_info("w", ORTC_F32, 2, (int64_t[]){-2, 4});
        put_message(&g, 11, &part);
        add_weight(&g, "w");
        add_node(&g, "Add", "x w", "y");
        add_output(&g, "y");
        m = finish(&g, ir);
        cr_assert(import_bytes(&m) == ORTC_OK, "%s", error.text);
        if (ir == 3) {
            cr_expect(graph->n_inputs == 1 && ortc_edge_is_const(node_at(0)->in[1]));
        } else {
            cr_assert(graph->n_inputs == 2);
            cr_expect(graph->inputs[1].edge->constant && !ortc_edge_is_const(graph->inputs[1].edge));
            /* a caller may give another extent */
            cr_expect(!ortc_dim_is_number(graph->inputs[1].edge->dims[0]));
        }
        drop(&m);
    }
}

Test(import, a_default_is_of_its_input_s_shape, .init = register_ops)
{
    static const struct {
        int rank;
        int64_t dims[3];
        const char *text;
    } declared[] = {
        {1, {4}, "initializer 'w' is of shape [1,4], the input of that name of [4]"},
        {3, {1, 4, 1}, "initializer 'w' is of shape [1,4], the input of that name of [1,4,1]"},
        {2, {-1, 3}, "initializer 'w' is of shape [1,4], the input of that name of [?,3]"},
    };
    for (size_t i = 0; i < sizeof declared / sizeof *declared; i++) {
        buffer g = start_graph(), m,
               part = make_value_info("w", ORTC_F32, declared[i].rank, declared[i].dims);
        put_message(&g, 11, &part);
        add_weight(&g, "w");
        add_node(&g, "Add", "x w", "y");
        add_output(&g, "y");
        m = finish(&g, 8);
        refuse(&m, ORTC_INVALID_MODEL, declared[i].text);
    }
}

Test(import, constants_of_every_form, .init = register_ops)
{
    buffer g = {0}, m, n, a = {0}, t, s;
    n = make_node("Constant", "", "", "f");
    put_string(&a, 1, "value_float");
    put_float(&a, 2, 1.5f);
    put_int(&a, 20, 1);
    put_message(&n, 5, &a);
    put_message(&g, 1, &n);
    n = make_node("Constant", "", "", "is");
    put_string(&a, 1, "value_ints");
    put_int(&a, 8, 7);
    put_int(&a, 8, -8);
    put_message(&n, 5, &a);
    put_message(&g, 1, &n);
    n = make_node("Constant", "", "", "s");
    put_string(&a, 1, "value_string");
    put_string(&a, 4, "text");
    put_message(&n, 5, &a);
    put_message(&g, 1, &n);
    n = make_node("Constant", "", "", "sp");
    t = make_tensor("", ORTC_F32, 1, (int64_t[]){2}, "\0\0\200?\0\0\0@", 8);
    s = (buffer){0};
    put_message(&s, 1, &t);
    t = make_tensor("", ORTC_I64, 2, (int64_t[]){2, 2},
                    "\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0", 32);
    put_message(&s, 2, &t);
    put_int(&s, 3, 2);
    put_int(&s, 3, 3);
    put_string(&a, 1, "sparse_value");
    put_message(&a, 22, &s);
    put_message(&n, 5, &a);
    put_message(&g, 1, &n);
    add_output(&g, "f");
    add_output(&g, "is");
    add_output(&g, "s");
    add_output(&g, "sp");
    m = finish(&g, 8);
    cr_assert(import_bytes(&m) == ORTC_OK, "%s", error.text);
    cr_expect(graph->n_nodes == 0 && graph->n_outputs == 4);
    const ortc_constant *c = graph->outputs[0].edge->constant;
    cr_expect(c->rank == 0 && *(const float *)c->data == 1.5f);
    c = graph->outputs[1].edge->constant;
    cr_expect(c->rank == 1 && c->dims[0] == 2 && ((const int64_t *)c->data)[1] == -8);
    c = graph->outputs[2].edge->constant;
    int64_t length;
    cr_expect(c->dtype == ORTC_STRING && memcmp(ortc_string_at(c->data, 0, &length), "text", 4) == 0 &&
              length == 4);
    c = graph->outputs[3].edge->constant;
    const float dense[6] = {0, 1, 0, 0, 0, 2};
    cr_expect(c->rank == 2 && memcmp(c->data, dense, sizeof dense) == 0);
    drop(&m);
}

/* ---- Lifting ------------------------------------------------------------------------------------------- */

Test(import, old_nodes_are_lifted, .init = register_ops)
{
    buffer g = start_graph(), m, n = make_node("Scale", "test", "x", "y"), a = {0};
    put_string(&a, 1, "by");
    put_float(&a, 2, 3);
    put_int(&a, 20, 1);
    put_message(&n, 5, &a);
    put_message(&g, 1, &n);
    add_node(&g, "Neg", "y", "z");
    add_output(&g, "z");
    m = make_model(8, 13, &g);
    put_opset(&m, 8, "test", 1);
    cr_assert(import_bytes(&m) == ORTC_OK, "%s", error.text);
    cr_assert(graph->n_nodes == 3);
    cr_expect(node_at(0)->version == 2 && node_at(0)->n_in == 2 && node_at(0)->n_attrs == 0);
    cr_expect(*(const float *)node_at(0)->in[1]->constant->data == 3);
    cr_expect_str_eq(node_at(1)->type, "Neg");
    cr_expect_str_eq(node_at(1)->out[0]->name, "y");
    cr_expect(node_at(1)->in[0] == node_at(0)->out[0]);
    drop(&m);
}

/* ---- Functions ----------------------------------------------------------------------------------------- */

static buffer start_function(const char *name)
{
    buffer f = {0};
    put_string(&f, 1, name);
    put_string(&f, 10, "fn");
    put_opset(&f, 9, "test", 2);
    put_opset(&f, 9, "fn", 1);
    return f;
}

static void add_call(buffer *to, int field, const char *name, const char *inputs, const char *outputs)
{
    buffer n = make_node(name, "fn", inputs, outputs);
    put_message(to, field, &n);
}

Test(import, functions_are_inlined, .init = register_ops)
{
    buffer g = start_graph(), m, f = start_function("F"), n, a = {0};
    put_names(&f, 4, "p q");
    put_names(&f, 5, "r");
    put_string(&f, 6, "e");
    n = make_node("Power", "test", "p", "t");
    put_string(&a, 1, "exponent");
    put_string(&a, 21, "e");
    put_int(&a, 20, 2);
    put_message(&n, 5, &a);
    put_message(&f, 7, &n);
    n = make_node("Neg", "test", "t", "r");
    put_message(&f, 7, &n);

    n = make_node("F", "fn", "x", "a");
    put_string(&a, 1, "e");
    put_int(&a, 3, 5);
    put_int(&a, 20, 2);
    put_message(&n, 5, &a);
    put_message(&g, 1, &n);
    add_call(&g, 1, "F", "a", "y");
    add_output(&g, "y");
    m = finish(&g, 8);
    put_message(&m, 25, &f);
    cr_assert(import_bytes(&m) == ORTC_OK, "%s", error.text);
    cr_assert(graph->n_nodes == 4);
    cr_expect(ortc_node_int(node_at(0), "exponent", -1) == 5);
    /* not given at the call: the operator's own default */
    cr_expect(ortc_node_int(node_at(2), "exponent", -1) == 2);
    cr_expect_str_eq(node_at(1)->out[0]->name, "a");
    cr_expect_str_eq(node_at(1)->out[0]->origin, "a");
    cr_expect_null(node_at(0)->out[0]->origin);
    cr_expect(strcmp(node_at(0)->out[0]->name, node_at(2)->out[0]->name) != 0);
    drop(&m);
}

Test(import, functions_that_never_end_are_refused, .init = register_ops)
{
    buffer g = start_graph(), m, f = start_function("F");
    char name[16], below[16];
    put_names(&f, 4, "p");
    put_names(&f, 5, "r");
    add_call(&f, 7, "F", "p", "r");
    add_call(&g, 1, "F", "x", "y");
    m = finish(&g, 8);
    put_message(&m, 25, &f);
    refuse(&m, ORTC_INVALID_MODEL, "function 'F' calls itself");

    for (int calls = 1; calls <= 2; calls++) { /* 120 deep; 40 that double */
        g = start_graph();
        add_call(&g, 1, "f0", "x", "y");
        m = finish(&g, 8);
        int depth = calls == 1 ? 120 : 40;
        for (int i = 0; i < depth; i++) {
            snprintf(name, sizeof name, "f%d", i);
            snprintf(below, sizeof below, "f%d", i + 1);
            f = start_function(name);
            put_names(&f, 4, "p");
            put_names(&f, 5, "r");
            for (int c = 0; c < calls; c++)
                if (i + 1 < depth) add_call(&f, 7, below, "p", c ? "other" : "r");
            if (i + 1 == depth) {
                buffer n = make_node("Neg", "test", "p", "r");
                put_message(&f, 7, &n);
            }
            put_message(&m, 25, &f);
        }
        refuse(&m, ORTC_LIMIT,
               calls == 1 ? "functions call each other more than 100 deep" : "inlined the model would have");
    }
}

/* ---- Subgraphs ----------------------------------------------------------------------------------------- */

Test(import, outer_values_become_inputs, .init = register_ops)
{
    buffer g = start_graph(), m, n, a = {0}, branch = {0}, part;
    part = make_value_info("c", ORTC_BOOL, 0, NULL);
    put_message(&g, 11, &part);
    add_weight(&g, "w");
    add_node(&g, "Neg", "x", "a");
    n = make_node("Branch", "test", "c", "y");
    add_node(&branch, "Add", "a w", "t"); /* the constant is shared, `a` is captured */
    add_output(&branch, "t");
    put_string(&a, 1, "then_branch");
    put_int(&a, 20, 5);
    put_message(&a, 6, &branch);
    put_message(&n, 5, &a);
    add_node(&branch, "Add", "x a", "t"); /* sibling branches may use one name */
    add_output(&branch, "t");
    put_string(&a, 1, "else_branch");
    put_int(&a, 20, 5);
    put_message(&a, 6, &branch);
    put_message(&n, 5, &a);
    put_message(&g, 1, &n);
    add_output(&g, "y");
    m = finish(&g, 8);
    cr_assert(import_bytes(&m) == ORTC_OK, "%s", error.text);
    const ortc_node *b = node_at(1);
    cr_assert(b->n_captures == 2 && b->n_in == 3);
    cr_expect_str_eq(b->in[1]->name, "a");
    cr_expect_str_eq(b->in[2]->name, "x");
    for (int i = 0; i < 2; i++) {
        ortc_attr attr = ortc_node_attr(b, i ? "else_branch" : "then_branch");
        const ortc_graph *sub = attr.u.graphs[0];
        ortc_error e = ORTC_ERROR_INIT;
        cr_assert(sub->n_inputs == 2);
        cr_expect_str_eq(sub->inputs[0].name, "a");
        cr_expect_str_eq(sub->inputs[1].name, "x");
        cr_expect(sub->inputs[0].edge->rank == 2);
        cr_expect(sub->first->in[1]->constant == (i ? NULL : graph->edges.data[2]->constant));
        cr_expect(ortc_graph_verify(sub, &e) == ORTC_OK, "%s", e.text);
    }
    drop(&m);
}

/* ---- External data ------------------------------------------------------------------------------------- */

static char folder[64];

static void write_file(const char *name, const void *data, size_t bytes)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    cr_assert_not_null(f);
    cr_assert(fwrite(data, 1, bytes, f) == bytes);
    fclose(f);
}

/* A model whose weight lies at `location`; values may be NULL. */
static ortc_status import_external(const char *location, const char *offset, const char *length)
{
    buffer g = start_graph(), m, t = make_tensor("w", ORTC_F32, 2, (int64_t[]){1, 4}, NULL, 0), e = {0};
    const char *keys[] = {"location", "offset", "length", "checksum"},
               *values[] = {location, offset, length, "unread"};
    char path[160];
    for (int i = 0; i < 4; i++)
        if (values[i]) {
            put_string(&e, 1, keys[i]);
            put_string(&e, 2, values[i]);
            put_message(&t, 13, &e);
        }
    put_int(&t, 14, 1);
    put_message(&g, 5, &t);
    add_node(&g, "Add", "x w", "y");
    add_output(&g, "y");
    m = finish(&g, 8);
    write_file("model.onnx", m.data, m.bytes);
    buffer_free(&m);
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    error = (ortc_error)ORTC_ERROR_INIT;
    cr_assert(ortc_source_open_file(path, false, &source, &error) == ORTC_OK);
    ortc_status s = ortc_onnx_import(source, NULL, &graph, &info, &error);
    if (s == ORTC_OK) cr_expect(memcmp(node_at(0)->in[1]->constant->data, "0123456789abcdef", 16) == 0);
    ortc_graph_destroy(graph);
    ortc_source_close(source);
    graph = NULL;
    return s;
}

static void remove_folder(void)
{
    char command[80];
    snprintf(command, sizeof command, "rm -r %s", folder);
    cr_expect_eq(system(command), 0);
}

Test(import, external_data_stays_in_the_folder, .init = register_ops, .fini = remove_folder)
{
    char path[160];
    snprintf(folder, sizeof folder, "/tmp/ortc-test-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/sub", folder);
    cr_assert(mkdir(path, 0700) == 0);
    write_file("w.bin", "....0123456789abcdef", 20);
    write_file("sub/w.bin", "0123456789abcdef", 16);
    cr_expect(import_external("w.bin", "4", "16") == ORTC_OK, "%s", error.text);
    cr_expect(import_external("w.bin", "4", NULL) == ORTC_OK, "%s", error.text);
    cr_expect(import_external("sub/w.bin", NULL, NULL) == ORTC_OK, "%s", error.text);
    cr_expect(import_external("w.bin", "5", "16") == ORTC_INVALID_MODEL);
    cr_expect_str_eq(error.text,
                     "initializer 'w': external data: 16 bytes at 5 of 'w.bin', which has 20 bytes");
    cr_expect(import_external("w.bin", "4", "15") == ORTC_INVALID_MODEL);
    cr_expect(import_external("w.bin", "-4", "16") == ORTC_INVALID_MODEL);
    cr_expect(import_external("w.bin", "18446744073709551615", "16") == ORTC_INVALID_MODEL);
    cr_expect(import_external("w.bin", "18446744073709551616", "16") == ORTC_INVALID_MODEL);
    cr_expect(import_external("w.bin", "0x4", "16") == ORTC_INVALID_MODEL);
    cr_expect(import_external(NULL, "4", "16") == ORTC_INVALID_MODEL);
    cr_expect(import_external("none.bin", "4", "16") == ORTC_NOT_FOUND);
    cr_expect(import_external("/etc/passwd", "0", "16") == ORTC_INVALID_MODEL);
    cr_expect(import_external("../w.bin", "0", "16") == ORTC_INVALID_MODEL);
    cr_expect(import_external("sub/../w.bin", "4", "16") == ORTC_INVALID_MODEL);
    snprintf(path, sizeof path, "%s/link", folder);
    cr_assert(symlink("w.bin", path) == 0);
    cr_expect(import_external("link", "4", "16") == ORTC_INVALID_MODEL);
}

/* ---- Readers ------------------------------------------------------------------------------------------- */

static int n_closed;
static uint64_t reader_bytes(void *arg) { return ((buffer *)arg)->bytes; }
static ortc_status reader_read(void *arg, uint64_t offset, void *to, size_t bytes, ortc_error *e)
{
    memcpy(to, ((buffer *)arg)->data + offset, bytes);
    return ORTC_OK;
}
static void reader_close(void *arg) { n_closed++; }

Test(import, readers_are_copied_and_closed, .init = register_ops)
{
    buffer g = start_graph(), m;
    add_output(&g, "x");
    m = finish(&g, 8);
    ortc_reader r = {
        .size = sizeof r, .arg = &m, .bytes = reader_bytes, .read_at = reader_read, .close = reader_close};
    error = (ortc_error)ORTC_ERROR_INIT;
    cr_assert(ortc_source_open_reader(&r, &source, &error) == ORTC_OK);
    cr_expect(ortc_onnx_import(source, NULL, &graph, &info, &error) == ORTC_OK, "%s", error.text);
    cr_expect(n_closed == 0);
    drop(&m);
    cr_expect(n_closed == 1);
    r.bytes = NULL;
    cr_expect(ortc_source_open_reader(&r, &source, &error) == ORTC_INVALID_ARGUMENT && n_closed == 2);
}
