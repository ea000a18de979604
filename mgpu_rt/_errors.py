"""Defines the exception for a call that HIP refused."""

from __future__ import annotations

#: Maps the name of each HIP function to the expression that LLVM's failure message quotes.
CALLS = {
    "hipModuleLoadData": "hipModuleLoadData(&module, data)",
    "hipModuleUnload": "hipModuleUnload(module)",
    "hipModuleGetFunction": "hipModuleGetFunction(&function, module, name)",
    "hipModuleLaunchKernel": "hipModuleLaunchKernel(function, gridX, gridY, gridZ, blockX, blockY, "
    "blockZ, smem, stream, params, extra)",
    "hipModuleLaunchCooperativeKernel": "hipModuleLaunchCooperativeKernel(function, gridX, gridY, "
    "gridZ, blockX, blockY, blockZ, smem, stream, params)",
    "hipStreamCreate": "hipStreamCreate(&stream)",
    "hipStreamDestroy": "hipStreamDestroy(stream)",
    "hipStreamSynchronize": "hipStreamSynchronize(stream)",
    "hipStreamWaitEvent": "hipStreamWaitEvent(stream, event, 0)",
    "hipEventCreateWithFlags": "hipEventCreateWithFlags(&event, hipEventDisableTiming)",
    "hipEventDestroy": "hipEventDestroy(event)",
    "hipEventSynchronize": "hipEventSynchronize(event)",
    "hipEventRecord": "hipEventRecord(event, stream)",
    "hipEventElapsedTime": "hipEventElapsedTime(&milliseconds, start, stop)",
    "hipMalloc": "hipMalloc(&ptr, sizeBytes)",
    "hipFree": "hipFree(ptr)",
    "hipMemcpyAsync": "hipMemcpyAsync(dst, src, sizeBytes, hipMemcpyDefault, stream)",
    "hipMemsetD32Async": "hipMemsetD32Async(reinterpret_cast<hipDeviceptr_t>(dst), value, count, "
    "stream)",
    "hipMemsetD16Async": "hipMemsetD16Async(reinterpret_cast<hipDeviceptr_t>(dst), value, count, "
    "stream)",
    "hipHostRegister": "hipHostRegister(ptr, sizeBytes, 0)",
    "hipHostUnregister": "hipHostUnregister(ptr)",
    "hipSetDevice": "hipSetDevice(device)",
}


class HipError(RuntimeError):
    """HIP refused a call. `function` is the called function, `code` is the hipError_t, and
    `name` is HIP's name for the error. If a runtime in Python raises HipError, the library
    prints stock's line. If the library has printed the line already, the exception of this
    package has an empty `function`, `code` 0 and a text."""

    def __init__(self, function: str, code: int, name: str, text: str = "") -> None:
        super().__init__(function, code, name, text)  # so multiprocessing can pass it on
        self.function, self.code, self.name, self._text = function, code, name, text

    def __str__(self) -> str:
        return self._text or f"'{self.call}' failed with '{self.name}'"

    @property
    def call(self) -> str:
        """Formats the call as LLVM's own library prints it."""
        return CALLS.get(self.function, self.function)
