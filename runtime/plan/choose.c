/* runtime/plan/choose.c: kernels and layouts of a segment's nodes (choose.h). */
#include "choose.h"

#include <math.h>

#include "runtime/registry/registry.h"

#define MAX_LAYOUTS 4 /* that are asked for, beside the plain one */
#define MAX_NEEDS 16  /* places in which one value is read */
#define MAX_USES 64   /* readers of one value that are looked at, so that one that all read costs no square */
#define MAX_SWEEPS 8
#define MAX_AROUND 32 /* nodes around a value that are changed together */

/* One way to run a node. */
typedef struct way {
    ortc_pick pick;
    bool liked; /* offered where nothing was asked for */
} way;

/* All ways of a node: as its kernels offer them, or the only one. */
typedef struct ways {
    way *list;
    uint32_t count, room, at; /* at: the one that is taken */
} ways;

typedef struct chooser {
    const ortc_choosing *c;
    ways *of; /* by node id */
    ortc_layout layouts[MAX_LAYOUTS];
    uint32_t n_layouts;
    uint32_t n_open;       /* nodes with more than one way */
    uint32_t *seen, stamp; /* by edge id: counted since the stamp was raised */
} chooser;

uint8_t ortc_port_space(const ortc_placed *p, const ortc_fact *facts, const ortc_node *n, uint32_t port,
                        bool input)
{
    uint8_t space = ortc_target_of(p, n)->space;
    const ortc_kernel *kernel = ortc_kernel_of(p, n);
    const ortc_edge *e = input ? n->in[port] : n->out[port];
    const ortc_fact *fact = &facts[e->id];
    if (!space || !fact->type || fact->type->kind != ORTC_KIND_TENSOR || fact->type->dtype == ORTC_STRING)
        return 0; /* strings and containers are host objects */
    uint32_t mask = input ? kernel->host_in : kernel->host_out;
    const ortc_formal *f = input ? ortc_schema_in(ortc_op_schema(n->op), port) : NULL;
    bool on_host = (mask >> (port < 31 ? port : 31) & 1) || (f && (f->flags & ORTC_FORMAL_DECIDES));
    return on_host ? 0 : space;
}

bool ortc_bytes_laid_out(ortc_dtype t, ortc_layout layout, int32_t rank, const int64_t *dims, size_t *out)
{
    int64_t padded[ORTC_MAX_RANK], count;
    const int64_t block = ortc_layout_block(layout);
    const int32_t axis = ortc_layout_axis(layout);
    if (block && axis < rank) {
        memcpy(padded, dims, (size_t)rank * sizeof *dims);
        if (dims[axis] > INT64_MAX - block) return false;
        padded[axis] = (dims[axis] + block - 1) / block * block;
        dims = padded;
    }
    return ortc_count_elements(rank, dims, &count) && ortc_tensor_bytes(t, count, out);
}

static bool runs(const chooser *h, const ortc_node *n) { return h->of[n->id].count > 0; }
static const ortc_pick *pick_of(const chooser *h, const ortc_node *n)
{
    return &h->of[n->id].list[h->of[n->id].at].pick;
}

/* ---- Questions and offers ------------------------------------------------------------------------------ */

/* A port as a kernel is asked about it; false: its extents are not known, so nobody can be asked. */
static bool view_of(const chooser *h, const ortc_edge *e, bool input, ortc_view *out)
{
    const ortc_fact *f = e ? &h->c->facts[e->id] : NULL;
    *out = (ortc_view){.rank = 0};
    if (!e) return true;
    if (!f->type || f->type->kind != ORTC_KIND_TENSOR) {
        out->flags = ORTC_VIEW_VALUE;
        return f->type != NULL;
    }
    *out = (ortc_view){.dtype = f->type->dtype,
                       .rank = f->rank < 0 ? 0 : f->rank,
                       .flags = ORTC_VIEW_HOST,
                       .dims = f->dims};
    bool sized = f->rank >= 0;
    for (int32_t i = 0; i < f->rank; i++) sized &= ortc_dim_is_number(f->dims[i]);
    if (ortc_edge_is_const(e)) {
        out->flags |= ORTC_VIEW_CONST;
        out->data = (void *)(uintptr_t)e->constant->data;
    }
    if (sized) return true;
    int64_t *dims = ortc_arena_array(h->c->arena, (size_t)out->rank, sizeof *dims);
    for (int32_t i = 0; dims && i < out->rank; i++)
        dims[i] = ortc_dim_is_number(f->dims[i]) ? f->dims[i] : -1;
    out->dims = dims;
    out->flags |= ORTC_VIEW_LATE;
    return dims && !input;
}

