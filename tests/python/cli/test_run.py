"""`mgpu-rt run`: its effects on a program, and its messages when it fails."""

from __future__ import annotations

import errno
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mgpu_rt import _hip_search, _layout
from mgpu_rt._cli import cuda, doctor, preload, softgpu
from mgpu_rt._cli.errors import CommandError, NoDevice
from tests.support.child import BUILD, CUSTUB, STUB, environment
from tests.support.command import COMMAND, command, invoke, python
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


def test_statistics_of_a_program_leave_no_other_file(program: Path, tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    path, temporary = tmp_path / "1,stats.json", {"TMPDIR": str(tmp_path / "tmp")}
    done = command("run", "--stats", "--stats-json", path, "--", program, **temporary)
    assert (done.returncode, done.stdout) == (3, "done\n")
    written = json.loads(path.read_text())
    process = f"{written['process']['pid']}, {program.name}"
    assert (
        f"mgpu_rt: statistics of process {process}\nmgpu_rt: calls of the program\n" in done.stderr
    )
    assert "called none" not in done.stderr
    assert written["abi"]["mgpuStreamCreate"]["calls"] == 1
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.parametrize("option", ["--stats", "--stats-json", "--trace"])
def test_a_program_without_a_call_is_named(option: str, tmp_path: Path) -> None:
    out = () if option == "--stats" else (str(tmp_path / "out"),)
    done = command("run", option, *out, "--", sys.executable, "-c", "raise SystemExit(7)")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (7, "", 1)
    assert "called none of the library's functions" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_script_without_a_call_is_not_to_be_inspected(tmp_path: Path) -> None:
    """A script and an interpreter hold no device code, and `mgpu-rt` is a script."""
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    for words in ((script,), ("sh", "-c", ""), (sys.executable, "-c", "")):
        done = command("run", "--stats", "--", *words)
        why = f"'{words[0]}' called none of the library's functions: its code must call mgpu_rt ("
        assert why in done.stderr and "inspect" not in done.stderr


def test_arguments_arrive_as_they_are() -> None:
    arguments = ["a b", "--stats", "-x", "", "--", "--device", "$HOME", "ö\n"]
    result = command(*python("sys.argv[1:]"), *arguments)
    assert json.loads(result.stdout) == arguments


#: For each case: the command's options, the caller's variables, and the variables of the program.
ENVIRONMENTS: dict[str, tuple[tuple[object, ...], dict[str, str], dict[str, str | None]]] = {
    "the default": ((), {}, {"MGPU_RT_EXCLUSIVE": None, "MGPU_RT_SYNC": None}),
    "exclusive": (("--exclusive",), {}, {"MGPU_RT_EXCLUSIVE": "on", "MGPU_RT_SYNC": None}),
    "lazy": (("--exclusive", "--lazy"), {}, {"MGPU_RT_EXCLUSIVE": "on", "MGPU_RT_SYNC": "lazy"}),
    "other preloads": (
        (),
        {"LD_PRELOAD": "libm.so.6 libdl.so.2"},
        {"LD_PRELOAD": f"{LIB / RUNTIME}:libm.so.6:libdl.so.2"},
    ),
    "a run in a run": ((COMMAND, "run"), {}, {"LD_PRELOAD": str(LIB / RUNTIME)}),
    "libraries": ((), {"LD_LIBRARY_PATH": "/a:/b"}, {"LD_LIBRARY_PATH": f"/a:/b:{LIB}"}),
    "softgpu": (("--device", "softgpu"), {}, {"LD_LIBRARY_PATH": f"{BUILD / 'softgpu'}:{LIB}"}),
}


@pytest.mark.parametrize("case", ENVIRONMENTS)
def test_the_program_gets_its_environment(case: str) -> None:
    options, given, wanted = ENVIRONMENTS[case]
    done = command("run", *options, *python("dict(os.environ)")[1:], **given)
    found = json.loads(done.stdout)
    assert {name: found.get(name) for name in wanted} == wanted


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


def test_children_of_a_script_are_served(program: Path, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text(f'#!/bin/sh\n"{program}"\n')
    script.chmod(0o755)
    log = tmp_path / "log"
    assert command("run", script, HIPSTUB_LOG=str(log)).returncode == 3
    assert json.loads(log.read_text())["counts"]["hipStreamCreate"] == 1


def test_stats_json_is_written_where_the_command_was_called(program: Path, tmp_path: Path) -> None:
    """The command writes the file into the directory in which the user called the command, even if
    the program changes its working directory."""
    words = [COMMAND, "run", "--stats-json", "stats-%p.json", "--", "sh", "-c", 'cd /; "$0"']
    subprocess.run([*words, program], cwd=tmp_path, env=environment(), timeout=HANG)
    (path,) = tmp_path.glob("stats-*.json")
    assert json.loads(path.read_text())["abi"]["mgpuStreamCreate"]["calls"] == 1


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


@pytest.mark.parametrize("name", ["mi", "gfx1100", ""])
def test_an_unknown_device_is_named(name: str) -> None:
    said = f"'{name}' is none of auto, hip, softgpu, cuda, gfx90a, gfx906, gfx908, gfx942"
    for each in ("run", "compare", "check", "replay", "doctor", "inspect"):
        result = invoke(each, "--device", name, "x")
        assert result.exit_code == 2 and said in result.stderr


# ---- run: error messages ----


@pytest.mark.parametrize("flags", ["-static", "-static-pie -fPIE"])
def test_a_static_program_runs_with_a_warning(flags: str, tmp_path: Path) -> None:
    static = compile_c(tmp_path / "static", "int main(void) { return 5; }", *flags.split())
    for options in ((), ("--stats", "--hook", "trace")):
        result = command("run", *options, "--", static)
        assert result.returncode == 5
        said = "runs without mgpu_rt preloaded: it is statically linked: link it dynamically"
        assert said in result.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes a set-uid program")
@pytest.mark.parametrize("mode", [0o4755, 0o2755])
def test_a_set_uid_program_runs_with_a_warning(mode: int, program: Path, tmp_path: Path) -> None:
    owned = Path(shutil.copy(program, tmp_path / "owned"))
    owned.chmod(mode)  # it gets no privileges if the caller owns it
    assert "preloaded" not in command("run", owned).stderr
    os.chown(owned, 12345, 12345)  # whom the system's list of users lacks
    owned.chmod(mode)
    said = "it has privileges of its own (set-uid, set-gid or capabilities), so it ignores"
    assert f"runs without mgpu_rt preloaded: {said}" in command("run", owned).stderr
    refused = command("compare", "--", owned)
    assert refused.returncode == 2 and said in refused.stderr
    copy = tmp_path / "copy"
    subprocess.run(["cp", owned, copy], check=True)
    done = command("run", "--stats", copy)
    assert done.returncode == 3 and "mgpuStreamCreate" in done.stderr


def test_a_truncated_elf_file_is_left_to_the_kernel(tmp_path: Path) -> None:
    for size in (5, 20, 63, 100):
        path = tmp_path / "short"
        path.write_bytes(Path(sys.executable).read_bytes()[:size])
        path.chmod(0o755)
        result = command("run", path)
        assert result.returncode in (126, -signal.SIGSEGV, -signal.SIGKILL), result.stderr
        assert "Traceback" not in result.stderr


@pytest.mark.parametrize("name", ("libmlir_cuda_runtime.so", "libmlir_cuda_runtime.so.22.1"))
def test_a_program_runs_on_cuda(name: str, tmp_path: Path) -> None:
    """The program was linked with LLVM's own library for CUDA, which this machine lacks."""
    program = stream_program(tmp_path, name)
    env = {"MGPU_RT_CUDA": str(CUSTUB), "MGPU_RT_HIP": "/other"}
    result = command("run", "--device", "cuda", program, **env)
    assert (result.returncode, result.stdout, result.stderr) == (3, "done\n", "")


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


def test_a_part_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for module, device, said in (
        (preload.cuda, "cuda", f"no NVIDIA GPUs: {tmp_path}/cuhip/libamdhip64.so is missing"),
        (preload.softgpu, "softgpu", "no software GPU"),
    ):
        monkeypatch.setattr(module, "BUILD", tmp_path)
        result = invoke("run", "--device", device, "true")
        assert result.exit_code == 2
        assert said in result.stderr and "`make`" in result.stderr
    monkeypatch.setattr(_layout, "PREFIX", tmp_path / "build")
    monkeypatch.setattr(_layout, "CHECKOUT", tmp_path)
    for words in (["run", "--device", "hip", "true"], ["config", "--path"]):
        result = invoke(*words)
        assert result.exit_code == 2
        assert f"was not built: run `make` in {tmp_path}" in result.stderr
    assert invoke("doctor", "--device", "hip").exit_code == 1
    monkeypatch.setattr(preload, "library_path", lambda: f"/with:colon/{RUNTIME}")
    result = invoke("run", "--device", "hip", "true")
    assert result.exit_code == 2 and "LD_PRELOAD cannot contain" in result.stderr


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
    monkeypatch.setattr(preload._hip_search, "find", lambda _: {})
    assert preload.choose("auto", {}) == "cuda"


def test_auto_without_any_gpu_fails(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preload.softgpu, "BUILD", machine)
    result = invoke("run", "true", MGPU_RT_HIP=None)
    assert result.exit_code == 2
    assert "there is no GPU that a program could run on: no AMD GPU" in result.stderr
    assert not doctor.examine("auto", {"PATH": "/usr/bin"}).possible
    (machine / "kfd").touch()
    monkeypatch.setattr(preload._hip_search, "find", lambda _: {})
    with pytest.raises(CommandError, match="an AMD GPU, which needs a HIP library"):
        preload.choose("auto", {})


@pytest.mark.parametrize("device", ["auto", "hip"])
@pytest.mark.parametrize("words", ["run", "compare --", "compare --report - --", "run --record f"])
def test_a_hip_that_is_not_there_is_refused_before_the_program_runs(
    device: str, words: str, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    command, *options = words.split()
    words = (command, "--device", device, *options, "touch", str(ran))
    result = invoke(*words, MGPU_RT_HIP="/nowhere/libamdhip64.so")
    assert result.exit_code == 2
    assert "MGPU_RT_HIP=/nowhere/libamdhip64.so: there is no such file" in result.stderr
    assert not ran.exists()


def test_a_hip_that_is_no_library_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The dynamic loader may find a HIP by its bare name even if `mgpu-rt` finds none."""
    text = tmp_path / "text"
    text.write_text("INPUT(libamdhip64.so.6)")
    for device, path in itertools.product(("hip", "softgpu"), (tmp_path, text)):
        result = invoke("run", "--device", device, "true", MGPU_RT_HIP=str(path))
        assert result.exit_code == 2
        assert f"MGPU_RT_HIP={path} is no library: name the file" in result.stderr
    monkeypatch.setattr(preload._hip_search, "find", lambda _: {})
    result = invoke("run", "--device", "hip", "true")
    assert result.exit_code == 2
    assert "there is no HIP library (libamdhip64): install ROCm, or set" in result.stderr
    assert preload.device_environment("hip", {"MGPU_RT_HIP": "libamdhip64.so.6"})


def test_auto_says_what_it_chose(program: Path) -> None:
    result = command("run", program, MGPU_RT_HIP="")
    assert result.returncode == 3
    assert result.stderr.startswith("mgpu-rt: --device ")
    assert command("run", "--device", "softgpu", program, MGPU_RT_HIP="").stderr == ""
