/* tools/ortc/view.c: `ortc view`: a model's graph as the file has it and as a session runs it, side by side:
 * which provider takes each node by colour, what is fused into it in its second line. */
#include "view.h"

#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "page.h"
#include "session.h"
#include "term.h"

typedef struct view_options {
    session_options session;
    const char *out;
    int which;
} view_options;

enum { WHICH_BOTH, WHICH_BEFORE, WHICH_AFTER };
static const char *const which_choices[] = {"both", "before", "after", NULL};

static const char details[] =
    "Before: the graph as the file has it, operators in their newest form. After: as a session with these\n"
    "options runs it. Constants are not drawn. In a page, wheel and mouse zoom and move, and the box finds "
    "nodes\n"
    "by name, operator or kernel.\n"
    "\n"
    "examples:\n"
    "  ortc view model.onnx -o model.html\n"
    "  ortc view model.onnx -o model.svg --graph after --provider cuda,cpu\n";

/* ---- From a session to a graph ------------------------------------------------------------------------- */

/* Which node makes a value. */
typedef struct maker {
    const char *name;
    uint32_t node;
} maker;

typedef struct ports {
    uint32_t n;
    char **names;
} ports;

typedef struct gathering {
    view_graph *g;
    ports *in;     /* per node */
    maker *makers; /* their names are owned */
    size_t n_makers, capacity;
} gathering;

static void add_node(gathering *a, view_node n)
{
    view_graph *g = a->g;
    if ((g->n_nodes & (g->n_nodes - 1)) == 0) { /* doubled */
        const uint32_t more = g->n_nodes ? 2 * g->n_nodes : 1;
        g->nodes = mem_grow(g->nodes, more, sizeof *g->nodes);
        a->in = mem_grow(a->in, more, sizeof *a->in);
    }
    a->in[g->n_nodes] = (ports){0};
    g->nodes[g->n_nodes++] = n;
}

static void add_maker(gathering *a, const char *name)
{
    if (a->n_makers == a->capacity) {
        a->capacity = a->capacity ? 2 * a->capacity : 64;
        a->makers = mem_grow(a->makers, a->capacity, sizeof *a->makers);
    }
    a->makers[a->n_makers++] = (maker){mem_copy(name), a->g->n_nodes};
}

static void add_reader(gathering *a, const char *const *names, uint32_t n)
{
    ports *p = &a->in[a->g->n_nodes - 1];
    p->names = mem_alloc(n * sizeof *p->names);
    for (uint32_t i = 0; i < n; i++)
        if (names[i]) p->names[p->n++] = mem_copy(names[i]);
}

static double text_pixels(const char *text) { return 7.0 * (double)text_width(text); }

static double width_of(const char *first, const char *second)
{
    const double a = text_pixels(first), b = 0.85 * text_pixels(second), wide = a > b ? a : b;
    return wide + 20 < 80 ? 80 : wide + 20 > 240 ? 240 : wide + 20;
}

static int each_node(void *arg, const ortc_placement *p)
{
    gathering *a = arg;
    for (uint32_t i = 0; i < p->n_out; i++)
        if (p->out[i]) add_maker(a, p->out[i]);
    add_node(a, (view_node){.name = mem_copy(p->node),
                            .op = p->domain[0] ? mem_printf("%s.%s", p->domain, p->op) : mem_copy(p->op),
                            .provider = mem_copy(p->provider),
                            .kernel = mem_copy(p->kernel),
                            .fused = mem_copy(p->fused),
                            .reasons = mem_copy(p->reasons)});
    view_node *n = &a->g->nodes[a->g->n_nodes - 1];
    n->width = width_of(n->op, n->fused[0] ? n->fused : n->kernel);
    add_reader(a, p->in, p->n_in);
    return 0;
}

static void add_end(gathering *a, const ortc_io *io, int kind)
{
    if (kind == VIEW_INPUT) add_maker(a, io->name);
    add_node(a, (view_node){.name = mem_copy(io->name),
                            .op = mem_copy(io->name),
                            .provider = mem_copy(""),
                            .kernel = mem_copy(""),
                            .fused = mem_copy(""),
                            .reasons = mem_copy(""),
                            .kind = kind,
                            .width = width_of(io->name, "")});
    if (kind == VIEW_OUTPUT) add_reader(a, &io->name, 1);
}

