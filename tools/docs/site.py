#!/usr/bin/env python3
"""Builds the documentation as a site: the guide's pages and the headers' contracts, by Doxygen.

    site.py build DOXYGEN SOURCE OUT    HTML in OUT/html, XML in OUT/xml; what Doxygen warns of is an error
    site.py filter FILE                 what Doxygen reads instead of a file: it calls this

Headers and pages are written for those who read them where they lie, in plain comments and in Markdown as GitHub shows
it. The filters say the same in Doxygen's way:
  headers   comments become Doxygen's; a section's line becomes a group; declarations that stand together below one
            comment share it; lines of a word and its meaning become a list
  pages     each gets a label, links between pages become references, links to other files plain names
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

# What is read, in the order of the site's index.
PAGES = ["README.md", "docs/guide/README.md", "docs/guide/first-model.md", "docs/guide/command-line.md", "docs/guide/c.md", "docs/python.md",
         "docs/guide/providers.md", "docs/guide/speed.md", "docs/guide/memory.md", "docs/guide/troubleshooting.md", "docs/add-an-op.md",
         "docs/add-a-provider.md", "docs/design.md", "docs/performance.md", "docs/operators.md", "docs/conformance.md", "CONTRIBUTING.md",
         "CHANGELOG.md"]  # fmt: skip
HEADERS = ["ortc.h", "types.h", "ortc.hpp", "op.h", "program.h", "provider.h"]

SETTINGS = """
PROJECT_NAME = ortc
PROJECT_NUMBER = {version}
PROJECT_BRIEF = "Runs ONNX models"
OUTPUT_DIRECTORY = "{out}"
INPUT = {inputs}
FILTER_PATTERNS = "*.h={filter}" "*.hpp={filter}" "*.md={filter}"
USE_MDFILE_AS_MAINPAGE = "{source}/README.md"
STRIP_FROM_PATH = "{source}" "{source}/include"
OPTIMIZE_OUTPUT_FOR_C = YES
EXTRACT_STATIC = YES
JAVADOC_AUTOBRIEF = YES
SORT_MEMBER_DOCS = NO
TYPEDEF_HIDES_STRUCT = YES
MACRO_EXPANSION = YES
EXPAND_ONLY_PREDEF = YES
PREDEFINED = ORTC_EXPORT= "ORTC_PRINTF(a,b)="
WARN_IF_UNDOCUMENTED = NO
WARN_AS_ERROR = FAIL_ON_WARNINGS
QUIET = YES
GENERATE_LATEX = NO
GENERATE_XML = YES
XML_PROGRAMLISTING = NO
GENERATE_TREEVIEW = YES
DISABLE_INDEX = YES
VERBATIM_HEADERS = NO
SHOW_USED_FILES = NO
HTML_TIMESTAMP = NO
TOC_INCLUDE_HEADINGS = 2
HAVE_DOT = NO
"""

# ---- Headers

COMMENT = re.compile(r"/\*.*?\*/", re.S)
SECTION = re.compile(r"/\* -{2,} (.*?) -+ \*/")
DECLARATION = re.compile(r"^(?:ORTC_EXPORT|(?:ORTC_PRINTF\([^)]*\) )?static inline)\b[^;{]*[;{][^\n]*", re.M)
MEANING = re.compile(r"^ {2,3}((?! )[^\"(;=]+?) {2,}(\S.*)$")


def escaped(line: str) -> str:
    """Doxygen's own signs, which mean nothing here; code in backquotes is left alone."""
    parts = line.split("`")
    return "`".join(p if i % 2 else re.sub(r"([\\@<>#%&])", r"\\\1", p) for i, p in enumerate(parts))


def body(comment: str) -> str:
    """A comment's text, its lists as such."""
    lines = [re.sub(r"^\s*\* ?", "", line) if i else line for i, line in enumerate(comment[2:-2].strip("\n ").split("\n"))]
    out: list[str] = []
    item = code = False
    for line in lines:
        meaning = MEANING.match(line)
        code = not item and not meaning and line.startswith("  ") and (code or not out or not out[-1].strip())
        if meaning:
            if not item and out and out[-1].strip():
                out.append("")
            out.append(f"- `{meaning[1]}`: " + escaped(meaning[2]))
            item = True
        elif item and line.startswith("  "):
            out.append("  " + escaped(line.strip()))
        else:
            if item and line.strip():
                out.append("")
            item = False
            out.append("    " + line if code else escaped(line))
    return "\n".join(out)


