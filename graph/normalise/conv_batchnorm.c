/* graph/normalise/conv_batchnorm.c: Conv or ConvTranspose + BatchNormalization with constant weights and
 * statistics becomes one of them.
 *
 *   y = (conv(x, W) + b - mean) * f + shift,  f = scale / sqrt(var + epsilon)      per output channel
 *     = conv(x, W * f) + (b - mean) * f + shift
 *
 * Source: Jacob et al., "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only
 * Inference", section 3.2. Factors are computed in double and rounded once. Where weights of half precision
 * would leave its range, the BatchNormalization stays.
 */
#include "weights.h"

/* W as [groups][rows][each][run], where row r has `run` elements of each of a group's channels: of Conv
 * [1][1][channels], of ConvTranspose [groups][inputs of one][channels of one]. */
typedef struct filters {
    int64_t groups, rows, each, run;
    int64_t channels; /* of the result */
} filters;

static bool read_filters(const ortc_node *conv, const ortc_constant *w, filters *out)
{
    *out = (filters){1, 1, w->dims[0], 0, w->dims[0]};
    if (!strcmp(conv->type, "ConvTranspose")) {
        out->groups = ortc_node_int(conv, "group", 1), out->each = w->dims[1];
        if (out->groups < 1 || w->dims[0] % out->groups ||
            __builtin_mul_overflow(out->each, out->groups, &out->channels))
            return false;
        out->rows = w->dims[0] / out->groups;
    }
    if (out->channels <= 0 || w->count <= 0) return false;
    out->run = w->count / (out->groups * out->rows * out->each);
    return true;
}

/* Statements about run `i` of W, which is of channel `c` of the result. */
#define EACH_RUN(f, i, c, ...) \
    for (int64_t at_ = 0, i = 0; at_ < (f)->groups * (f)->rows; at_++) \
        for (int64_t c = at_ / (f)->rows * (f)->each, end_ = c + (f)->each; c < end_; c++, i++) __VA_ARGS__

/* Whether all filters keep their precision: `to` is W times by[]. */
static bool all_keep(const filters *f, ortc_dtype t, const void *to, const void *bias, const double *by)
{
    double *largest = calloc((size_t)f->channels, sizeof *largest);
    bool keep = largest;
    if (keep)
        EACH_RUN(f, i, c, {
            const double v = ortc_weights_largest(t, to, i * f->run, f->run);
            largest[c] = v > largest[c] || isnan(v) ? v : largest[c];
        })
    for (int64_t c = 0; keep && c < f->channels; c++)
        keep = (ortc_weights_keep(t, largest[c]) || (fabs(by[c]) >= 1 && largest[c] < 65504)) &&
               fabs(ortc_weights_read(t, bias, c)) < 65504;
    free(largest);
    return keep;
}

static ortc_status fuse(ortc_normalise *p, ortc_node *conv, ortc_node *bn)
{
    const ortc_edge *we = ortc_node_in_edge(conv, 1), *be = ortc_node_in_edge(conv, 2);
    if (!we || !ortc_edge_is_const(we) || (be && !ortc_edge_is_const(be))) return ORTC_OK;
    const ortc_constant *w = we->constant, *b = be ? be->constant : NULL;
    ortc_dtype t = w->dtype;
    filters f;
    ortc_batchnorm norm;
    if (!ortc_weights_are(w) || w->rank < 3 || !read_filters(conv, w, &f)) return ORTC_OK;
    const int64_t channels = f.channels;
    if (!ortc_weights_batchnorm(bn, t, channels, &norm) || (b && (b->dtype != t || b->count != channels)))
        return ORTC_OK;
    size_t element = ortc_dtype_bits(t) / 8;
    void *weights = ortc_data_alloc(w->bytes), *bias = ortc_data_alloc((size_t)channels * element);
    double *by = malloc((size_t)channels * sizeof *by);
    if (!weights || !bias || !by) {
        ortc_data_free(weights);
        ortc_data_free(bias);
        free(by);
        return ortc_no_memory(p->error, w->bytes);
    }
    for (int64_t c = 0; c < channels; c++) {
        by[c] = ortc_batchnorm_by(&norm, c);
        ortc_weights_write(t, bias, c, ortc_batchnorm_of(&norm, c, b ? ortc_weights_read(t, b->data, c) : 0));
    }
    EACH_RUN(&f, i, c, ortc_weights_scale(t, w->data, weights, i * f.run, f.run, by[c]);)
    const bool good = t != ORTC_F16 || all_keep(&f, t, weights, bias, by);
    free(by);
    if (!good) {
        ortc_data_free(weights);
        ortc_data_free(bias);
        return ORTC_OK;
    }
    ortc_edge *new_w = ortc_graph_constant_take(p->graph, t, w->rank, w->dims, weights, w->bytes, p->error);
    ortc_edge *new_b = ortc_graph_constant_take(p->graph, t, 1, &channels, bias, (size_t)channels * element,
                                                p->error);
    if (!new_w || !new_b || !ortc_node_set_in(conv, 1, new_w) || !ortc_node_set_in(conv, 2, new_b))
        return ortc_no_memory(p->error, w->bytes);
    ortc_weights_note(p, conv, bn->type);
    ortc_edge *y = bn->out[0], *old = conv->out[0];
    ortc_node_remove(bn);
    if (!ortc_node_set_out(conv, 0, y)) /* the result keeps the name that the file gave it */
        return ortc_no_memory(p->error, 0);
    old->producer = NULL;
    p->edits++;
    return ORTC_OK;
}

ortc_status ortc_pass_conv_batchnorm(ortc_normalise *p)
{
    for (ortc_node *bn = p->graph->first, *next; bn; bn = next) {
        next = bn->next;
        if (!ortc_match_is(bn, "BatchNormalization") || !bn->out[0]) continue;
        ortc_edge *x = ortc_node_in_edge(bn, 0);
        ortc_node *conv = x ? x->producer : NULL;
        if (!conv || *conv->domain || (strcmp(conv->type, "Conv") && strcmp(conv->type, "ConvTranspose")) ||
            ortc_edge_n_uses(x) != 1 || !x->uses->node)
            continue;
        ORTC_TRY(fuse(p, conv, bn));
    }
    return ORTC_OK;
}
