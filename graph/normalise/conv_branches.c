/* graph/normalise/conv_branches.c: what is linear beside a Conv with constant weights, and added to its
 * result, goes into its weights, and so does what is done to the result on the way:
 *
 *   conv(x, W) + branch(x)                   or less a branch
 *       branch: x itself, BatchNormalization(x), or a Conv of x whose taps are among this one's
 *   conv(x, W) * f + c                       f, c constant: a number, or one a channel (/ and - as well)
 *
 * Networks that are trained with parallel branches are often exported with them (RepVGG, MobileOne, RepViT,
 * FastViT). A Conv whose result others read stays, and so do SAME_UPPER and SAME_LOWER.
 *
 * Source: Ding et al., "RepVGG: Making VGG-style ConvNets Great Again", section 3.3. Computed in double and
 * rounded at each step, of half precision to f32, and once to it; where that leaves its range, and where
 * factors are no numbers of a usual size, all stays.
 */
#include "weights.h"
#include "windows.h"

#define LARGEST 0x1p40 /* of factors; as much below 1 */

/* y[m] = sum of W[m][c] x[c of its group] + b[m]; axes behind the last have one tap. */
typedef struct linear {
    ortc_dtype t;
    int64_t filters, group, channels; /* channels: of a group */
    ortc_window_axis axes[ORTC_MAX_WINDOW_DIMS];
    const ortc_constant *w, *b; /* W NULL: x by channel, b NULL: zeros */
    bool normalises;            /* w NULL: by this; else as it is */
    ortc_batchnorm norm;
} linear;

static const ortc_window_axis one_tap = {1, 1, 1, 0, 0};

static bool read_conv(const ortc_node *n, linear *l)
{
    if (!ortc_match_is(n, "Conv") || !n->in[0] || !n->out[0]) return false;
    const ortc_edge *we = ortc_node_in_edge(n, 1), *be = ortc_node_in_edge(n, 2);
    if (!we || !ortc_edge_is_const(we) || (be && !ortc_edge_is_const(be))) return false;
    const ortc_constant *w = we->constant, *b = be ? be->constant : NULL;
    if (!ortc_weights_are(w) || w->rank < 3 || w->rank > 2 + ORTC_MAX_WINDOW_DIMS || w->count == 0)
        return false;
    *l = (linear){w->dtype, w->dims[0], ortc_node_int(n, "group", 1), w->dims[1], .w = w, .b = b};
    if (l->group < 1 || l->filters % l->group || (b && (b->dtype != l->t || b->count != l->filters)))
        return false;
    for (int i = 0; i < ORTC_MAX_WINDOW_DIMS; i++) l->axes[i] = one_tap;
    return ortc_window_axes(n, w, l->axes);
}

/* What e makes of x, with as many channels as the Conv at hand; false: it is no branch, or others read it. */
static bool read_branch(const ortc_edge *e, const ortc_edge *x, const linear *host, linear *l)
{
    const ortc_node *n = e->producer;
    if (e != x && (!n || n->in[0] != x || ortc_edge_n_uses(e) != 1)) return false;
    if (e != x && ortc_match_is(n, "Conv")) return read_conv(n, l) && l->filters == host->filters;
    if (host->filters != host->channels * host->group) return false;
    *l = (linear){host->t, host->filters, host->filters, 1, {one_tap, one_tap, one_tap}};
    l->normalises = e != x;
    return e == x || (e->producer_port == 0 && ortc_weights_batchnorm(n, host->t, host->filters, &l->norm));
}

/* Whether every tap of a branch is one of the host's, and results have as many elements: tap 0 is the host's
 * at[i], the next one apart[i] behind. */
