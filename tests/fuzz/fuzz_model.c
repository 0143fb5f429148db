/* tests/fuzz/fuzz_model.c: libFuzzer's entry: fuzz_model CORPUS. */
#include "targets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    fuzz_model(data, bytes);
    return 0;
}
