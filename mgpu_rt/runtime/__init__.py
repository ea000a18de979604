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

    from mgpu_rt._recordings.record import Record as Record
    from mgpu_rt._recordings.replay import Recording as Recording
    from mgpu_rt.runtime._base import Runtime as Runtime
    from mgpu_rt.runtime._cached import CachedRuntime as CachedRuntime
    from mgpu_rt.runtime._cached import PlainRuntime as PlainRuntime
    from mgpu_rt.runtime._cached import Singleton as Singleton
    from mgpu_rt.runtime._hip import Hip as Hip
    from mgpu_rt.runtime._objects import Buffer as Buffer
    from mgpu_rt.runtime._objects import Image as Image
    from mgpu_rt.runtime._objects import Launch as Launch
    from mgpu_rt.runtime._objects import LoadedKernel as LoadedKernel

#: The module that defines each name, imported on first use, because the import would fail before
#: the compiled part is built, or without HIP.
_ELSEWHERE = {
    "Buffer": "._objects",
    "CachedRuntime": "._cached",
    "Hip": "._hip",
    "Image": "._objects",
    "Launch": "._objects",
    "LoadedKernel": "._objects",
    "PlainRuntime": "._cached",
    "Record": ".._recordings.record",
    "Recording": ".._recordings.replay",
    "Runtime": "._base",
    "Singleton": "._cached",
}
__all__ = [*_ELSEWHERE]


def __getattr__(name: str) -> "Any":
    if name not in _ELSEWHERE:
        raise AttributeError(f"module 'mgpu_rt.runtime' has no attribute '{name}'")
    import importlib

    found = getattr(importlib.import_module(_ELSEWHERE[name], __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
