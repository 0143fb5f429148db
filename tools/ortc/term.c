/* tools/ortc/term.c: colour, progress and tables; see term.h. Escapes are plain ANSI: no terminfo, as
 * everything that is a terminal today knows bold, three colours, carriage return and erase-to-end-of-line. */
#include "term.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static int color_mode = TERM_AUTO;
static bool progress_shown;
static double progress_drawn;

void term_color_mode(int mode) { color_mode = mode; }

static bool colored(FILE *f)
{
    if (color_mode != TERM_AUTO) return color_mode == TERM_ALWAYS;
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return !(no && no[0]) && term && strcmp(term, "dumb") != 0 && isatty(fileno(f));
}

void term_color(FILE *f, int color)
{
    static const char *const codes[] = {"\033[0m", "\033[1m", "\033[31m", "\033[32m", "\033[33m"};
    if (colored(f)) fputs(codes[color], f);
}

void term_progress(size_t done, size_t total, const char *text)
{
    double now = seconds_now();
    if (cli.quiet || now - progress_drawn < 0.2 || !isatty(STDERR_FILENO)) return;
    struct winsize size = {0};
    int width = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
    char head[64];
    int n = total ? snprintf(head, sizeof head, "[%zu/%zu] ", done, total) : 0;
    head[n] = 0;
    fprintf(stderr, "\r%s%.*s\033[K", head, width - n - 1 > 0 ? width - n - 1 : 0, text);
    fflush(stderr);
    progress_shown = true;
    progress_drawn = now;
}

void term_progress_clear(void)
{
    if (progress_shown) fputs("\r\033[K", stderr);
    progress_shown = false;
}

size_t text_width(const char *utf8)
{
    size_t n = 0;
    for (; *utf8; utf8++) n += ((unsigned char)*utf8 & 0xc0) != 0x80;
    return n;
}

void table_init(table *t, const char *align) { *t = (table){.align = align, .columns = strlen(align)}; }

void table_cell(table *t, const char *text)
{
    t->cells = mem_grow(t->cells, t->count + 1, sizeof *t->cells);
    t->cells[t->count++] = mem_copy(text);
}

void table_format(table *t, const char *fmt, ...)
{
    buffer text = {0};
    va_list args;
    va_start(args, fmt);
    buffer_vprintf(&text, fmt, args);
    va_end(args);
    t->cells = mem_grow(t->cells, t->count + 1, sizeof *t->cells);
    t->cells[t->count++] = (char *)text.data;
}

void table_print(table *t, int indent, bool heading)
{
    size_t *width = mem_alloc(t->columns * sizeof *width), rows = t->count / t->columns;
    for (size_t i = 0; i < rows * t->columns; i++) {
        size_t w = text_width(t->cells[i]);
        if (w > width[i % t->columns]) width[i % t->columns] = w;
    }
    for (size_t r = 0; r < rows; r++) {
        if (heading && r == 0) term_color(stdout, TERM_BOLD);
        size_t last = t->columns; /* no blanks at the end of a line: cells behind `last` are empty */
        while (last > 1 && !t->cells[r * t->columns + last - 1][0]) last--;
        put("%*s", indent, "");
        for (size_t c = 0; c < last; c++) {
            const char *text = t->cells[r * t->columns + c];
            int pad = (int)(width[c] - text_width(text));
            if (t->align[c] == 'r')
                put("%*s%s", pad, "", text);
            else if (c + 1 < last)
                put("%s%*s", text, pad, "");
            else
                put("%s", text);
            if (c + 1 < last) put("  ");
        }
        if (heading && r == 0) term_color(stdout, TERM_PLAIN);
        put("\n");
    }
    free(width);
    table_free(t);
}

void table_free(table *t)
{
    for (size_t i = 0; i < t->count; i++) free(t->cells[i]);
    free(t->cells);
    *t = (table){0};
}
