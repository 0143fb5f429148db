"""Runs programs that are written for onnxruntime on ortc, as they are:

    python -m ortc.as_onnxruntime program.py [argument...]
    python -m ortc.as_onnxruntime -m module [argument...]

or, from Python, before the program imports onnxruntime:

    import ortc.as_onnxruntime
    ortc.as_onnxruntime.install()
"""

from __future__ import annotations

import importlib.machinery
import os
import runpy
import sys

import ortc.onnxruntime


def install() -> None:
    """From now on, `import onnxruntime` gives ortc.onnxruntime."""
    names = {"onnxruntime": ortc.onnxruntime}
    names.update({f"onnxruntime.{name}": module for name, module in ortc.onnxruntime.SUBMODULES.items()})
    for name, module in names.items():
        if module.__spec__ is None:  # importlib.util.find_spec asks for it
            module.__spec__ = importlib.machinery.ModuleSpec(name, None)
        sys.modules[name] = module


def main() -> None:
    arguments = sys.argv[1:]
    as_module = arguments[:1] == ["-m"]
    if len(arguments) < 1 + as_module:
        sys.exit("usage: python -m ortc.as_onnxruntime [-m] PROGRAM [argument...]")
    install()
    sys.argv = arguments[as_module:]
    if as_module:
        sys.path.insert(0, os.getcwd())
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))
        runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
