/* runtime/execute/run.c: one run: values in and out, segments one after the other, results (key.c finds the
 * program, walk.c runs it).
 *
 * In the steady state (a key that this context has run before) nothing is looked up, locked or allocated but
 * the outputs that the library is asked to place.
 */
#include "run.h"

#include "tied.h"
#include "values.h"

/* ---- Values in and out --------------------------------------------------------------------------------- */

/* Kernels may rely on the alignment of the element type; a caller's buffer need not have it. */
static bool is_aligned(const void *data, ortc_dtype t)
{
    uint32_t align = ortc_dtype_bits(t) / 8;
    return align < 2 || (uintptr_t)data % (align > 8 ? 8 : align) == 0;
}

static ortc_status bind_inputs(ortc_context *c, ortc_error *error)
{
    for (uint32_t i = 0; i < c->unit->placed.graph->n_inputs; i++) {
        const ortc_value *v = c->inputs[i].value;
        if (!v) continue;
        c->in_data[i] = ortc_value_content(v);
        if (!ortc_value_is_tensor(v) && !ortc_value_is_on_host(v))
            return ortc_fail(error, ORTC_INVALID_ARGUMENT, "input '%s': elements must be in host memory",
                             c->unit->placed.graph->inputs[i].name);
        if (!ortc_value_is_tensor(v) || v->device || is_aligned(v->data, v->type->dtype)) continue;
        ORTC_TRY(ortc_value_create(v->type->dtype, v->rank, v->dims, &c->aligned[i], error));
        memcpy(c->aligned[i]->data, v->data, v->bytes);
        c->in_data[i] = c->aligned[i]->data;
    }
    return ORTC_OK;
}

/* Whether the tensor that the caller gave is of the result's type and shape. */
static ortc_status check_given(const ortc_program_output *o, const ortc_out *out, ortc_error *error)
{
    const ortc_value *v = out->value;
    bool same = v->type->kind == ORTC_KIND_TENSOR && v->type->dtype == o->dtype && v->rank == o->rank &&
                (!o->rank || !memcmp(v->dims, o->dims, (size_t)o->rank * sizeof *o->dims));
    if (!same) {
        char expected[256], got[256];
        ortc_text te = ORTC_TEXT(expected), tg = ORTC_TEXT(got);
        ortc_text_tensor(&te, o->dtype, o->rank, o->dims);
        ortc_text_type(&tg, v->type);
        if (v->type->kind == ORTC_KIND_TENSOR) ortc_text_dims(&tg, v->rank, v->dims);
        return ortc_fail(error, v->type->dtype == o->dtype ? ORTC_SHAPE_MISMATCH : ORTC_TYPE_MISMATCH,
                         "output '%s': the result is %s, the given tensor is %s", out->name, expected, got);
    }
    return ORTC_OK;
}

static ortc_status create_in(const ortc_context *c, uint32_t memory, ortc_dtype t, int32_t rank,
                             const int64_t *dims, ortc_value **out, ortc_error *error)
{
    if (!memory) return ortc_run_env_create(&c->env, t, rank, dims, out, error);
    ortc_open_device *device = ortc_device_of_memory(memory);
    if (!device)
        return ortc_fail(error, ORTC_INVALID_ARGUMENT, "there is no memory %u: no open device has it",
                         memory);
    ortc_status s = ortc_value_create_on(device, t, rank, dims, out, error);
    ortc_device_release(device);
    return s;
}

static ortc_status bind_output(ortc_context *c, const ortc_program_output *o, uint32_t index, ortc_out *out,
                               ortc_value **made, ortc_error *error)
{
    ortc_value *v = out->value;
    *made = NULL;
    if (!v) {
        ORTC_TRY(create_in(c, out->memory, o->dtype, o->rank, o->dims, made, error));
        c->out_data[index] = (*made)->data;
        return ORTC_OK;
    }
    ORTC_TRY(check_given(o, out, error));
    c->out_data[index] = v->data;
    if (v->device || is_aligned(v->data, o->dtype)) return ORTC_OK;
    /* copied to the given one in the end */
    ORTC_TRY(ortc_value_create(o->dtype, o->rank, o->dims, made, error));
    c->out_data[index] = (*made)->data;
    return ORTC_OK;
}

