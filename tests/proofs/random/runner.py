"""Plays scripts over a runtime and a device, and compares the outputs.

A side is a runtime and its options. The driver compares each side's output with the model
(model.py) and with stock (bench/stock) on the same device. The output contains the values
that the script reads, "ok" or "null" for each handle, the threads' last errors, failure messages,
and the exit status. Lines that begin with `mgpu_rt:` are advice, and are not compared.

This module needs only the standard library, because it also runs on bare machines with a GPU
(python -m tests.proofs.random.play).
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from mgpu_rt._selftest.sequences import Case, Output, differences, run
from tests.support.patience import HANG

ROOT = Path(__file__).resolve().parents[3]
BUILD = ROOT / "build"
OUT = BUILD / "random_driver"
DELAYS = "300,0,2000,50,800,10,1500,100,400"  # microseconds: the null stream, then the others


@dataclass(frozen=True)
class Side:
    """A runtime: the folder of its library, and its options."""

    name: str
    library: str = "build/lib"
    options: tuple[tuple[str, str], ...] = ()
    stock: bool = False
    players: str = "build/random_driver"
    lacks: tuple[str, ...] = ()  # actions in which the device differs from stock (script.py)
    fails: bool = True  # the library's allocations may fail; a Python interpreter needs allocations
    copies_wait: bool = True  # copies to pageable memory are complete when they return


def _side(name: str, **options: str) -> Side:
    return Side(name, options=tuple(("MGPU_RT_" + k.upper(), v) for k, v in options.items()))


def _lazy(name: str, **options: str) -> Side:
    """Returns a side that postpones waits. The emulated device has a large BAR, with which the
    library postpones nothing, so HIP must not use the large BAR."""
    side = _side(name, sync="lazy", **options)
    return replace(side, options=(*side.options, ("ROC_ENABLE_LARGE_BAR", "0")))


STOCK = Side("stock", "build/stock", stock=True)
OFF = _side("off", cache="off")
#: When hypothesis shrinks a failure, hypothesis tries the first sides of this tuple first.
SIDES = (
    _side("builtin", manager="off"),
    _side("python"),
    _side("shared", manager="off", exclusive="off"),
    _side("tight", manager="off", memory_limit="1M", stream_limit="2", module_limit="2"),
    _side("tight python", memory_limit="1M", stream_limit="2", module_limit="2"),
    _lazy("lazy", manager="off"),
)

#: The options of these sides declare that no other code calls HIP. Programs contain no foreign
#: user, unless HIP reports calls: the first call of the foreign user then ends the mode.
FOREIGN = ("foreign", "reset", "hoard", "held_back", "end-held")
EXCLUSIVE = tuple(
    replace(side, lacks=FOREIGN)
    for side in (
        _side("exclusive", manager="off", exclusive="on"),
        _lazy("exclusive lazy", manager="off", exclusive="on"),
        _side("exclusive tight", exclusive="on", memory_limit="1M", stream_limit="2"),
    )
)
ALL = (*SIDES, *EXCLUSIVE, OFF)


def _in_python(
    name: str, runtime: str, *, lacks: tuple[str, ...] = (), copies_wait: bool = False
) -> Side:
    """Returns a side whose runtime is written in Python. Each runtime calls HIP directly, except
    PassAll, which passes all calls to the runtime in C."""
    options = (("MGPU_RT_RUNTIME", runtime), ("MGPU_RT_MANAGER", "off"))
    return Side(name, options=options, lacks=lacks, fails=False, copies_wait=copies_wait)


#: Sides whose runtime is in Python (mgpu_rt/runtime). These sides support fewer programs than sides
#: with the library in C.
IN_PYTHON = (
    _in_python("to C", "tests.python.runtime.runtimes:PassAll", copies_wait=True),
    _in_python("PlainRuntime", "mgpu_rt.runtime:PlainRuntime", lacks=("elapsed",)),
    _in_python("CachedRuntime", "mgpu_rt.runtime:CachedRuntime", lacks=("elapsed",)),
    # Singleton has only one stream. Programs must not use this stream at exit, and must not destroy
    # this stream through HIP.
    _in_python(
        "Singleton",
        "mgpu_rt.runtime:Singleton",
        lacks=("crossed-streams", "elapsed", "several-streams", "exits"),
    ),
)


@dataclass(frozen=True)
class Device:
    """A device: a HIP library, and its settings."""

    name: str
    chip: str
    hip: str
    path: tuple[str, ...]
    options: tuple[tuple[str, str], ...] = ()
    memory: int = 0  # bytes of memory, if the device has little
    count: int = 1  # number of devices
    reports: bool = False  # HIP reports calls of other code
    lacks: tuple[str, ...] = ()  # actions that need features which the device's HIP lacks
    fails: bool = True  # the library's allocations may fail there
    starts_alone: bool = False  # HIP's first call must return before two threads call HIP
    copies_return: bool = False  # copies to pageable memory return before they are complete
    stock_fails: bool = False  # stock sometimes fails; the case then proves nothing
    release: str = ""  # a release of HIP that tests/devices/rocm has fetched; "": the machine's own


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
        count=int(options.get("devices", 1)),
        reports=options.get("tells") == "1",
        lacks=lacks,
        copies_return=True,
    )


STUB = _stub("stub", **{"async": DELAYS})
#: The stubs with `tells` report calls, as HIP does from 5.3 on.
REUSE = _stub("stub, reuse", **{"async": DELAYS, "reuse": "1", "tells": "1"})
#: Operations run only when a thread waits for them, so a program that polls never ends.
HELD = _stub("stub, held", lacks=("asks",), **{"async": "held", "reuse": "1", "tells": "1"})
SMALL = _stub(
    "stub, little memory",
    **{"async": DELAYS, "reuse": "1", "memory": str(4 << 20), "tells": "1"},
)
TWO = _stub("stub, two devices", **{"async": DELAYS, "reuse": "1", "devices": "2", "tells": "1"})
#: As a GPU does, this stub copies through the pages that were there when memory was registered.
PINS = _stub("stub, pinned pages", pins="1", **{"async": DELAYS})
#: Only the stub can make a chosen function fail, and only the stub creates thousands of streams
#: quickly.
STUBS_ALONE = ("refused", "many-streams")
#: AMD's HIP crashes, also under stock, if other threads make calls while the process exits. With
#: HIP 7.2.4, a process never exits while a host function blocks a stream.
_BUSY_ENDS = ("end-busy", "end-busy-handlers")
_ENDS = ("end-held", *_BUSY_ENDS)
SOFTGPU = Device(
    "softgpu",
    "gfx90a",
    "/usr/lib/x86_64-linux-gnu/libamdhip64.so.5",
    ("build/softgpu", "/usr/lib/x86_64-linux-gnu"),
    (("MGPU_RT_SOFTGPU", "gfx90a"),),
    lacks=(*STUBS_ALONE, *_BUSY_ENDS),
    starts_alone=True,
)
SOFTGPU_TWO = replace(
    SOFTGPU,
    name="softgpu, two devices",
    options=(("MGPU_RT_SOFTGPU", "gfx90a,gfx90a"),),
    count=2,
)
#: Even with stock, HIP 7.2.4 fails if a process exits with busy threads or streams. HIP 7.2.4 reads
#: an image only at the first lookup of a kernel. HIP may fail to find the kernel if the program has
#: reused the image's memory before this lookup. From HIP 5.7.1 on a reset damages the heap while
#: memory is registered (docs/stock.md), also memory that an earlier program has left registered.
SOFTGPU_7 = Device(
    "softgpu 7.2.4",
    "gfx90a",
    "",
    ("build/softgpu",),
    (("MGPU_RT_SOFTGPU", "gfx90a"),),
    lacks=("leaves-registered", "reused-images", *STUBS_ALONE, *_ENDS),
    reports=True,
    starts_alone=True,
    stock_fails=True,
    release="7.2.4",
)
SOFTGPU_7_TWO = replace(
    SOFTGPU_7,
    name="softgpu 7.2.4, two devices",
    options=(("MGPU_RT_SOFTGPU", "gfx90a,gfx90a"),),
    count=2,
)
SOFTGPU_5 = replace(SOFTGPU_7, name="softgpu 5.7.1", release="5.7.1")
SOFTGPU_6 = replace(SOFTGPU_7, name="softgpu 6.4.3", release="6.4.3")
CUDA = Device(
    "cuda",
    "sm_90",
    str(BUILD / "cuhip" / "libamdhip64.so"),
    ("build/cuhip",),
    lacks=("reset", *STUBS_ALONE, *_ENDS),
    fails=False,
)
_STUBS = (STUB, REUSE, HELD, SMALL, TWO, PINS)
_EMULATED = (SOFTGPU, SOFTGPU_TWO, SOFTGPU_5, SOFTGPU_6, SOFTGPU_7, SOFTGPU_7_TWO)
DEVICES = {device.name: device for device in (*_STUBS, *_EMULATED, CUDA)}


def environment(side: Side, device: Device, *, late: bool, fails: str = "") -> dict[str, str]:
    """Returns a process's environment; `fails` selects the library's allocations that fail."""
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
    if device.copies_return:  # stock copies as HIP does; this library waits
        waits = side.copies_wait and not side.stock and side != OFF and not fails
        clean["DRIVER_COPIES_WAIT"] = "20" if waits else "0"
    if fails and not side.stock:
        clean |= _failing(ROOT / side.library, fails)
    return clean | dict(device.options) | dict(side.options)


def _failing(library: Path, which: str) -> dict[str, str]:
    """Returns environment variables that preload an allocator; some allocations of the library then
    fail."""
    from tests.support import allocator

    wanted = {"LD_PRELOAD": str(allocator.preload()), "ALLOCATOR_LIBRARY": str(library)}
    return wanted | {"ALLOCATOR_FAILS": which}


def _on_release(
    command: list[str], env: dict[str, str], release: str
) -> tuple[list[str], dict[str, str]]:
    """Returns the command that starts a program through the loader of a HIP release; the release
    must be in the cache."""
    from tests.devices.rocm import releases, surroundings

    here = surroundings.surroundings(releases.find(release))
    env = here.environment(env) | {"DRIVER_HIP": str(here.hip)}
    return here.command(command, env.pop("LD_LIBRARY_PATH")), env


def _without_chatter(said: Output) -> Output:
    """Removes ROCr's status messages, which the program did not print."""
    from tests.devices.rocm import surroundings

    ours = [line for line in said.other if not line.startswith("Warning: (")]
    said.other = [line for line in ours if surroundings.without_chatter(line + "\n")]
    return said


