/* kernels/ml/ref_maps.c: ZipMap, DictVectorizer and CastMap on ref: between tensors and maps. */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/ml/ml.h"

/* ---- ZipMap: every row of scores becomes a map from the labels ----------------------------------------- */

typedef struct labels_state {
    ml_list labels;
} labels_state;

static ortc_status zip_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    labels_state *s = calloc(1, sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    s->labels = ml_list_of(n, "classlabels_strings", "classlabels_int64s", NULL, NULL);
    if (!s->labels.n) {
        free(s);
        return ortc_prep_fail(prep, ORTC_INVALID_MODEL,
                              "neither classlabels_strings nor classlabels_int64s is given");
    }
    *out = s;
    return ORTC_OK;
}

/* The labels as the keys that all maps share. */
static ortc_status make_keys(ortc_call *c, const ml_list *labels, ortc_value **out)
{
    ortc_view v;
    if (labels->dtype != ORTC_STRING) {
        ORTC_TRY(ortc_call_make(c, ORTC_I64, 1, &labels->n, out));
        ORTC_TRY(ortc_call_look(c, *out, &v));
        for (int64_t i = 0; i < labels->n; i++)
            ortc_store_i64(v.data, ORTC_I64, i, ml_list_integer(labels, i));
        return ORTC_OK;
    }
    ORTC_TRY(ortc_call_strings(c, 1, &labels->n, out));
    for (int64_t i = 0; i < labels->n; i++) {
        const ortc_span t = ml_list_text(labels, i);
        ORTC_TRY(ortc_call_append(c, *out, t.text, t.length));
    }
    return ORTC_OK;
}

static ortc_status zip_row(ortc_call *c, ortc_value *keys, int64_t row, int64_t n, ortc_value **out)
{
    ortc_value *values;
    ortc_view v;
    ORTC_TRY(ortc_call_make(c, ORTC_F32, 1, &n, &values));
    ortc_status s = ortc_call_look(c, values, &v);
    if (s == ORTC_OK) {
        ortc_move_elements(v.data, 0, c->in[0].data, row * n, n, 32);
        s = ortc_call_map(c, keys, values, out);
    }
    ortc_call_drop(c, values);
    return s;
}

static ortc_status zip_run(const void *state, const void *pstate, ortc_call *c)
{
    const ml_list *labels = &((const labels_state *)state)->labels;
    const ortc_type number = {ORTC_KIND_TENSOR, 0, ORTC_F32, NULL},
                    map = {ORTC_KIND_MAP, 0, labels->dtype, &number};
    int64_t rows, columns;
    ml_rows(&c->in[0], &rows, &columns);
    if (columns != labels->n)
        return ortc_call_fail(c, ORTC_SHAPE_MISMATCH, "the input has %lld columns, there are %lld labels",
                              (long long)columns, (long long)labels->n);
    ortc_value *keys = NULL, *sequence = NULL, **maps = calloc((size_t)rows + 1, sizeof *maps);
    ortc_status s = maps ? make_keys(c, labels, &keys)
                         : ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for %lld maps", (long long)rows);
    for (int64_t i = 0; i < rows && s == ORTC_OK; i++) {
        s = zip_row(c, keys, i, columns, &maps[i]);
        if (s == ORTC_OK && i % 1024 == 1023) s = ortc_poll(c);
    }
    if (s == ORTC_OK) s = ortc_call_sequence(c, &map, rows, maps, &sequence);
    for (int64_t i = 0; maps && i < rows && maps[i]; i++) ortc_call_drop(c, maps[i]);
    free(maps);
    if (keys) ortc_call_drop(c, keys);
    return s == ORTC_OK ? ortc_call_give(c, 0, sequence) : s;
}

/* ---- DictVectorizer: a map's values in the order of a vocabulary, 0 where there is none ---------------- */

static ortc_status dict_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const ml_list words = ml_list_of(n, "string_vocabulary", "int64_vocabulary", NULL, NULL);
    ml_index *x = calloc(1, sizeof *x);
    if (!x) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    const ortc_status s = words.n ? ml_index_init(x, &words, prep)
                                  : ortc_prep_fail(prep, ORTC_INVALID_MODEL,
                                                   "neither string_vocabulary nor int64_vocabulary is given");
    if (s != ORTC_OK) {
        free(x);
        return s;
    }
    *out = x;
    return ORTC_OK;
}

static void dict_release(void *state)
{
    ml_index_deinit(state);
    free(state);
}

static ortc_status dict_run(const void *state, const void *pstate, ortc_call *c)
{
    const ml_index *words = state;
    ortc_value *map = ortc_call_value(c, 0);
    const int64_t n = words->list.n;
    ortc_view keys, values, *y = &c->out[0];
    ORTC_TRY(ortc_call_look(c, ortc_call_element(c, map, 0), &keys));
    ORTC_TRY(ortc_call_look(c, ortc_call_element(c, map, 1), &values));
    if ((keys.dtype == ORTC_STRING) != (words->list.dtype == ORTC_STRING))
        return ortc_call_fail(c, ORTC_TYPE_MISMATCH, "the map's keys are %s, the vocabulary is %s",
                              ortc_dtype_name(keys.dtype), ortc_dtype_name(words->list.dtype));
    ortc_span *spans = y->dtype == ORTC_STRING ? calloc((size_t)n + 1, sizeof *spans) : NULL;
    if (y->dtype == ORTC_STRING && !spans)
        return ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for %lld strings", (long long)n);
    if (!spans) memset(y->data, 0, ortc_bytes_of(ortc_dtype_bits(y->dtype), n));
    for (int64_t i = 0; i < ortc_view_count(&keys); i++) {
        const int64_t at = ml_index_find(words, &keys, i);
        if (at >= 0 && spans)
            spans[at] = ortc_span_at(&values, i);
        else if (at >= 0)
            ortc_move_element(y->data, at, values.data, i, ortc_dtype_bits(y->dtype));
    }
    const ortc_status s = spans ? ortc_give_spans(c, 0, y->rank, y->dims, spans) : ORTC_OK;
    free(spans);
    return s;
}