/* ---- Chains of segments -------------------------------------------------------------------------------- */

static ortc_status to_host(ortc_value **at, ortc_error *error)
{
    ortc_value *v = *at;
    ORTC_TRY(ortc_value_on_host(v, at, error));
    ortc_value_release(v);
    return ORTC_OK;
}

/* The segment after `p`: its key is p, the extents that p's kernels made, and the values that decide
 * shapes. */
static ortc_status next_segment(ortc_context *c, const ortc_program *p, ortc_program **out, ortc_error *error)
{
    bool ok;
    c->key_bytes = 0;
    ok = ortc_key_add(c, "segment", 8) && ortc_key_add(c, &p->id, sizeof p->id);
    for (uint32_t i = 0; i < p->n_slots; i++) {
        if (p->slots[i].deciding && c->slots[p->slots[i].edge])
            ORTC_TRY(to_host(&c->slots[p->slots[i].edge], error));
        const ortc_value *v = c->slots[p->slots[i].edge];
        ok = ok && ortc_key_add_value(c, v);
        if (v && p->slots[i].deciding && v->type->dtype != ORTC_STRING && v->count <= ORTC_MAX_VALUES)
            ok = ok && ortc_key_add(c, v->data, v->bytes);
    }
    if (!ok) return ortc_no_memory(error, c->key_bytes);
    *out = ortc_plan_cache_get(&c->unit->plans, c->key, c->key_bytes);
    return *out ? ORTC_OK : ortc_run_make_program(c, p, c->slots, false, out, error);
}

/* What is under way in queues has ended: all of it, also after a failure. */
static ortc_status drain(ortc_context *c, ortc_error *error)
{
    if (!c->busy_queues) return ORTC_OK;
    ortc_status s = ortc_context_mark_end(c, error),
                drained = ortc_context_drain(c, s == ORTC_OK ? error : NULL);
    return s == ORTC_OK ? drained : s;
}

static ortc_status run_chain(ortc_context *c, ortc_frame *f, ortc_error *error)
{
    if (!c->slots && !(c->slots = calloc(c->unit->placed.graph->edges.count + 1, sizeof *c->slots)))
        return ortc_no_memory(error, c->unit->placed.graph->edges.count);
    c->env.slots = c->slots;
    ortc_program *p = ortc_program_retain(f->program);
    ortc_status s;
    while ((s = ortc_frame_run(c, f, error)) == ORTC_OK && (s = drain(c, error)) == ORTC_OK && p->end) {
        ortc_program *next;
        s = next_segment(c, p, &next, error);
        ortc_program_release(p);
        p = next;
        if (s != ORTC_OK) return s;
        if ((s = ortc_context_frame(c, p, &f, error)) != ORTC_OK) break;
    }
    ortc_program_release(p);
    return s;
}