static int by_name(const void *a, const void *b)
{
    const maker *x = a, *y = b;
    const int order = strcmp(x->name, y->name);
    return order ? order : (x->node > y->node) - (x->node < y->node);
}

static void connect(gathering *a)
{
    view_graph *g = a->g;
    size_t capacity = 0;
    if (a->n_makers) qsort(a->makers, a->n_makers, sizeof *a->makers, by_name);
    for (uint32_t i = 0; i < g->n_nodes; i++)
        for (uint32_t k = 0; k < a->in[i].n; k++) {
            const char *name = a->in[i].names[k];
            size_t low = 0, high = a->n_makers;
            while (low < high) {
                const size_t middle = low + (high - low) / 2;
                if (strcmp(a->makers[middle].name, name) < 0)
                    low = middle + 1;
                else
                    high = middle;
            }
            if (low == a->n_makers || strcmp(a->makers[low].name, name) != 0) continue; /* a constant */
            if (a->makers[low].node >= i) continue;
            if (g->n_edges == capacity) {
                capacity = capacity ? 2 * capacity : 64;
                g->edges = mem_grow(g->edges, capacity, sizeof *g->edges);
            }
            g->edges[g->n_edges++] =
                (view_edge){.from = a->makers[low].node, .to = i, .name = mem_copy(name)};
        }
}

static void gather(ortc_model *m, ortc_session *s, view_graph *g)
{
    gathering a = {.g = g};
    const ortc_io *io;
    for (size_t i = 0; (io = ortc_model_input(m, i)); i++) add_end(&a, io, VIEW_INPUT);
    ortc_session_placement(s, each_node, &a);
    for (size_t i = 0; (io = ortc_model_output(m, i)); i++) add_end(&a, io, VIEW_OUTPUT);
    connect(&a);
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        for (uint32_t k = 0; k < a.in[i].n; k++) free(a.in[i].names[k]);
        free(a.in[i].names);
    }
    for (size_t i = 0; i < a.n_makers; i++) free((char *)(uintptr_t)a.makers[i].name);
    free(a.in);
    free(a.makers);
}

/* ---- Drawing ------------------------------------------------------------------------------------------- */

static const char style[] =
    ".e{fill:none;stroke:var(--edge)}.n rect{stroke-width:1.2}.n .fused{stroke-width:2.6}"
    ".n text{text-anchor:middle}.n .k{font-size:10px;fill:var(--dim)}.end{fill:none;stroke:var(--dim);"
    "stroke-dasharray:4 3}.found rect{stroke:var(--hot)!important;stroke-width:4}\n";

/* Providers by the order in which they are met: colours 0 to 5. */
typedef struct palette {
    const char *names[PAGE_COLORS];
    size_t count;
} palette;

static size_t color_of(palette *p, const char *provider)
{
    size_t i = 0;
    while (i < p->count && strcmp(p->names[i], provider) != 0) i++;
    if (i == p->count && i < PAGE_COLORS) p->names[p->count++] = provider;
    return i < PAGE_COLORS ? i : PAGE_COLORS - 1;
}

static void draw_edge(const view_graph *g, const view_edge *e, buffer *b)
{
    const view_node *from = &g->nodes[e->from], *to = &g->nodes[e->to];
    double x = from->x, y = from->y + VIEW_HEIGHT / 2.0;
    buffer_printf(b, "<path class=\"e\" d=\"M%.0f %.0f", x, y);
    for (uint32_t i = 0; i <= e->n_bends; i++) {
        const bool last = i == e->n_bends;
        const double nx = last ? to->x : e->bends[i],
                     ny = last ? to->y - VIEW_HEIGHT / 2.0 : view_layer_y(from->layer + 1 + i);
        const double half = (ny - y) / 2;
        buffer_printf(b, "C%.0f %.0f %.0f %.0f %.0f %.0f", x, y + half, nx, ny - half, nx, ny);
        x = nx;
        y = ny;
    }
    buffer_printf(b, "\"><title>");
    page_text(b, e->name);
    buffer_printf(b, "</title></path>\n");
}

