"""Programs that real MLIR has lowered, end to end: their output and their driver calls."""

from __future__ import annotations

import functools
import json
import sys
from itertools import product

import pytest

from tests.support.child import BACKENDS_WITH_GPU, POLICIES, environment, library
from tests.support.patience import run_process
from tests.support.programs import (
    RELEASES,
    STOCK,
    Outcome,
    Way,
    build,
    execute,
    releases,
    run,
    run_environment,
    ways,
)
from tests.support.sources import SOURCES
from tests.support.suites import covering, in_check

LAUNCHES = 1000
ROUNDS = 7


def _long_batches() -> int:
    """Returns how many of the random batches of ragged.mlir have more than half of the elements."""
    state, count = 1, 0
    for _ in range(ROUNDS):
        state = (state * 1664525 + 1013904223) % 2**32
        count += state >> 31
    return count


#: Returns each program's output after ROUNDS rounds; vecadd and events have only one round.
PRINTED = {
    "forum": "",
    "spin": "",
    "many": "",
    "loopargs": "",
    "events": "",
    "churn": f"{ROUNDS}\n",
    "layers": f"{3 * ROUNDS}\n",
    "overlap": f"{2 * ROUNDS}\n{3 * ROUNDS}\n",
    "fanin": f"{6 * ROUNDS}\n",
    "forkjoin": "5\n",
    "forkjoin-nowait": "5\n",
    "grow": f"{ROUNDS * (ROUNDS + 1)}\n",
    "ragged": f"{ROUNDS}\n{_long_batches()}\n",
    "samename": "12\n",
    "vecadd": " ".join(["3.75"] * 1000) + "\n",
    "globals": f"{ROUNDS}\n",
}
ONCE = ("vecadd", "events")
#: As lowered, these programs never destroy some of their streams.
LEAKING = ("events", "forkjoin", "forkjoin-nowait")
PROGRAMS = [(name, llvm) for name in PRINTED for llvm in releases(name)]

#: Ways to use the library, each with a policy.
SIDES = [*((way, "python") for way in ways()), ("linked", "builtin"), ("preloaded", "builtin")]

#: The emulated device takes ten times as long to start as the stub. So the tests use only one way
#: for each release on the emulated device.
DEVICE_SIDES = {22: ("linked", "python"), 19: ("preloaded", "builtin"), 15: ("linked", "builtin")}

RUNS = [(*program, "stub", *side) for program in PROGRAMS for side in SIDES]
RUNS += [(name, llvm, "softgpu", *DEVICE_SIDES[llvm]) for name, llvm in PROGRAMS]
RUNS = covering(RUNS, strength=1)

#: Cases on NVIDIA's GPU: programs from LLVM 22 and 19, with cubins and with PTX.
GPU_SIDES = (("cuda", "linked", "python"), ("cuda", "preloaded-22.1", "builtin"))
GPU_SIDES += (("cuda-ptx", "preloaded", "python"), ("cuda-ptx", "named-22.1", "builtin"))
GPU_PROGRAMS = [(name, llvm) for name, llvm in PROGRAMS if llvm != 15]
RUNS += [
    pytest.param(*program, *side, marks=pytest.mark.gpu)
    for program in GPU_PROGRAMS
    for side in GPU_SIDES
]
FORUM_RUNS = [
    (llvm, "stub", way, policy) for llvm in RELEASES for way in ways() for policy in POLICIES
]
FORUM_RUNS += [(llvm, "softgpu", *side) for llvm in RELEASES for side in DEVICE_SIDES.values()]
CHURN_RUNS = covering((run for run in FORUM_RUNS if run[0] in releases("churn")), strength=1)
FORUM_RUNS = covering(FORUM_RUNS, strength=1)
FORUM_GPU_RUNS = [
    pytest.param(llvm, *side, marks=pytest.mark.gpu) for llvm in (22, 19) for side in GPU_SIDES
]


def _only_in_check(program: str, llvm: int, *_: str) -> bool:
    """Returns whether only `make check` compares a program with stock. The calls that older
    releases make for a launch are the same in all programs; the forum's program makes them."""
    return llvm != 22 and program != "forum"


def printed(program: str, llvm: int) -> str:
    """Returns the output that a program must print. LLVM 20 and older load the module, and its
    globals, at each launch."""
    return "1\n" if program == "globals" and llvm <= 20 else PRINTED[program]


def rounds(program: str) -> int | None:
    return None if program in ONCE else ROUNDS


def good(outcome: Outcome) -> None:
    """Checks that no line was printed, no call failed and HIP was not misused."""
    assert (outcome.signal, outcome.stderr) == (0, "")
    if outcome.log is not None:
        assert outcome.log["misuse"] == []


