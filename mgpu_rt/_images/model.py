"""The description of an image of device code."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

CODE_OBJECT = "AMDGPU code object"
CUBIN = "NVIDIA cubin"
BUNDLE = "offload bundle"
FATBIN = "NVIDIA fatbin"
PTX = "PTX"
OTHER = "part that is not read here"  # of a bundle


def with_article(kind: str) -> str:
    """Returns text such as "an offload bundle"."""
    if kind == PTX:
        return "PTX, NVIDIA's assembly"
    return f"{'a' if kind[0] in 'cp' else 'an'} {kind}"


@dataclass(frozen=True)
class Argument:
    """An argument of a kernel. None stands for facts that the image does not state."""

    offset: int | None
    size: int | None
    kind: str | None
    name: str | None = None

    @property
    def is_pointer(self) -> bool:
        """Returns True if the image says that the argument points to device memory."""
        return self.kind in ("global_buffer", "pointer")  # AMD's and NVIDIA's terms

    @property
    def may_point(self) -> bool:
        """Returns True if the argument may be an address. NVIDIA's images do not mark all pointers,
        so an unmarked argument of a pointer's size may be an address."""
        return self.is_pointer or (self.kind is None and self.size == 8)


@dataclass(frozen=True)
class KernelDescription:
    """A kernel. None stands for facts that the image does not state. NVIDIA's images state fewer
    facts than AMD's images."""

    name: str
    arguments: tuple[Argument, ...] = ()
    argument_bytes: int | None = None
    sgprs: int | None = None
    vgprs: int | None = None
    agprs: int | None = None
    spilled_sgprs: int | None = None
    spilled_vgprs: int | None = None
    workgroup_memory: int | None = None
    scratch: int | None = None
    max_flat_workgroup_size: int | None = None
    required_workgroup_size: tuple[int, int, int] | None = None
    wavefront: int | None = None

    @property
    def parameters(self) -> tuple[Argument, ...] | None:
        """Returns the arguments that a caller passes, without the hidden ones that HIP adds; None
        if the image does not list arguments."""
        if self.argument_bytes is None:
            return None
        return tuple(a for a in self.arguments if not (a.kind or "").startswith("hidden_"))

    def limit_on(self, block: tuple[int, int, int]) -> str:
        """Returns the reason why a launch with the block size `block` is impossible; "" if the
        launch is possible. In messages the reason follows the kernel's name. HIP uses a kernel's
        required block size, even if a launch requests a different block size."""
        required, most = self.required_workgroup_size, self.max_flat_workgroup_size
        if required and block != required:
            sizes = " x ".join(map(str, required))
            return f"was compiled for blocks of {sizes} threads, and runs with no other"
        if most is not None and math.prod(block) > most:
            return f"was compiled for blocks of at most {most} threads"
        return ""


@dataclass(frozen=True)
class Global:
    """A variable that kernels can write. When the image is loaded again, the variable must have its
    initial value."""

    name: str
    size: int | None


@dataclass
class ImageDescription:
    """An image, or an entry of a bundle or fatbin."""

    kind: str
    content: bytes = field(repr=False)
    where: str = ""
    module: str = ""  # the gpu.module of the image's origin, if the file tells
    offset: int = 0  # in the file, or in the image that contains it
    entry: str | None = None  # the image's name in a bundle
    target: str | None = None
    features: dict[str, str] = field(default_factory=dict)
    version: int | str | None = None  # of a code object; of PTX, as text
    kernels: list[KernelDescription] = field(default_factory=list)
    globals: list[Global] = field(default_factory=list)
    settable: list[str] = field(default_factory=list)  # constants that the host can set by name
    undefined: list[str] = field(default_factory=list)  # what a code object needs of others
    entries: list[ImageDescription] = field(default_factory=list)
    size: int = 0  # 0: not known
    damage: str | None = None  # the reason why no driver can load it
    private: str | None = None  # why each load gets a module of its own (sharing.why_not_shared)
    unread: str | None = None  # the reason why the description is incomplete

    @property
    def loaded(self) -> bytes:
        """Returns the bytes that the library loads: PTX with its terminating 0."""
        return self.content + b"\0" if self.kind == PTX else self.content

    @property
    def parts(self) -> list[ImageDescription]:
        """Returns the entries of a bundle or fatbin, and the image itself."""
        return [*self.entries, self]

    @property
    def kernels_by_name(self) -> dict[str, KernelDescription]:
        """Contains each name once: a bundle contains a kernel for several GPUs."""
        return {kernel.name: kernel for part in self.parts for kernel in part.kernels}
