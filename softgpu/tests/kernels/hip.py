"""The child process of host.py: launches the requested kernels on AMD's HIP through ctypes.

Reads pickled requests from stdin. Each answer contains the arrays after the kernel has run.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import struct
import sys
from pathlib import Path

import numpy as np

from softgpu.tests.kernels.host import Answer, Request
from softgpu.tests.kernels.program import Launch

HOST_TO_DEVICE, DEVICE_TO_HOST = 1, 2

# The C++ function hipExtModuleLaunchKernel, whose grid is counted in work-items.
EXT_LAUNCH = (
    "_Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjm"
    "P12ihipStream_tPPvS4_P11ihipEvent_tS6_j"
)


class Hip:
    """HIP's functions, each of which raises an exception on an error, and the loaded modules."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL(os.environ["MGPU_RT_HIP"])
        self.library.hipGetErrorName.restype = ctypes.c_char_p
        self.modules: dict[Path, ctypes.c_void_p] = {}

    def call(self, name: str, *arguments: object) -> None:
        code = getattr(self.library, name)(*arguments)
        if code:
            raise RuntimeError(f"{name}: {self.library.hipGetErrorName(code).decode()}")

    def module(self, image: Path) -> ctypes.c_void_p:
        if image not in self.modules:
            module = ctypes.c_void_p()
            self.call("hipModuleLoadData", ctypes.byref(module), image.read_bytes())
            self.modules[image] = module
        return self.modules[image]

    def upload(self, data: np.ndarray) -> ctypes.c_void_p:
        address = ctypes.c_void_p()
        self.call("hipMalloc", ctypes.byref(address), ctypes.c_size_t(max(data.nbytes, 1)))
        self.write(address, data)
        return address

    def write(self, address: ctypes.c_void_p, data: np.ndarray) -> None:
        if data.nbytes:
            raw = np.ascontiguousarray(data)
            self.call("hipMemcpy", address, ctypes.c_void_p(raw.ctypes.data),
                      ctypes.c_size_t(raw.nbytes), HOST_TO_DEVICE)  # fmt: skip

    def read(self, address: ctypes.c_void_p, like: np.ndarray) -> np.ndarray:
        result = np.empty(like.shape, like.dtype)
        if result.nbytes:
            self.call("hipMemcpy", ctypes.c_void_p(result.ctypes.data), address,
                      ctypes.c_size_t(result.nbytes), DEVICE_TO_HOST)  # fmt: skip
        return result

    def symbol(self, module: ctypes.c_void_p, name: str) -> ctypes.c_void_p:
        address, size = ctypes.c_void_p(), ctypes.c_size_t()
        self.call("hipModuleGetGlobal", ctypes.byref(address), ctypes.byref(size), module,
                  name.encode())  # fmt: skip
        return address

    def start(self, function: ctypes.c_void_p, launch: Launch, arguments: bytes) -> None:
        """Launches whole workgroups; if the launch specifies a number of work-items, the last
        workgroup may be smaller."""
        block = _three(launch.block)
        buffer = ctypes.create_string_buffer(arguments, len(arguments))
        size = ctypes.c_size_t(len(arguments))
        # HIP_LAUNCH_PARAM_BUFFER_POINTER, _BUFFER_SIZE, _END.
        extra = (ctypes.c_void_p * 5)(
            1, ctypes.addressof(buffer), 2, ctypes.addressof(size), 3
        )  # fmt: skip
        shared = ctypes.c_uint(launch.shared)
        if launch.work_items is None:
            self.call("hipModuleLaunchKernel", function, *_three(launch.grid), *block, shared,
                      None, None, extra)  # fmt: skip
        else:
            self.call(EXT_LAUNCH, function, *_three(launch.work_items), *block,
                      ctypes.c_size_t(launch.shared), None, None, extra, None, None, 0)  # fmt: skip
        self.call("hipDeviceSynchronize")


def _three(sizes: tuple[int, ...]) -> list[ctypes.c_uint]:
    return [ctypes.c_uint(size) for size in (*sizes, 1, 1)[:3]]


def descriptor(address: int, array: np.ndarray) -> bytes:
    """Returns the fields of a row-major memref, in the form in which MLIR passes a memref to a
    kernel."""
    strides = [stride // array.itemsize for stride in np.empty(array.shape, array.dtype).strides]
    fields = [address, address, 0, *array.shape, *strides]
    return struct.pack(f"<{len(fields)}q", *fields)


def pack(arguments: list[tuple[int, bytes]]) -> bytes:
    """Packs arguments as C does: each argument begins at a multiple of the argument's alignment."""
    packed = b""
    for alignment, data in arguments:
        packed += b"\0" * (-len(packed) % alignment) + data
    return packed


def serve(hip: Hip, request: Request) -> Answer:
    launch = request.launch
    module, function = hip.module(request.image), ctypes.c_void_p()
    hip.call("hipModuleGetFunction", ctypes.byref(function), module, request.kernel.encode())
    symbols = {name: hip.symbol(module, name) for name in launch.symbols}
    for name, value in launch.symbols.items():
        hip.write(symbols[name], value)
    buffers: list[ctypes.c_void_p | None] = []
    packed: list[tuple[int, bytes]] = []
    for argument in launch.arguments:
        if isinstance(argument, np.ndarray):
            buffer = hip.upload(argument)
            buffers.append(buffer)
            packed.append((8, descriptor(buffer.value or 0, argument)))
        else:
            buffers.append(None)
            packed.append((argument.itemsize, argument.tobytes()))
    hip.start(function, launch, pack(packed))
    arrays = [
        None if buffer is None else hip.read(buffer, argument)
        for buffer, argument in zip(buffers, launch.arguments, strict=True)
    ]
    for buffer in buffers:
        if buffer is not None:
            hip.call("hipFree", buffer)
    return Answer(arrays, {n: hip.read(a, launch.symbols[n]) for n, a in symbols.items()})


def main() -> None:
    # Kernels and HIP may print to stdout, so answers use another descriptor.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    hip = Hip()
    while True:
        try:
            request = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            answer = serve(hip, request)
        except RuntimeError as problem:
            answer = Answer([], {}, str(problem))
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    main()
