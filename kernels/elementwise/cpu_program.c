/* kernels/elementwise/cpu_program.c: pointwise programs on the cpu provider: single operators and groups
 * of them.
 *
 * Dims are merged over the result and every input that the program reads; then an input lies beside the
 * result, is one element along each row, or something in between. Long rows are cut into pieces, a task
 * each; an input that stays along them is a block filled once a piece, and so is one that goes round in a
 * number of elements that divides a block, as vectors per channel do where channels are in blocks. Where
 * rows are short, pieces go on over their ends, and what does not lie beside the result is first laid out
 * so in the worker's scratch, converted to registers. The end of a piece, less than a block, goes through
 * copies in scratch. How a result is cut depends on shapes alone, and no element on another. In other
 * layouts the dims are those of memory, of the result and of what has its shape; anything else is plain,
 * where it lies in memory as if it were in that layout: scalars, vectors per channel, what has extent 1
 * behind its channels.
 */
#include <stdlib.h>

#include "kernels/common/layout.h"
#include "kernels/common/shape.h"
#include "kernels/common/vector/convert.h"
#include "kernels/elementwise/program.h"

ORTC_VEC_TABLE(ortc_pw_body)

enum {
    PIECE = 8192,       /* elements of a task, at most */
    LAID_OUT = 1024,    /* the same where inputs are laid out in scratch */
    SHORT = 256,        /* rows of fewer elements are not cut apart */
    TASK = 32768,       /* elements of a chunk, where they are cheap */
    TABLE_COUNT = 4096, /* elements from which on, and lines, a table of bytes is worth making */
    TABLE_LINES = 6,
    MOST_IN = ORTC_PW_INPUTS
};
enum { ABSENT, BESIDE, STAYS, ROUND, LAID };
enum { NO_TABLE, OF_A_BYTE, OF_FLAGS };

/* How an input lies along the result: the result's dims, merged as far as this input lets them. */
typedef struct lie {
    int32_t rank;
    int64_t dims[ORTC_RANK_LIMIT], step[ORTC_RANK_LIMIT]; /* elements */
} lie;

typedef struct program_plan {
    const ortc_pw_body *body;
    size_t block;                /* elements */
    int64_t rows, width, pieces; /* rows of `width` elements, cut into pieces */
    int64_t piece;
    uint8_t how[MOST_IN];
    int by_table;  /* how many bytes become another: the program makes a table of them, once a run */
    int64_t count; /* elements in memory */
    int64_t round; /* elements in which ROUND inputs go round */
    size_t constants, temps, spill, blocks, tails, laid, bytes; /* places in scratch */
    size_t filled_up[MOST_IN]; /* bytes from here to a constant that is; 0: none */
    lie lies[];                /* of each input */
} program_plan;

typedef struct program_job {
    const ortc_pw_code *code;
    const program_plan *plan;
    const ortc_view *in;
    const ortc_view *out;
    uint8_t *table; /* by_table */
} program_job;

static size_t bytes_of(ortc_dtype t) { return ortc_dtype_bits(t) / 8; }

static const char *data_of(const program_job *j, uint32_t k)
{
    const size_t at = j->plan->filled_up[k];
    return at ? (const char *)j->plan + at : j->in[k].data;
}

/* ---- Preparing ----------------------------------------------------------------------------------------- */

static ortc_status supports(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    const ortc_pointwise *p = ortc_node_program(n);
    const char *reason = "it has no program for these types";
    ortc_pw_code code;
    (void)device;
    return p && ortc_pw_lower(p, &code, &reason) ? ORTC_OK : ortc_no(why, "%s", reason);
}

static ortc_status prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const ortc_pointwise *p = ortc_node_program(n);
    const char *why = "";
    ortc_pw_code *code = malloc(sizeof *code);
    if (!p || !code) { /* the program is made when it is asked for */
        free(code);
        return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for a program");
    }
    if (!ortc_pw_lower(p, code, &why)) {
        free(code);
        return ortc_prep_fail(prep, ORTC_INTERNAL, "%s", why);
    }
    *out = code;
    return ORTC_OK;
}

/* ---- Planning ------------------------------------------------------------------------------------------ */

