/* tools/ortc/shrink.c: `ortc compare --shrink`: the smallest part of a model in which two sides still
 * differ.
 *
 * Both sides run the file's graph with every value kept; the first value that differs ends the part. Where
 * none does, the difference is one of fusion, and an output that differs ends it. The part begins so many
 * nodes above, and is fed the second side's values: one node first, then twice as deep until it differs,
 * then as shallow as it still does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare_side.h"
#include "files.h"
#include "term.h"

typedef struct graph_node {
    uint32_t n_in, n_out;
    char **in, **out; /* names, NULL where left out */
} graph_node;

typedef struct shrinking {
    const compare_options *o;
    const side *a, *b;
    const inputs *in;
    ortc_model *model; /* as the file has it */
    graph_node *nodes;
    size_t n_nodes;
    value_list values;    /* where it can be cut */
    const ortc_out *kept; /* their values, on the second side */
    const char *end;      /* the value that differs */
    char *inputs_path;
    size_t part_nodes;
} shrinking;

/* ---- The graph ----------------------------------------------------------------------------------------- */

static char **copy_names(const char *const *names, uint32_t n)
{
    char **copy = mem_alloc(n * sizeof *copy);
    for (uint32_t i = 0; i < n; i++) copy[i] = names[i] ? mem_copy(names[i]) : NULL;
    return copy;
}

static int each_node(void *arg, const ortc_placement *p)
{
    shrinking *s = arg;
    s->nodes = mem_grow(s->nodes, s->n_nodes + 1, sizeof *s->nodes);
    s->nodes[s->n_nodes++] = (graph_node){p->n_in, p->n_out, copy_names(p->in, p->n_in),
                                          copy_names(p->out, p->n_out)};
    return 0;
}

static int read_graph(shrinking *s)
{
    const session_options plain = {.provider = "ref", .no_fusion = true};
    ortc_session *session = NULL;
    const int code = session_open(s->model, &plain, &session);
    if (code < 0) ortc_session_placement(session, each_node, s);
    ortc_session_release(session);
    return code;
}

static void free_names(char **names, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) free(names[i]);
    free(names);
}

/* The node that makes a value; n_nodes: none. */
static size_t maker_of(const shrinking *s, const char *name)
{
    for (size_t i = 0; i < s->n_nodes; i++)
        for (uint32_t k = 0; k < s->nodes[i].n_out; k++)
            if (s->nodes[i].out[k] && strcmp(s->nodes[i].out[k], name) == 0) return i;
    return s->n_nodes;
}

/* Index among the values where the model can be cut; count: it cannot be there. */
static size_t cut_of(const shrinking *s, const char *name)
{
    for (size_t i = 0; i < s->values.count; i++)
        if (strcmp(s->values.names[i], name) == 0) return i;
    return s->values.count;
}

/* ---- A part -------------------------------------------------------------------------------------------- */

typedef struct part {
    const char **names; /* of what it is fed besides the model's inputs */
    ortc_value **values;
    size_t count;
} part;

static void feed(const shrinking *s, part *p, const char *name, size_t cut)
{
    for (size_t i = 0; i < p->count; i++)
        if (strcmp(p->names[i], name) == 0) return;
    p->names = mem_grow(p->names, p->count + 1, sizeof *p->names);
    p->values = mem_grow(p->values, p->count + 1, sizeof *p->values);
    p->names[p->count] = s->values.names[cut];
    p->values[p->count++] = s->kept[cut].value;
}

