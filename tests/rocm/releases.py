"""The releases of AMD's HIP that the tests know, and which Debian has them.

Debian 12 is the machine itself. The others are unpacked into a cache and run with their own C
library and dynamic loader. So nothing is installed and nobody has to be root.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Release:
    """One release: what it is called, the packages it takes, and what it can do."""

    hip: str  # the version, as Debian has it
    library: str  # the name that programs ask for
    suites: tuple[str, ...]  # of Debian, the first one preferred
    packages: tuple[str, ...]
    newest: tuple[str, ...] = ()  # packages that come from the last suite all the same
    sparse: tuple[str, ...] = ()  # hipSPARSE's, without what HIP has brought
    rocr: str = ""
    seam: str = "libhsakmt.so.1"  # what softgpu takes the place of
    chips: tuple[str, ...] = ("gfx90a",)
    abis: tuple[int, ...] = (400,)  # code object versions that it loads
    returns_faults: bool = False  # of kernels; the others abort the process

    @property
    def name(self) -> str:
        return f"hip-{self.hip}"


_ROCR7 = ("libhsa-runtime64-1", "libamd-comgr3")

RELEASES = (
    Release(
        "5.7.1",
        "libamdhip64.so.5",
        ("trixie",),
        ("libamdhip64-5",),
        rocr="6.1.2",
        chips=("gfx90a", "gfx942"),
        abis=(400, 500),
    ),
    Release(
        "6.4.3",
        "libamdhip64.so.6",
        ("sid", "experimental"),
        ("libamdhip64-6",),
        newest=_ROCR7,
        rocr="7.2.4",
        seam="libdtif.so",
        chips=("gfx90a", "gfx942"),
        abis=(400, 500, 600),
    ),
    Release(
        "7.2.4",
        "libamdhip64.so.7",
        ("sid", "experimental"),
        ("libamdhip64-7",),
        newest=("libamdhip64-7", *_ROCR7),
        sparse=("libhipsparse4", "librocsparse1", "libroctx64-4"),
        returns_faults=True,
        rocr="7.2.4",
        seam="libdtif.so",
        chips=("gfx90a", "gfx942"),
        abis=(400, 500, 600),
    ),
)


def find(hip: str) -> Release:
    """The release of a version. Raises KeyError."""
    for release in RELEASES:
        if release.hip == hip:
            return release
    raise KeyError(hip)
