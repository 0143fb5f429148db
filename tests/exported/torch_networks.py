"""Networks that PyTorch's two exporters write: small configurations of architectures as their packages define them, weights from a seed.

Each is a module, what it is called with at two shapes, and which exporter writes it. Dims that differ between the two shapes are
dynamic, and named by their extents, so that equal ones have one name; where an exporter bakes such a dim in (onnxruntime then disagrees at the second shape), the network is exported once for each.
"""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import diffusers
import numpy as np
import onnx
import timm
import torch
import torchvision
import transformers
from network import File, Network, differs, theirs

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)
transformers.logging.set_verbosity_error()
Tensor = torch.Tensor


@dataclass(frozen=True)
class Input:
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    make: Callable[[torch.Generator, tuple[int, ...]], Tensor]


def normal(*shapes) -> Input:
    return Input(shapes, lambda g, s: torch.randn(s, generator=g))


def unit(*shapes) -> Input:
    return Input(shapes, lambda g, s: torch.rand(s, generator=g))


def ids(below: int, *shapes) -> Input:
    return Input(shapes, lambda g, s: torch.randint(3, below, s, generator=g))


def mask(*shapes) -> Input:
    """The last row's last two positions are padding."""

    def make(g, s):
        m = torch.ones(s, dtype=torch.int64)
        m[-1, -2:] = 0
        return m

    return Input(shapes, make)


def same(value: Tensor) -> Input:
    return Input((tuple(value.shape),) * 2, lambda g, s: value)


@dataclass(frozen=True)
class Recipe:
    name: str
    kind: str
    exporter: str  # "dynamo" or "script"
    module: Callable[[], torch.nn.Module]
    inputs: dict[str, Input]
    pick: Callable = None  # of what the module returns, which tensors are results; None: all floats and integers in it
    by_name: bool = True  # inputs are handed over by name
    apart: bool = False  # one file for each shape
    more: dict = field(default_factory=dict)  # other arguments of the module


class Called(torch.nn.Module):
    """The module with nothing but tensors in its signature."""

    def __init__(self, recipe: Recipe):
        super().__init__()
        self.inner, self.recipe = stirred(recipe.module().eval()), recipe

    def forward(self, *inputs):
        r = self.recipe
        given = dict(zip(r.inputs, inputs)) if r.by_name else {}
        out = self.inner(*(() if r.by_name else inputs), **given, **r.more)
        return r.pick(out) if r.pick else out[0] if isinstance(out, (tuple, list, dict)) else out


def stirred(module: torch.nn.Module) -> torch.nn.Module:
    """Weights at which every part matters: initialisers leave scores near 0 and norms as if they were not there."""
    g = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, p in module.named_parameters():
            if p.dim() >= 2 and name.endswith("weight"):
                p.copy_(torch.randn(p.shape, generator=g) / max(1, p[0].numel()) ** 0.5)
            elif p.is_floating_point():
                p.add_(0.1 * torch.randn(p.shape, generator=g))
        for name, b in module.named_buffers():
            if name.endswith("running_var"):
                b.copy_(0.5 + torch.rand(b.shape, generator=g))
            elif name.endswith("running_mean"):
                b.copy_(0.1 * torch.randn(b.shape, generator=g))
    return module


def feeds(recipe: Recipe, k: int) -> dict[str, Tensor]:
    g = torch.Generator().manual_seed(2 + k)
    return {n: i.make(g, i.shapes[k]) for n, i in recipe.inputs.items()}


def name(i: Input, d: int) -> str:
    return "dim_{}_{}".format(*(s[d] for s in i.shapes))


def exported(recipe: Recipe, called: Called, k: int, dynamic: str = "") -> onnx.ModelProto:
    """dynamic: "named": dims of the same extents have one name; "free": each has its own."""
    names, args = list(recipe.inputs), tuple(feeds(recipe, k).values())
    moving = [{d for d, (a, b) in enumerate(zip(*i.shapes)) if a != b} if dynamic else set() for i in recipe.inputs.values()]
    file = io.BytesIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        if recipe.exporter == "script":
            axes = {n: {d: name(i, d) for d in m} for (n, i), m in zip(recipe.inputs.items(), moving) if m}
            torch.onnx.export(called, args, file, dynamo=False, input_names=names, dynamic_axes=axes, opset_version=17)
        else:
            dims = [{d: torch.export.Dim(name(i, d), min=1) if dynamic == "named" else torch.export.Dim.DYNAMIC for d in m} for i, m in zip(recipe.inputs.values(), moving)]
            made = torch.onnx.export(called, args, dynamo=True, input_names=names, dynamic_shapes=(tuple(dims),) if dynamic else None, verbose=False)
            made.save(file)
    return onnx.load_from_string(file.getvalue())


