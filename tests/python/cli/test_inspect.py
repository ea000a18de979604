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
from tests.support.suites import in_check

#: Prints the images of a file, and whether each fits a device, as JSON.
DESCRIBES = """
import json, sys
from pathlib import Path
from mgpu_rt._cli.errors import CommandError
from mgpu_rt._cli.inspect.fit import compare
from mgpu_rt._images import find
file, device = sys.argv[1:]
images = find.contents(Path(file).read_bytes(), file).images
unasked, answers = "", [[] for _ in images]
try:
    answers = compare(images, device)
except CommandError as error:
    unasked = error.message
print(json.dumps({
    "unasked": unasked,
    "images": [
        {
            "target": image.target,
            "kernels": [kernel.name for kernel in image.kernels],
            "undefined": image.undefined,
            "answers": said,
        }
        for image, said in zip(images, answers, strict=True)
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
    result = command("inspect", "--device", "softgpu", program, MGPU_RT_HIP="", COLUMNS="80")
    assert (result.returncode, result.stderr) == (0, "")
    text = " ".join(result.stdout.split())
    for words in (
        "a shared library or program for x86-64, 1 image",
        "(kernels_binary): an AMDGPU code object of version 4 for gfx90a, 4,984 ",
        "each load gets a module of its own: kernels or the host can write to its globals",
        "launches (4 bytes)",
        "softgpu gfx90a (emulated): fits",
        "at most 256 a block; wavefronts of 64",
        "0 0 8 global_buffer 1 8 8 global_buffer",
    ):
        assert words in text


def test_a_missing_probe_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sharing.why_not_shared.cache_clear()
    monkeypatch.setattr(sharing._hip_search, "probe", lambda: "/nowhere/mgpu-rt-probe")
    result = invoke("inspect", "--no-device", str(written(tmp_path, code_object("forum"))))
    assert_sentence(result.exit_code, result.stderr, "/nowhere/mgpu-rt-probe cannot be run")
    assert "run `make` to build it" in result.stderr


# ---- whether an image fits a device ----


def forum(version: int = 4) -> bytes:
    """Returns an image for gfx90a that states a version of code objects."""
    content = bytearray(code_object("forum", None, "gfx90a"))
    content[8] = version - 2
    return bytes(content)


#: For each image: its content, the devices, and for each device words of the reason against it.
#: HIP 5.2.3 supports no code objects of version 5.
FITS: dict[str, tuple[Callable[[], bytes], str, list[str]]] = {
    "two devices": (forum, "gfx90a,gfx906", ["", "it is for gfx90a, the device is gfx906"]),
    "version 5": (lambda: forum(5), "gfx90a", ["has version 5, but this HIP takes version 4"]),
    "a bundle": (lambda: bundle(forum()), "gfx90a", [""]),
    "PTX": (
        lambda: lower.code_object(SOURCES["forum"], "sm_90", image="isa"),
        *("gfx90a", ["it is PTX, NVIDIA's assembly"]),
    ),
    "a damaged image": (
        lambda: corpus.images()["headers point outside"],
        *("gfx90a", ["its headers name"]),
    ),
}


@pytest.mark.check
@pytest.mark.parametrize("case", FITS)
def test_each_device_has_its_own_answer(case: str, tmp_path: Path) -> None:
    make, devices, reasons = FITS[case]
    path = corpus.holder(tmp_path, make()) if "damaged" in case else written(tmp_path, make())
    report = inspect(path, "softgpu", MGPU_RT_HIP="", MGPU_RT_SOFTGPU=devices)
    answers = report["images"][0]["answers"]
    for (_, said), chip, reason in zip(answers, devices.split(","), reasons, strict=True):
        device, _, answer = said.partition(" (emulated): ")
        assert device.endswith(f" {chip}")
        assert (reason in answer, answer == "fits") == (True, not reason)


def test_nvidias_images_fit_nvidias_driver(tmp_path: Path) -> None:
    path = written(tmp_path, lower.code_object(SOURCES["forum"], "sm_90", image="isa"))
    report = inspect(path, "cuda", MGPU_RT_CUDA=str(CUSTUB), MGPU_RT_HIP="")
    answers = report["images"][0]["answers"]
    assert [said.endswith(": fits") for _, said in answers] == [True, True]
    (image,) = report["images"]
    assert (image["target"], image["kernels"]) == ("sm_90", ["test_func"])


def test_auto_starts_no_software_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preload, "KFD", tmp_path / "kfd")
    monkeypatch.setattr(preload.cuda, "GPUS", ())
    monkeypatch.setattr(hip_devices, "ask", lambda *_: pytest.fail("HIP was asked"))
    path = written(tmp_path, code_object("forum"))
    result = invoke("inspect", str(path))
    assert result.exit_code == 0
    assert "HIP was not asked: there is no AMD GPU" in result.stdout
    assert "--device softgpu asks" in result.stdout


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
    ((_, said),) = inspect(path, MGPU_RT_HIP=stub_of_hip(tmp_path))["images"][0]["answers"]
    assert (words in said, said.endswith(": fits")) == (True, not words)
    assert ("HSA_XNACK=1" in said) is (target == "gfx90a:xnack+")


def bundle_for(target: str) -> bytes:
    """Returns a bundle with one entry, for the target."""
    made, old = bundle(b"no code"), b"hipv4-amdgcn-amd-amdhsa--gfx90a"
    new = old.replace(b"gfx90a", target.encode())
    head, table = made[:4096].split(struct.pack("<Q", len(old)) + old)
    head += struct.pack("<Q", len(new)) + new + table
    return head[:4096] + made[4096:]


@pytest.mark.parametrize(
    ("count", "words"),
    [
        ("abort();", "signal 6 (SIGABRT)"),
        ("return 999;", "hipErrorUnknown"),
        ("sleep(60);", "did not end within its time limit"),
    ],
)
def test_a_driver_that_fails_is_named(
    count: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "sleep" in count:
        monkeypatch.setattr(hip_devices, "TIMEOUT", 0.5)
    path = written(tmp_path, code_object("forum"))
    result = invoke("inspect", str(path), MGPU_RT_HIP=stub_of_hip(tmp_path, count))
    assert words in " ".join(result.stdout.split())


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
    ((_, said),) = report["images"][0]["answers"]
    assert said.endswith(": does not fit: it needs elsewhere, which no code object defines")


@pytest.mark.parametrize(
    ("version", "known"),
    in_check(
        [(50221153, "4"), (50731921, "4, 5"), (60443484, "4, 5, 6"), (70253211, "4, 5, 6")],
        lambda version, _: version < 60_000_000,
    ),
)
def test_each_release_names_the_versions_that_it_takes(
    version: int, known: str, tmp_path: Path
) -> None:
    """`mgpu-rt inspect` names the code object versions that the runtime's advice also names
    (test_advice.py)."""
    named = stub_of_hip(tmp_path, version=version)
    report = inspect(written(tmp_path, forum(3)), MGPU_RT_HIP=named)
    ((hip, said),) = report["images"][0]["answers"]
    assert hip == f"HIP {version // 10000000}.{version // 100000 % 100}"
    assert said.endswith(f"the code object has version 3, but this HIP takes version {known}")


def test_a_missing_hip_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, code_object("forum"))
    report = inspect(path, MGPU_RT_HIP=str(path))
    assert f"{path} cannot be asked: " in report["unasked"]
    result = invoke("inspect", str(path), MGPU_RT_HIP="/nowhere/libamdhip64.so")
    assert result.exit_code == 0
    assert "not asked: MGPU_RT_HIP=/nowhere/libamdhip64.so: there is no such file" in result.stdout


# ---- invalid input ----


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
