/* kernels/string/ref_tokenizer.c: com.microsoft's Tokenizer on ref: characters, what lies between
 * separators, or what an expression finds, the leftmost first and as long as it can be.
 *
 * Pieces shorter than mincharnum are dropped. Every text becomes a row as long as the longest, filled up
 * with pad_value; with `mark`, where there is any token at all, it begins with the byte 2 and ends with the
 * byte 3.
 */
#include <locale.h>
#include <regex.h>
#include <stdlib.h>

#include "kernels/string/string.h"

typedef struct tokens {
    bool marked, characters, separate; /* separate: the expressions are separators */
    int64_t least;                     /* characters of a token */
    ortc_span padding;
    size_t n;
    regex_t *expressions; /* n */
} tokens;

static void release(void *state)
{
    tokens *t = state;
    for (size_t i = 0; i < t->n; i++) regfree(&t->expressions[i]);
    free(t->expressions);
    free(t);
}

static ortc_status compile_all(tokens *t, const ortc_node *n, ortc_prep *prep)
{
    const ortc_attr list = ortc_node_attr(n, "separators"), expression = ortc_node_attr(n, "tokenexp");
    t->separate = list.kind == ORTC_ATTR_STRINGS;
    if (t->separate == (expression.kind == ORTC_ATTR_STRING))
        return ortc_prep_fail(prep, ORTC_INVALID_MODEL,
                              "it needs one of the attributes separators and tokenexp");
    const size_t count = t->separate ? list.count : 1;
    const char *const *texts = t->separate ? list.u.strings : &expression.u.s;
    t->characters = count == 1 && (t->separate ? !*texts[0] : !strcmp(texts[0], "."));
    if (count == 0 || (!t->separate && !*texts[0]))
        return ortc_prep_fail(prep, ORTC_INVALID_MODEL, "there is nothing to tell tokens by");
    if (t->characters) return ORTC_OK;
    if (!(t->expressions = calloc(count, sizeof *t->expressions)))
        return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for expressions");
    for (; t->n < count; t->n++)
        ORTC_TRY(ortc_regex_compile(texts[t->n], strlen(texts[t->n]), false, &t->expressions[t->n], prep));
    return ORTC_OK;
}

static ortc_status prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    tokens *t = calloc(1, sizeof *t);
    if (!t) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    t->marked = ortc_node_int(n, "mark", 0) != 0;
    t->least = ortc_node_int(n, "mincharnum", 1);
    t->padding = ortc_span_of(ortc_node_string(n, "pad_value", ""));
    ortc_status s = compile_all(t, n, prep);
    if (s == ORTC_OK && t->least < 1)
        s = ortc_prep_fail(prep, ORTC_INVALID_MODEL, "attribute mincharnum is %lld", (long long)t->least);
    if (s == ORTC_OK && t->characters && t->least > 1)
        s = ortc_prep_fail(prep, ORTC_INVALID_MODEL, "tokens of one character, and mincharnum is %lld",
                           (long long)t->least);
    if (s == ORTC_OK)
        *out = t;
    else
        release(t);
    return s;
}

/* Tokens of one text after the other, as places in `text`, which holds them all, each behind a 0. */
typedef struct found {
    char *text;
    struct {
        size_t at, length;
    } * tokens;
    size_t n, room;
} found;

static bool add(found *f, size_t at, size_t length)
{
    if (f->n == f->room) {
        void *grown = realloc(f->tokens, (f->room = 2 * f->room + 16) * sizeof *f->tokens);
        if (!grown) return false;
        f->tokens = grown;
    }
    f->tokens[f->n].at = at;
    f->tokens[f->n++].length = length;
    return true;
}

/* Bytes of the character at `at`, of at most `n`. */
static size_t character(const char *text, size_t n)
{
    size_t length = 1;
    while (length < n && (unsigned char)text[length] >> 6 == 2) length++;
    return length;
}

static bool add_if_long(found *f, int64_t least, size_t at, size_t length)
{
    int64_t count = 0;
    for (size_t i = at; i < at + length; i += character(f->text + i, at + length - i)) count++;
    return count < least || add(f, at, length);
}

/* What an expression finds in a piece, or what lies between. The piece ends with a 0 for that long. */
static bool cut(const tokens *t, const regex_t *r, found *f, size_t at, size_t length)
{
    const size_t first = at, end = at + length;
    const char kept = f->text[end];
    size_t from = at; /* the piece that is open */
    regmatch_t m;
    bool good = true;
    f->text[end] = 0;
    while (good && at < end && !regexec(r, f->text + at, 1, &m, at > first ? REG_NOTBOL : 0)) {
        const size_t begin = at + (size_t)m.rm_so, stop = at + (size_t)m.rm_eo;
        if (begin == stop) { /* nothing: it goes on behind the next character */
            at = begin < end ? begin + character(f->text + begin, end - begin) : end;
            continue;
        }
        good = t->separate ? add_if_long(f, t->least, from, begin - from)
                           : add_if_long(f, t->least, begin, stop - begin);
        at = from = stop;
    }
    if (good && t->separate) good = add_if_long(f, t->least, from, end - from);
    f->text[end] = kept;
    return good;
}

