"""Compares the facts of an image with the devices of this machine's HIP."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from mgpu_rt._cli import hip_devices, preload
from mgpu_rt._cli.errors import CommandError
from mgpu_rt._images.model import CODE_OBJECT, CUBIN, FATBIN, PTX, ImageDescription, with_article
from mgpu_rt._record_json import hip_release

#: The code object versions that HIP loads. A row begins with the least value of
#: hipRuntimeGetVersion to which the row applies. The runtime's table in modules/image_advice.c has
#: the same content.
_TAKEN = ((60400000, (4, 5, 6)), (50700000, (4, 5)), (0, (4,)))
_NVIDIAS = (CUBIN, FATBIN, PTX)


def compare(
    images: Sequence[ImageDescription], device: str, base: Mapping[str, str] = os.environ
) -> list[list[tuple[str, str]]]:
    """Compares images with the device of `mgpu-rt run --device DEVICE`; `auto` starts no software
    GPU. Returns for each image a row for each device: HIP's release, and whether the image fits the
    device. Raises CommandError with the reason why no HIP was asked."""
    if device == "auto":
        device, why = preload.automatic(base)
        if device == "softgpu":
            reason = why.partition(":")[0]
            raise CommandError(f"{reason}; --device softgpu asks HIP with an emulated device")
    asked = hip_devices.of(device, base)
    version, devices = asked["version"], asked["devices"]
    release = ".".join((hip_release(version) or "").split(".")[:2])
    version = 0 if device == "cuda" else version
    return [
        [
            (f"HIP {release}", f"{number}: {each['name']}: {_answer(image, each, version)}")
            for number, each in enumerate(devices)
        ]
        for image in images
    ]


def _answer(image: ImageDescription, device: Mapping[str, str], version: int) -> str:
    reason = _reason(image, device["target"], version)
    return f"does not fit: {reason}" if reason else "fits"


def _reason(image: ImageDescription, target: str, version: int) -> str:
    """Returns why an image does not fit a device; "" if no fact is against it. `version` is 0 if
    HIP runs on NVIDIA's driver."""
    if image.damage:
        return image.damage
    if (image.kind in _NVIDIAS) == bool(version):
        return f"it is {with_article(image.kind)}"
    named = filter(None, map(_target, image.parts))
    targets = list(dict.fromkeys(each.partition(":")[0] for each in named))
    chip = target.partition(":")[0]
    if version and chip and targets and chip not in targets:
        return f"it is for {', '.join(targets)}, the device is {target}"
    taken = next(versions for since, versions in _TAKEN if version >= since)
    if image.kind == CODE_OBJECT and image.version not in taken:
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
    return ""


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
    for part in image.parts:
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
