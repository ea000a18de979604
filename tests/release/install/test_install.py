"""Tests installations from a copy of the sources; the copy is removed before the programs run.

`make check` tests make install. `make check-install` tests wheels, the source archive, failing
installations, every Python of this machine, and Debian 13.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.python.launches import EXAMPLES
from tests.python.launches.test_examples import NUMPY, RESULT
from tests.release.install import machine
from tests.release.install.machine import Installed, attempt, check, run
from tests.support import hosting, recorded
from tests.support.child import ROOT, STUB
from tests.support.compiled import stream_program
from tests.support.images import code_object
from tests.support.lower import with_iterations
from tests.support.patience import run_process
from tests.support.sources import SOURCES

THIS = f"{sys.version_info[0]}.{sys.version_info[1]}"
INSTALLED_SIZE = 4_300_000  # bytes, of which the device of `check` has a fifth
SELFTEST_SIZE = 400_000  # the selftest's part of the wheel


@pytest.fixture(scope="module")
def installed(wheel: Path, folder: Path) -> Installed:
    return machine.install(Path(sys.executable), folder / "venv", wheel)


# ---- an installed wheel ----


@pytest.mark.check_install
def test_an_installed_wheel_serves_programs(installed: Installed, folder: Path) -> None:
    check(installed, folder / "work", THIS)


@pytest.mark.check_install
def test_python_decides_at_a_limit_with_ld_preload_alone(installed: Installed) -> None:
    """After pip has installed the wheel, a preloaded program reaches its limit: the interpreter of
    the environment decides. No other option is set, and PATH has no Python."""
    library = Path(installed.ask("config", "--path").strip(), "libmlir_rocm_runtime.so")
    options = {"MGPU_RT_MANAGER": "on", "MGPU_RT_MODULE_LIMIT": "10K"}
    env = hosting.promptly(LD_PRELOAD=str(library), PATH="/nowhere", **options)
    command = [str(hosting.host()), str(library), str(hosting.image()), hosting.KERNEL, "served"]
    done = run_process(command, env)
    assert done.stdout == "ok\n", done.stderr
    python = re.search(r"manager: Python .*, '(.+)'", done.stderr)
    assert python and Path(python[1]).parent == installed.python.parent


@pytest.mark.check_install
def test_a_wheel_has_one_binary_and_no_path_of_the_builder(wheel: Path, tmp_path: Path) -> None:
    assert "-cp310-abi3-linux_" in wheel.name
    files = [path for path in machine.unpack(wheel, tmp_path).rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < INSTALLED_SIZE
    for path in files:
        content = path.read_bytes()
        for place in (str(ROOT), str(wheel.parent.parent), sys.prefix, f"{Path.home()}/"):
            assert place.encode() not in content, path
    names = {path.name for path in files}
    assert {
        "libmlir_rocm_runtime.so",
        "libmgpu_rt_sparse.so",
        "libmgpu_rt_python.so",
        "libhsakmt.so.1",
        "mgpu_rt.h",
        "mgpu_rt.pc",
    } <= names
    assert {"mgpu_rtConfig.cmake", "LICENSE", "mgpu-rt-probe", "libamdhip64.so"} <= names
    assert "py.typed" in names


@pytest.mark.check_install
def test_the_wheel_tests_a_gpu_without_a_checkout(installed: Installed, tmp_path: Path) -> None:
    """The selftest's files in the wheel are small."""
    file = tmp_path / "found.json"
    words = ("--only", "programs-22", "--only", "programs-15", "--json", file)
    said = run(
        installed.command, "selftest", "--device", "softgpu", *words, MGPU_RT_SOFTGPU="gfx906"
    )
    assert "yes, all are as with stock's behaviour (programs 2 of 2)" in said
    assert json.loads(file.read_text())["device"]["target"].startswith("gfx906")
    package = Path(installed.ask("config", "--path").strip()).parent
    parts = [package / "_selftest" / "bundle.tar.xz", *(package / "lib" / "selftest").iterdir()]
    assert sum(path.stat().st_size for path in parts) < SELFTEST_SIZE


