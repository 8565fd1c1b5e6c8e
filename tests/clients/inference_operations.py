#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Inference engines with whole models of random weights: ONNX Runtime with what PyTorch exports, CTranslate2 with what
transformers saves, both beside themselves on the CPU."""

import io
import json
import os
import tempfile
import warnings

import numpy as np
import torch
from operations import main, operation

warnings.filterwarnings("ignore")
os.environ.update(HF_HUB_OFFLINE="1")


def exported(model, arguments, inputs, outputs, **more):
    file = io.BytesIO()
    with torch.no_grad():
        torch.onnx.export(
            model.eval(), arguments, file, input_names=inputs, output_names=outputs, opset_version=17, dynamo=False, **more
        )
    return file.getvalue()


def session(data, provider, **options):
    import onnxruntime

    onnxruntime.preload_dlls()
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 3
    made = onnxruntime.InferenceSession(data, settings, providers=[(provider, options)])
    assert made.get_providers()[0] == provider, made.get_providers()
    return made


def on_device(data, **options):
    return session(data, "CUDAExecutionProvider", use_tf32=0, **options)


def on_cpu(data):
    return session(data, "CPUExecutionProvider")


def relative(pairs):
    """Of the largest element, as sums of many terms are compared."""
    return [(got / np.abs(expected).max(), expected / np.abs(expected).max()) for got, expected in pairs]


def onnx(model, tensors, outputs=("y",)):
    """The device's outputs, of two runs, and the CPU's."""
    data = exported(model, tuple(tensors.values()), list(tensors), list(outputs))
    inputs = {name: tensor.numpy() for name, tensor in tensors.items()}
    device, expected = on_device(data), on_cpu(data).run(None, inputs)
    return relative(pair for _ in range(2) for pair in zip(device.run(None, inputs), expected))


@operation
def onnx_resnet():
    import torchvision

    torch.manual_seed(0)
    return onnx(torchvision.models.resnet50(), {"x": torch.randn(2, 3, 64, 64)})


@operation
def onnx_resnet_half():
    """Its convolutions of 256 channels are cuDNN's kernels that store tiles by stmatrix and TMA."""
    import torchvision

    torch.manual_seed(0)
    return onnx(torchvision.models.resnet18().half(), {"x": torch.randn(2, 3, 64, 64).half()})


@operation
def onnx_bert():
    from transformers import BertConfig, BertModel

    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            sizes = dict(vocab_size=200, hidden_size=128, num_hidden_layers=2, num_attention_heads=4, intermediate_size=256)
            self.model = BertModel(BertConfig(**sizes, attn_implementation="eager"))

        def forward(self, ids, mask):
            result = self.model(input_ids=ids, attention_mask=mask)
            return result.last_hidden_state, result.pooler_output

    torch.manual_seed(0)
    ids, mask = torch.randint(0, 200, (2, 17)), torch.ones(2, 17, dtype=torch.long)
    mask[1, 10:] = 0
    return onnx(Encoder(), {"ids": ids, "mask": mask}, ("states", "pooled"))


@operation
def onnx_vision_transformer():
    import torchvision

    torch.manual_seed(0)
    sizes = dict(image_size=64, patch_size=16, num_layers=2, num_heads=3, hidden_dim=96, mlp_dim=192, num_classes=10)
    return onnx(torchvision.models.VisionTransformer(**sizes), {"x": torch.randn(2, 3, 64, 64)})


@operation
def onnx_segmentation():
    import torchvision

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = torchvision.models.segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None)

        def forward(self, x):
            return self.model(x)["out"]

    torch.manual_seed(0)
    return onnx(Network(), {"x": torch.randn(1, 3, 96, 96)})


@operation
def onnx_cuda_graph():
    """A captured run with inputs that change, in memory that stays."""
    import onnxruntime
    import torchvision

    torch.manual_seed(0)
    data = exported(torchvision.models.resnet18(), (torch.randn(1, 3, 64, 64),), ["x"], ["y"])
    device, cpu = on_device(data, enable_cuda_graph=1, cudnn_conv_algo_search="HEURISTIC"), on_cpu(data)
    x = onnxruntime.OrtValue.ortvalue_from_shape_and_type((1, 3, 64, 64), np.float32, "cuda", 0)
    y = onnxruntime.OrtValue.ortvalue_from_shape_and_type((1, 1000), np.float32, "cuda", 0)
    binding = device.io_binding()
    binding.bind_ortvalue_input("x", x)
    binding.bind_ortvalue_output("y", y)
    pairs = []
    for _ in range(3):
        image = torch.randn(1, 3, 64, 64).numpy()
        x.update_inplace(image)
        device.run_with_iobinding(binding)
        pairs.append((y.numpy(), cpu.run(None, {"x": image})[0]))
    return relative(pairs)


