/* kernels/recurrent/op.c: RNN, GRU, LSTM: schemas, shapes, older forms.
 *
 * S steps, B batch, I input, H hidden, D directions, G gates (1, 3, 4). X [S, B, I], W [D, G H, I], R [D, G
 * H, H], B [D, 2 G H], Y [S, D, B, H], Y_h and Y_c [D, B, H]; with layout = 1 the batch comes first in X, Y
 * and the states. Version 1 said by output_sequence whether Y is wanted, which asking for it says too.
 */
#include "kernels/recurrent/recurrent.h"

extern const ortc_kernel_table ortc_kernels_ref_recurrent, ortc_kernels_cpu_recurrent;

static ortc_status infer_recurrent(ortc_infer *c)
{
    const ortc_node *n = ortc_infer_node(c);
    const ortc_port x = ortc_infer_in(c, 0), w = ortc_infer_in(c, 1), r = ortc_infer_in(c, 2),
                    b = ortc_infer_in(c, 3);
    const ortc_port lengths = ortc_infer_in(c, 4);
    const char *op = ortc_node_op(n), *direction = ortc_node_string(n, "direction", "forward");
    const int64_t gates = op[0] == 'R' ? 1 : op[0] == 'G' ? 3 : 4, asked = ortc_node_int(n, "hidden_size", 0);
    const int64_t layout = ortc_node_int(n, "layout", 0),
                  directions = strcmp(direction, "bidirectional") ? 1 : 2;
    ortc_dim hidden = asked > 0 ? asked : r.rank == 3 ? r.dims[2] : ORTC_DIM_UNKNOWN, same;
    if (strcmp(direction, "forward") != 0 && strcmp(direction, "reverse") != 0 && directions == 1)
        return ortc_infer_fail(c, ORTC_INVALID_MODEL,
                               "attribute direction is '%s', expected forward, reverse or bidirectional",
                               direction);
    if ((x.rank >= 0 && x.rank != 3) || (w.rank >= 0 && w.rank != 3) || (r.rank >= 0 && r.rank != 3))
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "X, W and R have ranks %d, %d and %d, expected 3",
                               x.rank, w.rank, r.rank);
    const ortc_dim steps = x.rank < 0 ? ORTC_DIM_UNKNOWN : x.dims[layout != 0],
                   batch = x.rank < 0 ? ORTC_DIM_UNKNOWN : x.dims[layout == 0];
    if (r.rank == 3) ORTC_TRY(ortc_infer_same(c, "hidden_size and R's last dim", hidden, r.dims[2], &hidden));
    const ortc_dim rows = ortc_dim_mul(c, hidden, gates);
    for (int i = 0; i < 2; i++) {
        const ortc_port *p = i ? &r : &w;
        if (p->rank != 3) continue;
        ORTC_TRY(ortc_infer_same(c, "directions and the first dim of W or R", p->dims[0], directions, &same));
        ORTC_TRY(ortc_infer_same(c, "rows of all gates in W or R", p->dims[1], rows, &same));
    }
    if (w.rank == 3 && x.rank == 3)
        ORTC_TRY(ortc_infer_same(c, "the input's size in X and W", x.dims[2], w.dims[2], &same));
    if (b.rank >= 0) {
        if (b.rank != 2) return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "B has rank %d, expected 2", b.rank);
        ORTC_TRY(ortc_infer_same(c, "directions and B's first dim", b.dims[0], directions, &same));
        ORTC_TRY(ortc_infer_same(c, "numbers of all gates in B", b.dims[1], ortc_dim_mul(c, rows, 2), &same));
    }
    if (lengths.type && lengths.rank >= 0 && lengths.rank != 1)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "sequence_lens has rank %d, expected 1", lengths.rank);
    if (lengths.rank == 1)
        ORTC_TRY(ortc_infer_same(c, "batch and sequence_lens", lengths.dims[0], batch, &same));
    for (uint32_t i = 5; i < 7; i++) { /* initial_h, initial_c */
        const ortc_port p = ortc_infer_in(c, i);
        const ortc_dim want[3] = {layout ? batch : directions, layout ? directions : batch, hidden};
        for (int32_t d = 0; d < 3 && p.rank == 3; d++)
            ORTC_TRY(ortc_infer_same(c, "an initial state is not of its shape", p.dims[d], want[d], &same));
        if (p.rank >= 0 && p.rank != 3)
            return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "input %u has rank %d, expected 3", i, p.rank);
    }
    const ortc_port peepholes = ortc_infer_in(c, 7);
    if (peepholes.rank >= 0 &&
        (peepholes.rank != 2 || (hidden >= 0 && peepholes.dims[1] >= 0 && peepholes.dims[1] != 3 * hidden) ||
         (peepholes.dims[0] >= 0 && peepholes.dims[0] != directions)))
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "P is not [directions, 3 hidden_size]");
    const ortc_dim all[2][4] = {{steps, directions, batch, hidden}, {batch, steps, directions, hidden}};
    const ortc_dim last[2][3] = {{directions, batch, hidden}, {batch, directions, hidden}};
    ORTC_TRY(ortc_infer_out(c, 0, x.dtype, 4, all[layout != 0]));
    for (uint32_t i = 1; i < ortc_node_n_out(n); i++)
        ORTC_TRY(ortc_infer_out(c, i, x.dtype, 3, last[layout != 0]));
    return ORTC_OK;
}

static ortc_status lift_recurrent(ortc_lift *l)
{
    ortc_lift_drop_attr(l, "output_sequence");
    return ORTC_OK;
}

#define COMMON_IN "X:T W:T R:T B:T? sequence_lens:T1? initial_h:T?"
#define COMMON \
    "activation_alpha:fs? activation_beta:fs? activations:ss? clip:f? direction:s=forward hidden_size:i? " \
    "layout:i=0"
#define TYPES "T=float T1=i32"
static const ortc_op ops[] = {
    ORTC_OP("", "RNN", 22, 7, "14 7 1", COMMON_IN, "Y:T? Y_h:T?", COMMON, TYPES, infer_recurrent,
            lift_recurrent, ORTC_OP_HEAVY),
    ORTC_OP("", "GRU", 22, 7, "14 7 3 1", COMMON_IN, "Y:T? Y_h:T?", COMMON " linear_before_reset:i=0", TYPES,
            infer_recurrent, lift_recurrent, ORTC_OP_HEAVY),
    ORTC_OP("", "LSTM", 22, 7, "14 7 1", COMMON_IN " initial_c:T? P:T?", "Y:T? Y_h:T? Y_c:T?",
            COMMON " input_forget:i=0", TYPES, infer_recurrent, lift_recurrent, ORTC_OP_HEAVY),
};
ORTC_FAMILY(recurrent, ops, &ortc_kernels_ref_recurrent, &ortc_kernels_cpu_recurrent);
