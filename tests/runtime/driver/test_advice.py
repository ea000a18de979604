"""Tests that the advice on a failure is right for this release of HIP and for the kernel. The
library prints the advice only once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mgpu_rt._cli import softgpu
from tests.support.child import BACKENDS, ROOT, Mgpu, environment, in_child, library, run_child
from tests.support.compiled import stream_program
from tests.support.images import bundle, code_object
from tests.support.patience import HANG

KERNEL = "test_func"
INVALID_IMAGE = 200
HIP_5_2, HIP_5_7, HIP_6_4, HIP_7_2 = "50221153", "50731921", "60443484", "70253211"


def _advice(mgpu: Mgpu) -> list[str]:
    """Returns the lines of advice since the last call of this function."""
    return [line for line in mgpu.stderr().splitlines() if line.startswith("mgpu_rt: ")]


def _use_it_all(mgpu: Mgpu, image: bytes) -> None:
    """Makes all calls of a lowered program, even if earlier calls fail."""
    module = mgpu.load(mgpu.image(image))
    function = mgpu.function(module, KERNEL)
    stream = mgpu.StreamCreate()
    block = mgpu.MemAlloc(64, stream, False)
    mgpu.launch(function, stream)
    mgpu.StreamSynchronize(stream)
    mgpu.MemFree(block, stream)
    mgpu.StreamDestroy(stream)
    mgpu.ModuleUnload(module)


@in_child(HIPSTUB_DEVICES="0")
def test_a_missing_gpu_is_named_once(mgpu: Mgpu) -> None:
    """The library gives no advice except the line about the missing GPU, because other advice would
    be wrong."""
    _use_it_all(mgpu, code_object("forum"))
    (said,) = _advice(mgpu)
    assert "finds no GPU" in said
    assert "`mgpu-rt run --device softgpu" in said


@in_child(HIPSTUB_DEVICES="0")
def test_a_missing_gpu_is_named_whatever_call_comes_first(mgpu: Mgpu) -> None:
    mgpu.MemHostRegister(mgpu.image(bytes(4096)), 4096)
    (said,) = _advice(mgpu)
    assert "finds no GPU" in said


@in_child(HIPSTUB_DEVICES="0", MGPU_RT_CACHE="off")
def test_a_missing_gpu_is_named_without_the_cache(mgpu: Mgpu) -> None:
    _use_it_all(mgpu, code_object("forum"))
    (said,) = _advice(mgpu)
    assert "finds no GPU" in said


DROWNED = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
for _ in range(int(sys.argv[2])):
    library.mgpuStreamCreate()
"""


def _lines(calls: int, **env: str) -> list[str]:
    """Returns the lines that a process prints during `calls` failing calls."""
    code = [sys.executable, "-c", DROWNED, library(), str(calls)]
    variables = environment(MGPU_RT_MANAGER="off", **env)
    result = subprocess.run(code, env=variables, capture_output=True, text=True, timeout=HANG)
    assert result.returncode == 0
    return result.stderr.splitlines()


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"HIPSTUB_DEVICES": "0"}, "devices: 0"),
        ({"HIPSTUB_DEVICES": "3"}, "devices: 3"),
        ({"HIPSTUB_FAULT": "hipGetDeviceCount:*:999"}, "devices: unknown"),
        ({"MGPU_RT_CACHE": "off"}, "devices: not asked"),
    ],
)
def test_hip_counts_the_devices(env: dict[str, str], words: str) -> None:
    """The line distinguishes a count of 0 devices from an unknown count."""
    (line,) = [line for line in _lines(1, MGPU_RT_VERBOSE="1", **env) if "HIP: " in line]
    assert f", {words};" in line


NO_GPU = {"HIPSTUB_DEVICES": "0"}
NO_HIP = {"MGPU_RT_HIP": "/nowhere/libamdhip64.so"}


@pytest.mark.parametrize(
    ("env", "words"), [(NO_GPU, "HIP finds no GPU here"), (NO_HIP, "no HIP library")]
)
def test_a_cause_out_of_sight_is_repeated_at_the_end(env: dict[str, str], words: str) -> None:
    """The process prints many lines after the cause, so the last line repeats the cause."""
    lines = _lines(1000, **env)
    said = [number for number, line in enumerate(lines) if words in line]
    assert said == [min(said), len(lines) - 1] and min(said) <= 1
    assert lines[-1].startswith("mgpu_rt: the cause of these ")
    assert len(lines) == 1002


