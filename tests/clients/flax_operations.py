#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models of Flax, Haiku and Equinox trained by Optax's optimizers, on the device beside the CPU.

Results are those after a few steps in f32; the weights are made on the CPU and copied, so that both begin with the same numbers.
"""

import functools
import os

os.environ.setdefault("XLA_FLAGS", "--xla_gpu_autotune_level=0")  # by default XLA measures each plan of products and convolutions

import equinox
import flax.linen as linen
import haiku
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax._src import hardware_utils
from operations import main, operation

hardware_utils.has_visible_nvidia_gpu = lambda: True  # as in jax_operations.py
jax.config.update("jax_default_matmul_precision", "highest")  # no tf32
assert jax.devices()[0].platform == "gpu", jax.devices()
CPU = jax.devices("cpu")[0]
G = np.random.default_rng(0)


def normal(*shape):
    return G.standard_normal(shape).astype(np.float32)


def on_both(function):
    """An operation of a function that returns arrays, run with each default device."""

    @functools.wraps(function)
    def pairs():
        got, expected = [], []
        for device, results in ((jax.devices()[0], got), (CPU, expected)):
            G.bit_generator.state = np.random.default_rng(1).bit_generator.state  # the same numbers for both
            with jax.default_device(device):
                results += [np.asarray(jnp.asarray(leaf, jnp.float32)) for leaf in jax.tree.leaves(function())]
        return list(zip(got, expected))

    return operation(pairs)


def trained(loss_of, parameters, optimizer, steps=4):
    """The losses of a few steps and the weights' sums after them."""
    state = optimizer.init(parameters)

    @jax.jit
    def step(parameters, state):
        loss, gradients = jax.value_and_grad(loss_of)(parameters)
        updates, state = optimizer.update(gradients, state, parameters)
        return optax.apply_updates(parameters, updates), state, loss

    losses = []
    for _ in range(steps):
        parameters, state, loss = step(parameters, state)
        losses.append(loss)
    return losses, [jnp.mean(leaf) for leaf in jax.tree.leaves(parameters)]


def initial(module, *arguments):
    with jax.default_device(CPU):
        made = module.init(jax.random.key(0), *arguments)
    return jax.tree.map(np.asarray, made)


IMAGES, LABELS = normal(8, 16, 16, 3), G.integers(0, 10, 8)
TOKENS = G.integers(0, 50, (4, 12))


class Mlp(linen.Module):
    @linen.compact
    def __call__(self, x):
        for width in (64, 32):
            x = linen.gelu(linen.LayerNorm()(linen.Dense(width)(x)))
        return linen.Dense(10)(x)


class Convolutions(linen.Module):
    @linen.compact
    def __call__(self, x):
        for width in (8, 16):
            x = linen.relu(linen.GroupNorm(4)(linen.Conv(width, (3, 3))(x)))
            x = linen.avg_pool(x, (2, 2), (2, 2))
        return linen.Dense(10)(x.mean((1, 2)))


class Gpt(linen.Module):
    @linen.compact
    def __call__(self, tokens):
        x = linen.Embed(50, 32)(tokens) + self.param("places", linen.initializers.normal(0.02), (tokens.shape[1], 32))
        for _ in range(2):
            x += linen.MultiHeadDotProductAttention(4)(linen.LayerNorm()(x), mask=linen.make_causal_mask(tokens))
            x += linen.Dense(32)(linen.gelu(linen.Dense(128)(linen.LayerNorm()(x))))
        return linen.Dense(50)(x)


def classified(model, inputs, labels):
    return lambda weights: optax.softmax_cross_entropy_with_integer_labels(model.apply(weights, inputs), labels).mean()


MLP = initial(Mlp(), IMAGES.reshape(8, -1))
CONVOLUTIONS = initial(Convolutions(), IMAGES)
GPT = initial(Gpt(), TOKENS)


def train_mlp(optimizer):
    return trained(classified(Mlp(), IMAGES.reshape(8, -1), LABELS), MLP, optimizer)


@on_both
def optimizers():
    return [
        train_mlp(one)
        for one in (optax.adamw(1e-3), optax.sgd(1e-2, momentum=0.9, nesterov=True), optax.lamb(1e-3), optax.lion(1e-4))
    ]


@on_both
def second_order():
    return [train_mlp(one) for one in (optax.adafactor(1e-3), optax.rmsprop(1e-3))]


@on_both
def schedule_and_clipping():
    rate = optax.warmup_cosine_decay_schedule(0.0, 1e-2, 2, 6)
    return train_mlp(optax.MultiSteps(optax.chain(optax.clip_by_global_norm(0.5), optax.adam(rate)), 2))


@on_both
def convolutional_model():
    return trained(classified(Convolutions(), IMAGES, LABELS), CONVOLUTIONS, optax.adam(1e-3))


