/* Conv and a neighbour on the cpu (graph/specialise/squeeze_excite.c), floats in blocks:
 *   conv.squeezed         windows of one channel each, and the means of their results, whose rows are summed
 *                         while they are in L1
 *   conv.excited_pieces   points whose values, f32, are multiplied by factors as they are cut in pieces
 *   conv.excited_1x1      the same of f32 and f16: of each image's weights, which are fewer than its values
 * Each is one kernel of the Conv, which sees its inputs as the node alone has them.
 */
#include <stdlib.h>
#include <string.h>

#include "blocked_depthwise.h"
#include "cpu.h"
#include "kernels/common/cpu_device.h"
#include "tiled.h"

enum { SQUEEZED, PIECES, POINT };

typedef struct group_state {
    int way;
    uint32_t n_in;
    int32_t port[ORTC_PW_INPUTS]; /* of the Conv's inputs: the group's; -1: left out */
    int32_t factor;               /* the group's input, -1: none */
    uint32_t y, mean;             /* its outputs */
    ortc_conv_state conv;         /* as far as it has something */
} group_state;

/* ---- The group ----------------------------------------------------------------------------------------- */

static int is(const ortc_node *n, const char *op)
{
    return n && !*ortc_node_domain(n) && !strcmp(ortc_node_op(n), op);
}

static int32_t input_of(const ortc_graph *body, uint32_t edge)
{
    for (uint32_t i = 0; edge && i < ortc_graph_n_in(body); i++)
        if (ortc_graph_in(body, i).edge == edge) return (int32_t)i;
    return -1;
}
static uint32_t output_of(const ortc_graph *body, const ortc_node *n)
{
    uint32_t i = 0;
    while (i < ortc_graph_n_out(body) && ortc_graph_out(body, i).edge != ortc_node_out(n, 0).edge) i++;
    return i;
}

static int is_factor(const ortc_port *p)
{
    int yes = p->rank > 2;
    for (int32_t i = 2; yes && i < p->rank; i++) yes = p->dims[i] == 1;
    return yes;
}

/* The Conv in it; NULL: the group is another one. */
static const ortc_node *read_group(const ortc_node *n, int way, group_state *s)
{
    const ortc_graph *body = ortc_node_body(n);
    const ortc_node *first = body ? ortc_graph_next(body, NULL) : NULL,
                    *second = first ? ortc_graph_next(body, first) : NULL,
                    *conv = way == SQUEEZED ? first : second;
    memset(s, 0, sizeof *s);
    if (!second || ortc_graph_next(body, second) || !is(conv, "Conv")) return NULL;
    s->factor = -1, s->way = way;
    s->y = output_of(body, conv), s->n_in = ortc_node_n_in(conv);
    if (s->y >= ortc_graph_n_out(body) || s->n_in > ORTC_PW_INPUTS) return NULL;
    for (uint32_t i = 0; i < s->n_in; i++) {
        const ortc_port p = ortc_node_in(conv, i);
        s->port[i] = p.type ? input_of(body, p.edge) : -1;
        if (p.type && s->port[i] < 0 && (way == SQUEEZED || i)) return NULL;
    }
    if (way == SQUEEZED) {
        s->mean = output_of(body, second);
        const ortc_port y = ortc_node_out(conv, 0), mean = ortc_node_out(second, 0);
        const int each = is_factor(&mean) && mean.rank == y.rank && mean.dims[0] == y.dims[0] &&
                         mean.dims[1] == y.dims[1]; /* of each channel */
        const int averages = is(second, "GlobalAveragePool") || (is(second, "ReduceMean") && each);
        return averages && !ortc_node_epilogue(second) && s->mean < 2 && s->mean != s->y ? conv : NULL;
    }
    if (!is(first, "Mul") || ortc_node_out(first, 0).edge != ortc_node_in(conv, 0).edge) return NULL;
    const ortc_port right = ortc_node_in(first, 1);
    const uint32_t f = (uint32_t)is_factor(&right);
    s->factor = input_of(body, ortc_node_in(first, f).edge);
    s->port[0] = input_of(body, ortc_node_in(first, 1 - f).edge);
    return s->factor >= 0 && s->port[0] >= 0 ? conv : NULL;
}

