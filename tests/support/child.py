"""Runs each test in a separate process.

The library reads its options once per process and keeps its caches until the process ends, so each
test needs a new process. `@in_child(...)` runs the decorated function in a separate process (a
fork, nursery.py) with the named environment. A failure in that process also fails the test in
pytest. The function gets a `Mgpu`: the library, and the recording stub of HIP that the library
calls.

The library under test is in build/lib, or is the library that MGPU_RT_TEST_LIBRARY names. For tests
of libraries that lack a proof, tests/proofs/mutants sets MGPU_RT_TEST_LIBRARY. If the library was
built on another machine, MGPU_RT_TEST_PYTHON names the Python interpreter for the cache policy.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import pytest
from cffi import FFI

from mgpu_rt import _abi
from mgpu_rt._cli import cuda, softgpu
from mgpu_rt._lowering.toolchain import ToolchainMissing
from mgpu_rt._record import Recording
from mgpu_rt._record_json import statistics
from tests.support import nursery
from tests.support.suites import selected

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
STUB = BUILD / "hipstub" / "libamdhip64.so.5"
CUSTUB = BUILD / "custub" / "libcuda.so.1"  # the stub of NVIDIA's driver, below cuhip

#: A child's exit status if a tool is missing; the child prints the tool's name.
LACKING = 78

#: Every test of the runtime runs twice: with the manager in Python, which starts during the test,
#: and without the manager.
POLICIES = ("python", "builtin")
#: With the manager, `make test` runs only the bench programs and the manager's own tests.
PYTHON_IN_CHECK = (pytest.param("python", marks=pytest.mark.check), "builtin")
AT_ONCE = {"MGPU_RT_MANAGER": f"{os.environ.get('MGPU_RT_TEST_PYTHON', 'on')},delay=0"}

#: Backends: the recording stub, and AMD's HIP 5.2.3 on the emulated device.
BACKENDS = ("stub", "softgpu")

ParameterSet = type(pytest.param())
Parameter = str | ParameterSet

#: A backend for NVIDIA's GPU, on a machine that has one (pytest -m gpu).
BACKENDS_WITH_GPU = (*BACKENDS, pytest.param("cuda", marks=pytest.mark.gpu))


def library() -> Path:
    """Returns the path of the library under test."""
    named = os.environ.get("MGPU_RT_TEST_LIBRARY")
    return Path(named) if named else BUILD / "lib" / "libmlir_rocm_runtime.so"


def environment(backend: str = "stub", **changes: str) -> dict[str, str]:
    """Returns the environment of a child: without the caller's options, with the backend's options,
    and with `changes` applied."""
    clean = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("MGPU_RT_", "HIPSTUB_", "LD_PRELOAD", "LD_LIBRARY_PATH"))
        or key.startswith(("MGPU_RT_TEST_", "MGPU_RT_CUDA"))
    }
    if "MGPU_RT_TEST_PYTHON" in clean:
        clean["MGPU_RT_MANAGER"] = clean["MGPU_RT_TEST_PYTHON"]
    if backend == "softgpu":
        return {**softgpu.environment(clean), **changes}
    if backend == "cuda":
        return {**cuda.environment(clean), **changes}
    if backend == "custub":
        return {**cuda.environment(clean), "MGPU_RT_CUDA": str(CUSTUB), **changes}
    return {**clean, "MGPU_RT_HIP": str(STUB), "HIPSTUB_MODE": "record", **changes}


class Mgpu:
    """The library in this process, and the stub of HIP that the library calls."""

    def __init__(self) -> None:
        self.ffi, self.stub_ffi = declarations()
        self.lib = self.ffi.dlopen(str(library()))
        self.on_stub = os.environ["MGPU_RT_HIP"] == str(STUB)
        self.on_cuda = os.environ["MGPU_RT_HIP"] == str(cuda.BUILD / "cuhip" / cuda.HIP)
        # self.stub is the stub or HIP itself, because `stub_ffi` also declares the hip* functions.
        named = Path(os.environ["MGPU_RT_HIP"])
        self.stub = self.stub_ffi.dlopen(str(named if named.exists() else STUB))
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
        self._read = 0
        os.dup2(self._stderr.fileno(), 2)
        self._kept: list[object] = []

    def __getattr__(self, name: str):
        return getattr(self.lib, f"mgpu{name}")

    @property
    def null(self):
        """Returns a null pointer."""
        return self.ffi.NULL

    def count(self, function: str) -> int:
        """Returns how often one of HIP's functions was called so far."""
        return self.stub.hipstub_count(function.encode())

    def counts(self, *functions: str) -> dict[str, int]:
        """Returns how often several functions were called so far."""
        return {function: self.count(function) for function in functions}

    def stderr(self) -> str:
        """Returns everything that the process wrote to stderr since the last call."""
        self._stderr.seek(self._read)
        text = self._stderr.read().decode()
        self._read += len(text.encode())
        return text

    def advice(self) -> list[str]:
        """Returns the library's own lines since the last call, without the failures."""
        return [line for line in self.stderr().splitlines() if line.startswith("mgpu_rt: ")]

    def image(self, content: bytes, room: int = 0):
        """Returns an image in separate memory (at least `room` bytes), which lives until the test
        ends."""
        buffer = self.ffi.new("char[]", max(room, len(content)))
        self.ffi.memmove(buffer, content, len(content))
        self.keep(buffer)
        return buffer

    def keep(self, thing: object) -> None:
        """Keeps an object alive until the test ends."""
        self._kept.append(thing)

    def load(self, image):
        """Calls mgpuModuleLoad as LLVM 17 and older do: with garbage for the size."""
        return self.lib.mgpuModuleLoad(image, 0xBAD0BAD0BAD0)

    def function(self, module, name: str):
        """Calls mgpuModuleGetFunction; the name has the same address in every call, like a
        constant."""
        return self.lib.mgpuModuleGetFunction(module, self.name(name))

    @functools.cache  # noqa: B019 - one object a process
    def name(self, text: str):
        """Returns the address of a C string that lives as long as the process."""
        return self.ffi.new("char[]", text.encode())

    def launch(self, function, stream=None, grid=(1, 1, 1), block=(1, 1, 1), params=None) -> None:
        """Calls mgpuLaunchKernel as LLVM 17 and older do: with garbage for the parameter count."""
        null = self.ffi.NULL
        self.lib.mgpuLaunchKernel(
            function, *grid, *block, 0, stream or null, params or null, null, 0xBAD0BAD0
        )

    def for_stub(self, pointer, kind: str = "void *"):
        """Converts a pointer of the library to the type in the stub's declarations."""
        return self.stub_ffi.cast(kind, int(self.ffi.cast("uintptr_t", pointer)))

    def from_stub(self, pointer, kind: str = "void *"):
        """Converts a pointer of the stub to the type in the library's declarations."""
        return self.ffi.cast(kind, int(self.stub_ffi.cast("uintptr_t", pointer)))

    def by_hip(self, function: str, *arguments):
        """Returns an object or memory that the program itself gets from a function of HIP."""
        made = self.stub_ffi.new("void **")
        assert getattr(self.stub, function)(made, *arguments) == 0
        return self.from_stub(made[0])

    def hip_stream(self, flags: int = 0):
        """Returns a new stream that the program itself got from HIP. With the flag 1 the stream
        does not wait for the null stream, like PyTorch's streams."""
        return self.ffi.cast("hipStream_t", self.by_hip("hipStreamCreateWithFlags", flags))

    def external_stream(self, flags: int = 0):
        """Returns a new stream of the program, which is the thread's external stream now."""
        stream = self.hip_stream(flags)
        assert self.lib.mgpu_rt_use_stream(stream) == 0
        return stream

    def pending(self, stream) -> int:
        """Returns how many operations were submitted to a stream and are not complete."""
        return self.stub.hipstub_pending(self.for_stub(stream))

    def set_kernel(self, name: str, body) -> None:
        """Gives each kernel of the given name a body: a callback `void(void **)`."""
        body = self.for_stub(body, "void (*)(void **)")
        self.stub.hipstub_set_kernel(name.encode(), body, self.stub_ffi.NULL, 0)

    def passes_on(self, function: str) -> None:
        """Sets the simplest possible override, which calls the library's own function."""
        name = function.encode()
        assert self.lib.mgpu_rt_intercept(name, self.lib.mgpu_rt_native(name)) == 0

    def stats(self) -> dict:
        """Returns the statistics in mgpu_rt_record's recording."""
        size = self.ffi.new("size_t *")
        content = self.lib.mgpu_rt_record(size)
        try:
            return statistics(Recording(self.ffi.buffer(content, size[0])[:]))
        finally:
            self.lib.free(content)