def converted(name, model, words, **files):
    """A model that transformers has saved, as CTranslate2 wants it; `words` are its vocabulary."""
    import ctranslate2
    from tokenizers import Tokenizer, models

    folder = tempfile.mkdtemp()
    model.save_pretrained(folder)
    Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token=words[0])).save(folder + "/tokenizer.json")
    special = dict(zip(("unk_token", "bos_token", "eos_token", "pad_token"), words))
    files["tokenizer_config"] = {"tokenizer_class": "PreTrainedTokenizerFast", **special}
    for file, content in files.items():
        with open(f"{folder}/{file}.json", "w") as out:
            json.dump(content, out)
    return ctranslate2.converters.TransformersConverter(folder).convert(folder + "/" + name)


def generated(model, words):
    """Logits in f32 and f16, and the tokens that greedy and beam search choose in f32."""
    import ctranslate2

    folder = converted("converted", model, words)
    prompts, results = [[words[i] for i in row] for row in ((5, 9, 33, 77), (8, 15, 16, 23))], {}
    settings = dict(max_length=10, include_prompt_in_result=False, end_token=words[2])
    for device, kind in (("cpu", "float32"), ("cuda", "float32"), ("cuda", "float16")):
        generator = ctranslate2.Generator(folder, device=device, compute_type=kind)
        logits = generator.forward_batch(prompts).to(ctranslate2.DataType.float32).to_device(ctranslate2.Device.cpu)
        tokens = [generator.generate_batch(prompts, beam_size=size, **settings) for size in (1, 3)]
        results[device, kind] = np.array(logits), [[one.sequences_ids[0] for one in each] for each in tokens]
    expected, tokens = results["cpu", "float32"]
    half, scale = results["cuda", "float16"][0], np.abs(expected).max()
    return [
        *relative([(results["cuda", "float32"][0], expected)]),
        (bool(np.abs(half - expected).max() < 0.01 * scale), True),
        (results["cuda", "float32"][1] == tokens, True),
    ]


@operation
def ctranslate2_gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    sizes = dict(vocab_size=128, n_positions=64, n_embd=64, n_layer=2, n_head=4, initializer_range=0.3)
    return generated(GPT2LMHeadModel(GPT2Config(**sizes)), [f"t{i}" for i in range(128)])


@operation
def ctranslate2_llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    sizes = dict(vocab_size=128, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4)
    config = LlamaConfig(**sizes, num_key_value_heads=2, max_position_embeddings=64, initializer_range=0.3)
    return generated(LlamaForCausalLM(config), [f"t{i}" for i in range(128)])


@operation
def ctranslate2_whisper():
    """What faster-whisper runs."""
    import ctranslate2
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    torch.manual_seed(0)
    words = [f"t{i}" for i in range(51865)]
    named = {50257: "endoftext", 50258: "startoftranscript", 50259: "en", 50359: "transcribe", 50361: "startofprev"}
    named.update({50362: "nospeech", 50363: "notimestamps"})
    for i, word in named.items():
        words[i] = f"<|{word}|>"
    for i in range(50364, len(words)):
        words[i] = f"<|{(i - 50364) * 0.02:.2f}|>"
    layers = dict(encoder_layers=2, decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=2)
    config = WhisperConfig(vocab_size=len(words), d_model=64, **layers, encoder_ffn_dim=128, decoder_ffn_dim=128, init_std=0.1)
    generation = {"alignment_heads": [[0, 0], [1, 1]], "suppress_tokens": [], "begin_suppress_tokens": [], "lang_to_id": {},
                  "decoder_start_token_id": 50258, "no_timestamps_token_id": 50363}  # fmt: skip
    folder = converted("converted", WhisperForConditionalGeneration(config), words, generation_config=generation)
    sound = ctranslate2.StorageView.from_array(np.random.default_rng(0).standard_normal((1, 80, 3000)).astype(np.float32))
    results = []
    for device in ("cuda", "cpu"):
        model = ctranslate2.models.Whisper(folder, device=device, compute_type="float32")
        tokens = model.generate(sound, [[50258, 50259, 50359, 50363]], max_length=12, beam_size=1)[0].sequences_ids[0]
        results.append((np.array(model.encode(sound, to_cpu=True)), tokens))
    return [*relative([(results[0][0], results[1][0])]), (results[0][1] == results[1][1], True)]


if __name__ == "__main__":
    main()
