/* kernels/control/ref_search.c: GreedySearch, Sampling and BeamSearch on ref: a decoder, which
 * is a subgraph, runs once for every new token. Here its inputs are made and its results taken;
 * ref_choose.c says what comes next.
 *
 * Inputs and outputs of the subgraphs go by position (rows are B M, S tokens that came in, P of the past):
 *
 *   GPT-2    decoder  tokens [rows, S or 1], positions [rows, S or 1], mask [rows, P + S],
 *                     pasts [2, rows, N, P, H] -> logits [rows, S or 1, V], presents
 *   T5       encoder  tokens [B, S], mask [B, S] (, first tokens [B, 1])
 *                     -> (logits [B, 1, V], hidden states, own keys and values,) crossed keys and values
 *            decoder  tokens [rows, 1], mask [rows, S] (, hidden states), own keys and values
 *                     [rows, N, P, H], crossed ones -> logits [rows, 1, V], own keys and values
 *   Whisper           as T5 without masks; the encoder takes features and first tokens; scores of what the
 *                     encoder said may be the decoder's last outputs, [rows, N, 1, frames] a layer
 *
 * Decoders whose presents are written into their pasts (past_present_share_buffer) have those at the length
 * of the longest sentence, and behind them how many tokens there are [1]; where they are to follow beams
 * (DecoderMaskedMultiHeadAttention) also the beams [1], and which one each token came from [B, M, max]: then
 * no row is moved. Of this, of what is crossed, unspoken or forced onnxruntime 1.31.1 has nothing right on
 * its CPU: its schema says what is made here.
 */
#include <stdlib.h>

#include "kernels/common/random.h"
#include "kernels/control/search.h"

#define BEAMS_LIMIT 1024
#define PAIRS_LIMIT 65536

/* ---- Attributes ---------------------------------------------------------------------------------------- */

/* How many of n_in inputs tell of a buffer, from `at` on: 0, 1, 3. */
static uint32_t shares_of(const ortc_graph *decoder, uint32_t at, uint32_t n_in)
{
    for (uint32_t i = 0; i < 3; i++) {
        if (at + i >= n_in) return i > 0;
        const ortc_port p = ortc_graph_in(decoder, at + i);
        if (p.dtype != ORTC_I32 || p.rank != (i < 2 ? 1 : 3) || (i < 2 && p.dims[0] != 1)) return i > 0;
    }
    return 3;
}

static ortc_status read_gpt(ortc_search_state *s, const ortc_graph *decoder, const ortc_graph *init,
                            ortc_prep *prep)
{
    const ortc_port past = ortc_graph_in(decoder, 3);
    s->first_past = 3;
    s->layers = s->n_out - 1;
    s->shares_at = s->n_out + 2;
    s->shares = shares_of(decoder, s->shares_at, ortc_graph_n_in(decoder));
    s->n_in = s->shares_at + s->shares;
    s->n_init = init ? s->shares_at + shares_of(init, s->shares_at, ortc_graph_n_in(init)) : s->n_in;
    if (s->n_init > s->n_in) s->n_init = s->n_in;
    s->past_type = past.dtype;
    if (s->n_out < 2 || past.rank != 5 || past.dims[2] < 1 || past.dims[4] < 1 || !past.dtype)
        return ortc_prep_fail(
            prep, ORTC_INVALID_MODEL,
            "input 3 of the decoder, the past, must have the shape [2, rows, heads, past, size] "
            "with numbers for heads and size");
    s->heads = past.dims[2];
    s->size = past.dims[4];
    return ORTC_OK;
}

/* How many layers there are, and whether the decoder takes hidden states, follows from how many inputs and
 * outputs there are; what both subgraphs capture counts among their inputs. */
static ortc_status read_pair(ortc_search_state *s, const ortc_graph *encoder, const ortc_graph *decoder,
                             ortc_prep *prep)
{
    const ortc_port tokens = ortc_graph_in(decoder, 0);
    const uint32_t masks = s->model == 1;
    s->enc_out = ortc_graph_n_out(encoder);
    s->layers = (s->n_out - 1) / (2 + s->crossed);
    const bool starts = s->enc_out == 2 + 4 * s->layers; /* the encoder makes the first scores, too */
    s->enc_in = 1 + masks + (starts || s->model == 2);
    const int64_t captured = (int64_t)ortc_graph_n_in(encoder) - s->enc_in,
                  n_in = (int64_t)ortc_graph_n_in(decoder) - captured;
    s->first_past = 1 + masks; /* hidden states, of three dims, come before */
    if (n_in > s->first_past) {
        const int32_t rank = ortc_graph_in(decoder, s->first_past).rank;
        s->first_past += rank == 3 || (rank < 0 && n_in == s->first_past + 1 + 4 * (int64_t)s->layers);
    }
    s->shares_at = s->first_past + 4 * s->layers;
    s->shares = n_in > s->shares_at ? (uint32_t)(n_in - s->shares_at) : 0;
    if (s->layers < 1 || s->n_out != 1 + (2 + s->crossed) * s->layers || captured < 0 ||
        (!starts && (s->enc_out != 2 * s->layers || s->first_past > 1 + masks)) || n_in < s->shares_at ||
        s->shares != shares_of(decoder, s->shares_at, (uint32_t)n_in))
        return ortc_prep_fail(
            prep, ORTC_INVALID_MODEL,
            "an encoder with %u inputs and %u outputs and a decoder with %u and %u do not fit",
            ortc_graph_n_in(encoder), s->enc_out, ortc_graph_n_in(decoder), s->n_out);
    s->n_in = (uint32_t)n_in;
    s->whole = tokens.rank == 2 && tokens.dims[1] != 1;
    return ORTC_OK;
}

