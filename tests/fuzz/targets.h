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
int32_t fuzz_run_on(struct ortc_model *, const char *providers);
/* Tries the bytes as a model from a stranger, in ways that the seed chooses: loads (with passes or without),
 * saves and loads again, makes sessions on ref and on another provider, runs each twice on small inputs with
 * all outputs or some. Aborts with a text where a promise is broken: INTERNAL, a failure without a text, a
 * deadline or a limit that was not kept, what was saved and does not load, providers that disagree. The
 * status of the last step; its text where the model does not load. */
int32_t fuzz_untrusted(const uint8_t *data, size_t bytes, uint32_t seed, char *text, size_t text_bytes);
/* Decodes them as a value of every kind; what can be decoded is encoded, decoded again and must be the
 * same. */
void fuzz_value(const uint8_t *data, size_t bytes);
/* Registers descriptors that the bytes make up, and runs a model of what was taken in. What is registered
 * stays: a process of its own for each, or at least (libFuzzer) for each few thousand. */
void fuzz_plugin(const uint8_t *data, size_t bytes);
/* A call of the command line, with the file that it reads (command_files.h). Aborts where its exit code is
 * none that is documented. Writes into a folder of its own. */
void fuzz_command(const uint8_t *data, size_t bytes);

#endif
