/* tools/ortc/page.h: pages of HTML that need nothing but themselves, and drawings inside them: no script,
 * font or picture is fetched, so that a page can be mailed and opens without a network. */
#ifndef PAGE_H
#define PAGE_H

#include "cli.h"

/* Text out of a file, for HTML and SVG: what would be markup or a control character is made harmless, bytes
 * that are no UTF-8 become U+FFFD. */
void page_text(buffer *, const char *text);
/* The same with at most `most` code points, an ellipsis for the rest. */
void page_text_short(buffer *, const char *text, size_t most);

/* Everything up to the first line of the body, and everything behind its last. `style` is added to the common
 * one. Colours follow the reader's light or dark scheme. */
void page_begin(buffer *, const char *title, const char *style);
void page_end(buffer *, const char *script);

/* A colour of its own for every name, by the order of asking: "p0" to "p5", classes of the common style. */
enum { PAGE_COLORS = 6 };
extern const char page_style[]; /* for drawings that stand alone */

#endif