/* Extents, of one image where their number is not known; 0: others are not. */
static int read_extents(const ortc_port *p, int64_t *dims, ortc_view *v)
{
    if (p->rank < 3 || p->rank > 5) return 0;
    for (int32_t i = 0; i < p->rank; i++) {
        dims[i] = i == 0 && !ortc_dim_is_number(p->dims[0]) ? 1 : p->dims[i];
        if (!ortc_dim_is_number(dims[i])) return 0;
    }
    *v = (ortc_view){.dtype = p->dtype, .rank = p->rank, .dims = dims};
    return 1;
}

/* Pairs of bf16, and pieces of f16, are quicker than points whose weights become f32. */
static int takes_type(ortc_dtype type, int way)
{
    return type == ORTC_F32 || (way == SQUEEZED && (type == ORTC_F16 || type == ORTC_BF16)) ||
           (way == POINT && type == ORTC_F16 && !ortc_tiled_uk_get(ORTC_TILED_PIECES));
}

/* Whether the kernel is for the Conv whatever the number of images. */
static int suits(const ortc_node *conv, int way)
{
    const ortc_port ports[3] = {ortc_node_in(conv, 0), ortc_node_in(conv, 1), ortc_node_out(conv, 0)};
    const ortc_dtype type = ports[0].dtype;
    int64_t dims[3][5];
    ortc_view v[3];
    ortc_conv_window window;
    ortc_conv_geometry g;
    ortc_blocked_depthwise_plan d;
    ortc_blocked_plan b;
    const char *attribute;
    if (!takes_type(type, way)) return 0;
    for (int i = 0; i < 3; i++)
        if (ports[i].dtype != type || !read_extents(&ports[i], dims[i], &v[i])) return 0;
    if (ortc_conv_window_read(conv, &window, &attribute)) return 0;
    ortc_conv_read_windows(&window, ortc_node_int(conv, "group", 1), v, &v[2], &g);
    if (g.images == 0) g.images = 1;
    if (way == SQUEEZED) return ortc_blocked_depthwise_plan_init(&g, type, 1, &d);
    if (g.group > 1 || !ortc_conv_is_pointwise(&g) || ortc_conv_is_empty(&g)) return 0;
    if (way == POINT && (g.filters > g.out_count || !ortc_blocked_plan_init(&g, type, 0, 0, &b))) return 0;
    if (way == POINT) ortc_blocked_plan_deinit(&b);
    return way == POINT || (g.out_count >= ORTC_TILE_HALF && ortc_tiled_uk_get(ORTC_TILED_PIECES));
}

static ortc_status supports(int way, const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    group_state s;
    const ortc_node *conv = read_group(n, way, &s);
    if (!conv || !suits(conv, way)) return ortc_no(why, "it is no such group of a Conv");
    if (way != SQUEEZED && ortc_rounds_to_bf16(device)) return ortc_no(why, "f32 is to be rounded to bf16");
    return ortc_conv_supports(conv, device, why);
}

static ortc_status prepare(int way, const ortc_node *n, ortc_prep *prep, void **out)
{
    group_state s;
    const ortc_node *conv = read_group(n, way, &s);
    ORTC_TRY(ortc_conv_read_state(conv, ORTC_TAIL_ALL & ~(uint32_t)ORTC_TAIL_SCALE, prep, &s.conv));
    return ortc_conv_keep(&s, offsetof(group_state, conv) + ortc_conv_state_bytes(&s.conv), prep, out);
}

