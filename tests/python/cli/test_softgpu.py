"""mgpu_rt._cli.softgpu sets the environment of a child process. If a part of softgpu is missing,
the message names this part."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mgpu_rt import _hip_search, _layout
from mgpu_rt._cli import softgpu
from mgpu_rt._cli.errors import NoDevice

#: A library file, which loads ROCr.
ELF = b"\x7fELF" + _hip_search.HSA.encode()


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Creates a build directory with an empty driver library; HIP is not installed."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    library = tmp_path / "build" / "softgpu" / softgpu.DRIVER
    library.parent.mkdir(parents=True)
    library.touch()
    monkeypatch.setattr(softgpu, "BUILD", tmp_path / "build")
    return tmp_path / "build"


@pytest.fixture
def hip(tmp_path: Path) -> str:
    library = tmp_path / "libamdhip64.so.5"
    library.write_bytes(ELF)
    return str(library)


def test_the_driver_comes_first(build: Path, hip: str) -> None:
    base = {"LD_LIBRARY_PATH": "/one::/two", "MGPU_RT_HIP": hip, "HOME": "/somewhere"}
    result = softgpu.environment(base)
    assert result["LD_LIBRARY_PATH"] == f"{build}/softgpu:/one:/two"
    assert result["MGPU_RT_HIP"] == hip
    assert result["MGPU_RT_SOFTGPU"] == "gfx90a"
    assert result["HOME"] == "/somewhere"
    assert softgpu.environment(result) == result


def test_a_missing_part_is_named(build: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NoDevice, match="MGPU_RT_HIP=/nowhere"):
        softgpu.environment({"MGPU_RT_HIP": "/nowhere"})
    monkeypatch.setattr(softgpu._hip_search, "find", lambda _: {})
    with pytest.raises(NoDevice, match="apt-get install libamdhip64-5, or set"):
        softgpu.environment({})
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(NoDevice, match="install AMD's ROCm, up to"):
        softgpu.environment({})
    (build / "softgpu" / softgpu.DRIVER).unlink()
    with pytest.raises(NoDevice, match=r"libhsakmt\.so\.1 is missing.*`make`"):
        softgpu.environment({})


def test_a_hip_that_cannot_be_emulated_is_named(
    build: Path, hip: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The installed HIP uses a ROCr that loads no library of the build directory."""
    found = {hip: "/opt/rocm"}
    monkeypatch.setattr(_hip_search, "LOADERS_FOLDERS", ())
    monkeypatch.setattr(_hip_search, "find", lambda _: found)
    with pytest.raises(NoDevice, match="none here can be run so"):
        softgpu.environment({})
    (Path(hip).parent / _hip_search.HSA).write_bytes(b"\0hsaKmtQueueRingDoorbell\0")
    with pytest.raises(NoDevice, match="none here can be run so"):
        softgpu.environment({})
    (build / "softgpu" / softgpu.DTIF).touch()
    result = softgpu.environment({})
    assert result["MGPU_RT_HIP"] == hip
    assert result["HSA_ENABLE_DTIF"] == "1"


def test_the_devices_are_those_of_softgpu() -> None:
    table = (_layout.CHECKOUT / "softgpu/src/config.c").read_text()
    assert re.findall(r'^    \{"(gfx\w+)", ', table, re.MULTILINE) == [*softgpu.TARGETS]


def test_settings_stand_beside_the_devices(build: Path, hip: str) -> None:
    base = {"MGPU_RT_HIP": hip, "MGPU_RT_SOFTGPU": "memory=1G,gfx906,threads=2"}
    assert softgpu.targets(base) == ["gfx906"]
    assert softgpu.targets({"MGPU_RT_SOFTGPU": "threads=2"}) == ["gfx90a"]
    assert softgpu.environment(base)["MGPU_RT_SOFTGPU"] == base["MGPU_RT_SOFTGPU"]
    assert softgpu.with_targets("gfx90a", base) == "gfx90a,memory=1G,threads=2"


@pytest.mark.parametrize("name", ["mi300x", "gfx90a,mi300x", "gfx90a,", "gfx1100"])
def test_a_device_that_there_is_not_is_named(build: Path, hip: str, name: str) -> None:
    with pytest.raises(NoDevice, match="gfx908, gfx942") as refused:
        softgpu.environment({"MGPU_RT_HIP": hip, "MGPU_RT_SOFTGPU": name})
    assert f"MGPU_RT_SOFTGPU={name}: '{name.rpartition(',')[2]}' is none of " in str(refused.value)


def _lay(folder: Path, name: str, knows: str) -> Path:
    """Creates a HIP library and a ROCr library; the ROCr supports the targets in `knows`."""
    folder.mkdir(parents=True)
    (folder / _hip_search.HSA).write_text(f"libhsakmt.so.1 {knows}")
    (folder / name).write_bytes(ELF)
    return folder / name


def test_a_device_that_hip_does_not_know_wants_another_hip(
    build: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    old = _lay(tmp_path / "old", "libamdhip64.so.5", "gfx906 gfx90a")
    monkeypatch.setattr(_hip_search, "find", lambda _: {str(old): "/opt/rocm"})
    (build / "softgpu" / "libhsakmt.so.1").touch()
    wanted = {"MGPU_RT_SOFTGPU": "gfx90a,gfx942", "LD_LIBRARY_PATH": "/one"}
    for base, instead in ((wanted, ""), ({**wanted, "MGPU_RT_HIP": str(old)}, "unset MGPU_RT_HIP")):
        with pytest.raises(NoDevice, match=f"{old} does not know gfx942") as said:
            softgpu.environment(base)
        assert f"{instead}" in str(said.value)
        assert "install HIP 5.7 or later" in str(said.value)
    newer = _lay(tmp_path / "newer", "libamdhip64.so.5", "gfx90a gfx942")
    result = softgpu.environment({**wanted, "MGPU_RT_HIP": str(newer)})
    assert result["MGPU_RT_HIP"] == str(newer)
    assert result["LD_LIBRARY_PATH"] == f"{build}/softgpu:/one"
    assert softgpu.environment(result) == result
    assert softgpu.environment({})["MGPU_RT_HIP"] == str(old)


def test_check_takes_the_newest_hip_5(
    build: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The device of `mgpu-rt check` replaces the driver library. HIP 6 and later load no driver
    library."""
    newest = _lay(tmp_path / "7", "libamdhip64.so.7", "gfx942")
    (newest.parent / _hip_search.HSA).write_bytes(b"hsaKmtQueueRingDoorbell gfx942 gfx90a")
    middle = _lay(tmp_path / "5", "libamdhip64.so.5", "gfx942 gfx90a")
    found = {str(path): "/opt/rocm" for path in (newest, middle)}
    monkeypatch.setattr(_hip_search, "find", lambda _: found)
    (build / "softgpu" / softgpu.DTIF).touch()
    wanted = {"MGPU_RT_SOFTGPU": "gfx942"}
    assert softgpu.hip(wanted) == newest
    assert softgpu.hip(wanted, softgpu.DRIVER) == middle
    found.popitem()
    with pytest.raises(NoDevice, match="it runs AMD's HIP 5, and none here"):
        softgpu.hip(wanted, softgpu.DRIVER)
