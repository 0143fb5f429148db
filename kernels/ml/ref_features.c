/* kernels/ml/ref_features.c: Scaler, Normalizer, Imputer, Binarizer, FeatureVectorizer on ref: rows of
 * features. */
#include <math.h>
#include <stdlib.h>

#include "kernels/ml/ml.h"

/* ---- Scaler -------------------------------------------------------------------------------------------- */

typedef struct two_lists {
    ml_list a, b;
    double threshold;
} two_lists;

static ortc_status lists_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    two_lists *s = calloc(1, sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    if (!strcmp(ortc_node_op(n), "Scaler")) {
        s->a = ml_list_of(n, NULL, NULL, "offset", NULL);
        s->b = ml_list_of(n, NULL, NULL, "scale", NULL);
    } else if (!strcmp(ortc_node_op(n), "Imputer")) {
        const bool floats = ortc_class_of(ortc_node_in(n, 0).dtype) == ORTC_CLASS_FLOAT;
        s->a = ml_list_of(n, NULL, floats ? NULL : "imputed_value_int64s",
                          floats ? "imputed_value_floats" : NULL, NULL);
        s->threshold = floats ? (double)ortc_node_float(n, "replaced_value_float", 0) : 0;
        if (!s->a.n) {
            free(s);
            return ortc_prep_fail(prep, ORTC_INVALID_MODEL,
                                  "no imputed values of the input's kind (float or integer) are given");
        }
    } else {
        s->threshold = ortc_node_float(n, "threshold", 0);
    }
    *out = s;
    return ORTC_OK;
}

/* A number of a list of floats for a feature: one for all, or one each. */
static inline double per_feature(const ml_list *l, int64_t column, double otherwise)
{
    return l->n == 0 ? otherwise : (double)l->from.u.floats[l->n == 1 ? 0 : column];
}

static ortc_status check_list(ortc_call *c, const ml_list *l, const char *name, int64_t columns)
{
    return l->n <= 1 || l->n == columns
               ? ORTC_OK
               : ortc_call_fail(c, ORTC_SHAPE_MISMATCH,
                                "attribute %s has %lld elements, there are %lld features", name,
                                (long long)l->n, (long long)columns);
}

static ortc_status scaler_run(const void *state, const void *pstate, ortc_call *c)
{
    const two_lists *s = state;
    const ortc_view *x = &c->in[0];
    int64_t rows, columns;
    ml_rows(x, &rows, &columns);
    ORTC_TRY(check_list(c, &s->a, "offset", columns));
    ORTC_TRY(check_list(c, &s->b, "scale", columns));
    for (int64_t r = 0, i = 0; r < rows; r++) {
        for (int64_t k = 0; k < columns; k++, i++) {
            const double v = ortc_load_f64(x->data, x->dtype, i) - per_feature(&s->a, k, 0);
            ((float *)c->out[0].data)[i] = (float)(v * per_feature(&s->b, k, 1));
        }
        ORTC_TRY(ortc_poll(c));
    }
    return ORTC_OK;
}

/* ---- Imputer: what is missing gets a value ------------------------------------------------------------- */

typedef struct imputer {
    two_lists lists;
    int64_t replaced;
} imputer;

static ortc_status imputer_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    void *lists;
    ORTC_TRY(lists_prepare(n, prep, &lists));
    imputer *s = calloc(1, sizeof *s);
    if (s) {
        s->lists = *(two_lists *)lists;
        s->replaced = ortc_node_int(n, "replaced_value_int64", 0);
    }
    free(lists);
    *out = s;
    return s ? ORTC_OK : ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
}

/* Of f32, as models have them. */
static void impute_row(const imputer *s, int64_t columns, const float *x, float *y)
{
    const float missing = (float)s->lists.threshold;
    for (int64_t k = 0; k < columns; k++) {
        const bool hit = missing != missing ? x[k] != x[k] : x[k] == missing;
        y[k] = hit ? (float)per_feature(&s->lists.a, k, 0) : x[k];
    }
}

static void impute(const imputer *s, const ortc_view *x, const ortc_view *y, int64_t i, int64_t from)
{
    if (ortc_class_of(x->dtype) == ORTC_CLASS_FLOAT) {
        const double v = ortc_load_f64(x->data, x->dtype, i), missing = s->lists.threshold;
        const bool hit = missing != missing ? v != v : v == missing;
        ortc_store_f64(y->data, x->dtype, i, hit ? ml_list_number(&s->lists.a, from) : v);
    } else {
        const int64_t v = ortc_load_i64(x->data, x->dtype, i);
        ortc_store_i64(y->data, x->dtype, i, v == s->replaced ? ml_list_integer(&s->lists.a, from) : v);
    }
}

static ortc_status imputer_run(const void *state, const void *pstate, ortc_call *c)
{
    const imputer *s = state;
    const ortc_view *x = &c->in[0], *y = &c->out[0];
    int64_t rows, columns;
    ml_rows(x, &rows, &columns);
    ORTC_TRY(check_list(c, &s->lists.a, "of imputed values", columns));
    for (int64_t r = 0; r < rows; r++) {
        const int64_t first = r * columns;
        if (x->dtype == ORTC_F32)
            impute_row(s, columns, (const float *)x->data + first, (float *)y->data + first);
        for (int64_t k = 0; k < columns && x->dtype != ORTC_F32; k++)
            impute(s, x, y, first + k, s->lists.a.n == 1 ? 0 : k);
        ORTC_TRY(ortc_poll(c));
    }
    return ORTC_OK;
}

