/* kernels/control/op.c: If, Loop and Scan, and com.microsoft's searches: schemas and what can be said of
 * their results before they run. */
#include <stdio.h>

#include "kernels/common/shape.h"

extern const ortc_kernel_table ortc_kernels_ref_control;

#define MAX_PARTS 60   /* inputs and outputs of Scan-8 */
#define MAX_OUTPUTS 64 /* whose shapes are looked at; further ones are known when they have run */

static ortc_status infer_if(ortc_infer *c)
{
    const ortc_node *n = ortc_infer_node(c);
    const ortc_attr then_branch = ortc_node_attr(n, "then_branch"),
                    else_branch = ortc_node_attr(n, "else_branch");
    uint32_t n_out = ortc_node_n_out(n);
    ortc_port a[MAX_OUTPUTS], b[MAX_OUTPUTS];
    if (then_branch.kind != ORTC_ATTR_GRAPH || else_branch.kind != ORTC_ATTR_GRAPH) return ORTC_OK;
    if (n_out > MAX_OUTPUTS) n_out = MAX_OUTPUTS;
    ORTC_TRY(ortc_infer_body(c, then_branch.u.graphs[0], 0, NULL, n_out, a));
    ORTC_TRY(ortc_infer_body(c, else_branch.u.graphs[0], 0, NULL, n_out, b));
    for (uint32_t i = 0; i < n_out; i++) {
        const ortc_port *known = a[i].type ? &a[i] : &b[i];
        int same = a[i].rank >= 0 && a[i].rank == b[i].rank;
        for (int32_t d = 0; same && d < a[i].rank; d++)
            same = a[i].dims[d] == b[i].dims[d] && a[i].dims[d] != ORTC_DIM_UNKNOWN;
        if (known->type && !known->dtype)
            ORTC_TRY(ortc_infer_out_type(c, i, known->type));
        else if (known->dtype) /* shapes that differ are known when one of them has run */
            ORTC_TRY(ortc_infer_out(c, i, known->dtype, same ? a[i].rank : -1, same ? a[i].dims : NULL));
    }
    return ORTC_OK;
}

static ortc_status infer_loop(ortc_infer *c)
{
    const ortc_node *n = ortc_infer_node(c);
    const ortc_attr body = ortc_node_attr(n, "body");
    uint32_t n_out = ortc_node_n_out(n);
    ortc_port out[MAX_OUTPUTS + 1];
    const uint32_t carried = ortc_node_n_in(n) > 2 ? ortc_node_n_in(n) - 2 : 0;
    if (body.kind != ORTC_ATTR_GRAPH) return ORTC_OK;
    if (n_out > MAX_OUTPUTS) n_out = MAX_OUTPUTS;
    ortc_port in[MAX_OUTPUTS + 2] = {{0}}; /* iteration and condition have their types in every file */
    for (uint32_t i = 0; i < carried && i < MAX_OUTPUTS; i++) in[i + 2] = ortc_infer_in(c, i + 2);
    ORTC_TRY(ortc_infer_body(c, body.u.graphs[0], carried < MAX_OUTPUTS ? carried + 2 : MAX_OUTPUTS, in,
                             n_out + 1, out));
    for (uint32_t i = 0; i < n_out; i++) {
        const ortc_port *known = &out[i + 1];
        if (i >= carried && known->type && !known->dtype)
            return ortc_infer_fail(c, ORTC_INVALID_MODEL,
                                   "output %u collects what the body makes in each round, which is not a "
                                   "tensor: only an initial value "
                                   "(there are %u) may be a sequence or optional",
                                   i, carried);
        if (i >= carried && known->dtype && known->rank >= 0 &&
            known->rank < ORTC_RANK_LIMIT) { /* rounds under each other */
            ortc_dim dims[ORTC_RANK_LIMIT + 1] = {ORTC_DIM_UNKNOWN};
            for (int32_t d = 0; d < known->rank; d++) dims[d + 1] = known->dims[d];
            ORTC_TRY(ortc_infer_out(c, i, known->dtype, known->rank + 1, dims));
            continue;
        }
        ortc_port v = {0}; /* what a carried value was before the first round */
        if (i < carried) v = ortc_infer_in(c, i + 2);
        if (known->type && !known->dtype)
            ORTC_TRY(ortc_infer_out_type(c, i, known->type));
        else if (known->dtype || v.dtype)
            ORTC_TRY(ortc_infer_out(c, i, known->dtype ? known->dtype : v.dtype, -1, NULL));
    }
    return ORTC_OK;
}

