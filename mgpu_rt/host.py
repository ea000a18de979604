"""What the C library calls when a table of its has no answer.

The library imports this module at its first miss, in the interpreter that the process has or in one
of its own, and calls `start`. From then on the callbacks below are entries of `struct mgpu_policy`
(csrc/runtime/policy.h), 0.2 µs each. A hit never comes here.
"""

from __future__ import annotations

import atexit
import sys

from mgpu_rt._host import ffi, lib
from mgpu_rt.hip import Hip
from mgpu_rt.memory import BlockCache
from mgpu_rt.modules import ModuleCache
from mgpu_rt.streams import StreamPool

UNKNOWN = 999  # hipErrorUnknown: the callback itself has failed


def _pointer(handle: int):
    return ffi.cast("void *", handle)


def _address(pointer) -> int:
    return int(ffi.cast("uintptr_t", pointer))


class Runtime:
    """The C library's side (struct mgpu_host), with Python's types."""

    def __init__(self, host) -> None:
        self._host = host
        self.hip_path: str = ffi.string(host.hip_path).decode(errors="surrogateescape")
        self.module_limit: int = host.module_limit
        self.stream_limit: int = host.stream_limit

    def module_loads(self, handle: int) -> int:
        return self._host.module_loads(_pointer(handle))

    def module_references(self, handle: int) -> int:
        return self._host.module_references(_pointer(handle))

    def module_retire(self, handle: int) -> bool:
        return bool(self._host.module_retire(_pointer(handle)))

    def memory_uses(self, address: int) -> int:
        return self._host.memory_uses(_pointer(address))

    def memory_retire(self, address: int) -> bool:
        return bool(self._host.memory_retire(_pointer(address)))

    @property
    def counts(self) -> bool:
        """Whether there are statistics."""
        return self._host.count != ffi.NULL

    def count(self, function: str, nanoseconds: int) -> None:
        self._host.count(function.encode(), nanoseconds)

    def say(self, text: str) -> None:
        self._host.say(text.encode())

    def detach(self) -> None:
        self._host.detach()


class Policy:
    """The caches of this process."""

    def __init__(self, runtime: Runtime, owned: bool) -> None:
        self.runtime = runtime
        self.owned = owned
        self.hip = Hip(runtime.hip_path, runtime.count if runtime.counts else None)
        self.modules = ModuleCache(
            runtime,
            self.hip.module_load,
            lambda handle: self.hip.module_unload(_pointer(handle)),
            runtime.module_limit,
        )
        self.streams = StreamPool(
            self.hip.stream_create, lambda handle: self.hip.stream_destroy(_pointer(handle))
        )
        self.memory = BlockCache(
            runtime, self.hip.malloc, lambda address: self.hip.free(_pointer(address))
        )


policy: Policy | None = None


def _failed(kind, value, _traceback) -> None:
    """A callback raised: one line, and HIP's unknown error to the caller."""
    print(f"mgpu_rt: the policy failed: {kind.__name__}: {value}", file=sys.stderr)


@ffi.def_extern(error=UNKNOWN, onerror=_failed)
def mgpu_module_load(image, size, device, module):
    error = policy.modules.load(image, module)
    if error == 0:
        policy.modules.add(_address(module[0]), size, device)
    return error


@ffi.def_extern(error=UNKNOWN, onerror=_failed)
def mgpu_module_unload(module):
    return policy.modules.unload(_address(module))


@ffi.def_extern(error=UNKNOWN, onerror=_failed)
def mgpu_function_get(module, name, function):
    return policy.hip.function_get(module, name, function)


@ffi.def_extern(error=UNKNOWN, onerror=_failed)
def mgpu_stream_create(device, stream):
    error = policy.streams.create(stream)
    if error == 0:
        policy.streams.add(_address(stream[0]), device)
    return error


@ffi.def_extern(error=UNKNOWN, onerror=_failed)
def mgpu_stream_destroy(stream):
    return policy.streams.destroy(_address(stream))


@ffi.def_extern(error=UNKNOWN, onerror=_failed)
def mgpu_memory_alloc(device, size, ptr):
    error = policy.memory.alloc(size, ptr)
    if error == 0:
        policy.memory.add(_address(ptr[0]), size, device)
    return error


@ffi.def_extern(error=UNKNOWN, onerror=_failed)
def mgpu_memory_free(ptr):
    return policy.memory.free(_address(ptr))


@ffi.def_extern(onerror=_failed)
def mgpu_memory_trim(device, excess):
    policy.memory.trim(device, excess)


@ffi.def_extern(onerror=_failed)
def mgpu_shutdown():
    """The process ends.

    An interpreter of our own is not finalised (other threads may be in it), but what its finalising
    would do for the program is done: exit functions, and flushing.
    """
    if policy.owned:
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()


def start(host: int, attach: int, owned: int) -> None:
    """Called once by the C library.

    `host` is the address of its struct mgpu_host, `attach` of the function that takes the table of
    callbacks; `owned` says that it has started this interpreter.
    """
    global policy
    runtime = Runtime(ffi.cast("struct mgpu_host *", host))
    policy = Policy(runtime, bool(owned))
    runtime.say(
        f"module cache in Python {sys.version.split()[0]}, HIP through {policy.hip.binding}"
    )
    if not owned:
        # The program's interpreter: once it finalises, no callback may enter it any more.
        atexit.register(runtime.detach)
    lib.mgpu_attach(attach, lib.mgpu_policy_table())
