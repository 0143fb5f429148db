/* tests/fuzz/targets.h: what is done with untrusted bytes, the same for libFuzzer and for the replay of mutations.
 */
#ifndef ORTC_TESTS_FUZZ_TARGETS_H
#define ORTC_TESTS_FUZZ_TARGETS_H

#include <stddef.h>
#include <stdint.h>

/* Loads the bytes as a model, through every stage that a file's loading goes through. */
void fuzz_model(const uint8_t *data, size_t bytes);
/* Decodes them as a value of every kind; what can be decoded is encoded, decoded again and must be the same. */
void fuzz_value(const uint8_t *data, size_t bytes);

#endif
