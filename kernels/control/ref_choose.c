/* kernels/control/ref_choose.c: the next token of every row, from the decoder's scores of all words.
 *
 * Scores go through what the node asks for, in onnxruntime's order: words that were there already are
 * punished, an n-gram that was there is not repeated, masks, no end before the shortest length, temperature,
 * times. Then the best word is taken (GreedySearch), one is drawn (Sampling: of the likeliest that together
 * have top_p), or the best continuations of all beams of a line are (BeamSearch, after transformers'
 * BeamSearchScorer: of twice as many candidates as beams those that end it are sentences, if they are among
 * the best, the others the new beams; onnxruntime 1.31.1 goes on for too long with lines that are not the
 * first, for it looks at another's candidates to see whether a sentence can become better).
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "kernels/common/random.h"
#include "kernels/control/search.h"

static void log_softmax(float *x, int64_t n)
{
    float top = -INFINITY;
    double sum = 0;
    for (int64_t i = 0; i < n; i++) top = x[i] > top ? x[i] : top;
    for (int64_t i = 0; i < n; i++) sum += (double)expf(x[i] - top);
    const float all = (float)log(sum);
    for (int64_t i = 0; i < n; i++) x[i] = x[i] - top - all;
}

/* Once for each word that the row has. */
static void punish_repetition(ortc_search *s, const int32_t *tokens, float *x)
{
    memset(s->marks, 0, (size_t)s->vocab);
    for (int64_t i = 0; i < s->length; i++) {
        const int32_t word = tokens[i];
        if (word < 0 || word >= s->vocab || s->marks[word]) continue;
        s->marks[word] = 1;
        x[word] = x[word] < 0 ? x[word] * s->repetition : x[word] / s->repetition;
    }
}

/* Words that would end an n-gram for the second time. */
static void forbid_ngrams(const ortc_search *s, const int32_t *tokens, float *x)
{
    const int64_t n = s->state->ngram, head = n - 1;
    for (int64_t i = 0; i + n <= s->length; i++) {
        const int32_t word = tokens[i + head];
        if (word >= 0 && word < s->vocab &&
            !memcmp(tokens + i, tokens + s->length - head, (size_t)head * sizeof *tokens))
            x[word] = -FLT_MAX;
    }
}

static void forbid_unmasked(const int32_t *mask, int64_t n, float *x)
{
    for (int64_t i = 0; mask && i < n; i++)
        if (!mask[i]) x[i] = -FLT_MAX;
}

/* Words from `begin` on; negative ones are none. */
static void forbid(float *x, int64_t begin, int64_t end, int64_t vocab)
{
    for (int64_t i = begin < 0 ? 0 : begin; i < end && i < vocab; i++) x[i] = -FLT_MAX;
}

/* The word that comes next, whatever the decoder says; a negative one is none. */
static void force(float *x, int32_t word, int64_t vocab)
{
    if (word < 0 || word >= vocab) return;
    forbid(x, 0, vocab, vocab);
    x[word] = 0;
}

/* Whisper's words that are times: they come in pairs but for the first, do not go back, and the first is
 * early. Where all that may come are together likelier than any other word, one of them it is. */
static void forbid_times(const ortc_search *s, const int32_t *tokens, float *x)
{
    const ortc_search_state *is = s->state;
    int64_t begin = 0; /* behind the first time */
    while (begin < s->length && tokens[begin++] < is->times) continue;
    const bool first = begin == s->length, timed = tokens[s->length - 1] >= is->times,
               paired = first || tokens[s->length - 2] >= is->times;
    for (int i = 0; i < (first ? 2 : 5); i++) forbid(x, is->silent[i], is->silent[i] + 1, s->vocab);
    if (timed && paired) forbid(x, is->times, s->vocab, s->vocab);
    if (timed && !paired) forbid(x, 0, is->eos, s->vocab);
    for (int64_t i = s->length; i-- > 0;)
        if (tokens[i] >= is->times) {
            forbid(x, is->times, tokens[i] + !(timed && !paired), s->vocab);
            break;
        }
    if (first) forbid(x, is->times + 51, s->vocab, s->vocab);
    double word = -INFINITY, top = -INFINITY, sum = 0;
    for (int64_t i = 0; i < is->times; i++) word = fmax(word, (double)x[i]);
    for (int64_t i = is->times; i < s->vocab; i++) top = fmax(top, (double)x[i]);
    for (int64_t i = is->times; i < s->vocab; i++) sum += exp((double)x[i] - top);
    if (log(sum) + top > word) forbid(x, 0, is->times, s->vocab);
}

