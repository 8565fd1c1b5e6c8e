# SPDX-License-Identifier: Apache-2.0
"""Models that torch_operations.py trains on the device and on the CPU: each function gives the losses of all steps."""

import torch
import torch.nn.functional as F
from torch import nn


def uniform(seed, *shape):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


def losses_of(model, optimizer, loss_of, steps):
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        loss = loss_of(model, step)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses).float().cpu()


def train_mlp(d, steps=50):
    """Three layers that learn which of ten sums of their 40 inputs is the greatest."""
    torch.manual_seed(1)
    model = nn.Sequential(
        nn.Linear(40, 96), nn.ReLU(), nn.LayerNorm(96), nn.Linear(96, 64), nn.GELU(), nn.Linear(64, 10)
    )
    model = model.to(d)
    inputs = uniform(2, 8, 50, 40)
    classes = (inputs @ uniform(3, 40, 10)).argmax(-1).to(d)
    inputs = inputs.to(d)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    return losses_of(model, optimizer, lambda m, step: F.cross_entropy(m(inputs[step % 8]), classes[step % 8]), steps)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.behind = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.attend(self.before(x)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.project(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.feed(self.behind(x))


class Gpt(nn.Module):
    def __init__(self, letters=30, length=32, width=64, heads=4, layers=2):
        super().__init__()
        self.letter, self.place = nn.Embedding(letters, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, letters, bias=False)

    def forward(self, text):
        x = self.letter(text) + self.place(torch.arange(text.shape[1], device=text.device))
        return self.head(self.norm(self.blocks(x)))


def gpt(d, steps, mixed):
    """A small GPT that learns sequences where each letter is a function of the two before it."""
    torch.manual_seed(4)
    model = Gpt().to(d)
    text = (uniform(5, 8, 33) * 30).long()
    for at in range(2, 33):
        text[:, at] = (text[:, at - 1] * 7 + text[:, at - 2] * 3 + 1) % 30
    text = text.to(d)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)

    def loss_of(model, _):
        with torch.autocast(torch.device(d).type, torch.bfloat16, enabled=mixed):
            letters = model(text[:, :-1])
            return F.cross_entropy(letters.flatten(0, 1).float(), text[:, 1:].flatten())

    return losses_of(model, optimizer, loss_of, steps)


def train_gpt(d):
    return gpt(d, 50, False)


def train_gpt_bf16(d):
    return gpt(d, 20, True)


class Residual(nn.Module):
    """A block of ResNet-18: two convolutions with norms, and what goes past them."""

    def __init__(self, inner, outer, stride):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(inner, outer, 3, stride, 1, bias=False), nn.BatchNorm2d(outer), nn.ReLU())
        self.second = nn.Sequential(nn.Conv2d(outer, outer, 3, 1, 1, bias=False), nn.BatchNorm2d(outer))
        self.past = nn.Identity()
        if stride != 1 or inner != outer:
            self.past = nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))

    def forward(self, x):
        return F.relu(self.second(self.first(x)) + self.past(x))


def train_resnet(d, steps=5):
    """ResNet-18's layers at an eighth of their width, on images of 16 by 16. Not with tf32, which by itself moves the
    losses by 0.8 (on the CPU, with rounded factors): 8 images are few for the norms."""
    torch.backends.cudnn.allow_tf32 = False
    torch.manual_seed(7)
    widths = [8, 8, 16, 32, 64]
    blocks = [
        Residual(widths[i] if first else widths[i + 1], widths[i + 1], 2 if first and i else 1)
        for i in range(4)
        for first in (True, False)
    ]
    begin = [nn.Conv2d(3, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    model = nn.Sequential(*begin, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)).to(d)
    images, classes = uniform(8, 8, 3, 16, 16).to(d), (uniform(9, 8) * 10).long().to(d)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, weight_decay=1e-4)
    return losses_of(model, optimizer, lambda m, _: F.cross_entropy(m(images), classes), steps)


def train_scaled(d, steps=10):
    """f16 under autocast with scaled gradients (on the CPU: bf16)."""
    torch.manual_seed(10)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 8)).to(d)
    inputs, classes = uniform(11, 16, 32).to(d), (uniform(12, 16) * 8).long().to(d)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    kind = torch.device(d).type
    scaler = torch.amp.GradScaler(kind, enabled=kind == "cuda")
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        with torch.autocast(kind, torch.float16 if kind == "cuda" else torch.bfloat16):
            loss = F.cross_entropy(model(inputs).float(), classes)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.detach())
    return torch.stack(losses).float().cpu()
