"""The plan for one program: lines to replace, text to add, and counts of moved and unchanged
objects."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from mgpu_rt._hoist.ir import Function, Operation, Program
from mgpu_rt._hoist.templates import PREFIX

#: Operations without side effects; the plan removes such an operation if its result is unused.
_PURE = {"llvm.mlir.addressof", "llvm.mlir.constant", "llvm.mlir.zero"}


@dataclass
class Plan:
    """The changes to a program."""

    program: Program
    added: list[str] = field(default_factory=list)
    #: `moved` counts moved objects by function and object. `left` counts unchanged objects by
    #: function, object and reason. The counters keep the order in which the plan counted the
    #: objects.
    moved: Counter[tuple[str, str]] = field(default_factory=Counter)
    left: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    _lines: dict[int, str | None] = field(default_factory=dict)

    def functions(self) -> list[Function]:
        """The functions of the program, except those that an earlier hoisting added."""
        functions = self.program.functions.values()
        # proof: function_is_the_programs, else `return list(functions)`
        return [function for function in functions if not function.name.startswith(PREFIX)]

    def is_changed(self, operation: Operation) -> bool:
        return operation.line in self._lines

    def replace(self, operation: Operation, text: str) -> None:
        """Replaces an operation by `text`, which computes the operation's result."""
        self._lines[operation.line] = f"    {operation.result} = {text}"

    def redirect(self, operation: Operation, callee: str) -> None:
        """Replaces the callee of a call; the call's operands stay unchanged."""
        line = self.program.lines[operation.line]
        self._lines[operation.line] = line.replace(
            f"callee = @{operation.callee}", f"callee = @{callee}", 1
        )

    def remove(self, operation: Operation) -> None:
        self._lines[operation.line] = None

    def text(self) -> str:
        """Returns the program with all changes applied."""
        for function in self.program.functions.values():
            self._sweep(function)
        lines = [self._lines.get(number, line) for number, line in enumerate(self.program.lines)]
        end = next(i for i in reversed(range(len(lines))) if (lines[i] or "").startswith("})"))
        return "\n".join(line for line in [*lines[:end], *self.added, *lines[end:]] if line)

    def _sweep(self, function: Function) -> None:
        """Removes addresses and constants that the changed program no longer uses."""
        kept = [o for o in function.operations if self._lines.get(o.line, "") is not None]
        used = {value for operation in kept for value in self._operands(operation)}
        for operation in kept:
            if operation.name in _PURE and operation.result not in used:
                self.remove(operation)

    def _operands(self, operation: Operation) -> tuple[str, ...]:
        changed = self._lines.get(operation.line)
        if changed is None:
            return operation.operands
        return tuple(re.findall(r"%\w+", changed.partition('"')[2]))
