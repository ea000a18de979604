"""`mgpu-rt softgpu install`: a HIP for the software GPU, in the user's folder."""

from __future__ import annotations

import click

from mgpu_rt.cli.errors import CommandError


@click.group()
def softgpu() -> None:
    """The software GPU: AMD's HIP on emulated devices."""


@softgpu.command()
@click.argument("version", metavar="VERSION")
def install(version: str) -> None:
    """Fetch HIP of VERSION (5.7, 6.4 or 7.2) into your folder, for the software GPU.

    It comes from Debian's packages (60 MB), by apt-get, which verifies them. Root is not needed,
    and nothing is installed for others. `mgpu-rt run --device softgpu` takes it for devices that
    this machine's HIP does not know; MGPU_RT_HIP takes it for all.
    """
    from mgpu_rt import releases
    from mgpu_rt.debian import PackagesMissing
    from mgpu_rt.older_libc import LibraryTooOld

    try:
        release = releases.find(version)
    except KeyError:
        known = ", ".join(release.hip for release in releases.RELEASES)
        raise CommandError(f"there is no HIP {version} to fetch: name one of {known}") from None
    click.echo(f"HIP {release.hip}, of Debian's {' and '.join(release.suites)}", err=True)
    try:
        click.echo(releases.install(release))
    except (PackagesMissing, LibraryTooOld, OSError) as error:
        raise CommandError(f"HIP {release.hip} was not installed: {error}") from None
