"""Tests registrations of host memory that the library caches after the program has unregistered the
memory (MGPU_RT_EXCLUSIVE=on).

tests/support/hosts/registered contains the programs. Like a GPU, the stub of HIP keeps using the
pages that were mapped when the program registered the memory. So the stub copies wrong bytes if the
pages of a registration have been replaced.
"""

from __future__ import annotations

import ctypes
import errno
import json
import mmap
import os
import platform
import re
import subprocess
from pathlib import Path

import pytest

from tests.support import recordings
from tests.support.child import ROOT, Mgpu, environment, in_cases, in_child
from tests.support.known import program, run_program
from tests.support.patience import HANG
from tests.support.refused import USERFAULTFD, refusing

KIB = 1 << 10
PAGE = 4 * KIB
SOURCES = ROOT / "tests" / "support" / "hosts" / "registered"
KERNEL = tuple(map(int, re.findall(r"\d+", platform.release())[:2]))

#: Cases in which only the device could notice a wrong registration.
CASES = ("brk", "huge", "touching", "grown", "private-file", "pageable", "exit")

#: The lines that stock prints for a second unregister, a second register and a third unregister.
ERRORS = """\
'hipHostUnregister(ptr)' failed with 'hipErrorHostMemoryNotRegistered'
'hipHostRegister(ptr, sizeBytes, 0)' failed with 'hipErrorHostMemoryAlreadyRegistered'
'hipHostUnregister(ptr)' failed with 'hipErrorHostMemoryNotRegistered'
"""


def build(folder: Path, name: str) -> Path:
    text = (SOURCES / name).read_text()
    return program(folder, text, f"-I{SOURCES}", str(SOURCES / "memory.c"))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("registered"), "cases.c")


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("steps"), "steps.c")


def run(path: Path, *words: object, exclusive: str = "on", **variables: str) -> tuple[str, dict]:
    """Returns the program's stderr, and the record of the stub."""
    log = path.with_suffix(".json")
    settings = {"MGPU_RT_EXCLUSIVE": exclusive, "MGPU_RT_MANAGER": "off", **variables}
    done = run_program(path, *words, HIPSTUB_PINS="1", HIPSTUB_LOG=str(log), **settings)
    assert done.returncode == 0, done.stderr
    record = json.loads(log.read_text())
    assert record["misuses"] == 0, record["misuse"]
    return done.stderr, record


def registrations(record: dict) -> int:
    return record["counts"]["hipHostRegister"]


@pytest.mark.parametrize("case", CASES)
def test_a_case(path: Path, case: str) -> None:
    said, _ = run(path, case, HIPSTUB_ASYNC="held")
    assert said == ""


@pytest.mark.gpu
@pytest.mark.parametrize("words", [*((case,) for case in CASES), ("race", "2000")])
def test_registered_memory_on_a_gpu(path: Path, words: tuple[str, ...]) -> None:
    env = environment("cuda", MGPU_RT_EXCLUSIVE="on", MGPU_RT_MANAGER="off")
    env["LD_LIBRARY_PATH"] = str(Path(env["MGPU_RT_HIP"]).parent)
    command = [str(path), *words]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 0, done.stderr


def test_a_race(path: Path) -> None:
    """munmap drops the pages before the library reads the munmap event. Before the library reads
    this event, another thread may map other pages."""
    _, record = run(path, "race", 1000)
    assert registrations(record) < 1000 * 1.5


@pytest.mark.nightly
def test_a_long_race(path: Path) -> None:
    """The library marks the registration soon after it has read the munmap event, so only many
    rounds hit the race."""
    run(path, "race", 200_000)


def test_a_copy_between_host_memory_ends_a_registration_that_hip_keeps(path: Path) -> None:
    """HIP would read the copy's source late, because HIP still pins the source."""
    _, record = run(path, "pageable")
    assert record["counts"]["hipHostUnregister"] == 1


@pytest.mark.parametrize(
    "variables",
    [{"exclusive": "off"}, {"MGPU_RT_CACHE": "off"}, {"MGPU_RT_CACHE": "memory,streams"}],
)
def test_without_the_users_word_every_call_is_hips(path: Path, variables: dict) -> None:
    _, record = run(path, "passes", **variables)
    assert registrations(record) == record["counts"]["hipHostUnregister"] == 200


def test_threads_may_register_the_same_memory(path: Path) -> None:
    run(path, "threads")


def test_errors_are_those_of_stock(path: Path) -> None:
    said, _ = run(path, "errors")
    plain, _ = run(path, "errors", exclusive="off")
    assert said == plain
    assert "".join(f"{line}\n" for line in said.splitlines() if "failed" in line) == ERRORS


