"""Tests programs in other hosts, such as Python and mlir-runner; the tests start the hosts as the
harness does."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from bench.measure import hosts as measured
from bench.setup import device, hosts, native, sides
from bench.show import table


@pytest.fixture(scope="module")
def stub() -> device.Device:
    return dataclasses.replace(
        device.find("stub"), iterations={name: 2 for name in device.ITERATIONS}
    )


def test_every_host_runs_every_side(stub: device.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hand-written loop also runs in a Python process, as the programs do."""
    monkeypatch.setattr(measured, "MOST", 3)
    result = measured.run(stub, 2, None, lambda _: None)
    taken = {(row["host"], row["side"]) for row in result.data if "us" in row}
    there = [host for host in hosts.RELEASES if hosts.missing(host) is None]
    usual = {sides.STOCK, sides.OURS, sides.EXCLUSIVE, sides.HOISTED}
    assert taken == {
        (host, side)
        for host in there
        for side in usual | ({sides.APART} if host != hosts.RUNNER else set())
    }
    benchmark = {"device": result.device, "data": result.data}
    shown = table.hosts({"date": "2026-01-01", "benchmarks": {"hosts-stub": benchmark}}, "stub")
    assert "| forum in mlir-runner, LLVM 22 |" in shown


def test_a_missing_host_is_left_out(stub: device.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts.importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(hosts, "RELEASES", {hosts.ENGINE: (22,)})
    result = measured.run(stub, 2, None, lambda _: None)
    assert result.figures == []
    (row,) = result.data
    assert row["host"] == hosts.ENGINE
    assert "pip install 'mgpu_rt[jit]'" in row["left_out"]


def test_bindings_that_do_not_load_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MLIR's Python bindings need libLLVM.so, which the package of the bindings does not
    contain."""
    (tmp_path / "mlir").mkdir()
    (tmp_path / "mlir" / "__init__.py").write_text("")
    (tmp_path / "mlir" / "ir.py").write_text("raise ImportError('libLLVM.so: no such file')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(hosts.importlib.util, "find_spec", lambda _: "is there")
    reason = "MLIR's Python bindings do not load: ImportError: libLLVM.so: no such file"
    assert hosts.missing(hosts.ENGINE) == reason


def test_by_hand_in_a_host_says_what_fails(stub: device.Device) -> None:
    command = hosts.by_hand(hosts.PYTHON, "forum", stub)
    assert command is not None
    command[command.index("forum")] = "nothing"
    with pytest.raises(native.Failed, match="no such program: nothing"):
        native.run(command, stub.environment)
