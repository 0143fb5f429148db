/* graph/normalise/fold_constants.c: nodes whose inputs are all constants become constants.
 *
 * Limits: nothing random, stateful or with subgraphs; the result is at most as large as the inputs together
 * and 1 MiB, or a GROWTH_SHARE of the model's weights (biases of relative positions, gathered from a table; a
 * ConstantOfShape of 2^40 elements stays a node), and `evaluate` has a budget. What shape
 * functions already know (Shape of a static tensor, and the arithmetic behind it) is folded from the known
 * values, without computing. Weights of 8 bits stay quantised where the operand beside them is: providers
 * have products of integers. Other weights that are dequantised become numbers whatever they take, for
 * otherwise they would at each run, as does what goes on to other nodes over constants; but not those that
 * products take in few bits (raise_nbits.c).
 */
#include "graph/ir/infer.h"
#include "graph/ir/quantised.h"
#include "normalise.h"

static bool static_bytes(const ortc_edge *e, size_t *out)
{
    int64_t count;
    if (!e->type || e->type->kind != ORTC_KIND_TENSOR || e->rank < 0) return false;
    for (int32_t i = 0; i < e->rank; i++)
        if (!ortc_dim_is_number(e->dims[i])) return false;
    if (!ortc_count_elements(e->rank, e->dims, &count)) return false;
    if (e->type->dtype == ORTC_STRING)
        return ortc_mul_size((size_t)count, 32, out); /* a guess: strings have no size before they are made */
    return ortc_tensor_bytes(e->type->dtype, count, out);
}

/* A constant second operand of what is done on integers (integer_products.c, transposed_windows.c), whose
 * first is dequantised, too. */
static bool is_quantised_weight(const ortc_node *n)
{
    ortc_quantised q;
    if (n->n_out != 1 || !n->out[0] || !ortc_read_dequantised(n->out[0], &q)) return false;
    for (const ortc_use *u = n->out[0]->uses; u; u = u->next) {
        const bool on_integers = ortc_is_op(u->node, "Conv") || ortc_is_op(u->node, "MatMul") ||
                                 ortc_is_op(u->node, "Gemm");
        if (u->node && u->port == 1 && ortc_transposed_windows_takes(u->node)) return true;
        const ortc_edge *beside = on_integers && u->port == 1 ? u->node->in[0] : NULL;
        if (beside && ortc_read_dequantised(beside, &q)) return true;
    }
    return false;
}

/* Something of constants alone computes with it, and is folded next: weights that are standardised, and
 * quantised again. What only moves them is looked at as weights are. */
static bool goes_on(const ortc_edge *y)
{
    for (const ortc_use *u = y ? y->uses : NULL; u; u = u->next) {
        bool constant = u->node && !ortc_is_op(u->node, "Transpose") && !ortc_is_op(u->node, "Reshape");
        for (uint32_t i = 0; constant && i < u->node->n_in; i++)
            constant = !u->node->in[i] || u->node->in[i] == y || ortc_edge_is_const(u->node->in[i]);
        if (constant) return true;
    }
    return false;
}

/* Numbers that a product or convolution is done with, or, where `turned`, their transpose. */
static bool weighs(const ortc_edge *y, bool turned)
{
    for (const ortc_use *u = y ? y->uses : NULL; u; u = u->next)
        if (u->node && u->node->op &&
            (((u->node->op->flags & ORTC_OP_HEAVY) && u->port >= 1) ||
             (turned && ortc_is_op(u->node, "Transpose") && weighs(u->node->out[0], false))))
            return true;
    return false;
}

/* Dequantised weights that are not taken in few bits. */
static bool is_weight(const ortc_node *n)
{
    return n->n_out == 1 && ortc_is_op(n, "DequantizeLinear") &&
           (goes_on(n->out[0]) || (weighs(n->out[0], true) && !ortc_is_nbits_weight(n->out[0])));
}

#define GROWTH_SHARE 64

