"""Why a function takes longer after than before, where the two runs prove a reason."""

from __future__ import annotations

from collections.abc import Mapping

from mgpu_rt._cli.stats.kinds import QUESTIONS, WAITED, WAITING
from mgpu_rt._cli.stats.statistics import Counter, Statistics

WORSE = 1.05  # a twentieth is noise
EXPLAINED = 0.5  # of the time that is more, which the other function has to have lost


def reasons(before: Statistics, after: Statistics) -> dict[str, str]:
    """A sentence by function."""
    layers = ((before.program, after.program), (before.driver, after.driver))
    found: dict[str, str] = {}
    for (left, right), waiting, waited in zip(layers, WAITING, WAITED, strict=True):
        for name in waiting:
            if source := _source(name, waited, left, right):
                found[name] = f"The waiting for the GPU moved here from {source}."
    for name in QUESTIONS:
        calls = [layer[name].calls if name in layer else 0 for layer in layers[1]]
        if calls[1] > calls[0]:
            found[name] = "The extra calls are checks before a shortcut."
    return found


def _source(
    name: str, others: tuple[str, ...], before: Mapping[str, Counter], after: Mapping[str, Counter]
) -> str | None:
    """The function that waits less now, if that makes up for most of what this one waits more."""
    more = -_saved(name, before, after)
    if more <= (WORSE - 1) * before.get(name, Counter(0, 0)).ns:
        return None
    saved = {other: _saved(other, before, after) for other in others if other != name}
    source = max(saved, key=lambda other: saved[other])
    return source if saved[source] >= EXPLAINED * more else None


def _saved(name: str, before: Mapping[str, Counter], after: Mapping[str, Counter]) -> int:
    """Nanoseconds."""
    none = Counter(0, 0)
    return before.get(name, none).ns - after.get(name, none).ns
