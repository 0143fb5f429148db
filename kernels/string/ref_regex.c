/* kernels/string/ref_regex.c: RegexFullMatch on ref: the standard's RE2 syntax, brought into the form of
 * POSIX' extended regular expressions, which the C library matches.
 *
 * Whether a text matches as a whole does not depend on greed, nor does the longest match (Tokenizer), so
 * `*?` is `*`; groups are only groups. A character is one of UTF-8; classes are written out over ASCII, and
 * one that is negated takes every other character. What has no counterpart (flags, Unicode classes,
 * characters beyond ASCII in brackets) is refused by name: a wrong answer would be worse.
 */
#include <locale.h>
#include <regex.h>
#include <stdlib.h>

#include "kernels/string/string.h"

enum { MAX_DEPTH = 100, MAX_REPEAT = 1000, MAX_COST = 5000 }; /* cost: states, counted roughly */

typedef struct translation {
    const char *at, *end;
    char *out; /* room for what the longest atom needs, for every byte of the pattern */
    size_t n;
    int depth;
    int64_t cost[MAX_DEPTH + 1], last; /* of the open groups; of the last atom, 0: there is none to repeat */
    const char *why;                   /* not NULL: refused */
} translation;

typedef bool set[128];

static void put(translation *t, const char *s)
{
    const size_t n = strlen(s);
    memcpy(t->out + t->n, s, n);
    t->n += n;
}
static void put_char(translation *t, char c) { t->out[t->n++] = c; }

static void atom(translation *t, int64_t cost)
{
    t->last = cost;
    t->cost[t->depth] += cost;
    if (t->cost[t->depth] > MAX_COST) t->why = "it is too large";
}

/* Any character beyond ASCII. */
#define BEYOND \
    "[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf][\x80-\xbf]|[\xf0-\xf4][\x80-\xbf][\x80-\xbf][\x80-\xbf]"

/* The ASCII characters of a set in brackets: ] first, ^ not first, - last, as POSIX wants them. */
static void put_brackets(translation *t, const set s, int count)
{
    if (s['^'] && count == 1) {
        put(t, "\\^");
        return;
    }
    put_char(t, '[');
    if (s[']']) put_char(t, ']');
    for (int c = 1; c < 128; c++)
        if (s[c] && c != ']' && c != '^' && c != '-') put_char(t, (char)c);
    const bool two = s['^'] && s['-'] && count == 2;
    put(t, two ? "-^" : s['^'] ? "^" : "");
    put(t, s['-'] && !two ? "-]" : "]");
}

/* One character of a set, or with `beyond` any that is not ASCII. */
static void put_set(translation *t, const set s, bool beyond)
{
    int count = 0;
    for (int c = 1; c < 128; c++) count += s[c];
    if (!count && !beyond) {
        t->why = "a class without characters";
        return;
    }
    put_char(t, '(');
    if (count) put_brackets(t, s, count);
    if (beyond) put(t, count ? "|" BEYOND : BEYOND);
    put_char(t, ')');
    atom(t, beyond ? 10 : 1);
}

static void add_range(set s, int from, int to)
{
    for (int c = from; c <= to; c++) s[c] = true;
}

/* \d \w \s into a set; false: none of them. */
static bool add_perl(set s, char letter)
{
    switch (letter) {
    case 'w': add_range(s, 'A', 'Z'), add_range(s, 'a', 'z'), s['_'] = true; /* fall through */
    case 'd': add_range(s, '0', '9'); return true;
    case 's': s['\t'] = s['\n'] = s['\f'] = s['\r'] = s[' '] = true; return true;
    default: return false;
    }
}

static bool negate(set s)
{
    for (int c = 1; c < 128; c++) s[c] = !s[c];
    return true;
}

/* The character that an escape stands for; -1: none. at is on the letter. */
static int escaped(translation *t)
{
    const char c = *t->at++;
    switch (c) {
    case 'n': return '\n';
    case 't': return '\t';
    case 'r': return '\r';
    case 'f': return '\f';
    case 'v': return '\v';
    case 'a': return '\a';
    default: break;
    }
    if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
        (unsigned char)c >= 0x80) {
        t->why = "an escape that is not known here (known are \\d \\D \\w \\W \\s \\S \\A \\z and those of "
                 "single characters)";
        return -1;
    }
    return c;
}

/* [:alpha:] and the like; at is behind "[:". */
static bool add_posix(translation *t, set s)
{
    static const struct {
        const char *name, *ranges; /* pairs */
    } classes[] = {{"alnum:]", "09AZaz"},
                   {"alpha:]", "AZaz"},
                   {"ascii:]", "\1\177"},
                   {"blank:]", "\t\t  "},
                   {"cntrl:]", "\1\37\177\177"},
                   {"digit:]", "09"},
                   {"graph:]", "!~"},
                   {"lower:]", "az"},
                   {"print:]", " ~"},
                   {"punct:]", "!/:@[`{~"},
                   {"space:]", "\t\r  "},
                   {"upper:]", "AZ"},
                   {"word:]", "09AZaz__"},
                   {"xdigit:]", "09AFaf"}};
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        const size_t n = strlen(classes[i].name);
        if ((size_t)(t->end - t->at) < n || strncmp(t->at, classes[i].name, n) != 0) continue;
        for (const char *r = classes[i].ranges; *r; r += 2) add_range(s, r[0], r[1]);
        t->at += n;
        return true;
    }
    t->why = "a class in [: :] that is not known";
    return false;
}

