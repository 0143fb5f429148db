/* tools/ortc/page.c: the frame of a page, and text made harmless; see page.h. */
#include "page.h"

#include <string.h>

const char page_style[] =
    ":root{--back:#fff;--fore:#1f2328;--dim:#656d76;--line:#d0d7de;--edge:#8c959f;--hot:#cf222e;--sum:#"
    "0969da}\n"
    "@media(prefers-color-scheme:dark){:root{--back:#0d1117;--fore:#e6edf3;--dim:#8d96a0;--line:#30363d;"
    "--edge:#6e7681;--hot:#ff7b72;--sum:#58a6ff}}\n"
    "svg{font:12px system-ui,sans-serif;color:var(--fore)}\n"
    "svg text{fill:var(--fore)}svg .dim{fill:var(--dim)}svg .axis{stroke:var(--line);fill:none}\n"
    ".p0{fill:#2da44e33;stroke:#2da44e}.p1{fill:#8c959f33;stroke:#8c959f}.p2{fill:#0969da33;stroke:#0969da}"
    ".p3{fill:#bf870033;stroke:#bf8700}.p4{fill:#8250df33;stroke:#8250df}.p5{fill:#cf222e33;stroke:#cf222e}"
    "\n";

/* The length of the UTF-8 sequence at `s`, 0 when it is none. */
static size_t sequence(const unsigned char *s)
{
    const size_t n = *s < 0x80 ? 1 : *s >= 0xc2 && *s < 0xe0 ? 2 : *s >= 0xe0 && *s < 0xf0 ? 3 : 4;
    if (n == 4 && (*s < 0xf0 || *s > 0xf4)) return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    const bool bad = (s[0] == 0xc2 && s[1] < 0xa0) || (s[0] == 0xe0 && s[1] < 0xa0) ||
                     (s[0] == 0xed && s[1] >= 0xa0) || (s[0] == 0xf0 && s[1] < 0x90) ||
                     (s[0] == 0xf4 && s[1] >= 0x90);
    return bad ? 0 : n;
}

void page_text_short(buffer *b, const char *text, size_t most)
{
    const unsigned char *s = (const unsigned char *)text;
    for (size_t count = 0; *s; count++) {
        if (count == most) {
            buffer_printf(b, "…");
            return;
        }
        const size_t n = sequence(s);
        const char *instead = *s == '&'                       ? "&amp;"
                              : *s == '<'                     ? "&lt;"
                              : *s == '>'                     ? "&gt;"
                              : *s == '"'                     ? "&quot;"
                              : *s == '\''                    ? "&#39;"
                              : *s == '\n'                    ? " "
                              : !n || *s < 0x20 || *s == 0x7f ? "\xef\xbf\xbd"
                                                              : NULL;
        if (instead)
            buffer_add(b, instead, strlen(instead));
        else
            buffer_add(b, s, n);
        s += n ? n : 1;
    }
}

void page_text(buffer *b, const char *text) { page_text_short(b, text, SIZE_MAX); }

void page_begin(buffer *b, const char *title, const char *style)
{
    buffer_printf(b, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                     "<meta name=\"viewport\" content=\"width=device-width\">\n<title>");
    page_text(b, title);
    buffer_printf(b,
                  "</title>\n<style>\n%s"
                  "body{margin:0 auto;max-width:1200px;padding:1em;font:14px/1.5 system-ui,sans-serif;"
                  "background:var(--back);color:var(--fore)}\n"
                  "h1{font-size:1.4em}h2{font-size:1.1em;margin-top:2em}\n"
                  "table{border-collapse:collapse;font-variant-numeric:tabular-nums}\n"
                  "th,td{padding:.15em .7em;text-align:left;border-bottom:1px solid var(--line)}\n"
                  "th{cursor:pointer;white-space:nowrap}td.n,th.n{text-align:right}\n%s</style>\n</head>\n"
                  "<body>\n",
                  page_style, style);
}

void page_end(buffer *b, const char *script)
{
    if (*script) buffer_printf(b, "<script>\n%s</script>\n", script);
    buffer_printf(b, "</body>\n</html>\n");
}