@pytest.mark.check_install
@pytest.mark.parametrize("preloaded", (True, False))
@pytest.mark.parametrize(
    "name",
    ("libmlir_rocm_runtime.so.12", "libmlir_rocm_runtime.so.22.1", "libmlir_cuda_runtime.so"),
)
def test_llvms_names_lead_to_one_runtime(
    name: str, preloaded: bool, installed: Installed, tmp_path: Path
) -> None:
    """Each library name leads to an ELF filter of a few KB, and not to a copy of the library. Thus
    a process maps only one runtime."""
    library = Path(installed.ask("config", "--path").strip())
    assert (library / name).stat().st_size < 8192
    program = stream_program(tmp_path, name)
    env = {"MGPU_RT_VERBOSE": "1", "MGPU_RT_MANAGER": "off"}
    if preloaded:
        result = attempt(installed.command, "run", "--device", "softgpu", program, **env)
    else:
        result = attempt(program, LD_LIBRARY_PATH=str(library), **env)
    assert result.stdout == "done\n"
    assert result.stderr.count("mgpu_rt: HIP: ") == 1


@pytest.mark.check_install
def test_a_path_of_the_package_may_have_a_space(wheel: Path, installed: Installed) -> None:
    site = machine.unpack(wheel, wheel.parent / "größer als")
    moved = {"PYTHONPATH": str(site)}
    words = (installed.python, "-m", "mgpu_rt")
    assert run(*words, "config", "--path", **moved) == f"{site}/mgpu_rt/lib\n"
    result = attempt(*words, "doctor", "--device", "softgpu", **moved)
    assert result.returncode == 0, result.stdout


@pytest.mark.check_install
def test_the_installed_command_lowers_into_an_executable(
    installed: Installed, tmp_path: Path
) -> None:
    """The installed package lowers a program and runs it."""
    out = tmp_path / "forum"
    program = tmp_path / "forum.mlir"
    program.write_text(with_iterations(SOURCES["forum"].read_text(), 2))
    run(installed.command, "lower", program, "-o", out, "--emit", "executable")
    result = attempt(installed.command, "run", "--device", "softgpu", "--stats", "--", out)
    assert " 2 mgpuLaunchKernel\n" in result.stderr
    run(installed.python, "-m", "pip", "install", "jinja2")
    page = run(installed.command, "compare", "--report", "-", "--device", "softgpu", "--", out)
    assert_is_report(page)


def assert_is_report(page: str) -> None:
    """Asserts that a page contains calls and the style sheet. A wheel that contained only Python
    files would lack the style sheet."""
    assert "prefers-color-scheme: dark" in page
    assert "hipModuleLaunchKernel" in page


# ---- obstacles ----


@pytest.mark.check_install
@pytest.mark.parametrize(
    ("find", "replace", "said"),
    [
        (b"\x7fELF\x02\x01\x01", b"\x7fELF\x01\x01\x01", "made for another kind of machine"),
        (b"GLIBC_2.3", b"GLIBC_9.3", "C library is too old for it"),
    ],
)
def test_a_library_that_does_not_fit_is_named(
    find: bytes, replace: bytes, said: str, wheel: Path, installed: Installed, tmp_path: Path
) -> None:
    site = machine.unpack(wheel, tmp_path)
    library = site / "mgpu_rt" / "lib" / "libmlir_rocm_runtime.so"
    library.write_bytes(library.read_bytes().replace(find, replace))
    words = (installed.python, "-m", "mgpu_rt", "doctor", "--device", "softgpu")
    result = attempt(*words, PYTHONPATH=str(site), COLUMNS="1000")
    assert result.returncode == 1
    assert said in result.stdout
    assert "--no-binary mgpu_rt" in result.stdout
    load = attempt(installed.python, "-c", "import mgpu_rt; mgpu_rt.load()", PYTHONPATH=str(site))
    assert said in load.stderr.splitlines()[-1]


