/* Reading epilogues of integer products, and running them over tiles (integer_tail.h). */
#include "integer_tail.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/common/blocks.h"

ORTC_VEC_TABLE(ortc_int_passes)

/* ---- Reading ------------------------------------------------------------------------------------------- */

typedef struct reader {
    const ortc_node *node;
    const ortc_pointwise *p;
    uint16_t uses[ORTC_PW_STEPS];
    uint32_t byte; /* the value that sums are as 8 bits first; 0: none */
    ortc_int_scaled to;
    ortc_int_tail *t;
} reader;

static int inputs_lie(const reader *r, int32_t axis, const char **why)
{
    const ortc_port result = ortc_node_out(r->node, 0);
    for (uint32_t i = 0; i < r->p->n; i++) {
        const ortc_pw_step *s = &r->p->steps[i];
        ortc_dim dims[ORTC_PW_RANK];
        if (s->op != ORTC_PW_LOAD || !r->uses[i]) continue;
        if (s->a == 0 && s->type != ORTC_I32) return *why = "it is not about sums of i32", 0;
        if (s->a == 0) continue;
        if (s->a >= ortc_node_n_in(r->node)) return *why = "it reads a port that is not there", 0;
        const ortc_port own = ortc_node_in(r->node, s->a), in = ortc_pw_port(&own, s->b, dims);
        r->t->lies[s->a] = (uint8_t)(own.type ? ortc_pw_lies(&in, &result, axis) : ORTC_PW_OTHER);
        if (r->t->lies[s->a] == ORTC_PW_OTHER)
            return *why = "an input of the epilogue is neither a number, nor a vector along the channels, "
                          "nor of the result's shape",
                   0;
    }
    return 1;
}

/* The step that alone reads v, once, if it is a `op`, from *at on; its other operand in *other. */
static int follows(const reader *r, uint32_t op, uint32_t *at, const ortc_pw_step **other)
{
    const uint32_t v = *at;
    if (r->uses[v] != 1) return 0;
    for (uint32_t i = v + 1; i < r->p->n; i++) {
        const ortc_pw_step *s = &r->p->steps[i];
        const int first = s->a == v, second = ortc_pw_operands(s->op) == 2 && s->b == v;
        if (s->op == ORTC_PW_LOAD || s->op == ORTC_PW_CONST || (!r->uses[i] && s->op != ORTC_PW_STORE) ||
            !(first || second))
            continue;
        if (s->op != op || (op == ORTC_PW_DIV && !first)) return 0;
        if (other) *other = &r->p->steps[first ? s->b : s->a];
        *at = i;
        return 1;
    }
    return 0;
}

/* The same of a primitive with a number, or a vector along the channels, of that type. */
static int with(const reader *r, uint32_t op, ortc_dtype type, uint32_t *at, ortc_int_source *out)
{
    const ortc_pw_step *other;
    uint32_t next = *at;
    if (!follows(r, op, &next, &other) || other->type != type) return 0;
    *out = (ortc_int_source){.given = 1, .port = -1};
    if (other->op == ORTC_PW_CONST) {
        if (type == ORTC_F32)
            out->k.f = (float)other->k.f;
        else
            out->k.i = (int32_t)other->k.i;
    } else if (other->op == ORTC_PW_LOAD && other->a > 0 && r->t->lies[other->a] != ORTC_PW_FULL) {
        out->port = (int32_t)other->a;
    } else {
        return out->given = 0;
    }
    *at = next;
    return 1;
}

/* A bound; a number that is one. */
static void bound(const reader *r, uint32_t op, uint32_t *at, float *out)
{
    const ortc_pw_step *k;
    uint32_t next = *at;
    if (!follows(r, op, &next, &k) || k->op != ORTC_PW_CONST || k->k.f != k->k.f) return;
    *out = (float)k->k.f;
    *at = next;
}
static void bounds(const reader *r, uint32_t *at, ortc_int_bounds *out)
{
    *out = (ortc_int_bounds){-INFINITY, INFINITY};
    bound(r, ORTC_PW_MAX, at, &out->lo);
    bound(r, ORTC_PW_MIN, at, &out->hi);
}