static ortc_status read_attributes(ortc_search_state *s, const ortc_node *n, ortc_prep *prep)
{
    const ortc_attr decoder = ortc_node_attr(n, "decoder"), encoder = ortc_node_attr(n, "encoder"),
                    init = ortc_node_attr(n, "init_decoder");
    s->kind = *ortc_node_op(n) == 'G'   ? ORTC_SEARCH_GREEDY
              : *ortc_node_op(n) == 'S' ? ORTC_SEARCH_SAMPLING
                                        : ORTC_SEARCH_BEAMS;
    s->model = ortc_node_int(n, "model_type", 0);
    s->eos = ortc_node_int(n, "eos_token_id", -1);
    s->pad = ortc_node_int(n, "pad_token_id", -1);
    s->start = ortc_node_int(n, "decoder_start_token_id", -1);
    s->ngram = ortc_node_int(n, "no_repeat_ngram_size", 0);
    s->vocab = ortc_node_int(n, "vocab_size", -1);
    s->early = ortc_node_int(n, "early_stopping", 0) == 1;
    s->custom = ortc_node_int(n, "custom", 0);
    s->min_kept = ortc_node_int(n, "min_tokens_to_keep", 0);
    s->temperature = ortc_node_float(n, "temperature", 1);
    s->top_p = ortc_node_float(n, "top_p", 0);
    s->filter = ortc_node_float(n, "filter_value", -1e20F);
    s->presence = ortc_node_float(n, "presence_penalty", 0);
    s->times = ortc_node_int(n, "beginning_timestamp_token_id", -1);
    s->silent[0] = ortc_node_int(n, "no_timestamps_token_id", -1);
    s->silent[1] = ortc_node_int(n, "start_of_lm_token_id", -1);
    s->silent[2] = s->start; /* of a transcript */
    s->silent[3] = ortc_node_int(n, "translate_token_id", -1);
    s->silent[4] = ortc_node_int(n, "transcribe_token_id", -1);
    s->init = init.kind == ORTC_ATTR_GRAPH;
    if (s->eos < 0 || s->eos > INT32_MAX || s->pad < 0 || s->pad > INT32_MAX || !(s->temperature > 0))
        return ortc_prep_fail(prep, ORTC_INVALID_MODEL,
                              "eos_token_id %lld, pad_token_id %lld, temperature %g", (long long)s->eos,
                              (long long)s->pad, (double)s->temperature);
    s->no_speech = ortc_node_int(n, "no_speech_token_id", -1);
    s->crossed = s->model && ortc_node_int(n, "decoder_output_cross_qk", 0) != 0;
    if (ortc_node_out(n, 3).type && !s->crossed)
        return ortc_prep_fail(prep, ORTC_INVALID_MODEL, "cross_qk needs decoder_output_cross_qk");
    if (s->model < 0 || s->model > 2 || (s->model && s->kind != ORTC_SEARCH_BEAMS) ||
        (s->model && encoder.kind != ORTC_ATTR_GRAPH))
        return ortc_prep_fail(prep, ORTC_INVALID_MODEL, "model_type %lld needs %s", (long long)s->model,
                              s->kind == ORTC_SEARCH_BEAMS ? "an encoder, or is unknown" : "BeamSearch");
    s->n_out = ortc_graph_n_out(decoder.u.graphs[0]);
    return s->model ? read_pair(s, encoder.u.graphs[0], decoder.u.graphs[0], prep)
                    : read_gpt(s, decoder.u.graphs[0], s->init ? init.u.graphs[0] : NULL, prep);
}

static ortc_status search_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    ortc_search_state *s = calloc(1, sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    const ortc_status status = read_attributes(s, n, prep);
    if (status == ORTC_OK)
        *out = s;
    else
        free(s);
    return status;
}

/* ---- Inputs -------------------------------------------------------------------------------------------- */

static const ortc_view *given(const ortc_search *s, uint32_t port)
{
    return port < s->call->n_in && ortc_view_present(&s->call->in[port]) ? &s->call->in[port] : NULL;
}

/* A scalar, or `otherwise` where it is left out, checked against its bounds. */
static ortc_status read_number(const ortc_search *s, uint32_t port, const char *name, double low, double high,
                               double *value)
{
    const ortc_view *v = given(s, port);
    if (!v) return ORTC_OK;
    if (ortc_view_count(v) != 1)
        return ortc_call_fail(s->call, ORTC_SHAPE_MISMATCH, "'%s' has %lld elements, expected 1", name,
                              (long long)ortc_view_count(v));
    *value = v->dtype == ORTC_I32 ? (double)ortc_load_i64(v->data, v->dtype, 0)
                                  : ortc_load_f64(v->data, v->dtype, 0);
    if (*value >= low && *value <= high) return ORTC_OK;
    return ortc_call_fail(s->call, ORTC_INVALID_ARGUMENT, "'%s' is %g, expected %.9g to %.9g", name, *value,
                          low, high);
}

/* A mask of int32 with the dims that it must have; *out NULL: left out. */
static ortc_status read_mask(const ortc_search *s, uint32_t port, const char *name, int32_t rank,
                             int64_t rows, int64_t columns, const int32_t **out)
{
    const ortc_view *v = given(s, port);
    *out = NULL;
    if (!v) return ORTC_OK;
    if (v->rank != rank || v->dims[rank - 1] != columns || (rank == 2 && v->dims[0] != rows))
        return ortc_call_fail(s->call, ORTC_SHAPE_MISMATCH, "'%s' does not have %lld rows of %lld elements",
                              name, (long long)rows, (long long)columns);
    *out = v->data;
    return ORTC_OK;
}

static uint32_t repetition_port(const ortc_search *s) { return s->state->kind == ORTC_SEARCH_BEAMS ? 6 : 3; }