def doc(comment: str, mark: str = "/**", extra: str = "") -> str:
    return f"{mark} {body(comment)}{extra} */"


def paragraph(text: str) -> str:
    """Declarations that stand together: each gets the comment above it, also if others stand between."""
    lead, out, at = None, "", 0
    for d in DECLARATION.finditer(text):
        before, declaration = text[at : d.start()], d[0]
        own = before.rstrip().endswith("*/")
        lead = ([lead] + COMMENT.findall(before))[-1]
        trailing = COMMENT.search(declaration)
        says = [body(c) for c in ([trailing[0]] if trailing else []) + ([lead] if lead and not own else [])]
        code = COMMENT.sub("", declaration).rstrip() if trailing else declaration
        out += (COMMENT.sub(place(before), before) if before.strip() else before)
        out += (f"/** {'. '.join(s.rstrip('.') for s in says)}. */\n" if says else "") + code
        at = d.end()
    rest = text[at:]
    return out + COMMENT.sub(place(rest), rest)


def place(text: str):
    """Behind code a comment is about it; alone on its lines, about what follows."""
    def convert(c: re.Match) -> str:
        alone = not text[text.rfind("\n", 0, c.start()) + 1 : c.start()].strip()
        return doc(c[0]) if alone else doc(c[0], "/**<")

    return convert


def header(text: str) -> str:
    first = COMMENT.match(text)
    out = [f"/** @file\n{body(first[0])}\n*/\n"] if first else []
    opened = False
    for part in re.split(r"\n[ \t]*\n", text[first.end() if first else 0 :]):
        section = SECTION.match(part.strip())
        if section:
            out.append(("/** @} */\n" if opened else "") + f"/** @name {section[1]}\n * @{{ */")
            opened, part = True, part.strip()[section.end() :]
        if opened and part.lstrip().startswith("#ifdef __cplusplus"):
            out.append("/** @} */")
            opened = False
        out.append(paragraph(part))
    return "\n\n".join(out)


# ---- Pages


def label(page: str) -> str:
    return "page_" + re.sub(r"\W", "_", page.removesuffix(".md").lower())


def page(text: str, path: str, root: Path) -> str:
    folder = (root / path).parent
    out, fence = [], False
    for i, line in enumerate(text.split("\n")):
        if line.startswith("```"):
            kind = "" if fence else line[3:].split(" ")[0]
            out.append("```" + {"c++": "cpp", "sh": "", "text": ""}.get(kind, kind))
            fence = not fence
            continue

        def link(m: re.Match) -> str:
            file = Path(os.path.normpath(folder / m[2].split("#")[0]))
            name = file.relative_to(root).as_posix() if file.is_relative_to(root) else ""
            if m[2].startswith("http"):
                return m[0]
            if name in PAGES:
                return f"[{m[1]}](@ref {label(name)})"
            return f"[{m[1]}](@ref {file.name})" if name.startswith("include/ortc/") and file.name in HEADERS else m[1]

        if not fence and not line.startswith("    "):
            line = re.sub(r"\[([^\]]+)\]\(([^)]+)\)", link, line)
            line = "`".join(p if k % 2 else re.sub(r"(?<!\()@(?!ref )|<(?=[a-z/])", r"\\\g<0>", p) for k, p in enumerate(line.split("`")))
        out.append(line + f" {{#{label(path)}}}" if i == 0 and line.startswith("# ") and path != "README.md" else line)
    return "\n".join(out)


def main() -> int:
    if sys.argv[1] == "filter":
        path = Path(sys.argv[2]).resolve()
        root = Path(__file__).resolve().parent.parent.parent
        text = path.read_text(encoding="utf-8")
        print(page(text, path.relative_to(root).as_posix(), root) if path.suffix == ".md" else header(text))
        return 0
    doxygen, source, out = sys.argv[2], Path(sys.argv[3]).resolve(), Path(sys.argv[4]).resolve()
    out.mkdir(parents=True, exist_ok=True)
    version = re.search(r"version: '([^']+)'", (source / "meson.build").read_text())[1]
    inputs = [source / p for p in PAGES] + [source / "include" / "ortc" / h for h in HEADERS]
    settings = SETTINGS.format(version=version, source=source, out=out, inputs=" ".join(f'"{p}"' for p in inputs),
                               filter=f"{sys.executable} {Path(__file__).resolve()} filter")  # fmt: skip
    return subprocess.run([doxygen, "-"], input=settings, text=True).returncode


if __name__ == "__main__":
    sys.exit(main())
