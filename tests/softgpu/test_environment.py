"""What mgpu_rt.softgpu gives a child process, and how it says what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from mgpu_rt import softgpu


@pytest.fixture
def build(tmp_path: Path) -> Path:
    """A build directory with something in the driver's place."""
    library = tmp_path / "build" / "softgpu" / softgpu.DRIVER
    library.parent.mkdir(parents=True)
    library.touch()
    return tmp_path / "build"


@pytest.fixture
def hip(tmp_path: Path) -> str:
    library = tmp_path / softgpu.HIP
    library.touch()
    return str(library)


def test_the_driver_comes_first(build: Path, hip: str) -> None:
    base = {"LD_LIBRARY_PATH": "/one::/two", "MGPU_RT_HIP": hip, "HOME": "/somewhere"}
    result = softgpu.environment(base, build=build)
    assert result["LD_LIBRARY_PATH"] == f"{build}/softgpu:/one:/two"
    assert result["MGPU_RT_HIP"] == hip
    assert result["MGPU_RT_SOFTGPU"] == "gfx90a"
    assert result["HOME"] == "/somewhere"
    assert softgpu.environment(result, build=build) == result


def test_what_is_set_stays(build: Path, hip: str) -> None:
    base = {"MGPU_RT_HIP": hip, "MGPU_RT_SOFTGPU": "gfx906,gfx908"}
    assert softgpu.environment(base, build=build)["MGPU_RT_SOFTGPU"] == "gfx906,gfx908"


def test_a_missing_driver_is_named(tmp_path: Path) -> None:
    with pytest.raises(softgpu.SoftGpuUnavailable, match=r"libhsakmt\.so\.1 is missing.*`make`"):
        softgpu.environment({}, build=tmp_path)


def test_a_missing_hip_is_named(build: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(softgpu.SoftGpuUnavailable, match="MGPU_RT_HIP=/nowhere"):
        softgpu.environment({"MGPU_RT_HIP": "/nowhere"}, build=build)
    monkeypatch.setattr(softgpu, "_LIBRARY_DIRECTORIES", ())
    with pytest.raises(softgpu.SoftGpuUnavailable, match="apt-get install libamdhip64-5"):
        softgpu.environment({}, build=build)
