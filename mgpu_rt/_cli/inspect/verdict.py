"""Loads images with this machine's HIP, in a child process, since a broken driver may hang or
crash."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mgpu_rt import _hip_search
from mgpu_rt._cli import preload
from mgpu_rt._cli.doctor import TIMEOUT
from mgpu_rt._cli.errors import CommandError
from mgpu_rt._images.model import CODE_OBJECT, CUBIN, FATBIN, PTX, ImageDescription, with_article

#: The code object versions that HIP loads. A row begins with the least value of
#: hipRuntimeGetVersion to which the row applies. The runtime's table in modules/image_advice.c has
#: the same content.
_TAKEN = ((60400000, (4, 5, 6)), (50700000, (4, 5)), (0, (4,)))
_MAJOR, _MINOR = 10000000, 100000

#: A child process runs this program, and reads the request and then the images from stdin. The
#: child finds the target in hipGetDeviceProperties' result by a pattern, since the target's offset
#: depends on the release. The child prints one line about HIP, then one line for each image.
_ASK = """
import ctypes, json, re, sys
asked = json.loads(sys.stdin.buffer.readline())
hip = ctypes.CDLL(asked["hip"])
hip.hipGetErrorName.restype = ctypes.c_char_p
number, devices = ctypes.c_int(0), []
hip.hipGetDeviceCount(ctypes.byref(number))
for device in range(number.value):
    properties = ctypes.create_string_buffer(65536)
    hip.hipGetDeviceProperties(properties, device)
    target = re.search(rb"gfx[0-9a-f]+(:[a-z]+[+-])*(?=\\0)", properties.raw)
    name = properties.raw[:256].split(b"\\0")[0].decode(errors="replace")
    devices.append([name, target[0].decode() if target else ""])
hip.hipRuntimeGetVersion(ctypes.byref(number))
print(json.dumps([number.value, devices]), flush=True)
for size in asked["sizes"]:
    image, said = ctypes.create_string_buffer(sys.stdin.buffer.read(size)), []
    for device in range(len(devices)):
        module = ctypes.c_void_p()
        hip.hipSetDevice(device)
        result = hip.hipModuleLoadData(ctypes.byref(module), image)
        said.append("" if result == 0 else hip.hipGetErrorName(result).decode())
        if result == 0:
            hip.hipModuleUnload(module)
    print(json.dumps(said), flush=True)
"""


@dataclass(frozen=True)
class Answer:
    """HIP's response to an image on one device."""

    device: str
    target: str
    loads: bool
    reason: str = ""


@dataclass
class Verdict:
    """HIP's responses to all images of a file, in order, or the reason why no image was loaded."""

    hip: str = ""
    release: str = ""
    answers: list[list[Answer]] = field(default_factory=list)
    unasked: str = ""


def ask(
    images: Sequence[ImageDescription], device: str, base: Mapping[str, str] = os.environ
) -> Verdict:
    """Loads images on the device of `mgpu-rt run --device DEVICE`; `auto` starts no software GPU.

    Raises CommandError if the device does not exist.
    """
    if device == "auto":
        try:
            device, why = preload.automatic(base)
        except CommandError as error:
            return Verdict(unasked=str(error))
        if device == "softgpu":
            reason = why.partition(":")[0]
            return Verdict(unasked=f"{reason}; --device softgpu asks HIP with an emulated device")
    environment = preload.device_environment(device, base)
    hip = environment.get("MGPU_RT_HIP") or _hip_search.find(base)[0].path
    return _ask(images, hip, device == "cuda", environment)


def _fit(image: ImageDescription, cuda: bool) -> bool:
    """Returns True if HIP may load the image: a damaged image may crash HIP, and a cubin may crash
    AMD's HIP."""
    return not image.damage and (cuda or image.kind not in (CUBIN, FATBIN, PTX))