static void tip(buffer *b, const char *what, const char *text)
{
    if (!text[0]) return;
    buffer_printf(b, "%s", what);
    page_text(b, text);
    buffer_printf(b, "\n");
}

static void draw_node(const view_node *n, palette *colors, buffer *b)
{
    const double left = n->x - n->width / 2, top = n->y - VIEW_HEIGHT / 2.0;
    const char *second = n->fused[0] ? n->fused : n->kernel;
    const size_t fits = (size_t)((n->width - 12) / 7);
    buffer_printf(b, "<g class=\"n\"><title>");
    tip(b, "", n->name);
    tip(b, n->kind == VIEW_INPUT ? "input " : n->kind == VIEW_OUTPUT ? "output " : "operator ", n->op);
    tip(b, "kernel ", n->kernel);
    tip(b, "provider ", n->provider);
    tip(b, "fused into it: ", n->fused);
    tip(b, "declined: ", n->reasons);
    buffer_printf(b, "</title><rect x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"%d\" rx=\"6\" class=\"",
                  left, top, n->width, VIEW_HEIGHT);
    if (n->kind == VIEW_NODE)
        buffer_printf(b, "p%zu%s", color_of(colors, n->provider), n->fused[0] ? " fused" : "");
    else
        buffer_printf(b, "end");
    buffer_printf(b, "\"/><text x=\"%.0f\" y=\"%.0f\">", n->x, n->y + (second[0] ? -2 : 4));
    page_text_short(b, n->op, fits);
    buffer_printf(b, "</text>");
    if (second[0]) {
        buffer_printf(b, "<text class=\"k\" x=\"%.0f\" y=\"%.0f\">", n->x, n->y + 13);
        if (n->fused[0]) buffer_printf(b, "+ ");
        page_text_short(b, second, fits + fits / 5);
        buffer_printf(b, "</text>");
    }
    buffer_printf(b, "</g>\n");
}

static void draw(const view_graph *g, palette *colors, buffer *b)
{
    for (uint32_t i = 0; i < g->n_edges; i++) draw_edge(g, &g->edges[i], b);
    for (uint32_t i = 0; i < g->n_nodes; i++) draw_node(&g->nodes[i], colors, b);
}

static uint32_t count_nodes(const view_graph *g)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->n_nodes; i++) n += g->nodes[i].kind == VIEW_NODE;
    return n;
}

static void legend(const palette *p, double x, double y, buffer *b)
{
    for (size_t i = 0; i < p->count; i++, x += 90) {
        buffer_printf(
            b,
            "<rect class=\"p%zu\" x=\"%.0f\" y=\"%.0f\" width=\"14\" height=\"14\"/><text x=\"%.0f\" "
            "y=\"%.0f\">",
            i, x, y - 11, x + 20, y);
        page_text(b, p->names[i]);
        buffer_printf(b, "</text>");
    }
    buffer_printf(b, "\n");
}

typedef struct drawing {
    const char *title;
    view_graph graph;
} drawing;

enum { HEAD = 60, BETWEEN = 60 };

static void write_svg(drawing *d, size_t n, const char *path, buffer *b)
{
    double width = 0, height = 0, x = 0;
    palette colors = {{"cpu", "ref"}, 2}; /* the same colours in every drawing */
    buffer body = {0};
    for (size_t i = 0; i < n; i++) {
        const double wide = d[i].graph.width < 240 ? 240 : d[i].graph.width;
        width += wide + (i ? BETWEEN : 0);
        if (d[i].graph.height > height) height = d[i].graph.height;
        buffer_printf(&body,
                      "<g transform=\"translate(%.0f %d)\"><text x=\"20\" y=\"-10\">%s: %u nodes</text>\n", x,
                      HEAD, d[i].title, count_nodes(&d[i].graph));
        draw(&d[i].graph, &colors, &body);
        buffer_printf(&body, "</g>\n");
        x += wide + BETWEEN;
    }
    buffer_printf(
        b,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f "
        "%.0f\">\n<title>",
        width, height + HEAD, width, height + HEAD);
    page_text(b, path);
    buffer_printf(b,
                  "</title>\n<style>%s%s</style>\n<rect width=\"100%%\" height=\"100%%\" "
                  "style=\"fill:var(--back)\"/>\n",
                  page_style, style);
    legend(&colors, 20, 22, b);
    buffer_add(b, body.data, body.size);
    buffer_printf(b, "</svg>\n");
    free(body.data);
}

