/* kernels/ml/ref_labels.c: LabelEncoder, CategoryMapper, OneHotEncoder, ArrayFeatureExtractor on ref:
 * elements found in a list. */
#include <stdlib.h>

#include "kernels/ml/ml.h"

/* ---- LabelEncoder, CategoryMapper: an element of one list becomes its counterpart of another ----------- */

typedef struct mapping {
    ml_index keys;
    ml_list values;
    ml_list otherwise; /* default_tensor */
    ortc_span text;    /* defaults */
    double number;
    int64_t integer;
} mapping;

static void mapping_release(void *state)
{
    mapping *m = state;
    ml_index_deinit(&m->keys);
    free(m);
}

static ortc_status make_mapping(const ortc_node *n, ortc_prep *prep, const ml_list *keys,
                                const ml_list *values, void **out)
{
    if (!keys->n || keys->n != values->n)
        return ortc_prep_fail(prep, ORTC_INVALID_MODEL,
                              "%lld keys and %lld values: expected as many, at least one", (long long)keys->n,
                              (long long)values->n);
    mapping *m = calloc(1, sizeof *m);
    if (!m) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    m->values = *values;
    m->text = ortc_span_of(ortc_node_string(n, "default_string", "_Unused"));
    m->integer = ortc_node_int(n, "default_int64", -1);
    m->number = ortc_node_float(n, "default_float", -0.0f);
    m->otherwise = ml_list_of(n, NULL, NULL, NULL, "default_tensor");
    const ortc_status s = ml_index_init(&m->keys, keys, prep);
    if (s != ORTC_OK) {
        free(m);
        return s;
    }
    *out = m;
    return ORTC_OK;
}

static ortc_status encoder_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const ml_list keys = ml_list_of(n, "keys_strings", "keys_int64s", "keys_floats", "keys_tensor");
    const ml_list values = ml_list_of(n, "values_strings", "values_int64s", "values_floats", "values_tensor");
    const ortc_port x = ortc_node_in(n, 0);
    if (keys.n && x.dtype && (keys.dtype == ORTC_STRING) != (x.dtype == ORTC_STRING))
        return ortc_prep_fail(prep, ORTC_TYPE_MISMATCH, "the input is %s, the keys are %s",
                              ortc_dtype_name(x.dtype), ortc_dtype_name(keys.dtype));
    return make_mapping(n, prep, &keys, &values, out);
}

static ortc_status mapper_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const ml_list strings = ml_list_of(n, "cats_strings", NULL, NULL, NULL),
                  ints = ml_list_of(n, NULL, "cats_int64s", NULL, NULL);
    const bool from_strings = ortc_node_in(n, 0).dtype == ORTC_STRING;
    return make_mapping(n, prep, from_strings ? &strings : &ints, from_strings ? &ints : &strings, out);
}

static ortc_span text_of(const mapping *m, int64_t at)
{
    return at >= 0                             ? ml_list_text(&m->values, at)
           : m->otherwise.dtype == ORTC_STRING ? ml_list_text(&m->otherwise, 0)
                                               : m->text;
}

static void store_number(const mapping *m, int64_t at, const ortc_view *y, int64_t i)
{
    const ml_list *from = at >= 0 ? &m->values : m->otherwise.n ? &m->otherwise : NULL;
    if (ortc_class_of(y->dtype) == ORTC_CLASS_FLOAT)
        ortc_store_f64(y->data, y->dtype, i, from ? ml_list_number(from, at >= 0 ? at : 0) : m->number);
    else
        ortc_store_i64(y->data, y->dtype, i, from ? ml_list_integer(from, at >= 0 ? at : 0) : m->integer);
}

typedef struct mapping_job {
    const mapping *m;
    const ortc_view *x, *y;
    ortc_span *spans; /* of strings */
} mapping_job;

static void map_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const mapping_job *j = arg;
    (void)scratch;
    for (int64_t i = begin; i < end; i++) {
        const int64_t at = ml_index_find(&j->m->keys, j->x, i);
        if (j->spans)
            j->spans[i] = text_of(j->m, at);
        else
            store_number(j->m, at, j->y, i);
    }
}

