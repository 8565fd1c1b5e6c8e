#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Libraries of pip with CUDA inside that are used without writing kernels, as they come: ONNX Runtime, faiss, XGBoost, CatBoost.

ONNX Runtime and faiss beside themselves on the CPU; the trees, which a GPU finds by another algorithm, by what they predict.
"""

import numpy as np
from operations import main, operation

G = np.random.default_rng(0)


def normal(*shape):
    return (G.standard_normal(shape) * 0.2).astype(np.float32)


def onnx(nodes, inputs, weights):
    """The output y of a graph on the device and on the CPU."""
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    onnxruntime.preload_dlls()
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, value.shape) for name, value in inputs.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    results = []
    for provider in (("CUDAExecutionProvider", {"use_tf32": 0}), "CPUExecutionProvider"):
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=[provider])
        name = provider if isinstance(provider, str) else provider[0]
        assert session.get_providers()[0] == name, session.get_providers()
        results.append(session.run(None, inputs)[0])
    return [tuple(results)]


def node(kind, *names, **attributes):
    from onnx import helper

    return helper.make_node(kind, list(names[:-1]), [names[-1]], **attributes)


@operation
def onnx_elementwise():
    nodes = [node("Mul", "x", "x", "a"), node("Exp", "a", "b"), node("Add", "b", "x", "c"), node("Sigmoid", "c", "y")]
    return onnx(nodes, {"x": normal(4, 100)}, {})


@operation
def onnx_product():
    nodes = [node("MatMul", "x", "w", "a"), node("Softmax", "a", "y", axis=-1)]
    return onnx(nodes, {"x": normal(32, 64)}, {"w": normal(64, 48)})


@operation
def onnx_convolution():
    nodes = [
        node("Conv", "x", "w", "b", "a", pads=[1, 1, 1, 1]),
        node("Relu", "a", "c"),
        node("MaxPool", "c", "d", kernel_shape=[2, 2], strides=[2, 2]),
        node("GlobalAveragePool", "d", "y"),
    ]
    return onnx(nodes, {"x": normal(1, 3, 16, 16)}, {"w": normal(8, 3, 3, 3), "b": normal(8)})


@operation
def onnx_norm_and_gather():
    nodes = [
        node("LayerNormalization", "x", "s", "b", "n"),
        node("ReduceMean", "n", "m", axes=[1]),
        node("Sub", "n", "m", "y"),
    ]
    return onnx(nodes, {"x": normal(8, 64)}, {"s": normal(64), "b": normal(64)})


@operation
def onnx_lstm():
    nodes = [node("LSTM", "x", "w", "r", "y", hidden_size=16)]
    return onnx(nodes, {"x": normal(5, 2, 8)}, {"w": normal(1, 64, 8), "r": normal(1, 64, 16)})


def search(index):
    import faiss

    vectors, queries = normal(2000, 32), normal(20, 32)
    if not index.is_trained:
        index.train(vectors)
    index.add(vectors)
    distances, places = index.search(queries, 5)
    on_device = faiss.index_cpu_to_gpu(faiss.StandardGpuResources(), 0, index)
    got_distances, got_places = on_device.search(queries, 5)
    return [(got_places, places), (got_distances, distances)]


@operation
def faiss_flat():
    import faiss

    return search(faiss.IndexFlatL2(32)) + search(faiss.IndexFlatIP(32))


@operation
def faiss_inverted_lists():
    import faiss

    return search(faiss.IndexIVFFlat(faiss.IndexFlatL2(32), 32, 16))


@operation
def faiss_quantized():
    import faiss

    return search(faiss.IndexIVFPQ(faiss.IndexFlatL2(32), 32, 16, 8, 8))


@operation
def faiss_kmeans():
    import faiss

    means = faiss.Kmeans(32, 8, niter=5, gpu=True, seed=1)
    means.train(normal(2000, 32))
    return [(bool(means.obj[-1] < means.obj[0]), True)]


def samples():
    values = G.standard_normal((2000, 20)).astype(np.float32)
    return values, (values[:, 0] * values[:, 1] + 0.5 * values[:, 2] > 0).astype(int)


@operation
def xgboost_trees():
    import xgboost

    values, wanted = samples()
    data = xgboost.DMatrix(values, wanted)
    settings = {"tree_method": "hist", "objective": "binary:logistic", "max_depth": 4, "seed": 1}
    right = [
        ((xgboost.train({**settings, "device": device}, data, 10).predict(data) > 0.5) == wanted).mean()
        for device in ("cuda", "cpu")
    ]
    return [(bool(abs(right[0] - right[1]) < 0.02 and right[0] > 0.9), True)]


@operation
def catboost_trees():
    from catboost import CatBoostClassifier

    values, wanted = samples()
    model = CatBoostClassifier(iterations=10, depth=4, task_type="GPU", devices="0", verbose=0, random_seed=1,
                               allow_writing_files=False)  # fmt: skip
    model.fit(values, wanted)
    return [(bool((model.predict(values) == wanted).mean() > 0.85), True)]


if __name__ == "__main__":
    main()
