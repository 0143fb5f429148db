/* tests/fuzz/fuzz_plugin.c: libFuzzer's entry: fuzz_plugin -fork=1 CORPUS: what one
 * process registers stays, and its tables are finite. */
#include "targets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    fuzz_plugin(data, bytes);
    return 0;
}
