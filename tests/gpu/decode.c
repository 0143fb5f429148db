/* tests/gpu/decode.c: the decoder with tied caches wholly on a device: two conversations of 64 tokens, logits
 * placed in the device's memory. The second conversation replays one captured graph for every token and moves
 * at most 64 bytes between host and device for each; the logits are those expected, in both. A plain program
 * over the public interface. usage: decode MODEL EXPECTED DEVICE [PLUGIN]     EXPECTED: f32[64,50]
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ortc/ortc.h"

enum { TOKENS = 64, PREFILL = 8, VOCABULARY = 50, CACHES = 4, MOST_BYTES = 64 };
static const char *const past[CACHES] = {"past.0.key", "past.0.value", "past.1.key", "past.1.value"};
static const char *const present[CACHES] = {"present.0.key", "present.0.value", "present.1.key",
                                            "present.1.value"};
static int64_t ids[TOKENS], positions[TOKENS];
static float expected[TOKENS][VOCABULARY], logits[TOKENS][VOCABULARY];
static ortc_error e = ORTC_ERROR_INIT;
static int passed, failed;

static void check(int good, const char *what, const char *text)
{
    passed += good;
    failed += !good;
    if (!good) printf("FAILED %s: %s\n", what, text);
}

static ortc_session_stats statistics(ortc_session *s)
{
    ortc_session_stats stats = ORTC_SESSION_STATS_INIT;
    ortc_session_statistics(s, &stats);
    return stats;
}

/* n tokens from `at` on, their logits into `on_device`, from where they are fetched outside of the run. */
static ortc_status step(ortc_session *s, ortc_state *state, int64_t at, int64_t n, ortc_value *on_device)
{
    ortc_in in[3] = {{"ids", ortc_wrap(&ids[at], ORTC_I64, 2, (int64_t[]){1, n})},
                     {"positions", ortc_wrap(&positions[at], ORTC_I64, 2, (int64_t[]){1, n})},
                     {"write_indices", ortc_wrap(&at, ORTC_I64, 1, (int64_t[]){1})}};
    ortc_out out = {"logits", on_device, 0, 0};
    ortc_run_args a = ORTC_RUN_ARGS_INIT;
    a.in = in, a.n_in = 3, a.out = &out, a.n_out = 1, a.state = state, a.advance = n;
    ortc_status status = ortc_run(s, &a, &e);
    for (int i = 0; i < 3; i++) ortc_value_release(in[i].value);
    ortc_value *host = ortc_wrap(logits[at], ORTC_F32, 3, (int64_t[]){1, n, VOCABULARY});
    if (status == ORTC_OK) status = ortc_value_copy(on_device, host, &e);
    ortc_value_release(host);
    return status;
}

static double worst_error(void)
{
    double worst = 0;
    for (int i = 0; i < TOKENS * VOCABULARY; i++)
        worst = fmax(worst, fabs((double)((float *)logits)[i] - (double)((float *)expected)[i]));
    return worst;
}

int main(int argc, char **argv)
{
    ortc_model *model = NULL;
    ortc_session *session = NULL;
    ortc_state *state = NULL;
    ortc_tie ties[CACHES];
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    ortc_value *many = NULL, *one = NULL;
    uint32_t memory = 0;
    char text[200];
    FILE *file = argc >= 4 ? fopen(argv[2], "rb") : NULL;
    if (!file || fread(expected, sizeof expected, 1, file) != 1 || fclose(file)) {
        fprintf(stderr, "usage: decode MODEL EXPECTED DEVICE [PLUGIN]\n");
        return 2;
    }
    for (int64_t i = 0; i < TOKENS; i++) ids[i] = (i * i * 7 + 3) % VOCABULARY, positions[i] = i;
    for (int i = 0; i < CACHES; i++) ties[i] = (ortc_tie){past[i], present[i], 2, 0, 0};
    char provider[64];
    snprintf(provider, sizeof provider, "%.*s", (int)strcspn(argv[3], ":"), argv[3]);
    o.providers = argv[3], o.require = provider, o.ties = ties, o.n_ties = CACHES;
    if ((argc == 5 && ortc_plugin_load(argv[4], &e)) || ortc_model_load(argv[1], NULL, &model, &e) ||
        ortc_session_create(model, &o, &session, &e) || ortc_state_create(session, &state, &e) ||
        ortc_session_memory(session, provider, &memory, &e) ||
        ortc_value_create_in(memory, ORTC_F32, 3, (int64_t[]){1, PREFILL, VOCABULARY}, &many, &e) ||
        ortc_value_create_in(memory, ORTC_F32, 3, (int64_t[]){1, 1, VOCABULARY}, &one, &e)) {
        check(0, "creating", e.text);
    } else {
        ortc_session_stats before = {0}, after = {0};
        for (int conversation = 0; conversation < 2; conversation++) {
            memset(logits, 0xff, sizeof logits);
            for (int64_t at = 0; at < TOKENS; at = ortc_state_length(state)) {
                if (at == PREFILL) before = statistics(session);
                if (step(session, state, at, at ? 1 : PREFILL, at ? one : many)) {
                    check(0, "a step", e.text);
                    goto end;
                }
            }
            after = statistics(session);
            snprintf(text, sizeof text, "off by %g", worst_error());
            check(worst_error() < 1e-4, "logits", text);
            check(ortc_state_truncate(state, 0, &e) == ORTC_OK, "truncating", e.text);
        }
        uint64_t tokens = TOKENS - PREFILL, bytes = after.bytes_to_devices + after.bytes_from_devices -
                                                    before.bytes_to_devices - before.bytes_from_devices;
        printf("%s: %llu replays and %llu captures for %llu tokens, %.1f bytes between host and device for "
               "each\n",
               argv[3], (unsigned long long)(after.replays - before.replays),
               (unsigned long long)(after.captures - before.captures), (unsigned long long)tokens,
               (double)bytes / (double)tokens);
        check(after.replays - before.replays == tokens && after.captures == before.captures,
              "one captured graph serves every token", "it does not");
        check(bytes <= MOST_BYTES * tokens, "bytes for each token", "too many");
        check(after.plans_made == 2, "plans", "more than two");
    }
end:
    ortc_value_release(one);
    ortc_value_release(many);
    ortc_state_release(state);
    ortc_session_release(session);
    ortc_model_release(model);
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
