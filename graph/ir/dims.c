/* graph/ir/dims.c: the table of symbolic dims (dims.h).
 *
 * Canonical forms: a sum is a left-nested chain ADD(ADD(t1, t2), c) with terms in ascending order of id and the number
 * last; a term is x or MUL(x, number); a product is MUL(MUL(x1, x2), number). SUB never stays: it is a sum with factor -1.
 */
#include "dims.h"

#include <stdio.h>

#define MAX_EXPRS (1u << 20)
#define MAX_TERMS 24 /* longer sums and products become fresh symbols: nothing is proved about them */

static ortc_dim id_of(size_t i) { return ORTC_DIM_NUMBERS - 1 - (int64_t)i; }
static size_t index_of(ortc_dim d) { return (size_t)(ORTC_DIM_NUMBERS - 1 - d); }
static const ortc_dim_expr *expr_of(const ortc_dims *t, ortc_dim d)
{
    if (ortc_dim_is_number(d) || d == ORTC_DIM_UNKNOWN || index_of(d) >= t->exprs.count)
        return NULL;
    return &t->exprs.data[index_of(d)];
}

static bool grow_table(ortc_dims *t)
{
    size_t capacity = t->table_capacity ? t->table_capacity * 2 : 64;
    uint32_t *table = calloc(capacity, sizeof *table);
    if (!table)
        return false;
    for (size_t i = 0; i < t->exprs.count; i++) {
        size_t at = ortc_hash(&t->exprs.data[i], sizeof(ortc_dim_expr), 0) & (capacity - 1);
        while (table[at])
            at = (at + 1) & (capacity - 1);
        table[at] = (uint32_t)i + 1;
    }
    free(t->table);
    t->table = table;
    t->table_capacity = capacity;
    return true;
}

static ortc_dim intern(ortc_dims *t, int32_t what, uint32_t symbol, ortc_dim a, ortc_dim b)
{
    ortc_dim_expr e = {what, symbol, a, b};
    if (t->exprs.count * 2 >= t->table_capacity && !grow_table(t))
        return ORTC_DIM_UNKNOWN;
    size_t at = ortc_hash(&e, sizeof e, 0) & (t->table_capacity - 1);
    for (; t->table[at]; at = (at + 1) & (t->table_capacity - 1))
        if (!memcmp(&t->exprs.data[t->table[at] - 1], &e, sizeof e))
            return id_of(t->table[at] - 1);
    if (t->exprs.count >= MAX_EXPRS || !ortc_array_push(&t->exprs, e))
        return ORTC_DIM_UNKNOWN;
    t->table[at] = (uint32_t)t->exprs.count;
    return id_of(t->exprs.count - 1);
}

ortc_dim ortc_dims_symbol(ortc_dims *t, const char *name)
{
    for (size_t i = 0; i < t->symbols.count; i++)
        if (t->symbols.data[i] && !strcmp(t->symbols.data[i], name))
            return intern(t, 0, (uint32_t)i, 0, 0);
    if (!ortc_array_push(&t->symbols, name))
        return ORTC_DIM_UNKNOWN;
    return intern(t, 0, (uint32_t)t->symbols.count - 1, 0, 0);
}

ortc_dim ortc_dims_fresh(ortc_dims *t)
{
    if (t->symbols.count >= MAX_EXPRS || !ortc_array_push(&t->symbols, NULL))
        return ORTC_DIM_UNKNOWN;
    return intern(t, 0, (uint32_t)t->symbols.count - 1, 0, 0);
}

/* ---- Numbers ---------------------------------------------------------------------------------------------------- */

static int64_t floor_div(int64_t a, int64_t b)
{
    int64_t q = a / b;
    return a % b != 0 && (a % b < 0) != (b < 0) ? q - 1 : q;
}

