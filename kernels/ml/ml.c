/* kernels/ml/ml.c: lists of labels, finding in them, and what is done to scores (ml.h). */
#include "kernels/ml/ml.h"

#include <math.h>
#include <stdlib.h>

/* ---- Lists --------------------------------------------------------------------------------------------- */

static bool take(const ortc_node *n, const char *name, ml_list *l)
{
    if (!name) return false;
    l->from = ortc_node_attr(n, name);
    switch (l->from.kind) {
    case ORTC_ATTR_STRINGS: l->dtype = ORTC_STRING; break;
    case ORTC_ATTR_INTS: l->dtype = ORTC_I64; break;
    case ORTC_ATTR_FLOATS: l->dtype = ORTC_F32; break;
    case ORTC_ATTR_TENSOR: {
        const ortc_port *t = l->from.u.tensors;
        l->dtype = t->dtype;
        l->n = t->data ? 1 : 0;
        for (int32_t d = 0; d < t->rank; d++) l->n *= t->dims[d];
        return l->n > 0;
    }
    default: return false;
    }
    l->n = (int64_t)l->from.count;
    return l->n > 0;
}

ml_list ml_list_of(const ortc_node *n, const char *strings, const char *ints, const char *floats,
                   const char *tensor)
{
    ml_list l;
    if (take(n, strings, &l) || take(n, ints, &l) || take(n, floats, &l) || take(n, tensor, &l)) return l;
    return (ml_list){0};
}

ortc_span ml_list_text(const ml_list *l, int64_t i)
{
    if (l->from.kind == ORTC_ATTR_STRINGS) return ortc_span_of(l->from.u.strings[i]);
    const ortc_view v = {.data = (void *)(uintptr_t)l->from.u.tensors->data};
    return ortc_span_at(&v, i);
}

double ml_list_number(const ml_list *l, int64_t i)
{
    switch (l->from.kind) {
    case ORTC_ATTR_FLOATS: return l->from.u.floats[i];
    case ORTC_ATTR_INTS: return (double)l->from.u.ints[i];
    default: return ortc_load_f64(l->from.u.tensors->data, l->dtype, i);
    }
}

int64_t ml_list_integer(const ml_list *l, int64_t i)
{
    switch (l->from.kind) {
    case ORTC_ATTR_FLOATS: return ortc_int_of_double(l->from.u.floats[i]);
    case ORTC_ATTR_INTS: return l->from.u.ints[i];
    default: return ortc_load_i64(l->from.u.tensors->data, l->dtype, i);
    }
}

/* ---- Finding ------------------------------------------------------------------------------------------- */

/* A table of 2 n places or more, each the number of an entry + 1 or 0; what is looked for lies at its hash or
 * in one of the places behind it. Hashes go by where the table lies, so that a file cannot have them
 * collide. */

static bool is_float(ortc_dtype t) { return ortc_class_of(t) == ORTC_CLASS_FLOAT; }