static bool same_shape(const ortc_view *a, const ortc_view *b)
{
    return a->rank == b->rank && !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims);
}

/* The inputs as the program loads them: with more dims of 1 behind their own. */
typedef struct loaded {
    ortc_view in[MOST_IN];
    int64_t dims[MOST_IN][ORTC_RANK_LIMIT];
} loaded;

static void as_loaded(const ortc_pw_code *code, const ortc_view *in, uint32_t n_in, loaded *l)
{
    for (uint32_t k = 0; k < code->n_in && k < n_in; k++) {
        ortc_view *x = &l->in[k];
        *x = in[k];
        if (!code->in[k] || !code->behind[k]) continue;
        memcpy(l->dims[k], x->dims, (size_t)x->rank * sizeof *x->dims);
        for (uint32_t d = 0; d < code->behind[k]; d++) l->dims[k][x->rank++] = 1;
        x->dims = l->dims[k];
    }
}

/* An input's extents, as many as the result has. */
static void extents(const ortc_view *x, const ortc_view *y, int64_t *out)
{
    for (int32_t d = 0; d < y->rank; d++)
        out[d] = d < y->rank - x->rank ? 1 : x->dims[d - (y->rank - x->rank)];
}

/* A plain constant of these extents is filled up where the last block of layout l is not full, before runs;
 * returns whether, and `all` is as it is then. */
static bool fill_up(const ortc_view *x, ortc_layout l, int64_t *all)
{
    const int64_t block = ortc_layout_block(l), extent = block ? all[ortc_layout_axis(l)] : 1;
    if (!(x->flags & ORTC_VIEW_CONST) || extent == 1 || extent % block == 0) return false;
    all[ortc_layout_axis(l)] = (extent + block - 1) / block * block;
    return true;
}

/* Whether an input goes along with a layout of the result, and how it is to lie: *wanted. */
static bool along(const ortc_view *x, const ortc_view *y, ortc_layout l, ortc_layout *wanted)
{
    int64_t all[ORTC_RANK_LIMIT], dims[ORTC_RANK_LIMIT];
    const int32_t axis = ortc_layout_axis(l);
    extents(x, y, all);
    fill_up(x, l, all);
    const bool whole = same_shape(x, y) ||
                       (x->rank == y->rank && ortc_layout_block(l) && x->dims[axis] == y->dims[axis]);
    *wanted = whole && !(x->flags & ORTC_VIEW_CONST) ? l : ORTC_PLAIN;
    return *wanted || ortc_layout_broadcast(l, y->rank, all, dims);
}

/* The shapes that memory has, where the result is in another layout. */
typedef struct shapes {
    ortc_view y, in[MOST_IN];
    bool filled_up[MOST_IN];
    int64_t dims[MOST_IN + 1][ORTC_RANK_LIMIT];
} shapes;

static void in_memory(const ortc_pw_code *code, const ortc_view *in, const ortc_view *y, shapes *s)
{
    int64_t all[ORTC_RANK_LIMIT];
    s->y = *y;
    s->y.layout = ORTC_PLAIN;
    ortc_layout_dims(y->layout, y->rank, y->dims, &s->y.rank, s->dims[MOST_IN]);
    s->y.dims = s->dims[MOST_IN];
    for (uint32_t k = 0; k < code->n_in; k++) {
        s->in[k] = in[k];
        s->filled_up[k] = false;
        if (!code->in[k]) continue;
        extents(&in[k], y, all);
        if (!in[k].layout) s->filled_up[k] = fill_up(&in[k], y->layout, all);
        s->in[k].rank = s->y.rank;
        s->in[k].dims = s->dims[k];
        if (in[k].layout)
            ortc_layout_dims(y->layout, y->rank, all, &s->in[k].rank, s->dims[k]);
        else
            ortc_layout_broadcast(y->layout, y->rank, all, s->dims[k]);
    }
}

/* Whether it is about floats, or bytes that come from them or from bytes, whatever these are. */
static bool is_total(const ortc_pw_code *code, ortc_dtype y)
{
    if (ortc_class_of(y) == ORTC_CLASS_FLOAT) return true;
    for (uint32_t i = 0; i < code->n; i++)
        if (code->lines[i].op == ORTC_PWL_each2_i || code->lines[i].op == ORTC_PWL_each2_l ||
            code->lines[i].op == ORTC_PWL_small)
            return false;
    return code->element == 4 && ortc_dtype_bits(y) == 8;
}