static int is_8_bits(ortc_dtype t) { return t == ORTC_U8 || t == ORTC_I8; }

/* QuantizeLinear to 8 bits, by numbers. */
static int quantises(const reader *r, uint32_t *at, ortc_int_scaled *out)
{
    const ortc_pw_step *scale = NULL, *zero = NULL;
    uint32_t v = *at;
    if (follows(r, ORTC_PW_DIV, &v, &scale) && scale->op != ORTC_PW_CONST) return 0;
    if (follows(r, ORTC_PW_ROUND, &v, NULL) &&
        (!follows(r, ORTC_PW_ADD, &v, &zero) || zero->op != ORTC_PW_CONST))
        return 0;
    if (!follows(r, ORTC_PW_SATURATE, &v, NULL) || !is_8_bits(r->p->steps[v].type)) return 0;
    *out = (ortc_int_scaled){r->p->steps[v].type, scale ? (float)scale->k.f : 1, zero ? (float)zero->k.f : 0};
    *at = v;
    return 1;
}

/* DequantizeLinear of 8 bits, by numbers. */
static int dequantises(const reader *r, uint32_t *at, ortc_int_scaled *out)
{
    const ortc_pw_step *scale, *zero = NULL;
    const ortc_dtype type = r->p->steps[*at].type;
    uint32_t v = *at;
    if (!follows(r, ORTC_PW_CAST, &v, NULL) || r->p->steps[v].type != ORTC_F32 ||
        (follows(r, ORTC_PW_SUB, &v, &zero) && zero->op != ORTC_PW_CONST) ||
        !follows(r, ORTC_PW_MUL, &v, &scale) || scale->op != ORTC_PW_CONST)
        return 0;
    *out = (ortc_int_scaled){type, (float)scale->k.f, zero ? (float)zero->k.f : 0};
    *at = v;
    return 1;
}

/* A value of the result's shape that is added: an input in f32, or one of 8 bits dequantised. Its port; -1:
 * none. */
static int32_t find_residual(const reader *r, uint32_t *at, ortc_int_scaled *out)
{
    for (uint32_t i = 0; i < r->p->n; i++) {
        const ortc_pw_step *s = &r->p->steps[i], *other;
        ortc_int_scaled scaled = {ORTC_F32, 1, 0};
        uint32_t v = i, next = *at;
        if (s->op != ORTC_PW_LOAD || s->a == 0 || !r->uses[i] || r->t->lies[s->a] != ORTC_PW_FULL ||
            (s->type == ORTC_F32 ? 0 : !is_8_bits(s->type) || !dequantises(r, &v, &scaled)) ||
            r->uses[v] != 1 || !follows(r, ORTC_PW_ADD, &next, &other) || other != &r->p->steps[v])
            continue;
        *out = scaled;
        *at = next;
        return s->a;
    }
    return -1;
}

/* The pass: what of the program it does; returns the value that comes out of it. */
static uint32_t read_pass(reader *r, uint32_t v)
{
    ortc_int_tail *t = r->t;
    uint32_t at = v;
    with(r, ORTC_PW_ADD, ORTC_I32, &at, &t->before);
    if (!follows(r, ORTC_PW_CAST, &at, NULL) || r->p->steps[at].type != ORTC_F32) {
        t->before.given = 0;
        return v;
    }
    t->has_pass = 1;
    with(r, ORTC_PW_MUL, ORTC_F32, &at, &t->scale);
    with(r, ORTC_PW_ADD, ORTC_F32, &at, &t->bias);
    bounds(r, &at, &t->steps.clip);
    uint32_t next = at;
    if (quantises(r, &next, &t->steps.to)) r->byte = next, r->to = t->steps.to;
    if (r->byte && dequantises(r, &next, &t->steps.from)) {
        at = next;
        with(r, ORTC_PW_MUL, ORTC_F32, &at, &t->by);
        with(r, ORTC_PW_ADD, ORTC_F32, &at, &t->more);
    } else {
        t->steps.to.type = 0;
    }
    t->residual = find_residual(r, &at, &t->steps.residual);
    t->steps.last = (ortc_int_bounds){-INFINITY, INFINITY};
    if (t->steps.to.type || t->residual >= 0) bounds(r, &at, &t->steps.last);
    return at;
}