static uint64_t mixed(const ml_index *x, uint64_t v)
{
    v = (v ^ (uint64_t)(uintptr_t)x->places) * UINT64_C(0x9e3779b97f4a7c15);
    v = (v ^ v >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return v ^ v >> 32;
}

static uint64_t hash_text(const ml_index *x, ortc_span s)
{
    uint64_t h = s.length;
    for (size_t i = 0; i < s.length; i += 8) {
        uint64_t part = 0;
        memcpy(&part, s.text + i, s.length - i < 8 ? s.length - i : 8);
        h = mixed(x, h ^ part);
    }
    return h;
}

static uint64_t hash_number(const ml_index *x, double v)
{
    uint64_t bits;
    v = v == 0 ? 0 : v != v ? NAN : v; /* zeros are equal, and so are NaN */
    memcpy(&bits, &v, sizeof bits);
    return mixed(x, bits);
}

static bool same_number(double a, double b) { return a == b || (a != a && b != b); }

/* The first place behind the hash that is free, or has an entry that is as asked: its number + 1, or 0. */
#define PLACE(x, hash, SAME) \
    uint64_t at = (hash) & (x)->mask; \
    for (int64_t entry; (entry = (x)->places[at] - 1) >= 0 && !(SAME); at = (at + 1) & (x)->mask) {} \
    return &(x)->places[at]

static int64_t *place_of_text(const ml_index *x, ortc_span s)
{
    PLACE(x, hash_text(x, s), ortc_span_compare(ml_list_text(&x->list, entry), s) == 0);
}
static int64_t *place_of_integer(const ml_index *x, int64_t v)
{
    if (x->span) return &x->places[(uint64_t)v - (uint64_t)x->low];
    PLACE(x, mixed(x, (uint64_t)v), ml_list_integer(&x->list, entry) == v);
}
static int64_t *place_of_number(const ml_index *x, double v)
{
    PLACE(x, hash_number(x, v), same_number(ml_list_number(&x->list, entry), v));
}

/* How far integers reach that lie close together; 0: they do not. */
static uint64_t span_of(const ml_list *l, int64_t *low)
{
    int64_t high = *low = ml_list_integer(l, 0);
    for (int64_t i = 1; i < l->n; i++) {
        const int64_t v = ml_list_integer(l, i);
        *low = v < *low ? v : *low, high = v > high ? v : high;
    }
    const uint64_t last = (uint64_t)high - (uint64_t)*low;
    return last < 4 * (uint64_t)l->n ? last + 1 : 0;
}

ortc_status ml_index_init(ml_index *x, const ml_list *l, ortc_prep *prep)
{
    const int whole = l->n > 0 && l->dtype != ORTC_STRING && !is_float(l->dtype);
    uint64_t places = 2;
    int64_t low = 0;
    const uint64_t span = whole ? span_of(l, &low) : 0;
    while (places < 2 * (uint64_t)l->n) places *= 2;
    if (span) places = span;
    *x = (ml_index){.list = *l,
                    .places = calloc(places, sizeof *x->places),
                    .mask = places - 1,
                    .low = low,
                    .span = span};
    if (!x->places)
        return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for %lld labels", (long long)l->n);
    for (int64_t i = 0; i < l->n; i++) {
        int64_t *place = l->dtype == ORTC_STRING ? place_of_text(x, ml_list_text(l, i))
                         : is_float(l->dtype)    ? place_of_number(x, ml_list_number(l, i))
                                                 : place_of_integer(x, ml_list_integer(l, i));
        if (!*place) *place = i + 1;
    }
    return ORTC_OK;
}
void ml_index_deinit(ml_index *x) { free(x->places); }

int64_t ml_index_find_text(const ml_index *x, ortc_span s) { return *place_of_text(x, s) - 1; }
int64_t ml_index_find_integer(const ml_index *x, int64_t v)
{
    if (x->span && (uint64_t)v - (uint64_t)x->low >= x->span) return -1;
    return *place_of_integer(x, v) - 1;
}

int64_t ml_index_find(const ml_index *x, const ortc_view *v, int64_t i)
{
    if (v->dtype == ORTC_STRING) return ml_index_find_text(x, ortc_span_at(v, i));
    return is_float(x->list.dtype) ? *place_of_number(x, ortc_load_f64(v->data, v->dtype, i)) - 1
                                   : ml_index_find_integer(x, ortc_load_i64(v->data, v->dtype, i));
}

/* ---- Scores -------------------------------------------------------------------------------------------- */

int ml_post_of(const ortc_node *n, ortc_prep *prep)
{
    static const char *const names[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
    const char *name = ortc_node_string(n, "post_transform", "NONE");
    for (int i = 0; i < 5; i++)
        if (!strcmp(name, names[i])) return i;
    ortc_prep_fail(
        prep, ORTC_INVALID_MODEL,
        "attribute post_transform is '%s', expected NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT", name);
    return -1;
}

static double logistic(double x)
{
    const double v = 1 / (1 + exp(-fabs(x)));
    return x < 0 ? 1 - v : v;
}

/* sqrt(2) * erfinv(2 x - 1) by Winitzki's approximation, as the standard's reference has it. */
static double probit(double x)
{
    const double y = 2 * x - 1, rest = (1 - y) * (1 + y);
    if (rest == 0) return 0;
    const double logarithm = log(rest), v = 2 / (3.14159265358979323846 * 0.147) + 0.5 * logarithm;
    const double root = sqrt(-v + sqrt(v * v - logarithm / 0.147));
    return 1.41421356 * (y < 0 ? -root : root);
}

static void softmax(double *scores, int64_t n, bool keep_zeros)
{
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) most = scores[i] > most ? scores[i] : most;
    for (int64_t i = 0; i < n; i++) {
        const bool zero = keep_zeros && fabs(scores[i]) <= 1e-7;
        scores[i] = zero ? scores[i] * exp(-most) : exp(scores[i] - most);
        sum += scores[i];
    }
    for (int64_t i = 0; i < n; i++) scores[i] = keep_zeros && sum == 0 ? 0.5 : scores[i] / sum;
}

void ml_post(int transform, double *scores, int64_t n)
{
    switch (transform) {
    case ML_SOFTMAX: softmax(scores, n, false); break;
    case ML_SOFTMAX_ZERO: softmax(scores, n, true); break;
    case ML_LOGISTIC:
        for (int64_t i = 0; i < n; i++) scores[i] = logistic(scores[i]);
        break;
    case ML_PROBIT:
        for (int64_t i = 0; i < n; i++) scores[i] = probit(scores[i]);
        break;
    default: break;
    }
}

void ml_post_binary(int transform, double score, bool even, double *scores)
{
    scores[0] = transform == ML_LOGISTIC ? -score : even ? 1 - score : -score;
    scores[1] = score;
    if (transform == ML_LOGISTIC ||
        transform == ML_PROBIT) /* a softmax of one score has nothing to compare it with */
        ml_post(transform, scores, 2);
}

void ml_store_label(const ml_list *labels, int64_t at, const ortc_view *y, ortc_span *spans, int64_t i)
{
    const bool none = at < 0 || at >= labels->n;
    if (y->dtype == ORTC_STRING)
        spans[i] = none ? (ortc_span){"", 0} : ml_list_text(labels, at);
    else
        ortc_store_i64(y->data, y->dtype, i, none ? 0 : ml_list_integer(labels, at));
}
