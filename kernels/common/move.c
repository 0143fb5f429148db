/* kernels/common/move.c: elements of the output in order, taken from the input by strides (move.h). */
#include "kernels/common/move.h"

typedef struct move_job {
    const ortc_view *x;
    ortc_view *y;
    ortc_walk walk;
} move_job;

static void move_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const move_job *j = arg;
    const uint32_t bits = ortc_dtype_bits(j->y->dtype);
    ortc_walk w = j->walk;
    ortc_walk_seek(&w, begin);
    for (int64_t i = begin; i < end; i++, ortc_walk_next(&w))
        ortc_move_element(j->y->data, i, j->x->data, w.at[0], bits);
}

ortc_status ortc_move_strided(ortc_call *c, int32_t rank, const int64_t *dims, const int64_t *strides,
                              int64_t start)
{
    move_job j = {.x = &c->in[0], .y = &c->out[0]};
    const int64_t count = ortc_view_count(j.y);
    if (count == 0) return ORTC_OK;
    ortc_walk_init(&j.walk, rank, dims);
    ortc_walk_strided(&j.walk, strides, start);
    ortc_walk_merge(&j.walk);
    ortc_clear_tail(j.y, count);
    return ortc_parallel(c, count, ortc_grain(6), move_chunk, &j);
}
