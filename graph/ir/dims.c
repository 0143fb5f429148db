/* graph/ir/dims.c: the table of symbolic dims (dims.h).
 *
 * Canonical forms: a sum is a left-nested chain ADD(ADD(t1, t2), c) with terms in ascending order of id and
 * the number last; a term is x or MUL(x, number); a product is MUL(MUL(x1, x2), number). SUB never stays: it
 * is a sum with factor -1.
 */
#include "dims.h"

#include <stdio.h>

#define MAX_EXPRS (1u << 20)
#define MAX_TERMS 24 /* longer sums and products become fresh symbols: nothing is proved about them */

static ortc_dim id_of(size_t i) { return ORTC_DIM_NUMBERS - 1 - (int64_t)i; }
static size_t index_of(ortc_dim d) { return (size_t)(ORTC_DIM_NUMBERS - 1 - d); }
static const ortc_dim_expr *expr_of(const ortc_dims *t, ortc_dim d)
{
    if (ortc_dim_is_number(d) || d == ORTC_DIM_UNKNOWN || index_of(d) >= t->exprs.count) return NULL;
    return &t->exprs.data[index_of(d)];
}

/* The table is never more than half full, also after a copy: every probe ends at a free slot. */
static ortc_status resize_table(ortc_dims *t, size_t count)
{
    size_t capacity = t->table_capacity ? t->table_capacity : 64;
    while (capacity / 2 < count) capacity *= 2;
    if (capacity == t->table_capacity) return ORTC_OK;
    uint32_t *table = calloc(capacity, sizeof *table);
    if (!table) return ORTC_OUT_OF_MEMORY;
    for (size_t i = 0; i < t->exprs.count; i++) {
        size_t at = ortc_hash(&t->exprs.data[i], sizeof(ortc_dim_expr), 0) & (capacity - 1);
        while (table[at]) at = (at + 1) & (capacity - 1);
        table[at] = (uint32_t)i + 1;
    }
    free(t->table);
    t->table = table;
    t->table_capacity = capacity;
    return ORTC_OK;
}

static ortc_status intern(ortc_dims *t, int32_t what, uint32_t symbol, ortc_dim a, ortc_dim b, ortc_dim *out)
{
    ortc_dim_expr e = {what, symbol, a, b};
    *out = ORTC_DIM_UNKNOWN;
    ORTC_TRY(resize_table(t, t->exprs.count + 1));
    size_t at = ortc_hash(&e, sizeof e, 0) & (t->table_capacity - 1);
    for (; t->table[at]; at = (at + 1) & (t->table_capacity - 1))
        if (!memcmp(&t->exprs.data[t->table[at] - 1], &e, sizeof e)) {
            *out = id_of(t->table[at] - 1);
            return ORTC_OK;
        }
    if (t->exprs.count >= MAX_EXPRS) return ORTC_LIMIT;
    if (!ortc_array_push(&t->exprs, e)) return ORTC_OUT_OF_MEMORY;
    t->table[at] = (uint32_t)t->exprs.count;
    *out = id_of(t->exprs.count - 1);
    return ORTC_OK;
}

static ortc_status new_symbol(ortc_dims *t, const char *name, ortc_dim *out)
{
    *out = ORTC_DIM_UNKNOWN;
    if (t->symbols.count >= MAX_EXPRS) return ORTC_LIMIT;
    if (!ortc_array_push(&t->symbols, name)) return ORTC_OUT_OF_MEMORY;
    return intern(t, 0, (uint32_t)t->symbols.count - 1, 0, 0, out);
}

ortc_status ortc_dims_symbol(ortc_dims *t, ortc_arena *names, const char *name, ortc_dim *out)
{
    *out = ORTC_DIM_UNKNOWN;
    for (; t->n_named < t->symbols.count; t->n_named++) { /* those that came by a copy */
        const char *known = t->symbols.data[t->n_named];
        if (known && !ortc_map_set(&t->names, known, (void *)(uintptr_t)(t->n_named + 1)))
            return ORTC_OUT_OF_MEMORY;
    }
    const uintptr_t found = (uintptr_t)ortc_map_get(&t->names, name);
    if (found) return intern(t, 0, (uint32_t)found - 1, 0, 0, out);
    return (name = ortc_arena_string(names, name, strlen(name))) ? new_symbol(t, name, out)
                                                                 : ORTC_OUT_OF_MEMORY;
}

