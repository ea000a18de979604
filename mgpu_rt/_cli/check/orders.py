"""Formats reports about streams and events, and about the order of launches, copies and waits."""

from __future__ import annotations

from typing import Any

Report = dict[str, Any]

#: Faults that are harmless with LLVM's own library and with this one, but perhaps not with others.
WARNINGS = ("early-free", "never-destroyed", "unordered", "crowded")


def is_warning(report: Report) -> bool:
    """Returns True if the fault changes no results: neither with LLVM's own library nor with this
    one. HIP waits for a copy to pageable memory."""
    return report["kind"] in WARNINGS or report.get("memory") == "pageable"


def stream(side: Report) -> str:
    return f"stream {side['stream']}" if side["stream"] else "the null stream"


def op(side: Report) -> str:
    """Describes an op that accesses memory, such as "the launch of scale on stream 2"."""
    of = f" of {side['kernel']}" if "kernel" in side else ""
    return f"the {side['op']}{of} on {stream(side)}"


def advice(report: Report) -> str:
    """Describes the calls that would order the two accesses of a report."""
    kind, other = report["kind"], report["other"]
    who = _LATER.get(kind) or _short(report)
    if kind == "early-unregister":
        ways = _end_of(stream(other))
    else:
        ways = _ways(stream(other), "free" if kind == "early-free" else report["op"])
    return f"nothing orders {who} after {_short(other)}: {ways}{_forgiven(report)}"


def _forgiven(report: Report) -> str:
    if report["kind"] == "early-free":
        return ". LLVM's own library forgives it, as hipFree waits for the device"
    if report["forgiven"] == "yes":
        return ". LLVM's own library waits at a free between them, this one does not"
    return ""


def _end_of(earlier: str) -> str:
    return (
        f"end {earlier}'s chain of tokens by a gpu.wait between them (in C: "
        "mgpuStreamSynchronize), in a loop only if the chain begins in it"
    )


def _ways(earlier: str, later: str) -> str:
    """Describes how to order work behind work on the stream `earlier`. MLIR's gpu.wait destroys the
    streams of its tokens, and a linalg operation takes no token."""
    return (
        f"{_end_of(earlier)}. Without a loop between them, the {later} may take the token of a "
        "gpu.wait async on the tokens of both instead (in C: mgpuStreamWaitEvent): "
        "docs/commands.md, Tokens"
    )


_LATER = {"early-unregister": "the unregister", "early-free": "the free"}


def _short(side: Report) -> str:
    owner = f"stream {side['stream']}'s" if side["stream"] else "the null stream's"
    return f"{owner} {side['op']}"


def notes(report: Report) -> list[str]:
    """Returns the lines that follow the source places in a report."""
    if report["kind"] in _NOTES:
        return [_NOTES[report["kind"]]]
    if report["kind"] == "missing-wait":
        return [_missing_wait(report)]
    if report["kind"] == "early-use":
        return [_early_use(report)]
    if report["kind"] == "never-destroyed":
        return _never_destroyed(report)
    if report["kind"] == "use-after-destroy":
        return _used_after_destroy(report)
    return []


_NOTES = {
    "stream-as-event": "LLVM's own library then waits for nothing, or ends by SIGSEGV with HIP "
    "5.2. LLVM 22 and older lower a gpu.wait to this call if a loop, branch, call or argument "
    "passed its token on: use the token from before, inside and after, or wait before, and begin "
    "and end a chain of tokens inside (docs/commands.md, Tokens); some builds lower an "
    "async.execute to it (llvm #170833)",
    "double-free": "free memory once, after its last use: memory from before a loop behind the "
    "loop, or allocate it in each round",
    "divergent-barrier": "all threads of a workgroup must reach a gpu.barrier: move it out of the "
    "branch or the loop that only some of them enter",
}
_DESTROYS = "a gpu.wait without async destroys the streams of its tokens (in C: mgpuStreamDestroy)"

_NEXT_CHAIN = "begin the next chain of tokens by a gpu.wait async without tokens"
_EVENT_OF_A_LOOP = (
    "MLIR creates the event of a gpu.wait async where its token comes from, not in each round of a "
    "loop: wait for the token by a gpu.wait before the loop, and begin and end a chain of tokens "
    "inside (docs/commands.md, Tokens)"
)


