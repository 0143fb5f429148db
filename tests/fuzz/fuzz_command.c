/* tests/fuzz/fuzz_command.c: libFuzzer's entry: fuzz_command /ABSOLUTE/CORPUS: it works in a folder of its
 * own. */
#include "targets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    fuzz_command(data, bytes);
    return 0;
}
