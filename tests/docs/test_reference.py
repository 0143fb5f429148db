#!/usr/bin/env python3
"""The documentation as a site: it is built without a warning, and has every page and the contract of every public function.

usage: test_reference.py DOXYGEN SOURCE_DIR
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
import harness

doxygen, source = sys.argv[1], Path(sys.argv[2]).resolve()
SITE = source / "tools" / "docs" / "site.py"
PUBLIC = re.compile(r"^(?:ORTC_EXPORT|(?:ORTC_PRINTF\([^)]*\) )?static inline)\b[^;{]*?\b(ortc_\w+) ?\(", re.M)


def text(element: xml.Element | None) -> str:
    return "".join(element.itertext()).strip() if element is not None else ""


with tempfile.TemporaryDirectory(prefix="ortc-site-") as folder:
    r = subprocess.run([sys.executable, SITE, "build", doxygen, source, folder], capture_output=True, text=True)
    harness.check("it is built without a warning", lambda: r.stderr[-3000:] if r.returncode or r.stderr else None)
    told: dict[str, str] = {}
    structs: dict[str, set[str]] = {}
    titles: set[str] = set()
    for file in Path(folder, "xml").glob("*.xml"):
        for compound in xml.parse(file).iter("compounddef"):
            if compound.get("kind") == "page":
                titles.add(text(compound.find("title")))
            if compound.get("kind") in ("struct", "class"):
                structs[text(compound.find("compoundname"))] = {text(m.find("name")) for m in compound.iter("memberdef")}
            for member in compound.iter("memberdef"):
                if member.get("kind") == "function":
                    name = text(member.find("name"))
                    told[name] = told.get(name, "") + text(member.find("briefdescription")) + text(member.find("detaileddescription"))
    for header in ("ortc.h", "op.h", "program.h", "types.h"):
        said = (source / "include" / "ortc" / header).read_text()
        public = sorted(set(PUBLIC.findall(said)))
        harness.check(f"{header} has functions", lambda: None if len(public) > 1 else f"{public}")
        for name in public:
            harness.check(f"{header}: {name}", lambda: None if told.get(name) else "no contract" if name in told else "not there")
        for name, body in re.findall(r"^typedef struct (\w+) \{\n(.*?)^\} \1;", said, re.M | re.S):
            fields = set(re.findall(r"(\w+)(?:\[\w+\])?(?=;|, )", re.sub(r"/\*.*?\*/|\([^;]*?\)|\{[^}]*\}", "", body, flags=re.S)))
            harness.check(f"{header}: struct {name}", lambda: f"{fields - structs.get(name, set())} of {fields}" if fields - structs.get(name, set()) else None)
    for name in ("value", "model", "session", "state", "error"):
        harness.check(f"ortc.hpp: {name}", lambda: None if structs.get(f"ortc::{name}") else "not there")
    for page in ("Guide", "A first model", "Troubleshooting", "Adding an operator", "ortc in Python"):
        harness.check(f"page {page}", lambda: None if page in titles else f"{sorted(titles)}")
sys.exit(harness.finish())
