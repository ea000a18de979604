"""Faults in the order of launches, copies, frees and waits, and in the use of handles."""

from __future__ import annotations

from tests.python.cli.check.mutants.form import Mutant


def _mutant(
    function: str, what: str, kind: str, old: str, new: str, line: str, *also: str
) -> Mutant:
    source = "tests/python/cli/check/streams.mlir"
    return Mutant(source, what, kind, old, new, line, f"func.func @{function}(", also)


_RACE, _LEAK = "stream-race", "never-destroyed"
_WAIT, _TOKEN, _STREAM = "wait left out", "token left out", "work on another stream"
_DROPPED, _MOVED, _UNREGISTER = "event dropped", "free moved up", "unregister moved up"
_MISUSED, _LEFT = "handle misused", "object left behind"


def _call(name: str, *arguments: str) -> str:
    types = ", ".join("!llvm.ptr" for _ in arguments)
    return f"func.call @mgpu{name}({', '.join(arguments)}) : ({types}) -> ()"


def _without_wait(function: str, old: str, line: str) -> Mutant:
    return _mutant(function, _WAIT, _RACE, old, "", line, _LEAK)


def _ended(function: str, token: str, number: str, line: str) -> Mutant:
    """The program destroys the stream instead of waiting for the stream."""
    end = (
        f"%s{number} = builtin.unrealized_conversion_cast %{token} "
        ": !gpu.async.token to !llvm.ptr\n    "
    )
    end += _call("StreamDestroy", f"%s{number}")
    return _mutant(function, _WAIT, _RACE, f"gpu.wait [%{token}] // {number}", end, line)


def _dealloc(token: str, memory: str) -> str:
    return f"gpu.dealloc async [%{token}] %{memory} : memref<?xi32>"


