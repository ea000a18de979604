"""Counts of the fast path: instructions, functions, driver calls. Counts, unlike times, are the
same on a busy machine.

Both loops run the forum's program over the stub, as bench/native/calls.c does. The bounds are 10 %
above the instruction counts with GCC 12. Another compiler stays within these bounds, but one more
lock or lookup does not.
"""

from __future__ import annotations

import functools
import re

import pytest

from bench.setup import build, device, native
from tests.support import instructions
from tests.support.sources import SOURCES
from tests.support.suites import in_check

RUNTIME = native.RUNTIME.name


#: A row has the number of calls in an iteration, and whether the image and the name may change, as
#: in a JIT. Then come the bounds of the runtime's own instructions, and of those in memcmp and
#: strcmp. These two depend on the processor, and compare an image of 4.4 KB. They need at most 5
#: instructions for each 16 bytes, and some at both ends. More would mean a second comparison, or
#: one byte by byte.
BOUNDS = [(7, False, 374, 0), (5, False, 282, 0), (7, True, 406, 1400), (5, True, 291, 100)]

FORBIDDEN = (
    "malloc", "calloc", "realloc", "free", "aligned_alloc", "_int_malloc", "_int_free",
    "pthread_mutex_lock", "pthread_mutex_unlock", "pthread_once", "pthread_getspecific",
    "__tls_get_addr", "clock_gettime", "getenv", "dlsym",
)  # fmt: skip

needs_valgrind = pytest.mark.skipif(
    not instructions.available(), reason="valgrind is missing: apt-get install valgrind"
)


@functools.cache
def profile(calls: int, copy: bool = False) -> instructions.Profile:
    """Profiles a process with MGPU_RT_EXCLUSIVE=on, so that HIP's own instructions for queries are
    not counted."""
    return instructions.count(calls, copy=copy, variables={"MGPU_RT_EXCLUSIVE": "on"})


@needs_valgrind
@pytest.mark.parametrize(("calls", "copy", "bound", "comparisons"), BOUNDS)
def test_a_hit_keeps_to_its_instructions(
    calls: int, copy: bool, bound: int, comparisons: int
) -> None:
    assert 50 < profile(calls, copy).per_iteration(RUNTIME) <= bound
    assert 10 * copy <= profile(calls, copy).per_iteration("libc.so") <= comparisons


@needs_valgrind
@pytest.mark.parametrize(
    ("llvm", "bound"), in_check([(19, 374), (22, 282)], lambda llvm, _: llvm == 19)
)
def test_many_kernels_are_as_fast_as_one(llvm: int, bound: int) -> None:
    """The library caches 50 kernels of 5 modules at the same time; the bounds equal the bounds for
    a single kernel.

    Two names may have the same hash slot. The second name is then in the next slot
    (function_probe_thread), and a lookup of this name takes 130 more instructions. With the module
    addresses in the stub's heap, 7 of the 50 names are in such a next slot."""
    iterations, launches = 4, 50
    on = device.find("stub")
    program = build.executable("many", llvm, on.chip, iterations, SOURCES["many"].parent)
    wait = f"{native.STUB},hipDeviceSynchronize"
    env = {
        **on.environment,
        "BENCH_WAIT": wait,
        "MGPU_RT_MANAGER": "off",
        "MGPU_RT_EXCLUSIVE": "on",
    }
    many = instructions.count_program(program, iterations, env)
    assert 50 < many.per_iteration(RUNTIME) / launches <= bound
    assert not names(many) & set(FORBIDDEN)


@needs_valgrind
@pytest.mark.parametrize(
    ("llvm", "bound"), in_check([(19, 1290), (22, 1195)], lambda llvm, _: llvm == 19)
)
def test_memory_and_copies_keep_to_their_instructions(llvm: int, bound: int) -> None:
    """One iteration of the program churn takes no more instructions than `bound`. The iteration
    makes an allocation, two staged copies, a launch, a wait and a free.

    Bounds are 4 % above the counts with GCC 12. A function on the path of a hit should have one
    caller. With a second caller the compiler inlines less, and a hit costs more."""
    iterations = 4
    on = device.find("stub")
    env = {**on.environment, "MGPU_RT_MANAGER": "off", "MGPU_RT_EXCLUSIVE": "on"}
    env["BENCH_WAIT"] = f"{native.STUB},hipDeviceSynchronize"
    program = build.executable("churn", llvm, on.chip, iterations)
    churn = instructions.count_program(program, iterations, env)
    assert 500 < churn.per_iteration(RUNTIME) <= bound


def names(profile: instructions.Profile) -> set[str]:
    """Returns the functions' names without the suffixes of the compiler and the linker (.isra.0,
    @GLIBC)."""
    return {re.split(r"[.@']", name)[0] for name in profile.functions}


@needs_valgrind
@pytest.mark.parametrize("calls", [7, 5])
def test_a_hit_calls_nothing_slow(calls: int) -> None:
    """The loop calls no allocator, lock, system call, Python function or slow path."""
    ran = names(profile(calls))
    assert {"mgpuModuleGetFunction", "mgpuStreamCreate", "hipModuleLaunchKernel"} <= ran
    assert not ran & set(FORBIDDEN)
    assert not [name for name in ran if name.startswith(("Py", "_Py", "slow_", "policy_"))]
    assert not [name for name in ran if name.endswith(("_slow", "_new"))]
    assert profile(calls).system_calls == 0


@pytest.mark.parametrize("python", ["off", "on"], ids=["builtin", "python"])
@pytest.mark.parametrize("calls", [7, 5])
@pytest.mark.parametrize("word", ["on", "off"])
def test_a_hit_makes_only_the_necessary_driver_calls(calls: int, python: str, word: str) -> None:
    """In each iteration, HIP gets a launch and a synchronise; without MGPU_RT_EXCLUSIVE, HIP also
    gets queries of the stream's state and flags."""
    iterations = 10
    exclusive = {"MGPU_RT_EXCLUSIVE": word}
    env = native.stub_environment(HIPSTUB_MODE="record", MGPU_RT_MANAGER=python, **exclusive)
    side = f"runtime,{native.RUNTIME}"
    command = [native.program("calls"), "record", native.STUB, iterations, calls, side]
    record = native.run_json(command, env)
    expected = {"hipModuleLaunchKernel": iterations, "hipStreamSynchronize": iterations}
    if word == "off":
        expected["hipStreamQuery"] = expected["hipStreamGetFlags"] = iterations
        expected["hipPointerGetAttribute"] = iterations * (2 if calls == 7 else 1)
    assert record["counts"] == expected
    assert record["misuses"] == 0
