"""Tests the commands of mgpu-rt that show information. Also tests the package in a Python
program."""

from __future__ import annotations

import glob
import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

import click
import pytest

from mgpu_rt import _packages
from mgpu_rt._cli import doctor as doctor_module
from mgpu_rt._cli import options, preload
from mgpu_rt._cli.main import main
from mgpu_rt._lowering import toolchain
from tests.support.child import CUSTUB, ROOT, STUB, environment
from tests.support.command import COMMAND, command, invoke
from tests.support.compiled import compile_c
from tests.support.patience import HANG
from tests.support.refused import USERFAULTFD, refusing

# ---- config, path, abi ----


def test_config_shows_every_option() -> None:
    lines = invoke("config").stdout.splitlines()
    for option in options.options():
        at = lines.index(f"{option.variable}={option.default}")
        assert lines[at + 1] == f"    {option.meaning}"


def test_config_shows_what_the_environment_says() -> None:
    known = {name: "off" for name in ("MGPU_RT_CUDA", "MGPU_RT_CHECK_UNINITIALISED")}
    words = {"MGPU_RT_MODULE_LIMIT": "7", "MGPU_RT_CACHE": "", "MGPU_RT_CASH": "off"}
    result = invoke("config", **words, **known)
    lines = result.stdout.splitlines()
    assert "MGPU_RT_MODULE_LIMIT=7  (from the environment)" in lines
    assert "MGPU_RT_CACHE=on" in lines
    (line,) = result.stderr.splitlines()
    assert line.startswith("mgpu-rt: MGPU_RT_CASH is set, but there is no such option")


def test_config_names_the_values_that_the_library_does_not_use() -> None:
    bad = {"MGPU_RT_MEMORY_LIMIT": "abc", "MGPU_RT_STREAM_LIMIT": "x", "MGPU_RT_CACHE": "of"}
    good = {"MGPU_RT_MODULE_LIMIT": "7", "MGPU_RT_HIP": "libmine.so", "MGPU_RT_SYNC": "lazy"}
    result = invoke("config", **bad, **good)
    assert result.exit_code == 0
    lines = dict(line.split("=", 1) for line in result.stderr.splitlines())
    assert lines.keys() == {f"mgpu-rt: {variable}" for variable in bad}
    assert lines["mgpu-rt: MGPU_RT_STREAM_LIMIT"].endswith("is not a number from 0 on: 32 is used")


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("SOFTGPU", "gfx91a", "'gfx91a' is none of gfx90a, "),
        ("SOFTGPU", "gfx90a,treads=2", "'treads=2' is none of its settings (memory, "),
        ("SOFTGPU", "memory=lots", "memory=lots: want a size of at least 16M"),
        ("SOFTGPU", "gfx942,memory=1G", ""),
        ("HIP", "/nowhere/hip.so", "MGPU_RT_HIP=/nowhere/hip.so: there is no such file"),
        ("RUNTIME", "foo", "MGPU_RT_RUNTIME=foo: it is not of the form package.module:Class"),
        ("RUNTIME", "mine:One,two", "MGPU_RT_RUNTIME=mine:One,two: it is not of the form "),
        ("RUNTIME", "mine:One, mine:Two?nth=3", ""),
        ("POLICY", "foo", "MGPU_RT_POLICY=foo: it is not of the form package.module:Class"),
        ("TRACE", "1", "MGPU_RT_TRACE='1' is not a path: no trace is written"),
        ("TRACE", "markers,on", "MGPU_RT_TRACE='on' is not a path: no trace is written"),
        ("TRACE", "trace.record", ""),
    ],
)
def test_config_names_a_value_that_ends_a_run(variable: str, value: str, said: str) -> None:
    result = invoke("config", **{f"MGPU_RT_{variable}": value})
    assert result.exit_code == 0
    lines = result.stderr.splitlines()
    assert len(lines) == bool(said) and all(said in line for line in lines), lines
    assert all(line.startswith("mgpu-rt: ") for line in lines)


@pytest.mark.parametrize("words", ["run", "check", "compare --", "diff"])
def test_a_misspelt_variable_is_named_once(words: str) -> None:
    result = invoke(*words.split(), "./no-such-program", MGPU_RT_CAHCE="off")
    said = "MGPU_RT_CAHCE is set, but there is no such option: do you mean MGPU_RT_CACHE?"
    assert result.stderr.count(said) == 1, result.stderr


@pytest.mark.parametrize(
    ("value", "said"), [("of", ["staging: check on the emulated GPU ignores it"]), ("off", [])]
)
def test_check_names_a_bad_value_that_it_replaces(value: str, said: list[str]) -> None:
    result = invoke("check", "true", MGPU_RT_CACHE=value)
    lines = [line for line in result.stderr.splitlines() if "MGPU_RT_CACHE" in line]
    assert len(lines) == len(said) and all(map(str.endswith, lines, said)), lines


