"""Tests the emulated device through HIP: launches, memory, copies, events, and a clean exit."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable

import pytest

from mgpu_rt import _hip_search
from mgpu_rt._cli import softgpu
from tests.support.suites import in_check

from .conftest import Run

TARGETS = ("gfx90a", "gfx906", "gfx908")
LAUNCHES = (
    "params",
    "extra",
    "null_stream",
    "many_launches",
    "many_streams",
    "event_times",
    "wait_event",
    "many_events",
    "threads",
    "stores",
    "meeting",
)
MEMORY = (
    "host_register",
    "register_neighbours",
    "host_memory",
    "async_memory",
    "copies",
    "copies_2d",
    "device_copies",
    "memsets",
    "registered_copies",
    "large_copies",
)
PROCESS = ("fork_before", "fork_after", "exit_busy", "exit_running")
# A fault ends the process by SIGABRT: HIP aborts, or ROCr aborts after the memory event.
ABORTED = -signal.SIGABRT


def succeed(run: Run, program: str, case: str, **options: object) -> str:
    done = run(program, case, **options)
    assert done.returncode == 0, f"{program} {case}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_launches_work(run: Run) -> None:
    succeed(run, "launch", ",".join(LAUNCHES))


def test_a_cooperative_launch_works(run: Run) -> None:
    succeed(run, "launch", "cooperative")


@pytest.mark.check
@pytest.mark.parametrize("chip", TARGETS)
def test_every_target_runs_its_own_code(run: Run, chip: str) -> None:
    succeed(run, "launch", "stores", chip=chip)
    succeed(run, "memory", "memsets", chip=chip)
    assert chip in succeed(run, "process", "names", chip=chip)


@pytest.mark.parametrize("case", ("wake", "wake_all", "wake_later"))
def test_an_interrupt_wakes_all_threads_that_sleep_on_its_event(run: Run, case: str) -> None:
    succeed(run, "interrupt", case)


def test_ranges_at_one_address_both_stay(alone: Callable[..., list[str]]) -> None:
    """Two ranges begin at one address, so deregistering this address removes neither range."""
    done, invalid, unknown = "0", "3", "36"  # parameter; memory not registered
    assert alone("ranges", "gfx90a") == ["1", invalid, done, "1", "1", done, unknown]


def test_memory_works(run: Run) -> None:
    succeed(run, "memory", ",".join(MEMORY))


@pytest.mark.parametrize(
    "copies", in_check(("native", "kernels"), lambda copies: copies == "native")
)
def test_copies_work_without_a_copy_engine(run: Run, copies: str) -> None:
    variables = {"HSA_ENABLE_SDMA": "0", "MGPU_RT_SOFTGPU": f"gfx90a,copies={copies}"}
    succeed(run, "memory", "copies,device_copies,registered_copies", variables=variables)


@pytest.mark.parametrize("case", ("memory_info", "out_of_memory"))
def test_memory_is_as_large_as_asked_for(run: Run, case: str) -> None:
    succeed(run, "memory", case, variables={"MGPU_RT_SOFTGPU": "memory=256M"})


@pytest.mark.parametrize("case", PROCESS)
def test_processes_work(run: Run, case: str) -> None:
    succeed(run, "process", case)


def test_several_devices_have_their_names(run: Run) -> None:
    two = {"MGPU_RT_SOFTGPU": "gfx90a,gfx906"}
    names = succeed(run, "process", "names", variables=two).splitlines()
    assert [name.split()[1] for name in names] == ["gfx90a", "gfx906"]


def test_devices_copy_to_their_peers(run: Run) -> None:
    succeed(run, "memory", "peers", variables={"MGPU_RT_SOFTGPU": "gfx90a,gfx90a"})


@pytest.mark.parametrize(
    ("variables", "message"),
    (
        ({"MGPU_RT_SOFTGPU": "gfx1100"}, "'gfx1100' is not a target it can present"),
        ({"MGPU_RT_SOFTGPU": "gfx90a,"}, "'' is not a target it can present"),
        ({"MGPU_RT_SOFTGPU": "memory=lots"}, "memory=lots: want a size of at least 16M"),
        ({"MGPU_RT_SOFTGPU": "gfx90a,memory=1M"}, "want a size of at least 16M"),
        ({"MGPU_RT_SOFTGPU": "gfx90a,memories=4G"}, "'memories=4G' is none of its settings (mem"),
    ),
)
def test_wrong_settings_are_named(run: Run, variables: dict[str, str], message: str) -> None:
    done = run("process", "no_device", variables=variables)
    assert done.returncode == 0
    assert message in done.stderr
    assert done.stdout == "hipInit: 101\n"


@pytest.mark.skipif(
    _hip_search.knows(str(softgpu.hip({})), "gfx942"), reason="this HIP supports the chip"
)
def test_a_device_that_hip_does_not_know_is_none(run: Run) -> None:
    """HIP 5.2.3 would abort the process if the driver listed a chip that HIP does not know."""
    done = run("process", "no_device", variables={"MGPU_RT_SOFTGPU": "gfx90a,gfx942"})
    assert (done.returncode, done.stdout) == (0, "hipInit: 101\n")
    assert "this HIP does not know gfx942. HIP 5.7 and later ones do" in done.stderr


@pytest.mark.parametrize(
    ("variables", "message"),
    (
        ({"MGPU_RT_SOFTGPU": "gfx90a,threads=some"}, "want a number of threads"),
        ({"MGPU_RT_SOFTGPU": "gfx90a,copies=kernel"}, "want native or kernels"),
    ),
)
def test_unnecessary_wrong_settings_are_ignored_with_a_warning(
    run: Run, variables: dict[str, str], message: str
) -> None:
    done = run("process", "names", variables=variables)
    assert done.returncode == 0
    assert message in done.stderr


def test_a_fault_ends_the_process_and_names_the_kernel(run: Run) -> None:
    done = run("process", "wild_store")
    assert done.returncode == ABORTED
    assert "went on" not in done.stdout
    assert re.search(r"^softgpu: .*\bstore\b", done.stderr, re.MULTILINE)


def test_a_fault_at_the_hosts_address_names_the_devices(run: Run) -> None:
    done = run("process", "host_pointer")
    device = done.stdout.splitlines()[0]
    said = r"memory that was registered, which the device knows at (0x[0-9a-f]+)"
    assert re.search(said, done.stderr)[1] == device


def test_an_idle_process_costs_next_to_no_cpu(run: Run) -> None:
    """An idle process uses 0.05 ms of CPU time per second if the device can arm doorbells. The
    process uses more if the system forbids userfaultfd."""
    milliseconds = float(succeed(run, "process", "idle").split()[0])
    assert milliseconds < 200


def test_a_launch_takes_microseconds(run: Run) -> None:
    """A launch takes 2 us with two cores, and 40 us if HIP and the queue share one core.

    A single fast launch suffices, because other launches may be slow on a busy machine.
    """
    best = float(succeed(run, "process", "latency").split()[0])
    assert best < 200
