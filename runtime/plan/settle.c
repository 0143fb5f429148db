/* runtime/plan/settle.c: what runs each node, and in which form its constants are packed, settled when a
 * session is made, for the extents that are expected (choose.h).
 *
 * Expected are the numbers that the model and the caller give (ortc_session_options.dims); for symbols 1
 * where one is the first extent of an input, 224 behind the second extent of an input of rank 4 or more
 * (pictures), else 64.
 */
#include "choose.h"

#define EXPECTED_IMAGE 224
#define EXPECTED 64

static int64_t symbol_of(const ortc_dims *t, ortc_dim d)
{
    const size_t i = (size_t)(ORTC_DIM_NUMBERS - 1 - d);
    if (ortc_dim_is_number(d) || d == ORTC_DIM_UNKNOWN || i >= t->exprs.count || t->exprs.data[i].what)
        return -1;
    return t->exprs.data[i].symbol;
}

/* Numbers for all dims; free() them. */
static ortc_dim *expected(const ortc_graph *g, ortc_arena *arena)
{
    int64_t *values = ortc_arena_array(arena, g->dims->symbols.count, sizeof *values);
    for (size_t i = 0; values && i < g->dims->symbols.count; i++) values[i] = EXPECTED;
    for (uint32_t i = 0; values && i < g->n_inputs; i++) {
        const ortc_edge *e = g->inputs[i].edge;
        for (int32_t k = 0; k < e->rank; k++) {
            const int64_t s = symbol_of(g->dims, e->dims[k]);
            if (s >= 0 && (k == 0 || (e->rank > 3 && k > 1))) values[s] = k ? EXPECTED_IMAGE : 1;
        }
    }
    return values ? ortc_dims_evaluate(g->dims, values) : NULL;
}

/* What is known of a value, with numbers in place of symbols; a shape that does not come out is not known. */
static bool fact_of(const ortc_edge *e, const ortc_dim *numbers, ortc_arena *arena, ortc_fact *out)
{
    int64_t *dims = e->rank > 0 ? ortc_arena_array(arena, (size_t)e->rank, sizeof *dims) : NULL;
    *out = (ortc_fact){.type = e->type, .rank = e->rank, .dims = dims};
    if (e->rank > 0 && !dims) return false;
    for (int32_t k = 0; k < e->rank; k++) {
        dims[k] = ortc_dims_number(numbers, e->dims[k]);
        if (!ortc_dim_is_number(dims[k]) || dims[k] < 0) out->rank = -1;
    }
    return true;
}

/* Of all values that nodes read and make; others are what passes have left behind. */
static ortc_fact *facts_of(const ortc_graph *g, const ortc_dim *numbers, ortc_arena *arena)
{
    ortc_fact *facts = ortc_arena_array(arena, g->edges.count, sizeof *facts);
    bool ok = facts != NULL;
    for (size_t i = 0; ok && i < g->edges.count; i++) facts[i].rank = -1;
    for (const ortc_node *n = g->first; n && ok; n = n->next) {
        for (uint32_t i = 0; i < n->n_in && ok; i++)
            if (n->in[i] && !facts[n->in[i]->id].type)
                ok = fact_of(n->in[i], numbers, arena, &facts[n->in[i]->id]);
        for (uint32_t i = 0; i < n->n_out && ok; i++)
            if (n->out[i]) ok = fact_of(n->out[i], numbers, arena, &facts[n->out[i]->id]);
    }
    return ok ? facts : NULL;
}

/* Not what makes nothing, nor what does not fit: its shapes mean nothing. */
static bool is_settled(const void *arg, const ortc_node *n)
{
    bool any = false;
    (void)arg;
    for (uint32_t i = 0; i < n->n_out; i++) any |= n->out[i] != NULL;
    return any && !n->misfit;
}

static bool has_choice(const ortc_placed *p)
{
    bool any = false;
    for (const ortc_node *n = p->graph->first; n && !any; n = n->next)
        any = ortc_site_of(p, n)->n_candidates > 1;
    return any;
}