@pytest.mark.check_install
def test_pip_refuses_a_wheel_of_another_machine(
    wheel: Path, installed: Installed, tmp_path: Path
) -> None:
    """pip must refuse the wheel, and install none of its files."""
    other = tmp_path / wheel.name.replace("x86_64", "aarch64")
    shutil.copyfile(wheel, other)
    target = tmp_path / "target"
    words = (installed.python, "-m", "pip", "install", "--target", target, "--no-deps", other)
    result = attempt(*words)
    assert result.returncode != 0
    assert "not a supported wheel on this platform" in result.stderr
    assert not target.exists()


@pytest.mark.check_install
def test_doctor_names_a_missing_package_of_python(wheel: Path, tmp_path: Path) -> None:
    bare = machine.install(Path(sys.executable), tmp_path / "bare", wheel, options=("--no-deps",))
    result = attempt(bare.command, "doctor")
    assert result.returncode == 1
    assert f"{bare.python} has no click: {bare.python} -m pip install click" in result.stderr
    run(bare.python, "-m", "pip", "install", "click")
    report = bare.doctor("--device", "softgpu", PATH="/usr/bin:/bin")
    assert report["possible"]
    (line,) = (entry for entry in report["checks"] if entry["name"] == "Python")
    assert "No module named '_cffi_backend'" in line["text"] or line["state"] == "ok", line


@pytest.mark.check_install
def test_the_plain_wheel_reads_images(wheel: Path, installed: Installed, tmp_path: Path) -> None:
    """In an installation without pip's dependencies, the command and the Python API print how to
    install the missing packages."""
    image = tmp_path / "image"
    image.write_bytes(code_object("globals", None, "gfx90a"))
    words = ("inspect", "--no-device", image)
    assert "kernel count" in run(installed.command, *words)
    load = "import mgpu_rt, sys; print(*mgpu_rt.Module(sys.argv[1]))"
    on_softgpu = (installed.command, "run", "--device", "softgpu", "--", installed.python)
    assert run(*on_softgpu, "-c", load, image) == "count\n"
    bare = machine.install(Path(sys.executable), tmp_path / "bare", wheel, options=("--no-deps",))
    run(bare.python, "-m", "pip", "install", "click", "cffi")
    refused = attempt(bare.command, *words)
    assert refused.returncode == 2
    assert f"{bare.python} -m pip install pyelftools msgpack" in refused.stderr
    refused = attempt(bare.python, "-c", load, image)
    assert f"{bare.python} -m pip install pyelftools msgpack" in refused.stderr


@pytest.mark.check_install
@pytest.mark.skipif(os.geteuid() != 0, reason="takes another user's place")
def test_a_user_without_a_home_can_run_programs(installed: Installed, folder: Path) -> None:
    """The user has no permission to write to the installation."""
    program = folder / "work" / "by hand"
    words = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", installed.command)
    env = {"HOME": "/nowhere", "TMPDIR": "/tmp"}
    result = attempt(*words, "run", "--device", "softgpu", "--", program, **env)
    assert (result.returncode >= 0, result.stderr) == (True, "")
    assert attempt(*words, "doctor", "--device", "softgpu", **env).returncode == 0


