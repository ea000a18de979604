"""Makes each allocation of the library fail in turn: the program must run as with stock, which
allocates nothing.

Only allocations of the library fail in these tests: HIP's own allocations succeed. The library
caches only objects for which it has memory; all other calls go to HIP.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support import allocator
from tests.support.child import environment
from tests.support.images import code_object
from tests.support.known import program as compiled
from tests.support.known import run_program
from tests.support.programs import STOCK, Outcome, Way, run, ways
from tests.support.suites import in_check

PROGRAMS = ("forum", "churn", "samename", "events", "many")
ROUNDS = 3
#: The calls of HIP that submit work. The program's results depend on these calls and on their
#: order.
WORK = ("hipModuleLaunchKernel", "hipMemcpyAsync", "hipMemsetD32Async", "hipMemsetD16Async")


def play(program: str, way: Way, **changes: str) -> Outcome:
    iterations = None if program in ("events", "vecadd") else ROUNDS
    return run(program, 22, way, policy="builtin", iterations=iterations, **changes)


def work(outcome: Outcome) -> list[tuple[str, int]]:
    """Returns the name of each submitted call in order, and the result that HIP returned."""
    return [(call["name"], call["result"]) for call in outcome.calls if call["name"] in WORK]


@functools.cache
def stock(program: str) -> Outcome:
    return play(program, Way(STOCK))


def assert_as_stock(program: str, outcome: Outcome) -> None:
    expected = stock(program)
    assert (outcome.signal, outcome.stdout, outcome.stderr) == (0, expected.stdout, "")
    assert work(outcome) == work(expected)
    assert outcome.log["misuse"] == []


def allocations(program: str, log: Path, **changes: str) -> int:
    """Returns the number of allocations that the library makes."""
    assert_as_stock(program, play(program, ways()["linked"], **allocator.settings(log), **changes))
    return allocator.read(log).count


@pytest.mark.parametrize("program", in_check(PROGRAMS, lambda program: program == "many"))
def test_any_single_allocation_may_fail(program: str, tmp_path: Path) -> None:
    count = allocations(program, tmp_path / "log")
    assert count > 8
    for number in range(1, count + 1):
        settings = allocator.settings(tmp_path / "log", fails=str(number))
        assert_as_stock(program, play(program, ways()["linked"], **settings))


@pytest.mark.parametrize(
    ("program", "cache"), [*((program, "on") for program in PROGRAMS), ("churn", "off")]
)
def test_all_allocations_may_fail(program: str, cache: str, tmp_path: Path) -> None:
    settings = allocator.settings(tmp_path / "log", fails="1-")
    assert_as_stock(program, play(program, ways()["linked"], **settings, MGPU_RT_CACHE=cache))


def test_hip_is_found_after_a_search_without_memory(tmp_path: Path) -> None:
    count = allocations("forum", tmp_path / "log", MGPU_RT_HIP="")
    for number in range(1, count + 1):
        settings = allocator.settings(tmp_path / "log", fails=str(number))
        outcome = play("forum", ways()["linked"], **settings, MGPU_RT_HIP="")
        assert_as_stock("forum", outcome)


def test_a_thread_without_memory_chooses_its_device_once(tmp_path: Path) -> None:
    settings = allocator.settings(tmp_path / "log", fails="1-")
    for way in ({}, settings):
        outcome = play("forum", ways()["linked"], MGPU_RT_DEVICE="0", **way)
        assert [call["name"] for call in outcome.calls].count("hipSetDevice") == 1


#: A program that creates more events than the library's first table can hold.
MANY_EVENTS = """
#include "program.h"
int main(void) {
    enum { EVENTS = 300 };
    void *events[EVENTS];
    int made = 0;
    for (int i = 0; i < EVENTS; i++)
        made += (events[i] = mgpuEventCreate()) != NULL;
    for (int i = 0; i < EVENTS; i++)
        mgpuEventDestroy(events[i]);
    printf("%d\\n", made);
    return 0;
}
"""


def test_a_table_that_cannot_grow_leaves_the_rest_to_hip(tmp_path: Path) -> None:
    settings = allocator.settings(tmp_path / "log", largest="4000")
    done = run_program(compiled(tmp_path, MANY_EVENTS), MGPU_RT_MANAGER="off", **settings)
    assert (done.stdout, done.stderr) == ("300\n", "")


# ---- no memory to record a stream ----------------------------------------------------------------

#: A program that frees a block on one stream while another stream, created later, uses the block.
#: Stock's hipFree waits for all work on the device, so the later stream cannot overwrite values of
#: the memory's next owner.
EARLY_FREE = """
#include "program.h"
int main(void) {
    int out[64] = {0};
    void *stream = mgpuStreamCreate();
    void *block = mgpuMemAlloc(sizeof out, stream, 0);
    void *other = mgpuStreamCreate();
    mgpuMemset32(block, 1, 64, other);
    mgpuMemFree(block, stream);
    block = mgpuMemAlloc(sizeof out, stream, 0);
    mgpuMemset32(block, 7, 64, stream);
    mgpuStreamSynchronize(stream);
    mgpuStreamSynchronize(other);
    mgpuMemcpy(out, block, sizeof out, stream);
    mgpuStreamSynchronize(stream);
    printf("%d\\n", out[63]);
    return 0;
}
"""


def check_each_allocation(path: Path, words: Sequence[Path], said: str, **env: str) -> None:
    """Runs a program with each of the library's allocations failing, and with all from each on."""
    log = path.with_name("log")
    log.unlink(missing_ok=True)
    fails = [""]
    for which in fails:
        settings = allocator.settings(log, **({"fails": which} if which else {}))
        done = run_program(path, *words, MGPU_RT_MANAGER="off", **env, **settings)
        assert (done.stdout, done.stderr) == (said, ""), which
        if not which:
            count = allocator.read(log).count
            fails += [f"{number}{end}" for number in range(1, count + 1) for end in ("", "-")]


