"""Tells which memrefs of a program lie in the host's own memory and which in the GPU's, from the
program's text.

A memref that a call, a branch or a loop passes on keeps its memory. A function's branches and loops
are taken together: what one of them passes on, each of them may. So a value may be in both kinds of
memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_VALUE = re.compile(r"%[\w$.-]+(?:#\d+)?")
_FUNCTION = re.compile(r'^[ \t]*func\.func\b[^@\n]*@([\w$.-]+|"[^"\n]*")', re.MULTILINE)
_PARAMETER = re.compile(r"(%[\w$.-]+)\s*:")
_DEVICE = re.compile(
    r"(%[\w$.-]+)(?:\s*,\s*%[\w$.-]+)?\s*=\s*gpu\.alloc\b(?![^(:]*\bhost_shared\b)"
)
_HOST = re.compile(r"(%[\w$.-]+)\s*=\s*memref\.(?:alloc|alloca|realloc|get_global)\b")

#: The results of an operation, such as `%a, %b:2`. They begin a line, or follow a bracket.
_RESULTS = r"(?:^|\{)[ \t]*(%[\w$.-]+(?::\d+)?(?:\s*,\s*%[\w$.-]+(?::\d+)?)*)\s*=\s*"
#: Operations that return another view of their first operand.
_VIEW = re.compile(
    rf"{_RESULTS}(?:memref\.(?:subview|cast|reinterpret_cast|collapse_shape|expand_shape|view"
    r"|transpose|reshape|memory_space_cast|assume_alignment|extract_strided_metadata)|async\.await"
    r"|(?:builtin\.)?unrealized_conversion_cast)\s+([^:\s,\[(]+)",
    re.MULTILINE,
)
_SELECT = re.compile(rf"{_RESULTS}arith\.select\s+([^:]*)", re.MULTILINE)
_CALL = re.compile(
    rf'(?:{_RESULTS})?\b(?:func\.)?call\s+@([\w$.-]+|"[^"\n]*")\s*\(([^)]*)\)', re.MULTILINE
)
_RETURN = re.compile(r"(?<![\w.])(?:func\.)?return\b([^:}]*)")
#: Operations whose regions and blocks pass values on, and the places of such values: a terminator,
#: `iter_args(%a = %b)`, and the operands and arguments of blocks.
_REGIONS = re.compile(
    rf"{_RESULTS}(?:scf\.(?:if|for|while|execute_region|index_switch)|affine\.(?:if|for)"
    r"|async\.execute|memref\.alloca_scope)\b",
    re.MULTILINE,
)
_YIELD = re.compile(
    r"\b(?:(?:scf|affine|async)\.yield|scf\.condition|memref\.alloca_scope\.return)\b([^:}]*)"
)
_INITIAL = re.compile(r"(%[\w$.-]+)\s*=\s*(%[\w$.#-]+)")
_BLOCK = re.compile(r"\^[\w$.-]+\s*\(([^\n]*)")

#: Operations by which code accesses memory itself: a value and its indices, a copy, a free, or a
#: call of LLVM's functions that print memory.
_ACCESS = re.compile(
    r"\b(?:memref|affine|vector)\.(?:(?:vector_|masked|expand|compress)?(?:load|store)"
    r"|(?:generic_)?atomic_rmw|transfer_read|transfer_write|gather|scatter)\b"
    r"[^\n\[:]*?(%[\w$.#-]+)\s*\["
    r"|\bmemref\.copy\s+(%[\w$.#-]+)\s*,\s*(%[\w$.#-]+)"
    r"|\bmemref\.dealloc\s+(%[\w$.#-]+)"
    r"|(?<=call )@printMemref(?!Shape)\w+\s*\(\s*(%[\w$.#-]+)"
)
#: An operation of linalg, or the end of its body.
_LINALG = re.compile(r"\blinalg\.(?!index\b)\w+")
_LAUNCH = re.compile(r"\bgpu\.launch\b[^{]*")
_BRACE = re.compile(r"[{}]")
_NAME = re.compile(r'@([\w$.-]+|"[^"\n]*")')

_REGISTER = re.compile(r"\bgpu\.host_register\b")
_UNREGISTER = re.compile(r"\bgpu\.host_unregister\b")

#: Stands for what the branches and loops of a function pass on; result N has the name `returns N`.
_PASSED_ON = "passed on"
_RETURNS = "returns {}"


@dataclass
class Function:
    """A function of the program: its first and last position, and its memrefs that may lie in the
    host's own memory and in the GPU's. A GPU reaches the host's memory from ``registered`` on,
    up to the last position before ``unregistered``."""

    name: str
    start: int
    end: int
    parameters: list[str]
    host: set[str]
    device: set[str]
    registered: int
    unregistered: int
    flows: list[tuple[str, Function, str]] = field(default_factory=list)

    def on_host(self, values: set[str], position: int) -> bool:
        """Returns whether only the host reaches one of the values at a position of the text."""
        reached = self.registered <= position < self.unregistered
        return bool(values & self.host) and not reached


def functions(text: str) -> list[Function]:
    """Returns the program's functions in their order, and the text before them as the first."""
    found = list(_FUNCTION.finditer(text))
    names = ["", *(each[1] for each in found)]
    starts = [0, *(each.start() for each in found)]
    ends = [*starts[1:], len(text)]
    result = [_function(text, *each) for each in zip(names, starts, ends, strict=True)]
    named = {function.name: function for function in result[1:]}
    for function in result:
        part = text[function.start : function.end]
        function.flows += [(of, function, to) for of, to in _within(part)]
        function.flows += _through_calls(part, function, named)
    while any([_grows(function) for function in result]):
        pass
    return result


