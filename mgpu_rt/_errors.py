"""The exception for a call that HIP refused."""

from __future__ import annotations


class HipError(RuntimeError):
    """HIP refused a call. `function` is the called function, `code` its hipError_t, `name` HIP's
    name of the error.

    A runtime in Python raises one, and the host prints it as stock's line. The library raises one
    with its own text, without function and code: stock's line is on stderr already.
    """

    def __init__(self, function: str, code: int, name: str, text: str = "") -> None:
        self.function, self.code, self.name = function, code, name
        super().__init__(text or f"'{self.call}' failed with '{name}'")

    def __reduce__(self) -> tuple[type[HipError], tuple[str, int, str, str]]:
        """Lets a process of multiprocessing's pass it on."""
        return type(self), (self.function, self.code, self.name, str(self))

    @property
    def call(self) -> str:
        """Returns the call in the words of LLVM's own library."""
        from mgpu_rt.runtime._hip import CALLS

        return CALLS.get(self.function, self.function)
