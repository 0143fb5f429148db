/* runtime/plan/planner_move.c: bytes that must be in another memory than where they are made (planner.h).
 *
 * Signals are numbered through the program; a queue works in order, so the wait for one signal of a device is
 * a wait for all of its earlier ones, and for every copy queued before them. From one device to another bytes
 * go through the host.
 */
#include <math.h>

#include "planner.h"

static ortc_status push(ortc_planner *p, ortc_step s)
{
    return ortc_array_push(&p->steps, s) ? ORTC_OK : ortc_no_memory(p->error, sizeof s);
}

ortc_status ortc_planner_add_block(ortc_planner *p, uint8_t form, size_t bytes, uint32_t step, uint32_t edge,
                                   uint32_t *out)
{
    ortc_space *s = ortc_planner_space(p, form);
    size_t aligned;
    if (!ortc_align_size(bytes ? bytes : 1, ORTC_ALIGNMENT, &aligned)) return ortc_no_memory(p->error, bytes);
    *out = (uint32_t)s->blocks.count;
    if (!ortc_array_push(&s->blocks, (ortc_block){aligned, step, step, -1, 0}) ||
        !ortc_array_push(&s->block_edges, edge))
        return ortc_no_memory(p->error, sizeof(ortc_block));
    return ORTC_OK;
}

void ortc_planner_note_use(ortc_planner *p, const ortc_edge *e, uint8_t form, uint32_t step)
{
    const ortc_home *h = ortc_planner_root(p, ortc_planner_at(p, e, form));
    if (h->lives == LIVES_BLOCK) ortc_planner_space(p, form)->blocks.data[h->index].to = step;
}

/* The host waits until a device's queue has come to a signal; what that queue was reading is free again. */
static ortc_status wait_for(ortc_planner *p, uint8_t device, uint32_t signal)
{
    size_t kept = 0;
    if (p->waited[device] >= signal) return ORTC_OK;
    uint32_t index = (uint32_t)p->steps.count;
    ORTC_TRY(push(p, (ortc_step){.kind = ORTC_STEP_WAIT, .device = device, .event = signal - 1}));
    p->waited[device] = signal;
    for (size_t i = 0; i < p->reading.count; i++) {
        const ortc_reading *r = &p->reading.data[i];
        if (r->device == device && r->signal <= signal)
            p->spaces[0].blocks.data[r->block].to = index;
        else
            p->reading.data[kept++] = *r;
    }
    p->reading.count = kept;
    return ORTC_OK;
}

void ortc_planner_end_reading(ortc_planner *p)
{
    for (size_t i = 0; i < p->reading.count; i++)
        p->spaces[0].blocks.data[p->reading.data[i].block].to = (uint32_t)p->steps.count;
    p->reading.count = 0;
}

/* Two kernels or more in a row on a device that captures. */
ortc_status ortc_planner_mark_ranges(ortc_planner *p)
{
    ortc_program *program = p->program;
    program->ranges = ortc_arena_array(&program->arena, program->n_steps / 2u, sizeof *program->ranges);
    if (!program->ranges) return ortc_no_memory(p->error, program->n_steps * sizeof *program->ranges);
    for (uint32_t i = 0, end; i < program->n_steps; i = end) {
        end = i;
        while (end < program->n_steps && program->steps[end].device == program->steps[i].device &&
               program->steps[end].captures)
            end++;
        if (end - i > 1)
            program->ranges[program->n_ranges++] = (ortc_range){i, end - i, program->steps[i].device};
        end += end == i;
    }
    return ORTC_OK;
}

/* What comes from outside and is read on devices is copied there first: in one piece, the steps behind can be
 * captured. */
ortc_status ortc_planner_bring_all(ortc_planner *p)
{
    for (const ortc_node *n = p->begin; p->targets->n_spaces > 1 && n != p->end; n = n->next) {
        if (!ortc_planner_runs(p, n)) continue;
        for (uint32_t i = 0; i < n->n_in; i++) {
            const ortc_edge *e = n->in[i];
            uint8_t form = e && ((e->input >= 0 && !e->constant) || (p->made && p->made[e->id]))
                               ? ortc_planner_port_form(p, n, i, true)
                               : 0;
            if (p->forms[form].space) ORTC_TRY(ortc_planner_reach(p, e, form));
        }
    }
    return ORTC_OK;
}

