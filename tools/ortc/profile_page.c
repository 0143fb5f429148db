/* tools/ortc/profile_page.c: `ortc profile --page`: the median run as a timeline, the memory of its plan
 * under it, the nodes in the machine's roofline, and the table. Drawn here, in SVG: the page's script only
 * sorts the table. */
#include "profile_page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "info.h"
#include "page.h"

enum { WIDTH = 1160, LEFT = 70, LANE = 22, MEMORY = 120, ROOF_WIDTH = 760, ROOF_HEIGHT = 380 };

static const char style[] =
    ".bar{stroke:var(--back);stroke-width:.5}.live{fill:#0969da33;stroke:#0969da}.roof{stroke:var(--hot);"
    "stroke-width:2;fill:none}.dot{fill:#0969da66;stroke:#0969da}.cards span{margin-right:2em}\n";

/* Operators by hue: the same one everywhere. */
static unsigned hue(const char *op)
{
    unsigned h = 2166136261u;
    for (; *op; op++) h = (h ^ (unsigned char)*op) * 16777619u;
    return h % 360;
}

/* ---- The median run ------------------------------------------------------------------------------------ */

static int by_seconds(const void *a, const void *b)
{
    const double x = (*(const profile_run *const *)a)->seconds, y = (*(const profile_run *const *)b)->seconds;
    return (x > y) - (x < y);
}

static const profile_run *median_run(const profile_runs *runs)
{
    const profile_run **sorted = mem_alloc(runs->count * sizeof *sorted);
    for (size_t i = 0; i < runs->count; i++) sorted[i] = &runs->items[i];
    qsort(sorted, runs->count, sizeof *sorted, by_seconds);
    const profile_run *r = sorted[runs->count / 2];
    free(sorted);
    return r;
}

typedef struct bar {
    const trace_event *event;
    uint32_t depth; /* of steps that run steps */
} bar;

static int by_start(const void *a, const void *b)
{
    const trace_event *x = ((const bar *)a)->event, *y = ((const bar *)b)->event;
    if (x->start_ns != y->start_ns) return x->start_ns < y->start_ns ? -1 : 1;
    return (x->duration_ns < y->duration_ns) - (x->duration_ns > y->duration_ns);
}

/* The run's steps by their start, and how deep each lies. */
static size_t bars_of(const trace *t, const profile_run *r, bar **out, uint32_t *out_depth)
{
    bar *bars = mem_alloc((r->end - r->first) * sizeof *bars);
    size_t n = 0;
    *out_depth = 0;
    for (size_t i = r->first; i < r->end; i++)
        if (t->events[i].kind == ORTC_PROFILE_STEP) bars[n++].event = &t->events[i];
    if (n) qsort(bars, n, sizeof *bars, by_start);
    size_t *open = mem_alloc(n * sizeof *open), depth = 0;
    for (size_t i = 0; i < n; i++) {
        const int64_t start = bars[i].event->start_ns;
        while (depth &&
               bars[open[depth - 1]].event->start_ns + bars[open[depth - 1]].event->duration_ns <= start)
            depth--;
        bars[i].depth = (uint32_t)depth;
        open[depth++] = i;
        if (depth > *out_depth) *out_depth = (uint32_t)depth;
    }
    free(open);
    *out = bars;
    return n;
}

/* ---- The plan's memory --------------------------------------------------------------------------------- */

typedef struct memory {
    uint64_t *live; /* by step */
    char **nodes;
    size_t count;
} memory;

static int each_step(void *arg, const ortc_step_info *s)
{
    memory *m = arg;
    m->live = mem_grow(m->live, m->count + 1, sizeof *m->live);
    m->nodes = mem_grow(m->nodes, m->count + 1, sizeof *m->nodes);
    m->live[m->count] = s->live;
    m->nodes[m->count++] = mem_copy(s->node);
    return 0;
}