/* The Conv's inputs, ORTC_PW_INPUTS of them. */
static ortc_conv_at look(const group_state *s, const ortc_view *in, const ortc_view *out, ortc_view *views)
{
    memset(views, 0, ORTC_PW_INPUTS * sizeof *views);
    for (uint32_t i = 0; i < s->n_in; i++)
        if (s->port[i] >= 0) views[i] = in[s->port[i]];
    return (ortc_conv_at){.in = views,
                          .y = &out[s->y],
                          .n_in = s->n_in,
                          .w = (uint32_t)s->port[1],
                          .factor = s->factor < 0 ? NULL : &in[s->factor],
                          .mean = s->factor < 0 ? &out[s->mean] : NULL};
}

/* ---- Kernels ------------------------------------------------------------------------------------------- */

static ortc_status choose(const void *state, const ortc_question *q, ortc_offer *o, ortc_why *why)
{
    static const ortc_kernel *const kernels[] = {&ortc_conv_blocked_depthwise, &ortc_conv_pieces,
                                                 &ortc_conv_blocked_1x1};
    const group_state *s = state;
    ortc_view views[ORTC_PW_INPUTS];
    ortc_layout in[ORTC_PW_INPUTS] = {ORTC_PLAIN}, y = ORTC_PLAIN;
    const ortc_conv_at at = look(s, q->in, q->out, views);
    if (at.in[0].dims[0] == 0) return ORTC_OK; /* nothing is to be done */
    ortc_question alone = *q;
    ortc_offer offer = *o;
    alone.n_in = s->n_in, alone.n_out = 1, alone.in = views, alone.out = at.y;
    offer.n_in = s->n_in, offer.n_out = 1, offer.in = in, offer.out = &y;
    ORTC_TRY(kernels[s->way]->choose(&s->conv, &alone, &offer, why));
    o->clocks = offer.clocks, o->form = offer.form;
    for (uint32_t i = 0; i < s->n_in; i++)
        if (s->port[i] >= 0) o->in[s->port[i]] = in[i];
    o->out[s->y] = y;
    if (s->way == SQUEEZED)
        o->out[s->mean] = y;
    else
        o->in[s->factor] = y;
    return ORTC_OK;
}

static ortc_status plan(const void *state, ortc_plan *p, void **out)
{
    const group_state *s = state;
    ortc_view views[ORTC_PW_INPUTS];
    const ortc_conv_at at = look(s, p->in, p->out, views);
    *out = NULL;
    if (at.in[0].dims[0] == 0) return ORTC_OK;
    return s->way == PIECES ? ortc_conv_pieces_plan(&s->conv, p, &at, out)
                            : ortc_conv_blocks_plan(&s->conv, s->way == SQUEEZED, p, &at, out);
}

static ortc_status run(const void *state, const void *pstate, ortc_call *call)
{
    const group_state *s = state;
    ortc_view views[ORTC_PW_INPUTS];
    const ortc_conv_at at = look(s, call->in, call->out, views);
    return !pstate            ? ORTC_OK
           : s->way == PIECES ? ortc_conv_pieces_run(&s->conv, pstate, call, &at)
                              : ortc_conv_blocks_run(&s->conv, pstate, call, &at);
}

#define GROUP(way, kernel, called, release) \
    static ortc_status supports_##way(const ortc_node *n, const ortc_device *device, ortc_why *why) \
    { \
        return supports(way, n, device, why); \
    } \
    static ortc_status prepare_##way(const ortc_node *n, ortc_prep *prep, void **out) \
    { \
        return prepare(way, n, prep, out); \
    } \
    const ortc_kernel kernel = {.size = ORTC_SIZED(ortc_kernel), \
                                .flags = ORTC_KERNEL_LAYOUTS, \
                                .name = called, \
                                .supports = supports_##way, \
                                .prepare = prepare_##way, \
                                .plan = plan, \
                                .run = run, \
                                .release_plan = release, \
                                .choose = choose};
GROUP(SQUEEZED, ortc_conv_squeezed, "conv.squeezed", ortc_conv_blocks_release)
GROUP(PIECES, ortc_conv_excited_pieces, "conv.excited_pieces", ortc_conv_pieces_release)
GROUP(POINT, ortc_conv_excited_1x1, "conv.excited_1x1", ortc_conv_blocks_release)
