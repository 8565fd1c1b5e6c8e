#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""RAPIDS' nearest neighbours (cuVS), graphs (pylibcugraph) and images (cuCIM) beside NumPy, SciPy and scikit-image."""

import os

import cupy
import numpy as np
import scipy.sparse.csgraph
from operations import main, operation

os.environ.setdefault("CUFILE_LOGFILE_PATH", os.devnull)  # else cuCIM leaves a cufile.log in the current folder
G = np.random.default_rng(0)
POINTS, QUERIES = (G.standard_normal((n, 32)).astype(np.float32) for n in (1000, 20))
DISTANCES = ((QUERIES[:, None] - POINTS[None]) ** 2).sum(-1)
NEAREST = np.argsort(DISTANCES, 1)[:, :5]
ON_DEVICE = cupy.asarray(POINTS)  # an index may keep the address only
EDGES = np.triu(G.random((60, 60)) < 0.08, 1) | np.eye(60, k=1, dtype=bool)
EDGES = EDGES | EDGES.T
IMAGE = G.random((40, 50)).astype(np.float32)


def on_host(values):
    return cupy.asnumpy(cupy.asarray(values))


def recall(found, bound):
    found = on_host(found)
    return [(bool(np.mean([len(set(a) & set(b)) / 5 for a, b in zip(found, NEAREST)]) >= bound), True)]


@operation
def neighbours_brute_force():
    from cuvs.neighbors import brute_force

    distances, found = brute_force.search(brute_force.build(ON_DEVICE, metric="sqeuclidean"), cupy.asarray(QUERIES), 5)
    return [(on_host(found), NEAREST), (on_host(distances), np.sort(DISTANCES, 1)[:, :5])]


@operation
def neighbours_inverted_lists():
    from cuvs.neighbors import ivf_flat

    index = ivf_flat.build(ivf_flat.IndexParams(n_lists=8), ON_DEVICE)
    return recall(ivf_flat.search(ivf_flat.SearchParams(n_probes=8), index, cupy.asarray(QUERIES), 5)[1], 1.0)


@operation
def distances():
    from cuvs.distance import pairwise_distance

    found = [pairwise_distance(cupy.asarray(QUERIES), ON_DEVICE, metric=name) for name in ("sqeuclidean", "cityblock")]
    return [(on_host(found[0]), DISTANCES), (on_host(found[1]), np.abs(QUERIES[:, None] - POINTS[None]).sum(-1))]


@operation
def kmeans():
    from cuvs.cluster import kmeans

    centres, inertia, _ = kmeans.fit(kmeans.KMeansParams(n_clusters=4), ON_DEVICE)
    nearest = ((POINTS[:, None] - on_host(centres)[None]) ** 2).sum(-1).min(1)
    return [(np.float32(inertia), np.float32(nearest.sum()))]


def graph(edges=EDGES):
    from pylibcugraph import GraphProperties, ResourceHandle, SGGraph

    handle = ResourceHandle()
    source, target = (cupy.asarray(ends, dtype=cupy.int32) for ends in np.nonzero(edges))
    return handle, SGGraph(
        handle, GraphProperties(is_symmetric=True, is_multigraph=False), source, target, store_transposed=False,
        weight_array=cupy.ones(len(source), cupy.float32), renumber=True, do_expensive_check=False,
    )  # fmt: skip


def by_vertex(vertices, values):
    """The values in the order of the vertices, and the vertices: those that have edges."""
    order = np.argsort(on_host(vertices))
    return on_host(values)[order], on_host(vertices)[order]


@operation
def graph_pagerank():
    import pylibcugraph

    ranks, vertices = by_vertex(*pylibcugraph.pagerank(*graph(), None, None, None, None, 0.85, 1e-7, 500, False))
    expected = np.full(60, 1 / 60)
    for _ in range(200):
        expected = 0.15 / 60 + 0.85 * ((EDGES / EDGES.sum(1)[:, None]).T @ expected)
    return [(ranks, expected[vertices].astype(np.float32))]


@operation
def graph_breadth_first():
    import pylibcugraph

    found, _, vertices = pylibcugraph.bfs(*graph(), cupy.asarray([0], dtype=cupy.int32), True, 100, True, False)
    found, vertices = by_vertex(vertices, found)
    expected = scipy.sparse.csgraph.shortest_path(EDGES, unweighted=True, indices=0)[vertices]
    return [(found, expected.astype(found.dtype))]


@operation
def graph_triangles():
    import pylibcugraph

    counts, vertices = by_vertex(*pylibcugraph.triangle_count(*graph(), None, False))
    return [(counts, np.diag(np.linalg.matrix_power(EDGES.astype(int), 3))[vertices] // 2)]


@operation
def graph_components():
    import pylibcugraph

    parts = np.arange(60) // 20
    edges = EDGES & (parts[:, None] == parts)
    vertices, labels = pylibcugraph.weakly_connected_components(*graph(edges), None, None, None, None, False)
    expected = scipy.sparse.csgraph.connected_components(edges)[1][on_host(vertices)]
    pairs = set(zip(on_host(labels).tolist(), expected.tolist()))
    return [(len(pairs), len(set(expected.tolist()))), (len({label for label, _ in pairs}), len(pairs))]


@operation
def image_labels():
    import cucim.skimage.measure
    import skimage.measure

    return [(on_host(cucim.skimage.measure.label(cupy.asarray(IMAGE > 0.6))), skimage.measure.label(IMAGE > 0.6))]


@operation
def image_filters():
    import cucim.skimage.filters
    import skimage.filters

    image, ours, theirs = cupy.asarray(IMAGE), cucim.skimage.filters, skimage.filters
    return [
        (on_host(ours.gaussian(image, 1)), theirs.gaussian(IMAGE, 1)),
        (on_host(ours.sobel(image)), theirs.sobel(IMAGE)),
        (np.float32(on_host(ours.threshold_otsu(image))), np.float32(theirs.threshold_otsu(IMAGE))),
    ]


if __name__ == "__main__":
    main()