/* The state keeps its shape from turn to turn; a scan output is what the body gives, with the turns along an
 * axis. */
static ortc_status infer_scan(ortc_infer *c)
{
    const ortc_node *n = ortc_infer_node(c);
    const ortc_attr body = ortc_node_attr(n, "body");
    const int64_t n_in = ortc_node_n_in(n), n_scans = ortc_node_int(n, "num_scan_inputs", 0);
    uint32_t n_out = ortc_node_n_out(n) < MAX_OUTPUTS ? ortc_node_n_out(n) : MAX_OUTPUTS;
    size_t n_in_axes, n_out_axes;
    const int64_t *in_axes = ortc_node_ints(n, "scan_input_axes", &n_in_axes);
    const int64_t *out_axes = ortc_node_ints(n, "scan_output_axes", &n_out_axes);
    ortc_port in[MAX_OUTPUTS] = {{0}}, out[MAX_OUTPUTS];
    ortc_dim length = ORTC_DIM_UNKNOWN;
    if (n_scans < 1 || n_scans > n_in)
        return ortc_infer_fail(c, ORTC_INVALID_MODEL, "num_scan_inputs is %lld, the node has %lld inputs",
                               (long long)n_scans, (long long)n_in);
    const uint32_t n_states = (uint32_t)(n_in - n_scans);
    for (uint32_t i = 0; i < n_in; i++) {
        const ortc_port p = ortc_infer_in(c, i);
        int32_t axis = 0;
        if (i < MAX_OUTPUTS) in[i] = p;
        if (i < n_states || p.rank < 0) continue;
        ORTC_TRY(ortc_infer_axis(c, in_axes && i - n_states < n_in_axes ? in_axes[i - n_states] : 0, p.rank,
                                 &axis));
        if (length == ORTC_DIM_UNKNOWN || !ortc_dim_is_number(length)) length = p.dims[axis];
    }
    if (body.kind != ORTC_ATTR_GRAPH) return ORTC_OK;
    ORTC_TRY(ortc_infer_body(c, body.u.graphs[0], n_in < MAX_OUTPUTS ? (uint32_t)n_in : MAX_OUTPUTS, in,
                             n_out, out));
    for (uint32_t i = 0; i < n_out; i++) {
        ortc_dim dims[ORTC_RANK_LIMIT + 1];
        if (i < n_states) {
            const ortc_port p = ortc_infer_in(c, i);
            ORTC_TRY(ortc_infer_out(c, i, p.dtype, p.rank, p.dims));
            continue;
        }
        const int32_t rank = out[i].rank < 0 || out[i].rank >= ORTC_RANK_LIMIT ? -1 : out[i].rank + 1;
        int32_t axis = 0;
        if (rank > 0)
            ORTC_TRY(ortc_infer_axis(c, out_axes && i - n_states < n_out_axes ? out_axes[i - n_states] : 0,
                                     rank, &axis));
        for (int32_t d = 0, from = 0; d < rank; d++) dims[d] = d == axis ? length : out[i].dims[from++];
        if (out[i].dtype) ORTC_TRY(ortc_infer_out(c, i, out[i].dtype, rank, dims));
    }
    return ORTC_OK;
}

/* Scan-8 went over every sample of a batch by itself, with its length in an input before the others. That is
 * Scan-9 in the body of another, of a batch of one Scan-9 without axis 0. With a length, scan inputs are cut
 * to it, which an input read backwards begins at the end of, and 0 follows in scan outputs. */
