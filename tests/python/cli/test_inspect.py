"""Tests `mgpu-rt inspect`: the output for real images, the answers of HIP, and invalid input."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mgpu_rt._cli import hip_devices, preload
from mgpu_rt._cli.inspect import fit
from mgpu_rt._images import sharing
from mgpu_rt._lowering import pipelines, steps
from mgpu_rt._lowering.text import only_image
from tests.runtime.images import corpus
from tests.support import lower
from tests.support.child import CUSTUB, environment
from tests.support.command import assert_sentence, command, invoke
from tests.support.compiled import compile_c
from tests.support.images import bundle, code_object
from tests.support.patience import run_process
from tests.support.programs import STOCK, build
from tests.support.sources import SOURCES

ON_SOFTGPU = {"MGPU_RT_HIP": ""}


#: Prints what `mgpu-rt inspect --device DEVICE FILE` shows, as JSON; "": no device.
DESCRIBES = """
import json, sys
from dataclasses import asdict
from pathlib import Path
from mgpu_rt._cli.inspect.fit import Fit, compare
from mgpu_rt._images import find, sharing
file, device = sys.argv[1:]
contents = find.read(Path(file))
fit = compare(contents.images, device) if device else Fit(unasked="--no-device")
answers = fit.answers or [[] for _ in contents.images]
def described(image):
    values = {name: value for name, value in vars(image).items() if name != "content"}
    parts = ("kernels", "globals")
    lists = {name: [asdict(each) for each in values[name]] for name in parts}
    return {**values, **lists, "entries": [described(entry) for entry in image.entries]}
