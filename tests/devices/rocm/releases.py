"""The releases of AMD's HIP that the tests use, and the features that can be tested on each
release.

Debian 12's release is installed on the machine. The other releases (mgpu_rt._releases) are unpacked
into a cache, and run with their own C library and dynamic loader. These releases need neither
installation nor root.
"""

from __future__ import annotations

from dataclasses import dataclass

from mgpu_rt import _releases


@dataclass(frozen=True)
class Release(_releases.Release):
    """A release and its features."""

    sparse: tuple[str, ...] = ()  # packages that hipSPARSE needs and HIP does not
    rocr: str = ""
    seam: str = "libhsakmt.so.1"  # the library that softgpu replaces
    chips: tuple[str, ...] = ("gfx90a", "gfx942")
    abis: tuple[int, ...] = (400,)  # code object versions that the release loads
    returns_faults: bool = False  # kernel faults are errors; other releases abort the process


RELEASES = (
    Release(**vars(_releases.find("5.7")), rocr="6.1.2", abis=(400, 500)),
    Release(**vars(_releases.find("6.4")), rocr="7.2.4", seam="libdtif.so", abis=(400, 500, 600)),
    Release(
        **vars(_releases.find("7.2")),
        sparse=("libhipsparse4", "librocsparse1", "libroctx64-4"),
        returns_faults=True,
        rocr="7.2.4",
        seam="libdtif.so",
        abis=(400, 500, 600),
    ),
)


def find(hip: str) -> Release:
    """Returns the release with a given version. Raises KeyError."""
    for release in RELEASES:
        if release.hip == hip:
            return release
    raise KeyError(hip)
