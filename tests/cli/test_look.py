#!/usr/bin/env python3
"""view, convert, JPEG pictures, compare --shrink, pages, completion and manual pages.

usage: test_look.py ORTC
"""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import time
import xml.dom.minidom
from html.parser import HTMLParser

from command import MODELS, check, expect, finish, folder, ortc, put, refused, skip
from files import f32, identity, jpeg, model, node, npz, png, read_npy, tensor, value_info

DIGITS = MODELS / "digits.onnx"
SEVEN = MODELS / "digits" / "7.png"
BROWSER = shutil.which("chromium-headless-shell") or shutil.which("chromium")
COMMANDS = ("run", "bench", "profile", "compare", "info", "optimize", "test", "providers", "ops", "view", "convert", "completion", "man")


class Page(HTMLParser):
    """Elements by tag, and whether every one is closed; what it would fetch."""

    VOID = {"meta", "input", "br", "link", "img"}

    def __init__(self, text: str) -> None:
        super().__init__()
        self.count: dict[str, int] = {}
        self.ids: set[str] = set()
        self.fetches: list[str] = []
        self._open: list[str] = []
        self.broken = ""
        self.feed(text)
        self.broken = self.broken or ", ".join(self._open)

    def handle_starttag(self, tag, attrs):
        a = dict(attrs)
        self.count[tag] = self.count.get(tag, 0) + 1
        self.ids.add(a.get("id") or "")
        self.fetches += [v for k, v in attrs if k in ("src", "href")]
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self._open.pop()

    def handle_endtag(self, tag):
        if not self._open or self._open.pop() != tag:
            self.broken = self.broken or f"</{tag}>"


def in_browser(name: str, page: str, script: str, wanted: str) -> None:
    """Opens a page, runs a script in it that puts its answer in the title, and reads that back. Without a browser
    there is only the look at the structure, which the callers do besides."""
    if not BROWSER:
        print(f"no browser: {name} is checked by its structure only")
        return

    def case() -> str | None:
        text = (folder / page).read_text().replace("</body>", f"<script>document.title=String((()=>{{{script}}})())</script></body>")
        put("browser.html", text)
        r = subprocess.run([BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/browser", "--dump-dom",
                            f"file://{folder}/browser.html"], capture_output=True, text=True, timeout=60)  # fmt: skip
        title = re.search("<title>([^<]*)</title>", r.stdout)
        return None if title and title[1] == wanted else f"expected {wanted!r}, got {title and title[1]!r}: {r.stderr[-300:]}"

    check(name, case)