static bool has_taps(const linear *host, const linear *branch, int64_t *at, int64_t *apart)
{
    if (branch->t != host->t || branch->group % host->group || host->filters % branch->group) return false;
    if (host->channels * host->group != branch->channels * branch->group) return false;
    for (int i = 0; i < ORTC_MAX_WINDOW_DIMS; i++) {
        const ortc_window_axis *h = &host->axes[i], *b = &branch->axes[i];
        const int64_t first = h->before - b->before;
        apart[i] = b->dilation / h->dilation, at[i] = first / h->dilation;
        if (h->stride != b->stride || first < 0 || first % h->dilation ||
            (b->taps > 1 && b->dilation % h->dilation) || at[i] + (b->taps - 1) * apart[i] >= h->taps ||
            h->before + h->after - (h->taps - 1) * h->dilation !=
                b->before + b->after - (b->taps - 1) * b->dilation)
            return false;
    }
    return true;
}

/* ---- Steps --------------------------------------------------------------------------------------------- */

enum { NONE, SCALE, SHIFT, BRANCH };

/* What a node does to a Conv's result. */
typedef struct step {
    int what;
    double sign;            /* SHIFT, BRANCH: -1: it is taken off */
    bool divides;           /* SCALE */
    const ortc_constant *c; /* SCALE, SHIFT: one number, or one for each channel */
    linear branch;
    int64_t at[ORTC_MAX_WINDOW_DIMS],
        apart[ORTC_MAX_WINDOW_DIMS]; /* of the branch's taps, among the Conv's */
} step;

static double number_of(const ortc_constant *c, int64_t channel)
{
    return ortc_weights_read(c->dtype, c->data, c->count == 1 ? 0 : channel);
}

/* A constant that is one number, or one for each channel of a Conv's result, all of them finite and of a
 * usual size where they are factors; NULL: it is none. */
static const ortc_constant *by_channel(const ortc_edge *e, const linear *conv, bool factors)
{
    const ortc_constant *c = ortc_edge_is_const(e) ? e->constant : NULL;
    const int32_t rank = conv->w->rank;
    if (!c || c->dtype != conv->t || c->rank > rank || (c->count != 1 && c->count != conv->filters))
        return NULL;
    for (int32_t i = 0; i < c->rank; i++)
        if (c->dims[i] != 1 && rank - c->rank + i != 1) return NULL;
    for (int64_t i = 0; i < c->count; i++) {
        const double v = fabs(number_of(c, i));
        if (!isfinite(v) || (factors && (v > LARGEST || v < 1 / LARGEST))) return NULL;
    }
    return c;
}

/* What a node does that reads y, which is linear in x; NONE: something else. */
static step read_step(const linear *conv, const ortc_edge *x, const ortc_node *n, const ortc_edge *y)
{
    const bool less = ortc_match_is(n, "Sub"), divides = ortc_match_is(n, "Div"),
               by = divides || ortc_match_is(n, "Mul");
    step s = {.what = NONE, .sign = less ? -1 : 1, .divides = divides};
    if ((!less && !by && !ortc_match_is(n, "Add")) || n->n_in != 2 || !n->in[0] || !n->in[1]) return s;
    if (n->in[1] == y && (less || divides)) return s;
    const ortc_edge *other = n->in[n->in[0] == y];
    s.c = by_channel(other, conv, by);
    if (s.c)
        s.what = by ? SCALE : SHIFT;
    else if (!by && read_branch(other, x, conv, &s.branch) && has_taps(conv, &s.branch, s.at, s.apart))
        s.what = BRANCH;
    return s;
}

/* The last node whose work goes into the weights; NULL: no branch does, and what is by channel is left to the
 * epilogue, for whose sake W is not copied. */
static const ortc_node *last_step(const linear *l, const ortc_node *conv)
{
    const ortc_edge *y = conv->out[0];
    const ortc_node *last = NULL;
    for (bool branches = false;;) {
        const ortc_node *n = ortc_match_reader(y, 1);
        const int what = n ? read_step(l, conv->in[0], n, y).what : NONE;
        if (what == NONE) return branches ? last : NULL;
        branches |= what == BRANCH;
        last = n, y = n->out[0];
    }
}

