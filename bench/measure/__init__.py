"""The benchmarks: each returns the figures of one measurement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.setup.device import Device
from bench.show.figures import Step


@dataclass(frozen=True)
class Request:
    """The options of a benchmark's run on one device."""

    device: Device
    repetitions: int
    step: Step  # prints the name of the current measurement
    llvm_runtime: Path | None = None
    threads: int = 1
    models: Sequence[str] = ()  # empty: all, on an emulated device the first ones