typedef union program {
    ortc_pointwise p;
    char bytes[offsetof(ortc_pointwise, steps) + ORTC_PW_STEPS * sizeof(ortc_pw_step)];
} program;

/* The program with value v, of which it has more steps than its type says, as its input 0. */
static program behind(const reader *r, uint32_t v, ortc_dtype type)
{
    program u;
    memcpy(&u, r->p, r->p->bytes);
    ortc_pw_step *from = u.p.steps + v;
    memset(from, 0, sizeof *from);
    from->op = ORTC_PW_LOAD;
    from->type = type;
    return u;
}

/* A table of value v, of 8 bits, where it is about value `byte` alone. */
static int tabulate(const reader *r, uint32_t byte, uint32_t v, ortc_int_link *link)
{
    ortc_int_tail *t = r->t;
    const char *why;
    program u = behind(r, byte, ORTC_I32);
    ortc_pw_step *store = u.p.steps + r->p->n - 1;
    store->a = (uint16_t)v;
    store->type = r->p->steps[v].type;
    if (!ortc_pw_lower(&u.p, &t->rest, &why)) return 0;
    for (uint32_t k = 1; k < t->rest.n_in; k++)
        if (t->rest.in[k]) return 0;
    if (t->rest.in[0] != ORTC_I32 || !ortc_pw_tile_can(&t->rest)) return 0;
    ortc_pw_tabulate(&t->rest, r->p->steps[byte].type, link->table);
    link->has_table = 1;
    return 1;
}

/* From value *byte, of 8 bits, by way of value v, also of 8 bits and about it alone: DequantizeLinear, and
 * then, each of it optional, * scale, + bias, + residual, Clip, QuantizeLinear. *byte is what comes out. */
static int read_link(const reader *r, uint32_t *byte, uint32_t v, uint32_t end, ortc_int_link *link)
{
    ortc_int_scaled from, residual = {0, 0, 0};
    uint32_t at = v;
    *link = (ortc_int_link){.residual = -1};
    if (!dequantises(r, &at, &from)) return 0;
    with(r, ORTC_PW_MUL, ORTC_F32, &at, &link->by);
    with(r, ORTC_PW_ADD, ORTC_F32, &at, &link->bias);
    link->residual = find_residual(r, &at, &residual);
    link->steps = (ortc_int_steps){.clip = {-INFINITY, INFINITY},
                                   .last = {-INFINITY, INFINITY},
                                   .from = from,
                                   .residual = residual};
    bounds(r, &at, link->residual >= 0 || link->by.given ? &link->steps.last : &link->steps.clip);
    const int stored = quantises(r, &at, &link->steps.y);
    uint32_t next = at;
    if (stored && at != end && dequantises(r, &next, &link->steps.again) && next == end) at = end;
    if (at != end) link->steps.again.type = 0;
    if ((!stored && at != end) || (v != *byte && !tabulate(r, *byte, v, link))) return 0;
    link->has_pass = 1;
    link->moved = (ortc_int_source){.given = 1, .port = -1, .k.i = -(int32_t)from.zero};
    link->times = (ortc_int_source){.given = 1, .port = -1, .k.f = from.scale};
    *byte = at;
    return 1;
}

/* From value `byte` to the last by links: the pass ends there. Not tried where there are no 8 bits on the
 * way. */
