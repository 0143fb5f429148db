/* graph/specialise/fuse_epilogue.c: what follows Conv, Gemm or MatMul and works element by element goes into
 * it: a bias, a residual, an activation, as far as its kernel agrees (ortc_epilogue in op.h).
 *
 *   MatMul + Add(vector of the last axis)            bias
 *   Conv/Gemm/MatMul + Add(tensor of its own shape)  residual
 *   ... + Relu, Clip(constants), LeakyRelu, Sigmoid, Tanh, Gelu, Swish, HardSwish
 *
 * Order matters: activation(op + bias + residual). Nothing is added after an activation.
 */
#include "specialise.h"

static bool is(const ortc_node *n, const char *type) { return !*n->domain && !strcmp(n->type, type); }

static bool same_shape(const ortc_edge *a, const ortc_edge *b)
{
    if (!a->type || !b->type || !ortc_type_equal(a->type, b->type) || a->rank < 0 || a->rank != b->rank)
        return false;
    for (int32_t i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i]) return false;
    return true;
}

/* A constant scalar float input; false when it is something else. Left out: the given value. */
static bool scalar(const ortc_node *n, uint32_t port, float otherwise, float *out)
{
    const ortc_edge *e = ortc_node_in_edge(n, port);
    *out = otherwise;
    if (!e) return true;
    if (!ortc_edge_is_const(e) || e->constant->dtype != ORTC_F32 || e->constant->count != 1) return false;
    memcpy(out, e->constant->data, sizeof *out);
    return true;
}

static bool activation(const ortc_node *n, ortc_epilogue *e)
{
    if (is(n, "Relu"))
        e->activation = ORTC_ACT_RELU;
    else if (is(n, "Sigmoid"))
        e->activation = ORTC_ACT_SIGMOID;
    else if (is(n, "Tanh"))
        e->activation = ORTC_ACT_TANH;
    else if (is(n, "HardSwish"))
        e->activation = ORTC_ACT_HARD_SWISH;
    else if (is(n, "Swish") && ortc_node_float(n, "alpha", 1) == 1)
        e->activation = ORTC_ACT_SILU;
    else if (is(n, "Gelu"))
        e->activation = strcmp(ortc_node_string(n, "approximate", "none"), "tanh") ? ORTC_ACT_GELU
                                                                                   : ORTC_ACT_GELU_TANH;
    else if (is(n, "LeakyRelu")) {
        e->activation = ORTC_ACT_LEAKY_RELU;
        e->alpha = ortc_node_float(n, "alpha", 0.01f);
    } else if (is(n, "Clip")) {
        if (!scalar(n, 1, -3.40282347e38f, &e->alpha) || !scalar(n, 2, 3.40282347e38f, &e->beta))
            return false;
        e->activation = ORTC_ACT_CLIP;
    } else
        return false;
    return true;
}

/* The other summand of an Add that reads `of` once; NULL: not such a node. */
static ortc_edge *summand(const ortc_node *n, const ortc_edge *of)
{
    if (!is(n, "Add") || n->n_in != 2 || n->in[0] == n->in[1]) return NULL;
    return n->in[0] == of ? n->in[1] : n->in[0];
}

static bool is_bias(const ortc_node *n, const ortc_edge *e)
{
    const ortc_edge *y = n->out[0];
    return is(n, "MatMul") && ortc_edge_is_const(e) && e->rank == 1 && y->rank >= 1 &&
           e->dims[0] == y->dims[y->rank - 1] && e->type && y->type && ortc_type_equal(e->type, y->type);
}

/* The first port behind the operator's own, where an epilogue's inputs go. */
static uint32_t extra_port(const ortc_node *n)
{
    uint32_t own = ortc_op_schema(n->op)->n_in;
    return n->n_in > own ? n->n_in : own;
}