/* Words that are forced, and scores that are wanted. */
static ortc_status read_extras(ortc_search *s)
{
    const ortc_view *ids = given(s, 13), *pairs = given(s, 12);
    if (s->state->kind != ORTC_SEARCH_BEAMS) return ORTC_OK;
    if (ids) {
        if (ids->rank != 2 || ids->dims[0] != s->batch)
            return ortc_call_fail(s->call, ORTC_SHAPE_MISMATCH, "'extra_decoding_ids' must have %lld rows",
                                  (long long)s->batch);
        s->forced = ids->data;
        s->n_forced = ids->dims[1];
    }
    if (pairs && (pairs->rank != 2 || pairs->dims[1] != 2 || pairs->dims[0] > PAIRS_LIMIT))
        return ortc_call_fail(s->call, ORTC_SHAPE_MISMATCH,
                              "'cross_qk_layer_head' must be pairs [n, 2], at most %d", PAIRS_LIMIT);
    return ORTC_OK;
}

static ortc_status read_numbers(ortc_search *s)
{
    const bool many = s->state->kind == ORTC_SEARCH_BEAMS;
    double max = 0, min = 0, beams = 1, returned = 1, length_penalty = 1, repetition = 1, processor = 0,
           seed = 0, temperature = (double)s->state->temperature;
    ORTC_TRY(read_number(s, 1, "max_length", (double)s->first + 1, 0x1p20, &max));
    ORTC_TRY(read_number(s, 2, "min_length", -0x1p31, max - 1, &min));
    if (many) {
        ORTC_TRY(read_number(s, 3, "num_beams", 1, BEAMS_LIMIT, &beams));
        ORTC_TRY(read_number(s, 4, "num_return_sequences", 1, beams, &returned));
        ORTC_TRY(read_number(s, 5, "length_penalty", -1e30, 1e30, &length_penalty));
        ORTC_TRY(read_number(s, 11, "logits_processor", 0, 1, &processor));
        ORTC_TRY(read_number(s, 14, "temperature", 1e-30, 1e30, &temperature));
        s->timed = processor == 1;
    }
    ORTC_TRY(read_number(s, repetition_port(s), "repetition_penalty", 1e-30, 1e30, &repetition));
    s->max = (int64_t)max;
    s->min = (int64_t)min;
    s->beams = (int64_t)beams;
    s->returned = (int64_t)returned;
    s->length_penalty = (float)length_penalty;
    s->repetition = (float)repetition;
    s->temperature = (float)temperature;
    s->rows = s->batch * s->beams;
    s->key = ortc_random_key(ortc_call_seed(s->call));
    if (s->state->kind == ORTC_SEARCH_SAMPLING && given(s, 8)) {
        ORTC_TRY(read_number(s, 8, "seed", -0x1p31, 0x1p31, &seed));
        s->key = ortc_random_key((uint64_t)(int64_t)seed);
    }
    return ORTC_OK;
}

/* Batch, and how many tokens there are at first. */
static ortc_status read_extents(ortc_search *s)
{
    const ortc_view *ids = &s->call->in[0], *more = given(s, 10);
    const int32_t rank = s->state->model == 2 ? 3 : 2;
    if (ids->rank != rank || ids->dims[0] < 1 || ids->dims[1] < 1 || (rank == 2 && ids->dtype != ORTC_I32))
        return ortc_call_fail(s->call, ORTC_SHAPE_MISMATCH, "'input_ids' must have %d dims, none of them 0%s",
                              rank, rank == 2 ? ", of int32" : "");
    s->batch = ids->dims[0];
    s->first = s->state->model ? 1 : ids->dims[1];
    if (s->state->model != 2 || !more) return ORTC_OK;
    if (more->rank != 2 || more->dims[0] != s->batch || more->dims[1] < 1)
        return ortc_call_fail(s->call, ORTC_SHAPE_MISMATCH, "'decoder_input_ids' must be [%lld, 1 or more]",
                              (long long)s->batch);
    s->first = more->dims[1];
    return ORTC_OK;
}

/* ---- Values of subgraphs ------------------------------------------------------------------------------- */

static ortc_status make_i32(const ortc_search *s, int64_t rows, int64_t columns, ortc_value **out,
                            int32_t **data)
{
    const int64_t dims[2] = {rows, columns};
    ortc_view v;
    ORTC_TRY(ortc_call_make(s->call, ORTC_I32, 2, dims, out));
    const ortc_status status = ortc_call_look(s->call, *out, &v);
    *data = status == ORTC_OK ? v.data : NULL;
    return status;
}

static void drop(const ortc_search *s, ortc_value **v)
{
    if (*v) ortc_call_drop(s->call, *v);
    *v = NULL;
}

/* *to becomes *v with row `from[i]` of its axis at place i, for all rows. Takes *v. */
static ortc_status pick(ortc_search *s, ortc_value **v, int32_t axis, const int32_t *from, ortc_value **to)
{
    ortc_view x, y;
    int64_t dims[ORTC_RANK_LIMIT], outer = 1, inner = 1;
    bool same = true;
    drop(s, to);
    ORTC_TRY(ortc_call_look(s->call, *v, &x));
    const uint32_t bits = ortc_dtype_bits(x.dtype);
    if (x.rank <= axis || bits < 8 || x.dtype == ORTC_STRING)
        return ortc_call_fail(s->call, ORTC_SHAPE_MISMATCH, "a subgraph's keys or values have rank %d",
                              x.rank);
    same = x.dims[axis] == s->rows;
    for (int64_t i = 0; i < s->rows; i++) {
        same &= from[i] == i;
        if (from[i] >= x.dims[axis])
            return ortc_call_fail(s->call, ORTC_SHAPE_MISMATCH, "a subgraph makes %lld rows, expected %lld",
                                  (long long)x.dims[axis], (long long)s->rows);
    }
    if (same) {
        *to = *v;
        *v = NULL;
        return ORTC_OK;
    }
    ortc_copy_dims(dims, x.dims, x.rank);
    dims[axis] = s->rows;
    for (int32_t d = 0; d < x.rank; d++) *(d < axis ? &outer : &inner) *= d == axis ? 1 : x.dims[d];
    ORTC_TRY(ortc_call_make(s->call, x.dtype, x.rank, dims, to));
    ORTC_TRY(ortc_call_look(s->call, *to, &y));
    const size_t bytes = (size_t)inner * (bits / 8);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < s->rows && bytes; i++)
            memcpy((char *)y.data + (size_t)(o * s->rows + i) * bytes,
                   (const char *)x.data + (size_t)(o * x.dims[axis] + from[i]) * bytes, bytes);
    drop(s, v);
    return ORTC_OK;
}

