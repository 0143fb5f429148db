#!/usr/bin/env python3
"""Operators of which the standard's suite has no case, or few, against numpy and onnxruntime: test_oracles.py ORTC."""

from __future__ import annotations

import sys

from oracle import Case, compare, np

rng = np.random.default_rng(11)
f32, f64, i64 = np.float32, np.float64, np.int64


def r(*shape, t=f32):
    return rng.standard_normal(shape).astype(t)


def parts(z, t=f32):
    return np.stack([z.real, z.imag], -1).astype(t)


def case(name, op, inputs, **how):
    return Case(name, op, inputs, domain="", standard=how.pop("opset", 20), **how)


def transforms():
    """Lengths that are powers of two, primes, and products; shorter and longer than the signal."""
    for n in (1, 2, 3, 5, 8, 12, 17, 97, 100, 128, 243, 400, 1009):
        x, z = r(2, n, 1), r(2, n, 2)
        line, complex_line = x[..., 0].astype(f64), z[..., 0].astype(f64) + 1j * z[..., 1]
        yield case(f"dft_{n}", "DFT", {"x": z}, expected=[parts(np.fft.fft(complex_line))], atol=1e-4)
        yield case(f"dft_inverse_{n}", "DFT", {"x": z}, inverse=1, expected=[parts(np.fft.ifft(complex_line))], atol=1e-5)
        yield case(f"dft_half_{n}", "DFT", {"x": x}, onesided=1, expected=[parts(np.fft.rfft(line))], atol=1e-4)
        for length in sorted({n, n + 3, max(n // 2, 1)}):
            yield case(f"dft_real_{n}_{length}", "DFT", {"x": z, "length": np.array(length)}, inverse=1, onesided=1,
                       expected=[np.fft.irfft(complex_line, length)[..., None].astype(f32)], atol=1e-5)
            yield case(f"dft_cut_{n}_{length}", "DFT", {"x": z, "length": np.array(length)}, expected=[parts(np.fft.fft(complex_line, length))], atol=1e-4)
    x = r(3, 5, 4, 2)
    yield case("dft_axis", "DFT", {"x": x, "length": None, "axis": np.array(0)}, expected=[parts(np.fft.fft(x[..., 0] + 1j * x[..., 1], axis=0))], atol=1e-5)
    for n, step, length in ((60, 7, 16), (60, 5, 15), (64, 64, 64)):
        x, w = r(2, n, 1), r(length)
        frames = np.stack([x[:, i:i + length, 0].astype(f64) * w for i in range(0, n - length + 1, step)], 1)
        inputs = {"x": x, "step": np.array(step), "w": w}
        yield case(f"stft_{n}_{length}", "STFT", inputs, opset=17, onesided=1, expected=[parts(np.fft.rfft(frames))], atol=1e-4)
        yield case(f"stft_all_{n}_{length}", "STFT", inputs, opset=17, onesided=0, expected=[parts(np.fft.fft(frames))], atol=1e-4)


def pools():
    x = r(2, 3, 6, 7)
    for p in (1, 2, 3):
        yield case(f"global_lp_{p}", "GlobalLpPool", {"x": x}, opset=17, p=p)
        yield case(f"lp_{p}", "LpPool", {"x": x}, opset=17, p=p, kernel_shape=[3, 2], strides=[2, 1])
    for p in (0.5, 2.5):
        powers = np.abs(x).astype(f64) ** p
        yield case(f"global_lp_{p}", "GlobalLpPool", {"x": x}, opset=1, p=p, expected=[(powers.sum((2, 3), keepdims=True) ** (1 / p)).astype(f32)])
        windows = np.lib.stride_tricks.sliding_window_view(powers, (3, 2), (2, 3))[:, :, ::2]
        yield case(f"lp_{p}", "LpPool", {"x": x}, opset=1, p=p, kernel_shape=[3, 2], strides=[2, 1],
                   expected=[(windows.sum((4, 5)) ** (1 / p)).astype(f32)])
    rois = np.array([[0, 0, 0, 5, 4], [1, 1, 2, 3, 3], [1, -2, -2, 9, 9], [0, 4, 4, 1, 1]], f32)
    for scale in (1.0, 0.5):
        yield case(f"roi_{scale}", "MaxRoiPool", {"x": x, "rois": rois}, opset=17, pooled_shape=[2, 3], spatial_scale=scale)
    y, at = r(1, 2, 2, 3), np.array([0, 3, 5, 12, 14, 16, 24, 27, 29, 37, 39, 41]).reshape(1, 2, 2, 3)
    full = np.zeros(48, f32)
    full[at.ravel()] = y.ravel()
    yield case("unpool", "MaxUnpool", {"y": y, "at": at}, opset=11, kernel_shape=[2, 2], strides=[2, 2], expected=[full.reshape(1, 2, 4, 6)])


def others():
    for shape in ((1, 1), (4, 4), (2, 3, 9, 9)):
        x = r(*shape)
        yield case(f"det_{len(shape)}_{shape[-1]}", "Det", {"x": x}, opset=11, expected=[np.linalg.det(x.astype(f64)).astype(f32)])
    for corners in (0, 1):
        yield case(f"affine_{corners}", "AffineGrid", {"theta": r(2, 3, 4), "size": np.array([2, 1, 3, 4, 2])}, align_corners=corners)
    deform = {"x": r(2, 4, 6, 5), "w": r(4, 2, 3, 3), "offset": r(2, 36, 3, 3), "b": r(4), "mask": r(2, 18, 3, 3)}
    yield case("deform", "DeformConv", deform, opset=19, group=2, offset_group=2, strides=[2, 2], pads=[1, 1, 1, 1])
    yield case("deform_plain", "DeformConv", {"x": r(1, 2, 6, 5), "w": r(3, 2, 2, 2), "offset": r(1, 8, 5, 4)}, opset=19)
    blocks = r(2, 12, 9)
    x, s, b, mean, var = r(4, 3, 5), r(3), r(3), r(3), np.abs(r(3)) + 1
    own_mean, own_var = x.mean((0, 2)), x.var((0, 2))
    for opset in (6, 7, 9):  # onnxruntime gives another saved_var than the standard's text
        yield case(f"batch_saved_{opset}", "BatchNormalization", {"x": x, "s": s, "b": b, "mean": mean, "var": var}, opset=opset, outputs=5, momentum=0.75,
                   expected=[s[:, None] * (x - own_mean[:, None]) / np.sqrt(own_var[:, None] + f32(1e-5)) + b[:, None],
                             mean * f32(0.75) + own_mean * f32(0.25), var * f32(0.75) + own_var * f32(0.25), own_mean, own_var])
    for constants in ((), ("scales",)):  # nearest: up along what shrinks, down along what grows
        yield case(f"resize_10_{len(constants)}", "Resize", {"x": r(1, 2, 5, 3), "scales": np.array([1, 1, 0.6, 1.5], f32)}, opset=10, constants=constants)
    x = r(2, 5)
    yield case("split_1", "Split", {"x": x, "lengths": np.array([2, 3], f32)}, opset=1, axis=1, outputs=2, expected=[x[:, :2], x[:, 2:]])
    image = np.zeros((2, 3, 5, 6), f32)
    for k in range(4):
        for i in range(9):
            row, column = i // 3 * 2 + k // 2 - 1, i % 3 * 2 + k % 2
            if 0 <= row < 5:
                image[:, :, row, column] += blocks[:, k::4, i]
    yield case("col2im", "Col2Im", {"x": blocks, "image": np.array([5, 6]), "block": np.array([2, 2])}, opset=18, strides=[2, 2], pads=[1, 0, 0, 0],
               expected=[image])


if __name__ == "__main__":
    sys.exit(compare(case for family in (transforms, pools, others) for case in family()))
