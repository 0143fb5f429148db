/* kernels/string/ref_tfidf.c: TfIdfVectorizer on ref: the n-grams of a pool counted in rows of words or
 * numbers. */
#include <stdlib.h>

#include "kernels/string/string.h"

enum { TF, IDF, TFIDF };

typedef struct tfidf {
    int mode;
    int64_t shortest, longest, skips, width;
    const int64_t *starts, *at; /* of the pool, by length; of the output, by n-gram */
    size_t n_starts, n_grams, n_weights, n_pool;
    const float *weights; /* by n-gram */
    ortc_attr pool;
} tfidf;

/* Where the n-grams of a length begin in the pool. */
static int64_t start_of(const tfidf *s, int64_t length)
{
    return length <= (int64_t)s->n_starts ? s->starts[length - 1] : (int64_t)s->n_pool;
}

static ortc_status check(const tfidf *s, bool text, ortc_prep *prep)
{
    if (s->mode < 0 || s->shortest < 1 || s->longest < s->shortest || s->skips < 0)
        return ortc_prep_fail(prep, ORTC_INVALID_MODEL,
                              "mode, min_gram_length, max_gram_length or max_skip_count is out of bounds");
    if (s->pool.kind != (text ? ORTC_ATTR_STRINGS : ORTC_ATTR_INTS))
        return ortc_prep_fail(prep, ORTC_INVALID_MODEL, "attribute %s is missing",
                              text ? "pool_strings" : "pool_int64s");
    if (s->longest > (int64_t)s->n_starts || (s->n_weights && s->n_weights != s->n_grams))
        return ortc_prep_fail(
            prep, ORTC_INVALID_MODEL,
            "ngram_counts has %zu elements for lengths up to %lld, weights %zu for %zu n-grams", s->n_starts,
            (long long)s->longest, s->n_weights, s->n_grams);
    int64_t grams = 0;
    for (int64_t n = 1; n <= (int64_t)s->n_starts; n++) {
        const int64_t from = start_of(s, n), to = start_of(s, n + 1);
        if (from < 0 || to < from || to > (int64_t)s->n_pool || (to - from) % n)
            return ortc_prep_fail(prep, ORTC_INVALID_MODEL,
                                  "ngram_counts does not cut the pool into n-grams of length %lld",
                                  (long long)n);
        grams += (to - from) / n;
    }
    if (grams != (int64_t)s->n_grams)
        return ortc_prep_fail(prep, ORTC_INVALID_MODEL, "the pool has %lld n-grams, ngram_indexes %zu",
                              (long long)grams, s->n_grams);
    return ORTC_OK;
}

static ortc_status tfidf_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const char *mode = ortc_node_string(n, "mode", "");
    const bool text = ortc_node_in(n, 0).dtype == ORTC_STRING;
    tfidf *s = calloc(1, sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    s->mode = !strcmp(mode, "TF") ? TF : !strcmp(mode, "IDF") ? IDF : !strcmp(mode, "TFIDF") ? TFIDF : -1;
    s->shortest = ortc_node_int(n, "min_gram_length", 0);
    s->longest = ortc_node_int(n, "max_gram_length", 0);
    s->skips = ortc_node_int(n, "max_skip_count", 0);
    s->starts = ortc_node_ints(n, "ngram_counts", &s->n_starts);
    s->at = ortc_node_ints(n, "ngram_indexes", &s->n_grams);
    s->weights = ortc_node_floats(n, "weights", &s->n_weights);
    s->pool = ortc_node_attr(n, text ? "pool_strings" : "pool_int64s");
    s->n_pool = s->pool.count;
    for (size_t i = 0; i < s->n_grams; i++) s->width = s->at[i] >= s->width ? s->at[i] + 1 : s->width;
    const ortc_status status = check(s, text, prep);
    if (status != ORTC_OK) {
        free(s);
        return status;
    }
    *out = s;
    return ORTC_OK;
}

static bool equals(const tfidf *s, const ortc_view *x, int64_t i, int64_t item)
{
    return x->dtype == ORTC_STRING
               ? ortc_span_equal(ortc_span_at(x, i), ortc_span_of(s->pool.u.strings[item]))
               : ortc_load_i64(x->data, x->dtype, i) == s->pool.u.ints[item];
}

/* Counts the n-gram that begins at element i and goes on every `step` elements; `id` is the first of its
 * length. */
static void count_gram(const tfidf *s, const ortc_view *x, int64_t i, int64_t n, int64_t step, int64_t id,
                       double *counts)
{
    const int64_t from = start_of(s, n), to = start_of(s, n + 1);
    for (int64_t item = from; item < to; item += n, id++) {
        int64_t k = 0;
        while (k < n && equals(s, x, i + k * step, item + k)) k++;
        if (k == n) {
            counts[id]++;
            return;
        }
    }
}

static ortc_status count_row(const tfidf *s, ortc_call *c, int64_t row, int64_t columns, double *counts)
{
    int64_t id = 0;
    for (int64_t n = 1; n <= s->longest; n++) {
        for (int64_t skip = 0;
             n >= s->shortest && skip <= (n == 1 ? 0 : s->skips) && (n - 1) <= columns / (skip + 1); skip++)
            for (int64_t i = 0; i + (n - 1) * (skip + 1) < columns; i++) {
                count_gram(s, &c->in[0], row * columns + i, n, skip + 1, id, counts);
                if (i % 256 == 255) ORTC_TRY(ortc_poll(c));
            }
        id += (start_of(s, n + 1) - start_of(s, n)) / n;
    }
    return ORTC_OK;
}

/* Indices say how long a row is, which may be far longer than the pool. */
static void clear(void *arg, int64_t begin, int64_t end, void *scratch)
{
    (void)scratch;
    memset((float *)arg + begin, 0, (size_t)(end - begin) * sizeof(float));
}

static ortc_status tfidf_run(const void *state, const void *pstate, ortc_call *c)
{
    const tfidf *s = state;
    const ortc_view *x = &c->in[0];
    const int64_t rows = x->rank == 2 ? x->dims[0] : 1, columns = x->dims[x->rank - 1];
    float *y = c->out[0].data;
    double *counts = malloc(s->n_grams * sizeof *counts + 1);
    ortc_status status = counts
                             ? ORTC_OK
                             : ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for %zu counts", s->n_grams);
    if (status == ORTC_OK) status = ortc_parallel(c, rows * s->width, 1 << 20, clear, y);
    for (int64_t r = 0; r < rows && status == ORTC_OK; r++) {
        memset(counts, 0, s->n_grams * sizeof *counts);
        status = count_row(s, c, r, columns, counts);
        for (size_t i = 0; i < s->n_grams; i++) {
            const double n = s->mode == IDF && counts[i] > 1 ? 1 : counts[i];
            y[r * s->width + s->at[i]] += (float)(n * (s->mode != TF && s->n_weights ? (double)s->weights[i]
                                                                                     : 1));
        }
    }
    free(counts);
    return status;
}

const ortc_kernel ortc_ref_tfidf = {.size = ORTC_SIZED(ortc_kernel),
                                    .name = "tfidf_vectorizer.ref",
                                    .prepare = tfidf_prepare,
                                    .run = tfidf_run};
