/* kernels/gemm/tail.c: splitting epilogues (tail.h). */
#include "tail.h"

#include <math.h>
#include <stdlib.h>

typedef struct reader {
    const ortc_node *node;
    const ortc_pointwise *p;
    ortc_port result;
    ortc_dtype type; /* the operator's */
    uint16_t uses[ORTC_PW_STEPS];
    ortc_tail *t;
} reader;

void ortc_tail_count_uses(const ortc_pointwise *p, uint16_t *uses)
{
    for (uint32_t i = p->n; i-- > 0;) {
        const ortc_pw_step *s = &p->steps[i];
        const uint16_t of[3] = {s->a, s->b, s->c};
        if (s->op != ORTC_PW_STORE && !uses[i]) continue;
        for (uint32_t k = 0; k < ortc_pw_operands(s->op); k++) uses[of[k]]++;
    }
}

static int reads(const ortc_pw_step *s, uint32_t v)
{
    const uint16_t of[3] = {s->a, s->b, s->c};
    for (uint32_t k = 0; k < ortc_pw_operands(s->op); k++)
        if (of[k] == v) return 1;
    return 0;
}

/* The next needed step after `from` that reads v; p->n: none. */
static uint32_t reader_of(const reader *r, uint32_t v, uint32_t from)
{
    uint32_t i = from + 1;
    while (i < r->p->n && !((r->uses[i] || r->p->steps[i].op == ORTC_PW_STORE) && reads(&r->p->steps[i], v)))
        i++;
    return i;
}

/* The step that is the only one to read v, once, if it is a `op`; its other operand in *other. */
static uint32_t follows(const reader *r, uint32_t v, uint32_t op, const ortc_pw_step **other)
{
    const uint32_t i = reader_of(r, v, v);
    const ortc_pw_step *s = &r->p->steps[i];
    if (r->uses[v] != 1 || i == r->p->n || s->op != op) return 0;
    *other = &r->p->steps[s->a == v ? s->b : s->a];
    return i;
}

static int is_number(const ortc_pw_step *s) { return s->op == ORTC_PW_CONST && s->k.f == s->k.f; }

/* An input of the operator's type that lies so; its port, or -1. */
static int32_t input(const reader *r, const ortc_pw_step *s, int lies)
{
    return s->op == ORTC_PW_LOAD && s->type == r->type && s->a > 0 && r->t->lies[s->a] == lies ? (int32_t)s->a
                                                                                               : -1;
}

/* Times a number, or divided by one whose reciprocal is exact: the root of a head's size often is. */
static uint32_t scaled(const reader *r, uint32_t v)
{
    const ortc_pw_step *k;
    uint32_t next = follows(r, v, ORTC_PW_MUL, &k);
    int exponent;
    if (next && is_number(k)) return r->t->scale = (float)k->k.f, next;
    next = follows(r, v, ORTC_PW_DIV, &k);
    if (!next || r->p->steps[next].a != v || !is_number(k) || fabs(frexp(k->k.f, &exponent)) != 0.5 ||
        abs(exponent) > 100)
        return 0;
    return r->t->scale = (float)(1 / k->k.f), next;
}

static uint32_t sums(const reader *r, uint32_t v, uint32_t may)
{
    const ortc_pw_step *other;
    uint32_t next;
    if ((may & ORTC_TAIL_SCALE) && (next = scaled(r, v))) v = next;
    if ((may & ORTC_TAIL_BIAS) && (next = follows(r, v, ORTC_PW_ADD, &other)) &&
        (r->t->bias = input(r, other, ORTC_PW_CHANNEL)) >= 0)
        v = next;
    if ((may & ORTC_TAIL_RESIDUAL) && (next = follows(r, v, ORTC_PW_ADD, &other)) &&
        (r->t->residual = input(r, other, ORTC_PW_FULL)) >= 0)
        v = next;
    return v;
}

