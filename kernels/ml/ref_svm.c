/* kernels/ml/ref_svm.c: SVMRegressor and SVMClassifier on ref: kernels of a row and the support vectors,
 * weighed and summed; without support vectors the coefficients are those of the features themselves. A
 * classifier with support vectors asks every pair of classes; they vote, and where the model says how
 * (prob_a, prob_b) the sums become probabilities as libsvm makes them.
 */
#include <math.h>
#include <stdlib.h>

#include "kernels/ml/ml.h"

enum { LINEAR, POLY, RBF, SIGMOID };

typedef struct svm {
    int type, post;
    bool one_class;
    double gamma, offset, degree;
    int64_t n_supports;
    ml_list vectors, coefficients, rho;
    /* classifier */
    ml_list labels, per_class, prob_a, prob_b;
    bool all_positive;
} svm;

/* What both operators have; n_supports is known. */
static ortc_status read_svm(const ortc_node *n, ortc_prep *prep, svm *s)
{
    static const char *const types[] = {"LINEAR", "POLY", "RBF", "SIGMOID"};
    const char *type = ortc_node_string(n, "kernel_type", "LINEAR");
    const ml_list params = ml_list_of(n, NULL, NULL, "kernel_params", NULL);
    s->vectors = ml_list_of(n, NULL, NULL, "support_vectors", NULL);
    s->coefficients = ml_list_of(n, NULL, NULL, "coefficients", NULL);
    s->rho = ml_list_of(n, NULL, NULL, "rho", NULL);
    if ((s->post = ml_post_of(n, prep)) < 0) return ORTC_INVALID_MODEL;
    while (s->type <= SIGMOID && strcmp(type, types[s->type]) != 0) s->type++;
    if (s->type > SIGMOID)
        return ortc_prep_fail(prep, ORTC_INVALID_MODEL,
                              "attribute kernel_type is '%s', expected LINEAR, POLY, RBF or SIGMOID", type);
    if (!s->coefficients.n || !s->rho.n || s->n_supports < 0 || (params.n && params.n != 3) ||
        (s->n_supports && (s->coefficients.n % s->n_supports || s->vectors.n % s->n_supports)))
        return ortc_prep_fail(prep, ORTC_INVALID_MODEL,
                              "%lld support vectors, %lld numbers of them, %lld coefficients, %lld rho, %lld "
                              "kernel_params do not fit",
                              (long long)s->n_supports, (long long)s->vectors.n, (long long)s->coefficients.n,
                              (long long)s->rho.n, (long long)params.n);
    if (params.n) {
        s->gamma = ml_list_number(&params, 0);
        s->offset = ml_list_number(&params, 1);
        s->degree = ml_list_number(&params, 2);
    }
    if (!s->n_supports) s->type = LINEAR;
    return ORTC_OK;
}

static ortc_status keep_state(const svm *s, ortc_prep *prep, void **out)
{
    if (!(*out = malloc(sizeof *s)))
        return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    memcpy(*out, s, sizeof *s);
    return ORTC_OK;
}

static ortc_status regressor_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    svm s = {.one_class = ortc_node_int(n, "one_class", 0) != 0,
             .n_supports = ortc_node_int(n, "n_supports", 0)};
    ORTC_TRY(read_svm(n, prep, &s));
    if (s.n_supports && s.coefficients.n != s.n_supports)
        return ortc_prep_fail(prep, ORTC_INVALID_MODEL, "%lld coefficients for %lld support vectors",
                              (long long)s.coefficients.n, (long long)s.n_supports);
    return keep_state(&s, prep, out);
}

static ortc_status classifier_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    svm s = {.labels = ml_list_of(n, "classlabels_strings", "classlabels_ints", NULL, NULL),
             .per_class = ml_list_of(n, NULL, "vectors_per_class", NULL, NULL),
             .prob_a = ml_list_of(n, NULL, NULL, "prob_a", NULL),
             .prob_b = ml_list_of(n, NULL, NULL, "prob_b", NULL),
             .all_positive = true};
    for (int64_t i = 0; i < s.per_class.n; i++) {
        const int64_t each = ml_list_integer(&s.per_class, i);
        if (each < 0 || s.n_supports > INT32_MAX - each)
            return ortc_prep_fail(prep, ORTC_INVALID_MODEL, "vectors_per_class[%lld] is %lld", (long long)i,
                                  (long long)each);
        s.n_supports += each;
    }
    ORTC_TRY(read_svm(n, prep, &s));
    const int64_t classes = s.labels.n, pairs = classes * (classes - 1) / 2;
    if (classes < 2 || classes > INT32_MAX)
        return ortc_prep_fail(prep, ORTC_UNSUPPORTED, "%lld class labels: at least 2 are needed",
                              (long long)classes);
    if (s.n_supports ? s.per_class.n != classes || s.coefficients.n / s.n_supports != classes - 1 ||
                           s.rho.n < pairs || (s.prob_a.n && (s.prob_a.n < pairs || s.prob_b.n < pairs))
                     : s.coefficients.n % classes != 0)
        return ortc_prep_fail(
            prep, ORTC_INVALID_MODEL,
            "coefficients, vectors_per_class, rho or prob_a and prob_b do not fit %lld classes",
            (long long)classes);
    for (int64_t i = 0; i < s.coefficients.n; i++) s.all_positive &= ml_list_number(&s.coefficients, i) >= 0;
    return keep_state(&s, prep, out);
}