static bool makes(const chooser *h, const ortc_node *n, uint32_t port)
{
    return n->out[port] && (!h->c->makes || h->c->makes(h->c->arg, n, port));
}

/* A value that can lie in this layout where the node works: a whole tensor, of which there is a mover. */
static bool can_lie(const chooser *h, const ortc_node *n, uint32_t port, bool input, ortc_layout l)
{
    const ortc_edge *e = input ? n->in[port] : n->out[port];
    const ortc_placed *p = h->c->placed;
    const uint32_t space = ortc_target_of(p, n)->space;
    if (l == ORTC_PLAIN) return true;
    if (!e || e->constant || (!input && !makes(h, n, port))) return false; /* constants are packed instead */
    const ortc_fact *f = &h->c->facts[e->id];
    if (!f->type || f->type->kind != ORTC_KIND_TENSOR || f->rank < 1 || f->rank > 8) return false;
    for (int32_t i = 0; i < f->rank; i++)
        if (!ortc_dim_is_number(f->dims[i]) || ortc_layout_axis_at(l, i) >= f->rank) return false;
    return ortc_layout_axis(l) < f->rank && ortc_mover_of(p, space, f->type->dtype) &&
           ortc_port_space(p, h->c->facts, n, port, input) == space;
}

static bool fits(const chooser *h, const ortc_node *n, const ortc_offer *o)
{
    for (uint32_t i = 0; i < n->n_in; i++)
        if (!can_lie(h, n, i, true, o->in[i])) return false;
    for (uint32_t i = 0; i < n->n_out; i++)
        if (!can_lie(h, n, i, false, o->out[i])) return false;
    return true;
}

static bool all_plain(const ortc_layout *l, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (l[i]) return false;
    return true;
}

/* One candidate's offer, asked with a layout; *out false: none, or not one that can be taken. layouts: room
 * for those of all ports, which the offer keeps, or NULL. */
static ortc_status hear(const chooser *h, const ortc_node *n, const ortc_candidate *k, ortc_question *q,
                        ortc_layout layout, ortc_layout **layouts, way *w, bool *out)
{
    ortc_why why;
    const size_t ports = n->n_in + n->n_out;
    if (!*layouts) *layouts = ortc_arena_array(h->c->arena, ports, sizeof **layouts);
    if (!*layouts) return ortc_no_memory(h->c->error, 0);
    memset(*layouts, 0, ports * sizeof **layouts);
    ortc_offer o = {
        .size = sizeof o, .n_in = n->n_in, .n_out = n->n_out, .in = *layouts, .out = *layouts + n->n_in};
    ortc_why_init(&why, NULL); /* nobody reads why it declines */
    q->layout = layout;
    const ortc_status status = k->kernel->choose ? k->kernel->choose(k->state, q, &o, &why) : ORTC_OK;
    if (status != ORTC_OK && status != ORTC_UNSUPPORTED) {
        char buffer[256] = "";
        ortc_text text = ORTC_TEXT(buffer);
        ortc_why_init(&why, &text);
        k->kernel->choose(k->state, q, &o, &why);
        return ortc_fail(h->c->error, status, "node '%s' (%s): kernel '%s' failed to choose: %s", n->name,
                         n->type, k->kernel->name, buffer);
    }
    *out = status == ORTC_OK && fits(h, n, &o);
    const bool plain = all_plain(o.in, n->n_in) && all_plain(o.out, n->n_out);
    *w = (way){.pick = {.candidate = k,
                        .offer = {o.name ? o.name : k->kernel->name, o.clocks,
                                  plain      ? ORTC_PLAIN
                                  : n->n_out ? o.out[0]
                                             : ORTC_PLAIN},
                        .form = o.form,
                        .reuse = o.reuse,
                        .in = plain ? NULL : o.in,
                        .out = plain ? NULL : o.out}};
    return ORTC_OK;
}

static bool same_layouts(const ortc_node *n, const ortc_pick *a, const ortc_pick *b)
{
    if (!a->in || !b->in) return a->in == b->in;
    return !memcmp(a->in, b->in, n->n_in * sizeof *a->in) &&
           !memcmp(a->out, b->out, n->n_out * sizeof *a->out);
}

