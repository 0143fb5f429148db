/* runtime/plan/planner.c: from a placed graph and a key to a program (plan.h says in which stages).
 *
 * Scratch lives in an arena of its own and goes when planning ends; what the program keeps is in the
 * program's arena.
 */
#include "planner.h"

#include "base/sanitize.h"

/* ---- Choosing ------------------------------------------------------------------------------------------ */

static bool runs(const void *p, const ortc_node *n) { return ortc_planner_runs(p, n); }
static bool makes(const void *p, const ortc_node *n, uint32_t port) { return ortc_planner_makes(p, n, port); }
static bool is_read(const void *arg, const ortc_edge *e)
{
    const ortc_planner *p = arg;
    bool output = p->crosses[e->id];
    for (const ortc_use *u = e->uses; u; u = u->next) output |= !u->node && p->wanted[u->port];
    return output;
}

static ortc_status add_form(ortc_planner *p, uint8_t space, ortc_layout l)
{
    if (!l || p->forms[ortc_planner_form(p, space, l)].layout == l) return ORTC_OK;
    if (p->n_forms == ORTC_MAX_FORMS)
        return ortc_fail(p->error, ORTC_LIMIT, "more than %u memories and layouts", ORTC_MAX_FORMS);
    p->forms[p->n_forms++] = (ortc_form){space, l};
    return ORTC_OK;
}

/* Which kernel runs each node of the segment, and in which forms values will be. */
static ortc_status choose(ortc_planner *p)
{
    ortc_choosing c = {.placed = p->placed,
                       .facts = p->facts,
                       .begin = p->begin,
                       .end = p->end,
                       .runs = runs,
                       .makes = makes,
                       .is_read = is_read,
                       .arg = p,
                       .arena = &p->scratch,
                       .error = p->error};
    if (!(p->picks = ortc_settled(&c))) {
        ORTC_TRY(ortc_choose(&c));
        p->picks = c.picks;
    }
    for (p->n_forms = 0; p->n_forms < p->targets->n_spaces; p->n_forms++)
        p->forms[p->n_forms] = (ortc_form){(uint8_t)p->n_forms, ORTC_PLAIN};
    for (const ortc_node *n = p->begin; n != p->end; n = n->next) {
        const ortc_pick *pick = &p->picks[n->id];
        if (!pick->in) continue;
        for (uint32_t i = 0; i < n->n_in; i++)
            ORTC_TRY(add_form(p, ortc_target_of(p->placed, n)->space, pick->in[i]));
        for (uint32_t i = 0; i < n->n_out; i++)
            ORTC_TRY(add_form(p, ortc_target_of(p->placed, n)->space, pick->out[i]));
    }
    const size_t n = p->graph->edges.count;
    p->homes = ortc_arena_array(&p->scratch, n * p->n_forms, sizeof *p->homes);
    if (!p->homes) return ortc_no_memory(p->error, n * p->n_forms * sizeof *p->homes);
    for (size_t i = 0; i < n * p->n_forms; i++) p->homes[i].root = (uint32_t)i;
    return ORTC_OK;
}

/* ---- Forms that pass ---------------------------------------------------------------------------------- */

/* Of addresses, of which what is written is memory: more than the largest block whose end tells the C library
 * to keep others as large (32 MB). A sanitizer is to see what leaves the forms. */
#ifdef ORTC_SANITIZED
#define LEAST_ROOM ((size_t)0)
#else
#define LEAST_ROOM ((size_t)64 << 20)
#endif

/* Memory for those of the step that has most of them. */
static ortc_status make_room(ortc_program *program, ortc_error *error)
{
    const ortc_passing *all = program->passing.data;
    const size_t n = program->passing.count;
    program->room_bytes = LEAST_ROOM;
    for (int place = 0; place < 2 && n; place++) {
        for (size_t i = 0, at = 0, bytes; i < n; i++) {
            ortc_packed *form = &all[i].item->packed;
            if (i && all[i].step != all[i - 1].step) at = 0;
            if (place) form->data = (char *)program->room + at;
            if (!ortc_align_size(form->bytes, ORTC_ALIGNMENT, &bytes) || !ortc_add_size(at, bytes, &at))
                return ortc_no_memory(error, form->bytes);
            if (program->room_bytes < at) program->room_bytes = at;
        }
        if (!place && !(program->room = ortc_alloc_aligned(program->room_bytes)))
            return ortc_no_memory(error, program->room_bytes);
    }
    return ORTC_OK;
}

ortc_status ortc_program_fill(const ortc_program *p, uint32_t step, ortc_run_env *env, ortc_error *error)
{
    for (size_t i = 0; i < p->passing.count; i++)
        if (p->passing.data[i].step == step) ORTC_TRY(ortc_passing_fill(&p->passing.data[i], env, error));
    return ORTC_OK;
}

/* ---- The whole ----------------------------------------------------------------------------------------- */