static int read_links(const reader *r, uint32_t byte, uint32_t end)
{
    ortc_int_tail *t = r->t;
    const ortc_int_tail kept = *t;
    t->n_links = 0;
    while (byte && byte != end && t->n_links < ORTC_INT_LINKS) {
        ortc_int_link *link = &t->links[t->n_links++];
        *link = (ortc_int_link){.residual = -1};
        if (is_8_bits(t->type) && tabulate(r, byte, end, link)) {
            byte = end;
            break;
        }
        const uint32_t before = byte;
        for (uint32_t v = end; v-- > before && byte == before;)
            if (r->p->steps[v].op == ORTC_PW_SATURATE && is_8_bits(r->p->steps[v].type))
                read_link(r, &byte, v, end, link);
        if (byte == before) break;
    }
    if (byte == end && byte) return 1;
    *t = kept;
    return 0;
}

/* What is behind value v. */
static int lower_rest(const reader *r, uint32_t v, const char **why)
{
    program u;
    if (r->t->has_pass) u = behind(r, v, ORTC_F32);
    if (!ortc_pw_lower(r->t->has_pass ? &u.p : r->p, &r->t->rest, why)) return 0;
    if (ortc_pw_tile_can(&r->t->rest)) return 1;
    *why = "the epilogue has too many inputs or values";
    return 0;
}

int ortc_int_tail_init(const ortc_node *n, int32_t axis, ortc_int_tail *t, const char **why)
{
    reader r = {.node = n, .p = ortc_node_epilogue(n), .t = t};
    memset(t, 0, sizeof *t);
    t->type = ortc_node_out(n, 0).dtype;
    t->residual = -1;
    if (!r.p) return 1;
    if (r.p->n > ORTC_PW_STEPS) return *why = "its program is too long", 0;
    ortc_tail_count_uses(r.p, r.uses);
    if (!inputs_lie(&r, axis, why)) return 0;
    uint32_t v = 0;
    while (v < r.p->n && !(r.p->steps[v].op == ORTC_PW_LOAD && r.p->steps[v].a == 0)) v++;
    if (v < r.p->n) v = read_pass(&r, v);
    const uint32_t end = r.p->steps[r.p->n - 1].a;
    if (t->has_pass && t->type == ORTC_F32 && end == v) {
        const ortc_int_steps *k = &t->steps;
        const int bare = !t->by.given && !t->more.given && t->residual < 0 && k->last.lo == -INFINITY &&
                         k->last.hi == INFINITY;
        if (k->to.type && bare) /* the result is 8 bits, and dequantised */
            t->steps.y = k->to, t->steps.again = k->from, t->steps.to.type = 0;
        return 1;
    }
    uint32_t last = v;
    if (t->has_pass && quantises(&r, &last, &t->steps.y)) {
        const uint32_t byte = last;
        if (last == end || (dequantises(&r, &last, &t->steps.again) && last == end)) return 1;
        t->steps.again.type = 0;
        if ((t->steps.to.type || t->residual >= 0) && read_links(&r, byte, end)) return 1;
    }
    t->steps.y.type = 0;
    if (read_links(&r, r.byte, end)) {
        t->by.given = t->more.given = 0, t->residual = -1;
        t->steps = (ortc_int_steps){.clip = t->steps.clip, .last = {-INFINITY, INFINITY}, .y = r.to};
        return 1;
    }
    t->has_rest = 1;
    return lower_rest(&r, v, why);
}

/* ---- Running ------------------------------------------------------------------------------------------- */

static ortc_int_vector vector(const ortc_int_tail *t, const ortc_int_source *s, const ortc_view *in,
                              const ortc_tail_place *at)
{
    if (!s->given) return (ortc_int_vector){NULL, 0, 0};
    if (s->port < 0) return (ortc_int_vector){&s->k, 0, 0};
    const char *data = in[s->port].data; /* of 4 bytes */
    if (t->lies[s->port] == ORTC_PW_ONE) return (ortc_int_vector){data, 0, 0};
    return (ortc_int_vector){data + 4 * at->channel, at->channel_row, at->channel_col};
}

