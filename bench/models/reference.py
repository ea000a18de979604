"""Computes the results of a model with NumPy."""

from __future__ import annotations

import numpy as np

from bench.models.numbers import numbers
from bench.models.program import INPUT_SEED, weights
from bench.models.zoo import Model


def output(model: Model) -> np.ndarray:
    """Computes in double precision, from the numbers in the program's buffers."""
    graph = model.graph()
    x = numbers(graph.input.shape, INPUT_SEED, 1).astype(np.float64)
    seed = INPUT_SEED
    for each in weights(model, graph):
        values = {graph.input: x}
        for own, weight in zip(graph.weights, each, strict=True):
            seed += 1
            filled = numbers(weight.buffer.shape, seed, float(f"{weight.scale:e}"))
            values[own.buffer] = filled.astype(np.float64)
        for number in range(max(model.tokens, 1)):
            if number == 0:
                for cache in graph.caches:
                    seed += 1
                    values[cache] = numbers((model.prompt, *cache.shape[1:]), seed, 1).astype(float)
            values = graph.compute(values)
            x = values[graph.output]
            values[graph.input] = x
            for cache, grown in zip(graph.caches, graph.grown, strict=True):
                values[cache] = values[grown]
    return x