/* What a replay repeats must be the same in every run of the plan: nothing random, nothing read on the host
 * that the key does not hold. */
bool ortc_planner_captures(const ortc_planner *p, const ortc_step *s)
{
    const ortc_target *d = &p->targets->list[s->device];
    const ortc_node *n = s->node;
    if (!d->space || !d->provider->capture_begin || s->values || (n->op->flags & ORTC_OP_RANDOM) ||
        (s->kernel->flags & (ORTC_KERNEL_NO_CAPTURE | ORTC_KERNEL_LATE_OUT)))
        return false;
    for (uint32_t i = 0; i < n->n_in; i++)
        if (n->in[i] && !s->in[i].space && !ortc_edge_is_const(n->in[i]) &&
            !ortc_fact_values_known(&p->facts[n->in[i]->id]))
            return false;
    return true;
}

ortc_status ortc_planner_ready(ortc_planner *p, const ortc_edge *e)
{
    const ortc_home *root = ortc_planner_root(p, ortc_planner_at(p, e, 0));
    return root->signal ? wait_for(p, root->filler, root->signal) : ORTC_OK;
}

ortc_status ortc_planner_copy(ortc_planner *p, const ortc_edge *e, uint8_t from, uint16_t to, uint32_t index,
                              uint8_t to_space, size_t bytes)
{
    const ortc_targets *targets = p->targets;
    ortc_step s = {.kind = ORTC_STEP_COPY, .n_in = 1, .n_out = 1, .copy_bytes = bytes};
    if (from)
        s.device = targets->of_space[from];
    else {
        ORTC_TRY(ortc_planner_ready(p, e));
        s.device = to_space ? targets->of_space[to_space] : 0;
    }
    s.in = ortc_arena_array(&p->program->arena, 1, sizeof *s.in);
    s.out = ortc_arena_array(&p->program->arena, 1, sizeof *s.out);
    if (!s.in || !s.out) return ortc_no_memory(p->error, sizeof s);
    *s.in = (ortc_operand){.from = ORTC_FROM_ARENA, .space = from, .form = from, .edge = e->id};
    *s.out = (ortc_operand){.from = to,
                            .space = to_space,
                            .form = to_space,
                            .edge = e->id,
                            .index = index,
                            .root = e->id}; /* ARENA: both are resolved with the other operands */
    uint32_t step = (uint32_t)p->steps.count;
    ORTC_TRY(push(p, s));
    ortc_planner_note_use(p, e, from, step);
    if (from || to_space) p->program->queues |= 1u << s.device;
    const ortc_home *root = ortc_planner_root(p, ortc_planner_at(p, e, from));
    if (!from && to_space && root->lives == LIVES_BLOCK)
        if (!ortc_array_push(&p->reading, (ortc_reading){s.device, root->index, p->program->n_events + 1}))
            return ortc_no_memory(p->error, sizeof *root);
    return ORTC_OK;
}

/* A constant on a device is a packed form, made once for all sessions. */
static ortc_status constant_on_device(ortc_planner *p, const ortc_edge *e, uint8_t space)
{
    ortc_pack_item *item;
    ORTC_TRY(ortc_planner_pack(p, e, ortc_targets_device_of(p->targets, space), &ortc_packing_plain, NULL, 0,
                               &item));
    ortc_home *h = ortc_planner_at(p, e, space);
    *h = (ortc_home){.lives = LIVES_POINTER,
                     .root = ortc_planner_number(p, h),
                     .data = item->packed.data,
                     .bytes = item->packed.bytes};
    return ORTC_OK;
}

