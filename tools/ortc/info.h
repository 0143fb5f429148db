/* tools/ortc/info.h: the views of `ortc info` that look into a session. With a json they write members into
 * its open object, without one they print tables. */
#ifndef INFO_H
#define INFO_H

#include "inputs.h"
#include "json.h"
#include "session.h"

void info_passes(ortc_model *, ortc_session *, json *);
void info_placement(ortc_session *, json *);
/* -1: good; else the exit code, the error is printed. */
int info_steps(ortc_model *, ortc_session *, const session_options *, const input_options *, json *);

char *info_bytes(uint64_t); /* "12.2 KiB"; free() */
static inline bool some(const char *text) { return text && text[0]; }

#endif
