/* kernels/sequence/ref.c: making sequences and taking them apart on ref. Elements are shared by reference
 * counts: what is copied is the list of them.
 */
#include <stdlib.h>

#include "kernels/sequence/sequence.h"

/* ---- Making -------------------------------------------------------------------------------------------- */

static ortc_status give_sequence(ortc_call *c, const ortc_type *element, int64_t n,
                                 ortc_value *const *elements)
{
    ortc_value *v;
    ORTC_TRY(ortc_call_sequence(c, element, n, elements, &v));
    return ortc_call_give(c, 0, v);
}

static ortc_status empty_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    ortc_type *element = calloc(1, sizeof *element);
    if (!element) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *element = (ortc_type){ORTC_KIND_TENSOR, 0, (ortc_dtype)ortc_node_int(n, "dtype", ORTC_F32), NULL};
    *out = element;
    return ORTC_OK;
}
static ortc_status empty_run(const void *state, const void *pstate, ortc_call *c)
{
    return give_sequence(c, state, 0, NULL);
}

static ortc_status construct_run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_type element = {ORTC_KIND_TENSOR, 0, c->in[0].dtype, NULL};
    ortc_value **elements = calloc(c->n_in + 1u, sizeof *elements);
    ortc_status s = elements ? ORTC_OK
                             : ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for %u elements", c->n_in);
    for (uint32_t i = 0; i < c->n_in && s == ORTC_OK; i++)
        if (!(elements[i] = ortc_call_value(c, (int32_t)i)))
            s = ortc_call_fail(c, ORTC_INVALID_MODEL, "input %u is left out", i);
    if (s == ORTC_OK) s = give_sequence(c, &element, c->n_in, elements);
    free(elements);
    return s;
}

/* ---- Positions ----------------------------------------------------------------------------------------- */

/* An optional position, negative ones counted from the end, in 0 .. n - 1, or up to n where one may stand
 * behind the last. */
static ortc_status read_position(ortc_call *c, uint32_t port, int64_t n, int behind, int64_t otherwise,
                                 int64_t *out)
{
    *out = otherwise;
    if (port < c->n_in && c->in[port].dtype) {
        if (ortc_view_count(&c->in[port]) != 1)
            return ortc_call_fail(c, ORTC_SHAPE_MISMATCH, "the position has %lld elements, expected 1",
                                  (long long)ortc_view_count(&c->in[port]));
        *out = ortc_load_i64(c->in[port].data, c->in[port].dtype, 0);
    }
    if (*out < -n || *out > n - !behind)
        return ortc_call_fail(c, ORTC_INVALID_ARGUMENT,
                              "position %lld is outside of a sequence of %lld elements", (long long)*out,
                              (long long)n);
    *out += *out < 0 ? n : 0;
    return ORTC_OK;
}

static ortc_status at_run(const void *state, const void *pstate, ortc_call *c)
{
    ortc_value *s = ortc_call_value(c, 0), *v;
    int64_t at;
    ORTC_TRY(read_position(c, 1, ortc_call_count(c, s), 0, 0, &at));
    ORTC_TRY(ortc_call_keep(c, ortc_call_element(c, s, at), &v));
    return ortc_call_give(c, 0, v);
}

/* The sequence with `put` at position `at`, or without the element there (put NULL). */
static ortc_status edit(ortc_call *c, ortc_value *s, int64_t at, ortc_value *put)
{
    const int64_t n = ortc_call_count(c, s);
    ortc_value **elements = calloc((size_t)n + 2, sizeof *elements);
    if (!elements) return ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for %lld elements", (long long)n);
    int64_t to = 0;
    for (int64_t i = 0; i <= n; i++) {
        if (put && i == at) elements[to++] = put;
        if (i < n && (put || i != at)) elements[to++] = ortc_call_element(c, s, i);
    }
    const ortc_status status = give_sequence(c, ortc_call_type(c, s)->of, to, elements);
    free(elements);
    return status;
}