ortc_status ortc_dims_fresh(ortc_dims *t, ortc_dim *out) { return new_symbol(t, NULL, out); }

ortc_status ortc_dims_failed(ortc_error *error, ortc_status s)
{
    return s == ORTC_OK ? s
           : s == ORTC_LIMIT
               ? ortc_fail(error, s, "more than %u symbolic dims and expressions over them", MAX_EXPRS)
               : ortc_no_memory(error, 0);
}

/* ---- Numbers ------------------------------------------------------------------------------------------- */

static int64_t floor_div(int64_t a, int64_t b)
{
    int64_t q = a / b;
    return a % b != 0 && (a % b < 0) != (b < 0) ? q - 1 : q;
}

static ortc_status combine_numbers(int32_t what, int64_t a, int64_t b, ortc_dim *out)
{
    int64_t r = 0;
    bool overflow = false;
    *out = ORTC_DIM_UNKNOWN;
    switch (what) {
    case ORTC_DIM_ADD: overflow = __builtin_add_overflow(a, b, &r); break;
    case ORTC_DIM_SUB: overflow = __builtin_sub_overflow(a, b, &r); break;
    case ORTC_DIM_MUL: overflow = __builtin_mul_overflow(a, b, &r); break;
    case ORTC_DIM_DIV:
    case ORTC_DIM_CEIL_DIV:
        if (b == 0) return ORTC_OK;
        r = what == ORTC_DIM_DIV ? floor_div(a, b) : -floor_div(-a, b);
        break;
    case ORTC_DIM_MAX: r = a > b ? a : b; break;
    case ORTC_DIM_MIN: r = a < b ? a : b; break;
    case ORTC_DIM_BROADCAST:
        if (a != b && a != 1 && b != 1) return ORTC_SHAPE_MISMATCH;
        r = b == 1 ? a : b;
        break;
    default: return ORTC_OK;
    }
    if (overflow || !ortc_dim_is_number(r)) return ORTC_SHAPE_MISMATCH;
    *out = r;
    return ORTC_OK;
}

/* ---- Sums and products --------------------------------------------------------------------------------- */

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
        s->overflow |= __builtin_mul_overflow(d, factor, &v) ||
                       __builtin_add_overflow(s->constant, v, &s->constant);
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

/* With symbols in it nothing has overflowed yet: they may be 0. The plan, whose dims are numbers, will
 * tell. */
static ortc_status sum_build(ortc_dims *t, terms *s, ortc_dim *out)
{
    if (s->overflow || !ortc_dim_is_number(s->constant)) return ortc_dims_fresh(t, out);
    qsort(s->list, (size_t)s->count, sizeof(term), by_id);
    ortc_dim r = 0;
    bool any = false;
    for (int i = 0; i < s->count; i++) {
        if (!s->list[i].factor) continue;
        ortc_dim x = s->list[i].of;
        if (s->list[i].factor != 1) ORTC_TRY(intern(t, ORTC_DIM_MUL, 0, x, s->list[i].factor, &x));
        if (any) ORTC_TRY(intern(t, ORTC_DIM_ADD, 0, r, x, &x));
        r = x;
        any = true;
    }
    if (any && s->constant) return intern(t, ORTC_DIM_ADD, 0, r, s->constant, out);
    *out = any ? r : s->constant;
    return ORTC_OK;
}

static ortc_status product_build(ortc_dims *t, terms *p, ortc_dim *out)
{
    if (p->overflow || !ortc_dim_is_number(p->constant)) return ortc_dims_fresh(t, out);
    if (p->constant == 0 || p->count == 0) {
        *out = p->constant;
        return ORTC_OK;
    }
    qsort(p->list, (size_t)p->count, sizeof(term), by_id);
    ortc_dim r = p->list[0].of;
    for (int i = 1; i < p->count; i++) ORTC_TRY(intern(t, ORTC_DIM_MUL, 0, r, p->list[i].of, &r));
    *out = r;
    return p->constant == 1 ? ORTC_OK : intern(t, ORTC_DIM_MUL, 0, r, p->constant, out);
}