void ortc_search_score(ortc_search *s)
{
    const ortc_search_state *is = s->state;
    for (int64_t r = 0; r < s->rows; r++) {
        float *x = s->scores + r * s->vocab;
        const int32_t *tokens = s->tokens + r * s->max;
        const int64_t line = r / s->beams * s->vocab;
        if (is->kind == ORTC_SEARCH_BEAMS) log_softmax(x, s->vocab);
        if (s->step == 1 && s->no_speech && r % s->beams == 0)
            s->no_speech[r / s->beams] = expf(x[is->no_speech]);
        if (s->repetition != 1) punish_repetition(s, tokens, x);
        if (is->ngram > 0) forbid_ngrams(s, tokens, x);
        forbid_unmasked(s->vocab_mask, s->vocab, x);
        if (s->step == 1 && s->prefix_mask) forbid_unmasked(s->prefix_mask + line, s->vocab, x);
        if (s->length < s->min && is->eos < s->vocab) x[is->eos] = -FLT_MAX;
        for (int64_t i = 0; s->temperature != 1 && i < s->vocab; i++) x[i] /= s->temperature;
        for (int64_t i = 0; s->presence_mask && i < s->vocab; i++)
            x[i] -= (float)s->presence_mask[line + i] * is->presence;
        if (s->timed) forbid_times(s, tokens, x);
        if (s->forced && s->step <= s->n_forced)
            force(x, s->forced[r / s->beams * s->n_forced + s->step - 1], s->vocab);
        for (int64_t i = 0; is->kind == ORTC_SEARCH_BEAMS && i < s->vocab; i++) x[i] += s->sums[r];
    }
}

/* ---- GreedySearch and Sampling ------------------------------------------------------------------------- */

static int64_t best_word(const float *x, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    return best;
}

