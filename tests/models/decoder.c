/* tests/models/decoder.c: 64 tokens through the decoder of make_decoder.py: eight at once, then one at a
 * time, with the caches tied and with the caches carried by hand: equal bits, near to what another runtime
 * computes, two plans, no copy of a cache. usage: decoder MODEL EXPECTED PROVIDERS [PLUGIN]     EXPECTED:
 * f32[64,50], the logits
 */
#include <math.h>
#include <stdio.h>

#include "runtime/session/session.h"
#include "runtime/execute/tied.h"

enum { TOKENS = 64, PREFILL = 8, VOCABULARY = 50, CACHES = 4, CACHE = 4 * 80 * 8 };
static const int64_t cache_dims[4] = {1, 4, 80, 8};
static const char *const past[CACHES] = {"past.0.key", "past.0.value", "past.1.key", "past.1.value"};
static const char *const present[CACHES] = {"present.0.key", "present.0.value", "present.1.key",
                                            "present.1.value"};
static int64_t ids[TOKENS], positions[TOKENS];
static float tied[TOKENS][VOCABULARY], untied[TOKENS][VOCABULARY], expected[TOKENS][VOCABULARY];
static float caches[2][CACHES][CACHE]; /* by hand */
static ortc_error e = ORTC_ERROR_INIT;

/* n tokens from `at` on; without a state, caches[at's parity] are read and the others written. */
static ortc_status run(ortc_session *s, ortc_state *state, int64_t at, int64_t n, float (*logits)[VOCABULARY],
                       int from)
{
    ortc_in in[3 + CACHES] = {{"ids", ortc_wrap(&ids[at], ORTC_I64, 2, (int64_t[]){1, n})},
                              {"positions", ortc_wrap(&positions[at], ORTC_I64, 2, (int64_t[]){1, n})},
                              {"write_indices", ortc_wrap(&at, ORTC_I64, 1, (int64_t[]){1})}};
    ortc_out out[1 + CACHES] = {
        {"logits", ortc_wrap(logits[at], ORTC_F32, 3, (int64_t[]){1, n, VOCABULARY}), 0, 0}};
    ortc_run_args a = ORTC_RUN_ARGS_INIT;
    a.in = in, a.n_in = 3, a.out = out, a.n_out = 1, a.state = state, a.advance = state ? n : 0;
    for (int i = 0; i < CACHES && !state; i++) {
        in[a.n_in++] = (ortc_in){past[i], ortc_wrap(caches[from][i], ORTC_F32, 4, cache_dims)};
        out[a.n_out++] = (ortc_out){present[i], ortc_wrap(caches[!from][i], ORTC_F32, 4, cache_dims), 0, 0};
    }
    ortc_status status = ortc_run(s, &a, &e);
    for (size_t i = 0; i < a.n_in; i++) ortc_value_release(in[i].value);
    for (size_t i = 0; i < a.n_out; i++) ortc_value_release(out[i].value);
    return status;
}

static int fail(const char *what)
{
    printf("%s: %s\n0 passed, 1 failed\n", what, e.text);
    return 1;
}

int main(int argc, char **argv)
{
    ortc_model *model;
    ortc_session *session;
    ortc_state *state;
    ortc_tie ties[CACHES];
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    FILE *file = argc >= 4 ? fopen(argv[2], "rb") : NULL;
    if (!file || fread(expected, sizeof expected, 1, file) != 1 || fclose(file))
        return fail("usage: decoder MODEL EXPECTED PROVIDERS [PLUGIN]");
    if (argc == 5 && ortc_plugin_load(argv[4], &e)) return fail("the plugin");
    for (int64_t i = 0; i < TOKENS; i++) ids[i] = (i * i * 7 + 3) % VOCABULARY, positions[i] = i;
    for (int i = 0; i < CACHES; i++) ties[i] = (ortc_tie){past[i], present[i], 2, 0, 0};
    o.providers = argv[3], o.ties = ties, o.n_ties = CACHES;
    if (ortc_model_load(argv[1], NULL, &model, &e) || ortc_session_create(model, &o, &session, &e) ||
        ortc_state_create(session, &state, &e))
        return fail("creating");
    for (int again = 0; again < 2; again++) { /* a second conversation on the same state */
        for (int64_t at = 0; at < TOKENS; at = ortc_state_length(state))
            if (run(session, state, at, at ? 1 : PREFILL, tied, 0)) return fail("a tied step");
        if (ortc_state_length(state) != TOKENS || (!again && ortc_state_truncate(state, 0, &e)))
            return fail("the length");
    }
    uint64_t plans = atomic_load(&session->unit.plans.made);
    int from = 0;
    for (int64_t at = 0; at < TOKENS; at += at ? 1 : PREFILL, from = !from)
        if (run(session, NULL, at, at ? 1 : PREFILL, untied, from)) return fail("an untied step");
    double worst = 0;
    for (int i = 0; i < TOKENS * VOCABULARY; i++)
        worst = fmax(worst, fabs((double)((float *)tied)[i] - (double)((float *)expected)[i]));
    for (int i = 0; i < CACHES; i++)
        if (state->ties[i].memory[1] || (argc == 5 && !state->ties[i].device))
            return fail(argc == 5 ? "a cache was copied, or does not lie on the device"
                                  : "a cache was copied");
    if (plans > 2 || memcmp(tied, untied, sizeof tied) || !(worst < 1e-4)) {
        snprintf(e.text, sizeof e.text, "%llu plans, tied and untied %s, off by %g",
                 (unsigned long long)plans, memcmp(tied, untied, sizeof tied) ? "differ" : "are equal",
                 worst);
        return fail("logits");
    }
    ortc_state_release(state);
    ortc_session_release(session);
    ortc_model_release(model);
    printf("off by %g\n1 passed, 0 failed\n", worst);
    return 0;
}