REFUSED_EACH_TIME = """
import ctypes, sys
from tests.support.images import code_object
library = ctypes.CDLL(sys.argv[1])
library.mgpuModuleLoad.restype = library.mgpuModuleGetFunction.restype = ctypes.c_void_p
image = ctypes.create_string_buffer(code_object("forum"))
for _ in range(100):
    module = ctypes.c_void_p(library.mgpuModuleLoad(image, len(image)))
    library.mgpuModuleGetFunction(module, b"main_kernel")
    library.mgpuMemFree(ctypes.c_void_p(64), None)
"""


def test_a_refused_image_is_named_again_at_the_end() -> None:
    """The last line counts the failures that a refused image caused, and no failure with another
    cause."""
    code = [sys.executable, "-c", REFUSED_EACH_TIME, library()]
    variables = environment(HIPSTUB_FAULT="hipModuleLoadData:*:209", PYTHONPATH=str(ROOT))
    result = subprocess.run(code, env=variables, capture_output=True, text=True, timeout=HANG)
    lines = result.stderr.splitlines()
    said = [number for number, line in enumerate(lines) if "refused the image at" in line]
    assert said == [1, len(lines) - 1]
    assert lines[-1].startswith("mgpu_rt: the cause of these 199 failures: HIP")


def test_a_missing_driver_is_named_once() -> None:
    """The library prints one line about the missing driver, and no advice about the calls that fail
    without the driver."""
    lines = _lines(2, HIPSTUB_FAULT="hipStreamCreate:*:35")
    assert [line for line in lines if line.startswith("mgpu_rt: ")] == [
        "mgpu_rt: HIP finds no driver for the GPU, or the driver is too old, so nothing runs: "
        "`mgpu-rt doctor` shows what is missing (for NVIDIA's GPUs: mgpu-rt doctor --device cuda)"
    ]


@pytest.mark.parametrize("env", [NO_GPU, NO_HIP])
def test_a_cause_in_sight_is_not_repeated(env: dict[str, str]) -> None:
    assert len(_lines(10, **env)) == 11


@in_child(policies=("builtin",))
def test_a_hostile_name_does_not_control_a_terminal(mgpu: Mgpu) -> None:
    """A kernel's name may come from an image, or from the author of the program."""
    assert not mgpu.function(
        mgpu.load(mgpu.image(code_object("forum"))), "a\x1b[31m\nb\x9bc\u202ed"
    )
    said = mgpu.stderr()
    assert "has no kernel 'a?[31m?b?c?d'" in said
    assert "\x1b" not in said


def test_amds_hip_without_a_gpu_is_explained() -> None:
    """This test runs Debian's HIP 5.2.3 without the emulator, on a machine without a GPU."""
    hip = {"MGPU_RT_HIP": str(softgpu.hip({})), "HIP_VISIBLE_DEVICES": "-1"}
    run_child(__name__, "_without_gpu", environment(**hip))


@in_child()
def _without_gpu(mgpu: Mgpu) -> None:
    _use_it_all(mgpu, code_object("forum", None, "gfx90a"))
    (said,) = _advice(mgpu)
    assert "finds no GPU" in said


def _refused(image: bytes) -> bytes:
    """The stub refuses the image because only its first section is invalid."""
    changed = bytearray(image)
    at = int.from_bytes(changed[40:48], "little")
    changed[at + 4] = 1
    return bytes(changed)


@in_child()
def test_one_refused_image_gives_one_advice(mgpu: Mgpu) -> None:
    _use_it_all(mgpu, _refused(code_object("forum")))
    (said,) = _advice(mgpu)
    assert "refused the image" in said


@in_child()
def test_one_wrong_name_gives_one_advice(mgpu: Mgpu) -> None:
    function = mgpu.function(mgpu.load(mgpu.image(code_object("forum"))), "no_such_kernel")
    mgpu.launch(function)
    (said,) = _advice(mgpu)
    assert "no kernel 'no_such_kernel'" in said


@in_child()
def test_two_causes_give_two_advices(mgpu: Mgpu) -> None:
    """After a refused image, the failure of another call gets its own advice."""
    mgpu.load(mgpu.image(_refused(code_object("forum"))))
    mgpu.MemFree(mgpu.image(bytes(64)), mgpu.null)
    assert len(_advice(mgpu)) == 2


