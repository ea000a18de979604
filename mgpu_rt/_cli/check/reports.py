"""Reads the checker's reports from their file, and prints them as JSON and as text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from mgpu_rt._cli.check import orders
from mgpu_rt._images import elf, lines

Report = dict[str, Any]


class Result(NamedTuple):
    begun: bool  #: the checker was active in the program
    ended: bool  #: each process in which the checker was active ended by exit
    failed: int  #: the number of failed calls
    reports: list[Report]


def read(path: Path) -> Result:
    written = path.read_text(errors="replace").splitlines() if path.exists() else []
    found = [json.loads(line) for line in written if line.endswith("}")]
    for report in found:
        for side in (report, report.get("other", {})):
            if "image" in side:
                image = path.with_name(f"{path.name}.{side.pop('image')}")
                code = side.pop("code")
                _add_line(side, str(image), code)
                # An instruction that LLVM made of several accesses has no line.
                if "line" not in side and (place := lines.of_file(str(image)).before(code)):
                    side["after"] = place
        for frame in _frames(report):
            symbol = elf.symbol_at(frame["object"], frame["offset"])
            frame.setdefault("symbol", symbol.name if symbol else "")
            _add_line(frame, frame["object"], frame["offset"])
    failed = sum(report["calls"] for report in found if report["kind"] == "failed")
    begun, ended = (sum(each["kind"] == kind for each in found) for kind in ("begun", "ended"))
    faults = [report for report in found if report["kind"] not in ("begun", "ended", "failed")]
    return Result(begun > 0, ended >= begun, failed, faults)


def _add_line(side: Report, path: str, offset: int) -> None:
    """Adds the source file and line at an offset of a loaded object, if its line table has one."""
    if place := lines.of_file(path).at(offset):
        side["line"] = place


def _frames(report: Report) -> list[dict[str, Any]]:
    allocation = report.get("allocation", {})
    return [
        *report.get("place", []),
        *report.get("made", []),
        *report.get("ended", []),
        *report.get("ended_before", []),
        *report.get("ended_first", []),
        *report.get("other", {}).get("place", []),
        *allocation.get("allocated", []),
        *allocation.get("freed", []),
    ]


def as_json(found: list[Report], failed: int) -> str:
    told = [{"level": level(report), **report} for report in found]
    return json.dumps({"reports": told, "failed_calls": failed}, indent=2) + "\n"


def level(report: Report) -> str:
    return "warning" if orders.is_warning(report) else "error"


def summary(found: list[Report], failed: int = 0, end: str = "") -> str:
    """Returns the last line of the output, which counts the faults, the warnings and the failed
    calls. `end` names the signal or function that ended the program early; `end` is empty after an
    ordinary exit."""
    warnings = sum(map(orders.is_warning, found))
    counts = [(len(found) - warnings, "fault"), (warnings, "warning")]
    said = [f"{count} {word}{'s' if count > 1 else ''}" for count, word in counts if count]
    before = f" before {end} ended the program" if end else ""
    found_text = f"{', '.join(said) or 'found no fault'}{before}"
    if not failed:
        return found_text
    calls, whose = ("call", "its") if failed == 1 else ("calls", "their")
    joined = "and" if said else "but"
    return f"{found_text}, {joined} {failed:,} {calls} failed: {whose} work was not checked"


# ---- text ----

_ACCESS = {"load": "loads", "store": "stores", "atomic": "updates"}


def text(report: Report) -> str:
    """Formats a report like a compiler's message: a line with the fault, then lines with the source
    place and the allocation."""
    first, *rest = TEXTS[report["kind"]].format_map(_Words(report)).split("\n")
    said = [f"{level(report)}: {first} [{report['kind']}]", *rest]
    if "instruction" in report:
        said += [f"  {line}" for line in _instruction(report)]
    if place := report.get("place"):
        said.append(f"  {_called(report)} by {_place(place)}")
    if report["kind"] not in ("never-destroyed", "crowded"):
        said += [f"  {line}" for line in _life(report)]
    if report["kind"] == "uninitialised":
        said += [f"  {line}" for line in _origin(report)]
    elif report["kind"] == "unordered":
        said += [f"  {line}" for line in _long_launch(report)]
    elif "other" in report:
        said += [f"  {line}" for line in _other(report)]
    said += [f"  {line}" for line in orders.notes(report)]
    if allocation := report.get("allocation"):
        said.append(f"  {_allocation(allocation)}")
        for what in ("allocated", "freed"):
            if allocation[what]:
                said.append(f"  {what} by {_place(allocation[what])}")
    if note := report.get("note"):
        said.append(f"  {note}")
    return "\n".join(said)


def _called(report: Report) -> str:
    """Returns the words that precede the source place in a report, such as "launch on stream 2"."""
    if report["kind"] == "never-destroyed":
        return "created"
    return f"{report['op']} on {orders.stream(report)}" if "op" in report else "called"


def _life(report: Report) -> Iterator[str]:
    """Yields where the report's stream or event was created and destroyed, and where the previous
    and the first one with its handle were destroyed."""
    for what, done in (("made", "created"), ("ended", "destroyed")):
        if report.get(what):
            yield f"{report['object']} {report['number']} {done} by {_place(report[what])}"
    if before := report.get("before"):
        yield (
            f"or {report['object']} {before}, which had this handle before, destroyed by "
            f"{_place(report['ended_before'])}"
        )
    if first := report.get("first"):
        which, more = f"{report['object']} {first}", report["earlier"] - 1
        who = f"one of {more:,} more, the first {which}" if more > 1 else f"{which}, the first one"
        yield f"or {who}, destroyed by {_place(report['ended_first'])}"


def _instruction(report: Report) -> list[str]:
    lane = f", lane {report['lane']}" if "lane" in report else ""
    return [f"at {_code(report)}", f"in {_wave(report)}{lane}"]


def _code(side: Report) -> str:
    line = f"{side['line']}, " if "line" in side else ""
    after = f", after {side['after']}" if "after" in side else ""
    return f"{line}offset 0x{side['offset']:x}{after}: {side['instruction']}"


def _wave(side: Report) -> str:
    return f"workgroup ({_group(side)}), wave {side['wave']}"


def _group(side: Report) -> str:
    return ",".join(str(side[f"workgroup_{axis}"]) for axis in "xyz")


def _other(report: Report) -> list[str]:
    other = report["other"]
    if "op" in other:
        return _other_op(report, other)
    where = f"at {_code(other)}" if "instruction" in other else "at an unknown place"
    if _group(other) == _group(report) and other.get("offset") == report["offset"]:
        advice = (
            "nothing orders the two waves at this instruction: make its access atomic, or let one "
            "thread make it; in a loop, a gpu.barrier in each round would order them"
        )
    elif _group(other) == _group(report):
        advice = (
            "nothing orders the two waves: a gpu.barrier between the accesses would, outside of "
            "any branch, so that all threads reach it (in a loop, also one at the end of each "
            "round); a value that several threads change needs memref.atomic_rmw"
        )
    else:
        advice = (
            "nothing orders workgroups of one launch: two launches would; atomic accesses do not "
            "race, in any order"
        )
    does = _ACCESS[other["access"]] if "access" in other else "accesses"
    return [f"{_wave(other)} {does} it {where}", advice]


def _other_op(report: Report, other: Report) -> list[str]:
    said = [f"{orders.op(other)} by {_place(other['place'])}"]
    if "instruction" in other:
        said.append(f"  at {_code(other)}")
    return [*said, orders.advice(report)]


def _long_launch(report: Report) -> list[str]:
    place = report.get("other", {}).get("place")
    return [
        *([f"launched by {_place(place)}"] if place else []),
        "a kernel that loops without end, or waits for a later call of the host, does not end here",
    ]


#: Maps each use of an uninitialised value to the text of the report.
_USE = {
    "branch": "branches on a value that nothing wrote",
    "address": "takes a value that nothing wrote as an address",
    "host": "stores a value that nothing wrote to registered memory",
}


def _origin(report: Report) -> list[str]:
    other = report.get("other")
    if report["use"] == "copy":
        return _writer(other) if other else [_NO_WRITER]
    if other is None:
        return ["it came from a register that the kernel had not set"]
    place = {"workgroup": "workgroup memory", "scratch": "scratch memory"}.get(report["memory"])
    at = f"0x{other['address']:x}"
    return [f"loaded at {_code(other)}", f"from {at} of {place or _within(report)}"]


_NO_WRITER = (
    "nothing wrote the first of them: only kernels, copies and fills count, and no store of host "
    "code to a GPU's memory"
)


def _writer(other: Report) -> list[str]:
    at = [f"  at {_code(other)}"] if "instruction" in other else []
    return [f"{orders.op(other)} by {_place(other['place'])} stored the first of them", *at]


#: The first line of a report, by its kind.
TEXTS = {
    "unrecorded-event": "{call} waits for event {number}, which was never recorded: the call waits "
    "for nothing",
    "stream-as-event": "{call} gets stream {number} in place of an event",
    "use-after-destroy": "{call} gets {handle} after it was destroyed",
    "never-destroyed": "{object} {number} is never destroyed{more}",
    "missing-wait": "{unawaited}",
    "early-free": "{call} frees memory that {other_op} uses",
    "early-use": "{this_op} uses {within}, and nothing orders it after the allocation on stream "
    "{allocated_on}",
    "early-unregister": "{call} unregisters memory that {other_op} uses",
    "unordered": "{long_kernel} ran longer than a minute, for which check waits after each launch: "
    "from there on, check has not examined the order of streams",
    "crowded": "{call} creates stream {number} while 255 others exist or have work that nothing "
    "waited for: check does not examine its order, nor that of later ones, until the program waits "
    "for streams and destroys them",
    "stopped": "{text}",
    "double-free": "{call} frees memory that was freed before",
    "free-inside": "{call} frees by an address that is not the allocation's first",
    "divergent-barrier": "{who} reaches a barrier with {here} of the {group}'s {all} {parts}",
    "uninitialised": "{who} {uses}",
    "race": "{accesses} of {place_in_memory}, which another wave accesses too",
    "stream-race": "{accesses} of {within}, which {other_op} {other_accesses}",
    "outside-workgroup-memory": "{accesses} of workgroup memory, which has {room}",
    "outside-scratch": "{accesses} of scratch memory, which has {room} a lane",
    "write-to-code": "{accesses}, in code or constants",
    "unmapped": "{accesses}, {nowhere}",
    **dict.fromkeys(
        ("out-of-bounds", "use-after-free", "use-after-unregister"), "{accesses}, {distance}"
    ),
}

_OTHERS_ACCESS = {"load": "reads", "store": "writes", "atomic": "updates"}


class _Words(Report):
    """A report's values, and the words of TEXTS that are made of them."""

    def __missing__(self, name: str) -> str:
        return _WORDS[name](self)