/* ---- CastMap: a map's values by ascending keys, or at the places that the keys are --------------------- */

static ortc_status cast_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const char *form = ortc_node_string(n, "map_form", "DENSE");
    if (strcmp(form, "DENSE") != 0 && strcmp(form, "SPARSE") != 0)
        return ortc_prep_fail(prep, ORTC_INVALID_MODEL,
                              "attribute map_form is '%s', expected DENSE or SPARSE", form);
    bool *sparse = malloc(sizeof *sparse);
    if (!sparse) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *sparse = !strcmp(form, "SPARSE");
    *out = sparse;
    return ORTC_OK;
}

/* Element `from` of the values (-1: nothing) as element i of the output; text is written into `texts`. */
static ortc_status cast_one(ortc_call *c, const ortc_view *values, int64_t from, ortc_value *texts,
                            const ortc_view *y, int64_t i)
{
    char number[64] = "0";
    const bool text = from >= 0 && values->dtype == ORTC_STRING;
    const ortc_span s = text ? ortc_span_at(values, from) : (ortc_span){"0", 1};
    if (y->dtype != ORTC_STRING) {
        double v = from < 0 ? 0 : text ? 0 : ortc_load_f64(values->data, values->dtype, from);
        if (text) {
            char *end = number;
            if (s.length < sizeof number) {
                memcpy(number, s.text, s.length);
                number[s.length] = 0;
                v = strtod(number, &end);
            }
            if (s.length == 0 || end != number + s.length)
                return ortc_call_fail(c, ORTC_INVALID_ARGUMENT, "'%.*s' is not a number",
                                      (int)(s.length < 60 ? s.length : 60), s.text);
        }
        ortc_store_f64(y->data, y->dtype, i, v);
        return ORTC_OK;
    }
    if (text || from < 0) return ortc_call_append(c, texts, text ? s.text : "0", text ? s.length : 1);
    const int n = snprintf(number, sizeof number, "%f", ortc_load_f64(values->data, values->dtype, from));
    return ortc_call_append(c, texts, number, (size_t)n);
}

/* The pair with the smallest key that is not below `from`; -1: none. */
static int64_t next_pair(const int64_t *keys, int64_t n, int64_t from)
{
    int64_t best = -1;
    for (int64_t i = 0; i < n; i++)
        if (keys[i] >= from && (best < 0 || keys[i] < keys[best])) best = i;
    return best;
}

static ortc_status cast_pairs(const void *state, ortc_call *c)
{
    const bool sparse = *(const bool *)state;
    ortc_value *map = ortc_call_value(c, 0), *texts = NULL;
    ortc_view keys, values, *y = &c->out[0];
    ORTC_TRY(ortc_call_look(c, ortc_call_element(c, map, 0), &keys));
    ORTC_TRY(ortc_call_look(c, ortc_call_element(c, map, 1), &values));
    const int64_t pairs = ortc_view_count(&keys), *at = keys.data;
    int64_t dims[2] = {1, sparse ? y->dims[1] : pairs};
    for (int64_t i = 0; i < pairs; i++)
        if (at[i] < 0 || (sparse && at[i] >= dims[1]))
            return ortc_call_fail(c, ORTC_INVALID_ARGUMENT, "key %lld is negative or not below max_map",
                                  (long long)at[i]);
    if (y->dtype == ORTC_STRING)
        ORTC_TRY(ortc_call_strings(c, 2, dims, &texts));
    else
        ORTC_TRY(ortc_call_resize(c, 0, 2, dims));
    ortc_status s = ORTC_OK;
    int64_t from = 0;
    for (int64_t i = 0; i < dims[1] && s == ORTC_OK; i++) {
        const int64_t next = next_pair(at, pairs, from);
        const bool there = next >= 0 && (!sparse || at[next] == i);
        s = cast_one(c, &values, there ? next : -1, texts, y, i);
        from = there ? at[next] + 1 : from;
        if (s == ORTC_OK && i % 1024 == 1023) s = ortc_poll(c);
    }
    if (texts && s == ORTC_OK) return ortc_call_give(c, 0, texts);
    if (texts) ortc_call_drop(c, texts);
    return s;
}

/* Numbers are read and written as in the C locale, whatever the program's. */
static ortc_status cast_run(const void *state, const void *pstate, ortc_call *c)
{
    const locale_t plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    if (!plain) return ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for a locale");
    const locale_t before = uselocale(plain);
    const ortc_status s = cast_pairs(state, c);
    uselocale(before);
    freelocale(plain);
    return s;
}

const ortc_kernel ortc_ref_zip_map = {.size = ORTC_SIZED(ortc_kernel),
                                      .flags = ORTC_KERNEL_VALUES,
                                      .name = "zip_map.ref",
                                      .prepare = zip_prepare,
                                      .run = zip_run};
const ortc_kernel ortc_ref_dict_vectorizer = {.size = ORTC_SIZED(ortc_kernel),
                                              .flags = ORTC_KERNEL_VALUES,
                                              .name = "dict_vectorizer.ref",
                                              .prepare = dict_prepare,
                                              .run = dict_run,
                                              .release = dict_release};
const ortc_kernel ortc_ref_cast_map = {.size = ORTC_SIZED(ortc_kernel),
                                       .flags = ORTC_KERNEL_VALUES | ORTC_KERNEL_LATE_OUT,
                                       .name = "cast_map.ref",
                                       .prepare = cast_prepare,
                                       .run = cast_run};
