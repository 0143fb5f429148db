#!/usr/bin/env python3
"""Writes networks beside those of tests/models/networks.py, as PyTorch's exporters write them: architectures.py FOLDER [PART ...]

Architectures of torchvision, timm, transformers and diffusers at the sizes that people use, and some written here; weights from a seed,
fixed extents; every other one by each of the two exporters. For tests/bench/peers.py BUILD --files FOLDER/*.onnx. PART: a part of the name.
Those that an exporter or a library refuses are told and left out; files that exist stay as they are.

Needs torch, torchvision, timm, transformers, diffusers, onnx and onnxscript (pip install).
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

warnings.filterwarnings("ignore")
import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

WORDS, LENGTH = 1000, 128  # a vocabulary, tokens of a text

TORCHVISION = """alexnet vgg11_bn resnet18 wide_resnet50_2 resnext50_32x4d squeezenet1_1 densenet121 googlenet inception_v3 shufflenet_v2_x1_0
    mobilenet_v3_large mnasnet1_0 efficientnet_v2_s regnet_x_800mf regnet_y_1_6gf convnext_tiny swin_v2_t maxvit_t""".split()
TIMM = """beit_base_patch16_224 botnet26t_256 caformer_s18 cait_xxs24_224 coat_lite_tiny coatnet_0_rw_224 convit_tiny convmixer_768_32
    convnextv2_atto crossvit_9_240 cspdarknet53 cspresnet50 darknet53 davit_tiny deit_tiny_patch16_224 dla34 dpn68 eca_nfnet_l0 edgenext_small
    efficientformer_l1 efficientformerv2_s0 efficientnet_lite0 efficientvit_b0 efficientvit_m0 ese_vovnet19b_dw eva02_tiny_patch14_224
    fastvit_t8 fbnetc_100 focalnet_tiny_srf gcresnet33ts ghostnet_100 gmlp_s16_224 hardcorenas_a hgnet_tiny hiera_tiny_224 hrnet_w18_small
    inception_next_atto inception_v4 lcnet_100 levit_128s mambaout_femto mixer_b16_224 mixnet_s mobilenetv4_conv_small mobileone_s0
    mobilevit_s mobilevitv2_050 nest_tiny nextvit_small nf_resnet26 pit_ti_224 poolformer_s12 pvt_v2_b0 rdnet_tiny repghostnet_100
    repvgg_a0 repvit_m0_9 res2net50_26w_4s resmlp_12_224 resnest14d rexnet_100 selecsls42 semnasnet_100 sequencer2d_s seresnet50 skresnet18
    spnasnet_100 starnet_s1 swiftformer_xs tf_efficientnet_b1 tiny_vit_5m_224 tinynet_a tnt_s_legacy_patch16_224 twins_svt_small
    vgg16 visformer_tiny vit_base_patch32_224 vit_small_patch16_224 volo_d1_224 xception41 xcit_nano_12_p16_224""".split()


@dataclass
class Architecture:
    make: Callable[[], nn.Module]
    inputs: Callable[[], tuple]


class First(nn.Module):
    """The first result of a module that has several, or the one of a name."""

    def __init__(self, module: nn.Module, name: str | int = 0, call: str = ""):
        super().__init__()
        self.module, self.name, self.call = module, name, call

    def forward(self, *inputs):
        result = (getattr(self.module, self.call) if self.call else self.module)(*inputs)
        return result[self.name]


def picture(extent: int = 224, channels: int = 3, *frames: int):
    return lambda: (torch.rand(1, channels, *frames, extent, extent),)


def tokens(length: int = LENGTH, count: int = 1):
    return lambda: tuple(torch.randint(0, WORDS, (1, length)) for _ in range(count))


# ---- Of libraries ----


def vision(name: str, result: str = "", **options) -> nn.Module:
    import torchvision

    module = torchvision.models.get_model(name, weights=None, **options)
    return First(module, result) if result else module


def image_model(name: str) -> nn.Module:
    import timm

    return timm.create_model(name, pretrained=False)


def transformer(config: str, model: str, **sizes) -> nn.Module:
    import transformers

    made = getattr(transformers, config)(**sizes)
    made.use_cache = False
    made._attn_implementation = "sdpa"
    try:
        module = getattr(transformers, model)._from_config(made)
    except (ValueError, ImportError):
        made._attn_implementation = "eager"
        module = getattr(transformers, model)._from_config(made)
    return First(module)


def codec_decoder() -> nn.Module:
    import transformers

    return transformers.EncodecModel(transformers.EncodecConfig()).decoder


def denoiser() -> nn.Module:
    import diffusers

    down, up = ("DownBlock2D", "AttnDownBlock2D", "DownBlock2D"), ("UpBlock2D", "AttnUpBlock2D", "UpBlock2D")
    return First(diffusers.UNet2DModel(sample_size=32, block_out_channels=(64, 128, 128), layers_per_block=1, down_block_types=down, up_block_types=up, norm_num_groups=32), "sample")


def vae_decoder() -> nn.Module:
    import diffusers

    whole = diffusers.AutoencoderKL(block_out_channels=(64, 128, 128), down_block_types=("DownEncoderBlock2D",) * 3, up_block_types=("UpDecoderBlock2D",) * 3, layers_per_block=1)
    return First(whole, "sample", "decode")


TEXT = {"vocab_size": WORDS, "hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 1024}
SOUND = {k: v for k, v in TEXT.items() if k != "vocab_size"}
SMALL_VIT = {"hidden_size": 192, "num_hidden_layers": 6, "num_attention_heads": 3, "intermediate_size": 768}
VIT = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 6, "intermediate_size": 1536}
BART = {"encoder_layers": 4, "decoder_layers": 4, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 1024, "decoder_ffn_dim": 1024}
TRANSFORMERS = {  # config, model, inputs, sizes
    "albert": ("AlbertConfig", "AlbertModel", tokens(), TEXT),
    "bart": ("BartConfig", "BartModel", tokens(), {"vocab_size": WORDS, "d_model": 256, **BART}),
    "bloom": ("BloomConfig", "BloomModel", tokens(), {"vocab_size": WORDS, "hidden_size": 256, "n_layer": 4, "n_head": 4}),
    "convbert": ("ConvBertConfig", "ConvBertModel", tokens(), TEXT),
    "deberta": ("DebertaV2Config", "DebertaV2Model", tokens(), {**TEXT, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]}),
    "distilbert": ("DistilBertConfig", "DistilBertModel", tokens(), {"vocab_size": WORDS, "dim": 256, "n_layers": 4, "n_heads": 4, "hidden_dim": 1024}),
    "electra": ("ElectraConfig", "ElectraModel", tokens(), {**TEXT, "embedding_size": 128}),
    "falcon": ("FalconConfig", "FalconModel", tokens(), {"vocab_size": WORDS, "hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4}),
    "fnet": ("FNetConfig", "FNetModel", tokens(), {"vocab_size": WORDS, "hidden_size": 256, "num_hidden_layers": 4, "intermediate_size": 1024}),
    "gemma": ("GemmaConfig", "GemmaModel", tokens(), {**TEXT, "num_key_value_heads": 1, "head_dim": 64}),
    "gptneox": ("GPTNeoXConfig", "GPTNeoXModel", tokens(), TEXT),
    "mamba": ("MambaConfig", "MambaModel", tokens(32), {"vocab_size": WORDS, "hidden_size": 256, "num_hidden_layers": 2, "state_size": 16}),
    "modernbert": ("ModernBertConfig", "ModernBertModel", tokens(), {**TEXT, "pad_token_id": 0}),
    "mpnet": ("MPNetConfig", "MPNetModel", tokens(), TEXT),
    "opt": ("OPTConfig", "OPTModel", tokens(), {"vocab_size": WORDS, "hidden_size": 256, "word_embed_proj_dim": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "ffn_dim": 1024}),
    "phi": ("PhiConfig", "PhiModel", tokens(), TEXT),
    "qwen2": ("Qwen2Config", "Qwen2Model", tokens(), {**TEXT, "num_key_value_heads": 2}),
    "roberta": ("RobertaConfig", "RobertaModel", tokens(), TEXT),
    "rwkv": ("RwkvConfig", "RwkvModel", tokens(32), {"vocab_size": WORDS, "hidden_size": 256, "num_hidden_layers": 2}),
    "t5": ("T5Config", "T5EncoderModel", tokens(), {"vocab_size": WORDS, "d_model": 256, "num_layers": 4, "num_heads": 4, "d_kv": 64, "d_ff": 1024}),
    "xlnet": ("XLNetConfig", "XLNetModel", tokens(), {"vocab_size": WORDS, "d_model": 256, "n_layer": 4, "n_head": 4, "d_inner": 1024}),
    "conformer": ("Wav2Vec2ConformerConfig", "Wav2Vec2ConformerModel", lambda: (torch.randn(1, 16000),), SOUND),
    "hubert": ("HubertConfig", "HubertModel", lambda: (torch.randn(1, 16000),), SOUND),
    "sew_d": ("SEWDConfig", "SEWDModel", lambda: (torch.randn(1, 16000),), SOUND),
    "spectrogram": ("ASTConfig", "ASTModel", lambda: (torch.randn(1, 1024, 128),), SMALL_VIT),
    "wav2vec2": ("Wav2Vec2Config", "Wav2Vec2Model", lambda: (torch.randn(1, 16000),), SOUND),
    "clip": ("CLIPVisionConfig", "CLIPVisionModel", picture(), {**VIT, "patch_size": 32}),
    "detr": ("DetrConfig", "DetrForObjectDetection", picture(320), {"use_timm_backbone": True, "use_pretrained_backbone": False, "encoder_layers": 3, "decoder_layers": 3}),
    "dinov2": ("Dinov2Config", "Dinov2Model", picture(), {k: v for k, v in VIT.items() if k != "intermediate_size"} | {"image_size": 224, "patch_size": 14}),
    "dpt": ("DPTConfig", "DPTForDepthEstimation", picture(), SMALL_VIT | {"num_hidden_layers": 12, "image_size": 224, "neck_hidden_sizes": [48, 96, 192, 192], "fusion_hidden_size": 64}),
    "segformer": ("SegformerConfig", "SegformerModel", picture(512), {}),
    "segformer_head": ("SegformerConfig", "SegformerForSemanticSegmentation", picture(512), {"num_labels": 150}),
    "siglip": ("SiglipVisionConfig", "SiglipVisionModel", picture(), VIT),
    "swin2sr": ("Swin2SRConfig", "Swin2SRModel", picture(64), {"embed_dim": 60, "depths": [2, 2], "num_heads": [6, 6], "image_size": 64}),
    "videomae": ("VideoMAEConfig", "VideoMAEModel", lambda: (torch.rand(1, 8, 3, 112, 112),), SMALL_VIT | {"num_hidden_layers": 4, "image_size": 112, "num_frames": 8}),
    "vit_msn": ("ViTMSNConfig", "ViTMSNModel", picture(), SMALL_VIT),
    "yolos": ("YolosConfig", "YolosForObjectDetection", picture(256), SMALL_VIT | {"image_size": [256, 256], "num_detection_tokens": 100}),
}

# ---- Written here ----


class Residual(nn.Module):
    def __init__(self, channels: int):
        super().__init__()
        halves = [(nn.Conv2d(channels, channels, 3, padding=1), nn.InstanceNorm2d(channels, affine=True)) for _ in range(2)]
        self.body = nn.Sequential(*halves[0], nn.ReLU(), *halves[1])

    def forward(self, x):
        return x + self.body(x)


def style_transfer() -> nn.Module:
    layers, channels = [nn.ReflectionPad2d(4)], 3
    for filters, kernel, stride in ((32, 9, 1), (64, 3, 2), (128, 3, 2)):
        layers += [nn.Conv2d(channels, filters, kernel, stride, kernel // 2 * (stride > 1)), nn.InstanceNorm2d(filters, affine=True), nn.ReLU()]
        channels = filters
    layers += [Residual(128) for _ in range(3)]
    for filters in (64, 32):
        layers += [nn.Upsample(scale_factor=2), nn.Conv2d(channels, filters, 3, padding=1), nn.ReLU()]
        channels = filters
    return nn.Sequential(*layers, nn.Conv2d(32, 3, 9, padding=4))


def subpixels() -> nn.Module:
    """Super-resolution by three."""
    return nn.Sequential(nn.Conv2d(1, 64, 5, padding=2), nn.Tanh(), nn.Conv2d(64, 32, 3, padding=1), nn.Tanh(), nn.Conv2d(32, 9, 3, padding=1), nn.PixelShuffle(3))


class Dense(nn.Module):
    def __init__(self, channels: int = 64, grown: int = 32):
        super().__init__()
        self.layers = nn.ModuleList([nn.Conv2d(channels + i * grown, grown if i < 4 else channels, 3, padding=1) for i in range(5)])

    def forward(self, x):
        seen = [x]
        for layer in self.layers:
            seen.append(functional.leaky_relu(layer(torch.cat(seen, 1)), 0.2) if len(seen) < 5 else layer(torch.cat(seen, 1)))
        return x + 0.2 * seen[-1]


class DenseUpscaler(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.body = nn.Conv2d(3, 64, 3, padding=1), nn.Sequential(*[Dense() for _ in range(9)])
        self.up, self.last = nn.Conv2d(64, 64, 3, padding=1), nn.Conv2d(64, 3, 3, padding=1)

    def forward(self, x):
        x = self.first(x)
        x = functional.interpolate(x + self.body(x), scale_factor=2)
        return self.last(functional.leaky_relu(self.up(x), 0.2))


def generator() -> nn.Module:
    """A DCGAN's, of 64 x 64."""
    layers, channels = [], 100
    for filters, stride, pad in ((512, 1, 0), (256, 2, 1), (128, 2, 1), (64, 2, 1)):
        layers += [nn.ConvTranspose2d(channels, filters, 4, stride, pad, bias=False), nn.BatchNorm2d(filters), nn.ReLU()]
        channels = filters
    return nn.Sequential(*layers, nn.ConvTranspose2d(64, 3, 4, 2, 1), nn.Tanh())