#: Maps programs to the hits, misses, bypasses and evictions of their registrations, and to those
#: that the library keeps. Memory that was unmapped four times is not kept. HIP itself registers
#: memory that the library cannot cache: memory of a file and, without MGPU_RT_EXCLUSIVE, all
#: memory.
COUNTED = {
    ("passes", ""): ((198, 2, 0, 0), (2, 4 * PAGE + 8, 0, 0)),
    ("touching", ""): ((1, 3, 0, 1), (2, 4 * PAGE, 1, 0)),
    ("limit", "64K"): ((0, 48, 0, 32), (16, 16 * PAGE, 0, 32)),
    ("unmapped", ""): ((0, 4, 16, 4), (0, 0, 4, 0)),
    ("private-file", ""): ((0, 0, 2, 0), (0, 0, 0, 0)),
}


@pytest.mark.parametrize(("case", "limit"), COUNTED)
def test_statistics_count_registrations(path: Path, tmp_path: Path, case: str, limit: str) -> None:
    file = tmp_path / "stats.json"
    run(path, case, MGPU_RT_STATS=f"1,{file}", MGPU_RT_MEMORY_LIMIT=limit)
    stats = recordings.stats(file)
    counts, now = COUNTED[case, limit]
    assert tuple(stats["cache"]["registrations"].values()) == counts
    assert tuple(stats["kept"].values()) == now


@pytest.mark.parametrize(
    "variables, reason",
    [
        ({}, "is cached: it stays registered after"),
        ({"exclusive": "off"}, "is not cached: the cache needs MGPU_RT_EXCLUSIVE=on"),
        ({"MGPU_RT_CACHE": "memory"}, "is not cached: MGPU_RT_CACHE leaves out registrations"),
    ],
)
def test_the_library_says_whether_memory_stays_registered(
    path: Path, variables: dict, reason: str
) -> None:
    said, _ = run(path, "passes", MGPU_RT_VERBOSE="1", **variables)
    assert (
        said.count(f"mgpu_rt: registered memory {reason}") == said.count("registered memory") == 1
    )


@in_child(MGPU_RT_EXCLUSIVE="on")
def test_a_registration_that_the_program_ended_by_hip_is_made_again(mgpu: Mgpu) -> None:
    memory = mgpu.ffi.new("char[]", PAGE)
    mgpu.MemHostRegister(memory, PAGE)
    address = ctypes.c_void_p(int(mgpu.ffi.cast("uintptr_t", memory)))
    assert ctypes.CDLL(os.environ["MGPU_RT_HIP"]).hipHostUnregister(address) == 0
    mgpu.MemHostRegister(memory, PAGE)
    assert mgpu.count("hipHostRegister") == 2
    mgpu.MemHostUnregister(memory)
    assert mgpu.stderr() == ""


@in_child(MGPU_RT_EXCLUSIVE="on")
def test_a_first_registration_does_not_grow_the_table_of_descriptors(mgpu: Mgpu) -> None:
    """While the kernel grows a table that threads share, the caller waits 5 to 20 ms."""

    def places() -> str:
        return Path("/proc/self/status").read_text().split("FDSize:")[1].split()[0]

    before = places()
    mgpu.MemHostRegister(mgpu.ffi.new("char[]", PAGE), PAGE)
    assert any(int(number) >= 48 for number in os.listdir("/proc/self/fd"))
    assert places() == before


@in_child(MGPU_RT_EXCLUSIVE="on")
def test_a_child_of_fork_gives_nothing_back(mgpu: Mgpu) -> None:
    """HIP does not survive a fork."""
    memory = mgpu.ffi.new("char[]", PAGE)
    mgpu.MemHostRegister(memory, PAGE)
    mgpu.MemHostUnregister(memory)
    child = os.fork()
    if child == 0:
        mgpu.lib.mgpu_rt_empty_cache()
        os._exit(mgpu.count("hipHostUnregister"))
    assert os.waitpid(child, 0)[1] == 0


@in_child(MGPU_RT_EXCLUSIVE="on", HIPSTUB_FAULT="hipHostRegister:2:1")
def test_hip_is_asked_again_without_what_is_idle(mgpu: Mgpu) -> None:
    """HIP may refuse memory because too many pages are pinned."""
    first, second = mgpu.ffi.new("char[]", PAGE), mgpu.ffi.new("char[]", PAGE)
    mgpu.MemHostRegister(first, PAGE)
    mgpu.MemHostUnregister(first)
    assert mgpu.count("hipHostUnregister") == 0
    mgpu.MemHostRegister(second, PAGE)
    assert mgpu.counts("hipHostRegister", "hipHostUnregister") == {
        "hipHostRegister": 3,
        "hipHostUnregister": 1,
    }
    assert mgpu.stderr() == ""