/* The logits of the last token, of all rows or of one for each line. */
static ortc_status take_scores(ortc_search *s)
{
    ortc_view x;
    ORTC_TRY(ortc_call_look(s->call, s->out[0], &x));
    if (x.rank != 3 || x.dims[1] < 1 || x.dims[2] < s->vocab ||
        (x.dims[0] != s->rows && x.dims[0] != s->batch))
        return ortc_call_fail(s->call, ORTC_SHAPE_MISMATCH, "logits must be [%lld, tokens, at least %lld]",
                              (long long)s->rows, (long long)s->vocab);
    for (int64_t r = 0; r < s->rows; r++) {
        const int64_t row = x.dims[0] == s->rows ? r : r / s->beams,
                      at = ((row + 1) * x.dims[1] - 1) * x.dims[2];
        if (x.dtype == ORTC_F32)
            memcpy(s->scores + r * s->vocab, (const float *)x.data + at,
                   (size_t)s->vocab * sizeof *s->scores);
        else
            for (int64_t i = 0; i < s->vocab; i++)
                s->scores[r * s->vocab + i] = (float)ortc_load_f64(x.data, x.dtype, at + i);
    }
    return ORTC_OK;
}

static bool crosses(const ortc_search *s) { return s->call->n_out > 3 && s->call->out[3].dtype; }

/* A run of the decoder leaves what is crossed of each row, of the pairs of layer and head that are wanted. */
static ortc_status keep_crossed(ortc_search *s)
{
    const ortc_search_state *is = s->state;
    const ortc_view *told = given(s, 12);
    ortc_view x;
    if (!crosses(s)) return ORTC_OK;
    for (int64_t i = 0; i < (told ? told->dims[0] : is->layers); i++) {
        const int64_t layer = told ? ((const int32_t *)told->data)[2 * i] : i;
        if (layer < 0 || layer >= is->layers)
            return ortc_call_fail(s->call, ORTC_INVALID_ARGUMENT,
                                  "'cross_qk_layer_head' has layer %lld of %u", (long long)layer, is->layers);
        ORTC_TRY(ortc_call_look(s->call, s->out[1 + 2 * is->layers + layer], &x));
        if (x.rank != 4 || x.dims[0] != s->rows || x.dims[2] != 1 ||
            (s->frames >= 0 && x.dims[3] != s->frames))
            return ortc_call_fail(s->call, ORTC_SHAPE_MISMATCH,
                                  "what a decoder crosses must be [%lld, heads, 1, frames]",
                                  (long long)s->rows);
        const int64_t head = told ? ((const int32_t *)told->data)[2 * i + 1] : 0,
                      heads = told ? 1 : x.dims[1];
        if (head < 0 || head + heads > x.dims[1])
            return ortc_call_fail(s->call, ORTC_INVALID_ARGUMENT,
                                  "'cross_qk_layer_head' has head %lld of %lld", (long long)head,
                                  (long long)x.dims[1]);
        const int64_t pairs = told ? told->dims[0] : is->layers * heads;
        if (s->frames >= 0 && pairs != s->n_pairs)
            return ortc_call_fail(
                s->call, ORTC_SHAPE_MISMATCH,
                "a layer of the decoder crosses with %lld heads, another with more or fewer",
                (long long)heads);
        s->frames = x.dims[3];
        s->n_pairs = pairs;
        float **kept = &s->crossed[s->runs];
        if (!*kept && !(*kept = calloc((size_t)(s->rows * s->n_pairs * s->frames) + 1, sizeof **kept)))
            return ortc_call_fail(s->call, ORTC_OUT_OF_MEMORY, "no memory for what a decoder crosses");
        for (int64_t r = 0; r < s->rows; r++)
            for (int64_t h = 0; h < heads; h++)
                for (int64_t f = 0; f < s->frames; f++)
                    (*kept)[(r * s->n_pairs + i * heads + h) * s->frames + f] =
                        (float)ortc_load_f64(x.data, x.dtype, (r * x.dims[1] + head + h) * s->frames + f);
    }
    s->runs++;
    return ORTC_OK;
}

static ortc_status run_body(ortc_search *s, const char *name, uint32_t n_in, uint32_t n_out)
{
    for (uint32_t i = 0; i < s->n_held_out; i++) drop(s, &s->out[i]);
    ORTC_TRY(ortc_poll(s->call));
    return ortc_call_body(s->call, name, n_in, s->in, n_out, s->out);
}

/* The decoder's tokens: the newest of each row, or all. */
static ortc_status feed_tokens(ortc_search *s, bool all)
{
    const int64_t columns = all ? s->length : 1;
    int32_t *data;
    drop(s, &s->in[0]);
    ORTC_TRY(make_i32(s, s->rows, columns, &s->in[0], &data));
    for (int64_t r = 0; r < s->rows; r++)
        memcpy(data + r * columns, s->tokens + r * s->max + s->length - columns,
               (size_t)columns * sizeof *data);
    return ORTC_OK;
}

