/* tests/models/many_shapes.c: one session, many shapes: many_shapes MODEL PROVIDERS RUNS.
 *
 * Runs a model of int64 inputs [batch, length], whose elements are 0 and 1, on random shapes, in two
 * sessions. In the first, of default options, resident memory grows by less than 5 % and 1 MiB after 50 runs.
 * In the second every plan fits into the cache: as many are made as there were different shapes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ortc/ortc.h"

enum { MAX_BATCH = 4, MAX_LENGTH = 24, MAX_INPUTS = 8 };

static uint64_t random_state = 88172645463325252u;
static int64_t at_random(int64_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (int64_t)(random_state % (uint64_t)below);
}

static long resident_pages(void)
{
    long all = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f && fscanf(f, "%ld %ld", &all, &resident) != 2) resident = 0;
    if (f) fclose(f);
    return resident;
}

static ortc_status run(ortc_session *s, ortc_model *m, int64_t batch, int64_t length, ortc_error *e)
{
    static int64_t data[MAX_INPUTS][MAX_BATCH * MAX_LENGTH];
    const int64_t dims[2] = {batch, length};
    ortc_in in[MAX_INPUTS];
    ortc_out out = {.name = ortc_model_output(m, 0)->name};
    ortc_run_args args = {sizeof args, .in = in, .out = &out, .n_out = 1};
    for (size_t i = 0; i < MAX_INPUTS && ortc_model_input(m, i); i++) {
        for (int64_t k = 0; k < batch * length; k++) data[i][k] = at_random(2);
        in[args.n_in++] = (ortc_in){ortc_model_input(m, i)->name, ortc_wrap(data[i], ORTC_I64, 2, dims)};
    }
    const ortc_status status = ortc_run(s, &args, e);
    for (size_t i = 0; i < args.n_in; i++) ortc_value_release(in[i].value);
    ortc_value_release(out.value);
    return status;
}

/* Runs of one session; gives the numbers of shapes and of plans, and resident pages after 50 and all. */
typedef struct outcome {
    uint64_t shapes, plans, plan_bytes;
    long early, late;
} outcome;

static ortc_status look(ortc_model *model, const char *providers, int runs, uint64_t cache_bytes, outcome *r,
                        ortc_error *e)
{
    char seen[MAX_BATCH + 1][MAX_LENGTH + 1] = {{0}};
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    ortc_session_stats stats = ORTC_SESSION_STATS_INIT;
    ortc_session *session = NULL;
    o.providers = providers;
    o.plan_cache_bytes = cache_bytes;
    ortc_status status = ortc_session_create(model, &o, &session, e);
    for (int i = 0; i < runs && status == ORTC_OK; i++) {
        const int64_t batch = 1 + at_random(MAX_BATCH), length = 1 + at_random(MAX_LENGTH);
        status = run(session, model, batch, length, e);
        r->shapes += !seen[batch][length];
        seen[batch][length] = 1;
        if (i + 1 == 50) r->early = resident_pages();
    }
    r->late = resident_pages();
    if (session) ortc_session_statistics(session, &stats);
    r->plans = stats.plans_made;
    r->plan_bytes = stats.plan_bytes;
    ortc_session_release(session);
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 4) return 2;
    ortc_error e = ORTC_ERROR_INIT;
    ortc_model *model = NULL;
    outcome all = {0}, usual = {0};
    const int runs = atoi(argv[3]);
    ortc_status status = ortc_model_load(argv[1], NULL, &model, &e);
    if (status == ORTC_OK) /* first: what another session has freed would hide that this one grows */
        status = look(model, argv[2], runs, 0, &usual, &e);
    if (status == ORTC_OK) status = look(model, argv[2], runs, 64 << 20, &all, &e);
    ortc_model_release(model);
    if (status != ORTC_OK) {
        printf("%s\n", e.text);
        return 1;
    }
    printf("%llu shapes, %llu plans made; with default options (%llu KiB of plans) %llu made, %ld pages "
           "resident after 50 runs, %ld at the end\n",
           (unsigned long long)all.shapes, (unsigned long long)all.plans,
           (unsigned long long)usual.plan_bytes / 1024, (unsigned long long)usual.plans, usual.early,
           usual.late);
    const int grown = getenv("MANY_SHAPES_NO_MEMORY") == NULL &&
                      (double)usual.late > 1.05 * (double)usual.early + 256;
    return all.plans != all.shapes || grown;
}
