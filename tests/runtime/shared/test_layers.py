"""Tests that a file includes and calls only files of its own layer or of lower layers, and that
there are no cycles.

csrc/runtime/README.md lists the layers. A file and the header with the same name count as one unit.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.support.child import BUILD, ROOT
from tests.support.variants import control

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

#: Maps a source folder to the folder in which make has put the object files.
OBJECTS = {"softgpu/src": BUILD / "softgpu" / "obj", "csrc/cuhip": BUILD / "cuhip" / "obj"}

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


#: Matches a function's definition: the text before its name, the name, the parameters.
DEFINITION = re.compile(r"^(\w[\w \t\n*()\",]*?)\b(\w+)(\([^;{}]*\)) \{$", re.MULTILINE)


def functions(path: Path) -> Iterator[tuple[str, str, str]]:
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
    text = re.sub(r"__attribute__\(\(.*?\)\)\s*", "", text)
    yield from DEFINITION.findall(text)


def layer(path: Path) -> int:
    folder = path.relative_to(RUNTIME).parent
    return LAYERS.index("" if folder == Path() else str(folder))


def unit(path: Path) -> str:
    return str(path.relative_to(ROOT).with_suffix(""))


def check(graph: Mapping[str, set[str]]) -> None:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"a circle: {' -> '.join(error.args[1])}")


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
    check(graph)


#: Maps each lot to the folders that have the headers which its files may include. The lots use each
#: other by public headers only.
LOTS = {
    "csrc": ("csrc",),
    "softgpu": ("softgpu", "csrc/include"),
    "bench": ("bench", "csrc/include"),
}


@pytest.mark.parametrize("lot", LOTS)
def test_a_lot_includes_only_public_headers_of_others(lot: str) -> None:
    files = [path for path in (ROOT / lot).rglob("*.[ch]") if path.parent.name != "csmith"]
    headers = {str(path) for name in LOTS[lot] for path in (ROOT / name).rglob("*.h")}
    foreign = [
        f"{path.relative_to(ROOT)} includes {name}"
        for path in files
        for name in INCLUDE.findall(path.read_text())
        if not any(header.endswith(f"/{name.lstrip('./')}") for header in headers)
    ]
    assert files and not foreign


def symbols(objects: list[Path]) -> dict[str, tuple[set[str], set[str]]]:
    """Returns, for each object file, the symbols that the file defines and the symbols that it
    needs from other files."""
    found: dict[str, tuple[set[str], set[str]]] = {str(path): (set(), set()) for path in objects}
    said = subprocess.run(["nm", "-A", *objects], capture_output=True, text=True, check=True)
    for line in said.stdout.splitlines():
        path, _, words = line.partition(":")
        *_, kind, name = words.split()
        if kind in "BCDRTU" and name != "proof_left_out":
            found[path][kind == "U"].add(name)
    return found


def objects(tree: str, files: list[Path]) -> list[Path]:
    """Returns the object files of the given sources. The runtime's own object files are built for
    link-time optimisation, so the test takes those of the library that tests/proofs/mutants uses.
    """
    for part, made in OBJECTS.items():
        if tree.startswith(part):
            return [made / path.relative_to(ROOT / part).with_suffix(".o") for path in files]
    made = control().parents[1] / "runtime"
    return [made / path.relative_to(RUNTIME).with_suffix(".o") for path in files]


@pytest.mark.check
@pytest.mark.parametrize("tree", [tree for tree in TREES if "selftest" not in tree])
def test_no_files_call_each_other_in_a_circle(tree: str) -> None:
    """A common header can hide that two files use each other's functions."""
    files = sources(tree, "c")
    made = objects(tree, files)
    if not made[0].exists():
        pytest.skip("it was built without: make SOFTGPU=no")
    found = dict(zip(map(unit, files), symbols(made).values(), strict=True))
    home = {name: path for path, (defined, _) in found.items() for name in defined}
    check(
        {
            path: {home.get(name, path) for name in taken} - {path}
            for path, (_, taken) in found.items()
        }
    )


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


def test_a_file_says_first_what_it_holds() -> None:
    """Each header begins with a comment, and so does each source without a header."""
    silent = []
    for path in sources("csrc/runtime"):
        header = path.with_suffix(".h")
        first = (header if header.exists() else path).read_text()
        if not first.startswith("/* "):
            silent.append(unit(path))
    assert not silent


def test_a_static_function_has_its_name_for_itself() -> None:
    places: dict[str, set[str]] = {}
    for path in sources("csrc/runtime", "c"):
        for before, name, _ in functions(path):
            if "static" in before.split():
                places.setdefault(name, set()).add(unit(path))
    assert len(places) > 300
    assert not {name: found for name, found in places.items() if len(found) > 1}


def test_no_function_has_more_than_five_parameters() -> None:
    """Functions of the ABI have the parameters that MLIR passes."""
    wide = [
        f"{unit(path)}: {name}"
        for path in sources("csrc/runtime")
        for _, name, parameters in functions(path)
        if parameters.count(",") > 4 and not name.startswith(("impl_", "captured_", "built_"))
    ]
    assert not wide
