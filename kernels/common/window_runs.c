/* The runs of window_runs.h. */
#include "kernels/common/window_runs.h"

typedef struct walk {
    const ortc_window_extents *e;
    const char *x, *fill;
    ptrdiff_t pixel;
    ortc_window_tap *tap;
    ortc_window_run_fn *run;
    void *arg;
} walk;

/* n windows from o on, along `dim` (1: down a column, 2: along a row). */
static void emit(const walk *w, const int64_t *o, int dim, int64_t n)
{
    const ortc_window_extents *e = w->e;
    const ortc_window_tap padding = {w->fill, 0};
    const ptrdiff_t step = e->stride[dim] * (dim == 1 ? e->in[2] : 1) * w->pixel;
    ortc_window_tap *tap = w->tap;
    int64_t first[3];
    for (int i = 0; i < 3; i++) first[i] = o[i] * e->stride[i] - e->pad[i];
    for (int64_t d = 0, plane = first[0]; d < e->kernel[0]; d++, plane += e->dilation[0])
        for (int64_t r = 0, row = first[1]; r < e->kernel[1]; r++, row += e->dilation[1]) {
            const int inside = plane >= 0 && plane < e->in[0] && row >= 0 && row < e->in[1];
            const char *x = w->x + (plane * e->in[1] + row) * e->in[2] * w->pixel;
            for (int64_t c = 0, column = first[2]; c < e->kernel[2]; c++, column += e->dilation[2])
                *tap++ = inside && column >= 0 && column < e->in[2]
                             ? (ortc_window_tap){x + column * w->pixel, step}
                             : padding;
        }
    const ortc_window_run run = {{o[0], o[1], o[2]}, n, dim == 1 ? e->out[2] : 1, tap - w->tap, w->tap};
    w->run(w->arg, &run);
}

/* The windows of dim i that lie within the image: *first .. *end-1, perhaps none. */
static void whole(const ortc_window_extents *e, int i, int64_t *first, int64_t *end)
{
    const int64_t s = e->stride[i], room = e->in[i] + e->pad[i] - ((e->kernel[i] - 1) * e->dilation[i] + 1);
    *first = (e->pad[i] + s - 1) / s;
    *end = room < 0 ? 0 : room / s + 1;
    if (*end > e->out[i]) *end = e->out[i];
    if (*first > *end) *first = *end;
}

void ortc_window_runs(const ortc_window_extents *e, const char *x, ptrdiff_t pixel, const char *fill,
                      int64_t plane, int64_t row0, int64_t row1, ortc_window_tap *tap,
                      ortc_window_run_fn *run, void *arg)
{
    const walk w = {e, x, fill, pixel, tap, run, arg};
    int64_t rows[2], columns[2];
    whole(e, 1, &rows[0], &rows[1]);
    whole(e, 2, &columns[0], &columns[1]);
    for (int i = 0; i < 2; i++) /* those of the caller's */
        rows[i] = rows[i] < row0 ? row0 : rows[i] > row1 ? row1 : rows[i];
    for (int64_t r = row0; r < row1; r++) {
        const int64_t o[3] = {plane, r, columns[0]};
        if (columns[0] < columns[1]) emit(&w, o, 2, columns[1] - columns[0]);
    }
    for (int64_t c = 0; c < e->out[2]; c++) {
        if (c == columns[0] && columns[0] < columns[1]) c = columns[1];
        if (c == e->out[2]) break;
        for (int64_t r = row0; r < row1; r++) {
            const int64_t o[3] = {plane, r, c}, n = r == rows[0] && rows[0] < rows[1] ? rows[1] - rows[0] : 1;
            emit(&w, o, 1, n);
            r += n - 1;
        }
    }
}
