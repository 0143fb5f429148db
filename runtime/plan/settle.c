/* runtime/plan/settle.c: in which form each node's constants are packed, settled when a session is made, for
 * the extents that are expected (choose.h).
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

ortc_status ortc_settle(ortc_placed *p, ortc_error *error)
{
    ortc_arena arena = {0};
    if (!has_choice(p)) return ORTC_OK;
    ortc_dim *numbers = expected(p->graph, &arena);
    const ortc_fact *facts = numbers ? facts_of(p->graph, numbers, &arena) : NULL;
    ortc_choosing c = {.placed = p,
                       .facts = facts,
                       .begin = p->graph->first,
                       .any_form = true,
                       .runs = is_settled,
                       .arena = &arena,
                       .error = error};
    const ortc_status s = facts ? ortc_choose(&c) : ortc_no_memory(error, 0);
    for (const ortc_node *n = s == ORTC_OK ? p->graph->first : NULL; n; n = n->next)
        ortc_site_of(p, n)->form = c.picks[n->id].form;
    ortc_arena_deinit(&arena);
    free(numbers);
    /* for extents that are only expected nothing need be right: a plan will say what is wrong */
    return s == ORTC_OUT_OF_MEMORY || s == ORTC_CANCELLED || s == ORTC_DEADLINE ? s : ORTC_OK;
}