# ---- results -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("program", "llvm", "backend", "way", "policy"), RUNS)
def test_programs_print_what_they_should(
    program: str, llvm: int, backend: str, way: str, policy: str
) -> None:
    """On the emulated device real kernels run, which proves that no cache changes a result."""
    outcome = run(
        program, llvm, ways()[way], backend=backend, policy=policy, iterations=rounds(program)
    )
    good(outcome)
    assert outcome.stdout == printed(program, llvm)
    assert (outcome.log is not None) == (backend == "stub")


@functools.cache
def stocks(program: str, llvm: int, backend: str) -> Outcome:
    """Returns the outcome of a run with stock."""
    return run(program, llvm, Way(STOCK), backend=backend, iterations=rounds(program))


# ---- the forum's program -------------------------------------------------------------------------


@pytest.mark.parametrize(("llvm", "backend", "way", "policy"), [*FORUM_RUNS, *FORUM_GPU_RUNS])
def test_forum_asks_the_driver_for_launches_only(
    llvm: int, backend: str, way: str, policy: str
) -> None:
    outcome = run(
        "forum", llvm, ways()[way], backend=backend, policy=policy, iterations=LAUNCHES, stats=True
    )
    good(outcome)
    assert outcome.hip("hipModuleLaunchKernel") == LAUNCHES
    assert outcome.hip("hipStreamSynchronize") == LAUNCHES
    assert outcome.hip("hipModuleLoadData") <= 1
    assert outcome.hip("hipModuleGetFunction") <= 1
    assert outcome.hip("hipStreamCreate") <= 1
    assert outcome.hip("hipStreamDestroy") <= 1
    if outcome.log is not None:
        names = [call["name"] for call in outcome.calls]
        names = names[names.index("hipModuleLoadData") :]  # without HIP's start
        last_launch = len(names) - 1 - names[::-1].index("hipModuleLaunchKernel")
        assert "hipStreamDestroy" not in names[:last_launch]
        assert {name: names.count(name) for name in outcome.stats["hip"]} == {
            name: outcome.hip(name) for name in outcome.stats["hip"]
        }


# ---- memory ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("llvm", "backend", "way", "policy"), CHURN_RUNS)
def test_churn_asks_the_driver_for_memory_once(
    llvm: int, backend: str, way: str, policy: str
) -> None:
    """A round allocates, copies in, launches, copies out and frees. In each later round, the
    library requests no memory from HIP and waits once.

    Copies to the device go through pinned memory, which HIP allocates once, and do not block.
    """
    outcome = run(
        "churn",
        llvm,
        ways()[way],
        backend=backend,
        policy=policy,
        iterations=LAUNCHES,
        stats=True,
        MGPU_RT_EXCLUSIVE="on",
    )
    good(outcome)
    assert outcome.hip("hipModuleLaunchKernel") == LAUNCHES
    assert outcome.hip("hipMemcpyAsync") == 2 * LAUNCHES
    assert (outcome.hip("hipMalloc"), outcome.hip("hipFree")) == (1, 0)
    assert (outcome.hip("hipHostMalloc"), outcome.hip("hipHostFree")) == (1, 0)
    assert outcome.hip("hipStreamSynchronize") <= LAUNCHES + 1  # and once before the destroy
    # For each end of the copy up, and again after the first look-up, which may bring globals.
    assert outcome.hip("hipPointerGetAttributes") <= 4
    assert outcome.stats["cache"]["memory"] == {
        "hits": LAUNCHES - 1,
        "misses": 1,
        "bypasses": 0,
        "evictions": 0,
    }


# ---- MGPU_RT_CACHE=off ---------------------------------------------------------------------------


def comparable(calls: list[dict]) -> list[tuple]:
    """Returns the calls. Instead of a handle or device address, a call contains the number of the
    call that created it. The word `address` replaces any other address."""
    names: dict[int, str] = {}
    result = []
    for number, call in enumerate(calls):
        arguments = {
            name: names.get(value, "address" if isinstance(value, int) and value >> 32 else value)
            for name, value in call["args"].items()
        }
        result.append((call["name"], call["thread"], call["result"], arguments))
        if call.get("out"):
            names[call["out"]] = f"of call {number}"
    return result


@pytest.mark.parametrize(("program", "llvm"), in_check(PROGRAMS, _only_in_check))
def test_cache_off_is_stock_call_for_call(program: str, llvm: int) -> None:
    """Programs from LLVM 21 and later unload their modules after main; these unloads succeed
    too."""
    ours = run(program, llvm, ways()["linked"], iterations=rounds(program), MGPU_RT_CACHE="off")
    good(ours)
    assert comparable(ours.calls) == comparable(stocks(program, llvm, "stub").calls)


