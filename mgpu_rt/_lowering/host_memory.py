"""Tells which memrefs of a program lie in the host's own memory and which in the GPU's, from the
program's text.

Names of values belong to a function. A function's parameter is in the memory of the memref that a
call of the program passes for it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_VALUE = re.compile(r"%[\w$.-]+")
_FUNCTION = re.compile(r'^[ \t]*func\.func\b[^@\n]*@([\w$.-]+|"[^"\n]*")', re.MULTILINE)
_PARAMETER = re.compile(r"(%[\w$.-]+)\s*:")
_CALL = re.compile(r'\bcall\s+@([\w$.-]+|"[^"\n]*")\s*\(([^)]*)\)')
_HOST = re.compile(r"(%[\w$.-]+)\s*=\s*memref\.(?:alloc|alloca|get_global)\b")
_DEVICE = re.compile(
    r"(%[\w$.-]+)(?:\s*,\s*%[\w$.-]+)?\s*=\s*gpu\.alloc\b(?![^(:]*\bhost_shared\b)"
)
#: Operations that return another view of a memref.
_VIEW = re.compile(
    r"(%[\w$.-]+)\s*=\s*memref\.(?:subview|cast|reinterpret_cast|collapse_shape|expand_shape|view"
    r"|transpose)\s+(%[\w$.-]+)"
)
_REGISTER = re.compile(r"\bgpu\.host_register\b")
_UNREGISTER = re.compile(r"\bgpu\.host_unregister\b")


@dataclass
class Function:
    """A function of the program: its first and last position, and its memrefs that lie in the
    host's own memory and in the GPU's. A GPU reaches the host's memory from ``registered`` on,
    up to the last position before ``unregistered``."""

    start: int
    end: int
    parameters: list[str]
    host: set[str]
    device: set[str]
    registered: int
    unregistered: int

    def on_host(self, values: set[str], position: int) -> bool:
        """Returns whether only the host reaches one of the values at a position of the text."""
        reached = self.registered <= position < self.unregistered
        return bool(values & self.host) and not reached


def functions(text: str) -> list[Function]:
    """Returns the program's functions in their order, and the text before them as the first."""
    found = list(_FUNCTION.finditer(text))
    starts = [0, *(each.start() for each in found)]
    ends = [*starts[1:], len(text)]
    result = [_function(text, *span) for span in zip(starts, ends, strict=True)]
    named = {each[1]: function for each, function in zip(found, result[1:], strict=True)}
    while any([_grows(text, function, named) for function in result]):
        pass
    return result


def _function(text: str, start: int, end: int) -> Function:
    own = [each.start() for each in _REGISTER.finditer(text, start, end)]
    # Without a registration of its own, a function may get memory that its caller has registered.
    registered = own[0] if own else (start if _REGISTER.search(text) else end)
    unregistered = [each.start() for each in _UNREGISTER.finditer(text, start, end)]
    return Function(
        start,
        end,
        _PARAMETER.findall(text[start:end].partition("{\n")[0]),
        set(_HOST.findall(text, start, end)),
        set(_DEVICE.findall(text, start, end)),
        registered,
        unregistered[-1] if unregistered else end,
    )


def _grows(text: str, function: Function, named: dict[str, Function]) -> bool:
    """Adds views of a function's memrefs, and the parameters of the functions that it calls.
    Returns whether anything was new."""
    grows = False
    pairs = [(function, view, of) for view, of in _VIEW.findall(text, function.start, function.end)]
    for name, operands in _CALL.findall(text, function.start, function.end):
        if called := named.get(name):
            passed = zip(called.parameters, _VALUE.findall(operands), strict=False)
            pairs += [(called, parameter, operand) for parameter, operand in passed]
    for owner, name, of in pairs:
        for kind in ("host", "device"):
            names = getattr(owner, kind)
            if of in getattr(function, kind) and name not in names:
                names.add(name)
                grows = True
    return grows