def view() -> None:
    def counts() -> tuple[int, int]:
        before = int(re.search(r"operators: (\d+)", ortc("info", DIGITS).out)[1])
        return before, len(ortc("info", DIGITS, "--placement", "--json").json()["placement"])

    before, after = counts()
    expect("view as SVG", "view", DIGITS, "-o", "digits.svg", out=f"after: {after} nodes\n",
           test=lambda r: None if f"before: {before} nodes" in r.out else "before")  # fmt: skip

    def svg() -> str | None:
        drawn = xml.dom.minidom.parse(str(folder / "digits.svg"))
        names = [t.firstChild.data for t in drawn.getElementsByTagName("text")]
        curves = [p for p in drawn.getElementsByTagName("path") if p.getAttribute("class") == "e"]
        nodes = [g for g in drawn.getElementsByTagName("g") if g.getAttribute("class") == "n"]
        # Each graph has its input and output besides, and no value that joins nothing.
        if len(nodes) != before + after + 4 or len(curves) < len(nodes) - 2:
            return f"{len(nodes)} nodes, {len(curves)} curves for {before} and {after}"
        return None if {"Conv", "cpu", "ref"} <= set(names) and any(n.startswith("+ ") and "Relu" in n for n in names) else f"{names}"

    check("the drawing", svg)

    def apart() -> str | None:
        """No two nodes of a graph overlap, and every node lies below those that it reads."""
        drawn = xml.dom.minidom.parse(str(folder / "digits.svg"))
        for graph in [g for g in drawn.getElementsByTagName("g") if g.getAttribute("transform")]:
            rects = [[float(r.getAttribute(k)) for k in ("x", "y", "width", "height")] for r in graph.getElementsByTagName("rect")]
            for i, (x, y, w, h) in enumerate(rects):
                for X, Y, W, H in rects[:i]:
                    if x < X + W and X < x + w and y < Y + H and Y < y + h:
                        return f"{(x, y, w, h)} on {(X, Y, W, H)}"
            for p in graph.getElementsByTagName("path"):
                numbers = [float(v) for v in re.findall(r"-?[\d.]+", p.getAttribute("d"))]
                if numbers[1] > numbers[-1]:
                    return "a value goes up"
        return None

    check("nodes stand apart", apart)
    expect("view as a page", "view", DIGITS, "-o", "digits.html", out="after:")

    def page() -> str | None:
        p = Page((folder / "digits.html").read_text())
        return None if not p.broken and not p.fetches and {"before", "after", "find"} <= p.ids else f"{p.broken} {p.fetches} {p.ids}"

    check("the page", page)
    in_browser("the page finds nodes", "digits.html", "return find('conv1')>0&&document.querySelectorAll('.found').length>0", "true")
    expect("view --graph", "view", DIGITS, "-o", "one.svg", "--graph", "before", test=lambda r: None if r.out == f"before: {before} nodes\n" else "one")
    nasty = put("nasty.onnx", model([node("Relu", ["a<b&\x01"], ["y"], name='"></script>')], [value_info("a<b&\x01", "f32", (2,))],
                                    [value_info("y", "f32", (2,))]))  # fmt: skip
    expect("names cannot leave their place", "view", nasty, "-o", "nasty.svg")
    check("they are text", lambda: None if xml.dom.minidom.parse(str(folder / "nasty.svg")) else "")
    refused("view: no file", "view", DIGITS, err="expects -o FILE.html or -o FILE.svg")
    refused("view: another file", "view", DIGITS, "-o", "x.png", err="expects -o FILE.html or -o FILE.svg, got x.png")
    refused("view: nowhere", "view", DIGITS, "-o", "none/x.svg", code=6, err="-o: cannot write 'none/x.svg'")
    # 5,000 nodes, ten wide, that mix their neighbours: what a large network looks like.
    wide, names = [], [f"x{i}" for i in range(10)]
    for layer in range(500):
        made = [f"v{layer}_{i}" for i in range(10)]
        wide += [node("Add", [names[i], names[(i * 3 + layer) % 10]], [made[i]], name=made[i]) for i in range(10)]
        names = made
    put("wide.onnx", model(wide, [value_info(f"x{i}", "f32", (4,)) for i in range(10)], [value_info(n, "f32", (4,)) for n in names]))
    started = time.monotonic()
    expect("view of 5,000 nodes", "view", "wide.onnx", "-o", "wide.html", "--graph", "before", out="before: 5000 nodes")
    took = time.monotonic() - started
    check("it takes seconds", lambda: None if took < 60 else f"{took:.1f} s")


def pictures() -> None:
    def is_u8(name: str, shape: tuple, data: bytes):
        def test(r):
            descr, got, raw = read_npy((folder / name).read_bytes())
            return None if (descr, got, raw) == ("|u1", shape, data) else f"{descr} {got} {raw[:24]!r}"
        return test  # fmt: skip

    grey = bytes(v for _ in range(8) for v in [200] * 8 + [31] * 8)
    put("grey.jpg", jpeg([(200,), (31,)]))
    expect("a grey JPEG", "convert", "grey.jpg", "grey.npy", out="picture  u8[8,16,1]", test=is_u8("grey.npy", (8, 16, 1), grey))
    put("color.jpeg", jpeg([(100, 128, 128), (76, 85, 255)]))  # grey, and red

    def red(r) -> str | None:
        _, shape, raw = read_npy((folder / "color.npy").read_bytes())
        left, right = raw[:3], raw[8 * 3 : 8 * 3 + 3]
        near = all(abs(a - b) <= 2 for a, b in zip(left + right, (100, 100, 100, 254, 0, 0)))
        return None if shape == (8, 16, 3) and near else f"{shape} {left!r} {right!r}"

    expect("a colour JPEG", "convert", "color.jpeg", "color.npy", test=red)
    put("gray.onnx", identity("f32", (1, 1, 8, 8)))
    put("half.jpg", jpeg([(128,)]))
    expect("a JPEG as input", "run", "gray.onnx", "-i", "half.jpg", out="min 128  max 128")
    expect("and in a batch with a PNG", "run", put("gray2.onnx", identity("u8", (2, 8, 8, 1))), "-i", "half.jpg", "-i",
           put("half.png", png(8, 8, 0, 8, [bytes([128] * 8)] * 8)), out="min 128  max 128")  # fmt: skip
    cut = jpeg([(128,), (12,), (250,)])
    refused("half a JPEG's head", "convert", put("cut.jpg", cut[:90]), "cut.npy", err="cut.jpg' cannot be read: ")
    refused("no JPEG", "convert", put("no.jpg", b"\xff\xd8\xff\xe0" + bytes(9)), "no.npy", err="no.jpg' cannot be read: ")
    huge = cut.replace(struct.pack(">HH", 8, 24), struct.pack(">HH", 65000, 65000))
    refused("a JPEG too large", "convert", put("huge.jpg", huge), "huge.npy", err="65000 x 65000 pixels")
    for at in range(2, len(cut), 9):  # whatever is wrong, it ends well
        hurt = put("hurt.jpg", cut[:at] + bytes([cut[at] ^ 0x5A]) + cut[at + 1 :])
        check(f"a JPEG hurt at {at}", lambda: None if ortc("convert", hurt, "hurt.npy").code in (0, 2) else "code")


