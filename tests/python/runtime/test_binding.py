"""hip-python is bound to the HIP that the library uses, even if several threads bind it at once."""

from __future__ import annotations

import sys
import threading
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from mgpu_rt.runtime._hip import _with_hip_python


def test_threads_that_begin_at_once_find_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads bind hip-python one after the other. The first thread must not remove the module
    that the second thread uses to find the library."""
    both_ask, first_has_left = threading.Event(), threading.Event()
    found: list[Any] = []

    def ask() -> None:
        if not found:
            found.append("libamdhip64.so")
            second.start()
            both_ask.wait(0.2)  # the event never comes, as the second waits for the first
        else:
            both_ask.set()
            first_has_left.wait()
            found.extend(sys.modules["rocm_sdk"].find_libraries())

    bindings: Any = ModuleType("rocm.bindings")
    bindings.hip = SimpleNamespace(hipRuntimeGetVersion=ask)
    monkeypatch.setitem(sys.modules, "rocm", ModuleType("rocm"))
    monkeypatch.setitem(sys.modules, "rocm.bindings", bindings)
    second = threading.Thread(target=_with_hip_python, args=["libamdhip64.so"])
    _with_hip_python("libamdhip64.so")
    first_has_left.set()
    second.join()
    assert found == ["libamdhip64.so", "libamdhip64.so"]
