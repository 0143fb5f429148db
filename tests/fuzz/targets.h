/* tests/fuzz/targets.h: what is done with untrusted bytes, the same for libFuzzer and for the replay of
 * mutations.
 */
#ifndef ORTC_TESTS_FUZZ_TARGETS_H
#define ORTC_TESTS_FUZZ_TARGETS_H

#include <stddef.h>
#include <stdint.h>

struct ortc_model;

/* Loads the bytes as a model, through every stage that a file's loading goes through, and runs what loads. */
void fuzz_model(const uint8_t *data, size_t bytes);
/* Runs a model on zeros; LIMIT when its inputs are large. */
int32_t fuzz_run(struct ortc_model *);
/* Tries the bytes as a model from a stranger, in ways that the seed chooses: loads (with passes or without),
 * saves and loads again, makes sessions on ref and on another provider, runs each twice on small inputs with
 * all outputs or some. Aborts with a text where a promise is broken: INTERNAL, a failure without a text, a
 * deadline or a limit that was not kept, what was saved and does not load, providers that disagree. The
 * status of the last step; its text where the model does not load. */
int32_t fuzz_untrusted(const uint8_t *data, size_t bytes, uint32_t seed, char *text, size_t text_bytes);
/* Decodes them as a value of every kind; what can be decoded is encoded, decoded again and must be the
 * same. */
void fuzz_value(const uint8_t *data, size_t bytes);

#endif