/* The nodes at most `depth` above the end, and what they read of others. */
static part cut_at(shrinking *s, size_t depth)
{
    size_t *level = mem_alloc((s->n_nodes + 1) *
                              sizeof *level); /* 1 + the distance from the end; 0: outside */
    const size_t last = maker_of(s, s->end);
    part p = {0};
    s->part_nodes = 0;
    if (last < s->n_nodes) level[last] = 1;
    for (size_t i = last < s->n_nodes ? last + 1 : 0; i-- > 0;) { /* backwards: readers come first */
        if (!level[i]) continue;
        s->part_nodes++;
        for (uint32_t k = 0; k < s->nodes[i].n_in; k++) {
            const char *name = s->nodes[i].in[k];
            const size_t maker = name ? maker_of(s, name) : s->n_nodes;
            if (maker == s->n_nodes) continue; /* a constant, or an input of the model */
            const size_t cut = cut_of(s, name);
            if (level[i] < depth || cut == s->values.count) {
                if (!level[maker] || level[maker] > level[i] + 1) level[maker] = level[i] + 1;
            } else if (!level[maker]) {
                feed(s, &p, name, cut);
            }
        }
    }
    free(level);
    return p;
}

/* What the part's inputs are given. */
static size_t given_to(const shrinking *s, const part *p, ortc_model *m, ortc_in *in)
{
    size_t n = 0;
    const ortc_io *io;
    for (size_t i = 0; (io = ortc_model_input(m, i)); i++) {
        for (size_t k = 0; k < p->count; k++)
            if (strcmp(p->names[k], io->name) == 0) in[n++] = (ortc_in){io->name, p->values[k]};
        for (size_t k = 0; k < s->in->n_in; k++)
            if (strcmp(s->in->in[k].name, io->name) == 0) in[n++] = s->in->in[k];
    }
    return n;
}

static ortc_status write_given(const char *path, const ortc_in *in, size_t n)
{
    ortc_out *values = mem_alloc((n + 1) * sizeof *values);
    ortc_error e = ORTC_ERROR_INIT;
    for (size_t i = 0; i < n; i++) values[i] = (ortc_out){.name = in[i].name, .value = in[i].value};
    const ortc_status s = values_write(path, values, n, false, &e);
    if (s != ORTC_OK) say_error("--shrink: %s", e.text);
    free(values);
    return s;
}

/* Runs the written part on both sides. -1: good, *out says whether they differ. */
static int differs(const shrinking *s, const part *p, ortc_model *m, bool *out)
{
    side a = *s->a, b = *s->b;
    ortc_in *in = mem_alloc((p->count + s->in->n_in + 1) * sizeof *in);
    const size_t n = given_to(s, p, m, in);
    const uint64_t seed = (uint64_t)s->o->input.seed;
    a.path = b.path = s->o->shrink;
    a.model = b.model = m;
    a.options.n_dims = b.options.n_dims = 0; /* the values say it, and the part may have lost the symbol */
    a.options.shapes = b.options.shapes = (arg_list){0};
    int code = side_run(&a, in, n, &s->end, 1, false, seed);
    if (code < 0) code = side_run(&b, in, n, &s->end, 1, false, seed);
    if (code < 0) {
        difference d = compare_values(s->end, a.out[0].value, b.out[0].value, s->o);
        *out = d.wrong > 0;
        free(d.why);
    }
    if (code < 0 && *out && write_given(s->inputs_path, in, n) != ORTC_OK) code = EXIT_RUN;
    side_end(&a);
    side_end(&b);
    free(in);
    return code;
}

/* Writes the part of this depth and tries it. -1: good. */
static int try_depth(shrinking *s, size_t depth, bool *out_differs, bool *out_whole)
{
    part p = cut_at(s, depth);
    ortc_save_options so = ORTC_SAVE_OPTIONS_INIT;
    ortc_error e = ORTC_ERROR_INIT;
    ortc_model *m = NULL;
    int code = -1;
    char *text = mem_printf("a part of %zu nodes", s->part_nodes);
    term_progress(0, 0, text);
    free(text);
    *out_whole = p.count == 0;
    so.inputs = p.names;
    so.n_inputs = p.count;
    so.outputs = &s->end;
    so.n_outputs = 1;
    const ortc_status status = ortc_model_save(s->model, s->o->shrink, &so, &e);
    if (status != ORTC_OK) {
        say_error("--shrink: %s", e.text);
        code = EXIT_RUN;
    }
    if (code < 0) code = model_open(s->o->shrink, &s->o->session, &m);
    if (code < 0) code = differs(s, &p, m, out_differs);
    ortc_model_release(m);
    free(p.names);
    free(p.values);
    return code;
}