static ortc_dim combine_numbers(int32_t what, int64_t a, int64_t b, bool *misfit)
{
    int64_t r = 0;
    bool overflow = false;
    switch (what) {
    case ORTC_DIM_ADD: overflow = __builtin_add_overflow(a, b, &r); break;
    case ORTC_DIM_SUB: overflow = __builtin_sub_overflow(a, b, &r); break;
    case ORTC_DIM_MUL: overflow = __builtin_mul_overflow(a, b, &r); break;
    case ORTC_DIM_DIV: return b == 0 ? ORTC_DIM_UNKNOWN : floor_div(a, b);
    case ORTC_DIM_CEIL_DIV: return b == 0 ? ORTC_DIM_UNKNOWN : -floor_div(-a, b);
    case ORTC_DIM_MAX: return a > b ? a : b;
    case ORTC_DIM_MIN: return a < b ? a : b;
    case ORTC_DIM_BROADCAST:
        if (a == b || b == 1)
            return a;
        if (a == 1)
            return b;
        *misfit = true;
        return ORTC_DIM_UNKNOWN;
    default: return ORTC_DIM_UNKNOWN;
    }
    return overflow || !ortc_dim_is_number(r) ? ORTC_DIM_UNKNOWN : r;
}

/* ---- Sums and products ------------------------------------------------------------------------------------------- */

typedef struct term {
    ortc_dim of;
    int64_t factor;
} term;
typedef struct terms {
    term list[MAX_TERMS];
    int count;
    int64_t constant; /* added (sums) or multiplied (products) */
    bool overflow;
} terms;

static void sum_add(const ortc_dims *t, terms *s, ortc_dim d, int64_t factor)
{
    const ortc_dim_expr *e;
    /* ADD chains lean to the left: walk down, take the right operands on the way. */
    while ((e = expr_of(t, d)) && e->what == ORTC_DIM_ADD) {
        sum_add(t, s, e->b, factor);
        d = e->a;
    }
    if (ortc_dim_is_number(d)) {
        int64_t v;
        s->overflow |= __builtin_mul_overflow(d, factor, &v) || __builtin_add_overflow(s->constant, v, &s->constant);
        return;
    }
    if (e && e->what == ORTC_DIM_MUL && ortc_dim_is_number(e->b)) {
        s->overflow |= __builtin_mul_overflow(factor, e->b, &factor);
        d = e->a;
    }
    for (int i = 0; i < s->count; i++)
        if (s->list[i].of == d) {
            s->overflow |= __builtin_add_overflow(s->list[i].factor, factor, &s->list[i].factor);
            return;
        }
    if (s->count == MAX_TERMS) {
        s->overflow = true;
        return;
    }
    s->list[s->count++] = (term){d, factor};
}

static void product_add(const ortc_dims *t, terms *p, ortc_dim d)
{
    const ortc_dim_expr *e;
    while ((e = expr_of(t, d)) && e->what == ORTC_DIM_MUL) {
        product_add(t, p, e->b);
        d = e->a;
    }
    if (ortc_dim_is_number(d)) {
        p->overflow |= __builtin_mul_overflow(p->constant, d, &p->constant);
        return;
    }
    if (p->count == MAX_TERMS) {
        p->overflow = true;
        return;
    }
    p->list[p->count++] = (term){d, 1};
}

static int by_id(const void *a, const void *b)
{
    ortc_dim x = ((const term *)a)->of, y = ((const term *)b)->of;
    return x < y ? 1 : x > y ? -1 : 0; /* older first: ids descend */
}

static ortc_dim sum_build(ortc_dims *t, terms *s)
{
    if (s->overflow || !ortc_dim_is_number(s->constant))
        return ortc_dims_fresh(t);
    qsort(s->list, (size_t)s->count, sizeof(term), by_id);
    ortc_dim r = 0;
    bool any = false;
    for (int i = 0; i < s->count; i++) {
        if (!s->list[i].factor)
            continue;
        ortc_dim x = s->list[i].of;
        if (s->list[i].factor != 1)
            x = intern(t, ORTC_DIM_MUL, 0, x, s->list[i].factor);
        r = any ? intern(t, ORTC_DIM_ADD, 0, r, x) : x;
        any = true;
    }
    if (!any)
        return s->constant;
    return s->constant ? intern(t, ORTC_DIM_ADD, 0, r, s->constant) : r;
}

static ortc_dim product_build(ortc_dims *t, terms *p)
{
    if (p->overflow || !ortc_dim_is_number(p->constant))
        return ortc_dims_fresh(t);
    if (p->constant == 0)
        return 0;
    qsort(p->list, (size_t)p->count, sizeof(term), by_id);
    ortc_dim r = 1;
    for (int i = 0; i < p->count; i++)
        r = i ? intern(t, ORTC_DIM_MUL, 0, r, p->list[i].of) : p->list[i].of;
    if (p->count == 0)
        return p->constant;
    return p->constant == 1 ? r : intern(t, ORTC_DIM_MUL, 0, r, p->constant);
}

