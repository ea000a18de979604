"""Tests that counts are available after each way to end a program. MGPU_RT_STATS and MGPU_RT_TRACE
record in files; at an ordinary exit, JSON replaces the recordings."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support import folders
from tests.support.child import environment, library
from tests.support.command import assert_sentence, invoke
from tests.support.compiled import compile_c
from tests.support.locales import make_locales
from tests.support.patience import HANG

PROGRAM = r"""
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern void *mgpuStreamCreate(void);
extern void mgpuStreamDestroy(void *stream);
extern void *mgpuMemAlloc(unsigned long bytes, void *stream, int shared);
extern void mgpuMemcpy(void *to, void *from, unsigned long bytes, void *stream);
extern void mgpuMemset32(void *to, int value, unsigned long count, void *stream);
extern void mgpuMemFree(void *memory, void *stream);

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
    if (strcmp(how, "_exit") == 0)
        _exit(0);
    if (strcmp(how, "quick_exit") == 0)
        quick_exit(0);
    if (strcmp(how, "abort") == 0)
        abort();
    if (strcmp(how, "SIGKILL") == 0)
        raise(SIGKILL);
    if (strcmp(how, "SIGTERM") == 0)
        raise(SIGTERM);
    if (strcmp(how, "SIGINT") == 0) {
        signal(SIGINT, SIG_DFL); /* a shell's job in the background has it ignored */
        raise(SIGINT);
    }
    if (strcmp(how, "crash") == 0)
        *(volatile int *)0 = 1;
    if (strcmp(how, "exec") == 0)
        execl(argv[0], argv[0], "", (char *)NULL);
    if (strcmp(how, "chdir") == 0 && chdir("/") != 0)
        return 1;
    if (strcmp(how, "fork") == 0)
        fork_children();
    if (strcmp(how, "handler") == 0) {
        signal(SIGTERM, own_handler);
        raise(SIGTERM);
    }
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
    "crash": -signal.SIGSEGV,
    "handler": 7,
}
CALLS = {
    "mgpuStreamCreate": 1,
    "mgpuMemAlloc": 2,
    "mgpuMemcpy": 4,
    "mgpuMemset32": 1,
    "mgpuMemFree": 2,
    "mgpuStreamDestroy": 1,
}


def build_program() -> Path:
    """Builds PROGRAM, linked with the library under test."""
    out = folders.folder("record") / "recorded"
    flags = (str(library()), f"-Wl,-rpath,{library().parent}")
    return compile_c(out, PROGRAM, *flags)


@pytest.fixture(scope="module")
def program() -> Path:
    return build_program()