static ortc_status mapping_run(const void *state, const void *pstate, ortc_call *c)
{
    const mapping *m = state;
    const ortc_view *x = &c->in[0], *y = &c->out[0];
    const int64_t count = ortc_view_count(x);
    ortc_span *spans = y->dtype == ORTC_STRING ? malloc((size_t)count * sizeof *spans + 1) : NULL;
    if (y->dtype == ORTC_STRING && !spans)
        return ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for %lld strings", (long long)count);
    mapping_job j = {m, x, y, spans};
    ortc_status s = ortc_parallel(c, count, 4096, map_chunk, &j);
    if (spans && s == ORTC_OK) s = ortc_give_spans(c, 0, y->rank, y->dims, spans);
    free(spans);
    return s;
}

/* ---- OneHotEncoder ------------------------------------------------------------------------------------- */

typedef struct one_hot {
    ml_index categories;
    bool zeros;
} one_hot;

static void one_hot_release(void *state)
{
    one_hot *s = state;
    ml_index_deinit(&s->categories);
    free(s);
}

static ortc_status one_hot_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const bool text = ortc_node_in(n, 0).dtype == ORTC_STRING;
    const ml_list l = ml_list_of(n, text ? "cats_strings" : NULL, text ? NULL : "cats_int64s", NULL, NULL);
    if (!l.n)
        return ortc_prep_fail(prep, ORTC_INVALID_MODEL, "attribute %s is empty",
                              text ? "cats_strings" : "cats_int64s");
    one_hot *s = calloc(1, sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    s->zeros = ortc_node_int(n, "zeros", 1) != 0;
    const ortc_status status = ml_index_init(&s->categories, &l, prep);
    if (status != ORTC_OK) {
        free(s);
        return status;
    }
    *out = s;
    return ORTC_OK;
}

static ortc_status one_hot_run(const void *state, const void *pstate, ortc_call *c)
{
    const one_hot *s = state;
    const ortc_view *x = &c->in[0];
    const int64_t count = ortc_view_count(x), n = s->categories.list.n;
    float *y = c->out[0].data;
    memset(y, 0, (size_t)(count * n) * sizeof *y);
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = ml_index_find(&s->categories, x, i);
        if (at >= 0)
            y[i * n + at] = 1;
        else if (!s->zeros)
            return ortc_call_fail(c, ORTC_INVALID_ARGUMENT,
                                  "element %lld is in no category, and attribute zeros is 0", (long long)i);
        if (i % 4096 == 4095) ORTC_TRY(ortc_poll(c));
    }
    return ORTC_OK;
}

/* ---- ArrayFeatureExtractor ----------------------------------------------------------------------------- */

static ortc_status extract_run(const void *state, const void *pstate, ortc_call *c)
{
    if (c->in[0].dtype == ORTC_STRING) return ortc_run_on_strings(extract_run, state, pstate, c);
    const ortc_view *x = &c->in[0], *at = &c->in[1];
    const int64_t picks = ortc_view_count(at);
    int64_t rows, columns;
    ml_rows(x, &rows, &columns);
    for (int64_t k = 0; k < picks; k++) {
        const int64_t column = ortc_load_i64(at->data, at->dtype, k);
        if (column < 0 || column >= columns)
            return ortc_call_fail(c, ORTC_INVALID_ARGUMENT,
                                  "index %lld (Y[%lld]) is outside of the %lld features", (long long)column,
                                  (long long)k, (long long)columns);
        for (int64_t r = 0; r < rows; r++)
            ortc_move_element(c->out[0].data, r * picks + k, x->data, r * columns + column,
                              ortc_dtype_bits(x->dtype));
        ORTC_TRY(ortc_poll(c));
    }
    return ORTC_OK;
}

const ortc_kernel ortc_ref_label_encoder = {.size = ORTC_SIZED(ortc_kernel),
                                            .name = "label_encoder.ref",
                                            .prepare = encoder_prepare,
                                            .run = mapping_run,
                                            .release = mapping_release};
const ortc_kernel ortc_ref_category_mapper = {.size = ORTC_SIZED(ortc_kernel),
                                              .name = "category_mapper.ref",
                                              .prepare = mapper_prepare,
                                              .run = mapping_run,
                                              .release = mapping_release};
const ortc_kernel ortc_ref_one_hot_encoder = {.size = ORTC_SIZED(ortc_kernel),
                                              .name = "one_hot_encoder.ref",
                                              .prepare = one_hot_prepare,
                                              .run = one_hot_run,
                                              .release = one_hot_release};
const ortc_kernel ortc_ref_array_feature_extractor = {.size = ORTC_SIZED(ortc_kernel),
                                                      .name = "array_feature_extractor.ref",
                                                      .run = extract_run};
