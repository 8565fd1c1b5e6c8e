#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packages with CUDA or Triton kernels of their own for PyTorch: xformers, vLLM, SageAttention, torchao, spconv; and packages that
only use PyTorch's: Kornia, MONAI, Stable-Baselines3, Whisper.

Kernels that have no CPU code are compared with the formula in f32, written down here.
"""

import os
import tempfile

import numpy as np
import torch
from operations import main, operation
from torch_pairs import on_both

os.environ.update(HF_HUB_OFFLINE="1", VLLM_ENABLE_V1_MULTIPROCESSING="0", VLLM_USE_FLASHINFER_SAMPLER="0")


def seeded(*shape, dtype=torch.half):
    return torch.randn(*shape).to(dtype)


def halves(got, expected):
    """A pair that is compared as halves are."""
    return got.detach().float().cpu().half().numpy(), expected.detach().float().half().numpy()


def attention(q, k, v, mask=None):
    """Of [batch, length, heads, width], in f32 on the CPU."""
    q, k, v = (x.detach().float().cpu().transpose(1, 2) for x in (q, k, v))
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return (scores.softmax(-1) @ v).transpose(1, 2)


def xformers_attention(kernel, causal=True, dtype=torch.half):
    from xformers.ops import LowerTriangularMask, fmha

    torch.manual_seed(0)
    q, k, v = (seeded(2, 40, 2, 64, dtype=dtype).cuda() for _ in range(3))
    bias = LowerTriangularMask() if causal else None
    got = fmha.memory_efficient_attention_forward(q, k, v, attn_bias=bias, op=getattr(fmha, kernel).FwOp)
    return [halves(got, attention(q, k, v, torch.ones(40, 40, dtype=torch.bool).tril() if causal else None))]


@operation
def xformers_cutlass():
    return xformers_attention("cutlass") + xformers_attention("cutlass", False, torch.float)


@operation
def xformers_flash_2():
    return xformers_attention("flash")


@operation
def xformers_flash_3():
    """Machine code for sm_90a beside PTX for sm_80 whose kernels are empty."""
    return xformers_attention("flash3", False)


@operation
def xformers_split_k():
    return xformers_attention("triton_splitk", False)


@operation
def xformers_gradients():
    from xformers.ops import memory_efficient_attention

    torch.manual_seed(0)
    values = [seeded(1, 32, 2, 32) for _ in range(3)]
    inputs = [[x.clone().to(device).requires_grad_() for x in values] for device in ("cuda", "cpu")]
    memory_efficient_attention(*inputs[0]).float().square().sum().backward()
    q, k, v = (x.float().transpose(1, 2) for x in inputs[1])
    ((q @ k.transpose(-1, -2) / 32**0.5).softmax(-1) @ v).square().sum().backward()
    return [(bool((a.grad.cpu().float() - b.grad.float()).abs().max() < 5e-3), True) for a, b in zip(*inputs)]


@operation
def vllm_norm_and_activation():
    from vllm import _custom_ops as kernels

    torch.manual_seed(0)
    x, weight, wide = seeded(5, 128), seeded(128), seeded(5, 256)
    normed = torch.empty(5, 128, dtype=torch.half, device="cuda")
    kernels.rms_norm(normed, x.cuda(), weight.cuda(), 1e-6)
    active = torch.empty(5, 128, dtype=torch.half, device="cuda")
    torch.ops._C.silu_and_mul(active, wide.cuda())
    f = x.float()
    return [
        halves(normed, f * torch.rsqrt((f * f).mean(-1, keepdim=True) + 1e-6) * weight.float()),
        halves(active, torch.nn.functional.silu(wide[:, :128].float()) * wide[:, 128:].float()),
    ]


@operation
def vllm_scaled_products():
    """FP8 and int8 products of CUTLASS with a scale for each row and column."""
    from vllm import _custom_ops as kernels

    torch.manual_seed(0)
    pairs = []
    for dtype in (torch.int8, torch.float8_e4m3fn):
        a, b = ((torch.randn(n, 128) * 30).to(dtype) for n in (32, 64))
        rows, columns = torch.rand(32, 1), torch.rand(1, 64)
        got = kernels.cutlass_scaled_mm(a.cuda(), b.cuda().t(), rows.cuda(), columns.cuda(), torch.bfloat16)
        expected = (a.double() @ b.double().t()) * rows * columns
        pairs.append((bool((got.cpu() - expected).abs().max() < 4e-3 * expected.abs().max()), True))
    return pairs


def paged_batch():
    """Three sequences in a paged cache: queries, caches, table, lengths, and attention's result."""
    torch.manual_seed(0)
    keys, values, table = seeded(12, 16, 2, 64), seeded(12, 16, 2, 64), torch.randperm(12)[:9].view(3, 3).int()
    lengths, counts = [5, 40, 33], [1, 7, 3]
    queries, expected = seeded(11, 4, 64), []
    for places, length, part in zip(table.long(), lengths, queries.split(counts)):
        k, v = (x[places].reshape(-1, 2, 64)[:length].repeat_interleave(2, 1)[None] for x in (keys, values))
        mask = torch.ones(len(part), length, dtype=torch.bool).tril(length - len(part))
        expected.append(attention(part[None], k, v, mask)[0])
    return queries, keys, values, table, lengths, counts, torch.cat(expected)


