"""Formats reports about streams and events, and about the order of launches, copies and waits."""

from __future__ import annotations

from typing import Any

Report = dict[str, Any]

#: Faults that are harmless with LLVM's own library, but perhaps not with other runtimes.
WARNINGS = ("early-free", "early-use", "never-destroyed", "unordered", "crowded")


def is_warning(report: Report) -> bool:
    """Returns True if the fault does not change the program's results with LLVM's own library."""
    if report["kind"] == "missing-wait":
        return report["memory"] == "pageable" or report["forgiven"] == "yes"
    return report["kind"] in WARNINGS


def stream(side: Report) -> str:
    return f"stream {side['stream']}" if side["stream"] else "the null stream"


def op(side: Report) -> str:
    """Describes an op that accesses memory, such as "the launch of scale on stream 2"."""
    of = f" of {side['kernel']}" if "kernel" in side else ""
    return f"the {side['op']}{of} on {stream(side)}"


def advice(report: Report) -> str:
    """Describes the call that would order the two accesses of a report."""
    other = report["other"]
    who = _LATER.get(report["kind"]) or _short(report)
    if report["kind"] == "early-unregister":
        wait = f"a gpu.wait on the {other['op']}'s token (in C: mgpuStreamSynchronize)"
    else:
        wait = _BOTH
    said = f"nothing orders {who} after {_short(other)}: {wait}"
    if report["kind"] == "early-free":
        return f"{said} would. LLVM's own library forgives it, as hipFree waits for the device"
    return f"{said} would"


_BOTH = "the token of a gpu.wait async on the tokens of both (in C: mgpuStreamWaitEvent)"
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
    if report["kind"] == "use-after-destroy" and report["object"] == "stream":
        return [f"{_DESTROYS}: begin the next chain of tokens by a gpu.wait async without tokens"]
    return []


_NOTES = {
    "stream-as-event": "LLVM's own library then waits for nothing, or ends by SIGSEGV with HIP "
    "5.2. LLVM 22 and older lower a gpu.wait to this call if a loop, branch, call or argument "
    "passed its token on: use the token from before, inside and after, or wait inside by a "
    "gpu.wait; some builds lower an async.execute to it (llvm #170833)",
    "divergent-barrier": "all threads of a workgroup must reach a gpu.barrier: move it out of the "
    "branch or the loop that only some of them enter",
}
_DESTROYS = "a gpu.wait without async destroys the streams of its tokens (in C: mgpuStreamDestroy)"


def _early_use(report: Report) -> str:
    return (
        f"{_BOTH} would. LLVM's own library forgives it. This library may return memory that "
        f"earlier work on stream {report['allocated_on']} still uses"
    )


def _never_destroyed(report: Report) -> list[str]:
    by = report["place"][:1]
    if any("_cffi_backend" in frame["object"] for frame in by):  # the package mgpu_rt made it
        return [
            "mgpu_rt releases no Stream, and no array with pending work, that lives until Python "
            "ends: this is harmless, and a del before the end releases it"
        ]
    if report["object"] != "stream":
        return []
    return [f"{_DESTROYS}: list a token of this stream, even if a gpu.wait async joined it"]


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
            "library does not: if host code then reads what the GPU wrote, it needs a gpu.wait "
            "first"
        )
    return f"the host may read too early: {_WAIT} would order it"