@on_both
def transformer():
    return trained(classified(Gpt(), TOKENS[:, :-1], TOKENS[:, 1:]), initial(Gpt(), TOKENS[:, :-1]), optax.adamw(1e-3))


@on_both
def transformer_by_cached_tokens():
    """Logits of whole sequences, under vmap and remat."""
    forward = jax.checkpoint(lambda row: Gpt().apply(GPT, row[None])[0])
    return jax.jit(jax.vmap(forward))(TOKENS)


@on_both
def batch_norm_and_dropout():
    class Model(linen.Module):
        @linen.compact
        def __call__(self, x, train):
            x = linen.BatchNorm(use_running_average=not train)(linen.Conv(8, (3, 3), strides=2)(x))
            return linen.Dense(10)(linen.Dropout(0.5, deterministic=not train)(x.reshape(len(x), -1)))

    model = Model()
    with jax.default_device(CPU):
        weights = model.init(jax.random.key(0), IMAGES, False)
    weights = jax.tree.map(np.asarray, weights)
    out, changed = jax.jit(
        lambda w: model.apply(w, IMAGES, True, mutable=["batch_stats"], rngs={"dropout": jax.random.key(3)})
    )(weights)
    return out, changed


@on_both
def recurrent():
    class Model(linen.Module):
        @linen.compact
        def __call__(self, x):
            return linen.Dense(3)(linen.RNN(linen.OptimizedLSTMCell(16))(x)), linen.RNN(linen.GRUCell(16))(x)

    inputs = normal(2, 7, 5)
    weights = initial(Model(), inputs)
    return trained(lambda w: sum(jnp.square(y).mean() for y in Model().apply(w, inputs)), weights, optax.adam(1e-2))


@on_both
def bf16_mixed():
    class Model(linen.Module):
        @linen.compact
        def __call__(self, x):
            return linen.Dense(10, dtype=jnp.bfloat16)(linen.relu(linen.Dense(32, dtype=jnp.bfloat16)(x)))

    inputs = IMAGES.reshape(8, -1)
    losses, _ = trained(classified(Model(), inputs, LABELS), initial(Model(), inputs), optax.sgd(1e-2))
    return [jnp.round(jnp.asarray(losses, jnp.float32) * 50)]


@on_both
def nnx_model():
    class Model(nnx.Module):
        def __init__(self, rngs):
            self.first, self.norm = nnx.Linear(768, 32, rngs=rngs), nnx.BatchNorm(32, rngs=rngs)
            self.second = nnx.Linear(32, 10, rngs=rngs)

        def __call__(self, x):
            return self.second(nnx.relu(self.norm(self.first(x))))

    with jax.default_device(CPU):
        graph, state = nnx.split(Model(nnx.Rngs(0)))
    model = nnx.merge(graph, jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)), state))
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)

    @nnx.jit
    def step(model, optimizer):
        def loss_of(model):
            return optax.softmax_cross_entropy_with_integer_labels(model(IMAGES.reshape(8, -1)), LABELS).mean()

        loss, gradients = nnx.value_and_grad(loss_of)(model)
        optimizer.update(model, gradients)
        return loss

    return [step(model, optimizer) for _ in range(4)]


@on_both
def haiku_model():
    model = haiku.without_apply_rng(
        haiku.transform(lambda x: haiku.Sequential([haiku.Conv2D(8, 3), jax.nn.silu, haiku.Flatten(), haiku.Linear(10)])(x))
    )
    return trained(classified(model, IMAGES, LABELS), initial(model, IMAGES), optax.adam(1e-3))


@on_both
def equinox_model():
    with jax.default_device(CPU):
        model = equinox.nn.MLP(768, 10, 32, 2, key=jax.random.key(1))
    weights, rest = equinox.partition(model, equinox.is_array)

    def loss_of(weights):
        rows = jax.vmap(equinox.combine(weights, rest))(IMAGES.reshape(8, -1))
        return optax.softmax_cross_entropy_with_integer_labels(rows, LABELS).mean()

    return trained(loss_of, jax.tree.map(np.asarray, weights), optax.adabelief(1e-3))


@on_both
def scan_of_layers():
    weights = {"w": normal(6, 32, 32) * 0.1, "b": normal(6, 32) * 0.1}
    inputs = normal(4, 32)

    def loss_of(weights):
        x, norms = jax.lax.scan(lambda x, layer: (jnp.tanh(x @ layer["w"] + layer["b"]), jnp.linalg.norm(x)), inputs, weights)
        return jnp.square(x).mean() + norms.mean()

    return trained(loss_of, weights, optax.adam(1e-2)), jax.hessian(lambda v: jnp.sum(jnp.tanh(v) ** 3))(normal(5))


if __name__ == "__main__":
    main()
