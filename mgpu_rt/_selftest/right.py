"""Compares results on this machine with stock's: programs with known answers, and saved sequences
of calls."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mgpu_rt._cli import child
from mgpu_rt._selftest.bundle import Bundle, library_name
from mgpu_rt._selftest.machine import MEASURE, Machine
from mgpu_rt._selftest.result import STOCK, Part, Wrong
from mgpu_rt._selftest.sequences import Case, Output, differences, run

#: The time limit of one process in seconds. An emulated device needs a few seconds; a GPU is
#: faster.
LIMIT = 60.0
MOST_SAID = 12  # lines about the faults of one check

OFF = {"MGPU_RT_CACHE": "off"}
#: The library's settings: the default, settings that users choose, and limits so small that caches
#: must evict.
SIDES: dict[str, dict[str, str]] = {
    "library": {},
    "exclusive": {"MGPU_RT_EXCLUSIVE": "on"},
    "lazy": {"MGPU_RT_SYNC": "lazy"},
    "lazy and exclusive": {"MGPU_RT_EXCLUSIVE": "on", "MGPU_RT_SYNC": "lazy"},
    "tight": {
        "MGPU_RT_MEMORY_LIMIT": "1M",
        "MGPU_RT_STREAM_LIMIT": "2",
        "MGPU_RT_MODULE_LIMIT": "2",
    },
}
#: Kinds of sequences in the bundle, including those of random programs.
KINDS, HARSH = ("proofs", "calm"), ("resets", "harsh")
RANDOM = ("calm", "harsh")
#: Steps that HIP over NVIDIA's driver does not support.
NOT_WITH_CUDA = ("capture", "reset")
#: The sides on which sequences are played. EXCLUSIVE is left out, because other code in sequences
#: also calls HIP.
WITH_OTHERS = ("library", "lazy", "tight")

#: The expected output of each program. Programs from LLVM 19 and 15 load the module at each launch,
#: which also resets the module's globals.
ANSWERS = {
    "churn": "20\n",
    "layers": "30\n",
    "overlap": "40\n60\n",
    "samename": "12\n",
    "vecadd": " ".join(["3.75"] * 1000) + "\n",
    "globals": "1\n",
}
ANSWERS_OF_22 = {**ANSWERS, "globals": "20\n"}


@dataclass
class Findings:
    """The result of a check. A side that was not compared counts as unknown."""

    compared: list[str] = field(default_factory=list)  # sides
    wrong: dict[str, list[str]] = field(default_factory=dict)  # by side

    def add(self, side: str, wrong: list[str]) -> None:
        """Adds the faults of a side that was compared."""
        self.compared.append(side)
        if wrong:
            self.wrong[side] = wrong


@dataclass(frozen=True)
class Check:
    """A check, which runs in one or more processes for each side in `sides`."""

    part: str
    name: str
    sides: Sequence[str]
    make: Callable[[], Findings]


def checks(
    bundle: Bundle,
    machine: Machine,
    folder: Path,
    kinds: Sequence[str] = KINDS,
) -> list[Check]:
    """Returns all checks for this machine, the programs first."""
    found = [*_program_checks(bundle, machine, folder)]
    images = folder / "images"
    for kind in kinds:
        part = "sequences" if kind in RANDOM else "proofs"
        for name, content in bundle.sequences(kind).items():
            case = Case.read(content)
            if machine.kind == "cuda":
                if case.amd or case.plays(*NOT_WITH_CUDA):
                    continue
                case = case.with_nvidia()
            if case.devices == 1 or machine.both is not None:
                found.append(sequence_check(part, name, case, machine, images))
    return found


def perform(
    found: Sequence[Check], parts: list[Part], step: Callable[[str], None], how: str
) -> str:
    """Makes one check after the other. The findings of each check are stored at once, so the
    findings remain even if a later check ends the run. `how` is the beginning of the command that
    repeats a check. Returns the reason why the run ended early, or ""."""
    totals = Counter(check.part for check in found)
    by_name = {name: Part(name, total) for name, total in totals.items()}
    parts += by_name.values()
    for check in found:
        part = by_name[check.part]
        step(f"{check.part}: {check.name}")
        findings = check.make()
        wrong = findings.wrong
        part.checked += 1
        part.compared += set(check.sides) <= set(findings.compared)
        repeat = f"{how} --only {check.name}"
        part.wrong += [Wrong(check.name, s, says[:MOST_SAID], repeat) for s, says in wrong.items()]
        if any(child.HUNG in line for says in wrong.values() for line in says):
            return f"hung in {check.name}"
    return ""


# ---- programs ----


def _program_checks(bundle: Bundle, machine: Machine, folder: Path) -> Iterator[Check]:
    for llvm, names in bundle.programs.items():
        command = [str(MEASURE), "programs", str(folder / library_name(llvm)), *names]
        answers = ANSWERS_OF_22 if llvm == "22" else ANSWERS
        expected = "".join(f"# {name}\n{answers.get(name, '')}" for name in names)

        def make(command=command, expected=expected) -> Findings:
            return _compared(command, machine.environment, expected)

        yield Check("programs", f"programs-{llvm}", list(SIDES), make)


def _compared(command: Sequence[str], environment: Mapping[str, str], expected: str) -> Findings:
    """Runs a command with the settings of each side, and returns the faults. A fault with stock's
    behaviour ends the comparison at once."""
    stock = child.run(command, {**environment, **OFF}, limit=LIMIT, **child.PIPES)
    if wrong := _answers(stock, expected):
        return Findings(wrong={STOCK: wrong})
    found = Findings()
    for name, options in SIDES.items():
        ended = child.run(command, {**environment, **options}, limit=LIMIT, **child.PIPES)
        wrong = _answers(ended, expected)
        (_, have), (_, want) = _failures(ended), _failures(stock)
        if have != want:
            wrong.append(f"at its exit it fails {have}, not {want}")
        found.add(name, wrong)
        if ended.status is None:
            break
    return found


def _answers(ended: child.Ended, expected: str) -> list[str]:
    """Returns the faults of a run. A call that fails before main returns is a fault."""
    wrong = [*filter(None, [ended.how]), *_failures(ended)[0]]
    have, want = _by_program(ended.stdout), _by_program(expected)
    for name, answer in want.items():
        said = have.get(name)
        if said is None:
            reached = list(have)
            at = f"after {reached[-1]} had begun" if reached else "at the start"
            return [*wrong, f"{name} was not reached: it ended {at}"]
        if said != answer:
            wrong.append(f"{name} prints {said[:60]!r}, not {answer[:60]!r}")
    if wrong:
        wrong += [line for line in ended.stderr.splitlines() if line.strip()][-4:]
    return wrong


def _by_program(out: str) -> dict[str, str]:
    if not out.startswith("# "):
        return {"": out}
    blocks = (block.partition("\n") for block in f"\n{out}".split("\n# ")[1:])
    return {name: answer.rstrip("\n") for name, _, answer in blocks}


def _failures(ended: child.Ended) -> tuple[list[str], list[str]]:
    """Returns two lists of lines: calls that failed before main returned, and calls that failed
    afterwards."""
    before, _, after = ended.stderr.partition("# end\n")
    return failures(before.splitlines()), failures(after.splitlines())


def failures(said: Sequence[str]) -> list[str]:
    """Returns the lines of failed calls."""
    return [line for line in said if " failed with " in line]


# ---- sequences ----

#: Plays a sequence with the settings of a side. Returns the output, and the faults relative to
#: stock's output.
Play = Callable[..., tuple[Output, list[str]]]


def sequence_check(part: str, name: str, case: Case, machine: Machine, images: Path) -> Check:
    """Returns the check that plays a case with the images in a folder. The check ends at the first
    side with a fault."""
    if case.devices > 1 and machine.both is not None:
        machine = dataclasses.replace(machine, environment=machine.both)

    def play(side: str, stock: Output | None = None) -> tuple[Output, list[str]]:
        options = OFF if side == STOCK else SIDES[side]
        return _played(case, machine, images, {**options, **case.options}, stock)

    sides = case.sides or WITH_OTHERS
    return Check(part, name, sides, lambda: sequence_compared(play, sides, known=case.known))


def sequence_compared(
    play: Play, sides: Sequence[str] = WITH_OTHERS, *, known: bool = False
) -> Findings:
    """Returns the faults of a sequence, by side. A fault with stock's behaviour ends the comparison
    at once. A sequence whose results are all known is not played with stock's behaviour, because
    stock's results differ from the known results."""
    stock, wrong = (Output(), []) if known else play(STOCK)
    if wrong:
        return Findings(wrong={STOCK: wrong})
    found = Findings()
    for side in sides:
        _, wrong = play(side, stock)
        found.add(side, wrong)
        if wrong:
            break
    return found


