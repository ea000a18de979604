"""A drop-in libmlir_rocm_runtime.so whose caches Python manages.

    import mgpu_rt

    mgpu_rt.library_path()             # what to link, preload or give to mlir-runner
    runtime = mgpu_rt.load()           # the library in this process
    runtime.stats()["cache"]           # hits, misses and evictions so far
    mgpu_rt.memory_summary()           # device memory: allocated, reserved, hits
    mgpu_rt.empty_cache()              # give back to the driver what nobody holds

The manager (mgpu_rt.policy.manager) runs beside each program that lives long enough, so importing
this imports nothing.
"""

TYPE_CHECKING = False  # typing's own costs 3 ms
if TYPE_CHECKING:
    from mgpu_rt.library import Library

__all__ = ["__version__", "empty_cache", "library_path", "load", "memory_summary"]

__version__ = "0.1.0"


def library_path() -> str:
    """The path of libmlir_rocm_runtime.so, which lies in mgpu_rt/lib or a checkout's build/lib.

    Raises FileNotFoundError, which says what to do, if it was not built.
    """
    from mgpu_rt import library

    return library.path()


def load() -> "Library":
    """The library, loaded into this process once; every call returns the same object.

    Raises FileNotFoundError as `library_path` does.
    """
    from mgpu_rt import library

    return library.load()


def empty_cache() -> int:
    """Gives back to the driver what is cached and not in use: device memory, modules, streams.

    Returns the number of objects given back. Loads the library if need be, as `load` does.
    """
    return load().empty_cache()


def memory_summary() -> str:
    """A table of the device memory that this process holds. Loads the library as `load` does."""
    return load().memory_summary()