/* One character or class of a bracket; the character, or -1 when it was a class or wrong. */
static int bracket_item(translation *t, set s)
{
    const unsigned char c = (unsigned char)*t->at++;
    if (c >= 0x80) {
        t->why = "a character beyond ASCII in brackets";
        return -1;
    }
    if (c == '[' && t->at < t->end && *t->at == ':') {
        t->at++;
        add_posix(t, s);
        return -1;
    }
    if (c != '\\') return c;
    if (t->at == t->end) {
        t->why = "it ends in a backslash";
        return -1;
    }
    const char letter = *t->at;
    if (add_perl(s, letter)) {
        t->at++;
        return -1;
    }
    if (letter == 'D' || letter == 'W' || letter == 'S') {
        t->why = "\\D, \\W or \\S in brackets";
        return -1;
    }
    return escaped(t);
}

/* at is behind the [. */
static void bracket(translation *t)
{
    set s = {false};
    const bool negated = t->at < t->end && *t->at == '^';
    t->at += negated;
    for (bool first = true; !t->why; first = false) {
        if (t->at == t->end) {
            t->why = "a [ without its ]";
            return;
        }
        if (*t->at == ']' && !first) break;
        const int from = bracket_item(t, s);
        if (from < 0) continue;
        int to = from;
        if (t->end - t->at > 1 && *t->at == '-' && t->at[1] != ']') {
            t->at++;
            to = bracket_item(t, s);
            if (to < from && !t->why) t->why = "a range that is none";
        }
        for (int c = from; c <= to && !t->why; c++) s[c] = true;
    }
    if (t->why) return;
    t->at++;
    put_set(t, s, negated && negate(s));
}

static void escape(translation *t)
{
    set s = {false};
    if (t->at == t->end) {
        t->why = "it ends in a backslash";
        return;
    }
    const char letter = *t->at;
    if (letter == 'A' || letter == 'z') {
        t->at++;
        put_char(t, letter == 'A' ? '^' : '$');
        t->last = 0;
        return;
    }
#ifdef __GLIBC__
    if (letter == 'b' || letter == 'B') { /* word boundaries are GNU's */
        t->at++;
        put(t, letter == 'b' ? "\\b" : "\\B");
        t->last = 0;
        return;
    }
#endif
    if (add_perl(s, letter)) {
        t->at++;
        put_set(t, s, false);
    } else if (letter == 'D' || letter == 'W' || letter == 'S') {
        t->at++;
        add_perl(s, (char)(letter + 32));
        put_set(t, s, negate(s));
    } else {
        const int c = escaped(t);
        if (c < 0) return;
        s[c] = true;
        put_set(t, s, false);
    }
}

/* at is behind the (. */
static void open_group(translation *t)
{
    if (t->end - t->at > 1 && *t->at == '?') {
        const char *p = t->at + 1;
        if (*p == ':') {
            t->at = p + 1;
        } else {
            p += *p == 'P';
            if (p < t->end && *p == '<' && p + 1 < t->end && p[1] != '=' && p[1] != '!')
                while (p < t->end && *p != '>') p++;
            if (p == t->end || *p != '>') {
                t->why = "flags, or a look around, in (?";
                return;
            }
            t->at = p + 1;
        }
    }
    if (t->depth == MAX_DEPTH) {
        t->why = "its groups are nested too deep";
        return;
    }
    t->cost[++t->depth] = 0;
    t->last = 0;
    put_char(t, '(');
}

/* {n}, {n,} or {n,m} at `at`; false: braces that mean themselves. */
static bool counts(const translation *t, long *from, long *to, const char **end)
{
    const char *p = t->at;
    char *next;
    if (p == t->end || *p < '0' || *p > '9') return false;
    *from = *to = strtol(p, &next, 10);
    if (*next == ',') {
        p = ++next;
        *to = -1;
        if (*p >= '0' && *p <= '9') *to = strtol(p, &next, 10);
    }
    *end = next + 1;
    return *next == '}';
}

static void repeat(translation *t, char how)
{
    long from = 0, to = 0;
    const char *end = t->at;
    if (how == '{' && !counts(t, &from, &to, &end)) {
        put(t, "[{]");
        atom(t, 1);
        return;
    }
    if (!t->last) {
        t->why = "a repetition of nothing, or of a repetition";
        return;
    }
    if (how != '{')
        put_char(t, how);
    else if (from > MAX_REPEAT || to > MAX_REPEAT || (to >= 0 && to < from))
        t->why = "a repetition of more than 1000, or of less than its least";
    else {
        put_char(t, '{');
        memcpy(t->out + t->n, t->at, (size_t)(end - t->at));
        t->n += (size_t)(end - t->at);
        atom(t, t->last * (to > from ? to : from));
    }
    t->at = end;
    if (t->at < t->end && *t->at == '?') /* not greedy */
        t->at++;
    t->last = 0;
}