def test_a_free_waits_for_a_stream_that_no_memory_was_left_to_record(tmp_path: Path) -> None:
    check_each_allocation(compiled(tmp_path, EARLY_FREE), (), "7\n", HIPSTUB_ASYNC="held")


# ---- a module that the program unloads by calling HIP --------------------------------------------

#: The program unloads a module by calling HIP, which gives the module's handle to the next module.
#: Prints how often HIP loaded an image, and how many misuses the stub counted, such as a launch of
#: an unloaded function.
HANDLE_AGAIN = """
#include "program.h"
static void *map(const char *path) {
    return mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE, open(path, O_RDONLY), 0);
}
static void *load_and_launch(const void *image) {
    void *out = NULL, *params[] = {&out, &out, &out, &out, &out};
    void *module = mgpuModuleLoad(image, 0);
    mgpuLaunchKernel(mgpuModuleGetFunction(module, "mark"), 1, 1, 1, 1, 1, 1, 0, NULL, params,
                     NULL, 5);
    return module;
}
int main(int count, char **words) {
    const void *first = map(words[1]), *second = map(words[2]);
    (void)count;
    hipModuleUnload(load_and_launch(first));
    mgpuModuleUnload(load_and_launch(second));
    load_and_launch(first);
    printf("%d %d\\n", (int)hipstub_count("hipModuleLoadData"), (int)hipstub_misuse());
}
"""


def test_a_module_without_memory_for_its_image_is_not_the_one_before(tmp_path: Path) -> None:
    path = compiled(tmp_path, HANDLE_AGAIN, environment()["MGPU_RT_HIP"])
    images = [tmp_path / name for name in ("first", "second")]
    for image in images:
        image.write_bytes(code_object("samename", image.name))
    check_each_allocation(path, images, "3 0\n", HIPSTUB_REUSE="1")
