/* kernels/control/search_body.c: the subgraphs of a search for the next tokens: their inputs are made, run by
 * run, and their results taken.
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

#include "kernels/control/search.h"

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

void ortc_search_drop(const ortc_search *s, ortc_value **v)
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
    ortc_search_drop(s, to);
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
    ortc_search_drop(s, v);
    return ORTC_OK;
}

/* The logits of the last token, of all rows or of one for each line. */
ortc_status ortc_search_take_scores(ortc_search *s)
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

/* A run of the decoder leaves what is crossed of each row, of the pairs of layer and head that are wanted. */
static ortc_status keep_crossed(ortc_search *s)
{
    const ortc_search_state *is = s->state;
    const ortc_view *told = ortc_search_given(s, 12);
    ortc_view x;
    if (!ortc_search_crosses(s)) return ORTC_OK;
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
    for (uint32_t i = 0; i < s->n_held_out; i++) ortc_search_drop(s, &s->out[i]);
    ORTC_TRY(ortc_poll(s->call));
    return ortc_call_body(s->call, name, n_in, s->in, n_out, s->out);
}

/* The decoder's tokens: the newest of each row, or all. */
static ortc_status feed_tokens(ortc_search *s, bool all)
{
    const int64_t columns = all ? s->length : 1;
    int32_t *data;
    ortc_search_drop(s, &s->in[0]);
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
    for (uint32_t i = 0; i < is->shares; i++) ortc_search_drop(s, &in[i]);
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
    ortc_search_drop(s, v);
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
    ortc_search_drop(s, &s->in[1]);
    ortc_search_drop(s, &s->in[2]);
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
        ORTC_TRY(ortc_search_mask(s, 9, "attention_mask", 2, s->batch, n, &told));
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
    ortc_search_drop(s, &s->in[0]);
    if (is->enc_in > at) ortc_search_drop(s, &s->in[at]);
    if (is->model == 1) {
        ortc_value *mask = s->in[1];
        s->in[1] = NULL;
        const ortc_status status = pick(s, &mask, 0, expand, &s->in[1]);
        ortc_search_drop(s, &mask);
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

/* ---- One more token ------------------------------------------------------------------------------------ */

ortc_status ortc_search_step(ortc_search *s)
{
    const ortc_search_state *is = s->state;
    const int32_t axis = is->model ? 0 : 1;
    const uint32_t n = is->model ? 2 * is->layers : is->layers;
    const bool stays = is->shares == 3;
    /* the encoder's results are no decoder's: its own keys and values are in place, and of one row a line */
    for (uint32_t i = 0; i < n; i++) {
        if (s->step == 1 && is->model && is->enc_out != 2 * is->layers) break;
        ortc_value **const past = &s->in[is->first_past + i], **const present = &s->out[1 + i];
        if (!stays) {
            ORTC_TRY(pick(s, present, axis, s->from, past));
            continue;
        }
        ortc_search_drop(s, past);
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

ortc_status ortc_search_begin(ortc_search *s)
{
    return s->state->model ? begin_pair(s, s->from) : begin_gpt(s);
}
