/* tools/ortc/info_session.c: what ortc made of a model: passes, placement, the plan's steps; see info.h. */
#include "info.h"

#include <stdlib.h>

#include "term.h"

char *info_bytes(uint64_t n)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double v = (double)n;
    size_t u = 0;
    for (; v >= 1024 && u + 1 < COUNT_OF(units); u++) v /= 1024;
    return mem_printf(u ? "%.1f %s" : "%.0f %s", v, units[u]);
}

/* ---- Passes -------------------------------------------------------------------------------------------- */

void info_passes(ortc_model *m, ortc_session *s, json *j)
{
    const ortc_model_info *d = ortc_model_describe(m);
    table t;
    table_init(&t, "lrl");
    table_cell(&t, "pass");
    table_cell(&t, "edits");
    table_cell(&t, "stage");
    for (int special = 0; special < 2; special++) {
        if (j) {
            json_key(j, special ? "specialising_passes" : "normalising_passes");
            json_array(j);
        }
        for (size_t i = 0;; i++) {
            uint64_t edits = 0;
            const char *name = special           ? ortc_session_pass(s, i, &edits)
                               : i < d->n_passes ? d->pass_names[i]
                                                 : NULL;
            if (!name) break;
            edits = special ? edits : d->pass_edits[i];
            if (j) {
                json_object(j);
                json_pair_text(j, "name", name);
                json_pair_unsigned(j, "edits", edits);
                json_object_end(j);
            }
            table_cell(&t, name);
            table_format(&t, "%llu", (unsigned long long)edits);
            table_cell(&t, special ? "specialise" : "normalise");
        }
        if (j) json_array_end(j);
    }
    if (j)
        table_free(&t);
    else
        table_print(&t, 0, true);
}

/* ---- Placement ----------------------------------------------------------------------------------------- */

typedef struct listing {
    table t;
    json *j; /* NULL: the table */
} listing;

static int each_placement(void *arg, const ortc_placement *p)
{
    listing *l = arg;
    if (l->j) {
        json_object(l->j);
        json_pair_unsigned(l->j, "index", p->index);
        json_pair_text(l->j, "node", p->node);
        json_pair_text(l->j, "domain", p->domain);
        json_pair_text(l->j, "op", p->op);
        json_pair_integer(l->j, "version", p->version);
        json_pair_text(l->j, "provider", p->provider);
        json_pair_text(l->j, "kernel", p->kernel);
        json_pair_text(l->j, "fused", p->fused);
        json_pair_text(l->j, "reasons", p->reasons);
        json_object_end(l->j);
        return 0;
    }
    table_format(&l->t, "%u", p->index);
    table_cell(&l->t, p->node ? p->node : "");
    table_format(&l->t, "%s%s%s-%d", some(p->domain) ? p->domain : "", some(p->domain) ? "." : "",
                 p->op ? p->op : "?", p->version);
    table_cell(&l->t, p->provider ? p->provider : "");
    table_cell(&l->t, p->kernel ? p->kernel : "");
    table_cell(&l->t, p->fused ? p->fused : "");
    table_cell(&l->t, p->reasons ? p->reasons : "");
    return 0;
}

void info_placement(ortc_session *s, json *j)
{
    static const char *const heading[] = {"#",      "node",          "operator", "provider",
                                          "kernel", "fused into it", "declined"};
    listing l = {.j = j};
    if (j) {
        json_key(j, "placement");
        json_array(j);
        ortc_session_placement(s, each_placement, &l);
        json_array_end(j);
        return;
    }
    table_init(&l.t, "rllllll");
    for (size_t i = 0; i < COUNT_OF(heading); i++) table_cell(&l.t, heading[i]);
    ortc_session_placement(s, each_placement, &l);
    table_print(&l.t, 0, true);
}

/* ---- Steps --------------------------------------------------------------------------------------------- */

static void number_cell(table *t, double v)
{
    if (v > 0)
        table_format(t, "%.3g", v);
    else
        table_cell(t, "");
}