static void add_layout(chooser *h, ortc_layout l)
{
    for (uint32_t i = 0; i < h->n_layouts; i++)
        if (h->layouts[i] == l) return;
    if (l && h->n_layouts < MAX_LAYOUTS) h->layouts[h->n_layouts++] = l;
}

static bool is_open(const ortc_site *s)
{
    return s->n_candidates > 1 ||
           (s->candidates[0].kernel->choose && (s->candidates[0].kernel->flags & ORTC_KERNEL_LAYOUTS));
}

static ortc_status question_of(const chooser *h, const ortc_node *n, ortc_question *q, bool *out)
{
    ortc_view *in = ortc_arena_array(h->c->arena, n->n_in, sizeof *in),
              *outs = ortc_arena_array(h->c->arena, n->n_out, sizeof *outs);
    if (!in || !outs) return ortc_no_memory(h->c->error, 0);
    *q = (ortc_question){.size = sizeof *q,
                         .n_in = n->n_in,
                         .n_out = n->n_out,
                         .flags = h->c->placed->ask,
                         .in = in,
                         .out = outs,
                         .device = ortc_target_of(h->c->placed, n)->device};
    *out = true;
    for (uint32_t i = 0; i < n->n_in; i++) *out &= view_of(h, n->in[i], true, &in[i]);
    for (uint32_t i = 0; i < n->n_out; i++)
        *out &= view_of(h, makes(h, n, i) ? n->out[i] : NULL, false, &outs[i]);
    return ORTC_OK;
}

/* Where the next way goes; NULL: no memory. */
static way *next_way(const chooser *h, ways *all)
{
    if (all->count == all->room) {
        const uint32_t room = all->room ? all->room * 2 : 4;
        way *list = ortc_arena_array(h->c->arena, room, sizeof *list);
        if (!list) return NULL;
        if (all->count) memcpy(list, all->list, all->count * sizeof *list);
        all->list = list;
        all->room = room;
    }
    return &all->list[all->count];
}

/* Asks the candidates with one layout, and keeps what is new. */
static ortc_status ask(chooser *h, const ortc_node *n, ortc_question *q, ortc_layout layout)
{
    const ortc_site *s = ortc_site_of(h->c->placed, n);
    ways *all = &h->of[n->id];
    ortc_layout *room = NULL;
    for (uint32_t i = 0; i < s->n_candidates; i++) {
        const ortc_kernel *k = s->candidates[i].kernel;
        const bool last = i + 1 == s->n_candidates;
        bool yes, again = false;
        if (layout && (!k->choose || !(k->flags & ORTC_KERNEL_LAYOUTS))) continue;
        if (!k->choose && all->count) continue; /* it is for where all before it say no */
        way *w = next_way(h, all);
        if (!w) return ortc_no_memory(h->c->error, 0);
        ORTC_TRY(hear(h, n, &s->candidates[i], q, layout, &room, w, &yes));
        if (!yes || (layout && !w->pick.in)) continue;
        if (!last && !h->c->any_form && s->form && w->pick.form && w->pick.form != s->form) continue;
        for (uint32_t o = 0; o < all->count; o++)
            again |= all->list[o].pick.candidate == w->pick.candidate &&
                     same_layouts(n, &all->list[o].pick, &w->pick);
        w->liked = layout == ORTC_ANY_LAYOUT;
        all->count += !again;
        if (!again && w->pick.in) room = NULL;
    }
    return ORTC_OK;
}

/* ---- What the caller has chosen ------------------------------------------------------------------------ */

static const ortc_forced *forced(const ortc_placed *placed, const ortc_node *n, bool *by_name)
{
    const ortc_forced *found = NULL;
    *by_name = false;
    for (size_t i = 0; i < placed->n_forced && !*by_name; i++) {
        const char *of = placed->forced[i].of;
        *by_name = !strcmp(of, n->name);
        if (*by_name || !strcmp(of, n->type) || (!found && !strcmp(of, "*"))) found = &placed->forced[i];
    }
    return found;
}

