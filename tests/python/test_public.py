"""The public modules are mgpu_rt, mgpu_rt.hooks, mgpu_rt.manager and mgpu_rt.runtime."""

import ast
import pkgutil
from graphlib import TopologicalSorter
from pathlib import Path

import mgpu_rt

PUBLIC = ["hooks", "manager", "runtime"]


def test_all_other_modules_are_private() -> None:
    found = [module.name for module in pkgutil.walk_packages(mgpu_rt.__path__, "mgpu_rt.")]
    names = [name.removeprefix("mgpu_rt.") for name in found]
    assert [n for n in names if "._" not in f".{n}" and n != "__main__"] == PUBLIC


def imports(path: Path) -> set[Path]:
    """Returns the files of the package that a file imports, also within functions. Imports for type
    checkers do not count."""
    found: set[Path] = set()
    waiting: list[ast.AST] = [ast.parse(path.read_text())]
    while waiting:
        for node in ast.iter_child_nodes(waiting.pop()):
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                continue
            waiting.append(node)
            if isinstance(node, ast.ImportFrom) and node.module:
                found |= {_file(f"{node.module}.{alias.name}") for alias in node.names}
                found.add(_file(node.module))
    return {file for file in found if file.exists() and file != path} - {ROOT / "__init__.py"}


ROOT = Path(*mgpu_rt.__path__)


def _file(module: str) -> Path:
    folder = ROOT.parent.joinpath(*module.split("."))
    return folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")


def test_no_files_import_each_other_in_a_circle() -> None:
    left = {path: imports(path) for path in ROOT.rglob("*.py")}
    while free := [path for path, wanted in left.items() if not wanted & left.keys()]:
        for path in free:
            del left[path]
    assert left == {}


USES_CLI = ("_selftest", "_testing")


def test_folders_import_each_other_one_way() -> None:
    """Files beside the folders count as folders. The command uses all of them. Those in USES_CLI
    use its options and errors in turn."""
    graph: dict[str, set[str]] = {}
    for path in ROOT.rglob("*.py"):
        folder = path.relative_to(ROOT).parts[0]
        wanted = {file.relative_to(ROOT).parts[0] for file in imports(path)}
        graph[folder] = graph.get(folder, set()) | wanted - {folder}
    for folder in USES_CLI:
        graph[folder].remove("_cli")
    TopologicalSorter(graph).prepare()
