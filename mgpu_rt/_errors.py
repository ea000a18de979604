"""Defines the exception for a call that HIP refused."""

from __future__ import annotations


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
        from mgpu_rt.runtime._hip import CALLS

        return CALLS.get(self.function, self.function)