/* numerator / denominator with common factors cancelled. */
static ortc_dim quotient(ortc_dims *t, int32_t what, ortc_dim a, ortc_dim b)
{
    if (ortc_dim_is_number(b) && b != 0) { /* (4 s + 8) / 4 */
        terms s = {.constant = 0};
        sum_add(t, &s, a, 1);
        bool exact = !s.overflow && s.constant % b == 0;
        for (int i = 0; i < s.count; i++)
            exact &= s.list[i].factor % b == 0;
        if (exact) {
            s.constant /= b;
            for (int i = 0; i < s.count; i++)
                s.list[i].factor /= b;
            return sum_build(t, &s);
        }
    }
    terms n = {.constant = 1}, d = {.constant = 1};
    product_add(t, &n, a);
    product_add(t, &d, b);
    if (n.overflow || d.overflow || n.constant == 0 || d.constant <= 0)
        return intern(t, what, 0, a, b);
    for (int i = 0; i < d.count; i++)
        for (int j = 0; j < n.count; j++)
            if (d.list[i].of == n.list[j].of) {
                d.list[i--] = d.list[--d.count];
                n.list[j] = n.list[--n.count];
                break;
            }
    int64_t x = n.constant < 0 ? -n.constant : n.constant, y = d.constant;
    while (y) {
        int64_t r = x % y;
        x = y;
        y = r;
    }
    n.constant /= x;
    d.constant /= x;
    a = product_build(t, &n);
    b = product_build(t, &d);
    return b == 1 ? a : intern(t, what, 0, a, b);
}

/* Symbols stand for extents, so what is made of them without subtraction is not below 0. */
static bool never_negative(const ortc_dims *t, ortc_dim d, int depth)
{
    const ortc_dim_expr *e = expr_of(t, d);
    if (!e)
        return ortc_dim_is_number(d) && d >= 0;
    if (e->what == 0)
        return true;
    if (e->what == ORTC_DIM_SUB || depth > 8)
        return false;
    const bool a = never_negative(t, e->a, depth + 1), b = never_negative(t, e->b, depth + 1);
    return e->what == ORTC_DIM_MAX ? a || b : a && b;
}

/* Is d the lesser of `of` and a number above 0? Then it broadcasts with `of` only where it is the same or 1. Positions are cut
 * to the length of the input from a table that is long enough. */
static bool is_clamped(const ortc_dims *t, ortc_dim d, ortc_dim of)
{
    const ortc_dim_expr *e = expr_of(t, d);
    return e && e->what == ORTC_DIM_MIN &&
           ((e->a == of && ortc_dim_is_number(e->b) && e->b > 0) || (e->b == of && ortc_dim_is_number(e->a) && e->a > 0));
}

ortc_dim ortc_dims_combine(ortc_dims *t, int32_t what, ortc_dim a, ortc_dim b, bool *misfit)
{
    *misfit = false;
    if (a == ORTC_DIM_UNKNOWN || b == ORTC_DIM_UNKNOWN)
        return ORTC_DIM_UNKNOWN;
    if (ortc_dim_is_number(a) && ortc_dim_is_number(b))
        return combine_numbers(what, a, b, misfit);
    switch (what) {
    case ORTC_DIM_ADD:
    case ORTC_DIM_SUB: {
        terms s = {.constant = 0};
        sum_add(t, &s, a, 1);
        sum_add(t, &s, b, what == ORTC_DIM_ADD ? 1 : -1);
        return sum_build(t, &s);
    }
    case ORTC_DIM_MUL: {
        terms p = {.constant = 1};
        product_add(t, &p, a);
        product_add(t, &p, b);
        return product_build(t, &p);
    }
    case ORTC_DIM_DIV:
    case ORTC_DIM_CEIL_DIV:
        return b == 0 ? ORTC_DIM_UNKNOWN : b == 1 ? a : quotient(t, what, a, b);
    case ORTC_DIM_MAX:
        if (ortc_dim_is_number(a) && a <= 0 && never_negative(t, b, 0))
            return b;
        if (ortc_dim_is_number(b) && b <= 0 && never_negative(t, a, 0))
            return a;
        break;
    case ORTC_DIM_BROADCAST:
        if (a == 1)
            return b;
        if (b == 1)
            return a;
        if (ortc_dim_is_number(a)) /* not 1: the other is 1 or the same */
            return a;
        if (ortc_dim_is_number(b))
            return b;
        if (is_clamped(t, b, a))
            return a;
        if (is_clamped(t, a, b))
            return b;
        break;
    }
    if (a == b)
        return a;
    return a > b ? intern(t, what, 0, a, b) : intern(t, what, 0, b, a);
}