def vllm_flash(version):
    from vllm.vllm_flash_attn import flash_attn_varlen_func

    queries, keys, values, table, lengths, counts, expected = paged_batch()
    got = flash_attn_varlen_func(
        queries.cuda(), keys.cuda(), values.cuda(), max_seqlen_q=max(counts), max_seqlen_k=max(lengths), causal=True,
        cu_seqlens_q=torch.tensor([0, *np.cumsum(counts)]).int().cuda(), seqused_k=torch.tensor(lengths).int().cuda(),
        block_table=table.cuda(), fa_version=version,
    )  # fmt: skip
    return [halves(got, expected)]


@operation
def vllm_flash_2():
    return vllm_flash(2)


@operation
def vllm_flash_3():
    return vllm_flash(3)


@operation
def vllm_awq():
    from vllm import _custom_ops as kernels

    torch.manual_seed(0)
    weights, zeros = (torch.randint(0, 2**31 - 1, (rows, 8), dtype=torch.int32) for rows in (128, 1))
    scales = torch.rand(1, 64).half()
    got = kernels.awq_dequantize(weights.cuda(), scales.cuda(), zeros.cuda(), 0, 0, 0)
    order = torch.tensor([0, 4, 1, 5, 2, 6, 3, 7]) * 4
    plain, zero = (((x[:, :, None] >> order) & 15).view(len(x), -1).float() for x in (weights, zeros))
    return [halves(got, (plain - zero) * scales.float())]


@operation
def vllm_marlin():
    """Products of halves with 4-bit weights (GPTQ)."""
    from vllm import _custom_ops as kernels
    from vllm.model_executor.layers.quantization.utils.marlin_utils import marlin_make_workspace_new
    from vllm.model_executor.layers.quantization.utils.marlin_utils_test import marlin_quantize
    from vllm.scalar_type import scalar_types

    torch.manual_seed(0)
    x, kind = seeded(16, 256), scalar_types.uint4b8
    reference, packed, scales, groups, order, _ = marlin_quantize(seeded(256, 256).cuda(), kind, 128, False)
    got = kernels.gptq_marlin_gemm(
        a=x.cuda(), c=None, b_q_weight=packed, b_bias=None, b_scales=scales, global_scale=None, b_zeros=None,
        g_idx=groups, perm=order, workspace=marlin_make_workspace_new(packed.device), b_q_type=kind, size_m=16,
        size_n=256, size_k=256, is_k_full=True, use_atomic_add=False, use_fp32_reduce=True, is_zp_float=False,
    )  # fmt: skip
    expected = x.float() @ reference.cpu().float()
    return [(bool((got.cpu() - expected).abs().max() < 1e-3 * expected.abs().max()), True)]


@operation
def vllm_experts():
    from vllm.model_executor.layers.fused_moe import fused_experts

    torch.manual_seed(0)
    x, up, down = (seeded(*shape, dtype=torch.bfloat16) * 0.2 for shape in ((7, 64), (4, 128, 64), (4, 64, 64)))
    weights, experts = torch.randn(7, 4).softmax(-1).topk(2)
    got = fused_experts(x.cuda(), up.cuda(), down.cuda(), weights.cuda(), experts.int().cuda())
    hidden = torch.einsum("tkhi,ti->tkh", up.float()[experts], x.float())
    hidden = torch.nn.functional.silu(hidden[..., :64]) * hidden[..., 64:]
    expected = torch.einsum("tk,tkoh,tkh->to", weights, down.float()[experts], hidden)
    return [(bool((got.cpu() - expected).abs().max() < 1e-2 * expected.abs().max()), True)]