MUTANTS = (
    # By tokens.
    _mutant("tokens", _TOKEN, _RACE, "[%b0, %copied]", "[%b0]", "%copied = gpu.memcpy"),
    _mutant("tokens", _TOKEN, _RACE, "[%c0, %added]", "[%c0]", "memref.store %sum"),
    _mutant(
        "tokens",
        _STREAM,
        _RACE,
        "launch_func async [%b1]",
        "launch_func async [%b0]",
        "%in[",
        "use-after-destroy",
        _LEAK,
    ),
    _mutant(
        "tokens",
        _STREAM,
        _RACE,
        "memcpy async [%c1]",
        "memcpy async [%c0]",
        "%back =",
        "use-after-destroy",
        _LEAK,
    ),
    _mutant(
        "tokens",
        _WAIT,
        "missing-wait",
        "gpu.wait [%back, %a0, %b0, %c0, %added]",
        "gpu.wait [%a0, %b0, %c0, %added]",
        "%back =",
        _LEAK,
    ),
    _mutant(
        "tokens",
        _MOVED,
        "early-free",
        "%c0 = gpu.wait async\n",
        f"%c0 = gpu.wait async\n    %dx = {_dealloc('c0', 'in')}\n    return\n  }}\n"
        "  func.func @rest(%host: memref<?xi32>, %in: memref<?xi32>, %out: memref<?xi32>,\n"
        "      %a0: !gpu.async.token, %b0: !gpu.async.token, %added: !gpu.async.token) {\n"
        "    %c0 = gpu.wait async\n",
        "%dx =",
        _LEAK,
    ),
    # Faults in calls that make the host wait.
    _without_wait("waits", "gpu.wait [%first] // one", "memref.store %value"),
    _without_wait("waits", "gpu.wait [%second] // two", "%third = gpu.memset"),
    _without_wait("waits", "gpu.wait [%third] // three", "%fourth = gpu.memcpy"),
    _ended("waits", "first", "one", "memref.store %value"),
    _ended("waits", "second", "two", "%third = gpu.memset"),
    _ended("waits", "third", "three", "%fourth = gpu.memcpy"),
    _mutant("waits", _WAIT, "missing-wait", "gpu.wait [%fourth] // four", "", "%fourth =", _LEAK),
    # Faults in concurrent work on two streams.
    _without_wait("together", "gpu.wait [%a2, %b2] // both", "memref.atomic_rmw"),
    _mutant(
        "together",
        "value changed",
        _RACE,
        "%d1 = gpu.launch_func async [%d0] @kernels::@set\n"
        "        blocks in (%one, %one, %one) threads in (%half, %one, %one)\n"
        "        args(%x : memref<?xi32>, %three : i32)",
        "%d1 = gpu.launch_func async [%d0] @kernels::@set\n"
        "        blocks in (%one, %one, %one) threads in (%half, %one, %one)\n"
        "        args(%x : memref<?xi32>, %four : i32)",
        "memref.store %value, %out[%i]",
    ),
    _mutant(
        "together",
        "size grown",
        _RACE,
        "[%a0] @kernels::@add\n        blocks in (%one, %one, %one) threads in (%half",
        "[%a0] @kernels::@add\n        blocks in (%one, %one, %one) threads in (%count",
        "memref.store %value, %out[%right]",
    ),
    _mutant(
        "together",
        "another allocation",
        _RACE,
        "args(%y : memref<?xi32>, %in : memref<?xi32>)",
        "args(%x : memref<?xi32>, %in : memref<?xi32>)",
        "memref.atomic_rmw",
    ),
    _mutant(
        "together",
        _MOVED,
        "early-free",
        "gpu.wait [%c1, %d1]\n    %e0 = gpu.wait async\n"
        f"    %e1 = {_dealloc('e0', 'in')}\n    %e2 = {_dealloc('e1', 'x')}",
        f"%e0 = gpu.wait async\n    %e2 = {_dealloc('e0', 'x')}\n"
        f"    gpu.wait [%c1, %d1]\n    %e1 = {_dealloc('e2', 'in')}",
        "%e2 = gpu.dealloc",
    ),
    # By events.
    _mutant(
        "events",
        _DROPPED,
        "unrecorded-event",
        _call("EventRecord", "%e", "%a"),
        "",
        "@mgpuStreamWaitEvent(%b, %e)",
        _RACE,
    ),
    _mutant(
        "events",
        _DROPPED,
        "unrecorded-event",
        _call("EventRecord", "%f", "%b"),
        "",
        "@mgpuStreamWaitEvent(%c, %f)",
        _RACE,
    ),
    _mutant("events", _DROPPED, _RACE, _call("EventRecord", "%f", "%c"), "", "%in["),
    _mutant(
        "events", _WAIT, _RACE, _call("StreamWaitEvent", "%b", "%e"), "", "%first = gpu.memset"
    ),
    _mutant("events", _WAIT, _RACE, _call("StreamWaitEvent", "%c", "%f"), "", "%in["),
    _mutant("events", _WAIT, _RACE, _call("EventSynchronize", "%f"), "", "%in["),
    _mutant(
        "events", _STREAM, _RACE, "EventRecord(%e, %a)", "EventRecord(%e, %b)", "%first = gpu."
    ),
    _mutant("events", _STREAM, _RACE, "EventRecord(%f, %b)", "EventRecord(%f, %a)", "%in["),
    _mutant(
        "events", _STREAM, _RACE, "StreamWaitEvent(%b, %e)", "StreamWaitEvent(%c, %e)", "%first ="
    ),
    _mutant(
        "events",
        _STREAM,
        _RACE,
        "third = gpu.launch_func async [%tb]",
        "third = gpu.launch_func async [%tc]",
        "%second = gpu.memset",
    ),
    _mutant(
        "events",
        _MISUSED,
        "stream-as-event",
        _call("EventSynchronize", "%f"),
        _call("EventSynchronize", "%c"),
        "@mgpuEventSynchronize(%c)",
        _RACE,
    ),
    _mutant(
        "events",
        _MISUSED,
        "use-after-destroy",
        _call("EventDestroy", "%e"),
        f"{_call('EventDestroy', '%e')}\n    {_call('StreamWaitEvent', '%a', '%e')}",
        "@mgpuStreamWaitEvent(%a, %e)",
    ),
    _mutant(
        "events",
        _MISUSED,
        "use-after-destroy",
        _call("StreamDestroy", "%b"),
        f"{_call('StreamDestroy', '%b')}\n    {_call('StreamSynchronize', '%b')}",
        "@mgpuStreamSynchronize(%b)",
    ),
    _mutant("events", _LEFT, _LEAK, _call("EventDestroy", "%e"), "", "%e = func.call"),
    _mutant("events", _LEFT, _LEAK, _call("EventDestroy", "%f"), "", "%f = func.call"),
    _mutant("events", _LEFT, _LEAK, _call("StreamDestroy", "%b"), "", "%b = func.call"),
    # Faults in work on host memory.
    _without_wait("registered", "gpu.wait [%a1] // one", "%b1 = gpu.memcpy"),
    _without_wait("registered", "gpu.wait [%b1] // two", "%b1 = gpu.memcpy"),
    _without_wait("registered", "gpu.wait [%c1] // three", "%d1 = gpu.memcpy"),
    _ended("registered", "a1", "one", "%b1 = gpu.memcpy"),
    _mutant(
        "registered",
        _UNREGISTER,
        "early-unregister",
        "gpu.wait [%d1] // four\n    gpu.host_unregister %unranked : memref<*xi32>",
        "gpu.host_unregister %unranked : memref<*xi32>\n    gpu.wait [%d1]",
        "gpu.host_unregister",
    ),
    _mutant(
        "registered",
        _MOVED,
        "early-free",
        "gpu.wait [%d1] // four\n    gpu.host_unregister %unranked : memref<*xi32>\n"
        f"    %e0 = gpu.wait async\n    %e1 = {_dealloc('e0', 'out')}",
        f"%e0 = gpu.wait async\n    %e1 = {_dealloc('e0', 'out')}\n"
        "    gpu.wait [%d1]\n    gpu.host_unregister %unranked : memref<*xi32>",
        "%e1 = gpu.dealloc",
    ),
)
