"""`mgpu-rt run`: its effects on a program, and its messages when it fails."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from mgpu_rt import _hip_search, _layout
from mgpu_rt._cli import cuda, doctor, executable, preload, softgpu
from mgpu_rt._cli.errors import CommandError, NoDevice
from tests.support.child import BUILD, CUSTUB, STUB, environment
from tests.support.command import COMMAND, assert_sentence, command, invoke, python
from tests.support.compiled import LIB, RUNTIME, compile_c, stream_program
from tests.support.patience import HANG, wait_until


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds a program that uses a stream and exits with status 3. The program needs LLVM 19's own
    library, which this machine lacks."""
    return stream_program(tmp_path_factory.mktemp("program"), f"{RUNTIME}.19.1")


# ---- run ----


def test_run_serves_the_program_and_passes_its_status_on(program: Path) -> None:
    result = command("run", "--", program)
    assert (result.returncode, result.stdout, result.stderr) == (3, "done\n", "")


@pytest.mark.parametrize("option", ["--stats", "--stats-json", "--trace"])
def test_a_program_without_a_call_is_named(option: str, tmp_path: Path) -> None:
    out = () if option == "--stats" else (str(tmp_path / "out"),)
    done = command("run", option, *out, "--", sys.executable, "-c", "raise SystemExit(7)")
    assert (done.returncode, done.stdout) == (7, "")
    assert done.stderr == (
        f"mgpu-rt: unless a line above says why, '{sys.executable}' called none of the library's "
        f"functions: `mgpu-rt inspect {sys.executable}` shows whether MLIR lowered it for a GPU\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_statistics_leave_no_file(program: Path, tmp_path: Path) -> None:
    done = command("run", "--stats", "--", program, TMPDIR=str(tmp_path))
    assert (done.returncode, done.stdout) == (3, "done\n")
    assert "mgpu_rt: calls of the program\n" in done.stderr
    assert "called none" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_arguments_arrive_as_they_are() -> None:
    arguments = ["a b", "--stats", "-x", "", "--", "--device", "$HOME", "ö\n"]
    result = command(*python("sys.argv[1:]"), *arguments)
    assert json.loads(result.stdout) == arguments


def test_options_after_the_program_are_its_own() -> None:
    result = command("run", sys.executable, "--version")
    assert result.stdout.startswith("Python 3")


WORD = """[os.environ.get(f"MGPU_RT_{name}") for name in ("EXCLUSIVE", "SYNC")]"""


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), [None, None]),
        (("--exclusive",), ["on", None]),
        (("--exclusive", "--lazy"), ["on", "lazy"]),
    ],
)
def test_the_users_word_is_put_into_the_environment(
    options: tuple[str, ...], expected: list[str | None]
) -> None:
    done = command("run", *options, *python(WORD)[1:])
    assert json.loads(done.stdout) == expected


def test_lazy_takes_exclusive() -> None:
    done = command("run", "--lazy", "--", "true")
    assert done.returncode == 2
    assert "--lazy needs --exclusive" in done.stderr


def test_the_program_replaces_the_command() -> None:
    """The program has the process id of the command, so signals reach the program."""
    words = [COMMAND, "run", "--", "cat"]
    process = subprocess.Popen(words, env=environment(), stdin=subprocess.PIPE)
    try:
        name = Path(f"/proc/{process.pid}/comm")
        assert wait_until(lambda: name.read_text() == "cat\n")
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=HANG) == -signal.SIGTERM
    finally:
        process.kill()
        process.wait()


def test_signals_act_as_in_a_direct_run() -> None:
    """Python ignores SIGPIPE; without a reset, the program would inherit the ignored signal."""
    words = ("grep", "^SigIgn", "/proc/self/status")
    direct = subprocess.run(words, capture_output=True, text=True)
    assert command("run", "--", *words).stdout == direct.stdout


def test_other_preloads_stay() -> None:
    others = "libm.so.6 libdl.so.2"
    result = command(*python("os.environ['LD_PRELOAD']"), LD_PRELOAD=others)
    assert json.loads(result.stdout) == f"{LIB / RUNTIME}:libm.so.6:libdl.so.2"


def test_a_run_inside_a_run_preloads_once() -> None:
    result = command("run", COMMAND, *python("os.environ['LD_PRELOAD']"))
    assert json.loads(result.stdout) == str(LIB / RUNTIME)


def test_library_path_is_searched_last() -> None:
    result = command(*python("os.environ['LD_LIBRARY_PATH']"), LD_LIBRARY_PATH="/a:/b")
    assert json.loads(result.stdout) == f"/a:/b:{LIB}"