/* Only the offers that it names stay, if there are any. */
static ortc_status keep_forced(const chooser *h, const ortc_node *n)
{
    ways *all = &h->of[n->id];
    bool by_name;
    const ortc_forced *f = forced(h->c->placed, n, &by_name);
    uint32_t kept = 0;
    for (uint32_t i = 0; f && i < all->count; i++) {
        const ortc_step_offer *o = &all->list[i].pick.offer;
        if ((!*f->kernel || !strcmp(f->kernel, o->name)) && (!f->laid_out || f->layout == o->layout))
            all->list[kept++] = all->list[i];
    }
    if (kept) all->count = kept;
    return kept || !f || !by_name
               ? ORTC_OK
               : ortc_fail(h->c->error, ORTC_INVALID_ARGUMENT,
                           "node '%s' (%s): the kernel '%s', which was chosen for it, is none of "
                           "its candidates for these shapes%s",
                           n->name, n->type, f->kernel, f->laid_out ? ", or not in that layout" : "");
}

/* ---- Costs --------------------------------------------------------------------------------------------- */

double ortc_reorder_clocks(const ortc_placed *p, const ortc_fact *f, uint32_t space, ortc_layout from,
                           ortc_layout to)
{
    const ortc_mover *m = f->type ? ortc_mover_of(p, space, f->type->dtype) : NULL;
    ortc_why why;
    size_t bytes;
    if (from == to) return 0;
    if (!m || f->rank < 0) return HUGE_VAL;
    const ortc_view in = {.dtype = f->type->dtype, .rank = f->rank, .dims = f->dims, .layout = from},
                    out = {.dtype = f->type->dtype, .rank = f->rank, .dims = f->dims, .layout = to};
    ortc_layout none[2] = {ORTC_PLAIN, ORTC_PLAIN};
    ortc_offer o = {.size = sizeof o, .n_in = 1, .n_out = 1, .in = &none[0], .out = &none[1]};
    const ortc_question q = {.size = sizeof q,
                             .n_in = 1,
                             .n_out = 1,
                             .in = &in,
                             .out = &out,
                             .device = p->targets->list[m->device].device,
                             .layout = to};
    const ortc_kernel *k = m->candidate.kernel;
    ortc_why_init(&why, NULL);
    if (k->choose) return k->choose(m->candidate.state, &q, &o, &why) == ORTC_OK ? o.clocks : HUGE_VAL;
    if (!ortc_bytes_laid_out(in.dtype, to ? to : from, in.rank, in.dims, &bytes)) return HUGE_VAL;
    return (double)bytes / 4; /* one that does not say: an element a clock */
}

/* In one step, else through the plain layout. */
static double move_cost(const chooser *h, const ortc_edge *e, uint32_t space, ortc_layout from,
                        ortc_layout to)
{
    const ortc_placed *p = h->c->placed;
    const ortc_fact *f = &h->c->facts[e->id];
    const double clocks = ortc_reorder_clocks(p, f, space, from, to);
    return clocks < HUGE_VAL || !from || !to ? clocks
                                             : ortc_reorder_clocks(p, f, space, from, ORTC_PLAIN) +
                                                   ortc_reorder_clocks(p, f, space, ORTC_PLAIN, to);
}

typedef struct need {
    uint32_t space;
    ortc_layout layout;
} need;

static void add_need(need *list, uint32_t *count, uint32_t space, ortc_layout l)
{
    for (uint32_t i = 0; i < *count; i++)
        if (list[i].space == space && list[i].layout == l) return;
    if (*count < MAX_NEEDS) list[(*count)++] = (need){space, l};
}

static bool is_read_outside(const chooser *h, const ortc_edge *e)
{
    bool output = false;
    for (const ortc_use *u = e->uses; u; u = u->next) output |= !u->node;
    return h->c->is_read ? h->c->is_read(h->c->arg, e) : output;
}

