"""Full names tell kernels of equal names apart: `main_kernel_0::main_kernel`.

MLIR's --gpu-kernel-outlining puts each kernel into a gpu.module of its own, and gives all kernels
of a function the same name. The image holds only its kernels' names. MLIR puts the image into a
constant, whose name is that of the gpu.module with an ending.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from mgpu_rt._images.model import ImageDescription

#: MLIR's endings after the gpu.module's name: since 20, up to 17, and between them.
_ENDINGS = ("_binary", "_gpubin_cst", "_bin_cst")


def module_of(symbol: str) -> str:
    """The gpu.module whose image a symbol stands for; "" if it is none of MLIR's."""
    for ending in _ENDINGS:
        if symbol.endswith(ending):
            return symbol.removesuffix(ending)
    return ""


def full_name(module: str, kernel: str) -> str:
    """The full name; without a module it is the kernel's. No other code makes this name."""
    return f"{module}::{kernel}" if module else kernel


def kernels_of(image: ImageDescription) -> list[str]:
    """The plain names; the entries of a bundle hold the same kernels for several GPUs."""
    parts = (image, *image.entries)
    return list(dict.fromkeys(kernel.name for part in parts for kernel in part.kernels))


def shown(images: Iterable[ImageDescription]) -> dict[tuple[str, str], str]:
    """The name to show for each module and kernel: the plain one if it is unique, else the full."""
    pairs = [(image.module, name) for image in images for name in kernels_of(image)]
    times = Counter(name for _, name in pairs)
    return {(m, name): full_name(m, name) if times[name] > 1 else name for m, name in pairs}
