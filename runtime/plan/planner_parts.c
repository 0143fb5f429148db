/* runtime/plan/planner_parts.c: values that are made where another one wants them (planner.h).
 *
 * A kernel that puts values side by side, as Concat does, says where in its output each lies
 * (ortc_plan_part). Then that output's block begins with the first of them, whoever makes a value writes it
 * there, and it is not copied. An input that is a view of something larger, as results of Split are, brings
 * all of that: the kernel's inputs must then cover every byte of it, each at its place, for what else lay
 * there would lie over other inputs. Later offers come first, so that parts of an output that is itself a
 * part follow it.
 */
#include "planner.h"

typedef struct place {
    ortc_home *root;
    size_t offset;
} place;

/* The root of a home's memory, through outputs that have become parts since. */
static place find(const ortc_planner *p, ortc_home *h)
{
    place at = {h, 0};
    for (; at.root->root != ortc_planner_number(p, at.root); at.root = ortc_planner_root(p, at.root))
        at.offset += at.root->offset;
    return at;
}

static ortc_home *input_of(const ortc_planner *p, const ortc_part *o)
{
    return ortc_planner_at(p, p->graph->edges.data[o->in], o->form);
}
static ortc_home *output_of(const ortc_planner *p, const ortc_part *o)
{
    return ortc_planner_at(p, p->graph->edges.data[o->out], o->form);
}

/* The root of an input, and where in the output it would begin; false: before it, or the root is a part of
 * something already. */
static bool begins(const ortc_planner *p, const ortc_part *o, ortc_home **root, size_t *at)
{
    const ortc_home *h = input_of(p, o);
    *root = ortc_planner_root(p, h);
    *at = o->offset - h->offset;
    return (*root)->root == h->root && o->offset >= h->offset;
}

/* Bytes of a root that some of these offers, all of one step, want at one place. */
static size_t covered(ortc_planner *p, const ortc_part *offers, size_t n, const ortc_home *root, size_t at)
{
    size_t all = 0, bytes, begin;
    ortc_home *of;
    for (size_t i = 0; i < n; i++)
        if (begins(p, &offers[i], &of, &begin) && of == root && begin == at &&
            ortc_planner_bytes(p, p->graph->edges.data[offers[i].in], offers[i].form, &bytes) == ORTC_OK)
            all += bytes;
    return all;
}

/* The root of an input goes to `at` in the output, whose block is from now on the one that begins first. */
static void join(ortc_planner *p, const ortc_part *o, ortc_home *h, size_t at, bool *touched)
{
    ortc_block *blocks = ortc_planner_space(p, o->form)->blocks.data;
    ortc_home *whole = find(p, output_of(p, o)).root;
    ortc_block *part = &blocks[h->index], *all = &blocks[whole->index];
    const size_t bytes = all->bytes;
    const uint32_t first = h->index < whole->index ? h->index : whole->index;
    const uint32_t from = part->from < all->from ? part->from : all->from,
                   to = part->to > all->to ? part->to : all->to;
    touched[h->index] = touched[whole->index] = true;
    part->bytes = all->bytes = 0;
    whole->index = first;
    blocks[first] = (ortc_block){bytes, from, to, -1, 0};
    *h = (ortc_home){.root = ortc_planner_number(p, output_of(p, o)), .offset = at, .made = true};
}

/* The offers of one step. */
static void place_step(ortc_planner *p, const ortc_part *offers, size_t n, bool *touched)
{
    ortc_home *out = output_of(p, offers);
    const ortc_home *whole = find(p, out).root;
    size_t room, at;
    if (whole->lives != LIVES_BLOCK || !out->made ||
        ortc_planner_bytes(p, p->graph->edges.data[offers->out], offers->form, &room) != ORTC_OK)
        return;
    for (size_t i = 0; i < n; i++) {
        const ortc_part *o = &offers[i];
        ortc_home *root;
        if (!begins(p, o, &root, &at)) {
            const place there = find(p, input_of(p, o)), wanted = find(p, out);
            p->steps.data[o->step].in[o->port].part = there.root == wanted.root &&
                                                      there.offset == wanted.offset + o->offset;
            continue;
        }
        if (root->lives != LIVES_BLOCK || root == out ||
            ortc_planner_is_output(p, ortc_planner_owner(p, ortc_planner_number(p, root))) || at > room ||
            root->bytes > room - at || covered(p, offers, n, root, at) != root->bytes)
            continue;
        join(p, o, root, at, touched);
        p->steps.data[o->step].in[o->port].part = true;
    }
}

ortc_status ortc_planner_place_parts(ortc_planner *p)
{
    bool *touched;
    if (!p->parts.count || p->targets->n_spaces > 1) return ORTC_OK; /* no queue reads, or fills, a part */
    if (!(touched = ortc_arena_array(&p->scratch, p->spaces[0].blocks.count, sizeof *touched)))
        return ortc_no_memory(p->error, p->spaces[0].blocks.count);
    for (size_t end = p->parts.count, begin; end; end = begin) {
        for (begin = end - 1; begin && p->parts.data[begin - 1].step == p->parts.data[end - 1].step;) begin--;
        place_step(p, &p->parts.data[begin], end - begin, touched);
    }
    for (size_t i = 0; i < p->spaces[0].blocks.count; i++) { /* nor is anything in place over a part */
        ortc_block *b = &p->spaces[0].blocks.data[i];
        if (b->reuse >= 0 && touched[b->reuse]) b->reuse = -1;
    }
    for (size_t i = 0; i < p->n_forms * p->graph->edges.count; i++) {
        ortc_home *h = &p->homes[i];
        const place at = find(p, h);
        if (at.root != h) h->root = ortc_planner_number(p, at.root), h->offset = at.offset;
    }
    return ORTC_OK;
}