/* Clocks of all the reorderings of one value. From another device's memory it comes plain. */
static double edge_cost(const chooser *h, const ortc_edge *e)
{
    const ortc_placed *p = h->c->placed;
    const ortc_node *from = e->producer && runs(h, e->producer) ? e->producer : NULL;
    const ortc_pick *made = from ? pick_of(h, from) : NULL;
    const uint32_t space = from ? ortc_port_space(p, h->c->facts, from, e->producer_port, false) : UINT32_MAX;
    const ortc_layout layout = made && made->out ? made->out[e->producer_port] : ORTC_PLAIN;
    need needs[MAX_NEEDS];
    uint32_t count = 0;
    double clocks = 0;
    if (e->constant) return 0; /* plain */
    uint32_t seen = 0;
    for (const ortc_use *u = e->uses; u && seen < MAX_USES; u = u->next, seen++) {
        if (!u->node || !runs(h, u->node)) continue;
        const ortc_pick *read = pick_of(h, u->node);
        const uint32_t there = ortc_port_space(p, h->c->facts, u->node, u->port, true);
        const ortc_layout wanted = read->in ? read->in[u->port] : ORTC_PLAIN;
        if (there != space && space != UINT32_MAX) add_need(needs, &count, space, ORTC_PLAIN);
        if (there == space || wanted) add_need(needs, &count, there, wanted);
    }
    if (layout && is_read_outside(h, e)) add_need(needs, &count, space, ORTC_PLAIN);
    for (uint32_t i = 0; i < count; i++)
        clocks += move_cost(h, e, needs[i].space, needs[i].space == space ? layout : ORTC_PLAIN,
                            needs[i].layout);
    return clocks;
}

static double cost_once(chooser *h, const ortc_edge *e)
{
    if (!e || h->seen[e->id] == h->stamp) return 0;
    h->seen[e->id] = h->stamp;
    return edge_cost(h, e);
}

/* Clocks of some nodes and of the values around them. */
static double cost_around(chooser *h, const ortc_node *const *nodes, uint32_t count)
{
    double clocks = 0;
    h->stamp++;
    for (uint32_t k = 0; k < count; k++) {
        const ortc_node *n = nodes[k];
        clocks += pick_of(h, n)->offer.clocks;
        for (uint32_t i = 0; i < n->n_in; i++) clocks += cost_once(h, n->in[i]);
        for (uint32_t i = 0; i < n->n_out; i++) clocks += cost_once(h, n->out[i]);
    }
    return clocks;
}

static double cost_of_all(const chooser *h)
{
    const ortc_graph *g = h->c->placed->graph;
    double clocks = 0;
    for (const ortc_node *n = h->c->begin; n != h->c->end; n = n->next)
        if (runs(h, n)) clocks += pick_of(h, n)->offer.clocks;
    for (size_t i = 0; i < g->edges.count; i++) clocks += edge_cost(h, g->edges.data[i]);
    return clocks;
}

/* ---- Minimising ---------------------------------------------------------------------------------------- */

/* A way in this layout, the cheapest; where there is none, the cheapest of all. */
static uint32_t along(const ways *w, ortc_layout layout)
{
    uint32_t at = 0;
    for (uint32_t i = 1; i < w->count; i++) {
        const ortc_step_offer *a = &w->list[i].pick.offer, *b = &w->list[at].pick.offer;
        const bool a_fits = a->layout == layout, b_fits = b->layout == layout;
        if (a_fits != b_fits ? a_fits : a->clocks < b->clocks) at = i;
    }
    return at;
}

/* One node for the better. */
static bool improve_node(chooser *h, const ortc_node *n)
{
    ways *w = &h->of[n->id];
    if (w->count < 2) return false;
    const uint32_t before = w->at;
    uint32_t best = before;
    double least = cost_around(h, &n, 1);
    for (uint32_t i = 0; i < w->count; i++) {
        w->at = i;
        const double clocks = i == before ? least : cost_around(h, &n, 1);
        if (clocks < least) {
            least = clocks;
            best = i;
        }
    }
    w->at = best;
    return best != before;
}

/* The nodes that make and read a value, into one layout together. */
static bool improve_value(chooser *h, const ortc_edge *e)
{
    const ortc_node *nodes[MAX_AROUND];
    uint32_t count = 0, best[MAX_AROUND];
    bool better = false;
    if (e->producer && h->of[e->producer->id].count > 1) nodes[count++] = e->producer;
    for (const ortc_use *u = e->uses; u; u = u->next) {
        bool again = !u->node || h->of[u->node->id].count < 2;
        for (uint32_t i = 0; i < count && !again; i++) again = nodes[i] == u->node;
        if (again) continue;
        if (count == MAX_AROUND) return false;
        nodes[count++] = u->node;
    }
    if (count < 2) return false;
    for (uint32_t i = 0; i < count; i++) best[i] = h->of[nodes[i]->id].at;
    double least = cost_around(h, nodes, count);
    for (uint32_t l = 0; l <= h->n_layouts; l++) {
        for (uint32_t i = 0; i < count; i++)
            h->of[nodes[i]->id].at = along(&h->of[nodes[i]->id], l ? h->layouts[l - 1] : ORTC_PLAIN);
        const double clocks = cost_around(h, nodes, count);
        if (clocks >= least) continue;
        least = clocks;
        better = true;
        for (uint32_t i = 0; i < count; i++) best[i] = h->of[nodes[i]->id].at;
    }
    for (uint32_t i = 0; i < count; i++) h->of[nodes[i]->id].at = best[i];
    return better;
}

