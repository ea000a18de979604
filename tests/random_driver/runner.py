"""Plays scripts over a runtime and a device, and compares what they say.

A side is a runtime with its options. What a side says is held against the model (model.py) and
against stock's runtime (bench/stock) on the same device: values, null or not, the thread's last
error, the lines of failures, and the process's end. Lines that begin with `mgpu_rt:` are advice,
and count for nothing.

This module needs the standard library alone: it also runs where a GPU is (python -m
tests.random_driver.play).
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.support.patience import HANG

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build"
OUT = BUILD / "random_driver"
DELAYS = "300,0,2000,50,800,10,1500,100,400"  # microseconds: the null stream, then the others

_RESULT = re.compile(r"(\d+) (\d+) (.*)")
_FAILURE = re.compile(r"'.*' failed with '.*'")
#: What may be said beside results and failures.
_ADVICE = re.compile(r"mgpu_rt: |$")


@dataclass(frozen=True)
class Side:
    """A runtime: where the library lies, and its options."""

    name: str
    library: str = "build/lib"
    options: tuple[tuple[str, str], ...] = ()
    stock: bool = False
    players: str = "build/random_driver"
    lacks: tuple[str, ...] = ()  # what it cannot do as stock does (script.py)
    copies_wait: bool = True  # copies to pageable memory have arrived when they return


def _side(name: str, **options: str) -> Side:
    return Side(name, options=tuple(("MGPU_RT_" + k.upper(), v) for k, v in options.items()))


STOCK = Side("stock", "build/stock", stock=True)
OFF = _side("off", cache="off")
#: The first ones are looked at first when a failure is made small.
SIDES = (
    _side("builtin", python="off"),
    _side("python"),
    _side("shared", python="off", exclusive="off"),
    _side("tight", python="off", memory_limit="1M", stream_limit="2", module_limit="2"),
    _side("tight python", memory_limit="1M", stream_limit="2", module_limit="2"),
    _side("lazy", python="off", sync="lazy", load="lazy"),
)


def _in_python(
    name: str, runtime: str, *, lacks: tuple[str, ...] = (), copies_wait: bool = False
) -> Side:
    """A runtime that is written in Python, and asks HIP by itself unless it passes all on."""
    options = (("MGPU_RT_RUNTIME", runtime), ("MGPU_RT_PYTHON", "off"))
    return Side(name, options=options, lacks=lacks, copies_wait=copies_wait)


#: Runtimes in Python (mgpu_rt/runtime), which play a smaller share.
IN_PYTHON = (
    _in_python("to C", "tests.python_runtime.runtimes:PassAll", copies_wait=True),
    _in_python("PlainRuntime", "mgpu_rt.runtime:PlainRuntime"),
    # It does not see HIP destroy a stream of its own, whose handle may come back as another kind.
    _in_python("CachedRuntime", "mgpu_rt.runtime:CachedRuntime", lacks=("crossed-streams",)),
    # Its streams are one: HIP destroys none of them alone, nor does a handler once it is over.
    _in_python("Singleton", "mgpu_rt.runtime:Singleton", lacks=("crossed-streams", "exits")),
)


@dataclass(frozen=True)
class Device:
    """What stands below: a HIP library, and what it is told."""

    name: str
    chip: str
    hip: str
    path: tuple[str, ...]
    options: tuple[tuple[str, str], ...] = ()
    memory: int = 0  # bytes, where they are few
    lacks: tuple[str, ...] = ()  # actions that need what its HIP has not
    starts_alone: bool = False  # its first call must have returned before two threads call it
    copies_return: bool = False  # copies to pageable memory return before they have arrived


def _stub(name: str, *, lacks: tuple[str, ...] = (), **options: str) -> Device:
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
        memory=int(options.get("memory", 0)),
        lacks=lacks,
        copies_return=True,
    )


STUB = _stub("stub", **{"async": DELAYS})
REUSE = _stub("stub, reuse", **{"async": DELAYS, "reuse": "1"})
#: Nothing is done before somebody waits for it: whoever asks until it is done asks for ever.
HELD = _stub("stub, held", lacks=("asks",), **{"async": "held", "reuse": "1"})
SMALL = _stub("stub, little memory", **{"async": DELAYS, "reuse": "1", "memory": str(4 << 20)})
SOFTGPU = Device(
    "softgpu",
    "gfx90a",
    "/usr/lib/x86_64-linux-gnu/libamdhip64.so.5",
    ("build/softgpu", "/usr/lib/x86_64-linux-gnu"),
    (("MGPU_RT_SOFTGPU", "gfx90a"),),
    starts_alone=True,
)
CUDA = Device(
    "cuda",
    "sm_90",
    str(BUILD / "cuhip" / "libamdhip64.so"),
    ("build/cuhip",),
    lacks=("reset",),
)
DEVICES = {device.name: device for device in (STUB, REUSE, HELD, SMALL, SOFTGPU, CUDA)}


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
    if device.copies_return:  # stock's do as HIP's; this library's wait, until the process ends
        waits = side.copies_wait and not side.stock and side != OFF
        clean["DRIVER_COPIES_WAIT"] = "20" if waits else "0"
    return clean | dict(device.options) | dict(side.options)


@dataclass
class Case:
    """Programs for one process, and what each line of theirs has to say (None: as stock's)."""

    images: list[str]
    threads: dict[int, int]
    lines: dict[int, list[str]]
    expected: dict[int, dict[int, str | None]]
    late: bool = False  # the foreign user opens HIP at its first call
    linked: bool = False  # the program is linked against HIP
    crosses: bool = (
        False  # one side destroys the other's: asking HIP about a dead handle is no fault
    )

    def text(self) -> str:
        """The script, for the player."""
        lines = ["images " + " ".join(self.images)]
        for number, body in self.lines.items():
            lines += [f"begin {number} {self.threads[number]}", *body, "end"]
        return "\n".join(lines) + "\n"

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=1))

    @staticmethod
    def load(path: Path) -> Case:
        read = json.loads(path.read_text())
        for name in ("threads", "lines", "expected"):
            read[name] = {int(number): value for number, value in read[name].items()}
        read["expected"] = {
            number: {int(line): text for line, text in lines.items()}
            for number, lines in read["expected"].items()
        }
        return Case(**read)


