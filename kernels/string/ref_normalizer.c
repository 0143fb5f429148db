/* kernels/string/ref_normalizer.c: StringNormalizer on ref: stop words taken out, then another case.
 *
 * Text is UTF-8. Letters change case one for one, as Unicode's simple mappings have it, whatever the
 * program's locale or the attribute says; where the C library has no Unicode locale only ASCII's do. Bytes
 * that are not UTF-8 stay.
 */
#include <locale.h>
#include <stdlib.h>
#include <wctype.h>

#include "kernels/string/string.h"

enum { KEEP, LOWER, UPPER };

typedef struct normalizer {
    int action;
    bool sensitive;
    ortc_attr stops;
    locale_t unicode; /* 0: there is none */
} normalizer;

static void normalizer_release(void *state)
{
    normalizer *s = state;
    if (s->unicode) freelocale(s->unicode);
    free(s);
}

static ortc_status normalizer_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const char *action = ortc_node_string(n, "case_change_action", "NONE");
    normalizer *s = calloc(1, sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    s->action = !strcmp(action, "NONE")    ? KEEP
                : !strcmp(action, "LOWER") ? LOWER
                : !strcmp(action, "UPPER") ? UPPER
                                           : -1;
    if (s->action < 0) {
        free(s);
        return ortc_prep_fail(prep, ORTC_INVALID_MODEL,
                              "attribute case_change_action is '%s', expected NONE, LOWER or UPPER", action);
    }
    s->sensitive = ortc_node_int(n, "is_case_sensitive", 0) != 0;
    s->stops = ortc_node_attr(n, "stopwords");
    s->unicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    *out = s;
    return ORTC_OK;
}

/* Bytes of the character at the front, its code point in *out; 0: not UTF-8. */
static size_t decode(const unsigned char *s, size_t n, uint32_t *out)
{
    const size_t length = s[0] < 0x80       ? 1
                          : s[0] >> 5 == 6  ? 2
                          : s[0] >> 4 == 14 ? 3
                          : s[0] >> 3 == 30 ? 4
                                            : 0;
    if (!length || length > n) return 0;
    *out = length == 1 ? s[0] : s[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if (s[i] >> 6 != 2) return 0;
        *out = *out << 6 | (s[i] & 63u);
    }
    return length;
}

static size_t encode(uint32_t c, unsigned char *to)
{
    if (c < 0x80) {
        to[0] = (unsigned char)c;
        return 1;
    }
    const size_t length = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = length - 1; i > 0; i--, c >>= 6) to[i] = (unsigned char)(0x80 | (c & 63));
    to[0] = (unsigned char)((0xf00u >> length & 0xff) | c);
    return length;
}

static uint32_t change(const normalizer *s, int action, uint32_t c)
{
    if (s->unicode)
        return (uint32_t)(action == LOWER ? towlower_l((wint_t)c, s->unicode)
                                          : towupper_l((wint_t)c, s->unicode));
    return action == LOWER ? c + (c >= 'A' && c <= 'Z') * 32 : c - (c >= 'a' && c <= 'z') * 32;
}

/* The text in another case; `to` has room for 2 bytes a byte (a mapping never needs more). */
static size_t in_case(const normalizer *s, int action, ortc_span text, char *to)
{
    const unsigned char *from = (const unsigned char *)text.text;
    size_t n = 0;
    for (size_t i = 0; i < text.length;) {
        uint32_t c;
        const size_t length = action == KEEP ? 0 : decode(from + i, text.length - i, &c);
        if (!length) {
            to[n++] = (char)from[i++];
            continue;
        }
        n += encode(change(s, action, c), (unsigned char *)to + n);
        i += length;
    }
    return n;
}

/* Room for two texts, grown as needed. */
typedef struct texts {
    char *a, *b;
    size_t room;
} texts;

static bool make_room(texts *t, size_t length)
{
    if (2 * length + 8 <= t->room) return true;
    t->room = 4 * length + 64;
    free(t->a);
    free(t->b);
    t->a = malloc(t->room);
    t->b = malloc(t->room);
    return t->a && t->b;
}

/* Whether a text is a stop word; *found false when memory is short. */
static bool is_stop(const normalizer *s, ortc_span text, texts *t, bool *enough)
{
    for (size_t i = 0; s->stops.kind == ORTC_ATTR_STRINGS && i < s->stops.count; i++) {
        const ortc_span stop = ortc_span_of(s->stops.u.strings[i]);
        if (s->sensitive ? ortc_span_equal(text, stop) : false) return true;
        if (s->sensitive) continue;
        if (!(*enough = make_room(t, text.length > stop.length ? text.length : stop.length))) return false;
        const ortc_span a = {t->a, in_case(s, LOWER, text, t->a)}, b = {t->b, in_case(s, LOWER, stop, t->b)};
        if (ortc_span_equal(a, b)) return true;
    }
    return false;
}

static ortc_status fill(const normalizer *s, ortc_call *c, const int64_t *kept, int64_t n, texts *t,
                        ortc_value *v)
{
    for (int64_t i = 0; i < n; i++) {
        const ortc_span text = ortc_span_at(&c->in[0], kept[i]);
        if (!make_room(t, text.length))
            return ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for a string of %zu bytes", text.length);
        ORTC_TRY(ortc_call_append(c, v, t->a, in_case(s, s->action, text, t->a)));
        if (i % 4096 == 4095) ORTC_TRY(ortc_poll(c));
    }
    return n ? ORTC_OK : ortc_call_append(c, v, "", 0); /* nothing is left: one empty string */
}

static ortc_status normalize(const normalizer *s, ortc_call *c, int64_t *kept, texts *t)
{
    const ortc_view *x = &c->in[0];
    const int64_t count = ortc_view_count(x);
    int64_t n = 0;
    bool enough = true;
    for (int64_t i = 0; i < count; i++) {
        if (!is_stop(s, ortc_span_at(x, i), t, &enough)) kept[n++] = i;
        if (!enough) return ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for a string");
        if (i % 1024 == 1023) ORTC_TRY(ortc_poll(c));
    }
    const int64_t left = n ? n : 1;
    ortc_value *v;
    ORTC_TRY(ortc_call_strings(c, x->rank, x->rank == 2 ? (const int64_t[]){1, left} : &left, &v));
    const ortc_status status = fill(s, c, kept, n, t, v);
    if (status == ORTC_OK) return ortc_call_give(c, 0, v);
    ortc_call_drop(c, v);
    return status;
}

static ortc_status normalizer_run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_view *x = &c->in[0];
    texts t = {NULL, NULL, 0};
    if (x->rank < 1 || x->rank > 2 || (x->rank == 2 && x->dims[0] != 1))
        return ortc_call_fail(c, ORTC_SHAPE_MISMATCH, "the input must be [C] or [1,C]");
    int64_t *kept = malloc((size_t)ortc_view_count(x) * sizeof *kept + 1);
    const ortc_status s = kept ? normalize(state, c, kept, &t)
                               : ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for positions");
    free(kept);
    free(t.a);
    free(t.b);
    return s;
}

const ortc_kernel ortc_ref_string_normalizer = {.size = ORTC_SIZED(ortc_kernel),
                                                .flags = ORTC_KERNEL_LATE_OUT,
                                                .name = "string_normalizer.ref",
                                                .prepare = normalizer_prepare,
                                                .run = normalizer_run,
                                                .release = normalizer_release};