/* numerator / denominator with common factors cancelled. */
static ortc_status quotient(ortc_dims *t, int32_t what, ortc_dim a, ortc_dim b, ortc_dim *out)
{
    if (ortc_dim_is_number(b) && b != 0) { /* (4 s + 8) / 4 */
        terms s = {.constant = 0};
        sum_add(t, &s, a, 1);
        bool exact = !s.overflow && s.constant % b == 0;
        for (int i = 0; i < s.count; i++) exact &= s.list[i].factor % b == 0;
        if (exact) {
            s.constant /= b;
            for (int i = 0; i < s.count; i++) s.list[i].factor /= b;
            return sum_build(t, &s, out);
        }
    }
    terms n = {.constant = 1}, d = {.constant = 1};
    product_add(t, &n, a);
    product_add(t, &d, b);
    if (n.overflow || d.overflow || n.constant == 0 || d.constant <= 0) return intern(t, what, 0, a, b, out);
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
    ORTC_TRY(product_build(t, &n, &a));
    ORTC_TRY(product_build(t, &d, &b));
    if (b != 1) return intern(t, what, 0, a, b, out);
    *out = a;
    return ORTC_OK;
}

/* Symbols stand for extents, so what is made of them without subtraction is not below 0. */
static bool never_negative(const ortc_dims *t, ortc_dim d, int depth)
{
    const ortc_dim_expr *e = expr_of(t, d);
    if (!e) return ortc_dim_is_number(d) && d >= 0;
    if (e->what == 0) return true;
    if (e->what == ORTC_DIM_SUB || depth > 8) return false;
    const bool a = never_negative(t, e->a, depth + 1), b = never_negative(t, e->b, depth + 1);
    return e->what == ORTC_DIM_MAX ? a || b : a && b;
}

bool ortc_dims_is_clamped(const ortc_dims *t, ortc_dim d, ortc_dim of)
{
    const ortc_dim_expr *e = expr_of(t, d);
    return e && e->what == ORTC_DIM_MIN &&
           ((e->a == of && ortc_dim_is_number(e->b) && e->b > 1) ||
            (e->b == of && ortc_dim_is_number(e->a) && e->a > 1));
}

/* The lesser of *x and a number, n if it is one. */
static bool is_least(const ortc_dims *t, ortc_dim d, ortc_dim *x, int64_t *n)
{
    const ortc_dim_expr *e = expr_of(t, d);
    if (!e || e->what != ORTC_DIM_MIN || ortc_dim_is_number(e->a) == ortc_dim_is_number(e->b)) return false;
    *x = ortc_dim_is_number(e->a) ? e->b : e->a;
    *n = ortc_dim_is_number(e->a) ? e->a : e->b;
    return true;
}

bool ortc_dims_is_cut(const ortc_dims *t, ortc_dim d, ortc_dim of)
{
    if (ortc_dims_is_clamped(t, d, of)) return true;
    const ortc_dim_expr *e = expr_of(t, d); /* max(min(x, n) - min(y, n), 0), x - y being `of` */
    if (!e || e->what != ORTC_DIM_MAX || (e->a != 0 && e->b != 0)) return false;
    terms s = {.constant = 0}, left = {.constant = 0};
    ortc_dim of_end[2];
    int64_t n[2];
    sum_add(t, &s, e->a == 0 ? e->b : e->a, 1);
    if (s.overflow || s.constant != 0 || s.count != 2 || s.list[0].factor * s.list[1].factor != -1)
        return false;
    for (int i = 0; i < 2; i++)
        if (!is_least(t, s.list[i].of, &of_end[i], &n[i])) return false;
    for (int i = 0; i < 2; i++) sum_add(t, &left, of_end[i], s.list[i].factor);
    sum_add(t, &left, of, -1);
    for (int i = 0; i < left.count; i++)
        if (left.list[i].factor != 0) return false;
    return n[0] == n[1] && !left.overflow && left.constant == 0;
}

