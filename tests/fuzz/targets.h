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
/* Decodes them as a value of every kind; what can be decoded is encoded, decoded again and must be the
 * same. */
void fuzz_value(const uint8_t *data, size_t bytes);

#endif