def run(program: Path, folder: Path, how: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    """Runs a program in a folder; relative paths refer to this folder."""
    wanted = {"MGPU_RT_MANAGER": "off", "HIPSTUB_MODE": "fast", **env}
    return subprocess.run(
        [program, how],
        env=environment(**wanted),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=HANG,
    )


def made(stats: dict) -> dict[str, int]:
    return {name: counter["calls"] for name, counter in stats["abi"].items()}


def shown(path: Path) -> dict:
    """Returns the content of the file as `mgpu-rt stats --json` prints it."""
    result = invoke("stats", "--json", str(path))
    assert (result.exit_code, result.stderr) == (0, "")
    return json.loads(result.stdout)


# ---- each way to end ----


@pytest.mark.parametrize(("how", "status"), CUT_OFF.items())
def test_a_killed_program_leaves_all_that_was_counted(
    how: str, status: int, program: Path, tmp_path: Path
) -> None:
    done = run(program, tmp_path, how, MGPU_RT_STATS="stats.json", MGPU_RT_TRACE="trace.json")
    assert (done.returncode, done.stderr) == (status, "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["stats.json", "trace.json"]
    first = (tmp_path / "stats.json").read_bytes().splitlines()[0].decode()
    assert first.startswith("mgpu_rt ")
    assert first.endswith("which has not ended by exit: `mgpu-rt stats FILE` shows it")
    stats = shown(tmp_path / "stats.json")
    assert made(stats) == CALLS
    assert stats["process"]["ended"] == "unfinished"
    assert stats["process"]["program"] == "recorded"
    assert stats["process"]["seconds"] > 0
    assert stats["memory"]["0"]["peak_allocated"] == 3 * 4096
    out = tmp_path / "out.json"
    result = invoke("stats", str(tmp_path / "trace.json"), "-o", str(out))
    assert (result.exit_code, result.stderr) == (0, "")
    events = json.loads(out.read_text())["traceEvents"]
    assert Counter(e["name"] for e in events if e.get("cat") == "program") == CALLS


@pytest.mark.parametrize("how", ["", "quick_exit", "chdir"])
def test_an_exit_writes_json(how: str, program: Path, tmp_path: Path) -> None:
    done = run(program, tmp_path, how, MGPU_RT_STATS="1,stats.json", MGPU_RT_TRACE="trace.json")
    assert done.returncode == 0
    assert "mgpu_rt: calls of the program" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["stats.json", "trace.json"]
    stats = json.loads((tmp_path / "stats.json").read_text())
    assert made(stats) == CALLS
    assert stats["process"]["ended"] == "exit"
    assert json.loads((tmp_path / "trace.json").read_text())["otherData"]["ended"] == "exit"


def test_json_has_points_whatever_the_locale(program: Path, tmp_path: Path) -> None:
    comma = {
        "LC_ALL": "de_DE.UTF-8",
        "LOCPATH": str(make_locales({"de_DE.UTF-8": ("de_DE", "UTF-8")})),
    }
    run(program, tmp_path, MGPU_RT_STATS="1,stats.json", MGPU_RT_TRACE="trace.json", **comma)
    assert json.loads((tmp_path / "stats.json").read_text())["process"]["seconds"] > 0
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]


def test_a_recording_has_the_numbers_of_the_json(program: Path, tmp_path: Path) -> None:
    """A recording and the JSON differ only in the times and in the work at exit."""
    run(program, tmp_path, "", MGPU_RT_STATS="ended.json")
    run(program, tmp_path, "SIGKILL", MGPU_RT_STATS="killed.json")
    ended, killed = (shown(tmp_path / name) for name in ("ended.json", "killed.json"))
    for part in ("kernels", "copies", "modules"):
        assert ended[part] == killed[part]
    assert made(ended) == made(killed)
    peaks = ("peak_allocated", "peak_reserved", "allocated")
    assert [ended["memory"]["0"][p] for p in peaks] == [killed["memory"]["0"][p] for p in peaks]
    assert {**ended["cache"], "streams": 0, "memory": 0} == {
        **killed["cache"],
        "streams": 0,
        "memory": 0,
    }


# ---- one file for each process and rank ----


def test_a_child_of_fork_has_a_file_of_its_own(program: Path, tmp_path: Path) -> None:
    """Forked children that made no call have no recording."""
    run(program, tmp_path, "fork", MGPU_RT_STATS="stats.json", MGPU_RT_TRACE="trace")
    files = {path.name: path for path in tmp_path.iterdir()}
    assert len(files) == 4
    stats = [json.loads(p.read_text()) for name, p in files.items() if name.startswith("stats")]
    assert [made(each) for each in stats] == [CALLS, CALLS]
    own = {f"stats.{each['process']['pid']}.json" for each in stats}
    assert files.keys() - own == {"stats.json", "trace"} | {
        name for name in files if name.startswith("trace.")
    }


def test_a_program_after_exec_leaves_the_first_recording(program: Path, tmp_path: Path) -> None:
    run(program, tmp_path, "exec", MGPU_RT_STATS="stats.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["stats.2.json", "stats.json"]
    ended = [shown(tmp_path / name)["process"]["ended"] for name in ("stats.json", "stats.2.json")]
    assert ended == ["unfinished", "exit"]


def test_a_recording_of_a_dead_process_gives_way(program: Path, tmp_path: Path) -> None:
    for _ in range(2):
        run(program, tmp_path, "SIGKILL", MGPU_RT_STATS="stats.json")
    run(program, tmp_path, MGPU_RT_STATS="stats.json")
    assert [path.name for path in tmp_path.iterdir()] == ["stats.json"]
    assert shown(tmp_path / "stats.json")["process"]["ended"] == "exit"


@pytest.mark.parametrize(
    ("pattern", "variable", "name"),
    [
        ("s.json", "OMPI_COMM_WORLD_RANK", "s.rank3.json"),
        ("s.json", "PMI_RANK", "s.rank3.json"),
        ("s.json", "SLURM_PROCID", "s.rank3.json"),
        ("s.json", "RANK", "s.json"),  # torchrun sets LOCAL_RANK too
        ("a.b/s", "PMIX_RANK", "a.b/s.rank3"),
        ("s-%r.json", "PMI_RANK", "s-3.json"),
        ("s-%r.json", "NOTHING", "s-0.json"),
        ("s.json", "NOTHING", "s.json"),
        (".s", "PMI_RANK", ".s.rank3"),
        ("100%", "NOTHING", "100%"),
    ],
)
def test_a_rank_shows_in_the_name_of_its_file(
    pattern: str, variable: str, name: str, program: Path, tmp_path: Path
) -> None:
    (tmp_path / "a.b").mkdir()
    run(program, tmp_path, MGPU_RT_STATS=pattern, **{variable: "3"})
    stats = json.loads((tmp_path / name).read_text())
    assert stats["process"]["rank"] == (None if variable in ("NOTHING", "RANK") else 3)


def test_an_output_that_is_no_file_is_written_at_exit(program: Path, tmp_path: Path) -> None:
    done = run(program, tmp_path, MGPU_RT_STATS="/dev/stdout", OMPI_COMM_WORLD_RANK="3")
    assert made(json.loads(done.stdout)) == CALLS


# ---- what is counted ----


def test_copies_are_counted_by_direction(program: Path, tmp_path: Path) -> None:
    run(program, tmp_path, MGPU_RT_STATS="stats.json")
    copies = json.loads((tmp_path / "stats.json").read_text())["copies"]
    assert copies == {
        "to_device": {"calls": 1, "bytes": 1000},
        "on_device": {"calls": 1, "bytes": 200},
        "from_device": {"calls": 1, "bytes": 30},
        "unknown": {"calls": 1, "bytes": 4},
        "fill": {"calls": 1, "bytes": 20},
    }


# ---- places that cannot be written ----


def test_each_unwritable_path_is_named_in_one_sentence(program: Path, tmp_path: Path) -> None:
    for how in ("", "quick_exit"):
        done = run(program, tmp_path, how, MGPU_RT_STATS="/nowhere/s", MGPU_RT_TRACE="/nowhere/t")
        assert done.returncode == 0
        assert done.stderr.splitlines() == [
            f"mgpu_rt: {variable}: cannot write '/nowhere/{name}': No such file or directory"
            for variable, name in (("MGPU_RT_STATS", "s"), ("MGPU_RT_TRACE", "t"))
        ]


def test_a_limit_of_file_sizes_does_not_end_the_program(program: Path, tmp_path: Path) -> None:
    """A write beyond the limit of file sizes would end the program by SIGXFSZ; the JSON is smaller
    than this limit."""
    done = subprocess.run(
        [program],
        env=environment(MGPU_RT_STATS="s", MGPU_RT_TRACE="t", MGPU_RT_MANAGER="off"),
        cwd=tmp_path,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)),
        capture_output=True,
        text=True,
        timeout=HANG,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert made(json.loads((tmp_path / "s").read_text())) == CALLS
    assert "traceEvents" in json.loads((tmp_path / "t").read_text())


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
        assert line.endswith("/stats.json': No space left on device")
        assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_full_at_exit_keeps_the_recording(program: Path, tmp_path: Path) -> None:
    """The recording fills the disk. The disk has no space for the JSON, so the recording
    remains."""
    run(program, tmp_path, "SIGKILL", MGPU_RT_STATS="size")
    with room_for(str((tmp_path / "size").stat().st_size), tmp_path):
        done = run(program, tmp_path, MGPU_RT_STATS="stats.json")
        assert done.returncode == 0
        (line,) = done.stderr.splitlines()
        assert line.endswith("/stats.json': No space left on device")
        assert [path.name for path in tmp_path.iterdir()] == ["stats.json"]
        assert made(shown(tmp_path / "stats.json")) == CALLS


# ---- recordings that cannot be read ----


@pytest.fixture(scope="module")
def killed(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("killed")
    run(program, folder, "SIGKILL", MGPU_RT_STATS="stats", MGPU_RT_TRACE="trace")
    return folder


def test_recordings_have_a_command_each(killed: Path) -> None:
    result = invoke("stats", str(killed / "trace"))
    assert_sentence(result.exit_code, result.stderr, "is a recording of a trace: `mgpu-rt stats")
    result = invoke("compare", str(killed / "stats"), str(killed / "trace"))
    assert_sentence(result.exit_code, result.stderr, "is a recording of a trace: `mgpu-rt stats")
    result = invoke("stats", "-o", "-", str(killed / "stats"))
    assert_sentence(result.exit_code, result.stderr, "is a recording of statistics: `mgpu-rt stats")


@pytest.mark.parametrize("name", ["stats", "trace"])
@pytest.mark.parametrize("size", [100, 4096, 5000, 300_000])
def test_truncated_recordings_are_refused(
    name: str, size: int, killed: Path, tmp_path: Path
) -> None:
    path = tmp_path / "cut"
    path.write_bytes((killed / name).read_bytes()[:size])
    result = invoke("stats", *(("-o", "-") if name == "trace" else ()), str(path))
    assert_sentence(result.exit_code, result.stderr, "the recording is damaged or truncated")


def test_a_recording_of_another_version_is_refused(killed: Path, tmp_path: Path) -> None:
    path = tmp_path / "other"
    content = bytearray((killed / "stats").read_bytes())
    content[8:13] = b"9.8.7"
    path.write_bytes(content)
    result = invoke("stats", str(path))
    assert_sentence(result.exit_code, result.stderr, "mgpu_rt 9.8.7 has recorded it, and this is")


#: Reads randomly damaged copies of a recording, in a separate process.
READ_DAMAGED = """
import json, pathlib, random, sys
import mgpu_rt
library, path = mgpu_rt.load(), pathlib.Path(sys.argv[1])
whole = path.read_bytes()
for seed in range(int(sys.argv[2])):
    chance = random.Random(seed)
    content = bytearray(whole)
    for _ in range(2000):
        at = chance.randrange(4096, min(len(whole), 1 << 20) - 8)
        content[at : at + 8] = chance.choice((b"\\xff" * 8, bytes(8), chance.randbytes(8)))
    path.write_bytes(content)
    json.loads(library.recording_json(path).decode())
"""


@pytest.mark.parametrize(("name", "times"), [("stats", 30), ("trace", 3)])
def test_damaged_recordings_still_give_json(
    name: str, times: int, killed: Path, tmp_path: Path
) -> None:
    """Any bytes may follow the header of a recording; the library must still return JSON."""
    path = Path(shutil.copy(killed / name, tmp_path))
    code = [sys.executable, "-c", READ_DAMAGED, path, str(times)]
    done = subprocess.run(code, env=environment(), capture_output=True, text=True, timeout=HANG)
    assert (done.returncode, done.stderr) == (0, "")


def test_files_that_are_no_traces_are_refused(tmp_path: Path) -> None:
    (tmp_path / "json").write_text('{"displayTimeUnit": "ns", "traceEvents": []}')
    (tmp_path / "empty").touch()
    for name, words in [
        ("none", "was not found: `mgpu-rt run --trace"),
        ("", "is a directory"),
        ("json", "is a Chrome trace already: open it in ui.perfetto.dev"),
        ("empty", "is not a recording of a trace"),
    ]:
        result = invoke("stats", "-o", "-", str(tmp_path / name))
        assert_sentence(result.exit_code, result.stderr, words)


def test_an_unwritable_path_of_a_trace_is_named(killed: Path) -> None:
    result = invoke("stats", str(killed / "trace"), "-o", "/nowhere/out")
    assert_sentence(
        result.exit_code, result.stderr, "'/nowhere/out' cannot be written: there is no folder"
    )


# ---- a running process ----


RUNNING = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.mgpuStreamCreate()
print(flush=True)
input()
"""


def test_a_running_program_can_be_looked_at(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", RUNNING, library()],
        env=environment(MGPU_RT_STATS="stats", MGPU_RT_MANAGER="off"),
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as running:
        assert running.stdout
        running.stdout.readline()
        assert made(shown(tmp_path / "stats")) == {"mgpuStreamCreate": 1}
        running.communicate(b"\n", timeout=HANG)