@operation
def vllm_llama():
    """Tokens of a small Llama with random weights in halves: vLLM's engine and transformers in f32 on the CPU."""
    from transformers import LlamaConfig, LlamaForCausalLM
    from vllm import LLM, SamplingParams

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=256, hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, max_position_embeddings=256, initializer_range=0.2,
    )  # fmt: skip
    model = LlamaForCausalLM(config).half()
    prompts = [[1, 5, 9, 33, 77], [4, 8, 15, 16, 23, 42, 99, 100]]
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        engine = LLM(
            folder, skip_tokenizer_init=True, dtype="float16", enforce_eager=True, gpu_memory_utilization=0.2,
            max_model_len=128, max_num_seqs=4, max_num_batched_tokens=128, num_gpu_blocks_override=64,
        )  # fmt: skip
        sampling = SamplingParams(temperature=0, max_tokens=8, detokenize=False, ignore_eos=True)
        outputs = engine.generate([{"prompt_token_ids": prompt} for prompt in prompts], sampling)
    return [
        (
            list(output.outputs[0].token_ids),
            model.float().generate(torch.tensor([prompt]), max_new_tokens=8, do_sample=False, pad_token_id=0)[0, len(prompt) :],
        )
        for output, prompt in zip(outputs, prompts)
    ]


@operation
def sage_attention():
    from sageattention import sageattn

    torch.manual_seed(0)
    q, k, v = (seeded(1, 2, 128, 64).cuda() for _ in range(3))
    got = sageattn(q, k, v, is_causal=False)  # its products are of int8
    expected = attention(*(x.transpose(1, 2) for x in (q, k, v))).transpose(1, 2)
    return [(bool((got.cpu().float() - expected).abs().max() < 2e-2), True)]


@operation
def torchao_weights():
    from torchao.quantization import Int4WeightOnlyConfig, Int8WeightOnlyConfig, quantize_

    torch.manual_seed(0)
    model, x = torch.nn.Linear(256, 128, bias=False).bfloat16(), seeded(4, 256, dtype=torch.bfloat16)
    pairs = []
    for config, bound in ((Int8WeightOnlyConfig(), 0.02), (Int4WeightOnlyConfig(group_size=64), 0.2)):
        quantized = torch.nn.Linear(256, 128, bias=False).bfloat16()
        quantized.load_state_dict(model.state_dict())
        quantize_(quantized.cuda(), config)
        error = (quantized(x.cuda()).cpu().float() - model(x).float()).abs().max() / model(x).float().abs().max()
        pairs.append((bool(error < bound), True))
    return pairs


@operation
def torchao_optimizers():
    from torchao.optim import AdamW4bit, AdamW8bit, AdamWFp8

    pairs = []
    for kind, bound in ((AdamW8bit, 0.02), (AdamWFp8, 0.02), (AdamW4bit, 0.1)):
        losses = []
        for device, optimizer in (("cuda", kind), ("cpu", torch.optim.AdamW)):
            torch.manual_seed(0)
            model, x = torch.nn.Linear(128, 64), torch.randn(8, 128)
            model, x = model.to(device), x.to(device)
            steps = optimizer(model.parameters(), lr=1e-2)
            for _ in range(3):
                loss = model(x).square().mean()
                steps.zero_grad()
                loss.backward()
                steps.step()
            losses.append(loss.item())
        pairs.append((abs(losses[0] - losses[1]) < bound * losses[1], True))
    return pairs


@operation
def spconv_layers():
    """Sparse convolutions beside dense ones, where all places have a value."""
    import spconv.pytorch as sparse
    from spconv.core import ConvAlgo

    pairs = []
    torch.manual_seed(0)
    places = torch.stack(torch.meshgrid(*[torch.arange(5)] * 3, indexing="ij"), -1).view(-1, 3)
    places = torch.cat([torch.zeros(125, 1), places], 1).int()
    values = torch.randn(125, 8)
    dense = values.t().view(1, 8, 5, 5, 5)
    for algorithm in (ConvAlgo.Native, ConvAlgo.MaskImplicitGemm):
        for layer, stride in ((sparse.SubMConv3d(8, 16, 3, bias=False, algo=algorithm, padding=1), 1),
                              (sparse.SparseConv3d(8, 16, 3, stride=2, padding=1, bias=False, algo=algorithm), 2)):  # fmt: skip
            got = layer.cuda()(sparse.SparseConvTensor(values.cuda(), places.cuda(), [5, 5, 5], 1)).dense()
            weights = layer.weight.detach().cpu()
            weights = weights.permute(0, 4, 1, 2, 3) if weights.shape[0] == 16 else weights.permute(4, 3, 0, 1, 2)
            pairs.append(halves(got, torch.nn.functional.conv3d(dense, weights, stride=stride, padding=1)))
    return pairs