static ortc_status choose(const void *state, const ortc_question *q, ortc_offer *o, ortc_why *why)
{
    const ortc_pw_code *code = state;
    const ortc_view *y = &q->out[0];
    double bytes = (double)ortc_view_count(y) * (double)bytes_of(y->dtype);
    const bool other = q->layout != ORTC_PLAIN;
    if (q->layout == ORTC_ANY_LAYOUT) return ortc_no(why, "it goes along with others");
    /* what fills up blocks is computed, too: of integers nothing may be divided */
    if (other && (y->rank > 8 || ortc_layout_axis(q->layout) >= y->rank || !is_total(code, y->dtype)))
        return ortc_no(why, "not in this layout");
    loaded own;
    as_loaded(code, q->in, q->n_in, &own);
    for (uint32_t k = 0; k < q->n_in && k < code->n_in; k++) {
        if (!code->in[k]) continue;
        bytes += (double)ortc_view_count(&q->in[k]) * (double)bytes_of(code->in[k]);
        if (other && !along(&own.in[k], y, q->layout, &o->in[k]))
            return ortc_no(why, "input %u lies otherwise", k);
    }
    o->out[0] = q->layout;
    o->clocks = 0.08 * bytes + (double)ortc_view_count(y) * (0.06 * code->n + 0.5 * code->heavy);
    return ORTC_OK;
}

/* An operator's own shapes say so; whoever reads by strides looks all the same. */
static bool broadcasts(const ortc_view *x, const ortc_view *y)
{
    for (int32_t i = 1; i <= x->rank; i++) {
        const int64_t n = x->dims[x->rank - i];
        if (n != 1 && (i > y->rank || n != y->dims[y->rank - i])) return false;
    }
    return true;
}

/* The dims that all inputs have in common, merged, and their steps there. */
typedef struct common {
    int32_t rank;
    int64_t dims[ORTC_RANK_LIMIT], step[MOST_IN][ORTC_RANK_LIMIT];
} common;

/* Merges dims that lie together in every input, as ortc_walk_merge does. */
static void merge(const ortc_pw_code *code, const ortc_view *in, const ortc_view *y, common *g)
{
    int32_t kept = 0;
    for (uint32_t k = 0; k < code->n_in; k++) {
        int64_t n = 1;
        for (int32_t d = y->rank - 1; code->in[k] && d >= 0; d--) {
            const int32_t own = d - (y->rank - in[k].rank);
            g->step[k][d] = own >= 0 && in[k].dims[own] != 1 ? n : 0;
            n *= own >= 0 ? in[k].dims[own] : 1;
        }
    }
    for (int32_t d = 0; d < y->rank; d++) {
        bool joins = kept > 0;
        if (y->dims[d] == 1) continue;
        for (uint32_t k = 0; joins && k < code->n_in; k++)
            joins = !code->in[k] || g->step[k][kept - 1] == g->step[k][d] * y->dims[d];
        g->dims[joins ? kept - 1 : kept] = joins ? g->dims[kept - 1] * y->dims[d] : y->dims[d];
        kept += !joins;
        for (uint32_t k = 0; k < code->n_in; k++) g->step[k][kept - 1] = g->step[k][d];
    }
    if (kept == 0) g->dims[kept++] = 1;
    g->rank = kept;
}

/* The last two dims become one row where every input that does not lie so goes round in the last one. */
static void go_round(const ortc_pw_code *code, common *c, program_plan *g)
{
    const int32_t last = c->rank - 1;
    if (last < 1 || c->dims[last] >= SHORT || c->dims[last] * c->dims[last - 1] < SHORT ||
        g->block % (size_t)c->dims[last] != 0)
        return;
    for (uint32_t k = 0; k < code->n_in; k++)
        if (code->in[k] && c->step[k][last - 1] != c->step[k][last] * c->dims[last] &&
            (c->step[k][last] != 1 || c->step[k][last - 1] != 0))
            return;
    for (uint32_t k = 0; k < code->n_in; k++) {
        if (!code->in[k]) continue;
        if (c->step[k][last] == 1 && c->step[k][last - 1] == 0) g->how[k] = ROUND;
        c->step[k][last - 1] = g->how[k] == ROUND ? 0 : c->step[k][last];
    }
    g->round = c->dims[last];
    c->dims[last - 1] *= c->dims[last];
    c->rank = last;
}