print(json.dumps({
    "kind": contents.kind,
    "hip": {"path": fit.hip, "release": fit.release, "unasked": fit.unasked},
    "images": [
        {
            **described(image),
            "shared": sharing.why_not_shared(image.loaded) is None,
            "private": sharing.why_not_shared(image.loaded),
            "answers": [asdict(answer) for answer in said],
        }
        for image, said in zip(contents.images, answers, strict=True)
    ],
}))
"""


def inspect(path: object, device: str = "auto", **env: str) -> dict:
    words = [sys.executable, "-c", DESCRIBES, str(path), device]
    result = run_process(words, environment(**env))
    assert (result.returncode, result.stderr) == (0, "")
    return json.loads(result.stdout)


def written(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "image"
    path.write_bytes(content)
    return path


# ---- output ----


def test_images_of_a_lowered_program_are_described() -> None:
    program = build("globals", 22, 5, STOCK)
    result = command("inspect", "--device", "softgpu", program, **ON_SOFTGPU, COLUMNS="80")
    assert (result.returncode, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0] == f"{program}: a shared library or program for x86-64, 1 image"
    assert "(kernels_binary): an AMDGPU code object of version 4 for gfx90a, 4,984 " in lines[2]
    text = " ".join(result.stdout.split())
    assert "each load gets a module of its own: kernels can write to its globals" in text
    assert "writable launches (4 bytes)" in text
    assert "HIP 5.2 0: softgpu gfx90a (emulated): fits" in text
    assert "kernel count threads at most 256 a block; wavefronts of 64 registers" in text
    assert (
        "arguments 40 bytes number offset size kind 0 0 8 global_buffer 1 8 8 global_buffer" in text
    )
    assert all(len(line) <= 80 for line in lines[3:])


def test_json_has_targets_globals_and_sharing() -> None:
    program = build("globals", 22, 5, STOCK)
    report = inspect(program, "")
    (image,) = report["images"]
    assert image["target"] == "gfx90a"
    assert image["globals"] == [{"name": "launches", "size": 4}]
    assert not image["shared"]
    assert image["private"].startswith("kernels can write to its globals")
    (kernel,) = image["kernels"]
    assert kernel["wavefront"] == 64
    first = {"offset": 0, "size": 8, "kind": "global_buffer", "name": None}
    assert kernel["arguments"][0] == first
    assert image["answers"] == []
    assert report["hip"]["unasked"] == "--no-device"


def test_bundles_and_ptx_are_listed_for_people(tmp_path: Path) -> None:
    two = bundle(code_object("forum", None, "gfx1100"), code_object("globals", None, "gfx90a"))
    said = command("inspect", "--no-device", written(tmp_path, two)).stdout
    assert "entry hipv4-amdgcn-amd-amdhsa--gfx90a: an AMDGPU code object of version 4" in said
    assert "    kernel count" in said
    ptx = lower.code_object(SOURCES["globals"], "sm_90", image="isa")
    said = command("inspect", "--no-device", written(tmp_path, ptx)).stdout
    assert "PTX, NVIDIA's assembly, version 8.0 for sm_90" in said
    assert "  kernel count" in said
    assert "launches (4 bytes)" in said


def test_the_library_decides_if_an_image_is_shared(tmp_path: Path) -> None:
    """If the library cannot read a section's name, the library assumes that kernels can write to
    the section."""
    path = written(tmp_path, corpus.images()["names without an end"])
    (image,) = inspect(path, "")["images"]
    assert image["globals"] == []
    assert not image["shared"]


def test_a_missing_probe_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sharing.why_not_shared.cache_clear()
    monkeypatch.setattr(sharing._hip_search, "probe", lambda: "/nowhere/mgpu-rt-probe")
    result = invoke("inspect", "--no-device", str(written(tmp_path, code_object("forum"))))
    assert_sentence(result.exit_code, result.stderr, "/nowhere/mgpu-rt-probe cannot be run")
    assert "run `make` to build it" in result.stderr


def test_names_are_only_text(tmp_path: Path) -> None:
    """Names with control characters are printed as escaped text."""
    ptx = b".version 8.0\n.target sm_90\n.entry \x1b[2Jkernel(\n"
    said = command("inspect", "--no-device", written(tmp_path, ptx)).stdout
    assert r"kernel \u001b[2Jkernel" in said


# ---- whether an image fits a device ----


def answers(path: Path, **env: str) -> list[tuple[str, bool, str]]:
    report = inspect(path, "softgpu", **ON_SOFTGPU, **env)
    (image,) = report["images"]
    return [(said["target"], said["fits"], said["reason"]) for said in image["answers"]]


def test_each_device_has_its_own_answer(tmp_path: Path) -> None:
    path = written(tmp_path, code_object("forum", None, "gfx90a"))
    first, second = answers(path, MGPU_RT_SOFTGPU="gfx90a,gfx906")
    assert first[0].startswith("gfx90a")
    assert first[1:] == (True, "")
    assert not second[1]
    assert "it is for gfx90a, the device is gfx906" in second[2]


def test_an_unknown_code_object_version_is_the_reason(tmp_path: Path) -> None:
    """HIP 5.2.3 does not support code object versions 5 and 6."""
    content = bytearray(code_object("forum", None, "gfx90a"))
    content[8] = 3
    ((_, fits, reason),) = answers(written(tmp_path, bytes(content)))
    assert not fits
    assert reason.endswith("the code object has version 5, but this HIP takes version 4")


def test_a_bundle_loads_by_its_matching_entry(tmp_path: Path) -> None:
    forum = code_object("forum", None, "gfx90a")
    ((_, fits, _),) = answers(written(tmp_path, bundle(forum)))
    assert fits


def test_amds_hip_is_not_asked_about_nvidias_images(tmp_path: Path) -> None:
    ptx = lower.code_object(SOURCES["forum"], "sm_90", image="isa")
    ((_, fits, reason),) = answers(written(tmp_path, ptx))
    assert (fits, reason) == (False, "it is PTX, NVIDIA's assembly")


def test_nvidias_images_fit_nvidias_driver(tmp_path: Path) -> None:
    ptx = lower.code_object(SOURCES["forum"], "sm_90", image="isa")
    path = written(tmp_path, ptx)
    report = inspect(path, "cuda", MGPU_RT_CUDA=str(CUSTUB), MGPU_RT_HIP="")
    assert [said["fits"] for said in report["images"][0]["answers"]] == [True, True]


def test_auto_starts_no_software_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preload, "KFD", tmp_path / "kfd")
    monkeypatch.setattr(preload.cuda, "GPUS", ())
    monkeypatch.setattr(hip_devices, "ask", lambda *_: pytest.fail("HIP was asked"))
    path = written(tmp_path, code_object("forum"))
    result = invoke("inspect", str(path))
    assert result.exit_code == 0
    assert "HIP was not asked: there is no AMD GPU" in result.stdout
    assert "--device softgpu asks" in result.stdout


def test_no_device_starts_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit, "compare", lambda *_: pytest.fail("HIP was asked"))
    result = invoke("inspect", "--no-device", str(written(tmp_path, code_object("forum"))))
    assert result.exit_code == 0


def stub_of_hip(tmp_path: Path, count: str = "", version: int = 60400000) -> str:
    """Builds a HIP library with one device; hipGetDeviceCount begins with the text `count`."""
    source = f"""
    #include <stdlib.h>
    #include <string.h>
    #include <unistd.h>
    int hipGetDeviceCount(int *n) {{ {count} *n = 1; return 0; }}
    int hipGetDeviceProperties(char *p, int d) {{
        strcpy(p, "one"); strcpy(p + 400, "gfx90a:sramecc+:xnack-"); return 0; }}
    int hipRuntimeGetVersion(int *n) {{ *n = {version}; return 0; }}
    const char *hipGetErrorName(int e) {{ return "hipErrorUnknown"; }}
    """
    return str(compile_c(tmp_path / "libamdhip64.so", source, "-shared", "-fPIC", "-w"))


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (
            "gfx90a:xnack+",
            "with xnack+, but the device runs with xnack-: compile without features=",
        ),
        ("gfx90a:sramecc-:xnack-", "with sramecc-, but the device runs with sramecc+"),
        ("gfx90a:sramecc+:xnack-", ""),
        ("gfx90a:xnack-", ""),
        ("gfx90c:xnack+", "it is for gfx90c"),
    ],
)
def test_a_feature_is_named_if_it_is_the_cause(target: str, words: str, tmp_path: Path) -> None:
    path = written(tmp_path, bundle_for(target))
    (said,) = inspect(path, MGPU_RT_HIP=stub_of_hip(tmp_path))["images"][0]["answers"]
    assert said["target"] == "gfx90a:sramecc+:xnack-"
    assert (words in said["reason"], said["fits"]) == (True, not words)
    assert ("HSA_XNACK=1" in said["reason"]) is (target == "gfx90a:xnack+")


def bundle_for(target: str) -> bytes:
    """Returns a bundle with one entry, for the target."""
    made, old = bundle(b"no code"), b"hipv4-amdgcn-amd-amdhsa--gfx90a"
    new = old.replace(b"gfx90a", target.encode())
    head, table = made[:4096].split(struct.pack("<Q", len(old)) + old)
    head += struct.pack("<Q", len(new)) + new + table
    return head[:4096] + made[4096:]


@pytest.mark.parametrize(
    ("count", "words"), [("abort();", "signal 6 (SIGABRT)"), ("return 999;", "hipErrorUnknown")]
)
def test_a_driver_that_fails_is_named(count: str, words: str, tmp_path: Path) -> None:
    path = written(tmp_path, code_object("forum"))
    report = inspect(path, MGPU_RT_HIP=stub_of_hip(tmp_path, count))
    assert "cannot be asked: " in report["hip"]["unasked"]
    assert words in report["hip"]["unasked"]


def test_missing_functions_of_a_code_object_are_named(tmp_path: Path) -> None:
    source = written(
        tmp_path,
        b"""
        gpu.module @kernels {
          llvm.func @elsewhere()
          gpu.func @main() kernel { llvm.call @elsewhere() : () -> () gpu.return }
        }""",
    )
    steps_of = pipelines.pipeline(22).device_steps()[:-1]  # without the refusal of such an image
    made = steps.run(steps_of, source.read_bytes()).decode()
    path = written(tmp_path, only_image(made))
    report = inspect(path, MGPU_RT_HIP=stub_of_hip(tmp_path))
    assert report["images"][0]["undefined"] == ["elsewhere"]
    (said,) = report["images"][0]["answers"]
    assert said["reason"] == "it needs elsewhere, which no code object defines"


def test_a_damaged_image_fits_no_device(tmp_path: Path) -> None:
    path = corpus.holder(tmp_path, corpus.images()["headers point outside"])
    report = inspect(path, MGPU_RT_HIP=stub_of_hip(tmp_path))
    (said,) = report["images"][0]["answers"]
    assert said["reason"] == report["images"][0]["damage"]
    assert "its headers name" in said["reason"]


@pytest.mark.parametrize(
    ("version", "known"),
    [
        (50221153, "4"),
        (50731921, "4, 5"),
        (60443484, "4, 5, 6"),
        (70253211, "4, 5, 6"),
    ],
)
def test_each_release_names_the_versions_that_it_takes(
    version: int, known: str, tmp_path: Path
) -> None:
    """`mgpu-rt inspect` names the code object versions that the runtime's advice also names
    (test_advice.py)."""
    content = bytearray(code_object("forum", None, "gfx90a"))
    content[8] = 1  # version 3
    named = stub_of_hip(tmp_path, version=version)
    report = inspect(written(tmp_path, bytes(content)), MGPU_RT_HIP=named)
    assert report["hip"]["release"] == f"{version // 10000000}.{version // 100000 % 100}"
    (said,) = report["images"][0]["answers"]
    assert said["reason"].endswith(
        f"the code object has version 3, but this HIP takes version {known}"
    )


def test_a_hip_that_hangs_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hip_devices, "TIMEOUT", 0.5)
    named = stub_of_hip(tmp_path, "sleep(60);")
    path = written(tmp_path, code_object("forum"))
    result = invoke("inspect", str(path), MGPU_RT_HIP=named)
    assert "did not end within its time limit" in " ".join(result.stdout.split())


def test_a_missing_hip_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, code_object("forum"))
    report = inspect(path, MGPU_RT_HIP=str(path))
    assert f"{path} cannot be asked: " in report["hip"]["unasked"]
    result = invoke("inspect", str(path), MGPU_RT_HIP="/nowhere/libamdhip64.so")
    assert result.exit_code == 2
    assert "MGPU_RT_HIP=/nowhere/libamdhip64.so: there is no such file" in result.stderr


# ---- invalid input ----


def truncated(content: bytes) -> bytes:
    return content[: len(content) // 2]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: b"", "is empty"),
        (lambda: b"func.func @main() { return }\n", "holds no device code"),
        (lambda: bytes(range(256)), "holds no device code"),
        (lambda: truncated(code_object("forum")), "is an AMDGPU code object, and it is truncated"),
        (lambda: truncated(bundle(code_object("forum"))), "is an offload bundle, and its table"),
        (lambda: truncated(Path(sys.executable).resolve().read_bytes()), "its ELF headers cannot"),
        (lambda: b"\x7fELF\x02\x01", "its ELF headers cannot be read"),
        (lambda: b"\x7fELF\x01\x01" + bytes(10), "its ELF headers cannot be read"),
        (lambda: b"__CLANG_OFFLOAD_BUNDLE__", "is an offload bundle, and its table"),
        (lambda: b"CCOB\2\0\1\0", "holds no device code"),
    ],
)
def test_bad_files_are_named(make: Callable[[], bytes], words: str, tmp_path: Path) -> None:
    result = invoke("inspect", str(written(tmp_path, make())))
    assert_sentence(result.exit_code, result.stderr, words)


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    missing = command("inspect", tmp_path / "none")
    assert_sentence(missing.returncode, missing.stderr, "No such file or directory")
    folder = command("inspect", tmp_path)
    assert_sentence(folder.returncode, folder.stderr, "Is a directory")


def test_a_program_without_images_is_refused(tmp_path: Path) -> None:
    """The message names the processor for which the program was compiled."""
    path = compile_c(tmp_path / "program", "int main(void) { return 0; }")
    content = bytearray(path.read_bytes())
    for machine, name in ((62, "x86-64"), (183, "AArch64"), (243, "RISC-V")):
        content[18:20] = machine.to_bytes(2, "little")
        path.write_bytes(content)
        result = invoke("inspect", str(path))
        words = f"for {name} and holds no image of device code: name a file that was lowered"
        assert_sentence(result.exit_code, result.stderr, words)


def test_a_truncated_object_file_is_refused(tmp_path: Path) -> None:
    whole = corpus.holder(tmp_path, code_object("forum")).read_bytes()
    for size in range(0, len(whole), 97):
        result = invoke("inspect", "--no-device", str(written(tmp_path, whole[:size])))
        assert result.exit_code == 2
        assert result.stderr.count("\n") == 1


def test_missing_packages_are_named() -> None:
    """Without the optional packages, only `inspect` fails; the message contains the command that
    installs the packages."""
    code = (
        "import sys; sys.modules['elftools'] = None\n"
        "from mgpu_rt._cli.main import main; main(sys.argv[1:])"
    )
    words = [sys.executable, "-c", code, "inspect", __file__]
    result = subprocess.run(words, capture_output=True, text=True)
    sentence = f"mgpu-rt: reading images needs pyelftools, which {sys.executable} lacks: "
    assert result.stderr == f"{sentence}{sys.executable} -m pip install pyelftools msgpack\n"
    assert result.returncode == 2
    words[3:] = ["config", "--path"]
    assert subprocess.run(words, capture_output=True).returncode == 0
