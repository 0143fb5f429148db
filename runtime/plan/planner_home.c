/* runtime/plan/planner_home.c: where the bytes of an edge are that a step reads: constants, inputs, literals,
 * slots (planner.h). */
#include "planner.h"

bool ortc_fact_bytes(const ortc_fact *f, size_t *out)
{
    int64_t count;
    return f->type && f->type->kind == ORTC_KIND_TENSOR && ortc_fact_is_sized(f) &&
           ortc_count_elements(f->rank, f->dims, &count) && ortc_tensor_bytes(f->type->dtype, count, out);
}

uint8_t ortc_planner_form(const ortc_planner *p, uint8_t space, ortc_layout layout)
{
    uint8_t form = space;
    for (uint32_t i = p->targets->n_spaces; layout && i < p->n_forms; i++)
        if (p->forms[i].space == space && p->forms[i].layout == layout) form = (uint8_t)i;
    return form;
}

ortc_status ortc_planner_bytes(ortc_planner *p, const ortc_edge *e, uint8_t form, size_t *out)
{
    const ortc_fact *f = &p->facts[e->id];
    char buffer[160];
    ortc_text t = ORTC_TEXT(buffer);
    if (!f->type || f->type->kind != ORTC_KIND_TENSOR || !ortc_fact_is_sized(f))
        return ortc_fail(p->error, ORTC_UNSUPPORTED,
                         "the shape of '%s' is known only when the model runs, which this version "
                         "cannot plan",
                         e->name);
    if (!ortc_bytes_laid_out(f->type->dtype, p->forms[form].layout, f->rank, f->dims, out) ||
        *out > SIZE_MAX / 4) {
        ortc_text_tensor(&t, f->type->dtype, f->rank, f->dims);
        return ortc_fail(p->error, ORTC_LIMIT, "'%s' would be %s, which is too large", e->name, buffer);
    }
    return ORTC_OK;
}

/* Known values that a kernel or an output wants to read: written out as a literal. */
static ortc_status literal(ortc_planner *p, const ortc_edge *e, ortc_home *h)
{
    const ortc_fact *f = &p->facts[e->id];
    int64_t *data = ortc_arena_array(&p->program->arena, (size_t)f->n_values + 1, sizeof *data);
    if (!data) return ortc_no_memory(p->error, 0);
    for (int64_t i = 0; i < f->n_values; i++)
        if (f->type->dtype == ORTC_I32)
            ((int32_t *)data)[i] = (int32_t)f->values[i];
        else
            data[i] = f->values[i];
    *h = (ortc_home){.lives = LIVES_POINTER, .root = ortc_planner_number(p, h), .data = data};
    return ortc_planner_bytes(p, e, 0, &h->bytes);
}

/* Gives a home to an edge that a step reads and nobody has made: constants, inputs, literals. */
ortc_status ortc_planner_home(ortc_planner *p, const ortc_edge *e, ortc_home **out)
{
    ortc_home *h = ortc_planner_at(p, e, p->primary[e->id]);
    const ortc_fact *f = &p->facts[e->id];
    *out = h;
    if (h->lives || h->made || h->root != ortc_planner_number(p, h)) return ORTC_OK;
    if (p->made && p->made[e->id]) {
        ORTC_TRY(ortc_planner_space_of(p, p->made[e->id]->device, e->name, &p->primary[e->id]));
        *out = h = ortc_planner_at(p, e, p->primary[e->id]);
        *h = (ortc_home){.lives = LIVES_SLOT,
                         .index = e->id,
                         .root = ortc_planner_number(p, h),
                         .bytes = p->made[e->id]->bytes};
        return ORTC_OK;
    }
    bool defaulted = e->input >= 0 && e->constant && f->dims == e->constant->dims;
    if (e->constant && (e->input < 0 || defaulted)) {
        const ortc_constant *c = e->constant;
        *h = (ortc_home){.lives = LIVES_POINTER,
                         .root = ortc_planner_number(p, h),
                         .data = c->data,
                         .bytes = c->bytes};
        p->program->constant_bytes += c->bytes;
        return ORTC_OK;
    }
    if (e->input >= 0) {
        const ortc_value *v = p->inputs[e->input].value;
        ORTC_TRY(ortc_planner_space_of(p, v->device, e->name, &p->primary[e->id]));
        *out = h = ortc_planner_at(p, e, p->primary[e->id]);
        *h = (ortc_home){.lives = LIVES_INPUT,
                         .index = (uint32_t)e->input,
                         .root = ortc_planner_number(p, h),
                         .bytes = v->bytes};
        return ORTC_OK;
    }
    if (ortc_fact_values_known(f)) return literal(p, e, h);
    return ortc_fail(p->error, ORTC_INTERNAL, "'%s' is read before it is made", e->name);
}

/* A form for this run alone; *out NULL: it is too large for that. */
static ortc_status pack_passing(ortc_planner *p, const ortc_constant *c, const ortc_packing *how,
                                const void *param, size_t param_bytes, ortc_pack_item **out)
{
    ortc_passing passing;
    ORTC_TRY(ortc_passing_make(c, how, param, param_bytes, &passing, p->error));
    const bool fits = passing.item->packed.bytes <= ORTC_PASSING_MOST;
    *out = fits && ortc_array_push(&p->program->passing, passing) ? passing.item : NULL;
    if (!*out) free(passing.item);
    return *out || !fits ? ORTC_OK : ortc_no_memory(p->error, sizeof passing);
}

ortc_status ortc_planner_pack(ortc_planner *p, const ortc_edge *e, ortc_open_device *device,
                              const ortc_packing *how, const void *param, size_t param_bytes,
                              ortc_pack_item **out)
{
    ortc_pack_store *store = p->program->store;
    const ortc_constant *c = e->constant;
    *out = NULL;
    const bool own = device && (device->memory.device || device->pool);
    if (p->once && !p->program->chained && ortc_packing_has(how, ORTC_PACKING_PASSES) && !own &&
        !(*out = ortc_pack_find(store, c, device, how, param, param_bytes))) {
        if (ortc_packing_has(how, ORTC_PACKING_LEFT)) return p->program->once = true, ORTC_OK;
        ORTC_TRY(pack_passing(p, c, how, param, param_bytes, out));
        if (*out) return p->program->once = true, ORTC_OK;
    }
    if (!*out) ORTC_TRY(ortc_pack_acquire(store, c, device, how, param, param_bytes, p->env, out, p->error));
    if (!ortc_array_push(&p->program->packs, *out)) {
        ortc_pack_release(store, *out);
        return ortc_no_memory(p->error, sizeof *out);
    }
    p->program->packed_bytes += (*out)->packed.bytes;
    return ORTC_OK;
}

ortc_status ortc_planner_space_of(const ortc_planner *p, uint32_t memory, const char *what, uint8_t *out)
{
    *out = 0;
    for (uint32_t i = 0; i < p->targets->count && memory; i++)
        if (p->targets->list[i].open->memory.device == memory) *out = p->targets->list[i].space;
    return !memory || *out
               ? ORTC_OK
               : ortc_fail(p->error, ORTC_INVALID_ARGUMENT,
                           "'%s': memory %u belongs to none of the session's devices", what, memory);
}