/* The follower's part of the epilogue; false: it does not fit. */
static bool propose(const ortc_node *n, const ortc_node *follower, ortc_epilogue *e)
{
    ortc_edge *y = n->out[0];
    if (e->activation != ORTC_ACT_NONE) return false;
    ortc_edge *other = summand(follower, y);
    if (!other) return activation(follower, e);
    if (e->bias < 0 && e->residual < 0 && is_bias(n, other))
        e->bias = (int32_t)extra_port(n);
    else if (e->residual < 0 && same_shape(other, y) && !ortc_edge_is_const(other))
        e->residual = (int32_t)extra_port(n);
    else
        return false;
    return true;
}

static ortc_status fuse(ortc_specialise *p, ortc_node *n, ortc_node *follower, bool *fused)
{
    ortc_graph *g = p->graph;
    ortc_epilogue e = n->epilogue ? *n->epilogue : (ortc_epilogue){sizeof e, ORTC_ACT_NONE, -1, -1, 0, 0};
    *fused = false;
    /* All of the follower's other inputs become inputs of the node, for the body needs them. Clip's bounds
     * are parameters for the kernel, which ignores those ports. */
    if (!propose(n, follower, &e)) return ORTC_OK;
    ortc_node proposal = *n;
    uint32_t n_in = extra_port(n);
    proposal.in = ortc_arena_array(&g->arena, n_in + follower->n_in, sizeof *proposal.in);
    ortc_epilogue *kept = ortc_arena_copy(&g->arena, &e, sizeof e);
    if (!proposal.in || !kept) return ortc_no_memory(p->error, 0);
    if (n->n_in) memcpy(proposal.in, n->in, n->n_in * sizeof *proposal.in);
    for (uint32_t i = 0; i < follower->n_in; i++)
        if (follower->in[i] && follower->in[i] != n->out[0]) proposal.in[n_in++] = follower->in[i];
    proposal.n_in = n_in;
    proposal.epilogue = kept;
    if (!p->accept(p->arg, &proposal, NULL, n)) return ORTC_OK;
    ortc_graph *body = ortc_body_append(n, follower, proposal.in, n_in);
    if (!body) return ortc_no_memory(p->error, 0);
    for (uint32_t i = n->n_in; i < n_in; i++)
        if (!ortc_node_set_in(n, i, proposal.in[i])) return ortc_no_memory(p->error, 0);
    if (!p->accept(p->arg, &proposal, n, n)) return ortc_no_memory(p->error, 0);
    n->epilogue = kept;
    n->body = body;
    n->fused = ortc_arena_printf(&g->arena, "%s%s%s", n->fused ? n->fused : "", n->fused ? " " : "",
                                 follower->type);
    ortc_node_move_before(n, follower); /* a residual may be made between the two */
    ortc_edge *y = follower->out[0], *old = n->out[0];
    ortc_node_remove(follower);
    if (!ortc_node_set_out(n, 0, y)) return ortc_no_memory(p->error, 0);
    old->producer = NULL;
    p->edits++;
    *fused = true;
    return ORTC_OK;
}

ortc_status ortc_pass_fuse_epilogue(ortc_specialise *p)
{
    for (ortc_node *n = p->graph->first, *next; n; n = next) {
        next = n->next;
        if (!is(n, "Conv") && !is(n, "Gemm") && !is(n, "MatMul")) continue;
        for (bool fused = true; fused;) {
            ortc_edge *y = n->out[0];
            fused = false;
            if (!y || !y->uses || y->uses->next || !y->uses->node)
                break; /* several readers, or the graph's output: the value itself is needed */
            ortc_node *follower = y->uses->node;
            if (follower->n_captures || !follower->out[0] ||
                (follower->body && !ortc_node_is_raised(follower)))
                break; /* whichever device the follower was on: it comes to where n is */
            ortc_node *after = follower == next ? next->next : next;
            ORTC_TRY(fuse(p, n, follower, &fused));
            if (fused) next = after;
        }
    }
    return ORTC_OK;
}
