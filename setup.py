"""Builds the compiled files with csrc/build.mk, and copies them into the package.

In a checkout (editable installs) the compiled files stay in build/, where make finds them. In a
wheel and in pip's installs the compiled files are in mgpu_rt/. For a wheel or an install, setup.py
copies the sources to the build folder, and make compiles this copy. No compiled file contains the
build folder's path, so a second build gives equal bytes.

make uses CC, CFLAGS, LDFLAGS and SOURCE_DATE_EPOCH from the environment. make reads its other
variables from MAKEFLAGS, for example MAKEFLAGS="SOFTGPU=no".
"""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from setuptools import Distribution, find_packages, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

ROOT = Path(__file__).resolve().parent
SOURCES = ("csrc", "mgpu_rt", "softgpu")

#: If SOURCE_DATE_EPOCH is not set, files in archives get this time stamp. Zip files cannot contain
#: a time before 1980.
os.environ.setdefault("SOURCE_DATE_EPOCH", "315532800")


def need(*names: str) -> list[str]:
    """Returns the given tools that csrc/packaging/need.sh does not find on this machine."""
    command = ["sh", "csrc/packaging/need.sh", "--list", *names]
    environment = {**os.environ, "PYTHON": sys.executable}
    result = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    return result.stdout.splitlines()


def make(directory: Path, *arguments: str) -> None:
    """Runs make in a folder. If make fails, ends the build with make's message."""
    command = ["make", f"-j{os.cpu_count() or 1}", "-f", "csrc/build.mk", *arguments]
    command.append(f"HOST_PYTHON={sys.executable}")
    # csrc/build.mk adds the environment's CFLAGS to its own flags. A CFLAGS argument of make
    # replaces the environment's CFLAGS.
    if subprocess.run(command, cwd=directory).returncode != 0:
        sys.exit("mgpu_rt: the C half could not be built; make has said why")


class BuildNative(build_ext):
    """Compiles with make instead of setuptools' compiler."""

    def run(self) -> None:
        if missing := need("make", "cc", "binutils", "python-headers"):
            sys.exit("mgpu_rt: building needs, and this machine lacks:\n  " + "\n  ".join(missing))
        options = []
        if missing := need("hsakmt"):
            print(f"mgpu_rt: without the software GPU, which needs {missing[0]}", file=sys.stderr)
            options = ["SOFTGPU=no"]
        if self.inplace or self.editable_mode:
            make(ROOT, "native", *options)
            # The library reads the path of its interpreter from mgpu_rt.python.
            Path(ROOT, "build", "lib", "mgpu_rt.python").write_text(f"{sys.executable}\n")
            return
        tree = Path(self.build_temp, "tree").absolute()
        shutil.rmtree(tree, ignore_errors=True)
        for name in SOURCES:
            compiled = shutil.ignore_patterns("*.so", "__pycache__")
            shutil.copytree(ROOT / name, tree / name, ignore=compiled)
        out = Path(self.build_lib, "mgpu_rt").absolute()
        for name in ("lib", "include"):
            shutil.rmtree(out / name, ignore_errors=True)
        flags = f"{os.environ.get('CFLAGS', '')} -g0"  # debugging information would contain a path
        make(tree, "package", f"OUT={out}", f"CFLAGS={flags.strip()}", *options)


class SourceArchive(sdist):
    """Makes equal archives from equal files, on any machine, at any time."""

    def make_archive(self, base_name, format, root_dir=None, base_dir=None, **_) -> str:
        archive = f"{base_name}.tar.gz"
        moment = int(os.environ["SOURCE_DATE_EPOCH"])

        def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            member.mtime = moment
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            return member

        with (
            open(archive, "wb") as file,
            gzip.GzipFile("", "wb", fileobj=file, mtime=moment) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
        ):
            tar.add(Path(root_dir or ".", base_dir), base_dir, filter=plain)
        return archive


class NativeDistribution(Distribution):
    """A distribution that contains compiled files, although make, not setuptools, compiles these
    files."""

    def has_ext_modules(self) -> bool:
        return True


# From the help of the command's options, so it needs no page in the sources.
subprocess.run([sys.executable, "csrc/packaging/man.py", "build/mgpu-rt.1"], cwd=ROOT, check=True)

setup(
    distclass=NativeDistribution,
    # An editable install is then a path, and no module that each Python imports in 15 ms.
    package_dir={"": "."},
    packages=find_packages(include=["mgpu_rt", "mgpu_rt.*"]),
    data_files=[("share/man/man1", ["build/mgpu-rt.1"])],  # man looks beside the folders of PATH
    cmdclass={"build_ext": BuildNative, "sdist": SourceArchive},
    options={"bdist_wheel": {"py_limited_api": "cp310"}},
)