/* Of a row and as many numbers of a list of floats, from `first` on. */
static double kernel(const svm *s, const double *row, int64_t columns, const ml_list *other, int64_t first)
{
    const float *w = other->from.u.floats + first;
    const double sum = s->type == RBF ? ml_distance(row, w, columns) : ml_product(row, w, columns);
    switch (s->type) {
    case POLY: return pow(s->gamma * sum + s->offset, s->degree);
    case RBF: return exp(-s->gamma * sum);
    case SIGMOID: return tanh(s->gamma * sum + s->offset);
    default: return sum;
    }
}

static ortc_status regressor_run(const void *state, const void *pstate, ortc_call *c)
{
    const svm *s = state;
    const ortc_view *x = &c->in[0];
    int64_t rows, columns;
    ml_rows(x, &rows, &columns);
    if (s->n_supports ? s->vectors.n / s->n_supports != columns : s->coefficients.n != columns)
        return ortc_call_fail(c, ORTC_SHAPE_MISMATCH,
                              "the support vectors or coefficients do not fit %lld features",
                              (long long)columns);
    double *row = malloc((size_t)columns * sizeof *row + 1);
    ortc_status status = ORTC_OK;
    if (!row) return ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for a row");
    for (int64_t r = 0; r < rows && status == ORTC_OK; r++) {
        double sum = ml_list_number(&s->rho, 0);
        ml_load_row(x, r, columns, row);
        for (int64_t k = 0; k < s->n_supports; k++)
            sum += ml_list_number(&s->coefficients, k) * kernel(s, row, columns, &s->vectors, k * columns);
        if (!s->n_supports) sum += kernel(s, row, columns, &s->coefficients, 0);
        if (s->one_class) sum = sum > 0 ? 1 : -1;
        ml_post(s->post, &sum, 1);
        ortc_store_f64(c->out[0].data, ORTC_F32, r, sum);
        status = ortc_poll(c);
    }
    free(row);
    return status;
}

/* ---- SVMClassifier ------------------------------------------------------------------------------------- */

/* The classes' probabilities from those of the pairs (Wu, Lin and Weng, the second method), as libsvm finds
 * them. r: n x n. */
static void couple(int64_t n, const double *r, double *q, double *qp, double *p)
{
    const double enough = 0.005 / (double)n;
    for (int64_t t = 0; t < n; t++) {
        p[t] = 1 / (double)n;
        q[t * n + t] = 0;
        for (int64_t j = 0; j < n; j++)
            if (j != t) {
                q[t * n + t] += r[j * n + t] * r[j * n + t];
                q[t * n + j] = -r[j * n + t] * r[t * n + j];
            }
    }
    for (int64_t round = 0; round < (n > 100 ? n : 100); round++) {
        double pqp = 0, worst = 0;
        for (int64_t t = 0; t < n; t++) {
            qp[t] = 0;
            for (int64_t j = 0; j < n; j++) qp[t] += q[t * n + j] * p[j];
            pqp += p[t] * qp[t];
        }
        for (int64_t t = 0; t < n; t++) worst = fabs(qp[t] - pqp) > worst ? fabs(qp[t] - pqp) : worst;
        if (worst < enough) return;
        for (int64_t t = 0; t < n; t++) {
            const double step = (pqp - qp[t]) / q[t * n + t];
            p[t] += step;
            pqp = (pqp + step * (step * q[t * n + t] + 2 * qp[t])) / (1 + step) / (1 + step);
            for (int64_t j = 0; j < n; j++) {
                qp[j] = (qp[j] + step * q[t * n + j]) / (1 + step);
                p[j] /= 1 + step;
            }
        }
    }
}

/* A row's memory. */
typedef struct pairwise {
    double *row, *kernels, *sums, *votes, *chance, *q, *qp;
} pairwise;

/* The sums of all pairs, and who won how many. */
static void ask_pairs(const svm *s, int64_t columns, const pairwise *w)
{
    const int64_t n = s->labels.n;
    for (int64_t k = 0; k < s->n_supports; k++)
        w->kernels[k] = kernel(s, w->row, columns, &s->vectors, k * columns);
    memset(w->votes, 0, (size_t)n * sizeof *w->votes);
    for (int64_t i = 0, pair = 0, at_i = 0; i < n; at_i += ml_list_integer(&s->per_class, i++)) {
        int64_t at_j = at_i + ml_list_integer(&s->per_class, i);
        for (int64_t j = i + 1; j < n; pair++, at_j += ml_list_integer(&s->per_class, j++)) {
            double sum = ml_list_number(&s->rho, pair);
            for (int64_t k = 0; k < ml_list_integer(&s->per_class, i); k++)
                sum += ml_list_number(&s->coefficients, (j - 1) * s->n_supports + at_i + k) *
                       w->kernels[at_i + k];
            for (int64_t k = 0; k < ml_list_integer(&s->per_class, j); k++)
                sum += ml_list_number(&s->coefficients, i * s->n_supports + at_j + k) * w->kernels[at_j + k];
            w->sums[pair] = sum;
            w->votes[sum > 0 ? i : j]++;
        }
    }
}

