/* What the cpu's kernels of Conv share: those of plain values (cpu.c), and of blocks (cpu_blocks.c). */
#ifndef ORTC_KERNELS_CONV_CPU_H
#define ORTC_KERNELS_CONV_CPU_H

#include "geometry.h"
#include "kernels/common/blocks.h"
#include "kernels/gemm/epilogue.h"
#include "kernels/gemm/integer_tail.h"

typedef struct ortc_conv_state {
    ortc_conv_window window;
    int64_t group;
    ortc_tail_spec tail; /* as far as it has something */
} ortc_conv_state;
static inline size_t ortc_conv_state_bytes(const ortc_conv_state *s)
{
    return offsetof(ortc_conv_state, tail) + ortc_tail_spec_bytes(&s->tail);
}

/* Whether a node is known to have no more than ORTC_CONV_SPATIAL dims. */
int ortc_conv_has_room(const ortc_node *n, const char **why);
/* Of a node that has. NULL, or what is wrong, with the attribute in *attribute. */
const char *ortc_conv_window_read(const ortc_node *n, ortc_conv_window *w, const char **attribute);

ortc_status ortc_conv_supports(const ortc_node *n, const ortc_device *device, ortc_why *why);
/* With ORTC_TAIL_WIDER, too, where tiles of bf16 are the way to go: other ways over blocks store the
 * operator's type. */
int ortc_conv_may_widen(const ortc_node *n);
ortc_status ortc_conv_supports_wider(const ortc_node *n, const ortc_device *device, ortc_why *why);
/* A kernel's state that is read in its first bytes alone: a copy of these. Owner: free(). */
ortc_status ortc_conv_keep(const void *state, size_t bytes, ortc_prep *prep, void **out_state);
/* may: what of an epilogue the kernel does on registers, ORTC_TAIL_*. */
ortc_status ortc_conv_read_state(const ortc_node *n, uint32_t may, ortc_prep *prep, ortc_conv_state *out);
ortc_status ortc_conv_prepare(const ortc_node *n, uint32_t may, ortc_prep *prep, void **out_state);

/* The numbers of X and W, `ins`, and Y. */
void ortc_conv_read_windows(const ortc_conv_window *window, int64_t group, const ortc_view *ins,
                            const ortc_view *y, ortc_conv_geometry *g);
static inline void ortc_conv_read(const ortc_conv_state *s, const ortc_view *ins, const ortc_view *y,
                                  ortc_conv_geometry *g)
{
    ortc_conv_read_windows(&s->window, s->group, ins, y, g);
}
int ortc_conv_is_empty(const ortc_conv_geometry *g);
/* A kernel of one element, no stride, no padding. */
int ortc_conv_is_pointwise(const ortc_conv_geometry *g);
/* B's, -1: none. */
int32_t ortc_conv_bias_port(const ortc_tail_spec *t);
/* The work and the bytes of a run, for ortc_plan_cost. */
void ortc_conv_plan_cost(ortc_plan *p, const ortc_conv_geometry *g, ortc_dtype type);

/* Clocks of one core for the multiplications alone, at two vectors of f32 a clock. */
double ortc_conv_least_clocks(const ortc_conv_geometry *g, ortc_dtype type);
/* And for all of a convolution in blocks (cpu_blocks.c). */
struct ortc_blocked_plan;
double ortc_conv_dense_clocks(const ortc_conv_geometry *g, ortc_dtype type, const struct ortc_blocked_plan *);

/* What decides a packed form of W, of which `way` says the kind, and what its packing knows of the
 * convolution (cpu_blocks.c). Compared bytewise: no padding between these. */
typedef struct ortc_conv_pack_param {
    int64_t way, type, group, channels, filters, joined, kernel_count, width,
        dilation, /* these: of the last dim */
        splits;   /* of ortc_blocked_bytes */
} ortc_conv_pack_param;
ortc_conv_pack_param ortc_conv_pack_param_of(const ortc_conv_geometry *g, ortc_dtype type, int way);
ortc_conv_geometry ortc_conv_pack_geometry(const ortc_conv_pack_param *p);

/* A Conv as its kernels of blocks see it: by itself, or in a group with a neighbour (cpu_groups.c). */
typedef struct ortc_conv_at {
    const ortc_view *in, *y; /* as the node has them, */
    uint32_t n_in, w;        /* W being the plan's input w */
    /* NULL: none. f32 in blocks: what x's channels are multiplied by before, [N, C, 1, ..]; means of y's. */
    const ortc_view *factor, *mean;
} ortc_conv_at;
static inline const void *ortc_conv_data(const ortc_conv_at *at, int32_t port) /* NULL: left out */
{
    return port >= 0 && (uint32_t)port < at->n_in && at->in[port].dtype ? at->in[port].data : NULL;
}

