"""The releases of AMD's HIP that the tests use, and the features that can be tested on each
release.

Debian 12's release is installed on the machine. The other releases are unpacked into a cache, and
run with their own C library and dynamic loader. These releases need neither installation nor root.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.devices.rocm import debian


@dataclass(frozen=True)
class Release:
    """A release, its packages and its features."""

    hip: str  # the version in Debian's notation
    library: str  # the name by which programs load it
    suites: tuple[str, ...]  # Debian's suites, the first one preferred
    packages: tuple[str, ...]
    newest: tuple[str, ...] = ()  # packages that come from the last suite nevertheless
    sparse: tuple[str, ...] = ()  # packages that hipSPARSE needs and HIP does not
    rocr: str = ""
    seam: str = "libhsakmt.so.1"  # the library that softgpu replaces
    chips: tuple[str, ...] = ("gfx90a", "gfx942")
    abis: tuple[int, ...] = (400,)  # code object versions that the release loads
    returns_faults: bool = False  # kernel faults are errors; other releases abort the process

    @property
    def name(self) -> str:
        """Returns the name of the release's folder."""
        return f"hip-{self.hip}"

    def unpack(self, root: Path) -> None:
        """Fetches the release's packages and unpacks them into a new folder. Raises
        PackagesMissing."""
        debian.unpack(self.packages, root, suites=self.suites, newest=self.newest)


_ROCR7 = ("libhsa-runtime64-1", "libamd-comgr3")
_NEWEST = ("sid", "experimental")


RELEASES = (
    Release(
        *("5.7.1", "libamdhip64.so.5", ("trixie",), ("libamdhip64-5",)),
        rocr="6.1.2",
        abis=(400, 500),
    ),
    Release(
        *("6.4.3", "libamdhip64.so.6", _NEWEST, ("libamdhip64-6",), _ROCR7),
        rocr="7.2.4",
        seam="libdtif.so",
        abis=(400, 500, 600),
    ),
    Release(
        *("7.2.4", "libamdhip64.so.7", _NEWEST, ("libamdhip64-7",), ("libamdhip64-7", *_ROCR7)),
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
