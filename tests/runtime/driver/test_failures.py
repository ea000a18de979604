"""The counts of failed calls."""

from __future__ import annotations

from tests.support import recordings
from tests.support.child import Mgpu, in_child
from tests.support.folders import in_folder

COUNTED = {"policies": ("builtin",), "MGPU_RT_TRACE": "trace.json"}
INVALID = "hipErrorInvalidValue"


def failed(mgpu: Mgpu) -> dict[tuple[str, str], int]:
    return {(row["function"], row["error"]): row["calls"] for row in mgpu.stats()["failed"] or ()}


@in_child(**COUNTED)
@in_folder
def test_failed_calls_are_counted_by_function_and_error(mgpu: Mgpu) -> None:
    assert failed(mgpu) == {}
    for _ in range(3):
        mgpu.MemFree(mgpu.ffi.cast("void *", 1), mgpu.null)
    image = mgpu.image(b"none")
    assert not mgpu.load(image)
    mgpu.launch(mgpu.ffi.NULL)
    stream = mgpu.StreamCreate()
    mgpu.MemFree(mgpu.MemAlloc(100, stream, False), stream)
    counted = failed(mgpu)
    assert counted.pop(("mgpuMemFree", INVALID)) == 3
    assert {function for function, _ in counted} == {"mgpuModuleLoad", "mgpuLaunchKernel"}
    assert all(error.startswith("hipError") for _, error in counted)
    assert set(counted.values()) == {1}
    trace = recordings.trace("trace.json")
    frees = [e for e in trace["traceEvents"] if e["name"] in ("mgpuMemFree", "hipFree")]
    assert [e["args"].get("error") for e in frees] == [INVALID] * 6 + [None]
