/* The choice from a table of micro-kernels (uk.h). */
#include "kernels/common/uk.h"

#include <string.h>

const void *ortc_uk_select(const void *lines, size_t line_bytes, size_t count)
{
    const uint32_t have = ortc_cpu_features();
    const char *line = lines;
    for (size_t i = 0; i + 1 < count; i++, line += line_bytes) {
        ortc_uk head;
        memcpy(&head, line, sizeof head);
        if ((head.isa & ~have) == 0) break;
    }
    return line;
}