def convert() -> None:
    put("x.npy", f32(1, 2.5, 3))
    expect("npy to pb", "convert", "x.npy", "x.pb", "--name", "input", out="input  f32[3]")
    expect("pb to npy", "convert", "x.pb", "back.npy", test=lambda r: None if (folder / "back.npy").read_bytes() == (folder / "x.npy").read_bytes() else "bytes")
    put("two.npz", npz({"a": f32(1), "b": f32(2, 3)}))
    expect("npz to npz", "convert", "two.npz", "three.npz", "--compress", out="b  f32[2]")
    expect("one array of several", "convert", "two.npz:b", "b.npy", test=lambda r: None if (folder / "b.npy").read_bytes() == f32(2, 3) else "bytes")
    refused("several into one", "convert", "two.npz", "b.npy", err="has 2 (a, b): name one, as in two.npz:KEY")
    refused("no such array", "convert", "two.npz:c", "b.npy", err="has no array 'c'")
    refused("no such file", "convert", "none.npy", "b.npy", err="none.npy")
    refused("nowhere", "convert", "x.npy", "none/x.pb", code=6, err="cannot write 'none/x.pb'")
    refused("another kind", "convert", "x.txt", "x.pb", err="expects a .npy, .npz or .pb file or a picture to read")
    refused("into another kind", "convert", "x.npy", "x.jpg", err="expects a .npy, .npz, .pb or .png file to write")
    expect("--dtype", "convert", put("w.npy", f32(1, 2)), "w.pb", "--dtype", "i64", out="x  i64[2]")
    refused("--dtype that loses", "convert", "x.npy", "y.npy", "--dtype", "i64", err="element 1 of 'x' does not fit i64 exactly; --cast rounds")
    expect("--cast", "convert", "x.npy", "y.npy", "--dtype", "i64", "--cast", out="i64[3]")
    refused("--dtype of none", "convert", "x.npy", "y.npy", "--dtype", "f33", err="expects an element type such as f32 or i64, got 'f33'")
    pixels = [bytes([x * 20 + y for x in range(6)]) for y in range(2)]  # two pixels of RGB a row
    put("rgb.png", png(2, 2, 2, 8, pixels))
    expect("a picture and back", "convert", "rgb.png", "rgb.npy", out="u8[2,2,3]")
    expect("from a tensor", "convert", "rgb.npy", "again.png")
    expect("the same pixels", "convert", "again.png", "again.npy", test=lambda r: None if (folder / "again.npy").read_bytes() == (folder / "rgb.npy").read_bytes() else "pixels")
    expect("channels first, as numbers", "convert", "rgb.png", "nchw.npy", "--layout", "nchw", "--scale", "1/255", out="f32[1,3,2,2]")
    expect("f32 from 0 to 1", "convert", "nchw.npy", "unit.png")
    expect("the same pixels again", "convert", "unit.png", "unit.npy", test=lambda r: None if (folder / "unit.npy").read_bytes() == (folder / "rgb.npy").read_bytes() else "pixels")
    refused("no picture", "convert", "x.npy", "x.png", err="a picture is u8 or f32 of [height,width] with 1 or 3 channels first or last, got f32[3]")


