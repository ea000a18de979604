"""Reads a program in MLIR's generic form, as mlir-opt prints it: one operation per line,
definitions before uses.

The reader accepts only mlir-opt's output, never text that a person wrote. Each operation of a
function is on one line, with the operands in the parentheses after the operation's name. The reader
refuses a program in which a function's line is neither an operation nor a block label.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from mgpu_rt._hoist.tools import Refused
from mgpu_rt._lowering.text import unescape

_STRING = r'"(?:[^"\\]|\\.)*"'
_OPERATION = re.compile(rf"    (?:(%\w+) = )?({_STRING})\(([^()]*)\)(.*)")
_BLOCK = re.compile(r"  \^\w+.*:")
_SYMBOL = re.compile(rf"@({_STRING}|[\w$.-]+)")
_QUOTED = re.compile(rf"(@?){_STRING}")
#: A line before or after a module's content begins with one of these strings. The label ^bb0:
#: occurs only in an empty module.
_AROUND = ('"builtin.module"', "^bb0:", "}")


def symbols(line: str) -> list[str]:
    """Returns the symbols that a line refers to."""
    return [name.strip('"') for name in _SYMBOL.findall(_without_strings(line))]


def _without_strings(line: str) -> str:
    """Returns the line with each string emptied, because a string's text could look like an
    operation."""
    return _QUOTED.sub(lambda string: string[0] if string[1] else '""', line)


@dataclass(frozen=True)
class Operation:
    """One operation of a function."""

    line: int
    block: int
    result: str | None
    name: str
    operands: tuple[str, ...]
    rest: str  # the rest of the operation's line: properties, types

    def symbol(self, attribute: str) -> str | None:
        """Returns the symbol in an attribute, as in `callee = @main`."""
        found = re.search(rf"\b{attribute} = {_SYMBOL.pattern}", _without_strings(self.rest))
        return found and found[1].strip('"')

    @property
    def callee(self) -> str | None:
        """Returns the symbol of a direct call's callee; None for other operations."""
        return self.symbol("callee") if self.name == "llvm.call" else None


class Function:
    """A function with its operations in order; a declaration has no operations."""

    def __init__(self, name: str, operations: list[Operation]) -> None:
        self.name, self.operations = name, operations
        self._definitions = {o.result: o for o in operations if o.result}
        self._uses: dict[str, list[Operation]] = {}
        for operation in operations:
            for value in dict.fromkeys(operation.operands):
                self._uses.setdefault(value, []).append(operation)

    def calls(self, *callees: str) -> list[Operation]:
        return [operation for operation in self.operations if operation.callee in callees]

    def uses(self, value: str | None) -> list[Operation]:
        return self._uses.get(value or "", [])

    def definition(self, value: str) -> Operation | None:
        """Returns the operation that defines a value; None if the value is an argument."""
        return self._definitions.get(value)


@dataclass(frozen=True)
class Global:
    """A global variable."""

    name: str
    constant: bool
    private: bool  # no other program sees or replaces it
    value: bytes  # empty if the attribute is not given as a string


class Program:
    """A module: its lines of text, its functions and its global variables."""

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines()
        self.functions: dict[str, Function] = {}
        self.globals: dict[str, Global] = {}
        #: Functions that run only before main, because only llvm.mlir.global_ctors refers to these
        #: functions.
        self.constructors: set[str] = set()
        self._private: set[str] = set()  # functions that no code outside calls
        self._read()
        # proof: constructor_is_not_called, else `self.constructors &= self._private`
        self.constructors &= {name for name in self._private if self.references[name] == 1}

    @functools.cached_property
    def references(self) -> Counter[str]:
        """Counts the references to each symbol; a definition is no reference."""
        return Counter(name for line in self.lines for name in symbols(line))

    def constant(self, function: Function, value: str) -> Global | None:
        """Returns the private constant string to which a value points, if any."""
        address = function.definition(value)
        if address is None or address.name != "llvm.mlir.addressof":
            return None
        found = self.globals.get(address.symbol("global_name") or "")
        # proof: image_variable_is_constant, else `if found and found.private and found.value:`
        # proof: image_variable_is_private, else `if found and found.constant and found.value:`
        if found and found.constant and found.private and found.value:
            return found
        return None

    def _read(self) -> None:
        lines = iter(enumerate(self.lines))
        for number, line in lines:
            if not line.startswith('  "'):
                if line.strip() and not line.startswith(_AROUND):
                    raise _misread(line)
                continue
            body = self._body(number, lines) if line.endswith("({") else []
            self._add(line, body)

    def _body(self, start: int, lines: Iterator[tuple[int, str]]) -> list[int]:
        """Returns the line numbers of a region's body."""
        body = []
        for number, line in lines:
            if line.startswith("  })"):
                return body
            body.append(number)
        raise _misread(self.lines[start])

    def _add(self, line: str, body: list[int]) -> None:
        kind = line.split('"')[1]
        if kind == "llvm.func":
            function = Function(_name(line), _operations(self.lines, body))
            self.functions[function.name] = function
            # proof: no_other_object_calls_it, else `if True:`
            if _is_private(line):
                self._private.add(function.name)
        elif kind == "llvm.mlir.global":
            found = _global(line)
            self.globals[found.name] = found
        elif kind == "llvm.mlir.global_ctors":
            self.constructors.update(symbols(line))


def _operations(lines: list[str], body: list[int]) -> list[Operation]:
    operations, block = [], 0
    for number in body:
        if _BLOCK.match(lines[number]):
            block += 1
            continue
        match = _OPERATION.fullmatch(lines[number])
        if match is None or match[4].endswith("({"):
            raise _misread(lines[number])
        result, name, operands, rest = match.groups()
        values = tuple(filter(None, operands.split(", ")))
        operations.append(Operation(number, block, result, name.strip('"'), values, rest))
    return operations


def _name(line: str) -> str:
    match = re.search(rf"\bsym_name = ({_STRING})", line)
    if match is None:
        raise _misread(line)
    return match[1].strip('"')


def _global(line: str) -> Global:
    plain = _without_strings(line)
    value = re.search(rf"\bvalue = ({_STRING})[,}}]", line)
    return Global(
        _name(line),
        constant=re.search(r"[{ ]constant[,}]", plain) is not None,
        private=_is_private(line),
        value=unescape(value[1][1:-1]) if value else b"",
    )


def _is_private(line: str) -> bool:
    linkage = r"#llvm\.linkage<(?:internal|private)>"
    return re.search(linkage, _without_strings(line)) is not None


def _misread(line: str) -> Refused:
    return Refused(f"an operation cannot be parsed, so nothing was hoisted: {line.strip()[:100]}")