def _early_use(report: Report) -> str:
    earlier = f"stream {report['allocated_on']}"
    return (
        f"{_ways(earlier, report['op'])}. LLVM's own library forgives it. This library may return "
        f"memory that earlier work on {earlier} still uses"
    )


def caller(frames: list[Report]) -> Report | None:
    """Returns the innermost call whose function is known; if no function is known, the innermost
    call. The checker may not know who destroyed a handle that the program misused: no frames."""
    return next((frame for frame in frames if frame["symbol"]), frames[0] if frames else None)


#: The calls of a gpu.wait without async, also if a loop passed its token on.
_CALLS_OF_A_WAIT = frozenset(
    f"mgpu{of}{does}" for of in ("Stream", "Event") for does in ("Synchronize", "Destroy")
)


def _used_after_destroy(report: Report) -> list[str]:
    use, end = caller(report["place"]), caller(report["ended"])
    if report["object"] != "stream":
        ends = (caller(report.get(word, [])) for word in ("ended", "ended_before", "ended_first"))
        again = use and any(end and _is_behind(end, use) for end in ends)
        return [_EVENT_OF_A_LOOP] if again and report["call"] == "mgpuStreamWaitEvent" else []
    number, before = report["number"], report.get("before")
    if report["call"] not in _CALLS_OF_A_WAIT or not use or not end or not _is_behind(use, end):
        return [f"{_DESTROYS}: {_NEXT_CHAIN}, and list only one token of each chain"]
    if before:
        other = "an earlier stream" if "first" in report else f"stream {before}"
        return [
            "this gpu.wait lists two tokens with this handle, and destroys the stream for each: if "
            f"both are of stream {number}, keep one of them; if one is of {other}, "
            f"{_NEXT_CHAIN}"
        ]
    return [
        f"this gpu.wait lists more than one token of stream {number}, and destroys the stream for "
        "each (in C: mgpuStreamDestroy): keep one of them, as it waits for all work of the stream"
    ]


def _is_behind(call: Report, other: Report) -> bool:
    """Returns True if a call is on another call's source line, and behind it in the code. A
    gpu.wait makes its calls in the order of its tokens. In a loop, a call may also use what a later
    call of its line destroyed in the round before."""
    same = all(call.get(word) == other.get(word) for word in ("object", "symbol", "line"))
    return same and "line" in call and bool(call["offset"] > other["offset"])


def _never_destroyed(report: Report) -> list[str]:
    by = report["place"][:1]
    if any("_cffi_backend" in frame["object"] for frame in by):  # the package mgpu_rt made it
        return [
            "mgpu_rt releases no Stream, and no array with pending work, that lives until Python "
            "ends: this is harmless, and a del before the end releases it"
        ]
    if report["object"] != "stream":
        return []
    return [
        f"{_DESTROYS}: list one token of this stream, even if a gpu.wait async joined it; a second "
        "one would destroy it twice"
    ]


_PLURAL = {"launch": "launches", "copy": "copies", "fill": "fills"}


def unawaited(report: Report) -> str:
    """Describes an op that wrote memory that the host reads, and for which nothing waited."""
    op, count, where = report["op"], report["count"], stream(report)
    which = "the last" if report["which"] == "last" else "one"
    last = f"{which} of {count:,} {_PLURAL[op]}" if count > 1 else f"the {op}"
    if op == "copy":
        return f"nothing waits for {last} to the host on {where}"
    if op == "fill":
        return f"nothing waits for {last} of {report['memory']} memory on {where}"
    kernel = f"kernel {report['kernel']} on {where}"
    who = f"{last}, {kernel}," if count > 1 else kernel
    return f"{who} wrote {report['memory']} memory, and nothing waited for it"


_WAIT = "a gpu.wait on its token (in C: mgpuStreamSynchronize)"


def _missing_wait(report: Report) -> str:
    if report["memory"] == "pageable":
        return (
            f"{_WAIT} is missing. HIP waits until a copy to pageable memory has ended, but not for "
            "a copy to registered memory"
        )
    if report["forgiven"] == "yes":
        return (
            f"{_WAIT} is missing. LLVM's own library waits at the free that follows, and this "
            "library does not: host code needs a gpu.wait before it reads what the GPU wrote"
        )
    return f"the host may read too early: {_WAIT} would order it"