@on_both
def kornia_filters(device):
    import kornia

    image = torch.rand(2, 3, 32, 40).to(device)
    kornia_color, kornia_filters = kornia.color, kornia.filters
    return [
        kornia_filters.gaussian_blur2d(image, (5, 5), (1.5, 1.5)),
        kornia_filters.sobel(image),
        kornia_filters.median_blur(image, (3, 3)),
        kornia_filters.bilateral_blur(image, (3, 3), 0.1, (1.0, 1.0)),
        kornia_color.rgb_to_lab(image),
        kornia_color.rgb_to_hsv(image),
        kornia.morphology.dilation(image, torch.ones(3, 3, device=device)),
        kornia.enhance.equalize_clahe(image),
    ]


@on_both
def kornia_geometry(device):
    from kornia import geometry

    image = torch.rand(2, 1, 32, 40).to(device)
    matrix = torch.tensor([[[0.9, 0.1, 2.0], [-0.1, 1.1, -1.0], [0.0005, 0.0, 1.0]]]).repeat(2, 1, 1).to(device)
    points = torch.rand(1, 12, 2).to(device)
    moved = geometry.transform_points(matrix[:1], points)
    return [
        geometry.warp_perspective(image, matrix, (32, 40)),
        geometry.rotate(image, torch.tensor([30.0, -45.0], device=device)),
        geometry.pyrdown(image),
        geometry.homography.find_homography_dlt(points, moved),
    ]


@on_both
def monai_networks(device):
    from monai.losses import DiceCELoss
    from monai.metrics import DiceMetric
    from monai.networks.nets import UNet

    model = UNet(3, 1, 2, (8, 16), (2,), num_res_units=1).to(device)
    volume, labels = torch.rand(1, 1, 16, 16, 16).to(device), torch.randint(0, 2, (1, 1, 16, 16, 16)).to(device)
    got = model(volume)
    loss = DiceCELoss(to_onehot_y=True, softmax=True)(got, labels)
    loss.backward()
    return [got, loss, model.model[0].conv.unit0.conv.weight.grad, DiceMetric()(got.argmax(1, True), labels)]


@on_both
def monai_transforms(device):
    from monai.inferers import sliding_window_inference
    from monai.transforms import Affine, GaussianSmooth, Resize, ScaleIntensity

    volume = torch.rand(1, 20, 24, 18).to(device)
    turned, _ = Affine(rotate_params=(0.2, 0.1, 0.3), padding_mode="zeros", device=device)(volume)
    windows = sliding_window_inference(volume[None], (8, 8, 8), 4, lambda part: part * 2 + 1, overlap=0.25)
    return [turned.as_tensor(), GaussianSmooth(1.0)(volume), Resize((10, 12, 9))(volume).as_tensor(),
            ScaleIntensity()(volume), windows]  # fmt: skip


@operation
def stable_baselines():
    """PPO and DQN learn on the device; what the learned policy does is the same on the CPU."""
    from stable_baselines3 import DQN, PPO

    pairs = []
    for kind, settings in ((PPO, {"n_steps": 32, "batch_size": 16, "n_epochs": 2}),
                           (DQN, {"learning_starts": 16, "buffer_size": 200, "batch_size": 16})):  # fmt: skip
        model = kind("MlpPolicy", "CartPole-v1", device="cuda", seed=0, **settings).learn(64)
        with tempfile.TemporaryDirectory() as folder:
            model.save(f"{folder}/model")
            other = kind.load(f"{folder}/model", device="cpu")
        states = np.random.default_rng(0).normal(size=(32, 4)).astype(np.float32)
        pairs.append((model.predict(states, deterministic=True)[0], other.predict(states, deterministic=True)[0]))
    return pairs


@on_both
def whisper_model(device):
    import whisper

    dims = whisper.model.ModelDimensions(80, 100, 64, 2, 2, 51865, 32, 64, 2, 2)
    model = whisper.model.Whisper(dims).eval()
    torch.nn.init.normal_(model.decoder.positional_embedding)  # which is whatever was in the memory
    model = model.to(device)
    sound = torch.sin(torch.arange(32000) / 20.0) * torch.rand(32000)
    spectrum = whisper.log_mel_spectrogram(sound.to(device))
    with torch.no_grad():
        logits = model(spectrum[None, :, :200], torch.tensor([[50258, 50259, 50359, 11, 22]]).to(device))
    filtered = whisper.timing.median_filter(torch.rand(2, 4, 100).to(device), 7)  # in Triton
    steps = whisper.timing.dtw(torch.rand(12, 40).to(device))  # likewise
    return [spectrum, logits, filtered, torch.as_tensor(np.asarray(steps).copy())]


if __name__ == "__main__":
    main()
