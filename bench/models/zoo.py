"""The measured models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench.models import layers
from bench.models.graph import Graph


@dataclass(frozen=True)
class Model:
    """A model. The forward pass repeats the operations of ``graph``; each of the ``repeated``
    repetitions has its own weights.

    If ``tokens`` is not 0, the forward pass generates so many tokens instead. Each token is a pass
    of ``graph`` over the output of the token before, and makes new caches with one more row. The
    first caches have ``prompt`` rows."""

    name: str
    title: str
    graph: Callable[[], Graph]
    repeated: int = 1
    tokens: int = 0
    prompt: int = 0


def _mlp() -> Graph:
    graph = Graph((8, 784))
    x = layers.relu(graph, layers.dense(graph, graph.input, 256))
    x = layers.relu(graph, layers.dense(graph, x, 128))
    layers.dense(graph, x, 10)
    return graph


def _block() -> Graph:
    graph = Graph((32, 64))
    mixed = layers.attention(graph, layers.normalise(graph, graph.input), 4)
    x = layers.add(graph, graph.input, mixed)
    wide = layers.relu(graph, layers.dense(graph, layers.normalise(graph, x), 256))
    layers.add(graph, x, layers.dense(graph, wide, 64))
    return graph


def _decoder() -> Graph:
    graph = Graph((1, 128))
    mixed = layers.cached_attention(graph, layers.normalise(graph, graph.input), 4)
    x = layers.add(graph, graph.input, mixed)
    wide = layers.relu(graph, layers.dense(graph, layers.normalise(graph, x), 512))
    layers.normalise(graph, layers.add(graph, x, layers.dense(graph, wide, 128)))
    return graph


MODELS = (
    Model("mlp", "MLP 784-256-128-10", _mlp),
    Model("block", "transformer block, 45 kernels", _block),
    Model("blocks", "12 transformer blocks", _block, repeated=12),
    Model("decode", "16 tokens after 256, transformer block", _decoder, tokens=16, prompt=256),
)