/* Hands a chain's results to the caller. */
static ortc_status take_outputs(ortc_context *c, ortc_run_args *a, ortc_error *error)
{
    const ortc_graph *g = c->unit->placed.graph;
    for (size_t i = 0; i < a->n_out; i++) { /* all or none: first whether they fit */
        ortc_value **slot = &c->slots[g->outputs[c->output_of[i]].edge->id];
        if (!*slot) return ortc_fail(error, ORTC_INTERNAL, "output '%s' was not made", a->out[i].name);
        ORTC_TRY(ortc_slot_for_caller(c, slot, &a->out[i], error));
        const ortc_value *v = *slot;
        if (a->out[i].value)
            ORTC_TRY(check_given(&(ortc_program_output){v->type->dtype, v->rank, v->dims, v->bytes, v->type},
                                 &a->out[i], error));
    }
    ortc_value *few[16], **made = a->n_out <= ORTC_LENGTH(few) ? few : malloc(a->n_out * sizeof *made);
    if (!made) return ortc_no_memory(error, a->n_out * sizeof *made);
    ortc_status s = ORTC_OK;
    size_t n = 0;
    for (; n < a->n_out && s == ORTC_OK; n++) {
        ortc_value *v = c->slots[g->outputs[c->output_of[n]].edge->id], *given = a->out[n].value;
        made[n] = NULL;
        if (!given && v->device == a->out[n].memory) {
            made[n] = ortc_value_retain(v);
            continue;
        }
        if (!given) s = create_in(c, a->out[n].memory, v->type->dtype, v->rank, v->dims, &made[n], error);
        if (s == ORTC_OK) s = ortc_value_copy(v, given ? given : made[n], error);
    }
    for (size_t i = 0; i < n; i++)
        if (s != ORTC_OK)
            ortc_value_release(made[i]);
        else if (made[i])
            a->out[i].value = made[i];
    if (made != few) free(made);
    return s;
}

static void empty_slots(ortc_context *c)
{
    if (c->env.slots)
        for (size_t i = 0; i < c->unit->placed.graph->edges.count; i++) {
            ortc_value_release(c->slots[i]);
            c->slots[i] = NULL;
        }
    for (size_t i = 0; i < c->env.borrowed.count; i++) ortc_value_release(c->env.borrowed.data[i]);
    ortc_array_deinit(&c->env.borrowed);
    c->env.slots = NULL;
}

/* Runs a program of fixed shapes. With an event it returns when all is queued, and c->busy_queues says
 * whether anything is. */
static ortc_status run_fixed(ortc_context *c, ortc_frame *f, ortc_run_args *a, ortc_event *event,
                             ortc_error *error)
{
    ortc_value *few[16] = {NULL},
               **made = a->n_out <= ORTC_LENGTH(few) ? few : calloc(a->n_out, sizeof *made);
    if (!made) return ortc_no_memory(error, a->n_out * sizeof *made);
    ortc_status s = ORTC_OK;
    for (size_t i = 0; i < a->n_out && s == ORTC_OK; i++)
        s = bind_output(c, &f->program->outputs[c->output_of[i]], c->output_of[i], &a->out[i], &made[i],
                        error);
    if (s == ORTC_OK) s = ortc_state_bind_outputs(c, f->program, error);
    if (s == ORTC_OK) s = ortc_frame_run(c, f, error);
    if (s == ORTC_OK && event && c->busy_queues) s = ortc_context_mark_end(c, error);
    if (s != ORTC_OK)
        drain(c, NULL);
    else if (!event)
        s = drain(c, error);
    if (s == ORTC_OK) s = ortc_state_commit(c, f->program, a, made, error);
    for (size_t i = 0; i < a->n_out; i++) {
        if (s != ORTC_OK)
            ortc_value_release(made[i]);
        else if (made[i] && a->out[i].value &&
                 !(event && c->busy_queues && ortc_event_copy_later(event, made[i], a->out[i].value))) {
            memcpy(a->out[i].value->data, made[i]->data, made[i]->bytes);
            ortc_value_release(made[i]);
        } else if (made[i] && !a->out[i].value)
            a->out[i].value = made[i];
    }
    if (made != few) free(made);
    return s;
}

void ortc_context_clean(ortc_context *c)
{
    empty_slots(c);
    for (uint32_t i = 0; i < c->unit->placed.graph->n_inputs; i++)
        if (c->aligned[i]) {
            ortc_value_release(c->aligned[i]);
            c->aligned[i] = NULL;
        }
}