_WORDS: dict[str, Callable[[Report], str]] = {
    "who": lambda r: f"kernel {r['kernel']}" if "kernel" in r else r["call"],
    "accesses": lambda r: (
        f"{r['who']} {_ACCESS[r['access']]} {_bytes(r['bytes'])} at 0x{r['address']:x}"
    ),
    "within": lambda r: _within(r),
    "place_in_memory": lambda r: "workgroup memory" if r["memory"] == "workgroup" else _within(r),
    "room": lambda r: _bytes(r["size"]),
    "nowhere": lambda r: "an address of the host" if "note" in r else "where nothing is allocated",
    "distance": lambda r: _distance(r),
    "uses": lambda r: _use(r),
    "group": lambda r: "wave" if r["parts"] == "lanes" else "workgroup",
    "this_op": lambda r: orders.op(r),
    "other_op": lambda r: orders.op(r["other"]),
    "long_kernel": lambda r: (
        f"kernel {r['other']['kernel']}" if "kernel" in r.get("other", {}) else "a kernel"
    ),
    "other_accesses": lambda r: _OTHERS_ACCESS[r["other"]["access"]],
    "unawaited": lambda r: orders.unawaited(r),
    "handle": lambda r: f"{'the handle of ' if 'before' in r else ''}{r['object']} {r['number']}",
    "more": lambda r: _more(r["count"] - 1, f"{r['object']} {r['last']}"),
}