def play(
    case: Case, side: Side, device: Device, timeout: float = HANG, images: Path | None = None
) -> Output:
    """Plays a case in its own process; `images` is a folder of images other than the random
    programs'."""
    player = ROOT / side.players / ("player-linked" if case.linked else "player")
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as script:
        script.write(case.text())
        script.flush()
        command = [str(player), str(images or OUT / "images" / device.chip), script.name]
        env = environment(side, device, late=case.late, fails=case.fails)
        if not device.release:
            return run(command, env, timeout)
        command, env = _on_release(command, env, device.release)
        return _without_chatter(run(command, env, timeout))


def problems(case: Case, device: Device, sides: Sequence[Side]) -> dict[str, list[str]]:
    """Returns a list of differences for each side that differs, under the side's name. If stock
    itself differs from the model, model.py is wrong, because the program's result is undefined.

    On an NVIDIA GPU, the case omits the calls that would follow the exit of NVIDIA's driver."""
    if device is CUDA:
        case = case.with_nvidia()
    stock = play(case, STOCK, device)
    found = {"stock": differences(stock, case, None)}
    if not found["stock"]:
        for side in sides:
            found[side.name] = differences(play(case, side, device), case, stock)
    return {name: wrong for name, wrong in found.items() if wrong}


def save(case: Case, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(case), indent=1))
