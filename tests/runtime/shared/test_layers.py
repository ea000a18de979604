"""Tests that a file includes only files of its own layer or of lower layers, and that there are no
cycles.

csrc/runtime/README.md lists the layers. A file and the header with the same name count as one unit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.support.child import ROOT

CSRC = ROOT / "csrc"
RUNTIME = CSRC / "runtime"

#: The layers from top to bottom; "" means csrc/runtime itself. A file may include headers of its
#: own folder and of the folders that follow in the list.
LAYERS = (
    *("abi", "telemetry/recording", "manager"),
    *("graphs", "sparse", "launch", "memory", "modules", "streams"),
    *("shared", "driver", "modules/image", "telemetry", "process", ""),
)

#: Maps a folder to the other folders whose headers may be included in the folder's files.
TREES = {
    "csrc/runtime": {"csrc", "csrc/include"},
    "softgpu/src": {"softgpu/src/isa", "softgpu/src/check"},
    "softgpu/src/check": {"softgpu/src", "softgpu/src/isa"},
    "softgpu/src/comgr": {"softgpu/src"},  # settings.h
    "softgpu/src/isa": {"softgpu/src", "softgpu/src/check"},  # device.h: the machine it runs on
    "csrc/cuhip": {"csrc"},
    "csrc/selftest": set(),
    "csrc/selftest/player": set(),
}


INCLUDE = re.compile(r'^#include "([^"]+\.h)"', re.MULTILINE)


def sources(tree: str, suffixes: str = "ch") -> list[Path]:
    folder = ROOT / tree
    pattern = f"*.[{suffixes}]"
    return sorted(folder.rglob(pattern) if tree == "csrc/runtime" else folder.glob(pattern))


def included(path: Path, root: Path) -> Iterator[Path]:
    """Returns the project's headers that a file includes, as the compiler would find them."""
    for name in INCLUDE.findall(path.read_text()):
        places = (path.parent, root, CSRC / "include")
        found = next((place / name for place in places if (place / name).exists()), None)
        assert found, f"{path}: {name} is not there"
        yield found.resolve()


def layer(path: Path) -> int:
    folder = path.relative_to(RUNTIME).parent
    return LAYERS.index("" if folder == Path() else str(folder))


def unit(path: Path) -> str:
    return str(path.relative_to(ROOT).with_suffix(""))


def test_every_folder_is_a_layer() -> None:
    folders = {str(path.parent.relative_to(RUNTIME)) for path in sources("csrc/runtime")}
    assert folders == {name or "." for name in LAYERS}


def test_the_runtime_includes_only_lower_layers() -> None:
    upwards = [
        f"{path.relative_to(RUNTIME)} includes {header.relative_to(RUNTIME)}"
        for path in sources("csrc/runtime")
        for header in included(path, RUNTIME)
        if header.is_relative_to(RUNTIME) and layer(header) < layer(path)
    ]
    assert not upwards


@pytest.mark.parametrize("tree", TREES)
def test_no_other_folder_is_included(tree: str) -> None:
    root = ROOT / tree
    allowed = {path.parent for path in sources(tree)} | {ROOT / name for name in TREES[tree]}
    sideways = [
        f"{path.relative_to(ROOT)} includes {header.relative_to(ROOT)}"
        for path in sources(tree)
        for header in included(path, root)
        if header.parent not in allowed
    ]
    assert not sideways


@pytest.mark.parametrize("tree", TREES)
def test_no_files_include_each_other_in_a_circle(tree: str) -> None:
    graph: dict[str, set[str]] = {}
    for path in sources(tree):
        needs = graph.setdefault(unit(path), set())
        needs |= {unit(header) for header in included(path, ROOT / tree)} - {unit(path)}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"a circle: {' -> '.join(error.args[1])}")


def test_the_readme_has_the_file_of_each_call() -> None:
    text = (RUNTIME / "README.md").read_text()
    rows = re.findall(r"^\| (`mgpu[^|]+) \| (\w+/mgpu_\w+\.c) \|", text, re.MULTILINE)
    told = {(name, file) for names, file in rows for name in re.findall(r"`(mgpu\w+)`", names)}
    files = {
        (name, str(path.relative_to(RUNTIME)))
        for path in RUNTIME.glob("*/mgpu_*.c")
        for name in re.findall(r"\bimpl_(mgpu\w+)\([^;]*?\) \{", path.read_text())
    }
    assert told == files
