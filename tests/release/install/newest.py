"""A Python host: four threads load, launch and unload through the library. Then the host waits
while the manager is starting."""

import ctypes
import sys
import threading
import time
from pathlib import Path

import mgpu_rt

LAUNCHES = 1000

runtime = ctypes.CDLL(mgpu_rt.library_path())
image = Path(sys.argv[1]).read_bytes()
data = ctypes.create_string_buffer(image, len(image))
size = ctypes.c_size_t(len(image))
for name in ("mgpuModuleLoad", "mgpuModuleGetFunction", "mgpuStreamCreate"):
    getattr(runtime, name).restype = ctypes.c_void_p


def launch() -> None:
    one = [ctypes.c_ssize_t(1)] * 6
    for _ in range(LAUNCHES):
        module = ctypes.c_void_p(runtime.mgpuModuleLoad(data, size))
        function = ctypes.c_void_p(runtime.mgpuModuleGetFunction(module, b"test_func"))
        stream = ctypes.c_void_p(runtime.mgpuStreamCreate())
        runtime.mgpuLaunchKernel(function, *one, 0, stream, None, None, ctypes.c_size_t(0))
        runtime.mgpuStreamSynchronize(stream)
        runtime.mgpuStreamDestroy(stream)
        runtime.mgpuModuleUnload(module)


threads = [threading.Thread(target=launch) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
while (stats := mgpu_rt.stats())["manager"] == "starting":
    time.sleep(0.01)
print(sys.version.split()[0], "launched", stats["hip"]["hipModuleLaunchKernel"]["calls"])