/* to[0] += v */
static void add_to(ortc_dtype t, void *to, double v)
{
    ortc_weights_write(t, to, 0, ortc_weights_read(t, to, 0) + v);
}

/* What new weights are computed in. */
static ortc_dtype own_type(ortc_dtype t) { return ortc_weights_half(t) ? ORTC_F32 : t; }

/* to[i * to_step] += sign * from[i * from_step]; `from`, of type t, of any alignment. */
static void add_run(ortc_dtype t, void *to, int64_t to_step, const void *from, int64_t from_step, int64_t n,
                    double sign)
{
    double *wide = to;
    float *narrow = to;
    if (ortc_weights_half(t))
        for (int64_t i = 0; i < n; i++)
            narrow[i * to_step] = (float)(narrow[i * to_step] +
                                          sign * ortc_weights_read(t, from, i * from_step));
    else if (t == ORTC_F64)
        for (int64_t i = 0; i < n; i++)
            wide[i * to_step] += sign * ortc_weights_read(ORTC_F64, from, i * from_step);
    else
        for (int64_t i = 0; i < n; i++)
            narrow[i * to_step] = (float)(narrow[i * to_step] +
                                          sign * ortc_weights_read(ORTC_F32, from, i * from_step));
}

/* To row m of the weights and its bias. */
static void add_branch(const linear *h, const step *s, int64_t m, char *row, void *bias)
{
    const linear *l = &s->branch;
    const ortc_window_axis *a = h->axes, *b = l->axes;
    const int64_t taps = a[0].taps * a[1].taps * a[2].taps, own = b[0].taps * b[1].taps * b[2].taps;
    const ortc_dtype t = own_type(h->t);
    const size_t element = ortc_dtype_bits(t) / 8, given = ortc_dtype_bits(h->t) / 8;
    /* the branch's channels among those of the Conv's group */
    const int64_t first = m / (h->filters / l->group) * l->channels -
                          m / (h->filters / h->group) * h->channels;
    for (int64_t i = 0; i < own; i++) {
        const int64_t p = s->at[0] + i / b[2].taps / b[1].taps * s->apart[0],
                      q = s->at[1] + i / b[2].taps % b[1].taps * s->apart[1],
                      r = s->at[2] + i % b[2].taps * s->apart[2];
        void *to = row + (size_t)(first * taps + (p * a[1].taps + q) * a[2].taps + r) * element;
        if (l->w)
            add_run(h->t, to, taps, (const char *)l->w->data + (size_t)(m * l->channels * own + i) * given,
                    own, l->channels, s->sign);
        else
            add_to(t, to, s->sign * (l->normalises ? ortc_batchnorm_by(&l->norm, m) : 1));
    }
    if (l->b) add_to(t, bias, s->sign * ortc_weights_read(l->t, l->b->data, m));
    if (l->normalises) add_to(t, bias, s->sign * ortc_batchnorm_of(&l->norm, m, 0));
}

/* Does a step to W and b, which are ours. */
static void take(const linear *h, const step *s, char *w, char *b)
{
    const ortc_dtype t = own_type(h->t);
    const size_t element = ortc_dtype_bits(t) / 8;
    const int64_t each = h->w->count / h->filters;
    for (int64_t m = 0; m < h->filters; m++) {
        char *row = w + (size_t)(m * each) * element, *bias = b + (size_t)m * element;
        const double v = s->c ? number_of(s->c, m) : 0, f = s->divides ? 1 / v : v;
        if (s->what == BRANCH) {
            add_branch(h, s, m, row, bias);
        } else if (s->what == SHIFT) {
            add_to(t, bias, s->sign * v);
        } else {
            ortc_weights_scale(t, row, row, 0, each, f);
            ortc_weights_scale(t, bias, bias, 0, 1, f);
        }
    }
}