def play(case: Case, side: Side, device: Device, timeout: float = HANG) -> Said:
    """Plays a case in a process of its own."""
    player = ROOT / side.players / ("player-linked" if case.linked else "player")
    said = Said()
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as script:
        script.write(case.text())
        script.flush()
        command = [str(player), str(OUT / "images" / device.chip), script.name]
        env = environment(side, device, late=case.late)
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, env=env, stdout=pipe, stderr=subprocess.STDOUT)
        try:
            output, _ = process.communicate(timeout=timeout)
            said.status = process.returncode
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
            said.status = f"no end within {timeout} s"
    for line in output.decode(errors="replace").split("\n"):
        said.add(line)
    return said


def _is_less_misuse(have: str | None, want: str | None, case: Case) -> bool:
    """The runtime may refuse what stock asks HIP for, but is to ask nothing worse of it."""
    texts = [text or "misuse 0" for text in (have, want)]
    if not all(text.startswith("misuse ") for text in texts):
        return False
    mine, stocks = (int(text.split()[1]) for text in texts)
    return case.crosses or mine <= stocks


def _wrong_lines(said: Said, case: Case, stock: Said | None, number: int) -> list[str]:
    results, lines = said.results.get(number, {}), case.expected[number]
    theirs = stock.results.get(number, {}) if stock else {}
    found = []
    for line in sorted((lines.keys() | results.keys() | theirs.keys()) - {0}):
        have, want = results.get(line), lines.get(line)
        if want is None and stock is None:
            continue
        want = want or theirs.get(line)
        if have != want and not _is_less_misuse(have, want, case):
            found.append(f"program {number}, line {line}: {have!r}, not {want!r}")
    return found


def _wrong_failures(said: Said, case: Case, stock: Said, number: int) -> list[str]:
    have, want = (list(one.failures.get(number, ())) for one in (said, stock))
    if case.threads[number] > 1:
        have.sort()
        want.sort()
    return [] if have == want else [f"program {number}: fails {have}, not {want}"]


def differences(said: Said, case: Case, stock: Said | None) -> list[str]:
    """Everything that is not as the model, or as stock, has it. The first is the one to look at."""
    found = []
    if said.status != 0:
        found.append(f"status {said.status}, in program {said.begun}")
    elif said.results.get(0, {}).get(0) != "bye":
        found.append("the end of the process was not reached")
    found += [f"said: {line}" for line in said.other[:40]]
    for number in case.expected:
        if said.status != 0 and number > said.begun:
            break
        found += _wrong_lines(said, case, stock, number)
        if stock is not None:
            found += _wrong_failures(said, case, stock, number)
    return found


def problems(case: Case, device: Device, sides: Sequence[Side]) -> dict[str, list[str]]:
    """What is wrong on each side, by its name. Where stock itself is not as the model has it, the
    program asks for what is undefined: that is a fault of model.py."""
    stock = play(case, STOCK, device)
    found = {"stock": differences(stock, case, None)}
    if not found["stock"]:
        for side in sides:
            found[side.name] = differences(play(case, side, device), case, stock)
    return {name: wrong for name, wrong in found.items() if wrong}
