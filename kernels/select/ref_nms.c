/* kernels/select/ref_nms.c: NonMaxSuppression on ref: for each class of each image boxes are taken by falling
 * score, unless they overlap one that was taken by more than the threshold.
 *
 * The overlap (intersection over union) is computed in double and compared as f32, which the threshold is:
 * equal is kept.
 */
#include <math.h>
#include <stdlib.h>

#include "kernels/common/sort.h"
#include "kernels/select/select.h"

typedef struct box {
    double low[2], high[2];
} box;

static box box_at(const ortc_view *boxes, int64_t i, bool centered)
{
    double v[4];
    box b;
    for (int k = 0; k < 4; k++) v[k] = ortc_load_f64(boxes->data, ORTC_F32, 4 * i + k);
    for (int k = 0; k < 2; k++) { /* two corners in any order, or centre and size */
        const double from = centered ? v[k] - v[k + 2] / 2 : v[k],
                     to = centered ? v[k] + v[k + 2] / 2 : v[k + 2];
        b.low[k] = centered || from < to ? from : to;
        b.high[k] = centered || from < to ? to : from;
    }
    return b;
}

static double area(const box *b) { return (b->high[0] - b->low[0]) * (b->high[1] - b->low[1]); }

static bool overlap(const box *a, const box *b, float threshold)
{
    double common = 1;
    for (int k = 0; k < 2; k++) {
        const double side = fmin(a->high[k], b->high[k]) - fmax(a->low[k], b->low[k]);
        if (!(side > 0)) return false;
        common *= side;
    }
    const double both = area(a) + area(b) - common;
    return area(a) > 0 && area(b) > 0 && both > 0 && (float)(common / both) > threshold;
}

typedef struct scores {
    const ortc_view *v;
    int64_t first;
} scores;

static bool score_before(const void *context, int64_t a, int64_t b)
{
    const scores *s = context;
    const double x = ortc_load_f64(s->v->data, ORTC_F32, s->first + a),
                 y = ortc_load_f64(s->v->data, ORTC_F32, s->first + b);
    if (x != x || y != y) /* NaN comes last */
        return x != x && y != y ? a < b : y != y;
    return x != y ? x > y : a < b;
}

ortc_status ortc_nms_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const int64_t centered = ortc_node_int(n, "center_point_box", 0);
    bool *state = malloc(sizeof *state);
    if (!state) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *state = centered != 0;
    *out = state;
    return ORTC_OK;
}

/* Workspace: the boxes in order of their scores, and those that were taken. */
static ortc_status nms_plan(const void *state, ortc_plan *p, void **pstate)
{
    if (p->in[0].dims[1] > 0) ortc_plan_workspace(p, (size_t)p->in[0].dims[1] * 2 * sizeof(int64_t), 0);
    return ORTC_OK;
}

static ortc_status take_class(ortc_call *c, int64_t image, int64_t class, int64_t most, float overlap_limit,
                              bool centered, int64_t *taken, int64_t *out_taken)
{
    const ortc_view *boxes = &c->in[0], *score = c->n_in > 4 && c->in[4].dtype ? &c->in[4] : NULL;
    const int64_t n = boxes->dims[1], classes = c->in[1].dims[1];
    const scores s = {&c->in[1], (image * classes + class) * n};
    int64_t *order = taken + n, candidates = 0, count = 0;
    for (int64_t i = 0; i < n; i++)
        if (!score ||
            ortc_load_f64(s.v->data, ORTC_F32, s.first + i) > ortc_load_f64(score->data, ORTC_F32, 0))
            order[candidates++] = i;
    ortc_sort(order, candidates, score_before, &s);
    for (int64_t i = 0; i < candidates && count < most; i++) {
        const box b = box_at(boxes, image * n + order[i], centered);
        bool suppressed = false;
        for (int64_t k = 0; k < count && !suppressed; k++) {
            const box other = box_at(boxes, image * n + taken[k], centered);
            suppressed = overlap(&b, &other, overlap_limit);
        }
        if (!suppressed) taken[count++] = order[i];
        if (i % 256 == 255) ORTC_TRY(ortc_poll(c));
    }
    *out_taken = count;
    return ORTC_OK;
}

static double number(const ortc_call *c, uint32_t in)
{
    return c->n_in > in && c->in[in].dtype && ortc_view_count(&c->in[in]) > 0
               ? ortc_load_f64(c->in[in].data, c->in[in].dtype, 0)
               : 0;
}

static ortc_status nms_run(const void *state, const void *pstate, ortc_call *c)
{
    const int64_t classes = c->in[1].dims[1], n = c->in[0].dims[1],
                  all = n > 0 ? c->in[0].dims[0] * classes : 0;
    const double most = number(c, 2);
    int64_t *found = NULL, count = 0, capacity = 0, *taken = c->workspace;
    ortc_status s = ORTC_OK;
    if (c->n_in > 4 && c->in[4].dtype && ortc_view_count(&c->in[4]) != 1)
        return ortc_call_fail(c, ORTC_SHAPE_MISMATCH, "score_threshold must have one element");
    for (int64_t i = 0; i < all && most > 0; i++) {
        int64_t some = 0;
        s = take_class(c, i / classes, i % classes, most < (double)n ? (int64_t)most : n, (float)number(c, 3),
                       *(const bool *)state, taken, &some);
        if (s == ORTC_OK && count + some > capacity) {
            capacity = 2 * (count + some);
            int64_t *grown = (uint64_t)capacity > SIZE_MAX / 3 / sizeof *grown
                                 ? NULL
                                 : realloc(found, (size_t)capacity * 3 * sizeof *grown);
            if (!grown)
                s = ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for %lld boxes", (long long)capacity);
            else
                found = grown;
        }
        if (s != ORTC_OK) goto cleanup;
        for (int64_t k = 0; k < some; k++, count++) {
            found[3 * count] = i / classes;
            found[3 * count + 1] = i % classes;
            found[3 * count + 2] = taken[k];
        }
    }
    s = ortc_call_resize(c, 0, 2, (const int64_t[2]){count, 3});
    if (s == ORTC_OK && count) memcpy(c->out[0].data, found, (size_t)count * 3 * sizeof *found);
cleanup:
    free(found);
    return s;
}

const ortc_kernel ortc_ref_nms = {.size = ORTC_SIZED(ortc_kernel),
                                  .flags = ORTC_KERNEL_LATE_OUT,
                                  .name = "non_max_suppression.ref",
                                  .prepare = ortc_nms_prepare,
                                  .plan = nms_plan,
                                  .run = nms_run};
