"""The stub of HIP, on which other tests rely, returns AMD's results, and detects misuse."""

from __future__ import annotations

import ctypes
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mgpu_rt._cli import softgpu
from tests.python.snippets.library import DEFAULT, Hip, functions
from tests.python.snippets.outcomes import outcomes
from tests.support.child import BACKENDS, STUB, Mgpu, environment, in_child, stub_header
from tests.support.compiled import compile_c
from tests.support.patience import run_process

#: functions that AMD's HIP 5.2.3 lacks
ABSENT_FROM_AMDS = {"hipModuleLaunchCooperativeKernel", "hipStreamGetDevice"}

HIPSTUB = Path(__file__).parent

# ---- comparison with AMD's HIP ---------------------------------------------------------------


@pytest.mark.parametrize("function", functions())
def test_the_stub_returns_the_codes_of_amd(function: str) -> None:
    """The stub has the same effects and return codes as AMD's HIP, for valid and for invalid
    calls."""
    stub, amds = (outcomes(backend)[function] for backend in BACKENDS)
    assert stub["problem"] == ""
    if function in ABSENT_FROM_AMDS:
        assert "undefined symbol" in amds["problem"]
        assert stub["codes"][-1] == [function, 0]
    else:
        assert stub == amds


#: a function of HIP 7, which tests/runtime/launch/test_inquiry.py tests
OF_HIP_7 = {"hipDrvLaunchKernelEx"}
#: functions for graphs, which tests/runtime/graphs tests
GRAPHS = set(re.findall(r"HIP_CALL\((\w+)", (HIPSTUB / "graphs.def").read_text()))


#: functions of HIP 5.3 and later, and of ROCr, by which HIP reports calls (test_witness.py)
REPORTS = {"hipRegisterTracerCallback", "hipApiName"}


def _versions(library: Path) -> dict[str, str]:
    listed = subprocess.run(["nm", "-D", library], capture_output=True, text=True, check=True)
    return dict(re.findall(r" T (hip[A-Z]\w*)@@(\w+\.\w+)", listed.stdout))


def test_the_stub_has_the_symbol_versions_of_amd() -> None:
    """A program that was linked with AMD's HIP needs the symbol versions of AMD's HIP."""
    stub, amds = _versions(STUB), _versions(softgpu.hip())
    assert set(stub) == set(functions()) | OF_HIP_7 | GRAPHS | REPORTS
    shared = set(stub) - ABSENT_FROM_AMDS - OF_HIP_7 - REPORTS
    assert {name: stub[name] for name in shared} == {name: amds[name] for name in shared}


class Stub(Hip):
    """HIP as the stub implements it, and the functions by which a test controls the stub."""

    def __init__(self) -> None:
        super().__init__(str(STUB))
        self.ffi.cdef(stub_header())
        self.lib = self.ffi.dlopen(str(STUB))

    def misuse(self) -> list[str]:
        """Returns the texts of the misuses so far, without addresses."""
        texts = json.loads(self.ffi.string(self.lib.hipstub_json()))["misuse"]
        assert self.lib.hipstub_misuse() == len(texts)
        return [re.sub(r"0x[0-9a-f]+", "@", text) for text in texts]

    def bytes_at(self, address, count: int) -> bytes:
        """Reads device memory of the stub, without a call to HIP."""
        return self.ffi.buffer(self.ffi.cast("char *", address), count)[:]


# ---- misuse --------------------------------------------------------------------------------------


@in_child(policies=("builtin",))
def test_dead_and_foreign_handles_are_refused(mgpu: Mgpu) -> None:
    hip = Stub()
    stream, event, module = hip.stream(), hip.event(), hip.module()
    function = hip.made("hipModuleGetFunction", "hipFunction_t", module, b"test_func")
    hip.hipStreamDestroy(stream)
    hip.hipEventDestroy(event)
    hip.hipModuleUnload(module)
    assert hip.lib.hipstub_misuse() == 0
    assert hip.hipStreamSynchronize(stream) == 709
    assert hip.hipStreamDestroy(stream) == 709
    assert hip.hipEventSynchronize(event) == 400
    assert hip.hipModuleUnload(module) == 500
    assert hip.launch(function=function) == 400
    assert hip.hipEventQuery(hip.ffi.cast("hipEvent_t", hip.stream())) == 400
    assert hip.hipStreamQuery(hip.ffi.cast("hipStream_t", hip.new("char[]", 64))) == 709
    assert hip.misuse() == [
        "hipStreamSynchronize: the stream @ was destroyed",
        "hipStreamDestroy: the stream @ was destroyed",
        "hipEventSynchronize: the event @ was destroyed",
        "hipModuleUnload: the module @ was destroyed",
        "hipModuleLaunchKernel: the function @ was destroyed",
        "hipEventQuery: @ is a stream, no event",
        "hipStreamQuery: @ is no stream",
    ]


