"""Runs kernel programs as whole programs: host code allocates, copies, launches and prints.

The launch's inputs become globals of the host code, so the executable needs no files.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bench.setup.printing import print_library
from mgpu_rt._lowering import lower, object_files
from softgpu.tests.kernels.images import TEXTS
from softgpu.tests.kernels.program import Launch, Module
from tests.support.folders import write_whole
from tests.support.programs import STOCK

_KINDS = {
    "int8": "i8", "uint8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "float16": "f16", "float32": "f32", "float64": "f64",
}  # fmt: skip


def build(module: Module, name: str, launch: Launch, llvm: int, directory: Path) -> Path:
    """Builds the executable, linked with stock; raises the exceptions that the lowering raises."""
    source = TEXTS / f"{module.name}-{name}-host.mlir"
    write_whole(source, host_program(module, name, launch))
    helper = print_library()
    return object_files.link(
        [lower.lower(source, llvm=llvm)],
        libraries=[STOCK, helper],
        rpath=[STOCK.parent, helper.parent],
        out=directory / f"{name}-{llvm}",
    )


def host_program(module: Module, name: str, launch: Launch) -> str:
    """Returns a main that launches the kernel once and prints the bits of every array that the
    kernel should change."""
    program = module.programs[name]
    arrays = [
        (number, value)
        for number, value in enumerate(launch.arguments)
        if isinstance(value, np.ndarray)
    ]
    head, body = [], ["%t0 = gpu.wait async"]
    operands: list[str] = []
    token = "%t0"
    for number, value in enumerate(launch.arguments):
        if isinstance(value, np.ndarray):
            head.append(_global(number, value))
            body += _upload(number, value, token)
            token = f"%sent{number}"
            operands.append(f"%kernel{number} : {_open(value)}")
        else:
            lines, operand = _scalar(number, value)
            body += lines
            operands.append(operand)
    body += _launch(program.kernel, launch, token, operands)
    token = "%launched"
    for number, value in arrays:
        body.append(
            f"%back{number} = gpu.memcpy async [{token}] %host{number}, %device{number} "
            f": {_closed(value)}, {_closed(value)}"
        )
        body.append(f"%free{number} = gpu.dealloc async [%back{number}] %device{number} "
                    f": {_closed(value)}")  # fmt: skip
        token = f"%free{number}"
    body.append(f"gpu.wait [{token}]")
    for number in sorted(launch.expected):
        body += _print(number, launch.arguments[number])
    return "\n".join([
        "module attributes {gpu.container_module} {",
        f"gpu.module @kernels {{\n{module.prelude}\n{program.text}\n}}",
        "func.func private @printI64(i64)",
        "func.func private @printNewline()",
        *head,
        "func.func @main() {",
        *body,
        "return\n}\n}\n",
    ])  # fmt: skip


def printed(launch: Launch, output: str) -> dict[int, np.ndarray]:
    """Returns the arrays that a run printed; the keys are the numbers of the launch's arguments."""
    words = np.array([int(word) for word in output.split()], np.int64)
    results = {}
    for number in sorted(launch.expected):
        like = launch.arguments[number]
        assert isinstance(like, np.ndarray)
        own, words = words[: like.size], words[like.size :]
        whole = own.astype(f"i{like.itemsize}")
        results[number] = whole.view(like.dtype).reshape(like.shape)
    assert not len(words)
    return results


def _kind(value: np.ndarray) -> str:
    return _KINDS[value.dtype.name]


def _closed(value: np.ndarray) -> str:
    return f"memref<{'x'.join(map(str, value.shape))}x{_kind(value)}>"


def _open(value: np.ndarray) -> str:
    return f"memref<{'?x' * value.ndim}{_kind(value)}>"


def _global(number: int, value: np.ndarray) -> str:
    raw = np.ascontiguousarray(value).tobytes().hex().upper()
    return f'memref.global @data{number} : {_closed(value)} = dense<"0x{raw}">'


def _upload(number: int, value: np.ndarray, token: str) -> list[str]:
    closed = _closed(value)
    return [
        f"%host{number} = memref.get_global @data{number} : {closed}",
        f"%device{number}, %had{number} = gpu.alloc async [{token}] () : {closed}",
        f"%sent{number} = gpu.memcpy async [%had{number}] %device{number}, %host{number} "
        f": {closed}, {closed}",
        f"%kernel{number} = memref.cast %device{number} : {closed} to {_open(value)}",
    ]


def _scalar(number: int, value: np.generic) -> tuple[list[str], str]:
    kind = {"int64": "index", "int32": "i32"}[value.dtype.name]
    return [f"%s{number} = arith.constant {value} : {kind}"], f"%s{number} : {kind}"


def _launch(kernel: str, launch: Launch, token: str, operands: list[str]) -> list[str]:
    sizes = [*(*launch.grid, 1, 1)[:3], *(*launch.block, 1, 1)[:3]]
    lines = [f"%size{n} = arith.constant {size} : index" for n, size in enumerate(sizes)]
    lines.append(f"%shared = arith.constant {launch.shared} : i32")
    shared = "dynamic_shared_memory_size %shared" if launch.shared else ""
    return [
        *lines,
        f"%launched = gpu.launch_func async [{token}] @kernels::@{kernel} "
        "blocks in (%size0, %size1, %size2) threads in (%size3, %size4, %size5) "
        f"{shared} args({', '.join(operands)})",
    ]


def _print(number: int, value: np.ndarray | np.generic) -> list[str]:
    assert isinstance(value, np.ndarray)
    bits, kind = 8 * value.itemsize, _kind(value)
    lines = [f"%zero{number} = arith.constant 0 : index"]
    lines.append(f"%one{number} = arith.constant 1 : index")
    indices = []
    for axis, size in enumerate(value.shape):
        name = f"{number}_{axis}"
        lines.append(f"%end{name} = arith.constant {size} : index")
        lines.append(f"scf.for %at{name} = %zero{number} to %end{name} step %one{number} {{")
        indices.append(f"%at{name}")
    lines.append(f"%v{number} = memref.load %host{number}[{', '.join(indices)}] : {_closed(value)}")
    whole = f"%v{number}"
    if kind[0] == "f":
        whole = f"%b{number}"
        lines.append(f"{whole} = arith.bitcast %v{number} : {kind} to i{bits}")
    wide = whole
    if bits < 64:
        wide = f"%w{number}"
        lines.append(f"{wide} = arith.extsi {whole} : i{bits} to i64")
    lines += [f"func.call @printI64({wide}) : (i64) -> ()", "func.call @printNewline() : () -> ()"]
    return lines + ["}"] * value.ndim