/* What input k lets be merged beyond what all have in common. */
static void lie_along(const common *c, uint32_t k, lie *l)
{
    for (int32_t d = 0; d < c->rank; d++) {
        const bool joins = l->rank > 0 && l->step[l->rank - 1] == c->step[k][d] * c->dims[d];
        l->rank += !joins;
        l->dims[l->rank - 1] = joins ? l->dims[l->rank - 1] * c->dims[d] : c->dims[d];
        l->step[l->rank - 1] = c->step[k][d];
    }
}

static size_t take(program_plan *g, size_t bytes)
{
    const size_t at = g->bytes;
    g->bytes += (bytes + 63) & ~(size_t)63;
    return at;
}

/* Whether what an element becomes depends on one byte beside it, or on up to two flags, and else on
 * scalars. */
static int table_of(const ortc_pw_code *code, const program_plan *g, const ortc_view *in, int64_t count)
{
    int bytes = 0, flags = 0;
    for (uint32_t k = 0; k < code->n_in; k++) {
        if (!code->in[k]) continue;
        if (g->how[k] == BESIDE && ortc_dtype_bits(code->in[k]) == 8 && ortc_view_count(&in[k]) == count)
            bytes++, flags += code->in[k] == ORTC_BOOL;
        else if (ortc_view_count(&in[k]) != 1)
            return NO_TABLE;
    }
    if (count < TABLE_COUNT || ortc_dtype_bits(code->out) != 8 || !bytes || bytes > 2) return NO_TABLE;
    if (flags == bytes) return OF_FLAGS;
    return bytes == 1 && code->n >= TABLE_LINES ? OF_A_BYTE : NO_TABLE;
}

/* Constants of a last block that is not full, as in_memory has them: rows of `from` elements become rows of
 * `to`, behind the plan. */
static void copy_filled_up(const ortc_view *x, int64_t from, int64_t to, size_t size, char *dst)
{
    const int64_t rows = ortc_view_count(x) / from;
    const char *src = x->data;
    for (int64_t r = 0; r < rows; r++, src += (size_t)from * size, dst += (size_t)to * size)
        memcpy(dst, src, (size_t)from * size); /* the rest is 0 */
}

/* The plan, with room for such constants. */
static program_plan *make(const ortc_pw_code *code, const ortc_plan *p, const shapes *memory)
{
    const ortc_layout l = p->out[0].layout;
    size_t bytes = (sizeof(program_plan) + code->n_in * sizeof(lie) + 63) / 64 * 64, at[MOST_IN] = {0};
    for (uint32_t k = 0; l && k < code->n_in; k++) {
        if (!code->in[k] || !memory->filled_up[k]) continue;
        at[k] = bytes;
        bytes += ((size_t)ortc_view_count(&memory->in[k]) * bytes_of(code->in[k]) + 63) / 64 * 64;
    }
    program_plan *g = calloc(1, bytes);
    for (uint32_t k = 0; g && k < code->n_in; k++) {
        if (!at[k]) continue;
        g->filled_up[k] = at[k];
        const int64_t extent = p->out[0].dims[ortc_layout_axis(l)], block = ortc_layout_block(l);
        copy_filled_up(&p->in[k], extent, (extent + block - 1) / block * block, bytes_of(code->in[k]),
                       (char *)g + at[k]);
    }
    return g;
}

