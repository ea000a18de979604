"""Files that other programs have prepared: FIFOs, links, and files that other processes have locked
or left behind."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.runtime.telemetry.test_record import CALLS, build_program, made, run, shown
from tests.support.child import Mgpu, environment, in_child, library
from tests.support.folders import in_folder
from tests.support.patience import HANG


@pytest.fixture(scope="module")
def program() -> Path:
    return build_program()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# ---- FIFOs ----


def test_a_fifo_that_nobody_reads_is_not_waited_for(program: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    done = run(program, tmp_path, MGPU_RT_STATS="fifo")
    assert done.returncode == 0
    path = tmp_path / "fifo"
    assert (
        done.stderr
        == f"mgpu_rt: MGPU_RT_STATS: cannot write '{path}': no process has opened it to read\n"
    )
    assert names(tmp_path) == ["fifo"]


@pytest.mark.parametrize("variable", ["MGPU_RT_STATS", "MGPU_RT_TRACE"])
def test_the_reader_of_a_fifo_gets_everything(variable: str, program: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    got: list[str] = []
    opened = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(opened, True)

    def read() -> None:
        with open(opened) as reader:
            got.append(reader.read())

    keep = os.open(tmp_path / "fifo", os.O_WRONLY)  # the reader then waits for the program
    thread = threading.Thread(target=read)
    thread.start()
    done = run(program, tmp_path, **{variable: "fifo"})
    os.close(keep)
    thread.join()
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(got[0])


def test_a_reader_that_takes_nothing_is_given_up(program: Path, tmp_path: Path) -> None:
    """The library waits up to ten seconds for a full FIFO."""
    path = tmp_path / "fifo"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    with pytest.raises(BlockingIOError):
        while True:
            os.write(writer, bytes(1))
    done = run(program, tmp_path, MGPU_RT_STATS="fifo")
    os.close(reader)
    os.close(writer)
    assert done.returncode == 0
    assert done.stderr.endswith("fifo': its reader has read nothing for 10 seconds\n")


def test_a_reader_that_leaves_ends_no_program(program: Path, tmp_path: Path) -> None:
    """SIGPIPE would end the program."""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [program],
        env=environment(MGPU_RT_STATS="/dev/stdout", MGPU_RT_MANAGER="off"),
        cwd=tmp_path,
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        timeout=HANG,
    )
    os.close(writer)
    assert done.returncode == 0
    assert done.stderr == "mgpu_rt: MGPU_RT_STATS: cannot write '/dev/stdout': Broken pipe\n"


def test_a_fifo_with_the_second_name_is_passed_over(program: Path, tmp_path: Path) -> None:
    """A running process uses the name stats.json, and a FIFO has the next name."""
    os.mkfifo(tmp_path / "stats.2.json")
    run(program, tmp_path, "exec", MGPU_RT_STATS="stats.json")
    assert names(tmp_path) == ["stats.2.json", "stats.3.json", "stats.json"]
    assert made(shown(tmp_path / "stats.3.json")) == CALLS


def test_the_output_of_the_program_stays_where_it_went(program: Path, tmp_path: Path) -> None:
    """/dev/stdout may be a file: then the output is appended to the file."""
    with open(tmp_path / "out", "w") as out:
        out.write("before\n")
        out.flush()
        subprocess.run(
            [program],
            env=environment(MGPU_RT_STATS="/dev/stdout", MGPU_RT_MANAGER="off"),
            stdout=out,
            timeout=HANG,
            check=True,
        )
    first, rest = (tmp_path / "out").read_text().split("\n", 1)
    assert first == "before"
    assert made(json.loads(rest)) == CALLS


# ---- limits of size ----


def limit_files(size: int) -> None:
    """Limits the size of files, and restores the default effect of SIGXFSZ, which Python
    ignores."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@pytest.mark.parametrize("size", [0, 100, 6144])
def test_a_file_beyond_the_limit_ends_no_program(size: int, program: Path, tmp_path: Path) -> None:
    """SIGXFSZ would end the program at its exit."""
    done = subprocess.run(
        [program],
        env=environment(MGPU_RT_STATS="s", MGPU_RT_TRACE="t", MGPU_RT_MANAGER="off"),
        cwd=tmp_path,
        preexec_fn=lambda: limit_files(size),
        capture_output=True,
        text=True,
        timeout=HANG,
    )
    assert done.returncode == 0
    lines = done.stderr.splitlines()
    assert [line.rpartition(": ")[2] for line in lines] == ["File too large"] * len(lines)
    assert len(lines) == (2 if size < 6144 else 1)
    assert set(names(tmp_path)) <= {"s"}