static void draw_memory(const bar *bars, size_t n, const memory *m, double scale, int64_t zero, double top,
                        buffer *b)
{
    uint64_t most = 1;
    for (size_t i = 0; i < m->count; i++) most = m->live[i] > most ? m->live[i] : most;
    char *text = info_bytes(most);
    buffer_printf(
        b,
        "<text class=\"dim\" x=\"0\" y=\"%.0f\">%s</text><text class=\"dim\" x=\"0\" y=\"%.0f\">0</text>\n",
        top + 12, text, top + MEMORY);
    free(text);
    buffer_printf(b, "<path id=\"memory\" class=\"live\" d=\"M%d %.1f", LEFT, top + MEMORY);
    double x = LEFT;
    for (size_t i = 0; i < n; i++) {
        const trace_event *e = bars[i].event;
        if (bars[i].depth || e->step >= m->count || strcmp(m->nodes[e->step], e->name) != 0) continue;
        const double y = top + MEMORY * (1 - (double)m->live[e->step] / (double)most);
        const double end = LEFT + scale * (double)(e->start_ns + e->duration_ns - zero);
        buffer_printf(b, "L%.2f %.1fL%.2f %.1f", x, y, end, y);
        x = end;
    }
    buffer_printf(b, "L%.2f %.1fZ\"/>\n", x, top + MEMORY);
}

/* ---- The timeline -------------------------------------------------------------------------------------- */

static void draw_timeline(const profile_view *v, buffer *b)
{
    const profile_run *r = median_run(v->runs);
    bar *bars;
    uint32_t depth;
    const size_t n = bars_of(v->trace, r, &bars, &depth);
    memory m = {0};
    ortc_error e = ORTC_ERROR_INIT;
    const ortc_status known = ortc_session_plan(v->session, v->inputs->in, v->inputs->n_in, NULL, each_step,
                                                &m, &e);
    const int64_t zero = n ? bars[0].event->start_ns : 0;
    int64_t last = zero + 1;
    for (size_t i = 0; i < n; i++) {
        const int64_t end = bars[i].event->start_ns + bars[i].event->duration_ns;
        last = end > last ? end : last;
    }
    const double scale = (WIDTH - LEFT) / (double)(last - zero), lanes = (double)depth * LANE;
    buffer_printf(
        b,
        "<h2>Timeline of the median run: %.3f ms</h2>\n<svg id=\"timeline\" width=\"100%%\" viewBox=\"0 0 %d "
        "%.0f\">\n",
        1e3 * r->seconds, WIDTH, lanes + 40 + MEMORY + 10);
    for (size_t i = 0; i < n; i++) {
        const trace_event *s = bars[i].event;
        const double wide = scale * (double)s->duration_ns;
        buffer_printf(b,
                      "<rect class=\"bar\" x=\"%.2f\" y=\"%u\" width=\"%.2f\" height=\"%d\" fill=\"hsl(%u "
                      "55%% 60%%)\"><title>",
                      LEFT + scale * (double)(s->start_ns - zero), bars[i].depth * LANE,
                      wide < 0.3 ? 0.3 : wide, LANE - 2, hue(*s->op ? s->op : s->name));
        page_text(b, s->name);
        buffer_printf(b, " ");
        page_text(b, s->op);
        buffer_printf(b, " ");
        page_text(b, s->kernel);
        buffer_printf(b, " %.4f ms</title></rect>\n", 1e-6 * (double)s->duration_ns);
    }
    for (int i = 0; i <= 10; i++) {
        const double x = LEFT + (WIDTH - LEFT) * i / 10.0;
        buffer_printf(b, "<text class=\"dim\" x=\"%.0f\" y=\"%.0f\"%s>%.3g ms</text>\n", x, lanes + 14,
                      i ? " text-anchor=\"end\"" : "", 1e-7 * (double)(last - zero) * i);
    }
    if (known == ORTC_OK && m.count) draw_memory(bars, n, &m, scale, zero, lanes + 36, b);
    buffer_printf(b, "</svg>\n<p class=\"dim\">Below: bytes of arenas and workspace that hold what is still "
                     "needed.</p>\n");
    for (size_t i = 0; i < m.count; i++) free(m.nodes[i]);
    free(m.nodes);
    free(m.live);
    free(bars);
}

/* ---- The roofline -------------------------------------------------------------------------------------- */

/* Logarithmic axes: operations a byte, and operations a second. */
typedef struct axes {
    double x0, x1, y0, y1; /* log10 */
} axes;