/* ---- All of it ----------------------------------------------------------------------------------------- */

/* Every value on both sides: b's stay, and the first that differs is the end. */
static int run_whole(shrinking *s, side *a, side *b)
{
    const uint64_t seed = (uint64_t)s->o->input.seed;
    a->model = b->model = s->model;
    int code = side_run(a, s->in->in, s->in->n_in, s->values.names, s->values.count, true, seed);
    if (code < 0) code = side_run(b, s->in->in, s->in->n_in, s->values.names, s->values.count, true, seed);
    for (size_t i = 0; i < s->values.count && code < 0; i++) {
        difference d = compare_values(s->values.names[i], a->out[i].value, b->out[i].value, s->o);
        free(d.why);
        if (!d.wrong) continue;
        s->end = s->values.names[i];
        break;
    }
    s->kept = b->out;
    return code;
}

/* The least depth that differs, by doubling and halving; *out_depth 0: none does. */
static int search(shrinking *s, size_t *out_depth)
{
    size_t low = 0, high = 1;
    bool yes = false, whole = false;
    int code = try_depth(s, high, &yes, &whole);
    while (code < 0 && !yes && !whole) {
        low = high;
        high *= 2;
        code = try_depth(s, high, &yes, &whole);
    }
    *out_depth = yes ? high : 0;
    while (code < 0 && *out_depth && high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        code = try_depth(s, middle, &yes, &whole);
        *(yes ? &high : &low) = middle;
    }
    if (code < 0 && *out_depth) code = try_depth(s, high, &yes, &whole); /* what is left behind */
    return code;
}

int shrink_model(const char *path, const compare_options *o, const side *a, const side *b, const inputs *in,
                 const char *output)
{
    shrinking s = {.o = o, .a = a, .b = b, .in = in, .end = output};
    side first = *a, second = *b;
    ortc_model_options mo = ORTC_MODEL_OPTIONS_INIT;
    ortc_error e = ORTC_ERROR_INIT;
    size_t depth = 0;
    mo.flags = ORTC_MODEL_NO_PASSES;
    const ortc_status status = ortc_model_load(path, &mo, &s.model, &e);
    if (status != ORTC_OK) {
        say_error("%s", e.text);
        return exit_code(status, STAGE_LOAD);
    }
    value_list_of(s.model, &s.values);
    s.inputs_path = mem_printf("%.*s.npz", (int)strlen(o->shrink) - 5, o->shrink);
    int code = read_graph(&s);
    if (code < 0) code = run_whole(&s, &first, &second);
    if (code < 0) code = search(&s, &depth);
    term_progress_clear();
    if (code < 0 && !depth) {
        say_error("--shrink: no part of the model differs by itself; '%s' holds all that makes '%s'",
                  o->shrink, s.end);
        code = EXIT_DIFFERENT;
    } else if (code < 0 && !cli.json) {
        put("\n'%s' still differs in a part of %zu node%s of %zu: %s, inputs in %s\n", s.end, s.part_nodes,
            s.part_nodes == 1 ? "" : "s", s.n_nodes, o->shrink, s.inputs_path);
    }
    side_end(&first);
    side_end(&second);
    for (size_t i = 0; i < s.n_nodes; i++) {
        free_names(s.nodes[i].in, s.nodes[i].n_in);
        free_names(s.nodes[i].out, s.nodes[i].n_out);
    }
    free(s.nodes);
    free(s.inputs_path);
    value_list_free(&s.values);
    ortc_model_release(s.model);
    return code;
}