static ortc_status run_in(ortc_context *c, ortc_run_args *a, ortc_event *event, ortc_error *error)
{
    ortc_frame *f;
    ORTC_TRY(ortc_run_match_inputs(c, a->in, a->n_in, error));
    ORTC_TRY(ortc_run_match_outputs(c, a->out, a->n_out, error));
    ORTC_TRY(ortc_run_find_frame(c, &f, error));
    ortc_status s = bind_inputs(c, error);
    if (!f->program->chained) {
        if (s == ORTC_OK) s = run_fixed(c, f, a, event, error);
        if (f->program->once) ortc_context_drop(c, f);
        return s;
    }
    if (s == ORTC_OK) s = run_chain(c, f, error);
    if (s != ORTC_OK) {
        drain(c, NULL);
        return s;
    }
    ORTC_TRY(ortc_state_take_slots(c, error));
    ORTC_TRY(take_outputs(c, a, error));
    return ortc_state_commit(c, NULL, a, NULL, error);
}

static ortc_status begin(ortc_context *c, const ortc_run_args *a, ortc_event **event, ortc_error *error)
{
    *event = NULL;
    ORTC_TRY(ortc_context_use_native(c, a->queue, error));
    return a->done ? ortc_event_make(c, a, event, error) : ORTC_OK;
}

/* An asynchronous run has been queued: the event keeps what it reads and writes. */
static bool hand_over(ortc_event *e, const ortc_run_args *a)
{
    for (size_t i = 0; i < a->n_out; i++)
        if (!ortc_event_hold(e, a->out[i].value)) return false;
    return true;
}

static ortc_status run_with(ortc_unit *u, ortc_run_args *a, ortc_error *error)
{
    ORTC_TRY(ortc_state_take(u, a, error));
    ortc_context *c = a->context;
    ortc_event *event;
    ortc_status status = ORTC_OK;
    if (!c)
        status = ortc_context_take(u, &c, error);
    else if (c->unit != u)
        status = ortc_fail(error, ORTC_INVALID_ARGUMENT, "the context belongs to another session");
    else if (atomic_exchange(&c->busy, true))
        status = ortc_fail(error, ORTC_INVALID_STATE, "the context is in use by another run");
    if (status != ORTC_OK) {
        ortc_state_return(a->state);
        return status;
    }
    c->state = a->state;
    c->env = (ortc_run_env){.threads = u->threads,
                            .cancel = a->cancel,
                            .deadline_ns = a->deadline_ns,
                            .seed = a->seed,
                            .budget = u->budget,
                            .error = error,
                            .allocator = u->allocator,
                            .max_bytes = u->max_bytes,
                            .kept = u->kept,
                            .executor = u->executor,
                            .profiler = a->profiler,
                            .body = ortc_run_body,
                            .unit = u};
    ortc_fp_env fp = ortc_fp_enter();
    status = begin(c, a, &event, error);
    if (status == ORTC_OK) status = run_in(c, a, a->state ? NULL : event, error);
    ortc_fp_leave(fp);
    c->env.error = NULL;
    if (status == ORTC_OK && event && c->busy_queues) {
        if (hand_over(event, a)) {
            ortc_event_start(event, c);
            *a->done = event;
            return ORTC_OK;
        }
        status = drain(c, error); /* short of memory: wait here, then */
    }
    ortc_context_clean(c);
    c->state = NULL;
    ortc_state_return(a->state);
    if (a->context)
        atomic_store(&c->busy, false);
    else
        ortc_context_return(c);
    if (status == ORTC_OK && event)
        *a->done = event;
    else
        ortc_event_release(event);
    return status;
}

/* The caller's reference lasts until here; from here on the run has its own, for others may release the last
 * one. */
ortc_status ortc_unit_run(ortc_unit *u, ortc_run_args *args, ortc_error *error)
{
    ortc_unit_retain(u);
    const bool joins = atomic_load_explicit(&u->packed->unjoined, memory_order_relaxed);
    const int64_t start = joins ? ortc_now_ns() : 0;
    ortc_status status = run_with(u, args, error);
    if (joins && status == ORTC_OK) ortc_pack_join(u->packed, ortc_now_ns() - start);
    ortc_unit_release(u);
    return status;
}
