/* graph/onnx/import_order.c: the order of a graph's nodes.
 *
 * The standard wants nodes in an order of execution. Files that are not are sorted: depth first along the
 * inputs, so that nodes stay near where they stood. Names that subgraphs use count as inputs of their node,
 * whether or not the subgraph defines them itself: the standard forbids shadowing. A cycle is an error that
 * names a node in it.
 */
#include "import.h"

typedef struct sorter {
    ortc_importer *in;
    Onnx__NodeProto *const *nodes;
    ortc_map producer;          /* name -> index + 1 */
    ORTC_ARRAY(uint32_t) needs; /* producers of the node at hand */
    bool sorted;
} sorter;

/* Adds the producer of a name, if it is one of these nodes. */
static bool need(sorter *s, const char *name, uint32_t self, bool nested)
{
    size_t p = (size_t)(uintptr_t)ortc_map_get(&s->producer, name);
    /* Subgraphs may use the name of their node's output for a value of their own: the outer one is not there
     * yet. */
    if (p == 0 || (nested && p - 1 == self)) return true;
    return ortc_array_push(&s->needs, (uint32_t)(p - 1));
}

/* Adds the producers of every name that a node reads. The wire walk limits the depth. */
static bool collect(sorter *s, const Onnx__NodeProto *node, uint32_t self, bool nested)
{
    for (size_t i = 0; i < node->n_input; i++)
        if (!need(s, node->input[i], self, nested)) return false;
    for (size_t i = 0; i < node->n_attribute; i++) {
        const Onnx__AttributeProto *a = node->attribute[i];
        for (size_t g = 0; g < a->n_graphs + (a->g != NULL); g++) {
            const Onnx__GraphProto *graph = g < a->n_graphs ? a->graphs[g] : a->g;
            for (size_t k = 0; k < graph->n_node; k++)
                if (!collect(s, graph->node[k], self, true)) return false;
            for (size_t k = 0; k < graph->n_output; k++)
                if (!need(s, ortc_proto_text(graph->output[k]->name), self, true)) return false;
        }
    }
    return true;
}

/* Whether the nodes stand in order already. */
static ortc_status check(sorter *s, size_t n)
{
    s->sorted = true;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < s->nodes[i]->n_output; k++)
            if (*s->nodes[i]->output[k] &&
                !ortc_map_set(&s->producer, s->nodes[i]->output[k], (void *)(uintptr_t)(i + 1)))
                return ortc_no_memory(s->in->error, n);
    for (size_t i = 0; i < n && s->sorted; i++) {
        s->needs.count = 0;
        if (!collect(s, s->nodes[i], (uint32_t)i, false)) return ortc_no_memory(s->in->error, n);
        for (size_t k = 0; k < s->needs.count; k++)
            if (s->needs.data[k] >= i) s->sorted = false;
    }
    return ORTC_OK;
}

typedef struct visit {
    uint32_t node;
    size_t first, next; /* of its producers, in `needs` */
} visit;

/* Depth first without recursion: `needs` is a stack of the producers of all nodes on the way. */
static ortc_status sort(sorter *s, size_t n, uint32_t *order)
{
    enum { UNSEEN, OPEN, DONE };
    ORTC_ARRAY(visit) stack = {0};
    uint8_t *state = ortc_arena_alloc(&s->in->arena, n);
    size_t count = 0;
    ortc_status status = state ? ORTC_OK : ortc_no_memory(s->in->error, n);

    s->needs.count = 0;
    for (size_t i = 0; i < n && status == ORTC_OK; i++) {
        if (state[i] != UNSEEN) continue;
        uint32_t next = (uint32_t)i;
        for (bool enter = true; status == ORTC_OK; enter = false) {
            if (enter || state[next] == UNSEEN) {
                size_t first = s->needs.count;
                state[next] = OPEN;
                if (!collect(s, s->nodes[next], next, false) ||
                    !ortc_array_push(&stack, (visit){next, first, first}))
                    status = ortc_no_memory(s->in->error, n);
            } else if (state[next] == OPEN) {
                status = ortc_fail(s->in->error, ORTC_INVALID_MODEL,
                                   "it depends on its own output: the graph has a cycle");
                ortc_import_prefix(s->in->error, s->nodes[next]);
            }
            /* Close what has no producers left, then go to the next one. */
            while (status == ORTC_OK && stack.count > 0) {
                visit *top = &stack.data[stack.count - 1];
                if (top->next < s->needs.count) {
                    next = s->needs.data[top->next++];
                    break;
                }
                state[top->node] = DONE;
                order[count++] = top->node;
                s->needs.count = top->first;
                stack.count--;
            }
            if (stack.count == 0) break;
        }
    }
    ortc_array_deinit(&stack);
    return status;
}

ortc_status ortc_import_order(ortc_importer *in, Onnx__NodeProto *const *nodes, size_t n, uint32_t **out)
{
    sorter s = {.in = in, .nodes = nodes};
    ortc_status status = check(&s, n);

    *out = NULL;
    if (status == ORTC_OK && !s.sorted) {
        uint32_t *order = ortc_arena_array(&in->arena, n, sizeof *order);
        status = order ? sort(&s, n, order) : ortc_no_memory(in->error, n * sizeof *order);
        *out = order;
    }
    ortc_map_deinit(&s.producer);
    ortc_array_deinit(&s.needs);
    return status;
}
