/* tools/ortc/view_layout.c: where the nodes of a drawing stand; see view.h. */
#include <math.h>
#include <stdlib.h>

#include "view.h"

enum { GAP_X = 18, GAP_Y = 34, BEND_WIDTH = 8, SWEEPS = 8, MOVES = 12, MARGIN = 20 };
/* An edge over more layers than this goes straight to its end: a bend in each layer would cost more than it
 * clears. */
enum { MOST_BENDS = 48 };

/* A node, or the place where an edge crosses a layer. */
typedef struct vertex {
    double width, x, wish, weight;
    uint32_t layer, place;           /* in its layer */
    uint32_t up, n_up, down, n_down; /* neighbours in the layers before and behind: in `near` */
} vertex;

typedef struct layout {
    vertex *v;
    uint32_t n, n_layers;
    uint32_t *near;
    uint32_t **rows; /* per layer, its vertices in order */
    uint32_t *lengths;
} layout;

double view_layer_y(uint32_t layer)
{
    return MARGIN + VIEW_HEIGHT / 2.0 + layer * (double)(VIEW_HEIGHT + GAP_Y);
}

/* ---- Layers -------------------------------------------------------------------------------------------- */

static uint32_t set_layers(view_graph *g)
{
    uint32_t deepest = 0;
    for (uint32_t i = 0; i < g->n_nodes; i++) g->nodes[i].layer = 0;
    /* Edges are sorted by the node that reads: one sweep. */
    for (uint32_t i = 0; i < g->n_edges; i++) {
        const uint32_t below = g->nodes[g->edges[i].from].layer + 1;
        view_node *to = &g->nodes[g->edges[i].to];
        if (to->layer < below) to->layer = below;
        if (deepest < below) deepest = below;
    }
    /* What nothing is above stands right above its first reader. */
    uint32_t *first = mem_alloc(g->n_nodes * sizeof *first);
    bool *reads = mem_alloc(g->n_nodes * sizeof *reads);
    for (uint32_t i = 0; i < g->n_edges; i++) {
        const view_edge *e = &g->edges[i];
        reads[e->to] = true;
        if (!first[e->from] || g->nodes[e->to].layer < first[e->from]) first[e->from] = g->nodes[e->to].layer;
    }
    for (uint32_t i = 0; i < g->n_nodes; i++)
        if (!reads[i] && first[i]) g->nodes[i].layer = first[i] - 1;
    free(first);
    free(reads);
    return deepest + 1;
}

/* ---- Vertices and their neighbours --------------------------------------------------------------------- */

static uint32_t bends_of(const view_graph *g, const view_edge *e)
{
    const uint32_t from = g->nodes[e->from].layer, to = g->nodes[e->to].layer;
    return to > from && to - from - 1 <= MOST_BENDS ? to - from - 1 : 0;
}

typedef struct link {
    uint32_t from, to;
} link;

static void make_vertices(layout *l, view_graph *g, link **out_links, size_t *out_n)
{
    size_t n_links = 0, made = 0;
    l->n = g->n_nodes;
    for (uint32_t i = 0; i < g->n_edges; i++) {
        g->edges[i].n_bends = bends_of(g, &g->edges[i]);
        l->n += g->edges[i].n_bends;
        n_links += g->edges[i].n_bends + 1;
    }
    l->v = mem_alloc(l->n * sizeof *l->v);
    link *links = mem_alloc(n_links * sizeof *links);
    for (uint32_t i = 0; i < g->n_nodes; i++)
        l->v[i] = (vertex){.width = g->nodes[i].width, .layer = g->nodes[i].layer, .weight = 1};
    uint32_t next = g->n_nodes;
    for (uint32_t i = 0; i < g->n_edges; i++) {
        const view_edge *e = &g->edges[i];
        uint32_t last = e->from;
        for (uint32_t k = 0; k < e->n_bends; k++) {
            l->v[next] = (vertex){.width = BEND_WIDTH, .layer = l->v[e->from].layer + 1 + k, .weight = 4};
            links[made++] = (link){last, next};
            last = next++;
        }
        if (l->v[e->to].layer == l->v[last].layer + 1) links[made++] = (link){last, e->to};
    }
    *out_links = links;
    *out_n = made;
}

static void make_neighbours(layout *l, const link *links, size_t n)
{
    uint32_t at = 0;
    for (size_t i = 0; i < n; i++) {
        l->v[links[i].from].n_down++;
        l->v[links[i].to].n_up++;
    }
    l->near = mem_alloc(2 * n * sizeof *l->near);
    for (uint32_t i = 0; i < l->n; i++) {
        l->v[i].up = at;
        l->v[i].down = at + l->v[i].n_up;
        at += l->v[i].n_up + l->v[i].n_down;
        l->v[i].n_up = l->v[i].n_down = 0;
    }
    for (size_t i = 0; i < n; i++) {
        vertex *a = &l->v[links[i].from], *b = &l->v[links[i].to];
        l->near[a->down + a->n_down++] = links[i].to;
        l->near[b->up + b->n_up++] = links[i].from;
    }
}

static void make_rows(layout *l)
{
    l->rows = mem_alloc(l->n_layers * sizeof *l->rows);
    l->lengths = mem_alloc(l->n_layers * sizeof *l->lengths);
    for (uint32_t i = 0; i < l->n; i++) l->lengths[l->v[i].layer]++;
    for (uint32_t r = 0; r < l->n_layers; r++) {
        l->rows[r] = mem_alloc(l->lengths[r] * sizeof **l->rows);
        l->lengths[r] = 0;
    }
    for (uint32_t i = 0; i < l->n; i++) {
        vertex *v = &l->v[i];
        v->place = l->lengths[v->layer]++;
        l->rows[v->layer][v->place] = i;
    }
}