def test_a_start_imports_only_what_every_command_needs() -> None:
    """At start mgpu-rt imports only modules that all commands need. A command that needs other
    modules imports these modules when the command runs. The test imports click and locale first,
    because click imports locale. Python starts without site, because site may import any module."""
    code = (
        "import locale, os, shlex, sys, click; known = set(sys.modules); import mgpu_rt._cli.main;"
        "print(*sorted(set(sys.modules) - known))"
    )
    path = os.pathsep.join([str(ROOT), str(Path(click.__file__).parents[1])])
    words = [sys.executable, "-S", "-c", code]
    result = subprocess.run(
        words, env=environment(PYTHONPATH=path), capture_output=True, text=True, check=True
    )
    package, *modules = result.stdout.split()
    assert package == "mgpu_rt"
    assert [name for name in modules if not name.startswith("mgpu_rt._cli")] == []


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("rep", ["plain,replay"]),
        ("compare --dev", ["plain,--device"]),
        ("stats some", ["file,some"]),  # the shell's own completion of files
        ("compare some", ["file,some"]),
    ],
)
def test_a_shell_completes_files_and_options(typed: str, found: list[str]) -> None:
    words = {"COMP_WORDS": f"mgpu-rt {typed}", "COMP_CWORD": str(len(typed.split()))}
    result = command(_MGPU_RT_COMPLETE="bash_complete", **words)
    assert result.stdout.splitlines() == found


@pytest.mark.parametrize("words", [("run", "false"), ("replay", ".")], ids=lambda words: words[0])
def test_a_command_that_executes_a_program_fails_in_the_tests(words: tuple[str, ...]) -> None:
    """If pytest became the program `true`, pytest would end with 0, and without a result."""
    ignored = [signal.getsignal(number) for number in (signal.SIGPIPE, signal.SIGXFSZ)]
    with pytest.raises(AssertionError, match=f"mgpu-rt {words[0]} .* executes /"):
        invoke(words[0], "--device", "softgpu", words[1])
    assert [signal.getsignal(number) for number in (signal.SIGPIPE, signal.SIGXFSZ)] == ignored


# ---- doctor ----


def doctor(*arguments: str, **env: str) -> tuple[int, dict]:
    """Returns the exit status and the report of `mgpu-rt doctor`."""
    result = command("doctor", "--json", *arguments, **env)
    assert result.stderr == ""
    return result.returncode, json.loads(result.stdout)


def states(report: dict) -> dict[str, str]:
    return {check["name"]: check["state"] for check in report["checks"]}


def line(report: dict, name: str) -> str:
    """Returns the text and the advice that a report contains for one check."""
    (check,) = (check for check in report["checks"] if check["name"] == name)
    return f"{check['text']}: {check['advice']}"


def test_doctor_finds_the_stub_of_hip() -> None:
    status, report = doctor(HIPSTUB_DEVICES="2", MGPU_RT_STATS="/nowhere/stats")
    assert status == 0
    assert report["possible"]
    assert report["device"] == "hip"
    assert report["hip"] == str(STUB)
    assert len(report["devices"]) == 2
    assert report["python"] == sys.version.split()[0]
    assert f"from a process of its own: {sys.executable}" in line(report, "Python")
    assert "LLVM 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24" in line(report, "programs")
    assert "failure" not in states(report).values()


def test_doctor_says_whether_memory_stays_registered() -> None:
    """If a seccomp filter refuses userfaultfd, as in some containers, doctor reports the
    refusal."""
    _, report = doctor()
    assert "mgpu-rt run --exclusive" in line(report, "registered")
    words = refusing(USERFAULTFD, COMMAND, "doctor", "--json")
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, timeout=HANG)
    refused = line(json.loads(done.stdout), "registered")
    assert "userfaultfd is forbidden here" in refused