static ortc_status build(ortc_planner *p)
{
    const ortc_graph *g = p->graph;
    size_t n = g->edges.count;
    p->facts = ortc_arena_array(&p->scratch, n, sizeof *p->facts);
    p->needed = ortc_arena_array(&p->scratch, n, sizeof *p->needed);
    p->primary = ortc_arena_array(&p->scratch, n, sizeof *p->primary);
    p->asked = ortc_arena_array(&p->scratch, n, sizeof *p->asked);
    p->crosses = ortc_arena_array(&p->scratch, n, sizeof *p->crosses);
    p->program->outputs = ortc_arena_array(&p->program->arena, g->n_outputs, sizeof *p->program->outputs);
    p->program->n_outputs = g->n_outputs;
    if (!p->facts || !p->needed || !p->primary || !p->asked || !p->crosses || !p->program->outputs)
        return ortc_no_memory(p->error, n * sizeof *p->facts);
    ORTC_TRY(ortc_planner_seed(p));
    ortc_planner_mark_asked(p);
    ORTC_TRY(ortc_planner_infer(p));
    p->program->end = p->end;
    p->program->chained = p->made || p->end || p->late || ortc_planner_has_values(p);
    ortc_planner_mark_needed(p);
    ORTC_TRY(choose(p));
    ORTC_TRY(ortc_planner_bring_all(p));
    for (const ortc_node *node = p->begin; node != p->end; node = node->next) {
        if (!ortc_planner_runs(p, node)) continue;
        if (p->env->cancel || p->env->deadline_ns) ORTC_TRY(ortc_run_env_poll(p->env));
        ORTC_TRY(ortc_planner_node(p, node));
    }
    ORTC_TRY(ortc_planner_place_parts(p));
    ORTC_TRY(p->program->chained ? ortc_planner_fill_slots(p) : ortc_planner_place_outputs(p));
    ortc_planner_place_ties(p);
    ortc_planner_end_reading(p);
    ORTC_TRY(ortc_planner_place_blocks(p));
    /* The steps move into the program's arena; those that own a pstate are its to release from now on. */
    ortc_step *steps = ortc_arena_array(&p->program->arena, p->steps.count, sizeof *steps);
    if (!steps) return ortc_no_memory(p->error, 0);
    if (p->steps.count) memcpy(steps, p->steps.data, p->steps.count * sizeof *steps);
    p->program->steps = steps;
    p->program->n_steps = (uint32_t)p->steps.count;
    ORTC_TRY(make_room(p->program, p->error));
    return ortc_planner_mark_ranges(p);
}

static void release_steps(ortc_step *steps, size_t count)
{
    for (size_t i = 0; i < count; i++) ortc_step_drop_pstate(&steps[i]);
}

ortc_status ortc_program_build(const ortc_placed *placed, ortc_pack_store *store,
                               const ortc_plan_request *request, ortc_run_env *env, ortc_program **out,
                               ortc_error *error)
{
    static atomic_uint_fast64_t next_id = 1;
    *out = NULL;
    ortc_program *program = calloc(1, sizeof *program);
    if (!program) return ortc_no_memory(error, sizeof *program);
    atomic_init(&program->references, 1);
    program->id = atomic_fetch_add(&next_id, 1);
    program->store = store;
    ortc_planner p = {.placed = placed,
                      .graph = placed->graph,
                      .targets = placed->targets,
                      .env = env,
                      .error = error,
                      .program = program,
                      .inputs = request->inputs,
                      .wanted = request->wanted,
                      .memory = request->memory,
                      .once = request->once,
                      .begin = request->after ? request->after->end : placed->graph->first,
                      .made = request->slots};
    ortc_status s = build(&p);
    bool owned = s == ORTC_OK; /* steps are the program's */
#ifndef NDEBUG
    if (owned) s = ortc_program_check(program, placed, request, error);
#endif
    if (!owned) release_steps(p.steps.data, p.steps.count);
    ortc_array_deinit(&p.steps);
    for (uint32_t i = 0; i < placed->targets->n_spaces; i++) {
        ortc_array_deinit(&p.spaces[i].blocks);
        ortc_array_deinit(&p.spaces[i].block_edges);
    }
    ortc_array_deinit(&p.reading);
    ortc_array_deinit(&p.parts);
    ortc_array_deinit(&p.slots);
    ortc_array_deinit(&p.in_place);
    ortc_arena_deinit(&p.scratch);
    if (s != ORTC_OK) {
        if (!owned) program->n_steps = 0;
        ortc_program_release(program);
        return s;
    }
    *out = program;
    return ORTC_OK;
}

ortc_program *ortc_program_retain(ortc_program *p)
{
    atomic_fetch_add_explicit(&p->references, 1, memory_order_relaxed);
    return p;
}

void ortc_program_release(ortc_program *p)
{
    if (!p || atomic_fetch_sub_explicit(&p->references, 1, memory_order_acq_rel) != 1) return;
    release_steps(p->steps, p->n_steps);
    for (size_t i = 0; i < p->packs.count; i++) ortc_pack_release(p->store, p->packs.data[i]);
    ortc_array_deinit(&p->packs);
    for (size_t i = 0; i < p->passing.count; i++) free(p->passing.data[i].item);
    ortc_array_deinit(&p->passing);
    ortc_free_aligned(p->room, p->room_bytes);
    for (size_t i = 0; i < p->literals.count; i++) {
        ortc_device_free(p->literals.data[i].device, p->literals.data[i].data, p->literals.data[i].bytes);
        ortc_device_release(p->literals.data[i].device);
    }
    ortc_array_deinit(&p->literals);
    ortc_arena_deinit(&p->arena);
    free(p);
}
