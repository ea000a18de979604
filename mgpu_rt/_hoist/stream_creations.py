"""Finds the places where a program creates a stream, but can reuse an idle stream."""

from __future__ import annotations

from mgpu_rt import _abi
from mgpu_rt._hoist.ir import Function, Operation
from mgpu_rt._hoist.plan import Plan
from mgpu_rt._hoist.templates import GIVE, TAKE

CREATE, WAIT, DESTROY = "mgpuStreamCreate", "mgpuStreamSynchronize", "mgpuStreamDestroy"

#: The position of the parameter `stream` in each function of the ABI.
_POSITIONS = {
    function.name: position
    for function in _abi.functions()
    for position, parameter in enumerate(function.params.split(", "))
    if parameter == "hipStream_t stream"
}


def move(plan: Plan) -> int:
    """Plans the replacement of stream creations and destructions; returns the number of replaced
    creations."""
    moved = 0
    for function in plan.functions():
        for creation in function.calls(CREATE):
            reason = _why_left(function, creation)
            if reason:
                plan.left[function.name, "a stream", reason] += 1
                continue
            plan.redirect(creation, TAKE)
            for destruction in _destructions(function, creation):
                plan.redirect(destruction, GIVE)
            plan.moved[function.name, "a stream"] += 1
            moved += 1
    return moved


def _destructions(function: Function, creation: Operation) -> list[Operation]:
    return [use for use in function.uses(creation.result) if use.callee == DESTROY]


def _why_left(function: Function, creation: Operation) -> str | None:
    if creation.operands or creation.result is None:
        return "it is created in an unknown form"
    uses = function.uses(creation.result)
    for use in uses:
        if not _is_known(use, creation.result):
            return f"it goes to {use.callee or use.name}"
    destructions = _destructions(function, creation)
    # proof: stream_is_destroyed_here, else `if False:`
    if not destructions:
        return "it is not destroyed here"
    if not all(_was_waited_for(uses, destruction) for destruction in destructions):
        return "it is destroyed without a wait just before"
    return None


def _is_known(use: Operation, stream: str) -> bool:
    """Returns True if the operation passes the stream as the stream argument, and as no other
    argument."""
    position = _POSITIONS.get(use.callee or "")
    # proof: call_uses_it_as_a_stream, else `return stream in use.operands`
    return [i for i, value in enumerate(use.operands) if value == stream] == [position]


def _was_waited_for(uses: list[Operation], destruction: Operation) -> bool:
    """Returns True if, in the destruction's block, the stream's last use before the destruction is
    a wait. After such a wait the stream has no pending work."""
    # proof: wait_is_in_its_block, else `before = [u for u in uses if u.line < destruction.line]`
    before = [u for u in uses if u.block == destruction.block and u.line < destruction.line]
    # proof: last_use_is_a_wait, else `return bool(before)`
    return bool(before) and before[-1].callee == WAIT