/* ---- Binarizer ----------------------------------------------------------------------------------------- */

static ortc_status binarizer_run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_view *x = &c->in[0];
    const int64_t count = ortc_view_count(x);
    for (int64_t i = 0; i < count; i++) {
        ortc_store_i64(c->out[0].data, x->dtype, i,
                       ortc_load_f64(x->data, x->dtype, i) > ((const two_lists *)state)->threshold);
        if (i % 4096 == 4095) ORTC_TRY(ortc_poll(c));
    }
    return ORTC_OK;
}

/* ---- Normalizer ---------------------------------------------------------------------------------------- */

enum { NORM_MAX, NORM_L1, NORM_L2 };

static ortc_status normalizer_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const char *name = ortc_node_string(n, "norm", "MAX");
    int *norm = malloc(sizeof *norm);
    if (!norm) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *norm = !strcmp(name, "MAX")  ? NORM_MAX
            : !strcmp(name, "L1") ? NORM_L1
            : !strcmp(name, "L2") ? NORM_L2
                                  : -1;
    if (*norm < 0) {
        free(norm);
        return ortc_prep_fail(prep, ORTC_INVALID_MODEL, "attribute norm is '%s', expected MAX, L1 or L2",
                              name);
    }
    *out = norm;
    return ORTC_OK;
}

static ortc_status normalizer_run(const void *state, const void *pstate, ortc_call *c)
{
    const int norm = *(const int *)state;
    const ortc_view *x = &c->in[0];
    int64_t rows, columns;
    ml_rows(x, &rows, &columns);
    for (int64_t r = 0; r < rows; r++) {
        double size = 0;
        for (int64_t k = 0; k < columns; k++) {
            const double v = ortc_load_f64(x->data, x->dtype, r * columns + k);
            size = norm == NORM_MAX ? (fabs(v) > size ? fabs(v) : size)
                                    : size + (norm == NORM_L1 ? fabs(v) : v * v);
        }
        size = norm == NORM_L2 ? sqrt(size) : size;
        for (int64_t k = 0; k < columns; k++) { /* a row of zeros stays one */
            const double v = ortc_load_f64(x->data, x->dtype, r * columns + k);
            ortc_store_f64(c->out[0].data, ORTC_F32, r * columns + k, size == 0 ? v : v / size);
        }
        ORTC_TRY(ortc_poll(c));
    }
    return ORTC_OK;
}

/* ---- FeatureVectorizer: features side by side ---------------------------------------------------------- */

static ortc_status vectorizer_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    ml_list *l = malloc(sizeof *l);
    if (!l) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *l = ml_list_of(n, NULL, "inputdimensions", NULL, NULL);
    *out = l;
    return ORTC_OK;
}

static ortc_status vectorizer_run(const void *state, const void *pstate, ortc_call *c)
{
    const ml_list *widths = state;
    const int64_t rows = c->out[0].dims[0], total = c->out[0].dims[1];
    int64_t first = 0;
    for (uint32_t i = 0; i < c->n_in; i++) {
        const ortc_view *x = &c->in[i];
        const int64_t have = rows ? ortc_view_count(x) / rows : 0;
        const int64_t width = (int64_t)i < widths->n ? ml_list_integer(widths, i) : have;
        for (int64_t r = 0; r < rows; r++) /* what is too narrow is filled with 0 */
            for (int64_t k = 0; k < width; k++)
                ortc_store_f64(c->out[0].data, ORTC_F32, r * total + first + k,
                               k < have ? ortc_load_f64(x->data, x->dtype, r * have + k) : 0);
        first += width;
        ORTC_TRY(ortc_poll(c));
    }
    return ORTC_OK;
}

const ortc_kernel ortc_ref_scaler = {.size = ORTC_SIZED(ortc_kernel),
                                     .name = "scaler.ref",
                                     .prepare = lists_prepare,
                                     .run = scaler_run};
const ortc_kernel ortc_ref_imputer = {.size = ORTC_SIZED(ortc_kernel),
                                      .name = "imputer.ref",
                                      .prepare = imputer_prepare,
                                      .run = imputer_run};
const ortc_kernel ortc_ref_binarizer = {.size = ORTC_SIZED(ortc_kernel),
                                        .name = "binarizer.ref",
                                        .prepare = lists_prepare,
                                        .run = binarizer_run};
const ortc_kernel ortc_ref_normalizer = {.size = ORTC_SIZED(ortc_kernel),
                                         .name = "normalizer.ref",
                                         .prepare = normalizer_prepare,
                                         .run = normalizer_run};
const ortc_kernel ortc_ref_feature_vectorizer = {.size = ORTC_SIZED(ortc_kernel),
                                                 .name = "feature_vectorizer.ref",
                                                 .prepare = vectorizer_prepare,
                                                 .run = vectorizer_run};
