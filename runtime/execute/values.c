/* runtime/execute/values.c: what is not a plain tensor while a program runs: sequences, maps, optionals, and
 * strings.
 *
 * They never lie in an arena. A kernel makes a value and gives it; it stands in the slot of its edge until
 * the run ends, and steps that read it find it there when they start (ortc_step_bind_values): a view of
 * strings holds the block, a view of another kind (ORTC_VIEW_VALUE) the value itself.
 */
#include "values.h"

/* ---- Inputs -------------------------------------------------------------------------------------------- */

bool ortc_value_wants_optional(const ortc_type *t, const ortc_value *v)
{
    return t && t->kind == ORTC_KIND_OPTIONAL && (!v || ortc_type_equal(t->of, v->type));
}

ortc_status ortc_value_as_optional(const ortc_type *t, const ortc_value *v, ortc_value **out,
                                   ortc_error *error)
{
    return ortc_value_create_optional(t->of, (ortc_value *)(uintptr_t)v, out, error);
}

/* ---- Between slots and views --------------------------------------------------------------------------- */

void ortc_step_bind_values(ortc_context *c, const ortc_step *s, ortc_step_call *call)
{
    ortc_view *in = (ortc_view *)(uintptr_t)call->call.in; /* this frame's own */
    for (uint32_t i = 0; i < s->n_in; i++)
        if (s->in[i].from == ORTC_FROM_SLOT && c->slots[s->in[i].index])
            in[i].data = (char *)ortc_value_content(c->slots[s->in[i].index]) + s->in[i].offset;
    for (uint32_t i = 0; i < s->n_out; i++)
        if (s->out[i].from == ORTC_FROM_SLOT && !c->slots[s->out[i].index])
            call->call.out[i] = s->out[i].view; /* the run before has left its own value */
}

ortc_status ortc_step_copy_value(ortc_context *c, const ortc_step *s, ortc_step_call *call)
{
    ortc_value **to = &c->slots[s->out[0].index], *v = NULL;
    const ortc_view *from = &call->call.in[0];
    if (from->flags & ORTC_VIEW_VALUE) return ortc_value_keep(from->data, to, c->env.error);
    ORTC_TRY(ortc_value_wrap_strings(from->data, from->rank, from->dims, &v, c->env.error));
    ortc_status status = ortc_value_keep(v, to, c->env.error);
    ortc_value_release(v);
    return status;
}

ortc_status ortc_step_check_made(ortc_context *c, const ortc_step *s)
{
    for (uint32_t i = 0; i < s->n_out; i++)
        if (s->out[i].from == ORTC_FROM_SLOT && ortc_view_present(&s->out[i].view) &&
            !c->slots[s->out[i].index])
            return ortc_fail(c->env.error, ORTC_INTERNAL, "the kernel '%s' gave no value for output %u",
                             s->kernel->name, i);
    return ORTC_OK;
}

bool ortc_value_is_on_host(const ortc_value *v)
{
    size_t n = !v->elements ? 0 : v->type->kind == ORTC_KIND_MAP ? 2 : (size_t)v->count;
    for (size_t i = 0; i < n; i++)
        if (!ortc_value_is_on_host(v->elements[i])) return false;
    return v->device == 0;
}

/* ---- Results ------------------------------------------------------------------------------------------- */

ortc_status ortc_slot_for_caller(const ortc_context *c, ortc_value **slot, const ortc_out *out,
                                 ortc_error *error)
{
    ortc_value *v = *slot, *copy;
    bool plain = ortc_value_is_tensor(v) && v->type->dtype != ORTC_STRING;
    if ((out->value || out->memory) && !plain) {
        char buffer[128];
        ortc_text t = ORTC_TEXT(buffer);
        ortc_text_type(&t, v->type);
        return ortc_fail(error, ORTC_TYPE_MISMATCH,
                         out->value
                             ? "output '%s' is %s, which cannot be written into a given value: leave it NULL"
                             : "output '%s' is %s, which is in host memory (0) only",
                         out->name, buffer);
    }
    if (!plain || out->value || v->device || atomic_load_explicit(&v->references, memory_order_acquire) == 1)
        return ORTC_OK;
    /* an element of a sequence stays as it is */
    ORTC_TRY(ortc_run_env_value(&c->env, v->type->dtype, v->rank, v->dims, &copy, error));
    if (v->bytes) memcpy(copy->data, v->data, v->bytes);
    ortc_value_release(v);
    *slot = copy;
    return ORTC_OK;
}