static int by_score(const void *a, const void *b)
{
    const ortc_search_candidate *x = a, *y = b;
    if (x->score != y->score) return x->score < y->score ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

/* What is not among the likeliest words that together have top_p is as good as impossible. `custom` counts
 * from the likeliest on, and keeps the word that exceeds it. */
static void filter_words(ortc_search *s, float *x)
{
    const ortc_search_state *is = s->state;
    const int64_t n = s->vocab, kept = is->min_kept > 1 ? is->min_kept : 1;
    double top = -INFINITY, all = 0, sum = 0;
    for (int64_t i = 0; i < n; i++) {
        s->best[i] = (ortc_search_candidate){isnan(x[i]) ? -INFINITY : x[i], i};
        top = fmax(top, (double)s->best[i].score);
    }
    qsort(s->best, (size_t)n, sizeof *s->best, by_score);
    for (int64_t i = 0; i < n; i++) all += exp((double)s->best[i].score - top);
    if (is->custom) {
        for (int64_t i = n - 1; i > 0; i--) {
            sum += exp((double)s->best[i].score - top) / all;
            if (sum > (double)is->top_p) x[s->best[i - 1].at] = is->filter;
        }
        return;
    }
    for (int64_t i = 0; i < n - kept; i++) {
        sum += exp((double)s->best[i].score - top) / all;
        if (sum <= 1 - (double)is->top_p) x[s->best[i].at] = is->filter;
    }
}

static int64_t drawn_word(const ortc_search *s, const float *x, int64_t row)
{
    double top = -INFINITY, all = 0;
    for (int64_t i = 0; i < s->vocab; i++) top = fmax(top, (double)x[i]);
    for (int64_t i = 0; i < s->vocab; i++) all += x[i] > -INFINITY ? exp((double)x[i] - top) : 0;
    double left = all * ortc_random_uniform(s->key, (uint64_t)(s->step * s->rows + row));
    int64_t last = 0;
    for (int64_t i = 0; i < s->vocab; i++) {
        const double p = x[i] > -INFINITY ? exp((double)x[i] - top) : 0;
        if (!(p > 0)) continue;
        last = i;
        left -= p;
        if (left < 0) break;
    }
    return last;
}

static bool choose_one(ortc_search *s)
{
    const ortc_search_state *is = s->state;
    bool all = true;
    for (int64_t r = 0; r < s->rows; r++) {
        float *x = s->scores + r * s->vocab;
        int64_t word;
        if (is->kind == ORTC_SEARCH_SAMPLING) {
            filter_words(s, x);
            word = drawn_word(s, x, r);
        } else {
            word = best_word(x, s->vocab);
        }
        s->done[r] |= word == is->eos;
        s->next[r] = (int32_t)(s->done[r] ? is->pad : word);
        s->from[r] = (int32_t)r;
        all &= s->done[r];
    }
    return all;
}

/* ---- BeamSearch ---------------------------------------------------------------------------------------- */

static float by_length(const ortc_search *s, float sum)
{
    return sum / powf((float)s->length, s->length_penalty);
}

/* The row's tokens so far are a sentence, if it is one of the M best of its line. */
static void add_sentence(ortc_search *s, int64_t line, int64_t row, float sum)
{
    ortc_search_sentence *all = s->sentences + line * s->beams;
    const float score = by_length(s, sum);
    int64_t at = s->n_kept[line];
    if (at < s->beams)
        s->n_kept[line]++;
    else if (!(score > all[--at].score))
        return;
    ortc_search_sentence made = all[at]; /* whose memory is free */
    memcpy(made.tokens, s->tokens + row * s->max, (size_t)s->length * sizeof *made.tokens);
    made.length = s->length;
    made.score = score;
    made.runs = s->runs;
    if (made.trace) memcpy(made.trace, s->trace + row * s->max, (size_t)s->traced * sizeof *made.trace);
    if (made.trace && s->traced < s->runs) made.trace[s->traced] = (int32_t)row;
    for (; at > 0 && score > all[at - 1].score; at--) all[at] = all[at - 1];
    all[at] = made;
}

/* The 2 M best of a line's M x V, the best first; of equals the first. */
static int64_t find_candidates(ortc_search *s, int64_t line)
{
    const float *x = s->scores + line * s->beams * s->vocab;
    const int64_t n = s->beams * s->vocab, most = 2 * s->beams < n ? 2 * s->beams : n;
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        if (count == most && !(x[i] > s->best[count - 1].score)) continue;
        int64_t at = count < most ? count++ : count - 1;
        for (; at > 0 && x[i] > s->best[at - 1].score; at--) s->best[at] = s->best[at - 1];
        s->best[at] = (ortc_search_candidate){x[i], i};
    }
    return count;
}

static void choose_beams_of(ortc_search *s, int64_t line)
{
    const ortc_search_state *is = s->state;
    const int64_t first = line * s->beams, count = find_candidates(s, line);
    int64_t beam = 0;
    for (int64_t j = 0; j < count && beam < s->beams; j++) {
        const int64_t word = s->best[j].at % s->vocab, row = first + s->best[j].at / s->vocab;
        if (word == is->eos) {
            if (j < s->beams) add_sentence(s, line, row, s->best[j].score);
            continue;
        }
        s->next[first + beam] = (int32_t)word;
        s->from[first + beam] = (int32_t)row;
        s->sums[first + beam++] = s->best[j].score;
    }
    s->done[line] = s->n_kept[line] == s->beams && (is->early || !(by_length(s, s->best[0].score) >
                                                                   s->sentences[first + s->beams - 1].score));
}

static bool choose_beams(ortc_search *s)
{
    bool all = true;
    for (int64_t line = 0; line < s->batch; line++) {
        if (!s->done[line]) {
            choose_beams_of(s, line);
        } else {
            for (int64_t r = line * s->beams; r < (line + 1) * s->beams; r++) {
                s->next[r] = (int32_t)s->state->pad;
                s->from[r] = (int32_t)r;
                s->sums[r] = 0;
            }
        }
        all &= s->done[line];
    }
    return all;
}

bool ortc_search_choose(ortc_search *s)
{
    return s->state->kind == ORTC_SEARCH_BEAMS ? choose_beams(s) : choose_one(s);
}

void ortc_search_close(ortc_search *s)
{
    for (int64_t r = 0; r < s->rows; r++)
        if (!s->done[r / s->beams]) add_sentence(s, r / s->beams, r, s->sums[r]);
}
