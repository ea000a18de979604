"""The public modules are mgpu_rt, mgpu_rt.hooks, mgpu_rt.manager and mgpu_rt.runtime."""

import pkgutil
import re
from pathlib import Path

import mgpu_rt

PUBLIC = ["hooks", "manager", "runtime"]


def test_all_other_modules_are_private() -> None:
    found = [module.name for module in pkgutil.walk_packages(mgpu_rt.__path__, "mgpu_rt.")]
    names = [name.removeprefix("mgpu_rt.") for name in found]
    assert [n for n in names if "._" not in f".{n}" and n != "__main__"] == PUBLIC


def test_a_public_class_has_its_name_alone() -> None:
    sources = [path.read_text() for path in Path(*mgpu_rt.__path__).rglob("*.py")]
    defined = re.findall(r"^class (HipError|Kernel|MemRef|Image)\b", "\n".join(sources), re.M)
    assert sorted(defined) == ["HipError", "Image", "Kernel", "MemRef"]