/* cpu_blocks.c. W as blocked.h reads it, input 1 of the plan's node, packed once. */
ortc_status ortc_conv_pack_blocked(ortc_plan *p, const ortc_conv_geometry *g, ortc_dtype type, int stem,
                                   const ortc_packed **out);
/* Of points, or of depthwise windows. */
ortc_status ortc_conv_blocks_plan(const ortc_conv_state *, int depthwise, ortc_plan *, const ortc_conv_at *,
                                  void **out);
ortc_status ortc_conv_blocks_run(const ortc_conv_state *, const void *pstate, ortc_call *,
                                 const ortc_conv_at *);
void ortc_conv_blocks_release(const void *state, void *pstate);
/* cpu_tiled.c: points in pieces. */
ortc_status ortc_conv_pieces_plan(const ortc_conv_state *, ortc_plan *, const ortc_conv_at *, void **out);
ortc_status ortc_conv_pieces_run(const ortc_conv_state *, const void *pstate, ortc_call *,
                                 const ortc_conv_at *);
void ortc_conv_pieces_release(const void *state, void *pstate);
/* cpu_groups.c */
extern const ortc_kernel ortc_conv_squeezed, ortc_conv_excited_1x1, ortc_conv_excited_pieces;

extern const ortc_kernel ortc_conv_blocked, ortc_conv_blocked_1x1, ortc_conv_blocked_depthwise,
    ortc_conv_depthwise_rows, ortc_conv_stem, ortc_conv_winograd_2x2, ortc_conv_winograd_4x4, ortc_conv_pairs,
    ortc_conv_rounded_winograd, ortc_conv_rounded_pairs;
/* cpu_few.c */
extern const ortc_kernel ortc_conv_few, ortc_conv_integer_few;
/* cpu_tiled.c */
extern const ortc_kernel ortc_conv_bf16, ortc_conv_rounded, ortc_conv_pieces, ortc_conv_integer_tiled;

/* joined.c. Groups that are no whole blocks become so, few as one; 0: they cannot. Of bytes alone. */
int ortc_conv_join_groups(ortc_conv_geometry *g);
/* W of these, s8, or u8 moved by 128; owner: free(). */
ortc_status ortc_conv_joined_weights(const ortc_conv_geometry *g, ortc_dtype type, const void *w, void **out);

/* Of ConvInteger: cpu_integer.c, cpu_integer_blocks.c. */
typedef struct ortc_conv_integer_state {
    ortc_conv_window window;
    int64_t group;
    ortc_int_tail tail; /* as far as it has something */
} ortc_conv_integer_state;

ortc_status ortc_conv_integer_supports(const ortc_node *n, const ortc_device *device, ortc_why *why);
ortc_status ortc_conv_integer_prepare(const ortc_node *n, ortc_prep *prep, void **out_state);
/* x's zero point, moved by 128 where `flip` says so: its lower 8 bits lie beside the image. */
ortc_status ortc_conv_integer_zero(ortc_call *call, int flip, int32_t *out);
/* What n sums begin with: minus that, times the sums of filters. cpu_integer_blocks.c */
void ortc_conv_integer_first(int32_t zero, const void *sums, size_t n, int32_t *out);
/* Ends in fixed point of sums that begin so; NULL: none, or too many products for them. Owner: free(). */
ortc_int_ends *ortc_conv_integer_ends(const ortc_conv_integer_state *s, const ortc_plan *p,
                                      const ortc_conv_geometry *g, int along);
enum { ORTC_CONV_FIXED = (1 << 30) / (255 * 128) }; /* products from which on sums may be 2^30 */
/* In blocks: what an epilogue reads of the result's shape lies so, too. */
static inline void ortc_conv_integer_along(const ortc_conv_integer_state *s, const ortc_question *q,
                                           ortc_offer *o)
{
    for (uint32_t i = 4; i < q->n_in && i < ORTC_PW_INPUTS; i++)
        if (q->in[i].dtype && s->tail.lies[i] == ORTC_PW_FULL) o->in[i] = ortc_blocks();
}
/* Clocks of one core for the multiplications alone. */
double ortc_conv_integer_least_clocks(const ortc_conv_geometry *g, ortc_dtype x, ortc_dtype w);

extern const ortc_kernel ortc_conv_integer, ortc_conv_integer_blocked, ortc_conv_integer_stem,
    ortc_conv_integer_depthwise; /* cpu_integer_depthwise.c */

#endif