def _more(count: int, last: str) -> str:
    if not count:
        return ""
    if count == 1:
        return f", nor is {last}, created there"
    return f", nor are {count:,} more created there, up to {last}"


def _use(report: Report) -> str:
    if report["use"] != "copy":
        return _USE[report["use"]]
    undefined = report["undefined"]
    parts = f"{undefined:,} of them, from 0x{report['address']:x} on,"
    does = "holds or derives from" if undefined == 1 else "hold or derive from"
    return f"copies {_bytes(report['bytes'])} to the host; {parts} {does} values that nothing wrote"


def _distance(report: Report) -> str:
    allocation = report["allocation"]
    begin, end = allocation["address"], allocation["address"] + allocation["bytes"]
    address, last = report["address"], report["address"] + report["bytes"]
    name = _name(allocation)
    if report["kind"] == "use-after-free":
        return f"in {name} after its free"
    if report["kind"] == "use-after-unregister":
        return f"in {name} after its unregister"
    if address >= end:
        return f"{_bytes(address - end)} behind {name}" if address > end else f"just behind {name}"
    if address < begin:
        return f"{_bytes(begin - address)} before {name}"
    return f"the last {_bytes(last - end)} of them behind {name}"


def _within(report: Report) -> str:
    if "allocation" in report:
        return _name(report["allocation"])
    return "the host's memory" if report["memory"] == "host" else "memory"


def _bytes(count: int) -> str:
    return "1 byte" if count == 1 else f"{count:,} bytes"


def _allocation(allocation: dict[str, Any]) -> str:
    whose = " (the program's or HIP's)" if allocation["memory"] == "registered" else ""
    size, address = _bytes(allocation["bytes"]), allocation["address"]
    return f"{_name(allocation)}{whose} has {size} at 0x{address:x}"


def _name(allocation: dict[str, Any]) -> str:
    if allocation["memory"] == "registered":
        return "registered memory"
    if allocation["memory"] == "host":
        return "the host's block"
    return f"allocation {allocation['number']}"


def _place(frames: list[dict[str, Any]]) -> str:
    frame = orders.caller(frames)
    if frame is None:
        return "an unknown call"
    at = frame.get("line") or f"{Path(frame['object']).name}+0x{frame['offset']:x}"
    return f"{frame['symbol']} ({at})" if frame["symbol"] else at
