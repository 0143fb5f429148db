/* kernels/select/cpu_nms.c: NonMaxSuppression on the cpu provider: a task is a class of an image. What
 * overlaps what is said by ref_nms.c's arithmetic. Scores become integers of the same order with the box's
 * number below them, on a heap from which the best is taken for as long as boxes are wanted; those already
 * taken lie by coordinate, and a new one is compared with a block of them at a time.
 */
#include <math.h>
#include <stdlib.h>

#include "kernels/select/select.h"

enum { BLOCK = 16 };

typedef struct list {
    int64_t count, *boxes; /* boxes: malloc'd, NULL for none */
} list;

typedef struct nms_job {
    const float *boxes, *scores;
    int64_t n, classes, most;
    float overlap;
    double least;       /* scores above it count */
    bool centered, all; /* all: there is no such limit */
    list *taken;
    _Atomic bool no_memory;
} nms_job;

/* Places in scratch, n of each: the heap, then what was taken: four coordinates, areas, numbers. */
typedef struct space {
    uint64_t *heap;
    double *low[2], *high[2], *area;
    int64_t *number;
} space;

/* Larger is better: by the score, NaN last, then by the lower number. */
static uint64_t ranked(float score, int64_t i)
{
    uint32_t bits;
    memcpy(&bits, &score, sizeof bits);
    bits = score == 0 ? 0 : bits;
    const uint32_t key = score != score ? 0 : bits & 0x80000000 ? ~bits : bits | 0x80000000;
    return (uint64_t)key << 32 | (uint32_t) ~(uint32_t)i;
}

static void sift(uint64_t *heap, int64_t n, int64_t root, uint64_t moved)
{
    for (int64_t child; (child = 2 * root + 1) < n; root = child) {
        if (child + 1 < n && heap[child + 1] > heap[child]) child++;
        if (heap[child] <= moved) break;
        heap[root] = heap[child];
    }
    heap[root] = moved;
}

/* The box as taken number k: two corners in any order, or centre and size. */
static void place(const nms_job *j, const float *box, const space *s, int64_t k)
{
    for (int i = 0; i < 2; i++) {
        const double a = (double)box[i], b = (double)box[i + 2];
        const double from = j->centered ? a - b / 2 : a, to = j->centered ? a + b / 2 : b;
        s->low[i][k] = j->centered || from < to ? from : to;
        s->high[i][k] = j->centered || from < to ? to : from;
    }
    s->area[k] = (s->high[0][k] - s->low[0][k]) * (s->high[1][k] - s->low[1][k]);
}

/* Whether box k overlaps one of those before it by more than the limit. */
static bool suppressed(const nms_job *j, const space *s, int64_t k)
{
    for (int64_t first = 0; first < k; first += BLOCK) {
        const int64_t end = k - first < BLOCK ? k : first + BLOCK;
        int any = 0;
        for (int64_t i = first; i < end; i++) {
            const double h0 = s->high[0][i] < s->high[0][k] ? s->high[0][i] : s->high[0][k];
            const double h1 = s->high[1][i] < s->high[1][k] ? s->high[1][i] : s->high[1][k];
            const double l0 = s->low[0][i] > s->low[0][k] ? s->low[0][i] : s->low[0][k];
            const double l1 = s->low[1][i] > s->low[1][k] ? s->low[1][i] : s->low[1][k];
            const double common = (h0 - l0) * (h1 - l1), both = s->area[i] + s->area[k] - common;
            any |= (h0 - l0 > 0) & (h1 - l1 > 0) & (s->area[i] > 0) & (s->area[k] > 0) & (both > 0) &
                   ((float)(common / both) > j->overlap);
        }
        if (any) return true;
    }
    return false;
}

