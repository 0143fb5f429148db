/* kernels/sequence/ref_map.c: SequenceMap on ref: the body once for every element; sequences among the
 * further inputs are read element by element, tensors as they are.
 */
#include <stdlib.h>

#include "kernels/sequence/sequence.h"

typedef struct mapping {
    ortc_call *call;
    int64_t n;
    ortc_value **given;   /* the node's inputs, borrowed */
    ortc_value **in;      /* the body's */
    ortc_value **results; /* n_out x n, owned */
    ortc_value **out;     /* of one turn */
    ortc_type *elements;  /* per output */
} mapping;

static ortc_status turn(mapping *m, int64_t i)
{
    ortc_call *c = m->call;
    for (uint32_t k = 0; k < c->n_in; k++) {
        const bool sequence = ortc_call_type(c, m->given[k])->kind == ORTC_KIND_SEQUENCE;
        m->in[k] = sequence ? ortc_call_element(c, m->given[k], i) : m->given[k];
    }
    ORTC_TRY(ortc_poll(c));
    ORTC_TRY(ortc_call_body(c, "body", c->n_in, m->in, c->n_out, m->out));
    for (uint32_t k = 0; k < c->n_out; k++) m->results[k * m->n + i] = m->out[k];
    return ORTC_OK;
}

static ortc_status map_all(mapping *m)
{
    ortc_call *c = m->call;
    for (uint32_t k = 0; k < c->n_in; k++) {
        if (!(m->given[k] = ortc_call_value(c, (int32_t)k)))
            return ortc_call_fail(c, ORTC_INVALID_MODEL, "input %u is left out", k);
        const int64_t n = ortc_call_count(c, m->given[k]);
        if (ortc_call_type(c, m->given[k])->kind == ORTC_KIND_SEQUENCE && n != m->n)
            return ortc_call_fail(c, ORTC_INVALID_ARGUMENT, "input %u has %lld elements, the first has %lld",
                                  k, (long long)n, (long long)m->n);
    }
    for (int64_t i = 0; i < m->n; i++) ORTC_TRY(turn(m, i));
    for (uint32_t k = 0; k < c->n_out; k++) {
        ortc_value *v;
        const ortc_type *element = m->n ? ortc_call_type(c, m->results[k * m->n]) : &m->elements[k];
        ORTC_TRY(ortc_call_sequence(c, element, m->n, m->results + k * m->n, &v));
        ORTC_TRY(ortc_call_give(c, k, v));
    }
    return ORTC_OK;
}

/* The types of elements that the node's outputs have, for when there are none. */
static ortc_status map_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    ortc_type *types = calloc(ortc_node_n_out(n) + 1u, sizeof *types);
    if (!types) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for types");
    for (uint32_t i = 0; i < ortc_node_n_out(n); i++) {
        const ortc_type *t = ortc_node_out(n, i).type;
        types[i] = t && t->of ? *t->of : (ortc_type){ORTC_KIND_TENSOR, 0, ORTC_F32, NULL};
    }
    *out = types;
    return ORTC_OK;
}

static ortc_status map_run(const void *state, const void *pstate, ortc_call *c)
{
    mapping m = {.call = c,
                 .n = ortc_call_count(c, ortc_call_value(c, 0)),
                 .elements = (ortc_type *)(uintptr_t)state};
    m.given = calloc(c->n_in + 1u, sizeof *m.given);
    m.in = calloc(c->n_in + 1u, sizeof *m.in);
    m.out = calloc(c->n_out + 1u, sizeof *m.out);
    m.results = calloc((size_t)m.n * c->n_out + 1, sizeof *m.results);
    ortc_status s = m.given && m.in && m.out && m.results
                        ? map_all(&m)
                        : ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for the results of %lld elements",
                                         (long long)m.n);
    for (int64_t i = 0; m.results && i < m.n * c->n_out; i++)
        if (m.results[i]) ortc_call_drop(c, m.results[i]);
    free(m.given);
    free(m.in);
    free(m.out);
    free(m.results);
    return s;
}

const ortc_kernel ortc_ref_sequence_map = {.size = ORTC_SIZED(ortc_kernel),
                                           .flags = ORTC_KERNEL_VALUES | ORTC_KERNEL_NO_CAPTURE,
                                           .name = "sequence_map.ref",
                                           .prepare = map_prepare,
                                           .run = map_run};