/* Where pasts are buffers: that `past` tokens are there, the beams, which of them each token came from. */
static ortc_status feed_buffers(ortc_search *s, int64_t past)
{
    const ortc_search_state *is = s->state;
    ortc_value **in = &s->in[is->shares_at];
    const int64_t dims[3] = {s->batch, s->beams, s->max};
    int32_t *data;
    ortc_view v;
    for (uint32_t i = 0; i < is->shares; i++) drop(s, &in[i]);
    for (uint32_t i = 0; i < is->shares && i < 2; i++) {
        const int64_t one = 1;
        ORTC_TRY(ortc_call_make(s->call, ORTC_I32, 1, &one, &in[i]));
        ORTC_TRY(ortc_call_look(s->call, in[i], &v));
        data = v.data;
        *data = (int32_t)(i ? s->beams : past);
    }
    if (is->shares < 3) return ORTC_OK;
    ORTC_TRY(ortc_call_make(s->call, ORTC_I32, 3, dims, &in[2]));
    ORTC_TRY(ortc_call_look(s->call, in[2], &v));
    memcpy(v.data, s->origins, (size_t)(s->rows * s->max) * sizeof *s->origins);
    return ORTC_OK;
}

/* *v, a past, with room behind it: `max` tokens. */
static ortc_status widen(ortc_search *s, ortc_value **v, int32_t axis)
{
    ortc_view x, y;
    ortc_value *wide;
    int64_t dims[ORTC_RANK_LIMIT], outer = 1;
    ORTC_TRY(ortc_call_look(s->call, *v, &x));
    if (x.rank != axis + 2 || x.dims[axis] > s->max)
        return ortc_call_fail(s->call, ORTC_SHAPE_MISMATCH, "a past of rank %d has more than %lld tokens",
                              x.rank, (long long)s->max);
    if (ortc_dtype_bits(x.dtype) < 8 || x.dtype == ORTC_STRING)
        return ortc_call_fail(s->call, ORTC_TYPE_MISMATCH, "a past is of %s", ortc_dtype_name(x.dtype));
    ortc_copy_dims(dims, x.dims, x.rank);
    dims[axis] = s->max;
    for (int32_t d = 0; d < axis; d++) outer *= dims[d];
    ORTC_TRY(ortc_call_make(s->call, x.dtype, x.rank, dims, &wide));
    ortc_status status = ortc_call_look(s->call, wide, &y);
    const size_t token = (size_t)x.dims[axis + 1] * ortc_dtype_bits(x.dtype) / 8,
                 bytes = (size_t)x.dims[axis] * token, room = (size_t)s->max * token;
    for (int64_t o = 0; o < outer && status == ORTC_OK; o++) {
        if (bytes) memcpy((char *)y.data + (size_t)o * room, (const char *)x.data + (size_t)o * bytes, bytes);
        memset((char *)y.data + (size_t)o * room + bytes, 0, room - bytes);
    }
    drop(s, v);
    *v = wide;
    return status;
}

/* ---- GPT-2 --------------------------------------------------------------------------------------------- */

/* Positions count tokens that are no padding; the mask is 1 for those, and for all new ones. */
static ortc_status feed_gpt(ortc_search *s)
{
    const int64_t columns = s->step ? 1 : s->length;
    int32_t *at, *mask;
    ORTC_TRY(feed_tokens(s, !s->step));
    ORTC_TRY(feed_buffers(s, s->length - columns));
    drop(s, &s->in[1]);
    drop(s, &s->in[2]);
    ORTC_TRY(make_i32(s, s->rows, columns, &s->in[1], &at));
    ORTC_TRY(make_i32(s, s->rows, s->length, &s->in[2], &mask));
    for (int64_t r = 0; r < s->rows; r++) {
        const int32_t *tokens = s->tokens + r * s->max;
        if (s->step)
            at[r] = (int32_t)(s->counted[r] + s->step - 1);
        else
            for (int64_t i = 0, n = 0; i < columns; i++)
                at[r * columns + i] = tokens[i] == s->state->pad ? 0 : (int32_t)n++;
        for (int64_t i = 0; i < s->length; i++)
            mask[r * s->length + i] = i < s->first ? s->mask[r * s->first + i] : 1;
    }
    return ORTC_OK;
}

static ortc_status begin_gpt(ortc_search *s)
{
    const ortc_search_state *is = s->state;
    const int64_t dims[5] = {2, s->rows, is->heads, 0, is->size};
    for (uint32_t i = 0; i < is->layers; i++) {
        ORTC_TRY(ortc_call_make(s->call, is->past_type, 5, dims, &s->in[is->first_past + i]));
        if (is->shares) ORTC_TRY(widen(s, &s->in[is->first_past + i], 3));
    }
    ORTC_TRY(feed_gpt(s));
    return run_body(s, is->init ? "init_decoder" : "decoder", is->n_init, is->n_out);
}

/* ---- T5 and Whisper ------------------------------------------------------------------------------------ */

