"""`mgpu-rt check` reports uses of uninitialised values; an option disables these reports."""

from __future__ import annotations

import json
from pathlib import Path

from tests.python.cli.check.test_check import check
from tests.python.runtime.hooked import program

HERE = Path(__file__).parent
SOURCE = HERE / "uninitialised.mlir"

#: for each use of an undefined value: the role, the user, and the origin
USES = [
    ("branch", "branch", "%x = memref.load %in[%zero]"),
    ("address", "address", "%x = memref.load %in[%i]"),
    ("host", "host", "%x = memref.load %in[%i]"),
    ("copy", "mgpuMemcpy", None),
]


def test_each_use_is_found_once_with_its_origin(tmp_path: Path) -> None:
    text = SOURCE.read_text().splitlines()

    def line(place: str) -> str:
        return text[int(place.removeprefix("uninitialised.mlir:")) - 1]

    done = check("--json", tmp_path / "json", "--", program(SOURCE, lines=True))
    found = json.loads((tmp_path / "json").read_text())["reports"]
    assert done.returncode == 1, done.stderr
    assert {report["kind"] for report in found} == {"uninitialised"}, done.stderr
    used = [(report["use"], report.get("kernel") or report["call"]) for report in found]
    assert used == [(use, who) for use, who, _ in USES]
    for report, (_, who, origin) in zip(found, USES, strict=True):
        if origin is None:
            assert line(report["place"][0]["line"]).endswith("// tile")
            continue
        assert f"// {who}" in line(report["line"]), report
        assert origin in line(report["other"]["line"]), report
    assert "copies 256 bytes to the host; 128 of them, from 0x" in done.stderr


def test_uninitialised_values_are_left_out_on_request() -> None:
    done = check("--no-uninitialised", "--", program(SOURCE))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "mgpu-rt: found no fault\n")


def test_the_device_reads_the_switch_by_itself() -> None:
    done = check("--", program(SOURCE), MGPU_RT_CHECK_UNINITIALISED="off")
    assert (done.returncode, done.stderr) == (0, "mgpu-rt: found no fault\n")
