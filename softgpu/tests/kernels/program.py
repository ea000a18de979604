"""A kernel program: the MLIR text, the inputs of a launch, and the expected results."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

BLOCK = 256
WORKGROUP = "#gpu.address_space<workgroup>"
COUNT = 1000  # elements of an element-wise program: three whole blocks and a partial one


@dataclass(frozen=True)
class Launch:
    """One launch, which passes each array as a memref of the array's shape, and each NumPy scalar
    by value.

    ``expected`` maps argument numbers to expected arrays. All other arrays must stay unchanged.
    ``ulp`` is the permitted distance in units in the last place. If ``ulp`` is 0, the bits must be
    equal, but all NaNs count as equal.
    """

    arguments: list[np.ndarray | np.generic]
    expected: Mapping[int, np.ndarray]
    grid: tuple[int, ...] = (1,)
    block: tuple[int, ...] = (64,)
    ulp: float = 0
    absolute: float = 0  # an absolute distance that is also permitted, for sums that cancel
    shared: int = 0  # bytes of dynamic workgroup memory
    work_items: tuple[int, ...] | None = None  # of the whole grid, where the last group is smaller
    symbols: Mapping[str, np.ndarray] = field(default_factory=dict)  # values of device globals
    symbols_expected: Mapping[str, np.ndarray] = field(default_factory=dict)


Data = Callable[[np.random.Generator], Launch]


@dataclass(frozen=True)
class Program:
    """A kernel, and a function that creates a launch of this kernel from random numbers."""

    name: str
    text: str
    data: Data
    kernel: str


# At O=0, a kernel without the attributes below requests a queue for launching other kernels. HIP
# 5.2.3 uses a null pointer if a kernel requests this queue.
_UNQUEUED = '"amdgpu-no-default-queue", "amdgpu-no-completion-action"'
_KERNEL = re.compile(r"\bkernel\s+(?:attributes \{(?P<attributes>[^{}]*)\}\s*)?\{")


class Module:
    """Programs that are lowered together. One lowering of many kernels takes less time than many
    lowerings of one kernel."""

    def __init__(
        self,
        name: str,
        *,
        first: str = "",
        prelude: str = "",
        opt_level: int = 2,
        sample: bool = False,
        unoptimised: bool = False,
    ) -> None:
        self.name = name
        self.first = first  # passes that run before the recipe
        self.prelude = prelude  # text before the kernels
        self.opt_level = opt_level
        self.sample = sample  # `make check` runs it for the older targets, too
        #: Unoptimised code retains calls, copies, scratch accesses and empty branches.
        self.unoptimised = unoptimised  # `make test` runs it without optimisation, too
        self.programs: dict[str, Program] = {}

    def add(self, name: str, text: str, data: Data, kernel: str | None = None) -> None:
        """Adds a program; a program with an empty `text` launches a kernel of another program."""
        if name in self.programs:
            raise ValueError(f"{self.name} has two programs {name}")
        self.programs[name] = Program(name, text, data, kernel or name)

    def program(self, text: str) -> Callable[[Data], Data]:
        """Adds a program under the name of the decorated function. The decorated function generates
        the program's data, and `text` contains the kernel."""

        def decorate(data: Data) -> Data:
            self.add(data.__name__, text, data)  # type: ignore[attr-defined]
            return data

        return decorate

    def at(self, opt_level: int) -> Module:
        """Returns a module with the same programs and another optimisation level."""
        other = Module(
            f"{self.name}_o{opt_level}",
            first=self.first,
            prelude=self.prelude,
            opt_level=opt_level,
        )
        other.programs = self.programs
        return other

    @property
    def text(self) -> str:
        kernels = "\n".join(program.text for program in self.programs.values())
        if self.opt_level == 0:
            kernels = _KERNEL.sub(_unqueued, kernels)
        return (
            "module attributes {gpu.container_module} {\n"
            f"gpu.module @kernels {{\n{self.prelude}\n{kernels}\n}}\n}}\n"
        )


def _unqueued(kernel: re.Match[str]) -> str:
    own = kernel["attributes"] or ""
    if "passthrough = [" in own:
        return f"kernel attributes {{{own.replace('= [', f'= [{_UNQUEUED}, ', 1)}}} {{"
    return f"kernel attributes {{{own + ', ' if own else ''}passthrough = [{_UNQUEUED}]}} {{"


def elementwise(name: str, inputs: list[str], output: str, body: str) -> str:
    """Returns a kernel with one work-item for each element. The kernel loads %a, %b and %c from its
    inputs, and `body` computes %r."""
    names = "abc"[: len(inputs)]
    memrefs = [f"%m{n}: memref<?x{t}>" for n, t in zip(names, inputs, strict=True)]
    loads = "\n".join(
        f"%{n} = memref.load %m{n}[%i] : memref<?x{t}>" for n, t in zip(names, inputs, strict=True)
    )
    return f"""
    gpu.func @{name}({", ".join(memrefs)}, %mr: memref<?x{output}>, %count: index) kernel {{
      %block = gpu.block_id x
      %width = gpu.block_dim x
      %thread = gpu.thread_id x
      %start = arith.muli %block, %width : index
      %i = arith.addi %start, %thread : index
      %inside = arith.cmpi ult, %i, %count : index
      scf.if %inside {{
        {loads}
        {body}
        memref.store %r, %mr[%i] : memref<?x{output}>
      }}
      gpu.return
    }}"""


def elements(
    inputs: list[np.ndarray], expected: np.ndarray, dtype: type | None = None, ulp: float = 0
) -> Launch:
    """Returns a launch of an element-wise kernel."""
    count = len(inputs[0])
    out = np.zeros(count, expected.dtype if dtype is None else dtype)
    return Launch(
        [*inputs, out, np.int64(count)],
        {len(inputs): expected},
        grid=((count + BLOCK - 1) // BLOCK,),
        block=(BLOCK,),
        ulp=ulp,
    )