static void run_rest(const ortc_int_tail *t, const ortc_view *in, const ortc_tail_place *at, const void *tile,
                     size_t ld, void *y, size_t y_ld, size_t rows, size_t cols)
{
    ortc_pw_place places[ORTC_PW_INPUTS];
    for (uint32_t k = 1; k < t->rest.n_in; k++) {
        int64_t first = 0;
        if (!t->rest.in[k]) continue;
        places[k] = (ortc_pw_place){in[k].data, 0, 0};
        if (t->lies[k] == ORTC_PW_CHANNEL)
            first = at->channel, places[k].row = at->channel_row, places[k].col = at->channel_col;
        else if (t->lies[k] == ORTC_PW_FULL)
            first = at->element, places[k].row = at->row, places[k].col = at->col;
        places[k].data = (const char *)places[k].data + first * (int64_t)(ortc_dtype_bits(t->rest.in[k]) / 8);
    }
    ortc_pw_tile(&t->rest, places, tile, ld, y, y_ld, rows, cols);
}

/* Of port -1 none. */
static const void *residual_at(int32_t port, const ortc_int_steps *steps, const ortc_view *in,
                               int64_t element)
{
    if (port < 0) return NULL;
    return (const char *)in[port].data + element * (steps->residual.type == ORTC_F32 ? 4 : 1);
}

static ortc_int_pass pass_of(const ortc_int_tail *t, const ortc_view *in, const ortc_tail_place *at)
{
    return (ortc_int_pass){.before = vector(t, &t->before, in, at),
                           .scale = vector(t, &t->scale, in, at),
                           .bias = vector(t, &t->bias, in, at),
                           .by = vector(t, &t->by, in, at),
                           .more = vector(t, &t->more, in, at),
                           .residual = residual_at(t->residual, &t->steps, in, at->element),
                           .residual_row = at->row,
                           .steps = &t->steps,
                           .ends = t->steps.y.type != 0};
}

/* What a link's pass is: from 8 bits, as sums. */
static ortc_int_pass pass_of_link(const ortc_int_tail *t, const ortc_int_link *l, const ortc_view *in,
                                  const ortc_tail_place *at)
{
    const ortc_int_vector none = {NULL, 0, 0}, by = vector(t, &l->by, in, at),
                          bias = vector(t, &l->bias, in, at);
    return (ortc_int_pass){.before = {&l->moved.k, 0, 0},
                           .scale = {&l->times.k, 0, 0},
                           .bias = by.data ? none : bias,
                           .by = by,
                           .more = by.data ? bias : none,
                           .residual = residual_at(l->residual, &l->steps, in, at->element),
                           .residual_row = at->row,
                           .steps = &l->steps,
                           .ends = l->steps.y.type != 0};
}

/* One link: of 8 bits, rows `apart` bytes, to others, or to the result, in the same place; wide: as many i32.
 */
static void run_link(const ortc_int_link *l, const ortc_int_pass *pass, uint8_t *y, size_t apart,
                     int32_t *wide, size_t ld, size_t rows, size_t cols)
{
    const size_t together = apart == cols ? rows : 1; /* rows that lie beside each other */
    const int is_signed = l->steps.from.type == ORTC_I8, is_wide = !l->steps.y.type || l->steps.again.type;
    for (size_t r = 0; l->has_table && r < rows; r += together)
        ortc_pw_look_up(together * cols, l->table, y + r * apart, y + r * apart);
    if (!l->has_pass) return;
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols; c++)
            wide[r * ld + c] = is_signed ? (int8_t)y[r * apart + c] : y[r * apart + c];
    ortc_int_passes_select()->run(pass, rows, cols, wide, ld, y, is_wide ? apart / sizeof(float) : apart);
}