@pytest.mark.check
def test_missing_tools_are_named(tmp_path: Path) -> None:
    """The script need.sh looks for files, and not for packages. The script's message names the make
    variables by which the user selects another tool or omits a part of the build."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("sh", "tr", "id", "sed", "printf"):
        (tools / name).symlink_to(shutil.which(name) or name)
    words = ("sh", ROOT / "csrc" / "packaging" / "need.sh", "cc", "hsakmt", "clang-format")
    result = attempt(*words, PATH=str(tools), CC="nocc")
    assert result.returncode == 1
    assert "This machine lacks:\n  a C compiler" in result.stderr
    for part in (
        "make CC=",
        "hsakmt.h of AMD's driver library",
        "make SOFTGPU=no",
        "clang-format-22",
    ):
        assert part in result.stderr
    assert "apt-get" not in result.stderr


# ---- make install ----


@pytest.mark.check
def test_make_install_can_be_moved_and_undone(tmp_path: Path) -> None:
    """The package is installed into a staging folder, moved to its place, and removed."""
    stage, prefix = tmp_path / "stage", tmp_path / "usr"
    words = ("make", "-C", ROOT, f"PREFIX={prefix}", f"INSTALL_PYTHON={sys.executable}")
    run(*words, "install", f"DESTDIR={stage}")
    (stage / prefix.relative_to("/")).rename(prefix)
    placed = Installed(prefix / "bin" / "mgpu-rt", Path(sys.executable))
    check(placed, tmp_path / "work", THIS)
    file = tmp_path / "stats.json"
    file.write_text(json.dumps(recorded.statistics()))
    assert_is_report(run(placed.command, "compare", "--report", "-", file))
    found = run(
        *("cmake", "-S", machine.EXAMPLE, "-B", tmp_path / "found"),
        f"-DCMAKE_PREFIX_PATH={prefix}",
    )
    assert "Configuring done" in found
    assert "run programs" in (prefix / "share" / "man" / "man1" / "mgpu-rt.1").read_text()
    assert (prefix / "lib" / "libmlir_cuda_runtime.so.22.1").resolve() == (
        prefix / "lib" / "libmlir_rocm_runtime.so"
    ).resolve()
    run(*words, "uninstall")
    assert [path for path in prefix.rglob("*") if not path.is_dir()] == []


@pytest.mark.check
def test_a_failed_make_install_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "bin").write_text("in the way")
    result = attempt("make", "-C", ROOT, f"PREFIX={tmp_path}", "install")
    assert result.returncode != 0
    assert f"Could not install into {tmp_path}: make PREFIX=..." in result.stderr
    assert [path.name for path in tmp_path.rglob("*") if not path.is_dir()] == ["bin"]
    assert attempt("make", "-C", ROOT, "PREFIX=/a b", "-n", "install").returncode != 0


# ---- make check-install ----


@pytest.fixture(scope="module")
def dist(folder: Path) -> Path:
    """Runs make dist in a copy of the sources, and removes the copy; returns the folder of the
    built files."""
    tree = machine.copy_sources(folder / "tree")
    venv = Path(sys.executable).parent.parent
    run("make", "-C", tree, f"VENV={venv}", "dist")
    (tree / "dist").rename(folder / "made")
    shutil.rmtree(tree)
    return folder / "made"


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.check_install
@pytest.mark.parametrize("version", machine.VERSIONS)
def test_every_python_can_use_the_wheel(version: str, dist: Path, folder: Path) -> None:
    if version not in machine.interpreters():
        pytest.skip(f"no Python {version} on this machine")
    (built,) = dist.glob("*.whl")
    assert built.name.endswith("-cp310-abi3-manylinux_2_28_x86_64.whl")
    place = machine.install(machine.interpreters()[version], folder / f"python{version}", built)
    check(place, folder / f"work{version}", version)


@pytest.mark.check_install
def test_the_python_examples_run_beside_a_wheel(dist: Path, folder: Path) -> None:
    """The examples run as copies, in an environment that contains the wheel and NumPy."""
    (built,) = dist.glob("*.whl")
    wanted = ("-c", ROOT / "tests" / "requirements.lock", built, "numpy")
    place = machine.install(Path(sys.executable), folder / "numpy", *wanted)
    examples = shutil.copytree(EXAMPLES, folder / "examples")
    for name in NUMPY:
        words = ("run", "--device", "softgpu", "--", place.python, examples / f"{name}.py")
        assert run(place.command, *words) == RESULT


@pytest.mark.check_install
def test_two_builds_are_identical(dist: Path, folder: Path) -> None:
    """The second build runs in another folder, only from the archive's contents."""
    (archive,) = dist.glob("*.tar.gz")
    (built,) = dist.glob("*.whl")
    elsewhere = folder / "somewhere" / "else, far away"
    elsewhere.mkdir(parents=True)
    run("tar", "-xf", archive, "-C", elsewhere)
    (tree,) = elsewhere.iterdir()
    venv = Path(sys.executable).parent.parent
    run("make", "-C", tree, f"VENV={venv}", "dist")
    again = {path.name: _digest(path) for path in (tree / "dist").iterdir()}
    assert again == {path.name: _digest(path) for path in (archive, built)}