def access_to_device(text: str) -> tuple[re.Match[str], str] | None:
    """Returns the first operation by which code of the host itself reads, writes or frees memory
    of the GPU, and the memref."""
    host, kernels = without_launches(text)
    found = functions(text)
    called = called_by(kernels, text, found)
    for function in found:
        if function.name in called:
            continue
        for access in _ACCESS.finditer(host, function.start, function.end):
            ours = set(filter(None, access.groups())) & (function.device - function.host)
            if ours and not _in_linalg(host, access.end()):
                return access, min(ours)
    return None


def _in_linalg(text: str, position: int) -> bool:
    """Returns whether a position is in the body of an operation of linalg."""
    following = _LINALG.search(text, position)
    return following is not None and following[0] == "linalg.yield"


def accessed_in_body(operation: str) -> set[str]:
    """Returns the memrefs that the body of an operation of linalg reads or writes itself, except
    for those of the body."""
    body = operation.rpartition("linalg.yield")[0]
    found = {value for access in _ACCESS.finditer(body) for value in access.groups() if value}
    return found - set(_HOST.findall(body))


def without_launches(text: str) -> tuple[str, str]:
    """Returns the text with blanks in place of what gpu.launch runs, and only the code that it
    runs. Positions of the first are those of the text."""
    kernels = []
    for launch in _LAUNCH.finditer(text):
        code = block(text, launch.end())
        kernels.append(code)
        end = launch.end() + len(code)
        text = text[: launch.end()] + re.sub(r"[^\n]", " ", code) + text[end:]
    return text, "".join(kernels)


def block(text: str, start: int) -> str:
    """Returns the text from a position to the end of the first block in braces."""
    depth = 0
    for brace in _BRACE.finditer(text, start):
        depth += {"{": 1, "}": -1}[brace[0]]
        if depth <= 0:
            return text[start : brace.end()]
    return text[start:]


def called_by(code: str, text: str, found: list[Function]) -> dict[str, Function]:
    """Returns the functions of the text that the code calls, also through other functions."""
    named = {function.name: function for function in found}
    called: dict[str, Function] = {}
    names = _NAME.findall(code)
    while names:
        name = names.pop()
        if name in named and name not in called:
            called[name] = named[name]
            names += _NAME.findall(text, named[name].start, named[name].end)
    return called


def _function(text: str, name: str, start: int, end: int) -> Function:
    own = [each.start() for each in _REGISTER.finditer(text, start, end)]
    # Without a registration of its own, a function may get memory that its caller has registered.
    registered = own[0] if own else (start if _REGISTER.search(text) else end)
    unregistered = [each.start() for each in _UNREGISTER.finditer(text, start, end)]
    return Function(
        name,
        start,
        end,
        _PARAMETER.findall(text[start:end].partition("{\n")[0]),
        set(_HOST.findall(text, start, end)),
        set(_DEVICE.findall(text, start, end)),
        registered,
        unregistered[-1] if unregistered else end,
    )


def _results(text: str) -> list[str]:
    """Returns the names of an operation's results: `%a#0`, `%a#1` and `%b` for `%a:2, %b`."""
    names = []
    for each in filter(None, map(str.strip, text.split(","))):
        name, _, count = each.partition(":")
        names += [f"{name}#{number}" for number in range(int(count))] if count else [name]
    return names


def _within(text: str) -> Iterator[tuple[str, str]]:
    """Yields the pairs of values of a function's text of which the second gets the memory of the
    first."""
    for results, of in _VIEW.findall(text):
        yield from ((of, result) for result in _results(results))
    for results, operands in _SELECT.findall(text):
        yield from ((of, to) for to in _results(results) for of in _VALUE.findall(operands))
    for results in _REGIONS.findall(text):
        yield from ((_PASSED_ON, result) for result in _results(results))
    for operands in _YIELD.findall(text):
        yield from ((of, _PASSED_ON) for of in _VALUE.findall(operands))
    for value, initial in _INITIAL.findall(text):
        yield from ((initial, value), (initial, _PASSED_ON), (_PASSED_ON, value))
    for operands in _BLOCK.findall(text):
        for value in _VALUE.findall(operands):
            yield from ((value, _PASSED_ON), (_PASSED_ON, value))
    for operands in _RETURN.findall(text):
        yield from (
            (of, _RETURNS.format(number)) for number, of in enumerate(_VALUE.findall(operands))
        )


def _through_calls(
    text: str, function: Function, named: dict[str, Function]
) -> Iterator[tuple[str, Function, str]]:
    """Yields what calls pass to the parameters of other functions. Adds to these functions what
    they return."""
    for results, name, operands in _CALL.findall(text):
        if called := named.get(name):
            for of, to in zip(_VALUE.findall(operands), called.parameters, strict=False):
                yield of, called, to
            for number, to in enumerate(_results(results)):
                called.flows.append((_RETURNS.format(number), function, to))


def _grows(function: Function) -> bool:
    """Passes the memory of a function's values on. Returns whether anything was new."""
    grows = False
    for of, owner, to in function.flows:
        for kind in ("host", "device"):
            names = getattr(owner, kind)
            if of in getattr(function, kind) and to not in names:
                names.add(to)
                grows = True
    return grows
