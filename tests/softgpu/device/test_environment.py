"""mgpu_rt.cli.softgpu sets a child's environment, and names what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from mgpu_rt import hip_search
from mgpu_rt.cli import softgpu


@pytest.fixture
def build(tmp_path: Path) -> Path:
    """A build directory with something in the driver's place."""
    library = tmp_path / "build" / "softgpu" / softgpu.DRIVER
    library.parent.mkdir(parents=True)
    library.touch()
    return tmp_path / "build"


@pytest.fixture
def hip(tmp_path: Path) -> str:
    library = tmp_path / "libamdhip64.so.5"
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


def test_variables_that_are_set_stay(build: Path, hip: str) -> None:
    base = {"MGPU_RT_HIP": hip, "MGPU_RT_SOFTGPU": "gfx906,gfx908"}
    assert softgpu.environment(base, build=build)["MGPU_RT_SOFTGPU"] == "gfx906,gfx908"


def test_a_missing_driver_is_named(tmp_path: Path) -> None:
    with pytest.raises(softgpu.SoftGpuUnavailable, match=r"libhsakmt\.so\.1 is missing.*`make`"):
        softgpu.environment({}, build=tmp_path)


def test_a_missing_hip_is_named(build: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(softgpu.SoftGpuUnavailable, match="MGPU_RT_HIP=/nowhere"):
        softgpu.environment({"MGPU_RT_HIP": "/nowhere"}, build=build)
    monkeypatch.setattr(softgpu.hip_search, "find", lambda _: [])
    with pytest.raises(softgpu.SoftGpuUnavailable, match="apt-get install libamdhip64-5, or set"):
        softgpu.environment({}, build=build)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(softgpu.SoftGpuUnavailable, match="install AMD's ROCm, up to"):
        softgpu.environment({}, build=build)


def test_a_hip_that_cannot_be_emulated_is_named(
    build: Path, hip: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ROCr below it looks for neither of the libraries that stand in."""
    found = [hip_search.Hip("/opt/rocm", hip)]
    monkeypatch.setattr(hip_search, "LOADERS_FOLDERS", ())
    monkeypatch.setattr(hip_search, "find", lambda _: found)
    with pytest.raises(softgpu.SoftGpuUnavailable, match="none here can be run so"):
        softgpu.environment({}, build=build)
    (Path(hip).parent / hip_search.HSA).write_bytes(b"\0hsaKmtQueueRingDoorbell\0")
    with pytest.raises(softgpu.SoftGpuUnavailable, match="none here can be run so"):
        softgpu.environment({}, build=build)
    (build / "softgpu" / softgpu.DTIF).touch()
    result = softgpu.environment({}, build=build)
    assert result["MGPU_RT_HIP"] == hip
    assert result["HSA_ENABLE_DTIF"] == "1"