def results(called: Called, args: dict[str, Tensor]) -> list[np.ndarray]:
    with torch.no_grad():
        out = called(*args.values())
    return [t.detach().numpy() for t in (out if isinstance(out, (tuple, list)) else (out,))]


def files(recipe: Recipe) -> list[File]:
    called = Called(recipe)
    given = [feeds(recipe, k) for k in range(2)]
    sets = [({n: t.numpy() for n, t in g.items()}, results(called, g)) for g in given]

    def wrong(model: onnx.ModelProto, some: list) -> str | None:
        return next((d for f, want in some if (d := differs(theirs(model, f), want))), None)

    for dynamic in () if recipe.apart else ("named",) if recipe.exporter == "script" else ("named", "free"):
        with contextlib.suppress(Exception):  # the exporter's no, or what it wrote takes one shape only
            model = exported(recipe, called, 0, dynamic)
            if not wrong(model, sets):
                return [File(model, sets)]
    made = []
    for k in range(2):
        model = exported(recipe, called, k)
        if problem := wrong(model, sets[k : k + 1]):
            raise ValueError(f"onnxruntime does not say what PyTorch says: {problem}")
        made.append(File(model, sets[k : k + 1]))
    return made


# ---- What there is


def hf(name: str, model: str = "Model", **config):
    """A class of transformers, and its configuration: Bert, Model: BertModel(BertConfig(...))."""
    return lambda: seeded(lambda: getattr(transformers, name + model)(getattr(transformers, name + "Config")(**config)))


def seeded(make: Callable):
    torch.manual_seed(0)
    return make()


def vision(name: str, **options):
    return lambda: seeded(lambda: getattr(torchvision.models, name)(weights=None, **options))


def image_models(name: str, **options):
    return lambda: seeded(lambda: timm.create_model(name, pretrained=False, **options))


def blocks(name: str, **options):
    return lambda: seeded(lambda: getattr(diffusers, name)(**options))


V = 100  # words
SMALL = dict(vocab_size=V, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, max_position_embeddings=64, pad_token_id=0)
EAGER = dict(attn_implementation="eager")
GROUPED = SMALL | dict(num_key_value_heads=2, use_cache=False)
TEXT = {"input_ids": ids(V, (2, 7), (3, 12)), "attention_mask": mask((2, 7), (3, 12))}
TOKENS = {"input_ids": ids(V, (2, 7), (3, 12))}
PAIR = TEXT | {"decoder_input_ids": ids(V, (2, 5), (3, 6))}


def picture(size: int, batches=(2, 3), channels: int = 3, name: str = "pixels") -> dict[str, Input]:
    return {name: normal(*((b, channels, size, size) for b in batches))}


def sizes(a: int, b: int, name: str = "pixels") -> dict[str, Input]:
    return {name: normal((1, 3, a, a), (2, 3, b, b))}


def pixels(size: int) -> dict[str, Input]:
    return picture(size, name="pixel_values")


ViT = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=32, patch_size=8)
SSM = dict(vocab_size=V, hidden_size=32, num_hidden_layers=2, use_cache=False)
EXPERTS = dict(num_experts_per_tok=2)


class Recurrent(torch.nn.Module):
    """Two directions, and a last step picked."""

    def __init__(self, cell, **options):
        super().__init__()
        self.words = torch.nn.Embedding(V, 16)
        self.steps = cell(16, 24, 2, batch_first=True, bidirectional=True, **options)
        self.head = torch.nn.Linear(48, 10)

    def forward(self, x):
        y, _ = self.steps(self.words(x))
        return self.head(y[:, -1]), y


