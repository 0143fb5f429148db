/* kernels/control/ref_search.c: GreedySearch, Sampling and BeamSearch on ref: a decoder, which
 * is a subgraph, runs once for every new token. Here is the search itself, its memory and its outputs;
 * search_read.c reads the node, search_body.c runs the subgraphs, ref_choose.c says what comes next.
 */
#include <stdlib.h>

#include "kernels/control/search.h"

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

/* The vocabulary is what the attribute says, or the extent of the first logits. */
static ortc_status take_vocabulary(ortc_search *s)
{
    ortc_view x;
    const bool many = s->state->kind == ORTC_SEARCH_BEAMS;
    const uint32_t masks = ortc_search_repetition(s) + 1;
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
    ORTC_TRY(ortc_search_mask(s, masks, "vocab_mask", 1, 1, s->vocab, &s->vocab_mask));
    ORTC_TRY(ortc_search_mask(s, masks + 1, "prefix_vocab_mask", 2, s->batch, s->vocab, &s->prefix_mask));
    if (!many) ORTC_TRY(ortc_search_mask(s, 7, "presence_mask", 2, s->batch, s->vocab, &s->presence_mask));
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
    return ortc_search_crosses(s) ? give_crossed(s) : ORTC_OK;
}

/* Tokens that are there at first, of every row, with GPT-2's mask. */
static ortc_status begin_rows(ortc_search *s)
{
    const ortc_search_state *is = s->state;
    const ortc_view *ids = is->model == 2 ? ortc_search_given(s, 10) : &s->call->in[0];
    const int32_t *mask = NULL;
    ORTC_TRY(is->model ? ORTC_OK
                       : ortc_search_mask(s, is->kind == ORTC_SEARCH_BEAMS ? 9 : 6, "attention_mask", 2,
                                          s->batch, s->first, &mask));
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
    ORTC_TRY(ortc_search_begin(s));
    ORTC_TRY(take_vocabulary(s));
    for (;;) {
        s->step++;
        ORTC_TRY(ortc_search_take_scores(s));
        ortc_search_score(s);
        if (s->state->kind == ORTC_SEARCH_BEAMS) keep_scores(s);
        const bool ended = ortc_search_choose(s);
        append_next(s);
        if (ended || s->length == s->max) break;
        if (s->state->shares == 3) follow_beams(s);
        ORTC_TRY(ortc_search_step(s));
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
    if (ortc_search_crosses(s)) {
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
    const bool traces = !ortc_search_crosses(s) ||
                        (s->trace && s->spare_trace && s->kept_traces && s->crossed),
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
    ORTC_TRY(ortc_search_read(&s));
    ortc_status status = reserve(&s);
    if (status == ORTC_OK) status = search(&s);
    for (uint32_t i = 0; s.in && i < s.n_held_in; i++) ortc_search_drop(&s, &s.in[i]);
    for (uint32_t i = 0; s.out && i < s.n_held_out; i++) ortc_search_drop(&s, &s.out[i]);
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
                                .prepare = ortc_search_prepare, \
                                .run = search_run};
SEARCH(ortc_ref_greedy_search, "greedy_search.ref")
SEARCH(ortc_ref_sampling, "sampling.ref")
SEARCH(ortc_ref_beam_search, "beam_search.ref")