#: HIP answers these calls, and changes nothing.
QUESTIONS = {
    *("hipEventQuery", "hipGetLastError", "hipMemGetAddressRange", "hipMemGetInfo"),
    *("hipPointerGetAttribute", "hipPointerGetAttributes", "hipStreamGetCaptureInfo"),
    *("hipStreamGetFlags", "hipStreamQuery"),
}


@pytest.mark.parametrize(("program", "llvm"), in_check(PROGRAMS, lambda _, llvm: llvm != 22))
def test_no_program_makes_more_calls_of_the_driver(program: str, llvm: int) -> None:
    """By default, questions to HIP do not count: other code may call HIP, so the library asks."""
    stock = stocks(program, llvm, "stub").calls
    for exclusive, uncounted in (("on", set()), ("auto", QUESTIONS)):
        ours = run(
            program,
            llvm,
            ways()["linked"],
            policy="builtin",
            iterations=rounds(program),
            MGPU_RT_EXCLUSIVE=exclusive,
        )
        good(ours)
        assert sum(call["name"] not in uncounted for call in ours.calls) <= len(stock)


# ---- the traps that need a whole program ---------------------------------------------------------


@pytest.mark.parametrize(
    ("program", "way", "policy"),
    covering(
        ((name, *side) for name in PRINTED for side in (SIDES[0], ("preloaded-22.1", "builtin"))),
        strength=1,
    ),
)
def test_10_a_global_destructor_may_unload(program: str, way: str, policy: str) -> None:
    """HIP's own static objects are destroyed when the program's destructors run."""
    outcome = run(
        program, 22, ways()[way], policy=policy, iterations=rounds(program), HIPSTUB_TEARDOWN="1"
    )
    good(outcome)
    assert outcome.stdout == printed(program, 22)


_LOOK_AROUND = """
import ctypes, json, sys
everything = ctypes.CDLL(None)
def mapped():
    paths = {line.split()[-1] for line in open("/proc/self/maps") if "/" in line}
    return sorted(p.rpartition("/")[2] for p in paths if "amdhip64" in p or "LLVM" in p)
def visible():
    return [n for n in ("hipMalloc", "LLVMContextCreate") if hasattr(everything, n)]
lib = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
before = mapped(), visible()
lib.mgpuStreamCreate()
print(json.dumps([*before, mapped(), visible()]))
"""


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("backend", BACKENDS_WITH_GPU)
def test_13_hip_and_its_llvm_stay_apart(backend: str, policy: str) -> None:
    """The first call loads HIP and LLVM, whose symbols stay invisible to the program."""
    way = Way(library())
    done = run_process(
        [sys.executable, "-c", _LOOK_AROUND, str(library())],
        run_environment(way, backend, 22, policy),
    )
    assert done.returncode == 0, done.stderr
    mapped_before, visible_before, mapped_after, visible_after = json.loads(done.stdout)
    assert mapped_before == visible_before == visible_after == []
    assert len([name for name in mapped_after if "amdhip64" in name]) == 1
    # AMD's HIP loads an LLVM, which the library must keep apart from the program's symbols.
    assert any("LLVM" in name for name in mapped_after) == (backend == "softgpu")


@pytest.mark.parametrize("llvm", RELEASES)
def test_13_a_program_starts_without_hip(llvm: int) -> None:
    executable = build("forum", llvm, LAUNCHES, library())
    listed = execute([str(executable)], {**environment(), "LD_TRACE_LOADED_OBJECTS": "1"}).stdout
    assert str(library()) in listed
    assert "amdhip64" not in listed
    assert "LLVM" not in listed


def with_8_mb_of_stack(llvm: int, iterations: int, way: Way) -> Outcome:
    """Runs a loop that launches a kernel with arguments, with 8 MB of stack. The lowered code
    overflows this stack near 32,000 rounds."""
    executable = build("loopargs", llvm, iterations, way.linked)
    env = run_environment(way, "stub", llvm, "python", HIPSTUB_MODE="fast")
    del env["HIPSTUB_KERNELS"]  # these set the mode that records
    return execute(["sh", "-c", 'ulimit -s 8192 && exec "$0"', str(executable)], env, stats=True)


@pytest.mark.parametrize(
    ("llvm", "way"),
    covering(product(releases("loopargs"), ("linked", "preloaded")), strength=1),
)
def test_17_a_loop_of_launches_stays_within_its_stack(llvm: int, way: str) -> None:
    outcome = with_8_mb_of_stack(llvm, 20_000, ways()[way])
    good(outcome)
    assert outcome.hip("hipModuleLaunchKernel") == 20_000


def test_every_program_is_tested() -> None:
    """Every program is tested, except the program that ROCm's runtime cannot run."""
    assert set(SOURCES) == {*PRINTED, "cluster"}