# ---- links ----


@pytest.mark.parametrize("how", ["", "_exit"])
def test_a_planted_link_is_not_followed(how: str, program: Path, tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "link.json").symlink_to("victim")
    done = run(program, tmp_path, how, MGPU_RT_STATS="link.json")
    assert done.returncode == 0
    assert done.stderr.endswith(
        "/link.json': it is a symbolic link, which the library does not follow: "
        "name the file itself\n"
    )
    assert (tmp_path / "victim").read_text() == "precious"
    assert names(tmp_path) == ["link.json", "victim"]


def test_a_link_that_leads_nowhere_makes_no_file(program: Path, tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to("planted")
    run(program, tmp_path, MGPU_RT_STATS="link.json")
    assert names(tmp_path) == ["link.json"]


def test_a_link_with_the_second_name_is_passed_over(program: Path, tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "stats.2.json").symlink_to("victim")
    run(program, tmp_path, "exec", MGPU_RT_STATS="stats.json")
    assert (tmp_path / "victim").read_text() == "precious"
    assert names(tmp_path) == ["stats.2.json", "stats.3.json", "stats.json", "victim"]


def test_a_folder_may_be_a_link(program: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    run(program, tmp_path, MGPU_RT_STATS="link/stats.json")
    assert made(json.loads((tmp_path / "real" / "stats.json").read_text())) == CALLS


# ---- modes ----


@pytest.mark.parametrize("how", ["", "_exit"])
def test_only_the_owner_can_read_a_new_file(how: str, program: Path, tmp_path: Path) -> None:
    run(program, tmp_path, how, MGPU_RT_STATS="stats", MGPU_RT_TRACE="trace")
    assert (mode(tmp_path / "stats"), mode(tmp_path / "trace")) == (0o600, 0o600)


@pytest.mark.parametrize("how", ["", "_exit"])
def test_a_file_keeps_its_mode(how: str, program: Path, tmp_path: Path) -> None:
    (tmp_path / "stats").write_text("old")
    (tmp_path / "stats").chmod(0o640)
    run(program, tmp_path, how, MGPU_RT_STATS="stats")
    assert mode(tmp_path / "stats") == 0o640
    assert made(shown(tmp_path / "stats")) == CALLS


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes files of others")
def test_a_file_of_another_user_gives_nothing_away(program: Path, tmp_path: Path) -> None:
    (tmp_path / "stats").write_text("planted")
    (tmp_path / "stats").chmod(0o666)
    os.chown(tmp_path / "stats", 65534, 65534)
    run(program, tmp_path, "_exit", MGPU_RT_STATS="stats")
    left = (tmp_path / "stats").stat()
    assert (left.st_uid, mode(tmp_path / "stats")) == (os.geteuid(), 0o600)


# ---- several at once ----

BOTH = """
import ctypes, os, sys
print(flush=True)
input()
ctypes.CDLL(sys.argv[1]).mgpuStreamCreate()
print(flush=True)
input()
"""


def begin(folder: Path, *command: str) -> subprocess.Popen[str]:
    """Starts a process that makes a call after the first `tell`, and ends after the second
    `tell`."""
    return subprocess.Popen(
        [*command, sys.executable, "-c", BOTH, library()],
        env=environment(MGPU_RT_STATS="stats.json", MGPU_RT_MANAGER="off", HIPSTUB_MODE="fast"),
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def tell(*processes: subprocess.Popen[str]) -> None:
    """Tells all processes to continue, then waits until each is ready."""
    for process in processes:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()


def listen(*processes: subprocess.Popen[str]) -> None:
    for process in processes:
        assert process.stdout
        assert process.stdout.readline()


def test_concurrent_starts_over_an_old_file_lose_none(tmp_path: Path) -> None:
    """Each process gets a file, even if all start at once."""
    for _ in range(5):
        for path in tmp_path.iterdir():
            path.unlink()
        (tmp_path / "stats.json").write_text("old")
        processes = [begin(tmp_path) for _ in range(6)]
        listen(*processes)
        tell(*processes)
        listen(*processes)
        tell(*processes)
        assert [process.wait(HANG) for process in processes] == [0] * 6
        written = [json.loads(path.read_text())["process"]["pid"] for path in tmp_path.iterdir()]
        assert sorted(written) == sorted(process.pid for process in processes)


def test_a_process_of_another_container_keeps_its_file(tmp_path: Path) -> None:
    """The number of a process in another container means nothing in this PID namespace."""
    apart = ("unshare", "--pid", "--fork", "--mount-proc")
    if subprocess.run([*apart, "true"], capture_output=True).returncode != 0:
        pytest.skip("no right to make a namespace of processes")
    first, second = begin(tmp_path, *apart), begin(tmp_path, *apart)
    for process in (first, second):
        listen(process)
        tell(process)
        listen(process)
    assert names(tmp_path) == ["stats.2.json", "stats.json"]
    tell(first, second)
    assert [process.wait(HANG) for process in (first, second)] == [0, 0]
    assert names(tmp_path) == ["stats.2.json", "stats.json"]


def test_an_exit_overwrites_no_file_of_another_process(tmp_path: Path) -> None:
    """The recording was renamed, and another process has created a file with the old name."""
    first = begin(tmp_path)
    listen(first)
    tell(first)
    listen(first)
    (tmp_path / "stats.json").rename(tmp_path / "moved")
    second = begin(tmp_path)
    listen(second)
    tell(second)
    listen(second)
    tell(first)
    assert first.wait(HANG) == 0
    assert shown(tmp_path / "stats.json")["process"]["pid"] == second.pid
    assert shown(tmp_path / "stats.2.json")["process"]["pid"] == first.pid
    tell(second)
    assert second.wait(HANG) == 0


# ---- names ----


@pytest.mark.parametrize("how", ["", "_exit"])
def test_a_name_may_have_the_longest_length(how: str, program: Path, tmp_path: Path) -> None:
    name = "s" * 255
    done = run(program, tmp_path, how, MGPU_RT_STATS=name)
    assert (done.returncode, done.stderr) == (0, "")
    assert names(tmp_path) == [name]


def test_a_trace_without_memory_is_reported(program: Path, tmp_path: Path) -> None:
    """A trace takes 48 MiB of address space, with or without a file."""
    limit = 40 << 20
    done = subprocess.run(
        [program],
        env=environment(MGPU_RT_TRACE="t", MGPU_RT_MANAGER="off", HIPSTUB_MODE="fast"),
        cwd=tmp_path,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0
    assert done.stderr.endswith("/t': Cannot allocate memory\n")
    assert names(tmp_path) == []


@pytest.mark.parametrize("descriptors", [4, 5, 6])
def test_few_file_descriptors_are_enough(descriptors: int, program: Path, tmp_path: Path) -> None:
    limit = (descriptors, descriptors)
    done = subprocess.run(
        [program],
        env=environment(MGPU_RT_STATS="s", MGPU_RT_TRACE="t", MGPU_RT_MANAGER="off"),
        cwd=tmp_path,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limit),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert names(tmp_path) == ["s", "t"]


@pytest.mark.parametrize("variable", ["MGPU_RT_STATS", "MGPU_RT_TRACE"])
def test_a_full_device_is_reported(variable: str, program: Path, tmp_path: Path) -> None:
    done = run(program, tmp_path, **{variable: "/dev/full"})
    assert done.returncode == 0
    assert (
        done.stderr == f"mgpu_rt: {variable}: cannot write '/dev/full': No space left on device\n"
    )


# ---- tests of the proofs (docs/proofs.md) ----

FILES = {"policies": ("builtin",), "HIPSTUB_MODE": "fast", "MGPU_RT_STATS": "stats.json"}
OTHER = "import ctypes, os, sys; ctypes.CDLL(sys.argv[1]).mgpuStreamCreate(); os._exit(0)"


def run_other() -> None:
    """Runs another process, which also writes to stats.json."""
    subprocess.run([sys.executable, "-c", OTHER, library()], check=True, timeout=HANG)


@in_child(**FILES)
@in_folder
def test_a_link_is_refused_at_the_first_call(mgpu: Mgpu) -> None:
    Path("stats.json").symlink_to("victim")
    mgpu.StreamCreate()
    assert "it is a symbolic link" in mgpu.stderr()
    assert names(Path()) == ["stats.json"]


@in_child(**FILES)
@in_folder
def test_a_second_name_follows_no_link(mgpu: Mgpu) -> None:
    Path("victim").write_text("precious")
    Path("stats.2.json").symlink_to("victim")
    mgpu.StreamCreate()
    run_other()
    assert names(Path()) == ["stats.2.json", "stats.3.json", "stats.json", "victim"]


@in_child(**FILES)
@in_folder
def test_a_second_name_opens_no_fifo(mgpu: Mgpu) -> None:
    os.mkfifo("stats.2.json")
    mgpu.StreamCreate()
    run_other()
    assert names(Path()) == ["stats.2.json", "stats.3.json", "stats.json"]


@in_child(policies=("builtin",), MGPU_RT_TRACE="trace")
@in_folder
def test_a_program_without_memory_for_a_trace_goes_on(mgpu: Mgpu) -> None:
    """The program continues without its trace."""
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limit = held + (32 << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    mgpu.StreamDestroy(mgpu.StreamCreate())
    assert "trace': Cannot allocate memory" in mgpu.stderr()
    assert names(Path()) == []


@in_child(**FILES)
@in_folder
def test_a_locked_file_is_not_taken_over(mgpu: Mgpu) -> None:
    """The process that has locked the file may be in another PID namespace, or may be replacing the
    file at this moment."""
    with Path("stats.json").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        mgpu.StreamCreate()
    assert names(Path()) == ["stats.2.json", "stats.json"]


@in_child(**FILES)
@in_folder
def test_a_recording_is_locked(mgpu: Mgpu) -> None:
    mgpu.StreamCreate()
    with Path("stats.json").open() as recording, pytest.raises(BlockingIOError):
        fcntl.flock(recording, fcntl.LOCK_EX | fcntl.LOCK_NB)


@in_child(**FILES)
@in_folder
def test_a_program_that_calls_exec_leaves_its_recording(mgpu: Mgpu) -> None:
    """The process still runs, but exec has removed the mapping of the recording, and so released
    the lock."""
    child = os.fork()
    if not child:
        again = f"os.execv(sys.executable, [sys.executable, '-c', {OTHER!r}, sys.argv[1]])"
        code = OTHER.replace("os._exit(0)", again)
        os.execv(sys.executable, [sys.executable, "-c", code, str(library())])
    assert os.waitpid(child, 0)[1] == 0
    assert names(Path()) == ["stats.2.json", "stats.json"]


@in_child(**FILES)
@in_folder
def test_a_file_keeps_its_mode_from_the_first_call(mgpu: Mgpu) -> None:
    Path("stats.json").write_text("old")
    Path("stats.json").chmod(0o640)
    mgpu.StreamCreate()
    assert mode(Path("stats.json")) == 0o640


@in_child(**FILES)
@in_folder
def test_a_file_of_another_user_does_not_keep_its_mode(mgpu: Mgpu) -> None:
    Path("stats.json").write_text("planted")
    Path("stats.json").chmod(0o666)
    if os.geteuid() == 0:
        os.chown("stats.json", 65534, 65534)
        mgpu.StreamCreate()
        assert mode(Path("stats.json")) == 0o600


EXITS = """
import ctypes, os, signal, sys
for number in (signal.SIGXFSZ, signal.SIGPIPE):
    signal.signal(number, signal.SIG_DFL)
ctypes.CDLL(sys.argv[1]).mgpuStreamCreate()
exec(sys.argv[2])
"""


def exits(last: str, **more: object) -> int:
    """Returns the status of a process that makes a call, performs an action, and ends."""
    code = [sys.executable, "-c", EXITS, library(), last]
    return subprocess.run(code, timeout=HANG, stderr=subprocess.DEVNULL, **more).returncode  # type: ignore[call-overload]


@in_child(**FILES)
@in_folder
def test_a_limit_at_exit_ends_no_program(mgpu: Mgpu) -> None:
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))"
    assert exits(limit) == 0


@in_child(policies=("builtin",), HIPSTUB_MODE="fast", MGPU_RT_STATS="fifo")
@in_folder
def test_a_fifo_is_not_waited_for_at_exit(mgpu: Mgpu) -> None:
    os.mkfifo("fifo")
    assert exits("") == 0


@in_child(**FILES)
@in_folder
def test_a_name_that_another_process_took_stays_its_own(mgpu: Mgpu) -> None:
    assert (
        exits(
            "os.rename('stats.json', 'moved'); open('stats.json', 'w').write('other'); "
            "import fcntl; held = open('stats.json'); fcntl.flock(held, fcntl.LOCK_EX); "
            "os.set_inheritable(held.fileno(), True); os.spawnl(os.P_NOWAIT, '/bin/sleep', "
            "'sleep', '3')"
        )
        == 0
    )
    assert Path("stats.json").read_text() == "other"
    assert Path("stats.2.json").exists()