static ortc_status plan(const void *state, ortc_plan *p, void **out)
{
    const ortc_pw_code *code = state;
    loaded own;
    shapes memory;
    common c;
    as_loaded(code, p->in, p->n_in, &own);
    const ortc_view *y = &p->out[0], *in = own.in;
    for (uint32_t k = 0; k < p->n_in && k < code->n_in; k++)
        if (code->in[k] && !broadcasts(&in[k], y))
            return ortc_plan_fail(p, ORTC_SHAPE_MISMATCH, "input %u does not broadcast to the result", k);
    if (y->layout) {
        in_memory(code, in, y, &memory);
        in = memory.in;
        y = &memory.y;
    }
    const int64_t count = ortc_view_count(y);
    program_plan *g = make(code, p, &memory);
    double bytes = (double)count * (double)bytes_of(y->dtype);
    if (!g) return ortc_plan_fail(p, ORTC_OUT_OF_MEMORY, "no memory for a plan");
    *out = g;
    for (uint32_t k = 0; k < p->n_in && k < code->n_in; k++)
        if (code->in[k]) {
            ortc_plan_in_place(p, 0, k);
            bytes += (double)ortc_view_count(&p->in[k]) * (double)bytes_of(code->in[k]);
        }
    ortc_plan_cost(p, (double)count * (code->n + 20.0 * code->heavy), bytes);
    if (count == 0) return ORTC_OK;
    g->count = count;
    g->body = ortc_pw_body_select();
    g->block = g->body->bytes / code->element;
    merge(code, in, y, &c);
    go_round(code, &c, g);
    g->width = c.dims[c.rank - 1];
    const bool flat = c.rank == 1 || g->width < SHORT; /* pieces go over the ends of rows */
    bool laid = false;
    for (uint32_t k = 0; k < code->n_in; k++) {
        if (!code->in[k]) continue;
        lie *l = &g->lies[k];
        lie_along(&c, k, l);
        if (g->how[k] == ROUND) continue;
        const bool beside = (l->rank == 1 && l->step[0] == 1) || count == 1;
        g->how[k] = beside || (!flat && l->step[l->rank - 1] == 1) ? BESIDE
                    : !flat || ortc_view_count(&in[k]) == 1        ? STAYS
                                                                   : LAID;
        laid |= g->how[k] == LAID;
    }
    g->by_table = table_of(code, g, in, count);
    if (flat) g->width = count;
    g->rows = count / g->width;
    g->piece = laid ? LAID_OUT : PIECE;
    g->pieces = (g->width + g->piece - 1) / g->piece;
    g->constants = take(g, code->n_constants * g->body->bytes);
    g->temps = take(g, code->n_temps * g->body->bytes);
    g->spill = take(g, g->body->bytes);
    g->blocks = take(g, code->n_in * g->body->bytes);
    g->tails = take(g, (code->n_in + 1) * g->body->bytes);
    g->laid = take(g, laid ? code->n_in * LAID_OUT * (size_t)code->element : 0);
    ortc_plan_workspace(p, 0, g->bytes);
    return ORTC_OK;
}

/* ---- Running ------------------------------------------------------------------------------------------- */