def mapped(pages: int) -> tuple[mmap.mmap, int]:
    """Returns new memory, and its address."""
    memory = mmap.mmap(-1, pages * PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return memory, ctypes.addressof(ctypes.c_char.from_buffer(memory))


def read_bytes() -> int:
    """Returns the number of bytes that the process has read from files."""
    return int(Path("/proc/self/io").read_text().split()[1])


def mappings() -> int:
    return len(Path("/proc/self/maps").read_bytes().splitlines())


@in_cases(("idle", "held"), MGPU_RT_EXCLUSIVE="on")
def test_registrations_leave_the_program_its_mappings(mgpu: Mgpu, case: str) -> None:
    """Each watched range splits a mapping, and the kernel limits the number of mappings. So the
    library watches at most 2,000 ranges of registrations, idle or held."""
    count, most = 5_000, 2_000
    _memory, address = mapped(2 * count)
    before = mappings()
    for i in range(count):
        at = mgpu.ffi.cast("void *", address + 2 * i * PAGE)
        mgpu.MemHostRegister(at, PAGE)
        if case == "idle":
            mgpu.MemHostUnregister(at)
    assert mappings() - before <= 2 * most + 10
    if case == "idle":
        assert mappings() - before > 100
        mgpu.MemHostRegister(at, PAGE)  # the last range is still cached
        assert mgpu.count("hipHostUnregister") >= count - most
    assert mgpu.count("hipHostRegister") == count


@in_child(MGPU_RT_EXCLUSIVE="on")
def test_an_empty_cache_lets_the_program_move_its_mappings(mgpu: Mgpu) -> None:
    """docs/rule.md and `mgpu-rt doctor` say that mremap fails before mgpu_rt_empty_cache."""
    c = ctypes.CDLL(None, use_errno=True)
    c.mmap.restype = c.mremap.restype = ctypes.c_void_p
    size, failed = 16 * PAGE, ctypes.c_void_p(-1).value
    address = c.mmap(None, ctypes.c_size_t(size), 3, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)

    def grow() -> int:
        return c.mremap(
            ctypes.c_void_p(address), ctypes.c_size_t(size), ctypes.c_size_t(2 * size), 1
        )

    part = mgpu.ffi.cast("void *", address + 4 * PAGE)
    mgpu.MemHostRegister(part, PAGE)
    mgpu.MemHostUnregister(part)
    assert (grow(), ctypes.get_errno()) == (failed, errno.EFAULT)
    mgpu.lib.mgpu_rt_empty_cache()
    assert grow() != failed


@pytest.mark.skipif(KERNEL < (6, 11), reason="the kernel searches no single mapping")
@in_child(MGPU_RT_EXCLUSIVE="on")
def test_a_register_costs_no_more_in_a_process_with_many_mappings(mgpu: Mgpu) -> None:
    _parts, address = mapped(8000)
    protect = ctypes.CDLL(None).mprotect
    for i in range(0, 8000, 2):
        assert protect(ctypes.c_void_p(address + i * PAGE), PAGE, mmap.PROT_READ) == 0
    _memory, address = mapped(100)
    before = read_bytes()
    for i in range(100):
        mgpu.MemHostRegister(mgpu.ffi.cast("void *", address + i * PAGE), PAGE)
    assert mgpu.count("hipHostRegister") == 100
    assert read_bytes() - before < 100_000  # /proc/self/maps alone has 300,000 bytes


def test_in_a_container_every_call_is_hips_and_the_library_says_so(path: Path) -> None:
    variables = {"MGPU_RT_EXCLUSIVE": "on", "MGPU_RT_VERBOSE": "1", "HIPSTUB_PINS": "1"}
    python, *words = refusing(USERFAULTFD, path, "passes")
    done = run_program(Path(python), *words, **variables)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("the system call userfaultfd is forbidden here") == 1


# ---- steps: a register and an unregister are interrupted at each instruction or system call ------


@pytest.mark.check
def test_a_handler_may_unmap_memory_at_each_instruction(steps: Path) -> None:
    """The thread that reads events must not wait for the interrupted thread: until an event is
    read, the kernel keeps the handler waiting."""
    run(steps, "signal")


@pytest.mark.check
@pytest.mark.parametrize("case", ["dropped", "mapped"])
def test_pages_may_change_at_any_instruction(steps: Path, case: str) -> None:
    run(steps, case, 131)


@pytest.mark.check
def test_a_program_may_take_the_descriptor_before_each_system_call(steps: Path) -> None:
    """The library must not read the program's pipe, and must know that its watch is lost."""
    settings = {"MGPU_RT_EXCLUSIVE": "on", "MGPU_RT_MANAGER": "off", "HIPSTUB_PINS": "1"}
    no_such_call, count = 3, 0
    while (done := run_program(steps, "closed", count, **settings)).returncode == 0:
        count += 1
    assert done.returncode == no_such_call, (count, done.stderr)
    assert count > 10


@pytest.mark.check
def test_a_userfaultfd_of_the_program_is_not_taken_for_the_watch(steps: Path) -> None:
    _, record = run(steps, "replaced")
    assert registrations(record) == 4


@pytest.mark.check
@pytest.mark.parametrize("limit", ["", "64K"])
def test_registering_again_and_unregistering_make_two_system_calls(steps: Path, limit: str) -> None:
    settings = {"MGPU_RT_EXCLUSIVE": "on", "MGPU_RT_MANAGER": "off", "HIPSTUB_PINS": "1"}
    done = run_program(steps, "calls", MGPU_RT_MEMORY_LIMIT=limit, **settings)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == 2
