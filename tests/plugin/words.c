/* tests/plugin/words.c: values through a stranger's operators, from op.h alone: Count makes a map of words to
 * how often they are there, Most takes the word with the largest number out of one.
 */
#include <stdlib.h>
#include <string.h>

#include "ortc/op.h"

/* ---- Count --------------------------------------------------------------------------------------------- */

static ortc_status infer_count(ortc_infer *c)
{
    const ortc_type number = {ORTC_KIND_TENSOR, 0, ORTC_I64, NULL},
                    map = {ORTC_KIND_MAP, 0, ORTC_STRING, &number};
    return ortc_infer_out_type(c, 0, &map);
}

static int same(const ortc_strings *s, int64_t i, int64_t k)
{
    int64_t n, m;
    const char *a = ortc_string_at(s, i, &n), *b = ortc_string_at(s, k, &m);
    return n == m && (n == 0 || !memcmp(a, b, (size_t)n));
}

/* The first place of every word, and how often it is there. */
static int64_t count_words(const ortc_strings *s, int64_t *first, int64_t *times)
{
    int64_t n = 0, k;
    for (int64_t i = 0; i < s->count; i++) {
        for (k = 0; k < n && !same(s, first[k], i); k++) continue;
        if (k == n) {
            first[n] = i;
            times[n++] = 0;
        }
        times[k]++;
    }
    return n;
}

static ortc_status make_map(ortc_call *c, const ortc_strings *s, const int64_t *first, const int64_t *times,
                            int64_t n, ortc_value **out)
{
    ortc_value *keys = NULL, *values = NULL;
    ortc_view v;
    ortc_status status = ortc_call_strings(c, 1, &n, &keys);
    for (int64_t i = 0; i < n && status == ORTC_OK; i++) {
        int64_t length;
        const char *text = ortc_string_at(s, first[i], &length);
        status = ortc_call_append(c, keys, text, (size_t)length);
    }
    if (status == ORTC_OK) status = ortc_call_make(c, ORTC_I64, 1, &n, &values);
    if (status == ORTC_OK) status = ortc_call_look(c, values, &v);
    if (status == ORTC_OK) {
        if (n) memcpy(v.data, times, (size_t)n * sizeof *times);
        status = ortc_call_map(c, keys, values, out);
    }
    if (keys) ortc_call_drop(c, keys);
    if (values) ortc_call_drop(c, values);
    return status;
}

static ortc_status run_count(const void *state, const void *plan, ortc_call *c)
{
    const ortc_strings *s = (const ortc_strings *)c->in[0].data;
    int64_t *first = (int64_t *)malloc(((size_t)s->count + 1) * 2 * sizeof *first);
    ortc_value *map = NULL;
    (void)state, (void)plan;
    if (!first) return ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for %lld words", (long long)s->count);
    ortc_status status = make_map(c, s, first, first + s->count, count_words(s, first, first + s->count),
                                  &map);
    free(first);
    return status == ORTC_OK ? ortc_call_give(c, 0, map) : status;
}

/* ---- Most ---------------------------------------------------------------------------------------------- */

static ortc_status infer_most(ortc_infer *c) { return ortc_infer_out(c, 0, ORTC_STRING, 0, NULL); }

static ortc_status run_most(const void *state, const void *plan, ortc_call *c)
{
    ortc_value *map = ortc_call_value(c, 0), *word;
    ortc_view keys, values;
    int64_t best = 0, n;
    (void)state, (void)plan;
    if (!ortc_call_count(c, map)) return ortc_call_fail(c, ORTC_INVALID_ARGUMENT, "there are no words");
    ortc_status s = ortc_call_look(c, ortc_call_element(c, map, 0), &keys);
    if (s == ORTC_OK) s = ortc_call_look(c, ortc_call_element(c, map, 1), &values);
    if (s != ORTC_OK) return s;
    for (int64_t i = 1; i < ortc_call_count(c, map); i++)
        if (((const int64_t *)values.data)[i] > ((const int64_t *)values.data)[best]) best = i;
    const char *text = ortc_string_at((const ortc_strings *)keys.data, best, &n);
    s = ortc_call_strings(c, 0, NULL, &word);
    if (s == ORTC_OK && (s = ortc_call_append(c, word, text, (size_t)n)) != ORTC_OK) ortc_call_drop(c, word);
    return s == ORTC_OK ? ortc_call_give(c, 0, word) : s;
}

/* Forgets to give what it was asked for. */
static ortc_status run_nothing(const void *state, const void *plan, ortc_call *c)
{
    (void)state, (void)plan, (void)c;
    return ORTC_OK;
}

static const ortc_kernel nothing = {.size = sizeof(ortc_kernel),
                                    .flags = ORTC_KERNEL_VALUES,
                                    .name = "nothing",
                                    .run = run_nothing};
static const ortc_kernel count = {.size = sizeof(ortc_kernel),
                                  .flags = ORTC_KERNEL_VALUES,
                                  .name = "count",
                                  .run = run_count};
static const ortc_kernel most = {.size = sizeof(ortc_kernel),
                                 .flags = ORTC_KERNEL_VALUES,
                                 .name = "most",
                                 .run = run_most};
ORTC_KERNELS(ref, words, ORTC_KERNEL_IN("test.words", "Count", 1, 1, (ORTC_TYPE(ORTC_STRING)), &count),
             ORTC_KERNEL_IN("test.words", "Most", 1, 1, (ORTC_TYPES_ANY), &most),
             ORTC_KERNEL_IN("test.words", "Nothing", 1, 1, (ORTC_TYPES_ANY), &nothing));

static const ortc_op ops[] = {
    ORTC_OP("test.words", "Count", 1, 1, "", "words:T", "counts:M", "", "T=string M=map", infer_count, NULL,
            0),
    ORTC_OP("test.words", "Nothing", 1, 1, "", "words:T", "counts:M", "", "T=string M=map", infer_count, NULL,
            0),
    ORTC_OP("test.words", "Most", 1, 1, "", "counts:M", "word:T", "", "M=map T=string", infer_most, NULL, 0),
};
ORTC_FAMILY(words, ops, &ortc_kernels_ref_words);

static ortc_status init(const ortc_host *host) { return ortc_host_add_family(host, &ortc_family_words); }
ORTC_PLUGIN("words", "1.0", init)
