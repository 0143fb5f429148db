#!/usr/bin/env python3
"""PyTorch's tensors on a GPU in and out of the Python package without copies: test_dlpack.py [LIBORTC_CUDA.so]

Skipped (77) where there is no package ortc, no PyTorch with CUDA or no GPU."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
import harness

ortc, parser, torch = harness.packages("ortc", "onnx.parser", "torch")
if not torch.cuda.is_available():
    harness.skip("PyTorch sees no GPU")
if len(sys.argv) > 1:
    ortc.load_plugin(sys.argv[1])
TEXT = '<ir_version: 10, opset_import: ["" : 21]> g (float[n,m] x) => (float[n,m] y) {a = MatMul(x, x) b = Sub(a, a) y = Sub(b, x)}'


def main() -> int:
    session = ortc.Session(parser.parse_model(TEXT).SerializeToString(), providers="cuda,cpu", require="cuda")
    x = torch.randn(256, 256, device="cuda")

    def run(x, **options):
        return torch.from_dlpack(session.run({"x": x}, device="cuda", **options)["y"])

    harness.check("a tensor in and out", lambda: None if torch.equal(run(x), -x) else "it differs")
    harness.check("nothing goes over the host", lambda: None if session.statistics()["bytes_to_devices"] == 0 == session.statistics()["bytes_from_devices"] else f"{session.statistics()}")
    value = session.run({"x": x}, device="cuda")["y"]
    harness.check("DLPack's device", lambda: None if value.__dlpack_device__() == (2, 0) else f"{value.__dlpack_device__()}")
    harness.check("no copy", lambda: None if torch.from_dlpack(value).data_ptr() == torch.from_dlpack(value).data_ptr() else "copied")
    out = torch.empty_like(x)
    session.run({"x": x}, out={"y": out})
    harness.check("out", lambda: None if torch.equal(out, -x) else "it differs")
    harness.check("to the host", lambda: None if (session.run({"x": x})["y"] == -x.cpu().numpy()).all() else "it differs")

    def ordered(**options) -> str | None:
        """What a stream has still to do comes before the run."""
        for i in range(1, 4):
            torch.cuda._sleep(200_000_000)
            x.fill_(i)
            if not torch.equal(run(x, **options), torch.full_like(x, -i)):
                return f"run {i} was too early"
        return None

    harness.check("behind the default stream", ordered)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        harness.check("behind another stream, by an event", ordered)
        harness.check("on the caller's stream", lambda: ordered(stream=side.cuda_stream))
        before = session.statistics()["replays"]
        for _ in range(5):
            session.run({"x": x}, out={"y": out}, stream=side.cuda_stream)
        harness.check("where graphs are replayed", lambda: None if session.statistics()["replays"] > before else f"{session.statistics()}")
        harness.check("and are right", lambda: None if torch.equal(out, -x) else "it differs")
    harness.check("strides are refused", lambda: None if refused(lambda: run(x.T[:, :3])) else "taken")
    return harness.finish()


def refused(call) -> bool:
    try:
        call()
    except (BufferError, TypeError):
        return True
    return False


if __name__ == "__main__":
    sys.exit(main())