static void settle_down(chooser *h)
{
    bool any = true;
    const ortc_graph *g = h->c->placed->graph;
    for (int sweep = 0; any && sweep < MAX_SWEEPS; sweep++) {
        any = false;
        for (const ortc_node *n = h->c->begin; n != h->c->end; n = n->next) any |= improve_node(h, n);
        for (size_t i = 0; i < g->edges.count; i++) any |= improve_value(h, g->edges.data[i]);
    }
}

static void begin_with(chooser *h, ortc_layout layout)
{
    for (const ortc_node *n = h->c->begin; n != h->c->end; n = n->next)
        h->of[n->id].at = along(&h->of[n->id], layout);
}

static bool is_among(const ortc_layout *list, uint32_t n, ortc_layout l)
{
    for (uint32_t i = 0; list && i < n; i++)
        if (list[i] == l) return true;
    return false;
}

/* The cheapest way that a node likes which takes and gives values in a layout. *turns: there is one, liked or
 * not, that only takes or gives them. */
static double liked_in(const ways *w, const ortc_node *n, ortc_layout l, bool *turns)
{
    double least = HUGE_VAL;
    for (uint32_t i = 0; i < w->count; i++) {
        const ortc_pick *p = &w->list[i].pick;
        const bool in = is_among(p->in, n->n_in, l), out = is_among(p->out, n->n_out, l);
        *turns |= in != out;
        if (in && out && w->list[i].liked && p->offer.clocks < least) least = p->offer.clocks;
    }
    return least;
}

/* Whether all nodes that like a layout like another one as well, and none brings values into it, or out of
 * it: then it needs not be looked at. */
static bool is_no_better(const chooser *h, ortc_layout l, ortc_layout than)
{
    bool turns = false, ignored = false;
    for (const ortc_node *n = h->c->begin; n != h->c->end && !turns; n = n->next)
        if (liked_in(&h->of[n->id], n, l, &turns) < liked_in(&h->of[n->id], n, than, &ignored)) return false;
    return !turns;
}

/* What cannot be the answer costs time to look at. */
static void leave_out(chooser *h)
{
    for (uint32_t l = h->n_layouts; l-- > 0;) {
        const ortc_layout layout = h->layouts[l];
        bool leave = false;
        for (uint32_t k = 0; k < h->n_layouts && !leave; k++)
            leave = k != l && is_no_better(h, layout, h->layouts[k]);
        if (!leave) continue;
        for (const ortc_node *n = h->c->begin; n != h->c->end; n = n->next) {
            ways *w = &h->of[n->id];
            uint32_t kept = 0;
            for (uint32_t i = 0; i < w->count; i++)
                if (!is_among(w->list[i].pick.in, n->n_in, layout)) w->list[kept++] = w->list[i];
            if (kept) w->count = kept;
        }
        h->layouts[l] = h->layouts[--h->n_layouts];
    }
}

static ortc_status minimise(chooser *h)
{
    const size_t count = h->c->placed->graph->next_node;
    uint32_t *best = ortc_arena_array(h->c->arena, count, sizeof *best);
    double least = HUGE_VAL;
    if (!best) return ortc_no_memory(h->c->error, 0);
    for (uint32_t l = 0; l <= h->n_layouts; l++) {
        begin_with(h, l ? h->layouts[l - 1] : ORTC_PLAIN);
        if (h->n_layouts) settle_down(h); /* without layouts each node's cheapest is the answer */
        const double clocks = h->n_layouts ? cost_of_all(h) : 0;
        if (clocks >= least) continue;
        least = clocks;
        for (size_t i = 0; i < count; i++) best[i] = h->of[i].at;
    }
    for (size_t i = 0; i < count; i++) h->of[i].at = best[i];
    return ORTC_OK;
}

/* ---- The whole ----------------------------------------------------------------------------------------- */

/* Nodes with one kernel that knows no layouts have one way; the others what their kernels offer in the plain
 * layout, and in what they like best. */
