/* Reading epilogues of integer products, and running them over tiles (integer_tail.h). */
#include "integer_tail.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
    if (t->has_pass && t->type == ORTC_F32 && end == v) return 1;
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

/* One link: of 8 bits, rows `apart` bytes, to others, or to the result, in the same place; wide: as many i32.
 */
static void run_link(const ortc_int_link *l, const ortc_int_vector *by, const ortc_int_vector *bias,
                     const void *residual, size_t residual_row, uint8_t *y, size_t apart, int32_t *wide,
                     size_t ld, size_t rows, size_t cols)
{
    const size_t together = apart == cols ? rows : 1; /* rows that lie beside each other */
    const int is_signed = l->steps.from.type == ORTC_I8, is_wide = !l->steps.y.type || l->steps.again.type;
    for (size_t r = 0; l->has_table && r < rows; r += together)
        ortc_pw_look_up(together * cols, l->table, y + r * apart, y + r * apart);
    if (!l->has_pass) return;
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols; c++)
            wide[r * ld + c] = is_signed ? (int8_t)y[r * apart + c] : y[r * apart + c];
    const ortc_int_pass pass = {.before = {&l->moved.k, 0, 0},
                                .scale = {&l->times.k, 0, 0},
                                .bias = by->data ? (ortc_int_vector){NULL, 0, 0} : *bias,
                                .by = *by,
                                .more = by->data ? *bias : (ortc_int_vector){NULL, 0, 0},
                                .residual = residual,
                                .residual_row = residual_row,
                                .steps = &l->steps,
                                .ends = l->steps.y.type != 0};
    ortc_int_passes_select()->run(&pass, rows, cols, wide, ld, y, is_wide ? apart / sizeof(float) : apart);
}

/* Links over rows of 8 bits at y; the sums are written over. */
static void run_links(const ortc_int_tail *t, const ortc_view *in, const ortc_tail_place *at, int32_t *sums,
                      size_t ld, void *y, size_t y_ld, size_t rows, size_t cols)
{
    const size_t size = t->type == ORTC_F32 ? sizeof(float) : 1;
    for (int32_t i = 0; i < t->n_links; i++) {
        const ortc_int_link *l = &t->links[i];
        const ortc_int_vector by = vector(t, &l->by, in, at), bias = vector(t, &l->bias, in, at);
        run_link(l, &by, &bias, residual_at(l->residual, &l->steps, in, at->element), at->row, y, y_ld * size,
                 sums, ld, rows, cols);
    }
}

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

/* And residuals of links are 8 bits, as those of the pass must be. */
static int links_are_constant(const ortc_int_tail *t, const ortc_view *in)
{
    int yes = 1;
    for (int32_t i = 0; i < t->n_links; i++)
        yes &= is_constant(&t->links[i].by, in) && is_constant(&t->links[i].bias, in) &&
               (t->links[i].residual < 0 || t->links[i].steps.residual.type != ORTC_F32);
    return yes;
}

/* Of 4 bytes; nothing where the vector is left out. */
static void element_of(const ortc_int_vector *v, size_t i, void *out)
{
    if (v->data) memcpy(out, (const char *)v->data + 4 * i * v->col, 4);
}

ortc_int_ends *ortc_int_ends_create(const ortc_int_tail *t, const ortc_view *in, const int32_t *first,
                                    size_t channels)
{
    const ortc_int_blocks *blocks = blocks_get();
    const size_t count = t->n_links ? channels / 16 : (channels + 15) / 16;
    ortc_tail_place at = {.channel_col = 1};
    ortc_int_fixed fixed;
    if (!blocks || !t->has_pass || t->has_rest || !links_are_constant(t, in) ||
        !is_constant(&t->before, in) || !is_constant(&t->scale, in) || !is_constant(&t->bias, in) ||
        !is_constant(&t->by, in) || !is_constant(&t->more, in))
        return NULL;
    ortc_int_pass pass = pass_of(t, in, &at);
    if (!blocks->init(&pass, t->residual >= 0, &fixed)) return NULL;
    ortc_int_ends *e = malloc(sizeof *e + count * sizeof *e->blocks);
    if (!e) return NULL;
    *e = (ortc_int_ends){.tail = t, .fixed = fixed, .channels = channels, .count = count};
    for (size_t k = 0; k < count; k++) {
        int32_t before[16] = {0};
        float scale[16], bias[16] = {0}, by[16], behind[16] = {0};
        at.channel = (int64_t)k * 16;
        pass = pass_of(t, in, &at);
        for (size_t i = 0; i < 16; i++) {
            const size_t c = k * 16 + i < channels ? i : 0; /* what pads ends far from a half */
            int32_t more = 0;
            scale[i] = by[i] = 1;
            element_of(&pass.scale, c, &scale[i]);
            if (c < i) continue;
            element_of(&pass.bias, i, &bias[i]);
            element_of(&pass.by, i, &by[i]);
            element_of(&pass.more, i, &behind[i]);
            element_of(&pass.before, i, &more);
            before[i] = (int32_t)((uint32_t)first[k * 16 + i] + (uint32_t)more);
        }
        pass.before = (ortc_int_vector){before, 0, 1};
        if (pass.scale.data) pass.scale = (ortc_int_vector){scale, 0, 1};
        if (pass.bias.data) pass.bias = (ortc_int_vector){bias, 0, 1};
        if (pass.by.data) pass.by = (ortc_int_vector){by, 0, 1};
        if (pass.more.data) pass.more = (ortc_int_vector){behind, 0, 1};
        if (!blocks->block(&fixed, &pass, &e->blocks[k])) e->blocks[k].near = 0;
        e->taken += e->blocks[k].near != 0;
    }
    return e;
}

