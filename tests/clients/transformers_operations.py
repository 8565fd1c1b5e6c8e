#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hugging Face's packages on the device beside the CPU: small models of random weights, nothing is fetched.

Forward, generation with caches, training in f32, bf16 and f16, Trainer, PEFT, bitsandbytes, diffusers, accelerate, Liger's kernels.
"""

import tempfile

import torch
from operations import main
from torch_pairs import on_both, trained
from transformers import (BertConfig, BertForSequenceClassification, BitsAndBytesConfig, GPT2Config, GPT2LMHeadModel, LlamaConfig,
                          LlamaForCausalLM, MistralConfig, MistralForCausalLM, Qwen2Config, Qwen2ForCausalLM, T5Config,
                          T5ForConditionalGeneration, Trainer, TrainingArguments, ViTConfig, ViTModel, WhisperConfig,
                          WhisperForConditionalGeneration)  # fmt: skip

WORDS = dict(vocab_size=200, pad_token_id=0, bos_token_id=1, eos_token_id=2)
DECODER = dict(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, **WORDS)
ENCODER = dict(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4)


def llama(**more):
    return LlamaForCausalLM(LlamaConfig(max_position_embeddings=128, **DECODER, **more))


def gpt2():
    return GPT2LMHeadModel(
        GPT2Config(n_positions=64, n_embd=64, n_layer=2, n_head=4, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, **WORDS)
    )


def words(device, batch=2, length=16):
    return torch.randint(3, 200, (batch, length)).to(device)


@torch.no_grad()
def logits(model, device):
    return model.eval().to(device)(words(device)).logits


@on_both
def bert(d):
    model = BertForSequenceClassification(BertConfig(vocab_size=200, **ENCODER)).eval().to(d)
    mask = torch.ones(2, 16, dtype=torch.long)
    mask[1, 10:] = 0
    return model(words(d), attention_mask=mask.to(d)).logits


@on_both
def bert_training(d):
    model = BertForSequenceClassification(
        BertConfig(vocab_size=200, hidden_dropout_prob=0, attention_probs_dropout_prob=0, **ENCODER)
    )
    ids, labels = words(d, 4), torch.tensor([0, 1, 1, 0], device=d)
    return trained(model, d, lambda m: m(ids, labels=labels).loss)


@on_both
def decoders(d):
    models = gpt2(), llama(), MistralForCausalLM(MistralConfig(sliding_window=8, **DECODER)), Qwen2ForCausalLM(Qwen2Config(**DECODER))
    return [logits(model, d) for model in models]


def generated(model, device, **how):
    prompt = words(device, 2, 8)
    mask = torch.ones_like(prompt)
    return model.eval().to(device).generate(prompt, attention_mask=mask, max_new_tokens=20, min_new_tokens=20, do_sample=False, **how)


@on_both
def generate(d):
    return [generated(gpt2(), d), generated(llama(), d), generated(llama(), d, num_beams=3)]


@on_both
def generate_with_static_cache(d):
    return generated(llama(), d, cache_implementation="static")  # which compiles the model


@on_both
def sequence_to_sequence(d):
    model = T5ForConditionalGeneration(
        T5Config(d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, dropout_rate=0, decoder_start_token_id=0, vocab_size=200)
    ).to(d)
    ids = words(d)
    loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    return [loss, model.shared.weight.grad, model.generate(ids, max_new_tokens=10, min_new_tokens=10, do_sample=False)]


@on_both
def whisper(d):
    sizes = {"layers": 2, "attention_heads": 4, "ffn_dim": 128}
    layers = {f"{part}_{name}": value for part in ("encoder", "decoder") for name, value in sizes.items()}
    config = WhisperConfig(d_model=64, max_source_positions=50, max_target_positions=40, decoder_start_token_id=1, **layers, **WORDS)
    model = WhisperForConditionalGeneration(config).eval().to(d)
    return model(torch.randn(1, 80, 100).to(d), decoder_input_ids=torch.tensor([[1, 5, 7]], device=d)).logits


@on_both
def vision_transformer(d):
    model = ViTModel(ViTConfig(image_size=32, patch_size=8, **ENCODER)).eval().to(d)
    return model(torch.randn(2, 3, 32, 32).to(d)).last_hidden_state


def language_training(model, device, **how):
    ids = words(device, 4, 24)
    return trained(model, device, lambda m: m(ids, labels=ids).loss, **how)


@on_both
def training(d):
    return [language_training(gpt2(), d), language_training(llama(), d), language_training(llama(attn_implementation="eager"), d)]


@on_both
def training_bf16(d):
    return language_training(llama(), d, dtype=torch.bfloat16)


@on_both
def training_f16(d):
    return language_training(gpt2(), d, dtype=torch.float16, scaled=True)


@on_both
def training_with_checkpoints(d):
    model = llama()
    model.gradient_checkpointing_enable()
    return language_training(model, d)


@on_both
def training_compiled(d):
    model = llama()
    return language_training(torch.compile(model) if d == "cuda" else model, d)


@on_both
def trainer(d):
    model, ids = gpt2(), words("cpu", 8)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(folder, max_steps=3, per_device_train_batch_size=4, report_to=[], use_cpu=d == "cpu",
                                      save_strategy="no", disable_tqdm=True, seed=1)  # fmt: skip
        return Trainer(model, arguments, train_dataset=[{"input_ids": row, "labels": row} for row in ids]).train().training_loss


@on_both
def peft_lora(d):
    from peft import LoraConfig, get_peft_model

    model = get_peft_model(llama(), LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"], lora_dropout=0.0))
    ids = words(d)
    return trained(model, d, lambda m: m(input_ids=ids, labels=ids).loss, rate=1e-2)


@on_both
def bitsandbytes_4bit(d):
    config = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.float32)
    with tempfile.TemporaryDirectory() as folder:
        llama().save_pretrained(folder)
        return logits(LlamaForCausalLM.from_pretrained(folder, quantization_config=config, device_map=d), d)


@on_both
def liger_norm_and_loss(d):
    """Triton kernels beside what they stand for."""
    x, weight, labels = torch.randn(16, 64), torch.randn(64), torch.randint(0, 64, (16,))
    x, weight = (t.to(d).requires_grad_() for t in (x, weight))
    if d == "cuda":
        from liger_kernel.transformers import LigerCrossEntropyLoss, LigerRMSNorm

        norm = LigerRMSNorm(64, eps=1e-6).to(d)
        norm.weight = torch.nn.Parameter(weight.detach())
        loss = LigerCrossEntropyLoss()(norm(x), labels.to(d))
        loss.backward()
        return [loss, x.grad, norm.weight.grad]
    loss = torch.nn.functional.cross_entropy(torch.nn.functional.rms_norm(x, (64,), weight, 1e-6), labels)
    loss.backward()
    return [loss, x.grad, weight.grad]


UNET = dict(layers_per_block=1, block_out_channels=(32, 64), norm_num_groups=8)


@on_both
@torch.no_grad()
def diffusion(d):
    from diffusers import AutoencoderKL, DDIMScheduler, UNet2DModel

    model = UNet2DModel(sample_size=16, down_block_types=("DownBlock2D", "AttnDownBlock2D"),
                        up_block_types=("AttnUpBlock2D", "UpBlock2D"), **UNET).eval().to(d)  # fmt: skip
    scheduler, x = DDIMScheduler(), torch.randn(1, 3, 16, 16).to(d)
    scheduler.set_timesteps(3)
    for time in scheduler.timesteps:
        x = scheduler.step(model(x, time).sample, time, x).prev_sample
    decoder = AutoencoderKL(block_out_channels=(32, 64), down_block_types=("DownEncoderBlock2D",) * 2,
                            up_block_types=("UpDecoderBlock2D",) * 2, norm_num_groups=8, sample_size=32).eval().to(d)  # fmt: skip
    return [x, decoder(torch.randn(1, 3, 32, 32).to(d)).sample]


@on_both
def diffusion_training(d):
    from diffusers import DDPMScheduler, UNet2DConditionModel

    model = UNet2DConditionModel(sample_size=8, down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
                                 up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"), cross_attention_dim=16, attention_head_dim=8,
                                 **UNET)  # fmt: skip
    image, noise, text = (torch.randn(*shape).to(d) for shape in ((2, 4, 8, 8), (2, 4, 8, 8), (2, 5, 16)))
    times = torch.tensor([3, 500], device=d)
    noisy = DDPMScheduler().add_noise(image, noise, times)
    return trained(model, d, lambda m: (m(noisy, times, text).sample - noise).pow(2).mean(), steps=2)


@on_both
def accelerate(d):
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state(True)
    accelerator = Accelerator(cpu=d == "cpu")
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    x = torch.randn(32, 8)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, x[:, :1]), batch_size=8)
    model, optimizer, loader = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), 1e-2), loader)
    losses = []
    for values, wanted in loader:
        loss = (model(values) - wanted).pow(2).mean()
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
        losses.append(loss.item())
    return losses


if __name__ == "__main__":
    main()
