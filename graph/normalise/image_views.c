/* graph/normalise/image_views.c: between images [N, C, H, W] and their pixels as rows [N, H * W, C], as
 * transformers with convolutions have it, what is transposed is the image:
 *
 *   Conv(Reshape(Transpose(x, [0, 2, 1]), [N, C, H, W]))
 *     = Conv(Transpose(Reshape(x, [N, H, W, C]), [0, 3, 1, 2]))
 *   Transpose(Reshape(Conv(x), [N, C, H * W]), [0, 2, 1])
 *     = Reshape(Transpose(Conv(x), [0, 2, 3, 1]), [N, H * W, C])
 *
 * so that a kernel may write and read the convolution's own layout. And what follows a convolution behind
 * such views, element by element, goes before them, into its epilogue:
 *
 *   Gelu(Reshape(Transpose(Conv(x)))) = Reshape(Transpose(Gelu(Conv(x))))
 *
 * Conv stands for what slides windows, or is pointwise of one input behind that, or rounds to 8 bits and back
 * on either side. One to three spatial dims, numbers but for the batch; views that others read, too, stay.
 */
#include "match.h"

enum { MAX_IMAGE = 5 };

static bool slides(const ortc_node *n)
{
    return ortc_match_is(n, "Conv") || ortc_match_is(n, "ConvTranspose") || ortc_match_is(n, "AveragePool") ||
           (ortc_match_is(n, "MaxPool") && n->n_out == 1);
}

/* Element by element, of one input and of its type. */
static bool is_pointwise(const ortc_node *n)
{
    return n && n->op && n->op->expand && !n->epilogue && n->n_in == 1 && n->n_out == 1 && n->in[0] &&
           n->out[0] && n->in[0]->type && n->out[0]->type && ortc_type_equal(n->in[0]->type, n->out[0]->type);
}

/* To 8 bits, or back. */
static bool rounds(const ortc_node *n)
{
    return (ortc_match_is(n, "QuantizeLinear") || ortc_match_is(n, "DequantizeLinear")) && n->in[0] &&
           n->out[0];
}

static bool is_image(const ortc_edge *e)
{
    const ortc_node *n = e->producer;
    while (is_pointwise(n) || rounds(n)) n = n->in[0]->producer;
    return slides(n);
}

/* through: roundings that may be between, to 8 bits and back. */
static bool feeds_windows(const ortc_edge *e, int through)
{
    for (const ortc_use *u = e->uses; u; u = u->next)
        if (u->node && u->port == 0 &&
            (slides(u->node) ||
             (through > 0 && rounds(u->node) && feeds_windows(u->node->out[0], through - 1))))
            return true;
    return false;
}

/* Transpose of the last two of three dims. */
static bool swaps(const ortc_node *n)
{
    static const int64_t want[3] = {0, 2, 1};
    size_t count;
    const int64_t *perm = ortc_match_is(n, "Transpose") && n->in[0] && n->in[0]->rank == 3
                              ? ortc_node_ints(n, "perm", &count)
                              : NULL;
    return perm && count == 3 && !memcmp(perm, want, sizeof want);
}

static bool is_number(ortc_dim d) { return d > 0 && d <= INT32_MAX; }

/* Whether image is [N, C, ..] and rows are [N, C, all of the others]. */
static bool merges(const ortc_edge *image, const ortc_edge *rows)
{
    if (!image->type || !rows->type || image->rank < 3 || image->rank > MAX_IMAGE || rows->rank != 3)
        return false;
    if (!ortc_match_same(image->dims[0], rows->dims[0]) || image->dims[1] != rows->dims[1]) return false;
    for (int32_t i = 1; i < image->rank; i++)
        if (!is_number(image->dims[i])) return false;
    return is_number(rows->dims[2]);
}

/* n's result by way of dims: a view of x that is transposed, or the other way round. */
static ortc_status replace(ortc_normalise *p, ortc_node *n, bool views_first, const ortc_dim *dims,
                           int32_t rank, const int64_t *target, const int64_t *perm, ortc_edge *x)
{
    const ortc_dtype t = x->type->dtype;
    const int64_t n_target = views_first ? rank : 3;
    ortc_edge *shape = ortc_match_integers(p, target, n_target), *middle, *in[2] = {x, shape};
    const size_t n_perm = (size_t)(views_first ? rank : x->rank);
    ortc_node *last = ortc_node_create(p->graph, ortc_op_find("", views_first ? "Transpose" : "Reshape"),
                                       NULL, views_first ? 1 : 2, 1);
    if (!shape || !last) return ortc_no_memory(p->error, 0);
    middle = ortc_match_apply(p, n, views_first ? "Reshape" : "Transpose", views_first ? 2 : 1, in, t, rank,
                              dims);
    if (!middle || !ortc_match_set_ints(views_first ? last : middle->producer, "perm", n_perm, perm) ||
        !ortc_node_set_in(last, 0, middle) || (!views_first && !ortc_node_set_in(last, 1, shape)))
        return ortc_no_memory(p->error, 0);
    return ortc_match_take_place(p, n, last);
}