def test_children_of_a_script_are_served(program: Path, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text(f'#!/bin/sh\n"{program}"\n')
    script.chmod(0o755)
    log = tmp_path / "log"
    assert command("run", script, HIPSTUB_LOG=str(log)).returncode == 3
    assert json.loads(log.read_text())["counts"]["hipStreamCreate"] == 1


def test_stats_prints_a_table(program: Path) -> None:
    result = command("run", "--stats", "--", program)
    assert result.returncode == 3
    rows = {line.split()[-1]: line.split() for line in result.stderr.splitlines()}
    for function in ("mgpuStreamCreate", "mgpuStreamDestroy", "hipStreamCreate"):
        assert rows[function][3] == "1"
    assert "% time     seconds  usecs/call     calls      function" in result.stderr


def test_stats_json_is_written_where_the_command_was_called(program: Path, tmp_path: Path) -> None:
    """The command writes the file into the directory in which the user called the command, even if
    the program changes its working directory."""
    words = [COMMAND, "run", "--stats-json", "stats-%p.json", "--", "sh", "-c", 'cd /; "$0"']
    subprocess.run([*words, program], cwd=tmp_path, env=environment(), timeout=HANG)
    (path,) = tmp_path.glob("stats-*.json")
    assert json.loads(path.read_text())["abi"]["mgpuStreamCreate"]["calls"] == 1


def test_table_and_json_are_written_together(program: Path, tmp_path: Path) -> None:
    path = tmp_path / "1,stats.json"
    result = command("run", "--stats", "--stats-json", path, "--", program)
    assert "mgpu_rt: calls of the program" in result.stderr
    assert json.loads(path.read_text())["abi"]["mgpuStreamCreate"]["calls"] == 1


def test_softgpu_is_put_into_the_environment() -> None:
    words = list(python("os.environ['LD_LIBRARY_PATH'].split(':')"))
    words[1:1] = ["--device", "softgpu"]
    result = command(*words)
    assert json.loads(result.stdout) == [str(BUILD / "softgpu"), str(LIB)]


def test_a_program_runs_on_softgpu(program: Path) -> None:
    """The program runs on AMD's own HIP, without a GPU."""
    result = command("run", "--device", "softgpu", program, MGPU_RT_HIP="", MGPU_RT_VERBOSE="1")
    assert result.returncode == 3
    assert "libamdhip64.so.5, devices: 1;" in result.stderr


@pytest.mark.parametrize("name", softgpu.TARGETS)
def test_an_emulated_device_is_named_by_a_word(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the device's name, the variable MGPU_RT_SOFTGPU may contain settings. A variable that
    selects a GPU by its number does not hide the emulated device."""
    monkeypatch.setattr(_hip_search, "knows", lambda hip, target: target == name)
    base = {"MGPU_RT_SOFTGPU": "gfx906,threads=2", "HIP_VISIBLE_DEVICES": "1"}
    found = preload.device_environment(name, base)
    assert found["MGPU_RT_SOFTGPU"] == f"{name},threads=2"
    assert "HIP_VISIBLE_DEVICES" not in found
    assert "libhsakmt.so.1" in os.listdir(found["LD_LIBRARY_PATH"].split(":")[0])


def test_a_program_runs_on_the_device_that_is_named(program: Path, tmp_path: Path) -> None:
    words = ("--device", "gfx908", "--stats-json", tmp_path / "s.json", program)
    assert command("run", *words, MGPU_RT_HIP="").returncode == 3
    device = json.loads((tmp_path / "s.json").read_text())["device"]
    assert device["name"] == "softgpu gfx908 (emulated)"


@pytest.mark.parametrize("command", ("run", "compare", "check", "replay", "doctor", "inspect"))
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("mi", "'mi' is none of auto, hip, softgpu, cuda, gfx90a, gfx906, gfx908, gfx942"),
        ("gfx1100", "'gfx1100' is none of auto, hip"),
        ("", "'' is none of auto, hip"),
    ],
)
def test_an_unknown_device_is_named(command: str, name: str, said: str) -> None:
    result = invoke(command, "--device", name, "x")
    assert result.exit_code == 2
    assert said in result.stderr


# ---- run: error messages ----


def test_program_problems_have_a_shells_status(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("no program")
    headless = tmp_path / "headless"
    headless.write_text("exit 0\n")
    orphan = tmp_path / "orphan"
    orphan.write_text("#!/nowhere/interpreter\n")
    for path in (headless, orphan):
        path.chmod(0o755)
    for name, status, words in [
        ("no-such-program-there", 127, "was not found"),
        ("./no-such-program.mlir", 127, "was not found"),
        ("/dev/null", 126, "is not an executable file"),
        (tmp_path, 126, "is not an executable file"),
        (text, 126, "is not an executable file"),
        (headless, 126, "cannot be executed: Exec format error"),
        (orphan, 126, "cannot be executed: No such file or directory"),
    ]:
        result = command("run", "--", name)
        assert result.returncode == status, name
        assert result.stderr.startswith("mgpu-rt: ")
        assert words in result.stderr
        assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "way"),
    [("MGPU_RT_CACHES", "do you mean MGPU_RT_CACHE?"), ("MGPU_RT_FOO", "lists them all")],
)
def test_a_variable_that_is_no_option_is_named(program: Path, name: str, way: str) -> None:
    """If an environment variable looks like an option but is not an option, the command prints a
    message and runs the program."""
    result = command("run", "--", program, **{name: "off"})
    assert result.returncode == 3
    assert result.stderr.startswith(f"mgpu-rt: {name} is set, but there is no such option: ")
    assert result.stderr.endswith(f"{way}\n")


def test_a_misspelt_option_is_named(program: Path) -> None:
    """The command does not take a misspelt option as the program's name. All words after the
    program's name are the program's arguments."""
    result = command("run", "--trcae", "x", "--", program)
    assert result.returncode == 2
    assert re.search("No such option:? '?--trcae.* Did you mean '?--trace", result.stderr)
    result = command("run", "sh", "-c", 'echo "$@"', "sh", "--trcae", "--device", "x")
    assert result.stdout == "--trcae --device x\n"


def test_unwritable_results_fail_before_the_run(tmp_path: Path) -> None:
    """A long run must not fail at its end because a file cannot be written."""
    flag = tmp_path / "ran"
    for option in ("--stats-json", "--trace"):
        place = tmp_path / "none" / "x.json"
        result = command("run", option, place, "--", "touch", flag)
        assert_sentence(result.returncode, result.stderr, "No such file or directory")
        command("run", option, tmp_path / "%p.json", "--", "true")
    assert not flag.exists()


def test_a_static_program_runs_with_a_warning(tmp_path: Path) -> None:
    static = compile_c(tmp_path / "static", "int main(void) { return 5; }", "-static")
    for options in ((), ("--stats", "--hook", "trace")):
        result = command("run", *options, "--", static)
        assert result.returncode == 5
        assert "runs without mgpu_rt: it is statically linked: link it dynamically" in result.stderr
    result = command("run", "--record", tmp_path / "out", "--", static)
    assert_sentence(result.returncode, result.stderr, "it is statically")
    assert not (tmp_path / "out").exists()


def test_a_static_pie_is_static(tmp_path: Path) -> None:
    static = compile_c(tmp_path / "static", "int main(void) { return 0; }", "-static-pie", "-fPIE")
    assert "statically linked" in (executable.obstacle(str(static)) or "")


def test_preload_obstacles_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = compile_c(tmp_path / "program", "int main(void) { return 0; }")
    assert executable.obstacle(str(path)) is None
    assert executable.obstacle(__file__) is None
    path.chmod(0o755 | stat.S_ISUID)
    assert executable.obstacle(str(path)) is None  # the file's owner gains no rights
    monkeypatch.setattr(os, "getuid", lambda: path.stat().st_uid + 1)
    assert "setuid" in (executable.obstacle(str(path)) or "")
    small = tmp_path / "small"
    small.write_bytes(b"\x7fELF\x01" + bytes(60))
    assert "32-bit" in (executable.obstacle(str(small)) or "")


def test_a_truncated_elf_file_is_left_to_the_kernel(tmp_path: Path) -> None:
    for size in (5, 20, 63, 100):
        path = tmp_path / "short"
        path.write_bytes(Path(sys.executable).read_bytes()[:size])
        path.chmod(0o755)
        result = command("run", path)
        assert result.returncode in (126, -signal.SIGSEGV, -signal.SIGKILL), result.stderr
        assert "Traceback" not in result.stderr


def test_a_missing_cuhip_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(preload.cuda, "BUILD", tmp_path)
    result = invoke("run", "--device", "cuda", "true")
    assert result.exit_code == 2
    assert (
        f"no NVIDIA GPUs: {tmp_path}/cuhip/libamdhip64.so is missing: run `make`" in result.stderr
    )
    cuhip = tmp_path / "cuhip" / "libamdhip64.so"
    cuhip.parent.mkdir()
    cuhip.touch()
    assert preload.environment("cuda", {"MGPU_RT_HIP": "/other"})["MGPU_RT_HIP"] == str(cuhip)


@pytest.mark.parametrize("name", ("libmlir_cuda_runtime.so", "libmlir_cuda_runtime.so.22.1"))
def test_a_program_runs_on_cuda(name: str, tmp_path: Path) -> None:
    """The program was linked with LLVM's own library for CUDA, which this machine lacks."""
    program = stream_program(tmp_path, name)
    result = command("run", "--device", "cuda", program, MGPU_RT_CUDA=str(CUSTUB), MGPU_RT_HIP="")
    assert (result.returncode, result.stdout, result.stderr) == (3, "done\n", "")


def test_a_program_runs_on_without_nvidias_driver(tmp_path: Path) -> None:
    program = stream_program(tmp_path, "libmlir_cuda_runtime.so")
    result = command("run", "--device", "cuda", program, MGPU_RT_CUDA="/nowhere/libcuda.so.1")
    assert result.stdout == "done\n"
    assert "cuhip: MGPU_RT_CUDA=/nowhere/libcuda.so.1 cannot be used: " in result.stderr
    assert "failed with 'hipErrorInsufficientDriver'" in result.stderr


def test_nvidias_driver_is_found_or_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert cuda.driver({"MGPU_RT_CUDA": str(CUSTUB)}) == str(CUSTUB)
    with pytest.raises(NoDevice, match="MGPU_RT_CUDA=/nowhere"):
        cuda.driver({"MGPU_RT_CUDA": "/nowhere"})
    monkeypatch.setattr(cuda, "DRIVERS", (str(tmp_path / "libcuda.so.1"),))
    with pytest.raises(NoDevice, match="install the driver"):
        cuda.driver({})
    (tmp_path / "libcuda.so.1").symlink_to(CUSTUB)
    assert cuda.driver({}) == str(tmp_path / "libcuda.so.1")


@pytest.mark.parametrize("words", [("doctor",), ("run", "--", "true")])
def test_a_machine_that_starts_no_process_is_named(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """If the system refuses a new process, the message does not say that HIP is missing."""

    def refuse(*_words: object, **_settings: object) -> None:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(_hip_search.subprocess, "run", refuse)
    result = invoke(words[0], "--device", "softgpu", *words[1:])
    assert result.exit_code == (1 if words == ("doctor",) else 2)
    said = result.stdout + result.stderr
    assert "no process could be started: Resource temporarily unavailable; free memory" in said
    assert "libamdhip64" not in said  # installing a package would not help


def test_doctor_blames_no_python_for_a_program_that_failed() -> None:
    """The library searches for Python while the program runs, so a slow program may still be
    running when the search ends."""
    result = command("doctor", "--device", "hip", HIPSTUB_DEVICES="0")
    (line,) = (line for line in result.stdout.splitlines() if " Python " in line)
    assert "not looked for: the program had failed before" in line or "would manage" in line


def test_a_missing_softgpu_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(preload.softgpu, "BUILD", tmp_path)
    result = invoke("run", "--device", "softgpu", "true")
    assert result.exit_code == 2
    assert "no software GPU" in result.stderr
    assert "`make`" in result.stderr


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(_layout, "PREFIX", tmp_path / "build")
    monkeypatch.setattr(_layout, "CHECKOUT", tmp_path)
    for words in (["run", "--device", "hip", "true"], ["config", "--path"]):
        result = invoke(*words)
        assert result.exit_code == 2
        assert f"was not built: run `make` in {tmp_path}" in result.stderr
    assert invoke("doctor", "--device", "hip").exit_code == 1


def test_a_path_with_a_colon_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preload, "library_path", lambda: f"/with:colon/{RUNTIME}")
    result = invoke("run", "--device", "hip", "true")
    assert result.exit_code == 2
    assert "LD_PRELOAD cannot contain" in result.stderr


def test_a_library_in_a_path_with_a_space_is_preloaded(
    monkeypatch: pytest.MonkeyPatch, program: Path, tmp_path: Path
) -> None:
    """In LD_PRELOAD, a space would end the library's name."""
    folder = tmp_path / "größer als" / "lib"
    folder.mkdir(parents=True)
    for name in (RUNTIME, f"{RUNTIME}.19.1"):
        (folder / name).symlink_to(LIB / RUNTIME)
    monkeypatch.setattr(preload, "library_path", lambda: str(folder / RUNTIME))
    env = preload.environment("hip", environment(LD_PRELOAD="libm.so.6", LD_LIBRARY_PATH="/a"))
    assert env["LD_PRELOAD"] == f"{RUNTIME}:libm.so.6"
    assert env["LD_LIBRARY_PATH"] == f"{folder}:/a"
    result = subprocess.run([program], env=env, capture_output=True, text=True, timeout=HANG)
    assert (result.returncode, result.stderr) == (3, "")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Simulates a machine without a GPU; a test simulates a GPU by creating tmp_path/kfd or
    tmp_path/nvidiactl."""
    monkeypatch.setattr(preload, "KFD", tmp_path / "kfd")
    monkeypatch.setattr(cuda, "GPUS", (tmp_path / "nvidiactl",))
    return tmp_path


def test_auto_chooses_the_first_device_that_is_there(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`auto` tries AMD's GPU and HIP, then NVIDIA's GPU and driver, then the software GPU."""
    (machine / "lib").mkdir()
    (machine / "lib" / "libamdhip64.so.7").symlink_to(STUB)
    rocm = {"ROCM_PATH": str(machine)}
    assert preload.choose("auto", {}) == "softgpu"
    assert preload.choose("auto", {"MGPU_RT_HIP": str(STUB)}) == "hip"
    assert preload.choose("cuda", {"MGPU_RT_HIP": str(STUB)}) == "cuda"
    monkeypatch.setattr(cuda, "DRIVERS", (str(machine / "libcuda.so.1"),))
    (machine / "nvidiactl").touch()
    assert preload.choose("auto", {}) == "softgpu"
    (machine / "libcuda.so.1").symlink_to(CUSTUB)
    assert preload.automatic({}) == ("cuda", "there is an NVIDIA GPU and no AMD GPU")
    (machine / "kfd").touch()
    device, why = preload.automatic(rocm)
    assert device == "hip"
    assert f"HIP in {machine}/lib/libamdhip64.so.7" in why
    monkeypatch.setattr(preload._hip_search, "find", lambda _: [])
    assert preload.choose("auto", {}) == "cuda"


def test_auto_without_any_gpu_fails(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preload.softgpu, "BUILD", machine)
    result = invoke("run", "true", MGPU_RT_HIP=None)
    assert result.exit_code == 2
    assert "there is no GPU that a program could run on: no AMD GPU" in result.stderr
    assert not doctor.examine("auto", {"PATH": "/usr/bin"}).possible
    (machine / "kfd").touch()
    monkeypatch.setattr(preload._hip_search, "find", lambda _: [])
    with pytest.raises(CommandError, match="an AMD GPU, which needs a HIP library"):
        preload.choose("auto", {})


@pytest.mark.parametrize("device", ["auto", "hip"])
@pytest.mark.parametrize(
    "words",
    [
        ("run",),
        ("compare", "--"),
        ("compare", "--report", "-", "--"),
        ("run", "--record", "folder"),
    ],
)
def test_a_hip_that_is_not_there_is_refused_before_the_program_runs(
    device: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    at = words.index("--") if "--" in words else len(words)
    command_line = (*words[:at], "--device", device, *words[at:], "touch", str(ran))
    result = invoke(*command_line, MGPU_RT_HIP="/nowhere/libamdhip64.so")
    assert result.exit_code == 2
    assert "MGPU_RT_HIP=/nowhere/libamdhip64.so: there is no such file" in result.stderr
    assert not ran.exists()


@pytest.mark.parametrize("device", ["hip", "softgpu"])
def test_a_hip_that_is_no_library_is_refused(device: str, tmp_path: Path) -> None:
    """A path that names ROCm's folder or a text file does not name a library. Before mgpu-rt
    checked the path, a program once exited with status 0 although 47 calls had failed."""
    text = tmp_path / "text"
    text.write_text("INPUT(libamdhip64.so.6)")
    for path in (tmp_path, text):
        result = invoke("run", "--device", device, "true", MGPU_RT_HIP=str(path))
        assert result.exit_code == 2
        assert f"MGPU_RT_HIP={path} is no library: name the file, as /opt/rocm" in result.stderr


def test_device_hip_without_a_hip_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The dynamic loader may find a HIP by its bare name even if `mgpu-rt` finds none."""
    monkeypatch.setattr(preload._hip_search, "find", lambda _: [])
    result = invoke("run", "--device", "hip", "true")
    assert result.exit_code == 2
    assert "there is no HIP library (libamdhip64): install ROCm, or set" in result.stderr
    assert preload.device_environment("hip", {"MGPU_RT_HIP": "libamdhip64.so.6"})


def test_auto_says_what_it_chose(program: Path) -> None:
    result = command("run", program, MGPU_RT_HIP="")
    assert result.returncode == 3
    assert result.stderr.startswith("mgpu-rt: --device ")
    assert command("run", "--device", "softgpu", program, MGPU_RT_HIP="").stderr == ""
