"""Tests that the advice on a failure is right for this release of HIP and for the kernel. The
library prints the advice only once."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.child import BACKENDS, Mgpu, environment, in_cases, in_child, library
from tests.support.compiled import stream_program
from tests.support.images import bundle, code_object
from tests.support.known import KERNEL, forum
from tests.support.patience import run_process

INVALID_IMAGE = 200
HIP_5_2, HIP_5_7, HIP_6_4, HIP_7_2 = "50221153", "50731921", "60443484", "70253211"


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


def _refused(target: str = "gfx90a") -> bytes:
    """Returns an image for a target. The stub refuses the image because only its first section is
    invalid."""
    image = bytearray(code_object("forum", None, target))
    at = int.from_bytes(image[40:48], "little")
    image[at + 4] = 1
    return bytes(image)


def _for(name: bytes) -> bytes:
    """Returns a refused image whose notes name another target."""
    return _refused().replace(b"--gfx90a", b"--" + name)


def _of_version(number: int) -> bytes:
    """Returns a refused code object of the given version."""
    image = bytearray(_refused())
    image[8] = number - 2  # EI_ABIVERSION
    return bytes(image)


def _load(image: Callable[[], bytes]) -> Callable[[Mgpu], object]:
    return lambda mgpu: mgpu.load(mgpu.image(image()))


def _use_forum(mgpu: Mgpu) -> None:
    _use_it_all(mgpu, code_object("forum"))


@dataclass(frozen=True)
class Case:
    """Calls that fail, with the words of their only line of advice, and words that the line must
    not contain."""

    do: Callable[[Mgpu], object]
    said: tuple[str, ...]
    unsaid: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)


NO_GPU = {"HIPSTUB_DEVICES": "0"}
MORE = "`mgpu-rt inspect PROGRAM` tells more"
HERE = "on gfx90a:sramecc+:xnack-."
CASES = {
    "no GPU": Case(
        _use_forum, ("finds no GPU", "`mgpu-rt run --device softgpu"), env=NO_GPU
    ),
    "no GPU at another first call": Case(
        lambda m: m.MemHostRegister(m.image(bytes(4096)), 4096), ("finds no GPU",), env=NO_GPU
    ),
    "no GPU without the cache": Case(
        _use_forum, ("finds no GPU",), env={**NO_GPU, "MGPU_RT_CACHE": "off"}
    ),
    "no emulated GPU": Case(
        _use_forum, ("none of the GPUs that MGPU_RT_SOFTGPU names",), ("--device", "doctor"),
        {**NO_GPU, "MGPU_RT_SOFTGPU": "gfx90a"},
    ),
    "a refused image": Case(lambda m: _use_it_all(m, _refused()), ("refused the image",)),
    "the right version": Case(
        _load(lambda: _of_version(4)),
        ("HIP refused", MORE, f", for gfx90a, {HERE}"), ("version", "--chip"),
        {"HIPSTUB_VERSION": HIP_5_2},
    ),
    "another target": Case(
        _load(lambda: _for(b"gfx908")),
        (f"for gfx908, {HERE} Compile the image for this GPU: ", "mgpu-rt lower --chip gfx90a"),
        ("version", "rocminfo"),
    ),
    "a target with dashes": Case(  # real ones: gfx9-generic, gfx90a:xnack-
        _load(lambda: _for(b"gf9-x-")), ("for gf9-x-",), env={"HIPSTUB_VERSION": HIP_6_4}
    ),
    "several devices of one target": Case(
        _load(lambda: _for(b"gfx908")), (f"for gfx908, {HERE} Compile",),
        env={"HIPSTUB_DEVICES": "3"},
    ),
    "a device of an unknown target": Case(
        _load(lambda: _for(b"gfx908")), ("for gfx908. `mgpu-rt inspect ",),
        env={"HIPSTUB_FAULT": "hipGetDeviceProperties:*:1"},
    ),
    "a bundle": Case(  # HIP 5.2 ends the process if a bundle has no entry for the GPU
        _load(lambda: bundle(b"no code").replace(b"hsa--gfx90a", b"hsa--gfx908")),
        (f", for gfx908, {HERE} Compile the image",),
        env={"HIPSTUB_FAULT": "hipModuleLoadData:*:209"},
    ),
    **{
        f"version {wrong}": Case(
            _load(lambda wrong=wrong: _of_version(wrong)),
            (f"The code object has version {wrong}, but this HIP takes version {right} ",),
            env={"HIPSTUB_VERSION": release},
        )
        for release, wrong, right in (
            (HIP_5_2, 5, "4 (abi=400"),
            (HIP_5_7, 6, "4 and 5 (abi=500"),
            (HIP_6_4, 3, "4 to 6 (abi=600"),
            (HIP_7_2, 7, "4 to 6 (abi=600"),
        )
    },
    "an image without xnack": Case(
        _load(lambda: _refused("gfx90a:xnack-")), ("Compile the image for this GPU: ",),
        env={"HSA_XNACK": "1"},
    ),
    **{
        target: Case(_load(lambda target=target: _refused(target)), (f"for {target}, {HERE} {s}",))
        for target, s in (
            ("gfx90a:xnack+", "Compile the image for this GPU: mgpu-rt lower --chip gfx90a, "),
            ("gfx90a:sramecc-:xnack+", "Compile the image for this GPU: "),
            ("gfx90a:sramecc-:xnack-", "Compile the image for this GPU: "),
            ("gfx90a:sramecc+:xnack-", MORE),
            ("gfx90a:xnack-", MORE),
        )
    },
}  # fmt: skip


@in_cases({name: case.env for name, case in CASES.items()})
def test_failures_are_explained_once(mgpu: Mgpu, name: str) -> None:
    """One line of advice names the cause, and calls that fail only because of it get none."""
    case = CASES[name]
    case.do(mgpu)
    (said,) = mgpu.advice()
    assert all(words in said for words in case.said), said
    assert not any(words in said for words in case.unsaid), said


@in_child(policies=("builtin",))
def test_a_hostile_name_does_not_control_a_terminal(mgpu: Mgpu) -> None:
    """A kernel's name may come from an image, or from the author of the program."""
    assert not mgpu.function(
        mgpu.load(mgpu.image(code_object("forum"))), "a\x1b[31m\nb\x9bc\u202ed"
    )
    said = mgpu.stderr()
    assert "has no kernel 'a?[31m?b?c?d'" in said
    assert "\x1b" not in said