/* An element as a register holds it. */
static int64_t register_of(ortc_dtype t, const void *x, int64_t at)
{
    int32_t bits;
    if (t == ORTC_F64) return ortc_load_i64(x, ORTC_I64, at);
    if (ortc_class_of(t) != ORTC_CLASS_FLOAT) return ortc_load_i64(x, t, at);
    const float f = (float)ortc_load_f64(x, t, at);
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

/* n registers of the same bits. Lines of a few are many: whole vectors, the last one up to the end. */
static inline void fill(uint32_t element, int64_t bits, int64_t n, char *to)
{
    typedef int64_t line __attribute__((vector_size(16)));
    const int64_t all = n * element;
    if (element == 4) bits = (int64_t)((uint64_t)bits << 32 | (uint32_t)bits);
    const line x = {bits, bits};
    if (all < (int64_t)sizeof x) {
        for (int64_t at = 0; at < all; at += element) memcpy(to + at, &x, element);
        return;
    }
    for (int64_t at = 0; at + (int64_t)sizeof x <= all; at += (int64_t)sizeof x)
        memcpy(to + at, &x, sizeof x);
    memcpy(to + all - sizeof x, &x, sizeof x);
}

/* n registers for the elements of x from `at` on, `step` apart: 0 or 1. */
static void to_registers(ortc_dtype t, uint32_t element, const void *x, int64_t at, int64_t step, int64_t n,
                         void *to)
{
    if (step == 0)
        fill(element, register_of(t, x, at), n, to);
    else if (ortc_dtype_bits(t) == 8 * element) /* a register is what lies there */
        memcpy(to, (const char *)x + at * element, (size_t)n * element);
    else if (ortc_class_of(t) == ORTC_CLASS_FLOAT)
        ortc_convert_get()->widen[ortc_float_index(t)]((size_t)n, (const uint16_t *)x + at, to);
    else
        for (int64_t i = 0; i < n; i++) {
            const int64_t bits = register_of(t, x, at + i);
            memcpy((char *)to + i * element, &bits, element);
        }
}

/* Where the element of an input for the result's at `position` is; index: its place in each dim. */
static int64_t place_of(const lie *l, int64_t position, int64_t *index)
{
    int64_t at = 0;
    for (int32_t d = l->rank - 1; d >= 0; d--) {
        index[d] = position % l->dims[d];
        position /= l->dims[d];
        at += index[d] * l->step[d];
    }
    return at;
}

/* Where a run is one element that is no register yet, some of the next runs' are made to registers with it if
 * they lie behind it. */
static void lay_out(const program_job *j, uint32_t k, int64_t position, int64_t n, char *to)
{
    enum { AHEAD = 64 };
    const lie *l = &j->plan->lies[k];
    const int32_t last = l->rank - 1;
    const int64_t step = l->step[last];
    const uint32_t element = j->code->element;
    const bool spread = step == 0 && ortc_dtype_bits(j->code->in[k]) == 8 * element,
               beside = last > 0 && l->step[last - 1] == 1;
    const char *x = data_of(j, k);
    int64_t index[ORTC_RANK_LIMIT], at = place_of(l, position, index), ahead[AHEAD], held = 0, used = 0;
    while (n > 0) {
        const int64_t left = l->dims[last] - index[last], some = left < n ? left : n;
        if (spread && element == 4) {
            fill(4, ortc_load_i64(x, ORTC_I32, at), some, to);
        } else if (spread) {
            fill(8, ortc_load_i64(x, ORTC_I64, at), some, to);
        } else if (step == 0) {
            if (used == held) {
                const int64_t more = beside ? l->dims[last - 1] - index[last - 1] : 1;
                held = more < AHEAD ? more : AHEAD, used = 0;
                to_registers(j->code->in[k], element, x, at, 1, held, ahead);
            }
            if (element == 4)
                fill(4, ortc_load_i64(ahead, ORTC_I32, used++), some, to);
            else
                fill(8, ahead[used++], some, to);
        } else {
            to_registers(j->code->in[k], element, x, at, step, some, to);
        }
        to += some * element;
        n -= some;
        at -= index[last] * step;
        index[last] = 0;
        for (int32_t d = last - 1; d >= 0; d--) {
            at += l->step[d];
            if (++index[d] < l->dims[d]) break;
            at -= l->dims[d] * l->step[d];
            index[d] = 0;
        }
    }
}

/* Whether input k is one block along a row. */
static bool in_block(const program_plan *g, uint32_t k) { return g->how[k] == STAYS || g->how[k] == ROUND; }

/* An operand's address and step: inputs by `base`, blocks by their places in scratch. */
static void operand(const program_job *j, uint8_t code, char *scratch, char **p, size_t *step)
{
    const program_plan *g = j->plan;
    const size_t block = g->body->bytes;
    *step = 0;
    if (code == ORTC_PWO_NONE || code == ORTC_PWO_SPILL) {
        *p = scratch + g->spill;
    } else if (code == ORTC_PWO_OUT) {
        *step = bytes_of(j->code->out);
    } else if (code >= ORTC_PWO_CONSTANT) {
        *p = scratch + g->constants + (size_t)(code - ORTC_PWO_CONSTANT) * block;
    } else if (code >= ORTC_PWO_TEMP) {
        *p = scratch + g->temps + (size_t)(code - ORTC_PWO_TEMP) * block;
    } else {
        *step = in_block(g, code) ? 0 : g->how[code] == LAID ? j->code->element : bytes_of(j->code->in[code]);
    }
}

static bool is_row(uint8_t code) { return code < ORTC_PWO_TEMP || code == ORTC_PWO_OUT; }

static void connect(const program_job *j, ortc_pw_op *ops, char *scratch)
{
    const ortc_pw_code *code = j->code;
    for (uint32_t i = 0; i < code->n; i++) {
        const ortc_pw_line *line = &code->lines[i];
        const bool converted = line->p < ORTC_PWO_TEMP && j->plan->how[line->p] != BESIDE;
        memset(&ops[i], 0, sizeof ops[i]);
        ops[i].fn = j->plan->body->fn[converted && line->op < ORTC_PWL_store ? ORTC_PWL_load : line->op];
        operand(j, line->p, scratch, &ops[i].p, &ops[i].p_step);
        operand(j, line->q, scratch, &ops[i].q, &ops[i].q_step);
        ortc_pw_each(line->each, &ops[i]);
    }
    memset(&ops[code->n], 0, sizeof *ops);
    for (uint32_t k = 0; k < code->n_constants; k++)
        fill(code->element, code->constants[k], (int64_t)j->plan->block,
             scratch + j->plan->constants + k * j->plan->body->bytes);
}

/* Rows begin at these addresses: base[k] of input k, out. */
static void aim(const ortc_pw_code *code, ortc_pw_op *ops, char *const *base, char *out)
{
    for (uint32_t i = 0; i < code->n; i++) {
        const ortc_pw_line *line = &code->lines[i];
        if (is_row(line->p)) ops[i].p = line->p == ORTC_PWO_OUT ? out : base[line->p];
        if (is_row(line->q)) ops[i].q = line->q == ORTC_PWO_OUT ? out : base[line->q];
    }
}

/* What input k has along a row that begins at its element `from`. */
static void fill_block(const program_job *j, uint32_t k, int64_t from, char *to)
{
    const program_plan *g = j->plan;
    const int64_t n = (int64_t)g->block, each = g->how[k] == ROUND ? g->round : n;
    const size_t bytes = (size_t)each * j->code->element;
    to_registers(j->code->in[k], j->code->element, data_of(j, k), from, g->how[k] == ROUND, each, to);
    for (int64_t i = each; i < n; i += each) memcpy(to + (size_t)i * j->code->element, to, bytes);
}

/* The last elements of a piece, less than a block of them. */
static void run_tail(const program_job *j, ortc_pw_op *ops, char **base, char *out, size_t n, char *scratch)
{
    const program_plan *g = j->plan;
    char *tail = scratch + g->tails;
    for (uint32_t k = 0; k < j->code->n_in; k++) {
        const size_t bytes = n * (g->how[k] == LAID ? j->code->element : bytes_of(j->code->in[k]));
        if (!j->code->in[k] || in_block(g, k)) continue;
        memcpy(tail + k * g->body->bytes, base[k], bytes);
        memset(tail + k * g->body->bytes + bytes, 0, g->body->bytes - bytes);
        base[k] = tail + k * g->body->bytes;
    }
    tail += j->code->n_in * g->body->bytes;
    aim(j->code, ops, base, tail);
    g->body->run(ops, g->block, g->block);
    memcpy(out, tail, n * bytes_of(j->code->out));
}

static void chunk(void *arg, int64_t begin, int64_t end, void *scratch_)
{
    const program_job *j = arg;
    const program_plan *g = j->plan;
    const ortc_pw_code *code = j->code;
    ortc_pw_op ops[ORTC_PW_LINES_MAX + 1];
    char *base[MOST_IN] = {NULL}, *scratch = scratch_;
    connect(j, ops, scratch);
    for (int64_t task = begin; task < end; task++) {
        const int64_t at = task % g->pieces * g->piece, row = task / g->pieces;
        const int64_t n = g->width - at < g->piece ? g->width - at : g->piece, position = row * g->width + at;
        const size_t whole = (size_t)n / g->block * g->block;
        char *out = (char *)j->out->data + (size_t)position * bytes_of(code->out);
        for (uint32_t k = 0; k < code->n_in; k++) {
            int64_t index[ORTC_RANK_LIMIT];
            if (!code->in[k]) continue;
            if (g->how[k] == LAID) {
                base[k] = scratch + g->laid + k * LAID_OUT * (size_t)code->element;
                lay_out(j, k, position, n, base[k]);
                continue;
            }
            const int64_t from = place_of(&g->lies[k], position, index);
            base[k] = (char *)(uintptr_t)data_of(j, k) + (size_t)from * bytes_of(code->in[k]);
            if (!in_block(g, k)) continue;
            base[k] = scratch + g->blocks + k * g->body->bytes;
            if (task == begin || (at == 0 && g->rows > 1)) fill_block(j, k, from, base[k]);
        }
        aim(code, ops, base, out);
        g->body->run(ops, whole, g->block);
        if (whole == (size_t)n) continue;
        for (uint32_t k = 0; k < code->n_in; k++)
            if (code->in[k] && !in_block(g, k))
                base[k] += whole * (g->how[k] == LAID ? code->element : bytes_of(code->in[k]));
        run_tail(j, ops, base, out + whole * bytes_of(code->out), (size_t)n - whole, scratch);
    }
}

/* ---- By a table ---------------------------------------------------------------------------------------- */

enum { BYTES = 256 };

static void table_chunk(void *arg, int64_t begin, int64_t end, void *scratch_)
{
    const program_job *j = arg;
    const program_plan *g = j->plan;
    ortc_pw_op ops[ORTC_PW_LINES_MAX + 1];
    char *base[MOST_IN] = {NULL}, *scratch = scratch_;
    uint8_t all[BYTES], first[BYTES], second[BYTES], *next = g->by_table == OF_A_BYTE ? all : first;
    (void)begin, (void)end;
    for (int i = 0; i < BYTES; i++) all[i] = (uint8_t)i, first[i] = i >> 1 & 1, second[i] = i & 1;
    connect(j, ops, scratch);
    for (uint32_t k = 0; k < j->code->n_in; k++) {
        if (!j->code->in[k]) continue;
        base[k] = g->how[k] == BESIDE ? (char *)next : scratch + g->blocks + k * g->body->bytes;
        if (g->how[k] == BESIDE) next = second;
        if (g->how[k] != BESIDE) fill_block(j, k, 0, base[k]);
    }
    aim(j->code, ops, base, (char *)j->table);
    g->body->run(ops, BYTES, g->block);
}

static void look_up_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const program_job *j = arg;
    const ortc_pw_body *body = j->plan->body;
    const uint8_t *x[2] = {NULL, NULL};
    const size_t n = (size_t)(end - begin);
    uint8_t *y = (uint8_t *)j->out->data + begin;
    int found = 0;
    (void)scratch;
    for (uint32_t k = 0; k < j->code->n_in; k++)
        if (j->code->in[k] && j->plan->how[k] == BESIDE) x[found++] = (const uint8_t *)j->in[k].data + begin;
    if (j->plan->by_table == OF_FLAGS)
        body->look_up_flags(n, j->table, x[0], x[found - 1], y);
    else
        body->look_up(n, j->table, x[0], y);
}

