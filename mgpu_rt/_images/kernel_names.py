"""Full names, such as `main_kernel_0::main_kernel`, distinguish kernels whose plain names are
equal.

MLIR's --gpu-kernel-outlining puts each kernel into its own gpu.module, and gives all kernels of a
function one name. The image itself contains only the plain names of its kernels. MLIR stores the
image in a constant that is named after the gpu.module, with a suffix.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from mgpu_rt._images import elf
from mgpu_rt._images.model import ImageDescription

#: The suffixes that MLIR adds to the gpu.module's name: _gpubin_cst up to LLVM 17, _bin_cst in LLVM
#: 18 and 19, _binary since LLVM 20.
_ENDINGS = ("_binary", "_gpubin_cst", "_bin_cst")

SEPARATOR = "+"  # between the gpu.modules of one image


def module_of(symbol: str) -> str:
    """Returns the gpu.module from the name of the image's constant; "" if MLIR did not create the
    name."""
    for ending in _ENDINGS:
        if symbol.endswith(ending):
            return symbol.removesuffix(ending)
    return ""


def modules_at(file: str, address: int) -> tuple[str, ...]:
    """Returns the gpu.modules of the image at an address of a program's file, in the file's order.
    Images of equal bytes count as one image, so there may be several gpu.modules. Returns () if the
    file has no symbol for the image."""
    symbol = elf.symbol_at(file, address) if file else None
    if not symbol or symbol.value != address or not module_of(symbol.name):
        return ()
    return tuple(filter(None, (module_of(alike.name) for alike in elf.copies_of(file, symbol))))


def joined(modules: Sequence[str]) -> str:
    """Returns the name to show for the gpu.modules of one image: first+second. If there are more
    than three, the name has the first two, and how many more there are."""
    if len(modules) > 3:
        modules = [*modules[:2], f"{len(modules) - 2} more"]
    return SEPARATOR.join(modules)


def full_name(module: str, kernel: str) -> str:
    """Returns a kernel's full name, or the plain name if `module` is empty. Only this function
    creates full names."""
    return f"{module}::{kernel}" if module else kernel


def label_of(kernel: str, module: str, digits: str, others: Collection[str]) -> str:
    """Returns the name to show for a kernel, if images with the gpu.modules `others` have kernels
    of an equal name. `module` is the result of joined(). `digits` are of the image's hash, for
    images whose modules do not differ."""
    if not others and SEPARATOR not in module:
        return kernel
    return full_name(digits if module in ("", *others) else module, kernel)


def shown(images: Iterable[ImageDescription]) -> dict[tuple[str, str], str]:
    """Returns the name to show for each module and kernel: the plain name if it is unique,
    otherwise the full name."""
    pairs = [(image.module, name) for image in images for name in image.kernels_by_name]
    times = Counter(name for _, name in pairs)
    return {(m, name): full_name(m, name) if times[name] > 1 else name for m, name in pairs}
