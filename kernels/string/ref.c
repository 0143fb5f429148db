/* kernels/string/ref.c: StringConcat and StringSplit on ref. */
#include <stdlib.h>

#include "kernels/string/string.h"

static ortc_status concat_run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_view *y = &c->out[0];
    const int64_t count = ortc_view_count(y);
    ortc_value *v;
    ortc_walk w;
    ORTC_TRY(ortc_call_strings(c, y->rank, y->dims, &v));
    size_t room = 256;
    char *text = malloc(room);
    ortc_status s = text ? ORTC_OK : ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for a string");
    ortc_walk_init(&w, y->rank, y->dims);
    ortc_walk_view(&w, &c->in[0]);
    ortc_walk_view(&w, &c->in[1]);
    ortc_walk_merge(&w);
    for (int64_t i = 0; i < count && s == ORTC_OK; i++, ortc_walk_next(&w)) {
        const ortc_span a = ortc_span_at(&c->in[0], w.at[0]), b = ortc_span_at(&c->in[1], w.at[1]);
        if (a.length + b.length > room) { /* both lie in memory: the sum fits */
            char *grown = realloc(text, room = 2 * (a.length + b.length));
            if (!grown) {
                s = ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for a string of %zu bytes", room);
                break;
            }
            text = grown;
        }
        if (a.length) memcpy(text, a.text, a.length);
        if (b.length) memcpy(text + a.length, b.text, b.length);
        s = ortc_call_append(c, v, text, a.length + b.length);
        if (s == ORTC_OK && i % 4096 == 4095) s = ortc_poll(c);
    }
    free(text);
    if (s == ORTC_OK) return ortc_call_give(c, 0, v);
    ortc_call_drop(c, v);
    return s;
}

/* ---- StringSplit --------------------------------------------------------------------------------------- */

typedef struct split_state {
    ortc_span delimiter; /* empty: white space, as long as it goes on */
    int64_t most;        /* splits */
} split_state;

static ortc_status split_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    split_state *s = malloc(sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    const ortc_attr delimiter = ortc_node_attr(n, "delimiter");
    s->delimiter = delimiter.kind == ORTC_ATTR_STRING ? (ortc_span){delimiter.u.s, delimiter.count}
                                                      : (ortc_span){"", 0};
    s->most = ortc_node_int(n, "maxsplit", INT64_MAX);
    if (s->most < 0) s->most = INT64_MAX;
    *out = s;
    return ORTC_OK;
}

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r') || (c >= '\x1c' && c <= '\x1f'); }

/* Takes the next piece off the front of `rest`; `last`: all that is left. false: there is none. */
static bool next_word(ortc_span *rest, bool last, ortc_span *piece)
{
    while (rest->length && is_space(*rest->text)) rest->text++, rest->length--;
    if (!rest->length) return false;
    size_t n = last ? rest->length : 0;
    while (n < rest->length && !is_space(rest->text[n])) n++;
    while (last && n && is_space(rest->text[n - 1])) n--;
    *piece = (ortc_span){rest->text, n};
    rest->text += n;
    rest->length -= n;
    if (last) rest->length = 0;
    return true;
}

/* Calls with pieces NULL only count. */
static int64_t split(const split_state *s, ortc_span text, ortc_span *pieces)
{
    int64_t n = 0;
    ortc_span piece;
    if (!s->delimiter.length) {
        while (next_word(&text, n == s->most, &piece)) {
            if (pieces) pieces[n] = piece;
            n++;
        }
        return n;
    }
    for (;; n++) {
        const char *at = n == s->most
                             ? NULL
                             : memmem(text.text, text.length, s->delimiter.text, s->delimiter.length);
        if (pieces) pieces[n] = (ortc_span){text.text, at ? (size_t)(at - text.text) : text.length};
        if (!at) return n + 1;
        text.length -= (size_t)(at - text.text) + s->delimiter.length;
        text.text = at + s->delimiter.length;
    }
}

static ortc_status split_run(const void *state, const void *pstate, ortc_call *c)
{
    const split_state *s = state;
    const ortc_view *x = &c->in[0];
    const int64_t count = ortc_view_count(x);
    int64_t dims[ORTC_RANK_LIMIT + 1], most = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t n = split(s, ortc_span_at(x, i), NULL);
        if (c->n_out > 1 && c->out[1].dtype) ortc_store_i64(c->out[1].data, ORTC_I64, i, n);
        most = n > most ? n : most;
        if (i % 4096 == 4095) ORTC_TRY(ortc_poll(c));
    }
    if (!c->out[0].dtype) return ORTC_OK;
    for (int32_t d = 0; d < x->rank; d++) dims[d] = x->dims[d];
    dims[x->rank] = most;
    if (most && count > (int64_t)(SIZE_MAX / 64) / most)
        return ortc_call_fail(c, ORTC_LIMIT, "%lld texts of up to %lld pieces", (long long)count,
                              (long long)most);
    ortc_span *pieces = calloc((size_t)(count * most) + 1, sizeof *pieces);
    if (!pieces)
        return ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for %lld pieces", (long long)(count * most));
    for (int64_t i = 0; i < count; i++) split(s, ortc_span_at(x, i), pieces + i * most);
    const ortc_status status = ortc_give_spans(c, 0, x->rank + 1, dims, pieces);
    free(pieces);
    return status;
}

static const ortc_kernel concat_ref = {.size = ORTC_SIZED(ortc_kernel),
                                       .name = "string_concat.ref",
                                       .run = concat_run};
static const ortc_kernel split_ref = {.size = ORTC_SIZED(ortc_kernel),
                                      .flags = ORTC_KERNEL_LATE_OUT,
                                      .name = "string_split.ref",
                                      .prepare = split_prepare,
                                      .run = split_run};
#define STRING ORTC_TYPE(ORTC_STRING)
ORTC_KERNELS(ref, string, ORTC_KERNEL("StringConcat", 20, ORTC_NEWEST, (STRING), &concat_ref),
             ORTC_KERNEL("StringSplit", 20, ORTC_NEWEST, (STRING, STRING, ORTC_TYPE(ORTC_I64)), &split_ref),
             ORTC_KERNEL("StringNormalizer", 10, ORTC_NEWEST, (ORTC_TYPES_ANY), &ortc_ref_string_normalizer),
             ORTC_KERNEL("RegexFullMatch", 20, ORTC_NEWEST, (STRING, ORTC_TYPE(ORTC_BOOL)),
                         &ortc_ref_regex_full_match),
             ORTC_KERNEL("TfIdfVectorizer", 9, ORTC_NEWEST,
                         (STRING | ORTC_TYPE(ORTC_I32) | ORTC_TYPE(ORTC_I64), ORTC_TYPE(ORTC_F32)),
                         &ortc_ref_tfidf),
             ORTC_KERNEL_IN("com.microsoft", "Tokenizer", 1, 1, (STRING), &ortc_ref_tokenizer),
             ORTC_KERNEL_IN("com.microsoft", "MurmurHash3", 1, 1,
                            (STRING | ORTC_TYPE(ORTC_U32) | ORTC_TYPE(ORTC_I32) | ORTC_TYPE(ORTC_U64) |
                                 ORTC_TYPE(ORTC_I64) | ORTC_TYPE(ORTC_F32) | ORTC_TYPE(ORTC_F64),
                             ORTC_TYPE(ORTC_U32) | ORTC_TYPE(ORTC_I32)),
                            &ortc_ref_murmur));