static int each_step(void *arg, const ortc_step_info *p)
{
    listing *l = arg;
    if (l->j) {
        json_object(l->j);
        json_pair_unsigned(l->j, "index", p->index);
        json_pair_text(l->j, "kind", p->kind);
        json_pair_text(l->j, "node", p->node);
        json_pair_text(l->j, "op", p->op);
        json_pair_text(l->j, "provider", p->provider);
        json_pair_text(l->j, "kernel", p->kernel);
        json_pair_text(l->j, "outputs", p->outputs);
        json_pair_number(l->j, "flops", p->flops);
        json_pair_number(l->j, "bytes", p->bytes);
        json_pair_unsigned(l->j, "workspace_bytes", p->workspace);
        json_pair_unsigned(l->j, "live_bytes", p->live);
        json_pair_number(l->j, "clocks", p->clocks);
        json_pair_text(l->j, "offers", p->offers);
        json_object_end(l->j);
        return 0;
    }
    table_format(&l->t, "%u", p->index);
    table_cell(&l->t, p->kind ? p->kind : "");
    table_cell(&l->t, some(p->node) ? p->node : p->op ? p->op : "");
    table_cell(&l->t, p->kernel ? p->kernel : "");
    number_cell(&l->t, p->flops / 1e6);
    number_cell(&l->t, p->bytes / 1024);
    number_cell(&l->t, (double)p->workspace / 1024);
    table_cell(&l->t, p->outputs ? p->outputs : "");
    table_cell(&l->t, p->clocks > 0 ? p->offers : "");
    return 0;
}

int info_steps(ortc_model *m, ortc_session *s, const session_options *so, const input_options *io, json *j)
{
    static const char *const heading[] = {"#",   "kind",          "node",    "kernel",        "MFLOP",
                                          "KiB", "workspace KiB", "outputs", "offers, clocks"};
    inputs in;
    listing l = {.j = j};
    ortc_plan_info plan = {.size = sizeof plan};
    ortc_error e = ORTC_ERROR_INIT;
    int code = inputs_resolve(m, so, io, true, &in);
    if (code >= 0) return code;
    if (j) {
        json_key(j, "steps");
        json_array(j);
    } else {
        table_init(&l.t, "rlllrrrll");
        for (size_t i = 0; i < COUNT_OF(heading); i++) table_cell(&l.t, heading[i]);
    }
    ortc_status status = ortc_session_plan(s, in.in, in.n_in, &plan, each_step, &l, &e);
    inputs_release(&in);
    if (status != ORTC_OK) {
        if (!j) table_free(&l.t);
        say_error("%s", e.text);
        return exit_code(status, STAGE_RUN);
    }
    if (j) {
        json_array_end(j);
        json_key(j, "plan");
        json_object(j);
        json_pair_unsigned(j, "steps", plan.n_steps);
        json_pair_unsigned(j, "views", plan.n_views);
        json_pair_unsigned(j, "folded", plan.n_folded);
        json_pair_unsigned(j, "arena_bytes", plan.arena_bytes);
        json_pair_unsigned(j, "workspace_bytes", plan.workspace_bytes);
        json_pair_unsigned(j, "constant_bytes", plan.constant_bytes);
        json_pair_unsigned(j, "packed_bytes", plan.packed_bytes);
        json_object_end(j);
        return -1;
    }
    table_print(&l.t, 0, true);
    char *arena = info_bytes(plan.arena_bytes), *workspace = info_bytes(plan.workspace_bytes),
         *constants = info_bytes(plan.constant_bytes), *packed = info_bytes(plan.packed_bytes);
    put("%u steps, %u views, %u nodes only for shapes; arena %s, workspace %s, constants %s, packed %s\n",
        plan.n_steps, plan.n_views, plan.n_folded, arena, workspace, constants, packed);
    free(arena);
    free(workspace);
    free(constants);
    free(packed);
    return -1;
}