/* The encoder, and what of it the decoder takes: `expand` says which line a row belongs to. */
static ortc_status begin_pair(ortc_search *s, const int32_t *expand)
{
    const ortc_search_state *is = s->state;
    const bool starts = is->enc_out == 2 + 4 * is->layers;
    int32_t *data;
    uint32_t at = 1;
    ortc_value *given_ids = ortc_call_value(s->call, 0);
    if (!given_ids) return ortc_call_fail(s->call, ORTC_OUT_OF_MEMORY, "no memory for the encoder's input");
    ORTC_TRY(ortc_call_keep(s->call, given_ids, &s->in[0]));
    if (is->model == 1) {
        const int64_t n = s->call->in[0].dims[1];
        const int32_t *ids = s->call->in[0].data, *told;
        ORTC_TRY(read_mask(s, 9, "attention_mask", 2, s->batch, n, &told));
        ORTC_TRY(make_i32(s, s->batch, n, &s->in[at++], &data));
        for (int64_t i = 0; i < s->batch * n; i++) /* padding is what stands before the first other token */
            data[i] = told ? told[i] : ids[i] != is->pad || (i % n && data[i - 1]);
    }
    if (at < is->enc_in) {
        ORTC_TRY(make_i32(s, s->batch, s->first, &s->in[at], &data));
        for (int64_t b = 0; b < s->batch; b++)
            memcpy(data + b * s->first, s->tokens + b * s->beams * s->max, (size_t)s->first * sizeof *data);
    }
    ORTC_TRY(run_body(s, "encoder", is->enc_in, is->enc_out));
    drop(s, &s->in[0]);
    if (is->enc_in > at) drop(s, &s->in[at]);
    if (is->model == 1) {
        ortc_value *mask = s->in[1];
        s->in[1] = NULL;
        const ortc_status status = pick(s, &mask, 0, expand, &s->in[1]);
        drop(s, &mask);
        ORTC_TRY(status);
    }
    const uint32_t own = is->first_past, crossed = own + 2 * is->layers, masks = is->model == 1;
    for (uint32_t i = 0; i < 2 * is->layers; i++) {
        if (starts) {
            ORTC_TRY(pick(s, &s->out[2 + i], 0, expand, &s->in[own + i]));
            if (is->shares) ORTC_TRY(widen(s, &s->in[own + i], 2));
            ORTC_TRY(pick(s, &s->out[2 + 2 * is->layers + i], 0, expand, &s->in[crossed + i]));
            continue;
        }
        ortc_view x;
        ORTC_TRY(ortc_call_look(s->call, s->out[i], &x));
        if (x.rank != 4)
            return ortc_call_fail(s->call, ORTC_SHAPE_MISMATCH,
                                  "the encoder's keys and values have rank %d, not 4", x.rank);
        const int64_t dims[4] = {s->rows, x.dims[1], 0, x.dims[3]};
        ORTC_TRY(ortc_call_make(s->call, x.dtype, 4, dims, &s->in[own + i]));
        if (is->shares) ORTC_TRY(widen(s, &s->in[own + i], 2));
        ORTC_TRY(pick(s, &s->out[i], 0, expand, &s->in[crossed + i]));
    }
    if (own == 2 + masks) ORTC_TRY(pick(s, &s->out[1], 0, expand, &s->in[1 + masks]));
    if (starts) return ORTC_OK; /* with scores for the first token */
    ORTC_TRY(feed_tokens(s, true));
    ORTC_TRY(feed_buffers(s, 0));
    ORTC_TRY(run_body(s, "decoder", is->n_in, is->n_out));
    return keep_crossed(s);
}

/* ---- The search ---------------------------------------------------------------------------------------- */

/* `extended`, whose rows are those that the new ones extend, with one element more at `at`. */
static void extend(const ortc_search *s, int32_t *extended, const int32_t *rows, int64_t at,
                   const int32_t *next)
{
    for (int64_t r = 0; r < s->rows; r++) {
        memcpy(extended + r * s->max, rows + (int64_t)s->from[r] * s->max, (size_t)at * sizeof *extended);
        extended[r * s->max + at] = next[r];
    }
}

static void swap(int32_t **a, int32_t **b)
{
    int32_t *const first = *a;
    *a = *b;
    *b = first;
}

static void append_next(ortc_search *s)
{
    extend(s, s->spare, s->tokens, s->length, s->next);
    swap(&s->spare, &s->tokens);
    s->length++;
    if (s->traced == s->runs) return;
    extend(s, s->spare_trace, s->trace, s->traced++, s->from);
    swap(&s->spare_trace, &s->trace);
}

/* Where each token of the rows that go on came from: the caches stay where they are. The newest that is
 * known is the last but one. */
static void follow_beams(ortc_search *s)
{
    const int64_t known = s->length - 1;
    for (int64_t r = 0; r < s->rows; r++)
        for (int64_t t = 0; t < known; t++)
            s->spare_origins[r * s->max + t] = t < s->known_origins
                                                   ? s->origins[(int64_t)s->from[r] * s->max + t]
                                                   : (int32_t)(s->from[r] % s->beams);
    s->known_origins = known;
    swap(&s->origins, &s->spare_origins);
}

static ortc_status step(ortc_search *s)
{
    const ortc_search_state *is = s->state;
    const int32_t axis = is->model ? 0 : 1;
    const uint32_t n = is->model ? 2 * is->layers : is->layers;
    const bool stays = is->shares == 3;
    if (stays) follow_beams(s);
    /* the encoder's results are no decoder's: its own keys and values are in place, and of one row a line */
    for (uint32_t i = 0; i < n; i++) {
        if (s->step == 1 && is->model && is->enc_out != 2 * is->layers) break;
        ortc_value **const past = &s->in[is->first_past + i], **const present = &s->out[1 + i];
        if (!stays) {
            ORTC_TRY(pick(s, present, axis, s->from, past));
            continue;
        }
        drop(s, past);
        *past = *present;
        *present = NULL;
    }
    if (!is->model) {
        ORTC_TRY(feed_gpt(s));
        return run_body(s, "decoder", is->n_in, is->n_out);
    }
    ORTC_TRY(feed_tokens(s, is->whole));
    ORTC_TRY(feed_buffers(s, s->length - 1));
    ORTC_TRY(run_body(s, "decoder", is->n_in, is->n_out));
    return keep_crossed(s);
}

