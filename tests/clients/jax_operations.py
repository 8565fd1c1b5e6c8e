#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What JAX computes on the device beside what it computes on the CPU, both through XLA.

JAX takes a device only where the file /dev/nvidia0 or /dev/nvidiactl exists, before it asks the driver; here it is told that one does.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax._src import hardware_utils
from operations import main, operation

hardware_utils.has_visible_nvidia_gpu = lambda: True
jax.config.update("jax_default_matmul_precision", "highest")  # no tf32
assert jax.devices()[0].platform == "gpu", jax.devices()
G = np.random.default_rng(0)


def normal(*shape):
    return G.standard_normal(shape).astype(np.float32)


A, B, V = normal(64, 64), normal(64, 64), normal(10001)


def both(function, *arguments):
    """Pairs of the device's and the CPU's results."""
    got = jax.tree.leaves(jax.jit(function)(*arguments))
    with jax.default_device(jax.devices("cpu")[0]):
        expected = jax.tree.leaves(jax.jit(function)(*arguments))
    return [(np.asarray(one), np.asarray(other)) for one, other in zip(got, expected)]


@operation
def elementwise():
    return both(lambda v: jnp.sin(v) * jnp.exp(-v * v) + jnp.tanh(v) ** 2, V)


@operation
def integers():
    return both(lambda v: (v % 7, v >> 3, jax.lax.population_count(v), v ^ 12345), (V * 1000).astype(np.int32))


@operation
def reductions():
    return both(lambda v: (v.sum(), v.max(), v.argmin(), jnp.var(v), jnp.prod(v[:20])), V)


@operation
def scans():
    return both(lambda v: (jnp.cumsum(v[:500]), jax.lax.associative_scan(jnp.maximum, v)), V)


@operation
def sort():
    return both(lambda v: (jnp.sort(v), jnp.argsort(v), jax.lax.top_k(v, 17)), V)


@operation
def indexing():
    return both(lambda v: (v[::3], v.at[jnp.arange(0, 100, 7)].add(2), jnp.take(v, jnp.array([5, 7])), jnp.where(v > 0, v, 0)), V)


@operation
def histogram():
    return both(lambda v: (jnp.bincount(((v + 5) * 3).astype(int), length=40), jnp.histogram(v, 20, (-3, 3))[0]), V)


@operation
def matmul():
    return both(lambda a, b: (a @ b, jnp.einsum("ij,kj->ik", a, b)), A, B)


@operation
def matmul_bf16():
    exact = lambda a, b: jnp.matmul(a.astype(jnp.bfloat16), b.astype(jnp.bfloat16), preferred_element_type=jnp.float32)
    return both(exact, A, B)


def convolve(x, w, groups=1, strides=(1, 1)):
    return jax.lax.conv_general_dilated(x, w, strides, "SAME", feature_group_count=groups)


@operation
def convolution():
    return both(convolve, normal(2, 3, 16, 16), normal(4, 3, 3, 3))


@operation
def convolution_gradients():
    x, w = normal(2, 8, 12, 12), normal(16, 8, 3, 3)
    return both(jax.grad(lambda x, w: (convolve(x, w, 1, (2, 2)) ** 2).mean(), (0, 1)), x, w)


@operation
def convolution_in_groups():
    return both(lambda x, w: convolve(x, w, 4), normal(2, 8, 12, 12), normal(8, 2, 3, 3))


@operation
def softmax_and_norm():
    return both(lambda a: (jax.nn.softmax(a), (a - a.mean(-1, keepdims=True)) / jnp.sqrt(a.var(-1, keepdims=True) + 1e-5)), A)


@operation
def attention():
    return both(lambda q: jax.nn.dot_product_attention(q, q * 0.5, q * 0.25), normal(1, 32, 2, 16))


@operation
def gradient():
    return both(jax.grad(lambda w: jnp.mean((jax.nn.gelu(A @ w * 0.1) @ B) ** 2)), B)


@operation
def control_flow():
    loop = lambda v: jax.lax.while_loop(lambda c: c[0] < 50, lambda c: (c[0] + 1, c[1] * 1.01 + 0.1), (0, v))
    scan = lambda v: jax.lax.scan(lambda c, x: (c * 0.9 + x, c), 0.0, v[:200])
    return both(lambda v: (loop(v), scan(v), jax.lax.cond(v.sum() > 0, lambda x: x * 2, lambda x: x - 1, v)), V)


@operation
def random_numbers():
    key = jax.random.key
    return both(lambda v: (jax.random.bits(key(3), (1000,)), jax.random.randint(key(4), (100,), 0, 50), jax.random.normal(key(5), (1000,))), V)


@operation
def fft():
    return both(lambda v: (jnp.fft.fft(v[:1024]).real / 32, jnp.fft.rfft2(A).imag / 64), V)


@operation
def linear_algebra():
    good = A @ A.T / 64 + np.eye(64, dtype=np.float32)
    return both(lambda a, b: (jnp.linalg.cholesky(a), jnp.linalg.solve(a, b), abs(jnp.linalg.qr(a)[1]), jnp.linalg.eigvalsh(a), jnp.linalg.svd(a, compute_uv=False)), good, B)


if __name__ == "__main__":
    main()