static double at_x(const axes *a, double v)
{
    return LEFT + (ROOF_WIDTH - LEFT) * (log10(v) - a->x0) / (a->x1 - a->x0);
}

static double at_y(const axes *a, double v)
{
    return (ROOF_HEIGHT - 30) * (1 - (log10(v) - a->y0) / (a->y1 - a->y0));
}

static bool has_point(const profile_line *l) { return l->flops > 0 && l->bytes > 0 && l->own > 0; }

static void draw_axes(const axes *a, buffer *b)
{
    for (double d = a->x0; d <= a->x1; d++)
        buffer_printf(b,
                      "<path class=\"axis\" d=\"M%.1f 0V%d\"/><text class=\"dim\" x=\"%.1f\" y=\"%d\" "
                      "text-anchor=\"middle\">%g</text>\n",
                      at_x(a, pow(10, d)), ROOF_HEIGHT - 30, at_x(a, pow(10, d)), ROOF_HEIGHT - 14,
                      pow(10, d));
    for (double d = a->y0; d <= a->y1; d++)
        buffer_printf(b,
                      "<path class=\"axis\" d=\"M%d %.1fH%d\"/><text class=\"dim\" x=\"%d\" y=\"%.1f\" "
                      "text-anchor=\"end\">%g</text>\n",
                      LEFT, at_y(a, pow(10, d)), ROOF_WIDTH, LEFT - 6, at_y(a, pow(10, d)) + 4,
                      pow(10, d - 9));
    buffer_printf(
        b,
        "<text class=\"dim\" x=\"%d\" y=\"%d\" text-anchor=\"end\">flop a byte</text><text class=\"dim\" "
        "x=\"%d\" y=\"14\">GFLOP/s</text>\n",
        ROOF_WIDTH, ROOF_HEIGHT - 1, LEFT + 6);
}

static void draw_roofline(const profile_view *v, buffer *b)
{
    const machine *m = v->machine;
    const double ridge = m->flops / m->bandwidth;
    axes a = {log10(ridge) - 2, log10(ridge) + 1, log10(m->flops) - 3, log10(m->flops) + 0.3};
    for (size_t i = 0; i < v->nodes->count; i++) {
        const profile_line *l = &v->nodes->items[i];
        if (!has_point(l)) continue;
        a.x0 = fmin(a.x0, log10(l->flops / l->bytes));
        a.x1 = fmax(a.x1, log10(l->flops / l->bytes));
        a.y0 = fmin(a.y0, log10(l->flops / l->own));
        a.y1 = fmax(a.y1, log10(l->flops / l->own));
    }
    a = (axes){floor(a.x0), ceil(a.x1), floor(a.y0), ceil(a.y1)};
    buffer_printf(b, "<h2>Roofline</h2>\n<svg id=\"roofline\" width=\"%d\" viewBox=\"0 -10 %d %d\">\n",
                  ROOF_WIDTH + 30, ROOF_WIDTH + 30, ROOF_HEIGHT + 14);
    draw_axes(&a, b);
    const double left = pow(10, a.x0), right = pow(10, a.x1), low = left * m->bandwidth;
    const double start = low < pow(10, a.y0) ? pow(10, a.y0) / m->bandwidth : left;
    buffer_printf(b,
                  "<path class=\"roof\" d=\"M%.1f %.1fL%.1f %.1fL%.1f %.1f\"><title>%.4g GFLOP/s, %.3g "
                  "GB/s</title></path>\n",
                  at_x(&a, start), at_y(&a, start * m->bandwidth), at_x(&a, ridge), at_y(&a, m->flops),
                  at_x(&a, right), at_y(&a, m->flops), 1e-9 * m->flops, 1e-9 * m->bandwidth);
    for (size_t i = 0; i < v->nodes->count; i++) {
        const profile_line *l = &v->nodes->items[i];
        if (!has_point(l)) continue;
        buffer_printf(b, "<circle class=\"dot\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"><title>",
                      at_x(&a, l->flops / l->bytes), at_y(&a, l->flops / l->own),
                      3 + 22 * sqrt(l->own / v->nodes->total));
        page_text(b, l->name);
        buffer_printf(b, " ");
        page_text(b, l->op);
        buffer_printf(b, " %.3g GFLOP/s, %.0f %% of the roof</title></circle>\n", 1e-9 * l->flops / l->own,
                      1e2 * profile_roof(l, m));
    }
    buffer_printf(b, "</svg>\n<p class=\"dim\">A circle is a node, its area the node's share of the time. "
                     "What stays in caches "
                     "may stand above the slope.</p>\n");
}

