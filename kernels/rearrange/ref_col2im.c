/* kernels/rearrange/ref_col2im.c: Col2Im on ref: every element of the image is the sum of the block elements
 * that lie on it.
 *
 * input [N, C * block, L]: L blocks in row-major order of their places, as a convolution with this window
 * would read them. Booleans are or'ed, strings joined; where nothing lies there is 0, false or "".
 */
#include <stdlib.h>

#include "kernels/common/strings.h"
#include "kernels/common/window.h"
#include "kernels/rearrange/rearrange.h"

typedef struct sum {
    double re, im;
    uint64_t whole;
} sum;

/* Elements of complex numbers have two parts; integers wrap, floats are summed in double. */
static void add(sum *s, const ortc_view *x, int64_t at)
{
    if (x->dtype == ORTC_C64 || x->dtype == ORTC_C128) {
        const ortc_dtype part = x->dtype == ORTC_C64 ? ORTC_F32 : ORTC_F64;
        s->re += ortc_load_f64(x->data, part, 2 * at);
        s->im += ortc_load_f64(x->data, part, 2 * at + 1);
    } else if (ortc_class_of(x->dtype) == ORTC_CLASS_FLOAT) {
        s->re += ortc_load_f64(x->data, x->dtype, at);
    } else {
        s->whole += ortc_load_u64(x->data, x->dtype, at);
    }
}

static void put(const sum *s, ortc_view *y, int64_t at)
{
    if (y->dtype == ORTC_C64 || y->dtype == ORTC_C128) {
        const ortc_dtype part = y->dtype == ORTC_C64 ? ORTC_F32 : ORTC_F64;
        ortc_store_f64(y->data, part, 2 * at, s->re);
        ortc_store_f64(y->data, part, 2 * at + 1, s->im);
    } else if (ortc_class_of(y->dtype) == ORTC_CLASS_FLOAT) {
        ortc_store_f64(y->data, y->dtype, at, s->re);
    } else {
        ortc_store_u64(y->data, y->dtype, at, s->whole);
    }
}

/* The block elements that lie on one pixel, from the first element of a block on. */
typedef struct hits {
    int64_t plane, b, pixel[ORTC_SPATIAL_LIMIT], k[ORTC_SPATIAL_LIMIT]; /* k: element b of a block, by axis */
} hits;

static hits hits_on(const ortc_col_job *j, int64_t i)
{
    hits h = {.plane = i / j->image_count};
    int64_t rest = i % j->image_count;
    for (int32_t d = j->spatial - 1; d >= 0; d--) {
        h.pixel[d] = rest % j->y->dims[d + 2];
        rest /= j->y->dims[d + 2];
    }
    return h;
}

/* Where the next one is in the input; -1: there is none. */
static int64_t next_hit(const ortc_col_job *j, hits *h)
{
    int64_t at = -1;
    for (; h->b < j->block_count && at < 0; h->b++) {
        int64_t place = 0;
        bool lies = true;
        for (int32_t d = 0; d < j->spatial && lies; d++) { /* the block whose element k[d] is this pixel */
            const int64_t from = h->pixel[d] + j->w->pad_begin[d] - h->k[d] * j->w->dilation[d];
            lies = from >= 0 && from % j->w->stride[d] == 0 && from / j->w->stride[d] < j->places[d];
            place = place * j->places[d] + from / j->w->stride[d];
        }
        if (lies) at = (h->plane * j->block_count + h->b) * j->place_count + place;
        for (int32_t d = j->spatial - 1; d >= 0 && ++h->k[d] == j->block[d]; d--) h->k[d] = 0;
    }
    return at;
}

static void col_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const ortc_col_job *j = arg;
    for (int64_t i = begin; i < end; i++) {
        hits h = hits_on(j, i);
        sum s = {0, 0, 0};
        for (int64_t at; (at = next_hit(j, &h)) >= 0;) add(&s, j->x, at);
        put(&s, j->y, i);
    }
}