static const char page_css[] =
    "body{max-width:none}.pane{border:1px solid var(--line);height:82vh;overflow:hidden;flex:1;min-width:0}"
    ".panes{display:flex;gap:1em}.panes svg.graph{width:100%;height:100%;cursor:grab}"
    "input{font:inherit;padding:.2em .5em;width:20em}\n";

/* Wheel and mouse change the view box; the box marks and shows what it finds. */
static const char page_script[] =
    "for(const s of document.querySelectorAll('svg.graph')){\n"
    " const v=s.viewBox.baseVal;let from=null;\n"
    " s.addEventListener('wheel',e=>{e.preventDefault();const r=s.getBoundingClientRect();\n"
    "  const k=Math.pow(1.0015,e.deltaY),u=v.width/r.width,w=v.height/r.height,f=Math.max(u,w);\n"
    "  const "
    "x=v.x+v.width/2+(e.clientX-r.left-r.width/2)*f,y=v.y+v.height/2+(e.clientY-r.top-r.height/2)*f;\n"
    "  v.x=x-(x-v.x)*k;v.y=y-(y-v.y)*k;v.width*=k;v.height*=k},{passive:false});\n"
    " s.addEventListener('pointerdown',e=>{from={x:e.clientX,y:e.clientY};s.setPointerCapture(e.pointerId)});"
    "\n"
    " s.addEventListener('pointermove',e=>{if(!from)return;const r=s.getBoundingClientRect();\n"
    "  const "
    "f=Math.max(v.width/r.width,v.height/r.height);v.x-=(e.clientX-from.x)*f;v.y-=(e.clientY-from.y)*f;\n"
    "  from={x:e.clientX,y:e.clientY}});\n"
    " s.addEventListener('pointerup',()=>from=null);\n"
    "}\n"
    "function find(text){let n=0;text=text.toLowerCase();\n"
    " for(const s of document.querySelectorAll('svg.graph')){let first=null;\n"
    "  for(const g of s.querySelectorAll('g.n')){const "
    "hit=text&&g.textContent.toLowerCase().includes(text);\n"
    "   g.classList.toggle('found',!!hit);if(hit){n++;first=first||g}}\n"
    "  if(first){const b=first.getBBox(),v=s.viewBox.baseVal;v.x=b.x+b.width/2-v.width/2;"
    "v.y=b.y+b.height/2-v.height/2}}\n"
    " document.getElementById('count').textContent=text?n+' found':'';return n}\n"
    "document.getElementById('find').addEventListener('input',e=>find(e.target.value));\n";

static void write_page(drawing *d, size_t n, const char *path, buffer *b)
{
    palette colors = {{"cpu", "ref"}, 2}; /* the same colours in every drawing */
    buffer panes = {0};
    for (size_t i = 0; i < n; i++) {
        const view_graph *g = &d[i].graph;
        const double high = g->height < 900 ? g->height : 900;
        buffer_printf(
            &panes,
            "<div class=\"pane\"><b>%s: %u nodes</b>\n<svg class=\"graph\" id=\"%s\" viewBox=\"0 0 %.0f "
            "%.0f\">\n",
            d[i].title, count_nodes(g), d[i].title, g->width, high);
        draw(g, &colors, &panes);
        buffer_printf(&panes, "</svg></div>\n");
    }
    char *css = mem_printf("%s%s", style, page_css);
    page_begin(b, path, css);
    free(css);
    buffer_printf(b, "<h1>");
    page_text(b, path);
    buffer_printf(b, "</h1>\n<p><input id=\"find\" placeholder=\"find by name, operator or kernel\"> <span "
                     "id=\"count\"></span> <svg width=\"560\" height=\"18\">");
    legend(&colors, 4, 14, b);
    buffer_printf(b, "</svg></p>\n<div class=\"panes\">\n");
    buffer_add(b, panes.data, panes.size);
    buffer_printf(b, "</div>\n");
    page_end(b, page_script);
    free(panes.data);
}

