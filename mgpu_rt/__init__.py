"""A drop-in libmlir_rocm_runtime.so whose caches Python manages.

    import mgpu_rt

    mgpu_rt.library_path()             # what to link, preload or give to mlir-runner
    mgpu_rt.Library("model.so")        # its lowered functions, to be called on arrays
    mgpu_rt.lower("model.mlir")        # such a library, of a program in MLIR
    mgpu_rt.to_device(array)           # an array in device memory, for PyTorch and CuPy too
    mgpu_rt.Module("program.o")        # its kernels, to be launched from Python
    mgpu_rt.Stream()                   # a stream of the library
    mgpu_rt.use_stream(stream)         # lowered functions run on a stream of PyTorch's or CuPy's
    with mgpu_rt.graph() as graph:     # what is called becomes a graph; graph.replay()
    with mgpu_rt.intercept(MyHook()):  # calls are looked at, or answered, in Python
    mgpu_rt.stats()["cache"]           # misses and evictions so far; hits, if asked for
    mgpu_rt.empty_cache()              # give back to the driver what nobody holds
    mgpu_rt.load()                     # the library in this process, with all its functions

The manager (mgpu_rt.manager._manager) is a separate process, which starts when a program's caches
reach a limit. Importing this package imports no other module.
"""

TYPE_CHECKING = False  # typing's own costs 3 ms
if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path
    from typing import Any

    from mgpu_rt._arrays.arrays import DeviceArray
    from mgpu_rt._errors import HipError
    from mgpu_rt._functions.library import Library
    from mgpu_rt._graphs import Graph
    from mgpu_rt._launch.arguments import MemRef
    from mgpu_rt._launch.arrays import In
    from mgpu_rt._launch.modules import Kernel, Module
    from mgpu_rt._launch.streams import Stream
    from mgpu_rt._library import RuntimeLibrary
    from mgpu_rt.runtime._base import Runtime

__all__ = [
    "DeviceArray",
    "Graph",
    "HipError",
    "In",
    "Kernel",
    "Library",
    "MemRef",
    "Module",
    "Stream",
    "__version__",
    "empty",
    "empty_cache",
    "graph",
    "intercept",
    "library_path",
    "load",
    "lower",
    "stats",
    "to_device",
    "use_stream",
]

__version__ = "0.1.0"


def library_path() -> str:
    """Returns the path of libmlir_rocm_runtime.so, in mgpu_rt/lib or in a checkout's build/lib.

    Raises FileNotFoundError if the library was not built; the message says how to build it.
    """
    from mgpu_rt import _library

    return _library.path()


def load() -> "RuntimeLibrary":
    """Loads the library into this process at the first call; each later call returns the object of
    the first call.

    Raises FileNotFoundError as `library_path` does.
    """
    from mgpu_rt import _library

    return _library.load()


def lower(
    source: "str | bytes | os.PathLike[str]",
    *,
    chip: "str | None" = None,
    llvm: int = 22,
    image: "str | None" = None,
    link: "Sequence[str]" = (),
    graph: "Sequence[str]" = (),
) -> "Path":
    """Lowers an MLIR program, given as a file or as text, to a shared library, and returns the
    library's path.

        library = mgpu_rt.Library(mgpu_rt.lower("model.mlir", chip="gfx942"))

    The options are those of `mgpu-rt lower --emit library`. Also links the LLVM libraries that the
    program calls. Caches the returned file under a key of the program's text, the options and the
    tools, so lowering the program again costs milliseconds. Do not change the returned file.

    Raises RuntimeError if a tool is missing or refuses the program, ValueError or OSError if
    `source` is no program.
    """
    from mgpu_rt._lowering import shared_library

    return shared_library.lower(source, chip=chip, llvm=llvm, image=image, link=link, graph=graph)


def empty(shape: "int | Sequence[int]", dtype: "Any" = "float32") -> "DeviceArray":
    """Returns an array in device memory, whose elements are undefined. `dtype` is a NumPy or
    PyTorch type, or the type's name.

    Loads the library if necessary, as `load` does. Raises HipError if device memory is exhausted,
    TypeError or ValueError for an invalid type or shape.
    """
    from mgpu_rt._arrays import arrays

    return arrays.empty(shape, dtype)