static void one(translation *t)
{
    const unsigned char c = (unsigned char)*t->at++;
    set s = {false};
    switch (c) {
    case '\\': escape(t); return;
    case '[': bracket(t); return;
    case '(': open_group(t); return;
    case '*':
    case '+':
    case '?':
    case '{': repeat(t, (char)c); return;
    case '|':
    case '^':
    case '$':
        put_char(t, (char)c);
        t->last = 0;
        return;
    case '.':
        s['\n'] = true;
        put_set(t, s, negate(s));
        return;
    case ')':
        if (!t->depth) {
            t->why = "a ) without its (";
            return;
        }
        put_char(t, ')');
        const int64_t cost = t->cost[t->depth--];
        atom(t, cost ? cost : 1);
        return;
    default: break;
    }
    /* no character means anything alone in brackets but ^ and \ , which do not come here */
    put_char(t, c < 0x80 ? '[' : '(');
    put_char(t, (char)c);
    while (c >= 0x80 && t->at < t->end && (unsigned char)*t->at >> 6 == 2) put_char(t, *t->at++);
    put_char(t, c < 0x80 ? ']' : ')');
    atom(t, 1);
}

static ortc_status compile(const char *pattern, size_t length, bool whole, regex_t *out, ortc_prep *prep)
{
    translation t = {.at = pattern, .end = pattern + length};
    if (!(t.out = malloc((length + 1) * 320)))
        return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for a pattern");
    put(&t, whole ? "^(" : "(");
    while (t.at < t.end && !t.why) one(&t);
    if (!t.why && t.depth) t.why = "a ( without its )";
    if (!t.why && memchr(pattern, 0, length)) t.why = "it holds a zero";
    put(&t, whole ? ")$" : ")");
    put_char(&t, 0);
    ortc_status s = ORTC_OK;
    if (t.why)
        s = ortc_prep_fail(prep, ORTC_UNSUPPORTED, "the pattern '%.200s' cannot be matched here: %s", pattern,
                           t.why);
    else if (regcomp(out, t.out, REG_EXTENDED | (whole ? REG_NOSUB : 0)))
        s = ortc_prep_fail(prep, ORTC_UNSUPPORTED, "the pattern '%.200s' cannot be compiled", pattern);
    free(t.out);
    return s;
}

ortc_status ortc_regex_compile(const char *pattern, size_t length, bool whole, regex_t *out, ortc_prep *prep)
{
    /* bytes, whatever the program's locale */
    const locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!plain) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for a locale");
    const locale_t before = uselocale(plain);
    const ortc_status s = compile(pattern, length, whole, out, prep);
    uselocale(before);
    freelocale(plain);
    return s;
}

static ortc_status regex_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const ortc_attr pattern = ortc_node_attr(n, "pattern");
    if (pattern.kind != ORTC_ATTR_STRING)
        return ortc_prep_fail(prep, ORTC_INVALID_MODEL, "attribute pattern is missing");
    regex_t *r = calloc(1, sizeof *r);
    if (!r) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for a pattern");
    const ortc_status s = ortc_regex_compile(pattern.u.s, pattern.count, true, r, prep);
    if (s == ORTC_OK)
        *out = r;
    else
        free(r);
    return s;
}

static void regex_release(void *state)
{
    regfree(state);
    free(state);
}

static ortc_status match_all(const regex_t *r, ortc_call *c, char **text, size_t *room)
{
    const ortc_view *x = &c->in[0];
    const int64_t count = ortc_view_count(x);
    for (int64_t i = 0; i < count; i++) {
        const ortc_span s = ortc_span_at(x, i);
        if (s.length + 1 > *room) {
            char *grown = realloc(*text, *room = 2 * s.length + 64);
            if (!grown)
                return ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for a string of %zu bytes", s.length);
            *text = grown;
        }
        if (s.length && memchr(s.text, 0, s.length))
            return ortc_call_fail(c, ORTC_UNSUPPORTED,
                                  "string %lld holds a zero, which cannot be matched here", (long long)i);
        if (s.length) memcpy(*text, s.text, s.length);
        (*text)[s.length] = 0;
        ((uint8_t *)c->out[0].data)[i] = regexec(r, *text, 0, NULL, 0) == 0;
        ORTC_TRY(ortc_poll(c));
    }
    return ORTC_OK;
}

static ortc_status regex_run(const void *state, const void *pstate, ortc_call *c)
{
    char *text = NULL;
    size_t room = 0;
    const locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!plain) return ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for a locale");
    const locale_t before = uselocale(plain);
    const ortc_status s = match_all(state, c, &text, &room);
    uselocale(before);
    freelocale(plain);
    free(text);
    return s;
}

const ortc_kernel ortc_ref_regex_full_match = {.size = ORTC_SIZED(ortc_kernel),
                                               .name = "regex_full_match.ref",
                                               .prepare = regex_prepare,
                                               .run = regex_run,
                                               .release = regex_release};