static ortc_status lift_scan(ortc_lift *l)
{
    const ortc_node *n = ortc_lift_node(l);
    const int64_t n_in = (int64_t)ortc_node_n_in(n) - 1, n_out = ortc_node_n_out(n),
                  n_states = n_in - ortc_node_int(n, "num_scan_inputs", 0);
    const bool lengths = ortc_node_in(n, 0).edge != 0;
    const char *in = "initial_state_and_scan_inputs", *out = "final_state_and_scan_outputs";
    char results[2048] = "", inputs[2048] = "";
    size_t at = 0, used = 0, count;
    bool alone = !lengths;
    const int64_t *directions = ortc_node_ints(n, "directions", &count);
    if (n_states < 0 || n_states >= n_in || n_out < n_states || n_in > MAX_PARTS || n_out > MAX_PARTS)
        return ortc_lift_fail(l, ORTC_INVALID_MODEL,
                              "%lld scan inputs of %lld inputs and %lld outputs, of each at most %d",
                              (long long)(n_in - n_states), (long long)n_in, (long long)n_out, MAX_PARTS);
    if (directions) ORTC_TRY(ortc_lift_set_ints(l, "scan_input_directions", directions, count));
    ortc_lift_drop_attr(l, "directions");
    for (int64_t i = 1; i <= n_in; i++) {
        const ortc_port p = ortc_node_in(n, (uint32_t)i);
        alone = alone && p.rank > 0 && p.dims[0] == 1;
    }
    if (!alone) ORTC_TRY(ortc_lift_each(l));
    if (lengths)
        ORTC_TRY(ortc_lift_write(l,
                                 "turns = Reshape(%s[0], [1])\n"
                                 "all = Shape(%s[%lld]) start=0 end=1\n"
                                 "rest = Sub(all, turns)\n"
                                 "parts = Concat(turns, rest) axis=0\n"
                                 "pads = Concat([0], rest) axis=0",
                                 in, in, (long long)n_in));
    for (int i = 0; i < n_in; i++) {
        if (alone)
            ORTC_TRY(ortc_lift_write(l, "in%d = Squeeze(%s[%d], [0])", i, in, i + 1));
        else if (lengths && i >= n_states)
            ORTC_TRY(ortc_lift_write(l, "in%d, past%d = Split(%s[%d], parts) axis=0", i, i, in, i + 1));
        else
            ORTC_TRY(ortc_lift_write(l, "in%d = Identity(%s[%d])", i, in, i + 1));
        used += (size_t)snprintf(inputs + used, sizeof inputs - used, "in%d, ", i);
    }
    for (int i = 0; i < n_out; i++)
        at += (size_t)snprintf(results + at, sizeof results - at, "%sout%d", i ? ", " : "", i);
    ORTC_TRY(
        ortc_lift_write(l, "%s = Scan(%s) &num_scan_inputs &scan_input_directions &body", results, inputs));
    for (int i = 0; i < n_out; i++)
        if (alone)
            ORTC_TRY(ortc_lift_write(l, "%s[%d] = Unsqueeze(out%d, [0])", out, i, i));
        else if (lengths && i >= n_states)
            ORTC_TRY(ortc_lift_write(l, "%s[%d] = Pad(out%d, pads, _, [0])", out, i, i));
        else
            ORTC_TRY(ortc_lift_write(l, "%s[%d] = Identity(out%d)", out, i, i));
    return ORTC_OK;
}

/* An extent that is the value of an input; 0 is no extent of a result that is of use. */
static ortc_status extent_of(ortc_infer *c, uint32_t in, const char *name, ortc_dim *out)
{
    int64_t count = 0;
    const ortc_dim *values = ortc_infer_vector(c, in, &count);
    *out = values && count == 1 ? values[0] : ORTC_DIM_UNKNOWN;
    if (ortc_dim_is_number(*out) && *out < 1)
        return ortc_infer_fail(c, ORTC_INVALID_ARGUMENT, "'%s' is %lld", name, (long long)*out);
    return ORTC_OK;
}

static ortc_status infer_search(ortc_infer *c)
{
    const ortc_node *n = ortc_infer_node(c);
    const bool beams = strstr(ortc_node_op(n), "Beam") != NULL;
    const ortc_port ids = ortc_infer_in(c, 0);
    const ortc_dim batch = ids.rank > 0 ? ids.dims[0] : ORTC_DIM_UNKNOWN;
    const int64_t words = ortc_node_int(n, "vocab_size", -1);
    ortc_dim max, width = 1, sentences = 1, vocab = words > 0 ? words : ORTC_DIM_UNKNOWN;
    ORTC_TRY(extent_of(c, 1, "max_length", &max));
    if (!beams) {
        ORTC_TRY(ortc_infer_out(c, 0, ORTC_I32, 2, (ortc_dim[]){batch, max}));
        if (ortc_node_n_out(n) < 2) return ORTC_OK;
        return ortc_infer_out(c, 1, ORTC_F32, 2, (ortc_dim[]){batch, vocab});
    }
    ORTC_TRY(extent_of(c, 3, "num_beams", &width));
    ORTC_TRY(extent_of(c, 4, "num_return_sequences", &sentences));
    ORTC_TRY(ortc_infer_out(c, 0, ORTC_I32, 3, (ortc_dim[]){batch, sentences, max}));
    if (ortc_node_n_out(n) > 1) ORTC_TRY(ortc_infer_out(c, 1, ORTC_F32, 2, (ortc_dim[]){batch, sentences}));
    if (ortc_node_n_out(n) < 3) return ORTC_OK;
    ORTC_TRY(ortc_infer_out(c, 2, ORTC_F32, 4, (ortc_dim[]){ORTC_DIM_UNKNOWN, batch, width, vocab}));
    if (ortc_node_n_out(n) > 3)
        ORTC_TRY(ortc_infer_out(c, 3, ORTC_F32, 5,
                                (ortc_dim[]){batch, sentences, ORTC_DIM_UNKNOWN, ORTC_DIM_UNKNOWN,
                                             ORTC_DIM_UNKNOWN}));
    return ortc_node_n_out(n) > 4 ? ortc_infer_out(c, 4, ORTC_F32, 1, (ortc_dim[]){batch}) : ORTC_OK;
}