static ortc_status run_by_table(program_job *j, ortc_call *c)
{
    uint8_t table[BYTES];
    j->table = table;
    ORTC_TRY(ortc_parallel(c, 1, 1, table_chunk, j));
    return ortc_parallel(c, j->plan->count, 2 * TASK, look_up_chunk, j);
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    const program_plan *g = pstate;
    const ortc_pw_code *code = state;
    program_job j = {code, g, c->in, &c->out[0], NULL};
    if (!g->body) return ORTC_OK; /* no elements */
    const int64_t piece = g->width < g->piece ? g->width : g->piece;
    const int64_t elements = TASK / (1 + code->heavy);
    const ortc_status s = g->by_table
                              ? run_by_table(&j, c)
                              : ortc_parallel(c, g->rows * g->pieces, elements / (piece + 16) + 1, chunk, &j);
    if (j.out->layout) ortc_layout_zero_rest(j.out);
    return s;
}

static const ortc_kernel ortc_cpu_program = {.size = ORTC_SIZED(ortc_kernel),
                                             .flags = ORTC_KERNEL_LAYOUTS,
                                             .name = "program.cpu",
                                             .supports = supports,
                                             .prepare = prepare,
                                             .plan = plan,
                                             .run = run,
                                             .choose = choose};

/* Of every operator that expands: placement asks this kernel about its program. */
ORTC_KERNELS(cpu, program, ORTC_KERNEL_IN("ortc", "Group", 1, 1, (ORTC_TYPES_ANY), &ortc_cpu_program));
