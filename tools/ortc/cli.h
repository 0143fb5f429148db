/* tools/ortc/cli.h: what every command shares: exit codes, messages, printing, memory, byte buffers.
 *
 * The command line stands on ortc's public interface alone. Results go to stdout, everything else to stderr:
 * an error is one line there, a note is one line that --quiet drops. Names in messages often come out of a
 * file that somebody else wrote, so all text passes a filter that shows control characters instead of sending
 * them to a terminal. Functions that can fail through no fault of the program take an ortc_error, as the
 * library's do.
 */
#ifndef CLI_H
#define CLI_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ortc/ortc.h"

/* What the process ends with; scripts rely on these numbers. */
enum {
    EXIT_GOOD = 0,
    EXIT_DIFFERENT = 1,   /* a test or comparison failed */
    EXIT_USAGE = 2,       /* bad arguments, or inputs that do not fit the model */
    EXIT_MODEL = 3,       /* the model cannot be read, or is not valid */
    EXIT_UNSUPPORTED = 4, /* an operator or type that ortc cannot run */
    EXIT_PROVIDER = 5,    /* a provider is missing, or --require is not met */
    EXIT_RUN = 6,         /* the run failed, or results could not be written */
    EXIT_MEMORY = 7,
    EXIT_DEADLINE = 8, /* the deadline passed, or the run was cancelled */
    EXIT_INTERRUPTED = 130
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* ---- The commands: argv[0] is the command's name ------------------------------------------------------- */

typedef struct cli_command {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
} cli_command;
extern const cli_command cli_commands[]; /* ends with a NULL name */

int command_run(int argc, char **argv);
int command_bench(int argc, char **argv);
int command_profile(int argc, char **argv);
int command_compare(int argc, char **argv);
int command_info(int argc, char **argv);
int command_optimize(int argc, char **argv);
int command_test(int argc, char **argv);
int command_providers(int argc, char **argv);
int command_ops(int argc, char **argv);
int command_view(int argc, char **argv);
int command_convert(int argc, char **argv);
int command_completion(int argc, char **argv);
int command_man(int argc, char **argv);

/* The exit codes and what else holds for every command, as lines of text. */
extern const char *const cli_conventions;

/* ---- Messages, to stderr: one line each ---------------------------------------------------------------- */

extern struct cli_state {
    const char *command; /* "run"; "" before it is known */
    bool quiet, verbose, json;
} cli;

ORTC_PRINTF(1, 2) void say_error(const char *fmt, ...);
ORTC_PRINTF(1, 2) void say_note(const char *fmt, ...); /* not with --quiet */

/* The library's own messages: as $ORTC_LOG says (error, warning, info, debug), with --verbose at least
 * warnings. */
void log_begin(void);

/* Writes an error in the library's manner and returns its code; `error` may be NULL. */
ORTC_PRINTF(3, 4) ortc_status fail(ortc_error *error, ortc_status code, const char *fmt, ...);
/* Puts text before the error's own: which file or input it is about. */
ORTC_PRINTF(2, 3) void fail_prefix(ortc_error *error, const char *fmt, ...);

/* ---- Results, to stdout -------------------------------------------------------------------------------- */

/* printf that makes control characters visible; newlines and tabs stay. */
ORTC_PRINTF(1, 2) void put(const char *fmt, ...);
/* Flushes stdout: `code`, or EXIT_RUN with a message when results could not be written (a full disk). */
int finish(int code);

/* ---- Memory: ends the process with EXIT_MEMORY when there is none -------------------------------------- */

void *mem_alloc(size_t bytes); /* zeroed */
void *mem_grow(void *, size_t count, size_t item_bytes);
void *mem_keep(size_t bytes); /* zeroed; lives as long as the process: parsed arguments */
char *mem_copy(const char *text);
ORTC_PRINTF(1, 2) char *mem_printf(const char *fmt, ...);

/* Bytes that grow. {0} is empty; free(data) ends it. Always followed by a 0 that `size` does not count. */
typedef struct buffer {
    uint8_t *data;
    size_t size, capacity;
} buffer;
void buffer_add(buffer *, const void *data, size_t bytes);
ORTC_PRINTF(2, 3) void buffer_printf(buffer *, const char *fmt, ...);
void buffer_vprintf(buffer *, const char *fmt, va_list);

/* ---- Names and files ----------------------------------------------------------------------------------- */

/* The candidate that was most likely meant by `word`, or NULL. */
const char *nearest(const char *word, const char *const *candidates, size_t count);

/* A whole file (or pipe), at most `limit` bytes. Owner of data: the caller; free(). Errors: NOT_FOUND, IO,
 * LIMIT. */
typedef struct blob {
    uint8_t *data;
    size_t size;
} blob;
ortc_status file_read(const char *path, uint64_t limit, blob *out, ortc_error *);
ortc_status file_write(const char *path, const void *data, size_t bytes, ortc_error *);
/* Whether a result could be written there, asked before the work is done. -1: it seems so, or path is NULL;
 * else the exit code, and `option` is named in the message. */
int writable_check(const char *option, const char *path);
bool has_suffix(const char *text, const char *suffix); /* ".png", in any case */
double seconds_now(void);                              /* CLOCK_MONOTONIC */

/* The exit code for a status that loading a model, creating a session, or a run gave. */
typedef enum { STAGE_LOAD, STAGE_CREATE, STAGE_RUN } stage;
int exit_code(ortc_status, stage);

#endif
