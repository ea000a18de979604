"""The layers of models; each step of a layer is one operation of linalg."""

from __future__ import annotations

import math

from bench.models.graph import Buffer, Graph

BIAS = 0.1  # scale of the biases
SMALL = 1e-5  # added to a variance


def matmul(graph: Graph, x: Buffer, w: Buffer) -> Buffer:
    """Two kernels."""
    shape = (x.shape[0], w.shape[1])
    return graph.named("matmul", [x, w], shape, lambda x, w: x @ w, initial=0)


def dense(graph: Graph, x: Buffer, width: int, scale: float | None = None) -> Buffer:
    """Adds a dense layer, as three kernels: zero, product, bias."""
    w = graph.weight((x.shape[1], width), scale or math.sqrt(3 / x.shape[1]))
    b = graph.weight((width,), BIAS)
    body = "arith.addf %a, %b : f32"
    y = matmul(graph, x, w)
    return graph.map([(y, "ij"), (b, "j")], "ij", body, lambda y, b: y + b)


def relu(graph: Graph, x: Buffer) -> Buffer:
    """One kernel."""
    body = """%zero = arith.constant 0.0 : f32
arith.maximumf %a, %zero : f32"""
    letters = "ijkl"[: len(x.shape)]
    return graph.map([(x, letters)], letters, body, lambda x: x.clip(0))


def add(graph: Graph, x: Buffer, y: Buffer) -> Buffer:
    """One kernel."""
    body = "arith.addf %a, %b : f32"
    return graph.map([(x, "ij"), (y, "ij")], "ij", body, lambda x, y: x + y)


def normalise(graph: Graph, x: Buffer) -> Buffer:
    """Adds a layer normalisation of five kernels."""
    width = x.shape[1]
    gamma, beta = graph.weight((width,), 1), graph.weight((width,), BIAS)
    add_up = "arith.addf %a, %old : f32"
    total = graph.map([(x, "ij")], "i", add_up, lambda x: x.sum(1), initial=0)
    centre = f"""%width = arith.constant {width:e} : f32
%mean = arith.divf %b, %width : f32
%centred = arith.subf %a, %mean : f32
"""
    squares = f"""{centre}%square = arith.mulf %centred, %centred : f32
arith.addf %square, %old : f32"""
    spread = graph.map(
        [(x, "ij"), (total, "i")],
        "i",
        squares,
        lambda x, total: ((x - total[:, None] / width) ** 2).sum(1),
        initial=0,
    )
    scaled = f"""{centre}%variance = arith.divf %c, %width : f32
%small = arith.constant {SMALL:e} : f32
%safe = arith.addf %variance, %small : f32
%inverse = math.rsqrt %safe : f32
%unit = arith.mulf %centred, %inverse : f32
%stretched = arith.mulf %unit, %d : f32
arith.addf %stretched, %e : f32"""
    return graph.map(
        [(x, "ij"), (total, "i"), (spread, "i"), (gamma, "j"), (beta, "j")],
        "ij",
        scaled,
        lambda x, total, spread, gamma, beta: (
            (x - total[:, None] / width) / (spread[:, None] / width + SMALL) ** 0.5 * gamma + beta
        ),
    )


def softmax(graph: Graph, x: Buffer, factor: float) -> Buffer:
    """Adds the softmax of factor * x along the last of three dimensions, as six kernels."""
    import numpy as np

    top = "arith.maximumf %a, %old : f32"
    most = graph.map([(x, "hij")], "hi", top, lambda x: x.max(2), initial=-3e38)
    power = f"""%below = arith.subf %a, %b : f32
%factor = arith.constant {factor:e} : f32
%scaled = arith.mulf %below, %factor : f32
math.exp %scaled : f32"""
    powers = graph.map(
        [(x, "hij"), (most, "hi")],
        "hij",
        power,
        lambda x, most: np.exp((x - most[:, :, None]) * factor),
    )
    add_up = "arith.addf %a, %old : f32"
    total = graph.map([(powers, "hij")], "hi", add_up, lambda x: x.sum(2), initial=0)
    share = "arith.divf %a, %b : f32"
    return graph.map(
        [(powers, "hij"), (total, "hi")], "hij", share, lambda x, total: x / total[:, :, None]
    )


def attention(graph: Graph, x: Buffer, heads: int) -> Buffer:
    """Adds self-attention of x, as 26 kernels."""
    length, width = x.shape
    each = width // heads
    query, key, value = (_by_head(graph, dense(graph, x, width), heads) for _ in range(3))
    product = """%product = arith.mulf %a, %b : f32
arith.addf %product, %old : f32"""
    scores = graph.map(
        [(query, "hid"), (key, "hjd")],
        "hij",
        product,
        lambda q, k: q @ k.transpose(0, 2, 1),
        initial=0,
    )
    weights = softmax(graph, scores, 1 / math.sqrt(each))
    mixed = graph.named(
        "batch_matmul", [weights, value], (heads, length, each), lambda a, v: a @ v, initial=0
    )
    flat = _side_by_side(graph, mixed)
    return dense(graph, flat, width)


def cached_attention(graph: Graph, x: Buffer, heads: int) -> Buffer:
    """Adds the attention of one token to all tokens so far, as 26 kernels. The keys and values of
    the earlier tokens are in caches, to which the pass adds a row each."""
    import numpy as np

    width = x.shape[1]
    each = width // heads
    query, key, value = (
        graph.reshape(dense(graph, x, width), [[0], [1, 2]], (1, heads, each)) for _ in range(3)
    )
    keys, values = graph.append(key), graph.append(value)
    product = """%product = arith.mulf %a, %b : f32
arith.addf %product, %old : f32"""
    scores = graph.map(
        [(query, "ihd"), (keys, "jhd")],
        "hij",
        product,
        lambda q, k: np.einsum("ihd,jhd->hij", q, k),
        initial=0,
    )
    weights = softmax(graph, scores, 1 / math.sqrt(each))
    mixed = graph.map(
        [(weights, "hij"), (values, "jhd")],
        "ihd",
        product,
        lambda a, v: np.einsum("hij,jhd->ihd", a, v),
        initial=0,
    )
    return dense(graph, graph.reshape(mixed, [[0], [1, 2]], (1, width)), width)


def _by_head(graph: Graph, x: Buffer, heads: int) -> Buffer:
    """Adds one kernel that makes the elements of each head contiguous."""
    length, width = x.shape
    each = width // heads
    split = graph.reshape(x, [[0], [1, 2]], (length, heads, each))
    return graph.map([(split, "ihd")], "hid", "", lambda x: x.transpose(1, 0, 2))


def _side_by_side(graph: Graph, x: Buffer) -> Buffer:
    """Adds one kernel that makes the elements of each row contiguous."""
    heads, length, each = x.shape
    rows = graph.map([(x, "hid")], "ihd", "", lambda x: x.transpose(1, 0, 2))
    return graph.reshape(rows, [[0], [1, 2]], (length, heads * each))
