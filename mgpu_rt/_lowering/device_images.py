"""Reads the device images in a lowered program, and refuses an image that no GPU can load."""

from __future__ import annotations

import re

from mgpu_rt._images import elf
from mgpu_rt._lowering.strings import unescape

_BINARY = re.compile(
    r'gpu\.binary @("[^"]*"|[\w.$-]+).*?\b(?:bin|assembly) = "((?:[^"\\]|\\.)*)"', re.DOTALL
)


def only_image(device_part: str) -> bytes:
    """Returns the image in the result of Pipeline.device_part(). Raises ValueError unless there is
    a single image."""
    images = device_images(device_part)
    count = device_part.count("#gpu.object<")  # a module has an image for each of its targets
    if count == 1 and len(images) == 1:
        return next(iter(images.values()))
    if not count:
        raise ValueError("the program has no kernel: --emit image writes the image of kernels")
    raise ValueError(
        f"the program has {count} images (gpu.module {', '.join(sorted(images))}): --emit image "
        "writes one, so keep one gpu.module, and no target in it"
    )


def device_images(device_part: str) -> dict[str, bytes]:
    """Returns the images in the result of Pipeline.device_part(), by the name of the gpu.module."""
    return {name.strip('"'): unescape(code) for name, code in _BINARY.findall(device_part)}


def without_undefined(text: bytes) -> bytes:
    """Returns the program unchanged. Raises ValueError if a code object calls a function that it
    does not define: the linker accepts it, but HIP loads no such image."""
    for module, image in device_images(text.decode()).items():
        if missing := elf.read(image).undefined:
            names = ", ".join(sorted(name.removeprefix("_mlir_ciface_") for name in missing))
            raise ValueError(
                f"the kernels of gpu.module {module} call {names}, which no device library "
                "defines: define the function in the gpu.module. A call of libm comes from "
                "convert-math-to-libm: leave math operations of kernels to mgpu-rt lower"
            )
    return text