static void find_chances(const svm *s, const pairwise *w)
{
    const int64_t n = s->labels.n;
    for (int64_t i = 0, pair = 0; i < n; i++)
        for (int64_t j = i + 1; j < n; j++, pair++) {
            const double v = w->sums[pair] * ml_list_number(&s->prob_a, pair) +
                             ml_list_number(&s->prob_b, pair);
            double p = 1 / (1 + exp(v));
            p = p < 1e-7 ? 1e-7 : p > 1 - 1e-7 ? 1 - 1e-7 : p;
            w->chance[i * n + j] = p;
            w->chance[j * n + i] = 1 - p;
        }
    couple(n, w->chance, w->q, w->qp, w->sums);
}

static int64_t largest(const double *v, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++) best = v[i] > v[best] ? i : best;
    return best;
}

/* Scores of one row in w->sums, transformed; the label's place. */
static int64_t classify(const svm *s, int64_t columns, const pairwise *w)
{
    const int64_t n = s->labels.n;
    int64_t best, scores = n;
    if (!s->n_supports) {
        for (int64_t k = 0; k < n; k++)
            w->sums[k] = ml_list_number(&s->rho, 0) +
                         kernel(s, w->row, columns, &s->coefficients, k * columns);
        best = largest(w->sums, n);
        if (n == 2 && s->rho.n == 1 && s->all_positive && w->sums[best] >= 0.5) best = 1;
    } else {
        ask_pairs(s, columns, w);
        best = largest(w->votes, n);
        if (s->prob_a.n)
            find_chances(s, w);
        else if (n == 2) {
            best = s->all_positive ? 1 : best;
            w->sums[1] = w->sums[0];
            w->sums[0] = -w->sums[0];
        } else
            scores = n * (n - 1) / 2;
    }
    ml_post(s->post, w->sums, scores);
    return best;
}

static ortc_status classify_rows(const svm *s, ortc_call *c, int64_t rows, int64_t columns, const pairwise *w,
                                 ortc_span *spans)
{
    for (int64_t r = 0; r < rows; r++) {
        ml_load_row(&c->in[0], r, columns, w->row);
        const int64_t best = classify(s, columns, w);
        if (c->out[0].dtype) ml_store_label(&s->labels, best, &c->out[0], spans, r);
        const int64_t width = c->n_out > 1 && c->out[1].dtype ? c->out[1].dims[1] : 0;
        for (int64_t k = 0; k < width; k++)
            ortc_store_f64(c->out[1].data, ORTC_F32, r * width + k, w->sums[k]);
        ORTC_TRY(ortc_poll(c));
    }
    return c->out[0].dtype == ORTC_STRING ? ortc_give_spans(c, 0, c->out[0].rank, c->out[0].dims, spans)
                                          : ORTC_OK;
}

static ortc_status classifier_run(const void *state, const void *pstate, ortc_call *c)
{
    const svm *s = state;
    const size_t n = (size_t)s->labels.n;
    int64_t rows, columns;
    ml_rows(&c->in[0], &rows, &columns);
    if (s->n_supports ? s->vectors.n / s->n_supports != columns : s->coefficients.n / s->labels.n != columns)
        return ortc_call_fail(c, ORTC_SHAPE_MISMATCH,
                              "the support vectors or coefficients do not fit %lld features",
                              (long long)columns);
    double *memory = calloc((size_t)(s->n_supports + columns) + 4 * n * n + 4 * n, sizeof *memory);
    ortc_span *spans = calloc((size_t)rows + 1, sizeof *spans);
    ortc_status status = ORTC_OK;
    if (memory && spans) {
        const pairwise w = {.sums = memory,
                            .votes = memory + n * n,
                            .chance = memory + n * n + n,
                            .q = memory + 2 * n * n + n,
                            .qp = memory + 3 * n * n + n,
                            .kernels = memory + 3 * n * n + 2 * n,
                            .row = memory + 3 * n * n + 2 * n + s->n_supports};
        status = classify_rows(s, c, rows, columns, &w, spans);
    } else
        status = ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for %lld rows of %zu classes",
                                (long long)rows, n);
    free(memory);
    free(spans);
    return status;
}

const ortc_kernel ortc_ref_svm_regressor = {.size = ORTC_SIZED(ortc_kernel),
                                            .name = "svm_regressor.ref",
                                            .prepare = regressor_prepare,
                                            .run = regressor_run};
const ortc_kernel ortc_ref_svm_classifier = {.size = ORTC_SIZED(ortc_kernel),
                                             .name = "svm_classifier.ref",
                                             .prepare = classifier_prepare,
                                             .run = classifier_run};