/* The greatest, least or broadcast of two where one is proved to be it; ORTC_DIM_UNKNOWN where neither is. */
static ortc_dim either(const ortc_dims *t, int32_t what, ortc_dim a, ortc_dim b)
{
    if (a == b) return a;
    if (what == ORTC_DIM_MAX) {
        if (ortc_dim_is_number(a) && a <= 0 && never_negative(t, b, 0)) return b;
        if (ortc_dim_is_number(b) && b <= 0 && never_negative(t, a, 0)) return a;
    } else if (what == ORTC_DIM_BROADCAST) {
        if (a == 1) return b;
        if (b == 1) return a;
        if (ortc_dim_is_number(a)) /* not 1: the other is 1 or the same */
            return a;
        if (ortc_dim_is_number(b)) return b;
        if (ortc_dims_is_clamped(t, b, a)) return a;
        if (ortc_dims_is_clamped(t, a, b)) return b;
    }
    return ORTC_DIM_UNKNOWN;
}

ortc_status ortc_dims_combine(ortc_dims *t, int32_t what, ortc_dim a, ortc_dim b, ortc_dim *out)
{
    *out = ORTC_DIM_UNKNOWN;
    if (a == ORTC_DIM_UNKNOWN || b == ORTC_DIM_UNKNOWN) return ORTC_OK;
    if (ortc_dim_is_number(a) && ortc_dim_is_number(b)) return combine_numbers(what, a, b, out);
    switch (what) {
    case ORTC_DIM_ADD:
    case ORTC_DIM_SUB: {
        terms s = {.constant = 0};
        sum_add(t, &s, a, 1);
        sum_add(t, &s, b, what == ORTC_DIM_ADD ? 1 : -1);
        return sum_build(t, &s, out);
    }
    case ORTC_DIM_MUL: {
        terms p = {.constant = 1};
        product_add(t, &p, a);
        product_add(t, &p, b);
        return product_build(t, &p, out);
    }
    case ORTC_DIM_DIV:
    case ORTC_DIM_CEIL_DIV:
        *out = b == 1 ? a : ORTC_DIM_UNKNOWN;
        return b == 0 || b == 1 ? ORTC_OK : quotient(t, what, a, b, out);
    }
    *out = either(t, what, a, b);
    if (*out != ORTC_DIM_UNKNOWN) return ORTC_OK;
    return a > b ? intern(t, what, 0, a, b, out) : intern(t, what, 0, b, a, out);
}

ortc_dim *ortc_dims_evaluate(const ortc_dims *t, const int64_t *symbol_values)
{
    /* Operands are older than what they are in: one pass in order settles everything, without recursion. */
    const size_t n = t->exprs.count;
    ortc_dim *known = malloc((n + 1) * sizeof *known);
    for (size_t i = 0; known && i < n; i++) {
        const ortc_dim_expr *e = &t->exprs.data[i];
        if (e->what == 0) {
            known[i] = symbol_values[e->symbol] >= 0 ? symbol_values[e->symbol] : ORTC_DIM_UNKNOWN;
            continue;
        }
        ortc_dim a = ortc_dims_number(known, e->a), b = ortc_dims_number(known, e->b);
        known[i] = ORTC_DIM_UNKNOWN;
        if (a != ORTC_DIM_UNKNOWN && b != ORTC_DIM_UNKNOWN)
            combine_numbers(e->what, a, b, &known[i]); /* what fails stays unknown */
    }
    return known;
}

ortc_dim ortc_dims_number(const ortc_dim *evaluated, ortc_dim d)
{
    return ortc_dim_is_number(d) || d == ORTC_DIM_UNKNOWN ? d : evaluated[index_of(d)];
}

static void write_dim(const ortc_dims *t, ortc_dim d, ortc_text *out, int depth)
{
    static const char *const operators[] = {"",        " + ",   " - ",   " * ",    " / ",
                                            " ceil/ ", " max ", " min ", " bcast "};
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
    if (resize_table(to, to->exprs.count) != ORTC_OK) {
        ortc_dims_deinit(to);
        return false;
    }
    return true;
}

void ortc_dims_deinit(ortc_dims *t)
{
    ortc_array_deinit(&t->exprs);
    ortc_array_deinit(&t->symbols);
    ortc_map_deinit(&t->names);
    t->n_named = 0;
    free(t->table);
    t->table = NULL;
    t->table_capacity = 0;
}
