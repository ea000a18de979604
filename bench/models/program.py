"""Writes a model as a complete MLIR program, which manages memory and synchronises as users do.

The program's main calls `next_round` of bench/native/model.c repeatedly. Each call returns the
number of forward passes to make; zero ends main. The code before main's loop creates the objects
that the variant keeps between passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench.models.graph import LENGTH, Buffer, Graph, Weight
from bench.models.zoo import Model

#: The passes that lower an operation of linalg to a kernel. A block has up to 256 threads, which an
#: AMD GPU accepts by default.
KERNELS = (
    "func.func(convert-linalg-to-parallel-loops,"
    "scf-parallel-loop-tiling{parallel-loop-tile-sizes=8,8,4 no-min-max-bounds=true},"
    "gpu-map-parallel-loops,convert-parallel-loops-to-gpu),"
    "lower-affine,canonicalize,gpu-kernel-outlining"
)

INPUT_SEED = 1  # the weights have the seeds after it


@dataclass(frozen=True)
class Variant:
    """One combination of memory management and synchronisation.

    If ``chained``, the operations of a forward pass form one asynchronous chain, and the program
    waits at the end of the chain. Otherwise the program waits after each operation.
    """

    name: str
    chained: bool = True

    @property
    def passes(self) -> str:
        """Returns the MLIR passes that turn the program's operations into kernels. The passes that
        lower every program run after these passes."""
        return KERNELS + (",func.func(gpu-async-region)" if self.chained else "")


CHAIN = Variant("chain")  # weights resident, one asynchronous chain
WAITS = Variant("waits", chained=False)  # weights resident, a wait after each operation
COPIED = Variant("copied")  # everything allocated, copied in and out, and freed each time
REGISTERED = Variant("registered")  # host memory registered, then copied, each time
# No chained form exists: MLIR cannot lower an allocation that is both shared and asynchronous.
SHARED = Variant("shared", chained=False)  # host_shared, a wait after each operation
VARIANTS = (CHAIN, WAITS, COPIED, REGISTERED, SHARED)


def source(model: Model, variant: Variant) -> str:
    """The program."""
    kind = _Decoder if model.tokens else _Program
    return kind(model, variant).text()


def variants(model: Model) -> tuple[Variant, ...]:
    """Returns the variants that a model has. A model that generates tokens allocates and frees the
    buffers of each token in both of its variants."""
    return (CHAIN, WAITS) if model.tokens else VARIANTS


def weights(model: Model, graph: Graph) -> list[list[Weight]]:
    """Returns the weights of each repetition."""
    if model.repeated == 1:
        return [graph.weights]
    return [
        [Weight(_renamed(w.buffer, f"r{number}_"), w.scale) for w in graph.weights]
        for number in range(model.repeated)
    ]


def _renamed(buffer: Buffer, prefix: str) -> Buffer:
    return Buffer(prefix + buffer.name, buffer.shape)


def _on_host(buffer: Buffer) -> Buffer:
    return _renamed(buffer, "host_")


class _Program:
    def __init__(self, model: Model, variant: Variant) -> None:
        self._model, self._variant = model, variant
        self._graph = graph = model.graph()
        self._weights = weights(model, graph)
        self._all_weights = [weight for each in self._weights for weight in each]
        between = [_renamed(graph.output, "even_"), _renamed(graph.output, "odd_")]
        self._between = between if model.repeated > 1 else []
        self._lines: list[str] = []
        self._names = 0
        self._prompts: list[Buffer] = []  # of a model that generates tokens
        self._before: list[str] = []  # functions that `forward` calls

    # ---- buffers ----

    @property
    def _buffers(self) -> list[Buffer]:
        """Returns all buffers except the weights."""
        graph = self._graph
        return [graph.input, *graph.temporaries, *self._between, graph.output]

    @property
    def _kept(self) -> list[Buffer]:
        """Returns the buffers that main allocates by gpu.alloc."""
        weights = [weight.buffer for weight in self._all_weights]
        if self._variant is COPIED:
            return []
        return weights if self._variant is SHARED else [*weights, *self._buffers]

    @property
    def _each_time(self) -> list[Buffer]:
        """Returns the buffers that each forward pass allocates by gpu.alloc."""
        weights = [weight.buffer for weight in self._all_weights]
        kept = self._kept
        return [buffer for buffer in (*weights, *self._buffers) if buffer not in kept]

    @property
    def _host_weights(self) -> list[Buffer]:
        if self._variant is SHARED:
            return []
        return [_on_host(weight.buffer) for weight in self._all_weights]

    @property
    def _host(self) -> list[Buffer]:
        """Returns the buffers that main allocates by memref.alloc, in host memory."""
        ends = (self._graph.input, self._graph.output)
        return [*self._host_weights, *map(_on_host, ends)]

    # ---- text ----

    def text(self) -> str:
        parts = [
            "func.func private @next_round(memref<*xf32>) -> index "
            "attributes {llvm.emit_c_interface}",
            "func.func private @fill(memref<*xf32>, i64, f32) attributes {llvm.emit_c_interface}",
        ]
        if self._model.repeated > 1:
            self._say(*self._graph.lines)
            parts.append(self._function("repeat", self._repeat_arguments(), private=True))
        self._forward()
        parts += self._before
        parts.append(self._function("forward", [*self._host, *self._kept]))
        self._main()
        parts.append(self._function("main", []))
        return "\n\n".join(parts) + "\n"

    def _say(self, *lines: str) -> None:
        self._lines += lines

    def _name(self) -> str:
        self._names += 1
        return f"%n{self._names}"

    def _function(
        self,
        name: str,
        arguments: Sequence[Buffer],
        private: bool = False,
        more: Sequence[str] = (),
        results: Sequence[Buffer] = (),
    ) -> str:
        """Returns a function that contains all pending lines, and clears these lines. `more` are
        arguments that are no buffers."""
        listed = ", ".join([*(f"{buffer}: {buffer.type}" for buffer in arguments), *more])
        lines, self._lines = self._lines, []
        visible = "private " if private else ""
        types = ", ".join(buffer.type for buffer in results)
        of_results = f" -> ({types})" if results else ""
        returned = f"return {', '.join(map(str, results))} : {types}" if results else "return"
        # The function is never inlined, so that a launch's data leaves the stack when the function
        # returns.
        head = f"func.func {visible}@{name}({listed}){of_results} attributes {{llvm.noinline}} {{"
        return "\n".join([head, *(f"  {line}" for line in lines), f"  {returned}", "}"])

    def _call(self, name: str, arguments: Sequence[Buffer]) -> str:
        names = ", ".join(map(str, arguments))
        return f"func.call @{name}({names}) : ({', '.join(b.type for b in arguments)}) -> ()"

    def _unranked(self, buffer: Buffer) -> str:
        name = self._name()
        self._say(f"{name} = memref.cast {buffer} : {buffer.type} to memref<*xf32>")
        return name

    # ---- memory ----

    def _device_operation(self, operation: str, result: str = "") -> None:
        """Adds an operation that the device executes. Also adds waits if the variant is not
        chained. In a chained variant the pass gpu-async-region adds the waits."""
        head, _, tail = operation.partition(" ")
        results = f"{result} = " if result else ""
        if self._variant.chained:
            self._say(f"{results}{head} {tail}")
            return
        begin, end = self._name(), self._name()
        self._say(f"{begin} = gpu.wait async")
        results = f"{result}, {end} = " if result else f"{end} = "
        self._say(f"{results}{head} async [{begin}] {tail}", f"gpu.wait [{end}]")

    def _allocate(self, buffers: Iterable[Buffer], length: str = "") -> None:
        """Allocates buffers; `length` is the value of the dimension LENGTH."""
        for buffer in buffers:
            sizes = length if LENGTH in buffer.shape else ""
            if self._variant is SHARED:
                self._say(f"{buffer} = gpu.alloc host_shared () : {buffer.type}")
            else:
                self._device_operation(f"gpu.alloc ({sizes}) : {buffer.type}", str(buffer))

    def _free(self, buffers: Iterable[Buffer]) -> None:
        for buffer in buffers:
            self._device_operation(f"gpu.dealloc {buffer} : {buffer.type}")

    def _copy(self, to: Buffer, origin: Buffer) -> None:
        if self._variant is SHARED:
            self._say(f"memref.copy {origin}, {to} : {origin.type} to {to.type}")
        else:
            self._device_operation(f"gpu.memcpy {to}, {origin} : {to.type}, {origin.type}")

    def _copy_weights(self) -> None:
        for weight in self._all_weights:
            self._copy(weight.buffer, _on_host(weight.buffer))

    # ---- a forward pass ----

    def _forward(self) -> None:
        graph, variant = self._graph, self._variant
        registered = self._host if variant is REGISTERED else []
        handles = [self._unranked(buffer) for buffer in registered]
        self._say(*(f"gpu.host_register {handle} : memref<*xf32>" for handle in handles))
        self._allocate(self._each_time)
        if variant in (COPIED, REGISTERED):
            self._copy_weights()
        self._copy(graph.input, _on_host(graph.input))
        self._compute()
        self._copy(_on_host(graph.output), graph.output)
        self._free(self._each_time)
        self._say(*(f"gpu.host_unregister {handle} : memref<*xf32>" for handle in handles))

    def _repeat_arguments(self) -> list[Buffer]:
        graph = self._graph
        own = [weight.buffer for weight in graph.weights]
        return [graph.input, *own, *graph.temporaries, graph.output]

    def _compute(self) -> None:
        graph = self._graph
        if self._model.repeated == 1:
            self._say(*graph.lines)
            return
        origin = graph.input
        for number, each in enumerate(self._weights):
            last = number == self._model.repeated - 1
            to = graph.output if last else self._between[number % 2]
            own = [weight.buffer for weight in each]
            self._say(self._call("repeat", [origin, *own, *graph.temporaries, to]))
            origin = to

    # ---- main ----

    def _main(self) -> None:
        self._say(*(f"{buffer} = memref.alloc() : {buffer.type}" for buffer in self._host))
        self._allocate(self._kept)
        self._fill(_on_host(self._graph.input), INPUT_SEED, 1)
        for number, weight in enumerate(self._all_weights):
            shared = self._variant is SHARED
            filled = weight.buffer if shared else _on_host(weight.buffer)
            self._fill(filled, INPUT_SEED + 1 + number, weight.scale)
        for number, prompt in enumerate(self._prompts, 1 + len(self._all_weights)):
            self._fill(_on_host(prompt), INPUT_SEED + number, 1)
        if self._variant in (CHAIN, WAITS):
            self._copy_weights()
        out = self._unranked(_on_host(self._graph.output))
        self._say(
            "%zero = arith.constant 0 : index",
            "%one = arith.constant 1 : index",
            "scf.while : () -> () {",
            f"  %calls = func.call @next_round({out}) : (memref<*xf32>) -> index",
            "  scf.for %i = %zero to %calls step %one {",
            f"    {self._call('forward', [*self._host, *self._kept])}",
            "  }",
            "  %more = arith.cmpi ne, %calls, %zero : index",
            "  scf.condition(%more)",
            "} do {",
            "  scf.yield",
            "}",
        )
        self._free(self._kept)
        self._say(*(f"memref.dealloc {buffer} : {buffer.type}" for buffer in self._host))

    def _fill(self, buffer: Buffer, seed: int, scale: float) -> None:
        number, width = self._name(), self._name()
        self._say(
            f"{number} = arith.constant {seed} : i64", f"{width} = arith.constant {scale:e} : f32"
        )
        handle = self._unranked(buffer)
        self._say(f"func.call @fill({handle}, {number}, {width}) : (memref<*xf32>, i64, f32) -> ()")


class _Decoder(_Program):
    """A program that generates tokens, and allocates the buffers of each token in a pass of its
    own."""

    def __init__(self, model: Model, variant: Variant) -> None:
        super().__init__(model, variant)
        self._prompts = [
            Buffer(cache.name, (model.prompt, *cache.shape[1:])) for cache in self._graph.caches
        ]

    @property
    def _buffers(self) -> list[Buffer]:
        return []

    @property
    def _host(self) -> list[Buffer]:
        return [*super()._host, *map(_on_host, self._prompts)]

    def _forward(self) -> None:
        graph = self._graph
        own = [weight.buffer for weight in self._all_weights]
        carried, made = [graph.input, *graph.caches], [graph.output, *graph.grown]
        self._allocate([*graph.temporaries, *made], "%grown")
        body, self._lines = self._lines, []
        self._say("%one = arith.constant 1 : index", "%grown = arith.addi %length, %one : index")
        self._say(*body, *graph.lines)
        self._free([*carried, *graph.temporaries])
        token = self._function("token", [*carried, *own], True, ["%length: index"], made)
        types = ", ".join(buffer.type for buffer in carried)
        arguments = ", ".join([*(f"%now_{b.name}" for b in carried), *map(str, own), "%length"])
        kinds = ", ".join([types, *(buffer.type for buffer in own), "index"])
        named = ", ".join(f"%now_{buffer.name} = {buffer}" for buffer in carried)
        count = len(carried)
        passed = ", ".join(f"%next#{number}" for number in range(count))
        self._say(
            "%one = arith.constant 1 : index",
            f"%prompt = arith.constant {self._model.prompt} : index",
            f"%end = arith.constant {self._model.prompt + self._model.tokens} : index",
        )
        self._allocate(carried, "%prompt")
        for buffer, host in zip(carried, (graph.input, *self._prompts), strict=True):
            self._copy(buffer, _on_host(host))
        self._say(
            f"%last:{count} = scf.for %length = %prompt to %end step %one",
            f"    iter_args({named}) -> ({types}) {{",
            f"  %next:{count} = func.call @token({arguments}) : ({kinds}) -> ({types})",
            f"  scf.yield {passed} : {types}",
            "}",
        )
        last = [Buffer(f"last#{number}", buffer.shape) for number, buffer in enumerate(carried)]
        self._copy(_on_host(graph.output), last[0])
        self._free(last)
        self._before.append(token)