void ortc_int_ends_run(const ortc_int_ends *e, size_t block, const int32_t *sums, size_t n,
                       const ortc_view *in, int64_t at, void *y)
{
    const ortc_int_tail *t = e->tail;
    int32_t wide[256 * 16];
    blocks_get()->run(&e->fixed, &e->blocks[block], n, sums, 16, residual_at(t->residual, &t->steps, in, at),
                      y, 16);
    const size_t size = e->fixed.again ? sizeof(float) : 1, lanes = e->channels - block * 16;
    for (size_t i = 0; lanes < 16 && i < n; i++)
        memset((char *)y + (i * 16 + lanes) * size, 0, (16 - lanes) * size);
    if (!t->n_links) return;
    const size_t apart = t->type == ORTC_F32 ? 16 * sizeof(float) : 16;
    for (size_t i = n; apart != 16 && i-- > 1;) memcpy((char *)y + apart * i, (char *)y + 16 * i, 16);
    const ortc_tail_place place = {
        .channel = (int64_t)block * 16, .channel_col = 1, .element = at, .row = 16, .col = 1};
    run_links(t, in, &place, wide, 16, y, 16, n, 16);
}

/* n rows of `lanes` sums, `ld` apart, to y without links, `apart` elements, as are those of the residual. */
static void ends_rows(const ortc_int_ends *e, size_t block, const int32_t *sums, size_t ld, size_t n,
                      size_t lanes, const char *residual, char *y, size_t apart)
{
    enum { MOST = 64 };
    const size_t size = e->fixed.again ? sizeof(float) : 1;
    for (size_t i = 0, some; i < n; i += some, y += some * apart * size) {
        some = n - i < MOST ? n - i : MOST;
        const char *more = residual ? residual + i * apart : NULL;
        if (lanes == 16) {
            blocks_get()->run(&e->fixed, &e->blocks[block], some, sums + i * ld, ld, more, y, apart);
            continue;
        }
        int32_t own[MOST * 16];
        char beside[MOST * 16], ends[MOST * 16 * sizeof(float)];
        memset(own, 0, some * 16 * sizeof *own);
        if (more) memset(beside, 0, some * 16);
        for (size_t r = 0; r < some; r++) {
            memcpy(own + r * 16, sums + (i + r) * ld, lanes * sizeof *own);
            if (more) memcpy(beside + r * 16, more + r * apart, lanes);
        }
        blocks_get()->run(&e->fixed, &e->blocks[block], some, own, 16, more ? beside : NULL, ends, 16);
        for (size_t r = 0; r < some; r++) memcpy(y + r * apart * size, ends + r * 16 * size, lanes * size);
    }
}

void ortc_int_tail_over(const ortc_int_tail *t, const ortc_view *in, const ortc_tail_place *at, int32_t *sums,
                        size_t ld, void *y, size_t y_ld, size_t rows, size_t cols)
{
    const size_t size = t->type == ORTC_F32 ? sizeof(float) : 1; /* of a result with links */
    if (t->has_pass) {
        const ortc_int_pass pass = pass_of(t, in, at);
        const size_t apart = y_ld * (t->n_links ? size : 1); /* of 8 bits */
        ortc_int_passes_select()->run(&pass, rows, cols, sums, ld, t->has_rest ? (void *)sums : y,
                                      t->has_rest ? ld : apart);
    }
    run_links(t, in, at, sums, ld, y, y_ld, rows, cols);
    if (t->has_rest) run_rest(t, in, at, sums, ld, y, y_ld, rows, cols);
}

enum { TOGETHER = 8192 }; /* bytes */

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
    if (!all_have(r->ends, at.channel, cols) || cols > TOGETHER / sizeof(float) ||
        (t->n_links && t->residual >= 0)) { /* whose rows are apart */
        ortc_int_tail_over(t, r->in, &at, sums, ld, y, (size_t)r->width, rows, cols);
        return;
    }
    const char *residual = residual_at(t->residual, &t->steps, r->in, at.element);
    const size_t size = r->ends->fixed.again ? sizeof(float) : 1;
    char own[TOGETHER]; /* with links: a tile's rows beside each other, as tables like them */
    const size_t out = t->type == ORTC_F32 ? sizeof(float) : 1,
                 most = t->n_links ? TOGETHER / out / cols : rows;
    for (size_t i = 0, some; i < rows; i += some, sums += some * ld) {
        some = rows - i < most ? rows - i : most;
        char *to = t->n_links ? own : y;
        const size_t apart = t->n_links ? cols * out : (size_t)r->width;
        for (size_t c = 0; c < cols; c += 16)
            ends_rows(r->ends, ((size_t)at.channel + c) / 16, sums + c, ld, some,
                      cols - c < 16 ? cols - c : 16, residual ? residual + c : NULL, to + c * size, apart);
        if (!t->n_links) continue; /* all rows were done */
        ortc_tail_place here = at;
        here.element += (int64_t)i * r->width;
        run_links(t, r->in, &here, sums, ld, own, cols, some, cols);
        for (size_t k = 0; k < some; k++, y += (size_t)r->width * out)
            memcpy(y, own + k * cols * out, cols * out);
    }
}