@pytest.mark.check_install
def test_pip_installs_from_the_source_archive(dist: Path, folder: Path) -> None:
    """pip compiles the source archive with the user's flags. Then pip makes an editable install of
    the archive's content."""
    (archive,) = dist.glob("*.tar.gz")
    place = machine.install(Path(sys.executable), folder / "from source", archive)
    check(place, folder / "work source", THIS)
    run("tar", "-xf", archive, "-C", folder)
    (tree,) = folder.glob("mgpu_rt-*/")
    editable = machine.install(Path(sys.executable), folder / "editable", "-e", tree)
    check(editable, folder / "work editable", THIS)
    place = attempt(editable.command, "config", "--path").stdout.strip()
    assert place == f"{tree}/build/lib"


@pytest.mark.check_install
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for a root of another Debian")
def test_debian_13_can_use_the_wheel(dist: Path, folder: Path) -> None:
    """Debian 13 has its own Python, compiler and HIP. The test installs as root and as another
    user."""
    root = folder / "trixie"
    packages = "python3,python3-venv,python3-dev,gcc,libc6-dev,binutils,make,libhsakmt-dev"
    more = "libamdhip64-5,cmake,pkg-config"
    run("mmdebstrap", "--variant=minbase", f"--include={packages},{more}", "trixie", root)
    given = root / "given"
    shutil.copytree(dist, given)
    shutil.copyfile(machine.forum(), given / "forum.o")
    shutil.copytree(machine.EXAMPLE, given / "example")
    shutil.copyfile(Path(__file__).with_name("debian.sh"), given / "debian.sh")
    python = f"3.{sorted(p.name for p in root.glob('usr/bin/python3.*'))[0].split('.')[1]}"
    wanted = ("cffi", "click", "msgpack", "pyelftools", "setuptools>=77")
    only = ("--only-binary", ":all:", "--python-version", python, "-d", given / "wheels")
    only = (*only, "-c", ROOT / "tests" / "requirements.lock")
    run(sys.executable, "-m", "pip", "download", *only, *wanted)
    for user in (0, 1000):
        result = in_root(root, user, "debian.sh")
        assert result.stdout.count("served") == 3, result.stdout


@pytest.mark.check_install
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for a root of another Debian")
def test_the_newest_python_can_host_and_manage(dist: Path, folder: Path) -> None:
    """Debian's newest Python, 3.14 or later, serves as the host of four threads and as the
    manager's interpreter."""
    root = folder / "sid"
    packages = "--include=python3,python3-venv,python3-cffi,python3-click"
    old = 'Acquire::Check-Valid-Until "false"'  # a mirror may lag behind
    run("mmdebstrap", "--variant=minbase", f"--aptopt={old}", packages, "sid", root)
    given = root / "given"
    shutil.copytree(dist, given)
    shutil.copyfile(STUB, given / STUB.name)
    (given / "forum.hsaco").write_bytes(code_object("forum"))
    for name in ("newest.sh", "newest.py"):
        shutil.copyfile(Path(__file__).with_name(name), given / name)
    result = in_root(root, 0, "newest.sh")
    version = re.search(r"manager: Python (3\.\d+)", result.stderr)
    assert version and tuple(map(int, version[1].split("."))) >= (3, 14), result.stderr
    assert f"{version[1]}." in result.stdout
    assert "launched 4000" in result.stdout


def in_root(root: Path, user: int, script: str) -> subprocess.CompletedProcess[str]:
    """Runs a script of the folder /given in a chroot at `root`, as a user with a separate home
    directory."""
    home = root / "given" / str(user)
    home.mkdir()
    os.chown(home, user, user)
    inside = 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" "$@"'
    words = ["unshare", "--mount", "sh", "-c", inside, str(root), "setpriv"]
    words += [f"--reuid={user}", f"--regid={user}", "--clear-groups"]
    words += ["env", "-i", "PATH=/usr/bin:/bin", f"HOME=/given/{user}", "sh", f"/given/{script}"]
    result = run_process(words)
    assert result.returncode == 0, result.stdout[-6000:] + result.stderr[-3000:]
    return result
