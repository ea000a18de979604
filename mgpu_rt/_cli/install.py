"""Implements `mgpu-rt doctor --install VERSION`, which installs a HIP release for the software GPU
in the user's folder."""

from __future__ import annotations

import click

from mgpu_rt import _home, _releases
from mgpu_rt._cli.errors import CommandError
from mgpu_rt._debian import PackagesMissing
from mgpu_rt._older_libc import LibraryTooOld


def install(version: str) -> None:
    """apt-get downloads the release from Debian's packages, and verifies the packages. The
    installation does not need root."""
    try:
        release = _releases.find(version)
    except KeyError:
        known = ", ".join(release.hip for release in _releases.RELEASES)
        raise CommandError(f"there is no HIP {version} to fetch: name one of {known}") from None
    click.echo(f"HIP {release.hip}, of Debian's {' and '.join(release.suites)}", err=True)
    try:
        click.echo(_releases.install(release))
    except (PackagesMissing, LibraryTooOld, OSError) as error:
        place = _home.data() or "the user's folder"
        raise CommandError(f"HIP {release.hip} was not installed in {place}: {error}") from None