@in_child(policies=("builtin",))
def test_memory_shows_wrong_use(mgpu: Mgpu) -> None:
    hip = Stub()
    address = hip.memory(64)
    assert hip.bytes_at(address, 64) == b"\xa5" * 64
    assert hip.hipMemsetD32(address, 0, 17) == 1
    assert hip.hipMemcpy(hip.offset(address, 60), hip.new("char[]", 8), 8, DEFAULT) == 1
    assert hip.hipFree(hip.offset(address, 4)) == 1
    assert hip.hipFree(address) == 0
    assert hip.bytes_at(address, 64) == b"\xdb" * 64
    assert hip.hipFree(address) == 1
    assert hip.hipMemcpy(hip.new("char[]", 8), address, 8, DEFAULT) == 1
    assert hip.misuse() == [
        "hipMemsetD32: 68 bytes at @ run past the end of a block",
        "hipMemcpyAsync: 8 bytes at @ run past the end of a block",
        "hipFree: @ is no block's address",
        "hipFree: @ was freed before",
        "hipMemcpyAsync: @ was freed",
    ]


# ---- settings and functions for tests -------------------------------------------------------


@in_child(policies=("builtin",), HIPSTUB_DEVICES="2", HIPSTUB_REUSE="1")
def test_a_global_lies_on_its_modules_device(mgpu: Mgpu) -> None:
    """The first query for the global's address happens while another device is current."""
    hip = Stub()
    assert hip.hipSetDevice(1) == 0
    module = hip.module("globals")
    assert hip.hipSetDevice(0) == 0
    address, size = hip.new("void **"), hip.new("size_t *")
    assert hip.hipModuleGetGlobal(address, size, module, b"launches") == 0
    assert hip.hipDeviceReset() == 0
    hip.ffi.cast("int32_t *", address[0])[0] = 1
    assert hip.hipModuleUnload(module) == 0


@in_child(policies=("builtin",), HIPSTUB_REUSE="1")
def test_a_block_that_gets_a_globals_memory_fits_there(mgpu: Mgpu) -> None:
    hip = Stub()
    module, bytes_ = hip.module("globals"), 256 << 10
    address, size = hip.new("void **"), hip.new("size_t *")
    assert hip.hipModuleGetGlobal(address, size, module, b"launches") == 0
    assert size[0] < bytes_
    assert hip.hipModuleUnload(module) == 0
    assert hip.hipMalloc(address, bytes_) == 0
    room = ctypes.CDLL(None).malloc_usable_size
    room.argtypes, room.restype = [ctypes.c_void_p], ctypes.c_size_t
    assert room(int(hip.ffi.cast("uintptr_t", address[0]))) >= bytes_


# ---- fork ----------------------------------------------------------------------------------------

#: The program pauses a thread's first call while the record grows. The pause ends after the fork or
#: after a timeout.
FORK_IN_A_CALL = """
#include "program.h"
#include <stdatomic.h>
int hipInit(unsigned flags);
void *__libc_realloc(void *old, size_t bytes);
static _Atomic bool watching, growing, forked;
void *realloc(void *old, size_t bytes) {
    if (atomic_exchange(&watching, false)) {
        growing = true;
        for (int ms = 0; ms < 200 && !forked; ++ms)
            usleep(1000);
    }
    return __libc_realloc(old, bytes);
}
static void *call(void *unused) {
    (void)unused;
    hipInit(0);
    return NULL;
}
int main(void) {
    pthread_t thread;
    int status;
    watching = true;
    pthread_create(&thread, NULL, call, NULL);
    while (!growing)
        usleep(1000);
    const pid_t child = fork();
    if (child == 0)
        _exit(hipInit(0) == 0 ? 0 : 1);
    forked = true;
    waitpid(child, &status, 0);
    pthread_join(thread, NULL);
    printf("%x\\n", (unsigned)status);
}
"""


def test_a_child_of_fork_finds_the_record_whole(tmp_path: Path) -> None:
    """Another thread of the parent process may change the record during the fork."""
    flags = ("-pthread", str(STUB), f"-Wl,-rpath,{STUB.parent}")
    program = compile_c(tmp_path / "program", FORK_IN_A_CALL, *flags)
    assert run_process([str(program)], environment()).stdout == "0\n"


# ---- the modes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "setting",
    (
        {"HIPSTUB_MODE": "quick"},
        {"HIPSTUB_FAULT": "hipNothing:1:2"},
        {"HIPSTUB_DELAY": "hipMalloc"},
    ),
)
def test_settings_without_sense_end_the_process(setting: dict[str, str]) -> None:
    """The stub aborts if a setting is invalid, because a test would otherwise pass without proving
    anything."""
    load = f"import ctypes; ctypes.CDLL({str(STUB)!r})"
    done = run_process([sys.executable, "-c", load], environment(**setting))
    assert done.returncode < 0
    ((name, value),) = setting.items()
    assert f"hipstub: {name}={value} makes no sense" in done.stderr
