/* kernels/common/strings.h: strings for kernels: an element's text, tensors of strings put together from
 * texts, and kernels that only move elements, run on strings.
 */
#ifndef ORTC_KERNELS_STRINGS_H
#define ORTC_KERNELS_STRINGS_H

#include <stdbool.h>
#include <string.h>

#include "kernels/common/element.h"
#include "ortc/op.h"

/* A text that somebody else keeps alive: not terminated, any bytes. */
typedef struct ortc_span {
    const char *text;
    size_t length;
} ortc_span;

static inline ortc_span ortc_span_at(const ortc_view *v, int64_t i)
{
    int64_t n;
    const char *text = ortc_string_at(v->data, i, &n);
    return (ortc_span){text, (size_t)n};
}
static inline ortc_span ortc_span_of(const char *terminated)
{
    return (ortc_span){terminated, strlen(terminated)};
}
/* Bytewise, the shorter first. */
static inline int ortc_span_compare(ortc_span a, ortc_span b)
{
    const size_t n = a.length < b.length ? a.length : b.length;
    const int order = n ? memcmp(a.text, b.text, n) : 0;
    return order ? order : (a.length > b.length) - (a.length < b.length);
}
static inline bool ortc_span_equal(ortc_span a, ortc_span b)
{
    return a.length == b.length && (a.length == 0 || !memcmp(a.text, b.text, a.length));
}

/* Gives output `out`: spans[i] for every element, of the shape that was planned, or, where that is late, of
 * `dims`. */
ortc_status ortc_give_spans(ortc_call *, uint32_t out, int32_t rank, const int64_t *dims,
                            const ortc_span *spans);

/* Runs a kernel that only moves elements on tensors of strings: each string has a number (u64), the kernel
 * moves numbers, and outputs of numbers become strings again. Number 0 is the empty string: what a kernel
 * fills in by itself. */
ortc_status ortc_run_on_strings(ortc_status (*run)(const void *, const void *, ortc_call *),
                                const void *state, const void *pstate, ortc_call *);

#endif
