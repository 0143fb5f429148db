/* runtime/execute/context.c: contexts, their pool, their arena and their frames (context.h). */
#include "context.h"

static void frame_free(ortc_frame *f)
{
    if (!f) return;
    ortc_frame_drop_captures(f);
    for (uint32_t i = 0; f->events && i < f->program->n_steps; i++) {
        const ortc_step *s = &f->program->steps[i];
        const ortc_target *d = ortc_unit_target(f->unit, s->device);
        if (s->kind == ORTC_STEP_SIGNAL && f->events[s->event] && d->provider->event_destroy)
            d->provider->event_destroy(d->device, f->events[s->event]);
    }
    for (uint32_t i = 0; f->calls && i < f->program->n_steps; i++) {
        const ortc_kernel *k = f->program->steps[i].kernel;
        if (f->calls[i].slot && k && k->release_slot) k->release_slot(f->calls[i].slot);
    }
    ortc_program_release(f->program);
    ortc_array_deinit(&f->patches);
    ortc_arena_deinit(&f->memory);
    free(f);
}

static void drop_frames(ortc_context *c)
{
    for (size_t i = 0; i < ORTC_MAX_FRAMES; i++) {
        frame_free(c->frames[i]);
        c->frames[i] = NULL;
    }
}

void ortc_context_drop(ortc_context *c, ortc_frame *f)
{
    for (size_t i = 0; i < ORTC_MAX_FRAMES; i++)
        if (c->frames[i] == f) c->frames[i] = NULL;
    frame_free(f);
}

/* ---- Contexts ------------------------------------------------------------------------------------------ */

ortc_status ortc_context_make(ortc_unit *u, ortc_context **out, ortc_error *error)
{
    uint32_t n_in = u->placed.graph->n_inputs, n_out = u->placed.graph->n_outputs;
    *out = NULL;
    ortc_context *c = calloc(1, sizeof *c);
    if (c) {
        c->unit = u;
        c->inputs = calloc(n_in + 1u, sizeof *c->inputs);
        c->in_data = calloc(n_in + 1u, sizeof *c->in_data);
        c->aligned = calloc(n_in + 1u, sizeof *c->aligned);
        c->wanted = calloc(n_out + 1u, sizeof *c->wanted);
        c->memory = calloc(n_out + 1u, sizeof *c->memory);
        c->output_of = calloc(n_out + 1u, sizeof *c->output_of);
        c->out_data = calloc(n_out + 1u, sizeof *c->out_data);
    }
    if (!c || !c->inputs || !c->in_data || !c->aligned || !c->wanted || !c->memory || !c->output_of ||
        !c->out_data) {
        ortc_context_free(c);
        return ortc_no_memory(error, sizeof *c);
    }
    *out = c;
    return ORTC_OK;
}

void ortc_context_free(ortc_context *c)
{
    if (!c) return;
    ortc_context_trim(c);
    ortc_context_drop_queues(c);
    free(c->inputs);
    free(c->in_data);
    free(c->aligned);
    free(c->wanted);
    free(c->memory);
    free(c->output_of);
    free(c->out_data);
    free(c->key);
    free(c->slots);
    free(c);
}

uint64_t ortc_context_trim(ortc_context *c)
{
    uint64_t freed = 0;
    ortc_shelf_reclaim(c);
    drop_frames(c);
    for (uint32_t i = 0; i < c->unit->placed.targets->n_spaces; i++) {
        freed += c->arena_bytes[i];
        if (i)
            ortc_device_free(ortc_targets_device_of(c->unit->placed.targets, i), c->arenas[i],
                             c->arena_bytes[i]);
        else
            ortc_free_with(c->unit->allocator, c->arenas[i], c->arena_bytes[i]);
        c->arenas[i] = NULL;
        c->arena_bytes[i] = 0;
    }
    ortc_unit_unreserve(c->unit, freed);
    return freed;
}

ortc_status ortc_context_take(ortc_unit *u, ortc_context **out, ortc_error *error)
{
    pthread_mutex_lock(&u->lock);
    while (!u->idle && u->max_contexts && u->n_contexts >= u->max_contexts)
        pthread_cond_wait(&u->returned, &u->lock);
    ortc_context *c = u->idle;
    if (c)
        u->idle = c->next;
    else
        u->n_contexts++;
    pthread_mutex_unlock(&u->lock);
    if (!c) {
        ortc_status status = ortc_context_make(u, &c, error);
        if (status != ORTC_OK) {
            pthread_mutex_lock(&u->lock);
            u->n_contexts--;
            pthread_cond_signal(&u->returned);
            pthread_mutex_unlock(&u->lock);
            return status;
        }
    }
    if (!ortc_shelf_reclaim(c)) drop_frames(c);
    *out = c;
    return ORTC_OK;
}

