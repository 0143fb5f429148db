/* base/text.c: text in fixed buffers, and the log that the application may listen to.
 */
#include "base.h"

#include <stdio.h>

void ortc_text_add(ortc_text *text, const char *fmt, ...)
{
    va_list args;
    size_t room = text->capacity > text->length ? text->capacity - text->length : 0;
    int n;

    if (room == 0) return;
    va_start(args, fmt);
    n = vsnprintf(text->data + text->length, room, fmt, args);
    va_end(args);
    if (n < 0)
        text->data[text->length] = 0;
    else
        text->length += (size_t)n < room ? (size_t)n : room - 1;
}

void ortc_text_dims(ortc_text *text, int32_t rank, const int64_t *dims)
{
    ortc_text_add(text, "[");
    if (rank < 0) ortc_text_add(text, "...");
    for (int32_t i = 0; i < rank; i++)
        if (dims[i] < 0)
            ortc_text_add(text, "%s?", i ? "," : "");
        else
            ortc_text_add(text, "%s%lld", i ? "," : "", (long long)dims[i]);
    ortc_text_add(text, "]");
}

void ortc_text_tensor(ortc_text *text, ortc_dtype dtype, int32_t rank, const int64_t *dims)
{
    ortc_text_add(text, "%s", ortc_dtype_name(dtype));
    ortc_text_dims(text, rank, dims);
}

/* Set-up only, as ortc.h says: read without a lock. */
static struct {
    void (*log)(void *arg, int32_t level, const char *text);
    void *arg;
    int32_t max_level;
} sink;

void ortc_log_set(void (*log)(void *arg, int32_t level, const char *text), void *arg, int32_t max_level)
{
    sink.log = log;
    sink.arg = arg;
    sink.max_level = max_level;
}

void ortc_log(int32_t level, const char *fmt, ...)
{
    char text[1024];
    va_list args;

    if (!sink.log || level > sink.max_level) return;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    sink.log(sink.arg, level, text);
}