/* Separators cut one after the other what those before have left. */
static bool tokenize(const tokens *t, found *f, size_t at, size_t length)
{
    const size_t first = f->n;
    bool good = true;
    if (t->characters) {
        for (size_t i = 0; good && i < length;) {
            const size_t n = character(f->text + at + i, length - i);
            good = add(f, at + i, n);
            i += n;
        }
        return good;
    }
    if (!add(f, at, length)) return false;
    for (size_t e = 0; good && e < t->n; e++) {
        const size_t last = f->n;
        for (size_t i = first; good && i < last; i++)
            good = cut(t, &t->expressions[e], f, f->tokens[i].at, f->tokens[i].length);
        memmove(f->tokens + first, f->tokens + last, (f->n - last) * sizeof *f->tokens);
        f->n -= last - first;
    }
    return good;
}

static ortc_status give(const tokens *t, ortc_call *c, const found *f, const size_t *ends)
{
    const ortc_view *x = &c->in[0];
    const int64_t count = ortc_view_count(x);
    int64_t dims[ORTC_RANK_LIMIT], most = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t n = (int64_t)(ends[i] - (i ? ends[i - 1] : 0));
        most = n > most ? n : most;
    }
    if (most && t->marked) most += 2;
    for (int32_t d = 0; d < x->rank; d++) dims[d] = x->dims[d];
    dims[x->rank] = most;
    if (most && count > (int64_t)(SIZE_MAX / 64) / most)
        return ortc_call_fail(c, ORTC_LIMIT, "%lld texts of up to %lld tokens", (long long)count,
                              (long long)most);
    ortc_span *all = malloc((size_t)(count * most) * sizeof *all + 1), *to = all;
    if (!all)
        return ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for %lld tokens", (long long)(count * most));
    for (int64_t i = 0; most && i < count; i++) {
        const ortc_span *end = to + most;
        if (t->marked) *to++ = ortc_span_of("\2");
        for (size_t k = i ? ends[i - 1] : 0; k < ends[i]; k++)
            *to++ = (ortc_span){f->text + f->tokens[k].at, f->tokens[k].length};
        if (t->marked) *to++ = ortc_span_of("\3");
        while (to < end) *to++ = t->padding;
    }
    const ortc_status s = ortc_give_spans(c, 0, x->rank + 1, dims, all);
    free(all);
    return s;
}

static ortc_status tokenize_all(const tokens *t, ortc_call *c, found *f, size_t *ends)
{
    const ortc_view *x = &c->in[0];
    size_t at = 0;
    for (int64_t i = 0, n = ortc_view_count(x); i < n; i++) {
        const ortc_span s = ortc_span_at(x, i);
        if (s.length && memchr(s.text, 0, s.length))
            return ortc_call_fail(c, ORTC_UNSUPPORTED,
                                  "string %lld holds a zero, which cannot be matched here", (long long)i);
        if (s.length) memcpy(f->text + at, s.text, s.length);
        if (!tokenize(t, f, at, s.length))
            return ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for tokens");
        ends[i] = f->n;
        at += s.length + 1;
        ORTC_TRY(ortc_poll(c));
    }
    return give(t, c, f, ends);
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_view *x = &c->in[0];
    const int64_t count = ortc_view_count(x);
    size_t bytes = 1;
    (void)pstate;
    for (int64_t i = 0; i < count; i++) bytes += ortc_span_at(x, i).length + 1;
    found f = {.text = calloc(bytes, 1)};
    size_t *ends = calloc((size_t)count + 1, sizeof *ends);
    const locale_t plain = newlocale(LC_ALL_MASK, "C",
                                     (locale_t)0); /* bytes, whatever the program's locale */
    ortc_status s = f.text && ends && plain ? ORTC_OK
                                            : ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for texts");
    if (s == ORTC_OK) {
        const locale_t before = uselocale(plain);
        s = tokenize_all(state, c, &f, ends);
        uselocale(before);
    }
    if (plain) freelocale(plain);
    free(f.text);
    free(f.tokens);
    free(ends);
    return s;
}

const ortc_kernel ortc_ref_tokenizer = {.size = ORTC_SIZED(ortc_kernel),
                                        .flags = ORTC_KERNEL_LATE_OUT,
                                        .name = "tokenizer.ref",
                                        .prepare = prepare,
                                        .run = run,
                                        .release = release};