/* ---- The command --------------------------------------------------------------------------------------- */

static int gather_before(const char *path, drawing *d)
{
    ortc_model_options mo = ORTC_MODEL_OPTIONS_INIT;
    session_options so = {.provider = "ref", .no_fusion = true};
    ortc_model *model = NULL;
    ortc_session *session = NULL;
    ortc_error e = ORTC_ERROR_INIT;
    int code = -1;
    mo.flags = ORTC_MODEL_NO_PASSES;
    const ortc_status s = ortc_model_load(path, &mo, &model, &e);
    if (s != ORTC_OK) {
        say_error("%s", e.text);
        code = exit_code(s, STAGE_LOAD);
    }
    if (code < 0) code = session_open(model, &so, &session);
    if (code < 0) gather(model, session, &d->graph);
    ortc_session_release(session);
    ortc_model_release(model);
    return code;
}

static int gather_after(const char *path, const view_options *o, drawing *d)
{
    ortc_model *model = NULL;
    ortc_session *session = NULL;
    int code = model_open(path, &o->session, &model);
    if (code < 0) code = session_open(model, &o->session, &session);
    if (code < 0) gather(model, session, &d->graph);
    ortc_session_release(session);
    ortc_model_release(model);
    return code;
}

static int view_model(const char *path, const view_options *o)
{
    drawing d[2] = {{.title = "before"}, {.title = "after"}};
    const size_t first = o->which == WHICH_AFTER, end = o->which == WHICH_BEFORE ? 1 : 2;
    int code = -1;
    for (size_t i = first; i < end && code < 0; i++) {
        term_progress(2 * i, 4, "reading the graph");
        code = i == 0 ? gather_before(path, &d[0]) : gather_after(path, o, &d[1]);
        term_progress(2 * i + 1, 4, "laying it out");
        if (code < 0) view_layout(&d[i].graph);
    }
    term_progress_clear();
    if (code < 0) {
        buffer b = {0};
        ortc_error e = ORTC_ERROR_INIT;
        (has_suffix(o->out, ".svg") ? write_svg : write_page)(d + first, end - first, path, &b);
        const ortc_status s = file_write(o->out, b.data, b.size, &e);
        free(b.data);
        if (s != ORTC_OK) {
            say_error("-o: %s", e.text);
            code = EXIT_RUN;
        } else {
            for (size_t i = first; i < end; i++) put("%s: %u nodes\n", d[i].title, count_nodes(&d[i].graph));
        }
    }
    view_free(&d[0].graph);
    view_free(&d[1].graph);
    return finish(code < 0 ? EXIT_GOOD : code);
}

int command_view(int argc, char **argv)
{
    view_options o = {0};
    const arg_option options[] = {
        {.kind = ARG_HEADING, .help = "Drawing"},
        {.kind = ARG_TEXT,
         .letter = 'o',
         .name = "out",
         .value = "FILE",
         .to = &o.out,
         .help = "what to write: a page (.html) or a drawing (.svg)"},
        {.kind = ARG_CHOICE,
         .name = "graph",
         .value = "WHICH",
         .to = &o.which,
         .choices = which_choices,
         .help = "before the passes, after them and placement, or both (both)"},
        ARGS_SET(o.session),
        ARGS_SESSION(o.session),
        ARGS_COMMON,
    };
    const arg_command command = {"view",
                                 "MODEL -o FILE.html|FILE.svg [options]",
                                 "Draws a model's graph before and after the passes.",
                                 details,
                                 "one model",
                                 1,
                                 1,
                                 options};
    arg_list files;
    int code = args_parse(&command, argc, argv, &files);
    if (code < 0 && (!o.out || (!has_suffix(o.out, ".svg") && !has_suffix(o.out, ".html")))) {
        say_error("expects -o FILE.html or -o FILE.svg%s%s", o.out ? ", got " : "", o.out ? o.out : "");
        code = EXIT_USAGE;
    }
    if (code < 0) code = session_options_parse(&o.session);
    if (code < 0) code = writable_check("-o", o.out);
    if (code < 0) code = plugins_load(&o.session.plugins);
    return code < 0 ? view_model(files.items[0], &o) : code;
}