void ortc_context_return(ortc_context *c)
{
    ortc_unit *u = c->unit;
    ortc_shelf_offer(c);
    pthread_mutex_lock(&u->lock);
    c->next = u->idle;
    u->idle = c;
    pthread_cond_signal(&u->returned);
    pthread_mutex_unlock(&u->lock);
}

uint64_t ortc_context_trim_idle(ortc_unit *u)
{
    uint64_t freed = 0;
    pthread_mutex_lock(&u->lock);
    for (ortc_context *c = u->idle; c; c = c->next) freed += ortc_context_trim(c);
    pthread_mutex_unlock(&u->lock);
    return freed;
}

/* ---- Frames -------------------------------------------------------------------------------------------- */

ortc_frame *ortc_context_find(ortc_context *c, const void *key, size_t key_bytes)
{
    for (size_t i = 0; i < ORTC_MAX_FRAMES; i++) {
        ortc_frame *f = c->frames[i];
        if (f && f->program->key_bytes == key_bytes &&
            (!key_bytes || !memcmp(f->program->key, key, key_bytes))) {
            f->last_used = ++c->clock;
            return f;
        }
    }
    return NULL;
}

static bool bind_operand(ortc_context *c, ortc_frame *f, uint32_t step, const ortc_operand *o, ortc_view *v)
{
    *v = o->view;
    switch (o->from) {
    case ORTC_FROM_ARENA: v->data = (char *)c->arenas[o->space] + o->offset; return true;
    case ORTC_FROM_INPUT:
    case ORTC_FROM_OUTPUT:
    case ORTC_FROM_SLOT:
        return ortc_array_push(&f->patches, (ortc_patch){&v->data, o->index, o->from, o->offset, step});
    default: return true;
    }
}

static bool bind_steps(ortc_context *c, ortc_frame *f)
{
    ortc_program *p = f->program;
    f->calls = ortc_arena_array(&f->memory, p->n_steps, sizeof *f->calls);
    f->events = ortc_arena_array(&f->memory, p->n_events, sizeof *f->events);
    f->captures = ortc_arena_array(&f->memory, p->n_ranges, sizeof *f->captures);
    if (!f->calls || !f->events || !f->captures) return false;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const ortc_step *s = &p->steps[i];
        ortc_step_call *call = &f->calls[i];
        /* apart: a sanitizer sees what leaves them */
        ortc_view *in = ortc_arena_array(&f->memory, s->n_in, sizeof *in);
        ortc_view *out = ortc_arena_array(&f->memory, s->n_out, sizeof *out);
        if (!in || !out) return false;
        ortc_step_call_init(call, &c->env, s->node);
        call->step = i;
        call->call.n_in = s->n_in - (s->node ? s->node->n_captures : 0);
        call->call.n_out = s->n_out;
        call->call.in = in;
        call->call.out = out;
        char *arena = c->arenas[ortc_unit_target(c->unit, s->device)->space];
        call->call.queue = s->kind == ORTC_STEP_KERNEL ? c->queues[s->device] : NULL;
        call->call.fault = c->faults[s->device];
        call->call.workspace = s->workspace ? arena + s->workspace_at : NULL;
        if (s->workspace_per_worker) {
            call->scratch = arena + s->workspace_at +
                            ((s->workspace + ORTC_ALIGNMENT - 1) & ~(size_t)(ORTC_ALIGNMENT - 1)) +
                            ortc_worker_gap(c->unit->threads);
            call->scratch_stride = s->workspace_per_worker;
        }
        for (uint32_t k = 0; k < s->n_in; k++)
            if (!bind_operand(c, f, i, &s->in[k], &in[k])) return false;
        for (uint32_t k = 0; k < s->n_out; k++)
            if (!bind_operand(c, f, i, &s->out[k], &out[k])) return false;
    }
    return true;
}

