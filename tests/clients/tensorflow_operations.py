#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What TensorFlow and Keras compute on the device beside what they compute on the CPU.

TensorFlow 2.21's wheel looks for cuSOLVER where its package does not put it, so NVIDIA's libraries are loaded before it is imported; with
LD_LIBRARY_PATH they would be found, too.
"""

import ctypes
import glob
import importlib
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
for package in ("nvjitlink", "cusparse", "cublas", "cusolver"):
    folder = list(importlib.import_module(f"nvidia.{package}").__path__)[0]
    for library in sorted(glob.glob(f"{folder}/lib/*.so*"), reverse=True):  # cublasLt before cublas
        try:
            ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
        except OSError:  # what only some programs need
            pass

import keras
import numpy as np
import tensorflow as tf
from operations import OPERATIONS, main

tf.config.experimental.enable_tensor_float_32_execution(False)
assert tf.config.list_physical_devices("GPU"), "TensorFlow sees no GPU"
G = np.random.default_rng(0)


def normal(*shape):
    return G.standard_normal(shape).astype(np.float32)


A, B = normal(64, 128), normal(128, 32)
IMAGE, FILTER = normal(2, 16, 16, 8), normal(3, 3, 8, 16)
GOOD = A @ A.T / 64 + np.eye(64, dtype=np.float32)


def operation(function):
    def pairs():
        results = []
        for device in ("GPU:0", "CPU:0"):
            keras.utils.set_random_seed(1)
            with tf.device(device):
                results.append([np.asarray(one) for one in tf.nest.flatten(function())])
        return zip(*results)

    OPERATIONS[function.__name__] = pairs
    return function


@operation
def elementwise():
    return tf.sin(A) * tf.exp(-A) + tf.nn.gelu(A)


@operation
def product():
    return [tf.matmul(A, B), tf.einsum("ij,kj->ik", A, A)]


@operation
def reductions():
    return [tf.reduce_sum(A, 0), tf.reduce_max(A, 1), tf.argmax(A, 1), tf.math.cumsum(A, 1), tf.sort(A, 1), tf.math.top_k(A, 3)]


@operation
def softmax():
    return [tf.nn.softmax(A), tf.nn.log_softmax(A)]


@operation
def indexing():
    return [tf.gather(A, [1, 5, 3]), tf.boolean_mask(A, A[:, 0] > 0), tf.where(A > 0), tf.unique([3, 3, 1, 2]).y,
            tf.scatter_nd([[1], [3], [1]], [1.0, 2.0, 3.0], [5])]  # fmt: skip


@operation
def convolution():
    return [tf.nn.conv2d(IMAGE, FILTER, 1, "SAME"), tf.nn.max_pool2d(IMAGE, 2, 2, "SAME"), tf.nn.avg_pool2d(IMAGE, 2, 2, "SAME")]


@operation
def gradients():
    weights = tf.constant(FILTER)
    with tf.GradientTape() as tape:
        tape.watch(weights)
        loss = tf.reduce_mean(tf.nn.relu(tf.nn.conv2d(IMAGE, weights, 2, "SAME")) ** 2)
    return tape.gradient(loss, weights)


@operation
def random_numbers():
    return tf.random.stateless_normal((1000,), (1, 2))


@operation
def fft():
    return tf.abs(tf.signal.rfft(A)) / 16


@operation
def linear_algebra():
    return [tf.linalg.cholesky(GOOD), tf.linalg.solve(GOOD, A), tf.linalg.svd(A, compute_uv=False), tf.linalg.inv(GOOD)]


@operation
def compiled_by_xla():
    return tf.function(lambda a, b: tf.nn.softmax(tf.matmul(a, b)) + tf.reduce_mean(a), jit_compile=True)(A, B)


def fit(model, x, y, loss, **how):
    model.compile("adam", loss, jit_compile=how.pop("jit_compile", False), **how)
    return [np.float32(value) for value in model.fit(x, y, batch_size=32, epochs=3, verbose=0, shuffle=False).history["loss"]]


SPARSE = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@operation
def training_of_convolutions():
    x = np.random.default_rng(1).standard_normal((64, 16, 16, 3)).astype(np.float32)
    model = keras.Sequential([keras.Input((16, 16, 3)), keras.layers.Conv2D(16, 3, activation="relu", padding="same"),
                              keras.layers.BatchNormalization(), keras.layers.MaxPool2D(), keras.layers.Conv2D(32, 3, activation="relu"),
                              keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(10)])  # fmt: skip
    return fit(model, x, (x.mean((1, 2)) > 0).argmax(-1), SPARSE)


@operation
def training_of_lstm():
    x = np.random.default_rng(1).integers(0, 50, (32, 12))
    model = keras.Sequential([keras.Input((12,)), keras.layers.Embedding(50, 16), keras.layers.LSTM(16), keras.layers.Dense(2)])
    return fit(model, x, x[:, 0] % 2, SPARSE)


@operation
def training_of_attention():
    x = np.random.default_rng(1).standard_normal((32, 12, 32)).astype(np.float32)
    inputs = keras.Input((12, 32))
    attended = keras.layers.MultiHeadAttention(4, 8)(inputs, inputs)
    model = keras.Model(inputs, keras.layers.Dense(1)(keras.layers.LayerNormalization()(attended + inputs)))
    return fit(model, x, x[:, :, :1], "mse")


if __name__ == "__main__":
    main()
