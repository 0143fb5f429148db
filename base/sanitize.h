/* base/sanitize.h: memory that may not be touched for now, where AddressSanitizer watches; elsewhere nothing
 * happens. */
#ifndef ORTC_SANITIZE_H
#define ORTC_SANITIZE_H

#if defined(__SANITIZE_ADDRESS__)
#define ORTC_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ORTC_SANITIZED 1
#endif
#endif

#ifdef ORTC_SANITIZED
#include <sanitizer/asan_interface.h>
#define ORTC_FORBID(p, bytes) ASAN_POISON_MEMORY_REGION(p, bytes)
#define ORTC_ALLOW(p, bytes) ASAN_UNPOISON_MEMORY_REGION(p, bytes)
#else
#define ORTC_FORBID(p, bytes) ((void)(p), (void)(bytes))
#define ORTC_ALLOW(p, bytes) ((void)(p), (void)(bytes))
#endif

#endif
