"""Full names distinguish kernels with equal names: `main_kernel_0::main_kernel`.

MLIR's --gpu-kernel-outlining puts each kernel into its own gpu.module, and gives all kernels of a
function one name. The image itself contains only the plain names of its kernels. MLIR stores the
image in a constant that is named after the gpu.module, with a suffix.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from mgpu_rt._images.model import ImageDescription

#: MLIR's suffixes of the gpu.module's name: the first since LLVM 20, the second up to LLVM 17, the
#: third for LLVM 18 and 19.
_ENDINGS = ("_binary", "_gpubin_cst", "_bin_cst")


def module_of(symbol: str) -> str:
    """Returns the gpu.module whose image a symbol names; "" if the symbol is not MLIR's."""
    for ending in _ENDINGS:
        if symbol.endswith(ending):
            return symbol.removesuffix(ending)
    return ""


def full_name(module: str, kernel: str) -> str:
    """Returns the full name; without a module, the kernel's name. All full names are made by this
    function."""
    return f"{module}::{kernel}" if module else kernel


def kernels_of(image: ImageDescription) -> list[str]:
    """Returns the kernels' plain names, each once: a bundle's entries contain equal kernels for
    several GPUs."""
    parts = (image, *image.entries)
    return list(dict.fromkeys(kernel.name for part in parts for kernel in part.kernels))


def shown(images: Iterable[ImageDescription]) -> dict[tuple[str, str], str]:
    """Returns the name to show for each module and kernel: the plain name if it is unique,
    otherwise the full name."""
    pairs = [(image.module, name) for image in images for name in kernels_of(image)]
    times = Counter(name for _, name in pairs)
    return {(m, name): full_name(m, name) if times[name] > 1 else name for m, name in pairs}