def to_device(array: "Any") -> "DeviceArray":
    """Returns a copy of an array in device memory. PyTorch, CuPy, kernels and lowered functions use
    the returned array without a further copy.

    Loads the library if necessary, as `load` does. Raises HipError, TypeError or ValueError as
    `empty` does.
    """
    from mgpu_rt._arrays import arrays

    return arrays.to_device(array)


def empty_cache() -> int:
    """Releases all cached objects that are not in use: device memory, modules, streams.

    Returns the number of released objects. Loads the library if necessary, as `load` does.
    """
    return load().empty_cache()


def stats() -> "dict[str, Any]":
    """Returns the statistics so far, as mgpu_rt.h describes them. Loads the library if necessary,
    as `load` does."""
    return load().stats()


def use_stream(stream: "Any") -> "AbstractContextManager[None]":
    """Makes the library use the caller's stream, on the calling thread, during a `with` statement.

        with mgpu_rt.use_stream(torch.cuda.current_stream()):
            lowered_function(...)

    On this thread a lowered function that creates a stream gets the caller's stream, and kernels of
    `Module` run on the caller's stream by default. `stream` is a PyTorch, CuPy or hip-python
    stream, any object with `__cuda_stream__`, or a hipStream_t as int, ctypes.c_void_p or cffi
    pointer. None stands for the library's own streams. At the end of the `with` statement the
    previous stream is current again. Do not destroy the stream before the `with` statement ends.

    Loads the library if necessary, as `load` does. Raises TypeError or ValueError if `stream` is no
    stream.
    """
    from mgpu_rt._launch import streams

    return streams.use_stream(stream)


def graph() -> "AbstractContextManager[Graph]":
    """Builds the GPU work of a `with` statement into a graph, which one call replays.

        with mgpu_rt.graph() as graph:
            lowered_function(...)      # nothing runs yet
        graph.replay()

    The calling thread's calls become nodes. Each node follows the node before, even if the calls
    use several streams. The graph omits the thread's waits. A replay uses the same addresses and
    values as the calls that built the graph. Use a graph only for host code that just submits
    work; docs/graphs.md lists the conditions.

    Raises HipError if the library cannot build the graph, and prints the reason on stderr. After
    this error no call within the `with` statement has run, so you can call the function without a
    graph.
    """
    from mgpu_rt import _graphs

    return _graphs.graph()


def intercept(runtime: "Runtime") -> "AbstractContextManager[Runtime]":
    """Routes this process's mgpu* calls through your runtime during a `with` statement.

        with mgpu_rt.intercept(mgpu_rt.hooks.Trace()):
            lowered_function(...)

    On all threads the library calls the methods that the runtime's class overrides. Load modules
    and libraries within the `with` statement: a runtime knows a kernel's arguments only if the
    runtime saw the module's load. Within the `with` statement the library builds no graph; the
    replay of an earlier graph bypasses the runtime. At the end of the `with` statement the previous
    runtime is current again. If a method raises an exception other than HipError, the library
    itself handles all later calls. The end of the `with` statement then raises the first such
    exception. Raises TypeError if `runtime` is not a Runtime.
    """
    from mgpu_rt.runtime import _host

    return _host.intercept(runtime)


#: The module that defines each name, imported at the name's first use.
_ELSEWHERE = {
    "DeviceArray": "mgpu_rt._arrays.arrays",
    "Graph": "mgpu_rt._graphs",
    "HipError": "mgpu_rt._errors",
    "In": "mgpu_rt._launch.arrays",
    "Kernel": "mgpu_rt._launch.modules",
    "Library": "mgpu_rt._functions.library",
    "MemRef": "mgpu_rt._launch.arguments",
    "Module": "mgpu_rt._launch.modules",
    "Stream": "mgpu_rt._launch.streams",
}


#: Modules that this package imports at the first use of their name, as in `mgpu_rt.hooks.Trace()`.
_MODULES = ("hooks", "runtime")


def __getattr__(name: str) -> "Any":
    import importlib

    if name in _MODULES:
        return importlib.import_module(f"mgpu_rt.{name}")
    if name not in _ELSEWHERE:
        raise AttributeError(f"module 'mgpu_rt' has no attribute '{name}'")
    found = getattr(importlib.import_module(_ELSEWHERE[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
