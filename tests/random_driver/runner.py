"""Plays scripts over a runtime and a device, and compares what they say.

A side is a runtime with its options. What a side says is held against the model (script.py) and
against stock's runtime (bench/stock) on the same device: values, null or not, the thread's last
error, the lines of failures, and the process's end. Lines that begin with `mgpu_rt:` are advice, and
count for nothing.

This module needs the standard library alone: it also runs where a GPU is (python -m
tests.random_driver.play).
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build"
OUT = BUILD / "random_driver"
DELAYS = "300,0,2000,50,800,10,1500,100,400"  # microseconds: the null stream, then the others
TIMEOUT = 120

_RESULT = re.compile(r"(\d+) (\d+) (.*)")
_FAILURE = re.compile(r"'.*' failed with '.*'")
#: What may be said beside results and failures.
_ADVICE = re.compile(r"mgpu_rt: |$")

Expected = Mapping[int, "str | None"]


@dataclass(frozen=True)
class Side:
    """A runtime: where the library lies, and its options."""

    name: str
    library: str = "build/lib"
    options: tuple[tuple[str, str], ...] = ()
    stock: bool = False


def _side(name: str, **options: str) -> Side:
    return Side(name, options=tuple(("MGPU_RT_" + k.upper(), v) for k, v in options.items()))


STOCK = Side("stock", "build/stock", stock=True)
OFF = _side("off", cache="off")
SIDES = (
    _side("builtin", python="off"),
    _side("python"),
    _side("shared", python="off", exclusive="off"),
    _side("tight", python="off", memory_limit="1M", stream_limit="2", module_limit="2"),
    _side("tight python", memory_limit="1M", stream_limit="2", module_limit="2"),
    _side("lazy", python="off", sync="lazy"),
)


@dataclass(frozen=True)
class Device:
    """What stands below: a HIP library, and what it is told."""

    name: str
    chip: str
    hip: str
    path: tuple[str, ...]
    options: tuple[tuple[str, str], ...] = ()
    copies_return: bool = False  # copies to pageable memory return before they have arrived


def _stub(name: str, **options: str) -> Device:
    settings = {
        "MODE": "record",
        "KERNELS": str(OUT / "bodies.so"),
        **{k.upper(): v for k, v in options.items()},
    }
    return Device(
        name,
        "gfx90a",
        str(BUILD / "hipstub" / "libamdhip64.so.5"),
        ("build/hipstub",),
        tuple(("HIPSTUB_" + k, v) for k, v in settings.items()),
        copies_return=True,
    )


STUB = _stub("stub", **{"async": DELAYS})
REUSE = _stub("stub, reuse", **{"async": DELAYS, "reuse": "1"})
SMALL = _stub("stub, little memory", **{"async": DELAYS, "reuse": "1", "memory": "4M"})
SOFTGPU = Device(
    "softgpu",
    "gfx90a",
    "/usr/lib/x86_64-linux-gnu/libamdhip64.so.5",
    ("build/softgpu", "/usr/lib/x86_64-linux-gnu"),
    (("MGPU_RT_SOFTGPU", "gfx90a"),),
)
CUDA = Device("cuda", "sm_90", str(BUILD / "cuhip" / "libamdhip64.so"), ("build/cuhip",))
DEVICES = {device.name: device for device in (STUB, REUSE, SMALL, SOFTGPU, CUDA)}


@dataclass
class Said:
    """What a process said, by sequence."""

    results: dict[int, dict[int, str]] = field(default_factory=dict)
    failures: dict[int, list[str]] = field(default_factory=dict)
    other: list[str] = field(default_factory=list)
    status: int | str = 0
    begun: int = -1  # the last sequence that began

    def add(self, line: str) -> None:
        found = _RESULT.fullmatch(line)
        if found:
            sequence, number, text = int(found[1]), int(found[2]), found[3]
            if text == "begin":
                self.begun = sequence
            self.results.setdefault(sequence, {})[number] = text
        elif _FAILURE.fullmatch(line):
            self.failures.setdefault(self.begun, []).append(line)
        elif not _ADVICE.match(line):
            self.other.append(line)


def environment(side: Side, device: Device, *, late: bool) -> dict[str, str]:
    clean = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("MGPU_RT_", "HIPSTUB_", "DRIVER_", "LD_LIBRARY_PATH"))
        or key in ("MGPU_RT_CUDA",)
    }
    directories = [str(ROOT / directory) for directory in (side.library, *device.path)]
    clean["LD_LIBRARY_PATH"] = ":".join(directories)
    clean["DRIVER_HIP"] = clean["MGPU_RT_HIP"] = device.hip
    clean["DRIVER_WHEN"] = "late" if late else "early"
    if device.copies_return and (side.stock or side == OFF):
        clean["DRIVER_COPIES_RETURN"] = "1"
    return clean | dict(device.options) | dict(side.options)


def text_of(names: Sequence[str], scripts: Mapping[int, tuple[int, Sequence[str]]]) -> str:
    """The script of some sequences: by number, the threads and the lines."""
    lines = ["images " + " ".join(names)]
    for number, (threads, body) in scripts.items():
        lines += [f"begin {number} {threads}", *body, "end"]
    return "\n".join(lines) + "\n"


def play(path: Path, side: Side, device: Device, *, late: bool, linked: bool) -> Said:
    """Plays a script in a process of its own."""
    player = OUT / ("player-linked" if linked else "player")
    command = [str(player), str(OUT / "images" / device.chip), str(path)]
    env = environment(side, device, late=late)
    said = Said()
    try:
        done = subprocess.run(
            command,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=TIMEOUT,
        )
        output, said.status = done.stdout, done.returncode
    except subprocess.TimeoutExpired as late_one:
        output, said.status = late_one.stdout or b"", "hangs"
    for line in output.decode(errors="replace").split("\n"):
        said.add(line)
    return said


def differences(
    said: Said, expected: Mapping[int, Expected], stock: Said | None, *, threads: Mapping[int, int]
) -> list[str]:
    """Everything that is not as the model, or as stock, has it. The first is the one to look at."""
    found = []
    for number, lines in expected.items():
        results = said.results.get(number, {})
        theirs = stock.results.get(number, {}) if stock else {}
        for line in sorted(lines.keys() | results.keys() | theirs.keys()):
            if line == 0:
                continue
            have, want = results.get(line), lines.get(line)
            if want is None and stock is not None:
                want = theirs.get(line)
            elif want is None:
                continue
            if have != want:
                found.append(f"sequence {number}, line {line}: {have!r}, not {want!r}")
        if stock is not None:
            have_lines, want_lines = said.failures.get(number, []), stock.failures.get(number, [])
            if threads[number] > 1:
                have_lines, want_lines = sorted(have_lines), sorted(want_lines)
            if have_lines != want_lines:
                found.append(f"sequence {number}: fails {have_lines}, not {want_lines}")
    if said.status != 0:
        found.append(f"ended with {said.status} in sequence {said.begun}")
    elif said.results.get(0, {}).get(0) != "bye":
        found.append("the end of the process was not reached")
    found += [f"said: {line}" for line in said.other]
    return found
