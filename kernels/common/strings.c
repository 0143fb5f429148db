/* kernels/common/strings.c: tensors of strings put together from texts, and kernels that move elements run on
 * strings. */
#include "kernels/common/strings.h"

#include <stdlib.h>

ortc_status ortc_give_spans(ortc_call *c, uint32_t out, int32_t rank, const int64_t *dims,
                            const ortc_span *spans)
{
    ortc_value *v;
    int64_t count = 1;
    for (int32_t d = 0; d < rank; d++) count *= dims[d];
    ORTC_TRY(ortc_call_strings(c, rank, dims, &v));
    ortc_status s = ORTC_OK;
    for (int64_t i = 0; i < count && s == ORTC_OK; i++)
        s = i % 65536 == 65535 ? ortc_poll(c) : ORTC_OK,
        s = s == ORTC_OK ? ortc_call_append(c, v, spans[i].text, spans[i].length) : s;
    if (s == ORTC_OK) return ortc_call_give(c, out, v);
    ortc_call_drop(c, v);
    return s;
}

typedef struct numbers {
    ortc_view *in, *out;
    ortc_span *texts; /* by number */
    uint64_t next;
} numbers;

static ortc_status number_inputs(numbers *n, ortc_call *c)
{
    int64_t all = 1;
    for (uint32_t i = 0; i < c->n_in; i++)
        all += c->in[i].dtype == ORTC_STRING ? ortc_view_count(&c->in[i]) : 0;
    if (!(n->texts = malloc((size_t)all * sizeof *n->texts))) return ORTC_OUT_OF_MEMORY;
    n->texts[n->next++] = (ortc_span){"", 0};
    for (uint32_t i = 0; i < c->n_in; i++) {
        n->in[i] = c->in[i];
        if (c->in[i].dtype != ORTC_STRING) continue;
        const int64_t count = ortc_view_count(&c->in[i]);
        uint64_t *data = malloc((size_t)count * sizeof *data + 1);
        if (!data) return ORTC_OUT_OF_MEMORY;
        n->in[i].dtype = ORTC_U64;
        n->in[i].data = data;
        for (int64_t k = 0; k < count; k++) {
            data[k] = n->next;
            n->texts[n->next++] = ortc_span_at(&c->in[i], k);
        }
    }
    return ORTC_OK;
}

static ortc_status number_outputs(numbers *n, const ortc_call *c)
{
    for (uint32_t i = 0; i < c->n_out; i++) {
        n->out[i] = c->out[i];
        if (c->out[i].dtype != ORTC_STRING) continue;
        n->out[i].dtype = ORTC_U64;
        n->out[i].data = NULL;
        if (!(c->out[i].flags & ORTC_VIEW_LATE) &&
            !(n->out[i].data = calloc((size_t)ortc_view_count(&c->out[i]) + 1, 8)))
            return ORTC_OUT_OF_MEMORY;
    }
    return ORTC_OK;
}

static ortc_status give_output(const numbers *n, ortc_call *c, uint32_t i)
{
    const ortc_view *from = &n->out[i];
    const int64_t count = ortc_view_count(from);
    ortc_span *spans = malloc((size_t)count * sizeof *spans + 1);
    if (!spans) return ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for %lld strings", (long long)count);
    for (int64_t k = 0; k < count; k++) spans[k] = n->texts[((const uint64_t *)from->data)[k]];
    ortc_status s = ortc_give_spans(c, i, from->rank, from->dims, spans);
    free(spans);
    return s;
}

ortc_status ortc_run_on_strings(ortc_status (*run)(const void *, const void *, ortc_call *),
                                const void *state, const void *pstate, ortc_call *c)
{
    const ortc_view *in = c->in;
    ortc_view *out = c->out;
    /* exactly as many as the call has: a sanitizer sees what reads beyond */
    numbers n = {calloc(c->n_in ? c->n_in : 1, sizeof *n.in), calloc(c->n_out ? c->n_out : 1, sizeof *n.out),
                 NULL, 0};
    ortc_status s = n.in && n.out ? number_inputs(&n, c) : ORTC_OUT_OF_MEMORY;
    if (s == ORTC_OK) s = number_outputs(&n, c);
    if (s != ORTC_OK)
        ortc_call_fail(c, s, "no memory for the strings' numbers");
    else {
        c->in = n.in;
        c->out = n.out;
        s = run(state, pstate, c);
        c->in = in;
        c->out = out;
    }
    for (uint32_t i = 0; s == ORTC_OK && i < c->n_out; i++)
        if (out[i].dtype == ORTC_STRING) s = give_output(&n, c, i);
    for (uint32_t i = 0; n.in && i < c->n_in; i++)
        if (in[i].dtype == ORTC_STRING && n.in[i].data != in[i].data) free(n.in[i].data);
    for (uint32_t i = 0; n.out && i < c->n_out; i++)
        if (out[i].dtype == ORTC_STRING && !(out[i].flags & ORTC_VIEW_LATE)) free(n.out[i].data);
    free(n.texts);
    free(n.in);
    free(n.out);
    return s;
}
