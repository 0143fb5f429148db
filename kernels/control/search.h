/* kernels/control/search.h: what a search for the next tokens keeps, between what reads the node
 * (search_read.c), what runs the subgraphs (search_body.c), what chooses (ref_choose.c) and the search
 * (ref_search.c).
 *
 * B lines of a batch with M beams each (one, but in BeamSearch) are B M rows; a vocabulary has V words.
 */
#ifndef ORTC_KERNELS_SEARCH_H
#define ORTC_KERNELS_SEARCH_H

#include "kernels/common/shape.h"

typedef enum ortc_search_kind {
    ORTC_SEARCH_GREEDY,
    ORTC_SEARCH_SAMPLING,
    ORTC_SEARCH_BEAMS,
} ortc_search_kind;

/* A node's attributes, and what its subgraphs take. */
typedef struct ortc_search_state {
    ortc_search_kind kind;
    int64_t model; /* 0: GPT-2, 1: T5, 2: Whisper */
    int64_t eos, pad, start, ngram, vocab, custom, min_kept;
    bool early, init; /* early: enough sentences are enough; init: a decoder of its own for the first run */
    /* of Whisper: the first word that is a time, and words that are neither said nor written */
    int64_t times, silent[5];
    float temperature, top_p, filter, presence;
    ortc_dtype past_type;        /* GPT-2: of the past, which begins as [2, rows, heads, 0, size] */
    int64_t heads, size;         /* 0: T5 and Whisper, whose encoder says */
    uint32_t n_in, n_out;        /* of the decoder */
    uint32_t enc_in, enc_out;    /* of the encoder */
    uint32_t first_past, layers; /* the decoder's input where the past begins */
    bool whole;                  /* the decoder takes all tokens, not the last alone */
    /* of inputs behind the pasts, which then are buffers of max_length that the presents are written into:
     * how many tokens they have; with 3 also the beams, and which beam each token came from */
    uint32_t shares, shares_at;
    uint32_t n_init;   /* inputs of the decoder for the first run, which need not tell of beams */
    bool crossed;      /* the decoder's last outputs, one a layer: scores of what the encoder said */
    int64_t no_speech; /* the word whose probability is an output */
} ortc_search_state;

/* A finished sentence. */
typedef struct ortc_search_sentence {
    int32_t *tokens; /* room for `max` */
    int32_t *trace;  /* the same: the row of each run of the decoder that it comes from */
    int64_t length, runs;
    float score;
} ortc_search_sentence;

typedef struct ortc_search_candidate {
    float score;
    int64_t at; /* beam * V + word */
} ortc_search_candidate;

typedef struct ortc_search {
    ortc_call *call;
    const ortc_search_state *state;
    int64_t batch, beams, rows, vocab;
    int64_t min, max, returned; /* tokens of a sentence, the first included; sentences of a line */
    int64_t first, length;      /* tokens there were before the first run, and are now */
    int64_t step;               /* runs so far */
    int64_t runs, traced;       /* of the decoder, the encoder's tokens aside; of those the ones in `trace` */
    bool timed;                 /* Whisper's rules for words that are times */
    float repetition, length_penalty, temperature;
    const int32_t *vocab_mask, *prefix_mask, *presence_mask; /* [V], [B, V], [B, V]; NULL: none */
    const int32_t *forced;                                   /* [B, n_forced]: the first words; NULL: none */
    int64_t n_forced;
    uint64_t key;            /* of random numbers */
    int32_t *tokens, *spare; /* rows x max; so are all that come in twos */
    int32_t *trace, *spare_trace;
    int32_t *origins, *spare_origins; /* which beam of its line a row's token came from */
    int64_t known_origins;            /* tokens that they tell of */
    int32_t *next, *from;             /* rows: the next token, the row that it extends */
    int32_t *counted;                 /* rows: tokens that are no padding */
    int32_t *mask;                    /* rows x first */
    float *scores;                    /* rows x V */
    float *sums;                      /* rows: logarithms of a beam's probability */
    uint8_t *marks;                   /* max(V, rows): for whoever needs flags */
    uint8_t *done;                    /* batch */
    int64_t *n_kept;                  /* batch: sentences */
    ortc_search_sentence *sentences;  /* rows, the best of a line first */
    int32_t *kept, *kept_traces;      /* their tokens */
    float **crossed;                  /* of each run: rows x pairs x frames */
    float *no_speech;                 /* batch: where the probabilities go; NULL: nowhere */
    int64_t n_pairs, frames;
    ortc_search_candidate *best; /* sorted: 2 M candidates, or V words */
    ortc_value **in, **out;      /* owned; NULL: none */
    uint32_t n_held_in, n_held_out;
} ortc_search;

/* An input of the node; NULL: left out. */
static inline const ortc_view *ortc_search_given(const ortc_search *s, uint32_t port)
{
    return port < s->call->n_in && ortc_view_present(&s->call->in[port]) ? &s->call->in[port] : NULL;
}
/* Whether scores of what the encoder said are an output. */
static inline bool ortc_search_crosses(const ortc_search *s)
{
    return s->call->n_out > 3 && s->call->out[3].dtype;
}
/* The port of repetition_penalty, behind which masks come. */
static inline uint32_t ortc_search_repetition(const ortc_search *s)
{
    return s->state->kind == ORTC_SEARCH_BEAMS ? 6 : 3;
}

/* As ortc_kernel: the state is an ortc_search_state. */
ortc_status ortc_search_prepare(const ortc_node *n, ortc_prep *prep, void **out);
/* Extents, numbers and words that are given, checked. */
ortc_status ortc_search_read(ortc_search *s);
/* A mask of int32 with the dims that it must have; *out NULL: left out. */
ortc_status ortc_search_mask(const ortc_search *s, uint32_t port, const char *name, int32_t rank,
                             int64_t rows, int64_t columns, const int32_t **out);

/* The first run of the subgraphs; another of the decoder, of rows that extend those of `from`. */
ortc_status ortc_search_begin(ortc_search *s);
ortc_status ortc_search_step(ortc_search *s);
/* The logits of the last token, of all rows or of one for each line, to `scores`. */
ortc_status ortc_search_take_scores(ortc_search *s);
/* A value that is held; it becomes NULL. */
void ortc_search_drop(const ortc_search *s, ortc_value **v);

/* Logarithms of probabilities, for beams; then what the node forbids, favours and punishes. */
void ortc_search_score(ortc_search *s);
/* Fills `next` and `from`. true: every line has its end. */
bool ortc_search_choose(ortc_search *s);
/* Beams that are still open become sentences. */
void ortc_search_close(ortc_search *s);

extern const ortc_kernel ortc_ref_greedy_search, ortc_ref_sampling, ortc_ref_beam_search;

#endif