/* ---- The table, and all of it -------------------------------------------------------------------------- */

static void number(buffer *b, double v)
{
    if (v > 0)
        buffer_printf(b, "<td class=\"n\">%.4g</td>", v);
    else
        buffer_printf(b, "<td></td>");
}

static void write_table(const profile_view *v, buffer *b)
{
    static const char *const heading[] = {"node",    "operator", "kernel",  "provider", "ms a run",
                                          "share %", "calls",    "GFLOP/s", "GB/s",     "roof %"};
    const double runs = (double)v->runs->count;
    buffer_printf(b, "<h2>Nodes</h2>\n<table id=\"nodes\"><thead><tr>");
    for (size_t i = 0; i < COUNT_OF(heading); i++)
        buffer_printf(b, "<th%s>%s</th>", i < 4 ? "" : " class=\"n\"", heading[i]);
    buffer_printf(b, "</tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < v->nodes->count; i++) {
        const profile_line *l = &v->nodes->items[i];
        const char *const words[] = {l->name, l->op, l->kernel, l->provider};
        buffer_printf(b, "<tr>");
        for (size_t k = 0; k < COUNT_OF(words); k++) {
            buffer_printf(b, "<td>");
            page_text(b, words[k]);
            buffer_printf(b, "</td>");
        }
        number(b, 1e3 * l->own / runs);
        number(b, 1e2 * l->own / v->nodes->total);
        number(b, (double)l->calls / runs);
        number(b, 1e-9 * l->flops / l->own);
        number(b, 1e-9 * l->bytes / l->own);
        number(b, 1e2 * profile_roof(l, v->machine));
        buffer_printf(b, "</tr>\n");
    }
    buffer_printf(b, "</tbody></table>\n");
}

/* A click on a heading sorts, a second one turns the order round. */
static const char script[] =
    "for(const th of document.querySelectorAll('#nodes th'))th.addEventListener('click',()=>{\n"
    " const i=th.cellIndex,body=th.closest('table').tBodies[0],down=th.dataset.down!=='1';\n"
    " th.dataset.down=down?'1':'0';const key=r=>r.cells[i].textContent;\n"
    " const number=th.classList.contains('n');\n"
    " [...body.rows].sort((a,b)=>{const x=key(a),y=key(b);\n"
    "  return(down?-1:1)*(number?(+x||0)-(+y||0):x<y?-1:x>y?1:0)}).forEach(r=>body.append(r))});\n";

int profile_page(const char *path, const profile_view *v)
{
    buffer b = {0};
    page_begin(&b, v->model, style);
    buffer_printf(&b, "<h1>");
    page_text(&b, v->model);
    buffer_printf(
        &b,
        "</h1>\n<p class=\"cards\"><span>%zu runs, mean <b>%.3f ms</b></span><span>in steps %.1f %%</span>"
        "<span>provider ",
        v->runs->count, 1e3 * v->runs->wall / (double)v->runs->count, 1e2 * v->nodes->total / v->runs->wall);
    page_text(&b, v->provider ? v->provider : "cpu");
    buffer_printf(&b,
                  "</span><span>this machine, %u threads: %.4g GFLOP/s of f32, %.3g GB/s</span><span>ortc "
                  "%s</span></p>\n",
                  v->machine->threads, 1e-9 * v->machine->flops, 1e-9 * v->machine->bandwidth,
                  ortc_version());
    draw_timeline(v, &b);
    if (v->machine->flops > 0 && v->machine->bandwidth > 0) draw_roofline(v, &b);
    write_table(v, &b);
    page_end(&b, script);
    ortc_error e = ORTC_ERROR_INIT;
    const ortc_status s = file_write(path, b.data, b.size, &e);
    free(b.data);
    if (s == ORTC_OK) return -1;
    say_error("--page: %s", e.text);
    return EXIT_RUN;
}
