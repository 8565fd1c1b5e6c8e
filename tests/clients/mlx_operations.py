#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What MLX computes on the device beside what it computes on the CPU or NumPy does."""

import os

os.environ["MLX_ENABLE_TF32"] = "0"

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers
import numpy as np
from operations import main, operation

assert mx.default_device() == mx.Device(mx.gpu), mx.default_device()
G = np.random.default_rng(0)


def normal(*shape):
    return G.standard_normal(shape).astype(np.float32)


A, B = normal(64, 128), normal(128, 32)
X = mx.array(A)


def both(function):
    """Pairs of the device's and the CPU's results."""
    results = []
    for device in (mx.gpu, mx.cpu):
        with mx.stream(device):
            made = function()
            results.append([np.array(one) for one in (made if isinstance(made, (list, tuple)) else [made])])
    return list(zip(*results))


@operation
def elementwise():
    return [(np.array(mx.sin(X) * mx.exp(X) + mx.tanh(X)), np.sin(A) * np.exp(A) + np.tanh(A)), (np.array(X[::2, 3:9]), A[::2, 3:9])]


@operation
def product():
    return [(np.array(X @ mx.array(B)), A @ B)]


@operation
def reductions():
    return both(lambda: [mx.sum(X, axis=0), mx.max(X), mx.argmax(X, axis=1), mx.cumsum(X, axis=1), mx.sort(X, axis=1), mx.softmax(X, axis=1)])


@operation
def convolution():
    image, weights = mx.array(normal(2, 12, 12, 4)), mx.array(normal(8, 3, 3, 4))
    return both(lambda: mx.conv2d(image, weights, padding=1))


@operation
def attention_and_norms():
    q = mx.array(normal(1, 4, 32, 64))
    return both(lambda: [mx.fast.scaled_dot_product_attention(q, q * 0.5, q * 0.25, scale=0.125, mask="causal"),
                         mx.fast.rms_norm(X, mx.ones(128), 1e-5), mx.fast.layer_norm(X, None, None, 1e-5)])  # fmt: skip


@operation
def quantized_product():
    weights, x = mx.array(normal(64, 128)), normal(4, 128)
    quantized = mx.quantize(weights, group_size=64, bits=4)
    expected = x @ np.array(mx.dequantize(*quantized, group_size=64, bits=4)).T
    return [(np.array(mx.quantized_matmul(mx.array(x), *quantized, transpose=True, group_size=64, bits=4)), expected)]


@operation
def compiled():
    function = mx.compile(lambda v: mx.sin(v) * v + mx.sqrt(mx.abs(v)))
    return [(np.array(function(X)), np.sin(A) * A + np.sqrt(abs(A)))]


@operation
def fft():
    return [(np.array(mx.abs(mx.fft.rfft(X))) / 16, (abs(np.fft.rfft(A)) / 16).astype(np.float32))]


@operation
def training():
    def losses():
        numbers = np.random.default_rng(1)
        model = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 1))
        for layer in (model.layers[0], model.layers[3]):
            layer.weight = mx.array((numbers.standard_normal(layer.weight.shape) * 0.3).astype(np.float32))
            layer.bias = mx.zeros(layer.bias.shape)
        x = mx.array(numbers.standard_normal((64, 8)).astype(np.float32))
        optimizer, result = mlx.optimizers.Adam(learning_rate=0.01), []
        step = nn.value_and_grad(model, lambda m, x: ((m(x) - 2 * x[:, :1]) ** 2).mean())
        for _ in range(4):
            loss, gradients = step(model, x)
            optimizer.update(model, gradients)
            mx.eval(model.parameters(), optimizer.state)
            result.append(mx.array(loss.item()))
        return result

    return both(losses)


if __name__ == "__main__":
    main()
