/* tests/fuzz/fuzz_value.c: libFuzzer's entry: fuzz_value CORPUS. */
#include "targets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    fuzz_value(data, bytes);
    return 0;
}