def stub_header() -> str:
    """Returns tests/devices/hipstub/hipstub.h for cffi: the functions by which a test controls the
    stub."""
    text = (ROOT / "tests" / "devices" / "hipstub" / "hipstub.h").read_text()
    plain = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return re.sub(r"^#.*", "", plain, flags=re.MULTILINE)


def hip_functions() -> str:
    """Returns the declarations of the functions in functions.def, which also defines the stub."""
    table = (ROOT / "tests" / "devices" / "hipstub" / "functions.def").read_text()
    rows = re.findall(r"^HIP_CALL\((\w+), (\([^)]*\)),", table, re.MULTILINE)
    return "".join(f"int {name}{params};\n" for name, params in rows)


#: Types of HIP, and functions that functions.def lacks. Each handle is declared as `void *`.
_OF_HIP = """
typedef void *hipStream_t, *hipEvent_t, *hipModule_t, *hipFunction_t, *hipStreamCallback_t;
typedef struct hipPointerAttribute hipPointerAttribute_t;
int hipGetLastError(void);
int hipPeekAtLastError(void);
int hipDeviceReset(void);
int hipDeviceSynchronize(void);
int hipStreamBeginCapture(void *stream, int mode);
int hipStreamEndCapture(void *stream, void **graph);
int hipGraphInstantiate(void **executable, void *graph, void *node, char *text, size_t room);
int hipGraphLaunch(void *executable, void *stream);
int hipGraphExecDestroy(void *executable);
int hipGraphDestroy(void *graph);
void hipRegisterTracerCallback(int (*tracer)(int domain, uint32_t operation, void *data));
"""