static bool foldable(const ortc_normalise *p, const ortc_node *n)
{
    if (!n->op || (n->op->flags & (ORTC_OP_RANDOM | ORTC_OP_CONTROL | ORTC_OP_STATE)) || n->epilogue)
        return false;
    size_t in = 0, out = 0, bytes;
    for (uint32_t i = 0; i < n->n_in; i++) {
        if (!n->in[i]) continue;
        if (!ortc_edge_is_const(n->in[i]) || !ortc_add_size(in, n->in[i]->constant->bytes, &in)) return false;
    }
    for (uint32_t i = 0; i < n->n_out; i++)
        if (n->out[i] && (!static_bytes(n->out[i], &bytes) || !ortc_add_size(out, bytes, &out))) return false;
    const uint64_t share = ortc_is_op(n, "DequantizeLinear") ? 0 : p->weight_bytes / GROWTH_SHARE,
                   growth = share > ORTC_FOLDED_GROWTH ? share : ORTC_FOLDED_GROWTH;
    return n->n_out && (out <= in || out - in <= growth || is_weight(n)) && !is_quantised_weight(n);
}

/* A constant made of the values that a shape function found; NULL when they are not all numbers. */
static ortc_status from_values(const ortc_edge *e, ortc_constant **out, ortc_error *error)
{
    ortc_fact f = {e->type, e->rank, e->dims, e->values, e->n_values}; /* a file may declare other extents */
    *out = NULL;
    size_t bytes;
    if (!ortc_fact_values_known(&f) || !ortc_fact_values_fit(&f) || !static_bytes(e, &bytes) ||
        (e->type->dtype != ORTC_I64 && e->type->dtype != ORTC_I32) || e->rank > 1)
        return ORTC_OK;
    int64_t *data = malloc((size_t)e->n_values * sizeof *data + 1);
    if (!data) return ortc_no_memory(error, bytes);
    for (int64_t i = 0; i < e->n_values; i++)
        if (e->type->dtype == ORTC_I64)
            data[i] = e->values[i];
        else
            ((int32_t *)data)[i] = (int32_t)e->values[i];
    ortc_status s = ortc_constant_create(e->type->dtype, e->rank, e->dims, data, bytes, free, data, out,
                                         error);
    if (s != ORTC_OK) free(data);
    return s;
}

static void become_constant(ortc_node *n, uint32_t port, ortc_constant *c)
{
    ortc_edge *e = n->out[port];
    ortc_node_set_out(n, port, NULL);
    e->producer = NULL;
    e->values = NULL;
    ortc_edge_set_constant(e, c);
}

static bool is_refused(const ortc_normalise *p, const ortc_node *n)
{
    return n->id < p->n_refused && p->refused[n->id];
}

static ortc_status refuse(ortc_normalise *p, const ortc_node *n)
{
    if (n->id >= p->n_refused) {
        const uint32_t count = p->graph->next_node;
        bool *grown = realloc(p->refused, count * sizeof *grown);
        if (!grown) return ortc_no_memory(p->error, count);
        memset(grown + p->n_refused, 0, (count - p->n_refused) * sizeof *grown);
        p->refused = grown;
        p->n_refused = count;
    }
    p->refused[n->id] = true;
    return ORTC_OK;
}

static ortc_status fold_node(ortc_normalise *p, ortc_node *n)
{
    if (n->n_out == 1 && n->out[0] && n->out[0]->values && !(n->op && (n->op->flags & ORTC_OP_RANDOM))) {
        ortc_constant *c;
        ORTC_TRY(from_values(n->out[0], &c, p->error));
        if (c) {
            become_constant(n, 0, c);
            ortc_node_remove(n);
            p->edits++;
            return ORTC_OK;
        }
    }
    if (!p->evaluate || is_refused(p, n) || !foldable(p, n)) return ORTC_OK;
    ortc_constant **results = calloc(n->n_out, sizeof *results);
    if (!results) return ortc_no_memory(p->error, n->n_out * sizeof *results);
    ortc_error why = ORTC_ERROR_INIT;
    ortc_status s = p->evaluate(p->evaluate_arg, n, results, &why);
    if (s == ORTC_OK) {
        for (uint32_t i = 0; i < n->n_out; i++)
            if (n->out[i]) become_constant(n, i, results[i]);
        ortc_node_remove(n);
        p->edits++;
    } else if (s == ORTC_OUT_OF_MEMORY || s == ORTC_CANCELLED || s == ORTC_DEADLINE)
        ortc_fail(p->error, s, "folding node '%s' (%s): %s", n->name, n->type, why.text);
    else {
        p->unfolded += s == ORTC_LIMIT;
        s = refuse(p, n); /* it stays a node, and says the same when it is run */
    }
    free(results);
    return s;
}

ortc_status ortc_pass_fold_constants(ortc_normalise *p)
{
    for (ortc_node *n = p->graph->first, *next; n; n = next) {
        next = n->next;
        ORTC_TRY(fold_node(p, n));
    }
    return ORTC_OK;
}
