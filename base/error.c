/* base/error.c: status codes and the text of errors; the library's version.
 *
 * An ortc_error is the caller's storage. Its `size` says how much of it there is, so that an application
 * compiled with a smaller struct is never written beyond its end. Text that does not fit is cut off.
 */
#include "base.h"

#include <stdio.h>

/* Room for text, the terminating zero included. */
static size_t text_room(const ortc_error *e)
{
    size_t size = e->size < sizeof *e ? e->size : sizeof *e;
    return size > offsetof(ortc_error, text) ? size - offsetof(ortc_error, text) : 0;
}

ortc_status ortc_vfail(ortc_error *e, ortc_status code, const char *fmt, va_list args)
{
    if (e && e->size >= offsetof(ortc_error, text)) {
        e->code = code;
        if (text_room(e) > 0) vsnprintf(e->text, text_room(e), fmt, args);
    }
    return code;
}

ortc_status ortc_fail(ortc_error *e, ortc_status code, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    ortc_vfail(e, code, fmt, args);
    va_end(args);
    return code;
}

void ortc_error_prefix(ortc_error *e, const char *fmt, ...)
{
    size_t room = e ? text_room(e) : 0;
    char prefix[sizeof e->text];
    size_t length, keep;
    va_list args;

    if (room == 0) return;
    va_start(args, fmt);
    vsnprintf(prefix, sizeof prefix, fmt, args);
    va_end(args);
    length = strlen(prefix);
    if (length > room - 1) length = room - 1;
    keep = strnlen(e->text, room - 1);
    if (keep > room - 1 - length) keep = room - 1 - length;
    memmove(e->text + length, e->text, keep);
    memcpy(e->text, prefix, length);
    e->text[length + keep] = 0;
}

ortc_status ortc_no_memory(ortc_error *e, size_t bytes)
{
    return ortc_fail(e, ORTC_OUT_OF_MEMORY, "out of memory: %zu bytes could not be had", bytes);
}

const char *ortc_status_name(ortc_status code)
{
    static const char *const names[] = {"OK",
                                        "INVALID_ARGUMENT",
                                        "INVALID_MODEL",
                                        "UNSUPPORTED",
                                        "NOT_FOUND",
                                        "IO",
                                        "OUT_OF_MEMORY",
                                        "LIMIT",
                                        "SHAPE_MISMATCH",
                                        "TYPE_MISMATCH",
                                        "CANCELLED",
                                        "DEADLINE",
                                        "DEVICE_ERROR",
                                        "DEVICE_LOST",
                                        "INCOMPATIBLE_PLUGIN",
                                        "INVALID_STATE",
                                        "INTERNAL"};
    return code >= 0 && (size_t)code < ORTC_LENGTH(names) ? names[code] : "?";
}

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
const char *ortc_version(void)
{
    return TEXT(ORTC_VERSION_MAJOR) "." TEXT(ORTC_VERSION_MINOR) "." TEXT(ORTC_VERSION_PATCH);
}
