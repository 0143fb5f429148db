#!/usr/bin/env python3
"""The networks that ortc is measured with: networks.py [--small] FOLDER [FILTER] writes them, each in the form that exporters give it.

Weights come from a seed, so nobody has to download anything; what they compute means nothing, how long it takes does. Each also exists
at a small size, for tests. peers.py measures them, test_networks.py runs the small ones.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
from harness import packages  # noqa: E402

np, onnx = packages("numpy", "onnx")
import classifiers  # noqa: E402
import convnets  # noqa: E402
import decoders  # noqa: E402
import encoders  # noqa: E402
import make_bert  # noqa: E402
import make_llama  # noqa: E402
import pictures  # noqa: E402
import small_networks  # noqa: E402
from half import half  # noqa: E402
from make_bert import Sizes  # noqa: E402


@dataclass(frozen=True)
class Network:
    group: str
    name: str
    make: Callable[[], onnx.ModelProto]
    small: Callable[[], onnx.ModelProto]
    dims: dict[str, int] = field(default_factory=dict)  # of symbols
    small_dims: dict[str, int] = field(default_factory=dict)
    below: tuple[int, int] = (2, 2)  # input_ids (or ids) are below this, in the network and in the small one
    tied: bool = False  # caches present.* go on as past_key_values.*, in place
    far: float = 1e-3  # results of two runtimes differ by less than this share of the largest

    def model(self, small: bool = False) -> onnx.ModelProto:
        return (self.small if small else self.make)()

    def feeds(self, model: onnx.ModelProto, small: bool = False, seed: int = 1) -> dict[str, np.ndarray]:
        """Inputs from a seed: tokens of the vocabulary, masks of ones, the last positions, else numbers of a normal distribution."""
        random, dims, made = np.random.default_rng(seed), self.small_dims if small else self.dims, {}
        for i in model.graph.input:
            kind = i.type.tensor_type
            shape = [d.dim_value or dims[d.dim_param] for d in kind.shape.dim]
            if i.name in ("input_ids", "ids"):
                made[i.name] = random.integers(0, self.below[small], shape)
            elif i.name == "attention_mask":
                made[i.name] = np.ones(shape, np.int64)
            elif i.name == "position_ids":
                made[i.name] = np.broadcast_to(np.arange(dims.get("past", 0), dims.get("past", 0) + shape[1]), shape).copy()
            elif kind.elem_type == onnx.TensorProto.INT64:
                made[i.name] = random.integers(0, 2, shape)
            else:
                made[i.name] = random.standard_normal(shape, np.float32).astype(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type))
            if self.tied and i.name.startswith("past_key_values."):  # nothing lies behind the last position
                made[i.name][:, :, dims["total"] - 1 :] = 0
        return made


BERT_BASE = Sizes(12, 768, 12, 12, 30522, 512, 3072)
MINILM = Sizes(6, 384, 12, 12, 30522, 512, 1536)
GPT2, LLAMA = decoders.GPT2, decoders.LLAMA
TEXT = {"batch": 1, "length": 128}
SMALL_TEXT = {"batch": 2, "length": 7}


def bert(sizes: Sizes = BERT_BASE):
    return make_bert.model(17, sizes=sizes)


def quantised(model: onnx.ModelProto, form: str) -> onnx.ModelProto:
    import quantised as q  # onnxruntime's quantiser

    return q.quantised(model, form, per_channel=form == "qdq")


def small_resnet(batch: int = 1):
    return convnets.resnet50(32, 16, (1, 2, 1, 1), 10, batch=batch)


def small_mobilenet():
    return classifiers.mobilenet_v2(64, ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 2, 2)), 64, 10)


def small_convnext():
    return classifiers.convnext(64, (1, 1, 2, 1), (16, 32, 48, 64), 10)


def small_efficientnet():
    return classifiers.efficientnet_b0(64, ((1, 3, 1, 16, 1), (6, 5, 2, 24, 2)), 64, 10)


def small_vit():
    return encoders.vit(32, 8, 64, 4, 2, 10)


def tiny_bert():
    return bert(make_bert.TINY)


NETWORKS = (
    Network("cnn", "ResNet-50", lambda: convnets.resnet50(batch=1), small_resnet),
    Network("cnn", "ResNet-50 x8", lambda: convnets.resnet50(batch=8), lambda: small_resnet(3)),
    Network("cnn", "MobileNetV2", classifiers.mobilenet_v2, small_mobilenet),
    Network("cnn", "EfficientNet-B0", classifiers.efficientnet_b0, small_efficientnet),
    Network("cnn", "ConvNeXt-T", classifiers.convnext, small_convnext),
    Network("cnn", "YOLO-n 640", convnets.yolo, lambda: convnets.yolo(64, 16)),
    Network("cnn", "U-Net", pictures.unet, lambda: pictures.unet(32, 8, 2)),
    Network("cnn", "text detector", pictures.text_detector, lambda: pictures.text_detector(64, 8, 32)),
    Network("cnn", "CRNN", pictures.crnn, lambda: pictures.crnn(64, 8, 32, 20)),
    Network("cnn", "SVTR", pictures.svtr, lambda: pictures.svtr(64, 8, 40, 4)),
    Network("transformer", "BERT-base 128", bert, tiny_bert, TEXT, SMALL_TEXT, (30522, 100)),
    Network("transformer", "MiniLM 1x32", lambda: bert(MINILM), tiny_bert, {"batch": 1, "length": 32}, {"batch": 1, "length": 5}, (30522, 100)),
    Network("transformer", "MiniLM 8x128", lambda: bert(MINILM), tiny_bert, {"batch": 8, "length": 128}, {"batch": 3, "length": 16}, (30522, 100)),
    Network("transformer", "ViT-B/16", encoders.vit, small_vit),
    Network("transformer", "Swin-T", encoders.swin, lambda: encoders.swin(56, 7, 32, (2, 2), 10, 16)),
    Network("transformer", "Whisper-tiny", encoders.whisper_encoder, lambda: encoders.whisper_encoder(60, 16, 64, 4, 2)),
    Network("transformer", "GPT-2 prefill", decoders.gpt2, lambda: decoders.gpt2(decoders.TINY_GPT2), TEXT | {"total": 128}, SMALL_TEXT | {"total": 7}, (50257, 50)),
    Network("transformer", "Llama prefill", lambda: make_llama.model(sizes=LLAMA), make_llama.model, TEXT, SMALL_TEXT, (16000, 50)),
    Network("transformer", "Llama int4 prefill", lambda: decoders.llama(int4=True), lambda: decoders.llama(decoders.TINY_LLAMA, True, 0),
            {"batch": 1, "length": 128, "capacity": 1024, "total": 128}, {"batch": 1, "length": 7, "capacity": 64, "total": 7}, (16000, 50), tied=True, far=5e-2),
    Network("decode", "GPT-2", lambda: decoders.gpt2(cache=True), lambda: decoders.gpt2(decoders.TINY_GPT2, True),
            {"batch": 1, "length": 1, "past": 512, "total": 513}, {"batch": 1, "length": 1, "past": 20, "total": 21}, (50257, 50)),
    Network("decode", "Llama", decoders.llama, lambda: decoders.llama(decoders.TINY_LLAMA),
            {"batch": 1, "length": 1, "capacity": 1024, "total": 513}, {"batch": 1, "length": 1, "capacity": 64, "total": 21}, (16000, 50), tied=True),
    Network("decode", "Llama int4", lambda: decoders.llama(int4=True), lambda: decoders.llama(decoders.TINY_LLAMA, True, 0),
            {"batch": 1, "length": 1, "capacity": 1024, "total": 513}, {"batch": 1, "length": 1, "capacity": 64, "total": 21}, (16000, 50), tied=True,
            far=5e-2),  # where activations are rounded to eight bits
    Network("recurrent", "BiLSTM", small_networks.bilstm, lambda: small_networks.bilstm(12, 16, 100), below=(20000, 100)),
    Network("recurrent", "GRU", small_networks.gru, lambda: small_networks.gru(12, 16, 24)),
    *(Network("small", f.__name__, f, f, below=(1000, 1000)) for f in small_networks.SMALL),
    Network("small", "encoder", tiny_bert, tiny_bert, {"batch": 1, "length": 16}, {"batch": 1, "length": 16}, (100, 100)),
    Network("f16", "ResNet-50 f16", lambda: half(convnets.resnet50(batch=1)), lambda: half(small_resnet()), far=2e-2),
    Network("f16", "BERT-base 128 f16", lambda: half(bert()), lambda: half(tiny_bert()), TEXT, SMALL_TEXT, (30522, 100), far=2e-2),
    Network("f16", "ViT-B/16 f16", lambda: half(encoders.vit()), lambda: half(small_vit()), far=2e-2),
    Network("int8", "ResNet-50 QDQ", lambda: quantised(convnets.resnet50(batch=1), "qdq"), lambda: quantised(small_resnet(), "qdq"), far=0.1),
    Network("int8", "MobileNetV2 QDQ", lambda: quantised(classifiers.mobilenet_v2(), "qdq"), lambda: quantised(small_mobilenet(), "qdq"), far=0.1),
    Network("int8", "EfficientNet-B0 QDQ", lambda: quantised(classifiers.efficientnet_b0(), "qdq"), lambda: quantised(small_efficientnet(), "qdq"), far=0.1),
    Network("int8", "ConvNeXt-T QDQ", lambda: quantised(classifiers.convnext(), "qdq"), lambda: quantised(small_convnext(), "qdq"), far=0.1),
    Network("int8", "YOLO-n 640 QDQ", lambda: quantised(convnets.yolo(), "qdq"), lambda: quantised(convnets.yolo(64, 16), "qdq"), far=0.1),
    Network("int8", "BERT-base dynamic", lambda: quantised(bert(), "dynamic"), lambda: quantised(tiny_bert(), "dynamic"), TEXT, SMALL_TEXT, (30522, 100), far=0.1),
)  # fmt: skip


def chosen(words: str, among: tuple[Network, ...] = NETWORKS) -> list[Network]:
    """By parts of "group/name", separated by commas; all for ""."""
    return [n for n in among if any(w in f"{n.group}/{n.name}" for w in words.split(","))]


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    words.add_argument("--small", action="store_true")
    words.add_argument("folder", type=Path)
    words.add_argument("filter", nargs="?", default="")
    a = words.parse_args()
    a.folder.mkdir(parents=True, exist_ok=True)
    for n in chosen(a.filter):
        path = a.folder / f"{n.name.replace(' ', '_').replace('/', '-')}.onnx"
        onnx.save(n.model(a.small), path)
        print(f"{path}  {path.stat().st_size / 1e6:.1f} MB", flush=True)


if __name__ == "__main__":
    main()