def twice(channels: int, filters: int) -> nn.Module:
    layers = []
    for c in (channels, filters):
        layers += [nn.Conv3d(c, filters, 3, padding=1), nn.InstanceNorm3d(filters), nn.LeakyReLU(0.01)]
    return nn.Sequential(*layers)


class Unet3d(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([twice(1, 16), twice(16, 32), twice(32, 64)])
        self.up = nn.ModuleList([nn.ConvTranspose3d(64, 32, 2, 2), nn.ConvTranspose3d(32, 16, 2, 2)])
        self.joined, self.last = nn.ModuleList([twice(64, 32), twice(32, 16)]), nn.Conv3d(16, 3, 1)

    def forward(self, x):
        a = self.down[0](x)
        b = self.down[1](functional.max_pool3d(a, 2))
        c = self.down[2](functional.max_pool3d(b, 2))
        d = self.joined[0](torch.cat([b, self.up[0](c)], 1))
        return self.last(self.joined[1](torch.cat([a, self.up[1](d)], 1)))


class Translator(nn.Module):
    """A sequence to another by LSTMs."""

    def __init__(self):
        super().__init__()
        self.words, self.last = nn.Embedding(WORDS, 256), nn.Linear(256, WORDS)
        self.reader, self.writer = (nn.LSTM(256, 256, 2, batch_first=True) for _ in range(2))

    def forward(self, read, written):
        _, state = self.reader(self.words(read))
        y, _ = self.writer(self.words(written), state)
        return self.last(y)


class Separator(nn.Module):
    """Conv-TasNet, of two speakers."""

    def __init__(self):
        super().__init__()
        self.encoder, self.norm, self.narrow = nn.Conv1d(1, 256, 16, 8, bias=False), nn.GroupNorm(1, 256), nn.Conv1d(256, 128, 1)
        self.blocks = nn.ModuleList([self.block(2 ** (i % 8)) for i in range(16)])
        self.masks, self.decoder = nn.Conv1d(128, 512, 1), nn.ConvTranspose1d(256, 1, 16, 8, bias=False)

    @staticmethod
    def block(dilation: int) -> nn.Module:
        middle = nn.Conv1d(256, 256, 3, padding=dilation, dilation=dilation, groups=256)
        return nn.Sequential(nn.Conv1d(128, 256, 1), nn.PReLU(), nn.GroupNorm(1, 256), middle, nn.PReLU(), nn.GroupNorm(1, 256), nn.Conv1d(256, 128, 1))

    def forward(self, x):
        heard = self.encoder(x)
        y = self.narrow(self.norm(heard))
        for block in self.blocks:
            y = y + block(y)
        return self.decoder(torch.sigmoid(self.masks(y)).view(2, 256, -1) * heard)


# ---- All of them ----


def architectures() -> dict[str, Architecture]:
    made = {f"torchvision-{n}": Architecture(lambda n=n: vision(n), picture(299 if n == "inception_v3" else 224)) for n in TORCHVISION}
    for name, extent in (("deeplabv3_mobilenet_v3_large", 520), ("lraspp_mobilenet_v3_large", 320), ("fcn_resnet50", 256)):
        made[f"torchvision-{name}"] = Architecture(lambda n=name: vision(n, "out", weights_backbone=None), picture(extent))
    for name, frames, extent in (("r3d_18", 8, 112), ("s3d", 16, 224)):
        made[f"torchvision-{name}"] = Architecture(lambda n=name: vision(n), picture(extent, 3, frames))
    extents = {"crossvit_9_240": 240, "botnet26t_256": 256}
    made |= {f"timm-{n}": Architecture(lambda n=n: image_model(n), picture(extents.get(n, 224))) for n in TIMM}
    for name, (config, model, inputs, sizes) in TRANSFORMERS.items():
        made[f"transformers-{name}"] = Architecture(lambda c=config, m=model, s=sizes: transformer(c, m, **s), inputs)
    made["transformers-encodec_decoder"] = Architecture(codec_decoder, lambda: (torch.randn(1, 128, 75),))
    made["diffusers-unet"] = Architecture(denoiser, lambda: (torch.rand(1, 3, 32, 32), torch.tensor([10])))
    made["diffusers-vae_decoder"] = Architecture(vae_decoder, lambda: (torch.rand(1, 4, 32, 32),))
    made["style_transfer"] = Architecture(style_transfer, picture(256))
    made["subpixels"] = Architecture(subpixels, picture(240, 1))
    made["dense_upscaler"] = Architecture(DenseUpscaler, picture(64))
    made["generator"] = Architecture(generator, lambda: (torch.randn(1, 100, 1, 1),))
    made["unet3d"] = Architecture(Unet3d, picture(48, 1, 48))
    made["translator"] = Architecture(Translator, tokens(40, 2))
    made["separator"] = Architecture(Separator, lambda: (torch.randn(1, 1, 8000),))
    return made


def trained(module: nn.Module) -> nn.Module:
    """Normalisations as if something had been learnt: as they begin they do nothing."""
    random = torch.Generator().manual_seed(1)
    for m in module.modules():
        if isinstance(m, (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)):
            m.running_mean.normal_(0, 0.1, generator=random)
            m.running_var.uniform_(0.5, 1.5, generator=random)
            if m.affine:
                with torch.no_grad():
                    m.weight.uniform_(0.5, 1.5, generator=random)
                    m.bias.normal_(0, 0.1, generator=random)
    return module


def written(architecture: Architecture, path: Path, newer: bool) -> None:
    torch.manual_seed(0)
    module, inputs = trained(architecture.make().eval()), architecture.inputs()
    part = path.with_suffix(".part")
    with torch.no_grad():
        for dynamo in (newer, not newer):  # what one exporter refuses the other may write
            try:
                options = {"external_data": False} if dynamo else {"opset_version": 17}
                torch.onnx.export(module, inputs, str(part), dynamo=dynamo, verbose=False, **options)
                break
            except Exception:
                if dynamo != newer:
                    raise
    part.rename(path)


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    words.add_argument("folder", type=Path)
    words.add_argument("part", nargs="*")
    a = words.parse_args()
    a.folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    refused = 0
    for at, (name, architecture) in enumerate(architectures().items()):
        path = a.folder / f"{name}.onnx"
        if path.exists() or (a.part and not any(p in name for p in a.part)):
            continue
        try:
            written(architecture, path, at % 2 == 0)
            print(f"{path}  {path.stat().st_size / 1e6:.1f} MB", flush=True)
        except Exception as e:  # of any library
            refused += 1
            print(f"{name}: refused: {type(e).__name__}: {str(e).splitlines()[0][:120] if str(e) else ''}", file=sys.stderr, flush=True)
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