@functools.cache
def declarations() -> tuple[FFI, FFI]:
    """Declares the functions of the library, of HIP and of the stub; cffi takes 20 ms to parse
    these declarations."""
    ours, stubs = FFI(), FFI()
    ours.cdef(_abi.cdef() + "void free(void *);")
    stubs.cdef(stub_header() + _OF_HIP + hip_functions())
    return ours, stubs


def _case(policy: Parameter, backend: Parameter) -> ParameterSet:
    """Returns one parameter that combines the policy and the backend. A case that needs a GPU does
    not get the mark `check`."""
    one, other = (p if isinstance(p, ParameterSet) else pytest.param(p) for p in (policy, backend))
    return pytest.param(*one.values, *other.values, marks=other.marks or one.marks)


def in_child(
    policies: Sequence[Parameter] = PYTHON_IN_CHECK,
    backends: Sequence[Parameter] = ("stub",),
    **env: str,
) -> Callable:
    """Runs the decorated test in a separate process, once for each policy and backend.

    The test takes a single argument, the Mgpu. The child's environment is `environment()` with the
    variables in `env`.
    """

    pairs = itertools.product(policies, backends)
    cases = selected([_case(policy, backend) for policy, backend in pairs])

    def decorate(test: Callable[[Mgpu], None]) -> Callable[..., None]:
        @pytest.mark.parametrize(("policy", "backend"), cases)
        def run(policy: str, backend: str) -> None:
            python = {"MGPU_RT_MANAGER": "off"} if policy == "builtin" else AT_ONCE
            run_child(test.__module__, test.__name__, environment(backend, **env, **python))

        run.__name__, run.__doc__ = test.__name__, test.__doc__
        run.__module__ = test.__module__
        run.child, run.env, run.backend = test, env, backends[0]  # type: ignore[attr-defined]
        return run

    return decorate


def in_cases(cases: Mapping[str, Mapping[str, str]] | Iterable[str], **env: str) -> Callable:
    """Runs the decorated test in a separate process for each case, without the manager.

    `cases` maps the name of a case to the variables of its process, or lists the names of cases
    without variables. The test takes the Mgpu and the name of the case.
    """
    if not isinstance(cases, Mapping):
        cases = {name: {} for name in cases}

    def decorate(test: Callable[[Mgpu, str], None]) -> Callable[..., None]:
        @pytest.mark.parametrize("case", cases)
        def run(case: str) -> None:
            variables = {**env, **cases[case], "MGPU_RT_TEST_CASE": case}
            run_child(
                test.__module__, test.__name__, environment(MGPU_RT_MANAGER="off", **variables)
            )

        run.__name__, run.__doc__ = test.__name__, test.__doc__
        run.__module__ = test.__module__
        run.of_case, run.cases, run.env = test, cases, env  # type: ignore[attr-defined]
        return run

    return decorate


def run_child(module: str, name: str, env: dict[str, str]) -> None:
    """Runs one decorated test; raises AssertionError with the child's output."""
    result = nursery.run(["tests.support.child", module, name], env)
    if result.returncode == LACKING:
        pytest.skip(result.stdout)
    assert result.returncode == 0, f"exit status {result.returncode}\n{result.stdout}"


def main() -> None:
    """In the child process: runs the test that the arguments name."""
    module, name = sys.argv[1:]
    mgpu = Mgpu()
    try:
        test = getattr(importlib.import_module(module), name)
        case = os.environ.get("MGPU_RT_TEST_CASE")
        test.child(mgpu) if case is None else test.of_case(mgpu, case)
    except ToolchainMissing as problem:
        print(problem, end="")
        raise SystemExit(LACKING) from None
    except BaseException:
        import traceback

        traceback.print_exc(file=sys.stdout)
        print("--- stderr of the child ---", mgpu.stderr(), sep="\n")
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