static ortc_status insert_run(const void *state, const void *pstate, ortc_call *c)
{
    ortc_value *s = ortc_call_value(c, 0), *x = ortc_call_value(c, 1);
    const int64_t n = ortc_call_count(c, s);
    int64_t at;
    if (!x) return ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for a value");
    ORTC_TRY(read_position(c, 2, n, 1, n, &at));
    return edit(c, s, at, x);
}

static ortc_status erase_run(const void *state, const void *pstate, ortc_call *c)
{
    ortc_value *s = ortc_call_value(c, 0);
    int64_t at;
    ORTC_TRY(read_position(c, 1, ortc_call_count(c, s), 0, -1, &at));
    return edit(c, s, at, NULL);
}

static ortc_status length_run(const void *state, const void *pstate, ortc_call *c)
{
    ortc_store_i64(c->out[0].data, ORTC_I64, 0, ortc_call_count(c, ortc_call_value(c, 0)));
    return ORTC_OK;
}

#define VALUES_KERNEL(symbol, title, more, ...) \
    static const ortc_kernel symbol = {.size = ORTC_SIZED(ortc_kernel), \
                                       .flags = ORTC_KERNEL_VALUES | (more), \
                                       .name = title, \
                                       __VA_ARGS__}
VALUES_KERNEL(empty_ref, "sequence_empty.ref", 0, .prepare = empty_prepare, .run = empty_run);
VALUES_KERNEL(construct_ref, "sequence_construct.ref", 0, .run = construct_run);
VALUES_KERNEL(at_ref, "sequence_at.ref", ORTC_KERNEL_LATE_OUT, .host_in = 2, .run = at_run);
VALUES_KERNEL(insert_ref, "sequence_insert.ref", 0, .host_in = 4, .run = insert_run);
VALUES_KERNEL(erase_ref, "sequence_erase.ref", 0, .host_in = 2, .run = erase_run);
VALUES_KERNEL(length_ref, "sequence_length.ref", 0, .host_out = 1, .run = length_run);

#define PLAIN \
    (ORTC_TYPES_NUM | ORTC_TYPE(ORTC_BOOL) | ORTC_TYPE(ORTC_STRING) | ORTC_TYPE(ORTC_C64) | \
     ORTC_TYPE(ORTC_C128))
#define INDEX (ORTC_TYPE(ORTC_I32) | ORTC_TYPE(ORTC_I64))

ORTC_KERNELS(ref, sequence, ORTC_KERNEL("SequenceEmpty", 11, ORTC_NEWEST, (PLAIN), &empty_ref),
             ORTC_KERNEL("SequenceConstruct", 11, ORTC_NEWEST, (PLAIN, PLAIN), &construct_ref),
             ORTC_KERNEL("SequenceAt", 11, ORTC_NEWEST, (PLAIN, PLAIN, INDEX), &at_ref),
             ORTC_KERNEL("SequenceInsert", 11, ORTC_NEWEST, (PLAIN, PLAIN, INDEX), &insert_ref),
             ORTC_KERNEL("SequenceErase", 11, ORTC_NEWEST, (PLAIN, INDEX), &erase_ref),
             ORTC_KERNEL("SequenceLength", 11, ORTC_NEWEST, (PLAIN, ORTC_TYPE(ORTC_I64)), &length_ref),
             ORTC_KERNEL("SplitToSequence", 24, ORTC_NEWEST, (PLAIN, INDEX, PLAIN),
                         &ortc_ref_split_to_sequence),
             ORTC_KERNEL("ConcatFromSequence", 11, ORTC_NEWEST, (PLAIN, PLAIN),
                         &ortc_ref_concat_from_sequence),
             ORTC_KERNEL("SequenceMap", 17, ORTC_NEWEST, (ORTC_TYPES_ANY), &ortc_ref_sequence_map));
