/* kernels/control/search_read.c: what a search for the next tokens is asked: its attributes, with what its
 * subgraphs take, and its inputs.
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

ortc_status ortc_search_prepare(const ortc_node *n, ortc_prep *prep, void **out)
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

/* A scalar, or `otherwise` where it is left out, checked against its bounds. */
static ortc_status read_number(const ortc_search *s, uint32_t port, const char *name, double low, double high,
                               double *value)
{
    const ortc_view *v = ortc_search_given(s, port);
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

ortc_status ortc_search_mask(const ortc_search *s, uint32_t port, const char *name, int32_t rank,
                             int64_t rows, int64_t columns, const int32_t **out)
{
    const ortc_view *v = ortc_search_given(s, port);
    *out = NULL;
    if (!v) return ORTC_OK;
    if (v->rank != rank || v->dims[rank - 1] != columns || (rank == 2 && v->dims[0] != rows))
        return ortc_call_fail(s->call, ORTC_SHAPE_MISMATCH, "'%s' does not have %lld rows of %lld elements",
                              name, (long long)rows, (long long)columns);
    *out = v->data;
    return ORTC_OK;
}

/* Words that are forced, and scores that are wanted. */
static ortc_status read_extras(ortc_search *s)
{
    const ortc_view *ids = ortc_search_given(s, 13), *pairs = ortc_search_given(s, 12);
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
    ORTC_TRY(read_number(s, ortc_search_repetition(s), "repetition_penalty", 1e-30, 1e30, &repetition));
    s->max = (int64_t)max;
    s->min = (int64_t)min;
    s->beams = (int64_t)beams;
    s->returned = (int64_t)returned;
    s->length_penalty = (float)length_penalty;
    s->repetition = (float)repetition;
    s->temperature = (float)temperature;
    s->rows = s->batch * s->beams;
    s->key = ortc_random_key(ortc_call_seed(s->call));
    if (s->state->kind == ORTC_SEARCH_SAMPLING && ortc_search_given(s, 8)) {
        ORTC_TRY(read_number(s, 8, "seed", -0x1p31, 0x1p31, &seed));
        s->key = ortc_random_key((uint64_t)(int64_t)seed);
    }
    return ORTC_OK;
}

/* Batch, and how many tokens there are at first. */
static ortc_status read_extents(ortc_search *s)
{
    const ortc_view *ids = &s->call->in[0], *more = ortc_search_given(s, 10);
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

ortc_status ortc_search_read(ortc_search *s)
{
    ORTC_TRY(read_extents(s));
    ORTC_TRY(read_numbers(s));
    return read_extras(s);
}
