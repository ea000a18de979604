"""Generates random programs with hypothesis, and cases of these programs."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from tests.proofs.programs import images
from tests.proofs.random import runner, script

# The minimum number of actions still allows small programs. hypothesis can shrink an action to zero
# bytes, and such an action does nothing.
_ACTIONS = st.lists(
    st.binary(min_size=script.ACTION, max_size=script.ACTION), min_size=15, max_size=90
)
_PROGRAM = st.tuples(st.binary(min_size=4, max_size=4), _ACTIONS)

#: Selects which of the library's allocations fail. In most cases no allocation fails. Otherwise one
#: allocation fails, or one allocation and all later allocations fail.
_FAILS = st.one_of(
    *(st.just(""),) * 6,
    st.integers(1, 120).map(str),
    st.integers(1, 120).map("{}-".format),
)

Bytes = tuple[bytes, Sequence[bytes]]


@dataclass(frozen=True)
class Plan:
    """The programs of a case, and the device on which the programs run."""

    device: runner.Device
    programs: Sequence[Bytes]
    sides: tuple[runner.Side, ...]
    late: bool
    linked: bool
    exits: bool = False
    without: tuple[str, ...] = ()
    fails: str = ""
    #: With a side that lacks the foreign user, on a device that reports calls, the foreign user
    #: calls HIP after this number of actions. None: never. Other sides ignore the number.
    alone_for: int | None = None

    def _foreign(self) -> tuple[list[str], int]:
        """Returns the actions that the sides lack, and after how many actions others call HIP."""
        lacks = [name for side in self.sides for name in side.lacks]
        if self.alone_for is None or "foreign" not in lacks:
            return lacks, 0
        # Once a graph was used, HIP reports no call (witness.c).
        return [*(name for name in lacks if name not in runner.FOREIGN), "graph"], self.alone_for

    def case(self) -> runner.Case:
        scripts = {}
        lacks, left = self._foreign()
        if self.fails:  # if the library has no memory for an event's entry, the event has no time
            lacks += ["elapsed", "graph"]
        for number, (head, actions) in enumerate(self.programs, start=1):
            alone = self.device.starts_alone and number == 1
            scripts[number] = script.write(
                bytes(1) + head[1:] if alone else head,
                actions,
                exits=self.exits and number == len(self.programs),
                null_order=self.device.name.startswith("stub"),
                memory=self.device.memory,
                devices=self.device.count,
                without=(*self.without, *self.device.lacks, *lacks),
                starts=alone,
                alone_for=left,
            )
            left = max(left - len(actions), 0)
        return runner.Case(
            images.NAMES,
            {number: one.threads for number, one in scripts.items()},
            {number: one.lines for number, one in scripts.items()},
            {number: one.expected for number, one in scripts.items()},
            self.late,
            self.linked,
            any(one.crosses or one.resets for one in scripts.values()),
            self.fails,
        )


def plans(
    device: runner.Device,
    sides: Sequence[runner.Side] = runner.ALL,
    *,
    exits: bool = False,
    without: Sequence[str] = (),
):
    """Returns a hypothesis strategy that generates plans for a device. Normally a process runs many
    programs. If `exits` is true, a process runs a single program, which continues while the process
    exits."""
    sides = [side for side in sides if not (exits and "exits" in side.lacks)]
    most, least, longest = (1, 1, 60) if exits else (24, 6, 400)
    reports = device.reports and any("foreign" in side.lacks for side in sides)
    return st.builds(
        Plan,
        device=st.just(device),
        programs=st.lists(_PROGRAM, min_size=least, max_size=most),
        sides=st.sampled_from([(side,) for side in sides]),
        late=st.booleans(),
        linked=st.booleans(),
        exits=st.just(exits),
        without=st.just(tuple(without)),
        fails=_FAILS if device.fails and all(one.fails for one in sides) else st.just(""),
        alone_for=st.none() | st.integers(0, longest) if reports else st.none(),
    )


class Wrong(AssertionError):
    """The output of a side differs. The message names the saved case, and contains a command that
    plays the case again."""


def check(plan: Plan) -> int:
    """Plays a plan. Returns the number of programs in the plan. If stock fails on a device where
    this failure is known, returns 0. Raises Wrong."""
    case = plan.case()
    found = runner.problems(case, plan.device, plan.sides)
    if "stock" in found and plan.device.stock_fails:
        return 0
    if found:
        name = hashlib.sha256(case.text().encode()).hexdigest()[:12]
        path = runner.OUT / "failures" / f"{name}.json"
        runner.save(case, path)
        raise Wrong(_message(plan, case, path, found))
    return len(plan.programs)


def _message(plan: Plan, case: runner.Case, path, found: dict[str, list[str]]) -> str:
    sides = " ".join(f'--side "{side.name}"' for side in plan.sides)
    command = f'python -m tests.proofs.random.play --device "{plan.device.name}" {sides} {path}'
    text = [command, *(f"{name}: {one}" for name, wrong in found.items() for one in wrong[:12])]
    lines = case.text().splitlines()
    if len(lines) < 120:
        text += ["", *(line for line in lines if not line.startswith("images"))]
    return "\n".join(text)
