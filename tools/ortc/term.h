/* tools/ortc/term.h: terminals: colour, a progress line on stderr, aligned tables on stdout. */
#ifndef TERM_H
#define TERM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "cli.h"

enum { TERM_PLAIN, TERM_BOLD, TERM_RED, TERM_GREEN, TERM_YELLOW };
enum { TERM_AUTO, TERM_ALWAYS, TERM_NEVER };

/* auto: colour where the stream is a terminal, TERM is not "dumb" and NO_COLOR is not set. */
void term_color_mode(int mode);
void term_color(FILE *, int color);

/* A line on stderr that is redrawn in place, at most five times a second, on terminals only and not with
 * --quiet. done of total (0: not known); text is shortened to the terminal's width. Cleared before any other
 * message. */
void term_progress(size_t done, size_t total, const char *text);
void term_progress_clear(void);

/* Columns as wide as their widest cell. Cells are copied. Numbers, that is columns whose letter in `align` is
 * 'r', go to the right; the last column is not padded. */
typedef struct table {
    const char *align; /* one letter a column: "lrl" */
    size_t columns, count;
    char **cells;
} table;
void table_init(table *, const char *align);
void table_cell(table *, const char *text);
ORTC_PRINTF(2, 3) void table_format(table *, const char *fmt, ...);
/* Prints, each line after `indent` blanks, the first row bold if it is a heading, and frees. */
void table_print(table *, int indent, bool heading);

void table_free(table *); /* without printing */

size_t text_width(const char *utf8); /* in columns, one per code point */

#endif
