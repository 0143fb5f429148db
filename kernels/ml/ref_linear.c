/* kernels/ml/ref_linear.c: LinearClassifier and LinearRegressor on ref: a row of coefficients for every class
 * or target. */
#include <stdlib.h>

#include "kernels/ml/ml.h"

typedef struct linear {
    ml_list coefficients, intercepts, labels;
    int64_t n; /* rows of coefficients; 0: as many as there are features for */
    int post;
} linear;

static ortc_status linear_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const bool regressor = !strcmp(ortc_node_op(n), "LinearRegressor");
    linear s = {.coefficients = ml_list_of(n, NULL, NULL, "coefficients", NULL),
                .intercepts = ml_list_of(n, NULL, NULL, "intercepts", NULL),
                .labels = ml_list_of(n, "classlabels_strings", "classlabels_ints", NULL, NULL),
                .n = regressor ? ortc_node_int(n, "targets", 1) : 0,
                .post = ml_post_of(n, prep)};
    if (s.post < 0) return ORTC_INVALID_MODEL;
    if (!s.coefficients.n || (regressor && s.n < 1) || (!regressor && !s.labels.n))
        return ortc_prep_fail(prep, ORTC_INVALID_MODEL, "%s",
                              !s.coefficients.n ? "attribute coefficients is empty"
                              : regressor       ? "attribute targets is below 1"
                                                : "no class labels are given");
    if (!(*out = malloc(sizeof s)))
        return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    memcpy(*out, &s, sizeof s);
    return ORTC_OK;
}

/* The scores of a row, whose features have room of their own where they are not f32; the sums in double. */
static void score_row(const linear *s, const ortc_view *x, int64_t row, int64_t columns, int64_t n,
                      double *scores, double *features)
{
    const bool is_f32 = x->dtype == ORTC_F32;
    if (!is_f32) ml_load_row(x, row, columns, features);
    for (int64_t k = 0; k < n; k++) {
        const float *w = s->coefficients.from.u.floats + k * columns;
        scores[k] = (k < s->intercepts.n ? ml_list_number(&s->intercepts, k) : 0) +
                    (is_f32 ? ml_product_f32((const float *)x->data + row * columns, w, columns)
                            : ml_product(features, w, columns));
    }
}

static ortc_status check_columns(ortc_call *c, const linear *s, int64_t columns, int64_t n)
{
    if (n < 1 || n > s->coefficients.n || s->coefficients.n / n != columns || s->coefficients.n % n)
        return ortc_call_fail(c, ORTC_SHAPE_MISMATCH, "%lld coefficients do not fit %lld features",
                              (long long)s->coefficients.n, (long long)columns);
    return ORTC_OK;
}

static int64_t best_of(const double *scores, int64_t n)
{
    int64_t best = 0;
    for (int64_t k = 1; k < n; k++) best = scores[k] > scores[best] ? k : best;
    return best;
}

typedef struct job {
    const linear *s;
    ortc_call *c;
    int64_t columns, n;
    ortc_span *spans;
} job;

/* Scores of a row, two at least, and the row. Nothing where extents do not fit, which the run says. */
static ortc_status linear_plan(const void *state, ortc_plan *p, void **pstate)
{
    const linear *s = state;
    int64_t rows, columns;
    (void)pstate;
    ml_rows(&p->in[0], &rows, &columns);
    if (columns < 1 || columns > s->coefficients.n) return ORTC_OK;
    ortc_plan_workspace(p, 0, (size_t)(s->coefficients.n / columns + columns + 2) * sizeof(double));
    return ORTC_OK;
}

/* Labels and scores of some rows. */
static void classify(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const job *j = arg;
    const linear *s = j->s;
    ortc_call *c = j->c;
    const int64_t columns = j->columns, n = j->n;
    const bool binary = n == 1 && s->labels.n == 2;
    const int64_t width = binary ? 2 : n;
    double *scores = scratch;
    for (int64_t r = begin; r < end; r++) {
        score_row(s, &c->in[0], r, columns, n, scores, scores + n + 2);
        const int64_t at = n > 1 ? best_of(scores, n) : binary ? scores[0] > 0 : scores[0] > 0 ? 0 : -1;
        if (c->out[0].dtype) ml_store_label(&s->labels, at, &c->out[0], j->spans, r);
        if (binary)
            ml_post_binary(s->post, scores[0], true, scores);
        else
            ml_post(s->post, scores, n);
        for (int64_t k = 0; k < width && c->n_out > 1 && c->out[1].dtype; k++)
            ortc_store_f64(c->out[1].data, ORTC_F32, r * width + k, scores[k]);
    }
}

static int64_t grain_of(int64_t columns, int64_t n)
{
    return ortc_grain(2.0 * (double)n * (double)columns + 40);
}

static ortc_status classifier_run(const void *state, const void *pstate, ortc_call *c)
{
    const linear *s = state;
    int64_t rows, columns;
    ml_rows(&c->in[0], &rows, &columns);
    const int64_t n = columns ? s->coefficients.n / columns : 0;
    ORTC_TRY(check_columns(c, s, columns, n));
    if (n > 1 ? s->labels.n != n : s->labels.n > 2)
        return ortc_call_fail(c, ORTC_INVALID_MODEL, "%lld labels for %lld classes", (long long)s->labels.n,
                              (long long)n);
    job j = {s, c, columns, n, calloc((size_t)rows + 1, sizeof *j.spans)};
    ortc_status status = j.spans ? ortc_parallel(c, rows, grain_of(columns, n), classify, &j)
                                 : ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for %lld rows",
                                                  (long long)rows);
    if (status == ORTC_OK && c->out[0].dtype == ORTC_STRING)
        status = ortc_give_spans(c, 0, c->out[0].rank, c->out[0].dims, j.spans);
    free(j.spans);
    return status;
}

static void regress(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const job *j = arg;
    double *scores = scratch;
    for (int64_t r = begin; r < end; r++) {
        score_row(j->s, &j->c->in[0], r, j->columns, j->n, scores, scores + j->n);
        ml_post(j->s->post, scores, j->n);
        for (int64_t k = 0; k < j->n; k++)
            ortc_store_f64(j->c->out[0].data, ORTC_F32, r * j->n + k, scores[k]);
    }
}

static ortc_status regressor_run(const void *state, const void *pstate, ortc_call *c)
{
    const linear *s = state;
    int64_t rows, columns;
    ml_rows(&c->in[0], &rows, &columns);
    ORTC_TRY(check_columns(c, s, columns, s->n));
    job j = {s, c, columns, s->n, NULL};
    return ortc_parallel(c, rows, grain_of(columns, s->n), regress, &j);
}

const ortc_kernel ortc_ref_linear_classifier = {.size = ORTC_SIZED(ortc_kernel),
                                                .name = "linear_classifier.ref",
                                                .prepare = linear_prepare,
                                                .plan = linear_plan,
                                                .run = classifier_run};
const ortc_kernel ortc_ref_linear_regressor = {.size = ORTC_SIZED(ortc_kernel),
                                               .name = "linear_regressor.ref",
                                               .prepare = linear_prepare,
                                               .plan = linear_plan,
                                               .run = regressor_run};