#: Variables of a machine over the stub of HIP, doctor's status, the line's name, and its words.
FINDINGS: list[tuple[dict[str, str], int, str, str]] = [
    ({"HIPSTUB_TELLS": "1"}, 0, "reports", "HIP reports who calls it"),
    ({"HIPSTUB_TELLS": "0"}, 0, "reports", "this HIP does not report calls"),
    ({"HIPSTUB_TELLS": "1", "MGPU_RT_EXCLUSIVE": "on"}, 0, "reports", "ends MGPU_RT_EXCLUSIVE=on"),
    ({"HIPSTUB_TELLS": "0", "MGPU_RT_EXCLUSIVE": "on"}, 0, "reports", "nothing checks MGPU_RT_E"),
    ({"HIPSTUB_TELLS": "1", "MGPU_RT_EXCLUSIVE": "off"}, 0, "reports", "ask for no report"),
    ({"HIPSTUB_DEVICES": "0"}, 1, "devices", "HIP has found none"),
    ({"HIPSTUB_FAULT": "hipGetDeviceCount:*:100"}, 1, "devices", "HIP has found none"),
    ({"HIPSTUB_FAULT": "hipGetDeviceCount:*:999"}, 1, "devices", "hipErrorUnknown"),
    ({"HIPSTUB_FAULT": "hipStreamCreate:*:2"}, 1, "a program", "'hipErrorOutOfMemory'"),
    ({"MGPU_RT_CACHE": "off"}, 0, "Python", "not needed: MGPU_RT_CACHE=off"),
    ({"MGPU_RT_HIP": "/nowhere/hip"}, 1, "HIP", "MGPU_RT_HIP=/nowhere/hip: there is no such file"),
    ({"MGPU_RT_CACHE": "of"}, 0, "options", "MGPU_RT_CACHE='of' is neither on nor off nor a list"),
]


@pytest.mark.parametrize(("env", "status", "name", "words"), FINDINGS, ids=str)
def test_doctor_names_what_it_finds(
    env: dict[str, str], status: int, name: str, words: str
) -> None:
    ended, report = doctor(**env)
    assert ended == status
    assert words in line(report, name)
    assert report["possible"] == (status == 0)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_that_lacks_letters_ends_no_command(encoding: str) -> None:
    result = subprocess.run(
        [COMMAND, "doctor", "--help"],
        env=environment(PYTHONIOENCODING=encoding),
        capture_output=True,
    )
    assert (result.returncode, result.stderr) == (0, b"")


def test_doctor_looks_at_what_lowers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = doctor_module.Checklist("hip")
    doctor_module._lowering(found)
    assert {check.name: check.state for check in found.checks} == dict.fromkeys(
        ["LLVM 22", "LLVM 19", "amdgcn", "cc"], "ok"
    )
    monkeypatch.setattr(toolchain, "DEVICE_LIBRARIES", (tmp_path,) * 2)
    monkeypatch.setattr(toolchain.shutil, "which", lambda _: None)
    for releases in ("RELEASES", "TESTED"):
        monkeypatch.setattr(toolchain, releases, (23,))
    tmp_path.rmdir()
    lacking = doctor_module.Checklist("hip")
    doctor_module._lowering(lacking)
    assert lacking.possible and {check.state for check in lacking.checks} == {"note"}
    (llvm, amdgcn, cc) = lacking.checks
    assert "lacks mlir-opt-23, " in llvm.text and "mlir-23-tools" in llvm.advice
    assert "rocm-device-libs" in amdgcn.advice and "gcc" in cc.advice


def test_doctor_reports_a_hip_that_crashes_or_hangs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    crash = "#include <stdlib.h>\n__attribute__((constructor)) static void f(void) { abort(); }"
    hip = compile_c(tmp_path / "libamdhip64.so", crash, "-shared", "-fPIC")
    status, report = doctor(MGPU_RT_HIP=str(hip))
    assert status == 1
    assert line(report, "HIP").startswith("a program's first call did not return (it was ended by")
    monkeypatch.setattr(doctor_module, "TIMEOUT", 0.5)
    hanging = doctor_module.examine("auto", environment(HIPSTUB_DELAY="hipInit:20000000"))
    assert not hanging.possible
    assert "did not return in" in line(hanging.as_dict(), "HIP")


@pytest.mark.parametrize(
    ("device", "env", "names"),
    [
        ("softgpu", {"MGPU_RT_SOFTGPU": "gfx906,gfx90a"}, ["gfx906", "gfx90a"]),
        ("cuda", {"MGPU_RT_CUDA": str(CUSTUB)}, ["stub", "stub"]),
    ],
)
def test_doctor_examines_other_devices(device: str, env: dict[str, str], names: list[str]) -> None:
    status, report = doctor("--device", device, MGPU_RT_HIP="", **env)
    assert status == 0, report
    assert [name.removeprefix("softgpu ").split()[0] for name in report["devices"]] == names