DROWNED = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
for _ in range(10):
    library.mgpuStreamCreate()
"""
NO_DRIVER = "mgpu_rt: HIP finds no driver for the GPU, or the driver is too old, so nothing runs: "


@pytest.mark.parametrize(
    ("env", "words"),
    [
        (NO_GPU, "finds no GPU"),
        ({"MGPU_RT_HIP": "/nowhere/libamdhip64.so"}, "no HIP library"),
        ({"HIPSTUB_FAULT": "hipStreamCreate:*:35"}, NO_DRIVER),
    ],
    ids=("no GPU", "no HIP", "no driver"),
)
def test_a_cause_in_sight_is_not_repeated(env: dict[str, str], words: str) -> None:
    """The library prints one line about the cause, and no advice about the calls that fail because
    of it."""
    result = run_process(
        [sys.executable, "-c", DROWNED, library()], environment(MGPU_RT_MANAGER="off", **env)
    )
    lines = result.stderr.splitlines()
    assert len(lines) == 11
    (said,) = (line for line in lines if line.startswith("mgpu_rt: "))
    assert words in said


@in_child()
def test_two_causes_give_two_advices(mgpu: Mgpu) -> None:
    """After a refused image, the failure of another call gets its own advice."""
    mgpu.load(mgpu.image(_refused()))
    mgpu.MemFree(mgpu.image(bytes(64)), mgpu.null)
    assert len(mgpu.advice()) == 2


@in_child()
def test_the_device_is_asked_once(mgpu: Mgpu) -> None:
    """The library queries the device on another thread. Thus the last error of the program's thread
    is still the error about the refused image."""
    for _ in range(3):
        mgpu.load(mgpu.image(_for(b"gfx908")))
        assert mgpu.stub.hipPeekAtLastError() == INVALID_IMAGE
    assert mgpu.count("hipGetDeviceProperties") == 1


@in_child(backends=BACKENDS)
def test_a_block_that_no_kernel_can_have_is_explained(mgpu: Mgpu) -> None:
    """The kernel of the program forum was compiled for at most 256 threads in a block, MLIR's
    default. The GPU itself supports the second size."""
    size = (2048, 1, 1) if mgpu.on_stub else (8, 64, 1)
    mgpu.launch(forum(mgpu), block=size)
    (said,) = mgpu.advice()
    assert f"a block of {size[0]} x {size[1]} x 1 threads is more than the 256" in said
    assert f"kernel '{KERNEL}' was compiled for" in said


@in_cases({"1024": {"HIPSTUB_FAULT": "hipModuleLaunchKernel:*:9"}, "1025": {}})
def test_a_block_that_no_gpu_can_have_is_explained(mgpu: Mgpu, case: str) -> None:
    """The stub refuses only the larger block by itself."""
    mgpu.launch(forum(mgpu), block=(int(case), 1, 1))
    (said,) = mgpu.advice()
    assert ("no GPU takes more than 1024" in said) == (case == "1025")
    assert ("known_block_size" in said) == (case == "1024")


@pytest.mark.parametrize(
    "hidden", ({"HIP_VISIBLE_DEVICES": "5"}, {"HIP_VISIBLE_DEVICES": "-1"}), ids=("5", "-1")
)
def test_hidden_devices_are_named(hidden: dict[str, str], tmp_path: Path) -> None:
    """HIP 5.2.3 crashes in most of its functions if a variable hides all devices."""
    env = environment("softgpu", **hidden)
    env["LD_LIBRARY_PATH"] += f":{library().parent}"
    done = run_process([stream_program(tmp_path)], env)
    assert done.returncode == 3, done.stderr
    assert done.stdout == "done\n"
    assert "'hipStreamCreate(&stream)' failed with 'hipErrorNoDevice'" in done.stderr
    assert "HIP_VISIBLE_DEVICES or ROCR_VISIBLE_DEVICES hides them" in done.stderr