def _ask(
    images: Sequence[ImageDescription], hip: str, cuda: bool, environment: Mapping[str, str]
) -> Verdict:
    contents = [image.content for image in images if _fit(image, cuda)]
    asked = json.dumps({"hip": hip, "sizes": list(map(len, contents))}).encode() + b"\n"
    child = {name: value for name, value in environment.items() if name != "LD_PRELOAD"}
    try:
        result = subprocess.run(
            [sys.executable, "-I", "-c", _ASK],
            input=asked + b"".join(contents),
            env=child,
            capture_output=True,
            timeout=TIMEOUT,
        )
    except subprocess.TimeoutExpired:
        return Verdict(hip, unasked=f"{hip} did not answer in {TIMEOUT:.0f} s: see dmesg")
    lines = [
        line for line in result.stdout.decode(errors="replace").splitlines() if line.startswith("[")
    ]
    if not lines:
        said = (
            result.stderr.decode(errors="replace").strip().splitlines()
            or [f"ended with {result.returncode}"]
        )[-1]
        return Verdict(hip, unasked=f"{hip} cannot be asked: {said}; see `mgpu-rt doctor`")
    version, devices = json.loads(lines[0])
    verdict = Verdict(hip, f"{version // _MAJOR}.{version % _MAJOR // _MINOR}")
    if not devices:
        verdict.unasked = f"{hip} finds no GPU: `mgpu-rt doctor` says why"
        return verdict
    results = iter(lines[1:])
    for image in images:
        said = json.loads(next(results, "null")) if _fit(image, cuda) else []
        verdict.answers.append(_answers(image, devices, said, 0 if cuda else version))
    return verdict


def _answers(
    image: ImageDescription, devices: list[list[str]], said: list[str] | None, version: int
) -> list[Answer]:
    """Returns HIP's response to an image for each device. `said` contains the errors' names. `said`
    is empty for an image that was not passed to HIP, and None after a driver's crash. `version` is
    0 if HIP runs on NVIDIA's driver."""
    answers = []
    for number, (name, target) in enumerate(devices):
        if said is None:
            error = "the driver crashes on it, or did on one before"
        elif not said:
            error = image.damage or f"it is {with_article(image.kind)}"
        else:
            error = said[number] and f"{said[number]}: {_reason(image, target, version)}"
        answers.append(Answer(f"{number}: {name}", target, not error, error))
    return answers


def _reason(image: ImageDescription, target: str, version: int) -> str:
    """Returns why HIP refuses an image, if the reason is known."""
    chip = target.partition(":")[0]
    targets = _targets(image)
    if version and chip and targets and chip not in targets:
        return f"it is for {', '.join(targets)}, the device is {target}"
    taken = next(versions for since, versions in _TAKEN if version >= since)
    if version and image.kind == CODE_OBJECT and image.version not in taken:
        known = ", ".join(map(str, taken))
        return f"the code object has version {image.version}, but this HIP takes version {known}"
    if feature := _other_feature(image, target):
        return (
            f"it is compiled with {feature}, but the device runs with {_opposite(feature)}: "
            f"compile without features={feature[-1]}{feature[:-1]} of rocdl-attach-target"
            + _XNACK.get(feature, "")
        )
    if image.undefined:
        return f"it needs {', '.join(image.undefined)}, which no code object defines"
    return "AMD_LOG_LEVEL=4 shows HIP's own reason" if version else "the driver does not say why"


#: Only xnack can be changed at run time.
_XNACK = {
    "xnack+": ", or set HSA_XNACK=1 if this GPU can retry page faults",
    "xnack-": ", or set HSA_XNACK=0",
}


def _opposite(feature: str) -> str:
    return feature[:-1] + ("-" if feature.endswith("+") else "+")


def _other_feature(image: ImageDescription, device: str) -> str:
    """Returns a feature such as "xnack+" that the image has and the device has not. Returns "" if a
    part of the image fits the device, or no part is for the device's processor."""
    chip, *features = device.split(":")
    found = ""
    for part in (image, *image.entries):
        processor, *wanted = _target(part).split(":")
        if processor != chip:
            continue
        others = [feature for feature in wanted if _opposite(feature) in features]
        if not others:
            return ""
        found = others[0]
    return found


def _target(image: ImageDescription) -> str:
    """Returns the target of an image. HIP selects a bundle's entry by the entry's name."""
    return (image.entry or "").partition("--")[2] or image.target or ""


def _targets(image: ImageDescription) -> list[str]:
    """Returns the processors that an image or its entries target, without the processors'
    features."""
    named = [target for part in (image, *image.entries) if (target := _target(part))]
    return list(dict.fromkeys(target.partition(":")[0] for target in named))
