"""Tests that a recording is complete after each way to end a program, and that it describes itself.
MGPU_RT_STATS and MGPU_RT_TRACE name its file."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import stat
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mgpu_rt import _record_json
from mgpu_rt._record import Damaged, Recording
from tests.support import folders, known, recordings
from tests.support.child import Mgpu, environment, in_child, library
from tests.support.command import assert_sentence, invoke
from tests.support.folders import in_folder
from tests.support.patience import HANG, run_process

PROGRAM = r"""
#include "ends.h"
#include <locale.h>

static void work(void) {
    static char host[4096];
    void *stream = mgpuStreamCreate();
    void *memory = mgpuMemAlloc(sizeof host, stream, 0);
    void *other = mgpuMemAlloc(2 * sizeof host, stream, 0);
    mgpuMemcpy(memory, host, 1000, stream);
    mgpuMemcpy(other, memory, 200, stream);
    mgpuMemcpy(host, memory, 30, stream);
    mgpuMemcpy(host, host + 100, 4, stream);
    mgpuMemset32(memory, 0, 5, stream);
    mgpuMemFree(other, stream);
    mgpuMemFree(memory, stream);
    mgpuStreamDestroy(stream);
}

static void own_handler(int number) {
    (void)number;
    _exit(7);
}

/* A child that calls the library, and one that does not. */
static void fork_children(void) {
    for (int calls = 0; calls < 2; calls++) {
        const int child = fork();
        if (!child) {
            if (calls)
                work();
            exit(0);
        }
        waitpid(child, NULL, 0);
    }
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    setlocale(LC_ALL, "");
    work();
    if (strcmp(how, "chdir") == 0 && chdir("/") != 0)
        return 1;
    if (strcmp(how, "fork") == 0)
        fork_children();
    if (strcmp(how, "handler") == 0) {
        signal(SIGTERM, own_handler);
        raise(SIGTERM);
    }
    end_by(how, argv);
    return 0;
}
"""

#: Maps each way to end the program without exit to the resulting status.
CUT_OFF = {
    "_exit": 0,
    "abort": -signal.SIGABRT,
    "SIGKILL": -signal.SIGKILL,
    "SIGTERM": -signal.SIGTERM,
    "SIGINT": -signal.SIGINT,
    "SIGSEGV": -signal.SIGSEGV,
    "handler": 7,
}
ENDED = {**CUT_OFF, "": 0, "quick_exit": 0, "chdir": 0}
CALLS = {
    "mgpuStreamCreate": 1,
    "mgpuMemAlloc": 2,
    "mgpuMemcpy": 4,
    "mgpuMemset32": 1,
    "mgpuMemFree": 2,
    "mgpuStreamDestroy": 1,
}
COPIES = {
    "to_device": {"calls": 1, "bytes": 1000},
    "on_device": {"calls": 1, "bytes": 200},
    "from_device": {"calls": 1, "bytes": 30},
    "unknown": {"calls": 1, "bytes": 4},
    "fill": {"calls": 1, "bytes": 20},
}


def build_program() -> Path:
    """Builds PROGRAM, linked with the library under test."""
    return known.program(folders.folder("record"), PROGRAM, name="recorded")


@pytest.fixture(scope="module")
def program() -> Path:
    return build_program()


def run(program: Path, folder: Path, how: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    """Runs a program in a folder; relative paths refer to this folder."""
    wanted = {"MGPU_RT_MANAGER": "off", "HIPSTUB_MODE": "fast", **env}
    return run_process([program, how], environment(**wanted), cwd=folder)


def made(stats: dict) -> dict[str, int]:
    return {name: counter["calls"] for name, counter in stats["abi"].items()}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# ---- each way to end ----


@pytest.mark.parametrize(("how", "status"), ENDED.items())
def test_a_recording_has_all_that_was_counted(
    how: str, status: int, program: Path, tmp_path: Path
) -> None:
    """One file contains the statistics and the trace."""
    done = run(program, tmp_path, how, MGPU_RT_STATS="trace.json", MGPU_RT_TRACE="trace.json")
    assert (done.returncode, done.stderr) == (status, "")
    assert names(tmp_path) == ["trace.json"]
    stats = recordings.stats(tmp_path / "trace.json")
    assert made(stats) == CALLS
    assert stats["copies"] == COPIES
    assert stats["process"]["ended"] == ("unfinished" if how in CUT_OFF else "exit")
    assert stats["process"]["program"] == "recorded"
    assert stats["process"]["seconds"] > 0
    assert stats["memory"]["0"]["peak_allocated"] == 3 * 4096
    trace = recordings.trace(tmp_path / "trace.json")
    events = trace["traceEvents"]
    assert Counter(e["name"] for e in events if e.get("cat") == "program") == CALLS
    assert trace["otherData"]["ended"] == stats["process"]["ended"]


# ---- one file for each process and rank ----


def test_a_child_of_a_process_that_has_started_hip_has_no_recording(
    program: Path, tmp_path: Path
) -> None:
    run(program, tmp_path, "fork", MGPU_RT_STATS="1", MGPU_RT_TRACE="trace")
    assert names(tmp_path) == ["trace"]
    assert made(recordings.stats(tmp_path / "trace")) == CALLS


def test_a_program_after_exec_has_a_recording_of_its_own(program: Path, tmp_path: Path) -> None:
    run(program, tmp_path, "exec", MGPU_RT_STATS="stats-%p.json")
    first, second = (tmp_path / name for name in names(tmp_path))
    number = recordings.stats(first)["process"]["pid"]
    assert (first.name, second.name) == (f"stats-{number}.json", f"stats-{number}.json.{number}")
    ended = [recordings.stats(path)["process"]["ended"] for path in (first, second)]
    assert ended == ["unfinished", "exit"]


def test_a_file_is_never_replaced(program: Path, tmp_path: Path) -> None:
    (tmp_path / "stats.json").write_text("precious")
    done = run(program, tmp_path, MGPU_RT_STATS="stats.json")
    assert (tmp_path / "stats.json").read_text() == "precious"
    (other,) = set(names(tmp_path)) - {"stats.json"}
    assert other == f"stats.json.{recordings.stats(tmp_path / other)['process']['pid']}"
    (line,) = done.stderr.splitlines()
    assert line.endswith(f"'stats.json' exists, so '{other}' gets the recording")


@pytest.mark.parametrize(
    ("pattern", "variable", "name"),
    [
        ("s.json", "OMPI_COMM_WORLD_RANK", "s.json.rank3"),
        ("s.json", "PMI_RANK", "s.json.rank3"),
        ("s.json", "SLURM_PROCID", "s.json.rank3"),
        ("s.json", "RANK", "s.json"),  # torchrun sets LOCAL_RANK too
        ("s.json", "NOTHING", "s.json"),
        ("100%", "NOTHING", "100%"),
    ],
)
def test_a_rank_shows_in_the_name_of_its_file(
    pattern: str, variable: str, name: str, program: Path, tmp_path: Path
) -> None:
    run(program, tmp_path, MGPU_RT_STATS=pattern, **{variable: "3"})
    stats = recordings.stats(tmp_path / name)
    assert stats["process"]["rank"] == (None if variable in ("NOTHING", "RANK") else 3)


STARTS = "import ctypes, os, sys; input(); ctypes.CDLL(sys.argv[1]).mgpuStreamCreate()"


def test_concurrent_starts_lose_no_recording(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", STARTS, library()],
            env=environment(MGPU_RT_STATS="stats", MGPU_RT_MANAGER="off", HIPSTUB_MODE="fast"),
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for _ in range(6)
    ]
    for process in processes:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
    assert [process.wait(HANG) for process in processes] == [0] * 6
    written = [recordings.stats(path)["process"]["pid"] for path in tmp_path.iterdir()]
    assert sorted(written) == sorted(process.pid for process in processes)


# ---- places that cannot be written ----

EXISTS = "it exists and is not a file: name a new file"
UNWRITABLE: dict[str, tuple[Callable[[Path], object], str]] = {
    "/nowhere/s": (lambda _: None, "No such file or directory"),
    "s" * 256: (lambda _: None, "File name too long"),
    "fifo": (os.mkfifo, EXISTS),
    "folder": (Path.mkdir, EXISTS),
    "link": (lambda path: path.symlink_to("victim"), EXISTS),
    "/dev/full": (lambda _: None, EXISTS),
}


@pytest.mark.parametrize("variable", ["MGPU_RT_STATS", "MGPU_RT_TRACE"])
@pytest.mark.parametrize("name", UNWRITABLE, ids=lambda name: name[:12])
def test_an_unwritable_path_is_named_in_one_line(
    name: str, variable: str, program: Path, tmp_path: Path
) -> None:
    """The library opens nothing that exists, so it follows no link and waits for no reader."""
    make, cause = UNWRITABLE[name]
    (tmp_path / "victim").write_text("precious")
    make(tmp_path / name)
    before = names(tmp_path)
    done = run(program, tmp_path, **{variable: name})
    assert done.returncode == 0
    assert done.stderr == f"mgpu_rt: {variable}: cannot write '{name}': {cause}\n"
    assert names(tmp_path) == before
    assert (tmp_path / "victim").read_text() == "precious"


def test_a_trace_contains_the_statistics(program: Path, tmp_path: Path) -> None:
    done = run(program, tmp_path, MGPU_RT_STATS="stats", MGPU_RT_TRACE="trace")
    assert done.stderr == (
        "mgpu_rt: MGPU_RT_STATS: the statistics are in the recording that MGPU_RT_TRACE names\n"
    )
    assert names(tmp_path) == ["trace"]
    assert made(recordings.stats(tmp_path / "trace")) == CALLS


@pytest.mark.parametrize("variable", ["MGPU_RT_STATS", "MGPU_RT_TRACE"])
def test_the_null_device_asks_for_counts_without_a_file(
    variable: str, program: Path, tmp_path: Path
) -> None:
    done = run(program, tmp_path, **{variable: "/dev/null"})
    assert (done.returncode, done.stderr, names(tmp_path)) == (0, "", [])


def test_only_the_owner_can_read_a_recording(program: Path, tmp_path: Path) -> None:
    run(program, tmp_path, MGPU_RT_STATS="stats")
    assert stat.S_IMODE((tmp_path / "stats").stat().st_mode) == 0o600


#: Limits of the program, and what its recording then is. A write beyond the limit of file sizes
#: would end the program by SIGXFSZ, which Python ignores.
LIMITS = (
    *((resource.RLIMIT_FSIZE, limit, "'t': File too large\n") for limit in (0, 100_000)),
    *((resource.RLIMIT_NOFILE, limit, "") for limit in (4, 5, 6)),
)


@pytest.mark.parametrize(("kind", "limit", "said"), LIMITS)
def test_limits_of_files_do_not_end_the_program(
    kind: int, limit: int, said: str, program: Path, tmp_path: Path
) -> None:
    def limit_files() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(kind, (limit, limit))

    env = environment(MGPU_RT_TRACE="t", MGPU_RT_MANAGER="off")
    done = run_process([program], env, cwd=tmp_path, preexec_fn=limit_files)
    assert (done.returncode, names(tmp_path)) == (0, [] if said else ["t"])
    assert done.stderr.endswith(said) and bool(done.stderr) == bool(said)


def test_an_empty_file_of_a_process_tells_that_its_recording_is_lost(
    program: Path, tmp_path: Path
) -> None:
    """With %p, no later process takes the name. `mgpu-rt run` counts such files."""
    limit = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))}
    env = environment(MGPU_RT_TRACE="t%p", MGPU_RT_MANAGER="off")
    done = run_process([program], env, cwd=tmp_path, **limit)
    (file,) = tmp_path.iterdir()
    assert done.stderr.endswith(f"'{file.name}': File too large\n")
    assert file.stat().st_size == 0


@in_child(policies=("builtin",), MGPU_RT_TRACE="trace")
@in_folder
def test_a_program_without_memory_for_a_trace_goes_on(mgpu: Mgpu) -> None:
    """The program continues without its trace, which takes 64 MiB of address space."""
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limit = held + (32 << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    mgpu.StreamDestroy(mgpu.StreamCreate())
    assert "trace': Cannot allocate memory" in mgpu.stderr()
    assert names(Path()) == []


@contextmanager
def room_for(size: str, folder: Path) -> Iterator[None]:
    """Yields a file system of a given size."""
    if os.geteuid() != 0:
        pytest.skip("only root mounts a file system")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder]).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


def test_a_full_disk_is_named_at_the_first_call(program: Path, tmp_path: Path) -> None:
    """The library allocates the file's space on the disk at the first call, so later nothing is
    lost for lack of space."""
    with room_for("64k", tmp_path):
        done = run(program, tmp_path, MGPU_RT_STATS="stats.json")
        assert done.returncode == 0
        (line,) = done.stderr.splitlines()
        assert line.endswith("'stats.json': No space left on device")
        assert names(tmp_path) == []


# ---- reading ----


@pytest.fixture(scope="module")
def killed(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("killed")
    run(program, folder, "SIGKILL", MGPU_RT_STATS="stats")
    run(program, folder, "SIGKILL", MGPU_RT_TRACE="trace")
    return folder


def test_a_recording_of_another_release_is_read(killed: Path, tmp_path: Path) -> None:
    """The head names each column. The recording of the other release has one column more and one
    renamed column, whose absence a sentence names."""
    content = (killed / "stats").read_bytes()
    path = tmp_path / "other"
    path.write_bytes(content.replace(b"0.1.0", b"9.8.7", 1).replace(b"peak_reserved", b"x" * 13, 1))
    result = invoke("stats", str(path))
    assert_sentence(result.exit_code, result.stderr, "the recording is damaged")
    path.write_bytes(content.replace(b"0.1.0", b"9.8.7", 1).replace(b"plain\0", b"other\0", 1))
    found = recordings.stats(path)
    assert recordings.read(path).version == "9.8.7"
    assert made(found) == CALLS
    assert found["graphs"]["other"] == 0


def test_damaged_recordings_give_json_or_a_reason(killed: Path) -> None:
    """Any bytes may follow the first bytes of a recording."""
    for name, seeds in (("stats", 20), ("trace", 3)):
        whole = (killed / name).read_bytes()
        for seed in range(seeds):
            chance = random.Random(seed)
            content = bytearray(whole)
            for _ in range(300):
                at = chance.randrange(16 if seed % 2 else 16384, min(len(whole), 1 << 20) - 8)
                content[at : at + 8] = chance.choice((b"\xff" * 8, bytes(8), chance.randbytes(8)))
            try:
                found = Recording(bytes(content))
                json.dumps(_record_json.statistics(found))
                if found.is_trace:
                    json.loads(_record_json.trace(found))
            except (Damaged, KeyError, ValueError, IndexError):
                assert seed % 2, "the head is whole"
