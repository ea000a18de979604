"""Hoists a program: reads it, decides what to move, and writes it."""

from __future__ import annotations

from dataclasses import dataclass

from mgpu_rt import _abi
from mgpu_rt._hoist import stream_creations, templates
from mgpu_rt._hoist.ir import Program
from mgpu_rt._hoist.module_loads import LOADS, LOOK_UP, Modules
from mgpu_rt._hoist.plan import Plan
from mgpu_rt._hoist.tools import Refused, Tools
from mgpu_rt._images.sharing import why_not_shared

_CHOOSES_DEVICE = "mgpuSetDefaultDevice"
_MOVABLE = (*LOADS, LOOK_UP, stream_creations.CREATE)


@dataclass(frozen=True)
class Hoisted:
    """A program, and notes about the program; each note is one sentence."""

    program: bytes
    said: list[str]


def hoist(given: bytes, tools: Tools) -> Hoisted:
    """Hoists a program in the LLVM dialect; if nothing is moved, each byte of the program is
    unchanged.

    Raises Refused or NotBuilt.
    """
    program = Program(tools.explicit(given))
    obstacle = _obstacle(program)
    if obstacle:
        return Hoisted(given, [f"nothing was moved: {obstacle}"])
    plan = Plan(program)
    _find_other_forms(plan)
    kept_streams = stream_creations.move(plan)
    modules = Modules(plan, why_not_shared)
    modules.move()
    if not plan.moved:
        return Hoisted(given, ["nothing was moved", *_sentences(plan)])
    # proof: hoisted_program_is_unchanged, else `if False:`
    if any(name.startswith(templates.PREFIX) for name in (*program.functions, *program.globals)):
        raise Refused(
            "the program was hoisted before and changed since: hoist the original program"
        )
    counts = len(modules.modules), len(modules.functions)
    plan.added.append(templates.common(*counts, kept_streams > 0, program.functions))
    return Hoisted(tools.validated(plan.text()), _sentences(plan))


def _obstacle(program: Program) -> str | None:
    """Returns the reason why hoisting must not change the program at all, or None."""
    known = {function.name for function in _abi.functions()}
    called = {o.callee for f in program.functions.values() for o in f.operations} & known
    own = known & {function.name for function in program.functions.values() if function.operations}
    # proof: program_leaves_the_abi_alone, else `if False:`
    if own:
        return f"it defines {min(own)} itself"
    if not called:
        return "it has no GPU calls"
    # proof: program_keeps_its_device, else `if False:`
    if _CHOOSES_DEVICE in called:
        return f"it calls {_CHOOSES_DEVICE}, and what is kept belongs to one device"
    return None


def _find_other_forms(plan: Plan) -> None:
    """Adds a note for each operation that refers to a movable function but does not call this
    function directly."""
    for function in plan.functions():
        for operation in function.operations:
            if operation.callee is None:
                for name in {operation.symbol("callee"), operation.symbol("global_name")}:
                    if name in _MOVABLE:
                        plan.left[function.name, name, f"it is used by {operation.name}"] += 1


def _sentences(plan: Plan) -> list[str]:
    moved = [
        f"{function}: moved {thing}{_times(count)}"
        for (function, thing), count in plan.moved.items()
    ]
    left = [
        f"{function}: left {thing}{_times(count)}: {reason}"
        for (function, thing, reason), count in plan.left.items()
    ]
    return moved + left


def _times(count: int) -> str:
    return f", {count} times" if count > 1 else ""