/* Of the constants that kernels want in forms of their own. */
static size_t packed_bytes(const ortc_placed *p)
{
    size_t bytes = 0;
    for (const ortc_node *n = p->graph->first; n; n = n->next)
        for (uint32_t i = 0; i < n->n_in && ortc_site_of(p, n)->form; i++)
            if (n->in[i] && n->in[i]->constant) bytes += n->in[i]->constant->bytes;
    return bytes;
}

/* A node's choice, with copies of what it points to. false: no memory. */
static bool keep_pick(ortc_arena *arena, const ortc_node *n, ortc_pick *pick)
{
    if (pick->in) { /* layouts of all ports, beside each other */
        pick->in = ortc_arena_copy(arena, pick->in, (n->n_in + n->n_out) * sizeof *pick->in);
        if (!pick->in) return false;
        pick->out = pick->in + n->n_in;
    }
    if (!pick->offers) return true;
    pick->offers = ortc_arena_copy(arena, pick->offers, pick->n_offers * sizeof *pick->offers);
    return pick->offers;
}

/* Keeps what was chosen, as long as the graph. */
static bool keep(ortc_placed *p, const ortc_choosing *c)
{
    ortc_arena *arena = &p->graph->arena;
    ortc_pick *picks = ortc_arena_copy(arena, c->picks, p->graph->next_node * sizeof *picks);
    for (const ortc_node *n = picks ? p->graph->first : NULL; n; n = n->next) {
        if (!keep_pick(arena, n, &picks[n->id])) return false;
        ortc_site_of(p, n)->form = picks[n->id].form;
    }
    p->settled = picks;
    p->expected = c->facts;
    return picks;
}

ortc_status ortc_settle(ortc_placed *p, ortc_error *error)
{
    ortc_arena arena = {0};
    if (!has_choice(p)) return ORTC_OK;
    ortc_dim *numbers = expected(p->graph, &arena);
    const ortc_fact *facts = numbers ? facts_of(p->graph, numbers, &p->graph->arena) : NULL;
    ortc_choosing c = {.placed = p,
                       .facts = facts,
                       .begin = p->graph->first,
                       .any_form = true,
                       .runs = is_settled,
                       .arena = &arena,
                       .error = error};
    ortc_status s = facts ? ortc_choose(&c) : ortc_no_memory(error, 0);
    if (s == ORTC_OK && !keep(p, &c)) s = ortc_no_memory(error, 0);
    ortc_arena_deinit(&arena);
    free(numbers);
    if (s == ORTC_OK) ortc_heap_expect(packed_bytes(p));
    /* for extents that are only expected nothing need be right: a plan will say what is wrong */
    return s == ORTC_OUT_OF_MEMORY || s == ORTC_CANCELLED || s == ORTC_DEADLINE ? s : ORTC_OK;
}

/* ---- The same question again --------------------------------------------------------------------------- */

static bool same_fact(const ortc_fact *a, const ortc_fact *b)
{
    if (!a->type || !b->type || a->rank != b->rank || a->type->kind != b->type->kind ||
        (a->type->kind != ORTC_KIND_TENSOR ? a->type != b->type : a->type->dtype != b->type->dtype))
        return false;
    for (int32_t i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i]) return false;
    return true;
}

static bool same_node(const ortc_choosing *c, const ortc_node *n)
{
    const bool runs = c->runs(c->arg, n);
    bool same = runs == is_settled(NULL, n);
    for (uint32_t i = 0; i < n->n_in && same && runs; i++)
        same = !n->in[i] || same_fact(&c->placed->expected[n->in[i]->id], &c->facts[n->in[i]->id]);
    for (uint32_t i = 0; i < n->n_out && same && runs; i++)
        same = !n->out[i] || (c->makes(c->arg, n, i) &&
                              same_fact(&c->placed->expected[n->out[i]->id], &c->facts[n->out[i]->id]));
    return same;
}

const ortc_pick *ortc_settled(const ortc_choosing *c)
{
    const ortc_graph *g = c->placed->graph;
    bool same = c->placed->settled && c->begin == g->first && !c->end;
    for (const ortc_node *n = g->first; n && same; n = n->next) same = same_node(c, n);
    for (uint32_t i = 0; i < g->n_outputs && same; i++) same = c->is_read(c->arg, g->outputs[i].edge);
    return same ? c->placed->settled : NULL;
}