/* "f32[1,64,56,56] of 'conv1' (784 KiB)": the largest tensors that the steps make. */
static void name_largest(const ortc_program *p, ortc_text *t)
{
    size_t bound = SIZE_MAX;
    for (int k = 0; k < 3; k++) {
        const ortc_step *best = NULL;
        size_t most = 0;
        for (uint32_t i = 0; i < p->n_steps; i++) {
            size_t bytes = 0;
            const ortc_step *s = &p->steps[i];
            if (s->n_out && s->out[0].view.dtype && s->out[0].from == ORTC_FROM_ARENA)
                ortc_tensor_bytes(s->out[0].view.dtype, ortc_view_count(&s->out[0].view), &bytes);
            if (bytes > most && bytes < bound) {
                most = bytes;
                best = s;
            }
        }
        if (!best) return;
        ortc_text_add(t, "%s", k ? ", " : "; the largest: ");
        ortc_text_tensor(t, best->out[0].view.dtype, best->out[0].view.rank, best->out[0].view.dims);
        ortc_text_add(t, " of '%s' (%zu KiB)", best->node->name, most >> 10);
        bound = most;
    }
}

/* Memory for one arena: under the session's limit, if need be without idle contexts and plans. */
static void *take_arena(ortc_unit *u, uint32_t space, size_t bytes)
{
    for (int attempt = 0; attempt < 2; attempt++) {
        if (!ortc_unit_reserve(u, bytes)) return NULL;
        void *p = space ? ortc_device_alloc(ortc_targets_device_of(u->placed.targets, space), bytes)
                        : ortc_alloc_with(u->allocator, bytes);
        if (p) return p;
        ortc_unit_unreserve(u, bytes);
        ortc_context_trim_idle(u);
        ortc_kept_trim(u->kept);
        ortc_plan_cache_shrink(&u->plans, NULL, 0);
    }
    return NULL;
}

/* Makes the context's arenas large enough. */
static ortc_status grow_arenas(ortc_context *c, const ortc_program *p, ortc_error *error)
{
    ortc_unit *u = c->unit;
    size_t wanted[ORTC_MAX_SPACES];
    char buffer[512];
    ortc_text t = ORTC_TEXT(buffer);
    buffer[0] = 0;
    for (uint32_t i = 0; i < u->placed.targets->n_spaces; i++)
        wanted[i] = p->arena_bytes[i] > c->arena_bytes[i] ? p->arena_bytes[i] : c->arena_bytes[i];
    ortc_context_trim(c);
    for (uint32_t i = 0; i < u->placed.targets->n_spaces; i++) {
        if (!wanted[i]) continue;
        if (i == 0 && (c->arenas[0] = ortc_shelf_take(u, &wanted[0]))) {
            c->arena_bytes[0] = wanted[0];
            continue;
        }
        if ((c->arenas[i] = take_arena(u, i, wanted[i]))) {
            c->arena_bytes[i] = wanted[i];
            continue;
        }
        ortc_context_trim(c);
        name_largest(p, &t);
        return ortc_fail(error, u->max_bytes && wanted[i] > u->max_bytes ? ORTC_LIMIT : ORTC_OUT_OF_MEMORY,
                         "intermediate tensors and workspace need %zu bytes%s%s, more than there is%s%s",
                         wanted[i], i ? " on device " : "",
                         i ? ortc_targets_device_of(u->placed.targets, i)->spelling : "",
                         u->max_bytes ? " under the session's limit" : "", buffer);
    }
    return ORTC_OK;
}

ortc_status ortc_context_frame(ortc_context *c, ortc_program *p, ortc_frame **out, ortc_error *error)
{
    *out = NULL;
    bool fits = true;
    for (uint32_t i = 0; i < c->unit->placed.targets->n_spaces; i++) {
        void *queue;
        fits = fits && p->arena_bytes[i] <= c->arena_bytes[i];
        if (i) ORTC_TRY(ortc_context_queue(c, c->unit->placed.targets->of_space[i], &queue, error));
        if (i && (p->faults >> c->unit->placed.targets->of_space[i] & 1))
            ORTC_TRY(ortc_context_fault_word(c, c->unit->placed.targets->of_space[i], error));
    }
    if (!fits) ORTC_TRY(grow_arenas(c, p, error));
    size_t at = 0;
    for (size_t i = 0; i < ORTC_MAX_FRAMES; i++) {
        if (c->frames[i] && c->frames[i]->program == p) {
            *out = c->frames[i];
            return ORTC_OK;
        }
        if (c->frames[at] && (!c->frames[i] || c->frames[i]->last_used < c->frames[at]->last_used)) at = i;
    }
    ortc_frame *f = calloc(1, sizeof *f);
    if (!f) return ortc_no_memory(error, sizeof *f);
    f->program = ortc_program_retain(p);
    f->unit = c->unit;
    f->last_used = ++c->clock;
    if (!bind_steps(c, f)) {
        frame_free(f);
        return ortc_no_memory(error, 0);
    }
    frame_free(c->frames[at]);
    c->frames[at] = f;
    *out = f;
    return ORTC_OK;
}