static void class_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    nms_job *j = arg;
    const int64_t n = j->n;
    space s = {.heap = scratch};
    double *at = (double *)(void *)(s.heap + n);
    s.low[0] = at, s.low[1] = at + n, s.high[0] = at + 2 * n, s.high[1] = at + 3 * n, s.area = at + 4 * n;
    s.number = (int64_t *)(void *)(at + 5 * n);
    for (int64_t task = begin; task < end; task++) {
        const float *scores = j->scores + task * n, *boxes = j->boxes + task / j->classes * n * 4;
        int64_t left = 0, count = 0;
        for (int64_t i = 0; i < n; i++)
            if (j->all || (double)scores[i] > j->least) s.heap[left++] = ranked(scores[i], i);
        for (int64_t i = left / 2; i-- > 0;) sift(s.heap, left, i, s.heap[i]);
        while (left > 0 && count < j->most) {
            const int64_t best = (uint32_t) ~(uint32_t)s.heap[0];
            left--;
            sift(s.heap, left, 0, s.heap[left]);
            place(j, boxes + 4 * best, &s, count);
            s.number[count] = best;
            count += !suppressed(j, &s, count);
        }
        if (count == 0) continue;
        j->taken[task] = (list){count, malloc((size_t)count * sizeof(int64_t))};
        if (j->taken[task].boxes)
            memcpy(j->taken[task].boxes, s.number, (size_t)count * sizeof(int64_t));
        else
            j->no_memory = true;
    }
}

static ortc_status nms_plan(const void *state, ortc_plan *p, void **pstate)
{
    const int64_t n = p->in[0].dims[1], tasks = p->in[0].dims[0] * p->in[1].dims[1];
    (void)state, (void)pstate;
    if (n > INT32_MAX) return ortc_plan_fail(p, ORTC_LIMIT, "%lld boxes", (long long)n);
    if (n > 0 && tasks > 0) ortc_plan_workspace(p, (size_t)tasks * sizeof(list), (size_t)n * 7 * 8);
    return ORTC_OK;
}

static const ortc_view *number(const ortc_call *c, uint32_t in)
{
    return c->n_in > in && c->in[in].dtype && ortc_view_count(&c->in[in]) > 0 ? &c->in[in] : NULL;
}

static ortc_status nms_run(const void *state, const void *pstate, ortc_call *c)
{
    nms_job j = {.boxes = c->in[0].data,
                 .scores = c->in[1].data,
                 .n = c->in[0].dims[1],
                 .classes = c->in[1].dims[1],
                 .centered = *(const bool *)state,
                 .taken = c->workspace};
    const ortc_view *most = number(c, 2), *overlap = number(c, 3), *least = number(c, 4);
    const double limit = most ? ortc_load_f64(most->data, most->dtype, 0) : 0;
    int64_t tasks = j.n > 0 && limit > 0 ? c->in[0].dims[0] * j.classes : 0, found = 0;
    (void)pstate;
    if (c->n_in > 4 && c->in[4].dtype && ortc_view_count(&c->in[4]) != 1)
        return ortc_call_fail(c, ORTC_SHAPE_MISMATCH, "score_threshold must have one element");
    j.most = limit < (double)j.n ? (int64_t)limit : j.n;
    j.overlap = overlap ? (float)ortc_load_f64(overlap->data, overlap->dtype, 0) : 0;
    j.all = !least;
    j.least = least ? ortc_load_f64(least->data, ORTC_F32, 0) : 0;
    if (tasks) memset(j.taken, 0, (size_t)tasks * sizeof *j.taken);
    ortc_status s = ortc_parallel(c, tasks, 4096 / (j.n + 1) + 1, class_chunk, &j);
    if (s == ORTC_OK && j.no_memory) s = ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for boxes");
    for (int64_t i = 0; i < tasks; i++) found += j.taken[i].count;
    if (s == ORTC_OK) s = ortc_call_resize(c, 0, 2, (const int64_t[2]){found, 3});
    int64_t *y = s == ORTC_OK ? c->out[0].data : NULL;
    for (int64_t i = 0; i < tasks; i++) {
        for (int64_t k = 0; y && k < j.taken[i].count; k++, y += 3)
            y[0] = i / j.classes, y[1] = i % j.classes, y[2] = j.taken[i].boxes[k];
        free(j.taken[i].boxes);
    }
    return s;
}

const ortc_kernel ortc_cpu_nms = {.size = ORTC_SIZED(ortc_kernel),
                                  .flags = ORTC_KERNEL_LATE_OUT,
                                  .name = "non_max_suppression.cpu",
                                  .prepare = ortc_nms_prepare,
                                  .plan = nms_plan,
                                  .run = nms_run};
