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
    from typing import Any

    from mgpu_rt._arrays.arrays import DeviceArray as DeviceArray
    from mgpu_rt._arrays.arrays import empty as empty
    from mgpu_rt._arrays.arrays import to_device as to_device
    from mgpu_rt._arrays.given import In as In
    from mgpu_rt._errors import HipError as HipError
    from mgpu_rt._functions.arguments import InOut as InOut
    from mgpu_rt._functions.library import Library as Library
    from mgpu_rt._graphs import Graph as Graph
    from mgpu_rt._graphs import graph as graph
    from mgpu_rt._launch.arguments import MemRef as MemRef
    from mgpu_rt._launch.modules import Kernel as Kernel
    from mgpu_rt._launch.modules import Module as Module
    from mgpu_rt._library import empty_cache as empty_cache
    from mgpu_rt._library import library_path as library_path
    from mgpu_rt._library import load as load
    from mgpu_rt._library import stats as stats
    from mgpu_rt._lowering.shared_library import lower as lower
    from mgpu_rt._streams import Stream as Stream
    from mgpu_rt._streams import use_stream as use_stream
    from mgpu_rt.runtime._host import intercept as intercept

__version__ = "0.1.0"

#: The module that defines each name, imported at the name's first use.
_ELSEWHERE = {
    "DeviceArray": "_arrays.arrays",
    "Graph": "_graphs",
    "HipError": "_errors",
    "In": "_arrays.given",
    "InOut": "_functions.arguments",
    "Kernel": "_launch.modules",
    "Library": "_functions.library",
    "MemRef": "_launch.arguments",
    "Module": "_launch.modules",
    "Stream": "_streams",
    "empty": "_arrays.arrays",
    "empty_cache": "_library",
    "graph": "_graphs",
    "intercept": "runtime._host",
    "library_path": "_library",
    "load": "_library",
    "lower": "_lowering.shared_library",
    "stats": "_library",
    "to_device": "_arrays.arrays",
    "use_stream": "_streams",
}
__all__ = ["__version__", *_ELSEWHERE]

#: Modules that this package imports at the first use of their name, as in `mgpu_rt.hooks.Trace()`.
_MODULES = ("hooks", "runtime")


def __getattr__(name: str) -> "Any":
    import importlib

    if name in _MODULES:
        return importlib.import_module(f"mgpu_rt.{name}")
    if name not in _ELSEWHERE:
        raise AttributeError(f"module 'mgpu_rt' has no attribute '{name}'")
    found = getattr(importlib.import_module(f"mgpu_rt.{_ELSEWHERE[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
