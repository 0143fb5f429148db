/* kernels/ml/ref_svm.c: SVMRegressor on ref: kernels of a row and the support vectors, weighed and summed; without support vectors
 * the coefficients are those of the features themselves.
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
} svm;

static ortc_status svm_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    static const char *const types[] = {"LINEAR", "POLY", "RBF", "SIGMOID"};
    const char *type = ortc_node_string(n, "kernel_type", "LINEAR");
    const ml_list params = ml_list_of(n, NULL, NULL, "kernel_params", NULL);
    svm s = {.post = ml_post_of(n, prep),
             .one_class = ortc_node_int(n, "one_class", 0) != 0,
             .n_supports = ortc_node_int(n, "n_supports", 0),
             .vectors = ml_list_of(n, NULL, NULL, "support_vectors", NULL),
             .coefficients = ml_list_of(n, NULL, NULL, "coefficients", NULL),
             .rho = ml_list_of(n, NULL, NULL, "rho", NULL)};
    if (s.post < 0)
        return ORTC_INVALID_MODEL;
    while (s.type <= SIGMOID && strcmp(type, types[s.type]) != 0)
        s.type++;
    if (s.type > SIGMOID)
        return ortc_prep_fail(prep, ORTC_INVALID_MODEL, "attribute kernel_type is '%s', expected LINEAR, POLY, RBF or SIGMOID", type);
    if (!s.coefficients.n || !s.rho.n || s.n_supports < 0 || (params.n && params.n != 3) ||
        (s.n_supports && (s.coefficients.n != s.n_supports || s.vectors.n % s.n_supports)))
        return ortc_prep_fail(prep, ORTC_INVALID_MODEL,
                              "%lld support vectors, %lld numbers of them, %lld coefficients, %lld rho, %lld kernel_params do not fit",
                              (long long)s.n_supports, (long long)s.vectors.n, (long long)s.coefficients.n, (long long)s.rho.n,
                              (long long)params.n);
    if (params.n) {
        s.gamma = ml_list_number(&params, 0);
        s.offset = ml_list_number(&params, 1);
        s.degree = ml_list_number(&params, 2);
    }
    if (!(*out = malloc(sizeof s)))
        return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    memcpy(*out, &s, sizeof s);
    return ORTC_OK;
}

/* Of a row of x and `columns` numbers of a list from `first` on. */
static double kernel(const svm *s, const ortc_view *x, int64_t row, int64_t columns, const ml_list *other, int64_t first)
{
    double sum = 0;
    for (int64_t i = 0; i < columns; i++) {
        const double a = ortc_load_f64(x->data, x->dtype, row * columns + i), b = ml_list_number(other, first + i);
        sum += s->type == RBF ? (a - b) * (a - b) : a * b;
    }
    switch (s->type) {
    case POLY: return pow(s->gamma * sum + s->offset, s->degree);
    case RBF: return exp(-s->gamma * sum);
    case SIGMOID: return tanh(s->gamma * sum + s->offset);
    default: return sum;
    }
}

static ortc_status svm_run(const void *state, const void *pstate, ortc_call *c)
{
    const svm *s = state;
    const ortc_view *x = &c->in[0];
    int64_t rows, columns;
    ml_rows(x, &rows, &columns);
    if (s->n_supports ? s->vectors.n / s->n_supports != columns : s->coefficients.n != columns)
        return ortc_call_fail(c, ORTC_SHAPE_MISMATCH, "the support vectors or coefficients do not fit %lld features", (long long)columns);
    for (int64_t r = 0; r < rows; r++) {
        double sum = ml_list_number(&s->rho, 0);
        for (int64_t k = 0; k < s->n_supports; k++)
            sum += ml_list_number(&s->coefficients, k) * kernel(s, x, r, columns, &s->vectors, k * columns);
        if (!s->n_supports)
            sum += kernel(s, x, r, columns, &s->coefficients, 0);
        if (s->one_class)
            sum = sum > 0 ? 1 : -1;
        ml_post(s->post, &sum, 1);
        ortc_store_f64(c->out[0].data, ORTC_F32, r, sum);
        ORTC_TRY(ortc_poll(c));
    }
    return ORTC_OK;
}

const ortc_kernel ortc_ref_svm_regressor = {
    .size = ORTC_SIZED(ortc_kernel), .name = "svm_regressor.ref", .prepare = svm_prepare, .run = svm_run};