/* The vocabulary is what the attribute says, or the extent of the first logits. */
static ortc_status take_vocabulary(ortc_search *s)
{
    ortc_view x;
    const bool many = s->state->kind == ORTC_SEARCH_BEAMS;
    const uint32_t masks = repetition_port(s) + 1;
    ORTC_TRY(ortc_call_look(s->call, s->out[0], &x));
    s->vocab = s->state->vocab > 0 ? s->state->vocab : x.rank == 3 ? x.dims[2] : 0;
    if (s->vocab < 2 || s->vocab > INT32_MAX)
        return ortc_call_fail(s->call, ORTC_SHAPE_MISMATCH,
                              "logits must be [rows, tokens, words], 2 words at least");
    if (s->timed && (s->state->times < 1 || s->state->times >= s->vocab))
        return ortc_call_fail(
            s->call, ORTC_INVALID_ARGUMENT,
            "'logits_processor' 1 needs beginning_timestamp_token_id below %lld, it is %lld",
            (long long)s->vocab, (long long)s->state->times);
    ORTC_TRY(read_mask(s, masks, "vocab_mask", 1, 1, s->vocab, &s->vocab_mask));
    ORTC_TRY(read_mask(s, masks + 1, "prefix_vocab_mask", 2, s->batch, s->vocab, &s->prefix_mask));
    if (!many) ORTC_TRY(read_mask(s, 7, "presence_mask", 2, s->batch, s->vocab, &s->presence_mask));
    s->scores = malloc((size_t)s->rows * (size_t)s->vocab * sizeof *s->scores);
    s->marks = malloc((size_t)s->vocab);
    s->best = calloc((size_t)(many ? 2 * s->beams : s->vocab), sizeof *s->best);
    if (!s->scores || !s->marks || !s->best)
        return ortc_call_fail(s->call, ORTC_OUT_OF_MEMORY, "no memory for %lld words", (long long)s->vocab);
    if (s->call->n_out > 4 && s->call->out[4].dtype) {
        const int64_t dims[1] = {s->batch};
        if (s->state->no_speech < 0 || s->state->no_speech >= s->vocab)
            return ortc_call_fail(s->call, ORTC_INVALID_ARGUMENT, "no_speech_token_id is %lld, of %lld words",
                                  (long long)s->state->no_speech, (long long)s->vocab);
        ORTC_TRY(ortc_call_resize(s->call, 4, 1, dims));
        s->no_speech = s->call->out[4].data;
    }
    if (s->call->n_out < 2) return ORTC_OK;
    if (!many) {
        const int64_t dims[2] = {s->batch, s->vocab};
        return s->call->out[1].dtype ? ortc_call_resize(s->call, 1, 2, dims) : ORTC_OK;
    }
    const int64_t dims[4] = {s->max - s->first, s->batch, s->beams, s->vocab};
    if (s->call->n_out < 3 || !s->call->out[2].dtype) return ORTC_OK;
    ORTC_TRY(ortc_call_resize(s->call, 2, 4, dims));
    for (int64_t i = 0; i < ortc_view_count(&s->call->out[2]); i++)
        ortc_store_f64(s->call->out[2].data, s->call->out[2].dtype, i, 0);
    return ORTC_OK;
}

/* Scores of this step, where they are an output. */
static void keep_scores(ortc_search *s)
{
    const bool many = s->state->kind == ORTC_SEARCH_BEAMS;
    const uint32_t port = many ? 2 : 1;
    const int64_t n = s->rows * s->vocab, at = many ? (s->step - 1) * n : 0;
    if (s->call->n_out <= port || !s->call->out[port].dtype) return;
    for (int64_t i = 0; i < n; i++)
        ortc_store_f64(s->call->out[port].data, s->call->out[port].dtype, at + i, (double)s->scores[i]);
}

/* Scores of what the encoder said [batch, sentences, pairs, runs, frames], of the rows that each sentence
 * comes from; zeros behind its end. */
static ortc_status give_crossed(ortc_search *s)
{
    const int64_t dims[5] = {s->batch, s->returned, s->n_pairs, s->runs, s->frames < 0 ? 0 : s->frames};
    ORTC_TRY(ortc_call_resize(s->call, 3, 5, dims));
    float *y = s->call->out[3].data;
    for (int64_t i = 0; i < s->batch * s->returned; i++) {
        const ortc_search_sentence *best = &s->sentences[i / s->returned * s->beams + i % s->returned];
        for (int64_t p = 0; p < s->n_pairs; p++)
            for (int64_t t = 0; t < s->runs; t++, y += s->frames) {
                const float *from = s->crossed[t];
                if (t < best->runs)
                    memcpy(y, from + (best->trace[t] * s->n_pairs + p) * s->frames,
                           (size_t)s->frames * sizeof *y);
                else
                    memset(y, 0, (size_t)s->frames * sizeof *y);
            }
    }
    return ORTC_OK;
}

static ortc_status give_all(ortc_search *s)
{
    const bool many = s->state->kind == ORTC_SEARCH_BEAMS;
    ortc_view *y = &s->call->out[0];
    const int64_t dims[3] = {s->batch, s->returned, s->max}, flat[2] = {s->batch, s->max};
    ORTC_TRY(many ? ortc_call_resize(s->call, 0, 3, dims) : ortc_call_resize(s->call, 0, 2, flat));
    const bool scored = many && s->call->n_out > 1 && s->call->out[1].dtype;
    if (scored) ORTC_TRY(ortc_call_resize(s->call, 1, 2, dims));
    if (many) ortc_search_close(s);
    for (int64_t i = 0; i < s->batch * s->returned; i++) {
        const ortc_search_sentence *best = many ? &s->sentences[i / s->returned * s->beams + i % s->returned]
                                                : NULL;
        const int32_t *tokens = many ? best->tokens : s->tokens + i * s->max;
        const int64_t length = many ? best->length : s->length;
        for (int64_t t = 0; y->dtype && t < s->max; t++)
            ((int32_t *)y->data)[i * s->max + t] = t < length ? tokens[t] : (int32_t)s->state->pad;
        if (scored) ortc_store_f64(s->call->out[1].data, s->call->out[1].dtype, i, (double)best->score);
    }
    return crosses(s) ? give_crossed(s) : ORTC_OK;
}

