"""Plays the situations with a runtime on a device, and returns the state after each situation."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from mgpu_rt._selftest.sequences import Case, Output
from tests.proofs.random import runner
from tests.runtime.last_error import images, situations

PENDING = ("none", "device", "memory")


@dataclass(frozen=True)
class Left:
    """The state after a situation: the thread's last error, which HIP shows twice, whether each
    handle is NULL, and the lines of failures."""

    results: tuple[str, ...]
    failures: tuple[str, ...]


ENDED = "ended the process"
Result = Left | str


@dataclass
class Played:
    """The state after each situation on a release of HIP, in order."""

    hip: int  # hipRuntimeGetVersion's number
    results: dict[str, Result] = field(default_factory=dict)

    def ended(self) -> set[str]:
        return {name for name, result in self.results.items() if result == ENDED}


def _device(name: str) -> runner.Device:
    """Returns a device; streams of the stub work at once."""
    if name == "softgpu":
        return runner.SOFTGPU
    version = (("HIPSTUB_VERSION", "70253211"),) if name == "stub-7" else ()
    return replace(runner.STUB, options=(("HIPSTUB_MODE", "record"), *version), copies_return=False)


def play(side: runner.Side, device: str, pending: str) -> Played:
    """Plays all situations. If a situation ends the process, a new process plays the situations
    that follow."""
    scripts = situations.scripts(PENDING.index(pending))
    played = Played(int(_play(side, device, {}).results[0][1]))
    while left := [name for name in scripts if name not in played.results]:
        said = _play(side, device, {name: scripts[name] for name in left})
        for number, name in enumerate(left[: said.begun], 1):
            results = tuple(said.results[number].values())
            played.results[name] = Left(results, tuple(said.failures.get(number, ())))
        if said.status != 0:
            played.results[left[said.begun - 1]] = ENDED
    return played


def _play(side: runner.Side, device: str, scripts: dict[str, list[str]]) -> Output:
    """Plays situations in one process."""
    bodies = {0: ["0 hip"], **dict(enumerate(scripts.values(), 1))}
    bodies[len(scripts)] = [*bodies[len(scripts)], "0 quit"]
    case = Case(list(images.images()), dict.fromkeys(bodies, 1), bodies, {})
    return runner.play(case, side, _device(device), images=images.write())


def differences(ours: Played, stocks: Played) -> dict[str, tuple[Result, Result]]:
    """Returns the situations in which the two runtimes differ. Leaves out each situation in which
    stock ended the process."""
    return {
        name: (ours.results[name], theirs)
        for name, theirs in stocks.results.items()
        if isinstance(theirs, Left) and ours.results[name] != theirs
    }