/* ---- The order within layers --------------------------------------------------------------------------- */

static const vertex *sorted; /* qsort hands nothing on */

static int by_wish(const void *a, const void *b)
{
    const vertex *x = &sorted[*(const uint32_t *)a], *y = &sorted[*(const uint32_t *)b];
    if (x->wish != y->wish) return x->wish < y->wish ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

/* The mean of neighbours above, or below; `otherwise` without any. */
static double mean(const layout *l, const vertex *v, bool above, bool places, double otherwise)
{
    const uint32_t *near = l->near + (above ? v->up : v->down), n = above ? v->n_up : v->n_down;
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += places ? l->v[near[i]].place : l->v[near[i]].x;
    return n ? sum / n : otherwise;
}

static void sort_row(layout *l, uint32_t r, bool above)
{
    uint32_t *row = l->rows[r], n = l->lengths[r];
    for (uint32_t i = 0; i < n; i++) l->v[row[i]].wish = mean(l, &l->v[row[i]], above, true, i);
    sorted = l->v;
    qsort(row, n, sizeof *row, by_wish);
    for (uint32_t i = 0; i < n; i++) l->v[row[i]].place = i;
}

/* ---- Places -------------------------------------------------------------------------------------------- */

/* Nearest to the wishes by least squares, in order and without overlap: with the room that those before take
 * subtracted, what is wanted is a sequence that does not fall, and runs that would are pooled to their mean.
 */
static void place_row(layout *l, uint32_t r)
{
    typedef struct run {
        double sum, weight;
        uint32_t count;
    } run;
    const uint32_t *row = l->rows[r], n = l->lengths[r];
    run *runs = mem_alloc(n * sizeof *runs);
    double offset = 0;
    uint32_t n_runs = 0;
    for (uint32_t i = 0; i < n; i++) {
        vertex *v = &l->v[row[i]];
        if (i) offset += l->v[row[i - 1]].width / 2 + GAP_X + v->width / 2;
        runs[n_runs++] = (run){(v->wish - offset) * v->weight, v->weight, 1};
        for (; n_runs > 1; n_runs--) {
            run *last = &runs[n_runs - 1], *before = last - 1;
            if (before->sum / before->weight <= last->sum / last->weight) break;
            *before = (run){before->sum + last->sum, before->weight + last->weight,
                            before->count + last->count};
        }
        v->x = offset; /* for now */
    }
    for (uint32_t k = 0, i = 0; k < n_runs; k++)
        for (uint32_t c = 0; c < runs[k].count; c++, i++) l->v[row[i]].x += runs[k].sum / runs[k].weight;
    free(runs);
}

static void move_row(layout *l, uint32_t r, bool above, bool both)
{
    for (uint32_t i = 0; i < l->lengths[r]; i++) {
        vertex *v = &l->v[l->rows[r][i]];
        v->wish = mean(l, v, above, false, v->x);
        if (both) v->wish = (v->wish + mean(l, v, !above, false, v->wish)) / 2;
    }
    place_row(l, r);
}

static void arrange(layout *l)
{
    for (int s = 0; s < SWEEPS; s++)
        for (uint32_t i = 1; i < l->n_layers; i++) sort_row(l, s % 2 ? l->n_layers - 1 - i : i, s % 2 == 0);
    for (uint32_t r = 0; r < l->n_layers; r++) {
        for (uint32_t i = 0; i < l->lengths[r]; i++) l->v[l->rows[r][i]].wish = 0;
        place_row(l, r);
    }
    for (int s = 0; s < MOVES; s++)
        for (uint32_t i = 0; i < l->n_layers; i++)
            move_row(l, s % 2 ? l->n_layers - 1 - i : i, s % 2 == 0, s > MOVES / 2);
}

static void tell(const layout *l, view_graph *g)
{
    double left = INFINITY, right = -INFINITY;
    for (uint32_t i = 0; i < l->n; i++) {
        left = fmin(left, l->v[i].x - l->v[i].width / 2);
        right = fmax(right, l->v[i].x + l->v[i].width / 2);
    }
    if (!l->n) left = right = 0;
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        g->nodes[i].x = l->v[i].x - left + MARGIN;
        g->nodes[i].y = view_layer_y(g->nodes[i].layer);
    }
    uint32_t next = g->n_nodes;
    for (uint32_t i = 0; i < g->n_edges; i++) {
        view_edge *e = &g->edges[i];
        e->bends = mem_alloc(e->n_bends * sizeof *e->bends);
        for (uint32_t k = 0; k < e->n_bends; k++) e->bends[k] = l->v[next++].x - left + MARGIN;
    }
    g->width = right - left + 2 * MARGIN;
    g->height = view_layer_y(l->n_layers ? l->n_layers - 1 : 0) + VIEW_HEIGHT / 2.0 + MARGIN;
}

void view_layout(view_graph *g)
{
    layout l = {0};
    link *links;
    size_t n_links;
    l.n_layers = set_layers(g);
    make_vertices(&l, g, &links, &n_links);
    make_neighbours(&l, links, n_links);
    make_rows(&l);
    arrange(&l);
    tell(&l, g);
    for (uint32_t r = 0; r < l.n_layers; r++) free(l.rows[r]);
    free(l.rows);
    free(l.lengths);
    free(l.near);
    free(l.v);
    free(links);
}

void view_free(view_graph *g)
{
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const view_node *n = &g->nodes[i];
        free(n->name);
        free(n->op);
        free(n->provider);
        free(n->kernel);
        free(n->fused);
        free(n->reasons);
    }
    for (uint32_t i = 0; i < g->n_edges; i++) {
        free(g->edges[i].name);
        free(g->edges[i].bends);
    }
    free(g->nodes);
    free(g->edges);
    *g = (view_graph){0};
}