/* Bytes of an element of the result. */
static size_t size_of(const ortc_int_tail *t) { return t->type == ORTC_F32 ? sizeof(float) : 1; }

/* Links over rows of 8 bits at y; the sums are written over. */
static void run_links(const ortc_int_tail *t, const ortc_view *in, const ortc_tail_place *at, int32_t *sums,
                      size_t ld, void *y, size_t y_ld, size_t rows, size_t cols)
{
    for (int32_t i = 0; i < t->n_links; i++) {
        const ortc_int_pass pass = pass_of_link(t, &t->links[i], in, at);
        run_link(&t->links[i], &pass, y, y_ld * size_of(t), sums, ld, rows, cols);
    }
}

/* ---- Running in fixed point ---------------------------------------------------------------------------- */

static const ortc_int_blocks *blocks_get(void)
{
#if defined(__x86_64__)
    if (ortc_cpu_features() & ORTC_CPU_AVX512) return &ortc_int_blocks_avx512;
    if (ortc_cpu_features() & ORTC_CPU_AVX2) return &ortc_int_blocks_avx2;
#endif
    return NULL;
}

/* A vector that is the same in every run. */
static int is_constant(const ortc_int_source *v, const ortc_view *in)
{
    return !v->given || v->port < 0 || ((in[v->port].flags & ORTC_VIEW_CONST) && in[v->port].data);
}

static int all_constant(const ortc_int_tail *t, const ortc_view *in)
{
    int yes = is_constant(&t->before, in) && is_constant(&t->scale, in) && is_constant(&t->bias, in) &&
              is_constant(&t->by, in) && is_constant(&t->more, in);
    for (int32_t i = 0; i < t->n_links; i++)
        yes &= is_constant(&t->links[i].by, in) && is_constant(&t->links[i].bias, in);
    return yes;
}

/* Sixteen elements of a vector, of which n are there: of those that are not as the first. */
static void sixteen(ortc_int_vector *v, size_t n, int32_t out[16])
{
    if (!v->data) return;
    for (size_t i = 0; i < 16; i++) memcpy(&out[i], (const char *)v->data + 4 * (i < n ? i : 0) * v->col, 4);
    *v = (ortc_int_vector){out, 0, 1};
}

/* What only pads a block ends as 0, far from a half. */
static void pad(ortc_int_block *b, size_t lanes)
{
    for (size_t i = lanes; i < 16; i++) {
        b->factor[i] = b->next[i] = 0;
        b->bias[i] = b->last_bias[i] = 0x8000;
    }
}

/* The pass of a stage: 0: the epilogue's, then those of links. Without one: NULL as its steps. */
static ortc_int_pass pass_of_stage(const ortc_int_tail *t, int32_t stage, const ortc_view *in,
                                   const ortc_tail_place *at)
{
    if (stage == 0) return pass_of(t, in, at);
    const ortc_int_link *l = &t->links[stage - 1];
    return l->has_pass ? pass_of_link(t, l, in, at) : (ortc_int_pass){.steps = NULL};
}
static int32_t residual_of(const ortc_int_tail *t, int32_t stage)
{
    return stage == 0 ? t->residual : t->links[stage - 1].residual;
}

