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
    """HIP refused a call. `function` is the called function, `code` is the hipError_t, and `name`
    is HIP's name for the error.

    A runtime in Python raises HipError, and the library prints the line that stock prints for this
    error. If the library has already printed the line on stderr, this package raises HipError. This
    exception has a text, an empty `function` and `code` 0.
    """

    def __init__(self, function: str, code: int, name: str, text: str = "") -> None:
        self.function, self.code, self.name = function, code, name
        super().__init__(text or f"'{self.call}' failed with '{name}'")

    def __reduce__(self) -> tuple[type[HipError], tuple[str, int, str, str]]:
        """Makes the exception picklable, so that multiprocessing can pass the exception to another
        process."""
        return type(self), (self.function, self.code, self.name, str(self))

    @property
    def call(self) -> str:
        """Formats the call as LLVM's own library prints it."""
        return CALLS.get(self.function, self.function)