def test_doctor_names_a_missing_kfd(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kfd = tmp_path / "kfd"
    monkeypatch.setattr(preload, "KFD", kfd)
    env = environment(MGPU_RT_HIP="", HIPSTUB_MODE="fast", ROCM_PATH=str(tmp_path))
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libamdhip64.so.7").symlink_to(STUB)
    monkeypatch.delenv("MGPU_RT_HIP", raising=False)
    missing = doctor_module.examine("hip", env).as_dict()
    assert "modprobe amdgpu" in line(missing, "AMD GPU")
    kfd.touch()
    assert states(doctor_module.examine("hip", env).as_dict())["AMD GPU"] == "ok"
    monkeypatch.setattr(os, "access", lambda *_: False)
    closed = doctor_module.examine("hip", env).as_dict()
    assert states(closed)["AMD GPU"] == "failure"
    assert f"usermod -aG {kfd.group()}" in line(closed, "AMD GPU")


# ---- the package ----


def test_import_is_light() -> None:
    """The first launch of a program waits for the import of mgpu_rt."""
    code = (
        "import sys; sys.path.append(sys.argv[1]); before = set(sys.modules)\n"
        "import mgpu_rt; print(*set(sys.modules) - before)"
    )
    words = [sys.executable, "-I", "-S", "-c", code, str(ROOT)]
    result = subprocess.run(words, capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["mgpu_rt"]


def test_load_returns_one_library() -> None:
    code = """
import mgpu_rt
runtime = mgpu_rt.load()
assert runtime is mgpu_rt.load()
assert runtime.version() == mgpu_rt.__version__
stream = runtime.mgpuStreamCreate()
runtime.mgpuStreamDestroy(stream)
assert runtime.mgpuStreamCreate() == stream
runtime.mgpuStreamDestroy(stream)
stats = mgpu_rt.stats()
assert stats["abi"]["mgpuStreamCreate"]["calls"] == 2, stats
assert stats["cache"]["streams"] == {"hits": 1, "misses": 1, "bypasses": 0, "evictions": 0}, stats
mine = runtime.mgpuStreamCreate()
with mgpu_rt.use_stream(mine):
    assert runtime.mgpuStreamCreate() == runtime.mgpuStreamCreate() == mine
runtime.mgpuStreamDestroy(mine)
assert mgpu_rt.empty_cache() == 1
assert "mgpuModuleLoad" in dir(runtime)
assert not hasattr(runtime, "hipInit")
"""
    env = environment(MGPU_RT_STATS="/dev/null")
    result = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_statistics_have_the_members_that_the_page_names() -> None:
    """Without statistics or a trace the library counts little, and None stands for the rest."""
    page = (ROOT / "docs" / "statistics.md").read_text().partition("## The JSON of statistics")[2]
    named = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    code = """
import json, mgpu_rt
mgpu_rt.load().mgpuStreamDestroy(mgpu_rt.load().mgpuStreamCreate())
print(json.dumps(mgpu_rt.stats()))
"""
    counted, without = (
        json.loads(
            subprocess.check_output(
                [sys.executable, "-c", code], env=environment(MGPU_RT_EXCLUSIVE="on", **how)
            )
        )
        for how in ({"MGPU_RT_STATS": "/dev/null"}, {})
    )
    assert set(counted) == set(without) == named
    assert counted["exclusive"] is True
    known = {"process", "start", "device", "cache", "kept", "memory", "manager"}
    assert {name for name, value in without.items() if value is not None} == known
    assert without["device"]["name"] is None and without["cache"]["streams"]["misses"] == 1


def test_the_man_page_has_each_command_and_variable(tmp_path: Path) -> None:
    words = [sys.executable, ROOT / "csrc" / "packaging" / "man.py", tmp_path / "mgpu-rt.1"]
    subprocess.run(words, check=True)
    page = (tmp_path / "mgpu-rt.1").read_text().replace("\\-", "-")
    for name in main.commands:
        assert f"\n.SS mgpu-rt {name} " in page
    for option in options.options():
        assert f"\n.B {option.variable}\n" in page


def test_the_interface_stays_narrow() -> None:
    assert len(options.options()) <= 16
    assert len(main.commands) <= 12


# ---- missing packages ----


@pytest.mark.parametrize(
    ("prefix", "marked", "pip"),
    [("/usr", True, False), ("/usr", False, True), ("/home/me/venv", True, True)],
)
def test_a_missing_package_is_debians_if_pip_would_refuse(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, prefix: str, marked: bool, pip: bool
) -> None:
    if marked:
        (tmp_path / "EXTERNALLY-MANAGED").touch()
    monkeypatch.setattr(sys, "base_prefix", "/usr")
    monkeypatch.setattr(sys, "prefix", prefix)
    monkeypatch.setattr(sysconfig, "get_path", lambda _name: str(tmp_path))
    how = _packages.how_to_add("click")
    by_pip = f"{sys.executable} -m pip install click"
    assert how == (by_pip if pip else _packages.how_to_install("python3-click"))


def test_a_system_without_click_is_told_its_package() -> None:
    """With -S the system's Python finds no packages of its own."""
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import mgpu_rt._cli.main"
    python = "/usr/bin/python3"
    if not glob.glob("/usr/lib/python3*/EXTERNALLY-MANAGED"):
        pytest.skip("pip does not refuse packages for the system's Python")
    done = subprocess.run([python, "-S", "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    how = _packages.how_to_install("python3-click")
    assert done.stderr == f"mgpu-rt: {python} has no click: {how}\n"