def _played(
    case: Case, machine: Machine, images: Path, options: Mapping[str, str], stock: Output | None
) -> tuple[Output, list[str]]:
    """Returns the player's lines, and the faults among them. A driver's line on stderr is no fault
    if stock's behaviour prints it too, or if the sequence is not played with stock's behaviour."""
    said = _play(case, machine, images, options)
    usual = {_without_numbers(line) for line in (said if case.known else stock or said).other}
    return said, differences(
        dataclasses.replace(
            said, other=[line for line in said.other if _without_numbers(line) not in usual]
        ),
        case,
        stock,
    )


def _without_numbers(line: str) -> str:
    return re.sub(r"\b(0x)?[0-9a-f]*\d[0-9a-f]*\b", "0", line)


def copies_return_early(hip: str) -> bool:
    """Returns True if a copy to pageable memory may return before HIP has written the memory."""
    major = hip.partition(".")[0]  # "cuhip" over NVIDIA's driver
    return major.isdigit() and int(major) >= 7


def _play(case: Case, machine: Machine, images: Path, options: Mapping[str, str]) -> Output:
    script = images.parent / "script.txt"
    script.write_text(case.text())
    environment = {
        **machine.environment,
        **options,
        "DRIVER_HIP": machine.environment["MGPU_RT_HIP"],
        "DRIVER_WHEN": "late" if case.late else "early",
    }
    if copies_return_early(machine.hip):
        environment["DRIVER_COPIES_WAIT"] = "0"
    return run([str(machine.player), str(images), str(script)], environment, LIMIT)
