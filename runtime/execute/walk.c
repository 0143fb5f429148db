/* runtime/execute/walk.c: the walk over a frame's steps: in the steady state nothing is looked up, locked or
 * allocated (context.h). */
#include "values.h"

static ortc_status run_step(ortc_context *c, ortc_frame *f, uint32_t index, ortc_error *error)
{
    const ortc_step *s = &f->program->steps[index];
    ortc_step_call *call = &f->calls[index];
    if (s->values) ortc_step_bind_values(c, s, call);
    if (s->kind == ORTC_STEP_COPY && s->values) return ortc_step_copy_value(c, s, call);
    if (s->kind != ORTC_STEP_KERNEL)
        return s->kind == ORTC_STEP_COPY
                   ? ortc_step_copy(c, s, call->call.out[0].data, call->call.in[0].data, error)
               : s->kind == ORTC_STEP_SIGNAL ? ortc_step_signal(c, s, &f->events[s->event], error)
                                             : ortc_step_wait(c, s, f->events[s->event], error);
    if (call->call.queue) c->busy_queues |= 1u << s->device;
    if (s->kernel->flags & ORTC_KERNEL_LATE_OUT) /* the run before has left its own extents in the views */
        for (uint32_t k = 0; k < s->n_out; k++)
            if (s->out[k].view.flags & ORTC_VIEW_LATE) call->call.out[k] = s->out[k].view;
#ifndef NDEBUG
    ortc_step_poison_padding(s, &call->call);
#endif
    c->env.short_of_memory = false;
    call->n_loops = 0;
    ortc_status status = ORTC_OK;
    if (f->program->passing.count) status = ortc_program_fill(f->program, index, &c->env, error);
    if (status == ORTC_OK) status = s->kernel->run(s->state, s->pstate, &call->call);
    if (c->env.short_of_memory) status = ortc_no_memory(error, 0);
#ifndef NDEBUG
    if (status == ORTC_OK) status = ortc_step_check_padding(s, &call->call, error);
#endif
    if (status == ORTC_OK && s->values) status = ortc_step_check_made(c, s);
    return status == ORTC_OK ? status : ortc_step_failed(s->node, s->kernel, status, error);
}

ortc_status ortc_frame_step(ortc_context *c, ortc_frame *f, uint32_t index, ortc_error *error)
{
#ifdef ORTC_SANITIZED
    const ortc_step *s = &f->program->steps[index];
    ortc_fence_open(c, s, &f->calls[index].call);
    ortc_status status = run_step(c, f, index, error);
    ortc_fence_close(c, s, &f->calls[index].call);
    return status;
#else
    return run_step(c, f, index, error);
#endif
}

/* The same, told to the run's profiler. */
static ortc_status run_step_profiled(ortc_context *c, ortc_frame *f, uint32_t index, ortc_error *error)
{
    static const char *const kinds[] = {"", "copy", "signal", "wait", ""};
    const ortc_step *s = &f->program->steps[index];
    ortc_step_call *call = &f->calls[index];
    ortc_profile_event e = {.kind = ORTC_PROFILE_STEP,
                            .step = index,
                            .name = s->node ? s->node->name : kinds[s->kind],
                            .op = s->node ? s->node->type : "",
                            .provider = ortc_unit_target(c->unit, s->device)->provider->name,
                            .kernel = s->kernel ? s->name : "",
                            .start_ns = ortc_now_ns(),
                            .flops = s->flops,
                            .bytes = s->kind == ORTC_STEP_COPY ? (double)s->copy_bytes : s->bytes,
                            .clocks = s->clocks};
    call->phase = (ortc_phase){.of = &e};
    ORTC_TRY(ortc_frame_step(c, f, index, error));
    ortc_profile_phase(c->env.profiler, &call->phase, NULL);
    ortc_profile_end(c->env.profiler, &e);
    return ORTC_OK;
}

static ortc_status run_steps(ortc_context *c, ortc_frame *f, ortc_error *error)
{
    const ortc_program *p = f->program;
    bool can_stop = c->env.cancel || c->env.deadline_ns;
    for (uint32_t i = 0, range = 0; i < p->n_steps; i++) {
        if (can_stop) ORTC_TRY(ortc_run_env_poll(&c->env));
        if (range < p->n_ranges && p->ranges[range].first == i && !c->env.profiler) {
            ORTC_TRY(ortc_frame_range(c, f, range, error));
            i += p->ranges[range++].count - 1;
        } else
            ORTC_TRY(c->env.profiler ? run_step_profiled(c, f, i, error) : ortc_frame_step(c, f, i, error));
    }
    return ORTC_OK;
}

/* With loops on threads as far as that is quicker. */
static ortc_status run_paced(ortc_context *c, ortc_frame *f, ortc_error *error)
{
    const uint32_t threads = c->env.threads;
    if (threads <= 1 || f->program->queues) return run_steps(c, f, error);
    const int64_t begun = ortc_now_ns();
    c->env.spread = ortc_pace_spread(&f->pace);
    c->env.measured = !f->pace.left;
    const ortc_status status = run_steps(c, f, error);
    if (status == ORTC_OK) ortc_pace_took(&f->pace, (double)(ortc_now_ns() - begun), threads);
    return status;
}

ortc_status ortc_frame_run(ortc_context *c, ortc_frame *f, ortc_error *error)
{
    const ortc_program *p = f->program;
    c->watched |= p->faults;
    for (uint32_t i = 0; i < p->n_slots; i++) {
        const ortc_slot *s = &p->slots[i];
        ortc_open_device *device =
            s->space ? ortc_unit_target(c->unit, c->unit->placed.targets->of_space[s->space])->open : NULL;
        if (!s->late)
            ORTC_TRY(
                device ? ortc_value_create_on(device, s->dtype, s->rank, s->dims, &c->slots[s->edge], error)
                       : ortc_run_env_create(&c->env, s->dtype, s->rank, s->dims, &c->slots[s->edge], error));
    }
    for (size_t i = 0; i < f->patches.count; i++) {
        const ortc_patch *patch = &f->patches.data[i];
        const ortc_value *slot = patch->from == ORTC_FROM_SLOT ? c->slots[patch->index] : NULL;
        char *base = patch->from == ORTC_FROM_INPUT    ? c->in_data[patch->index]
                     : patch->from == ORTC_FROM_OUTPUT ? c->out_data[patch->index]
                     : slot                            ? slot->data
                                                       : NULL; /* late: the kernel makes it */
        *patch->where = base ? base + patch->offset : NULL;
    }
#ifdef ORTC_SANITIZED
    ortc_fence_raise(c);
    ortc_status status = run_paced(c, f, error);
    ortc_fence_drop(c);
    return status;
#else
    return run_paced(c, f, error);
#endif
}
