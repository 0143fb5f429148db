/* tests/fuzz/fuzz_model.c: libFuzzer's entry: fuzz_model CORPUS. */
#include "targets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    uint32_t seed = 2166136261u; /* of the bytes, so that a file that is found fails again */
    for (size_t i = 0; i < bytes; i++) seed = (seed ^ data[i]) * 16777619u;
    fuzz_untrusted(data, bytes, seed, NULL, 0);
    return 0;
}