/* n: Reshape(Transpose(x)), which makes an image of rows. */
static ortc_status to_image(ortc_normalise *p, ortc_node *n)
{
    const ortc_node *swap = n->in[0] ? n->in[0]->producer : NULL;
    const ortc_edge *y = n->out[0];
    if (!swap || !swaps(swap) || !ortc_match_reader(n->in[0], 1) || !merges(y, n->in[0]) ||
        !feeds_windows(y, 2))
        return ORTC_OK;
    const int32_t rank = y->rank;
    ortc_dim dims[MAX_IMAGE];
    int64_t target[MAX_IMAGE] = {0}, perm[MAX_IMAGE] = {0, rank - 1};
    dims[0] = y->dims[0];
    for (int32_t i = 2; i < rank; i++) dims[i - 1] = target[i - 1] = y->dims[i], perm[i] = i - 1;
    dims[rank - 1] = target[rank - 1] = y->dims[1];
    return replace(p, n, true, dims, rank, target, perm, swap->in[0]);
}

/* n: Transpose(Reshape(x)), which makes rows of an image. */
static ortc_status to_rows(ortc_normalise *p, ortc_node *n)
{
    const ortc_node *view = swaps(n) ? ortc_match_made(n->in[0], "Reshape", 2) : NULL;
    if (!view || !ortc_match_reader(n->in[0], 1) || !merges(view->in[0], n->in[0]) || !is_image(view->in[0]))
        return ORTC_OK;
    const ortc_edge *x = view->in[0];
    const int32_t rank = x->rank;
    ortc_dim dims[MAX_IMAGE];
    int64_t perm[MAX_IMAGE] = {0};
    const int64_t target[3] = {0, n->in[0]->dims[2], x->dims[1]};
    dims[0] = x->dims[0];
    for (int32_t i = 2; i < rank; i++) dims[i - 1] = x->dims[i], perm[i - 1] = i;
    dims[rank - 1] = x->dims[1], perm[rank - 1] = 1;
    return replace(p, n, false, dims, rank, target, perm, view->in[0]);
}

static ortc_node *view_of(ortc_edge *e)
{
    ortc_node *n = ortc_match_reader(e, 1) ? e->producer : NULL;
    return ortc_match_is(n, "Transpose") || ortc_match_is(n, "Reshape") ? n : NULL;
}

/* n, element by element behind views of an image, goes before them. */
static ortc_status go_first(ortc_normalise *p, ortc_node *n)
{
    ortc_node *first = view_of(n->in[0]), *next;
    if (!first || !first->in[0]) return ORTC_OK;
    while ((next = view_of(first->in[0])) && next->in[0]) first = next;
    ortc_edge *x = first->in[0], *viewed = n->in[0], *y = n->out[0];
    ortc_node *last = viewed->producer;
    if (!is_image(x) || !ortc_match_reader(x, 1)) return ORTC_OK;
    ortc_edge *own = ortc_edge_create(p->graph, NULL);
    if (!own || !ortc_edge_set_shape(own, y->type, x->rank, x->dims)) return ortc_no_memory(p->error, 0);
    for (ortc_node *view = last; view != first; view = view->in[0]->producer)
        view->in[0]->origin = NULL; /* its value is another from now on */
    y->producer = NULL, n->out[0] = NULL;
    viewed->producer = NULL, last->out[0] = NULL;
    if (!ortc_node_set_in(n, 0, x) || !ortc_node_set_out(n, 0, own) || !ortc_node_set_in(first, 0, own) ||
        !ortc_node_set_out(last, 0, y)) /* the result keeps its name */
        return ortc_no_memory(p->error, 0);
    ortc_node_move_before(n, first);
    p->edits++;
    return ORTC_OK;
}

ortc_status ortc_pass_image_views(ortc_normalise *p)
{
    for (ortc_node *n = p->graph->first, *next; n; n = next) {
        next = n->next;
        if (n->n_out != 1 || !n->out[0]) continue;
        if (ortc_match_is(n, "Reshape") && n->n_in == 2)
            ORTC_TRY(to_image(p, n));
        else if (ortc_match_is(n, "Transpose"))
            ORTC_TRY(to_rows(p, n));
        else if (is_pointwise(n))
            ORTC_TRY(go_first(p, n));
    }
    return ORTC_OK;
}