def _of_version(number: int) -> bytes:
    """Returns a code object of the given version; the stub refuses the image."""
    image = bytearray(_refused(code_object("forum", None, "gfx90a")))
    image[8] = number - 2  # EI_ABIVERSION
    return bytes(image)


@pytest.mark.parametrize(
    ("release", "wrong", "said"),
    [
        (HIP_5_2, 5, "this HIP takes version 4 (abi=400 "),
        (HIP_5_7, 6, "this HIP takes version 4 and 5 (abi=400 or 500 "),
        (HIP_6_4, 3, "this HIP takes version 4 to 6 (abi=400, 500 or 600 "),
        (HIP_7_2, 7, "this HIP takes version 4 to 6 (abi=400, 500 or 600 "),
    ],
)
def test_a_version_is_named_if_it_is_the_cause(release: str, wrong: int, said: str) -> None:
    env = environment(HIPSTUB_VERSION=release, MGPU_RT_MANAGER="off", EXPECTED=f"{wrong}|{said}")
    run_child(__name__, "_versions", env)


@in_child()
def _versions(mgpu: Mgpu) -> None:
    wrong, _, words = os.environ["EXPECTED"].partition("|")
    mgpu.load(mgpu.image(_of_version(int(wrong))))
    (said,) = _advice(mgpu)
    assert f"The code object has version {wrong}, but {words}" in said, said


@in_child(HIPSTUB_VERSION=HIP_5_2)
def test_a_right_version_is_not_named(mgpu: Mgpu) -> None:
    """The image is for the device's chip, so the advice does not tell the user to compile for
    another chip."""
    mgpu.load(mgpu.image(_of_version(4)))
    (said,) = _advice(mgpu)
    assert "HIP refused" in said and "`mgpu-rt inspect PROGRAM` tells more" in said
    assert "an AMDGPU code object for gfx90a, on gfx90a:sramecc+:xnack-" in said
    assert "version" not in said and "--chip" not in said


def _for_gfx908() -> bytes:
    return _refused(code_object("forum", None, "gfx90a")).replace(b"--gfx90a", b"--gfx908")


@in_child()
def test_the_devices_target_is_named_beside_another_ones(mgpu: Mgpu) -> None:
    mgpu.load(mgpu.image(_for_gfx908()))
    (said,) = _advice(mgpu)
    assert "for gfx908, on gfx90a:sramecc+:xnack-. Compile the image for this GPU: " in said, said
    assert "mgpu-rt lower --chip gfx90a" in said
    assert "version" not in said and "rocminfo" not in said


FEATURES = {
    "gfx90a:xnack+": "The image requires xnack+, but this GPU runs with xnack-: compile the image "
    "for gfx90a:xnack-, or set HSA_XNACK=1 if this GPU can retry page faults",
    "gfx90a:sramecc-:xnack-": "The image requires sramecc-, but this GPU runs with sramecc+: "
    "compile the image for gfx90a:sramecc+",
    "gfx90a:sramecc+:xnack-": "`mgpu-rt inspect PROGRAM` tells more",
    "gfx90a:xnack-": "`mgpu-rt inspect PROGRAM` tells more",
}


@pytest.mark.parametrize("target", FEATURES)
def test_a_feature_is_named_if_it_is_the_cause(target: str) -> None:
    run_child(__name__, "_feature", environment(MGPU_RT_MANAGER="off", EXPECTED=target))


@in_child()
def _feature(mgpu: Mgpu) -> None:
    target = os.environ["EXPECTED"]
    mgpu.load(mgpu.image(_refused(code_object("forum", None, target))))
    (said,) = _advice(mgpu)
    assert f"for {target}, on gfx90a:sramecc+:xnack-. {FEATURES[target]}" in said, said


@in_child(HIPSTUB_DEVICES="3")
def test_the_target_of_several_devices_is_named_once(mgpu: Mgpu) -> None:
    mgpu.load(mgpu.image(_for_gfx908()))
    (said,) = _advice(mgpu)
    assert "for gfx908, on gfx90a:sramecc+:xnack-. Compile" in said, said


@in_child(HIPSTUB_FAULT="hipGetDeviceProperties:*:1")
def test_an_unknown_target_is_not_named(mgpu: Mgpu) -> None:
    mgpu.load(mgpu.image(_for_gfx908()))
    (said,) = _advice(mgpu)
    assert "for gfx908. `mgpu-rt inspect " in said, said