class Scan(torch.nn.Module):
    """A selective state space as in S6, its recurrence by prefix sums in log space."""

    def __init__(self, width: int = 16, state: int = 4):
        super().__init__()
        self.a = torch.nn.Parameter(torch.rand(width, state))
        self.d = torch.nn.Parameter(torch.ones(width))
        self.parameters_of = torch.nn.Linear(width, 1 + 2 * state)
        self.state = state

    def forward(self, x):
        dt, b, c = torch.split(self.parameters_of(x), [1, self.state, self.state], -1)
        dt = torch.nn.functional.softplus(dt)
        decay = torch.cumsum(-dt.unsqueeze(-1) * self.a.abs() * 0.1, 1)
        taken = torch.cumsum((dt * x).unsqueeze(-1) * b.unsqueeze(2) * torch.exp(-decay), 1)
        return (taken * torch.exp(decay) * c.unsqueeze(2)).sum(-1) + self.d * x


class Experts(torch.nn.Module):
    """A router, its best two, every expert's tokens by a mask."""

    def __init__(self, width: int = 16, n: int = 4):
        super().__init__()
        self.router = torch.nn.Linear(width, n)
        self.experts = torch.nn.ModuleList(torch.nn.Sequential(torch.nn.Linear(width, 32), torch.nn.GELU(), torch.nn.Linear(32, width)) for _ in range(n))

    def forward(self, x):
        p, who = torch.topk(torch.softmax(self.router(x), -1), 2)
        p = p / p.sum(-1, keepdim=True)
        return sum(((who == k) * p).sum(-1, keepdim=True) * expert(x) for k, expert in enumerate(self.experts))


class Layers(torch.nn.Module):
    """torch.nn's own encoder and decoder layers."""

    def __init__(self):
        super().__init__()
        self.coder = torch.nn.Transformer(32, 4, 2, 2, 64, batch_first=True, norm_first=True, activation="gelu")

    def forward(self, x, y):
        return self.coder(x, y, tgt_mask=torch.nn.Transformer.generate_square_subsequent_mask(y.shape[1]))


def both(name: str, kind: str, module, inputs: dict, **more) -> tuple[Recipe, Recipe]:
    return Recipe(name, kind, "dynamo", module, inputs, **more), Recipe(name, kind, "script", module, inputs, **more)


def one(exporter: str):
    return lambda name, kind, module, inputs, **more: (Recipe(name, kind, exporter, module, inputs, **more),)


D, S = one("dynamo"), one("script")
LATENT = {"sample": normal((2, 4, 8, 8), (3, 4, 8, 8)), "timestep": same(torch.tensor([7, 7])), "encoder_hidden_states": normal((2, 5, 32), (3, 5, 32))}
LATENT["timestep"] = ids(900, (2,), (3,))