def symbols() -> None:
    add = put("add.onnx", model([node("Add", ["a", "b"], ["y"])], [value_info(n, "f32", ("n",)) for n in "ab"], [value_info("y", "f32", ("n",))]))
    put("five.npy", f32(1, 2, 3, 4, 5))
    for order in (("-i", "b=five.npy", "-i", "rand"), ("-i", "a=rand", "-i", "b=five.npy")):
        expect(f"made-up inputs fit files: {order[1]}", "run", add, *order, out="y  f32[5]")
    expect("in bench, too", "profile", add, "-i", "b=five.npy", "--runs", "1", "--warmup", "0", out="Add")


def shrink() -> None:
    """One node of five differs between two sides: ref sums in double, cpu in float."""
    ones = struct.pack("<4096f", *([1e8, 1.0, -1e8, 1.0] * 1024))
    nodes = [node("Relu", ["x"], ["r"], name="relu"), node("Add", ["r", "r"], ["a"], name="add"),
             node("MatMul", ["a", "w"], ["m"], name="product"), node("Neg", ["m"], ["n"], name="neg"),
             node("Abs", ["n"], ["y"], name="abs")]  # fmt: skip
    put("sum.onnx", model(nodes, [value_info("x", "f32", (1, 4096))], [value_info("y", "f32", (1, 1))], [tensor("f32", (4096, 1), ones, "w")]))
    put("third.npy", f32(*[(i * 37 % 101) / 101 for i in range(4096)], shape=(1, 4096)))
    expect("shrink", "compare", "sum.onnx", "-i", "third.npy", "--rtol", "0", "--atol", "0", "--shrink", "part.onnx", code=1,
           out="'m' still differs in a part of 1 node of 5: part.onnx, inputs in part.npz")  # fmt: skip
    expect("the part by itself", "info", "part.onnx", out="operators: 1 nodes")
    expect("with its inputs", "compare", "part.onnx", "-i", "part.npz", "--rtol", "0", "--atol", "0", code=1, out="1 of 1")
    expect("nothing to shrink", "compare", DIGITS, "-q", "--shrink", "none.onnx", out="0 of 10",
           test=lambda r: "written" if (folder / "none.onnx").exists() else None)  # fmt: skip
    refused("shrink of two", "compare", "sum.onnx", "part.onnx", "--shrink", "x.onnx", err="--shrink expects one model")
    expect("no onnxruntime", "compare", DIGITS, "-q", "--against", "onnxruntime", code=5, err="onnxruntime: ", ORTC_PYTHON="/nowhere/python3")


def profile_page() -> None:
    expect("profile --page", "profile", DIGITS, "-q", "--runs", "3", "--page", "p.html", out="roof: the share of what this machine gives")

    def page() -> str | None:
        text = (folder / "p.html").read_text()
        p = Page(text)
        if p.broken or p.fetches or not {"timeline", "memory", "roofline", "nodes"} <= p.ids:
            return f"{p.broken} {p.fetches} {p.ids}"
        steps = ortc("info", DIGITS, "--steps", "--json", "-q").json()["steps"]
        rows = text.split("<tbody>")[1].count("<tr>")
        bars = text.count('class="bar"')
        return None if rows == len(steps) == bars and text.count('class="dot"') >= 4 else f"{rows} rows, {bars} bars, {len(steps)} steps"

    check("the page", page)
    in_browser("the table sorts", "p.html", "const t=document.querySelector('#nodes');t.rows[0].cells[0].click();t.rows[0].cells[0].click();"
               "const n=[...t.tBodies[0].rows].map(r=>r.cells[0].textContent);"
               "return n.length>3&&n.join()===n.slice().sort().join()&&document.querySelector('#memory').getBBox().width>100", "true")  # fmt: skip
    expect("profile --json has the machine", "profile", DIGITS, "-q", "--json", "--by", "node",
           test=lambda r: None if r.json()["machine"]["flops"] > 1e8 and r.json()["machine"]["bytes"] > 1e8
           and any(line["roof"] > 0 for line in r.json()["lines"]) else "numbers")  # fmt: skip
    refused("profile --page: nowhere", "profile", DIGITS, "--page", "none/p.html", code=6, err="--page: cannot write")


ZSHRC = """
fpath=($PWD/zsh $fpath)
autoload -Uz compinit
compinit -u -d $PWD/zsh/dump
compadd() { # what is offered, in the end, goes to a file, too
    local -a shown
    if [[ ${@[1,(i)(-|--)]} != *-(O|A|D)\\ * ]]; then
        builtin compadd -O shown "$@"
        print -rl -- $shown >>|zsh/offered
    fi
    builtin compadd "$@"
}
zle-line-init() { LBUFFER=$LINE; zle complete-word; exit }
zle -N zle-line-init
"""


