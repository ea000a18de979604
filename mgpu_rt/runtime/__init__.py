"""Runtimes in Python, which handle a program's mgpu* calls.

    class Trace(mgpu_rt.runtime.Runtime):
        def launch_kernel(self, launch):
            print(launch)
            super().launch_kernel(launch)

Three ways install the runtime: `MGPU_RT_RUNTIME=module:Trace`, `mgpu-rt run --hook module:Trace
-- PROGRAM`, or `with mgpu_rt.intercept(Trace()):` in Python. docs/write-a-runtime.md shows how to
write a runtime.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mgpu_rt._errors import HipError
    from mgpu_rt.runtime._base import Runtime
    from mgpu_rt.runtime._cached import CachedRuntime, PlainRuntime, Singleton
    from mgpu_rt.runtime._hip import Hip
    from mgpu_rt.runtime._objects import Buffer, Image, Launch, LoadedKernel, MemRefDescriptor
    from mgpu_rt.runtime._replay import Recording

#: For each name: the module that defines the name. A module is imported on first use, because the
#: import would fail before the compiled part is built, or without HIP.
_ELSEWHERE = {
    "Buffer": "objects",
    "CachedRuntime": "cached",
    "Hip": "hip",
    "HipError": "hip",
    "Image": "objects",
    "Launch": "objects",
    "LoadedKernel": "objects",
    "MemRefDescriptor": "objects",
    "PlainRuntime": "cached",
    "Recording": "replay",
    "Runtime": "base",
    "Singleton": "cached",
}

__all__ = [
    "Buffer",
    "CachedRuntime",
    "Hip",
    "HipError",
    "Image",
    "Launch",
    "LoadedKernel",
    "MemRefDescriptor",
    "PlainRuntime",
    "Recording",
    "Runtime",
    "Singleton",
]


def __getattr__(name: str) -> "Any":
    if name not in _ELSEWHERE:
        raise AttributeError(f"module 'mgpu_rt.runtime' has no attribute '{name}'")
    import importlib

    found = getattr(importlib.import_module(f"mgpu_rt.runtime._{_ELSEWHERE[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