/* v < 0 ? v * k : v */
static uint32_t leaky(const reader *r, uint32_t v)
{
    const ortc_pw_step *s = r->p->steps;
    const uint32_t one = reader_of(r, v, v), two = reader_of(r, v, one), last = reader_of(r, v, two);
    if (r->uses[v] != 3 || last >= r->p->n) return v;
    const uint32_t less = s[one].op == ORTC_PW_LT ? one : two, times = one + two - less;
    if (s[less].op != ORTC_PW_LT || s[times].op != ORTC_PW_MUL || s[last].op != ORTC_PW_SELECT ||
        s[last].a != less || s[last].b != times || s[last].c != v || s[less].a != v || r->uses[less] != 1 ||
        r->uses[times] != 1 || !is_number(&s[s[less].b]) || s[s[less].b].k.f != 0)
        return v;
    const ortc_pw_step *slope = &s[s[times].a == v ? s[times].b : s[times].a];
    if (!is_number(slope)) return v;
    r->t->act = ORTC_UK_ACT_LEAKY;
    r->t->lo = (float)slope->k.f;
    return last;
}

static uint32_t activation(const reader *r, uint32_t v)
{
    const ortc_pw_step *bound;
    uint32_t next = follows(r, v, ORTC_PW_MAX, &bound);
    r->t->lo = -INFINITY;
    r->t->hi = INFINITY;
    if (next && is_number(bound)) r->t->act = ORTC_UK_ACT_CLIP, r->t->lo = (float)bound->k.f, v = next;
    next = follows(r, v, ORTC_PW_MIN, &bound);
    if (next && is_number(bound)) r->t->act = ORTC_UK_ACT_CLIP, r->t->hi = (float)bound->k.f, v = next;
    return r->t->act ? v : leaky(r, v);
}

static int inputs_lie(const reader *r, int32_t axis, uint32_t *v, const char **why)
{
    const uint32_t n_in = ortc_node_n_in(r->node);
    *v = r->p->n;
    for (uint32_t i = 0; i < r->p->n; i++) {
        const ortc_pw_step *s = &r->p->steps[i];
        if (s->op != ORTC_PW_LOAD || !r->uses[i]) continue;
        if (s->a == 0 && s->type != ORTC_F32) return *why = "it is not about sums of f32", 0;
        if (s->a == 0) {
            *v = i;
            continue;
        }
        if (s->a >= n_in) return *why = "it reads a port that is not there", 0;
        ortc_dim dims[ORTC_PW_RANK];
        const ortc_port own = ortc_node_in(r->node, s->a), p = ortc_pw_port(&own, s->b, dims);
        r->t->lies[s->a] = (uint8_t)(p.type ? ortc_pw_lies(&p, &r->result, axis) : ORTC_PW_OTHER);
        if (r->t->lies[s->a] == ORTC_PW_OTHER)
            return *why = "an input of the epilogue is neither a vector along the channels nor of the "
                          "result's shape",
                   0;
    }
    return 1;
}

int ortc_tail_read(const ortc_node *n, int32_t axis, uint32_t may, ortc_tail *t, const char **why)
{
    reader r = {.node = n, .p = ortc_node_epilogue(n), .t = t};
    uint32_t v;
    memset(t, 0, sizeof *t);
    t->scale = 1;
    t->bias = t->residual = -1;
    if (!r.p) return 1;
    if (r.p->n > ORTC_PW_STEPS) return *why = "its program is too long", 0;
    r.result = ortc_node_out(n, 0);
    r.type = ortc_node_in(n, 0).dtype;
    ortc_tail_count_uses(r.p, r.uses);
    const ortc_pw_step *store = &r.p->steps[r.p->n - 1];
    t->widens = may & ORTC_TAIL_WIDER && store->type == ORTC_F32 && ortc_dtype_bits(r.type) == 16;
    t->to_bytes = may & ORTC_TAIL_BYTES && (store->type == ORTC_U8 || store->type == ORTC_I8);
    if (store->type != r.type && !t->widens && !t->to_bytes)
        return *why = "its result is of another type than the operator's", 0;
    if (t->widens) may &= ~(uint32_t)ORTC_TAIL_RESIDUAL; /* which is of the operator's type */
    if (!inputs_lie(&r, axis, &v, why)) return 0;
    if (v < r.p->n) {
        v = sums(&r, v, may);
        if (may & ORTC_TAIL_ACT) v = activation(&r, v);
        if (store->a == v) return 1;
    }
    t->has_rest = 1;
    t->at = v;
    memcpy(&t->u, r.p, r.p->bytes);
    if (v < r.p->n) {
        ortc_pw_step *from = &t->u.rest.steps[v];
        memset(from, 0, sizeof *from);
        from->op = ORTC_PW_LOAD;
        from->type = ORTC_F32;
    }
    if (ortc_pw_register(store->type) == ORTC_F32) t->u.rest.steps[r.p->n - 1].type = ORTC_F32;
    return 1;
}