/* Makes the text longer; false: there is no memory. */
static bool join(char **text, size_t *length, size_t *room, ortc_span more)
{
    if (*length + more.length > *room) {
        const size_t wanted = 2 * (*length + more.length);
        char *grown = realloc(*text, wanted);
        if (!grown) return false;
        *text = grown, *room = wanted;
    }
    if (more.length) memcpy(*text + *length, more.text, more.length);
    *length += more.length;
    return true;
}

static ortc_status col_strings(const ortc_col_job *j, ortc_call *c)
{
    const int64_t count = ortc_view_count(j->y);
    char *text = NULL;
    size_t room = 0;
    ortc_value *v;
    ORTC_TRY(ortc_call_strings(c, j->y->rank, j->y->dims, &v));
    ortc_status s = ORTC_OK;
    for (int64_t i = 0; i < count && s == ORTC_OK; i++) {
        hits h = hits_on(j, i);
        size_t length = 0;
        for (int64_t at; s == ORTC_OK && (at = next_hit(j, &h)) >= 0;)
            if (!join(&text, &length, &room, ortc_span_at(j->x, at)))
                s = ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for strings");
        if (s == ORTC_OK) s = ortc_call_append(c, v, text ? text : "", length);
        if (s == ORTC_OK && i % 256 == 255) s = ortc_poll(c);
    }
    free(text);
    if (s == ORTC_OK) return ortc_call_give(c, 0, v);
    ortc_call_drop(c, v);
    return s;
}

ortc_status ortc_col_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const char *attribute, *wrong;
    ortc_window *w = malloc(sizeof *w);
    if (!w) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    wrong = ortc_window_read(n, -1, w, &attribute);
    if (wrong) {
        free(w);
        return ortc_prep_fail(prep, ORTC_INVALID_MODEL, "attribute %s %s", attribute, wrong);
    }
    *out = w;
    return ORTC_OK;
}

ortc_status ortc_col_read(const void *state, ortc_call *c, ortc_col_job *j)
{
    const ortc_view *x = &c->in[0];
    *j = (ortc_col_job){.w = state, .x = x, .y = &c->out[0], .spatial = c->out[0].rank - 2};
    j->image_count = j->block_count = j->place_count = 1;
    if (ortc_view_count(j->y) == 0) return ORTC_OK;
    for (int32_t d = 0; d < j->spatial; d++) {
        const ortc_window *w = state;
        j->block[d] = ortc_load_i64(c->in[2].data, ORTC_I64, d);
        const int64_t image = j->y->dims[d + 2], span = (j->block[d] - 1) * w->dilation[d] + 1,
                      room = image + w->pad_begin[d] + w->pad_end[d] - span;
        j->places[d] = room < 0 ? 0 : room / w->stride[d] + 1;
        j->image_count *= image;
        j->block_count *= j->block[d]; /* divides dim 1 of the input */
        if (__builtin_mul_overflow(j->place_count, j->places[d], &j->place_count))
            return ortc_call_fail(c, ORTC_LIMIT, "the image has room for too many blocks");
    }
    if (j->place_count != x->dims[2])
        return ortc_call_fail(c, ORTC_SHAPE_MISMATCH,
                              "the input has %lld blocks, the image has room for %lld", (long long)x->dims[2],
                              (long long)j->place_count);
    return ORTC_OK;
}

static ortc_status col_run(const void *state, const void *pstate, ortc_call *c)
{
    ortc_col_job j;
    ORTC_TRY(ortc_col_read(state, c, &j));
    if (j.x->dtype == ORTC_STRING) return col_strings(&j, c);
    return ortc_parallel(c, ortc_view_count(j.y), ortc_grain(10 * (double)(j.block_count + 1)), col_chunk,
                         &j);
}

const ortc_kernel ortc_ref_col2im = {.size = ORTC_SIZED(ortc_kernel),
                                     .name = "col2im.ref",
                                     .prepare = ortc_col_prepare,
                                     .run = col_run};