/* Tokens that are there at first, of every row, with GPT-2's mask. */
static ortc_status begin_rows(ortc_search *s)
{
    const ortc_search_state *is = s->state;
    const ortc_view *ids = is->model == 2 ? given(s, 10) : &s->call->in[0];
    const int32_t *mask = NULL;
    ORTC_TRY(is->model ? ORTC_OK
                       : read_mask(s, is->kind == ORTC_SEARCH_BEAMS ? 9 : 6, "attention_mask", 2, s->batch,
                                   s->first, &mask));
    if (is->model == 1) ids = NULL;
    if (!ids && is->start < 0)
        return ortc_call_fail(s->call, ORTC_INVALID_ARGUMENT, "there is no decoder_start_token_id");
    for (int64_t r = 0; r < s->rows; r++) {
        const int64_t line = r / s->beams;
        for (int64_t i = 0; i < s->first; i++) {
            const int32_t token = ids ? ((const int32_t *)ids->data)[line * s->first + i]
                                      : (int32_t)is->start;
            s->tokens[r * s->max + i] = token;
            s->counted[r] += token != is->pad;
            if (!is->model) s->mask[r * s->first + i] = mask ? mask[line * s->first + i] : token != is->pad;
        }
        s->sums[r] = r % s->beams ? -1e9F : 0; /* at first all beams of a line are the same */
        s->from[r] = (int32_t)line;
        s->sentences[r].tokens = s->kept + r * s->max;
        s->sentences[r].trace = s->kept_traces ? s->kept_traces + r * s->max : NULL;
    }
    s->length = s->first;
    return ORTC_OK;
}

static ortc_status search(ortc_search *s)
{
    ORTC_TRY(begin_rows(s));
    ORTC_TRY(s->state->model ? begin_pair(s, s->from) : begin_gpt(s));
    ORTC_TRY(take_vocabulary(s));
    for (;;) {
        s->step++;
        ORTC_TRY(take_scores(s));
        ortc_search_score(s);
        if (s->state->kind == ORTC_SEARCH_BEAMS) keep_scores(s);
        const bool ended = ortc_search_choose(s);
        append_next(s);
        if (ended || s->length == s->max) break;
        ORTC_TRY(step(s));
    }
    if (s->state->kind == ORTC_SEARCH_SAMPLING) keep_scores(s);
    return give_all(s);
}

static ortc_status reserve(ortc_search *s)
{
    const size_t rows = (size_t)s->rows, max = (size_t)s->max, one = sizeof(int32_t);
    s->n_held_in = s->state->n_in > s->state->enc_in ? s->state->n_in : s->state->enc_in;
    s->n_held_out = s->state->n_out > s->state->enc_out ? s->state->n_out : s->state->enc_out;
    s->in = calloc(s->n_held_in + 1u, sizeof *s->in);
    s->out = calloc(s->n_held_out + 1u, sizeof *s->out);
    s->tokens = calloc(rows, max * one);
    s->spare = calloc(rows, max * one);
    s->kept = calloc(rows, max * one);
    if (crosses(s)) {
        s->trace = calloc(rows, max * one);
        s->spare_trace = calloc(rows, max * one);
        s->kept_traces = calloc(rows, max * one);
        s->crossed = calloc(max, sizeof *s->crossed);
    }
    if (s->state->shares == 3) {
        s->origins = calloc(rows, max * one);
        s->spare_origins = calloc(rows, max * one);
    }
    s->frames = -1;
    s->mask = calloc(rows, (size_t)s->first * one);
    s->next = calloc(rows, one);
    s->from = calloc(rows, one);
    s->counted = calloc(rows, one);
    s->sums = calloc(rows, sizeof *s->sums);
    s->done = calloc((size_t)s->batch, 1);
    s->n_kept = calloc((size_t)s->batch, sizeof *s->n_kept);
    s->sentences = calloc(rows, sizeof *s->sentences);
    const bool traces = !crosses(s) || (s->trace && s->spare_trace && s->kept_traces && s->crossed),
               all = traces && (s->state->shares < 3 || (s->origins && s->spare_origins)) && s->in &&
                     s->out && s->tokens && s->spare && s->kept && s->mask && s->next && s->from &&
                     s->counted && s->sums && s->done && s->n_kept && s->sentences;
    return all ? ORTC_OK
               : ortc_call_fail(s->call, ORTC_OUT_OF_MEMORY, "no memory for %lld rows of %lld tokens",
                                (long long)s->rows, (long long)s->max);
}

static ortc_status search_run(const void *state, const void *plan, ortc_call *c)
{
    ortc_search s = {.call = c, .state = state};
    ORTC_TRY(read_extents(&s));
    ORTC_TRY(read_numbers(&s));
    ORTC_TRY(read_extras(&s));
    ortc_status status = reserve(&s);
    if (status == ORTC_OK) status = search(&s);
    for (uint32_t i = 0; s.in && i < s.n_held_in; i++) drop(&s, &s.in[i]);
    for (uint32_t i = 0; s.out && i < s.n_held_out; i++) drop(&s, &s.out[i]);
    for (int64_t i = 0; s.crossed && i < s.max; i++) free(s.crossed[i]);
    void *const mine[] = {s.trace,     s.spare_trace, s.kept_traces, s.origins, s.spare_origins, s.crossed,
                          s.in,        s.out,         s.tokens,      s.spare,   s.kept,          s.mask,
                          s.next,      s.from,        s.counted,     s.sums,    s.done,          s.n_kept,
                          s.sentences, s.scores,      s.marks,       s.best};
    for (size_t i = 0; i < sizeof mine / sizeof *mine; i++) free(mine[i]);
    return status;
}

#define SEARCH(kernel, text) \
    const ortc_kernel kernel = {.size = ORTC_SIZED(ortc_kernel), \
                                .flags = ORTC_KERNEL_LATE_OUT | ORTC_KERNEL_NO_CAPTURE, \
                                .name = text, \
                                .prepare = search_prepare, \
                                .run = search_run};
SEARCH(ortc_ref_greedy_search, "greedy_search.ref")
SEARCH(ortc_ref_sampling, "sampling.ref")
SEARCH(ortc_ref_beam_search, "beam_search.ref")