/* A block, in all stages; along: of one channel, sixteen times. 0: not for its numbers. */
static int make_block(ortc_int_ends *e, const ortc_view *in, const int32_t *first, size_t block, int along)
{
    const size_t channel = along ? block : block * 16, left = e->channels - channel,
                 lanes = along || left > 16 ? 16 : left;
    const ortc_tail_place at = {.channel = (int64_t)channel, .channel_col = !along};
    for (int32_t s = 0; s <= e->tail->n_links; s++) {
        int32_t before[16] = {0}, scale[16], bias[16], by[16], more[16];
        ortc_int_block *b = &e->blocks[(size_t)s * e->count + block];
        ortc_int_pass pass = pass_of_stage(e->tail, s, in, &at);
        if (!pass.steps) continue;
        sixteen(&pass.before, lanes, before);
        for (size_t i = 0; s == 0 && i < lanes; i++)
            before[i] = (int32_t)((uint32_t)before[i] + (uint32_t)first[channel + (along ? 0 : i)]);
        pass.before = (ortc_int_vector){before, 0, 1};
        sixteen(&pass.scale, lanes, scale), sixteen(&pass.bias, lanes, bias);
        sixteen(&pass.by, lanes, by), sixteen(&pass.more, lanes, more);
        if (!blocks_get()->block(&e->fixed[s], &pass, b)) return 0;
        pad(b, lanes);
    }
    return 1;
}

ortc_int_ends *ortc_int_ends_create(const ortc_int_tail *t, const ortc_view *in, const int32_t *first,
                                    size_t channels, int along)
{
    const ortc_int_blocks *blocks = blocks_get();
    const size_t count = along ? channels : (channels + 15) / 16, stages = (size_t)t->n_links + 1;
    if (!blocks || !t->has_pass || t->has_rest || !all_constant(t, in)) return NULL;
    ortc_int_ends *e = malloc(sizeof *e + stages * count * sizeof *e->blocks);
    if (!e) return NULL;
    *e = (ortc_int_ends){.tail = t, .channels = channels, .count = count};
    for (int32_t s = 0; s <= t->n_links; s++) {
        const ortc_int_pass pass = pass_of_stage(t, s, in, &(ortc_tail_place){.channel_col = 1});
        if (pass.steps && !blocks->init(&pass, residual_of(t, s) >= 0, &e->fixed[s])) {
            free(e);
            return NULL;
        }
    }
    for (size_t k = 0; k < count; k++) {
        const int has = make_block(e, in, first, k, along);
        if (!has) e->blocks[k].near = 0;
        e->taken += (size_t)has;
    }
    return e;
}

/* n rows of a block's `lanes` sums, `ld` apart, to y, rows of the result, and of residuals, `row` elements
 * apart, of which this is element `at`. */
static void ends_rows(const ortc_int_ends *e, size_t block, const int32_t *sums, size_t ld, size_t n,
                      size_t lanes, const ortc_view *in, int64_t at, size_t row, char *y)
{
    enum { MOST = 64 };
    const ortc_int_tail *t = e->tail;
    const ortc_int_blocks *blocks = blocks_get();
    const size_t size = size_of(t);
    for (size_t some; n > 0;
         n -= some, sums += some * ld, at += (int64_t)(some * row), y += some * row * size) {
        int32_t own[MOST * 16]; /* each stage's sums, residual and results, where they do not lie so */
        uint8_t beside[MOST * 16], bytes[MOST * 16];
        float wide[MOST * 16];
        const ortc_int_block *b = e->blocks + block;
        void *to = bytes;
        some = n < MOST ? n : MOST;
        if (lanes < 16) {
            memset(own, 0, some * 16 * sizeof *own), memset(beside, 0, some * 16);
            ortc_block_move((char *)own, 16 * sizeof *own, (const char *)sums, ld * sizeof *own,
                            (int64_t)some, lanes * sizeof *own);
        }
        const int32_t *x = lanes < 16 ? own : sums;
        size_t x_ld = lanes < 16 ? 16 : ld;
        for (int32_t s = 0; s <= t->n_links; s++, b += e->count) {
            const ortc_int_link *l = s > 0 ? &t->links[s - 1] : NULL;
            const int last = s == t->n_links, there = last && lanes == 16;
            if (l && l->has_table) ortc_pw_look_up(some * 16, l->table, bytes, bytes);
            if (l && !l->has_pass) continue;
            if (l) blocks->widen(some, l->steps.from.type == ORTC_I8, bytes, own), x = own, x_ld = 16;
            const char *residual = residual_at(residual_of(t, s), l ? &l->steps : &t->steps, in, at);
            if (residual && !(there || (lanes == 16 && row == 16))) {
                ortc_block_move((char *)beside, 16, residual, row, (int64_t)some, lanes);
                residual = (const char *)beside;
            }
            to = there ? (void *)y : last && size > 1 ? (void *)wide : bytes;
            blocks->run(&e->fixed[s], b, some, x, x_ld, residual, to, there ? row : 16);
        }
        if (to != y) ortc_block_move(y, row * size, to, 16 * size, (int64_t)some, lanes * size);
    }
}