static ortc_status begin_node(chooser *h, const ortc_node *n, ortc_question **questions)
{
    const ortc_site *s = ortc_site_of(h->c->placed, n);
    ways *all = &h->of[n->id];
    bool askable = false;
    ortc_question q;
    if (is_open(s)) ORTC_TRY(question_of(h, n, &q, &askable));
    if (!askable) {
        const ortc_candidate *only = &s->candidates[s->n_candidates - 1];
        if (!(all->list = ortc_arena_array(h->c->arena, 1, sizeof *all->list)))
            return ortc_no_memory(h->c->error, sizeof *all->list);
        all->list[0].pick = (ortc_pick){.candidate = only, .offer = {.name = only->kernel->name}};
        all->count = 1;
        return s->n_candidates == 1 ? keep_forced(h, n) : ORTC_OK;
    }
    h->n_open++;
    if (!(questions[n->id] = ortc_arena_copy(h->c->arena, &q, sizeof q)))
        return ortc_no_memory(h->c->error, 0);
    ORTC_TRY(ask(h, n, questions[n->id], ORTC_PLAIN));
    ORTC_TRY(ask(h, n, questions[n->id], ORTC_ANY_LAYOUT));
    for (uint32_t i = 0; i < all->count; i++) {
        const ortc_pick *p = &all->list[i].pick;
        for (uint32_t k = 0; p->in && k < n->n_in; k++) add_layout(h, p->in[k]);
        for (uint32_t k = 0; p->out && k < n->n_out; k++) add_layout(h, p->out[k]);
    }
    return all->count ? ORTC_OK
                      : ortc_fail(h->c->error, ORTC_INTERNAL,
                                  "node '%s' (%s): none of its kernels takes these shapes", n->name, n->type);
}

/* For `ortc info` and tests: what was there to choose from. */
static ortc_status note_offers(const chooser *h, const ways *w, ortc_pick *pick)
{
    ortc_step_offer *offers = ortc_arena_array(h->c->arena, w->count, sizeof *offers);
    if (!offers) return ortc_no_memory(h->c->error, 0);
    for (uint32_t i = 0; i < w->count; i++) offers[i] = w->list[i].pick.offer;
    pick->offers = offers;
    pick->n_offers = w->count;
    return ORTC_OK;
}

ortc_status ortc_choose(ortc_choosing *c)
{
    const size_t count = c->placed->graph->next_node;
    const size_t edges = c->placed->graph->edges.count;
    chooser h = {.c = c,
                 .of = ortc_arena_array(c->arena, count, sizeof *h.of),
                 .seen = ortc_arena_array(c->arena, edges, sizeof *h.seen)};
    ortc_question **questions = ortc_arena_array(c->arena, count, sizeof *questions);
    c->picks = ortc_arena_array(c->arena, count, sizeof *c->picks);
    if (!h.of || !h.seen || !questions || !c->picks) return ortc_no_memory(c->error, count * sizeof *h.of);
    for (size_t i = 0; i < c->placed->n_forced; i++) add_layout(&h, c->placed->forced[i].layout);
    for (const ortc_node *n = c->begin; n != c->end; n = n->next)
        if (!c->runs || c->runs(c->arg, n)) {
            ORTC_TRY(ortc_stop_poll(c->placed->stop, c->error));
            ORTC_TRY(begin_node(&h, n, questions));
        }
    for (const ortc_node *n = c->begin; n != c->end && h.n_open; n = n->next) {
        if (!questions[n->id]) continue;
        ORTC_TRY(ortc_stop_poll(c->placed->stop, c->error));
        for (uint32_t l = 0; l < h.n_layouts; l++) ORTC_TRY(ask(&h, n, questions[n->id], h.layouts[l]));
        ways *w = &h.of[n->id];
        if (w->count > 1) ORTC_TRY(note_offers(&h, w, &c->picks[n->id]));
        ORTC_TRY(keep_forced(&h, n));
    }
    leave_out(&h);
    if (h.n_open) ORTC_TRY(minimise(&h));
    for (const ortc_node *n = c->begin; n != c->end; n = n->next) {
        if (!runs(&h, n)) continue;
        const ortc_step_offer *offers = c->picks[n->id].offers;
        const uint32_t n_offers = c->picks[n->id].n_offers;
        c->picks[n->id] = *pick_of(&h, n);
        c->picks[n->id].offers = offers;
        c->picks[n->id].n_offers = n_offers;
    }
    return ORTC_OK;
}
