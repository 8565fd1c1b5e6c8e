# SPDX-License-Identifier: Apache-2.0
"""Operations of packages on top of PyTorch, on the device beside the CPU.

`@on_both` makes an operation (operations.py) of a function of a device that returns tensors, numbers, or lists of them. Models get their
weights on the CPU, from the same seed, so that both begin with the same numbers.
"""

import functools
import warnings

import torch
from operations import OPERATIONS

warnings.filterwarnings("ignore")
torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False


def arrays(results):
    """What an operation returned, as a list of NumPy's arrays; bf16 as f16, which is compared as coarsely."""
    if isinstance(results, (list, tuple)):
        return [array for one in results for array in arrays(one)]
    tensor = torch.as_tensor(results).detach().cpu()
    return [(tensor.half() if tensor.dtype == torch.bfloat16 else tensor).numpy()]


def on_both(function):
    @functools.wraps(function)
    def pairs():
        results = []
        for device in ("cpu", "cuda"):
            torch.manual_seed(0)
            results.append(arrays(function(device)))
        torch.cuda.synchronize()
        expected, got = results
        assert len(got) == len(expected), (len(got), len(expected))
        return zip(got, expected)

    OPERATIONS[function.__name__] = pairs
    return function


def trained(model, device, loss_of, optimizer=torch.optim.AdamW, steps=3, rate=1e-3, **autocast):
    """The losses of a few steps; `autocast`: a dtype, and whether a GradScaler scales them."""
    model = model.to(device).train()
    optimizer = optimizer([p for p in model.parameters() if p.requires_grad], rate)
    scaler = torch.amp.GradScaler(device, enabled=autocast.get("scaled", False))
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        with torch.autocast(device, autocast.get("dtype"), enabled="dtype" in autocast):
            loss = loss_of(model)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    return torch.tensor(losses, dtype=torch.half if "dtype" in autocast else torch.float)