def shell(words: list[str], **environment: str) -> str:
    """What a shell says on a terminal, until it ends."""
    ours, its = pty.openpty()
    home = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "XDG_DATA_HOME": str(folder), "TERM": "xterm", "LC_ALL": "C.UTF-8"}
    process = subprocess.Popen(words, cwd=folder, stdin=its, stdout=its, stderr=its, env=home | environment, start_new_session=True)
    os.close(its)
    said, end = b"", time.monotonic() + 60
    while time.monotonic() < end:
        if not select.select([ours], [], [], 0.1)[0]:
            if process.poll() is not None:
                break
            continue
        try:
            said += os.read(ours, 65536)
        except OSError:  # the terminal's other end is closed
            break
    process.kill()
    process.wait()
    os.close(ours)
    return said.decode(errors="replace")


def by_bash(line: str) -> set[str]:
    words = line.split(" ")
    array = " ".join(f"'{w}'" for w in words)
    r = subprocess.run(["bash", "-c", f". ./ortc.bash; COMP_WORDS=({array}); COMP_CWORD={len(words) - 1}; _ortc; printf '%s\\n' \"${{COMPREPLY[@]}}\""],
                       cwd=folder, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"})  # fmt: skip
    return set(r.stdout.split() + r.stderr.split())


def by_fish(line: str) -> set[str]:
    return {said.split("\t")[0].strip() for said in shell(["fish", "--no-config", "-c", 'source ortc.fish; complete -C "$LINE"'], LINE=line).splitlines()} - {""}


def by_zsh(line: str) -> set[str]:
    put("zsh/offered", b"")
    said = shell(["zsh", "-i"], LINE=line, ZDOTDIR=str(put("zsh/.zshrc", ZSHRC).parent))
    return set((folder / "zsh" / "offered").read_text().split()) or {said}


def completion() -> None:
    for name in ("bash", "zsh", "fish"):
        expect(f"completion {name}", "completion", name, out="ortc", test=lambda r: None if all(c in r.out for c in COMMANDS) else "commands")
    refused("completion of none", "completion", "csh", err="expects bash, zsh or fish, got 'csh'")
    put("here.onnx", b"")
    for name, script, by in (("bash", "ortc.bash", by_bash), ("zsh", "zsh/_ortc", by_zsh), ("fish", "ortc.fish", by_fish)):
        if not shutil.which(name):
            skip(f"{name} completes", f"there is no {name}")
            continue
        put(script, ortc("completion", name).out)
        for line, wanted in (("ortc prof", {"profile"}), ("ortc run --la", {"--labels", "--layout"}), ("ortc run --layout n", {"nchw", "nhwc"}),
                             ("ortc run her", {"here.onnx"}), ("ortc completion f", {"fish"}), ("ortc help comp", {"compare", "completion"}),
                             ("ortc optimize --fo", {"--fold", "--force"})):  # fmt: skip
            check(f"{name} completes {line}", lambda: None if (got := by(line)) == wanted else f"{got}")
    expect("man", "man", out='.TH ORTC 1 "" "ortc ')
    for c in COMMANDS:
        options = set(re.findall(r"^ +(?:-\w, )?--([\w-]+)", ortc("help", c).out, re.M))
        expect(f"man {c}", "man", c, out=f".TH ORTC-{c.upper()} 1",
               test=lambda r: None if options == {o.replace("\\-", "-") for o in re.findall(r"\\fB\\-\\-(.*?)\\fR", r.out)} else "options")  # fmt: skip
    if shutil.which("man"):
        put("run.1", ortc("man", "run").out)
        r = subprocess.run(["man", "--warnings", "-l", "run.1"], cwd=folder, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", "MANWIDTH": "90", "LC_ALL": "C.UTF-8"})
        check("man shows it", lambda: r.stderr or (None if "--input [NAME=]VALUE" in r.stdout else r.stdout[:500]))
    refused("man of none", "man", "nothing", err="there is no command 'nothing'")


if __name__ == "__main__":
    view()
    pictures()
    convert()
    symbols()
    shrink()
    profile_page()
    completion()
    sys.exit(finish())
