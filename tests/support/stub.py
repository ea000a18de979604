"""Runs tests of the stub of HIP itself, each in a separate process with the named environment."""

from __future__ import annotations

import functools
import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable

from tests.python.snippets.library import Hip
from tests.support import nursery
from tests.support.child import environment, stub_header


class Stub(Hip):
    """HIP as the stub implements it, and the functions by which a test controls the stub."""

    def __init__(self) -> None:
        super().__init__(os.environ["MGPU_RT_HIP"])
        self.ffi.cdef(stub_header())
        self.lib = self.ffi.dlopen(os.environ["MGPU_RT_HIP"])

    def record(self) -> dict:
        """Returns the lines that HIPSTUB_LOG would contain now."""
        return json.loads(self.ffi.string(self.lib.hipstub_json()))

    def misuse(self) -> list[str]:
        """Returns the texts of the misuses so far, without addresses, and clears the misuses."""
        texts = self.record()["misuse"]
        assert self.lib.hipstub_misuse() == len(texts)
        self.lib.hipstub_reset()
        return [re.sub(r"0x[0-9a-f]+", "@", text) for text in texts]

    def bytes_at(self, address, count: int) -> bytes:
        """Reads device memory of the stub, without a call to HIP."""
        return self.ffi.buffer(self.ffi.cast("char *", address), count)[:]


def on_stub(**env: str) -> Callable:
    """Runs the decorated test in a separate process over the stub; the test gets a Stub."""

    def decorate(test: Callable[[Stub], None]) -> Callable[[], None]:
        @functools.wraps(test)
        def run() -> None:
            done = run_child(test.__module__, test.__name__, **env)
            assert done.returncode == 0, f"exit status {done.returncode}\n{done.stderr}"

        del run.__wrapped__  # pytest would ask for its argument
        run.child = test  # type: ignore[attr-defined]
        return run

    return decorate


def run_child(module: str, name: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Runs a test of a module in a process of its own."""
    return nursery.run(["tests.support.stub", module, name], environment(**env))


def main() -> None:
    """In the child process: runs the test that the arguments name."""
    getattr(importlib.import_module(sys.argv[1]), sys.argv[2]).child(Stub())


if __name__ == "__main__":
    main()