/* A known value, or a part of a constant: it belongs to the program. */
static ortc_status literal_on_device(ortc_planner *p, const ortc_edge *e, const void *data, uint8_t space)
{
    ortc_open_device *device = ortc_targets_device_of(p->targets, space);
    ortc_literal l = {device, NULL, 0};
    ORTC_TRY(ortc_planner_bytes(p, e, space, &l.bytes));
    if (!ortc_array_reserve(&p->program->literals, p->program->literals.count + 1))
        return ortc_no_memory(p->error, sizeof l);
    if (!(l.data = ortc_device_alloc(device, l.bytes)))
        return ortc_fail(p->error, ORTC_OUT_OF_MEMORY, "device '%s' has no %zu bytes of memory left",
                         device->spelling, l.bytes);
    ortc_device_retain(device);
    ortc_array_push(&p->program->literals, l);
    ortc_home *h = ortc_planner_at(p, e, space);
    *h = (ortc_home){.lives = LIVES_POINTER,
                     .root = ortc_planner_number(p, h),
                     .data = l.data,
                     .bytes = l.bytes};
    return ortc_device_transfer(device, l.data, NULL, data, l.bytes, p->error);
}

/* In another layout, in one step from where it is; through the plain one where it is in another memory, or
 * where no mover does that. */
static ortc_status reach_layout(ortc_planner *p, const ortc_edge *e, uint8_t form)
{
    const uint8_t space = p->forms[form].space, at = p->primary[e->id];
    const bool direct = p->forms[at].space == space &&
                        ortc_reorder_clocks(p->placed, &p->facts[e->id], space, p->forms[at].layout,
                                            p->forms[form].layout) < HUGE_VAL;
    const uint8_t from = direct || form == space ? at : space;
    ortc_home *h = ortc_planner_at(p, e, form),
              made = {.lives = LIVES_BLOCK, .root = ortc_planner_number(p, h), .made = true};
    if (from != at) ORTC_TRY(ortc_planner_reach(p, e, from));
    if (!space) ORTC_TRY(ortc_planner_ready(p, e));
    ORTC_TRY(ortc_planner_bytes(p, e, form, &made.bytes));
    ORTC_TRY(ortc_planner_add_block(p, form, made.bytes, (uint32_t)p->steps.count, e->id, &made.index));
    *h = made;
    return ortc_planner_reorder(p, e, from, form);
}

/* From another memory, plain as it is there. */
static ortc_status reach_space(ortc_planner *p, const ortc_edge *e, uint8_t from, uint8_t space)
{
    size_t bytes;
    if (from && space) { /* between devices: through the host */
        ORTC_TRY(ortc_planner_reach(p, e, 0));
        from = 0;
    }
    ORTC_TRY(ortc_planner_bytes(p, e, space, &bytes));
    ortc_home *h = ortc_planner_at(p, e, space),
              made = {.lives = LIVES_BLOCK, .root = ortc_planner_number(p, h), .bytes = bytes, .made = true};
    if (!from) ORTC_TRY(ortc_planner_ready(p, e));
    ORTC_TRY(ortc_planner_add_block(p, space, bytes, (uint32_t)p->steps.count, e->id, &made.index));
    ORTC_TRY(ortc_planner_copy(p, e, from, ORTC_FROM_ARENA, e->id, space, bytes));
    if (!space) {
        made.filler = p->targets->of_space[from];
        made.signal = ++p->program->n_events;
        ORTC_TRY(
            push(p, (ortc_step){.kind = ORTC_STEP_SIGNAL, .device = made.filler, .event = made.signal - 1}));
    }
    *h = made;
    return ORTC_OK;
}

ortc_status ortc_planner_reach(ortc_planner *p, const ortc_edge *e, uint8_t form)
{
    ortc_home *first, *h = ortc_planner_at(p, e, form);
    ORTC_TRY(ortc_planner_home(p, e, &first));
    uint8_t from = p->primary[e->id];
    if (h == first || h->made || h->lives) return ORTC_OK;
    if (p->forms[form].layout || p->forms[form].space == p->forms[from].space)
        return reach_layout(p, e, form);
    if (p->forms[from].layout) { /* it leaves its memory plain */
        from = p->forms[from].space;
        ORTC_TRY(ortc_planner_reach(p, e, from));
        first = ortc_planner_at(p, e, from);
    }
    if (!from && first->lives == LIVES_POINTER && first->root == ortc_planner_number(p, first) &&
        ortc_edge_is_const(e))
        return constant_on_device(p, e, form);
    const ortc_home *root = ortc_planner_root(p, first);
    if (!from && root->lives == LIVES_POINTER)
        return literal_on_device(p, e, (const char *)root->data + first->offset, form);
    return reach_space(p, e, from, form);
}