/* Values of type t as new memory of type `to`; NULL: there is none. */
static char *converted(ortc_dtype t, const void *data, int64_t n, ortc_dtype to)
{
    char *copy = ortc_data_alloc((size_t)n * (ortc_dtype_bits(to) / 8));
    if (copy && t == to)
        memcpy(copy, data, (size_t)n * (ortc_dtype_bits(t) / 8));
    else
        for (int64_t i = 0; copy && i < n; i++)
            ortc_weights_write(to, copy, i, ortc_weights_read(t, data, i));
    return copy;
}

/* *w and *b of a type of the Conv's own become those of its type. false: out of memory, or what of half
 * precision does not fit. */
static bool narrow(const linear *l, char **w, char **b)
{
    const int64_t each = l->w->count / l->filters;
    const ortc_dtype t = own_type(l->t);
    if (t == l->t) return true;
    for (int64_t m = 0; m < l->filters; m++)
        if (!ortc_weights_keep(l->t, ortc_weights_largest(t, *w, m * each, each)) ||
            fabs(ortc_weights_read(t, *b, m)) > (l->t == ORTC_F16 ? 65504 : INFINITY))
            return false;
    char *new_w = converted(t, *w, l->w->count, l->t), *new_b = converted(t, *b, l->filters, l->t);
    ortc_data_free(new_w ? *w : NULL), ortc_data_free(new_b ? *b : NULL);
    if (new_w) *w = new_w;
    if (new_b) *b = new_b;
    return new_w && new_b;
}

/* Takes the nodes up to `last` into the Conv's weights. */
static ortc_status absorb(ortc_normalise *p, ortc_node *conv, const linear *l, const ortc_node *last)
{
    const ortc_dtype t = own_type(l->t);
    char *w = converted(l->t, l->w->data, l->w->count, t),
         *b = l->b ? converted(l->t, l->b->data, l->filters, t)
                   : ortc_data_alloc((size_t)l->filters * (ortc_dtype_bits(t) / 8));
    ortc_edge *const old = conv->out[0], *y = old;
    if (w && b && !l->b) memset(b, 0, (size_t)l->filters * (ortc_dtype_bits(t) / 8));
    for (const ortc_node *taken = NULL; w && b && taken != last; y = taken->out[0]) {
        taken = ortc_match_reader(y, 1);
        const step s = read_step(l, conv->in[0], taken, y);
        take(l, &s, w, b);
    }
    if (!w || !b || !narrow(l, &w, &b)) {
        const bool none = !w || !b;
        ortc_data_free(w);
        ortc_data_free(b);
        return none ? ortc_no_memory(p->error, l->w->bytes) : ORTC_OK;
    }
    y = old;
    for (const ortc_node *taken = NULL; taken != last;) {
        ortc_node *n = ortc_match_reader(y, 1);
        ortc_weights_note(p, conv, n->type);
        taken = n, y = n->out[0];
        ortc_node_remove(n);
    }
    ortc_edge *new_w = ortc_graph_constant_take(p->graph, l->t, l->w->rank, l->w->dims, w, l->w->bytes,
                                                p->error);
    ortc_edge *new_b = ortc_graph_constant_take(p->graph, l->t, 1, &l->filters, b,
                                                (size_t)l->filters * (ortc_dtype_bits(l->t) / 8), p->error);
    if (!new_w || !new_b || !ortc_node_set_in(conv, 1, new_w) || !ortc_node_set_in(conv, 2, new_b) ||
        !ortc_node_set_out(conv, 0, y)) /* the result keeps the name that the file gave it */
        return ortc_no_memory(p->error, l->w->bytes);
    old->producer = NULL;
    p->edits++;
    return ORTC_OK;
}

ortc_status ortc_pass_conv_branches(ortc_normalise *p)
{
    for (ortc_node *n = p->graph->first; n; n = n->next) {
        linear l;
        const ortc_node *last = read_conv(n, &l) ? last_step(&l, n) : NULL;
        if (last) ORTC_TRY(absorb(p, n, &l, last));
    }
    return ORTC_OK;
}
