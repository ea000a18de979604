"""The error of a call that HIP refused."""

from __future__ import annotations


class HipError(RuntimeError):
    """HIP refused a call. `function` is its name, `code` its hipError_t, `name` HIP's word for it.

    A runtime in Python raises one, and the host turns it into the line that stock prints. One that
    the library raises has a text of its own, and neither function nor code: stock's line is on
    stderr already.
    """

    def __init__(self, function: str, code: int, name: str, text: str = "") -> None:
        self.function, self.code, self.name = function, code, name
        super().__init__(text or f"'{self.call}' failed with '{name}'")

    def __reduce__(self) -> tuple[type[HipError], tuple[str, int, str, str]]:
        """A process of multiprocessing's sends it on."""
        return type(self), (self.function, self.code, self.name, str(self))

    @property
    def call(self) -> str:
        """The call as LLVM's own runtime words it."""
        from mgpu_rt.runtime._hip import CALLS

        return CALLS.get(self.function, self.function)