#define SUBGRAPHS \
    "decoder:g! encoder:g? init_decoder:g? decoder_start_token_id:i=-1 eos_token_id:i! pad_token_id:i! " \
    "no_repeat_ngram_size:i=0 vocab_size:i=-1 model_type:i="
#define BEAMS \
    "input_ids:F max_length:i32! min_length:i32? num_beams:i32! num_return_sequences:i32! " \
    "length_penalty:T? " \
    "repetition_penalty:T? vocab_mask:i32? prefix_vocab_mask:i32? attention_mask:i32? " \
    "decoder_input_ids:i32? logits_processor:i32?"
#define ONE_ROW \
    "input_ids:i32 max_length:i32! min_length:i32? repetition_penalty:T? vocab_mask:i32? " \
    "prefix_vocab_mask:i32? " \
    "attention_mask:i32?"

static const ortc_op ops[] = {
    ORTC_OP("", "If", 25, 1, "24 23 21 19 16 13 11 1", "cond:B", "outputs:V+~",
            "then_branch:g! else_branch:g!", "V=all,seq,opt B=bool", infer_if, NULL, ORTC_OP_CONTROL),
    ORTC_OP("", "Loop", 25, 1, "24 23 21 19 16 13 11 1", "M:I? cond:B? v_initial:V*~",
            "v_final_and_scan_outputs:V+~", "body:g!", "V=all,seq,opt I=i64 B=bool", infer_loop, NULL,
            ORTC_OP_CONTROL),
    ORTC_OP("", "Scan", 25, 9, "24 23 21 19 16 11 9 8", "initial_state_and_scan_inputs:V+~",
            "final_state_and_scan_outputs:V+~",
            "num_scan_inputs:i! scan_input_axes:is? scan_output_axes:is? scan_input_directions:is? "
            "scan_output_directions:is? body:g!",
            "V=all", infer_scan, lift_scan, ORTC_OP_CONTROL),
    ORTC_OP("com.microsoft", "GreedySearch", 1, 1, "", ONE_ROW, "sequences:i32", SUBGRAPHS "0", "T=f32,f16",
            infer_search, NULL, ORTC_OP_CONTROL),
    ORTC_OP("com.microsoft", "Sampling", 1, 1, "", ONE_ROW " presence_mask:i32? seed:i32?",
            "sequences:i32 filtered_logits:f32?",
            SUBGRAPHS "0 custom:i=0 filter_value:f=-1e20 min_tokens_to_keep:i=0 presence_penalty:f=0 "
                      "temperature:f=1 top_p:f=0",
            "T=f32,f16", infer_search, NULL, ORTC_OP_CONTROL | ORTC_OP_RANDOM),
    ORTC_OP("com.microsoft", "BeamSearch", 1, 1, "", BEAMS, "sequences:i32 sequences_scores:f32? scores:f32?",
            SUBGRAPHS "0 early_stopping:i=0", "F=i32,f32,f16 T=f32,f16", infer_search, NULL, ORTC_OP_CONTROL),
    ORTC_OP("com.microsoft", "WhisperBeamSearch", 1, 1, "",
            BEAMS " cross_qk_layer_head:i32? extra_decoding_ids:i32? temperature:T?",
            "sequences:i32 sequences_scores:f32? scores:f32? cross_qk:f32? non_speech_probs:f32?",
            SUBGRAPHS "2 beginning_timestamp_token_id:i? decoder_output_cross_qk:i=0 early_stopping:i=0 "
                      "no_speech_token_id:i? no_timestamps_token_id:i? start_of_lm_token_id:i? "
                      "transcribe_token_id:i? translate_token_id:i?",
            "F=i32,f32,f16 T=f32,f16", infer_search, NULL, ORTC_OP_CONTROL),
};
ORTC_FAMILY(control, ops, &ortc_kernels_ref_control);