RECIPES = (
    # Text: encoders
    *both("BERT", "text", hf("Bert", **SMALL), TEXT),
    *S("BERT eager", "text", hf("Bert", **SMALL, **EAGER), TEXT),
    *D("BERT eager", "text", hf("Bert", **SMALL, **EAGER), TEXT),
    *S("RoBERTa", "text", hf("Roberta", **SMALL), TEXT),
    *both("DistilBERT", "text", hf("DistilBert", vocab_size=V, dim=32, n_layers=2, n_heads=4, hidden_dim=64, max_position_embeddings=64), TEXT),
    *S("ALBERT", "text", hf("Albert", embedding_size=16, **SMALL), TEXT),
    *D("ELECTRA", "text", hf("Electra", embedding_size=16, **SMALL), TEXT),
    *S("DeBERTa-v2", "text", hf("DebertaV2", relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=8, **SMALL), TEXT),
    *S("MPNet", "text", hf("MPNet", **SMALL), TEXT),
    *D("ModernBERT", "text", hf("ModernBert", reference_compile=False, local_attention=4, global_attn_every_n_layers=2, **SMALL, **EAGER), TEXT),
    *S("SqueezeBERT", "text", hf("SqueezeBert", embedding_size=32, **SMALL), TEXT),
    # Text: both halves
    *S("T5", "text", hf("T5", vocab_size=V, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, use_cache=False), PAIR),
    *S("BART", "text", hf("Bart", vocab_size=V, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
                         encoder_ffn_dim=64, decoder_ffn_dim=64, max_position_embeddings=64, use_cache=False), PAIR),
    *D("Marian", "text", hf("Marian", vocab_size=V, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
                           encoder_ffn_dim=64, decoder_ffn_dim=64, max_position_embeddings=64, use_cache=False, pad_token_id=0), PAIR),
    # Text: decoders
    *both("GPT-2", "text", hf("GPT2", "LMHeadModel", vocab_size=V, n_embd=32, n_layer=2, n_head=4, n_positions=64, use_cache=False), TEXT),
    *S("GPT-2 eager", "text", hf("GPT2", vocab_size=V, n_embd=32, n_layer=2, n_head=4, n_positions=64, use_cache=False, **EAGER), TEXT),
    *S("GPT-NeoX", "text", hf("GPTNeoX", **SMALL, use_cache=False), TEXT),
    *D("OPT", "text", hf("OPT", vocab_size=V, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=64, max_position_embeddings=64, word_embed_proj_dim=32, use_cache=False), TEXT),
    *D("BLOOM", "text", hf("Bloom", vocab_size=V, hidden_size=32, n_layer=2, n_head=4, use_cache=False), TEXT),
    *both("Llama", "text", hf("Llama", "ForCausalLM", **GROUPED), TEXT),
    *D("Mistral", "text", hf("Mistral", sliding_window=4, **GROUPED), TEXT),
    *D("Qwen2", "text", hf("Qwen2", **GROUPED), TEXT),
    *S("Qwen3", "text", hf("Qwen3", head_dim=8, **GROUPED), TEXT),
    *D("Gemma2", "text", hf("Gemma2", head_dim=8, query_pre_attn_scalar=8, sliding_window=4, **GROUPED, **EAGER), TEXT),
    *D("Phi-3", "text", hf("Phi3", **GROUPED), TEXT),
    *S("StableLM", "text", hf("StableLm", **GROUPED), TEXT),
    *D("Falcon", "text", hf("Falcon", vocab_size=V, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, use_cache=False), TEXT),
    *D("OLMo2", "text", hf("Olmo2", **GROUPED), TEXT),
    # Mixture of experts
    *D("Mixtral", "experts", hf("Mixtral", num_local_experts=4, experts_implementation="batched_mm", **EXPERTS, **GROUPED), TEXT),
    *D("Qwen2-MoE", "experts", hf("Qwen2Moe", num_experts=4, moe_intermediate_size=16, shared_expert_intermediate_size=16, experts_implementation="batched_mm", **EXPERTS, **GROUPED), TEXT),
    *D("OLMoE", "experts", hf("Olmoe", num_experts=4, experts_implementation="batched_mm", **EXPERTS, **GROUPED), TEXT),
    *both("Experts", "experts", lambda: seeded(Experts), {"x": normal((2, 5, 16), (3, 9, 16))}, by_name=False),
    # State space and recurrent
    *S("Mamba", "state space", hf("Mamba", state_size=4, **SSM), TOKENS, apart=True),
    *D("Mamba", "state space", hf("Mamba", state_size=4, **SSM), TOKENS, apart=True),
    *both("Scan", "state space", lambda: seeded(Scan), {"x": normal((2, 6, 16), (3, 11, 16))}, by_name=False),
    *S("LSTM", "state space", lambda: seeded(lambda: Recurrent(torch.nn.LSTM)), {"x": ids(V, (2, 7), (2, 12))}, by_name=False),
    *S("GRU", "state space", lambda: seeded(lambda: Recurrent(torch.nn.GRU)), {"x": ids(V, (2, 7), (2, 12))}, by_name=False),
    *D("LSTM", "state space", lambda: seeded(lambda: Recurrent(torch.nn.LSTM)), {"x": ids(V, (2, 7), (2, 12))}, by_name=False),
    *S("nn.Transformer", "text", lambda: seeded(Layers), {"x": normal((2, 7, 32), (3, 9, 32)), "y": normal((2, 5, 32), (3, 6, 32))}, by_name=False),
    # Vision: torchvision
    *S("ResNet-18", "vision", vision("resnet18", num_classes=10), sizes(64, 96), by_name=False),
    *D("MobileNetV3-small", "vision", vision("mobilenet_v3_small", num_classes=10), sizes(64, 96), by_name=False),
    *S("EfficientNet-B0", "vision", vision("efficientnet_b0", num_classes=10), sizes(64, 96), by_name=False),
    *D("ConvNeXt-tiny", "vision", vision("convnext_tiny", num_classes=10), picture(64), by_name=False),
    *S("RegNet-Y-400MF", "vision", vision("regnet_y_400mf", num_classes=10), sizes(64, 96), by_name=False),
    *D("ShuffleNetV2", "vision", vision("shufflenet_v2_x0_5", num_classes=10), picture(64), by_name=False),
    *S("DenseNet-121", "vision", vision("densenet121", num_classes=10), sizes(64, 96), by_name=False),
    *S("SqueezeNet", "vision", vision("squeezenet1_1", num_classes=10), sizes(64, 96), by_name=False),
    *S("GoogLeNet", "vision", vision("googlenet", num_classes=10, init_weights=False, aux_logits=False), sizes(64, 96), by_name=False),
    *S("Swin-T", "vision", vision("swin_t", num_classes=10), picture(64), by_name=False),
    *D("ViT", "vision", hf("ViT", **ViT), pixels(32)),
    *S("LR-ASPP", "vision", lambda: seeded(lambda: torchvision.models.segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=5)),
       picture(64), by_name=False, pick=lambda out: out["out"]),
    *S("DeepLabV3", "vision", lambda: seeded(lambda: torchvision.models.segmentation.deeplabv3_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=5)),
       picture(64), by_name=False, pick=lambda out: out["out"]),
    *S("R3D-18", "vision", lambda: seeded(lambda: torchvision.models.video.r3d_18(weights=None, num_classes=5)), {"x": normal((1, 3, 4, 32, 32), (2, 3, 4, 32, 32))}, by_name=False),
    # Vision: timm
    *S("MLP-Mixer", "vision", lambda: seeded(lambda: timm.models.MlpMixer(num_classes=10, img_size=64, embed_dim=64, num_blocks=2)), picture(64), by_name=False),
    *D("DeiT", "vision", image_models("deit_tiny_patch16_224", img_size=32, depth=2, num_classes=10), picture(32), by_name=False),
    *S("MobileViT", "vision", image_models("mobilevit_xxs", num_classes=10), picture(64), by_name=False),
    *D("EdgeNeXt", "vision", image_models("edgenext_xx_small", num_classes=10), picture(64), by_name=False),
    *S("GhostNet", "vision", image_models("ghostnet_050", num_classes=10), sizes(64, 96), by_name=False),
    *S("PoolFormer", "vision", image_models("poolformer_s12", num_classes=10), picture(64), by_name=False),
    *D("FastViT", "vision", image_models("fastvit_t8", num_classes=10), picture(64), by_name=False),
    *S("LeViT", "vision", image_models("levit_128s", num_classes=10, img_size=224), picture(224, (1, 2)), by_name=False),
    # Vision: transformers
    *S("SegFormer", "vision", hf("Segformer", hidden_sizes=[8, 16, 16, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 2, 4], decoder_hidden_size=16), pixels(64)),
    *D("DINOv2", "vision", hf("Dinov2", **ViT), pixels(32)),
    *S("BEiT", "vision", hf("Beit", use_relative_position_bias=True, **ViT), pixels(32)),
    *D("CLIP", "vision", hf("CLIP", text_config=SMALL | dict(projection_dim=16, eos_token_id=2), vision_config=ViT | dict(projection_dim=16), projection_dim=16),
       TEXT | {"pixel_values": normal((2, 3, 32, 32), (3, 3, 32, 32))}, pick=lambda out: (out["logits_per_text"], out["image_embeds"])),
    *S("SigLIP", "vision", hf("SiglipVision", **ViT), pixels(32)),
    # Speech
    *D("Whisper", "speech", hf("Whisper", vocab_size=V, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
                                  encoder_ffn_dim=64, decoder_ffn_dim=64, num_mel_bins=16, max_source_positions=20, max_target_positions=32, use_cache=False,
                                  pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1),
          {"input_features": normal((2, 16, 40), (3, 16, 40)), "decoder_input_ids": ids(V, (2, 5), (3, 6))}),
    *S("wav2vec 2.0", "speech", hf("Wav2Vec2", conv_dim=[16, 16], conv_kernel=[10, 3], conv_stride=[5, 2], num_feat_extract_layers=2, num_conv_pos_embeddings=8,
                                  num_conv_pos_embedding_groups=4, mask_time_prob=0.0, **SMALL), {"input_values": normal((2, 400), (3, 600))}),
    *D("HuBERT", "speech", hf("Hubert", conv_dim=[16, 16], conv_kernel=[10, 3], conv_stride=[5, 2], num_feat_extract_layers=2, num_conv_pos_embeddings=8,
                             num_conv_pos_embedding_groups=4, mask_time_prob=0.0, **SMALL), {"input_values": normal((2, 400), (3, 600))}, apart=True),
    *S("Conformer", "speech", hf("Wav2Vec2Conformer", conv_dim=[16, 16], conv_kernel=[10, 3], conv_stride=[5, 2], num_feat_extract_layers=2, num_conv_pos_embeddings=8,
                                num_conv_pos_embedding_groups=4, mask_time_prob=0.0, conv_depthwise_kernel_size=3, **SMALL), {"input_values": normal((2, 400), (3, 600))}),
    *D("AST", "speech", hf("AST", max_length=32, num_mel_bins=16, patch_size=8, frequency_stride=4, time_stride=4, hidden_size=32, num_hidden_layers=2,
                          num_attention_heads=4, intermediate_size=64), {"input_values": normal((2, 32, 16), (3, 32, 16))}),
    # Diffusion
    *both("UNet", "diffusion", blocks("UNet2DConditionModel", sample_size=8, block_out_channels=(16, 32), layers_per_block=1, cross_attention_dim=32, attention_head_dim=4,
                                     down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"), norm_num_groups=8), LATENT),
    *S("VAE", "diffusion", blocks("AutoencoderKL", block_out_channels=(16, 32), down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2,
                                 norm_num_groups=8, latent_channels=4), {"sample": normal((2, 3, 16, 16), (3, 3, 16, 16))}),
    *D("DiT", "diffusion", blocks("DiTTransformer2DModel", num_attention_heads=2, attention_head_dim=16, in_channels=4, out_channels=8, num_layers=2, sample_size=8,
                                 norm_num_groups=4, num_embeds_ada_norm=100),
       {"hidden_states": normal((2, 4, 8, 8), (3, 4, 8, 8)), "timestep": ids(100, (2,), (3,)), "class_labels": ids(100, (2,), (3,))}),
    *D("SD3", "diffusion", blocks("SD3Transformer2DModel", sample_size=8, patch_size=2, in_channels=4, num_layers=2, attention_head_dim=8, num_attention_heads=4,
                                 joint_attention_dim=32, caption_projection_dim=32, pooled_projection_dim=16, out_channels=4, pos_embed_max_size=16),
       {"hidden_states": normal((2, 4, 8, 8), (3, 4, 8, 8)), "encoder_hidden_states": normal((2, 5, 32), (3, 6, 32)), "pooled_projections": normal((2, 16), (3, 16)),
        "timestep": ids(900, (2,), (3,))}),
    *D("FLUX", "diffusion", blocks("FluxTransformer2DModel", patch_size=1, in_channels=4, num_layers=1, num_single_layers=1, attention_head_dim=16, num_attention_heads=2,
                                  joint_attention_dim=32, pooled_projection_dim=16, axes_dims_rope=(4, 4, 8)),
       {"hidden_states": normal((2, 16, 4), (3, 16, 4)), "encoder_hidden_states": normal((2, 5, 32), (3, 5, 32)), "pooled_projections": normal((2, 16), (3, 16)),
        "timestep": unit((2,), (3,)), "img_ids": same(torch.cartesian_prod(torch.zeros(1), torch.arange(4.0), torch.arange(4.0))), "txt_ids": same(torch.zeros(5, 3))}),
    *S("ControlNet", "diffusion", blocks("ControlNetModel", block_out_channels=(16, 32), layers_per_block=1, cross_attention_dim=32, attention_head_dim=4,
                                        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), norm_num_groups=8, conditioning_embedding_out_channels=(16, 32)),
       LATENT | {"controlnet_cond": normal((2, 3, 16, 16), (3, 3, 16, 16))}, pick=lambda out: (*out[0], out[1]), more={"return_dict": False}),
)

BY = {"dynamo": "torch.onnx, dynamo", "script": "torch.onnx, TorchScript"}
NETWORKS = [Network(f"{r.name} {r.exporter}", r.kind, BY[r.exporter], lambda r=r: files(r)) for r in RECIPES]