@in_child(HIPSTUB_FAULT="hipModuleLoadData:*:209")
def test_the_targets_of_a_bundle_are_named(mgpu: Mgpu) -> None:
    """HIP 5.2 ends the process if a bundle has no entry for the GPU; later releases refuse the
    bundle."""
    mgpu.load(mgpu.image(bundle(b"no code").replace(b"hsa--gfx90a", b"hsa--gfx908")))
    (said,) = _advice(mgpu)
    assert (
        "a clang offload bundle for gfx908, on gfx90a:sramecc+:xnack-. Compile the image" in said
    ), said


@in_child()
def test_the_device_is_asked_once(mgpu: Mgpu) -> None:
    """The library queries the device on another thread. Thus the last error of the program's thread
    is still the error about the refused image."""
    for _ in range(3):
        mgpu.load(mgpu.image(_for_gfx908()))
        assert mgpu.stub.hipPeekAtLastError() == INVALID_IMAGE
    assert mgpu.count("hipGetDeviceProperties") == 1


@in_child(HIPSTUB_DEVICES="0", MGPU_RT_SOFTGPU="gfx90a")
def test_nobody_is_told_to_emulate_what_is_emulated(mgpu: Mgpu) -> None:
    _use_it_all(mgpu, code_object("forum"))
    (said,) = _advice(mgpu)
    assert "none of the GPUs that MGPU_RT_SOFTGPU names" in said
    assert "--device" not in said and "doctor" not in said


@in_child(HIPSTUB_VERSION=HIP_6_4)
def test_a_target_with_dashes_is_named_whole(mgpu: Mgpu) -> None:
    """Some real targets contain dashes: gfx9-generic and gfx90a:xnack-."""
    image = _refused(code_object("forum", None, "gfx90a"))
    mgpu.load(mgpu.image(image.replace(b"--gfx90a", b"--gf9-x-")))
    (said,) = _advice(mgpu)
    assert "for gf9-x-" in said, said


@in_child(backends=BACKENDS)
def test_a_block_that_no_kernel_can_have_is_explained(mgpu: Mgpu) -> None:
    """The kernel of the program forum was compiled for at most 256 threads in a block, MLIR's
    default."""
    function = mgpu.function(mgpu.load(mgpu.image(code_object("forum"))), KERNEL)
    mgpu.launch(function, block=(2048, 1, 1))
    (said,) = _advice(mgpu)
    assert "a block of 2048 x 1 x 1 threads is more than the 256" in said
    assert f"kernel '{KERNEL}' was compiled for" in said
    assert "give its size in known_block_size, an attribute of gpu.func" in said


@in_child(backends=("softgpu",))
def test_a_block_that_this_kernel_cannot_have_is_explained(mgpu: Mgpu) -> None:
    """The GPU itself supports a block of this size."""
    function = mgpu.function(mgpu.load(mgpu.image(code_object("forum"))), KERNEL)
    mgpu.launch(function, block=(8, 64, 1))
    (said,) = _advice(mgpu)
    assert "a block of 8 x 64 x 1 threads is more than the 256" in said


@in_child()
def test_a_launch_with_another_mistake_gets_no_advice_on_blocks(mgpu: Mgpu) -> None:
    function = mgpu.function(mgpu.load(mgpu.image(code_object("forum"))), KERNEL)
    mgpu.launch(function, grid=(0, 1, 1))
    (said,) = _advice(mgpu)
    assert "each size must be at least 1" in said


@pytest.mark.parametrize(
    "hidden", ({"HIP_VISIBLE_DEVICES": "5"}, {"HIP_VISIBLE_DEVICES": "-1"}), ids=("5", "-1")
)
def test_hidden_devices_are_named(hidden: dict[str, str], tmp_path: Path) -> None:
    """HIP 5.2.3 crashes in most of its functions if a variable hides all devices."""
    env = environment("softgpu", **hidden)
    env["LD_LIBRARY_PATH"] += f":{library().parent}"
    done = subprocess.run(
        [stream_program(tmp_path)], env=env, capture_output=True, text=True, timeout=HANG
    )
    assert done.returncode == 3, done.stderr
    assert done.stdout == "done\n"
    assert "'hipStreamCreate(&stream)' failed with 'hipErrorNoDevice'" in done.stderr
    assert "HIP_VISIBLE_DEVICES or ROCR_VISIBLE_DEVICES hides them" in done.stderr
