"""Finds the module loads and the function look-ups that a program may do once for all launches.

In programs of LLVM 20 and earlier, each launch loads the module of its kernel. In programs of LLVM
21 and later, a constructor loads the module into a variable before main. Each launch then only
looks up the kernel's function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from mgpu_rt._hoist import templates
from mgpu_rt._hoist.ir import Function, Global, Operation
from mgpu_rt._hoist.plan import Plan

LOADS = ("mgpuModuleLoad", "mgpuModuleLoadJIT")
_ADDRESS = "llvm.mlir.addressof"
LOOK_UP, UNLOAD = "mgpuModuleGetFunction", "mgpuModuleUnload"


@dataclass
class Modules:
    """The modules and functions that the program creates once. Each module and each function has a
    number."""

    plan: Plan
    #: Returns the reason why each load of an image must create its own module, or None.
    why_not_shared: Callable[[bytes], str | None]
    modules: dict[object, int] = field(default_factory=dict)
    functions: dict[object, int] = field(default_factory=dict)
    _settled: dict[str, bool] = field(default_factory=dict)

    def move(self) -> None:
        for function in self.plan.functions():
            for load in function.calls(*LOADS):
                self._treat_load(function, load)
        for function in self.plan.functions():
            for look_up in function.calls(LOOK_UP):
                if not self.plan.is_changed(look_up):
                    self._treat_look_up(function, look_up)

    # ---- modules that are loaded for each launch

    def _treat_load(self, function: Function, load: Operation) -> None:
        image = self.plan.program.constant(function, load.operands[0]) if load.operands else None
        thing = f"the load of @{image.name}" if image else "a load"
        reason = self._why_load_left(function, load)
        if reason:
            self.plan.left[function.name, thing, reason] += 1
            return
        self.plan.moved[function.name, thing] += 1
        module = self._module(function, load)
        for use in function.uses(load.result):
            if use.callee == UNLOAD:
                self.plan.remove(use)
            else:
                of_module = (
                    f"    %module = llvm.call @{templates.module_name(module)}() : () -> !llvm.ptr"
                )
                self._answer(function, use, module, [of_module])
        self.plan.remove(load)

    def _why_load_left(self, function: Function, load: Operation) -> str | None:
        if function.name in self.plan.program.constructors:
            return "it is done once already, before main"
        if not load.operands or load.result is None:
            return "it is called in an unknown form"
        image = self.plan.program.constant(function, load.operands[0])
        if image is None:
            return "its image is no constant of this program"
        # proof: size_of_the_image_is_constant, else `if False:`
        if not all(_is_constant(function, value) for value in load.operands[1:]):
            return "its size is no constant"
        for use in function.uses(load.result):
            if not self._is_known(function, use):
                return f"its module goes to {use.callee or use.name}"
        # proof: image_may_be_shared, else `return None`
        return self.why_not_shared(image.value)

    def _is_known(self, function: Function, use: Operation) -> bool:
        """Returns True for an unload, and for the look-up of a constant name."""
        # proof: looked_up_name_is_constant, else `looks_up = use.callee == LOOK_UP`
        looks_up = use.callee == LOOK_UP and self._name(function, use) is not None
        return looks_up or use.callee == UNLOAD

    def _module(self, function: Function, load: Operation) -> int:
        """Returns a module's number; `load` is the operation that loads the module."""
        sources = [function.definition(value) for value in dict.fromkeys(load.operands)]
        definitions = [source for source in sources if source]
        key = (load.callee, *(definition.rest for definition in definitions))
        if key not in self.modules:
            self.modules[key] = len(self.modules)
            lines = [self.plan.program.lines[o.line] for o in (*definitions, load)]
            self.plan.added.append(templates.module(self.modules[key], lines, load.result or ""))
        return self.modules[key]

    # ---- modules that are loaded before main

    def _treat_look_up(self, function: Function, look_up: Operation) -> None:
        name = self._name(function, look_up)
        variable = self._variable(function, look_up)
        if name is None or variable is None:
            thing = _look_up_of(name) if name else "a look-up"
            reason = "its module is not one for all launches" if name else "its name is no constant"
            self.plan.left[function.name, thing, reason] += 1
            return
        of_module = [
            f'    %variable = llvm.mlir.addressof @"{variable}" : !llvm.ptr',
            "    %module = llvm.load %variable {alignment = 8 : i64} : !llvm.ptr -> !llvm.ptr",
        ]
        self._answer(function, look_up, variable, of_module)
        source = function.definition(look_up.operands[0])
        if source and all(map(self.plan.is_changed, function.uses(source.result))):
            self.plan.remove(source)

    def _name(self, function: Function, look_up: Operation) -> Global | None:
        known = len(look_up.operands) == 2
        return self.plan.program.constant(function, look_up.operands[1]) if known else None

    def _variable(self, function: Function, look_up: Operation) -> str | None:
        """Returns the variable that contains the module, if nothing changes the variable after the
        start of main."""
        source = function.definition(look_up.operands[0]) if look_up.operands else None
        if source is None or source.name != "llvm.load":
            return None
        address = function.definition(source.operands[0])
        name = address.symbol("global_name") if address else None
        return name if name and self._is_settled(name) else None

    def _is_settled(self, name: str) -> bool:
        """Returns True if only constructors write to the variable, and only loads and stores use
        the variable's address."""
        if name not in self._settled:
            variable = self.plan.program.globals.get(name)
            private = variable is not None and variable.private
            # proof: variable_is_private, else `self._settled[name] = self._is_only_read(name)`
            self._settled[name] = private and self._is_only_read(name)
        return self._settled[name]

    def _is_only_read(self, name: str) -> bool:
        program, seen = self.plan.program, 0
        for function in program.functions.values():
            writes = function.name in program.constructors
            for address in function.operations:
                if address.name != _ADDRESS or address.symbol("global_name") != name:
                    continue
                seen += 1
                if not all(_only_reads(u, address, writes) for u in function.uses(address.result)):
                    return False
        # proof: every_reference_was_read, else `return True`
        return seen == program.references[name]

    # ---- both

    def _answer(
        self, function: Function, look_up: Operation, module: object, of_module: list[str]
    ) -> None:
        """Replaces a look-up by a call of the added function that caches the look-up's result."""
        name = self._name(function, look_up)
        assert name is not None
        key = (module, name.value)
        if key not in self.functions:
            self.functions[key] = len(self.functions)
            self.plan.added.append(templates.function(self.functions[key], of_module, name.name))
        callee = templates.function_name(self.functions[key])
        self.plan.replace(look_up, f"llvm.call @{callee}() : () -> !llvm.ptr")
        self.plan.moved[function.name, _look_up_of(name)] += 1


def _look_up_of(name: Global) -> str:
    return f"the look-up of {name.value.rstrip(bytes(1)).decode(errors='replace')}"


def _is_constant(function: Function, value: str) -> bool:
    source = function.definition(value)
    return source is not None and source.name == "llvm.mlir.constant"


def _only_reads(use: Operation, address: Operation, writes: bool) -> bool:
    """Returns True if `use` loads from the variable at `address`, or if `use` is a constructor's
    store to this variable."""
    if use.name == "llvm.load":
        return True
    # proof: variables_address_stays_here, else `stored = use.name == "llvm.store"`
    stored = use.name == "llvm.store" and use.operands[0] != address.result
    # proof: only_constructors_write_it, else `return stored`
    return stored and writes