ortc_dim ortc_dims_evaluate(const ortc_dims *t, ortc_dim d, const int64_t *symbol_values)
{
    const ortc_dim_expr *last = expr_of(t, d);
    if (!last)
        return d;
    /* Operands are older than what they are in: one pass in order settles everything, without recursion. */
    size_t n = index_of(d) + 1;
    ortc_dim *known = malloc(n * sizeof *known);
    if (!known)
        return ORTC_DIM_UNKNOWN;
    for (size_t i = 0; i < n; i++) {
        const ortc_dim_expr *e = &t->exprs.data[i];
        if (e->what == 0) {
            known[i] = symbol_values[e->symbol] >= 0 ? symbol_values[e->symbol] : ORTC_DIM_UNKNOWN;
            continue;
        }
        ortc_dim a = ortc_dim_is_number(e->a) ? e->a : known[index_of(e->a)];
        ortc_dim b = ortc_dim_is_number(e->b) ? e->b : known[index_of(e->b)];
        bool misfit = false;
        known[i] = a == ORTC_DIM_UNKNOWN || b == ORTC_DIM_UNKNOWN ? ORTC_DIM_UNKNOWN
                                                                  : combine_numbers(e->what, a, b, &misfit);
    }
    ortc_dim r = known[n - 1];
    free(known);
    return r;
}

static void write_dim(const ortc_dims *t, ortc_dim d, ortc_text *out, int depth)
{
    static const char *const operators[] = {"", " + ", " - ", " * ", " / ", " ceil/ ", " max ", " min ", " bcast "};
    const ortc_dim_expr *e = expr_of(t, d);
    if (ortc_dim_is_number(d))
        ortc_text_add(out, "%lld", (long long)d);
    else if (!e)
        ortc_text_add(out, "?");
    else if (e->what == 0 && t->symbols.data[e->symbol])
        ortc_text_add(out, "%s", t->symbols.data[e->symbol]);
    else if (e->what == 0)
        ortc_text_add(out, "?%u", e->symbol);
    else if (depth > 8)
        ortc_text_add(out, "...");
    else {
        ortc_text_add(out, "(");
        write_dim(t, e->a, out, depth + 1);
        ortc_text_add(out, "%s", operators[e->what]);
        write_dim(t, e->b, out, depth + 1);
        ortc_text_add(out, ")");
    }
}

void ortc_dims_text(const ortc_dims *t, ortc_dim d, ortc_text *out) { write_dim(t, d, out, 0); }

bool ortc_dims_copy(const ortc_dims *from, ortc_dims *to)
{
    *to = (ortc_dims){0};
    if (!ortc_array_reserve(&to->exprs, from->exprs.count + 1) ||
        !ortc_array_reserve(&to->symbols, from->symbols.count + 1)) {
        ortc_dims_deinit(to);
        return false;
    }
    if (from->exprs.count)
        memcpy(to->exprs.data, from->exprs.data, from->exprs.count * sizeof *from->exprs.data);
    if (from->symbols.count)
        memcpy(to->symbols.data, from->symbols.data, from->symbols.count * sizeof *from->symbols.data);
    to->exprs.count = from->exprs.count;
    to->symbols.count = from->symbols.count;
    while (to->table_capacity < from->exprs.count * 2 + 2)
        if (!grow_table(to)) {
            ortc_dims_deinit(to);
            return false;
        }
    return true;
}

void ortc_dims_deinit(ortc_dims *t)
{
    ortc_array_deinit(&t->exprs);
    ortc_array_deinit(&t->symbols);
    free(t->table);
    t->table = NULL;
    t->table_capacity = 0;
}