void ortc_int_ends_run(const ortc_int_ends *e, size_t block, const int32_t *sums, size_t n,
                       const ortc_view *in, int64_t at, void *y)
{
    const size_t lanes = e->channels - block * 16, size = size_of(e->tail);
    ends_rows(e, block, sums, 16, n, 16, in, at, 16, y);
    if (lanes < 16)
        ortc_block_move((char *)y + lanes * size, 16 * size, NULL, 0, (int64_t)n, (16 - lanes) * size);
}

void ortc_int_ends_along(const ortc_int_ends *e, size_t channel, const int32_t *sums, size_t n,
                         const ortc_view *in, int64_t at, void *y)
{
    const size_t left = n % 16, whole = n - left;
    ends_rows(e, channel, sums, 16, whole / 16, 16, in, at, 16, y);
    if (left)
        ends_rows(e, channel, sums + whole, 16, 1, left, in, at + (int64_t)whole, 16,
                  (char *)y + whole * size_of(e->tail));
}

void ortc_int_tail_over(const ortc_int_tail *t, const ortc_view *in, const ortc_tail_place *at, int32_t *sums,
                        size_t ld, void *y, size_t y_ld, size_t rows, size_t cols)
{
    if (t->has_pass) {
        const ortc_int_pass pass = pass_of(t, in, at);
        const size_t apart = y_ld * (t->n_links ? size_of(t) : 1); /* of 8 bits */
        ortc_int_passes_select()->run(&pass, rows, cols, sums, ld, t->has_rest ? (void *)sums : y,
                                      t->has_rest ? ld : apart);
    }
    run_links(t, in, at, sums, ld, y, y_ld, rows, cols);
    if (t->has_rest) run_rest(t, in, at, sums, ld, y, y_ld, rows, cols);
}

/* Whether all blocks of a tile go by fixed point. */
static int all_have(const ortc_int_ends *e, int64_t channel, size_t cols)
{
    int yes = e && channel % 16 == 0;
    for (size_t c = 0; yes && c < cols; c += 16) yes = ortc_int_ends_has(e, ((size_t)channel + c) / 16);
    return yes;
}

void ortc_int_tail_tile(void *arg, int32_t *sums, size_t rows, size_t cols, size_t ld, int64_t row0,
                        int64_t col0)
{
    const ortc_int_run *r = arg;
    const ortc_int_tail *t = r->tail;
    const int by_row = r->channels > 0;
    const ortc_tail_place at = {.channel = by_row ? row0 % r->channels : col0,
                                .channel_row = (size_t)by_row,
                                .channel_col = (size_t)!by_row,
                                .element = row0 * r->width + col0,
                                .row = (size_t)r->width,
                                .col = 1};
    char *y = ortc_product_at(r->y, at.element, t->type);
    if (!all_have(r->ends, at.channel, cols)) {
        ortc_int_tail_over(t, r->in, &at, sums, ld, y, (size_t)r->width, rows, cols);
        return;
    }
    for (size_t c = 0; c < cols; c += 16)
        ends_rows(r->ends, ((size_t)at.channel + c) / 16, sums + c, ld, rows, cols - c < 16 ? cols - c : 16,
                  r->in, at.element + (int64_t)c, (size_t)r->width, y + c * size_of(t));
}
